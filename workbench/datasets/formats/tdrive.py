"""T-Drive taxi trajectories (Microsoft Research Asia): `taxi,date time,lon,lat` without a header, one file a taxi.

The times are local to Beijing, which is not written in the files: `Asia/Shanghai` unless another zone is given. The
extract with the header `taxi,t_local,lon,lat` is read too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa

from workbench.datasets.formats.base import Cell, Format, Opened, Reading, fixes_table, text_tables
from workbench.datasets.times import Clock

ZONE = "Asia/Shanghai"
_NAMES = ("taxi", "t_local", "lon", "lat")
_HEADER = b"taxi,t_local,lon,lat"


def read(opened: Opened, reading: Reading) -> Iterator[pa.Table]:
    """The fixes of one file."""
    header = opened.stream.peek(64).lstrip(b"\xef\xbb\xbf").startswith(_HEADER)
    cells = {
        "mobile": Cell("taxi"),
        "t": Cell("t_local", reading.clock or Clock(zone=reading.zone or ZONE)),
        "lon": Cell("lon", "number"),
        "lat": Cell("lat", "number"),
    }
    for text in text_tables(opened, _NAMES, skip=int(header), encoding=reading.encoding):
        yield fixes_table(text, cells, opened.name)


FORMAT = Format(
    name="tdrive",
    title="T-Drive, taxis of Beijing",
    wants=lambda name: name.endswith((".txt", ".csv")),
    knows=lambda _, head: (
        head.startswith(_HEADER)
        or bool(re.match(rb"\d+,\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,-?\d+\.?\d*,-?\d+\.?\d*\r?\n", head))
    ),
    read=read,
    header=0,
    zone=ZONE,
    box=(115.0, 38.5, 118.5, 42.0),
)
