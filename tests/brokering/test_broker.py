"""The live broker: who is told, what, and when (Subject Spaces, 4.7 and 6.2)."""

from __future__ import annotations

import pytest

from workbench.brokering.broker import Broker
from workbench.errors import UpdateError, WorkbenchError
from workbench.model import (
    Clock,
    Scenario,
    Space,
    above,
    any_region,
    at_most,
    column,
    disc,
    held,
    hours,
    location,
    now,
    other,
    own,
    percentage,
    publication,
    publications,
    region,
    seconds,
    subscription,
    subscriptions,
    tau,
)
from workbench.scenarios.proximity import scenario as proximity

gas = Space("gas", price=float)
car = Space("car", fuel=percentage)


def stations(**options) -> Scenario:
    """Stations with prices, drivers with fuel: a driver hears of cheap stations within 1 km while fuel is low."""
    sold = publications(
        "stations",
        rows="places",
        regions={
            "site": region(location, position=column.position),
            "offer": region(gas, price=column.price),
        },
        filter=other.here.within(1000, own.site, space=location),
    )
    drivers = subscriptions(
        "drivers",
        rows="fixes",
        regions={
            "here": region(location, position=column.position),
            "tank": region(car, fuel=column.fuel),
            "budget": region(gas, price=at_most(column.budget)),
        },
        filter=other.offer.enclosed_by(own.budget, space=gas) & (own.tank["fuel"] < 20),
    )
    return Scenario([location, gas, car], [sold], [drivers], **options)


def said(messages) -> list[tuple]:
    return [(m.t, m.kind, m.subscription, sorted(m.publications)) for m in messages]


@pytest.fixture
def broker() -> Broker:
    made = Broker(stations())
    made.add("stations", "A", position=(0, 0), price=60.0)
    made.add("stations", "B", position=(100, 0), price=90.0)
    made.add("drivers", 1, position=(500, 0), fuel=10, budget=70.0)
    return made


def test_a_new_publication_is_told_to_every_subscription_that_it_matches(broker):
    broker.add("drivers", 2, position=(0, 500), fuel=15, budget=80.0)
    told = broker.add("stations", "C", position=(10, 10), price=50.0)
    assert said(told) == [(5, "match", 1, ["C"]), (5, "match", 2, ["C"])]
    (content,) = told[0].contents
    assert content.regions["offer"]["price"].lower == 50.0
    assert content.cells["price"] == 50.0


def test_a_new_subscription_is_told_all_its_publications_in_one_message(broker):
    told = broker.add("drivers", 2, position=(0, 0), fuel=5, budget=100.0)
    assert said(told) == [(4, "match", 2, ["A", "B"])]


def test_a_new_subscription_without_a_match_is_told_nothing(broker):
    assert broker.add("drivers", 2, position=(9000, 0), fuel=5, budget=100.0) == []


def test_an_updated_publication_is_told_only_to_those_that_it_newly_matches(broker):
    assert said(broker.update("stations", "B", price=65.0)) == [(4, "match", 1, ["B"])]
    assert broker.update("stations", "B", price=64.0) == []


def test_an_updated_subscription_is_told_only_what_newly_matches_it(broker):
    assert said(broker.update("drivers", 1, budget=95.0)) == [(4, "match", 1, ["B"])]
    assert said(broker.update("drivers", 1, budget=65.0)) == [(5, "unmatch", 1, ["B"])]


def test_a_removed_publication_is_told_to_those_that_it_matched_with_what_it_was(broker):
    (message,) = broker.remove("stations", "A")
    assert said([message]) == [(4, "unmatch", 1, ["A"])]
    assert message.contents[0].cells["price"] == 60.0


def test_nobody_is_told_of_a_removed_subscription(broker):
    assert broker.remove("drivers", 1) == []
    assert broker.matches == set()


def test_no_message_without_a_transition(broker):
    for step in range(400, -400, -50):
        assert broker.move(1, (step, 0)) == []
    assert broker.matches == {("A", 1)}


def test_one_move_updates_the_client_for_all_its_publications_and_subscriptions():
    """6.2, point 3: the location is updated once for each client, not for each subscription."""
    here = {"here": region(location, position=column.position)}
    near = own.here.within(100, other.here, space=location)
    seen = publications("seen", rows="fixes", regions=here)
    look = subscriptions("look", rows="fixes", regions=here, filter=near)
    broker = Broker(Scenario([location], [seen], [look]))
    for who in (1, 2):
        broker.add("seen", who, position=(who * 1000, 0))
        broker.add("look", who)
    assert said(broker.move(1, (1950, 0))) == [(5, "match", 1, [2]), (5, "match", 2, [1])]


def test_one_message_of_each_kind_per_instant_and_subscription(broker):
    broker.update("stations", "A", price=99.0, t=10)
    broker.update("stations", "B", price=10.0, t=10)
    broker.add("stations", "C", position=(0, 0), price=1.0, t=10)
    assert said(broker.advance(10)) == [(10, "unmatch", 1, ["A"]), (10, "match", 1, ["B", "C"])]
    assert broker.notifications["publication"].tolist()[-3:] == ["A", "B", "C"]


def test_nothing_is_sent_before_an_instant_is_closed(broker):
    assert broker.update("stations", "B", price=10.0, t=10) == []
    assert broker.matches == {("A", 1)}
    assert said(broker.move(1, (5000, 0), t=11)) == [(10, "match", 1, ["B"])]
    assert said(broker.advance(12)) == [(11, "unmatch", 1, ["A", "B"])]


def test_the_last_of_two_updates_at_one_instant_counts(broker):
    broker.update("stations", "B", price=10.0, t=10)
    broker.update("stations", "B", price=95.0, t=10)
    assert broker.advance(10) == []


def test_removal_and_return_at_one_instant_is_an_update(broker):
    broker.remove("stations", "A", t=10)
    broker.add("stations", "A", price=61.0, t=10)
    assert broker.advance(10) == []
    broker.remove("stations", "A", t=11)
    broker.advance(11)
    assert said(broker.add("stations", "A", position=(0, 0), price=60.0, t=12) + broker.advance(12)) == [
        (12, "match", 1, ["A"])
    ]


def test_time_alone_brings_about_a_match_one_tick_after_the_pause():
    entered = own.here.enclosed_by(any_region("shops.room"), space=location)
    shops = publications("shops", rows="places", regions={"room": region(location, position=disc(column.position, 10))})
    people = subscriptions(
        "people",
        rows="fixes",
        regions={"here": region(location, position=column.position)},
        filter=own.here.within(1000, other.room, space=location) & (now - tau(entered) > hours(5)),
    )
    broker = Broker(Scenario([location], [shops], [people]))
    broker.add("shops", "abc", position=(0, 0), t=1)
    broker.add("people", 1, position=(500, 0), t=1)
    assert said(broker.move(1, (5, 0), t=100)) == [(1, "match", 1, ["abc"])]
    assert said(broker.move(1, (500, 0), t=200)) == [(100, "unmatch", 1, ["abc"])]
    assert broker.advance(100 + 5 * 3600) == []
    assert said(broker.advance(100 + 6 * 3600)) == [(100 + 5 * 3600 + 1, "match", 1, ["abc"])]


def test_timed_transitions_on_the_way_are_sent_in_order():
    near = own.here.within(10, other.site, space=location)
    sites = publications("sites", rows="places", regions={"site": region(location, position=column.position)})
    dwell = subscriptions(
        "dwell",
        rows="fixes",
        regions={"here": region(location, position=column.position)},
        filter=held(near, seconds(5)),
    )
    broker = Broker(Scenario([location], [sites], [dwell]))
    broker.add("sites", "s", position=(0, 0), t=1)
    broker.add("dwell", 1, position=(0, 0), t=3)
    broker.add("dwell", 2, position=(0, 0), t=4)
    assert said(broker.move(1, (50, 0), t=20)) == [(8, "match", 1, ["s"]), (9, "match", 2, ["s"])]


def test_a_filter_can_be_updated_and_looks_back_at_the_history(broker):
    loose = other.offer.enclosed_by(own.budget, space=gas)
    assert said(broker.update("drivers", 1, filter=loose, fuel=90)) == []
    strict = loose & (own.tank["fuel"] < 20)
    assert said(broker.update("drivers", 1, filter=strict)) == [(5, "unmatch", 1, ["A"])]


def test_a_pull_query_is_a_subscription_asked_once(broker):
    assert [c.publication for c in broker.ask("drivers", position=(0, 0), fuel=5, budget=100.0)] == ["A", "B"]
    assert broker.matches == {("A", 1)}
    assert broker.now == 3


def test_single_publications_exist_from_the_start():
    alarm = publication("alarm", regions={"area": region(location, position=disc((0, 0), 100))})
    guard = subscription(
        "guard",
        regions={"post": region(location, position=(50, 0))},
        filter=own.post.enclosed_by(other.area, space=location),
    )
    assert said(Broker(Scenario([location], [alarm], [guard])).advance(1)) == [(1, "match", "guard", ["alarm"])]


def test_a_transient_event_reports_its_match_only():
    quotes = publications("quotes", rows="places", transient=True, regions={"offer": region(gas, price=column.price)})
    buyers = subscriptions(
        "buyers", rows="fixes", regions={"limit": region(gas, price=above(50))},
        filter=other.offer.enclosed_by(own.limit, space=gas),
    )  # fmt: skip
    broker = Broker(Scenario([gas], [quotes], [buyers]))
    broker.add("buyers", 1)
    assert said(broker.add("quotes", "SAP", price=60.0)) == [(2, "match", 1, ["SAP"])]
    assert broker.advance(10) == []
    assert broker.matches == set()
    assert said(broker.add("quotes", "SAP", price=61.0)) == [(11, "match", 1, ["SAP"])]


def test_explain_says_why(broker):
    text = str(broker.explain("B", 1))
    assert "✗ price(" in text or "✗ offer' m_e budget" in text
    assert not broker.explain("B", 1).holds
    assert broker.explain("A", 1).holds


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (lambda b: b.add("station", "D", position=(0, 0)), "did you mean 'stations'"),
        (lambda b: b.add("stations", "A", position=(0, 0)), "exists already"),
        (lambda b: b.update("stations", "Z", price=1.0), "no publication 'Z'"),
        (lambda b: b.remove("drivers", 9), "no subscription 9"),
        (lambda b: b.move(9, (0, 0)), "no client 9"),
        (lambda b: b.update("stations", "A", prise=1.0), "did you mean 'price'"),
        (lambda b: b.update("stations", "A", price=float("nan")), "NaN"),
        (lambda b: b.update("stations", "A", price="cheap"), "not a number"),
        (lambda b: b.update("drivers", 1, fuel=120), "outside the domain"),
        (lambda b: b.move(1, (float("nan"), 0)), "finite"),
        (lambda b: b.move(1, (0, 0), t=3), "time goes back"),
        (lambda b: b.advance(2), "time goes back"),
        (lambda b: b.move(1, (0, 0), t="2008-05-17T10:00:00Z"), "not an integer"),
        (lambda b: b.update("drivers", 1, filter=own.nose["fuel"] < 3), "no region 'nose'"),
        (lambda b: b.update("drivers", 1, filter=held(own.tank["fuel"] < 3, seconds(0.5))), "finer than the tick"),
        (lambda b: b.ask("stations", position=(0, 0)), "ask with a subscription"),
        (lambda b: b.profile("people", 1, age=3), "no population joins"),
    ],
)
def test_a_refused_operation_says_why_and_changes_nothing(broker, operation, words):
    before = (broker.matches, broker.now, broker.notifications.to_dict())
    with pytest.raises(UpdateError, match=words):
        operation(broker)
    assert (broker.matches, broker.now, broker.notifications.to_dict()) == before
    assert said(broker.update("stations", "B", price=65.0)) == [(4, "match", 1, ["B"])]


def test_one_id_in_two_tables_has_to_be_told_apart():
    broker = Broker(proximity())
    broker.add("places", 7, position=(0, 0))
    broker.add("mobiles", 7, position=(0, 0))
    with pytest.raises(UpdateError, match="say which"):
        broker.move(7, (1, 1))
    assert broker.move(("fixes", 7), (1, 1)) == []


def test_a_position_outside_the_globe_is_refused():
    broker = Broker(proximity(), metric="wgs84")
    with pytest.raises(UpdateError, match="outside the globe"):
        broker.add("mobiles", 1, position=(33.0, 133.0))


def test_timestamps_need_a_zone():
    broker = Broker(proximity(), clock=Clock.of_timestamps("s"))
    with pytest.raises(WorkbenchError, match="no zone"):
        broker.add("mobiles", 1, position=(0, 0), t="2008-05-17 10:00:00")
    broker.add("places", "cafe", position=(0, 0), t="2008-05-17T10:00:00Z")
    broker.add("mobiles", 1, position=(0, 0), t="2008-05-17T12:00:01+02:00")
    assert str(broker.advance("2008-05-17T10:00:02Z")[0].t) == "2008-05-17 10:00:01+00:00"
