"""The public formats, by name.

>>> sorted(FORMATS)
['ais', 'cabspotting', 'csv', 'geolife', 'gpx', 'kdd2017', 'metr-la', 'parquet', 'porto', 'tdrive']
"""

from __future__ import annotations

from workbench.datasets.archives import Source
from workbench.datasets.formats import ais, cabspotting, detectors, generic, geolife, gpx, porto, tdrive, tollgates
from workbench.datasets.formats.base import Format, recoded
from workbench.errors import DataError, did_you_mean

FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        geolife.FORMAT,
        tdrive.FORMAT,
        cabspotting.FORMAT,
        porto.FORMAT,
        ais.FORMAT,
        gpx.FORMAT,
        tollgates.FORMAT,
        detectors.FORMAT,
        generic.PARQUET,
        generic.CSV,
    )
}
"""In the order in which a guess tries them: the particular before the general."""

MEMBERS_TRIED = 5

__all__ = ["FORMATS", "find_format", "guess_format"]


def find_format(name: str) -> Format:
    """The format of a name.

    >>> find_format("geolive")
    Traceback (most recent call last):
    workbench.errors.DataError: format 'geolive' is unknown; did you mean 'geolife'?
    """
    if name not in FORMATS:
        raise DataError(f"format {name!r} is unknown; {did_you_mean(name, FORMATS)}")
    return FORMATS[name]


def guess_format(source: Source, encoding: str = "utf8") -> Format:
    """The most particular format that knows one of the first members by its name and its first bytes.

    Several are looked at: a folder of detector readings begins with the table of their locations, which is a CSV like
    any other.
    """
    order = list(FORMATS.values())
    found: list[int] = []
    for member in source.members:
        wanted = [form for form in order if form.wants(member.plain)]
        if not wanted:
            continue
        with source.open(member.name) as stream:
            head = recoded(stream.read(1 << 14), encoding)
        if head:
            found.append(next((order.index(form) for form in wanted if form.knows(member.plain, head)), len(order)))
        if len(found) == MEMBERS_TRIED:
            break
    if min(found, default=len(order)) == len(order):
        raise DataError(
            f"{source.path.name}: the format was not recognised in {len(source.members)} files; "
            f"name one with format=, {did_you_mean('', FORMATS)}"
        )
    return order[min(found)]
