"""The mobile broker: a broker on the device (A Federated Broker Architecture, VIII).

Apps on a device talk to the broker on the device; only that one talks to the network, over one wireless link. It

* answers from its *cache* of what local providers produced lately, without invoking them;
* while it is cut off, follows one of three policies with what apps ask of the network:
  ``drop`` (lost, and counted), ``resend`` (the answer is *unavailable*, which the app takes as "resend after t"), or
  ``queue`` (a wait queue of ``length`` messages, none older than ``age``);
* reconnects, and moves to another parent while its user travels.

What it saves is measured against every app talking to the network's broker itself: the same apps, readings and
subscriptions, each message over the wireless link counted (`wireless_messages`).

Departure: VIII says that a wait queue "induces a blocking behaviour". A queue that accepts and answers later blocks
nobody; what it costs is age, so the queue here has a length and an age, and what it gives up is counted.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from workbench.brokering.federation.attributes import Notification, Subscription
from workbench.brokering.federation.context import Provider
from workbench.brokering.federation.messages import Unavailable
from workbench.brokering.kept import crowded_out, fresh
from workbench.errors import ScenarioError, did_you_mean

POLICIES = ("drop", "resend", "queue")


@dataclass(frozen=True)
class Policy:
    """What becomes of a message for the network while there is no network.

    >>> Policy("que")
    Traceback (most recent call last):
    workbench.errors.ScenarioError: policy 'que'; did you mean 'queue'?
    """

    kind: str = "resend"
    resend_after: float = 30.0
    length: int = 100
    age: float = 600.0

    def __post_init__(self) -> None:
        if self.kind not in POLICIES:
            raise ScenarioError(f"policy {self.kind!r}; {did_you_mean(self.kind, POLICIES)}")


@dataclass(frozen=True)
class Sent:
    """What a mobile broker does with one message: what goes to the network, and what the app hears."""

    to_network: tuple[Any, ...] = ()
    to_app: tuple[Any, ...] = ()


@dataclass(frozen=True)
class MobileBroker:
    """The broker on a device, as a value; each operation gives the broker after it and what it sends.

    >>> from workbench.brokering.federation.attributes import attribute
    >>> mobile = MobileBroker("phone", parent="B1")
    >>> mobile, _ = mobile.produced(Notification({"city": "Turin"}, "gps", 1), now=0)
    >>> mobile, sent = mobile.asked(Subscription("σ", attribute("city").exists), now=5)
    >>> sent
    Sent(to_network=(), to_app=(ν1 of gps: city='Turin',))
    >>> mobile, sent = mobile.disconnected().asked(Subscription("σ", attribute("age") > 25), now=6)
    >>> sent.to_app
    (Unavailable(resend_after=30.0, request=σ),)
    """

    name: str
    parent: str | None
    policy: Policy = field(default_factory=Policy)
    fresh_for: float = 60.0
    """how long what a provider produced is worth answering with"""
    at_most: int = 1_000
    """of how many origins it keeps the latest"""
    cache: Mapping[Hashable, tuple[float, Notification]] = field(default_factory=dict)
    queue: tuple[tuple[float, Any], ...] = ()
    subscriptions: Mapping[Hashable, tuple[Hashable, Subscription]] = field(default_factory=dict)
    """of the apps, by name, with the app"""
    wanted: Mapping[Hashable, Subscription] = field(default_factory=dict)
    """of the network: what the parent was told that somebody wants"""
    online: bool = True
    counts: Mapping[str, int] = field(default_factory=dict)

    # -- what apps do ------------------------------------------------------------------------------------------

    def produced(self, notification: Notification, now: float) -> tuple[MobileBroker, Sent]:
        """A provider on the device produced something: kept, told to the apps, and to the network if it is wanted."""
        mobile = self._keeping(notification, now)
        local = tuple((app, notification) for app, s in self.subscriptions.values() if s.accepts(notification))
        if not any(s.accepts(notification) for s in self.wanted.values()):
            return mobile._counted("answered locally", len(local)), Sent((), local)
        mobile, sent = mobile._to_network(notification, now)
        return mobile, replace(sent, to_app=local + sent.to_app)

    def subscribed(self, app: Hashable, subscription: Subscription, now: float) -> tuple[MobileBroker, Sent]:
        """An app subscribes: what is in the cache answers at once, and the network is told once for all apps."""
        told = any(s.covers(subscription) for _, s in self.subscriptions.values())
        mobile = replace(self, subscriptions={**self.subscriptions, subscription.name: (app, subscription)})
        cached = tuple((app, n) for n in mobile._fresh(subscription, now))
        if told:
            return mobile._counted("covered on the device"), Sent((), cached)
        mobile, sent = mobile._to_network(subscription, now)
        return mobile, replace(sent, to_app=cached + sent.to_app)

    def asked(self, subscription: Subscription, now: float) -> tuple[MobileBroker, Sent]:
        """An app asks for the present value: from the cache if it is there, else from the network."""
        found = self._fresh(subscription, now)
        if found:
            return self._counted("answered from the cache"), Sent((), found)
        return self._to_network(subscription, now)

    def told(self, notification: Notification, now: float) -> tuple[MobileBroker, Sent]:
        """The network notifies: one message over the air for all the apps that want it."""
        apps = tuple((app, notification) for app, s in self.subscriptions.values() if s.accepts(notification))
        return self._keeping(notification, now)._counted("over the air"), Sent((), apps)

    # -- the link ----------------------------------------------------------------------------------------------

    def disconnected(self) -> MobileBroker:
        """The device is out of reach."""
        return replace(self, online=False)

    def connected(self, now: float, parent: str | None = None) -> tuple[MobileBroker, Sent]:
        """The device is in reach, of its old parent or of another one: that one is told everything, then the queue."""
        moved = parent is not None and parent != self.parent
        mobile = replace(self, online=True, parent=parent or self.parent, queue=(), wanted={} if moved else self.wanted)
        kept = [m for at, m in self.queue if now - at <= self.policy.age]
        mobile = mobile._counted("too old", len(self.queue) - len(kept))
        again = [s for _, s in self.subscriptions.values()] if moved else []
        rest = [m for m in kept if m not in again]
        mobile = mobile._counted("over the air", len(again) + len(rest))
        return mobile, Sent((*again, *rest), ())

    def _to_network(self, message: Any, now: float) -> tuple[MobileBroker, Sent]:
        if self.online:
            return self._counted("over the air"), Sent((message,), ())
        if self.policy.kind == "drop":
            return self._counted("dropped"), Sent()
        if self.policy.kind == "resend":
            return self._counted("unavailable"), Sent((), (Unavailable(self.policy.resend_after, message),))
        waiting = [(at, m) for at, m in self.queue if now - at <= self.policy.age]
        mobile = self._counted("too old", len(self.queue) - len(waiting))
        waiting.append((now, message))
        over = max(0, len(waiting) - self.policy.length)
        return replace(mobile, queue=tuple(waiting[over:]))._counted("queue full", over), Sent()

    def _fresh(self, subscription: Subscription, now: float) -> tuple[Notification, ...]:
        kept = fresh(self.cache, now, self.fresh_for, lambda entry: entry[0])
        return tuple(n for _, n in kept.values() if subscription.accepts(n))

    def _keeping(self, notification: Notification, now: float) -> MobileBroker:
        """With the latest of its origin in the cache, which is bounded: the longest stored goes first."""
        cache = {**self.cache, notification.origin: (now, notification)}
        gone = crowded_out(cache, self.at_most, lambda entry: entry[0])
        return replace(self, cache={origin: entry for origin, entry in cache.items() if origin not in gone})

    def _counted(self, what: str, times: int = 1) -> MobileBroker:
        if not times:
            return self
        return replace(self, counts={**self.counts, what: self.counts.get(what, 0) + times})


def wireless_messages(
    providers: Iterable[Provider],
    apps: Mapping[Hashable, Iterable[Subscription]],
    readings: Iterable[tuple[float, Hashable, Mapping[str, Any]]],
    outages: Iterable[tuple[float, float]] = (),
    wanted: Iterable[Subscription] = (),
    policy: Policy | None = None,
) -> dict[str, Counter[str]]:
    """The messages of a device with a broker on it, and of the same apps and providers without one.

    Without a broker on the device each subscription of each app, each reading that somebody wants and each notification
    of each app crosses the wireless link by itself. ``wanted``: what the rest of the world subscribed to.
    """
    sensors = {p.name: p for p in providers}
    breaks = sorted(outages)
    outside = {s.name: s for s in wanted}
    mobile = MobileBroker("device", "B1", policy or Policy(), wanted=outside)
    alone: Counter[str] = Counter()
    flat = [(app, s) for app, several in apps.items() for s in several]
    for app, s in flat:
        mobile, _ = mobile.subscribed(app, s, 0.0)
        alone["over the air"] += 1
    numbers: Counter[Hashable] = Counter()
    pending = deque(sorted(readings, key=lambda r: r[0]))
    while pending:
        now, name, reading = pending.popleft()
        cut = any(start <= now < end for start, end in breaks)
        if cut and mobile.online:
            mobile = mobile.disconnected()
        elif not cut and not mobile.online:
            mobile, _ = mobile.connected(now)
        context = sensors[name].infer(reading)
        if context is None:
            continue
        numbers[name] += 1
        made = Notification(context, name, numbers[name], now)
        mobile, _ = mobile.produced(made, now)
        hears = [app for app, s in flat if s.accepts(made)]
        if hears or any(s.accepts(made) for s in outside.values()):
            # To the network's broker, and back to each app that wants it.
            alone["dropped" if cut else "over the air"] += 1 + len(hears)
    return {"mobile broker": Counter(mobile.counts), "every app by itself": alone}
