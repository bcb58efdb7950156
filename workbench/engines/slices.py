"""Slices of time: scenarios that look from one mobile at another, evaluated a window of time after another.

A slice has the fixes of a window ``[low, high)``, those at ``high``, and of each mobile the last one before: so at
every instant of the window everybody is where they are. What happens there can be told from it in two cases.

*Moments.* No filter looks back (dispatch: the nearest free units). Then each instant is told by itself. A timeline that
goes on over a border comes out in pieces, which are `joined`.

*Meetings.* Filters look back no farther than two have been near each other (friends: ``latch``, ``held``), which an
index tells (`driving`). Pairs whose meeting does not cross a border are told in their slice. Of the others the versions
that met are handed on, and they are evaluated once all slices are known (`met`).

Anything else needs all of the past, and is evaluated at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from workbench.compiling import compiled
from workbench.engines import extents, local
from workbench.engines.driving import Driver
from workbench.engines.intervals import FOREVER, ordered
from workbench.engines.lowering import Lanes, lanes_of_meetings
from workbench.engines.streams import Stream, streams
from workbench.model.filters import Held, Latch
from workbench.model.pubsub import PUBLICATION, SUBSCRIPTION, Population
from workbench.tables import Inputs

MOMENTS, MEETINGS = "moments", "meetings"
BEFORE, AFTER = "before", "after"


class Window(NamedTuple):
    """A slice: from one instant to before another."""

    low: int
    high: int
    first: bool
    last: bool


# -- which scenarios -----------------------------------------------------------------------------------------


def way(data: Inputs) -> str | None:
    """How a scenario can be evaluated slice by slice; None where it cannot. A few rows say what its tables are like."""
    scenario = data.scenario
    if scenario.visibility or any(p.stay is not None for p in scenario.populations):
        return None
    nodes = [node for p in scenario.populations for node in p.filter.walk()]
    if any(node.histories for node in nodes):
        return None
    if not any(isinstance(node, Held | Latch) for node in nodes):
        return MOMENTS
    if any(scenario.looked_at(p) for p in scenario.populations):
        return None
    with extents.assuming(False):
        found = local.Local(data, data.instants[1], dict(streams(data, data.instants[1]).by_name))
        return MEETINGS if all(drivers for _, _, drivers in _pairings(found)) else None


def _pairings(found: local.Local) -> list[tuple[local.Sides, local.Filters, list[Driver]]]:
    """For each two populations their filters, and what finds their meetings."""
    listed = []
    for publications in found.data.scenario.publications:
        for subscriptions in found.data.scenario.subscriptions:
            sides, filters = local.sides_of(found, publications, subscriptions)
            complete = all(views for _, views in filters.values())
            listed.append((sides, filters, local.drivers_of(sides, filters) if complete else []))
    return listed


# -- fixes into slices -----------------------------------------------------------------------------------------


@compiled
def _cut(mobile, t, cuts):  # type: ignore[no-untyped-def]
    """The rows of each slice, from rows in the order of mobile and time: their indices, and where each slice begins."""
    slices = len(cuts) - 1
    offsets = np.zeros(slices + 1, np.int64)
    rows = np.empty(0, np.int64)
    for turn in range(2):
        if turn == 1:
            for k in range(slices):
                offsets[k + 1] += offsets[k]
            rows = np.empty(offsets[-1], np.int64)
        fill = offsets.copy()
        for i in range(len(t)):
            s, above = 0, slices
            while above - s > 1:
                middle = (s + above) // 2
                if cuts[middle] <= t[i]:
                    s = middle
                else:
                    above = middle
            last = i + 1 == len(t) or mobile[i + 1] != mobile[i]
            # In its own slice, in the one that ends with it, and in those where it still holds at the beginning.
            low = s - 1 if s > 0 and t[i] == cuts[s] else s
            high = s
            while high + 1 < slices and (last or cuts[high + 1] <= t[i + 1]):
                high += 1
            for k in range(low, high + 1):
                if turn == 0:
                    offsets[k + 1] += 1
                else:
                    rows[fill[k]] = i
                    fill[k] += 1
    return rows, offsets


def cut(mobile: np.ndarray, t: np.ndarray, cuts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which rows each slice needs; slice s is from ``cuts[s]`` to before ``cuts[s + 1]``.

    >>> rows, offsets = cut(np.array([7, 7]), np.array([1, 5]), np.array([0, 4, 5, 9]))
    >>> [rows[a:b].tolist() for a, b in zip(offsets, offsets[1:])]
    [[0], [0, 1], [0, 1]]
    """
    return _cut(mobile, t, cuts)  # type: ignore[no-any-return]


# -- moments ---------------------------------------------------------------------------------------------------


def pieces(lines: pa.Table, window: Window) -> tuple[pa.Table, pa.Table]:
    """Timelines of a slice: those that are whole, and pieces that go on before or after it, marked as such."""
    tau = lines["tau"].cast(pa.int64()).to_numpy()
    runs = lines["pi"].is_null().to_numpy(zero_copy_only=False)
    pi = lines["pi"].cast(pa.int64()).fill_null(FOREVER).to_numpy()
    kept = np.ones(len(tau), bool)
    before, after = np.zeros(len(tau), bool), np.zeros(len(tau), bool)
    if not window.first:
        kept &= pi > window.low
        before = tau < window.low
    if not window.last:
        kept &= tau < window.high
        after = runs
    whole = kept & ~before & ~after
    marked = lines.append_column(BEFORE, pa.array(before)).append_column(AFTER, pa.array(after))
    return lines.filter(pa.array(whole)), marked.filter(pa.array(kept & ~whole))


def joined(marked: pa.Table) -> pa.Table:
    """Whole timelines from the pieces of all slices, in the order of the slices."""
    names = ["publication", "subscription"]
    codes = [marked[name].combine_chunks().dictionary_encode() for name in names]
    p, s = (np.asarray((c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c).indices) for c in codes)
    order = np.lexsort((np.arange(len(p)), s, p))
    before, after = (marked[name].to_numpy()[order] for name in (BEFORE, AFTER))
    first, last = order[~before], order[~after]
    assert len(first) == len(last), "each piece that goes on has another one after it"
    head, tail = marked.take(pa.array(first)), marked.take(pa.array(last))
    made = {name: head[name] for name in (*names, "tau")} | {name: tail[name] for name in ("pi", "ended")}
    return pa.table(made)


# -- meetings --------------------------------------------------------------------------------------------------


def sliced(
    data: Inputs, until: int, window: Window
) -> tuple[pd.DataFrame, list[pd.DataFrame], list[local.Step]] | None:
    """A slice: the timelines of pairs that do not meet across a border, the meetings of the others, what found both.

    Meetings for each two populations: who, and since when each of the two was so. None where nothing tells the meetings
    of some pair.
    """
    with extents.assuming(False) as refused:
        found = local.Local(data, until, dict(streams(data, until).by_name))
        pairings = _pairings(found)
        if not all(drivers for _, _, drivers in pairings):
            return None
        lines, over, steps = [], [], []
        for sides, filters, drivers in pairings:
            mine, count = [_meetings_of([])], 0
            for lanes in sides.meetings(drivers):
                count += lanes.count
                inner, outer = _apart(lanes, window)
                lines.append((*_populations(sides), local.accepted(sides, inner, filters)))
                mine.append(_meetings(sides.streams, outer))
            over.append(pd.concat([m for m in mine if len(m)] or mine, ignore_index=True))
            steps.append(_step(sides, filters, drivers, count))
    return None if refused else (local.lines_of(found, lines), over, steps)


def _step(sides: local.Sides, filters: local.Filters, drivers: list[Driver], meetings: int) -> local.Step:
    first, second = (sides.streams[role] for role in (PUBLICATION, SUBSCRIPTION))
    by = list(dict.fromkeys(repr(driver.match) for driver in drivers))
    rest = local.residual((filter_ for filter_, _ in filters.values()), by)
    names, pairs = (first.population.name, second.population.name), first.clients * second.clients
    return local.Step(*names, ", ".join(by), meetings, pairs, *rest)


def _populations(sides: local.Sides) -> tuple[Population, Population]:
    of = sides.local.data.scenario.population
    return of(sides.names[PUBLICATION]), of(sides.names[SUBSCRIPTION])


def _apart(lanes: Lanes, window: Window) -> tuple[Lanes, Lanes]:
    """Lanes that lie within a window, and those that touch a border of it."""
    if not window.last:
        lanes = _where(lanes, lanes.start < window.high)
    lane = np.repeat(np.arange(lanes.count), np.diff(lanes.offsets))
    touches = np.zeros(lanes.count, bool)
    if not window.first:
        touches[lane[lanes.start < window.low]] = True
    if not window.last:
        touches[lane[lanes.end >= window.high]] = True
    return _where(lanes, ~touches[lane]), _where(lanes, touches[lane])


def _where(lanes: Lanes, kept: np.ndarray) -> Lanes:
    """Some segments, and the lanes that still have one."""
    lane = np.repeat(np.arange(lanes.count), np.diff(lanes.offsets))[kept]
    new = np.ones(len(lane), bool)
    new[1:] = lane[1:] != lane[:-1]
    first = np.flatnonzero(new)
    clients = {role: c[lane[first]] for role, c in lanes.clients.items()}
    versions = {role: v[kept] for role, v in lanes.versions.items()}
    return Lanes(clients, np.append(first, len(lane)), lanes.start[kept], lanes.end[kept], versions)


def _meetings_of(columns: Any) -> pd.DataFrame:
    names = ["publication", "publication_since", "subscription", "subscription_since"]
    return pd.DataFrame(dict(zip(names, columns or [[]] * 4, strict=True)))


def _meetings(of: dict[str, Stream], lanes: Lanes) -> pd.DataFrame:
    columns: list[Any] = []
    for role in (PUBLICATION, SUBSCRIPTION):
        stream, version = of[role], lanes.versions[role]
        columns += [pd.Series(stream.ids[stream.owner[version]], dtype=object), stream.start[version]]
    return _meetings_of(columns)


def needed(mobile: pd.Series, t: np.ndarray, meetings: list[pd.DataFrame]) -> np.ndarray:
    """The fixes in effect in the versions that met, and those that follow them: rows of a slice."""
    codes, ids = pd.factorize(mobile)
    order = ordered(codes, t)
    codes, t = codes[order], t[order]
    found = [np.empty(0, np.int64)]
    for some in meetings:
        for role in (PUBLICATION, SUBSCRIPTION):
            who = pd.Index(ids, dtype=object).get_indexer(pd.Index(some[role], dtype=object))
            asked = np.stack([who, some[f"{role}_since"].to_numpy(np.int64)], axis=1)[who >= 0]
            at = np.unique(_latest(codes, t, asked[:, 0], asked[:, 1]))
            after = np.minimum(at + 1, len(codes) - 1)
            found += [at, after[codes[after] == codes[at]]]
    return order[np.unique(np.concatenate(found))]


def _latest(code: np.ndarray, t: np.ndarray, who: np.ndarray, when: np.ndarray) -> np.ndarray:
    """The last of ordered rows of somebody up to an instant."""
    low = min(t.min(initial=0), when.min(initial=0))
    span = max(t.max(initial=0), when.max(initial=0)) - low + 1
    return np.searchsorted(code * span + (t - low), who * span + (when - low), side="right") - 1


def met(data: Inputs, until: int, meetings: list[pd.DataFrame]) -> pd.DataFrame | None:
    """The timelines of pairs from the versions in which they met; ``data`` has the fixes that are `needed`."""
    with extents.assuming(False) as refused:
        found = local.Local(data, until, dict(streams(data, until).by_name))
        lines = []
        for (sides, filters, _), asked in zip(_pairings(found), meetings, strict=True):
            versions = []
            for role in (PUBLICATION, SUBSCRIPTION):
                stream = sides.streams[role]
                who = pd.Index(stream.ids, dtype=object).get_indexer(pd.Index(asked[role], dtype=object))
                versions.append(_latest(stream.owner, stream.start, who, asked[f"{role}_since"].to_numpy(np.int64)))
            i, j = np.unique(np.stack(versions, axis=1), axis=0).T
            lanes = lanes_of_meetings(sides.streams, {PUBLICATION: i, SUBSCRIPTION: j})
            lines.append((*_populations(sides), local.accepted(sides, lanes, filters)))
    return None if refused else local.lines_of(found, lines)
