"""Counting: every message, its hops and bytes, every delivery and its latency, every loss and its place.

Latency is the time from what happened at its source until its consumer knew. What a delivery took is each forward that
brought news of its publications to the consumer's broker since it decided last, over each link that it passed, and the
notification itself: so several publications told of at once took what each of them took, and of one that was known
already, because the consumer came nearer, nothing travelled but the notification. Hops are the links that the farthest
passed. A forward that serves several consumers counts for each, so deliveries do not add up to the messages. A loss is
attributed to the link or the broker where it happened; nothing is lost without a row here. So is what a home withholds
while the way to somebody is broken (``undecided``): a pair that would change, if who is cut off still were as it was
last, and a subscription whose third parties may be cut off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pandas as pd

from workbench.brokering.federation.messages import Envelope, Forward, Notify, size


class Delivery(NamedTuple):
    """One notification as one consumer got it."""

    t: float
    consumer: Hashable
    what: Any
    messages: int
    hops: int
    bytes: int
    latency: float
    resync: bool


class Loss(NamedTuple):
    """One message that did not arrive: where, and why."""

    t: float
    where: str
    why: str
    message: str
    about: Any


@dataclass
class Counts:
    """What a run counted.

    >>> counts = Counts()
    >>> counts.sent(Envelope("B1", "B2", "hello"), wireless=False)
    >>> counts.messages, counts.bytes
    (Counter({'str': 1}), 7)
    """

    messages: Counter[str] = field(default_factory=Counter)
    links: Counter[tuple[Hashable, Hashable]] = field(default_factory=Counter)
    bytes: int = 0
    wireless: int = 0
    deliveries: list[Delivery] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)

    def sent(self, envelope: Envelope, wireless: bool) -> None:
        """One message over one link."""
        self.messages[type(envelope.message).__name__] += 1
        self.links[(envelope.source, envelope.destination)] += 1
        self.bytes += size(envelope.message)
        self.wireless += wireless

    def lost(self, t: float, where: str, why: str, envelope: Envelope) -> None:
        """One message that ends here."""
        message = envelope.message
        self.losses.append(Loss(t, where, why, type(message).__name__, getattr(message, "item", message)))

    def withheld(self, t: float, where: str, subscription: Hashable) -> None:
        """One pair that its home could not decide, because the way to who is concerned is broken."""
        self.losses.append(Loss(t, where, "undecided", Notify.__name__, subscription))

    def delivered(self, t: float, envelope: Envelope, caused: float, carried: int | None = None) -> None:
        """One notification at its consumer.

        ``carried`` bytes passed each link on the way to its broker; where it is not given, what the message says.
        """
        message, hops = envelope.message, envelope.message.hops
        if carried is None:
            forwards = sum(passed for _, passed in message.travelled)
            total = sum(passed * size(Forward(report)) for report, passed in message.travelled) + size(message)
        else:
            forwards, total = hops, hops * carried + size(message)
        row = Delivery(t, envelope.destination, message.item, forwards + 1, hops, total, t - caused, message.resync)
        self.deliveries.append(row)

    @property
    def summary(self) -> dict[str, float]:
        """The figures of a run."""
        told = self.deliveries
        return {
            "messages": sum(self.messages.values()),
            "forwards": self.messages["Forward"],
            "table updates": self.messages["TableUpdate"],
            "notifications": len(told),
            "bytes": self.bytes,
            "mean hops": sum(d.hops for d in told) / len(told) if told else 0.0,
            "mean latency": sum(d.latency for d in told) / len(told) if told else 0.0,
            "lost": len(self.losses),
        }

    @property
    def loss_table(self) -> pd.DataFrame:
        """Losses by place and cause."""
        frame = pd.DataFrame(self.losses, columns=list(Loss._fields))
        return frame.groupby(["where", "why", "message"]).size().rename("lost").reset_index()
