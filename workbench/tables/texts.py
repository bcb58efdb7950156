"""A table as text, comma-separated or the like: whole, or in pieces where it may be larger than the memory.

Ids and times are read digit by digit, so that 007 stays apart from 7 and no large number is rounded; what the other
columns hold is what pandas takes it for. In pieces the file is read twice: what a column is only all of it can tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from workbench.crs import AXES
from workbench.errors import DataError
from workbench.tables.declared import KEYS

PIECE_ROWS = 1 << 17
EXACT = (*KEYS.values(), "id", "t", "geometry")
NULL, BOOL, INT64, UINT64, DOUBLE, STRING = "null", "bool", "int64", "uint64", "double", "string"
IN_PANDAS = {NULL: "float64", BOOL: "boolean", INT64: "int64", UINT64: "uint64", DOUBLE: "float64", STRING: "str"}
IN_ARROW = {NULL: pa.float64(), **{kind: pa.type_for_alias(kind) for kind in (BOOL, INT64, UINT64, DOUBLE, STRING)}}


def is_text(path: Path) -> bool:
    """Whether a file is one of these."""
    return bool({".csv", ".tsv", ".txt"} & {suffix.lower() for suffix in path.suffixes})


def header(path: Path) -> tuple[list[str], str]:
    """The columns of a CSV, and what separates them: whatever makes the most of its first line.

    A comma where nothing does.
    """
    found = [(list(pd.read_csv(path, nrows=0, sep=sign, skipinitialspace=True).columns), sign) for sign in ",;\t|"]
    return max(found, key=lambda one: len(one[0]))


def whole(path: Path) -> pd.DataFrame:
    """All of a CSV."""
    names, separator = header(path)
    exact = [name for name in names if name in EXACT]
    reading: dict[str, Any] = {"sep": separator, "skipinitialspace": True, "dtype": dict.fromkeys(exact, str)}
    frame = pd.read_csv(path, **reading)
    numbers = [name for axes in AXES.values() for name in axes if name in names]
    if separator != "," and any(frame[name].dtype == object for name in numbers):
        frame = pd.read_csv(path, decimal=",", **reading)
    for name in exact:
        if name != "geometry":
            frame[name] = _plain_numbers(frame[name])
    return frame


def _plain_numbers(text: pd.Series) -> pd.Series:
    """Text as whole numbers where all of it is; ids that begin with a needless 0 are none, times may be decimals."""
    kind = _exact_kind(text)
    if kind == INT64:
        numbers = _trimmed(text).cast(pa.int64())
        return numbers.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get if numbers.null_count else None)
    return pd.to_numeric(text) if kind == DOUBLE else text.astype(object)


def _exact_kind(text: pd.Series) -> str:
    """What ids or times are, as far as these tell."""
    trimmed = _trimmed(text)
    if trimmed.null_count == len(trimmed):
        return NULL
    if text.name != "t" and pc.any(pc.match_substring_regex(trimmed, r"^[-+]?0[0-9]|^\+")).as_py():
        return STRING
    try:
        trimmed.cast(pa.int64())
        return INT64
    except pa.ArrowInvalid:
        pass
    try:
        return DOUBLE if text.name == "t" and pd.to_numeric(text) is not None else STRING
    except ValueError:
        return STRING


def _trimmed(text: pd.Series) -> pa.Array:
    return pc.utf8_trim_whitespace(pa.array(text, pa.string(), from_pandas=True))


# -- in pieces ---------------------------------------------------------------------------------------------


def in_pieces(path: Path, name: str = "table", rows: int | None = None) -> Iterator[pa.Table]:
    """A CSV as Arrow tables of one schema, in bounded memory: the rows of `whole`; at least one table."""
    if not path.exists():
        raise DataError(f"{name}: there is no file or folder {str(path)!r}")
    try:
        yield from _typed_pieces(path, rows or PIECE_ROWS)
    except (OSError, ValueError) as error:
        raise DataError(f"{name}: {str(path)!r} cannot be read: {error}") from None


def _typed_pieces(path: Path, rows: int) -> Iterator[pa.Table]:
    names, separator = header(path)
    reading = {"sep": separator, "skipinitialspace": True, "chunksize": rows}
    kinds = _kinds(path, reading)
    if separator != "," and any(kinds.get(axis) == STRING for axes in AXES.values() for axis in axes):
        reading["decimal"] = ","
        kinds = _kinds(path, reading)
    schema = pa.schema([(name, IN_ARROW[STRING if _told(name, kind) else kind]) for name, kind in kinds.items()])
    if not kinds:
        yield pa.schema([(name, pa.string()) for name in names]).empty_table()
        return
    types = {name: "str" if name in EXACT else IN_PANDAS[kind] for name, kind in kinds.items()}
    for piece in pd.read_csv(path, dtype=types, **reading):
        yield pa.table([_column(piece[field.name], field.type) for field in schema], schema=schema)


def _told(name: str, kind: str) -> bool:
    """Whether a column of nothing is one of words: ids and times are, as long as nobody knows better."""
    return name in EXACT and kind == NULL


def _column(cells: pd.Series, kind: pa.DataType) -> pa.Array:
    if cells.name in EXACT and pa.types.is_integer(kind):
        return _trimmed(cells).cast(kind)
    if cells.name in EXACT and pa.types.is_floating(kind):
        cells = pd.to_numeric(cells)
    return pa.array(cells, kind, from_pandas=True)


def _kinds(path: Path, reading: Mapping[str, Any]) -> dict[str, str]:
    """What each column is, as all of it together tells; none where there is no row."""
    kinds: dict[str, str] = {}
    for piece in pd.read_csv(path, dtype=dict.fromkeys(EXACT, "str"), **reading):
        for name, cells in piece.items() if len(piece) else ():
            exact = name in EXACT
            kind = STRING if name == "geometry" else _exact_kind(cells) if exact else _kind(cells)
            kinds[str(name)] = _wider(kinds.get(str(name), kind), kind, exact)
    return kinds


def _kind(cells: pd.Series) -> str:
    if cells.isna().all():
        return NULL
    if pd.api.types.is_bool_dtype(cells) or pd.api.types.infer_dtype(cells, skipna=True) == "boolean":
        return BOOL
    if pd.api.types.is_float_dtype(cells):
        return DOUBLE
    return cells.dtype.name if cells.dtype in ("int64", "uint64") else STRING


def _wider(a: str, b: str, exact: bool) -> str:
    """What two pieces of a column are together; numbers with a missing one are decimals in pandas.

    >>> _wider("int64", "null", exact=True), _wider("int64", "null", exact=False), _wider("bool", "int64", exact=False)
    ('int64', 'double', 'string')
    """
    if a == b:
        return a
    some = {a, b} - {NULL}
    if len(some) == 1 and (exact or some <= {BOOL, STRING}):
        return some.pop()
    return DOUBLE if some <= {INT64, UINT64, DOUBLE} else STRING
