"""The graph of scopes: who belongs to what (Scopes, 3 and 3.1).

A directed, acyclic graph G = (C, E) of simple components and scopes; an edge from c1 to c2 stands for c2 being a
superscope of c1. A node may have several superscopes; a simple component is never a superscope. Visibility is the
relation

    v(X, Y)  iff  X = Y  or  v(Y, X)  or  v(X', Y) for some X' in super(X),

that is: X and Y have a common superscope, where everything counts as its own. It is reflexive and symmetric, and not
transitive.

Here a graph is a frozen value over a networkx `DiGraph`. What an administrator attaches is attached to it:
interfaces and mappings to the edges (`Edge`), policies and session tags to the scopes (`Scope`). `join`, `leave`
and the other changes give a new graph; a change that is refused changes nothing.

Departure: read as a recursion, the definition of v never ends, because v(X, Y) asks v(Y, X), which asks v(X, Y).
Meant is the least relation that satisfies it. Read as text ("a common superscope") v would not be reflexive for a
component without a superscope, nor would a scope see its own members; the formula has both, and the formula is
followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import networkx as nx

from workbench.brokering.scopes.interfaces import OPEN, Interface
from workbench.brokering.scopes.mappings import EventMapping
from workbench.brokering.scopes.policies import (
    BROADCAST,
    EVERYBODY,
    IMMEDIATE,
    Admitting,
    Everybody,
    Immediate,
    traverse_named,
)
from workbench.errors import ScenarioError, UpdateError, did_you_mean, raise_all


@dataclass(frozen=True)
class Scope:
    """What is attached to a scope: its policies, and whether it is a session scope (tagged)."""

    publishing: Immediate = IMMEDIATE
    traverse: str = BROADCAST
    delivery: Everybody = EVERYBODY
    session: bool = False
    security: Admitting | None = None

    def __post_init__(self) -> None:
        traverse_named(self.traverse)

    @property
    def waits(self) -> bool:
        """Whether what leaves the scope may leave it later."""
        return self.publishing != IMMEDIATE

    @property
    def chooses(self) -> bool:
        """Whether not all who could receive do."""
        return (self.traverse, self.delivery) != (BROADCAST, EVERYBODY)


@dataclass(frozen=True)
class Edge:
    """What is attached to a membership: interfaces and mappings, for the way out of the member and the way into it."""

    output: Interface = OPEN
    input: Interface = OPEN
    mapping_out: EventMapping | None = None
    mapping_in: EventMapping | None = None

    @property
    def plain(self) -> bool:
        """Whether everything crosses as it is."""
        return self == Edge()


Membership = tuple[str, str]
"""A member and its superscope."""


@dataclass(frozen=True, eq=False)
class ScopeGraph:
    """Simple components, scopes, and which belongs to which.

    >>> figure2 = graph("X->R", "S->R", "Y->S", "Y->T", "U->T", "Z->T")
    >>> figure2.visible("Y", "U"), figure2.visible("X", "U")
    (True, False)
    >>> graph("A->B", "B->C", "C->A")
    Traceback (most recent call last):
    workbench.errors.ScenarioError: a scope cannot be its own superscope: A -> B -> C -> A
    """

    components: frozenset[str]
    scopes: Mapping[str, Scope]
    edges: Mapping[Membership, Edge] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", frozenset(self.components))
        object.__setattr__(self, "scopes", MappingProxyType(dict(self.scopes)))
        object.__setattr__(self, "edges", MappingProxyType(dict(self.edges)))
        raise_all(self._faults())

    def _faults(self) -> list[str]:
        nodes = {*self.components, *self.scopes}
        faults = [f"{name!r} is a simple component and a scope" for name in sorted(self.components & set(self.scopes))]
        forbidden = set("@>+{},/")
        for name in sorted(map(str, nodes)):
            if not name or set(name) & forbidden:
                faults.append(f"{name!r}: a name is not empty and has none of @ > + {{ }} , /")
        for member, scope in self.edges:
            if member not in nodes:
                hint = did_you_mean(str(member), map(str, nodes))
                faults.append(f"{member} -> {scope}: there is no {member!r}; {hint}")
            if scope in self.components:
                faults.append(f"{member} -> {scope}: {scope!r} is a simple component and cannot be a superscope")
            elif scope not in self.scopes:
                hint = did_you_mean(str(scope), self.scopes)
                faults.append(f"{member} -> {scope}: there is no scope {scope!r}; {hint}")
        functions: dict[str, EventMapping] = {}
        for (member, scope), edge in self.edges.items():
            for mapping in (edge.mapping_out, edge.mapping_in):
                if mapping is not None and functions.setdefault(mapping.name, mapping) != mapping:
                    faults.append(f"{member} -> {scope}: another mapping is called {mapping.name!r} already")
        if not faults:
            try:
                cycle = [member for member, _ in nx.find_cycle(self.nx)]
                faults.append("a scope cannot be its own superscope: " + " -> ".join([*cycle, cycle[0]]))
            except nx.NetworkXNoCycle:
                pass
        return faults

    # -- looking -----------------------------------------------------------------------------------------------

    @cached_property
    def nx(self) -> Any:
        """The graph itself, edges from members to superscopes."""
        made = nx.DiGraph()
        made.add_nodes_from(sorted({*self.components, *self.scopes}))
        made.add_edges_from(sorted(self.edges))
        return made

    def superscopes(self, name: str) -> list[str]:
        """super(X): the scopes that it directly belongs to."""
        return sorted(self.nx.successors(self._known(name)))

    def members(self, scope: str) -> list[str]:
        """What directly belongs to a scope."""
        return sorted(self.nx.predecessors(self._known(scope)))

    def above(self, name: str) -> frozenset[str]:
        """The reflexive-transitive superscopes."""
        return frozenset({self._known(name)} | nx.descendants(self.nx, name))

    def visible(self, one: str, other: str) -> bool:
        """v(X, Y): whether the two have a common superscope, each counting as its own.

        Reflexive and symmetric, not transitive.
        """
        return bool(self.above(one) & self.above(other))

    @cached_property
    def roots(self) -> frozenset[str]:
        """The maximal elements, which belong to nothing."""
        return frozenset(n for n in self.nx if self.nx.out_degree(n) == 0)

    def sessions(self, names: Iterable[str]) -> frozenset[str]:
        """Those of the names that are session scopes."""
        return frozenset(n for n in names if n in self.scopes and self.scopes[n].session)

    def admits(self, scope: str, context: frozenset[str]) -> bool:
        """Whether what is published in reaction to these sessions may go up into a scope (3.6).

        >>> one = graph("A->S", "A->T", scopes={"S": Scope(session=True), "T": Scope(session=True)})
        >>> one.admits("S", frozenset({"S"})), one.admits("T", frozenset({"S"})), one.admits("T", frozenset())
        (True, False, True)
        """
        return not (self.scopes[scope].session and context and scope not in context)

    @cached_property
    def plain(self) -> bool:
        """Whether visibility is all there is: no interface, mapping, session or policy."""
        return all(edge.plain for edge in self.edges.values()) and not any(
            scope.waits or scope.chooses or scope.session for scope in self.scopes.values()
        )

    def _known(self, name: str) -> str:
        if name not in self.nx:
            raise UpdateError(f"there is no component or scope {name!r}; {did_you_mean(str(name), map(str, self.nx))}")
        return name

    # -- changing: each gives a new graph -------------------------------------------------------------------------

    def _changed(self, **changes: Any) -> ScopeGraph:
        try:
            return replace(self, **changes)
        except ScenarioError as error:
            raise UpdateError(str(error)) from None

    def join(self, member: str, scope: str, edge: Edge | None = None) -> ScopeGraph:
        """A component or scope becomes a member; a new name is a new simple component. The security policy is asked.

        >>> floor = ScopeGraph(frozenset(), {"TF": Scope(security=Admitting(frozenset({"ME"})))})
        >>> floor.join("ME", "TF").members("TF")
        ['ME']
        >>> floor.join("Mallory", "TF")
        Traceback (most recent call last):
        workbench.errors.UpdateError: 'Mallory' may not join 'TF', which admits 'ME'
        """
        if scope not in self.scopes:
            if scope in self.components:
                raise UpdateError(f"{member} -> {scope}: {scope!r} is a simple component and cannot be a superscope")
            raise UpdateError(f"{member} -> {scope}: there is no scope {scope!r}; {did_you_mean(scope, self.scopes)}")
        security = self.scopes[scope].security
        if security is not None and not security.admits(member):
            admitted = ", ".join(map(repr, sorted(security.names))) or "nobody"
            raise UpdateError(f"{member!r} may not join {scope!r}, which admits {admitted}")
        new = {member} - {*self.components, *self.scopes}
        return self._changed(
            components=self.components | new, edges={**self.edges, (member, scope): edge or Edge()}
        )

    def leave(self, member: str, scope: str) -> ScopeGraph:
        """A member leaves a scope and stays in the graph."""
        if (member, scope) not in self.edges:
            known = ", ".join(map(repr, self.superscopes(member))) or "nothing"
            raise UpdateError(f"{member!r} is not a member of {scope!r}; it belongs to {known}")
        return self._changed(edges={e: given for e, given in self.edges.items() if e != (member, scope)})

    def without(self, name: str) -> ScopeGraph:
        """A component or scope goes, and all its memberships with it."""
        self._known(name)
        return self._changed(
            components=self.components - {name},
            scopes={n: s for n, s in self.scopes.items() if n != name},
            edges={e: given for e, given in self.edges.items() if name not in e},
        )

    def with_scope(self, name: str, scope: Scope | None = None, **attached: Any) -> ScopeGraph:
        """A new scope, or other policies for one that exists."""
        before = scope or self.scopes.get(name, Scope())
        return self._changed(scopes={**self.scopes, name: replace(before, **attached)})

    def with_edge(self, member: str, scope: str, **attached: Any) -> ScopeGraph:
        """Other interfaces or mappings for a membership."""
        if (member, scope) not in self.edges:
            raise UpdateError(f"{member!r} is not a member of {scope!r}")
        return self._changed(edges={**self.edges, (member, scope): replace(self.edges[member, scope], **attached)})

    def with_interface(
        self, member: str, *, input: Interface | None = None, output: Interface | None = None
    ) -> ScopeGraph:
        """The same interfaces for all memberships of a component or scope."""
        given: dict[str, Any] = {k: v for k, v in (("input", input), ("output", output)) if v is not None}
        edges = {e: replace(edge, **given) if e[0] == member else edge for e, edge in self.edges.items()}
        return self._changed(edges=edges)

    def __repr__(self) -> str:
        return (
            f"graph of {len(self.components)} components and {len(self.scopes)} scopes: "
            + ", ".join(f"{m} -> {s}" for m, s in sorted(self.edges))
        )


# -- making one --------------------------------------------------------------------------------------------------


def graph(*memberships: str | Membership, scopes: Iterable[str] | Mapping[str, Scope] = ()) -> ScopeGraph:
    """A graph of memberships, written ``"member->scope"`` or as pairs; what has no members is a simple component.

    >>> graph("ME->TF", "DB->TF")
    graph of 2 components and 1 scopes: DB -> TF, ME -> TF
    """
    pairs = [tuple(p.strip() for p in m.split("->")) if isinstance(m, str) else m for m in memberships]
    wrong = [p for p in pairs if len(p) != 2]
    if wrong:
        raise ScenarioError(f"{'->'.join(wrong[0])!r} is not a membership; write 'member->scope'")
    declared = dict(scopes) if isinstance(scopes, Mapping) else {name: Scope() for name in scopes}
    known = {**{scope: Scope() for _, scope in pairs}, **declared}
    components = {member for member, _ in pairs} - set(known)
    return ScopeGraph(frozenset(components), known, {(m, s): Edge() for m, s in pairs})
