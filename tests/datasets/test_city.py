"""The synthetic city: the same whoever asks, and alive in the ways that the services need."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import shapely

from workbench.datasets import City, load, open_fixes, stop_table, stops
from workbench.datasets.city import TANK_L
from workbench.datasets.draws import normal, uniform
from workbench.errors import DataError

SMALL = City(seed=3, people=20, tourists=6, cars=40, buses=4, highway=30, interval_s=60)


@pytest.fixture(scope="module")
def truth() -> pd.DataFrame:
    return SMALL.truth()


@pytest.fixture(scope="module")
def fixes() -> pd.DataFrame:
    return SMALL.fixes()


def test_draws_are_functions_of_their_counters_and_well_spread():
    u = uniform(1, "x", np.arange(100_000))
    assert abs(u.mean() - 0.5) < 0.005
    assert abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 0.02
    assert (uniform(1, "x", np.arange(50, 60)) == u[50:60]).all()
    assert (uniform(2, "x", np.arange(10)) != u[:10]).all()
    assert (uniform(1, "y", np.arange(10)) != u[:10]).all()
    a, b = normal(1, "n", np.arange(100_000))
    assert abs(a.std() - 1) < 0.01
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.02


def test_a_city_is_the_same_in_any_chunk_and_any_bucket(truth, tmp_path, monkeypatch):
    some = ["p0000003", "c0000011", "b0000001", "h0000007"]
    part = SMALL.truth(some)
    expected = truth[truth["mobile"].isin(some)].reset_index(drop=True)
    pd.testing.assert_frame_equal(part, expected)
    monkeypatch.setattr("workbench.datasets.city.CHUNK_ROWS", 5_000)
    written = SMALL.write(tmp_path / "city", buckets=5)
    monkeypatch.undo()
    pd.testing.assert_frame_equal(written.to_pandas(), SMALL.fixes(), check_dtype=False)
    pd.testing.assert_frame_equal(open_fixes(tmp_path / "city" / "truth").to_pandas(), truth, check_dtype=False)


def test_spark_writes_the_same_city(spark, tmp_path):
    city = City(people=5, tourists=1, cars=3, buses=2, highway=4)
    here, there = (
        city.write(tmp_path / "here", buckets=3),
        city.write(tmp_path / "there", buckets=3, engine="spark", spark=spark),
    )
    assert here.manifest == there.manifest
    for left, right in zip(here.files, there.files, strict=True):
        assert pq.read_table(left).equals(pq.read_table(right))


def test_another_seed_is_another_city():
    one, two = (City(seed=s, people=2, tourists=0, cars=0, buses=0, highway=0) for s in (1, 2))
    assert (one.truth()["x"] != two.truth()["x"]).any()
    assert one == City(seed=1, people=2, tourists=0, cars=0, buses=0, highway=0)


def test_nobody_moves_faster_than_his_kind(truth):
    ordered = truth.sort_values(["mobile", "t"])
    same = ordered["mobile"].eq(ordered["mobile"].shift())
    speed = np.hypot(ordered["x"].diff(), ordered["y"].diff()) / ordered["t"].diff().dt.total_seconds()
    fastest = speed[same].groupby(ordered["kind"]).max()
    limits = {"person": 6.01, "tourist": 6.01, "car": 13.01, "bus": 7.01, "highway": 33.1}
    assert all(fastest[kind] <= limit for kind, limit in limits.items())
    assert all(fastest[kind] > limit / 4 for kind, limit in limits.items())


def test_people_commute_lunch_and_shop(truth):
    people = truth[truth["kind"] == "person"]
    hour = people["t"].dt.hour
    assert people.loc[hour == 3, "activity"].eq("home").all()
    assert people.loc[hour == 10, "activity"].eq("work").mean() > 0.8
    assert people.loc[hour.isin([12, 13]), "activity"].eq("lunch").mean() > 0.2
    assert {"shop", "coffee"} <= set(people["activity"])
    assert people.groupby("mobile")["x"].agg(lambda x: x.iloc[0] == x.iloc[-1]).all()


def test_fuel_falls_with_the_way_and_is_refilled_below_the_drivers_level(truth):
    cars = truth[truth["kind"] == "car"]
    change = cars.groupby("mobile")["fuel_l"].diff()
    refilled = change > 0.005
    assert refilled.any()
    assert (cars["fuel_l"] > 0).all()
    assert (cars["fuel_l"] <= TANK_L).all()
    first = refilled & ~refilled.shift(fill_value=False)
    assert (cars["fuel_l"].shift()[first] <= cars["refuel_level_l"][first] + 0.01).all()
    still = (cars[["mobile", "x", "y"]] == cars[["mobile", "x", "y"]].shift()).all(axis=1)
    parked = cars["activity"].eq("parked") & still
    assert (change[parked] == 0).all()
    stations = SMALL.places().query("category == 'fuel'")[["x", "y"]].to_numpy()
    pump = cars[cars["activity"] == "refuel"][["x", "y"]].to_numpy()
    assert len(pump)
    assert (np.hypot(*(pump[:, None] - stations[None]).transpose(2, 0, 1)).min(1) < 0.02).all()


def test_who_moves_is_on_a_street(truth):
    cars = truth[(truth["kind"] == "car") & (truth["activity"] == "drive")]
    lines = shapely.union_all(SMALL.streets().geometry.to_numpy())
    away = shapely.distance(lines, shapely.points(cars["x"], cars["y"]))
    assert away.max() < 45  # from the street to a door
    assert np.median(away) < 0.02


def test_tourists_walk_through_the_rooms(truth):
    at = truth[(truth["kind"] == "tourist") & (truth["activity"] == "museum")]
    rooms = shapely.union_all(SMALL.rooms().geometry.to_numpy())
    assert shapely.intersects_xy(rooms, at["x"], at["y"]).all()
    assert len(SMALL.rooms()) == 18


def test_the_jam_builds_and_clears():
    city = City(people=0, tourists=0, cars=0, buses=0, highway=400)
    passed = city.truth().groupby("mobile")["t"].agg(["min", "max"])
    lasts = (passed["max"] - passed["min"]).dt.total_seconds().groupby(passed["min"].dt.hour).median()
    assert lasts[8] > 1.5 * lasts[6]
    assert lasts[11] < 1.1 * lasts[6]
    sensors = city.places().query("category == 'sensor'")
    assert sensors["name"].tolist() == ["A", "B"]


def test_fuel_prices_change_in_the_day():
    prices = SMALL.places().query("place == 'fuel-000'")
    assert len(prices) == 7
    assert prices["t"].isna().tolist() == [True] + [False] * 6
    assert prices["op"].tolist()[1:] == ["update"] * 6
    assert prices["price"].nunique() > 3


def test_noise_gaps_and_outages_are_what_was_asked_for(truth, fixes):
    both = truth.merge(fixes, on=["mobile", "t"], suffixes=("", "_seen"))
    assert len(both) == len(fixes)  # nothing is seen that did not happen
    off = np.concatenate([both["x_seen"] - both["x"], both["y_seen"] - both["y"]])
    assert abs(off.std() - SMALL.noise_m) < 0.1
    lost = 1 - len(fixes) / len(truth)
    assert 0.01 < lost < 0.05
    quiet = replace(SMALL, noise_m=0, gap_share=0, outages=0)
    pd.testing.assert_frame_equal(quiet.fixes(), quiet.truth().drop(columns="activity"))


def test_stops_are_found_in_what_a_receiver_saw(fixes):
    people = fixes[fixes["kind"] == "person"]
    found = stop_table(stops(people, max_diameter_m=100, min_duration_s=900))
    assert found.groupby("mobile").size().between(2, 9).all()


def test_longitude_and_latitude_or_whole_seconds_on_demand():
    city = City(people=2, tourists=0, cars=0, buses=0, highway=0, origin=(8.65, 49.87), start=None, days=2)
    table = city.fixes()
    assert table["t"].dtype == np.int64
    assert table["t"].max() < 2 * 86_400
    assert table["lon"].between(8.6, 8.7).all()
    assert {"lon", "lat"} <= set(city.places().columns)
    assert city.rooms().crs.to_epsg() == 4326


def test_a_city_passes_its_own_gate():
    report = load(SMALL.fixes()).attrs["report"]
    assert report["set_aside"] == report["collapsed"] == report["out_of_order"] == 0


def test_parameters_without_meaning_are_all_named():
    with pytest.raises(DataError, match=r"(?s)2 faults.*cars=-1.*gap_share=2"):
        City(cars=-1, gap_share=2)
