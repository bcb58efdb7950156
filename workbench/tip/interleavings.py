"""Two brokers and a few services over all interleavings: what can happen next, and what becomes of it (TIP 3, 8).

What runs is what is explored: `Explorer` gives inputs to the production `broker.step` and happenings to the production
hosts, and carries their effects. Services follow scripts, which may repeat, so that runs without end are covered;
brokers have a script too, the `plan`: connect, part, shut down, start again. Time passes by discrete ticks. Which rows
of the table in `transitions` were taken is counted. Nothing is judged here: see `verify`, and `tabulated` for SPIN.

Two worlds are the same (`world_key`) if they differ only in the ids of system events, in when something happened (as
long as it was equally long ago) and in the broker's counters: no step looks at these. Services that only listen take
their events at once, which changes no order that anybody can see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from workbench.errors import WorkbenchError
from workbench.tip import broker as brokering
from workbench.tip import host as hosting
from workbench.tip.broker import SYSTEM, broker, deadline
from workbench.tip.events import Event
from workbench.tip.host import Behaviour, Host, Publish
from workbench.tip.inputs import (
    BROKER,
    Close,
    Connect,
    Connected,
    Disconnected,
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
from workbench.tip.state import Limits, State
from workbench.tip.transitions import transition

JOIN, DIE, RETURN, SHOW = "join", "die", "return", "show"
Act = str | Publish | hosting.Leave | hosting.Advertise | hosting.Withdraw | hosting.Subscribe | hosting.Unsubscribe
Plan = tuple[tuple[str, Input], ...]
MEET: Plan = (("client", Connect("server")),)
Stepping = Callable[[State, Input, int], brokering.Step]
Reacting = Callable[[Host, "Act | Event", int], hosting.Hosted]


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


def by_identity(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, called once for each first argument and what follows it; many worlds share a broker's state.

    >>> known = by_identity(lambda names, more: [*names, more])
    >>> names = ["a"]
    >>> known(names, "b") is known(names, "b"), known(["a"], "b") is known(names, "b")
    (True, False)
    """
    known: dict[Any, tuple[Any, Any]] = {}

    def called(first: Any, *more: Any) -> Any:
        key = (id(first), *((type(one), one) for one in more))  # inputs of two kinds can be equal as tuples
        if key not in known:
            known[key] = (first, function(first, *more))  # the first is kept, so that its identity stays its own
        return known[key][1]

    return called


def world_key(world: World, key: Callable[[State, int], Any]) -> Any:
    """What a world is known by; `key` is `state_key`, or the same `by_identity`."""
    return (
        tuple(key(world.brokers[name], world.now) for name in sorted(world.brokers)),
        tuple((name, host_key(host)) for name, host in sorted(world.hosts.items())),
        tuple(sorted(world.at.items())),
        tuple(sorted((link, tuple(map(event_key, events))) for link, events in world.channels.items() if events)),
        world.links,
    )


def host_key(host: Host) -> Any:
    """What a service is known by."""
    return (host.ended, host.made, host.advertised)


def event_key(event: Event | None) -> Any:
    """What a message is known by; none is the end of a connection."""
    if event is None:
        return ("", "", "")
    return (event.type, event.body, event.publisher) if event.category == SYSTEM else (event.id, "", event.publisher)


def state_key(state: State, now: int) -> Any:
    """What a broker is known by."""

    def ago(since: int | None) -> int | None:
        """How long ago; whether somebody is gone for `grace` or for longer, no step asks."""
        return None if since is None else min(now - since, state.limits.grace)

    return (
        state.phase,
        tuple(
            (n, s.description.advertisements, s.description.subscriptions, s.subscriptions, s.active, s.told,
             ago(s.gone_since), tuple((type, now - at) for type, at in s.heard.items() if type not in s.silent))
            for n, s in sorted(state.services.items())
        ),
        tuple(
            (n, b.entries, b.wants, b.told_entries, b.told_wants, ago(b.gone_since))
            for n, b in sorted(state.neighbours.items())
        ),
        frozenset(state.connected),
        tuple((n, e.id) for n, e in state.in_queue),
        tuple((n, b.in_flight, tuple(map(event_key, b.waiting))) for n, b in sorted(state.outboxes.items())),
        frozenset(id for chunk in state.recent.chunks for id in chunk),
        state.foreground,
    )


def react(host: Host, happening: Act | Event, now: int) -> hosting.Hosted:
    """What a service does when an event comes, or by its script."""
    if happening == JOIN:
        return hosting.register(host, now)
    if isinstance(happening, Event):
        return hosting.happen(host, happening, now)
    assert not isinstance(happening, str), happening
    return hosting.do(host, (happening,), now)


class Explorer:
    """What can happen in a world, and what becomes of it: brokers step, services react, effects are carried."""

    def __init__(
        self, scripts: Mapping[str, Script], step: Stepping, plan: Plan = MEET, react: Reacting = react
    ) -> None:
        self.scripts, self.step, self.plan, self.react = scripts, by_identity(step), plan, react
        self.key = by_identity(state_key)
        self.reached: Counter[str] = Counter()

    def first(self) -> World:
        limits = Limits(grace=2, window=1_000)
        brokers = {name: broker(name, limits=limits) for name in ("client", "server")}
        self.reached.update(transition(state, Start(), 0) for state in brokers.values())
        brokers = {name: self.step(state, Start(), 0).state for name, state in brokers.items()}
        hosts = {name: Host(name, script.behaviour) for name, script in self.scripts.items()}
        return World(brokers, hosts, dict.fromkeys(["brokers", *self.scripts], 0), {}, frozenset(), 0)

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
            return self._host(world, name, act) if act == JOIN else world
        assert act is not None
        return self._host(world, name, act)

    def input(self, world: World, name: str, input: Input) -> World:
        """Give a broker an input, and carry its effects."""
        before = world.brokers[name]
        state, effects = self.step(before, input, world.now)
        self.reached[transition(before, input, world.now)] += 1
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
        else:
            world = self._host(world, receiver, event)
        if sender in world.brokers and (sender, receiver) in world.links:
            world = self.input(world, sender, Sent(receiver))
        return world

    def _host(self, world: World, name: str, happening: Act | Event) -> World:
        hosted = self.react(world.hosts[name], happening, world.now)
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
