"""Examples 1 to 9 of Subject Spaces, each with the paper's own statements as assertions."""

from __future__ import annotations

import pytest

from tests.model.worlds import party, played, reference
from workbench.model import (
    Degree,
    Scenario,
    Space,
    below,
    between,
    column,
    degree,
    other,
    own,
    percentage,
    publications,
    region,
    subscription,
)
from workbench.model.clock import NEVER
from workbench.model.filters import Match
from workbench.model.relations import Containment, Enclosure, Nearest, Overlap, distance, paper_distance
from workbench.scenarios import named

USER_PROFILE = Space("user_profile", name=str, age=int, profession=str)
PRODUCT = Space("product", SKU=str, price=float, discount=percentage)
COFFEE = Space("coffee", flavor=str) | PRODUCT
CAKE = Space("cake", type=str, name=str) | PRODUCT


def test_example_1_location_has_three_real_dimensions():
    location = Space("location", x=float, y=float, z=float)
    assert repr(location) == "location = {(x, real), (y, real), (z, real)}"
    assert region(location, x=1, y=2, z=3).valid_in(location)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (COFFEE, PRODUCT, Degree.FULL),
        (CAKE, PRODUCT, Degree.FULL),
        (USER_PROFILE, PRODUCT, Degree.UNRELATED),
        (CAKE, USER_PROFILE, Degree.PARTIAL),
    ],
    ids=lambda given: getattr(given, "name", None),
)
def test_example_2_degrees_of_containment(first, second, expected):
    assert degree(first, second) is expected


def test_example_3_a_position_is_a_point_and_a_building_a_rectangle():
    location = Space("location", x=float, y=float)
    user = region(location, x=50, y=20)
    building = region(location, x=between(30, 100), y=between(50, 130))
    assert user.is_point
    assert not building.is_point
    assert not Overlap().holds(user, building, location, "planar"), "y = 20 lies south of the building"
    assert Enclosure().holds(region(location, x=50, y=50), building, location, "planar"), "on its border is inside"


def test_example_4_interest_regions_in_the_spaces_of_coffee_and_cake():
    i_coffee = region(COFFEE, flavor="Irish Cream", price=below(2))
    i_cake = region(CAKE, name="black forest", price=below(20))
    cup = region(COFFEE, SKU="c1", flavor="Irish Cream", price=1.5, discount=0)
    assert Containment().holds(i_coffee, cup, COFFEE, "planar")
    assert not Containment().holds(i_coffee, region(COFFEE, flavor="Irish Cream", price=2), COFFEE, "planar")
    assert i_coffee.valid_in(PRODUCT) and i_cake.valid_in(PRODUCT), "a region can be valid in several spaces"
    assert i_cake.valid_in(USER_PROFILE), "by its name"
    assert not i_coffee.valid_in(USER_PROFILE)
    assert i_coffee.values_in(USER_PROFILE) is None


LINE = Space("line", d=float)
ENDS = {"r1": (2, 3), "r2": (1, 5), "r3": (4, 6), "r4": (7, 8)}


@pytest.mark.parametrize("closed", ["neither", "both"], ids=["strict signs", "closed intervals"])
def test_example_5_containment_enclosure_overlap_and_nearest_neighbour(closed):
    r1, r2, r3, r4 = (region(LINE, d=between(*ends, closed=closed)) for ends in ENDS.values())
    assert Containment().holds(r2, r1, LINE, "planar")
    assert Enclosure().holds(r1, r2, LINE, "planar")
    assert Overlap().holds(r2, r1, LINE, "planar")
    assert Overlap().holds(r2, r3, LINE, "planar")
    assert Nearest().holds_among(r4, r3, [r1, r2, r3], LINE, "planar")
    assert not Nearest().holds_among(r4, r2, [r1, r2, r3], LINE, "planar")
    for measure in (paper_distance, lambda a, b, space: distance(a, b, space, "planar")):
        apart = {name: measure(r4, r, LINE) for name, r in (("r1", r1), ("r2", r2), ("r3", r3))}
        assert apart == {"r1": 4.0, "r2": 2.0, "r3": 1.0}, "r3 is the closest region to r4"


def test_example_5_on_the_reference_engine():
    r = publications("r", rows="places", regions={"r": region(LINE, d=between(column.lower, column.upper))})
    r4 = subscription("r4", regions={"r4": region(LINE, d=between(7, 8))}, filter=own.r4.nearest(other.r, space=LINE))
    made = played(Scenario([LINE], [r], [r4]), "mobile t\nnobody 1", "place lower upper\nr1 2 3\nr2 1 5\nr3 4 6")
    assert reference(made).Q_S(party(made.scenario, "r4", "r4"), 1) == {party(made.scenario, "r", "r3")}


P, Q, R, S = 10, 20, 30, 40


@pytest.mark.parametrize(
    ("name", "now", "tau", "pi"),
    [
        ("t1", 15, P, None),
        ("t2", 25, P, Q),
        ("t3", 35, R, Q),
        ("t4", 45, R, S),
    ],
)
def test_example_6_four_readings_of_tau_and_pi(name, now, tau, pi):
    """r2 is there from the start; r1 is added at p within it, leaves at q, is back at r, and leaves again at s.

    The paper's 0 for "never" is minus infinity here and None in tables.
    """
    line = Space("line", d=float)
    inside = own.r1.overlaps(other.r2, space=line)
    r1 = publications("p1", rows="fixes", regions={"r1": region(line, d=column.d)}, filter=inside)
    r2 = subscription("s2", regions={"r2": region(line, d=between(0, 1))})
    made = played(
        Scenario([line], [r1], [r2]),
        """
        mobile t   d
        m      10  0.5
        m      20  2
        m      30  1
        m      40  3
        m      50  3
        """,
    )
    engine = reference(made)
    publication, subscription_ = party(made.scenario, "p1", "m"), party(made.scenario, "s2", "s2")
    filter = made.scenario.population("p1").filter
    assert isinstance(filter, Match)
    (view,) = engine.bindings(publication, subscription_, filter)
    assert engine.tau(filter, view, now) == tau
    assert engine.pi(filter, view, now) == (NEVER if pi is None else pi)


CAR_AT_60_PERCENT = """
mobile t  x     y  plate   fuel  refuel_level
driver 1  5000  0  ABC123  60    20
driver 2  900   0  ABC123  60    20
driver 3  900   0  ABC123  19    20
"""
STATION_AT_65_CENT = """
place   x  y  price
station 0  0  65
"""


@pytest.fixture
def refuelling():
    return played(named("fuel"), CAR_AT_60_PERCENT, STATION_AT_65_CENT)


def test_example_7_a_driver_is_a_subscription_with_regions_in_location_car_and_pref(refuelling):
    regions = dict(refuelling.scenario.population("drivers").regions)
    assert {name: given.space.name for name, given in regions.items()} == {
        "here": "location",
        "car": "car",
        "pref": "pref",
        "wish": "gas",
    }
    engine = reference(refuelling)
    instance = engine.history.instance(party(refuelling.scenario, "drivers", "driver"), 2)
    assert repr(instance.regions["car"]) == "{plate_number={'ABC123'}, fuel=[60]}"
    assert repr(instance.regions["pref"]) == "{refuel_level=[0.0,20)}"


def test_example_8_a_station_targets_cars_nearby_below_70_percent(refuelling):
    engine = reference(refuelling)
    station, driver = party(refuelling.scenario, "stations", "station"), party(refuelling.scenario, "drivers", "driver")
    instance = engine.history.instance(station, 2)
    assert repr(instance.regions["car"]) == "{fuel=[0.0,70)}"
    assert repr(instance.regions["gas"]) == "{price=[65]}"
    assert not engine.accepts(station, driver, 1), "5 km away"
    assert engine.accepts(station, driver, 2), "within 1 km and below 70 %"


def test_example_9_the_subscription_satisfies_the_publication_and_not_the_other_way_round(refuelling):
    engine = reference(refuelling)
    station, driver = party(refuelling.scenario, "stations", "station"), party(refuelling.scenario, "drivers", "driver")
    assert engine.accepts(station, driver, 2), "I_S is in f_P: within 1 km, and 60 % is below 70 %"
    assert not engine.accepts(driver, station, 2), "O_P is not in f_S: 60 % is not below 20 %"
    assert not engine.pair_matches(station, driver, 2)
    assert engine.pair_matches(station, driver, 3), "at 19 % each is in the other's filter"
