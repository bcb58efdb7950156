"""What others write that is neither comma-separated nor of the commonest types, on every engine."""

import datetime as dt
import uuid

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conformance.packing import replayed_together
from tests.conformance.strategies import Case
from workbench import replay
from workbench.datasets import bucket_of
from workbench.engines import spark as spark_engine
from workbench.errors import DataError
from workbench.scenarios import named
from workbench.tables import load

FIXES = pd.DataFrame({"mobile": [1, 1, 2], "t": [1, 3, 2], "lon": [8.6, 9.0, 8.6], "lat": [50.0, 50.0, 50.0]})
PLACES = pd.DataFrame({"place": ["a"], "lon": [8.6], "lat": [50.0], "name": ["x; y"]})
FOUND = [("a", 1, 1, 3, "unmatch"), ("a", 2, 2, None, None)]


def told(fixes=FIXES, places=PLACES, engines=("reference", "local")) -> list[tuple]:
    found = [load(replay("proximity", fixes, places, engine).timelines) for engine in engines]
    rows = [
        sorted(one.astype(object).where(one.notna(), None).itertuples(index=False, name=None), key=str)
        for one in found
    ]
    assert all(one == rows[0] for one in rows)
    return rows[0]


@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
@pytest.mark.parametrize("written", [{}, {"quoting": 1}, {"lineterminator": "\r\n"}, {"encoding": "utf-8-sig"}])
def test_what_separates_the_columns_of_a_csv_is_found(tmp_path, separator, written):
    FIXES.to_csv(tmp_path / "fixes.csv", sep=separator, index=False, **written)
    PLACES.to_csv(tmp_path / "places.csv", sep=separator, index=False, **written)
    assert told(tmp_path / "fixes.csv", tmp_path / "places.csv") == FOUND


def test_spaces_after_the_separator_are_no_part_of_names_and_cells(tmp_path):
    for name, table in (("fixes", FIXES), ("places", PLACES)):
        lines = [", ".join(map(str, row)) for row in [table.columns, *table.itertuples(index=False)]]
        (tmp_path / f"{name}.csv").write_text("\n".join(lines))
    assert told(tmp_path / "fixes.csv", tmp_path / "places.csv") == FOUND


def test_decimal_commas_are_read_where_commas_separate_nothing(tmp_path):
    FIXES.to_csv(tmp_path / "fixes.csv", sep=";", decimal=",", index=False)
    assert told(tmp_path / "fixes.csv") == FOUND


IDS = {
    "decimals": ([0.5, 0.5, 1.0], [0.5, 1.0]),
    "UUIDs": ([uuid.UUID(int=5)] * 2 + [uuid.UUID(int=6)], [str(uuid.UUID(int=n)) for n in (5, 6)]),
    "bytes": ([b"\x05", b"\x05", b"\x06"], ["05", "06"]),
    "days": (pd.to_datetime(["2026-01-01"] * 2 + ["2026-01-02"]), ["2026-01-01 00:00:00", "2026-01-02 00:00:00"]),
    "8 bits": (np.array([5, 5, 6], np.int8), [5, 6]),
    "64 bits without a sign": (np.array([5, 5, 2**63], np.uint64), ["5", str(2**63)]),
    "small ones without a sign": (np.array([5, 5, 6], np.uint64), [5, 6]),
    "truth values": ([False, False, True], [False, True]),
}


@pytest.mark.parametrize("kind", IDS)
def test_ids_of_any_type_come_out_as_numbers_or_text(kind):
    given, expected = IDS[kind]
    assert [row[1] for row in told(FIXES.assign(mobile=given))] == expected


@pytest.mark.parametrize("kind", ["int8", "int32", "uint64", "float64", "Int64", "str"])
def test_whole_numbers_of_any_type_are_times(tmp_path, kind):
    FIXES.assign(t=FIXES["t"].astype(kind)).to_parquet(tmp_path / "fixes.parquet")
    assert told(tmp_path / "fixes.parquet") == FOUND


def test_decimal_ids_and_updates_of_nothing_are_the_same_on_spark(spark, tmp_path):
    """Each task meets the places' rows; what they say in vain is counted once."""
    many = pd.DataFrame({"mobile": np.arange(50) + 0.5, "t": 2, "lon": 8.6, "lat": 50.0})
    pq.write_table(pa.Table.from_pandas(many), tmp_path / "fixes.parquet")
    places = {"place": ["a", "b", "c"], "t": [1, 1, 1], "op": ["add", "update", "remove"]}
    places = pd.DataFrame(places).assign(lon=8.6, lat=50.0)
    found = [replay("proximity", tmp_path / "fixes.parquet", places, engine) for engine in ("spark", "local")]
    there, here = (load(one.timelines).sort_values("subscription", ignore_index=True) for one in found)
    assert there.astype(str).equals(here.sort_values("subscription", ignore_index=True).astype(str))
    assert there["subscription"].dtype == "float64"
    assert [one.metrics["rows_set_aside"] for one in found] == [2, 2]


@pytest.mark.parametrize("kind", IDS)
def test_the_rows_of_a_mobile_are_found_in_files_whatever_its_id(tmp_path, kind):
    given, (first, last) = IDS[kind]
    columns = FIXES.assign(mobile=given).items()
    pq.write_table(pa.table({name: pa.array(column) for name, column in columns}), tmp_path / "fixes.parquet")
    source = spark_engine.raw(tmp_path / "fixes.parquet", bucket_of)
    assert [len(spark_engine.rows_of(source, [id])) for id in (first, last)] == [2, 1]


INSTANTS = {
    "numbers as text": ["2", "9", "10"],
    "offsets": ["2026-01-01T00:30:00+02:00", "2025-12-31T23:30:00+00:00", "2026-01-01T00:45:00+01:00"],
    "days": [dt.date(2026, 1, 1), dt.date(2026, 1, 3), dt.date(2026, 1, 2)],
}


def test_ids_and_times_of_any_type_are_the_same_on_spark(spark, tmp_path):
    """From pandas and from Parquet as others write it, whose statistics put text in the order of its signs."""
    near, friends = named("proximity")(250), named("friends")()
    given = [(near, FIXES.assign(mobile=ids)) for ids, _ in IDS.values()]
    given += [(near, FIXES.assign(t=FIXES["t"].astype(kind))) for kind in ("uint64", "float64")]
    given += [(near, FIXES.assign(mobile=["a", "a", "b"], op=[None, "update", None]))]
    given += [(near, FIXES.assign(mobile=[1, 2, 1], t=t)) for t in INSTANTS.values()]
    for number, (_, fixes) in enumerate(given[:]):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({name: pa.array(column) for name, column in fixes.items()}), path, row_group_size=2)
        given.append(((near, friends)[number % 2], path))
    given.append((near, spark.createDataFrame(FIXES.assign(mobile=[1, 2, 1], t=INSTANTS["offsets"]))))
    cases = [Case(scenario, fixes, PLACES if scenario is near else None, None) for scenario, fixes in given]
    for case, (there, timelines) in zip(cases, replayed_together(cases, zone="UTC"), strict=True):
        here = replay(case.scenario, case.fixes, case.places, zone="UTC")
        assert in_order(timelines) == in_order(here.timelines)
        for said in ("until", "timelines", "rows_in"):
            assert there.metrics[said] == here.metrics[said]
    assert dict(replay(near, given[7][1], PLACES, "spark").timelines.dtypes)["subscription"] == "boolean"


def in_order(timelines: pd.DataFrame) -> list[tuple]:
    rows = timelines.astype(object).where(timelines.notna(), None).itertuples(index=False, name=None)
    return sorted(rows, key=str)


@pytest.mark.parametrize("suffix", [".CSV", ".tsv", ".txt", ".csv.gz", ".pq", ".PARQUET"])
def test_files_are_known_by_their_usual_names(tmp_path, suffix):
    file = tmp_path / f"fixes{suffix}"
    FIXES.to_csv(file, index=False) if suffix[1] in "Cct" else FIXES.to_parquet(file)
    assert told(file) == FOUND


def test_geojson_without_features_is_no_place_and_one_that_is_none_is_named(tmp_path):
    (tmp_path / "none.geojson").write_text('{"type": "FeatureCollection", "features": []}')
    assert told(FIXES, tmp_path / "none.geojson") == []
    (tmp_path / "bad.geojson").write_text("mobile,t\n")
    with pytest.raises(DataError, match=r"places: .*bad\.geojson' cannot be read"):
        told(FIXES, tmp_path / "bad.geojson")


def test_times_and_zones_that_are_none_are_named():
    with pytest.raises(DataError, match="t cannot be read as integers or ISO 8601 timestamps, such as 'soon'"):
        told(FIXES.assign(t=["soon", "2026-01-01", "later"]))
    with pytest.raises(DataError, match="the zone 'Mars/Base' is unknown"):
        replay("proximity", FIXES, PLACES, zone="Mars/Base")


def test_a_position_that_lacks_is_named_plainly():
    with pytest.raises(DataError, match="mobile 1 has no position at t = 3"):
        told(FIXES.assign(lon=[8.6, None, 8.6]), engines=("local",))
