"""Sites: places that stay where they are, and the nearest of them (Subject Spaces, 4.3.2, m_n).

A grid holds the sites, in the order of its cells. From the cell of a point one looks at its ring of neighbours, then at
the next one, until whatever lies farther out is farther than the k-th nearest found so far. What is compared is
`geometry.planar_squared` or `geometry.haversine`, as everywhere, and a ring is left out only where it is farther by
more than rounding can be: equal distances all match.

`found_by` walks versions (of a `Stream`), `arrivals` rows of a file, in which the mobiles may be mixed.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from workbench.compiling import callee, compiled, read_only
from workbench.engines.growing import taller
from workbench.engines.kernels import haversine, planar_squared
from workbench.geometry import RADIAN

SLOTS = 64
"""How many sites at once can be nearest here, ties included."""
A_CELL = 2.0
"""sites"""


class Sites(NamedTuple):
    """Points that do not move, by the cells of a grid."""

    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    slot: np.ndarray
    """what each is called by whoever asks"""
    x0: float
    y0: float
    a_cell_x: float
    a_cell_y: float
    columns: int
    rows: int
    offsets: np.ndarray


def sites_of(x: np.ndarray, y: np.ndarray, z: np.ndarray, slot: np.ndarray) -> Sites:
    """A grid over sites.

    >>> sites_of(np.array([0.0, 9.0]), np.zeros(2), np.zeros(2), np.arange(2)).offsets[-1]
    np.int64(2)
    """
    x0, y0 = (float(v.min()) if len(v) else 0.0 for v in (x, y))
    width, height = (float(v.max() - v.min()) if len(v) else 0.0 for v in (x, y))
    cells = max(1.0, len(x) / A_CELL)
    side = math.sqrt(width * height / cells) or max(width, height) / cells or 1.0
    columns, rows = (min(int(extent / side) + 1, 4 * int(cells) + 1) for extent in (width, height))
    a_cell_x, a_cell_y = width / columns or 1.0, height / rows or 1.0
    cx = np.minimum(((x - x0) / a_cell_x).astype(np.int64), columns - 1)
    cy = np.minimum(((y - y0) / a_cell_y).astype(np.int64), rows - 1)
    cell = cy * columns + cx
    order = np.argsort(cell, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=columns * rows))]).astype(np.int64)
    slots = slot[order].astype(np.int64)
    return Sites(x[order], y[order], z[order], slots, x0, y0, a_cell_x, a_cell_y, columns, rows, offsets)


@callee
def _out_of_reach(px, py, left, right, lower, upper, x_left, x_right, y_lower, y_upper, limit, geodesic):  # type: ignore[no-untyped-def]
    """Whether what lies beyond a block of cells is farther than a limit; the flags say where there are cells beyond."""
    aside, along = math.inf, math.inf
    if left:
        aside = min(aside, px - x_left)
    if right:
        aside = min(aside, x_right - px)
    if lower:
        along = min(along, py - y_lower)
    if upper:
        along = min(along, y_upper - py)
    slack = 1e-9 * (abs(px) + abs(py) + abs(x_left) + abs(x_right) + abs(y_lower) + abs(y_upper)) + 1e-12
    aside, along = aside - slack, along - slack
    if aside <= 0.0 or along <= 0.0:
        return False
    if not geodesic:
        least = min(aside, along)
        return least * least * (1.0 - 1e-9) > limit
    least = 1.0
    if along < 180.0:
        s = math.sin(along * RADIAN * 0.5)
        least = s * s
    if aside < math.inf:
        # The nearest point of a meridian: sin d = cos(latitude) sin(difference of longitudes), up to a quarter turn.
        s = math.cos(py * RADIAN) * math.sin(min(aside, 90.0) * RADIAN)
        least = min(least, s * s / (2.0 * (1.0 + math.sqrt(max(0.0, 1.0 - s * s)))))
    return least * (1.0 - 1e-9) - 1e-15 > limit


@callee
def _nearest(px, py, pz, own, k, x, y, z, slot, x0, y0, ax, ay, columns, rows, offsets, geodesic, best, value, found):  # type: ignore[no-untyped-def]
    """The slots of the k nearest sites, ties included, in order, in ``found``: how many; -1 where there is no room."""
    cx = int(min(max((px - x0) / ax, 0.0), columns - 1.0))
    cy = int(min(max((py - y0) / ay, 0.0), rows - 1.0))
    best[:k] = math.inf
    n = 0
    ring = 0
    while True:
        left, right, lower, upper = cx - ring, cx + ring, cy - ring, cy + ring
        for row in range(max(lower, 0), min(upper, rows - 1) + 1):
            step = 1 if row in (lower, upper) else max(1, 2 * ring)
            for column in range(left, right + 1, step):
                if column < 0 or column >= columns:
                    continue
                cell = row * columns + column
                for e in range(offsets[cell], offsets[cell + 1]):
                    if slot[e] == own:
                        continue
                    if geodesic:
                        v = haversine(px, py, x[e], y[e])
                    else:
                        v = planar_squared(px, py, pz, x[e], y[e], z[e])
                    limit = best[k - 1]
                    if v > limit:
                        continue
                    if n == len(found):
                        # Of what was kept some is too far by now.
                        m = 0
                        for i in range(n):
                            if value[i] <= limit:
                                value[m], found[m] = value[i], found[i]
                                m += 1
                        n = m
                        if n == len(found):
                            return -1
                    value[n], found[n] = v, slot[e]
                    n += 1
                    at = k - 1
                    while at > 0 and best[at - 1] > v:
                        best[at] = best[at - 1]
                        at -= 1
                    if v < best[at]:
                        best[at] = v
        if left <= 0 and lower <= 0 and right >= columns - 1 and upper >= rows - 1:
            break
        if best[k - 1] < math.inf and _out_of_reach(
            px, py, left > 0, right < columns - 1, lower > 0, upper < rows - 1,
            x0 + left * ax, x0 + (right + 1) * ax, y0 + lower * ay, y0 + (upper + 1) * ay, best[k - 1], geodesic,
        ):  # fmt: skip
            break
        ring += 1
    m = 0
    for i in range(n):
        if value[i] <= best[k - 1]:
            # In order, so that two lists can be compared.
            at = m
            s = found[i]
            while at > 0 and found[at - 1] > s:
                found[at] = found[at - 1]
                at -= 1
            found[at] = s
            m += 1
    return m


@callee
def _turned_over(m, now, found, k, count, inside, since, ended, n, starts):  # type: ignore[no-untyped-def]
    """The list of one client taken over by a new one; what ends is written down: slot, client, since, now."""
    was = count[m]
    same = k == was
    for i in range(was):
        if not same:
            break
        same = inside[m, i] == found[i]
    if same:
        return n
    for i in range(was):
        gone = True
        for h in range(k):
            gone &= found[h] != inside[m, i]
        if gone:
            ended[n, 0], ended[n, 1], ended[n, 2], ended[n, 3] = inside[m, i], m, since[m, i], now
            n += 1
    for h in range(k):
        starts[h] = now
        for i in range(was):
            if inside[m, i] == found[h]:
                starts[h] = since[m, i]
    for h in range(k):
        inside[m, h], since[m, h] = found[h], starts[h]
    count[m] = k
    return n


@compiled
def arrivals(mobile, t, x, y, base, until, share, shares, k, sites, geodesic, latest, count, inside, since):  # type: ignore[no-untyped-def]
    """Fixes in order: which sites are nearest to each mobile is kept up, and what ends is given back.

    One of several shares of the mobiles. The first part of the answer is 1 where the general way has to look.
    """
    ended = np.empty((max(1024, len(t) // 8), 4), np.int64)
    # As constants they would be types of their own, for which what is called is compiled again.
    n, nobody = np.int64(0), np.int64(-1)
    best, value, found, starts = np.empty(k), np.empty(64), np.empty(64, np.int64), np.empty(64, np.int64)
    sx, sy, sz, slot, x0, y0, ax, ay, columns, rows, offsets = sites
    for r in range(len(t)):
        m = mobile[r] - base
        if m % shares != share:
            continue
        px, py, now = x[r], y[r], t[r]
        if geodesic:
            if not (abs(px) <= 180.0 and abs(py) <= 90.0):
                return 1, ended[:0]
        elif not (abs(px) <= 1e150 and abs(py) <= 1e150):
            return 1, ended[:0]
        if now <= latest[m]:
            return 1, ended[:0]
        latest[m] = now
        if now > until:
            continue
        many = _nearest(
            px, py, 0.0, nobody, k,
            sx, sy, sz, slot, x0, y0, ax, ay, columns, rows, offsets, geodesic, best, value, found,
        )  # fmt: skip
        if many < 0:
            return 1, ended[:0]
        if n + 64 > len(ended):
            ended = taller(ended, 2 * len(ended))
        n = _turned_over(m, now, found, many, count, inside, since, ended, n, starts)
    return 0, ended[:n].copy()


@compiled
def _found_by(first, last, offsets_of, start, end, valid, x, y, z, own, k, sites, geodesic):  # type: ignore[no-untyped-def]
    ended = np.empty((1024, 4), np.int64)
    n, one, none = np.int64(0), np.int64(0), np.int64(0)
    best, value, found, starts = np.empty(k), np.empty(64), np.empty(64, np.int64), np.empty(64, np.int64)
    count, inside, since = np.zeros(1, np.int32), np.empty((1, 64), np.int32), np.empty((1, 64), np.int64)
    sx, sy, sz, slot, x0, y0, ax, ay, columns, rows, offsets = sites
    for client in range(first, last):
        low, high = offsets_of[client], offsets_of[client + 1]
        for v in range(low, high):
            many = none
            if valid[v]:
                many = _nearest(
                    x[v], y[v], z[v], own[client], k,
                    sx, sy, sz, slot, x0, y0, ax, ay, columns, rows, offsets, geodesic, best, value, found,
                )  # fmt: skip
                if many < 0:
                    return 1, ended[:0]
            if n + 128 > len(ended):
                ended = taller(ended, 2 * len(ended))
            before = n
            n = _turned_over(one, start[v], found, many, count, inside, since, ended, n, starts)
            if v + 1 == high or start[v + 1] != end[v]:
                # It ceases to be there for a while.
                n = _turned_over(one, end[v], found, none, count, inside, since, ended, n, starts)
            for e in range(before, n):
                ended[e, 1] = client
    return 0, ended[:n].copy()


def _walk(arguments: tuple[Any, ...]) -> tuple[int, np.ndarray]:
    return _found_by(*arguments)  # type: ignore[no-any-return]


def found_by(
    offsets: np.ndarray, start: np.ndarray, end: np.ndarray, valid: np.ndarray, x: np.ndarray, y: np.ndarray,
    z: np.ndarray, own: np.ndarray, k: int, sites: Sites, geodesic: bool, threads: int,
) -> np.ndarray | None:  # fmt: skip
    """When which sites are nearest to clients: rows of slot, client, from, to; None where too many are at once."""
    clients = len(offsets) - 1
    cuts = np.unique(np.searchsorted(offsets, np.linspace(0, offsets[-1], threads + 1)).clip(0, clients))
    cuts[0], cuts[-1] = 0, clients
    x, y, z = map(read_only, (x, y, z))
    given: tuple[Any, ...] = (offsets, start, end, valid, x, y, z, own, k, sites, geodesic)
    with ThreadPoolExecutor(threads) as pool:
        jobs = [pool.submit(_walk, (a, b, *given)) for a, b in pairwise(cuts)]
        said = [job.result() for job in jobs]
    if any(state for state, _ in said):
        return None
    return np.concatenate([np.empty((0, 4), np.int64), *(lines for _, lines in said)])
