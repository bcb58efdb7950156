"""Every built-in scenario gives the same tables on every engine, and live."""

from __future__ import annotations

from random import Random

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from tests.conformance.living import lived, notified
from tests.conformance.packing import replayed_together
from tests.conformance.strategies import Case
from workbench.replay import replay
from workbench.scenarios import BUILT_IN, named

ROOMS = "POLYGON ((300 0, 600 0, 600 300, 300 300, 300 0))", "POLYGON ((600 0, 700 0, 700 900, 600 900, 600 0))"
SMALL = {
    "proximity": {"radius_m": 300},
    "coffee": {"radius_m": 400, "pause_h": 0.01, "door_m": 100},
    "advertising": {"radius_m": 400, "pause_h": 0.01, "door_m": 100, "max_age": 40},
    "fuel": {"radius_m": 400},
    "traffic": {"section_start_m": 300, "section_end_m": 700, "slow_min": 0.25, "cars": 2},
    "dispatch": {"radius_m": 600, "units": 2},
    "friends": {"near_m": 200, "far_m": 300},
    "callers": {"at_most_m": 700},
    "game": {"catch_m": 300, "hold_s": 20, "refuge_m": 100},
    "tourists": {"dwell_min": 0.25, "again_h": 0.01},
}
"""parameters with which pairs begin and cease to match in the small world below"""


@pytest.fixture(scope="module")
def world() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Four mobiles on a grid of 100 m with every attribute that some scenario reads, places, and places as areas."""
    draw = Random(11)
    rows = []
    for mobile in "abcd":
        x, y = draw.randrange(11) * 100.0, draw.randrange(11) * 100.0
        for t in range(draw.randrange(1, 9), 130, 9):
            x, y = (min(1000.0, max(0.0, v + draw.choice([-200.0, -100.0, 0.0, 100.0, 200.0]))) for v in (x, y))
            state, status = draw.choice(["quiet", "calling"]), draw.choice(["free", "busy"])
            fuel, wish = float(draw.choice([10, 15, 50, 90])), draw.choice(["coffee", "tea"])
            rows.append((mobile, t, x, y, fuel, wish, state, status))
    names = ["mobile", "t", "x", "y", "fuel", "wish", "state", "status"]
    profiles = {"a": (20, "red"), "b": (30, "blue"), "c": (40, "red"), "d": (50, "blue")}
    fixes = pd.DataFrame(rows, columns=names)
    fixes["age"], fixes["team"] = ([profiles[mobile][n] for mobile in fixes.mobile] for n in (0, 1))
    fixes["hunts"] = fixes.team.map({"red": "blue", "blue": "red"})
    fixes["adverts"] = fixes.mobile != "b"
    sites = [(f"s{n}", draw.randrange(11) * 100.0, draw.randrange(11) * 100.0) for n in range(4)]
    places = pd.DataFrame(sites, columns=["place", "x", "y"]).assign(
        category=["coffee", "coffee", "tea", "coffee"], price=[60.0, 65.0, 70.0, 75.0]
    )
    return fixes, places, pd.DataFrame({"place": ["glass", "masks"], "geometry": list(ROOMS)})


def case_of(name: str, world: tuple[pd.DataFrame, ...]) -> Case:
    fixes, places, rooms = world
    given = {"traffic": None, "friends": None, "tourists": rooms}.get(name, places)
    if "pause_h" in SMALL[name]:  # looks back at any shop: the reference asks for every one at every instant
        fixes = fixes[fixes.t < 80]
    return Case(named(name)(**SMALL[name]), fixes, given, int(fixes.t.max()))


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_local_and_live_say_what_the_reference_says(name: str, world: tuple[pd.DataFrame, ...]) -> None:
    case = case_of(name, world)
    made, fixes, given = case.scenario, case.fixes, case.places
    judge = replay(made, fixes, given, engine="reference")
    assert set(judge.notifications["kind"]) == {"match", "unmatch"}
    said = replay(made, fixes, given, engine="local")
    assert_frame_equal(said.timelines, judge.timelines, check_exact=True)
    assert_frame_equal(said.notifications, judge.notifications, check_exact=True)
    broker, _ = lived(case)
    assert notified(broker.notifications) == notified(judge.notifications)


def rows_of(timelines: pd.DataFrame) -> list[tuple[object, ...]]:
    listed = timelines.astype(object).itertuples(index=False, name=None)
    return sorted((tuple(None if pd.isna(cell) else cell for cell in row) for row in listed), key=repr)


@pytest.mark.spark
@pytest.mark.timeout(900)  # it may be the first one on a machine, where workers compile their kernels
def test_spark_says_what_the_local_engine_says(spark: object, world: tuple[pd.DataFrame, ...]) -> None:
    names = sorted(BUILT_IN)
    cases = [case_of(name, world) for name in names]
    for name, made, (done, timelines) in zip(names, cases, replayed_together(cases), strict=True):
        said = replay(made.scenario, made.fixes, made.places, engine="local")
        assert rows_of(timelines) == rows_of(said.timelines), name
        for counted in ("matches", "unmatches", "rows_in", "rows_collapsed", "rows_set_aside"):
            assert done.metrics[counted] == said.metrics[counted], (name, counted)


def test_every_built_in_scenario_is_in_the_table() -> None:
    assert SMALL.keys() == BUILT_IN.keys()
