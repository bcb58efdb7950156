"""A federation in simulated time (SimPy): links that delay, fail and congest, clients that come, move and go.

A *device* is a client as its owner holds it: it numbers its reports, knows its own state, and believes what it was
told.
Brokers are the values of `state`, moved on by `brokers.step`.

An instant of the model is a tick of simulated time. All that arrives within a tick is taken in, then each home decides
M once: so without delays an instant is evaluated exactly as by a single broker. Links keep order: a message does not
overtake another one on the same link, however long each is delayed.

What is promised:

1. Without failures and without delays (updates are evaluated in the order of their source's time), each consumer's
   history equals a single broker's.
2. With any delays: no pair is told twice without the opposite in between, reports of one client are taken in their
   order, and when all is quiet M is a single broker's.
3. With failures: a consumer gets a subsequence of a single broker's history and what resynchronises it; after repair M
   is a single broker's. Every loss is counted, with the link or broker where it happened: each message, and each pair
   that a home could not decide because of a break (`counting`). So whatever a consumer misses has a row there since the
   failure; but for what time alone, or somebody else, would have brought about at a broker that is dead, where nobody
   is left to miss it. What resynchronises is one of these, and nothing else:

   a. what a single broker told of a pair at an earlier instant and was not told here then. It is told in that order,
      and leaves the pair as the single broker has it now: when something is repaired, or a home can decide again;
   b. the same when a client that was out of reach leaves: to say so it is in contact once more, and the ends that its
      publications had come to while nobody heard of it are told then. Only ends, and only its own;
   c. a broker that is dead for good takes the clients that are nowhere along: when the overlay closes over it, their
      publications end as if removed, also for filters that look at them as third parties. When such a client attaches
      elsewhere, the next that is told makes the pair as the single broker has it.

   Some of what failed may be repaired while the rest goes on failing. Promised is that of one dead broker at a time,
   over which the overlay closes when broken links are repaired. Of several dead at once it is not: rarely, M differs
   after the repair until those concerned report again.

   A client keeps its own reports where filters look back, so that no broker takes its past along. With delays too,
   what is told comes late, and promise 2 is what remains of the order.
4. When all is quiet, no broker holds anything of a client that left, in its routing table or elsewhere. But for two
   things that have to be kept: in a cyclic overlay the version of its subscriptions, by which a duplicate that comes
   late the long way round is known; and where filters look back, the past of what was published, which they still see
   as third parties. Profiles are rows of the scenario's, and stay.
5. With congestion: a broker that lets notifications ``wait`` is one with a delay, and promise 2 holds. Where it drops
   them, each is counted there as a loss; no pair is told twice without the opposite in between, none because homes or
   brokers move, and when all is quiet M is a single broker's.

Homes and brokers may move: that a client attaches elsewhere, and that brokers join, retire in good order or go to
another parent, is no failure, and none of it is told to anybody; with delays too, if brokers have the `patience` for
it. In a cyclic overlay the same is promised, but for a broker that goes while there are delays: what comes late by the
new way may be told as an end and a new beginning; and a break that leaves a way interrupts nothing but who looks at
third parties. A client that left and comes back is heard like any other; to filters that look back it is a new one:
what it did before may be forgotten, for itself and for those who come after.

Each has its test in ``tests/brokering/test_federation_promises.py``: histories by chance, on trees and overlays with
cycles by chance, with joins, leaves and moves of clients and of brokers, delays and failures, beside a single broker.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd
import simpy
from simpy.events import NORMAL, EventPriority

from workbench.brokering.broker import checked, merged
from workbench.brokering.federation import brokers, homes
from workbench.brokering.federation.brokers import step
from workbench.brokering.federation.counting import Counts
from workbench.brokering.federation.interests import Number, Report, World, back_in_time, thirds
from workbench.brokering.federation.messages import (
    Anew,
    Attach,
    Attached,
    Envelope,
    Forward,
    Leave,
    Notify,
    Pub,
    Resend,
)
from workbench.brokering.federation.overlay import Link, Overlay, check_connected, link
from workbench.brokering.federation.state import Broker, Out, Rules
from workbench.errors import ScenarioError, UpdateError, did_you_mean
from workbench.model.clock import Clock
from workbench.model.filters import Filter
from workbench.model.history import Change, Client, History, Party, State
from workbench.model.pubsub import PUBLICATION, SUBSCRIPTION
from workbench.model.scenario import Scenario
from workbench.tables import NOTIFICATIONS

Delay = Callable[[str, str], float]
LAST = EventPriority(NORMAL + 1)
"""after everything else that happens at the same time"""


def _next(number: Number) -> Number:
    joined, running, _ = number
    return joined, running + 1, 0


@dataclass
class Device:
    """A client as its owner holds it."""

    client: Client
    home: str | None
    number: Number
    """of its latest report"""
    died: str = ""
    """the home that it lost last"""
    state: State | None = None
    ever: frozenset[str] = frozenset()
    staged: Change | None = None
    expiry: dict[str, int] = field(default_factory=dict)
    connected: bool = True
    believed: dict[Party, dict[Party, int]] = field(default_factory=dict)
    attachments: int = 0
    log: list[Report] = field(default_factory=list)
    """all its reports, where filters look back: a broker that dies takes no client's past along"""
    asked: str | None = None
    """the home that was asked for its pairs when it attached last"""
    zombies: set[str] = field(default_factory=set)
    """brokers that could not be told that the client is elsewhere now"""


@dataclass(frozen=True)
class Congestion:
    """How many notifications a broker takes in from its neighbours within a tick, and what becomes of the rest.

    ``drop``: they are lost, and counted at the broker; since our publications tell their state, it asks at the next
    tick what that is then. ``wait``: they are taken in at the next tick, and whatever comes after them waits behind
    them. For what new subscriptions, moves and repairs ask for, and messages that keep the tables right, there is
    always room.
    """

    capacity: int
    policy: str = "drop"

    def __post_init__(self) -> None:
        if self.policy not in ("drop", "wait"):
            raise ScenarioError(f"congestion policy {self.policy!r}; {did_you_mean(self.policy, ('drop', 'wait'))}")
        if self.capacity < 1:
            raise ScenarioError(f"capacity {self.capacity}; a broker takes in at least one message a tick")


class Federation:
    """Brokers for the populations of a scenario, as one service.

    ``patience``: how long a broker waits for what is on its way, in ticks, before it takes it for gone: what came by a
    neighbour that moved away, and what a client whose old home is lost should find at its new one. It should be the
    longest way through the overlay and back; with less, what comes later is told as an end and a new beginning. Where
    every link has the same delay, that is what it is unless it is given; where delays differ, it is 0.

    >>> from workbench.brokering.federation.overlay import chain
    >>> from workbench.scenarios.proximity import scenario
    >>> federation = Federation(scenario(radius_m=500), chain(3))
    >>> federation.add("places", "cafe", at="B3", t=1, position=(0, 0))
    >>> federation.add("mobiles", 7, at="B1", t=2, position=(400, 0))
    >>> federation.move(7, (501, 0), t=3)
    >>> federation.attach(7, "B2", t=4)
    >>> federation.advance(4)
    >>> federation.notifications
       t     kind publication subscription
    0  2    match        cafe            7
    1  3  unmatch        cafe            7
    """

    def __init__(
        self,
        scenario: Scenario,
        overlay: Overlay,
        *,
        rules: Rules | None = None,
        delay: float | Delay = 0,
        patience: float | None = None,
        congestion: Congestion | None = None,
        clock: Clock | None = None,
        metric: str | None = None,
        looks_back: bool = False,
    ) -> None:
        check_connected(overlay)
        self.world = World.of(scenario, clock, metric, looks_back)
        self.overlay = overlay
        if rules is not None and rules.accounts is not None:
            raise ScenarioError("accounts are asked for by an Exchange, where clients register; a Federation has none")
        self.rules = replace(rules or Rules(), cyclic=overlay.cyclic)
        self.delay: Delay = delay if callable(delay) else (lambda a, b: delay)
        there_and_back = 0.0 if callable(delay) else 2.0 * delay * len(overlay.graph)
        self.patience = there_and_back if patience is None else patience
        self.congestion = congestion
        self.env = simpy.Environment()
        self.brokers = {b: self._broker(b) for b in overlay.brokers}
        self.devices: dict[Client, Device] = {}
        self.profiles: dict[Client, State] = {}
        """rows of profiles; each is on the devices of its id, and goes out with what they report"""
        self._profiled: dict[Client, Change] = {}
        self.counts = Counts()
        self.down: set[Link] = set()
        self.repairs: list[int] = []
        self._open: int | None = None
        self._closed: int | None = None
        self._last: dict[tuple[Hashable, Hashable], float] = {}
        self._epoch: Counter[Link] = Counter()
        self._moves = 0
        self._taken: dict[str, tuple[int, int]] = {}
        """the tick at which each broker took in notifications last, and how many"""
        self._lines: dict[str, deque[tuple[Envelope, Callable[[], None]]]] = {}
        """what waits at each broker, in the order in which it came"""
        self._log: list[tuple[Any, str, Any, Any]] = []

    def _broker(self, name: str) -> Broker:
        return Broker(name, frozenset(self.overlay.neighbours(name)), self.rules, self.world)

    # -- operations of clients -------------------------------------------------------------------------------

    def add(
        self,
        population: str,
        id: Any,
        *,
        at: str | None = None,
        t: Any = None,
        filter: Filter | None = None,
        **cells: Any,
    ) -> None:
        """Add the publication or subscription of a client; its first operation joins it to a broker (VIII)."""
        found = self.world.scenario.population(population)
        change = self._change(Client(found.table, id), cells, (population,), self._filters(population, filter))
        self.change(change, at=at, t=t)

    def update(self, population: str, id: Any, *, t: Any = None, filter: Filter | None = None, **cells: Any) -> None:
        """Change cells of a client's row, or the filter of one of its publications or subscriptions."""
        found = self.world.scenario.population(population)
        self.change(self._change(Client(found.table, id), cells, (), self._filters(population, filter)), t=t)

    def remove(self, population: str, id: Any, *, t: Any = None) -> None:
        """Remove a publication or a subscription."""
        found = self.world.scenario.population(population)
        self.change(Change(Client(found.table, id), end=(population,)), t=t)

    def move(self, client: Any, position: Any = None, *, t: Any = None, **cells: Any) -> None:
        """Move a client, once for all its publications and subscriptions; ``client`` is an id, or (table, id)."""
        if position is not None:
            cells = {**cells, "position": position}
        self.change(self._change(self.device(client).client, cells), t=t)

    def profile(self, table: str, id: Any, *, t: Any = None, **cells: Any) -> None:
        """Change the row of a table of profiles, on its owner's device."""
        known = {p.profiles for p in self.world.scenario.populations if p.profiles}
        if table not in known:
            raise UpdateError(f"no population joins profiles {table!r}; {did_you_mean(table, known)}")
        self.change(self._change(Client(table, id), cells), t=t)

    def change(self, change: Change, *, at: str | None = None, t: Any = None) -> None:
        """What an instant brings to a client, at its device; published when the instant is closed."""
        self._instant(t)
        if any(change.client.table == p.profiles for p in self.world.scenario.populations):
            self._profiled[change.client] = merged(self._profiled.get(change.client), change, {})
            if t is None:
                self._close_until(self._open or 0)
            return
        device = self.devices.get(change.client)
        if device is None:
            if at is None:
                raise UpdateError(f"{change.client} is nowhere yet; say at which broker with at=")
            self._check_broker(at)
            device = self.devices[change.client] = Device(change.client, at, (self._now, 0, 0))
        there = device.state.instances if device.state is not None else {}
        device.staged = merged(device.staged, change, there)
        if t is None:
            self._close_until(self._open or 0)

    def leave(self, client: Any, *, t: Any = None) -> None:
        """The client leaves the system (VIII): its publications and subscriptions end, and nothing of it is kept.

        But for what promise 4 says.
        """
        device = self.device(client)
        self._instant(t)
        instances = tuple(device.state.instances) if device.state is not None else ()
        if instances:
            self.change(Change(device.client, end=instances), t=t)
        self._close_until(self._open or 0)
        del self.devices[device.client]
        for broker in [b for b in [device.home, *device.zombies] if b in self.brokers]:
            self._enter(Envelope(device.client, broker, Leave()))
        self._close_again()

    def attach(self, client: Any, broker: str, *, t: Any = None) -> None:
        """The client goes on at another broker; its pairs come along, or are resynchronised where they are lost."""
        self._check_broker(broker)
        device = self.device(client)
        self._instant(t)
        self._do_attach(device, broker)
        if t is None:
            self._close_until(self._open or 0)

    def _do_attach(self, device: Device, broker: str) -> None:
        previous = device.home
        if previous == broker and device.connected:
            return
        reachable = previous is not None and previous in self.brokers and self._reachable(broker, previous)
        whole = reachable and device.connected and device.client not in self.brokers[previous].arriving  # type: ignore[index]
        device.home = broker
        device.connected = True
        if not whole:
            device.zombies |= {b for b in (previous, device.asked) if b is not None and b != broker}
        device.asked = previous if whole else None
        # Its state goes first: what it accepts is asked for on the way to its old home, and arrives before its pairs.
        self._publish(device, self._now)
        self._say_hello(device, previous if whole else None)

    def _say_hello(self, device: Device, previous: str | None) -> None:
        """Attach, with what the device believes of each of its subscriptions."""
        there = device.state.instances if device.state is not None else {}
        names = [Party(name, device.client) for name in there]
        believed = {
            s: dict(device.believed.get(s, {}))
            for s in names
            if self.world.scenario.population(s.population).role == SUBSCRIPTION
        }
        past = tuple(device.log) if previous is None else ()
        hello = Attach(device.client, previous, believed, device.number, past)
        self._enter(Envelope(device.client, device.home, hello))
        if previous is None:
            self._settle_later(device)

    def _settle_later(self, device: Device) -> None:
        device.attachments += 1
        mine = device.attachments
        self._later(self.patience, lambda: self._settle(device) if device.attachments == mine else None)

    def _settle(self, device: Device) -> None:
        if device.home in self.brokers:
            self.brokers[device.home] = brokers.settled(self.brokers[device.home], device.client)
            for zombie in list(device.zombies):
                if zombie not in self.brokers or zombie == device.home:
                    device.zombies.discard(zombie)
                elif self._reachable(device.home, zombie):
                    device.zombies.discard(zombie)
                    told = Attached(device.client, device.number)
                    self._send(Envelope(device.home, zombie, told, to=zombie))

    def disconnect(self, client: Any, *, t: Any = None) -> None:
        """The client cannot be reached until it attaches again: what is sent to it meanwhile is lost."""
        device = self.device(client)
        self._instant(t)
        device.connected = False
        if device.home in self.brokers:
            self.brokers[device.home], out = brokers.out_of_reach(self.brokers[device.home], device.client)
            self._send_all(out)

    def advance(self, t: Any) -> None:
        """Let time pass up to and including t."""
        self._close_until(self.world.clock.ticks(t))

    def settle(self) -> int:
        """Let time pass until nothing is on its way; the instant at which that is so."""
        if self._open is not None:
            self._close_until(self._open)
        while self.env.peek() < math.inf:
            self._close_until(math.floor(self.env.peek()))
        return self._closed or 0

    # -- what can be seen ------------------------------------------------------------------------------------

    @property
    def notifications(self) -> pd.DataFrame:
        """Everything that consumers were told, as the table of notifications."""
        return pd.DataFrame(self._log, columns=list(NOTIFICATIONS))

    @property
    def matches(self) -> set[tuple[Party, Party]]:
        """M as the home brokers hold it."""
        return {
            (p, s)  # type: ignore[misc]
            for broker in self.brokers.values()
            for s in homes.local_subscriptions(broker)
            for p in broker.matching.get(s, {})
        }

    @property
    def believed(self) -> set[tuple[Party, Party]]:
        """M as the consumers believe it."""
        return {(p, s) for d in self.devices.values() for s, pairs in d.believed.items() for p in pairs}

    @property
    def false_forwards(self) -> int:
        """Reports that were forwarded to a broker at which nothing matched them."""
        return sum(b.false_forwards for b in self.brokers.values())

    @property
    def suppressed(self) -> int:
        """Messages that came a second time."""
        return sum(b.suppressed for b in self.brokers.values())

    @property
    def table_sizes(self) -> dict[str, int]:
        """|T_B| of each broker."""
        return {name: len(broker.table) for name, broker in self.brokers.items()}

    def device(self, given: Any) -> Device:
        """The device of a client: an id, or (table, id)."""
        if isinstance(given, tuple) and len(given) == 2 and Client(*given) in self.devices:
            return self.devices[Client(*given)]
        found = [d for c, d in self.devices.items() if c.id == given]
        if len(found) > 1:
            tables = ", ".join(d.client.table for d in found)
            raise UpdateError(f"{given!r} is a client in {tables}; say which: (table, id)")
        if not found:
            known = {str(c.id) for c in self.devices}
            raise UpdateError(f"there is no client {given!r}; {did_you_mean(str(given), known)}")
        return found[0]

    # -- brokers and links that come and go ------------------------------------------------------------------

    def fail_link(self, a: str, b: str, *, t: Any = None) -> None:
        """A link breaks: what is on it is lost, and what is sent over it until it is repaired."""
        self._check_link(a, b)
        self._instant(t)
        self.down.add(link(a, b))
        self._epoch[link(a, b)] += 1
        self._cut(a, b)

    def _cut(self, a: str, b: str) -> None:
        """Both ends notice."""
        for one, other in ((a, b), (b, a)):
            if one in self.brokers:
                self.brokers[one], out = brokers.cut(self.brokers[one], other)
                self._send_all(out)

    def repair_link(self, a: str, b: str, *, t: Any = None) -> None:
        """A link is there again: its ends tell each other everything."""
        self._check_link(a, b)
        if link(a, b) not in self.down:
            raise UpdateError(f"the link between {a!r} and {b!r} is not broken")
        self._instant(t)
        self.down.discard(link(a, b))
        self._connect(a, b)
        self._repaired()

    def fail_broker(self, broker: str, *, t: Any = None) -> None:
        """A broker dies, with all it knew; its clients are nowhere until they attach elsewhere."""
        self._check_broker(broker)
        self._instant(t)
        del self.brokers[broker]
        for device in self.devices.values():
            if device.home == broker:
                device.home, device.died, device.connected = None, broker, False
            device.zombies.discard(broker)
        for neighbour in self.overlay.neighbours(broker):
            self._epoch[link(neighbour, broker)] += 1
            self._cut(neighbour, broker)

    def repair_broker(self, broker: str, *, t: Any = None) -> None:
        """The overlay closes over a dead broker: the first of its neighbours takes its place for the others."""
        if broker in self.brokers or broker not in self.overlay.brokers:
            raise UpdateError(f"broker {broker!r} is not dead")
        self._instant(t)
        self._close_over(broker)
        self._repaired()

    def join_broker(self, broker: str, *parents: str, t: Any = None) -> None:
        """A broker joins the overlay."""
        if broker in self.overlay.brokers:
            raise UpdateError(f"there is a broker {broker!r} already")
        if not parents:
            raise UpdateError(f"broker {broker!r} has no parent by which it could join")
        for parent in parents:
            self._check_broker(parent)
        joined = self.overlay.with_broker(broker, *parents)
        self._instant(t)
        self.overlay = joined
        self.brokers[broker] = self._broker(broker)
        for parent in parents:
            self._connect(broker, parent)

    def retire_broker(self, broker: str, *, t: Any = None) -> None:
        """A broker leaves in good order: its clients go to its first neighbour, then the overlay closes over it.

        It waits for what is on its way when it begins, and until its clients are gone: with delays that takes time.
        """
        self._check_broker(broker)
        there = [n for n in self.overlay.neighbours(broker) if self._reachable(broker, n)]
        if not there:
            raise UpdateError(f"broker {broker!r} has no neighbour within reach that could take its clients")
        self._instant(t)
        self.settle()
        for device in [d for d in self.devices.values() if d.home == broker]:
            self._do_attach(device, there[0])
        self._close_again()
        self.settle()
        del self.brokers[broker]
        self._close_over(broker)
        self._close_again()

    def relink(self, broker: str, old: str, new: str, *, t: Any = None) -> None:
        """A broker moves in the overlay: from one parent to another (a mobile broker while its user travels).

        It leaves in good order, and waits for what is on its way: with delays that takes time.
        """
        for name in (broker, old, new):
            self._check_broker(name)
        self._check_link(broker, old)
        moved = self.overlay.without_link(broker, old).with_link(broker, new)
        check_connected(moved)
        self._instant(t)
        self.settle()
        self.overlay = moved
        self.down.discard(link(broker, old))
        self._epoch[link(broker, old)] += 1
        self._forget(old, broker)
        if self.rules.cyclic:  # what led to the old parent need not lead to the new one
            self._forget(broker, old)
        self._connect(broker, new, replaces=(None if self.rules.cyclic else old, None))
        if not self.rules.cyclic:
            self._moves += 1
            self.brokers[broker], out = step(self.brokers[broker], new, Anew(self._moves))
            self._send_all(out)
        self._repaired()
        self._close_again()

    def _close_over(self, broker: str) -> None:
        neighbours = [n for n in self.overlay.neighbours(broker) if n in self.brokers]
        bridges = self.overlay.bridges(broker) if len(neighbours) == len(self.overlay.neighbours(broker)) else []
        if not bridges and len(neighbours) > 1:
            bridges = [link(neighbours[0], n) for n in neighbours[1:]]
        self.down = {x for x in self.down if broker not in x}
        self.overlay = self.overlay.without_broker(broker)
        first = neighbours[0] if neighbours else ""
        replaced = self.rules.cyclic
        if replaced:
            for neighbour in neighbours:
                self._forget(neighbour, broker)
        for bridge in bridges:
            if bridge in self.overlay.links:
                continue
            self.overlay = self.overlay.with_link(*bridge)
            other = bridge[1] if bridge[0] == first else bridge[0]
            gone = None if self.rules.cyclic else broker
            self._connect(first, other, replaces=(None if replaced else gone, gone))
            replaced = True
        for neighbour in neighbours:
            self._forget(neighbour, broker)

    def _forget(self, broker: str, neighbour: str) -> None:
        if broker in self.brokers and neighbour in self.brokers[broker].neighbours:
            self.brokers[broker], out = brokers.forgotten(self.brokers[broker], neighbour)
            self._send_all(out)
            self._give_up_later(broker)

    def _give_up_later(self, broker: str) -> None:
        self._later(self.patience, lambda: self._give_up(broker), last=True)

    def _give_up(self, broker: str) -> None:
        """What came by way of a neighbour that is gone, and has found no other way since."""
        if broker in self.brokers:
            self.brokers[broker], out = brokers.given_up(self.brokers[broker])
            self._send_all(out)

    def _connect(self, a: str, b: str, replaces: tuple[str | None, str | None] = (None, None)) -> None:
        for one, other, old in ((a, b, replaces[0]), (b, a, replaces[1])):
            if one in self.brokers and other in self.brokers:
                self.brokers[one], out = brokers.linked(self.brokers[one], other, old)
                self._send_all(out)
                if old is not None:
                    self._give_up_later(one)

    def _repaired(self) -> None:
        """After a repair, who waited in vain for its pairs, or left something behind, is helped."""
        self.repairs.append(self._now)
        for device in self.devices.values():
            home = device.home
            if home is None or home not in self.brokers:
                continue
            if device.client in self.brokers[home].arriving:
                device.zombies |= {b for b in (device.asked,) if b is not None and b != home}
                self._say_hello(device, None)
            elif device.zombies:
                self._settle(device)

    def _reachable(self, a: str, b: str) -> bool:
        at: str | None = a
        while at is not None and at != b:
            following = self._hop(at, b)
            if following is None or link(at, following) in self.down or following not in self.brokers:
                return False
            at = following
        return at == b

    def _hop(self, at: str, to: str) -> str | None:
        return self.overlay.next_hop(at, to)

    # -- instants ----------------------------------------------------------------------------------------------

    def _instant(self, t: Any) -> None:
        """Open the instant of an operation, closing what lies before."""
        if t is None:
            latest = [i for i in (self._closed, self._open) if i is not None]
            instant = max(latest) + 1 if latest else 1
        else:
            instant = self.world.clock.ticks(t)
            last = self._open if self._open is not None else self._closed
            if last is not None and (instant < last or (self._open is None and instant <= last)):
                raise UpdateError(f"time goes back: {t} is not after {self.world.clock.shown(last)}")
        if self._open != instant:
            self._close_until(instant - 1)
            self._wait_for(instant)
        self._open = instant

    @property
    def _now(self) -> int:
        """The instant that is open, or was closed last."""
        return self._open if self._open is not None else self._closed or 0

    def _close_until(self, until: int) -> None:
        while True:
            pending = [i for i in (self._open, self._next_expiry(), self._next_event()) if i is not None and i <= until]
            following = min(pending, default=None)
            self._pass_time(until if following is None else following - 1)
            if following is None:
                break
            self._tick(following)
        self._closed = until if self._closed is None else max(self._closed, until)

    def _close_again(self) -> None:
        """Take in what was sent after an instant was closed, as part of it."""
        t = self._closed or 0
        self._run(t)
        self._evaluate(t)
        self._run(t)

    def _next_expiry(self) -> int | None:
        return min((t for d in self.devices.values() for t in d.expiry.values()), default=None)

    def _next_event(self) -> int | None:
        following = self.env.peek()
        return None if following == math.inf else math.floor(following)

    def _pass_time(self, until: int) -> None:
        """What time alone brings about, after the latest closed instant and up to ``until``."""
        if not self.world.remembers or self._closed is None:
            return
        closed = self._closed
        found = sorted({t for b in self.brokers.values() for t in homes.instants(b, closed, until)})
        for t in found:
            self._evaluate(t, everywhere=True)
            self._run(t)
            self._closed = t

    def _tick(self, t: int) -> None:
        """One instant: devices publish, the network runs, homes decide."""
        self._wait_for(t)
        if self._open == t:
            self._open = None
            rewritten, self._profiled = self._profiled, {}
            for client, change in rewritten.items():
                before = self.profiles[client].values if client in self.profiles else {}
                self.profiles[client] = State({**before, **change.values}, {})
            for device in list(self.devices.values()):
                joined = [Change(c) for c in self._profiles_of(device) if c in rewritten]
                staged, device.staged = device.staged, None
                if staged is not None or (joined and device.state is not None):
                    self._apply(device, staged or joined[0], t)
        for device in self.devices.values():
            over = tuple(name for name, end in device.expiry.items() if end == t)
            if over:
                self._apply(device, Change(device.client, end=over), t)
        self._run(t)
        self._evaluate(t)
        self._run(t)
        self._closed = t if self._closed is None else max(self._closed, t)

    def _run(self, t: int) -> None:
        """Let the network work until the end of a tick."""
        while self.env.peek() < t + 1:
            self.env.step()

    def _wait_for(self, t: int) -> None:
        if self.env.now < t:
            self.env.run(until=t)

    def _evaluate(self, t: int, everywhere: bool = False) -> None:
        for name, broker in self.brokers.items():
            # Time alone may bring something about here at the instant at which something happens elsewhere.
            if broker.fresh or broker.resyncing or everywhere or homes.instants(broker, t - 1, t):
                self.brokers[name], out = homes.evaluated(broker, t)
                self._send_all(out)
                for subscription, where in self.brokers[name].withheld:
                    self.counts.withheld(self.env.now, where, subscription)

    # -- devices -----------------------------------------------------------------------------------------------

    def _apply(self, device: Device, change: Change, t: int) -> None:
        states = {c: self.profiles[c] for c in self._profiles_of(device) if c in self.profiles}
        if device.state is not None:
            states[device.client] = device.state
        history = History.of(self.world.scenario, {t - 1: states} if states else {})
        history.apply(t, [change])
        device.state = history.at(t)[device.client]
        device.ever = device.ever | frozenset(device.state.instances)
        for name in change.end:
            device.expiry.pop(name, None)
        if change.values or change.begin:
            for name in device.state.instances:
                stay = self.world.scenario.population(name).stay
                if stay is not None:
                    device.expiry[name] = t + stay.in_ticks(self.world.clock.tick)
        for name in change.end:
            if name not in device.state.instances:
                device.believed.pop(Party(name, device.client), None)
        self._publish(device, t)

    def _profiles_of(self, device: Device) -> list[Client]:
        """The rows of profiles that a device's own rows are joined with."""
        joined = {p.profiles: None for p in self.world.scenario.populations if p.table == device.client.table}
        return [Client(table, device.client.id) for table in joined if table]

    def _publish(self, device: Device, t: int) -> None:
        if device.state is None:
            return
        device.number = _next(device.number)
        origin = device.home or ""
        report = Report(device.client, device.number, t, device.state, origin, device.ever)
        if self.world.remembers:
            device.log.append(report)
        envelope = Envelope(device.client, origin, Pub(report))
        if device.home is None or not device.connected:
            where = device.died if device.home is None else f"{device.home}-{device.client}"
            self.counts.lost(self.env.now, where, "not attached", envelope)
            return
        self._enter(envelope)

    def _receive(self, envelope: Envelope) -> None:
        """A consumer is told something."""
        client, message = envelope.destination, envelope.message
        assert isinstance(client, Client)
        device = self.devices.get(client)
        if device is None or not isinstance(message, Notify):
            return
        if device.home != envelope.source or not device.connected:
            where = f"{envelope.source}-{client}"
            self.counts.lost(self.env.now, where, "client not there", envelope)
            return
        told = message.item
        pairs = device.believed.setdefault(message.subscription, {})
        for content, publication in zip(told.contents, message.publications, strict=True):
            if told.kind == "unmatch":
                pairs.pop(publication, None)
            elif not self.world.scenario.population(publication.population).transient:
                pairs[publication] = 0
            self._log.append((told.t, told.kind, content.publication, told.subscription))
        now = max(self.env.now, self.world.clock.ticks(told.t))
        self.counts.delivered(now, envelope, message.caused)

    # -- the network ---------------------------------------------------------------------------------------------

    def _later(self, delay: float, action: Callable[[], None], last: bool = False) -> None:
        event = simpy.Event(self.env)
        event._ok, event._value = True, None
        assert event.callbacks is not None
        event.callbacks.append(lambda _: action())
        self.env.schedule(event, priority=LAST if last else NORMAL, delay=delay)

    def _enter(self, envelope: Envelope) -> None:
        """A client's message reaches its broker: the way between the two is the device's own."""
        self.counts.sent(envelope, wireless=False)
        self._later(0, lambda: self._arrive(envelope))

    def _send_all(self, out: Out) -> None:
        for envelope in out:
            self._send(envelope)

    def _send(self, envelope: Envelope) -> None:
        """A broker sends: to a local client, a neighbour, or over neighbours to a broker farther away."""
        source, destination = str(envelope.source), envelope.destination
        if envelope.to is not None:
            self._pass_on(source, envelope)
            return
        if destination not in self.overlay.graph:
            self.counts.sent(envelope, wireless=False)
            self._receive(envelope)
            return
        self._over(source, str(destination), envelope, lambda: self._arrive(envelope))

    def _pass_on(self, at: str, envelope: Envelope) -> None:
        to = envelope.to
        assert to is not None
        if at == to:
            self._arrive(replace(envelope, destination=to))
            return
        following = self._hop(at, to)
        if following is None:
            self.counts.lost(self.env.now, at, f"no way to {to}", envelope)
            return
        self._over(at, following, envelope, lambda: self._pass_on(following, envelope))

    def _over(self, a: str, b: str, envelope: Envelope, arrives: Callable[[], None]) -> None:
        way = link(a, b)
        self.counts.sent(replace(envelope, source=a, destination=b), wireless=False)
        if way in self.down or way not in self.overlay.links:
            self.counts.lost(self.env.now, f"{way[0]}-{way[1]}", "link down", envelope)
            return
        at = max(self.env.now + self.delay(a, b), self._last.get((a, b), 0.0))
        self._last[(a, b)] = at
        epoch = self._epoch[way]

        def there() -> None:
            if self._epoch[way] != epoch:
                self.counts.lost(self.env.now, f"{way[0]}-{way[1]}", "link broke", envelope)
            elif b not in self.brokers:
                self.counts.lost(self.env.now, b, "broker dead", envelope)
            else:
                self._take_in(b, envelope, arrives)

        self._later(at - self.env.now, there)

    def _arrive(self, envelope: Envelope) -> None:
        name = str(envelope.destination)
        if name not in self.brokers:
            self.counts.lost(self.env.now, name, "broker dead", envelope)
            return
        self.brokers[name], out = step(self.brokers[name], envelope.source, envelope.message)
        self._send_all(out)

    def _take_in(self, broker: str, envelope: Envelope, arrives: Callable[[], None]) -> None:
        """A neighbour's message is there: now, after those that wait, or not at all."""
        message = envelope.message
        if self.congestion is None:
            arrives()
        elif self.congestion.policy == "wait":
            line = self._lines.setdefault(broker, deque())
            line.append((envelope, arrives))
            if len(line) == 1:
                self._next_in_line(broker)
        elif self._has_room(broker, message):
            arrives()
        else:
            self.counts.lost(self.env.now, broker, "congested", envelope)
            ask = Envelope(broker, envelope.source, Resend((message.item,)))
            self._later(self._until_next_tick, lambda: self._ask(ask))

    def _next_in_line(self, broker: str) -> None:
        """Take in what waits, in its order, until a notification has to wait for the next tick."""
        line = self._lines[broker]
        while line and broker in self.brokers:
            envelope, arrives = line[0]
            if not self._has_room(broker, envelope.message):
                self._later(self._until_next_tick, lambda: self._next_in_line(broker))
                return
            arrives()
            line.popleft()
        for envelope, _ in line:
            self.counts.lost(self.env.now, broker, "broker dead", envelope)
        line.clear()

    def _ask(self, ask: Envelope) -> None:
        if ask.source in self.brokers and ask.destination in self.brokers[str(ask.source)].neighbours:
            self._send(ask)

    def _has_room(self, broker: str, message: Any) -> bool:
        """Whether a broker takes a message in at this tick: so many notifications, and all that keeps tables right."""
        assert self.congestion is not None
        if not isinstance(message, Forward) or message.retold:
            return True
        tick, taken = self._taken.get(broker, (0, 0))
        now = math.floor(self.env.now)
        self._taken[broker] = (now, taken + 1 if tick == now else 1)
        return tick != now or taken < self.congestion.capacity

    @property
    def _until_next_tick(self) -> float:
        return math.floor(self.env.now) + 1 - self.env.now

    # -- checks --------------------------------------------------------------------------------------------------

    def _check_broker(self, broker: str) -> None:
        if broker not in self.brokers:
            raise UpdateError(f"there is no broker {broker!r}; {did_you_mean(broker, self.brokers)}")

    def _check_link(self, a: str, b: str) -> None:
        if link(a, b) not in self.overlay.links:
            raise UpdateError(f"there is no link between {a!r} and {b!r}")

    def _change(
        self,
        client: Client,
        cells: Mapping[str, Any],
        begin: tuple[str, ...] = (),
        filters: Mapping[str, Filter] | None = None,
    ) -> Change:
        return checked(self.world.scenario, self.world.metric, client, cells, begin, filters)

    def _filters(self, name: str, filter: Filter | None) -> dict[str, Filter]:
        if filter is None:
            return {}
        scenario = self.world.scenario
        population = scenario.population(name)
        accepted = scenario.accepted(population, filter)
        if back_in_time(accepted) and not self.world.remembers:
            raise UpdateError(f"{accepted!r} looks back in time; make the federation with looks_back=True")
        more = thirds(scenario, population, accepted) - self.world.thirds_of_publications
        if population.role == PUBLICATION and more:
            raise UpdateError(
                f"{accepted!r} looks at third parties {sorted(more)} that no publication's filter of the scenario "
                "looks at; subscribers elsewhere do not follow them"
            )
        return {name: accepted}
