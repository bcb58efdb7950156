"""One table checked and in normal form: its key, its times, its coordinates, its operations, one row an instant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from workbench.errors import DataError, did_you_mean, raise_all
from workbench.geometry import WGS84
from workbench.model.clock import Clock
from workbench.tables.declared import COORDINATES, KEYS, OPERATIONS
from workbench.tables.instants import ticks_of
from workbench.tables.loading import load
from workbench.tables.repeated import one_row_per_instant

_PLAIN_IDS = ("string", "integer", "floating", "mixed-integer", "mixed-integer-float", "categorical", "empty")


@dataclass(frozen=True)
class Rows:
    """The rows of one table, checked: ``id``, ``t`` in ticks (null: from the start), ``op``, cells.

    No two rows are of one (id, t).
    """

    table: str
    frame: pd.DataFrame
    clock: Clock | None
    metric: str | None
    counts: Mapping[str, int]
    geometry: bool = False

    @property
    def columns(self) -> frozenset[str]:
        """What regions can read; ``position`` where there are coordinates or a geometry."""
        read = set(self.frame.columns) - {"t", "op"}
        return frozenset(read | ({"position"} if self.metric or self.geometry else set()))


def read(source: Any, table: str, zone: str | None = None, tick: Clock | None = None) -> Rows:
    """A table checked and in normal form; every fault of it in one error.

    What has been read already is given back.

    >>> read({"mobile": [7, 7], "t": [1, 1], "x": [0.0, 0.0], "y": [0.0, 0.0]}, "fixes").counts
    {'rows_in': 2, 'rows_collapsed': 1, 'rows_set_aside': 0}
    """
    if isinstance(source, Rows):
        return source
    frame = load(source, table).reset_index(drop=True)
    repeated = sorted(set(map(str, frame.columns[frame.columns.duplicated()])))
    raise_all([f"{table} have two columns named {name!r}" for name in repeated], DataError)
    faults: list[str] = []
    key = _key(frame, table, faults)
    clock = _times(frame, table, zone, tick, faults)
    metric, has_geometry = _positions(frame, table, faults)
    _operations(frame, table, faults)
    raise_all(faults, DataError)
    # The key is called id inside; an attribute of that name could only be mistaken for it.
    frame = frame.drop(columns=["id"] if key != "id" and "id" in frame.columns else []).rename(columns={key: "id"})
    if frame["id"].isna().any():
        raise DataError(f"{table}: {int(frame['id'].isna().sum())} rows have no {key}")
    if frame["id"].dtype in ("uint64", "UInt64"):  # which no engine has; the largest stay what they are as text
        frame["id"] = frame["id"].astype("int64" if frame["id"].max() < 2**63 else str)
    if pd.api.types.infer_dtype(frame["id"]) not in _PLAIN_IDS:
        frame["id"] = frame["id"].map(_plain_id)
    rows_in = len(frame)
    frame, aside = one_row_per_instant(frame)
    counts = {
        "rows_in": rows_in,
        "rows_collapsed": rows_in - len(frame) - aside,
        "rows_set_aside": aside,
    }
    return Rows(table, frame, clock, metric, counts, has_geometry)


def _key(frame: pd.DataFrame, table: str, faults: list[str]) -> str:
    wanted = [KEYS[table]] if table in KEYS else ["id", table, table.removesuffix("s")]
    for name in wanted:
        if name in frame.columns:
            return name
    faults.append(f"{table} have no column {wanted[0]!r}; {did_you_mean(wanted[0], map(str, frame.columns))}")
    return wanted[0]


def _plain_id(value: Any) -> Any:
    """An id that every engine and file can carry: what is neither text nor a number becomes text, bytes in digits.

    >>> _plain_id(b"\\x07"), _plain_id(7)
    ('07', 7)
    """
    if isinstance(value, str | int | float | np.number):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)


def _times(
    frame: pd.DataFrame, table: str, zone: str | None, tick: Clock | None, faults: list[str]
) -> Clock | None:
    if "t" not in frame.columns:
        if table == "fixes":
            faults.append(f"fixes have no column 't'; {did_you_mean('t', map(str, frame.columns))}")
        frame["t"] = pd.Series(pd.NA, index=frame.index, dtype="Int64")
        return None
    column = frame["t"]
    if column.isna().any() and table == "fixes":
        faults.append(f"fixes: {int(column.isna().sum())} rows have no t")
        return None
    try:
        ticks, clock = ticks_of(column, zone, tick or Clock())
    except DataError as error:
        faults.append(f"{table}: {error}")
        return None
    frame["t"] = ticks
    return clock if column.notna().any() else None


def _positions(frame: pd.DataFrame, table: str, faults: list[str]) -> tuple[str | None, bool]:
    present = [metric for metric, names in COORDINATES.items() if set(names) <= set(frame.columns)]
    has_geometry = "geometry" in frame.columns
    if len(present) == 2:
        faults.append(f"{table} have both x, y and lon, lat; drop one of the two")
        return None, has_geometry
    if not present:
        return None, has_geometry
    (metric,) = present
    for name in (*COORDINATES[metric], *(["z"] if "z" in frame.columns else [])):
        try:
            frame[name] = pd.to_numeric(frame[name]).astype("float64")
        except (ValueError, TypeError) as error:
            faults.append(f"{table}: column {name!r} is not numeric: {error}")
            return metric, has_geometry
        if np.isinf(frame[name]).any():
            faults.append(f"{table}: column {name!r} has infinite values")
    if metric == WGS84:
        wrong = (frame["lat"].abs() > 90) | (frame["lon"].abs() > 180)
        if wrong.any():
            first = frame.loc[wrong.idxmax()]
            faults.append(
                f"{table}: {int(wrong.sum())} rows lie outside the globe, "
                f"such as lon={first['lon']:g}, lat={first['lat']:g}; are the two swapped, or are these metres (x, y)?"
            )
    return metric, has_geometry


def _operations(frame: pd.DataFrame, table: str, faults: list[str]) -> None:
    if "op" not in frame.columns:
        frame["op"] = np.full(len(frame), None, dtype=object)
        return
    frame["op"] = frame["op"].astype(object).where(frame["op"].notna(), None)
    wrong = sorted({str(op) for op in frame["op"] if op is not None and op not in OPERATIONS})
    faults += [f"{table}: op {op!r} is unknown; {did_you_mean(op, OPERATIONS)}" for op in wrong]
