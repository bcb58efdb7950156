"""The only distance and point-in-region arithmetic, planar and geodesic.

Every engine uses these functions: the reference calls them as they stand, and ``engines/kernels.py``
compiles *these very functions* with Numba (no fast-math), so that no two engines can disagree about a
border. They are therefore written for scalars and flat sequences, in the part of Python that Numba
compiles: floats, indices, loops.

Two metrics, named in every output's metadata:

* ``planar``: x, y (and z) in metres. Within d means ``dx*dx + dy*dy + dz*dz <= d*d``.
* ``wgs84``: longitude and latitude in degrees, distance by the haversine on a sphere of 6,371,000 m.
  Edges of lines and polygons are straight in degrees.

Polygons are closed: their border belongs to them. The side of a point with respect to an edge is decided
exactly (floating-point expansions after Dekker 1971 and Shewchuk 1997), so that a point on an edge is on
it whatever its coordinates are, as long as their products neither overflow nor underflow.

Where the wgs84 metric needs the nearest point of a segment, the segment is projected to the plane that
touches the sphere at the other point (equirectangular), the nearest parameter is taken there, and the
haversine to that point of the segment is the distance. *Tested against* pyproj and shapely.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

PLANAR = "planar"
WGS84 = "wgs84"
EARTH_RADIUS_M = 6_371_000.0
RADIAN = math.pi / 180.0
METRIC_NAMES = {
    PLANAR: "Euclidean, metres",
    WGS84: "haversine on a sphere of 6371000 m, metres",
}

Floats = Sequence[float]
Ints = Sequence[int]


# -- points ---------------------------------------------------------------------------------------


def planar_squared(x1: float, y1: float, z1: float, x2: float, y2: float, z2: float) -> float:
    """The square of the Euclidean distance.

    >>> planar_squared(0.0, 0.0, 0.0, 3.0, 4.0, 0.0)
    25.0
    """
    dx = x1 - x2
    dy = y1 - y2
    dz = z1 - z2
    return dx * dx + dy * dy + dz * dz


def haversine(lon1: float, lat1: float, lon2: float, lat2: float) -> float:
    """The haversine of the central angle, in [0, 1]: grows with the distance.

    >>> haversine(7.0, 50.0, 7.0, 50.0)
    0.0
    """
    s_lat = math.sin((lat2 - lat1) * RADIAN * 0.5)
    s_lon = math.sin((lon2 - lon1) * RADIAN * 0.5)
    h = s_lat * s_lat + math.cos(lat1 * RADIAN) * math.cos(lat2 * RADIAN) * (s_lon * s_lon)
    return min(h, 1.0)


def haversine_bound(distance_m: float) -> float:
    """The haversine that belongs to a distance: ``within d`` is ``haversine(...) <= haversine_bound(d)``.

    >>> haversine_bound(0.0), haversine_bound(3e7)
    (0.0, 1.0)
    """
    if distance_m < 0.0:
        return -1.0
    if distance_m >= math.pi * EARTH_RADIUS_M:
        return 1.0
    s = math.sin(distance_m / (2.0 * EARTH_RADIUS_M))
    return s * s


def geodesic_distance_m(lon1: float, lat1: float, lon2: float, lat2: float) -> float:
    """The great-circle distance in metres.

    >>> round(geodesic_distance_m(0.0, 0.0, 0.0, 1.0))
    111195
    """
    return 2.0 * EARTH_RADIUS_M * math.asin(math.sqrt(haversine(lon1, lat1, lon2, lat2)))


def planar_within(x1: float, y1: float, z1: float, x2: float, y2: float, z2: float, distance_m: float) -> bool:
    """Whether two points are at most ``distance_m`` apart; a negative distance is never reached.

    >>> planar_within(0.0, 0.0, 0.0, 3.0, 4.0, 0.0, 5.0), planar_within(0.0, 0.0, 0.0, 3.0, 4.0, 0.0, 4.99)
    (True, False)
    """
    return distance_m >= 0.0 and planar_squared(x1, y1, z1, x2, y2, z2) <= distance_m * distance_m


def geodesic_within(lon1: float, lat1: float, lon2: float, lat2: float, distance_m: float) -> bool:
    """Whether two points are at most ``distance_m`` apart on the sphere.

    >>> geodesic_within(-115.0, 33.0, -115.0, 34.0, 5000.0)
    False
    """
    return haversine(lon1, lat1, lon2, lat2) <= haversine_bound(distance_m)


# -- the exact side of a point --------------------------------------------------------------------


def two_product_tail(a: float, b: float, p: float) -> float:
    """The rounding error of ``p = a * b``, exactly (Dekker's splitting).

    >>> two_product_tail(0.1, 3.0, 0.1 * 3.0) != 0.0
    True
    """
    c = 134217729.0 * a
    a_hi = c - (c - a)
    a_lo = a - a_hi
    c = 134217729.0 * b
    b_hi = c - (c - b)
    b_lo = b - b_hi
    return ((a_hi * b_hi - p) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo


def exact_sign(t0: float, t1: float, t2: float, t3: float, t4: float, t5: float, e: list[float]) -> int:
    """The sign of ``t0 + ... + t5`` plus the six tails in ``e``, without rounding.

    A growing expansion (Shewchuk): each term is added with its error kept; the sign is that of the
    last non-zero component.
    """
    terms = [t0, t1, t2, t3, t4, t5, e[0], e[1], e[2], e[3], e[4], e[5]]
    parts = [0.0] * 12
    used = 0
    for term in terms:
        q = term
        kept = 0
        for i in range(used):
            part = parts[i]
            total = q + part
            virtual = total - q
            tail = (q - (total - virtual)) + (part - virtual)
            q = total
            if tail != 0.0:
                parts[kept] = tail
                kept += 1
        if q != 0.0:
            parts[kept] = q
            kept += 1
        used = kept
    if used == 0:
        return 0
    return 1 if parts[used - 1] > 0.0 else -1


def side(ax: float, ay: float, bx: float, by: float, px: float, py: float) -> int:
    """+1 where p lies to the left of the line from a to b, -1 to the right, 0 on it: exactly.

    >>> side(0.0, 0.0, 1.0, 1.0, 0.5, 0.5), side(0.0, 0.0, 1.0, 0.0, 0.5, 0.1)
    (0, 1)
    >>> side(0.0, 0.0, 0.3, 0.3, 0.1, 0.1)
    0
    """
    left = (ax - px) * (by - py)
    right = (ay - py) * (bx - px)
    determinant = left - right
    # Shewchuk's first filter: beyond this bound the rounded sign is the true one.
    if abs(determinant) > 3.3306690738754716e-16 * (abs(left) + abs(right)):
        return 1 if determinant > 0.0 else -1
    t0 = ax * by
    t1 = -(ax * py)
    t2 = -(px * by)
    t3 = -(ay * bx)
    t4 = ay * px
    t5 = py * bx
    tails = [
        two_product_tail(ax, by, t0),
        two_product_tail(-ax, py, t1),
        two_product_tail(-px, by, t2),
        two_product_tail(-ay, bx, t3),
        two_product_tail(ay, px, t4),
        two_product_tail(py, bx, t5),
    ]
    return exact_sign(t0, t1, t2, t3, t4, t5, tails)


def crossing(ax: float, ay: float, bx: float, by: float, px: float, py: float) -> int:
    """1 where the ray from p to the right crosses the edge from a to b, 2 where p lies on the edge, else 0: exactly.

    >>> [crossing(1.0, 0.0, 1.0, 2.0, x, 1.0) for x in (0.0, 1.0, 2.0)]
    [1, 2, 0]
    """
    if (ay > py) == (by > py):
        # The edge does not cross the ray, but p may still lie on it.
        if (
            (ay == py or by == py)
            and min(ax, bx) <= px <= max(ax, bx)
            and min(ay, by) <= py <= max(ay, by)
            and side(ax, ay, bx, by, px, py) == 0
        ):
            return 2
        return 0
    if px > ax and px > bx:
        return 0
    if px < ax and px < bx:
        return 1
    s = side(ax, ay, bx, by, px, py)
    if s == 0:
        return 2
    return 1 if (s > 0) == (by > ay) else 0


def point_in_polygon(px: float, py: float, xs: Floats, ys: Floats, offsets: Ints, first: int, last: int) -> bool:
    """Whether p lies in the closed polygon of the rings ``first <= i < last`` (even-odd, border included).

    Ring i has the vertices ``offsets[i] <= j < offsets[i + 1]`` and repeats its first one at the end. Shells
    and holes of one or several polygons may follow one another.

    >>> square = [0.0, 1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0, 0.0], [0, 5]
    >>> [point_in_polygon(x, 0.5, *square, 0, 1) for x in (-0.1, 0.0, 0.5, 1.0, 1.1)]
    [False, True, True, True, False]
    """
    inside = False
    for ring in range(first, last):
        for j in range(offsets[ring], offsets[ring + 1] - 1):
            crossed = crossing(xs[j], ys[j], xs[j + 1], ys[j + 1], px, py)
            if crossed == 2:
                return True
            if crossed == 1:
                inside = not inside
    return inside


# -- the distance from a point to edges -----------------------------------------------------------


def segment_parameter(dx: float, dy: float, ex: float, ey: float) -> float:
    """Where on a segment the point nearest to the origin lies: 0 at its start d, 1 at ``d + e``.

    >>> segment_parameter(-1.0, 2.0, 4.0, 0.0)
    0.25
    """
    length = ex * ex + ey * ey
    if length == 0.0:
        return 0.0
    u = -(dx * ex + dy * ey) / length
    return min(max(u, 0.0), 1.0)


def planar_edges_squared(px: float, py: float, xs: Floats, ys: Floats, offsets: Ints, first: int, last: int) -> float:
    """The square of the distance from p to the nearest edge of the chains ``first <= i < last``.

    >>> planar_edges_squared(1.0, 2.0, [0.0, 4.0], [0.0, 0.0], [0, 2], 0, 1)
    4.0
    """
    best = math.inf
    for chain in range(first, last):
        for j in range(offsets[chain], offsets[chain + 1] - 1):
            ex = xs[j + 1] - xs[j]
            ey = ys[j + 1] - ys[j]
            u = segment_parameter(xs[j] - px, ys[j] - py, ex, ey)
            dx = xs[j] + u * ex - px
            dy = ys[j] + u * ey - py
            best = min(best, dx * dx + dy * dy)
    return best


def geodesic_edges_haversine(
    lon: float, lat: float, xs: Floats, ys: Floats, offsets: Ints, first: int, last: int
) -> float:
    """The haversine from a point to the nearest edge of the chains ``first <= i < last``, edges straight in degrees.

    >>> geodesic_edges_haversine(0.5, 0.0, [0.0, 1.0], [0.0, 0.0], [0, 2], 0, 1)
    0.0
    """
    best = math.inf
    shrink = math.cos(lat * RADIAN)
    for chain in range(first, last):
        for j in range(offsets[chain], offsets[chain + 1] - 1):
            ex = xs[j + 1] - xs[j]
            ey = ys[j + 1] - ys[j]
            u = segment_parameter((xs[j] - lon) * shrink, ys[j] - lat, ex * shrink, ey)
            best = min(best, haversine(lon, lat, xs[j] + u * ex, ys[j] + u * ey))
    return best


# -- shares: how much of one thing lies in another -------------------------------------------------


def lens_area(distance: float, r1: float, r2: float) -> float:
    """The area common to two discs whose centres are ``distance`` apart.

    >>> lens_area(3.0, 1.0, 1.0), round(lens_area(0.0, 1.0, 2.0), 6)
    (0.0, 3.141593)
    """
    if distance >= r1 + r2:
        return 0.0
    small = min(r1, r2)
    if distance <= abs(r1 - r2):
        return math.pi * small * small
    d2 = distance * distance
    a = r1 * r1
    b = r2 * r2
    alpha = math.acos(min(1.0, max(-1.0, (d2 + a - b) / (2.0 * distance * r1))))
    beta = math.acos(min(1.0, max(-1.0, (d2 + b - a) / (2.0 * distance * r2))))
    kite = (-distance + r1 + r2) * (distance + r1 - r2) * (distance - r1 + r2) * (distance + r1 + r2)
    return a * alpha + b * beta - 0.5 * math.sqrt(max(0.0, kite))


def sector_area(ax: float, ay: float, bx: float, by: float, r: float) -> float:
    """The signed area that the disc of radius r around the origin shares with the triangle (origin, a, b).

    >>> round(sector_area(10.0, 0.0, 0.0, 10.0, 1.0), 6)
    0.785398
    """
    ex = bx - ax
    ey = by - ay
    cross = ax * by - ay * bx
    length = ex * ex + ey * ey
    if length == 0.0:
        return 0.0
    half = ax * ex + ay * ey
    root = half * half - length * (ax * ax + ay * ay - r * r)
    if root <= 0.0:
        return 0.5 * r * r * math.atan2(cross, ax * bx + ay * by)
    root = math.sqrt(root)
    enter = min(max((-half - root) / length, 0.0), 1.0)
    leave = min(max((-half + root) / length, 0.0), 1.0)
    if enter >= leave:
        return 0.5 * r * r * math.atan2(cross, ax * bx + ay * by)
    px = ax + enter * ex
    py = ay + enter * ey
    qx = ax + leave * ex
    qy = ay + leave * ey
    outer = math.atan2(ax * py - ay * px, ax * px + ay * py) + math.atan2(qx * by - qy * bx, qx * bx + qy * by)
    return 0.5 * (r * r * outer + (px * qy - py * qx))


def disc_polygon_area(
    px: float, py: float, r: float, stretch: float, xs: Floats, ys: Floats, offsets: Ints, first: int, last: int
) -> float:
    """The area of a disc around p inside a polygon whose shells turn left and whose holes turn right.

    ``stretch`` scales x differences before anything else (the cosine of the latitude for degrees, else 1).

    >>> square = [0.0, 2.0, 2.0, 0.0, 0.0], [0.0, 0.0, 2.0, 2.0, 0.0], [0, 5]
    >>> round(disc_polygon_area(0.0, 1.0, 1.0, 1.0, *square, 0, 1), 6)
    1.570796
    """
    total = 0.0
    for ring in range(first, last):
        for j in range(offsets[ring], offsets[ring + 1] - 1):
            total += sector_area(
                (xs[j] - px) * stretch, ys[j] - py, (xs[j + 1] - px) * stretch, ys[j + 1] - py, r
            )
    return max(0.0, total)
