"""An index over subscriptions: which of many can accept an item at all.

A routing table of a hundred thousand entries cannot ask each of them. A subscription says what an item must offer for
it to be accepted, as `Need`s: one of some values of an attribute, a box in one or two dimensions that the item's values
must meet, or both. `Index` finds values in a dictionary and boxes in a grid; who can name no need is always asked. An
index only prunes: whoever it finds is still asked, so that answers are those of a scan.

`Entries` is a mapping of subscriptions with such an index, and a value like the table that holds it (`layers`): what
was added and removed since the index was made lies beside it, and is compared one by one.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Generic, NamedTuple, Protocol

import numpy as np

from workbench.brokering.federation.layers import K, Layered

Interval = tuple[float, float]
Box = tuple[Interval, ...]

WIDE = 64
"""a box of more cells than this is not put into the grid"""
ROWS = 16
"""a box that meets more rows of cells is compared with all that lies between the first and the last"""
SOME = 5
"""so many of a row are compared one by one: whether there is any at all is mostly known by then"""


class Need(NamedTuple):
    """What an item must offer: one of ``values`` of attribute ``name`` (None: whatever), and to meet a box.

    >>> Need("scope", frozenset({"weather"}))
    Need(name='scope', values=frozenset({'weather'}), dimensions=(), box=())
    """

    name: str | None = None
    values: frozenset[Any] = frozenset()
    dimensions: tuple[str, ...] = ()
    box: Box = ()


ANYTHING = Need()


class Asking(Protocol):
    """What an index holds."""

    def accepts(self, item: object) -> bool: ...

    @property
    def needs(self) -> tuple[Need, ...] | None:
        """An item must meet one of these to be accepted; None: nothing can be said."""


class Offering(Protocol):
    """What an index is asked about."""

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The values that it has by name."""

    def boxes(self, dimensions: tuple[str, ...]) -> Iterable[Box] | None:
        """The boxes that it lies in; None: it may be anywhere."""

    @property
    def offer(self) -> Offer:
        """All this, as far as it was asked for."""


NOTHING = object()
ABSENT = object()
"""in place of an attribute that an item has not: no value that anybody asks for"""


class Entries(Layered[K, Any]):
    """Subscriptions by a key, and a quick way to those that accept an item.

    >>> from workbench.brokering.federation.attributes import Notification, Subscription, attribute
    >>> cities = {i: Subscription(i, attribute("city") == f"c{i}") for i in range(100)}
    >>> entries = Entries().changed_by(cities)
    >>> list(entries.accepting(Notification({"city": "c7"}))), len(entries.changed_by({}, [7]))
    ([7], 99)
    """

    __slots__ = ()

    def accepting(self, item: Any, offer: Offer | None = None) -> Iterator[K]:
        """The keys of the entries that accept an item; one may come twice. ``offer``: what it offers, if known."""
        offer = offer or item.offer
        changed, lower = self._changed, self._lower
        for key, entry in self._lately(offer):
            if entry.accepts(item):
                yield key
        if lower:
            for key in self._index(1, lower).candidates(offer):
                if key not in changed and lower[key].accepts(item):  # type: ignore[union-attr]
                    yield key
        if self._base:
            for key in self._index(0, self._base).candidates(offer):
                if key not in changed and key not in lower and self._base[key].accepts(item):
                    yield key

    def accept(self, item: Any, offer: Offer | None = None) -> bool:
        """Whether one of the entries accepts an item: what each hop asks of each neighbour."""
        offer = offer or item.offer
        changed, lower, base = self._changed, self._lower, self._base
        if changed and any(entry.accepts(item) for _, entry in self._lately(offer)):
            return True
        if lower:
            for key in self._index(1, lower).candidates(offer):
                if key not in changed and lower[key].accepts(item):  # type: ignore[union-attr]
                    return True
        if base:
            for key in self._index(0, base).candidates(offer):
                if key not in changed and key not in lower and base[key].accepts(item):
                    return True
        return False

    def _lately(self, offer: Offer) -> Iterator[tuple[K, Any]]:
        """The entries that are in no index yet and whose needs are met."""
        if self._changed and not self._late:
            self._late += [
                (need, key, entry)
                for key, entry in self._changed.items()
                if entry is not None
                for need in ((ANYTHING,) if entry.needs is None else entry.needs)
            ]
        for (name, values, dimensions, box), key, entry in self._late:
            if name is None or offer.offered(name, ABSENT) in values:
                asked = offer.boxes(dimensions) if dimensions else None
                if asked is None or any(_meet(box, other) for other in asked):
                    yield key, entry

    def unplaced(self) -> Iterator[Any]:
        """The entries that name no need, and those that are in no index yet."""
        changed, lower = self._changed, self._lower
        yield from (entry for entry in changed.values() if entry is not None)
        yield from (lower[key] for key in self._index(1, lower).always if key not in changed)
        yield from (
            self._base[key] for key in self._index(0, self._base).always if key not in changed and key not in lower
        )

    def _index(self, layer: int, held: Mapping[K, Any]) -> Index[K]:
        """The index of the base or of the layer above it, made once for all that share it."""
        shared = self._shared[layer]
        if not shared:
            shared.append(Index({key: entry for key, entry in held.items() if entry is not None}))
        return shared[0]  # type: ignore[no-any-return]


class Offer:
    """What an item offers, found out once."""

    __slots__ = ("_boxes", "item", "offered")

    def __init__(self, item: Offering) -> None:
        self.item = item
        self.offered = item.attributes.get
        self._boxes: dict[tuple[str, ...], list[Box] | None] = {}

    def boxes(self, dimensions: tuple[str, ...]) -> list[Box] | None:
        if dimensions not in self._boxes:
            found = self.item.boxes(dimensions)
            self._boxes[dimensions] = None if found is None else list(found)
        return self._boxes[dimensions]


def _meet(one: Box, two: Any) -> bool:
    for (low, high), (other_low, other_high) in zip(one, two, strict=True):
        if low > other_high or other_low > high:
            return False
    return True


class Index(Generic[K]):
    """Keys by what their subscriptions need."""

    def __init__(self, held: Mapping[K, Asking]) -> None:
        self.always: list[K] = []
        """who can name no need"""
        boxes: dict[tuple[str | None, tuple[str, ...]], dict[Any, list[tuple[Box, K]]]]
        boxes = defaultdict(lambda: defaultdict(list))
        for key, entry in held.items():
            needs = entry.needs
            if needs is None:
                self.always.append(key)
                continue
            for name, values, dimensions, box in needs:
                group = boxes[name, dimensions]
                for value in values if name is not None else (NOTHING,):
                    group[value].append((box, key))
        self.groups = {
            which: {value: _Grid(which[1], members) for value, members in group.items()}
            for which, group in boxes.items()
        }

    def candidates(self, item: Offer) -> Iterable[K]:
        """The keys of all that may accept an item."""
        found: list[Iterable[K]] = [self.always] if self.always else []
        for (name, dimensions), group in self.groups.items():
            grid = group.get(NOTHING if name is None else item.offered(name, ABSENT))
            if grid is not None:
                found += grid.meeting(item.boxes(dimensions) if dimensions else None)
        return chain.from_iterable(found)


class _Grid:
    """Boxes of one or two dimensions in cells; those without an end on one side in the order of the other."""

    def __init__(self, dimensions: tuple[str, ...], members: list[tuple[Box, Any]]) -> None:
        self.members = members
        self.wide: list[int] = []
        self.starts = array("q")
        """where in ``inside`` each cell begins, and where the last one ends: cells of a row follow each other"""
        self.inside: np.ndarray = np.empty(0, np.int64)
        """which members are in a cell"""
        self.ends: np.ndarray = np.empty((0, len(dimensions), 2))
        """the boxes of ``inside``, side by side: one look at memory for a row of cells"""
        self.axes: list[tuple[float, int, int]] = []
        """of each dimension: how long the side of a cell is, and the numbers of the first and the last"""
        self.across = 0
        """how many cells a row has"""
        self.above: list[tuple[float, int]] = []
        self.below: list[tuple[float, int]] = []
        if not dimensions:
            return
        intervals = chain.from_iterable(box for box, _ in members)
        flat = np.fromiter(chain.from_iterable(intervals), float, 2 * len(dimensions) * len(members))
        boxes = flat.reshape(len(members), len(dimensions), 2)
        bounded = np.isfinite(boxes).all(axis=(1, 2))
        for i in np.flatnonzero(~bounded).tolist():
            (low, high), *more = members[i][0]
            if not more and math.isfinite(low):
                self.above.append((low, i))
            elif not more and math.isfinite(high):
                self.below.append((high, i))
            else:
                self.wide.append(i)
        self.above.sort()
        self.below.sort()
        self._fill(np.flatnonzero(bounded), boxes[bounded])

    def _fill(self, which: np.ndarray, boxes: np.ndarray) -> None:
        """Put boxes into all the cells that they meet."""
        dimensions = boxes.shape[1]
        if not len(which):
            return
        lengths, span = (boxes[:, :, 1] - boxes[:, :, 0]).mean(axis=0), np.ptp(boxes, axis=(0, 2))
        # The mean length of the boxes, or what would leave one of them in a cell, if that is more.
        sizes = np.maximum(np.maximum(lengths, span / len(which) ** (1 / dimensions)), 1e-9)
        first, last = np.floor(boxes[:, :, 0] / sizes), np.floor(boxes[:, :, 1] / sizes)
        counts = (last - first + 1).clip(min=0).prod(axis=1)
        narrow = (counts <= WIDE) & (np.abs(boxes) / sizes[None, :, None] < 2**50).all(axis=(1, 2))
        self.wide += which[~narrow].tolist()
        which, counts = which[narrow], counts[narrow].astype(np.int64)
        if not len(which):
            return
        first, across = first[narrow].astype(np.int64), (last - first + 1)[narrow].astype(np.int64)
        lowest, highest = first.min(axis=0), (first + across - 1).max(axis=0)
        self.axes = list(zip(sizes.tolist(), lowest.tolist(), highest.tolist(), strict=True))
        held = (highest - lowest + 1).tolist()
        self.across = held[0]
        box = np.repeat(np.arange(len(which)), counts)
        nth = np.arange(len(box)) - np.repeat(np.cumsum(counts) - counts, counts)
        cells = first[box, 0] + nth % across[box, 0] - lowest[0]
        if dimensions == 2:
            cells += (first[box, 1] + nth // across[box, 0] - lowest[1]) * self.across
        order = np.argsort(cells, kind="stable")
        self.inside, self.ends = which[box[order]], boxes[narrow][box[order]]
        # There are hardly more cells than boxes: that is how long the sides of a cell are at least.
        ends = np.cumsum(np.bincount(cells, minlength=math.prod(held)))
        self.starts = array("q", [0, *ends.tolist()])

    def meeting(self, asked: list[Box] | None) -> list[Iterable[Any]]:
        """The members whose box meets one of those asked for; all of them, if it may be any.

        They are found one after the other: who only wants to know whether there is one stops at the first.
        """
        if asked is None:
            return [[key for _, key in self.members]]
        found: list[Iterable[Any]] = []
        for box in asked:
            if self.wide or self.above or self.below:
                found.append(_listed(box, [self.members[i] for i in self._outside(box)]))
            for start, end in self._runs(box):
                found.append(self._among(start, end, box))
        return found

    def _runs(self, box: Box) -> list[tuple[int, int]]:
        """Where in ``inside`` the members of the cells stand that a box meets: a run for each row, or one for many."""
        spans = []
        for (low, high), (size, first, last) in zip(box, self.axes, strict=False):
            low, high = low / size, high / size
            if not (low < last + 1 and high >= first):
                return []
            left = math.floor(low) - first if low > first else 0
            spans.append((left, math.floor(high) - first if high < last else last - first))
        if not spans:
            return []
        (left, right), (top, bottom) = spans if len(spans) == 2 else (*spans, (0, 0))
        starts = self.starts
        if top == bottom or bottom - top >= ROWS:
            runs = [(starts[top * self.across + left], starts[bottom * self.across + right + 1])]
        else:
            rows = [row * self.across for row in range(top, bottom + 1)]
            runs = [(starts[row + left], starts[row + right + 1]) for row in rows]
        return [(start, end) for start, end in runs if start < end]

    def _among(self, start: int, end: int, box: Box) -> Iterator[Any]:
        """The members of a run that meet a box."""
        members, some = self.members, min(start + SOME, end)
        for i, other in zip(self.inside[start:some].tolist(), self.ends[start:some].tolist(), strict=True):
            if _meet(box, other):
                yield members[i][1]
        if some < end:
            low, high = np.array(box).T
            ends = self.ends[some:end]
            meets = ((ends[:, :, 0] <= high) & (low <= ends[:, :, 1])).all(axis=1)
            yield from (members[i][1] for i in self.inside[some:end][meets].tolist())

    def _outside(self, box: Box) -> list[int]:
        """The members in no cell that may meet a box."""
        found = list(self.wide)
        if len(box) == 1:
            found += [i for _, i in self.above[: bisect_right(self.above, box[0][1], key=_first)]]
            found += [i for _, i in self.below[bisect_left(self.below, box[0][0], key=_first) :]]
        return found


def _listed(box: Box, members: list[tuple[Box, Any]]) -> Iterator[Any]:
    """Those whose box meets another one."""
    return (key for other, key in members if _meet(box, other))


def _first(pair: tuple[float, int]) -> float:
    return pair[0]


def grown(low: float, high: float) -> Interval:
    """A little more than needed, so that rounding loses nothing."""
    return low - abs(low) * 1e-9 - 1e-9, high + abs(high) * 1e-9 + 1e-9
