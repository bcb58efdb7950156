"""Whatever a table can come as, in pandas: a path, pandas, geopandas, Arrow, Spark.

What a source says of its reference system stays with the table (``attrs["crs"]``). What cells mean is not asked here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from workbench.crs import (
    BY_STANDARD,
    UNKNOWN,
    in_words,
    of_geoarrow,
    of_geoparquet,
)
from workbench.errors import DataError
from workbench.tables import texts
from workbench.tables.declared import KEYS


def load(source: Any, name: str = "table") -> pd.DataFrame:
    """Anything a table can come as, in pandas: a path (file or folder), pandas, geopandas, Arrow, Spark.

    >>> load({"mobile": [7], "t": [1]})
       mobile  t
    0       7  1
    """
    if isinstance(source, pd.DataFrame):
        named = getattr(source, "active_geometry_name", None)
        if named not in (None, "geometry") and "geometry" not in source.columns:
            source = source.rename_geometry("geometry")
        if hasattr(source, "active_geometry_name"):
            crs = UNKNOWN if "geometry" in source.columns else None
            return _with_crs(pd.DataFrame(source), getattr(source, "crs", None) or source.attrs.get("crs") or crs)
        return _with_crs(pd.DataFrame(source), source.attrs.get("crs"))
    if isinstance(source, str | Path):
        return _load_path(Path(source), name)
    if isinstance(source, pa.Table | pa.RecordBatch):
        return _from_arrow(pa.Table.from_batches([source]) if isinstance(source, pa.RecordBatch) else source)
    if of_spark(source):
        return _from_arrow(source.toArrow())  # by way of Arrow, Spark's instants keep their zone
    if hasattr(source, "to_pandas"):
        return source.to_pandas()  # type: ignore[no-any-return]
    if isinstance(source, Mapping):
        return pd.DataFrame(dict(source))
    raise DataError(f"{name}: {type(source).__name__} is not a table; expected a path, pandas, Arrow or Spark")


def of_spark(given: Any) -> bool:
    """Whether something is a Spark table, classic or Connect; the latter takes any attribute for a column."""
    return type(given).__module__.startswith("pyspark.") and type(given).__name__ == "DataFrame"


def columns_of(source: Any) -> list[str]:
    """The names of a table's columns, without reading it; none where they cannot be told."""
    try:
        if isinstance(source, str | Path):
            path = Path(source)
            if _is_parquet(path):
                import pyarrow.parquet as pq

                return list(pq.read_schema(parquet_files(path)[0]).names)
            return texts.header(path)[0] if texts.is_text(path) else []
        names = None if of_spark(source) else getattr(source, "column_names", None)
        names = names or getattr(source, "columns", None)
        return list(map(str, source if isinstance(source, Mapping) or names is None else names))
    except (OSError, ValueError, TypeError, DataError):
        return []  # said where the table is read


def parquet_files(path: Path) -> list[str]:
    """The Parquet files of a file or folder; names that begin with _ or . are not data."""
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    found = [str(f) for f in files if not any(part[0] in "_." for part in f.relative_to(path).parts)]
    if not found:
        raise DataError(f"the folder {str(path)!r} holds no Parquet file")
    return found


def is_geoparquet(path: str | Path) -> bool:
    """Whether a file or folder is GeoParquet."""
    import pyarrow.parquet as pq

    path = Path(path)
    if not path.exists() or not _is_parquet(path):
        return False
    try:
        return b"geo" in (pq.read_schema(parquet_files(path)[0]).metadata or {})
    except (OSError, ValueError, DataError):
        return False  # said where it is read


def _from_arrow(table: Any) -> pd.DataFrame:
    """An Arrow table in pandas; whole numbers stay whole where some are null."""
    said = of_geoarrow(table.schema.field("geometry")) if "geometry" in table.column_names else None
    frame = _with_crs(table.to_pandas(), said)
    for column in table.schema:
        if pa.types.is_integer(column.type) and table[column.name].null_count:
            wide = pa.uint64() if pa.types.is_uint64(column.type) else pa.int64()
            nullable = pd.UInt64Dtype() if pa.types.is_uint64(column.type) else pd.Int64Dtype()
            frame[column.name] = table[column.name].cast(wide).to_pandas(types_mapper={wide: nullable}.get)
    return frame


def _load_path(path: Path, name: str) -> pd.DataFrame:
    if not path.exists():
        raise DataError(f"{name}: there is no file or folder {str(path)!r}")
    try:
        if _is_parquet(path):
            return _load_parquet(path)
        if texts.is_text(path):
            return texts.whole(path)
        if path.suffix.lower() in (".geojson", ".json", ".gpkg", ".shp"):
            return _load_features(path, name)
    except (OSError, ValueError, RuntimeError, pa.ArrowTypeError) as error:
        raise DataError(f"{name}: {str(path)!r} cannot be read: {error}") from None
    raise DataError(
        f"{name}: {path.name!r} is of no known kind; expected .parquet, .csv, .csv.gz, .geojson or a folder"
    )


def _is_parquet(path: Path) -> bool:
    return path.is_dir() or path.suffix.lower() in (".parquet", ".geoparquet", ".parq", ".pq")


def _load_parquet(path: Path) -> pd.DataFrame:
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    files = parquet_files(path)
    # a file in which a column is empty throughout does not know its type
    schema = pa.unify_schemas([pq.read_schema(file) for file in files], promote_options="permissive")
    table = ds.dataset(files, format="parquet", schema=schema).to_table()
    geo = json.loads((table.schema.metadata or {}).get(b"geo", b"{}"))
    named = geo.get("primary_column", "geometry")
    if named in table.column_names and "geometry" not in table.column_names:
        table = table.rename_columns(["geometry" if name == named else name for name in table.column_names])
    frame = _with_crs(_from_arrow(table), of_geoparquet(geo, named))
    if geo.get("columns", {}).get(named, {}).get("encoding", "WKB") != "WKB":  # coordinates as lists of numbers
        import geopandas

        frame["geometry"] = pd.concat([geopandas.read_parquet(f).geometry for f in files]).to_wkb().to_numpy()
    return frame


def _load_features(path: Path, name: str) -> pd.DataFrame:
    import geopandas

    frame = geopandas.read_file(path)
    by_standard = path.suffix.lower() in (".geojson", ".json") and frame.crs in (None, "EPSG:4326")
    plain = pd.DataFrame(frame)
    if not len(plain) and name in KEYS and KEYS[name] not in plain.columns:
        plain[KEYS[name]] = pd.Series(dtype=object)  # without a feature there is no property either
    return _with_crs(plain, BY_STANDARD if by_standard else frame.crs or UNKNOWN)


def _with_crs(frame: pd.DataFrame, crs: Any) -> pd.DataFrame:
    """The table, with the reference system that its source says, in words."""
    if crs is not None:
        frame.attrs["crs"] = in_words(crs)
    return frame
