"""Tiny notebooks, written by the tests that run them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a notebook: the source of its parameters cell, then its other cells; by default `tiny.ipynb`."""

    def write(parameters: str | None, *cells: str, name: str = "tiny.ipynb", kernel: str = "python3") -> Path:
        notebook = new_notebook(cells=[new_markdown_cell("# A question"), *map(new_code_cell, cells)])
        if parameters is not None:
            notebook.cells.insert(1, new_code_cell(parameters, metadata={"tags": ["parameters"]}))
        notebook.metadata["kernelspec"] = {"name": kernel, "display_name": kernel, "language": "python"}
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
        return path

    return write
