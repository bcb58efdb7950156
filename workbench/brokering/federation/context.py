"""Context consumers and providers (A Federated Broker Architecture, II and III), and events made of several.

A provider (CxP) gathers readings and *infers* context from them, or combines what other providers publish; it is
handed the subscriptions that it could satisfy and publishes only what one of them accepts (V): "a CxP provides context
data only further to a specific invocation or subscription" (II.B). A consumer (CxC) subscribes and is told
asynchronously, or asks the look-up service for a provider and queries that one, synchronously (II.A).
`Exchange` runs both over the brokers of an overlay and counts what each way costs.

A `Composite` is an event made of several notifications: a filter over several publications (IX asks for it). Its parts
are routed as ordinary subscriptions; the home broker's side puts them together, and the consumer hears once.

Departure: III has providers that "do not stop producing context if no CxCs are present", II.B ones that produce "only
further to a specific invocation or subscription". Here a provider always infers, and publishes when it is asked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.brokering.federation.attributes import Expression, Notification, Subscription
from workbench.brokering.federation.brokers import step
from workbench.brokering.federation.counting import Counts
from workbench.brokering.federation.messages import (
    Answer,
    Envelope,
    Leave,
    LocalClient,
    Notify,
    Pub,
    Query,
    Register,
    Sub,
    Unsub,
)
from workbench.brokering.federation.overlay import Overlay
from workbench.brokering.federation.state import Broker, Rules
from workbench.errors import UpdateError

Reading = Mapping[str, Any]
Inference = Callable[[Reading], Reading | None]


@dataclass(frozen=True)
class Provider:
    """A context provider: what it can produce, how it infers it, and the subscriptions that it was handed.

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

    def handed(self, subscriptions: Iterable[Any], gone: Iterable[Hashable] = ()) -> Provider:
        """The provider after it was handed subscriptions, and others were taken back."""
        kept = {n: s for n, s in self.wanted.items() if n not in set(gone)}
        return replace(self, wanted={**kept, **{s.name: s for s in subscriptions}})

    def published(self, reading: Reading, number: int) -> Notification | None:
        """What it publishes of a reading: the context inferred from it, if a subscription accepts it."""
        context = self.infer(reading)
        if context is None:
            return None
        made = Notification(context, self.name, number)
        return made if any(s.accepts(made) for s in self.wanted.values()) else None


@dataclass(frozen=True)
class Composite:
    """An event made of several: a notification for every part, within a time, in any order or in the given one.

    >>> from workbench.brokering.federation.attributes import attribute
    >>> hot = Composite("fire", {"hot": attribute("heat") > 60, "smoke": attribute("smoke") == True}, within=10)
    >>> seen, event = hot.told(Notification({"heat": 70}, "κ1", 1), at=0, seen={})
    >>> seen, event = hot.told(Notification({"smoke": True}, "κ2", 1), at=4, seen=seen)
    >>> event
    ν1 of fire: hot=..., smoke=...
    """

    name: Hashable
    parts: Mapping[str, Expression]
    within: float
    ordered: bool = False

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """What is routed: one subscription for each part."""
        return tuple(Subscription((self.name, label), part) for label, part in self.parts.items())

    def told(
        self, notification: Notification, at: float, seen: Mapping[str, tuple[float, Notification]]
    ) -> tuple[dict[str, tuple[float, Notification]], Notification | None]:
        """What has been seen of the parts after one more notification, and the event if that completes it."""
        fresh = {label: (t, n) for label, (t, n) in seen.items() if at - t <= self.within}
        labels = list(self.parts)
        for label, part in self.parts.items():
            before = labels[: labels.index(label)]
            if part(notification) and (not self.ordered or all(b in fresh for b in before)):
                fresh[label] = (at, notification)
        if len(fresh) < len(self.parts):
            return fresh, None
        number = max(n.number for _, n in fresh.values())
        return {}, Notification({label: n for label, (_, n) in fresh.items()}, self.name, number)


class Exchange:
    """Consumers and providers at the brokers of an overlay; every message is counted, each takes a link's ``delay``.

    >>> from workbench.brokering.federation.attributes import attribute
    >>> from workbench.brokering.federation.overlay import chain
    >>> exchange = Exchange(chain(2))
    >>> exchange.provide(Provider("gps", frozenset({"city"})), "B2")
    >>> exchange.subscribe("guide", "B1", Subscription("σ1", attribute("city") == "Turin"))
    >>> exchange.reading("gps", {"city": "Turin"})
    >>> exchange.inbox["guide"]
    [ν1 of gps: city='Turin']
    """

    def __init__(self, overlay: Overlay, rules: Rules | None = None, delay: float = 1.0) -> None:
        self.overlay = overlay
        made = replace(rules or Rules(), cyclic=overlay.cyclic)
        self.brokers = {b: Broker(b, frozenset(overlay.neighbours(b)), made) for b in overlay.brokers}
        self.delay = delay
        self.now = 0.0
        self.home: dict[Hashable, str] = {}
        self.providers: dict[Hashable, Provider] = {}
        self.numbers: dict[Hashable, int] = {}
        self.composites: dict[Hashable, tuple[Composite, dict[str, Any]]] = {}
        self.inbox: dict[Hashable, list[Notification]] = {}
        self.invoked: dict[Hashable, int] = {}
        self.away: dict[Hashable, list[Envelope]] = {}
        self.counts = Counts()

    # -- the asynchronous way --------------------------------------------------------------------------------

    def provide(self, provider: Provider, at: str) -> None:
        """A provider registers its capabilities with a broker."""
        self.providers[provider.name] = provider
        self.invoked[provider.name] = 0
        endpoint = f"{at}/{provider.name}"
        client = LocalClient(provider.name, endpoint, provider.capabilities)
        self._client(provider.name, at, Register(client))

    def subscribe(self, consumer: Hashable, at: str, *subscriptions: Subscription) -> None:
        """A consumer subscribes with its broker; it need not know who provides."""
        self._client(consumer, at, Sub(subscriptions))

    def compose(self, consumer: Hashable, at: str, composite: Composite) -> None:
        """A consumer subscribes to an event made of several."""
        self.composites[consumer] = (composite, {})
        self._client(consumer, at, Sub(composite.subscriptions))

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

    def query(self, consumer: Hashable, subscription: Subscription, reading: Callable[[Hashable], Reading]) -> Any:
        """Ask each broker's look-up service for a provider, nearest first, and query that one; the consumer waits.

        ``reading`` stands for the provider's sensors: invoking a provider makes it read and infer.
        """
        home = self.home[consumer]
        for broker in sorted(self.overlay.brokers, key=lambda b: (self.overlay.hops(home, b), b)):
            hops = self.overlay.hops(home, broker) + 1
            _, out = step(self.brokers[broker], consumer, Query(subscription))
            self._count(consumer, broker, Query(subscription), hops)
            answer = out[0].message
            assert isinstance(answer, Answer)
            self._count(broker, consumer, answer, hops)
            for name, _ in answer.found:
                self.invoked[name] += 1
                context = self.providers[name].infer(reading(name))
                self._count(consumer, name, Query(subscription), hops + 1)
                found = None if context is None else Notification(context, name, 0)
                self._count(name, consumer, Answer(subscription.name, (found,)), hops + 1)
                if found is not None and subscription.accepts(found):
                    return found
        return None

    def _count(self, source: Hashable, destination: Hashable, message: Any, hops: int) -> None:
        for _ in range(hops):
            self.counts.sent(Envelope(source, destination, message), wireless=False)
        self.now += hops * self.delay

    # -- the network -----------------------------------------------------------------------------------------

    def _client(self, client: Hashable, at: str, message: Any) -> None:
        if at not in self.brokers:
            raise UpdateError(f"there is no broker {at!r}")
        self.home[client] = at
        waiting = deque([Envelope(client, at, message)])
        while waiting:
            envelope = waiting.popleft()
            self.counts.sent(envelope, wireless=False)
            if envelope.destination in self.brokers:
                name = str(envelope.destination)
                self.brokers[name], out = step(self.brokers[name], envelope.source, envelope.message)
                waiting.extend(replace(e, hops=envelope.hops + 1) for e in out)
            elif envelope.destination in self.away and isinstance(envelope.message, Notify):
                self.away[envelope.destination].append(envelope)
            else:
                self._told(envelope)

    def _told(self, envelope: Envelope) -> None:
        client, message = envelope.destination, envelope.message
        if isinstance(message, Sub) and client in self.providers:
            self.providers[client] = self.providers[client].handed(message.subscriptions)
        elif isinstance(message, Unsub) and client in self.providers:
            self.providers[client] = self.providers[client].handed((), message.names)
        elif isinstance(message, Notify):
            item = message.item
            self.counts.delivered(self.now, envelope, envelope.hops, item.published - envelope.hops * self.delay)
            if client in self.composites:
                composite, seen = self.composites[client]
                seen, event = composite.told(item, self.now, seen)
                self.composites[client] = (composite, seen)
                if event is None:
                    return
                item = event
            self.inbox.setdefault(client, []).append(item)
