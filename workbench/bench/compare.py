"""One table: how long the same timelines take, here and with what a user would pick instead.

Every contender starts from the same Parquet files and ends with full timelines in memory (Spark: on disk). The first
one says what is right; the answers of the others are compared with its answer, whole tables, and the time of one that
differs does not count. Nothing is kept between repetitions but what a user's second run would find too: compiled
kernels and a warm Spark session.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from workbench.bench.islands import in_order


class Contender(NamedTuple):
    """What it is called, and how it makes timelines; work that makes none gives None, and is only timed."""

    name: str
    timelines: Callable[[], Any]


@dataclass(frozen=True)
class Timing:
    """The best of some runs, in seconds, and whether the answer was right."""

    contender: str
    seconds: float
    timelines: int | None
    right: bool


def measure(contenders: Iterable[Contender | tuple[str, Callable[[], Any]]], repeats: int = 3) -> Iterator[Timing]:
    """Each contender's best time; the first one says what is right."""
    answer: pd.DataFrame | None = None
    for name, run in contenders:
        best, found = float("inf"), None
        for _ in range(repeats):
            found = None  # what a run made is gone before the next one begins
            began = time.perf_counter()
            found = run()
            best = min(best, time.perf_counter() - began)
        if found is None:
            yield Timing(name, best, None, True)
            continue
        told = in_order(_here(found))
        answer = told if answer is None else answer
        yield Timing(name, best, len(told), told.equals(answer))


def _here(found: Any) -> pd.DataFrame:
    """Timelines in this process, wherever they were made; not a part of what is timed."""
    made = getattr(found, "timelines", found)
    return made if isinstance(made, pd.DataFrame) else made.toPandas()


def table(timings: Iterable[Timing]) -> str:
    """Times as ratios to the first contender."""
    rows, base = ["    best     ratio   timelines"], None
    for t in timings:
        base = base or t.seconds
        said = "" if t.timelines is None else f"{t.timelines:,}"
        ratio = f"{t.seconds / base:6.2f} x" if t.right else "   WRONG"
        rows.append(f"{t.seconds:8.2f} s  {ratio}  {said:>10}  {t.contender}")
    return "\n".join(rows)
