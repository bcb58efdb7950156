"""What the production step did in every state that was met, as tables (TIP 3, 8).

`tabulated` runs two brokers and a few services through every interleaving and writes down each single step: a row says
(state, input) -> (state, what is sent, closed or opened). How steps follow one another is not in the tables: whoever
reads them (`promela`) composes them anew. States are numbered by what a world is known by (`interleavings`); beside
each state of a broker stand facts about it. A row that had two outcomes would mean that a step looks at more than a
state is known by: that is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from workbench.errors import WorkbenchError
from workbench.tip import broker as brokering
from workbench.tip.broker import USER_INPUT, Step, deadline
from workbench.tip.events import Event
from workbench.tip.host import Host, Hosted
from workbench.tip.inputs import Close, Effect, Input, Open, Received, Send, Shutdown
from workbench.tip.interleavings import (
    MEET,
    Act,
    Explorer,
    Plan,
    Script,
    Stepping,
    World,
    by_identity,
    event_key,
    host_key,
    react,
    state_key,
    world_key,
)
from workbench.tip.observer import Registered, active_services
from workbench.tip.state import State
from workbench.tip.verify import astray, expected_receivers, truly_advertised, truly_outside

CLOSED, OPENED = 0, -1
"""Messages that end a connection and begin one."""


class Given(NamedTuple):
    """An input: what it is, who it is about or from, and the number of a message or of an act."""

    what: str
    who: str = ""
    number: int = 0


class Row(NamedTuple):
    """What an input does: the next state, and to whom which message goes."""

    next: int
    does: tuple[tuple[str, int], ...] = ()


@dataclass
class Table:
    """The states of a broker or service as they were met, and a row for each input that was met in one."""

    states: dict[Any, int] = field(default_factory=dict)
    rows: dict[tuple[int, Given], Row] = field(default_factory=dict)
    facts: list[dict[str, frozenset[str]]] = field(default_factory=list)

    def number(self, key: Any) -> int:
        return self.states.setdefault(key, len(self.states))

    def add(self, state: int, given: Given, row: Row) -> None:
        known = self.rows.setdefault((state, given), row)
        if known != row:
            raise WorkbenchError(f"{given} in state {state} leads to {known} and to {row}; expected one outcome")


class Pair(NamedTuple):
    """A broker's state, the other one's, and whether the two are connected."""

    broker: str
    here: int
    there: int
    linked: bool


@dataclass
class Tables:
    """The tables of brokers and services, messages by number, what is true of pairs of brokers, how many worlds."""

    scripts: Mapping[str, Script]
    plan: Plan
    nodes: dict[str, Table]
    messages: dict[Any, int] = field(default_factory=lambda: {event_key(None): CLOSED})
    met: dict[Pair, frozenset[str]] = field(default_factory=dict)
    known: dict[Pair, bool] = field(default_factory=dict)
    longest: int = 1
    worlds: int = 0
    transitions: int = 0
    key: Callable[[State, int], Any] = field(default_factory=lambda: by_identity(state_key), repr=False)

    @property
    def brokers(self) -> list[str]:
        return [name for name in self.nodes if name not in self.scripts]

    # -- writing down --------------------------------------------------------------------------------------------

    def state(self, state: State, now: int) -> int:
        """The number of a broker's state; facts are noted when it is met for the first time."""
        table = self.nodes[state.name]
        number = table.number(self.key(state, now))
        if number == len(table.facts):
            table.facts.append(_facts(state, now))
        return number

    def message(self, event: Event) -> int:
        return self.messages.setdefault(event_key(event), len(self.messages))

    def stepped(self, before: State, input: Input, after: Step, now: int) -> None:
        row = Row(self.state(after.state, now), tuple(self._does(after.effects)))
        self.nodes[before.name].add(self.state(before, now), self._given(input), row)

    def passed(self, state: State, now: int) -> None:
        """A tick passed: what happened has happened longer ago."""
        self.nodes[state.name].add(self.state(state, now), Given("Pass"), Row(self.state(state, now + 1)))

    def reacted(self, host: Host, happening: Act | Event, hosted: Hosted) -> None:
        script, table = self.scripts[host.name], self.nodes[host.name]
        if isinstance(happening, Event):
            given = Given("Received", script.broker, self.message(happening))
        else:
            given = Given("Act", number=script.acts.index(happening))
        sends = tuple((script.broker, self.message(event)) for event in hosted.sends)
        table.add(table.number(host_key(host)), given, Row(table.number(host_key(hosted.host)), sends))

    def met_in(self, world: World) -> None:
        """Whose conditions are truly met in a world, and who truly knows what the other broker advertises."""
        self.longest = max(self.longest, *map(len, world.channels.values()), 1)
        numbers = {name: self.state(state, world.now) for name, state in world.brokers.items()}
        for name, other in (("client", "server"), ("server", "client")):
            state, linked = world.brokers[name], (name, other) in world.links
            pair = Pair(name, numbers[name], numbers[other], linked)
            if pair in self.met:
                continue
            registered = [Registered(state.label(n), s.description) for n, s in state.services.items()]
            active = active_services(registered, truly_outside(world, name)) if state.phase == "running" else ()
            self.met[pair] = frozenset(n for n in state.services if state.label(n) in active)
            entries = state.neighbours[other].entries if other in state.neighbours else frozenset()
            theirs = truly_advertised(world.brokers[other]) if linked else set()
            self.known[pair] = {(e.publisher, e.advertisement) for e in entries} == theirs

    def _given(self, input: Input) -> Given:
        what = type(input).__name__
        if isinstance(input, Received):
            return Given(what, input.name, self.message(input.event))
        if isinstance(input, Shutdown):
            return Given(what, number=input.keep)
        return Given(what, getattr(input, "name", ""))

    def _does(self, effects: tuple[Effect, ...]) -> list[tuple[str, int]]:
        made = []
        for effect in effects:
            match effect:
                case Send(name, event):
                    made.append((name, self.message(event)))
                case Close(name):
                    made.append((name, CLOSED))
                case Open(name):
                    made.append((name, OPENED))
        return made


def tabulated(
    scripts: tuple[Script, ...], plan: Plan = MEET, *, limit: int = 200_000, step: Stepping | None = None
) -> Tables:
    """The tables of two brokers, which act by the plan, and a few services, over all interleavings.

    >>> from workbench.tip.host import Leave
    >>> from workbench.tip.interleavings import JOIN
    >>> from workbench.tip.services import History
    >>> tables = tabulated((Script("history", "client", History(), (JOIN, Leave())),))
    >>> tables.worlds > 10, len(tables.nodes["client"].rows) > 5
    (True, True)
    """
    named = {script.name: script for script in scripts}
    tables = Tables(named, plan, {name: Table() for name in ("client", "server", *named)})
    one_step = step or brokering.step

    def stepping(state: State, input: Input, now: int) -> Step:
        after = one_step(state, input, now)
        tables.stepped(state, input, after, now)
        return after

    def reacting(host: Host, happening: Act | Event, now: int) -> Hosted:
        hosted = react(host, happening, now)
        tables.reacted(host, happening, hosted)
        return hosted

    first = Explorer(named, one_step, plan).first()
    tables.worlds = _walk(tables, Explorer(named, stepping, plan, reacting), first, limit)
    return tables


def _walk(tables: Tables, explorer: Explorer, first: World, limit: int) -> int:
    """Every world once; the states of the first one have the number 0."""
    for name, host in first.hosts.items():
        tables.nodes[name].number(host_key(host))
    tables.met_in(first)
    seen, worlds = {world_key(first, tables.key)}, [first]
    while worlds:
        world = worlds.pop()
        for action in explorer.actions(world):
            if action == ("tick",):
                for state in world.brokers.values():
                    tables.passed(state, world.now)
            after = explorer.act(world, action)
            tables.transitions += 1
            key = world_key(after, tables.key)
            if key not in seen:
                if len(seen) >= limit:
                    raise WorkbenchError(f"more than {limit} states; expected a smaller world, or a larger limit")
                seen.add(key)
                worlds.append(after)
                tables.met_in(after)
    return len(seen)


def _facts(state: State, now: int) -> dict[str, frozenset[str]]:
    """What is true in a state of a broker: sets of names."""
    services = state.services.items()
    registered = [Registered(state.label(n), s.description) for n, s in services]
    known = active_services(registered, [entry for other in state.neighbours.values() for entry in other.entries])
    due, running = deadline(state), state.phase == "running"
    visible = bool(state.in_queue) and state.in_queue[0][1].category == USER_INPUT
    is_so = {
        "running": running, "busy": bool(state.in_queue), "waiting": due is not None,
        "due": due is not None and due <= now, "astray": bool(astray(state, now)),
    }  # fmt: skip
    return {
        "registered": frozenset(state.services) if running else frozenset(),
        "active": frozenset(n for n, s in services if s.active and running),
        "known": frozenset(n for n in state.services if state.label(n) in known),
        "wanted": frozenset(expected_receivers(state)),
        "allowed": frozenset({*([state.foreground] if visible else state.services), *state.neighbours}),
        "is": frozenset(what for what, true in is_so.items() if true),
    }
