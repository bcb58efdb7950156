"""Where the project keeps what can be made again: compiled kernels, a wrapped Java, the log of Spark's start."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from workbench.errors import SetupError


def cache_dir() -> Path:
    """A folder of this user for what can be made again: WORKBENCH_CACHE, the user's cache, else a temporary one."""
    own = os.environ.get("WORKBENCH_CACHE")
    xdg = os.environ.get("XDG_CACHE_HOME")
    choices = [Path(own)] if own else []
    choices += [Path(xdg) / "workbench"] if xdg and os.path.isabs(xdg) else []
    with suppress(RuntimeError):  # no home folder can be determined
        choices.append(Path.home() / ".cache" / "workbench")
    user = str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    choices.append(Path(tempfile.gettempdir()) / f"workbench-{user}")
    for choice in choices:
        try:
            choice.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.TemporaryFile(dir=choice):
                return choice
        except OSError:
            continue
    raise SetupError(f"no folder for caches can be written: {', '.join(map(str, choices))}; set WORKBENCH_CACHE to one")
