"""Controls: choose a service and its parameters, run it, go through time, and read why something was said.

`explore` gives an `Explorer`, a column of ipywidgets that needs no script of its own, runs in JupyterLab and in Voilà,
and is worked with the keyboard like any form. It takes a callable that runs a service, never an engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import pandas as pd

from workbench.errors import DataError, WorkbenchError, did_you_mean
from workbench.views.plots import over_time, space
from workbench.views.text import escape

STEPS = 200
LISTED = 500
_WIDE = {"description_width": "140px"}


def explore(run: Callable[..., Any], services: Mapping[str, Mapping[str, Any]]) -> Explorer:
    """The controls of some services.

    ``services`` gives for each name the parameters and their defaults; ``run(name, parameters=...)`` replays one of
    them, and gives back something with ``notifications``, ``explain``, ``scene`` and ``map`` (a `Replay`, say).
    """
    return Explorer(run, services)


class Explorer(widgets.VBox):
    """Choose, run, go through time, select, read why, keep."""

    def __init__(self, run: Callable[..., Any], services: Mapping[str, Mapping[str, Any]]) -> None:
        if not services:
            raise DataError("there is no service to explore")
        self._run, self._services = run, services
        self.done: Any = None
        self._seen: Any = None
        self._exact: float | None = None
        self.service = widgets.Dropdown(options=list(services), description="service", style=_WIDE)
        self.parameters: dict[str, widgets.Widget] = {}
        self._form = widgets.VBox()
        self.start = widgets.Button(description="Run", button_style="primary", icon="play", tooltip="run the service")
        self.progress = widgets.IntProgress(max=2, description="", layout=widgets.Layout(width="160px"))
        self.message = widgets.HTML(value="Choose, and press Run.")
        self.play = widgets.Play(max=STEPS, interval=150)
        self.instant = widgets.IntSlider(max=STEPS, description="time", readout=False, style=_WIDE)
        self.instant.layout = widgets.Layout(flex="1 1 auto")
        self.clock, self.counts = widgets.HTML(), widgets.HTML()
        self.histogram = widgets.Image(format="png", layout=widgets.Layout(max_width="100%"))
        self.picture = widgets.Image(format="png", layout=widgets.Layout(max_width="100%"))
        self.notifications = widgets.Select(rows=8, layout=widgets.Layout(width="auto"))
        self.reason = widgets.HTML()
        self.folder = widgets.Text(value="explored", description="folder", style=_WIDE)
        self.keep = widgets.Button(description="Export", icon="save", tooltip="notifications as CSV, the map as HTML")
        widgets.jslink((self.play, "value"), (self.instant, "value"))
        self.service.observe(self._chosen, "value")
        self.start.on_click(lambda _: self.run())
        self.instant.observe(self._moved, "value")
        self.notifications.observe(self._selected, "value")
        self.keep.on_click(lambda _: self.export())
        self._chosen()
        super().__init__(
            children=[
                self.service,
                self._form,
                widgets.HBox([self.start, self.progress, self.message]),
                widgets.HBox([self.play, self.instant]),
                widgets.HBox([self.clock, self.counts]),
                self.histogram,
                widgets.Label("Notifications: select one to read why it was sent"),
                self.notifications,
                self.reason,
                self.picture,
                widgets.HBox([self.folder, self.keep]),
            ]
        )

    # -- choosing ----------------------------------------------------------------------------------------

    def _chosen(self, _: Any = None) -> None:
        defaults = self._services[self.service.value]
        self.parameters = {name: _control(name, value) for name, value in defaults.items()}
        self._form.children = tuple(self.parameters.values())

    @property
    def state(self) -> dict[str, Any]:
        """What is chosen: to be kept, and given to `restore`."""
        values = {name: control.value for name, control in self.parameters.items()}
        return {"service": self.service.value, "parameters": values, "instant": self.instant.value}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Choose again what was kept, and run it."""
        if state["service"] not in self._services:
            hint = did_you_mean(str(state["service"]), self._services)
            raise DataError(f"there is no service {state['service']!r}; {hint}")
        self.service.value = state["service"]
        for name, value in state["parameters"].items():
            if name not in self.parameters:
                hint = did_you_mean(name, self.parameters)
                raise DataError(f"{state['service']!r} has no parameter {name!r}; {hint}")
            self.parameters[name].value = value
        self.run()
        self.instant.value = state["instant"]

    # -- running -----------------------------------------------------------------------------------------

    def run(self) -> None:
        """Replay what is chosen, and show it; what goes wrong is said in the page."""
        chosen = {name: control.value for name, control in self.parameters.items()}
        self.progress.value, self.progress.bar_style, began = 0, "", time.perf_counter()
        self.message.value = "running …"
        try:
            done = self._run(self.service.value, parameters=chosen)
            self.progress.value = 1
            seen = done.scene()
        except WorkbenchError as error:
            self.progress.bar_style = "danger"
            self.message.value = f'<span role="alert" style="color:#b42318">{escape(error)}</span>'
            return
        self.done, self._seen, self._exact = done, seen, None
        told = seen.notifications
        self.histogram.value, self.picture.value = over_time(seen).png(), space(seen).png()
        self.notifications.options = [
            (f"{seen.times.text(row.at)}  {row.kind:8}{row.publication} → {row.subscription}", n)
            for n, row in enumerate(told.head(LISTED).itertuples())
        ]
        self.notifications.value = None
        more = f", the first {LISTED} are listed" if len(told) > LISTED else ""
        self.message.value = f"{len(told):,} notifications{more}, {time.perf_counter() - began:.1f} s"
        self.progress.value, self.progress.bar_style = 2, "success"
        self._moment()

    @property
    def at(self) -> float:
        """The instant that is looked at, as a number of the scene: a selected notification's, or the slider's."""
        if self._exact is not None:
            return self._exact
        first, last = self._seen.span
        return float(first + (last - first) * self.instant.value / STEPS)

    def _moved(self, _: Any) -> None:
        self._exact = None
        self._moment()

    def _moment(self) -> None:
        """The clock and the counts at the instant that is looked at."""
        if self._seen is None:
            return
        at, lines = self.at, self._seen.timelines
        matching = int(((lines["began"] <= at) & ~(lines["ended_at"] <= at)).sum())
        sent = int((self._seen.notifications["at"] <= at).sum())
        zone = escape(self._seen.times.zone)
        self.clock.value = f"<b>{escape(self._seen.times.text(at))} {zone}</b>&nbsp;"
        self.counts.value = f"{matching:,} matching pairs, {sent:,} notifications so far"

    def _selected(self, change: Mapping[str, Any]) -> None:
        if change["new"] is None or self.done is None:
            self.reason.value = ""
            return
        row = self._seen.notifications.iloc[change["new"]]
        first, last = self._seen.span
        if last > first:
            self.instant.value = round((row["at"] - first) / (last - first) * STEPS)
        self._exact = float(row["at"])
        self._moment()
        try:
            said = escape(self.done.explain(row["publication"], row["subscription"], row["t"]))
        except WorkbenchError as error:
            said = escape(error)
        self.reason.value = f'<pre style="white-space:pre-wrap">{said}</pre>'

    # -- keeping -----------------------------------------------------------------------------------------

    def export(self) -> list[Path]:
        """Write the notifications as CSV and the view as HTML into the folder that is named."""
        if self.done is None:
            self.message.value = "There is nothing to export yet: press Run."
            return []
        target = Path(self.folder.value)
        try:
            target.mkdir(parents=True, exist_ok=True)
            files = [target / "notifications.csv", target / "map.html"]
            columns = ["t", "kind", "publication", "subscription"]
            pd.DataFrame(self._seen.notifications[columns]).to_csv(files[0], index=False)
            self.done.map().save(str(files[1]))
        except OSError as error:
            self.message.value = f'<span role="alert" style="color:#b42318">{escape(error)}</span>'
            return []
        self.message.value = f"written: {', '.join(escape(file) for file in files)}"
        return files


def _control(name: str, value: Any) -> widgets.Widget:
    """A slider for a number, a box for a truth value, a field for a text."""
    style = {"description": name, "style": _WIDE, "layout": widgets.Layout(width="420px", max_width="100%")}
    if isinstance(value, bool):
        return widgets.Checkbox(value=value, **style)
    if isinstance(value, int | float):
        top = max(4 * abs(value), 10)
        kind = widgets.IntSlider if isinstance(value, int) else widgets.FloatSlider
        return kind(value=value, min=0, max=top, step=1 if isinstance(value, int) else top / 200, **style)
    return widgets.Text(value=str(value), **style)
