"""The figures of a service on histories that can be counted by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.model.worlds import played
from workbench.measures import accuracy, figures, user_hours

CAFE = "place x y\ncafe 0 0"
TRUE = "mobile t x y\nann 0 900 0\nann 100 0 0\nann 200 900 0\nann 300 0 0\nann 400 900 0\nbob 0 0 0\nbob 400 0 0"


def test_what_overlaps_is_right_and_caught_and_the_delay_is_to_the_first() -> None:
    """ann is near in [100, 200) and [300, 400), bob always.

    Heard: ann in [120, 150) and [160, 190), two pieces of the first, 20 s late, and in [220, 240), where she was not;
    bob not at all.
    """
    heard = played(
        "proximity",
        """
        mobile t   x   y
        ann    0   900 0
        ann    120 0   0
        ann    150 900 0
        ann    160 0   0
        ann    190 900 0
        ann    220 0   0
        ann    240 900 0
        bob    0   900 0
        bob    400 900 0
        """,
        CAFE,
    )
    said = accuracy(heard, played("proximity", TRUE, CAFE))
    assert said == {"precision": pytest.approx(2 / 3), "recall": pytest.approx(1 / 3), "mean_delay_s": 20.0}


def test_what_goes_on_overlaps_what_goes_on_and_early_is_not_late() -> None:
    always, later = "mobile t x y\nann 1 0 0\nann 9 0 0", "mobile t x y\nann 1 900 0\nann 5 0 0\nann 9 0 0"
    first, second = (played("proximity", fixes, CAFE) for fixes in (always, later))
    assert accuracy(first, second) == {"precision": 1.0, "recall": 1.0, "mean_delay_s": 0.0}
    assert accuracy(second, first) == {"precision": 1.0, "recall": 1.0, "mean_delay_s": 4.0}


def test_of_nothing_there_is_no_share() -> None:
    nobody = played("proximity", "mobile t x y\nann 1 900 0\nann 9 900 0", CAFE)
    assert accuracy(nobody, nobody) == {"precision": None, "recall": None, "mean_delay_s": None}
    assert figures(nobody, nobody)["notifications"] == 0


def test_a_delay_of_timestamps_is_in_seconds() -> None:
    t = pd.to_datetime(["2026-03-02T07:00:00Z", "2026-03-02T07:01:30Z", "2026-03-02T08:00:00Z"])
    true = pd.DataFrame({"mobile": "ann", "t": t, "x": [0.0, 0.0, 900.0], "y": 0.0})
    heard = true.assign(x=[900.0, 0.0, 900.0])
    made, was = (played("proximity", fixes, CAFE) for fixes in (heard, true))
    assert accuracy(made, was)["mean_delay_s"] == 90.0
    assert user_hours(made) == 1.0


def test_users_are_those_who_are_told() -> None:
    """Two mobiles over one hour and a half hour; of a dispatch the two sites are told, for the hour of the data."""
    fixes = "mobile t x y\na 0 0 0\na 3600 0 0\nb 0 5 0\nb 1800 5 0"
    assert user_hours(played("proximity", fixes, CAFE)) == 1.5
    assert user_hours(played("dispatch", fixes, "place x y\nnorth 0 9\nsouth 0 -9")) == 2.0
    players = "mobile t x y team\na 0 0 0 red\na 3600 0 0 red"
    assert user_hours(played("game", players, CAFE)) == 1.0
