"""`proximity` equals hand-written SQL, on real data and on random data with ties, borders and duplicates."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.bench.duckdb_sql import in_order, proximity
from workbench.replay import replay


def same(ours: pd.DataFrame, theirs: pd.DataFrame) -> None:
    ours, theirs = in_order(ours), in_order(theirs)
    assert len(ours) == len(theirs)
    for name in ("publication", "subscription", "tau"):
        assert ours[name].tolist() == theirs[name].tolist(), name
    for name in ("pi", "ended"):
        nulls = [None if pd.isna(v) else v for v in ours[name]], [None if pd.isna(v) else v for v in theirs[name]]
        assert nulls[0] == nulls[1], name


@pytest.mark.parametrize("seed", range(3))
def test_random_walks_on_a_plane(seed):
    rng = np.random.default_rng(seed)
    walks = rng.integers(-2, 3, (40, 50, 2)).cumsum(axis=1)  # whole metres: ties and borders are frequent
    fixes = pd.DataFrame(
        {
            "mobile": np.repeat(np.arange(40), 50),
            "t": np.tile(np.arange(1, 51), 40),
            "x": walks[..., 0].ravel().astype(float),
            "y": walks[..., 1].ravel().astype(float),
        }
    )
    sites = rng.integers(-9, 9, (2, 30)) * 1.0
    places = pd.DataFrame({"place": np.arange(30), "x": sites[0], "y": sites[1]})
    shuffled = pd.concat([fixes, fixes.sample(100, random_state=seed)]).sample(frac=1, random_state=seed)
    connection = duckdb.connect()
    connection.register("walked", fixes)
    connection.register("sites", places)
    theirs = proximity(connection, "walked", "sites", 5.0, "planar").df()
    same(replay("proximity", shuffled, places, parameters={"radius_m": 5}).timelines, theirs)


def test_real_taxis_and_cafes(shared_data):
    """Ten San Francisco cabs against the cafes of the city, 150 m, text ids."""
    fixes = pd.read_csv(shared_data / "sf_cabs" / "sf_cabs_77.csv.gz").rename(columns={"cab": "mobile"})
    fixes = fixes[fixes["mobile"].isin(sorted(fixes["mobile"].unique())[:10])][["mobile", "t", "lon", "lat"]]
    places = pd.read_csv(shared_data / "places" / "poi_sf.csv").rename(columns={"poi_id": "place"})
    places = places[places["category"] == "cafe"][["place", "lon", "lat"]].reset_index(drop=True)
    connection = duckdb.connect()
    connection.register("driven", fixes)
    connection.register("cafes", places)
    theirs = proximity(connection, "driven", "cafes", 150.0, "wgs84").df()
    assert len(theirs) > 1_000
    same(replay("proximity", fixes, places, parameters={"radius_m": 150}).timelines, theirs)


corners = st.tuples(st.integers(0, 8), st.integers(0, 8))
steps = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 6), st.integers(0, 8), st.integers(0, 8)), max_size=30)


@settings(max_examples=40, deadline=None)
@given(rows=steps, sites=st.lists(corners, min_size=1, max_size=4), radius=st.integers(1, 5))
def test_any_small_history(rows, sites, radius):
    last = {(mobile, t): (x, y) for mobile, t, x, y in rows}
    fixes = pd.DataFrame(
        [(m, t, float(x), float(y)) for (m, t), (x, y) in last.items()], columns=["mobile", "t", "x", "y"]
    ).astype({"mobile": "int64", "t": "int64"})
    places = pd.DataFrame([(i, float(x), float(y)) for i, (x, y) in enumerate(sites)], columns=["place", "x", "y"])
    connection = duckdb.connect()
    connection.register("walked", fixes)
    connection.register("sites", places)
    theirs = proximity(connection, "walked", "sites", float(radius), "planar").df()
    same(replay("proximity", fixes, places, parameters={"radius_m": radius}).timelines, theirs)
