"""The efficient form (Scopes, 4): visible roots, and adapters.

Without interfaces, subscriptions are extended by one test: a notification carries the roots of the graph that its
producer sees, and a consumer asks for those that it sees (`visible_roots`, `sees`).

Interfaces and mappings become components (Figure 8): every scope is a root of its own, and each membership of a
scope in another one is an `Adapter` with one part in the member and one in the superscope. It takes a notification
over from one to the other, checks the interface and applies the mapping. A simple component's own interfaces stand
at its own edges.

Departure: as drawn, the transformation leaks. An adapter cannot tell what was published in its scope from what
another adapter brought into it from above, and forwards it up: with two superscopes R1 and R2 of S everything in R1
gets into R2. So an envelope says whether it was brought in, and an adapter never forwards such a one upward. And
with a diamond, what left S through R1 comes back into S through R2, mapped twice: an envelope says what it has
left, and no adapter brings it back there. ``naive=True`` is the form as drawn.

Departure: the paper makes adapters only for scopes with an interface or a mapping, and lets the rest be one region
under its roots. What has been left is then not known within a region, and with it not what must not be entered
again; here each membership of a scope has its adapter. `visible_roots` serves where there is nothing but
visibility.

Administration messages: whoever's roots change when the graph changes has to renew subscriptions (`administration`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import networkx as nx

from workbench.brokering.scopes.definition import Context, Delivery, Notification
from workbench.brokering.scopes.graph import Edge, ScopeGraph
from workbench.brokering.scopes.interfaces import Content, Interface

# -- visibility: the roots ---------------------------------------------------------------------------------------


def visible_roots(graph: ScopeGraph, name: str) -> frozenset[str]:
    """The maximal elements above a component: what its notifications carry and its subscriptions ask for.

    >>> from workbench.brokering.scopes.graph import graph
    >>> sorted(visible_roots(graph("X->R", "S->R", "Y->S", "Y->T"), "Y"))
    ['R', 'T']
    """
    return graph.above(name) & graph.roots


def all_visible_roots(graph: ScopeGraph) -> dict[str, frozenset[str]]:
    """The visible roots of everything, in one pass from the top."""
    found: dict[str, frozenset[str]] = {}
    for name in reversed(list(nx.topological_sort(graph.nx))):
        up = list(graph.nx.successors(name))
        found[name] = frozenset().union(*(found[scope] for scope in up)) if up else frozenset({name})
    return found


def administration(before: ScopeGraph, after: ScopeGraph) -> dict[str, int]:
    """The messages that a change of the graph costs.

    One to announce each change of a membership to the scope, and for every component whose visible roots change one
    unsubscription or subscription for each root that it loses or gains.

    >>> from workbench.brokering.scopes.graph import graph
    >>> market = graph("C1->M1", "C2->M1", "TF->M1", "C4->M2")
    >>> administration(market, market.join("C4", "M1"))
    {'memberships': 1, 'components': 1, 'roots': 1}
    """
    old, new = all_visible_roots(before), all_visible_roots(after)
    changed = {
        name: old.get(name, frozenset()) ^ new.get(name, frozenset())
        for name in before.components | after.components
        if old.get(name, frozenset()) != new.get(name, frozenset())
    }
    return {
        "memberships": len(set(before.edges) ^ set(after.edges)),
        "components": len(changed),
        "roots": sum(map(len, changed.values())),
    }


# -- interfaces and mappings: adapters ----------------------------------------------------------------------------


class Envelope(NamedTuple):
    """A notification in a scope, and how it came there."""

    scope: str
    content: Content
    session: Context
    brought_in: bool = False
    left: frozenset[str] = frozenset()

    @property
    def known(self) -> tuple[Any, ...]:
        """What tells it from another one."""
        return (self.scope, tuple(sorted(self.content.items())), self.session, self.brought_in, self.left)


@dataclass(frozen=True)
class Adapter:
    """Takes notifications over between a scope and one of its superscopes."""

    graph: ScopeGraph
    member: str
    scope: str

    @property
    def edge(self) -> Edge:
        return self.graph.edges[self.member, self.scope]

    def up(self, envelope: Envelope, context: Context) -> list[Envelope]:
        """From the member into the superscope: the tag is stripped, the superscope's put on."""
        if not self.graph.admits(self.scope, context):
            return []
        session = self.graph.sessions([self.scope])
        left = envelope.left | {self.member}
        return [Envelope(self.scope, c, session, False, left) for c in _out(self.edge, envelope.content)]

    def down(self, envelope: Envelope) -> list[Envelope]:
        """From the superscope into the member."""
        session = envelope.session | self.graph.sessions([self.member])
        return [Envelope(self.member, c, session, True, envelope.left) for c in _in(self.edge, envelope.content)]


def _out(edge: Edge, content: Content) -> list[Content]:
    made = [content] if edge.mapping_out is None else [c for _, c in edge.mapping_out(content)]
    return [c for c in made if edge.output.lets(c)]


def _in(edge: Edge, content: Content) -> list[Content]:
    if not edge.input.lets(content):
        return []
    return [content] if edge.mapping_in is None else [c for _, c in edge.mapping_in(content)]


def adapted(
    graph: ScopeGraph, notification: Notification, subscriptions: Mapping[str, Interface], *, naive: bool = False
) -> frozenset[Delivery]:
    """Who receives a notification, by passing it on from adapter to adapter; policies are not applied."""
    adapters = [Adapter(graph, member, scope) for member, scope in graph.edges if member in graph.scopes]
    above: dict[str, list[Adapter]] = {}
    below: dict[str, list[Adapter]] = {}
    for adapter in adapters:
        above.setdefault(adapter.member, []).append(adapter)
        below.setdefault(adapter.scope, []).append(adapter)
    producer, context, t = notification.producer, notification.context, notification.t
    found: set[Delivery] = set()

    def deliver(consumer: str, content: Content, session: Context) -> None:
        if consumer in subscriptions and subscriptions[consumer].lets(content):
            found.add(Delivery(consumer, tuple(sorted(content.items())), session, t))

    if producer in graph.scopes:
        waiting = deque([Envelope(producer, notification.content, graph.sessions([producer]))])
    else:
        deliver(producer, notification.content, frozenset())
        waiting = deque(
            Envelope(scope, content, graph.sessions([scope]))
            for scope in graph.superscopes(producer)
            if graph.admits(scope, context)
            for content in _out(graph.edges[producer, scope], notification.content)
        )
    seen: set[tuple[Any, ...]] = set()
    while waiting:
        envelope = waiting.popleft()
        if envelope.known in seen:
            continue
        seen.add(envelope.known)
        for member in graph.members(envelope.scope):
            if member in graph.components and (naive or member != producer):
                for content in _in(graph.edges[member, envelope.scope], envelope.content):
                    deliver(member, content, envelope.session)
        if naive or not envelope.brought_in:
            for adapter in above.get(envelope.scope, ()):
                waiting += [e._replace(left=frozenset()) if naive else e for e in adapter.up(envelope, context)]
        for adapter in below.get(envelope.scope, ()):
            if naive or adapter.member not in envelope.left:
                waiting += adapter.down(envelope)
    return frozenset(found)


def sees(graph: ScopeGraph, one: str, other: str) -> bool:
    """Visibility by the roots alone, as an extended subscription tests it."""
    return bool(visible_roots(graph, one) & visible_roots(graph, other))
