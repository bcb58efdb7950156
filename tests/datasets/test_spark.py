"""An ingest on Spark writes the very files that an ingest in this process writes."""

import gzip
import os
import signal
import subprocess
import sys
import tarfile
import textwrap
import time
import zipfile

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from workbench.datasets import ingest, ingesting
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


@pytest.mark.spark
def test_an_ingest_killed_on_spark_leaves_nothing_that_looks_complete_and_can_be_started_again(tmp_path):
    script = textwrap.dedent(
        """
        import sys, time
        from pathlib import Path
        from workbench.datasets import ingest
        from workbench.session import spark_session
        def slow(batches):
            for batch in batches:
                Path(FOLDER, "begun").touch()
                time.sleep(30)
                yield batch
        spark = spark_session("local[1]")
        fixes = spark.createDataFrame([(1, 1, 1.0, 1.0)], "mobile long, t long, x double, y double")
        ingest(fixes.mapInArrow(slow, fixes.schema), sys.argv[1], spark=spark)
        """
    ).replace("FOLDER", repr(str(tmp_path)))
    (tmp_path / "target").mkdir()
    out = tmp_path / "target" / "out"
    process = subprocess.Popen([sys.executable, "-c", script, str(out)])
    while not (tmp_path / "begun").exists():
        assert process.poll() is None
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not out.exists()
    assert len(list(out.parent.iterdir())) == 1  # what the killed run left behind
    assert ingest({"mobile": [1], "t": [1], "x": [1.0], "y": [1.0]}, out).rows == 1
    assert [path.name for path in out.parent.iterdir()] == ["out"]


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "zip", "tar.gz", "parquet"])
def test_one_large_file_is_shared_among_tasks_and_gives_the_same_data_set(spark, tmp_path, monkeypatch, kind):
    monkeypatch.setattr(ingesting, "SHARE_BYTES", 4_000)
    random = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "mobile": random.integers(0, 40, 3_000),
            "t": random.integers(0, 1_000, 3_000),
            "x": random.integers(0, 9_000, 3_000) / 8,
            "y": random.integers(0, 9_000, 3_000) / 8,
            "note": random.choice(["a, b", 'say "c"', "d"], 3_000),
        }
    )
    file = tmp_path / f"fixes.{kind}"
    text = table.to_csv(index=False) + "nonsense\n"
    if kind == "parquet":
        table.to_parquet(file, row_group_size=250)
    elif kind == "zip":
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED).writestr("a.csv", text)
    elif kind == "tar.gz":
        for name in ("b.csv", "a.csv"):
            (tmp_path / name).write_text(text.replace("d\n", f"{name}\n"))
        with tarfile.open(file, "w:gz") as archive:
            for name in ("b.csv", "a.csv"):
                archive.add(tmp_path / name, name)
    else:
        (gzip.open if kind == "csv.gz" else open)(file, "wt").write(text)
    resolved = ingesting.resolve(file, None, ingesting.Reading())
    assert len(ingesting._parts(resolved, 2)) >= 2
    options = {"buckets": 3, "max_bad_share": 1.0}
    here = ingest(file, tmp_path / "here", **options)
    there = ingest(file, tmp_path / "there", engine="spark", spark=spark, **options)
    assert here.report.set_aside > 0
    same(here, there)
