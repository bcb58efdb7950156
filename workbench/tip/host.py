"""The host of a service: a service as a pure step (TIP 3, 4.1).

A service registers, receives the events that it is subscribed to, processes them, and publishes what it advertised
(Figure 6). Here the *behaviour* is a frozen value with one pure method, ``react(memory, happening, now)``: a happening
is an event, or `BEGIN`, or `WAKE`; it answers with the next memory and what is to be done, `Publish` (its own event),
`Advertise` (again, with another quality), `WakeAt`. The host adds ids, registration and the end; behaviours know no
broker, and nobody's name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from workbench.errors import WorkbenchError
from workbench.tip.bodies import body
from workbench.tip.descriptions import ServiceDescription, advertisement_body
from workbench.tip.events import BEST, Event, fresh
from workbench.tip.rules import Advertisement

BEGIN, WAKE = "begin", "wake"
SYSTEM = "system"


class Publish(NamedTuple):
    """Publish an event of an advertised type; its category is the advertised one."""

    type: str
    body: str = ""
    quality: int | None = None
    relates_to: tuple[Event, ...] = ()
    cacheable: bool = False
    prefetched: bool = False


class Advertise(NamedTuple):
    """Advertise something new, or again with another quality, latency or failure rate."""

    advertisement: Advertisement


class Withdraw(NamedTuple):
    """Advertise a type no longer."""

    type: str


class Subscribe(NamedTuple):
    """Subscribe to a type, whoever publishes it (4.2); rules are said when it registers."""

    type: str


class Unsubscribe(NamedTuple):
    """Subscribe to a type no longer."""

    type: str


class WakeAt(NamedTuple):
    """React again at a time."""

    t: int


class Leave(NamedTuple):
    """Deregister and end."""


Act = Publish | Advertise | Withdraw | Subscribe | Unsubscribe | WakeAt | Leave


class Behaviour(Protocol):
    """What a service does."""

    @property
    def description(self) -> ServiceDescription:
        """What it says when it registers."""
        ...

    def react(self, memory: Any, happening: Event | str, now: int) -> tuple[Any, tuple[Act, ...]]:
        """The next memory, and what to do."""
        ...


@dataclass(frozen=True)
class Host:
    """A service under way: its behaviour, what it remembers, what it advertises now; `seed` makes its events' ids."""

    name: str
    behaviour: Behaviour
    memory: Any = None
    advertised: tuple[Advertisement, ...] = ()
    made: int = 0
    ended: bool = False
    seed: str = ""
    faults: tuple[str, ...] = ()
    received: tuple[Event, ...] = field(default=(), repr=False)

    @property
    def next_id(self) -> str:
        """The id of the next event that it makes."""
        return fresh(self.seed or self.name, self.made)

    def category(self, type: str) -> str:
        """The event category under which it advertised a type."""
        return next((one.category for one in self.advertised if one.type == type), "")


class Hosted(NamedTuple):
    """The next host, the events it sends to its broker, and when it wants to be woken."""

    host: Host
    sends: tuple[Event, ...]
    wakes: tuple[int, ...]


def register(host: Host, now: int) -> Hosted:
    """Connect for the first time: register, then begin."""
    said = host.behaviour.description
    host = replace(host, advertised=said.advertisements)
    host, first = _system(host, "Registration", said.body(), now)
    hosted = happen(host, BEGIN, now)
    return Hosted(hosted.host, (first, *hosted.sends), hosted.wakes)


def registered_again(host: Host, now: int) -> Hosted:
    """Connect once more: register as what it is by now, and go on."""
    said = replace(host.behaviour.description, advertisements=host.advertised)
    host, first = _system(host, "Registration", said.body(), now)
    return Hosted(host, (first,), ())


def happen(host: Host, happening: Event | str, now: int) -> Hosted:
    """Let an event, or time, happen to a service."""
    if host.ended:
        return Hosted(host, (), ())
    if isinstance(happening, Event):
        host = replace(host, received=(*host.received[-999:], happening))
        if (happening.type, happening.category) == ("End", SYSTEM):
            return Hosted(replace(host, ended=True), (), ())
    try:
        memory, acts = host.behaviour.react(host.memory, happening, now)
    except (WorkbenchError, LookupError, ValueError) as error:
        if not isinstance(happening, Event):
            raise
        # An event that a service cannot read is its publisher's fault, and must not end the service.
        return Hosted(replace(host, faults=(*host.faults[-99:], f"{happening!r}: {error}")), (), ())
    return do(replace(host, memory=memory), acts, now)


def do(host: Host, acts: Iterable[Act], now: int) -> Hosted:
    """Have a service act: because it reacts, or because a user turns it."""
    sends: list[Event] = []
    wakes: list[int] = []
    for act in acts:
        match act:
            case Publish():
                host, event = _published(host, act, now)
            case Advertise(new):
                new = replace(new, service_category=host.behaviour.description.category)
                others = tuple(one for one in host.advertised if one.type != new.type)
                host = replace(host, advertised=(*others, new))
                host, event = _system(host, "Advertisement", advertisement_body(new), now)
            case Withdraw(type):
                left = tuple(one for one in host.advertised if one.type != type)
                host, event = _system(replace(host, advertised=left), "Unadvertisement", body(name=type), now)
            case Subscribe(type) | Unsubscribe(type):
                what = "Subscription" if isinstance(act, Subscribe) else "Unsubscription"
                host, event = _system(host, what, body(name=type), now)
            case Leave():
                host, event = _system(replace(host, ended=True), "Deregistration", "", now)
            case WakeAt(t):
                wakes.append(t)
                continue
        sends.append(event)
    return Hosted(host, tuple(sends), tuple(wakes))


def _published(host: Host, act: Publish, now: int) -> tuple[Host, Event]:
    said = next((one for one in host.advertised if one.type == act.type), None)
    quality = act.quality if act.quality is not None else said.quality if said else BEST
    return replace(host, made=host.made + 1), Event(
        host.next_id, act.type, now, host.category(act.type), quality, said.format if said else "",
        tuple(event.id for event in act.relates_to), act.body, act.cacheable,
        prefetched=act.prefetched or any(event.prefetched for event in act.relates_to),
    )  # fmt: skip


def _system(host: Host, type: str, text: str, now: int) -> tuple[Host, Event]:
    return replace(host, made=host.made + 1), Event(host.next_id, type, now, SYSTEM, body=text)
