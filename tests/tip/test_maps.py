"""Map A and map B: one service category, what each of them offers, and the route planner of map B (TIP 3, 6)."""

from __future__ import annotations

from typing import Any

from tests.tip.worlds import Quiet
from workbench.tip.bodies import body
from workbench.tip.broker import broker
from workbench.tip.descriptions import ServiceDescription
from workbench.tip.host import Leave, Publish
from workbench.tip.inputs import Foreground
from workbench.tip.maps import ZOOMS, MapClient, MapServer, MapState
from workbench.tip.routes import RoutePlanner, Way
from workbench.tip.rules import Advertisement
from workbench.tip.services import Fix, Information, LocationService, Sight
from workbench.tip.simulated import Simulation

SECOND = 1_000_000
INPUTS = ("Zoom", "Select", "SelectStart", "SelectEnd")
A, B = MapClient(), MapClient(selecting=True)
HERE = (110.0, 20.0)
BLOCK = RoutePlanner((((0, 0), (400, 0), (400, 300)), ((0, 0), (0, 300), (400, 300)), ((9000, 0), (9000, 99))))


class City:
    """A user's device with map A, map B and a finger, and a server with what is given."""

    def __init__(self, **services: Any) -> None:
        finger = ServiceDescription("input", advertisements=tuple(Advertisement(t, "user-input") for t in INPUTS))
        self.made = Simulation([broker("client"), broker("server")]).start("client", "server")
        self.made.join("location", "client", LocationService(tuple(Fix(n * SECOND, *HERE) for n in range(1, 60))))
        self.made.join("a", "client", A).join("b", "client", B).join("finger", "client", Quiet(finger))
        for name, behaviour in services.items():
            self.made.join(name, "server", behaviour)
        self.made.connect("client", "server")
        self.wait()

    def wait(self) -> City:
        self.made.run(self.made.now + 2 * SECOND)
        return self

    def touch(self, map: str, type: str, **said: float) -> City:
        """The user has a map before them, and touches it."""
        self.made.input("client", Foreground(map))
        self.made.say("finger", Publish(type, body(**said)))
        return self.wait()

    def select(self, map: str, start: tuple[float, float], end: tuple[float, float]) -> City:
        self.touch(map, "SelectStart", x=start[0], y=start[1])
        return self.touch(map, "SelectEnd", x=end[0], y=end[1])

    def __getitem__(self, map: str) -> MapState:
        known: MapState = self.made.hosts[map].memory
        return known

    def sent(self, type: str, sender: str) -> int:
        messages = self.made.messages
        return int(((messages["type"] == type) & (messages["sender"] == sender)).sum())


def test_maps_a_and_b_are_told_apart_by_nothing_but_what_they_offer() -> None:
    a, b = A.description, B.description
    assert (a.category, a.conditions, a.owner, a.kind) == (b.category, b.conditions, b.owner, b.kind)
    assert set(a.advertisements) < set(b.advertisements) and set(a.groups) < set(b.groups)
    assert {one.type for one in set(b.advertisements) - set(a.advertisements)} == {"Location", "RouteRequest"}
    more = {rule.event_type for group in set(b.groups) - set(a.groups) for rule in group}
    assert more == {"Select", "SelectStart", "SelectEnd", "Route"}


def test_both_display_sights_and_only_the_map_that_the_user_sees_zooms() -> None:
    seen = City(maps=MapServer("city"), told=Information((Sight("s1", "Sight", 120, 20, 50, "art"),), ("art",)))
    for map in ("a", "b"):
        assert seen[map].using == "city 0 0" and seen[map].sights == {"s1": (120.0, 20.0)}
    for map, other in (("a", "b"), ("b", "a")):
        before = seen[other]
        seen.touch(map, "Zoom", by=1)
        assert (seen[map].zoom, seen[map].using) == (1, "city 0 0 zoom 1")
        assert seen[map].maps[seen[map].using].extent == (0, 0, 250, 250), "half as wide"
        assert (seen[other].zoom, seen[other].using) == (before.zoom, before.using)
        seen.touch(map, "Zoom", by=-2)
        assert seen[map].maps[seen[map].using].extent == (0, 0, 1000, 1000)


def test_a_map_at_hand_is_not_asked_for_and_one_in_the_broker_s_cache_not_fetched() -> None:
    seen = City(maps=MapServer("city"))
    seen.touch("a", "Zoom", by=1)
    asked, fetched = seen.sent("MapRequest", "a"), seen.sent("MapRequest", "client")
    for by in (-1, 1, -1):
        seen.touch("a", "Zoom", by=by)
    assert seen.sent("MapRequest", "a") == asked, "both scales are at hand"
    seen.made.join("late", "client", MapClient())
    seen.wait().touch("late", "Zoom", by=1)
    assert seen["late"].using == "city 0 0 zoom 1" and seen.sent("MapRequest", "late") == 2
    assert seen.sent("MapRequest", "client") == fetched, "the broker answered in the server's place"
    seen.touch("a", "Zoom", by=99)
    asked = seen.sent("MapRequest", "a")
    assert seen["a"].zoom == ZOOMS[-1] and seen.touch("a", "Zoom", by=1).sent("MapRequest", "a") == asked


def test_a_plan_serves_every_nearer_scale_and_what_is_around_it_is_a_map() -> None:
    seen = City(plan=MapServer("museum", area=(100.0, 0.0, 160.0, 40.0)))
    asked = seen.sent("MapRequest", "a")
    seen.touch("a", "Zoom", by=2)
    assert seen["a"].using == "museum" and seen.sent("MapRequest", "a") == asked
    seen.touch("a", "Zoom", by=-3)
    assert seen["a"].using == "museum", "until there is a map of that scale"
    seen.made.join("maps", "server", MapServer("city"))
    assert seen.wait()["a"].using == "city 0 0 zoom -1" and seen["b"].using == "museum"


def test_a_start_and_an_end_on_map_b_become_a_way_that_map_b_alone_shows() -> None:
    seen = City(planner=BLOCK).select("b", (10, -5), (395, 200))
    wanted = Way((10, -5), (395, 200), ((10, 0), (400, 0), (400, 200)))
    assert seen["b"].way == wanted and wanted.metres == 5 + 590 + 5
    assert seen["a"].start is None and seen["a"].way is None
    (request,), (route,) = seen.made.received("planner", "RouteRequest"), seen.made.received("b", "Route")
    assert route.relates_to == (request.id,) and route.category == "route"
    assert not seen.made.received("a", "Route") and not seen.made.received("a", "SelectStart")
    assert seen["b"].position == HERE, "an end of a way is not where the user is"
    seen.touch("b", "SelectEnd", x=0, y=250)
    assert seen["b"].way == Way((10, -5), (0, 250), ((10, 0), (0, 0), (0, 250)))


def test_user_input_for_a_route_is_nothing_to_map_a() -> None:
    seen = City(planner=BLOCK).select("a", (10, -5), (395, 200))
    assert not seen.made.received("planner", "RouteRequest")
    assert seen["a"].start is None and seen["b"].start is None, "map B was not to be seen"


def test_a_planner_says_that_it_knows_no_way_and_another_may_know_one() -> None:
    far, apart = (10.0, 5000.0), (9000.0, 50.0)
    seen = City(planner=BLOCK).select("b", (10, 0), far)
    assert seen["b"].way == Way((10, 0), far) and len(seen.made.received("b", "Route")) == 1, "too far from a road"
    assert seen.select("b", (10, 0), apart)["b"].way == Way((10, 0), apart), "roads that do not meet"
    longer = RoutePlanner((((0, 0), (0, -50), (9000, -50), (9000, 50)),))
    both = City(planner=BLOCK, detour=longer).select("b", (0, 0), apart)
    assert both["b"].way is not None and both["b"].way.metres == 50 + 9000 + 100
    assert both.select("b", (0, 0), (90, 0))["b"].way == Way((0, 0), (90, 0), ((0, 0), (90, 0))), "the shortest told"


def test_without_a_planner_map_b_works_and_asks_again_when_there_is_one() -> None:
    seen = City(maps=MapServer("city")).select("b", (0, 0), (0, 10))
    assert seen["b"].way is None and seen.touch("b", "Zoom", by=1)["b"].using == "city 0 0 zoom 1"
    seen.made.join("planner", "server", BLOCK)
    assert seen.wait()["b"].way == Way((0, 0), (0, 10), ((0, 0), (0, 10)))
    seen.made.say("planner", Leave())
    assert seen.wait().touch("b", "Zoom", by=-1)["b"].using == "city 0 0"
