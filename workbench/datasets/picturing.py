"""A map of where fixes lie, as a drawing that needs nothing and nobody: fixes are counted in squares, north is up.

The window holds all but the outermost half per cent on each side of a sample, so that a few gross outliers do not
shrink a city to a dot; how many fixes lie outside is said. Degrees of longitude are drawn as wide as they are at the
middle latitude.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from workbench.geometry import EARTH_RADIUS_M

WIDE_PX, HIGH_PX, CELL_PX = 520.0, 400.0, 4
SHADES = ("#cfe1f2", "#93c3df", "#4b97c9", "#1764ab", "#08306b")
"""From few to many; equal steps of the logarithm."""


@dataclass(frozen=True)
class Window:
    """The part of the plane that is drawn, and how many metres a unit of each axis is."""

    low: tuple[float, float]
    high: tuple[float, float]
    metres: tuple[float, float]

    @property
    def cells(self) -> tuple[int, int]:
        """Squares along each axis."""
        wide, high = ((b - a) * m for a, b, m in zip(self.low, self.high, self.metres, strict=True))
        side = max(wide / WIDE_PX, high / HIGH_PX) * CELL_PX
        return max(1, round(wide / side)), max(1, round(high / side))


def window_of(x: np.ndarray, y: np.ndarray, *, degrees: bool) -> Window | None:
    """The window around a sample of points; None where there is none."""
    known = np.isfinite(x) & np.isfinite(y)
    if not known.any():
        return None
    metres = (1.0, 1.0)
    if degrees:
        a_degree = np.radians(1.0) * EARTH_RADIUS_M
        metres = (a_degree * max(0.01, float(np.cos(np.radians(np.median(y[known]))))), a_degree)
    ends = [np.quantile(v[known], (0.005, 0.995)) for v in (x, y)]
    # a margin, and at least a twentieth of the other side or some metres, so that a line has a width
    sizes = [(b - a) * m for (a, b), m in zip(ends, metres, strict=True)]
    margin = max(0.05 * max(sizes), 10.0)
    low = tuple(float(a) - margin / m for (a, _), m in zip(ends, metres, strict=True))
    high = tuple(float(b) + margin / m for (_, b), m in zip(ends, metres, strict=True))
    return Window((low[0], low[1]), (high[0], high[1]), metres)


def counted(window: Window, points: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, int]:
    """The fixes in each square, a row a step to the north, and how many lie outside the window."""
    columns, rows = window.cells
    counts, outside = np.zeros(columns * rows, np.int64), 0
    for x, y in points:
        known = np.isfinite(x) & np.isfinite(y)
        share = [(v[known] - a) / (b - a) for v, a, b in zip((x, y), window.low, window.high, strict=True)]
        inside = (share[0] >= 0) & (share[0] < 1) & (share[1] >= 0) & (share[1] < 1)
        outside += int((~inside).sum())
        cell = (share[1][inside] * rows).astype(int) * columns + (share[0][inside] * columns).astype(int)
        counts += np.bincount(cell, minlength=len(counts))
    return counts.reshape(rows, columns), outside


@dataclass(frozen=True, eq=False)
class Picture:
    """A drawn map; a notebook shows it, `svg` is the drawing."""

    svg: str

    def _repr_html_(self) -> str:
        return self.svg


def picture(name: str, window: Window, counts: np.ndarray, outside: int, axes: tuple[str, str]) -> Picture:
    """The squares as a drawing with its ends, a scale and a legend."""
    rows, columns = counts.shape
    wide, high = columns * CELL_PX, rows * CELL_PX
    edges = np.unique(np.ceil(np.geomspace(1, max(2, counts.max() + 1), len(SHADES) + 1)).astype(int))
    drawn, legend = [], []
    for few, more, shade in zip(edges[:-1], edges[1:], SHADES[-(len(edges) - 1) :], strict=True):
        row, column = np.nonzero((counts >= few) & (counts < more))
        squares = "".join(
            f"M{c * CELL_PX} {(rows - 1 - r) * CELL_PX}h{CELL_PX}v{CELL_PX}h-{CELL_PX}z"
            for r, c in zip(row.tolist(), column.tolist(), strict=True)
        )
        drawn.append(f'<path fill="{shade}" d="{squares}"/>')
        legend.append((shade, f"{few:,}" if more - few == 1 else f"{few:,} to {more - 1:,}"))
    key_y = high + 46
    places = np.cumsum([0, *(30 + 6.2 * len(label) for _, label in legend)])
    keys = "".join(
        f'<rect x="{x:.0f}" y="{key_y}" width="12" height="12" fill="{shade}"/>'
        f'<text x="{x + 16:.0f}" y="{key_y + 10}">{label}</text>'
        for x, (shade, label) in zip(places, legend, strict=False)
    )
    across_m = (window.high[0] - window.low[0]) * window.metres[0]
    bar_m = _round(across_m / 4)
    bar = bar_m / across_m * wide
    length = f"{bar_m / 1000:g} km" if bar_m >= 1000 else f"{bar_m:g} m"
    side_m = across_m / columns
    told = f"fixes in squares of {_length(side_m)}" + (f"; {outside:,} fixes lie outside" if outside else "")
    (west, south), (east, north) = window.low, window.high
    text = "font-family:sans-serif;font-size:11px;fill:#333"
    whole = max(wide + 90, int(places[-1]) + 10, 420)
    said = html.escape(f"Map of {name}: {told}")
    return Picture(
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{said}" width="{whole}" '
        f'height="{key_y + 36}" viewBox="-6 -6 {whole} {key_y + 36}" style="{text};background:#fff">'
        f'<rect x="-1" y="-1" width="{wide + 2}" height="{high + 2}" fill="#fafafa" stroke="#bbb"/>{"".join(drawn)}'
        f'<text x="{wide + 6}" y="9">{_end(north, axes[1])}</text>'
        f'<text x="{wide + 6}" y="{high}">{_end(south, axes[1])}</text>'
        f'<text x="0" y="{high + 14}">{_end(west, axes[0])}</text>'
        f'<text x="{wide}" y="{high + 14}" text-anchor="end">{_end(east, axes[0])}</text>'
        f'<path d="M0 {high + 22}v6h{bar:.1f}v-6" fill="none" stroke="#333"/>'
        f'<text x="{bar + 6:.1f}" y="{high + 30}">{length}</text>{keys}'
        f'<text x="0" y="{key_y + 27}">{html.escape(told)}</text></svg>'
    )


def _round(value: float) -> float:
    """1, 2 or 5 times a power of ten, at most the value.

    >>> [_round(v) for v in (0.7, 1234.0, 4999.0, 60000.0)]
    [0.5, 1000.0, 2000.0, 50000.0]
    """
    power = 10.0 ** np.floor(np.log10(value))
    return float(power * max(m for m in (1, 2, 5) if m * power <= value * (1 + 1e-9)))


def _length(metres: float) -> str:
    return f"{metres / 1000:.2g} km" if metres >= 1000 else f"{metres:.2g} m" if metres < 10 else f"{metres:.0f} m"


def _end(value: float, axis: str) -> str:
    if axis in ("lon", "lat"):
        return f"{abs(value):.3f}° {('EW' if axis == 'lon' else 'NS')[int(value < 0)]}"
    return f"{axis} {value:,.0f} m"


def columns_of(table: pd.DataFrame, axes: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
    """The coordinates of a table as arrays."""
    return table[axes[0]].to_numpy(float), table[axes[1]].to_numpy(float)
