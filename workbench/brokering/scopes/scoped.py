"""A scenario under a graph of scopes is a scenario (Scopes, 3.1: visibility and matching are orthogonal).

`scoped(scenario, graph)` rewrites nobody's publications or subscriptions. It adds hidden regions and tables, so that
every engine, `explain` and the live broker work on the result as on any scenario:

* Visibility is overlap in a hidden dimension ``@scope`` whose values are places in the graph (`routes`): a publication
  holds the places that it reaches, a subscription those that it belongs to.
* Interfaces join the filters of the publications: all along a route, any of the routes. Routes with the same
  interfaces share a hidden region (``@out0`` meets none, ``@out1`` ...), so there is a disjunct for each set
  of interfaces and not for each path.
* Membership is rows of a hidden table of profiles (``quotes@scopes``), and a change of the graph is update rows of it:
  joining and leaving are transitions like any other.
* What a route changes (a mapping, a session tag, the wait for a publishing policy) is a derived publication, a row
  ``id@face``. Its cells are mapped and its interfaces evaluated when the rows are made, because they apply to what
  the notification is at that point of its way.

* Transmission policies are the last stage of a replay (`transmission`).

A face (`faces`) says the mappings, the scopes whose publishing policies are waited for, and the session; those with the
same content and session are one.

Who publishes: a row is its own component, unless its table has a column ``component``; a column ``context`` names the
sessions (separated by blanks) in reaction to which it is published. A row whose component is not in the graph
is seen by nobody.

Third parties: nearest, any region and their histories (tau, pi, aggregates) see what the one who looks may see, and
nothing else; between two of the same role that is visibility alone. `Scenario.visibility` says it to the engine.

Where there are faces, the ids of a table are text: ``7`` stands beside ``7@euro`` in one column.

Scopes publish; where there is more than visibility they do not subscribe here, and are refused by name: what comes to
a scope from its own members and what comes into it from above are told apart by `definition` and `live.EventService`.

Derived publications need rows: the table has to be among the scenario's own (`Scenario.tables`), fixes and places come
later and are refused where a route changes something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import pandas as pd

from workbench.brokering.scopes.adapters import visible_roots
from workbench.brokering.scopes.definition import Context
from workbench.brokering.scopes.faces import Face, Graphs, contents, face_of
from workbench.brokering.scopes.graph import ScopeGraph
from workbench.brokering.scopes.interfaces import Content, Interface, Passing
from workbench.brokering.scopes.routes import NOWHERE, Route, routes, tokens_of
from workbench.brokering.scopes.transmission import Transmission
from workbench.errors import ScenarioError
from workbench.model.columns import column, is_null
from workbench.model.filters import Comparison, Dimension, Filter, Match, Var, everything
from workbench.model.pubsub import Population
from workbench.model.regions import Region
from workbench.model.relations import Nearest
from workbench.model.scenario import Scenario
from workbench.model.spaces import Space
from workbench.tables import Rows, read

SCOPES = Space("@scopes", {"@scope": str})
COMPONENTS = Space("@components", {"@component": str})
ROOTS = Space("@roots", {"@root": str})
NOT_SAID = ("id", "t", "op", "component", "context")
"""Columns that say whose row it is and when, and nothing that interfaces and mappings see."""
Guards = frozenset[Interface]
Known = list[tuple[Any, ScopeGraph, list[Route]]]
"""Graphs by instant, and the routes of one producer in each."""


def profiles_of(population: Population) -> str:
    """The hidden table that says what the clients of a population belong to.

    >>> from workbench.model import location, publication, region
    >>> profiles_of(publication("cafe", regions=dict(site=region(location, position=(0, 0)))))
    'cafe@scopes'
    """
    return f"{population.name}@scopes"


class Version(NamedTuple):
    """A publication from one instant on: the row's operation (None where only the graph changes), and its faces."""

    t: int | None
    op: str | None
    shows: Mapping[Face, tuple[Content, set[str]]]
    graph: ScopeGraph
    routes: list[Route]


def scoped(scenario: Scenario, graph: Graphs) -> Scenario:
    """The scenario in which everybody sees what the graph lets them see.

    >>> from workbench.brokering.scopes.graph import graph
    >>> from workbench.replay import replay
    >>> from workbench.scenarios.proximity import scenario
    >>> fixes = {"mobile": ["X", "Y"], "t": [1, 1], "x": [0.0, 0.0], "y": [0.0, 0.0]}
    >>> near = scoped(scenario(), graph("X->S", "cafe->S", "Y->T"))
    >>> replay(near, fixes, {"place": ["cafe"], "x": [0.0], "y": [0.0]}, engine="reference").timelines
      publication subscription  tau    pi ended
    0        cafe            X    1  <NA>  None
    """
    return _Scoped.of(scenario, graph).scenario


@dataclass(frozen=True)
class _Scoped:
    given: Scenario
    graphs: tuple[tuple[Any, ScopeGraph], ...]
    rows: Mapping[str, Rows]

    @staticmethod
    def of(scenario: Scenario, graph: Graphs) -> _Scoped:
        graphs = ((None, graph),) if isinstance(graph, ScopeGraph) else tuple(graph.items())
        if not graphs:
            raise ScenarioError("a scenario is scoped by a graph, or by graphs by the instant from which they hold")
        names = {p.rows for p in scenario.populations if p.rows in scenario.tables}
        return _Scoped(scenario, graphs, {name: read(scenario.tables[name], name) for name in sorted(names)})

    # -- the scenario --------------------------------------------------------------------------------------------

    @property
    def scenario(self) -> Scenario:
        guards = {population.name: self.guards(population) for population in self.given.publications}
        hidden = {population.name: self.subscribed(population) for population in self.given.subscriptions}
        tables: dict[str, Any] = {}
        for population in self.given.publications:
            derived, hidden[population.name] = self.published(population, guards[population.name])
            if derived is not None:
                self.alone(population)
                tables[population.rows] = derived
        tables |= {profiles_of(p): self.joined(p, hidden[p.name]) for p in self.given.populations}
        made = with_hidden_regions(self.given, guards, tables)

        def filled(population: Population) -> Population:
            """A single one has no row that a profile could join: what it belongs to is written into it."""
            if not population.single:
                return population
            if len(self.graphs) > 1:
                raise ScenarioError(f"{population.name!r} is single and cannot change its scopes; give it rows=")
            known = {row["id"]: row for row in hidden[population.name]}[population.name]
            return replace(population, profiles=None, regions=tuple((n, r.fill(known)) for n, r in population.regions))

        policies = any(scope.waits or scope.chooses for _, g in self.graphs for scope in g.scopes.values())
        return replace(
            made,
            stage=Transmission(self.given, dict(self.graphs)) if policies else None,
            publications=[filled(population) for population in made.publications],
            subscriptions=[filled(population) for population in made.subscriptions],
        )

    def alone(self, population: Population) -> None:
        """Refuse derived rows in a table that others read too: they would be subscriptions or profiles there."""
        others = [p.name for p in self.given.populations if p != population and population.rows in (p.rows, p.profiles)]
        if others:
            raise ScenarioError(
                f"{population.name!r} needs derived publications, and {', '.join(map(repr, others))} read the same "
                f"table {population.rows!r}; give the publications a table of their own"
            )

    def joined(self, population: Population, rows: list[dict[str, Any]]) -> pd.DataFrame:
        """The hidden rows, with those of the profiles that the population had already."""
        frame = pd.DataFrame(rows)
        if population.profiles is None:
            return frame
        if population.profiles not in self.given.tables:
            raise ScenarioError(
                f"{population.name!r} joins profiles {population.profiles!r}, which come later; "
                "give them with the scenario (tables=)"
            )
        before = read(self.given.tables[population.profiles], population.profiles)
        old = before.frame.drop(columns="op")
        old = old.assign(t=before.clock.column(old["t"])) if before.clock else old.drop(columns="t")
        derived = [(name, face_of(name)[0]) for name in frame["id"].unique() if "@" in str(name)]
        copies = [old[old["id"].astype(str) == base].assign(id=name) for name, base in derived]
        return pd.concat([frame, old, *copies], ignore_index=True)

    # -- who belongs to what ---------------------------------------------------------------------------------------

    def clients(self, population: Population) -> list[tuple[Any, str, Context]]:
        """The clients of a population, each with its component and its context; graph members where rows come later."""
        if population.single:
            return [(population.name, population.name, frozenset())]
        if population.rows not in self.rows:
            names = sorted({name for _, graph in self.graphs for name in graph.nx})
            return [(id, name, frozenset()) for name in names for id in _ids(name)]
        frame = self.rows[population.rows].frame
        found = []
        for id, rows in frame.groupby("id", sort=False):
            stated = {n: rows[n].dropna() for n in ("component", "context") if n in frame.columns}
            first = {n: str(cells.iloc[0]) for n, cells in stated.items() if len(cells)}
            found.append((id, first.get("component", str(id)), frozenset(first.get("context", "").split())))
        return found

    def subscribed(self, population: Population) -> list[dict[str, Any]]:
        """The hidden rows of subscriptions."""
        later = not population.single and population.rows not in self.rows
        return [
            {**_at(t), "id": id, **subscription_cells(graph, component)}
            for id, component, _ in self.clients(population)
            for t, graph in self.graphs
            if not (later and component in graph.scopes)  # whether there will be one of that name, nobody knows
        ]

    # -- publications ------------------------------------------------------------------------------------------------

    def guards(self, population: Population) -> list[Guards]:
        """The sets of interfaces that routes of a population meet; the first is empty."""
        found: dict[Guards, None] = {frozenset(): None}
        for _, component, context in self.clients(population):
            for _, graph in self.graphs:
                found |= dict.fromkeys(r.guards for r in routes(graph, component, context) if not r.changes)
        return [g for g in found if _accepted(population, g) is not None]

    def published(
        self, population: Population, guards: Sequence[Guards]
    ) -> tuple[pd.DataFrame | None, list[dict[str, Any]]]:
        """The table with derived publications (None where there are none), and the hidden rows."""
        hidden: list[dict[str, Any]] = []
        derived: list[dict[str, Any]] = []
        changing = False
        for id, component, context in self.clients(population):
            known = [(t, graph, routes(graph, component, context)) for t, graph in self.graphs]
            if not any(route.changes for _, _, found in known for route in found):
                for t, graph, found in known:
                    hidden.append({**_at(t), "id": id, **publication_cells(graph, component, found, guards)})
                continue
            if population.rows not in self.rows:
                if population.rows and id not in {name for _, g in self.graphs for name in g.components}:
                    continue  # a scope, or the other spelling of an id: no row of that name is expected
                raise ScenarioError(
                    f"{population.name!r} needs derived publications ({component!r} publishes through a mapping, a "
                    "session or a publishing policy); its rows have to be a table of the scenario (tables=)"
                )
            changing = True
            rows, cells = self.faces(population, id, component, known, guards)
            derived += rows
            hidden += cells
        if not changing:
            return None, hidden
        source = _shown(self.rows[population.rows])
        table = pd.concat([source.assign(id=source["id"].astype(str)), pd.DataFrame(derived)], ignore_index=True)
        return table, [{**row, "id": str(row["id"])} for row in hidden]

    def faces(
        self, population: Population, id: Any, component: str, known: Known, guards: Sequence[Guards]
    ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The derived rows of one publication, and the hidden rows of all its faces, version by version."""
        clock = self.rows[population.rows].clock
        versions = self.versions(population, id, known)
        faces = sorted({face for version in versions for face in version.shows} - {Face()}, key=str)
        derived: list[dict[str, Any]] = []
        hidden: list[dict[str, Any]] = []
        for version in versions:
            at = {} if version.t is None else {"t": clock.shown(version.t) if clock else version.t}
            _, back = version.shows.get(Face(), ({}, set()))
            plain = [route for route in version.routes if not route.changes]
            hidden.append({**at, "id": id, **publication_cells(version.graph, component, plain, guards, back)})
            for face in faces:
                cells, tokens = version.shows.get(face, ({}, set()))
                seen = publication_cells(version.graph, component, [], guards, tokens, derived=True)
                hidden.append({**at, "id": face.of(id), **seen})
                if version.op is not None or cells:
                    derived.append({**at, "id": face.of(id), "op": version.op or None, **cells})
        return derived, hidden

    def versions(self, population: Population, id: Any, known: Known) -> list[Version]:
        """A row after each of its updates and each change of the graph: what it is, and what routes make of it."""
        source = self.rows[population.rows]
        ticks = source.clock.ticks if source.clock else int
        rows = {
            None if is_null(row["t"]) else int(row["t"]): row
            for row in source.frame[source.frame["id"] == id].to_dict("records")
        }
        began = [(None if t is None else ticks(t), graph, found) for t, graph, found in known]
        # An event lives one instant: it meets the graph of that instant, and a change of the graph is no new event.
        instants = {*rows, *([] if population.transient else [t for t, _, _ in began])}
        cells: dict[str, Any] = {}
        alive = False
        made = []
        for t in sorted(instants, key=lambda t: (t is not None, t)):
            row = rows.get(t)
            if row is not None:
                alive = row["op"] != "remove" and (alive or row["op"] != "update")
                given = {k: v for k, v in row.items() if k not in NOT_SAID and not is_null(v)}
                cells = {**cells, **given} if alive else {}
            now = [(graph, found) for at, graph, found in began if at is None or (t is not None and at <= t)]
            graph, found = now[-1] if now else (ScopeGraph(frozenset(), {}), [])
            changing = [route for route in found if route.changes] if alive else []
            shows = evaluated(changing, cells, lambda said: contents(population, said))
            made.append(Version(t, None if row is None else row["op"] or "", shows, graph, found))
        return made


def with_hidden_regions(
    scenario: Scenario, guards: Mapping[str, Sequence[Guards]], tables: Mapping[str, Any]
) -> Scenario:
    """The scenario whose filters ask hidden regions too, which ``tables`` fill.

    ``guards`` are, for each population that publishes, the sets of interfaces that join its filter.
    """
    publications, subscriptions = [], []
    visibility: dict[str, Filter] = {"": Var("own", "@visible").overlaps(Var("other", "@visible"), space=ROOTS)}
    roots = ("@visible", Region(ROOTS, (("@root", column["@visible"]),)))
    for population in scenario.publications:
        met = guards[population.name]
        visibility[population.name] = visible = _visible(population, met)
        out = [(f"@out{k}", Region(SCOPES, (("@scope", column[f"@out{k}"]),))) for k in range(len(met))]
        regions = (*population.regions, *out, _who("@who"), roots)
        hidden = replace(population, regions=regions, profiles=profiles_of(population))
        publications.append(replace(hidden, filter=population.filter & visible))
    for population in scenario.subscriptions:
        into = ("@in", Region(SCOPES, (("@scope", column["@in"]),)))
        regions = (*population.regions, into, _who("@me"), roots)
        subscriptions.append(replace(population, regions=regions, profiles=profiles_of(population)))
    return replace(
        scenario,
        spaces=(*scenario.spaces, SCOPES, COMPONENTS, ROOTS),
        publications=publications,
        subscriptions=subscriptions,
        tables={**scenario.tables, **tables},
        name=f"scoped {scenario.name}",
        visibility=visibility if _looks_at_others(scenario) else {},
    )


# -- cells of the hidden tables -------------------------------------------------------------------------------------


def subscription_cells(graph: ScopeGraph, component: str) -> dict[str, Any]:
    """What a subscription's row says about its component."""
    if component in graph.scopes and not graph.plain:
        raise ScenarioError(
            f"the consumer {component!r} is a scope; under interfaces, mappings, sessions and policies only simple "
            "components subscribe in a scenario (see EventService)"
        )
    return {"@in": tuple(tokens_of(graph, component)), "@me": component, "@visible": _roots(graph, component)}


def publication_cells(
    graph: ScopeGraph,
    component: str,
    found: Iterable[Route],
    guards: Sequence[Guards],
    more: Iterable[str] = (),
    *,
    derived: bool = False,
) -> dict[str, Any]:
    """What a publication's row says about where it comes to be, by the interfaces that are met on the way.

    A derived publication never comes back to its own component; one that is as it was published is there anyway.
    """
    by_guards: dict[Guards, set[str]] = {g: set() for g in guards}
    by_guards[frozenset()] |= set(more)
    for route in found:
        if route.guards in by_guards:
            by_guards[route.guards].add(route.token)
    cells: dict[str, Any] = {f"@out{k}": tuple(sorted(by_guards[g])) or (NOWHERE,) for k, g in enumerate(guards)}
    return {**cells, "@who": component if derived else NOWHERE, "@visible": _roots(graph, component)}


def _roots(graph: ScopeGraph, component: str) -> tuple[str, ...]:
    return tuple(sorted(visible_roots(graph, component))) if component in graph.nx else (NOWHERE,)


def evaluated(
    found: Iterable[Route], cells: Content, says: Callable[[Content], Content]
) -> dict[Face, tuple[Content, set[str]]]:
    """The faces that routes make of a row, each with its cells and where it comes to be; equal ones are one."""
    made: dict[tuple[Any, tuple[str, ...], Context], tuple[Face, Content, set[str]]] = {}
    base = _frozen(cells)
    for route in found:
        for mappings, after in _sent(route, cells, says):
            face = Face(mappings, route.waits, route.session)
            key = (_frozen(after), route.waits, route.session)
            if key[0] == base:
                face = face._replace(mappings=())
            known, _, tokens = made.get(key, (face, after, set()))
            shortest = min(known, face, key=lambda f: (len(f.mappings), f.mappings))
            made[key] = (shortest, after, tokens | {route.token})
    return {face: (after, tokens) for face, after, tokens in made.values()}


def _sent(route: Route, cells: Content, says: Callable[[Content], Content]) -> list[tuple[tuple[str, ...], Content]]:
    states: list[tuple[tuple[str, ...], Content]] = [((), cells)]
    for step in route.steps:
        if isinstance(step, Interface):
            states = [(names, said) for names, said in states if step.lets(says(said))]
        else:
            states = [((*names, name), after) for names, said in states for name, after in step(said)]
    return states


def _frozen(cells: Content) -> Any:
    return tuple(sorted((k, repr(v)) for k, v in cells.items() if not is_null(v)))


# -- filters --------------------------------------------------------------------------------------------------------


def _visible(population: Population, guards: Sequence[Guards]) -> Filter:
    """The publication comes to be where the subscription is, over a route whose interfaces it passes."""
    ways = []
    for k, met in enumerate(guards):
        there = Var("own", f"@out{k}").overlaps(Var("other", "@in"), space=SCOPES)
        accepted = _accepted(population, met)
        ways.append(there if accepted is None or accepted == everything else there & accepted)
    elsewhere = ~Var("own", "@who").overlaps(Var("other", "@me"), space=COMPONENTS)
    return reduce(lambda a, b: a | b, ways) & elsewhere


def _accepted(population: Population, guards: Guards) -> Filter | None:
    """All the interfaces, as comparisons of the publication's own regions; None where none of its regions can pass."""
    whole: Filter = everything
    for met in sorted(guards, key=repr):
        assert met.filters
        ways = [way for f in sorted(met.filters, key=repr) if (way := _passing(population, f)) is not None]
        if not ways:
            return None
        any_of = reduce(lambda a, b: a | b, ways)
        whole = any_of if whole == everything else whole & any_of
    return whole


def _passing(population: Population, passing: Passing) -> Filter | None:
    whole: Filter = everything
    for name, extent in passing.constraints:
        regions = [label for label, region in population.regions if name in dict(region.constraints)]
        if not regions:
            return None
        ways: list[Filter] = [Comparison(Dimension(Var("own", label), name), "in", extent) for label in regions]
        any_of = reduce(lambda a, b: a | b, ways)
        whole = any_of if whole == everything else whole & any_of
    return whole


def _who(name: str) -> tuple[str, Region]:
    return (name, Region(COMPONENTS, (("@component", column[name]),)))


def _looks_at_others(scenario: Scenario) -> bool:
    nodes = (n for p in scenario.populations for n in p.filter.walk())
    return any(isinstance(n, Match) and (n.third is not None or isinstance(n.relation, Nearest)) for n in nodes)


# -- tables ---------------------------------------------------------------------------------------------------------


def _at(t: Any) -> dict[str, Any]:
    return {} if t is None else {"t": t}


def _ids(name: str) -> list[Any]:
    """The ids that a component's name can stand for in a table: ids may be numbers."""
    return [name, int(name)] if name.isdigit() else [name]


def _shown(rows: Rows) -> pd.DataFrame:
    frame = rows.frame
    return frame.assign(t=rows.clock.column(frame["t"])) if rows.clock else frame.drop(columns="t")
