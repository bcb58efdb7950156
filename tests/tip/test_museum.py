"""The museum of sections 5 and 7 from end to end, event by event.

A user walks past a cathedral, through a museum, and on to a fountain. Inside, the quality of GPS falls, RFID tags can
be read, an auxiliary service translates them, rules prefer the better data, the museum's information service and map
join; on leaving, all of it reverses.
"""

from __future__ import annotations

from typing import Any

import pytest

from workbench.model.shapes import box
from workbench.tip.availability import passages
from workbench.tip.broker import broker
from workbench.tip.host import Leave
from workbench.tip.inputs import Disconnect
from workbench.tip.observer import Auxiliary
from workbench.tip.recording import read, replayed, written
from workbench.tip.services import (
    Display,
    Fix,
    History,
    Information,
    ItemService,
    LocationService,
    MapClient,
    MapServer,
    Sight,
    TagReader,
    TagService,
)
from workbench.tip.simulated import Simulation
from workbench.tip.state import State

SECOND = 1_000_000
PLAN = (-60.0, -60.0, 60.0, 60.0)
PATH = [(t, (-300.0 + 10 * t, 0.0)) for t in range(61)]
TAGS = {f"tag{t}": place for t, place in PATH if abs(place[0]) <= 60}
READER = Auxiliary("reader", "Location", takes="rfid", gives="gps", quality=90)
CITY = (
    Sight("cathedral", "Sight", -200, 0, 30, "history", "old"),
    Sight("fountain", "Sight", 200, 0, 30, "art", "wet"),
)
EXHIBITS = (
    Sight("vase", "Exhibit", -20, 0, 15, "art", "blue"),
    Sight("coin", "Exhibit", 30, 0, 15, "history", "round"),
)
LIKES = ("art", "history")


def first_states() -> dict[str, State]:
    made = [broker("client", auxiliaries=(READER,)), broker("city"), broker("museum")]
    return {state.name: state for state in made}


class Day:
    """The walk, and what the client's broker knew before, inside and after."""

    def __init__(self) -> None:
        self.world = world = Simulation(first_states().values(), launcher=lambda name, auxiliary: TagReader(TAGS))
        world.start("client", "city", "museum")
        fixes = tuple(Fix(t * SECOND, x, y, 30 if abs(x) <= 60 else 95) for t, (x, y) in PATH)
        world.join("gps", "client", LocationService(fixes)).join("map", "client", MapClient())
        world.join("display", "client", Display(("Sight", "Exhibit"))).join("history", "client", History())
        for name, sights in (("city", CITY), ("museum", EXHIBITS)):
            world.join(f"{name} information", name, Information(sights, LIKES))
            world.join(f"{name} items", name, ItemService(sights[0].item_type, {s.id: s.text for s in sights}))
        world.join("city map", "city", MapServer("city")).join("museum map", "museum", MapServer("plan", area=PLAN))
        world.connect("client", "city")
        self.snapshots: dict[str, Any] = {}
        self.passages = passages({"museum": box(*PLAN)}, PATH)
        for t, kind, _ in self.passages:
            world.run(t * SECOND - SECOND // 2)
            self.snapshot("before" if kind == "match" else "inside")
            if kind == "match":
                readings = tuple((at * SECOND + 1000, f"tag{at}") for at, _ in PATH if f"tag{at}" in TAGS)
                world.join("rfid", "client", TagService(readings)).connect("client", "museum")
            else:
                world.say("rfid", Leave()).input("client", Disconnect("museum"))
        world.run(62 * SECOND)
        self.snapshot("after")

    def snapshot(self, name: str) -> None:
        state = self.world.brokers["client"]
        self.snapshots[name] = {
            "services": {n: (s.active, s.subscriptions, s.description) for n, s in state.services.items()},
            "brokers": set(state.neighbours),
            "map": self.world.hosts["map"].memory.using,
        }


@pytest.fixture(scope="module")
def day() -> Day:
    return Day()


def test_the_museum_is_entered_and_left_where_its_area_begins_and_ends(day: Day) -> None:
    assert [(t, kind) for t, kind, _ in day.passages] == [(24, "match"), (37, "unmatch")]


def test_the_better_location_is_used_all_the_time(day: Day) -> None:
    used = [(event.time // SECOND, event.quality) for event in day.world.received("map", "Location")]
    assert {q for t, q in used if t < 24} == {95} == {q for t, q in used if t > 37}
    assert {q for t, q in used if 26 <= t < 36} == {90}
    assert len({t for t, _ in used}) == 61, "there is a position every second, whoever gives it"
    places = [x for _, x, _ in day.world.hosts["history"].memory]
    assert places == sorted(places), "no position is older than the one before"


def test_the_auxiliary_service_lives_as_long_as_it_is_needed(day: Day) -> None:
    lines = [(t // SECOND, text) for t, text in day.world.log if "auxiliary/reader" in text]
    assert [(24 <= t <= 25, "starts" in text) for t, text in lines if "starts" in text] == [(True, True)]
    assert [36 <= t <= 38 for t, text in lines if "stops" in text] == [True]
    assert "auxiliary/reader" in day.snapshots["inside"]["services"]
    assert day.world.hosts["auxiliary/reader"].ended


def test_the_museum_s_information_and_map_join_and_leave(day: Day) -> None:
    shown = day.world.hosts["display"].memory.shown
    assert list(dict.fromkeys(id for _, id in shown)) == ["cathedral", "vase", "coin", "fountain"]
    assert all(24 <= t / SECOND < 38 for t, id in shown if id in ("vase", "coin"))
    assert [day.snapshots[when]["map"] for when in ("before", "inside", "after")] == ["city -1 0", "plan", "city 0 0"]
    told = [event.type for event in day.world.hosts["museum information"].received if event.category == "system"]
    assert told[0] == "Stalled" and told[-1] == "Stalled" and "Subscribed" in told


def test_leaving_reverses_everything(day: Day) -> None:
    before, inside, after = (day.snapshots[when] for when in ("before", "inside", "after"))
    assert before["services"] == after["services"] and before["brokers"] == after["brokers"] == {"city"}
    assert inside["brokers"] == {"city", "museum"} and inside["services"] != before["services"]


def test_nobody_learns_a_name_and_the_day_can_be_replayed(day: Day) -> None:
    for host in day.world.hosts.values():
        assert not any(event.publisher for event in host.received) and not host.faults
    stored = read(written(day.world.recording))
    assert replayed(first_states(), stored) == day.world.recording
