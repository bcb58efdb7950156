"""Layered: a mapping that is a value, of which a changed copy costs little.

A broker is a value, and `step` gives the broker after it; copying a dictionary of a hundred thousand clients for each
of them would be most of the work. What was added and removed since lies beside a base that all copies share, until that
is worth a base of its own: a change costs about the square root of the size.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
Self = TypeVar("Self", bound="Layered[Any, Any]")

FEW = 16
"""so much is always kept beside the base"""


class Layered(Mapping[K, V]):
    """A mapping as a value. None is no value: it marks what is gone.

    >>> one = Layered().changed_by({"a": 1, "b": 2})
    >>> one.changed_by({"c": 3}, gone=["a"]), one
    ({'b': 2, 'c': 3}, {'a': 1, 'b': 2})
    """

    __slots__ = ("_base", "_changed", "_shared", "_size")

    def __init__(self) -> None:
        self._base: Mapping[K, V] = {}
        self._changed: Mapping[K, V | None] = {}
        self._shared: list[Any] = []
        """what is known of the base, by whoever found it out first"""
        self._size = 0

    def changed_by(self: Self, new: Mapping[K, V], gone: Iterable[K] = ()) -> Self:
        """The mapping without what is gone, and with what is new."""
        changed = dict(self._changed)
        size = self._size
        for key in gone:
            if changed.get(key, self._base.get(key)) is not None:
                size -= 1
                if key in self._base:
                    changed[key] = None
                else:
                    del changed[key]
        size += sum(changed.get(k, self._base.get(k)) is None for k in new)
        changed.update(new)
        made = type(self)()
        if len(changed) > FEW + math.isqrt(len(self._base)):
            made._base = {k: v for k, v in {**self._base, **changed}.items() if v is not None}
        else:
            made._base, made._shared, made._changed = self._base, self._shared, changed
        made._size = size
        return made

    def __getitem__(self, key: K) -> V:
        found = self._changed[key] if key in self._changed else self._base[key]
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        return (self._changed[key] is not None) if key in self._changed else key in self._base  # type: ignore[index]

    def __iter__(self) -> Iterator[K]:
        yield from (k for k in self._base if k not in self._changed)
        yield from (k for k, v in self._changed.items() if v is not None)

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return repr(dict(self))
