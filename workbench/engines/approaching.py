"""Approaching: which points of two moving populations come within a distance of each other, and in which versions.

Time is cut into slices about as long as a version lasts. In each slice the points of one side are laid into the cells
of a grid, which are at least as wide as the distance; each point of the other side then looks into its own cell and its
eight neighbours. Whatever lasts over several slices stands in each of them; a pair is reported once, in the slice in
which its two versions begin to coexist. A slice holds few points, so that all this stays in the processor's cache, and
slices can be taken side by side.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from workbench.compiling import compiled
from workbench.engines.growing import longer
from workbench.engines.kernels import geodesic_within, planar_within
from workbench.geometry import EARTH_RADIUS_M, RADIAN, WGS84


class Points(NamedTuple):
    """Versions of points or discs of one side."""

    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    radius: np.ndarray
    start: np.ndarray
    end: np.ndarray
    owner: np.ndarray


class Cells(NamedTuple):
    """A grid in the plane, and slices of time."""

    x0: float
    y0: float
    a_cell_x: float
    a_cell_y: float
    columns: int
    rows: int
    begin: int
    length: int
    slices: int


def cells_of(one: Points, two: Points, reach: float, metric: str, begin: int, length: int, until: int) -> Cells | None:
    """A grid whose cells are as wide as the farthest that two can be apart; None near a pole or the date line."""
    total = max(0.0, reach + float(one.radius.max() + two.radius.max()))
    x0, y0 = min(one.x.min(), two.x.min()), min(one.y.min(), two.y.min())
    x1, y1 = max(one.x.max(), two.x.max()), max(one.y.max(), two.y.max())
    if metric == WGS84:
        tall = total / (EARTH_RADIUS_M * RADIAN) * (1 + 1e-6) + 1e-9
        steep = max(abs(y0), abs(y1)) + tall
        if steep >= 85.0:
            return None
        wide = tall / math.cos(steep * RADIAN)
        if x0 - wide <= -180.0 or x1 + wide >= 180.0:
            return None
    else:
        tall = wide = total * (1 + 1e-6) + 1e-9 * (1.0 + max(abs(x0), abs(x1), abs(y0), abs(y1)))
    slices = max(1, (until - begin) // length + 1)
    # No more cells than some for each point of a slice.
    most = 4.0 * min(len(one.x), len(two.x)) / slices + 64
    crowded = math.sqrt(max(1.0, ((x1 - x0) / wide + 1) * ((y1 - y0) / tall + 1) / most))
    wide, tall = wide * crowded, tall * crowded
    columns, rows = int((x1 - x0) / wide) + 1, int((y1 - y0) / tall) + 1
    return Cells(float(x0), float(y0), float(wide), float(tall), columns, rows, begin, length, slices)


@compiled
def _by_slice(start, end, begin, length, slices):  # type: ignore[no-untyped-def]
    """The versions of each slice, those that last in each of theirs."""
    offsets = np.zeros(slices + 1, np.int64)
    for i in range(len(start)):
        low, high = (start[i] - begin) // length, min((end[i] - 1 - begin) // length, slices - 1)
        for s in range(low, high + 1):
            offsets[s + 1] += 1
    fill = np.empty(slices, np.int64)
    for s in range(slices):
        fill[s] = offsets[s]
        offsets[s + 1] += offsets[s]
    item = np.empty(offsets[-1], np.int64)
    for i in range(len(start)):
        low, high = (start[i] - begin) // length, min((end[i] - 1 - begin) // length, slices - 1)
        for s in range(low, high + 1):
            item[fill[s]] = i
            fill[s] += 1
    return offsets, item


@compiled
def _approach(first, last, cells, one, two, one_off, one_item, two_off, two_item, reach, apart, geodesic):  # type: ignore[no-untyped-def]
    x0, y0, ax, ay, columns, rows, begin, length, _ = cells
    x1, y1, z1, r1, start1, end1, owner1 = one
    x2, y2, z2, r2, start2, end2, owner2 = two
    size = 1024
    found, other = np.empty(size, np.int64), np.empty(size, np.int64)
    n = 0
    offsets = np.zeros(columns * rows + 2, np.int64)
    laid = np.empty(16, np.int64)
    for s in range(first, last):
        low, high = two_off[s], two_off[s + 1]
        if high - low > len(laid):
            laid = np.empty(2 * (high - low), np.int64)
        offsets[:] = 0
        for e in range(low, high):
            j = two_item[e]
            offsets[int((y2[j] - y0) / ay) * columns + int((x2[j] - x0) / ax) + 2] += 1
        for c in range(1, len(offsets)):
            offsets[c] += offsets[c - 1]
        for e in range(low, high):
            j = two_item[e]
            c = int((y2[j] - y0) / ay) * columns + int((x2[j] - x0) / ax) + 1
            laid[offsets[c]] = j
            offsets[c] += 1
        # The points of cell c now stand from offsets[c] to offsets[c + 1].
        for e in range(one_off[s], one_off[s + 1]):
            i = one_item[e]
            cx, cy = int((x1[i] - x0) / ax), int((y1[i] - y0) / ay)
            left, right = max(cx - 1, 0), min(cx + 1, columns - 1)
            for row in range(max(cy - 1, 0), min(cy + 1, rows - 1) + 1):
                for at in range(offsets[row * columns + left], offsets[row * columns + right + 1]):
                    j = laid[at]
                    since = max(start1[i], start2[j])
                    if since >= min(end1[i], end2[j]) or (since - begin) // length != s:
                        continue
                    if apart and owner1[i] == owner2[j]:
                        continue
                    total = reach + (r1[i] + r2[j])
                    if geodesic:
                        if not geodesic_within(x1[i], y1[i], x2[j], y2[j], total):
                            continue
                    elif not planar_within(x1[i], y1[i], z1[i], x2[j], y2[j], z2[j], total):
                        continue
                    if n == size:
                        size *= 2
                        found, other = longer(found, size), longer(other, size)
                    found[n], other[n] = i, j
                    n += 1
    return found[:n].copy(), other[:n].copy()


def approach(
    one: Points, two: Points, cells: Cells, reach: float, apart: bool, metric: str
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of versions that coexist within reach; ``apart`` leaves out those of one client."""
    sides = [_by_slice(p.start, p.end, cells.begin, cells.length, cells.slices) for p in (one, two)]
    threads = max(1, min(8, os.cpu_count() or 1))
    cuts = np.linspace(0, cells.slices, threads + 1).astype(int)
    rest: tuple[Any, ...] = (cells, one, two, *sides[0], *sides[1], float(reach), apart, metric == WGS84)
    with ThreadPoolExecutor(threads) as pool:
        jobs = [pool.submit(_walk, (int(a), int(b), *rest)) for a, b in pairwise(cuts)]
        found = [job.result() for job in jobs]
    return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])


def _walk(arguments: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    return _approach(*arguments)  # type: ignore[no-any-return]
