"""The table of a broker's transitions: what can happen, in which situation (TIP 3, 4.2 and 6).

`transition` names the row of the table in `broker` that a step takes, by the input and the situation it meets. The
exploration of `verify` counts them; a row that no interleaving reaches would be a promise that nobody checked.
"""

from __future__ import annotations

from workbench.tip.broker import SYSTEM, USER_INPUT, _may_publish
from workbench.tip.inputs import BROKER, Connected, Disconnected, Filter, Input, Received, Shutdown, Start, Tick
from workbench.tip.state import State

SYSTEM_EVENTS = (
    "Registration", "Deregistration", "Advertisement", "Unadvertisement", "Subscription", "Unsubscription",
)  # fmt: skip
TRANSITIONS = (
    "Start for the first time", "Start with a registry",
    "Shutdown", "Shutdown that keeps the registry",
    "Connect", "Disconnect",
    "Connected: a new service", "Connected: a known service", "Connected: a broker",
    "Disconnected: a service", "Disconnected: a broker", "Disconnected: nobody known",
    *(f"Received: {type} of a service" for type in SYSTEM_EVENTS),
    *(f"Received: {type} of a broker" for type in SYSTEM_EVENTS), "Received: Refused of a broker",
    "Received: Silence of a broker", "Received: Sound of a broker",
    "Received: an event that may be published", "Received: an event that may not be published",
    "Received: an event of a broker",
    "Filter: an event of a service", "Filter: an event of a broker", "Filter: a reply to a broker's request",
    "Filter: user input",
    "Sent", "Foreground",
    "Tick: a service is deregistered", "Tick: a broker is deregistered", "Tick: silence is noticed",
)  # fmt: skip


def transition(state: State, input: Input, now: int) -> str:
    """The row of the table.

    >>> from workbench.tip.broker import broker
    >>> transition(broker("b1"), Start(), 0)
    'Start for the first time'
    """
    match input:
        case Start():
            return "Start with a registry" if state.services else "Start for the first time"
        case Shutdown(keep):
            return "Shutdown that keeps the registry" if keep else "Shutdown"
        case Connected(name, kind):
            known = "a broker" if kind == BROKER else "a known service" if name in state.services else "a new service"
            return f"Connected: {known}"
        case Disconnected(name):
            who = "a service" if name in state.services else "a broker" if name in state.neighbours else ""
            return f"Disconnected: {who if who and name in state.connected else 'nobody known'}"
        case Received():
            return f"Received: {_received(state, input)}"
        case Filter():
            return f"Filter: {_filtered(state)}"
        case Tick():
            return f"Tick: {_due(state, now)}"
    return type(input).__name__


def _received(state: State, input: Received) -> str:
    event, of_broker = input.event, state.connected.get(input.name) == BROKER
    if event.category == SYSTEM:
        return f"{event.type} of a {'broker' if of_broker else 'service'}"
    if input.name not in state.connected or _may_publish(state, input.name, event):
        return "an event that may not be published"
    return "an event of a broker" if of_broker else "an event that may be published"


def _filtered(state: State) -> str:
    if not state.in_queue:
        return "nothing"
    _, event = state.in_queue[0]
    if event.category == USER_INPUT:
        return "user input"
    if event.forwarded:
        return "an event of a broker"
    asked = {state.recent.origin(id) for id in event.relates_to}
    return "a reply to a broker's request" if asked & set(state.neighbours) else "an event of a service"


def _due(state: State, now: int) -> str:
    for who, some in (("a service", state.services), ("a broker", state.neighbours)):
        since = [one.gone_since for one in some.values() if one.gone_since is not None]
        if any(at + state.limits.grace <= now for at in since):
            return f"{who} is deregistered"
    return "silence is noticed"
