"""The graph of scopes and visibility (Scopes, 3 and 3.1)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.brokering.scope_worlds import graphs
from workbench.brokering.scopes.adapters import visible_roots
from workbench.brokering.scopes.graph import Edge, Scope, ScopeGraph, graph
from workbench.brokering.scopes.interfaces import OPEN, interface, passes
from workbench.brokering.scopes.mappings import EventMapping, converting
from workbench.brokering.scopes.market import market
from workbench.brokering.scopes.policies import Admitting, ByKey, Chosen, Delayed, OneOf, Until
from workbench.brokering.scopes.toml import from_toml, to_toml
from workbench.errors import ScenarioError, UpdateError
from workbench.model import above, anything_but, at_least, at_most, below, disc

FIGURE_2 = graph("X->R", "S->R", "Y->S", "Y->T", "U->T", "Z->T")

# Who sees whom in Figure 2: 1 where v holds.
MATRIX = """
    R S T U X Y Z
  R 1 1 0 0 1 1 0
  S 1 1 0 0 1 1 0
  T 0 0 1 1 0 1 1
  U 0 0 1 1 0 1 1
  X 1 1 0 0 1 1 0
  Y 1 1 1 1 1 1 1
  Z 0 0 1 1 0 1 1
"""


def test_visibility_in_figure_2() -> None:
    header, *rows = MATRIX.split("\n")[1:-1]
    names = header.split()
    for row in rows:
        one, *cells = row.split()
        assert [int(FIGURE_2.visible(one, other)) for other in names] == [int(cell) for cell in cells], one
    assert FIGURE_2.visible("Y", "U")
    assert not FIGURE_2.visible("X", "U")


def test_visibility_is_not_transitive() -> None:
    assert FIGURE_2.visible("X", "Y") and FIGURE_2.visible("Y", "U") and not FIGURE_2.visible("X", "U")


@given(graphs())
def test_visibility_is_reflexive_and_symmetric_and_told_by_the_roots(made: ScopeGraph) -> None:
    for one in made.nx:
        assert made.visible(one, one)
        for other in made.nx:
            assert made.visible(one, other) == made.visible(other, one)
            assert made.visible(one, other) == bool(visible_roots(made, one) & visible_roots(made, other))


@given(graphs())
def test_visibility_is_the_least_relation_of_the_definition(made: ScopeGraph) -> None:
    v = {(x, x) for x in made.nx}
    while True:
        more = {(y, x) for x, y in v} | {(x, y) for up, y in v for x in made.members(up)}
        if more <= v:
            break
        v |= more
    assert v == {(x, y) for x in made.nx for y in made.nx if made.visible(x, y)}


@given(graphs(), st.data())
def test_an_unrelated_scope_changes_nobodys_visibility(made: ScopeGraph, data: st.DataObject) -> None:
    joiner = "newcomer"
    wider = made.with_scope("elsewhere").join(joiner, "elsewhere")
    assert all(wider.visible(x, y) == made.visible(x, y) for x in made.nx for y in made.nx)
    member = data.draw(st.sampled_from(sorted(made.components)))
    if not made.superscopes(member):
        joined = wider.join(member, "elsewhere")
        assert joined.visible(member, joiner)
        left = joined.leave(member, "elsewhere")
        assert all(left.visible(x, y) == wider.visible(x, y) for x in wider.nx for y in wider.nx)


@pytest.mark.parametrize(
    ("memberships", "message"),
    [
        (["A->B", "B->C", "C->A"], "A -> B -> C -> A"),
        (["A->A"], "A -> A"),
        (["A"], "write 'member->scope'"),
    ],
)
def test_a_graph_that_is_none_is_refused_with_the_path(memberships: list[str], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        graph(*memberships)


def test_a_simple_component_is_never_a_superscope() -> None:
    with pytest.raises(ScenarioError, match="Z -> X: 'X' is a simple component and cannot be a superscope"):
        ScopeGraph(frozenset({"X", "Z"}), {}, {("Z", "X"): FIGURE_2.edges["X", "R"]})
    with pytest.raises(UpdateError, match="Z -> X: 'X' is a simple component and cannot be a superscope"):
        FIGURE_2.join("Z", "X")


def test_a_refused_change_changes_nothing() -> None:
    closed = FIGURE_2.with_scope("T", security=Admitting(frozenset({"Y", "U", "Z"})))
    before = repr(closed)
    for change in (
        lambda: closed.join("X", "T"),
        lambda: closed.join("R", "S"),
        lambda: closed.join("X", "nowhere"),
        lambda: closed.leave("X", "T"),
        lambda: closed.without("nobody"),
    ):
        with pytest.raises(UpdateError):
            change()
    assert repr(closed) == before


def test_a_cycle_by_joining_names_its_path() -> None:
    with pytest.raises(UpdateError, match=r"R -> S -> R|S -> R -> S"):
        FIGURE_2.join("R", "S")


def test_joining_and_leaving() -> None:
    joined = FIGURE_2.join("X", "T")
    assert joined.visible("X", "U") and not FIGURE_2.visible("X", "U")
    assert not joined.leave("X", "T").visible("X", "U")
    assert not joined.without("T").visible("X", "U")
    assert joined.without("T").components == FIGURE_2.components


def test_toml_says_the_same_as_python() -> None:
    made = from_toml(
        """
        [scopes.R]
        members = ["X", "S"]
        [scopes.S]
        members = ["Y"]
        session = true
        [scopes.T]
        members = ["Y", "U", "Z"]
        """
    )
    assert set(made.edges) == set(FIGURE_2.edges)
    assert made.scopes["S"] == Scope(session=True)
    assert made.components == FIGURE_2.components


def test_toml_reports_all_its_faults() -> None:
    with pytest.raises(ScenarioError) as caught:
        from_toml(
            """
            [scopes.R]
            membres = ["X"]
            traverse = "topdown"
            [[edges]]
            member = "X"
            """
        )
    said = str(caught.value)
    for hint in ("did you mean 'members'?", "did you mean 'top-down'?", "an edge names its member"):
        assert hint in said


def same(one: ScopeGraph, other: ScopeGraph) -> bool:
    return (one.components, one.scopes, one.edges) == (other.components, other.scopes, other.edges)


FILTERS = (
    passes(kind="k"),
    passes(kind={"k", "l"}, n=at_least(3)),
    passes(n=below(4.5) | above(7)),
    passes(n=at_least(1) & at_most(1), kind=anything_but("m", 'a "quoted" one')),
    passes(on=True),
)
EDGES = st.builds(
    Edge,
    output=st.one_of(st.just(OPEN), st.lists(st.sampled_from(FILTERS), max_size=2).map(lambda fs: interface(*fs))),
    input=st.one_of(st.just(OPEN), st.sampled_from(FILTERS).map(interface)),
    mapping_in=st.sampled_from([None, converting("half", scale={"n": 0.5}, put={"kind": "é"}, only=FILTERS[1])]),
)
SCOPES = st.builds(
    Scope,
    publishing=st.sampled_from([Scope().publishing, Delayed(900), Until(((1, 3), (7, 9)))]),
    traverse=st.sampled_from(["broadcast", "top-down", "bottom-up"]),
    delivery=st.sampled_from([Scope().delivery, OneOf(3), ByKey("share", 4)]),
    session=st.booleans(),
    security=st.sampled_from([None, Admitting(frozenset({"a", "Q"})), Admitting(frozenset())]),
)


@settings(max_examples=40)
@given(st.data())
def test_a_graph_written_as_toml_is_read_as_it_was(data: st.DataObject) -> None:
    made = data.draw(graphs(EDGES))
    made = ScopeGraph(made.components, {name: data.draw(SCOPES) for name in made.scopes}, made.edges)
    assert same(from_toml(to_toml(made)), made)


def test_the_market_can_be_written_down() -> None:
    assert same(from_toml(to_toml(market())), market())


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (FIGURE_2.with_edge("X", "R", mapping_out=EventMapping("own", lambda said: said)), "X -> R: mapping 'own'"),
        (FIGURE_2.with_scope("R", delivery=Chosen("mine", lambda members, said: members)), "'R': the delivery policy"),
        (FIGURE_2.with_interface("X", output=interface(passes(at=disc((0, 0), 1)))), "X -> R: .* numbers and texts"),
    ],
)
def test_what_toml_cannot_say_is_refused_by_name(made: ScopeGraph, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        to_toml(made)
