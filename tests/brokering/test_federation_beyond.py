"""Around the paper: moving clients, covering and merging of our filters, cycles, brokers that come and go, congestion,
context providers, the mobile broker, and what is counted."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from workbench import replay
from workbench.brokering.federation import (
    Composite,
    Congestion,
    Exchange,
    Federation,
    MobileBroker,
    Notification,
    Policy,
    Provider,
    Rules,
    Subscription,
    attribute,
    federated,
    geographic,
    overlay,
    wireless_messages,
)
from workbench.brokering.federation.interests import Interest, World
from workbench.brokering.federation.messages import Unavailable
from workbench.brokering.federation.overlay import chain, divided, ring
from workbench.errors import ScenarioError, UpdateError
from workbench.model import column, held, location, other, own, publications, region, seconds, subscriptions
from workbench.model.history import Client, Party
from workbench.model.scenario import Scenario
from workbench.scenarios.proximity import scenario


def told(federation: Federation) -> list[tuple]:
    return [tuple(row) for row in federation.notifications.itertuples(index=False)]


def standing(**options: object) -> Federation:
    """A café at one end of a chain, a walker at the other."""
    made = Federation(scenario(radius_m=100), chain(4), **options)  # type: ignore[arg-type]
    made.add("places", "cafe", at="B4", t=1, position=(0, 0))
    made.add("mobiles", 7, at="B1", t=2, position=(50, 0))
    return made


# -- clients that move -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", [7, "cafe"])
@pytest.mark.parametrize("delay", [0, 0.4, 3])
def test_attaching_elsewhere_alone_causes_no_notification(who: object, delay: float) -> None:
    federation = standing(delay=delay)
    federation.advance(20)
    before = told(federation)
    for t, broker in ((21, "B2"), (50, "B3"), (80, "B1")):
        federation.attach(who, broker, t=t)
    federation.settle()
    assert told(federation) == before and len(before) == 1
    federation.move(7, (500, 0), t=200)
    federation.settle()
    assert [row[1] for row in told(federation)] == ["match", "unmatch"]


def test_pair_history_moves_with_the_client() -> None:
    """Who dwelt three seconds at one broker and two at the next dwelt five."""
    near = own.here.within(100, other.site, space=location)
    site = {"site": region(location, position=column.position)}
    here = {"here": region(location, position=column.position)}
    dwell = Scenario(
        [location],
        [publications("shops", rows="places", regions=site)],
        [subscriptions("people", rows="fixes", regions=here, filter=held(near, seconds(5)))],
    )
    federation = Federation(dwell, chain(3))
    federation.add("shops", "A", at="B3", t=1, position=(0, 0))
    federation.add("people", 7, at="B1", t=10, position=(0, 0))
    federation.attach(7, "B2", t=13)
    federation.advance(30)
    assert told(federation) == [(15, "match", "A", 7)]


# -- routing filters ---------------------------------------------------------------------------------------------


def test_a_routing_filter_is_a_superset_whatever_the_blur() -> None:
    world = World.of(scenario(radius_m=100))
    (mobiles,) = world.scenario.subscriptions
    (places,) = world.scenario.publications
    for x in range(0, 400, 25):
        reach = {n: r.fill({"position": (x, 0), "radius_m": 100}) for n, r in places.regions}
        for here in range(0, 400, 25):
            own_region = {n: r.fill({"position": (here, 0)}) for n, r in mobiles.regions}
            party = Party("mobiles", Client("fixes", 7))
            exact = Interest.of(world, party, own_region, mobiles.filter).may_accept("places", reach)
            assert exact == (abs(x - here) <= 100)
            for blur_m in (50.0, math.inf):
                blurred = Interest.of(world, party, own_region, mobiles.filter, blur_m)
                assert blurred.may_accept("places", reach) or not exact


def test_who_announces_itself_less_is_sent_more_in_vain() -> None:
    def run(blur_m: float) -> Federation:
        federation = Federation(scenario(radius_m=100), chain(3), rules=Rules(blur_m=blur_m))
        for i in range(10):
            federation.add("places", f"p{i}", at="B3", t=i + 1, position=(300 * i, 0))
        federation.add("mobiles", 7, at="B1", t=20, position=(0, 0))
        for step in range(60):
            federation.move(7, (step * 50, 0), t=21 + step)
        federation.settle()
        return federation

    runs = [run(blur_m) for blur_m in (0.0, 400.0, math.inf)]
    assert told(runs[0]) == told(runs[1]) == told(runs[2]) and len(told(runs[0])) == 20
    updates = [r.counts.messages["TableUpdate"] for r in runs]
    assert updates == sorted(updates, reverse=True) and updates[0] > updates[2]
    assert [r.false_forwards > 0 for r in runs] == [False, True, True]


@pytest.mark.parametrize("routing", ["covering", "merging"])
def test_covering_and_merging_make_tables_smaller_and_deliver_the_same(routing: str) -> None:
    def run(routing: str) -> Federation:
        rules = Rules(routing=routing, blur_m=math.inf if routing == "covering" else 0.0)
        federation = Federation(scenario(radius_m=100), overlay("tree", 7), rules=rules)
        for i in range(20):
            federation.add("mobiles", i, at=f"B{i % 7 + 1}", t=i + 1, position=(10 * i, 0))
        federation.add("places", "cafe", at="B4", t=30, position=(0, 0))
        federation.settle()
        return federation

    plain, less = run("simple"), run(routing)
    assert told(plain) == told(less) and len(told(plain)) == 11
    assert sum(less.table_sizes.values()) < sum(plain.table_sizes.values())


def test_in_a_ring_all_is_told_once() -> None:
    federation = Federation(scenario(radius_m=100), ring(5))
    federation.add("places", "cafe", at="B1", t=1, position=(0, 0))
    federation.add("mobiles", 7, at="B3", t=2, position=(50, 0))
    federation.move(7, (500, 0), t=3)
    federation.advance(3)
    assert [row[1] for row in told(federation)] == ["match", "unmatch"]
    assert federation.suppressed > 0


# -- brokers and links ---------------------------------------------------------------------------------------------


def test_a_broker_joins_and_another_one_retires_without_a_notification() -> None:
    federation = standing()
    federation.advance(3)
    federation.join_broker("B9", "B2", t=4)
    federation.attach(7, "B9", t=5)
    federation.retire_broker("B2", t=6)
    federation.advance(10)
    assert len(told(federation)) == 1
    federation.move(7, (500, 0), t=11)
    federation.advance(12)
    assert [row[:2] for row in told(federation)] == [(2, "match"), (11, "unmatch")]


def test_what_a_broken_link_loses_is_counted_there_and_made_good_by_its_repair() -> None:
    federation = standing()
    federation.advance(3)
    federation.fail_link("B2", "B3", t=4)
    federation.remove("places", "cafe", t=5)
    federation.advance(6)
    assert len(told(federation)) == 1
    assert federation.counts.loss_table.values.tolist() == [["B2-B3", "link down", "Forward", 1]]
    federation.repair_link("B2", "B3", t=7)
    federation.advance(8)
    assert told(federation)[1:] == [(7, "unmatch", "cafe", 7)]


def test_the_overlay_closes_over_a_dead_broker() -> None:
    federation = standing()
    federation.advance(3)
    federation.fail_broker("B2", t=4)
    federation.repair_broker("B2", t=5)
    assert ("B1", "B3") in federation.overlay.links
    federation.move(7, (500, 0), t=6)
    federation.advance(7)
    assert [row[:2] for row in told(federation)] == [(2, "match"), (6, "unmatch")]


@pytest.mark.parametrize("policy", ["drop", "wait"])
def test_a_congested_broker_drops_or_delays_and_says_so(policy: str) -> None:
    federation = Federation(scenario(radius_m=100), chain(2), congestion=Congestion(3, policy))
    federation.add("mobiles", 7, at="B1", t=1, position=(0, 0))
    for i in range(10):
        federation.add("places", i, at="B2", t=2, position=(i, 0))
    federation.settle()
    lost = federation.counts.loss_table["lost"].sum()
    assert len(told(federation)) == (3 if policy == "drop" else 10)
    assert lost == (7 if policy == "drop" else 0)
    assert max(row[0] for row in told(federation)) == (2 if policy == "drop" else 5)


def test_every_delivery_has_hops_bytes_and_latency() -> None:
    federation = standing(delay=2)
    federation.settle()
    (delivery,) = federation.counts.deliveries
    assert delivery.hops == 3 and delivery.latency == 12 and delivery.bytes > 0
    assert federation.counts.summary["mean latency"] == 12  # to the café's broker and back


def test_mistakes_are_said() -> None:
    federation = standing()
    with pytest.raises(UpdateError, match="did you mean 'B1'"):
        federation.attach(7, "B11", t=3)
    with pytest.raises(UpdateError, match="say at which broker"):
        federation.add("mobiles", 8, t=4, position=(0, 0))
    with pytest.raises(UpdateError, match="looks back"):
        federation.update("mobiles", 7, t=5, filter=held(own.here.enclosed_by(other.reach, space=location), seconds(2)))
    with pytest.raises(ScenarioError, match="did you mean 'wait'"):
        Congestion(3, "wat")


# -- geography -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def walkers() -> tuple[pd.DataFrame, pd.DataFrame]:
    rows = [(m, t, (37 * m + 60 * t) % 2000, (91 * m + 13 * t * m) % 1000) for m in range(12) for t in range(1, 25)]
    places = [(f"p{i}", 200 * i, 100 * (i % 9)) for i in range(10)]
    return pd.DataFrame(rows, columns=["mobile", "t", "x", "y"]), pd.DataFrame(places, columns=["place", "x", "y"])


@pytest.mark.parametrize("mobility", [True, False])
def test_a_geographic_federation_tells_what_a_replay_tells(walkers: tuple, mobility: bool) -> None:
    grid = geographic({f"B{i}": (500 * (i % 4), 500 * (i // 4)) for i in range(8)})
    made = federated(scenario(radius_m=250), *walkers, overlay=grid, mobility=mobility)
    expected = replay(scenario(radius_m=250), *walkers, engine="reference").notifications
    assert sorted(told(made)) == sorted(tuple(row) for row in expected.itertuples(index=False))
    moved = made.counts.messages["Handover"]
    assert (moved > 0) is mobility


@pytest.mark.parametrize(
    ("by", "labels"),
    [
        ("area", {"a": (0, 0), "b": (9, 0), "c": (1, 0)}),
        ("network", {"a": "wifi", "b": "5g", "c": "wifi"}),
        ("scope", {"a": "weather", "b": "location", "c": "weather"}),
    ],
)
def test_brokers_are_divided_by_area_network_or_scope(by: str, labels: dict) -> None:
    there = geographic({"B1": (0, 0), "B2": (10, 0)})
    homes = divided("abc", by, there, labels)
    assert homes["a"] == homes["c"] != homes["b"]


# -- context (II, III) -----------------------------------------------------------------------------------------------


def activity(reading: dict) -> dict:
    return {"activity": "running" if reading["acceleration"] > 3 else "resting"}


running = Subscription("σ1", attribute("activity") == "running")


def exchange() -> Exchange:
    made = Exchange(chain(3))
    made.provide(Provider("phone", frozenset({"activity"}), activity), "B3")
    return made


def test_a_provider_infers_context_and_publishes_only_what_is_wanted() -> None:
    made = exchange()
    made.reading("phone", {"acceleration": 9})
    made.subscribe("coach", "B1", running)
    for acceleration in (9, 1, 8):
        made.reading("phone", {"acceleration": acceleration})
    assert [n.number for n in made.inbox["coach"]] == [2, 4]
    assert made.counts.messages["Pub"] == 2
    made.unsubscribe("coach", "σ1")
    made.reading("phone", {"acceleration": 9})
    assert made.counts.messages["Pub"] == 2


def test_space_neither_side_knows_the_other() -> None:
    made = exchange()
    made.subscribe("coach", "B1", running)
    assert "phone" not in made.brokers["B1"].clients
    assert {d for _, d in made.brokers["B3"].table} == {"B2"}
    made.reading("phone", {"acceleration": 9})
    assert len(made.inbox["coach"]) == 1


def test_time_a_consumer_hears_of_what_was_published_while_it_was_away_and_the_provider_may_be_gone() -> None:
    made = exchange()
    made.subscribe("coach", "B1", running)
    made.disconnect("coach")
    made.reading("phone", {"acceleration": 9})
    made.leave("phone")
    assert "coach" not in made.inbox
    made.reconnect("coach")
    assert len(made.inbox["coach"]) == 1


def test_synchronisation_asynchronously_nobody_waits_and_synchronously_the_consumer_does() -> None:
    made = exchange()
    made.subscribe("coach", "B1", running)
    made.reading("phone", {"acceleration": 9})
    assert made.now == 0.0 and made.invoked["phone"] == 0
    sent = sum(made.counts.messages.values())
    found = made.query("coach", running, lambda name: {"acceleration": 9})
    assert found.attributes == {"activity": "running"} and made.invoked["phone"] == 1
    assert made.now > 0  # the consumer was blocked for as long as the messages took
    assert sum(made.counts.messages.values()) - sent > 8


def test_a_provider_may_combine_others() -> None:
    """An activity provider that is a consumer of readings: partly on the device, partly in the infrastructure (I)."""
    made = Exchange(chain(2))
    made.provide(Provider("accelerometer", frozenset({"acceleration"})), "B1")
    made.provide(Provider("activity", frozenset({"activity"}), activity), "B2")
    made.subscribe("activity", "B2", Subscription("raw", attribute("acceleration").exists))
    made.subscribe("coach", "B1", running)
    made.reading("accelerometer", {"acceleration": 7})
    for raw in made.inbox["activity"]:
        made.reading("activity", raw.attributes)
    assert [n.attributes["activity"] for n in made.inbox["coach"]] == ["running"]


@pytest.mark.parametrize(("order", "heard"), [(("hot", "smoke"), 1), (("smoke", "hot"), 0)])
def test_a_composite_event_is_told_once_when_its_parts_are_there_in_order(order: tuple, heard: int) -> None:
    made = Exchange(chain(2))
    fire = Composite(
        "fire", {"hot": attribute("heat") > 60, "smoke": attribute("smoke").exists}, within=5, ordered=True
    )
    made.provide(Provider("sensor", frozenset({"heat", "smoke"})), "B2")
    made.compose("guard", "B1", fire)
    readings = {"hot": {"heat": 70}, "smoke": {"smoke": True}}
    for name in order:
        made.reading("sensor", readings[name])
    assert len(made.inbox.get("guard", [])) == heard


def test_parts_of_a_composite_event_that_lie_too_far_apart_are_none() -> None:
    event = Composite("e", {"a": attribute("a").exists, "b": attribute("b").exists}, within=5)
    seen, _ = event.told(Notification({"a": 1}, "κ", 1), 0, {})
    assert event.told(Notification({"b": 1}, "κ", 2), 6, seen)[1] is None
    assert event.told(Notification({"b": 1}, "κ", 2), 5, seen)[1] is not None


# -- the mobile broker (VIII) ----------------------------------------------------------------------------------------

city = Subscription("σ", attribute("city").exists)
turin = Notification({"city": "Turin"}, "gps", 1)


def test_the_mobile_broker_answers_from_its_cache_without_the_provider_while_that_is_fresh() -> None:
    mobile, _ = MobileBroker("phone", "B1", fresh_for=60).produced(turin, 0)
    mobile, sent = mobile.asked(city, 60)
    assert sent.to_app == (turin,) and sent.to_network == ()
    _, sent = mobile.asked(city, 61)
    assert sent.to_network == (city,)


def queued(policy: Policy, times: int = 3) -> MobileBroker:
    mobile = MobileBroker("phone", "B1", policy).disconnected()
    for i in range(times):
        mobile, _ = mobile.asked(Subscription(i, attribute("x") == i), now=10.0 * i)
    return mobile


@pytest.mark.parametrize(
    ("policy", "at", "sent", "count"),
    [
        (Policy("drop"),                      30,  0, {"dropped": 3}),
        (Policy("resend"),                    30,  0, {"unavailable": 3}),
        (Policy("queue"),                     30,  3, {"over the air": 3}),
        (Policy("queue", length=2),           30,  2, {"queue full": 1, "over the air": 2}),
        (Policy("queue", age=15),             30,  1, {"too old": 2, "over the air": 1}),
    ],
)  # fmt: skip
def test_while_it_is_cut_off_a_policy_decides(policy: Policy, at: float, sent: int, count: dict) -> None:
    mobile, out = queued(policy).connected(at)
    assert len(out.to_network) == sent
    assert dict(mobile.counts) == count


def test_unavailable_means_resend_after_t() -> None:
    _, sent = MobileBroker("phone", "B1", Policy("resend", resend_after=7)).disconnected().asked(city, 0)
    assert sent.to_app == (Unavailable(7, city),)


def test_a_new_parent_is_told_what_the_apps_subscribed_to() -> None:
    mobile, _ = MobileBroker("phone", "B1").subscribed("app", city, 0)
    mobile, sent = mobile.disconnected().connected(5, parent="B2")
    assert mobile.parent == "B2" and sent.to_network == (city,)
    assert mobile.disconnected().connected(5)[1].to_network == ()


def test_a_mobile_broker_in_the_overlay_moves_to_another_parent_while_its_user_travels() -> None:
    federation = standing()
    federation.join_broker("phone", "B1", t=3)
    federation.attach(7, "phone", t=4)
    federation.advance(5)
    federation.relink("phone", "B1", "B4", t=6)
    federation.advance(7)
    assert len(told(federation)) == 1
    federation.move(7, (500, 0), t=8)
    federation.advance(9)
    assert [row[:2] for row in told(federation)] == [(2, "match"), (8, "unmatch")]


def test_one_broker_on_the_device_saves_messages_against_every_app_by_itself() -> None:
    readings = [(float(t), "gps", {"city": "Turin" if t % 2 else "Bristol"}) for t in range(50)]
    apps = {f"app{i}": [Subscription(f"σ{i}", attribute("city") == "Turin")] for i in range(4)}
    gps = Provider("gps", frozenset({"city"}))
    found = wireless_messages([gps], apps, readings, outages=[(10, 20)], wanted=[city], policy=Policy("queue"))
    mobile, alone = found["mobile broker"], found["every app by itself"]
    assert mobile["over the air"] == 1 + 50  # one subscription for all apps, and each reading once
    assert alone["over the air"] > 2 * mobile["over the air"]
    assert alone["dropped"] > 0 and mobile["dropped"] == 0


# -- what can be seen --------------------------------------------------------------------------------------------------


def test_an_overlay_is_drawn_with_a_sentence() -> None:
    from workbench.views.overlays import overlay as drawn

    federation = standing()
    federation.settle()
    picture = drawn(federation.overlay.links, messages=federation.counts.links, tables=federation.table_sizes)  # type: ignore[arg-type]
    assert repr(picture).startswith("4 brokers, 3 links; ")
    assert picture.png()[:4] == b"\x89PNG"
