"""Random graphs of scopes: diamonds, interfaces, mappings and sessions, and notifications to send through them."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
from hypothesis import strategies as st

from workbench.brokering.scopes.definition import Notification
from workbench.brokering.scopes.graph import Edge, Scope, ScopeGraph
from workbench.brokering.scopes.interfaces import OPEN, Interface, interface, passes
from workbench.brokering.scopes.mappings import EventMapping
from workbench.model import (
    Scenario,
    Space,
    at_least,
    below,
    column,
    other,
    own,
    publications,
    region,
    subscriptions,
)
from workbench.replay import Replay, replay

COMPONENTS = ("a", "b", "c", "d")
SCOPES = ("P", "Q", "R", "S", "T")
KINDS = ("k", "l")


def _double(said: Any) -> Any:
    return {**said, "n": said["n"] * 2}


def _relabelled(said: Any) -> Any:
    return {**said, "kind": "k" if said["kind"] == "l" else "l"}


def _halved(said: Any) -> Any:
    return {**said, "n": said["n"] // 2} if said["n"] % 2 == 0 else None


def _both(said: Any) -> Any:
    return [said, {**said, "n": said["n"] + 1}]


MAPPINGS = tuple(
    EventMapping(name, function)
    for name, function in {"double": _double, "relabel": _relabelled, "halve": _halved, "both": _both}.items()
)
FILTERS = (
    passes(kind="k"),
    passes(kind="l"),
    passes(n=below(4)),
    passes(n=at_least(3)),
    passes(kind="k", n=at_least(2)),
)

interfaces: st.SearchStrategy[Interface] = st.one_of(
    st.just(OPEN), st.lists(st.sampled_from(FILTERS), max_size=2).map(lambda chosen: interface(*chosen))
)
mappings = st.one_of(st.none(), st.none(), st.sampled_from(MAPPINGS))
plain_edges = st.just(Edge())
rich_edges = st.builds(Edge, output=interfaces, input=interfaces, mapping_out=mappings, mapping_in=mappings)
open_edges = st.builds(Edge, mapping_out=mappings, mapping_in=mappings)
filtered_edges = st.builds(Edge, output=interfaces, input=interfaces)


@st.composite
def graphs(
    draw: st.DrawFn, edges: st.SearchStrategy[Edge] = plain_edges, sessions: bool = False, dense: bool = False
) -> ScopeGraph:
    """A graph over the names above; a scope may belong to any scope that stands after it, so diamonds are common."""
    memberships = {}
    wanted = st.integers(0, 2 if dense else 1).map(bool) if dense else st.booleans()
    for k, name in enumerate((*COMPONENTS, *SCOPES)):
        for scope in SCOPES[max(0, k - len(COMPONENTS) + 1) :]:
            if draw(wanted):
                memberships[name, scope] = draw(edges)
    scopes = {name: Scope(session=sessions and draw(st.booleans())) for name in SCOPES}
    return ScopeGraph(frozenset(COMPONENTS), scopes, memberships)


contents = st.fixed_dictionaries({"kind": st.sampled_from(KINDS), "n": st.integers(0, 6)})


@st.composite
def contexts(draw: st.DrawFn, made: ScopeGraph) -> frozenset[str]:
    tagged = sorted(made.sessions(made.scopes))
    return frozenset(draw(st.lists(st.sampled_from(tagged), max_size=2))) if tagged else frozenset()


def open_sessions(made: ScopeGraph) -> ScopeGraph:
    """The same graph without tags."""
    return replace(made, scopes={n: replace(s, session=False) for n, s in made.scopes.items()})


event = Space("event", kind=str, n=int)
said = region(event, kind=column.kind, n=column.n)


def events(rows: Any, consumers: Any = COMPONENTS) -> Scenario:
    """Everybody hears of every event whose kind is among those wanted."""
    wishes = pd.DataFrame([{"id": c, "wish": ("k", "l")} for c in consumers])
    return Scenario(
        [event],
        [publications("events", rows="events", regions={"said": said}, transient=True)],
        [
            subscriptions(
                "consumers",
                rows="consumers",
                regions={"wish": region(event, kind=column.wish)},
                filter=own.wish.contains(other.said, space=event),
            )
        ],
        tables={"events": pd.DataFrame(rows), "consumers": wishes},
    )


def standing(rows: Any, consumers: Any = "UXYZ") -> Scenario:
    """The same where events last: what is published stands until it is changed or removed."""
    made = events(rows, consumers)
    (population,) = made.publications
    return Scenario(
        made.spaces,
        [publications("events", rows="events", regions=dict(population.regions))],
        made.subscriptions,
        tables=made.tables,
    )


def told(scenario: Scenario, engine: str, **options: Any) -> Replay:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return replay(scenario, None, engine=engine, **options)


def notification(row: Mapping[str, Any]) -> Notification:
    content = {"kind": row["kind"], "n": row["n"]}
    return Notification(row["id"], row["component"], content, frozenset((row["context"] or "").split()))


def world_of(draw: random.Random) -> tuple[ScopeGraph, list[dict[str, Any]]]:
    """A graph with diamonds, interfaces, mappings and sessions, and a few events, by plain chance."""

    def boundary() -> Interface:
        return draw.choice([OPEN, OPEN, *(interface(f) for f in FILTERS), interface(*draw.sample(FILTERS, 2))])

    def mapping() -> EventMapping | None:
        return draw.choice([None, None, *MAPPINGS])

    above = {name: SCOPES[max(0, k - len(COMPONENTS) + 1) :] for k, name in enumerate((*COMPONENTS, *SCOPES))}
    edges = {
        (name, scope): Edge(boundary(), boundary(), mapping(), mapping())
        for name, scopes in above.items()
        for scope in scopes
        if draw.random() < 0.5
    }
    scopes = {name: Scope(session=draw.random() < 0.4) for name in SCOPES}
    made = ScopeGraph(frozenset(COMPONENTS), scopes, edges)
    contexts = [None, None, *sorted(made.sessions(made.scopes))]
    rows = [
        {"id": f"e{t}", "t": t, "component": draw.choice([*COMPONENTS, "P", "S"]), "context": draw.choice(contexts),
         "kind": draw.choice(KINDS), "n": draw.randrange(7)}
        for t in (1, 2, 3)
    ]  # fmt: skip
    return made, rows


def beside(graphs: Iterable[ScopeGraph]) -> ScopeGraph:
    """Graphs beside each other in one: names carry the number of their graph."""
    components: set[str] = set()
    scopes: dict[str, Scope] = {}
    edges: dict[tuple[str, str], Edge] = {}
    for k, made in enumerate(graphs):
        components |= {f"{name}.{k}" for name in made.components}
        scopes |= {f"{name}.{k}": scope for name, scope in made.scopes.items()}
        edges |= {(f"{member}.{k}", f"{scope}.{k}"): edge for (member, scope), edge in made.edges.items()}
    return ScopeGraph(frozenset(components), scopes, edges)
