"""An index over subscriptions: which of many can accept an item at all.

A routing table of a hundred thousand entries cannot ask each of them. A subscription says what an item must offer for
it to be accepted, as `Need`s: one of some values of an attribute, a box in one or two dimensions that the item's values
must meet, or both. `Index` finds values in a dictionary and boxes in a grid; who can name no need is always asked. An
index only prunes: whoever it finds is still asked, so that answers are those of a scan.

`Entries` is a mapping of subscriptions with such an index, and a value like the table that holds it: what was added and
removed since the index was made lies beside it, until that is worth making the index anew. So a change costs little,
and the broker before the change is still there.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

Interval = tuple[float, float]
Box = tuple[Interval, ...]

UNBOUNDED = 16
"""a table of so few entries is scanned"""
WIDE = 64
"""a box of more cells than this is not put into the grid"""


class Need(NamedTuple):
    """What an item must offer: one of ``values`` of attribute ``name`` (None: whatever), and to meet a box.

    >>> Need("scope", frozenset({"weather"}))
    Need(name='scope', values=frozenset({'weather'}), dimensions=(), box=())
    """

    name: str | None = None
    values: frozenset[Any] = frozenset()
    dimensions: tuple[str, ...] = ()
    box: Box = ()


class Asking(Protocol):
    """What an index holds."""

    def accepts(self, item: object) -> bool: ...

    def needs(self) -> tuple[Need, ...] | None:
        """An item must meet one of these to be accepted; None: nothing can be said."""


class Offering(Protocol):
    """What an index is asked about."""

    def offered(self, name: str) -> Any:
        """The value of an attribute; `NOTHING` where there is none."""

    def boxes(self, dimensions: tuple[str, ...]) -> Iterable[Box] | None:
        """The boxes that it lies in; None: it may be anywhere."""


NOTHING = object()
K = TypeVar("K", bound=Hashable)


class Entries(Mapping[K, Any]):
    """Subscriptions by a key, and a quick way to those that accept an item.

    >>> from workbench.brokering.federation.attributes import Notification, Subscription, attribute
    >>> cities = {i: Subscription(i, attribute("city") == f"c{i}") for i in range(100)}
    >>> entries = Entries().changed_by(cities)
    >>> list(entries.accepting(Notification({"city": "c7"}))), len(entries.changed_by({}, [7]))
    ([7], 99)
    """

    __slots__ = ("_base", "_changed", "_index", "_size")

    def __init__(self, base: Mapping[K, Any] | None = None) -> None:
        self._base: Mapping[K, Any] = base or {}
        self._changed: Mapping[K, Any] = {}
        """what differs from the base: None where an entry is gone"""
        self._index: list[Index[K]] = []
        self._size = len(self._base)

    def changed_by(self, new: Mapping[K, Any], gone: Iterable[K] = ()) -> Entries[K]:
        """The entries without those that are gone, and with the new ones."""
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
        made: Entries[K] = Entries()
        if len(changed) > UNBOUNDED + math.isqrt(len(self._base)):
            made._base = {k: v for k, v in {**self._base, **changed}.items() if v is not None}
            made._index = []
        else:
            # Both share the index of their base, also where one of them makes it later.
            made._base, made._index, made._changed = self._base, self._index, changed
        made._size = size
        return made

    def accepting(self, item: Any) -> Iterator[K]:
        """The keys of the entries that accept an item; one may come twice."""
        for key, entry in self._changed.items():
            if entry is not None and entry.accepts(item):
                yield key
        if self._base:
            if not self._index:
                self._index.append(Index(self._base))
            for key in self._index[0].candidates(item):
                if key not in self._changed and self._base[key].accepts(item):
                    yield key

    def accept(self, item: Any) -> bool:
        """Whether one of the entries accepts an item."""
        return next(self.accepting(item), NOTHING) is not NOTHING

    def __getitem__(self, key: K) -> Any:
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


class Index(Generic[K]):
    """Keys by what their subscriptions need."""

    def __init__(self, held: Mapping[K, Asking]) -> None:
        self.always: list[K] = []
        """who can name no need"""
        boxes: dict[tuple[str | None, tuple[str, ...]], dict[Any, list[tuple[Box, K]]]] = {}
        for key, entry in held.items():
            needs = entry.needs()
            if needs is None:
                self.always.append(key)
                continue
            for need in needs:
                group = boxes.setdefault((need.name, need.dimensions), {})
                for value in need.values if need.name is not None else (NOTHING,):
                    group.setdefault(value, []).append((need.box, key))
        self.groups = {
            which: {value: _Grid(which[1], members) for value, members in group.items()}
            for which, group in boxes.items()
        }

    def candidates(self, item: Offering) -> Iterator[K]:
        """The keys of all that may accept an item."""
        yield from self.always
        for (name, dimensions), group in self.groups.items():
            value = NOTHING if name is None else item.offered(name)
            if name is not None and value is NOTHING:
                continue
            grid = group.get(value)
            if grid is not None:
                yield from grid.meeting(item.boxes(dimensions) if dimensions else None)


class _Grid:
    """Boxes of one or two dimensions in cells; those without an end on one side in the order of the other."""

    def __init__(self, dimensions: tuple[str, ...], members: list[tuple[Box, Any]]) -> None:
        self.members = members
        self.wide: list[int] = []
        self.cells: dict[tuple[int, ...], list[int]] = {}
        self.above: list[tuple[float, int]] = []
        self.below: list[tuple[float, int]] = []
        bounded: list[int] = []
        for i, (box, _) in enumerate(members):
            if all(math.isfinite(end) for side in box for end in side):
                bounded.append(i)
            elif len(box) == 1 and math.isfinite(box[0][0]):
                self.above.append((box[0][0], i))
            elif len(box) == 1 and math.isfinite(box[0][1]):
                self.below.append((box[0][1], i))
            else:
                self.wide.append(i)
        self.above.sort()
        self.below.sort()
        self.sizes = tuple(
            _cell_size([members[i][0][d] for i in bounded], len(dimensions)) for d in range(len(dimensions))
        )
        for i in bounded if dimensions else ():
            cells = self._cells(members[i][0])
            if cells is None:
                self.wide.append(i)
            else:
                for cell in cells:
                    self.cells.setdefault(cell, []).append(i)

    def _cells(self, box: Box) -> list[tuple[int, ...]] | None:
        """The cells that a box meets; None where they are too many."""
        spans = []
        count = 1
        for (low, high), size in zip(box, self.sizes, strict=True):
            if not (math.isfinite(low) and math.isfinite(high)) or (high - low) / size > WIDE:
                return None
            first, last = math.floor(low / size), math.floor(high / size)
            count *= last - first + 1
            spans.append(range(first, last + 1))
        if count > WIDE:
            return None
        return [(i,) for i in spans[0]] if len(spans) == 1 else [(i, j) for i in spans[0] for j in spans[1]]

    def meeting(self, asked: Iterable[Box] | None) -> Iterator[Any]:
        """The members whose box meets one of those asked for; all of them, if it may be any."""
        found: Iterable[int] = range(len(self.members))
        if asked is not None:
            found = self._found(list(asked))
        return (self.members[i][1] for i in found)

    def _found(self, asked: list[Box]) -> Iterable[int]:
        found: dict[int, None] = {}
        for box in asked:
            cells = self._cells(box) if self.cells else []
            candidates: Iterable[int] = range(len(self.members))
            if cells is not None:
                candidates = [*self.wide, *(i for cell in cells for i in self.cells.get(cell, ()))]
                if len(box) == 1:
                    candidates += [i for _, i in self.above[: bisect_right(self.above, box[0][1], key=_first)]]
                    candidates += [i for _, i in self.below[bisect_left(self.below, box[0][0], key=_first) :]]
            for i in candidates:
                mine = self.members[i][0]
                if all(a[0] <= b[1] and b[0] <= a[1] for a, b in zip(mine, box, strict=True)):
                    found[i] = None
        return found


def _first(pair: tuple[float, int]) -> float:
    return pair[0]


def _cell_size(sides: list[Interval], dimensions: int) -> float:
    """The mean length of the boxes, or what would leave one of them in a cell, if that is more."""
    if not sides:
        return 1.0
    mean = sum(high - low for low, high in sides) / len(sides)
    span = max(high for _, high in sides) - min(low for low, _ in sides)
    return max(mean, span / len(sides) ** (1 / max(dimensions, 1)), 1e-9)


def grown(low: float, high: float) -> Interval:
    """A little more than needed, so that rounding loses nothing."""
    return low - abs(low) * 1e-9 - 1e-9, high + abs(high) * 1e-9 + 1e-9
