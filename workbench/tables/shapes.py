"""Cells that hold geometries: shapely, WKB, WKT or GeoJSON, as shapes that regions can be made of."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import shapely

from workbench.errors import DataError
from workbench.geometry import WGS84
from workbench.model.columns import is_null
from workbench.tables.declared import COORDINATES, KEYS

_SHAPES = ("Point", "LineString", "MultiLineString", "Polygon", "MultiPolygon")


def geometry_of(value: Any) -> Any:
    """A geometry cell as a shape; an area whose border crosses or touches itself is mended."""
    value = parsed_geometry(value)
    if getattr(value, "geom_type", "") in ("Polygon", "MultiPolygon") and not value.is_valid:
        warnings.warn(f"an area was mended: {shapely.is_valid_reason(value)}", stacklevel=2)
        return mended(value)
    return value


def parsed_geometry(value: Any) -> Any:
    """A geometry cell, which is shapely, WKB (bytes, or their hexadecimal form), WKT or GeoJSON, as a shape.

    >>> parsed_geometry("POINT (1 2)").wkt
    'POINT (1 2)'
    """
    if isinstance(value, bytes | bytearray | memoryview):
        value = shapely.from_wkb(bytes(value))
    elif isinstance(value, Mapping):
        value = shapely.geometry.shape(value)
    elif isinstance(value, str):
        text = value.strip()
        if text.startswith("{"):
            value = shapely.from_geojson(text)
        else:
            value = shapely.from_wkb(text) if text[:2] in ("00", "01") else shapely.from_wkt(text)
    return value


def mended(area: Any) -> Any:
    """The valid area that covers the same points, which real data often need."""
    parts = shapely.get_parts(shapely.make_valid(area))
    pieces = [p for part in parts for p in shapely.get_parts(part) if p.geom_type == "Polygon"]
    if not pieces:
        return area  # nothing of an area is left; refused where it is used
    return shapely.MultiPolygon(pieces) if len(pieces) > 1 else pieces[0]


def shapes_of(frame: pd.DataFrame, table: str) -> np.ndarray:
    """The geometries of a table as shapes; what is none is refused by name."""
    names = frame["id"] if "id" in frame.columns else frame.get(KEYS.get(table, "id"), frame.index)
    cells = zip(frame["geometry"], names, strict=True)
    return np.array([_shape_of(*cell, table) for cell in cells], dtype=object)


def in_metric(frame: pd.DataFrame, table: str, metric: str) -> pd.DataFrame:
    """Geometries as shapes; what could silently never meet the other coordinates is refused."""
    if "geometry" not in frame.columns:
        return frame
    shapes = shapes_of(frame, table)
    if metric == WGS84 and not _on_the_globe(shapes):
        raise DataError(f"{table}: some geometry lies outside the globe; is it in metres, or are lon and lat swapped?")
    frame = frame.assign(geometry=shapes)
    names_here = [name for name in COORDINATES[metric] if name in frame.columns]
    both = frame["geometry"].notna() & frame[names_here].notna().any(axis=1)
    if both.any():
        names = frame["id"] if "id" in frame.columns else frame[KEYS.get(table, "id")]
        warnings.warn(
            f"{table}: {int(both.sum())} rows have coordinates and a geometry, such as {names[both].iloc[0]!r}; "
            "their geometry counts",
            stacklevel=2,
        )
        frame.loc[both, names_here] = np.nan
    return frame


def _on_the_globe(shapes: np.ndarray) -> bool:
    bounds = np.abs(shapely.bounds(shapes))
    return bool(np.nanmax(bounds[:, [0, 2]], initial=0) <= 180 and np.nanmax(bounds[:, [1, 3]], initial=0) <= 90)


def _shape_of(cell: Any, name: Any, table: str) -> Any:
    try:
        found = None if is_null(cell) else geometry_of(cell)
        if found is not None and (found.is_empty or found.geom_type not in _SHAPES):
            raise ValueError(f"{found.geom_type}{' EMPTY' * found.is_empty}; expected {', '.join(_SHAPES)}")
        return found
    except (ValueError, shapely.errors.ShapelyError) as error:
        raise DataError(f"{table}: the geometry of {name!r} cannot be used: {error}") from None
