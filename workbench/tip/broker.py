"""The broker of TIP 3: one pure step (3, 4.1, 4.2 and 6).

``step(state, input, now) -> (state, effects)``. Everything a broker knows is its state, the registry, the in-queue,
outboxes and what timers wait for among it; what it wants done is a list of effects; drivers (`simulated`, `tcp`) only
carry inputs and effects. Services and brokers are known by the name under which they connect; what others see of a
service is an opaque label.

===============  ===========================================================================================
input            what the broker does
===============  ===========================================================================================
`Start`          runs; services that the registry knows from before need not register again (Figure 10)
`Connect`        opens a connection to another broker, if there is none; the registries are exchanged (Figure 2)
`Connected`      a service or broker is there: a known one goes on as before
`Received`       a system event changes the registry; a service event, if it may be published, joins the in-queue
`Filter`         takes one event from the in-queue to the outboxes of its subscribers (Figure 12)
`Sent`           a receiver has taken n events: the next ones of its outbox leave
`Disconnected`   waits `grace` before it deregisters (a short break changes nothing)
`Tick`           does what is due at `deadline(state)`: deregisters, notices silence
`Foreground`     the service that the user sees: user input goes to it alone
`Shutdown`       takes leave of the brokers, then tells its services to end; `keep` keeps the registry
===============  ===========================================================================================

Limits, all in `Limits`: an in-queue that is full refuses events, and tells their publishers; an outbox that is full
drops service events for its receiver alone, and counts them, while system events are kept; at most `window` events
are on their way to one receiver. So a slow receiver delays nobody else.

Departure: Figure 12 numbers receivers 0 to NUMBEROFSERVICES + DEVICES - 1, but turns k into a broker by k - DEVICES
and passes itself over at k == device + DEVICES. That is right only if there are as many devices as services; meant is
k - NUMBEROFSERVICES. Receivers have names here.
Departure: in Figure 12 an event from outside goes to every OUTSIDE subscriber, brokers among them; two brokers that
subscribe to each other's events would send them for ever. An event from outside stays here.
Departure: the text lets the database service's events go "directly to their recipient", the figure has no such arc. A
reply of category `database` goes to the service that asked, subscribed or not.
Departure: in 4.1 a service listens on a port and connects to the broker's: two connections. Here it is one.
Departure: Figure 9 revokes the advertisements at both brokers before services end. A broker that is gone without taking
leave is treated as a service that is gone: after `grace`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from workbench.brokering.values import changed
from workbench.errors import DataError, WorkbenchError
from workbench.tip import cache as caching
from workbench.tip.bodies import body
from workbench.tip.bodies import field as body_field
from workbench.tip.descriptions import DATABASE, advertisement_body, from_body, read_advertisement
from workbench.tip.events import Event, fresh
from workbench.tip.exchange import news
from workbench.tip.inputs import (
    BROKER,
    SERVICE,
    Close,
    Connect,
    Connected,
    Disconnect,
    Disconnected,
    Effect,
    Ended,
    Filter,
    Foreground,
    Input,
    Launch,
    Log,
    Open,
    Received,
    Send,
    Sent,
    Shutdown,
    Start,
    Tick,
)
from workbench.tip.observer import Evaluation, Registered, Subscription, evaluate, waiting_for_each_other
from workbench.tip.recent import Recent
from workbench.tip.rules import Advertisement, Entry
from workbench.tip.scoping import HERE, admits, sees_the_user, session
from workbench.tip.state import Limits, Neighbour, Outbox, Service, State

SYSTEM = "system"
USER_INPUT = "user-input"
REGISTRATION, DEREGISTRATION = "Registration", "Deregistration"
ADVERTISEMENT, UNADVERTISEMENT = "Advertisement", "Unadvertisement"
SUBSCRIPTION, UNSUBSCRIPTION = "Subscription", "Unsubscription"
SUBSCRIBED, STALLED, SILENCE, SOUND, REFUSED, END = "Subscribed", "Stalled", "Silence", "Sound", "Refused", "End"


class Step(NamedTuple):
    """The next state, and what is to be done."""

    state: State
    effects: tuple[Effect, ...]


def broker(name: str, seed: str = "", limits: Limits | None = None, **more: Any) -> State:
    """A broker that was never started.

    >>> state, effects = step(broker("b1"), Start(), now=0)
    >>> state.phase, effects
    ('running', (Log(text='b1 started; 0 services known'),))
    """
    limits = limits or Limits()
    return State(name, seed or name, limits, recent=Recent(limits.recent), **more)


def deadline(state: State) -> int | None:
    """When the next `Tick` is due; None where nothing waits for time."""
    gone = [one.gone_since for one in state.services.values()] + [one.gone_since for one in state.neighbours.values()]
    due = [since + state.limits.grace for since in gone if since is not None]
    for service in state.services.values():
        due += [service.heard[type] + _interval(service, type) for type in service.heard if type not in service.silent]
    return min(due, default=None) if state.phase == "running" else None


def same_deadline(before: State, after: State) -> bool:
    """Whether what `deadline` looks at was left as it is; to look at a thousand services at each delivery is dear."""
    kept = before.services is after.services and before.neighbours is after.neighbours
    return kept and before.phase == after.phase


# -- the step ------------------------------------------------------------------------------------------


def step(state: State, input: Input, now: int) -> Step:
    """One step of the broker."""
    working = _Working(state, now)
    if state.phase != "running" and not isinstance(input, Start | Disconnected | Sent):
        working.log(f"{type(input).__name__} while {state.phase}: ignored")
        return working.done()
    match input:
        case Start():
            _start(working)
        case Shutdown(keep):
            _shutdown(working, keep)
        case Connect(name):
            if name not in state.connected:
                working.effects.append(Open(name))
        case Disconnect(name):
            _take_leave(working, name)
        case Connected(name, kind):
            _connected(working, name, kind)
        case Disconnected(name):
            _disconnected(working, name)
        case Received(name, event):
            _received(working, name, event)
        case Filter():
            _filter(working)
        case Sent(name, number):
            working.sent(name, number)
        case Tick():
            _tick(working)
        case Foreground(name):
            working.change(foreground=name)
    return working.done()


class _Working:
    """A state under way through one step: the only thing that changes in this module, and it never leaves it."""

    def __init__(self, state: State, now: int) -> None:
        self.state, self.now = state, now
        self.effects: list[Effect] = []

    def done(self) -> Step:
        return Step(self.state, tuple(self.effects))

    def change(self, **fields: Any) -> None:
        self.state = changed(self.state, **fields)

    def log(self, text: str) -> None:
        self.effects.append(Log(f"{self.state.name} {text}" if not text.startswith(self.state.name) else text))

    def service(self, name: str, new: Service | None) -> None:
        others = {n: s for n, s in self.state.services.items() if n != name or new is not None}
        self.change(services={**others, **({name: new} if new else {})})

    def neighbour(self, name: str, new: Neighbour | None) -> None:
        others = {n: s for n, s in self.state.neighbours.items() if n != name or new is not None}
        self.change(neighbours={**others, **({name: new} if new else {})})

    def send(self, name: str, event: Event) -> None:
        """Into the outbox of a receiver, and off if there is room in its window."""
        state = self.state
        box = state.outboxes.get(name, Outbox())
        if name in state.connected and box.in_flight < state.limits.window and not box.waiting:
            box = changed(box, in_flight=box.in_flight + 1)
            self.effects.append(Send(name, event))
        elif len(box.waiting) < state.limits.outbox or event.category == SYSTEM:
            box = changed(box, waiting=(*box.waiting, event))
        else:
            box = changed(box, dropped=box.dropped + 1)
            self.log(f"drops {event.type} {event.id} for {name}: {len(box.waiting)} events wait already")
        self._keep(name, box)

    def _keep(self, name: str, box: Outbox) -> None:
        """Idle outboxes are not kept: to copy those of a thousand services at each delivery is dear."""
        boxes = dict(self.state.outboxes)
        if box.in_flight or box.waiting or box.dropped:
            boxes[name] = box
        else:
            boxes.pop(name, None)
        self.change(outboxes=boxes)

    def sent(self, name: str, count: int) -> None:
        box = self.state.outboxes.get(name)
        if box is not None:
            self._flush(name, changed(box, in_flight=max(0, box.in_flight - count)))

    def _flush(self, name: str, box: Outbox) -> None:
        room = self.state.limits.window - box.in_flight if name in self.state.connected else 0
        leaving, waiting = box.waiting[:room], box.waiting[room:]
        self.effects += [Send(name, event) for event in leaving]
        box = Outbox(box.in_flight + len(leaving), waiting, box.dropped)
        self._keep(name, box)

    def reconnect(self, name: str) -> None:
        """What was on its way is lost with the connection; what waited leaves."""
        self._flush(name, changed(self.state.outboxes.get(name, Outbox()), in_flight=0))

    def forget_outbox(self, name: str) -> None:
        self.change(outboxes={n: b for n, b in self.state.outboxes.items() if n != name})

    def tell(self, name: str, type: str, text: str = "", relates_to: tuple[str, ...] = ()) -> None:
        """A system event to a service or broker."""
        self.change(made=self.state.made + 1)
        id = fresh(self.state.seed, self.state.made)
        self.send(name, Event(id, type, self.now, SYSTEM, body=text, relates_to=relates_to))

    def refuse(self, name: str, event: Event, why: str) -> None:
        self.log(f"refuses {event.type} {event.id} of {name}: {why}")
        if name in self.state.connected and event.type != REFUSED:
            self.tell(name, REFUSED, body(why=why), (event.id,))


# -- start, connections, shutdown ------------------------------------------------------------------------


def _start(working: _Working) -> None:
    state = working.state
    if state.phase == "running":
        return working.log("runs already")
    services = {name: changed(one, gone_since=working.now, heard={}) for name, one in state.services.items()}
    working.change(phase="running", connected={}, neighbours={}, in_queue=(), outboxes={}, services=services)
    _observe(working)
    return working.log(f"started; {len(services)} services known")


def _connected(working: _Working, name: str, kind: str) -> None:
    state = working.state
    if name in state.connected:
        return working.log(f"{name} is connected already: ignored")
    working.change(connected={**state.connected, name: kind})
    if kind == BROKER:
        # What a broker was told on an earlier connection may be lost: it is told everything anew.
        known = state.neighbours.get(name, Neighbour())
        working.forget_outbox(name)
        told: frozenset[Any] = frozenset()
        working.neighbour(name, changed(known, gone_since=None, told_entries=told, told_wants=told))
        working.tell(name, REGISTRATION)
        return _tell_neighbours(working)
    if name in state.services:
        working.service(name, changed(state.services[name], gone_since=None))
        _observe(working)
        working.log(f"knows {name} already: its registration is used again")
    return working.reconnect(name)


def _disconnected(working: _Working, name: str) -> None:
    state = working.state
    if name not in state.connected:
        return
    working.change(connected={n: k for n, k in state.connected.items() if n != name})
    if name in state.services:
        working.service(name, changed(state.services[name], gone_since=working.now, heard={}))
    elif name in state.neighbours:
        working.neighbour(name, changed(state.neighbours[name], gone_since=working.now))
    else:
        working.forget_outbox(name)


def _take_leave(working: _Working, name: str) -> None:
    """Un-register from a broker: what was advertised and subscribed is revoked, here and there (Figure 9)."""
    if name in working.state.connected:
        working.tell(name, DEREGISTRATION)
        working.effects.append(Close(name))
        working.change(connected={n: k for n, k in working.state.connected.items() if n != name})
    _lose_neighbour(working, name)


def _lose_neighbour(working: _Working, name: str) -> None:
    if name in working.state.neighbours:
        working.neighbour(name, None)
        working.forget_outbox(name)
        _observe(working)


def _shutdown(working: _Working, keep: bool) -> None:
    for name in sorted(working.state.neighbours):
        _take_leave(working, name)
    for name in sorted(n for n, kind in working.state.connected.items() if kind == SERVICE):
        working.tell(name, END)
        working.effects.append(Close(name))
    kept = {n: s for n, s in working.state.services.items() if keep and not s.auxiliary}
    working.change(phase="stopped", services=kept, in_queue=(), connected={}, outboxes={}, foreground="")
    working.log(f"ended; {len(kept)} services kept")
    working.effects.append(Ended())


def _tick(working: _Working) -> None:
    state, now = working.state, working.now
    for name, service in state.services.items():
        if service.gone_since is not None and service.gone_since + state.limits.grace <= now:
            working.log(f"deregisters {name}, gone since {service.gone_since}")
            _deregister(working, name)
    for name, neighbour in state.neighbours.items():
        if neighbour.gone_since is not None and neighbour.gone_since + state.limits.grace <= now:
            working.log(f"deregisters broker {name}, gone since {neighbour.gone_since}")
            _lose_neighbour(working, name)
    for name, service in list(working.state.services.items()):
        late = {type for type, at in service.heard.items() if at + _interval(service, type) <= now} - service.silent
        if late:
            working.service(name, changed(service, silent=service.silent | late))
            for type in sorted(late):
                _tell_subscribers(working, name, type, SILENCE)


# -- system events ---------------------------------------------------------------------------------------


def _received(working: _Working, name: str, event: Event) -> None:
    state = working.state
    if name not in state.connected:
        return working.log(f"refuses {event.type} {event.id} of {name}: not connected")
    if event.category == SYSTEM:
        try:
            return _system(working, name, event)
        except WorkbenchError as error:
            # The state is as it was before the event: nobody else is disturbed.
            working.state, working.effects = state, []
            return working.refuse(name, event, str(error).splitlines()[0])
    why = _may_publish(state, name, event)
    if why:
        return working.refuse(name, event, why)
    if len(state.in_queue) >= state.limits.in_queue:
        return working.refuse(name, event, f"the in-queue is full ({state.limits.in_queue} events)")
    working.change(in_queue=(*state.in_queue, (name, event)), recent=state.recent.add(event.id, name))
    if state.connected[name] == SERVICE:
        _hear(working, name, event.type)
    return None


def _may_publish(state: State, name: str, event: Event) -> str:
    """Why this service or broker may not publish this event; empty if it may."""
    if state.recent.origin(event.id) is not None:
        return "an event of this id was published before"
    if state.connected[name] == BROKER:
        advertised = {(e.publisher, e.advertisement.type) for e in state.neighbours[name].entries}
        known = (event.publisher, event.type) in advertised
        return "" if event.forwarded and known else "its publisher did not advertise this type"
    service = state.services.get(name)
    if service is None:
        return "not registered"
    if not service.active:
        return "its conditions are not met: it is stalled"
    said = {(one.type, one.category) for one in service.description.advertisements}
    if (event.type, event.category) not in said:
        return "it did not advertise this type and category"
    if event.forwarded or event.publisher:
        return "only brokers forward"
    unknown = [id for id in event.relates_to if state.recent.origin(id) is None]
    return f"the request {unknown[0]} is not known, or no longer" if unknown else ""


def _system(working: _Working, name: str, event: Event) -> None:
    if working.state.connected[name] == BROKER:
        return _system_of_broker(working, name, event)
    service = working.state.services.get(name)
    if event.type == REGISTRATION:
        said = from_body(event.body)
        working.service(name, changed(service, description=said) if service else Service(said))
        return _observe(working)
    if service is None:
        raise DataError(f"{name} is not registered; expected a {REGISTRATION} first")
    said = service.description
    if event.type == DEREGISTRATION:
        _deregister(working, name)
        working.effects.append(Close(name))
    elif event.type == ADVERTISEMENT:
        new = read_advertisement(event.body)
        others = tuple(one for one in said.advertisements if one.type != new.type)
        working.service(name, changed(service, description=replace(said, advertisements=(*others, new))))
        _observe(working)
    elif event.type == UNADVERTISEMENT:
        type = body_field(event.body, "name")
        left = tuple(one for one in said.advertisements if one.type != type)
        working.service(name, changed(service, description=replace(said, advertisements=left)))
        _observe(working)
    elif event.type in (SUBSCRIPTION, UNSUBSCRIPTION):
        type = body_field(event.body, "name")
        rest = tuple(one for one in said.subscriptions if one != type)
        asked_now = (*rest, type) if event.type == SUBSCRIPTION else rest
        working.service(name, changed(service, description=replace(said, subscriptions=asked_now)))
        _observe(working)
    else:
        raise DataError(f"system event {event.type!r} of a service; expected {REGISTRATION}, {ADVERTISEMENT}, ...")
    return None


def _system_of_broker(working: _Working, name: str, event: Event) -> None:
    neighbour = working.state.neighbours[name]
    if event.type == REGISTRATION:
        # It begins to tell everything anew.
        working.neighbour(name, changed(neighbour, entries=frozenset(), wants=frozenset()))
        _observe(working)
    elif event.type == DEREGISTRATION:
        working.effects.append(Close(name))
        working.change(connected={n: k for n, k in working.state.connected.items() if n != name})
        _lose_neighbour(working, name)
    elif event.type in (ADVERTISEMENT, UNADVERTISEMENT):
        new = Entry(event.publisher or "?", read_advertisement(event.body), name)
        key = (new.publisher, new.advertisement.type)
        others = {e for e in neighbour.entries if (e.publisher, e.advertisement.type) != key}
        working.neighbour(
            name, changed(neighbour, entries=frozenset(others | {new} if event.type == ADVERTISEMENT else others))
        )
        _observe(working)
    elif event.type in (SUBSCRIPTION, UNSUBSCRIPTION):
        wanted = Subscription(
            body_field(event.body, "name"),
            body_field(event.body, "category", ""),
            int(body_field(event.body, "quality", "0")),
            event.publisher,
        )
        wants = neighbour.wants | {wanted} if event.type == SUBSCRIPTION else neighbour.wants - {wanted}
        working.neighbour(name, changed(neighbour, wants=wants))
    elif event.type in (SILENCE, SOUND):
        _tell_local(working, read_advertisement(event.body), event.publisher, event.type)
    elif event.type != REFUSED:
        raise DataError(f"system event {event.type!r} of a broker; expected {REGISTRATION}, {ADVERTISEMENT}, ...")


def _deregister(working: _Working, name: str) -> None:
    """A service is gone: its advertisements and subscriptions are removed, and nothing is filtered to it."""
    working.service(name, None)
    working.forget_outbox(name)
    working.change(in_queue=tuple((n, e) for n, e in working.state.in_queue if n != name))
    if working.state.foreground == name:
        working.change(foreground="")
    _observe(working)


# -- the observer's part -----------------------------------------------------------------------------------


def _observe(working: _Working) -> None:
    """Evaluate conditions and rules; start and stop auxiliary services; tell whom it concerns."""
    for _ in range(len(working.state.auxiliaries) + 1):
        found = _evaluated(working.state)
        if not _manage_auxiliaries(working, found):
            break
    state = working.state
    services = {name: _observed(state, name, found, working.now) for name in state.services}
    subscribers: dict[str, tuple[str, ...]] = {}
    for name, service in services.items():
        for type in _types(service.subscriptions):
            subscribers[type] = (*subscribers.get(type, ()), name)
    working.change(services=services, subscribers=subscribers)
    for name, service in services.items():
        before = state.services[name]
        if service.told and (service.told, service.subscriptions) != (before.told, before.subscriptions):
            working.tell(name, service.told[0], body(name=service.told[1:]))
    stalled = {n for n, s in services.items() if s.told == (STALLED,) != state.services[n].told}
    if stalled:
        _log_knots(working, stalled)
    _tell_neighbours(working)


def _log_knots(working: _Working, stalled: set[str]) -> None:
    """Services that wait for each other stay stalled, however long one waits: a maintainer wants to know."""
    state = working.state
    names = {state.label(name): name for name in state.services}
    for knot in waiting_for_each_other(*_registered(state)):
        waiting = sorted(names[label] for label in knot)
        if not stalled.isdisjoint(waiting):
            working.log(f"stalls {' and '.join(waiting)}: they wait for each other")


def _observed(state: State, name: str, found: Evaluation, now: int) -> Service:
    """A service after an evaluation: what it is subscribed to, what it has to be told, what is expected of it."""
    service, label = state.services[name], state.label(name)
    said, active = service.description, label in found.active
    ruled = found.subscriptions.get(label, frozenset())
    chosen = _chosen(said.subscriptions, ruled) if active else frozenset()
    wants = said.conditions or said.groups or said.subscriptions
    status = (SUBSCRIBED, *_types(chosen)) if active else (STALLED,)
    heard = active and name in state.connected
    promised = {one.type for one in said.advertisements if one.interval and heard}
    return changed(
        service,
        active=active,
        subscriptions=chosen,
        told=status if wants else (),
        heard={type: service.heard.get(type, now) for type in sorted(promised)},
        silent=service.silent & promised,
    )


@lru_cache(maxsize=65536)
def _chosen(asked: tuple[str, ...], ruled: frozenset[Subscription]) -> frozenset[Subscription]:
    return ruled | {Subscription(type) for type in asked}


@lru_cache(maxsize=65536)
def _types(chosen: frozenset[Subscription]) -> tuple[str, ...]:
    return tuple(sorted({one.type for one in chosen}))


def _registered(state: State) -> tuple[list[Registered], list[Entry]]:
    """What the observer sees: the services here, and the entries from outside."""
    services = [
        Registered(state.label(name), one.description, one.subscriptions, one.auxiliary)
        for name, one in state.services.items()
    ]
    return services, [entry for neighbour in state.neighbours.values() for entry in sorted(neighbour.entries)]


def _evaluated(state: State) -> Evaluation:
    return evaluate(*_registered(state), state.auxiliaries)


def _manage_auxiliaries(working: _Working, found: Evaluation) -> bool:
    """Start what is wanted, stop what is not, re-advertise what changed; whether anything was done."""
    running = {s.auxiliary: (n, s) for n, s in working.state.services.items() if s.auxiliary}
    did = False
    for auxiliary in working.state.auxiliaries:
        wanted, now = found.wanted.get(auxiliary.name), running.get(auxiliary.name)
        name = f"auxiliary/{auxiliary.name}"
        if wanted is not None and (now is None or now[1].description != auxiliary.description(wanted)):
            description = auxiliary.description(wanted)
            if now is None:
                working.service(name, Service(description, auxiliary=auxiliary.name))
                working.effects.append(Launch(name, auxiliary))
                working.log(f"starts {name}")
            else:
                working.service(name, changed(now[1], description=description))
            did = True
        elif wanted is None and now is not None:
            working.service(name, None)
            if name in working.state.connected:
                working.tell(name, END)
                working.effects.append(Close(name))
            working.log(f"stops {name}")
            did = True
    return did


def _tell_neighbours(working: _Working) -> None:
    """Tell each broker what changed of the local advertisements and of what is wanted from it."""
    state = working.state
    if state.connected.keys().isdisjoint(state.neighbours):
        return
    entries = frozenset(
        Entry(state.label(name), one)
        for name, service in state.services.items()
        if service.active
        for one in service.description.advertisements
    )
    wanted = {s for service in state.services.values() for s in service.subscriptions}
    for name in sorted(state.neighbours):
        if name not in state.connected:
            continue
        neighbour = working.state.neighbours[name]
        theirs = {entry.publisher for entry in neighbour.entries}
        wants = frozenset(s for s in wanted if not s.publisher or s.publisher in theirs)
        told = news(neighbour.told_entries, entries, neighbour.told_wants, wants)
        working.neighbour(name, changed(neighbour, told_entries=entries, told_wants=told.told_wants))
        for type, some in ((UNADVERTISEMENT, told.withdrawn), (ADVERTISEMENT, told.advertised)):
            for entry in some:
                _tell_broker(working, name, type, advertisement_body(entry.advertisement), entry.publisher)
        for type, changes in ((UNSUBSCRIPTION, told.unsubscribed), (SUBSCRIPTION, told.subscribed)):
            for one in changes:
                text = body(name=one.type, category=one.category, quality=one.quality)
                _tell_broker(working, name, type, text, one.publisher)


def _tell_broker(working: _Working, name: str, type: str, text: str, publisher: str) -> None:
    working.change(made=working.state.made + 1)
    id = fresh(working.state.seed, working.state.made)
    working.send(name, Event(id, type, working.now, SYSTEM, body=text, publisher=publisher))


# -- silence -----------------------------------------------------------------------------------------------


def _interval(service: Service, type: str) -> int:
    return next((one.interval for one in service.description.advertisements if one.type == type), 0)


def _hear(working: _Working, name: str, type: str) -> None:
    service = working.state.services[name]
    if type in service.heard:
        working.service(
            name, changed(service, heard={**service.heard, type: working.now}, silent=service.silent - {type})
        )
        if type in service.silent:
            _tell_subscribers(working, name, type, SOUND)


def _tell_subscribers(working: _Working, name: str, type: str, what: str) -> None:
    """Subscribers, here and at other brokers, are told that a publisher broke its promise, or keeps it again: silence
    is no "no event"."""
    said = next(one for one in working.state.services[name].description.advertisements if one.type == type)
    label = working.state.label(name)
    _tell_local(working, said, label, what, but=name)
    for other, neighbour in working.state.neighbours.items():
        if any(s.accepts(type, said.category, said.quality, label) for s in neighbour.wants):
            _tell_broker(working, other, what, advertisement_body(said), label)


def _tell_local(working: _Working, said: Advertisement, label: str, what: str, but: str = "") -> None:
    for other, service in working.state.services.items():
        if other != but and any(
            s.accepts(said.type, said.category, said.quality, label) for s in service.subscriptions
        ):
            working.tell(other, what, body(name=said.type))


# -- filtering ---------------------------------------------------------------------------------------------


def _filter(working: _Working) -> None:
    """Take one event from the in-queue, and forward it (Figure 12)."""
    state = working.state
    if not state.in_queue:
        return
    (name, event), rest = state.in_queue[0], state.in_queue[1:]
    working.change(in_queue=rest)
    if event.forwarded:
        kept, shown = caching.incoming(state.cache, event, working.now)
        working.change(cache=kept)
        if shown:
            _to_services(working, event, event.publisher, name)
        return
    publisher = working.state.label(name)
    asked_in = session(state, event)
    if asked_in:
        for asker in sorted(other for other in state.neighbours if admits(state, other, asked_in)):
            working.send(asker, event.at_broker(publisher))
    if event.is_shown and admits(state, HERE, asked_in):
        _to_services(working, event, publisher, name)
    if not asked_in and event.is_shown and not (event.category == DATABASE and event.is_reply):
        _to_brokers(working, event, publisher)


def _to_services(working: _Working, event: Event, publisher: str, origin: str) -> None:
    for name in receivers(working.state, event, publisher, origin):
        working.send(name, event.at_service())


def _to_brokers(working: _Working, event: Event, publisher: str) -> None:
    """To the brokers that want it, unless the cache can answer in their place (Algorithm 1)."""
    state = working.state
    key = (event.type, event.category, event.quality, publisher)
    wanting = sorted(n for n, other in state.neighbours.items() if any(s.accepts(*key) for s in other.wants))
    if not wanting:
        return
    kept, send, replies = caching.outgoing(state.cache, event, working.now, tuple(wanting))
    working.change(cache=kept)
    for reply in replies:
        if reply.is_shown:
            for name in receivers(working.state, reply, "", "", any_publisher=True):
                working.send(name, reply)
    for name in send:
        working.send(name, event.at_broker(publisher))


def receivers(
    state: State, event: Event, publisher: str, origin: str = "", any_publisher: bool = False
) -> tuple[str, ...]:
    """The local services that get an event: its subscribers, but for user input and the database's answers.

    The cache forgot who published its replies: `any_publisher` leaves that field of the index out.
    """
    if event.category == DATABASE and event.is_reply:
        askers = {state.recent.origin(id) for id in event.relates_to}
        return tuple(name for name in state.services if name in askers)
    found = (
        name
        for name in state.subscribers.get(event.type, ())
        if name != origin
        and any(
            s.accepts(event.type, event.category, event.quality, s.publisher if any_publisher else publisher)
            for s in state.services[name].subscriptions
        )
    )
    if event.category == USER_INPUT:
        return tuple(name for name in found if sees_the_user(state, name))
    return tuple(found)


def run_all(state: State, inputs: Iterable[Input], now: int) -> Step:
    """Several inputs at one time, the in-queue emptied after each: what a driver does.

    >>> run_all(broker("b1"), [Start(), Connected("gps")], now=0).state.connected
    {'gps': 'service'}
    """
    effects: list[Effect] = []
    for input in inputs:
        state, more = step(state, input, now)
        effects += more
        while state.in_queue:
            state, more = step(state, Filter(), now)
            effects += more
    return Step(state, tuple(effects))
