"""Execute notebooks in place, and keep of their outputs what a reader without scripts can see.

    .venv/bin/python tools/refresh_notebooks.py notebooks/0-start/start_here.ipynb ...

Maps and widgets are taken out (run the cell to see them); the picture and the sentence beside them stay.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

SCRIPTS = ("<script", "<iframe", "srcdoc=")


def kept(output: dict) -> dict:
    """An output without what needs scripts to be seen."""
    data = output.get("data", {})
    if any(sign in str(data.get("text/html", "")) for sign in SCRIPTS):
        data.pop("text/html")
        data["text/plain"] = "a map: run this cell to see it"
    data.pop("application/vnd.jupyter.widget-view+json", None)
    return output


def refresh(path: Path) -> None:
    """Execute one notebook in its own folder and write it back."""
    notebook = nbformat.read(path, as_version=4)
    here = {"metadata": {"path": path.parent}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=here).execute()
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = [kept(output) for output in cell.outputs]
    nbformat.write(notebook, path)
    print(f"{path}: {path.stat().st_size / 1000:,.0f} kB")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        refresh(Path(name))
