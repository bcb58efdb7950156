"""Mobiles that meet, from files: cells, slices of time and kinds of mobiles say what the definitions say."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from workbench.engines import encounters
from workbench.model import Scenario, column, held, location, other, own, publications, region, subscriptions, ticks
from workbench.replay import replay
from workbench.scenarios.friends import CONTEXTS, scenario

NAMES = {"small": lambda m: m + 3, "far apart": lambda m: m * 10**14 - 5, "text": lambda m: f"cab {m}"}


def walks(draw: Random, planar: bool, name: str, attributes: bool, rows: int) -> pd.DataFrame:
    """Who moves now and then between few places, so that borders and ties are common."""
    unit, axes = (50.0, ("x", "y")) if planar else (0.0005, ("lon", "lat"))
    found = {}
    for _ in range(rows):
        m, t = draw.randrange(6), draw.randrange(1, 25)
        row = {"mobile": NAMES[name](m), "t": t, **{axis: draw.randrange(5) * unit for axis in axes}}
        if attributes:
            row["context"] = draw.choice(CONTEXTS[:2])
            row["role"] = draw.choice(["friend", "colleague"])
            row["seeks"] = draw.choice(["friend", "colleague"])
        found[m, t] = row
    listed = list(found.values())
    draw.shuffle(listed)
    return pd.DataFrame(listed)


@settings(max_examples=60, deadline=None)
@given(
    draw=st.randoms(use_true_random=False),
    planar=st.booleans(),
    name=st.sampled_from(sorted(NAMES)),
    attributes=st.booleans(),
    distances=st.sampled_from([(50.0, 50.0), (50.0, 100.0), (0.0, 110.0), (71.0, 150.0), (75.0, 75.0)]),
    threads=st.sampled_from([1, 2, 5]),
    until=st.sampled_from([None, 12]),
)
def test_whoever_meets_is_told_what_the_definitions_say(
    tmp_path_factory: Any, draw: Random, planar: bool, name: str, attributes: bool, distances: tuple[float, float],
    threads: int, until: int | None,
) -> None:  # fmt: skip
    file = tmp_path_factory.mktemp("fixes") / "fixes.parquet"
    walks(draw, planar, name, attributes, draw.randrange(2, 60)).to_parquet(file, index=False, row_group_size=17)
    made = scenario(*distances)
    expected = replay(made, file, engine="reference", until=until)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encounters, "cores", lambda: threads)
        found = encounters.run(made, file, None, until=until)
    first = pd.read_parquet(file)["t"].min()
    assert found is not None or (until is not None and first > until)
    if found is not None:
        assert_frame_equal(found.timelines, expected.timelines)
        # The general way counts the same.
        told = replay(made, file, until=until).metrics
        general = replay(made, pd.read_parquet(file), until=until)
        assert_frame_equal(found.timelines, general.timelines)
        for counted in ("rows_in", "rows_collapsed", "rows_set_aside", "instants", "timelines", "unmatches", "until"):
            assert told[counted] == general.metrics[counted], counted


def test_rows_after_the_end_are_counted_too(tmp_path: Path) -> None:
    last = {"mobile": [1, 1, 2, 2], "t": [9] * 4, "x": [0.0, 1.0, 5.0, 5.0], "y": 0.0}
    rows = pd.DataFrame({"mobile": [1, 2], "t": [1, 1], "x": [0.0, 5.0], "y": 0.0})
    rows = pd.concat([rows, pd.DataFrame(last)])
    rows.to_parquet(tmp_path / "fixes.parquet", index=False)
    told = [replay(scenario(50, 50), fixes, engine=engine, until=5).metrics for engine, fixes in (
        ("reference", rows), ("local", rows), ("local", tmp_path / "fixes.parquet"))]  # fmt: skip
    assert [(one["timelines"], one["rows_collapsed"], one["rows_set_aside"]) for one in told] == [(2, 1, 2)] * 3


def test_crowds_do_not_overflow(tmp_path: Path) -> None:
    file = tmp_path / "fixes.parquet"
    rng = np.random.default_rng(5)
    rows = [(m, t, *rng.integers(0, 4, 2) * 40.0) for t in range(1, 13) for m in range(40)]
    pd.DataFrame(rows, columns=["mobile", "t", "x", "y"]).to_parquet(file, index=False)
    found = encounters.run(scenario(60, 90), file, None)
    assert found is not None
    assert_frame_equal(found.timelines, replay(scenario(60, 90), pd.read_parquet(file)).timelines)


HERE = {"here": region(location, position=column.position)}


def near(filter_: Any) -> Scenario:
    return Scenario(
        [location],
        [publications("presence", rows="fixes", regions=HERE)],
        [subscriptions("people", rows="fixes", regions=HERE, filter=filter_)],
    )


def within(distance: float) -> Any:
    return own.here.within(distance, other.here, space=location)


@pytest.mark.parametrize(
    "filter_",
    [held(within(5), ticks(2)), ~within(5), within(5) | within(9), own.here.nearest(other.here, space=location)],
)
def test_other_filters_go_the_general_way(filter_: Any) -> None:
    assert encounters.shape_of(near(filter_)) is None


def test_of_two_distances_the_shorter_one_counts() -> None:
    shape = encounters.shape_of(near(within(9) & within(5)))
    assert shape is not None and (shape.near, shape.far) == (5.0, 5.0)


@pytest.mark.parametrize(
    "rows",
    [
        {"mobile": [1, 1, 2], "t": [1, 1, 1], "x": [0.0, 1.0, 0.0], "y": [0.0] * 3},
        {"mobile": [1, 2], "t": [1, 1], "x": [0.0, 1.0], "y": [0.0] * 2, "op": [None, "update"]},
        {"mobile": [1, 2], "t": [1, 1], "x": [0.0, 1.0], "y": [0.0] * 2, "context": ["free", "elsewhere"]},
        {"mobile": [1, 2], "t": [1, 1], "lon": [179.9999, -179.9999], "lat": [0.0] * 2},
    ],
    ids=["two rows of one instant", "operations", "what the model refuses", "across the date line"],
)
def test_unusual_rows_go_the_general_way(tmp_path: Path, rows: dict[str, Any]) -> None:
    pd.DataFrame(rows).to_parquet(tmp_path / "fixes.parquet", index=False)
    assert encounters.run(scenario(), tmp_path / "fixes.parquet", None) is None
