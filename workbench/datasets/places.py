"""Places: points, lines and areas with their attributes, from whatever geopandas reads.

A table of places has `place` (its id), then `lon`, `lat` or `x`, `y` where all places are points, or `geometry`
where some are not; all other columns are attributes. The coordinate reference system is read, converted to that of
the fixes, and refused when it is unknown. A column `t` (and `op`) makes rows updates of a place, so that a place
may have many.

>>> table = {"poi_id": ["a", "b"], "latitude": [50.0, 0.0], "longitude": [8.0, 8.0], "category": ["cafe", "fuel"]}
>>> places = read_places(table)
>>> places
  place  lon   lat category
0     a  8.0  50.0     cafe
>>> from workbench.datasets.quality import report_of
>>> print(report_of(places))
2 rows in: 1 kept, 0 collapsed, 1 set aside (50.0 %)
  zero coordinate          1
  note: place is read from poi_id
  note: lon is read from longitude
  note: lat is read from latitude
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.datasets.archives import open_source
from workbench.datasets.formats.base import Opened, text_tables
from workbench.datasets.formats.generic import SYNONYMS, _delimiter
from workbench.datasets.ingesting import narrowest
from workbench.datasets.layout import Fixes, type_of
from workbench.datasets.quality import ROW, TIME, Report, count_reasons, gate
from workbench.datasets.times import Clock, read_times
from workbench.errors import DataError, did_you_mean, raise_all
from workbench.tables import mended, parsed_geometry

WGS84 = "EPSG:4326"
IDS = (
    "place",
    "place_id",
    "poi_id",
    "sensor_id",
    "station_id",
    "id",
    "fid",
    "objectid",
    "locationid",
    "zip_code",
    "name",
)
GEOMETRY = "geometry unusable"
PORTO_STANDS = b"ID,Descricao,Latitude,Longitude"
"""The header of the taxi stands of Porto (ECML/PKDD 2015), whose published file lacks a comma before one longitude."""
_MISSING_COMMA = re.compile(rb"(,\d+\.\d+)(-\d+\.\d+\s*)$", re.MULTILINE)
_TEXT = (".csv", ".tsv", ".txt")


def read_places(
    source: Any,
    *,
    columns: Mapping[str, str] | None = None,
    crs: str | None = None,
    to: Any = WGS84,
    zone: str | None = None,
    encoding: str = "utf8",
) -> pd.DataFrame:
    """A table of places from a file (GeoJSON, GeoParquet, CSV, shapefile, ...), a GeoDataFrame or a pandas table.

    columns: for `place`, `lon`, `lat`, `x`, `y`, `t` the columns they come from. crs: the coordinate reference
    system, where the source does not say it. to: that of the fixes (a name, or the ingested fixes themselves).
    zone: of local times in `t`.
    """
    target = to.crs if isinstance(to, Fixes) else to
    frame, known, unread = _frame(source, columns, encoding)
    rows = len(frame) + unread
    frame, notes = _named(
        frame, dict(columns or {}), str(getattr(source, "name", source)) if isinstance(source, str | Path) else "places"
    )
    lost = 0
    if "t" in frame.columns:
        said = frame["t"].notna()
        frame["t"] = read_times(pa.array(frame["t"], from_pandas=True), Clock("text", zone), "places: ").to_pandas()
        # no time is from the start, an unreadable one is none
        unreadable = said & frame["t"].isna()
        lost, frame = int(unreadable.sum()), frame[~unreadable]
    if "geometry" in frame.columns:
        frame, aside = _shapes(frame, crs or known, target, notes)
    else:
        frame, aside = _points(frame, crs, target)
    for reason, count in ((ROW, unread), (TIME, lost)):
        if count:
            aside[reason] = aside.get(reason, 0) + count
    frame = frame.reset_index(drop=True)
    twice = frame["place"][frame["place"].duplicated()].unique() if "t" not in frame.columns else []
    if len(twice):
        raise DataError(
            f"{len(twice)} places share their id, such as {twice[0]!r}; name another with columns={{'place': ...}}"
        )
    frame.attrs["report"] = Report(rows, len(frame), 0, aside, notes=tuple(notes)).as_dict()
    frame.attrs["crs"] = str(target) if target is not None else None
    return frame


def _frame(source: Any, columns: Mapping[str, str] | None, encoding: str) -> tuple[pd.DataFrame, str | None, int]:
    """The source as a table, its CRS where it has one, and the number of lines that were no rows."""
    if isinstance(source, str | Path):
        path = Path(source)
        if not path.exists():
            raise DataError(f"{path}: no such file or folder")
        name = path.name.lower().removesuffix(".gz")
        if name.endswith(_TEXT):
            return _csv(path, encoding)
        if name.endswith((".parquet", ".geoparquet")) and b"geo" not in (pq.read_schema(path).metadata or {}):
            return pq.read_table(path).to_pandas(), None, 0
        return *_geo_file(path), 0
    if isinstance(source, pa.Table):
        return source.to_pandas(), None, 0
    if isinstance(source, Mapping):
        return pd.DataFrame(dict(source)), None, 0
    if isinstance(source, pd.DataFrame):
        known = getattr(source, "crs", None)
        if hasattr(source, "active_geometry_name") and source.active_geometry_name not in (None, "geometry"):
            source = source.rename_geometry("geometry")
        return source.copy(), known, 0
    raise DataError(f"cannot read places from a {type(source).__name__}; expected a path or a table")


def _geo_file(path: Path) -> tuple[pd.DataFrame, Any]:
    import geopandas

    try:
        parquet = path.name.lower().endswith((".parquet", ".geoparquet"))
        frame = geopandas.read_parquet(path) if parquet else geopandas.read_file(path)
    except (ValueError, OSError, RuntimeError, pa.ArrowInvalid) as error:
        raise DataError(f"{path.name}: cannot be read as places ({str(error).splitlines()[0]})") from error
    if not isinstance(frame, geopandas.GeoDataFrame):
        return frame, None
    return frame.rename_geometry("geometry") if frame.geometry.name != "geometry" else frame, frame.crs


def _csv(path: Path, encoding: str) -> tuple[pd.DataFrame, None, int]:
    source = open_source(path)
    with source.open(source.members[0].name) as stream:
        head = stream.peek(1 << 14).split(b"\n")[0]
        if head.strip() == PORTO_STANDS:
            stream = io.BufferedReader(io.BytesIO(_MISSING_COMMA.sub(rb"\1,\2", stream.read())))  # type: ignore[arg-type]
        tables = list(text_tables(Opened(path.name, stream), delimiter=_delimiter(head), encoding=encoding))
    if not tables:
        raise DataError(f"{path.name}: holds no rows")
    text = pa.concat_tables(tables)
    good = text.filter(pa.compute.is_null(text["unread"])).drop_columns(["unread"])
    typed = {}
    for name in good.column_names:
        stripped = pa.compute.utf8_trim_whitespace(good[name])
        kind = narrowest(stripped)
        typed[name] = stripped.cast(type_of("string" if kind == "null" else kind)) if kind != "bool" else good[name]
    return pa.table(typed).to_pandas(), None, text.num_rows - good.num_rows


def _named(frame: pd.DataFrame, chosen: dict[str, str], where: str) -> tuple[pd.DataFrame, list[str]]:
    names = [str(name) for name in frame.columns]
    raise_all(
        [
            f"{where}: column {s!r} for {n!r} is not there; {did_you_mean(s, names)}"
            for n, s in chosen.items()
            if s not in names
        ],
        DataError,
    )
    lower = {name.lower().strip(): name for name in reversed(names)}
    notes = []
    if "geometry" not in names and "geometry" not in chosen:
        shape = next((lower[n] for n in ("geometry", "wkt", "wkb", "the_geom", "geom") if n in lower), None)
        if shape is not None:
            chosen["geometry"] = shape
    for name in ("lon", "lat", "x", "y"):
        if name in chosen or "geometry" in chosen or "geometry" in names:
            continue
        found = next((lower[u] for u in SYNONYMS[name] if u in lower), None)
        if found is not None and not (name in "xy" and "lon" in chosen):
            chosen[name] = found
    if "place" not in chosen:
        unique = (
            lower[i]
            for i in IDS
            if i in lower and (i == "place" or (frame[lower[i]].is_unique and frame[lower[i]].notna().all()))
        )
        found = next(unique, None)
        if found is None:
            frame = frame.assign(place=np.arange(1, len(frame) + 1))
            notes.append("the places have no id of their own and are numbered from 1")
            chosen["place"] = "place"
        else:
            chosen["place"] = found
    notes = [
        f"{n} is read from {chosen[n]}" for n in ("place", "lon", "lat", "x", "y") if chosen.get(n, n) != n
    ] + notes
    frame = frame.rename(columns={source: name for name, source in chosen.items()})
    first = [n for n in ("place", "t", "op", "lon", "lat", "x", "y", "geometry") if n in frame.columns]
    if not {"geometry", "lon", "x"} & set(first):
        raise DataError(f"{where}: no coordinates among {', '.join(names)}; say columns={{'lon': ..., 'lat': ...}}")
    return frame[[*first, *(c for c in frame.columns if c not in first)]], notes


def _points(frame: pd.DataFrame, crs: str | None, target: str | None) -> tuple[pd.DataFrame, dict[str, int]]:
    degrees = "lon" in frame.columns
    axes = ["lon", "lat"] if degrees else ["x", "y"]
    for axis in axes:
        frame[axis] = pd.to_numeric(frame[axis], errors="coerce").astype("float64")
    marked = pa.table(
        {n: pa.array(frame[n], from_pandas=True) for n in ("place", *(["op"] if "op" in frame.columns else []), *axes)}
    )
    passed, aside, _ = gate(marked.append_column("row", pa.array(np.arange(len(frame)))), "place")
    frame = frame.iloc[passed["row"].to_numpy()]
    known = WGS84 if degrees else crs
    if known is None and target not in (None, WGS84):
        known = target  # metres beside fixes in metres, as both say nothing else
    if known is None and target == WGS84:
        raise DataError(
            "the places are in metres of an unknown coordinate reference system; say crs=, or to=None to leave them"
        )
    if target is not None and known != target:
        import geopandas

        moved = geopandas.GeoSeries(geopandas.points_from_xy(frame[axes[0]], frame[axes[1]]), crs=known).to_crs(target)
        new = ["lon", "lat"] if target == WGS84 else ["x", "y"]
        frame = frame.rename(columns=dict(zip(axes, new, strict=True)))
        frame[new[0]], frame[new[1]] = moved.x.to_numpy(), moved.y.to_numpy()
    return frame, count_reasons(aside)


def _shapes(frame: pd.DataFrame, crs: Any, target: Any, notes: list[str]) -> tuple[pd.DataFrame, dict[str, int]]:
    import geopandas

    if not isinstance(frame, geopandas.GeoDataFrame):
        frame = geopandas.GeoDataFrame(
            frame.assign(geometry=[_shape(value) for value in frame["geometry"]]), geometry="geometry"
        )
    if target is not None and crs is None and frame.crs is None:
        raise DataError("the places' coordinate reference system is unknown; say crs=, such as crs='EPSG:4326'")
    if frame.crs is None and crs is not None:
        frame = frame.set_crs(crs)
    if target is not None:
        frame = frame.to_crs(target)
    shape = frame.geometry
    still = frame["op"].isin(["update", "remove"]) if "op" in frame.columns else pd.Series(False, index=frame.index)
    box = shape.bounds.to_numpy()
    usable = (~shape.isna() & ~shape.is_empty & np.isfinite(box).all(axis=1)) | (still & shape.isna())
    aside = {GEOMETRY: int((~usable).sum())} if not usable.all() else {}
    frame = frame[usable]
    wrong = ~frame.geometry.is_valid & frame.geometry.notna()
    if wrong.any():
        frame.loc[wrong, "geometry"] = [mended(area) for area in frame.geometry[wrong]]
        notes.append(f"{int(wrong.sum())} areas crossed themselves and were repaired")
    if len(frame) and (frame.geometry.geom_type == "Point").all():
        axes = ("lon", "lat") if target == WGS84 else ("x", "y")
        plain = pd.DataFrame(frame.drop(columns="geometry"))
        plain.insert(1, axes[0], frame.geometry.x.to_numpy())
        plain.insert(2, axes[1], frame.geometry.y.to_numpy())
        return plain, aside
    return frame, aside


def _shape(value: Any) -> Any:
    import shapely

    if value is None or (isinstance(value, float) and np.isnan(value)):
        return None
    try:
        return parsed_geometry(value)
    except shapely.errors.ShapelyError:
        return None  # an unreadable shape is set aside and counted with the missing ones


def write_places(places: pd.DataFrame, path: str | Path) -> None:
    """Places as one Parquet file: GeoParquet where they have shapes."""
    if hasattr(places, "to_crs"):
        places.to_parquet(path, index=False)
    else:
        pq.write_table(pa.Table.from_pandas(places, preserve_index=False).replace_schema_metadata(None), path)
