"""Alike: the pairs of clients whose regions have a value in common, in some dimension that is no position.

What overlaps, contains or is contained has a common value in every dimension of the space, since no extent is empty.
So any one dimension serves as the index of a space, and the one that leaves the fewest pairs is taken; an index over
all of them together would have to hold each combination (Subject Spaces, 2.2).

A finite set is one entry for each of its values, an interval one entry; entries of the two sides that meet are found
in sorted ends. A region that does not constrain the dimension, or leaves all but some values, may meet anybody. Ends
count as closed, and what a client ever said as said at all times: an index may only prune.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from portion import Interval

from workbench.engines.extents import Coded, Column, Numbers
from workbench.engines.relating import Regions
from workbench.engines.streams import Stream
from workbench.model.extents import ValueSet
from workbench.model.relations import Containment, Enclosure, Fuzzy, Overlap, Relation, Within
from workbench.model.spaces import Position, Space

MOST = 100_000_000
"""so many pairs are held at once"""


def reach_of(relation: Relation) -> float | None:
    """How far apart two values can be, in each dimension, for a relation to hold; None where that says nothing.

    >>> reach_of(Overlap()), reach_of(Within(5.0)), reach_of(Fuzzy(0.5))
    (0.0, 5.0, 0.0)
    """
    match relation:
        case Within(distance=distance):
            return float(distance)
        case Containment() | Enclosure() | Overlap():
            return 0.0
        case Fuzzy(function=None, degree=degree) if degree > 0:
            return 0.0
    return None


class Entries(NamedTuple):
    """What clients say of a dimension: intervals, both ends closed, and who may say anything."""

    client: np.ndarray
    low: np.ndarray
    high: np.ndarray
    anything: np.ndarray


def _entries(column: Column, owner: np.ndarray, valid: np.ndarray, numbers: dict[Any, int]) -> Entries | None:
    """None for a column that has neither sets nor numbers; values of sets are numbered as they come."""
    said, free = valid & column.present, valid & ~column.present
    if isinstance(column, Numbers):
        rows = pd.DataFrame({"client": owner, "low": column.lower, "high": column.upper})[said].drop_duplicates()
        client, low_, high_ = (rows[name].to_numpy() for name in rows)
        return Entries(client, low_, high_, np.unique(owner[free]))
    if not isinstance(column, Coded):
        return None
    met = pd.DataFrame({"client": owner, "code": column.codes})[said].drop_duplicates()
    low: dict[int, list[float]] = {}
    high: dict[int, list[float]] = {}
    for code in met["code"].unique().tolist():
        match column.extents[code]:
            case ValueSet(values=values, complement=False):
                low[code] = high[code] = [float(numbers.setdefault(value, len(numbers))) for value in values]
            case Interval() as interval:
                # Whole numbers may be larger than floats can tell apart.
                low[code] = [np.nextafter(float(interval.lower), -np.inf)]
                high[code] = [np.nextafter(float(interval.upper), np.inf)]
            case ValueSet():
                pass
            case _:
                return None
    some = met["code"].isin(low)
    client, code = met["client"][some].to_numpy(), met["code"][some].tolist()
    return Entries(
        np.repeat(client, [len(low[c]) for c in code]),
        np.array([v for c in code for v in low[c]], np.float64),
        np.array([v for c in code for v in high[c]], np.float64),
        np.unique(np.concatenate([owner[free], met["client"][~some].to_numpy()])),
    )


@dataclass(frozen=True)
class Common:
    """The pairs of clients that have a value in common, not yet written down."""

    first: Entries
    second: Entries
    clients: tuple[int, int]

    def __post_init__(self) -> None:
        for name, side in (("first", self.first), ("second", self.second)):
            order = np.argsort(side.low, kind="stable")
            made = Entries(side.client[order], side.low[order], side.high[order], side.anything)
            object.__setattr__(self, name, made)

    def ranges(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each entry those of the other side that begin in it; where both begin at once, the first one's count."""
        a, b = self.first, self.second
        return [
            (np.searchsorted(b.low, a.low, "left"), np.searchsorted(b.low, a.high, "right")),
            (np.searchsorted(a.low, b.low, "right"), np.searchsorted(a.low, b.high, "right")),
        ]

    @property
    def count(self) -> int:
        """How many pairs there are at most."""
        free = len(self.first.anything) * self.clients[1] + len(self.second.anything) * self.clients[0]
        return free + sum(int((to - begin).sum()) for begin, to in self.ranges())

    def keys(self) -> np.ndarray:
        """Client of the first * number of the second + client of it, in order."""
        a, b = self.first, self.second
        (i, j), (n, m) = (_spread(begin, to) for begin, to in self.ranges())
        width = self.clients[1]
        parts = [
            a.client[i] * width + b.client[j],
            a.client[m] * width + b.client[n],
            (a.anything[:, None] * width + np.arange(width)).ravel(),
            (np.arange(self.clients[0])[:, None] * width + b.anything).ravel(),
        ]
        return pd.unique(np.sort(np.concatenate(parts)))


def _spread(begin: np.ndarray, to: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each row beside each number of its range.

    >>> _spread(np.array([0, 5]), np.array([2, 6]))
    (array([0, 0, 1]), array([0, 1, 5]))
    """
    many = to - begin
    row = np.repeat(np.arange(len(many)), many)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many) + begin[row]


def common(
    first: Stream, one: Column, valid: np.ndarray, second: Stream, two: Column, also: np.ndarray, reach: float = 0.0
) -> Common | None:
    """The pairs that two columns of one dimension leave; None where these are no values that can be looked up."""
    numbers: dict[Any, int] = {}
    a = _entries(one, first.owner, valid, numbers)
    b = _entries(two, second.owner, also, numbers)
    if a is None or b is None:
        return None
    if reach:
        slack = reach + 1e-9 * (np.abs(a.low) + np.abs(a.high) + reach)
        a = a._replace(low=a.low - slack, high=a.high + slack)
    return Common(a, b, (first.clients, second.clients))


def near(
    relation: Relation, space: Space, first: Stream, one: Regions, second: Stream, two: Regions
) -> np.ndarray | None:
    """The pairs that can match in a space, by the dimension that leaves the fewest; None where none spares any."""
    reach = reach_of(relation)
    if reach is None:
        return None
    valid, also = one.valid_in(space), two.valid_in(space)
    return fewest(
        [
            common(first, one.column(d, kind), valid, second, two.column(d, kind), also, reach)
            for d, kind in space.dimensions
            if not isinstance(kind, Position)
        ]
    )


def fewest(found: list[Common | None]) -> np.ndarray | None:
    """The keys of whichever leaves the fewest pairs; None where that is nearly all of them."""
    helpful = [one for one in found if one is not None and one.count < min(MOST, one.clients[0] * one.clients[1])]
    return min(helpful, key=lambda one: one.count).keys() if helpful else None
