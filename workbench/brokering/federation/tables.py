"""Routing tables: T_B, pairs of a subscription and a destination (A Federated Broker Architecture, IV.C).

Each entry (σ, D) has D ∈ L_B ∪ N_B: entries exist only for local clients and neighbours, never for anybody beyond.
Here: a frozen value, subscriptions by name for each destination, so that T^D of equation 10 is a look-up.

* `Table.with_` is equation 6, `Table.without` equation 7;
* `Table.of` is equation 10, T^D = {σ | ∃ (σ, D) ∈ T_B};
* `Table.destinations` is Γ_B(ν), the destinations whose subscriptions ν matches (equation 4).

Departure, the slips of the paper:

* IV.A gives every broker the clients {κ1, ..., κn} by name, although each L_B is its own: κ_i is somebody else at each
  broker. VII lets "client κ_i" send to "the parent broker B_i", one index for both; with many clients at a broker
  those are two. L_B ⊂ K and N_B ⊂ β are strict: with a single broker L_B = K.
* IV.C writes D ∈ κ ∪ N_B where κ is one client; L_B ∪ N_B is meant.
* Equation 4 gives Γ_B2(ν1) = {κ1, κ3}. B2 has no entry for κ1, which is no client of its own: {B1, κ3}. The sentence
  after it, "κ1 is a remote client according to T_B2", has the same slip: T_B2 does not know κ1.
* The text to equation 5 removes (B1, σ1); entries are (σ1, B1).
* Equation 3 is *forward(B1, ν1)* with a destination, IV.D declares *forward(ν)*; *notify* has both forms too. And B1 in
  *tableUpdate(B1, σ1, φ)*, equation 2, is who sends it. In our messages both ends stand on the envelope.
* Equation 10 is to give the "matching subscription for a single destination", and gives all of D's, whatever is
  published: no ν is in it. Γ_B(ν) = {D | ∃ σ ∈ T^D: σ(ν)} is what 4 and VII need, and is written nowhere.
* Nothing in equation 4, equation 10 or VII leaves out the neighbour that a notification came from; two brokers that
  want the same would pass it to and fro for ever. Γ_B(ν) here is without its source. So a client that publishes what
  it subscribed to does not hear itself either: the paper does not say whether it should.
* VI names the clients of B2 K2 and K3 and then κ2 and κ3.
* IV.D names two interfaces of a broker, pub and sub; unsub comes with VI and VIII. It has brokers forward to those "who
  have clients subscribed"; of n brokers the next one may have none, and only lead there (VII).
* In VII σ1 is κ2's and κ1 publishes; until then σ1 was κ1's, and κ2 the provider.
* VII says that unsubscriptions are *added* to the table (text to equations 6 and 7); equation 7 removes.
* Equations 8 and 9 bind η twice ("∀ η ∈ N" and inside the set), write N \\ κ_i for N \\ {κ_i}, give pairs that the
  text writes as sets {σ_j, η}, and call the unsubscriptions M_ν although they hold no notification. A client is not in
  N_B, so "except the source" says nothing for a client's request; it matters where a *tableUpdate* is passed on, and
  the source is a neighbour.
* Equations 6 and 7 are written for a client's request only; for a tableUpdate the same hold with the neighbour as
  destination (VI says so in words).
* VII publishes ν, and then ν1 matches; one notification is meant.
* IV.B gives *σ(ν)* to subscriptions only of "a single attribute" in equation 1; expressions over several are its
  Boolean combinations.
* VIII calls Section IV's procedure the way in which a mobile broker joins; IV has none for brokers. See `brokers`.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from workbench.brokering.federation.index import Entries, Need
from workbench.brokering.federation.layers import Layered


class Routable(Protocol):
    """What a table holds: something with a name that accepts what is routed."""

    @property
    def name(self) -> Hashable: ...

    @property
    def version(self) -> tuple[Any, int]:
        """Its sequence at its origin: what it says, and how often ways have changed since it was said (`brokers`)."""

    def accepts(self, item: object) -> bool:
        """Whether an item may concern it: never False where it does."""

    def covers(self, other: object) -> bool:
        """Whether it accepts everything that the other one does."""

    def merged(self, other: object) -> Routable | None:
        """One that accepts all that the two do, or None."""

    @property
    def needs(self) -> tuple[Need, ...] | None:
        """What an item must offer to be accepted (`index`)."""


Named = Entries[Hashable]
NONE: Named = Entries()
FEW = 32
"""destinations with so few entries share one index: a client has some, a neighbour has many"""


@dataclass(frozen=True)
class Table:
    """T_B.

    >>> from workbench.brokering.federation.attributes import Notification, Subscription, attribute
    >>> sigma = Subscription("σ1", attribute("age") > 25)
    >>> table = Table().with_([sigma], "κ1")
    >>> table, table.destinations(Notification({"age": 30}))
    ({(σ1, κ1)}, {'κ1'})
    >>> table.without(["σ1"], "κ1")
    {}
    """

    by_destination: Layered[Hashable, Named] = field(default_factory=Layered)
    together: Entries[tuple[Hashable, Hashable]] = field(default_factory=Entries, compare=False)
    """the entries of all destinations that have few, by destination and name"""
    many: frozenset[Hashable] = field(default=frozenset(), compare=False)
    """the destinations that have many"""
    where: Layered[Hashable, tuple[Hashable, ...]] = field(default_factory=Layered, compare=False)
    """the destinations of each subscription, by name"""

    def with_(self, subscriptions: Iterable[Routable], destination: Hashable) -> Table:
        """T_B ∪ {(σ, D) | σ ∈ ς}; a newer version of σ takes the place of the older one."""
        return self._changed(destination, {s.name: s for s in subscriptions}, ())

    def without(self, names: Iterable[Hashable], destination: Hashable) -> Table:
        """T_B \\ {(σ, D) | σ ∈ χ}."""
        return self._changed(destination, {}, names)

    def forget(self, destination: Hashable) -> Table:
        """Nothing for that destination any longer."""
        return self._changed(destination, {}, list(self.of(destination)))

    def _changed(self, destination: Hashable, new: Mapping[Hashable, Any], gone: Iterable[Hashable]) -> Table:
        before = self.of(destination)
        gone = [name for name in gone if name in before]
        if not new and not gone:
            return self
        after = before.changed_by(new, gone)
        by_destination = self.by_destination.changed_by(
            {destination: after} if after else {}, () if after else [destination]
        )
        was_many, is_many = destination in self.many, len(after) > FEW
        shared = {} if is_many else (after if was_many else new)
        left = () if was_many else (before if is_many else gone)
        together = self.together.changed_by(
            {(destination, name): s for name, s in shared.items()}, [(destination, name) for name in left]
        )
        many = self.many | {destination} if is_many else self.many - {destination}
        return Table(by_destination, together, many, self._whereabouts(destination, new, gone))

    def _whereabouts(
        self, destination: Hashable, new: Iterable[Hashable], gone: Iterable[Hashable]
    ) -> Layered[Hashable, tuple[Hashable, ...]]:
        alone, where = (destination,), self.where.get
        left = {n: tuple(d for d in where(n) if d != destination) for n in gone}
        held = [(n, where(n)) for n in new]
        come = {n: alone if d is None else d if destination in d else (*d, destination) for n, d in held}
        return self.where.changed_by({**{n: d for n, d in left.items() if d}, **come}, [n for n in left if not left[n]])

    def of(self, destination: Hashable) -> Named:
        """T^D, by name."""
        return self.by_destination.get(destination, NONE)

    def destinations(self, item: Any, but: Hashable = None) -> set[Hashable]:
        """Γ_B(ν), the source left out."""
        offer = item.offer
        found = {destination for destination, _ in self.together.accepting(item, offer)}
        found |= {d for d in self.many if d != but and self.of(d).accept(item, offer)}
        return found - {but}

    def wants(self, item: Any, but: Hashable) -> bool:
        """Whether a destination but this one wants an item: whether Γ_B(ν) is not empty."""
        offer = item.offer
        return any(d != but and self.of(d).accept(item, offer) for d in self.many) or any(
            d != but for d, _ in self.together.accepting(item, offer)
        )

    def accepting(self, item: object, but: Collection[Hashable]) -> Iterator[tuple[Hashable, Hashable]]:
        """The entries that accept an item, by destination and name; some destinations may be left out."""
        yield from self.together.accepting(item)
        for destination in self.many.difference(but):
            yield from ((destination, name) for name in self.of(destination).accepting(item))

    def unplaced(self, but: Collection[Hashable]) -> Iterator[Routable]:
        """The subscriptions that no index helps to find; some destinations may be left out."""
        yield from self.together.unplaced()
        for destination in self.many.difference(but):
            yield from self.of(destination).unplaced()

    def beyond(self, neighbour: Hashable, names: Iterable[Hashable] | None = None) -> dict[Hashable, Routable]:
        """What a neighbour is to be told: the subscriptions of all other destinations, the newest of each name."""
        found: dict[Hashable, Routable] = {}
        for name in self.where if names is None else names:
            held = [self.by_destination[d][name] for d in self.where.get(name, ()) if d != neighbour]
            if held:
                found[name] = max(held, key=lambda s: s.version)
        return found

    def __iter__(self) -> Iterator[tuple[Routable, Hashable]]:
        return ((s, destination) for destination, held in self.by_destination.items() for s in held.values())

    def __len__(self) -> int:
        return sum(len(held) for held in self.by_destination.values())

    def __contains__(self, entry: object) -> bool:
        """Whether (name of σ, D) is an entry."""
        return isinstance(entry, tuple) and len(entry) == 2 and entry[0] in self.of(entry[1])

    def __repr__(self) -> str:
        return "{" + ", ".join(sorted(f"({s.name}, {d})" for s, d in self)) + "}"
