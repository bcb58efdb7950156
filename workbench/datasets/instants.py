"""Rows in the order of (id, t), and those of one thing at one instant: collapsed, merged, or set aside as a conflict.

The rule is that of `workbench.tables.repeated`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench import tables
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
        rows = table.num_rows
        table, conflicts, places = tables.merged_table(table, again)
        aside, rank = set_aside(conflicts, CONFLICT), rank[places]
        collapsed = rows - table.num_rows - aside.num_rows
    starts = np.flatnonzero(np.concatenate(([True], rank[1:] != rank[:-1]))) if len(rank) else np.array([], np.int64)
    return Settled(table, aside, collapsed, out_of_order, starts)


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
