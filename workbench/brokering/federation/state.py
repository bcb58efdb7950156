"""A broker as a value: L_B, N_B and T_B (A Federated Broker Architecture, IV.A, IV.C).

What a broker does with a message is in `brokers`; here is what it holds, and the rules that all brokers of a federation
share.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.brokering.federation.attributes import Notification
from workbench.brokering.federation.composites import Composite, Seen
from workbench.brokering.federation.covering import ROUTING, SIMPLE
from workbench.brokering.federation.interests import Report, World
from workbench.brokering.federation.layers import Layered
from workbench.brokering.federation.messages import Envelope, LocalClient
from workbench.brokering.federation.tables import Named, Table
from workbench.errors import ScenarioError, did_you_mean

Out = list[Envelope]


@dataclass(frozen=True)
class Rules:
    """How the brokers of a federation work; each rule can be switched to compare.

    ``routing``: simple, covering or merging. ``cyclic``: suppress duplicates. ``blur_m``: how far a subscriber may
    move before its routing filter is announced again. ``accounts``: the credentials of each client, None: anybody.
    """

    routing: str = SIMPLE
    cyclic: bool = False
    blur_m: float = 0.0
    accounts: Mapping[Hashable, str] | None = None

    def __post_init__(self) -> None:
        if self.routing not in ROUTING:
            raise ScenarioError(f"routing {self.routing!r}; {did_you_mean(self.routing, ROUTING)}")
        if self.cyclic and self.routing != SIMPLE:
            raise ScenarioError(
                f"routing {self.routing!r} in a cyclic overlay: who covers whom depends on the way; use 'simple'"
            )
        if not self.blur_m >= 0:
            raise ScenarioError(f"blur_m = {self.blur_m}; expected a number of at least 0")


@dataclass(frozen=True)
class Known:
    """The latest report of a client, and from whom it came: a neighbour, or the client itself."""

    report: Report
    came: Hashable
    hops: int = 0
    """the links it passed on its way here"""
    suspended: str = ""
    """the link or broker at which the way to it is broken: it may have changed, so no pair of it is decided"""


@dataclass(frozen=True)
class Broker:
    """B: its local clients L_B, neighbours N_B and routing table T_B, and what it knows of clients' states.

    >>> Broker("B1", frozenset({"B2"}))
    B1: {}
    """

    name: str
    neighbours: frozenset[str] = frozenset()
    rules: Rules = field(default_factory=Rules)
    world: World | None = None
    clients: Layered[Hashable, LocalClient] = field(default_factory=Layered)
    providers: Layered[Hashable, LocalClient] = field(default_factory=Layered)
    """the local clients that said what they can produce"""
    table: Table = field(default_factory=Table)
    announced: Mapping[str, Named] = field(default_factory=dict)
    """what each neighbour has been told of the table"""
    seen: Layered[Hashable, tuple[Any, int]] = field(default_factory=Layered)
    """in a cyclic overlay: the newest version of each subscription"""
    heard: Layered[Hashable, tuple[int, ...]] = field(default_factory=Layered)
    """in a cyclic overlay: the latest numbers of each origin"""
    recent: Layered[Hashable, Notification] = field(default_factory=Layered)
    """the latest notification of each origin that a local client published or was told: the cache of VIII"""
    composing: Mapping[Hashable, Mapping[Hashable, tuple[Composite, Seen]]] = field(default_factory=dict)
    """the composite events of local clients, by name, and what has been seen of their parts"""
    known: Layered[Hashable, Known] = field(default_factory=Layered)
    publishing: Layered[Hashable, bool] = field(default_factory=Layered)
    """the clients known here that publish"""
    told: Mapping[str, Layered[Hashable, Report]] = field(default_factory=dict)
    """the reports that each neighbour has, as far as they concern it"""
    logs: Layered[Hashable, tuple[Report, ...]] = field(default_factory=Layered)
    """the past of clients, where filters look back"""
    matching: Layered[Hashable, Mapping[Hashable, int]] = field(default_factory=Layered)
    """M of the local subscriptions: the publications of each, with their generation"""
    watching: Layered[Hashable, frozenset[Hashable]] = field(default_factory=Layered)
    """the local subscriptions that a publication of each client may match now"""
    arriving: Mapping[Hashable, Mapping[Hashable, Mapping[Hashable, int]]] = field(default_factory=dict)
    """clients whose pairs are still on their way, with what they themselves believe"""
    departing: frozenset[Hashable] = frozenset()
    """clients whose pairs were handed over"""
    resyncing: frozenset[Hashable] = frozenset()
    """clients that are told next what they missed"""
    undecided: frozenset[Hashable] = frozenset()
    """subscriptions about which nothing was decided lately, because third parties may be cut off"""
    withheld: tuple[tuple[Hashable, str], ...] = ()
    """the pairs that could not be decided of late: the subscription of each, and where the way is broken"""
    links: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """what is heard of links: how often each broke and was repaired; while that is odd, it is broken"""
    unconfirmed: Mapping[str, frozenset[Hashable]] = field(default_factory=dict)
    fresh: Mapping[Hashable, bool] = field(default_factory=dict)
    """clients that something new is known of, and whether it came in vain if nothing here matches"""
    news: Mapping[Hashable, tuple[tuple[Report, int], ...]] = field(default_factory=dict)
    """of the same clients: the reports that came since, and how many links each passed"""
    false_forwards: int = 0
    suppressed: int = 0

    @property
    def is_cut_off(self) -> bool:
        """Whether a link of the overlay is broken, so that there may be clients that nobody here has heard of."""
        return bool(self.broken)

    @property
    def broken(self) -> list[tuple[str, str]]:
        """The links that are broken, as far as is heard here."""
        return [way for way, times in self.links.items() if times % 2]

    def __repr__(self) -> str:
        return f"{self.name}: {self.table}"
