"""The production step over all interleavings of two brokers and three services, and seeded bugs (TIP 3, 8)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import pytest

from tests.tip.worlds import LOCATION, publishing
from workbench.tip import broker as brokering
from workbench.tip.broker import Step
from workbench.tip.inputs import Close, Connected, Disconnected, Filter, Input, Received, Send, Tick
from workbench.tip.interleavings import JOIN, SHOW, Script
from workbench.tip.spin import SAFETY
from workbench.tip.state import State
from workbench.tip.transitions import TRANSITIONS
from workbench.tip.verified import GUIDE, TAP, WORLDS
from workbench.tip.verify import explore

# Which world has to reach which rows of the table of transitions; each row stands beside one world that does.
REACHES: dict[str, tuple[str, ...]] = {
    "die": (
        "Start for the first time", "Connect", "Connected: a new service", "Connected: a broker",
        "Disconnected: a service", "Disconnected: nobody known", "Received: Registration of a service",
        "Received: Registration of a broker", "Received: Advertisement of a broker",
        "Received: Unadvertisement of a broker", "Received: Subscription of a broker",
        "Received: Unsubscription of a broker", "Received: Refused of a broker",
        "Received: an event that may be published", "Received: an event that may not be published",
        "Received: an event of a broker", "Filter: an event of a service", "Filter: an event of a broker",
        "Filter: a reply to a broker's request", "Sent", "Tick: a service is deregistered",
    ),
    "restart": (
        "Start with a registry", "Shutdown that keeps the registry", "Connected: a known service",
        "Received: Subscription of a service", "Received: Deregistration of a broker",
    ),
    "far": ("Received: Silence of a broker", "Received: Sound of a broker", "Tick: silence is noticed"),
    "input": ("Filter: user input", "Foreground"),
    "shut down": ("Shutdown", "Received: Advertisement of a service"),
    "cut": ("Disconnected: a broker", "Tick: a broker is deregistered"),
    "leave": ("Received: Deregistration of a service",),
    "part": ("Disconnect",),
    "withdraw": ("Received: Unadvertisement of a service",),
    "silent": ("Received: Unsubscription of a service",),
}  # fmt: skip


@pytest.mark.parametrize("name", WORLDS)
def test_every_property_holds_in_every_interleaving_and_the_transitions_are_reached(name: str) -> None:
    found = explore(*WORLDS[name])
    assert not found.found, str(found.found[0])
    assert found.states > 100 and found.transitions > found.states
    assert found.ends > 0 or any(script.again is not None for script in WORLDS[name][0])
    assert set(REACHES.get(name, ())) <= set(found.reached) <= set(TRANSITIONS)


def test_every_transition_of_the_table_is_one_that_a_world_has_to_reach() -> None:
    assert sorted(row for rows in REACHES.values() for row in rows) == sorted(TRANSITIONS)
    assert set(REACHES) <= set(WORLDS)


# -- seeded bugs -------------------------------------------------------------------------------------------

production = brokering.step
NOTHING = lambda *given: None  # noqa: E731
Bug = Callable[[State, Input, int], Step]


def nobody_is_deregistered(state: State, input: Input, now: int) -> Step:
    return Step(state, ()) if isinstance(input, Tick) else production(state, input, now)


def an_event_is_lost(state: State, input: Input, now: int) -> Step:
    after = production(state, input, now)
    return Step(after.state, ()) if isinstance(input, Filter) else after


def an_event_is_sent_twice(state: State, input: Input, now: int) -> Step:
    after = production(state, input, now)
    return Step(after.state, after.effects * 2) if isinstance(input, Filter) else after


def an_event_comes_back_to_its_publisher(state: State, input: Input, now: int) -> Step:
    after = production(state, input, now)
    if isinstance(input, Filter) and state.in_queue and not state.in_queue[0][1].forwarded:
        return Step(after.state, (*after.effects, Send(*state.in_queue[0])))
    return after


def a_forwarded_event_goes_on(state: State, input: Input, now: int) -> Step:
    after = production(state, input, now)
    if isinstance(input, Filter) and state.in_queue and state.in_queue[0][1].forwarded:
        return Step(after.state, (*after.effects, *(Send(name, state.in_queue[0][1]) for name in state.neighbours)))
    return after


def advertised(state: State, input: Input, by: str) -> bool:
    return isinstance(input, Received) and input.event.type == "Advertisement" and state.connected[input.name] == by


def new_advertisements_are_not_evaluated(state: State, input: Input, now: int) -> Step:
    what = "_observe" if advertised(state, input, "broker") else "_nothing"
    with patch.object(brokering, what, NOTHING, create=True):
        return production(state, input, now)


def withdrawals_are_not_told(state: State, input: Input, now: int) -> Step:
    tell = brokering._tell_broker
    with patch.object(brokering, "_tell_broker", lambda *given: None if "Unadvertisement" in given else tell(*given)):
        return production(state, input, now)


def the_stalled_are_subscribed(state: State, input: Input, now: int) -> Step:
    after = production(state, input, now)
    services = {
        name: one if one.active else replace(one, subscriptions=frozenset({brokering.Subscription("Location")}))
        for name, one in after.state.services.items()
    }
    return Step(replace(after.state, services=services), after.effects)


def everybody_reacts_to_the_user(state: State, input: Input, now: int) -> Step:
    if isinstance(input, Filter) and state.in_queue and state.in_queue[0][1].category == "user-input":
        origin, event = state.in_queue[0]
        names = [name for name in state.subscribers.get(event.type, ()) if name != origin]
        return Step(replace(state, in_queue=state.in_queue[1:]), tuple(Send(name, event) for name in names))
    return production(state, input, now)


def a_return_is_not_noticed(state: State, input: Input, now: int) -> Step:
    after = production(state, input, now)
    if isinstance(input, Connected) and input.name in state.services:
        gone = replace(after.state.services[input.name], gone_since=state.services[input.name].gone_since)
        return Step(replace(after.state, services={**after.state.services, input.name: gone}), after.effects)
    return after


def a_break_is_not_noticed(state: State, input: Input, now: int) -> Step:
    if isinstance(input, Disconnected):
        return Step(replace(state, connected={n: k for n, k in state.connected.items() if n != input.name}), ())
    return production(state, input, now)


def a_changed_quality_is_not_told(state: State, input: Input, now: int) -> Step:
    what = "_tell_neighbours" if advertised(state, input, "service") else "_nothing"
    with patch.object(brokering, what, NOTHING, create=True):
        return production(state, input, now)


def a_service_is_cut_and_kept(state: State, input: Input, now: int) -> Step:
    """It cannot go on, and is not deregistered either."""
    if (isinstance(input, Disconnected) and input.name in state.services) or isinstance(input, Tick):
        return Step(state, ())
    after = production(state, input, now)
    joined = isinstance(input, Received) and input.name == "gps" and input.event.type == "Registration"
    return Step(after.state, (*after.effects, Close("gps"))) if joined else after


BUGS: list[tuple[Bug, str, str, str]] = [
    (nobody_is_deregistered, "die", "still registered", "gone_gps"),
    (an_event_is_lost, "many", "expected", SAFETY),
    (an_event_is_sent_twice, "many", "expected", SAFETY),
    (an_event_comes_back_to_its_publisher, "publish", "expected", SAFETY),
    (a_forwarded_event_goes_on, "many", "expected", SAFETY),
    (new_advertisements_are_not_evaluated, "publish", "conditions of guide are met, and it is stalled", "met_guide"),
    (withdrawals_are_not_told, "leave", "does not know what is advertised", "unmet_guide"),
    (the_stalled_are_subscribed, "publish", "stalled, and yet subscribed", SAFETY),
    (everybody_reacts_to_the_user, "input", "expected", SAFETY),
    (a_return_is_not_noticed, "return", "gps is there, and not registered", "there_gps"),
    (a_break_is_not_noticed, "die", "gps is gone, and still registered", "gone_gps"),
    (a_changed_quality_is_not_told, "poor", "does not know what is advertised", "told_server"),
    (a_service_is_cut_and_kept, "publish", "deadlock: gps waits for", SAFETY),
]


@pytest.mark.parametrize(("bug", "world", "what"), [row[:3] for row in BUGS], ids=[row[0].__name__ for row in BUGS])
def test_a_seeded_bug_is_found_with_a_trace(bug: Bug, world: str, what: str) -> None:
    found = explore(*WORLDS[world], step=bug).found
    assert found and what in found[0].what and found[0].trace, found
    assert str(found[0]).count("\n") == len(found[0].trace)


def test_a_promise_that_stays_open_for_ever_in_a_fair_cycle_is_found() -> None:
    scripts = (
        Script("gps", "client", publishing(LOCATION), (JOIN,)),
        Script("guide", "server", GUIDE, (JOIN,), listens=False),
        Script("shown", "client", TAP, (JOIN, SHOW, SHOW), again=1),
    )
    assert not explore(scripts).found
    (found,) = explore(scripts, step=new_advertisements_are_not_evaluated).found
    assert found.what.startswith("for ever: the conditions of guide are met"), found
