"""The tables: fixes, places, timelines, notifications. Names, types, order and checks, once.

=============  =====================================================================================
fixes          ``mobile, t``, then ``x, y`` (and ``z``) in metres or ``lon, lat`` in degrees; attributes; ``op``
places         ``place``, the same coordinates or ``geometry``; attributes; ``t`` and ``op`` where things change
other tables   ``id`` (or the table's own name), ``t``, coordinates, attributes: as far as they are needed
timelines      ``publication, subscription, tau, pi, ended``, in this order of rows: tau, publication, subscription
notifications  ``t, kind, publication, subscription``, ordered by t, unmatch before match, publication, subscription
messages       of TIP's brokers and services, declared in `workbench.tip.messages`
=============  =====================================================================================

``op`` is ``add``, ``update`` or ``remove``; without one, the first row of an id adds it and later ones update it. A
null cell means "unchanged". Rows come in any order. Of one (id, t), identical rows collapse, rows that complete each
other merge, remove and add together are an update, and rows in conflict are all set aside and counted.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from workbench.crs import (
    AXES,
    BY_STANDARD,
    DEGREES,
    UNKNOWN,
    Coordinates,
    converted,
    in_words,
    is_geographic,
    of_geoarrow,
    of_geoparquet,
)
from workbench.errors import DataError, ScenarioError, did_you_mean, raise_all
from workbench.geometry import PLANAR, WGS84
from workbench.model.clock import Clock
from workbench.model.columns import MISSING, Blank, Column, Made, is_null
from workbench.model.history import Change, Client
from workbench.model.pubsub import Population
from workbench.model.scenario import Scenario
from workbench.model.shapes import point, shape

TIMELINES = ("publication", "subscription", "tau", "pi", "ended")
NOTIFICATIONS = ("t", "kind", "publication", "subscription")
ENDED = ("unmatch", "publication_removed", "subscription_removed")
OPERATIONS = ("add", "update", "remove")
KEYS = {"fixes": "mobile", "places": "place"}
COORDINATES = AXES
_SHAPES = ("Point", "LineString", "MultiLineString", "Polygon", "MultiPolygon")
_PLAIN_IDS = ("string", "integer", "floating", "mixed-integer", "mixed-integer-float", "categorical", "empty")
_WHOLE = re.compile(r"\s*[-+]?\d{1,18}\s*$")
_DATED = re.compile(r"\s*[-+]?\d{4}")
_ZONED = re.compile(r"(Z|[+-]\d\d(:?\d\d)?)$")


# -- reading -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """The rows of one table, checked: ``id``, ``t`` in ticks (null: from the start), ``op``, cells.

    No two rows are of one (id, t).
    """

    table: str
    frame: pd.DataFrame
    clock: Clock | None
    metric: str | None
    counts: Mapping[str, int]
    geometry: bool = False

    @property
    def columns(self) -> frozenset[str]:
        """What regions can read; ``position`` where there are coordinates or a geometry."""
        read = set(self.frame.columns) - {"t", "op"}
        return frozenset(read | ({"position"} if self.metric or self.geometry else set()))


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


def _load_csv(path: Path) -> pd.DataFrame:
    """A CSV; ids and times are read digit by digit, so that 007 stays apart from 7 and no large number is rounded."""
    header, separator = _header(path)
    exact = [name for name in header if name in (*KEYS.values(), "id", "t", "geometry")]
    frame = pd.read_csv(path, sep=separator, dtype=dict.fromkeys(exact, str))
    numbers = [name for names in AXES.values() for name in names if name in header]
    if separator != "," and any(frame[name].dtype == object for name in numbers):
        frame = pd.read_csv(path, sep=separator, decimal=",", dtype=dict.fromkeys(exact, str))
    for name in exact:
        if name != "geometry":
            frame[name] = _plain_numbers(frame[name])
    return frame


def _header(path: Path) -> tuple[list[str], str]:
    """The columns of a CSV, and what separates them: whatever makes the most of its first line.

    A comma where nothing does.
    """
    found = [(list(pd.read_csv(path, nrows=0, sep=sign, skipinitialspace=True).columns), sign) for sign in ",;\t|"]
    return max(found, key=lambda one: len(one[0]))


def _plain_numbers(text: pd.Series) -> pd.Series:
    """Text as whole numbers where all of it is; ids that begin with a needless 0 are none, times may be decimals."""
    trimmed = pc.utf8_trim_whitespace(pa.array(text, pa.string(), from_pandas=True))
    padded = text.name != "t" and pc.any(pc.match_substring_regex(trimmed, r"^[-+]?0[0-9]|^\+")).as_py()
    if padded or trimmed.null_count == len(trimmed):
        return text.astype(object)
    try:
        whole = trimmed.cast(pa.int64())
        return whole.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get if whole.null_count else None)
    except pa.ArrowInvalid:
        pass
    try:
        return pd.to_numeric(text) if text.name == "t" else text.astype(object)
    except ValueError:
        return text.astype(object)


def _load_path(path: Path, name: str) -> pd.DataFrame:
    if not path.exists():
        raise DataError(f"{name}: there is no file or folder {str(path)!r}")
    try:
        if _is_parquet(path):
            return _load_parquet(path)
        if _is_text(path):
            return _load_csv(path)
        if path.suffix.lower() in (".geojson", ".json", ".gpkg", ".shp"):
            return _load_features(path, name)
    except (OSError, ValueError, RuntimeError, pa.ArrowTypeError) as error:
        raise DataError(f"{name}: {str(path)!r} cannot be read: {error}") from None
    raise DataError(
        f"{name}: {path.name!r} is of no known kind; expected .parquet, .csv, .csv.gz, .geojson or a folder"
    )


def _is_parquet(path: Path) -> bool:
    return path.is_dir() or path.suffix.lower() in (".parquet", ".geoparquet", ".parq", ".pq")


def _is_text(path: Path) -> bool:
    return bool({".csv", ".tsv", ".txt"} & {suffix.lower() for suffix in path.suffixes})


def _load_features(path: Path, name: str) -> pd.DataFrame:
    import geopandas

    frame = geopandas.read_file(path)
    by_standard = path.suffix.lower() in (".geojson", ".json") and frame.crs in (None, "EPSG:4326")
    plain = pd.DataFrame(frame)
    if not len(plain) and name in KEYS and KEYS[name] not in plain.columns:
        plain[KEYS[name]] = pd.Series(dtype=object)  # without a feature there is no property either
    return _with_crs(plain, BY_STANDARD if by_standard else frame.crs or UNKNOWN)


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


def _with_crs(frame: pd.DataFrame, crs: Any) -> pd.DataFrame:
    """The table, with the reference system that its source says, in words."""
    if crs is not None:
        frame.attrs["crs"] = in_words(crs)
    return frame


def columns_of(source: Any) -> list[str]:
    """The names of a table's columns, without reading it; none where they cannot be told."""
    try:
        if isinstance(source, str | Path):
            path = Path(source)
            if _is_parquet(path):
                import pyarrow.parquet as pq

                return list(pq.read_schema(parquet_files(path)[0]).names)
            return _header(path)[0] if _is_text(path) else []
        names = None if of_spark(source) else getattr(source, "column_names", None)
        names = names or getattr(source, "columns", None)
        return list(map(str, source if isinstance(source, Mapping) or names is None else names))
    except (OSError, ValueError, TypeError, DataError):
        return []  # said where the table is read


def read(source: Any, table: str, zone: str | None = None, tick: Clock | None = None) -> Rows:
    """A table checked and in normal form; every fault of it in one error.

    What has been read already is given back.

    >>> read({"mobile": [7, 7], "t": [1, 1], "x": [0.0, 0.0], "y": [0.0, 0.0]}, "fixes").counts
    {'rows_in': 2, 'rows_collapsed': 1, 'rows_set_aside': 0}
    """
    if isinstance(source, Rows):
        return source
    frame = load(source, table).reset_index(drop=True)
    repeated = sorted(set(map(str, frame.columns[frame.columns.duplicated()])))
    raise_all([f"{table} have two columns named {name!r}" for name in repeated], DataError)
    faults: list[str] = []
    key = _key(frame, table, faults)
    clock = _times(frame, table, zone, tick, faults)
    metric, has_geometry = _positions(frame, table, faults)
    _operations(frame, table, faults)
    raise_all(faults, DataError)
    # The key is called id inside; an attribute of that name could only be mistaken for it.
    frame = frame.drop(columns=["id"] if key != "id" and "id" in frame.columns else []).rename(columns={key: "id"})
    if frame["id"].isna().any():
        raise DataError(f"{table}: {int(frame['id'].isna().sum())} rows have no {key}")
    if frame["id"].dtype in ("uint64", "UInt64"):  # which no engine has; the largest stay what they are as text
        frame["id"] = frame["id"].astype("int64" if frame["id"].max() < 2**63 else str)
    if pd.api.types.infer_dtype(frame["id"]) not in _PLAIN_IDS:
        frame["id"] = frame["id"].map(_plain_id)
    rows_in = len(frame)
    frame, aside = one_row_per_instant(frame)
    counts = {
        "rows_in": rows_in,
        "rows_collapsed": rows_in - len(frame) - aside,
        "rows_set_aside": aside,
    }
    return Rows(table, frame, clock, metric, counts, has_geometry)


def _plain_id(value: Any) -> Any:
    """An id that every engine and file can carry: what is neither text nor a number becomes text, bytes in digits.

    >>> _plain_id(b"\\x07"), _plain_id(7)
    ('07', 7)
    """
    if isinstance(value, str | int | float | np.number):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)


def _key(frame: pd.DataFrame, table: str, faults: list[str]) -> str:
    wanted = [KEYS[table]] if table in KEYS else ["id", table, table.removesuffix("s")]
    for name in wanted:
        if name in frame.columns:
            return name
    faults.append(f"{table} have no column {wanted[0]!r}; {did_you_mean(wanted[0], map(str, frame.columns))}")
    return wanted[0]


def _times(
    frame: pd.DataFrame, table: str, zone: str | None, tick: Clock | None, faults: list[str]
) -> Clock | None:
    if "t" not in frame.columns:
        if table == "fixes":
            faults.append(f"fixes have no column 't'; {did_you_mean('t', map(str, frame.columns))}")
        frame["t"] = pd.Series(pd.NA, index=frame.index, dtype="Int64")
        return None
    column = frame["t"]
    if column.isna().any() and table == "fixes":
        faults.append(f"fixes: {int(column.isna().sum())} rows have no t")
        return None
    try:
        ticks, clock = ticks_of(column, zone, tick or Clock())
    except DataError as error:
        faults.append(f"{table}: {error}")
        return None
    frame["t"] = ticks
    return clock if column.notna().any() else None


def ticks_of(column: pd.Series, zone: str | None, integers: Clock) -> tuple[pd.Series, Clock]:
    """A column of times as ticks, and the clock that they are ticks of."""
    known = column.dropna()
    if pd.api.types.is_bool_dtype(column):
        raise DataError("t is Boolean; expected integers or timestamps")
    if known.empty:  # of whatever type
        return pd.Series(pd.NA, index=column.index, dtype="Int64"), integers
    if pd.api.types.is_integer_dtype(column):
        return column.astype("Int64"), integers
    if pd.api.types.is_float_dtype(column):
        if not np.all(known == np.floor(known)):
            raise DataError(
                "t has fractions of a tick; give integers (milliseconds, say, with a scenario's tick) or timestamps"
            )
        return column.astype("Int64"), integers
    if pd.api.types.is_datetime64_any_dtype(column):
        stamps = column
    elif known.map(lambda t: isinstance(t, str) and _WHOLE.match(t) is not None).all():
        return column.map(int, na_action="ignore").astype("Int64"), integers  # as in a CSV, where all is text
    else:
        stamps = _parsed(column, zone)
    if stamps.dt.tz is None:
        if zone is None:
            raise DataError(
                "t has local times without a zone; state the zone (zone=, --zone), such as 'UTC' or 'Asia/Shanghai'"
            )
        try:
            stamps = stamps.dt.tz_localize(zone)
        except Exception as error:  # noqa: BLE001 - zones have errors of their own kinds
            found = re.search(r"\d{4}-\d\d-\d\d [\d:.]+", str(error))
            at = found[0] if found else error
            raise DataError(
                f"t cannot be read as local times of {zone!r}: {at} comes twice there, or not at all, since clocks "
                "change; give such times with their offset from UTC"
            ) from None
    unit = str(stamps.dt.unit)
    utc = stamps.dt.tz_convert("UTC").dt.tz_localize(None)
    ticks = pd.Series(utc.to_numpy().astype(f"datetime64[{unit}]").astype("int64"), index=column.index, dtype="Int64")
    return ticks.mask(column.isna()), Clock.of_timestamps(unit, zone)


def check_zone(zone: str | None) -> None:
    """A zone that nobody knows is refused, whether or not a local time needs it."""
    try:
        pd.Timestamp(0, tz=zone)
    except Exception:  # noqa: BLE001 - zones have errors of their own kinds
        raise DataError(f"the zone {zone!r} is unknown; expected a name such as 'UTC' or 'Asia/Shanghai'") from None


def _parsed(column: pd.Series, zone: str | None) -> pd.Series:
    texts = column.dropna().astype(str)
    strange = texts[~texts.str.match(_DATED)]
    if len(strange):
        raise DataError(f"t cannot be read as integers or ISO 8601 timestamps, such as {strange.iloc[0]!r}")
    zoned = texts.map(lambda text: bool(_ZONED.search(text)) and ":" in text)
    if not zoned.all() and zone is None:
        raise DataError(
            f"t has local times without a zone, such as {texts[~zoned].iloc[0]!r}; "
            "state the zone (zone=, --zone), such as 'UTC' or 'Asia/Shanghai'"
        )
    try:
        if zoned.all():
            return pd.to_datetime(column, utc=True, format="ISO8601").dt.as_unit("us")
        if zoned.any():
            raise DataError("t mixes times with and without a zone")
        return pd.to_datetime(column, format="ISO8601").dt.as_unit("us")
    except (ValueError, TypeError) as error:
        raise DataError(f"t cannot be read as integers or ISO 8601 timestamps: {error}") from None


def _positions(frame: pd.DataFrame, table: str, faults: list[str]) -> tuple[str | None, bool]:
    present = [metric for metric, names in COORDINATES.items() if set(names) <= set(frame.columns)]
    has_geometry = "geometry" in frame.columns
    if len(present) == 2:
        faults.append(f"{table} have both x, y and lon, lat; drop one of the two")
        return None, has_geometry
    if not present:
        return None, has_geometry
    (metric,) = present
    for name in (*COORDINATES[metric], *(["z"] if "z" in frame.columns else [])):
        try:
            frame[name] = pd.to_numeric(frame[name]).astype("float64")
        except (ValueError, TypeError) as error:
            faults.append(f"{table}: column {name!r} is not numeric: {error}")
            return metric, has_geometry
        if np.isinf(frame[name]).any():
            faults.append(f"{table}: column {name!r} has infinite values")
    if metric == WGS84:
        wrong = (frame["lat"].abs() > 90) | (frame["lon"].abs() > 180)
        if wrong.any():
            first = frame.loc[wrong.idxmax()]
            faults.append(
                f"{table}: {int(wrong.sum())} rows lie outside the globe, "
                f"such as lon={first['lon']:g}, lat={first['lat']:g}; are the two swapped, or are these metres (x, y)?"
            )
    return metric, has_geometry


def _operations(frame: pd.DataFrame, table: str, faults: list[str]) -> None:
    if "op" not in frame.columns:
        frame["op"] = np.full(len(frame), None, dtype=object)
        return
    frame["op"] = frame["op"].astype(object).where(frame["op"].notna(), None)
    wrong = sorted({str(op) for op in frame["op"] if op is not None and op not in OPERATIONS})
    faults += [f"{table}: op {op!r} is unknown; {did_you_mean(op, OPERATIONS)}" for op in wrong]


def one_row_per_instant(frame: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Rows merged that are of one (id, t), in the order of t, and how many had to be set aside."""
    repeated = frame.duplicated(["id", "t"], keep=False)
    if not repeated.any():
        return frame.sort_values(["t"], kind="stable", na_position="first").reset_index(drop=True), 0
    merged, aside = [], 0
    for _, group in frame[repeated].groupby(["id", "t"], sort=False, dropna=False, observed=True):
        row = _merged(group)
        if row is None:
            aside += len(group)
        else:
            merged.append(row)
    whole = pd.concat([frame[~repeated], pd.DataFrame(merged, columns=frame.columns).astype(_types(frame))])
    return whole.sort_values(["t"], kind="stable", na_position="first").reset_index(drop=True), aside


def _types(frame: pd.DataFrame) -> dict[str, Any]:
    return {name: dtype for name, dtype in frame.dtypes.items() if name != "op"}  # type: ignore[misc]


def _merged(group: pd.DataFrame) -> dict[str, Any] | None:
    """One row for all rows of one (id, t); None where two of them contradict each other."""
    row: dict[str, Any] = {}
    for name, column in group.items():
        known = [v for v in column.tolist() if not is_null(v)]
        distinct = list({_comparable(v): v for v in known}.values())
        if name == "op" and {*distinct} == {"remove", "add"}:
            distinct = ["update"]
        if len(distinct) > 1:
            return None
        row[str(name)] = distinct[0] if distinct else None
    return row


def _comparable(value: Any) -> Any:
    if hasattr(value, "wkb"):
        return value.wkb
    return repr(value) if isinstance(value, list | dict | set) or type(value).__name__ == "ndarray" else value


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


# -- fixes and places become changes ---------------------------------------------------------------------


@dataclass(frozen=True)
class Inputs:
    """All tables of one replay, agreed on one clock and one metric."""

    scenario: Scenario
    tables: Mapping[str, Rows]
    clock: Clock
    metric: str
    span: tuple[int, int] | None = None
    """the first and the last instant of the whole data, where these tables are only a part of it"""

    @property
    def instants(self) -> tuple[int, int]:
        """The first and the last instant of the data; (0, 0) where there is none."""
        ends = [self.span] if self.span is not None else ends_of(self.tables)
        return (min(a for a, _ in ends), max(b for _, b in ends)) if ends else (0, 0)

    def staged(self, timelines: pd.DataFrame, until: int | None) -> pd.DataFrame:
        """The timelines after the scenario's last stage."""
        if self.scenario.stage is None:
            return timelines
        frames = {name: rows.frame for name, rows in self.tables.items()}
        return self.scenario.stage(timelines, frames, self.clock, until)

    @property
    def counts(self) -> dict[str, int]:
        """Rows in, collapsed and set aside, over all tables."""
        names = ("rows_in", "rows_collapsed", "rows_set_aside")
        return {name: sum(rows.counts[name] for rows in self.tables.values()) for name in names}


def ends_of(tables: Mapping[str, Rows]) -> list[tuple[int, int]]:
    """The first and the last instant of each table that has one."""
    known = [rows.frame["t"].dropna() for rows in tables.values()]
    return [(int(k.min()), int(k.max())) for k in known if len(k)]


def inputs(
    scenario: Scenario, fixes: Any = None, places: Any = None, zone: str | None = None
) -> Inputs:
    """The tables that a scenario needs, read and checked against it."""
    given = {"fixes": fixes, "places": places, **scenario.tables}
    needed = {name for p in scenario.populations for name in (p.rows, p.profiles) if name}
    missing = sorted(name for name in needed if given.get(name) is None)
    if missing:
        readers = ", ".join(repr(p.name) for p in scenario.populations if p.rows in missing or p.profiles in missing)
        raise DataError(f"{readers} take their rows from {', '.join(missing)}, which were not given")
    tick = Clock(tick=scenario.tick)
    tables = {name: read(source, name, zone, tick) for name, source in given.items() if source is not None}
    clock = _one_clock(tables, tick)
    metric = _one_metric(scenario, tables)
    scenario.check_clock(clock)
    tables = {
        name: replace(rows, frame=in_metric(_reclocked(rows, clock), name, metric), clock=clock)
        for name, rows in tables.items()
    }
    faults = [fault for p in scenario.populations for fault in _column_faults(p, tables)]
    raise_all(faults, DataError)
    return Inputs(scenario, tables, clock, metric)


def _one_clock(tables: Mapping[str, Rows], default: Clock) -> Clock:
    clocks = {name: rows.clock for name, rows in tables.items() if rows.clock is not None}
    if len({c.unit is None for c in clocks.values()}) > 1:
        said = ", ".join(f"{n}: {'integers' if c.unit is None else 'timestamps'}" for n, c in clocks.items())
        raise DataError(f"the tables tell time in different ways ({said})")
    return clocks.get("fixes") or next(iter(clocks.values()), default)


def _reclocked(rows: Rows, clock: Clock) -> pd.DataFrame:
    if rows.clock is None or rows.clock.unit == clock.unit:
        return rows.frame
    scaled = rows.frame["t"].astype("object") * rows.clock.tick.nanoseconds
    rest = scaled.dropna() % clock.tick.nanoseconds
    if rest.astype(bool).any():
        raise DataError(f"{rows.table}: some t are finer than the fixes' tick of {clock.tick}")
    return rows.frame.assign(t=(scaled // clock.tick.nanoseconds).astype("Int64"))


def _one_metric(scenario: Scenario, tables: Mapping[str, Rows]) -> str:
    found = {rows.metric for rows in tables.values() if rows.metric is not None}
    if scenario.metric is not None:
        found.add(scenario.metric)
    if len(found) > 1:
        raise DataError("some coordinates are x, y in metres and some are lon, lat in degrees; convert one of the two")
    return found.pop() if found else PLANAR


def agreed(
    scenario: Scenario, places: Any, fixes: Coordinates | None
) -> tuple[Scenario, Any]:
    """A scenario's own tables, and the places, in the coordinates of the fixes (`workbench.crs`).

    Where there are no fixes, or none with coordinates, the first table that has them says what they are.
    """
    given = {"places": places, **scenario.tables}
    loaded = {
        name: load(source, name).copy(deep=False)
        for name, source in given.items()
        if source is not None and not isinstance(source, Rows)
    }
    frames = {name: frame for name, frame in loaded.items() if {"geometry", "lon", "x"} & set(frame.columns)}
    to = fixes or _coordinates_said(scenario, frames)
    if to is None:
        return scenario, places
    for name, frame in frames.items():
        if "geometry" in frame.columns:
            frame = frame.assign(geometry=shapes_of(frame, name))
        frames[name] = converted(frame, name, to)
        frames[name].attrs.pop("crs", None)  # it is what all the others are in
    own = {name: frames.get(name, source) for name, source in scenario.tables.items()}
    known = replace(scenario, metric=to.metric) if fixes is None and scenario.metric is None else scenario
    return replace(known, tables=own) if own else known, frames.get("places", places)


def _coordinates_said(scenario: Scenario, frames: Mapping[str, pd.DataFrame]) -> Coordinates | None:
    said = {name: frame.attrs.get("crs") for name, frame in frames.items()}
    for name, frame in frames.items():
        if (found := Coordinates.of(frame.columns, said[name])) is not None:
            return found
    degrees = [crs for crs in said.values() if crs is not None and is_geographic(crs)]
    if scenario.metric == WGS84 or (scenario.metric is None and degrees):
        return Coordinates(WGS84, DEGREES)
    return None


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


def _column_faults(population: Population, tables: Mapping[str, Rows]) -> list[str]:
    if population.single:
        return []
    known = frozenset().union(*(tables[n].columns for n in (population.rows, population.profiles) if n))
    return [
        f"{population.name!r} reads the column {name!r}; {did_you_mean(name, known)}"
        for name in sorted(_required(population) - known)
    ]


def _required(population: Population) -> set[str]:
    found: set[str] = set()

    def visit(blank: Any) -> None:
        if isinstance(blank, Column) and blank.default is MISSING:
            found.add(blank.name)
        elif isinstance(blank, Made):
            for argument in blank.arguments:
                visit(argument)

    for _, region in population.regions:
        for _, extent in region.constraints:
            if isinstance(extent, Blank):
                visit(extent)
    return found


def needs_position(scenario: Scenario, table: str) -> bool:
    """Whether a population reads the position of a table's rows."""
    return any(p.rows == table and "position" in p.columns() for p in scenario.populations)


def changes(data: Inputs) -> tuple[dict[int, list[Change]], dict[str, int]]:
    """The updates of a replay by instant, and the rows that had to be set aside because they say nothing.

    An update or removal of what does not exist is set aside. Rows without a time exist from the first instant on.
    """
    first, _ = data.instants
    found: dict[int, list[Change]] = {}
    aside = {"rows_set_aside": 0}
    for population in data.scenario.populations:
        if population.single:
            change = Change(Client(population.name, population.name), begin=(population.name,))
            found.setdefault(first, []).append(change)
    for rows in data.tables.values():
        members = [p for p in data.scenario.populations if p.rows == rows.table]
        profile = not members
        for t, change in _changes_of(rows, members, profile, first, data, aside):
            found.setdefault(t, []).append(change)
    return dict(sorted(found.items())), aside


def _changes_of(
    rows: Rows, members: list[Population], profile: bool, first: int, data: Inputs, aside: dict[str, int]
) -> Iterator[tuple[int, Change]]:
    wants_position = needs_position(data.scenario, rows.table)
    names = tuple(p.name for p in members)
    stays = {p.name: p.stay.in_ticks(data.clock.tick) for p in members if p.stay is not None}
    records = rows.frame.to_dict("records")
    by_id: dict[Any, list[dict[str, Any]]] = {}
    for record in records:
        by_id.setdefault(record["id"], []).append(record)
    for key, history in by_id.items():
        client = Client(rows.table, key)
        alive, there, latest = False, names, first
        for n, record in enumerate(history):
            t = first if is_null(record["t"]) else int(record["t"])
            op = record["op"]
            # the end of a lifetime is a removal
            there = tuple(name for name in there if name not in stays or t <= latest + stays[name])
            alive = alive and (profile or bool(there))
            if op == "remove":
                if not alive:
                    aside["rows_set_aside"] += 1
                    continue
                alive = False
                yield t, Change(client, end=names, forget=profile)
                continue
            if op == "update" and not alive and not profile:
                aside["rows_set_aside"] += 1
                continue
            alive, there, latest = True, there if op == "update" else names, t
            cells = _cells(record, rows, wants_position and op != "update")
            yield t, Change(client, cells, begin=there)
            following = next((int(r["t"]) for r in history[n + 1 :] if not is_null(r["t"])), None)
            for name, stay in stays.items():
                if name in there and (following is None or following > t + stay):
                    yield t + stay, Change(client, end=(name,))


def _cells(record: Mapping[str, Any], rows: Rows, position_required: bool) -> dict[str, Any]:
    cells = {str(k): v for k, v in record.items() if k not in ("id", "t", "op", "geometry") and not is_null(v)}
    cells["id"] = record["id"]
    position = None
    if rows.metric is not None:
        x, y = (record[name] for name in COORDINATES[rows.metric])
        if not is_null(x) and not is_null(y):
            z = record.get("z") if rows.metric == PLANAR else None
            position = point(x, y, 0.0 if is_null(z) else z)  # type: ignore[arg-type]
    if position is None and rows.geometry and not is_null(record["geometry"]):
        try:
            position = shape(geometry_of(record["geometry"]))
        except (ScenarioError, ValueError, shapely.errors.ShapelyError) as error:
            raise DataError(f"{rows.table}: the geometry of {record['id']!r} cannot be used: {error}") from None
    if position is not None:
        cells["position"] = position
    elif position_required:
        raise DataError(
            f"{rows.table}: {KEYS.get(rows.table, 'id')} {record['id']!r} has no position at t = {record['t']}; null "
            "coordinates are allowed only where op = 'update' (`workbench ingest` sets such rows aside)"
        )
    return cells


# -- writing -----------------------------------------------------------------------------------------------


def timelines_frame(rows: Iterable[tuple[Any, Any, int, int | None, str | None]], clock: Clock) -> pd.DataFrame:
    """Timelines as the declared table, in the declared order.

    >>> timelines_frame([("cafe", 7, 3, None, None)], Clock())
      publication  subscription  tau    pi ended
    0        cafe             7    3  <NA>  None
    """
    listed = sorted(rows, key=lambda r: (r[2], _sortable(r[0]), _sortable(r[1])))
    publication, subscription, tau, pi, ended = zip(*listed, strict=True) if listed else ([], [], [], [], [])
    began = clock.column(tau)
    return pd.DataFrame(
        {
            "publication": _ids(publication),
            "subscription": _ids(subscription),
            "tau": began if clock.unit else began.astype("int64"),
            "pi": clock.column(pi),
            "ended": pd.Series(list(ended), dtype=object),
        }
    )


def _ids(values: Iterable[Any]) -> pd.Series:
    listed = list(values)
    whole = listed and all(isinstance(v, int | np.integer) and not isinstance(v, bool) for v in listed)
    return pd.Series(listed, dtype="int64" if whole else object)


def _sortable(value: Any) -> tuple[str, Any]:
    """Ids of one type in their own order, numbers before strings."""
    return ("", value) if isinstance(value, int | float | np.number) else ("s", str(value))


def told_of_their_end(timelines: pd.DataFrame, silent: frozenset[Any] = frozenset()) -> pd.Series:
    """Which timelines end with a notification."""
    told = timelines["ended"].isin(["unmatch", "publication_removed"])
    return told & ~timelines["publication"].isin(silent) if silent else told


def notifications_frame(timelines: pd.DataFrame, silent: frozenset[Any] = frozenset()) -> pd.DataFrame:
    """The notifications that timelines stand for: a match at tau, an unmatch at pi.

    Nobody is told when a subscription goes; ``silent`` publications are transient, and only their match is reported.

    >>> lines = timelines_frame([("cafe", 7, 3, 5, "unmatch"), ("cafe", 8, 4, 5, "subscription_removed")], Clock())
    >>> notifications_frame(lines)
       t     kind publication  subscription
    0  3    match        cafe             7
    1  4    match        cafe             8
    2  5  unmatch        cafe             7
    """
    told = told_of_their_end(timelines, silent)
    matches = timelines.rename(columns={"tau": "t"}).assign(kind="match")
    unmatches = timelines[told].rename(columns={"pi": "t"}).assign(kind="unmatch")
    unmatches["t"] = unmatches["t"].astype(timelines["tau"].dtype)
    both = pd.concat([unmatches[list(NOTIFICATIONS)], matches[list(NOTIFICATIONS)]], ignore_index=True)
    order = both.assign(_late=(both["kind"] == "match")).sort_values(
        ["t", "_late", "publication", "subscription"], kind="stable"
    )
    return order[list(NOTIFICATIONS)].reset_index(drop=True)
