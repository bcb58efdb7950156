"""Numba, with compiled code kept on disk.

`compiled` is ``numba.njit`` without fast-math, its result kept in the user's cache (`workbench.caches`). Numba looks
only at the file of the function itself to see whether kept code is stale, while kernels stand on kernels of other files
and on `workbench.geometry`; so the folder's name carries a digest of all of them, and a change to one starts a new one.

`compiled_from` compiles plain functions that call one another, such as those of `workbench.geometry`, as they stand.
"""

from __future__ import annotations

import gc
import hashlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
import numpy as np
from numba.core import config, event
from numba.core.registry import CPUDispatcher

from workbench.caches import cache_dir

KERNELS = (
    "compiling", "geometry",
    "engines/approaching", "engines/cells", "engines/crossings", "engines/encountered", "engines/encounters",
    "engines/exchange", "engines/field_kernels", "engines/growing", "engines/intervals", "engines/kernels",
    "engines/sites", "engines/slices", "engines/streams", "engines/thinning",
    "brokering/delivery/draws", "brokering/delivery/kernel", "brokering/scopes/kernel", "datasets/preparing",
)  # fmt: skip
"""the files whose code is compiled"""


def _digest() -> str:
    said = hashlib.sha256(numba.__version__.encode())
    for name in KERNELS:
        file = Path(__file__).parent / f"{name}.py"
        said.update(file.read_bytes() if file.exists() else b"")
    return said.hexdigest()[:16]


def folder() -> Path:
    """Where compiled kernels are kept; a folder that can be written."""
    place = cache_dir() / "numba" / _digest()
    place.mkdir(parents=True, exist_ok=True)
    return place


_FOLDER = folder()
made: list[Any] = []
"""what Python may call, compiled or not yet"""


def foretell() -> None:
    """Say that kernels are going to be compiled, where none has been yet on this machine: for processes that do not."""
    if not any(_FOLDER.rglob("*.nbi")):
        _watch.say()


def _is_worker() -> bool:
    """Whether this is a Python worker of Spark, of which there are many: the driver speaks for them."""
    main = getattr(sys.modules["__main__"], "__spec__", None)
    return "pyspark.worker" in sys.modules or getattr(main, "name", None) == "pyspark.worker"


class _Watch(event.Listener):
    """Says when the first kernel of a process is compiled, and keeps the collector of garbage out of it.

    A compiler keeps nearly all that it makes until it is done: looking through it takes a tenth of the time, in vain.
    """

    def __init__(self) -> None:
        self.said = _is_worker()
        self.depth = 0
        self.collects = False

    def say(self) -> None:
        if not self.said:
            self.said = True
            print(f"workbench: kernels are compiled, once on this machine, into {_FOLDER.parents[1]}", file=sys.stderr)

    # Numba compiles one function at a time, those that it calls inside of it.
    def on_start(self, event: event.Event) -> None:
        if event.data["dispatcher"].py_func.__module__.startswith("workbench."):
            self.say()
        if self.depth == 0:
            self.collects = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, event: event.Event) -> None:
        self.depth -= 1
        if self.depth == 0 and self.collects:
            gc.enable()


_watch = _Watch()
event.register("numba:compile", _watch)


def _kept(function: Callable[..., Any], **options: Any) -> Any:
    # The folder is asked for when a function is decorated; other users of Numba keep theirs.
    settings: Any = config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(_FOLDER)
    try:
        # Nobody calls these as functions of C: what would let him takes a tenth of the time.
        every: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
        return numba.njit(cache=True, **every, **options)(function)
    finally:
        settings.CACHE_DIR = before


def compiled(function: Callable[..., Any]) -> Any:
    """The function compiled, without fast-math, kept on disk."""
    made.append(_kept(function))
    return made[-1]


class _Callee(CPUDispatcher):  # type: ignore[misc]
    def __call__(self, *_: Any) -> Any:
        raise TypeError(f"only kernels can call {self.py_func.__name__}: it has no way in for Python")


def callee(function: Callable[..., Any]) -> Any:
    """A function that only compiled ones call: for Python there is no way in, which would take long to compile."""
    kept = _kept(function, no_cpython_wrapper=True)
    if isinstance(kept, CPUDispatcher):  # with Numba switched off it is the function
        kept.__class__ = _Callee
    return kept


def inlined(function: Callable[..., Any]) -> Any:
    """A function that becomes a part of the compiled ones that call it: arrays handed on are counted at each call."""
    return _kept(function, inline="always")


def read_only(array: np.ndarray) -> np.ndarray:
    """The same numbers, not to be written to.

    Numba compiles a kernel once more for such an array, and an array of Arrow or pandas is one, or is not, as it
    happened to be copied. What comes from there goes through here, so that there is one kind.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def compiled_from(functions: Iterable[Callable[..., Any]]) -> dict[str, Any]:
    """Plain functions compiled as they stand, each calling those before it; for compiled ones, as `callee`."""
    done: dict[str, Any] = {}
    for function in functions:
        assert isinstance(function, FunctionType)
        around = {**function.__globals__, **done}
        copy = FunctionType(function.__code__, around, function.__name__, function.__defaults__)
        copy.__module__ = function.__module__
        copy.__qualname__ = function.__qualname__
        done[function.__name__] = callee(copy)
    return done
