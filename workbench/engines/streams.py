"""Streams: the publications or subscriptions of a population as step functions, in columns.

A client keeps its last position and attributes until the next update (see `workbench.model.history`, whose rules are
followed here over whole tables at once). A *version* is what holds from one update to the next: ``[start, end)``. The
versions of one client stand one after another, in order; where it does not exist there is a gap.

* An update or removal of what does not exist is set aside and counted.
* A null cell keeps the last value, back to where the client last came to be there for somebody.
* A profile joins by id; its cells stand where the client's own are null, and its updates start new versions.
* The end of a lifetime is a removal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import shapely

from workbench.compiling import compiled
from workbench.engines import extents, kernels
from workbench.engines.intervals import FOREVER, Sets, from_segments
from workbench.engines.relating import Regions
from workbench.errors import DataError, ScenarioError
from workbench.geometry import PLANAR
from workbench.model import shapes
from workbench.model.columns import MISSING, Blank, Column, Made
from workbench.model.pubsub import Population
from workbench.model.regions import Region
from workbench.model.spaces import Number, Position
from workbench.tables import COORDINATES, KEYS, Inputs, Rows, geometry_of, needs_position

ADD, UPDATE, REMOVE = 0, 1, 2


@dataclass(frozen=True)
class Stream:
    """The versions of all clients of a population."""

    population: Population
    ids: np.ndarray
    """of the clients, as the table has them"""
    offsets: np.ndarray
    start: np.ndarray
    end: np.ndarray
    since: np.ndarray
    """the instant of the client's latest own update"""
    regions: Mapping[str, Regions]

    @property
    def clients(self) -> int:
        return len(self.ids)

    @cached_property
    def owner(self) -> np.ndarray:
        """The client of each version."""
        return np.repeat(np.arange(self.clients), np.diff(self.offsets))

    def different(self, versions: np.ndarray, other: Stream, others: np.ndarray) -> np.ndarray:
        """Whether versions of two streams belong to different clients."""
        if self.population.table != other.population.table:
            return np.ones(len(versions), bool)
        return self.owner[versions] != other.owner[others]

    @cached_property
    def life(self) -> Sets:
        """When each client exists."""
        return from_segments(self.offsets, self.start, self.end, np.ones(len(self.start), bool))


# -- the rows of a table in effect ---------------------------------------------------------------------------


@compiled
def _in_effect(code, t, op, profile, stay):  # type: ignore[no-untyped-def]
    """Which rows update or remove what exists; it does for a stay after its latest row, and always where that is -1."""
    kept = np.ones(len(code), np.bool_)
    alive = False
    latest = 0
    for i in range(len(code)):
        if i == 0 or code[i] != code[i - 1] or (stay >= 0 and t[i] > latest + stay):
            alive = False
        if op[i] == 2:
            kept[i] = alive
            alive = False
        elif op[i] == 1 and not alive and not profile:
            kept[i] = False
        else:
            alive = True
            latest = t[i]
    return kept


def _stays(table: str, data: Inputs) -> list[int | None]:
    """How long a row of a table lives on after its latest update, in each of its populations."""
    members = [p for p in data.scenario.populations if p.rows == table]
    return [None if p.stay is None else p.stay.in_ticks(data.clock.tick) for p in members]


def _longest(stays: list[int | None]) -> int:
    known = [stay for stay in stays if stay is not None]
    return max(known) if stays and len(known) == len(stays) else -1


def without_effect(rows: Rows, data: Inputs, first: int) -> int:
    """How many rows of a table update or remove what does not exist."""
    if not rows.frame["op"].notna().any():
        return 0
    codes, _ = pd.factorize(rows.frame["id"])
    order = np.argsort(codes, kind="stable")
    t = rows.frame["t"].fillna(first).to_numpy(np.int64)[order]
    stays = _stays(rows.table, data)
    return int((~_in_effect(codes[order], t, _operations(rows.frame)[order], not stays, _longest(stays))).sum())


def _operations(frame: pd.DataFrame) -> np.ndarray:
    return frame["op"].map({"update": UPDATE, "remove": REMOVE}).fillna(ADD).to_numpy(np.int8)


class Steps:
    """The rows of one table that are in effect, by client and time, and where each finds the cells that still hold."""

    def __init__(self, rows: Rows, data: Inputs, first: int) -> None:
        self.rows = rows
        self.clock = data.clock
        self.members = [p for p in data.scenario.populations if p.rows == rows.table]
        stays = _stays(rows.table, data)
        frame = rows.frame
        codes, ids = pd.factorize(frame["id"])
        self.ids = np.asarray(ids, dtype=object) if not isinstance(ids, pd.Index) else ids.to_numpy(dtype=object)
        order = np.argsort(codes, kind="stable")
        op = np.full(len(order), ADD, np.int8)
        if frame["op"].notna().any():
            op = _operations(frame)[order]
        t = frame["t"].fillna(first).to_numpy(np.int64)[order]
        kept = _in_effect(codes[order], t, op, not self.members, _longest(stays))
        self.set_aside = int((~kept).sum())
        self.index = order[kept]
        """of the rows in the table"""
        self.code, self.op = codes[self.index], op[kept]
        self.t = t[kept]
        self.new = np.ones(len(self.code), bool)
        self.new[1:] = self.code[1:] != self.code[:-1]
        self.following = np.full(len(self.code), FOREVER, np.int64)
        self.following[:-1] = np.where(self.new[1:], FOREVER, self.t[1:])
        self.removed = self.op == REMOVE
        self.session = self._sessions(stays)
        self._check_positions(data)
        ends = [
            (self.t + stay)[~self.removed & (self.following > self.t + stay)] for stay in stays if stay is not None
        ]
        self.instants = np.concatenate([self.t, *ends])

    def _sessions(self, stays: list[int | None]) -> np.ndarray:
        """The first row of the time during which the client has been there for somebody."""
        starts = self.new.copy()
        starts[1:] |= self.removed[:-1]
        if (longest := _longest(stays)) >= 0:
            starts[1:] |= self.t[1:] > self.t[:-1] + longest
        return np.maximum.accumulate(np.where(starts, np.arange(len(starts)), 0))

    def there(self, stay: int) -> np.ndarray:
        """Which rows exist in a population of that stay: an update does not bring back what has ended there."""
        if not (self.op == UPDATE).any():
            return np.ones(len(self.op), bool)
        return _in_effect(self.code, self.t, self.op, False, stay)

    def latest(self, known: np.ndarray) -> np.ndarray:
        """For each row in effect the row whose cell holds, -1 for none; ``known`` says where rows have one."""
        said = known & ~self.removed
        row = np.maximum.accumulate(np.where(said, np.arange(len(said)), -1))
        return np.where(row >= self.session, row, -1)

    @cached_property
    def position(self) -> tuple[np.ndarray, extents.Positions]:
        """The positions that rows state, and where they do."""
        frame, n = self.rows.frame, len(self.index)
        known, x, y, z = np.zeros(n, bool), np.zeros(n), np.zeros(n), np.zeros(n)
        if self.rows.metric is not None:
            x, y = (frame[name].to_numpy(np.float64)[self.index] for name in COORDINATES[self.rows.metric])
            known = ~(np.isnan(x) | np.isnan(y))
            if self.rows.metric == PLANAR and "z" in frame.columns:
                z = np.nan_to_num(frame["z"].to_numpy(np.float64)[self.index])
        if not self.rows.geometry:
            return known, extents.points(known, x, y, z, np.zeros(n))
        cells = frame["geometry"].to_numpy(object)[self.index]
        drawn = ~known & ~self.removed & ~pd.isna(cells)
        listed: list[Any] = [
            self._drawn(i, cells[i]) if drawn[i] else shapes.point(x[i], y[i], z[i]) if known[i] else None
            for i in range(n)
        ]
        known = known | drawn
        codes = np.where(known, np.cumsum(known) - 1, -1)
        column = extents.column_of(codes, [s for s in listed if s is not None], extents.ANYWHERE)
        assert isinstance(column, extents.Positions)
        return known, column

    def _drawn(self, i: int, cell: Any) -> shapes.Shape:
        try:
            return shapes.shape(geometry_of(cell))
        except (ScenarioError, ValueError, shapely.errors.ShapelyError) as error:
            name = self.ids[self.code[i]]
            raise DataError(f"{self.rows.table}: the geometry of {name!r} cannot be used: {error}") from None

    def _check_positions(self, data: Inputs) -> None:
        if not needs_position(data.scenario, self.rows.table):
            return
        if self.rows.metric is None and not self.rows.geometry:
            return
        lost = np.flatnonzero(~self.position[0] & (self.op == ADD))
        if len(lost):
            row = self.rows.frame.iloc[self.index[lost[0]]].to_dict()
            raise DataError(
                f"{self.rows.table}: {KEYS.get(self.rows.table, 'id')} {row['id']!r} has no position "
                f"at t = {row['t']}; null coordinates are allowed only where op = 'update' "
                "(`workbench ingest` sets such rows aside)"
            )


@compiled
def _joined(owner, start, end, offsets, at):  # type: ignore[no-untyped-def]
    """Each own version cut where the profile of its client changes."""
    n = 0
    found = np.empty((0, 4), np.int64)
    for turn in range(2):
        # First they are counted, then written down: the version, that of the profile, from, to.
        if turn == 1:
            found = np.empty((n, 4), np.int64)
            n = 0
        for i in range(len(owner)):
            low, high = offsets[owner[i]], offsets[owner[i] + 1]
            k = low
            while k < high and at[k] <= start[i]:
                k += 1
            since = start[i]
            while True:
                until = min(end[i], at[k]) if k < high else end[i]
                if since < until:
                    if turn == 1:
                        found[n, 0], found[n, 1], found[n, 2], found[n, 3] = i, k - 1 if k > low else -1, since, until
                    n += 1
                if until == end[i]:
                    break
                since = until
                k += 1
    return found


# -- cells ---------------------------------------------------------------------------------------------------


class Cells:
    """The cells that the regions of a population read, one element a version."""

    def __init__(self, own: Steps, row: np.ndarray, profile: Steps | None, profile_row: np.ndarray) -> None:
        self.sources = [(own, row)] + ([(profile, profile_row)] if profile is not None else [])
        self.length = len(row)
        self._read: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def whose(self, version: int) -> str:
        """Who a version is of, and since when, for errors."""
        own, row = self.sources[0]
        return f"at t = {own.clock.shown(int(own.t[row[version]]))}, {own.rows.table}/{own.ids[own.code[row[version]]]}"

    def has(self, name: str) -> bool:
        """Whether a table has a column of that name."""
        return name == "position" or any(name in steps.rows.frame.columns for steps, _ in self.sources)

    def values(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The values of a column and where there is one; numbers as floats, anything else as objects."""
        if name not in self._read:
            self._read[name] = self._values(name)
        return self._read[name]

    def _values(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        found = [self._of(steps, row, name) for steps, row in self.sources if name in steps.rows.frame.columns]
        if not found:
            return np.full(self.length, np.nan), np.zeros(self.length, bool)
        values, known = found[0]
        for more, also in found[1:]:
            if values.dtype != more.dtype:
                values, more = values.astype(object), more.astype(object)
            values, known = np.where(known, values, more), known | also
        return values, known

    def _of(self, steps: Steps, row: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
        column = steps.rows.frame[name]
        given = column.to_numpy()[steps.index]
        if given.dtype.kind not in "iuf":
            given = column.astype(object).to_numpy()[steps.index]
        elif given.dtype.kind in "iu":
            given = given.astype(object) if len(given) and np.abs(given).max() > 2**53 else given.astype(np.float64)
        latest = _at(steps.latest(~pd.isna(given)), row)
        if not len(given):
            given = np.full(1, np.nan, given.dtype)
        return given[latest], latest >= 0

    @cached_property
    def positions(self) -> extents.Positions:
        """The positions of the clients."""
        parts = []
        for steps, row in self.sources:
            known, column = steps.position
            parts.append((column, _at(steps.latest(known), row)))
        column, latest = parts[0]
        known = latest >= 0
        if len(parts) > 1 and (parts[1][1][~known] >= 0).any():
            return self._positions_of_both(parts)
        s = column.shapes
        kind = np.where(known, s.kind[latest], kernels.ANYWHERE).astype(np.int8)
        x, y, z, radius, chain = (array[latest] for array in (s.x, s.y, s.z, s.radius, s.chain))
        taken = s._replace(kind=kind, x=x, y=y, z=z, radius=radius, chain=chain)
        return extents.Positions(known, taken, column.skeletons)

    def _positions_of_both(self, parts: list[tuple[extents.Positions, np.ndarray]]) -> extents.Positions:
        (own, mine), (profile, theirs) = parts
        listed = [own.extent(i) for i in range(len(own.present))] + [
            profile.extent(i) for i in range(len(profile.present))
        ]
        codes = np.where(mine >= 0, mine, np.where(theirs >= 0, theirs + len(own.present), -1))
        column = extents.column_of(codes, listed, extents.ANYWHERE)
        assert isinstance(column, extents.Positions)
        return column


def _at(latest: np.ndarray, row: np.ndarray) -> np.ndarray:
    """What holds at rows, -1 where there is no row."""
    return np.where(row >= 0, latest[row], -1) if len(latest) else np.full(len(row), -1)


def _regions(template: Region, cells: Cells | None, length: int) -> Regions:
    columns: dict[str, extents.Column] = {}
    for dimension, given in template.constraints:
        kind = template.space.type_of(dimension)
        if not isinstance(given, Blank):
            columns[dimension] = extents.constant(given, length)
            continue
        assert cells is not None
        columns[dimension] = (
            _absent(given, template, dimension, cells)
            or _filled_at_once(given, kind, cells)
            or _filled(given, template, dimension, cells)
        )
    return Regions(template.space, columns, length)


def _absent(blank: Blank, template: Region, dimension: str, cells: Cells) -> extents.Column | None:
    """One extent for all, where the tables have none of the columns that are asked for; None where they have one."""
    if not cells.length or any(cells.has(name) for name in blank.columns()):
        return None
    codes = np.zeros(cells.length, np.int64)
    try:
        filled = blank.fill({})
        listed = [] if filled is MISSING or filled is None else [Region(template.space, ((dimension, filled),))]
    except ScenarioError as error:
        raise DataError(f"{cells.whose(0)}: {error}") from None
    found = [made[dimension] for made in listed]
    return extents.column_of(codes if found else codes - 1, found, template.space.type_of(dimension).domain)


def _filled_at_once(blank: Blank, kind: Any, cells: Cells) -> extents.Column | None:
    """A column for the forms that grow with the data: a position, a disc around it, a number; None for others."""
    match blank:
        case Column(name="position", default=default) if isinstance(kind, Position) and default is MISSING:
            return cells.positions
        case Made(constructor=make, arguments=(Column(name="position") as at, radius), options=()) if (
            make in (shapes.disc, shapes.around, shapes.reach)
            and isinstance(kind, Position)
            and at.default is MISSING
        ):
            return _discs(cells, radius, areas_too=make is not shapes.reach)
        case Column() if isinstance(kind, Number):
            return _numbers(blank, kind, cells)
    return None


def _amounts(blank: Any, cells: Cells) -> tuple[np.ndarray, np.ndarray] | None:
    if isinstance(blank, Column):
        values, known = cells.values(blank.name)
        if values.dtype != np.float64:
            return None
        if blank.default is not MISSING:
            if isinstance(blank.default, bool) or not isinstance(blank.default, int | float):
                return None
            values, known = np.where(known, values, float(blank.default)), np.ones(len(known), bool)
        return values, known
    if isinstance(blank, int | float) and not isinstance(blank, bool):
        return np.full(cells.length, float(blank)), np.ones(cells.length, bool)
    return None


def _discs(cells: Cells, radius: Any, areas_too: bool) -> extents.Positions | None:
    amounts = _amounts(radius, cells)
    if amounts is None:
        return None
    radii, known = amounts
    if not np.all(np.isfinite(radii[known]) & (radii[known] >= 0)):
        return None  # the model says what is wrong
    base = cells.positions
    s = base.shapes
    present = base.present & known
    grown = np.where(present & (areas_too | (s.kind != kernels.AREA)), s.radius + radii, s.radius)
    kind = np.where(present, s.kind, kernels.ANYWHERE).astype(np.int8)
    return extents.Positions(present, s._replace(kind=kind, radius=grown), base.skeletons)


def _numbers(blank: Column, kind: Number, cells: Cells) -> extents.Numbers | None:
    amounts = _amounts(blank, cells)
    if amounts is None:
        return None
    values, known = amounts
    fits = (values >= kind.lower) & (values <= kind.upper) & np.isfinite(values)
    if kind.integer:
        fits &= values == np.floor(values)
    if not fits[known].all():
        return None  # the model says what is wrong
    # Above 2**53 an integer is no float any more.
    if len(values) and np.abs(values[known]).max(initial=0.0) > 2**53:
        return None
    lower, upper = np.where(known, values, kind.lower), np.where(known, values, kind.upper)
    return extents.Numbers(known, lower, upper, np.isinf(lower), np.isinf(upper))


def _filled(blank: Blank, template: Region, dimension: str, cells: Cells) -> extents.Column:
    """A column by the model itself: each distinct choice of cells is filled in once."""
    domain = template.space.type_of(dimension).domain
    names = sorted(blank.columns())
    combined = np.zeros(cells.length, np.int64)
    decoded: list[tuple[str, Any]] = []
    for name in names:
        codes, values = _coded(name, cells)
        decoded.append((name, values))
        combined = combined * (len(values) + 1) + codes + 1
        _, combined = np.unique(combined, return_inverse=True)
        combined = combined.astype(np.int64)
    found, first, back = np.unique(combined, return_index=True, return_inverse=True)
    listed: list[Any] = []
    codes_of = np.full(len(found), -1, np.int64)
    for n, version in enumerate(first):
        row = {name: cell for name in names if (cell := _cell(name, cells, int(version))) is not None}
        try:
            filled = blank.fill(row)
            if filled is MISSING or filled is None:
                continue
            made = Region(template.space, ((dimension, filled),))
        except ScenarioError as error:
            raise DataError(f"{cells.whose(int(version))}: {error}") from None
        codes_of[n] = len(listed)
        listed.append(made[dimension])
    return extents.column_of(codes_of[back], listed, domain)


def _coded(name: str, cells: Cells) -> tuple[np.ndarray, Any]:
    if name == "position":
        column = cells.positions
        return np.where(column.present, np.arange(cells.length), -1), range(cells.length)
    values, known = cells.values(name)
    try:
        codes, distinct = pd.factorize(values)
    except TypeError:  # lists and the like
        codes, distinct = pd.factorize(np.array([repr(v) for v in values], dtype=object))
    return np.where(known, codes, -1), distinct


def _cell(name: str, cells: Cells, version: int) -> Any:
    if name == "position":
        column = cells.positions
        return column.extent(version) if column.present[version] else None
    values, known = cells.values(name)
    value = values[version] if known[version] else None
    return value.item() if isinstance(value, np.generic) else value


# -- streams -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Streams:
    """All populations of a replay, and what was counted."""

    by_name: Mapping[str, Stream]
    set_aside: int
    instants: int


def streams(data: Inputs, until: int) -> Streams:
    """The populations of a replay as step functions, up to an instant."""
    first, _ = data.instants
    steps = {name: Steps(rows, data, first) for name, rows in data.tables.items()}
    made = {}
    instants = [s.instants for s in steps.values()]
    for population in data.scenario.populations:
        if population.single:
            made[population.name] = _single(population, first, until)
            instants.append(np.array([first]))
        else:
            made[population.name] = _stream(population, steps, data, until)
    seen = np.concatenate(instants) if instants else np.empty(0, np.int64)
    return Streams(made, sum(s.set_aside for s in steps.values()), len(np.unique(seen[seen <= until])))


def _single(population: Population, first: int, until: int) -> Stream:
    exists = int(first <= until)
    ids = np.array([population.name], dtype=object)
    start = np.full(exists, first, np.int64)
    regions = {name: _regions(template, None, exists) for name, template in population.regions}
    return Stream(
        population, ids, np.array([0, exists]), start, np.full(exists, FOREVER, np.int64), start, regions
    )


def _stream(population: Population, steps: Mapping[str, Steps], data: Inputs, until: int) -> Stream:
    own = steps[population.rows]
    end = own.following
    if population.stay is not None:
        end = np.minimum(end, own.t + population.stay.in_ticks(data.clock.tick))
    there = own.there(population.stay.in_ticks(data.clock.tick)) if population.stay is not None else True
    row = np.flatnonzero(~own.removed & there & (own.t < end) & (own.t <= until))
    start, end, profile_row = own.t[row], end[row], np.full(len(row), -1)
    profile = steps[population.profiles] if population.profiles else None
    if profile is not None:
        changed = np.arange(len(profile.code))
        places = pd.Index(profile.ids).get_indexer(pd.Index(own.ids))
        counts = np.bincount(profile.code[changed], minlength=len(profile.ids))
        bounds = np.concatenate([[0], np.cumsum(counts)])
        offsets, order = _by_client(places, bounds)
        changed = changed[order]
        inner, joined, start, end = _joined(own.code[row], start, end, offsets, profile.t[changed]).T.copy()
        kept = start <= until
        inner, joined, start, end = inner[kept], joined[kept], start[kept], end[kept]
        row = row[inner]
        profile_row = np.where(joined >= 0, changed[joined] if len(changed) else -1, -1)
        if len(changed):  # a profile that was removed says nothing any more
            profile_row = np.where((profile_row >= 0) & ~profile.removed[profile_row], profile_row, -1)
    cells = Cells(own, row, profile, profile_row)
    regions = {name: _regions(template, cells, len(row)) for name, template in population.regions}
    offsets = np.zeros(len(own.ids) + 1, np.int64)
    np.cumsum(np.bincount(own.code[row], minlength=len(own.ids)), out=offsets[1:])
    return Stream(population, own.ids, offsets, start, end, own.t[row], regions)


def _by_client(places: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of other clients, in the order of these: offsets, and which rows."""
    sizes = np.where(places >= 0, bounds[places + 1] - bounds[places], 0)
    offsets = np.zeros(len(places) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    first = np.where(places >= 0, bounds[places], 0)
    return offsets, np.arange(offsets[-1]) - np.repeat(offsets[:-1] - first, sizes)
