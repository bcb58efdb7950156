"""Notebooks as they are kept: executed, checked, small, and fit to be run with other parameters.

nbval never compares a cell that has no execution count: a notebook without outputs would pass whatever it prints.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted(p for p in (ROOT / "notebooks").rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
READING = ("0-start", "1-concepts", "2-services")
"""The folders whose notebooks are read line by line: short cells, no functions."""


def cells(path: Path, kind: str = "code") -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == kind]


def tags(cell: dict[str, Any]) -> list[str]:
    return cell["metadata"].get("tags", [])


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def outputs(cell: dict[str, Any]) -> str:
    return json.dumps(cell["outputs"], ensure_ascii=False)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT / "notebooks").as_posix()


every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
every_reading = pytest.mark.parametrize("path", [p for p in NOTEBOOKS if p.parent.name in READING], ids=name_of)


def test_there_are_notebooks() -> None:
    assert {path.parent.name for path in NOTEBOOKS} >= set(READING)


@every_notebook
def test_every_cell_was_executed_in_order(path: Path) -> None:
    counts = [cell["execution_count"] for cell in cells(path) if source(cell).strip()]
    assert counts == list(range(1, len(counts) + 1)), "run tools/refresh_notebooks.py on it"


@every_notebook
def test_some_outputs_are_checked_and_present(path: Path) -> None:
    checked = [cell for cell in cells(path) if "nbval-check-output" in tags(cell)]
    assert checked
    assert [source(cell) for cell in checked if not cell["outputs"]] == []


@every_notebook
def test_no_output_is_an_error(path: Path) -> None:
    assert not [source(cell) for cell in cells(path) for out in cell["outputs"] if out["output_type"] == "error"]


@every_notebook
def test_exactly_one_cell_holds_the_parameters_each_with_a_type_and_a_meaning(path: Path) -> None:
    (parameters,) = [cell for cell in cells(path) if "parameters" in tags(cell)]
    lines = [line for line in source(parameters).splitlines() if line.strip()]
    if path.parent.name in READING:
        assert [line for line in lines if not re.fullmatch(r"\w+: \w+ = .+?  *# .+", line)] == []
    assert lines


@every_notebook
def test_a_notebook_is_small_and_names_no_folder_of_this_machine(path: Path) -> None:
    assert path.stat().st_size < 2_000_000
    for cell in cells(path):
        assert str(ROOT) not in outputs(cell)
        assert not re.search(r"(/home/|/ro{2}t/|/Users/|[A-Z]:\\\\Users)", outputs(cell))


@every_notebook
def test_maps_are_not_kept_and_a_picture_stands_beside_each(path: Path) -> None:
    code = cells(path)
    for n, cell in enumerate(code):
        assert "<script" not in outputs(cell) and "<iframe" not in outputs(cell)
        if re.search(r"\.map\(\s*(\w+=|\))|\bdraw_scene\(", source(cell)) and ".map(lambda" not in source(cell):
            beside = [out for near in code[n : n + 2] for out in near["outputs"] if "image/png" in out.get("data", {})]
            assert beside, source(cell)
            assert "nbval-ignore-output" in tags(cell)


@every_reading
def test_one_idea_a_cell_and_no_functions(path: Path) -> None:
    assert [source(cell) for cell in cells(path) if len(source(cell).splitlines()) > 15] == []
    assert [source(cell) for cell in cells(path) if re.search(r"^\s*(def|class) |lambda", source(cell), re.M)] == []
    assert len(cells(path, "markdown")) * 2 >= len(cells(path)), "about as much prose as code"


def test_the_readme_names_every_notebook() -> None:
    text = (ROOT / "notebooks" / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"\]\(([^)#]+\.ipynb)\)", text)
    assert sorted(name_of(path) for path in NOTEBOOKS) == sorted(listed)
