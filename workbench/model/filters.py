"""Filters: which regions of the other side are accepted (Subject Spaces, 4.3.3).

A filter is ``{R | ∃ r1, ..., rn ∈ R : P(r1, ..., rn)}``: the sets of regions for which some choice of regions
satisfies the predicate P. Here a filter is *data*, a frozen expression of P built with operators:

    own.here.within(1000, other.site, space=location) & (own.car["fuel"] < 20)

* ``own.name`` is the region of that name of one's own publication or subscription.
* ``other.name`` is a variable. It ranges over the other side's regions *declared* in the space that its relation
  names or in a space that fully contains that one; the predicate is evaluated whole under one choice.
* ``any_region(...)`` is a region of a third party, of any client but the one that owns the other region.

Nodes: `Match` (two regions and a matching relation in a space), `Comparison` (of a dimension with a
value or with another dimension), ``& | ~``, `Held` (true that long: dwell), `Latch` (true from on until
off: hysteresis); times are in `times`, histories of visits in `visits`. Nodes are never called and never
truth values: ``bool(node)`` raises.

Departure: Examples 7 and 8. The subscription's filter asks for o_car and o_pref among the publication's regions;
Example 8 publishes no o_pref, and neither filter says how ``refuel_level`` meets ``fuel``. Example 9's text settles it:
the subscriber's own fuel has to lie in the subscriber's own refuel level,
``own.car["fuel"].within(own.pref["refuel_level"])``.

Departure: Example 7 writes ``o_car m i_car`` without saying which m, and no formula says in which space σ its V is
taken. Here every match names its relation and its space.

Departure: by 4.3.3 a predicate is over variable regions of the other side only, yet every filter of the paper speaks
of its owner's regions too (ℓ_car in f_S). Those are ``own``.

Departure: the paper lets a variable take any region that is valid in the space; a bare location is valid in the space
of shops (it shares their position) and would overlap every shop. So a variable takes regions by their
declared space.

Departure: 5.1 and 5.2 mention regions of third parties (o'_coffee_shop, the cars ℓ_j) inside a filter that by
definition sees only the other side's regions. `any_region` says among what they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from workbench.errors import ScenarioError
from workbench.model import extents, relations
from workbench.model.durations import Duration
from workbench.model.extents import Extent, Interval, ValueSet
from workbench.model.notation import words
from workbench.model.relations import Relation
from workbench.model.spaces import Space, Type

# -- regions inside filters ------------------------------------------------------------------------


@dataclass(frozen=True)
class Regions:
    """Regions of a population, by name, and what they have to satisfy.

    >>> Regions("shops", "offer", (("shop_type", "coffee"),))
    shops.offer(shop_type='coffee')
    """

    population: str
    region: str
    where: tuple[tuple[str, Any], ...] = ()

    def __call__(self, **where: Any) -> Regions:
        """The same, narrowed: the dimension's extent has to lie in the given one."""
        return replace(self, where=self.where + tuple(where.items()))

    def __repr__(self) -> str:
        narrowed = ", ".join(f"{d}={e!r}" for d, e in self.where)
        return f"{self.population}.{self.region}" + (f"({narrowed})" if narrowed else "")


def regions_of(given: Regions | str, where: Mapping[str, Any]) -> Regions:
    """``"shops.offer"`` or ``shops.offer``, narrowed."""
    if isinstance(given, str):
        population, _, name = given.partition(".")
        if not name:
            raise ScenarioError(f"among={given!r}: expected 'population.region'")
        given = Regions(population, name)
    if not isinstance(given, Regions):
        raise ScenarioError(f"among={given!r}: expected 'population.region' or population.region")
    return given(**where)


class RegionTerm:
    """A region that a filter speaks of: builds matches and comparisons."""

    def contains(self, region: RegionTerm, *, space: Space) -> Match:
        """``self m_c region``: the other region lies entirely in this one."""
        return Match(self, relations.Containment(), region, space)

    def enclosed_by(self, region: RegionTerm, *, space: Space) -> Match:
        """``self m_e region``: this region lies entirely in the other one."""
        return Match(self, relations.Enclosure(), region, space)

    def overlaps(self, region: RegionTerm, *, space: Space) -> Match:
        """``self m_o region``: the two share a value."""
        return Match(self, relations.Overlap(), region, space)

    def within(self, distance: float, region: RegionTerm, *, space: Space) -> Match:
        """The two are at most ``distance`` apart (metres for positions), the border included."""
        return Match(self, relations.Within(distance), region, space)

    def nearest(
        self, region: RegionTerm, *, space: Space, k: int = 1, among: Regions | str | None = None, **where: Any
    ) -> Match:
        """``self m_n region``: fewer than k of the regions ``among`` are strictly nearer to this one."""
        if among is None and where:
            raise ScenarioError(f"nearest(..., {', '.join(where)}=...) narrows nothing; say among what with among=")
        named = None if among is None else regions_of(among, where)
        return Match(self, relations.Nearest(k, named), region, space)

    def related(self, region: RegionTerm, *, by: relations.Function | str, at_most: float, space: Space) -> Match:
        """A relation of one's own: an importable function gives each pair a number of at most ``at_most``."""
        name = by if isinstance(by, str) else relations.name_of(by)
        return Match(self, relations.UserDefined(name, at_most), region, space)

    def mostly_in(
        self, region: RegionTerm, *, degree: float, space: Space, by: relations.Function | str | None = None
    ) -> Match:
        """At least ``degree`` (above 0, up to 1) of this region lies in the other one."""
        name = by if by is None or isinstance(by, str) else relations.name_of(by)
        return Match(self, relations.Fuzzy(degree, name), region, space)


@dataclass(frozen=True)
class Var(RegionTerm):
    """``own.name``: a region of one's own; ``other.name``: some region of the other side.

    >>> own.here, other.site
    (here, site')
    """

    side: str
    name: str

    def __getitem__(self, dimension: str) -> DimensionTerm:
        return DimensionTerm(Dimension(self, dimension))

    def __repr__(self) -> str:
        return self.name if self.side == "own" else f"{self.name}'"


@dataclass(frozen=True)
class AnyRegion(RegionTerm):
    """Some existing region of third parties."""

    among: Regions

    def __repr__(self) -> str:
        return f"any {self.among}"


def any_region(among: Regions | str, **where: Any) -> AnyRegion:
    """Some region among those of a population, narrowed by constraints on their dimensions.

    >>> any_region("shops.offer", shop_type="coffee")
    any shops.offer(shop_type='coffee')
    """
    return AnyRegion(regions_of(among, where))


class _Side:
    def __init__(self, side: str) -> None:
        self._side = side

    def __getattr__(self, name: str) -> Var:
        if name.startswith("_"):
            raise AttributeError(name)
        return Var(self._side, name)

    def __getitem__(self, name: str) -> Var:
        return Var(self._side, name)


own: Any = _Side("own")
other: Any = _Side("other")


# -- nodes -------------------------------------------------------------------------------------------


class Filter:
    """A predicate over regions and time; combine with ``&``, ``|`` and ``~``."""

    def __and__(self, more: Filter) -> Filter:
        return _combined(And, self, more)

    def __or__(self, more: Filter) -> Filter:
        return _combined(Or, self, more)

    def __invert__(self) -> Filter:
        return Not(self)

    def __bool__(self) -> bool:
        raise ScenarioError(
            f"a filter is no truth value: {self!r}. Combine filters with & | ~ (not: and, or, not), "
            "put parentheses around comparisons, and do not chain them"
        )

    @property
    def parts(self) -> tuple[Filter, ...]:
        """The filters that this one is made of."""
        return ()

    @property
    def histories(self) -> tuple[Match, ...]:
        """The matches whose history this node asks for."""
        return ()

    def walk(self) -> Iterator[Filter]:
        """This node and every node below it, the matches inside temporal terms included."""
        yield self
        for part in (*self.parts, *self.histories):
            yield from part.walk()

    def variables(self) -> dict[str, list[Space | str]]:
        """The variables of the other side, each with the spaces and dimensions that it is used in."""
        found: dict[str, list[Space | str]] = {}
        for node in self.walk():
            for term, use in node.uses():
                if isinstance(term, Var) and term.side == "other":
                    uses = found.setdefault(term.name, [])
                    if use not in uses:
                        uses.append(use)
        return found

    def uses(self) -> list[tuple[RegionTerm, Space | str]]:
        """The region terms of this node itself, each with the space or the dimension it is used in."""
        return []

    def rebuilt(self, parts: tuple[Filter, ...], histories: tuple[Match, ...]) -> Filter:
        """The same node over other parts and histories."""
        return self

    def _latex(self) -> str:
        return words(repr(self))

    def _repr_latex_(self) -> str:
        names = self.variables()
        bound = f"\\exists\\, {', '.join(words(n) + chr(39) for n in names)} \\in R : " if names else ""
        return f"$\\{{R \\mid {bound}{self._latex()}\\}}$"


def _combined(kind: type[And] | type[Or], first: Filter, second: Filter) -> Filter:
    if not isinstance(second, Filter):
        raise ScenarioError(f"{second!r} is not a filter and cannot be combined with one")
    flat: list[Filter] = []
    for part in (first, second):
        flat += part.parts if isinstance(part, kind) else (part,)
    return kind(tuple(flat))


@dataclass(frozen=True)
class Everything(Filter):
    """The filter that accepts every other side.

    >>> everything
    true
    """

    def __repr__(self) -> str:
        return "true"


everything = Everything()


@dataclass(frozen=True)
class Match(Filter):
    """``left m right`` in a space.

    >>> from workbench.model.spaces import location
    >>> own.here.within(1000, other.site, space=location)
    here m_1000 site'
    """

    left: RegionTerm
    relation: Relation
    right: RegionTerm
    space: Space

    def __post_init__(self) -> None:
        faults = [
            f"{term!r} is not a region; write own.name, other.name or any_region(...)"
            for term in (self.left, self.right)
            if not isinstance(term, RegionTerm)
        ]
        if not isinstance(self.space, Space):
            faults.append(f"space={self.space!r}: a relation names its subject space")
        elif problem := self.relation.check(self.space):
            faults.append(problem)
        thirds = [term for term in (self.left, self.right) if isinstance(term, AnyRegion)]
        if len(thirds) == 2:
            faults.append("a match of two any_region(...) belongs to nobody; one of the two has to be own.* or other.*")
        if thirds and isinstance(self.relation, relations.Nearest):
            faults.append("nearest of any_region(...): name the region, and the others with among=")
        if faults:
            raise ScenarioError("; ".join(faults))

    @property
    def third(self) -> AnyRegion | None:
        """The third party of this match, if there is one."""
        for term in (self.left, self.right):
            if isinstance(term, AnyRegion):
                return term
        return None

    def uses(self) -> list[tuple[RegionTerm, Space | str]]:
        return [(self.left, self.space), (self.right, self.space)]

    def _sign(self) -> str:
        match self.relation:
            case relations.Within(distance=d):
                return f"m_{d:g}"
            case relations.Nearest(k=k, among=among):
                return ("m_n" if k == 1 else f"m_n{k}") + (f"[{among}]" if among else "")
            case relations.UserDefined(function=name, at_most=most):
                return f"m_[{name} <= {most:g}]"
            case relations.Fuzzy(degree=d, function=name):
                return f"m_f[{name + ' ' if name else ''}>= {d:g}]"
            case simple:
                return simple.symbol

    def __repr__(self) -> str:
        return f"{self.left} {self._sign()} {self.right}"

    def _latex(self) -> str:
        sign, _, index = self._sign().partition("_")
        return f"{words(self.left)}\\ \\mathbf{{{sign}}}_{{{words(index)}}}\\ {words(self.right)}"


class Dimension(NamedTuple):
    """A dimension of a region inside a filter."""

    region: Var
    dimension: str

    def __repr__(self) -> str:
        return f"{self.dimension}({self.region})"


_SIGNS = {"<=": "≤", ">=": "≥", "!=": "≠", "in": "⊆", "meets": "∩", "==": "="}
_MATHS = {"<=": "\\le", ">=": "\\ge", "!=": "\\ne", "in": "\\subseteq", "meets": "\\cap", "==": "="}


@dataclass(frozen=True)
class Comparison(Filter):
    """``x op y`` for every x that the left dimension leaves and every y that the right side leaves.

    >>> own.car["fuel"] < 20
    fuel(car) < [20]
    >>> own.car["fuel"].within(own.pref["refuel_level"])
    fuel(car) ⊆ refuel_level(pref)
    """

    left: Dimension
    op: str
    right: Dimension | Extent

    def uses(self) -> list[tuple[RegionTerm, Space | str]]:
        sides = (self.left, self.right)
        return [(side.region, side.dimension) for side in sides if isinstance(side, Dimension)]

    def __repr__(self) -> str:
        return f"{self.left} {_SIGNS.get(self.op, self.op)} {self.right}"

    def _latex(self) -> str:
        return f"{words(self.left)} {_MATHS.get(self.op, self.op)} {words(self.right)}"


class DimensionTerm:
    """``own.car["fuel"]`` while a filter is written: compares into a `Comparison`."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, dimension: Dimension) -> None:
        self.dimension = dimension

    def _against(self, op: str, value: Any) -> Comparison:
        if isinstance(value, DimensionTerm):
            return Comparison(self.dimension, op, value.dimension)
        if not isinstance(value, Interval | ValueSet | extents.Shape):
            if isinstance(value, str | bool | set | frozenset | list | tuple):
                several = value if isinstance(value, set | frozenset | list | tuple) else (value,)
                value = extents.one_of(*several)
            else:
                value = extents.single(value)
        if op in ("<", "<=", ">", ">=") and not isinstance(value, Interval):
            raise ScenarioError(f"{self.dimension!r} {op} {value!r}: only numbers have an order")
        return Comparison(self.dimension, op, value)

    def __lt__(self, value: Any) -> Comparison:
        return self._against("<", value)

    def __le__(self, value: Any) -> Comparison:
        return self._against("<=", value)

    def __gt__(self, value: Any) -> Comparison:
        return self._against(">", value)

    def __ge__(self, value: Any) -> Comparison:
        return self._against(">=", value)

    def __eq__(self, value: Any) -> Comparison:  # type: ignore[override]
        return self._against("==", value)

    def __ne__(self, value: Any) -> Comparison:  # type: ignore[override]
        return self._against("!=", value)

    def within(self, value: Any) -> Comparison:
        """Every value that this dimension leaves is among the other's."""
        return self._against("in", value)

    def overlaps(self, value: Any) -> Comparison:
        """Some value that this dimension leaves is among the other's."""
        return self._against("meets", value)

    def __bool__(self) -> bool:
        raise ScenarioError(f"{self.dimension!r} is no truth value; compare it with something")

    def __repr__(self) -> str:
        return repr(self.dimension)


@dataclass(frozen=True)
class And(Filter):
    """All of its parts."""

    conjuncts: tuple[Filter, ...]

    @property
    def parts(self) -> tuple[Filter, ...]:
        return self.conjuncts

    def rebuilt(self, parts: tuple[Filter, ...], histories: tuple[Match, ...]) -> Filter:
        return And(parts)

    def __repr__(self) -> str:
        return " ∧ ".join(f"({p})" if isinstance(p, Or) else repr(p) for p in self.parts)

    def _latex(self) -> str:
        return " \\wedge ".join(f"({p._latex()})" if isinstance(p, Or) else p._latex() for p in self.parts)


@dataclass(frozen=True)
class Or(Filter):
    """One of its parts or more."""

    disjuncts: tuple[Filter, ...]

    @property
    def parts(self) -> tuple[Filter, ...]:
        return self.disjuncts

    def rebuilt(self, parts: tuple[Filter, ...], histories: tuple[Match, ...]) -> Filter:
        return Or(parts)

    def __repr__(self) -> str:
        return " ∨ ".join(map(repr, self.parts))

    def _latex(self) -> str:
        return " \\vee ".join(p._latex() for p in self.parts)


@dataclass(frozen=True)
class Not(Filter):
    """Not its part, while the pair exists."""

    part: Filter

    @property
    def parts(self) -> tuple[Filter, ...]:
        return (self.part,)

    def rebuilt(self, parts: tuple[Filter, ...], histories: tuple[Match, ...]) -> Filter:
        return Not(*parts)

    def __repr__(self) -> str:
        return f"¬({self.part})"

    def _latex(self) -> str:
        return f"\\neg({self.part._latex()})"


@dataclass(frozen=True)
class Held(Filter):
    """Its part has been true, without a break, for a time: at every instant from ``now - duration`` to ``now``.

    >>> from workbench.model.durations import minutes
    >>> held(own.car["fuel"] < 20, minutes(2))
    held(fuel(car) < [20], 2 min)
    """

    part: Filter
    duration: Duration

    @property
    def parts(self) -> tuple[Filter, ...]:
        return (self.part,)

    def rebuilt(self, parts: tuple[Filter, ...], histories: tuple[Match, ...]) -> Filter:
        return Held(parts[0], self.duration)

    def __repr__(self) -> str:
        return f"held({self.part}, {self.duration})"

    def _latex(self) -> str:
        return f"\\text{{held}}({self.part._latex()},\\ {words(self.duration)})"


def held(part: Filter, duration: Duration) -> Held:
    """True where the filter has been true that long: dwell.

    The time counts from when the pair exists; what does not exist holds nothing.
    """
    if not isinstance(duration, Duration) or (duration.nanoseconds, duration.ticks) < (0, 0):
        raise ScenarioError(f"held(..., {duration!r}): expected a duration such as minutes(2)")
    if not isinstance(part, Filter):
        raise ScenarioError(f"held({part!r}, ...): expected a filter")
    return Held(part, duration)


@dataclass(frozen=True)
class Latch(Filter):
    """True from ``on`` until ``off``: there is an instant up to now at which on held, and off has not held since, that
    instant included. Where both hold, off wins."""

    on: Filter
    off: Filter

    @property
    def parts(self) -> tuple[Filter, ...]:
        return (self.on, self.off)

    def rebuilt(self, parts: tuple[Filter, ...], histories: tuple[Match, ...]) -> Filter:
        return Latch(*parts)

    def __repr__(self) -> str:
        return f"latch({self.on}, {self.off})"

    def _latex(self) -> str:
        return f"\\text{{latch}}({self.on._latex()},\\ {self.off._latex()})"


def latch(on: Filter, off: Filter) -> Latch:
    """True from ``on`` until ``off``: hysteresis, so that jitter at a border does not speak.

    >>> from workbench.model.spaces import location
    >>> near, far = own.here.within(100, other.site, space=location), own.here.within(120, other.site, space=location)
    >>> latch(on=near, off=~far)
    latch(here m_100 site', ¬(here m_120 site'))
    """
    for part in (on, off):
        if not isinstance(part, Filter):
            raise ScenarioError(f"latch: {part!r} is not a filter")
    return Latch(on, off)


# -- normal form ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Normaliser:
    """Puts the constants of a filter into the normal form of their dimensions' types, and collects what is wrong."""

    types: Mapping[str, Type]
    faults: list[str] = field(default_factory=list)

    def normal(self, node: Filter) -> Filter:
        """The same filter, every constant an extent of its dimension's type."""
        parts = tuple(self.normal(part) for part in node.parts)
        histories = tuple(self.normal(part) for part in node.histories)
        node = node.rebuilt(parts, histories)  # type: ignore[arg-type]
        if isinstance(node, Comparison) and not isinstance(node.right, Dimension):
            made = self._extent(node.left.dimension, node.right)
            return replace(node, right=made)
        if isinstance(node, Match):
            left, right = (self._third(term) for term in (node.left, node.right))
            relation = node.relation
            if isinstance(relation, relations.Nearest) and relation.among is not None:
                relation = replace(relation, among=self._narrowed(relation.among))
            return Match(left, relation, right, node.space)
        return node

    def _third(self, term: RegionTerm) -> RegionTerm:
        return AnyRegion(self._narrowed(term.among)) if isinstance(term, AnyRegion) else term

    def _narrowed(self, regions: Regions) -> Regions:
        return replace(regions, where=tuple((d, self._extent(d, e)) for d, e in regions.where))

    def _extent(self, dimension: str, given: Any) -> Any:
        if dimension not in self.types:
            return given  # reported where the dimension is looked up
        try:
            return self.types[dimension].extent(given)
        except ScenarioError as error:
            self.faults.append(f"dimension {dimension!r}: {error}")
            return given
