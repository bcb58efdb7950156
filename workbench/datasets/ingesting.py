"""Ingest: any fixes become the layout of `workbench.datasets.layout`, in bounded memory, every row accounted for.

Two steps, the same in this process and on Spark. *Scatter*: each part of the source is read batch by batch, passes
the gate, and its rows go to spill files by bucket. *Settle*: each bucket is read back, sorted by (mobile, t), its
duplicates and contradictions resolved, and written as Parquet. Memory is a batch a reader, and a bucket a writer.
What the steps tell each other is small plain data; the rows themselves go through files, so that on Spark they
never pass the JVM.
"""

from __future__ import annotations

import io
import json
import math
import os
import uuid
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from workbench.datasets.archives import Source, open_source
from workbench.datasets.formats import find_format, guess_format
from workbench.datasets.formats.base import INFER, Format, Opened, Reading
from workbench.datasets.formats.generic import PARQUET, from_table
from workbench.datasets.instants import settle, too_fast
from workbench.datasets.layout import (
    HASH,
    MANIFEST,
    SCHEMA_VERSION,
    Fixes,
    bucket_of,
    is_ingested,
    name_of,
    open_fixes,
    type_of,
    whole_folder,
    write_parquet,
)
from workbench.datasets.lines import BLOCK, Share, cuttable
from workbench.datasets.quality import (
    SPEED,
    QualityWarning,
    Report,
    Suspicion,
    coordinates_of,
    count_reasons,
    gate,
    set_aside,
    suspect_box,
)
from workbench.errors import DataError
from workbench.progress import progress

BATCH_ROWS = 1 << 18
PENDING_BYTES = 64 << 20
BUCKET_BYTES = 32 << 20
SHARE_BYTES = 16 << 20
"""A part of a large text or Parquet file that is worth a task of its own."""
MAX_BAD_SHARE = 0.05
_FIRST = ("mobile", "t", "lon", "lat", "x", "y", "z")


@dataclass(frozen=True)
class Part:
    """What one reader takes of a source: some members of it, in order, or the bytes `[start, stop)` of a large one."""

    index: int
    members: tuple[str, ...]
    share: tuple[int, int | None] | None = None


@dataclass
class Receipt:
    """What one reader found, as small plain data."""

    index: int = 0
    rows: int = 0
    aside: dict[str, int] = field(default_factory=dict)
    files: dict[int, list[str]] = field(default_factory=dict)
    suspicion: tuple[int, int, int] = (0, 0, 0)
    columns: dict[str, list[str]] = field(default_factory=dict)
    """For each column its type, and `infer` where the type is only what has been seen so far."""

    def to_json(self) -> str:
        """The receipt as text."""
        return json.dumps(self.__dict__)

    @staticmethod
    def from_json(text: str) -> Receipt:
        """The receipt of `to_json`."""
        data = json.loads(text)
        data["files"] = {int(bucket): files for bucket, files in data["files"].items()}
        return Receipt(**data)


@dataclass(frozen=True)
class Plan:
    """All that a reader and a writer need to know; it travels to Spark's workers."""

    work: str
    buckets: int
    source: str | None = None
    format: str | None = None
    reading: Reading = field(default_factory=Reading)
    box: tuple[float, float, float, float] | None = None
    max_speed_mps: float | None = None
    tick_s: float = 1.0
    columns: Mapping[str, str] = field(default_factory=dict)


# -- types that only the whole set can tell --------------------------------------------------------


def narrowest(column: pa.ChunkedArray) -> str:
    """The narrowest type that holds all of the text: null, bool, int64, double or string.

    >>> [narrowest(pa.chunked_array([v])) for v in (["1", "20"], ["1", "2.5"], ["007"], ["true"], ["1", "x"])]
    ['int64', 'double', 'string', 'bool', 'string']
    """
    distinct = column.unique().drop_null()
    if len(distinct) == 0:
        return "null"
    if pc.all(pc.is_in(pc.utf8_lower(distinct), pa.array(["true", "false"]))).as_py():
        return "bool"
    if pc.any(pc.match_substring_regex(distinct, r"^[+-]?0[0-9xX]|^\+|\s")).as_py():
        return "string"
    for kind in ("int64", "double"):
        try:
            distinct.cast(type_of(kind))
        except pa.ArrowInvalid:
            continue
        return kind
    return "string"


def wider(a: str, b: str) -> str:
    """The narrowest type that holds both.

    >>> wider("int64", "double"), wider("bool", "int64"), wider("null", "bool")
    ('double', 'string', 'bool')
    """
    if a == b or b == "null":
        return a
    if a == "null":
        return b
    if {a, b} == {"int64", "double"}:
        return "double"
    return "string"


def _common(a: str, b: str) -> str:
    """The common type of two columns with types of their own."""
    if a == b:
        return a
    try:
        left, right = (pa.schema([("c", type_of(name))]) for name in (a, b))
        return name_of(pa.unify_schemas([left, right], promote_options="permissive").field("c").type)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"one column has type {a} in one part of the source and {b} in another: {error}") from error


def joined_columns(receipts: Iterable[Receipt]) -> dict[str, str]:
    """The columns of the whole set with their types: identity, time and place first, attributes as they came."""
    types: dict[str, list[str]] = {}
    for receipt in receipts:
        for name, (kind, how) in receipt.columns.items():
            if name not in types:
                types[name] = [kind, how]
            elif how == "infer" and types[name][1] == "infer":
                types[name][0] = wider(types[name][0], kind)
            else:
                types[name] = [_common(types[name][0], kind), "typed"]
    final = {}
    for name in [n for n in _FIRST if n in types] + [n for n in types if n not in _FIRST]:
        kind = types[name][0]
        if name == "mobile" and kind not in ("int64", "string") and types[name][1] == "infer":
            kind = "string"
        final[name] = "string" if kind == "null" else kind
    return final


# -- scatter --------------------------------------------------------------------------------------


class Scatter:
    """Takes batches of fixes, passes them through the gate, and keeps the good ones by bucket."""

    def __init__(self, plan: Plan, index: int) -> None:
        self.plan, self.receipt = plan, Receipt(index)
        self.pending: dict[int, list[pa.Table]] = {}
        self._bytes = 0
        self._aside: list[pa.Table] = []
        self._aside_bytes = 0
        self._suspicion = Suspicion()
        self._attempt = uuid.uuid4().hex[:12]  # a repeated task must not write to the files of the first

    def add(self, table: pa.Table) -> None:
        """One more batch."""
        self.receipt.rows += table.num_rows
        passed, aside, suspicion = gate(table)
        if self.plan.box and "lon" in table.column_names:
            suspicion = suspect_box(table, self.plan.box)  # all rows: swapped ones may lie outside the globe
        self._suspicion += suspicion
        if aside.num_rows:
            self._aside.append(aside)
            for reason, count in count_reasons(aside).items():
                self.receipt.aside[reason] = self.receipt.aside.get(reason, 0) + count
            self._aside_bytes += aside.nbytes
            if self._aside_bytes > PENDING_BYTES:
                self._set_aside()
        self._learn_types(passed)
        if passed.num_rows:
            self._keep(passed.replace_schema_metadata(None))

    def _learn_types(self, table: pa.Table) -> None:
        known = self.receipt.columns
        for column in table.schema:
            infer = (column.metadata or {}).get(b"infer") == INFER[b"infer"]
            kind = narrowest(table[column.name]) if infer else name_of(column.type)
            if column.name in known:
                kind = wider(known[column.name][0], kind) if infer else _common(known[column.name][0], kind)
            known[column.name] = [kind, "infer" if infer else "typed"]

    def _keep(self, table: pa.Table) -> None:
        if self.plan.buckets == 1:
            parts = {0: table}
        else:
            bucket = bucket_of(table["mobile"], self.plan.buckets)
            edges = np.bincount(bucket, minlength=self.plan.buckets).cumsum()
            if (bucket[1:] < bucket[:-1]).any():
                table = table.take(pa.array(np.argsort(bucket.astype(np.uint16), kind="stable")))
            parts = {
                int(b): table.slice(end - size, size)
                for b, (end, size) in enumerate(zip(edges, np.diff(edges, prepend=0), strict=True))
                if size
            }
        for b, part in parts.items():
            self.pending.setdefault(b, []).append(part)
        self._bytes += table.nbytes
        if self._bytes > PENDING_BYTES:
            self.flush()

    def flush(self) -> None:
        """Add what is pending to the spill files, as streams of their own, so that no file stays open."""
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        for bucket, tables in self.pending.items():
            name = f"spill/{self.receipt.index:06d}-{bucket:05d}-{self._attempt}.arrow"
            self.receipt.files[bucket] = [name]
            with open(Path(self.plan.work) / name, "ab") as file:
                for table in coalesced(tables):
                    with pa.ipc.new_stream(file, table.schema, options=options) as writer:
                        writer.write_table(table)
        self.pending, self._bytes = {}, 0
        pa.default_memory_pool().release_unused()  # else the allocator keeps several times what is in use

    def _set_aside(self) -> None:
        """Write the rows set aside to a file of their own."""
        files = self.receipt.files.setdefault(-1, [])
        name = f"_aside/read-{self.receipt.index:06d}-{len(files):04d}-{self._attempt}.parquet"
        files.append(name)
        table = pa.concat_tables(self._aside, promote_options="permissive")
        write_parquet(table, Path(self.plan.work) / name)
        self._aside, self._aside_bytes = [], 0
        pa.default_memory_pool().release_unused()

    def close(self) -> Receipt:
        """The receipt; the rows set aside are written, the pending ones stay where they are."""
        if self._aside:
            self._set_aside()
        self.receipt.suspicion = (self._suspicion.seen, self._suspicion.fits, self._suspicion.fits_swapped)
        return self.receipt


def coalesced(tables: Iterable[pa.Table], rows: int = BATCH_ROWS) -> Iterator[pa.Table]:
    """The same rows in larger tables, so that a source of many small files costs no more than one large file."""
    held: list[pa.Table] = []
    count = 0
    for table in tables:
        if held and held[0].schema != table.schema:
            yield pa.concat_tables(held)
            held, count = [], 0
        held.append(table)
        count += table.num_rows
        if count >= rows:
            yield pa.concat_tables(held)
            held, count = [], 0
    if held:
        yield pa.concat_tables(held)


def read_part(plan: Plan, part: Part) -> Iterator[pa.Table]:
    """The tables of one part of the plan's source."""
    assert plan.source is not None and plan.format is not None
    source, form = open_source(plan.source), find_format(plan.format)
    for member, stream in source.streams(list(part.members)):
        if part.share is not None and form.header is not None:
            stream = io.BufferedReader(Share(stream, form.header, *part.share), BLOCK)
        with stream:
            yield from form.read(Opened(member.name, stream, source.path_of(member.name), part.share), plan.reading)


def scatter_part(plan: Plan, part: Part) -> Receipt:
    """Scatter one part wholly to files: the step of a Spark task."""
    scatter = Scatter(plan, part.index)
    for table in coalesced(read_part(plan, part)):
        scatter.add(table)
    scatter.flush()
    return scatter.close()


# -- settle ---------------------------------------------------------------------------------------


def settle_bucket(plan: Plan, bucket: int, files: Sequence[str], pending: Sequence[pa.Table] = ()) -> dict[str, Any]:
    """Sort one bucket, resolve what falls on one instant, write it, and say what it holds."""
    tables = list(pending)
    for name in files:
        tables += _spilled(Path(plan.work) / name)
    kinds = {name: type_of(kind) for name, kind in plan.columns.items()}
    table = pa.concat_tables([_typed(t, kinds) for t in tables])
    settled = settle(table)
    kept, aside = settled.table, [settled.aside] if settled.aside.num_rows else []
    reasons = count_reasons(settled.aside)
    starts = settled.starts
    if plan.max_speed_mps is not None and kept.num_rows:
        fast = too_fast(kept, starts, plan.max_speed_mps, seconds_per_tick(kept["t"].type, plan.tick_s))
        if fast.any():
            aside.append(set_aside(kept.filter(pa.array(fast)), SPEED))
            reasons[SPEED] = int(fast.sum())
            kept = kept.filter(pa.array(~fast))
            # the first fix of a mobile is never set aside for its speed, so the mobiles stay as they were
    if aside:
        write_parquet(pa.concat_tables(aside), Path(plan.work) / "_aside" / f"bucket-{bucket:05d}.parquet")
    entry: dict[str, Any] = {"bucket": bucket, "rows": kept.num_rows, "mobiles": len(starts)}
    if kept.num_rows:
        name = f"fixes/bucket-{bucket:05d}.parquet"
        write_parquet(kept, Path(plan.work) / name)
        entry["path"] = name
        entry |= _extent(kept)
    told = {"entry": entry, "collapsed": settled.collapsed, "out_of_order": settled.out_of_order, "aside": reasons}
    del tables, table, settled, kept, aside
    pa.default_memory_pool().release_unused()
    return told


def _spilled(path: Path) -> Iterator[pa.Table]:
    """The tables of a spill file: a stream for each flush, one after the other."""
    with pa.OSFile(str(path)) as file:
        while file.tell() < file.size():
            with pa.ipc.open_stream(file) as reader:
                yield reader.read_all()


def _typed(table: pa.Table, kinds: Mapping[str, pa.DataType]) -> pa.Table:
    columns = []
    for name, kind in kinds.items():
        if name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, kind))
            continue
        column = table[name]
        if pa.types.is_string(column.type) and pa.types.is_boolean(kind):
            column = pc.utf8_lower(column)
        columns.append(column if column.type == kind else column.cast(kind))
    return pa.table(columns, schema=pa.schema(list(kinds.items())))


def _extent(table: pa.Table) -> dict[str, Any]:
    t = pc.min_max(table["t"].cast(pa.int64())).as_py()
    extent: dict[str, Any] = {"t": [t["min"], t["max"]]}
    names = coordinates_of(table.column_names)
    if names:
        ends = [pc.min_max(table[name]).as_py() for name in names]
        extent["bounds"] = {name: [e["min"], e["max"]] for name, e in zip(names, ends, strict=True)}
    return extent


def _could_be_degrees(entry: Mapping[str, Any]) -> bool:
    bounds = entry.get("bounds", {})
    ends = [(end, most) for axis, most in (("x", 180), ("y", 90)) for end in bounds.get(axis, [])]
    return all(end is None or abs(end) <= most for end, most in ends)


def seconds_per_tick(kind: pa.DataType, tick_s: float = 1.0) -> float:
    """How long one unit of a time column is.

    >>> seconds_per_tick(pa.timestamp("us", tz="UTC")), seconds_per_tick(pa.int64())
    (1e-06, 1.0)
    """
    if pa.types.is_timestamp(kind):
        return {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[kind.unit]
    return tick_s


# -- the whole ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Resolved:
    """A source with the format and the way in which it is read."""

    source: Source
    form: Format
    reading: Reading
    notes: tuple[str, ...]
    members: tuple[str, ...]


def resolve(path: str | Path, format: str | None, reading: Reading) -> Resolved:
    """Find out how a path is to be read, and say what was found out."""
    path = Path(path)
    source = open_source(path / "fixes" if is_ingested(path) else path)
    notes = []
    if format is None:
        form = guess_format(source, reading.encoding)
        notes.append(f"format {form.name!r} ({form.title}) was guessed")
    else:
        form = find_format(format)
    # a single file that is named is meant, whatever its name ends in
    members = tuple(m.name for m in source.members if form.wants(m.plain) or source.kind == "file")
    if not members:
        raise DataError(
            f"{source.path.name}: holds no file of format {form.name!r} ({form.title}) among {len(source.members)}"
        )
    notes += form.notes
    if form.zone is not None and reading.zone is None and reading.clock is None:
        said = f"local times are read in the format's published zone {form.zone}"
        notes.append(f"{said}; zone= (--zone) would name another")
        reading = replace(reading, zone=form.zone)
    if form.resolve is not None:
        reading, found = form.resolve(source, reading)
        notes += found
    if form.side is not None:
        reading = replace(reading, side=form.side(source, reading))
    return Resolved(source, form, reading, tuple(notes), members)


def _parts(resolved: Resolved, tasks: int) -> list[Part]:
    """About equal parts in the order of the members, for so many readers at a time; large members are cut.

    A task for each reader where a packed member or tar is cut, since each unpacks what lies before its part; else
    several, so that none waits for a slow one.
    """
    source, form = resolved.source, resolved.form
    weight = {m.name: m.weight for m in source.members}
    whole = sum(weight[name] for name in resolved.members)

    def cuts(name: str, aim: float) -> int:
        """Into how many parts a member is cut."""
        if form is PARQUET:
            possible = source.path_of(name) is not None
        else:
            possible = form.header is not None and cuttable(resolved.reading.encoding)
        return max(1, min(math.ceil(weight[name] / aim), weight[name] // SHARE_BYTES)) if possible else 1

    aim = max(1.0, whole / (4 * tasks))
    if source.kind == "tar" or any(source.in_order(name) and cuts(name, aim) > 1 for name in resolved.members):
        aim = max(1.0, whole / tasks)
    takes: list[tuple[tuple[str, ...], tuple[int, int | None] | None]] = []
    held: list[str] = []
    load = 0
    for name in resolved.members:
        pieces = cuts(name, aim)
        if held and (pieces > 1 or load >= aim):
            takes.append((tuple(held), None))
            held, load = [], 0
        if pieces > 1:
            edges = [weight[name] * i // pieces for i in range(pieces)]
            # the weight may be a guess, so that the last one reads to the end
            takes += [((name,), share) for share in zip(edges, [*edges[1:], None], strict=True)]
        else:
            held.append(name)
            load += weight[name]
    if held:
        takes.append((tuple(held), None))
    return [Part(index, members, share) for index, (members, share) in enumerate(takes)]


def _buckets(size: int) -> int:
    """Enough buckets that each stays small, a power of two.

    >>> _buckets(1_000), _buckets(10 << 30)
    (4, 512)
    """
    return min(1024, max(4, 1 << math.ceil(math.log2(max(1, size / BUCKET_BYTES)))))


def ingest(
    source: Any,
    out: str | Path,
    *,
    format: str | None = None,
    zone: str | None = None,
    columns: Mapping[str, str] | None = None,
    keep: Sequence[str] | None = None,
    time: str | None = None,
    tick_s: float | None = None,
    crs: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf8",
    buckets: int | None = None,
    max_bad_share: float = MAX_BAD_SHARE,
    max_speed_mps: float | None = None,
    engine: str = "local",
    spark: Any = None,
    overwrite: bool = False,
) -> Fixes:
    """Write fixes in the layout that replays read without a shuffle, and return them.

    source: a path (file, folder, zip, tar; `format` as in `FORMATS`, guessed when not given), a table (pandas,
    Arrow, Spark, GeoDataFrame, a MovingPandas collection), or an iterable of Arrow tables. columns, keep, time,
    delimiter: see the generic format. zone: where local times without an offset are. crs: of metres in `x`, `y`, and of
    points that do not say theirs.
    The run fails, and writes nothing, when more than `max_bad_share` of the rows cannot be used. engine: `local`,
    or `spark` for large sources: many files, or large texts and Parquet files, which are cut.

    >>> from tempfile import TemporaryDirectory
    >>> fixes = pa.table({"mobile": ["b", "a", "a"], "t": [1, 2, 1], "x": [0.0, 500.0, 400.0], "y": [0.0, 5.0, 4.0]})
    >>> with TemporaryDirectory() as folder:
    ...     print(ingest(fixes, folder + "/out"))
    Fixes('out': 3 fixes of 2 mobiles in 2 buckets)
    3 rows in: 3 kept, 0 collapsed, 0 set aside (0.0 %)
      out of order (sorted)    1
    """
    if engine not in ("local", "spark"):
        raise DataError(f"engine {engine!r}: an ingest runs on 'local' or 'spark'")
    if buckets is not None and not 1 <= buckets <= 65_535:
        raise DataError(f"buckets={buckets}: expected 1 to 65535")
    if max_speed_mps is not None and not max_speed_mps > 0:
        raise DataError(f"max_speed_mps={max_speed_mps}: expected a positive speed")
    reading = Reading(
        zone=zone, columns=columns, keep=tuple(keep) if keep is not None else None, delimiter=delimiter,
        encoding=encoding, tick_s=tick_s, time=time, crs=crs,
    )  # fmt: skip
    with whole_folder(out, overwrite=overwrite) as work:
        for name in ("spill", "_aside", "fixes"):
            (work / name).mkdir()
        made = _run(source, work, format, reading, buckets, max_speed_mps, tick_s or 1.0, engine, spark)
        _finish(made, work, max_bad_share)
    for warning in made.report.warnings:
        warnings.warn(warning, QualityWarning, stacklevel=2)
    return open_fixes(out)


@dataclass(frozen=True)
class Made:
    """What an ingest wrote, before it has its name."""

    report: Report
    entries: tuple[dict[str, Any], ...]
    columns: Mapping[str, str]
    buckets: int
    crs: str | None
    described: Mapping[str, Any]
    tick_s: float


def _run(
    source: Any,
    work: Path,
    format: str | None,
    reading: Reading,
    buckets: int | None,
    max_speed_mps: float | None,
    tick_s: float,
    engine: str,
    spark: Any,
) -> Made:
    notes: tuple[str, ...] = ()
    crs = reading.crs
    described: dict[str, Any] = {"format": "table"}
    plan = Plan(str(work), buckets or 16, reading=reading, max_speed_mps=max_speed_mps, tick_s=tick_s)
    pending: dict[int, list[pa.Table]] = {}
    if isinstance(source, str | os.PathLike):
        resolved = resolve(Path(source), format, reading)
        weight = {m.name: m.weight for m in resolved.source.members}
        plan = replace(
            plan, source=str(resolved.source.path.absolute()), format=resolved.form.name, reading=resolved.reading,
            box=resolved.form.box, buckets=buckets or _buckets(sum(weight[name] for name in resolved.members)),
        )  # fmt: skip
        notes = resolved.notes
        described = {
            "name": Path(source).name,
            "format": resolved.form.name,
            "zone": resolved.reading.zone,
            "files": len(resolved.members),
        }
        if is_ingested(Path(source)):
            crs = open_fixes(Path(source)).crs
        crs = crs or resolved.reading.crs
        if engine == "spark":
            from workbench.datasets import spark_io

            receipts = spark_io.scatter(plan, _parts(resolved, spark_io.parallelism(spark)), spark)
        else:
            receipts, pending = _scatter_here(plan, coalesced(read_part(plan, Part(0, resolved.members))))
    elif _is_spark(source):
        from workbench.datasets import spark_io

        receipts = spark_io.scatter_frame(plan, source)
        engine = "spark"
    else:
        tables, crs = _tables_of(source, reading)
        receipts, pending = _scatter_here(plan, coalesced(tables))
    receipts.sort(key=lambda receipt: receipt.index)
    _drop_failed_attempts(work, receipts)
    plan = replace(plan, columns=joined_columns(receipts))
    files = {b: [f for r in receipts for f in r.files.get(b, [])] for b in range(plan.buckets)}
    jobs = [(b, files[b]) for b in range(plan.buckets) if files[b] or b in pending]
    if engine == "spark":
        from workbench.datasets import spark_io

        results = spark_io.settle(plan, jobs, spark)
    else:
        results = []
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool, progress("sorting", len(jobs), "buckets") as done:
            for result in pool.map(lambda job: settle_bucket(plan, job[0], job[1], pending.pop(job[0], ())), jobs):
                results.append(result)
                done(1)
    suspicion = sum((Suspicion(*r.suspicion) for r in receipts), Suspicion())
    swapped = suspicion.warning()
    report = Report(rows=sum(r.rows for r in receipts), notes=notes, warnings=(swapped,) if swapped else ())
    for receipt in receipts:
        report += Report(aside=receipt.aside)
    for result in results:
        report += Report(
            kept=result["entry"]["rows"],
            collapsed=result["collapsed"],
            aside=result["aside"],
            out_of_order=result["out_of_order"],
        )
    if "lon" in plan.columns:
        crs = "EPSG:4326"
    elif "x" not in plan.columns:
        crs = None
    entries = tuple(result["entry"] for result in results)
    named = (plan.reading.columns or {}).get("x", "x").lower()
    if "x" in plan.columns and crs is None and named == "x" and report.kept and all(map(_could_be_degrees, entries)):
        report = report.told("x and y are taken for metres; were they degrees, they would be columns lon and lat")
    return Made(report, entries, plan.columns, plan.buckets, crs, described, tick_s)


def _scatter_here(plan: Plan, tables: Iterator[pa.Table]) -> tuple[list[Receipt], dict[int, list[pa.Table]]]:
    scatter = Scatter(plan, 0)
    with progress("reading", unit="rows") as done:
        for table in tables:
            scatter.add(table)
            done(table.num_rows)
    if scatter.receipt.files.keys() - {-1}:  # once any is on disk all are, so that the order of the input is kept
        scatter.flush()
    pending = scatter.pending
    return [scatter.close()], pending


def _drop_failed_attempts(work: Path, receipts: Sequence[Receipt]) -> None:
    good = {Path(name).name for r in receipts for names in r.files.values() for name in names}
    for file in (work / "_aside").iterdir():
        if file.name not in good:
            file.unlink()


def _is_spark(source: Any) -> bool:
    return type(source).__module__.startswith("pyspark.sql")


def _tables_of(source: Any, reading: Reading) -> tuple[Iterator[pa.Table], str | None]:
    """Tables of fixes from whatever holds them in this process, and their coordinate reference system."""
    from workbench.datasets.frames import fixes_from

    converted, crs = fixes_from(source, reading.crs)
    if converted is not None:
        return iter([from_table(converted, reading, "the table")]), reading.crs or crs
    if isinstance(source, pa.Table | pa.RecordBatch):
        source = [source]
    if not isinstance(source, Iterable):
        raise DataError(
            f"cannot ingest a {type(source).__name__}; expected a path, a table, or an iterable of Arrow tables"
        )
    return (from_table(_as_table(item), reading, "the table") for item in source), reading.crs


def _as_table(item: Any) -> pa.Table:
    if isinstance(item, pa.RecordBatch):
        return pa.Table.from_batches([item])
    if isinstance(item, pa.Table):
        return item
    if hasattr(item, "columns") and hasattr(item, "dtypes"):
        return pa.Table.from_pandas(item, preserve_index=False)
    raise DataError(f"cannot ingest a {type(item).__name__}; expected Arrow or pandas tables")


def _finish(made: Made, work: Path, max_bad_share: float) -> None:
    report = made.report
    if report.rows == 0:
        raise DataError("the source holds no rows; nothing was written")
    if not report.adds_up:
        raise AssertionError(f"rows in are not kept + collapsed + set aside: {report}")
    if report.bad_share > max_bad_share:
        raise DataError(
            f"{100 * report.bad_share:.1f} % of the rows cannot be used, more than the "
            f"{100 * max_bad_share:.1f} % allowed (max_bad_share); nothing was written\n{report}\n{_examples(work)}"
        )
    entries = [entry for entry in made.entries if entry["rows"]]
    files = entries or [_nothing(made, work)]
    kind = made.columns.get("t", "int64")
    first, last = (min(e["t"][0] for e in entries), max(e["t"][1] for e in entries)) if entries else (None, None)
    bounds: dict[str, list[float]] = {}
    for entry in entries:
        for axis, (low, high) in entry.get("bounds", {}).items():
            if low is not None:
                known = bounds.get(axis, [low, high])
                bounds[axis] = [min(known[0], low), max(known[1], high)]
    manifest = {
        "kind": "fixes",
        "schema_version": SCHEMA_VERSION,
        "rows": report.kept,
        "mobiles": sum(entry["mobiles"] for entry in entries),
        "columns": [{"name": name, "type": kind} for name, kind in made.columns.items()],
        "crs": made.crs,
        "bounds": bounds,
        "time": {
            "type": kind,
            "first": _shown(first, kind),
            "last": _shown(last, kind),
            "tick_s": seconds_per_tick(type_of(kind), made.tick_s),
        },
        "source": dict(made.described),
        "buckets": {"count": made.buckets, "hash": HASH, "sorted_by": ["mobile", "t"], "files": files},
        "quality": report.as_dict(),
    }
    for file in (work / "spill").iterdir():
        file.unlink()
    (work / "spill").rmdir()
    (work / MANIFEST).write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")


def _nothing(made: Made, work: Path) -> dict[str, Any]:
    """A bucket without rows: where no row is kept, a reader still finds the columns."""
    name = "fixes/bucket-00000.parquet"
    write_parquet(pa.schema([(n, type_of(kind)) for n, kind in made.columns.items()]).empty_table(), work / name)
    return {"bucket": 0, "rows": 0, "mobiles": 0, "path": name}


def _shown(t: int | None, kind: str) -> Any:
    if t is None or not kind.startswith("timestamp"):
        return t
    return pa.scalar(t, pa.int64()).cast(type_of(kind)).as_py().isoformat()


def _examples(work: Path) -> str:
    import pyarrow.parquet as pq

    for file in sorted((work / "_aside").glob("*.parquet")):
        rows = pq.read_table(file).slice(0, 3).to_pylist()
        shown = [", ".join(f"{k}={v}" for k, v in row.items() if v is not None) for row in rows]
        return "such as:\n" + "\n".join(f"  {line[:200]}" for line in shown)
    return ""


def load(source: Any, **options: Any) -> Any:
    """Fixes of a source small enough for memory, as a pandas table in the order of (mobile, t).

    Takes what `ingest` takes; `report_of(table)` says what became of the rows.

    >>> load(pa.table({"mobile": [2, 1], "t": [1, 1], "lon": [0.0, 8.6], "lat": [50.0, 49.9]}), max_bad_share=0.5)
       mobile  t  lon   lat
    0       1  1  8.6  49.9
    """
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="workbench-load-") as folder:
        fixes = ingest(source, Path(folder) / "fixes", **{"buckets": 1, **options})
        table = fixes.to_pandas()
        table.attrs["report"], table.attrs["crs"] = fixes.report.as_dict(), fixes.crs
        return table
