"""Context consumers and providers at the brokers of an overlay (A Federated Broker Architecture, II, III and VIII).

A provider (CxP) gathers readings and *infers* context from them, or combines what other providers publish; it is
handed the subscriptions that it could satisfy and publishes only what one of them accepts (V): "a CxP provides context
data only further to a specific invocation or subscription" (II.B). A consumer (CxC) subscribes and is told
asynchronously, or asks the look-up service for a provider and queries that one, synchronously (II.A).
`Exchange` runs both over the brokers of an overlay and counts what each way costs.

Links may be cut. A broker, on a device or in the infrastructure ("valid not only for mobile brokers", VIII), then
follows its `Policy` with notifications for the other side, and with questions that only the other side may answer:

* ``drop``: they are lost, and counted;
* ``resend``: the answer is *unavailable*, "resend after t", and the client does so until it gets through;
* ``queue``: they wait at the broker, at most ``length`` and none older than ``age``; what is given up is counted.

Subscriptions need no policy: both ends tell each other their whole tables when the link is there again. A broker
answers from what its clients published or were told lately, without invoking the provider.

Departure: VIII says that a wait queue "induces a blocking behaviour". A queue that accepts and answers later blocks
nobody; what it costs is age, so it has a length and an age. Resending costs more messages and the order: what is resent
later overtakes what was told to wait longer.

Departure: III has providers that "do not stop producing context if no CxCs are present", II.B ones that produce "only
further to a specific invocation or subscription". Here a provider always infers, and publishes when it is asked.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import networkx as nx

from workbench.brokering.federation.attributes import Notification, Subscription
from workbench.brokering.federation.brokers import cut, forgotten, linked, step
from workbench.brokering.federation.composites import Composite
from workbench.brokering.federation.counting import Counts
from workbench.brokering.federation.messages import (
    Answer,
    Envelope,
    Forward,
    Leave,
    LocalClient,
    Notify,
    Pub,
    Query,
    Register,
    Sub,
    Unavailable,
    Unsub,
    size,
)
from workbench.brokering.federation.overlay import Link, Overlay, link
from workbench.brokering.federation.state import Broker, Out, Rules
from workbench.errors import ScenarioError, UpdateError, did_you_mean

Reading = Mapping[str, Any]
Inference = Callable[[Reading], Reading | None]


POLICIES = ("drop", "resend", "queue")


@dataclass(frozen=True)
class Policy:
    """What becomes of what is for the other side of a link while it is cut.

    >>> Policy("que", length=0)
    Traceback (most recent call last):
    workbench.errors.ScenarioError: policy 'que'; did you mean 'queue'?; length = 0; expected a whole number from 1
    """

    kind: str = "resend"
    resend_after: float = 30.0
    length: int = 100
    age: float = 600.0

    def __post_init__(self) -> None:
        faults = []
        if self.kind not in POLICIES:
            faults.append(f"policy {self.kind!r}; {did_you_mean(self.kind, POLICIES)}")
        if not 0 < self.resend_after < math.inf:
            faults.append(f"resend_after = {self.resend_after}; expected a time after now")
        if not isinstance(self.length, int) or self.length < 1:
            faults.append(f"length = {self.length}; expected a whole number from 1")
        if not self.age >= 0:
            faults.append(f"age = {self.age}; expected a number of at least 0")
        if faults:
            raise ScenarioError("; ".join(faults))


@dataclass(frozen=True)
class Provider:
    """A context provider: what it can produce, how it infers it, and the subscriptions that it was handed.

    What it infers from is raw, a reading of a sensor, or what other providers published (``combines``): it is a
    consumer of theirs then.

    >>> def activity(reading):
    ...     return {"activity": "running" if reading["acceleration"] > 3 else "resting"}
    >>> runner = Provider("κ2", frozenset({"activity"}), activity)
    >>> runner.published({"acceleration": 5}, 1)  # nobody asked
    >>> from workbench.brokering.federation.attributes import attribute
    >>> runner.handed([Subscription("σ1", attribute("activity") == "running")]).published({"acceleration": 5}, 1)
    ν1 of κ2: activity='running'
    """

    name: Hashable
    capabilities: frozenset[str]
    infer: Inference = dict
    wanted: Mapping[Hashable, Subscription] = field(default_factory=dict)
    combines: tuple[Subscription, ...] = ()
    """what it wants of other providers: its reading is the latest of each, once there is one of all"""

    def handed(self, subscriptions: Iterable[Any], gone: Iterable[Hashable] = ()) -> Provider:
        """The provider after it was handed subscriptions, and others were taken back."""
        kept = {n: s for n, s in self.wanted.items() if n not in set(gone)}
        return replace(self, wanted={**kept, **{s.name: s for s in subscriptions}})

    def combined(self, heard: Sequence[Notification]) -> Reading | None:
        """The reading that the latest it heard for each of its own subscriptions make; None while one is missing."""
        latest = [next((n for n in reversed(heard) if s.accepts(n)), None) for s in self.combines]
        if not latest or None in latest:
            return None
        return {name: value for n in latest if n is not None for name, value in n.attributes.items()}

    def published(self, reading: Reading, number: int) -> Notification | None:
        """What it publishes of a reading: the context inferred from it, if a subscription accepts it."""
        context = self.infer(reading)
        if context is None:
            return None
        made = Notification(context, self.name, number)
        return made if any(s.accepts(made) for s in self.wanted.values()) else None


@dataclass(frozen=True)
class Waiting:
    """What could not be done, since when, and when its client tries again (never: it waits at the broker)."""

    since: float
    due: float
    broker: str
    client: Hashable
    what: Envelope | Query


class Exchange:
    """Consumers and providers at the brokers of an overlay; every message is counted, each takes a link's ``delay``.

    ``policies``: of brokers, by name; the others answer *unavailable*. ``wireless``: the links whose messages are
    counted as such, and the clients that talk to their broker over the air.

    >>> from workbench.brokering.federation.attributes import attribute
    >>> from workbench.brokering.federation.overlay import chain
    >>> exchange = Exchange(chain(2))
    >>> exchange.provide(Provider("gps", frozenset({"city"})), "B2")
    >>> exchange.subscribe("guide", "B1", Subscription("σ1", attribute("city") == "Turin"))
    >>> exchange.reading("gps", {"city": "Turin"})
    >>> exchange.inbox["guide"]
    [ν1 of gps: city='Turin']
    """

    def __init__(
        self,
        overlay: Overlay,
        rules: Rules | None = None,
        delay: float = 1.0,
        policies: Mapping[str, Policy] | None = None,
        wireless: Iterable[Any] = (),
    ) -> None:
        self.overlay = overlay
        made = replace(rules or Rules(), cyclic=overlay.cyclic)
        self.brokers = {b: Broker(b, frozenset(overlay.neighbours(b)), made) for b in overlay.brokers}
        self.delay = delay
        self.policies = policies or {}
        for broker in self.policies:
            if broker not in self.brokers:
                raise ScenarioError(f"a policy of broker {broker!r}; {did_you_mean(broker, self.brokers)}")
        self.wireless = frozenset(wireless)
        self.now = 0.0
        self.home: dict[Hashable, str] = {}
        self.providers: dict[Hashable, Provider] = {}
        self.sensors: dict[Hashable, Callable[[], Reading]] = {}
        self.numbers: dict[Hashable, int] = {}
        self.inbox: dict[Hashable, list[Any]] = {}
        self.invoked: dict[Hashable, int] = {}
        self.away: dict[Hashable, list[Envelope]] = {}
        self.down: set[Link] = set()
        self.waiting: list[Waiting] = []
        self.counts = Counts()

    # -- the asynchronous way --------------------------------------------------------------------------------

    def provide(
        self,
        provider: Provider,
        at: str,
        sensor: Callable[[], Reading] | None = None,
        credentials: str = "",
    ) -> None:
        """A provider registers its endpoint and capabilities with a broker; invoked, it reads its ``sensor``."""
        self.providers[provider.name] = provider
        self.invoked[provider.name] = 0
        if sensor is not None:
            self.sensors[provider.name] = sensor
        client = LocalClient(provider.name, f"{at}/{provider.name}", provider.capabilities, credentials)
        self._client(provider.name, at, Register(client))
        if provider.combines and provider.name in self.brokers[at].clients:
            self.subscribe(provider.name, at, *provider.combines)

    def subscribe(self, consumer: Hashable, at: str, *subscriptions: Subscription | Composite) -> None:
        """A consumer subscribes with its broker; it need not know who provides."""
        for s in subscriptions:
            for part in s.subscriptions if isinstance(s, Composite) else (s,):
                self._check_name(consumer, part)
        self._client(consumer, at, Sub(subscriptions))

    def unsubscribe(self, consumer: Hashable, *names: Hashable) -> None:
        """A consumer takes subscriptions back."""
        self._client(consumer, self.home[consumer], Unsub(names))

    def leave(self, client: Hashable) -> None:
        """A client leaves."""
        self._client(client, self.home[client], Leave())

    def reading(self, provider: Hashable, reading: Reading) -> None:
        """A sensor reading at a provider: it infers context, and publishes it if somebody wants it."""
        self.numbers[provider] = self.numbers.get(provider, 0) + 1
        made = self.providers[provider].published(reading, self.numbers[provider])
        if made is not None:
            self._client(provider, self.home[provider], Pub(replace(made, published=self.now)))

    def disconnect(self, consumer: Hashable) -> None:
        """A consumer is away; its broker keeps what it is to be told."""
        self.away[consumer] = []

    def reconnect(self, consumer: Hashable) -> None:
        """A consumer is back, and is told what was kept."""
        for envelope in self.away.pop(consumer, []):
            self._told(envelope)

    # -- the synchronous way ---------------------------------------------------------------------------------

    def query(
        self, consumer: Hashable, subscription: Subscription, fresh_for: float = 0.0, at: str | None = None
    ) -> Any:
        """Ask for the present value; the consumer waits. A notification, None, or `Unavailable`.

        First what its broker knows, if that is not older than ``fresh_for``; then each broker's look-up service,
        nearest first, and a provider that it names. What only brokers beyond a cut link may know, the policy decides.
        ``at``: the broker of somebody who did nothing before.
        """
        home = self.home.setdefault(consumer, at or min(self.brokers))
        if fresh_for > 0:
            (cached,) = self._ask(consumer, home, Query(subscription, "value", self.now, fresh_for), 1)
            if cached.found:
                return cached.found[-1]
        whole = self.overlay.graph.copy()
        whole.remove_edges_from(self.down)
        reached = nx.single_source_shortest_path_length(whole, home)
        for broker in sorted(reached, key=lambda b: (reached[b], b)):
            hops = reached[broker] + 1
            (answer,) = self._ask(consumer, broker, Query(subscription), hops)
            for name, _ in answer.found:
                found = self._invoke(consumer, name, subscription, hops + 1)
                if found is not None:
                    return found
        if len(reached) == len(self.brokers):
            return None
        return self._held_up(home, consumer, Query(subscription), self.now)

    def _ask(self, consumer: Hashable, broker: str, query: Query, hops: int) -> list[Answer]:
        _, out = step(self.brokers[broker], consumer, query)
        self._count(consumer, broker, query, hops)
        for envelope in out:
            self._count(broker, consumer, envelope.message, hops)
        return [e.message for e in out if isinstance(e.message, Answer)]

    def _invoke(self, consumer: Hashable, name: Hashable, asked: Subscription, hops: int) -> Notification | None:
        """A provider reads and infers because it is asked to."""
        reading = self.sensors[name]() if name in self.sensors else self._combined(name)
        if reading is None:
            return None
        self.invoked[name] += 1
        context = self.providers[name].infer(reading)
        self._count(consumer, name, Query(asked), hops)
        found = None if context is None else Notification(context, name, 0, self.now)
        self._count(name, consumer, Answer(asked.name, (found,)), hops)
        return found if found is not None and asked.accepts(found) else None

    def _count(self, source: Hashable, destination: Hashable, message: Any, hops: int) -> None:
        self._sent(Envelope(source, destination, message))
        for _ in range(hops - 1):
            self._sent(Envelope(None, None, message))  # between brokers
        self.now += hops * self.delay

    # -- links -----------------------------------------------------------------------------------------------

    def cut(self, a: str, b: str) -> None:
        """A link is cut: a device out of reach, or a failure between two brokers."""
        if link(a, b) not in self.overlay.links:
            raise UpdateError(f"there is no link between {a!r} and {b!r}")
        self.down.add(link(a, b))
        for one, other in ((a, b), (b, a)):
            self.brokers[one], out = cut(self.brokers[one], other)
            self._run(out)

    def mend(self, a: str, b: str) -> None:
        """A link is there again: its ends tell each other everything, then what waited goes through."""
        self.down.discard(link(a, b))
        for one, other in ((a, b), (b, a)):
            self.brokers[one], out = linked(self.brokers[one], other)
            self._run(out)
        self._again([w for w in self.waiting if math.isinf(w.due)])

    def relink(self, broker: str, old: str, new: str) -> None:
        """A broker moves to another parent: a mobile one while its user travels."""
        self.overlay = self.overlay.without_link(broker, old).with_link(broker, new)
        self.down.discard(link(broker, old))
        for one, other in ((old, broker), (broker, old)):
            self.brokers[one], out = forgotten(self.brokers[one], other)
            self._run(out)
        self.waiting = [_moved(w, broker, old, new) for w in self.waiting]
        self.mend(broker, new)

    def advance(self, now: float) -> None:
        """Let time pass; clients that were told to resend do so."""
        while True:
            due = min((w.due for w in self.waiting), default=math.inf)
            if due > now:
                break
            self.now = max(self.now, due)
            self._again([w for w in self.waiting if w.due <= due])
        self.now = max(self.now, now)

    def _again(self, tried: list[Waiting]) -> None:
        self.waiting = [w for w in self.waiting if w not in tried]
        for w in tried:
            if math.isinf(w.due) and self.now - w.since > self.policies[w.broker].age:
                self._lose(w.broker, "too old", w.what)
            elif isinstance(w.what, Envelope):
                if not math.isinf(w.due):
                    self._sent(Envelope(w.client, w.broker, Pub(w.what.message.item)))
                self._run([w.what], w.client, w.since)
            else:
                found = self.query(w.client, w.what.subscription)  # type: ignore[arg-type]
                if isinstance(found, Notification):
                    self.inbox.setdefault(w.client, []).append(found)

    def _held_up(self, broker: str, client: Hashable, what: Envelope | Query, since: float) -> Unavailable | None:
        """The way is cut: the broker's policy decides."""
        policy = self.policies.get(broker, Policy())
        if policy.kind == "drop":
            self._lose(broker, "dropped", what)
            return None
        if policy.kind == "resend":
            answer = Unavailable(policy.resend_after, what.message if isinstance(what, Envelope) else what)
            self._sent(Envelope(broker, client, answer))
            self.waiting.append(Waiting(since, self.now + policy.resend_after, broker, client, what))
            return answer
        mine = [w for w in self.waiting if w.broker == broker and math.isinf(w.due)]
        if len(mine) >= policy.length:
            self.waiting.remove(mine[0])
            self._lose(broker, "queue full", mine[0].what)
        self.waiting.append(Waiting(since, math.inf, broker, client, what))
        return None

    def _lose(self, broker: str, why: str, what: Envelope | Query) -> None:
        lost = what if isinstance(what, Envelope) else Envelope(broker, broker, what)
        self.counts.lost(self.now, broker, why, lost)

    # -- the network -----------------------------------------------------------------------------------------

    def _check_name(self, consumer: Hashable, s: Subscription) -> None:
        """Brokers know a subscription by its name: it has one meaning, and, where there are several, one way."""
        for broker in self.brokers.values():
            for client in broker.table.where.get(s.name, ()):
                if client in (consumer, *broker.neighbours):
                    continue
                if self.overlay.cyclic or broker.table.of(client)[s.name] != s:
                    raise UpdateError(f"{s.name!r} is a subscription of {client!r} already; give it a name of its own")

    def _client(self, client: Hashable, at: str, message: Any) -> None:
        if at not in self.brokers:
            raise UpdateError(f"there is no broker {at!r}; {did_you_mean(at, self.brokers)}")
        self.home[client] = at
        self._run([Envelope(client, at, message)], client, self.now)

    def _run(self, out: Out, client: Hashable = None, since: float | None = None) -> None:
        """Pass messages on until nobody has any; ``client`` is whose request they follow from."""
        waiting = deque(out)
        while waiting:
            envelope = waiting.popleft()
            source, destination = envelope.source, envelope.destination
            if source in self.brokers and destination in self.brokers and link(source, destination) in self.down:  # type: ignore[arg-type]
                if isinstance(envelope.message, Forward):
                    self._held_up(str(source), client, envelope, self.now if since is None else since)
                continue  # tables are told again when the link is
            self._sent(envelope)
            if destination in self.brokers:
                name = str(destination)
                self.brokers[name], sent = step(self.brokers[name], source, envelope.message)
                waiting.extend(sent)
            elif destination in self.away and isinstance(envelope.message, Notify):
                self.away[destination].append(envelope)
            else:
                self._told(envelope)

    def _sent(self, envelope: Envelope) -> None:
        a, b = envelope.source, envelope.destination
        over_air = a in self.wireless or b in self.wireless or (a, b) in self.wireless or (b, a) in self.wireless
        self.counts.sent(envelope, wireless=over_air)

    def _told(self, envelope: Envelope) -> None:
        client, message = envelope.destination, envelope.message
        if isinstance(message, Sub) and client in self.providers:
            self.providers[client] = self.providers[client].handed(message.subscriptions)
        elif isinstance(message, Unsub) and client in self.providers:
            self.providers[client] = self.providers[client].handed((), message.names)
        elif isinstance(message, Notify):
            item = message.item
            # A link's delay each, from the provider to its broker, between brokers, and to the consumer.
            caused = item.published - (message.hops + 2) * self.delay
            self.counts.delivered(self.now, envelope, caused, size(Forward(item)))
            self.inbox.setdefault(client, []).append(item)
            if client in self.providers and (reading := self._combined(client)) is not None:
                self.reading(client, reading)

    def _combined(self, provider: Hashable) -> Reading | None:
        return self.providers[provider].combined(self.inbox.get(provider, ()))


def _moved(w: Waiting, broker: str, old: str, new: str) -> Waiting:
    """What waits for a broker's old parent waits for its new one."""
    if isinstance(w.what, Envelope) and (w.what.source, w.what.destination) == (broker, old):
        return replace(w, what=replace(w.what, destination=new))
    return w
