"""Composite events: filters over several publications (A Federated Broker Architecture, IX asks for them).

A subscription of ours that looks at third parties or at visits is one already, over states. Here is the same for
notifications with attributes: an event made of several of them. Its parts are routed as ordinary subscriptions; the
consumer's home broker puts them together, in the time of their sources, and the consumer hears once.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from workbench.brokering.federation.attributes import Expression, Notification, Subscription

Seen = Mapping[str, Notification]
"""the latest notification for each part"""


@dataclass(frozen=True)
class Composite:
    """An event made of several: a notification for every part, within a time, in any order or in the given one.

    >>> from workbench.brokering.federation.attributes import attribute
    >>> hot = Composite("fire", {"hot": attribute("heat") > 60, "smoke": attribute("smoke") == True}, within=10)
    >>> seen, event = hot.told(Notification({"heat": 70}, "κ1", 1, published=0), seen={})
    >>> seen, event = hot.told(Notification({"smoke": True}, "κ2", 1, published=4), seen=seen)
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

    def told(self, notification: Notification, seen: Seen) -> tuple[Seen, Notification | None]:
        """What has been seen of the parts after one more notification, and the event if that completes it."""
        at = notification.published
        fresh = {label: n for label, n in seen.items() if at - n.published <= self.within}
        labels = list(self.parts)
        for label, part in self.parts.items():
            before = labels[: labels.index(label)]
            if part(notification) and (not self.ordered or all(b in fresh for b in before)):
                fresh[label] = notification
        if len(fresh) < len(self.parts):
            return fresh, None
        number = max(n.number for n in fresh.values())
        return {}, Notification(dict(fresh), self.name, number, at)
