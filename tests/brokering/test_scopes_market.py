"""The stock application of Figures 1, 3 and 7 with Table 1, end to end; why, policies over timelines, and drawing."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.brokering.scope_worlds import COMPONENTS, contents, events, filtered_edges, graphs, notification, standing
from tests.brokering.scope_worlds import told as replayed
from workbench.brokering.scopes.definition import Notification, deliveries
from workbench.brokering.scopes.graph import Scope, ScopeGraph, graph
from workbench.brokering.scopes.interfaces import OPEN, kinds
from workbench.brokering.scopes.live import ScopedBroker
from workbench.brokering.scopes.market import (
    DAY,
    EVENT,
    TABLE_1,
    WISHES,
    market,
    printed,
    structure,
    trading,
    wanted,
)
from workbench.brokering.scopes.policies import BOTTOM_UP, TOP_DOWN, ByKey, Delayed, OneOf, Until
from workbench.brokering.scopes.scoped import face_of, scoped
from workbench.brokering.scopes.transmission import transmitted
from workbench.brokering.scopes.why import why
from workbench.errors import ScenarioError, UpdateError
from workbench.model.clock import Clock
from workbench.tables import timelines_frame

MARKET = market()


def event(id: str, **changes: Any) -> Notification:
    row = {**dict(zip(EVENT, next(e for e in DAY if e[0] == id), strict=True)), **changes}
    content = {name: row[name] for name in ("kind", "share", "price", "currency", "market")}
    return Notification(id, row["component"], content, frozenset(row["context"].split()), row["t"])


def received(made: ScopeGraph, id: str) -> set[str]:
    return {d.consumer for d in deliveries(made, event(id), wanted())}


# -- the market --------------------------------------------------------------------------------------------------------


def test_sap_quotes_reach_c3_and_neither_c4_nor_c1() -> None:
    """C4 is not visible from the trading floor, and C1 subscribed to a different share."""
    assert received(MARKET, "q1") & {"PC1", "PC3", "PC4"} == {"PC3"}
    assert not structure(figure=3).visible("TF", "C4")
    assert deliveries(structure(figure=3), event("q1"), {"PC4": OPEN}) == frozenset()


def test_c3_can_tell_the_quotes_of_its_two_markets_apart() -> None:
    sessions = {id: {d.session for d in deliveries(MARKET, event(id), {"PC3": OPEN})} for id in ("q1", "q2")}
    assert sessions == {"q1": {frozenset({"Prof", "C3"})}, "q2": {frozenset({"Private2", "C3"})}}


def test_the_order_book_stays_inside_the_trading_floor() -> None:
    everybody = dict.fromkeys(MARKET.components, OPEN)
    got = {d.consumer for d in deliveries(MARKET, event("b1"), everybody)}
    assert got == {"ME", "MM"}  # its producer, and the market maker that reads order books


def test_professionals_hear_first_and_private_customers_after_fifteen_minutes() -> None:
    got = {d.consumer: d.t - 80 for d in deliveries(MARKET, event("q3"), wanted())}
    assert got["Agent2"] == 0 and got["PC1"] == 900


def test_an_order_is_seen_only_by_the_trading_floor_and_its_acceptance_only_by_its_customer() -> None:
    everybody = dict.fromkeys(MARKET.components, OPEN)
    order = {d.consumer for d in deliveries(MARKET, event("o1"), everybody)}
    assert order == {"PC1", "ME", "DB"}  # its producer, and what the trading floor lets in
    (session,) = {d.session for d in deliveries(MARKET, event("o1"), {"DB": OPEN})}
    assert session == {"C1"}
    accepted = {d.consumer for d in deliveries(MARKET, event("a1", context="C1"), everybody)}
    assert accepted == {"DB", "PC1"}


def test_an_acceptance_without_its_context_would_reach_every_customer_of_the_floor() -> None:
    everybody = dict.fromkeys(("PC1", "Agent2", "PC3", "PC4"), OPEN)
    got = {d.consumer for d in deliveries(MARKET, event("a1", context=""), everybody)}
    assert got == {"PC1", "Agent2", "PC3"}


def test_only_the_floors_own_may_join_it() -> None:
    with pytest.raises(UpdateError, match="'PC4' may not join 'TF'"):
        MARKET.join("PC4", "TF")


def test_table_1_as_printed_is_inconsistent_with_the_text() -> None:
    customers = {"PC1", "Agent2", "PC3", "PC4"}
    assert not received(printed(figure=3), "q1") & customers  # Ci's input lacks Quote
    at_once = {d.consumer: d.t for d in deliveries(printed(figure=7), event("q3"), wanted())}
    assert at_once["PC1"] == 80  # a private customer, without the delay
    assert received(printed(), "a1") == set()  # DB, which issues acceptances, may not publish them
    assert received(printed(), "b1") == set()  # nor ME its order book
    published = {kind for _, _, _, _, kind, *_ in DAY}
    listed = {kind for row in TABLE_1.values() for side in row for kind in side}
    assert listed - published == {"Trade"}


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_the_day_on_every_engine(engine: str) -> None:
    the_day_is_as_defined(engine)


def test_the_day_on_spark(spark: Any) -> None:
    the_day_is_as_defined("spark")


def the_day_is_as_defined(engine: str) -> None:
    """Sessions, mappings and the delay of fifteen minutes, as `replay` tells them."""
    expected = {
        (row[0], d.consumer, dict(d.content)["price"], d.session, d.t)
        for row in DAY
        for d in deliveries(MARKET, event(row[0]), wanted())
    }
    limited = scoped(trading(), MARKET)
    told = replayed(limited, engine).collect().timelines
    prices = limited.tables["events"].set_index("id")["price"].to_dict()
    waiting = {face_of(name)[1]._replace(waits=()).of(face_of(name)[0]): name for name in prices}
    got = set()
    for r in told.itertuples():
        base, face = face_of(r.publication)
        got.add((base, r.subscription, prices[waiting[r.publication]], face.session, r.tau))
    assert got == expected


def the_day_live() -> ScopedBroker:
    live = ScopedBroker(trading(), MARKET)
    for name, wished, shares in WISHES:
        live.add("components", name, t=1, kinds=wished, shares=shares)
    for id, t, component, context, *cells in DAY:
        said = dict(zip(EVENT[4:], cells, strict=True))
        live.add("events", id, t=t, component=component, context=context.split(), **said)
    live.broker.advance(2000)
    return live


def test_the_day_live() -> None:
    """Sessions, mappings and the delay of fifteen minutes, as they come."""
    told = replayed(scoped(trading(), MARKET), "local").notifications
    columns = ["t", "kind", "publication", "subscription"]
    got = the_day_live().broker.notifications[columns].to_numpy().tolist()
    assert sorted(got) == sorted(told[columns].to_numpy().tolist()) and len(got) == 18


def test_what_a_policy_renamed_or_kept_from_somebody_is_explained() -> None:
    """By the name that was told, at the instant when it was told; and what was told to somebody else."""
    replay, live = replayed(scoped(trading(), MARKET), "local"), the_day_live()
    for asked in (replay, live):
        late = asked.explain("q3@{C1,Private}", "PC1", 980)
        assert late.holds and "was published at 80: it waited for Prof (delayed by 900)" in str(late)
        assert "components/PC1 at 80" in str(late) and asked.explain("q2@euro{C3,Private2}", "PC3", 970).holds
        assert not asked.explain("q3@{C1,Private}", "PC1", 979).holds
        assert asked.explain("q2@euro{C4,Prof2}", "PC4", 70).holds
    rows = [{"id": "e", "t": 1, "component": "P", "kind": "k", "n": 1}]
    one = graph("P->A", "X->A", "Y->A").with_scope("A", delivery=OneOf())
    told = replayed(scoped(standing(rows, "XY"), one), "local")
    (lucky,) = told.timelines["subscription"]
    other = told.explain("e", {"X": "Y", "Y": "X"}[lucky], 1)
    assert told.explain("e", lucky, 1).holds and not other.holds
    assert "✗ the traverse and delivery policies choose this subscription" in str(other)


def test_nobody_rewrote_a_subscription() -> None:
    """Scopes are orthogonal to matching: in a flat design space the same subscriptions get everything."""
    flat = graph(*((name, "everything") for name in structure().components))
    assert received(flat, "q1") == {"Agent2", "PC3", "PC4", "DB", "DB2", "MM"}


# -- why ---------------------------------------------------------------------------------------------------------------


def test_why_says_what_stopped_or_changed_a_notification() -> None:
    invisible = str(why(structure(figure=3), event("q1"), "PC4"))
    assert invisible == "q1 of ME to PC4: invisible, they have no common superscope"
    assert "the output interface of TF towards C3 blocks it" in str(why(MARKET, event("q1"), "PC4"))
    blocked = str(why(MARKET, event("b1"), "PC3", wanted()))
    assert "the output interface of TF towards Prof blocks it" in blocked and "not delivered" in blocked
    other_share = str(why(MARKET, event("q1"), "PC1", wanted()))
    assert "no subscription matches" in other_share
    delayed = str(why(MARKET, event("q2"), "PC3", wanted()))
    assert "Prof2 ↑ Private2: released at t = 970" in delayed
    assert "TF2 ↑ Prof2: euro gives {'price': 120.0, 'currency': 'EUR'}" in delayed
    kept_out = str(why(MARKET, event("a1"), "Agent2"))
    assert "the session tag keeps it out of C2" in kept_out
    chosen = graph("P->A", "X->A", "Y->A", scopes={"A": Scope(delivery=OneOf())})
    notification, both = Notification("n", "P", {}), {"X": OPEN, "Y": OPEN}
    answers = {why(chosen, notification, c, both).delivered: str(why(chosen, notification, c, both)) for c in "XY"}
    assert "another member was chosen" in answers[False] and "delivered at t = 0" in answers[True]


@settings(max_examples=60)
@given(graphs(filtered_edges, sessions=True), contents, st.sampled_from(COMPONENTS), st.sampled_from(COMPONENTS))
def test_why_agrees_with_delivery(made: ScopeGraph, content: Any, producer: str, consumer: str) -> None:
    notification = Notification("n", producer, content)
    assert why(made, notification, consumer).delivered == bool(deliveries(made, notification, {consumer: OPEN}))


# -- policies over timelines -------------------------------------------------------------------------------------------

GROUP = graph("P->A", "X->A", "Y->A", "S->A", "U->S", "V->S")
LINES = timelines_frame(
    [
        ("offer", "X", 1, 10, "unmatch"),
        ("offer", "Y", 1, 20, "unmatch"),
        ("offer", "U", 5, 30, "unmatch"),
        ("offer", "V", 25, None, None),
    ],
    Clock(),
)


def published(name: str, t: int) -> Notification:
    return Notification(name, "P", {"share": name})


def told(made: ScopeGraph, lines: pd.DataFrame = LINES) -> list[tuple[str, int, int | None]]:
    result = transmitted(lines, made, published=published)
    return [(r.subscription, r.tau, None if pd.isna(r.pi) else r.pi) for r in result.itertuples()]


def test_without_policies_timelines_stay_as_they_are() -> None:
    pd.testing.assert_frame_equal(transmitted(LINES, GROUP), LINES)


def test_top_down_and_bottom_up_over_time() -> None:
    top, bottom = (told(GROUP.with_scope("A", traverse=policy)) for policy in (TOP_DOWN, BOTTOM_UP))
    assert top == [("X", 1, 10), ("Y", 1, 20), ("U", 20, 30), ("V", 25, None)]
    assert bottom == [("X", 1, 5), ("Y", 1, 5), ("U", 5, 30), ("V", 25, None)]


def test_who_loses_a_notification_to_somebody_else_may_get_it_back() -> None:
    rows = [("offer", "U", 1, 30, "unmatch"), ("offer", "X", 5, 10, "unmatch")]
    got = told(GROUP.with_scope("A", traverse=TOP_DOWN), timelines_frame(rows, Clock()))
    assert got == [("U", 1, 5), ("X", 5, 10), ("U", 10, 30)]


def test_a_subscription_that_is_removed_hears_nothing_any_more() -> None:
    """[tau + d, pi + d) of whoever is still there."""
    rows = [("a@+S", "X", 1, 5, "subscription_removed"), ("a@+S", "Y", 1, 5, "unmatch"), ("a@+S", "U", 1, 5, "unmatch")]
    gone = {"X": [5], "Y": [7], "U": [4]}
    later = GROUP.with_scope("S", publishing=Delayed(3))
    got = transmitted(timelines_frame(rows, Clock()), later, removed=gone.__getitem__)
    assert [(r.subscription, r.tau, r.pi, r.ended) for r in got.itertuples()] == [
        ("X", 4, 5, "subscription_removed"), ("Y", 4, 7, "subscription_removed"),
    ]  # fmt: skip


@pytest.mark.parametrize("policy", [OneOf(seed=3), OneOf(seed=4), ByKey("share")])
def test_one_of_n_serves_one_at_a_time_for_the_whole_of_its_match(policy: OneOf) -> None:
    got = told(GROUP.with_scope("A", delivery=policy).with_scope("S", delivery=policy))
    full = {"X": 10, "Y": 20, "U": 30, "V": None}
    for (name, tau, pi), after in zip(got, [*got[1:], None], strict=True):
        assert pi == full[name] and (after is None or after[1] == pi)
        assert tau == 1 or tau in full.values()


def test_policies_that_choose_ask_what_is_published() -> None:
    with pytest.raises(ScenarioError, match="give published="):
        transmitted(LINES, GROUP.with_scope("A", delivery=OneOf()))


def test_until_releases_in_order_and_empty_times_vanish() -> None:
    rows = [("a@+S", "X", 1, 3, "unmatch"), ("b@+S", "X", 2, 12, "unmatch"), ("c@+S", "X", 40, None, None)]
    lines = timelines_frame(rows, Clock())
    made = GROUP.with_scope("S", publishing=Until(((10, 20),)))
    got = transmitted(lines, made)
    assert [(r.publication, r.tau, r.pi) for r in got.itertuples()] == [("b", 10, 12)]


def test_two_ways_of_different_delay_are_told_once() -> None:
    same = timelines_frame([("a", "X", 1, 5, "unmatch"), ("a@+S", "X", 1, 5, "unmatch")], Clock())
    longer = timelines_frame([("a", "X", 1, 5, "unmatch"), ("a@+S", "X", 1, 9, "unmatch")], Clock())
    for lines, delay, expected in ((same, 3, [(1, 5)]), (longer, 3, [(1, 12)]), (longer, 10, [(1, 5), (11, 19)])):
        got = transmitted(lines, GROUP.with_scope("S", publishing=Delayed(delay)))
        assert [(r.tau, r.pi) for r in got.itertuples()] == expected


@settings(max_examples=40)
@given(st.data())
def test_policies_over_timelines_choose_whom_the_definition_chooses(data: st.DataObject) -> None:
    made, components = data.draw(graphs(filtered_edges)), st.sampled_from(COMPONENTS)
    for name in made.scopes:
        policies = st.builds(
            dict,
            traverse=st.sampled_from(["broadcast", TOP_DOWN, BOTTOM_UP]),
            delivery=st.sampled_from([Scope().delivery, OneOf(1), ByKey("n")]),
            publishing=st.sampled_from([Scope().publishing, Delayed(2), Until(((2, 3), (5, 9)))]),
        )
        made = made.with_scope(name, **data.draw(policies))
    rows = [
        {"id": f"e{k}", "t": k, "component": data.draw(components), "context": None, **data.draw(contents)}
        for k in (1, 2)
    ]
    everybody = dict.fromkeys(COMPONENTS, kinds("k", "l"))
    expected = {
        (row["id"], d.consumer, d.t)
        for row in rows
        for d in deliveries(made, notification(row)._replace(t=row["t"]), everybody)
    }
    got = replayed(scoped(events(rows), made), "local").timelines
    assert {(r.publication, r.subscription, r.tau) for r in got.itertuples()} == expected


# -- drawing -----------------------------------------------------------------------------------------------------------


def test_a_drawing_shows_the_pieces_of_the_metamodel() -> None:
    import matplotlib

    matplotlib.use("Agg")
    from workbench.views.scopes import draw

    ways = [way.path for way in why(MARKET, event("q1"), "PC3").ways]
    ax = draw(MARKET, highlight=ways)
    texts = "\n".join(text.get_text() for text in ax.texts)
    for piece in ("TF", "delayed by 900", "restricted", "m: euro", "Quote", "market M1"):
        assert piece in texts


def test_a_choice_lasts_on_its_own_way_and_not_on_another_one() -> None:
    """c is served over Q at once; whom R chooses two ticks later is R's own choice."""
    made = graph("a->R", "b->P", "c->Q", "c->R", "P->Q", "Q->R")
    made = made.with_scope("Q", publishing=Delayed(2)).with_scope("R", delivery=ByKey("n"))
    lines = timelines_frame([("e", "c", 2, None, None), *(("e@+Q", name, 2, None, None) for name in "ac")], Clock())
    chosen = ByKey("n").choose(["a", "c"], None, {"n": 1})
    got = transmitted(lines, made, published=lambda name, t: Notification(name, "b", {"n": 1}))
    assert {(r.subscription, r.tau) for r in got.itertuples()} == {("c", 2), *((c, 4) for c in chosen if c != "c")}
