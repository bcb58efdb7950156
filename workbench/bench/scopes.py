"""Notifications through a graph of scopes on Spark, beside a plain join: ``python -m workbench.bench.scopes``.

10 million notifications of 100,000 components in 1,000 scopes: six levels, a third of the scopes with two superscopes
(diamonds), half of the edges filtered, one in twenty mapped. The plain join is told the answer beforehand: whom each
component reaches with each kind of notification, with the factor and the currency that mappings on the way give, as a
Parquet table that nobody else has and whose making is not timed. It is the least that a join can do.

Both read the same Parquet table of notifications and make the same rows, which is checked by a hash over all cells
before a time counts. Rows are written as Parquet; with ``--nowhere`` they are not (Spark's ``noop``), but what Python
makes still has to be handed to the JVM. The best of some runs each, taken in turn, in one warm session.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.brokering.scopes.definition import Notification, deliveries
from workbench.brokering.scopes.graph import OPEN, Edge, Scope, ScopeGraph
from workbench.brokering.scopes.interfaces import Interface, interface, kinds, passes
from workbench.brokering.scopes.mappings import converting
from workbench.brokering.scopes.tabular import delivered
from workbench.session import spark_session

KINDS = ("Accept", "News", "Order", "Quote", "Trade")
LEVELS = (0.02, 0.04, 0.09, 0.15, 0.25, 0.45)
"""how the scopes are shared out from the top to the bottom"""
FILES = 8
RATES = {"EUR": 0.92, "GBP": 0.79, "JPY": 151.0}


def world(scopes: int, components: int, shares: int, seed: int = 1) -> tuple[ScopeGraph, dict[str, Interface]]:
    """A graph of six levels with diamonds, and what its components subscribe to."""
    draw = np.random.default_rng(seed)
    kinds_let = [kinds(*draw.choice(KINDS, size, replace=False)) for size in (3, 4) for _ in range(20)]
    mappings = [converting(c, scale={"price": r}, put={"currency": c}, only=passes(currency="USD"))
                for c, r in RATES.items()]

    def edge() -> Edge:
        filtered, mapped, out = draw.random(3) < (0.5, 0.05, 0.5)
        let = kinds_let[draw.integers(len(kinds_let))] if filtered else OPEN
        mapping = mappings[draw.integers(len(mappings))] if mapped else None
        return Edge(output=let, mapping_out=mapping) if out else Edge(input=let, mapping_in=mapping)

    counts = np.maximum(1, np.round(np.array(LEVELS) * scopes)).astype(int)
    counts[-1] += scopes - counts.sum()
    levels = [[f"L{level}.{k}" for k in range(count)] for level, count in enumerate(counts)]
    edges: dict[tuple[str, str], Edge] = {}
    for above, level in pairwise(levels):
        for name in level:
            for scope in draw.choice(above, min(len(above), 1 + int(draw.random() < 1 / 3)), replace=False):
                edges[name, str(scope)] = edge()
    below = [name for level in levels[2:] for name in level]
    for component, (one, other) in enumerate(draw.integers(0, len(below), (components, 2))):
        for scope in {one, other} if draw.random() < 0.1 else {one}:
            edges[str(component), below[scope]] = edge()
    made = ScopeGraph(frozenset(map(str, range(components))), {n: Scope() for level in levels for n in level}, edges)
    wished = draw.integers(0, shares, components)
    asked = {str(c): interface(passes(share=f"S{wished[c]}")) for c in range(components)}
    return made, asked


def known_to(components: int, shares: int) -> np.ndarray:
    """The share that each component knows about."""
    return np.random.default_rng(3).integers(0, shares, components)


def write(path: Path, notifications: int, components: int, shares: int, seed: int = 2) -> Path:
    """Notifications as Parquet: every component publishes about the one share that it knows about."""
    made = path / f"scopes-{notifications}-{components}-{shares}.parquet"
    if made.exists():
        return made
    made.mkdir(parents=True)
    draw = np.random.default_rng(seed)
    known = known_to(components, shares)
    for part, ids in enumerate(np.array_split(np.arange(notifications), FILES)):
        who = draw.integers(0, components, ids.size)
        columns = {
            "id": ids,
            "component": who,
            "t": ids // 1000,
            "kind": pa.array(KINDS).take(pa.array(draw.integers(0, len(KINDS), ids.size))),
            "share": pa.array([f"S{k}" for k in range(shares)]).take(pa.array(known[who])),
            "price": np.round(draw.uniform(1, 500, ids.size), 2),
            "currency": pa.array(["USD"] * ids.size),
        }
        pq.write_table(pa.table(columns), made / f"part-{part}.parquet")
    return made


def routes(made: ScopeGraph, asked: dict[str, Interface], path: Path, components: int, shares: int) -> Path:
    """Whom each component reaches with each kind: the answer, for the plain join."""
    target = path / f"routes-{len(made.scopes)}-{components}-{shares}.parquet"
    if not target.exists():
        who, kind = (grid.ravel() for grid in np.meshgrid(np.arange(components), np.arange(len(KINDS))))
        one_each = {
            "id": np.arange(who.size),
            "component": who,
            "kind": pa.array(KINDS).take(pa.array(kind)),
            "share": [f"S{k}" for k in known_to(components, shares)[who]],
            "price": np.ones(who.size),
            "currency": ["USD"] * who.size,
        }
        found = delivered(pa.table(one_each), made, asked)
        reached = found.rename_columns({"price": "factor"}).drop(["id", "share"])
        pq.write_table(reached.append_column("component", pa.array(who).take(found["id"])), target)
    return target


def sampled(told: Any, path: Path, made: ScopeGraph, asked: dict[str, Interface], count: int = 25) -> None:
    """Refuse an answer that is not that of the definition, for some of the notifications."""
    rows = pq.read_table(pq.ParquetDataset(path).files[0]).slice(0, count).to_pylist()
    columns = ("kind", "share", "price", "currency")
    expected = set()
    for row in rows:
        said = {name: row[name] for name in columns}
        wanting = {name: wish for name, wish in asked.items() if wish.lets(said)}
        for d in deliveries(made, Notification(row["id"], str(row["component"]), said, t=row["t"]), wanting):
            expected.add((row["id"], int(d.consumer), *(dict(d.content)[name] for name in columns)))
    found = told.where(told.id.isin([row["id"] for row in rows])).select("id", "consumer", *columns)
    assert {tuple(row) for row in found.collect()} == expected, "another answer than by enumerating paths"


def measure(
    path: Path, notifications: int, scopes: int, components: int, shares: int, repeats: int, nowhere: bool
) -> None:
    """Print a table."""
    spark = spark_session()
    made, asked = world(scopes, components, shares)
    source = write(path, notifications, components, shares)
    answer = spark.read.parquet(str(routes(made, asked, path, components, shares)))
    out = path / "out.parquet"

    def plain() -> Any:
        said = spark.read.parquet(str(source)).drop("currency")
        joined = said.join(answer, ["component", "kind"])
        columns = ["id", "consumer", "session", "t", "kind", "share"]
        return joined.selectExpr(*columns, "price * factor AS price", "currency")

    def table() -> Any:
        return delivered(spark.read.parquet(str(source)), made, asked)

    def written(what: Callable[[], Any]) -> None:
        what().write.mode("overwrite").parquet(str(out))

    to_parquet: dict[str, Callable[[], Any]] = {
        "plain join, to Parquet": lambda: written(plain),
        "scopes, Parquet to Parquet": lambda: delivered(source, made, asked, out),
    }
    to_nowhere: dict[str, Callable[[], Any]] = {
        "plain join, to nowhere": lambda: plain().write.format("noop").mode("overwrite").save(),
        "scopes, a Spark table to nowhere": lambda: table().write.format("noop").mode("overwrite").save(),
    }
    mapped = sum(e.mapping_in is not None or e.mapping_out is not None for e in made.edges.values())
    filtered = sum(e.input != OPEN or e.output != OPEN for e in made.edges.values())
    print(f"{notifications:,} notifications; {scopes:,} scopes, {components:,} components, "
          f"{len(made.edges):,} edges ({filtered:,} filtered, {mapped:,} mapped)")
    answers = set()
    contenders = to_nowhere if nowhere else to_parquet
    best = dict.fromkeys(contenders, float("inf"))
    for turn in range(repeats):
        for name, run in contenders.items():
            shutil.rmtree(out, ignore_errors=True)
            began = time.perf_counter()
            run()
            seconds = time.perf_counter() - began
            best[name] = min(best[name], seconds)
            print(f"  {turn + 1}. {name:36}{seconds:8.2f} s", flush=True)
            if turn == 0 and not nowhere:
                told = spark.read.parquet(str(out))
                answers |= set(told.selectExpr("count(*)", "sum(cast(xxhash64(*) AS decimal(38, 0)))").collect())
                if name in list(contenders)[1:]:
                    sampled(told, source, made, asked)
                    assert len(answers) == 1, "the rows differ"
                    print(f"     {next(iter(answers))[0]:,} deliveries, the same from both", flush=True)
    shutil.rmtree(out, ignore_errors=True)
    plainly = next(iter(best.values()))
    for name, seconds in best.items():
        print(f"{name:36}{seconds:8.2f} s{seconds / plainly:8.2f}")


def main(
    notifications: int = 10_000_000, scopes: int = 1_000, components: int = 100_000, shares: int = 10_000,
    repeats: int = 3, nowhere: bool = False, data: Path = Path("data/bench"),
) -> None:  # fmt: skip
    """Measure, and print a table; ``--nowhere`` is without writing."""
    measure(data, notifications, scopes, components, shares, repeats, nowhere)


if __name__ == "__main__":
    import typer

    typer.run(main)
