"""Measures: the figures by which services are compared, read off a replay.

* `user_hours`: how long the subscribers were there, so that a service is judged by what one of them hears in an hour;
* `accuracy`: what was told from noisy fixes, against a replay of what really happened;
* `figures`: both, and the redundant notifications that a state-persistent broker avoids, as metrics to `record`.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from workbench import tables
from workbench.baselines import redundant
from workbench.replay import Replay


def user_hours(made: Replay) -> float:
    """The hours that the subscribers were there, summed over them: a client with several subscriptions is one.

    A mobile is there from its first fix to its last one, a place for as long as the data.

    >>> from workbench import replay
    >>> fixes = {"mobile": [7, 7, 8], "t": [0, 3600, 1800], "x": [0.0] * 3, "y": [0.0] * 3}
    >>> user_hours(replay("proximity", fixes, {"place": ["cafe"], "x": [0.0], "y": [0.0]}, engine="reference"))
    1.0
    """
    data = made.data
    tick_h = data.clock.tick.nanoseconds / 3.6e12
    first, last = data.instants
    there = 0
    for name in {p.table for p in made.scenario.subscriptions}:
        rows = data.tables[name].frame if name in data.tables else None
        if name == "fixes" and rows is not None:
            spans = rows.groupby("id", sort=False)["t"].agg(["min", "max"])
            there += int((spans["max"] - spans["min"]).sum())
        else:
            there += (last - first) * (1 if rows is None else rows["id"].nunique())
    return there * tick_h


def accuracy(heard: Replay, true: Replay) -> dict[str, float | None]:
    """What was heard against what was true: precision, recall, and how late it came.

    A timeline that was heard is *right* if one of the same pair that is true overlaps it in time, and a true one was
    *caught* if one that was heard does. Precision is the share of heard ones that are right, recall the share of true
    ones that were caught, and the delay of these is from their beginning to the first that was heard (0 where that came
    before). A share of nothing is None.

    >>> from workbench import replay
    >>> cafe = {"place": ["cafe"], "x": [0.0], "y": [0.0]}
    >>> walk = {"mobile": [7] * 5, "t": [0, 60, 120, 180, 240], "x": [900.0, 400.0, 900.0, 0.0, 900.0], "y": [0.0] * 5}
    >>> late = {"mobile": [7] * 3, "t": [0, 200, 240], "x": [900.0, 0.0, 900.0], "y": [0.0] * 3}
    >>> true, heard = (replay("proximity", fixes, cafe, engine="reference") for fixes in (walk, late))
    >>> accuracy(heard, true)
    {'precision': 1.0, 'recall': 0.5, 'mean_delay_s': 20.0}
    """
    told, was = (tables.load(r.timelines).reset_index(names="line") for r in (heard, true))
    both = told.merge(was, on=["publication", "subscription"], suffixes=("", "_true"))
    overlap = ((both["tau"] < both["pi_true"]) | both["pi_true"].isna()) & (
        (both["tau_true"] < both["pi"]) | both["pi"].isna()
    )
    both = both[overlap.fillna(True).astype(bool)]
    first = both.sort_values("tau").groupby("line_true").first()
    late = first["tau"] - first["tau_true"]
    delay = late.dt.total_seconds() if hasattr(late, "dt") else late * (heard.data.clock.tick.nanoseconds / 1e9)
    return {
        "precision": both["line"].nunique() / len(told) if len(told) else None,
        "recall": both["line_true"].nunique() / len(was) if len(was) else None,
        "mean_delay_s": float(delay.clip(lower=0).mean()) if len(delay) else None,
    }


def figures(heard: Replay, true: Replay | None = None) -> dict[str, Any]:
    """The figures that every service is asked for; without a truth there is no accuracy, and its figures are None.

    ``redundant_avoided`` are the notifications of a stateless broker that said what had been said before.

    >>> from workbench import replay
    >>> fixes = {"mobile": [7] * 4, "t": [0, 600, 1200, 3600], "x": [0.0, 9.0, 0.0, 900.0], "y": [0.0] * 4}
    >>> figures(replay("proximity", fixes, {"place": ["cafe"], "x": [0.0], "y": [0.0]}, engine="reference"))
    {'notifications': 2, 'per_user_hour': 2.0, 'redundant_avoided': 2, 'precision': None, 'recall': None, \
'mean_delay_s': None}
    """
    hours, told = user_hours(heard), len(tables.load(heard.notifications))
    compared = accuracy(heard, true) if true is not None else dict.fromkeys(("precision", "recall", "mean_delay_s"))
    return {
        "notifications": told,
        "per_user_hour": round(told / hours, 4) if hours else None,
        "redundant_avoided": redundant(heard),
        **{name: None if value is None else round(value, 4) for name, value in compared.items()},
    }


def per_hour(made: Replay, zone: str = "UTC") -> pd.DataFrame:
    """Notifications by hour of the day, a column each for match and unmatch, for data with timestamps.

    >>> from workbench import replay
    >>> t = pd.to_datetime(["2026-03-02T07:10:00Z", "2026-03-02T07:50:00Z"])
    >>> fixes = pd.DataFrame({"mobile": 7, "t": t, "x": [0.0, 900.0], "y": 0.0})
    >>> made = replay("proximity", fixes, {"place": ["cafe"], "x": [0.0], "y": [0.0]}, engine="reference")
    >>> per_hour(made).loc[7].to_dict()
    {'match': 1, 'unmatch': 1}
    """
    told = tables.load(made.notifications)
    hour = told["t"].dt.tz_convert(zone).dt.hour
    counted = pd.crosstab(hour, told["kind"]).reindex(index=range(24), columns=["match", "unmatch"], fill_value=0)
    return counted.rename_axis("hour").rename_axis(columns=None)
