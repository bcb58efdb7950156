"""The services of TIP, each in a small world (TIP 3, 4.3 and 6)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from tests.tip.worlds import Quiet
from workbench.errors import DataError
from workbench.tip.bodies import body, fields
from workbench.tip.broker import broker
from workbench.tip.descriptions import ServiceDescription
from workbench.tip.events import Event
from workbench.tip.host import Host, Publish, happen
from workbench.tip.inputs import Foreground
from workbench.tip.maps import MapClient, MapServer, Prefetcher
from workbench.tip.rules import Advertisement, Rule
from workbench.tip.services import (
    Database,
    Display,
    Fix,
    History,
    Information,
    ItemService,
    LocationService,
    Recommendation,
    Sight,
)
from workbench.tip.simulated import Simulation

SECOND = 1_000_000
SIGHTS = tuple(Sight(f"s{n}", "Sight", 100.0 * n, 0, 30, "history", f"text {n}") for n in range(8))


def walk(*places: tuple[float, float], quality: int = 95) -> LocationService:
    return LocationService(tuple(Fix((n + 1) * SECOND, x, y, quality) for n, (x, y) in enumerate(places)))


def city(location: LocationService, **services: object) -> Simulation:
    """A client with a location service and a server with everything else that is not the client's."""
    made = Simulation([broker("client"), broker("server")]).start("client", "server")
    made.join("location", "client", location)
    for name, behaviour in services.items():
        at = "client" if isinstance(behaviour, Display | MapClient | History | Prefetcher) else "server"
        made.join(name, at, behaviour)  # type: ignore[arg-type]
    made.connect("client", "server")
    return made


def sent(made: Simulation, type: str, receiver: str = "server") -> int:
    return int(((made.messages["type"] == type) & (made.messages["receiver"] == receiver)).sum())


def test_services_are_provide_only_sinks_ordinary_or_split() -> None:
    assert (walk((0, 0)).description.kind, History().description.kind) == ("provide-only", "sink")
    client, server = MapClient().description, MapServer("city").description
    ordinary = (Information(SIGHTS, ()).description, Recommendation(SIGHTS, ()).description, client, server)
    assert {one.kind for one in ordinary} == {"ordinary"}
    assert {one.type for one in client.advertisements} >= {"MapRequest"} and client.category == server.category
    assert {one.type for one in server.advertisements} == {"Map"}, "the parts of one service, each at its own broker"


def test_identifiers_come_first_and_items_are_fetched_once() -> None:
    items = ItemService("Sight", {sight.id: sight.text for sight in SIGHTS})
    made = city(
        walk((0, 0), (5, 0), (100, 0), (0, 0)), display=Display(("Sight",)), items=items,
        information=Information(SIGHTS, ("history",)),
    )  # fmt: skip
    made.run(6 * SECOND)
    shown = made.hosts["display"].memory
    assert [id for _, id in shown.shown] == ["s0", "s0", "s1", "s0"]
    assert sent(made, "SightRequest") == 2 and shown.items[("Sight", "s1")] == "text 1"
    assert all("text" not in fields(e.body) for e in made.received("display", "Information"))


def test_recommendations_are_near_liked_and_not_here() -> None:
    mixed = (*SIGHTS, Sight("arena", "Sight", 10, 0, 5, "sport"))
    made = city(walk((100, 0)), advice=Recommendation(mixed, ("history",)), display=Display(("Sight",)))
    made.run(3 * SECOND)
    (event,) = made.received("display", "Recommendation")
    assert fields(event.body)["item"] == ("Sight s0", "Sight s2")


def test_a_map_is_asked_for_when_the_user_leaves_the_one_at_hand() -> None:
    made = city(walk((10, 0), (490, 0), (510, 0), (490, 0)), map=MapClient(), maps=MapServer("city"))
    made.run(6 * SECOND)
    assert sent(made, "MapRequest") == 2 and made.hosts["map"].memory.using == "city 0 0"


def test_a_point_selected_on_map_b_becomes_a_location_event_and_map_a_has_no_such_thing() -> None:
    tap = ServiceDescription("input", advertisements=(Advertisement("Select", "user-input"),))
    watching = ServiceDescription("watching", groups=((Rule(event_type="Location", event_category="map"),),))
    for selecting in (False, True):
        made = city(walk((10, 0)), map=MapClient(selecting=selecting))
        made.join("finger", "client", Quiet(tap)).join("watch", "client", Quiet(watching))
        made.run(2 * SECOND)
        made.input("client", Foreground("map"))
        made.say("finger", Publish("Select", body(x=7.0, y=8.0)))
        made.run(4 * SECOND)
        assert [fields(e.body)["x"] for e in made.received("watch")] == ([("7.0",)] if selecting else [])
        assert made.hosts["map"].memory.position == (10.0, 0.0), "a selected point is not where the user is"


def test_maps_ahead_are_there_before_they_are_needed() -> None:
    path = [(10.0 + 100 * n, 0.0) for n in range(12)]
    with_it = city(walk(*path), map=MapClient(), maps=MapServer("city"), ahead=Prefetcher(ahead_m=250))
    without = city(walk(*path), map=MapClient(), maps=MapServer("city"))
    waits = {}
    for name, made in (("with", with_it), ("without", without)):
        made.run(14 * SECOND)
        messages = made.messages
        asked = messages[(messages["sender"] == "map") & (messages["type"] == "MapRequest")]
        got = messages[(messages["receiver"] == "map") & (messages["type"] == "Map")]
        waits[name] = [int(b - a) for a, b in zip(asked["t"], got["t"])]
        assert made.hosts["map"].memory.using == "city 2 0"
    assert len(waits["with"]) == len(waits["without"]) == 3
    assert waits["with"][1:] < waits["without"][1:] and sent(with_it, "MapRequest") == 3


def test_a_heading_fetches_ahead_what_is_needed_and_random_headings_waste_more() -> None:
    path = [(10.0 + 50 * n, 0.0) for n in range(40)]
    needed = {(n, 0) for n in range(4)}
    wasted, waits = {}, {}
    for name, ahead in (("none", {}), ("heading", {"ahead": Prefetcher()}), ("random", {"ahead": Prefetcher(seed=1)})):
        made = city(walk(*path), map=MapClient(), maps=MapServer("city"), **ahead)
        made.run(45 * SECOND)
        fetched = made.hosts["ahead"].memory[1] if ahead else frozenset()
        wasted[name] = len(fetched - needed)
        messages = made.messages
        asked = (messages["receiver"] == "server") & (messages["type"] == "MapRequest") & ~messages["prefetched"]
        waits[name] = int(asked.sum())
    assert wasted["none"] == 0 and wasted["heading"] <= 1 < wasted["random"], wasted
    assert waits["heading"] < waits["none"] == 4 and waits["heading"] <= waits["random"], waits


def test_history_keeps_where_the_user_was_and_publishes_nothing() -> None:
    made = city(walk((1, 2), (3, 4)), history=History())
    made.run(4 * SECOND)
    assert made.hosts["history"].memory == ((SECOND, 1.0, 2.0), (2 * SECOND, 3.0, 4.0))
    assert made.hosts["history"].behaviour.description.kind == "sink"
    assert made.hosts["location"].behaviour.description.kind == "provide-only"


def test_a_database_answers_by_key() -> None:
    asking = ServiceDescription("asking", advertisements=(Advertisement("Query", "query"),))
    made = city(walk(), store=Database({"7": "seven"}))
    made.join("one", "client", Quiet(asking)).join("two", "client", Quiet(asking)).run(SECOND)
    made.say("one", Publish("Query", body(key="7"))).run(2 * SECOND)
    assert [fields(e.body)["row"] for e in made.received("one")] == [("seven",)] and not made.received("two")


def test_a_location_service_from_a_table_of_fixes_says_when_its_quality_changes() -> None:
    frame = pd.DataFrame({"mobile": [7, 7, 8, 7], "t": [2, 1, 1, 3], "x": 1.0, "y": 2.0, "quality": [30, 95, 95, 30]})
    made = city(LocationService.of(frame, 7))
    made.run(5 * SECOND)
    said = made.messages[made.messages["sender"] == "location"]["type"].tolist()
    assert said == ["Registration", "Location", "Advertisement", "Location", "Location"]


def test_a_location_service_reads_any_table_of_fixes(tmp_path: Path) -> None:
    plain = pd.DataFrame({"mobile": ["a", "b", "a"], "t": [20, 1, 10], "x": [1.0, 9.0, 0.0], "y": [2.0, 9.0, 0.0]})
    expected = (Fix(10 * SECOND, 0.0, 0.0), Fix(20 * SECOND, 1.0, 2.0))
    plain.to_parquet(tmp_path / "fixes.parquet")
    plain.to_csv(tmp_path / "fixes.csv", index=False)
    for given in (plain, pa.Table.from_pandas(plain), tmp_path / "fixes.parquet", tmp_path / "fixes.csv"):
        assert LocationService.of(given, "a").fixes == expected
    dated = plain.assign(t=pd.to_datetime(plain["t"], unit="s", utc=True))
    assert LocationService.of(dated, "a").fixes == expected
    there = pd.DataFrame({"mobile": "a", "t": [1, 2], "lon": [174.0, 174.001], "lat": [-37.0, -37.0]})
    (one, other) = LocationService.of(there, "a", crs="EPSG:32760").fixes
    assert other.x - one.x == pytest.approx(89.0, abs=0.5), "a thousandth of a degree there, in metres"
    with pytest.raises(DataError, match="say in which: crs="):
        LocationService.of(there, "a")
    with pytest.raises(DataError, match=r"no fixes of 'c'; expected one of \['a', 'b'\]"):
        LocationService.of(plain, "c")


def test_a_location_service_is_where_its_mobile_was_last_and_nowhere_while_it_is_removed() -> None:
    rows = [(1, None, 0.0, 95), (2, "update", None, 30), (3, "remove", None, None), (4, "update", 3.0, 40),
            (5, "add", 7.0, None)]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["t", "op", "x", "quality"]).assign(mobile=1, y=lambda made: made["x"])
    found = LocationService.of(frame, 1).fixes
    assert [(fix.t // SECOND, fix.x, fix.quality) for fix in found] == [(1, 0.0, 95), (2, 0.0, 30), (5, 7.0, 100)]


def test_an_event_that_cannot_be_read_does_not_end_a_service() -> None:
    host = Host("information", Information(SIGHTS, ("history",)))
    after = happen(host, Event("e1", "Location", 0, "location", body=body(x="nowhere")), 0)
    assert after.sends == () and "carries no position" in after.host.faults[0] and not after.host.ended
