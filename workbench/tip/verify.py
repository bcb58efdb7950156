"""Verification: the production step explored over all interleavings (TIP 3, 8).

The paper re-models its architecture in Uppaal and mostly simulates the model. Here what runs is what is explored:
`explore` follows `broker.step` through every order in which events can be delivered, in-queues filtered, scripts
continued and time pass (see `interleavings`), and judges.

Checked in every state and at every step:

* delivery: an event goes to exactly the services that are to have it by their own descriptions, once;
* a stalled service is subscribed to nothing, and offers nothing to other brokers;
* an event of user input reaches the visible service only.

Checked where nothing more can happen (and nothing may happen only when all is done: no deadlock), and in every cycle
that a weakly fair scheduler could run for ever:

* conditions met leads to subscribed, not met to stalled, at every broker;
* who is gone leaves no advertisement, no subscription and no queue behind.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import networkx as nx

from workbench.errors import WorkbenchError
from workbench.tip import broker as brokering
from workbench.tip.broker import USER_INPUT
from workbench.tip.events import Event
from workbench.tip.inputs import Effect, Filter, Input, Send
from workbench.tip.interleavings import MEET, RETURN, Explorer, Plan, Script, Stepping, World, world_key
from workbench.tip.observer import Registered, active_services
from workbench.tip.rules import Entry
from workbench.tip.state import State


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
    scripts: tuple[Script, ...], plan: Plan = MEET, *, limit: int = 200_000, step: Stepping | None = None
) -> Exploration:
    """Explore all interleavings of the scripts at two brokers, ``client`` and ``server``, which act by the plan.

    >>> from workbench.tip.host import Leave
    >>> from workbench.tip.interleavings import JOIN
    >>> from workbench.tip.services import History
    >>> explore((Script("history", "client", History(), (JOIN, Leave())),)).found
    ()
    """
    return _Search({script.name: script for script in scripts}, _judged(step or brokering.step), plan).run(limit)


class _Search(Explorer):
    """Every world once, the nearest first."""

    def run(self, limit: int) -> Exploration:
        first = self.first()
        keys = {world_key(first, self.key): 0}
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
                    check_states(after)
                except Violation as violation:
                    trace = (*_trace(parents, number), " ".join(action))
                    return self._exploration(worlds, edges, ends, Found(str(violation), trace))
                key = world_key(after, self.key)
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
                wrong = unsettled(world, self.scripts, self.plan)
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
        wrong = {number: unkept(world) for number, world in enumerate(worlds)}
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


# -- properties -----------------------------------------------------------------------------------------------


def _judged(step: Stepping) -> Stepping:
    """The step, which has to deliver to whom an event belongs."""

    def judged(state: State, input: Input, now: int) -> brokering.Step:
        after = step(state, input, now)
        if isinstance(input, Filter):
            check_delivery(state, after.effects)
        return after

    return judged


def check_delivery(before: State, effects: tuple[Effect, ...]) -> None:
    """The event at the head of the in-queue goes to whom it belongs, by the services' own descriptions, once."""
    if before.in_queue:
        event, expected = before.in_queue[0][1], expected_receivers(before)
        got = Counter(effect.name for effect in effects if isinstance(effect, Send))
        if got != Counter(expected):
            raise Violation(f"{event.type} {event.id[:8]} went to {dict(got)}; expected {sorted(expected)}, once")


def check_states(world: World) -> None:
    """What holds in every state."""
    for name, state in world.brokers.items():
        wrong = astray(state, world.now)
        if wrong:
            raise Violation(f"{wrong} at {name}")


def astray(state: State, now: int) -> str:
    """What is wrong with the state of a broker, whatever the others do; empty if nothing is."""
    if state.phase != "running":
        return ""
    for gone, one in (*state.services.items(), *state.neighbours.items()):
        tick = one.gone_since  # type: ignore[attr-defined]
        if tick is not None and tick + state.limits.grace <= now:
            return f"{gone} is gone since tick {tick}, and still registered"
    offered = {entry.publisher for other in state.neighbours.values() for entry in other.told_entries}
    for service, said in state.services.items():
        if not said.active and (said.subscriptions or state.label(service) in offered):
            return f"{service} is stalled, and yet subscribed or advertised"
    strange = sorted(offered - {state.label(service) for service in state.services})
    return f"{strange} are offered to other brokers, and nobody publishes them" if strange else ""


def unkept(world: World) -> str:
    """A promise that is open: a condition met and not answered, or not met and unnoticed; empty if none is."""
    for name, state in world.brokers.items():
        if state.phase != "running":
            continue
        registered = [Registered(state.label(n), s.description) for n, s in state.services.items()]
        entries = truly_outside(world, name)
        active = active_services(registered, entries)
        for service, known in sorted(state.services.items()):
            if (state.label(service) in active) != known.active:
                return f"the conditions of {service} are {'' if not known.active else 'not '}met, and it is " + (
                    "stalled" if not known.active else "subscribed"
                )
    return ""


def unsettled(world: World, scripts: Mapping[str, Script], plan: Plan) -> str:
    """What is wrong with a world in which nothing more can happen; empty if nothing is."""
    running = {name: state for name, state in world.brokers.items() if state.phase == "running"}
    if world.at["brokers"] < len(plan):
        return f"deadlock: the brokers wait for {plan[world.at['brokers']]}"
    for script in scripts.values():
        if script.broker not in running or script.name not in running[script.broker].services:
            continue
        if world.at[script.name] < len(script.acts) and (script.acts[world.at[script.name]] != RETURN):
            return f"deadlock: {script.name} waits for {script.acts[world.at[script.name]]}"
    for service, at in ((script.name, script.broker) for script in scripts.values()):
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
            theirs = truly_advertised(world.brokers[other])
            if {(e.publisher, e.advertisement) for e in neighbour.entries} != theirs:
                return f"{name} does not know what is advertised at {other}"
    return unkept(world)


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
    local = {Entry(publisher, advertisement) for publisher, advertisement in truly_advertised(state)}
    return any(
        rule.accepts(entry)
        for entry in outside | local
        if entry.publisher == publisher and entry.advertisement.type == event.type
        for group in service.description.groups
        for rule in group
        if rule.quality <= event.quality
    )


def truly_advertised(state: State) -> set[tuple[str, Any]]:
    """What the services that a broker counts as active advertise, by their own descriptions."""
    return {(state.label(n), a) for n, s in state.services.items() if s.active for a in s.description.advertisements}


def truly_outside(world: World, name: str) -> list[Entry]:
    """What the other brokers that this one is connected with truly advertise."""
    return [
        Entry(publisher, advertisement, other)
        for other, state in world.brokers.items()
        if other != name and (name, other) in world.links
        for publisher, advertisement in sorted(truly_advertised(state))
    ]


def _trace(parents: list[tuple[int, str]], number: int) -> tuple[str, ...]:
    made: list[str] = []
    while number > 0:
        number, action = parents[number]
        made.append(action)
    return tuple(reversed(made))
