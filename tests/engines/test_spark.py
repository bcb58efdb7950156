"""Spark gives the tables of the other engines, whatever the buckets, the order of rows and the way the fixes come."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from workbench import datasets
from workbench.engines.spark import entangled
from workbench.errors import DataError
from workbench.replay import replay
from workbench.scenarios import BUILT_IN, named


def sorted_frame(table) -> pd.DataFrame:
    frame = table if isinstance(table, pd.DataFrame) else table.toPandas()
    rows = [tuple(None if pd.isna(v) else v for v in row) for row in frame.itertuples(index=False)]
    return pd.DataFrame(sorted(rows, key=repr), columns=frame.columns)


def same(one, other) -> None:
    for name in ("timelines", "notifications"):
        pd.testing.assert_frame_equal(sorted_frame(getattr(one, name)), sorted_frame(getattr(other, name)))


@pytest.fixture(scope="module")
def walk() -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(5)
    n = 3_000
    fixes = pd.DataFrame(
        {
            "mobile": rng.integers(0, 30, n),
            "t": rng.permutation(n) + 1,
            "x": rng.integers(0, 60, n) * 50.0,
            "y": rng.integers(0, 60, n) * 50.0,
            "fuel": rng.integers(0, 100, n) * 1.0,
        }
    )
    places = pd.DataFrame(
        {
            "place": np.arange(25),
            "x": rng.integers(0, 60, 25) * 50.0,
            "y": rng.integers(0, 60, 25) * 50.0,
            "category": rng.choice(["coffee", "tea"], 25),
            "price": rng.integers(60, 80, 25) * 1.0,
        }
    )
    return fixes, places


@pytest.mark.parametrize("name", ["proximity", "coffee", "fuel"])
def test_scenarios_that_go_bucket_by_bucket(spark, walk, name):
    assert entangled(named(name)()) is None
    same(replay(name, *walk, engine="spark"), replay(name, *walk, engine="local"))


def test_scenarios_that_look_from_one_mobile_at_another_say_so():
    assert {name for name in BUILT_IN if entangled(named(name)()) is not None} >= {"friends", "traffic", "dispatch"}


def test_friends_on_spark(spark, walk):
    fixes = walk[0][walk[0]["mobile"] < 8]
    same(replay("friends", fixes, engine="spark"), replay("friends", fixes, engine="local"))


@pytest.mark.parametrize("buckets", [1, 4, 64])
def test_neither_the_number_of_buckets_nor_the_order_of_rows_matters(spark, walk, tmp_path, buckets):
    fixes, places = walk
    datasets.ingest(fixes.sample(frac=1, random_state=buckets), tmp_path / "city", buckets=buckets)
    for name, given in (("coffee", places), ("traffic", None)):
        parameters = {"slow_min": 0.5} if name == "traffic" else {}
        told, whole = (
            replay(name, source, given, engine, parameters)
            for source, engine in ((tmp_path / "city", "spark"), (fixes, "local"))
        )
        assert len(whole.timelines) > 20
        same(told, whole)


def test_raw_unsorted_parquet_and_spark_tables(spark, walk, tmp_path):
    fixes, places = walk
    fixes.sample(frac=1, random_state=1).to_parquet(tmp_path / "raw.parquet", index=False)
    whole = replay("proximity", fixes, places, engine="local")
    same(replay("proximity", tmp_path / "raw.parquet", places, engine="spark"), whole)
    same(replay("proximity", spark.createDataFrame(fixes), places, engine="spark"), whole)


def test_timestamps_come_back_as_timestamps(spark, walk):
    fixes, places = walk
    stamped = fixes.assign(t=pd.to_datetime(fixes["t"], unit="s", utc=True).dt.as_unit("us"))
    done = replay("proximity", stamped, places, engine="spark")
    whole = replay("proximity", stamped, places, engine="local").timelines
    told = done.timelines.toPandas()
    assert dict(done.timelines.dtypes)["tau"] == "timestamp"
    assert sorted(told["tau"].dt.tz_localize("UTC")) == sorted(whole["tau"])


def test_saved_tables_and_metrics(spark, walk, tmp_path):
    done = replay("proximity", *walk, engine="spark")
    done.save(tmp_path / "out")
    assert len(pd.read_parquet(tmp_path / "out" / "timelines.parquet")) == done.metrics["timelines"]
    assert len(pd.read_parquet(tmp_path / "out" / "notifications.parquet")) == done.metrics["notifications"]


def test_explain_reads_only_what_it_needs(spark, walk):
    done = replay("proximity", *walk, engine="spark")
    line = done.timelines.first()
    assert done.explain(line.publication, line.subscription, at=line.tau).holds
    assert not done.explain(line.publication, line.subscription, at=line.tau - 1).holds


def test_a_corrupt_file_is_one_sentence_that_names_it(spark, walk, tmp_path):
    fixes, places = walk
    datasets.ingest(fixes, tmp_path / "city", buckets=4)
    broken = sorted((tmp_path / "city" / "fixes").glob("*.parquet"))[1]
    broken.write_bytes(broken.read_bytes()[:-200])
    with pytest.raises(DataError, match=broken.name):
        replay("proximity", tmp_path / "city", places, engine="spark")


def test_a_mistake_in_one_bucket_is_one_sentence(spark, walk):
    fixes, places = walk
    with pytest.raises(DataError, match="has no position"):
        replay("proximity", fixes.assign(x=fixes["x"].where(fixes["t"] != 2_900)), places, engine="spark")


def test_no_fixes_at_all(spark, walk):
    fixes, places = walk
    done = replay("proximity", fixes[:0], places, engine="spark")
    assert done.metrics["timelines"] == 0
    assert done.timelines.count() == 0
    assert pa.types.is_int64(done.timelines.limit(1).toArrow().schema.field("subscription").type)


@pytest.mark.parametrize("ids", [int, str])
@pytest.mark.parametrize("way", [pd.DataFrame, pa.Table.from_pandas, "spark"])
def test_no_fixes_in_a_table_of_any_kind(spark, walk, ids, way):
    fixes, places = walk
    some = fixes.astype({"mobile": ids})
    given = spark.createDataFrame(some).limit(0) if way == "spark" else way(some[:0])
    done = replay("proximity", given, places, engine="spark")
    assert (done.metrics["timelines"], done.timelines.count(), done.notifications.count()) == (0, 0, 0)


@pytest.mark.parametrize("name", ["reference", "local", "spark"])
def test_ingested_fixes_of_which_none_was_kept_are_no_fixes(spark, walk, tmp_path, name):
    bad = {"mobile": [1, 2], "t": [1, 2], "x": [np.inf, np.nan], "y": [0.0, 0.0], "fuel": [1.0, 2.0]}
    nobody = datasets.ingest(pd.DataFrame(bad), tmp_path / "none", max_bad_share=1)
    assert (nobody.rows, nobody.report.set_aside) == (0, 2)
    none = replay("proximity", nobody, walk[1], engine=name)
    same(none, replay("proximity", walk[0][:0], walk[1], engine="local"))
    assert none.metrics["timelines"] == 0


def test_places_may_be_a_table_of_a_million_rows(spark, tmp_path):
    """Each mobile walks over four places of a lattice, a step apart; the last digit of a place is where on its way."""
    side, step = 1_000, 20.0
    row, column = np.divmod(np.arange(side * side), side)
    places = pd.DataFrame({"place": np.arange(side * side), "x": column * step, "y": row * step})
    places.to_parquet(tmp_path / "places.parquet")
    mobile, t = np.divmod(np.arange(40), 4)
    fixes = pd.DataFrame({"mobile": mobile, "t": t + 1, "x": (90 * mobile + t) * step, "y": 90 * mobile * step})
    made = replay("proximity", fixes, tmp_path / "places.parquet", engine="spark", parameters={"radius_m": 5})
    found = sorted_frame(made.collect().timelines)
    assert sorted(found["publication"]) == sorted((90 * mobile * side + 90 * mobile + t).tolist())
    assert found["tau"].tolist() == (found["publication"] % 10 + 1).tolist()


def test_ids_of_several_types_are_one_sentence(spark, walk):
    fixes, places = walk
    mixed = fixes.assign(mobile=fixes["mobile"].astype(object).where(fixes["t"] > 5, "seven"))
    with pytest.raises(DataError, match="fixes: Spark needs one type in each column: Could not convert 'seven'"):
        replay("proximity", mixed, places, engine="spark")


def test_ends_can_be_null_in_collected_tables_even_where_none_is(spark):
    fixes = pd.DataFrame({"mobile": [7, 7], "t": [1, 2], "x": [0.0, 90.0], "y": 0.0})
    places = pd.DataFrame({"place": ["a"], "x": [0.0], "y": [0.0]})
    done, local = (replay("proximity", fixes, places, engine, {"radius_m": 5}) for engine in ("spark", "local"))
    assert local.timelines["pi"].tolist() == [2]
    pd.testing.assert_frame_equal(done.collect().timelines, local.timelines)


def test_collected_tables_are_those_of_the_local_engine_in_the_declared_order(spark, walk):
    done, local = (replay("coffee", *walk, engine=engine) for engine in ("spark", "local"))
    here = done.collect()
    assert local.collect() is local and here.metrics is done.metrics
    pd.testing.assert_frame_equal(here.timelines, local.timelines)
    pd.testing.assert_frame_equal(here.notifications, local.notifications)
    told = local.notifications.iloc[-1]
    asked = (told["publication"], told["subscription"], told["t"])
    assert str(here.explain(*asked)) == str(done.explain(*asked)) == str(local.explain(*asked))
