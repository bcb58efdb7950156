"""Shapes: what a constraint on a position leaves.

The paper gives locations as points and rectangles over x, y, z (Subject Spaces, Examples 1 and 3). A disc is
no product of intervals, so here a position is *one* compound dimension and its extents are shapes: a
skeleton (a point, a line, an area) and a radius, the set of all points within ``radius_m`` of the skeleton.

    point = skeleton point, radius 0        disc = skeleton point, radius > 0
    line  = skeleton line,  radius 0        road with a width = skeleton line, radius > 0
    area  = polygon or multipolygon; closed, edges straight

That makes every spatial relation one comparison of the distance of two skeletons with radii, and says
by itself what cannot be decided: see `SUPPORTED`. The metric (`geometry.PLANAR` or `geometry.WGS84`) is not
part of a shape: it comes with the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workbench import geometry
from workbench.errors import ScenarioError
from workbench.geometry import PLANAR, WGS84
from workbench.model.columns import fillable

Coordinates = Sequence[float]


@dataclass(frozen=True)
class Shape:
    """A skeleton and a radius around it.

    >>> disc((0, 0), 500)
    disc((0, 0), 500 m)
    """

    kind: str
    """``point``, ``line`` or ``area``"""
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    z: float = 0.0
    """height of a point; lines and areas are flat"""
    offsets: tuple[int, ...] = ()
    """where each chain of vertices of a line or an area starts, and where the last one ends"""
    radius_m: float = 0.0

    @property
    def x(self) -> float:
        return self.xs[0]

    @property
    def y(self) -> float:
        return self.ys[0]

    @property
    def is_point(self) -> bool:
        """A point has no spatial extension (Example 3)."""
        return self.kind == "point" and self.radius_m == 0.0

    @property
    def chains(self) -> tuple[tuple[float, ...], tuple[float, ...], tuple[int, ...], int, int]:
        """The arguments that `geometry` takes for lines and areas."""
        return self.xs, self.ys, self.offsets, 0, len(self.offsets) - 1

    @cached_property
    def skeleton(self) -> Any:
        """The skeleton as a shapely geometry."""
        import shapely

        if self.kind == "point":
            return shapely.Point(self.x, self.y)
        chains = [
            list(zip(self.xs[a:b], self.ys[a:b], strict=True))
            for a, b in zip(self.offsets, self.offsets[1:], strict=False)
        ]
        if self.kind == "line":
            return shapely.MultiLineString(chains) if len(chains) > 1 else shapely.LineString(chains[0])
        # Even-odd over all rings is what `point_in_polygon` means; shells and holes come out of it.
        whole = shapely.Polygon(chains[0])
        for ring in chains[1:]:
            whole = whole.symmetric_difference(shapely.Polygon(ring))
        return whole

    def __repr__(self) -> str:
        where = f"{self.x:g}, {self.y:g}" + (f", {self.z:g}" if self.z else "")
        if self.is_point:
            return f"point({where})"
        if self.kind == "point":
            return f"disc(({where}), {self.radius_m:g} m)"
        around = f", {self.radius_m:g} m" if self.radius_m else ""
        return f"{self.kind}({len(self.xs)} vertices{around})"


@fillable
def point(x: float, y: float, z: float = 0.0) -> Shape:
    """A position without extension.

    >>> point(50, 20)
    point(50, 20)
    """
    return Shape("point", *_finite([(x, y)]), z=_finite_number(z, "z"))


@fillable
def disc(center: Shape | Coordinates, radius_m: float) -> Shape:
    """All points within ``radius_m`` of a centre, the border included.

    >>> disc(point(0, 0), 5).is_point, disc(point(0, 0), 0).is_point
    (False, True)
    """
    return around(shape(center), radius_m)


def line(coordinates: Iterable[Coordinates]) -> Shape:
    """A chain of straight segments: a road.

    >>> line([(0, 0), (10, 0), (10, 5)])
    line(3 vertices)
    """
    xs, ys = _finite(list(coordinates))
    if len(xs) < 2:
        raise ScenarioError(f"a line needs two vertices or more, got {len(xs)}")
    return Shape("line", xs, ys, offsets=(0, len(xs)))


def polygon(shell: Iterable[Coordinates], holes: Iterable[Iterable[Coordinates]] = ()) -> Shape:
    """A closed area with straight edges.

    >>> polygon([(0, 0), (1, 0), (1, 1), (0, 1)])
    area(5 vertices)
    """
    import shapely

    return shape(shapely.Polygon(list(shell), [list(hole) for hole in holes]))


def box(x_min: float, y_min: float, x_max: float, y_max: float) -> Shape:
    """The closed rectangle of Example 3.

    >>> box(30, 50, 100, 130)
    area(5 vertices)
    """
    return polygon([(x_min, y_min), (x_max, y_min), (x_max, y_max), (x_min, y_max)])


@fillable
def around(skeleton: Shape | Coordinates, radius_m: float) -> Shape:
    """All points within ``radius_m`` of a shape.

    >>> around(line([(0, 0), (10, 0)]), 5)
    line(2 vertices, 5 m)
    """
    base = shape(skeleton)
    radius = _finite_number(radius_m, "radius_m")
    if radius < 0:
        raise ScenarioError(f"radius_m = {radius_m:g}; a radius is at least 0")
    return Shape(base.kind, base.xs, base.ys, base.z, base.offsets, base.radius_m + radius)


@fillable
def reach(base: Shape | Coordinates, radius_m: float) -> Shape:
    """A point becomes the disc of that radius (a line the road of that half width); an area stays as it is.

    >>> reach(point(0, 0), 500), reach(box(0, 0, 1, 1), 500)
    (disc((0, 0), 500 m), area(5 vertices))
    """
    base = shape(base)
    return base if base.kind == "area" else around(base, radius_m)


def shape(value: Any) -> Shape:
    """A shape from a shape, a pair or triple of coordinates, or a shapely geometry.

    >>> shape((1, 2))
    point(1, 2)
    """
    if isinstance(value, Shape):
        return value
    if hasattr(value, "geom_type"):
        return _from_shapely(value)
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) in (2, 3):
        return point(*value)
    raise ScenarioError(f"{value!r} is not a position; expected (x, y), (x, y, z), a shape or a shapely geometry")


def _from_shapely(geom: Any) -> Shape:
    import shapely

    if geom.is_empty:
        raise ScenarioError(f"an empty {geom.geom_type} leaves no value; a region must not be empty")
    if not geom.is_valid:
        raise ScenarioError(f"invalid {geom.geom_type}: {shapely.is_valid_reason(geom)}")
    kind = geom.geom_type
    if kind == "Point":
        return point(geom.x, geom.y, geom.z if geom.has_z else 0.0)
    parts = list(geom.geoms) if hasattr(geom, "geoms") else [geom]
    if kind in ("LineString", "MultiLineString", "LinearRing"):
        return _chains("line", [list(part.coords) for part in parts])
    if kind in ("Polygon", "MultiPolygon"):
        oriented = [shapely.orient_polygons(part) for part in parts]
        return _chains("area", [list(r.coords) for part in oriented for r in (part.exterior, *part.interiors)])
    raise ScenarioError(f"{kind} is not supported; expected a Point, LineString, Polygon or a Multi- of the last two")


def _chains(kind: str, chains: list[list[Coordinates]]) -> Shape:
    offsets = [0]
    for chain in chains:
        offsets.append(offsets[-1] + len(chain))
    xs, ys = _finite([vertex for chain in chains for vertex in chain])
    return Shape(kind, xs, ys, offsets=tuple(offsets))


def _finite_number(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ScenarioError(f"{name} = {value!r}; expected a number") from None
    if not math.isfinite(number):
        raise ScenarioError(f"{name} = {value!r}; expected a finite number")
    return number


def _finite(vertices: Sequence[Coordinates]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    xs = tuple(_finite_number(v[0], "x") for v in vertices)
    ys = tuple(_finite_number(v[1], "y") for v in vertices)
    return xs, ys


# -- how two shapes lie to each other ---------------------------------------------------------------

SUPPORTED = {
    "distance": "point or disc to anything; line or area to line or area on planar coordinates",
    "overlap": "as distance; two areas or lines without radius on wgs84 too",
    "enclosure": "anything in a point or disc (wgs84: points and discs); anything without radius in a line or area; "
    "a disc in an area without radius; a point in a line or area with radius",
    "share": "a point in anything it can be enclosed by; a disc in a disc or in an area without radius",
}
"""Which combinations of relation and extent can be decided; the others are refused by name."""


def _refuse(what: str, a: Shape, b: Shape, metric: str) -> ScenarioError:
    return ScenarioError(f"{what} of {a!r} and {b!r} on {metric} coordinates is not supported ({SUPPORTED[what]})")


def distance_m(a: Shape, b: Shape, metric: str) -> float:
    """The distance of the closest points of two shapes; 0 where they touch.

    >>> distance_m(point(0, 0), disc((10, 0), 4), PLANAR)
    6.0
    """
    return max(0.0, _skeleton_distance(a, b, metric) - (a.radius_m + b.radius_m))


def within(a: Shape, b: Shape, reach_m: float, metric: str) -> bool:
    """Whether the closest points of two shapes are at most ``reach_m`` apart, exactly on the border too.

    >>> within(point(0, 0), point(3, 4), 5.0, PLANAR)
    True
    """
    total = reach_m + (a.radius_m + b.radius_m)
    if a.kind == b.kind == "point":
        if metric == PLANAR:
            return geometry.planar_within(a.x, a.y, a.z, b.x, b.y, b.z, total)
        return geometry.geodesic_within(a.x, a.y, b.x, b.y, total)
    if a.kind == "point":
        a, b = b, a
    if b.kind == "point":
        if a.kind == "area":
            inside = geometry.point_in_polygon(b.x, b.y, *a.chains)
            if inside or total == 0:
                # Whether a point lies in an area is decided exactly; a distance that rounds to nothing is outside.
                return inside and total >= 0
        if metric == PLANAR:
            return total >= 0 and geometry.planar_edges_squared(b.x, b.y, *a.chains) <= total * total
        return geometry.geodesic_edges_haversine(b.x, b.y, *a.chains) <= geometry.haversine_bound(total)
    if total == 0:
        return bool(a.skeleton.intersects(b.skeleton))
    return _skeleton_distance(a, b, metric) <= total


def overlaps(a: Shape, b: Shape, metric: str) -> bool:
    """Whether two shapes share a point.

    >>> overlaps(disc((0, 0), 2), disc((4, 0), 2), PLANAR)
    True
    """
    return within(a, b, 0.0, metric)


def encloses(outer: Shape, inner: Shape, metric: str) -> bool:
    """Whether every point of ``inner`` belongs to ``outer``.

    >>> encloses(disc((0, 0), 5), disc((3, 0), 2), PLANAR), encloses(disc((0, 0), 5), disc((3, 0), 3), PLANAR)
    (True, False)
    """
    if outer.kind == "point":
        room = outer.radius_m - inner.radius_m
        if inner.kind == "point":
            return within(_bare(outer), _bare(inner), room, metric)
        if metric == WGS84:
            raise _refuse("enclosure", inner, outer, metric)
        return all(
            geometry.planar_within(outer.x, outer.y, outer.z, x, y, 0.0, room)
            for x, y in zip(inner.xs, inner.ys, strict=True)
        )
    if inner.is_point:
        return within(outer, inner, 0.0, metric)
    if outer.radius_m == 0 and inner.radius_m == 0:
        return bool(outer.skeleton.covers(inner.skeleton))
    if outer.kind == "area" and outer.radius_m == 0 and inner.kind == "point":
        if not geometry.point_in_polygon(inner.x, inner.y, *outer.chains):
            return False
        if metric == PLANAR:
            return geometry.planar_edges_squared(inner.x, inner.y, *outer.chains) >= inner.radius_m * inner.radius_m
        return geometry.geodesic_edges_haversine(inner.x, inner.y, *outer.chains) >= geometry.haversine_bound(
            inner.radius_m
        )
    raise _refuse("enclosure", inner, outer, metric)


def share(inner: Shape, outer: Shape, metric: str) -> float:
    """How much of ``inner`` lies in ``outer``, from 0 to 1; of a point, all or nothing.

    >>> share(disc((0, 0), 1), box(0, -9, 9, 9), PLANAR)
    0.5
    """
    if inner.is_point:
        return 1.0 if encloses(outer, inner, metric) else 0.0
    if inner.kind == "point" and outer.kind == "point":
        apart = _skeleton_distance(inner, outer, metric)
        r = inner.radius_m
        return min(1.0, geometry.lens_area(apart, r, outer.radius_m) / (math.pi * r * r))
    if inner.kind == "point" and outer.kind == "area" and outer.radius_m == 0:
        radius, stretch = inner.radius_m, 1.0
        if metric == WGS84:
            radius = radius / (geometry.EARTH_RADIUS_M * geometry.RADIAN)
            stretch = math.cos(inner.y * geometry.RADIAN)
        area = geometry.disc_polygon_area(inner.x, inner.y, radius, stretch, *outer.chains)
        return min(1.0, area / (math.pi * radius * radius))
    raise _refuse("share", inner, outer, metric)


def _bare(a: Shape) -> Shape:
    return Shape(a.kind, a.xs, a.ys, a.z, a.offsets)


def _skeleton_distance(a: Shape, b: Shape, metric: str) -> float:
    if a.kind == b.kind == "point":
        if metric == PLANAR:
            return math.sqrt(geometry.planar_squared(a.x, a.y, a.z, b.x, b.y, b.z))
        return geometry.geodesic_distance_m(a.x, a.y, b.x, b.y)
    if a.kind == "point":
        a, b = b, a
    if b.kind == "point":
        if a.kind == "area" and geometry.point_in_polygon(b.x, b.y, *a.chains):
            return 0.0
        if metric == PLANAR:
            return math.sqrt(geometry.planar_edges_squared(b.x, b.y, *a.chains))
        h = geometry.geodesic_edges_haversine(b.x, b.y, *a.chains)
        return 2.0 * geometry.EARTH_RADIUS_M * math.asin(math.sqrt(h))
    if metric == WGS84:
        raise _refuse("distance", a, b, metric)
    return float(a.skeleton.distance(b.skeleton))
