"""A real Chromium whose network is cut: pages from disk, and a note of everything that they ask for or complain of."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
HERE = ("file:", "data:", "blob:", "about:")
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@dataclass
class Opened:
    """A page, the errors it threw, and the addresses it asked for beyond its own file."""

    page: Any
    errors: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def browser(chromium: Path) -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as run:
        started = run.chromium.launch(executable_path=str(chromium), args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Opened]]:
    contexts = []

    def opened(path: Path, width: int = 1280, answers: dict[str, str] | None = None) -> Opened:
        """Open a file; requests are refused, but for ``answers`` (texts by address) and, with them, pictures."""
        context = browser.new_context(viewport={"width": width, "height": 800})
        contexts.append(context)
        made = Opened(context.new_page())

        def answer(route: Any) -> None:
            address = route.request.url
            if address.startswith(HERE):
                route.continue_()
                return
            made.asked.append(address)
            if answers is not None and address in answers:
                kind = "text/css" if address.endswith(".css") else "text/javascript"
                route.fulfill(body=answers[address], content_type=kind)
            elif answers is not None and address.endswith(".png"):
                route.fulfill(body=PIXEL, content_type="image/png")
            else:
                route.abort()

        context.route("**/*", answer)
        made.page.on("pageerror", lambda error: made.errors.append(str(error)))
        made.page.on("console", lambda m: made.errors.append(m.text) if m.type == "error" else None)
        made.page.goto(path.as_uri())
        made.page.wait_for_load_state("load")
        return made

    yield opened
    for context in contexts:
        context.close()
