"""Conditions, rules, groups, ties and auxiliary services (TIP 3, 6)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.brokering.broker import Broker
from workbench.errors import DataError
from workbench.model.columns import column
from workbench.model.filters import other, own
from workbench.model.pubsub import publications, subscription
from workbench.model.regions import region
from workbench.model.scenario import Scenario
from workbench.tip.descriptions import ServiceDescription, from_body
from workbench.tip.observer import Auxiliary, Registered, Subscription, evaluate, waiting_for_each_other
from workbench.tip.rules import SERVICES, Advertisement, Condition, Entry, Priority, Rule

GPS = Advertisement("Location", "location", "location", quality=60, latency=20, failure_rate=5.0, format="gps")
HIGH, MEDIUM, LOW = Priority.HIGH, Priority.MEDIUM, Priority.LOW


def service(label: str, category: str = "location", *advertisements: Advertisement, **more: object) -> Registered:
    return Registered(label, ServiceDescription(category, advertisements=advertisements, **more))  # type: ignore[arg-type]


def publisher(label: str, **changes: object) -> Registered:
    return service(label, "location", replace(GPS, **changes))  # type: ignore[arg-type]


def wanting(*groups: tuple[Rule, ...], label: str = "me") -> Registered:
    return service(label, "map", groups=groups)


def publishers(found: frozenset[Subscription]) -> set[str]:
    return {one.publisher for one in found}


@pytest.mark.parametrize(
    ("rule", "accepted"),
    [
        (Rule(), True),
        (Rule(HIGH), True),
        (Rule(event_type="Location"), True),
        (Rule(event_type="Information"), False),
        (Rule(event_category="location"), True),
        (Rule(event_category="information"), False),
        (Rule(quality=60), True),
        (Rule(quality=61), False),
        (Rule(exclusive=True), True),
        (Rule(service_category="location"), True),
        (Rule(service_category="map"), False),
        (Rule(publisher="p1"), True),
        (Rule(publisher="p2"), False),
        (Rule(external=False), True),
        (Rule(local=False), False),
        (Rule(latency=20), True),
        (Rule(latency=19), False),
        (Rule(failure_rate=5.0), True),
        (Rule(failure_rate=4.9), False),
        (Rule(format="gps"), True),
        (Rule(format="rfid"), False),
    ],
)
def test_each_field_of_a_rule_decides(rule: Rule, accepted: bool) -> None:
    assert rule.accepts(Entry("p1", GPS)) == accepted
    found = evaluate([wanting((rule,)), publisher("p1")]).subscriptions["me"]
    assert publishers(found) == ({"p1"} if accepted else set())


def test_local_and_outside_publishers() -> None:
    outside = Entry("p1", GPS, broker="b2")
    assert Rule(external=False).accepts(outside) is False and Rule(local=False).accepts(outside)
    assert Condition("location", remote=False).accepts(outside) is False
    with pytest.raises(DataError, match="so nobody"):
        Rule(local=False, external=False)
    with pytest.raises(DataError, match="so nobody"):
        Condition("location", local=False, remote=False)


def test_a_rule_that_results_in_a_subscription_ends_its_group_only() -> None:
    fine, rough = Rule(HIGH, "Location", quality=80), Rule(LOW, "Location")
    apart = evaluate([wanting((fine,), (rough,)), publisher("p1", quality=90), publisher("p2")]).subscriptions["me"]
    together = evaluate([wanting((fine, rough)), publisher("p1", quality=90), publisher("p2")]).subscriptions["me"]
    fallen = evaluate([wanting((fine, rough)), publisher("p1", quality=70), publisher("p2")]).subscriptions["me"]
    assert publishers(apart) == {"p1", "p2"} and publishers(together) == {"p1"} and publishers(fallen) == {"p1", "p2"}


def test_rules_of_equal_priority_all_hold() -> None:
    other = service("p2", "information", Advertisement("Information", "information"))
    found = evaluate([wanting((Rule(HIGH, "Location"), Rule(HIGH, "Information"))), publisher("p1"), other])
    assert publishers(found.subscriptions["me"]) == {"p1", "p2"}


@pytest.mark.parametrize(
    ("better", "why"),
    [
        ({"quality": 61}, "quality"),
        ({"latency": 19}, "latency"),
        ({"failure_rate": 4.0}, "failure rate"),
        ({"latency": 99, "quality": 61}, "quality before latency"),
        ({"failure_rate": 99.0, "latency": 1}, "latency before failure rate"),
        ({}, "label"),
    ],
)
def test_an_exclusive_rule_takes_the_best(better: dict[str, object], why: str) -> None:
    rivals = [publisher("p1", **(better if why == "label" else {})), publisher("p2", **better)]
    found = evaluate([wanting((Rule(event_type="Location", exclusive=True),)), *rivals]).subscriptions["me"]
    assert publishers(found) == {"p1" if why == "label" else "p2"}, why


def test_an_exclusive_rule_prefers_local_then_whom_it_has() -> None:
    mine = wanting((Rule(event_type="Location", exclusive=True),))
    assert publishers(evaluate([mine, publisher("p9")], [Entry("p1", GPS, "b2")]).subscriptions["me"]) == {"p9"}
    had = replace(mine, subscriptions=frozenset({Subscription("Location", publisher="p9")}))
    assert publishers(evaluate([had, publisher("p1"), publisher("p9")]).subscriptions["me"]) == {"p9"}
    assert publishers(evaluate([had, publisher("p1", quality=99), publisher("p9")]).subscriptions["me"]) == {"p1"}


def test_the_same_type_in_two_categories_is_two_things() -> None:
    sights = service("p2", "information", Advertisement("Location", "information"))
    here, there = Rule(event_type="Location", event_category="location"), Rule(event_category="information")
    found = evaluate([wanting((here,), (there,)), publisher("p1"), sights]).subscriptions["me"]
    assert {(one.type, one.category, one.publisher) for one in found} == {
        ("Location", "location", "p1"),
        ("Location", "information", "p2"),
    }


def test_a_stalled_service_offers_nothing_and_a_chain_begins_from_its_end() -> None:
    rules = ((Rule(event_type="Information"),),)
    display = service("d", "display", conditions=(Condition("information"),), groups=rules)
    guide = service(
        "i", "informative", Advertisement("Information", "information"), conditions=(Condition("location"),)
    )
    assert evaluate([display, guide]).active == frozenset()
    assert evaluate([display, guide, publisher("p1")]).active == {"d", "i", "p1"}


def test_services_that_wait_for_each_other_stay_stalled_and_are_found() -> None:
    one = service("a", "x", Advertisement("A", "a"), conditions=(Condition("b"),))
    two = service("b", "x", Advertisement("B", "b"), conditions=(Condition("a"),))
    assert evaluate([one, two]).active == frozenset()
    assert waiting_for_each_other([one, two]) == [["a", "b"]]
    alone = service("c", "x", Advertisement("C", "c"), conditions=(Condition("c"),))
    assert evaluate([alone]).active == frozenset(), "a service does not meet its own condition"


READER = Auxiliary("reader", "Location", takes="rfid", gives="gps", quality=90)


def test_an_auxiliary_service_is_wanted_exactly_while_a_rule_needs_it() -> None:
    fine = Rule(HIGH, "Location", quality=80, exclusive=True, format="gps")
    rough = Rule(LOW, "Location", exclusive=True, format="gps")
    me, tags = wanting((fine, rough)), publisher("tags", quality=95, format="rfid")
    outside = evaluate([me, publisher("gps", quality=95), tags], auxiliaries=[READER])
    assert not outside.wanted and publishers(outside.subscriptions["me"]) == {"gps"}
    inside = evaluate([me, publisher("gps", quality=30), tags], auxiliaries=[READER])
    assert inside.wanted["reader"].quality == 90 and publishers(inside.subscriptions["me"]) == {"gps"}
    started = Registered("aux", READER.description(inside.wanted["reader"]), auxiliary="reader")
    running = evaluate([me, publisher("gps", quality=30), tags, started], auxiliaries=[READER])
    assert set(running.wanted) == {"reader"} and publishers(running.subscriptions["me"]) == {"aux"}
    assert publishers(running.subscriptions["aux"]) == {"tags"}
    left = evaluate([me, publisher("gps", quality=95), started], auxiliaries=[READER])
    assert not left.wanted and publishers(left.subscriptions["me"]) == {"gps"}


def test_a_conversion_is_no_better_than_its_source() -> None:
    poor = publisher("tags", quality=40, format="rfid")
    assert not evaluate([wanting((Rule(quality=80, format="gps"),)), poor], auxiliaries=[READER]).wanted


advertisements = st.builds(
    Advertisement, st.sampled_from("AB"), st.sampled_from(["x", "y"]), quality=st.sampled_from([20, 60, 90]),
    latency=st.sampled_from([0, 5]), format=st.sampled_from(["", "f"]), failure_rate=st.sampled_from([0.0, 2.5]),
)  # fmt: skip
conditions = st.builds(
    Condition, st.sampled_from(["x", "y"]), st.sampled_from(["", "c", "d"]), st.booleans(), st.just(True)
)
rules = st.builds(
    Rule, st.sampled_from(list(Priority)), st.sampled_from(["", "A", "B"]), st.sampled_from(["", "x"]),
    st.sampled_from([0, 50, 80]), st.booleans(), latency=st.sampled_from([None, 0]), format=st.sampled_from(["", "f"]),
    local=st.booleans(), failure_rate=st.sampled_from([None, 1.0]),
)  # fmt: skip
descriptions = st.builds(
    ServiceDescription, st.sampled_from("cd"), owner=st.sampled_from(["", "the museum & co"]),
    advertisements=st.lists(advertisements, max_size=2, unique_by=lambda one: one.type).map(tuple),
    conditions=st.lists(conditions, max_size=2).map(tuple),
    groups=st.lists(st.lists(rules, min_size=1, max_size=3).map(tuple), max_size=2).map(tuple),
)  # fmt: skip
worlds = st.lists(descriptions, max_size=6).map(lambda given: [Registered(f"p{i}", d) for i, d in enumerate(given)])


@given(descriptions)
def test_a_description_survives_its_registration(description: ServiceDescription) -> None:
    assert from_body(description.body()) == description


@given(worlds, st.randoms())
def test_the_order_of_registration_decides_nothing(world: list[Registered], random: object) -> None:
    shuffled = list(world)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert evaluate(world) == evaluate(shuffled)


@given(worlds)
def test_who_is_active_has_what_it_needs_and_who_is_stalled_has_not(world: list[Registered]) -> None:
    found = evaluate(world)
    for one in world:
        offered = [e for other in world if other.label in found.active - {one.label} for e in other.entries]
        assert (one.label in found.active) == all(
            any(condition.accepts(entry) for entry in offered) for condition in one.description.conditions
        )
        for made in found.subscriptions.get(one.label, ()):
            assert made.publisher in found.active - {one.label}
        for group in one.description.groups:
            if one.label in found.active and any(rule.accepts(entry) for rule in group for entry in offered):
                assert found.subscriptions[one.label]


@given(worlds)
def test_evaluating_again_changes_nothing(world: list[Registered]) -> None:
    once = evaluate(world)
    again = [replace(one, subscriptions=once.subscriptions.get(one.label, frozenset())) for one in world]
    assert evaluate(again) == once


# -- the observer as a broker over services ------------------------------------------------------------------

WISHES = (
    Rule(event_type="A"), Rule(quality=50), Rule(event_category="x", local=False), Rule(latency=4, format="f"),
    Rule(failure_rate=1.0, external=False), Rule(publisher="p1"), Rule(service_category="d"),
)  # fmt: skip
CELLS = ("event_type", "event_category", "quality", "service_category", "publisher", "place", "latency",
         "failure_rate", "format")  # fmt: skip
advertised = st.lists(
    st.tuples(st.sampled_from(["p1", "p2", "p3"]), st.none() | advertisements, st.booleans()), max_size=8
)


@settings(max_examples=25)
@given(advertised)
def test_what_the_observer_accepts_is_what_the_state_persistent_broker_of_the_model_matches(
    history: list[tuple[str, Advertisement | None, bool]],
) -> None:
    """Advertisements come, change and go; a broker whose space is that of services tells of each match and unmatch."""
    offers = publications(
        "offers", rows="places", regions={"offer": region(SERVICES, **{name: getattr(column, name) for name in CELLS})}
    )
    accepting = own.wish.contains(other.offer, space=SERVICES)
    wishes = [
        subscription(f"rule {n}", regions={"wish": rule.interest_region}, filter=accepting)
        for n, rule in enumerate(WISHES)
    ]
    broker = Broker(Scenario([SERVICES], [offers], wishes))
    known: dict[str, Entry] = {}
    told: set[tuple[str, str]] = set()
    for label, said, outside in history:
        if said is None and label not in known:
            continue
        if said is None:
            del known[label]
            messages = broker.remove("offers", label)
        else:
            entry = Entry(label, said, "b2" if outside else "")
            values = (said.type, said.category, said.quality, said.service_category, label, entry.place, said.latency,
                      said.failure_rate, said.format)  # fmt: skip
            act = broker.update if label in known else broker.add
            known[label] = entry
            messages = act("offers", label, **dict(zip(CELLS, values)))
        for message in messages:
            for publisher in message.publications:
                pair = (publisher, str(message.subscription).partition("/")[0])
                assert message.kind == "match" or pair in told
                (told.add if message.kind == "match" else told.discard)(pair)
        names = {f"rule {n}": rule for n, rule in enumerate(WISHES)}
        assert told == {(p, name) for p, entry in known.items() for name, rule in names.items() if rule.accepts(entry)}
