"""Nearest places, directly: from Parquet columns to timelines, without a table in between.

What `direct` is to places within reach: mobiles as points against places that stay where they are, the whole filter
being that a place is the nearest, or one of the k nearest, perhaps among some (``among=``, constraints). Which places
those are changes only where a mobile moves. None for everything else: then the general way is taken.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from workbench import tables
from workbench.engines import kernels, relating
from workbench.engines.batches import Fixes, Instants, Unusual, cores, head_of, parquet
from workbench.engines.crossings import Inside, Met
from workbench.engines.direct import Lines, Outcome, Places, counted
from workbench.engines.extents import Positions
from workbench.engines.sites import Sites, arrivals, sites_of
from workbench.engines.streams import Stream, streams
from workbench.geometry import WGS84
from workbench.model.columns import MISSING, Column
from workbench.model.filters import Everything, Match, Regions, Var
from workbench.model.pubsub import Population
from workbench.model.relations import Nearest
from workbench.model.scenario import Scenario
from workbench.model.spaces import Position

MOST = 32
"""neighbours"""


class Shape(NamedTuple):
    """Who moves, who stays, which of them are looked at, and how many are near."""

    moving: Population
    staying: Population
    among: Regions
    k: int
    dimension: str


def shape_of(scenario: Scenario) -> Shape | None:
    """The parts of a scenario that is about nearest places and nothing else; None for all others."""
    if len(scenario.publications) != 1 or len(scenario.subscriptions) != 1 or scenario.visibility:
        return None
    sides = {p.rows: p for p in scenario.populations}
    if set(sides) != {"fixes", "places"}:
        return None
    moving, staying = sides["fixes"], sides["places"]
    if any(p.profiles or p.stay is not None or p.transient for p in (moving, staying)):
        return None
    own, other = (moving, staying) if isinstance(staying.filter, Everything) else (staying, moving)
    match = own.filter
    if not isinstance(match, Match) or not isinstance(match.relation, Nearest):
        return None
    bindings = scenario.bindings(match, other)
    if not isinstance(other.filter, Everything) or len(bindings) != 1 or match.relation.k > MOST:
        return None
    named = []
    for term in (match.left, match.right):
        if not isinstance(term, Var):
            return None
        owner = own if term.side == "own" else other
        named.append((owner.name, term.name if term.side == "own" else bindings[0][term.name]))
    (who, region), right = named
    sources = scenario.declared_in(match.space, staying.role)
    among = match.relation.among or (sources[0] if len(sources) == 1 else None)
    (dimension, kind), *more = match.space.dimensions
    if who != moving.name or among is None or (among.population, among.region) != right or more:
        return None
    given = dict(dict(moving.regions)[region].constraints).get(dimension)
    if not (isinstance(kind, Position) and isinstance(given, Column)):
        return None
    if given.name != "position" or given.default is not MISSING or right[0] != staying.name:
        return None
    return Shape(moving, staying, among, match.relation.k, dimension)


@dataclass(frozen=True)
class Prepared(Places):
    """Places in an index, for those whose nearest they are."""

    shape: Shape
    sites: Sites

    def replayed(self, source: Fixes, until: int | None, threads: int) -> Outcome:
        if self.data.metric == WGS84 and not _one_side(self.sites, source):
            raise Unusual
        return _replayed(self, source, until, threads)


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
    sites = _sites(stream, shape, data.metric)
    return None if sites is None else Prepared(data, stream, shape, sites)


def run(scenario: Scenario, fixes: Any, places: Any, zone: str | None = None, until: Any = None) -> Outcome | None:
    """Replay Parquet files directly; None where the scenario or the data ask for the general way."""
    source = None if shape_of(scenario) is None else parquet(fixes)
    head = None if source is None else head_of(source)
    made = None if head is None else prepared(scenario, head, places, zone)
    if source is None or made is None:
        return None
    return made.replay(source, None if until is None else made.data.clock.ticks(until), cores())


def _sites(stream: Stream, shape: Shape, metric: str) -> Sites | None:
    """The places that are looked at; None where one is no point."""
    regions = stream.regions[shape.among.region]
    column = regions.columns.get(shape.dimension)
    if not isinstance(column, Positions) or (np.diff(stream.offsets) > 1).any():
        return None
    asked = np.flatnonzero(column.present & relating.among(shape.among, regions, metric))
    s = column.shapes
    if not len(asked) or (s.kind[asked] != kernels.POINT).any() or (s.radius[asked] != 0.0).any():
        return None
    return sites_of(s.x[asked], s.y[asked], s.z[asked], stream.owner[asked])


def _one_side(sites: Sites, source: Fixes) -> bool:
    """Whether everything lies within half a turn of longitudes."""
    ends = [float(sites.x.min()), float(sites.x.max()), *source.across()]
    return max(ends) - min(ends) <= 180.0


def _share(arguments: tuple[Any, ...]) -> tuple[int, np.ndarray]:
    return arrivals(*arguments)  # type: ignore[no-any-return]


def _replayed(made: Prepared, source: Fixes, until: int | None, threads: int) -> Outcome:
    inside = Inside.of(1024 if source.coded else source.mobiles)
    ended: list[tuple[np.ndarray, ...]] = []
    rows, instants = 0, Instants(until)
    places = (made.shape.k, made.sites, made.data.metric == WGS84)
    with ThreadPoolExecutor(threads) as pool:
        for batch in source.batches():
            if not len(batch.t):
                continue
            if source.coded and len(source.ids) > len(inside.held):
                inside = inside.grown(2 * len(source.ids))
            given: tuple[Any, ...] = (*batch, source.base, instants.until)
            jobs = [pool.submit(_share, (*given, share, threads, *places, *inside[:4])) for share in range(threads)]
            instants.add(batch.t)
            rows += len(batch.t)
            for job in jobs:
                state, lines = job.result()
                if state:
                    raise Unusual
                ended.append(tuple(lines.T))
    role = made.shape.staying.role
    lines_ = Lines.of(Met.of(ended, inside), role, made.stream, source.names)
    return Outcome(lines_, counted(made.data, rows, instants), made.data, instants.end, rows)
