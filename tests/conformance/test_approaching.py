"""Mobiles that come near each other: slices and cells lose no pair, and what looks back sees enough of its past."""

from __future__ import annotations

import warnings
from random import Random
from typing import Any

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from workbench.engines import approaching
from workbench.engines.driving import covers, enough
from workbench.engines.lowering import View
from workbench.model import (
    Scenario,
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
)
from workbench.replay import replay


def within(distance: float) -> Any:
    return own.here.within(distance, other.here, space=location)


FILTERS = {
    "near": lambda d: within(d),
    "latched": lambda d: latch(on=within(d), off=~within(2 * d)),
    "held": lambda d: held(within(d), ticks(4)),
    "held latch": lambda d: held(latch(on=within(d), off=~within(2 * d)), ticks(3)),
    "either": lambda d: within(d) | held(within(2 * d), ticks(5)),
    "not for long": lambda d: within(2 * d) & (now - tau(within(d)) > ticks(3)),
    "not since": lambda d: within(d) & ~(now - pi(within(d)) < ticks(4)),
    "off by another way": lambda d: within(d) & latch(on=within(2 * d), off=within(0)),
    "both denied": lambda d: ~(~within(d) | ~within(2 * d)),
    "discs": lambda d: own.around.overlaps(other.around, space=location),
}


def scenario(filter_: Any, distance: float) -> Scenario:
    spots = {
        "here": region(location, position=column.position),
        "around": region(location, position=disc(column.position, column.radius_m.or_else(distance / 2))),
    }
    bindings = {"presence": {"here": spots["here"]}, "people": {"here": spots["here"]}}
    if "around" in repr(filter_):
        bindings = {"presence": {"around": spots["around"]}, "people": {"around": spots["around"]}}
    return Scenario(
        [location],
        [publications("presence", rows="fixes", regions=bindings["presence"])],
        [subscriptions("people", rows="fixes", regions=bindings["people"], filter=filter_)],
    )


def walks(draw: Random, planar: bool) -> pd.DataFrame:
    unit, names = (1.0, ("x", "y")) if planar else (0.001, ("lon", "lat"))
    rows = []
    for m in range(5):
        at = [draw.randrange(12), draw.randrange(6)]
        every = draw.choice([1, 1, 3])
        for t in range(1 + draw.randrange(5), 60, every):
            if draw.random() < 0.2:
                continue
            at = [a + draw.randrange(-1, 2) for a in at]
            op = "remove" if draw.random() < 0.03 else None
            rows.append({"mobile": m, "t": t, "op": op, **dict(zip(names, (a * unit for a in at), strict=True))})
    return pd.DataFrame(rows)


@pytest.mark.parametrize("name", FILTERS)
def test_pairs_on_the_move_give_the_tables_of_the_reference(name: str) -> None:
    assert sum(agreed(name, seed) for seed in range(4)), "nobody met anybody in any of the histories"


def agreed(name: str, seed: int) -> int:
    """How many timelines two engines agreed on."""
    draw = Random(f"{name} {seed}")
    planar = seed % 2 == 0
    distance = draw.choice([1, 2, 3]) * (1.0 if planar else 111.19492664455873)
    fixes = walks(draw, planar)
    made = scenario(FILTERS[name](distance), distance)
    judge = replay(made, fixes, None, engine="reference")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        asked = replay(made, fixes, None)
    assert_frame_equal(asked.timelines, judge.timelines, check_exact=True)
    assert_frame_equal(asked.notifications, judge.notifications, check_exact=True)
    return len(judge.timelines)


ENOUGH = {"off by another way": False}


@pytest.mark.parametrize("name", FILTERS)
def test_a_past_is_cut_off_only_where_that_does_not_matter(name: str) -> None:
    filter_ = FILTERS[name](2.0)
    made = scenario(filter_, 2.0)
    (binding,) = made.bindings(filter_, made.publications[0])
    view = View("subscription", binding)
    drivers = covers(filter_, view, lambda driver: True)
    assert drivers is not None
    assert enough(filter_, view, drivers) == ENOUGH.get(name, True)


def test_slices_were_used(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    real = approaching.approach
    monkeypatch.setattr(approaching, "approach", lambda *a: used.append(a) or real(*a))
    replay(scenario(within(2.0), 2.0), walks(Random(1), True), None)
    assert used and used[0][2].slices > 10
