"""Preparing fixes: trips, stops, resampling and clipping, each a function from fixes to fixes.

Every function here takes and gives a pandas table of fixes in the order of (mobile, t), looks at one mobile at a
time, and changes nothing that it is given. Buckets hold whole mobiles, so `prepare` applies any chain of them
bucket by bucket, in this process or on Spark, and writes a new data set.

>>> walk = pd.DataFrame({"mobile": 1, "t": [0, 10, 500, 510], "x": [0.0, 5.0, 9.0, 99.0], "y": 0.0})
>>> trips(walk, max_gap_s=60)["trip"].tolist()
[1, 1, 2, 2]
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.compiling import compiled
from workbench.datasets.distance import distance_m
from workbench.datasets.ingesting import Made, _extent, _finish
from workbench.datasets.layout import Fixes, name_of, open_fixes, whole_folder, write_parquet
from workbench.datasets.quality import Report, coordinates_of
from workbench.errors import DataError
from workbench.geometry import EARTH_RADIUS_M

Step = Callable[[pd.DataFrame], pd.DataFrame]


class Tracks:
    """Sorted fixes with their arrays: where each mobile begins, seconds, coordinates."""

    def __init__(self, fixes: pd.DataFrame, tick_s: float = 1.0) -> None:
        lacking = [name for name in ("mobile", "t") if name not in fixes.columns]
        if lacking:
            raise DataError(
                f"fixes have no column {', '.join(map(repr, lacking))}; columns are {', '.join(fixes.columns)}"
            )
        mobile, ticks = fixes["mobile"].to_numpy(), _ticks(fixes["t"])
        sorted_already = len(fixes) < 2 or bool(
            np.all((mobile[1:] > mobile[:-1]) | ((mobile[1:] == mobile[:-1]) & (ticks[1:] >= ticks[:-1])))
        )
        self.frame = (
            fixes.reset_index(drop=True) if sorted_already else fixes.sort_values(["mobile", "t"], ignore_index=True)
        )
        mobile = self.frame["mobile"].to_numpy()
        self.first = np.concatenate(([True], mobile[1:] != mobile[:-1])) if len(mobile) else np.array([], bool)
        self.starts = np.flatnonzero(self.first)
        self.ends = np.append(self.starts[1:], len(mobile))
        self.track = np.cumsum(self.first) - 1
        self.tick_s = _tick_s(self.frame["t"], tick_s)
        self.ticks = _ticks(self.frame["t"])
        self.names = coordinates_of(list(self.frame.columns))
        self.place = [self.frame[name].to_numpy(float) for name in self.names]

    @property
    def geodesic(self) -> bool:
        return bool(self.names) and self.names[0] == "lon"

    def need_place(self) -> None:
        if not self.names:
            raise DataError("the fixes have no coordinates, which this needs")

    def step_s(self) -> np.ndarray:
        """Seconds since the fix before; infinite at the first of a mobile."""
        step = np.diff(self.ticks, prepend=self.ticks[:1]) * self.tick_s
        return np.where(self.first, np.inf, step)

    def step_m(self) -> np.ndarray:
        """Metres since the fix before; zero at the first of a mobile."""
        before = np.maximum(np.arange(len(self.frame)) - 1, 0)
        return np.where(
            self.first, 0.0, distance_m([p[before] for p in self.place], self.place, geodesic=self.geodesic)
        )


def _ticks(t: pd.Series) -> np.ndarray:
    if pd.api.types.is_datetime64_any_dtype(t):
        return t.astype("int64").to_numpy()
    return t.to_numpy(np.int64)


def _tick_s(t: pd.Series, tick_s: float) -> float:
    if pd.api.types.is_datetime64_any_dtype(t):
        unit = getattr(t.dtype, "unit", None) or np.datetime_data(t.dtype)[0]
        return {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}[unit]
    return tick_s


def _as_time(ticks: np.ndarray, like: pd.Series) -> Any:
    if not pd.api.types.is_datetime64_any_dtype(like):
        return ticks
    unit = getattr(like.dtype, "unit", None) or np.datetime_data(like.dtype)[0]
    stamps = pd.Series(ticks.view(f"datetime64[{unit}]"))
    return stamps.dt.tz_localize("UTC").dt.tz_convert(like.dt.tz).array if like.dt.tz is not None else stamps.array


def trips(
    fixes: pd.DataFrame, max_gap_s: float = 600.0, *, max_jump_m: float | None = None, tick_s: float = 1.0
) -> pd.DataFrame:
    """Fixes with `trip`, a number from 1 for each mobile: a new trip begins after a gap, a jump, or a stop.

    A gap is longer than `max_gap_s`, a jump farther than `max_jump_m`. Where the fixes have a column `stop` (see
    `stops`), fixes in a stop belong to no trip, and the next one begins a new trip.
    """
    tracks = Tracks(fixes, tick_s)
    begins = tracks.first | (tracks.step_s() > max_gap_s)
    if max_jump_m is not None:
        tracks.need_place()
        begins |= tracks.step_m() > max_jump_m
    moving = np.ones(len(begins), bool)
    if "stop" in tracks.frame.columns:
        moving = tracks.frame["stop"].isna().to_numpy()
        begins |= np.concatenate(([False], ~moving[:-1])) if len(moving) else begins
    begins &= moving
    # a gap inside a stop still ends the trip before it, since the fix after the stop begins one
    count = np.cumsum(begins)
    before = np.where(tracks.starts > 0, count[np.maximum(tracks.starts - 1, 0)], 0)
    number = count - before[tracks.track] if len(count) else count
    return tracks.frame.assign(trip=pd.array(number, "Int64")).assign(trip=lambda f: f["trip"].where(moving))


@compiled
def _find_stops(starts, ends, seconds, x, y, scale, max_diameter_m, min_duration_s):  # type: ignore[no-untyped-def]
    stop = np.zeros(len(seconds), np.int64)
    for k in range(len(starts)):
        i, found = starts[k], 0
        while i < ends[k]:
            low_x = high_x = x[i]
            low_y = high_y = y[i]
            j = i
            while j + 1 < ends[k]:
                a, b = min(low_x, x[j + 1]), max(high_x, x[j + 1])
                c, d = min(low_y, y[j + 1]), max(high_y, y[j + 1])
                wide, high = (b - a) * scale[i], d - c
                if not wide * wide + high * high < max_diameter_m * max_diameter_m:
                    break
                low_x, high_x, low_y, high_y = a, b, c, d
                j += 1
            if j > i and seconds[j] - seconds[i] >= min_duration_s:
                found += 1
                while i <= j:
                    stop[i] = found
                    i += 1
            else:
                i += 1
    return stop


def stops(
    fixes: pd.DataFrame, max_diameter_m: float = 100.0, min_duration_s: float = 300.0, *, tick_s: float = 1.0
) -> pd.DataFrame:
    """Fixes with `stop`, a number from 1 for each mobile, and null while it moves.

    From the left: at fix i, let i..j be the longest run of fixes whose bounding box has a diagonal of less than
    `max_diameter_m`; if it lasts at least `min_duration_s` it is a stop and the search goes on behind it, else at i
    + 1.

    >>> walk = pd.DataFrame({"mobile": 1, "t": [0, 1, 2, 4, 6, 8], "x": 0.0, "y": [0.0, 10.0, 20.0, 21.0, 22.0, 30.0]})
    >>> stops(walk, max_diameter_m=3, min_duration_s=2)["stop"].tolist()
    [<NA>, <NA>, 1, 1, 1, <NA>]
    """
    tracks = Tracks(fixes, tick_s)
    tracks.need_place()
    x, y = tracks.place[:2]
    scale = np.ones(len(x))
    if tracks.geodesic:
        metres = np.radians(1.0) * EARTH_RADIUS_M
        scale, x, y = np.cos(np.radians(y)), x * metres, y * metres
    found = _find_stops(
        tracks.starts,
        tracks.ends,
        tracks.ticks * tracks.tick_s,
        x,
        y,
        scale,
        float(max_diameter_m),
        float(min_duration_s),
    )
    return tracks.frame.assign(stop=pd.array(found, "Int64")).assign(stop=lambda f: f["stop"].where(found > 0))


def stop_table(fixes: pd.DataFrame, *, tick_s: float = 1.0) -> pd.DataFrame:
    """The stops of fixes that went through `stops`: `mobile`, `stop`, `t`, `until`, `duration_s`, mean coordinates,
    `fixes`."""
    if "stop" not in fixes.columns:
        raise DataError("the fixes have no column 'stop'; call stops() first")
    still = fixes[fixes["stop"].notna()]
    names = coordinates_of(list(fixes.columns))
    groups = still.groupby(["mobile", "stop"], sort=True)
    table = groups.agg(
        t=("t", "min"), until=("t", "max"), **{n: (n, "mean") for n in names}, fixes=("t", "size")
    ).reset_index()
    lasts = (_ticks(table["until"]) - _ticks(table["t"])) * _tick_s(table["t"], tick_s)
    table.insert(4, "duration_s", lasts)
    return table


def resample(
    fixes: pd.DataFrame, interval_s: float, *, how: str = "step", max_gap_s: float | None = None, tick_s: float = 1.0
) -> pd.DataFrame:
    """Fixes at the whole multiples of an interval between the first and the last fix of each mobile.

    how: `step` (the last known position) or `linear` (between the fixes around). All other columns have their last
    known row's values. No fix is made inside a gap longer than `max_gap_s`.

    >>> walk = pd.DataFrame({"mobile": 1, "t": [0, 4, 10], "x": [0.0, 4.0, 10.0], "y": 0.0})
    >>> resample(walk, 5, how="linear")[["t", "x"]].values.tolist()
    [[0.0, 0.0], [5.0, 5.0], [10.0, 10.0]]
    """
    if how not in ("step", "linear"):
        raise DataError(f"how={how!r}: expected 'step' or 'linear'")
    tracks = Tracks(fixes, tick_s)
    every = round(interval_s / tracks.tick_s)
    if every < 1:
        raise DataError(f"interval_s={interval_s} is shorter than one tick ({tracks.tick_s} s)")
    if not len(tracks.frame):
        return tracks.frame
    low = -(-tracks.ticks[tracks.starts] // every)
    count = np.maximum(tracks.ticks[tracks.ends - 1] // every - low + 1, 0)
    track = np.repeat(np.arange(len(low)), count)
    grid = (np.repeat(low, count) + np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)) * every
    # one search for all mobiles: times are shifted so that those of a later mobile are larger
    origin = tracks.ticks.min()
    span = int(tracks.ticks.max() - origin) + 1
    at = (
        np.searchsorted(tracks.track * span + (tracks.ticks - origin), track * span + (grid - origin), side="right") - 1
    )
    after = np.minimum(at + 1, tracks.ends[track] - 1)
    gap = (tracks.ticks[after] - tracks.ticks[at]) * tracks.tick_s
    keep = np.ones(len(at), bool) if max_gap_s is None else (gap <= max_gap_s) | (tracks.ticks[at] == grid)
    at, after, grid = at[keep], after[keep], grid[keep]
    made = tracks.frame.iloc[at].reset_index(drop=True)
    made["t"] = _as_time(grid, tracks.frame["t"])
    if how == "linear":
        length = tracks.ticks[after] - tracks.ticks[at]
        share = np.where(length > 0, (grid - tracks.ticks[at]) / np.maximum(length, 1), 0.0)
        for name, place in zip(tracks.names, tracks.place, strict=True):
            made[name] = place[at] + share * (place[after] - place[at])
    return made


def clip(
    fixes: pd.DataFrame,
    area: Any = None,
    *,
    start: Any = None,
    end: Any = None,
    interpolate: bool = False,
    tick_s: float = 1.0,
) -> pd.DataFrame:
    """The fixes inside an area (a shapely polygon, closed) and a time `[start, end]`, with `visit` numbered from 1
    a mobile.

    A visit is a run of fixes without one outside between. With `interpolate`, mobiles move in straight lines
    between their fixes: each visit begins and ends where the line crosses the border, with the time of the crossing
    (to the tick), and a visit may hold no original fix.
    """
    tracks = Tracks(fixes, tick_s)
    frame = tracks.frame
    inside = np.ones(len(frame), bool)
    for bound, wrong in ((start, np.less), (end, np.greater)):
        if bound is not None:
            inside &= ~wrong(tracks.ticks, _bound(bound, frame["t"]))
    if interpolate and area is not None:
        return _clip_lines(Tracks(frame[inside], tick_s), area)
    if area is not None:
        import shapely

        tracks.need_place()
        shapely.prepare(area)
        inside &= shapely.intersects_xy(area, tracks.place[0], tracks.place[1])
    enters = inside & (tracks.first | np.concatenate(([True], ~inside[:-1]))) if len(inside) else inside
    return _numbered(frame, enters, tracks)[inside].reset_index(drop=True)


def _bound(value: Any, t: pd.Series) -> int:
    if not pd.api.types.is_datetime64_any_dtype(t):
        return int(value)
    stamp = pd.Timestamp(value)
    if stamp.tz is None:
        raise DataError(
            f"{value!r} is a local time without a zone; write it with an offset, such as '2008-05-17T10:00:00Z'"
        )
    unit = getattr(t.dtype, "unit", None) or np.datetime_data(t.dtype)[0]
    return int(
        stamp.as_unit(unit).value
        if unit == "ns"
        else stamp.tz_convert("UTC").tz_localize(None).to_datetime64().astype(f"datetime64[{unit}]").astype(np.int64)
    )


def _numbered(frame: pd.DataFrame, begins: np.ndarray, tracks: Tracks) -> pd.DataFrame:
    count = np.cumsum(begins)
    before = np.where(tracks.starts > 0, count[np.maximum(tracks.starts - 1, 0)], 0) if len(count) else count
    return frame.assign(visit=(count - before[tracks.track]) if len(count) else count)


def _clip_lines(tracks: Tracks, area: Any) -> pd.DataFrame:
    import shapely

    tracks.need_place()
    shapely.prepare(area)
    x, y = tracks.place[:2]
    a = np.flatnonzero(~tracks.first[1:]) if len(x) else np.array([], int)
    lines = (
        shapely.linestrings(np.stack([np.stack([x[a], y[a]], 1), np.stack([x[a + 1], y[a + 1]], 1)], 1))
        if len(a)
        else np.array([])
    )
    touched = shapely.intersects(area, lines) if len(a) else np.array([], bool)
    a, lines = a[touched], lines[touched]
    length = np.hypot(x[a + 1] - x[a], y[a + 1] - y[a])
    still = length == 0
    parts, of = shapely.get_parts(shapely.intersection(lines[~still], area), return_index=True)
    line = shapely.get_type_id(parts) == 1
    parts, of = parts[line], np.flatnonzero(~still)[of[line]]
    points, which = shapely.get_coordinates(parts, return_index=True)
    far = (
        np.hypot(points[:, 0] - x[a[of[which]]], points[:, 1] - y[a[of[which]]]) / length[of[which]]
        if len(which)
        else np.array([])
    )
    low, high = np.full(len(parts), np.inf), np.full(len(parts), -np.inf)
    np.minimum.at(low, which, far)
    np.maximum.at(high, which, far)
    low, high = np.where(low < 1e-12, 0.0, low), np.where(high > 1 - 1e-12, 1.0, high)
    alone = tracks.starts[(tracks.ends - tracks.starts) == 1]
    alone = alone[shapely.intersects_xy(area, x[alone], y[alone])]
    begin = np.concatenate((a[of] + low, a[still], alone))
    finish = np.concatenate((a[of] + high, a[still] + 1.0, alone))
    order = np.lexsort((finish, begin))
    begin, finish = begin[order], finish[order]
    joins = np.concatenate(([False], begin[1:] <= finish[:-1])) if len(begin) else np.array([], bool)
    begin, finish = begin[~joins], np.maximum.reduceat(finish, np.flatnonzero(~joins)) if len(finish) else finish
    return _visits(tracks, begin, finish)


def _visits(tracks: Tracks, begin: np.ndarray, finish: np.ndarray) -> pd.DataFrame:
    """The fixes at the ends of the stretches `begin..finish` (row number and share of the way to the next), and
    between."""
    spots = [
        np.unique(np.concatenate(([b], np.arange(np.floor(b) + 1, np.ceil(f)), [f])))
        for b, f in zip(begin, finish, strict=True)
    ]
    spot = np.concatenate(spots) if spots else np.array([])
    visit = np.repeat(np.arange(len(spots)), [len(s) for s in spots]) if spots else np.array([], int)
    row = np.floor(spot).astype(int)
    share = spot - row
    after = np.minimum(row + 1, len(tracks.frame) - 1)
    made = tracks.frame.iloc[row].reset_index(drop=True)
    ticks = tracks.ticks[row] + np.round(share * (tracks.ticks[after] - tracks.ticks[row])).astype(np.int64)
    made["t"] = _as_time(ticks, tracks.frame["t"])
    for name, place in zip(tracks.names, tracks.place, strict=True):
        made[name] = place[row] + share * (place[after] - place[row])
    track = tracks.track[row]
    first = np.concatenate(([True], track[1:] != track[:-1])) if len(track) else np.array([], bool)
    offset = np.maximum.accumulate(np.where(first, visit, 0)) if len(track) else visit
    return made.assign(visit=visit - offset + 1)


def prepare(
    source: str | Path | Fixes,
    out: str | Path,
    *steps: Step,
    engine: str = "local",
    spark: Any = None,
    overwrite: bool = False,
) -> Fixes:
    """Apply a chain of steps to ingested fixes, bucket by bucket, and write a new data set.

    A step is a function from fixes to fixes that looks at one mobile at a time, such as `partial(resample,
    interval_s=60)`; it may drop rows and add columns, but keeps `mobile`.
    """
    fixes = source if isinstance(source, Fixes) else open_fixes(source)
    with whole_folder(out, overwrite=overwrite) as work:
        for name in ("spill", "_aside", "fixes"):
            (work / name).mkdir()
        jobs = [
            (entry["bucket"], str(fixes.path / entry["path"]), str(work))
            for entry in fixes.manifest["buckets"]["files"]
            if entry["rows"]
        ]
        if engine == "spark":
            from workbench.datasets import spark_io

            results = [
                json.loads(a) for a in spark_io.spread(lambda job: json.dumps(_prepare_bucket(job, steps)), jobs, spark)
            ]
        else:
            with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
                results = list(pool.map(lambda job: _prepare_bucket(job, steps), jobs))
        if not results:
            raise DataError(f"{fixes.path.name}: holds no fixes")
        kept = sum(result["entry"]["rows"] for result in results)
        columns = next((r["columns"] for r in results if r["entry"]["rows"]), results[0]["columns"])
        names = ", ".join(getattr(getattr(s, "func", s), "__name__", "step") for s in steps)
        report = Report(kept, kept, notes=(f"prepared from {fixes.path.name} by {names}",))
        made = Made(
            report, tuple(r["entry"] for r in results), columns, fixes.manifest["buckets"]["count"], fixes.crs,
            {"name": fixes.path.name, "format": "prepared", "steps": names}, fixes.manifest["time"]["tick_s"],
        )  # fmt: skip
        if kept == 0:
            raise DataError(f"{names} left no fixes; nothing was written")
        _finish(made, work, 0.0)
    return open_fixes(out)


def _prepare_bucket(job: tuple[int, str, str], steps: Sequence[Step]) -> dict[str, Any]:
    bucket, path, work = job
    table = pq.read_table(path)
    frame = table.to_pandas()
    for step in steps:
        frame = step(frame)
    made = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    for name, kind in zip(table.schema.names, table.schema.types, strict=True):
        if name in made.column_names and made.schema.field(name).type != kind:
            made = made.set_column(made.column_names.index(name), name, made[name].cast(kind))
    entry: dict[str, Any] = {"bucket": bucket, "rows": made.num_rows, "mobiles": frame["mobile"].nunique()}
    if made.num_rows:
        name = f"fixes/bucket-{bucket:05d}.parquet"
        write_parquet(made, Path(work) / name)
        entry |= {"path": name, **_extent(made)}
    return {"entry": entry, "columns": {f.name: name_of(f.type) for f in made.schema}}
