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


def test_traffic_the_message_names_another_way():
    made = played("traffic", "mobile t x\nann 1 0\nann 2 1", parameters={"route": "Take the bridge."})
    jam = reference(made).history.instance(party(made.scenario, "jam", "jam"), 1)
    assert repr(jam.regions["message"]["route"]) == "{'Take the bridge.'}"


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


def test_advertising_needs_an_age_in_the_target_and_a_person_who_opted_in():
    """A shop for all from 18 to 30, another one for all from 65; everybody stands near both.

    ann is 17: nobody.  bob is 30: young, the end belongs to it.  cat is 70, and has opted out until 5: old, from 5 on.
    dan says neither his age nor that he minds: both.  At 9 ann is 18: young.
    """
    profiles = table("""
    id  t age adverts
    ann - 17  yes
    bob - 30  yes
    cat - 70  no
    cat 5 -   yes
    ann 9 18  -
    """)
    profiles["adverts"] = profiles["adverts"].map({"yes": True, "no": False})
    places = """
    place x y min_age max_age
    young 0 0 18      30
    old   9 0 65      -
    """
    fixes = "mobile t x y\nann 1 5 50\nbob 1 5 50\ncat 1 5 50\ndan 1 5 50"
    made = played("advertising", fixes, places, parameters={"profiles": profiles}, until=10)
    assert notifications(made) == [
        (1, "match", "old", "dan"),
        (1, "match", "young", "bob"),
        (1, "match", "young", "dan"),
        (5, "match", "old", "cat"),
        (9, "match", "young", "ann"),
    ]


def test_advertising_is_coffee_where_nobody_chooses():
    fixes = "mobile t x y\nann 1 900 0\nann 2 0 0\nann 3 900 0\nann 18003 900 0"
    places = "place x y\nabc 0 0\nxyz 1500 0"
    assert notifications(played("advertising", fixes, places)) == notifications(played("coffee", fixes, places))


def test_callers_are_handed_over_to_the_nearest_station():
    """Stations at 0 and at 1000 m. ann calls from 2 to 6 and walks east; bob never calls.

    2 at 100 m: west.  3 at 500 m, as near to both: both.  4 at 600 m: east alone.  6 she is quiet: over.
    """
    fixes = """
    mobile t x   y state
    bob    1 50  0 -
    ann    1 100 0 quiet
    ann    2 100 0 calling
    ann    3 500 0 -
    ann    4 600 0 -
    ann    6 600 0 quiet
    """
    assert timelines(played("callers", fixes, "place x y\nwest 0 0\neast 1000 0")) == [
        ("ann", "west", 2, 4, "unmatch"),
        ("ann", "east", 3, 6, "unmatch"),
    ]


def test_callers_far_from_every_station_are_heard_by_none():
    fixes = "mobile t x y state\nann 1 500 0 calling"
    assert timelines(played("callers", fixes, "place x y\nwest 0 0", parameters={"at_most_m": 499})) == []


def test_game_a_catch_takes_time_a_hunter_and_no_refuge():
    """Catches within 50 m, held for 30 s; a refuge of 100 m lies at 1000 m. Red hunts blue, and blue hunts nobody else.

    0    ann (red), bob (blue) and cat (red) are together
    30   ann and cat have caught bob, and nobody has caught them
    40   bob goes into the refuge; ann follows him, and he is safe
    100  both step out of it, 51 m apart: nothing is held
    110  bob comes within 50 m
    140  ann has caught him again
    """
    fixes = """
    mobile t   x    y team hunts
    ann    0   0    0 red  blue
    bob    0   0    0 blue green
    cat    0   0    0 red  blue
    ann    40  1000 0 -    -
    bob    40  1000 0 -    -
    ann    100 1200 0 -    -
    bob    100 1251 0 -    -
    bob    110 1250 0 -    -
    ann    150 1200 0 -    -
    """
    assert timelines(played("game", fixes, "place x y name\nchurch 1000 0 Church")) == [
        ("players/bob", "hunters/ann", 30, 40, "unmatch"),
        ("players/bob", "hunters/cat", 30, 40, "unmatch"),
        ("refuges/church", "walkers/ann", 40, 100, "unmatch"),
        ("refuges/church", "walkers/bob", 40, 100, "unmatch"),
        ("players/bob", "hunters/ann", 140, None, None),
    ]


def test_tourists_hear_of_a_room_after_a_while_and_not_twice_a_day():
    """Rooms of 20 m side by side; two minutes make a visit. ann likes glass, bob anything.

    0    ann and bob enter the room of glass (a); at 60 s ann is out at the door and in again at 80
    120  bob has been inside for two minutes; ann has not, since 80
    200  ann has: told
    300  both go to the masks (b): over; at 420 bob hears of them, ann does not care
    500  bob goes back to the glass: he has seen it, and 12 hours (43,200 s) are not over
    620  two minutes later nothing is said. His first visit ended at 300; at 43,501, 12 h and 1 s later, he is told
    """
    places = {
        "place": ["a", "b"],
        "exhibit": ["glass", "masks"],
        "geometry": ["POLYGON ((0 0, 20 0, 20 20, 0 20, 0 0))", "POLYGON ((20 0, 40 0, 40 20, 20 20, 20 0))"],
    }
    fixes = """
    mobile t     x  y  likes
    ann    0     10 10 glass
    bob    0     10 10 -
    ann    60    10 21 -
    ann    80    10 10 -
    ann    300   30 10 -
    bob    300   30 10 -
    bob    500   10 10 -
    bob    44000 10 10 -
    """
    assert timelines(played("tourists", fixes, places)) == [
        ("a", "bob", 120, 300, "unmatch"),
        ("a", "ann", 200, 300, "unmatch"),
        ("b", "bob", 420, 500, "unmatch"),
        ("a", "bob", 43_501, None, None),
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
        ("advertising", "stationary", "mobile"),
        ("callers", "mobile", "stationary"),
        ("game", "mobile", "mobile"),
        ("tourists", "stationary", "mobile"),
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
        ("profiles with age and consent", "advertising", "shoppers", {"age", "adverts"}),
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
