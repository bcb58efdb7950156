"""Instants finer than Spark's: what is told is what the local engine tells, rounded down to microseconds."""

from __future__ import annotations

from random import Random

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engines.test_slices import SCENARIOS, in_order, shared
from workbench.replay import replay
from workbench.scenarios import named

FINE = {name: SCENARIOS[name][0] for name in ("latch", "nearest", "dispatch", "proximity")}
FINE |= {"coffee": named("coffee")(300, 1e-10, 60), "traffic": named("traffic")(500, 900, 1e-10, 2)}


def walk(draw: Random) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Steps of a few nanoseconds, before 1970 too, so that many share a microsecond."""
    n, start = draw.randrange(20, 60), draw.choice([0, -3_000, 10**18])
    at = sorted(draw.sample(range(6_000), n))
    rows = [(draw.randrange(4), start + t, draw.randrange(8) * 150.0, draw.randrange(8) * 150.0) for t in at]
    fixes = pd.DataFrame(rows, columns=["mobile", "t", "x", "y"])
    fixes["t"] = pd.to_datetime(fixes["t"], unit="ns", utc=True).astype("datetime64[ns, UTC]")
    places = pd.DataFrame({"place": ["a", "b", "c"], "x": [150.0, 600.0, 900.0], "y": [150.0, 600.0, 300.0]})
    return fixes, places


@pytest.mark.filterwarnings("ignore:the filters of")
@pytest.mark.parametrize("name", FINE)
@settings(max_examples=5)
@given(draw=st.randoms(use_true_random=False))
def test_filters_may_turn_between_two_microseconds(tmp_path_factory, name, draw):
    fixes, places = walk(draw)
    timelines, _, _ = shared(FINE[name], fixes, places, tmp_path_factory.mktemp("fine"), 2)
    whole = replay(FINE[name], fixes, places).timelines
    coarse = whole.assign(**{column: whole[column].dt.floor("us") for column in ("tau", "pi")})
    assert in_order(timelines) == in_order(coarse)


def test_tables_in_memory_on_spark(spark):
    fixes, places = walk(Random(3))
    parameters = {"radius_m": 300, "pause_h": 1e-10, "door_m": 60}
    told, whole = (replay("coffee", fixes, places, engine, parameters).collect() for engine in ("spark", "local"))
    coarse = whole.timelines.assign(**{c: whole.timelines[c].dt.floor("us") for c in ("tau", "pi")})
    assert in_order(told.timelines) == in_order(coarse) and len(coarse) > 5
