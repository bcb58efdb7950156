"""Cabspotting, taxis of San Francisco (CRAWDAD epfl/mobility): `new_<cab>.txt`, lines of `lat lon occupied unix_time`.

Times are seconds since 1970, UTC. The published files run backwards in time; some copies do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import pyarrow as pa

from workbench.datasets.formats.base import Cell, Format, Opened, Reading, fixes_table, text_tables
from workbench.datasets.times import Clock

_NAMES = ("lat", "lon", "occupied", "unix")


def read(opened: Opened, reading: Reading) -> Iterator[pa.Table]:
    """The fixes of one cab."""
    cab = PurePosixPath(opened.name.replace("\\", "/")).name.split(".")[0].removeprefix("new_")
    cells = {
        "t": Cell("unix", Clock("unix")),
        "lon": Cell("lon", "number"),
        "lat": Cell("lat", "number"),
        "occupied": Cell("occupied", "whole"),
    }
    for text in text_tables(opened, _NAMES, delimiter=" ", encoding=reading.encoding):
        table = fixes_table(text, cells, opened.name)
        yield table.add_column(0, "mobile", pa.array([cab] * table.num_rows, pa.string()))


FORMAT = Format(
    name="cabspotting",
    title="Cabspotting, taxis of San Francisco",
    wants=lambda name: name.endswith(".txt") and not name.split("/")[-1].startswith(("_", "readme")),
    knows=lambda _, head: bool(re.match(rb"-?\d+\.\d+ -?\d+\.\d+ [01] \d{9,10}\r?\n", head)),
    read=read,
    header=0,
    box=(-124.0, 36.5, -121.0, 39.0),
    notes=("Cabspotting's times are seconds since 1970, UTC",),
)
