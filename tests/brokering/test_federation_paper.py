"""The paper's cases, message by message: one broker (V), two (VI), n (VII), joining and leaving (VIII)."""

from __future__ import annotations

from collections import deque

import pytest

from workbench.brokering.federation.attributes import Constraint, Notification, Subscription, attribute
from workbench.brokering.federation.brokers import linked, step
from workbench.brokering.federation.messages import (
    Answer,
    Envelope,
    Forward,
    Leave,
    LocalClient,
    Notify,
    Pub,
    Query,
    Refused,
    Register,
    Sub,
    Synced,
    TableUpdate,
    Unsub,
)
from workbench.brokering.federation.overlay import Overlay
from workbench.brokering.federation.state import Broker, Rules
from workbench.errors import ScenarioError

sigma_1 = Subscription("σ1", attribute("temperature") > 25)
sigma_2 = Subscription("σ2", attribute("temperature") > 20)
sigma_3 = Subscription("σ3", attribute("temperature") > 10)
nu_1 = Notification({"temperature": 30}, "κ2", 1)


class Network:
    """Brokers that answer at once; keeps every message that passed."""

    def __init__(self, *links: tuple[str, str], alone: str = "", cyclic: bool = False, **rules: object) -> None:
        overlay = Overlay(links, [alone] if alone else [], cyclic=cyclic)
        made = Rules(cyclic=cyclic, **rules)  # type: ignore[arg-type]
        self.brokers = {b: Broker(b, frozenset(overlay.neighbours(b)), made) for b in overlay.brokers}
        self.home: dict[object, str] = {}

    def __call__(self, client: str, broker: str, message: object) -> list[Envelope]:
        """What follows when a client sends a message, in order."""
        return self.run([Envelope(client, broker, message)])

    def link(self, one: str, other: str) -> list[Envelope]:
        """What follows when two brokers are linked, in order."""
        out: list[Envelope] = []
        for end, far in ((one, other), (other, one)):
            self.brokers[end], sent = linked(self.brokers[end], far)
            out += sent
        return out + self.run(out)

    def run(self, out: list[Envelope]) -> list[Envelope]:
        waiting, passed = deque(out), []
        while waiting:
            envelope = waiting.popleft()
            if envelope.destination in self.brokers:
                broker = str(envelope.destination)
                self.brokers[broker], out = step(self.brokers[broker], envelope.source, envelope.message)
                waiting.extend(out)
                passed += out
        return passed

    def table(self, broker: str) -> set[tuple[str, str]]:
        return {(str(s.name), str(d)) for s, d in self.brokers[broker].table}


def provider(name: str) -> Register:
    return Register(LocalClient(name, f"http://{name}", frozenset({"temperature"})))


# -- IV ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("constraint", "attributes", "true"),
    [
        (attribute("age") > 25,          {"age": 26},      True),
        (attribute("age") > 25,          {"age": 25},      False),
        (attribute("age") > 25,          {"name": "Eve"},  False),
        (attribute("age") > 25,          {"age": "old"},   False),
        (attribute("age").exists,        {"age": 0},       True),
        (attribute("age").exists,        {},               False),
        (attribute("a").one_of(1, 2),    {"a": 2},         True),
        (attribute("a") != 1,            {"a": 2},         True),
        (attribute("a") != 1,            {},               False),
        (~(attribute("a") == 1),         {},               True),
        ((attribute("a") >= 1) & (attribute("b") <= 2), {"a": 1, "b": 2}, True),
        ((attribute("a") >= 1) | (attribute("b") <= 2), {"a": 0, "b": 3}, False),
    ],
)  # fmt: skip
def test_a_constraint_is_name_operator_constants_and_false_without_its_attribute(
    constraint: object, attributes: dict, true: bool
) -> None:
    assert Subscription("σ", constraint).accepts(Notification(attributes)) is true  # type: ignore[arg-type]


def test_operators_and_the_number_of_constants_are_checked() -> None:
    with pytest.raises(ScenarioError, match="did you mean '>'"):
        Constraint("age", "=>", frozenset({1}))
    with pytest.raises(ScenarioError, match="takes 1"):
        Constraint("age", ">", frozenset())


def test_a_cycle_is_refused_by_name_and_accepted_on_request() -> None:
    links = [("B1", "B2"), ("B2", "B3"), ("B3", "B1")]
    with pytest.raises(ScenarioError, match="B1 - B2 - B3 - B1"):
        Overlay(links)
    assert len(Overlay(links, cyclic=True).links) == 3


# -- V -----------------------------------------------------------------------------------------------------


def test_one_broker() -> None:
    net = Network(alone="B1")
    net("κ2", "B1", provider("κ2"))
    assert net("κ1", "B1", Sub((sigma_1,))) == [Envelope("B1", "κ2", Sub((sigma_1,)))]
    assert net.table("B1") == {("σ1", "κ1")}
    assert net("κ2", "B1", Pub(nu_1)) == [Envelope("B1", "κ1", Notify(nu_1))]


def test_a_provider_is_handed_only_what_it_could_satisfy_also_when_it_comes_later() -> None:
    net = Network(alone="B1")
    humid = Subscription("humid", attribute("humidity") > 80)
    net("κ1", "B1", Sub((sigma_1, humid)))
    assert net("κ2", "B1", provider("κ2")) == [Envelope("B1", "κ2", Sub((sigma_1,)))]
    assert net("κ1", "B1", Unsub(("σ1", "humid"))) == [Envelope("B1", "κ2", Unsub(("σ1",)))]


# -- VI ----------------------------------------------------------------------------------------------------


def test_two_brokers_with_the_second_subscription_and_the_unsubscription() -> None:
    net = Network(("B1", "B2"))
    net("κ2", "B2", provider("κ2"))
    assert net("κ1", "B1", Sub((sigma_1,))) == [
        Envelope("B1", "B2", TableUpdate("B1", (sigma_1,), ())),  # equation 2
        Envelope("B2", "κ2", Sub((sigma_1,))),
    ]
    assert net.table("B1") == {("σ1", "κ1")} and net.table("B2") == {("σ1", "B1")}
    assert net("κ2", "B2", Pub(nu_1)) == [
        Envelope("B2", "B1", Forward(nu_1)),  # equation 3
        Envelope("B1", "κ1", Notify(nu_1)),
    ]
    assert net("κ3", "B2", Sub((sigma_2,))) == [
        Envelope("B2", "κ2", Sub((sigma_2,))),
        Envelope("B2", "B1", TableUpdate("B2", (sigma_2,), ())),
    ]
    assert net.table("B2") == {("σ1", "B1"), ("σ2", "κ3")}
    assert net.brokers["B2"].table.destinations(nu_1) == {"B1", "κ3"}  # equation 4, read as it is meant
    assert net("κ2", "B2", Pub(nu_1)) == [
        Envelope("B2", "B1", Forward(nu_1)),
        Envelope("B2", "κ3", Notify(nu_1)),
        Envelope("B1", "κ1", Notify(nu_1)),
    ]
    assert net("κ1", "B1", Unsub(("σ1",))) == [
        Envelope("B1", "B2", TableUpdate("B1", (), (sigma_1,))),  # equation 5
        Envelope("B2", "κ2", Unsub(("σ1",))),
    ]
    assert net.table("B1") == {("σ2", "B2")} and net.table("B2") == {("σ2", "κ3")}


# -- VII ---------------------------------------------------------------------------------------------------


def test_n_brokers_have_the_entries_of_figure_5() -> None:
    """κ1 and κ2 at B1, σ1 of κ2, σ3 from beyond B2: ν1 goes to κ2 by (σ1, κ2) and to B2 by (σ3, B2)."""
    net = Network(("B1", "B2"), ("B2", "B3"), ("B2", "B4"))
    net("κ2", "B1", Sub((sigma_1,)))
    net("κ3", "B3", Sub((sigma_3,)))
    assert net.table("B1") == {("σ1", "κ2"), ("σ3", "B2")}
    assert net.table("B2") == {("σ1", "B1"), ("σ3", "B3")}
    assert net.table("B3") == {("σ1", "B2"), ("σ3", "κ3")}
    assert net.table("B4") == {("σ1", "B2"), ("σ3", "B2")}
    nu = Notification({"temperature": 30}, "κ1", 1)
    assert net("κ1", "B1", Pub(nu)) == [
        Envelope("B1", "B2", Forward(nu)),
        Envelope("B1", "κ2", Notify(nu)),
        Envelope("B2", "B3", Forward(nu)),
        Envelope("B3", "κ3", Notify(nu)),
    ]


def test_sets_of_subscriptions_and_unsubscriptions_go_in_one_message_to_each_neighbour_but_the_source() -> None:
    net = Network(("B1", "B2"), ("B2", "B3"))
    both = (sigma_1, sigma_2)
    assert net("κ1", "B2", Sub(both)) == [
        Envelope("B2", "B1", TableUpdate("B2", both, ())),
        Envelope("B2", "B3", TableUpdate("B2", both, ())),
    ]
    passed = net("κ4", "B1", Sub((sigma_3,)))
    assert [(e.source, e.destination) for e in passed] == [("B1", "B2"), ("B2", "B3")]
    assert dict(net.brokers["B2"].table.of("κ1")) == {"σ1": sigma_1, "σ2": sigma_2}  # equation 10
    assert net("κ1", "B2", Unsub(("σ1", "σ2"))) == [
        Envelope("B2", "B1", TableUpdate("B2", (), both)),
        Envelope("B2", "B3", TableUpdate("B2", (), both)),
    ]
    assert net.table("B3") == {("σ3", "B2")}


def test_entries_are_only_for_local_clients_and_neighbours() -> None:
    net = Network(("B1", "B2"), ("B2", "B3"), ("B3", "B4"))
    for broker, client, sigma in (("B1", "κ1", sigma_1), ("B4", "κ4", sigma_2), ("B3", "κ3", sigma_3)):
        net(client, broker, Sub((sigma,)))
    for broker in net.brokers.values():
        assert {d for _, d in broker.table} <= set(broker.clients) | set(broker.neighbours)


# -- VIII --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [Pub(nu_1), Sub((sigma_1,)), Unsub(("σ9",))])
def test_joining_is_implicit_with_the_first_pub_sub_or_unsub(first: object) -> None:
    net = Network(alone="B1")
    assert net.brokers["B1"].clients == {}
    net("κ1", "B1", first)
    assert set(net.brokers["B1"].clients) == {"κ1"}


def test_leaving_cancels_all_subscriptions_everywhere() -> None:
    net = Network(("B1", "B2"), ("B2", "B3"))
    net("κ1", "B1", Sub((sigma_1, sigma_2)))
    assert net("κ1", "B1", Leave()) == [
        Envelope("B1", "B2", TableUpdate("B1", (), (sigma_1, sigma_2))),
        Envelope("B2", "B3", TableUpdate("B2", (), (sigma_1, sigma_2))),
    ]
    assert all(len(broker.table) == 0 for broker in net.brokers.values())
    assert net.brokers["B1"].clients == {}


def test_a_mobile_broker_joins_the_overlay_by_an_exchange_of_tables() -> None:
    net = Network(("B1", "B2"))
    net.brokers["phone"] = Broker("phone")
    net("gps", "phone", provider("gps"))
    net("guide", "phone", Sub((sigma_2,)))
    net("κ2", "B2", provider("κ2"))
    net("κ1", "B2", Sub((sigma_1,)))
    assert net.link("B1", "phone") == [
        Envelope("B1", "phone", TableUpdate("B1", (sigma_1,), (), sync=True)),
        Envelope("phone", "B1", TableUpdate("phone", (sigma_2,), (), sync=True)),
        Envelope("phone", "gps", Sub((sigma_1,))),  # the provider on the device is handed what the network wants
        Envelope("phone", "B1", Synced()),
        Envelope("B1", "B2", TableUpdate("B1", (sigma_2,), ())),
        Envelope("B1", "phone", Synced()),
        Envelope("B2", "κ2", Sub((sigma_2,))),  # and that in the network what the device wants
    ]
    tables = {broker: net.table(broker) for broker in net.brokers}
    assert tables == {
        "B1": {("σ1", "B2"), ("σ2", "phone")},
        "B2": {("σ1", "κ1"), ("σ2", "B1")},
        "phone": {("σ1", "B1"), ("σ2", "guide")},
    }


def test_credentials_are_asked_for_where_there_are_accounts() -> None:
    net = Network(alone="B1", accounts={"κ1": "secret"})
    assert isinstance(net("κ1", "B1", Sub((sigma_1,)))[0].message, Refused)
    assert net.table("B1") == set() and net.brokers["B1"].clients == {}
    net("κ1", "B1", Register(LocalClient("κ1", credentials="secret")))
    assert net("κ1", "B1", Sub((sigma_1,))) == []
    assert net.table("B1") == {("σ1", "κ1")}


def test_the_look_up_service_names_endpoints_and_the_cache_answers_with_values() -> None:
    net = Network(alone="B1")
    net("κ2", "B1", provider("κ2"))
    assert net("κ1", "B1", Query(sigma_1)) == [Envelope("B1", "κ1", Answer("σ1", (("κ2", "http://κ2"),)))]
    assert net("κ1", "B1", Query(sigma_1, ask="value")) == [Envelope("B1", "κ1", Answer("σ1", ()))]
    net("κ2", "B1", Pub(nu_1))
    assert net("κ1", "B1", Query(sigma_1, ask="value")) == [Envelope("B1", "κ1", Answer("σ1", (nu_1,)))]


# -- IX: beyond the paper ------------------------------------------------------------------------------------


def test_covering_tells_less_and_delivers_the_same() -> None:
    plain, covered = Network(("B1", "B2"), ("B2", "B3")), Network(("B1", "B2"), ("B2", "B3"), routing="covering")
    for net in (plain, covered):
        net("κ1", "B1", Sub((sigma_3,)))
        net("κ4", "B1", Sub((sigma_1,)))
    assert covered.table("B3") == {("σ3", "B2")} < plain.table("B3")
    told = [[e for e in net("κ2", "B3", Pub(nu_1)) if isinstance(e.message, Notify)] for net in (plain, covered)]
    assert told[0] == told[1] and len(told[0]) == 2
    covered("κ1", "B1", Unsub(("σ3",)))
    assert covered.table("B3") == {("σ1", "B2")}


def test_merging_puts_one_subscription_in_the_place_of_several() -> None:
    net = Network(("B1", "B2"), ("B2", "B3"), routing="merging")
    for city in ("Turin", "Bristol"):
        net(f"κ {city}", "B1", Sub((Subscription(city, attribute("city") == city),)))
    assert len(net.table("B1")) == 2 and len(net.table("B2")) == len(net.table("B3")) == 1
    nu = Notification({"city": "Turin"}, "κ9", 1)
    assert [e.destination for e in net("κ9", "B3", Pub(nu)) if isinstance(e.message, Notify)] == ["κ Turin"]
    net("κ Turin", "B1", Unsub(("Turin",)))
    assert net.table("B3") == {("Bristol", "B2")}


def test_in_a_cycle_each_notification_arrives_once_and_an_unsubscription_everywhere() -> None:
    net = Network(("B1", "B2"), ("B2", "B3"), ("B3", "B4"), ("B4", "B1"), cyclic=True)
    net("κ1", "B1", Sub((Subscription("σ1", attribute("temperature") > 25, version=(1, 0)),)))
    net("κ3", "B3", Sub((Subscription("σ3", attribute("temperature") > 10, version=(1, 0)),)))
    assert all(len({name for name, _ in net.table(b)}) == len(net.table(b)) for b in net.brokers)
    for number in (1, 2):
        nu = Notification({"temperature": 30}, "κ2", number)
        told = [e.destination for e in net("κ2", "B2", Pub(nu)) if isinstance(e.message, Notify)]
        assert sorted(map(str, told)) == ["κ1", "κ3"]
    assert sum(b.suppressed for b in net.brokers.values()) > 0
    net("κ1", "B1", Unsub(("σ1",)))
    assert all(name != "σ1" for b in net.brokers for name, _ in net.table(b))


def test_covering_in_a_cycle_is_refused() -> None:
    with pytest.raises(ScenarioError, match="cyclic"):
        Rules(routing="covering", cyclic=True)
