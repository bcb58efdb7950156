"""Why a consumer received a notification, or did not: the administrator's question (Scopes, 1 and 2).

`why(graph, notification, consumer)` walks every path between the two and says what happened at each boundary: which
interface, mapping, policy or tag stopped or changed it. Without a path the two are invisible to each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.brokering.scopes.definition import (
    Arrival,
    Notification,
    Path,
    Step,
    arrivals,
    carry,
    paths,
    selected,
)
from workbench.brokering.scopes.graph import ScopeGraph
from workbench.brokering.scopes.interfaces import OPEN, Interface


@dataclass(frozen=True)
class Way:
    """What happened on one path."""

    path: Path
    steps: tuple[Step, ...]
    arrived: tuple[Arrival, ...]
    matched: tuple[Arrival, ...]
    delivered: tuple[Arrival, ...]

    @property
    def verdict(self) -> str:
        """What came of it, in words."""
        if self.delivered:
            return "delivered " + "; ".join(_shown(arrival) for arrival in self.delivered)
        if self.matched:
            return "another member was chosen by a traverse or delivery policy"
        if self.arrived:
            return "arrived, but no subscription matches " + "; ".join(_shown(arrival) for arrival in self.arrived)
        stopped = [step for step in self.steps if step.after is None]
        return "; ".join(dict.fromkeys(_stop(step) for step in stopped)) or "nothing arrived"

    def __str__(self) -> str:
        changes = [f"    {_change(step)}" for step in self.steps if step.after is not None and step.after[0]]
        return "\n".join([f"  {self.path!r}: {self.verdict}", *changes])


def _shown(arrival: Arrival) -> str:
    face = f" as {'>'.join(arrival.face)}" if arrival.face else " as published"
    session = f" in session {', '.join(sorted(arrival.session))}" if arrival.session else ""
    return f"at t = {arrival.t}{face}{session}"


def _stop(step: Step) -> str:
    member, scope = step.edge
    return {
        "session": f"the session tag keeps it out of {scope}",
        "publishing": f"the publishing policy of {member} never releases it into {scope}",
        "output": f"the output interface of {member} towards {scope} blocks it",
        "input": f"the input interface of {member} from {scope} blocks it",
        "mapping out": f"the mapping from {member} to {scope} maps it onto nothing",
        "mapping in": f"the mapping from {scope} to {member} maps it onto nothing",
    }[step.what]


def _change(step: Step) -> str:
    member, scope = step.edge
    assert step.after is not None
    name, content = step.after
    if step.what == "publishing":
        return f"{member} ↑ {scope}: released at {name}"
    arrow = "↑" if step.what == "mapping out" else "↓"
    changed = {k: v for k, v in content.items() if step.before.get(k) != v}
    return f"{member} {arrow} {scope}: {name} gives {changed}"


@dataclass(frozen=True)
class Why:
    """All paths between a producer and a consumer, and what happened on each."""

    notification: Notification
    consumer: str
    ways: tuple[Way, ...]

    @property
    def delivered(self) -> bool:
        """Whether the consumer received it."""
        return any(way.delivered for way in self.ways)

    def __str__(self) -> str:
        head = f"{self.notification.id} of {self.notification.producer} to {self.consumer}: "
        if not self.ways:
            return head + "invisible, they have no common superscope"
        return head + ("delivered" if self.delivered else "not delivered") + "\n" + "\n".join(map(str, self.ways))

    __repr__ = __str__


def why(
    graph: ScopeGraph, notification: Notification, consumer: str, subscriptions: Mapping[str, Interface] | None = None
) -> Why:
    """The paths between the two, and which interface, mapping, policy or tag stopped or changed the notification.

    ``subscriptions`` are those of all consumers, because a policy chooses among them; without any, the consumer takes
    everything and nobody else is asked.

    >>> from workbench.brokering.scopes.graph import graph
    >>> from workbench.brokering.scopes.interfaces import kinds
    >>> floor = graph("ME->TF", "TF->Prof", "C3->Prof").with_interface("TF", output=kinds("Quote"))
    >>> why(floor, Notification("b1", "ME", {"kind": "OrderBook"}), "C3")
    b1 of ME to C3: not delivered
      ME ↑ TF ↑ Prof ↓ C3: the output interface of TF towards Prof blocks it
    """
    asked = {consumer: OPEN} if subscriptions is None else subscriptions
    kept = selected(graph.scopes, arrivals(graph, notification, asked), notification.id)
    ways = []
    for path in paths(graph, notification.producer, consumer):
        arrived, steps = carry(graph, path, notification)
        matched = [arrival for arrival in arrived if consumer in asked and asked[consumer].lets(arrival.content)]
        delivered = [arrival for arrival in matched if arrival in kept]
        ways.append(Way(path, tuple(steps), tuple(arrived), tuple(matched), tuple(delivered)))
    return Why(notification, consumer, tuple(ways))
