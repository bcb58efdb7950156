"""The direct way: from Parquet columns to timelines, without a table in between.

For the commonest shape of a scenario, mobiles as points against places that stay where they are, with one spatial
match as the whole filter (`proximity`). The fixes are read row group by row group; for each mobile a short list says
which places it is in and since when, and a fix only changes that list. A grid over the places tells which can hold;
where a cell lies wholly inside a place, nothing needs to be computed.

It asks only that the instants of each mobile rise along the file: data in the order of time will do, and so will data
sorted by mobile. `run` gives None for everything else (other filters, attributes that change, removals, repeated
instants, nulls, anything that would be an error): then the general way is taken, which knows all the rules.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workbench import tables
from workbench.compiling import callee, compiled, read_only
from workbench.engines import candidates, kernels
from workbench.engines.extents import Positions
from workbench.engines.growing import longer
from workbench.engines.kernels import (
    area_holds,
    geodesic_distance_m,
    geodesic_edges_haversine,
    haversine,
    haversine_bound,
    in_area,
    planar_edges_squared,
    planar_within,
)
from workbench.engines.local import table_of
from workbench.engines.streams import Stream, streams
from workbench.geometry import WGS84
from workbench.model.columns import MISSING, Column
from workbench.model.filters import Everything, Match, Var
from workbench.model.pubsub import PUBLICATION, Population
from workbench.model.relations import Containment, Enclosure, Overlap, Within
from workbench.model.scenario import Scenario
from workbench.model.spaces import Position

SLOTS = 64
"""In how many places at once a mobile can be here."""
MOST_MOBILES = 4_000_000
MOST_CELLS = 4_000_000
GOOD, UNUSUAL = 0, 1


# -- which scenarios -----------------------------------------------------------------------------------------


class Shape(NamedTuple):
    """Who moves, who stays, and how near they have to be."""

    moving: Population
    staying: Population
    region: str
    """of those who stay"""
    reach: float


def shape_of(scenario: Scenario) -> Shape | None:
    """The parts of a scenario that can be replayed directly; None for all others.

    >>> from workbench.scenarios.proximity import scenario
    >>> shape_of(scenario(300)).region
    'reach'
    """
    if len(scenario.publications) != 1 or len(scenario.subscriptions) != 1:
        return None
    sides = {p.rows: p for p in scenario.populations}
    if set(sides) != {"fixes", "places"}:
        return None
    moving, staying = sides["fixes"], sides["places"]
    if any(p.profiles or p.stay is not None for p in (moving, staying)):
        return None
    own, other = (moving, staying) if isinstance(staying.filter, Everything) else (staying, moving)
    match = own.filter
    if not isinstance(match, Match) or not isinstance(other.filter, Everything):
        return None
    bindings = scenario.bindings(match, other)
    if len(bindings) != 1 or not (isinstance(match.left, Var) and isinstance(match.right, Var)):
        return None
    if {match.left.side, match.right.side} != {"own", "other"}:
        return None
    names = {}
    for term in (match.left, match.right):
        owner = own if term.side == "own" else other
        names[owner.name] = (term is match.left, term.name if term.side == "own" else bindings[0][term.name])
    first, region = names[moving.name]
    reach = _reach(match, first)
    (dimension, kind), *more = match.space.dimensions
    given = dict(dict(moving.regions)[region].constraints).get(dimension)
    if reach is None or more or not isinstance(kind, Position):
        return None
    if not (isinstance(given, Column) and given.name == "position" and given.default is MISSING):
        return None
    return Shape(moving, staying, names[staying.name][1], reach)


def _reach(match: Match, first: bool) -> float | None:
    """How near a point has to come: for a point, being enclosed by a shape and overlapping it are one thing."""
    match match.relation:
        case Within(distance=distance):
            return float(distance)
        case Overlap():
            return 0.0
        case Enclosure() if first:
            return 0.0
        case Containment() if not first:
            return 0.0
    return None


# -- the grid over places ------------------------------------------------------------------------------------


class Grid(NamedTuple):
    """The places by cell: which can hold a point there, and which hold every point there."""

    x0: float
    y0: float
    a_cell_x: float
    a_cell_y: float
    columns: int
    rows: int
    offsets: np.ndarray
    entries: np.ndarray
    """four times the number of a place, and 0 where a disc, 1 where another shape has to be asked, 2 where all is in"""


@callee
def _disc_and_cell(x, y, total, x_low, x_high, y_low, y_high, geodesic):  # type: ignore[no-untyped-def]
    """0 where no point of a cell is in a disc, 2 where all are, 1 where that has to be computed."""
    slack = 1e-9 * (abs(x) + abs(y) + total + 1.0)
    if geodesic:
        middle_x, middle_y = (x_low + x_high) / 2, (y_low + y_high) / 2
        degree = geodesic_distance_m(0.0, 0.0, 0.0, 1.0)
        across = degree * math.hypot(x_high - x_low, y_high - y_low) / 2 + slack + 1e-3
        apart = geodesic_distance_m(x, y, middle_x, middle_y)
        return 0 if apart - across > total else 2 if apart + across < total else 1
    near_x, near_y = max(0.0, x_low - x, x - x_high), max(0.0, y_low - y, y - y_high)
    if math.hypot(near_x, near_y) > total + slack:
        return 0
    far = math.hypot(max(abs(x_low - x), abs(x_high - x)), max(abs(y_low - y), abs(y_high - y)))
    return 2 if far < total - slack else 1


@callee
def _edge_touches(ax, ay, bx, by, x_low, x_high, y_low, y_high):  # type: ignore[no-untyped-def]
    """Whether an edge may touch a cell: their boxes meet, and the cell's corners lie on both sides of the line."""
    if max(ax, bx) < x_low or min(ax, bx) > x_high or max(ay, by) < y_low or min(ay, by) > y_high:
        return False
    dx, dy = bx - ax, by - ay
    left = right = False
    for px in (x_low, x_high):
        for py in (y_low, y_high):
            cross = dx * (py - ay) - dy * (px - ax)
            bound = 1e-9 * (abs(dx) * (abs(py) + abs(ay)) + abs(dy) * (abs(px) + abs(ax)))
            left |= cross >= -bound
            right |= cross <= bound
    return left and right


@callee
def _area_and_cell(s, j, x_low, x_high, y_low, y_high):  # type: ignore[no-untyped-def]
    c = s.chain[j]
    for ring in range(s.first[c], s.first[c + 1]):
        for v in range(s.rings[ring], s.rings[ring + 1] - 1):
            if _edge_touches(s.xs[v], s.ys[v], s.xs[v + 1], s.ys[v + 1], x_low, x_high, y_low, y_high):
                return 1
    middle_x, middle_y = (x_low + x_high) / 2, (y_low + y_high) / 2
    return 2 if area_holds(s, j, middle_x, middle_y) else 0


@compiled
def _cells(s, totals, box, x0, y0, ax, ay, columns, rows, geodesic):  # type: ignore[no-untyped-def]
    offsets = np.zeros(columns * rows + 1, np.int32)
    entries = np.empty(0, np.int32)
    for turn in range(2):
        # First they are counted, then put in their places: the lists of cells are then in the order of the items.
        if turn == 1:
            for cell in range(columns * rows):
                offsets[cell + 1] += offsets[cell]
            entries = np.empty(offsets[-1], np.int32)
        fill = offsets.copy()
        for j in range(len(totals)):
            # The boxes begin at x0, y0 or after, so that cutting off the fraction is rounding down.
            left, right = int((box[0, j] - x0) / ax), int((box[1, j] - x0) / ax)
            lower, upper = int((box[2, j] - y0) / ay), int((box[3, j] - y0) / ay)
            for cx in range(left, min(columns - 1, right) + 1):
                for cy in range(lower, min(rows - 1, upper) + 1):
                    slack_x, slack_y = 1e-9 * (abs(x0) + ax * columns), 1e-9 * (abs(y0) + ay * rows)
                    x_low, x_high = x0 + cx * ax - slack_x, x0 + (cx + 1) * ax + slack_x
                    y_low, y_high = y0 + cy * ay - slack_y, y0 + (cy + 1) * ay + slack_y
                    lies = 1
                    if s.kind[j] == 0:
                        lies = _disc_and_cell(s.x[j], s.y[j], totals[j], x_low, x_high, y_low, y_high, geodesic)
                    elif s.kind[j] == 2 and totals[j] == 0.0:
                        lies = _area_and_cell(s, j, x_low, x_high, y_low, y_high)
                    if lies == 0:
                        continue
                    cell = cy * columns + cx
                    if turn == 0:
                        offsets[cell + 1] += 1
                    else:
                        entries[fill[cell]] = 4 * j + (2 if lies == 2 else 1 if s.kind[j] else 0)
                        fill[cell] += 1
    return offsets, entries


def grid_of(column: Positions, totals: np.ndarray, reach: float, metric: str) -> Grid:
    """A grid whose cells are a fraction of a place."""
    box = np.stack(candidates.boxes(column, reach, metric))
    x0, y0 = box[0].min(), box[2].min()
    width, height = box[1].max() - x0, box[3].max() - y0
    share = 4.0 if len(totals) <= 20_000 else 2.0
    ax, ay = (max(float((box[k + 1] - box[k]).mean()) / share, 1e-9) for k in (0, 2))
    grow = max(1.0, math.sqrt(width / ax * height / ay / MOST_CELLS))
    ax, ay = ax * grow, ay * grow
    columns, rows = int(width / ax) + 1, int(height / ay) + 1
    found = _cells(column.shapes, totals, box, x0, y0, ax, ay, columns, rows, metric == WGS84)
    return Grid(x0, y0, ax, ay, columns, rows, *found)


# -- crossings -----------------------------------------------------------------------------------------------


@callee
def _by_mobile(mobile, t, x, y, base, share, shares, rows):  # type: ignore[no-untyped-def]
    """The fixes of a share of the mobiles, mobile by mobile: who they are, where each one's begin, and the fixes.

    ``shares`` is a power of two. ``rows`` has a zero for each mobile, before and after.
    """
    whose = np.empty(len(t), np.int64)
    many, runs, last = 0, 0, np.int64(-1)
    for r in range(len(t)):
        m = mobile[r] - base
        if m & (shares - 1) != share:
            continue
        if rows[m] == 0:
            whose[many] = m
            many += 1
        if m != last:
            runs += 1
            last = m
        rows[m] += 1
    first = np.zeros(many + 1, np.int64)
    for k in range(many):
        first[k + 1] = first[k] + rows[whose[k]]
        rows[whose[k]] = first[k]
    if runs == many and first[many] == len(t):
        for k in range(many):
            rows[whose[k]] = 0
        return whose[:many], first, t, x, y
    own_t, own_x, own_y = np.empty(first[many], np.int64), np.empty(first[many]), np.empty(first[many])
    for r in range(len(t)):
        m = mobile[r] - base
        if m & (shares - 1) == share:
            at = rows[m]
            own_t[at], own_x[at], own_y[at] = t[r], x[r], y[r]
            rows[m] = at + 1
    for k in range(many):
        rows[whose[k]] = 0
    return whose[:many], first, own_t, own_x, own_y


@compiled
def crossings(  # type: ignore[no-untyped-def]
    mobile, t, x, y, base, until, share, shares, room, grid, s, discs, geodesic,
    latest, count, inside, since, rows,
):  # fmt: skip
    """Fixes in order: the lists of places that each mobile is in are kept up, and what ends is given back.

    One of several shares of the mobiles, so that shares can run side by side. Each mobile is followed by itself: its
    steps are short, so that what it needs next is at hand. ``room`` is how many ends are expected.
    """
    ended_place, ended_mobile = np.empty(room, np.int32), np.empty(room, np.int32)
    ended_tau, ended_pi = np.empty(room, np.int64), np.empty(room, np.int64)
    nothing = (ended_place[:0], ended_mobile[:0], ended_tau[:0], ended_pi[:0])
    n = 0
    found, held = np.empty(65, np.int32), np.empty(64, np.int32)
    starts, begun = np.empty(64, np.int64), np.empty(64, np.int64)
    offsets, entries = grid.offsets, grid.entries
    x0, y0, ax, ay, columns, height_ = grid.x0, grid.y0, grid.a_cell_x, grid.a_cell_y, grid.columns, grid.rows
    kind, chain = s.kind, s.chain
    xs, ys, rings, first_ring = s.xs, s.ys, s.rings, s.first
    low_y, high_y, height, slab, slab_offsets, edges = s.slabs
    whose, first, t, x, y = _by_mobile(mobile, t, x, y, base, share, shares, rows)
    for one in range(len(whose)):
        m = whose[one]
        was, last = count[m], latest[m]
        for i in range(was):
            held[i], begun[i] = inside[m, i], since[m, i]
        for r in range(first[one], first[one + 1]):
            px, py, now = x[r], y[r], t[r]
            if geodesic:
                if not (abs(px) <= 180.0 and abs(py) <= 90.0):
                    return 1, nothing
            elif not (abs(px) <= 1e300 and abs(py) <= 1e300):
                return 1, nothing
            if now <= last:
                return 1, nothing
            last = now
            if now > until:
                continue
            low = high = 0
            fx, fy = (px - x0) / ax, (py - y0) / ay
            if 0.0 <= fx < columns and 0.0 <= fy < height_:
                cell = int(fy) * columns + int(fx)
                low, high = offsets[cell], offsets[cell + 1]
            if low == high and was == 0:
                continue
            k = 0
            for e in range(low, high):
                # Nobody can foresee which ones hold: each is written down, and counts if it holds.
                j, lies, holds = entries[e] >> 2, entries[e] & 3, True
                if lies == 0:
                    if geodesic:
                        holds = haversine(discs[j, 0], discs[j, 1], px, py) <= discs[j, 3]
                    else:
                        holds = planar_within(discs[j, 0], discs[j, 1], discs[j, 2], px, py, 0.0, discs[j, 3])
                elif lies == 1:
                    c = chain[j]
                    a, b = first_ring[c], first_ring[c + 1]
                    holds = kind[j] == 2 and in_area(px, py, c, low_y, high_y, height, slab, slab_offsets, edges)
                    if not holds and not (kind[j] == 2 and discs[j, 3] == 0.0):
                        if geodesic:
                            holds = geodesic_edges_haversine(px, py, xs, ys, rings, a, b) <= discs[j, 3]
                        else:
                            holds = planar_edges_squared(px, py, xs, ys, rings, a, b) <= discs[j, 3] * discs[j, 3]
                found[k] = j
                k += holds
                if k > 64:
                    return 1, nothing
            if n + was > len(ended_pi):
                room = 2 * len(ended_pi) + 64
                ended_place, ended_mobile = longer(ended_place, room), longer(ended_mobile, room)
                ended_tau, ended_pi = longer(ended_tau, room), longer(ended_pi, room)
            # Both lists are in order: what stays keeps its beginning, what is passed over has ended.
            i = 0
            for h in range(k + 1):
                while i < was and (h == k or held[i] < found[h]):
                    ended_place[n], ended_mobile[n], ended_tau[n], ended_pi[n] = held[i], m, begun[i], now
                    n += 1
                    i += 1
                if h < k:
                    stays = i < was and held[i] == found[h]
                    starts[h] = begun[i] if stays else now
                    i += stays
            for h in range(k):
                held[h], begun[h] = found[h], starts[h]
            was = k
        count[m], latest[m] = was, last
        for i in range(was):
            inside[m, i], since[m, i] = held[i], begun[i]
    return 0, (ended_place[:n], ended_mobile[:n], ended_tau[:n], ended_pi[:n])


def _share(arguments: tuple[Any, ...]) -> tuple[int, tuple[np.ndarray, ...]]:
    return crossings(*arguments)  # type: ignore[no-any-return]


class Unusual(Exception):
    """Data that the general way has to look at."""


class Instants:
    """How many instants there were, and the last one."""

    def __init__(self, until: int | None) -> None:
        self.given = until
        self.until: int = np.iinfo(np.int64).max if until is None else until
        self.last = np.iinfo(np.int64).min
        self.seen: list[np.ndarray] = []

    def add(self, t: np.ndarray) -> None:
        t = t[t <= self.until] if len(t) and t.max() > self.until else t
        if not len(t):
            return
        self.seen.append(_distinct(t))
        self.last = max(self.last, int(self.seen[-1].max()))

    @property
    def end(self) -> int:
        """Where a replay ends."""
        return self.last if self.given is None else self.given

    def count(self) -> int:
        return len(_distinct(np.concatenate(self.seen))) if self.seen else 0


def _distinct(t: np.ndarray) -> np.ndarray:
    """Instants, each once: marked where they do not lie far apart, which is faster than to look each of them up."""
    if not np.any(t[1:] < t[:-1]):
        return t[np.append(True, t[1:] > t[:-1])]
    low, high = int(t.min()), int(t.max())
    if high - low > 16 * len(t):
        return pd.unique(t)
    marks = np.zeros(high - low + 1, bool)
    marks[t - low] = True
    return np.flatnonzero(marks) + low


class Inside(NamedTuple):
    """Which places each mobile is in, and since when."""

    latest: np.ndarray
    held: np.ndarray
    places: np.ndarray
    since: np.ndarray
    rows: np.ndarray
    """a zero each, to count with"""

    @staticmethod
    def of(mobiles: int) -> Inside:
        return Inside(
            np.full(mobiles, np.iinfo(np.int64).min),
            np.zeros(mobiles, np.int32),
            np.zeros((mobiles, SLOTS), np.int32),
            np.zeros((mobiles, SLOTS), np.int64),
            np.zeros(mobiles, np.int32),
        )

    def grown(self, mobiles: int) -> Inside:
        """Room for more mobiles."""
        new = Inside.of(mobiles)
        size = len(self.held)
        for mine, yours in zip(new, self, strict=True):
            mine[:size] = yours
        return new


class Batch(NamedTuple):
    """Some fixes as arrays; mobiles as numbers."""

    mobile: np.ndarray
    t: np.ndarray
    x: np.ndarray
    y: np.ndarray


@dataclass
class Fixes:
    """Fixes in Parquet files, row group by row group."""

    files: list[pq.ParquetFile]
    coordinates: tuple[str, str]
    coded: bool
    """whether mobiles are numbered here: text, or numbers that lie far apart"""
    ids: list[Any] = field(default_factory=list)
    """of mobiles that are numbered here, by their numbers"""
    known: dict[Any, int] = field(default_factory=dict)
    base: int = 0
    mobiles: int = 0
    """how many numbers of mobiles there are from the base on, where they keep their own"""

    @property
    def names(self) -> np.ndarray:
        """The mobiles by number."""
        if not self.coded:
            return np.arange(self.mobiles) + self.base
        whole = self.ids and isinstance(self.ids[0], int)
        return np.array(self.ids, dtype=np.int64 if whole else object)

    def batches(self) -> Iterator[Batch]:
        """All row groups, the next one read while one is looked at."""
        groups = [(file, n) for file in self.files for n in range(file.metadata.num_row_groups)]
        with ThreadPoolExecutor(1) as reader:
            ahead = [reader.submit(self._read, *group) for group in groups[:1]]
            for n in range(len(groups)):
                ahead += [reader.submit(self._read, *group) for group in groups[n + 1 : n + 2]]
                yield self._arrays(ahead.pop(0).result())

    def across(self) -> list[float]:
        """The ends of the first coordinate, from the files' statistics where they have them."""
        name, ends = self.coordinates[0], []
        for file in self.files:
            place = file.schema_arrow.names.index(name)
            for n in range(file.metadata.num_row_groups):
                known = file.metadata.row_group(n).column(place).statistics
                if known is not None and known.has_min_max:
                    ends += [known.min, known.max]
                else:
                    ends += _ends(file.read_row_group(n, columns=[name]))
        return ends

    def _read(self, file: pq.ParquetFile, group: int) -> pa.Table:
        try:
            return file.read_row_group(group, columns=["mobile", "t", *self.coordinates], use_threads=False)
        except (OSError, pa.ArrowInvalid):
            raise Unusual from None  # the general way names the file

    def _arrays(self, table: pa.Table) -> Batch:
        table = table.combine_chunks()
        columns = [table.column(name) for name in ("mobile", "t", *self.coordinates)]
        if any(column.null_count for column in columns):
            raise Unusual
        t = columns[1].cast(pa.int64())
        mobile = self._coded(columns[0]) if self.coded else columns[0].to_numpy()
        place = [column.to_numpy() for column in columns[2:]]
        return Batch(*map(read_only, (mobile.astype(np.int64, copy=False), t.to_numpy(), *place)))

    def _coded(self, column: pa.ChunkedArray) -> np.ndarray:
        encoded = column.combine_chunks()
        if not isinstance(encoded, pa.DictionaryArray):
            encoded = encoded.dictionary_encode()
        codes = []
        for name in encoded.dictionary.to_pylist():
            if name not in self.known:
                self.known[name] = len(self.known)
                self.ids.append(name)
            codes.append(self.known[name])
        return np.array(codes, np.int64)[encoded.indices.to_numpy()]


def _parquet(fixes: Any) -> Fixes | None:
    """Fixes whose columns are what they should be, in Parquet; None for others."""
    if not isinstance(fixes, str | Path):
        return None
    path = Path(fixes)
    if not path.exists() or not (path.is_dir() or path.suffix == ".parquet"):
        return None
    try:
        names = tables.parquet_files(path)
        if not names:
            return None
        schema = pq.read_schema(names[0])
        text = "mobile" in schema.names and _is_text(schema.field("mobile").type)
        files = [pq.ParquetFile(name, read_dictionary=["mobile"] if text else None) for name in names]
    except (OSError, ValueError, KeyError):
        return None
    plain = [f.schema.to_arrow_schema().remove_metadata() for f in files]
    coordinates = coordinates_of(schema)
    if coordinates is None or any(not found.equals(plain[0]) for found in plain):
        return None
    column = schema.names.index("mobile")
    ends = [
        file.metadata.row_group(n).column(column).statistics
        for file in files
        for n in range(file.metadata.num_row_groups)
    ]
    if text or not ends or any(e is None or not e.has_min_max for e in ends):
        return Fixes(files, coordinates, coded=True)
    return _numbered(Fixes(files, coordinates, coded=False), min(e.min for e in ends), max(e.max for e in ends))


def _numbered(found: Fixes, low: int, high: int) -> Fixes:
    """Mobiles keep their numbers, unless these are too far apart for a table of all of them."""
    found.coded = high - low >= MOST_MOBILES
    if not found.coded:
        found.base, found.mobiles = low, high - low + 1
    return found


class Gathered(Fixes):
    """Fixes that are in memory already."""

    def __init__(self, tables_: list[pa.Table], coordinates: tuple[str, str], coded: bool) -> None:
        super().__init__([], coordinates, coded)
        self.tables = tables_

    def batches(self) -> Iterator[Batch]:
        return (self._arrays(table) for table in self.tables)

    def across(self) -> list[float]:
        return [end for table in self.tables for end in _ends(table.select([self.coordinates[0]]))]


def gathered(given: list[pa.Table]) -> Fixes | None:
    """Fixes in memory as a source for a direct replay; None where their columns are not what they should be."""
    given = [table for table in given if table.num_rows]
    coordinates = coordinates_of(given[0].schema) if given else None
    if coordinates is None or any(not table.schema.equals(given[0].schema) for table in given):
        return None
    text = _is_text(given[0].schema.field("mobile").type)
    if text or any(table["mobile"].null_count for table in given):
        return Gathered(given, coordinates, coded=True)
    ends = [pc.min_max(table["mobile"]).as_py() for table in given]
    return _numbered(
        Gathered(given, coordinates, coded=False), min(e["min"] for e in ends), max(e["max"] for e in ends)
    )


def _ends(table: pa.Table) -> list[float]:
    found = pc.min_max(table.column(0)).as_py()
    return [found["min"] or 0.0, found["max"] or 0.0]


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string()) or pa.types.is_dictionary(kind)


def coordinates_of(schema: pa.Schema) -> tuple[str, str] | None:
    """The names of the coordinates, where all columns are of the usual types."""
    present = [names for names in tables.COORDINATES.values() if set(names) <= set(schema.names)]
    if len(present) != 1 or {"op", "z", "geometry"} & set(schema.names) or not {"mobile", "t"} <= set(schema.names):
        return None
    t, mobile = schema.field("t").type, schema.field("mobile").type
    if not (pa.types.is_signed_integer(t) or (pa.types.is_timestamp(t) and t.tz is not None)):
        return None
    if not (pa.types.is_signed_integer(mobile) or _is_text(mobile)):
        return None
    return present[0] if all(schema.field(name).type == pa.float64() for name in present[0]) else None


class Met(NamedTuple):
    """Who was in which place, from when to when: first what has ended, then what goes on."""

    place: np.ndarray
    mobile: np.ndarray
    tau: np.ndarray
    pi: np.ndarray
    """0 where it goes on"""
    ended: int

    @staticmethod
    def of(parts: list[tuple[np.ndarray, ...]], inside: Inside) -> Met:
        """From what has ended, part by part, and what goes on."""
        ended = sum(len(part[0]) for part in parts)
        place, mobile, tau, pi = (np.concatenate(columns) for columns in zip(*parts, _running(inside), strict=True))
        return Met(place, mobile, tau, pi, ended)


class Lines(NamedTuple):
    """Timelines in no order: numbers of publications and subscriptions, instants, why they ended; who is who."""

    publication: np.ndarray
    subscription: np.ndarray
    tau: np.ndarray
    pi: np.ndarray
    ended: np.ndarray
    """0 for unmatch, -1 where it goes on"""
    publications: np.ndarray
    subscriptions: np.ndarray

    @staticmethod
    def of(met: Met, role: str, stream: Stream, mobiles: np.ndarray) -> Lines:
        """From who met whom; ``role`` is that of the places."""
        place, mobile, tau, pi, ended = met
        ids = stream.ids
        if len(ids) and all(isinstance(i, int) and not isinstance(i, bool) for i in ids):
            ids = ids.astype(np.int64)
        why = np.repeat(np.array([0, -1], np.int8), [ended, len(tau) - ended])
        if role == PUBLICATION:
            return Lines(place, mobile, tau, pi, why, ids, mobiles)
        return Lines(mobile, place, tau, pi, why, mobiles, ids)


@dataclass(frozen=True)
class Outcome:
    """What a direct replay gives: timelines, what was counted, the clock and metric, and where it ended."""

    lines: Lines
    counts: dict[str, int]
    data: tables.Inputs
    until: int
    fixes: int
    """how many were read"""

    @cached_property
    def timelines(self) -> pd.DataFrame:
        """The declared table, in the declared order."""
        return table_of(list(self.lines[:5]), *self.lines[5:], self.data.clock)


@dataclass(frozen=True)
class Places:
    """Places prepared once, so that any part of the fixes can be replayed against them."""

    data: tables.Inputs
    """the places, and a fix for its columns"""
    stream: Stream

    def replay(self, given: Any, until: int | None, threads: int) -> Outcome | None:
        """The timelines of a Parquet file, or of Arrow tables; None where they ask for the general way."""
        source = given if isinstance(given, Fixes) else gathered(given) if isinstance(given, list) else _parquet(given)
        if source is None:
            return None
        try:
            return self.replayed(source, until, threads)
        except Unusual:
            return None

    def replayed(self, source: Fixes, until: int | None, threads: int) -> Outcome:
        """The timelines of some fixes."""
        raise NotImplementedError


class Lookout(NamedTuple):
    """Places in a grid, for those who come within their reach."""

    column: Positions
    discs: np.ndarray
    """x, y, z, and how far is near: metres in the plane, a haversine on the globe"""
    grid: Grid
    geodesic: bool


@compiled
def _bounds(distances):  # type: ignore[no-untyped-def]
    return np.array([haversine_bound(distance) for distance in distances])


def lookout(column: Positions, reach: float, metric: str) -> Lookout | None:
    """A grid over places; None where one has no position, or there is none."""
    if not len(column.present) or not column.present.all() or (column.shapes.kind == kernels.ANYWHERE).any():
        return None
    totals = reach + (0.0 + column.shapes.radius)
    s, geodesic = column.shapes, metric == WGS84
    discs = np.stack([s.x, s.y, s.z, _bounds(totals) if geodesic else totals], axis=1)
    return Lookout(column, discs, grid_of(column, totals, reach, metric), geodesic)


@dataclass(frozen=True)
class Prepared(Places):
    """Places in a grid, where being within their reach is all that is asked."""

    shape: Shape
    lookout: Lookout

    def replayed(self, source: Fixes, until: int | None, threads: int) -> Outcome:
        met = crossed(source, [self.lookout], until, threads)
        lines = Lines.of(met.crossings[0], self.shape.staying.role, self.stream, source.names)
        return Outcome(lines, counted(self.data, met.rows, met.instants), self.data, met.instants.end, met.rows)


def prepared(scenario: Scenario, head: Any, places: Any, zone: str | None) -> Prepared | None:
    """What a direct replay needs to know but for the fixes, of which one row will do; None for the general way."""
    shape = shape_of(scenario)
    if shape is None:
        return None
    data = tables.inputs(scenario, head, places, zone)
    still = data.tables["places"]
    if still.frame["t"].notna().any() or still.frame["op"].notna().any():
        return None
    stream = streams(data, data.instants[1]).by_name[shape.staying.name]
    columns = stream.regions[shape.region].columns
    column = next(iter(columns.values()), None)
    if len(columns) != 1 or not isinstance(column, Positions):
        return None
    made = lookout(column, shape.reach, data.metric)
    return None if made is None else Prepared(data, stream, shape, made)


def run(
    scenario: Scenario, fixes: Any, places: Any, zone: str | None = None, until: Any = None
) -> Outcome | None:
    """Replay Parquet files directly; None where the scenario or the data ask for the general way."""
    source = None if shape_of(scenario) is None else _parquet(fixes)
    head = None if source is None else head_of(source)
    made = None if head is None else prepared(scenario, head, places, zone)
    if source is None or made is None:
        return None
    return made.replay(source, None if until is None else made.data.clock.ticks(until), cores())


def cores() -> int:
    return max(1, min(8, os.cpu_count() or 1))


def head_of(source: Fixes) -> pd.DataFrame | None:
    """The first fix; None where there is none."""
    head = source.files[0].read_row_group(0).slice(0, 1) if source.files[0].metadata.num_row_groups else None
    return None if head is None or not len(head) else _plain(head)


def _plain(head: pa.Table) -> pd.DataFrame:
    """A row as the general way reads it."""
    frame = head.to_pandas()
    return frame.astype({"mobile": object}) if isinstance(frame["mobile"].dtype, pd.CategoricalDtype) else frame


class Crossed(NamedTuple):
    """What fixes did to lookouts."""

    crossings: list[Met]
    first: np.ndarray
    """the first instant of each mobile"""
    rows: int
    instants: Instants


@compiled
def _firsts(mobile, t, base, first):  # type: ignore[no-untyped-def]
    for i in range(len(t)):
        m = mobile[i] - base
        if t[i] < first[m]:
            first[m] = t[i]


def crossed(source: Fixes, lookouts: list[Lookout], until: int | None, threads: int) -> Crossed:
    """All fixes past all lookouts."""
    size = 1024 if source.coded else source.mobiles
    inside = [Inside.of(size) for _ in lookouts]
    first = np.full(size, np.iinfo(np.int64).max)
    ended: list[list[tuple[np.ndarray, ...]]] = [[] for _ in lookouts]
    room = [1024] * len(lookouts)
    shares = 1 << (threads.bit_length() - 1)
    rows, instants = 0, Instants(until)
    with ThreadPoolExecutor(shares) as pool:
        for batch in source.batches():
            if not len(batch.t):
                continue
            if source.coded and len(source.ids) > len(first):
                inside = [one.grown(2 * len(source.ids)) for one in inside]
                first = np.append(first, np.full(2 * len(source.ids) - len(first), np.iinfo(np.int64).max))
            fixes: tuple[Any, ...] = (*batch, source.base, instants.until)
            jobs = [
                (n, pool.submit(_share, (*fixes, share, shares, room[n], *_arguments(lookouts[n]), *inside[n])))
                for n in range(len(lookouts))
                for share in range(shares)
            ]
            _firsts(batch.mobile, batch.t, source.base, first)
            instants.add(batch.t)
            rows += len(batch.t)
            for n, job in jobs:
                state, lines = job.result()
                if state != GOOD:
                    raise Unusual
                ended[n].append(lines)
                room[n] = max(1024, len(lines[0]) * 9 // 8)
    return Crossed(list(map(Met.of, ended, inside)), first, rows, instants)


def _arguments(place: Lookout) -> tuple[Any, ...]:
    return place.grid, place.column.shapes, place.discs, place.geodesic


def counted(data: tables.Inputs, rows: int, instants: Instants) -> dict[str, int]:
    """What was counted of fixes and places."""
    still = data.tables["places"].counts
    return {
        "rows_in": rows + still["rows_in"],
        "rows_collapsed": still["rows_collapsed"],
        "rows_set_aside": still["rows_set_aside"],
        "instants": instants.count(),
    }


def _running(inside: Inside) -> tuple[np.ndarray, ...]:
    """What has not ended."""
    mobile = np.repeat(np.arange(len(inside.held), dtype=np.int32), inside.held)
    slot = np.arange(len(mobile)) - np.repeat(np.cumsum(inside.held) - inside.held, inside.held)
    since = inside.since[mobile, slot]
    return inside.places[mobile, slot], mobile, since, np.zeros_like(since)
