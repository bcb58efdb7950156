"""Rows of one thing at one instant: collapsed, merged, or set aside as a conflict.

Of the rows with one (id, t): identical rows collapse; rows that complement each other's null cells merge; if one
cell has two different values, the rows contradict each other and all of them are set aside. `remove` with `add` is
an `update` that takes its cells from the rows that add. The result does not depend on the order of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from workbench.datasets.distance import distance_m
from workbench.datasets.quality import CONFLICT, coordinates_of, set_aside


@dataclass(frozen=True)
class Settled:
    """Rows in the order of (id, t), one for each; and what became of the others."""

    table: pa.Table
    aside: pa.Table
    collapsed: int
    out_of_order: int
    starts: np.ndarray
    """The first row of each id in the table, in its order."""


def ranks(ids: pa.ChunkedArray) -> np.ndarray:
    """The place of each id among the sorted ids: equal ids have equal ranks, and their order is the ids'."""
    if pa.types.is_integer(ids.type):
        values = ids.to_numpy()
        low = int(values.min()) if len(values) else 0
        if len(values) and int(values.max()) - low < 1 << 31:
            return (values - low).astype(np.int64)
        return np.unique(values, return_inverse=True)[1]
    coded = ids.dictionary_encode().unify_dictionaries().combine_chunks()
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.chunk(0) if coded.num_chunks else pa.array([], pa.dictionary(pa.int32(), ids.type))
    order = pc.array_sort_indices(coded.dictionary).to_numpy()
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place[coded.indices.to_numpy()]


def settle(table: pa.Table, identity: str = "mobile") -> Settled:
    """The table with one row for each (id, t), in that order.

    >>> cells = {"x": [1.0, 5.0, 1.0, None], "fuel": [None, 9, None, 8]}
    >>> rows = pa.table({"mobile": [7, 7, 7, 7], "t": [2, 1, 2, 2], **cells})
    >>> settled = settle(rows)
    >>> settled.table.to_pylist()
    [{'mobile': 7, 't': 1, 'x': 5.0, 'fuel': 9}, {'mobile': 7, 't': 2, 'x': 1.0, 'fuel': 8}]
    >>> settled.collapsed, settled.out_of_order
    (2, 1)
    """
    if table.num_rows == 0:
        return Settled(table, set_aside(table, CONFLICT), 0, 0, np.array([], np.int64))
    rank = ranks(table[identity])
    t = table["t"].cast(pa.int64()).to_numpy()
    if not np.all(rank[1:] >= rank[:-1]):
        order = np.argsort(rank, kind="stable")
        rank, t = rank[order], t[order]
    else:
        order = None
    backwards = (rank[1:] == rank[:-1]) & (t[1:] < t[:-1])
    out_of_order = int(backwards.sum())
    if out_of_order:
        second = np.lexsort((t, rank))
        rank, t = rank[second], t[second]
        order = second if order is None else order[second]
    if order is not None:
        table = table.take(pa.array(order))
    again = np.concatenate(([False], (rank[1:] == rank[:-1]) & (t[1:] == t[:-1])))
    aside, collapsed = set_aside(table.slice(0, 0), CONFLICT), 0
    if again.any():
        table, aside, collapsed, rank = _merge(table, again, rank)
    starts = np.flatnonzero(np.concatenate(([True], rank[1:] != rank[:-1]))) if len(rank) else np.array([], np.int64)
    return Settled(table, aside, collapsed, out_of_order, starts)


def _merge(table: pa.Table, again: np.ndarray, rank: np.ndarray) -> tuple[pa.Table, pa.Table, int, np.ndarray]:
    repeated = again | np.concatenate((again[1:], [False]))
    where = np.flatnonzero(repeated)
    part = table.take(pa.array(where))
    starts = np.flatnonzero(~again[where])
    sizes = np.diff(np.append(starts, len(where)))
    columns, conflict = {}, np.zeros(len(starts), bool)
    if "op" in table.column_names:
        op = part["op"].combine_chunks()
        adds, removes, updates = (_is(op, name) for name in ("add", "remove", "update"))
        replaced = _any(adds, starts) & _any(removes, starts) & ~_any(updates, starts)
    for name in table.column_names:
        column = part[name].combine_chunks()
        code = _codes(column)
        present = code >= 0
        highest = np.maximum.reduceat(code, starts)
        lowest = np.minimum.reduceat(np.where(present, code, np.iinfo(np.int64).max), starts)
        differs = (highest >= 0) & (lowest < highest)
        conflict |= differs & ~replaced if name == "op" else differs
        chosen = np.maximum.reduceat(np.where(present, np.arange(len(code)), -1), starts)
        cells = column.take(pa.array(chosen, mask=chosen < 0))
        if name == "op":
            cells = pc.if_else(pa.array(replaced), "update", cells.cast(pa.string()))
        columns[name] = cells
    merged = pa.table(columns, schema=part.schema.remove_metadata()).filter(pa.array(~conflict))
    aside = part.filter(pa.array(np.repeat(conflict, sizes)))
    single = np.flatnonzero(~repeated)
    # the merged rows go back to where the first of theirs stood
    places = np.concatenate((single, where[starts[~conflict]]))
    order = np.argsort(places, kind="stable")
    both = pa.concat_tables([table.take(pa.array(single)), merged.cast(table.schema)])
    collapsed = int((sizes[~conflict] - 1).sum())
    return both.take(pa.array(order)), set_aside(aside, CONFLICT), collapsed, rank[places[order]]


def _codes(column: pa.Array) -> np.ndarray:
    """Equal cells have equal codes; a null cell has -1. NaN counts as null, -0.0 equals 0.0."""
    if pa.types.is_floating(column.type):
        return pd.factorize(column.to_numpy(zero_copy_only=False))[0].astype(np.int64)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_nested(column.type):
        cells = [None if cell is None else repr(cell) for cell in column.to_pylist()]
        column = pa.array(cells, pa.string())
    coded = column.dictionary_encode()
    return pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)


def _is(op: pa.Array, name: str) -> np.ndarray:
    return pc.fill_null(pc.equal(op, name), False).to_numpy(zero_copy_only=False)


def _any(flags: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return np.logical_or.reduceat(flags, starts)


def too_fast(table: pa.Table, starts: np.ndarray, max_speed_mps: float, seconds_per_tick: float) -> np.ndarray:
    """Flags of the fixes that cannot be reached from the last fix kept before them at the speed given.

    The first fix of a mobile is always kept. The table is settled, `starts` as in `Settled`.
    """
    names = coordinates_of(table.column_names)
    rows = table.num_rows
    bad = np.zeros(rows, bool)
    if rows < 2 or not names:
        return bad
    place = [table[name].to_numpy() for name in names]
    seconds = table["t"].cast(pa.int64()).to_numpy() * seconds_per_tick
    located = np.isfinite(place[0]) & np.isfinite(place[1])
    last = np.full(rows, -1)
    index = np.flatnonzero(located)
    first = np.zeros(rows, bool)
    first[starts] = True
    block = np.cumsum(first)
    last[index[1:]] = np.where(block[index[1:]] == block[index[:-1]], index[:-1], -1)
    follows = np.flatnonzero(last >= 0)
    fast = np.zeros(rows, bool)
    fast[follows] = _reach(place, seconds, last[follows], follows, names) > max_speed_mps
    ends = np.append(starts[1:], rows)
    for violation in np.flatnonzero(fast):
        if bad[violation] or not fast[violation]:
            continue
        keeper, at, end = last[violation], violation, ends[block[violation] - 1]
        width = 16
        while at < end:
            ahead = np.arange(at, min(at + width, end))
            fine = np.flatnonzero(
                located[ahead] & (_reach(place, seconds, np.full(len(ahead), keeper), ahead, names) <= max_speed_mps)
            )
            if len(fine):
                bad[at : ahead[fine[0]]] = True
                fast[ahead[fine[0]]] = False
                break
            bad[at : ahead[-1] + 1] = True
            at, width = ahead[-1] + 1, width * 2
    return bad & located


def _reach(
    place: list[np.ndarray], seconds: np.ndarray, a: np.ndarray, b: np.ndarray, names: tuple[str, ...]
) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        metres = distance_m([p[a] for p in place], [p[b] for p in place], geodesic=names[0] == "lon")
        speed = metres / (seconds[b] - seconds[a])
    return np.where(np.isnan(speed), 0.0, speed)
