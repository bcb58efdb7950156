"""Scaling curves: the same comparison while one quantity grows, as a table, a file and a drawing.

``fixes`` grow with their mobiles, so that the density of events stays what it was; ``places`` shrink as they become
more, so that the match rate does; ``attributes`` are further dimensions that both sides have a say in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from workbench.bench import attributes, peers
from workbench.bench.compare import Contender, measure
from workbench.bench.rows import Options
from workbench.bench.workload import Workload
from workbench.replay import replay

CURVES = {
    "fixes": [1_000_000, 10_000_000, 100_000_000],
    "places": [1_000, 10_000, 100_000],
    "attributes": [2, 8, 16],
}
AT_LEAST_M = 25.0


class Step(NamedTuple):
    """One contender at one value."""

    value: int
    contender: str
    seconds: float
    transitions: float
    """the match rate: notifications for each fix"""
    right: bool


def measured(name: str, values: Sequence[int], asked: Options, repeats: int) -> Iterator[Step]:
    """Each contender's best time for each value; DuckDB first, which says what is right."""
    for value in values:
        load = load_of(name, value, asked)
        for timing in measure(_contenders(name, value, load, asked), repeats):
            yield Step(value, timing.contender, timing.seconds, 2 * (timing.timelines or 0) / load.fixes, timing.right)


def load_of(name: str, value: int, asked: Options) -> Workload:
    """The workload of a step.

    >>> asked = Options(Path("."), fixes=1_000_000)
    >>> load_of("fixes", 100_000, asked).mobiles, load_of("places", 100_000, asked).radius_m
    (100, 50.0)
    """
    match name:
        case "fixes":
            return asked._replace(fixes=value).load(mobiles=max(10, value // 1_000))
        case "places":
            radius_m = max(AT_LEAST_M, 500.0 * (1_000 / value) ** 0.5)
            return asked._replace(places=value).load(fixes=1_000_000, mobiles=1_000, radius_m=radius_m)
    return asked.load(fixes=1_000_000, mobiles=1_000)


def _contenders(name: str, value: int, load: Workload, asked: Options) -> Iterator[Contender]:
    if name == "attributes":
        yield from attributes.contenders(load, asked.folder, value, asked.spark)
        return
    fixes, places = load.write(asked.folder)
    parameters = {"radius_m": load.radius_m}
    yield Contender(peers.PEERS[0].name, lambda: peers.duckdb(fixes, places, load.radius_m))
    yield Contender("workbench, local", lambda: replay("proximity", fixes, places, "local", parameters).timelines)
    if asked.spark:
        on_spark = partial(replay, "proximity", fixes, places, "spark", parameters)
        yield Contender("workbench, Spark over raw data", on_spark)


def written(name: str, steps: Sequence[Step], out: Path) -> list[Path]:
    """The steps as a CSV file and a drawing."""
    out.mkdir(parents=True, exist_ok=True)
    files = [out / f"{name}.csv", out / f"{name}.png"]
    pd.DataFrame(steps, columns=Step._fields).to_csv(files[0], index=False)
    drawn(name, steps).savefig(files[1], dpi=120)
    return files


def drawn(name: str, steps: Sequence[Step]) -> Any:
    """The steps as curves on logarithmic axes."""
    from workbench.views.plots import scaling

    right = [step for step in steps if step.right]
    curves = {
        contender: [(step.value, step.seconds) for step in right if step.contender == contender]
        for contender in dict.fromkeys(step.contender for step in right)
    }
    rates = [step.transitions for step in right]
    return scaling(curves, name, "seconds", f"notifications for each fix: {min(rates):.1%} to {max(rates):.1%}")
