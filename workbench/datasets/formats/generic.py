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

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workbench.datasets.archives import Source
from workbench.datasets.formats.base import Cell, Format, Opened, Reading, fixes_table, header_of, text_tables
from workbench.datasets.times import Clock, read_times
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
_PLACE = ("lon", "lat", "x", "y", "z")


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
    lower = {name.lower().strip(): name for name in reversed(names)}
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
    whole = sum(bool(re.fullmatch(r"[+-]?\d+", v)) for v in values)
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
    counts = {mark: line.count(mark.encode()) for mark in (",", ";", "\t", "|")}
    return max(counts, key=lambda mark: counts[mark])


def _first(source: Source, reading: Reading, wants: tuple[str, ...]) -> bytes:
    for member in source.members:
        if member.plain.endswith(wants):
            with source.open(member.name) as stream:
                head = stream.read(1 << 16)
            if head.strip():
                return head
    raise DataError(f"{source.path.name}: holds no rows")


def resolve_csv(source: Source, reading: Reading) -> tuple[Reading, list[str]]:
    """What the first lines of a CSV tell: delimiter, columns, and how its times are written."""
    head = _first(source, reading, _TEXT)
    if reading.encoding.lower().replace("-", "") != "utf8":
        head = head.decode(reading.encoding, "replace").encode()
    delimiter = reading.delimiter or _delimiter(head.split(b"\n")[0])
    names = header_of(head.split(b"\n")[0], delimiter, source.path.name)
    columns, notes = resolve_columns(names, reading.columns, source.path.name)
    _check_keep(names, reading, source.path.name)
    opened = Opened(source.path.name, io.BufferedReader(io.BytesIO(head[: head.rfind(b"\n") + 1] or head)))  # type: ignore[arg-type]
    sample = next(iter(text_tables(opened, delimiter=delimiter)), None)
    times = sample[columns["t"]].to_pylist()[:1000] if sample is not None else []
    clock = clock_for(times, reading, source.path.name)
    if clock.kind == "ticks" and reading.time is None:
        notes.append("times are whole numbers and stay ticks; time='unix' would read them as seconds since 1970")
    return replace(reading, columns=columns, clock=clock, delimiter=delimiter), notes


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
        yield fixes_table(text, csv_cells(text.column_names, columns, reading), opened.name)


def csv_cells(names: Sequence[str], columns: Mapping[str, str], reading: Reading) -> dict[str, Cell]:
    """How each column of the fixes is read from the text."""
    assert reading.clock is not None
    used = {part for source in columns.values() for part in (source, *source.split("+"))} | {"unread"}
    cells = {"mobile": Cell(columns["mobile"]), "t": Cell(columns["t"], reading.clock)}
    cells |= {name: Cell(columns[name], "number") for name in _PLACE if name in columns}
    cells |= {name: Cell(source, "text") for name, source in columns.items() if name not in SYNONYMS}
    for name in names:
        if name in used or (reading.keep is not None and name not in reading.keep):
            continue
        if name == "op":
            cells[name] = Cell(name, "text")
        else:
            cells[name if name not in cells else f"{name}_"] = Cell(name)
    return cells


def from_table(table: pa.Table, reading: Reading, where: str) -> pa.Table:
    """A table with types as a table of fixes: columns renamed, times checked, coordinates as doubles."""
    columns, _ = resolve_columns(table.column_names, reading.columns, where)
    _check_keep(table.column_names, reading, where)
    table, columns = _joined(table, columns)
    used = {part for source in columns.values() for part in (source, *source.split("+"))}
    out: dict[str, pa.ChunkedArray | pa.Array] = {}
    for name, source in columns.items():
        column = table[source].combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if name == "t":
            text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
            clock = reading.clock or (
                clock_for(column.slice(0, 1000).to_pylist(), reading, where)
                if text
                else Clock(reading.time or "text", reading.zone, reading.tick_s)
            )
            out[name] = read_times(column, clock, f"{where}: ")
        elif name in _PLACE:
            out[name] = column.cast(pa.float64())
        elif name == "mobile":
            out[name] = _ids(column, where)
        else:
            out[name] = column
    for name in table.column_names:
        if name not in used and (reading.keep is None or name in reading.keep) and not name.startswith("__index"):
            out[name if name not in out else f"{name}_"] = plain(table[name])
    return pa.table(out)


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
    if pa.types.is_floating(column.type) and pc.all(pc.equal(column, pc.round(column))).as_py() in (True, None):
        return column.cast(pa.int64())  # pandas makes decimals of whole numbers where one is missing
    raise DataError(f"{where}: ids of type {column.type} cannot be used; expected whole numbers or text")


def read_parquet(opened: Opened, reading: Reading) -> Iterator[pa.Table]:
    """The fixes of one Parquet file, row group by row group."""
    try:
        source = opened.path if opened.path is not None else pa.BufferReader(opened.stream.read())
        with pq.ParquetFile(source) as file:
            for index in range(file.num_row_groups):
                yield from_table(file.read_row_group(index), reading, opened.name)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{opened.name}: is no readable Parquet file ({str(error).splitlines()[0]})") from error


def resolve_parquet(source: Source, reading: Reading) -> tuple[Reading, list[str]]:
    """What the schema of the first Parquet file tells."""
    for member in source.members:
        if member.plain.endswith(_PARQUET):
            with source.open(member.name) as stream:
                path = source.path_of(member.name)
                try:
                    names = pq.read_schema(path if path is not None else pa.BufferReader(stream.read())).names
                except (pa.ArrowInvalid, OSError) as error:
                    raise DataError(
                        f"{member.name}: is no readable Parquet file ({str(error).splitlines()[0]})"
                    ) from error
            columns, notes = resolve_columns(names, reading.columns, source.path.name)
            return replace(reading, columns=columns), notes
    raise DataError(f"{source.path.name}: holds no Parquet file")


_TEXT = (".csv", ".tsv", ".txt")
_PARQUET = (".parquet", ".pq", ".geoparquet")

CSV = Format(
    name="csv",
    title="CSV with a column mapping",
    wants=lambda name: name.endswith(_TEXT),
    knows=lambda name, head: name.endswith(_TEXT) and b"\x00" not in head[:100],
    read=read_csv,
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
