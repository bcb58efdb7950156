"""The questions that no engine may answer differently, one test (or a few) for each, on the reference engine."""

from __future__ import annotations

import itertools

import pandas as pd
import pytest

from tests.model.worlds import notifications, party, played, reference, table, timelines
from workbench.errors import DataError, ScenarioError
from workbench.model import (
    Scenario,
    Space,
    any_region,
    at,
    between,
    column,
    held,
    hours,
    latch,
    location,
    now,
    other,
    own,
    pi,
    publication,
    publications,
    region,
    seconds,
    subscription,
    subscriptions,
    tau,
    ticks,
    visits,
)

HERE = region(location, position=column.position)
LINE = Space("line", d=float)
AT_D = region(LINE, d=column.d)
NEAR = own.here.within(10, other.site, space=location)
CAFE = "place x y\ncafe 0 0"


def meeting(filter=NEAR, *, publications_filter=None, tick=None, **options):
    """Places publish their site, mobiles subscribe with ``here`` and a filter."""
    places = publications("places", rows="places", regions={"site": HERE}, filter=publications_filter)
    mobiles = subscriptions("mobiles", rows="fixes", regions={"here": HERE}, filter=filter, **options)
    return Scenario([location], [places], [mobiles], tick=tick or seconds(1))


# -- time --------------------------------------------------------------------------------------------------


def test_time_integers_are_ticks_and_the_scenario_says_what_one_is():
    away = meeting(now - tau(NEAR) > hours(1), tick=hours(0.5))
    assert timelines(played(away, "mobile t x y\nann 1 0 0\nann 9 0 0", CAFE)) == [("cafe", "ann", 4, None, None)]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_time_timestamps_keep_their_resolution_and_a_tick_is_that(unit):
    t = pd.Series(pd.to_datetime(["2008-05-17T10:00:00Z", "2008-05-17T12:00:00Z"])).dt.as_unit(unit)
    fixes = pd.DataFrame({"mobile": "ann", "t": t, "x": 0.0, "y": 0.0})
    made = played(meeting(now - tau(NEAR) > hours(1)), fixes, CAFE)
    assert made.timelines["tau"].dtype == made.notifications["t"].dtype == made.timelines["pi"].dtype == t.dtype
    flipped = pd.Timestamp("2008-05-17T11:00:00Z") + pd.Timedelta(1, unit)
    assert list(made.timelines["tau"]) == [flipped], "one tick after an hour"


def test_time_local_times_are_refused_unless_a_zone_is_given():
    fixes = pd.DataFrame({"mobile": ["ann"], "t": ["2008-05-17 10:00:00"], "x": [0.0], "y": [0.0]})
    with pytest.raises(DataError, match="without a zone"):
        played(meeting(), fixes, CAFE)
    made = played(meeting(), fixes, CAFE, zone="Asia/Shanghai")
    assert list(made.timelines["tau"]) == [pd.Timestamp("2008-05-17T02:00:00Z")]


def test_between_updates_a_client_keeps_its_last_position_and_attributes():
    fixes = "mobile t x y\nann 1 0 0\nann 100 50 0"
    engine = reference(played(meeting(), fixes, CAFE))
    pair = party(engine.scenario, "places", "cafe"), party(engine.scenario, "mobiles", "ann")
    assert [engine.pair_matches(*pair, t) for t in (1, 2, 50, 99, 100)] == [True, True, True, True, False]


def test_m_is_evaluated_at_updates_and_flips_and_never_at_every_tick():
    made = played(meeting(now - tau(NEAR) > ticks(1_000_000)), "mobile t x y\nann 5 0 0\nann 2000000 0 0", CAFE)
    assert timelines(made) == [("cafe", "ann", 1_000_006, None, None)]
    assert reference(made).evaluation_instants(2_000_000) == [5, 1_000_005, 1_000_006, 2_000_000]


def test_a_replay_ends_at_the_last_instant_of_the_data_or_at_until():
    far = meeting(now - tau(NEAR) > ticks(5))
    history = "mobile t x y\nann 1 0 0\nann 3 0 0"
    assert timelines(played(far, history, CAFE)) == []
    assert timelines(played(far, history, CAFE, until=6)) == []
    assert timelines(played(far, history, CAFE, until=7)) == [("cafe", "ann", 7, None, None)]
    assert timelines(played(meeting(), history, CAFE, until=0)) == []


def test_all_updates_of_one_instant_are_applied_and_then_it_is_looked_at_once():
    """Both move by 100 m at 2: in between they would be 100 m apart."""
    scenario = Scenario(
        [location],
        [publications("p", rows="places", regions={"site": HERE})],
        [subscriptions("s", rows="fixes", regions={"here": HERE}, filter=NEAR)],
    )
    places = "place t x y\ncafe 1 0 0\ncafe 2 100 0"
    made = played(scenario, "mobile t x y\nann 1 0 0\nann 2 100 0", places)
    assert timelines(made) == [("cafe", "ann", 1, None, None)]


def test_at_one_instant_unmatch_comes_before_match_then_publication_then_subscription():
    fixes = "mobile t x y\nb 1 0 0\na 1 0 0\nb 2 100 0\na 2 100 0"
    places = "place x y\nq 100 0\np 100 0\nz 0 0"
    assert notifications(played(meeting(), fixes, places)) == [
        (1, "match", "z", "a"),
        (1, "match", "z", "b"),
        (2, "unmatch", "z", "a"),
        (2, "unmatch", "z", "b"),
        (2, "match", "p", "a"),
        (2, "match", "p", "b"),
        (2, "match", "q", "a"),
        (2, "match", "q", "b"),
    ]


def test_ids_are_ordered_as_what_they_are():
    fixes = "mobile t x y\n10 1 0 0\n9 1 0 0"
    assert [row[3] for row in notifications(played(meeting(), fixes, CAFE))] == [9, 10]


def test_a_pair_that_matches_from_the_start_matches_when_the_later_of_the_two_comes_to_exist():
    fixes = "mobile t x y\nann 5 0 0\nbob 7 0 0"
    places = "place t x y\nold - 0 0\nnew 6 0 0"
    assert timelines(played(meeting(), fixes, places)) == [
        ("old", "ann", 5, None, None),
        ("new", "ann", 6, None, None),
        ("new", "bob", 7, None, None),
        ("old", "bob", 7, None, None),
    ]


def test_not_is_the_complement_within_the_pairs_common_lifetime():
    fixes = table("mobile t x y op\nann 2 50 0 -\nann 4 0 0 -\nann 6 50 0 -\nann 8 50 0 remove\nend 9 50 0 -")
    assert [line for line in timelines(played(meeting(~NEAR), fixes, CAFE)) if line[1] == "ann"] == [
        ("cafe", "ann", 2, 4, "unmatch"),
        ("cafe", "ann", 6, 8, "subscription_removed"),
    ]


# -- filters --------------------------------------------------------------------------------------------------


def test_exists_ranges_over_regions_declared_in_the_space_and_the_predicate_is_true_under_one_choice():
    """The shop sells tea here and coffee there; "coffee here" is no single region of it."""
    goods = Space("goods", kind=str) | LINE
    stalls = publication(
        "stalls",
        regions={"left": region(goods, kind="tea", d=0), "right": region(goods, kind="coffee", d=100)},
    )
    near, coffee = own.here.within(1, other.stall, space=LINE), other.stall["kind"] == "coffee"
    for filter, expected in ((near & coffee, []), (near, ["ann"]), (coffee, ["ann"])):
        walker = subscriptions("walkers", rows="fixes", regions={"here": AT_D}, filter=filter)
        made = played(Scenario([LINE, goods], [stalls], [walker]), "mobile t d\nann 1 0")
        assert [line[1] for line in timelines(made)] == expected


def test_third_parties_are_among_what_is_named_and_existing():
    """ann is told of the cafe while some bus (not any mobile) stands at it."""
    cafes = publications("cafes", rows="places", regions={"site": HERE})
    bus = any_region("buses.at", line="red").within(1, other.site, space=location)
    people = subscriptions("people", rows="fixes", regions={"here": HERE}, filter=bus)
    service = Space("service", line=str) | location
    stop = {"at": region(service, line=column.line, position=column.position)}
    buses = publications("buses", rows="buses", regions=stop)
    bus_table = table("""
    id t x y line op
    b1 2 0 0 red  -
    b1 4 9 0 red  -
    b2 5 0 0 blue -
    b3 6 0 0 red  -
    b3 7 - - -    remove
    """)
    scenario = Scenario([location, service], [cafes, buses], [people], tables={"buses": bus_table})
    told = timelines(played(scenario, "mobile t x y\nann 1 0 0\nann 8 0 0", CAFE))
    assert [line for line in told if line[0] == "cafes/cafe"] == [
        ("cafes/cafe", "ann", 2, 4, "unmatch"),
        ("cafes/cafe", "ann", 6, 7, "unmatch"),
    ]


# -- who ------------------------------------------------------------------------------------------------------


def test_identity_mobile_7_and_place_7_are_two_clients_and_ids_keep_their_type():
    made = played(meeting(), "mobile t x y\n7 1 0 0", "place x y\n7 0 0")
    assert timelines(made) == [(7, 7, 1, None, None)]
    assert made.timelines["subscription"].dtype == made.timelines["publication"].dtype == "int64"
    made = played(meeting(), table("mobile t x y\n7 1 0 0").astype({"mobile": str}), "place x y\n7 0 0")
    assert timelines(made) == [(7, "7", 1, None, None)]


def test_names_carry_their_population_where_a_side_has_several():
    two = [publications(name, rows="places", regions={"site": HERE}) for name in ("ads", "news")]
    mobiles = subscriptions("mobiles", rows="fixes", regions={"here": HERE}, filter=NEAR)
    made = played(Scenario([location], two, [mobiles]), "mobile t x y\n7 1 0 0", "place x y\n3 0 0")
    assert timelines(made) == [("ads/3", 7, 1, None, None), ("news/3", 7, 1, None, None)]
    assert made.explain("ads/3", 7, at=1).holds


def test_one_client_with_many_subscriptions_is_updated_once_and_never_matches_itself():
    people = [
        publications("presence", rows="fixes", regions={"site": HERE}),
        subscriptions("near", rows="fixes", regions={"here": HERE}, filter=NEAR),
        subscriptions("far", rows="fixes", regions={"here": HERE}, filter=~NEAR),
    ]
    made = played(Scenario([location], people[:1], people[1:]), "mobile t x y\nann 1 0 0\nbob 1 5 0\nbob 2 50 0")
    assert timelines(made) == [
        ("ann", "near/bob", 1, 2, "unmatch"),
        ("bob", "near/ann", 1, 2, "unmatch"),
        ("ann", "far/bob", 2, None, None),
        ("bob", "far/ann", 2, None, None),
    ]
    assert made.metrics["rows_in"] == 3


# -- what -----------------------------------------------------------------------------------------------------


def test_a_region_that_constrains_none_of_the_dimensions_matches_nothing_not_even_negated_distance():
    """A row without a value in d says nothing on the line; it is neither within 1 m nor does it contain or overlap."""
    marks = publications("marks", rows="places", regions={"mark": AT_D})
    for relation in (
        own.here.within(1, other.mark, space=LINE),
        own.here.overlaps(other.mark, space=LINE),
        own.here.contains(other.mark, space=LINE),
        own.here.enclosed_by(other.mark, space=LINE),
        own.here.nearest(other.mark, space=LINE),
    ):
        walkers = subscriptions("walkers", rows="fixes", regions={"here": AT_D}, filter=relation)
        made = played(Scenario([LINE], [marks], [walkers]), "mobile t d\nann 1 0", "place d\nsaid 0\nsilent -")
        assert [line[0] for line in timelines(made)] == ["said"], relation


def test_an_absent_dimension_is_its_whole_domain():
    goods = Space("goods", kind=str, price=float)
    offers = publications("offers", rows="places", regions={"offer": region(goods, kind="tea", price=column.price)})
    wish = subscription(
        "wish", regions={"wish": region(goods, kind="tea", price=between(0, 5))},
        filter=own.wish.overlaps(other.offer, space=goods),
    )  # fmt: skip
    made = played(Scenario([goods], [offers], [wish]), "mobile t\nnobody 1", "place price\ncheap 1\ndear 9\nopen -")
    assert [line[0] for line in timelines(made)] == ["cheap", "open"]


def test_a_null_cell_of_an_update_means_unchanged_and_an_unknown_column_is_an_error():
    goods = Space("goods", price=float, brand=str)
    offers = publications(
        "offers", rows="places", regions={"offer": region(goods, price=column.price, brand=column.brand)},
        filter=(own.offer["price"] < 5) & (own.offer["brand"] == "a"),
    )  # fmt: skip
    wish = subscription("wish", regions={"wish": region(goods, price=between(0, 100))})
    scenario = Scenario([goods], [offers], [wish])
    places = "place t price brand\np 1 3 a\np 2 - b\np 3 9 a\np 4 2 -"
    assert timelines(played(scenario, "mobile t\nnobody 1\nnobody 5", places)) == [
        ("p", "wish", 1, 2, "unmatch"),
        ("p", "wish", 4, None, None),
    ]
    with pytest.raises(DataError, match="'offers' reads the column 'price'; did you mean 'prize'"):
        played(scenario, "mobile t\nnobody 1", "place prize brand\np 1 a")


@pytest.mark.parametrize(("x", "inside"), [(9.999999, True), (10.0, True), (10.000001, False)])
def test_borders_within_d_includes_d(x, inside):
    assert bool(timelines(played(meeting(), f"mobile t x y\nann 1 {x} 0", CAFE))) is inside


def test_borders_polygons_are_closed():
    scenario = "proximity"
    square = {"place": ["square"], "geometry": ["POLYGON ((0 0, 0.3 0.3, 0 0.6, 0 0))"]}
    for x, y, inside in ((0, 0, True), (0.1, 0.1, True), (0.3, 0.3, True), (0.2, 0.19999999, False), (0, 0.3, True)):
        assert bool(timelines(played(scenario, f"mobile t x y\nann 1 {x} {y}", square))) is inside, (x, y)


def test_borders_on_lon_lat_the_distance_is_the_haversine_and_is_named():
    degree_m = 6_371_000 * 3.141592653589793 / 180
    fixes = {"mobile": ["ann"], "t": [1], "lon": [0.0], "lat": [1.0]}
    for radius, inside in ((degree_m + 0.01, True), (degree_m - 0.01, False)):
        places = {"place": ["p"], "lon": [0.0], "lat": [0.0], "radius_m": [radius]}
        made = played("proximity", fixes, places)
        assert bool(timelines(made)) is inside
        assert made.metrics["metric"] == "haversine on a sphere of 6371000 m, metres"


# -- never, tau, pi, visits ---------------------------------------------------------------------------------------


def test_never_compares_as_minus_infinity_and_is_null_in_tables():
    fixes = "mobile t x y\nann 1 50 0\nann 2 50 0"
    assert len(timelines(played(meeting(now - tau(NEAR) > hours(1000)), fixes, CAFE))) == 1
    assert len(timelines(played(meeting(now - tau(NEAR) < hours(1000)), fixes, CAFE))) == 0
    assert len(timelines(played(meeting(tau(NEAR) < at(-(10**9))), fixes, CAFE))) == 1
    for comparison in (pi(NEAR) - tau(NEAR) > ticks(0), pi(NEAR) - tau(NEAR) <= ticks(0)):
        assert timelines(played(meeting(comparison), fixes, CAFE)) == [], "never - never has no value"
    made = played(meeting(), "mobile t x y\nann 1 0 0", CAFE)
    assert made.timelines["pi"].isna().all() and made.timelines["pi"].dtype == "Int64"


def test_tau_and_pi_look_up_to_and_including_now():
    just_entered = meeting(now - tau(NEAR) <= ticks(0))
    just_left = meeting(now - pi(NEAR) <= ticks(0))
    history = "mobile t x y\nann 1 50 0\nann 3 0 0\nann 6 50 0\nann 9 50 0"
    assert timelines(played(just_entered, history, CAFE)) == [("cafe", "ann", 3, 4, "unmatch")]
    assert timelines(played(just_left, history, CAFE)) == [("cafe", "ann", 6, 7, "unmatch")]


def test_tau_over_any_region_is_the_latest_of_theirs_removed_ones_included():
    """ann stands in one (from 1) and two (from 5, removed at 6): the latest beginning stays 5."""
    entered = own.here.within(10, any_region("places.site"), space=location)
    places = "place t x y op\none 1 0 0 -\ntwo 1 50 0 -\ntwo 5 0 0 -\ntwo 6 - - remove\nfar 1 900 0 -"
    made = played(meeting(now - tau(entered) > ticks(10)), "mobile t x y\nann 1 0 0\nann 30 0 0", places)
    assert timelines(made) == [("far", "ann", 16, None, None), ("one", "ann", 16, None, None)]


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        (lambda v: v(last=2).mean() > ticks(15), [(30, None)]),  # (10 + 30) / 2 = 20, then (30 + 10) / 2
        (lambda v: v(last=3).count() >= 3, [(40, None)]),
        (lambda v: v(last=2).max() <= ticks(10), []),
        (lambda v: v().sum() > ticks(39), [(30, None)]),
        (lambda v: v().min() < ticks(10), []),
        (lambda v: v().count() < 1, [(0, 10)]),
        (lambda v: v(window=ticks(5)).count() > 0, [(10, 16), (30, 36), (40, None)]),
        (lambda v: v(last=2).mean() < ticks(1_000), [(30, None)]),  # fewer than n: false, whatever the sign
    ],
)
def test_aggregates_are_over_completed_visits_in_the_order_of_their_ends(aggregate, expected):
    """Visits of [0, 10]: a from 0 to 10, b from 0 to 30, c from 30 to 40."""
    section = Space("section", d=float)
    on = any_region("cars.here").enclosed_by(own.section, space=section)
    watch = publication(
        "watch",
        regions={"section": region(section, d=between(0, 10))},
        filter=aggregate(lambda **options: visits(on, **options)),
    )
    here = {"here": region(section, d=column.d)}
    cars = subscriptions("cars", rows="fixes", regions=here, filter=own.here["d"] > 1_000)
    history = "mobile t d\na 0 5\nb 0 5\nz 0 2000\na 10 11\nb 30 11\nc 30 5\nc 40 11\nz 41 2000"
    made = played(Scenario([section], [watch], [cars]), history)
    assert [(tau_, pi_) for _, _, tau_, pi_, _ in timelines(made)] == expected


def test_nearest_is_among_existing_regions_of_others_and_a_third_partys_move_speaks():
    """The nearest person to ann is never ann; bob's move tells ann of cid."""
    people = publications("presence", rows="fixes", regions={"site": HERE})
    nearest = own.here.nearest(other.site, space=location)
    seekers = subscriptions("seekers", rows="fixes", regions={"here": HERE}, filter=nearest)
    fixes = "mobile t x y\nann 1 0 0\nbob 1 5 0\ncid 1 9 0\nbob 2 500 0"
    told = timelines(played(Scenario([location], [people], [seekers]), fixes))
    assert [line for line in told if line[1] == "ann"] == [
        ("bob", "ann", 1, 2, "unmatch"),
        ("cid", "ann", 2, None, None),
    ]


def test_k_nearest_is_fewer_than_k_strictly_nearer_and_ties_all_match():
    places = "place x y\na 1 0\nb -2 0\nc 0 2\nd 3 0"
    for k, expected in ((1, ["a"]), (2, ["a", "b", "c"]), (3, ["a", "b", "c"]), (4, ["a", "b", "c", "d"])):
        made = played(meeting(own.here.nearest(other.site, space=location, k=k)), "mobile t x y\nann 1 0 0", places)
        assert [line[0] for line in timelines(made)] == expected


# -- removal ------------------------------------------------------------------------------------------------------


def test_remove_and_add_at_one_instant_is_an_update_and_later_a_new_timeline():
    places = table("""
    place t x y op
    cafe  1 0 0 add
    cafe  3 - - remove
    cafe  3 5 0 add
    cafe  5 - - remove
    cafe  7 0 0 add
    """)
    made = played(meeting(), "mobile t x y\nann 1 0 0\nann 9 0 0", places)
    assert timelines(made) == [("cafe", "ann", 1, 5, "publication_removed"), ("cafe", "ann", 7, None, None)]
    assert made.metrics["rows_set_aside"] == 0


def test_history_of_tau_survives_a_removal_by_name():
    """The cafe closes at 3, which ends the match of the two regions (pi = 3), and is back at 9 far away."""
    places = table("place t x y op\ncafe 1 0 0 add\ncafe 3 - - remove\ncafe 9 99 0 add")
    left = meeting(now - pi(NEAR) > ticks(10))
    made = played(left, "mobile t x y\nann 2 0 0\nann 30 0 0", places)
    assert timelines(made) == [("cafe", "ann", 2, 3, "publication_removed"), ("cafe", "ann", 14, None, None)]


def test_the_end_of_a_lifetime_is_a_removal():
    made = played(meeting(lifetime=seconds(5)), "mobile t x y\nann 1 0 0\nann 4 0 0\nann 20 0 0\nbob 30 900 0", CAFE)
    assert timelines(made) == [
        ("cafe", "ann", 1, 9, "subscription_removed"),
        ("cafe", "ann", 20, 25, "subscription_removed"),
    ]


def test_of_a_transient_publication_only_the_match_is_reported():
    quotes = publications("quotes", rows="fixes", regions={"site": HERE}, transient=True)
    desk = subscriptions("desks", rows="places", regions={"here": HERE}, filter=NEAR)
    made = played(Scenario([location], [quotes], [desk]), "mobile t x y\nq 1 0 0\nq 2 0 0\nq 9 0 0", CAFE)
    assert notifications(made) == [(t, "match", "q", "cafe") for t in (1, 2, 9)]
    assert [(line[2], line[3]) for line in timelines(made)] == [(1, 2), (2, 3), (9, None)]


def test_a_deleted_publication_is_told_a_deleted_subscription_tells_nobody_and_removal_wins():
    fixes = table("""
    mobile t x  y op
    moved  1 0  0 -
    moved  2 99 0 -
    gone   1 0  0 -
    gone   2 99 0 remove
    stays  1 0  0 -
    last   1 0  0 -
    last   3 99 0 -
    """)
    places = table("place t x y op\ncafe 1 0 0 -\ncafe 3 - - remove")
    made = played(meeting(), fixes, places)
    assert timelines(made) == [
        ("cafe", "gone", 1, 2, "subscription_removed"),
        ("cafe", "last", 1, 3, "publication_removed"),
        ("cafe", "moved", 1, 2, "unmatch"),
        ("cafe", "stays", 1, 3, "publication_removed"),
    ]
    assert [row for row in notifications(made) if row[1] == "unmatch"] == [
        (2, "unmatch", "cafe", "moved"),
        (3, "unmatch", "cafe", "last"),
        (3, "unmatch", "cafe", "stays"),
    ]


# -- rows ---------------------------------------------------------------------------------------------------------


def test_rows_come_in_any_order():
    rows = table("mobile t x y\nann 1 0 0\nann 2 50 0\nbob 1 50 0\nbob 3 0 0\nann 4 0 0")
    expected = timelines(played(meeting(), rows, CAFE))
    assert len(expected) == 3
    for order in itertools.islice(itertools.permutations(range(len(rows))), 0, 120, 7):
        assert timelines(played(meeting(), rows.iloc[list(order)], CAFE)) == expected


def test_rows_identical_ones_collapse_completing_ones_merge_and_conflicting_ones_are_set_aside():
    fixes = table("""
    mobile t x  y  mood
    ann    1 0  0  calm
    ann    1 0  0  calm
    ann    2 50 0  -
    ann    2 50 0  calm
    ann    3 0  0  -
    ann    3 1  0  -
    ann    3 0  0  -
    ann    5 50 0  -
    """)
    made = played(meeting(), fixes, CAFE)
    assert timelines(made) == [("cafe", "ann", 1, 2, "unmatch")], "all three rows of t = 3 are set aside"
    counts = {name: made.metrics[name] for name in ("rows_in", "rows_collapsed", "rows_set_aside")}
    assert counts == {"rows_in": 9, "rows_collapsed": 2, "rows_set_aside": 3}, "a place and eight fixes"


# -- held and latch -------------------------------------------------------------------------------------------------


def test_held_is_true_from_the_instant_at_which_its_part_has_been_true_that_long():
    history = "mobile t x y\nann 1 0 0\nann 4 50 0\nann 5 0 0\nann 20 50 0"
    made = played(meeting(held(NEAR, ticks(5))), history, CAFE)
    assert timelines(made) == [("cafe", "ann", 10, 20, "unmatch")]


def test_latch_is_true_from_on_until_off_and_off_wins():
    far = ~own.here.within(20, other.site, space=location)
    history = "mobile t x y\nann 1 15 0\nann 2 10 0\nann 3 15 0\nann 4 21 0\nann 5 15 0\nann 6 9 0"
    assert timelines(played(meeting(latch(on=NEAR, off=far)), history, CAFE)) == [
        ("cafe", "ann", 2, 4, "unmatch"),
        ("cafe", "ann", 6, None, None),
    ]
    assert timelines(played(meeting(latch(on=NEAR, off=NEAR)), history, CAFE)) == []


def test_an_unsupported_combination_is_refused_by_name():
    with pytest.raises(ScenarioError, match="has no distance"):
        own.wish.within(5, other.offer, space=Space("goods", kind=str))


def test_an_area_whose_border_touches_itself_is_mended_with_a_warning():
    """Published districts often have such rings; the same points stay inside."""
    hourglass = "POLYGON ((0 0, 4 4, 4 0, 0 4, 0 0))"
    fixes = {"mobile": [1, 2], "t": [1, 1], "x": [0.5, 2.0], "y": [2.0, 0.5]}
    from workbench import replay

    with pytest.warns(UserWarning, match="mended"):
        done = replay("proximity", fixes, {"place": ["p"], "geometry": [hourglass]}, engine="reference")
    assert done.timelines["subscription"].tolist() == [1]
