"""Filters over crossings, from files, give what the general way gives."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from workbench.engines import crossed
from workbench.model import (
    Scenario,
    Space,
    any_region,
    column,
    held,
    hours,
    location,
    minutes,
    now,
    other,
    own,
    pi,
    publications,
    region,
    subscriptions,
    tau,
    visits,
)
from workbench.replay import replay
from workbench.scenarios import named

shop = Space("shop", kind=str, price=float) | location


def scenario(extra, radius_m: float = 200) -> Scenario:
    """People near a shop, with something more in their filter."""
    shops = publications(
        "shops",
        rows="places",
        regions={"site": region(shop, kind=column.category, price=column.price, position=column.position)},
        filter=other.here.within(radius_m, own.site, space=location),
    )
    people = subscriptions(
        "people",
        rows="fixes",
        regions={"here": region(location, position=column.position), "wish": region(shop, kind="coffee")},
        filter=own.here.within(radius_m, other.site, space=location) & extra,
    )
    return Scenario([location, shop], [shops], [people])


entered = own.here.within(60, any_region("shops.site", kind="coffee"), space=location)
EXTRA = {
    "attributes": other.site.overlaps(own.wish, space=shop),
    "a price": other.site["price"] < 50,
    "not entered for long": now - pi(entered) > minutes(30),
    "entered now": entered,
    "not entered now": ~entered,
    "entered once, but not lately": (now - tau(entered) > hours(1)) & (other.site["price"] < 70),
    "often": visits(entered, last=3).count() >= 3,
    "nobody of that kind": now - tau(own.here.within(60, any_region("shops.site", kind="tea house"), space=location))
    > hours(1),
}


def world(seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    n = 1_500
    here, there = rng.integers(0, 50, (2, n)) * 25.0, rng.integers(0, 50, (2, 15)) * 25.0
    t = np.sort(rng.permutation(2 * n)[:n] - n // 2) * 60
    fixes = pd.DataFrame({"mobile": rng.integers(0, 9, n), "t": t, "x": here[0], "y": here[1]})
    places = pd.DataFrame({"place": np.arange(15)[::-1], "x": there[0], "y": there[1]})
    places = places.assign(category=rng.choice(["coffee", "tea"], 15), price=rng.integers(20, 90, 15) * 1.0)
    if seed % 2:
        fixes["mobile"] = "m" + fixes["mobile"].astype(str)
        fixes["t"] = pd.to_datetime(fixes["t"], unit="s", utc=True).dt.as_unit("ms")
    return fixes, places


def both(made: Scenario, fixes: pd.DataFrame, places: pd.DataFrame, folder, until=None) -> None:
    fixes.to_parquet(folder / "fixes.parquet", index=False)
    found = crossed.run(made, folder / "fixes.parquet", places, until=until)
    whole = replay(made, fixes, places, until=until)
    assert found is not None
    pd.testing.assert_frame_equal(found.timelines, whole.timelines)
    assert len(whole.timelines) > 20
    assert {name: found.counts[name] for name in ("rows_in", "instants")} == {
        name: whole.metrics[name] for name in ("rows_in", "instants")
    }


@pytest.mark.parametrize("extra", EXTRA)
@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_asked_beyond_being_near(extra, seed, tmp_path):
    both(scenario(EXTRA[extra]), *world(seed), tmp_path)


@pytest.mark.parametrize("seed", [2, 3])
def test_coffee(seed, tmp_path):
    fixes, places = world(seed)
    made = named("coffee")(radius_m=250, pause_h=2, door_m=40)
    both(made, fixes, places, tmp_path)
    both(made, fixes, places, tmp_path, until=fixes["t"].iloc[700])


def test_what_depends_on_where_the_mobile_is_takes_the_general_way(tmp_path):
    fixes, places = world(4)
    fixes.assign(wish="coffee").to_parquet(tmp_path / "fixes.parquet", index=False)
    assert crossed.run(named("coffee")(), tmp_path / "fixes.parquet", places) is None  # a wish may change
    fixes.to_parquet(tmp_path / "fixes.parquet", index=False)
    for extra in (held(entered, minutes(5)), now - tau(own.here.within(99, other.site, space=location)) > hours(1)):
        assert crossed.run(scenario(extra), tmp_path / "fixes.parquet", places) is None
    coming = places.assign(t=fixes["t"].iloc[9])
    assert crossed.run(named("coffee")(), tmp_path / "fixes.parquet", coming) is None
