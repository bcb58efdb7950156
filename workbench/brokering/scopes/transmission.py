"""Transmission policies as the last stage: timelines in, timelines out (Scopes, 3.5).

The engine says who could receive what and when; policies say who does, and when.

* publishing: what leaves a scope waits for its policy. A publication ``q1@+Prof`` that waits for Prof matched in
  [tau, pi) and is told of in [release(tau), release(pi)); where nothing is left of the time it vanishes.
* traverse and delivery: between two changes of who could receive a publication, the policies of the scopes on its ways
  are asked (`definition.selected`). Who is being served stays served as long as he could receive, so that a choice
  lasts for the whole of a match, and its end goes to whom its beginning went.

`scoped` hands this stage on with the scenario, and `replay` applies it, on every engine.

What arrives in several ways is told once: of the same match the earliest way counts, and matches that differ and
overlap are one. The names of the result say the mappings and the session, and no longer what was waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import pandas as pd

from workbench.brokering.scopes.definition import Arrival, Notification, carry, paths, selected
from workbench.brokering.scopes.faces import Face, Graphs, contents, face_of
from workbench.brokering.scopes.graph import ScopeGraph
from workbench.brokering.scopes.routes import waits_of
from workbench.errors import ScenarioError
from workbench.model.clock import Clock
from workbench.model.columns import is_null
from workbench.model.pubsub import Population
from workbench.model.scenario import Scenario
from workbench.tables import timelines_frame

FOREVER = 2**62
Published = Callable[[str, int], Notification]
"""What was published under a name, as it was at an instant."""


class Line(NamedTuple):
    """A timeline in ticks, by the publication and the face that it shows."""

    publication: Any
    base: str
    face: Face
    subscription: Any
    tau: int
    pi: int
    ended: str | None
    match: tuple[int, int]
    """the time that the engine gave it, which tells one match from another"""


def transmitted(
    timelines: pd.DataFrame,
    graph: Graphs,
    *,
    clock: Clock | None = None,
    until: Any = None,
    published: Published | None = None,
    consumer: Callable[[Any], str] = str,
) -> pd.DataFrame:
    """Timelines after the policies of a graph.

    ``published`` tells what a publication says, which traverse and delivery policies ask for (see `published_in`);
    ``consumer`` tells the component of a subscription by its name.

    >>> from workbench.brokering.scopes.graph import graph
    >>> from workbench.brokering.scopes.policies import Delayed
    >>> market = graph("TF->Prof", "Prof->Private").with_scope("Prof", publishing=Delayed(900))
    >>> told = timelines_frame([("q1", "C3", 60, 61, "unmatch"), ("q1@+Prof", "C1", 60, None, None)], Clock())
    >>> transmitted(told, market)
      publication subscription  tau    pi    ended
    0          q1           C3   60    61  unmatch
    1          q1           C1  960  <NA>     None
    """
    clock = clock or Clock()
    graphs = _by_instant(graph, clock)
    last = FOREVER if until is None else clock.ticks(until)
    lines = [released for line in _lines(timelines, clock) if (released := _released(line, graphs, last)) is not None]
    if any(scope.chooses for _, g in graphs for scope in g.scopes.values()):
        if published is None:
            raise ScenarioError("traverse and delivery policies ask what is published; give published=")
        lines = [kept for base in _grouped(lines).values() for kept in _served(base, graphs, published, consumer)]
    rows = [
        (line.publication, line.subscription, line.tau, None if line.pi >= FOREVER else line.pi, line.ended)
        for line in _once(lines)
    ]
    return timelines_frame(rows, clock)


@dataclass(frozen=True)
class Transmission:
    """The last stage of a replay under a graph with policies: see `Scenario.stage`."""

    given: Scenario
    graphs: Graphs

    @property
    def together(self) -> str | None:
        """Why the timelines of a publication have to be looked at together, or None where each is for itself."""
        graphs = [self.graphs] if isinstance(self.graphs, ScopeGraph) else self.graphs.values()
        choosing = [name for graph in graphs for name, scope in graph.scopes.items() if scope.chooses]
        return f"scope {min(choosing)!r} chooses among all who could receive" if choosing else None

    def __call__(
        self, timelines: pd.DataFrame, tables: Mapping[str, pd.DataFrame], clock: Clock, until: int | None
    ) -> pd.DataFrame:
        """Timelines after the policies; ``tables`` are the rows that were replayed, with their time in ticks."""
        last = None if until is None else clock.shown(until)
        consumer = components_in(self.given.subscriptions, tables)
        published = published_in(self.given, tables)
        return transmitted(timelines, self.graphs, clock=clock, until=last, published=published, consumer=consumer)


def published_in(scenario: Scenario, tables: Mapping[str, pd.DataFrame]) -> Published:
    """What publications say, by name and as of an instant."""
    rows = {
        population.name: {str(id): found for id, found in _rows(population, tables).groupby("id", sort=False)}
        for population in scenario.publications
    }

    def notification(name: str, t: int) -> Notification:
        population, id = _named(scenario.publications, name)
        cells: dict[str, Any] = {}
        for row in rows[population.name][id].to_dict("records"):
            if is_null(row["t"]) or row["t"] <= t:
                cells |= {k: v for k, v in row.items() if k not in ("t", "op") and not is_null(v)}
        context = frozenset(str(cells.pop("context", "")).split())
        return Notification(name, str(cells.pop("component", id)), contents(population, cells), context)

    return notification


def components_in(populations: Sequence[Population], tables: Mapping[str, pd.DataFrame]) -> Callable[[Any], str]:
    """The component of a client by its name."""
    stated = {
        (p.name, str(id)): str(component)
        for p in populations
        if "component" in _rows(p, tables)
        for id, component in _rows(p, tables)[["id", "component"]].dropna().itertuples(index=False)
    }

    def component(name: Any) -> str:
        population, id = _named(populations, name)
        return stated.get((population.name, id), id)

    return component


def _rows(population: Population, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    if population.single:
        return pd.DataFrame({"id": [population.name], "t": [None], "op": [None]})
    return tables[population.rows]


def _named(populations: Sequence[Population], name: Any) -> tuple[Population, str]:
    """The population and the id of a name: ids are prefixed where a side has several populations."""
    if len(populations) == 1:
        return populations[0], str(name)
    label, _, id = str(name).partition("/")
    return next(p for p in populations if p.name == label), id or label


# -- steps ----------------------------------------------------------------------------------------------------------


def _by_instant(graph: Graphs, clock: Clock) -> list[tuple[int, ScopeGraph]]:
    if isinstance(graph, ScopeGraph):
        return [(-FOREVER, graph)]
    return [(-FOREVER if t is None else clock.ticks(t), g) for t, g in graph.items()]


def _at(graphs: list[tuple[int, ScopeGraph]], t: int) -> ScopeGraph:
    return [g for begin, g in graphs if begin <= t][-1]


def _lines(timelines: pd.DataFrame, clock: Clock) -> Iterable[Line]:
    names = {str(name): name for name in timelines["publication"]}
    for row in timelines.itertuples():
        base, face = face_of(row.publication)
        pi = FOREVER if pd.isna(row.pi) else clock.ticks(row.pi)
        shown = face._replace(waits=()).of(names.get(base, base))
        tau = clock.ticks(row.tau)
        yield Line(shown, base, face, row.subscription, tau, pi, row.ended, (tau, pi))


def _released(line: Line, graphs: list[tuple[int, ScopeGraph]], last: int) -> Line | None:
    """The time after the publishing policies that it waits for; None where nothing is left of it."""
    tau: int | None = line.tau
    pi: int | None = line.pi
    policies = _at(graphs, line.tau).scopes
    for scope in line.face.waits:
        tau = None if tau is None else policies[scope].publishing.release(tau)
        pi = pi if pi is None or pi >= FOREVER else policies[scope].publishing.release(pi)
    pi = FOREVER if pi is None or pi > last else pi
    if tau is None or tau >= pi or tau > last:
        return None
    return line._replace(tau=tau, pi=pi, ended=None if pi >= FOREVER else line.ended)


def _grouped(lines: Iterable[Line]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.base, []).append(line)
    return found


def _served(
    lines: list[Line],
    graphs: list[tuple[int, ScopeGraph]],
    published: Published,
    consumer: Callable[[Any], str],
) -> list[Line]:
    """The parts of one publication's timelines during which policies let them through."""
    cuts = sorted({end for line in lines for end in (line.tau, line.pi)} | {t for t, _ in graphs})
    kept: list[Line] = []
    serving: list[Arrival] = []
    for start, end in pairwise(cuts):
        active = [line for line in lines if line.tau <= start < line.pi]
        if not active:
            serving = []
            continue
        graph = _at(graphs, start)
        found = _arrivals(graph, published(active[0].base, start), active, consumer)
        serving = selected(graph, (arrival for arrival, _ in found), active[0].base, serving)
        lucky = {id(arrival) for arrival in serving}
        through = list(dict.fromkeys(line for arrival, line in found if id(arrival) in lucky))
        for line in through:
            ended = line.ended if end == line.pi else "unmatch"
            before = next((k for k, part in enumerate(kept) if part.pi == start and _same(part, line)), None)
            if before is None:
                kept.append(line._replace(tau=start, pi=end, ended=ended))
            else:
                kept[before] = kept[before]._replace(pi=end, ended=ended)
    return [line._replace(ended=None) if line.pi >= FOREVER else line for line in kept]


def _same(part: Line, line: Line) -> bool:
    """Whether a part that ended belongs to the same match."""
    return part[:4] == line[:4] and part.pi > line.tau


def _arrivals(
    graph: ScopeGraph, notification: Notification, active: list[Line], consumer: Callable[[Any], str]
) -> list[tuple[Arrival, Line]]:
    """The ways over which the active lines came, each with its line."""
    found = []
    for line in active:
        ways = paths(graph, notification.producer, consumer(line.subscription))
        came = [arrival for path in ways for arrival in carry(graph, path, notification)[0]]
        shown = [arrival.content for arrival in came if arrival.face == line.face.mappings]
        found += [
            (arrival, line)
            for arrival in came
            if arrival.session == line.face.session
            and arrival.content in shown
            and waits_of(graph, arrival.path.up) == line.face.waits
        ]
    return found


def _once(lines: Iterable[Line]) -> list[Line]:
    """What arrives in several ways, once: the same match by its earliest way, of others the union of their times."""
    merged: list[Line] = []
    latest: dict[tuple[Any, Any], int] = {}
    known: set[tuple[Any, ...]] = set()
    for line in sorted(lines, key=lambda line: (line.tau, line.pi)):
        key = (line.publication, line.subscription)
        if (*key, line.match) in known:
            continue
        known.add((*key, line.match))
        k = latest.get(key)
        before = None if k is None else merged[k]
        other_way = before is not None and before.face != line.face
        if before is not None and (line.tau < before.pi or (line.tau == before.pi and other_way)):
            assert k is not None
            if line.pi > before.pi:
                merged[k] = before._replace(pi=line.pi, ended=line.ended)
            continue
        latest[key] = len(merged)
        merged.append(line)
    return merged

