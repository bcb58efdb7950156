"""Scopes live: the broker under a changing graph tells what a replay tells; reactions stay in their session."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.brokering.scope_worlds import COMPONENTS, graphs, plain_edges, rich_edges, standing, told
from workbench.brokering.scopes.graph import Scope, graph
from workbench.brokering.scopes.interfaces import interface, kinds, passes
from workbench.brokering.scopes.live import EventService, ScopedBroker
from workbench.brokering.scopes.mappings import EventMapping
from workbench.brokering.scopes.market import market
from workbench.brokering.scopes.policies import Delayed, OneOf
from workbench.brokering.scopes.scoped import scoped
from workbench.errors import UpdateError
from workbench.scenarios.proximity import scenario


@settings(max_examples=25)
@given(st.lists(graphs(st.one_of(plain_edges, rich_edges)), min_size=1, max_size=3))
def test_live_tells_what_a_replay_of_the_same_graphs_tells(made: list[Any]) -> None:
    rows = [{"id": f"e{name}", "t": 2, "component": name, "kind": "k", "n": k} for k, name in enumerate("ab", 2)]
    over_time = {1: made[0], **{10 * k: g for k, g in enumerate(made[1:], 1)}}
    judge = told(scoped(standing(rows, COMPONENTS), over_time), "reference", until=50)
    live = ScopedBroker(standing(rows, COMPONENTS), made[0])
    for name in COMPONENTS:
        live.add("consumers", name, t=2, wish=("k", "l"))
    for row in rows:
        live.add("events", row["id"], t=2, component=row["component"], kind=row["kind"], n=row["n"])
    for t, following in list(over_time.items())[1:]:
        live.change(following, t=t)
    live.broker.advance(50)
    order = ["t", "kind", "publication", "subscription"]
    both = (judge.notifications, live.broker.notifications)
    expected, got = (sorted(map(tuple, told[order].to_numpy().tolist())) for told in both)
    assert got == expected


def test_a_row_and_its_faces_are_one_operation() -> None:
    euro = EventMapping("euro", lambda said: {**said, "n": said["n"] // 2})
    made = graph("X->S", "Y->S", "S->R", "Z->R").with_edge("S", "R", mapping_out=euro, output=interface(passes(n=4)))
    live = ScopedBroker(standing([], "YZ"), made)
    for name in "YZ":
        live.add("consumers", name, wish=("k", "l"))
    said = [
        live.add("events", "q1", component="X", kind="k", n=8),
        live.update("events", "q1", n=6),
        live.update("events", "q1", n=9),
        live.change(made.leave("Y", "S")),
        live.remove("events", "q1"),
    ]
    assert [[str(message) for message in told] for told in said] == [
        ["t=3 Y: match q1", "t=3 Z: match q1@euro"],
        ["t=4 Z: unmatch q1@euro"],
        ["t=5 Z: match q1@euro"],
        ["t=6 Y: unmatch q1"],
        ["t=7 Z: unmatch q1@euro"],
    ]


def test_a_refused_operation_changes_nothing() -> None:
    made = graph("cafe->S", "ann->S")
    live = ScopedBroker(scenario(), made)
    live.add("places", "cafe", position=(0, 0))
    for refused, message in (
        (lambda: live.change(made.with_scope("S", delivery=OneOf())), "'S' has a transmission policy"),
        (lambda: live.change(made.with_scope("S", publishing=Delayed(3))), "'S' has a transmission policy"),
        (lambda: live.add("places", "cafe", position=(0, 0)), "exists already"),
        (lambda: live.add("mobiles", "ann", position="here"), "position"),
        (lambda: live.update("places", "pub", position=(1, 1)), "there is no places/pub"),
    ):
        with pytest.raises(UpdateError, match=message):
            refused()
    assert live.graph is made and live.messages["memberships"] == 0
    assert [str(m) for m in live.add("mobiles", "ann", position=(0, 0))] == ["t=2 ann: match cafe"]


def test_an_order_and_its_acceptance_stay_in_the_customers_session() -> None:
    service = EventService(market())
    service.subscribe("DB", kinds("Order"), lambda said, publish: publish({**said, "kind": "Accept"}))
    for name in ("PC1", "Agent2", "PC3", "PC4"):
        service.subscribe(name, kinds("Accept"))
    got = service.publish("PC1", {"kind": "Order", "share": "IBM", "market": "M1"})
    assert [(d.consumer, d.session) for d in got] == [("DB", {"C1"}), ("PC1", {"C1"})]


def test_reactions_without_end_are_stopped() -> None:
    made = graph("A->S", "B->S")
    service = EventService(made)
    for name in "AB":
        service.subscribe(name, kinds("ping"), lambda said, publish: publish(said))
    with pytest.raises(UpdateError, match="more than 20 deliveries"):
        service.publish("A", {"kind": "ping"}, limit=20)


def test_composition_is_within_one_session() -> None:
    made = graph("A->S", "Sum->S", "Y->S", "B->T", "Sum->T", "Z->T", scopes={n: Scope(session=True) for n in "ST"})
    service = EventService(made)
    service.compose("Sum", kinds("one"), lambda said: {"kind": "two", "of": len(said)} if len(said) == 2 else None)
    for name in "YZ":
        service.subscribe(name, kinds("two"))
    sent = [d.consumer for name in "ABA" for d in service.publish(name, {"kind": "one"})]
    assert sent == ["Sum", "Sum", "Sum", "Y"]


def test_a_scope_publishes_what_several_of_its_events_mean_for_it_as_a_whole() -> None:
    """The bundle is a component (2.2): it consumes what its members say, and what it makes of it goes out of it."""
    made = graph("ME1->TF", "ME2->TF", "TF->M", "C->M").with_interface("TF", output=kinds("Turnover"))
    made = made.with_scope("TF", delivery=OneOf())
    service = EventService(made)
    total = lambda said: {"kind": "Turnover", "n": sum(s["n"] for s in said)} if len(said) == 3 else None  # noqa: E731
    service.compose("TF", kinds("Trade"), total)
    service.subscribe("C", kinds("Trade", "Turnover"))
    got = [d for n, name in enumerate(("ME1", "ME2", "ME1")) for d in service.publish(name, {"kind": "Trade", "n": n})]
    assert [(d.consumer, dict(d.content)["kind"]) for d in got] == [("TF", "Trade")] * 3 + [("C", "Turnover")]
    assert dict(got[-1].content)["n"] == 3
