"""Trips, stops, resampling and clipping, against the answers of MovingPandas where both mean the same."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from workbench.datasets import ingest
from workbench.datasets.preparing import clip, prepare, resample, stop_table, stops, trips
from workbench.errors import DataError

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "oracles" / "movingpandas_clip_stop_cases.json"
CASES = json.loads(SHARED.read_text()) if SHARED.is_file() else {"clip": [], "stops": {"cases": []}}


def track(rows) -> pd.DataFrame:
    x, y, t = zip(*rows, strict=True)
    when = pd.to_datetime(np.array(t, float) * 1e6, unit="us", utc=True).astype("datetime64[us, UTC]")
    return pd.DataFrame({"mobile": 1, "t": when, "x": np.array(x, float), "y": np.array(y, float)})


def pieces(table: pd.DataFrame) -> list[list[list[float]]]:
    seconds = table["t"].astype("int64") / 1e6
    rows = np.stack([table["x"], table["y"], seconds], 1).round(9)
    return [rows[(table["visit"] == v).to_numpy()].tolist() for v in sorted(table["visit"].unique())]


@pytest.mark.parametrize("case", CASES["clip"], ids=lambda case: case["name"])
def test_clips_agree_with_moving_pandas(case):
    area = shapely.Polygon(case["ring"])
    by_fixes = "fixes only" in case.get("mode", "")
    found = pieces(clip(track(case["fixes"]), area, interpolate=not by_fixes))
    if "expected_line" in case:
        assert [[x, y] for x, y, _ in found[0]] == case["expected_line"]
        assert (found[0][0][2], found[0][-1][2]) == (44662.5, case["expected_end_s"])
        return
    if by_fixes:  # MovingPandas has no trajectory of one fix; we keep it
        found = [piece for piece in found if len(piece) > 1]
    assert found == case["expected"]


@pytest.mark.parametrize("case", CASES["stops"]["cases"], ids=lambda case: case["name"])
def test_stops_agree_with_moving_pandas(case):
    limits = case.get("params", CASES["stops"].get("params"))
    table = stop_table(stops(track(case["fixes"]), limits["max_diameter"], limits["min_duration_s"]))
    seconds = (table[["t", "until"]].astype("int64") / 1e6).values.tolist()
    assert seconds == case["expected_ranges_s"]
    if "expected_point" in case:
        assert table[["x", "y"]].values.tolist() == [case["expected_point"]]
        assert table["duration_s"].tolist() == [case["expected_duration_s"]]


def test_a_stop_on_the_globe_is_measured_in_metres():
    east = np.arange(6) * 20 / (111_195 * np.cos(np.radians(60)))
    table = pd.DataFrame({"mobile": "a", "t": range(0, 600, 100), "lon": 10 + east, "lat": 60.0})
    assert stops(table, 105, 500)["stop"].notna().all()
    assert stops(table, 95, 500)["stop"].isna().all()


def test_trips_end_at_gaps_jumps_and_stops():
    table = pd.DataFrame(
        {
            "mobile": ["a"] * 6 + ["b"],
            "t": [0, 10, 20, 900, 910, 920, 0],
            "x": [0.0, 1, 500, 501, 502, 503, 0],
            "y": 0.0,
        }
    )
    assert trips(table, 60)["trip"].tolist() == [1, 1, 1, 2, 2, 2, 1]
    assert trips(table, 60, max_jump_m=100)["trip"].tolist() == [1, 1, 2, 3, 3, 3, 1]
    still = table.assign(stop=pd.array([None, 1, 1, None, None, None, None], "Int64"))
    assert trips(still, 1e9)["trip"].isna().tolist() == [False, True, True, False, False, False, False]
    assert trips(still, 1e9)["trip"].dropna().tolist() == [1, 2, 2, 2, 1]


tracks = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 200), st.integers(-50, 50)), min_size=1, max_size=40)


def frame_of(rows) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["mobile", "t", "x"]).drop_duplicates(["mobile", "t"])
    return table.assign(x=table["x"].astype(float), y=0.0).sort_values(["mobile", "t"], ignore_index=True)


@given(tracks, st.integers(1, 30))
def test_a_resampled_step_function_has_the_last_known_value_at_every_multiple(rows, every):
    table = frame_of(rows)
    found = {(r.mobile, r.t): r.x for r in resample(table, every).itertuples()}
    expected = {}
    for mobile, group in table.groupby("mobile"):
        for t in range(-(-group["t"].min() // every) * every, group["t"].max() + 1, every):
            expected[mobile, t] = group.loc[group["t"] <= t, "x"].iloc[-1]
    assert found == expected


@given(tracks, st.integers(-40, 40), st.integers(1, 40))
def test_clipping_to_an_area_keeps_the_fixes_inside_and_numbers_the_visits(rows, low, width):
    table = frame_of(rows)
    kept = clip(table, shapely.box(low, -1, low + width, 1))
    inside = table["x"].between(low, low + width)
    pd.testing.assert_frame_equal(kept.drop(columns="visit"), table[inside].reset_index(drop=True))
    runs = (inside & ~(inside.groupby(table["mobile"]).shift(fill_value=False))).groupby(table["mobile"]).cumsum()
    assert kept["visit"].tolist() == runs[inside].tolist()


@given(tracks)
def test_the_order_of_the_rows_does_not_matter(rows):
    table = frame_of(rows)
    shuffled = table.sample(frac=1, random_state=1)
    for step in (
        partial(trips, max_gap_s=20),
        partial(stops, max_diameter_m=9, min_duration_s=5),
        partial(resample, interval_s=7),
    ):
        pd.testing.assert_frame_equal(step(table), step(shuffled))


def test_linear_resampling_leaves_gaps_open():
    table = pd.DataFrame({"mobile": 1, "t": [0, 10, 100], "x": [0.0, 10.0, 100.0], "y": 0.0})
    found = resample(table, 5, how="linear", max_gap_s=20)
    assert found[["t", "x"]].values.tolist() == [[0, 0], [5, 5], [10, 10], [100, 100]]


def test_clipping_by_time_needs_a_zone_for_timestamps():
    table = track([(0, 0, 0), (1, 0, 10), (2, 0, 20)])
    assert clip(table, start="1970-01-01T00:00:10Z")["x"].tolist() == [1, 2]
    assert clip(table, end="1970-01-01T00:00:10Z")["x"].tolist() == [0, 1]
    with pytest.raises(DataError, match="local time without a zone"):
        clip(table, start="1970-01-01 00:00:10")


def some_fixes(tmp_path):
    random = np.random.default_rng(0)
    n = 3_000
    table = pd.DataFrame(
        {"mobile": random.integers(0, 30, n), "t": random.integers(0, 5_000, n), "x": random.random(n) * 99, "y": 0.0}
    )
    return ingest(table.drop_duplicates(["mobile", "t"]), tmp_path / "in", buckets=4)


STEPS = (
    partial(stops, max_diameter_m=80, min_duration_s=30),
    partial(trips, max_gap_s=60),
    partial(clip, area=shapely.box(10, -1, 90, 1)),
)


def test_a_chain_of_steps_on_buckets_is_the_chain_on_the_whole(tmp_path):
    fixes = some_fixes(tmp_path)
    made = prepare(fixes, tmp_path / "out", *STEPS)
    whole = fixes.to_pandas()
    for step in STEPS:
        whole = step(whole)
    pd.testing.assert_frame_equal(made.to_pandas(), whole, check_dtype=False)
    assert made.manifest["source"]["steps"] == "stops, trips, clip"
    with pytest.raises(DataError, match="left no fixes"):
        prepare(fixes, tmp_path / "none", partial(clip, start=10**9))


def test_preparing_on_spark_gives_the_same_data_set(spark, tmp_path):
    fixes = some_fixes(tmp_path)
    here = prepare(fixes, tmp_path / "here", *STEPS)
    there = prepare(fixes, tmp_path / "there", *STEPS, engine="spark", spark=spark)
    assert here.to_arrow().equals(there.to_arrow())
    assert here.manifest == there.manifest
