"""Events: all that services and brokers say to one another (TIP 3, 3.1).

An event has an *id*, a *type* (what its body describes, and what it is routed by), the *time* at which it was created,
and three flags. Section 6 adds an event *category* and a *quality*; the caching of 3.2 needs to know which requests a
reply *relates to*; auxiliary services convert between *formats*. Here: a frozen value; times are whole microseconds
since 1970 in UTC (any whole number serves in simulation); the body is canonical XML (see `bodies`), opaque to brokers.

How the flags steer an event:

=============================================  ======================================================================
event                                          goes to
=============================================  ======================================================================
of a local service                             the services and brokers that subscribed to it
forwarded (it came from a broker)              local services that subscribed to it; never on to another broker
reply to a forwarded request                   the broker that forwarded the request, and nobody else
reply to a local request                       as an event of a local service
reply to a prefetched request (a prefetched    the cache of the broker that asked; no service is shown it
reply)
cacheable                                      as above, and the cache of `cache` may keep it
=============================================  ======================================================================

Departure: 3.1 has `forwarded` say "received from a broker" and 3.2 keeps replies, but no field says what a message
replies *to*; Figure 5 needs it. `relates_to` holds the ids of 0..n requests; an event is a reply where there is one.
Departure: that a forwarded event goes to no third broker is not said. It follows from "single hops" (section 2), and
keeps rings of brokers free of loops.
Departure: `publisher` is an opaque label that brokers put on what they forward, because rules may name a publisher and
Figure 12 filters by it. It is taken off before a service receives the event: collaboration is anonymous.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from workbench.errors import DataError, raise_all

TOKEN = re.compile(r"[\w.:/+-]{1,200}")
BEST = 100


@dataclass(frozen=True)
class Event:
    """What happened, or what is asked for.

    >>> here = Event("e1", "Location", 5, category="location", quality=90)
    >>> here
    Location e1 at 5 (location, quality 90)
    >>> here.is_reply, here.reply("e2", "Information", 6).relates_to
    (False, ('e1',))
    """

    id: str
    type: str
    time: int
    category: str = ""
    quality: int = BEST
    format: str = ""
    relates_to: tuple[str, ...] = ()
    body: str = ""
    cacheable: bool = False
    forwarded: bool = False
    prefetched: bool = False
    publisher: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "relates_to", tuple(dict.fromkeys(self.relates_to)))
        raise_all(list(_faults(self)), DataError)

    @property
    def is_reply(self) -> bool:
        """Whether it relates to a request (Figure 5)."""
        return bool(self.relates_to)

    @property
    def is_shown(self) -> bool:
        """Whether services may see it: a prefetched reply is only stored."""
        return not (self.prefetched and self.is_reply)

    def reply(self, id: str, type: str, time: int, **fields: Any) -> Event:
        """A reply to this event: it relates to it, and was prefetched if this was.

        >>> Event("e1", "ItemRequest", 5, prefetched=True).reply("e2", "Item", 6).is_shown
        False
        """
        return Event(id, type, time, relates_to=(self.id,), prefetched=self.prefetched, **fields)

    def at_service(self) -> Event:
        """As a service receives it: nobody's name on it."""
        return replace(self, publisher="") if self.publisher else self

    def at_broker(self, publisher: str) -> Event:
        """As another broker receives it: forwarded, under the publisher's label."""
        return replace(self, forwarded=True, publisher=publisher)

    def __repr__(self) -> str:
        flags = [flag for flag in ("cacheable", "forwarded", "prefetched") if getattr(self, flag)]
        said = [self.category] if self.category else []
        said += [f"quality {self.quality}"] if self.quality != BEST else []
        said += [f"as {self.format}"] if self.format else []
        said += ["to " + " ".join(self.relates_to)] if self.relates_to else []
        inner = ", ".join([*said, *flags])
        return f"{self.type} {self.id} at {self.time}" + (f" ({inner})" if inner else "")


def _faults(event: Event) -> Iterable[str]:
    for name in ("id", "type"):
        if not _is_token(getattr(event, name)):
            yield f"event {name} {getattr(event, name)!r}; expected 1 to 200 letters, digits or . : / + - _"
    for name in ("category", "format", "publisher"):
        if getattr(event, name) != "" and not _is_token(getattr(event, name)):
            yield f"event {name} {getattr(event, name)!r}; expected up to 200 letters, digits or . : / + - _"
    for related in event.relates_to:
        if not _is_token(related):
            yield f"event relates to {related!r}; expected the id of an event"
    if not isinstance(event.time, int) or isinstance(event.time, bool):
        yield f"event time {event.time!r}; expected a whole number (microseconds since 1970)"
    if not isinstance(event.quality, int) or not 0 <= event.quality <= BEST:
        yield f"event quality {event.quality!r}; expected 0 (useless) to {BEST} (best)"


def _is_token(value: Any) -> bool:
    return isinstance(value, str) and TOKEN.fullmatch(value) is not None


def fresh(seed: str, number: int) -> str:
    """The id of the number-th event under a seed: unique, and telling nothing about who made it.

    >>> fresh("a broker's secret", 1)
    '2a95cb356433bc85061271f5b0d8605f'
    """
    return blake2b(f"{seed}\x00{number}".encode(), digest_size=16).hexdigest()
