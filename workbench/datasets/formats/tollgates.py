"""Toll-gate travel times (KDD Cup 2017): trips of vehicles over the links of a road network, without coordinates.

One trip a line: `intersection_id, tollgate_id, vehicle_id, starting_time, travel_seq, travel_time`, where
`travel_seq` is `link#entered#seconds;...` and the times are local to `Asia/Shanghai`. `passages` is a table of
links driven, `trips` a table of trips, and `mean_travel_times` the published aggregation. As fixes, a passage is an
update of the vehicle's `link`, at the instant it is entered.

*Departure.* Entering times have whole seconds and short links take less than one: of the passages of a vehicle that
fall on one second only the last stands as a fix, since a client has one state at an instant; the others are set
aside as superseded, and `passages` keeps them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from workbench.datasets.archives import open_source
from workbench.datasets.formats.base import Cell, Format, Opened, Reading, fixes_table, text_tables
from workbench.datasets.quality import SUPERSEDED
from workbench.datasets.times import Clock
from workbench.errors import DataError

ZONE = "Asia/Shanghai"
_TRIP = ("intersection_id", "tollgate_id", "vehicle_id", "starting_time", "travel_seq", "travel_time")


def _trip_tables(opened: Opened, reading: Reading) -> Iterator[pa.Table]:
    cells = {
        "intersection": Cell("intersection_id", "text"),
        "tollgate": Cell("tollgate_id", "text"),
        "mobile": Cell("vehicle_id", "whole"),
        "start": Cell("starting_time", Clock(zone=reading.zone or ZONE)),
        "travel_seq": Cell("travel_seq", "text"),
        "travel_time_s": Cell("travel_time", "number"),
    }
    for text in text_tables(opened, encoding=reading.encoding):
        missing = [name for name in _TRIP if name not in text.column_names]
        if missing:
            raise DataError(
                f"{opened.name}: has no column {', '.join(map(repr, missing))}; expected {', '.join(_TRIP)}"
            )
        yield fixes_table(text, cells, opened.name)


def _passages(trips: pa.Table, reading: Reading, where: str, first_trip: int) -> pa.Table:
    links = pc.split_pattern(trips["travel_seq"].combine_chunks(), ";")
    of = pc.list_parent_indices(links)
    parts = pc.split_pattern(links.flatten(), "#")
    whole = pc.fill_null(pc.equal(pc.list_value_length(parts), 3), False)
    row = np.flatnonzero(whole.to_numpy(zero_copy_only=False))
    flat = parts.filter(whole).flatten()
    column = [flat.take(pa.array(np.arange(i, 3 * len(row), 3))) for i in range(3)]
    text = pa.table({"link": column[0], "entered": column[1], "seconds": column[2]})
    cells = {
        "t": Cell("entered", Clock(zone=reading.zone or ZONE)),
        "link": Cell("link", "text"),
        "seconds": Cell("seconds", "number"),
    }
    read_cells = fixes_table(text, cells, where)
    parent = of.take(pa.array(row))
    picked = trips.select(["mobile", "intersection", "tollgate"]).take(parent)
    return pa.table(
        {
            "mobile": picked["mobile"],
            "t": read_cells["t"],
            "link": read_cells["link"],
            "seconds": read_cells["seconds"],
            "intersection": picked["intersection"],
            "tollgate": picked["tollgate"],
            "trip": pc.add(parent.cast(pa.int64()), first_trip),
            "reason": read_cells["reason"],
            "unread": read_cells["unread"],
        }
    )


def _read_all(path: str | Path, zone: str | None) -> Iterator[tuple[pa.Table, str]]:
    source = open_source(path)
    for member, stream in source.streams([m.name for m in source.members if FORMAT.wants(m.plain)]):
        for table in _trip_tables(Opened(member.name, stream), Reading(zone=zone)):
            yield table, member.name


def trips(path: str | Path, zone: str | None = None) -> pd.DataFrame:
    """The trips: `mobile`, `intersection`, `tollgate`, `start` (UTC), `travel_time_s`."""
    tables = [table.drop_columns(["travel_seq", "reason", "unread"]) for table, _ in _read_all(path, zone)]
    return pa.concat_tables(tables).to_pandas()


def passages(path: str | Path, zone: str | None = None) -> pd.DataFrame:
    """The links driven: `mobile`, `t` (entered, UTC), `link`, `seconds`, `intersection`, `tollgate`, `trip`."""
    tables, first = [], 0
    for table, name in _read_all(path, zone):
        tables.append(_passages(table, Reading(zone=zone), name, first).drop_columns(["reason", "unread"]))
        first += table.num_rows
    return pa.concat_tables(tables).to_pandas()


def mean_travel_times(trips: pd.DataFrame, window_min: int = 20, zone: str = ZONE) -> pd.DataFrame:
    """The mean travel time of each route and window of the starting time, `[window, window + 20 min)`, to two decimals.

    The mean is taken in double precision in the order of the trips, and an exact half is rounded away from zero, as the
    published figures were. Windows begin at local midnight; windows without a trip have no row.

    >>> start = pd.to_datetime(["2016-10-18 00:02", "2016-10-18 00:19"]).tz_localize("Asia/Shanghai")
    >>> two = pd.DataFrame({"intersection": "A", "tollgate": "2", "start": start, "travel_time_s": [74.25, 97.0]})
    >>> mean_travel_times(two)[["intersection", "tollgate", "mean_travel_time_s"]].values.tolist()
    [['A', '2', 85.63]]
    """
    local = trips["start"].dt.tz_convert(zone).dt.tz_localize(None)
    # windows are counted on the local clock, which need not be a whole number of windows away from UTC
    window = local.dt.floor(f"{window_min}min")
    keys = [trips["intersection"], trips["tollgate"], window.rename("window")]
    sums = trips["travel_time_s"].groupby(keys, sort=True).agg(lambda column: sum(column.tolist()) / len(column))
    cents = [float(Decimal(mean).quantize(Decimal("0.01"), ROUND_HALF_UP)) for mean in sums.tolist()]
    return sums.index.to_frame(index=False).assign(mean_travel_time_s=cents)


def read(opened: Opened, reading: Reading) -> Iterator[pa.Table]:
    """The passages of one file as fixes without coordinates."""
    first = 0
    for table in _trip_tables(opened, reading):
        bad = pc.is_valid(table["reason"])
        rows = _passages(table.filter(pc.invert(bad)), reading, opened.name, first)
        first += table.num_rows
        yield _mark_superseded(rows)
        broken = table.filter(bad)
        if broken.num_rows:
            empty = {f.name: pa.nulls(broken.num_rows, f.type) for f in rows.schema}
            yield pa.table(
                {**empty, "mobile": broken["mobile"], "reason": broken["reason"], "unread": broken["unread"]},
                schema=rows.schema,
            )


def _mark_superseded(rows: pa.Table) -> pa.Table:
    trip, t = rows["trip"].to_numpy(), pc.fill_null(rows["t"].cast(pa.int64()), 0).to_numpy()
    last = np.append((trip[1:] != trip[:-1]) | (t[1:] != t[:-1]), True) if len(trip) else np.array([], bool)
    reason = pc.coalesce(rows["reason"], pc.if_else(pa.array(last), pa.scalar(None, pa.string()), SUPERSEDED))
    return rows.set_column(rows.column_names.index("reason"), "reason", reason)


def road(links: str | Path, routes: str | Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The road network: links (`link`, `length_m`, `lanes`) and routes (`intersection`, `tollgate`, `links` in
    order)."""
    link = pd.read_csv(links, dtype={"link_id": str}).rename(columns={"link_id": "link", "length": "length_m"})
    route = pd.read_csv(routes, dtype=str).rename(
        columns={"intersection_id": "intersection", "tollgate_id": "tollgate"}
    )
    return link[["link", "length_m", "lanes"]], route.assign(links=route.pop("link_seq").str.split(","))


def drives(passages: pd.DataFrame, links: pd.DataFrame, chain: list[str]) -> pd.DataFrame:
    """The trips over one route as fixes along a line: `mobile` (the trip), `t`, `x` (metres driven), `y` (0), `op`.

    chain: the route's links in order; links: their lengths, as `road` gives them. A trip is at the beginning of each
    link when it enters it, to the second, and leaves the route (`op` = remove) when it has driven the last one.

    >>> entered = pd.to_datetime(["2016-10-18T00:00:00Z", "2016-10-18T00:00:08Z"])
    >>> two = pd.DataFrame({"trip": 0, "t": entered, "link": ["a", "b"], "seconds": [8.0, 5.5]})
    >>> lengths = pd.DataFrame({"link": ["a", "b"], "length_m": [58, 84]})
    >>> drives(two, lengths, ["a", "b"])[["mobile", "x", "op"]].values.tolist()
    [[0, 0.0, None], [0, 58.0, None], [0, 142.0, 'remove']]
    """
    length = links.set_index("link")["length_m"].reindex(chain)
    begins = length.cumsum() - length
    whole = passages.groupby("trip")["link"].agg(tuple) == tuple(chain)
    mine = passages[passages["trip"].map(whole)]
    last = mine.groupby("trip").tail(1)
    leaves = last["t"] + pd.to_timedelta(np.ceil(last["seconds"]).clip(lower=1), unit="s")
    enters = pd.DataFrame({"mobile": mine["trip"], "t": mine["t"], "x": mine["link"].map(begins).astype(float)})
    # of links that are entered in one second the last is where the trip is
    enters = enters.drop_duplicates(["mobile", "t"], keep="last").assign(op=None)
    ends = pd.DataFrame({"mobile": last["trip"], "t": leaves, "x": float(length.sum()), "op": "remove"})
    rows = pd.concat([enters.astype({"op": object}), ends], ignore_index=True).astype({"t": mine["t"].dtype})
    return rows.assign(y=0.0).sort_values(["mobile", "t"], kind="stable", ignore_index=True)


FORMAT = Format(
    name="kdd2017",
    title="Toll-gate trips, KDD Cup 2017",
    wants=lambda name: name.endswith(".csv"),
    knows=lambda _, head: b"travel_seq" in head.split(b"\n")[0] and b"tollgate_id" in head.split(b"\n")[0],
    read=read,
    header=1,
    zone=ZONE,
    notes=("of the passages of one vehicle in one second only the last is a fix, the others are set aside",),
)

__all__ = ["FORMAT", "ZONE", "drives", "mean_travel_times", "passages", "read", "road", "trips"]
