"""Neither how far apart things lie nor how small a reach is matters: no index may run out of cells."""

from random import Random

import pandas as pd
import pytest

from workbench import Scenario, column, held, location, other, own, publications, region, replay, subscriptions, ticks

HERE = region(location, position=column.position)
FAR = {"planar": [0.0, 1.0, 1e3, 5e8, 1e9, -1e12, 1e15], "wgs84": [0.0, 1e-9, 1.0, -100.0, 100.0, 179.9]}


def scenario(reach_m: float, both_move: bool) -> Scenario:
    near = other.here.within(reach_m, own.here, space=location)
    return Scenario(
        [location],
        [publications("publications", rows="fixes" if both_move else "places", regions={"here": HERE})],
        [subscriptions("subscriptions", rows="fixes", regions={"here": HERE}, filter=near | held(near, ticks(1)))],
    )


def rows(draw: Random, metric: str, name: str, count: int) -> pd.DataFrame:
    along, up = ("x", "y") if metric == "planar" else ("lon", "lat")
    made = [
        {name: draw.randrange(3), "t": t, along: draw.choice(FAR[metric]) + draw.choice([0.0, 0.0, 1e-3]), up: 0.0}
        for t in range(1, count + 1)
    ]
    return pd.DataFrame(made)


@pytest.mark.parametrize("metric", FAR)
@pytest.mark.parametrize("both_move", [False, True])
def test_the_tables_of_the_reference(metric: str, both_move: bool, tmp_path) -> None:
    met = 0
    for seed in range(40):
        draw = Random(seed)
        made = scenario(draw.choice([0.0, 1e-3, 1.0, 1e6]), both_move)
        fixes = rows(draw, metric, "mobile", 12)
        places = None if both_move else rows(draw, metric, "place", 4).drop_duplicates("place").drop(columns="t")
        expected = replay(made, fixes, places, "reference").timelines
        fixes.to_parquet(tmp_path / "fixes.parquet", index=False)
        for given in (fixes, tmp_path / "fixes.parquet"):
            assert replay(made, given, places, "local").timelines.equals(expected), seed
        met += len(expected)
    assert met > 40
