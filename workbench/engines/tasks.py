"""Tasks: what a worker does with its part of the fixes. Nothing of Spark is in here.

A *bucket* holds whole mobiles: files of ingested data, or a part of an `exchange`. Its timelines are found the direct
way where scenario and data allow it, else the general one, and written as a Parquet file, which takes its name only
when it is whole, so that a task may be tried again.

Places and other tables are read and prepared once in each worker, not once for each bucket.
"""

from __future__ import annotations

import os
import resource
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workbench import tables
from workbench.compiling import read_only
from workbench.engines import bystanders, exchange, intervals, local, slices, thinning
from workbench.engines.batches import is_text, lacking
from workbench.engines.streams import without_effect
from workbench.errors import DataError
from workbench.model.clock import Clock
from workbench.model.scenario import Scenario

Evaluation = Callable[[tables.Inputs, int], tuple[pd.DataFrame, dict[str, int], local.Plan]]
UNUSUAL: dict[str, Any] = {"unusual": True}
"""said where a part of the data cannot be looked at by itself after all"""
WORDS = ("unmatch", "publication_removed", "subscription_removed")


class Direct(Protocol):
    """Places that are prepared for a replay without a table in between."""

    def replay(self, given: Any, until: int | None, threads: int) -> Any:
        """The timelines of a file or of Arrow tables; None where they ask for the general way."""


Prepare = Callable[[Scenario, Any, Any, str | None], Direct | None]
"""from a scenario, a fix, the places and the zone"""


@dataclass(frozen=True)
class Bucket:
    """The fixes of some mobiles: all of some Parquet files, or one part of some files of an exchange."""

    files: tuple[str, ...]
    rows: int
    part: int = 0
    parts: int = 0
    """none: the files are Parquet"""

    def tables(self, columns: Sequence[str] | None = None) -> list[pa.Table]:
        """The rows, in the order in which they came; of some columns, as far as there are any, or of all."""
        if self.parts:
            given = exchange.gather([Path(file) for file in self.files], self.part, self.parts)
            return given if columns is None else [table.select(_both(table, columns)) for table in given]
        found = []
        for file in self.files:
            with exchange.opened(file) as source:
                try:
                    found.append(source.read(columns if columns is None else list(columns)))
                except (OSError, pa.ArrowInvalid) as error:
                    raise DataError(f"{file!r} cannot be read: {error}") from None
        return found


@dataclass(frozen=True)
class Job:
    """What every task has to know; it travels to the workers."""

    scenario: Scenario
    head: pd.DataFrame
    """a fix, for its columns"""
    places: str | None
    zone: str | None
    span: tuple[int, int]
    until: int
    clock: Clock
    metric: str
    schema: pa.Schema
    scratch: str
    evaluate: Evaluation
    prepare: Prepare
    stop: int | None
    """``until`` where it was asked for"""
    folder: str = "timelines"
    """where timelines are written"""


# -- what a worker keeps from one task to the next -------------------------------------------------------------


@dataclass(frozen=True)
class Kept:
    """What tasks of one replay share in a worker."""

    others: Mapping[str, tables.Rows]
    """the tables that are not fixes, read and checked"""
    direct: Direct | None
    thinning: thinning.Thinning | None


@lru_cache(maxsize=2)
def _kept(job: ByScratch) -> Kept:
    given = {"places": job.it.places, **job.it.scenario.tables}
    tick = Clock(tick=job.it.scenario.tick)
    others = {
        name: tables.read(source, name, job.it.zone, tick) for name, source in given.items() if source is not None
    }
    head, places = job.it.head, others.get("places")
    direct = None
    if len(head) and places is not None and set(others) == {"places"}:
        direct = job.it.prepare(job.it.scenario, head, places, job.it.zone)
    thin = None
    if direct is None and len(head):
        thin = thinning.prepared(_inputs(job.it, others, head), frozenset(map(str, head.columns)))
    return Kept(others, direct, thin)


@dataclass(frozen=True)
class ByScratch:
    """A job known by its folder, which no other job has."""

    it: Job

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByScratch) and self.it.scratch == other.it.scratch

    def __hash__(self) -> int:
        return hash(self.it.scratch)


def kept(job: Job) -> Kept:
    """What this worker has prepared for a job, once."""
    return _kept(ByScratch(job))


def inputs(job: Job, fixes: Any) -> tables.Inputs:
    """The tables of a replay, with some of the fixes, in the time of all of them."""
    return _inputs(job, kept(job).others, fixes)


def _inputs(job: Job, others: Mapping[str, tables.Rows], fixes: Any) -> tables.Inputs:
    further = {name: rows for name, rows in others.items() if name != "places"}
    scenario = replace(job.scenario, tables=further) if further else job.scenario
    return replace(tables.inputs(scenario, fixes, others.get("places"), job.zone), span=job.span)


# -- a bucket ------------------------------------------------------------------------------------------------


def timelines_of_buckets(job: Job, unit: int, buckets: Sequence[Bucket], together: bool = False) -> dict[str, Any]:
    """The timelines of buckets, each by itself or all at once, into files; what was counted."""
    found: list[dict[str, Any]] = []
    if together:
        found.append(_general(job, f"{unit:05d}-000", [t for b in buckets for t in b.tables()]))
        buckets = ()
    for n, bucket in enumerate(buckets):
        name = f"{unit:05d}-{n:03d}"
        done = _direct(job, name, bucket)
        if done is None:
            given, left_out = thinned(job, bucket)
            found.append(left_out)
            done = _general(job, name, given) if any(map(len, given)) else {}  # no rows know no clock
        found.append(done)
    return _together(found)


def _together(said: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What was counted, in sum, and all that was listed.

    >>> _together([{"rows_in": 2, "warned": ["a"]}, {"rows_in": 3}, {"warned": ["b"]}])
    {'rows_in': 5, 'warned': ['a', 'b']}
    """
    found: dict[str, Any] = {}
    for one in said:
        for name, value in one.items():
            found[name] = found[name] + value if name in found else value
    return found


def _direct(job: Job, name: str, bucket: Bucket) -> dict[str, Any] | None:
    ways = kept(job).direct
    if ways is None:
        return None
    if not bucket.parts and len(bucket.files) == 1:
        exchange.opened(bucket.files[0]).close()  # one that cannot be read says so
        found = ways.replay(bucket.files[0], job.until, 1)
    else:
        given = bucket.tables()
        found = ways.replay(given, job.until, 1)
        if found is None:  # in any order, perhaps
            found = ways.replay([by_mobile(pa.concat_tables(given))], job.until, 1)
    if found is None:
        return None
    written = arrow(found.lines, job)
    write(job, name, written)
    counts = {"timelines": len(written), "unmatches": int((found.lines.ended == 0).sum())}
    return {"rows_in": found.fixes, **counts, "direct": 1}


def thinned(job: Job, bucket: Bucket) -> tuple[list[pa.Table], dict[str, int]]:
    """The fixes of a bucket at which something changes, or all of them; what was counted of those left out."""
    thin = kept(job).thinning
    if thin is None:
        return bucket.tables(), {}
    given = table = pa.concat_tables(bucket.tables(thin.columns), promote_options="permissive")
    if not _whole(table):
        return bucket.tables(), {}
    rows, aside = thin.kept(table, thinning.numbered(table["mobile"]), ticks_of(table)), 0
    if rows is None:  # in any order, perhaps, or some twice, which may differ in any column
        whole = bucket.tables()
        table = pa.concat_tables(whole, promote_options="permissive")
        if any(map(lacking, table.itercolumns())):
            return whole, {}
        table, aside = _cleaned(by_mobile(table))
        rows = thin.kept(table, thinning.numbered(table["mobile"]), ticks_of(table))
        if rows is None:
            return whole, {}
    left = table.filter(pa.array(rows))
    counts = {"rows_in": len(given) - len(left), "rows_set_aside": aside}
    return [left], {**counts, "rows_collapsed": len(given) - len(table) - aside}


def _whole(table: pa.Table) -> bool:
    """Whether mobiles and instants are there, and of the usual types."""
    mobile, t = table["mobile"], table["t"]
    known = not (mobile.null_count or t.null_count)
    usual = is_text(mobile.type) or pa.types.is_signed_integer(mobile.type)
    instants = pa.types.is_signed_integer(t.type) or (pa.types.is_timestamp(t.type) and t.type.tz is not None)
    return known and usual and instants


def _both(table: pa.Table, columns: Sequence[str]) -> list[str]:
    return [name for name in columns if name in table.column_names]


def _general(job: Job, name: str, given: list[pa.Table]) -> dict[str, Any]:
    fixes: Any = pa.concat_tables(given, promote_options="permissive") if given else None
    if fixes is None and len(job.head.columns):
        fixes = job.head[:0]  # there are fixes, only none that Spark could hand over
    return _staged(job, name, inputs(job, fixes))


def _staged(job: Job, name: str, data: tables.Inputs) -> dict[str, Any]:
    timelines, counts, how = _evaluated(job, data, job.until)
    timelines = data.staged(timelines, job.stop)
    rows = {name: int(count) for name, count in data.tables["fixes"].counts.items()} if "fixes" in data.tables else {}
    # what other tables say in vain every task meets; it counts once
    others = [one for name, one in data.tables.items() if name != "fixes"]
    idle = int(counts.get("rows_set_aside", 0)) - sum(without_effect(one, data, job.span[0]) for one in others)
    rows["rows_set_aside"] = rows.get("rows_set_aside", 0) + idle
    return {**rows, **write_frame(job, name, timelines), **how}


def _evaluated(job: Job, data: tables.Inputs, until: int) -> tuple[pd.DataFrame, dict[str, int], dict[str, Any]]:
    """Timelines, what was counted, and how it was done."""
    with warned() as said:
        timelines, counts, plan = job.evaluate(data, until)
    return timelines, counts, {"warned": said, "steps": listed(plan.steps)}


@contextmanager
def warned() -> Iterator[list[str]]:
    """What a user is warned of, who does not see the worker."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield said
    said += [str(one.message) for one in caught if issubclass(one.category, UserWarning)]


def listed(steps: Iterable[local.Step]) -> list[dict[str, Any]]:
    """The steps of a plan in words that travel."""
    return [asdict(step) for step in steps]


def steps_of(said: Iterable[Mapping[str, Any]]) -> list[local.Step]:
    """The steps that tasks have listed: the same ones of all tasks are one."""
    found: dict[local.Step, local.Step] = {}
    for given in (given for one in said for given in one.get("steps", ())):
        step = local.Step(**{**given, **{name: tuple(given[name]) for name in ("then", "over_time")}})
        kind = replace(step, candidates=0, pairs=0)
        known = found.get(kind, kind)
        found[kind] = replace(kind, candidates=known.candidates + step.candidates, pairs=known.pairs + step.pairs)
    return list(found.values())


def timelines_of_share(job: Job, n: int, shares: int) -> dict[str, Any]:
    """The timelines of a share of the publications, where these are rows of tables, into a file; what was counted."""
    data = inputs(job, None)
    published = {p.rows for p in job.scenario.publications}
    some = {
        name: replace(rows, frame=_share(rows.frame, "id", job, n, shares)) if name in published else rows
        for name, rows in data.tables.items()
    }
    return _staged(job, f"{n:05d}-000", replace(data, tables=some))


def stage_of_share(job: Job, n: int, shares: int, folder: str) -> dict[str, Any]:
    """What is told of the timelines of a share of the publications, into a file."""
    files = sorted((Path(job.scratch) / folder).glob("part-*"))
    mine = [_share(pq.read_table(file).to_pandas(), "publication", job, n, shares) for file in files]
    lines = pd.concat([part for part in mine if len(part)] or [job.schema.empty_table().to_pandas()])
    return write_frame(job, f"{n:05d}-000", inputs(job, job.head).staged(lines, job.stop))


def _share(frame: pd.DataFrame, column: str, job: Job, n: int, shares: int) -> pd.DataFrame:
    """The rows of a share of the publications, each with all that is looked at together with it."""
    stage = job.scenario.stage
    codes, known = pd.factorize(frame[column])
    keys = np.array([str(name) if stage is None else stage.key(name) for name in known], dtype=object)
    return frame[(pd.util.hash_array(keys) % shares == n)[codes]] if len(keys) else frame


def by_mobile(table: pa.Table) -> pa.Table:
    """Rows in the order of mobile and time; as they come where one of the two is not there to go by."""
    mobile = table["mobile"]
    if not _whole(table):
        return table
    codes, ticks = codes_of(mobile), ticks_of(table)
    if np.all((codes[1:] > codes[:-1]) | ((codes[1:] == codes[:-1]) & (ticks[1:] >= ticks[:-1]))):
        return table
    order = intervals.ordered(codes, ticks)
    return exchange.take(table.combine_chunks(), order)


# -- slices of time ----------------------------------------------------------------------------------------------


def cut_into_slices(job: Job, n: int, buckets: Sequence[Bucket], cuts: np.ndarray, folder: str) -> dict[str, Any]:
    """The fixes of buckets by slice of time, into a file; what was counted of them."""
    counts = {"rows_in": 0, "rows_collapsed": 0, "rows_set_aside": 0}
    found = []
    for bucket in buckets:
        given = pa.concat_tables(bucket.tables())
        if not _whole(given) or any(map(lacking, given.itercolumns())):
            return UNUSUAL
        table, aside = _cleaned(by_mobile(given))
        counts["rows_in"] += len(given)
        counts["rows_set_aside"] += aside
        counts["rows_collapsed"] += len(given) - len(table) - aside
        found.append(table)

    def lay(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        return slices.cut(codes_of(table["mobile"]), ticks_of(table), cuts)

    file = Path(folder) / f"slices-{n:05d}.arrow"
    exchange.scatter(found, found[0].schema, lay, len(cuts) - 1, file)
    return {**counts, "file": str(file)}


def _cleaned(table: pa.Table) -> tuple[pa.Table, int]:
    """Rows in the order of mobile and time, one of each; how many were set aside."""
    mobile, t = codes_of(table["mobile"]), ticks_of(table)
    same = (mobile[1:] == mobile[:-1]) & (t[1:] == t[:-1])
    if not same.any():
        return table, 0
    table, aside, _ = tables.merged_table(table, np.append(False, same))
    return table, len(aside)


def slice_of_time(
    job: Job, n: int, way: str, files: Sequence[str], windows: Sequence[slices.Window], parts: int, folder: str
) -> dict[str, Any]:
    """The timelines of a slice into a file, and into others what goes on before or after it."""
    window = windows[n]
    table = pa.concat_tables(exchange.gather([Path(file) for file in files], n, parts))
    if not len(table):
        return {}
    data, until = inputs(job, table), job.until if window.last else window.high
    target = Path(folder)
    if way == slices.MOMENTS:
        told, _, how = _evaluated(job, data, until)
        whole, marked = slices.pieces(_exactly(job, told), window)
        put(marked, target / f"pieces-{n:05d}.parquet")
        return {**write_whole(job, f"slice-{n:05d}", whole), "over": len(marked), **how}
    found = slices.sliced(data, until, window)
    if found is None:
        return UNUSUAL
    timelines, meetings, steps = found
    for number, some in enumerate(meetings):
        put(pa.Table.from_pandas(some, preserve_index=False), target / f"met-{number}-{n:05d}.parquet")
    rows = slices.needed(table["mobile"].to_pandas(), ticks_of(table), meetings)
    put(exchange.take(table.combine_chunks(), rows), target / f"rows-{n:05d}.parquet")
    counts = write_frame(job, f"slice-{n:05d}", timelines)
    return {**counts, "over": sum(map(len, meetings)), "steps": listed(steps)}


def across_slices(job: Job, n: int, way: str, count: int, folder: str, populations: int) -> dict[str, Any]:
    """A share of the timelines that go on from one slice to another, into a file."""
    if way == slices.MOMENTS:
        marked = _mine(folder, "pieces-*", n, count)
        return write_whole(job, f"over-{n:05d}", slices.joined(marked))
    meetings = [_mine(folder, f"met-{number}-*", n, count).to_pandas() for number in range(populations)]
    rows = by_mobile(pa.concat_tables(pq.read_table(file) for file in sorted(Path(folder).glob("rows-*"))))
    mobile, t = codes_of(rows["mobile"]), ticks_of(rows)
    again = np.append(False, (mobile[1:] == mobile[:-1]) & (t[1:] == t[:-1]))
    timelines = slices.met(inputs(job, rows.filter(pa.array(~again))), job.until, meetings)
    return UNUSUAL if timelines is None else write_frame(job, f"over-{n:05d}", timelines)


def _mine(folder: str, pattern: str, n: int, count: int) -> pa.Table:
    """The rows of files whose publication is of a share."""
    found = []
    for file in sorted(Path(folder).glob(pattern)):
        table = pq.read_table(file)
        share = pd.util.hash_array(table["publication"].to_pandas().to_numpy()) % count
        found.append(table.filter(pa.array(share == n)))
    return pa.concat_tables([t for t in found if t.num_rows] or found[:1])


def put(table: pa.Table, target: Path) -> None:
    """A file that takes its name when it is whole."""
    draft = target.with_name(f".{target.name}-{os.getpid()}")
    pq.write_table(table, draft)
    os.replace(draft, target)


def ticks_of(table: pa.Table) -> np.ndarray:
    """The instants of rows as numbers."""
    return read_only(table["t"].cast(pa.int64()).to_numpy())


def codes_of(mobile: pa.ChunkedArray) -> np.ndarray:
    """Whose the rows are, as numbers that order and tell them apart."""
    if pa.types.is_integer(mobile.type):
        return mobile.to_numpy().astype(np.int64)  # type: ignore[no-any-return]
    coded = mobile.combine_chunks().dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    return coded.indices.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


# -- histories of third parties ------------------------------------------------------------------------------------


def visits_of_buckets(
    job: Job, n: int, buckets: Sequence[Bucket], wanted: list[bystanders.Asked], folder: str
) -> dict[str, Any]:
    """The visits of the mobiles of buckets, and the fixes that still matter, into files; what was counted of others."""
    found, left, counted, how = [], [], [], []
    for bucket in buckets:
        given, counts = thinned(job, bucket)
        counted.append(counts)
        if not any(map(len, given)):
            continue
        left += given
        with warned() as said:
            seen = bystanders.visits(inputs(job, pa.concat_tables(given)), job.until, wanted)
        if seen is None:
            return UNUSUAL
        found.append(seen[0])
        how.append({"warned": said, "steps": listed(seen[1])})
    if found:
        put(pa.Table.from_pandas(pd.concat(found), preserve_index=False), Path(folder) / f"visits-{n:05d}.parquet")
    names = ("rows_in", "rows_collapsed", "rows_set_aside")
    counts = {**{name: sum(one.get(name, 0) for one in counted) for name in names}, **_together(how)}
    if not any(counted):
        return counts  # all of them still matter
    if not left:
        return {**counts, "rows_left": 0}
    fixes = Path(folder) / f"fixes-{n:05d}.parquet"
    put(pa.concat_tables(left, promote_options="permissive"), fixes)
    return {**counts, "fixes": str(fixes), "rows_left": sum(map(len, left))}


def with_visits(job: Job, wanted: list[bystanders.Asked], folder: str) -> Job:
    """A job whose tasks know the visits of all mobiles."""
    files = [str(file) for file in sorted(Path(folder).glob("visits-*"))]
    return replace(job, evaluate=partial(_knowing, wanted, files))


def _knowing(
    wanted: list[bystanders.Asked], files: list[str], data: tables.Inputs, until: int
) -> tuple[pd.DataFrame, dict[str, int], local.Plan]:
    return bystanders.evaluated(data, until, wanted, (pd.read_parquet(file) for file in files))


# -- timelines as files ------------------------------------------------------------------------------------------


def write_frame(job: Job, name: str, timelines: pd.DataFrame) -> dict[str, int]:
    """Write a table of timelines; how many they are, and how many tell of an end."""
    write(job, name, _exactly(job, timelines))
    told = timelines["ended"].isin(["unmatch", "publication_removed"]) & ~_silent(job.scenario, timelines)
    return {"timelines": len(timelines), "unmatches": int(told.sum())}


def write_whole(job: Job, name: str, timelines: pa.Table) -> dict[str, int]:
    """Write timelines of which each tells of its end; how many they are, and how many have ended."""
    write(job, name, timelines)
    told = pc.is_in(timelines["ended"], pa.array(["unmatch", "publication_removed"]))
    return {"timelines": len(timelines), "unmatches": pc.sum(told).as_py() or 0}


def _exactly(job: Job, timelines: pd.DataFrame) -> pa.Table:
    """Timelines with instants as fine as the fixes tell them."""
    schema = job.schema
    if job.clock.unit == "ns":
        for name in ("tau", "pi"):
            schema = schema.set(schema.get_field_index(name), pa.field(name, pa.timestamp("ns", "UTC")))
    return pa.Table.from_pandas(timelines, schema=schema, preserve_index=False)


def write(job: Job, name: str, timelines: pa.Table) -> None:
    """A file of timelines, with instants of which Spark has a type: what is finer than a microsecond is cut off."""
    if timelines.schema != job.schema:
        columns = [_micro(timelines[n]) if n in ("tau", "pi") else timelines[n] for n in job.schema.names]
        timelines = pa.table(columns, schema=job.schema)
    target = Path(job.scratch) / job.folder / f"part-{name}.parquet"
    draft = target.with_name(f".{name}-{os.getpid()}")
    pq.write_table(timelines, draft, use_dictionary=["ended"])
    os.replace(draft, target)


def arrow(lines: Any, job: Job) -> pa.Table:
    """Timelines from arrays, in no order."""
    over = lines.ended >= 0
    words = pa.DictionaryArray.from_arrays(pa.array(np.where(over, lines.ended, 0), pa.int8(), mask=~over), list(WORDS))
    columns = [
        _named(lines.publications, lines.publication, job.schema.field("publication").type),
        _named(lines.subscriptions, lines.subscription, job.schema.field("subscription").type),
        _instants(lines.tau, None, job),
        _instants(lines.pi, ~over, job),
        words.cast(pa.string()),
    ]
    return pa.table(columns, schema=job.schema)


def _named(names: np.ndarray, index: np.ndarray, kind: pa.DataType) -> pa.Array:
    if names.dtype.kind == "i" and pa.types.is_integer(kind):
        return pa.array(names[index], kind)
    return pa.array(names.tolist(), kind).take(pa.array(index))


def _instants(ticks: np.ndarray, null: np.ndarray | None, job: Job) -> pa.Array:
    found = pa.array(ticks, pa.int64(), mask=null)
    if job.clock.unit is None:
        return found
    if job.clock.unit == "ns":
        return pa.array(ticks // 1_000, pa.int64(), mask=null).cast(job.schema.field("tau").type)
    return found.cast(pa.timestamp(job.clock.unit, "UTC")).cast(job.schema.field("tau").type)


def _micro(instants: pa.ChunkedArray) -> pa.ChunkedArray:
    """Instants of nanoseconds rounded down to microseconds."""
    ticks = instants.cast(pa.int64()).fill_null(0).to_numpy() // 1_000
    return pa.array(ticks, mask=instants.is_null().to_numpy()).cast(pa.timestamp("us", "UTC"))


def _silent(scenario: Scenario, timelines: pd.DataFrame) -> pd.Series:
    """Which rows are of transient publications, whose end is not told."""
    silent = [p.name for p in scenario.publications if p.transient]
    if len(scenario.publications) == 1:
        return pd.Series(bool(silent), index=timelines.index)
    return timelines["publication"].map(lambda name: str(name).partition("/")[0] in silent).astype(bool)


def peak_mib() -> int:
    """The most memory that this process has had, in MiB."""
    said = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(said >> 20 if sys.platform == "darwin" else said >> 10)
