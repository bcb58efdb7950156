"""Fixes in Parquet files or in memory, batch by batch, as arrays.

Row groups are read one ahead of the one that is looked at. Mobiles are numbers: their own, or, where these are text or
lie far apart, numbers given in the order in which they come. What is not as it should be (nulls, an unreadable row
group) is `Unusual`: the general way has to look at it, which knows all the rules.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workbench import tables
from workbench.compiling import read_only

MOST_MOBILES = 4_000_000


class Unusual(Exception):
    """Data that the general way has to look at."""


class Batch(NamedTuple):
    """Some fixes as arrays; mobiles as numbers."""

    mobile: np.ndarray
    t: np.ndarray
    x: np.ndarray
    y: np.ndarray


@dataclass
class Fixes:
    """Fixes in Parquet files, row group by row group."""

    files: list[pq.ParquetFile]
    coordinates: tuple[str, str]
    coded: bool
    """whether mobiles are numbered here: text, or numbers that lie far apart"""
    ids: list[Any] = field(default_factory=list)
    """of mobiles that are numbered here, by their numbers"""
    known: dict[Any, int] = field(default_factory=dict)
    base: int = 0
    mobiles: int = 0
    """how many numbers of mobiles there are from the base on, where they keep their own"""

    @property
    def names(self) -> np.ndarray:
        """The mobiles by number."""
        if not self.coded:
            return np.arange(self.mobiles) + self.base
        whole = self.ids and isinstance(self.ids[0], int)
        return np.array(self.ids, dtype=np.int64 if whole else object)

    def batches(self) -> Iterator[Batch]:
        """All row groups, the next one read while one is looked at."""
        groups = [(file, n) for file in self.files for n in range(file.metadata.num_row_groups)]
        with ThreadPoolExecutor(1) as reader:
            ahead = [reader.submit(self._read, *group) for group in groups[:1]]
            for n in range(len(groups)):
                ahead += [reader.submit(self._read, *group) for group in groups[n + 1 : n + 2]]
                yield self._arrays(ahead.pop(0).result())

    def across(self) -> list[float]:
        """The ends of the first coordinate, from the files' statistics where they have them."""
        name, ends = self.coordinates[0], []
        for file in self.files:
            place = file.schema_arrow.names.index(name)
            for n in range(file.metadata.num_row_groups):
                known = file.metadata.row_group(n).column(place).statistics
                if known is not None and known.has_min_max:
                    ends += [known.min, known.max]
                else:
                    ends += _ends(file.read_row_group(n, columns=[name]))
        return ends

    def _read(self, file: pq.ParquetFile, group: int) -> pa.Table:
        try:
            return file.read_row_group(group, columns=["mobile", "t", *self.coordinates], use_threads=False)
        except (OSError, pa.ArrowInvalid):
            raise Unusual from None  # the general way names the file

    def _arrays(self, table: pa.Table) -> Batch:
        table = table.combine_chunks()
        columns = [table.column(name) for name in ("mobile", "t", *self.coordinates)]
        if any(column.null_count for column in columns):
            raise Unusual
        t = columns[1].cast(pa.int64())
        mobile = self._coded(columns[0]) if self.coded else columns[0].to_numpy()
        place = [column.to_numpy() for column in columns[2:]]
        return Batch(*map(read_only, (mobile.astype(np.int64, copy=False), t.to_numpy(), *place)))

    def _coded(self, column: pa.ChunkedArray) -> np.ndarray:
        encoded = column.combine_chunks()
        if not isinstance(encoded, pa.DictionaryArray):
            encoded = encoded.dictionary_encode()
        codes = []
        for name in encoded.dictionary.to_pylist():
            if name not in self.known:
                self.known[name] = len(self.known)
                self.ids.append(name)
            codes.append(self.known[name])
        return np.array(codes, np.int64)[encoded.indices.to_numpy()]


def parquet(fixes: Any) -> Fixes | None:
    """Fixes whose columns are what they should be, in Parquet; None for others."""
    if not isinstance(fixes, str | Path):
        return None
    path = Path(fixes)
    if not path.exists() or not (path.is_dir() or path.suffix == ".parquet"):
        return None
    try:
        names = tables.parquet_files(path)
        if not names:
            return None
        schema = pq.read_schema(names[0])
        text = "mobile" in schema.names and is_text(schema.field("mobile").type)
        files = [pq.ParquetFile(name, read_dictionary=["mobile"] if text else None) for name in names]
    except (OSError, ValueError, KeyError):
        return None
    plain = [f.schema.to_arrow_schema().remove_metadata() for f in files]
    coordinates = coordinates_of(schema)
    if coordinates is None or any(not found.equals(plain[0]) for found in plain):
        return None
    column = schema.names.index("mobile")
    ends = [
        file.metadata.row_group(n).column(column).statistics
        for file in files
        for n in range(file.metadata.num_row_groups)
    ]
    if text or not ends or any(e is None or not e.has_min_max for e in ends):
        return Fixes(files, coordinates, coded=True)
    return _numbered(Fixes(files, coordinates, coded=False), min(e.min for e in ends), max(e.max for e in ends))


def _numbered(found: Fixes, low: int, high: int) -> Fixes:
    """Mobiles keep their numbers, unless these are too far apart for a table of all of them."""
    found.coded = high - low >= MOST_MOBILES
    if not found.coded:
        found.base, found.mobiles = low, high - low + 1
    return found


class Gathered(Fixes):
    """Fixes that are in memory already."""

    def __init__(self, tables_: list[pa.Table], coordinates: tuple[str, str], coded: bool) -> None:
        super().__init__([], coordinates, coded)
        self.tables = tables_

    def batches(self) -> Iterator[Batch]:
        return (self._arrays(table) for table in self.tables)

    def across(self) -> list[float]:
        return [end for table in self.tables for end in _ends(table.select([self.coordinates[0]]))]


def gathered(given: list[pa.Table]) -> Fixes | None:
    """Fixes in memory as a source for a direct replay; None where their columns are not what they should be."""
    given = [table for table in given if table.num_rows]
    coordinates = coordinates_of(given[0].schema) if given else None
    if coordinates is None or any(not table.schema.equals(given[0].schema) for table in given):
        return None
    text = is_text(given[0].schema.field("mobile").type)
    if text or any(table["mobile"].null_count for table in given):
        return Gathered(given, coordinates, coded=True)
    ends = [pc.min_max(table["mobile"]).as_py() for table in given]
    return _numbered(
        Gathered(given, coordinates, coded=False), min(e["min"] for e in ends), max(e["max"] for e in ends)
    )


def _ends(table: pa.Table) -> list[float]:
    found = pc.min_max(table.column(0)).as_py()
    return [found["min"] or 0.0, found["max"] or 0.0]


def is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string()) or pa.types.is_dictionary(kind)


def lacking(column: pa.ChunkedArray) -> bool:
    """Whether a cell is null, or no number, which is the same.

    >>> [lacking(pa.chunked_array([cells])) for cells in ([1.0, None], [1.0, float("nan")], [1.0], ["a"])]
    [True, True, False, False]
    """
    return bool(column.null_count or (pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py()))


def coordinates_of(schema: pa.Schema) -> tuple[str, str] | None:
    """The names of the coordinates, where all columns are of the usual types."""
    present = [names for names in tables.COORDINATES.values() if set(names) <= set(schema.names)]
    if len(present) != 1 or {"op", "z", "geometry"} & set(schema.names) or not {"mobile", "t"} <= set(schema.names):
        return None
    t, mobile = schema.field("t").type, schema.field("mobile").type
    if not (pa.types.is_signed_integer(t) or (pa.types.is_timestamp(t) and t.tz is not None)):
        return None
    if not (pa.types.is_signed_integer(mobile) or is_text(mobile)):
        return None
    return present[0] if all(schema.field(name).type == pa.float64() for name in present[0]) else None


def head_of(source: Fixes) -> pd.DataFrame | None:
    """The first fix; None where there is none."""
    head = source.files[0].read_row_group(0).slice(0, 1) if source.files[0].metadata.num_row_groups else None
    return None if head is None or not len(head) else _plain(head)


def _plain(head: pa.Table) -> pd.DataFrame:
    """A row as the general way reads it."""
    frame = head.to_pandas()
    return frame.astype({"mobile": object}) if isinstance(frame["mobile"].dtype, pd.CategoricalDtype) else frame


def cores() -> int:
    return max(1, min(8, os.cpu_count() or 1))


class Instants:
    """How many instants there were, and the last one."""

    def __init__(self, until: int | None) -> None:
        self.given = until
        self.until: int = np.iinfo(np.int64).max if until is None else until
        self.last = np.iinfo(np.int64).min
        self.seen: list[np.ndarray] = []

    def add(self, t: np.ndarray) -> None:
        t = t[t <= self.until] if len(t) and t.max() > self.until else t
        if not len(t):
            return
        self.seen.append(_distinct(t))
        self.last = max(self.last, int(self.seen[-1].max()))

    @property
    def end(self) -> int:
        """Where a replay ends."""
        return self.last if self.given is None else self.given

    def count(self) -> int:
        return len(_distinct(np.concatenate(self.seen))) if self.seen else 0


def _distinct(t: np.ndarray) -> np.ndarray:
    """Instants, each once: marked where they do not lie far apart, which is faster than to look each of them up."""
    if not np.any(t[1:] < t[:-1]):
        return t[np.append(True, t[1:] > t[:-1])]
    low, high = int(t.min()), int(t.max())
    if high - low > 16 * len(t):
        return pd.unique(t)
    marks = np.zeros(high - low + 1, bool)
    marks[t - low] = True
    return np.flatnonzero(marks) + low
