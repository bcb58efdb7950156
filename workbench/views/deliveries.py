"""Pictures of active control: check intervals, printed values beside their ranges, staleness against checks.

All take data, never a strategy or a run; each says in words what it shows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator, NullFormatter, PercentFormatter, StrMethodFormatter

from workbench.views.colours import CATEGORIES, MATCH, MOBILE, OTHERS, PLACE, PLAIN, UNMATCH
from workbench.views.plots import Picture
from workbench.views.text import plain

_TICKS = (1, 2, 3, 5)


def intervals(
    runs: Mapping[str, np.ndarray],
    losses: Mapping[str, np.ndarray] | None = None,
    *,
    in_seconds: bool = False,
    title: str = "",
) -> Picture:
    """Check intervals t_i of some clients, a panel each, over i or over the time at which each begins.

    `runs` has one row a replication: the first is drawn, over i above the middle 95 % of all. `losses` adds the k_i of
    the first replication as bars.

    >>> intervals({"constant": np.full((3, 100), 20.0)})
    constant: t_i from 20.0 to 20.0 s, on average 20.0 s
    """
    below = losses or {}
    rows = [rows for name in runs for rows in ([2.0, 1.0] if name in below else [2.0])]
    picture = Picture(figsize=(9, 0.75 * sum(rows) + 1), layout="constrained")
    axes = iter(picture.subplots(len(rows), sharex=True, squeeze=False, height_ratios=rows)[:, 0])
    tall = []
    for name, t in runs.items():
        axis = next(axes)
        tall.append(axis)
        steps = np.arange(1, t.shape[1] + 1)
        x = np.cumsum(t[0]) - t[0] if in_seconds else steps
        if not in_seconds and len(t) > 1:
            low, high = np.quantile(t, [0.025, 0.975], axis=0)
            axis.fill_between(x, low, high, color=PLACE, alpha=0.15, linewidth=0, label=f"95 % of {len(t):,} runs")
        axis.plot(x, t[0], color=PLACE, linewidth=1.2, label="one run")
        axis.axhline(t.mean(), color=PLAIN, linewidth=1, linestyle=":", label=f"mean of all: {t.mean():.1f} s")
        axis.set_title(plain(name), fontsize=10, loc="left")
        axis.set_ylabel("t_i, s")
        axis.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, frameon=False)
        if name in below:
            axis = next(axes)
            axis.bar(x, below[name][0], color=UNMATCH, width=0.8)
            axis.set_ylabel("k_i")
    for other in tall:
        other.set_ylim(0, max(o.get_ylim()[1] for o in tall))
    axis.set_xlabel("seconds since the client began" if in_seconds else "i, the check that ends the interval")
    if title:
        picture.suptitle(plain(title))
    picture.says = "; ".join(
        f"{plain(name)}: t_i from {t[0].min():.1f} to {t[0].max():.1f} s, on average {t[0].mean():.1f} s"
        for name, t in runs.items()
    )
    return picture


def ranges(table: pd.DataFrame, *, title: str = "") -> Picture:
    """Printed values beside what single runs give: columns strategy, metric, printed, mean, low, high, within.

    >>> row = {"strategy": "constant", "metric": "k_avg", "printed": 0.5, "mean": 1.0, "low": 0.8, "high": 1.2}
    >>> ranges(pd.DataFrame([row | {"within": False}]))
    1 printed value, 1 of them outside the middle 95 % of single runs: k_avg of constant (0.5)
    """
    metrics, names = list(dict.fromkeys(table["metric"])), list(dict.fromkeys(table["strategy"]))
    picture = Picture(figsize=(11, 1.6 + 0.28 * len(names)), layout="constrained")
    for axis, metric in zip(picture.subplots(1, len(metrics), sharey=True, squeeze=False)[0], metrics, strict=True):
        rows = table[table["metric"] == metric]
        y = rows["strategy"].map(names.index)
        axis.hlines(y, rows["low"], rows["high"], color=OTHERS, linewidth=6, alpha=0.45, label="95 % of single runs")
        axis.plot(rows["mean"], y, "|", color=PLAIN, markersize=10, label="mean")
        for within, colour in ((True, MATCH), (False, UNMATCH)):
            some = rows["within"] == within
            label = f"printed, {'inside' if within else 'outside'}"
            axis.plot(rows["printed"][some], y[some], "o" if within else "D", color=colour, markersize=6, label=label)
        axis.set_title(plain(metric), fontsize=10)
        axis.grid(axis="x", alpha=0.3)
    axis.set_yticks(range(len(names)), [plain(name) for name in names])
    axis.invert_yaxis()
    handles, labels = axis.get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    if title:
        picture.suptitle(plain(title))
    out = table[~table["within"]]
    some = ", ".join(f"{plain(r.metric)} of {plain(r.strategy)} ({r.printed:g})" for r in out.itertuples())
    picture.says = (
        f"{len(table)} printed value{'s' if len(table) != 1 else ''}, {len(out)} of them outside the middle 95 % of "
        f"single runs{': ' if some else ''}{some}"
    )
    return picture


def frontier(points: pd.DataFrame, ours: Collection[str] = (), *, title: str = "") -> Picture:
    """Staleness against checks, a mark a strategy: columns strategy, checks_per_hour, stale_share, frontier.

    A line joins the points on the frontier, those that no other point beats in both. Names in `ours` are drawn as dots.

    >>> one = {"strategy": "Constant", "checks_per_hour": 60.0, "stale_share": 0.01, "frontier": True}
    >>> frontier(pd.DataFrame([one, one | {"checks_per_hour": 70.0, "frontier": False}]))
    2 points of 1 strategy, 1 of them on the frontier: Constant 1
    """
    picture = Picture(figsize=(9, 5.2), layout="constrained")
    axis = picture.subplots()
    dots, crosses = cycle(zip("os^D", (UNMATCH, MATCH, MOBILE, PLAIN))), cycle(zip("xP1+", CATEGORIES))
    best = points[points["frontier"]].sort_values("checks_per_hour")
    axis.step(best["checks_per_hour"], best["stale_share"], where="post", color=PLAIN, linewidth=0.8, label="frontier")
    for name in sorted(set(points["strategy"]), key=lambda name: (name in ours, name)):
        family: Any = points[points["strategy"] == name]
        marker, colour = next(dots if name in ours else crosses)
        xs, ys = family["checks_per_hour"], family["stale_share"]
        axis.scatter(xs, ys, s=36, label=plain(name), marker=marker, color=colour)
    axis.set(xscale="log", yscale="log", xlabel="checks an hour and client (what the client and the broker pay)")
    axis.set_ylabel("share of time with a wrong picture")
    for side, form in ((axis.xaxis, StrMethodFormatter("{x:g}")), (axis.yaxis, PercentFormatter(1, decimals=None))):
        side.set_major_locator(LogLocator(subs=_TICKS))
        side.set_major_formatter(form)
        side.set_minor_formatter(NullFormatter())
    axis.grid(alpha=0.25)
    axis.legend(title="dots: ours; crosses: the paper's" if ours else None, fontsize=8)
    if title:
        axis.set_title(plain(title))
    kinds, counts = points["strategy"].nunique(), best["strategy"].value_counts(sort=False).sort_index()
    picture.says = (
        f"{len(points)} points of {kinds} strateg{'y' if kinds == 1 else 'ies'}, {len(best)} of them on the frontier: "
        + ", ".join(f"{plain(name)} {count}" for name, count in counts.items())
    )
    return picture
