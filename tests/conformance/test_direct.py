"""The direct way from Parquet gives the reference's tables, and leaves to the general way whatever is unusual."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from workbench.engines import direct
from workbench.model import Scenario, column, disc, location, other, own, publications, region, subscriptions
from workbench.replay import replay
from workbench.scenarios import proximity

START = pd.Timestamp("2024-01-01T00:00:00Z")


def fixes_of(draw: Random, metric: str, mobiles: list[object], stamps: bool) -> pd.DataFrame:
    unit, names = (1.0, ("x", "y")) if metric == "planar" else (0.001, ("lon", "lat"))
    rows = [
        {"mobile": m, "t": t, **{name: draw.randrange(-1, 8) * unit for name in names}}
        for t in range(1, 30)
        for m in mobiles
        if draw.random() < 0.7
    ]
    frame = pd.DataFrame(rows)
    if stamps:
        frame["t"] = (START + pd.to_timedelta(frame["t"], unit="s")).astype("datetime64[ms, UTC]")
    return frame


def places_of(draw: Random, metric: str) -> pd.DataFrame:
    unit = 1.0 if metric == "planar" else 0.001
    rows = []
    for n in range(6):
        x, y, side = (draw.randrange(6) * unit for _ in range(3))
        side = side or unit
        kinds = [
            f"POINT ({x} {y})",
            f"POLYGON (({x} {y}, {x + side} {y}, {x + side} {y + side}, {x} {y + side}, {x} {y}))",
            f"POLYGON (({x} {y}, {x + side} {y}, {x} {y + side}, {x} {y}))",
            f"LINESTRING ({x} {y}, {x + side} {y + side})",
        ]
        step_m = 1.0 if metric == "planar" else 111.19492664455873
        radius_m = draw.choice([None, step_m, 2 * step_m])
        rows.append({"place": f"p{n}", "geometry": draw.choice(kinds), "radius_m": radius_m})
    return pd.DataFrame(rows)


@pytest.mark.parametrize("seed", range(24))
def test_parquet_gives_the_tables_of_the_reference(seed: int, tmp_path: Path) -> None:
    draw = Random(seed)
    metric = draw.choice(["planar", "wgs84"])
    mobiles: list[object] = draw.choice([[3, 1, 7, -2], [219_000_605, 7, -3], ["b", "a", "é"]])
    fixes, places = fixes_of(draw, metric, mobiles, draw.random() < 0.5), places_of(draw, metric)
    if draw.random() < 0.5:
        fixes = fixes.sort_values(["mobile", "t"], kind="stable")
    path = tmp_path / "fixes.parquet"
    fixes.to_parquet(path, index=False, row_group_size=draw.choice([7, 1000]))
    radius_m = 1.5 if metric == "planar" else 150.0
    until = draw.choice([None, fixes["t"].sort_values().iloc[len(fixes) // 2]])
    assert direct.run(proximity.scenario(radius_m), path, places) is not None
    judge = replay("proximity", fixes, places, engine="reference", parameters={"radius_m": radius_m}, until=until)
    asked = replay("proximity", path, places, engine="local", parameters={"radius_m": radius_m}, until=until)
    assert len(judge.timelines)
    assert_frame_equal(asked.timelines, judge.timelines, check_exact=True)
    assert_frame_equal(asked.notifications, judge.notifications, check_exact=True)
    unequal = {"seconds", "engine"}
    assert {k: v for k, v in asked.metrics.items() if k not in unequal} == {
        k: v for k, v in judge.metrics.items() if k not in unequal
    }


def test_publications_may_move_and_subscriptions_stay(tmp_path: Path) -> None:
    fixes = fixes_of(Random(5), "planar", [1, 2], False)
    places = pd.DataFrame({"place": [10, 11], "x": [2.0, 4.0], "y": [2.0, 5.0]})
    cars = publications(
        "cars",
        rows="fixes",
        regions={"here": region(location, position=column.position)},
        filter=own.here.within(1, other.yard, space=location),
    )
    yards = subscriptions("yards", rows="places", regions={"yard": region(location, position=disc(column.position, 1))})
    scenario = Scenario([location], [cars], [yards])
    fixes.to_parquet(tmp_path / "fixes.parquet", index=False)
    assert direct.run(scenario, tmp_path / "fixes.parquet", places) is not None
    judge = replay(scenario, fixes, places, engine="reference")
    asked = replay(scenario, tmp_path / "fixes.parquet", places)
    assert_frame_equal(asked.timelines, judge.timelines, check_exact=True)


UNUSUAL = {
    "a repeated instant": lambda f: pd.concat([f, f.head(1)]),
    "an operation": lambda f: f.assign(op=None),
    "heights": lambda f: f.assign(z=0.0),
    "whole numbers as coordinates": lambda f: f.astype({"x": "int64"}),
    "times going back": lambda f: f.iloc[::-1],
}


@pytest.mark.parametrize("what", UNUSUAL)
def test_unusual_fixes_take_the_general_way(what: str, tmp_path: Path) -> None:
    fixes = UNUSUAL[what](fixes_of(Random(1), "planar", [1, 2], False))
    places = pd.DataFrame({"place": ["a"], "x": [2.0], "y": [2.0]})
    fixes.to_parquet(tmp_path / "fixes.parquet", index=False)
    assert direct.run(proximity.scenario(2), tmp_path / "fixes.parquet", places) is None
    judge = replay("proximity", fixes, places, engine="reference", parameters={"radius_m": 2})
    asked = replay("proximity", tmp_path / "fixes.parquet", places, parameters={"radius_m": 2})
    assert_frame_equal(asked.timelines, judge.timelines, check_exact=True)


def test_places_that_change_take_the_general_way(tmp_path: Path) -> None:
    fixes = fixes_of(Random(1), "planar", [1, 2], False)
    places = pd.DataFrame({"place": ["a", "a"], "t": [3, 9], "op": ["add", "remove"]})
    places["x"] = places["y"] = [2.0, None]
    fixes.to_parquet(tmp_path / "fixes.parquet", index=False)
    assert direct.run(proximity.scenario(2), tmp_path / "fixes.parquet", places) is None


@pytest.mark.parametrize("many", [64, 65])
def test_a_mobile_in_very_many_places_at_once(many: int, tmp_path: Path) -> None:
    fixes = fixes_of(Random(many), "planar", [4, 9], False)
    draw = Random(many)
    places = pd.DataFrame({"place": range(many), "x": [3.0 + draw.random() / 4 for _ in range(many)], "y": 3.0})
    fixes.to_parquet(tmp_path / "fixes.parquet", index=False, row_group_size=7)
    # as many as its list has room for, or one more
    assert (direct.run(proximity.scenario(2), tmp_path / "fixes.parquet", places) is not None) == (many == 64)
    judge = replay("proximity", fixes, places, engine="reference", parameters={"radius_m": 2})
    asked = replay("proximity", tmp_path / "fixes.parquet", places, parameters={"radius_m": 2})
    assert_frame_equal(asked.timelines, judge.timelines, check_exact=True)
