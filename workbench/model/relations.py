"""Matching relations between regions (Subject Spaces, 4.3.2).

``r1 m r2`` says that r1 matches r2 in a space σ. Each relation is a frozen value; `holds` decides it for two
regions, and the law of each stands in its docstring. All are vacuously false for a region that is invalid in σ.

The paper's four (containment, enclosure, overlap, nearest neighbour), what its text asks for besides (within a
distance: m_1km of Example 7; matching to a degree, 2.2), and relations of the user's own.

The distance of two regions is the Euclidean distance of their closest points over the numeric dimensions
of σ, or the distance of two positions (`distance`). `paper_distance` is Example 5's.

Departure: Example 5 calls its constraints closed intervals and writes strict signs. Here each end says what
it is. Its distance asks only for the end points of the first interval, so it is not symmetric: an
interval that spans another one has both of its ends outside it, at a distance above 0, while the other way
round the distance is 0. `distance` is the symmetric one that the text before Example 5 describes.

Departure: overlap is said to be "touching each other in all dimensions" and defined by a common value. (1, 2) and
[2, 3) touch and share none; here they do not overlap.

Departure: nearest neighbour is said to be "the closest region" and defined by ≤, so that of several at the same
distance each is one. Ties all match here too.

Departure: nearest neighbour says "for all r not in {r1, r2}" without saying among which. Here: among the regions
that the relation names; see `Nearest`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from workbench.errors import ScenarioError
from workbench.model import extents, shapes
from workbench.model.extents import ANYWHERE, Extent, Interval
from workbench.model.regions import Region
from workbench.model.shapes import Shape
from workbench.model.spaces import Number, Position, Space

# -- distance ----------------------------------------------------------------------------------------


def measurable(space: Space) -> bool:
    """Whether a space has a distance: only numbers, or only one position.

    >>> measurable(Space("xy", x=float, y=float)), measurable(Space("shop", name=str, x=float))
    (True, False)
    """
    kinds = [kind for _, kind in space.dimensions]
    return all(isinstance(k, Number) for k in kinds) or (len(kinds) == 1 and isinstance(kinds[0], Position))


def distance(r1: Region, r2: Region, space: Space, metric: str) -> float:
    """The distance of the closest points of two regions; infinite where one of them is invalid.

    >>> line = Space("line", d=float)
    >>> distance(Region(line, (("d", 7),)), Region(line, (("d", extents.between(4, 6)),)), line, "planar")
    1.0
    """
    v1, v2 = r1.values_in(space), r2.values_in(space)
    if v1 is None or v2 is None:
        return math.inf
    return math.sqrt(sum(_squared_gap(v1[d], v2[d], metric) for d in v1))


def _squared_gap(a: Extent, b: Extent, metric: str) -> float:
    if a is ANYWHERE or b is ANYWHERE:
        return 0.0
    if isinstance(a, Shape) and isinstance(b, Shape):
        apart = shapes.distance_m(a, b, metric)
    else:
        apart = extents.gap(a, b)  # type: ignore[arg-type]
    return apart * apart


def paper_distance(r1: Region, r2: Region, space: Space) -> float:
    """min(MINDIST(lb_r1, V_r2), MINDIST(ub_r1, V_r2)) of Example 5, on a space of one dimension. Not symmetric.

    >>> line = Space("line", d=float)
    >>> wide, slim = (Region(line, (("d", extents.between(*ends)),)) for ends in ((0, 10), (4, 6)))
    >>> paper_distance(wide, slim, line), paper_distance(slim, wide, line)
    (4.0, 0.0)
    """
    v1, v2 = r1.values_in(space), r2.values_in(space)
    if v1 is None or v2 is None or len(v1) != 1:
        raise ScenarioError(f"MINDIST needs two valid regions and a space of one dimension, not {space!r}")
    ((a, b),) = zip(v1.values(), v2.values(), strict=True)
    assert isinstance(a, Interval) and isinstance(b, Interval)
    return min(extents.mindist(a.lower, b), extents.mindist(a.upper, b))


# -- functions of the user's own -----------------------------------------------------------------------


class Intervals(NamedTuple):
    """Lower and upper ends of numeric extents, one a pair of regions."""

    lower: np.ndarray
    upper: np.ndarray


class Places(NamedTuple):
    """Points and discs, one a pair of regions."""

    x: np.ndarray
    y: np.ndarray
    radius_m: np.ndarray


Function = Callable[[dict[str, Any], dict[str, Any]], np.ndarray]
"""Arrays in, an array out: the extents of the first and of the second region by dimension (numbers as
`Intervals`, positions as `Places`, strings as arrays of strings), one element a pair; gives one number a pair."""


def name_of(function: Function) -> str:
    """``module:function`` of an importable function; a lambda or a local one is refused.

    >>> import numpy
    >>> name_of(numpy.hypot)
    'numpy:hypot'
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module is None and isinstance(function, np.ufunc):
        module, name = "numpy", function.__name__
    if not module or not name or "<" in name:
        raise ScenarioError(f"{function!r} is not importable by name; define it at the top of a module")
    return f"{module}:{name}"


def function_named(name: str) -> Function:
    """The function that `name_of` named."""
    module, _, attribute = name.partition(":")
    found: Any = import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def _columns(values: Iterable[dict[str, Extent]]) -> dict[str, Any]:
    rows = list(values)
    return {d: _column(d, [row[d] for row in rows]) for d in rows[0]}


def _column(dimension: str, given: list[Extent]) -> Any:
    first = given[0]
    if isinstance(first, Interval):
        ends = [(float(i.lower), float(i.upper)) for i in given]  # type: ignore[union-attr]
        return Intervals(*np.array(ends, dtype=float).T)
    if isinstance(first, Shape) and all(isinstance(s, Shape) and s.kind == "point" for s in given):
        return Places(*np.array([(s.x, s.y, s.radius_m) for s in given], dtype=float).T)  # type: ignore[union-attr, type-var]
    if all(extents.is_point(v) for v in given):
        return np.array([next(iter(v.values)) for v in given], dtype=object)  # type: ignore[union-attr]
    raise ScenarioError(
        "a function of the user's own takes intervals, points, discs and single values; "
        f"dimension {dimension!r} has {first!r}"
    )


def apply(function: str, r1: Region, r2: Region, space: Space) -> float | None:
    """What a function of the user's own says of one pair; None where a region is invalid."""
    v1, v2 = r1.values_in(space), r2.values_in(space)
    if v1 is None or v2 is None:
        return None
    return float(function_named(function)(_columns([v1]), _columns([v2]))[0])


# -- the relations -------------------------------------------------------------------------------------


class Relation:
    """How two regions have to lie to each other to match."""

    symbol: str
    verb: str

    def check(self, space: Space) -> str | None:
        """What is wrong with using this relation in a space, or None."""
        return None

    def holds(self, r1: Region, r2: Region, space: Space, metric: str) -> bool:
        """Whether r1 matches r2 in the space."""
        raise NotImplementedError

    def _factors(self, r1: Region, r2: Region, space: Space) -> list[tuple[Extent, Extent]] | None:
        v1, v2 = r1.values_in(space), r2.values_in(space)
        return None if v1 is None or v2 is None else [(v1[d], v2[d]) for d in v1]


@dataclass(frozen=True)
class Containment(Relation):
    """``r1 m_c r2`` iff V1 ∩ V2 = V2: r2 lies entirely in r1. A partial order; the converse of `Enclosure`.

    >>> line = Space("line", d=float)
    >>> r1, r2 = (Region(line, (("d", extents.between(*e)),)) for e in ((2, 3), (1, 5)))
    >>> Containment().holds(r2, r1, line, "planar"), Containment().holds(r1, r2, line, "planar")
    (True, False)
    """

    symbol = "m_c"
    verb = "contains"

    def holds(self, r1: Region, r2: Region, space: Space, metric: str) -> bool:
        factors = self._factors(r1, r2, space)
        return factors is not None and all(extents.encloses(a, b, metric) for a, b in factors)


@dataclass(frozen=True)
class Enclosure(Relation):
    """``r1 m_e r2`` iff V1 ∩ V2 = V1: r1 lies entirely in r2. The converse of `Containment`."""

    symbol = "m_e"
    verb = "enclosed_by"

    def holds(self, r1: Region, r2: Region, space: Space, metric: str) -> bool:
        return Containment().holds(r2, r1, space, metric)


@dataclass(frozen=True)
class Overlap(Relation):
    """``r1 m_o r2`` iff V1 ∩ V2 ≠ ∅. Symmetric; follows from containment; not transitive."""

    symbol = "m_o"
    verb = "overlaps"

    def holds(self, r1: Region, r2: Region, space: Space, metric: str) -> bool:
        factors = self._factors(r1, r2, space)
        return factors is not None and all(extents.overlaps(a, b, metric) for a, b in factors)


@dataclass(frozen=True)
class Within(Relation):
    """``r1 m_d r2`` iff dist(V1, V2) <= d, the border included (m_1km of Example 7). Symmetric, grows with d.

    >>> line = Space("line", d=float)
    >>> Within(1.0).holds(Region(line, (("d", 7),)), Region(line, (("d", 6),)), line, "planar")
    True
    """

    distance: float
    symbol = "m_d"
    verb = "within"

    def __post_init__(self) -> None:
        if not (self.distance >= 0 and math.isfinite(self.distance)):
            raise ScenarioError(f"within {self.distance!r}: a distance is a finite number of at least 0")

    def check(self, space: Space) -> str | None:
        return None if measurable(space) else _no_distance(space)

    def holds(self, r1: Region, r2: Region, space: Space, metric: str) -> bool:
        factors = self._factors(r1, r2, space)
        if factors is None:
            return False
        ((a, b), *rest) = factors
        if not rest and isinstance(a, Shape) and isinstance(b, Shape):
            return shapes.within(a, b, self.distance, metric)
        return sum(_squared_gap(a, b, metric) for a, b in factors) <= self.distance * self.distance


@dataclass(frozen=True)
class Nearest(Relation):
    """``r1 m_n r2`` iff fewer than k regions lie strictly nearer to r1 than r2 does. Ties all match; not symmetric.

    Among which regions, `among` says (``"shops.site"``, narrowed by ``where``); by default all regions of the second
    one's role that are declared in the space. r2 has to be one of them; the regions of r1's own client never are.
    """

    k: int = 1
    among: Any = None
    """a `Regions` of `workbench.model.filters`, or None"""
    symbol = "m_n"
    verb = "nearest"

    def __post_init__(self) -> None:
        if not isinstance(self.k, int) or self.k < 1:
            raise ScenarioError(f"nearest k={self.k!r}: expected a whole number from 1")

    def check(self, space: Space) -> str | None:
        return None if measurable(space) else _no_distance(space)

    def holds_among(self, r1: Region, r2: Region, others: Iterable[Region], space: Space, metric: str) -> bool:
        """Whether fewer than k of the others lie strictly nearer to r1 than r2.

        >>> line = Space("line", d=float)
        >>> r3, r4 = (Region(line, (("d", extents.between(*e)),)) for e in ((4, 6), (7, 8)))
        >>> Nearest().holds_among(r4, r3, [], line, "planar")
        True
        """
        mine = closeness(r1, r2, space, metric)
        nearer = sum(closeness(r1, r, space, metric) < mine for r in others)
        return mine < math.inf and nearer < self.k


def closeness(r1: Region, r2: Region, space: Space, metric: str) -> float:
    """What nearest neighbours are ordered by: the distance squared, or of positions on the globe the haversine.

    Monotone in `distance`, but for two points free of the square root and the arc sine, so that equal distances stay
    equal.
    """
    v1, v2 = r1.values_in(space), r2.values_in(space)
    if v1 is None or v2 is None:
        return math.inf
    return sum(closeness_of(v1[d], v2[d], metric) for d in v1)


def closeness_of(a: Extent, b: Extent, metric: str) -> float:
    """The same of two extents of one dimension; of positions it is the only one of its space."""
    from workbench import geometry

    if isinstance(a, Shape) and isinstance(b, Shape):
        if a.is_point and b.is_point:
            if metric == geometry.WGS84:
                return geometry.haversine(a.x, a.y, b.x, b.y)
            return geometry.planar_squared(a.x, a.y, a.z, b.x, b.y, b.z)
        if metric == geometry.WGS84:
            return geometry.haversine_bound(shapes.distance_m(a, b, metric))
    return _squared_gap(a, b, metric)


@dataclass(frozen=True)
class UserDefined(Relation):
    """``r1 m r2`` iff a function of the user's own gives at most ``at_most`` for the pair.

    The function is kept by its name, ``module:function``.
    """

    function: str
    at_most: float
    symbol = "m_u"
    verb = "related"

    def holds(self, r1: Region, r2: Region, space: Space, metric: str) -> bool:
        value = apply(self.function, r1, r2, space)
        return value is not None and value <= self.at_most


@dataclass(frozen=True)
class Fuzzy(Relation):
    """``r1 m r2`` to a degree in [0, 1], a match from ``degree`` on (2.2).

    By default the degree is the share of r1 that lies in r2, |V1 ∩ V2| / |V1|: for a position known to some metres,
    the probability that it is inside. Degree 1 is enclosure, up to borders of no extension. Numbers are measured by
    length, integers too, and positions by area. A function of the user's own gives another degree.

    >>> line = Space("line", d=float)
    >>> blurred, zone = (Region(line, (("d", extents.between(*e)),)) for e in ((0, 10), (2, 20)))
    >>> Fuzzy(0.8).degree_of(blurred, zone, line, "planar")
    0.8
    """

    degree: float
    function: str | None = None
    symbol = "m_f"
    verb = "mostly_in"

    def __post_init__(self) -> None:
        if not 0 < self.degree <= 1:
            raise ScenarioError(f"degree {self.degree!r}: a threshold lies above 0 and up to 1")

    def degree_of(self, r1: Region, r2: Region, space: Space, metric: str) -> float:
        """The degree to which r1 matches r2, 0 where one is invalid."""
        if self.function is not None:
            return apply(self.function, r1, r2, space) or 0.0
        factors = self._factors(r1, r2, space)
        if factors is None:
            return 0.0
        return math.prod(extents.share(a, b, metric) for a, b in factors)

    def holds(self, r1: Region, r2: Region, space: Space, metric: str) -> bool:
        return self.degree_of(r1, r2, space, metric) >= self.degree


def _no_distance(space: Space) -> str:
    return (
        f"space {space.name!r} has no distance: it needs numbers only, or one position; "
        "name a space such as location, or use related(...) with a function of your own"
    )
