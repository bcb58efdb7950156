"""Spark as a cluster has it: executors of their own, and workers that die."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from workbench.replay import replay

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
from workbench.engines import local, spark
from workbench.scenarios import named

def evaluate(data, until):
    mark = Path(os.environ["DIED"])
    try:
        mark.touch(exist_ok=False)
    except FileExistsError:
        return local.run(data, until)
    os.kill(os.getpid(), signal.SIGKILL)

done = spark.run(named("coffee")(), [[f] for f in sys.argv[3:]], sys.argv[2], zone=None, until=None, evaluate=evaluate)
rows = sorted(tuple(map(str, row)) for row in done.timelines.toPandas().itertuples(index=False))
print(json.dumps(rows))
from workbench.session import spark_log
print(spark_log(), file=sys.stderr)
"""


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


def test_a_worker_killed_in_the_middle_is_tried_again_and_changes_nothing(city, tmp_path):
    fixes, places, expected = city
    rows, log = run(DYING, fixes, places, fixes, DIED=str(tmp_path / "died"))
    assert (tmp_path / "died").exists()
    assert "Lost task" in log
    assert without_nulls(rows) == without_nulls(expected)
