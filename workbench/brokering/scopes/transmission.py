"""Transmission policies as the last stage: timelines in, timelines out (Scopes, 3.5).

The engine says who could receive what and when; policies say who does, and when.

* publishing: what leaves a scope waits for its policy. A publication ``q1@+Prof`` that waits for Prof matched in
  [tau, pi) and is told of in [release(tau), release(pi)); where nothing is left of the time it vanishes. An event lives
  one instant, where it is released as where it is published.
* traverse and delivery: between two changes of who could receive a publication, the policies of the scopes on its ways
  are asked (`definition.selected`). Who is being served stays served as long as he could receive, so that a choice
  lasts for the whole of a match, and its end goes to whom its beginning went.

`scoped` hands this stage on with the scenario, and `replay` applies it instant by instant (`sending`), on every engine.
The names of the result say the mappings and the session, and no longer what was waited for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pandas as pd

from workbench.brokering.scopes.definition import Notification
from workbench.brokering.scopes.faces import Graphs, contents, face_of
from workbench.brokering.scopes.graph import ScopeGraph
from workbench.brokering.scopes.sending import FOREVER, Asked, Choice, Line, Sent, begun, released_at, step
from workbench.errors import ScenarioError
from workbench.model.clock import Clock
from workbench.model.columns import is_null
from workbench.model.pubsub import Population
from workbench.model.scenario import Scenario
from workbench.tables import timelines_frame

Published = Callable[[str, int], Notification]
"""What was published under a name, as it was at an instant."""
Row = tuple[Any, Any, int, int | None, str | None]


def _nobody(subscription: Any) -> Sequence[int]:
    return ()


def transmitted(
    timelines: pd.DataFrame,
    graph: Graphs,
    *,
    clock: Clock | None = None,
    until: Any = None,
    published: Published | None = None,
    consumer: Callable[[Any], str] = str,
    transient: Callable[[Any], bool] = lambda publication: False,
    removed: Callable[[Any], Sequence[int]] = _nobody,
) -> pd.DataFrame:
    """Timelines after the policies of a graph.

    ``published`` tells what a publication says, which traverse and delivery policies ask for (see `published_in`);
    ``consumer`` tells the component of a subscription by its name, ``removed`` when it was removed (in ticks), and
    ``transient`` which publications are events.

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
    last = FOREVER - 1 if until is None else clock.ticks(until)
    choosing = any(scope.chooses for _, g in graphs for scope in g.scopes.values())
    if choosing and published is None:
        raise ScenarioError("traverse and delivery policies ask what is published; give published=")
    groups: dict[Any, list[Line]] = {}
    for base, line in _lines(timelines, graphs, clock, transient, removed):
        groups.setdefault(base if choosing else line.pair, []).append(line)
    choice = Choice(lambda t: _at(graphs, t), published, consumer) if choosing and published is not None else None
    changes = [t for t, _ in graphs if choosing]
    rows: list[Row] = []
    for key, lines in groups.items():
        rows += _told(lines, None if choice is None else choice.of(key, key), changes, last)
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

    @property
    def ends(self) -> bool:
        """Whether it asks when subscriptions were removed: what waits does not reach them any more."""
        graphs = [self.graphs] if isinstance(self.graphs, ScopeGraph) else self.graphs.values()
        return any(scope.waits for graph in graphs for scope in graph.scopes.values())

    def key(self, publication: Any) -> str:
        """The publication without its face: choices are made for each publication by itself."""
        return face_of(publication)[0]

    def __call__(
        self, timelines: pd.DataFrame, tables: Mapping[str, pd.DataFrame], clock: Clock, until: int | None
    ) -> pd.DataFrame:
        """Timelines after the policies; ``tables`` are the rows that were replayed, with their time in ticks."""
        last = None if until is None else clock.shown(until)
        known = [p for p in self.given.subscriptions if p.rows in self.given.tables]
        consumer = components_in(self.given.subscriptions, {p.rows: tables[p.rows] for p in known})
        published = published_in(self.given, tables)
        events = {p.name for p in self.given.publications if p.transient}
        return transmitted(
            timelines, self.graphs, clock=clock, until=last, published=published, consumer=consumer,
            transient=lambda name: _named(self.given.publications, name)[0].name in events,
            removed=removals_in(self.given.subscriptions, tables, clock),
        )  # fmt: skip


    def behind(
        self, publication: Any, t: int, tables: Mapping[str, pd.DataFrame], clock: Clock
    ) -> list[tuple[Any, int, str]]:
        """The rows that are told of by a name, the instants that are told of at t, and what they waited for."""
        graphs = _by_instant(self.graphs, clock)
        population, _ = _named(self.given.publications, publication)
        frame = _rows(population, tables)
        prefix = f"{population.name}/" if len(self.given.publications) > 1 else ""
        rows = {f"{prefix}{id}": found for id, found in frame.groupby("id", sort=False)["t"]}
        instants = {name: [int(at) for at in rows[name].dropna()] if population.transient else [] for name in rows}
        return behind(publication, instants, lambda at: _at(graphs, at), t)


def behind(
    publication: Any, known: Mapping[str, Sequence[int]], graph: Callable[[int], ScopeGraph], t: int
) -> list[tuple[Any, int, str]]:
    """Of known rows those that are told of by a name: when what is told at t was published, and what was waited for.

    An event is known with its instants, because it may have waited for longer than the latest that is told of.
    """
    found = []
    for name, instants in known.items():
        base, face = face_of(name)
        scopes = graph(t).scopes
        if str(publication) not in (name, str(face._replace(waits=()).of(base))) or not set(face.waits) <= set(scopes):
            continue
        policies = [scopes[scope].publishing for scope in face.waits]
        at: int | None = t
        for policy in reversed(policies):
            at = None if at is None else policy.since(at)
        at = next((event for event in instants if released_at(event, policies) == t), at)
        if at is not None:
            waited = ", ".join(f"{scope} ({scopes[scope].publishing})" for scope in face.waits)
            found.append((name, at, waited))
    return found


def published_in(scenario: Scenario, tables: Mapping[str, pd.DataFrame]) -> Published:
    """What publications say, by name and as of an instant; one that is removed, what it said last."""
    rows = {
        population.name: {str(id): found for id, found in _rows(population, tables).groupby("id", sort=False)}
        for population in scenario.publications
    }

    @cache
    def versions(name: str) -> tuple[list[int], list[Notification]]:
        population, id = _named(scenario.publications, name)
        listed = rows[population.name][id].to_dict("records")
        instants: list[int] = []
        made: list[Notification] = []
        cells: dict[str, Any] = {}
        gone = False
        for row in sorted(listed, key=lambda row: -FOREVER if is_null(row["t"]) else row["t"]):
            instants.append(-FOREVER if is_null(row["t"]) else int(row["t"]))
            cells = {} if gone else dict(cells)
            gone = row["op"] == "remove"
            cells |= {k: v for k, v in row.items() if k not in ("t", "op") and not is_null(v)}
            said = {k: v for k, v in cells.items() if k not in ("id", "component", "context")}
            context = frozenset(str(cells.get("context", "")).split())
            made.append(Notification(name, str(cells.get("component", id)), contents(population, said), context))
        return instants, made

    def notification(name: str, t: int) -> Notification:
        instants, made = versions(name)
        return made[max(0, bisect_right(instants, t) - 1)]

    return notification


def removals_in(
    populations: Sequence[Population], tables: Mapping[str, pd.DataFrame], clock: Clock
) -> Callable[[Any], Sequence[int]]:
    """When clients were removed, in ticks, by their name: by a row that says so, or at the end of a lifetime."""
    found: dict[tuple[str, str], list[int]] = {}
    for p in populations:
        frame = _rows(p, tables)
        stay = None if p.stay is None else p.stay.in_ticks(clock.tick)
        if stay is None and not (frame["op"] == "remove").any():
            continue
        until: dict[str, int] = {}
        for id, t, op in frame[["id", "t", "op"]].sort_values("t", na_position="first").itertuples(index=False):
            ends = found.setdefault((p.name, str(id)), [])
            end = until.pop(str(id), FOREVER)
            if op == "remove":
                ends.append(min(end, int(t)))
            else:
                ends += [end] if not is_null(t) and end < t else []
                if stay is not None and not is_null(t):
                    until[str(id)] = int(t) + stay
        for id, end in until.items():
            found[p.name, id].append(end)

    def removals(name: Any) -> Sequence[int]:
        population, id = _named(populations, name)
        return found.get((population.name, id), ())

    return removals


def components_in(populations: Sequence[Population], tables: Mapping[str, pd.DataFrame]) -> Callable[[Any], str]:
    """The component of a client by its name, where the tables state one; else it is its own."""
    stated = {
        (p.name, str(id)): str(component)
        for p in populations
        if p.rows in tables and "component" in _rows(p, tables)
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


def _lines(
    timelines: pd.DataFrame,
    graphs: list[tuple[int, ScopeGraph]],
    clock: Clock,
    transient: Callable[[Any], bool],
    removed: Callable[[Any], Sequence[int]],
) -> Iterable[tuple[str, Line]]:
    """The lines that are released some time, each with its publication's name."""
    names = {str(name): name for name in timelines["publication"]}
    for row in timelines.itertuples():
        base, face = face_of(row.publication)
        shown, tau = face._replace(waits=()).of(names.get(base, base)), clock.ticks(row.tau)
        once = transient(row.publication)
        line = begun(shown, face, row.subscription, tau, _at(graphs, tau).scopes, once=once)
        if line is None:
            continue
        gone = min((t for t in removed(row.subscription) if t > tau), default=FOREVER)
        yield base, line if pd.isna(row.pi) else line.over(clock.ticks(row.pi), row.ended, gone)


def _told(lines: list[Line], asked: Asked | None, changes: Iterable[int], last: int) -> list[Row]:
    """What is told of lines that are looked at together, as rows of the table of timelines."""
    ends = {at for line in lines for at in (line.start, line.end)}
    coming = sorted(lines, key=lambda line: line.tau, reverse=True)
    rows: list[Row] = []
    since: dict[Any, int] = {}
    state = Sent()
    for t in sorted({*ends, *changes}):
        if not -FOREVER < t <= last:
            continue
        starting = []
        while coming and coming[-1].tau <= t:
            starting.append(coming.pop())
        state, changed = step(state._replace(lines=(*state.lines, *starting)), t, asked)
        rows += [(*line.pair, since.pop(line.pair), t, why) for line, why in changed.left]
        since |= {line.pair: t for line in changed.come}
    return rows + [(*pair, t, None, None) for pair, t in since.items()]
