"""Layered: a mapping that is a value, of which a changed copy costs little.

A broker is a value, and `step` gives the broker after it; copying a dictionary of a hundred thousand clients for each
of them would be most of the work. What was added and removed since lies in a layer of its own beside a base that all
copies share. A layer that grew is put into the one below it, and the lower one into the base: with two layers, a change
costs about the cube root of the size.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
Self = TypeVar("Self", bound="Layered[Any, Any]")

FEW = 16
"""so much is always kept in a layer of its own"""


class Layered(Mapping[K, V]):
    """A mapping as a value. None is no value: it marks what is gone.

    >>> one = Layered().changed_by({"a": 1, "b": 2})
    >>> one.changed_by({"c": 3}, gone=["a"]), one
    ({'b': 2, 'c': 3}, {'a': 1, 'b': 2})
    """

    __slots__ = ("_base", "_changed", "_late", "_lower", "_shared", "_size")

    def __init__(self) -> None:
        self._base: Mapping[K, V] = {}
        self._lower: Mapping[K, V | None] = {}
        self._changed: Mapping[K, V | None] = {}
        self._shared: tuple[list[Any], list[Any]] = ([], [])
        """what is known of the base, and of the lower layer, by whoever found it out first"""
        self._late: list[Any] = []
        """the same of what has changed since: of this value alone"""
        self._size = 0

    def changed_by(self: Self, new: Mapping[K, V], gone: Iterable[K] = ()) -> Self:
        """The mapping without what is gone, and with what is new."""
        left = [key for key in dict.fromkeys(gone) if key in self]
        if not new and not left:
            return self
        base, lower, changed, shared = self._base, self._lower, dict(self._changed), self._shared
        for key in left:
            if key in base or key in lower:
                changed[key] = None
            else:
                del changed[key]
        changed.update(new)
        made = type(self)()
        if len(changed) > FEW + len(base) ** (1 / 3):
            lower, changed, shared = {**lower, **changed}, {}, (shared[0], [])
        if len(lower) > FEW + len(base) ** (2 / 3):
            base = {**base, **lower}  # type: ignore[dict-item]
            for key in [key for key, value in lower.items() if value is None]:
                del base[key]
            lower, shared = {}, ([], [])
            made._size = len(base)
        else:
            made._size = self._size - len(left) + sum(key in left or key not in self for key in new)
        made._base, made._lower, made._changed, made._shared = base, lower, changed, shared
        return made

    def __getitem__(self, key: K) -> V:
        for layer in (self._changed, self._lower):
            if key in layer:
                found = layer[key]
                break
        else:
            found = self._base[key]
        if found is None:
            raise KeyError(key)
        return found

    def get(self, key: K, default: Any = None) -> Any:
        for layer in (self._changed, self._lower):
            if key in layer:
                found = layer[key]
                return default if found is None else found
        return self._base.get(key, default)

    def __contains__(self, key: object) -> bool:
        for layer in (self._changed, self._lower):
            if key in layer:
                return layer[key] is not None  # type: ignore[index]
        return key in self._base

    def __iter__(self) -> Iterator[K]:
        lower, changed = self._lower, self._changed
        yield from (k for k in self._base if k not in lower and k not in changed)
        yield from (k for k, v in lower.items() if v is not None and k not in changed)
        yield from (k for k, v in changed.items() if v is not None)

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return repr(dict(self))
