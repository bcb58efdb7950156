"""The page over the runs: made from the records only, complete in itself, and safe whatever they say."""

from __future__ import annotations

import itertools
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from workbench.cli import app
from workbench.errors import DataError
from workbench.experiments import Run, compare

EVIL = "<img src=x onerror=alert(1)>`${1}</script>"


def record(folder: Path, given: dict[str, Any], metrics: dict[str, Any], **more: Any) -> None:
    name = Run(given).name
    written = {
        "name": name, "state": "finished", "error": None, "notebook": "tiny.ipynb", "question": "Which radius?",
        "parameters": {"engine": "local", **given}, "given": list(given), "swept": list(given),
        "seed": given.get("seed"), "fingerprint": "x", "versions": {"python": "3.11"}, "git": None,
        "sources": {"notebook": "a", "library": "b"},
        "started": "2026-11-18T08:35:24.207+00:00", "duration_s": 1.5, "peak_memory_mb": 50.0, "metrics": metrics,
    }  # fmt: skip
    (folder / name).mkdir(parents=True)
    (folder / name / "notebook.ipynb").touch()
    (folder / name / "run.json").write_text(json.dumps(written | more))


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"

    def all(self, tag: str, attribute: str) -> list[str]:
        return [str(attributes[attribute]) for name, attributes in self.tags if name == tag and attribute in attributes]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for radius_m, interval_s, seed in itertools.product([250, 500], [10, 60], [1, 2]):
        given = {"radius_m": radius_m, "interval_s": interval_s, "seed": seed}
        record(tmp_path, given, {"told": radius_m * seed, "recall": 0.5, "note": "x", "none": None})
    return tmp_path


def test_the_page_has_a_row_and_links_for_each_run_and_a_plot_for_each_figure(runs: Path) -> None:
    page = Page(compare(runs))
    links = page.all("a", "href")
    assert len(links) == 16
    assert len(page.all("img", "src")) == len(["told", "recall", "duration", "memory"])
    assert all(page.all("img", "alt"))
    assert "375 ± 177" in page.text and "Which radius?" in page.text
    from urllib.parse import unquote

    assert all((runs / unquote(link)).is_file() for link in links)


def test_the_page_asks_for_nothing_from_anywhere(runs: Path) -> None:
    path = compare(runs)
    page = Page(path)
    assert not {tag for tag, _ in page.tags} & {"script", "link", "iframe", "object", "embed"}
    assert all(source.startswith("data:image/png;base64,") for source in page.all("img", "src"))
    assert not re.search(r"(https?:)?//|@import|url\(", re.sub(r"base64,[^\"]*", "", path.read_text()))


def test_text_from_the_records_is_shown_and_never_obeyed(tmp_path: Path) -> None:
    record(tmp_path, {"engine": EVIL}, {EVIL: 1, "note": EVIL}, question=EVIL, notebook=EVIL)
    record(tmp_path, {"engine": "$x$ _y"}, {"note": "b"}, state="failed", error=EVIL, versions={EVIL: EVIL})
    page = Page(compare(tmp_path))
    assert not any(attribute.startswith("on") for _, attributes in page.tags for attribute in attributes)
    assert "script" not in {tag for tag, _ in page.tags}
    assert all(source.startswith("data:") for source in page.all("img", "src"))
    assert page.text.count(EVIL) >= 5


def test_failed_runs_are_listed_with_their_error_and_not_averaged(runs: Path) -> None:
    given = {"radius_m": 750, "interval_s": 10, "seed": 1}
    record(runs, given, {"told": 1e9}, state="failed", error="cell [3]: KeyError")
    page = Page(compare(runs))
    assert "9 runs, 8 finished, 1 failed" in page.text
    assert "cell [3]: KeyError" in page.text
    assert "1,000,000,000" not in page.text


def test_runs_of_different_sources_are_not_passed_off_as_comparable(runs: Path) -> None:
    assert "differ" not in Page(compare(runs)).text
    record(runs, {"radius_m": 750, "interval_s": 10, "seed": 1}, {}, sources={"notebook": "a", "library": "c"})
    assert "different sources" in Page(compare(runs)).text
    assert "differ: notebook a, library b; notebook a, library c" in Page(compare(runs)).text


@pytest.mark.parametrize(
    "given",
    [[{}], [{"engine": "a"}, {"engine": "b"}], [{"parts": [1]}, {"parts": [2, 3]}], [{"seed": 1}, {"seed": 2}]],
)
def test_a_page_can_be_made_whatever_varies(tmp_path: Path, given: list[dict[str, Any]]) -> None:
    for each in given:
        record(tmp_path, each, {"told": 1, "share": None})
    assert f"{len(given)} runs" in Page(compare(tmp_path)).text


def test_runs_that_only_failed_make_a_page_too(tmp_path: Path) -> None:
    record(tmp_path, {"n": 1}, {}, state="failed", error="no", peak_memory_mb=None, duration_s=None)
    assert "1 failed" in Page(compare(tmp_path)).text


def test_the_command_says_where_the_page_is_and_refuses_a_folder_without_runs(runs: Path, tmp_path_factory) -> None:
    told = CliRunner().invoke(app, ["compare", str(runs)])
    assert Path(told.output.strip()) == runs / "compare.html"
    for folder, message in ((tmp_path_factory.mktemp("empty"), "holds no runs"), (runs / "none", "there is no folder")):
        refused = CliRunner().invoke(app, ["compare", str(folder)])
        assert isinstance(refused.exception, DataError) and message in str(refused.exception)
