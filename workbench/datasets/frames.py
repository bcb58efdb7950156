"""GeoDataFrames and MovingPandas collections, in and out.

In: a GeoDataFrame of points is a table of fixes when it has an id and a time (columns as in the generic format; a
DatetimeIndex named or unnamed is the time). A coordinate reference system in degrees becomes `lon`, `lat` in WGS
84; one in metres stays `x`, `y`; another unit is converted to WGS 84; none at all is refused.

Out: `to_geodataframe`, where a fix without a position has no geometry, and `to_trajectories`. What they cannot carry is
said in a warning: metres of a reference system that nobody named; in MovingPandas fixes without a position, and tracks
of fewer than two fixes.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from workbench.datasets.quality import QualityWarning, coordinates_of
from workbench.errors import DataError, SetupError

if TYPE_CHECKING:
    import geopandas


def fixes_from(source: Any, crs: str | None = None) -> tuple[pa.Table | None, str | None]:
    """A table of fixes and its CRS from pandas, GeoPandas or MovingPandas; None for anything else. crs: of points that
    do not say theirs."""
    kind = type(source).__module__.split(".")[0]
    if kind == "movingpandas":
        source = _from_movingpandas(source)
        kind = "geopandas"
    if kind == "geopandas" and hasattr(source, "geometry"):
        return _from_geodataframe(source.set_crs(crs) if source.crs is None and crs is not None else source)
    if isinstance(source, Mapping):
        source = pd.DataFrame(dict(source))
    if isinstance(source, pd.DataFrame):
        return _table(_with_time(source)), source.attrs.get("crs")
    return None, None


def _table(frame: pd.DataFrame) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"a column of the table mixes types: {'; '.join(map(str, error.args))}") from error


def _with_time(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with its time index, and any other index that has a name, as columns."""
    if isinstance(frame.index, pd.DatetimeIndex) and "t" not in frame.columns:
        frame = frame.rename_axis("t").reset_index()
    elif any(name is not None and name not in frame.columns for name in frame.index.names):
        levels = enumerate(frame.index.names)
        spare = [level for level, name in levels if name is None or name in frame.columns]
        frame = (frame.reset_index(level=spare, drop=True) if spare else frame).reset_index()
    return pd.DataFrame(frame)


def _from_geodataframe(frame: geopandas.GeoDataFrame) -> tuple[pa.Table, str | None]:
    shapes = frame.geometry
    wrong = sorted(set(shapes.dropna().geom_type) - {"Point"})
    if wrong:
        raise DataError(
            f"fixes are points, the GeoDataFrame holds {', '.join(wrong)}; areas and lines are places (read_places)"
        )
    if frame.crs is None:
        raise DataError(
            "the GeoDataFrame has no coordinate reference system; set one, such as frame.set_crs('EPSG:4326'), or say "
            "crs="
        )
    names, metres = axes_of(frame.crs)
    if not metres:
        frame = frame.to_crs("EPSG:4326")
        shapes = frame.geometry
    plain = _with_time(frame.drop(columns=[frame.geometry.name, *(n for n in names if n in frame.columns)]))
    present = (~shapes.isna() & ~shapes.is_empty).to_numpy()
    for name, values in zip(names, (shapes.x, shapes.y), strict=True):
        plain[name] = pd.Series(values.to_numpy(), index=plain.index).where(present)
    if present.any() and shapes[present].has_z.all() and metres:
        plain["z"] = shapes.z.to_numpy()
    return _table(plain), metres or "EPSG:4326"


def axes_of(crs: Any) -> tuple[tuple[str, str], str | None]:
    """The coordinates that points of a reference system have as fixes, and the system where they stay in it.

    >>> axes_of("EPSG:25832"), axes_of("EPSG:4326")
    ((('x', 'y'), 'EPSG:25832'), (('lon', 'lat'), None))
    """
    from pyproj import CRS

    known = CRS.from_user_input(crs)
    if known.is_projected and known.axis_info[0].unit_conversion_factor == 1.0:
        return ("x", "y"), known.to_string()
    return ("lon", "lat"), None


def geometry_of(described: bytes, name: str, otherwise: str | None = None) -> tuple[str, str]:
    """The column and the reference system that GeoParquet's metadata name; no word about it is longitude and latitude,
    null is unknown, and then the one that the user named."""
    from pyproj import CRS

    told = json.loads(described)
    column = told["primary_column"]
    crs = told["columns"][column].get("crs", "OGC:CRS84") or otherwise
    if crs is None:
        raise DataError(
            f"{name}: the coordinate reference system of {column!r} is unknown; write the file with one, or say it "
            "with crs= (--crs)"
        )
    return column, CRS.from_user_input(crs).to_string()


def points_table(table: pa.Table, column: str, crs: str) -> pa.Table:
    """A table with points as well-known binary as a table with coordinates."""
    import geopandas
    import shapely

    shapes = shapely.from_wkb(table[column].to_numpy())
    plain = table.drop_columns([column]).replace_schema_metadata(None)
    placed, _ = _from_geodataframe(geopandas.GeoDataFrame({"row": range(len(shapes))}, geometry=shapes, crs=crs))
    for name in placed.column_names[1:]:
        plain = plain.append_column(name, placed[name])
    return plain


def _from_movingpandas(source: Any) -> Any:
    tracks = source.trajectories if hasattr(source, "trajectories") else [source]
    parts = []
    for track in tracks:
        frame = track.df.rename_axis("t").reset_index()
        if track.get_traj_id_col() and track.get_traj_id_col() in frame.columns:
            frame = frame.rename(columns={track.get_traj_id_col(): "mobile"})
        else:
            frame["mobile"] = track.id
        parts.append(frame)
    if not parts:
        raise DataError("the trajectory collection is empty")
    joined = pd.concat(parts, ignore_index=True)
    if joined["t"].dt.tz is None:
        # MovingPandas drops the zone of the times that it is given, after taking them to UTC
        joined["t"] = joined["t"].dt.tz_localize("UTC")
    return (
        joined.set_geometry(tracks[0].get_geom_col()).set_crs(tracks[0].crs)
        if tracks[0].crs
        else joined.set_geometry(tracks[0].get_geom_col())
    )


def to_geodataframe(fixes: Any, crs: str | None = None) -> geopandas.GeoDataFrame:
    """Fixes as a GeoDataFrame of points; `crs` is needed for metres that do not say theirs, else the points have none.

    >>> to_geodataframe(pd.DataFrame({"mobile": [1], "t": [5], "lon": [8.6], "lat": [49.9]})).crs.to_string()
    'EPSG:4326'
    """
    import geopandas
    import shapely

    table, known = as_pandas(fixes)
    names = coordinates_of(list(table.columns))
    if not names:
        raise DataError(f"the fixes have no coordinates; columns are {', '.join(table.columns)}")
    crs = "EPSG:4326" if names[0] == "lon" else crs or known
    if crs is None:
        warnings.warn(
            "the fixes do not say the reference system of their metres, and so the points have none, which makes them "
            "unreadable as fixes; say crs=, such as crs='EPSG:32633'",
            QualityWarning,
            stacklevel=2,
        )
    places = [table[name].to_numpy(float, na_value=np.nan) for name in names]
    points = np.asarray(shapely.points(*places), object)
    points[~(np.isfinite(places[0]) & np.isfinite(places[1]))] = None
    return geopandas.GeoDataFrame(table.drop(columns=list(names)), geometry=points, crs=crs)


def write_geoparquet(fixes: Any, path: Any, crs: str | None = None) -> None:
    """Fixes or places as one GeoParquet file."""
    frame = fixes if type(fixes).__module__.startswith("geopandas") else to_geodataframe(fixes, crs)
    frame.to_parquet(path, index=False)


def to_trajectories(fixes: Any, crs: str | None = None) -> Any:
    """Fixes as a MovingPandas collection; a fix without a position and a mobile with a single fix cannot be in one,
    which is warned of."""
    try:
        import movingpandas
    except ImportError:
        raise SetupError("movingpandas is not installed; install it with `pip install movingpandas`") from None
    frame = to_geodataframe(fixes, crs)
    if not pd.api.types.is_datetime64_any_dtype(frame["t"]):
        raise DataError("MovingPandas needs timestamps; these fixes have whole ticks (use pd.to_datetime(t, unit='s'))")
    nowhere = frame.geometry.isna()
    if nowhere.any():
        warnings.warn(
            f"{int(nowhere.sum())} fixes have no position, which MovingPandas cannot carry; they are left out",
            QualityWarning,
            stacklevel=2,
        )
        frame = frame[~nowhere]
    sizes = frame.groupby("mobile", sort=False)["t"].transform("size")
    short = frame.loc[sizes < 2, "mobile"].nunique()
    if short:
        warnings.warn(
            f"{short} mobiles have a single fix, which MovingPandas cannot carry; they are left out",
            QualityWarning,
            stacklevel=2,
        )
    frame = frame[sizes >= 2].copy()
    if frame["t"].dt.tz is not None:
        frame["t"] = frame["t"].dt.tz_convert("UTC").dt.tz_localize(None)
    return movingpandas.TrajectoryCollection(frame, traj_id_col="mobile", t="t")


def as_pandas(fixes: Any) -> tuple[pd.DataFrame, str | None]:
    """Fixes of any kind as pandas, with the CRS where it is known."""
    from pathlib import Path

    from workbench.datasets.layout import Fixes, is_ingested, open_fixes

    if isinstance(fixes, str | Path):
        if is_ingested(fixes):
            fixes = open_fixes(fixes)
        else:
            from workbench.datasets.ingesting import load

            fixes = load(fixes)
    if isinstance(fixes, Fixes):
        return fixes.to_pandas(), fixes.crs
    if isinstance(fixes, pa.Table):
        return fixes.to_pandas(), None
    converted, crs = fixes_from(fixes) if type(fixes) is not pd.DataFrame else (None, fixes.attrs.get("crs"))
    if converted is not None:
        return converted.to_pandas(), crs
    if isinstance(fixes, pd.DataFrame):
        return fixes, crs
    raise DataError(f"expected fixes as a path, pandas or Arrow, not {type(fixes).__name__}")
