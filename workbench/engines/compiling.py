"""Numba, with compiled code kept on disk.

`compiled` is ``numba.njit`` without fast-math, its result kept in a folder of the user: under ``WORKBENCH_CACHE``,
the user's cache, else a temporary folder. Numba looks only at the file of the function itself to see whether kept
code is stale, while kernels stand on the functions of `workbench.geometry`; so the folder's name carries a digest of
that file, and a change to it starts a new one.

`compiled_from` compiles plain functions that call one another, such as those of `workbench.geometry`, as they stand.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
from numba.core import config

from workbench import geometry


def _digest() -> str:
    files = [Path(geometry.__file__), Path(__file__)]
    said = hashlib.sha256(numba.__version__.encode())
    for file in files:
        said.update(file.read_bytes() if file.exists() else b"")
    return said.hexdigest()[:16]


def folder() -> Path:
    """Where compiled kernels are kept; a folder that can be written."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    choices = [os.environ.get("WORKBENCH_CACHE"), os.path.join(home, "workbench")]
    for choice in filter(None, choices):
        place = Path(choice) / "numba" / _digest()
        try:
            fresh = not place.exists()
            place.mkdir(parents=True, exist_ok=True)
            if os.access(place, os.W_OK):
                if fresh:
                    print(f"workbench: kernels are compiled, once on this machine, into {choice}", file=sys.stderr)
                return place
        except OSError:
            continue
    return Path(tempfile.mkdtemp(prefix="workbench-numba-"))


_FOLDER = folder()


def compiled(function: Callable[..., Any], inline: bool = False) -> Any:
    """The function compiled, without fast-math, kept on disk; ``inline`` where a call would cost more than it does."""
    # The folder is asked for when a function is decorated; other users of Numba keep theirs.
    settings: Any = config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(_FOLDER)
    try:
        kept = numba.njit(cache=True, nogil=True, error_model="numpy", inline="always" if inline else "never")
        return kept(function)
    finally:
        settings.CACHE_DIR = before


def inlined(function: Callable[..., Any]) -> Any:
    """A function that becomes a part of the compiled ones that call it: arrays handed on are counted at each call."""
    return compiled(function, inline=True)


def compiled_from(functions: Iterable[Callable[..., Any]]) -> dict[str, Any]:
    """Plain functions compiled as they stand, each calling the compiled ones before it."""
    done: dict[str, Any] = {}
    for function in functions:
        assert isinstance(function, FunctionType)
        around = {**function.__globals__, **done}
        copy = FunctionType(function.__code__, around, function.__name__, function.__defaults__)
        copy.__module__ = function.__module__
        copy.__qualname__ = function.__qualname__
        done[function.__name__] = compiled(copy)
    return done
