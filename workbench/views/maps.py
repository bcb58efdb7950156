"""Maps of a replay: places, tracks and notifications, with a time line to play and the reasons in popups.

`draw` takes tables and a callable that explains, never an engine, and gives back a `folium.Map`. A saved page is whole:
Leaflet and the time line come from the installed package folium-offline, and without ``tiles`` the base is drawn data,
so that the page asks nobody for anything. Planar metres are drawn on a plane, degrees on the globe.

What is too much to look at is thinned or gathered into cells, and the page says so. All text of users goes through
`workbench.views.text.escape`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import folium
import numpy as np
import pandas as pd
from folium.plugins import Timeline, TimelineSlider
from folium.template import Template
from folium.utilities import JsCode

from workbench.errors import DataError
from workbench.views.colours import HIDDEN, MATCH, PLACE, UNMATCH, Paint, paint
from workbench.views.scene import SIDES, Scene, Sides, scene, thinned, told_of
from workbench.views.text import escape, lines, number

MAX_MARKERS = 2_000
"""More places or notifications than this are gathered into cells: browsers go blank at a few thousand markers."""
MAX_POSITIONS = 6_000
"""More positions than this are thinned: fewer mobiles (those that were told most), then every n-th fix."""
MAX_LISTED = 200

Feature = dict[str, Any]


class OfflineMap(folium.Map):
    """A folium map whose page carries its scripts and styles with it, and only those that it needs."""

    offline: bool = True

    def render(self, **kwargs: Any) -> str:
        if not any(isinstance(e, folium.Icon | folium.Popup) for e in _descendants(self)):
            self.default_js = [link for link in folium.Map.default_js if link[0] == "leaflet"]
            self.default_css = [link for link in folium.Map.default_css if link[0] == "leaflet_css"]
        made: str = super().render(**kwargs)
        if self.offline:
            _carry_assets(self.get_root())
        return made


def _descendants(element: Any) -> Iterator[Any]:
    for child in element._children.values():
        yield child
        yield from _descendants(child)


def _carry_assets(figure: Any) -> None:
    """Put the text of each linked script and style sheet in the place of its link."""
    from branca.element import CssLink, JavascriptLink
    from offlinefolium.elements import JSCSSMixin

    class Assets(JSCSSMixin):  # type: ignore[misc]
        """Renders links as the texts that folium-offline holds, under the names of the links."""

    links = list(figure.header._children.items())
    assets = Assets()
    assets.default_js = [(name, e.url) for name, e in links if isinstance(e, JavascriptLink)]
    assets.default_css = [(name, e.url) for name, e in links if isinstance(e, CssLink)]
    assets._parent = figure
    assets.render()


class _Panel(folium.MacroElement):
    """What the map shows, its legend, what was left out, and the notifications as a table that leads to the map."""

    _template = Template("""
        {% macro header(this, kwargs) %}
        <style>
          .workbench-panel { background: #fffffff2; padding: 8px 12px; border-radius: 4px; max-width: 270px;
            max-height: calc(100vh - 330px); overflow: auto; font: 13px/1.4 system-ui, sans-serif;
            color: #222; box-shadow: 0 1px 4px #0006; overflow-wrap: anywhere; }
          @media (max-width: 999px) { .workbench-panel { max-height: calc(100vh - 150px); max-width: 210px; } }
          .workbench-panel h1 { font-size: 15px; margin: 0 0 4px; }
          .workbench-panel p { margin: 0 0 4px; }
          .workbench-panel .note { color: #8a3b00; }
          .workbench-panel summary { cursor: pointer; padding: 2px 0; }
          .workbench-panel i { display: inline-block; width: 11px; height: 11px; border-radius: 6px; margin-right: 6px;
            border: 2px solid; box-sizing: border-box; }
          .workbench-panel button { all: unset; cursor: pointer; text-decoration: underline; color: #0b57a4; }
          .workbench-panel button:focus-visible { outline: 2px solid #0b57a4; }
          .workbench-panel table { border-collapse: collapse; width: 100%; }
          .workbench-panel td { padding: 3px 0; border-top: 1px solid #e5e2da; }
          .leaflet-popup-content { font: 13px/1.45 system-ui, sans-serif; }
          .workbench-why { font-size: 12px; line-height: 1.35; margin: 6px 0 0; overflow-wrap: anywhere; }
          .workbench-why div { padding-left: 1.2em; text-indent: -1.2em; }
          .leaflet-popup-content { max-height: 260px; overflow: auto; }
          .leaflet-container { background: #f4f3ef; }
          .leaflet-control-layers { font: 13px/1.5 system-ui, sans-serif; }
          .leaflet-control-layers label { margin: 0; }
          .leaflet-control-container .leaflet-bottom.leaflet-left { padding: 0 10px; box-sizing: border-box; }
          .leaflet-control-container .leaflet-timeline-control { box-sizing: border-box; width: 100%; margin: 0 0 10px;
            padding: 6px 12px; background: #fffffff2; display: flex; gap: 12px; align-items: center;
            font: 13px/1.4 system-ui, sans-serif; }
          .leaflet-bottom .leaflet-timeline-control .sldr-ctrl-container { float: none; width: auto; margin: 0;
            padding: 0; display: flex; gap: 12px; align-items: center; }
          .leaflet-bottom .leaflet-timeline-control .button-container { white-space: nowrap; float: none; width: auto; }
          .leaflet-bottom .leaflet-timeline-control .button-container button { width: 34px; height: 28px; }
          .leaflet-bottom .leaflet-timeline-control .time-text { white-space: nowrap; width: auto;
            font-variant-numeric: tabular-nums; }
          .leaflet-bottom .leaflet-timeline-control .time-slider { margin: 0; width: auto; flex: 1; min-width: 100px; }
        </style>
        {% endmacro %}
        {% macro script(this, kwargs) %}
        (function () {
          var map = {{ this._parent.get_name() }};
          var panel = L.control({position: "topright"});
          panel.onAdd = function () {
            var box = L.DomUtil.create("div", "workbench-panel");
            box.innerHTML = {{ this.html|tojson }};
            L.DomEvent.disableClickPropagation(box);
            L.DomEvent.disableScrollPropagation(box);
            box.addEventListener("click", function (event) {
              var at = event.target.dataset.at;
              if (at === undefined) return;
              {% if this.slider %}{{ this.slider.get_name() }}.setTime(Number(at));{% endif %}
              [{% for layer in this.layers %}{{ layer.get_name() }},{% endfor %}].forEach(function (group) {
                group.eachLayer(function (marker) {
                  if (marker.feature.properties.n === Number(event.target.dataset.n)) {
                    map.addLayer(group);
                    marker.openPopup();
                  }
                });
              });
            });
            return box;
          };
          panel.addTo(map);
          L.control.scale({position: "bottomleft", imperial: false}).addTo(map);
          var wide = window.innerWidth >= 1000;
          panel.getContainer().querySelectorAll("details[open]").forEach(function (part) { part.open = wide; });
          map.fitBounds({{ this.bounds|tojson }},
            {paddingTopLeft: [20, 20], paddingBottomRight: [wide ? 300 : 20, 80]});
          map.getContainer().setAttribute("role", "region");
          map.getContainer().setAttribute("aria-label", panel.getContainer().querySelector("h1").textContent);
          document.documentElement.lang = "en";
          {% if this.slider %}
          document.querySelectorAll(".leaflet-timeline-control button").forEach(function (button) {
            button.title = button.getAttribute("aria-label");
          });
          var clock = {{ this.slider.get_name() }}, input = document.querySelector(".time-slider");
          input.setAttribute("aria-label", "time");
          input.addEventListener("keydown", function (event) {  // the slider's own step is a millisecond
            var way = {ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1}[event.key];
            if (!way) return;
            event.preventDefault();
            clock.setTime(Math.min(clock.end, Math.max(clock.start, clock.time + way * clock._stepSize)));
          });
          {% endif %}
        })();
        {% endmacro %}
    """)

    def __init__(self, html: str, seen: Scene, slider: Any, layers: list[Any]) -> None:
        super().__init__()
        self._name = "Panel"
        self.html, self.slider, self.layers = html, slider, layers  # html: branca reads what comes out as a template
        west, south, east, north = seen.bounds
        self.bounds = [[south, west], [north, east]]


_EACH = JsCode("""function (feature, layer) {
    var p = feature.properties;
    if (p.tip) layer.bindTooltip(p.tip, {sticky: true});
    if (p.popup) layer.bindPopup(p.popup, {maxWidth: 420, autoPanPaddingTopLeft: [60, 20],
        autoPanPaddingBottomRight: [window.innerWidth < 1000 ? 40 : 310, 90]});
}""")
_POINT = JsCode("""function (feature, latlng) {
    var p = feature.properties;
    return p.metres ? L.circle(latlng, Object.assign({radius: p.metres}, p.style))
                    : L.circleMarker(latlng, Object.assign({radius: p.size || 5}, p.style));
}""")
_STYLE = JsCode("function (feature) { return feature.properties.style; }")
_INTERVAL = JsCode("""function (feature) {
    var p = feature.properties;
    return {start: p.start, end: p.open ? p.end - 0.001 : p.end};  // the plugin's own exclusive end is a whole unit off
}""")


def draw(
    timelines: Any,
    notifications: Any,
    fixes: Any = None,
    places: Any = None,
    *,
    sides: Sides = SIDES,
    zone: str | None = None,
    radius_m: float | None = None,
    **options: Any,
) -> folium.Map:
    """The tables of a replay on a map with a time line.

    ``sides`` says for each population of publications and subscriptions the table that its rows come from; ``zone`` is
    the time zone that times are shown in; ``radius_m`` the reach of places that have none of their own. The other
    options are those of `draw_scene`.

    >>> fixes = pd.DataFrame({"mobile": [7, 7], "t": [1, 3], "x": [0.0, 9.0], "y": [0.0, 0.0]})
    >>> places = pd.DataFrame({"place": ["cafe"], "x": [9.0], "y": [0.0]})
    >>> lines = pd.DataFrame({"publication": ["cafe"], "subscription": [7], "tau": [3], "pi": [pd.NA], "ended": [None]})
    >>> told = pd.DataFrame({"t": [3], "kind": ["match"], "publication": ["cafe"], "subscription": [7]})
    >>> draw(lines, told, fixes, places).get_name()[:4]
    'map_'
    """
    seen = scene(timelines, notifications, fixes, places, sides=sides, zone=zone, radius_m=radius_m)
    return draw_scene(seen, **options)


def draw_scene(
    seen: Scene,
    *,
    explain: Callable[[Any, Any, Any], Any] | None = None,
    title: str = "Who was told what, where and when",
    colour_by: str | None = None,
    base: Any = None,
    tiles: str | None = None,
    attribution: str | None = None,
    offline: bool = True,
    explained: int = 100,
    patience_s: float = 10,
) -> folium.Map:
    """A scene on a map with a time line.

    ``explain(publication, subscription, t)`` gives the reason that a notification's popup shows (for the first
    ``explained`` of them, and as many as ``patience_s`` seconds allow); ``colour_by`` names an attribute of the places
    or the fixes; ``base`` is a table with ``geometry`` (streets, say) to draw below; ``tiles`` (a name or an address
    that folium knows) and ``offline=False`` make the page ask the web for tiles, and for scripts.
    """
    if tiles is not None and seen.planar:
        raise DataError("tiles are pictures of the globe, and these are metres (x, y); give lon, lat or no tiles")
    notes = list(seen.notes)
    colours = paint(colour_by, seen.places, seen.tracks)
    shown = thinned(seen, MAX_POSITIONS, notes)
    drawn = _frame(seen, tiles, attribution, offline)
    page: Any = drawn.get_root()
    page.title = escape(title)
    if base is not None:
        _layer("Base", _base(base), drawn)
    _layer(f"Places ({len(seen.places):,})", _places(seen, colours, notes), drawn)
    _layer(f"Tracks ({seen.tracks['key'].nunique():,})", _lines(shown, seen, colours), drawn)
    reasons = _reasons(seen, explain, explained, patience_s, notes)
    layers = [
        _layer(f"{kind.capitalize()} ({(seen.notifications['kind'] == kind).sum():,})", found, drawn)
        for kind, found in _told(seen, reasons, notes).items()
    ]
    slider = _time_line(seen, shown, colours, reasons, drawn)
    switches = folium.LayerControl()
    chosen: dict[str, Any] = switches.options
    chosen["collapsed"] = JsCode("window.innerWidth < 1000")
    switches.add_to(drawn)
    listed = layers if len(seen.notifications) <= MAX_MARKERS else []
    _Panel(_panel(seen, title, colours, notes, bool(listed)), seen, slider, listed).add_to(drawn)
    return drawn


# -- the page ----------------------------------------------------------------------------------------------


def _frame(seen: Scene, tiles: str | None, attribution: str | None, offline: bool) -> OfflineMap:
    west, south, east, north = seen.bounds
    made = OfflineMap(
        location=[(south + north) / 2, (west + east) / 2],
        tiles=tiles,
        attr=None if attribution is None else escape(attribution),
        crs="Simple" if seen.planar else "EPSG3857",
        zoom_snap=0.25,
        attribution_control=tiles is not None,
    )
    made.offline = offline
    made.options["min_zoom"] = -20 if seen.planar else 0
    made.options["max_zoom"] = 10 if seen.planar else 20 if tiles is None else 18
    return made


def _layer(name: str, features: list[Feature], drawn: folium.Map) -> Any:
    """Features as one layer that can be switched; a name is shown as HTML."""
    layer = folium.GeoJson(
        {"type": "FeatureCollection", "features": features},
        name=escape(name),
        on_each_feature=_EACH,
        point_to_layer=_POINT,
    )
    layer.add_to(drawn)
    return layer


def _feature(geometry: Feature, style: Feature, **properties: Any) -> Feature:
    return {"type": "Feature", "geometry": geometry, "properties": {"style": style, **properties}}


def _point(x: float, y: float) -> Feature:
    return {"type": "Point", "coordinates": [round(float(x), 7), round(float(y), 7)]}


def _panel(seen: Scene, title: str, colours: Paint, notes: list[str], listed: bool) -> str:
    told = seen.notifications
    parts = [
        f"<p>{len(told):,} notifications, {len(seen.timelines):,} timelines</p>",
        f"<p>{escape(seen.times.text(seen.span[0]))} to {escape(seen.times.text(seen.span[1]))}</p>",
        f"<p><b>{escape(seen.times.label)}</b></p>",
    ]
    parts += [f'<p class="note">{escape(note)}</p>' for note in notes]
    legend = [("match", MATCH, MATCH), ("unmatch", "#fff", UNMATCH)]
    legend += [(name, colour, colour) for name, colour in colours.legend]
    rows = "".join(
        f'<div><i style="background:{fill};border-color:{edge}"></i>{escape(name)}</div>' for name, fill, edge in legend
    )
    parts.append(f"<details open><summary>Legend</summary>{rows}</details>")
    if listed and len(told):
        parts.append(_table(seen))
    return f"<h1>{escape(title)}</h1><details open><summary>About this map</summary>{''.join(parts)}</details>"


def _table(seen: Scene) -> str:
    told = seen.notifications
    first, last = (seen.times.text(at) for at in seen.span)
    skip = 11 if not seen.times.integers and first[:10] == last[:10] else 0  # one day: the time says it
    rows = "".join(
        f'<tr><td><button data-at="{row.at:.0f}" data-n="{n}">{escape(seen.times.text(row.at)[skip:])}</button>'
        f" {escape(row.kind)}<br>{escape(row.publication)} → {escape(row.subscription)}</td></tr>"
        for n, row in enumerate(told.head(MAX_LISTED).itertuples())
    )
    more = f"<p>{len(told) - MAX_LISTED:,} more are not listed</p>" if len(told) > MAX_LISTED else ""
    return f"<details><summary>Notifications as a table</summary><table>{rows}</table>{more}</details>"


# -- layers --------------------------------------------------------------------------------------------------


def _base(base: Any) -> list[Feature]:
    import shapely

    from workbench.tables import geometry_of, load

    style = {"color": "#c9c5ba", "weight": 1.5, "opacity": 1, "fillOpacity": 0.2, "interactive": False}
    shapes = (geometry_of(value) for value in load(base, "base")["geometry"])
    return [_feature(shapely.geometry.mapping(shape), style) for shape in shapes]


def _places(seen: Scene, colours: Paint, notes: list[str]) -> list[Feature]:
    if len(seen.places) > MAX_MARKERS:
        notes.append(f"{len(seen.places):,} places are gathered into cells")
        return _cells(seen, seen.places, PLACE, "places")
    import shapely

    matched = seen.timelines.groupby(seen.timelines["publication"].astype(str)).size()
    features = []
    for row in seen.places.itertuples():
        colour = colours.colour("place", row)
        about = {"popup": _about_place(seen, row, int(matched.get(row.key, 0))), "tip": escape(_label(row))}
        area = {"color": colour, "weight": 1.5, "fillColor": colour, "fillOpacity": 0.08, "opacity": 0.6}
        if row.geometry is not None:
            area |= {"fillOpacity": 0.2, "className": "place"}
            features.append(_feature(shapely.geometry.mapping(row.geometry), area, **about))
            continue
        if row.radius_m > 0:
            area["className"] = "reach"
            features.append(_feature(_point(row.x, row.y), area, metres=row.radius_m, **about))
        dot = {"color": "#fff", "weight": 1, "fillColor": colour, "fillOpacity": 1, "className": "place"}
        features.append(_feature(_point(row.x, row.y), dot, size=6, **about))
    return features


def _label(row: Any) -> str:
    name = getattr(row, "name", None)
    return str(row.name_shown) if name is None or pd.isna(name) else f"{name} ({row.name_shown})"


def _about_place(seen: Scene, row: Any, matched: int) -> str:
    facts = [
        f"{escape(name)}: {escape(value)}"
        for name, value in row._asdict().items()
        if name not in (*HIDDEN, "Index", "place") and not name.startswith("_") and _said(value)
    ]
    if row.radius_m > 0:
        facts.append(f"reach: {number(row.radius_m)} m")
    if not pd.isna(row.since):
        facts.append(f"from {escape(seen.times.text(row.since))}")
    if not pd.isna(row.until):
        facts.append(f"until {escape(seen.times.text(row.until))}")
    facts.append(f"{matched:,} timelines")
    return f"<b>{escape(_label(row))}</b><br>" + "<br>".join(facts)


def _said(value: Any) -> bool:
    return value is not None and not (np.isscalar(value) and pd.isna(value))


def _cells(seen: Scene, points: pd.DataFrame, colour: str, noun: str) -> list[Feature]:
    """Points counted in squares, about forty along the longer side."""
    west, south, east, north = seen.bounds
    squeeze = 1.0 if seen.planar else max(0.01, float(np.cos(np.radians((south + north) / 2))))
    side_y = max((east - west) * squeeze, north - south, 1e-9) / 40
    side_x = side_y / squeeze
    known = points[points["x"].notna()]
    column, row = ((known["x"] - west) // side_x).astype(int), ((known["y"] - south) // side_y).astype(int)
    counts = known.groupby([column.rename("column"), row.rename("row")]).size()
    features = []
    for (i, j), count in counts.items():
        x, y = west + i * side_x, south + j * side_y
        ring = [[x, y], [x + side_x, y], [x + side_x, y + side_y], [x, y + side_y], [x, y]]
        strength = 0.15 + 0.7 * np.log1p(count) / np.log1p(counts.max())
        style = {"color": colour, "weight": 0.5, "fillColor": colour, "fillOpacity": round(float(strength), 3)}
        shape = {"type": "Polygon", "coordinates": [[[round(a, 7), round(b, 7)] for a, b in ring]]}
        features.append(_feature(shape, {**style, "className": "cell"}, tip=f"{count:,} {noun}"))
    return features


def _lines(shown: pd.DataFrame, seen: Scene, colours: Paint) -> list[Feature]:
    fixes, told = seen.tracks["key"].value_counts(), told_of(seen)
    features = []
    for key, track in shown.groupby("key", sort=False):
        if len(track) < 2:
            continue
        last = next(track.iloc[[-1]].itertuples())
        style = {"color": colours.colour("mobile", last), "weight": 2, "opacity": 0.45, "className": "track"}
        line = {"type": "LineString", "coordinates": track[["x", "y"]].round(7).to_numpy().tolist()}
        about = f"{escape(key)}: {fixes[key]:,} fixes, {told.get(key, 0):,} notifications"
        features.append(_feature(line, style, tip=about, popup=about))
    return features


def _reasons(
    seen: Scene,
    explain: Callable[[Any, Any, Any], Any] | None,
    explained: int,
    patience_s: float,
    notes: list[str],
) -> list[str]:
    """For each notification what its popup says."""
    told = seen.notifications
    if len(told) > MAX_MARKERS:
        return []
    texts, given, until = [], 0, time.monotonic() + patience_s
    for row in told.itertuples():
        head = (
            f"<b>{escape(row.kind)}</b> {escape(seen.times.text(row.at))} {escape(seen.times.zone)}<br>"
            f"publication {escape(row.publication)}, subscription {escape(row.subscription)}"
        )
        if explain is not None and given < explained and time.monotonic() < until:
            reason = lines(explain(row.publication, row.subscription, row.t))
            head += f'<div class="workbench-why">{reason}</div>'
            given += 1
        texts.append(head)
    if explain is not None and given < len(told):
        notes.append(f"reasons are given for the first {given:,} of {len(told):,} notifications")
    return texts


def _told(seen: Scene, reasons: list[str], notes: list[str]) -> dict[str, list[Feature]]:
    told = seen.notifications
    if len(told) > MAX_MARKERS:
        notes.append(f"{len(told):,} notifications are gathered into cells")
        colours = {"match": MATCH, "unmatch": UNMATCH}
        return {k: _cells(seen, told[told["kind"] == k], colours[k], f"{k} notifications") for k in colours}
    nowhere = int(told["x"].isna().sum())
    if nowhere:
        notes.append(f"{nowhere:,} notifications have no position, and are only in the table")
    features: dict[str, list[Feature]] = {"match": [], "unmatch": []}
    for n, row in enumerate(told.itertuples()):
        if not pd.isna(row.x):
            tip = f"{escape(row.kind)}: {escape(row.publication)} → {escape(row.subscription)}"
            style = _mark(row.kind) | {"className": f"notification {row.kind}"}
            features[row.kind].append(_feature(_point(row.x, row.y), style, size=4, n=n, popup=reasons[n], tip=tip))
    return features


def _mark(kind: str) -> Feature:
    """A match is a filled dot, an unmatch a ring: to be told apart without colours too."""
    if kind == "match":
        return {"color": "#fff", "weight": 1, "fillColor": MATCH, "fillOpacity": 0.9}
    return {"color": UNMATCH, "weight": 2, "fillColor": "#fff", "fillOpacity": 0.6}


# -- time ----------------------------------------------------------------------------------------------------


def _time_line(
    seen: Scene, shown: pd.DataFrame, colours: Paint, reasons: list[str], drawn: folium.Map
) -> TimelineSlider | None:
    first, last = seen.span
    moving = {
        "Now: mobiles": _positions(shown, seen, colours),
        "Now: matching pairs": _pairs(seen, shown),
        "Now: just told": _just_told(seen, reasons),
    }
    timed = []
    for name, features in moving.items():
        if not features:
            continue
        layer = Timeline(
            {"type": "FeatureCollection", "features": features},
            get_interval=_INTERVAL,
            on_each_feature=_EACH,
            point_to_layer=_POINT,
            style=_STYLE,
        )
        layer.layer_name = name
        layer.default_js = [link for link in Timeline.default_js if link[0] == "timeline"]
        timed.append(layer.add_to(drawn))
    if not timed or last <= first:
        return None
    slider = TimelineSlider(
        auto_play=False,
        enable_keyboard_controls=True,
        show_ticks=False,
        start=first,
        end=last,
        steps=int(min(600, max(10, last - first))),
        playback_duration=30_000,
    )
    options: dict[str, Any] = slider.options
    options["format_output"] = _clock(seen)
    slider.default_js = [link for link in TimelineSlider.default_js if link[0] == "timeline"]
    slider.add_timelines(*timed).add_to(drawn)
    return slider


def _clock(seen: Scene) -> JsCode:
    if seen.times.integers:
        return JsCode('function (at) { return "t = " + Math.floor(at); }')
    zone = seen.times.zone
    return JsCode(
        "function (at) { return new Intl.DateTimeFormat('sv-SE', "
        f"{{timeZone: '{zone}', dateStyle: 'short', timeStyle: 'medium'}}).format(new Date(at)) + ' {zone}'; }}"
    )


def _positions(shown: pd.DataFrame, seen: Scene, colours: Paint) -> list[Feature]:
    features = []
    for row in shown.itertuples():
        style = {"color": "#fff", "weight": 1.5, "fillColor": colours.colour("mobile", row), "fillOpacity": 1}
        timed = {"start": row.at, "end": row.end, "open": bool(row.end < seen.span[1])}
        features.append(_feature(_point(row.x, row.y), {**style, "className": "mobile"}, tip=escape(row.key), **timed))
    return features


def _pairs(seen: Scene, shown: pd.DataFrame) -> list[Feature]:
    """A line between the two of each matching pair, cut where one of them moves."""
    if len(seen.timelines) > MAX_MARKERS or seen.timelines.empty:
        return []
    cuts = {key: track["at"].to_numpy() for key, track in shown.groupby("key", sort=False)}
    pieces = []
    for row in seen.timelines.itertuples():
        end = seen.span[1] if pd.isna(row.ended_at) else row.ended_at
        ids = (str(name).split("/", 1)[-1] for name in (row.publication, row.subscription))
        inside = [at for key in ids for at in cuts.get(key, ()) if row.began < at < end]
        stops = [row.began, *sorted(set(inside)), end]
        pieces += [(row.publication, row.subscription, a, b) for a, b in pairwise(stops)]
        if len(pieces) > MAX_POSITIONS:
            return []
    frame = pd.DataFrame(pieces, columns=["publication", "subscription", "at", "end"])
    ends = [seen.where(role, frame[role], frame["at"]) for role in ("publication", "subscription")]
    features = []
    for row, a, b in zip(frame.itertuples(), *(e.itertuples() for e in ends), strict=True):
        if pd.isna(a.x) or pd.isna(b.x):
            continue
        line = {"type": "LineString", "coordinates": [_point(p.x, p.y)["coordinates"] for p in (a, b)]}
        timed = {"start": row.at, "end": row.end, "open": bool(row.end < seen.span[1])}
        tip = f"{escape(row.publication)} matches {escape(row.subscription)}"
        style = {"color": MATCH, "weight": 3, "opacity": 0.9, "className": "matching"}
        features.append(_feature(line, style, tip=tip, **timed))
    return features


def _just_told(seen: Scene, reasons: list[str]) -> list[Feature]:
    """A notification is large for a while after it was sent."""
    if not reasons:
        return []
    while_ = (seen.span[1] - seen.span[0]) / 50
    features = []
    for n, row in enumerate(seen.notifications.itertuples()):
        if not pd.isna(row.x):
            timed = {"start": row.at, "end": row.at + while_, "open": True}
            style = _mark(row.kind) | {"className": f"just-told {row.kind}"}
            features.append(_feature(_point(row.x, row.y), style, size=9, popup=reasons[n], **timed))
    return features
