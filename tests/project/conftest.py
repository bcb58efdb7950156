"""A machine without Java, for tests that start programs on it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def path_without_java(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PATH with every program of this machine's, except Java's."""
    folder = tmp_path_factory.mktemp("bin")
    for directory in os.environ.get("PATH", "").split(os.pathsep):
        for program in Path(directory).iterdir() if Path(directory).is_dir() else ():
            link = folder / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)
