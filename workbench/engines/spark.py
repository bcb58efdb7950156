"""The Spark engine: the same evaluation, a bucket of mobiles at a time, on a cluster.

What a mobile is told depends on its own rows and on the tables that are not fixes. So where a scenario never looks
from one mobile at another one (`entangled` says where it does), the fixes are evaluated bucket by bucket: a task reads
its bucket as Arrow, *inside the Python worker*, so that no row passes the JVM, runs the in-process evaluation that it
was given, and writes its timelines as Parquet. A scenario that looks at other mobiles (friends, the last n cars) is
evaluated in one task.

Fixes come as *shards*, lists of Parquet files with whole mobiles in them (ingested data), or as a Spark table, which
is first shuffled by mobile. Tasks may be retried: a file of timelines takes its name only when it is whole.

No RDDs and nothing of the JVM's inside, so the same code runs over Spark Connect. A cluster needs this package on its
workers and a scratch folder that all of them see (``WORKBENCH_SCRATCH``).
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from workbench import tables
from workbench.errors import DataError, WorkbenchError
from workbench.model.clock import Clock
from workbench.model.pubsub import Population
from workbench.model.scenario import Scenario
from workbench.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Evaluation = Callable[[tables.Inputs, int], tuple[pd.DataFrame, dict[str, int]]]
Direct = Callable[[Scenario, Any, Any, str | None, Any], Any]
"""a replay from a file to timelines without a table in between, or None where it does not apply"""
Shards = Sequence[Sequence[str]]
ROWS_A_TASK = 2_000_000


@dataclass(frozen=True)
class Job:
    """What every task has to know; it travels to the workers."""

    scenario: Scenario
    places: str | None
    zone: str | None
    span: tuple[int, int]
    until: int
    schema: pa.Schema
    scratch: str
    evaluate: Evaluation
    direct: Direct
    ends: Any
    """``until`` as the data writes it"""
    stop: int | None
    """``until`` where it was asked for"""


@dataclass(frozen=True)
class Outcome:
    """Timelines and notifications as Spark tables, and what was counted."""

    timelines: DataFrame
    notifications: DataFrame
    counts: dict[str, int]
    clock: Clock
    metric: str
    until: int


def entangled(scenario: Scenario) -> str | None:
    """Why the mobiles of a scenario cannot be evaluated one by one, or None where they can.

    >>> from workbench.scenarios import named
    >>> entangled(named("proximity")()) is None
    True
    """
    if scenario.stage is not None and scenario.stage.together:
        return scenario.stage.together
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


def run(
    scenario: Scenario,
    fixes: Shards | DataFrame | None,
    places: Any,
    *,
    zone: str | None,
    until: Any,
    evaluate: Evaluation,
    direct: Direct = lambda *_: None,
) -> Outcome:
    """Evaluate a scenario over shards or a Spark table of fixes."""
    spark = spark_session()
    scratch = _scratch()
    known = _look_at(fixes)
    data = tables.inputs(scenario, known.sample, places, zone)
    span = _span(data, known.ends, zone)
    last = span[1] if until is None else data.clock.ticks(until)
    shipped, ends = _shipped(places, scratch, data.metric), data.clock.shown(last)
    stop = None if until is None else last
    job = Job(scenario, shipped, zone, span, last, _schema(data), str(scratch), evaluate, direct, ends, stop)
    (scratch / "timelines").mkdir()
    pq.write_table(job.schema.empty_table(), scratch / "timelines" / "part-none.parquet")
    counts = _total(_evaluated(spark, job, fixes, known.rows))
    timelines = spark.read.parquet(str(scratch / "timelines"))
    silent = [p.name for p in scenario.publications if p.transient]
    told = notifications(timelines, silent, prefixed=len(scenario.publications) > 1)
    return Outcome(timelines, told, counts, data.clock, data.metric, last)


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


# -- tasks -------------------------------------------------------------------------------------------


def _evaluated(spark: Any, job: Job, fixes: Shards | DataFrame | None, rows: int) -> list[dict[str, Any]]:
    """Run the tasks; what each of them counted."""
    together = entangled(job.scenario)
    if fixes is None:  # everything is in the scenario's own tables: one task
        return on_workers(spark, partial(_guarded, job), [[]])
    if isinstance(fixes, Sequence):
        units = [[f for shard in fixes for f in shard]] if together else [list(shard) for shard in fixes]
        return on_workers(spark, partial(_guarded, job), [files for files in units if files])
    parts = 1 if together else max(int(spark.conf.get("spark.sql.shuffle.partitions")), -(-rows // ROWS_A_TASK))
    said = fixes.repartition(parts, "mobile").mapInArrow(_table_task(job), "said string").collect()
    return [json.loads(row.said) for row in said]


def on_workers(
    spark: Any, work: Callable[[str, list[str]], dict[str, Any]], units: Sequence[list[str]]
) -> list[dict[str, Any]]:
    """One Spark job with a task for each unit, a list of texts: what each of them said, in no order."""
    if not units:
        return []

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (number for batch in batches for number in batch["id"].to_pylist()):
            yield _said(work(f"{number:05d}", units[number]))

    # a range has one number in each of its parts; hashed numbers would meet in some and leave others empty
    numbers = spark.range(0, len(units), 1, len(units))
    return [json.loads(row.said) for row in numbers.mapInArrow(task, "said string").collect()]


def _table_task(job: Job) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        held = list(batches)
        if sum(batch.num_rows for batch in held):
            context = TaskContext.get()
            unit = f"{context.partitionId() if context else 0:05d}"
            table = pa.Table.from_batches(held)
            # Sorted and in a file of its own, a partition is like a bucket of ingested data.
            file = Path(job.scratch) / f"shuffled-{unit}-{os.getpid()}.parquet"
            order = [(name, "ascending") for name in ("mobile", "t") if name in table.column_names]
            pq.write_table(table.sort_by(order), file, compression="none")
            try:
                yield _said(_guarded(job, unit, [str(file)]))
            finally:
                file.unlink(missing_ok=True)

    return task


def _read(files: Sequence[str]) -> pa.Table:
    found = []
    for file in files:
        try:
            found.append(pq.read_table(file))
        except (OSError, pa.ArrowInvalid) as error:
            raise DataError(f"{file!r} cannot be read: {error}") from None
    return pa.concat_tables(found, promote_options="permissive")


def _guarded(job: Job, unit: str, files: Sequence[str]) -> dict[str, Any]:
    """One unit of work; a mistake in the data goes back as a sentence, not as a traceback of Spark's."""
    try:
        timelines, counts = _timelines(job, files)
        written = pa.Table.from_pandas(timelines, schema=job.schema, preserve_index=False)
        target = Path(job.scratch) / "timelines" / f"part-{unit}.parquet"
        draft = target.with_name(f".{unit}-{os.getpid()}")
        pq.write_table(written, draft)
        os.replace(draft, target)
    except WorkbenchError as error:
        return {"error": str(error)}
    except OSError as error:
        return {"error": f"{job.scratch!r} cannot be written: {error}"}
    told = timelines["ended"].isin(["unmatch", "publication_removed"]) & ~_silent(job.scenario, timelines)
    return {**counts, "timelines": len(timelines), "unmatches": int(told.sum())}


def _timelines(job: Job, files: Sequence[str]) -> tuple[pd.DataFrame, dict[str, int]]:
    """The timelines of some files' mobiles, and what was counted of their rows."""
    found = job.direct(job.scenario, files[0], _places(job.places), job.zone, job.ends) if len(files) == 1 else None
    if found is not None:
        return found.timelines, {"rows_in": found.fixes, "rows_collapsed": 0, "rows_set_aside": 0}
    data = tables.inputs(job.scenario, _read(files) if files else None, _places(job.places), job.zone)
    timelines, counts = job.evaluate(replace(data, span=job.span), job.until)
    timelines = data.staged(timelines, job.stop)
    rows = {name: int(count) for name, count in data.tables["fixes"].counts.items()} if "fixes" in data.tables else {}
    rows["rows_set_aside"] = rows.get("rows_set_aside", 0) + int(counts.get("rows_set_aside", 0))
    return timelines, rows


def _silent(scenario: Scenario, timelines: pd.DataFrame) -> pd.Series:
    """Which rows are of transient publications, whose end is not told."""
    silent = [p.name for p in scenario.publications if p.transient]
    if len(scenario.publications) == 1:
        return pd.Series(bool(silent), index=timelines.index)
    return timelines["publication"].astype(str).str.split("/", n=1).str[0].isin(silent)


def _said(counts: Mapping[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"said": [json.dumps(counts)]})


@lru_cache(maxsize=4)
def _places(path: str | None) -> pd.DataFrame | None:
    """The places, read once in each worker."""
    return None if path is None else tables.load(path)


def _total(said: list[dict[str, Any]]) -> dict[str, int]:
    errors = sorted({one["error"] for one in said if "error" in one})
    if errors:
        raise DataError("; ".join(errors[:3]))
    names = ("rows_in", "rows_collapsed", "rows_set_aside", "timelines", "unmatches")
    return {name: sum(one.get(name, 0) for one in said) for name in names}


def over_files(
    files: Sequence[str],
    task: Callable[[Sequence[str]], Iterator[pa.Table]],
    schema: pa.Schema,
    out: str | Path | None = None,
) -> DataFrame:
    """What a task makes of each share of some files, as a table of Spark's: tasks read and write files themselves."""
    spark = spark_session()
    folder = _scratch() / "made" if out is None else Path(out)
    folder.mkdir(parents=True)
    pq.write_table(schema.empty_table(), folder / "part-none.parquet")
    tasks = min(len(files), int(spark.conf.get("spark.sql.shuffle.partitions") or 2))

    def work(unit: str, share: list[str]) -> dict[str, Any]:
        draft, rows = folder / f".{unit}-{os.getpid()}", 0
        with pq.ParquetWriter(draft, schema) as writer:
            for made in task(share):
                writer.write_table(made)
                rows += len(made)
        os.replace(draft, folder / f"part-{unit}.parquet")
        return {"rows": rows}

    on_workers(spark, work, [list(files[number::tasks]) for number in range(tasks)])
    return spark.read.parquet(str(folder))


# -- what is known before the tasks run ----------------------------------------------------------------


@dataclass(frozen=True)
class Known:
    """A few rows, for everything that can be wrong at once; the first and the last instant; how many rows."""

    sample: pd.DataFrame | None
    ends: tuple[Any, Any] | None
    rows: int


def _look_at(fixes: Shards | DataFrame | None) -> Known:
    if fixes is None:
        return Known(None, None, 0)
    if not isinstance(fixes, Sequence):
        return _look_at_table(fixes)
    files = [file for shard in fixes for file in shard]
    ends, rows, sample = [], 0, pd.DataFrame()
    for file in files:
        try:
            with pq.ParquetFile(file) as opened:
                ends += _ends(opened)
                if not rows:
                    sample = opened.schema_arrow.empty_table().to_pandas()
                    sample = next((b.to_pandas() for b in opened.iter_batches(batch_size=100)), sample)
                rows += opened.metadata.num_rows
        except (OSError, pa.ArrowInvalid) as error:
            raise DataError(f"{file!r} cannot be read: {error}") from None
    return Known(sample, (min(ends), max(ends)) if ends else None, rows)


def _look_at_table(fixes: DataFrame) -> Known:
    from pyspark.sql import functions as f

    sample = tables.load(fixes.limit(100))
    if "t" not in fixes.columns:
        return Known(sample, None, len(sample))
    found = tables.load(fixes.agg(f.min("t").alias("low"), f.max("t").alias("high"), f.count("*").alias("rows")))
    low, high, rows = found.iloc[0]
    return Known(sample, None if pd.isna(low) else (low, high), int(rows))


def _ends(opened: pq.ParquetFile) -> list[Any]:
    """The least and the greatest t of a file, from its statistics."""
    if "t" not in opened.schema_arrow.names or not opened.metadata.num_rows:
        return []
    place = opened.schema_arrow.names.index("t")
    groups = [opened.metadata.row_group(i).column(place).statistics for i in range(opened.metadata.num_row_groups)]
    if all(g is not None and g.has_min_max for g in groups):
        return [end for g in groups for end in (g.min, g.max)]
    column = opened.read(columns=["t"])["t"].drop_null().to_pandas()
    return [column.min(), column.max()]


def _span(data: tables.Inputs, ends: tuple[Any, Any] | None, zone: str | None) -> tuple[int, int]:
    """The first and the last instant of all tables."""
    known = tables.ends_of({name: rows for name, rows in data.tables.items() if name != "fixes"})
    if ends is not None:
        column = pd.Series(list(ends))
        if data.clock.unit is not None and column.dtype != object:
            column = column.dt.as_unit(data.clock.unit)
        ticks, _ = tables.ticks_of(column, zone, data.clock)
        known.append((int(ticks.iloc[0]), int(ticks.iloc[1])))
    return (min(a for a, _ in known), max(b for _, b in known)) if known else (0, 0)


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
    return pa.int64() if pd.api.types.is_integer_dtype(ids) else pa.string()


def _shipped(places: Any, scratch: Path, metric: str) -> str | None:
    """The places as one file that every worker can read."""
    if places is None:
        return None
    frame = tables.load(places, "places")
    if "geometry" in frame.columns:
        frame = tables.in_metric(frame, "places", metric, frame.attrs.get("crs"))
        frame = frame.assign(geometry=[getattr(g, "wkb", None) for g in frame["geometry"]])
    target = scratch / "places.parquet"
    pd.DataFrame(frame).to_parquet(target, index=False)
    return str(target)


# -- where fixes come from ---------------------------------------------------------------------------------


def is_table(given: Any) -> bool:
    """Whether something is a Spark table, classic or Connect."""
    return type(given).__module__.startswith("pyspark.") and type(given).__name__ == "DataFrame"


def table_at(path: Path) -> DataFrame:
    """A Parquet file or folder as a Spark table."""
    if not path.exists():
        raise DataError(f"fixes: there is no file or folder {str(path)!r}")
    files = tables.parquet_files(path)
    try:
        nanoseconds = [c for c in pq.read_schema(files[0]) if pa.types.is_timestamp(c.type) and c.type.unit == "ns"]
        session = spark_session()
        if nanoseconds:  # Spark's instants are of microseconds, and it refuses finer ones unless they are numbers
            session.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
        table = session.read.parquet(*files)
        return table.withColumns({c.name: _instant(c) for c in nanoseconds}) if nanoseconds else table
    except Exception as error:  # noqa: BLE001 - Spark raises what its JVM raised, which has no common class
        raise DataError(f"fixes: {str(path)!r} cannot be read: {_first_line(error)}") from None


def _instant(column: pa.Field) -> Any:
    """Nanoseconds as an instant of Spark's, or as a local time where the column has no zone."""
    from pyspark.sql import functions as f

    instant = f.timestamp_micros(f.expr(f"`{column.name}` div 1000"))
    return instant if column.type.tz else instant.cast("timestamp_ntz")


def _first_line(error: Exception) -> str:
    """What an error of Spark's says, without the JVM's stack."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("An error occurred", "at "))]
    return (telling or lines or [type(error).__name__])[0]


def sharded(fixes: pd.DataFrame, bucket_of: Callable[[pa.Array, int], Any]) -> Shards:
    """A table of this process as files of whole mobiles, so that workers read them."""
    buckets = max(2, -(-len(fixes) // ROWS_A_TASK))
    whole = "mobile" not in fixes.columns or fixes["mobile"].isna().any()
    numbers = [0] * len(fixes) if whole else bucket_of(pa.array(fixes["mobile"]), buckets)
    folder = _scratch() / "fixes"
    folder.mkdir()
    shards = []
    for number, part in fixes.groupby(numbers) if len(fixes) else [(0, fixes)]:
        file = folder / f"bucket-{number:05d}.parquet"
        part.to_parquet(file, index=False)
        shards.append([str(file)])
    return shards


def rows_of(fixes: Shards | DataFrame | None, mobiles: Sequence[Any] | None) -> pd.DataFrame | None:
    """The fixes of the mobiles that are named, or all of them, in this process."""
    if fixes is None:
        return None
    names = None if mobiles is None else [str(m) for m in mobiles]
    if not isinstance(fixes, Sequence):
        from pyspark.sql import functions as f

        return tables.load(fixes if names is None else fixes.where(f.col("mobile").cast("string").isin(names)))
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    found = ds.dataset([file for shard in fixes for file in shard], format="parquet")
    wanted = None if names is None else pc.field("mobile").cast(pa.string()).isin(names)
    return found.to_table(filter=wanted).to_pandas()


def _scratch() -> Path:
    """A folder for what the tasks write, gone with this process."""
    base = os.environ.get("WORKBENCH_SCRATCH")
    made = Path(tempfile.mkdtemp(prefix="workbench-replay-", dir=base))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made
