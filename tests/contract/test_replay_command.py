"""`workbench replay`: what it reads and writes, the same from every engine."""

import json
from contextlib import nullcontext
from pathlib import Path

import geopandas
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely

from tests.contract.commands import typed
from workbench.errors import DataError
from workbench.replay import replay

ENGINES = ["reference", "local", pytest.param("spark", marks=pytest.mark.spark)]
FIXES = pd.DataFrame({"mobile": [1, 1, 1, 2, 2], "t": [1, 2, 3, 1, 3], "x": [0.0, 100.0, 900.0, 50.0, 60.0], "y": 0.0})
PLACES = pd.DataFrame({"place": ["a", "b"], "x": [0.0, 100.0], "y": 0.0})
TIMELINES = [("a", 1, 1, 2, "unmatch"), ("a", 2, 1, None, None), ("b", 2, 1, None, None), ("b", 1, 2, 3, "unmatch")]
NOTIFICATIONS = [
    (1, "match", "a", 1),
    (1, "match", "a", 2),
    (1, "match", "b", 2),
    (2, "unmatch", "a", 1),
    (2, "match", "b", 1),
    (3, "unmatch", "b", 1),
]


@pytest.fixture
def engine(request):
    """An engine; Spark with the session of the run."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    return request.param


def replayed(tmp_path, engine: str, fixes: pd.DataFrame, *more: object) -> tuple[pa.Table, pa.Table]:
    """The two tables that the command wrote for proximity within 60 m."""
    fixes.to_parquet(tmp_path / "fixes.parquet", index=False)
    PLACES.to_csv(tmp_path / "places.csv", index=False)
    typed(
        "replay", "proximity", "--fixes", tmp_path / "fixes.parquet", "--places", tmp_path / "places.csv",
        "-p", "radius_m=60", "--engine", engine, "--out", tmp_path / "out", *more,
    )  # fmt: skip
    return tuple(pq.read_table(tmp_path / "out" / f"{name}.parquet") for name in ("timelines", "notifications"))


def rows(table: pa.Table) -> set[tuple]:
    return {tuple(row.values()) for row in table.to_pylist()}


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_integer_times_and_ids_keep_their_types_and_open_ends_are_null(tmp_path, engine):
    timelines, notifications = replayed(tmp_path, engine, FIXES)
    assert timelines.schema.names == ["publication", "subscription", "tau", "pi", "ended"]
    assert [str(c.type) for c in timelines.schema] == ["string", "int64", "int64", "int64", "string"]
    assert rows(timelines) == set(TIMELINES)
    assert notifications.schema.names == ["t", "kind", "publication", "subscription"]
    assert rows(notifications) == set(NOTIFICATIONS)
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert (metrics["timelines"], metrics["notifications"], metrics["parameters"]) == (4, 6, {"radius_m": 60})


@pytest.mark.parametrize("unit", ["ns", "us", "ms"])
@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_instants_come_back_as_instants_with_a_zone(tmp_path, engine, unit):
    start = pd.Timestamp("2026-03-29 00:59:59", tz="UTC")
    fixes = FIXES.assign(t=(start + pd.to_timedelta(FIXES["t"], "s")).astype(f"datetime64[{unit}, UTC]"))
    timelines, notifications = replayed(tmp_path, engine, fixes)
    for column in (timelines["tau"], timelines["pi"], notifications["t"]):
        assert pa.types.is_timestamp(column.type) and column.type.tz == "UTC"
    shown = timelines.to_pandas()
    seconds = ((shown[name] - start).dt.total_seconds() for name in ("tau", "pi"))
    told = zip(shown["publication"], shown["subscription"], *seconds, strict=True)
    assert {(p, s, tau, None if pd.isna(pi) else pi) for p, s, tau, pi in told} == {line[:4] for line in TIMELINES}


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_local_times_need_a_zone_and_are_instants_then(tmp_path, engine):
    fixes = FIXES.assign(t=pd.Timestamp("2026-03-29 12:00") + pd.to_timedelta(FIXES["t"], "s"))
    with pytest.raises(DataError, match="--zone"):
        replayed(tmp_path, engine, fixes)
    timelines, _ = replayed(tmp_path, engine, fixes, "--zone", "Europe/Berlin")
    assert timelines["tau"].to_pandas().min() == pd.Timestamp("2026-03-29 10:00:01", tz="UTC")


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_an_end_can_be_stated(tmp_path, engine):
    timelines, _ = replayed(tmp_path, engine, FIXES, "--until", 2)
    assert rows(timelines) == {*TIMELINES[:3], ("b", 1, 2, None, None)}


def test_what_one_engine_wrote_another_one_writes_over_wherever_one_stands(spark, tmp_path, monkeypatch):
    """Files of one engine and folders of the other; the JVM of Spark stays where it was started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORKBENCH_SCRATCH", ".")
    FIXES.to_parquet("fixes.parquet")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    for engine in ("spark", "local", "spark", "local"):
        done = replay("proximity", "fixes.parquet", PLACES, engine, {"radius_m": 60})
        assert done.save("out") == Path("out")
        assert rows(pq.read_table("out/timelines.parquet")) == set(TIMELINES)
        assert rows(pq.read_table("out/notifications.parquet")) == set(NOTIFICATIONS)
        assert Path("out/notes.txt").read_text() == "mine"
    left = {file.name for file in tmp_path.iterdir() if not file.name.startswith("workbench-replay-")}
    assert left == {"out", "fixes.parquet"}


def test_tables_of_two_replays_never_stand_together(tmp_path, monkeypatch):
    """The folder is renamed whole; where that is refused the old one is back."""
    out, rename = tmp_path / "out", Path.rename
    done = replay("proximity", FIXES, PLACES, parameters={"radius_m": 60})

    def files() -> set[int]:
        return {file.stat().st_ino for file in out.iterdir()} if out.exists() else set()

    def watched(source, target):
        seen.append(files())
        if refused and len(seen) == 2:
            raise OSError("refused")
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", watched)
    for refused in (False, True, False):
        before, seen = files(), []
        with pytest.raises(DataError, match="refused") if refused else nullcontext():
            done.save(out)
        assert all(some in (set(), before) for some in seen)
        assert files() == before if refused else not files() & before
        assert list(tmp_path.iterdir()) == [out]


def test_a_failure_leaves_nothing(tmp_path):
    with pytest.raises(DataError, match="infinite"):
        replayed(tmp_path, "local", FIXES.assign(x=float("inf")))
    assert not (tmp_path / "out").exists()


ZONE = geopandas.GeoDataFrame({"place": ["zone"]}, geometry=[shapely.box(8.55, 49.75, 8.65, 49.85)], crs=4326)
DRIVE = pd.DataFrame({"mobile": ["m"] * 3, "t": [1, 2, 3], "lon": [8.5, 8.6, 8.7], "lat": 49.8})
INSIDE = [("zone", "m", 2, 3, "unmatch")]


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
@pytest.mark.parametrize("suffix", ["geojson", "parquet", "gpkg"])
@pytest.mark.parametrize("crs", [4326, 32632])
def test_areas_are_brought_into_the_coordinates_of_the_fixes(tmp_path, engine, suffix, crs):
    file, zone = tmp_path / f"zone.{suffix}", ZONE.to_crs(crs)
    zone.to_parquet(file) if suffix == "parquet" else zone.to_file(file)
    timelines = replay("proximity", DRIVE, file, engine=engine).timelines
    shown = timelines.toPandas() if engine == "spark" else timelines
    assert list(shown.itertuples(index=False, name=None)) == INSIDE


def test_areas_in_degrees_never_meet_fixes_in_metres_silently():
    with pytest.raises(DataError, match="the geometry is in degrees"):
        replay("proximity", FIXES, ZONE)
    with pytest.raises(DataError, match="outside the globe"):
        replay("proximity", DRIVE, {"place": ["zone"], "geometry": ["POLYGON ((0 0, 900 0, 900 900, 0 0))"]})


def test_geojson_in_metres_meets_fixes_in_metres(tmp_path):
    area = shapely.box(90, -5, 110, 5).__geo_interface__
    feature = {"type": "Feature", "properties": {"place": "door"}, "geometry": area}
    (tmp_path / "door.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    timelines = replay("proximity", FIXES, tmp_path / "door.geojson").timelines
    assert list(timelines.itertuples(index=False, name=None)) == [("door", 1, 2, 3, "unmatch")]
