"""Public data sets that were downloaded: where they are looked for.

They are never part of the project. `find_data` looks into the folder that ``WORKBENCH_DATA`` names, into `data/` of the
project, and into the folder of public data that may lie beside it.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def find_data(name: str) -> Path | None:
    """The file or folder of that name, or None where nobody has put it.

    >>> find_data("no such file") is None
    True
    """
    named = os.environ.get("WORKBENCH_DATA")
    folders = [Path(named)] if named else []
    for folder in (*folders, ROOT / "data", ROOT.parent / "shared" / "data"):
        if (folder / name).exists():
            return folder / name
    return None
