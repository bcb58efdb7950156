"""Versions: the history of a live broker, kept client by client.

The same questions as `History` answers, with other costs: a change is written down for the clients that it touches,
not as a copy of everybody's state, and a region is looked up among the versions of its own client. What an instant
brings can be tried without being kept, and taken back.

Moves in a field (`workbench.engines.field`) are logged there as bare positions, and become versions when somebody
asks about their client.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from workbench.engines.field import Field
from workbench.model.history import Change, Client, History, Instance, Party, State, States
from workbench.model.scenario import Scenario
from workbench.model.shapes import point


class Kept(NamedTuple):
    """The states of one client, and since when each."""

    times: list[int]
    states: list[State]


class Tried(dict[Client, State]):
    """States that an instant would bring; whoever is not among them is as he was."""

    def __init__(self, before: Callable[[Client], State | None]) -> None:
        super().__init__()
        self._before = before

    def get(self, client: Client, default: State | None = None) -> State | None:  # type: ignore[override]
        found = super().get(client)
        return self._before(client) if found is None else found


class Versions(History):
    """The states of all clients after every instant with an update, by client."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self._kept: dict[Client, Kept] = {}
        self._members: dict[str, dict[Client, None]] = {p.name: {} for p in scenario.populations}
        self._since: dict[str, dict[Client, int]] = {p.name: {} for p in scenario.populations}
        self.field: Field | None = None
        self._read = 0
        """how much of the field's log is among the instants"""

    def _of(self, client: Client) -> Kept | None:
        """The versions of a client, those that the field has logged included."""
        kept = self._kept.get(client)
        if kept is not None and self.field is not None:
            for t, (x, y, z) in self.field.positions(client, kept.times[-1]):
                state = self._changed(kept.states[-1], Change(client, {"position": point(x, y, z)}), t)
                kept.states.append(self._refilled(client, state, {}))
                kept.times.append(t)
        return kept

    def unsettle(self, client: Client, t: int) -> None:
        """Forget a version of the field's that was taken back."""
        kept = self._kept[client]
        if kept.times[-1] == t:
            kept.times.pop()
            kept.states.pop()
        self._read = 0

    def settle(self) -> None:
        """Take the instants of the field's moves among the others."""
        if self.field is not None:
            found, self._read = self.field.instants(self._read)
            if len(found):
                self.instants = sorted({*self.instants, *found.tolist()})

    def settle_all(self) -> None:
        """Take everything out of the field's log."""
        self.settle()
        for client in self._kept:
            self._of(client)

    # -- questions -------------------------------------------------------------------------------------

    def latest(self, client: Client) -> State | None:
        """A client after everything that was applied."""
        kept = self._of(client)
        return None if kept is None else kept.states[-1]

    def state(self, client: Client, t: int) -> State | None:
        """A client at a tick, None before it was heard of."""
        kept = self._of(client)
        if kept is None:
            return None
        k = bisect_right(kept.times, t)
        return kept.states[k - 1] if k else None

    def upto(self, t: int) -> list[int]:
        self.settle()
        return super().upto(t)

    def at(self, t: int) -> States:
        found = ((client, self.state(client, t)) for client in self._kept)
        return {client: state for client, state in found if state is not None}

    def parties(self, population: str, t: int) -> list[Party]:
        if not self.instants or t >= self.instants[-1]:
            return [Party(population, client) for client in self._members[population]]
        return [p for p in self.ever(population, t) if self.instance(p, t) is not None]

    def ever(self, population: str, t: int) -> list[Party]:
        return [Party(population, client) for client, since in self._since[population].items() if since <= t]

    def instance(self, party: Party, t: int) -> Instance | None:
        state = self.state(party.client, t)
        return None if state is None else state.instances.get(party.population)

    def changed(self, clients: Iterable[Client], first: int, last: int) -> list[int]:
        """The instants after ``first`` and up to ``last`` at which one of these clients changed."""
        found: set[int] = set()
        for client in clients:
            kept = self._of(client)
            if kept is not None:
                found.update(kept.times[bisect_right(kept.times, first) : bisect_right(kept.times, last)])
        return sorted(found)

    def between(self, first: int, last: int) -> list[int]:
        """The instants after ``first`` and up to ``last`` at which anybody changed."""
        self.settle()
        return self.instants[bisect_right(self.instants, first) : bisect_right(self.instants, last)]

    def clients(self) -> Iterator[Client]:
        """Everybody who was ever heard of."""
        return iter(self._kept)

    # -- what an instant brings ------------------------------------------------------------------------

    def tried(self, t: int, changes: Iterable[Change]) -> Tried:
        """The states that changes would bring; nothing is kept. What cannot be a region raises."""
        states = Tried(self.latest)
        for change in changes:
            states[change.client] = self._changed(states.get(change.client), change, t)
        for client in list(states):
            for dependant, population in self._readers_of(client):
                state = states.get(dependant)
                if state is not None and population.name in state.instances:
                    states[dependant] = self._refilled(dependant, state, states)
        return states

    def apply(self, t: int, changes: Iterable[Change]) -> None:
        self.put(t, self.tried(t, changes))

    def put(self, t: int, states: States) -> Callable[[], None]:
        """Keep the states of an instant; gives what takes them back."""
        assert not self.instants or t >= self.instants[-1]
        undo: list[Callable[[], object]] = []
        if not self.instants or self.instants[-1] < t:
            self.instants.append(t)
            undo.append(self.instants.pop)
        for client, state in states.items():
            kept = self._of(client) or self._kept.setdefault(client, Kept([], []))
            before = kept.states[-1] if kept.states else None
            if kept.times and kept.times[-1] == t:
                kept.states[-1] = state
                undo.append(lambda kept=kept, before=before: kept.states.__setitem__(-1, before))  # type: ignore[misc]
            else:
                kept.times.append(t)
                kept.states.append(state)
                undo.append(lambda kept=kept: (kept.times.pop(), kept.states.pop()))  # type: ignore[misc]
                if before is None:
                    undo.append(lambda client=client: self._kept.pop(client))  # type: ignore[misc]
            self._enrol(client, before, state)
            undo.append(lambda c=client, a=before, b=state: self._enrol(c, b, a))  # type: ignore[misc]
            for name in state.instances:
                if client not in self._since[name]:
                    self._since[name][client] = t
                    undo.append(lambda c=client, n=name: self._since[n].pop(c))  # type: ignore[misc]

        def take_back() -> None:
            for step in reversed(undo):
                step()

        return take_back

    def _enrol(self, client: Client, before: State | None, after: State | None) -> None:
        """Note who is there after a change, or after it was taken back."""
        was = before.instances if before else {}
        now = after.instances if after else {}
        for name in was.keys() - now.keys():
            del self._members[name][client]
        for name in now.keys() - was.keys():
            self._members[name][client] = None
