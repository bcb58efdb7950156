"""The public formats, by name.

>>> sorted(FORMATS)
['ais', 'cabspotting', 'csv', 'geolife', 'gpx', 'kdd2017', 'metr-la', 'parquet', 'porto', 'tdrive']
"""

from __future__ import annotations

from workbench.datasets.archives import Source
from workbench.datasets.formats import ais, cabspotting, detectors, generic, geolife, gpx, porto, tdrive, tollgates
from workbench.datasets.formats.base import Format
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


def guess_format(source: Source) -> Format:
    """The first format that knows a member of the source by its name and its first bytes."""
    tried = 0
    for member in source.members:
        if not any(form.wants(member.plain) for form in FORMATS.values()):
            continue
        with source.open(member.name) as stream:
            head = stream.read(1 << 14)
        if not head:
            continue
        tried += 1
        for form in FORMATS.values():
            if form.wants(member.plain) and form.knows(member.plain, head):
                return form
        if tried >= 5:
            break
    raise DataError(
        f"{source.path.name}: the format was not recognised in {len(source.members)} files; "
        f"name one with format=, {did_you_mean('', FORMATS)}"
    )
