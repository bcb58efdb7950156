"""Routes: what stands on the ways of a producer's notifications, before there are any (Scopes, 3.2 to 3.6).

A route says where notifications come to be (a scope, or the boundary of one of its members), and what they meet on the
way: interfaces, mappings, publishing policies, session tags. Nothing is evaluated; `scoped` makes filters and
derived publications of it.

Where a graph has nothing but visibility, the places are its roots (Scopes, 4). Otherwise a *token* is the place as
hidden dimensions name it: ``S`` for what is in scope S, ``S>c`` for what crosses the boundary of the member c where
that is not open, ``>c`` for the component c itself. A consumer asks for the tokens of its memberships
(`tokens_of`), so that no table of all visible pairs is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from workbench.brokering.scopes.adapters import visible_roots
from workbench.brokering.scopes.definition import Context
from workbench.brokering.scopes.graph import ScopeGraph
from workbench.brokering.scopes.interfaces import Interface
from workbench.brokering.scopes.mappings import EventMapping

Steps = tuple[Interface | EventMapping, ...]
NOWHERE = "-"
"""The token that nobody asks for."""


class Route(NamedTuple):
    """Where notifications come to be, and what they meet on the way there."""

    token: str
    steps: Steps
    session: Context
    waits: tuple[str, ...]
    """the scopes whose publishing policies they wait for"""

    @property
    def changes(self) -> bool:
        """Whether a consumer receives something else than what was published, when it was published."""
        return bool(self.session or self.waits or any(isinstance(step, EventMapping) for step in self.steps))

    @property
    def guards(self) -> frozenset[Interface]:
        """The interfaces on the way."""
        return frozenset(step for step in self.steps if isinstance(step, Interface))


def tokens_of(graph: ScopeGraph, consumer: str) -> list[str]:
    """What a consumer asks for: itself and its memberships.

    >>> from workbench.brokering.scopes.graph import graph
    >>> from workbench.brokering.scopes.interfaces import kinds
    >>> made = graph("Y->S", "Y->T", "S->R", "X->R")
    >>> tokens_of(made, "Y"), tokens_of(made.with_interface("Y", input=kinds("Quote")), "Y")
    (['R', 'T'], ['>Y', 'S>Y', 'T>Y'])
    """
    if consumer not in graph.nx:
        return [NOWHERE]
    if graph.plain:
        return sorted(visible_roots(graph, consumer))
    return [f">{consumer}", *(_token(graph, consumer, scope) for scope in graph.superscopes(consumer))]


def _token(graph: ScopeGraph, member: str, scope: str) -> str:
    edge = graph.edges[member, scope]
    return scope if edge.input.filters is None and edge.mapping_in is None else f"{scope}>{member}"


def routes(graph: ScopeGraph, producer: str, context: Context = frozenset()) -> list[Route]:
    """All routes of a producer; left out are closed ones, and those that meet more interfaces than another one.

    >>> from workbench.brokering.scopes.graph import graph
    >>> from workbench.brokering.scopes.interfaces import kinds
    >>> made = graph("X->S", "Y->S", "S->R").with_interface("S", output=kinds("Quote"))
    >>> [(route.token, *route.steps) for route in routes(made, "X")]
    [('>X',), ('S',), ('R', kind ⊆ {'Quote'})]
    """
    if producer not in graph.nx:
        return []
    if graph.plain:
        return [Route(root, (), frozenset(), ()) for root in sorted(visible_roots(graph, producer))]
    found = list(dict.fromkeys(_routes(graph, producer, context)))
    least: dict[str, list[frozenset[Interface]]] = {}
    for route in found:
        if not route.changes:
            least.setdefault(route.token, []).append(route.guards)
    return [r for r in found if r.changes or not any(guards < r.guards for guards in least[r.token])]


def waits_of(graph: ScopeGraph, up: Sequence[str]) -> tuple[str, ...]:
    """The scopes on a way up whose publishing policies are waited for."""
    return tuple(name for name in up[:-1] if name in graph.scopes and graph.scopes[name].waits)


def _routes(graph: ScopeGraph, producer: str, context: Context) -> Iterator[Route]:
    if producer in graph.components:
        yield Route(f">{producer}", (), frozenset(), ())
    climbing: list[tuple[tuple[str, ...], Steps]] = [((producer,), ())]
    while climbing:
        way, steps = climbing.pop(0)
        waits = waits_of(graph, way)
        here = way[-1]
        if here in graph.scopes:
            yield from _below(graph, here, steps, graph.sessions([here]), waits, frozenset(way), producer)
        for scope in graph.superscopes(here):
            if not graph.admits(scope, context):
                continue
            edge = graph.edges[here, scope]
            out = _crossing(edge.mapping_out, edge.output)
            if out is not None:
                climbing.append(((*way, scope), (*steps, *out)))


def _below(
    graph: ScopeGraph,
    scope: str,
    steps: Steps,
    session: Context,
    waits: tuple[str, ...],
    left: frozenset[str],
    producer: str,
) -> Iterator[Route]:
    yield Route(scope, steps, session, waits)
    for member in graph.members(scope):
        if member in left or member == producer:
            continue
        edge = graph.edges[member, scope]
        into = _crossing(edge.input, edge.mapping_in)
        if into is None:
            continue
        if member in graph.scopes:
            inside = session | graph.sessions([member])
            yield from _below(graph, member, (*steps, *into), inside, waits, left, producer)
        elif into:
            yield Route(_token(graph, member, scope), (*steps, *into), session, waits)


def _crossing(*met: Interface | EventMapping | None) -> Steps | None:
    """What is met at a boundary, without what is open; None where it is closed."""
    if any(isinstance(step, Interface) and step.filters == frozenset() for step in met):
        return None
    return tuple(s for s in met if s is not None and not (isinstance(s, Interface) and s.filters is None))
