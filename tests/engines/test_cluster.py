"""Spark as a cluster has it: executors of their own, workers that die, a server that is only spoken to."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from workbench.java import find_java
from workbench.replay import replay
from workbench.session import installed_spark

ROOT = Path(__file__).resolve().parents[2]
REPLAY = """
import json, sys
from workbench.replay import replay
from workbench.session import spark_log, spark_session
done = replay("coffee", sys.argv[1], sys.argv[2], engine="spark")
rows = sorted(tuple(map(str, row)) for row in done.timelines.toPandas().itertuples(index=False))
print(json.dumps(rows))
print(spark_log(), file=sys.stderr)
"""
DYING = """
import json, os, signal, sys
from pathlib import Path
from workbench.datasets.layout import bucket_of
from workbench.engines import local, spark
from workbench.scenarios import named

def dying_once(work):
    def tried(*given):
        try:
            Path(os.environ["DIED"]).touch(exist_ok=False)
        except FileExistsError:
            return work(*given)
        os.kill(os.getpid(), signal.SIGKILL)
    return tried

where, name, fixes, places = sys.argv[1:]
laid, told = (dying_once(work) if here else work for work, here in
              ((bucket_of, where == "an exchange"), (local.planned, where != "an exchange")))
source = [[fixes]] if where == "a bucket" else spark.Raw((fixes,), laid)
done = spark.run(named(name)(), source, places, zone=None, until=None, evaluate=told)
assert where.split()[-1] in done.plan or where == "an exchange", done.plan
rows = sorted(tuple(map(str, row)) for row in done.timelines.toPandas().itertuples(index=False))
print(json.dumps(rows))
from workbench.session import spark_log
print(spark_log(), file=sys.stderr)
"""
SPOKEN_TO = """
import json, sys
import pandas as pd
from workbench.replay import replay
from workbench.session import spark_session

fixes, places = sys.argv[1:3]
session = spark_session()
assert "connect" in type(session).__module__, type(session)
given = {"coffee": (fixes, places), "proximity": (session.read.parquet(fixes), places)}
said = {}
for name, tables in given.items():
    here = replay(name, *tables, engine="spark", parameters=json.loads(sys.argv[3])[name]).collect()
    first = here.explain(*here.timelines.iloc[0, :3])
    said[name] = [here.timelines.to_json(), here.notifications.to_json(), first.holds]
print(json.dumps(said))
"""
ASKED = {"coffee": {}, "proximity": {"radius_m": 900}}


@pytest.fixture
def connect_server(tmp_path: Path) -> Iterator[str]:
    """The address of a Spark Connect server of its own, as pip installed it, with Spark's own settings."""
    home = installed_spark()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
    }
    service = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = [str(home / "bin" / "spark-submit"), "--master", "local[2]", "--class", service]
    command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    own = {"JAVA_HOME": str(find_java().home), "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    environ = {**os.environ, **own, "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": str(ROOT)}
    with (tmp_path / "server.log").open("wb") as log:
        server = subprocess.Popen([*command, "spark-internal"], stdout=log, stderr=log, env=environ, cwd=tmp_path)
    try:
        for _ in range(600):
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None, (tmp_path / "server.log").read_text(errors="replace")[-3_000:]
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)


def run(code: str, *arguments: object, **environ: str) -> tuple[list, str]:
    """The timelines that a process of its own prints, and what its Spark logged."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=ROOT, env={**os.environ, **environ})
    assert ran.returncode == 0, ran.stderr[-3_000:]
    return [tuple(row) for row in json.loads(ran.stdout)], Path(ran.stderr.split()[-1]).read_text(errors="replace")


def rows_of(timelines: pd.DataFrame) -> list:
    frame = timelines.astype(object).where(timelines.notna(), None)
    shown = [tuple("None" if v is None else str(v) for v in row) for row in frame.itertuples(index=False)]
    return sorted(shown)


@pytest.fixture(scope="module")
def city(tmp_path_factory) -> tuple[Path, Path, list]:
    rng = np.random.default_rng(3)
    n = 2_000
    here, there = rng.uniform(0, 9_000, (2, n)), rng.uniform(0, 9_000, (2, 15))
    fixes = pd.DataFrame({"mobile": rng.integers(0, 20, n), "t": np.arange(1, n + 1), "x": here[0], "y": here[1]})
    places = pd.DataFrame({"place": range(15), "x": there[0], "y": there[1]})
    folder = tmp_path_factory.mktemp("cluster")
    fixes.to_parquet(folder / "fixes.parquet", index=False)
    places.to_parquet(folder / "places.parquet", index=False)
    return folder / "fixes.parquet", folder / "places.parquet", rows_of(replay("coffee", fixes, places).timelines)


def without_nulls(rows: list) -> list:
    """A pi that is not there prints as nan or None, depending on the column's type."""
    return sorted(tuple("" if v in ("nan", "None", "<NA>") else v.removesuffix(".0") for v in row) for row in rows)


def test_separate_executors_give_the_same_timelines(city):
    fixes, places, expected = city
    rows, _ = run(REPLAY, fixes, places, WORKBENCH_MASTER="local-cluster[2,1,2048]")
    assert without_nulls(rows) == without_nulls(expected)


KILLED = {"a bucket": "coffee", "an exchange": "coffee", "a slice": "dispatch"}


@pytest.mark.parametrize("where", KILLED)
def test_a_worker_killed_in_the_middle_is_tried_again_and_changes_nothing(city, tmp_path, where):
    (fixes, places, _), name = city, KILLED[where]
    expected = rows_of(replay(name, fixes, places).timelines)
    rows, log = run(DYING, where, name, fixes, places, DIED=str(tmp_path / "died"))
    assert (tmp_path / "died").exists()
    assert "Lost task" in log
    assert without_nulls(rows) == without_nulls(expected) and len(rows) > 20


@pytest.mark.timeout(600)
def test_a_server_that_is_only_spoken_to_gives_the_same_tables(city, connect_server):
    fixes, places, _ = city
    command = [sys.executable, "-c", SPOKEN_TO, str(fixes), str(places), json.dumps(ASKED)]
    environ = {**os.environ, "SPARK_REMOTE": connect_server}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=500, cwd=ROOT, env=environ)
    assert ran.returncode == 0, ran.stderr[-3_000:]
    for name, (timelines, notifications, holds) in json.loads(ran.stdout).items():
        local = replay(name, fixes, places, parameters=ASKED[name])
        assert len(local.timelines) > 20 and holds
        assert (timelines, notifications) == (local.timelines.to_json(), local.notifications.to_json())
