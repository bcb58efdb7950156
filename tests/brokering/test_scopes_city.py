"""Districts, a mall and two kinds of drivers: distance and visibility decide together, on every engine and live."""

from __future__ import annotations

from typing import Any

import pytest

from workbench.brokering.scopes.city import FIXES, PLACES, city, fuel, near, nearest_fuel
from workbench.brokering.scopes.live import ScopedBroker
from workbench.brokering.scopes.scoped import scoped
from workbench.replay import replay

NEAR = {
    ("shoes", "ann"), ("cinema", "ann"),                          # inside the mall; its ways are one's own
    ("cinema", "bob"), ("kiosk", "bob"), ("flyer", "bob"),        # the mall shows the street its cinema, not its shoes
    ("cinema", "cid"), ("kiosk", "cid"),                          # another district: no flyers
    ("kiosk", "pia"), ("cinema", "pia"),
    ("kiosk", "tom"), ("cinema", "tom"), ("depot", "tom"),        # the depot is near pia too, who does not see it
}  # fmt: skip
NEAR |= {("kiosk", "ann"), ("flyer", "ann")}                       # and from above into the mall everything comes


def pairs(scenario: Any, places: Any, engine: str) -> set[tuple[Any, Any]]:
    lines = replay(scenario, FIXES.drop(columns="scope"), places, engine=engine).collect().timelines
    return set(zip(lines["publication"], lines["subscription"], strict=True))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("engine", ["reference", "local"])
def test_who_is_near_and_may_see_it_hears_of_it(engine: str) -> None:
    assert pairs(scoped(near(100), city()), PLACES, engine) == NEAR
    flat = pairs(near(100), PLACES, engine)
    assert flat > NEAR and ("depot", "pia") in flat and ("flyer", "cid") in flat


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("engine", ["reference", "local"])
def test_the_nearest_is_the_nearest_that_one_sees(engine: str) -> None:
    got = pairs(scoped(nearest_fuel(), city()), fuel(), engine)
    assert got == {("pump", name) for name in ("ann", "bob", "cid", "pia")} | {("depot", "tom")}
    assert ("depot", "pia") in pairs(nearest_fuel(), fuel(), engine)


def test_live_the_same_and_a_private_driver_turns_professional() -> None:
    live = ScopedBroker(near(100), city())
    for row in PLACES.itertuples():
        live.add("places", row.place, t=1, kind=row.kind, position=(row.x, row.y))
    for row in FIXES[FIXES["t"] == 1].itertuples():
        live.add("people", row.mobile, t=1, position=(row.x, row.y))
    live.broker.advance(1)
    assert live.broker.matches == NEAR
    assert [str(message) for message in live.change(city().join("pia", "Professional"))] == ["t=2 pia: match depot"]
    assert [str(message) for message in live.update("people", "ann", position=(900.0, 0.0))] == [
        "t=3 ann: unmatch cinema, flyer, kiosk, shoes"
    ]


def test_live_the_nearest_is_the_nearest_that_one_sees() -> None:
    live = ScopedBroker(nearest_fuel(), city())
    for row in fuel().itertuples():
        live.add("stations", row.place, kind=row.kind, position=(row.x, row.y))
    for name in ("pia", "tom"):
        live.add("drivers", name, position=(120.0, 0.0))
    assert live.broker.matches == {("pump", "pia"), ("depot", "tom")}
    live.change(city().join("pia", "Professional"))
    assert live.broker.matches == {("depot", "pia"), ("depot", "tom")}
