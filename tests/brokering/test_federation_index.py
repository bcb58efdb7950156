"""A routing table finds by its index exactly what a scan of its entries finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import geometry
from workbench.bench import routing
from workbench.brokering.federation.attributes import OPERATORS, Constraint, Expression, Notification, Subscription
from workbench.brokering.federation.index import Entries, Index, Need, Offer
from workbench.brokering.federation.interests import Interest, Report, World
from workbench.brokering.federation.tables import Table
from workbench.model import Scenario, column, disc, held, location, other, own, publications, region, seconds
from workbench.model import subscriptions as subscribers
from workbench.model.filters import Filter
from workbench.model.history import Client, Instance, Party, State
from workbench.scenarios.proximity import scenario as proximity

NAMES = ("a", "b", "c")
numbers = st.one_of(st.integers(-5, 5), st.sampled_from([0.5, -0.0, 1e9, 2**60 + 1, float("inf")]))
values = st.one_of(numbers, st.booleans(), st.sampled_from(["x", "y", ""]))


@st.composite
def constraints(draw: Any) -> Constraint:
    op = draw(st.sampled_from(OPERATORS))
    many = {"exists": 0, "in": None, "not in": None}.get(op, 1)
    constants = draw(st.frozensets(values, min_size=many or 0, max_size=3 if many is None else many))
    return Constraint(draw(st.sampled_from(NAMES)), op, constants)


def _combined(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    pairs = st.tuples(parts, parts)
    return st.one_of(pairs.map(lambda p: p[0] & p[1]), pairs.map(lambda p: p[0] | p[1]), parts.map(lambda p: ~p))


expressions = st.recursive(constraints(), _combined, max_leaves=6)
notifications = st.dictionaries(st.sampled_from(NAMES), st.one_of(values, st.just(float("nan"))), max_size=3)


def scanned(table: Table, item: object, but: object = None) -> set[Any]:
    return {d for s, d in table if d != but and s.accepts(item)}


@settings(max_examples=40, deadline=None)
@given(
    held=st.lists(st.tuples(expressions, st.integers(0, 5)), min_size=20, max_size=90),
    gone=st.lists(st.integers(0, 89), max_size=60),
    items=st.lists(notifications, min_size=1, max_size=8),
)
def test_attributes(held: list, gone: list[int], items: list[dict[str, Any]]) -> None:
    table = Table()
    for i, (expression, destination) in enumerate(held):
        table = table.with_([Subscription(i, expression)], destination)
    table = table.with_([Subscription(1000 + i, e) for i, (e, _) in enumerate(held)], "everybody")
    whole = table
    for i in gone:
        table = table.without([i], i % 6).without([1000 + i], "everybody").with_([Subscription(i, held[0][0])], "late")
    for given_ in items:
        item = Notification(given_, "κ", 1)
        for each in (table, whole):
            assert each.destinations(item) == scanned(each, item)
            assert each.destinations(item, but="everybody") == scanned(each, item, but="everybody")


near = own.here.within(20, other.site, space=location)
inside = other.room.contains(own.here, space=location)
FILTERS = {
    "near": near,
    "inside": inside,
    "either": near | inside,
    "both": near & inside,
    "dwelling": held(near, seconds(5)),
    "elsewhere": ~near,
    "nearest": own.here.nearest(other.site, space=location) & near,
}


def world(filter: Filter, metric: str) -> World:
    regions = {
        "site": region(location, position=column.position),
        "room": region(location, position=disc(column.position, column.radius_m)),
    }
    shops = publications("shops", rows="places", regions=regions)
    people = subscribers("people", rows="fixes", filter=filter, regions={"here": regions["site"]})
    return World.of(Scenario([location], [shops], [people]), metric=metric)


places = {
    geometry.PLANAR: st.tuples(st.integers(-200, 200), st.sampled_from([0, 15, 20, 40])),
    geometry.WGS84: st.tuples(
        st.one_of(st.floats(7.0, 7.01), st.floats(179.999, 180.0), st.floats(-180.0, -179.999)),
        st.sampled_from([0.0, 45.0, 45.0001, 89.9999]),
    ),
}


@settings(max_examples=60, deadline=None)
@given(data=st.data(), metric=st.sampled_from(sorted(places)), name=st.sampled_from(sorted(FILTERS)))
def test_positions(data: st.DataObject, metric: str, name: str) -> None:
    made = world(FILTERS[name], metric)
    (shops,), (people,) = made.scenario.publications, made.scenario.subscriptions
    table = Table()
    blurs = st.sampled_from([0.0, 0.0, 30.0, float("inf")])
    where = st.lists(st.tuples(places[metric], blurs, st.integers(0, 4)), min_size=20, max_size=60)
    for i, (place, blur_m, destination) in enumerate(data.draw(where)):
        own_regions = {n: r.fill({"position": place}) for n, r in people.regions}
        party = Party("people", Client("fixes", i))
        interest = Interest.of(made, party, own_regions, people.filter, blur_m)
        table = table.with_([interest], destination).with_([interest], "everybody")
    for place, radius_m in data.draw(st.lists(st.tuples(places[metric], st.sampled_from([0, 10, 500])), max_size=6)):
        regions = {n: r.fill({"position": place, "radius_m": radius_m}) for n, r in shops.regions}
        state = State({}, {"shops": Instance(regions, shops.filter, 1)})
        report = Report(Client("places", "s"), (1, 1, 0), 1, state, "B1", frozenset({"shops"}))
        assert table.destinations(report) == scanned(table, report)


def test_boxes_of_any_width_are_found_among_many() -> None:
    """Small ones and large ones, looked for in a few rows of cells, in many, and everywhere."""
    draw, infinite = Random(1), float("inf")

    def box(side: float) -> tuple[tuple[float, float], ...]:
        corner = (draw.uniform(-500, 500), draw.uniform(-500, 500))
        return tuple((c, c + draw.uniform(0, side)) for c in corner)

    class Wanted(NamedTuple):
        there: tuple[tuple[float, float], ...]

        @property
        def needs(self) -> tuple[Need, ...]:
            return (Need(dimensions=("x", "y"), box=self.there),)

        accepts = None

    class Asked(NamedTuple):
        there: list[tuple[tuple[float, float], ...]]
        attributes: Mapping[str, Any] = MappingProxyType({})

        def boxes(self, dimensions: tuple[str, ...]) -> list[Any]:
            return self.there

    held = {i: Wanted(box(draw.choice([0, 1, 50, 1000]))) for i in range(2000)}
    held |= {2000 + i: Wanted(((i, infinite), (-infinite, 0.0))) for i in range(20)}
    made = Index(held)
    everywhere = ((-infinite, infinite), (-infinite, infinite))
    asked = [[box(side)] for side in (0, 10, 100, 1000) for _ in range(10)]
    asked += [[box(10), box(0), box(100)] for _ in range(10)]  # one item may be in several places
    for there in [*asked, [everywhere], [((2000, 3000), (0, 1))], []]:
        met = {
            i
            for i, w in held.items()
            if any(all(a <= d and c <= b for (a, b), (c, d) in zip(w.there, t, strict=True)) for t in there)
        }
        assert set(made.candidates(Offer(Asked(there)))) == met


keys = st.lists(st.integers(0, 30), max_size=20)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(keys, keys), max_size=9))
def test_entries_are_a_value_that_changes_like_a_dictionary(changes: list[tuple[list[int], list[int]]]) -> None:
    entries, plain = Entries(), {}
    before: list[tuple[Entries, dict]] = []
    for version, (new, gone) in enumerate(changes):
        before.append((entries, plain))
        added = {k: Subscription(k, Constraint("a", "in", frozenset({version, k}))) for k in new}
        entries = entries.changed_by(added, gone)
        plain = {**{k: s for k, s in plain.items() if k not in gone}, **added}
        before.append((entries, plain))
    for each, same in before:
        assert dict(each) == same and len(each) == len(same) and each.keys() == same.keys()
        for a in range(10):
            item = Notification({"a": a})
            assert set(each.accepting(item)) == {k for k, s in same.items() if s.accepts(item)}
            assert each.accept(item) == any(s.accepts(item) for s in same.values())


def test_the_benchmarks_tables_are_those_that_brokers_tell_each_other() -> None:
    agreed = World.of(proximity(radius_m=500))
    clients, _ = routing.by_position(agreed, Random(1), 40, 0)
    made, told = (routing.Network(routing.eight_by_eight(), agreed) for _ in range(2))
    made.subscribe(clients)
    told.brokers = {b: replace(k, neighbours=frozenset(told.overlay.neighbours(b))) for b, k in told.brokers.items()}
    for client, place, message in clients:
        told.send(client, told.overlay.nearest(*place), message)
    assert {b: str(k.table) for b, k in made.brokers.items()} == {b: str(k.table) for b, k in told.brokers.items()}
