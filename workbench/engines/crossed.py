"""Crossings, and filters over them: mobiles as points against places that stay, with more in the filters than nearness.

`direct` finds at which fixes a mobile comes into the reach of a place and leaves it, without a table in between. Here
that is the driving part of a filter, which may ask for more as long as the rest does not depend on where the mobile is
at the moment: attributes of the place, and histories of the mobile with any of the places, themselves found as
crossings (coffee: ``now - tau(entered any shop) > 5 h``, Subject Spaces, 5.1). The rest is evaluated as everywhere else
(`lowering`), over the crossings instead of the segments of fixes, of which there are many more.

None for everything else: then the general way is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from workbench import tables
from workbench.engines import intervals, local, relating
from workbench.engines.batches import Fixes, cores, head_of, parquet
from workbench.engines.cells import Lookout, lookout
from workbench.engines.crossings import Inside, Met, crossed
from workbench.engines.direct import Lines, Outcome, Places, counted, reach_of
from workbench.engines.extents import Positions
from workbench.engines.intervals import FOREVER, Sets, Visits
from workbench.engines.lowering import Evaluation, Lanes, Ref, View
from workbench.engines.streams import Stream, streams
from workbench.model.columns import MISSING, Blank, Column
from workbench.model.filters import And, Everything, Filter, Held, Latch, Match, Regions, Var
from workbench.model.pubsub import PUBLICATION, SUBSCRIPTION, Population
from workbench.model.relations import Nearest
from workbench.model.scenario import Scenario
from workbench.model.spaces import Position


class Near(NamedTuple):
    """Being near places: with which region of theirs, how near, among which."""

    region: str
    dimension: str
    reach: float
    among: Regions | None = None


class Shape(NamedTuple):
    """Who moves, who stays, what brings them together, and what else is asked."""

    moving: Population
    staying: Population
    near: Near
    filters: dict[str, list[tuple[Filter, View]]]
    """by role: what is left of its filter under each choice of regions; one of them has to hold"""
    thirds: dict[Match, Near]


# -- which scenarios -----------------------------------------------------------------------------------------


def shape_of(scenario: Scenario, columns: frozenset[str]) -> Shape | None:
    """The parts of a scenario that can be evaluated over crossings; None for others. ``columns`` are those of fixes."""
    if len(scenario.publications) != 1 or len(scenario.subscriptions) != 1 or scenario.visibility:
        return None
    if scenario.stage is not None:
        return None
    sides = {p.rows: p for p in scenario.populations}
    if set(sides) != {"fixes", "places"} or any(p.profiles or p.stay is not None for p in scenario.populations):
        return None
    asked = _Asked(scenario, sides["fixes"], sides["places"], columns)
    views = {
        own.role: [View(own.role, binding) for binding in scenario.bindings(own.filter, other)]
        for own, other in (scenario.populations, scenario.populations[::-1])
    }
    choices = {near for p in scenario.populations for v in views[p.role] for near in asked.drivers(p.filter, v)}
    for near in sorted(choices, key=lambda near: (near.reach, near.region)):
        filters = {p.role: asked.rest(p.filter, views[p.role], near) for p in scenario.populations}
        if any(found is None for found in filters.values()):
            continue
        listed = {role: found for role, found in filters.items() if found is not None}
        thirds = asked.thirds(listed)
        if thirds is not None:
            return Shape(asked.moving, asked.staying, near, listed, thirds)
    return None


class _Asked(NamedTuple):
    """What filters ask, of whom."""

    scenario: Scenario
    moving: Population
    staying: Population
    columns: frozenset[str]

    def drivers(self, filter_: Filter, view: View) -> list[Near]:
        return [near for part in _parts(filter_) if (near := self.near(part, view)) is not None]

    def near(self, node: Filter, view: View) -> Near | None:
        """The nearness that a match of both sides states; None for anything else."""
        if not isinstance(node, Match) or node.third is not None:
            return None
        left, right = view.ref(node.left), view.ref(node.right)
        if left.role == right.role:
            return None
        mine, theirs = (left, right) if left.role == self.moving.role else (right, left)
        return self._near(node, mine, theirs.region, mine is left)

    def _near(self, match: Match, mine: Ref, theirs: str, first: bool, among: Regions | None = None) -> Near | None:
        reach = reach_of(match, first)
        (dimension, kind), *more = match.space.dimensions
        if reach is None or more or not isinstance(kind, Position) or not self.placed(mine.region, dimension):
            return None
        return Near(theirs, dimension, reach, among)

    def placed(self, region: str, dimension: str) -> bool:
        """Whether a region of those who move is their position."""
        given = dict(dict(self.moving.regions)[region].constraints).get(dimension)
        return isinstance(given, Column) and given.name == "position" and given.default is MISSING

    def quiet(self, region: str) -> bool:
        """Whether a region of those who move is one and the same for all fixes."""
        read = {
            name
            for _, extent in dict(self.moving.regions)[region].constraints
            if isinstance(extent, Blank)
            for name in extent.columns()
        }
        return not read & (self.columns | {"position", "id"})

    def void(self, node: Filter, view: View) -> bool:
        """Whether a match can never hold, because a region of those who move constrains nothing of its space."""
        if not isinstance(node, Match) or node.third is not None:
            return False
        refs = [view.ref(term) for term in (node.left, node.right)]
        regions = [dict(self.moving.regions)[ref.region] for ref in refs if ref.role == self.moving.role]
        asked = {label for label, _ in node.space.dimensions}
        return any(not asked & {label for label, _ in region.constraints} for region in regions)

    def rest(self, filter_: Filter, views: list[View], driver: Near) -> list[tuple[Filter, View]] | None:
        """What is left of a filter where the driver holds, by choice of regions; None where that is not enough."""
        found: list[tuple[Filter, View]] = []
        open_: list[Filter] = []
        for view in views:
            if any(self.void(part, view) for part in _parts(filter_)):
                continue
            left, sure = [], True
            for part in _parts(filter_):
                near = self.near(part, view)
                if near is None:
                    left.append(part)
                elif not (near[:2] == driver[:2] and near.reach >= driver.reach):
                    sure = False
            rest = left[0] if len(left) == 1 else And(tuple(left)) if left else Everything()
            if not self._free(rest, view):
                return None
            if sure:
                found.append((rest, view))
            elif rest.variables():
                return None
            else:
                open_.append(rest)
        # A choice that asks for more nearness adds nothing to one that asks for the same without it.
        known = [rest for rest, _ in found]
        return found if found and all(rest in known for rest in open_) else None

    def _free(self, rest: Filter, view: View) -> bool:
        """Whether it does not matter for a filter where the mobile is at the moment."""
        for node in rest.walk():
            if isinstance(node, Held | Latch):
                return False
            if isinstance(node, Match) and isinstance(node.relation, Nearest):
                return False
            if isinstance(node, Match) and node.third is not None:
                if self._third(node, view) is None:
                    return False
                continue
            for term, _ in node.uses():
                if isinstance(term, Var):
                    ref = view.ref(term)
                    if ref.role == self.moving.role and not self.quiet(ref.region):
                        return False
        return True

    def _third(self, node: Match, view: View) -> Near | None:
        third, known = node.third, node.right if node.left is node.third else node.left
        if third is None or not isinstance(known, Var) or third.among.population != self.staying.name:
            return None
        mine = view.ref(known)
        if mine.role != self.moving.role:
            return None
        return self._near(node, mine, third.among.region, node.left is known, third.among)

    def thirds(self, filters: dict[str, list[tuple[Filter, View]]]) -> dict[Match, Near] | None:
        found: dict[Match, Near] = {}
        for some in filters.values():
            for rest, view in some:
                for node in rest.walk():
                    if isinstance(node, Match) and node.third is not None:
                        near = self._third(node, view)
                        assert near is not None
                        if found.setdefault(node, near) != near:
                            return None
        return found


def _parts(filter_: Filter) -> tuple[Filter, ...]:
    return filter_.parts if isinstance(filter_, And) else (filter_,)


# -- places prepared -----------------------------------------------------------------------------------------


def prepared(scenario: Scenario, head: Any, places: Any, zone: str | None) -> Prepared | None:
    """What a replay over crossings needs to know but for the fixes, of which one row will do; None for others."""
    given = tables.load(head, "fixes")
    shape = shape_of(scenario, frozenset(map(str, given.columns)) - {"mobile", "t", "op"})
    if shape is None:
        return None
    data = tables.inputs(scenario, given, places, zone)
    still = data.tables["places"]
    if still.frame["t"].notna().any() or still.frame["op"].notna().any():
        return None
    stream = streams(data, data.instants[1]).by_name[shape.staying.name]
    lookouts = []
    for near in (shape.near, *shape.thirds.values()):
        made = _lookout(stream, near, data.metric)
        if made is None:
            return None
        lookouts.append(made)
    return Prepared(data, stream, scenario, shape, lookouts)


def _lookout(stream: Stream, near: Near, metric: str) -> tuple[Lookout | None, np.ndarray] | None:
    """A lookout over the places that are asked for, and which these are; no lookout where there are none."""
    regions = stream.regions[near.region]
    column = regions.columns.get(near.dimension)
    if not isinstance(column, Positions) or len(stream.start) != stream.clients:
        return None
    wanted = np.arange(stream.clients)
    if near.among is not None:
        wanted = np.flatnonzero(relating.among(near.among, regions, metric))
        if not len(wanted):
            return None, wanted
    made = lookout(column.take(wanted), near.reach, metric)
    return None if made is None else (made, wanted)


class Crossings(NamedTuple):
    """Who was near whom, from when to when."""

    place: np.ndarray
    mobile: np.ndarray
    start: np.ndarray
    end: np.ndarray


@dataclass(frozen=True)
class Prepared(Places):
    """Places in grids, and what is asked beyond being near them."""

    scenario: Scenario
    shape: Shape
    lookouts: list[tuple[Lookout | None, np.ndarray]]

    def replayed(self, source: Fixes, until: int | None, threads: int) -> Outcome:
        asked = [made for made, _ in self.lookouts if made is not None]
        met = crossed(source, asked, until, threads)
        end = met.instants.end
        seen = np.flatnonzero(met.first <= end)
        data = self._world(source.names[seen], met.first[seen], end)
        by_name = dict(streams(data, end).by_name)
        places = _numbers(self.stream.ids, by_name[self.shape.staying.name])
        mobiles = np.full(len(met.first), -1)
        mobiles[seen] = _numbers(source.names[seen], by_name[self.shape.moving.name])
        found, rows = [], iter(met.crossings)
        for made, wanted in self.lookouts:
            near = next(rows) if made is not None else Met.of([], Inside.of(0))
            near.pi[near.ended :] = FOREVER
            found.append(Crossings(places[wanted[near.place]], mobiles[near.mobile], near.tau, near.pi))
        lines = self._told(data, by_name, found, end)
        return Outcome(lines, counted(self.data, met.rows, met.instants), self.data, end, met.rows)

    def _world(self, mobiles: np.ndarray, first: np.ndarray, end: int) -> tables.Inputs:
        """The tables with one fix for each mobile, from which it is there."""
        here = {name: np.zeros(len(mobiles)) for name in tables.COORDINATES[self.data.metric]}
        head = {"mobile": mobiles, "t": self.data.clock.column(first), **here}
        rest = {name: rows for name, rows in self.data.tables.items() if name not in ("fixes", "places")}
        scenario = replace(self.scenario, tables=rest) if rest else self.scenario
        data = tables.inputs(scenario, pd.DataFrame(head), self.data.tables["places"], self.data.clock.zone)
        return replace(data, span=(min(first.min(initial=end), end), end))

    def _told(
        self, data: tables.Inputs, by_name: dict[str, Stream], found: list[Crossings], until: int
    ) -> Lines:
        moving = by_name[self.shape.moving.name]
        histories = {
            match: intervals.together(Sets(np.arange(len(c.start) + 1), c.start, c.end), c.mobile, moving.clients)
            for match, c in zip(self.shape.thirds, found[1:], strict=True)
        }
        clients = {self.shape.staying.role: found[0].place, self.shape.moving.role: found[0].mobile}
        width = by_name[self.scenario.subscriptions[0].name].clients
        lanes = _lanes(clients, found[0].start, found[0].end, width)
        names = {PUBLICATION: self.scenario.publications[0].name, SUBSCRIPTION: self.scenario.subscriptions[0].name}
        sides = Sides(local.Local(data, until, by_name), names, histories)
        accepted = _accepted(sides, lanes, list(self.shape.filters.values()))
        lane, tau, pi = accepted.lanes, accepted.start, accepted.end
        kept = tau <= until
        p, s = (lanes.clients[role][lane][kept] for role in (PUBLICATION, SUBSCRIPTION))
        tau, pi = tau[kept], pi[kept]
        over = pi <= until
        ids = [_ids(by_name[names[role]]) for role in (PUBLICATION, SUBSCRIPTION)]
        return Lines(p, s, tau, np.where(over, pi, 0), np.where(over, 0, -1), *ids)


@dataclass(frozen=True)
class Sides(local.Sides):
    """Two populations whose histories with third parties are known."""

    histories: dict[Match, Visits]

    def thirds(self, match: Match, known: Ref) -> Visits:
        return self.histories[match]


def _numbers(ids: np.ndarray, stream: Stream) -> np.ndarray:
    """The numbers that clients have in a stream."""
    return pd.Index(stream.ids, dtype=object).get_indexer(pd.Index(ids.tolist(), dtype=object))


def _ids(stream: Stream) -> np.ndarray:
    whole = len(stream.ids) and all(isinstance(i, int) and not isinstance(i, bool) for i in stream.ids)
    return stream.ids.astype(np.int64) if whole else stream.ids


def _lanes(clients: dict[str, np.ndarray], start: np.ndarray, end: np.ndarray, width: int) -> Lanes:
    """Crossings as lanes: the pairs, each with the times in which it is near."""
    key = clients[PUBLICATION] * width + clients[SUBSCRIPTION]
    order = intervals.ordered(key, start)
    key, start, end = key[order], start[order], end[order]
    new = np.ones(len(key), bool)
    new[1:] = key[1:] != key[:-1]
    first = np.flatnonzero(new)
    pairs = {PUBLICATION: key[first] // width, SUBSCRIPTION: key[first] % width}
    # Each client has one version, which is numbered as it is.
    versions = {PUBLICATION: key // width, SUBSCRIPTION: key % width}
    return Lanes(pairs, np.append(first, len(key)), start, end, versions)


def _accepted(sides: Sides, lanes: Lanes, filters: list[list[tuple[Filter, View]]]) -> Sets:
    """When what is left of both filters holds."""
    accepted = lanes.life
    for some in filters:
        if any(isinstance(rest, Everything) for rest, _ in some):
            continue
        said = intervals.nothing(lanes.count)
        for rest, view in some:
            said = intervals.union(said, Evaluation(sides, lanes, view).sets(rest))
        accepted = intervals.intersection(accepted, said)
    return accepted


def run(scenario: Scenario, fixes: Any, places: Any, zone: str | None = None, until: Any = None) -> Outcome | None:
    """Replay Parquet files over crossings; None where the scenario or the data ask for the general way."""
    sides = {p.rows for p in scenario.populations}
    source = parquet(fixes) if sides == {"fixes", "places"} and places is not None else None
    head = None if source is None else head_of(source)
    made = None if head is None else prepared(scenario, head, places, zone)
    if source is None or made is None:
        return None
    return made.replay(source, None if until is None else made.data.clock.ticks(until), cores())
