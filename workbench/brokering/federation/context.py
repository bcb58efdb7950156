"""Context consumers and providers at the brokers of an overlay (A Federated Broker Architecture, II, III and VIII).

A provider (CxP) gathers readings and *infers* context from them, or combines what other providers publish; it is
handed the subscriptions that it could satisfy and publishes only what one of them accepts (V): "a CxP provides context
data only further to a specific invocation or subscription" (II.B). A consumer (CxC) subscribes and is told
asynchronously, or asks the look-up service for a provider and queries that one, synchronously (II.A).
`Exchange` runs both over the brokers of an overlay, in simulated time (SimPy), and counts what each way costs.

Each message takes the delay of its link, the first and the last one too. What is told goes on by itself: publishing and
subscribing take none of their callers' time. Who asks waits until the answer is there, while everything else goes on.
It looks up who can answer once and remembers them, and asks these directly from then on (II.A), over the same links:
remembered is not asked for again, until one of them is gone. Whom it does not know of it does not ask; a subscription
finds whoever comes.

Links may be cut. A broker, on a device or in the infrastructure ("valid not only for mobile brokers", VIII), then
follows its `Policy` with notifications for the other side, and with questions that only the other side may answer:

* ``drop``: they are lost, and counted;
* ``resend``: the answer is *unavailable*, "resend after t", and the client does so until it gets through;
* ``queue``: they wait at the broker, at most ``length`` and none older than ``age``; what is given up is counted.

What was on its way when the link broke is lost, and counted there, and so is what keeps tables right (tableUpdate): for
that no policy is needed, since both ends tell each other their whole tables when the link is there again. A consumer
that is away is the same to its broker: what it would be told is dropped, or waits, so much and so long as the policy
says.

A broker answers from what its clients published or were told lately, without invoking the provider. It cannot know
what nobody wanted: the context that ended the one it remembers may never have been published (`brokers`).

All this is for notifications with attributes. Publications of subject spaces (`simulated`) are states: what a cut link
loses of them is told again by its repair, so they need no policy, and their matches no look-up.

Departure: VIII says that a wait queue "induces a blocking behaviour". A queue that accepts and answers later blocks
nobody; what it costs is age, so it has a length and an age. Resending costs more messages and the order: what is resent
later overtakes what was told to wait longer.

Departure: III has providers that "do not stop producing context if no CxCs are present", II.B ones that produce "only
further to a specific invocation or subscription". Here a provider always infers, and publishes when it is asked.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import networkx as nx
import simpy

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
    Refused,
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
Steps = Generator[Any, Any, Any]
"""something that takes time: a process of SimPy"""


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


Delay = Callable[[Any, Any], float]


class CutError(Exception):
    """A message cannot go on: the next link is cut, or, if it is ``lost``, broke while it was on it."""

    def __init__(self, lost: bool = False) -> None:
        super().__init__()
        self.lost = lost


class Exchange:
    """Consumers and providers at the brokers of an overlay, in simulated time; every message is counted.

    ``delay``: of a link, or of each by the two it joins. What is done at one instant without delays has followed when
    the call returns; otherwise `advance` and `settle` let time pass. ``policies``: of brokers, by name; the others
    answer *unavailable*. ``wireless``: the links whose messages are counted as such, and the clients that talk to their
    broker over the air.

    >>> from workbench.brokering.federation.attributes import attribute
    >>> from workbench.brokering.federation.overlay import chain
    >>> exchange = Exchange(chain(2), delay=1)
    >>> exchange.provide(Provider("gps", frozenset({"city"})), "B2")
    >>> exchange.subscribe("guide", "B1", Subscription("σ1", attribute("city") == "Turin"))
    >>> exchange.settle()  # the provider is handed σ1: over three links
    3
    >>> exchange.reading("gps", {"city": "Turin"})
    >>> exchange.settle(), exchange.inbox["guide"]
    (6, [ν1 of gps: city='Turin'])
    """

    def __init__(
        self,
        overlay: Overlay,
        rules: Rules | None = None,
        delay: float | Delay = 0,
        policies: Mapping[str, Policy] | None = None,
        wireless: Iterable[Any] = (),
    ) -> None:
        self.overlay = overlay
        made = replace(rules or Rules(), cyclic=overlay.cyclic)
        self.brokers = {b: Broker(b, frozenset(overlay.neighbours(b)), made) for b in overlay.brokers}
        self.delay: Delay = delay if callable(delay) else (lambda a, b: delay)
        self.policies = policies or {}
        for broker in self.policies:
            if broker not in self.brokers:
                raise ScenarioError(f"a policy of broker {broker!r}; {did_you_mean(broker, self.brokers)}")
        self.wireless = frozenset(wireless)
        self.env = simpy.Environment()
        self.home: dict[Hashable, str] = {}
        self.providers: dict[Hashable, Provider] = {}
        self.sensors: dict[Hashable, Callable[[], Reading]] = {}
        self.numbers: dict[Hashable, int] = {}
        self.inbox: dict[Hashable, list[Any]] = {}
        self.invoked: dict[Hashable, int] = {}
        self.blocked: Counter[Hashable] = Counter()
        """how long each consumer waited for answers"""
        self.away: dict[Hashable, list[Envelope]] = {}
        self.down: set[Link] = set()
        self.waiting: list[Waiting] = []
        self.counts = Counts()
        self.clients: dict[Hashable, LocalClient] = {}
        """who registered, as it would anywhere else"""
        self.wishes: dict[Hashable, dict[Hashable, Subscription | Composite]] = {}
        """what each client subscribed to, as its owner holds it"""
        self.found: dict[tuple[Hashable, Subscription], dict[str, tuple[Hashable, ...]]] = {}
        """whom each consumer found by look-up for a question, at each broker"""
        self._owners: dict[Hashable, dict[Hashable, Subscription]] = {}
        self._moved: dict[Hashable, set[Any]] = {}
        self._parting: set[tuple[Hashable, str]] = set()
        """who has still to be said goodbye for, and where"""
        self._last: dict[tuple[Hashable, Hashable], float] = {}
        self._epoch: Counter[Any] = Counter()
        self._travelling = self._said = 0
        self._running = False

    # -- time ------------------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The present instant."""
        return self.env.now

    def advance(self, now: float) -> None:
        """Let time pass, up to and including an instant; clients that were told to resend do so."""
        self._run(lambda: self.env.peek() <= now)
        if self.env.now < now:
            self.env.run(until=now)

    def settle(self) -> float:
        """Let time pass until no message is on its way; what waits goes on waiting. The instant when that is so."""
        self._run(lambda: self._travelling > 0 or self.env.peek() <= self.env.now)
        return self.now

    def _run(self, more: Callable[[], bool]) -> None:
        if self._running:  # what somebody does because of an event has its turn after it
            return
        self._running = True
        try:
            while more():
                self.env.step()
        finally:
            self._running = False

    def _instant(self) -> None:
        """What follows without delay has followed."""
        self._run(lambda: self.env.peek() <= self.env.now)

    def _later(self, delay: float, do: Callable[[], None]) -> None:
        self.env.timeout(delay).callbacks.append(lambda _: do())

    # -- the asynchronous way --------------------------------------------------------------------------------

    def register(self, client: Hashable, at: str, credentials: str = "") -> None:
        """A client says who it is; it joins by what it does first without that, where nobody asks for credentials."""
        self._register(LocalClient(client, "", frozenset(), credentials), at)
        self._instant()

    def provide(
        self,
        provider: Provider,
        at: str,
        sensor: Callable[[], Reading] | None = None,
        credentials: str = "",
    ) -> None:
        """A provider registers its endpoint and capabilities with a broker; invoked, it reads its ``sensor``."""
        self._check(provider.name, at)
        self.providers[provider.name] = provider
        self.invoked[provider.name] = 0
        if sensor is not None:
            self.sensors[provider.name] = sensor
        self._register(LocalClient(provider.name, "", provider.capabilities, credentials), at)
        if provider.combines:
            self.subscribe(provider.name, at, *provider.combines)
        self._instant()

    def _register(self, client: LocalClient, at: str) -> None:
        self.clients[client.name] = client
        self._do(client.name, at, Register(replace(client, endpoint=f"{at}/{client.name}")))

    def subscribe(self, consumer: Hashable, at: str, *subscriptions: Subscription | Composite) -> None:
        """A consumer subscribes with its broker; it need not know who provides."""
        self._check(consumer, at)
        for s in subscriptions:
            for part in _parts(s):
                self._check_name(consumer, part)
        self._forget_wishes(consumer, [s.name for s in subscriptions])
        for s in subscriptions:
            self.wishes.setdefault(consumer, {})[s.name] = s
            for part in _parts(s):
                self._owners.setdefault(part.name, {})[consumer] = part
        self._say(consumer, at, subscriptions)
        self._instant()

    def _say(self, client: Hashable, at: str, wishes: Iterable[Subscription | Composite]) -> None:
        """Each time as a newer version: in a cycle the latest that a client said counts, wherever it said it."""
        self._said += 1
        newer = (replace(w, version=(self._said, 0)) if isinstance(w, Subscription) else w for w in wishes)
        self._do(client, at, Sub(tuple(newer)))

    def unsubscribe(self, consumer: Hashable, *names: Hashable) -> None:
        """A consumer takes subscriptions back."""
        self._forget_wishes(consumer, names)
        self._do(consumer, self._home(consumer), Unsub(names))
        self._instant()

    def leave(self, client: Hashable) -> None:
        """A client leaves: nothing of it stays, and what still waited for it is lost."""
        self._do(client, self._home(client), Leave())
        for envelope in self.away.pop(client, []):
            self._lose(str(envelope.source), "left", envelope)
        self._forget(client)
        self._instant()

    def attach(self, client: Hashable, broker: str) -> None:
        """A client goes on at another broker, with what it can produce and subscribed to.

        A client has one broker (IV.A). It says goodbye to the old one through the new one, behind its subscriptions, so
        that there is no gap; what comes by both meanwhile it hears once. What was seen of the parts of an event at
        the old broker stays there.
        """
        self._check_broker(broker)
        old = self._home(client)
        if broker == old:
            return
        del self.home[client]
        self._moved.setdefault(client, set())
        self._register(self.clients.get(client, LocalClient(client)), broker)
        if self.wishes.get(client):
            self._say(client, broker, self.wishes[client].values())
        self._parting.add((client, old))
        self.env.process(self._goodbye(client, broker, old, [client]))
        self._instant()

    def _goodbye(self, client: Hashable, via: str, old: str, come: Sequence[Hashable] = ()) -> Steps:
        """Leave what was a client's home, by way of its new one, which says it again until it is heard."""
        said = Leave()
        try:
            yield from self._walk([*come, *self._between(via, old)], said)
        except CutError as cut:
            if cut.lost:
                yield from self._goodbye(client, via, old)
            else:
                self.waiting.append(Waiting(self.now, math.inf, via, client, Envelope(via, old, said)))
            return
        spoke = self._last.get((client, old), 0.0)
        yield self.env.timeout(max(0.0, spoke - self.now))  # behind what it last said there itself
        if (client, old) not in self._parting:
            return  # it came back, and said so itself
        self._parting.discard((client, old))
        handed = self.brokers[old].clients.get(client)
        self.brokers[old], out = step(self.brokers[old], client, said)
        self._send(out)
        if handed is not None and handed.capabilities and client in self.home:
            here = {s.name for s, d in self.brokers[self.home[client]].table if d != client}
            there = self.providers[client]
            self.providers[client] = there.handed((), [n for n in there.wanted if n not in here])

    def reading(self, provider: Hashable, reading: Reading) -> None:
        """A sensor reading at a provider: it infers context, and publishes it if somebody wants it."""
        if provider not in self.providers:
            known = map(str, self.providers)
            raise UpdateError(f"there is no provider {provider!r}; {did_you_mean(str(provider), known)}")
        self.numbers[provider] = self.numbers.get(provider, 0) + 1
        made = self.providers[provider].published(reading, self.numbers[provider])
        if made is not None:
            self._do(provider, self._home(provider), Pub(replace(made, published=self.now)))
        self._instant()

    def readings(self, provider: Hashable, given: Iterable[tuple[float, Reading]]) -> None:
        """Readings at a provider, each at its time, whatever else goes on then."""
        for t, reading in given:
            if t < self.now:
                raise UpdateError(f"a reading of {provider!r} at {t}; it is {self.now} already")
            self._later(t - self.now, partial(self.reading, provider, reading))

    def disconnect(self, consumer: Hashable) -> None:
        """A consumer is away; its broker keeps what it is to be told, as its policy says."""
        self._home(consumer)
        self.away.setdefault(consumer, [])

    def reconnect(self, consumer: Hashable) -> None:
        """A consumer is back, and is told what was kept and is not too old."""
        for envelope in self.away.pop(consumer, []):
            if self.now - envelope.message.item.published > self._policy(envelope.source).age:
                self._lose(str(envelope.source), "too old", envelope)
            else:
                self._send([envelope])
        self._instant()

    def _keep(self, envelope: Envelope) -> None:
        """What a consumer that is away is to be told: at most so much; how old it may become shows when it is back."""
        policy, kept = self._policy(envelope.source), self.away[envelope.destination]
        if policy.kind == "drop":
            self._lose(str(envelope.source), "dropped", envelope)
            return
        if len(kept) >= policy.length:
            self._lose(str(envelope.source), "queue full", kept.pop(0))
        kept.append(envelope)

    def _policy(self, broker: Any) -> Policy:
        return self.policies.get(broker) or Policy()

    # -- the synchronous way ---------------------------------------------------------------------------------

    def query(
        self, consumer: Hashable, subscription: Subscription, fresh_for: float = 0.0, at: str | None = None
    ) -> Any:
        """Ask for the present value; time passes until the answer is there. A notification, None, or why there is none.

        First what its broker knows, if that is not older than ``fresh_for``: it may not be so any longer. Then the
        providers that the consumer knows of, which it finds by each broker's look-up service, nearest first. What only
        brokers beyond a cut link may know, the policy decides: `Unavailable`. `Refused`: its broker does not know it.
        ``at``: the broker of somebody who did nothing before.
        """
        if self._running:
            raise UpdateError(f"{consumer!r} asks while time passes already; a question blocks who asks it")
        if at is not None or consumer not in self.home:
            self._check(consumer, at or min(self.brokers))
            self.home[consumer] = at or min(self.brokers)
        began = self.now
        asking = self.env.process(self._asking(consumer, subscription, fresh_for, began))
        self._run(lambda: not asking.processed)
        self.blocked[consumer] += self.now - began  # type: ignore[assignment]
        return asking.value

    def _asking(self, consumer: Hashable, asked: Subscription, fresh_for: float, since: float) -> Steps:
        home = self.home[consumer]
        try:
            if fresh_for > 0:
                cached = yield from self._ask(consumer, home, Query(asked, "value", self.now, fresh_for))
                if isinstance(cached, Refused):
                    return cached
                if cached.found:
                    return cached.found[-1]
            near = self._near(home)
            known = self.found.setdefault((consumer, asked), {})
            remembered = set(known)
            for broker in near:
                if broker not in known:
                    answer = yield from self._ask(consumer, broker, Query(asked))
                    if isinstance(answer, Refused):
                        return answer
                    known[broker] = tuple(name for name, _ in answer.found)
                for name in known[broker]:
                    if self.home.get(name) != broker:  # gone, or elsewhere: who is it now?
                        yield from self._nobody(consumer, broker, asked)
                        if broker not in remembered:
                            continue  # its goodbye is still on its way to the broker
                        self.found.pop((consumer, asked), None)
                        return (yield from self._asking(consumer, asked, 0.0, since))
                    found = yield from self._invoke(consumer, broker, name, asked)
                    if found is not None:
                        return found
            if not any(known.values()):
                self.found.pop((consumer, asked), None)  # nobody yet
            if len(near) == len(self.brokers):
                return None
        except CutError as cut:
            if cut.lost:  # who asked hears nothing, and asks again
                return (yield from self._asking(consumer, asked, fresh_for, since))
        unavailable = self._held_up(home, consumer, Query(asked), since)
        if unavailable is not None:
            yield self.env.timeout(self.delay(home, consumer))
        return unavailable

    def _near(self, home: str) -> list[str]:
        """The brokers that can be reached, nearest first."""
        reached = nx.single_source_shortest_path_length(self._whole(), home)
        return sorted(reached, key=lambda b: (reached[b], b))

    def _ask(self, consumer: Hashable, broker: str, query: Query) -> Steps:
        """A question to a broker: its clients' for itself, the others' through its neighbour on the way."""
        way = self._way(consumer, broker)
        yield from self._walk(way, query)
        _, out = step(self.brokers[broker], way[-2], query)
        (answer,) = [e.message for e in out if isinstance(e.message, Answer | Refused)]
        yield from self._walk(way[::-1], answer)
        return answer

    def _nobody(self, consumer: Hashable, broker: str, asked: Subscription) -> Steps:
        """A question to somebody who is not there any longer."""
        way = self._way(consumer, broker)
        yield from self._walk(way, Query(asked))
        yield from self._walk(way[::-1], Answer(asked.name))

    def _invoke(self, consumer: Hashable, broker: str, name: Hashable, asked: Subscription) -> Steps:
        """A provider reads and infers because it is asked to."""
        way = [*self._way(consumer, broker), name]
        yield from self._walk(way, Query(asked))
        reading = self.sensors[name]() if name in self.sensors else self._combined(name)
        found = None
        if reading is not None:
            self.invoked[name] += 1
            context = self.providers[name].infer(reading)
            found = None if context is None else Notification(context, name, 0, self.now)
        yield from self._walk(way[::-1], Answer(asked.name, () if found is None else (found,)))
        return found if found is not None and asked.accepts(found) else None

    # -- links -----------------------------------------------------------------------------------------------

    def cut(self, a: str, b: str) -> None:
        """A link is cut: a device out of reach, or a failure between two brokers."""
        if link(a, b) not in self.overlay.links:
            raise UpdateError(f"there is no link between {a!r} and {b!r}")
        self.down.add(link(a, b))
        self._epoch[link(a, b)] += 1
        for one, other in ((a, b), (b, a)):
            self.brokers[one], out = cut(self.brokers[one], other)
            self._send(out)
        self._instant()

    def mend(self, a: str, b: str) -> None:
        """A link is there again: its ends tell each other everything, then what waited goes through."""
        if link(a, b) not in self.overlay.links:
            raise UpdateError(f"there is no link between {a!r} and {b!r}")
        self.down.discard(link(a, b))
        for one, other in ((a, b), (b, a)):
            self.brokers[one], out = linked(self.brokers[one], other)
            self._send(out)
        self._instant()
        self._again([w for w in self.waiting if math.isinf(w.due)])
        self._instant()

    def relink(self, broker: str, old: str, new: str) -> None:
        """A broker moves to another parent: a mobile one while its user travels."""
        self._check_broker(broker)
        self._check_broker(new)
        if link(broker, old) not in self.overlay.links:
            raise UpdateError(f"there is no link between {broker!r} and {old!r}")
        if link(broker, new) in self.overlay.links:
            raise UpdateError(f"{broker!r} and {new!r} are linked already")
        self.overlay = self.overlay.without_link(broker, old).with_link(broker, new)
        self.down.discard(link(broker, old))
        self._epoch[link(broker, old)] += 1
        for one, other in ((old, broker), (broker, old)):
            self.brokers[one], out = forgotten(self.brokers[one], other)
            self._send(out)
        self._instant()
        self.waiting = [_redirected(w, broker, old, new) for w in self.waiting]
        self.mend(broker, new)

    # -- what waits ------------------------------------------------------------------------------------------

    def _again(self, tried: list[Waiting]) -> None:
        self.waiting = [w for w in self.waiting if w not in tried]
        for w in tried:
            if isinstance(w.what, Envelope) and isinstance(w.what.message, Leave):
                if (w.client, w.what.destination) in self._parting:
                    self.env.process(self._goodbye(w.client, w.broker, str(w.what.destination)))
            elif math.isinf(w.due) and self.now - w.since > self._policy(w.broker).age:
                self._lose(w.broker, "too old", w.what)
            else:
                self.env.process(self._tried(w))

    def _tried(self, w: Waiting) -> Steps:
        """What waited at a broker goes on; a client that was told to resend does so."""
        if isinstance(w.what, Query):
            if w.client in self.home:
                found = yield from self._asking(w.client, w.what.subscription, 0.0, w.since)  # type: ignore[arg-type]
                if isinstance(found, Notification):
                    self.inbox.setdefault(w.client, []).append(found)
            return
        try:
            if not math.isinf(w.due) and w.client in self.home:
                yield from self._walk(self._way(w.client, w.broker), Pub(w.what.message.item))
            *passed, last = self._between(w.broker, str(w.what.destination))
            yield from self._walk(passed, w.what.message)  # more than one where a broker has moved meanwhile
        except CutError as cut:
            if not cut.lost:
                self._held_up(w.broker, w.client, w.what, w.since)
            return
        self._send([replace(w.what, source=passed[-1], destination=last)])

    def _held_up(self, broker: str, client: Hashable, what: Envelope | Query, since: float) -> Unavailable | None:
        """The way is cut: the broker's policy decides."""
        policy = self._policy(broker)
        if policy.kind == "drop":
            self._lose(broker, "dropped", what)
            return None
        if policy.kind == "resend":
            answer = Unavailable(policy.resend_after, what.message if isinstance(what, Envelope) else what)
            self.env.process(self._told_to_resend(Waiting(since, 0.0, broker, client, what), answer))
            return answer
        mine = [w for w in self.waiting if w.broker == broker and math.isinf(w.due) and not _is_goodbye(w)]
        if len(mine) >= policy.length:
            self.waiting.remove(mine[0])
            self._lose(broker, "queue full", mine[0].what)
        self.waiting.append(Waiting(since, math.inf, broker, client, what))
        return None

    def _told_to_resend(self, w: Waiting, answer: Unavailable) -> Steps:
        """The client hears *unavailable*, and tries again after the time it says."""
        try:
            yield from self._walk(self._way(w.client, w.broker)[::-1], answer)
        except CutError:
            self._lose(w.broker, "dropped", w.what)  # nobody there to resend it
            return
        self.waiting.append(replace(w, due=self.now + answer.resend_after))
        self._later(answer.resend_after, lambda: self._again([w for w in self.waiting if w.due <= self.now]))

    def _lose(self, broker: str, why: str, what: Envelope | Query) -> None:
        lost = what if isinstance(what, Envelope) else Envelope(broker, broker, what)
        self.counts.lost(self.now, broker, why, lost)

    # -- the network -----------------------------------------------------------------------------------------

    def _check_broker(self, broker: str) -> None:
        if broker not in self.brokers:
            raise UpdateError(f"there is no broker {broker!r}; {did_you_mean(broker, self.brokers)}")

    def _check(self, client: Hashable, at: str) -> None:
        """L_B are mutually exclusive (IV.A): a client has one broker at a time."""
        self._check_broker(at)
        home = self.home.get(client, at)
        if home != at:
            raise UpdateError(f"{client!r} is at broker {home!r}; to have it go on at {at!r}, attach it there")

    def _home(self, client: Hashable) -> str:
        if client not in self.home:
            raise UpdateError(f"there is no client {client!r}; {did_you_mean(str(client), map(str, self.home))}")
        return self.home[client]

    def _check_name(self, consumer: Hashable, s: Subscription) -> None:
        """Brokers know a subscription by its name: it has one meaning, and, where there are several, one way."""
        for client, meant in self._owners.get(s.name, {}).items():
            if client != consumer and (self.overlay.cyclic or meant != s):
                raise UpdateError(f"{s.name!r} is a subscription of {client!r} already; give it a name of its own")

    def _forget_wishes(self, client: Hashable, names: Iterable[Hashable]) -> None:
        for name in names:
            gone = self.wishes.get(client, {}).pop(name, None)
            for part in _parts(gone) if gone is not None else ():
                self._owners[part.name].pop(client, None)
                if not self._owners[part.name]:
                    del self._owners[part.name]

    def _forget(self, client: Hashable) -> None:
        self._forget_wishes(client, list(self.wishes.get(client, ())))
        for kept in (self.wishes, self.home, self.clients, self._moved):
            kept.pop(client, None)  # type: ignore[attr-defined]
        self.found = {who: what for who, what in self.found.items() if who[0] != client}
        if client in self.providers:
            self.providers[client] = replace(self.providers[client], wanted={})

    def _do(self, client: Hashable, at: str, message: Any) -> None:
        self._check(client, at)
        self.home[client] = at
        if (client, at) in self._parting:  # it is back before it was gone, and begins anew
            self._parting.discard((client, at))
            self._send([Envelope(client, at, Leave())])
        self._send([Envelope(client, at, message)])

    def _send(self, out: Out) -> None:
        for envelope in out:
            source, destination, message = envelope.source, envelope.destination, envelope.message
            if self._is_down(source, destination):
                if isinstance(message, Forward) and isinstance(message.item, Notification):
                    self._held_up(str(source), message.item.origin, envelope, message.item.published)
                else:  # tables are told again when the link is
                    self._break(envelope, "link down")
            elif destination in self.away and isinstance(message, Notify):
                self._keep(envelope)
            else:
                self._carry(envelope, partial(self._arrive, envelope), partial(self._break, envelope, "link broke"))

    def _carry(self, envelope: Envelope, there: Callable[[], Any], broken: Callable[[], Any]) -> None:
        """One message over one link; on a link nothing overtakes what was sent before."""
        a, b = envelope.source, envelope.destination
        self._sent(envelope)
        at = self._last[(a, b)] = max(self.now + self.delay(a, b), self._last.get((a, b), 0.0))
        way, self._travelling = _way(a, b), self._travelling + 1
        epoch = self._epoch[way]

        def arrived() -> None:
            self._travelling -= 1
            there() if epoch == self._epoch[way] else broken()

        self._later(at - self.now, arrived)

    def _walk(self, way: Sequence[Hashable], message: Any) -> Steps:
        """A message that others pass on, from one to the next; `CutError` where it comes to a cut."""
        for a, b in pairwise(way):
            if self._is_down(a, b):
                raise CutError
            envelope, passed = Envelope(a, b, message), self.env.event()
            self._carry(envelope, partial(passed.succeed, True), partial(passed.succeed, False))
            if not (yield passed):
                self._break(envelope, "link broke")
                raise CutError(lost=True)

    def _break(self, envelope: Envelope, why: str) -> None:
        self.counts.lost(self.now, "-".join(map(str, _way(envelope.source, envelope.destination))), why, envelope)

    def _is_down(self, a: Hashable, b: Hashable) -> bool:
        return bool(self.down) and _way(a, b) in self.down

    def _whole(self) -> nx.Graph:
        """The overlay as far as it is whole."""
        return nx.restricted_view(self.overlay.graph, [], self.down)

    def _between(self, broker: str, other: str) -> list[str]:
        """From a broker to another one: around what is cut, or else up to it."""
        for graph in (self._whole(), self.overlay.graph):
            if nx.has_path(graph, broker, other):
                return nx.shortest_path(graph, broker, other)
        raise CutError

    def _way(self, client: Hashable, broker: str) -> list[Hashable]:
        """From a client to a broker, by its home; there is none for who has left."""
        if client not in self.home:
            raise CutError
        return [client, *self._between(self.home[client], broker)]

    def _arrive(self, envelope: Envelope) -> None:
        if envelope.destination in self.brokers:
            name = str(envelope.destination)
            self.brokers[name], out = step(self.brokers[name], envelope.source, envelope.message)
            self._send(out)
        elif envelope.destination in self.away and isinstance(envelope.message, Notify):
            self._keep(envelope)  # it left while that was on its way
        else:
            self._told(envelope)

    def _sent(self, envelope: Envelope) -> None:
        a, b = envelope.source, envelope.destination
        over_air = a in self.wireless or b in self.wireless or (a, b) in self.wireless or (b, a) in self.wireless
        self.counts.sent(envelope, wireless=over_air)

    def _told(self, envelope: Envelope) -> None:
        client, message = envelope.destination, envelope.message
        if isinstance(message, Refused):
            home = self.home.get(client)
            if home is not None and client not in self.brokers[home].clients:
                self._forget(client)  # it may try elsewhere
        elif client not in self.home:
            if isinstance(message, Notify):
                self._lose(str(envelope.source), "left", envelope)
        elif isinstance(message, Sub | Unsub) and client in self.providers:
            if envelope.source == self.home[client]:  # what its old broker hands out or takes back is over
                new, gone = (message.subscriptions, ()) if isinstance(message, Sub) else ((), message.names)
                self.providers[client] = self.providers[client].handed(new, gone)
        elif isinstance(message, Notify):
            self._heard(client, envelope)

    def _heard(self, client: Hashable, envelope: Envelope) -> None:
        item = envelope.message.item
        if client in self._moved:
            if item in self._moved[client] or (envelope.source != self.home[client] and not self._wants(client, item)):
                return  # told by its old broker: already, or of what it took back since
            self._moved[client].add(item)
        self.counts.delivered(self.now, envelope, item.published, size(Forward(item)))
        self.inbox.setdefault(client, []).append(item)
        if client in self.providers and (reading := self._combined(client)) is not None:
            self.reading(client, reading)

    def _wants(self, client: Hashable, item: Notification) -> bool:
        wishes = self.wishes.get(client, {})
        return item.origin in wishes or any(isinstance(w, Subscription) and w.accepts(item) for w in wishes.values())

    def _combined(self, provider: Hashable) -> Reading | None:
        return self.providers[provider].combined(self.inbox.get(provider, ()))


def _parts(wish: Subscription | Composite) -> tuple[Subscription, ...]:
    return wish.subscriptions if isinstance(wish, Composite) else (wish,)


def _way(a: Hashable, b: Hashable) -> Any:
    """What joins two: a link of the overlay, or a client and a broker."""
    return link(a, b) if isinstance(a, str) and isinstance(b, str) else (a, b)


def _is_goodbye(w: Waiting) -> bool:
    return isinstance(w.what, Envelope) and isinstance(w.what.message, Leave)


def _redirected(w: Waiting, broker: str, old: str, new: str) -> Waiting:
    """What waits for a broker's old parent waits for its new one."""
    if isinstance(w.what, Envelope) and (w.what.source, w.what.destination) == (broker, old):
        return replace(w, what=replace(w.what, destination=new))
    return w
