"""Nearest places, directly: from Parquet columns to timelines, without a table in between.

What `direct` is to places within reach: mobiles as points against places that stay where they are, the whole filter
being that a place is the nearest, or one of the k nearest, perhaps among some (``among=``, constraints). Which places
those are changes only where a mobile moves. None for everything else: then the general way is taken.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from workbench import tables
from workbench.engines import kernels, relating
from workbench.engines.direct import Fixes, Inside, Instants, Outcome, Unusual, _parquet, _plain, _running
from workbench.engines.extents import Positions
from workbench.engines.local import table_of
from workbench.engines.sites import Sites, arrivals, sites_of
from workbench.engines.streams import Stream, streams
from workbench.geometry import WGS84
from workbench.model.columns import MISSING, Column
from workbench.model.filters import Everything, Match, Regions, Var
from workbench.model.pubsub import PUBLICATION, Population
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


def run(scenario: Scenario, fixes: Any, places: Any, zone: str | None = None, until: Any = None) -> Outcome | None:
    """Replay Parquet files directly; None where the scenario or the data ask for the general way."""
    shape = shape_of(scenario)
    source = _parquet(fixes) if shape is not None else None
    if shape is None or source is None or not source.files[0].metadata.num_row_groups:
        return None
    head = source.files[0].read_row_group(0).slice(0, 1)
    if not len(head):
        return None
    data = tables.inputs(scenario, _plain(head), places, zone)
    still = data.tables["places"]
    if still.frame["t"].notna().any() or still.frame["op"].notna().any():
        return None
    stream = streams(data, data.instants[1]).by_name[shape.staying.name]
    sites = _sites(stream, shape, data.metric)
    if sites is None or (data.metric == WGS84 and not _one_side(sites, source)):
        return None
    try:
        return _replayed(shape, source, data, stream, sites, None if until is None else data.clock.ticks(until))
    except Unusual:
        return None


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
    place = source.files[0].schema_arrow.names.index(source.coordinates[0])
    ends = [float(sites.x.min()), float(sites.x.max())]
    for file in source.files:
        for n in range(file.metadata.num_row_groups):
            known = file.metadata.row_group(n).column(place).statistics
            if known is None or not known.has_min_max:
                found = pc.min_max(file.read_row_group(n, columns=[source.coordinates[0]]).column(0)).as_py()
                ends += [found["min"] or 0.0, found["max"] or 0.0]
            else:
                ends += [known.min, known.max]
    return max(ends) - min(ends) <= 180.0


def _share(arguments: tuple[Any, ...]) -> tuple[int, np.ndarray]:
    return arrivals(*arguments)  # type: ignore[no-any-return]


def _replayed(
    shape: Shape, source: Fixes, data: tables.Inputs, stream: Stream, sites: Sites, until: int | None
) -> Outcome:
    inside = Inside.of(1024 if source.text else source.mobiles)
    shares = max(1, min(8, os.cpu_count() or 1))
    ended, rows, instants = [], 0, Instants(np.iinfo(np.int64).max if until is None else until)
    geodesic = data.metric == WGS84
    with ThreadPoolExecutor(shares) as pool:
        for batch in source.batches():
            if not len(batch.t):
                continue
            if source.text and len(source.ids) > len(inside.held):
                inside = inside.grown(2 * len(source.ids))
            given: tuple[Any, ...] = (*batch, source.base, instants.until)
            jobs = [
                pool.submit(_share, (*given, share, shares, shape.k, sites, geodesic, *inside))
                for share in range(shares)
            ]
            instants.add(batch.t)
            rows += len(batch.t)
            for job in jobs:
                state, lines = job.result()
                if state:
                    raise Unusual
                ended.append(lines)
    names = np.array(source.ids, dtype=object) if source.text else np.arange(len(inside.held)) + source.base
    running = _running(inside)
    lines = np.concatenate([np.empty((0, 4), np.int64), *ended, running])
    place, mobile, tau, pi = (np.ascontiguousarray(column) for column in lines.T)
    why = np.repeat([0, -1], [len(lines) - len(running), len(running)])
    ids = stream.ids
    if len(ids) and all(isinstance(i, int) and not isinstance(i, bool) for i in ids):
        ids = ids.astype(np.int64)
    pair = ((place, ids), (mobile, names))
    (p, first), (s, second) = pair if shape.staying.role == PUBLICATION else pair[::-1]
    still = data.tables["places"].counts
    counts = {
        "rows_in": rows + still["rows_in"],
        "rows_collapsed": still["rows_collapsed"],
        "rows_set_aside": still["rows_set_aside"],
        "instants": instants.count(),
    }
    timelines = table_of([p, s, tau, pi, why], first, second, data.clock)
    return Outcome(timelines, counts, data, instants.last if until is None else until, rows)
