"""Coordinate reference systems: read from whatever carries one, converted to that of the fixes, refused when unknown.

A table in memory carries its system as ``attrs["crs"]``, in words. What sources say:

==========================  =================================================================================
`lon`, `lat`                WGS 84, always
`x`, `y`                    nothing, unless an ingest or `read_places` was told; then the manifest or the table knows
GeoParquet, GeoArrow        its ``crs``; no word about it is longitude and latitude in WGS 84, null is `UNKNOWN`
GeoDataFrame, GeoPackage    their ``crs``; none at all is `UNKNOWN`
shapefile                   its ``.prj``; none at all is `UNKNOWN`
GeoJSON                     WGS 84 by its standard (`BY_STANDARD`), unless the older member ``crs`` says otherwise
WKT and WKB in plain files  nothing: they are in the coordinates of the fixes, as the contract has it
==========================  =================================================================================

`converted` is the one rule for all of them. Metres of fixes that say no system are a plane of their own: nothing can
be converted to it, so that places in metres of some system are taken to be in it, with a warning, and GeoJSON is taken
as it stands, because its writer had no way to say that it holds metres.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import shapely

from workbench.errors import DataError
from workbench.geometry import PLANAR, WGS84

if TYPE_CHECKING:
    import pandas as pd

DEGREES = "OGC:CRS84"
"""longitude and latitude in WGS 84"""
UNKNOWN = "unknown"
"""of what has room for a reference system and leaves it empty"""
BY_STANDARD = "GeoJSON"
"""degrees, unless its writer had metres and could not say so"""
AXES = {PLANAR: ("x", "y"), WGS84: ("lon", "lat")}


class Coordinates(NamedTuple):
    """What a table measures in, and from where: the system of its metres is None where nobody said it."""

    metric: str
    crs: str | None

    @staticmethod
    def of(columns: Any, said: str | None) -> Coordinates | None:
        """Of a table with these columns; None where it has no coordinates, or two kinds of them.

        >>> Coordinates.of(["mobile", "t", "x", "y"], "EPSG:25832").crs
        'EPSG:25832'
        """
        present = [metric for metric, names in AXES.items() if set(names) <= set(columns)]
        if len(present) != 1:
            return None
        if present[0] == WGS84:
            return Coordinates(WGS84, DEGREES)
        return Coordinates(PLANAR, said if said not in (UNKNOWN, BY_STANDARD) else None)


def in_words(crs: Any) -> str:
    """A reference system in whatever form it comes, as text that any process can read; none is `UNKNOWN`."""
    if crs is None or crs in (UNKNOWN, BY_STANDARD):
        return crs or UNKNOWN
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    try:
        known = CRS.from_user_input(crs)
    except CRSError as error:
        raise DataError(f"{crs!r} is no coordinate reference system: {str(error).splitlines()[0]}") from None
    return UNKNOWN if known.type_name == "Engineering CRS" else known.to_string()


def is_geographic(crs: str) -> bool:
    """Whether a reference system, as a table carries it, is in degrees."""
    if crs in (UNKNOWN, BY_STANDARD):
        return False
    from pyproj import CRS

    return bool(CRS.from_user_input(crs).is_geographic)


def of_geoparquet(described: Mapping[str, Any], column: str) -> str | None:
    """What GeoParquet's metadata say of a column; None where they do not describe it."""
    about = described.get("columns", {}).get(column)
    return None if about is None else in_words(about.get("crs", DEGREES))


def of_geoarrow(field: Any) -> str | None:
    """What an Arrow field says of its geometry; None where it is no geometry of GeoArrow's."""
    about = field.metadata or {}
    name = about.get(b"ARROW:extension:name", b"").decode() or str(getattr(field.type, "extension_name", ""))
    if not name.startswith("geoarrow."):
        return None
    crs = json.loads(about.get(b"ARROW:extension:metadata", b"") or b"{}").get("crs", getattr(field.type, "crs", None))
    return in_words(crs)


def converted(frame: pd.DataFrame, table: str, to: Coordinates) -> pd.DataFrame:
    """A table's positions, shapes as such, in the coordinates of the fixes; refused where that cannot be known."""
    said = frame.attrs.get("crs")
    if "geometry" in frame.columns:
        return _shapes_moved(frame, table, said, to)
    own = Coordinates.of(frame.columns, said)
    if own is None or to.crs is None or own.crs is None or _same(own.crs, to.crs):
        return frame
    old, new = AXES[own.metric], AXES[to.metric]
    known = frame[list(old)].notna().all(axis=1).to_numpy()
    moved = _transform(own.crs, to.crs, table)(*(frame.loc[known, name].to_numpy(float) for name in old))
    frame = frame.rename(columns=dict(zip(old, new, strict=True)))
    for name, values in zip(new, moved, strict=True):
        whole = np.full(len(frame), np.nan)
        whole[known] = values
        frame[name] = whole
    frame.attrs["crs"] = to.crs
    return frame


def _shapes_moved(frame: pd.DataFrame, table: str, said: str | None, to: Coordinates) -> pd.DataFrame:
    if said is None:
        return frame
    if to.crs is None:
        if said not in (UNKNOWN, BY_STANDARD):
            _believe(said, table)
        return frame
    if said == UNKNOWN:
        fixes = "lon, lat in degrees" if to.metric == WGS84 else f"in metres of {short(to.crs)}"
        raise DataError(
            f"{table}: the coordinate reference system of the geometry is unknown, and the fixes are {fixes}; say it, "
            "as in datasets.read_places(..., crs='EPSG:4326'), or write it into the source (frame.set_crs('EPSG:4326'))"
        )
    source = DEGREES if said == BY_STANDARD else said
    if _same(source, to.crs):
        return frame
    moved = shapely.transform(frame["geometry"].to_numpy(), _transform(source, to.crs, table), interleaved=False)
    frame = frame.assign(geometry=moved)
    frame.attrs["crs"] = to.crs
    return frame


def _believe(said: str, table: str) -> None:
    """Places of some system beside fixes in a plane of their own."""
    from pyproj import CRS

    known = CRS.from_user_input(said)
    if is_geographic(said):
        raise DataError(
            f"{table}: the geometry is in degrees, and the fixes are x, y in metres of an unknown reference system; "
            "ingest them with --crs, or give both in the same coordinates"
        )
    if known.axis_info[0].unit_conversion_factor != 1.0:
        raise DataError(
            f"{table}: the geometry is in {short(said)}, whose unit is the {known.axis_info[0].unit_name}, and the "
            "fixes are x, y in metres; convert the places, or ingest the fixes with --crs"
        )
    warnings.warn(
        f"{table} are in {short(said)}; the fixes do not say their reference system, and are taken to be in the same",
        stacklevel=2,
    )


def short(crs: str) -> str:
    """The name of a reference system for a message.

    >>> short("EPSG:25832"), short('GEOGCRS["of its own", DATUM["..."]]')
    ('EPSG:25832', 'of its own')
    """
    return crs if len(crs) < 30 else crs.split('"')[1] if '"' in crs else crs[:30]


@cache
def _same(one: str, other: str) -> bool:
    from pyproj import CRS

    return one == other or CRS.from_user_input(one).equals(CRS.from_user_input(other), ignore_axis_order=True)


def _transform(source: str, to: str, table: str) -> Any:
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    try:
        transform = Transformer.from_crs(source, to, always_xy=True).transform
    except ProjError as error:
        raise DataError(f"{table}: {short(source)} cannot be converted to {short(to)}: {error}") from None

    def checked(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        moved = transform(x, y)
        lost = ~(np.isfinite(moved[0]) & np.isfinite(moved[1]))
        if lost.any():
            at = int(lost.argmax())
            raise DataError(
                f"{table}: {x[at]:g}, {y[at]:g} of {short(source)} is no position in {short(to)}; "
                "are its two coordinates swapped?"
            )
        return moved  # type: ignore[no-any-return]

    return checked
