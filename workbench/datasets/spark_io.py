"""The only place where data sets meet Spark.

Rows never pass the JVM where they do not have to: a Spark task gets a number, reads its share of the source, and
writes files; what comes back is a line of JSON. All of it is `mapInArrow`, so it runs over Spark Connect and on a
cluster too; a cluster needs the package on its workers, and the source and the target on storage that all of them
see.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from workbench.datasets.formats.generic import from_table
from workbench.datasets.ingesting import Part, Plan, Receipt, Scatter, coalesced, scatter_part, settle_bucket
from workbench.datasets.layout import NO_ROOM
from workbench.errors import DataError, WorkbenchError, raise_all

_ANSWER = ["answer", "fault"]
_DISK = "errno "

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def session(spark: SparkSession | None = None) -> SparkSession:
    """The session given, or the workbench's own."""
    if spark is not None:
        return spark
    from workbench.session import spark_session

    return spark_session()


def parallelism(spark: SparkSession | None = None) -> int:
    """How many tasks run at once, as far as the session tells."""
    import os

    try:
        return max(1, int(session(spark).sparkContext.defaultParallelism))
    except Exception:  # noqa: BLE001 - Spark Connect has no context, and says so in several ways
        return max(1, os.cpu_count() or 1)


def spread(function: Callable[[Any], str], items: Sequence[Any], spark: SparkSession | None = None) -> list[str]:
    """Apply a function to each item in a task of its own; the answers are short texts, in the order of the items."""
    if not items:
        return []
    todo = list(items)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column("id").to_pylist():
                try:
                    answer, fault = function(todo[index]), None
                except (WorkbenchError, OSError) as error:
                    answer, fault = None, _fault(error)
                yield pa.record_batch([pa.array([index], pa.int64()), *_texts(answer, fault)], names=["id", *_ANSWER])

    numbers = session(spark).range(0, len(todo), 1, len(todo))
    rows = numbers.mapInArrow(run, "id long, answer string, fault string").collect()
    return _answers(sorted(rows, key=lambda row: row["id"]))


def _texts(answer: str | None, fault: str | None) -> list[pa.Array]:
    return [pa.array([answer], pa.string()), pa.array([fault], pa.string())]


def _fault(error: Exception) -> str:
    """What is wrong with the user's data or disk, where trying again would not help; anything else is raised."""
    if isinstance(error, OSError):
        if error.errno not in NO_ROOM:
            raise error
        return f"{_DISK}{error.errno}"
    return str(error)


def _answers(rows: Sequence[Any]) -> list[str]:
    for row in rows:
        if row["fault"] is not None and row["fault"].startswith(_DISK):
            raise OSError(int(row["fault"].removeprefix(_DISK)), "a disk takes no more")
    raise_all([row["fault"] for row in rows if row["fault"] is not None], DataError)
    return [row["answer"] for row in rows]


def scatter(plan: Plan, parts: Sequence[Part], spark: SparkSession | None = None) -> list[Receipt]:
    """The first step of an ingest, a part a task."""
    answers = spread(lambda part: scatter_part(plan, part).to_json(), parts, spark)
    return [Receipt.from_json(answer) for answer in answers]


def settle(
    plan: Plan, jobs: Sequence[tuple[int, Sequence[str]]], spark: SparkSession | None = None
) -> list[dict[str, Any]]:
    """The second step of an ingest, a bucket a task."""
    return [json.loads(answer) for answer in spread(lambda job: json.dumps(settle_bucket(plan, *job)), jobs, spark)]


def scatter_frame(plan: Plan, frame: DataFrame) -> list[Receipt]:
    """The first step for fixes that are a Spark table: its partitions are the parts."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        mine = Scatter(plan, context.partitionId() if context is not None else 0)
        tables = (from_table(pa.Table.from_batches([batch]), plan.reading, "the table") for batch in batches)
        try:
            for table in coalesced(tables):
                mine.add(table)
            mine.flush()
            answer, fault = mine.close().to_json(), None
        except (WorkbenchError, OSError) as error:
            answer, fault = None, _fault(error)
        yield pa.record_batch(_texts(answer, fault), names=_ANSWER)

    rows = frame.mapInArrow(run, "answer string, fault string").collect()
    return [Receipt.from_json(answer) for answer in _answers(rows)]
