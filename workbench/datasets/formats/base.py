"""What a format is, and how text becomes a table of fixes.

A format says which members of a source it reads, how it recognises itself, and how one member becomes Arrow tables
of fixes. Its tables hold every row of the member: a cell that cannot be read is null, with its text in the column
`unread`, and a line that is no row at all has the reason `row unreadable`. Judging rows is the gate's work, not the
loader's.

Columns whose type only the whole set can tell (ids and further columns of a CSV) stay text marked `infer`; the type is
settled when all of the set has been seen, so that it depends neither on the order nor on the size of the batches.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from workbench.datasets.archives import Source
from workbench.datasets.lines import BLOCK, Rows
from workbench.datasets.quality import RESERVED, ROW
from workbench.datasets.times import Clock, numbers, read_times
from workbench.errors import DataError

INFER = {b"infer": b"1"}
AXES = ("lon", "lat", "x", "y", "z")
_NULLS = ["", "NaN", "nan", "null", "NULL", "NA"]


@dataclass(frozen=True)
class Reading:
    """How a source is to be read: what the user said, completed by what the format knows."""

    clock: Clock | None = None
    zone: str | None = None
    columns: Mapping[str, str] | None = None
    keep: tuple[str, ...] | None = None
    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf8"
    tick_s: float | None = None
    time: str | None = None
    crs: str | None = None
    side: Any = None
    geometry: tuple[str, str] | None = None
    """the column of the points, and their reference system"""


@dataclass(frozen=True)
class Opened:
    """A member, or a share of one, being read: its name, its stream and, where it lies unpacked on disk, its path."""

    name: str
    stream: io.BufferedReader
    path: Path | None = None
    share: tuple[int, int | None] | None = None
    """The bytes that are meant, where it is not all of it; a stream of text holds just their lines."""


@dataclass(frozen=True)
class Format:
    """A public format.

    zone: the published zone of its local times (None: its times carry one, or are in UTC). box: where its data lies
    (west, south, east, north), by which swapped coordinates are suspected. side: reads small members that others need.
    header: how many lines begin each share of a large text that several readers share; None: one reader takes it whole,
    or, of Parquet, its row groups.
    """

    name: str
    title: str
    wants: Callable[[str], bool]
    knows: Callable[[str, bytes], bool]
    read: Callable[[Opened, Reading], Iterator[pa.Table]]
    zone: str | None = None
    box: tuple[float, float, float, float] | None = None
    side: Callable[[Source, Reading], Any] | None = None
    resolve: Callable[[Source, Reading], tuple[Reading, list[str]]] | None = None
    notes: tuple[str, ...] = field(default=())
    header: int | None = None


@dataclass(frozen=True)
class Cell:
    """A column of the fixes: the column of the text that it comes from, and how to read it."""

    source: str
    kind: str | Clock = "infer"


class _Recoded(io.RawIOBase):
    """A stream in another encoding as UTF-8; what it cannot decode becomes the replacement character."""

    def __init__(self, stream: io.BufferedReader, encoding: str) -> None:
        self._text = io.TextIOWrapper(stream, encoding, errors="replace", newline="")
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            self._left = self._text.read(max(1, len(buffer) // 4)).encode()
        data, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


def text_tables(
    opened: Opened,
    names: Sequence[str] | None = None,
    *,
    delimiter: str = ",",
    skip: int = 0,
    encoding: str = "utf8",
) -> Iterator[pa.Table]:
    """The rows of delimited text as tables of text; `names` where the text has no header.

    Lines with too few or too many cells, and rows that are no UTF-8, come as rows of nulls with their text in `unread`.
    """
    stream = opened.stream
    if encoding.lower().replace("-", "") not in ("utf8", "utf8sig"):
        try:
            stream = io.BufferedReader(_Recoded(stream, encoding), BLOCK)
        except LookupError:
            raise DataError(f"{opened.name}: encoding {encoding!r} is unknown; use a name such as 'latin-1'") from None
    for _ in range(skip):
        _line(stream)
    if names is None:
        names = header_of(_line(stream), delimiter, opened.name)
        if not names:
            return
    bad: list[str] = []

    def keep_invalid(row: Any) -> str:
        bad.append(row.text)
        return "skip"

    stream = io.BufferedReader(Rows(stream, delimiter, len(names), bad.append), BLOCK)

    try:
        reader = pcsv.open_csv(
            stream,
            read_options=pcsv.ReadOptions(column_names=list(names), block_size=BLOCK),
            parse_options=pcsv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=keep_invalid
            ),
            convert_options=pcsv.ConvertOptions(
                column_types={name: pa.string() for name in names},
                check_utf8=False,
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
                null_values=_NULLS,
            ),
        )
        for batch in reader:
            yield from _checked(pa.Table.from_batches([batch]), bad)
    except pa.ArrowInvalid as error:
        if "Empty CSV file" not in str(error):
            raise DataError(f"{opened.name}: cannot be read as text ({str(error).splitlines()[0]})") from error
    if bad:
        yield from _checked(pa.schema([(name, pa.string()) for name in names]).empty_table(), bad)


def first_line(head: bytes) -> bytes:
    """The first line, whatever ends it: LF, CR LF, or CR alone.

    >>> first_line(b"a,b\\r1,2\\r")
    b'a,b'
    """
    return re.split(rb"[\r\n]", head, maxsplit=1)[0]


def _line(stream: io.BufferedReader) -> bytes:
    """Take the first line off a stream."""
    head = stream.peek(1)
    line = first_line(head)
    if len(line) == len(head):  # longer than what lies ready
        return stream.readline(1 << 20)
    stream.read(len(line))
    if stream.read(1) == b"\r" and stream.peek(1)[:1] == b"\n":
        stream.read(1)
    return line


def recoded(head: bytes, encoding: str) -> bytes:
    """The beginning of a text as UTF-8."""
    if encoding.lower().replace("-", "") in ("utf8", "utf8sig"):
        return head
    try:
        return head.decode(encoding, "replace").encode()
    except LookupError:
        raise DataError(f"encoding {encoding!r} is unknown; use a name such as 'latin-1'") from None


def header_of(line: bytes, delimiter: str, name: str) -> list[str]:
    """The column names in the first line of a text."""
    if line.startswith(b"\x1f\x8b"):
        raise DataError(f"{name}: is packed with gzip; let its name end in .gz")
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(f"{name}: is UTF-16; say encoding='utf-16', or save it as UTF-8")
    try:
        text = line.decode("utf-8-sig").strip("\r\n")
    except UnicodeDecodeError:
        raise DataError(f"{name}: the header is no UTF-8; say its encoding, such as encoding='latin-1'") from None
    if not text.strip():
        return []
    try:
        names = [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter))]
    except csv.Error as error:
        raise DataError(f"{name}: the header cannot be read ({error})") from None
    twice = sorted({n for n in names if names.count(n) > 1 and n})
    if twice:
        raise DataError(f"{name}: the header names {', '.join(map(repr, twice))} twice")
    # what the gate says about a row has these names itself
    return [f"{n}_" if n in RESERVED else n or f"column_{i + 1}" for i, n in enumerate(names)]


def _checked(table: pa.Table, bad: list[str]) -> Iterator[pa.Table]:
    told = bad[:]
    del bad[: len(told)]  # the reader is ahead, and may have added more meanwhile
    lines = [pa.array(told, pa.string())] if told else []
    try:
        for column in table.columns:
            for chunk in column.chunks:
                chunk.cast(pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        wrong, columns = [False] * table.num_rows, []
        raw = [column.combine_chunks().cast(pa.binary()).to_pylist() for column in table.columns]
        for cells in raw:
            for row, cell in enumerate(cells):
                wrong[row] = wrong[row] or (cell is not None and not _is_utf8(cell))
        text = [
            b",".join(cells[row] or b"" for cells in raw).decode("utf-8", "backslashreplace")
            for row, w in enumerate(wrong)
            if w
        ]
        lines.append(pa.array(text, pa.string()))
        for cells in raw:
            columns.append(
                pa.array(
                    [c.decode() if c is not None else None for c, w in zip(cells, wrong, strict=True) if not w],
                    pa.string(),
                )
            )
        table = pa.table(columns, names=table.column_names)
    table = table.append_column("unread", pa.nulls(table.num_rows, pa.string()))
    if lines:
        whole = pa.concat_arrays(lines)
        empty = {name: pa.nulls(len(whole), pa.string()) for name in table.column_names[:-1]}
        table = pa.concat_tables([table, pa.table({**empty, "unread": whole})])
    if table.num_rows:
        yield table


def _is_utf8(cell: bytes) -> bool:
    try:
        cell.decode()
    except UnicodeDecodeError:
        return False
    return True


def _trimmed(text: pa.Array) -> pa.Array:
    """Text without the spaces around it; nothing but spaces is nothing."""
    if not pc.any(pc.match_substring_regex(text, r"^\s|\s$")).as_py():
        return text
    trimmed = pc.utf8_trim_whitespace(text)
    return pc.if_else(pc.equal(trimmed, ""), None, trimmed)


def fixes_table(text: pa.Table, cells: Mapping[str, Cell], where: str) -> pa.Table:
    """A table of text as a table of fixes: one column for each cell, then `reason` and `unread`."""
    rows = text.num_rows
    given = text["unread"] if "unread" in text.column_names else pa.nulls(rows, pa.string())
    broken = pc.is_valid(given)
    columns: dict[str, Any] = {}
    fields: list[pa.Field] = []
    failures: list[Failure] = []
    for name, cell in cells.items():
        source = text[cell.source]
        if isinstance(source, pa.ChunkedArray):
            source = source.combine_chunks()
        if isinstance(cell.kind, Clock):
            column = read_times(source, cell.kind, f"{where}: ")
        elif cell.kind == "number":
            column = numbers(source, pa.float64())
        elif cell.kind == "whole":
            column = numbers(source, pa.int64())
        elif cell.kind == "infer":
            column = _trimmed(source)
        else:
            column = source
        if cell.kind != "infer" and column.null_count > source.null_count:
            lost = pc.and_(pc.is_valid(source), pc.is_null(column))
            failures.append((cell.source, source, lost, name not in ("t", *AXES)))
        columns[name] = column
        fields.append(pa.field(name, column.type, metadata=INFER if cell.kind == "infer" else None))
    attribute, mine = unread_cells(rows, failures)
    reason = pc.if_else(pc.or_(broken, attribute), ROW, pa.scalar(None, pa.string()))
    unread = pc.coalesce(given, mine)
    fields += [pa.field("reason", pa.string()), pa.field("unread", pa.string())]
    return pa.table([*columns.values(), reason, unread], schema=pa.schema(fields))


Failure = tuple[str, pa.Array, pa.Array, bool]
"""A column of the source, its cells, which of them could not be read, and whether that makes the row unreadable."""


def unread_cells(rows: int, failures: Sequence[Failure]) -> tuple[pa.Array, pa.Array]:
    """Which rows are unreadable for their cells, and for each row the cells that could not be read, as text."""
    if not failures:
        return pa.array(np.zeros(rows, bool)), pa.nulls(rows, pa.string())
    notes: list[dict[str, str]] = [{} for _ in range(rows)]
    unreadable = [False] * rows
    for name, source, lost, matters in failures:
        for row in pc.indices_nonzero(lost).to_pylist():
            notes[row][name] = str(source[row].as_py())
            unreadable[row] = unreadable[row] or matters
    return pa.array(unreadable), pa.array(
        [json.dumps(n, ensure_ascii=False) if n else None for n in notes], pa.string()
    )
