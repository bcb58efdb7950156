"""Loop-detector tables (METR-LA style): one column a sensor, one line an interval, mean speeds in miles per hour.

The table has no times of its own: the first line is `start` (METR-LA week: 2012-03-01 00:00, local to
`America/Los_Angeles`), each further one 5 minutes later *on the clock of the file*, which skips no hour when summer
time begins; times are therefore counted from the start in real time. A zero is a missing reading. Sensor locations
are places (`index,sensor_id,latitude,longitude`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from workbench.datasets.archives import Source, open_source
from workbench.datasets.formats.base import Format, Opened, Reading, first_line, header_of, text_tables
from workbench.datasets.times import UTC, check_zone, numbers
from workbench.errors import DataError

ZONE = "America/Los_Angeles"
START = "2012-03-01 00:00"
INTERVAL_S = 300
_LOCATIONS = ("sensor_id", "latitude", "longitude")


def read(opened: Opened, reading: Reading) -> Iterator[pa.Table]:
    """The readings as fixes: `mobile` is the sensor; its location is joined where the source holds the locations."""
    start = start_of(opened.name, reading.zone or ZONE)
    places = reading.side or {}
    line = 0
    for text in text_tables(opened, encoding=reading.encoding):
        sensors = [name for name in text.column_names if name != "unread"]
        good = text.filter(pc.is_null(text["unread"]))
        rows, wide = good.num_rows, len(sensors)
        speed = pa.concat_arrays([numbers(good[name].combine_chunks(), pa.float64()) for name in sensors])
        speed = pc.if_else(pc.equal(speed, 0.0), None, speed)
        t = np.tile((start + (line + np.arange(rows)) * INTERVAL_S) * 1_000_000, wide)
        line += rows
        names = [int(s) if s.isdigit() else s for s in sensors]
        spot = np.array([places.get(name, (np.nan, np.nan)) for name in sensors], float)
        columns = {
            "mobile": pa.array(np.repeat(np.array(names), rows)),
            "t": pa.array(t, pa.int64()).cast(pa.timestamp("us")).cast(UTC),
        }
        if places:
            columns |= {
                axis: pa.array(np.repeat(spot[:, i], rows), from_pandas=True) for i, axis in enumerate(("lon", "lat"))
            }
        yield pa.table(
            {
                **columns,
                "speed_mph": speed,
                "reason": pa.nulls(rows * wide, pa.string()),
                "unread": pa.nulls(rows * wide, pa.string()),
            }
        )
        broken = text.filter(pc.is_valid(text["unread"]))
        if broken.num_rows:
            reason = pa.array(["row unreadable"] * broken.num_rows, pa.string())
            yield pa.table(
                {
                    "mobile": pa.nulls(broken.num_rows, columns["mobile"].type),
                    "t": pa.nulls(broken.num_rows, UTC),
                    "reason": reason,
                    "unread": broken["unread"],
                }
            )


def start_of(name: str, zone: str) -> int:
    """The instant of the first line in seconds since 1970: the date in the file's name, or METR-LA's first day.

    >>> start_of("los_speed_week_2012-03-01.csv", "America/Los_Angeles")
    1330588800
    """
    found = re.search(r"\d{4}-\d\d-\d\d", name)
    stamp = pd.Timestamp(found.group() if found else START).tz_localize(check_zone(zone))
    return int(stamp.timestamp())


def locations(source: Source, reading: Reading) -> dict[str, tuple[float, float]]:
    """Where the sensors stand, when a member of the source says so."""
    for member in source.members:
        if member.plain.endswith(".csv") and "location" in member.plain:
            with source.open(member.name) as stream:
                for text in text_tables(Opened(member.name, stream)):
                    if all(name in text.column_names for name in _LOCATIONS):
                        at = {name: text[name].to_pylist() for name in _LOCATIONS}
                        return {s: (float(x), float(y)) for s, y, x in zip(*at.values(), strict=True)}
    return {}


def readings(path: str | Path, zone: str | None = None) -> pd.DataFrame:
    """The readings: `place` (the sensor), `t` (UTC), `op` = update, `speed_mph`: updates of places, ready for a
    replay."""
    source = open_source(path)
    tables = []
    for member, stream in source.streams([m.name for m in source.members if FORMAT.wants(m.plain)]):
        tables += list(read(Opened(member.name, stream), Reading(zone=zone)))
    if not tables:
        raise DataError(f"{path}: holds no table of detectors")
    table = pa.concat_tables(tables, promote_options="permissive").drop_columns(["reason", "unread"]).to_pandas()
    table.insert(2, "op", "update")
    return table.rename(columns={"mobile": "place"}).dropna(subset=["t"]).reset_index(drop=True)


def _knows(name: str, head: bytes) -> bool:
    names = header_of(first_line(head), ",", name)
    return len(names) >= 10 and all(n.isdigit() for n in names)


FORMAT = Format(
    name="metr-la",
    title="Loop detectors, METR-LA style",
    wants=lambda name: name.endswith(".csv") and "location" not in name,
    knows=_knows,
    read=read,
    zone=ZONE,
    side=locations,
    notes=(
        "one line every 5 minutes from the date in the file's name, or from 2012-03-01; zeros are missing readings",
    ),
)
