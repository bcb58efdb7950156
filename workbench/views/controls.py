"""Controls: choose a service, data and parameters, run it, play it, move a place, and read why something was said.

`Explorer` is a page of ipywidgets around a `Stage` (map, histogram and table); it runs in JupyterLab and in Voilà and
is worked with the keyboard like any form. It takes a callable that replays, never an engine, and what goes wrong is
said in the page.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import numpy as np
import pandas as pd

from workbench import tables
from workbench.errors import DataError, WorkbenchError, did_you_mean
from workbench.views.plots import Picture, space
from workbench.views.scene import Scene, owners
from workbench.views.stage import Laid, Stage
from workbench.views.text import escape

SETTLED_S = 0.3
"""How long a slider has to rest before the service runs again."""
CHANGES = 12
PAIRS = 3
_COLUMNS = ["t", "kind", "publication", "subscription"]
_UNITS = {"m": "m", "h": "h", "s": "s", "min": "min", "percent": "%", "cent": "cent", "km": "km"}
_WIDE = {"description_width": "95px"}


@dataclass(frozen=True)
class Service:
    """A scenario that can be chosen, its parameters with their defaults, and the data that it fits (default: all).

    ``fixed`` are parameters that no control can show: a table, say.
    """

    scenario: Any
    parameters: Mapping[str, Any]
    data: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Source:
    """Data that can be chosen: fixes, places, and lines to draw below them."""

    fixes: Any
    places: Any = None
    base: Any = None


class Explorer(widgets.VBox):
    """Choose, run, play, brush, select, move, keep.

    ``run(scenario, fixes, places, parameters=...)`` replays, and gives back something with ``explain``, ``scene`` and
    ``map`` (a `Replay`, say).
    """

    def __init__(
        self,
        run: Callable[..., Any],
        services: Mapping[str, Service],
        data: Mapping[str, Source],
        zone: str | None = None,
    ) -> None:
        if not services or not data:
            raise DataError(f"there is no {'data' if services else 'service'} to explore")
        self._run, self._services, self._data, self._zone = run, services, data, zone
        self.done: Any = None
        self.laid: Laid | None = None
        self.edits: list[dict[str, Any]] = []
        self.changed = pd.DataFrame(columns=["change", *_COLUMNS])
        self._before: tuple[Any, pd.DataFrame] | None = None
        self._counted: _Counted | None = None
        self._later: asyncio.TimerHandle | None = None
        self._restoring = False
        self.service = widgets.Dropdown(options=list(services), description="service", style=_WIDE)
        self.source = widgets.Dropdown(options=list(data), description="data", style=_WIDE)
        self.parameters: dict[str, widgets.Widget] = {}
        self._form = widgets.VBox()
        self.start = _button("Run", "run the service", button_style="primary")
        self.at_once = widgets.Checkbox(value=True, description="run when something changes", indent=False)
        self.progress = widgets.IntProgress(max=3, layout=widgets.Layout(width="100%"))
        self.message = widgets.HTML(value="Choose, and press Run.")
        self.stage = Stage()
        self.counts, self.difference = widgets.HTML(), widgets.HTML()
        self.put_back = _button("Put places back", "undo what was moved and added", disabled=True)
        self.folder = widgets.Text(value="explored", description="folder", style=_WIDE)
        self.keep = _button("Export", "notifications as CSV, the view as HTML")
        self.save = _button("Save state", "what is chosen, into the folder")
        self.load = _button("Restore state", "what was saved in the folder")
        self._wire()
        self._chosen()
        super().__init__(children=[self._arranged()])

    def _wire(self) -> None:
        self.service.observe(self._chosen, "value")
        self.source.observe(self._other_data, "value")
        self.start.on_click(lambda _: self.run())
        self.keep.on_click(lambda _: self.export())
        self.save.on_click(lambda _: self._plainly(self.save_state))
        self.load.on_click(lambda _: self._plainly(self.load_state))
        self.put_back.on_click(lambda _: self._put_back())
        self.stage.observe(lambda _: self._moment(), "time")
        self.stage.observe(lambda change: self._plainly(lambda: self._selected(change["new"])), "selected")
        self.stage.observe(lambda change: self._plainly(lambda: self._client(change["new"])), "client")
        self.stage.observe(lambda change: self._plainly(lambda: self.alter(change["new"])), "edit")

    def _arranged(self) -> widgets.Widget:
        """Controls beside the stage where there is room, above it where there is not."""
        for control in (self.service, self.source, self.folder):
            control.layout = widgets.Layout(width="100%")
        row = widgets.Layout(flex_flow="row wrap")
        left = [
            self.service,
            self.source,
            self._form,
            widgets.HBox([self.start, self.at_once], layout=row),
            self.progress,
            self.message,
            self.counts,
            self.difference,
            widgets.HBox([self.put_back], layout=row),
            self.folder,
            widgets.HBox([self.keep, self.save, self.load], layout=row),
        ]
        right = widgets.VBox([self.stage], layout=widgets.Layout(flex="1 1 430px", min_width="0"))
        column = widgets.VBox(left, layout=widgets.Layout(flex="0 1 320px", min_width="280px", padding="0 12px 0 0"))
        return widgets.HBox([column, right], layout=widgets.Layout(flex_flow="row wrap", width="100%"))

    # -- choosing ----------------------------------------------------------------------------------------

    def _chosen(self, change: Any = None) -> None:
        service = self._services[self.service.value]
        fitting = [name for name in self._data if not service.data or name in service.data]
        if not fitting:
            raise DataError(f"service {self.service.value!r} fits none of the data: {', '.join(self._data)}")
        if list(self.source.options) != fitting:
            self.source.options = fitting
        self.parameters = {name: _control(name, value) for name, value in service.parameters.items()}
        for control in self.parameters.values():
            control.observe(self._wanted, "value")
        self._form.children = tuple(self.parameters.values())
        if change is not None:
            self._wanted()

    def _other_data(self, _: Any) -> None:
        self.edits = []
        self.stage.window = []
        self._wanted()

    def _wanted(self, _: Any = None) -> None:
        """Something was changed: run when it has come to rest, if that is wished for."""
        if not self.at_once.value or self._restoring:
            return
        self._cancel()
        try:
            self._later = asyncio.get_running_loop().call_later(SETTLED_S, self.run)
        except RuntimeError:  # no page and no kernel: a script
            self.run()

    def _cancel(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None

    @property
    def chosen(self) -> dict[str, Any]:
        """The parameters as they are set."""
        return {name: control.value for name, control in self.parameters.items()}

    @property
    def state(self) -> dict[str, Any]:
        """What is chosen and looked at, as plain values: to be kept, and given to `restore`."""
        stage = self.stage
        return {
            "service": self.service.value,
            "data": self.source.value,
            "parameters": self.chosen,
            "edits": list(self.edits),
            "time": stage.time,
            "window": list(stage.window),
            "layers": dict(stage.layers),
            "selected": stage.selected,
            "client": dict(stage.client),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Choose again what was kept, run it, and look at the same."""
        if not isinstance(state, Mapping):
            raise DataError(f"a state is a mapping of names to values, not {type(state).__name__}")
        faults = [f"the state has no {name!r}" for name in sorted(set(self.state) - set(state))]
        if not faults:
            faults += _unknown("service", state["service"], self._services)
            faults += _unknown("data", state["data"], self._data)
        if not faults:
            known = self._services[state["service"]].parameters
            faults += [f for name in state["parameters"] for f in _unknown("parameter", name, known)]
        if faults:
            raise DataError("; ".join(faults))
        self._restoring = True
        try:
            self.service.value, self.source.value = state["service"], state["data"]
            for name, value in state["parameters"].items():
                _put(self.parameters[name], name, value)
            self.edits = [dict(edit) for edit in state["edits"]]
        finally:
            self._restoring = False
        self.run()
        with self.stage.hold_sync():
            self.stage.window, self.stage.layers = list(state["window"]), dict(state["layers"])
            self.stage.client, self.stage.selected = dict(state["client"]), state["selected"]
            self.stage.time = state["time"]

    # -- running -----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Replay what is chosen, and show it; what goes wrong is said in the page."""
        self._cancel()
        self.progress.value, self.progress.bar_style, began = 0, "", time.perf_counter()
        self.message.value = "replaying …"
        if not self._plainly(self._replayed):
            self.progress.bar_style = "danger"
            return
        assert self.laid is not None
        seen = self.laid.seen
        self.progress.value, self.progress.bar_style = 3, "success"
        self.message.value = f"{len(seen.notifications):,} notifications, {time.perf_counter() - began:.1f} s"

    def _replayed(self) -> None:
        service, source = self._services[self.service.value], self._data[self.source.value]
        places = self._places()
        done = self._run(service.scenario, source.fixes, places, parameters={**service.fixed, **self.chosen})
        self.progress.value, self.message.value = 1, "looking …"
        seen = done.scene(self._zone)
        self.progress.value = 2
        told = seen.notifications[_COLUMNS].reset_index(drop=True)
        about = (self.service.value, self.source.value)
        before = self._before[1] if self._before is not None and self._before[0] == about else None
        new = self._compared(before, told, seen)
        self.done, self.laid, self._before = done, Laid(seen, source.base), (about, told)
        self._counted = _Counted(seen)
        self.put_back.disabled = not self.edits
        self.stage.show(self.laid, new, self.source.value)
        self._moment()

    def _compared(self, before: pd.DataFrame | None, told: pd.DataFrame, seen: Scene) -> pd.Series | None:
        """What the run before did not have, and the difference as a small table in the page."""
        if before is None:
            self.changed = self.changed.iloc[:0]
            self.difference.value = ""
            return None
        both = before.merge(told, on=_COLUMNS, how="outer", indicator=True)
        word = both["_merge"].astype(str).map({"left_only": "gone", "right_only": "new", "both": "same"})
        self.changed = both.assign(change=word)[word != "same"][["change", *_COLUMNS]]
        self.changed = self.changed.sort_values("t", kind="stable").reset_index(drop=True)
        self.difference.value = _difference(self.changed, seen)
        fresh = told.merge(self.changed[self.changed["change"] == "new"], on=_COLUMNS, how="left")
        return fresh["change"].notna()

    def _plainly(self, act: Callable[[], Any]) -> bool:
        """Do something; where it cannot be done, say so in the page."""
        try:
            act()
        except (WorkbenchError, OSError) as error:
            said = str(error)
        except Exception as error:  # a page has no console: what nobody thought of is said too, and logged
            logging.getLogger(__name__).exception("in the explorer")
            said = f"this should not have happened: {type(error).__name__}: {error}"
        else:
            return True
        self.message.value = f'<span role="alert" style="color:#b42318">{escape(said)}</span>'
        return False

    # -- places ------------------------------------------------------------------------------------------

    def _places(self) -> Any:
        """The places as they were edited; untouched ones as they were given."""
        given = self._data[self.source.value].places
        if not self.edits:
            return given
        frame = tables.load(given, "places")
        key = "place" if "place" in frame.columns else "id"
        axes = ("lon", "lat") if {"lon", "lat"} <= set(frame.columns) else ("x", "y")
        if not set(axes) <= set(frame.columns):
            raise DataError("these places are areas without coordinates of their own, and cannot be moved here")
        frame = frame.astype(dict.fromkeys(axes, float))
        for edit in self.edits:
            keys = frame[key].astype(str)
            if edit["do"] == "add":
                frame = pd.concat([frame, _like(frame, key, keys, edit, axes)], ignore_index=True)
            elif (keys == edit["key"]).any():
                placed = (keys == edit["key"]) & frame[axes[0]].notna()
                frame.loc[placed, list(axes)] = edit["x"], edit["y"]
            else:
                raise DataError(f"there is no place {edit['key']!r} to move")
        return frame

    def alter(self, edit: Mapping[str, Any]) -> None:
        """Move or add a place, as on the stage, and run again; coordinates are the stage's."""
        if not edit or self.laid is None:
            return
        x, y = self.laid.unflat(float(edit["x"]), float(edit["y"]))
        made = {"do": edit["do"], "x": round(x, 7), "y": round(y, 7)}
        if edit["do"] == "move":
            made["key"] = str(edit["key"])
        else:
            made["key"] = f"drawn-{1 + sum(e['do'] == 'add' for e in self.edits)}"
        same = [e for e in self.edits if e["do"] == made["do"] == "move" and e["key"] == made["key"]]
        self.edits = [*(e for e in self.edits if e not in same), made]
        self.run()

    def _put_back(self) -> None:
        if self.edits:
            self.edits = []
            self.run()

    # -- looking -----------------------------------------------------------------------------------------

    def _moment(self) -> None:
        """The counts at the instant that is looked at."""
        if self._counted is None:
            return
        now = self._counted.at(self.stage.time)
        cells = (f'<td style="text-align:right"><b>{n:,}</b></td><td>&nbsp;{name}</td>' for name, n in now.items())
        rows = "".join(f"<tr>{cell}</tr>" for cell in cells)
        self.counts.value = f'<table aria-label="counts at this instant" style="line-height:1.5">{rows}</table>'

    def _selected(self, n: int) -> None:
        if n < 0 or self.laid is None:
            return
        row = self.laid.seen.notifications.iloc[n]
        with self.stage.hold_sync():
            self.stage.playing, self.stage.time = False, float(row["at"])
        head = f"Why the {row['kind']} was sent, {self.laid.seen.times.text(row['at'])} {self.laid.seen.times.zone}"
        self.stage.why = self._why([(row["publication"], row["subscription"])], row["t"], head.strip())

    def _client(self, client: Mapping[str, str]) -> None:
        """Why a client matches what it matches now; if nothing, why not what it was last told of, or is nearest to."""
        if not client or self.laid is None:
            self.stage.why = {}
            return
        seen, at = self.laid.seen, self.stage.time
        lines = seen.timelines[_of(seen, seen.timelines, client)]
        now = lines[(lines["began"] <= at) & ~(lines["ended_at"] <= at)]
        name = f"{'place' if client['table'] == 'places' else 'mobile'} {client['key']}"
        head = f"{name} matches {len(now):,} now" + (f", the first {PAIRS}:" if len(now) > PAIRS else "")
        told = seen.notifications[_of(seen, seen.notifications, client)]
        earlier = told[told["at"] <= at]
        if not len(now):
            now = earlier.tail(1) if len(earlier) else told.head(1)
            which = "what was last told" if len(earlier) else "what will be told next" if len(told) else "the nearest"
            head = f"{name} matches nothing now; {which}:"
        pairs = list(now[["publication", "subscription"]].head(PAIRS).itertuples(index=False, name=None))
        self.stage.why = self._why(pairs or _nearest(seen, client, at), seen.times.instant(at), head)

    def _why(self, pairs: list[tuple[Any, Any]], t: Any, head: str) -> dict[str, Any]:
        reasons = []
        for publication, subscription in pairs:
            try:
                reasons.append(str(self.done.explain(publication, subscription, t)))
            except WorkbenchError as error:
                reasons.append(str(error))
        return {"head": head, "reasons": reasons}

    def picture(self) -> Picture:
        """What is on the stage, for pages that show no widgets."""
        if self.laid is None:
            raise DataError("there is nothing to draw yet: run the service first")
        return space(self.laid.seen, base=self.laid.base)

    # -- keeping -----------------------------------------------------------------------------------------

    def export(self) -> list[Path]:
        """Write the notifications as CSV and the view as HTML into the folder that is named, and offer both."""
        if self.laid is None:
            self.message.value = "There is nothing to export yet: press Run."
            return []
        files = [Path(self.folder.value) / name for name in ("notifications.csv", "map.html")]
        return files if self._plainly(lambda: self._exported(*files)) else []

    def _exported(self, table: Path, page: Path) -> None:
        assert self.laid is not None
        table.parent.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(self.laid.seen.notifications[_COLUMNS]).to_csv(table, index=False)
        self.done.map(zone=self._zone, base=self.laid.base).save(str(page))
        links = []
        for file, kind in ((table, "text/csv"), (page, "text/html")):
            held = base64.b64encode(file.read_bytes()).decode("ascii")
            links.append(f'<a download="{file.name}" href="data:{kind};base64,{held}">{escape(file)}</a>')
        self.message.value = f"written: {', '.join(links)}"

    def save_state(self) -> Path:
        """Write what is chosen as ``state.json`` into the folder that is named."""
        path = Path(self.folder.value) / "state.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.state, indent=2) + "\n", encoding="utf-8")
        self.message.value = f"written: {escape(path)}"
        return path

    def load_state(self) -> None:
        """Restore what `save_state` wrote into the folder that is named."""
        path = Path(self.folder.value) / "state.json"
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError(f"there is no saved state {str(path)!r}") from None
        except ValueError as error:
            raise DataError(f"{str(path)!r} is no saved state: {error}") from None
        self.restore(kept)


class _Counted:
    """The live counts of a scene, each from a sorted array of instants."""

    def __init__(self, seen: Scene) -> None:
        lines = seen.timelines
        self._began, self._ended = np.sort(lines["began"]), np.sort(lines["ended_at"].dropna())
        self._told, self._repeats = np.sort(seen.notifications["at"]), np.sort(_repeats(seen))

    def at(self, instant: float) -> dict[str, int]:
        """Pairs that match at an instant, notifications until then, and repeats that were not sent."""
        began, ended, told, repeats = (
            int(np.searchsorted(array, instant, side="right"))
            for array in (self._began, self._ended, self._told, self._repeats)
        )
        return {"matching pairs": began - ended, "notifications so far": told, "suppressed repeats so far": repeats}


def _repeats(seen: Scene) -> Any:
    """When a broker without a memory would have told again: fixes of either side after tau and before pi."""
    fixes = {key: rows["at"].to_numpy() for key, rows in seen.tracks.groupby("key", sort=False)}
    found = [np.empty(0)]
    for role in ("publication", "subscription"):
        if seen.timelines.empty:
            continue
        table, keys = owners(seen.timelines[role], seen.sides[role])
        ends = seen.timelines["ended_at"].fillna(np.inf)
        for of, key, began, ended in zip(table, keys, seen.timelines["began"], ends, strict=True):
            if of == "fixes" and key in fixes:
                at = fixes[key]
                found.append(at[np.searchsorted(at, began, "right") : np.searchsorted(at, ended, "left")])
    return np.concatenate(found)


def _of(seen: Scene, rows: pd.DataFrame, client: Mapping[str, str]) -> Any:
    """Which rows are of a client, on either side."""
    found = np.zeros(len(rows), dtype=bool)
    for role in ("publication", "subscription"):
        if len(rows):
            table, key = owners(rows[role], seen.sides[role])
            found |= ((table == client["table"]) & (key == client["key"])).to_numpy()
    return found


def _nearest(seen: Scene, client: Mapping[str, str], at: float) -> list[tuple[Any, Any]]:
    """The pair of a client and the place or mobile nearest to it, where each side is one population of them."""
    tables_of = {role: list(seen.sides[role].values()) for role in ("publication", "subscription")}
    here = next((role for role, found in tables_of.items() if found == [client["table"]]), None)
    other = {"fixes": "places", "places": "fixes"}[client["table"]]
    there = next((role for role, found in tables_of.items() if found == [other]), None)
    if here is None or there is None:
        return []
    now = seen.tracks[(seen.tracks["at"] <= at) & (at <= seen.tracks["end"])].drop_duplicates("key", keep="last")
    known = {"fixes": now, "places": seen.places}
    own = known[client["table"]][known[client["table"]]["key"] == client["key"]]
    if own.empty or known[other].empty:
        return []
    far = (known[other]["x"] - own["x"].iloc[0]) ** 2 + (known[other]["y"] - own["y"].iloc[0]) ** 2
    pair = {here: client["key"], there: known[other].loc[far.idxmin(), "key"]}
    return [(pair["publication"], pair["subscription"])]


def _difference(changed: pd.DataFrame, seen: Scene) -> str:
    """Notifications that came and went, in a few lines of the page."""
    counts = changed["change"].value_counts()
    head = f"Compared with the run before: {counts.get('new', 0):,} new, {counts.get('gone', 0):,} gone"
    rows = "".join(
        f"<tr><td>{row.change}&nbsp;</td><td>{escape(row.kind)}&nbsp;</td>"
        f"<td>{escape(row.publication)} → {escape(row.subscription)}</td></tr>"
        for row in changed.head(CHANGES).itertuples()
    )
    more = f"<p>and {len(changed) - CHANGES:,} more</p>" if len(changed) > CHANGES else ""
    table = f'<table style="line-height:1.35;overflow-wrap:anywhere">{rows}</table>{more}' if rows else ""
    return f'<div role="status" aria-label="what changed"><b>{head}</b>{table}</div>'


def _like(
    frame: pd.DataFrame, key: str, keys: pd.Series, edit: Mapping[str, Any], axes: tuple[str, str]
) -> pd.DataFrame:
    """A new place with the attributes of the nearest one: a shop of the same kind, say."""
    far = (frame[axes[0]] - edit["x"]) ** 2 + (frame[axes[1]] - edit["y"]) ** 2
    rows = frame[keys == keys.loc[far.idxmin()]].copy()
    numbers = pd.api.types.is_integer_dtype(frame[key])
    rows[key] = frame[key].max() + 1 if numbers else edit["key"]
    rows.loc[rows[axes[0]].notna(), list(axes)] = edit["x"], edit["y"]
    return rows.assign(name=str(edit["key"])) if "name" in rows.columns else rows


def _unknown(noun: str, name: Any, known: Mapping[str, Any]) -> list[str]:
    return [] if name in known else [f"there is no {noun} {name!r}; {did_you_mean(str(name), known)}"]


def _put(control: Any, name: str, value: Any) -> None:
    """Set a control; a value beyond a slider's end moves the end."""
    if hasattr(control, "max") and isinstance(value, int | float):
        control.max = max(control.max, value)
    try:
        control.value = value
    except Exception:  # noqa: BLE001 - traitlets has errors of its own
        raise DataError(f"parameter {name!r} cannot be {value!r}") from None


def _button(label: str, tooltip: str, **options: Any) -> Any:
    return widgets.Button(description=label, tooltip=tooltip, layout=widgets.Layout(width="auto"), **options)


def _control(name: str, value: Any) -> Any:
    """A slider for a number, a box for a truth value, a field for a text; a unit at the name's end is set apart."""
    stem, _, unit = name.rpartition("_")
    label = f"{stem.replace('_', ' ')} ({_UNITS[unit]})" if unit in _UNITS and stem else name.replace("_", " ")
    style = {"description": label, "style": _WIDE, "layout": widgets.Layout(width="100%")}
    if isinstance(value, bool):
        return widgets.Checkbox(value=value, **style)
    if isinstance(value, int | float):
        top = max(4 * abs(value), 10)
        kind = widgets.IntSlider if isinstance(value, int) else widgets.FloatSlider
        return kind(value=value, min=0, max=top, step=1 if isinstance(value, int) else top / 200, **style)
    return widgets.Text(value=str(value), continuous_update=False, **style)
