"""GPX tracks (versions 1.0 and 1.1): the points of each track and route, in file order.

The mobile is the track's name, or the file's name with the track's number; `segment` counts the segments of a
track. Times carry a zone; a local one needs `zone`. Waypoints are places, not fixes, and are left out.

A GPX file comes from strangers, so entities, document types and the network are off, a DOCTYPE is refused, and
points are freed as they are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

import pyarrow as pa
from lxml import etree

from workbench.datasets.formats.base import Cell, Format, Opened, Reading, fixes_table
from workbench.datasets.times import Clock
from workbench.errors import DataError

BATCH = 100_000
_COLUMNS = ("mobile", "t", "lon", "lat", "ele", "segment")


def read(opened: Opened, reading: Reading) -> Iterator[pa.Table]:
    """The points of one file."""
    stem = PurePosixPath(opened.name.replace("\\", "/")).stem
    clock = Clock(zone=reading.zone)
    rows: list[tuple[str | None, ...]] = []
    for row in _rows(opened, stem):
        rows.append(row)
        if len(rows) >= BATCH:
            yield _table(rows, clock, opened.name)
            rows = []
    if rows:
        yield _table(rows, clock, opened.name)


def _rows(opened: Opened, stem: str) -> Iterator[tuple[str | None, ...]]:
    if not opened.stream.peek(1):
        return
    track, segment, name = 0, 0, ""
    try:
        events = etree.iterparse(
            opened.stream,
            events=("start", "end"),
            resolve_entities=False,
            load_dtd=False,
            no_network=True,
            huge_tree=False,
        )
        for event, element in events:
            doctype = element.getroottree().docinfo.doctype if event == "start" and element.getparent() is None else ""
            if doctype:
                raise DataError(f"{opened.name}: has a DOCTYPE ({doctype[:60]}); such files are refused")
            tag = etree.QName(element).localname
            if event == "start":
                if tag in ("trk", "rte"):
                    track, segment, name = track + 1, 0, f"{stem}#{track + 1}"
                elif tag == "trkseg":
                    segment += 1
            elif tag == "name" and etree.QName(element.getparent()).localname in ("trk", "rte"):
                name = (element.text or "").strip() or name
            elif tag in ("trkpt", "rtept"):
                below = {etree.QName(child).localname: child.text for child in element if isinstance(child.tag, str)}
                yield (
                    name,
                    below.get("time"),
                    element.get("lon"),
                    element.get("lat"),
                    below.get("ele"),
                    str(max(segment, 1)),
                )
                element.clear()
                while element.getprevious() is not None:
                    del element.getparent()[0]
    except etree.XMLSyntaxError as error:
        raise DataError(f"{opened.name}: is no readable GPX ({error}); is the file complete?") from error


def _table(rows: list[tuple[str | None, ...]], clock: Clock, name: str) -> pa.Table:
    text = pa.table(
        {column: pa.array(cells, pa.string()) for column, cells in zip(_COLUMNS, zip(*rows, strict=True), strict=True)}
    )
    cells = {
        "mobile": Cell("mobile", "text"),
        "t": Cell("t", clock),
        "lon": Cell("lon", "number"),
        "lat": Cell("lat", "number"),
        "ele_m": Cell("ele", "number"),
        "segment": Cell("segment", "whole"),
    }
    return fixes_table(text, cells, name)


FORMAT = Format(
    name="gpx",
    title="GPX tracks",
    wants=lambda name: name.endswith(".gpx"),
    knows=lambda name, head: b"<gpx" in head or name.endswith(".gpx"),
    read=read,
)
