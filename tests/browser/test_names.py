"""Names that want to do harm, in every page that is not a map: in a real browser they are shown, and do nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.browser.test_maps import NASTY, walk
from tests.experiments.test_comparing import record
from workbench.datasets import describe
from workbench.experiments import compare

pytestmark = pytest.mark.browser
SHOWN = NASTY[:6]  # the last has a sign that ends a line, and is shown without it


def harmless(opened: Any, names: list[str]) -> None:
    opened.page.wait_for_timeout(200)  # for what an error handler would do
    assert opened.page.evaluate("window.hacked") is None
    assert (opened.errors, opened.asked) == ([], [])
    text = opened.page.locator("body").text_content()
    assert [name for name in names if name not in text] == []


def test_what_shows_itself_in_a_notebook(tmp_path: Path, open_page: Callable[..., Any]) -> None:
    told = walk(NASTY)
    first = told.notifications.iloc[2]
    fixes = pd.DataFrame({"mobile": [1, 1], "t": [0, 9], "x": [0.0, 1.0], "y": 0.0, **dict.fromkeys(NASTY, 0)})
    fixes.to_parquet(tmp_path / "fixes.parquet")
    shown = [
        told.explain(NASTY[1], NASTY[0], first.t),
        told.explain(NASTY[2], NASTY[0], first.t),
        describe(tmp_path / "fixes.parquet"),
    ]
    page = tmp_path / "page.html"
    body = "".join(value._repr_html_() for value in shown)
    page.write_text(f"<!doctype html><meta charset='utf-8'><body>{body}</body>", encoding="utf-8")
    harmless(open_page(page), SHOWN)


def test_the_page_over_the_runs_of_a_sweep(tmp_path: Path, open_page: Callable[..., Any]) -> None:
    for n, name in enumerate(SHOWN):
        about = {"question": name, "error": name} if n % 2 else {"question": name}
        record(tmp_path, {"engine": name, "radius_m": n}, {"note": name, "told": n}, **about,
               state="failed" if n % 2 else "finished", versions={name: name})  # fmt: skip
    page = compare(tmp_path)
    for width in (800, 1280):
        opened = open_page(page, width)
        harmless(opened, SHOWN)
        assert opened.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert opened.page.locator("img").first.evaluate("picture => picture.naturalWidth") > 100
