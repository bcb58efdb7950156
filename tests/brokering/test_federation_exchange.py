"""Context providers and consumers at the brokers of an overlay: who is handed what, and who is told."""

from __future__ import annotations

import math

import pytest

from workbench.brokering.federation import Composite, Exchange, Policy, Provider, Subscription, attribute
from workbench.brokering.federation.attributes import Notification
from workbench.brokering.federation.overlay import Overlay, chain
from workbench.errors import ScenarioError

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
