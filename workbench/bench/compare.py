"""One table: how long the same timelines take, here and with what a user would pick instead.

Every contender starts from the same Parquet files and ends with full timelines in memory (Spark: on disk). A
contender whose answer differs from DuckDB's is reported as wrong, and its time does not count. Nothing is kept between
repetitions but what a user's second run would find too: compiled kernels and a warm Spark session.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from workbench import datasets
from workbench.bench.duckdb_sql import proximity
from workbench.bench.workload import Workload
from workbench.geometry import PLANAR
from workbench.replay import replay

Timelines = Callable[[], Any]


@dataclass(frozen=True)
class Timing:
    """The best of some runs, in seconds, and whether the answer was right."""

    contender: str
    seconds: float
    timelines: int
    right: bool


def measure(load: Workload, folder: Path, repeats: int = 3, spark: bool = True) -> Iterator[Timing]:
    """Each contender's best time on a workload; DuckDB first, which says what is right."""
    fixes, places = load.write(folder)
    answer: tuple[int, int] | None = None
    for name, run in contenders(load, fixes, places, folder, spark):
        best, found = float("inf"), None
        for _ in range(repeats):
            began = time.perf_counter()
            found = run()
            best = min(best, time.perf_counter() - began)
        fingerprint = _fingerprint(found)
        answer = answer or fingerprint
        yield Timing(name, best, fingerprint[0], found is None or fingerprint == answer)


def contenders(
    load: Workload, fixes: Path, places: Path, folder: Path, spark: bool
) -> Iterator[tuple[str, Timelines]]:
    """What is compared, in order."""
    parameters = {"radius_m": load.radius_m}
    if importlib.util.find_spec("duckdb"):
        yield "DuckDB, hand-written SQL, 2 threads", lambda: _duckdb(load, fixes, places)
    yield "workbench, local", lambda: replay("proximity", fixes, places, "local", parameters).timelines
    if spark:
        ingested = folder / f"ingested-{load.fixes}-{load.mobiles}"
        if not datasets.is_ingested(ingested):
            datasets.ingest(fixes, ingested)
        yield "workbench, Spark over ingested data", lambda: replay("proximity", ingested, places, "spark", parameters)
        yield "workbench, Spark over raw data", lambda: replay("proximity", fixes, places, "spark", parameters)
        yield "Spark: repartition by mobile, sort, write nothing", lambda: _shuffle(fixes)
    if importlib.util.find_spec("geopandas"):
        yield "geopandas.sjoin and grouping", lambda: _sjoin(load, fixes, places)


def _duckdb(load: Workload, fixes: Path, places: Path) -> pd.DataFrame:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    return proximity(
        connection, f"read_parquet('{fixes}')", f"read_parquet('{places}')", load.radius_m, PLANAR
    ).df()  # type: ignore[no-any-return]


def _shuffle(fixes: Path) -> None:
    from workbench.session import spark_session

    table = spark_session().read.parquet(str(fixes)).repartition("mobile").sortWithinPartitions("mobile", "t")
    table.write.format("noop").mode("overwrite").save()


def _sjoin(load: Workload, fixes: Path, places: Path) -> pd.DataFrame:
    import geopandas

    moved = pd.read_parquet(fixes).sort_values(["mobile", "t"], kind="stable").reset_index(drop=True)
    sites = pd.read_parquet(places)
    discs = geopandas.GeoDataFrame(sites, geometry=geopandas.points_from_xy(sites["x"], sites["y"]))
    points = geopandas.GeoDataFrame(moved[["mobile", "t"]], geometry=geopandas.points_from_xy(moved["x"], moved["y"]))
    hits = geopandas.sjoin(points, discs, predicate="dwithin", distance=load.radius_m)
    hits = pd.DataFrame({"place": hits["place"], "mobile": hits["mobile"], "n": hits.index, "t": hits["t"]})
    hits = hits.sort_values(["place", "mobile", "n"])
    breaks = (hits[["place", "mobile"]].ne(hits[["place", "mobile"]].shift()).any(axis=1)) | (hits["n"].diff() != 1)
    following = moved["t"].shift(-1).where(moved["mobile"].shift(-1) == moved["mobile"])
    first, last = hits[breaks], hits[breaks.shift(-1, fill_value=True)]
    return pd.DataFrame(
        {
            "publication": first["place"].to_numpy(),
            "subscription": first["mobile"].to_numpy(),
            "tau": first["t"].to_numpy(),
            "pi": following.reindex(last["n"]).to_numpy(),
        }
    )


def _fingerprint(found: Any) -> tuple[int, int]:
    """How many timelines, and a number that two different answers hardly share."""
    if found is None:
        return (0, 0)
    if hasattr(found, "timelines"):
        count, tau, pi = found.timelines.selectExpr("count(*)", "sum(tau)", "sum(pi)").collect()[0]
        return int(count), int(tau or 0) + 3 * int(pi or 0)
    return len(found), int(found["tau"].sum()) + 3 * int(found["pi"].dropna().sum())


def table(timings: list[Timing]) -> str:
    """Times as ratios to the first contender."""
    base = timings[0].seconds
    rows = ["    best     ratio   timelines"]
    for t in timings:
        wrong = "" if t.right else " WRONG"
        rows.append(f"{t.seconds:8.2f} s  {t.seconds / base:6.2f} x  {t.timelines:>10,}  {t.contender}{wrong}")
    return "\n".join(rows)
