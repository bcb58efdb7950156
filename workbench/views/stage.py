"""The stage of the explorer: a map to play, a histogram to brush and a table, linked, one widget with its own script.

`Stage` is what Python and the page agree on: the scene goes out once after each run, as arrays; what the user does
comes back as traits (the time, whether it plays, the window of the histogram, what is selected, a place that was
moved). The script is `stage.js`; it puts users' text into the page as text only, and asks nobody for anything.

Positions are sent as metres on a plane, so that the script knows one geometry only: degrees are laid flat about the
middle of the scene, which is a drawing, not a measurement.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import anywidget
import numpy as np
import pandas as pd
import traitlets

from workbench.views.colours import MATCH, MOBILE, PLACE, UNMATCH
from workbench.views.scene import Scene, owners, thinned

LAYERS = {"base": "Streets", "tracks": "Tracks", "places": "Places", "pairs": "Matching pairs", "told": "Notifications"}
MAX_TOLD = 20_000
MAX_PLACES = 2_000
MAX_POSITIONS = 30_000
BINS = 60
_METRES_PER_DEGREE = 111_195.0


class Stage(anywidget.AnyWidget):
    """A scene to play, brush and select in."""

    _esm = Path(__file__).with_name("stage.js")
    _css = Path(__file__).with_name("stage.css")

    about = traitlets.Dict().tag(sync=True)
    """names, places, bounds, span, how times are written, the bars of the histogram, what was left out"""
    tracks = traitlets.Bytes().tag(sync=True)
    """float64 rows (mobile, at, end, x, y), ordered by mobile and time"""
    told = traitlets.Bytes().tag(sync=True)
    """float64 rows (at, kind, publication, subscription, x, y, new)"""
    pairs = traitlets.Bytes().tag(sync=True)
    """float64 rows (began, ended, publication, subscription); ended is infinite while it matches"""
    revision = traitlets.Int(0).tag(sync=True)
    """goes up when the scene is another"""

    time = traitlets.Float(0.0).tag(sync=True)
    playing = traitlets.Bool(False).tag(sync=True)
    speed = traitlets.Float(1.0).tag(sync=True)
    window = traitlets.List(traitlets.Float()).tag(sync=True)
    """from and to of the histogram's brush; empty for everything"""
    layers = traitlets.Dict(default_value=dict.fromkeys(LAYERS, True)).tag(sync=True)
    selected = traitlets.Int(-1).tag(sync=True)
    """the notification that is selected, by its row"""
    client = traitlets.Dict().tag(sync=True)
    """the client that is selected: table and key"""
    why = traitlets.Dict().tag(sync=True)
    """what is read beside the map: a head, and reasons as text, a line for each node and two spaces for each level"""
    edit = traitlets.Dict().tag(sync=True)
    """what the user last did to a place: do (move, add), key, x, y on the plane"""

    def show(self, laid: Laid, new: pd.Series | None = None, subject: str = "") -> None:
        """Put a scene on the stage; ``new`` marks the notifications that the run before did not have.

        The map is fitted to the scene where the ``subject`` is another than before.
        """
        seen = laid.seen
        with self.hold_sync():
            self.about = {**laid.about, "subject": subject}
            self.tracks, self.pairs = _bytes(laid.tracks), _bytes(laid.pairs)
            self.told = _bytes(laid.told(new))
            self.playing, self.selected, self.client, self.why = False, -1, {}, {}
            inside = [seen.span[0] <= w <= seen.span[1] for w in self.window]
            self.window = self.window if all(inside) else []
            at = self.time if self.revision else seen.span[1]  # at first everything is shown
            self.time = min(max(at, seen.span[0]), seen.span[1])
            self.revision += 1


@dataclass(frozen=True, eq=False)
class Laid:
    """A scene laid flat, with its names numbered."""

    seen: Scene
    base: Any = None

    @cached_property
    def _middle(self) -> tuple[float, float]:
        west, south, east, north = self.seen.bounds
        return ((west + east) / 2, (south + north) / 2) if not self.seen.planar else (0.0, 0.0)

    @cached_property
    def _metres(self) -> tuple[float, float]:
        """How many metres a unit of x and of y is."""
        if self.seen.planar:
            return 1.0, 1.0
        return _METRES_PER_DEGREE * float(np.cos(np.radians(self._middle[1]))), _METRES_PER_DEGREE

    def flat(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Coordinates of the data as metres on the stage."""
        return (x - self._middle[0]) * self._metres[0], (y - self._middle[1]) * self._metres[1]

    def unflat(self, x: float, y: float) -> tuple[float, float]:
        """Metres on the stage as coordinates of the data."""
        return x / self._metres[0] + self._middle[0], y / self._metres[1] + self._middle[1]

    @cached_property
    def _shown(self) -> tuple[pd.DataFrame, list[str]]:
        """The positions that are drawn, and what was left out."""
        notes: list[str] = []
        return thinned(self.seen, MAX_POSITIONS, notes), notes

    @cached_property
    def mobiles(self) -> list[str]:
        """The mobiles that are drawn."""
        return list(dict.fromkeys(self._shown[0]["key"]))

    @cached_property
    def tracks(self) -> np.ndarray[Any, Any]:
        number = {key: n for n, key in enumerate(self.mobiles)}
        rows = self._shown[0]
        x, y = self.flat(rows["x"].to_numpy(float), rows["y"].to_numpy(float))
        table = np.column_stack([rows["key"].map(number), rows["at"], rows["end"], x, y]).astype(float)
        return table[np.lexsort((table[:, 1], table[:, 0]))]

    @cached_property
    def names(self) -> dict[str, list[str]]:
        """Publications and subscriptions that are told of, as text."""
        seen = (self.seen.timelines, self.seen.notifications)
        return {
            role: list(dict.fromkeys(name for rows in seen for name in rows[role].astype(str)))
            for role in ("publication", "subscription")
        }

    def _numbered(self, rows: pd.DataFrame) -> list[Any]:
        found = []
        for role, names in self.names.items():
            number = {name: n for n, name in enumerate(names)}
            found.append(rows[role].astype(str).map(number).to_numpy(float))
        return found

    def told(self, new: pd.Series | None) -> np.ndarray[Any, Any]:
        rows = self.seen.notifications.iloc[:MAX_TOLD]
        x, y = self.flat(rows["x"].to_numpy(float), rows["y"].to_numpy(float))
        kind = (rows["kind"] == "match").to_numpy(float)
        fresh = np.zeros(len(rows)) if new is None else new.iloc[:MAX_TOLD].to_numpy(float)
        return np.column_stack([rows["at"], kind, *self._numbered(rows), x, y, fresh]).astype(float)

    @cached_property
    def pairs(self) -> np.ndarray[Any, Any]:
        rows = self.seen.timelines.iloc[:MAX_TOLD]
        return np.column_stack([rows["began"], rows["ended_at"].fillna(np.inf), *self._numbered(rows)]).astype(float)

    @cached_property
    def about(self) -> dict[str, Any]:
        seen = self.seen
        west, south, east, north = seen.bounds
        corners = [self.flat(west, south), self.flat(east, north)]
        notes = [*seen.notes, *self._shown[1]]
        for noun, most in (("places", MAX_PLACES), ("notifications", MAX_TOLD)):
            if (total := len(getattr(seen, noun))) > most:
                bars = "; the bars count all" if noun == "notifications" else ""
                notes.append(f"the first {most:,} of {total:,} {noun} are shown{bars}")
        return {
            "span": list(seen.span),
            "integers": seen.times.integers,
            "zone": seen.times.zone,
            "bounds": [*corners[0], *corners[1]],
            "mobiles": self.mobiles,
            "places": [self._place(row) for row in seen.places.iloc[:MAX_PLACES].itertuples()],
            "parties": {role: self._parties(role) for role in self.names},
            "base": self._lines(),
            "bins": self._bins(),
            "notes": notes,
            "layers": LAYERS if self.base is not None else {k: v for k, v in LAYERS.items() if k != "base"},
            "colours": {"place": PLACE, "mobile": MOBILE, "match": MATCH, "unmatch": UNMATCH},
        }

    def _bins(self) -> list[list[int]]:
        """The bars of the histogram, of all notifications: (match, unmatch)."""
        told, (first, last) = self.seen.notifications, self.seen.span
        edges = np.linspace(first, max(last, first + 1e-9), BINS + 1)
        counts = [np.histogram(told["at"][told["kind"] == kind], edges)[0] for kind in ("match", "unmatch")]
        return np.column_stack(counts).tolist()  # type: ignore[no-any-return]

    def _place(self, row: Any) -> dict[str, Any]:
        x, y = self.flat(row.x, row.y)
        name = getattr(row, "name", None)
        label = row.key if name is None or pd.isna(name) else f"{name} ({row.key})"
        reach = None if pd.isna(row.radius_m) else float(row.radius_m)
        rings = None if row.geometry is None else [self._line(ring) for ring in _rings(row.geometry)]
        return {"key": row.key, "label": label, "x": float(x), "y": float(y), "reach": reach, "rings": rings}

    def _parties(self, role: str) -> list[dict[str, Any]]:
        """For each publication or subscription its text, and the client that it is of."""
        names = pd.Series(self.names[role], dtype=object)
        if names.empty:
            return []
        table, key = owners(names, self.seen.sides[role])
        return [{"label": n, "table": t, "key": k} for n, t, k in zip(names, table, key, strict=True)]

    def _lines(self) -> list[list[list[float]]]:
        from workbench.tables import geometry_of, load

        if self.base is None:
            return []
        shapes = [geometry_of(value) for value in load(self.base, "base")["geometry"]]
        return [self._line(part) for shape in shapes for part in _rings(shape)]

    def _line(self, coordinates: Any) -> list[list[float]]:
        flat = [self.flat(point[0], point[1]) for point in coordinates]
        return [[round(float(x), 2), round(float(y), 2)] for x, y in flat]


def _rings(shape: Any) -> list[Any]:
    """The lines of a shape: of an area its borders."""
    if shape.geom_type == "Polygon":
        return [shape.exterior.coords, *(ring.coords for ring in shape.interiors)]
    if hasattr(shape, "geoms"):
        return [line for part in shape.geoms for line in _rings(part)]
    return [shape.coords]


def _bytes(rows: np.ndarray[Any, Any]) -> bytes:
    return np.ascontiguousarray(rows, dtype="<f8").tobytes()
