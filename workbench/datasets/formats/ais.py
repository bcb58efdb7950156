"""AIS position reports as the Danish Maritime Authority publishes them: CSV with `# Timestamp` (UTC, day first) and
`MMSI`.

The mobile is the MMSI as a number; base stations and aids to navigation are kept, with their type in `mobile_type`.
Latitude 91 and longitude 181 mean "not available" and are set aside as outside the globe.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from workbench.datasets.formats.base import (
    Cell,
    Format,
    Opened,
    Reading,
    first_line,
    fixes_table,
    header_of,
    text_tables,
)
from workbench.datasets.times import Clock
from workbench.errors import DataError

LAYOUT = "%d/%m/%Y %H:%M:%S"
_KNOWN: dict[str, tuple[str, str]] = {
    "Type of mobile": ("mobile_type", "text"),
    "Navigational status": ("status", "text"),
    "SOG": ("sog_kn", "number"),
    "COG": ("cog_deg", "number"),
    "Heading": ("heading_deg", "number"),
    "Name": ("name", "text"),
    "Ship type": ("ship_type", "text"),
    "Destination": ("destination", "text"),
    "Draught": ("draught_m", "number"),
    "Length": ("length_m", "number"),
    "Width": ("width_m", "number"),
}


def read(opened: Opened, reading: Reading) -> Iterator[pa.Table]:
    """The reports of one file."""
    for text in text_tables(opened, encoding=reading.encoding):
        stamp = "# Timestamp" if "# Timestamp" in text.column_names else "Timestamp"
        missing = [name for name in (stamp, "MMSI", "Latitude", "Longitude") if name not in text.column_names]
        if missing:
            raise DataError(
                f"{opened.name}: has no column {', '.join(map(repr, missing))}; use format='csv' with columns="
            )
        cells = {
            "mobile": Cell("MMSI", "whole"),
            "t": Cell(stamp, Clock(zone=reading.zone or "UTC", layout=LAYOUT)),
            "lon": Cell("Longitude", "number"),
            "lat": Cell("Latitude", "number"),
        }
        cells |= {new: Cell(old, kind) for old, (new, kind) in _KNOWN.items() if old in text.column_names}
        yield fixes_table(text, cells, opened.name)


def _knows(name: str, head: bytes) -> bool:
    columns = header_of(first_line(head), ",", name)
    return "MMSI" in columns and ("# Timestamp" in columns or "Timestamp" in columns)


FORMAT = Format(
    name="ais",
    title="AIS reports, Danish Maritime Authority",
    wants=lambda name: name.endswith(".csv"),
    knows=_knows,
    read=read,
    header=1,
    notes=("Danish AIS times are in UTC, day first",),
)
