"""How a fleet moves, as distributions that two data sets can be compared by.

Steps, speeds and gaps are between a fix and the one before it of the same mobile; dwell times are those of
`workbench.datasets.stops`; the visit frequency of rank k is the share of a mobile's stops that it makes in its k-th
favourite square, averaged over the mobiles. These are the measures by which movement has been described since
Gonzalez, Hidalgo and Barabasi (Nature 453, 2008).

>>> walk = pd.DataFrame({"mobile": 1, "t": [0, 10, 20, 40], "x": [0.0, 30.0, 30.0, 30.0], "y": 0.0})
>>> movement(walk, stop_m=5, stop_s=10).step_m.tolist()
[30.0, 0.0, 0.0]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from workbench.datasets.preparing import Tracks, stop_table, stops
from workbench.geometry import EARTH_RADIUS_M

RANKS = 10
SQUARE_M = 250.0


@dataclass(frozen=True, eq=False)
class Movement:
    """Five distributions of one data set: a value for each step, stop or rank."""

    step_m: np.ndarray
    speed_mps: np.ndarray
    """of the steps that took some time"""
    gap_s: np.ndarray
    dwell_s: np.ndarray
    visit_share: np.ndarray
    """of the favourite square, the second favourite one, and so on"""


def movement(fixes: pd.DataFrame, *, stop_m: float = 100.0, stop_s: float = 300.0, tick_s: float = 1.0) -> Movement:
    """What the steps and stops of fixes are like."""
    tracks = Tracks(fixes, tick_s)
    tracks.need_place()
    follows = ~tracks.first
    step_m, gap_s = tracks.step_m()[follows], tracks.step_s()[follows]
    moving = gap_s > 0
    found = stop_table(stops(tracks.frame, stop_m, stop_s, tick_s=tick_s), tick_s=tick_s)
    return Movement(
        step_m, step_m[moving] / gap_s[moving], gap_s, found["duration_s"].to_numpy(float), _visit_share(found)
    )


def _visit_share(found: pd.DataFrame) -> np.ndarray:
    """Mean share of a mobile's stops by the rank of the square; a mobile with one stop says nothing."""
    if "lon" in found.columns:
        metres = np.radians(1.0) * EARTH_RADIUS_M
        x, y = found["lon"] * np.cos(np.radians(found["lat"].mean())) * metres, found["lat"] * metres
    else:
        x, y = found["x"], found["y"]
    squares = found.assign(column=np.floor(x / SQUARE_M), row=np.floor(y / SQUARE_M))
    counts = squares.groupby(["mobile", "column", "row"]).size().rename("visits").reset_index()
    counts = counts[counts.groupby("mobile")["visits"].transform("sum") > 1]
    shares = counts["visits"] / counts.groupby("mobile")["visits"].transform("sum")
    rank = shares.groupby(counts["mobile"]).rank(method="first", ascending=False).astype(int)
    mobiles = max(1, counts["mobile"].nunique())
    summed = shares.groupby(rank).sum().reindex(range(1, RANKS + 1), fill_value=0.0)
    return (summed / mobiles).to_numpy()


def summary(compared: Mapping[str, Movement]) -> pd.DataFrame:
    """The quartiles of each distribution, and the shares of the three favourite squares, a column a data set."""
    rows: dict[str, list[float]] = {}
    for each in fields(Movement)[:4]:
        for name, share in (("lower quartile", 0.25), ("median", 0.5), ("upper quartile", 0.75)):
            values = [getattr(one, each.name) for one in compared.values()]
            rows[f"{each.name}, {name}"] = [float(np.quantile(v, share)) if len(v) else np.nan for v in values]
    for rank in range(3):
        rows[f"visit_share, rank {rank + 1}"] = [float(one.visit_share[rank]) for one in compared.values()]
    return pd.DataFrame.from_dict(rows, orient="index", columns=list(compared)).round(3)
