"""What the pictures of active control say, and that they show what they were given."""

from __future__ import annotations

import numpy as np
import pandas as pd

from workbench.views.deliveries import frontier, intervals, ranges


def test_a_panel_for_each_client_and_one_for_its_losses() -> None:
    t, k = np.array([[20.0, 40.0, 30.0], [20.0, 15.0, 35.0]]), np.array([[0, 1, 2], [1, 0, 0]])
    picture = intervals({"one": t, "other": t[::-1]}, {"one": k})
    assert [axis.get_ylabel() for axis in picture.axes] == ["t_i, s", "k_i", "t_i, s"]
    assert [bar.get_height() for bar in picture.axes[1].patches] == [0, 1, 2]
    assert "one: t_i from 20.0 to 40.0 s" in picture.says


def test_intervals_in_seconds_are_drawn_where_they_begin() -> None:
    picture = intervals({"one": np.array([[20.0, 40.0, 30.0]])}, in_seconds=True)
    assert picture.axes[0].lines[0].get_xdata().tolist() == [0, 20, 60]


def test_a_printed_value_outside_its_range_is_named_and_marked() -> None:
    row = {"metric": "k_avg", "mean": 1.0, "low": 0.8, "high": 1.2}
    table = pd.DataFrame(
        [
            row | {"strategy": "a", "printed": 0.5, "within": False},
            row | {"strategy": "b", "printed": 1, "within": True},
        ]
    )
    picture = ranges(table)
    assert picture.says.endswith("outside the middle 95 % of single runs: k_avg of a (0.5)")
    drawn = {line.get_label(): line.get_xdata().tolist() for line in picture.axes[0].lines}
    assert (drawn["printed, inside"], drawn["printed, outside"]) == ([1.0], [0.5])


def test_the_frontier_is_the_line_and_ours_are_dots() -> None:
    points = pd.DataFrame(
        {
            "strategy": ["Constant", "Prompt", "Prompt"],
            "checks_per_hour": [10.0, 5.0, 20.0],
            "stale_share": [0.3, 0.2, 0.1],
            "frontier": [False, True, True],
        }
    )
    picture = frontier(points, ours=["Prompt"])
    assert picture.axes[0].lines[0].get_xdata().tolist() == [5, 20]
    assert picture.says == "3 points of 2 strategies, 2 of them on the frontier: Prompt 2"
    legend = picture.axes[0].get_legend()
    assert legend is not None and [text.get_text() for text in legend.get_texts()] == ["frontier", "Constant", "Prompt"]
