"""How a fleet moves, by hand-made walks; and the city's taxis, which are compared by it."""

import pandas as pd

from workbench.datasets import City, movement
from workbench.datasets.movement import summary


def test_steps_speeds_and_gaps_are_of_one_mobile_and_first_fixes_have_none():
    walk = pd.DataFrame({"mobile": [1, 1, 2, 2], "t": [0, 10, 0, 40], "x": [0.0, 30.0, 900.0, 900.0], "y": 0.0})
    found = movement(walk)
    assert found.step_m.tolist() == [30.0, 0.0]
    assert found.gap_s.tolist() == [10.0, 40.0]
    assert found.speed_mps.tolist() == [3.0, 0.0]


def test_the_favourite_square_has_the_largest_share():
    at = [0, 0, 5_000, 5_000, 0, 0, 9_000, 9_000]
    walk = pd.DataFrame({"mobile": 1, "t": [0, 400, 1_000, 1_400, 2_000, 2_400, 3_000, 3_400], "x": at, "y": 0.0})
    found = movement(walk.astype({"x": float}))
    assert found.dwell_s.tolist() == [400.0] * 4
    assert found.visit_share[:3].tolist() == [0.5, 0.25, 0.25]


def test_one_mobile_that_never_stops_says_nothing_of_visits():
    walk = pd.DataFrame({"mobile": 1, "t": [0, 10], "lon": [8.6, 8.7], "lat": 49.8})
    assert movement(walk).visit_share.sum() == 0
    assert summary({"walk": movement(walk)}).loc["dwell_s, median"].isna().all()


def test_taxis_stay_in_the_city_and_leave_everybody_else_as_they_were():
    without = City(seed=3, people=2, cars=1, tourists=0, buses=0, highway=0, interval_s=300)
    beside = City(seed=3, people=2, cars=1, tourists=0, buses=0, highway=0, interval_s=300, taxis=4)
    taxis = beside.truth()[lambda f: f["kind"] == "taxi"]
    assert taxis["mobile"].nunique() == 4
    assert taxis[["x", "y"]].to_numpy().min() >= 0 and taxis[["x", "y"]].to_numpy().max() <= beside.size_m
    assert {"drive", "waiting", "parked"} == set(taxis["activity"])
    others = beside.fixes()[lambda f: f["kind"] != "taxi"].reset_index(drop=True)
    pd.testing.assert_frame_equal(others, without.fixes())
