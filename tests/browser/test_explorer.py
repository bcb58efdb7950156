"""The explorer as a page of its own, through Voilà, with the network cut."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from workbench import replay
from workbench.datasets import City

pytestmark = [pytest.mark.browser, pytest.mark.slow]

# Voilà's own template asks for these two style sheets; refused, it does without them.
VOILA_ASKS = "https://cdn.jsdelivr.net/npm/@fortawesome/fontawesome-free@"


@pytest.fixture(scope="module")
def address(project_root: Path) -> Iterator[str]:
    pytest.importorskip("voila")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    notebook = project_root / "notebooks" / "0-start" / "explorer.ipynb"
    command = [sys.executable, "-m", "voila", "--no-browser", f"--port={port}", "--Voila.ip=127.0.0.1", str(notebook)]
    served = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, cwd=project_root
    )
    try:
        _wait_for(port, served)
        yield f"http://127.0.0.1:{port}/"
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


def told(radius_m: float) -> Any:
    city = City(seed=7, people=8, tourists=4, cars=0, buses=0, highway=0, interval_s=300, size_m=3000, coffee=12)
    shops = city.places()
    return replay("proximity", city.fixes(), shops[shops.category == "coffee"], parameters={"radius_m": radius_m})


@pytest.mark.parametrize("width", [1280, 800])
def test_the_explorer_runs_as_a_page(width: int, address: str, browser: Any) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900})
    page, errors, asked = context.new_page(), [], []
    page.on("pageerror", lambda error: errors.append(str(error)))

    def answer(route: Any) -> None:
        if route.request.url.startswith((address, "data:", "blob:")):
            route.continue_()
        else:
            asked.append(route.request.url)
            route.abort()

    context.route("**/*", answer)
    page.goto(address, timeout=120_000)
    start = page.get_by_role("button", name="Run").first
    start.wait_for(timeout=120_000)
    # The button is there before the notebook's own last run, with 150 m, is done.
    page.get_by_text(f"{len(told(150).notifications)} notifications,").wait_for(timeout=60_000)
    page.get_by_role("slider").first.focus()
    for _ in range(20):
        page.keyboard.press("ArrowRight")  # a metre each
    page.wait_for_function("Number(document.querySelector('[role=slider]').getAttribute('aria-valuenow')) === 170")
    start.focus()
    page.keyboard.press("Enter")
    expected = told(170).notifications
    page.get_by_text(f"{len(expected)} notifications,").wait_for(timeout=60_000)
    page.locator("select[size]").select_option(index=3)
    page.get_by_text(f"matches mobiles/{expected.iloc[3].subscription} at").wait_for(timeout=60_000)
    assert page.get_by_text(f"{expected.iloc[3].t:%Y-%m-%d %H:%M:%S} UTC", exact=False).count() >= 1
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert errors == []
    assert [url for url in asked if not url.startswith(VOILA_ASKS)] == []
    context.close()
