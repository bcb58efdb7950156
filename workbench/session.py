"""One Spark session, made only when something asks for it.

A session that is already active is used as it is; SPARK_REMOTE names a Spark Connect server; a master (the argument, or
WORKBENCH_MASTER) names a cluster; else Spark runs inside this machine. In the last case nothing that was inherited
from another installation may disturb it: SPARK_HOME, JAVA_HOME, the host's name, Hadoop's default file system.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from workbench.caches import cache_dir
from workbench.errors import SetupError
from workbench.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_starting = threading.Lock()
_log_path: Path | None = None


def spark_session(
    master: str | None = None,
    *,
    cores: int | None = None,
    memory: str | None = None,
    config: Mapping[str, Any] | None = None,
    name: str = "workbench",
) -> SparkSession:
    """The Spark session of this process, made on the first call.

    `master` is Spark's own word for where to run (`local[2]`, `spark://...`, `yarn`); without it WORKBENCH_MASTER
    counts, and without that all cores of this machine, or `cores` of them. `memory` is the driver's (such as `4g`),
    `config` adds settings of Spark. On a session that exists already none of these has an effect.
    """
    with _starting:
        active = active_session()
        if active is not None:
            return active
        if find_spec("pyspark") is None:
            raise SetupError("pyspark is not installed; install it with `pip install 'pyspark==4.3.*'`")
        if os.environ.get("SPARK_REMOTE") and master is None:
            return _connect(config or {}, name)
        return _start(_master(master, cores), memory, config or {}, name)


def active_session() -> SparkSession | None:
    """The session that is active in this process, classic or Connect, or None. Never imports Spark by itself."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    session: SparkSession | None = SparkSession.getActiveSession()
    if session is None and "pyspark.sql.connect.session" in sys.modules:
        from pyspark.sql.connect.session import SparkSession as RemoteSession

        session = cast("SparkSession | None", RemoteSession.getActiveSession())
    spark = sys.modules.get("pyspark.core.context")
    if session is None and spark is not None and spark.SparkContext._active_spark_context is not None:
        return SparkSession.builder.getOrCreate()  # active is said for each thread, but there is one for all of them
    return session


def stop_session() -> None:
    """Stop the session of this process, if there is one."""
    session = active_session()
    if session is not None:
        session.stop()


def spark_log() -> Path | None:
    """The file that takes what Spark's JVM prints, once this process has started one."""
    return _log_path


def _master(master: str | None, cores: int | None) -> str:
    # The second number lets a task be tried again, as on a cluster; plain local[n] gives up at the first failure.
    return master or os.environ.get("WORKBENCH_MASTER") or f"local[{cores or available_cores()},4]"


def available_cores() -> int:
    """The cores that this process may use, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_memory() -> int:
    """The bytes of memory that this process may use: the machine's, or its container's where that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else 4 << 30
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


def _settings(master: str, memory: str | None) -> dict[str, str]:
    settings = {
        "spark.master": master,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
    }
    if memory or master.startswith("local"):
        settings["spark.driver.memory"] = memory or f"{min(8192, max(1024, available_memory() // 4 >> 20))}m"
    if master.startswith("local"):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            # Over TCP each task of a Python worker ends by waiting 40 ms for an acknowledgement.
            "spark.python.unix.domain.socket.enabled": str(hasattr(socket, "AF_UNIX")).lower(),
            "spark.sql.shuffle.partitions": str(max(2, available_cores())),
            "spark.hadoop.fs.defaultFS": "file:///",
            "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir()) / f"workbench-warehouse-{os.getpid()}"),
        }
    return settings


def _environment(master: str) -> None:
    """Set what Spark reads from the environment, so that one session starts like any other."""
    local = master.startswith("local")
    # Spark starts Python workers by name; on a cluster the name is the cluster's business.
    if local or "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["JAVA_HOME"] = str(find_java().home)
    home = installed_spark()
    if os.environ.get("SPARK_HOME") and spark_version(Path(os.environ["SPARK_HOME"])) != spark_version(home):
        os.environ["SPARK_HOME"] = str(home)
    if local:
        # Without an address Spark looks up the host's own name, which fails where it cannot be resolved.
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        os.environ["SPARK_LOCAL_HOSTNAME"] = "localhost"
    if not os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell").rstrip().endswith("pyspark-shell"):
        os.environ["PYSPARK_SUBMIT_ARGS"] += " pyspark-shell"


def installed_spark() -> Path:
    """The folder of the Spark that pip or conda installed."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SetupError("pyspark is not installed; install it with `pip install 'pyspark==4.3.*'`")
    return Path(spec.origin).parent


def spark_version(home: Path) -> str | None:
    """The version that a Spark installation's jars carry, or None where there is none."""
    for jar in sorted(home.glob("jars/spark-core_*.jar")):
        found = re.search(r"-(\d+\.\d+\.\d+[^-]*)\.jar$", jar.name)
        if found:
            return found.group(1)
    return None


def _start(master: str, memory: str | None, config: Mapping[str, Any], name: str) -> SparkSession:
    global _log_path
    _environment(master)
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False)
    conf.setAppName(name)
    for key, value in {**_settings(master, memory), **config}.items():
        conf.set(key, str(value))
    builder = SparkSession.builder
    for key, value in conf.getAll():
        builder = builder.config(key, value)
    builder = builder.config("spark.api.mode", "classic")

    if getattr(SparkContext, "_gateway", None) is not None:  # a JVM that outlived its session serves again
        return builder.getOrCreate()
    logs = cache_dir() / "logs"
    logs.mkdir(exist_ok=True)
    _forget_old(logs)
    _log_path = logs / f"spark-{os.getpid()}.log"
    # The JVM writes to its inherited stdout and stderr, which a notebook would print into its cells.
    with _log_path.open("wb") as log:
        try:
            gateway = launch_gateway(conf=conf, popen_kwargs={"stdout": log, "stderr": log})
            SparkContext(conf=conf, gateway=gateway)
            return builder.getOrCreate()
        except (PySparkException, OSError) as error:
            raise SetupError(_why(error)) from error


def _connect(config: Mapping[str, Any], name: str) -> SparkSession:
    if os.environ["SPARK_REMOTE"].startswith("local"):
        _environment("local")
    from pyspark.sql import SparkSession

    try:
        builder = SparkSession.builder.appName(name)
        settings = {"spark.sql.session.timeZone": "UTC", "spark.sql.execution.arrow.pyspark.enabled": "true", **config}
        for key, value in settings.items():
            builder = builder.config(key, str(value))
        return builder.getOrCreate()
    except ImportError as error:
        why = f"SPARK_REMOTE is set, but {error}; install `pyspark[connect]`, or unset SPARK_REMOTE"
        raise SetupError(why) from error


def _why(error: Exception) -> str:
    """Spark's own reason, which stands in the log and not in the exception."""
    lines = _log_path.read_text(errors="replace").splitlines() if _log_path else []
    telling = [line for line in lines if re.search(r"Exception|[Ee]rror|not found|No such", line)]
    reason = telling[0].strip() if telling else str(error)
    return f"Spark did not start: {reason} (all of it in {_log_path}; `workbench doctor --spark` looks further)"


def _forget_old(logs: Path, keep: int = 20) -> None:
    old = sorted(logs.glob("spark-*.log"), key=lambda path: path.stat().st_mtime, reverse=True)[keep:]
    for path in old:
        path.unlink(missing_ok=True)
