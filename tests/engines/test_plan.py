"""A replay says how it found its pairs, and warns where nothing but all of them would do."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from workbench.model import (
    Scenario,
    Space,
    any_region,
    column,
    location,
    other,
    own,
    publications,
    region,
    subscriptions,
)
from workbench.replay import Replay, replay

FIXES = pd.DataFrame({"mobile": [1, 1, 2], "t": [1, 2, 1], "x": [0.0, 9.0, 90.0], "y": [0.0] * 3})
MANY = pd.concat([FIXES.assign(mobile=FIXES["mobile"] + 2 * n) for n in range(6)])
PLACES = pd.DataFrame({"place": ["a", "b", "c"], "x": [0.0, 10.0, 500.0], "y": [0.0] * 3})


def test_the_index_and_the_number_of_candidates_are_named() -> None:
    plan = replay("proximity", FIXES, PLACES, parameters={"radius_m": 20}).plan
    assert plan == "places × mobiles: 2 of 6 pairs by here m_e reach'"


def test_the_way_from_files_and_the_reference_say_what_they_do(tmp_path: Path) -> None:
    FIXES.to_parquet(tmp_path / "fixes.parquet", index=False)
    assert "fix by fix" in replay("proximity", tmp_path / "fixes.parquet", PLACES).plan
    assert "every pair" in replay("proximity", FIXES, PLACES, engine="reference").plan


def test_a_plan_is_no_metric() -> None:
    assert "plan" not in replay("proximity", FIXES, PLACES).metrics


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> str:
    """An engine; Spark with the session of the run."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    return request.param  # type: ignore[no-any-return]


def lines_of(said: Replay) -> list[str]:
    """A plan line by line, without the one that says how Spark shared the work."""
    return said.plan.splitlines()[said.engine == "spark" :]


def test_a_filter_that_no_index_serves_warns_with_the_number_of_pairs(engine: str) -> None:
    fuel = Space("fuel", price=float)
    made = Scenario(
        [fuel],
        [publications("stations", rows="places", regions={"offer": region(fuel, price=column.x)})],
        [
            subscriptions(
                "cars",
                rows="fixes",
                regions={"limit": region(fuel, price=column.x)},
                filter=other.offer["price"] < own.limit["price"],
            )
        ],
    )
    with pytest.warns(UserWarning, match="all 36 pairs") as warned:
        said = replay(made, MANY, PLACES, engine)
    assert len(warned) == 1
    assert lines_of(said) == ["stations × cars: 36 of 36 pairs by all pairs", "  then price(offer') < price(limit)"]


def test_one_publication_for_all_needs_no_index(recwarn: pytest.WarningsRecorder) -> None:
    said = replay("traffic", FIXES)
    assert said.plan.splitlines()[0] == "jam × cars: 2 of 2 pairs by all pairs"
    assert not [w for w in recwarn if issubclass(w.category, UserWarning)]


def test_a_plan_says_what_else_is_asked_and_what_over_time() -> None:
    said = replay("coffee", FIXES, PLACES.assign(category="coffee"), parameters={"radius_m": 20})
    first, *more = lines_of(said)
    assert first == "shops × shoppers: 2 of 6 pairs by here m_20 site'"
    inside = "here m_e any shops.offer(shop_type={'coffee'})"
    assert "  then wish' m_o offer" in more
    assert f"  over time now - τ({inside}) > 5 h" in more
    assert more[-1] == f"shops × shoppers: 2 of 6 pairs by {inside}"


def test_third_parties_that_no_index_serves_are_warned_of_too(engine: str) -> None:
    fuel = Space("fuel", price=float)
    by = "tests.conformance.relations_of_ours:price_gap"
    cheap = own.limit.related(any_region("stations.offer"), by=by, at_most=5.0, space=fuel)
    made = Scenario(
        [fuel, location],
        [
            publications(
                "stations",
                rows="places",
                regions={
                    "offer": region(fuel, price=column.x),
                    "site": region(location, position=column.position),
                },
            )
        ],
        [
            subscriptions(
                "cars",
                rows="fixes",
                regions={"limit": region(fuel, price=column.x), "here": region(location, position=column.position)},
                filter=own.here.within(20, other.site, space=location) & cheap,
            )
        ],
    )
    with pytest.warns(UserWarning, match="all 36 pairs"):
        said = replay(made, MANY, PLACES, engine)
    first, *_, last = lines_of(said)
    assert first == "stations × cars: 12 of 36 pairs by here m_20 site'"
    assert last == f"stations × cars: 36 of 36 pairs by all pairs, for {cheap}"
    assert said.collect().timelines.equals(replay(made, MANY, PLACES, "reference").timelines)


def test_spark_says_where_it_went_fix_by_fix(spark: object) -> None:
    first, straight = replay("proximity", FIXES, PLACES, "spark").plan.splitlines()
    assert "bucket" in first and "fix by fix from the files, by a grid over the places" in straight
