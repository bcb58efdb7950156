"""Scopes live: the broker under a changing graph tells what a replay tells; reactions stay in their session."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.brokering.scope_worlds import (
    COMPONENTS,
    contents,
    filtered_edges,
    graphs,
    plain_edges,
    rich_edges,
    standing,
    told,
)
from tests.brokering.scope_worlds import events as transient
from workbench.brokering.scopes import live as module
from workbench.brokering.scopes.graph import Scope, ScopeGraph, graph
from workbench.brokering.scopes.interfaces import interface, kinds, passes
from workbench.brokering.scopes.live import EventService, ScopedBroker
from workbench.brokering.scopes.mappings import EventMapping
from workbench.brokering.scopes.market import market
from workbench.brokering.scopes.policies import TOP_DOWN, TRAVERSE, ByKey, Chosen, Delayed, OneOf, Until
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


# -- transmission policies ------------------------------------------------------------------------------------------

CHOICES = (Scope().delivery, OneOf(1), ByKey("n"), Chosen("last", lambda members, said: members[-1:]))
WAITS = (Scope().publishing, Delayed(2), Until(((3, 5), (8, 20), (24, 40))))


@st.composite
def governed(draw: st.DrawFn, made: ScopeGraph) -> ScopeGraph:
    """A graph with policies of all kinds."""
    for name in sorted(made.scopes):
        if draw(st.booleans()):
            made = made.with_scope(
                name,
                traverse=draw(st.sampled_from(TRAVERSE)),
                delivery=draw(st.sampled_from(CHOICES)),
                publishing=draw(st.sampled_from(WAITS)),
            )
    return made


Said = tuple[int, str, str, dict[str, Any] | None]
"""an instant, a population, an id, and the cells; None where it is removed"""


@st.composite
def histories(draw: st.DrawFn, events: bool) -> list[Said]:
    """What is written about two publications and about consumers, one thing of each at an instant."""
    found: list[Said] = [(1, "consumers", name, {"wish": ("k", "l")}) for name in COMPONENTS]
    there = {"consumers": dict.fromkeys(COMPONENTS, True), "events": dict.fromkeys(("x", "y"), False)}
    for t in sorted(draw(st.lists(st.integers(2, 12), min_size=2, max_size=8, unique=True))):
        population = draw(st.sampled_from(("events", "events", "consumers")))
        id = draw(st.sampled_from(sorted(there[population])))
        if population == "consumers":
            cells = {"wish": draw(st.sampled_from((("k",), ("l",), ("k", "l"))))}
        else:
            cells = {"component": {"x": "a", "y": "b"}[id], **draw(contents)}
        if events and population == "events":
            found.append((t, population, f"{id}{t}", cells))
        elif there[population][id] and t > 1 and draw(st.booleans()):
            there[population][id] = False
            found.append((t, population, id, None))
        else:
            there[population][id] = True
            found.append((t, population, id, cells))
    return found


def replayed(written: list[Said], over_time: dict[int, ScopeGraph], events: bool) -> Any:
    """The same history as tables."""
    made = (transient if events else standing)([], COMPONENTS)
    tables = {
        name: pd.DataFrame(
            [{"id": id, "t": t, "op": None if cells else "remove", **(cells or {})}
             for t, population, id, cells in written if population == name],
            columns=["id", "t", "op", *columns],
        )
        for name, columns in (("events", ("component", "kind", "n")), ("consumers", ("wish",)))
    }  # fmt: skip
    return told(scoped(replace(made, tables=tables), over_time), "local", until=30)


def lived(written: list[Said], over_time: dict[int, ScopeGraph], events: bool) -> ScopedBroker:
    """The same history, as it comes."""
    made = (transient if events else standing)([], COMPONENTS)
    live = ScopedBroker(made, next(iter(over_time.values())))
    there: set[str] = set()
    coming = [*((t, 0, None, "", made) for t, made in list(over_time.items())[1:]),
              *((t, 1, population, id, cells) for t, population, id, cells in written)]  # fmt: skip
    for t, _, population, id, what in sorted(coming, key=lambda one: one[:2]):
        if population is None:
            live.change(what, t=t)
        elif what is None:
            live.remove(population, id, t=t)
            there.discard(id)
        else:
            if id in there:
                live.update(population, id, t=t, **{name: v for name, v in what.items() if name != "component"})
            else:
                live.add(population, id, t=t, **what)
            there |= set() if events and population == "events" else {id}
    live.broker.advance(30)
    return live


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_policies_tell_live_what_they_tell_in_a_replay(data: st.DataObject) -> None:
    events = data.draw(st.booleans())
    written = data.draw(histories(events))
    if not any(population == "events" for _, population, _, _ in written):
        return
    edges = data.draw(st.sampled_from([plain_edges, filtered_edges, rich_edges]))
    count = data.draw(st.integers(1, 3))
    made = st.one_of(graphs(edges), graphs(edges).flatmap(governed), graphs(edges).flatmap(governed))
    over_time = {1 + 4 * k: data.draw(made) for k in range(count)}
    judge, live = replayed(written, over_time, events), lived(written, over_time, events)
    order = ["t", "kind", "publication", "subscription"]
    both = (judge.notifications, live.broker.notifications)
    expected, got = (sorted(map(tuple, n[order].to_numpy().tolist())) for n in both)
    assert got == expected
    alive = judge.timelines[judge.timelines["pi"].isna()]
    if not events:
        assert live.broker.matches == set(zip(alive["publication"], alive["subscription"], strict=True))


def test_what_waits_is_told_when_it_is_released() -> None:
    """Inside at once, outside ten ticks later and as it was said then; who has gone meanwhile hears nothing."""
    made = graph("X->S", "Y->S", "S->R", "Z->R", "V->R").with_scope("S", publishing=Delayed(10))
    live = ScopedBroker(standing([], ""), made)
    for name in "YZV":
        live.add("consumers", name, t=1, wish=("k",))
    said = [
        live.add("events", "q1", t=2, component="X", kind="k", n=8),
        live.update("events", "q1", t=5, n=9),
        live.remove("consumers", "V", t=6),
        live.remove("events", "q1", t=7),
        live.broker.advance(20),
    ]
    told = [(str(message), message.contents[0].cells["n"]) for messages in said for message in messages]
    assert told == [
        ("t=2 Y: match q1", 8), ("t=7 Y: unmatch q1", 9), ("t=12 Z: match q1", 8), ("t=17 Z: unmatch q1", 9),
    ]  # fmt: skip


def test_who_is_chosen_live_stays_chosen_and_another_one_takes_over() -> None:
    made = graph("P->A", "X->A", "Y->A").with_scope("A", traverse=TOP_DOWN, delivery=OneOf(seed=1))
    live = ScopedBroker(standing([], ""), made)
    for name in "XY":
        live.add("consumers", name, wish=("k",))
    (first,) = live.add("events", "q1", component="P", kind="k", n=1)
    chosen, other = first.subscription, {"X": "Y", "Y": "X"}[first.subscription]
    assert live.update("events", "q1", n=2) == [] and live.broker.matches == {("q1", chosen)}
    assert [str(m) for m in live.update("consumers", chosen, wish=("l",))] == [
        f"t=5 {chosen}: unmatch q1", f"t=5 {other}: match q1",
    ]  # fmt: skip
    assert live.broker.notifications["subscription"].tolist() == [chosen, chosen, other]
    assert live.update("consumers", chosen, wish=("k",)) == []
    with pytest.raises(UpdateError, match="exists already"):
        live.add("consumers", other, wish=("k",))
    assert live.remove("consumers", other)[0].subscription == chosen


def test_what_a_refused_operation_told_on_its_way_is_told_again() -> None:
    made = graph("X->S", "S->R", "Z->R", "V->R").with_scope("S", publishing=Delayed(10), delivery=OneOf())
    live = ScopedBroker(standing([], ""), made)
    for name in "ZV":
        live.add("consumers", name, t=1, wish=("k",))
    live.add("events", "q1", t=2, component="X", kind="k", n=8)
    with pytest.raises(UpdateError, match="no region reads"):
        live.add("events", "q2", t=30, component="X", sort="k")
    assert live.broker.now == 1 and not len(live.broker.notifications)
    assert [str(m) for m in live.change(made.leave("Z", "R"), t=30)] == ["t=12 V: match q1", "t=12 Z: match q1"]
    assert [str(m) for m in live.broker.advance(50)] == ["t=40 Z: unmatch q1"]


def test_policies_may_come_and_go_with_the_graph() -> None:
    plain = graph("cafe->S", "ann->S", "bob->S")
    live = ScopedBroker(scenario(), plain)
    for name in ("ann", "bob"):
        live.add("mobiles", name, position=(0, 0))
    live.add("places", "cafe", position=(0, 0))
    one = live.change(plain.with_scope("S", delivery=OneOf()))
    assert len(one) == 1 and one[0].kind == "unmatch"
    (back,) = live.change(plain)
    assert (back.kind, back.subscription) == ("match", one[0].subscription)


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
        (lambda: live.change(made.with_scope("S", delivery=OneOf()), t=1), "time goes back"),
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


def pair_of(said: list[Any]) -> Any:
    """Two ones make a two."""
    return {"kind": "two", "n": sum(one["n"] for one in said)} if len(said) == 2 else None


def composing(made: ScopeGraph) -> ScopedBroker:
    live = ScopedBroker(transient([], ""), made)
    for name in "YZ":
        live.add("consumers", name, t=1, wish=("two",))
    live.compose("consumers", "Sum", "events", pair_of, t=1, wish=("one",))
    return live


def test_the_live_broker_composes_within_one_session() -> None:
    """What A says and what B says is never put together; what is made of A's goes where A's came from."""
    made = graph("A->S", "Sum->S", "Y->S", "B->T", "Sum->T", "Z->T", scopes={n: Scope(session=True) for n in "ST"})
    live = composing(made)
    for t, name in enumerate("ABA", 10):
        live.add("events", f"e{t}", t=t, component=name, kind="one", n=t)
    assert [str(m) for m in live.advance(20)] == ["t=12 Sum: match e12@{S}", "t=13 Y: match Sum.1@{S}"]
    told = [str(m) for name in "AB" for m in live.add("events", f"f{name}", component=name, kind="one", n=1)]
    assert told == ["t=21 Sum: match fA@{S}", "t=22 Sum: match fB@{T}", "t=23 Z: match Sum.2@{T}"]


def test_the_live_broker_composes_what_the_event_service_composes() -> None:
    made = graph("A->S", "B->S", "Sum->S", "Y->R", "S->R", "Z->S").with_scope("S", publishing=Delayed(5))
    live, service = composing(made), EventService(made)
    service.compose("Sum", kinds("one"), pair_of)
    for name in "YZ":
        service.subscribe(name, kinds("two"))
    expected = [(d.consumer, dict(d.content)["n"]) for n in range(4) for d in service.publish("AB"[n % 2], one(n))]
    for n in range(4):
        live.add("events", f"e{n}", t=10 + n, component="AB"[n % 2], **one(n))
    live.advance(50)
    told = live.broker.notifications
    got = told[told["subscription"] != "Sum"][["t", "subscription"]].to_numpy().tolist()
    assert sorted(got) == [[12, "Z"], [14, "Z"], [17, "Y"], [19, "Y"]]
    assert sorted(name for name, _ in expected if name != "Sum") == sorted(name for _, name in got)


def one(n: int) -> dict[str, Any]:
    return {"kind": "one", "n": n}


def test_a_refused_operation_takes_back_what_was_composed_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 50)
    live = composing(graph("A->S", "Sum->S", "Y->S"))
    for t in (10, 11):
        live.add("events", f"e{t}", t=t, component="A", kind="one", n=t)
    with pytest.raises(UpdateError, match="no region reads"):
        live.add("events", "e30", t=30, component="A", sort="one")
    assert [str(m) for m in live.advance(30)] == ["t=11 Sum: match e11", "t=12 Y: match Sum.1"]
    echo = ScopedBroker(transient([], ""), graph("A->S", "Echo->S", "Echo2->S"))
    for name in ("Echo", "Echo2"):
        echo.compose("consumers", name, "events", lambda said: said[-1], wish=("one",))
    with pytest.raises(UpdateError, match="more than 50 messages"):
        echo.add("events", "e", component="A", kind="one", n=1)
    assert not len(echo.broker.notifications)
