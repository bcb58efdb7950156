"""Real files load with the exact counts that an independent tool found (../shared/data/EXPECTED.md)."""

from pathlib import Path

import pandas as pd
import pytest

from workbench.datasets import ingest
from workbench.datasets.formats import porto, tollgates
from workbench.datasets.formats.detectors import readings

PEDESTRIANS = {"columns": {"mobile": "scene+ped"}, "tick_s": 0.01}
SMALL = {"columns": {"mobile": "trajectory_id", "lon": "X", "lat": "Y"}}

# file, guessed format, options, rows, kept, collapsed, reasons, mobiles kept
FILES = [
    ("sf_cabs/cabspotting_10cabs.zip", "cabspotting", {}, 186_763, 186_763, 0, {}, 10),
    ("sf_cabs/sf_cabs_77.csv.gz", "csv", {}, 1_573_696, 1_573_696, 0, {}, 77),
    ("geolife/geolife_user000.zip", "geolife", {}, 173_870, 173_870, 0, {}, 1),
    ("geolife/geolife_8users.csv.gz", "csv", {}, 1_729_490, 1_727_794, 1_686, {"conflicting (mobile, t)": 10}, 8),
    ("geolife/movingpandas_geolife_small.csv", "csv", SMALL, 5_908, 5_908, 0, {}, 5),
    (
        "tdrive/tdrive_8643taxis_20080202_16h.csv.gz",
        "tdrive",
        {},
        151_007,
        150_690,
        0,
        {"zero coordinate": 271, "conflicting (mobile, t)": 46},
        8_608,
    ),
    ("porto/train.1k.csv", "porto", {}, 47_304, 47_304, 0, {}, 308),
    (
        "kdd2017/trajectories_training2.csv",
        "kdd2017",
        {},
        72_491,
        71_020,
        0,
        {"conflicting (mobile, t)": 226, "superseded at one instant": 1_245},
        8_855,
    ),
    ("metr_la/los_speed_week_2012-03-01.csv", "metr-la", {}, 2_016 * 207, 2_016 * 207, 0, {}, 207),
    ("ais/ais_instants_20210108.csv", "csv", {}, 10_000, 10_000, 0, {}, 5),
    ("pedestrians/eth_ucy_pedestrians.csv", "csv", PEDESTRIANS, 51_859, 51_859, 0, {}, 1_530),
]


@pytest.mark.parametrize(("file", "form", "options", "rows", "kept", "collapsed", "reasons", "mobiles"), FILES)
def test_a_real_file_loads_with_its_exact_counts(
    shared_data: Path, tmp_path, file, form, options, rows, kept, collapsed, reasons, mobiles
):
    fixes = ingest(shared_data / file, tmp_path / "out", **options)
    report = fixes.report
    assert fixes.manifest["source"]["format"] == form
    assert any("was guessed" in note for note in report.notes)
    assert (report.rows, report.kept, report.collapsed, dict(report.aside)) == (rows, kept, collapsed, reasons)
    assert (fixes.rows, fixes.mobiles) == (kept, mobiles)


def test_the_77_cabs_keep_their_times_and_passengers(shared_data, tmp_path):
    fixes = ingest(shared_data / "sf_cabs/sf_cabs_77.csv.gz", tmp_path / "out")
    assert fixes.manifest["time"] | {} == {"type": "int64", "first": 1211018404, "last": 1213089596, "tick_s": 1.0}
    assert sum(fixes.to_arrow(["occupied"])["occupied"].to_pylist()) == 702_969


def test_the_taxis_of_beijing_are_all_found_and_their_times_are_utc(shared_data, tmp_path):
    fixes = ingest(shared_data / "tdrive/tdrive_8643taxis_20080202_16h.csv.gz", tmp_path / "out")
    taxis = set(fixes.to_arrow(["mobile"])["mobile"].to_pylist()) | set(fixes.aside()["mobile"].to_pylist())
    assert len(taxis) == 8_643
    assert fixes.manifest["time"]["first"] == "2008-02-02T08:00:00+00:00"
    assert any("Asia/Shanghai" in note for note in fixes.report.notes)


def test_geolife_keeps_its_trajectories_and_knows_unknown_altitudes(shared_data, tmp_path):
    table = ingest(shared_data / "geolife/geolife_user000.zip", tmp_path / "out").to_pandas()
    assert table["trajectory"].nunique() == 171
    assert set(table["mobile"]) == {"000"}
    first = table.sort_values("t").iloc[0]
    assert (first["lat"], first["lon"], round(first["alt_m"], 4)) == (39.984702, 116.318417, 149.9616)
    assert not (table["alt_m"] == -777 * 0.3048).any()


def test_porto_trips_and_taxis_without_points_are_told(shared_data):
    trips = porto.trips(shared_data / "porto/train.1k.csv")
    assert (len(trips), trips["mobile"].nunique(), trips["points"].sum()) == (999, 309, 47_304)


def test_toll_gate_passages_are_all_there(shared_data):
    path = shared_data / "kdd2017/trajectories_training2.csv"
    passages = tollgates.passages(path)
    assert (len(passages), passages["mobile"].nunique(), passages["trip"].nunique()) == (72_491, 8_864, 10_136)
    links, routes = tollgates.road(
        shared_data / "kdd2017/links_table_3.csv", shared_data / "kdd2017/routes_table_4.csv"
    )
    assert (len(links), len(routes)) == (24, 6)
    assert set(passages["link"]) <= set(links["link"])


def test_the_published_mean_travel_times_come_out_to_two_decimals(shared_data):
    means = tollgates.mean_travel_times(tollgates.trips(shared_data / "kdd2017/trajectories_training2.csv"))
    published = pd.read_csv(
        shared_data / "kdd2017/expected_training2_20min_avg_travel_time.csv", dtype={"tollgate_id": str}
    )
    window = pd.to_datetime(published["time_window"].str.slice(1, 20))
    keys = zip(published["intersection_id"], published["tollgate_id"], window, strict=True)
    expected = dict(zip(keys, published["avg_travel_time"], strict=True))
    found = {tuple(row[:3]): row[3] for row in means.itertuples(index=False)}
    assert len(found) == 2_168
    assert found == expected


def test_detectors_are_updates_of_places(shared_data):
    table = readings(shared_data / "metr_la/los_speed_week_2012-03-01.csv")
    assert (table["place"].nunique(), table["t"].nunique(), len(table)) == (207, 2_016, 207 * 2_016)
    assert set(table["op"]) == {"update"}
    assert table["t"].min() == pd.Timestamp("2012-03-01 00:00", tz="America/Los_Angeles")


def test_detectors_find_their_locations_in_the_same_folder(shared_data, tmp_path):
    fixes = ingest(shared_data / "metr_la", tmp_path / "out")
    assert fixes.manifest["source"]["format"] == "metr-la"
    assert fixes.schema.names[:4] == ["mobile", "t", "lon", "lat"]
    assert fixes.report.set_aside == 0
