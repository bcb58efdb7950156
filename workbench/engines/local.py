"""The local engine: vectorised and indexed, in this process.

1. Every population becomes a `Stream` of versions (`streams`).
2. For each publication and subscription population a driving part of the filters gives candidate pairs
   (`candidates`); a filter without an indexable part runs over all pairs, with a warning that says how many.
3. Atoms are evaluated over the segments of candidate pairs, the rest is interval algebra (`lowering`), some pairs at
   a time.
4. What both filters accept is split into timelines.

Histories of third parties come from the same index, once for each client of the side that asks.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from workbench.engines import alike, candidates, extents, intervals, kernels, relating, sites
from workbench.engines.driving import Driver, covers, enough, widest
from workbench.engines.extents import Positions
from workbench.engines.intervals import Sets, Visits
from workbench.engines.lowering import (
    Evaluation,
    Lanes,
    Ref,
    View,
    is_plain,
    lanes_of_meetings,
    lanes_of_pairs,
    lanes_of_side,
    within,
)
from workbench.engines.streams import Stream, streams
from workbench.geometry import WGS84
from workbench.model.clock import Clock
from workbench.model.filters import And, Comparison, Dimension, Everything, Filter, Held, Match, Or
from workbench.model.filters import Regions as Named
from workbench.model.pubsub import PUBLICATION, SUBSCRIPTION, Population
from workbench.model.relations import Nearest
from workbench.model.spaces import Position
from workbench.tables import Inputs

VERSIONS_AT_ONCE = 4_000_000
MOST = 32
"""neighbours that are kept at hand"""
Filters = dict[str, tuple[Filter, list[View]]]
"""by role: a filter, and the choices of regions that it has"""
Lines = tuple[np.ndarray, ...]
"""publication, subscription, tau, pi"""


# -- the plan ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """How the pairs of two populations are found."""

    publications: str
    subscriptions: str
    driver: str
    candidates: int
    pairs: int
    then: tuple[str, ...] = ()
    """what their versions are asked besides"""
    over_time: tuple[str, ...] = ()
    """what is evaluated over the histories of these answers"""

    def __str__(self) -> str:
        lines = [
            f"{self.publications} × {self.subscriptions}: {self.candidates:,} of {self.pairs:,} pairs by {self.driver}",
            *(f"  then {part}" for part in self.then),
            *(f"  over time {part}" for part in self.over_time),
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class Plan:
    """What was done: for each two populations what found their candidate pairs, and what these are asked."""

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps))


def residual(filters: Iterable[Filter], drivers: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The parts of filters that did not find the candidates: those about the present, and those over time."""
    parts = [part for one in filters for part in (one.parts if isinstance(one, And) else (one,))]
    left = {repr(part): is_plain(part) for part in parts if repr(part) not in drivers}
    left = {said: plain for said, plain in left.items() if said != repr(Everything())}
    return tuple(said for said in left if left[said]), tuple(said for said in left if not left[said])


# -- atoms of two populations ----------------------------------------------------------------------------------


@dataclass
class Local:
    """The histories of a replay, each computed once."""

    data: Inputs
    until: int
    by_name: dict[str, Stream]
    known: dict[Any, Any] = field(default_factory=dict)
    looked_at: dict[str, Step] = field(default_factory=dict)
    """how third parties were found, by the match that asks for them"""

    def stream(self, name: str) -> Stream:
        return self.by_name[name]

    def once(self, key: Any, make: Any) -> Any:
        """A result kept under a key."""
        if key not in self.known:
            self.known[key] = make()
        return self.known[key]

    def placed(self, match: Match, left: tuple[str, str], right: tuple[str, str]) -> list[Any] | None:
        """What an index needs to know of a match; None where it does not help."""
        reach, dimension = candidates.reach_of(match.relation), candidates.position_dimension(match.space)
        if reach is None or dimension is None:
            return None
        kind = match.space.type_of(dimension)
        sides = []
        for population, region in (left, right):
            stream = self.stream(population)
            regions = stream.regions[region]
            if dimension not in regions.columns or regions.space.type_of(dimension) != kind:
                return None
            sides += [stream, regions.columns[dimension], regions.valid_in(match.space)]
        return [*sides, reach, self.data.metric, self.until]

    def near(self, match: Match, left: tuple[str, str], right: tuple[str, str]) -> np.ndarray | None:
        """The pairs of clients of two populations' regions that can match; None where no index helps."""
        asked = self.placed(match, left, right)
        return None if asked is None else candidates.near(*asked)

    def alike(self, match: Match, left: tuple[str, str], right: tuple[str, str]) -> np.ndarray | None:
        """The same by what the regions leave of other dimensions than a position."""
        one, two = self.stream(left[0]), self.stream(right[0])
        return alike.near(match.relation, match.space, one, one.regions[left[1]], two, two.regions[right[1]])

    def different(self, keys: np.ndarray, first: Stream, second: Stream) -> np.ndarray:
        """Pairs without those of one and the same client."""
        if first.population.table != second.population.table:
            return keys
        return keys[keys // second.clients != keys % second.clients]

    def some_at_a_time(self, keys: np.ndarray | None, first: Stream, second: Stream) -> Iterator[np.ndarray]:
        """Pairs of different clients, or all of them, so many that their segments stay bounded."""
        parts = candidates.everybody(first.clients, second.clients) if keys is None else [keys]
        for part in parts:
            yield from chunks(self.different(part, first, second), first, second)

    def thirds(self, match: Match, known: tuple[str, str]) -> Visits:
        """For each client of a population, the matches of its region with those of third parties."""
        return self.once(("thirds", match, known), lambda: self._thirds(match, known))  # type: ignore[no-any-return]

    def _thirds(self, match: Match, known: tuple[str, str]) -> Visits:
        third = match.third
        assert third is not None
        other = (third.among.population, third.among.region)
        left, right = (other, known) if match.left is third else (known, other)
        one, two = self.stream(left[0]), self.stream(right[0])
        keys, whole, driver = self.near(match, left, right), one.clients * two.clients, repr(match)
        if keys is None:
            keys = self.alike(match, left, right)
        if keys is None:
            driver = f"all pairs, for {match}"
            if min(one.clients, two.clients) > 1:
                _warn(f"what {known[0]!r} ask of third parties, {match}, has", whole)
        names = (other[0], known[0])
        self.looked_at[repr(match)] = Step(*names, driver, whole if keys is None else len(keys), whole)
        narrowed = relating.among(third.among, self.stream(other[0]).regions[other[1]], self.data.metric)
        found = []
        for part in self.some_at_a_time(keys, one, two):
            clients = {"left": part // two.clients, "right": part % two.clients}
            lanes = lanes_of_pairs({"left": one, "right": two}, clients)
            i, j = lanes.versions["left"], lanes.versions["right"]
            flags = narrowed[i if match.left is third else j]
            asked = np.flatnonzero(flags)
            r1, r2 = one.regions[left[1]], two.regions[right[1]]
            flags[asked] = relating.holds(
                match.relation, r1, i[asked], r2, j[asked], match.space, self.data.metric
            )
            sets = lanes.true(flags)
            visible = self.visible(lanes, "left" if match.left is third else "right", left[0], right[0])
            if visible is not None:
                sets = intervals.intersection(sets, visible)
            owner = lanes.clients["right" if match.left is third else "left"]
            found.append((owner[sets.lanes], sets.start, sets.end))
        count = self.stream(known[0]).clients
        owner, start, end = (np.concatenate([np.empty(0, np.int64), *(f[k] for f in found)]) for k in range(3))
        flat = Sets(np.arange(len(start) + 1), start, end)
        return intervals.together(flat, owner, count)

    def visible(self, lanes: Lanes, third: str, left: str, right: str) -> Sets | None:
        """When the one who looks may see the third party, lane by lane; None where everybody is seen."""
        scenario = self.data.scenario
        if not scenario.visibility:
            return None
        populations = {"left": scenario.population(left), "right": scenario.population(right)}
        own, other = (third, "left" if third == "right" else "right")
        if populations[own].role == SUBSCRIPTION:
            own, other = other, own
        alike = populations[own].role == populations[other].role
        filter_ = scenario.visibility["" if alike else populations[own].name]
        # Two of one role look at each other as a publication and a subscription do.
        sides = Sides(self, {PUBLICATION: populations[own].name, SUBSCRIPTION: populations[other].name})
        turned = replace(
            lanes,
            clients={PUBLICATION: lanes.clients[own], SUBSCRIPTION: lanes.clients[other]},
            versions={PUBLICATION: lanes.versions[own], SUBSCRIPTION: lanes.versions[other]},
        )
        said = intervals.nothing(lanes.count)
        for binding in scenario.bindings(filter_, populations[other]):
            said = intervals.union(said, Evaluation(sides, turned, View(PUBLICATION, binding)).sets(filter_))
        return said

    def neighbours(self, match: Match, left: tuple[str, str], right: tuple[str, str]) -> tuple[np.ndarray, Sets]:
        """The pairs of clients that ever are nearest neighbours, and when."""
        return self.once(  # type: ignore[no-any-return]
            ("neighbours", match, left, right), lambda: self._neighbours(match, left, right)
        )

    def _neighbours(self, match: Match, left: tuple[str, str], right: tuple[str, str]) -> tuple[np.ndarray, Sets]:
        assert isinstance(match.relation, Nearest)
        named = match.relation.among
        scenario = self.data.scenario
        role = scenario.population(right[0]).role
        sources: list[Named] = [named] if named is not None else scenario.declared_in(match.space, role)
        one, r1 = self.stream(left[0]), self.stream(left[0]).regions[left[1]]
        found: list[tuple[np.ndarray, ...]] = []
        base, mine = 0, -1
        pieces = []
        for source in sources:
            stream = self.stream(source.population)
            if (source.population, source.region) == right:
                mine = base
            narrowed = relating.among(source, stream.regions[source.region], self.data.metric)
            pieces.append((source, stream, narrowed, base))
            base += stream.clients
        width = self.stream(right[0]).clients
        if mine < 0:
            return np.empty(0, np.int64), intervals.nothing(0)
        still = self._still(match, left, [(*piece[1:], piece[0].region) for piece in pieces])
        if still is not None:
            kept = still[(still[:, 0] >= mine) & (still[:, 0] < mine + width)]
            keys, lane = np.unique(kept[:, 1] * width + kept[:, 0] - mine, return_inverse=True)
            return keys, intervals.merged(lane, kept[:, 2].copy(), kept[:, 3].copy(), len(keys))
        for client in range(one.clients):
            parts = []
            for source, stream, ok, first in pieces:
                others = np.arange(stream.clients)
                if stream.population.table == one.population.table:
                    others = others[others != client]
                clients = {"left": np.full(len(others), client), "right": others}
                lanes = lanes_of_pairs({"left": one, "right": stream}, clients)
                visible = self.visible(lanes, "right", left[0], source.population)
                if visible is not None:
                    lanes = within(lanes, visible)
                i, j = lanes.versions["left"], lanes.versions["right"]
                value = relating.closeness(
                    r1, i, stream.regions[source.region], j, match.space, self.data.metric
                )
                kept = ok[j] & (value < np.inf)
                slot = np.repeat(others, np.diff(lanes.offsets)) + first
                parts.append((lanes.start[kept], lanes.end[kept], slot[kept], value[kept]))
            start, end, slot, value = (np.concatenate(column) for column in zip(*parts, strict=True))
            if not len(start):
                continue
            slot, start, end = kernels.nearest(start, end, slot, value, base, match.relation.k)
            kept = (slot >= mine) & (slot < mine + width)
            found.append((client * width + slot[kept] - mine, start[kept], end[kept]))
        key, start, end = (np.concatenate([np.empty(0, np.int64), *(f[k] for f in found)]) for k in range(3))
        keys, lane = np.unique(key, return_inverse=True)
        return keys, intervals.merged(lane, start, end, len(keys))


    def _still(
        self, match: Match, left: tuple[str, str], sources: list[tuple[Stream, np.ndarray, int, str]]
    ) -> np.ndarray | None:
        """When which third parties are nearest, where those are points that never change; None where they are not.

        Rows of the number of the third party, the client who looks, from, to.
        """
        assert isinstance(match.relation, Nearest)
        one, (dimension, kind), *more = self.stream(left[0]), *match.space.dimensions
        if more or not isinstance(kind, Position) or self.data.scenario.visibility or match.relation.k > MOST:
            return None
        own = np.full(one.clients, -1, np.int64)
        found, listed = [], [(one, left[1])] + [(stream, region) for stream, _, _, region in sources]
        for n, (stream, region) in enumerate(listed):
            regions = stream.regions[region]
            column = regions.columns.get(dimension)
            valid = regions.valid_in(match.space)
            if n:
                _, ok, first, _ = sources[n - 1]
                valid &= ok
                if stream.population.table == one.population.table:
                    if own.max(initial=-1) >= 0:
                        return None
                    own = np.arange(one.clients) + first
                if len(stream.start) and not (
                    (np.diff(stream.offsets) <= 1).all()
                    and stream.end.min() >= intervals.FOREVER
                    and stream.start.max() <= one.start.min(initial=intervals.FOREVER)
                ):
                    return None
            if not isinstance(column, Positions) or regions.space.type_of(dimension) != kind:
                return None
            s = column.shapes
            if (s.kind[valid] != kernels.POINT).any() or (s.radius[valid] != 0.0).any():
                return None
            found.append((s, valid, stream.owner + (sources[n - 1][2] if n else 0)))
        geodesic = self.data.metric == WGS84
        across = np.concatenate([s.x[valid] for s, valid, _ in found])
        if geodesic and len(across) and np.ptp(across) > 180.0:
            return None
        x, y, z = (np.concatenate([getattr(s, name)[valid] for s, valid, _ in found[1:]]) for name in "xyz")
        slot = np.concatenate([slots[valid] for _, valid, slots in found[1:]])
        mine, valid, _ = found[0]
        if not len(slot):
            return np.empty((0, 4), np.int64)
        return sites.found_by(
            one.offsets, one.start, one.end, valid, mine.x, mine.y, mine.z, own, match.relation.k,
            sites.sites_of(x, y, z, slot), geodesic, os.cpu_count() or 1,
        )  # fmt: skip


@dataclass(frozen=True)
class Sides:
    """The atoms of a publication population and a subscription population."""

    local: Local
    names: dict[str, str]

    @property
    def clock(self) -> Clock:
        return self.local.data.clock

    @property
    def metric(self) -> str:
        return self.local.data.metric

    @property
    def streams(self) -> dict[str, Stream]:
        return {role: self.local.stream(name) for role, name in self.names.items()}

    def of(self, ref: Ref) -> tuple[str, str]:
        return self.names[ref.role], ref.region

    def thirds(self, match: Match, known: Ref) -> Visits:
        return self.local.thirds(match, self.of(known))

    def neighbours(self, match: Match, left: Ref, right: Ref) -> tuple[np.ndarray, Sets]:
        return self.local.neighbours(match, self.of(left), self.of(right))

    def side(self, role: str) -> Lanes:
        return lanes_of_side(role, self.streams[role])

    # -- candidate pairs: keys are publication * number of subscriptions + subscription ----------------------

    def candidates(self, node: Filter, view: View, values: bool) -> tuple[np.ndarray, str] | None:
        """The pairs for which a filter can hold under a binding, and what found them; None where nothing does.

        By positions; with ``values`` also by what else they have in common, which mostly leaves far more of them.
        """
        match node:
            case And():
                found = [made for part in node.parts if (made := self.candidates(part, view, values)) is not None]
                return min(found, key=lambda f: len(f[0])) if found else None
            case Or():
                parts = [self.candidates(part, view, values) for part in node.parts]
                if any(part is None for part in parts):
                    return None
                keys = np.unique(np.concatenate([part[0] for part in parts if part is not None]))
                return keys, " or ".join(part[1] for part in parts if part is not None)
            case Held():
                return self.candidates(node.part, view, values)
            case Match() if node.third is None:
                left, right = view.ref(node.left), view.ref(node.right)
                if left.role == right.role:
                    return None
                if isinstance(node.relation, Nearest):
                    return self._turned(self.neighbours(node, left, right)[0], left), repr(node)
                near = self.local.near(node, self.of(left), self.of(right))
                if near is None and values:
                    near = self.local.alike(node, self.of(left), self.of(right))
                return None if near is None else (self._turned(near, left), repr(node))
            case Comparison(op="==" | "in" | "meets", right=Dimension()) if values:
                return self._equal(node, view)
        return None

    def _equal(self, node: Comparison, view: View) -> tuple[np.ndarray, str] | None:
        """The pairs that have a value in common, where a comparison asks for one."""
        assert isinstance(node.right, Dimension)
        left, right = (view.ref(side.region) for side in (node.left, node.right))
        if left.role == right.role:
            return None
        sides: list[Any] = []
        for ref, side in ((left, node.left), (right, node.right)):
            stream = self.streams[ref.role]
            sides += [stream, stream.regions[ref.region].column(side.dimension), np.ones(len(stream.start), bool)]
        keys = alike.fewest([alike.common(*sides)])
        return None if keys is None else (self._turned(keys, left), repr(node))

    def indexed(self, driver: Driver) -> bool:
        """Whether an index can tell the meetings of a match one by one."""
        left, right = driver.view.ref(driver.match.left), driver.view.ref(driver.match.right)
        asked = self.local.placed(driver.match, self.of(left), self.of(right))
        return not (asked is None or len(candidates.anywhere(*asked[:3])) or len(candidates.anywhere(*asked[3:6])))

    def meetings(self, drivers: list[Driver]) -> Iterator[Lanes]:
        """The pairs in which one of the matches holds, with the segments in which it does."""
        streams = self.streams
        everything = [np.ones(len(streams[role].start), bool) for role in (PUBLICATION, SUBSCRIPTION)]
        first, second = streams[PUBLICATION], streams[SUBSCRIPTION]
        for window in candidates.parts(first, everything[0], second, everything[1]):
            found = []
            for match, view in drivers:
                left, right = view.ref(match.left), view.ref(match.right)
                one, a, valid, two, b, also, *rest = self.local.placed(match, self.of(left), self.of(right)) or []
                masks = window if left.role == PUBLICATION else window[::-1]
                i, j = candidates.meetings(one, a, valid & masks[0], two, b, also & masks[1], *rest)
                r1, r2 = one.regions[left.region], two.regions[right.region]
                # Most candidates of an index fail: what is left is sorted and looked at again.
                held = relating.holds(match.relation, r1, i, r2, j, match.space, self.metric)
                i, j = i[held], j[held]
                found.append((i, j) if left.role == PUBLICATION else (j, i))
            i, j = found[0]
            if len(found) > 1:
                key = np.unique(np.concatenate([i * len(second.start) + j for i, j in found]))
                i, j = np.divmod(key, len(second.start))
            yield lanes_of_meetings(streams, {PUBLICATION: i, SUBSCRIPTION: j})

    def _turned(self, keys: np.ndarray, left: Ref) -> np.ndarray:
        if left.role == PUBLICATION:
            return keys
        few, many = self.streams[PUBLICATION].clients, self.streams[SUBSCRIPTION].clients
        return np.sort(keys % few * many + keys // few)


def chunks(keys: np.ndarray, first: Stream, second: Stream) -> Iterator[np.ndarray]:
    """Pairs, so many at a time that their segments stay bounded."""
    cost = np.diff(first.offsets)[keys // second.clients] + np.diff(second.offsets)[keys % second.clients]
    turn = np.flatnonzero(np.diff(np.cumsum(cost) // VERSIONS_AT_ONCE)) + 1
    for part in np.split(keys, turn):
        if len(part):
            yield part


# -- from filters to timelines -------------------------------------------------------------------------------


def _driver(sides: Sides, filters: Filters, values: bool) -> tuple[np.ndarray, str] | None:
    found = []
    for filter_, views in filters.values():
        parts = [sides.candidates(filter_, view, values) for view in views]
        if parts and all(part is not None for part in parts):
            keys = np.unique(np.concatenate([part[0] for part in parts if part is not None]))
            found.append((keys, ", ".join(dict.fromkeys(part[1] for part in parts if part is not None))))
    return min(found, key=lambda f: len(f[0])) if found else None


def sides_of(local: Local, publications: Population, subscriptions: Population) -> tuple[Sides, Filters]:
    """Two populations, and the filters of both with the choices of regions that they have."""
    sides = Sides(local, {PUBLICATION: publications.name, SUBSCRIPTION: subscriptions.name})
    scenario = local.data.scenario
    filters = {}
    for own, other in ((publications, subscriptions), (subscriptions, publications)):
        views = [View(own.role, binding) for binding in scenario.bindings(own.filter, other)]
        filters[own.role] = (own.filter, views)
    return sides, filters


def _pairs(local: Local, publications: Population, subscriptions: Population) -> tuple[list[Lines], Step]:
    """The maximal times in M of two populations: publication, subscription, tau, pi."""
    sides, filters = sides_of(local, publications, subscriptions)
    first, second = sides.streams[PUBLICATION], sides.streams[SUBSCRIPTION]
    whole = first.clients * second.clients
    if not all(views for _, views in filters.values()):
        return [], Step(publications.name, subscriptions.name, "no region to choose", 0, whole)
    found, driver, count = [], "", 0
    drivers = drivers_of(sides, filters)
    if drivers:
        driver = ", ".join(dict.fromkeys(repr(driver.match) for driver in drivers))
        for lanes in sides.meetings(drivers):
            count += lanes.count
            found.append(accepted(sides, lanes, filters))
    else:
        keys, driver = _candidates(sides, filters, whole)
        for part in local.some_at_a_time(keys, first, second):
            count += len(part)
            clients = {PUBLICATION: part // second.clients, SUBSCRIPTION: part % second.clients}
            found.append(accepted(sides, lanes_of_pairs(sides.streams, clients), filters))
    if publications.transient:
        found = [_events(first, *lines) for lines in found]
    rest = residual((filter_ for filter_, _ in filters.values()), [*driver.split(", "), *driver.split(" or "), driver])
    return found, Step(publications.name, subscriptions.name, driver, count, whole, *rest)


def drivers_of(sides: Sides, filters: Filters) -> list[Driver]:
    """Matches of which one has to hold wherever a pair matches, and whose meetings are all that has to be seen."""
    for filter_, views in filters.values():
        every = [covers(filter_, view, sides.indexed) for view in views]
        drivers = [driver for some in every if some for driver in some]
        if None not in every and all(enough(f, v, drivers) for f, vs in filters.values() for v in vs):
            return widest(drivers)
    return []


def _candidates(sides: Sides, filters: Filters, whole: int) -> tuple[np.ndarray | None, str]:
    """Candidate pairs, to be looked at over their whole common lifetime, and what found them; None for all pairs."""
    for values in (False, True):
        driven = _driver(sides, filters, values)
        if driven is not None:
            return driven
    if min(stream.clients for stream in sides.streams.values()) > 1:  # of one and many, no index would spare any
        _warn(f"the filters of {sides.names[PUBLICATION]!r} and {sides.names[SUBSCRIPTION]!r} have", whole)
    return None, "all pairs"


def _warn(who: str, pairs: int) -> None:
    said = f"{who} no part that an index could serve: all {pairs:,} pairs are looked at"
    warnings.warn(said, UserWarning, stacklevel=7)


def accepted(sides: Sides, lanes: Lanes, filters: Filters) -> Lines:
    """When each side accepts the other: publication, subscription, tau, pi."""
    accepted = None
    for filter_, views in filters.values():
        if isinstance(filter_, Everything):
            continue
        said = None
        for view in views:
            one = Evaluation(sides, lanes, view).sets(filter_)
            said = one if said is None else intervals.union(said, one)
        assert said is not None
        accepted = said if accepted is None else intervals.intersection(accepted, said)
    if accepted is None:
        accepted = lanes.life
    lane = accepted.lanes
    return lanes.clients[PUBLICATION][lane], lanes.clients[SUBSCRIPTION][lane], accepted.start, accepted.end


def _events(stream: Stream, p: np.ndarray, s: np.ndarray, start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, ...]:
    """Timelines of transient publications cut where one event follows another."""
    _, a, b, line, version = kernels.overlay(
        np.arange(len(p)), p, np.arange(len(p) + 1), start, end, stream.offsets, stream.start, stream.end
    )
    if not len(line):
        return p, s, start, end
    new = np.ones(len(line), bool)
    new[1:] = (line[1:] != line[:-1]) | (stream.since[version[1:]] != stream.since[version[:-1]])
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(line)) - 1
    return p[line[first]], s[line[first]], a[first], b[last]


def lines_of(local: Local, found: list[tuple[Population, Population, tuple[np.ndarray, ...]]]) -> pd.DataFrame:
    """Timelines as the declared table, in the declared order."""
    scenario, until = local.data.scenario, local.until
    names = {PUBLICATION: _names(local, scenario.publications), SUBSCRIPTION: _names(local, scenario.subscriptions)}
    parts: list[tuple[np.ndarray, ...]] = []
    for publications, subscriptions, (p, s, tau, pi) in found:
        kept = tau <= until
        p, s, tau, pi = p[kept], s[kept], tau[kept], pi[kept]
        over = pi <= until
        first, second = local.stream(publications.name), local.stream(subscriptions.name)
        ended = np.where(over, 0, -1)
        gone = ~intervals.contains(first.life, p, pi)
        if publications.transient:
            gone |= _follows(first, p, pi)
        ended[over & gone] = 1
        ended[over & ~intervals.contains(second.life, s, pi)] = 2
        one, two = names[PUBLICATION][0][publications.name], names[SUBSCRIPTION][0][subscriptions.name]
        parts.append((p + one, s + two, tau, np.where(over, pi, 0), ended))
    columns = [np.concatenate([np.empty(0, np.int64), *(part[k] for part in parts)]) for k in range(5)]
    return table_of(columns, names[PUBLICATION][1], names[SUBSCRIPTION][1], local.data.clock)


def _follows(stream: Stream, p: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Whether a new event of the publication begins at t."""
    new = np.ones(len(stream.start), bool)
    new[1:] = (stream.since[1:] != stream.since[:-1]) | (stream.owner[1:] != stream.owner[:-1])
    begun = np.flatnonzero(new)
    offsets = np.searchsorted(begun, stream.offsets)
    start = stream.start[begun]
    return intervals.contains(Sets(offsets, start, start + 1), p, t)


def _names(local: Local, populations: Sequence[Population]) -> tuple[dict[str, int], np.ndarray]:
    """What one side's clients are called in tables, and where each population's begin."""
    starts, listed = {}, []
    at = 0
    for population in populations:
        ids = local.stream(population.name).ids
        starts[population.name] = at
        at += len(ids)
        several = len(populations) > 1
        listed.append(np.array([f"{population.name}/{i}" for i in ids], dtype=object) if several else ids)
    return starts, np.concatenate(listed)


def _ranks(names: np.ndarray, index: np.ndarray) -> np.ndarray:
    """The place of each name in the declared order: numbers first, then text."""
    if names.dtype.kind == "i":
        return names[index]
    used = np.flatnonzero(np.bincount(index, minlength=len(names)))
    number = {i: isinstance(names[i], int | float | np.number) for i in used}
    order = sorted(used, key=lambda i: ("", names[i]) if number[i] else ("s", str(names[i])))
    ranks = np.empty(len(names), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks[index]


def table_of(columns: list[np.ndarray], first: np.ndarray, second: np.ndarray, clock: Clock) -> pd.DataFrame:
    p, s, tau, pi, ended = columns
    order = intervals.ordered(tau, _ranks(first, p), _ranks(second, s))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        p, s, tau, pi, ended = pool.map(lambda column: column.take(order), (p, s, tau, pi, ended))
    words = np.array(["unmatch", "publication_removed", "subscription_removed", None], dtype=object)
    open_ = ended < 0
    return pd.DataFrame(
        {
            "publication": _ids(first, p),
            "subscription": _ids(second, s),
            "tau": _times(tau, None, clock),
            "pi": _times(pi, open_, clock),
            "ended": pd.Series(words[ended], dtype=object),
        },
        copy=False,
    )


def _ids(names: np.ndarray, index: np.ndarray) -> pd.Series:
    used = names[index]
    if names.dtype.kind == "i" and len(index):
        return pd.Series(used)
    seen = names[np.flatnonzero(np.bincount(index, minlength=len(names)))]
    kinds = [isinstance(n, int | np.integer) and not isinstance(n, bool) for n in seen]
    return pd.Series(used.astype(np.int64) if kinds and all(kinds) else used.astype(object))


def _times(ticks: np.ndarray, null: np.ndarray | None, clock: Clock) -> pd.Series:
    if clock.unit is None:
        if null is None:
            return pd.Series(ticks)
        return pd.Series(pd.arrays.IntegerArray(ticks, null))
    stamps = pd.Series(ticks.astype(f"datetime64[{clock.unit}]")).dt.tz_localize("UTC")
    return stamps if null is None else stamps.mask(null)


def run(data: Inputs, until: int) -> tuple[pd.DataFrame, dict[str, int]]:
    """Replay the tables: the timelines, and what was counted on the way."""
    return planned(data, until)[:2]


def planned(
    data: Inputs, until: int, known: Callable[[Mapping[str, Stream]], dict[Any, Any]] = lambda by_name: {}
) -> tuple[pd.DataFrame, dict[str, int], Plan]:
    """Replay the tables, and say how: the timelines, what was counted, and what found the candidates.

    ``known`` gives histories that somebody has found already (see `Local.once`), of the clients of these streams.
    """
    made = streams(data, until)
    counts = {"rows_set_aside": made.set_aside, "instants": made.instants}
    with extents.assuming(False) as refused:
        timelines, plan = _replayed(data, until, dict(made.by_name), known(made.by_name))
    if refused:
        # Only an answer that matters is refused.
        with extents.assuming(True), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            otherwise, _ = _replayed(data, until, dict(made.by_name), known(made.by_name))
        if not timelines.equals(otherwise):
            raise refused[0]
    return timelines, counts, plan


def _replayed(
    data: Inputs, until: int, by_name: dict[str, Stream], known: dict[Any, Any]
) -> tuple[pd.DataFrame, Plan]:
    local = Local(data, until, by_name, dict(known))
    found, steps = [], []
    for publications in data.scenario.publications:
        for subscriptions in data.scenario.subscriptions:
            lines, step = _pairs(local, publications, subscriptions)
            steps.append(step)
            found += [(publications, subscriptions, line) for line in lines]
    return lines_of(local, found), Plan((*steps, *local.looked_at.values()))
