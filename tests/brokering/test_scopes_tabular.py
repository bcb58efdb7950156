"""The table form delivers what the enumeration of paths says, in this process and on Spark; the rest it refuses."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.brokering.scope_worlds import COMPONENTS, FILTERS, MAPPINGS, SCOPES, beside
from workbench.brokering.scopes.definition import Notification, deliveries
from workbench.brokering.scopes.graph import Edge, Scope, ScopeGraph, graph
from workbench.brokering.scopes.interfaces import OPEN, Interface, interface, passes
from workbench.brokering.scopes.mappings import converting
from workbench.brokering.scopes.policies import TOP_DOWN, Delayed, Immediate, OneOf, Until
from workbench.brokering.scopes.tabular import COVERED, delivered
from workbench.errors import DataError, ScenarioError
from workbench.model import anything_but, disc
from workbench.model.columns import is_null

CONVERSIONS = (
    converting("double", scale={"n": 2}),
    converting("named", put={"kind": "l"}),
    converting("some", scale={"n": 0.5}, put={"kind": "k"}, only=FILTERS[3]),
)
PUBLISHING = (Immediate(), Delayed(3), Until(((2, 3), (5, 9))))
WISHES = (OPEN, *(interface(f) for f in FILTERS), interface(*FILTERS[:2]), interface(passes(kind=anything_but("k"))))
BOUNDARIES = (OPEN, OPEN, *(interface(f) for f in FILTERS), interface(FILTERS[0], FILTERS[3]), interface())
KINDS = ("k", "k", "l", "m", None)

World = tuple[ScopeGraph, dict[str, Interface], list[dict[str, Any]]]
Choose = Callable[[Sequence[Any]], Any]


def world_of(choose: Choose) -> World:
    """A graph, subscriptions and notifications, whoever chooses; some say nothing in a dimension."""

    def edge() -> Edge:
        mapped = [choose((None, None, *CONVERSIONS)) for _ in range(2)]
        return Edge(choose(BOUNDARIES), choose(BOUNDARIES), *mapped)

    above = {name: SCOPES[max(0, k - len(COMPONENTS) + 1) :] for k, name in enumerate((*COMPONENTS, *SCOPES))}
    edges = {(name, scope): edge() for name, scopes in above.items() for scope in scopes if choose((True, False))}
    tagged = choose((True, False))
    scopes = {n: Scope(choose(PUBLISHING), session=tagged and choose((True, False))) for n in SCOPES}
    made = ScopeGraph(frozenset(COMPONENTS), scopes, edges)
    asked = {name: choose(WISHES) for name in COMPONENTS if choose((True, True, False))}
    contexts = [None, None, *sorted(made.sessions(made.scopes)), "P R"]
    rows = [
        {"id": id, "t": choose(range(10)), "component": choose((*COMPONENTS, "P", "Q")), "context": choose(contexts),
         "kind": choose(KINDS), "n": choose(range(7))}
        for id in range(4)
    ]  # fmt: skip
    return made, asked, rows


@st.composite
def worlds(draw: st.DrawFn) -> World:
    return world_of(lambda options: draw(st.sampled_from(options)))


def by_definition(world: World) -> set[tuple[Any, ...]]:
    made, asked, rows = world
    found = set()
    for row in rows:
        said = {k: row[k] for k in ("kind", "n") if row[k] is not None}
        context = frozenset((row["context"] or "").split())
        for d in deliveries(made, Notification(row["id"], row["component"], said, context, row["t"]), asked):
            got = dict(d.content)
            found.add((row["id"], d.consumer, " ".join(sorted(d.session)), d.t, got.get("kind"), got.get("n")))
    return found


def rows_of(table: pd.DataFrame) -> list[tuple[Any, ...]]:
    listed = table[["id", "consumer", "session", "t", "kind", "n"]].itertuples(index=False)
    return [tuple(None if is_null(cell) else cell for cell in row) for row in listed]


def table_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(rows).astype({"kind": "string", "context": "string"})


@settings(max_examples=100)
@given(worlds())
def test_the_table_form_is_the_enumeration_of_paths(world: World) -> None:
    got = rows_of(delivered(table_of(world[2]), world[0], world[1]))
    assert len(set(got)) == len(got), "a representation is delivered once"
    assert set(got) == by_definition(world)


def packed(found: list[World]) -> World:
    """Many worlds beside each other in one: names carry the number of their world."""
    asked: dict[str, Interface] = {}
    rows = []
    for k, (_, wanted, said) in enumerate(found):
        asked |= {f"{name}.{k}": wish for name, wish in wanted.items()}
        for row in said:
            context = " ".join(f"{name}.{k}" for name in (row["context"] or "").split()) or None
            rows.append({**row, "id": 100 * k + row["id"], "component": f"{row['component']}.{k}", "context": context})
    return beside(made for made, _, _ in found), asked, rows


def test_the_table_form_on_spark_is_the_enumeration_of_paths(spark: Any) -> None:
    world = packed([world_of(random.Random(seed).choice) for seed in range(60)])
    notifications = spark.createDataFrame(table_of(world[2]).astype({"kind": object, "context": object}))
    told = delivered(notifications.repartition(3), world[0], world[1])
    assert told.columns == ["id", "consumer", "session", "t", "kind", "n"]
    got = rows_of(told.toPandas())
    expected = by_definition(world)
    assert len(got) == len(expected) and set(got) == expected
    assert len(expected) > 100, "the worlds say something"


def test_files_are_answered_by_files(spark: Any, tmp_path: Path) -> None:
    """Parquet in, Parquet out: tasks read and write, and texts stay codes on the way."""
    world = packed([world_of(random.Random(seed).choice) for seed in range(60, 80)])
    said = table_of(world[2])
    (tmp_path / "in").mkdir()
    for part in range(3):
        said.iloc[part::3].to_parquet(tmp_path / "in" / f"part-{part}.parquet", index=False)
    got = rows_of(delivered(tmp_path / "in", world[0], world[1], tmp_path / "out").toPandas())
    expected = by_definition(world)
    assert len(got) == len(expected) and set(got) == expected
    assert len(list((tmp_path / "out").glob("part-0*.parquet"))) == 2


# -- what it takes -------------------------------------------------------------------------------------------------

FLOOR = graph("1->S", "2->S", "S->R", "3->R")


def test_components_may_be_numbers_and_unread_columns_are_carried() -> None:
    said = pd.DataFrame({"id": ["x"], "component": [1], "seen": pd.to_datetime(["2026-01-01"]), "n": [3]})
    made = FLOOR.with_edge("S", "R", mapping_out=converting("double", scale={"n": 2}))
    got = delivered(said, made, {"2": OPEN, "3": OPEN})
    assert got[["consumer", "n"]].to_numpy().tolist() == [[2, 3.0], [3, 6.0]]
    assert got["seen"].tolist() == [pd.Timestamp("2026-01-01")] * 2
    assert delivered(said.head(0), made, {"2": OPEN}).columns.tolist() == ["id", "consumer", "session", "seen", "n"]


REFUSED = [
    (FLOOR.with_scope("S", traverse=TOP_DOWN), {}, "scope 'S' has the traverse policy 'top-down'"),
    (FLOOR.with_scope("R", delivery=OneOf()), {}, "scope 'R' has the delivery policy '1 of n'"),
    (FLOOR.with_edge("1", "S", mapping_in=MAPPINGS[0]), {}, "1 -> S: mapping 'double' is a function"),
    (FLOOR.with_edge("1", "S", mapping_in=converting("far", scale={"m": 2})), {}, "mapping 'far' changes 'm'"),
    (FLOOR.with_edge("1", "S", mapping_in=converting("odd", put={"n": "k"})), {}, "'n' is a number, got 'k'"),
    (FLOOR.with_interface("1", input=interface(passes(n=disc((0, 0), 1)))), {}, "numbers and texts only"),
    (FLOOR.with_interface("1", input=interface(passes(there={True}))), {}, "constrains 'there', a bool"),
    (FLOOR.with_scope("S", publishing=Delayed(1)), {}, "ask for a column 't' of whole numbers"),
    (FLOOR, {"S": OPEN}, "the consumer 'S' is a scope"),
]


@pytest.mark.parametrize(("made", "asked", "message"), REFUSED, ids=[message for _, _, message in REFUSED])
def test_what_is_not_covered_is_refused_by_name(made: ScopeGraph, asked: Any, message: str) -> None:
    said = pd.DataFrame({"id": [1], "component": ["1"], "kind": ["k"], "n": [1], "there": [True]})
    with pytest.raises(ScenarioError, match=re.escape(message)):
        delivered(said, made, asked)


def test_what_it_covers_is_listed() -> None:
    assert set(COVERED) == {"visibility", "interfaces", "mappings", "sessions", "publishing", "duplicates"}
    published = (Path(__file__).resolve().parents[2] / "docs" / "support.md").read_text(encoding="utf-8")
    rows = {row.split("|")[1].strip(): row for row in published.splitlines() if row.startswith("|")}
    for feature, what in COVERED.items():
        assert rows[feature].endswith(f"| {what} |"), feature
    with pytest.raises(ScenarioError, match="no column 'component'"):
        delivered(pd.DataFrame({"id": [1]}), FLOOR, {})
    with pytest.raises(DataError, match="pandas, Arrow or Spark"):
        delivered([], FLOOR, {})
