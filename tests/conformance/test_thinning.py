"""Fixes at which nothing changes can be left out: every timeline is what it was."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pandas as pd
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal

from tests.conformance.pool import said_by, seeds
from tests.conformance.strategies import NODES, Case, case
from workbench import tables
from workbench.engines import local, tasks, thinning
from workbench.model import Scenario, column, location, other, own, publications, region, subscriptions
from workbench.scenarios import named

DRAWN = 120


def steady(made: Case, draw: Random) -> Case:
    """The same scenario with one population that moves, whose fixes say everything; all others stay as they are."""
    movers = [p.name for p in made.scenario.populations if p.rows]
    if not movers:
        return made
    mover = draw.choice(movers)

    def turned(p):  # type: ignore[no-untyped-def]
        rows = "fixes" if p.name == mover else "places" if p.rows else p.rows
        return replace(p, rows=rows, profiles=None, lifetime=None, transient=False)

    sides = [[turned(p) for p in side] for side in (made.scenario.publications, made.scenario.subscriptions)]
    scenario = replace(made.scenario, publications=sides[0], subscriptions=sides[1], visibility={}, tables={})
    said = {"kind": "a", "price": 2.0, "stock": 1.0, "open": True, "radius_m": 1.0, "taste": "b"}
    fixes = made.fixes.drop(columns=[name for name in ("op", "geometry") if name in made.fixes])
    axes = [name for name in ("x", "y", "lon", "lat") if name in fixes]
    fixes["taste"] = "a"
    for cell, value in {**said, **dict.fromkeys(axes, 0.0)}.items():
        fixes[cell] = pd.Series([value if pd.isna(v) else v for v in fixes[cell]], fixes.index, dtype=type(value))
    fixes = fixes.drop_duplicates(["mobile", "t"]).sort_values(draw.choice([["t"], ["mobile", "t"]]), kind="stable")
    places = made.places.assign(taste="c")
    where = [name for name in ("x", "lon", "geometry") if name in places]
    places = places[places[where].notna().any(axis=1)].drop_duplicates("place")
    return Case(scenario, fixes, places.drop(columns=[n for n in ("op", "t") if n in places]), made.until)


def both(made: Case) -> tuple[pd.DataFrame, pd.DataFrame, int] | None:
    """Timelines of all fixes and of those that are kept, and how many were left out; None where none can be."""
    if thinning.atoms_of(made.scenario) is None:
        return None
    head = tables.inputs(made.scenario, made.fixes[:1], made.places)
    thin = thinning.prepared(head, frozenset(made.fixes.columns))
    table = pa.Table.from_pandas(made.fixes, preserve_index=False)
    rows = thin and thin.kept(table, thinning.numbered(table["mobile"]), tasks.ticks_of(table))
    if rows is None:
        return None
    data = tables.inputs(made.scenario, made.fixes, made.places)
    until = data.instants[1] if made.until is None else data.clock.ticks(made.until)
    some = replace(tables.inputs(made.scenario, made.fixes[rows], made.places), span=data.instants)
    whole, fewer = (said_by(local, each, until)[0] for each in (data, some))
    return None if whole is None or fewer is None else (whole, fewer, int((~rows).sum()))


def test_random_scenarios_say_the_same_of_fewer_fixes() -> None:
    thinned = speaking = 0
    for n, seed in enumerate(seeds(DRAWN)):
        name = f"{NODES[n % len(NODES)]} {seed}"
        draw = Random(name)
        made = steady(case(draw.choice, NODES[n % len(NODES)]), draw)
        if (found := both(made)) is None:
            continue
        whole, fewer, left_out = found
        assert_frame_equal(fewer, whole, check_exact=True, obj=name)
        thinned += left_out > 0
        speaking += left_out > 0 and bool((whole["ended"] == "unmatch").any())
    assert thinned > DRAWN // 5 and speaking > DRAWN // 25, (thinned, speaking)


def cars(**changed: object) -> pd.DataFrame:
    fixes = pd.DataFrame({"mobile": [7] * 6, "t": range(6), "x": [0.0, 90.0, 99.0, 100.0, 120.0, 301.0], "y": 0.0})
    return fixes.assign(**changed)


JAM = named("traffic")(section_start_m=100, section_end_m=300)


def kept(scenario: Scenario, fixes: pd.DataFrame, places: pd.DataFrame | None = None) -> list[int] | None:
    data = tables.inputs(scenario, fixes[:1], places)
    thin = thinning.prepared(data, frozenset(fixes.columns))
    table = pa.Table.from_pandas(fixes, preserve_index=False)
    if thin is None or (rows := thin.kept(table, thinning.numbered(table["mobile"]), tasks.ticks_of(table))) is None:
        return None
    return rows.nonzero()[0].tolist()  # type: ignore[no-any-return]


def test_the_first_fix_is_kept_and_each_at_which_an_atom_changes() -> None:
    assert kept(JAM, cars()) == [0, 3, 5]
    assert kept(JAM, cars(mobile=["a", "b", "a", "b", "a", "b"])) == [0, 1, 3, 4, 5]


@pytest.mark.parametrize(
    "changed",
    [
        {"x": [0.0, None, 99.0, 100.0, 120.0, 301.0]},
        {"x": [0.0, float("inf"), 99.0, 100.0, 120.0, 301.0]},
        {"t": [0, 1, 3, 2, 4, 5]},
        {"t": [0, 1, 1, 2, 4, 5]},
        {"op": "update"},
    ],
    ids=["null", "infinite", "not in order", "twice", "operations"],
)
def test_what_may_be_wrong_or_says_less_than_all_is_looked_at_in_the_general_way(changed: dict[str, object]) -> None:
    assert kept(JAM, cars(**changed)) is None


def test_nothing_is_left_out_where_places_change_or_mobiles_look_at_one_another() -> None:
    here = {"here": region(location, position=column.position)}
    near = own.here.within(50, other.site, space=location)
    sites = publications("sites", rows="places", regions={"site": here["here"]})
    walkers = subscriptions("walkers", rows="fixes", regions=here, filter=near)
    places = pd.DataFrame({"place": ["a", "b"], "x": [0.0, 280.0], "y": 0.0})
    made = Scenario([location], [sites], [walkers])
    assert kept(made, cars(), places) == [0, 1, 5]
    assert kept(made, cars(), places.assign(t=[1, 2])) is None
    assert kept(replace(made, subscriptions=[replace(walkers, transient=True)]), cars(), places) is None
    assert thinning.atoms_of(named("friends")()) is None and thinning.atoms_of(named("dispatch")()) is None
