"""Candidates: the pairs of clients that can match at all, found with an index over one of the two sides.

For a relation in a space with a position the two shapes must come near each other: their boxes, grown by the radii
and the distance asked for, share a cell of a grid. The grid hashes cells (and slices of time, where both sides move),
so that it is as small as the boxes that it holds. Boxes are grown a little more than needed: an index may only prune.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from workbench.engines import approaching, kernels
from workbench.engines.extents import Positions
from workbench.engines.intervals import FOREVER
from workbench.engines.streams import Stream
from workbench.geometry import EARTH_RADIUS_M, RADIAN, WGS84
from workbench.model.relations import Containment, Enclosure, Fuzzy, Overlap, Relation, Within
from workbench.model.spaces import Position, Space

VERSIONS_AT_ONCE = 2_000_000
MOVING_AT_ONCE = 16_000_000
"""of which few meet, while the other side is looked at anew each time"""
PAIRS_AT_ONCE = 8_000_000
MOVING = 4
"""A side with more versions a client than this moves."""


def reach_of(relation: Relation) -> float | None:
    """How far two positions can be apart for a relation to hold; None where that says nothing.

    >>> reach_of(Within(500.0)), reach_of(Overlap())
    (500.0, 0.0)
    """
    match relation:
        case Within(distance=distance):
            return float(distance)
        case Containment() | Enclosure() | Overlap() | Fuzzy(function=None):
            return 0.0
    return None


def position_dimension(space: Space) -> str | None:
    """The dimension of a space that is a position."""
    return next((label for label, kind in space.dimensions if isinstance(kind, Position)), None)


def boxes(column: Positions, reach: float, metric: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """x_min, x_max, y_min, y_max of shapes grown by a reach."""
    s = column.shapes
    x_min, x_max, y_min, y_max = s.x.copy(), s.x.copy(), s.y.copy(), s.y.copy()
    long = np.flatnonzero((s.kind == kernels.LINE) | (s.kind == kernels.AREA))
    if len(long):
        ends = s.rings[s.first]
        sides = [(op.reduceat(v, ends[:-1])) for v in (s.xs, s.ys) for op in (np.minimum, np.maximum)]
        for made, side in zip((x_min, x_max, y_min, y_max), sides, strict=True):
            made[long] = side[s.chain[long]]
    grow = s.radius + reach
    if metric == WGS84:
        up = grow / (EARTH_RADIUS_M * RADIAN) * (1 + 1e-9) + 1e-9
        y_min, y_max = y_min - up, y_max + up
        steep = np.maximum(np.abs(y_min), np.abs(y_max))
        with np.errstate(divide="ignore", over="ignore"):
            aside = up / np.cos(np.minimum(steep, 90.0) * RADIAN) + 1e-9
        x_min, x_max = x_min - aside, x_max + aside
        # Near a pole, or across the date line, any longitude may be near.
        round_ = (steep >= 89.9) | (x_min <= -180.0) | (x_max >= 180.0)
        return np.where(round_, -180.0, x_min), np.where(round_, 180.0, x_max), y_min, y_max
    more = grow + 1e-9 * (np.abs(s.x) + np.abs(s.y) + grow) + 1e-9
    return x_min - more, x_max + more, y_min - more, y_max + more


def meetings(
    first: Stream, one: Positions, asked: np.ndarray, second: Stream, two: Positions, also: np.ndarray,
    reach: float, metric: str, until: int,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The versions asked for of two streams whose boxes meet; those without a position meet nobody here."""
    sides = [
        (stream, np.flatnonzero(known & (column.shapes.kind != kernels.ANYWHERE)), column, far)
        for stream, column, known, far in ((first, one, asked, 0.0), (second, two, also, reach))
    ]
    if all(len(chosen) for _, chosen, _, _ in sides):
        return _approached(sides, reach, metric, until) or _met(sides, metric, until)
    return np.empty(0, np.int64), np.empty(0, np.int64)


def anywhere(stream: Stream, column: Positions, valid: np.ndarray) -> np.ndarray:
    """The clients that at some time are valid without a position: an index cannot place them."""
    return np.unique(stream.owner[valid & (column.shapes.kind == kernels.ANYWHERE)])


def near(
    first: Stream, one: Positions, valid: np.ndarray, second: Stream, two: Positions, also: np.ndarray,
    reach: float, metric: str, until: int,
) -> np.ndarray:  # fmt: skip
    """Which clients come near each other: ordered keys, client of the first * number of the second + client of it."""
    width = second.clients
    keys = [
        (anywhere(first, one, valid)[:, None] * width + np.arange(width)[None, :]).ravel(),
        (np.arange(first.clients)[:, None] * width + anywhere(second, two, also)[None, :]).ravel(),
    ]
    for part, also_ in parts(first, valid, second, also):
        i, j = meetings(first, one, part, second, two, also_, reach, metric, until)
        keys.append(np.unique(first.owner[i] * width + second.owner[j]))
    return np.unique(np.concatenate(keys).astype(np.int64))


def parts(
    first: Stream, valid: np.ndarray, second: Stream, also: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The versions of two streams, the longer one some whole clients at a time."""
    turned = len(second.start) > len(first.start)
    long, asked = (second, also) if turned else (first, valid)
    moving = all(len(stream.start) > MOVING * stream.clients for stream in (first, second))
    at_once = MOVING_AT_ONCE if moving else VERSIONS_AT_ONCE
    turn = np.flatnonzero(np.diff(long.offsets[1:] // at_once)) + 1
    bounds = [0, *long.offsets[turn], len(long.start)]
    for low, high in pairwise(bounds):
        part = asked.copy()
        part[:low] = False
        part[high:] = False
        yield (valid, part) if turned else (part, also)


def _approached(
    sides: list, reach: float, metric: str, until: int  # type: ignore[type-arg]
) -> tuple[np.ndarray, np.ndarray] | None:
    """The meetings of two sides of points that both move; None for others."""
    begin, length = _slices(sides, until)
    if length > until - begin or any((c.shapes.kind[chosen] != kernels.POINT).any() for _, chosen, c, _ in sides):
        return None
    one, two = (_points(stream, column.shapes, chosen) for stream, chosen, column, _ in sides)
    cells = approaching.cells_of(one, two, reach, metric, begin, length, until)
    if cells is None:
        return None
    apart = sides[0][0].population.table == sides[1][0].population.table
    i, j = approaching.approach(one, two, cells, reach, apart, metric)
    return sides[0][1][i], sides[1][1][j]


def _points(stream: Stream, s: kernels.Shapes, chosen: np.ndarray) -> approaching.Points:
    when = (stream.start[chosen], stream.end[chosen], stream.owner[chosen])
    return approaching.Points(s.x[chosen], s.y[chosen], s.z[chosen], s.radius[chosen], *when)


def _met(sides: list, metric: str, until: int) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    grown = [np.stack(boxes(column.take(chosen), far, metric)) for _, chosen, column, far in sides]
    # The side with fewer versions is indexed, the other one asks.
    few = 0 if len(sides[0][1]) < len(sides[1][1]) else 1
    x0, y0 = grown[few][0].min(), grown[few][2].min()
    sizes = []
    for low, high in ((0, 1), (2, 3)):
        widths = [g[high] - g[low] for g in grown]
        span = grown[few][high].max() - grown[few][low].min()
        fair = span / max(1.0, math.sqrt(len(sides[few][1])))
        least = (widths[0].mean() + widths[1].mean()) / 2
        # Cells are counted in 32 bits, however far apart small things lie.
        sizes.append(max(min(fair, 4 * least), least, max(w.max() for w in widths) / 64, span / 2**30, 1e-12))
    top = [int((grown[few][1].max() - x0) / sizes[0]), int((grown[few][3].max() - y0) / sizes[1])]
    slices = _slices(sides, until)
    cells = []
    for (stream, chosen, _, _), g in zip(sides, grown, strict=True):
        ranges = [
            np.clip(np.floor((g[k] - (x0 if k < 2 else y0)) / sizes[k // 2]), -1, top[k // 2] + 1).astype(np.int32)
            for k in range(4)
        ]
        # What lies wholly outside the index asks for nothing; the rest only inside it.
        outside = (ranges[1] < 0) | (ranges[3] < 0) | (ranges[0] > top[0]) | (ranges[2] > top[1])
        ranges = [np.clip(r, 0, top[k // 2]) for k, r in enumerate(ranges)]
        ranges[1] = np.where(outside, ranges[0] - 1, ranges[1])
        x_min, x_max, y_min, y_max = ranges
        cells.append(kernels.Boxes(x_min, x_max, y_min, y_max, *_sliced(stream, chosen, slices, until)))
    index, probes = cells[few], cells[1 - few]
    mask = 2 ** max(4, math.ceil(math.log2(kernels._entries(index) + 1))) - 1
    asking, answering = kernels.met(probes, index, *kernels.buckets(index, mask), mask)
    pair = (answering, asking) if few == 0 else (asking, answering)
    return sides[0][1][pair[0]], sides[1][1][pair[1]]


def _slices(sides: list, until: int) -> tuple[int, int]:  # type: ignore[type-arg]
    """The start and the length of slices of time; one slice where a side does not move."""
    begin = min(int(stream.start[chosen].min()) for stream, chosen, _, _ in sides)
    whole = max(1, until - begin + 1)
    if any(len(chosen) <= MOVING * stream.clients for stream, chosen, _, _ in sides):
        return begin, whole
    versions = min(len(chosen) / stream.clients for stream, chosen, _, _ in sides)
    return begin, max(1, math.ceil(whole / min(versions, 2048.0)))


def _sliced(
    stream: Stream, chosen: np.ndarray, slices: tuple[int, int], until: int
) -> tuple[np.ndarray, np.ndarray]:
    begin, length = slices
    last = np.minimum(stream.end[chosen], FOREVER) - 1
    first = np.minimum(stream.start[chosen], until)
    low, high = (first - begin) // length, (np.clip(last, first, until) - begin) // length
    return low.astype(np.int32), high.astype(np.int32)


def everybody(first: int, second: int, at_once: int = PAIRS_AT_ONCE) -> Iterator[np.ndarray]:
    """All pairs, so many at a time.

    >>> [part.tolist() for part in everybody(3, 2, at_once=4)]
    [[0, 1, 2, 3], [4, 5]]
    """
    for begin in range(0, first * second, at_once):
        yield np.arange(begin, min(begin + at_once, first * second), dtype=np.int64)
