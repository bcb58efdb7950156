"""Verification: the production step explored over all interleavings (TIP 3, 8).

The paper re-models its architecture in Uppaal and mostly simulates the model. Here what runs is what is explored:
`explore` takes two brokers, a few services with scripts, and follows `broker.step` through every order in which events
can be delivered, in-queues filtered, scripts continued and time pass, by discrete ticks. Scripts may repeat, so that
runs without end are covered. Brokers have a script too, the `plan`: connect, part, shut down, start again. Which rows
of the table in `transitions` were taken is counted.

Checked in every state and at every step:

* delivery: an event goes to exactly the services that are to have it by their own descriptions, once;
* a stalled service is subscribed to nothing, and offers nothing to other brokers;
* an event of user input reaches the visible service only.

Checked where nothing more can happen (and nothing may happen only when all is done: no deadlock), and in every cycle
that a weakly fair scheduler could run for ever:

* conditions met leads to subscribed, not met to stalled, at every broker;
* who is gone leaves no advertisement, no subscription and no queue behind.

Two worlds are the same if they differ only in the ids of system events, in when something happened (as long as it was
equally long ago) and in the broker's counters: no step looks at these. Services that only listen take their events at
once, which changes no order that anybody can see.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import networkx as nx

from workbench.errors import WorkbenchError
from workbench.tip import broker as brokering
from workbench.tip import host as hosting
from workbench.tip.broker import SYSTEM, USER_INPUT, broker, deadline
from workbench.tip.events import Event
from workbench.tip.host import Behaviour, Host, Publish
from workbench.tip.inputs import (
    BROKER,
    Close,
    Connect,
    Connected,
    Disconnected,
    Effect,
    Filter,
    Foreground,
    Input,
    Open,
    Received,
    Send,
    Sent,
    Start,
    Tick,
)
from workbench.tip.observer import Registered, active_services
from workbench.tip.rules import Entry
from workbench.tip.state import Limits, State
from workbench.tip.transitions import transition

JOIN, DIE, RETURN, CONNECT, SHOW = "join", "die", "return", "connect", "show"
Act = str | Publish | hosting.Leave | hosting.Advertise | hosting.Withdraw | hosting.Subscribe | hosting.Unsubscribe
Plan = tuple[tuple[str, Input], ...]
MEET: Plan = (("client", Connect("server")),)
Stepping = Callable[[State, Input, int], brokering.Step]


@dataclass(frozen=True)
class Script:
    """What one service does, in this order: join, publish, die, return, leave; `again` from an act on, for ever."""

    name: str
    broker: str
    behaviour: Behaviour
    acts: tuple[Act, ...]
    again: int | None = None
    listens: bool = True


class World(NamedTuple):
    """Brokers, services, how far each script is, what is on its way, who is connected with whom, and the tick."""

    brokers: Mapping[str, State]
    hosts: Mapping[str, Host]
    at: Mapping[str, int]
    channels: Mapping[tuple[str, str], tuple[Event | None, ...]]
    links: frozenset[tuple[str, str]]
    now: int


@dataclass(frozen=True)
class Found:
    """A property that does not hold, and the actions that lead there."""

    what: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.what}\n" + "\n".join(f"  {n}. {action}" for n, action in enumerate(self.trace, 1))


@dataclass(frozen=True)
class Exploration:
    """How much was explored, which inputs were reached, and what was found."""

    states: int
    transitions: int
    reached: Counter[str] = field(default_factory=Counter)
    ends: int = 0
    found: tuple[Found, ...] = ()


class Violation(WorkbenchError):
    """A property that a step broke."""


def explore(
    scripts: tuple[Script, ...], *, plan: Plan = MEET, limit: int = 200_000, step: Stepping | None = None
) -> Exploration:
    """Explore all interleavings of the scripts at two brokers, ``client`` and ``server``, which act by the plan.

    >>> from workbench.tip.descriptions import ServiceDescription
    >>> from workbench.tip.services import History
    >>> explore((Script("history", "client", History(), (JOIN, hosting.Leave())),)).found
    ()
    """
    explorer = _Explorer({script.name: script for script in scripts}, step or brokering.step, plan)
    return explorer.run(limit)


def worlds_equal(world: World) -> Any:
    """What a world is known by."""
    return (
        tuple(_state_key(world.brokers[name], world.now) for name in sorted(world.brokers)),
        tuple((name, host.ended, host.made, host.advertised) for name, host in sorted(world.hosts.items())),
        tuple(sorted(world.at.items())),
        tuple(sorted((link, tuple(map(_event_key, events))) for link, events in world.channels.items() if events)),
        world.links,
    )


def _event_key(event: Event | None) -> Any:
    if event is None:
        return ("", "", "")
    return (event.type, event.body, event.publisher) if event.category == SYSTEM else (event.id, "", event.publisher)


def _state_key(state: State, now: int) -> Any:
    def ago(since: int | None) -> int | None:
        return None if since is None else now - since

    return (
        state.phase,
        tuple(
            (n, s.description.advertisements, s.description.subscriptions, s.subscriptions, s.active, s.told,
             ago(s.gone_since), tuple((type, ago(at)) for type, at in s.heard.items() if type not in s.silent))
            for n, s in sorted(state.services.items())
        ),
        tuple(
            (n, b.entries, b.wants, b.told_entries, b.told_wants, ago(b.gone_since))
            for n, b in sorted(state.neighbours.items())
        ),
        frozenset(state.connected),
        tuple((n, e.id) for n, e in state.in_queue),
        tuple((n, b.in_flight, tuple(map(_event_key, b.waiting))) for n, b in sorted(state.outboxes.items())),
        frozenset(id for chunk in state.recent.chunks for id in chunk),
        state.foreground,
    )


class _Explorer:
    def __init__(self, scripts: Mapping[str, Script], step: Stepping, plan: Plan = MEET) -> None:
        self.scripts, self.step, self.plan = scripts, step, plan
        self.reached: Counter[str] = Counter()

    def first(self) -> World:
        limits = Limits(grace=2, window=1_000)
        brokers = {name: broker(name, limits=limits) for name in ("client", "server")}
        self.reached.update(transition(state, Start(), 0) for state in brokers.values())
        brokers = {name: self.step(state, Start(), 0).state for name, state in brokers.items()}
        return World(brokers, {}, dict.fromkeys(["brokers", *self.scripts], 0), {}, frozenset(), 0)

    # -- the search ----------------------------------------------------------------------------------------

    def run(self, limit: int) -> Exploration:
        first = self.first()
        keys = {worlds_equal(first): 0}
        worlds, parents = [first], [(-1, "")]
        edges: list[tuple[int, int, str]] = []
        queue = deque([0])
        ends: list[int] = []
        while queue:
            number = queue.popleft()
            world, enabled = worlds[number], 0
            for action in self.actions(world):
                enabled += 1
                try:
                    after = self.act(world, action)
                    self.check_state(after)
                except Violation as violation:
                    trace = (*_trace(parents, number), " ".join(action))
                    return self._exploration(worlds, edges, ends, Found(str(violation), trace))
                key = worlds_equal(after)
                if key not in keys:
                    if len(worlds) >= limit:
                        raise WorkbenchError(f"more than {limit} states; expected a smaller world, or a larger limit")
                    keys[key] = len(worlds)
                    worlds.append(after)
                    parents.append((number, " ".join(action)))
                    queue.append(keys[key])
                edges.append((number, keys[key], " ".join(action)))
            if not enabled:
                ends.append(number)
                wrong = self.unsettled(world)
                if wrong:
                    return self._exploration(worlds, edges, ends, Found(wrong, _trace(parents, number)))
        unfair = self._cycles(worlds, edges, parents)
        return self._exploration(worlds, edges, ends, *([unfair] if unfair else []))

    def _exploration(self, worlds: list[World], edges: list[Any], ends: list[int], *found: Found) -> Exploration:
        return Exploration(len(worlds), len(edges), self.reached, len(ends), found)

    def _cycles(
        self, worlds: list[World], edges: list[tuple[int, int, str]], parents: list[tuple[int, str]]
    ) -> Found | None:
        """A cycle in which a promise stays open, though every action that is always possible is taken."""
        wrong = {number: self.unkept(world) for number, world in enumerate(worlds)}
        graph = nx.DiGraph()
        graph.add_edges_from((a, b) for a, b, _ in edges if wrong[a] and wrong[a] == wrong[b])
        by_state: dict[int, list[tuple[int, str]]] = {}
        for a, b, action in edges:
            by_state.setdefault(a, []).append((b, action))
        for knot in nx.strongly_connected_components(graph):
            inside = [(a, b, action) for a in knot for b, action in by_state.get(a, []) if b in knot]
            if not inside:
                continue
            always = set.intersection(*({action for _, action in by_state.get(a, [])} for a in knot))
            if always <= {action for _, _, action in inside}:
                number = min(knot)
                return Found(f"for ever: {wrong[number]}", _trace(parents, number))
        return None

    # -- actions -------------------------------------------------------------------------------------------

    def actions(self, world: World) -> Iterator[tuple[str, ...]]:
        """What can happen next."""
        for (sender, receiver), events in sorted(world.channels.items()):
            if events:
                yield ("deliver", sender, receiver)
        for name in sorted(world.brokers):
            if world.brokers[name].in_queue:
                yield ("filter", name)
        if world.at["brokers"] < len(self.plan):
            name, input = self.plan[world.at["brokers"]]
            running = [other for other, state in world.brokers.items() if state.phase == "running"]
            possible = name not in running if isinstance(input, Start) else name in running
            if isinstance(input, Connect):
                possible = len(running) == 2 and ("client", "server") not in world.links
            if possible:
                yield ("connect",) if isinstance(input, Connect) else (type(input).__name__.lower(), name)
        for name, script in self.scripts.items():
            if self._next(script, world) is not None:
                yield ("act", name)
        if any(deadline(state) is not None for state in world.brokers.values()):
            yield ("tick",)

    def _next(self, script: Script, world: World) -> Act | None:
        at = world.at[script.name]
        if at >= len(script.acts):
            return None
        act = script.acts[at]
        state, linked = world.brokers[script.broker], (script.name, script.broker) in world.links
        needs_link = act not in (JOIN, RETURN, SHOW)
        # A service that was told to end, or deregistered while it was gone, does not go on.
        if state.phase != "running" or (needs_link and not linked):
            return None
        if act == RETURN and (linked or script.name not in state.services):
            return None
        return act

    def act(self, world: World, action: tuple[str, ...]) -> World:
        """The world after an action."""
        match action:
            case ("deliver", sender, receiver):
                events = world.channels[(sender, receiver)]
                world = world._replace(channels={**world.channels, (sender, receiver): events[1:]})
                return self._arrive(world, sender, receiver, events[0])
            case ("filter", name):
                return self.input(world, name, Filter())
            case ("connect",) | ("disconnect" | "disconnected" | "shutdown" | "start", _):
                at = world.at["brokers"]
                (name, input), world = self.plan[at], world._replace(at={**world.at, "brokers": at + 1})
                if isinstance(input, Disconnected):
                    return self._cut(world, name, input.name)  # both notice
                return self.input(world, name, input)
            case ("tick",):
                world = world._replace(now=world.now + 1)
                for name in sorted(world.brokers):
                    due = deadline(world.brokers[name])
                    if due is not None and due <= world.now:
                        world = self.input(world, name, Tick())
                return world
            case ("act", name):
                return self._script(world, self.scripts[name])
        raise WorkbenchError(f"no action {action!r}")

    def _script(self, world: World, script: Script) -> World:
        act, name, at = self._next(script, world), script.name, world.at[script.name] + 1
        if at >= len(script.acts) and script.again is not None:
            at = script.again
        world = world._replace(at={**world.at, name: at})
        if act == DIE:
            return self._cut(world, name, script.broker)
        if act == SHOW:
            return self.input(world, script.broker, Foreground(name))
        if act in (JOIN, RETURN):
            links = world.links | {(name, script.broker), (script.broker, name)}
            world = self.input(world._replace(links=links), script.broker, Connected(name))
            if act == JOIN:
                world = self._host(world, name, hosting.register(Host(name, script.behaviour), world.now))
            return world
        assert act is not None and not isinstance(act, str)
        return self._host(world, name, hosting.do(world.hosts[name], (act,), world.now))

    def input(self, world: World, name: str, input: Input) -> World:
        """Give a broker an input, and carry its effects."""
        before = world.brokers[name]
        state, effects = self.step(before, input, world.now)
        self.reached[transition(before, input, world.now)] += 1
        if isinstance(input, Filter):
            self.check_delivery(before, effects)
        world = world._replace(brokers={**world.brokers, name: state})
        for effect in effects:
            match effect:
                case Send(receiver, event):
                    if (name, receiver) in world.links:
                        world = self._carry(world, name, receiver, event)
                case Close(other):
                    if (name, other) in world.links:
                        world = self._carry(world, name, other, None)
                case Open(other):
                    world = world._replace(links=world.links | {(name, other), (other, name)})
                    world = self.input(world, name, Connected(other, BROKER))
                    world = self.input(world, other, Connected(name, BROKER))
        return world

    def _carry(self, world: World, sender: str, receiver: str, event: Event | None) -> World:
        if receiver in self.scripts and self.scripts[receiver].listens:
            return self._arrive(world, sender, receiver, event)
        waiting = world.channels.get((sender, receiver), ())
        return world._replace(channels={**world.channels, (sender, receiver): (*waiting, event)})

    def _arrive(self, world: World, sender: str, receiver: str, event: Event | None) -> World:
        if event is None:
            return self._cut(world, sender, receiver)
        if receiver in world.brokers:
            world = self.input(world, receiver, Received(sender, event))
        elif receiver in world.hosts:
            world = self._host(world, receiver, hosting.happen(world.hosts[receiver], event, world.now))
        if sender in world.brokers and (sender, receiver) in world.links:
            world = self.input(world, sender, Sent(receiver))
        return world

    def _host(self, world: World, name: str, hosted: hosting.Hosted) -> World:
        world = world._replace(hosts={**world.hosts, name: replace(hosted.host, received=())})
        for event in hosted.sends:
            world = self._carry(world, name, self.scripts[name].broker, event)
        return world

    def _cut(self, world: World, one: str, other: str) -> World:
        if (one, other) not in world.links:
            return world
        channels = {link: events for link, events in world.channels.items() if set(link) != {one, other}}
        world = world._replace(links=world.links - {(one, other), (other, one)}, channels=channels)
        for here, there in ((one, other), (other, one)):
            if here in world.brokers:
                world = self.input(world, here, Disconnected(there))
        return world

    # -- properties ----------------------------------------------------------------------------------------

    def check_delivery(self, before: State, effects: tuple[Effect, ...]) -> None:
        """The event at the head of the in-queue goes to whom it belongs, by the services' own descriptions."""
        if not before.in_queue:
            return
        event, expected = before.in_queue[0][1], expected_receivers(before)
        got = Counter(effect.name for effect in effects if isinstance(effect, Send))
        if got != Counter(expected):
            raise Violation(f"{event.type} {event.id[:8]} went to {dict(got)}; expected {sorted(expected)}, once")

    def check_state(self, world: World) -> None:
        """What holds in every state."""
        for name, state in world.brokers.items():
            if state.phase != "running":
                continue
            since = {n: s.gone_since for n, s in state.services.items()}
            since |= {n: b.gone_since for n, b in state.neighbours.items()}
            for gone, tick in since.items():
                if tick is not None and tick + state.limits.grace <= world.now:
                    raise Violation(f"{gone} is gone since tick {tick}, and still registered at {name}")
            offered = {entry.publisher for other in state.neighbours.values() for entry in other.told_entries}
            for service, one in state.services.items():
                if not one.active and (one.subscriptions or state.label(service) in offered):
                    raise Violation(f"{service} is stalled at {name}, and yet subscribed or advertised")
            strange = sorted(offered - {state.label(service) for service in state.services})
            if strange:
                raise Violation(f"{name} offers other brokers what nobody here publishes: {strange}")

    def unkept(self, world: World) -> str:
        """A promise that is open: a condition met and not answered, or not met and unnoticed; empty if none is."""
        for name, state in world.brokers.items():
            if state.phase != "running":
                continue
            registered = [Registered(state.label(n), s.description) for n, s in state.services.items()]
            entries = _truly_outside(world, name)
            active = active_services(registered, entries)
            for service, known in sorted(state.services.items()):
                if (state.label(service) in active) != known.active:
                    return f"the conditions of {service} are {'' if not known.active else 'not '}met, and it is " + (
                        "stalled" if not known.active else "subscribed"
                    )
        return ""

    def unsettled(self, world: World) -> str:
        """What is wrong with a world in which nothing more can happen; empty if nothing is."""
        running = {name: state for name, state in world.brokers.items() if state.phase == "running"}
        if world.at["brokers"] < len(self.plan):
            return f"deadlock: the brokers wait for {self.plan[world.at['brokers']]}"
        for script in self.scripts.values():
            if script.broker not in running or script.name not in running[script.broker].services:
                continue
            if world.at[script.name] < len(script.acts) and (script.acts[world.at[script.name]] != RETURN):
                return f"deadlock: {script.name} waits for {script.acts[world.at[script.name]]}"
        for service, at in ((script.name, script.broker) for script in self.scripts.values()):
            if (service, at) in world.links and at not in running:
                return f"{service} is there, and {at} has ended"
            if (service, at) in world.links and service not in running[at].services:
                return f"{service} is there, and not registered at {at}"
        for name, state in running.items():
            for service in state.services:
                if (service, name) not in world.links:
                    return f"{service} is gone, and still registered at {name}"
            for receiver, box in state.outboxes.items():
                if box.waiting or box.in_flight:
                    return f"{name} keeps {len(box.waiting) + box.in_flight} events for {receiver} for ever"
            gone = sorted(set(state.outboxes) - set(state.services) - set(state.neighbours) - set(state.connected))
            if gone:
                return f"{name} keeps an outbox for {gone[0]}, who is gone"
            for other, neighbour in state.neighbours.items():
                theirs = _truly_advertised(world.brokers[other])
                if {(e.publisher, e.advertisement) for e in neighbour.entries} != theirs:
                    return f"{name} does not know what is advertised at {other}"
        return self.unkept(world)


def expected_receivers(state: State) -> set[str]:
    """Who is to have the event at the head of the in-queue, of those who are connected."""
    if not state.in_queue:
        return set()
    origin, event = state.in_queue[0]
    publisher = event.publisher or state.label(origin)
    expected = {name for name in state.services if name != origin and _wants(state, name, event, publisher)}
    asked = {state.recent.origin(id) for id in event.relates_to}
    if asked and asked <= set(state.neighbours):
        expected = asked  # type: ignore[assignment]
    elif not event.forwarded:
        expected |= {
            name
            for name, other in state.neighbours.items()
            if any(s.accepts(event.type, event.category, event.quality, publisher) for s in other.wants)
        }
    return expected & set(state.connected)


def _wants(state: State, name: str, event: Event, publisher: str) -> bool:
    """Whether a service is to have an event, read off its own description rather than off any index."""
    service = state.services[name]
    if not service.active or not event.is_shown:
        return False
    if event.category == USER_INPUT and state.foreground != name:
        return False
    if event.type in service.description.subscriptions:
        return True
    outside = {e for other in state.neighbours.values() for e in other.entries}
    local = {Entry(publisher, advertisement) for publisher, advertisement in _truly_advertised(state)}
    return any(
        rule.accepts(entry)
        for entry in outside | local
        if entry.publisher == publisher and entry.advertisement.type == event.type
        for group in service.description.groups
        for rule in group
        if rule.quality <= event.quality
    )


def _truly_advertised(state: State) -> set[tuple[str, Any]]:
    return {(state.label(n), a) for n, s in state.services.items() if s.active for a in s.description.advertisements}


def _truly_outside(world: World, name: str) -> list[Entry]:
    """What the other brokers that this one is connected with truly advertise."""
    return [
        Entry(publisher, advertisement, other)
        for other, state in world.brokers.items()
        if other != name and (name, other) in world.links
        for publisher, advertisement in sorted(_truly_advertised(state))
    ]


def _trace(parents: list[tuple[int, str]], number: int) -> tuple[str, ...]:
    made: list[str] = []
    while number > 0:
        number, action = parents[number]
        made.append(action)
    return tuple(reversed(made))
