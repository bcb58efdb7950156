"""Each matching relation inside a small replay, and asked once as a pull query."""

from __future__ import annotations

import pytest

from tests.model import distances_of_ours
from tests.model.worlds import party, played, reference, timelines
from workbench.model import (
    Scenario,
    Space,
    around,
    box,
    column,
    disc,
    line,
    location,
    other,
    own,
    publication,
    publications,
    region,
    subscriptions,
)

HERE = region(location, position=column.position)


def told(filter, fixes, places="place x y\nsite 0 0", *, here=HERE, site=HERE, spaces=(location,)):
    pub = publications("places", rows="places", regions={"site": site})
    sub = subscriptions("mobiles", rows="fixes", regions={"here": here}, filter=filter)
    return timelines(played(Scenario(list(spaces), [pub], [sub]), fixes, places))


def test_a_position_with_a_stated_accuracy_matches_to_the_probability_that_it_is_inside():
    """Half of the disc of 10 m lies in the zone at x = 0, the whole of it from x = 10 on, and nothing at x = -10."""
    blurred = region(location, position=disc(column.position, column.accuracy_m))
    zone = publication("zone", regions={"zone": region(location, position=box(0, -100, 100, 100))})
    for degree, expected in ((0.5, [(2, 5)]), (0.51, [(3, 5)]), (1.0, [(4, 5)])):
        inside = own.here.mostly_in(other.zone, degree=degree, space=location)
        people = subscriptions("people", rows="fixes", regions={"here": blurred}, filter=inside)
        fixes = """
        mobile t x   y accuracy_m
        ann    1 -10 0 10
        ann    2 0   0 10
        ann    3 5   0 10
        ann    4 10  0 10
        ann    5 -5  0 10
        """
        made = played(Scenario([location], [zone], [people]), fixes)
        assert [(line[2], line[3]) for line in timelines(made)] == expected


def test_a_relation_of_ones_own_is_an_importable_function():
    near = own.here.related(other.site, by=distances_of_ours.manhattan_m, at_most=7, space=location)
    fixes = "mobile t x y\nann 1 3 4\nbob 1 4 4"
    assert [line[1] for line in told(near, fixes)] == ["ann"], "5 m as the crow flies, 7 along the streets"


def test_a_degree_of_ones_own():
    gas = Space("gas", price=float)
    price = region(gas, price=column.price)
    bargain = own.here.mostly_in(other.site, degree=0.25, by=distances_of_ours.cheaper_by, space=gas)
    places = "place price\na 74\nb 75\nc 76"
    found = told(bargain, "mobile t price\nann 1 100", places, here=price, site=price, spaces=[gas])
    assert [line[0] for line in found] == ["a", "b"]


def test_a_road_is_a_line_and_may_have_a_width():
    road = line([(0, 0), (100, 0), (100, 100)])
    for shape, expected in ((road, ["on"]), (around(road, 5), ["beside", "on"])):
        highway = publication("road", regions={"road": region(location, position=shape)})
        drives = own.here.enclosed_by(other.road, space=location)
        cars = subscriptions("cars", rows="fixes", regions={"here": HERE}, filter=drives)
        fixes = "mobile t x y\non 1 100 50\nbeside 1 105 50\noff 1 94 50"
        made = played(Scenario([location], [highway], [cars]), fixes)
        assert [line[1] for line in timelines(made)] == expected


def test_height_counts_where_there_is_one():
    near = own.here.within(10, other.site, space=location)
    fixes = "mobile t x y z\nlow 1 0 0 10\nhigh 1 0 0 11"
    assert [line[1] for line in told(near, fixes, "place x y z\nsite 0 0 0")] == ["low"]


def test_location_as_three_real_dimensions_works_as_in_example_1():
    space = Space("location", x=float, y=float, z=float)
    at = region(space, x=column.x, y=column.y, z=column.z)
    near = own.here.within(3, other.site, space=space)
    fixes = "mobile t x y z\nann 1 1 2 2\nbob 1 1 2 3"
    found = told(near, fixes, "place x y z\nsite 0 0 0", here=at, site=at, spaces=[space])
    assert [line[1] for line in found] == ["ann"], "1 + 4 + 4 = 9"


@pytest.mark.parametrize(("t", "expected"), [(1, {"north"}), (2, {"south", "east"})])
def test_a_pull_query_is_a_subscription_asked_once(t, expected):
    """The nearest cash machine now: Q_S at an instant; at 2 two are equally near."""
    nearest = own.here.nearest(other.site, space=location)
    machines = publications("machines", rows="places", regions={"site": HERE})
    people = subscriptions("people", rows="fixes", regions={"here": HERE}, filter=nearest)
    places = "place x y\nnorth 0 100\nsouth 0 -100\neast 100 0"
    made = played(Scenario([location], [machines], [people]), "mobile t x y\nann 1 0 50\nann 2 50 -50", places)
    answer = reference(made).Q_S(party(made.scenario, "people", "ann"), t)
    assert {machine.client.id for machine in answer} == expected


def test_models_show_themselves_as_mathematics():
    near = own.here.within(1000, other.site, space=location)
    close = other.here.within(5, own.site, space=location)
    shops = publications("shops", rows="places", regions={"site": HERE}, filter=close)
    assert repr(near) == "here m_1000 site'"
    assert near._repr_latex_().startswith("$\\{R \\mid \\exists\\,")
    assert location._repr_latex_() == "$D_{\\mathrm{location}} = \\{(\\mathrm{position}, \\mathrm{position})\\}$"
    assert "\\mathcal{O}_P" in shops._repr_latex_()
    assert repr(shops).splitlines()[-1] == "  f = {I | ∃ here' ∈ I : here' m_5 site}"
