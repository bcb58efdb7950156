"""The museum of sections 5 and 7 as a world that can be run (TIP 3, 5 and 7).

A user walks past a cathedral, through a museum, and on to a fountain. Inside, the quality of GPS falls, RFID tags can
be read, an auxiliary service translates them, rules prefer the better data, the museum's information service and map
join; on leaving, all of it reverses.
"""

from __future__ import annotations

from typing import Any

from workbench.model.shapes import box
from workbench.tip.availability import passages
from workbench.tip.broker import broker
from workbench.tip.host import Leave
from workbench.tip.inputs import Disconnect
from workbench.tip.observer import Auxiliary
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
    """The walk, and what the client's broker knew before, inside and after; `inside` is the quality of GPS there."""

    def __init__(self, inside: int = 30) -> None:
        self.world = world = Simulation(first_states().values(), launcher=lambda name, auxiliary: TagReader(TAGS))
        world.start("client", "city", "museum")
        fixes = tuple(Fix(t * SECOND, x, y, inside if abs(x) <= 60 else 95) for t, (x, y) in PATH)
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
