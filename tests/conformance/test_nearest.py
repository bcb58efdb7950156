"""The nearest of places that stay: ties, k of them, some of them, from files and from tables, as the reference says."""

from __future__ import annotations

import warnings
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from workbench import geometry
from workbench.engines import nearest, sites
from workbench.model import Scenario, Space, column, location, other, own, publications, region, subscriptions
from workbench.replay import replay

goods = Space("goods", kind=str) | location


def scenario(k: int, turned: bool, some: bool, more: bool) -> Scenario:
    """Mobiles and the places that are nearest to them; either side may be the one who asks."""
    looked_at = {"site": region(goods, kind=column.kind, position=column.position)}
    here = {"here": region(location, position=column.position)}
    narrowed = {"among": "places.site", "kind": "a"} if some else {}
    ask, answer = (other, own) if turned else (own, other)
    wanted = ask.here.nearest(answer.site, space=location, k=k, **narrowed)
    if more:
        wanted = wanted & ask.here.within(4, answer.site, space=location)
    asking = {"filter": wanted}
    return Scenario(
        [location, goods],
        [publications("places", rows="places", regions=looked_at, **(asking if turned else {}))],
        [subscriptions("mobiles", rows="fixes", regions=here, **({} if turned else asking))],
    )


def tables(draw: Random, planar: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    unit, names = (1.0, ("x", "y")) if planar else (0.001, ("lon", "lat"))
    fixes = pd.DataFrame(
        [
            {"mobile": m, "t": t, **{name: draw.randrange(-3, 12) * unit for name in names}}
            for t in range(1, 25)
            for m in range(3)
            if draw.random() < 0.7
        ]
    )
    places = pd.DataFrame(
        [
            {"place": n, "kind": draw.choice("ab"), **{name: draw.randrange(9) * unit for name in names}}
            for n in range(draw.choice([1, 4, 30]))
        ]
    )
    return fixes, places


@pytest.mark.parametrize("seed", range(24))
def test_nearest_places_give_the_tables_of_the_reference(seed: int, tmp_path: Path) -> None:
    draw = Random(seed)
    k, turned, some, more = draw.choice([1, 1, 2, 5]), draw.random() < 0.3, draw.random() < 0.4, draw.random() < 0.3
    fixes, places = tables(draw, draw.random() < 0.5)
    made = scenario(k, turned, some, more)
    until = draw.choice([None, 12])
    fixes.to_parquet(tmp_path / "fixes.parquet", index=False, row_group_size=draw.choice([9, 1000]))
    judge = replay(made, fixes, places, engine="reference", until=until)
    if not more and (not some or (places["kind"] == "a").any()):
        assert nearest.run(made, tmp_path / "fixes.parquet", places) is not None
    for source in (fixes, tmp_path / "fixes.parquet"):
        asked = replay(made, source, places, until=until)
        assert_frame_equal(asked.timelines, judge.timelines, check_exact=True)
        unequal = {"seconds", "engine"}
        assert {n: v for n, v in asked.metrics.items() if n not in unequal} == {
            n: v for n, v in judge.metrics.items() if n not in unequal
        }


@pytest.mark.parametrize("change", ["moves", "opens later", "closes"])
def test_places_that_change_take_the_general_way(change: str, tmp_path: Path) -> None:
    fixes, places = tables(Random(3), planar=True)
    places["t"], places["op"] = pd.array([None] * len(places), "Int64"), None
    row = places.iloc[0].to_dict()
    if change == "opens later":
        places.loc[0, "t"] = 9
    else:
        later = {**row, "t": 9, "op": "update" if change == "moves" else "remove", "x": 8.0, "y": 8.0}
        places = pd.DataFrame([*places.to_dict("records"), later]).astype({"t": "Int64"})
    fixes.to_parquet(tmp_path / "fixes.parquet", index=False)
    judge = replay(scenario(2, False, False, False), fixes, places, engine="reference")
    for source in (fixes, tmp_path / "fixes.parquet"):
        asked = replay(scenario(2, False, False, False), source, places)
        assert_frame_equal(asked.timelines, judge.timelines, check_exact=True)


def test_nobody_is_his_own_neighbour() -> None:
    _, places = tables(Random(4), planar=True)
    spots = {"spot": region(location, position=column.position)}
    made = Scenario(
        [location],
        [publications("offers", rows="places", regions=spots)],
        [
            subscriptions(
                "rivals", rows="places", regions=spots, filter=own.spot.nearest(other.spot, space=location, k=2)
            )
        ],
    )
    fixes = pd.DataFrame({"mobile": [1], "t": [1], "x": [0.0], "y": [0.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        judge = replay(made, fixes, places, engine="reference")
        asked = replay(made, fixes, places)
    assert len(judge.timelines)
    assert_frame_equal(asked.timelines, judge.timelines, check_exact=True)


@given(st.integers(0, 2**32))
def test_the_walk_over_cells_finds_what_a_look_at_all_finds(seed: int) -> None:
    draw = Random(seed)
    rng = np.random.default_rng(seed)
    planar, n, k = draw.random() < 0.5, draw.choice([1, 2, 7, 60]), draw.choice([1, 2, 3, 9])
    spread = draw.choice([(10, 10), (100, 1), (0, 50)]) if planar else draw.choice([(1, 1), (80, 70), (10, 80)])
    x, y = (rng.uniform(-s, s, n) for s in spread)
    if draw.random() < 0.5:
        x, y = np.round(x), np.round(y)
    px, py = rng.uniform(-90, 90, 20), rng.uniform(-89, 89, 20)
    px[:5], py[:5] = x[rng.integers(0, n, 5)], y[rng.integers(0, n, 5)]
    grid, t = sites.sites_of(x, y, np.zeros(n), np.arange(n)), np.arange(20)
    alone = (np.arange(21), t, t + 1, np.ones(20, bool), px, py, np.zeros(20), np.full(20, -1))
    lines = sites.found_by(*alone, k, grid, not planar, 2)
    assert lines is not None
    for m in range(20):
        if planar:
            value = [geometry.planar_squared(px[m], py[m], 0.0, x[i], y[i], 0.0) for i in range(n)]
        else:
            value = [geometry.haversine(px[m], py[m], x[i], y[i]) for i in range(n)]
        limit = sorted(value)[min(k, n) - 1]
        assert sorted(lines[lines[:, 1] == m, 0]) == [i for i in range(n) if value[i] <= limit]
