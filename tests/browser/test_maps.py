"""Saved maps and reports in a real browser with the network cut."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from workbench import replay
from workbench.replay import Replay
from workbench.views import reports

pytestmark = pytest.mark.browser

OUR_MAP = "const m = window[Object.keys(window).find(k => /^map_[0-9a-f]+$/.test(k))];"
NASTY = [
    "<img src=x onerror=window.hacked=1>",
    "`${window.hacked=1}`",
    "</script><script>window.hacked=1</script>",
    "'+(window.hacked=1)+'",
    '"><svg onload=window.hacked=1>',
    "{{ 7*7 }}{% raw %}",
    "\\');window.hacked=1;//\u2028",
]


def walk(names: list[str], lonlat: bool = False, attribute: str = "cafe") -> Replay:
    """One mobile walks past a place of each name, a hundred metres apart."""
    steps = range(0, 100 * len(names) + 100, 10)
    fixes = pd.DataFrame({"mobile": names[0], "t": range(1, len(steps) + 1), "x": [float(s) for s in steps], "y": 0.0})
    places = pd.DataFrame(
        {"place": names, "x": [100.0 * (n + 1) for n in range(len(names))], "y": 20.0, "category": attribute}
    )
    fixes["t"] = pd.Timestamp("2026-03-02T08:00:00Z") + pd.to_timedelta(fixes["t"], unit="min")
    if lonlat:
        for table in (fixes, places):
            table["lon"], table["lat"] = 13.4 + table.pop("x") / 68_000, 52.5 + table.pop("y") / 111_195
    return replay("proximity", fixes, places, engine="reference", parameters={"radius_m": 40})


@pytest.fixture(scope="module", params=[False, True], ids=["metres", "degrees"])
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("map") / "map.html"
    walk(["north", "middle", "south"], request.param).map(zone="Europe/Berlin", colour_by="category").save(str(path))
    return path


@pytest.mark.parametrize("width", [800, 1280])
def test_a_saved_map_asks_nobody_and_fits(saved: Path, width: int, open_page: Callable[..., Any]) -> None:
    opened = open_page(saved, width)
    opened.page.wait_for_selector("path.place")
    assert opened.errors == []
    assert opened.asked == []
    assert opened.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert opened.page.locator("path.place").count() == 3
    assert "time zone Europe/Berlin" in opened.page.locator(".workbench-panel").text_content()


def test_play_moves_the_clock_and_the_markers(saved: Path, open_page: Callable[..., Any]) -> None:
    page = open_page(saved).page
    clock, mobile = page.locator(".time-text"), page.locator("path.mobile")
    assert clock.text_content() == "2026-03-02 09:01:00 Europe/Berlin"
    began, where = clock.text_content(), mobile.bounding_box()
    page.wait_for_timeout(300)
    assert clock.text_content() == began, "a map must not play by itself"
    page.locator(".leaflet-timeline-control .play").click()
    page.wait_for_function("began => document.querySelector('.time-text').textContent > began", arg=began)
    page.wait_for_function(
        "x => { const m = document.querySelector('path.mobile'); return m && m.getBoundingClientRect().x > x + 20; }",
        arg=where["x"],
    )
    page.locator(".leaflet-timeline-control .pause").click()
    stopped = clock.text_content()
    page.wait_for_timeout(300)
    assert clock.text_content() == stopped


def test_the_keyboard_moves_the_clock(saved: Path, open_page: Callable[..., Any]) -> None:
    page = open_page(saved).page
    began = page.locator(".time-text").text_content()
    page.locator(".time-slider").focus()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    assert page.locator(".time-text").text_content() > began


def test_layers_switch(saved: Path, open_page: Callable[..., Any]) -> None:
    page = open_page(saved).page
    for name, marks in {"Places": "path.place", "Match": "path.notification.match", "Tracks": "path.track"}.items():
        switch = page.locator(".leaflet-control-layers-overlays label", has_text=name).first.locator("input")
        assert page.locator(marks).count() > 0
        switch.uncheck()
        assert page.locator(marks).count() == 0
        switch.check()
        assert page.locator(marks).count() > 0


def test_the_table_leads_to_the_notification_and_its_reason(saved: Path, open_page: Callable[..., Any]) -> None:
    page = open_page(saved).page
    page.locator(".workbench-panel summary", has_text="table").click()
    page.locator(".workbench-panel button").first.click()
    popup = page.locator(".leaflet-popup-content")
    popup.wait_for()
    said = popup.text_content()
    assert "match" in said and "north" in said and "✓" in said
    assert page.locator("path.matching").count() == 1
    assert page.locator(".time-text").text_content()[11:19] in said


@pytest.mark.parametrize("lonlat", [False, True], ids=["metres", "degrees"])
def test_nasty_names_do_nothing(lonlat: bool, tmp_path: Path, open_page: Callable[..., Any]) -> None:
    told = walk(NASTY, lonlat, attribute=NASTY[0])
    about = {"scenario": repr(told.scenario), "metrics": told.metrics, "explain": told.explain}
    reports.folder(told.scene(), tmp_path, question=NASTY[2], title="".join(NASTY), colour_by="category", **about)
    opened = open_page(tmp_path / "map.html")
    opened.page.wait_for_selector("path.place")
    shown = opened.page.evaluate(
        f"""() => {{ {OUR_MAP} const texts = [];
        m.eachLayer(layer => {{
            if (!layer.getPopup || !layer.feature) return;
            for (const bound of [layer.getPopup(), layer.getTooltip()]) {{
                if (!bound) continue;
                const div = document.createElement("div");
                div.innerHTML = bound.getContent();
                document.body.appendChild(div);
                texts.push(div.textContent);
                div.remove();
            }}
        }});
        return texts; }}"""
    )
    opened.page.locator(".workbench-panel summary", has_text="table").click()
    opened.page.wait_for_timeout(300)
    assert opened.page.evaluate("window.hacked") is None
    assert (opened.errors, opened.asked) == ([], [])
    for name in NASTY[:6]:
        assert any(name in text for text in shown), name
        assert name in opened.page.locator(".workbench-panel").text_content()
    page = open_page(tmp_path / "report.html")
    assert page.page.evaluate("window.hacked") is None
    assert (page.errors, page.asked) == ([], [])
    assert NASTY[0] in page.page.locator("body").text_content()


def test_a_report_asks_nobody_and_fits(tmp_path: Path, open_page: Callable[..., Any]) -> None:
    reports.folder(walk(["north", "a" * 200]).scene(), tmp_path, question="Who hears of what?")
    for width in (800, 1280):
        opened = open_page(tmp_path / "report.html", width)
        assert (opened.errors, opened.asked) == ([], [])
        assert opened.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert opened.page.locator("img").evaluate("picture => picture.naturalWidth") > 600
    assert all((tmp_path / link).is_file() for link in ("map.html", "picture.png"))


def test_tiles_and_scripts_from_the_web_are_a_choice(tmp_path: Path, open_page: Callable[..., Any]) -> None:
    from offlinefolium.elements import _res  # the same scripts, answered as the web would

    path = tmp_path / "map.html"
    tiles = "https://tiles.example/{z}/{x}/{y}.png"
    walk(["north", "south"], lonlat=True).map(tiles=tiles, attribution="<b>us</b>", offline=False).save(str(path))
    opened = open_page(path, answers=_res)
    opened.page.wait_for_selector("path.place")
    opened.page.wait_for_selector("img.leaflet-tile-loaded")
    clock = opened.page.locator(".time-text").text_content()
    opened.page.locator(".leaflet-timeline-control .play").click()
    opened.page.wait_for_function("began => document.querySelector('.time-text').textContent > began", arg=clock)
    opened.page.locator("path.notification").first.click(force=True)
    opened.page.locator(".leaflet-popup-content", has_text="✓").wait_for()
    assert opened.errors == []
    assert any(address.startswith("https://tiles.example/") for address in opened.asked)
    assert any(address.endswith("leaflet.js") for address in opened.asked)


def test_what_is_too_much_is_gathered_and_the_page_says_so(tmp_path: Path, open_page: Callable[..., Any]) -> None:
    from workbench.views.maps import draw

    n = 3_000
    lines = pd.DataFrame({"publication": range(n), "subscription": 7, "tau": range(n), "pi": pd.NA, "ended": None})
    told = pd.DataFrame({"t": range(n), "kind": "match", "publication": range(n), "subscription": 7})
    fixes = pd.DataFrame({"mobile": 7, "t": range(10 * n), "x": [i % 997 * 1.0 for i in range(10 * n)], "y": 1.0})
    grid = {"x": [float(i % 60) for i in range(n)], "y": [float(i // 60) for i in range(n)]}
    places = pd.DataFrame({"place": range(n), **grid})
    path = tmp_path / "map.html"
    draw(lines, told, fixes, places).save(str(path))
    assert path.stat().st_size < 5_000_000
    opened = open_page(path)
    opened.page.wait_for_selector("path.cell")
    said = opened.page.locator(".workbench-panel").text_content()
    assert opened.errors == []
    assert "3,000 places are gathered into cells" in said
    assert "3,000 notifications are gathered into cells" in said
    assert "tracks show one fix in 5" in said
