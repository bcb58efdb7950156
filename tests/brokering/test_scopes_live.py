"""Scopes live: the broker under a changing graph tells what a replay tells; reactions stay in their session."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.brokering.scope_worlds import COMPONENTS, graphs
from workbench.brokering.scopes.graph import Edge, Scope, graph
from workbench.brokering.scopes.interfaces import interface, kinds, passes
from workbench.brokering.scopes.live import EventService, ScopedBroker
from workbench.brokering.scopes.mappings import EventMapping
from workbench.brokering.scopes.market import market
from workbench.brokering.scopes.scoped import scoped
from workbench.errors import UpdateError
from workbench.replay import replay
from workbench.scenarios.proximity import scenario

FIXES = pd.DataFrame({"mobile": list(COMPONENTS), "t": 1, "x": 0.0, "y": 0.0})
PLACES = pd.DataFrame({"place": list(COMPONENTS), "t": 1, "x": 0.0, "y": 0.0})


@settings(max_examples=25)
@given(st.lists(graphs(), min_size=1, max_size=3))
def test_live_tells_what_a_replay_of_the_same_graphs_tells(made: list[Any]) -> None:
    over_time = {1: made[0], **{10 * k: g for k, g in enumerate(made[1:], 1)}}
    judge = replay(scoped(scenario(), over_time), FIXES, PLACES, engine="reference", until=50)
    live = ScopedBroker(scenario(), made[0])
    for name in COMPONENTS:
        live.broker.add("places", name, t=2, position=(0, 0))
        live.broker.add("mobiles", name, t=2, position=(0, 0))
    live.broker.advance(2)
    for t, following in list(over_time.items())[1:]:
        live.change(following, t=t)
        live.broker.advance(t)
    expected = judge.notifications.assign(t=judge.notifications["t"].replace(1, 2))
    order = ["t", "kind", "publication", "subscription"]
    got = live.broker.notifications
    assert sorted(map(tuple, got[order].to_numpy().tolist())) == sorted(map(tuple, expected[order].to_numpy().tolist()))


def test_what_the_running_scenario_does_not_know_is_refused_and_changes_nothing() -> None:
    made = graph("cafe->S", "ann->S")
    live = ScopedBroker(scenario(), made)
    double = EventMapping("double", lambda said: said)
    for edge in (Edge(mapping_out=double), Edge(output=interface(passes(position=(0.0, 0.0))))):
        with pytest.raises(UpdateError, match="the running scenario does not know"):
            live.change(made.leave("cafe", "S").join("cafe", "S", edge))
    assert live.graph is made and live.messages["memberships"] == 0


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
