"""History: the state of every client as a step function of time.

A client keeps its last position and attributes until the next update. All updates of one instant are applied, then the
instant is looked at once. What is kept is the state after every instant with an update; the state at any tick
is the one after the latest such instant.

A `Change` says what one instant brings to one client: cells (a null one means "unchanged"), the publications and
subscriptions that begin, those that end, and filters that replace the population's.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from workbench.errors import ScenarioError
from workbench.model.columns import is_null
from workbench.model.filters import Filter
from workbench.model.pubsub import Population
from workbench.model.regions import Region
from workbench.model.scenario import Scenario


class Client(NamedTuple):
    """Who: a row of a table. Mobile 7 and place 7 are two clients."""

    table: str
    id: Any

    def __repr__(self) -> str:
        return f"{self.table}/{self.id}"


class Party(NamedTuple):
    """One publication or subscription: a client in a population."""

    population: str
    client: Client

    def __repr__(self) -> str:
        return f"{self.population}/{self.client.id}"


class Named(NamedTuple):
    """A region by name; the name outlives the region."""

    party: Party
    region: str

    def __repr__(self) -> str:
        return f"{self.region} of {self.party}"


@dataclass(frozen=True)
class Change:
    """What one instant brings to one client."""

    client: Client
    values: Mapping[str, Any] = field(default_factory=dict)
    begin: tuple[str, ...] = ()
    end: tuple[str, ...] = ()
    filters: Mapping[str, Filter] = field(default_factory=dict)
    forget: bool = False
    """whether what was known of it holds no longer: its row is gone, though others' regions may read it"""


class Instance(NamedTuple):
    """A publication or subscription at one instant."""

    regions: Mapping[str, Region]
    filter: Filter
    since: int
    """the instant of its latest update, which tells one transient event from the next"""


@dataclass(frozen=True)
class State:
    """A client at one instant."""

    values: Mapping[str, Any]
    instances: Mapping[str, Instance]


States = Mapping[Client, State]
NOTHING: States = MappingProxyType({})


class History:
    """The states of all clients after every instant with an update."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.instants: list[int] = []
        self._states: list[States] = []

    @staticmethod
    def of(scenario: Scenario, states: Mapping[int, States]) -> History:
        """The history in which the clients were in these states after these instants."""
        made = History(scenario)
        made.instants = sorted(states)
        made._states = [states[t] for t in made.instants]
        return made

    def fork(self) -> History:
        """A history of its own that has the same past."""
        copy = History(self.scenario)
        copy.instants, copy._states = list(self.instants), list(self._states)
        return copy

    def at(self, t: int) -> States:
        """The states at a tick: those after the latest instant up to it."""
        k = bisect_right(self.instants, t)
        return self._states[k - 1] if k else NOTHING

    def upto(self, t: int) -> list[int]:
        """The instants with an update, up to and including t."""
        return self.instants[: bisect_right(self.instants, t)]

    def parties(self, population: str, t: int) -> list[Party]:
        """The publications or subscriptions of a population that exist at a tick."""
        return [Party(population, c) for c, state in self.at(t).items() if population in state.instances]

    def ever(self, population: str, t: int) -> list[Party]:
        """Those that existed at some instant up to t."""
        return list(dict.fromkeys(p for i in self.upto(t) for p in self.parties(population, i)))

    def instance(self, party: Party, t: int) -> Instance | None:
        """A publication or subscription at a tick, None while it does not exist."""
        state = self.at(t).get(party.client)
        return None if state is None else state.instances.get(party.population)

    def region(self, named: Named, t: int) -> Region | None:
        """A region at a tick, None while it does not exist."""
        instance = self.instance(named.party, t)
        return None if instance is None else instance.regions[named.region]

    def apply(self, t: int, changes: Iterable[Change]) -> None:
        """Add what one instant brings; t is not before the latest instant."""
        assert not self.instants or t >= self.instants[-1]
        states = dict(self.at(t))
        touched: list[Client] = []
        for change in changes:
            states[change.client] = self._changed(states.get(change.client), change, t)
            touched.append(change.client)
        for client in touched:
            for dependant, population in self._readers_of(client):
                state = states.get(dependant)
                if state is not None and population.name in state.instances:
                    states[dependant] = self._refilled(dependant, state, states)
        if self.instants and self.instants[-1] == t:
            self._states[-1] = states
        else:
            self.instants.append(t)
            self._states.append(states)

    def _changed(self, before: State | None, change: Change, t: int) -> State:
        given = {k: v for k, v in change.values.items() if not is_null(v)}
        instances = dict(before.instances) if before else {}
        # What ends and begins at one instant goes on: that is an update.
        for name in set(change.end) - set(change.begin):
            instances.pop(name, None)
        # A client that is there for nobody has no state to keep.
        known = before is not None and not change.forget and (before.instances or not change.begin)
        values = {**(before.values if before and known else {}), **given}
        for name in change.begin:
            instances.setdefault(name, Instance({}, self.scenario.population(name).filter, t))
        for name, filter in change.filters.items():
            instances[name] = instances[name]._replace(filter=filter)
        if given or change.begin:
            instances = {n: i._replace(since=t) for n, i in instances.items()}
        return State(values, instances)

    def _readers_of(self, client: Client) -> list[tuple[Client, Population]]:
        """Whose regions read the row of a client: its own, and those that join it as their profile."""
        return [
            (Client(p.table, client.id), p)
            for p in self.scenario.populations
            if client.table in (p.table, p.profiles)
        ]

    def _refilled(self, client: Client, state: State, states: States) -> State:
        instances = {}
        for name, instance in state.instances.items():
            population = self.scenario.population(name)
            profile = states.get(Client(population.profiles, client.id)) if population.profiles else None
            row = {**(profile.values if profile else {}), **state.values}
            try:
                regions = {label: template.fill(row) for label, template in population.regions}
            except ScenarioError as error:
                raise ScenarioError(f"{client}: {error}") from None
            instances[name] = instance._replace(regions=regions)
        return State(state.values, instances)
