"""In the field or not, the broker says the same: compiled lists and grids against the pairs asked one by one.

The same random operations are done to two brokers of one scenario, of which one has left the field at the start, and
what they say is compared whole. What the other one matches is what the definitions say (`test_broker_histories` shows
that for its messages too).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from workbench import geometry
from workbench.brokering.broker import Broker
from workbench.engines.field import gated
from workbench.engines.reference import Reference
from workbench.errors import ScenarioError, UpdateError
from workbench.model import (
    Scenario,
    Space,
    any_region,
    at_most,
    box,
    column,
    disc,
    held,
    location,
    now,
    other,
    own,
    publications,
    region,
    seconds,
    subscriptions,
    tau,
)
from workbench.model.history import Client
from workbench.scenarios.proximity import scenario as proximity

goods = Space("goods", kind=str, price=float)
STEP = {"planar": 1.0, "wgs84": 0.001}
METRES = {"planar": 1.0, "wgs84": 111.19492664455873}


def scenario(metric: str) -> Scenario:
    """Places and people who can be seen; walkers with three subscriptions each, one of them with a reach of its own."""
    step = METRES[metric]
    here = region(location, position=column.position)
    places = publications(
        "places",
        rows="places",
        regions={
            "room": region(location, position=disc(column.position, column.radius_m.or_else(step))),
            "offer": region(goods, kind=column.kind, price=column.price),
        },
        filter=other.here.within(3 * step, own.room, space=location),
    )
    seen = publications(
        "seen", rows="fixes", regions={"site": here, "offer": region(goods, kind="friend", price=0)}
    )  # fmt: skip
    walker = {"here": here, "wish": region(goods, kind=column.wish, price=at_most(column.budget))}
    near = own.here.within(2 * step, other.site, space=location)
    affordable = other.offer.overlaps(own.wish, space=goods)
    wide = {"round": region(location, position=disc(column.position, column.reach_m.or_else(step)))}
    return Scenario(
        [location, goods],
        [places, seen],
        [
            subscriptions("near", rows="fixes", regions=walker, filter=near),
            subscriptions("wishes", rows="fixes", regions=walker, filter=near & affordable),
            subscriptions("round", rows="fixes", regions=wide, filter=own.round.contains(other.site, space=location)),
        ],
        metric=metric,
    )


ids = st.integers(1, 4)
members = {"places": "places", "seen": "fixes", "near": "fixes", "wishes": "fixes", "round": "fixes"}
steps = st.sampled_from([None, None, 0, 0, 1, 3])
whole = st.tuples(st.integers(0, 5), st.integers(0, 2))
nudges = st.tuples(*[st.sampled_from(["stay", "stay", "up", "down", -1e-9, 1e-6, -0.25, 0.5])] * 2)


def nudged(x: float, way: str | float, step: float) -> float:
    """A coordinate a little aside: the next number above or below, or a part of a step."""
    if isinstance(way, str):
        return {"stay": x, "up": math.nextafter(x, math.inf), "down": math.nextafter(x, -math.inf)}[way]
    return x + way * step


cells = st.fixed_dictionaries(
    {},
    optional={
        "kind": st.sampled_from(["a", "b"]), "wish": st.sampled_from(["a", "b", "friend"]),
        "price": st.integers(0, 2), "budget": st.integers(0, 2),
        "radius_m": st.integers(0, 3), "reach_m": st.integers(0, 4),
    },
)  # fmt: skip
READS = {"places": {"kind", "price", "radius_m"}, "fixes": {"wish", "budget", "reach_m"}}


class InTheFieldOrNot(RuleBasedStateMachine):
    @initialize(metric=st.sampled_from(["planar", "planar", "wgs84"]), remember=st.booleans())
    def start(self, metric: str, remember: bool) -> None:
        self.metric = metric
        self.scenario = scenario(metric)
        self.inside = Broker(self.scenario, remember=remember)
        self.outside = Broker(self.scenario)
        assert self.inside._live.field is not None
        self.outside._live.leave_field()
        self.latest = 0
        self.opened = False
        self.stays = True

    def both(self, name: str, *arguments: Any, step: int | None = None, **options: Any) -> None:
        """The same operation on both: the same messages, or the same refusal."""
        said = []
        if step is not None:
            options["t"] = self.latest + step if self.opened else self.latest + 1 + step
        for broker in (self.inside, self.outside):
            try:
                said.append((getattr(broker, name)(*arguments, **options), None))
            except (UpdateError, ScenarioError) as error:  # the latter: two shapes that the model does not relate
                said.append(([], str(error)))
        assert said[0] == said[1]
        if said[0][1] is None and name != "ask":
            self.opened = step is not None
            self.latest = options.get("t", self.latest + 1)

    def at(self, where: tuple[int, int]) -> tuple[float, float]:
        return where[0] * STEP[self.metric], where[1] * STEP[self.metric]

    def written(self, table: str, row: dict[str, Any]) -> dict[str, Any]:
        unit = METRES[self.metric]
        return {n: v * unit if n.endswith("_m") else v for n, v in row.items() if n in READS[table]}

    @rule(population=st.sampled_from(sorted(members)), id=ids, where=whole, row=cells, step=steps)
    def add(self, population: str, id: int, where: tuple, row: dict, step: int | None) -> None:
        row = self.written(members[population], row)
        self.both("add", population, id, position=self.at(where), step=step, **row)

    @rule(id=ids, where=whole, step=steps)
    def move(self, id: int, where: tuple, step: int | None) -> None:
        self.both("move", ("fixes", id), self.at(where), step=step)

    @rule(id=ids, where=whole)
    def move_by_bare_id(self, id: int, where: tuple) -> None:
        self.both("move", id, self.at(where))

    @rule(id=ids, where=whole, step=steps)
    def move_a_place(self, id: int, where: tuple, step: int | None) -> None:
        self.both("move", ("places", id), self.at(where), step=step)

    @rule(id=ids, where=whole)
    def move_up(self, id: int, where: tuple) -> None:
        self.both("move", ("fixes", id), (*self.at(where), 1.0))

    @rule(id=ids, where=st.tuples(st.sampled_from([float("nan"), float("inf"), 1.0]), st.sampled_from([1e30, "x", 91])))
    def move_nowhere(self, id: int, where: tuple) -> None:
        self.both("move", ("fixes", id), where)

    @rule(
        rows=st.lists(st.tuples(ids, whole, st.sampled_from([0, 0, 1, 2])), max_size=6),
        timed=st.booleans(),
    )
    def move_many(self, rows: list, timed: bool) -> None:
        """A batch says what its rows say one by one."""
        t = self.latest + (0 if self.opened else 1)
        instants = []
        for _, _, later in rows:
            t += later
            instants.append(t)
        where = [self.at(w) for _, w, _ in rows]
        batch = [[id for id, _, _ in rows], instants if timed else None, [x for x, _ in where], [y for _, y in where]]
        try:
            said, refused = self.inside.moves(*batch, table="fixes"), None
        except UpdateError:
            said, refused = [], True
        if refused:
            assert not all(self.outside._is_there(Client("fixes", id)) for id, _, _ in rows)
            return
        expected = []
        for n, (id, _, _) in enumerate(rows):
            expected += self.outside.move(("fixes", id), where[n], **({"t": instants[n]} if timed else {}))
        assert list(said) == expected
        if rows:
            self.opened = timed
            self.latest = instants[-1] if timed else self.latest + len(rows)

    @rule(id=ids, where=whole, ways=st.lists(nudges, max_size=8), timed=st.booleans())
    def linger_at_a_rim(self, id: int, where: tuple, ways: list, timed: bool) -> None:
        """Rims lie on whole numbers: hardly a move, or none at all, can begin or end a match."""
        places = [self.at(where)]
        for dx, dy in ways:
            x, y = places[-1]
            places.append((nudged(x, dx, STEP[self.metric]), nudged(y, dy, STEP[self.metric])))
        for place in places:
            self.both("move", ("fixes", id), place, step=0 if timed and not self.opened else None)
            if timed:
                self.both("advance", self.latest)
                self.opened = False

    @rule(walkers=st.lists(st.tuples(ids, whole, st.lists(nudges, max_size=4)), max_size=3), timed=st.booleans())
    def linger_together(self, walkers: list, timed: bool) -> None:
        """The same in batches, where one client may come several times."""
        rows = []
        for id, where, ways in walkers:
            x, y = self.at(where)
            rows.append((id, x, y))
            for dx, dy in ways:
                x, y = nudged(x, dx, STEP[self.metric]), nudged(y, dy, STEP[self.metric])
                rows.append((id, x, y))
        if not all(self.outside._is_there(Client("fixes", id)) for id, _, _ in rows):
            return
        first = self.latest + 1
        instants = list(range(first, first + len(rows))) if timed else None
        said = self.inside.moves([id for id, _, _ in rows], instants, [x for _, x, _ in rows], [y for *_, y in rows])
        expected = []
        for n, (id, x, y) in enumerate(rows):
            expected += self.outside.move(("fixes", id), (x, y), t=None if instants is None else instants[n])
        assert list(said) == expected
        if rows:
            self.latest, self.opened = self.latest + len(rows), timed

    @rule(population=st.sampled_from(sorted(members)), id=ids, row=cells, step=steps)
    def update(self, population: str, id: int, row: dict, step: int | None) -> None:
        self.both("update", population, id, step=step, **self.written(members[population], row))

    @rule(population=st.sampled_from(sorted(members)), id=ids, step=steps)
    def remove(self, population: str, id: int, step: int | None) -> None:
        self.both("remove", population, id, step=step)

    @rule(step=st.integers(0, 3))
    def advance(self, step: int) -> None:
        self.both("advance", self.latest + step)
        self.latest, self.opened = self.latest + step, False

    @rule(where=whole, row=cells)
    def ask(self, where: tuple, row: dict) -> None:
        self.both("ask", "wishes", position=self.at(where), **self.written("fixes", row))

    @precondition(lambda self: self.stays and self.latest > 8)
    @rule(id=ids, how=st.sampled_from(["filter", "area"]), step=steps)
    def leave(self, id: int, how: str, step: int | None) -> None:
        """What does not fit into the field goes on without it."""
        if how == "filter":
            # Without a memory a filter may not look back.
            self.both("update", "near", id, filter=other.site.within(1, own.here, space=location), step=step)
        else:
            x, y = self.at((1, 1))
            unit = STEP[self.metric]
            self.both("move", ("places", id), box(x, y, x + unit, y + unit), step=step)
        self.stays = self.inside._live.field is not None

    @precondition(lambda self: not self.opened and self.latest)
    @invariant()
    def matches_what_the_definitions_say(self) -> None:
        judge = Reference(self.scenario, self.outside._history, self.outside.clock, self.metric)
        said = {(repr(p), repr(s)) for p, s in judge.M(self.latest)}
        assert self.inside.matches == self.outside.matches == said
        assert self.inside.notifications.equals(self.outside.notifications)


InTheFieldOrNot.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestInTheFieldOrNot = InTheFieldOrNot.TestCase


def _filtered(filter: Any) -> Scenario:
    made = proximity()
    (mobiles,) = made.subscriptions
    from dataclasses import replace

    return Scenario([location], made.publications, [replace(mobiles, filter=filter)])


inside = own.here.enclosed_by(other.reach, space=location)


@pytest.mark.parametrize(
    ("filter", "fits"),
    [
        (inside, True),
        (own.here.within(5, other.reach, space=location), True),
        (other.reach.contains(own.here, space=location) & own.here.within(9, other.reach, space=location), True),
        (~inside, False),
        (inside | inside, False),
        (held(inside, seconds(3)), False),
        (own.here.nearest(other.reach, space=location), False),
        (inside & (now - tau(inside) > seconds(2)), False),
        (own.here.enclosed_by(any_region("places.reach"), space=location), False),
        (own.here.mostly_in(other.reach, degree=0.5, space=location), False),
    ],
)
def test_discs_and_what_no_position_enters_are_kept_in_the_field(filter: Any, fits: bool) -> None:
    assert (gated(_filtered(filter)) is not None) == fits
    assert (Broker(_filtered(filter))._live.field is not None) == fits


def test_points_that_no_cell_is_small_enough_for_are_found():
    """Two points match only where they are the same: such publications lie in no cell but everywhere."""
    here = {"here": region(location, position=column.position)}
    made = Scenario(
        [location],
        [publications("sites", rows="places", regions=here)],
        [subscriptions("people", rows="fixes", regions=here, filter=own.here.contains(other.here, space=location))],
        metric="planar",
    )
    assert gated(made) is not None
    broker = Broker(made)
    broker.add("sites", "a", position=(2.0, 3.0))
    broker.add("people", 1, position=(2.0, 3.5))
    assert [(m.kind, m.publications) for m in broker.move(1, (2.0, 3.0))] == [("match", {"a"})]
    assert [(m.kind, m.publications) for m in broker.move(1, (2.0, 3.5))] == [("unmatch", {"a"})]


@pytest.mark.parametrize("metric", ["planar", "wgs84"])
@pytest.mark.parametrize("remember", [True, False])
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_long_walks_among_many_discs_are_what_distances_say(metric: str, remember: bool, data: st.DataObject) -> None:
    """One by one, in batches and at common instants, with places that come, go and change between."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    unit, radius = STEP[metric], METRES[metric]
    broker = Broker(
        proximity(radius_m=radius * data.draw(st.sampled_from([0.3, 1.0, 2.5]))), metric=metric, remember=remember
    )
    sites: dict[int, tuple[float, float, float]] = {}
    at: dict[int, tuple[float, float]] = {}
    t = 1
    for id in range(6):
        at[id] = tuple((rng.uniform(0, 8, 2) * unit).tolist())
        broker.add("mobiles", id, t=t, position=at[id])
    broker.advance(t)
    told: list[tuple[Any, ...]] = []
    expected: list[tuple[Any, ...]] = []
    matched: set[tuple[int, int]] = set()
    near = geometry.planar_within if metric == "planar" else None

    def apart(site: tuple[float, float, float], place: tuple[float, float]) -> bool:
        if near is not None:
            return near(site[0], site[1], 0.0, *place, 0.0, site[2])
        return geometry.geodesic_within(site[0], site[1], *place, site[2])

    def look(now: int) -> None:
        nonlocal matched
        seen = {(p, m) for p, site in sites.items() for m, place in at.items() if apart(site, place)}
        expected.extend(sorted((now, "unmatch", p, m) for p, m in matched - seen))
        expected.extend(sorted((now, "match", p, m) for p, m in seen - matched))
        matched = seen

    unread: list[Any] = []

    def hear(messages: Any) -> None:
        """Some are read later, when places have changed; those of batches are made only then."""
        unread.append(messages)
        if rng.random() < 0.5:
            told.extend((m.t, m.kind, p, m.subscription) for each in unread for m in each for p in m.publications)
            unread.clear()

    for _ in range(data.draw(st.integers(1, 6))):
        for _ in range(data.draw(st.integers(0, 3))):
            id = int(rng.integers(0, 12))
            x, y = (rng.integers(0, 9, 2) * unit).tolist()
            t += 1
            if id in sites and rng.random() < 0.3:
                hear(broker.remove("places", id))
                del sites[id]
            else:
                cells = {"position": (x, y), "radius_m": float(rng.integers(0, 4)) * radius}
                hear((broker.update if id in sites else broker.add)("places", id, **cells))
                sites[id] = (x, y, cells["radius_m"])
            look(t)
        rows = []
        for _ in range(data.draw(st.integers(1, 40))):
            id, pace = int(rng.integers(0, 6)), rng.choice([0.0, 0.01, 0.2, 2.0])
            x, y = np.clip(np.array(at[id]) + rng.normal(0, pace, 2) * unit, 0, 8 * unit)
            where = (round(x / unit) * unit, round(y / unit) * unit) if rng.random() < 0.1 else (float(x), float(y))
            at[id] = where
            rows.append((id, *where))
            t += 1
            look(t)
        if rng.random() < 0.4:
            for id, x, y in rows:
                hear(broker.move(("fixes", id), (x, y)))
        else:
            instants = None if rng.random() < 0.5 else np.arange(t - len(rows) + 1, t + 1)
            who, x, y = zip(*rows, strict=True)
            hear(broker.moves(list(who), instants, np.array(x), np.array(y)))
            hear(broker.advance(t))
    told.extend((m.t, m.kind, p, m.subscription) for each in unread for m in each for p in m.publications)
    assert sorted(told) == sorted(expected)
    assert broker.matches == matched
    assert sorted(broker.notifications.itertuples(index=False, name=None)) == sorted(expected)


def test_messages_of_a_batch_carry_what_was_published_then():
    broker = Broker(scenario("planar"))
    broker.add("places", "cafe", position=(0, 0), kind="a", price=2, radius_m=1)
    broker.add("places", "bar", position=(5, 0), kind="a", price=1, radius_m=1)
    broker.add("round", 7, position=(9, 9), reach_m=2)
    told = broker.moves([7, 7], None, [0.0, 5.0], [0.0, 0.0])
    kept = broker.moves([7], None, [9.0], [9.0])
    broker.update("places", "cafe", price=3)
    broker.remove("places", "bar")
    again = broker.moves([7], None, [0.0], [0.0])
    assert [(m.kind, m.contents[0].publication, m.contents[0].cells["price"]) for m in told] == [
        ("match", "places/cafe", 2), ("unmatch", "places/cafe", 2), ("match", "places/bar", 1)
    ]  # fmt: skip
    assert [(m.kind, m.contents[0].cells["price"]) for m in [*kept, *again]] == [("unmatch", 1), ("match", 3)]
    assert told + kept == [*told, *kept] and list(kept) + told == [*kept, *told]


def test_a_batch_inside_of_a_larger_operation_is_taken_back_with_it():
    broker = Broker(proximity(radius_m=2))
    broker.add("places", "cafe", position=(0, 0))
    broker.add("mobiles", 7, position=(9, 0))
    for moved in (
        lambda: broker.moves([7, 7], None, [5.0, 0.0], [0.0, 0.0]),
        lambda: broker.moves([7, 7], [4, 5], [0.0, 1.0], [0.0, 0.0]),
        lambda: broker.move(7, (0.0, 0.0)),
    ):
        with pytest.raises(UpdateError), broker.whole():  # noqa: PT012 - both of them are the operation
            assert len(moved()) == 1
            broker.remove("places", "elsewhere")
        assert broker.matches == set() and broker.now == 2 and broker.notifications.empty


def test_positions_are_remembered_while_room_is_made_for_newcomers():
    broker = Broker(proximity(radius_m=9))
    for n in range(40):
        broker.add("places", f"place {n}", position=(n % 5, n // 5))
    broker.add("mobiles", 0, position=(0, 0))
    broker.move(0, (1.0, 0.0))
    for n in range(1, 31):  # each with a list of forty: more than there is room for at the start
        broker.add("mobiles", n, position=(0, 0))
    began = broker.now
    for n in range(5):
        broker.move(0, (float(n), 0.5))
    broker.moves([0, 0], None, [7.0, 8.0], [0.5, 0.5])
    client = Client("fixes", 0)
    places = [broker._history.state(client, began + n).values["position"] for n in range(1, 8)]
    assert [(place.x, place.y) for place in places] == [(float(n), 0.5) for n in (0, 1, 2, 3, 4, 7, 8)]


def test_batches_take_any_kind_of_row_and_refuse_what_is_none():
    table = np.array([[7.0, 5.0, 0.0], [7.0, 0.0, 0.0]])
    frozen = np.array([0.0, 0.0])
    frozen.setflags(write=False)
    for ids, x, y in (
        (table[:, 0].astype(int), table[:, 1], frozen),
        ([7, 7], [5, 0], (0, 0)),
        (pd.Series([7, 7]), pd.Series([5.0, 0.0]), pd.Series([0, 0])),
    ):
        broker = Broker(proximity(radius_m=2))
        broker.add("places", "cafe", position=(0, 0))
        broker.add("mobiles", 7, position=(9, 0))
        assert [(m.t, m.kind) for m in broker.moves(ids, None, x, y)] == [(4, "match")]
        with pytest.raises(UpdateError):
            broker.moves([7], None, [[1.0, 2.0]], [0.0])
        assert broker.now == 4
