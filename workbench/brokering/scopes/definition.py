"""Delivery by definition: every path is looked at (Scopes, 3.2 to 3.6).

A notification is delivered to a consumer iff there is a simple path in the graph of scopes that goes up from the
producer to an apex and down again to the consumer, whose crossed boundaries all let it pass, and a subscription of
the consumer matches the representation that arrives. Up an edge, out of a member: the publishing policy of the
member, the mapping, the output interface. Down an edge, into a member: the input interface, the mapping. The apex's
own boundary is not crossed. A path never goes down and up, and never back into what it left.

Made to be read beside the paper, with no cleverness at all: it is the judge of `adapters` and of `scoped`.

Sessions (3.6): the tag of a session scope travels in the envelope, where neither filters nor mappings see it. It is
put on where the notification comes to be in the scope and stripped where it goes out of it again, so a consumer
receives with the tags of the session scopes on the way down, the apex included. Those are its hidden context while
it reacts: what it publishes meanwhile goes up into a session scope, at any height, only if that is one of its
context; scopes without a tag are not affected.

Departure: "we do not address the important question of notification duplication" (footnote 2). Here a consumer
receives once for each distinct (notification, representation, session); of several ways with one outcome the
earliest counts.

Departure: 3.2 says "the path of visibility" as if there was one. With several superscopes there are several, and
one is enough.

Departure: 3.6 tags what is "published within" a session scope. What enters it from above is tagged too: its
consumer answers into the scope through which it was reached. Otherwise its answer would spread into all its other
sessions, which is the leak that session scopes are there to close.

Departure: v is reflexive, so a component that subscribes to what it publishes receives it, in no session and as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import networkx as nx

from workbench.brokering.scopes.graph import Scope, ScopeGraph
from workbench.brokering.scopes.interfaces import Content, Interface
from workbench.brokering.scopes.policies import BOTTOM_UP, TOP_DOWN

Context = frozenset[str]
NO_CONTEXT: Context = frozenset()


class Notification(NamedTuple):
    """What a producer publishes, when, and in reaction to which session."""

    id: Any
    producer: str
    content: Content
    context: Context = NO_CONTEXT
    t: int = 0


class Path(NamedTuple):
    """Up from the producer to the apex, and down from the apex to the consumer; both ends name the apex."""

    up: tuple[str, ...]
    down: tuple[str, ...]

    @property
    def consumer(self) -> str:
        return self.down[-1]

    def __repr__(self) -> str:
        return " ↑ ".join(self.up) + "".join(f" ↓ {name}" for name in self.down[1:])


class Step(NamedTuple):
    """What becomes of one representation at one boundary; ``after`` is None where it stops."""

    what: str
    edge: tuple[str, str]
    before: Content
    after: tuple[str, Content] | None


class Arrival(NamedTuple):
    """A representation that arrives over a path."""

    path: Path
    face: tuple[str, ...]
    content: Content
    session: Context
    t: int

    @property
    def way(self) -> tuple[tuple[str, ...], tuple[str, ...], Context]:
        """The way up, and what it makes of a notification: policies choose anew for each."""
        return (self.path.up, self.face, self.session)


class Delivery(NamedTuple):
    """What a consumer receives: a representation, in a session, at a time."""

    consumer: str
    content: tuple[tuple[str, Any], ...]
    session: Context
    t: int


def paths(graph: ScopeGraph, producer: str, consumer: str) -> list[Path]:
    """All simple paths up to an apex and down again.

    >>> from workbench.brokering.scopes.graph import graph
    >>> paths(graph("X->S", "Y->S", "S->R", "Y->R"), "X", "Y")
    [X ↑ S ↓ Y, X ↑ S ↑ R ↓ Y]
    """
    found = []
    for apex in sorted(graph.above(producer) & graph.above(consumer)):
        for up in _ways(graph, producer, apex):
            for way in _ways(graph, consumer, apex):
                if set(up) & set(way) == {apex}:
                    found.append(Path(up, way[::-1]))
    return sorted(found, key=lambda path: (len(path.up) + len(path.down), path))


def _ways(graph: ScopeGraph, start: str, end: str) -> list[tuple[str, ...]]:
    return [(start,)] if start == end else [tuple(way) for way in nx.all_simple_paths(graph.nx, start, end)]


class _State(NamedTuple):
    content: Content
    face: tuple[str, ...]
    t: int


def carry(graph: ScopeGraph, path: Path, notification: Notification) -> tuple[list[Arrival], list[Step]]:
    """What arrives over one path, and every step on it: one that stops has nothing after it."""
    steps: list[Step] = []
    states = [_State(notification.content, (), notification.t)]
    for member, scope in zip(path.up, path.up[1:], strict=False):
        states = [out for state in states for out in _out(graph, member, scope, state, notification.context, steps)]
    for scope, member in zip(path.down, path.down[1:], strict=False):
        states = [inside for state in states for inside in _in(graph, member, scope, state, steps)]
    session = graph.sessions(path.down[:-1])
    return [Arrival(path, s.face, s.content, session, s.t) for s in states], steps


def _out(
    graph: ScopeGraph, member: str, scope: str, state: _State, context: Context, steps: list[Step]
) -> Iterator[_State]:
    edge, where = graph.edges[member, scope], (member, scope)
    if not graph.admits(scope, context):
        steps.append(Step("session", where, state.content, None))
        return
    t = graph.scopes[member].publishing.release(state.t) if member in graph.scopes else state.t
    if t != state.t:
        steps.append(Step("publishing", where, state.content, None if t is None else (f"t = {t}", state.content)))
    if t is None:
        return
    for name, content in _mapped(edge.mapping_out, "mapping out", where, state.content, steps):
        passed = edge.output.lets(content)
        if edge.output.filters is not None:
            steps.append(Step("output", where, content, ("", content) if passed else None))
        if passed:
            yield _State(content, (*state.face, *name), t)


def _in(graph: ScopeGraph, member: str, scope: str, state: _State, steps: list[Step]) -> Iterator[_State]:
    edge, where = graph.edges[member, scope], (member, scope)
    passed = edge.input.lets(state.content)
    if edge.input.filters is not None:
        steps.append(Step("input", where, state.content, ("", state.content) if passed else None))
    if passed:
        for name, content in _mapped(edge.mapping_in, "mapping in", where, state.content, steps):
            yield _State(content, (*state.face, *name), state.t)


def _mapped(
    mapping: Any, what: str, where: tuple[str, str], content: Content, steps: list[Step]
) -> list[tuple[tuple[str, ...], Content]]:
    if mapping is None:
        return [((), content)]
    made = mapping(content)
    steps += [Step(what, where, content, one) for one in made] or [Step(what, where, content, None)]
    return [((name,), after) for name, after in made]


def arrivals(
    graph: ScopeGraph, notification: Notification, subscriptions: Mapping[str, Interface]
) -> list[Arrival]:
    """What arrives at consumers and matches a subscription of theirs, over all paths, before delivery policies."""
    return [
        arrival
        for consumer in sorted(subscriptions)
        for path in paths(graph, notification.producer, consumer)
        for arrival in carry(graph, path, notification)[0]
        if subscriptions[consumer].lets(arrival.content)
    ]


def selected(
    scopes: Mapping[str, Scope], found: Iterable[Arrival], key: Any, serving: Iterable[Arrival] = ()
) -> list[Arrival]:
    """What the traverse and delivery policies leave of what could be received (3.5).

    Each way up meets the policies of its apex, and each way down those of every scope on it. Where one is to be chosen
    of several, those that are being served go on.
    """
    listed = list(found)
    if not any(scope.chooses for scope in scopes.values()):
        return listed
    kept: list[Arrival] = []
    for way in dict.fromkeys(arrival.way for arrival in listed):
        here = [arrival for arrival in listed if arrival.way == way]
        going_on = frozenset(arrival.path.consumer for arrival in serving if arrival.way == way)
        kept += _down(scopes, way[0][-1], here, 0, key, going_on)
    return kept


def _down(
    scopes: Mapping[str, Scope], scope: str, here: list[Arrival], depth: int, key: Any, serving: frozenset[str]
) -> list[Arrival]:
    """What is received below a scope that stands at that depth of the ways down, and by the scope itself."""
    if scope not in scopes:
        return here
    itself = [arrival for arrival in here if arrival.path.consumer == scope]
    by_member: dict[str, list[Arrival]] = {}
    for arrival in here:
        if arrival.path.consumer != scope:
            by_member.setdefault(arrival.path.down[depth + 1], []).append(arrival)
    policy = scopes[scope]
    direct = {m: found for m, found in by_member.items() if m not in scopes}
    asked = {
        member: _down(scopes, member, found, depth + 1, key, serving)
        for member, found in by_member.items()
        if member in scopes
    }
    below = {m: found for m, found in asked.items() if found}
    if policy.traverse == TOP_DOWN:
        eligible = direct or below
    elif policy.traverse == BOTTOM_UP:
        eligible = below or direct
    else:
        eligible = {**direct, **below}
    members = sorted(eligible)
    if not members:
        return itself
    if policy.delivery.lasting:
        served = [m for m in members if any(a.path.consumer in serving for a in eligible[m])]
        members = served or members
    chosen = policy.delivery.choose(members, (scope, str(key)), eligible[members[0]][0].content)
    return itself + [arrival for member in chosen for arrival in eligible[member]]


def deliveries(
    graph: ScopeGraph, notification: Notification, subscriptions: Mapping[str, Interface]
) -> frozenset[Delivery]:
    """Who receives a notification: once for each distinct representation and session, as early as any way brings it."""
    kept = selected(graph.scopes, arrivals(graph, notification, subscriptions), notification.id)
    earliest: dict[tuple[str, Any, Context], int] = {}
    for arrival in kept:
        outcome = (arrival.path.consumer, tuple(sorted(arrival.content.items())), arrival.session)
        earliest[outcome] = min(arrival.t, earliest.get(outcome, arrival.t))
    return frozenset(Delivery(*outcome, t) for outcome, t in earliest.items())
