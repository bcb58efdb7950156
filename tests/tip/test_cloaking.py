"""Positions cloaked to a region: what it hides, and what it costs (TIP 3, 2 and 7)."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import DataError
from workbench.tip.broker import broker
from workbench.tip.cloaking import Cloaked, anonymous_cell, cell_of, cost
from workbench.tip.services import Fix, Information, LocationService, Sight, suggested
from workbench.tip.simulated import Simulation

COORDINATE = st.integers(-2_000, 2_000).map(float)
PLACE = st.tuples(COORDINATE, COORDINATE)
SIGHTS = tuple(Sight(f"s{n}", "Sight", 137.0 * n % 900, 251.0 * n % 700, 40, "art") for n in range(30))


@given(PLACE, st.integers(1, 500))
def test_a_position_lies_in_its_cell_and_all_in_the_cell_tell_the_same(place: tuple[float, float], m: int) -> None:
    x0, y0, x1, y1 = cell = cell_of(place, m)
    assert x0 <= place[0] < x1 and y0 <= place[1] < y1
    assert cell_of(((x0 + x1) / 2, (y0 + y1) / 2), m) == cell


@given(st.lists(PLACE, min_size=1, max_size=14), st.integers(1, 6), st.sampled_from([50, 100, 300]))
def test_each_cell_is_told_by_at_least_k_users(users: list[tuple[float, float]], k: int, cell_m: int) -> None:
    if k > len(users):
        with pytest.raises(DataError, match=f"{len(users)} users"):
            anonymous_cell(users[0], users, k, cell_m)
        return
    cells = [anonymous_cell(user, users, k, cell_m) for user in users]
    assert min(Counter(cells).values()) >= k, "who knows where everybody is has k to choose from"
    assert all(x0 <= x < x1 and y0 <= y < y1 for (x, y), (x0, y0, x1, y1) in zip(users, cells))
    if k == 1:
        assert cells == [cell_of(user, cell_m) for user in users]


def test_one_who_is_far_away_does_not_spoil_the_cells_of_the_others() -> None:
    near = [(x, y) for x in (10.0, 110.0, 210.0) for y in (10.0, 20.0)]
    users = [*near, (-900_000.0, 400_000.0)]
    sizes = sorted(cell[2] - cell[0] for cell in (anonymous_cell(user, users, 2, 100) for user in users))
    assert sizes[-2:] == [sizes[-1]] * 2 and sizes[-1] > 1e6 and sizes[4] <= 400
    beside = [(-1.0, 5.0), (1.0, 5.0)]
    assert anonymous_cell(beside[0], beside, 2, 100) == (-100.0, -100.0, 100.0, 100.0), "no line divides for ever"


@settings(max_examples=30)
@given(st.lists(PLACE, max_size=12), st.sampled_from([50, 100, 400]))
def test_overlap_misses_nothing(places: list[tuple[float, float]], cell_m: int) -> None:
    found = cost([(place, cell_of(place, cell_m)) for place in places], SIGHTS, ["art"])
    assert found.missed == 0 and found.right == sum(len(suggested(SIGHTS, ["art"], place)) for place in places)


def test_larger_cells_cost_more_and_the_middle_of_a_cell_misses() -> None:
    places = [(float(x), float(y)) for x in range(0, 900, 100) for y in range(0, 700, 100)]
    costs = [cost([(p, cell_of(p, m)) for p in places], SIGHTS, ["art"]) for m in (50, 100, 200)]
    assert costs[0].wrong < costs[1].wrong < costs[2].wrong
    middle = cost([(p, cell_of(p, 200)) for p in places], SIGHTS, ["art"], overlap=False)
    assert middle.missed > 0 and middle.wrong > 0


def test_a_cloaked_location_service_tells_cells_and_nothing_is_missed() -> None:
    """From end to end: the information service never sees a position, and names all that is there, and some more."""
    path = tuple(Fix(n * 1_000_000, 30.0 * n, 20.0) for n in range(1, 20))
    told = {}
    for name, location in (
        ("plain", LocationService(path)),
        ("cloaked", Cloaked(LocationService(path), lambda place: cell_of(place, 100))),
    ):
        made = Simulation([broker("b")]).start("b")
        made.join("location", "b", location).join("guide", "b", Information(SIGHTS, ("art",))).run(21_000_000)
        told[name] = [event.body for event in made.received("guide", "Location")]
        sent = made.messages
        told[f"{name} answers"] = int(((sent["sender"] == "guide") & (sent["type"] == "Information")).sum())
    assert "x0" in told["cloaked"][0] and len(set(told["cloaked"])) < len(set(told["plain"])) == len(path)
    assert told["cloaked answers"] >= told["plain answers"] > 0
