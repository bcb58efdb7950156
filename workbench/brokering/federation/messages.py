"""Messages between clients and brokers (A Federated Broker Architecture, IV.D to VIII).

========================  ======================================================================================
`Register`                a client's endpoint, capabilities and credentials (IV.D); joining is implicit without it
`Pub`, `Sub`, `Unsub`     the interface of a broker; sets of subscriptions ς and unsubscriptions χ (VII)
`Leave`                   the client goes, and all its subscriptions with it (VIII)
`Notify`                  a broker to a local client
`Forward`                 a broker to a neighbour, a notification that somebody there may want
`TableUpdate`             a broker to a neighbour: ς and χ (equations 2, 5, 8 and 9)
`Unavailable`             "resend after t", while a broker is cut off (VIII)
`Query`, `Answer`         the synchronous way: the look-up service and the provider itself (II.A, II.C)
========================  ======================================================================================

Beyond the paper: `Attach`, `Handover`, `Moved`, `Attached` move a client between brokers with the history of its pairs;
`Fetch` and `Logs` bring the past of a client to a broker whose filters look back; `Links` and `Suspended` say which
link broke and whom that cuts off, `Synced` ends what a repaired one has to say; `Anew` says that a broker moved, and
`Resend` asks for what a congested broker dropped. A message to a broker that is no neighbour goes from broker to broker
(`Envelope.to`).

The size of a message is the length of its written form in bytes, once for everything it carries.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.brokering.federation.attributes import Notification
from workbench.brokering.federation.composites import Composite
from workbench.brokering.federation.interests import UNNUMBERED, Number, Report
from workbench.brokering.federation.tables import Routable

Item = Notification | Report


@dataclass(frozen=True)
class LocalClient:
    """κ ∈ L_B: how to reach it, what it can produce, and who it says it is."""

    name: Hashable
    endpoint: str = ""
    capabilities: frozenset[str] = frozenset()
    credentials: str = ""


@dataclass(frozen=True)
class Register:
    client: LocalClient


@dataclass(frozen=True)
class Refused:
    """The credentials were wrong: nothing was done."""

    reason: str


@dataclass(frozen=True)
class Pub:
    item: Item


@dataclass(frozen=True)
class Sub:
    subscriptions: tuple[Routable | Composite, ...]


@dataclass(frozen=True)
class Unsub:
    names: tuple[Hashable, ...]


@dataclass(frozen=True)
class Leave:
    pass


@dataclass(frozen=True)
class Notify:
    item: Any
    """a `Notification`, or the message of a state-persistent broker"""
    resync: bool = False
    caused: float = 0.0
    """when that happened which is told of"""
    hops: int = field(default=0, compare=False)
    """links that what is told of passed until it was at the consumer's broker: of the farthest, if it is several"""
    subscription: Any = None
    publications: tuple[Any, ...] = ()
    travelled: tuple[tuple[Report, int], ...] = field(default=(), compare=False, repr=False)
    """the reports that brought it about, and how many links each passed"""


@dataclass(frozen=True)
class Forward:
    item: Item
    hops: int = field(default=1, compare=False, repr=False)
    """the links passed since its origin, this one counted"""
    suspended: str = ""
    """where the way to the client of a report is broken: it was like that last"""
    retold: bool = False
    """whether it is no news, but was asked for: by a subscription, or after a repair"""


@dataclass(frozen=True)
class TableUpdate:
    """ς to add and χ to remove. With ``sync``, ς is everything, and replaces what was there."""

    broker: str
    subscriptions: tuple[Routable, ...] = ()
    unsubscriptions: tuple[Routable, ...] = ()
    sync: bool = False
    links: tuple[tuple[tuple[str, str], int], ...] = ()

    def __repr__(self) -> str:
        def shown(given: tuple[Routable, ...]) -> str:
            return "{" + ", ".join(str(s.name) for s in given) + "}" if given else "φ"

        return f"tableUpdate({self.broker}, {shown(self.subscriptions)}, {shown(self.unsubscriptions)})"


@dataclass(frozen=True)
class Synced:
    pass


@dataclass(frozen=True)
class Anew:
    """A broker moved to another parent: all behind it are told as news of this move, by their new way."""

    move: int


@dataclass(frozen=True)
class Resend:
    """What was forwarded of these clients was dropped: tell what they are like now."""

    reports: tuple[Report, ...]


@dataclass(frozen=True)
class Suspended:
    """The way to these clients is broken at a link or broker: nothing about them is certain until it is repaired."""

    clients: tuple[Hashable, ...]
    where: str = ""


@dataclass(frozen=True)
class Links:
    """How often links broke and were repaired, each change counted; spread to all brokers."""

    states: tuple[tuple[tuple[str, str], int], ...]


@dataclass(frozen=True)
class Unavailable:
    """What was asked cannot be done now; "resend query after interval t"."""

    resend_after: float
    request: Any = None


@dataclass(frozen=True)
class Query:
    """Who can satisfy a subscription?"""

    subscription: Routable
    ask: str = "providers"
    """``providers``: the look-up service, for their endpoints; ``value``: the latest notification itself"""
    now: float = 0.0
    age: float = math.inf
    """of values: published no longer ago than that"""


@dataclass(frozen=True)
class Answer:
    subscription: Hashable
    found: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Attach:
    """A client is here now: it was at ``previous`` (None: nobody knows its pairs), and was told ``believed``."""

    client: Hashable
    previous: str | None = None
    believed: Mapping[Any, Any] = field(default_factory=dict)
    number: Number = UNNUMBERED
    """of the client's next report: what an earlier home knows of it is older"""
    log: tuple[Report, ...] = ()
    """the client's own past, where filters look back and no broker may know it"""


@dataclass(frozen=True)
class Handover:
    """Give a client's pairs away, of these subscriptions; it follows what its new home announced on the same way."""

    client: Hashable
    to: str
    number: Number = UNNUMBERED
    subscriptions: tuple[Hashable, ...] = ()


@dataclass(frozen=True)
class Moved:
    client: Hashable
    matching: Mapping[Hashable, Any]
    logs: Mapping[Hashable, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Attached:
    client: Hashable
    number: Number = UNNUMBERED


@dataclass(frozen=True)
class Fetch:
    client: Hashable
    to: str


@dataclass(frozen=True)
class Logs:
    client: Hashable
    log: tuple[Any, ...]


@dataclass(frozen=True)
class Envelope:
    """A message on its way, from a client or broker to the next; ``to`` is the broker where it ends."""

    source: Hashable
    destination: Hashable
    message: Any
    to: str | None = None

    def __repr__(self) -> str:
        return f"{self.source} → {self.destination}: {self.message}"


def size(message: Any) -> int:
    """Bytes of a message as written; of a report, what the client is like is written too.

    >>> size(Leave())
    7
    """
    item = getattr(message, "item", None)
    said = repr(item.state.values) if isinstance(item, Report) and item.state else ""
    return len((repr(message) + said).encode())
