"""The broker: registration, publishing, filtering, brokers among themselves, start, end, breaks (TIP 3, 3, 4 and 6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.tip.worlds import INFORMATION, LOCATION, Answering, Quiet, publishing, ruled, subscribing
from workbench.tip.bodies import body, field
from workbench.tip.broker import broker, run_all, step
from workbench.tip.descriptions import ServiceDescription
from workbench.tip.events import Event
from workbench.tip.host import Advertise, Leave, Publish
from workbench.tip.inputs import (
    Connected,
    Disconnected,
    Filter,
    Foreground,
    Log,
    Received,
    Send,
    Sent,
    Shutdown,
    Start,
)
from workbench.tip.observer import Auxiliary
from workbench.tip.recording import read, replayed, written
from workbench.tip.rules import Advertisement, Condition, Rule
from workbench.tip.simulated import Simulation
from workbench.tip.state import Limits

SECOND = 1_000_000


def world(*names: str, limits: Limits | None = None, **more: Any) -> Simulation:
    made = Simulation([broker(name, limits=limits, **more) for name in names])
    return made.start(*names)


def pair(**more: Any) -> Simulation:
    """A client's broker and a server's, connected."""
    made = world("client", "server", **more).connect("client", "server")
    made.run(made.now + SECOND)
    return made


def settle(made: Simulation) -> Simulation:
    made.run(made.now + SECOND)
    return made


def types(made: Simulation, name: str) -> list[str]:
    return [event.type for event in made.received(name)]


def test_an_event_goes_to_its_subscribers_and_to_nobody_else() -> None:
    made = world("b")
    made.join("gps", "b", publishing(LOCATION)).join("map", "b", subscribing("Location"))
    made.join("history", "b", subscribing("Location")).join("news", "b", subscribing("News"))
    settle(made).say("gps", Publish("Location", body(x=1)))
    settle(made)
    assert [types(made, n) for n in ("gps", "map", "history", "news")] == [[], ["Location"], ["Location"], []]


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (Event("e1", "News", 0), "did not advertise"),
        (Event("e1", "Location", 0, "information"), "did not advertise"),
        (Event("e1", "Location", 0, "location", forwarded=True), "only brokers forward"),
        (Event("e1", "Location", 0, "location", publisher="x"), "only brokers forward"),
        (Event("e1", "Location", 0, "location", relates_to=("e0",)), "e0 is not known"),
        (Event("e1", "Dance", 0, "system"), "system event 'Dance'"),
        (Event("e1", "Registration", 0, "system", body="<x></x>"), "expected one description"),
        (Event("e1", "Advertisement", 0, "system", body="<x></x>"), "expected one advertisement"),
    ],
)
def test_what_a_service_may_not_publish_is_refused_and_nobody_else_notices(event: Event, why: str) -> None:
    made = world("b").join("gps", "b", publishing(LOCATION)).join("map", "b", subscribing("Location", "News"))
    before = settle(made).brokers["b"]
    state, effects = step(before, Received("gps", event), 5)
    refusals = [e.event for e in effects if isinstance(e, Send)]
    assert [(r.type, r.relates_to) for r in refusals] == [("Refused", ("e1",))]
    assert why in field(refusals[0].body, "why")
    assert any(isinstance(e, Log) and why in e.text for e in effects)
    assert (state.services, state.in_queue, state.recent) == (before.services, before.in_queue, before.recent)


def test_an_event_is_taken_once_and_only_from_the_registered() -> None:
    made = settle(world("b").join("gps", "b", publishing(LOCATION)))
    event = Event("e1", "Location", 0, "location")
    state = run_all(made.brokers["b"], [Received("gps", event)], 5).state
    again = step(state, Received("gps", event), 6)
    assert again.state.in_queue == () and "published before" in repr(again.effects)
    stranger = run_all(state, [Connected("x")], 7).state
    assert "not registered" in repr(step(stranger, Received("x", Event("e2", "Location", 0)), 8).effects)
    assert "not connected" in repr(step(state, Received("y", event), 8).effects)


def test_brokers_exchange_their_registries_when_they_connect_and_after() -> None:
    made = world("client", "server").join("gps", "client", publishing(LOCATION))
    made.join("guide", "server", Answering(ServiceDescription("informative", advertisements=(INFORMATION,),
                                           subscriptions=("Location",)), "Location", "Information"))  # fmt: skip
    settle(made).connect("client", "server")
    settle(made)
    client, server = made.brokers["client"], made.brokers["server"]
    assert {e.advertisement.type for e in server.neighbours["client"].entries} == {"Location"}
    assert {e.advertisement.type for e in client.neighbours["server"].entries} == {"Information"}
    assert {s.type for s in client.neighbours["server"].wants} == {"Location"}
    made.join("display", "client", subscribing("Information"))
    settle(made).say("gps", Publish("Location", body(x=1)))
    assert types(settle(made), "display") == ["Information"]
    made.say("display", Leave())
    assert {s.type for s in settle(made).brokers["server"].neighbours["client"].wants} == set()


def test_a_subscription_that_another_one_covers_is_told_only_when_that_one_goes() -> None:
    made = pair().join("gps", "server", publishing(LOCATION))
    made.join("map", "client", ruled(Rule(event_type="Location", quality=50)))
    made.join("history", "client", subscribing("Location"))
    wants = settle(made).brokers["server"].neighbours["client"].wants
    assert {(s.type, s.quality, bool(s.publisher)) for s in wants} == {("Location", 0, False)}
    settle(made.say("gps", Publish("Location", quality=30)))
    assert types(made, "history") == ["Location"] and types(made, "map") == [], "the map's own rule is what counts here"
    settle(made.say("history", Leave()))
    (left,) = made.brokers["server"].neighbours["client"].wants
    assert (left.quality, bool(left.publisher)) == (50, True)
    settle(made.say("gps", Publish("Location", quality=60)))
    assert types(made, "map") == ["Location"]


def guide_world() -> Simulation:
    """Two clients and a server with an information service; everybody displays information."""
    made = world("ann", "bob", "server")
    guide = Answering(
        ServiceDescription("informative", advertisements=(INFORMATION,), subscriptions=("Location",)),
        "Location", "Information",
    )  # fmt: skip
    made.join("guide", "server", guide).join("screen", "server", subscribing("Information"))
    for user in ("ann", "bob"):
        made.join(f"gps-{user}", user, publishing(LOCATION)).join(f"display-{user}", user, subscribing("Information"))
        settle(made).connect(user, "server")
    return settle(made)


def test_a_reply_to_a_forwarded_request_goes_to_that_broker_only() -> None:
    made = guide_world().say("gps-ann", Publish("Location", body(x=1)))
    settle(made)
    assert [len(types(made, n)) for n in ("display-ann", "display-bob", "screen")] == [1, 0, 0]


def test_a_forwarded_event_is_not_forwarded_again_even_in_a_ring_of_brokers() -> None:
    made = world("a", "b", "c")
    for one, other in (("a", "b"), ("b", "c"), ("c", "a")):
        made.connect(one, other)
    for name in "abc":
        made.join(f"s{name}", name, subscribing("Location"))
    made.join("gps", "a", publishing(LOCATION))
    settle(made).say("gps", Publish("Location"))
    settle(made)
    assert [types(made, f"s{n}") for n in "abc"] == [["Location"]] * 3
    assert (made.messages["type"] == "Location").sum() == 1 + 2 + 3


@pytest.mark.parametrize(
    ("links", "told"),
    [
        ([("ann", "server")], {"ann", "server"}),
        ([("ann", "bob")], {"ann", "bob"}),
        ([("ann", "server"), ("ann", "museum")], {"ann", "server", "museum"}),
        ([("ann", "server"), ("bob", "server")], {"ann", "server"}),
        ([("ann", "bob"), ("bob", "server"), ("server", "ann")], {"ann", "bob", "server"}),
    ],
    ids=["client and server", "peer to peer", "several servers", "several clients", "peers with a server"],
)
def test_brokers_collaborate_in_every_topology_as_far_as_one_hop(links: list[tuple[str, str]], told: set[str]) -> None:
    at = ("ann", "bob", "server", "museum")
    made = world(*at).join("gps", "ann", publishing(LOCATION))
    for name in at:
        made.join(f"screen {name}", name, subscribing("Location"))
    for one, other in links:
        made.connect(one, other)
    settle(made).say("gps", Publish("Location"))
    settle(made)
    assert {name: types(made, f"screen {name}") for name in at} == {n: ["Location"] * (n in told) for n in at}


@pytest.mark.parametrize("worse", [{"quality": 40}, {"latency": 9}, {"failure_rate": 20.0}], ids=repr)
@pytest.mark.parametrize("at", ["client", "server"])
def test_a_change_of_quality_latency_or_failure_rate_is_an_advertisement_that_is_evaluated(
    worse: dict[str, Any], at: str
) -> None:
    rules = (Rule(event_type="Location", quality=50, latency=5, failure_rate=10.0, exclusive=True, priority=3),
             Rule(event_type="Location", exclusive=True, priority=1))  # fmt: skip
    good = replace(LOCATION, quality=90)
    made = pair().join("gps", at, publishing(good)).join("wifi", at, publishing(replace(LOCATION, quality=60)))
    made.join("map", "client", ruled(*rules))

    def used() -> str:
        settle(made).say("gps", Publish("Location", body(of="gps"))).say("wifi", Publish("Location", body(of="wifi")))
        return field(settle(made).received("map", "Location")[-1].body, "of")

    assert used() == "gps"
    made.say("gps", Advertise(replace(good, **worse)))
    assert used() == "wifi"
    made.say("gps", Advertise(good))
    assert used() == "gps"


def test_no_service_ever_receives_a_name() -> None:
    made = guide_world().say("gps-ann", Publish("Location", body(x=1)))
    settle(made)
    for host in made.hosts.values():
        for event in host.received:
            assert event.publisher == ""
            assert not any(name in repr((event, event.body)) for name in ("gps-ann", "guide", "ann'", "server"))


def test_user_input_reaches_the_visible_service_only() -> None:
    tap = Advertisement("Tap", "user-input")
    made = world("b").join("screen", "b", publishing(tap, category="display"))
    made.join("map", "b", subscribing("Tap")).join("list", "b", subscribing("Tap"))
    settle(made).input("b", Foreground("list"))
    settle(made).say("screen", Publish("Tap"))
    settle(made)
    assert types(made, "map") == [] and types(made, "list") == ["Tap"]


def database_world() -> Simulation:
    made = pair()
    answer = Advertisement("Row", "database")
    query = Advertisement("Query", "query")
    asking = ServiceDescription("informative", advertisements=(query,), subscriptions=("Row",))
    stored = ServiceDescription("database", advertisements=(answer,), subscriptions=("Query",))
    made.join("store", "server", Answering(stored, "Query", "Row"))
    made.join("asker", "client", Quiet(asking)).join("other", "client", Quiet(asking))
    return settle(made)


def test_the_database_answers_the_asker_and_nobody_else() -> None:
    made = database_world().say("asker", Publish("Query", body(id=7)))
    settle(made)
    assert types(made, "asker") == ["Row"] and types(made, "other") == []


def item_world() -> Simulation:
    made = pair()
    item = Advertisement("Item", "item")
    items = ServiceDescription("informative", advertisements=(item,), subscriptions=("ItemRequest",))
    made.join("items", "server", Answering(items, "ItemRequest", "Item", cacheable=True))
    asks = Advertisement("ItemRequest", "request")
    display = ServiceDescription("display", advertisements=(asks,), subscriptions=("Item",))
    made.join("display", "client", Quiet(display))
    made.join("prefetcher", "client", publishing(asks, category="prefetching"))
    return settle(made)


def sent_to_server(made: Simulation, type: str) -> int:
    messages = made.messages
    return int(((messages["receiver"] == "server") & (messages["type"] == type)).sum())


def test_a_similar_request_is_answered_by_the_cache_and_not_sent() -> None:
    made = item_world().say("display", Publish("ItemRequest", body(id=7), cacheable=True))
    settle(made).say("display", Publish("ItemRequest", body(id=7), cacheable=True))
    settle(made)
    assert types(made, "display") == ["Item", "Item"] and sent_to_server(made, "ItemRequest") == 1
    first, second = made.received("display")
    assert first.body == second.body and first.relates_to != second.relates_to


def test_a_prefetched_reply_is_stored_not_shown_and_answers_later() -> None:
    made = item_world().say("prefetcher", Publish("ItemRequest", body(id=7), cacheable=True, prefetched=True))
    assert types(settle(made), "display") == []
    made.say("display", Publish("ItemRequest", body(id=7), cacheable=True))
    assert types(settle(made), "display") == ["Item"] and sent_to_server(made, "ItemRequest") == 1


# -- conditions, silence, auxiliary services ---------------------------------------------------------------


def told(made: Simulation, name: str) -> list[str]:
    return [event.type for event in made.hosts[name].received if event.category == "system"]


def test_a_service_is_stalled_until_its_conditions_hold_and_again_when_they_do_not() -> None:
    wants = ruled(Rule(event_type="Location"), needs=(Condition("location"),))
    made = settle(world("b").join("map", "b", wants))
    assert told(made, "map") == ["Stalled"]
    settle(made.join("gps", "b", publishing(LOCATION)))
    assert told(made, "map") == ["Stalled", "Subscribed"]
    settle(made.say("gps", Publish("Location"), Leave()))
    assert types(made, "map") == ["Location"] and told(made, "map") == ["Stalled", "Subscribed", "Stalled"]


def test_services_that_wait_for_each_other_are_named_in_the_log_once() -> None:
    made = world("b")
    for name, gives, needs in (("a", "hen", "egg"), ("c", "egg", "hen"), ("d", "news", "hen")):
        said = ServiceDescription(name, advertisements=(Advertisement(gives, gives),), conditions=(Condition(needs),))
        settle(made.join(name, "b", Quiet(said)))
    assert [text for _, text in made.log if "wait" in text] == ["b stalls a and c: they wait for each other"]


def test_what_a_stalled_service_publishes_is_refused() -> None:
    needs = (Condition("location"),)
    stalled = ServiceDescription("informative", advertisements=(INFORMATION,), conditions=needs)
    made = settle(world("b").join("guide", "b", Quiet(stalled)).join("display", "b", subscribing("Information")))
    settle(made.say("guide", Publish("Information")))
    assert types(made, "display") == [] and told(made, "guide")[-1] == "Refused"


def test_silence_is_told_apart_from_no_event() -> None:
    promised = Advertisement("Location", "location", interval=5 * SECOND)
    made = world("b").join("gps", "b", publishing(promised)).join("map", "b", subscribing("Location"))
    made.join("other", "b", subscribing("News")).run(4 * SECOND)
    assert told(made, "map") == ["Subscribed"]
    made.run(6 * SECOND)
    assert told(made, "map") == ["Subscribed", "Silence"]
    made.say("gps", Publish("Location")).run(7 * SECOND)
    assert told(made, "map") == ["Subscribed", "Silence", "Sound"] and told(made, "other") == ["Subscribed"]


def test_silence_is_told_to_subscribers_at_other_brokers_too() -> None:
    promised = Advertisement("Location", "location", interval=5 * SECOND)
    made = pair().join("gps", "client", publishing(promised)).join("guide", "server", subscribing("Location"))
    made.join("other", "server", subscribing("News")).run(8 * SECOND)
    assert told(made, "guide") == ["Subscribed", "Silence"]
    settle(made.say("gps", Publish("Location")))
    assert told(made, "guide") == ["Subscribed", "Silence", "Sound"] and types(made, "guide") == ["Location"]
    assert told(made, "other") == ["Subscribed"]


def test_an_auxiliary_service_is_started_used_and_stopped() -> None:
    reader = Auxiliary("reader", "Location", takes="rfid", gives="gps", quality=90)
    conversion = Answering(
        reader.description(Advertisement("Location", "location", "location", 90, "gps")), "Location", "Location"
    )
    made = Simulation([broker("b", auxiliaries=(reader,))], launcher=lambda name, auxiliary: conversion).start("b")
    made.join("tags", "b", publishing(Advertisement("Location", "location", quality=95, format="rfid")))
    settle(made)
    assert "auxiliary/reader" not in made.brokers["b"].services, "nobody wants it yet"
    settle(made.join("map", "b", ruled(Rule(event_type="Location", quality=80, format="gps"))))
    settle(made.say("tags", Publish("Location", body(tag=1))))
    (event,) = made.received("map")
    assert (event.format, event.quality) == ("gps", 90)
    settle(made.say("map", Leave()))
    assert "auxiliary/reader" not in made.brokers["b"].services and made.hosts["auxiliary/reader"].ended


# -- breaks, limits, start and end ---------------------------------------------------------------------------


def test_a_short_break_changes_nothing_and_what_waited_is_delivered() -> None:
    made = settle(world("b").join("gps", "b", publishing(LOCATION)).join("map", "b", subscribing("Location")))
    made.cut("map", "b").say("gps", Publish("Location", body(x=1)))
    made.run(made.now + 20 * SECOND)
    assert types(settle(made.rejoin("map")), "map") == ["Location"]
    assert told(made, "map") == ["Subscribed"], "nothing was evaluated anew"


def test_who_is_gone_too_long_is_deregistered_and_nothing_is_kept_for_him() -> None:
    made = settle(world("b").join("gps", "b", publishing(LOCATION)).join("map", "b", ruled(
        Rule(event_type="Location"), needs=(Condition("location"),))))  # fmt: skip
    made.cut("gps", "b").run(made.now + 29 * SECOND)
    assert told(made, "map") == ["Subscribed"]
    made.run(made.now + 2 * SECOND)
    assert told(made, "map") == ["Subscribed", "Stalled"] and "gps" not in made.brokers["b"].services
    made.cut("map", "b").run(made.now + 31 * SECOND)
    assert not made.brokers["b"].services and "map" not in made.brokers["b"].outboxes


def test_a_broker_that_is_gone_takes_its_advertisements_with_it() -> None:
    made = pair().join("gps", "client", publishing(LOCATION))
    made.join("guide", "server", ruled(Rule(event_type="Location"), needs=(Condition("location"),)))
    assert told(settle(made), "guide")[-1] == "Subscribed"
    made.cut("client", "server").run(made.now + 31 * SECOND)
    assert told(made, "guide")[-1] == "Stalled" and not made.brokers["server"].neighbours
    settle(made.connect("client", "server"))
    assert told(made, "guide")[-1] == "Subscribed"


def test_a_slow_receiver_delays_nobody_and_its_losses_are_counted() -> None:
    limits = Limits(outbox=5, window=2)
    made = settle(world("b", limits=limits).join("gps", "b", publishing(LOCATION)))
    made.join("fast", "b", subscribing("Location")).join("slow", "b", subscribing("Location"))
    state = settle(made).brokers["b"]
    got: list[str] = []
    for n in range(20):
        state, effects = run_all(state, [Received("gps", Event(f"e{n}", "Location", n, "location"))], n)
        for effect in effects:
            if isinstance(effect, Send) and effect.name == "fast":
                got.append(effect.event.id)
                state = step(state, Sent("fast"), n).state
    assert got == [f"e{n}" for n in range(20)]
    slow = state.outboxes["slow"]
    assert (slow.in_flight, [e.id for e in slow.waiting], slow.dropped) == (2, [f"e{n}" for n in range(2, 7)], 13)


def test_a_full_in_queue_refuses_and_says_so() -> None:
    made = settle(world("b", limits=Limits(in_queue=2)).join("gps", "b", publishing(LOCATION)))
    state = made.brokers["b"]
    for n in range(3):
        state, effects = step(state, Received("gps", Event(f"e{n}", "Location", n, "location")), n)
    assert len(state.in_queue) == 2 and any(isinstance(e, Log) and "in-queue is full" in e.text for e in effects)
    assert step(state, Filter(), 5).state.in_queue == state.in_queue[1:]


def test_shutdown_in_the_order_of_figure_9_revokes_at_both_brokers() -> None:
    made = pair().join("gps", "client", publishing(LOCATION))
    made.join("guide", "server", subscribing("Location"))
    settle(made).input("client", Shutdown())
    settle(made)
    assert made.hosts["gps"].ended and not made.brokers["client"].services
    assert not made.brokers["server"].neighbours and not made.hosts["guide"].ended


def test_a_restart_uses_the_registry_again_and_registers_only_with_the_remote_broker() -> None:
    made = pair().join("gps", "client", publishing(LOCATION)).join("guide", "server", subscribing("Location"))
    settle(made).input("client", Shutdown(keep=True))
    settle(made)
    before = len(made.messages)
    made.start("client").join("gps", "client", made.hosts["gps"].behaviour, register=False).connect("client", "server")
    settle(made)
    assert "Registration" not in set(made.messages[before:].query("sender == 'gps'")["type"])
    settle(made.say("gps", Publish("Location")))
    assert types(made, "guide") == ["Location"]


def test_a_known_service_that_does_not_come_back_after_a_restart_is_deregistered() -> None:
    made = settle(world("b").join("gps", "b", publishing(LOCATION)))
    made.input("b", Shutdown(keep=True))
    settle(made).start("b").run(made.now + 31 * SECOND)
    assert not made.brokers["b"].services


def test_a_stopped_broker_ignores_everything_but_its_start() -> None:
    state, effects = step(broker("b"), Connected("gps"), 0)
    assert state == broker("b") and effects == (Log("b Connected while stopped: ignored"),)
    assert step(step(broker("b"), Start(), 0).state, Disconnected("nobody"), 1).effects == ()


def test_a_recording_replayed_has_the_same_effects() -> None:
    made = guide_world().say("gps-ann", Publish("Location", body(x=1)))
    settle(made)
    stored = read(written(made.recording))
    assert replayed({name: broker(name) for name in made.brokers}, stored) == made.recording
