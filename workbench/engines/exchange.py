"""Exchange: rows go from the files where they lie to the part of the work that needs them, by way of other files.

The shuffle of a cluster, without a row passing the JVM. *Scatter*: a task reads some row groups, says for each row to
which part it goes, and writes one Arrow file in which the rows of each part stand together, batch by batch. *Gather*: a
task maps all these files into memory and takes its own rows from each. The order of the source is kept, so that rows
which came in the order of time still do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.compiling import compiled
from workbench.errors import DataError

ROWS_AT_ONCE = 1 << 20
Lay = Callable[[pa.Table], tuple[np.ndarray, np.ndarray]]
"""the rows of a table in the order of the parts that they go to, and where each part begins"""


class Group(NamedTuple):
    """A row group of a Parquet file."""

    file: str
    number: int
    rows: int


def groups_of(files: Iterable[str]) -> list[Group]:
    """All row groups of some files, in their order."""
    found = []
    for file in files:
        with opened(file) as source:
            rows = [source.metadata.row_group(n).num_rows for n in range(source.metadata.num_row_groups)]
        found += [Group(file, n, count) for n, count in enumerate(rows)]
    return found


def opened(file: str) -> pq.ParquetFile:
    """A Parquet file; one sentence that names it where it cannot be read."""
    try:
        return pq.ParquetFile(file)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"{file!r} cannot be read: {error}") from None


def schema_of(files: Sequence[str], plainly: bool = True) -> pa.Schema:
    """The columns of all files together; plainly, of types that an exchange can carry."""
    found = []
    for file in files:
        with opened(file) as source:
            found.append(plain(source.schema_arrow) if plainly else source.schema_arrow.remove_metadata())
    try:
        return pa.unify_schemas(found, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"{files[0]!r} and the files beside it have columns of different types: {error}") from None


def plain(schema: pa.Schema) -> pa.Schema:
    """Values instead of codes.

    >>> plain(pa.schema({"t": pa.timestamp("ns", "UTC"), "kind": pa.dictionary(pa.int8(), pa.string())}))
    t: timestamp[ns, tz=UTC]
    kind: string
    """
    return pa.schema([(field.name, _plain(field.type)) for field in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    return _plain(kind.value_type) if pa.types.is_dictionary(kind) else kind


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table with the columns and types of all: what it has not is null."""
    if table.schema.equals(schema):
        return table
    columns = []
    for field in schema:
        if field.name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, field.type))
        else:
            columns.append(table[field.name].cast(field.type))
    return pa.table(columns, schema=schema)


# -- scatter -------------------------------------------------------------------------------------------------


@compiled
def _together(part, parts):  # type: ignore[no-untyped-def]
    """The order in which the rows of each part stand together, and where each part begins."""
    offsets = np.zeros(parts + 1, np.int64)
    for p in part:
        offsets[p + 1] += 1
    fill = np.empty(parts, np.int64)
    for p in range(parts):
        fill[p] = offsets[p]
        offsets[p + 1] += offsets[p]
    order = np.empty(len(part), np.int64)
    for i in range(len(part)):
        order[fill[part[i]]] = i
        fill[part[i]] += 1
    return order, offsets


def take(table: pa.Table, order: np.ndarray) -> pa.Table:
    """Rows of a table in another order; plain numbers by NumPy, which is faster at it."""
    columns = []
    for column in table.itercolumns():
        kind = column.type
        if column.null_count or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            columns.append(column.take(pa.array(order)))
        else:
            columns.append(pa.array(column.to_numpy()[order], kind))
    return pa.table(columns, schema=table.schema)


def rows_of(groups: Sequence[Group], schema: pa.Schema, at_once: int = ROWS_AT_ONCE) -> Iterator[pa.Table]:
    """The rows of row groups, so many at a time."""
    by_file: dict[str, list[int]] = {}
    for group in groups:
        by_file.setdefault(group.file, []).append(group.number)
    for file, numbers in by_file.items():
        with opened(file) as source:
            try:
                for batch in source.iter_batches(at_once, row_groups=numbers):
                    yield conform(pa.Table.from_batches([batch]), schema)
            except (OSError, pa.ArrowInvalid) as error:
                raise DataError(f"{file!r} cannot be read: {error}") from None


def by_part(part: np.ndarray, parts: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the order of their parts.

    >>> [found.tolist() for found in by_part(np.array([1, 0, 1]), 2)]
    [[1, 0, 2], [0, 1, 3]]
    """
    return _together(part, parts)  # type: ignore[no-any-return]


def scatter(tables: Iterable[pa.Table], schema: pa.Schema, lay: Lay, parts: int, target: Path) -> None:
    """Write rows by part into a file, which takes its name only when it is whole."""
    draft = target.with_name(f".{target.name}-{os.getpid()}")
    with pa.OSFile(str(draft), "wb") as sink, pa.ipc.new_file(sink, schema) as out:
        for table in tables:
            order, offsets = lay(table)
            laid = take(table, order).combine_chunks()
            for p in range(parts):
                # Batch n * parts + p is part p of the n-th table, be it empty.
                piece = laid.slice(offsets[p], offsets[p + 1] - offsets[p])
                out.write_batch(piece.to_batches()[0] if len(piece) else pa.RecordBatch.from_pylist([], schema))
    os.replace(draft, target)


# -- gather --------------------------------------------------------------------------------------------------


def gather(files: Sequence[Path], part: int, parts: int) -> list[pa.Table]:
    """The rows of one part, as they lie in files that were scattered into so many; at least one table."""
    found, schema = [], pa.schema([])
    for file in files:
        reader = pa.ipc.open_file(pa.memory_map(str(file)))
        schema = reader.schema
        for n in range(part, reader.num_record_batches, parts):
            batch = reader.get_batch(n)
            if batch.num_rows:
                found.append(pa.Table.from_batches([batch]))
    return found or [schema.empty_table()]
