"""Kernels: the functions of `workbench.geometry`, compiled as they stand, and loops over them.

Nothing here is arithmetic of its own: how two shapes lie to each other is asked of the compiled functions in the same
order of cases as in `workbench.model.shapes`. What that file decides with shapely, or refuses, is answered `ASK`: the
caller then asks the model itself.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from workbench import geometry
from workbench.compiling import callee, compiled, compiled_from
from workbench.engines.growing import longer, taller
from workbench.engines.slabs import Slabs

_geometry = compiled_from(
    getattr(geometry, name)
    for name in (
        "planar_squared", "haversine", "haversine_bound", "geodesic_distance_m", "planar_within", "geodesic_within",
        "two_product_tail", "exact_sign", "side", "crossing", "segment_parameter", "planar_edges_squared",
        "geodesic_edges_haversine", "lens_area", "sector_area", "disc_polygon_area",
    )
)  # fmt: skip
planar_squared = _geometry["planar_squared"]
haversine = _geometry["haversine"]
haversine_bound = _geometry["haversine_bound"]
geodesic_distance_m = _geometry["geodesic_distance_m"]
planar_within = _geometry["planar_within"]
geodesic_within = _geometry["geodesic_within"]
crossing = _geometry["crossing"]
planar_edges_squared = _geometry["planar_edges_squared"]
geodesic_edges_haversine = _geometry["geodesic_edges_haversine"]
lens_area = _geometry["lens_area"]
disc_polygon_area = _geometry["disc_polygon_area"]

POINT, LINE, AREA, ANYWHERE = 0, 1, 2, 3
NO, YES, ASK = 0, 1, 2
RADIAN = geometry.RADIAN
EARTH_RADIUS_M = geometry.EARTH_RADIUS_M


class Shapes(NamedTuple):
    """Many shapes: a skeleton (a point here, or a chain of vertices elsewhere) and a radius each."""

    kind: np.ndarray
    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    radius: np.ndarray
    chain: np.ndarray
    """which skeleton of the chains below, for lines and areas"""
    xs: np.ndarray
    ys: np.ndarray
    rings: np.ndarray
    """where each ring or chain of vertices starts"""
    first: np.ndarray
    """the first ring of each skeleton; the last one ends where the next skeleton starts"""
    slabs: Slabs
    """the edges of each skeleton by height"""


@callee
def _edges_squared(a, i, px, py):  # type: ignore[no-untyped-def]
    c = a.chain[i]
    return planar_edges_squared(px, py, a.xs, a.ys, a.rings, a.first[c], a.first[c + 1])


@callee
def _edges_haversine(a, i, px, py):  # type: ignore[no-untyped-def]
    c = a.chain[i]
    return geodesic_edges_haversine(px, py, a.xs, a.ys, a.rings, a.first[c], a.first[c + 1])


@compiled
def in_area(px, py, c, low, high, height, first, offsets, edges):  # type: ignore[no-untyped-def]
    """What `geometry.point_in_polygon` says of skeleton c, from the edges of p's slab alone; see `Slabs`."""
    if not low[c] <= py <= high[c]:
        return False
    slab = first[c]
    last = first[c + 1] - 1
    if slab < last:
        slab = min(slab + int((py - low[c]) / height[c]), last)
    inside = False
    for e in range(offsets[slab], offsets[slab + 1]):
        crossed = crossing(edges[e, 0], edges[e, 1], edges[e, 2], edges[e, 3], px, py)
        if crossed == 2:
            return True
        if crossed == 1:
            inside = not inside
    return inside


@callee
def area_holds(s, i, px, py):  # type: ignore[no-untyped-def]
    """Whether a point lies in one of many areas."""
    low, high, height, first, offsets, edges = s.slabs
    return in_area(px, py, s.chain[i], low, high, height, first, offsets, edges)


@callee
def _chain_within(a, i, px, py, total, geodesic):  # type: ignore[no-untyped-def]
    """A line or area a, and a point or the middle of a disc."""
    if a.kind[i] == 2:
        inside = area_holds(a, i, px, py)
        if inside or total == 0.0:
            return inside and total >= 0.0
    if not geodesic:
        return total >= 0.0 and _edges_squared(a, i, px, py) <= total * total
    return _edges_haversine(a, i, px, py) <= haversine_bound(total)


@callee
def _points_within(ax, ay, az, bx, by, bz, total, geodesic):  # type: ignore[no-untyped-def]
    if geodesic:
        return geodesic_within(ax, ay, bx, by, total)
    return planar_within(ax, ay, az, bx, by, bz, total)


@callee
def _within(a, i, b, j, reach, geodesic):  # type: ignore[no-untyped-def]
    if a.kind[i] == 3 or b.kind[j] == 3:
        return 1
    total = reach + (a.radius[i] + b.radius[j])
    if a.kind[i] == 0 and b.kind[j] == 0:
        return 1 if _points_within(a.x[i], a.y[i], a.z[i], b.x[j], b.y[j], b.z[j], total, geodesic) else 0
    if b.kind[j] == 0:
        return 1 if _chain_within(a, i, b.x[j], b.y[j], total, geodesic) else 0
    if a.kind[i] == 0:
        return 1 if _chain_within(b, j, a.x[i], a.y[i], total, geodesic) else 0
    return 2


@callee
def _encloses(outer, i, inner, j, geodesic):  # type: ignore[no-untyped-def]
    if outer.kind[i] == 3:
        return 1
    if inner.kind[j] == 3:
        return 0
    x, y, radius = inner.x[j], inner.y[j], inner.radius[j]
    if outer.kind[i] == 0:
        if inner.kind[j] != 0:
            return 2
        reach = outer.radius[i] - radius
        return 1 if _points_within(outer.x[i], outer.y[i], outer.z[i], x, y, inner.z[j], reach, geodesic) else 0
    if inner.kind[j] == 0 and radius == 0.0:
        return 1 if _chain_within(outer, i, x, y, 0.0 + (outer.radius[i] + radius), geodesic) else 0
    if outer.kind[i] == 2 and outer.radius[i] == 0.0 and inner.kind[j] == 0:
        if not area_holds(outer, i, x, y):
            return 0
        if geodesic:
            return 1 if _edges_haversine(outer, i, x, y) >= haversine_bound(radius) else 0
        return 1 if _edges_squared(outer, i, x, y) >= radius * radius else 0
    return 2


@callee
def _skeleton_distance(a, i, b, j, geodesic):  # type: ignore[no-untyped-def]
    """Not a number where the model has to be asked."""
    if a.kind[i] == 0 and b.kind[j] == 0:
        if geodesic:
            return geodesic_distance_m(a.x[i], a.y[i], b.x[j], b.y[j])
        return math.sqrt(planar_squared(a.x[i], a.y[i], a.z[i], b.x[j], b.y[j], b.z[j]))
    if a.kind[i] != 0 and b.kind[j] != 0:
        return math.nan
    if a.kind[i] == 0:
        return _chain_distance(b, j, a.x[i], a.y[i], geodesic)
    return _chain_distance(a, i, b.x[j], b.y[j], geodesic)


@callee
def _chain_distance(a, i, px, py, geodesic):  # type: ignore[no-untyped-def]
    if a.kind[i] == 2 and area_holds(a, i, px, py):
        return 0.0
    if not geodesic:
        return math.sqrt(_edges_squared(a, i, px, py))
    return 2.0 * EARTH_RADIUS_M * math.asin(math.sqrt(_edges_haversine(a, i, px, py)))


@callee
def _share(inner, i, outer, j, geodesic):  # type: ignore[no-untyped-def]
    """Not a number where the model has to be asked."""
    if outer.kind[j] == 3:
        return 1.0
    if inner.kind[i] == 3:
        return 0.0
    if inner.kind[i] != 0:
        return math.nan
    radius = inner.radius[i]
    if radius == 0.0:
        return float(_encloses(outer, j, inner, i, geodesic))
    if outer.kind[j] == 0:
        apart = _skeleton_distance(inner, i, outer, j, geodesic)
        return min(1.0, lens_area(apart, radius, outer.radius[j]) / (math.pi * radius * radius))
    if outer.kind[j] == 2 and outer.radius[j] == 0.0:
        stretch = 1.0
        if geodesic:
            radius = radius / (EARTH_RADIUS_M * RADIAN)
            stretch = math.cos(inner.y[i] * RADIAN)
        c = outer.chain[j]
        area = disc_polygon_area(
            inner.x[i], inner.y[i], radius, stretch, outer.xs, outer.ys, outer.rings, outer.first[c], outer.first[c + 1]
        )
        return min(1.0, area / (math.pi * radius * radius))
    return math.nan


@compiled
def within(a, ia, b, ib, reach, geodesic):  # type: ignore[no-untyped-def]
    """For each pair whether the closest points are at most ``reach`` apart: `NO`, `YES` or `ASK`."""
    said = np.empty(len(ia), np.int8)
    ak, ax, ay, az, ar = a.kind, a.x, a.y, a.z, a.radius
    bk, bx, by, bz, br = b.kind, b.x, b.y, b.z, b.radius
    ac = a.chain
    low, high, height, first, offsets, edges = a.slabs
    for n in range(len(ia)):
        i, j = ia[n], ib[n]
        # Two points, or an area and a point, the common cases, need none of the structure around them.
        if ak[i] == 2 and bk[j] == 0 and reach + (ar[i] + br[j]) == 0.0:
            said[n] = in_area(bx[j], by[j], ac[i], low, high, height, first, offsets, edges)
        elif ak[i] != 0 or bk[j] != 0:
            said[n] = _within(a, i, b, j, reach, geodesic)
        elif geodesic:
            said[n] = geodesic_within(ax[i], ay[i], bx[j], by[j], reach + (ar[i] + br[j]))
        else:
            said[n] = planar_within(ax[i], ay[i], az[i], bx[j], by[j], bz[j], reach + (ar[i] + br[j]))
    return said


@compiled
def encloses(outer, io, inner, ii, geodesic):  # type: ignore[no-untyped-def]
    """For each pair whether the inner shape lies in the outer one: `NO`, `YES` or `ASK`."""
    said = np.empty(len(io), np.int8)
    ak, ax, ay, az, ar = outer.kind, outer.x, outer.y, outer.z, outer.radius
    bk, bx, by, bz, br = inner.kind, inner.x, inner.y, inner.z, inner.radius
    ac = outer.chain
    low, high, height, first, offsets, edges = outer.slabs
    for n in range(len(io)):
        i, j = io[n], ii[n]
        if ak[i] == 2 and bk[j] == 0 and ar[i] == 0.0 and br[j] == 0.0:
            said[n] = in_area(bx[j], by[j], ac[i], low, high, height, first, offsets, edges)
        elif ak[i] != 0 or bk[j] != 0:
            said[n] = _encloses(outer, i, inner, j, geodesic)
        elif geodesic:
            said[n] = geodesic_within(ax[i], ay[i], bx[j], by[j], ar[i] - br[j])
        else:
            said[n] = planar_within(ax[i], ay[i], az[i], bx[j], by[j], bz[j], ar[i] - br[j])
    return said


@compiled
def share(inner, ii, outer, io, geodesic):  # type: ignore[no-untyped-def]
    """For each pair how much of the inner shape lies in the outer one; not a number where the model has to be asked."""
    said = np.empty(len(io), np.float64)
    for n in range(len(io)):
        said[n] = _share(inner, ii[n], outer, io[n], geodesic)
    return said


@compiled
def closeness(a, ia, b, ib, geodesic):  # type: ignore[no-untyped-def]
    """What nearest neighbours are ordered by; not a number where the model has to be asked."""
    said = np.empty(len(ia), np.float64)
    for n in range(len(ia)):
        i, j = ia[n], ib[n]
        if a.kind[i] == 3 or b.kind[j] == 3:
            said[n] = 0.0
        elif a.kind[i] == 0 and b.kind[j] == 0 and a.radius[i] == 0.0 and b.radius[j] == 0.0:
            if geodesic:
                said[n] = haversine(a.x[i], a.y[i], b.x[j], b.y[j])
            else:
                said[n] = planar_squared(a.x[i], a.y[i], a.z[i], b.x[j], b.y[j], b.z[j])
        else:
            apart = _skeleton_distance(a, i, b, j, geodesic)
            if not math.isnan(apart):
                apart = max(0.0, apart - (a.radius[i] + b.radius[j]))
                said[n] = haversine_bound(apart) if geodesic else apart * apart
            else:
                said[n] = apart
    return said


# -- step functions laid over one another ----------------------------------------------------------------------


@compiled
def overlay(first, second, a_off, a_start, a_end, b_off, b_start, b_end):  # type: ignore[no-untyped-def]
    """The segments of pairs of step functions: where a version of the one meets a version of the other."""
    size = 0
    for n in range(len(first)):
        size += a_off[first[n] + 1] - a_off[first[n]] + b_off[second[n] + 1] - b_off[second[n]]
    offsets = np.zeros(len(first) + 1, np.int64)
    start, end = np.empty(size, np.int64), np.empty(size, np.int64)
    a, b = np.empty(size, np.int64), np.empty(size, np.int64)
    k = 0
    for n in range(len(first)):
        i, i_end = a_off[first[n]], a_off[first[n] + 1]
        j, j_end = b_off[second[n]], b_off[second[n] + 1]
        while i < i_end and j < j_end:
            low, high = max(a_start[i], b_start[j]), min(a_end[i], b_end[j])
            if low < high:
                start[k], end[k], a[k], b[k] = low, high, i, j
                k += 1
            if a_end[i] < b_end[j]:
                i += 1
            else:
                j += 1
        offsets[n + 1] = k
    return offsets, start[:k].copy(), end[:k].copy(), a[:k].copy(), b[:k].copy()


def nearest(
    start: np.ndarray, end: np.ndarray, slot: np.ndarray, value: np.ndarray, slots: int, k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """When each slot is among the k nearest, ties included: intervals of slots, from the values of slots over time."""
    order, times = np.argsort(start), np.unique(np.concatenate((start, end)))
    found = _nearest(start, end, slot, value, slots, k, order, times)
    return found[:, 0].copy(), found[:, 1].copy(), found[:, 2].copy()


@compiled
def _nearest(start, end, slot, value, slots, k, order, times):  # type: ignore[no-untyped-def]
    """Slot, from, to; ``order`` is that of the starts, and ``times`` are all instants at which something changes."""
    never = np.int64(-(2**63))
    now, best = np.empty(slots), np.empty(k)
    until, since = np.empty(slots, np.int64), np.empty(slots, np.int64)
    for s in range(slots):
        now[s], until[s], since[s] = math.inf, never, never
    found, many = np.empty((64, 3), np.int64), 0
    at = 0
    for t in times:
        for s in range(slots):
            if until[s] == t:
                now[s] = math.inf
        while at < len(order) and start[order[at]] == t:
            e = order[at]
            now[slot[e]] = value[e]
            until[slot[e]] = end[e]
            at += 1
        for i in range(k):
            best[i] = math.inf
        for s in range(slots):
            if now[s] < best[k - 1]:
                i = k - 1
                while i > 0 and best[i - 1] > now[s]:
                    best[i] = best[i - 1]
                    i -= 1
                best[i] = now[s]
        limit = best[k - 1]
        for s in range(slots):
            matches = now[s] < math.inf and now[s] <= limit
            if matches and since[s] == never:
                since[s] = t
            elif not matches and since[s] != never:
                if many == len(found):
                    found = taller(found, 2 * many)
                found[many, 0], found[many, 1], found[many, 2] = s, since[s], t
                many += 1
                since[s] = never
    return found[:many]


# -- candidates ------------------------------------------------------------------------------------------------


@callee
def _hash(cx, cy, slice_, mask):  # type: ignore[no-untyped-def]
    h = np.uint64(cx) * np.uint64(0x9E3779B97F4A7C15)
    h ^= np.uint64(cy) * np.uint64(0xC2B2AE3D27D4EB4F)
    h ^= np.uint64(slice_) * np.uint64(0x165667B19E3779F9)
    h ^= h >> np.uint64(29)
    return np.int64(h & np.uint64(mask))


class Boxes(NamedTuple):
    """Boxes in the plane and in time, in cells of a grid: inclusive ranges of columns, rows and slices."""

    x_min: np.ndarray
    x_max: np.ndarray
    y_min: np.ndarray
    y_max: np.ndarray
    t_min: np.ndarray
    t_max: np.ndarray


@compiled
def _entries(boxes):  # type: ignore[no-untyped-def]
    n = 0
    for i in range(len(boxes.x_min)):
        n += (
            (boxes.x_max[i] - boxes.x_min[i] + 1)
            * (boxes.y_max[i] - boxes.y_min[i] + 1)
            * (boxes.t_max[i] - boxes.t_min[i] + 1)
        )
    return n


@compiled
def buckets(boxes, mask):  # type: ignore[no-untyped-def]
    """The boxes by the hash of each cell that they touch."""
    offsets = np.zeros(mask + 2, np.int64)
    for i in range(len(boxes.x_min)):
        for s in range(boxes.t_min[i], boxes.t_max[i] + 1):
            for cx in range(boxes.x_min[i], boxes.x_max[i] + 1):
                for cy in range(boxes.y_min[i], boxes.y_max[i] + 1):
                    offsets[_hash(cx, cy, s, mask) + 1] += 1
    fill = np.empty(mask + 1, np.int64)
    for h in range(mask + 1):
        fill[h] = offsets[h]
        offsets[h + 1] += offsets[h]
    n = offsets[-1]
    item, cell = np.empty(n, np.int64), np.empty((n, 3), np.int32)
    for i in range(len(boxes.x_min)):
        for s in range(boxes.t_min[i], boxes.t_max[i] + 1):
            for cx in range(boxes.x_min[i], boxes.x_max[i] + 1):
                for cy in range(boxes.y_min[i], boxes.y_max[i] + 1):
                    h = _hash(cx, cy, s, mask)
                    at = fill[h]
                    item[at] = i
                    cell[at, 0], cell[at, 1], cell[at, 2] = cx, cy, s
                    fill[h] += 1
    return offsets, item, cell


@compiled
def met(probes, boxes, offsets, item, cell, mask):  # type: ignore[no-untyped-def]
    """The probes and boxes that share a cell, as pairs, each once, in the order of the probes."""
    size = max(1024, len(probes.x_min))
    one, two = np.empty(size, np.int64), np.empty(size, np.int64)
    n = 0
    for i in range(len(probes.x_min)):
        for s in range(probes.t_min[i], probes.t_max[i] + 1):
            for cx in range(probes.x_min[i], probes.x_max[i] + 1):
                for cy in range(probes.y_min[i], probes.y_max[i] + 1):
                    h = _hash(cx, cy, s, mask)
                    for at in range(offsets[h], offsets[h + 1]):
                        if cell[at, 0] != cx or cell[at, 1] != cy or cell[at, 2] != s:
                            continue
                        j = item[at]
                        # Of all the cells that the two share, the first one reports them.
                        if (
                            max(probes.x_min[i], boxes.x_min[j]) != cx
                            or max(probes.y_min[i], boxes.y_min[j]) != cy
                            or max(probes.t_min[i], boxes.t_min[j]) != s
                        ):
                            continue
                        if n == size:
                            size *= 2
                            one, two = longer(one, size), longer(two, size)
                        one[n], two[n] = i, j
                        n += 1
    return one[:n].copy(), two[:n].copy()
