"""Numba, with compiled code kept on disk.

`compiled` is ``numba.njit`` without fast-math, its result kept in the user's cache (`workbench.caches`). Numba looks
only at the file of the function itself to see whether kept code is stale, while kernels stand on the functions of
`workbench.geometry`; so the folder's name carries a digest of that file, and a change to it starts a new one.

`compiled_from` compiles plain functions that call one another, such as those of `workbench.geometry`, as they stand.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
from numba.core import config

from workbench import geometry
from workbench.caches import cache_dir


def _digest() -> str:
    files = [Path(geometry.__file__), Path(__file__)]
    said = hashlib.sha256(numba.__version__.encode())
    for file in files:
        said.update(file.read_bytes() if file.exists() else b"")
    return said.hexdigest()[:16]


def folder() -> Path:
    """Where compiled kernels are kept; a folder that can be written."""
    place = cache_dir() / "numba" / _digest()
    if not place.exists():
        print(f"workbench: kernels are compiled, once on this machine, into {place.parents[1]}", file=sys.stderr)
    place.mkdir(parents=True, exist_ok=True)
    return place


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
