"""Encounters, a slice of time a task. Nothing of Spark is in here.

What `encounters` does with slices side by side, when no process has all of the fixes. Two things have to travel: where
everybody was before a slice, and what goes on over its borders.

*Last seen.* A task looks through some row groups, and writes of each mobile the last row in each slice. It writes no
other rows where the row groups of a slice are few anyway, as in files in the order of time: whoever needs them reads
them again. Otherwise it lays all rows down by slice (`exchange`).

*A slice.* Its own rows, and of everybody the last row before it. Timelines that lie within it are written as they are,
what touches a border into files beside them.

*Over the borders.* What each two mobiles had with each other is joined, a share of the pairs a task.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workbench.compiling import compiled, read_only
from workbench.engines import encounters, exchange, tasks
from workbench.engines.batches import Unusual, coordinates_of, lacking
from workbench.engines.direct import Lines
from workbench.engines.encounters import AFTER, Shape, Slice
from workbench.engines.slices import Window
from workbench.engines.tasks import UNUSUAL, Job
from workbench.geometry import WGS84
from workbench.model.scenario import Scenario


class Asked(NamedTuple):
    """What every task has to know beside the job."""

    shape: Shape
    schema: pa.Schema
    """of the columns that count"""
    coordinates: tuple[str, str]
    cuts: np.ndarray
    laid: bool
    """whether rows are laid down by slice"""
    folder: str


def asked(
    scenario: Scenario, schema: pa.Schema, cuts: np.ndarray, laid: bool, folder: str
) -> Asked | None:
    """None where scenario or columns ask for another way."""
    shape, coordinates = encounters.shape_of(scenario), coordinates_of(schema)
    if shape is None or coordinates is None:
        return None
    names = encounters.columns_of(shape, schema, coordinates)
    return Asked(shape, pa.schema([schema.field(name) for name in names]), coordinates, cuts, laid, folder)


# -- where everybody was -----------------------------------------------------------------------------------------


@compiled
def _last(mobile, t, part, mobiles):  # type: ignore[no-untyped-def]
    """Of each mobile a row in each part, the latest of it where the rows of the two stand together."""
    kept = np.empty(len(t), np.int64)
    latest = np.full(mobiles, -1, np.int64)
    n = 0
    for i in range(len(t)):
        j = latest[mobile[i]]
        if j >= 0 and part[j] != part[i]:
            kept[n] = j
            n += 1
            j = -1
        if j < 0 or t[i] >= t[j]:
            latest[mobile[i]] = i
    for m in range(mobiles):
        if latest[m] >= 0:
            kept[n] = latest[m]
            n += 1
    return kept[:n].copy()


def last_seen(given: Asked, n: int, groups: Sequence[exchange.Group]) -> dict[str, Any]:
    """The last rows of the mobiles of some row groups in each slice, into a file; all rows too, where they are laid."""
    parts, seen, read = len(given.cuts) - 1, [], 0

    def looked_through() -> Iterator[pa.Table]:
        nonlocal read
        for table in exchange.rows_of(groups, given.schema):
            if any(map(lacking, table.itercolumns())):
                raise Unusual
            mobile, names = encounters.coded(table["mobile"])
            rows = _last(read_only(mobile), tasks.ticks_of(table), _parts(table, given.cuts), len(names))
            seen.append(exchange.take(table, np.sort(rows)))
            read += len(table)
            yield table

    def laid_down(name: str, rows: Iterable[pa.Table]) -> str:
        file = Path(given.folder) / f"{name}-{n:05d}.arrow"
        exchange.scatter(rows, given.schema, lambda t: exchange.by_part(_parts(t, given.cuts), parts), parts, file)
        return str(file)

    try:
        rows = looked_through()
        laid = laid_down("rows", rows if given.laid else [])
        deque(rows, maxlen=0)
        return {"rows_in": read, "rows": laid, "last": laid_down("last", seen)}
    except Unusual:
        return UNUSUAL


def _parts(table: pa.Table, cuts: np.ndarray) -> np.ndarray:
    """The slice of each row."""
    found = np.searchsorted(cuts, tasks.ticks_of(table), side="right") - 1
    return np.clip(found, 0, len(cuts) - 2)  # type: ignore[no-any-return]


def before(given: Asked, n: int, files: Sequence[str]) -> pa.Table:
    """Of each mobile the last row before a slice, in the order of time."""
    parts = len(given.cuts) - 1
    found = [t for part in range(n) for t in exchange.gather([Path(file) for file in files], part, parts)]
    table = pa.concat_tables(found or [given.schema.empty_table()])
    mobile, names = encounters.coded(table["mobile"])
    t = tasks.ticks_of(table)
    rows = _last(read_only(mobile), read_only(t), np.zeros(len(t), np.int64), len(names))
    return exchange.take(table, rows[np.argsort(t[rows], kind="stable")])


# -- a slice -----------------------------------------------------------------------------------------------------


def slice_of_time(
    job: Job, given: Asked, n: int, window: Window, last: Sequence[str], rows: Sequence[str] | Sequence[exchange.Group]
) -> dict[str, Any]:
    """The timelines of a slice into a file, and into others what goes on before or after it."""
    try:
        own = _own(given, n, window, job.until, rows)
        if window.low > job.until:
            return {"over": 0}
        table = pa.concat_tables([before(given, n, last), own])
        walks = encounters.walks_of(job.scenario, table, given.coordinates, job.zone)
        first = len(table) - len(own)
        if not len(table):
            found = Slice(np.empty((0, 5), np.int64), np.empty((0, 3), np.int64))
        else:
            geodesic = job.metric == WGS84
            cells = encounters.cells_of(walks, given.shape, geodesic)
            found = encounters.slice_of(walks, first, len(table), given.shape, cells, geodesic)
    except Unusual:
        return UNUSUAL
    told, pairs = found
    within = encounters.whole(told)
    ids = [pa.array(walks.names[told[~within, k]].tolist(), job.schema.field(k).type) for k in (0, 1)]
    rest = [pa.array(told[~within, k]) for k in (2, 3, 4)]
    tasks.put(
        pa.table([*ids, *rest], names=["publication", "subscription", "tau", "pi", "sure"]),
        Path(given.folder) / f"told-{n:05d}.parquet",
    )
    met = [pa.array(walks.names[pairs[:, k]].tolist(), job.schema.field(k).type) for k in (0, 1)]
    tasks.put(
        pa.table([*met, pa.array(pairs[:, 2])], names=["publication", "subscription", "doubt"]),
        Path(given.folder) / f"pairs-{n:05d}.parquet",
    )
    said = _written(job, f"slice-{n:05d}", told[within], walks.names)
    return {**said, "over": int((~within).sum()) + len(pairs)}


def _own(
    given: Asked, n: int, window: Window, until: int, rows: Sequence[str] | Sequence[exchange.Group]
) -> pa.Table:
    """The rows of a slice, as far as the replay goes; of those after it no mobile may have two at an instant."""
    if given.laid:
        found = exchange.gather([Path(str(file)) for file in rows], n, len(given.cuts) - 1)
    else:
        found = list(exchange.rows_of([row for row in rows if isinstance(row, exchange.Group)], given.schema))
    table = pa.concat_tables(found or [given.schema.empty_table()])
    t = tasks.ticks_of(table)
    high = window.high - 1
    if len(t) and (t.min() < window.low or t.max() > min(high, until)):
        late = (t > until) & (t <= high)
        if encounters.twice(encounters.coded(table["mobile"])[0][late], t[late]):
            raise Unusual
        table = table.filter(pa.array((t >= window.low) & (t <= high) & ~late))
    return table


def _written(job: Job, name: str, rows: np.ndarray, names: np.ndarray) -> dict[str, int]:
    p, s, tau, pi = (np.ascontiguousarray(column) for column in rows.T[:4])
    runs = pi == AFTER
    lines = Lines(p, s, tau, np.where(runs, 0, pi), np.where(runs, -1, 0), names, names)
    tasks.write(job, name, tasks.arrow(lines, job))
    return {"timelines": len(rows), "unmatches": int((~runs).sum())}


# -- over the borders ----------------------------------------------------------------------------------------------


def over_borders(job: Job, given: Asked, n: int, shares: int, slices: int) -> dict[str, Any]:
    """A share of the timelines that touch a border of a slice, into a file."""
    told, pairs = (
        [_share(Path(given.folder) / f"{name}-{k:05d}.parquet", n, shares) for k in range(slices)]
        for name in ("told", "pairs")
    )
    ids = [pc.cast(table[k].combine_chunks(), job.schema.field(0).type) for table in told + pairs for k in (0, 1)]
    codes, names = pd.factorize(pa.concat_arrays(ids).to_pandas())
    of = iter(np.split(codes, np.cumsum([len(column) for column in ids])[:-1]))
    both = [np.stack([next(of), next(of)], axis=1) for _ in told + pairs]
    found = [
        Slice(
            np.column_stack([who, *(table[name].to_numpy() for name in ("tau", "pi", "sure"))]),
            np.column_stack([np.sort(met, axis=1), known["doubt"].to_numpy()]),
        )
        for who, table, met, known in zip(both[:slices], told, both[slices:], pairs, strict=True)
    ]
    return _written(job, f"over-{n:05d}", encounters.joined(found, len(names)), np.asarray(names))


def _share(file: Path, n: int, shares: int) -> pa.Table:
    """The rows of a file that are about a share of the pairs, in whichever order the two are named."""
    table = pq.read_table(file)
    if shares < 2:
        return table
    hashes = [pd.util.hash_array(table[k].to_pandas().to_numpy()) for k in (0, 1)]
    return table.filter(pa.array((hashes[0] + hashes[1]) % shares == n))
