"""The explorer as a page of its own, through Voilà, with the network cut."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest

from workbench import replay
from workbench.datasets import City

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# Voilà's own template asks for these two style sheets; refused, it does without them.
VOILA_ASKS = "https://cdn.jsdelivr.net/npm/@fortawesome/fontawesome-free@"
PATIENCE_MS = 120_000
NASTY = ["<img src=x onerror=window.hacked=1>", "`${window.hacked=1}`", "</script><script>window.hacked=1</script>"]
STEPS = range(0, 500, 10)
WALK = pd.DataFrame({"mobile": NASTY[0], "t": [s + 1 for s in STEPS], "x": [float(s) for s in STEPS], "y": 0.0})
SHOPS = pd.DataFrame({"place": NASTY, "x": [100.0, 200.0, 300.0], "y": 20.0, "name": NASTY})
SMALL = f"""
import pandas as pd
from workbench import explore
walk = pd.DataFrame({WALK.to_dict("list")!r})
shops = pd.DataFrame({SHOPS.to_dict("list")!r})
services = {{name: name for name in ("proximity", "fuel")}}
explorer = explore(services, walk, shops, engine="reference", parameters={{"radius_m": 40}})
explorer.run()
explorer
"""


@pytest.fixture(scope="module")
def address(project_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Voilà that serves the project's explorer and a small one over names that want to do harm."""
    pytest.importorskip("voila")
    folder = tmp_path_factory.mktemp("served")
    shutil.copy(project_root / "notebooks" / "0-start" / "explorer.ipynb", folder)
    small = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(SMALL)])
    small.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(small, folder / "small.ipynb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (target,) = re.findall(r"-m voila (.*)", (project_root / "Makefile").read_text())
    options = [word for word in target.split() if word.startswith("--")]
    command = [sys.executable, "-m", "voila", "--no-browser", f"--port={port}", "--Voila.ip=127.0.0.1", *options]
    path = os.pathsep.join([str(project_root), os.environ.get("PYTHONPATH", "")])
    quietly = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    served = subprocess.Popen(
        [*command, str(folder)], cwd=folder, env={**os.environ, "PYTHONPATH": path}, **quietly
    )
    try:
        _wait_for(port, served)
        yield f"http://127.0.0.1:{port}/voila/render/"
    finally:
        os.killpg(served.pid, signal.SIGTERM)
        served.wait(30)


def _wait_for(port: int, served: subprocess.Popen[bytes]) -> None:
    for _ in range(120):
        assert served.poll() is None, "Voilà did not start"
        try:
            with socket.create_connection(("127.0.0.1", port), 1):
                return
        except OSError:
            time.sleep(0.5)
    pytest.fail("Voilà did not answer within a minute")


@pytest.fixture
def explored(address: str, browser: Any) -> Iterator[Callable[[str, int], Any]]:
    """Open a page; at the end it must have thrown nothing, asked nobody, and not be wider than the window."""
    opened = []

    def explorer(name: str, width: int) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 1000}, accept_downloads=True)
        page, errors, asked = context.new_page(), [], []
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: errors.append(str(error)))
        host = address.removesuffix("voila/render/")

        def answer(route: Any) -> None:
            if route.request.url.startswith((host, "data:", "blob:")):
                route.continue_()
            else:
                asked.append(route.request.url)
                route.abort()

        context.route("**/*", answer)
        page.goto(address + name, timeout=PATIENCE_MS)
        page.locator(".wb-stage .wb-place").first.wait_for(state="attached")
        opened.append((context, page, errors, asked))
        return page

    yield explorer
    for context, page, errors, asked in opened:
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert errors == []
        assert [url for url in asked if not url.startswith(VOILA_ASKS)] == []
        context.close()


def city() -> tuple[pd.DataFrame, pd.DataFrame]:
    made = City(
        seed=7, people=8, tourists=4, cars=10, buses=0, highway=0, interval_s=300, size_m=3000, coffee=12, fuel=6
    )
    fixes, places = made.fixes(), made.places()
    return fixes[fixes.kind != "car"], places[places.category == "coffee"]


def told(radius_m: float, places: pd.DataFrame | None = None) -> pd.DataFrame:
    fixes, shops = city()
    where = shops if places is None else places
    return replay("proximity", fixes, where, parameters={"radius_m": radius_m}).notifications


def says(page: Any, notifications: int) -> None:
    """Wait until the page says how many there are, in its message and over its table."""
    page.get_by_text(re.compile(rf"^{notifications} notifications, [\d.]+ s$")).wait_for()
    page.locator(".wb-list caption", has_text=f"{notifications} notifications").wait_for()


def test_sliders_selection_and_a_dragged_place(explored: Callable[[str, int], Any]) -> None:
    page = explored("explorer.ipynb", 1280)
    says(page, len(told(300)))

    slider = page.get_by_role("slider", name="radius").or_(page.locator(".widget-slider [role=slider]")).first
    slider.focus()
    for _ in range(20):
        page.keyboard.press("ArrowLeft")  # a metre each; it runs by itself when the slider rests
    expected = told(280)
    assert len(expected) != len(told(300))
    says(page, len(expected))

    line = page.locator(".wb-list tbody tr").nth(3)
    line.click()
    row = expected.iloc[3]
    explanation = page.get_by_label("explanation")
    explanation.get_by_text(f"places/{row.publication} matches mobiles/{row.subscription} at").wait_for()
    assert page.locator(".wb-clock").text_content() == f"{row.t:%Y-%m-%d %H:%M:%S} UTC"
    assert line.get_attribute("aria-selected") == "true"
    counts = page.get_by_label("counts at this instant")
    counts.get_by_text(f"{(expected.t <= row.t).sum()}", exact=True).first.wait_for()

    _, shops = city()
    shop = shops.iloc[2]
    dot = page.locator(f".wb-place[data-key='{shop.place}']")
    dot.scroll_into_view_if_needed()
    box = dot.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for part in (20, 45, 70):
        page.mouse.move(x - part, y + part / 2)
    page.mouse.up()
    change = page.get_by_label("what changed")
    change.get_by_text(re.compile(r"Compared with the run before: [1-9]")).wait_for()
    page.wait_for_function("document.querySelectorAll('.wb-told.wb-new').length > 0")
    place = page.locator(f".wb-place[data-key='{shop.place}']")
    moved = shops.assign(
        x=shops.x.where(shops.place != shop.place, round(float(place.get_attribute("cx")), 7)),
        y=shops.y.where(shops.place != shop.place, round(-float(place.get_attribute("cy")), 7)),
    )
    assert abs(float(place.get_attribute("cx")) - shop.x) > 50
    after = told(280, moved)
    says(page, len(after))
    now, before = ({tuple(row) for row in table.astype(str).to_numpy()} for table in (after, expected))
    change.get_by_text(f"{len(now - before)} new, {len(before - now)} gone").wait_for()
    page.get_by_role("button", name="Put places back").click()
    says(page, len(expected))


def test_the_keyboard_alone_plays_steps_moves_and_brushes(explored: Callable[[str, int], Any]) -> None:
    page = explored("small.ipynb", 800)
    expected = replay("proximity", WALK, SHOPS, engine="reference", parameters={"radius_m": 40}).notifications
    says(page, len(expected))
    clock, mobile = page.locator(".wb-clock"), page.locator(".wb-mobile")
    assert clock.text_content() == f"t = {WALK.t.iloc[-1]}"  # at first everything is shown
    assert page.locator(".wb-told:visible").count() == len(expected)
    page.get_by_label("time", exact=True).focus()
    page.keyboard.press("Home")
    began, where = clock.text_content(), float(mobile.get_attribute("cx"))
    assert began == "t = 1"

    page.get_by_label("play", exact=True).focus()
    page.keyboard.press("Enter")
    page.wait_for_function("x => Number(document.querySelector('.wb-mobile').getAttribute('cx')) > x + 5", arg=where)
    assert clock.text_content() != began
    page.keyboard.press("Enter")
    page.get_by_label("play", exact=True).wait_for()
    stopped = clock.text_content()
    page.wait_for_timeout(300)
    assert clock.text_content() == stopped

    page.get_by_label("time", exact=True).focus()
    page.keyboard.press("Home")
    assert clock.text_content() == "t = 1"
    page.get_by_label("step", exact=True).focus()
    page.keyboard.press("Enter")
    assert clock.text_content() == f"t = {expected.t[0]}"
    assert page.locator(".wb-pair").count() == 1

    page.get_by_label("begin of the time that is looked at").focus()
    for _ in range(40):
        page.keyboard.press("ArrowRight")
    span = WALK.t.iloc[-1] - 1
    page.locator(".wb-list caption", has_text=f"{(expected.t >= 1 + 0.4 * span).sum()} notifications").wait_for()
    page.get_by_role("button", name="Whole time").focus()
    page.keyboard.press("Enter")
    says(page, len(expected))

    page.get_by_label("Matching pairs").focus()
    page.keyboard.press("Space")
    page.wait_for_function("document.querySelectorAll('.wb-pair').length === 0")

    page.locator(".wb-place").first.focus()
    for _ in range(15):
        page.keyboard.press("ArrowUp")
    seen = page.locator(".wb-map").get_attribute("viewBox")
    page.keyboard.press("Enter")
    away = replay("proximity", WALK, SHOPS.iloc[1:], engine="reference", parameters={"radius_m": 40}).notifications
    says(page, len(away))
    page.wait_for_function("document.activeElement.classList.contains('wb-place')")
    assert page.locator(".wb-map").get_attribute("viewBox") == seen, "another run leaves the map as it was"
    page.locator(".wb-list tbody tr").first.focus()
    page.keyboard.press("Enter")
    page.get_by_label("explanation").get_by_text(f"places/{away.publication[0]} matches").wait_for()


def test_nasty_names_errors_files_and_a_new_place(explored: Callable[[str, int], Any]) -> None:
    page = explored("small.ipynb", 1280)
    text = page.locator(".wb-list").text_content()
    assert all(name in text for name in NASTY)
    page.locator(".wb-mobile").click(force=True)
    page.get_by_label("explanation").get_by_text(f"mobile {NASTY[0]} matches").wait_for()
    page.get_by_role("button", name="Everybody").click()

    page.get_by_role("button", name="Save state").click()
    page.get_by_text("written: explored/state.json").wait_for()
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as taken:
        page.get_by_role("link", name="explored/notifications.csv").click()
    kept = pd.read_csv(taken.value.path())
    expected = replay("proximity", WALK, SHOPS, engine="reference", parameters={"radius_m": 40}).notifications
    pd.testing.assert_frame_equal(kept, expected, check_dtype=False)

    page.get_by_role("button", name="Add a place").click()
    page.locator(".wb-map").focus()
    page.keyboard.press("Enter")  # in the middle of the view
    page.get_by_label("what changed").get_by_text(re.compile("Compared with the run before: [1-9]")).wait_for()
    page.wait_for_function("document.querySelectorAll('.wb-place').length === 4")
    page.get_by_role("button", name="Restore state").click()
    page.wait_for_function("document.querySelectorAll('.wb-place').length === 3")

    page.locator("select").first.select_option("fuel")
    page.get_by_role("alert").get_by_text("fuel").first.wait_for()
    assert page.evaluate("window.hacked") is None
