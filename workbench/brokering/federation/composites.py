"""Composite events: filters over several publications (A Federated Broker Architecture, IX asks for them).

A subscription of ours that looks at third parties or at visits is one already, over states. Here is the same for
notifications with attributes: an event made of several of them. Its parts are routed as ordinary subscriptions; the
consumer's home broker puts them together, in the time of their sources, and the consumer hears once.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from workbench.brokering.federation.attributes import Expression, Notification, Subscription
from workbench.errors import ScenarioError

Seen = tuple[Notification, ...]
"""what was seen of the parts, in source order, none longer ago than ``within`` before the newest"""


@dataclass(frozen=True)
class Composite:
    """An event made of several: a notification for every part, within a time, in any order or in the given one.

    Time and order are those of the sources: what was resent, or waited, counts where it belongs. Of different sources
    at one instant the order of arrival decides. What comes later than ``within`` after the newest comes too late.

    >>> from workbench.brokering.federation.attributes import attribute
    >>> hot = Composite("fire", {"hot": attribute("heat") > 60, "smoke": attribute("smoke") == True}, within=10)
    >>> seen, event = hot.told(Notification({"heat": 70}, "κ1", 1, published=0), seen=())
    >>> seen, event = hot.told(Notification({"smoke": True}, "κ2", 1, published=4), seen=seen)
    >>> event
    ν1 of fire: hot=..., smoke=...
    """

    name: Hashable
    parts: Mapping[str, Expression]
    within: float
    ordered: bool = False

    def __post_init__(self) -> None:
        if not self.parts:
            raise ScenarioError(f"event {self.name!r} has no parts")
        if not self.within >= 0:
            raise ScenarioError(f"event {self.name!r}: within = {self.within}; expected a number of at least 0")

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """What is routed: one subscription for each part."""
        return tuple(Subscription((self.name, label), part) for label, part in self.parts.items())

    def told(self, notification: Notification, seen: Seen) -> tuple[Seen, Notification | None]:
        """What has been seen of the parts after one more notification, and the event if that completes it."""
        if not any(part(notification) for part in self.parts.values()):
            return seen, None
        newest = max(n.published for n in (*seen, notification))
        fresh = tuple(n for n in _put(notification, seen) if newest - n.published <= self.within)
        found = self._latest(fresh)
        if found is None:
            return fresh, None
        number, at = max(n.number for n in found.values()), max(n.published for n in found.values())
        return (), Notification(found, self.name, number, at)

    def _latest(self, seen: Seen) -> dict[str, Notification] | None:
        """The latest for each part; in order, the latest that leaves something before it for the parts before."""
        found, end = {}, len(seen)
        for label, part in reversed(list(self.parts.items())):
            at = next((i for i in range(end - 1, -1, -1) if part(seen[i])), None)
            if at is None:
                return None
            found[label] = seen[at]
            end = at + 1 if self.ordered else len(seen)
        return {label: found[label] for label in self.parts}


def _put(new: Notification, seen: Seen) -> Seen:
    """With one more in source order; a source numbers what it publishes at one instant."""
    at = len(seen)
    while at and _later(seen[at - 1], new):
        at -= 1
    return (*seen[:at], new, *seen[at:])


def _later(one: Notification, other: Notification) -> bool:
    if one.published != other.published:
        return one.published > other.published
    return one.origin == other.origin and one.number > other.number
