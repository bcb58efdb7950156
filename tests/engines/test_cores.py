"""However many cores share the work, the local engine gives the tables that one core gives."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from workbench.model import Scenario, column, location, other, own, publications, region, subscriptions
from workbench.replay import Replay, replay
from workbench.scenarios import named


def nearest() -> Scenario:
    return Scenario(
        [location],
        [publications("places", rows="places", regions={"site": region(location, position=column.position)})],
        [
            subscriptions(
                "mobiles",
                rows="fixes",
                regions={"here": region(location, position=column.position)},
                filter=own.here.nearest(other.site, space=location, k=2),
            )
        ],
    )


SCENARIOS = {
    "proximity": named("proximity")(radius_m=300),
    "coffee": named("coffee")(radius_m=300, pause_h=0.01, door_m=60),
    "fuel": named("fuel")(radius_m=400),
    "traffic": named("traffic")(slow_min=0.25, cars=2),
    "friends": named("friends")(near_m=100, far_m=150),
    "nearest": nearest(),
}


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pd.DataFrame]:
    draw = np.random.default_rng(8)
    mobiles, steps = 30, 60
    way = draw.integers(-1, 2, (steps, mobiles, 2)).cumsum(axis=0) * 60.0 + 1_000
    columns = {"mobile": np.tile(np.arange(mobiles), steps), "t": np.repeat(np.arange(1, steps + 1) * 20, mobiles)}
    fixes = pd.DataFrame(columns).assign(x=way[..., 0].ravel(), y=way[..., 1].ravel())
    fixes["fuel"] = draw.integers(0, 100, len(fixes)) * 1.0
    file = tmp_path_factory.mktemp("cores") / "fixes.parquet"
    fixes.to_parquet(file, index=False, row_group_size=500)
    site = draw.integers(0, 30, (2, 25)) * 60.0 + 100
    places = pd.DataFrame({"place": np.arange(25), "x": site[0], "y": site[1]})
    return file, places.assign(category=draw.choice(["coffee", "tea"], 25), price=draw.integers(50, 80, 25) * 1.0)


@pytest.mark.parametrize("from_file", [True, False])
@pytest.mark.parametrize("name", SCENARIOS)
def test_any_number_of_cores_gives_the_same_tables(
    monkeypatch: pytest.MonkeyPatch, walk: tuple[Path, pd.DataFrame], name: str, from_file: bool
) -> None:
    file, places = walk
    fixes = file if from_file else pd.read_parquet(file)

    def by(cores: int) -> Replay:
        monkeypatch.setattr(os, "cpu_count", lambda: cores)
        return replay(SCENARIOS[name], fixes, None if name in ("traffic", "friends") else places)

    one = by(1)
    assert len(one.timelines) > 10
    for cores in (2, 3, 8):
        several = by(cores)
        assert_frame_equal(several.timelines, one.timelines, check_exact=True)
        assert_frame_equal(several.notifications, one.notifications, check_exact=True)
        assert {**several.metrics, "seconds": 0} == {**one.metrics, "seconds": 0}
