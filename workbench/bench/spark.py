"""Spark at scale: ten times the fixes, filters that look back, pairs of mobiles; on a warm session, best of some runs.

    python -m workbench.bench.spark scale      10 million fixes and 100 million, and how much memory a worker takes
    python -m workbench.bench.spark filters    coffee and traffic beside plain proximity of the same fixes
    python -m workbench.bench.spark friends    pairs of mobiles beside a grid self-join on DuckDB
    python -m workbench.bench.spark places     100,000 places of 100 m beside DuckDB
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from workbench import datasets
from workbench.bench import friends
from workbench.bench.compare import _here
from workbench.bench.duckdb_sql import proximity
from workbench.bench.islands import in_order
from workbench.bench.workload import Workload
from workbench.geometry import PLANAR
from workbench.replay import Replay, replay


class Run(NamedTuple):
    """What is timed, and what says whether its answer is right, where that is not another run of the same table."""

    name: str
    run: Callable[[], Any]
    judge: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Timing:
    """The best of some runs; ratio is that to the first one of its table."""

    name: str
    seconds: float
    ratio: float
    timelines: int
    fingerprint: int
    """a number that two different answers hardly share"""
    worker_peak_mib: int | None = None
    right: bool = True

    def __str__(self) -> str:
        memory = "" if self.worker_peak_mib is None else f"  {self.worker_peak_mib:6,} MiB a worker"
        ratio = f"{self.ratio:6.2f} x" if self.right else "   WRONG"
        return f"{self.seconds:8.2f} s  {ratio}  {self.timelines:>11,} timelines{memory}  {self.name}"


def timed(runs: Iterator[Run], repeats: int) -> Iterator[Timing]:
    """Each one's best time, and what it found."""
    base = None
    for name, run, judge in runs:
        best, found = float("inf"), None
        for _ in range(repeats):
            found = None
            began = time.perf_counter()
            found = run()
            best = min(best, time.perf_counter() - began)
        base = base or best
        count, number = _fingerprint(found)
        peak = found.metrics.get("worker_peak_mib") if isinstance(found, Replay) else None
        right = judge is None or in_order(_here(found)).equals(in_order(_here(judge())))
        yield Timing(name, best, best / base, count, number, peak, right)


def _fingerprint(found: Any) -> tuple[int, int]:
    made = getattr(found, "timelines", found)
    if hasattr(made, "selectExpr"):
        count, tau, pi = made.selectExpr("count(*)", "sum(tau)", "sum(pi)").collect()[0]
        return int(count), int(tau or 0) + 3 * int(pi or 0)
    return len(made), int(made["tau"].sum()) + 3 * int(made["pi"].dropna().sum())


def ingested(load: Workload, folder: Path) -> tuple[Path, Path]:
    """The fixes of a workload, ingested, and its places."""
    target = folder / f"ingested-{load.fixes}-{load.mobiles}"
    fixes, places = load.write(folder)
    if not datasets.is_ingested(target):
        datasets.ingest(fixes, target)
    return target, places


def scale(folder: Path, fixes: int) -> Iterator[Run]:
    """A number of fixes, and ten times as many of ten times the mobiles."""
    for times in (1, 10):
        load = Workload(fixes=times * fixes, mobiles=max(1, times * fixes // 1_000))
        target, places = ingested(load, folder)
        yield Run(f"proximity of {load.fixes:,} fixes", partial(replay, "proximity", target, places, "spark"))


def filters(folder: Path, fixes: int, radius_m: float = 1_000) -> Iterator[Run]:
    """Proximity, and the paper's case studies, over the same fixes; the local engine judges.

    Walkers are soon out of a section of 2 km again: 45 s are slow for them.
    """
    load = Workload(fixes=fixes, mobiles=max(1, fixes // 1_000))
    target, places = ingested(load, folder)
    reach = {"radius_m": radius_m}
    jam = {"slow_min": 0.75}
    for says, name, sites, parameters in (
        (f"proximity, {radius_m:.0f} m", "proximity", places, reach),
        ("coffee, the 5-hour rule", "coffee", places, reach),
        ("traffic, the mean of the last 5 cars", "traffic", None, jam),
    ):
        on_spark = partial(replay, name, target, sites, "spark", parameters)
        yield Run(says, on_spark, partial(replay, name, target, sites, "local", parameters))


def pairs(folder: Path, fixes: int) -> Iterator[Run]:
    """Friends within 200 m, at 1,000 instants."""
    load = friends.workload(mobiles=max(2, fixes // 1_000))
    table, _ = load.write(folder)
    parameters = {"near_m": 200.0, "far_m": 200.0}
    yield Run("DuckDB, grid self-join, 2 threads", lambda: friends.pairs(table, 200.0))
    yield Run("friends, local", lambda: replay("friends", table, None, "local", parameters))
    yield Run("friends, Spark over raw data", lambda: replay("friends", table, None, "spark", parameters))


def many_places(folder: Path, fixes: int) -> Iterator[Run]:
    """100,000 discs of 100 m."""
    load = Workload(fixes=fixes, mobiles=max(1, fixes // 1_000), places=100_000, radius_m=100)
    target, places = ingested(load, folder)
    raw, _ = load.write(folder)
    parameters = {"radius_m": load.radius_m}
    yield Run("DuckDB, hand-written SQL, 2 threads", lambda: _duckdb(raw, places, load.radius_m))
    yield Run("proximity, local", lambda: replay("proximity", raw, places, "local", parameters))
    yield Run("proximity, Spark over ingested data", lambda: replay("proximity", target, places, "spark", parameters))


def _duckdb(fixes: Path, places: Path, radius_m: float) -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    return proximity(
        connection, f"read_parquet('{fixes}')", f"read_parquet('{places}')", radius_m, PLANAR
    ).df()


ROWS: dict[str, tuple[Callable[[Path, int], Iterator[Run]], int, bool]] = {
    "scale": (scale, 10_000_000, False),
    "filters": (filters, 10_000_000, False),
    "friends": (pairs, 5_000_000, True),
    "places": (many_places, 10_000_000, True),
}
"""what is run, over how many fixes, and whether all have to give the same"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("row", choices=ROWS)
    parser.add_argument("--fixes", type=int, help="how many")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", type=Path, default=Path("data/bench"), help="where the made-up data are kept")
    parser.add_argument("--forget", action="store_true", help="remove the made-up data in the end")
    given = parser.parse_args()
    runs, fixes, alike = ROWS[given.row]
    first = None
    for timing in timed(runs(given.data, given.fixes or fixes), given.repeats):
        first = first or timing
        wrong = alike and (timing.timelines, timing.fingerprint) != (first.timelines, first.fingerprint)
        print(replace(timing, right=timing.right and not wrong), flush=True)
    if given.forget:
        shutil.rmtree(given.data)


if __name__ == "__main__":
    main()
