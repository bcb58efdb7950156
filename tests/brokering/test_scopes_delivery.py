"""Delivery through a graph of scopes: by definition, and through adapters (Scopes, 3.2 to 3.6 and 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.brokering.scope_worlds import COMPONENTS, contents, contexts, graphs, interfaces, open_sessions, rich_edges
from workbench.brokering.scopes.adapters import adapted, administration
from workbench.brokering.scopes.definition import Notification, deliveries, paths
from workbench.brokering.scopes.graph import Edge, Scope, ScopeGraph, graph
from workbench.brokering.scopes.interfaces import OPEN, Interface, interface, kinds, passes
from workbench.brokering.scopes.mappings import EventMapping
from workbench.brokering.scopes.policies import BOTTOM_UP, TOP_DOWN, ByKey, Chosen, Delayed, OneOf, Until

FIGURE_2 = graph("X->R", "S->R", "Y->S", "Y->T", "U->T", "Z->T")
SESSION = Scope(session=True)
ALL = dict.fromkeys("UXYZ", OPEN)

double = EventMapping("double", lambda said: {**said, "n": said["n"] * 2})


def sent(made: ScopeGraph, producer: str, subscriptions: Mapping[str, Interface] = ALL, **content: Any) -> set[str]:
    return {d.consumer for d in deliveries(made, Notification("n1", producer, content), subscriptions)}


# -- interfaces (3.2) ----------------------------------------------------------------------------------------------


def test_a_subscription_is_a_set_of_filters_of_which_one_is_enough() -> None:
    asked = {"U": interface(passes(kind="a"), passes(kind="b")), "Z": kinds("c")}
    assert sent(FIGURE_2, "Y", asked, kind="b") == {"U"}
    assert sent(FIGURE_2, "Y", asked, kind="d") == set()


def test_what_crosses_has_to_pass_every_interface_of_one_path() -> None:
    made = FIGURE_2.with_interface("S", output=kinds("b"), input=kinds("a"))
    assert sent(made, "Y", kind="a") == {"Y", "U", "Z"}  # out of S only b
    assert sent(made, "Y", kind="b") == {"X", "Y", "U", "Z"}
    assert sent(made, "X", kind="a") == {"X", "Y"}  # into S only a
    assert sent(made, "X", kind="b") == {"X"}


def test_one_path_of_several_is_enough_and_the_apexs_own_interface_is_not_crossed() -> None:
    made = graph("X->P", "X->Q", "P->A", "Q->A", "Y->A").with_interface("P", output=interface())
    assert sent(made, "X", {"Y": OPEN}) == {"Y"}
    assert sent(made.with_interface("Q", output=interface()), "X", {"Y": OPEN}) == set()
    assert sent(made.with_scope("B").join("A", "B").with_interface("A", output=interface()), "X", {"Y": OPEN}) == {"Y"}


def test_a_path_never_goes_down_and_up_and_never_back_in() -> None:
    diamond = graph("X->S", "Y->S", "S->R", "S->Q", "R->A", "Q->A", "Z->R")
    assert paths(FIGURE_2, "X", "U") == []
    assert [str(p) for p in paths(diamond, "X", "Y")] == ["X ↑ S ↓ Y"]
    assert all(len({*p.up, *p.down}) == len(p.up) + len(p.down) - 1 for p in paths(diamond, "X", "Z"))


def test_an_edge_has_interfaces_of_its_own() -> None:
    made = FIGURE_2.with_edge("Y", "T", output=kinds("a"))
    assert sent(made, "Y", kind="b") == {"X", "Y"}
    assert sent(made, "Y", kind="a") == {"X", "Y", "U", "Z"}


# -- mappings (3.4) ------------------------------------------------------------------------------------------------


def test_output_interfaces_see_what_is_mapped_and_input_interfaces_what_comes() -> None:
    out = graph("X->S", "S->R", "Y->R").with_edge("S", "R", mapping_out=double, output=interface(passes(n=4)))
    assert sent(out, "X", {"Y": OPEN}, n=2) == {"Y"} and sent(out, "X", {"Y": OPEN}, n=4) == set()
    into = graph("X->R", "S->R", "Y->S").with_edge("S", "R", mapping_in=double, input=interface(passes(n=2)))
    assert sent(into, "X", {"Y": interface(passes(n=4))}, n=2) == {"Y"}
    assert sent(into, "X", {"Y": OPEN}, n=4) == set()


def test_a_scope_shows_different_faces_to_different_superscopes() -> None:
    made = graph("X->S", "S->R", "S->Q", "Y->R", "Z->Q").with_edge("S", "Q", mapping_out=double)
    got = deliveries(made, Notification("n1", "X", {"n": 3}), {"Y": OPEN, "Z": OPEN})
    assert {(d.consumer, dict(d.content)["n"]) for d in got} == {("Y", 3), ("Z", 6)}


def test_a_mapping_makes_none_one_or_several() -> None:
    split = EventMapping("split", lambda said: [{"n": k} for k in range(said["n"])])
    made = graph("X->S", "S->R", "Y->R").with_edge("S", "R", mapping_out=split)
    for n in range(3):
        got = deliveries(made, Notification("n1", "X", {"n": n}), {"Y": OPEN})
        assert sorted(dict(d.content)["n"] for d in got) == list(range(n))


def test_duplicates_are_once_for_each_representation_and_session() -> None:
    made = graph("X->P", "X->Q", "Y->P", "Y->Q")
    notification = Notification("n1", "X", {"n": 1})
    assert len(deliveries(made, notification, {"Y": OPEN})) == 1
    assert len(deliveries(made.with_edge("Y", "Q", mapping_in=double), notification, {"Y": OPEN})) == 2
    tagged = made.with_scope("P", session=True).with_scope("Q", session=True)
    assert {d.session for d in deliveries(tagged, notification, {"Y": OPEN})} == {frozenset("P"), frozenset("Q")}


def test_a_scope_publishes_events_of_its_own() -> None:
    assert sent(FIGURE_2, "S") == {"X", "Y"}
    assert sent(FIGURE_2.with_interface("S", output=interface()), "S") == {"Y"}


# -- sessions (3.6) ------------------------------------------------------------------------------------------------


def test_y_of_figure_6_answers_only_into_the_scope_that_asked() -> None:
    made = graph("A->S", "Y->S", "Y->T", "B->T", scopes={"S": SESSION, "T": SESSION})
    asked = deliveries(made, Notification("q", "A", {}), {"Y": OPEN})
    (received,) = asked
    assert received.session == {"S"}
    everyone = {"A": OPEN, "B": OPEN}
    reaction = deliveries(made, Notification("r", "Y", {}, received.session), everyone)
    assert {d.consumer for d in reaction} == {"A"}
    assert {d.consumer for d in deliveries(made, Notification("r", "Y", {}), everyone)} == {"A", "B"}


def test_untagged_scopes_are_not_affected_and_tagged_ones_at_any_height_are() -> None:
    made = graph("Y->S", "A->S", "Y->U", "B->U", "U->T", "C->T", scopes={"S": SESSION, "T": SESSION})
    got = deliveries(made, Notification("r", "Y", {}, frozenset("S")), {"A": OPEN, "B": OPEN, "C": OPEN})
    assert {d.consumer for d in got} == {"A", "B"}


def test_the_tag_is_stripped_on_leaving() -> None:
    made = graph("X->S", "S->R", "Y->R").with_scope("S", session=True)
    assert {d.session for d in deliveries(made, Notification("n", "X", {}), {"Y": OPEN})} == {frozenset()}


@given(graphs(rich_edges, sessions=True), contents, st.sampled_from(COMPONENTS))
def test_tags_are_invisible_to_filters_and_mappings(made: ScopeGraph, content: Any, producer: str) -> None:
    notification, everyone = Notification("n", producer, content), dict.fromkeys(COMPONENTS, OPEN)
    tagged = {(d.consumer, d.content) for d in deliveries(made, notification, everyone)}
    untagged = {(d.consumer, d.content) for d in deliveries(open_sessions(made), notification, everyone)}
    assert tagged == untagged


# -- policies (3.5) ------------------------------------------------------------------------------------------------

TREE = graph("P->A", "X->A", "Y->A", "S->A", "U->S", "V->S", "T->S", "W->T")
FOUR = dict.fromkeys("XYUVW", OPEN)


def test_traverse_policies() -> None:
    assert sent(TREE, "P", FOUR) == set("XYUVW")
    top_down = TREE.with_scope("A", traverse=TOP_DOWN)
    assert sent(top_down, "P", FOUR) == {"X", "Y"}
    assert sent(top_down, "P", dict.fromkeys("UVW", OPEN)) == {"U", "V", "W"}
    assert sent(top_down.with_scope("S", traverse=TOP_DOWN), "P", dict.fromkeys("UVW", OPEN)) == {"U", "V"}
    bottom_up = TREE.with_scope("A", traverse=BOTTOM_UP).with_scope("S", traverse=BOTTOM_UP)
    assert sent(bottom_up, "P", FOUR) == {"W"}
    assert sent(bottom_up, "P", dict.fromkeys("XUV", OPEN)) == {"U", "V"}
    assert sent(bottom_up, "P", dict.fromkeys("XY", OPEN)) == {"X", "Y"}


def test_eligible_is_after_interfaces_and_before_the_delivery_policy() -> None:
    made = TREE.with_scope("A", traverse=TOP_DOWN)
    made = made.with_interface("X", input=kinds("b")).with_interface("Y", input=kinds("b"))
    assert sent(made, "P", FOUR, kind="a") == {"U", "V", "W"}
    assert sent(made, "P", FOUR, kind="b") == {"X", "Y"}


def test_delivery_policies() -> None:
    one = TREE.without("S").with_scope("A", delivery=OneOf(seed=1))
    served = [sent_id(one, n) for n in range(40)]
    assert all(len(s) == 1 for s in served) and {m for s in served for m in s} == {"X", "Y"}
    assert served == [sent_id(one, n) for n in range(40)]
    keyed = TREE.without("S").with_scope("A", delivery=ByKey("share"))
    for share in ("SAP", "IBM", "DB"):
        assert len({frozenset(sent_id(keyed, n, share=share)) for n in range(10)}) == 1
    chosen = TREE.with_scope("A", delivery=Chosen("first", lambda members, said: members[:1]))
    assert sent(chosen, "P", FOUR) == {"U", "V", "W"}  # the first member is the subscope S


def sent_id(made: ScopeGraph, n: int, **content: Any) -> set[str]:
    got = deliveries(made, Notification(n, "P", content), {"X": OPEN, "Y": OPEN})
    return {d.consumer for d in got}


def test_publishing_policies_delay_what_leaves_a_scope() -> None:
    made = graph("X->S", "Y->S", "S->R", "Z->R").with_scope("S", publishing=Delayed(900))
    got = deliveries(made, Notification("n", "X", {}, t=60), {"Y": OPEN, "Z": OPEN})
    assert {(d.consumer, d.t) for d in got} == {("Y", 60), ("Z", 960)}
    waiting = made.with_scope("S", publishing=Until(((100, 200),)))
    for t, arrived in ((60, 100), (150, 150)):
        got = deliveries(waiting, Notification("n", "X", {}, t=t), {"Z": OPEN})
        assert [d.t for d in got] == [arrived]
    assert not deliveries(waiting, Notification("n", "X", {}, t=200), {"Z": OPEN})


# -- the efficient form (4) ------------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(st.data())
def test_adapters_deliver_what_the_definition_says(data: st.DataObject) -> None:
    made = data.draw(graphs(rich_edges, sessions=True))
    subscriptions = data.draw(st.dictionaries(st.sampled_from(COMPONENTS), interfaces))
    producer = data.draw(st.sampled_from([*COMPONENTS, *made.scopes]))
    notification = Notification("n", producer, data.draw(contents), data.draw(contexts(made)))
    assert adapted(made, notification, subscriptions) == deliveries(made, notification, subscriptions)


@given(graphs(dense=True), st.sampled_from(COMPONENTS))
def test_without_interfaces_delivery_is_visibility(made: ScopeGraph, producer: str) -> None:
    everyone = dict.fromkeys(COMPONENTS, OPEN)
    visible = {c for c in COMPONENTS if made.visible(producer, c)}
    assert {d.consumer for d in deliveries(made, Notification("n", producer, {}), everyone)} == visible


def test_the_naive_adapters_leak_from_one_superscope_into_the_other() -> None:
    made = graph("X->R1", "S->R1", "S->R2", "Y->S", "Z->R2")
    notification, everyone = Notification("n", "X", {}), {"Y": OPEN, "Z": OPEN}
    assert not made.visible("X", "Z")
    assert {d.consumer for d in adapted(made, notification, everyone, naive=True)} == {"Y", "Z"}
    assert {d.consumer for d in adapted(made, notification, everyone)} == {"Y"}


def test_the_naive_adapters_bring_back_through_a_diamond_what_has_left() -> None:
    once = EventMapping("once", lambda said: None if "seen" in said else {**said, "seen": True})
    made = graph("X->S", "Y->S", "S->R1", "S->R2", "R1->A", "R2->A").with_edge("S", "R1", mapping_out=once)
    notification, everyone = Notification("n", "X", {}), {"Y": OPEN}
    assert len(adapted(made, notification, everyone, naive=True)) == 2
    assert len(adapted(made, notification, everyone)) == len(deliveries(made, notification, everyone)) == 1


@settings(max_examples=50)
@given(st.data())
def test_an_unrelated_scope_changes_nobodys_deliveries(data: st.DataObject) -> None:
    made = data.draw(graphs(rich_edges, sessions=True))
    notification = Notification("n", data.draw(st.sampled_from(COMPONENTS)), data.draw(contents))
    everyone = dict.fromkeys(COMPONENTS, OPEN)
    wider = made.with_scope("elsewhere", Scope(session=True, delivery=OneOf()))
    wider = wider.join("newcomer", "elsewhere", Edge(mapping_in=EventMapping("unrelated", double.function)))
    assert deliveries(wider, notification, everyone) == deliveries(made, notification, everyone)


def test_administration_messages_are_counted() -> None:
    same = administration(FIGURE_2, FIGURE_2)
    assert same == {"memberships": 0, "components": 0, "roots": 0}
    # R becomes part of T: X and Y lose the root R, and X gains T, which Y saw already
    assert administration(FIGURE_2, FIGURE_2.join("R", "T")) == {"memberships": 1, "components": 2, "roots": 3}
