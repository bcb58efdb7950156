"""Scenario: spaces, publications and subscriptions, as one checked value.

A scenario is plain data. It is checked when it is built, and reports all its faults at once; its filters are then in
normal form. `Scenario.bindings` gives the choices that the ∃ of a filter ranges over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import product
from typing import Any, Protocol

from workbench.errors import ScenarioError, WorkbenchError, did_you_mean, raise_all
from workbench.model import relations
from workbench.model.clock import Clock
from workbench.model.durations import Duration, seconds
from workbench.model.filters import (
    AnyRegion,
    Comparison,
    Dimension,
    Filter,
    Held,
    Match,
    Normaliser,
    Regions,
    Var,
)
from workbench.model.pubsub import PUBLICATION, SUBSCRIPTION, Population
from workbench.model.regions import Region
from workbench.model.spaces import Number, Space, Type
from workbench.model.times import At, TimeComparison
from workbench.model.visits import VisitComparison

Binding = Mapping[str, str]
"""Which region of the other side each variable stands for."""


class Stage(Protocol):
    """What is done with timelines after all matching: who of those that could be told is told, and when."""

    @property
    def together(self) -> str | None:
        """Why all timelines of a publication are looked at together, or None where those of one pair are."""

    @property
    def ends(self) -> bool:
        """Whether it asks when subscriptions were removed."""

    def behind(self, publication: Any, t: int, tables: Mapping[str, Any], clock: Clock) -> list[tuple[Any, int, str]]:
        """The rows that are told of by a name at t, the instants that are told of, and what they waited for, if any."""

    def key(self, publication: Any) -> str:
        """What the timelines of a publication have in common with those that they are looked at with."""

    def __call__(self, timelines: Any, tables: Mapping[str, Any], clock: Clock, until: int | None) -> Any:
        """The timelines that are told; ``tables`` are what was replayed, ``until`` where it was to end, if anywhere."""


@dataclass(frozen=True, eq=False)
class Scenario:
    """Spaces, publications, subscriptions, and the tables that come with them.

    ``tick`` says what one is where times are integers; ``metric`` (``planar`` or ``wgs84``) is left to the data
    unless it is given; ``tables`` are further rows and profiles by name; ``parameters`` record what it was made with.

    ``visibility`` narrows third parties (nearest, any region, histories of them) to those that the one who looks may
    see: by publication population a filter towards subscriptions, and under ``""`` one between two of the same role.
    Empty: everybody is seen.

    ``stage`` is what a replay does last, with the timelines (see `Stage`).
    """

    spaces: Sequence[Space]
    publications: Sequence[Population]
    subscriptions: Sequence[Population]
    tables: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    tick: Duration = field(default_factory=lambda: seconds(1))
    metric: str | None = None
    name: str = "scenario"
    visibility: Mapping[str, Filter] = field(default_factory=dict)
    stage: Stage | None = None

    def __post_init__(self) -> None:
        for label in ("spaces", "publications", "subscriptions"):
            given = getattr(self, label)
            object.__setattr__(self, label, tuple(given) if isinstance(given, Iterable) else (given,))
        check = _Check(self)
        raise_all(check.structure())
        normaliser = Normaliser(check.types)
        for label in ("publications", "subscriptions"):
            normal = tuple(replace(p, filter=normaliser.normal(p.filter)) for p in getattr(self, label))
            object.__setattr__(self, label, normal)
        visibility = {name: normaliser.normal(filter) for name, filter in self.visibility.items()}
        object.__setattr__(self, "visibility", visibility)
        raise_all(normaliser.faults + [f for p in self.populations for f in check.filter(p, p.filter)])

    @property
    def populations(self) -> tuple[Population, ...]:
        return (*self.publications, *self.subscriptions)

    def population(self, name: str) -> Population:
        """The population of that name."""
        known = {p.name: p for p in self.populations}
        if name not in known:
            raise ScenarioError(f"there is no population {name!r}; {did_you_mean(name, known)}")
        return known[name]

    def opposite(self, population: Population) -> Sequence[Population]:
        """The populations of the other side."""
        return self.subscriptions if population.role == PUBLICATION else self.publications

    def region(self, regions: Regions) -> Region:
        """The template of the regions that are named."""
        return dict(self.population(regions.population).regions)[regions.region]

    def bindings(self, filter: Filter, others: Population) -> list[Binding]:
        """Every choice of the other side's regions for the variables of a filter.

        A variable takes the regions declared in each space it is used in, or in one that fully contains it.
        """
        variables = filter.variables()
        ranges = [[n for n, r in others.regions if _ranges_over(r, uses)] for uses in variables.values()]
        return [dict(zip(variables, choice, strict=True)) for choice in product(*ranges)]

    def nodes(self) -> Iterator[tuple[Population, Population, Binding, Filter]]:
        """Every node of every filter: whose filter, which population it is asked of, under which binding."""
        for own in self.populations:
            for other in self.opposite(own):
                for binding in self.bindings(own.filter, other):
                    yield from ((own, other, binding, node) for node in own.filter.walk())

    def looked_at(self, population: Population) -> set[str]:
        """The populations that a population's filter looks at as third parties: any region, nearest neighbours."""
        found = set()
        for node in population.filter.walk():
            if not isinstance(node, Match):
                continue
            if node.third is not None:
                found.add(node.third.among.population)
            elif isinstance(node.relation, relations.Nearest) and node.relation.among is not None:
                found.add(node.relation.among.population)
            elif isinstance(node.relation, relations.Nearest):
                own_side = isinstance(node.right, Var) and node.right.side == "own"
                role = population.role if own_side else self.opposite(population)[0].role
                found.update(regions.population for regions in self.declared_in(node.space, role))
        return found

    def declared_in(self, space: Space, role: str) -> list[Regions]:
        """All regions of a role that are declared in a space or in one that fully contains it."""
        sides = self.publications if role == PUBLICATION else self.subscriptions
        return [Regions(p.name, n) for p in sides for n, r in p.regions if r.space.fully_contains(space)]

    def accepted(self, population: Population, filter: Filter) -> Filter:
        """A filter that a publication or subscription of that population may take on, in normal form."""
        check = _Check(self)
        normaliser = Normaliser(check.types)
        normal = normaliser.normal(filter)
        raise_all(normaliser.faults + check.filter(population, normal))
        return normal

    def check_clock(self, clock: Clock) -> None:
        """Refuse durations that are finer than the clock's tick, and instants that it cannot read."""
        faults = []
        for population in self.populations:
            for duration in (*durations(population.filter), *([population.stay] if population.stay else [])):
                try:
                    duration.in_ticks(clock.tick)
                except ScenarioError as error:
                    faults.append(f"{population.name!r}: {error}")
            for node in population.filter.walk():
                if isinstance(node, TimeComparison):
                    for instant, _ in node.term.instants:
                        if isinstance(instant, At):
                            try:
                                clock.ticks(instant.instant)
                            except WorkbenchError as error:
                                faults.append(f"{population.name!r}: {error}")
        raise_all(faults)

    def __repr__(self) -> str:
        spaces = "\n".join(f"  {space}" for space in self.spaces)
        parts = "\n".join(repr(p) for p in self.populations)
        parameters = ", ".join(f"{k}={v!r}" for k, v in self.parameters.items())
        return f"{self.name}({parameters})\nspaces\n{spaces}\n{parts}"

    def _repr_markdown_(self) -> str:
        lines = [f"**{escape(self.name)}**", ""]  # Markdown is HTML too
        lines += [f"- {space._repr_latex_()}" for space in self.spaces]
        for p in self.populations:
            rows = "one" if p.single else f"one a row of *{escape(p.rows)}*"
            lines += [f"- {p.role}s **{escape(p.name)}** ({rows}): {p._repr_latex_()}"]
            lines += [f"    - {escape(n)}: {r._repr_latex_()}" for n, r in p.regions]
        return "\n".join(lines)


def durations(filter: Filter) -> list[Duration]:
    """Every duration that a filter mentions."""
    found = []
    for node in filter.walk():
        if isinstance(node, Held):
            found.append(node.duration)
        elif isinstance(node, TimeComparison):
            found.append(node.bound)
        elif isinstance(node, VisitComparison):
            found += [d for d in (node.aggregate.visits.window, node.bound) if d is not None]
    return found


def _ranges_over(region: Region, uses: list[Space | str]) -> bool:
    return all(
        region.space.fully_contains(use) if isinstance(use, Space) else use in region.space for use in uses
    )


class _Check:
    """Everything that can be wrong with a scenario, said in full."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.types: dict[str, Type] = {
            label: kind for space in scenario.spaces if isinstance(space, Space) for label, kind in space.dimensions
        }

    def structure(self) -> list[str]:
        s, faults = self.scenario, []
        for given, expected, label in (
            (s.spaces, Space, "a space"),
            (s.publications, Population, "publications"),
            (s.subscriptions, Population, "subscriptions"),
        ):
            faults += [f"{item!r} is not {label}" for item in given if not isinstance(item, expected)]
        if faults:
            return faults
        for what, names in (("space", [x.name for x in s.spaces]), ("population", [p.name for p in s.populations])):
            faults += [f"there are two {what}s named {n!r}" for n in sorted({n for n in names if names.count(n) > 1})]
        for p, role in [(p, PUBLICATION) for p in s.publications] + [(p, SUBSCRIPTION) for p in s.subscriptions]:
            if p.role != role:
                faults.append(f"{p.name!r} is a {p.role} population among the {role}s")
        if not s.publications or not s.subscriptions:
            faults.append("a scenario needs publications and subscriptions")
        for space in s.spaces:
            for label, kind in space.dimensions:
                if self.types[label] != kind:
                    faults.append(
                        f"dimension {label!r} is {kind} in space {space.name!r} and {self.types[label]} elsewhere; "
                        "a name identifies one dimension"
                    )
        known = {"fixes", "places", *s.tables}
        for p in s.populations:
            for table in filter(None, (p.rows, p.profiles)):
                if table not in known:
                    faults.append(f"{p.name!r} takes its rows from {table!r}; {did_you_mean(table, known)}")
            if p.single and p.columns():
                columns = sorted(p.columns())
                faults.append(f"{p.name!r} is a single {p.role} and reads the columns {columns}; give it rows=")
            for name, region in p.regions:
                if region.space not in s.spaces:
                    faults.append(self._unknown_space(f"region {name!r} of {p.name!r}", region.space))
        return faults

    def filter(self, population: Population, filter: Filter) -> list[str]:
        faults: list[str] = []
        where = f"{population.role} {population.name!r}"
        regions = dict(population.regions)
        for node in filter.walk():
            if isinstance(node, Match) and node.space not in self.scenario.spaces:
                faults.append(self._unknown_space(f"{where}, {node!r}", node.space))
                continue
            for term, use in node.uses():
                if isinstance(term, Var) and term.side == "own":
                    faults += self._own(where, regions, term.name, use)
                elif isinstance(term, AnyRegion):
                    faults += self._among(where, term.among, use)
            if isinstance(node, Match):
                faults += self._relation(where, node)
            if isinstance(node, Comparison):
                faults += self._comparison(where, node)
        for variable, uses in filter.variables().items():
            others = self.scenario.opposite(population)
            if not any(_ranges_over(r, uses) for p in others for _, r in p.regions):
                used = ", ".join(repr(u.name if isinstance(u, Space) else u) for u in uses)
                faults.append(
                    f"{where}: no region of {', '.join(repr(p.name) for p in others)} is declared in {used}, "
                    f"so other.{variable} stands for nothing"
                )
        return list(dict.fromkeys(faults))

    def _own(self, where: str, regions: dict[str, Region], name: str, use: Space | str) -> list[str]:
        if name not in regions:
            return [f"{where} has no region {name!r}; {did_you_mean(name, regions)}"]
        if isinstance(use, str):
            if use not in regions[name].space:
                return [f"{where} uses dimension {use!r} of region {name!r}; {self._known(regions[name].space, use)}"]
            return []
        return self._meets(f"{where}: region {name!r}", regions[name], use)

    def _meets(self, what: str, region: Region, space: Space) -> list[str]:
        constrained = {label for label, _ in region.constraints}
        if not any(label in constrained for label, _ in space.dimensions):
            return [f"{what} constrains no dimension of space {space.name!r} and can never match in it"]
        return []

    def _among(self, where: str, regions: Regions, use: Space | str | None) -> list[str]:
        try:
            region = self.scenario.region(regions)
        except (ScenarioError, KeyError):
            known = [f"{p.name}.{n}" for p in self.scenario.populations for n, _ in p.regions]
            wanted = f"{regions.population}.{regions.region}"
            return [f"{where}: there are no regions {wanted!r}; {did_you_mean(wanted, known)}"]
        faults = [
            f"{where} narrows {regions.population}.{regions.region} by {d!r}; {self._known(region.space, d)}"
            for d, _ in regions.where
            if d not in region.space
        ]
        if isinstance(use, Space):
            faults += self._meets(f"{where}: {regions.population}.{regions.region}", region, use)
        return faults

    def _relation(self, where: str, node: Match) -> list[str]:
        faults = []
        relation = node.relation
        if isinstance(relation, relations.Nearest) and relation.among is not None:
            faults += self._among(where, relation.among, node.space)
        function = getattr(relation, "function", None)
        if function is not None:
            try:
                relations.function_named(function)
            except (ImportError, AttributeError, ValueError):
                faults.append(f"{where}: function {function!r} cannot be imported")
        return faults

    def _comparison(self, where: str, node: Comparison) -> list[str]:
        left = self.types.get(node.left.dimension)
        if left is None:
            return [f"{where} uses dimension {node.left.dimension!r}; {did_you_mean(node.left.dimension, self.types)}"]
        if node.op in ("<", "<=", ">", ">=") and not isinstance(left, Number):
            return [f"{where}: {node!r} orders {left.name} values; only numbers have an order"]
        if not isinstance(node.right, Dimension):
            return []
        dimension = node.right.dimension
        right = self.types.get(dimension)
        if right is None:
            return [f"{where} uses dimension {dimension!r}; {did_you_mean(dimension, self.types)}"]
        if type(left) is not type(right):
            return [f"{where}: {node!r} compares {left.name} with {right.name}"]
        units = (getattr(left, "unit", ""), getattr(right, "unit", ""))
        if units[0] and units[1] and units[0] != units[1]:
            return [f"{where}: {node!r} compares {units[0]} with {units[1]}"]
        return []

    def _known(self, space: Space, dimension: str) -> str:
        return f"space {space.name!r} has " + ", ".join(repr(d) for d, _ in space.dimensions) + (
            f" ({hint})" if (hint := did_you_mean(dimension, dict(space.dimensions))).startswith("did") else ""
        )

    def _unknown_space(self, what: str, space: Space) -> str:
        known = [s.name for s in self.scenario.spaces]
        if space.name in known:
            return f"{what} uses another space of the name {space.name!r} than the scenario's"
        return f"{what} uses space {space.name!r}; {did_you_mean(space.name, known)}"
