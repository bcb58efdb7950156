"""Porto taxi trips (ECML/PKDD 2015): one trip a line, `POLYLINE` = `[[lon, lat], ...]`, a point every 15 s from
`TIMESTAMP` (UTC).

The mobile is the taxi, `trip` the trip's number. A trip without points is no fix and is not counted as one; how
many there were is said. Two trips of one taxi may overlap by seconds; the gate then finds what contradicts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from workbench.datasets.archives import open_source
from workbench.datasets.formats.base import Cell, Format, Opened, Reading, fixes_table, text_tables
from workbench.datasets.times import UTC

INTERVAL_S = 15
_NEEDED = ("TRIP_ID", "TAXI_ID", "TIMESTAMP", "POLYLINE")
_CELLS = {
    "trip": Cell("TRIP_ID", "text"),
    "mobile": Cell("TAXI_ID", "whole"),
    "start": Cell("TIMESTAMP", "whole"),
    "call_type": Cell("CALL_TYPE", "text"),
    "polyline": Cell("POLYLINE", "text"),
}


def read(opened: Opened, reading: Reading) -> Iterator[pa.Table]:
    """The points of the trips of one file."""
    for text in text_tables(opened, encoding=reading.encoding):
        yield points(fixes_table(text, _CELLS, opened.name))


def trips(path: str | Path) -> pd.DataFrame:
    """The trips, empty ones too: `trip`, `mobile`, `start` (UTC), `call_type`, `points`."""
    source = open_source(path)
    tables = []
    for member, stream in source.streams([m.name for m in source.members if FORMAT.wants(m.plain)]):
        for text in text_tables(Opened(member.name, stream)):
            rows = fixes_table(text, _CELLS, member.name)
            start = pc.multiply(rows["start"], 1_000_000).cast(pa.timestamp("us")).cast(UTC)
            body = pc.utf8_trim(rows["polyline"], "[] \t")
            count = pc.if_else(pc.equal(body, ""), 0, pc.add(pc.count_substring(body, "],"), 1))
            columns = {name: rows[name] for name in ("trip", "mobile", "call_type")}
            tables.append(pa.table({**columns, "start": start, "points": count}))
    return pa.concat_tables(tables).to_pandas()


def points(trips: pa.Table) -> pa.Table:
    """Trips with a polyline each as fixes; a trip that cannot be read stays one row with its reason."""
    body = pc.utf8_trim(trips["polyline"].combine_chunks(), "[] \t")
    count = pc.add(pc.count_substring(body, "],"), 1)
    empty = pc.equal(body, "")
    count = pc.if_else(empty, 0, count)
    unreadable = pc.or_(pc.is_valid(trips["reason"]), pc.or_(pc.is_null(body), pc.is_null(trips["start"])))
    flags = pc.fill_null(unreadable, True).to_numpy()
    good = trips.filter(pa.array(~flags))
    length = pc.fill_null(count, 0).to_numpy(zero_copy_only=False)[~flags].astype(np.int64)
    used = length > 0
    good, length = good.filter(pa.array(used)), length[used]
    joined = pc.binary_join(
        pa.array([pc.utf8_trim(good["polyline"].combine_chunks(), "[] \t").to_pylist()], pa.list_(pa.string())), ","
    )
    flat = (
        pc.split_pattern(pc.replace_substring_regex(joined, r"[\[\]\s]", ""), ",").flatten()
        if len(good)
        else pa.array([], pa.string())
    )
    total = int(length.sum())
    if len(flat) != 2 * total:
        # a point that is no pair: read trip by trip, so that only the broken trips are set aside
        return pa.concat_tables([_one_by_one(good), _broken(trips.filter(pa.array(flags)))])
    trip = np.repeat(np.arange(len(length)), length)
    step = np.arange(total) - np.repeat(np.cumsum(length) - length, length)
    fixes = _fixes(
        good,
        trip,
        step,
        flat.take(pa.array(np.arange(0, 2 * total, 2))),
        flat.take(pa.array(np.arange(1, 2 * total, 2))),
    )
    return pa.concat_tables([fixes, _broken(trips.filter(pa.array(flags)))])


def _fixes(trips: pa.Table, trip: np.ndarray, step: np.ndarray, lon: pa.Array, lat: pa.Array) -> pa.Table:
    picked = trips.select(["mobile", "start", "trip", "call_type"]).take(pa.array(trip))
    start = picked["start"].to_numpy()
    t = pa.array((start + step * INTERVAL_S) * 1_000_000, pa.int64()).cast(pa.timestamp("us")).cast(UTC)
    text = pa.table({"lon": lon, "lat": lat})
    place = fixes_table(text, {"lon": Cell("lon", "number"), "lat": Cell("lat", "number")}, "POLYLINE")
    return pa.table(
        {
            "mobile": picked["mobile"],
            "t": t,
            "lon": place["lon"],
            "lat": place["lat"],
            "trip": picked["trip"],
            "call_type": picked["call_type"],
            "reason": place["reason"],
            "unread": place["unread"],
        }
    )


def _one_by_one(trips: pa.Table) -> pa.Table:
    parts = [points(trips.slice(i, 1)) for i in range(len(trips)) if _pairs(trips["polyline"][i].as_py())]
    wrong = [i for i in range(len(trips)) if not _pairs(trips["polyline"][i].as_py())]
    return pa.concat_tables([*parts, _broken(trips.take(pa.array(wrong, pa.int64())))])


def _pairs(polyline: str) -> bool:
    return all(point.count(",") == 1 for point in polyline.strip("[] \t").replace(" ", "").split("],["))


def _broken(trips: pa.Table) -> pa.Table:
    rows = len(trips)
    return pa.table(
        {
            "mobile": trips["mobile"],
            "t": pa.nulls(rows, UTC),
            "lon": pa.nulls(rows, pa.float64()),
            "lat": pa.nulls(rows, pa.float64()),
            "trip": trips["trip"],
            "call_type": trips["call_type"],
            "reason": pa.array(["row unreadable"] * rows, pa.string()),
            "unread": pc.coalesce(trips["unread"], trips["polyline"]),
        }
    )


FORMAT = Format(
    name="porto",
    title="Porto taxi trips, ECML/PKDD 2015",
    wants=lambda name: name.endswith(".csv"),
    knows=lambda _, head: all(column.encode() in head.split(b"\n")[0] for column in _NEEDED),
    read=read,
    header=1,
    box=(-10.5, 39.5, -6.5, 43.0),
    notes=("Porto's TIMESTAMP is in seconds since 1970, UTC; a point every 15 s; trips without points give no fix",),
)
