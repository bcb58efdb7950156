"""The Spark engine: the same evaluation, a part of the fixes at a time, on a cluster.

What a mobile is told depends on its own rows and on the tables that are not fixes. So where a scenario never looks
from one mobile at another one (`entangled` says where it does), the fixes are evaluated bucket by bucket: a task reads
its bucket as Arrow, *inside the Python worker*, so that no row passes the JVM, runs the in-process evaluation that it
was given, and writes its timelines as Parquet (`tasks`).

Fixes come as *shards*, lists of Parquet files with whole mobiles in them (ingested data); as *raw* Parquet files, whose
rows are first exchanged by mobile (`exchange`); or as a Spark table, which Spark shuffles by mobile.

No RDDs and nothing of the JVM's inside, so the same code runs over Spark Connect. A cluster needs this package on its
workers and a scratch folder that all of them see (``WORKBENCH_SCRATCH``).
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import re
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workbench import tables
from workbench.compiling import foretell
from workbench.engines import bystanders, encountered, exchange, slices, tasks
from workbench.engines.batches import is_text
from workbench.engines.streams import without_effect
from workbench.engines.tasks import Bucket, Evaluation, Job, Prepare
from workbench.errors import DataError, WorkbenchError
from workbench.model.clock import Clock
from workbench.model.pubsub import Population
from workbench.model.scenario import Scenario
from workbench.progress import progress, watched
from workbench.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Shards = Sequence[Sequence[str]]
Said = dict[str, Any]
BucketOf = Callable[[pa.Array, int], Any]
"""the bucket of each mobile, out of so many"""
BUCKETS, VISITS, ENCOUNTERS, SHARES, TOGETHER = "buckets", "visits", "encounters", "shares", "together"
PLANS = {
    BUCKETS: "a task for each bucket of mobiles, as on the local engine",
    VISITS: "the visits of each bucket of mobiles, because {why}; then, knowing all of them, a task for each bucket",
    ENCOUNTERS: "a task for each slice of time, because {why}; who comes near whom by a grid, row groups to timelines",
    slices.MOMENTS: "a task for each slice of time, because {why}; timelines that go on over its borders are joined",
    slices.MEETINGS: "a task for each slice of time, because {why}; pairs that meet over its borders after them",
    SHARES: "a task for each share of the publications, because {why}",
    BUCKETS + SHARES: "a task for each bucket of mobiles; then one for each share of the publications, because {why}",
    TOGETHER: "one task, because {why}",
}
UNSAID = 200
"""how many parts Spark makes of a shuffle where nobody said"""
ROWS_A_TASK = 2_500_000
ROWS_A_BUCKET = 1_250_000
MOST_READ = 3
"""so many times each row is read rather than laid down where it is needed"""
_imported = 0
"""how many modules there were when a worker last set them apart"""


@dataclass(frozen=True)
class Raw:
    """Parquet files in which the rows of a mobile may lie anywhere."""

    files: tuple[str, ...]
    bucket_of: BucketOf


@dataclass(frozen=True)
class Outcome:
    """Timelines and notifications as Spark tables, and what was counted."""

    timelines: DataFrame
    notifications: DataFrame
    counts: dict[str, int]
    clock: Clock
    metric: str
    until: int
    plan: str
    """how the work was shared, and how candidates were found in all tasks together"""
    direct: bool
    """whether some tasks went fix by fix, without any candidates"""


def entangled(scenario: Scenario) -> str | None:
    """Why the mobiles of a scenario cannot be evaluated one by one, or None where they can.

    >>> from workbench.scenarios import named
    >>> entangled(named("proximity")()) is None
    True
    """
    over_fixes = {p.name for p in scenario.populations if "fixes" in (p.rows, p.profiles)}
    for side in (scenario.publications, scenario.subscriptions):
        if not {p.name for p in side} & over_fixes:
            break
    else:
        return "mobiles are on both sides"
    for p in scenario.publications:
        for s in scenario.subscriptions:
            if not {p.name, s.name} & over_fixes:
                return f"{p.name} and {s.name} match without any mobile"
    for population in scenario.populations:
        if seen := scenario.looked_at(population) & over_fixes:
            return f"{population.name} look at all of {', '.join(sorted(seen))}"
    return None


def spread(data: tables.Inputs, sample: pd.DataFrame) -> str:
    """How the work can be shared: by mobile, by mobile once visits are known, by slices of time, or not at all.

    A few rows say what the tables are like.
    """
    scenario, stage = data.scenario, data.scenario.stage
    if entangled(scenario) is None:
        if stage is None or not stage.together or all(p.rows == "fixes" for p in scenario.publications):
            return BUCKETS
        # What is told of a publication is found out after all buckets, where only the mobiles' names are known.
        leaving = "op" in sample.columns or any(p.stay is not None for p in scenario.subscriptions)
        return TOGETHER if leaving and stage.ends else BUCKETS + SHARES
    if stage is not None:
        return TOGETHER
    if bystanders.asked(scenario):
        return VISITS
    # Slices need all of a mobile's cells in its latest row, and instants that can be compared as they are.
    if "fixes" not in data.tables or "op" in sample.columns or not len(sample):
        return TOGETHER
    t = sample["t"].dtype
    if not (pd.api.types.is_integer_dtype(t) or isinstance(t, pd.DatetimeTZDtype)):
        return TOGETHER
    return slices.way(data) or TOGETHER


def run(
    scenario: Scenario,
    fixes: Shards | Raw | DataFrame | None,
    places: Any,
    *,
    zone: str | None,
    until: Any,
    evaluate: Evaluation,
    prepare: Prepare = lambda *_: None,
) -> Outcome:
    """Evaluate a scenario over shards, raw files or a Spark table of fixes."""
    spark = spark_session()
    with Work(spark, _scratch(), "replaying") as work:
        job, plan, counts, said = written(work, scenario, fixes, places, zone, until, evaluate, prepare)
    for warning in _warnings(said):
        warnings.warn(warning, UserWarning, stacklevel=4)
    plan = "\n".join([plan, *map(str, tasks.steps_of(said))])
    direct = any("direct" in one for one in said)
    timelines = spark.read.schema(_spark_schema(job.schema)).parquet(f"{job.scratch}/timelines")
    silent = [p.name for p in scenario.publications if p.transient]
    told = notifications(timelines, silent, prefixed=len(scenario.publications) > 1)
    return Outcome(timelines, told, counts, job.clock, job.metric, job.until, plan, direct)


def written(
    work: Work,
    scenario: Scenario,
    fixes: Shards | Raw | DataFrame | None,
    places: Any,
    zone: str | None,
    until: Any,
    evaluate: Evaluation,
    prepare: Prepare,
) -> tuple[Job, str, dict[str, int], list[Said]]:
    """Timelines in files, how the work for them was shared, what was counted, and all that the tasks said."""
    foretell()
    known = _look_at(work, fixes, zone)
    places = None if places is None else tables.load(places, "places")
    data = tables.inputs(scenario, None if fixes is None else known.sample, places, zone)
    span = _span(data, _times(known, data, zone))
    last = span[1] if until is None else data.clock.ticks(until)
    loaded = {name: tables.load(given, name) for name, given in scenario.tables.items()}
    with _writing(work.scratch):
        shipped = None if places is None else _shipped(places, "places", work.scratch, data.metric)
        further = {
            name: _shipped(table, name, work.scratch, data.metric) if _keeps(table) else table
            for name, table in loaded.items()
        }
    job = Job(
        replace(scenario, tables=further) if further else scenario, known.sample[:1], shipped, zone, span, last,
        data.clock, data.metric, _schema(data), str(work.scratch), evaluate, prepare,
        None if until is None else last,
    )  # fmt: skip
    with _writing(work.scratch):
        pq.write_table(job.schema.empty_table(), work.folder("timelines") / "part-none.parquet")
    how, said = _evaluated(work, job, data, fixes, known)
    others = [
        {**rows.counts, "rows_set_aside": rows.counts["rows_set_aside"] + without_effect(rows, data, span[0])}
        for name, rows in data.tables.items()
        if name != "fixes"
    ]
    chosen = None if scenario.stage is None else scenario.stage.together
    why = (fixes is not None and entangled(scenario)) or chosen or "there are no fixes"
    return job, PLANS[how].format(why=why), _total(said, others), said


def _warnings(said: list[Said]) -> list[str]:
    """What the tasks warned of, each once, with the pairs of all of them.

    >>> _warnings([{"warned": ["all 1,200 pairs are met", "slow"]}, {"warned": ["all 800 pairs are met"]}])
    ['all 2,000 pairs are met', 'slow']
    """
    found: dict[tuple[str, ...], int] = {}
    for text in (text for one in said for text in one.get("warned", ())):
        before, number, *after = [*re.split(r"(?<=\ball )([\d,]+)(?= pairs\b)", text, maxsplit=1), ""]
        kind = (before, *after[:1])  # without a number it is the text alone
        found[kind] = found.get(kind, 0) + int(number.replace(",", "") or 0)
    return [f"{pairs:,}".join(kind) for kind, pairs in found.items()]


def notifications(timelines: DataFrame, silent: Sequence[str], prefixed: bool) -> DataFrame:
    """The notifications that timelines stand for, as `workbench.tables.notifications_frame` makes them, unsorted."""
    from pyspark.sql import functions as f

    told = f.col("ended").isin("unmatch", "publication_removed")
    if silent:
        of_silent = f.split(f.col("publication"), "/")[0].isin(*silent) if prefixed else f.lit(True)
        told &= ~of_silent
    pair = ["publication", "subscription"]
    matches = timelines.select(f.col("tau").alias("t"), f.lit("match").alias("kind"), *pair)
    unmatches = timelines.where(told).select(f.col("pi").alias("t"), f.lit("unmatch").alias("kind"), *pair)
    return matches.unionByName(unmatches)


def save(table: DataFrame, path: Path) -> None:
    """Write a table as Parquet; where that fails, an OSError says why in one line, as for a table of this process."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    # Spark's own default has no zone, and is read back as a local time
    table.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    try:
        table.write.parquet(str(path))
    except (PySparkException, Py4JError) as error:
        raise OSError(_root(str(error))) from None
    if not path.exists():
        raise OSError(f"{path.name} is not there after Spark has written it; all of the cluster has to see the folder")


def _root(trace: str) -> str:
    """What Spark's trace says of the first cause, which stands last.

    >>> _root("SparkException: Aborted.\\nCaused by: java.io.IOException: No space left on device\\n\\tat x")
    'No space left on device'
    """
    told = [line for line in trace.splitlines() if line.strip() and not line.lstrip().startswith(("at ", "..."))]
    causes = [line for line in told if line.lstrip().startswith("Caused by: ")] or told[:1]
    return re.sub(r"^\s*(Caused by: )?([\w.$]+: )?", "", causes[-1])[:300]


# -- jobs --------------------------------------------------------------------------------------------


@dataclass
class Work:
    """Jobs of one replay, in which tasks are numbered and say what they counted."""

    spark: Any
    scratch: Path
    what: str

    def __enter__(self) -> Work:
        (self.scratch / "done").mkdir(exist_ok=True)
        return self

    def __exit__(self, failed: object, *_: object) -> None:
        done = ("done", "exchange", "slices", "visits", "raw")
        for folder in [self.scratch] if failed else [self.scratch / name for name in done]:
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def cores(self) -> int:
        """How many tasks run side by side."""
        return side_by_side(self.spark)

    def folder(self, name: str) -> Path:
        """A folder that tasks write in, gone when the work is done."""
        made = self.scratch / name
        made.mkdir(exist_ok=True)
        return made

    def over(self, task: Callable[[int], Said], count: int) -> list[Said]:
        """Run a task for each number up to a count; what they said, in the order of the numbers."""
        guarded = partial(_guarded, task, str(self.scratch))
        said = self._watched(lambda: on_workers(self.spark, guarded, [[]] * count), count)
        return sorted(said, key=lambda one: one["n"])

    def through(self, table: DataFrame, task: Callable[[int, Iterator[pa.RecordBatch]], Said]) -> list[Said]:
        """Run a task for each part of a table."""
        said = self._watched(table.mapInArrow(_streamed(task, str(self.scratch)), "said string").collect, None)
        return sorted((json.loads(row.said) for row in said), key=lambda one: one["n"])

    def _watched(self, job: Callable[[], list[Any]], count: int | None) -> list[Any]:
        """Wait for a job, with a bar where somebody looks on."""
        if not watched():
            return job()
        # Tasks leave a mark each, which are counted while Spark is waited for: that works on any cluster.
        before = len(os.listdir(self.scratch / "done"))
        with progress(self.what, count, "tasks") as done, ThreadPoolExecutor(1) as pool:
            found, seen = pool.submit(job), 0
            while not wait([found], timeout=0.3).done:
                marks = len(os.listdir(self.scratch / "done")) - before
                done(marks - seen)
                seen = marks
            return found.result()

    def units(self, sizes: Sequence[int]) -> list[list[int]]:
        """Pieces of work put together, so that units are few and alike: the largest goes to who has least."""
        count = min(len(sizes), max(2 * self.cores, -(-sum(sizes) // ROWS_A_TASK)))
        found: list[list[int]] = [[] for _ in range(count)]
        load = [0] * count
        for n in sorted(range(len(sizes)), key=lambda n: -sizes[n]):
            least = load.index(min(load))
            found[least].append(n)
            load[least] += sizes[n] + 1
        return [sorted(unit) for unit in found if unit]


def side_by_side(spark: Any) -> int:
    """How many tasks run side by side, as far as its settings say so; their default says nothing, so Spark is asked."""
    said = int(spark.conf.get("spark.sql.shuffle.partitions") or UNSAID)
    return _parallelism(spark) if said == UNSAID else said


@lru_cache(maxsize=1)
def _parallelism(spark: Any) -> int:
    """In how many parts Spark puts what it makes itself: as many as there are cores."""

    def once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"part": [1]})
            break

    return len(spark.range(100_000).mapInArrow(once, "part long").collect())


def on_workers(spark: Any, work: Callable[[str, list[str]], Said], units: Sequence[list[str]]) -> list[Said]:
    """One Spark job with a task for each unit, a list of texts: what each of them said, in no order."""
    if not units:
        return []

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for n in batch["id"].to_pylist():
                yield _line(work(f"{n:05d}", units[n]))

    said = spark.range(0, len(units), 1, len(units)).mapInArrow(task, "said string").collect()
    return [json.loads(row.said) for row in said]


def _streamed(
    task: Callable[[int, Iterator[pa.RecordBatch]], Said], scratch: str
) -> Callable[..., Iterator[pa.RecordBatch]]:
    def run_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        number = f"{context.partitionId() if context else 0:05d}"
        yield _line(_guarded(lambda n: task(n, batches), scratch, number, []))

    return run_all


def _line(said: Said) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"said": [json.dumps(said)]})


def _guarded(task: Callable[[int], Said], scratch: str, number: str, _: list[str]) -> Said:
    """What a task says; a mistake in the data goes back as a sentence, not as a traceback of Spark's."""
    n = int(number)
    try:
        with _writing(scratch):
            said = {**task(n), "worker_peak_mib": tasks.peak_mib()}
            _keep_imports()
            (Path(scratch) / "done" / f"{time.time_ns()}-{number}").touch()
    except WorkbenchError as error:
        said = {"error": str(error)}
    return {"n": n, **said}


@contextmanager
def _writing(folder: str | Path) -> Iterator[None]:
    """A disk that takes no more is one sentence that names the folder."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{str(folder)!r} cannot be written: {error}") from None


def _keep_imports() -> None:
    """Set apart what was imported: Spark's worker looks through all objects after each task, longer than some take."""
    global _imported
    if _imported != len(sys.modules):
        gc.collect()
        gc.freeze()
        _imported = len(sys.modules)


def _total(said: list[Said], others: Sequence[Mapping[str, int]]) -> dict[str, int]:
    names = ("rows_in", "rows_collapsed", "rows_set_aside", "timelines", "unmatches")
    counts = {name: sum(one.get(name, 0) for one in (*said, *others)) for name in names}
    return {**counts, "worker_peak_mib": max((one.get("worker_peak_mib", 0) for one in said), default=0)}


def _good(said: list[Said]) -> list[Said]:
    errors = sorted({one["error"] for one in said if "error" in one})
    if errors:
        raise DataError("; ".join(errors[:3]))
    return said


def over_files(
    files: Sequence[str],
    task: Callable[[Sequence[str]], Iterator[pa.Table]],
    schema: pa.Schema,
    out: str | Path | None = None,
) -> DataFrame:
    """What a task makes of each share of some files, as a table of Spark's: tasks read and write files themselves."""
    spark = spark_session()
    folder = _scratch() / "made" if out is None else Path(out).absolute()
    folder.mkdir(parents=True)
    pq.write_table(schema.empty_table(), folder / "part-none.parquet")
    count = min(len(files), side_by_side(spark))

    def work(unit: str, share: list[str]) -> Said:
        draft, rows = folder / f".{unit}-{os.getpid()}", 0
        with pq.ParquetWriter(draft, schema) as writer:
            for made in task(share):
                writer.write_table(made)
                rows += len(made)
        os.replace(draft, folder / f"part-{unit}.parquet")
        return {"rows": rows}

    on_workers(spark, work, [list(files[number::count]) for number in range(count)])
    return spark.read.parquet(str(folder))


# -- from fixes to timelines -------------------------------------------------------------------------------


def _evaluated(
    work: Work, job: Job, data: tables.Inputs, fixes: Shards | Raw | DataFrame | None, known: Known
) -> tuple[str, list[Said]]:
    """Run the tasks; how the work was shared, and what each of them counted."""
    if fixes is None:  # everything is in the scenario's own tables
        shares = _shares(work, data)
        return (SHARES, _by_share(work, job, shares)) if shares > 1 else (TOGETHER, _together(work, job, []))
    how = spread(data, known.sample)
    if how == TOGETHER or not known.rows:
        return TOGETHER, _together(work, job, _buckets(work, fixes, known, together=True))
    if how in (slices.MOMENTS, slices.MEETINGS) and known.groups:
        try:
            return ENCOUNTERS, _by_encounter(work, job, data, known)
        except Unusual:
            _undo(work)
    buckets = _buckets(work, fixes, known, together=False)
    if how == BUCKETS:
        return how, _by_bucket(work, job, buckets)
    if how == BUCKETS + SHARES:
        return how, _staged_after(work, job, buckets)
    try:
        if how == VISITS:
            return how, _by_visits(work, job, buckets)
        return how, _by_slice(work, job, data, how, buckets, known)
    except Unusual:
        _undo(work)
        return TOGETHER, _together(work, job, buckets)


def _undo(work: Work) -> None:
    """Nothing that a way left behind which was given up: the next one looks into the same folders."""
    shutil.rmtree(work.scratch / "slices", ignore_errors=True)
    for file in (work.scratch / "timelines").glob("part-*-*"):
        file.unlink()


class Unusual(Exception):
    """Data of which a part cannot be looked at by itself after all."""


def _together(work: Work, job: Job, buckets: list[Bucket]) -> list[Said]:
    return _good(work.over(lambda n: tasks.timelines_of_buckets(job, n, buckets, together=True), 1))


def _by_bucket(work: Work, job: Job, buckets: list[Bucket]) -> list[Said]:
    units = [[buckets[n] for n in unit] for unit in work.units([bucket.rows for bucket in buckets])]
    return _good(work.over(lambda n: tasks.timelines_of_buckets(job, n, units[n]), len(units)))


def _shares(work: Work, data: tables.Inputs) -> int:
    """In how many shares publications can be looked at that are rows of tables; 1 where they ask for each other."""
    scenario, published = data.scenario, {p.rows for p in data.scenario.publications}
    others = {p.rows for p in scenario.subscriptions} | {p.profiles for p in scenario.populations}
    if "" in published or published & others or any(scenario.looked_at(p) for p in scenario.populations):
        return 1
    rows = sum(len(data.tables[name].frame) for name in published)
    return int(min(max(work.cores, -(-rows // ROWS_A_BUCKET)), rows))


def _by_share(work: Work, job: Job, shares: int) -> list[Said]:
    return _good(work.over(lambda n: tasks.timelines_of_share(job, n, shares), shares))


def _staged_after(work: Work, job: Job, buckets: list[Bucket]) -> list[Said]:
    """First who could be told, bucket by bucket; then who is, publication by publication."""
    raw = replace(job, scenario=replace(job.scenario, stage=None), folder="raw")
    work.folder("raw")
    said = [{**one, "timelines": 0, "unmatches": 0} for one in _by_bucket(work, raw, buckets)]
    shares = work.cores
    return said + _good(work.over(lambda n: tasks.stage_of_share(job, n, shares, raw.folder), shares))


def _by_visits(work: Work, job: Job, buckets: list[Bucket]) -> list[Said]:
    """First what third parties did, of each bucket; then, knowing all of it, the buckets."""
    wanted = bystanders.asked(job.scenario) or []
    units = [[buckets[n] for n in unit] for unit in work.units([bucket.rows for bucket in buckets])]
    folder = str(work.folder("visits"))
    seen = _usual(work.over(lambda n: tasks.visits_of_buckets(job, n, units[n], wanted, folder), len(units)))
    left = []
    for unit, one in zip(units, seen, strict=True):
        if "rows_left" not in one:
            left += unit
        elif one["rows_left"]:
            left.append(Bucket((one["fixes"],), one["rows_left"]))
    return [*seen, *_by_bucket(work, tasks.with_visits(job, wanted, folder), left)]


def _by_encounter(work: Work, job: Job, data: tables.Inputs, known: Known) -> list[Said]:
    """First where everybody was before each slice of time, then the slices, then what goes on over their borders."""
    times, groups = _times(known, data, job.zone), [group for group in known.groups if group.rows]
    cuts, windows = _windows(work, job, known, times)
    every = [*windows, *(slices.Window(int(a), int(b), False, True) for a, b in pairwise(cuts[len(windows) :]))]
    read: list[list[exchange.Group]] = []
    if len(times) == len(groups):  # each row group by itself says from when to when it is
        read = [[g for g, (low, high, _) in zip(groups, times) if low < w.high and high >= w.low] for w in every]
    laid = not read or sum(g.rows for some in read for g in some) > MOST_READ * known.rows
    given = encountered.asked(job.scenario, known.schema, cuts, laid, str(work.folder("slices")))
    if given is None or set(data.tables) != {"fixes"}:
        raise Unusual
    units = [[groups[n] for n in unit] for unit in work.units([group.rows for group in groups])]
    seen = _usual(work.over(lambda n: encountered.last_seen(given, n, units[n]), len(units)))
    last, rows = ([one.pop(name) for one in seen] for name in ("last", "rows"))
    found = _usual(
        work.over(
            lambda n: encountered.slice_of_time(job, given, n, every[n], last, rows if laid else read[n]),
            len(every),
        )
    )
    over = sum(one["over"] for one in found)
    shares = min(max(1, -(-over // ROWS_A_BUCKET)), over)
    return [*seen, *found, *_usual(
        work.over(lambda n: encountered.over_borders(job, given, n, shares, len(windows)), shares)
    )]  # fmt: skip


def _windows(work: Work, job: Job, known: Known, times: np.ndarray) -> tuple[np.ndarray, list[slices.Window]]:
    """Where time is cut, and the slices up to the end of the replay."""
    cuts = _cuts(times, max(work.cores, -(-known.rows // ROWS_A_BUCKET)))
    windows = [
        slices.Window(int(low), int(high), n == 0, n + 2 == len(cuts) or high > job.until)
        for n, (low, high) in enumerate(pairwise(cuts))
        if low <= job.until
    ]
    if not windows:
        raise Unusual
    return cuts, windows


def _by_slice(
    work: Work, job: Job, data: tables.Inputs, way: str, buckets: list[Bucket], known: Known
) -> list[Said]:
    """First the fixes into slices of time, then the slices, then what goes on from one slice to another."""
    cuts, windows = _windows(work, job, known, _times(known, data, job.zone))
    units = [[buckets[n] for n in unit] for unit in work.units([bucket.rows for bucket in buckets])]
    folder, parts = str(work.folder("slices")), len(cuts) - 1
    cut = _usual(work.over(lambda n: tasks.cut_into_slices(job, n, units[n], cuts, folder), len(units)))
    files = [one["file"] for one in cut]
    found = _usual(
        work.over(lambda n: tasks.slice_of_time(job, n, way, files, windows, parts, folder), len(windows))
    )
    over = sum(one.get("over", 0) for one in found)
    shares = min(max(work.cores, -(-over // ROWS_A_BUCKET)), over)
    pairs = len(job.scenario.publications) * len(job.scenario.subscriptions)
    last = _usual(work.over(lambda n: tasks.across_slices(job, n, way, shares, folder, pairs), shares))
    return [*cut, *found, *last]


def _usual(said: list[Said]) -> list[Said]:
    if any("unusual" in one for one in _good(said)):
        raise Unusual
    return said


def _cuts(times: np.ndarray, count: int) -> np.ndarray:
    """Where to cut time into slices that have about as many rows each; rows of first, last, how many between.

    >>> _cuts(np.array([[1, 100, 50], [50, 100, 50]]), 2).tolist()
    [1, 68, 101]
    """
    low, high, rows = times.T.astype(float)
    at = np.unique(np.concatenate([low, high + 1]))
    share = np.clip((at[:, None] - low) / (high + 1 - low), 0, 1) @ rows
    cuts = np.interp(np.linspace(0, share[-1], count + 1), share, at)
    return np.unique(np.append(np.ceil(cuts[:-1]).astype(np.int64), int(times[:, 1].max()) + 1))


def _times(known: Known, data: tables.Inputs, zone: str | None) -> np.ndarray:
    """First and last instant of parts of the fixes, in ticks, and how many rows these have."""
    ends = _ticks(pd.Series([end for low, high, _ in known.times for end in (low, high)]), data.clock, zone)
    return np.stack([ends[::2], ends[1::2], [rows for *_, rows in known.times]], axis=1)


def _buckets(work: Work, fixes: Shards | Raw | DataFrame, known: Known, together: bool) -> list[Bucket]:
    """The fixes by mobile, in so many parts as there are tasks for; in any parts where they stay together."""
    if isinstance(fixes, Raw) and together:
        return [Bucket(fixes.files, known.rows)]
    if isinstance(fixes, Raw):
        return _exchanged(work, fixes, known)
    if isinstance(fixes, Sequence):
        return [Bucket(tuple(shard), rows) for shard, rows in zip(fixes, known.shards, strict=True) if shard]
    parts, target = max(work.cores, -(-known.rows // ROWS_A_BUCKET)), str(work.folder("exchange"))
    said = _good(work.through(fixes.repartition(parts, "mobile"), lambda n, rows: _laid_down(target, n, rows)))
    return [Bucket((one["file"],), one["rows"], 0, 1) for one in said if one["rows"]]


def _laid_down(folder: str, n: int, batches: Iterator[pa.RecordBatch]) -> Said:
    """Rows that Spark hands over, in a file."""
    target, rows = Path(folder) / f"table-{n:05d}.arrow", 0
    draft = target.with_name(f".{target.name}-{os.getpid()}")
    first = next(batches, None)
    if first is None:
        return {"rows": 0}
    with pa.OSFile(str(draft), "wb") as sink, pa.ipc.new_file(sink, first.schema) as out:
        for batch in (first, *batches):
            out.write_batch(batch)
            rows += batch.num_rows
    os.replace(draft, target)
    return {"file": str(target), "rows": rows}


def _exchanged(work: Work, fixes: Raw, known: Known) -> list[Bucket]:
    """Raw rows by mobile."""
    parts = max(2 * work.cores, -(-known.rows // ROWS_A_BUCKET))
    units = [[known.groups[n] for n in unit] for unit in work.units([group.rows for group in known.groups])]
    schema, bucket_of, target = known.schema, fixes.bucket_of, str(work.folder("exchange"))

    def lay(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        mobile = table["mobile"]
        # rows of nobody are refused wherever they are evaluated
        part = np.zeros(len(table), np.int64) if mobile.null_count else bucket_of(mobile, parts)
        return exchange.by_part(part, parts)

    def task(n: int) -> Said:
        file = Path(target) / f"part-{n:05d}.arrow"
        exchange.scatter(exchange.rows_of(units[n], schema), schema, lay, parts, file)
        return {"file": str(file)}

    files = tuple(one["file"] for one in _good(work.over(task, len(units))))
    return [Bucket(files, known.rows // parts, part, parts) for part in range(parts)]


# -- what is known before the tasks run ----------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """A few rows, for what can be wrong at once; how many rows, and where and when."""

    sample: pd.DataFrame
    rows: int
    shards: Sequence[int] = ()
    groups: Sequence[exchange.Group] = ()
    schema: pa.Schema | None = None
    times: Sequence[tuple[Any, Any, int]] = ()
    """of parts of the rows: the first and the last instant, and how many there are"""


def _look_at(work: Work, fixes: Shards | Raw | DataFrame | None, zone: str | None) -> Known:
    if fixes is None:
        return Known(pd.DataFrame(), 0)
    if not isinstance(fixes, Raw | Sequence):
        return _look_at_table(work, fixes, zone)
    shards: Shards = [fixes.files] if isinstance(fixes, Raw) else fixes
    files = [file for shard in shards for file in shard]
    if not files:
        return Known(pd.DataFrame(), 0)
    schema = _signed(exchange.schema_of(files, plainly=isinstance(fixes, Raw)), files)
    groups, times, sample = exchange.groups_of(files), [], schema.empty_table()
    for file in files:
        with exchange.opened(file) as source:
            try:
                times += _ends(source, zone)
                if not len(sample):
                    sample = exchange.conform(
                        next((pa.Table.from_batches([b]) for b in source.iter_batches(batch_size=100)), sample), schema
                    )
            except (OSError, pa.ArrowInvalid) as error:
                raise DataError(f"{file!r} cannot be read: {error}") from None
    each = dict.fromkeys(files, 0)
    for group in groups:
        each[group.file] += group.rows
    rows = [sum(each[file] for file in shard) for shard in shards]
    return Known(sample.to_pandas(), sum(rows), rows, groups, schema, times)


def _look_at_table(work: Work, fixes: DataFrame, zone: str | None) -> Known:
    from pyspark.sql import functions as f

    sample = tables.load(fixes.limit(100))
    if "t" not in fixes.columns:
        return Known(sample, len(sample))
    found = tables.load(fixes.agg(f.min("t").alias("low"), f.max("t").alias("high"), f.count("*").alias("rows")))
    low, high, rows = found.iloc[0]
    times = [] if pd.isna(low) else [(low, high, int(rows))]
    if isinstance(low, str):
        said = _good(work.through(fixes.select("t"), lambda n, batches: {"times": _times_of_text(batches, zone)}))
        times = [time for one in said for time in one["times"]]
    return Known(sample, int(rows), times=times)


def _signed(schema: pa.Schema, files: Sequence[str]) -> pa.Schema:
    """Ids without a sign as `tables` have them: whole numbers, or text where one is too large for all to be that."""
    place = schema.get_field_index("mobile")
    if place < 0 or not pa.types.is_uint64(schema.field(place).type):
        return schema
    large = False
    for file in files:
        with exchange.opened(file) as source:
            columns = (batch["mobile"] for batch in source.iter_batches(columns=["mobile"]))
            large |= any((pc.max(column).as_py() or 0) >= 2**63 for column in columns)
    return schema.set(place, pa.field("mobile", pa.string() if large else pa.int64()))


def _ends(opened: pq.ParquetFile, zone: str | None) -> list[tuple[Any, Any, int]]:
    """The first and the last t of a file's row groups, and how many rows they have.

    From their statistics, but for text, of which these know the order of its signs and not that of the instants.
    """
    if "t" not in opened.schema_arrow.names:
        return []
    kind, found = opened.schema_arrow.field("t").type, []
    ordered = pa.types.is_integer(kind) or pa.types.is_timestamp(kind)
    for number in range(opened.metadata.num_row_groups):
        group = opened.metadata.row_group(number)
        columns = (group.column(place) for place in range(group.num_columns))
        known = next(column.statistics for column in columns if column.path_in_schema == "t") if ordered else None
        ends: tuple[Any, Any] | None
        if known is not None and known.has_min_max:
            ends = known.min, known.max
        else:
            ends = _earliest_and_latest(opened.read_row_group(number, columns=["t"])["t"], zone)
        if group.num_rows and ends is not None:
            found.append((*ends, group.num_rows))
    return found


def _earliest_and_latest(column: pa.Array | pa.ChunkedArray, zone: str | None) -> tuple[Any, Any] | None:
    """The first and the last instant of a column, as they are written there."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    known = column.unique().drop_null().to_pandas()
    if not len(known):
        return None
    try:
        ticks = tables.ticks_of(known, zone, Clock())[0].to_numpy(np.int64)
    except DataError as error:
        raise DataError(f"fixes: {error}") from None
    return known.iloc[ticks.argmin()], known.iloc[ticks.argmax()]


def _times_of_text(batches: Iterator[pa.RecordBatch], zone: str | None) -> list[tuple[str, str, int]]:
    """The first and the last instants of the batches of a column of text, and how many rows they have."""
    found = [(_earliest_and_latest(batch["t"], zone), batch.num_rows) for batch in batches]
    return [(*ends, rows) for ends, rows in found if ends is not None]


def _span(data: tables.Inputs, times: np.ndarray) -> tuple[int, int]:
    """The first and the last instant of all tables; of parts of the fixes these are known."""
    known = tables.ends_of({name: rows for name, rows in data.tables.items() if name != "fixes"})
    if len(times):
        known.append((int(times[:, 0].min()), int(times[:, 1].max())))
    return (min(a for a, _ in known), max(b for _, b in known)) if known else (0, 0)


def _ticks(column: pd.Series, clock: Clock, zone: str | None) -> np.ndarray:
    """Instants of the fixes in ticks."""
    if clock.unit is not None and column.dtype != object:
        column = column.dt.as_unit(clock.unit)
    return tables.ticks_of(column, zone, clock)[0].to_numpy(np.int64)


def _schema(data: tables.Inputs) -> pa.Schema:
    """The types of the timelines: ids as they came, instants as the fixes tell them."""
    unit = data.clock.unit
    instant = pa.int64() if unit is None else pa.timestamp("us" if unit == "ns" else unit, tz="UTC")
    sides = {
        role: _id_type(data, populations)
        for role, populations in (
            ("publication", data.scenario.publications),
            ("subscription", data.scenario.subscriptions),
        )
    }
    return pa.schema([*sides.items(), ("tau", instant), ("pi", instant), ("ended", pa.string())])


def _id_type(data: tables.Inputs, populations: Sequence[Population]) -> pa.DataType:
    if len(populations) > 1 or populations[0].single:
        return pa.string()
    ids = data.tables[populations[0].rows].frame["id"]
    if pd.api.types.is_float_dtype(ids):
        return pa.float64()
    if pd.api.types.is_bool_dtype(ids):
        return pa.bool_()
    return pa.int64() if pd.api.types.is_integer_dtype(ids) else pa.string()


def _keeps(frame: pd.DataFrame) -> bool:
    """Whether Parquet gives back a table as it was: sets, and ids of different types, it does not."""
    objects = [column.dropna() for _, column in frame.items() if column.dtype == object]
    return all(isinstance(value, str) for column in objects for value in column)


def _shipped(frame: pd.DataFrame, name: str, scratch: Path, metric: str) -> str:
    """A table as one file that every worker can read."""
    if "geometry" in frame.columns:
        frame = tables.in_metric(frame, name, metric)
        frame = frame.assign(geometry=[getattr(g, "wkb", None) for g in frame["geometry"]])
    target = scratch / f"{name}.parquet"
    pd.DataFrame(frame).to_parquet(target, index=False)
    return str(target)


def _spark_schema(schema: pa.Schema) -> str:
    """The columns of timelines in Spark's words."""
    instant = "long" if pa.types.is_integer(schema.field("tau").type) else "timestamp"
    kinds = {pa.int64(): "long", pa.float64(): "double", pa.bool_(): "boolean"}
    sides = ", ".join(f"{role} {kinds.get(schema.field(role).type, 'string')}" for role in schema.names[:2])
    return f"{sides}, tau {instant}, pi {instant}, ended string"


# -- where fixes come from ---------------------------------------------------------------------------------


def raw(path: Path, bucket_of: BucketOf) -> Raw:
    """A Parquet file or folder, as it is."""
    if not path.exists():
        raise DataError(f"fixes: there is no file or folder {str(path)!r}")
    return Raw(tuple(tables.parquet_files(path)), bucket_of)


def text(path: Path, bucket_of: BucketOf) -> Raw:
    """A CSV as a Parquet file of the scratch folder, written in bounded memory."""
    folder, pieces = _scratch(), tables.in_pieces(path, "fixes")
    target = folder / "fixes.parquet"
    first = next(pieces)
    try:
        with pq.ParquetWriter(target, first.schema) as file, progress("reading", unit="rows") as done:
            for piece in chain([first], pieces):
                file.write_table(piece)
                done(piece.num_rows)
    except OSError as error:
        raise DataError(f"{str(folder)!r} cannot be written: {error}") from None
    return raw(target, bucket_of)


def sharded(fixes: pd.DataFrame, bucket_of: BucketOf) -> Shards:
    """A table of this process as files of whole mobiles, so that workers read them."""
    buckets = max(2, -(-len(fixes) // ROWS_A_BUCKET))
    whole = "mobile" not in fixes.columns or fixes["mobile"].isna().any() or fixes.empty
    folder = _scratch() / "fixes"
    folder.mkdir()
    shards = []
    try:
        fixes = fixes if whole else fixes.assign(mobile=_plain_ids(fixes["mobile"]))
        numbers = [0] * len(fixes) if whole else bucket_of(pa.array(fixes["mobile"]), buckets)
        with _writing(folder.parent):
            for number, part in fixes.groupby(numbers) if len(fixes) else [(0, fixes)]:
                file = folder / f"bucket-{number:05d}.parquet"
                part.to_parquet(file, index=False)
                shards.append([str(file)])
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"fixes: Spark needs one type in each column: {error}") from None
    return shards


def _plain_ids(mobile: pd.Series) -> pd.Series:
    """Ids as `tables` have them: numbers or text."""
    if pd.api.types.is_signed_integer_dtype(mobile) or pd.api.types.infer_dtype(mobile) in ("string", "floating"):
        return mobile
    codes, known = pd.factorize(mobile)
    ids = tables.read({"mobile": known, "t": np.arange(len(known))}, "fixes").frame["id"]
    return ids.take(codes).set_axis(mobile.index)


def rows_of(fixes: Shards | Raw | DataFrame | None, mobiles: Sequence[Any] | None) -> pd.DataFrame | None:
    """The fixes of the mobiles that are named, or all of them, in this process."""
    if fixes is None:
        return None
    names = None if mobiles is None else [str(m) for m in mobiles]
    if not isinstance(fixes, Raw | Sequence):
        from pyspark.sql import functions as f

        return tables.load(fixes if names is None else fixes.where(f.col("mobile").cast("string").isin(names)))
    import pyarrow.dataset as ds

    files = list(fixes.files) if isinstance(fixes, Raw) else [file for shard in fixes for file in shard]
    found = ds.dataset(files, format="parquet")
    kind = found.schema.field("mobile").type
    if names is None or pa.types.is_integer(kind) or is_text(kind):
        wanted = None if names is None else pc.field("mobile").cast(pa.string()).isin(names)
        return found.to_table(filter=wanted).to_pandas()
    # Arrow writes others in its own way
    parts = [batch.to_pandas() for batch in found.to_batches()] or [found.schema.empty_table().to_pandas()]
    return pd.concat([part[_plain_ids(part["mobile"]).astype(str).isin(names)] for part in parts])


def _scratch() -> Path:
    """A folder for what the tasks write, gone with this process."""
    base = os.environ.get("WORKBENCH_SCRATCH")
    master = spark_session().conf.get("spark.master") or ""
    if base is None and not master.startswith("local"):
        warnings.warn(
            f"Spark runs on {master!r}, whose workers have to see {tempfile.gettempdir()!r}; set WORKBENCH_SCRATCH "
            "to a folder on storage that all of them share (docs/cluster.md)",
            stacklevel=4,
        )
    with _writing(base or tempfile.gettempdir()):
        made = Path(tempfile.mkdtemp(prefix="workbench-replay-", dir=base)).absolute()
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made
