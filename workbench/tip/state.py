"""The state of a broker: all that it knows, as one value (TIP 3, 3, 4.2 and 6).

The registry is here (services, neighbours, and the subscriber index of section 6 by event type), the in-queue, an
outbox for each receiver, the events seen of late, the cache, and since when somebody is gone or was last heard, which
is what timers wait for. Mappings are never changed in place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b

from workbench.tip.cache import Cache
from workbench.tip.descriptions import ServiceDescription
from workbench.tip.events import Event
from workbench.tip.observer import Auxiliary, Subscription
from workbench.tip.recent import Recent
from workbench.tip.rules import Entry


@dataclass(frozen=True)
class Limits:
    """How much a broker keeps, and for how long; times in microseconds."""

    in_queue: int = 10_000
    outbox: int = 1_000
    window: int = 8
    recent: int = 10_000
    grace: int = 30_000_000


@dataclass(frozen=True)
class Outbox:
    """Events on their way to one receiver, those that wait, and how many were dropped; one that is idle is not kept."""

    in_flight: int = 0
    waiting: tuple[Event, ...] = ()
    dropped: int = 0


@dataclass(frozen=True)
class Service:
    """A registered service: what it says, what the observer made of it, and whether it is there."""

    description: ServiceDescription
    subscriptions: frozenset[Subscription] = frozenset()
    active: bool = False
    auxiliary: str = ""
    gone_since: int | None = None
    told: tuple[str, ...] = ()
    heard: Mapping[str, int] = field(default_factory=dict)
    silent: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Neighbour:
    """Another broker: what it advertises and wants, what it was told, and whether it is there."""

    entries: frozenset[Entry] = frozenset()
    wants: frozenset[Subscription] = frozenset()
    told_entries: frozenset[Entry] = frozenset()
    told_wants: frozenset[Subscription] = frozenset()
    gone_since: int | None = None


@dataclass(frozen=True)
class State:
    """All that a broker knows. `seed` makes its ids and labels; it is the broker's secret."""

    name: str
    seed: str
    limits: Limits = Limits()
    auxiliaries: tuple[Auxiliary, ...] = ()
    phase: str = "stopped"
    services: Mapping[str, Service] = field(default_factory=dict)
    neighbours: Mapping[str, Neighbour] = field(default_factory=dict)
    connected: Mapping[str, str] = field(default_factory=dict)
    in_queue: tuple[tuple[str, Event], ...] = ()
    outboxes: Mapping[str, Outbox] = field(default_factory=dict)
    subscribers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    recent: Recent = field(default_factory=lambda: Recent(10_000))
    cache: Cache = field(default_factory=Cache)
    foreground: str = ""
    made: int = 0

    def label(self, service: str) -> str:
        """The opaque label of a service: the same after a reconnection or a re-start, telling nothing."""
        return _label(self.seed, service)


@lru_cache(maxsize=65536)
def _label(seed: str, service: str) -> str:
    return blake2b(f"{seed}\x00label\x00{service}".encode(), digest_size=8).hexdigest()
