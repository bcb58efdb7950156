"""Routing filters: a stateless superset of a subject-space filter, by which brokers route.

A subscription (I_S, f_S) of ours looks at time, at third parties and at what the other side accepts; a broker on the
way knows none of that. It routes by an `Interest`: f_S with the subscriber's own regions put in as they were announced,
and everything that cannot be decided on the way left undecided. Undecided means forward. So:

* ``tau``, ``pi``, visits, `Latch` and nearest neighbours are undecided; `Held` is false where its part is;
* the publication's own filter f_P is not looked at;
* third parties that a filter looks at (``any_region``, ``among``, nearest) are followed wherever they are;
* of a moving subscriber the position may be taken as known to ``blur_m`` only (`math.inf`: not at all). Then it need
  not announce itself at every step, and more is forwarded in vain.

A broker forwards a report if the interest accepts what was told *before*, or what is told *now*: no exit is lost. The
home broker decides exactly (`homes`); what it was sent in vain is counted there as a false forward.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from workbench import geometry
from workbench.brokering.federation.index import Box, Need, Offer, grown
from workbench.engines.candidates import position_dimension, reach_of
from workbench.errors import ScenarioError
from workbench.model import shapes
from workbench.model.clock import Clock
from workbench.model.extents import ANYWHERE, Extent, compare
from workbench.model.filters import (
    And,
    Comparison,
    Dimension,
    Everything,
    Filter,
    Held,
    Latch,
    Match,
    Not,
    Or,
    RegionTerm,
    Var,
)
from workbench.model.history import Client, Party, State
from workbench.model.pubsub import PUBLICATION, SUBSCRIPTION, Population
from workbench.model.regions import Region
from workbench.model.relations import Nearest, Overlap, UserDefined, Within
from workbench.model.scenario import Binding, Scenario
from workbench.model.shapes import Shape
from workbench.model.spaces import Position
from workbench.model.times import TimeComparison
from workbench.model.visits import VisitComparison

Regions = Mapping[str, Region]
Number = tuple[int, int, int]
"""of a report: the instant at which its client joined, a running number, and which move of a broker told it anew"""
UNNUMBERED: Number = (0, 0, 0)
PLANE = {metric: (f"{metric} x", f"{metric} y") for metric in (geometry.PLANAR, geometry.WGS84)}
"""what an index calls the two dimensions in which things have a place"""


class Report(NamedTuple):
    """What a client tells of itself: its state after an instant, under the number that the client gave it.

    Who left and comes back goes on above all that it said before. ``state`` is None where a broker does not know the
    client any longer.
    """

    client: Client
    number: Number
    t: int
    state: State | None
    origin: str
    ever: frozenset[str] = frozenset()
    """the populations that it was ever in"""

    @property
    def published(self) -> float:
        return self.t

    @property
    def offer(self) -> Offer:
        """What it offers, for an index."""
        return Offer(self)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """A report has regions, and no attributes."""
        return {}

    def boxes(self, dimensions: tuple[str, ...]) -> list[Box] | None:
        """Where its publications are, for an index; None where that cannot be said in boxes."""
        metric = next((m for m, plane in PLANE.items() if plane == dimensions), None)
        if metric is None or self.state is None:
            return []
        found: list[Box] = []
        for instance in self.state.instances.values():
            for region in instance.regions.values():
                given = dict(region.constraints)
                for label in [label for label, kind in region.space.dimensions if isinstance(kind, Position)]:
                    extent = given.get(label)
                    if not isinstance(extent, Shape) or extent.kind != "point":
                        return None
                    found.append(_box(extent, 0.0, metric))
        return found

    def __repr__(self) -> str:
        return f"report {self.number[1]} of {self.client} at {self.t}" + (" (gone)" if self.state is None else "")


@dataclass(frozen=True, eq=False)
class World:
    """What all brokers agree on: the scenario, its clock and metric, and whether its filters look back."""

    scenario: Scenario
    clock: Clock
    metric: str
    remembers: bool = False

    @staticmethod
    def of(
        scenario: Scenario, clock: Clock | None = None, metric: str | None = None, looks_back: bool = False
    ) -> World:
        """The world of a scenario; ``looks_back`` where filters that look back in time will come later.

        >>> from workbench.scenarios.proximity import scenario
        >>> World.of(scenario()).remembers
        False
        """
        rows = {p.table for p in scenario.populations}
        for population in scenario.populations:
            if population.profiles in rows:
                raise ScenarioError(
                    f"{population.name!r} joins profiles {population.profiles!r}, which are clients of their own; in a "
                    "federation a profile is on its owner's device"
                )
        remembers = looks_back or any(back_in_time(p.filter) for p in scenario.populations)
        made = clock or Clock(tick=scenario.tick)
        scenario.check_clock(made)
        return World(scenario, made, metric or scenario.metric or geometry.PLANAR, remembers)

    @cached_property
    def thirds_of_publications(self) -> frozenset[str]:
        """The third parties that the filters of publications look at."""
        found = (thirds(self.scenario, p, p.filter) for p in self.scenario.publications)
        return frozenset().union(*found)


def back_in_time(filter: Filter) -> bool:
    """Whether a filter needs more than the present.

    >>> from workbench.model import held, own, seconds
    >>> back_in_time(held(own.car["fuel"] < 20, seconds(5)))
    True
    """
    return any(isinstance(node, TimeComparison | VisitComparison | Held | Latch) for node in filter.walk())


def thirds(scenario: Scenario, population: Population, filter: Filter) -> frozenset[str]:
    """The populations of third parties that a filter looks at."""
    found: set[str] = set()
    opposite = PUBLICATION if population.role == SUBSCRIPTION else SUBSCRIPTION
    for node in filter.walk():
        if not isinstance(node, Match):
            continue
        if node.third is not None:
            found.add(node.third.among.population)
        if isinstance(node.relation, Nearest):
            if node.relation.among is not None:
                found.add(node.relation.among.population)
            else:
                mine = isinstance(node.right, Var) and node.right.side == "own"
                role = population.role if mine else opposite
                found.update(r.population for r in scenario.declared_in(node.space, role))
    return frozenset(found)


@dataclass(frozen=True)
class Interest:
    """The routing filter of one subscription.

    >>> from workbench.scenarios.proximity import scenario
    >>> from workbench.model import disc, location, region
    >>> world = World.of(scenario(radius_m=500))
    >>> here = {"here": region(location, position=(0, 0))}
    >>> (mobiles,) = world.scenario.subscriptions
    >>> interest = Interest.of(world, Party("mobiles", Client("fixes", 7)), here, mobiles.filter)
    >>> near, far = ({"reach": region(location, position=disc((x, 0), 500))} for x in (400, 600))
    >>> interest.may_accept("places", near), interest.may_accept("places", far)
    (True, False)
    """

    name: Hashable
    own: tuple[tuple[str, Region], ...]
    filter: Filter
    thirds: frozenset[str]
    blur_m: float
    world: World
    client: Client | None = None
    version: tuple[Any, int] = (UNNUMBERED, 0)

    @staticmethod
    def of(
        world: World, party: Party, own: Regions, filter: Filter, blur_m: float = 0.0, number: Number = UNNUMBERED
    ) -> Interest:
        """The interest of a subscription whose own regions are these."""
        population = world.scenario.population(party.population)
        followed = thirds(world.scenario, population, filter) | world.thirds_of_publications
        return Interest(party, tuple(own.items()), filter, followed, blur_m, world, party.client, (number, 0))

    # -- routing ---------------------------------------------------------------------------------------

    def accepts(self, item: object) -> bool:
        """Whether a report may concern the subscription: never False where it does."""
        if not isinstance(item, Report) or item.state is None:
            return False
        there = item.ever if self.world.remembers else item.state.instances
        if any(name in self.thirds for name in there):
            return True
        return item.client != self.client and any(
            self.may_accept(name, instance.regions)
            for name, instance in item.state.instances.items()
            if self.world.scenario.population(name).role == PUBLICATION
        )

    @cached_property
    def needs(self) -> tuple[Need, ...] | None:
        """Where a publication must be to be accepted, for an index; None where that is not said by positions."""
        # A routing table indexes the same interest at every broker.
        return None if self.thirds or math.isinf(self.blur_m) else self._needs(self.filter)

    def _needs(self, node: Filter) -> tuple[Need, ...] | None:
        match node:
            case And():
                return next((n for part in node.parts if (n := self._needs(part)) is not None), None)
            case Or():
                found = [self._needs(part) for part in node.parts]
                return None if None in found else tuple(n for several in found for n in several or ())
            case Held():
                return self._needs(node.part)
            case Match():
                return self._place(node)
        return None

    def _place(self, node: Match) -> tuple[Need, ...] | None:
        """Near a region of one's own: two shapes that match are at most so far apart."""
        terms = (node.left, node.right)
        mine = [term.name for term in terms if isinstance(term, Var) and term.side == "own"]
        reach, label = reach_of(node.relation), position_dimension(node.space)
        if node.third is not None or len(mine) != 1 or reach is None or label is None:
            return None
        if not all(isinstance(term, Var) for term in terms):
            return None
        values = dict(self.own)[mine[0]].values_in(node.space)
        extent = None if values is None else values[label]
        if not isinstance(extent, Shape) or extent.kind != "point":
            return None
        box = _box(extent, reach + self.blur_m, self.world.metric)
        return (Need(dimensions=PLANE[self.world.metric], box=box),)

    def may_accept(self, population: str, regions: Regions) -> bool:
        """Whether f_S may accept a publication with these object regions."""
        scenario = self.world.scenario
        return any(
            self._decided(self.filter, regions, binding) is not False
            for binding in scenario.bindings(self.filter, scenario.population(population))
        )

    def still_right(self, own: Regions, filter: Filter) -> bool:
        """Whether what was announced still is a superset, now that the subscriber's regions are these."""
        if filter != self.filter:
            return False
        return all(self._within_blur(before, own[name]) for name, before in self.own)

    def _within_blur(self, before: Region, after: Region) -> bool:
        a, b = dict(before.constraints), dict(after.constraints)
        if a.keys() != b.keys():
            return False
        for dimension, extent in a.items():
            if isinstance(extent, Shape) and isinstance(b[dimension], Shape) and self.blur_m > 0:
                if math.isinf(self.blur_m):
                    continue
                if extent == b[dimension]:
                    continue
                if not _encloses(shapes.around(extent, self.blur_m), b[dimension], self.world.metric):
                    return False
            elif extent != b[dimension]:
                return False
        return True

    # -- three values ------------------------------------------------------------------------------------

    def _decided(self, node: Filter, other: Regions, binding: Binding) -> bool | None:
        """True or False where the node is that for every history and every third party; else None."""
        match node:
            case Everything():
                return True
            case And():
                found = [self._decided(part, other, binding) for part in node.parts]
                return False if False in found else (None if None in found else True)
            case Or():
                found = [self._decided(part, other, binding) for part in node.parts]
                return True if True in found else (None if None in found else False)
            case Not():
                inner = self._decided(node.part, other, binding)
                return None if inner is None else not inner
            case Held():
                return None if self._decided(node.part, other, binding) is not False else False
            case Comparison():
                return self._compared(node, other, binding)
            case Match():
                return self._matched(node, other, binding)
        return None

    def _compared(self, node: Comparison, other: Regions, binding: Binding) -> bool | None:
        sides: list[Extent] = []
        for side in (node.left, node.right):
            if not isinstance(side, Dimension):
                sides.append(side)
                continue
            extent = self._region(side.region, other, binding)[side.dimension]
            if self.blur_m > 0 and side.region.side == "own" and (isinstance(extent, Shape) or extent is ANYWHERE):
                return None
            sides.append(extent)
        try:
            return compare(sides[0], node.op, sides[1], self.world.metric)
        except ScenarioError:
            return None

    def _matched(self, node: Match, other: Regions, binding: Binding) -> bool | None:
        relation = node.relation
        if node.third is not None or isinstance(relation, Nearest):
            return None
        left, right = (self._region(term, other, binding) for term in (node.left, node.right))
        blurred = [
            isinstance(term, Var) and term.side == "own" and self.blur_m > 0 and _placed(region, node)
            for term, region in ((node.left, left), (node.right, right))
        ]
        try:
            if not any(blurred):
                return relation.holds(left, right, node.space, self.world.metric)
            if math.isinf(self.blur_m) or isinstance(relation, UserDefined):
                return None
            left, right = (_blurred(r, self.blur_m) if b else r for r, b in zip((left, right), blurred, strict=True))
            # The subscriber is somewhere in its blur: only that nothing there can match is certain.
            weaker = relation if isinstance(relation, Within) else Overlap()
            return None if weaker.holds(left, right, node.space, self.world.metric) else False
        except ScenarioError:
            return None  # a combination of shapes that cannot be decided

    def _region(self, term: RegionTerm, other: Regions, binding: Binding) -> Region:
        assert isinstance(term, Var)
        return dict(self.own)[term.name] if term.side == "own" else other[binding[term.name]]

    # -- covering and merging ------------------------------------------------------------------------------

    def covers(self, other: object) -> bool:
        """Whether it accepts everything that the other one does, as far as their form shows it."""
        if not isinstance(other, Interest) or not other.thirds <= self.thirds:
            return False
        # Nobody matches himself: who stands for one client only is no stand-in for what another one hears of it.
        if self.client is not None and self.client != other.client and self._publishes(self.client):
            return False
        if isinstance(self.filter, Everything):
            return True
        if other.filter != self.filter or [n for n, _ in self.own] != [n for n, _ in other.own]:
            return False
        return all(
            self._covers_region(a, b, other.blur_m) for (_, a), (_, b) in zip(self.own, other.own, strict=True)
        )

    def _publishes(self, client: Client) -> bool:
        return any(p.table == client.table for p in self.world.scenario.publications)

    def _covers_region(self, mine: Region, its: Region, its_blur: float) -> bool:
        a, b = dict(mine.constraints), dict(its.constraints)
        if a.keys() != b.keys() or mine.space != its.space:
            return False
        for dimension, extent in a.items():
            there = b[dimension]
            if isinstance(extent, Shape) and isinstance(there, Shape):
                if math.isinf(self.blur_m):
                    continue
                if extent == there and self.blur_m >= its_blur:
                    continue
                wide = self.blur_m > 0 and not math.isinf(its_blur)
                if not (
                    wide
                    and _encloses(
                        shapes.around(extent, self.blur_m), shapes.around(there, its_blur), self.world.metric
                    )
                ):
                    return False
            elif extent != there:
                return False
        return True

    def merged(self, other: object) -> Interest | None:
        """One interest around two that differ in where their subscribers are, on planar positions.

        It is wider than both: what lies between the two is forwarded in vain.
        """
        if not isinstance(other, Interest) or self.world.metric != geometry.PLANAR:
            return None
        if self.filter != other.filter or self.thirds != other.thirds or max(self.blur_m, other.blur_m) == math.inf:
            return None
        found = _around_both(self, other)
        if found is None:
            return None
        own, blur_m = found
        names = frozenset(
            n for name in (self.name, other.name) for n in (name if isinstance(name, frozenset) else (name,))
        )
        return replace(self, name=names, own=own, blur_m=blur_m, client=None, version=(UNNUMBERED, 0))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Interest) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def _key(self) -> tuple[Any, ...]:
        return (self.name, self.own, self.filter, self.thirds, self.blur_m, self.client)

    def __repr__(self) -> str:
        return f"{self.name}"


def _box(shape: Shape, reach_m: float, metric: str) -> Box:
    """A box around a point or disc grown by a reach, a little larger than it need be; near a seam, round the globe."""
    grow = shape.radius_m + reach_m
    if metric == geometry.PLANAR:
        return grown(shape.x - grow, shape.x + grow), grown(shape.y - grow, shape.y + grow)
    up = grow / (geometry.EARTH_RADIUS_M * geometry.RADIAN) * (1 + 1e-9) + 1e-9
    steep = abs(shape.y) + up
    aside = up / math.cos(steep * geometry.RADIAN) + 1e-9 if steep < 89.9 else math.inf
    if not (shape.x - aside > -180.0 and shape.x + aside < 180.0):
        aside = math.inf
    return (shape.x - aside, shape.x + aside), (shape.y - up, shape.y + up)


def _placed(region: Region, node: Match) -> bool:
    values = region.values_in(node.space)
    return values is not None and any(isinstance(e, Shape) for e in values.values())


def _blurred(region: Region, blur_m: float) -> Region:
    return replace(
        region,
        constraints=tuple((d, shapes.around(e, blur_m) if isinstance(e, Shape) else e) for d, e in region.constraints),
    )


def _encloses(outer: Shape, inner: Extent, metric: str) -> bool:
    try:
        return isinstance(inner, Shape) and shapes.encloses(outer, inner, metric)
    except ScenarioError:
        return False


def _around_both(a: Interest, b: Interest) -> tuple[tuple[tuple[str, Region], ...], float] | None:
    """Own regions moved to the middle, and the blur that reaches both; None where something else differs."""
    own: list[tuple[str, Region]] = []
    blur = 0.0
    if [n for n, _ in a.own] != [n for n, _ in b.own]:
        return None
    for (name, one), (_, two) in zip(a.own, b.own, strict=True):
        first, second = dict(one.constraints), dict(two.constraints)
        if first.keys() != second.keys():
            return None
        made = []
        for dimension, extent in first.items():
            there = second[dimension]
            if isinstance(extent, Shape) and isinstance(there, Shape):
                if not (extent.kind == there.kind == "point" and extent.radius_m == there.radius_m):
                    return None
                x, y = (extent.x + there.x) / 2, (extent.y + there.y) / 2
                z = (extent.z + there.z) / 2
                middle = shapes.around(shapes.point(x, y, z), extent.radius_m)
                made.append((dimension, middle))
                apart = max(math.dist((s.x, s.y, s.z), (x, y, z)) for s in (extent, there))
                # A hair more than the distance, so that rounding loses nobody.
                blur = max(blur, (apart + max(a.blur_m, b.blur_m)) * (1 + 1e-9) + 1e-9)
            elif extent == there:
                made.append((dimension, extent))
            else:
                return None
        own.append((name, Region(one.space, tuple(made))))
    return (tuple(own), blur) if blur > 0 else None


def interests_of(
    world: World, report: Report, before: Iterable[Interest], blur_m: float = 0.0
) -> dict[Hashable, Interest]:
    """The interests of a client's subscriptions after a report; those that still are right stay as they were."""
    known = {interest.name: interest for interest in before}
    found: dict[Hashable, Interest] = {}
    for name, instance in report.state.instances.items() if report.state else ():
        if world.scenario.population(name).role != SUBSCRIPTION:
            continue
        party = Party(name, report.client)
        old = known.get(party)
        if old is not None and old.still_right(instance.regions, instance.filter):
            found[party] = old
        else:
            found[party] = Interest.of(world, party, instance.regions, instance.filter, blur_m, report.number)
    return found
