"""A grid over places that stay: which of them can hold a point of a cell, and which hold all of its points.

Where a cell lies wholly inside a place, nothing needs to be computed. Cells only prune: whatever lies close to a border
is left to the functions of `workbench.geometry`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from workbench.compiling import callee, compiled
from workbench.engines import candidates, kernels
from workbench.engines.extents import Positions
from workbench.engines.kernels import (
    area_holds,
    geodesic_distance_m,
    haversine_bound,
)
from workbench.geometry import WGS84

MOST_CELLS = 4_000_000


class Grid(NamedTuple):
    """The places by cell: which can hold a point there, and which hold every point there."""

    x0: float
    y0: float
    a_cell_x: float
    a_cell_y: float
    columns: int
    rows: int
    offsets: np.ndarray
    entries: np.ndarray
    """four times the number of a place, and 0 where a disc, 1 where another shape has to be asked, 2 where all is in"""


@callee
def _disc_and_cell(x, y, total, x_low, x_high, y_low, y_high, geodesic):  # type: ignore[no-untyped-def]
    """0 where no point of a cell is in a disc, 2 where all are, 1 where that has to be computed."""
    slack = 1e-9 * (abs(x) + abs(y) + total + 1.0)
    if geodesic:
        middle_x, middle_y = (x_low + x_high) / 2, (y_low + y_high) / 2
        degree = geodesic_distance_m(0.0, 0.0, 0.0, 1.0)
        across = degree * math.hypot(x_high - x_low, y_high - y_low) / 2 + slack + 1e-3
        apart = geodesic_distance_m(x, y, middle_x, middle_y)
        return 0 if apart - across > total else 2 if apart + across < total else 1
    near_x, near_y = max(0.0, x_low - x, x - x_high), max(0.0, y_low - y, y - y_high)
    if math.hypot(near_x, near_y) > total + slack:
        return 0
    far = math.hypot(max(abs(x_low - x), abs(x_high - x)), max(abs(y_low - y), abs(y_high - y)))
    return 2 if far < total - slack else 1


@callee
def _edge_touches(ax, ay, bx, by, x_low, x_high, y_low, y_high):  # type: ignore[no-untyped-def]
    """Whether an edge may touch a cell: their boxes meet, and the cell's corners lie on both sides of the line."""
    if max(ax, bx) < x_low or min(ax, bx) > x_high or max(ay, by) < y_low or min(ay, by) > y_high:
        return False
    dx, dy = bx - ax, by - ay
    left = right = False
    for px in (x_low, x_high):
        for py in (y_low, y_high):
            cross = dx * (py - ay) - dy * (px - ax)
            bound = 1e-9 * (abs(dx) * (abs(py) + abs(ay)) + abs(dy) * (abs(px) + abs(ax)))
            left |= cross >= -bound
            right |= cross <= bound
    return left and right


@callee
def _area_and_cell(s, j, x_low, x_high, y_low, y_high):  # type: ignore[no-untyped-def]
    c = s.chain[j]
    for ring in range(s.first[c], s.first[c + 1]):
        for v in range(s.rings[ring], s.rings[ring + 1] - 1):
            if _edge_touches(s.xs[v], s.ys[v], s.xs[v + 1], s.ys[v + 1], x_low, x_high, y_low, y_high):
                return 1
    middle_x, middle_y = (x_low + x_high) / 2, (y_low + y_high) / 2
    return 2 if area_holds(s, j, middle_x, middle_y) else 0


@compiled
def _cells(s, totals, box, x0, y0, ax, ay, columns, rows, geodesic):  # type: ignore[no-untyped-def]
    offsets = np.zeros(columns * rows + 1, np.int32)
    entries = np.empty(0, np.int32)
    for turn in range(2):
        # First they are counted, then put in their places: the lists of cells are then in the order of the items.
        if turn == 1:
            for cell in range(columns * rows):
                offsets[cell + 1] += offsets[cell]
            entries = np.empty(offsets[-1], np.int32)
        fill = offsets.copy()
        for j in range(len(totals)):
            # The boxes begin at x0, y0 or after, so that cutting off the fraction is rounding down.
            left, right = int((box[0, j] - x0) / ax), int((box[1, j] - x0) / ax)
            lower, upper = int((box[2, j] - y0) / ay), int((box[3, j] - y0) / ay)
            for cx in range(left, min(columns - 1, right) + 1):
                for cy in range(lower, min(rows - 1, upper) + 1):
                    slack_x, slack_y = 1e-9 * (abs(x0) + ax * columns), 1e-9 * (abs(y0) + ay * rows)
                    x_low, x_high = x0 + cx * ax - slack_x, x0 + (cx + 1) * ax + slack_x
                    y_low, y_high = y0 + cy * ay - slack_y, y0 + (cy + 1) * ay + slack_y
                    lies = 1
                    if s.kind[j] == 0:
                        lies = _disc_and_cell(s.x[j], s.y[j], totals[j], x_low, x_high, y_low, y_high, geodesic)
                    elif s.kind[j] == 2 and totals[j] == 0.0:
                        lies = _area_and_cell(s, j, x_low, x_high, y_low, y_high)
                    if lies == 0:
                        continue
                    cell = cy * columns + cx
                    if turn == 0:
                        offsets[cell + 1] += 1
                    else:
                        entries[fill[cell]] = 4 * j + (2 if lies == 2 else 1 if s.kind[j] else 0)
                        fill[cell] += 1
    return offsets, entries


def grid_of(column: Positions, totals: np.ndarray, reach: float, metric: str) -> Grid:
    """A grid whose cells are a fraction of a place."""
    box = np.stack(candidates.boxes(column, reach, metric))
    x0, y0 = box[0].min(), box[2].min()
    width, height = box[1].max() - x0, box[3].max() - y0
    share = 4.0 if len(totals) <= 20_000 else 2.0
    ax, ay = (max(float((box[k + 1] - box[k]).mean()) / share, 1e-9) for k in (0, 2))
    grow = max(1.0, math.sqrt(width / ax * height / ay / MOST_CELLS))
    ax, ay = ax * grow, ay * grow
    columns, rows = int(width / ax) + 1, int(height / ay) + 1
    found = _cells(column.shapes, totals, box, x0, y0, ax, ay, columns, rows, metric == WGS84)
    return Grid(x0, y0, ax, ay, columns, rows, *found)


class Lookout(NamedTuple):
    """Places in a grid, for those who come within their reach."""

    column: Positions
    discs: np.ndarray
    """x, y, z, and how far is near: metres in the plane, a haversine on the globe"""
    grid: Grid
    geodesic: bool


@compiled
def _bounds(distances):  # type: ignore[no-untyped-def]
    return np.array([haversine_bound(distance) for distance in distances])


def lookout(column: Positions, reach: float, metric: str) -> Lookout | None:
    """A grid over places; None where one has no position, or there is none."""
    if not len(column.present) or not column.present.all() or (column.shapes.kind == kernels.ANYWHERE).any():
        return None
    totals = reach + (0.0 + column.shapes.radius)
    s, geodesic = column.shapes, metric == WGS84
    discs = np.stack([s.x, s.y, s.z, _bounds(totals) if geodesic else totals], axis=1)
    return Lookout(column, discs, grid_of(column, totals, reach, metric), geodesic)
