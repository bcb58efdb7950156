"""GeoLife GPS trajectories 1.3 (Microsoft Research Asia): `Data/<user>/Trajectory/<start>.plt`.

Six lines of header, then `lat,lon,0,altitude in feet,days,date,time` in GMT; -777 feet is an unknown altitude. The
mobile is the user's number as text (`000`), the trajectory is its file's name. `Data/<user>/labels.txt` gives the
transport mode of some periods: a fix inside such a period, ends included, has its `mode`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.datasets.archives import Source
from workbench.datasets.formats.base import Cell, Format, Opened, Reading, fixes_table, text_tables
from workbench.datasets.times import UTC, Clock, read_times

HEADER_LINES = 6
UNKNOWN_FT = -777.0
METRES_PER_FOOT = 0.3048
_NAMES = ("lat", "lon", "zero", "alt_ft", "days", "date", "time")
_LABELS = ("start", "end", "mode")


def read(opened: Opened, reading: Reading) -> Iterator[pa.Table]:
    """The fixes of one .plt file."""
    path = PurePosixPath(opened.name.replace("\\", "/"))
    user = path.parent.parent.name or path.parent.name or path.stem
    clock = reading.clock or Clock(zone="UTC")
    for text in text_tables(opened, _NAMES, skip=HEADER_LINES, encoding=reading.encoding):
        when = pc.binary_join_element_wise(text["date"], text["time"], " ")
        text = text.append_column("when", when)
        cells = {
            "t": Cell("when", clock),
            "lon": Cell("lon", "number"),
            "lat": Cell("lat", "number"),
            "alt_ft": Cell("alt_ft", "number"),
        }
        table = fixes_table(text, cells, opened.name)
        rows = table.num_rows
        known = pc.not_equal(table["alt_ft"], UNKNOWN_FT)
        altitude = pc.if_else(known, pc.multiply(table["alt_ft"], METRES_PER_FOOT), None)
        yield pa.table(
            {
                "mobile": pa.array([user] * rows, pa.string()),
                "t": table["t"],
                "lon": table["lon"],
                "lat": table["lat"],
                "alt_m": altitude,
                "trajectory": pa.array([path.stem] * rows, pa.string()),
                "mode": _modes(table["t"].combine_chunks(), (reading.side or {}).get(user)),
                "reason": table["reason"],
                "unread": table["unread"],
            }
        )


def _modes(t: pa.Array, labels: Any) -> pa.Array:
    if not labels:
        return pa.nulls(len(t), pa.string())
    starts, ends, modes = (np.array(labels[key]) for key in _LABELS)
    at = pc.fill_null(t.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
    place = np.searchsorted(starts, at, side="right") - 1
    inside = (place >= 0) & (at <= ends[np.maximum(place, 0)])
    return pa.array(np.where(inside, modes[np.maximum(place, 0)], ""), pa.string(), mask=~inside)


def labels(source: Source, reading: Reading) -> dict[str, dict[str, list[Any]]]:
    """The labelled periods of each user, in the order of their starts, times in microseconds."""
    found: dict[str, dict[str, list[Any]]] = {}
    for member in source.members:
        path = PurePosixPath(member.plain)
        if path.name != "labels.txt":
            continue
        with source.open(member.name) as stream:
            for text in text_tables(Opened(member.name, stream), _LABELS, delimiter="\t", skip=1):
                start, end = (
                    read_times(pc.replace_substring(text[name], "/", "-").combine_chunks(), Clock(zone="UTC")).cast(UTC)
                    for name in ("start", "end")
                )
                rows = pa.table({"start": start.cast(pa.int64()), "end": end.cast(pa.int64()), "mode": text["mode"]})
                rows = rows.filter(pc.and_(pc.is_valid(rows["start"]), pc.is_valid(rows["end"]))).sort_by("start")
                found[PurePosixPath(member.name).parent.name] = rows.to_pydict()
    return found


FORMAT = Format(
    name="geolife",
    title="GeoLife 1.3, .plt files",
    wants=lambda name: name.endswith(".plt"),
    knows=lambda name, head: bool(re.match(rb"Geolife trajectory", head)),
    read=read,
    side=labels,
    notes=("GeoLife's times are in GMT",),
)
