"""Plots of a replay, and of regions: pictures that need no script, with a sentence each.

`overview` is the picture that stands beside every map. Each function gives a `Picture`, which shows itself as PNG in a
notebook, says in words what it shows (its `repr`), and is written with `Picture.save`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import dates
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Ellipse, PathPatch, Rectangle
from matplotlib.path import Path as Outline
from matplotlib.ticker import FuncFormatter, MaxNLocator

from workbench.errors import DataError
from workbench.geometry import EARTH_RADIUS_M
from workbench.model.extents import Interval
from workbench.model.regions import Region
from workbench.model.shapes import Shape
from workbench.views.colours import CATEGORIES, MATCH, UNMATCH, paint
from workbench.views.scene import Scene
from workbench.views.text import plain

MAX_BARS = 40
IN_OVERVIEW = 25
"""how many pairs have room for their names, alone and beside other pictures"""


class Picture(Figure):
    """A figure that shows itself in a notebook, and says what it shows."""

    says: str = ""

    def _repr_png_(self) -> bytes:
        return self.png()

    def png(self, dpi: int = 100) -> bytes:
        """The picture as the bytes of a PNG."""
        page = io.BytesIO()
        self.savefig(page, format="png", dpi=dpi, metadata={"Software": None, "Description": self.says})
        return page.getvalue()

    def save(self, path: str | Path) -> Path:
        """Write the picture as PNG."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(self.png())
        return target

    def __repr__(self) -> str:
        return self.says or super().__repr__()

    __str__ = __repr__


def overview(seen: Scene, *, colour_by: str | None = None, base: Any = None, title: str = "") -> Picture:
    """Where, when and for how long: the three pictures of a replay in one."""
    picture = Picture(figsize=(12, 6.5), layout="constrained")
    grid = picture.add_gridspec(2, 2, width_ratios=[1.2, 1], height_ratios=[1, 1.6])
    _space(picture.add_subplot(grid[:, 0]), seen, colour_by, base)
    _over_time(picture.add_subplot(grid[0, 1]), seen)
    _bars(picture.add_subplot(grid[1, 1]), seen, IN_OVERVIEW)
    if title:
        picture.suptitle(plain(title))
    picture.says = _sentence(seen)
    return picture


def space(seen: Scene, *, colour_by: str | None = None, base: Any = None) -> Picture:
    """Places with their reach, tracks, and where mobiles were when they were told."""
    picture = Picture(figsize=(7, 6.5), layout="constrained")
    _space(picture.add_subplot(), seen, colour_by, base)
    picture.says = _sentence(seen)
    return picture


def over_time(seen: Scene) -> Picture:
    """Matches up, unmatches down, over time."""
    picture = Picture(figsize=(9, 2.6), layout="constrained")
    _over_time(picture.add_subplot(), seen)
    picture.says = _sentence(seen)
    return picture


def bars(seen: Scene) -> Picture:
    """Timelines: a bar from tau to pi for each time that a pair matched."""
    pairs = min(MAX_BARS, len(seen.timelines.drop_duplicates(["publication", "subscription"])))
    picture = Picture(figsize=(9, 1.2 + 0.22 * max(3, pairs)), layout="constrained")
    _bars(picture.add_subplot(), seen)
    picture.says = f"{len(seen.timelines):,} timelines of matching pairs, as bars over time"
    return picture


def _sentence(seen: Scene) -> str:
    told = seen.notifications
    kinds = told["kind"].value_counts()
    return (
        f"{len(seen.places):,} places, {seen.tracks['key'].nunique():,} mobiles, {len(told):,} notifications "
        f"({kinds.get('match', 0):,} match, {kinds.get('unmatch', 0):,} unmatch), "
        f"{seen.times.text(seen.span[0])} to {seen.times.text(seen.span[1])}, {seen.times.label}"
    )


# -- space ---------------------------------------------------------------------------------------------------


def _space(ax: Axes, seen: Scene, colour_by: str | None, base: Any) -> None:
    if base is not None:
        _base(ax, base)
    colours = paint(colour_by, seen.places, seen.tracks)
    faint = max(0.12, min(0.5, 10 / max(1, seen.tracks["key"].nunique())))  # many tracks must not hide the rest
    for _, track in seen.tracks.groupby("key", sort=False):
        colour = colours.colour("mobile", next(track.iloc[[-1]].itertuples()))
        ax.plot(track["x"], track["y"], color=colour, linewidth=0.8, alpha=faint)
    for row in seen.places.itertuples():
        colour = colours.colour("place", row)
        if row.geometry is not None:
            _outline(ax, row.geometry, colour)
        elif row.radius_m > 0:
            ax.add_patch(_reach(seen, row, colour))
    at = seen.places[[g is None for g in seen.places["geometry"]]] if len(seen.places) else seen.places
    filled = [colours.colour("place", row) for row in at.itertuples()]
    ax.scatter(at["x"], at["y"], s=16, c=filled, edgecolors="white", linewidths=0.5, zorder=3)
    told = seen.notifications
    match, unmatch = told[told["kind"] == "match"], told[told["kind"] == "unmatch"]
    ax.scatter(unmatch["x"], unmatch["y"], s=26, facecolors="none", edgecolors=UNMATCH, zorder=4, label="unmatch")
    ax.scatter(match["x"], match["y"], s=14, c=MATCH, edgecolors="white", linewidths=0.4, zorder=5, label="match")
    for name, colour in colours.legend:
        ax.scatter([], [], s=16, c=colour, label=plain(name))
    west, south, east, north = seen.bounds
    longest = max(east - west, north - south, 1e-9)
    # a road is drawn with some land around it: there is no room for a legend on a line
    wide, high = (max(0.03 * longest, 0.5 * (0.5 * longest - side)) for side in (east - west, north - south))
    ax.set(xlim=(west - wide, east + wide), ylim=(south - high, north + high))
    ax.set_aspect("equal" if seen.planar else 1 / max(0.05, float(np.cos(np.radians((south + north) / 2)))))
    ax.set(xlabel="x, m" if seen.planar else "longitude", ylabel="y, m" if seen.planar else "latitude")
    ax.ticklabel_format(useOffset=False)
    ax.set_title("Where", loc="left", fontsize=10)
    ax.legend(fontsize=8, loc="upper left", framealpha=0.9)


def _reach(seen: Scene, row: Any, colour: str) -> Ellipse:
    style: dict[str, Any] = {"facecolor": colour, "edgecolor": colour, "alpha": 0.15}
    if seen.planar:
        return Circle((row.x, row.y), row.radius_m, **style)
    degrees = np.degrees(row.radius_m / EARTH_RADIUS_M)
    return Ellipse((row.x, row.y), 2 * degrees / np.cos(np.radians(row.y)), 2 * degrees, **style)


def _base(ax: Axes, base: Any) -> None:
    import shapely

    from workbench.tables import geometry_of, load

    for value in load(base, "base")["geometry"]:
        for part in shapely.get_parts(geometry_of(value)):
            xs, ys = (part.exterior if part.geom_type == "Polygon" else part).xy
            ax.plot(xs, ys, color="#d8d5cc", linewidth=0.8, zorder=0)


def _outline(ax: Axes, geometry: Any, colour: str, alpha: float = 0.3, label: str | None = None) -> None:
    """A shapely geometry: areas with their holes filled, lines as lines."""
    import shapely

    for part in shapely.get_parts(geometry):
        if part.geom_type == "Polygon":
            rings = [np.asarray(ring.coords)[:, :2] for ring in (part.exterior, *part.interiors)]
            codes = [code for ring in rings for code in [1, *[2] * (len(ring) - 2), 79]]
            path = Outline(np.concatenate(rings), codes)
            ax.add_patch(PathPatch(path, facecolor=colour, edgecolor=colour, alpha=alpha, label=label))
        else:
            ax.plot(*part.xy, color=colour, label=label)
        label = None


# -- time ----------------------------------------------------------------------------------------------------


def _instants(seen: Scene, at: Any) -> Any:
    """Numbers of the scene as what a time axis takes."""
    values = np.asarray(at, dtype=float)
    return values if seen.times.integers else values / 86_400_000.0


def _time_axis(ax: Axes, seen: Scene) -> None:
    if seen.times.integers:
        ax.set_xlabel("t")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    else:
        locator = dates.AutoDateLocator(tz=seen.times.zone)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=seen.times.zone))
        ax.set_xlabel(seen.times.zone)
    first, last = _instants(seen, seen.span)
    ax.set_xlim(first, last if last > first else first + 1)


def _over_time(ax: Axes, seen: Scene) -> None:
    edges = np.linspace(*seen.span, 49)
    for kind, colour, sign in (("match", MATCH, 1), ("unmatch", UNMATCH, -1)):
        at = seen.notifications.loc[seen.notifications["kind"] == kind, "at"]
        counts, _ = np.histogram(at, bins=edges) if edges[-1] > edges[0] else (np.zeros(48), None)
        ax.stairs(sign * counts, _instants(seen, edges), fill=True, color=colour, label=kind)
    ax.axhline(0, color="#666", linewidth=0.6)
    ax.set_title("When: match up, unmatch down", loc="left", fontsize=10)
    ax.set_ylabel("notifications")
    ax.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    _time_axis(ax, seen)


def _bars(ax: Axes, seen: Scene, most: int = MAX_BARS) -> None:
    lines = seen.timelines
    pairs = lines[["publication", "subscription"]].drop_duplicates()
    shown = pairs.head(most)
    rows = {tuple(pair): n for n, pair in enumerate(shown.astype(str).to_numpy().tolist())}
    for line in lines.itertuples():
        row = rows.get((str(line.publication), str(line.subscription)))
        if row is None:
            continue
        end = seen.span[1] if pd.isna(line.ended_at) else line.ended_at
        begin, finish = _instants(seen, [line.began, end])
        ax.broken_barh([(begin, finish - begin)], (row - 0.4, 0.8), facecolors=MATCH)
    ax.set_yticks(range(len(rows)), [plain(f"{_short(p)} → {_short(s)}") for p, s in rows], fontsize=7)
    ax.set_ylim(max(5.5, len(rows) - 0.5), -0.5)
    left = f", the first {most} of {len(pairs):,} pairs" if len(pairs) > most else ""
    ax.set_title(f"How long: timelines [tau, pi){left}", loc="left", fontsize=10)
    _time_axis(ax, seen)


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:22]}…"


# -- regions -------------------------------------------------------------------------------------------------


def regions(**given: Region) -> Picture:
    """Regions of one space, drawn: intervals on lines, products of two intervals and shapes on a plane.

    >>> from workbench.model import Space, between, region
    >>> fuel = Space("fuel", level=float)
    >>> regions(low=region(fuel, level=between(0, 20)), now=region(fuel, level=12))
    2 regions: low = {level=[0,20]}, now = {level=[12]}
    """
    if not given:
        raise DataError("there is no region to draw")
    dimensions = list(dict.fromkeys(d for r in given.values() for d, _ in r.constraints))
    flat = all(isinstance(e, Shape) for r in given.values() for _, e in r.constraints)
    if not flat and (
        len(dimensions) > 2 or not all(isinstance(e, Interval) for r in given.values() for _, e in r.constraints)
    ):
        raise DataError(f"regions over {', '.join(dimensions)} cannot be drawn; expected one or two numbers, or shapes")
    size = (8, 0.9 + 0.45 * len(given)) if len(dimensions) == 1 and not flat else (5.5, 5)
    picture = Picture(figsize=size, layout="constrained")
    ax = picture.add_subplot()
    for n, (name, region) in enumerate(given.items()):
        colour = CATEGORIES[n % len(CATEGORIES)]
        extents = dict(region.constraints)
        if flat:
            _shape(ax, next(iter(extents.values())), colour, name)
        elif len(dimensions) == 1:
            _interval(ax, extents[dimensions[0]], n, colour)
        else:
            _box(ax, [_ends(extents.get(d)) for d in dimensions], colour, name)
    if flat or len(dimensions) == 2:
        ax.autoscale_view()
        ax.legend(fontsize=8)
        names = ("x, m", "y, m") if flat else dimensions
        ax.set(xlabel=plain(names[0]), ylabel=plain(names[1]))
        if flat:
            ax.set_aspect("equal")
    else:
        ax.set_yticks(range(len(given)), [plain(name) for name in given])
        ax.set(ylim=(len(given) - 0.5, -0.5), xlabel=plain(dimensions[0]))
        ax.grid(axis="x", alpha=0.3)
    picture.says = f"{len(given)} regions: " + ", ".join(f"{name} = {region}" for name, region in given.items())
    return picture


def _ends(extent: Any) -> tuple[float, float]:
    if extent is None:
        return -np.inf, np.inf
    return float(extent.lower), float(extent.upper)


def _interval(ax: Axes, extent: Any, row: int, colour: str) -> None:
    """Closed ends are filled dots, open ends rings, as in textbooks."""
    for piece in extent:
        lower, upper = _ends(piece)
        ax.plot([lower, upper], [row, row], color=colour, linewidth=3, solid_capstyle="butt")
        for end, closed in ((lower, piece.left), (upper, piece.right)):
            fill = colour if "CLOSED" in str(closed) else "white"
            ax.plot([end], [row], "o", markersize=8, markerfacecolor=fill, markeredgecolor=colour)


def _box(ax: Axes, ends: list[tuple[float, float]], colour: str, name: str) -> None:
    (x0, x1), (y0, y1) = ends
    if not np.all(np.isfinite([x0, x1, y0, y1])):
        raise DataError(f"region {name!r} has no end in one of two dimensions, and cannot be drawn")
    if x0 == x1 and y0 == y1:
        ax.plot([x0], [y0], "o", color=colour, label=plain(name))
        return
    ax.add_patch(
        Rectangle((x0, y0), x1 - x0, y1 - y0, facecolor=colour, edgecolor=colour, alpha=0.3, label=plain(name))
    )


def _shape(ax: Axes, shape: Any, colour: str, name: str) -> None:
    if shape.is_point:
        ax.plot([shape.x], [shape.y], "o", color=colour, label=plain(name))
    else:
        skeleton = shape.skeleton
        _outline(ax, skeleton.buffer(shape.radius_m, 64) if shape.radius_m else skeleton, colour, label=plain(name))


# -- distributions ----------------------------------------------------------------------------------------------


def distributions(compared: Mapping[str, Any], labels: Mapping[str, str], title: str = "") -> Picture:
    """Several data sets side by side, a panel for each measure of theirs: the share of values above each value.

    compared: for each data set an object with an array for each measure; labels: for each measure its axis, with the
    unit. Values are drawn on logarithmic axes, where the tails can be seen.
    """
    picture = Picture(figsize=(3.2 * len(labels), 3.4), layout="constrained")
    for ax, (measure, label) in zip(picture.subplots(1, len(labels), squeeze=False)[0], labels.items(), strict=True):
        for (name, one), colour, line in zip(compared.items(), CATEGORIES, ("-", "--", ":", "-."), strict=False):
            values = np.sort(np.asarray(getattr(one, measure), float))
            values = values[values > 0]
            above = 1.0 - np.arange(len(values)) / max(1, len(values))
            # closer and closer towards the end, where a logarithmic axis shows each single value
            some = np.unique(len(values) - np.geomspace(1, max(1, len(values)), 400).astype(int))[: len(values)]
            ax.plot(values[some], above[some], line, color=colour, label=name)
        ax.set(xscale="log", yscale="log", xlabel=label)
        ax.grid(alpha=0.3)
    picture.axes[0].set_ylabel("share of values above")
    picture.axes[0].legend(loc="lower left", fontsize=8)
    picture.suptitle(title, fontsize=11)
    picture.says = f"{' and '.join(compared)}: how {', '.join(labels.values())} are distributed"
    return picture


def ranks(compared: Mapping[str, Any], measure: str, label: str, title: str = "") -> Picture:
    """Several data sets side by side by rank: a value for the first, the second, and so on."""
    picture = Picture(figsize=(5.0, 3.2), layout="constrained")
    ax = picture.subplots()
    for (name, one), colour, mark in zip(compared.items(), CATEGORIES, "osv^", strict=False):
        values = np.asarray(getattr(one, measure), float)
        ax.plot(np.arange(1, len(values) + 1), values, mark + "-", color=colour, label=name)
    ax.set(xlabel="rank", ylabel=label, title=title, ylim=(0, None))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(alpha=0.3)
    ax.legend()
    picture.says = f"{' and '.join(compared)}: {label} by rank"
    return picture


def scaling(curves: Mapping[str, Any], across: str, up: str, title: str = "") -> Picture:
    """How something grows: for each name its points, on logarithmic axes, where a straight line is a power."""
    picture = Picture(figsize=(6.4, 3.8), layout="constrained")
    ax = picture.subplots()
    for (name, points), colour, mark in zip(curves.items(), CATEGORIES, "osv^Dx", strict=False):
        ax.plot(*zip(*points, strict=True), mark + "-", color=colour, label=name)
    ax.set(xscale="log", yscale="log", xlabel=across, ylabel=up)
    ax.set_xticks(sorted({x for points in curves.values() for x, _ in points}), minor=False)
    ax.set_xticks([], minor=True)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    ax.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else ""))
    ax.set_title(title, fontsize=10)
    ax.grid(alpha=0.3, which="both")
    ax.legend(fontsize=8)
    picture.says = f"{', '.join(curves)}: {up} by {across}"
    return picture


def ratios(values: Mapping[str, float], label: str) -> Picture:
    """Bars of values, each with its ratio to the first."""
    picture = Picture(figsize=(7.0, 0.6 + 0.38 * len(values)), layout="constrained")
    ax = picture.subplots()
    names, numbers = list(values), list(values.values())
    bars_ = ax.barh(names, numbers, color=[CATEGORIES[n.startswith("workbench")] for n in names])
    ax.bar_label(bars_, [f" {number / numbers[0]:,.2g} x" for number in numbers], fontsize=8)
    ax.set(xlabel=label, xscale="log" if max(numbers) > 50 * min(numbers) else "linear")
    ax.invert_yaxis()
    ax.margins(x=0.15)
    picture.says = ", ".join(f"{name}: {number / numbers[0]:,.2g} times the first" for name, number in values.items())
    return picture
