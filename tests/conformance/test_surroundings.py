"""Filters that look at third parties which move: the live broker says what the reference says, and asks few pairs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.living import done, in_order, lived, notified, rows_of
from tests.conformance.strategies import Case
from workbench import tables
from workbench.brokering.broker import Broker
from workbench.engines.nearby import Box, Nearby
from workbench.engines.remembered import Remembered
from workbench.model import (
    Enumerated,
    Scenario,
    Space,
    any_region,
    column,
    disc,
    held,
    latch,
    location,
    now,
    other,
    own,
    pi,
    publications,
    region,
    subscriptions,
    tau,
    ticks,
    visits,
)
from workbench.model.filters import Filter
from workbench.replay import replay
from workbench.scenarios import dispatch

status = Enumerated("status", ("free", "busy"))
unit = Space("unit", status=status) | location
line = Space("line", mark=float)


def nearest(k: int = 1, **among: Any) -> Filter:
    return own.here.nearest(other.here, space=location, k=k, **among)


def within(d: float) -> Filter:
    return own.here.within(d, other.here, space=location)


def met(d: float) -> Any:
    return own.here.within(d, any_region("cars.here"), space=location)


def crowd(d: float) -> Any:
    return any_region("cars.here", status="free").within(d, other.here, space=location)


FILTERS: dict[str, Callable[[float], Filter]] = {
    "nearest": lambda d: nearest(),
    "two nearest": lambda d: nearest(k=2),
    "nearest free": lambda d: nearest(k=2, among="cars.here", status="free"),
    "nearest of all": lambda d: nearest(among="drivers.here") | nearest(k=3),
    "nearest from the other side": lambda d: other.here.nearest(own.here, space=location),
    "nearest and near": lambda d: within(3 * d) & nearest(k=2),
    "not nearest": lambda d: within(3 * d) & ~nearest(k=2),
    "nearest disc": lambda d: own.around.nearest(other.around, space=location, k=2),
    "disc nearest to a point": lambda d: own.here.nearest(other.around, space=location),
    "nearest mark": lambda d: own.sign.nearest(other.sign, space=line),
    "nearest for a while": lambda d: now - tau(nearest()) >= ticks(3),
    "nearest held": lambda d: held(nearest(), ticks(3)),
    "nearest until far": lambda d: latch(nearest(), ~within(2 * d)),
    "often nearest": lambda d: visits(nearest(k=2), last=2).mean() >= ticks(2),
    "not alone": lambda d: within(4 * d) & met(d),
    "both alone": lambda d: ~met(d) & ~crowd(d),
    "crowded": crowd,
    "in a disc": lambda d: own.here.enclosed_by(any_region("cars.around"), space=location),
    "met a while ago": lambda d: now - tau(met(d)) > ticks(3),
    "left": lambda d: (now - pi(crowd(d)) <= ticks(4)) & within(5 * d),
    "met twice": lambda d: visits(met(d), last=2).mean() >= ticks(2),
    "met lately": lambda d: visits(crowd(d), window=ticks(6)).count() >= 1,
    "company held": lambda d: held(met(d) & within(4 * d), ticks(3)),
    "company until alone": lambda d: latch(crowd(d), ~met(d)),
    "met who is nearest": lambda d: held(~met(d), ticks(2)) & nearest(),
}


def scenario(filter: Filter, publishers: Filter | None = None) -> Scenario:
    """Mobiles that publish where they are and subscribe to others."""
    regions = {
        "here": region(unit, position=column.position, status=column.status.or_else("free")),
        "around": region(location, position=disc(column.position, column.radius_m.or_else(0.0))),
        "sign": region(line, mark=column.mark.or_else(0.0)),
    }
    theirs = {} if publishers is None else {"filter": publishers}
    return Scenario(
        [location, unit, line],
        [publications("cars", rows="fixes", regions=regions, **theirs)],
        [subscriptions("drivers", rows="fixes", regions=regions, filter=filter)],
    )


def walks(draw: Random, planar: bool) -> pd.DataFrame:
    """Mobiles on a grid, where many are equally far, that go and come back; on the globe some near the date line."""
    names, size = (("x", "y"), 1.0) if planar else (("lon", "lat"), 0.001)
    west = 0.0 if planar else draw.choice([8.0, 179.997])
    rows = []
    for m in range(draw.choice([3, 4, 5])):
        at = [draw.randrange(8), draw.randrange(4)]
        for t in range(1 + draw.randrange(4), 15):
            if draw.random() < 0.4:
                continue
            at = [a + draw.randrange(-1, 2) for a in at] if draw.random() < 0.9 else [draw.randrange(60), 3]
            x, y = at[0] * size + west, at[1] * size
            row = {"mobile": m, "t": t, "op": "remove" if draw.random() < 0.1 else None}
            row |= dict(zip(names, (x if x <= 180 else x - 360, y), strict=True))
            row |= {"status": draw.choice(["free", "busy", None]), "mark": draw.choice([None, 0.0, 1.0, 3.0])}
            rows.append({**row, "radius_m": draw.choice([None, 0.0, size * (1 if planar else 1.2e5)])})
    return pd.DataFrame(rows or [{"mobile": 0, "t": 1, names[0]: 0.0, names[1]: 0.0}])


def drawn(name: str, seed: int) -> Case:
    draw = Random(f"{name} {seed}")
    planar = draw.random() < 0.6
    d = draw.choice([1, 2]) * (1.0 if planar else 111.19492664455873)
    publishers = FILTERS[draw.choice(list(FILTERS)[:8])](d) if draw.random() < 0.2 else None
    return Case(scenario(FILTERS[name](d), publishers), walks(draw, planar), pd.DataFrame(), None)


def judged(case: Case) -> list[tuple[Any, ...]]:
    return notified(replay(case.scenario, case.fixes, None, engine="reference").notifications)


@pytest.mark.parametrize("name", FILTERS)
def test_every_filter_says_something_among_mobiles_on_the_move(name: str) -> None:
    said = set()
    for seed in range(9):
        case = drawn(name, seed)
        judge = judged(case)
        data = tables.inputs(case.scenario, case.fixes, None)
        broker, messages = lived(case, data)
        assert notified(broker.notifications) == judge, seed
        assert in_order(rows_of(messages)) == in_order(judge), seed
        assert broker._live.surroundings is not None, "it was given up"
        said |= {row[1] for row in judge}
    assert said == {"match", "unmatch"}


class Stop(Exception):
    """An operation is broken off."""


@settings(max_examples=40)
@given(st.sampled_from(sorted(FILTERS)), st.integers(0, 2**32))
def test_what_is_asked_or_taken_back_leaves_no_trace(name: str, seed: int) -> None:
    case, draw = drawn(name, seed), Random(seed)
    data = tables.inputs(case.scenario, case.fixes, None)
    updates, _ = tables.changes(data)
    broker = Broker(case.scenario, clock=data.clock, metric=data.metric)
    for t, changes in updates.items():
        if broker.now is not None:
            broker.advance(data.clock.shown(max(broker.now, t - 1)))
            broker.ask("drivers", 99, position=(draw.randrange(8), draw.randrange(4)))
            with suppress(Stop), broker.whole():
                for change in draw.sample(changes, len(changes)):
                    done(broker, change, data.clock.shown(t))
                broker.advance(data.clock.shown(t + draw.randrange(3)))
                raise Stop
            assert broker.now < t
        for change in changes:
            done(broker, change, data.clock.shown(t))
    broker.advance(data.clock.shown(data.instants[1]))
    assert notified(broker.notifications) == judged(case)


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_the_nearest_free_units_on_the_move(seed: int) -> None:
    draw = Random(seed)
    fixes = walks(draw, True).drop(columns=["mark", "radius_m"])
    places = pd.DataFrame([{"place": n, "x": draw.randrange(9) * 1.0, "y": draw.randrange(4) * 1.0} for n in range(3)])
    case = Case(dispatch.scenario(radius_m=4, units=draw.choice([1, 2])), fixes, places, None)
    judge = replay(case.scenario, fixes, places, engine="reference")
    assert notified(lived(case)[0].notifications) == notified(judge.notifications)


# -- how many pairs are asked ----------------------------------------------------------------------------------


def asked(monkeypatch: pytest.MonkeyPatch, made: Scenario, far: int) -> list[int]:
    """How many pairs each of some moves asks, with so many mobiles far away."""
    broker, draw = Broker(made), Random(1)
    for id in range(12 + far):
        at = (id % 4 * 10.0, id // 4 * 10.0) if id < 12 else (1e5 + id % 100 * 10, 1e5 + id // 100 * 10)
        for population in ("cars", "drivers"):
            broker.add(population, id, position=at, t=1)
    broker.advance(1)
    broker.advance(20)
    pairs: list[object] = []
    definition = Remembered.pair_matches

    def counted(self: Remembered, *pair: Any) -> bool:
        pairs.append(pair)
        return definition(self, *pair)

    found = []
    with monkeypatch.context() as patch:
        patch.setattr(Remembered, "pair_matches", counted)
        for _ in range(30):
            pairs.clear()
            broker.move(draw.randrange(12), (draw.uniform(0, 30), draw.uniform(0, 20)))
            found.append(len(pairs))
    return found


LOCAL = [name for name in FILTERS if "near" in name or name in ("crowded", "left", "not alone", "company held")]
WIDE = {"nearest of all", "nearest for a while", "nearest until far", "often nearest", "crowded", "nearest mark"}
"""these have no condition that says which pairs can match: those who moved are asked about with everybody"""


@pytest.mark.parametrize("name", [name for name in LOCAL if name not in WIDE])
def test_a_move_asks_as_many_pairs_however_many_are_far_away(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = scenario(FILTERS[name](10.0))
    few = asked(monkeypatch, made, 10)
    assert few == asked(monkeypatch, made, 100)
    assert 0 < max(few) <= 12 * 11


@pytest.mark.parametrize("name", ["nearest for a while", "nearest until far", "often nearest", "crowded"])
def test_where_nothing_says_which_pairs_can_match_only_the_own_pairs_grow(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = [asked(monkeypatch, scenario(FILTERS[name](10.0)), far) for far in (10, 60)]
    assert all(many - few <= 2 * 50 * 12 for few, many in zip(*counts, strict=True))


# -- the index -------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32))
def test_many_small_boxes_are_found_as_by_looking_at_all(seed: int) -> None:
    draw = Random(seed)
    nearby: Nearby[int] = Nearby()
    there: dict[int, Box | None] = {}
    for _ in range(draw.choice([10, 80, 300])):
        key, x, y = draw.randrange(100), draw.uniform(-50, 50), draw.uniform(-50, 50)
        if draw.random() < 0.2:
            nearby.drop(key)
            there.pop(key, None)
        else:
            wide = draw.choice([0.0, 1e-9, 1.0, 30.0])
            there[key] = None if draw.random() < 0.05 else Box(x, x + wide, y, y + wide / 2)
            nearby.put(key, there[key])
    for _ in range(10):
        x, y, wide = draw.uniform(-60, 60), draw.uniform(-60, 60), draw.choice([0.0, 5.0, 80.0])
        found = nearby.touching(Box(x, x + wide, y, y + wide))
        assert found == {
            key
            for key, box in there.items()
            if box is None or (box.x_min <= x + wide and x <= box.x_max and box.y_min <= y + wide and y <= box.y_max)
        }


