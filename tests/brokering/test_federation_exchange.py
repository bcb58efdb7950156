"""Context providers and consumers at the brokers of an overlay: who is handed what, and who is told."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from workbench.brokering.federation import (
    Composite,
    Exchange,
    Policy,
    Provider,
    Rules,
    Subscription,
    attribute,
    divided,
)
from workbench.brokering.federation.attributes import Notification
from workbench.brokering.federation.messages import Refused
from workbench.brokering.federation.overlay import Overlay, chain, ring
from workbench.errors import ScenarioError, UpdateError

hot = Subscription("σ", attribute("heat") > 25)


def thermometer(there: Overlay, at: str) -> Exchange:
    made = Exchange(there)
    made.provide(Provider("thermometer", frozenset({"heat"})), at)
    return made


# -- what a provider is handed (V) -------------------------------------------------------------------------


def test_who_can_produce_an_attribute_need_not_and_is_handed_subscriptions_that_want_it_missing() -> None:
    made = Exchange(chain(2))
    made.provide(Provider("sensor", frozenset({"x", "y"})), "B2")
    made.subscribe("κ", "B1", Subscription("σ", ~attribute("y").exists))
    made.reading("sensor", {"x": 1, "y": 1})
    made.reading("sensor", {"x": 1})
    assert [n.number for n in made.inbox["κ"]] == [2]


def test_what_another_consumer_of_the_same_broker_still_wants_is_not_taken_back_from_the_provider() -> None:
    made = thermometer(chain(1), "B1")
    for consumer in ("a", "b"):
        made.subscribe(consumer, "B1", hot)
    made.unsubscribe("a", "σ")
    made.reading("thermometer", {"heat": 30})
    assert list(made.inbox) == ["b"]
    made.unsubscribe("b", "σ")
    assert not made.providers["thermometer"].wanted


def test_what_only_the_provider_itself_still_wants_is_taken_back_from_it() -> None:
    made = thermometer(chain(2), "B1")
    made.subscribe("thermometer", "B1", hot)
    assert not made.providers["thermometer"].wanted
    for consumer, at in (("a", "B1"), ("b", "B2")):
        made.subscribe(consumer, at, hot)
        assert list(made.providers["thermometer"].wanted) == ["σ"]
        made.unsubscribe(consumer, "σ")
        assert not made.providers["thermometer"].wanted


def test_who_leaves_is_published_for_no_longer_whether_its_provider_is_near_or_far() -> None:
    for at in ("B1", "B2"):
        made = thermometer(chain(2), at)
        made.subscribe("κ", "B1", hot)
        made.leave("κ")
        made.reading("thermometer", {"heat": 30})
        assert made.counts.messages["Pub"] == 0


# -- events made of several (IX) ---------------------------------------------------------------------------

a, b = attribute("a").exists, attribute("b").exists


def at(time: float, name: str, origin: str = "κ", number: int = 1) -> Notification:
    return Notification({name: 1}, origin, number, time)


def made_of(event: Composite, *told: Notification) -> list[tuple[float, ...]]:
    """The source times of the parts of each event that these complete, as they come."""
    seen, found = (), []
    for one in told:
        seen, made = event.told(one, seen)
        found += [tuple(n.published for n in made.attributes.values())] if made is not None else []
    return found


@pytest.mark.parametrize(
    ("told", "any_order", "in_order"),
    [
        ([at(0, "a"), at(4, "b")],                         [(0, 4)],  [(0, 4)]),
        ([at(4, "b"), at(0, "a")],                         [(0, 4)],  [(0, 4)]),   # resent: it came late
        ([at(0, "b"), at(4, "a")],                         [(4, 0)],  []),
        ([at(100, "a"), at(0, "b")],                       [],        []),         # a hundred apart, late or not
        ([at(0, "a"), at(11, "b")],                        [],        []),
        ([at(0, "a"), at(4, "a"), at(2, "b")],             [(4, 2)],  [(0, 2)]),   # the earlier one comes before it
        ([at(0, "a"), at(5, "x"), at(9, "b")],             [(0, 9)],  [(0, 9)]),
        ([at(3, "b", "κ", 2), at(3, "a", "κ", 1)],         [(3, 3)],  [(3, 3)]),   # of one source the number says it
        ([at(3, "b", "κ1", 1), at(3, "a", "κ2", 2)],       [(3, 3)],  []),         # of two the arrival
    ],
)  # fmt: skip
def test_an_event_has_the_time_and_the_order_of_its_sources(told: list, any_order: list, in_order: list) -> None:
    parts = {"a": a, "b": b}
    assert made_of(Composite("e", parts, within=10), *told) == any_order
    assert made_of(Composite("e", parts, within=10, ordered=True), *told) == in_order


def test_an_event_that_is_made_of_other_parts_now_leaves_none_of_the_former_ones() -> None:
    made = Exchange(chain(2))
    made.provide(Provider("sensor", frozenset("abc")), "B2")
    made.subscribe("κ", "B1", Composite("e", {"a": a, "b": b}, within=5))
    made.subscribe("κ", "B1", Composite("e", {"a": a, "c": attribute("c").exists}, within=5))
    assert {s.name for s, _ in made.brokers["B2"].table} == {("e", "a"), ("e", "c")}
    assert set(made.providers["sensor"].wanted) == {("e", "a"), ("e", "c")}
    made.unsubscribe("κ", "e")
    assert not any(len(broker.table) for broker in made.brokers.values())


def test_an_event_without_parts_or_with_a_time_before_is_refused() -> None:
    with pytest.raises(ScenarioError, match="'e' has no parts"):
        Composite("e", {}, within=5)
    with pytest.raises(ScenarioError, match="within = -1"):
        Composite("e", {"a": a}, within=-1)


# -- the cache (VIII) --------------------------------------------------------------------------------------


def test_the_cache_answers_with_the_newest() -> None:
    made, heat = Exchange(chain(1)), attribute("heat").exists
    made.subscribe("κ", "B1", Subscription("σ", heat))
    for name in "ab":
        made.provide(Provider(name, frozenset({"heat"})), "B1")
    for t, name in ((0, "a"), (10, "b"), (20, "a")):
        made.advance(t)
        made.reading(name, {"heat": t})
    assert made.query("κ", Subscription("σ", heat), fresh_for=60).attributes == {"heat": 20}


# -- policies (VIII) ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"resend_after": 0},           "resend_after = 0; expected"),
        ({"resend_after": math.inf},    "resend_after = inf; expected"),
        ({"length": 0},                 "length = 0; expected"),
        ({"length": 2.5},               "length = 2.5; expected"),
        ({"age": -1},                   "age = -1; expected"),
        ({"age": math.nan},             "age = nan; expected"),
        ({"kind": "que", "length": -1}, r"did you mean 'queue'.*length = -1"),
    ],
)  # fmt: skip
def test_a_policy_that_cannot_be_followed_is_refused_with_all_its_faults(given: dict, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        Policy(**given)


def test_a_policy_is_that_of_a_broker_there_is() -> None:
    with pytest.raises(ScenarioError, match="'B9'"):
        Exchange(chain(2), policies={"B9": Policy()})


# -- time (II, III) ----------------------------------------------------------------------------------------


def far(delay: object = 1) -> Exchange:
    """A consumer four messages from its provider, whose heat is the time."""
    made = Exchange(chain(3), delay=delay)  # type: ignore[arg-type]
    made.provide(Provider("thermometer", frozenset({"heat"})), "B3", sensor=lambda: {"heat": made.now})
    made.subscribe("κ", "B1", Subscription("any", attribute("heat").exists))
    made.settle()
    return made


def test_a_notification_takes_the_delay_of_each_link_while_the_provider_goes_on() -> None:
    made = far()
    began = made.now
    made.readings("thermometer", [(began + t, {"heat": t}) for t in range(6)])
    made.advance(began + 3)
    assert made.numbers["thermometer"] == 4 and "κ" not in made.inbox  # it has said four things, none is there yet
    made.settle()
    assert [(d.t - began, d.latency) for d in made.counts.deliveries] == [(t + 4, 4) for t in range(6)]
    assert made.blocked["κ"] == 0


def test_who_asks_is_blocked_until_the_answer_is_there_while_everybody_else_goes_on() -> None:
    made = far()
    began = made.now
    made.readings("thermometer", [(began + t, {"heat": t}) for t in range(100)])
    found = made.query("doctor", hot, at="B1")
    # Three brokers are looked up, one, two and three links away and back; to the provider and back it is four.
    assert made.now - began == made.blocked["doctor"] == 2 * (1 + 2 + 3 + 4)
    assert found is None and made.invoked["thermometer"] == 1
    assert made.numbers["thermometer"] >= 20 and len(made.inbox["κ"]) >= 16


@pytest.mark.parametrize("asked", [hot, Subscription("any", attribute("heat").exists)], ids=["in vain", "answered"])
def test_a_provider_is_looked_up_once_and_asked_directly_from_then_on(asked: Subscription) -> None:
    made = far()
    took = []
    for _ in range(3):
        began = made.now
        made.query("κ", asked)
        took.append(made.now - began)
    assert took == [2 + 4 + 6 + 8, 8, 8]
    made.leave("thermometer")
    made.provide(Provider("new", frozenset({"heat"})), "B1", sensor=lambda: {"heat": 7})
    made.settle()
    began = made.now
    found = made.query("κ", Subscription(asked.name, asked.expression))
    assert made.now - began >= 6 + 2 + 4  # the old one is not there; who is?
    assert (found is None) == (asked is hot)


def test_who_found_nobody_looks_again() -> None:
    made = Exchange(chain(3))
    assert made.query("κ", hot, at="B1") is None
    made.provide(Provider("thermometer", frozenset({"heat"})), "B3", sensor=lambda: {"heat": 30})
    assert made.query("κ", hot).attributes == {"heat": 30}


def test_what_is_on_its_way_when_a_link_breaks_is_lost_there_and_tables_are_made_good() -> None:
    made = far(delay=lambda a, b: 5)
    made.reading("thermometer", {"heat": 1})
    made.advance(made.now + 7)
    made.cut("B3", "B2")
    made.subscribe("κ", "B1", hot)
    made.settle()
    assert [(loss.where, loss.why, loss.message) for loss in made.counts.losses] == [
        ("B2-B3", "link broke", "Forward"),
        ("B2-B3", "link down", "TableUpdate"),
    ]
    made.mend("B3", "B2")
    made.settle()
    assert set(made.providers["thermometer"].wanted) == {"any", "σ"}


def test_on_a_link_nothing_overtakes_what_was_sent_before() -> None:
    slow: list[int] = []
    made = far(delay=lambda a, b: slow.pop() if slow and (a, b) == ("B3", "B2") else 0)
    slow += [1, 1, 9]
    for heat in range(3):
        made.reading("thermometer", {"heat": heat})
    made.settle()
    assert [n.number for n in made.inbox["κ"]] == [1, 2, 3]


# -- one broker at a time (IV.A) ---------------------------------------------------------------------------


def test_a_second_broker_is_refused_by_name() -> None:
    made = thermometer(chain(2), "B1")
    made.subscribe("κ", "B1", hot)
    for again in (
        lambda: made.subscribe("κ", "B2", hot),
        lambda: made.query("κ", hot, at="B2"),
        lambda: made.provide(Provider("thermometer", frozenset({"heat"})), "B2"),
    ):
        with pytest.raises(UpdateError, match="is at broker 'B1'; to have it go on at 'B2', attach it"):
            again()
    assert "κ" not in made.brokers["B2"].clients
    made.leave("κ")
    made.subscribe("κ", "B2", hot)  # who left may come back anywhere


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize("there", [chain(4), ring(4)], ids=["chain", "ring"])
@pytest.mark.parametrize(("path", "provider"), [("B2", "B4"), ("B4", "B1"), ("B3", "B3")])
def test_a_consumer_that_attaches_elsewhere_misses_nothing_and_hears_all_once(
    there: Overlay, delay: int, path: str, provider: str
) -> None:
    made = Exchange(there, delay=delay)
    made.provide(Provider("thermometer", frozenset({"heat"})), provider)
    made.subscribe("κ", "B1", hot)
    made.settle()
    began = made.now
    made.readings("thermometer", [(began + t, {"heat": 30}) for t in range(60)])
    made.advance(began + 20)
    made.attach("κ", path)
    made.advance(began + 60)
    made.settle()
    assert sorted(n.number for n in made.inbox["κ"]) == list(range(1, 61))
    assert [b for b in made.brokers if "κ" in made.brokers[b].clients] == [path]
    made.leave("κ")
    made.settle()
    assert not any(len(broker.table) for broker in made.brokers.values())


def test_a_provider_that_attaches_elsewhere_is_handed_what_is_wanted_there() -> None:
    made = thermometer(chain(3), "B1")
    made.subscribe("κ", "B2", hot)
    made.attach("thermometer", "B3")
    made.reading("thermometer", {"heat": 30})
    assert len(made.inbox["κ"]) == 1 and made.query("κ", hot) is None  # it has no sensor to read
    made.unsubscribe("κ", "σ")
    assert not made.providers["thermometer"].wanted and "thermometer" not in made.brokers["B1"].clients


def test_who_attaches_while_its_old_broker_is_cut_off_leaves_it_when_that_can_be_said() -> None:
    made = thermometer(chain(2), "B1")
    made.subscribe("κ", "B1", hot)
    made.cut("B1", "B2")
    made.attach("κ", "B2")
    assert "κ" in made.brokers["B1"].clients
    made.mend("B1", "B2")
    assert "κ" not in made.brokers["B1"].clients and not made.waiting
    made.reading("thermometer", {"heat": 30})
    assert len(made.inbox["κ"]) == 1


def test_who_leaves_or_comes_back_before_its_old_broker_could_be_told_keeps_nothing_there() -> None:
    for comes_back in (True, False):
        made = thermometer(chain(2), "B1")
        made.subscribe("κ", "B1", hot)
        made.cut("B1", "B2")
        made.attach("κ", "B2")
        made.unsubscribe("κ", "σ")
        if comes_back:
            made.attach("κ", "B1")
        else:
            made.leave("κ")
        made.mend("B1", "B2")
        assert [set(broker.clients) - {"thermometer"} for broker in made.brokers.values()] == [
            {"κ"} if comes_back else set(),
            set(),
        ]
        assert not any(len(broker.table) for broker in made.brokers.values()) and not made.waiting


# -- who is known here (IV.D) ------------------------------------------------------------------------------


def test_who_is_not_known_is_refused_whatever_it_asks_and_who_registered_is_not() -> None:
    made = Exchange(chain(2), Rules(accounts={"κ": "secret", "thermometer": ""}))
    made.provide(Provider("thermometer", frozenset({"heat"})), "B2", sensor=lambda: {"heat": 30})
    for fresh_for in (0, 60):
        assert isinstance(made.query("κ", hot, fresh_for, at="B1"), Refused)
    made.subscribe("κ", "B1", hot)
    assert not made.brokers["B1"].clients and not made.wishes
    made.register("κ", "B1", credentials="secret")
    made.subscribe("κ", "B1", hot)
    made.reading("thermometer", {"heat": 31})
    assert [n.attributes["heat"] for n in made.inbox["κ"]] == [31]
    assert made.query("κ", hot).attributes == {"heat": 30}
    made.attach("κ", "B2")  # its credentials go along
    assert set(made.brokers["B2"].clients) == {"κ", "thermometer"} and not made.brokers["B1"].clients


def test_who_and_what_is_not_there_is_said_by_name_and_nothing_has_changed() -> None:
    made = thermometer(chain(3), "B1")
    for mistake, said in (
        (lambda: made.unsubscribe("thermometre", "σ"), "'thermometer'"),
        (lambda: made.leave("κ"), "no client 'κ'"),
        (lambda: made.reading("thermometre", {}), "did you mean 'thermometer'"),
        (lambda: made.attach("thermometer", "B9"), "no broker 'B9'"),
        (lambda: made.subscribe("κ", "B9", hot), "no broker 'B9'"),
        (lambda: made.query("κ", hot, at="B9"), "no broker 'B9'"),
        (lambda: made.relink("B2", "B1", "B9"), "no broker 'B9'"),
        (lambda: made.relink("B9", "B1", "B2"), "no broker 'B9'"),
        (lambda: made.relink("B3", "B1", "B2"), "no link between 'B3' and 'B1'"),
        (lambda: made.relink("B2", "B1", "B3"), "linked already"),
        (lambda: made.mend("B1", "B3"), "no link between"),
    ):
        with pytest.raises(UpdateError, match=said):
            mistake()
    assert made.overlay.links == (("B1", "B2"), ("B2", "B3"))
    made.subscribe("κ", "B3", hot)
    made.reading("thermometer", {"heat": 30})
    assert len(made.inbox["κ"]) == 1


# -- who is away -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "heard", "lost"),
    [
        (Policy(),                     [1, 2, 3, 4], {}),
        (Policy("queue", length=3),    [2, 3, 4],    {"queue full": 1}),
        (Policy("queue", age=25),      [3, 4],       {"too old": 2}),
        (Policy("drop"),               [],           {"dropped": 4}),
    ],
)  # fmt: skip
def test_what_a_consumer_that_is_away_is_to_be_told_waits_so_much_and_so_long(
    policy: Policy, heard: list, lost: dict
) -> None:
    made = Exchange(chain(2), policies={"B1": policy})
    made.provide(Provider("thermometer", frozenset({"heat"})), "B2")
    made.subscribe("κ", "B1", hot)
    made.disconnect("κ")
    for t in (0, 10, 20, 30):
        made.advance(t)
        made.reading("thermometer", {"heat": 30})
        made.disconnect("κ")  # it is away still
    made.advance(45)
    made.reconnect("κ")
    assert [n.number for n in made.inbox.get("κ", [])] == heard
    assert Counter(loss.why for loss in made.counts.losses) == lost
    assert {loss.where for loss in made.counts.losses} <= {"B1"}


def test_who_leaves_while_it_is_away_hears_nothing_of_what_waited() -> None:
    made = thermometer(chain(1), "B1")
    made.subscribe("κ", "B1", hot)
    made.disconnect("κ")
    made.reading("thermometer", {"heat": 30})
    made.leave("κ")
    made.reconnect("κ")
    assert "κ" not in made.inbox and [loss.why for loss in made.counts.losses] == ["left"]


def test_what_waits_at_the_old_parent_of_a_broker_goes_after_it() -> None:
    made = Exchange(Overlay([("B1", "B2"), ("B1", "phone")]), policies={"B1": Policy("queue")})
    made.provide(Provider("thermometer", frozenset({"heat"})), "B1")
    made.subscribe("κ", "phone", hot)
    made.cut("B1", "phone")
    made.reading("thermometer", {"heat": 30})
    made.relink("phone", "B1", "B2")
    assert len(made.inbox["κ"]) == 1 and not made.waiting and not made.counts.losses


def test_unavailable_and_what_is_resent_take_their_time_too() -> None:
    made = far()
    made.cut("B1", "B2")
    began = made.now
    made.reading("thermometer", {"heat": 30})
    made.advance(began + 4)  # to B3, to B2, and back
    (waits,) = made.waiting
    assert (waits.broker, waits.due, made.counts.messages["Unavailable"]) == ("B2", began + 4 + 30, 2)
    made.advance(began + 10)
    made.mend("B1", "B2")
    made.advance(began + 100)
    assert [(d.t - began, d.latency) for d in made.counts.deliveries] == [(4 + 30 + 4, 38)]


def test_by_load_who_has_little_to_say_goes_to_who_has_little_to_do() -> None:
    homes = divided("abcdef", "load", chain(3), {"a": 5, "b": 2})
    assert [sum({"a": 5, "b": 2}.get(c, 1) for c in homes if homes[c] == b) for b in ("B1", "B2", "B3")] == [5, 3, 3]


def test_a_name_that_meant_something_else_is_handed_as_what_it_means_now() -> None:
    made = Exchange(chain(2), delay=1)
    made.provide(Provider("thermometer", frozenset({"heat"})), "B2")
    made.settle()
    made.subscribe("κ", "B1", Subscription("σ", attribute("heat") > 50))
    made.leave("κ")
    made.subscribe("κ", "B2", hot)  # it is there before the news of the other one
    made.settle()
    made.reading("thermometer", {"heat": 30})
    made.settle()
    assert len(made.inbox["κ"]) == 1


def test_who_is_elsewhere_though_its_old_broker_does_not_know_is_asked_there() -> None:
    made = Exchange(Overlay([("B1", "B2"), ("B2", "B3")]), policies={"B1": Policy("drop")})
    made.provide(Provider("thermometer", frozenset({"heat"})), "B2", sensor=lambda: {"heat": 30})
    made.cut("B2", "B3")
    made.attach("thermometer", "B3")
    assert made.query("κ", hot, at="B1") is None
    made.mend("B2", "B3")
    assert made.query("κ", hot).attributes == {"heat": 30}
