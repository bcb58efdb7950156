"""An ingest on Spark writes the very files that an ingest in this process writes."""

import zipfile

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from workbench.datasets import ingest
from workbench.errors import WorkbenchError


def same(a, b) -> None:
    assert a.report == b.report
    assert [f.name for f in a.files] == [f.name for f in b.files]
    for left, right in zip(a.files, b.files, strict=True):
        assert pq.read_table(left).equals(pq.read_table(right))


def test_an_archive_of_many_files_gives_the_same_data_set_on_spark(spark, tmp_path):
    random = np.random.default_rng(2)
    with zipfile.ZipFile(tmp_path / "taxis.zip", "w") as archive:
        for taxi in range(30):
            minutes = random.integers(0, 600, 50)
            lines = [
                f"{taxi},2008-02-02 {m // 60:02d}:{m % 60:02d}:00,{116 + random.random():.5f},39.9" for m in minutes
            ]
            archive.writestr(f"taxi/{taxi}.txt", "\n".join([*lines, lines[0], "nonsense"]) + "\n")
    options = {"buckets": 5, "max_bad_share": 0.5}
    here = ingest(tmp_path / "taxis.zip", tmp_path / "here", **options)
    there = ingest(tmp_path / "taxis.zip", tmp_path / "there", engine="spark", spark=spark, **options)
    assert here.report.aside["row unreadable"] == 30
    same(here, there)
    assert here.aside().num_rows == there.aside().num_rows


def test_a_spark_table_gives_the_same_data_set_as_a_pandas_table(spark, tmp_path):
    random = np.random.default_rng(4)
    n = 2_000
    table = pd.DataFrame(
        {
            "mobile": random.integers(0, 40, n).astype(str),
            "t": pd.to_datetime(random.integers(0, 10**6, n), unit="s", utc=True).astype("datetime64[us, UTC]"),
            "lon": random.uniform(8, 9, n),
            "lat": random.uniform(49, 50, n),
            "fuel": random.integers(0, 9, n),
        }
    )
    here = ingest(table, tmp_path / "here", buckets=3)
    there = ingest(spark.createDataFrame(table).repartition(4), tmp_path / "there", buckets=3, spark=spark)
    assert here.report.kept == there.report.kept
    for left, right in zip(here.files, there.files, strict=True):
        assert pq.read_table(left).equals(pq.read_table(right))


def test_a_bad_file_on_spark_is_one_clear_error(spark, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("mobile,t,x,y\n1,1,1,1\n")
    (tmp_path / "in" / "b.csv").write_text("mobile,when,x,y\n1,1,1,1\n")
    with pytest.raises(WorkbenchError, match=r"b\.csv: has no column 't'"):
        ingest(tmp_path / "in", tmp_path / "out", engine="spark", spark=spark)
    assert not (tmp_path / "out").exists()
