"""The cases of the suite: drawn by Hypothesis, judged by the reference, the same ones for every engine.

Of each node type as many are kept as are needed for twenty in which some pair both matches and ceases to, and some of
the silent ones on the way. A run judges them once: the processes of a run share a folder.
"""

from __future__ import annotations

import fcntl
import os
import pickle
import warnings
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.conformance.strategies import Case, case
from workbench import tables
from workbench.engines import local, reference
from workbench.errors import ScenarioError

SPEAKING = 20
"""cases of each node type with a match and an unmatch"""
SILENT = 16
"""one in so many of the others is kept too"""
MOST = 400


@dataclass(frozen=True)
class Judged:
    """A case, its tables in normal form, and what the reference and the local engine say."""

    name: str
    case: Case
    data: tables.Inputs
    until: int
    judge: pd.DataFrame
    local: pd.DataFrame

    @property
    def speaks(self) -> bool:
        return speaks(self.judge)


def speaks(timelines: pd.DataFrame) -> bool:
    """Whether there is both a match and an unmatch."""
    return bool((timelines["ended"] == "unmatch").any())


def seeds(count: int) -> list[int]:
    """What Hypothesis draws: the same numbers every time, new ones under ``HYPOTHESIS_PROFILE=search``."""
    drawn: list[int] = []

    @settings(max_examples=count, phases=[Phase.generate])
    @given(st.integers(0, 2**32 - 1))
    def draw(seed: int) -> None:
        drawn.append(seed)

    draw()
    return drawn


def judged(kind: str, folder: Path) -> list[Judged]:
    """The cases with a node type, judged once in a run."""
    with open(folder / f"{kind}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = folder / f"{kind}.pickle"
        if not kept.exists():
            wanted = settings().max_examples
            made = _judged(kind, wanted if wanted > 100 else SPEAKING)
            kept.write_bytes(pickle.dumps(made))
        return pickle.loads(kept.read_bytes())  # noqa: S301 - written by this run


def _judged(kind: str, wanted: int) -> list[Judged]:
    found: list[Judged] = []
    silent = speaking = 0
    for seed in seeds(max(MOST, 10 * wanted)):
        name = f"{kind} {seed}"
        made = case(Random(name).choice, kind)
        data = tables.inputs(made.scenario, made.fixes, made.places)
        until = data.instants[1] if made.until is None else data.clock.ticks(made.until)
        said, refused = said_by(local, data, until)
        if said is not None:
            silent += not speaks(said)
            if not speaks(said) and silent % SILENT:
                continue
        judge, _ = said_by(reference, data, until)
        if judge is None:
            continue  # the model refuses this relation of two shapes; an engine may find that it does not matter
        assert said is not None, f"{name}: only the local engine says {refused}"
        speaking += speaks(said)
        found.append(Judged(name, made, data, until, judge, said))
        if speaking == wanted:
            return found
    raise AssertionError(f"only {speaking} scenarios with {kind} had both a match and an unmatch")


def said_by(engine: Any, data: tables.Inputs, until: int) -> tuple[pd.DataFrame | None, ScenarioError | None]:
    """The timelines of an engine, or how the model refuses a relation of two shapes."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a filter without an indexable part says so
            return engine.run(data, until)[0], None
    except ScenarioError as error:
        if "is not supported" in str(error) or "takes intervals, points" in str(error):
            return None, error
        raise


def shared(base: Path) -> Path:
    """A folder that all processes of a test run see."""
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "judged"
    folder.mkdir(exist_ok=True)
    return folder
