"""A scene: the tables of a replay, made ready to be looked at.

Maps, plots and reports share it, so that they show the same thing: where every place, mobile and notification is, and
when. State is a step function, as in the model: a mobile stays where its last fix saw it until the next one.

Times become numbers (milliseconds since 1970 for timestamps, the integers themselves otherwise), ids become text for
joining, and a notification is where its mobile is: the subscriber if that one moves, else the publisher, else the
place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import pandas as pd

from workbench import tables
from workbench.errors import DataError, did_you_mean
from workbench.geometry import PLANAR, WGS84

Sides = Mapping[str, Mapping[str, str]]
SIDES: Sides = {"publication": {"places": "places"}, "subscription": {"mobiles": "fixes"}}
"""For publications and subscriptions, each population and the table that its rows come from."""
MAX_MOBILES = 200
"""Of more mobiles than this, tracks are shown of those with the most notifications."""
_ALWAYS = -np.inf


@dataclass(frozen=True)
class Times:
    """How instants are written: integers, or timestamps in a time zone that is named."""

    integers: bool
    zone: str

    def text(self, at: float) -> str:
        """An instant of the scene as text.

        >>> Times(True, "").text(12), Times(False, "Europe/Berlin").text(0)
        ('t = 12', '1970-01-01 01:00:00')
        """
        if self.integers:
            return f"t = {int(at)}"
        stamp = pd.Timestamp(round(at), unit="ms", tz="UTC").tz_convert(self.zone)
        return stamp.strftime("%Y-%m-%d %H:%M:%S")

    def instant(self, at: float) -> Any:
        """An instant of the scene as the model's: an integer, or a timestamp."""
        return int(at) if self.integers else pd.Timestamp(int(at), unit="ms", tz="UTC")

    @property
    def label(self) -> str:
        """What the times are, in words."""
        return "ticks of the data" if self.integers else f"time zone {self.zone}"


@dataclass(frozen=True, eq=False)
class Scene:
    """Places, tracks, notifications and timelines with positions and numeric times."""

    metric: str
    times: Times
    places: pd.DataFrame
    """a row a place: ``key, x, y, geometry, radius_m, since, until`` and the last known attributes"""
    tracks: pd.DataFrame
    """a row a fix with a position: ``key, at, end, x, y`` and attributes, ordered by (key, at)"""
    notifications: pd.DataFrame
    """as declared, with ``at, x, y``"""
    timelines: pd.DataFrame
    """as declared, with ``began, ended_at`` as numbers (``ended_at`` is null while it matches)"""
    sides: Sides
    span: tuple[float, float]
    notes: tuple[str, ...] = ()

    @property
    def planar(self) -> bool:
        """Metres, not degrees."""
        return self.metric == PLANAR

    def where(self, role: str, names: pd.Series, at: pd.Series) -> pd.DataFrame:
        """The positions of publications or subscriptions at instants: ``x, y``, null where there is none."""
        return _where(self.places, self.tracks, *owners(names, self.sides[role]), at)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The smallest box around everything that has a position: west, south, east, north."""
        xs = np.concatenate([self.places["x"], self.tracks["x"], *_corners(self.places, self.metric, "x")])
        ys = np.concatenate([self.places["y"], self.tracks["y"], *_corners(self.places, self.metric, "y")])
        if not np.isfinite(xs).any():
            return 0.0, 0.0, 1.0, 1.0
        return float(np.nanmin(xs)), float(np.nanmin(ys)), float(np.nanmax(xs)), float(np.nanmax(ys))


def scene(
    timelines: Any,
    notifications: Any,
    fixes: Any = None,
    places: Any = None,
    *,
    sides: Sides = SIDES,
    zone: str | None = None,
    radius_m: float | None = None,
    at_most: int = 200_000,
    notes: Iterable[str] = (),
) -> Scene:
    """The scene of a replay's tables; ``notes`` say what was left out of them before.

    >>> fixes = pd.DataFrame({"mobile": [7, 7], "t": [1, 3], "x": [0.0, 9.0], "y": [0.0, 0.0]})
    >>> lines = pd.DataFrame({"publication": ["a"], "subscription": [7], "tau": [2], "pi": [3], "ended": ["unmatch"]})
    >>> scene(lines, tables.notifications_frame(lines), fixes).notifications[["kind", "at", "x"]]
          kind   at    x
    0    match  2.0  0.0
    1  unmatch  3.0  9.0
    """
    left_out = list(notes)
    lines = _few(timelines, at_most, "timelines", left_out)
    told = _few(notifications, at_most, "notifications", left_out)
    moving = _few(fixes, at_most * 10, "fixes", left_out)
    sites = _few(places, at_most, "places", left_out)
    metric = _metric(moving, sites)
    integers = not any(
        pd.api.types.is_datetime64_any_dtype(column)
        for column in (lines.get("tau"), told.get("t"), moving.get("t"), sites.get("t"))
        if column is not None
    )
    times = Times(integers, "" if integers else _known_zone(zone or "UTC"))
    lines = lines.assign(began=_numbers(lines["tau"]), ended_at=_numbers(lines["pi"]))
    told = told.assign(at=_numbers(told["t"]))
    known = [lines["began"], lines["ended_at"], told["at"]]
    if "t" in moving.columns:
        known.append(_numbers(moving["t"]))
    ends = [(k.min(), k.max()) for k in known if k.notna().any()]
    span = (float(min(a for a, _ in ends)), float(max(b for _, b in ends))) if ends else (0.0, 1.0)
    site_frame = _sites(sites, metric, radius_m)
    track_frame = _tracks(moving, metric, span[1])
    made = Scene(metric, times, site_frame, track_frame, told, lines, sides, span, tuple(left_out))
    return Scene(metric, times, site_frame, track_frame, _located(made), lines, sides, span, tuple(left_out))


def _few(table: Any, at_most: int, name: str, notes: list[str]) -> pd.DataFrame:
    """A table in pandas; of a Spark table no more rows than can be looked at."""
    if table is None:
        return pd.DataFrame()
    if not isinstance(table, pd.DataFrame) and hasattr(table, "toPandas"):
        rows = tables.load(table.limit(at_most + 1))
        if len(rows) > at_most:
            notes.append(f"only {at_most:,} {name} were looked at")
        return rows.iloc[:at_most]  # type: ignore[no-any-return]
    return tables.load(table, name)


def _metric(*frames: pd.DataFrame) -> str:
    return WGS84 if any({"lon", "lat"} <= set(f.columns) for f in frames) else PLANAR


def _known_zone(zone: str) -> str:
    try:
        pd.Timestamp(0, tz="UTC").tz_convert(zone)
    except Exception:  # noqa: BLE001 - zones have errors of their own kinds
        raise DataError(f"there is no time zone {zone!r}; expected a name such as 'UTC' or 'Europe/Berlin'") from None
    return zone


def _numbers(column: pd.Series) -> pd.Series:
    if pd.api.types.is_datetime64_any_dtype(column):
        stamps = column.dt.tz_convert("UTC").dt.tz_localize(None) if column.dt.tz is not None else column
        ns = stamps.astype("datetime64[ns]").astype("int64").astype("float64") / 1e6
        return ns.where(column.notna())
    return pd.to_numeric(column, errors="coerce").astype("Float64").astype("float64")


def _keyed(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    column = name if name in frame.columns else "id"
    if column not in frame.columns:
        raise DataError(f"a table of {name}s has no column {name!r}; {did_you_mean(name, map(str, frame.columns))}")
    return frame.assign(key=frame[column].astype(str), name_shown=frame[column].astype(object))


def _tracks(fixes: pd.DataFrame, metric: str, last: float) -> pd.DataFrame:
    columns = tables.COORDINATES[metric]
    if fixes.empty or not set(columns) <= set(fixes.columns):
        return pd.DataFrame({"key": [], "name_shown": [], "at": [], "end": [], "x": [], "y": []}).astype(
            {"key": object, "at": float, "end": float, "x": float, "y": float}
        )
    keyed = _keyed(fixes, "mobile")
    frame = keyed.assign(at=_numbers(keyed["t"])).sort_values(["key", "at"], kind="stable")
    for axis, column in zip("xy", columns, strict=True):
        frame[axis] = pd.to_numeric(frame[column]).groupby(frame["key"]).ffill()
    following = frame.groupby("key")["at"].shift(-1)
    frame["end"] = following.fillna(last)
    stays = frame["x"].notna() & frame["y"].notna()
    if "op" in frame.columns:
        stays &= frame["op"] != "remove"
    return frame[stays].reset_index(drop=True)


def _sites(places: pd.DataFrame, metric: str, radius_m: float | None) -> pd.DataFrame:
    empty = pd.DataFrame(
        {name: pd.Series(dtype=float) for name in ("x", "y", "radius_m", "since", "until")}
        | {name: pd.Series(dtype=object) for name in ("key", "name_shown", "geometry")}
    )
    if places.empty:
        return empty
    frame = _keyed(places, "place")
    frame["since"] = _numbers(frame["t"]) if "t" in frame.columns else np.nan
    op = frame["op"] if "op" in frame.columns else pd.Series(None, index=frame.index, dtype=object)
    frame["until"] = frame["since"].where(op == "remove")
    frame = frame.sort_values("since", kind="stable", na_position="first")
    first, last = frame.groupby("key", sort=False)[["since"]].nth(0), frame.groupby("key", sort=False).last()
    began = pd.Series(first["since"].to_numpy(), index=frame.loc[first.index, "key"])
    sites = last.reset_index().assign(since=lambda s: s["key"].map(began))
    ended = frame.groupby("key", sort=False)[["until"]].nth(-1)
    sites["until"] = sites["key"].map(pd.Series(ended["until"].to_numpy(), index=frame.loc[ended.index, "key"]))
    sites["geometry"] = [_shape(v) for v in sites["geometry"]] if "geometry" in sites.columns else None
    columns = tables.COORDINATES[metric]
    for axis, column in zip("xy", columns, strict=True):
        own = pd.to_numeric(sites[column]) if column in sites.columns else pd.Series(np.nan, index=sites.index)
        middle = sites["geometry"].map(lambda g, a=axis: np.nan if g is None else getattr(g.representative_point(), a))
        sites[axis] = own.fillna(middle).astype(float)
    given = pd.to_numeric(sites["radius_m"], errors="coerce") if "radius_m" in sites.columns else np.nan
    sites["radius_m"] = pd.Series(given, index=sites.index, dtype=float).fillna(
        np.nan if radius_m is None else float(radius_m)
    )
    areas = sites["geometry"].map(lambda g: g is not None and g.geom_type != "Point")
    sites.loc[areas, "radius_m"] = np.nan
    sites.loc[~areas, "geometry"] = None
    return sites[sites["x"].notna() & sites["y"].notna()].reset_index(drop=True)


def _shape(value: Any) -> Any:
    return None if value is None or (isinstance(value, float) and np.isnan(value)) else tables.geometry_of(value)


def owners(names: pd.Series, populations: Mapping[str, str]) -> tuple[pd.Series, pd.Series]:
    """The table and the key of each publication or subscription, by its name in the output."""
    texts = names.astype(str)
    if len(populations) == 1:
        return pd.Series(next(iter(populations.values())), index=names.index), texts
    parts = texts.str.split("/", n=1)
    return parts.str[0].map(populations), parts.str[1]


def told_of(seen: Scene) -> pd.Series:
    """How many notifications concern each mobile."""
    found = [pd.Series(dtype=object)]
    for role in ("publication", "subscription"):
        if len(seen.notifications):
            table, key = owners(seen.notifications[role], seen.sides[role])
            found.append(key[table == "fixes"])
    return pd.concat(found).value_counts()


def thinned(seen: Scene, at_most: int, notes: list[str]) -> pd.DataFrame:
    """As many positions as can be looked at, of those who were told most; ``notes`` gets what was left out.

    A stay at one spot is one position, which loses nothing.
    """
    tracks = seen.tracks
    total = tracks["key"].nunique()
    if total > MAX_MOBILES:
        order = told_of(seen).reindex(tracks["key"].unique(), fill_value=0).sort_values(ascending=False, kind="stable")
        tracks = tracks[tracks["key"].isin(order.index[:MAX_MOBILES])]
        notes.append(f"tracks of {MAX_MOBILES:,} of {total:,} mobiles: those with the most notifications")
    before = tracks.groupby("key")[["x", "y"]].shift()
    tracks = tracks[(tracks[["x", "y"]] != before).any(axis=1)]
    if len(tracks) > at_most:
        step = ceil(len(tracks) / at_most)
        tracks = tracks[tracks.groupby("key").cumcount() % step == 0]
        notes.append(f"tracks show one fix in {step}")
    last = seen.tracks.groupby("key")["end"].max()
    following = tracks.groupby("key")["at"].shift(-1)
    return tracks.assign(end=following.fillna(tracks["key"].map(last)))


def _where(
    places: pd.DataFrame, tracks: pd.DataFrame, table: pd.Series, key: pd.Series, at: pd.Series
) -> pd.DataFrame:
    known = pd.concat(
        [
            places[["key", "x", "y"]].assign(table="places", at=_ALWAYS),
            tracks[["key", "x", "y", "at"]].assign(table="fixes"),
        ],
        ignore_index=True,
    ).astype({"at": float, "key": object, "table": object})
    asked = pd.DataFrame({"table": table.astype(object), "key": key.astype(object), "at": at.astype(float)})
    asked["order"] = np.arange(len(asked))
    found = pd.merge_asof(asked.sort_values("at"), known.sort_values("at"), on="at", by=["table", "key"])
    return found.sort_values("order")[["x", "y"]].set_axis(at.index)


def _located(made: Scene) -> pd.DataFrame:
    told = made.notifications
    if told.empty:
        return told.assign(x=np.nan, y=np.nan)
    positions = [made.where(role, told[role], told["at"]) for role in ("subscription", "publication")]
    moves = [owners(told[role], made.sides[role])[0] == "fixes" for role in ("subscription", "publication")]
    first_moves = moves[0] | ~moves[1]
    here = positions[0].where(first_moves, positions[1])
    return told.assign(**here.fillna(positions[1]).fillna(positions[0]).to_dict("series"))


def _corners(places: pd.DataFrame, metric: str, axis: str) -> list[Any]:
    """How far discs and areas reach along an axis."""
    found: list[Any] = []
    shapes = [g for g in places["geometry"] if g is not None]
    if shapes:
        found.append([g.bounds[i] for g in shapes for i in ((0, 2) if axis == "x" else (1, 3))])
    reach = places["radius_m"].fillna(0.0).to_numpy(float)
    if metric == WGS84:
        reach = reach / 111_195.0 / (np.cos(np.radians(places["y"].to_numpy(float))) if axis == "x" else 1.0)
    values = places[axis].to_numpy(float)
    return [*found, values - reach, values + reach]

