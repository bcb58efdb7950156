"""Model (B) as it is told: a broker, its clients and their connections, in simulated time (SimPy).

Made to be read beside section II of Active Control, and to be checked against the kernel client by client. Unlike the
kernel it has all clients at one broker at once, so here the broker can really be overloaded: it counts the messages
that come to its desk in each window of `Rules.window_s`. If they were more than its `capacity`, it drops the share that
was too many from those of the next window, unsent or unanswered, each with the same chance.

Ties at one instant, by SimPy's priorities: notifications (unmatch, then match, then by client), checks, the sweep.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
import simpy
from simpy.events import EventPriority

from workbench.brokering.delivery import kernel
from workbench.brokering.delivery.channels import Channel
from workbench.brokering.delivery.delivered import Delivered, Setting, lifetime, tables
from workbench.brokering.delivery.draws import CHECK, INTERVAL, PASSIVE, uniforms
from workbench.brokering.delivery.kernel import BROKEN, COUNTS, MATCH, OUTAGE, REMOVED, REPAIRED, SECOND_US, UP
from workbench.brokering.delivery.rows import Rows, check_notifications, sorted_rows
from workbench.brokering.delivery.rules import Rules
from workbench.brokering.delivery.strategies import Strategy

_NOTIFICATIONS, _CHECKS, _SWEEP = 1, 2, 3


@dataclass(frozen=True)
class Message:
    """What a broker sends to one client at one instant: publications that began, or ceased, to match."""

    number: int
    t: int
    match: bool
    publications: frozenset[Any]


@dataclass(frozen=True)
class Answer:
    """What a check returns: the last number, the current matches, and the log."""

    number: int
    matches: frozenset[Any]
    log: tuple[Message, ...]


@dataclass(frozen=True)
class Notified:
    """Notification i as the client counts: when it came, t_i, k_i, and whether a check brought it."""

    at: int
    t_us: int
    k: int
    active: bool


class Link:
    """The way between the broker and one client: which messages the channel loses."""

    def __init__(self, setting: Setting, key: np.uint64, outages: list[tuple[int, int]]) -> None:
        self.seed, self.key, self.outages = np.uint64(setting.seed), key, outages
        self.channel = setting.channel.row
        self.bad = False
        self.seen: int | None = None

    def passive(self, number: int, t: int) -> tuple[bool, float, float]:
        """Whether the channel loses a notification, and the draws for what breaks and what an overload drops."""
        u, state, breaking, dropped = uniforms(self.seed, self.key, number, PASSIVE)
        return u < self._loss(t, state), breaking, dropped

    def check(self, number: int, t: int) -> tuple[bool, bool, float]:
        """Whether the channel loses a check's request, and its answer, and the draw for what an overload drops."""
        request, state, answer, dropped = uniforms(self.seed, self.key, number, CHECK)
        loss = self._loss(t, state)
        return request < loss, answer < loss, dropped

    def _loss(self, t: int, state: float) -> float:
        self.bad = state < kernel.bad_probability(self.channel, self.bad, -1 if self.seen is None else t - self.seen)
        self.seen = t
        if any(start <= t < end for start, end in self.outages):
            return 1.0
        return float(self.channel[kernel.LOSS_BAD if self.bad else kernel.LOSS])


@dataclass
class Subscription:
    """What the broker holds of one client."""

    client: Client
    link: Link
    log: deque[Message]
    number: int = 0
    matches: set[Any] = field(default_factory=set)
    connection: int = UP


class Broker:
    """Best effort: no acknowledgement, no buffer, dead connections removed (section II); numbers, matches and a log."""

    def __init__(self, env: simpy.Environment, setting: Setting, capacity: int | None = None) -> None:
        self.env, self.setting, self.capacity = env, setting, capacity
        self.subscriptions: dict[Any, Subscription] = {}
        self.load = np.zeros(setting.windows, np.int64)
        if setting.rules.sweep_s:
            env.process(self._sweep())

    @property
    def now(self) -> int:
        """The instant, in microseconds."""
        return int(self.env.now)

    def subscribe(self, name: Any, client: Client, link: Link) -> Subscription:
        """Establish a connection; the subscription lives as long as the model runs."""
        subscription = Subscription(client, link, deque(maxlen=self.setting.rules.log))
        self.subscriptions[name] = subscription
        return subscription

    def notify(self, name: Any, match: bool, publications: frozenset[Any]) -> Message:
        """Number a message and send it, unless the connection is known to be dead or the desk is full."""
        s, count = self.subscriptions[name], self.subscriptions[name].client.count
        s.number += 1
        s.matches = s.matches | publications if match else s.matches - publications
        message = Message(s.number, self.now, match, publications)
        s.log.append(message)
        s.client.record.append(message)
        s.client.compare(s.matches)
        lost, breaking, dropped = s.link.passive(message.number, self.now)
        if s.connection == REMOVED or not self._handles(dropped):
            count["unsent"] += 1
        elif s.connection == BROKEN:
            count["lost"] += 1
        elif lost:
            count["lost"] += 1
            left = kernel.broken(s.link.channel, breaking)
            if left != UP:
                self.breaks(name, left)
        else:
            s.client.receive(message)
            s.client.compare(s.matches)
        return message

    def breaks(self, name: Any, left: int) -> None:
        """The connection fails: the client notices and repairs it, or it is left broken, or removed by the broker."""
        s = self.subscriptions[name]
        s.client.count["breaks"] += 1
        if left == REPAIRED:
            s.client.evident += 1
        else:
            s.connection = left

    def check(self, name: Any, number: int) -> tuple[Answer, bool] | None:
        """Answer a check (and whether its connection had been lost and is repaired now); None: nothing came back."""
        s = self.subscriptions[name]
        request_lost, answer_lost, dropped = s.link.check(number, self.now)
        if request_lost or not self._handles(dropped) or answer_lost:
            return None
        repaired, s.connection = s.connection != UP, UP
        return Answer(s.number, frozenset(s.matches), tuple(s.log)), repaired

    def _handles(self, dropped: float) -> bool:
        window = (self.now - self.setting.since) // self.setting.window_us
        self.load[window] += 1
        if self.capacity is not None:
            before = self.load[window - 1] if window > 0 else 0
            return bool(dropped >= 1 - self.capacity / max(before, self.capacity))
        return not (self.setting.rules.shed and dropped < self.setting.rules.shed[window])

    def _sweep(self) -> Generator[simpy.Event, None, None]:
        every = round(self.setting.rules.sweep_s * SECOND_US)
        at = -(-self.now // every) * every
        while True:
            yield _At(self.env, at, _SWEEP)
            for s in self.subscriptions.values():
                if s.connection == BROKEN:
                    s.connection = REMOVED
            at += every


class Client:
    """A mobile client: it receives, and checks when its interval has passed since the last notification."""

    def __init__(self, env: simpy.Environment, broker: Broker, name: Any, link: Link) -> None:
        self.env, self.broker, self.name = env, broker, name
        self.setting, self.link = broker.setting, link
        self.count = dict.fromkeys(COUNTS, 0)
        self.matches: set[Any] = set()
        # For the account, not for the client: what was sent since the last check, and how each member became known.
        self.record: list[Message] = []
        self.known: dict[tuple[int, Any], tuple[int, int]] = {}
        self.notified: list[Notified] = []
        self.number = 0
        self.evident = 0  # failures that it saw since the last notification
        self.heard = self._now
        self.stale_since: int | None = None
        self.memory, self.row = self.setting.strategy.memory, self.setting.strategy.row
        self.plan = int(kernel.bounded_us(self.row, self.row[kernel.T0]))
        spread_us = round(self.setting.rules.spread_s * SECOND_US)
        self.due = self._now + self.plan + int(kernel.lag_us(link.seed, link.key, spread_us))
        broker.subscribe(name, self, link)
        self.process = env.process(self._run())

    def receive(self, message: Message) -> None:
        """A passive notification: it shows what the numbers skip, and restarts the check interval."""
        self.matches = self.matches | message.publications if message.match else self.matches - message.publications
        self.known.update({(message.number, p): (kernel.BY_MESSAGE, 0) for p in message.publications})
        gap = message.number - self.number - 1
        self._advance(message.number, gap if self._by_numbers else int(self.evident > 0), active=False)
        self.process.interrupt()

    def check(self) -> None:
        """An active notification: ask, repair the connection if it is lost, and take over the current matches."""
        self.count["checks"] += 1
        came = self.broker.check(self.name, self.count["checks"])
        if came is None:
            self.evident += 1
            self.count["failed"] += 1
            strategy = self.setting.strategy
            interval = kernel.retried(strategy.code, self.row, self.plan / SECOND_US)
            self.plan = int(kernel.bounded_us(self.row, interval))
            self.due = self._now + self.plan
            return
        answer, repaired = came
        self._settle(answer)
        self.matches = set(answer.matches)
        self.compare(self.matches)
        k = answer.number - self.number if self._by_numbers else int(self.evident > 0 or repaired)
        self._advance(answer.number, k, active=True)

    def compare(self, matches: set[Any]) -> None:
        """Keep account of the time during which the client's matches are not the broker's."""
        if self.matches != matches and self.stale_since is None:
            self.stale_since = self._now
        elif self.matches == matches and self.stale_since is not None:
            self.count["stale_us"] += self._now - self.stale_since
            self.stale_since = None

    @property
    def _now(self) -> int:
        return self.broker.now

    @property
    def _by_numbers(self) -> bool:
        return self.setting.rules.estimator == "numbers"

    def _settle(self, answer: Answer) -> None:
        """Account for the messages since the last check: what the answer tells of them, the latest of a pair first."""
        news, logged = self.matches ^ answer.matches, {message.number for message in answer.log}
        for message in reversed(self.record):
            for publication in message.publications:
                member = (message.number, publication)
                if member not in self.known:
                    told = message.number in logged
                    how = kernel.BY_LOG if told else kernel.BY_STATE if publication in news else kernel.MISSED
                    self.known[member] = (how, -1 if how == kernel.MISSED else self._now - message.t)
                news -= {publication}
        self.record.clear()

    def _advance(self, number: int, k: int, active: bool) -> None:
        """Notification i has come: t_i and k_i are known, and with them the next interval."""
        strategy, t_us = self.setting.strategy, self._now - self.heard
        self.notified.append(Notified(self._now, t_us, k, active))
        self.count["observed"] += k
        u = uniforms(self.link.seed, self.link.key, len(self.notified), INTERVAL)[0]
        interval = kernel.planned(
            strategy.code, self.row, t_us / SECOND_US, k, active, self.plan / SECOND_US, u, self.memory
        )
        self.number, self.evident, self.heard = number, 0, self._now
        self.plan = int(kernel.bounded_us(self.row, interval))
        self.due = self._now + self.plan

    def _run(self) -> Generator[simpy.Event, None, None]:
        while True:
            try:
                yield _At(self.env, self.due, _CHECKS)
            except simpy.Interrupt:
                continue
            self.check()


class _At(simpy.Event):
    """An event at an instant, with its place among those of the same instant."""

    def __init__(self, env: simpy.Environment, t: int, priority: int) -> None:
        super().__init__(env)
        self._ok, self._value = True, None
        env.schedule(self, EventPriority(priority), t - env.now)


def simulated(
    notifications: pd.DataFrame,
    channel: Channel,
    strategy: Strategy,
    rules: Rules | None = None,
    *,
    seed: int = 0,
    since: Any = None,
    until: Any = None,
    tick_us: int = SECOND_US,
    capacity: int | None = None,
) -> Delivered:
    """`delivered`, by simulation, and with a broker that can handle `capacity` messages a window (None: all).

    >>> from workbench.brokering.delivery import Constant, Independent
    >>> told = pd.DataFrame({"t": [10, 50], "kind": ["match", "unmatch"], "publication": "cafe", "subscription": 7})
    >>> simulated(told, Independent(), Constant(), since=0, until=100).clients[["by_message", "checks"]].values.tolist()
    [[2, 3]]
    """
    check_notifications(notifications)
    setting = Setting(channel, strategy, rules or Rules(), seed, *lifetime(notifications["t"], since, until, tick_us))
    rows = sorted_rows(notifications, channel.outages, setting.since, setting.until, tick_us)
    env = simpy.Environment(initial_time=setting.since)
    broker = Broker(env, setting, capacity)
    clients = [Client(env, broker, c, Link(setting, rows.keys[c], _outages(rows, c))) for c in range(len(rows.ids))]
    env.process(_replay(env, broker, rows))
    env.run(until=setting.until + 1)
    return _tables(notifications, rows, setting, broker, clients)


def _outages(rows: Rows, c: int) -> list[tuple[int, int]]:
    of = slice(rows.offsets[c], rows.offsets[c + 1])
    out = rows.kind[of] == OUTAGE
    return list(zip(rows.t[of][out].tolist(), rows.publication[of][out].tolist()))


def _replay(env: simpy.Environment, broker: Broker, rows: Rows) -> Generator[simpy.Event, None, None]:
    """The messages of all clients in time; members of a message are known by their place in the rows."""
    client = np.repeat(np.arange(len(rows.ids)), np.diff(rows.offsets))
    told = sorted(zip(rows.t.tolist(), rows.kind.tolist(), client.tolist(), rows.publication.tolist()))
    for (t, kind, c), members in groupby((row for row in told if row[1] != OUTAGE), key=lambda row: row[:3]):
        yield _At(env, t, _NOTIFICATIONS)
        broker.notify(c, kind == MATCH, frozenset(row[3] for row in members))


def _tables(
    notifications: pd.DataFrame, rows: Rows, setting: Setting, broker: Broker, clients: list[Client]
) -> Delivered:
    number, how = np.zeros(rows.t.size, np.int64), np.zeros(rows.t.size, np.int8)
    delay = np.full(rows.t.size, -1, np.int64)
    for c, client in enumerate(clients):
        last: tuple[int, int] | None = None
        for j in range(rows.offsets[c], rows.offsets[c + 1]):
            if rows.kind[j] == OUTAGE:
                continue
            this = (rows.t[j], rows.kind[j])
            number[j] = client.count["messages"] = client.count["messages"] + (this != last)
            last = this
            how[j], delay[j] = client.known.get((int(number[j]), int(rows.publication[j])), (kernel.PENDING, -1))
            client.count[COUNTS[how[j]]] += 1
        if client.stale_since is not None:
            client.count["stale_us"] += setting.until - client.stale_since
    counts = np.array([[client.count[name] for name in COUNTS] for client in clients], np.int64)
    return tables(notifications, rows, setting, number, how, delay, counts.reshape(-1, len(COUNTS)), broker.load)
