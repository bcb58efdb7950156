"""Surroundings: what filters say of third parties, kept from one instant to the next.

Two relations look at others than the two sides of a pair:

* nearest neighbours (4.3.2). `Neighbours` keeps those of each region that asks, and the ball that reaches up to the
  k-th of them. They change when one of them changes, and when another one comes into the ball: what happens outside
  cannot matter. Where there are fewer than k the ball is everywhere.
* any region (5.1, 5.2). `Company` keeps the regions of third parties that a region matches. Those change one at a
  time, with the third party that comes or goes.

Which pairs can have changed follows from what has: of neighbours the pair itself, of company all pairs of its region.

The present is a function of what clients are like: to take something back, it is brought up to what they were like
before. The past of neighbours is exact; of company are kept all instants at which it may have changed, and all that
were ever in it, some of which were taken back: the definitions look at these only.
"""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from workbench.engines.candidates import position_dimension, reach_of
from workbench.engines.nearby import Box, Nearby, box_of
from workbench.geometry import EARTH_RADIUS_M, RADIAN, WGS84
from workbench.model.extents import encloses
from workbench.model.filters import Match, Regions, RegionTerm, Var
from workbench.model.history import Client, Named, Party, State
from workbench.model.regions import Region
from workbench.model.relations import Nearest, closeness, distance
from workbench.model.scenario import Binding, Scenario
from workbench.model.shapes import Shape

States = Mapping[Client, State | None]
NOBODY: frozenset[Named] = frozenset()
FINER = 1024
"""A look around begins that much nearer than others are on average: they may stand in crowds."""


class Lot:
    """Regions of some kinds as they are now, and where: those that a match in a space can be about."""

    def __init__(self, scenario: Scenario, kinds: Iterable[Regions], match: Match, metric: str) -> None:
        self._kinds = [(kind, scenario.population(kind.population).table) for kind in kinds]
        self._space = match.space
        self._dimension = position_dimension(match.space)
        self._metric = metric
        self.regions: dict[Named, Region] = {}
        self.places: Nearby[Named] = Nearby()

    def changed(self, states: States) -> dict[Named, Region | None]:
        """What is another region in these states than it is now, None where it is none any more."""
        found: dict[Named, Region | None] = {}
        for kind, table in self._kinds:
            for client, state in states.items():
                if client.table != table:
                    continue
                instance = state.instances.get(kind.population) if state else None
                region = instance.regions[kind.region] if instance else None
                if region is not None and not self._counts(kind, region):
                    region = None
                named = Named(Party(kind.population, client), kind.region)
                if region != self.regions.get(named):
                    found[named] = region
        return found

    def _counts(self, kind: Regions, region: Region) -> bool:
        return region.valid_in(self._space) and all(encloses(e, region[d], self._metric) for d, e in kind.where)

    def put(self, named: Named, region: Region | None) -> None:
        if region is None:
            self.regions.pop(named, None)
            self.places.drop(named)
        else:
            self.regions[named] = region
            self.places.put(named, self.box(region, 0.0))

    @property
    def spacing(self) -> float:
        """About how far regions are from the next, in metres; never nothing."""
        return self.places.spacing * (EARTH_RADIUS_M * RADIAN if self._metric == WGS84 else 1.0)

    def shape(self, region: Region) -> Shape | None:
        """Where a region is; None where its space has no position."""
        extent = dict(region.constraints).get(self._dimension) if self._dimension else None
        return extent if isinstance(extent, Shape) else None

    def box(self, region: Region, reach: float) -> Box | None:
        """The box of a region grown by a reach, None for everywhere."""
        shape = self.shape(region)
        return None if shape is None or reach == math.inf else box_of(shape, reach, self._metric)


class Ball(NamedTuple):
    """The nearest neighbours of a region."""

    near: frozenset[Named]
    limit: float
    """how close the k-th is, infinite where there are fewer"""
    reach: float
    """how far away that is at most; infinite where it is not known"""


class Neighbours:
    """The nearest neighbours of all regions of one kind, by one match."""

    def __init__(self, scenario: Scenario, match: Match, asking: Regions, among: list[Regions], metric: str) -> None:
        assert isinstance(match.relation, Nearest)
        self.match = match
        self._k = match.relation.k
        self._metric = metric
        self._asking = Lot(scenario, [asking], match, metric)
        self._others = Lot(scenario, among, match, metric)
        self._balls: dict[Named, Ball] = {}
        self._around: Nearby[Named] = Nearby()
        """where the balls are"""
        self._near_to: dict[Named, dict[Named, None]] = {}
        """whose neighbour a region is"""
        self._turns: dict[Named, tuple[list[int], list[frozenset[Named]]]] = {}
        """since when each had which neighbours"""

    def of(self, asking: Named) -> frozenset[Named]:
        """The neighbours of a region now."""
        return self._balls[asking].near if asking in self._balls else NOBODY

    def near_to(self, other: Named) -> Iterable[Named]:
        """Whose neighbour a region is now."""
        return self._near_to.get(other, ())

    def at(self, asking: Named, t: int) -> frozenset[Named]:
        """The neighbours of a region at a tick."""
        times, found = self._turns.get(asking, ((), ()))
        k = bisect_right(times, t)
        return found[k - 1] if k else NOBODY

    def turns(self, asking: Named, first: int, last: int) -> list[int]:
        """The instants after ``first`` and up to ``last`` at which a region got other neighbours."""
        times = self._turns[asking][0] if asking in self._turns else []
        return times[bisect_right(times, first) : bisect_right(times, last)]

    def put(self, t: int, states: States) -> list[tuple[Named, Named]]:
        """Look at clients that are in other states after t; gives who became or ceased to be whose neighbour."""
        stale: dict[Named, set[Named]] = {}
        for named, region in self._others.changed(states).items():
            for asking in self._near_to.get(named, ()):
                stale.setdefault(asking, set())
            self._others.put(named, region)
            for asking in self._entered(named, region) if region is not None else ():
                stale.setdefault(asking, set()).add(named)
        for asking, region in self._asking.changed(states).items():
            self._asking.put(asking, region)
            stale.setdefault(asking, set())
        return [(asking, other) for asking in stale for other in self._look(t, asking, stale[asking])]

    def _entered(self, other: Named, region: Region) -> Iterator[Named]:
        """In whose ball a region lies, by what the balls are before the instant is looked at."""
        for asking in self._around.touching(self._others.box(region, 0.0)):
            mine = self._asking.regions[asking]
            near = asking.party.client != other.party.client
            if near and self._closeness(mine, region) <= self._balls[asking].limit:
                yield asking

    def _look(self, t: int, asking: Named, entered: set[Named]) -> frozenset[Named]:
        """Find the neighbours of a region anew; gives in whom they differ."""
        before, region = self.of(asking), self._asking.regions.get(asking)
        if region is None:
            self._balls.pop(asking, None)
            self._around.drop(asking)
        else:
            self._balls[asking] = ball = self._ball(asking, region, before | entered)
            self._around.put(asking, self._asking.box(region, ball.reach))
        after = self.of(asking)
        for other in before - after:
            del self._near_to[other][asking]
            if not self._near_to[other]:
                del self._near_to[other]
        for other in after - before:
            self._near_to.setdefault(other, {})[asking] = None
        self._turn(t, asking, after)
        return before ^ after

    def _turn(self, t: int, asking: Named, after: frozenset[Named]) -> None:
        """Write down neighbours since t; what is taken back leaves no trace."""
        times, found = self._turns.setdefault(asking, ([], []))
        if times and times[-1] == t:
            times.pop()
            found.pop()
        if (found[-1] if found else NOBODY) != after:
            times.append(t)
            found.append(after)

    def _ball(self, asking: Named, region: Region, known: frozenset[Named]) -> Ball:
        """The neighbours of a region; k of those known say how far one has to look, unless one went far away."""
        reach = self._nearest(region, (other for other in known if other in self._others.regions)).reach
        if len(self._others.regions) > self._k:
            before = self._balls[asking].reach if asking in self._balls else math.inf
            tried = max(before if before < math.inf else 0.0, self._others.spacing / FINER)
            reach = min(reach, 2 * tried)
        while True:
            box = self._asking.box(region, reach)
            touched = self._others.places.touching(box)
            ball = self._nearest(region, (o for o in touched if o.party.client != asking.party.client))
            if box is None or ball.reach <= reach or len(touched) == len(self._others.regions):
                return ball
            reach = 2 * reach if len(ball.near) < self._k else ball.reach

    def _nearest(self, region: Region, others: Iterable[Named]) -> Ball:
        close = {other: self._closeness(region, self._others.regions[other]) for other in others}
        ranked = sorted(close.values())
        limit = ranked[self._k - 1] if len(ranked) >= self._k else math.inf
        near = frozenset(other for other, mine in close.items() if mine <= limit and mine < math.inf)
        if limit == math.inf:
            return Ball(near, limit, math.inf)
        theirs = (self._others.regions[other] for other in near)
        return Ball(near, limit, max(distance(region, one, self.match.space, self._metric) for one in theirs))

    def _closeness(self, region: Region, other: Region) -> float:
        return closeness(region, other, self.match.space, self._metric)


class Company:
    """The regions of third parties that each region of one kind matches, by one match."""

    def __init__(self, scenario: Scenario, match: Match, asking: Regions, metric: str) -> None:
        assert match.third is not None
        self.match = match
        self._metric = metric
        self._reach = reach_of(match.relation)
        self._asking = Lot(scenario, [asking], match, metric)
        self._thirds = Lot(scenario, [match.third.among], match, metric)
        self._now: dict[Named, set[Named]] = {}
        self._ever: dict[Named, dict[Named, None]] = {}
        self._turns: dict[Named, list[int]] = {}

    def now(self, asking: Named) -> bool:
        """Whether there is any region that a region matches now."""
        return bool(self._now.get(asking))

    def ever(self, asking: Named) -> Iterable[Named]:
        """All regions that a region may ever have matched."""
        return self._ever.get(asking, ())

    def turns(self, asking: Named, first: int, last: int) -> list[int]:
        """The instants after ``first`` and up to ``last`` at which others' changes may have changed its company."""
        times = self._turns.get(asking, [])
        return times[bisect_right(times, first) : bisect_right(times, last)]

    def put(self, t: int, states: States) -> list[Named]:
        """Look at clients that are in other states after t; gives whose company has changed through others."""
        thirds, asking = self._thirds.changed(states), self._asking.changed(states)
        near = {named: self._near(self._asking, self._thirds.regions.get(named)) for named in thirds}
        for named, region in thirds.items():
            self._thirds.put(named, region)
            near[named] |= self._near(self._asking, region)
        for named, region in asking.items():
            self._asking.put(named, region)
            others = self._near(self._thirds, region)
            self._now[named] = {other for other in others if self._matches(named, other)}
            self._ever.setdefault(named, {}).update(dict.fromkeys(self._now[named]))
        changed = []
        for third in thirds:
            for named in near[third] - asking.keys():
                matches = self._matches(named, third)
                if matches == (third in self._now[named]):
                    continue
                if matches:
                    self._now[named].add(third)
                    self._ever[named][third] = None
                else:
                    self._now[named].remove(third)
                times = self._turns.setdefault(named, [])
                if times[-1:] != [t]:
                    insort(times, t)
                changed.append(named)
        return changed

    def _near(self, lot: Lot, region: Region | None) -> set[Named]:
        """Which regions of a lot are near enough to match a region."""
        if region is None:
            return set()
        return lot.places.touching(lot.box(region, math.inf if self._reach is None else self._reach))

    def _matches(self, asking: Named, third: Named) -> bool:
        one, other = self._asking.regions.get(asking), self._thirds.regions.get(third)
        if one is None or other is None or asking.party.client == third.party.client:
            return False
        pair = (other, one) if self.match.left is self.match.third else (one, other)
        return self.match.relation.holds(*pair, self.match.space, self._metric)


def kind_of(term: RegionTerm, own: str, other: str, binding: Binding) -> Regions | None:
    """Which regions a term stands for, None for those of third parties."""
    if not isinstance(term, Var):
        return None
    return Regions(own, term.name) if term.side == "own" else Regions(other, binding[term.name])


class Surroundings:
    """Everything that the filters of a scenario say of third parties, where everybody is seen."""

    def __init__(self, scenario: Scenario, metric: str) -> None:
        assert not scenario.visibility
        self._roles = {p.name: p.role for p in scenario.populations}
        self._neighbours: dict[tuple[int, str, str, str], Neighbours] = {}
        self._company: dict[tuple[int, str, str], Company] = {}
        self.pairs: dict[tuple[Named, Named], None] = {}
        """who became or ceased to be whose neighbour since this was emptied"""
        self.regions: dict[Named, None] = {}
        """whose company changed"""
        for own, other, binding, node in scenario.nodes():
            if not isinstance(node, Match):
                continue

            left, right = (kind_of(term, own.name, other.name, binding) for term in (node.left, node.right))
            asking = left or right
            assert asking is not None
            if node.third is not None:
                key = (id(node), asking.population, asking.region)
                if key not in self._company:
                    self._company[key] = Company(scenario, node, asking, metric)
            elif isinstance(node.relation, Nearest):
                assert right is not None
                role = self._roles[right.population]
                among = scenario.declared_in(node.space, role) if node.relation.among is None else [node.relation.among]
                with_role = (id(node), asking.population, asking.region, role)
                if with_role not in self._neighbours:
                    self._neighbours[with_role] = Neighbours(scenario, node, asking, among, metric)

    def neighbours(self, match: Match, population: str, region: str, other: str) -> Neighbours | None:
        """Those that a nearest match of regions with those of another population is about, if it is one of ours."""
        return self._neighbours.get((id(match), population, region, self._roles[other]))

    def company(self, match: Match, asking: Named) -> Company | None:
        """That which a match with third parties is about, if it is one of ours."""
        return self._company.get((id(match), asking.party.population, asking.region))

    def put(self, t: int, states: States) -> None:
        """Look at clients that are in other states after t."""
        for neighbours in self._neighbours.values():
            self.pairs.update(dict.fromkeys(neighbours.put(t, states)))
        for company in self._company.values():
            self.regions.update(dict.fromkeys(company.put(t, states)))

    def settle(self) -> None:
        """Forget what has changed: it was looked at."""
        self.pairs.clear()
        self.regions.clear()
