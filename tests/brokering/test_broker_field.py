"""In the field or not, the broker says the same: compiled lists and grids against the pairs asked one by one.

The same random operations are done to two brokers of one scenario, of which one has left the field at the start, and
what they say is compared whole. What the other one matches is what the definitions say (`test_broker_histories` shows
that for its messages too).
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from workbench.brokering.broker import Broker
from workbench.engines.field import gated
from workbench.engines.reference import Reference
from workbench.errors import UpdateError
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
            except UpdateError as error:
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
        assert said == expected
        if rows:
            self.opened = timed
            self.latest = instants[-1] if timed else self.latest + len(rows)

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
