"""Rows of one thing at one instant: collapsed, merged, or in conflict.

Of the rows with one (id, t): identical rows collapse; rows that complement each other's null cells merge; if one cell
has two different values, the rows contradict each other and none of them counts. `remove` with `add` is an `update`.
The result does not depend on the order of the rows.

The rule is stated once, for cells that are numbers already (`merged`); tables of pandas and of Arrow say which of
their cells are equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from workbench.model.columns import is_null
from workbench.tables.declared import OPERATIONS


@dataclass(frozen=True)
class Merged:
    """One row for each group of rows with one (id, t): where its cells come from, and which groups contradict."""

    chosen: Mapping[str, np.ndarray]
    """for each column and group the row whose cell it is, -1 where all are null"""
    conflict: np.ndarray
    replaced: np.ndarray
    """groups of `remove` and `add`, which are an `update`"""


def merged(cells: Mapping[str, np.ndarray], starts: np.ndarray) -> Merged:
    """The rule. Equal cells of a column have equal numbers, null ones -1; operations are numbered as in `OPERATIONS`.

    >>> rule = merged({"x": np.array([4, -1, 4, 7, 8]), "fuel": np.array([-1, 9, -1, 3, 3])}, np.array([0, 3]))
    >>> rule.chosen["fuel"].tolist(), rule.conflict.tolist()
    ([1, 4], [False, True])
    """
    chosen, conflict, replaced = {}, np.zeros(len(starts), bool), np.zeros(len(starts), bool)
    for name, cell in cells.items():
        present = cell >= 0
        highest = np.maximum.reduceat(cell, starts)
        lowest = np.minimum.reduceat(np.where(present, cell, np.iinfo(np.int64).max), starts)
        differs = (highest >= 0) & (lowest < highest)
        if name == "op":
            add, update, remove = (np.logical_or.reduceat(cell == n, starts) for n in range(len(OPERATIONS)))
            replaced = add & remove & ~update
            differs &= ~replaced
        conflict |= differs
        chosen[name] = np.maximum.reduceat(np.where(present, np.arange(len(cell)), -1), starts)
    return Merged(chosen, conflict, replaced)


def merged_table(table: pa.Table, again: np.ndarray) -> tuple[pa.Table, pa.Table, np.ndarray]:
    """An Arrow table merged, whose rows of one (id, t) stand together; its rows in conflict; where those kept stood.

    `again` says which rows are of the (id, t) of the row before.

    >>> rows = pa.table({"mobile": [7, 7, 8, 8], "t": [1, 1, 2, 2], "x": [1.0, None, 3.0, 4.0]})
    >>> table, aside, places = merged_table(rows, np.array([False, True, False, True]))
    >>> table.to_pylist(), aside["x"].to_pylist(), places.tolist()
    ([{'mobile': 7, 't': 1, 'x': 1.0}], [3.0, 4.0], [0])
    """
    repeated = again | np.append(again[1:], False)
    where, single = np.flatnonzero(repeated), np.flatnonzero(~repeated)
    part = table.take(pa.array(where))
    starts = np.flatnonzero(~again[where])
    columns = {name: _whole(part[name]) for name in part.column_names}
    rule = merged({name: _numbered(column, name) for name, column in columns.items()}, starts)
    cells = {}
    for name, column in columns.items():
        chosen = rule.chosen[name]
        cells[name] = column.take(pa.array(chosen, mask=chosen < 0))
        if name == "op":
            cells[name] = pc.if_else(pa.array(rule.replaced), "update", cells[name].cast(pa.string()))
    one = pa.table(cells).cast(table.schema).filter(pa.array(~rule.conflict))
    sizes = np.diff(starts, append=len(where))
    # the merged rows go back to where the first of theirs stood
    places = np.concatenate((single, where[starts[~rule.conflict]]))
    order = np.argsort(places, kind="stable")
    both = pa.concat_tables([table.take(pa.array(single)), one]).take(pa.array(order))
    return both, part.filter(pa.array(np.repeat(rule.conflict, sizes))), places[order]


def one_row_per_instant(frame: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Rows merged that are of one (id, t), in the order of t, and how many had to be set aside.

    >>> rows = pd.DataFrame({"id": [7, 7, 7], "t": [2, 1, 2], "x": [1.0, 5.0, None], "fuel": [None, 9, 8]})
    >>> one_row_per_instant(rows)[0]
       id  t    x  fuel
    0   7  1  5.0   9.0
    1   7  2  1.0   8.0
    """
    repeated = frame.duplicated(["id", "t"], keep=False).to_numpy()
    aside = 0
    if repeated.any():
        where = np.flatnonzero(repeated)
        groups = frame.iloc[where].groupby(["id", "t"], sort=False, dropna=False, observed=True).ngroup().to_numpy()
        order = np.argsort(groups, kind="stable")
        where, starts = where[order], np.flatnonzero(np.diff(groups[order], prepend=-1))
        rule = merged({str(name): _factorized(column) for name, column in frame.iloc[where].items()}, starts)
        single, good = np.flatnonzero(~repeated), ~rule.conflict
        aside = int(np.diff(starts, append=len(where))[rule.conflict].sum())
        columns = {}
        for name, column in frame.items():
            chosen = rule.chosen[str(name)]
            rows = where[np.where(chosen < 0, starts, chosen)]  # a null where all are null
            columns[name] = column.take(np.concatenate([single, rows[good]])).reset_index(drop=True)
        frame = pd.DataFrame(columns).__finalize__(frame)
        if "op" in frame.columns:
            frame.loc[np.concatenate([np.zeros(len(single), bool), rule.replaced[good]]), "op"] = "update"
    return frame.sort_values(["t"], kind="stable", na_position="first").reset_index(drop=True), aside


# -- which cells are equal ---------------------------------------------------------------------------------


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.combine_chunks()


def _numbered(column: pa.Array, name: str) -> np.ndarray:
    """Equal cells have equal numbers; a null cell has -1. NaN counts as null, -0.0 equals 0.0."""
    if name == "op":
        coded = pc.index_in(column, pa.array(OPERATIONS))
        return pc.fill_null(coded, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    if pa.types.is_floating(column.type):
        return pd.factorize(column.cast(pa.float64()).to_numpy(zero_copy_only=False))[0].astype(np.int64)
    if pa.types.is_nested(column.type):
        column = pa.array([None if cell is None else repr(cell) for cell in column.to_pylist()], pa.string())
    return pc.fill_null(column.dictionary_encode().indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)


def _factorized(column: pd.Series) -> np.ndarray:
    """The same for a column of pandas."""
    if column.name == "op":
        return pd.Categorical(column, categories=list(OPERATIONS)).codes.astype(np.int64)
    if pd.api.types.is_float_dtype(column.dtype):
        column = pd.Series(column.to_numpy(np.float64, na_value=np.nan))
    elif not _plain(column):
        cells = [None if is_null(value) else _comparable(value) for value in column.tolist()]
        column = pd.Series(cells, dtype=object)
    return pd.factorize(column)[0].astype(np.int64)


def _plain(column: pd.Series) -> bool:
    """Whether the cells of a column can be compared as they are."""
    kind = column.dtype
    if pd.api.types.is_object_dtype(kind):
        return pd.api.types.infer_dtype(column, skipna=True) in ("string", "integer", "boolean")
    return kind.name != "geometry" and not isinstance(kind, pd.ArrowDtype)


def _comparable(value: Any) -> Any:
    if hasattr(value, "wkb"):
        return value.wkb
    return repr(value) if isinstance(value, list | dict | set) or type(value).__name__ == "ndarray" else value
