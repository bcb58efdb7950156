"""A scenario under a graph of scopes: every engine delivers what the definition says (Scopes, 3)."""

from __future__ import annotations

import random
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.brokering.scope_worlds import (
    COMPONENTS,
    beside,
    contents,
    contexts,
    events,
    filtered_edges,
    graphs,
    notification,
    plain_edges,
    rich_edges,
    standing,
    told,
    world_of,
)
from workbench.brokering.scopes.adapters import adapted
from workbench.brokering.scopes.definition import Notification, deliveries
from workbench.brokering.scopes.graph import Scope, ScopeGraph, graph
from workbench.brokering.scopes.interfaces import Interface, interface, kinds, passes
from workbench.brokering.scopes.live import ScopedBroker
from workbench.brokering.scopes.mappings import EventMapping
from workbench.brokering.scopes.policies import TRAVERSE, ByKey, Delayed, OneOf, Until
from workbench.brokering.scopes.scoped import face_of, scoped
from workbench.errors import ScenarioError, UpdateError
from workbench.model import (
    Scenario,
    any_region,
    column,
    location,
    now,
    other,
    own,
    publications,
    region,
    subscriptions,
    tau,
    ticks,
    visits,
)
from workbench.replay import replay

Outcome = tuple[Any, str, tuple[tuple[str, Any], ...], frozenset[str]]


def outcomes(made: Scenario, timelines: pd.DataFrame) -> list[Outcome]:
    """Who got which representation of which event in which session, read off timelines and the derived rows."""
    rows = made.tables["events"].set_index("id")[["kind", "n"]].to_dict("index")
    found = []
    for line in timelines.itertuples():
        base, face = face_of(line.publication)
        cells = rows[line.publication]
        found.append((base, line.subscription, (("kind", cells["kind"]), ("n", int(cells["n"]))), face.session))
    return found


@settings(max_examples=60)
@given(st.data())
def test_engines_deliver_what_the_definition_says(data: st.DataObject) -> None:
    edges = data.draw(st.sampled_from([rich_edges, filtered_edges, plain_edges]))
    made = data.draw(graphs(edges, sessions=data.draw(st.booleans())))
    rows = [
        {
            "id": f"e{k}",
            "t": k,
            "component": data.draw(st.sampled_from([*COMPONENTS, "P", "S"])),
            "context": " ".join(sorted(data.draw(contexts(made)))) or None,
            **data.draw(contents),
        }
        for k in range(1, 4)
    ]
    subscriptions = dict.fromkeys(COMPONENTS, interface(passes(kind={"k", "l"})))
    expected = {
        (row["id"], d.consumer, d.content, d.session)
        for row in rows
        for d in deliveries(made, notification(row), subscriptions)
    }
    through_adapters = {
        (row["id"], d.consumer, d.content, d.session)
        for row in rows
        for d in adapted(made, notification(row), subscriptions)
    }
    assert through_adapters == expected
    limited = scoped(events(rows), made)
    for engine in ("reference", "local"):
        got = outcomes(limited, told(limited, engine).timelines)
        assert len(set(got)) == len(got), "a representation is delivered once"
        assert set(got) == expected, engine
    got = live_outcomes(events(rows), made, rows)
    assert len(set(got)) == len(got) and set(got) == expected, "live"


def live_outcomes(scenario: Scenario, made: ScopeGraph, rows: list[dict[str, Any]]) -> list[Outcome]:
    """The same, as a live broker tells it."""
    live = ScopedBroker(scenario, made)
    for name in COMPONENTS:
        live.add("consumers", name, t=0, wish=("k", "l"))
    messages = []
    for row in rows:
        context = (row["context"] or "").split()
        cells = {name: row[name] for name in ("kind", "n")}
        messages += live.add("events", row["id"], t=row["t"], component=row["component"], context=context, **cells)
    found = []
    for message in [*messages, *live.broker.advance(9)]:
        for said in message.contents:
            base, face = face_of(said.publication)
            found.append((base, message.subscription, tuple((k, said.cells[k]) for k in ("kind", "n")), face.session))
    return found


def test_a_packed_world_on_spark_is_what_the_definition_says(spark: Any) -> None:
    """Many random worlds beside each other are one graph and one scenario: one job."""
    worlds = [world_of(random.Random(seed)) for seed in range(20)]
    made = beside(graph for graph, _ in worlds)
    rows = [
        {**row, "id": f"{row['id']}.{k}", "component": f"{row['component']}.{k}",
         "context": " ".join(f"{s}.{k}" for s in (row["context"] or "").split()) or None}
        for k, (_, said) in enumerate(worlds)
        for row in said
    ]  # fmt: skip
    consumers = [f"{name}.{k}" for k in range(len(worlds)) for name in COMPONENTS]
    wished = dict.fromkeys(consumers, kinds("k", "l"))
    near = {producer: {c: w for c, w in wished.items() if made.visible(c, producer)} for producer in made.nx}
    expected = {
        (row["id"], d.consumer, d.content, d.session)
        for row in rows
        for d in deliveries(made, notification(row), near[row["component"]])
    }
    limited = scoped(events(rows, consumers), made)
    got = outcomes(limited, told(limited, "spark").timelines.toPandas())
    assert len(got) == len(set(got)) and set(got) == expected
    assert len(expected) > 100, "the worlds say something"


# -- persistent publications: membership is a transition -----------------------------------------------------------

FIGURE_2 = graph("X->R", "S->R", "Y->S", "Y->T", "U->T", "Z->T")


OFFER = [{"id": "offer", "t": 1, "component": "U", "kind": "k", "n": 1}, {"id": "end", "t": 9, "component": "none"}]


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_late_joiner_hears_of_standing_matches_and_a_leaver_of_their_end(engine: str) -> None:
    over_time = {1: FIGURE_2, 4: FIGURE_2.join("X", "T"), 7: FIGURE_2.leave("Y", "T")}
    got = told(scoped(standing(OFFER), over_time), engine)
    lines = {(r.subscription, r.tau, None if pd.isna(r.pi) else r.pi) for r in got.timelines.itertuples()}
    assert lines == {("U", 1, None), ("Y", 1, 7), ("Z", 1, None), ("X", 4, 7)}
    assert [(r.t, r.kind, r.subscription) for r in got.notifications.itertuples() if r.t > 1] == [
        (4, "match", "X"),
        (7, "unmatch", "X"),
        (7, "unmatch", "Y"),
    ]


@settings(max_examples=40)
@given(st.data())
def test_joins_and_leaves_never_orphan_an_unmatch(data: st.DataObject) -> None:
    edges = data.draw(st.sampled_from([rich_edges, filtered_edges, plain_edges]))
    over_time = {1: data.draw(graphs(edges))}
    for t in range(2, 6):
        before = over_time[t - 1]
        if before.edges and data.draw(st.booleans()):
            over_time[t] = before.leave(*data.draw(st.sampled_from(sorted(before.edges))))
        else:
            joiner = data.draw(st.sampled_from(COMPONENTS))
            over_time[t] = before.join(joiner, data.draw(st.sampled_from(sorted(before.scopes))), data.draw(edges))
    rows = [{"id": "x", "t": t, "component": "a", **data.draw(contents)} for t in (1, 3, 6)]
    limited = scoped(standing(rows, COMPONENTS), over_time)
    judge = told(limited, "reference")
    open_pairs: set[tuple[str, str]] = set()
    for row in judge.notifications.itertuples():
        pair = (row.publication, row.subscription)
        if row.kind == "match":
            assert pair not in open_pairs
            open_pairs.add(pair)
        else:
            open_pairs.remove(pair)
    pd.testing.assert_frame_equal(judge.timelines, told(limited, "local").timelines)
    for t in range(1, 7):
        content = next(r for r in reversed(rows) if r["t"] <= t)
        now = Notification("x", "a", {"kind": content["kind"], "n": content["n"]})
        everybody = dict.fromkeys(COMPONENTS, Interface())
        expected = {(d.consumer, d.session) for d in deliveries(over_time[min(t, 5)], now, everybody)}
        lines = judge.timelines
        alive = lines[(lines["tau"] <= t) & (lines["pi"].isna() | (lines["pi"] > t))]
        assert {(r.subscription, face_of(r.publication)[1].session) for r in alive.itertuples()} == expected


# -- interfaces and mappings as a reader would write them ----------------------------------------------------------


def test_interfaces_join_the_filters_and_no_row_is_added() -> None:
    made = FIGURE_2.with_interface("S", output=kinds("b"))
    limited = scoped(events([{**OFFER[0], "component": "Y"}], "UXYZ"), made)
    (population,) = limited.publications
    assert "kind(said) ⊆ {'b'}" in repr(population.filter)
    assert len(limited.tables["events"]) == 1


def test_derived_publications_are_named_by_their_face() -> None:
    euro = EventMapping("euro", lambda said: {**said, "n": said["n"] // 2})
    made = graph("X->S", "Y->S", "S->R", "Z->R").with_edge("S", "R", mapping_out=euro)
    limited = scoped(events([{"id": "q1", "t": 1, "component": "X", "kind": "k", "n": 8}], "YZ"), made)
    got = told(limited, "local").timelines
    assert set(zip(got["publication"], got["subscription"], strict=True)) == {("q1", "Y"), ("q1@euro", "Z")}


def test_a_scope_that_subscribes_is_refused_where_there_is_more_than_visibility() -> None:
    rows = [{"id": "q", "t": 1, "component": "ME", "kind": "k", "n": 1}]
    plain = graph("ME->TF", "TF->M", "C->M")
    assert set(told(scoped(events(rows, ["TF", "M"]), plain), "local").timelines["subscription"]) == {"TF", "M"}
    made = plain.with_interface("TF", output=kinds("k"))
    with pytest.raises(ScenarioError, match="the consumer 'TF' is a scope"):
        scoped(events(rows, ["TF"]), made)
    live = ScopedBroker(events([], []), plain)
    live.add("consumers", "TF", wish=("k",))
    with pytest.raises(UpdateError, match="the consumer 'TF' is a scope"):
        live.change(made)


def test_derived_publications_of_rows_that_come_later_are_refused_by_name() -> None:
    double = EventMapping("double", lambda said: said)
    made = graph("cafe->S", "7->S").with_edge("cafe", "S", mapping_out=double)
    from workbench.scenarios.proximity import scenario

    with pytest.raises(ScenarioError, match="'places' needs derived publications"):
        scoped(scenario(), made)


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_places_and_mobiles_under_a_graph(engine: str) -> None:
    from workbench.scenarios.proximity import scenario

    fixes = pd.DataFrame({"mobile": [7, 8], "t": [1, 1], "x": [0.0, 0.0], "y": [0.0, 0.0]})
    places = pd.DataFrame({"place": ["cafe", "pub", "kiosk"], "x": [0.0, 1.0, 2.0], "y": [0.0, 0.0, 0.0]})
    district = graph("cafe->Mall", "7->Mall", "pub->Harbour", "8->Harbour", "Mall->City", "kiosk->City")
    got = replay(scoped(scenario(), district), fixes, places, engine=engine).timelines
    assert set(zip(got["publication"], got["subscription"], strict=True)) == {("cafe", 7), ("kiosk", 7), ("pub", 8)}


def third_parties() -> Scenario:
    shop = region(location, position=column.position)
    nearest = own.here.nearest(other.site, space=location, among="shops.site")
    alone = ~own.here.within(5, any_region("shops.site"), space=location)
    return Scenario(
        [location],
        [publications("shops", rows="places", regions={"site": shop})],
        [
            subscriptions("drivers", rows="fixes", regions={"here": shop}, filter=nearest),
            subscriptions("lonely", rows="fixes", regions={"here": shop}, filter=alone),
        ],
    )


FIXES = pd.DataFrame({"mobile": ["ann", "bob"], "t": [1, 1], "x": [0.0, 0.0], "y": [0.0, 0.0]})
PLACES = pd.DataFrame({"place": ["near", "far"], "x": [1.0, 50.0], "y": [0.0, 0.0]})
DISTRICTS = graph("ann->A", "far->A", "bob->B", "near->B", "far->B")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("engine", ["reference", "local"])
def test_third_parties_that_are_invisible_do_not_count(engine: str) -> None:
    got = replay(scoped(third_parties(), DISTRICTS), FIXES, PLACES, engine=engine).timelines
    pairs = set(zip(got["publication"], got["subscription"], strict=True))
    assert pairs == {("far", "drivers/ann"), ("near", "drivers/bob"), ("far", "lonely/ann")}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("engine", ["reference", "local"])
def test_an_interface_hides_third_parties_too(engine: str) -> None:
    made = DISTRICTS.with_edge("near", "B", output=interface())
    got = replay(scoped(third_parties(), made), FIXES, PLACES, engine=engine).timelines
    assert ("far", "drivers/bob") in set(zip(got["publication"], got["subscription"], strict=True))


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=25)
@given(st.lists(graphs(), min_size=1, max_size=2))
def test_third_parties_under_random_graphs_are_the_same_on_local(over_time: list[Any]) -> None:
    fixes = pd.DataFrame({"mobile": ["a", "b"], "t": 1, "x": [0.0, 60.0], "y": 0.0})
    places = pd.DataFrame({"place": ["c", "d"], "t": [1, 1], "x": [1.0, 50.0], "y": 0.0})
    limited = scoped(third_parties(), {1 + 3 * k: made for k, made in enumerate(over_time)})
    judge, asked = (replay(limited, fixes, places, engine=engine, until=9) for engine in ("reference", "local"))
    pd.testing.assert_frame_equal(judge.timelines, asked.timelines)


def test_histories_of_third_parties_hold_only_what_was_visible() -> None:
    """tau and aggregates over any region: bob has been at the shop that he sees, ann never at one that she sees."""
    here = region(location, position=column.position)
    entered = own.here.within(5, any_region("shops.site"), space=location)
    visited = visits(entered, window=ticks(50)).count() >= 1
    made = Scenario(
        [location],
        [publications("shops", rows="places", regions={"site": here})],
        [
            subscriptions("recent", rows="fixes", regions={"here": here}, filter=now - tau(entered) <= ticks(50)),
            subscriptions("regular", rows="fixes", regions={"here": here}, filter=visited),
        ],
    )
    rows = [(mobile, t, x) for mobile in ("ann", "bob") for t, x in ((1, 0.0), (3, 500.0), (9, 500.0))]
    fixes = pd.DataFrame(rows, columns=["mobile", "t", "x"]).assign(y=0.0)
    seen = {name: replay(s, fixes, PLACES, engine="reference").timelines for name, s in (
        ("flat", made), ("scoped", scoped(made, DISTRICTS)),
    )}  # fmt: skip
    told_of = {name: set(lines["subscription"]) for name, lines in seen.items()}
    assert told_of["flat"] == {"recent/ann", "recent/bob", "regular/ann", "regular/bob"}
    assert told_of["scoped"] == {"recent/bob", "regular/bob"}


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_profiles_that_a_population_has_already_are_kept(engine: str) -> None:
    made = events([{"id": "q1", "t": 1, "component": "X", "kind": "k"}], "YZ")
    profiles = pd.DataFrame({"id": ["q1"], "n": [8]})
    events_with = publications("events", rows="events", regions=dict(made.publications[0].regions), profiles="numbers")
    whole = Scenario(made.spaces, [events_with], made.subscriptions, tables={**made.tables, "numbers": profiles})
    only_eight = graph("X->S", "Y->S", "Z->S").with_edge("Y", "S", input=interface(passes(n=8)))
    only_eight = only_eight.with_edge("Z", "S", input=interface(passes(n=9)))
    assert told(scoped(whole, only_eight), engine).timelines["subscription"].tolist() == ["Y"]


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_timestamps_stay_timestamps(engine: str) -> None:
    at = pd.to_datetime(["2026-01-01T09:00Z", "2026-01-01T10:00Z"])
    rows = [{"id": "q1", "t": t, "component": "X", "kind": "k", "n": n} for n, t in enumerate(at)]
    double = EventMapping("double", lambda said: {**said, "n": 2 * said["n"] + 1})
    before = graph("X->S", "Y->S", "Z->R", "S->R").with_edge("S", "R", mapping_out=double)
    got = told(scoped(standing(rows, "YZ"), {at[0]: before, at[1]: before.leave("Y", "S")}), engine).timelines
    lines = {(r.publication, r.subscription, r.tau, r.pi) for r in got.fillna({"pi": at[1]}).itertuples()}
    assert lines == {("q1", "Y", at[0], at[1]), ("q1@double", "Z", at[0], at[1])}


def test_mobiles_and_places_under_a_graph_on_spark(spark: Any) -> None:
    from workbench.scenarios.proximity import scenario

    fixes = pd.DataFrame({"mobile": [7, 8] * 2, "t": [1, 1, 9, 9], "x": 0.0, "y": 0.0})
    places = pd.DataFrame({"place": ["cafe", "pub", "kiosk"], "x": [0.0, 1.0, 2.0], "y": 0.0})
    before = graph("cafe->Mall", "7->Mall", "pub->Harbour", "8->Harbour", "Mall->City", "kiosk->City")
    before = before.with_interface("Mall", output=interface())
    limited = scoped(scenario(), {1: before, 5: before.join("8", "City")})
    lines = replay(limited, fixes, places, engine="spark").timelines.toPandas()
    got = {(r.publication, r.subscription, r.tau) for r in lines.itertuples()}
    judge = replay(limited, fixes, places, engine="reference").timelines
    assert got == {(r.publication, r.subscription, r.tau) for r in judge.itertuples()}
    assert got == {("cafe", 7, 1), ("kiosk", 7, 1), ("pub", 8, 1), ("kiosk", 8, 5)}


# -- policies on Spark ------------------------------------------------------------------------------------------------


def with_policies(made: ScopeGraph, draw: random.Random) -> ScopeGraph:
    """The same graph with policies of all kinds."""
    for name in sorted(made.scopes):
        made = made.with_scope(
            name,
            traverse=draw.choice(TRAVERSE),
            delivery=draw.choice([Scope().delivery, OneOf(1), ByKey("n")]),
            publishing=draw.choice([Scope().publishing, Delayed(2), Until(((2, 3), (5, 9)))]),
        )
    return made


def test_policies_choose_on_spark_publication_by_publication(spark: Any) -> None:
    """Whom a publication is sent to depends on nobody else's: many worlds in one scenario, in several tasks."""
    worlds = [world_of(random.Random(seed)) for seed in range(12)]
    made = with_policies(beside(graph for graph, _ in worlds), random.Random(1))
    rows = [{**row, "id": f"{row['id']}.{k}", "component": f"{row['component']}.{k}", "context": None}
            for k, (_, said) in enumerate(worlds) for row in said]  # fmt: skip
    consumers = [f"{name}.{k}" for k in range(len(worlds)) for name in COMPONENTS]
    limited = scoped(standing(rows, consumers), made)
    judge, asked = told(limited, "local"), told(limited, "spark")
    assert "a task for each share of the publications, because scope" in asked.plan
    assert asked.metrics["timelines"] == len(judge.timelines) > 50
    pd.testing.assert_frame_equal(asked.collect().timelines, judge.timelines)
    pd.testing.assert_frame_equal(asked.collect().notifications, judge.notifications)


def test_mobiles_are_chosen_among_on_spark_after_all_buckets(spark: Any) -> None:
    from workbench.scenarios.proximity import scenario

    mobiles = [str(k) for k in range(20)]
    fixes = pd.DataFrame(
        [(name, t, 400.0 * ((k + t) % 5)) for k, name in enumerate(mobiles) for t in range(1, 7)],
        columns=["mobile", "t", "x"],
    ).assign(y=0.0)
    places = pd.DataFrame({"place": ["cafe", "pub"], "x": [0.0, 800.0], "y": 0.0})
    made = graph(*((name, "city") for name in (*mobiles, "cafe", "pub"))).with_scope("city", delivery=OneOf(seed=2))
    limited = scoped(scenario(radius_m=300), made)
    judge, asked = (replay(limited, fixes, places, engine=engine) for engine in ("local", "spark"))
    assert "then one for each share of the publications, because scope 'city' chooses" in asked.plan
    pd.testing.assert_frame_equal(asked.collect().timelines, judge.timelines)
    at_once = judge.timelines.sort_values(["publication", "tau"])
    following = at_once.groupby("publication")["tau"].shift(-1)
    assert len(at_once) > 5 and (at_once["pi"].isna() | following.isna() | (at_once["pi"] <= following)).all()


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_publications_with_numbers_for_ids_have_faces(engine: str, request: Any) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    euro = EventMapping("euro", lambda said: {**said, "n": said["n"] // 2})
    made = graph("X->S", "Y->S", "S->R", "Z->R").with_edge("S", "R", mapping_out=euro)
    made = made.with_scope("S", publishing=Delayed(2))
    limited = scoped(events([{"id": 7, "t": 1, "component": "X", "kind": "k", "n": 8}], "YZ"), made)
    got = told(limited, engine).collect().timelines
    assert got[["publication", "subscription", "tau"]].to_numpy().tolist() == [["7", "Y", 1], ["7@euro", "Z", 3]]
