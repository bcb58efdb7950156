"""A notifications table as the sorted arrays that delivery reads.

Representation: the rows of one client stand together, sorted by time in integer microseconds, then outage, unmatch,
match, then publication. An outage is a row too (its `publication` is its end), so that it travels with its client.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from workbench.brokering.delivery.kernel import MATCH, OUTAGE, UNMATCH
from workbench.errors import DataError, raise_all

COLUMNS = ("t", "kind", "publication", "subscription")
RANKS = {"unmatch": UNMATCH, "match": MATCH}


@dataclass(frozen=True)
class Rows:
    """Sorted rows: those of client c are offsets[c]:offsets[c + 1]; `position` is a row's place in the table, or -1."""

    ids: np.ndarray
    keys: np.ndarray
    offsets: np.ndarray
    t: np.ndarray
    kind: np.ndarray
    publication: np.ndarray
    position: np.ndarray


def client_keys(ids: np.ndarray) -> np.ndarray:
    """The 64-bit number that a client's draws are keyed by: an integer id itself, or a fixed hash of a string.

    >>> client_keys(np.array([7, 8]))
    array([7, 8], dtype=uint64)
    >>> client_keys(np.array(["bus/7"], dtype=object))
    array([6630819387630681740], dtype=uint64)
    """
    if ids.dtype.kind in "iu":
        return ids.astype(np.int64).view(np.uint64)
    if all(isinstance(value, str) for value in ids):
        return pd.util.hash_array(ids.astype(object), categorize=False)
    raise DataError(f"subscriptions are named by {ids[:3].tolist()!r}...; expected all integers or all strings")


def microseconds(values: Any, tick_us: int) -> np.ndarray:
    """Instants as integer microseconds: integers are ticks of `tick_us`, timestamps count from 1970 in UTC.

    >>> microseconds(pd.Series([1, 2]), tick_us=1_000_000)
    array([1000000, 2000000])
    """
    series = pd.Series(values)
    if isinstance(series.dtype, pd.DatetimeTZDtype):
        return series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy("datetime64[us]").astype(np.int64)
    if pd.api.types.is_integer_dtype(series.dtype):
        return series.to_numpy(np.int64) * tick_us
    raise DataError(f"instants are of type {series.dtype}; expected integers, or timestamps with a time zone")


def check_columns(names: list[str]) -> None:
    """Refuse a table that is not one of notifications."""
    raise_all([f"notifications lack the column {name!r}" for name in COLUMNS if name not in names], DataError)


def check_notifications(table: pd.DataFrame) -> None:
    """Refuse a table that is not one of notifications, or has some of nobody, of nothing or of no instant."""
    check_columns(list(table.columns))
    empty = table[list(COLUMNS)].isna().sum()
    faults = [f"notifications have no {name!r} in {n} row{'s' * (n > 1)}" for name, n in empty.items() if n]
    raise_all(faults, DataError)


def check_outages(outages: pd.DataFrame, numbered: bool) -> None:
    """Refuse outages that name clients otherwise than the notifications do: they would be outages of nobody."""
    if len(outages) and pd.api.types.is_numeric_dtype(outages["subscription"].infer_objects()) != numbered:
        raise DataError(
            f"outages name clients as {outages['subscription'].tolist()[0]!r}; "
            f"the notifications' subscriptions are {'integers' if numbered else 'strings'}"
        )


def sorted_rows(
    notifications: pd.DataFrame, outages: pd.DataFrame | None, since: int, until: int, tick_us: int
) -> Rows:
    """The rows of a notifications table, and of the outages of its clients, in the order of delivery."""
    unknown = set(notifications["kind"].unique()) - set(RANKS)
    if unknown:
        raise DataError(f"notifications have the kind {min(unknown, key=repr)!r}; expected 'match' or 'unmatch'")
    client, ids = pd.factorize(notifications["subscription"], sort=True)
    publication, _ = pd.factorize(notifications["publication"], sort=True)
    t = microseconds(notifications["t"], tick_us)
    if t.size and not since <= t.min() <= t.max() <= until:
        raise DataError("notifications lie outside since..until; expected since <= t <= until")
    kind = notifications["kind"].map(RANKS).to_numpy(np.int8)
    columns = [client.astype(np.int64), t, kind, publication.astype(np.int64), np.arange(t.size)]
    if outages is not None and len(outages) and len(ids):
        check_outages(outages, pd.api.types.is_integer_dtype(ids))
        of = pd.Index(ids).get_indexer(outages["subscription"])
        start = np.maximum(microseconds(outages["start"], tick_us), since)
        end = microseconds(outages["end"], tick_us)
        use = (of >= 0) & (start < end) & (start <= until)
        extra = [of[use], start[use], np.full(use.sum(), OUTAGE, np.int8), end[use], np.full(use.sum(), -1)]
        columns = [np.concatenate(pair) for pair in zip(columns, extra)]
    order = np.lexsort(columns[3::-1])
    client, t, kind, publication, position = (column[order] for column in columns)
    offsets = np.searchsorted(client, np.arange(len(ids) + 1))
    names = np.asarray(ids)
    return Rows(names, client_keys(names), offsets, t, kind, publication, position)
