"""The three advantages of 6.2 on histories whose messages can be counted by hand."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.model.worlds import played, table
from workbench.baselines import one_sided, resubscribing, stateless
from workbench.model import Scenario, column, location, other, own, publications, region, subscriptions

HERE = region(location, position=column.position)
CAFE = "place x y\ncafe 0 0"


def rows(frame: pd.DataFrame) -> list[tuple[object, ...]]:
    return [tuple(row) for row in frame.itertuples(index=False)]


def test_a_stateless_broker_repeats_itself_at_every_fix():
    """ann is near from 2 to 5, that is at 2, 3 and 4, and again at 7: four fixes, two matches and one unmatch."""
    fixes = """
    mobile t x    y
    ann    1 900  0
    ann    2 100  0
    ann    3 0    0
    ann    4 -100 0
    ann    5 -900 0
    ann    7 0    0
    """
    assert rows(stateless(played("proximity", fixes, CAFE))) == [
        ("stateless", 4, 0, 4),
        ("state-persistent", 2, 1, 3),
    ]


def test_a_stateless_broker_repeats_itself_for_every_pair_of_two_moving_clients():
    """At 1 ann and bob come to be 5 m apart, at 2 only bob moves: each of the three fixes is told on both pairs."""
    fixes = "mobile t x y\nann 1 0 0\nbob 1 5 0\nbob 2 6 0"
    assert rows(stateless(played("friends", fixes))) == [("stateless", 6, 0, 6), ("state-persistent", 2, 0, 2)]


def test_rows_that_were_collapsed_set_aside_removed_or_after_the_end_are_no_events():
    fixes = table("""
    mobile t x y op
    ann    1 0 0 -
    ann    1 0 0 -
    ann    2 0 0 -
    ann    2 1 0 -
    ann    3 0 0 -
    ann    4 0 0 remove
    bob    9 0 0 -
    """)
    assert rows(stateless(played("proximity", fixes, CAFE, until=5)))[0] == ("stateless", 2, 0, 2)


def test_on_timestamps_too():
    t = pd.to_datetime([f"2008-05-17T10:00:0{s}Z" for s in range(4)])
    fixes = pd.DataFrame({"mobile": "ann", "t": t, "x": [0.0, 1.0, 900.0, 900.0], "y": 0.0})
    assert rows(stateless(played("proximity", fixes, CAFE)))[0] == ("stateless", 2, 0, 2)


def test_one_sided_matching_tells_what_the_other_side_would_have_refused():
    """A station targets cars below 70 %; drivers want to hear below 20 %, and up to 70 cent.

    Three cars stand at two stations, at 65 and at 90 cent, with 10, 60 and 80 % in the tank.

    publishers' filters only:   10 % and 60 % at both stations, four matches; only (65 cent, 10 %) is wanted by both
    subscribers' filters only:  10 % at the cheap station
    both:                       10 % at the cheap station
    """
    fixes = "mobile t x y fuel\nlow 1 0 0 10\nhalf 1 0 0 60\nfull 1 0 0 80"
    places = "place x y price\ncheap 0 0 65\ndear 0 0 90"
    assert rows(one_sided(played("fuel", fixes, places))) == [
        ("publishers' filters only", 4, 4, 3),
        ("subscribers' filters only", 1, 1, 0),
        ("both (symmetric)", 1, 1, 0),
    ]


def test_one_sided_matching_the_other_way_round():
    """Drivers who want to hear while the tank is not full meet a station that targets those below 50 %."""
    fixes = "mobile t x y fuel refuel_level\nlow 1 0 0 10 100\nhalf 1 0 0 60 100\nfull 1 0 0 80 100"
    made = played("fuel", fixes, "place x y price\ncheap 0 0 65", parameters={"target_percent": 50})
    assert rows(one_sided(made)) == [
        ("publishers' filters only", 1, 1, 0),
        ("subscribers' filters only", 3, 3, 2),
        ("both (symmetric)", 1, 1, 0),
    ]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_move_of_a_client_with_k_subscriptions_is_2k_messages_or_one_update(k):
    """ann moves twice after her first fix, bob once: three moves."""
    near = own.here.within(10, other.site, space=location)
    several = [subscriptions(f"s{n}", rows="fixes", regions={"here": HERE}, filter=near) for n in range(k)]
    scenario = Scenario([location], [publications("places", rows="places", regions={"site": HERE})], several)
    fixes = "mobile t x y\nann 1 0 0\nann 2 5 0\nann 3 50 0\nbob 1 0 0\nbob 3 0 0"
    assert rows(resubscribing(played(scenario, fixes, CAFE))) == [
        ("unsubscribe, subscribe", k, 3, 2 * k * 3),
        ("update", k, 3, 3),
    ]
