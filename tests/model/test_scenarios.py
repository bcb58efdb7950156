"""The worked services on histories whose notifications are derived by hand."""

from __future__ import annotations

import pytest

from tests.model.worlds import notifications, party, played, reference, table, timelines
from workbench.scenarios import BUILT_IN, named

FIVE_HOURS = 18_000


def test_coffee_case_study_5_1():
    """Coffee within 1 km, but not within five hours (18,000 s) of entering any coffee shop.

    abc lies at 0, xyz at 3000 m, a tea house at (900, 300); doors are 25 m wide.

    ======  ===========================================================================  ====================
    t       what happens                                                                 told
    ======  ===========================================================================  ====================
    1000    bob wants tea and stands 100 m from the tea house (and 922 m from abc)        tea to bob
    1100    ann comes within 1 km of abc, exactly: the border belongs                      abc to ann
    1200    ann enters abc                                                                abc to ann ends
    1260    ann leaves abc and stays near it: one minute is not five hours
    1500    ann re-enters abc: the five hours count from here
    2000    bob wants coffee now; he never entered a coffee shop                           tea to bob ends, abc to bob
    19500   five hours after 1500, exactly: not *more* than five hours
    19501   one tick later, by itself, without an update                                  abc to ann
    20000   ann drives to within 500 m of xyz, 2500 m from abc                             abc to ann ends, xyz to ann
    20100   ann enters xyz, another shop                                                  xyz to ann ends
    20200   ann is back near abc: a cup is a cup, wherever it was
    30000   ann enters the tea house, which is no coffee shop: the clock is not reset
    38101   five hours and a tick after 20100                                             abc to ann
    40000   ann drives away                                                               abc to ann ends
    ======  ===========================================================================  ====================
    """
    places = """
    place x    y   category name
    abc   0    0   coffee   ABC
    xyz   3000 0   coffee   XYZ
    leaf  900  300 tea      Leaf
    """
    fixes = """
    mobile t     x     y   wish
    bob    1000  900   200 tea
    ann    1000  -2000 0   coffee
    ann    1100  -1000 0   -
    ann    1200  0     0   -
    ann    1260  100   0   -
    ann    1500  0     0   -
    ann    1560  200   0   -
    bob    2000  900   200 coffee
    ann    19500 200   0   -
    ann    20000 2500  0   -
    ann    20100 3000  0   -
    ann    20200 900   0   -
    ann    30000 900   300 -
    ann    40000 5000  0   -
    """
    made = played("coffee", fixes, places)
    assert notifications(made) == [
        (1000, "match", "leaf", "bob"),
        (1100, "match", "abc", "ann"),
        (1200, "unmatch", "abc", "ann"),
        (2000, "unmatch", "leaf", "bob"),
        (2000, "match", "abc", "bob"),
        (19501, "match", "abc", "ann"),
        (20000, "unmatch", "abc", "ann"),
        (20000, "match", "xyz", "ann"),
        (20100, "unmatch", "xyz", "ann"),
        (38101, "match", "abc", "ann"),
        (40000, "unmatch", "abc", "ann"),
    ]
    engine = reference(made)
    pair = party(made.scenario, "shops", "abc"), party(made.scenario, "shoppers", "ann")
    assert [engine.pair_matches(*pair, 1500 + FIVE_HOURS + tick) for tick in (-1, 0, 1)] == [False, False, True]


def test_coffee_a_shop_with_a_footprint_is_entered_inside_its_polygon():
    """The hall is 100 m wide; ann stands at its wall (which belongs to it) at 2, outside at 1."""
    places = {"place": ["hall"], "geometry": ["POLYGON ((0 0, 100 0, 100 100, 0 100, 0 0))"]}
    made = played("coffee", "mobile t x y\nann 1 101 50\nann 2 100 50\nann 3 101 50", places)
    assert notifications(made) == [(1, "match", "hall", "ann"), (2, "unmatch", "hall", "ann")]


def test_coffee_the_content_of_a_notification_is_the_shop_and_its_advertisement():
    made = played("coffee", "mobile t x y\nann 1 0 900", "place x y name ad\nabc 0 0 ABC Good_coffee!")
    shop = reference(made).history.instance(party(made.scenario, "shops", "abc"), 1)
    assert repr(shop.regions["offer"]["ad"]) == "{'Good coffee!'}"


def test_traffic_case_study_5_2():
    """Drivers before A = 1000 m are told while the last two cars took more than 2 min (120 s) from A to B = 3000 m.

    Visits of the closed section [1000, 3000], in the order of their ends:

    =====  =========  ==========  ======  ===================  =========================================
    car    tau        pi          length  mean of the last 2   so, from pi on
    =====  =========  ==========  ======  ===================  =========================================
    c2     20         120         100 s   only one car yet     nothing: fewer than n
    c1     10         160         150 s   125 s > 120          jam: w (at 500 m) is told
    c1     200        290         90 s    120 s, not above     over: w is told; c1, back before A, is not
    c2     300        451         151 s   120.5 s              jam: w and c1 (at 900 m) are told
    c1     500        700         200 s   175.5 s              jam; nobody is before A any more
    =====  =========  ==========  ======  ===================  =========================================

    c1 is on the section from exactly A at 10 and still at exactly B at 110. c1 reaches A at 500 and w at 600: ``ℓ < A``
    is strict, so each is told that it is over for them.
    """
    fixes = """
    mobile t   x
    w      0   500
    c1     0   900
    c1     10  1000
    c2     20  1500
    c1     110 3000
    c2     120 3500
    c1     160 3100
    c1     200 2000
    c1     290 900
    c2     300 2500
    c2     451 3200
    c1     500 1000
    w      600 1000
    c1     700 3500
    """
    made = played("traffic", fixes, parameters={"cars": 2})
    assert notifications(made) == [
        (160, "match", "jam", "w"),
        (290, "unmatch", "jam", "w"),
        (451, "match", "jam", "c1"),
        (451, "match", "jam", "w"),
        (500, "unmatch", "jam", "c1"),
        (600, "unmatch", "jam", "w"),
    ]


def test_fuel_prices_and_preferences_change():
    """A station 500 m away; the price is right up to 70 cent, the fuel when it is below the driver's own level.

    1 fuel 25 %, level 20 %: no.    2 the driver prefers 30 %: told.     3 the price rises to 71: over.
    4 the price falls to 70: told.  5 the station closes: over.          6 it opens again, at 69: told.
    """
    fixes = """
    mobile t  x   y  fuel refuel_level
    car    1  500 0  25   20
    car    2  -   -  -    30
    """
    fixes = table(fixes).assign(op=[None, "update"])
    places = """
    place t  x y price op
    s     -  0 0 65    -
    s     3  - - 71    update
    s     4  - - 70    update
    s     5  - - -     remove
    s     6  0 0 69    add
    """
    assert notifications(played("fuel", fixes, places)) == [
        (2, "match", "s", "car"),
        (3, "unmatch", "s", "car"),
        (4, "match", "s", "car"),
        (5, "unmatch", "s", "car"),
        (6, "match", "s", "car"),
    ]


def test_dispatch_a_third_units_status_and_move_change_what_a_site_hears():
    """One nearest free unit is wanted at 0. a stands at 100, b at 200, c (a tow truck) at 10.

    1 a is nearest.  2 a becomes busy: b instead.  3 b drives to 6000 m, beyond 5 km: nobody.
    4 a is free again: a.  5 b drives to 100 m on the other side: as near as a, so both.
    """
    fixes = """
    mobile t x    y status kind
    a      1 100  0 free   -
    b      1 200  0 free   -
    c      1 10   0 free   tow
    a      2 100  0 busy   -
    b      3 6000 0 free   -
    a      4 100  0 free   -
    b      5 -100 0 free   -
    """
    made = played("dispatch", fixes, "place x y\nsite 0 0", parameters={"units": 1})
    assert timelines(made) == [
        ("a", "site", 1, 2, "unmatch"),
        ("b", "site", 2, 3, "unmatch"),
        ("a", "site", 4, None, None),
        ("b", "site", 5, None, None),
    ]


def test_friends_meet_by_profile_context_and_preference_without_jitter_and_never_themselves():
    """Near from 200 m, until more than 250 m apart. ann is a tourist who seeks guides, bob a guide who seeks anybody.

    1 300 m apart: nothing.                       2 200 m: near; bob is in a meeting, so only bob hears, of ann.
    3 bob is free: ann hears of bob.              4 240 m: beyond near_m, not beyond far_m: nothing.
    5 251 m: over for both.                       6 240 m: not near again: nothing.
    7 ann seeks cooks now, and they meet at 0 m: bob hears of ann; ann does not hear of bob.
    """
    profiles = table("""
    id  t role    context      seeks
    ann - tourist -            guide
    bob - guide   in_a_meeting -
    bob 3 -       free         -
    ann 7 -       -            cook
    """)
    fixes = """
    mobile t x   y
    ann    1 0   0
    bob    1 300 0
    bob    2 200 0
    bob    4 240 0
    bob    5 251 0
    bob    6 240 0
    bob    7 0   0
    """
    assert timelines(played("friends", fixes, parameters={"profiles": profiles})) == [
        ("ann", "bob", 2, 5, "unmatch"),
        ("bob", "ann", 3, 5, "unmatch"),
        ("ann", "bob", 7, None, None),
    ]


def test_friends_need_no_profiles():
    assert timelines(played("friends", "mobile t x y\nann 1 0 0\nbob 1 5 0")) == [
        ("ann", "bob", 1, None, None),
        ("bob", "ann", 1, None, None),
    ]


@pytest.mark.parametrize(
    ("name", "publisher", "subscriber"),
    [
        ("proximity", "stationary", "mobile"),
        ("coffee", "stationary", "mobile"),
        ("fuel", "stationary", "mobile"),
        ("traffic", "stationary", "mobile"),
        ("dispatch", "mobile", "stationary"),
        ("friends", "mobile", "mobile"),
    ],
)
def test_each_mobility_pattern_of_section_3_has_a_scenario(name, publisher, subscriber):
    made = named(name)()
    rows = {"fixes": "mobile", "places": "stationary", "": "stationary"}
    assert (rows[made.publications[0].rows], rows[made.subscriptions[0].rows]) == (publisher, subscriber)


@pytest.mark.parametrize(
    ("kind", "name", "population", "columns"),
    [
        ("static geographical features", "coffee", "shops", {"position", "door_m"}),
        ("positions", "friends", "presence", {"position"}),
        ("dynamic content", "fuel", "stations", {"price"}),
        ("profiles with role and context", "friends", "presence", {"role", "context"}),
        ("preferences that change", "fuel", "drivers", {"refuel_level", "max_price"}),
        ("preferences that change", "coffee", "shoppers", {"wish"}),
    ],
)
def test_each_kind_of_data_of_section_2_1_is_read_by_a_scenario(kind, name, population, columns):
    assert columns <= named(name)().population(population).columns(), kind


def test_every_built_in_scenario_says_what_it_was_made_with():
    for name in BUILT_IN:
        made = named(name)()
        assert made.name == name
        assert made.parameters
        assert name in repr(made)
        assert "\\mathcal" in made._repr_markdown_()
