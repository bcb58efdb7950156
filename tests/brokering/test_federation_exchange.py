"""Context providers and consumers at the brokers of an overlay: who is handed what, and who is told."""

from __future__ import annotations

from workbench.brokering.federation import Exchange, Provider, Subscription, attribute
from workbench.brokering.federation.overlay import Overlay, chain

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
