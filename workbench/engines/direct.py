"""The direct way: from Parquet columns to timelines, without a table in between.

For the commonest shape of a scenario, mobiles as points against places that stay where they are, with one spatial
match as the whole filter (`proximity`): fixes come in `batches`, places lie in `cells`, and `crossings` are timelines.

`run` gives None for everything else (other filters, attributes that change, removals, repeated instants, nulls,
anything that would be an error): then the general way is taken, which knows all the rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from workbench import tables
from workbench.engines.batches import Fixes, Instants, Unusual, cores, gathered, head_of, parquet
from workbench.engines.cells import Lookout, lookout
from workbench.engines.crossings import Met, crossed
from workbench.engines.extents import Positions
from workbench.engines.local import table_of
from workbench.engines.streams import Stream, streams
from workbench.model.columns import MISSING, Column
from workbench.model.filters import Everything, Match, Var
from workbench.model.pubsub import PUBLICATION, Population
from workbench.model.relations import Containment, Enclosure, Overlap, Within
from workbench.model.scenario import Scenario
from workbench.model.spaces import Position


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
    reach = reach_of(match, first)
    (dimension, kind), *more = match.space.dimensions
    given = dict(dict(moving.regions)[region].constraints).get(dimension)
    if reach is None or more or not isinstance(kind, Position):
        return None
    if not (isinstance(given, Column) and given.name == "position" and given.default is MISSING):
        return None
    return Shape(moving, staying, names[staying.name][1], reach)


def reach_of(match: Match, first: bool) -> float | None:
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
        made = table_of(list(self.lines[:5]), *self.lines[5:], self.data.clock)
        return tables.with_types_of(self.data, made)


@dataclass(frozen=True)
class Places:
    """Places prepared once, so that any part of the fixes can be replayed against them."""

    data: tables.Inputs
    """the places, and a fix for its columns"""
    stream: Stream

    def replay(self, given: Any, until: int | None, threads: int) -> Outcome | None:
        """The timelines of a Parquet file, or of Arrow tables; None where they ask for the general way."""
        source = given if isinstance(given, Fixes) else gathered(given) if isinstance(given, list) else parquet(given)
        if source is None:
            return None
        try:
            return self.replayed(source, until, threads)
        except Unusual:
            return None

    def replayed(self, source: Fixes, until: int | None, threads: int) -> Outcome:
        """The timelines of some fixes."""
        raise NotImplementedError


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
    source = None if shape_of(scenario) is None else parquet(fixes)
    head = None if source is None else head_of(source)
    made = None if head is None else prepared(scenario, head, places, zone)
    if source is None or made is None:
        return None
    return made.replay(source, None if until is None else made.data.clock.ticks(until), cores())


def counted(data: tables.Inputs, rows: int, instants: Instants) -> dict[str, int]:
    """What was counted of fixes and places."""
    still = data.tables["places"].counts
    return {
        "rows_in": rows + still["rows_in"],
        "rows_collapsed": still["rows_collapsed"],
        "rows_set_aside": still["rows_set_aside"],
        "instants": instants.count(),
    }
