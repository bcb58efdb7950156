"""Where the paper is ambiguous or wrong: one test for each *Departure*, showing the reading that was taken."""

from __future__ import annotations

import pytest

from tests.model.worlds import notifications, party, played, reference, timelines
from workbench.errors import ScenarioError
from workbench.model import (
    Degree,
    Number,
    Scenario,
    Space,
    any_region,
    below,
    between,
    column,
    degree,
    disc,
    hours,
    location,
    now,
    other,
    own,
    publication,
    publications,
    region,
    relationship,
    subscription,
    subscriptions,
    tau,
    ticks,
    visit,
    visits,
)
from workbench.model.clock import NEVER
from workbench.model.relations import (
    Containment,
    Enclosure,
    Fuzzy,
    Nearest,
    Overlap,
    UserDefined,
    Within,
    distance,
    paper_distance,
)
from workbench.scenarios import named
from workbench.scenarios.coffee import shop

LINE = Space("line", d=float)


def span(lower, upper, closed="both"):
    return region(LINE, d=between(lower, upper, closed=closed))


# -- 4.1, 4.2: spaces --------------------------------------------------------------------------------


def test_a_space_has_no_degree_towards_one_with_more_dimensions():
    product = Space("product", price=float)
    coffee = Space("coffee", flavor=str) | product
    assert degree(product, coffee) is None
    assert relationship(product, coffee).startswith("product has no degree of containment towards coffee")
    assert degree(coffee, product) is Degree.FULL


def test_homonyms_are_one_dimension_and_must_agree_on_its_type():
    cake, person = Space("cake", name=str, price=float), Space("person", name=str, age=int)
    assert degree(cake, person) is Degree.PARTIAL
    numbered = Space("numbered", name=int)
    here = region(person, name="ann")
    with pytest.raises(ScenarioError, match="a name identifies one dimension"):
        Scenario([person, numbered], [publication("p", regions={"r": here})], [subscription("s", regions={"r": here})])


def test_location_by_coordinates_cannot_say_disc_and_location_by_position_can():
    by_coordinates = Space("location", x=float, y=float)
    with pytest.raises(ScenarioError):
        region(by_coordinates, x=disc((0, 0), 5))
    square = region(by_coordinates, x=between(-5, 5), y=between(-5, 5))
    corner = region(by_coordinates, x=5, y=5)
    assert Containment().holds(square, corner, by_coordinates, "planar"), "7.07 away, and inside the product"
    round_one, same_corner = region(location, position=disc((0, 0), 5)), region(location, position=(5, 5))
    assert not Containment().holds(round_one, same_corner, location, "planar")


# -- 4.3: regions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "relation",
    [Containment(), Enclosure(), Overlap(), Within(1e6), UserDefined("numpy:hypot", 1e9), Fuzzy(0.01)],
    ids=lambda relation: relation.verb,
)
def test_an_invalid_region_matches_nothing_although_the_empty_set_is_in_every_set(relation):
    other_space = Space("elsewhere", e=float)
    stranger, known = region(other_space, e=1), span(0, 10)
    assert stranger.values_in(LINE) is None
    assert not relation.holds(stranger, known, LINE, "planar")
    assert not relation.holds(known, stranger, LINE, "planar")
    assert not Nearest().holds_among(known, stranger, [], LINE, "planar")


def test_a_constraint_that_leaves_no_value_is_refused_when_it_is_written():
    with pytest.raises(ScenarioError, match="empty interval"):
        between(3, 3, closed="neither")
    with pytest.raises(ScenarioError, match="leaves no"):
        region(Space("count", n=int), n=between(1, 2, closed="neither"))


def test_entering_a_shop_is_the_position_inside_its_footprint_and_not_regions_without_position():
    i_shop, o_shop = region(shop, shop_type="coffee"), region(shop, shop_type="coffee", shop_name="ABC", ad="Good!")
    assert not i_shop.valid_in(location) and not o_shop.valid_in(location), "5.1's regions are nowhere"
    assert not Enclosure().holds(i_shop, o_shop, location, "planar")
    footprint = region(shop, shop_type="coffee", position=disc((0, 0), 25))
    assert Enclosure().holds(region(location, position=(25, 0)), footprint, location, "planar")
    assert not Enclosure().holds(region(location, position=(26, 0)), footprint, location, "planar")


def test_a_wish_that_leaves_the_name_open_is_not_enclosed_by_an_offer_that_states_it():
    wish = region(shop, shop_type="coffee")
    offer = region(shop, shop_type="coffee", shop_name="ABC", ad="Good!", position=(0, 0))
    assert not Enclosure().holds(wish, offer, shop, "planar"), "5.1's i_shop m_e o_coffee_shop can never hold"
    assert Overlap().holds(wish, offer, shop, "planar")
    assert Containment().holds(wish, offer, shop, "planar")


# -- 4.3.2: relations -------------------------------------------------------------------------------


def test_each_end_of_an_interval_says_whether_it_belongs():
    assert Overlap().holds(span(1, 2), span(2, 3), LINE, "planar")
    assert not Overlap().holds(span(1, 2, "left"), span(2, 3), LINE, "planar")
    assert Containment().holds(span(1, 5), span(1, 5, "neither"), LINE, "planar")
    assert not Containment().holds(span(1, 5, "neither"), span(1, 5), LINE, "planar")


def test_touching_without_a_common_value_is_no_overlap():
    touching = span(1, 2, "neither"), span(2, 3, "left")
    assert distance(*touching, LINE, "planar") == 0.0
    assert not Overlap().holds(*touching, LINE, "planar")


def test_mindist_is_not_symmetric_and_the_distance_of_the_text_is():
    wide, slim = span(0, 10), span(4, 6)
    assert (paper_distance(wide, slim, LINE), paper_distance(slim, wide, LINE)) == (4.0, 0.0)
    assert distance(wide, slim, LINE, "planar") == distance(slim, wide, LINE, "planar") == 0.0


def test_of_two_regions_at_one_distance_both_are_nearest():
    middle, left, right = span(5, 5), span(3, 4), span(6, 7)
    assert all(Nearest().holds_among(middle, one, [left, right], LINE, "planar") for one in (left, right))


def test_nearest_neighbour_is_among_the_regions_that_it_names():
    """Paper: "for all r", which would let a shopper's own position, or a bus stop, be nearer than every shop."""
    stops = publications("stops", rows="stops", regions={"site": region(location, position=column.position)})
    shops = publications("shops", rows="places", regions={"site": region(location, position=column.position)})
    stop_table = {"id": ["halt"], "x": [1.0], "y": [0.0]}
    for among, expected in ((None, {"stops/halt"}), (shops.site, {"shops/cafe"})):
        people = subscriptions(
            "people",
            rows="fixes",
            regions={"here": region(location, position=column.position)},
            filter=own.here.nearest(other.site, space=location, among=among),
        )
        made = Scenario([location], [shops, stops], [people], tables={"stops": stop_table})
        told = played(made, "mobile t x y\nann 1 0 0", "place x y\ncafe 9 0\nbar 20 0")
        assert {line[0] for line in timelines(told)} == expected


# -- 4.3.3, Examples 7 to 9: filters -----------------------------------------------------------------


def test_the_refuel_level_is_about_the_subscribers_own_fuel():
    """Example 7 looks for o_pref among the publication's regions; Example 8 has none, so nobody would ever be told."""
    scenario = named("fuel")()
    assert "pref" not in dict(scenario.population("stations").regions)
    assert "fuel(car) ⊆ refuel_level(pref)" in repr(scenario.population("drivers").filter)
    fixes = """
    mobile t  x  y  fuel
    low    1  0  0  19
    level  1  0  0  20
    """
    told = timelines(played(scenario, fixes, "place x y price\nstation 0 0 65"))
    assert told == [("station", "low", 1, None, None)], "a range below 20 % does not include 20 %"


def test_cheap_is_a_condition_of_the_filter_and_not_of_the_text_alone():
    fixes = "mobile t x y fuel\ncar 1 0 0 10"
    places = "place x y price\ncheap 0 0 70\ndear 0 0 71"
    assert timelines(played("fuel", fixes, places)) == [("cheap", "car", 1, None, None)]


def test_every_match_names_its_space():
    with pytest.raises(TypeError, match="space"):
        own.car.overlaps(other.car)
    with pytest.raises(ScenarioError, match="a relation names its subject space"):
        own.car.overlaps(other.car, space="car")


def test_a_variable_does_not_take_a_bare_location_for_a_shop():
    """A position is valid in the space of shops, by the dimension they share, and leaves type, name and ad open."""
    bare = region(location, position=(0, 0))
    offer = region(shop, shop_type="coffee", position=(0, 0))
    assert bare.valid_in(shop) and Overlap().holds(bare, offer, shop, "planar")
    shops = publication("shops", regions={"offer": offer}, filter=other.wish.overlaps(own.offer, space=shop))
    teetotal = subscription("teetotal", regions={"here": bare, "wish": region(shop, shop_type="tea")})
    made = played(Scenario([location, shop], [shops], [teetotal]), "mobile t\nnobody 1")
    assert timelines(made) == [], "`here` overlaps the offer in the space of shops, and is no wish"


def test_a_filter_speaks_of_its_owners_regions_too():
    gas = Space("gas", price=Number("price", 0))
    offer = {"gas": region(gas, price=column.price)}
    dear = publications("dear", rows="places", regions=offer, filter=own.gas["price"] > 5)
    someone = subscription("someone", regions={"gas": region(gas, price=below(100))})
    made = played(Scenario([gas], [dear], [someone]), "mobile t\nnobody 1", "place price\na 5\nb 6")
    assert [line[0] for line in timelines(made)] == ["b"]


# -- 4.3.4: time ------------------------------------------------------------------------------------


def dwell(bound):
    near = own.here.within(1, other.site, space=location)
    sites = publications("sites", rows="places", regions={"site": region(location, position=column.position)})
    people = subscriptions(
        "people",
        rows="fixes",
        regions={"here": region(location, position=column.position)},
        filter=now - tau(near) > bound,
    )
    return Scenario([location], [sites], [people])


SITE = "place x y\nsite 0 0"


def test_a_match_that_begins_right_now_counts_for_tau():
    """With j < now, tau at t = 10 would still be 1: nine ticks ago, and "more than five ticks" would hold."""
    made = played(dwell(ticks(5)), "mobile t x y\nann 1 0 0\nann 2 9 0\nann 10 0 0\nann 30 9 0", SITE)
    assert timelines(made) == [("site", "ann", 7, 10, "unmatch"), ("site", "ann", 16, None, None)]


def test_who_never_matched_is_not_taken_to_have_matched_at_time_zero():
    """With tau = 0 for never, nothing would hold until now > 5 hours, on this clock at t = 18001."""
    made = played(dwell(hours(5)), "mobile t x y\nann 1 9 0\nann 2 9 0", SITE)
    assert timelines(made) == [("site", "ann", 1, None, None)]
    engine = reference(made)
    filter = made.scenario.population("people").filter
    ann, site = party(made.scenario, "people", "ann"), party(made.scenario, "sites", "site")
    (view,) = engine.bindings(ann, site, filter)
    assert engine.tau(filter.histories[0], view, 2) == NEVER


def test_who_steps_from_one_shop_straight_into_another_has_entered_again():
    fixes = """
    mobile t     x    y
    ann    100   0    0
    ann    200   30   0
    ann    300   900  0
    ann    4000  900  0
    """
    places = "place x y door_m\none 0 0 20\ntwo 40 0 20"
    made = played("coffee", fixes, places, parameters={"pause_h": 1})
    assert {line[2] for line in timelines(made)} == {200 + 3600 + 1}, "tau of the union would have been 100"


# -- 4.6, 4.7: matching and notification ---------------------------------------------------------------


def test_q_is_the_set_of_what_matches_and_not_a_set_of_sets():
    made = played("proximity", "mobile t x y\nann 1 0 0\nbob 1 0 0\ncid 1 900 0", "place x y\ncafe 0 0")
    engine = reference(made)
    mobiles = {name: party(made.scenario, "mobiles", name) for name in ("ann", "bob", "cid")}
    assert engine.Q_P(party(made.scenario, "places", "cafe"), 1) == {mobiles["ann"], mobiles["bob"]}
    assert engine.new_Q_P(party(made.scenario, "places", "cafe"), 1) == {mobiles["ann"], mobiles["bob"]}
    assert engine.new_Q_P(party(made.scenario, "places", "cafe"), 2) == set()


def test_pairs_that_leave_m_are_told_too():
    made = played("proximity", "mobile t x y\nann 1 0 0\nann 2 900 0", "place x y\ncafe 0 0")
    assert notifications(made) == [(1, "match", "cafe", "ann"), (2, "unmatch", "cafe", "ann")]


# -- 5.1, 5.2: third parties ------------------------------------------------------------------------------


def test_a_third_party_is_among_regions_that_are_named():
    with pytest.raises(ScenarioError, match=r"expected 'population\.region'"):
        any_region("shops")
    here = region(location, position=column.position)
    entered = own.here.enclosed_by(any_region("shop.offer"), space=location)
    shops = publications("shops", rows="places", regions={"offer": here})
    people = subscriptions("people", rows="fixes", regions={"here": here}, filter=entered)
    with pytest.raises(ScenarioError, match=r"no regions 'shop\.offer'; did you mean 'shops\.offer'"):
        Scenario([location], [shops], [people])


def test_a_car_that_is_still_on_the_section_has_no_travel_time_yet():
    """ann needs 100 s, leaves, comes back and stays: 5.2's π - τ of her would be 101 - 150 = -49."""
    on_section = any_region("cars.here").enclosed_by(own.section, space=LINE)
    jam = publication(
        "jam",
        regions={"section": span(0, 10)},
        filter=visits(on_section, last=1).mean(visit.pi - visit.tau) > ticks(50),
    )
    cars = subscriptions("cars", rows="fixes", regions={"here": region(LINE, d=column.d)})
    made = played(Scenario([LINE], [jam], [cars]), "mobile t d\nann 1 0\nann 101 11\nann 150 5\nann 160 6")
    assert timelines(made) == [("jam", "ann", 101, None, None)]


def test_the_mean_is_over_the_last_n_and_not_from_n_to_the_last():
    """Three visits of 30, 10 and 10 ticks: the mean of the last two is 10, of all three above 16."""
    on_section = any_region("cars.here").enclosed_by(own.section, space=LINE)
    cars = subscriptions("cars", rows="fixes", regions={"here": region(LINE, d=column.d)})
    jam = publication("jam", regions={"section": span(0, 10)}, filter=visits(on_section, last=2).mean() > ticks(15))
    history = "mobile t d\na 0 5\na 30 11\nb 30 5\nb 40 11\nc 40 5\nc 50 11\nc 60 12"
    told = [line for line in timelines(played(Scenario([LINE], [jam], [cars]), history)) if line[1] == "c"]
    assert told == [("jam", "c", 40, 50, "unmatch")], "(30 + 10) / 2 = 20 > 15 at 40; (10 + 10) / 2 = 10 at 50"
