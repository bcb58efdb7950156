"""The live engine: M from one instant to the next, looking only at what can have changed.

An instant brings changes to some clients. What can join or leave M then:

* pairs of a publication or subscription of theirs: those that match now, and those that the index over a region's
  position finds (the *driving* part of the filters: a relation of two positions that has to hold);
* pairs whose filters look at third parties, where what they say of these has turned (`workbench.engines.surroundings`);
  where that is not kept, because not everybody is seen or a client has a filter of its own, all of these pairs;
* pairs for which time alone turns a temporal term over. A pair whose other conditions hold waits on a timer for the
  next instant at which that can happen; it is asked again then.

Those pairs, and no others, are put to the definitions (`Remembered`, which is the reference engine with a memory).

Where all pairs of populations are decided by discs around positions and by what no position enters, M is kept in
compiled code instead (`workbench.engines.field`), until something is done that does not fit in there.

A step can be taken back as long as the next one has not been taken.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.engines.candidates import position_dimension, reach_of
from workbench.engines.field import Field, gated
from workbench.engines.lowering import is_plain
from workbench.engines.nearby import Box, Nearby, box_of
from workbench.engines.reference import View
from workbench.engines.remembered import Remembered
from workbench.engines.surroundings import Surroundings, kind_of
from workbench.engines.versions import Versions
from workbench.errors import ScenarioError
from workbench.model.clock import NEVER, Clock
from workbench.model.filters import And, Filter, Held, Latch, Match, Regions, Var
from workbench.model.history import Change, Client, Instance, Named, Party, State
from workbench.model.pubsub import PUBLICATION, Population
from workbench.model.regions import Region
from workbench.model.relations import Nearest
from workbench.model.scenario import Binding, Scenario
from workbench.model.shapes import Shape
from workbench.model.times import TimeComparison
from workbench.model.visits import VisitComparison

Pair = tuple[Party, Party]
"""A publication and a subscription."""


class Step(NamedTuple):
    """Which pairs left M at an instant, and which joined it."""

    left: list[Pair]
    come: list[Pair]


# -- the plan --------------------------------------------------------------------------------------------------


class Drive(NamedTuple):
    """A relation of two positions that has to hold: no pair matches whose regions are farther apart."""

    publication: str
    """the region of the publication"""
    subscription: str
    dimension: str
    reach: float


class Neighbouring(NamedTuple):
    """A nearest match that has to hold: no pair matches whose regions are no neighbours."""

    match: Match
    left: Regions
    right: Regions


def implied(filter: Filter) -> list[Filter]:
    """Conditions that hold whenever a filter does.

    >>> from workbench.model import held, location, other, own, ticks
    >>> near = own.here.within(5, other.site, space=location)
    >>> implied(held(near, ticks(2)) & (own.car["fuel"] < 20))
    [here m_5 site', fuel(car) < [20]]
    """
    match filter:
        case And():
            return [condition for part in filter.parts for condition in implied(part)]
        case Held():
            return implied(filter.part)
    return [filter]


def drives(
    scenario: Scenario, publication: Population, subscription: Population
) -> Sequence[Drive | Neighbouring] | None:
    """What one of which has to hold for two rows of these populations to match; None where nothing can be said."""
    for own, other in ((subscription, publication), (publication, subscription)):
        found: list[Drive | Neighbouring] = []
        for binding in scenario.bindings(own.filter, other):
            conditions = [c for c in implied(own.filter) if isinstance(c, Match)]
            near = [] if scenario.visibility else [_neighbouring(c, own, other, binding) for c in conditions]
            sure = [*near, *(_drive(c, own, binding) for c in conditions)]
            drive = next((one for one in sure if one is not None), None)
            if drive is None:
                break
            found.append(drive)
        else:
            return found
    return None


def _drive(match: Match, own: Population, binding: Binding) -> Drive | None:
    reach, dimension = reach_of(match.relation), position_dimension(match.space)
    if reach is None or dimension is None or match.third is not None:
        return None
    names: dict[str, str] = {}
    for term in (match.left, match.right):
        assert isinstance(term, Var)
        names[term.side] = term.name if term.side == "own" else binding[term.name]
    if len(names) != 2:
        return None
    mine, theirs = names["own"], names["other"]
    return Drive(*((mine, theirs) if own.role == PUBLICATION else (theirs, mine)), dimension, reach)


def _neighbouring(match: Match, own: Population, other: Population, binding: Binding) -> Neighbouring | None:
    if not isinstance(match.relation, Nearest):
        return None
    left, right = (kind_of(term, own.name, other.name, binding) for term in (match.left, match.right))
    assert left is not None and right is not None
    return None if left.population == right.population else Neighbouring(match, left, right)


def looks_back(filter: Filter) -> bool:
    """Whether time alone can change what a filter says."""
    return any(isinstance(n, TimeComparison | VisitComparison | Held | Latch) for n in filter.walk())


# -- the engine ------------------------------------------------------------------------------------------------


class Live:
    """M over a history that grows, instant by instant."""

    def __init__(self, scenario: Scenario, clock: Clock, metric: str, remember: bool = True) -> None:
        self.scenario = scenario
        self.clock = clock
        self.metric = metric
        self.history = Versions(scenario)
        self.surroundings = None if scenario.visibility else Surroundings(scenario, metric)
        self.reference = self._remembered()
        plan = gated(scenario)
        self.field = None if plan is None else Field(scenario, plan, metric, remember)
        self.history.field = self.field
        self._turned: list[Pair] = []
        """what changes in the field have turned over since the last evaluation"""
        self._matching: dict[Pair, int] = {}
        self._pairs_of: dict[Party, dict[Pair, None]] = {}
        self._timers: list[tuple[int, int, Pair]] = []
        self._waiting: dict[Pair, int] = {}
        self._pushed = 0
        self._undo: list[Callable[[], object]] = []
        self.plan = {
            (p.name, s.name): drives(scenario, p, s) for p in scenario.publications for s in scenario.subscriptions
        }
        self._indexed: dict[tuple[str, str, str], Nearby[Party]] = {}
        for (p, s), found in self.plan.items():
            for drive in (d for d in found or () if isinstance(d, Drive)):
                self._indexed.setdefault((p, drive.publication, drive.dimension), Nearby())
                self._indexed.setdefault((s, drive.subscription, drive.dimension), Nearby())
        self._by_table: dict[str, list[Population]] = {}
        for population in scenario.populations:
            self._by_table.setdefault(population.table, []).append(population)
        self._looked = {p.name: scenario.looked_at(p) for p in scenario.populations}
        self._apart: dict[Party, Filter] = {}
        """who has a filter of its own"""
        self._backwards: dict[int, tuple[Filter, bool, list[Filter]]] = {}

    @property
    def matching(self) -> Iterable[Pair]:
        """M now."""
        return self._matching if self.field is None else self.field.pairs()

    # -- in the field ----------------------------------------------------------------------------------

    def fits(self, population: Population, values: Mapping[str, Any]) -> bool:
        """Whether a row can be in the field; where there is none it does not matter."""
        return self.field is None or self.field.fits(population, values)

    def leave_field(self) -> None:
        """Go on without the field: somebody has a filter of its own, or a shape that is no disc."""
        assert self.field is not None and not self._undo
        pairs = list(self.field.pairs())
        self.history.settle_all()
        self.field = self.history.field = None
        for pair in pairs:
            self._match(pair, 0)
        now = self.history.instants[-1] if self.history.instants else NEVER
        self._place(now, {client: self.history.latest(client) for client in self.history.clients()})

    def move(self, slots: np.ndarray, x: np.ndarray, y: np.ndarray, t: int) -> None:
        """Move clients in the field that only subscribe, each once; `evaluate` says what this changed."""
        field = self.field
        assert field is not None
        back = field.spots(slots)

        def undo() -> None:
            back()
            for slot in slots.tolist():
                self.history.unsettle(field.clients[slot], t)

        self._undo.append(undo)
        said = field.walk_all(slots, x, y, np.full(len(slots), t))
        self._turned += [field.pair(match >> 1, slots[row]) for row, match in said.tolist()]

    def _net(self) -> Step:
        """What was turned over an odd number of times has changed."""
        assert self.field is not None
        odd: dict[Pair, bool] = {}
        for pair in self._turned:
            odd[pair] = not odd.get(pair, False)
        self._turned = []
        step = Step([], [])
        for pair in (pair for pair, changed in odd.items() if changed):
            (step.come if self.field.matches(pair) else step.left).append(pair)
        return step

    # -- steps -----------------------------------------------------------------------------------------

    @property
    def next_timer(self) -> int | None:
        """The next instant at which time alone can change something."""
        while self._timers and self._waiting.get(self._timers[0][2]) != self._timers[0][0]:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def commit(self) -> None:
        """What was done stays."""
        self._undo.clear()

    def take_back(self) -> None:
        """Undo everything since the last commit."""
        if self._undo:
            for step in reversed(self._undo):
                step()
            self._undo.clear()
            self._turned = []
            if self.surroundings is not None:
                self.surroundings.settle()
            self.reference.forget()

    def apply(self, t: int, changes: Iterable[Change]) -> set[Client]:
        """Put what an instant brings into the history; gives those whom it touches, for `evaluate`."""
        states = self.history.tried(t, changes)
        before = {client: self.history.latest(client) for client in states}
        back = self.history.put(t, states)
        self._undo.append(lambda: self._place(t, before))
        self._undo.append(back)
        self._place(t, states)
        return set(states)

    def evaluate(self, t: int, touched: set[Client]) -> Step:
        """Bring M up to an instant whose changes have been applied."""
        if self.field is not None:
            return self._net()
        asked = self._asked(t, touched)
        left: list[Pair] = []
        come: list[Pair] = []
        for pair in asked:
            before, after = self._matching.get(pair), self._generation(pair, t)
            if before != after:
                left += [] if before is None else [pair]
                come += [] if after is None else [pair]
                self._match(pair, after)
                self._undo.append(lambda pair=pair, before=before: self._match(pair, before))  # type: ignore[misc]
            self._wait(pair, self._next(pair, t))
        return Step(left, come)

    def would_match(self, t: int, change: Change, party: Party) -> list[Party]:
        """The publications that a subscription would match if it existed at t; nothing is kept."""
        kept, self._undo = self._undo, []
        remembered = self.reference
        try:
            self.apply(t, [change])
            if self.field is not None:
                return self.field.matched_by(party)
            self.reference = self._remembered()
            pairs = self._candidates(party)
            return [p for p, s in pairs if self.reference.pair_matches(p, s, t)]
        finally:
            self.reference = self._remembered()
            self.take_back()
            self._undo, self.reference = kept, remembered
            self.reference.surroundings = self.surroundings

    def _remembered(self) -> Remembered:
        return Remembered(self.scenario, self.history, self.clock, self.metric, self.surroundings)

    # -- which pairs are asked about -------------------------------------------------------------------

    def _asked(self, t: int, touched: set[Client]) -> dict[Pair, None]:
        asked: dict[Pair, None] = {}
        for client in touched:
            for population in self._by_table.get(client.table, ()):
                asked.update(self._asked_of(Party(population.name, client)))
        if self.surroundings is None:
            asked.update(self._looking_around(t, touched))
        else:
            asked.update(self._turned_around())
        for party, filter in self._apart.items():
            if touched and self.reference.looks_around(filter):
                asked.update(self._asked_of(party))
        while (due := self.next_timer) is not None and due <= t:
            _, _, pair = heapq.heappop(self._timers)
            self._undo.append(lambda pair=pair, due=due: self._wait(pair, due))  # type: ignore[misc]
            del self._waiting[pair]
            asked[pair] = None
        return asked

    def _asked_of(self, party: Party) -> dict[Pair, None]:
        """All pairs of a publication or subscription that may have changed."""
        return {**self._pairs_of.get(party, {}), **dict.fromkeys(self._candidates(party))}

    def _turned_around(self) -> dict[Pair, None]:
        """The pairs of which others than the two sides have turned something."""
        assert self.surroundings is not None
        asked: dict[Pair, None] = {}
        for left, right in self.surroundings.pairs:
            roles = [self.scenario.population(named.party.population).role for named in (left, right)]
            if roles[0] != roles[1]:
                pair = (left.party, right.party)
                asked[pair if roles[0] == PUBLICATION else pair[::-1]] = None
        for named in self.surroundings.regions:
            asked.update(self._asked_of(named.party))
        self.surroundings.settle()
        return asked

    def _looking_around(self, t: int, touched: set[Client]) -> dict[Pair, None]:
        """All pairs of populations whose filters look at clients that were touched."""
        asked: dict[Pair, None] = {}
        populations = {p.name for client in touched for p in self._by_table.get(client.table, ())}
        for population in self.scenario.populations:
            if populations & self._looked[population.name]:
                for party in self.history.parties(population.name, t):
                    asked.update(self._asked_of(party))
        return asked

    def _candidates(self, party: Party) -> Iterator[Pair]:
        """The pairs of a publication or subscription that can match at all."""
        state = self.history.latest(party.client)
        if state is None or party.population not in state.instances:
            return
        population = self.scenario.population(party.population)
        publishes = population.role == PUBLICATION
        for other in self.scenario.opposite(population):
            names = (population.name, other.name) if publishes else (other.name, population.name)
            for found in self._opposite(party, state.instances[party.population], other, self.plan[names], publishes):
                if found.client != party.client:
                    yield (party, found) if publishes else (found, party)

    def _opposite(
        self,
        party: Party,
        instance: Instance,
        other: Population,
        driven: Sequence[Drive | Neighbouring] | None,
        publishes: bool,
    ) -> Iterable[Party]:
        if driven is None or party in self._apart:
            return self.history.parties(other.name, self.history.instants[-1])
        found: dict[Party, None] = dict.fromkeys(p for p in self._apart if p.population == other.name)
        for drive in driven:
            if isinstance(drive, Neighbouring):
                found.update(dict.fromkeys(self._neighbours(party, drive)))
                continue
            mine, theirs = drive.publication, drive.subscription
            mine, theirs = (mine, theirs) if publishes else (theirs, mine)
            box = self._box(instance.regions[mine], drive.dimension, drive.reach)
            found.update(dict.fromkeys(self._indexed[other.name, theirs, drive.dimension].touching(box)))
        return found

    def _neighbours(self, party: Party, drive: Neighbouring) -> Iterator[Party]:
        """Whom a publication or subscription has as a neighbour, or who has it as one."""
        assert self.surroundings is not None
        left, right = drive.left, drive.right
        kept = self.surroundings.neighbours(drive.match, left.population, left.region, right.population)
        assert kept is not None
        if party.population == left.population:
            for named in kept.of(Named(party, left.region)):
                if named.party.population == right.population and named.region == right.region:
                    yield named.party
        else:
            yield from (named.party for named in kept.near_to(Named(party, right.region)))

    def _box(self, region: Region, dimension: str, reach: float) -> Box | None:
        shape = dict(region.constraints).get(dimension)
        return box_of(shape, reach, self.metric) if isinstance(shape, Shape) else None

    def _place(self, t: int, states: dict[Client, State | None] | dict[Client, State]) -> None:
        """Lay the regions of clients into the indexes as they are in these states after t."""
        if self.field is not None:
            for client, state in states.items():
                self._turned += self.field.put(client, state)
            return
        if self.surroundings is not None:
            try:
                self.surroundings.put(t, states)
            except ScenarioError:  # what the model refuses, the filters themselves may never come to ask
                self._look_around()
        for client, state in states.items():
            for population in self._by_table.get(client.table, ()):
                party = Party(population.name, client)
                instance = state.instances.get(population.name) if state else None
                if instance is not None and instance.filter is not population.filter:
                    self._apart[party] = instance.filter
                else:
                    self._apart.pop(party, None)
                for (name, region, dimension), nearby in self._indexed.items():
                    if name == population.name and instance is not None:
                        nearby.put(party, self._box(instance.regions[region], dimension, 0.0))
                    elif name == population.name:
                        nearby.drop(party)

    def _look_around(self) -> None:
        """Go on without what is kept of third parties."""
        self.surroundings = self.reference.surroundings = None
        for sides, found in self.plan.items():
            if any(isinstance(drive, Neighbouring) for drive in found or ()):
                self.plan[sides] = None

    # -- one pair --------------------------------------------------------------------------------------

    def _generation(self, pair: Pair, t: int) -> int | None:
        """Which event of a publication matches; None where the pair does not match."""
        return self.reference.generation(pair[0], t) if self.reference.pair_matches(*pair, t) else None

    def _match(self, pair: Pair, generation: int | None) -> None:
        if generation is None:
            del self._matching[pair]
            for party in pair:
                del self._pairs_of[party][pair]
                if not self._pairs_of[party]:
                    del self._pairs_of[party]
        else:
            self._matching[pair] = generation
            for party in pair:
                self._pairs_of.setdefault(party, {})[pair] = None

    def _next(self, pair: Pair, t: int) -> int | None:
        """The next instant at which time alone can change a pair, None where other conditions rule it out."""
        instances = [self.history.instance(party, t) for party in pair]
        if not any(instance is not None and self._looking(instance.filter)[1] for instance in instances):
            return None
        found: set[int] = set()
        for own, other, instance in ((*pair, instances[0]), (*pair[::-1], instances[1])):
            if instance is None or pair[0].client == pair[1].client:
                return None
            _, backwards, conditions = self._looking(instance.filter)
            views = [
                view
                for view in self.reference.bindings(own, other, instance.filter)
                if not any(self._rules_out(condition, view, t) for condition in conditions)
            ]
            if not views:
                return None
            if backwards:
                found.update(*(self.reference.upcoming(instance.filter, view, t) for view in views))
        return min(found, default=None)

    def _rules_out(self, condition: Filter, view: View, t: int) -> bool:
        try:
            return not self.reference.holds(condition, view, t)
        except ScenarioError:  # what the model refuses, the filter itself may never come to ask
            return False

    def _looking(self, filter: Filter) -> tuple[Filter, bool, list[Filter]]:
        """Whether a filter looks back, and what has to hold besides."""
        known = self._backwards.get(id(filter))
        if known is None:
            plain = [condition for condition in implied(filter) if is_plain(condition)]
            known = self._backwards[id(filter)] = (filter, looks_back(filter), plain)
        return known

    def _wait(self, pair: Pair, until: int | None) -> None:
        before = self._waiting.get(pair)
        if before == until:
            return
        if until is None:
            del self._waiting[pair]
        else:
            self._waiting[pair] = until
            self._pushed += 1
            heapq.heappush(self._timers, (until, self._pushed, pair))
        self._undo.append(lambda: self._wait(pair, before))
