"""Laws of regions, relations and spaces, over random values; and the arithmetic against independent libraries."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import portion
import pyproj
import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st

from workbench import geometry
from workbench.model import (
    Degree,
    Enumerated,
    Space,
    above,
    anything_but,
    at_least,
    at_most,
    below,
    between,
    box,
    degree,
    disc,
    integer,
    line,
    location,
    one_of,
    percentage,
    point,
    polygon,
    region,
)
from workbench.model import extents as ext
from workbench.model.relations import (
    Containment,
    Enclosure,
    Fuzzy,
    Nearest,
    Overlap,
    Within,
    closeness,
    distance,
    paper_distance,
)

# -- values -----------------------------------------------------------------------------------------------------

GOODS = Space("goods", price=float, stock=int, kind=str, size=Enumerated("size", ("s", "m", "l")))
AMOUNT = Space("amount", price=float, stock=int)
SPACES = [GOODS, AMOUNT, Space("kinds", kind=str), Space("else", other=float)]
small = st.integers(-4, 4)


def _interval(ends: tuple[int, int], closed: str) -> ext.Interval:
    lower, upper = sorted(ends)
    return between(lower, upper, closed=closed if lower < upper else "both")


intervals = st.one_of(
    st.builds(_interval, st.tuples(small, small), st.sampled_from(["both", "left", "right", "neither"])),
    st.builds(lambda make, bound: make(bound), st.sampled_from([below, at_most, above, at_least]), small),
    small.map(ext.single),
)
interval_sets = st.lists(intervals, min_size=1, max_size=3).map(ext.union)
sets_of_values = st.builds(
    lambda make, values: make(*values),
    st.sampled_from([one_of, anything_but]),
    st.sets(st.sampled_from("abc"), min_size=1, max_size=2),
)
sizes = st.sets(st.sampled_from("sml"), min_size=1, max_size=3)


@st.composite
def regions(draw, space=GOODS):
    wholes = interval_sets.filter(lambda i: any(n in i for n in range(-6, 7)))
    kinds = {"price": interval_sets, "stock": wholes, "kind": sets_of_values, "size": sizes}
    names = [name for name, _ in space.dimensions]
    chosen = draw(st.sets(st.sampled_from(names), min_size=1))
    return region(space, **{name: draw(kinds[name]) for name in names if name in chosen})


spaces = st.builds(
    lambda names: Space("_".join(sorted(names)), dict.fromkeys(sorted(names), float)),
    st.sets(st.sampled_from("abcd"), min_size=1),
)


def holds(relation, r1, r2, space=GOODS, metric="planar"):
    return relation.holds(r1, r2, space, metric)


# -- spaces -----------------------------------------------------------------------------------------------------


@given(spaces, spaces)
def test_partial_containment_and_being_unrelated_are_symmetric(a, b):
    for kind in (Degree.PARTIAL, Degree.UNRELATED):
        assert (degree(a, b) is kind) == (degree(b, a) is kind)


@given(spaces, spaces)
def test_only_a_proper_part_has_no_degree_towards_the_whole(a, b):
    assert (degree(a, b) is None) == (degree(b, a) is Degree.FULL and degree(a, b) is not Degree.FULL)
    assert (degree(a, b) is None) == (set(a.dimensions) < set(b.dimensions))


@given(spaces, spaces, spaces)
def test_full_containment_is_reflexive_and_transitive(a, b, c):
    assert degree(a, a) is Degree.FULL
    if degree(a, b) is Degree.FULL and degree(b, c) is Degree.FULL:
        assert degree(a, c) is Degree.FULL


@given(spaces, spaces)
def test_the_union_of_two_spaces_fully_contains_both(a, b):
    assert degree(a | b, a) is degree(a | b, b) is Degree.FULL


def test_partial_containment_of_a_road_and_a_city_is_symmetric():
    """6.1: a road that extends out of a city partially contains it, and the city partially contains the road."""
    road, city = Space("road", x=float, lanes=int), Space("city", x=float, mayor=str)
    assert degree(road, city) is degree(city, road) is Degree.PARTIAL
    street = region(location, position=line([(-10, 5), (30, 5)]))
    town = region(location, position=box(0, 0, 20, 10))
    for a, b in ((street, town), (town, street)):
        assert holds(Overlap(), a, b, location), "part of each lies in the other"
        assert not holds(Containment(), a, b, location) and not holds(Enclosure(), a, b, location)


# -- regions ----------------------------------------------------------------------------------------------------


@given(regions(), st.sampled_from(SPACES))
def test_a_region_is_valid_where_it_constrains_a_dimension_and_v_is_a_product_over_all_of_them(r, space):
    constrained = {name for name, _ in r.constraints} & {name for name, _ in space.dimensions}
    values = r.values_in(space)
    assert r.valid_in(space) == bool(constrained) == (values is not None)
    if values is not None:
        assert list(values) == [name for name, _ in space.dimensions]
        for name, kind in space.dimensions:
            assert values[name] == (r[name] if name in constrained else kind.domain)


@given(regions(AMOUNT), regions(AMOUNT))
def test_v_with_respect_to_a_larger_space_keeps_every_relation(a, b):
    """What a larger space adds is left open by both, so it decides nothing."""
    for relation in (Containment(), Overlap()):
        assert holds(relation, a, b, AMOUNT) == holds(relation, a, b, GOODS)


@given(interval_sets)
def test_the_normal_form_over_the_integers_has_the_same_integers_and_no_others(given_):
    brute = {n for n in range(-6, 7) if n in given_}
    assume(brute)
    made = integer.extent(given_)
    assert {n for n in range(-6, 7) if n in made} == brute
    for part in made:
        for end, side in ((part.lower, part.left), (part.upper, part.right)):
            assert math.isinf(end) or (end == int(end) and side is portion.CLOSED), "whole ends, all of them closed"
    assert all(b.lower - a.upper > 1 for a, b in pairwise(made)), "adjacent runs are joined"


@given(interval_sets, interval_sets)
def test_equal_sets_of_integers_have_equal_normal_forms(a, b):
    brute = [{n for n in range(-6, 7) if n in x} for x in (a, b)]
    assume(all(brute))
    assert (brute[0] == brute[1]) == (integer.extent(a) == integer.extent(b))


@given(regions(), regions())
def test_relations_agree_with_brute_force_over_the_values(a, b):
    """The grid has every whole and every half number around the ends, so it tells any two extents apart."""
    reals = [n / 2 for n in range(-12, 13)] + [-100.0, 100.0]
    wholes = [*range(-6, 7), -100, 100]
    samples = {"price": reals, "stock": wholes, "kind": "abcz", "size": "sml"}
    va, vb = a.values_in(GOODS), b.values_in(GOODS)

    def has(extent, value):
        return extent.contains(one_of(value)) if isinstance(extent, ext.ValueSet) else value in extent

    common, inside = True, True
    for name, values in samples.items():
        common &= any(has(va[name], v) and has(vb[name], v) for v in values)
        inside &= all(has(va[name], v) for v in values if has(vb[name], v))
    assert holds(Overlap(), a, b) == common
    assert holds(Containment(), a, b) == inside


# -- relations --------------------------------------------------------------------------------------------------


@given(regions(), regions())
def test_enclosure_is_the_converse_of_containment(a, b):
    assert holds(Enclosure(), a, b) == holds(Containment(), b, a)


@given(regions(), regions(), regions())
def test_containment_is_a_partial_order(a, b, c):
    assert holds(Containment(), a, a)
    if holds(Containment(), a, b) and holds(Containment(), b, c):
        assert holds(Containment(), a, c)
    if holds(Containment(), a, b) and holds(Containment(), b, a):
        assert a.values_in(GOODS) == b.values_in(GOODS)


@given(regions(), regions(), regions())
def test_overlap_is_reflexive_symmetric_follows_from_containment_and_grows_with_it(a, b, c):
    assert holds(Overlap(), a, a)
    assert holds(Overlap(), a, b) == holds(Overlap(), b, a)
    if holds(Containment(), a, b):
        assert holds(Overlap(), a, b)
        assert holds(Overlap(), a, c) or not holds(Overlap(), b, c)


@given(regions(AMOUNT), regions(AMOUNT), st.integers(0, 6), st.integers(0, 6))
def test_within_is_reflexive_symmetric_grows_with_d_and_follows_from_overlap(a, b, d, more):
    assert holds(Within(0), a, a, AMOUNT)
    assert holds(Within(d), a, b, AMOUNT) == holds(Within(d), b, a, AMOUNT)
    assert holds(Within(d + more), a, b, AMOUNT) or not holds(Within(d), a, b, AMOUNT)
    if holds(Overlap(), a, b, AMOUNT):
        assert holds(Within(0), a, b, AMOUNT)
    assert holds(Within(d), a, b, AMOUNT) == (distance(a, b, AMOUNT, "planar") <= d)


LINE = Space("line", d=float)


@given(intervals, intervals)
def test_the_papers_distance_is_never_below_the_distance_and_equal_where_the_intervals_are_apart(a, b):
    assume(all(not math.isinf(end) for i in (a, b) for end in (i.lower, i.upper)))
    r1, r2 = region(LINE, d=a), region(LINE, d=b)
    apart = distance(r1, r2, LINE, "planar")
    assert distance(r2, r1, LINE, "planar") == apart <= paper_distance(r1, r2, LINE)
    if apart > 0:
        assert paper_distance(r1, r2, LINE) == paper_distance(r2, r1, LINE) == apart


@given(regions(AMOUNT), st.lists(regions(AMOUNT), min_size=1, max_size=5), st.integers(1, 5))
def test_nearest_has_at_least_one_match_all_ties_match_and_k_is_monotone(r1, others, k):
    nearest = [Nearest(k).holds_among(r1, r, others, AMOUNT, "planar") for r in others]
    apart = [closeness(r1, r, AMOUNT, "planar") for r in others]
    assert any(nearest)
    assert sum(nearest) >= min(k, len(others))
    for i, j in ((i, j) for i in range(len(others)) for j in range(len(others))):
        if apart[i] == apart[j]:
            assert nearest[i] == nearest[j]
        if apart[i] < apart[j] and nearest[j]:
            assert nearest[i]
    for i, r in enumerate(others):
        assert Nearest(k + 1).holds_among(r1, r, others, AMOUNT, "planar") or not nearest[i]


spots = st.builds(
    lambda x, y, radius: disc((x / 100, y / 100), radius) if radius else point(x / 100, y / 100),
    st.integers(-300, 300), st.integers(-300, 300), st.sampled_from([0, 0, 1, 5_000, 60_000]),
)  # fmt: skip


@pytest.mark.parametrize("metric", ["planar", "wgs84"])
@given(spots, st.lists(spots, min_size=2, max_size=5))
def test_what_is_closer_is_nearer_whatever_shapes_are_compared(metric, here, others):
    mine, places = region(location, position=here), [region(location, position=other) for other in others]
    ranked = sorted(places, key=lambda r: closeness(mine, r, location, metric))
    apart = [distance(mine, r, location, metric) for r in ranked]
    assert all(a <= b * (1 + 1e-9) + 1e-6 for a, b in pairwise(apart))


@given(regions(), regions())
def test_a_fuzzy_degree_lies_in_0_to_1_is_1_for_the_enclosed_and_0_for_the_disjoint(a, b):
    found = Fuzzy(0.5).degree_of(a, b, GOODS, "planar")
    assert 0 <= found <= 1
    if holds(Enclosure(), a, b):
        assert found == 1
    if not holds(Overlap(), a, b):
        assert found == 0


@given(regions(), regions(), st.floats(0.01, 1), st.floats(0.01, 1))
def test_a_lower_threshold_accepts_more(a, b, low, high):
    low, high = sorted((low, high))
    assert holds(Fuzzy(low), a, b) or not holds(Fuzzy(high), a, b)


@given(st.floats(0, 100), st.floats(0, 100), st.floats(0, 100))
def test_a_percentage_is_a_subset_of_the_reals(lower, upper, value):
    assume(lower <= upper)
    made = percentage.extent(between(lower, upper))
    assert (value in made) == (lower <= value <= upper)
    assert percentage.domain.contains(made)


# -- shapes -----------------------------------------------------------------------------------------------------

metres = st.integers(-10, 10).map(float)
points = st.builds(point, metres, metres)
discs = st.builds(disc, st.tuples(metres, metres), st.integers(0, 8).map(float))
boxes = st.builds(
    lambda x, y, w, h: box(x, y, x + w, y + h), metres, metres, st.integers(1, 10), st.integers(1, 10)
)
lines = st.lists(st.tuples(metres, metres), min_size=2, max_size=4, unique=True).map(line)
shapes = st.one_of(points, discs, boxes, lines)


def positioned(shape):
    return region(location, position=shape)


@given(shapes, shapes)
def test_overlap_and_within_of_shapes_are_symmetric_and_overlap_is_distance_0(a, b):
    r1, r2 = positioned(a), positioned(b)
    assert holds(Overlap(), r1, r2, location) == holds(Overlap(), r2, r1, location)
    assert holds(Overlap(), r1, r2, location) == holds(Within(0), r1, r2, location)
    assert distance(r1, r2, location, "planar") == distance(r2, r1, location, "planar")


@given(shapes, st.one_of(points, discs), st.one_of(points, discs))
def test_containment_of_points_and_discs_is_transitive_and_implies_overlap(a, b, c):
    try:
        first = holds(Containment(), positioned(a), positioned(b), location)
        third = holds(Containment(), positioned(a), positioned(c), location)
    except ext.ScenarioError:
        assume(False)
    if first:
        assert holds(Overlap(), positioned(a), positioned(b), location)
    if first and holds(Containment(), positioned(b), positioned(c), location):
        assert third


@given(shapes, discs)
def test_the_share_of_a_disc_is_a_probability(outer, inner):
    try:
        share = Fuzzy(0.5).degree_of(positioned(inner), positioned(outer), location, "planar")
        enclosed = holds(Enclosure(), positioned(inner), positioned(outer), location)
    except ext.ScenarioError:
        assume(False)
    assert 0 <= share <= 1
    if enclosed:
        assert share == pytest.approx(1)
    if not holds(Overlap(), positioned(inner), positioned(outer), location):
        assert share == pytest.approx(0, abs=1e-12)


@given(shapes, shapes)
def test_shapes_agree_with_shapely(a, b):
    """Distances of skeletons, from which everything else follows."""
    assert distance(positioned(a), positioned(b), location, "planar") == pytest.approx(
        max(0.0, a.skeleton.distance(b.skeleton) - a.radius_m - b.radius_m), abs=1e-9
    )


# -- geometry against Fraction, shapely and pyproj ----------------------------------------------------------------

# Exactness ends where products underflow; no coordinate is that small.
awkward = st.one_of(
    st.floats(-1e3, 1e3).filter(lambda v: v == 0 or abs(v) > 1e-60),
    st.sampled_from([0.1, 0.2, 0.3, 1 / 3, 0.7, 1e-9, 116.397128, 39.916527, -122.4194155]),
    st.integers(-3, 3).map(float),
)


def beside(value, direction):
    """The next number, or from 0 a small step that is no denormal."""
    return math.nextafter(value, direction) if abs(value) > 1e-60 else math.copysign(1e-60, direction)


def exact_side(ax, ay, bx, by, px, py):
    a, b, c, d, e, f = map(Fraction, (ax, ay, bx, by, px, py))
    cross = (c - a) * (f - b) - (d - b) * (e - a)
    return (cross > 0) - (cross < 0)


@given(awkward, awkward, awkward, awkward, awkward, awkward)
def test_the_side_of_a_point_is_exact(ax, ay, bx, by, px, py):
    assert geometry.side(ax, ay, bx, by, px, py) == exact_side(ax, ay, bx, by, px, py)


@given(awkward, awkward, awkward, awkward, st.floats(0, 1))
def test_the_side_of_a_point_next_to_the_line_is_exact(ax, ay, bx, by, u):
    """The rounded point on the segment and its neighbours are where rounding would decide."""
    px, py = ax + u * (bx - ax), ay + u * (by - ay)
    for x in (px, beside(px, math.inf), beside(px, -math.inf)):
        assert geometry.side(ax, ay, bx, by, x, py) == exact_side(ax, ay, bx, by, x, py)


def exact_inside(x, y, ring):
    """Even-odd with fractions; the border is inside."""
    px, py = Fraction(x), Fraction(y)
    vertices = [(Fraction(a), Fraction(b)) for a, b in ring]
    inside = False
    for (ax, ay), (bx, by) in zip(vertices, vertices[1:] + vertices[:1], strict=True):
        cross = (bx - ax) * (py - ay) - (by - ay) * (px - ax)
        if cross == 0 and min(ax, bx) <= px <= max(ax, bx) and min(ay, by) <= py <= max(ay, by):
            return True
        if (ay > py) != (by > py) and px < ax + (py - ay) * (bx - ax) / (by - ay):
            inside = not inside
    return inside


@st.composite
def triangles(draw):
    ring = [(draw(awkward), draw(awkward)) for _ in range(3)]
    assume(exact_side(*ring[0], *ring[1], *ring[2]) != 0)
    assume(shapely.Polygon(ring).is_valid)
    return ring


@given(triangles(), awkward, awkward, st.integers(0, 2), st.floats(0, 1))
def test_point_in_polygon_is_exact_on_edges_vertices_and_beside_them(ring, x, y, edge, u):
    area = polygon(ring)
    (ax, ay), (bx, by) = ring[edge], ring[(edge + 1) % 3]
    on_edge = (ax + u * (bx - ax), ay + u * (by - ay))
    for px, py in ((x, y), (ax, ay), on_edge, (beside(on_edge[0], math.inf), on_edge[1])):
        assert geometry.point_in_polygon(px, py, *area.chains) == exact_inside(px, py, ring), (px, py)
    assert geometry.point_in_polygon(ax, ay, *area.chains), "a vertex belongs to its polygon"


@given(st.lists(st.tuples(metres, metres), min_size=3, max_size=7, unique=True), metres, metres)
def test_point_in_polygon_agrees_with_shapely(ring, x, y):
    whole = shapely.Polygon(ring)
    assume(whole.is_valid and whole.area > 0)
    assert geometry.point_in_polygon(x, y, *polygon(ring).chains) == whole.covers(shapely.Point(x, y))


def test_a_hole_is_outside_and_its_border_inside():
    ring = polygon([(0, 0), (9, 0), (9, 9), (0, 9)], [[(3, 3), (6, 3), (6, 6), (3, 6)]])
    for x, y, inside in ((1, 1, True), (4, 4, False), (3, 4, True), (6, 6, True), (9, 9, True), (9.1, 9, False)):
        assert geometry.point_in_polygon(x, y, *ring.chains) is inside


@given(metres, metres, st.lists(st.tuples(metres, metres), min_size=2, max_size=5, unique=True))
def test_the_distance_to_edges_agrees_with_shapely(x, y, vertices):
    expected = shapely.LineString(vertices).distance(shapely.Point(x, y))
    assert math.sqrt(geometry.planar_edges_squared(x, y, *line(vertices).chains)) == pytest.approx(expected, abs=1e-9)


SPHERE = pyproj.Geod(a=geometry.EARTH_RADIUS_M, b=geometry.EARTH_RADIUS_M)
WGS84 = pyproj.Geod(ellps="WGS84")
longitudes, latitudes = st.floats(-180, 180), st.floats(-89.9, 89.9)


@given(longitudes, latitudes, longitudes, latitudes)
def test_the_great_circle_agrees_with_pyproj_on_the_sphere_and_nearly_on_the_ellipsoid(lon1, lat1, lon2, lat2):
    ours = geometry.geodesic_distance_m(lon1, lat1, lon2, lat2)
    assert ours == geometry.geodesic_distance_m(lon2, lat2, lon1, lat1)
    _, _, sphere = SPHERE.inv(lon1, lat1, lon2, lat2)
    assert ours == pytest.approx(sphere, rel=1e-7, abs=1e-3) or sphere > 2e7, "antipodes are badly conditioned"
    _, _, ellipsoid = WGS84.inv(lon1, lat1, lon2, lat2)
    assert ours == pytest.approx(ellipsoid, rel=0.006, abs=1)


@given(longitudes, latitudes, st.floats(0, 360), st.floats(1, 1e6), st.floats(0.5, 2))
def test_within_on_the_globe_agrees_with_the_distance(lon, lat, bearing, away_m, factor):
    lon2, lat2, _ = SPHERE.fwd(lon, lat, bearing, away_m)
    radius_m = away_m * factor
    assume(abs(factor - 1) > 1e-6)
    assert geometry.geodesic_within(lon, lat, lon2, lat2, radius_m) == (away_m <= radius_m)


@given(st.floats(-170, 170), st.floats(-70, 70), st.floats(-0.05, 0.05), st.floats(-0.05, 0.05), st.data())
def test_the_distance_to_a_short_edge_on_the_globe_agrees_with_a_search_along_it(lon, lat, dlon, dlat, data):
    """Edges are straight in degrees; the projection to the plane is good to a few parts in 10,000 over some km."""
    x, y = lon + data.draw(st.floats(-0.05, 0.05)), lat + data.draw(st.floats(-0.05, 0.05))
    chain = line([(lon, lat), (lon + dlon, lat + dlat)])
    found = 2 * geometry.EARTH_RADIUS_M * math.asin(math.sqrt(geometry.geodesic_edges_haversine(x, y, *chain.chains)))
    steps = [(lon + k / 200 * dlon, lat + k / 200 * dlat) for k in range(201)]
    best = min(SPHERE.inv(x, y, *step)[2] for step in steps)
    length = SPHERE.inv(lon, lat, lon + dlon, lat + dlat)[2]
    assert best - length / 200 - 1 <= found <= best + 0.002 * (best + length) + 1


@given(st.floats(0, 30), st.floats(0.5, 10), st.floats(0.5, 10))
def test_the_area_of_a_lens_agrees_with_shapely(apart, r1, r2):
    many = 256
    a, b = shapely.Point(0, 0).buffer(r1, quad_segs=many), shapely.Point(apart, 0).buffer(r2, quad_segs=many)
    ours = geometry.lens_area(apart, r1, r2)
    assert ours == pytest.approx(a.intersection(b).area, rel=1e-3, abs=1e-3 * min(r1, r2) ** 2)
    assert 0 <= ours <= math.pi * min(r1, r2) ** 2 * (1 + 1e-12)
    assert ours == pytest.approx(geometry.lens_area(apart, r2, r1), abs=1e-9)


@given(metres, metres, st.floats(0.5, 12), st.lists(st.tuples(metres, metres), min_size=3, max_size=7, unique=True))
def test_the_area_of_a_disc_in_a_polygon_agrees_with_shapely(x, y, radius, ring):
    whole = shapely.Polygon(ring)
    assume(whole.is_valid and whole.area > 0.5)
    expected = whole.intersection(shapely.Point(x, y).buffer(radius, quad_segs=256)).area
    ours = geometry.disc_polygon_area(x, y, radius, 1.0, *polygon(ring).chains)
    assert ours == pytest.approx(expected, rel=1e-3, abs=1e-3 * radius**2)


def test_the_area_of_a_disc_leaves_holes_out():
    ring = polygon([(-9, -9), (9, -9), (9, 9), (-9, 9)], [[(-1, -1), (1, -1), (1, 1), (-1, 1)]])
    assert geometry.disc_polygon_area(0, 0, 5, 1.0, *ring.chains) == pytest.approx(math.pi * 25 - 4)
