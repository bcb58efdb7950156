"""CSV and Parquet of any shape, by a mapping of columns.

`columns={"mobile": "cab", "t": "time", "lon": "x", "lat": "y"}` names for each column of the fixes the column it
comes from; `"scene+ped"` joins two columns into one id with a `/` between. Columns that are not mapped are found by
their usual names (`SYNONYMS`), and what was found is said. All other columns are attributes and keep their names,
unless `keep` lists those wanted.

Times: `time="ticks"` (whole numbers as they are: the default for whole numbers), `"unix"`, `"unix_ms"`, `"seconds"`
(decimals, with `tick_s`) or `"text"`.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workbench.datasets.archives import Source
from workbench.datasets.formats.base import (
    AXES,
    Cell,
    Failure,
    Format,
    Opened,
    Reading,
    first_line,
    fixes_table,
    header_of,
    recoded,
    text_tables,
    unread_cells,
)
from workbench.datasets.frames import axes_of, geometry_of, points_table
from workbench.datasets.quality import RESERVED, coordinates_of
from workbench.datasets.times import Clock, numbers, read_times, whole_numbers
from workbench.errors import DataError, did_you_mean, raise_all

SYNONYMS: dict[str, tuple[str, ...]] = {
    "mobile": (
        "mobile", "mobile_id", "user", "user_id", "uid", "cab", "taxi", "taxi_id", "vehicle", "vehicle_id", "mmsi",
        "ship", "device", "device_id", "ped", "agent", "tracker", "trajectory_id", "traj_id", "tid", "id",
    ),
    "t": ("t", "time", "timestamp", "datetime", "date_time", "t_local", "t_s", "unix", "unix_time", "instant"),
    "lon": ("lon", "longitude", "lng", "long"),
    "lat": ("lat", "latitude"),
    "x": ("x", "x_m", "easting"),
    "y": ("y", "y_m", "northing"),
    "z": ("z", "z_m"),
}  # fmt: skip


def resolve_columns(
    names: Sequence[str], given: Mapping[str, str] | None, where: str
) -> tuple[dict[str, str], list[str]]:
    """For each column of the fixes the column it comes from, and what was found by itself.

    >>> resolve_columns(["cab", "lat", "lon", "t", "occupied"], None, "cabs.csv")
    ({'mobile': 'cab', 't': 't', 'lon': 'lon', 'lat': 'lat'}, ['mobile is read from cab'])
    """
    chosen = dict(given or {})
    faults = []
    for name, source in chosen.items():
        if name not in (*SYNONYMS, "op"):
            faults.append(
                f"{where}: columns= names {name!r}, which is no column of fixes; {did_you_mean(name, SYNONYMS)}"
            )
        for part in source.split("+") if source not in names else [source]:
            if part not in names:
                faults.append(f"{where}: column {part!r} for {name!r} is not there; {did_you_mean(part, names)}")
    raise_all(faults, DataError)
    lower = {name.lower().strip(): name for name in reversed(names)} | {name: name for name in names}
    degrees = "lon" in chosen or "lat" in chosen
    metres = "x" in chosen or "y" in chosen
    found = []
    for name, usual in SYNONYMS.items():
        if name in chosen or (name in ("x", "y", "z") and degrees) or (name in ("lon", "lat") and metres):
            continue
        match = next((lower[u] for u in usual if u in lower and lower[u] not in chosen.values()), None)
        if match is not None and not (name in ("x", "y", "z") and "lon" in chosen and "lat" in chosen):
            chosen[name] = match
            if match != name:
                found.append(f"{name} is read from {match}")
    for name in ("mobile", "t"):
        if name not in chosen:
            faults.append(
                f"{where}: no column for {name!r} among {', '.join(names)}; "
                f"say columns={{{name!r}: ...}} (--column {name}=...)"
            )
    for a, b in (("lon", "lat"), ("x", "y")):
        if (a in chosen) != (b in chosen):
            faults.append(
                f"{where}: has {a if a in chosen else b!r} but no column for {b if a in chosen else a!r}; "
                "say columns= (--column)"
            )
    raise_all(faults, DataError)
    order = [n for n in SYNONYMS if n in chosen] + [n for n in chosen if n not in SYNONYMS]
    return {name: chosen[name] for name in order}, found


def clock_for(sample: Sequence[str | None], reading: Reading, where: str) -> Clock:
    """How the times of a sample are to be read, when the user did not say."""
    if reading.time is not None:
        return Clock(reading.time, reading.zone, reading.tick_s)
    values = [value.strip() for value in sample if value]
    whole = sum(bool(re.fullmatch(r"[+-]?\d+(\.0*)?", v)) for v in values)
    number = sum(bool(re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", v)) for v in values)
    if values and number > len(values) / 2:
        if reading.tick_s is not None:
            return Clock("seconds", None, reading.tick_s)
        if whole == number:
            return Clock("ticks")
        raise DataError(
            f"{where}: times such as {values[0]} are decimals: say tick_s= (--tick-s; a tick in seconds, such as "
            "0.01) or time='unix' (--time unix) for seconds since 1970"
        )
    return Clock("text", reading.zone)


def _delimiter(line: bytes) -> str:
    bare = re.sub(rb'"[^"]*"', b"", line.strip())
    counts = {mark: bare.count(mark.encode()) for mark in (",", ";", "\t", "|")}
    best = max(counts, key=lambda mark: counts[mark])
    return best if counts[best] or b" " not in bare else " "


HEAD = 1 << 16


def _first(source: Source, wants: tuple[str, ...]) -> bytes:
    """The beginning of the first file that holds anything, up to the end of a line."""
    for member in source.members:
        if member.plain.endswith(wants) or source.kind == "file":
            with source.open(member.name) as stream:
                head = stream.read(HEAD)
            if head.strip():
                return head if len(head) < HEAD else head[: head.rfind(b"\n") + 1] or head
    raise DataError(f"{source.path.name}: holds no rows")


def resolve_csv(source: Source, reading: Reading) -> tuple[Reading, list[str]]:
    """What the first lines of a CSV tell: delimiter, columns, and how its times are written."""
    head = recoded(_first(source, _TEXT), reading.encoding)
    delimiter = reading.delimiter or _delimiter(first_line(head))
    names = header_of(first_line(head), delimiter, source.path.name)
    columns, notes = resolve_columns(names, reading.columns, source.path.name)
    _check_keep(names, reading, source.path.name)
    opened = Opened(source.path.name, io.BufferedReader(io.BytesIO(head)))  # type: ignore[arg-type]
    sample = next(iter(text_tables(opened, delimiter=delimiter)), None)
    if sample is not None and delimiter != "," and _decimal_commas(sample, columns):
        reading = replace(reading, decimal=",")
        notes.append("coordinates are written with a decimal comma")
    times = sample[columns["t"]].to_pylist()[:1000] if sample is not None else []
    clock = clock_for(times, reading, source.path.name)
    if clock.kind == "ticks" and reading.time is None:
        notes.append("times are whole numbers and stay ticks; time='unix' would read them as seconds since 1970")
    return replace(reading, columns=columns, clock=clock, delimiter=delimiter), notes


def _decimal_commas(sample: pa.Table, columns: Mapping[str, str]) -> bool:
    cells = [cell for name in AXES if name in columns for cell in sample[columns[name]].to_pylist()[:1000] if cell]
    return 2 * sum(bool(re.fullmatch(r"\s*[+-]?\d*,\d+\s*", cell)) for cell in cells) > len(cells)


def _check_keep(names: Sequence[str], reading: Reading, where: str) -> None:
    unknown = [name for name in reading.keep or () if name not in names]
    raise_all(
        [f"{where}: keep= names {name!r}, which is not there; {did_you_mean(name, names)}" for name in unknown],
        DataError,
    )


def _joined(table: pa.Table, columns: Mapping[str, str]) -> tuple[pa.Table, dict[str, str]]:
    """The table with the joined ids as columns of their own."""
    for source in columns.values():
        if source not in table.column_names and "+" in source:
            parts = [table[part].cast(pa.string()) for part in source.split("+")]
            table = table.append_column(source, pc.binary_join_element_wise(*parts, "/"))
    return table, dict(columns)


def read_csv(opened: Opened, reading: Reading) -> Iterator[pa.Table]:
    """The fixes of one CSV file."""
    assert reading.columns is not None and reading.clock is not None
    delimiter = reading.delimiter or ","
    for text in text_tables(opened, delimiter=delimiter, encoding=reading.encoding):
        lacking = [s for s in reading.columns.values() if s not in text.column_names and "+" not in s]
        if lacking:
            raise DataError(
                f"{opened.name}: has no column {', '.join(map(repr, lacking))}; all files share their columns"
            )
        text, columns = _joined(text, reading.columns)
        if reading.decimal != ".":
            for name in {columns[axis] for axis in AXES if axis in columns}:
                points = pc.replace_substring(text[name], reading.decimal, ".")
                text = text.set_column(text.column_names.index(name), name, points)
        yield fixes_table(text, csv_cells(text.column_names, columns, reading), opened.name)


def csv_cells(names: Sequence[str], columns: Mapping[str, str], reading: Reading) -> dict[str, Cell]:
    """How each column of the fixes is read from the text."""
    assert reading.clock is not None
    used = {part for source in columns.values() for part in (source, *source.split("+"))} | {"unread"}
    cells = {"mobile": Cell(columns["mobile"]), "t": Cell(columns["t"], reading.clock)}
    cells |= {name: Cell(columns[name], "number") for name in AXES if name in columns}
    cells |= {name: Cell(source, "text") for name, source in columns.items() if name not in SYNONYMS}
    for name in names:
        if name in used or (reading.keep is not None and name not in reading.keep):
            continue
        if name == "op":
            cells[name] = Cell(name, "text")
        else:
            cells[_attribute(name, cells)] = Cell(name)
    return cells


def _attribute(name: str, taken: Mapping[str, Any]) -> str:
    """The name of an attribute; one that would be taken for something else gets a `_`."""
    coordinate = name in AXES[:4] and ("lon" in taken or "x" in taken)
    return f"{name}_" if name in taken or name in RESERVED or coordinate else name


def from_table(table: pa.Table, reading: Reading, where: str) -> pa.Table:
    """A table with types as a table of fixes: columns renamed, times checked, coordinates as doubles."""
    columns, _ = resolve_columns(table.column_names, reading.columns, where)
    _check_keep(table.column_names, reading, where)
    table, columns = _joined(table, columns)
    used = {part for source in columns.values() for part in (source, *source.split("+"))}
    out: dict[str, pa.ChunkedArray | pa.Array] = {}
    failures: list[Failure] = []
    for name, source in columns.items():
        column = table[source].combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if name == "t":
            clock = reading.clock or (
                clock_for(column.slice(0, 1000).to_pylist(), reading, where)
                if _is_text(column)
                else Clock(reading.time or "text", reading.zone, reading.tick_s)
            )
            out[name] = read_times(column, clock, f"{where}: ")
        elif name in AXES:
            out[name] = numbers(column, pa.float64()) if _is_text(column) else column.cast(pa.float64())
        elif name == "mobile":
            out[name] = _ids(column, where)
        else:
            out[name] = column
        if name in ("t", *AXES) and out[name].null_count > column.null_count:
            lost = pc.and_(pc.is_valid(column), pc.is_null(out[name]))
            failures.append((source, column, lost, False))
    for name in table.column_names:
        if name not in used and (reading.keep is None or name in reading.keep) and not name.startswith("__index"):
            out[_attribute(name, out)] = plain(table[name])
    if "op" in out:
        out["op"] = out["op"].cast(pa.string())  # whatever it holds: the gate knows three words
    if failures:
        out["unread"] = unread_cells(table.num_rows, failures)[1]
    return pa.table(out)


def _is_text(column: pa.Array) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column without dictionaries, and text with one kind of offsets."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.string()) if pa.types.is_large_string(column.type) else column


def _ids(column: pa.Array, where: str) -> pa.Array:
    if pa.types.is_integer(column.type) or pa.types.is_string(column.type):
        return column
    if pa.types.is_large_string(column.type) or pa.types.is_null(column.type):
        return column.cast(pa.string())
    if pa.types.is_floating(column.type):  # pandas makes decimals of whole numbers where one is missing
        column = pc.if_else(pc.is_nan(column), None, column)
        found = whole_numbers(column.cast(pa.float64()))
        if found.null_count == column.null_count:
            return found
    raise DataError(f"{where}: ids of type {column.type} cannot be used; expected whole numbers or text")


def read_parquet(opened: Opened, reading: Reading) -> Iterator[pa.Table]:
    """The fixes of one Parquet file, row group by row group."""
    with _parquet(opened.path, opened.stream, opened.name) as file:
        for index in range(file.num_row_groups):
            if not _begins_in(opened.share, file.metadata.row_group(index)):
                continue
            try:
                table = file.read_row_group(index)
            except (pa.ArrowInvalid, OSError) as error:
                raise _unreadable(opened.name, error) from error
            if reading.geometry is not None:
                table = points_table(table, *reading.geometry)
            yield from_table(table, reading, opened.name)


def _begins_in(share: tuple[int, int | None] | None, group: pq.RowGroupMetaData) -> bool:
    if share is None or not group.num_columns:
        return share is None
    column = group.column(0)
    at = column.data_page_offset
    at = min(at, column.dictionary_page_offset) if column.has_dictionary_page else at
    return bool(share[0] <= at and (share[1] is None or at < share[1]))


def _parquet(path: Path | None, stream: io.BufferedReader, name: str) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path if path is not None else pa.BufferReader(stream.read()))
    except (pa.ArrowInvalid, OSError) as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: Exception) -> DataError:
    return DataError(f"{name}: is no readable Parquet file ({str(error).splitlines()[0]})")


def resolve_parquet(source: Source, reading: Reading) -> tuple[Reading, list[str]]:
    """What the schema of the first Parquet file tells; GeoParquet of points has its coordinates in the geometry."""
    for member in source.members:
        if member.plain.endswith(_PARQUET) or source.kind == "file":
            path = source.path_of(member.name)
            with source.open(member.name) as stream, _parquet(path, stream, member.name) as file:
                schema = file.schema_arrow
            names, told = schema.names, []
            if b"geo" in (schema.metadata or {}) and not coordinates_of([name.lower() for name in names]):
                column, crs = geometry_of(schema.metadata[b"geo"], member.name, reading.crs)
                axes, metres = axes_of(crs)
                reading = replace(reading, geometry=(column, crs), crs=metres or reading.crs)
                names = [*(name for name in names if name != column), *axes]
                told.append(f"positions are read from {column}, in {crs}")
            columns, notes = resolve_columns(names, reading.columns, source.path.name)
            return replace(reading, columns=columns), notes + told
    raise DataError(f"{source.path.name}: holds no Parquet file")


_TEXT = (".csv", ".tsv", ".txt")
_PARQUET = (".parquet", ".pq", ".geoparquet")

CSV = Format(
    name="csv",
    title="CSV with a column mapping",
    wants=lambda name: name.endswith(_TEXT),
    knows=lambda name, head: name.endswith(_TEXT) and b"\x00" not in head[:100],
    read=read_csv,
    header=1,
    resolve=resolve_csv,
)
PARQUET = Format(
    name="parquet",
    title="Parquet with a column mapping",
    wants=lambda name: name.endswith(_PARQUET),
    knows=lambda _, head: head.startswith(b"PAR1"),
    read=read_parquet,
    resolve=resolve_parquet,
)
