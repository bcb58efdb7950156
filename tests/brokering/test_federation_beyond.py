"""Around the paper: moving clients, covering and merging of our filters, cycles, brokers that come and go, congestion,
context providers, the mobile broker, and what is counted."""

from __future__ import annotations

import math
from collections import Counter

import pandas as pd
import pytest

from workbench import replay
from workbench.brokering.broker import Broker
from workbench.brokering.federation import (
    Composite,
    Congestion,
    Exchange,
    Federation,
    Policy,
    Provider,
    Rules,
    Subscription,
    attribute,
    federated,
    geographic,
    over_the_air,
    overlay,
)
from workbench.brokering.federation.interests import Interest, World
from workbench.brokering.federation.messages import Query, Refused, Unavailable
from workbench.brokering.federation.overlay import Overlay, chain, divided, ring
from workbench.errors import ScenarioError, UpdateError
from workbench.model import Space, column, held, location, other, own, publications, region, seconds, subscriptions
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


def dwelling() -> Scenario:
    """Who is near a shop for five seconds hears of it."""
    near = own.here.within(100, other.site, space=location)
    site = {"site": region(location, position=column.position)}
    here = {"here": region(location, position=column.position)}
    shops = publications("shops", rows="places", regions=site)
    people = subscriptions("people", rows="fixes", regions=here, filter=held(near, seconds(5)))
    return Scenario([location], [shops], [people])


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


def test_a_handover_that_is_faster_than_the_news_of_it_tells_no_end() -> None:
    """The first message over the link that the client comes by is fast, and all others are slow."""
    passed: list[float] = []

    def delay(a: str, b: str) -> float:
        if federation.env.now >= 100 and (a, b) == ("B1", "B2"):
            passed.append(federation.env.now)
        return 3 if len(passed) > 1 else 0

    federation = Federation(scenario(radius_m=100), chain(3), delay=delay, patience=20)
    federation.add("places", "cafe", at="B3", t=1, position=(0, 0))
    federation.add("mobiles", 7, at="B2", t=2, position=(0, 0))
    federation.attach(7, "B1", t=100)
    federation.advance(200)
    assert told(federation) == [(2, "match", "cafe", 7)] and len(passed) > 1


@pytest.mark.parametrize("looks_back", [False, True])
@pytest.mark.parametrize("who", ["mobiles", "places"])
@pytest.mark.parametrize(("brokers", "back"), [(1, "B1"), (3, "B3"), (3, "B1")])
def test_who_left_and_comes_back_is_heard_again(looks_back: bool, who: str, brokers: int, back: str) -> None:
    single, many = Broker(scenario(radius_m=100)), Federation(
        scenario(radius_m=100), chain(brokers), looks_back=looks_back
    )
    for broker, there, then in ((single, {}, {}), (many, {"at": f"B{brokers}"}, {"at": back})):
        other = "places" if who == "mobiles" else "mobiles"
        broker.add(other, "other", t=1, position=(0, 0), **({"at": "B1"} if there else {}))
        broker.add(who, "back", t=2, position=(50, 0), **there)
        for t in (3, 4, 5):
            broker.move("back", (40 + t, 0), t=t)
        if isinstance(broker, Broker):
            broker.remove(who, "back", t=6)
        else:
            broker.leave("back", t=6)
        broker.add(who, "back", t=7, position=(60, 0), **then)
        broker.move("back", (900, 0), t=8)
        broker.advance(9)
    expected = [tuple(row) for row in single.notifications.itertuples(index=False)]
    assert told(many) == expected and [row[0] for row in expected if row[1] == "match"] == [2, 7]


def test_pair_history_moves_with_the_client() -> None:
    """Who dwelt three seconds at one broker and two at the next dwelt five."""
    federation = Federation(dwelling(), chain(3))
    federation.add("shops", "A", at="B3", t=1, position=(0, 0))
    federation.add("people", 7, at="B1", t=10, position=(0, 0))
    federation.attach(7, "B2", t=13)
    federation.advance(30)
    assert told(federation) == [(15, "match", "A", 7)]


def test_time_alone_is_told_of_at_the_instant_at_which_something_happens_elsewhere() -> None:
    federation = Federation(dwelling(), chain(3))
    federation.add("shops", "A", at="B3", t=1, position=(0, 0))
    federation.add("people", 7, at="B1", t=10, position=(0, 0))
    federation.add("people", 8, at="B3", t=12, position=(5000, 0))
    federation.move(8, (6000, 0), t=15)
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


def test_each_forward_in_vain_is_counted_and_an_exit_is_none() -> None:
    federation = Federation(scenario(radius_m=100), chain(3), rules=Rules(blur_m=math.inf))
    federation.add("mobiles", 7, at="B1", t=1, position=(0, 0))
    federation.add("places", "cafe", at="B3", t=2, position=(1000, 0))
    counted = []
    for t, x in enumerate((900, 50, 900, 950), start=3):
        federation.advance(t - 1)
        counted.append(federation.false_forwards)
        federation.move("cafe", (x, 0), t=t)
    federation.settle()
    assert [row[:2] for row in told(federation)] == [(4, "match"), (5, "unmatch")]
    assert [*counted, federation.false_forwards] == [1, 2, 2, 2, 3]


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


def test_where_a_broken_link_leaves_another_way_nobody_waits_for_its_repair() -> None:
    federation = Federation(scenario(radius_m=100), ring(5))
    federation.add("places", "cafe", at="B1", t=1, position=(0, 0))
    federation.add("mobiles", 7, at="B2", t=2, position=(50, 0))
    federation.fail_link("B1", "B2", t=3)
    federation.move("cafe", (500, 0), t=4)
    federation.move("cafe", (60, 0), t=5)
    federation.advance(5)
    assert [row[:2] for row in told(federation)] == [(2, "match"), (4, "unmatch"), (5, "match")]
    assert {d.hops for d in federation.counts.deliveries[1:]} == {4}  # the long way round
    federation.repair_link("B1", "B2", t=6)
    federation.move(7, (500, 0), t=7)
    federation.advance(7)
    assert [row[:2] for row in told(federation)][3:] == [(7, "unmatch")]


def test_in_a_ring_a_broker_retires_and_another_moves_without_a_notification() -> None:
    """What went by way of them finds another one, where there is no new link in their place, too."""
    federation = Federation(scenario(radius_m=100), ring(5))
    federation.join_broker("phone", "B1", t=1)
    federation.add("places", "cafe", at="B4", t=2, position=(0, 0))
    federation.add("mobiles", 7, at="phone", t=3, position=(50, 0))
    federation.relink("phone", "B1", "B2", t=4)
    federation.relink("B5", "B1", "B2", t=5)
    federation.retire_broker("B3", t=6)
    federation.advance(7)
    assert [row[:2] for row in told(federation)] == [(3, "match")]
    federation.move("cafe", (500, 0), t=8)
    federation.move("cafe", (60, 0), t=9)
    federation.advance(9)
    assert [row[:2] for row in told(federation)] == [(3, "match"), (8, "unmatch"), (9, "match")]
    assert not federation.counts.losses
    federation.leave(7, t=10)
    federation.advance(10)
    assert not any(federation.table_sizes.values())


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


def test_a_broker_that_would_close_a_cycle_is_refused_by_name_and_nothing_has_changed() -> None:
    federation = standing()
    federation.advance(3)
    links = federation.overlay.links
    with pytest.raises(ScenarioError, match="cycle B1 - B2 - B3 - B9 - B1"):
        federation.join_broker("B9", "B1", "B3", t=4)
    with pytest.raises(ScenarioError, match="cycle B2 - B3 - B4 - B2"):
        federation.relink("B2", "B1", "B4", t=5)
    assert federation.overlay.links == links and set(federation.brokers) == {"B1", "B2", "B3", "B4"}
    federation.move(7, (500, 0), t=6)
    federation.advance(6)
    assert [row[:2] for row in told(federation)] == [(2, "match"), (6, "unmatch")]


@pytest.mark.parametrize(
    ("operation", "names", "said"),
    [
        ("join_broker",   ("B9", "B11"),       "there is no broker 'B11'; did you mean 'B1'"),
        ("join_broker",   ("B9",),             "no parent"),
        ("join_broker",   ("B4", "B1"),        "a broker 'B4' already"),
        ("relink",        ("B1", "B2", "B99"), "there is no broker 'B99'"),
        ("relink",        ("B99", "B2", "B1"), "there is no broker 'B99'"),
        ("relink",        ("B1", "B99", "B2"), "there is no broker 'B99'"),
        ("relink",        ("B4", "B1", "B2"),  "no link between 'B4' and 'B1'"),
        ("repair_link",   ("B1", "B4"),        "no link between 'B1' and 'B4'"),
        ("repair_link",   ("B1", "B2"),        "is not broken"),
        ("fail_link",     ("B1", "B4"),        "no link between 'B1' and 'B4'"),
        ("fail_broker",   ("B99",),            "there is no broker 'B99'"),
        ("repair_broker", ("B1",),             "is not dead"),
        ("retire_broker", ("B99",),            "there is no broker 'B99'"),
        ("attach",        (7, "B99"),          "there is no broker 'B99'"),
    ],
)  # fmt: skip
def test_names_of_brokers_and_links_are_checked_and_nothing_has_changed(
    operation: str, names: tuple, said: str
) -> None:
    federation = standing()
    federation.advance(3)
    overlay = federation.overlay
    with pytest.raises(UpdateError, match=said):
        getattr(federation, operation)(*names, t=4)
    assert federation.overlay is overlay and set(federation.brokers) == set(overlay.brokers)
    federation.move(7, (500, 0), t=4)  # not even the instant is begun
    federation.advance(4)
    assert [row[:2] for row in told(federation)] == [(2, "match"), (4, "unmatch")]


def test_a_broker_retires_to_a_neighbour_within_reach() -> None:
    federation = standing()
    federation.fail_broker("B4", t=4)
    federation.attach("cafe", "B3", t=5)
    federation.fail_link("B2", "B3", t=6)
    with pytest.raises(UpdateError, match="no neighbour within reach"):
        federation.retire_broker("B3", t=7)
    federation.repair_link("B2", "B3", t=8)
    federation.retire_broker("B3", t=9)
    assert federation.device("cafe").home == "B2"


def test_an_overlay_of_several_parts_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"2 parts: B1 \| B2; link them"):
        Federation(scenario(radius_m=100), Overlay([], ["B1", "B2"]))


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


def test_what_a_home_withholds_while_the_way_is_broken_is_counted_at_the_break() -> None:
    federation = standing(rules=Rules(blur_m=math.inf))
    federation.fail_link("B2", "B3", t=4)
    federation.move(7, (500, 0), t=5)  # away from the café, of which nobody knows whether it is still there
    federation.advance(6)
    assert len(told(federation)) == 1
    assert federation.counts.loss_table.values.tolist() == [["B2-B3", "undecided", "Notify", 1]]
    federation.repair_link("B2", "B3", t=7)
    federation.advance(8)
    assert [row[:2] for row in told(federation)] == [(2, "match"), (7, "unmatch")]


@pytest.mark.parametrize(
    ("fails", "to"),
    [
        (["B1", "B2"],             "B3"),
        (["B3", "B4"],             "B2"),
        (["B1", "B2", "B3", "B4"], "B2"),
    ],
)  # fmt: skip
def test_who_moves_while_the_way_is_broken_is_not_told_of_an_end_that_never_was(fails: list[str], to: str) -> None:
    """From the café's side of the break, from the other one, and into the middle of two."""
    federation = standing()
    broken = list(zip(fails[::2], fails[1::2], strict=True))
    for t, (a, b) in enumerate(broken):
        federation.fail_link(a, b, t=4 + t)
    federation.attach(7, to, t=6)
    for t, (a, b) in enumerate(broken):
        federation.advance(6 + t)
        federation.repair_link(a, b, t=7 + t)
    federation.move(7, (500, 0), t=10)
    federation.advance(10)
    assert [row[:2] for row in told(federation)] == [(2, "match"), (10, "unmatch")]


def test_who_comes_while_the_way_is_broken_waits_for_the_repair_and_hears_what_is_so_then() -> None:
    federation = standing()
    federation.fail_link("B3", "B4", t=4)
    federation.add("mobiles", 8, at="B1", t=5, position=(50, 0))  # B1 knows the café as it was
    federation.advance(6)
    assert len(told(federation)) == 1
    federation.repair_link("B3", "B4", t=7)
    federation.advance(8)
    assert told(federation)[1:] == [(7, "match", "cafe", 8)]


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
    assert Counter(row[0] for row in told(federation)) == {2: 3, 3: 3, 4: 3, 5: 1}
    losses = federation.counts.losses
    assert [(x.t, x.where, x.why) for x in losses] == (
        [(2, "B1", "congested")] * 7 + [(3, "B1", "congested")] * 4 + [(4, "B1", "congested")]
        if policy == "drop"
        else []
    )
    for i in range(10):
        federation.remove("places", i, t=20)
    federation.settle()
    assert not federation.matches and not federation.believed  # of a client that ended there is no next report


@pytest.mark.parametrize("policy", ["drop", "wait"])
@pytest.mark.parametrize("what", ["attach", "repair", "relink"])
def test_a_congested_broker_tells_no_end_because_somebody_moved_or_a_link_is_back(policy: str, what: str) -> None:
    federation = Federation(scenario(radius_m=100), chain(4), congestion=Congestion(2, policy))
    for i in range(6):
        federation.add("places", i, at="B4", t=1 + i, position=(i, 0))
    federation.add("mobiles", 7, at="B1", t=20, position=(0, 0))
    federation.advance(30)
    before = told(federation)
    if what == "attach":
        federation.join_broker("N", "B4", t=40)
        federation.attach(7, "N", t=41)
    elif what == "repair":
        federation.fail_link("B2", "B3", t=40)
        federation.repair_link("B2", "B3", t=41)
    else:
        federation.relink("B1", "B2", "B4", t=40)
    federation.settle()
    assert told(federation) == before and len(before) == 6


def test_every_delivery_has_messages_hops_bytes_and_latency() -> None:
    federation = standing(delay=2)
    federation.settle()
    (delivery,) = federation.counts.deliveries
    assert (delivery.messages, delivery.hops, delivery.latency) == (4, 3, 12)
    near = Federation(scenario(radius_m=100), chain(1))
    near.add("places", "cafe", at="B1", t=1, position=(0, 0))
    near.add("mobiles", 7, at="B1", t=2, position=(50, 0))
    near.settle()
    assert near.counts.deliveries[0].messages == 1
    assert delivery.bytes > near.counts.deliveries[0].bytes > 0
    assert federation.counts.summary["mean latency"] == 12  # to the café's broker and back


def test_a_delivery_took_what_travelled_for_it_and_no_more() -> None:
    """Of five places at once fifteen forwards came; of one that was known already, nothing but the notification."""
    five = Federation(scenario(radius_m=100), chain(4))
    for i in range(5):
        five.add("places", i, at="B4", t=1, position=(0, 0))
    five.add("mobiles", 7, at="B1", t=2, position=(50, 0))
    five.settle()
    (delivery,) = five.counts.deliveries
    assert five.counts.messages["Forward"] == 15
    assert (delivery.messages, delivery.hops) == (16, 3)
    links = {way: n for way, n in five.counts.links.items() if way in {("B4", "B3"), ("B3", "B2"), ("B2", "B1")}}
    assert sum(links.values()) == 15

    known = Federation(scenario(radius_m=100), chain(4), rules=Rules(blur_m=math.inf))
    known.add("mobiles", 7, at="B1", t=1, position=(5000, 0))
    known.add("places", "cafe", at="B4", t=2, position=(0, 0))
    known.advance(5)
    messages, told_bytes = sum(known.counts.messages.values()), known.counts.bytes
    known.move(7, (5, 0), t=6)
    known.settle()
    (delivery,) = known.counts.deliveries
    assert (delivery.messages, delivery.hops) == (1, 0)
    assert sum(known.counts.messages.values()) - messages == 2  # its own report, and the notification
    assert delivery.bytes < known.counts.bytes - told_bytes


def test_what_a_provider_published_is_counted_on_its_way_and_while_its_consumer_was_away() -> None:
    made = Exchange(chain(3), delay=2)
    made.provide(Provider("gps", frozenset({"city"})), "B3")
    made.subscribe("guide", "B1", turin)
    made.settle()
    made.reading("gps", {"city": "Turin"})
    made.settle()
    made.disconnect("guide")
    made.reading("gps", {"city": "Turin"})
    began = made.now
    made.advance(began + 100)
    made.reconnect("guide")
    made.settle()
    found = [(d.messages, d.hops, d.latency) for d in made.counts.deliveries]
    assert found == [(3, 2, 8), (3, 2, 102)]  # to its broker, over two links, to the consumer: two each
    assert len({d.bytes for d in made.counts.deliveries}) == 1 and made.counts.deliveries[0].bytes > 0


def test_news_of_an_exit_has_hops_and_no_latency_of_its_own() -> None:
    federation = standing()
    federation.move("cafe", (900, 0), t=9)
    federation.settle()
    left = federation.counts.deliveries[-1]
    assert (left.what.kind, left.hops, left.latency) == ("unmatch", 3, 0)


def test_mistakes_are_said() -> None:
    federation = standing()
    with pytest.raises(UpdateError, match="did you mean 'B1'"):
        federation.attach(7, "B11", t=3)
    with pytest.raises(UpdateError, match="say at which broker"):
        federation.add("mobiles", 8, t=4, position=(0, 0))
    with pytest.raises(UpdateError, match="looks back"):
        federation.update("mobiles", 7, t=5, filter=held(own.here.enclosed_by(other.reach, space=location), seconds(2)))
    with pytest.raises(ScenarioError, match="accounts are asked for by an Exchange"):
        standing(rules=Rules(accounts={}))
    with pytest.raises(ScenarioError, match="did you mean 'wait'"):
        Congestion(3, "wat")


def test_a_profile_is_on_its_owners_device_and_goes_out_with_its_reports() -> None:
    shop = Space("shop", kind=str)
    offer = {"site": region(location, position=column.position), "offer": region(shop, kind=column.kind)}
    here = {"here": region(location, position=column.position), "wish": region(shop, kind=column.wish)}
    wanted = own.here.within(100, other.site, space=location) & other.offer.overlaps(own.wish, space=shop)
    people = subscriptions("people", rows="fixes", profiles="tastes", regions=here, filter=wanted)
    tables = {"tastes": pd.DataFrame({"id": [7, 8], "t": [1, 1], "wish": ["coffee", "books"]})}
    made = Scenario([location, shop], [publications("shops", rows="places", regions=offer)], [people], tables=tables)
    single, many = Broker(made), Federation(made, chain(3))
    for broker, where in ((single, ({}, {})), (many, ({"at": "B3"}, {"at": "B1"}))):
        broker.profile("tastes", 7, t=1, wish="coffee")
        broker.add("shops", "A", t=2, position=(0, 0), kind="coffee", **where[0])
        broker.add("people", 7, t=3, position=(50, 0), **where[1])
        broker.profile("tastes", 7, t=4, wish="books")
        broker.update("shops", "A", t=5, kind="books")
        broker.advance(6)
    expected = [tuple(row) for row in single.notifications.itertuples(index=False)]
    assert told(many) == expected and [row[:2] for row in expected] == [(3, "match"), (4, "unmatch"), (5, "match")]
    with pytest.raises(UpdateError, match="did you mean 'tastes'"):
        many.profile("taste", 7, t=7, wish="books")


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


ON_EARTH = pd.DataFrame(
    [
        (m, t, 12.40 + 0.004 * ((7 * m + t) % 12), 41.80 + 0.003 * ((m + 5 * t) % 9))
        for m in range(8)
        for t in range(1, 15)
    ],
    columns=["mobile", "t", "lon", "lat"],
)
ROME = pd.DataFrame(
    [(f"p{i}", 12.40 + 0.005 * i, 41.80 + 0.002 * i) for i in range(8)], columns=["place", "lon", "lat"]
)
IN_ROME = {f"B{i}": (12.40 + 0.015 * (i % 3), 41.80 + 0.012 * (i // 3)) for i in range(6)}


@pytest.mark.parametrize("keep_m", [0.0, 200.0])
@pytest.mark.parametrize("delay", [0, 1])
def test_a_federation_on_earth_tells_what_a_replay_tells(keep_m: float, delay: int) -> None:
    made = federated(
        scenario(radius_m=700), ON_EARTH, ROME, overlay=geographic(IN_ROME, "wgs84"), keep_m=keep_m, delay=delay
    )
    expected = replay(scenario(radius_m=700), ON_EARTH, ROME, engine="reference").notifications
    rows = [tuple(row) for row in expected.itertuples(index=False)]
    assert len({d.home for d in made.devices.values()}) > 2 and made.counts.messages["Handover"] > 0 and rows
    if delay == 0:
        assert sorted(told(made)) == sorted(rows)
    else:  # what lasts less than it takes to hear of it is not told; in the end all is known
        now, last = ({row[2:]: row[1] for row in given} for given in (told(made), rows))
        assert {p for p in now if now[p] == "match"} == {p for p in last if last[p] == "match"} != set()


def test_brokers_have_positions_of_the_kind_that_the_data_has(walkers: tuple) -> None:
    with pytest.raises(ScenarioError, match="brokers have wgs84 positions, and the data has planar ones"):
        federated(scenario(radius_m=700), *walkers, overlay=geographic(IN_ROME, "wgs84"))
    with pytest.raises(ScenarioError, match="brokers have planar positions, and the data has wgs84 ones"):
        federated(scenario(radius_m=700), ON_EARTH, ROME, overlay=geographic(IN_ROME))


def test_time_goes_on_after_the_last_row_until_the_end_that_is_given() -> None:
    fixes = pd.DataFrame({"mobile": [7], "t": [10], "x": [50], "y": [0]})
    places = pd.DataFrame({"place": ["A"], "x": [50], "y": [0]})
    for until in (12, 15, 40):
        expected = replay(dwelling(), fixes, places, engine="reference", until=until).notifications
        made = federated(dwelling(), fixes, places, overlay=geographic({"B1": (0, 0)}), until=until)
        assert told(made) == [tuple(row) for row in expected.itertuples(index=False)]
    assert told(made) == [(15, "match", "A", 7)]


def test_the_patience_of_brokers_is_a_way_through_the_overlay_and_back_unless_it_is_given(walkers: tuple) -> None:
    grid = geographic({f"B{i}": (500 * (i % 4), 500 * (i // 4)) for i in range(8)})
    assert federated(scenario(radius_m=250), *walkers, overlay=grid, delay=2).patience == 32
    assert federated(scenario(radius_m=250), *walkers, overlay=grid, delay=2, patience=50).patience == 50


@pytest.mark.parametrize(
    ("by", "labels"),
    [
        ("area", {"a": (0, 0), "b": (9, 0), "c": (1, 0)}),
        ("network", {"a": "wifi", "b": "5g", "c": "wifi"}),
        ("scope", {"a": "weather", "b": "location", "c": "weather"}),
        ("load", {}),
    ],
)
def test_brokers_are_divided_by_area_network_scope_or_load(by: str, labels: dict) -> None:
    there = geographic({"B1": (0, 0), "B2": (10, 0)})
    homes = divided("abc", by, there, labels)
    assert homes["a"] == homes["c"] != homes["b"]


# -- context (II, III) -----------------------------------------------------------------------------------------------


def activity(reading: dict) -> dict:
    return {"activity": "running" if reading["acceleration"] > 3 else "resting"}


running = Subscription("σ1", attribute("activity") == "running")


def exchange() -> Exchange:
    made = Exchange(chain(3))
    made.provide(Provider("phone", frozenset({"activity"}), activity), "B3", sensor=lambda: {"acceleration": 9})
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


@pytest.mark.parametrize("there", [chain(4), ring(4)], ids=["chain", "ring"])
def test_who_subscribes_again_or_for_something_else_is_told_that(there: Overlay) -> None:
    made = Exchange(there)
    made.provide(Provider("thermometer", frozenset({"heat"})), "B3")

    def heard(least: int) -> list[int]:
        made.subscribe("guard", "B1", Subscription("σ", attribute("heat") > least))
        made.inbox.clear()
        for heat in (20, 40, 60):
            made.reading("thermometer", {"heat": heat})
        return [n.attributes["heat"] for n in made.inbox["guard"]]

    assert (heard(30), heard(10), heard(50)) == ([40, 60], [20, 40, 60], [60])
    made.unsubscribe("guard", "σ")
    assert heard(30) == [40, 60]


def test_a_name_stands_for_one_expression_and_in_a_cycle_for_one_client() -> None:
    one, two = (Subscription("σ", attribute("heat") > least) for least in (10, 20))
    made, cyclic = Exchange(chain(3)), Exchange(ring(3))
    for each in (made, cyclic):
        each.subscribe("guard", "B1", one)
    made.subscribe("nurse", "B3", one)
    with pytest.raises(UpdateError, match="'σ' is a subscription of 'guard' already"):
        made.subscribe("cook", "B3", two)
    with pytest.raises(UpdateError, match="a name of its own"):
        cyclic.subscribe("nurse", "B3", one)


def test_a_provider_may_combine_others_told_or_asked() -> None:
    """A provider that is a consumer of two: partly on the device, partly in the infrastructure (I)."""

    def activity(reading: dict) -> dict:
        fast = reading["acceleration"] > 3
        return {"activity": ("running" if reading["pulse"] > 100 else "driving") if fast else "resting"}

    made = Exchange(chain(3))
    raw = tuple(Subscription(name, attribute(name).exists) for name in ("acceleration", "pulse"))
    made.provide(Provider("accelerometer", frozenset({"acceleration"})), "B1")
    made.provide(Provider("watch", frozenset({"pulse"})), "B1")
    made.provide(Provider("activity", frozenset({"activity"}), activity, combines=raw), "B2")
    made.subscribe("coach", "B3", running)
    made.reading("accelerometer", {"acceleration": 7})
    assert "coach" not in made.inbox and made.query("doctor", running, at="B3") is None  # of one nothing follows
    for pulse in (70, 130, 140):
        made.reading("watch", {"pulse": pulse})
    assert [n.origin for n in made.inbox["coach"]] == ["activity", "activity"]
    assert made.query("doctor", running, at="B3").attributes == {"activity": "running"}
    made.reading("accelerometer", {"acceleration": 1})
    assert len(made.inbox["coach"]) == 2 and made.query("doctor", running, at="B3") is None
    forwards = made.counts.messages["Forward"]
    made.leave("activity")
    made.reading("watch", {"pulse": 150})
    assert made.counts.messages["Forward"] == forwards  # nobody combines any longer
    assert [str(b.table) for b in made.brokers.values()] == ["{(σ1, B2)}", "{(σ1, B3)}", "{(σ1, coach)}"]


@pytest.mark.parametrize(("order", "heard"), [(("hot", "smoke"), 1), (("smoke", "hot"), 0)])
def test_a_composite_event_is_told_once_when_its_parts_are_there_in_order(order: tuple, heard: int) -> None:
    made = Exchange(chain(2))
    fire = Composite(
        "fire", {"hot": attribute("heat") > 60, "smoke": attribute("smoke").exists}, within=5, ordered=True
    )
    made.provide(Provider("sensor", frozenset({"heat", "smoke"})), "B2")
    made.subscribe("guard", "B1", fire)
    readings = {"hot": {"heat": 70}, "smoke": {"smoke": True}}
    for name in order:
        made.reading("sensor", readings[name])
    assert len(made.inbox.get("guard", [])) == heard


def test_a_composite_event_is_put_together_by_the_consumers_broker_from_several_providers() -> None:
    made = Exchange(chain(3))
    parts = {"hot": attribute("heat") > 60, "smoke": attribute("smoke").exists}
    made.provide(Provider("thermometer", frozenset({"heat"})), "B3")
    made.provide(Provider("detector", frozenset({"smoke"})), "B2")
    made.subscribe("guard", "B1", Composite("fire", parts, within=5), Subscription("σ", attribute("heat") > 90))
    assert {n for s, d in made.brokers["B3"].table for n in [s.name]} == {("fire", "hot"), ("fire", "smoke"), "σ"}
    made.reading("thermometer", {"heat": 95})
    assert [n.origin for n in made.inbox["guard"]] == ["thermometer"]  # by σ; of the event only a part is there
    made.reading("detector", {"smoke": 1})
    assert [n.origin for n in made.inbox["guard"]] == ["thermometer", "fire"]
    made.unsubscribe("guard", "fire")
    assert [str(b.table) for b in made.brokers.values()] == ["{(σ, guard)}", "{(σ, B1)}", "{(σ, B2)}"]
    made.leave("guard")
    assert not any(b.composing or len(b.table) for b in made.brokers.values())


@pytest.mark.parametrize(("apart", "heard"), [(5, 1), (6, 0)])
def test_parts_of_a_composite_event_that_lie_too_far_apart_are_none(apart: float, heard: int) -> None:
    made = Exchange(chain(2))
    made.provide(Provider("sensor", frozenset({"a", "b"})), "B2")
    made.subscribe("guard", "B1", Composite("e", {"a": attribute("a").exists, "b": attribute("b").exists}, within=5))
    made.reading("sensor", {"a": 1})
    made.advance(apart)
    made.reading("sensor", {"b": 1})
    assert len(made.inbox.get("guard", [])) == heard


def test_who_says_the_wrong_credentials_provides_nothing() -> None:
    made = Exchange(chain(2), Rules(accounts={"gps": "secret", "guide": ""}))
    made.provide(Provider("gps", frozenset({"city"})), "B2", credentials="guess")
    assert "gps" not in made.brokers["B2"].clients and made.counts.messages[Refused.__name__] == 1
    made.provide(Provider("gps", frozenset({"city"})), "B2", credentials="secret")
    assert made.brokers["B2"].clients["gps"].endpoint == "B2/gps"


# -- the mobile broker (VIII), and brokers that are cut off ------------------------------------------------------------

turin = Subscription("σ", attribute("city") == "Turin")


def device(policy: Policy | None = None) -> Exchange:
    """A phone with a location provider and a guide on it, linked to B1; the world listens at B2."""
    made = Exchange(Overlay([("B1", "B2"), ("B1", "phone")]), policies={"phone": policy or Policy()})
    made.provide(Provider("gps", frozenset({"city"})), "phone", sensor=lambda: {"city": "Turin"})
    made.subscribe("guide", "phone", turin)
    made.subscribe("world", "B2", turin)
    return made


def test_the_mobile_broker_answers_from_its_cache_without_the_provider_while_that_is_fresh() -> None:
    made = device()
    made.reading("gps", {"city": "Turin"})
    made.advance(60)
    assert made.query("guide", turin, fresh_for=60).number == 1 and made.invoked["gps"] == 0
    made.advance(200)
    assert made.query("guide", turin, fresh_for=60).number == 0 and made.invoked["gps"] == 1


def test_what_the_network_told_is_in_the_cache_too() -> None:
    made = device()
    made.provide(Provider("station", frozenset({"weather"})), "B2")
    rain = Subscription("rain", attribute("weather") == "rain")
    made.subscribe("guide", "phone", rain)
    made.reading("station", {"weather": "rain"})
    made.cut("phone", "B1")
    assert made.query("guide", rain, fresh_for=60).attributes == {"weather": "rain"}
    assert made.invoked["station"] == 0


@pytest.mark.parametrize(
    ("policy", "heard", "lost", "unavailable"),
    [
        (Policy("drop"),                       [],         {"dropped": 3},    0),
        (Policy("resend", resend_after=20),    [2, 1, 3],  {},                7),
        (Policy("queue"),                      [1, 2, 3],  {},                0),
        (Policy("queue", length=2),            [2, 3],     {"queue full": 1}, 0),
        (Policy("queue", age=35),              [2, 3],     {"too old": 1},    0),
    ],
)  # fmt: skip
def test_while_it_is_cut_off_a_policy_decides(policy: Policy, heard: list, lost: dict, unavailable: int) -> None:
    """Three readings at 0, 10 and 20 s, and a link that is there again at 45 s."""
    made = device(policy)
    made.cut("phone", "B1")
    for t in (0, 10, 20):
        made.advance(t)
        made.reading("gps", {"city": "Turin"})
    made.advance(45)
    assert "world" not in made.inbox
    assert [n.number for n in made.inbox["guide"]] == [1, 2, 3]  # on the device nothing is missing
    made.mend("phone", "B1")
    made.advance(100)
    assert [n.number for n in made.inbox.get("world", [])] == heard
    assert Counter(loss.why for loss in made.counts.losses) == lost
    assert made.counts.messages["Unavailable"] == unavailable
    assert [n.number for n in made.inbox["guide"]] == [1, 2, 3] and not made.waiting


@pytest.mark.parametrize(("broker", "consumer"), [("phone", "guide"), ("B1", "clerk")])
def test_who_is_cut_off_hears_unavailable_on_a_device_and_in_the_infrastructure(broker: str, consumer: str) -> None:
    made = device()
    made.provide(Provider("station", frozenset({"weather"})), "B2", sensor=lambda: {"weather": "rain"})
    weather = Subscription("w", attribute("weather").exists)
    made.subscribe(consumer, broker, turin)
    made.cut("B1", "B2")
    assert made.query(consumer, weather) == Unavailable(30.0, Query(weather))
    assert made.query(consumer, turin).attributes == {"city": "Turin"}  # this side answers as ever
    made.mend("B1", "B2")
    made.advance(made.now + 30)
    assert [n.attributes for n in made.inbox[consumer]] == [{"weather": "rain"}]


def test_a_question_may_wait_in_the_queue_too() -> None:
    made = device(Policy("queue"))
    made.provide(Provider("station", frozenset({"weather"})), "B2", sensor=lambda: {"weather": "rain"})
    made.cut("phone", "B1")
    assert made.query("guide", Subscription("w", attribute("weather").exists)) is None
    made.mend("phone", "B1")
    assert [n.attributes for n in made.inbox["guide"]] == [{"weather": "rain"}]


def test_subscriptions_made_while_it_was_cut_off_are_told_when_it_is_back_at_whatever_parent() -> None:
    made = device(Policy("queue"))
    made.provide(Provider("station", frozenset({"weather"})), "B2")
    made.cut("phone", "B1")
    made.subscribe("guide", "phone", Subscription("w", attribute("weather").exists))
    made.reading("gps", {"city": "Turin"})
    made.relink("phone", "B1", "B2")
    assert [n.number for n in made.inbox["world"]] == [1]  # what waited goes to the new parent
    made.reading("station", {"weather": "rain"})
    assert made.inbox["guide"][-1].attributes == {"weather": "rain"}
    assert "phone" not in {d for _, d in made.brokers["B1"].table}


@pytest.mark.parametrize("there", [Overlay([("B1", "B2"), ("B1", "phone")]), ring(4).with_broker("phone", "B1")],
                         ids=["tree", "ring"])  # fmt: skip
def test_who_is_on_a_mobile_broker_hears_whatever_its_parent(there: Overlay) -> None:
    made = Exchange(there)
    made.provide(Provider("station", frozenset({"weather"})), "B1")
    made.provide(Provider("gps", frozenset({"city"})), "phone")
    made.subscribe("guide", "phone", Subscription("w", attribute("weather").exists))
    made.subscribe("world", "B2", turin)
    for parent, before in (("B2", "B1"), ("B1", "B2")):
        made.relink("phone", before, parent)
        made.reading("station", {"weather": "rain"})
        made.reading("gps", {"city": "Turin"})
    assert [n.number for n in made.inbox["guide"]] == [n.number for n in made.inbox["world"]] == [1, 2]


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
    found = over_the_air([gps], apps, readings, outages=[(10, 20)], wanted=[turin], policy=Policy("queue"))
    mobile, alone = found["mobile broker"], found["every app by itself"]
    assert mobile["heard by apps"] == 4 * 25 and mobile["heard by the world"] == 25
    assert alone["heard by apps"] == 4 * 20 and alone["lost"] == 5
    assert alone["over the air"] > 2 * mobile["over the air"]


# -- what can be seen --------------------------------------------------------------------------------------------------


def test_an_overlay_is_drawn_with_a_sentence() -> None:
    from workbench.views.overlays import overlay as drawn

    federation = standing()
    federation.settle()
    picture = drawn(federation.overlay.links, messages=federation.counts.links, tables=federation.table_sizes)  # type: ignore[arg-type]
    assert repr(picture).startswith("4 brokers, 3 links; ")
    assert picture.png()[:4] == b"\x89PNG"
