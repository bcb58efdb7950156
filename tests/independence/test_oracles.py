"""Answers of other systems come out of the workbench: geofences, spatial joins, a context broker.

Tile38's *enter* and *exit* are our match and unmatch; Sedona's joins are replays of one instant; Orion notifies at
every update inside an area, and ours must differ in just those redundant ones.
"""

from __future__ import annotations

import csv
import json
import math
import re

import pandas as pd
import pytest
import shapely

from workbench.brokering.broker import Broker
from workbench.model import (
    Scenario,
    Space,
    column,
    disc,
    location,
    other,
    own,
    publications,
    region,
    subscriptions,
)
from workbench.replay import replay
from workbench.scenarios.friends import scenario as friends


def told(done, publication="fence") -> list[tuple]:
    """Who entered and left, in the order of time."""
    names = {"match": "enter", "unmatch": "exit"}
    rows = done.notifications[done.notifications["publication"] == publication]
    return [(row.subscription, row.t, names[row.kind]) for row in rows.itertuples()]


def fence_place(fence: dict) -> pd.DataFrame:
    if fence["type"] == "circle":
        return pd.DataFrame(
            {"place": ["fence"], "lon": [fence["lon"]], "lat": [fence["lat"]], "radius_m": [fence["radius_m"]]}
        )
    corners = (fence["min_lon"], fence["min_lat"], fence["max_lon"], fence["max_lat"])
    return pd.DataFrame({"place": ["fence"], "geometry": [shapely.box(*corners)]})


@pytest.fixture(scope="module")
def tile38(shared_data) -> dict:
    cases = json.loads((shared_data / "oracles" / "tile38_fence_cases.json").read_text())["cases"]
    return {case["name"]: case for case in cases}


@pytest.mark.parametrize(
    "name", ["basic_nearby_circle", "detect_inside_outside_only_bounds", "eec_enter_exit_cross", "eecio_all_five"]
)
@pytest.mark.parametrize("engine", ["reference", "local"])
def test_tile38_enter_and_exit(tile38, name, engine):
    case = tile38[name]
    fixes = pd.DataFrame(case["fixes"]).rename(columns={"id": "mobile"}).assign(t=lambda f: range(len(f)))
    done = replay("proximity", fixes, fence_place(case["fence"]), engine=engine)
    expected = [tuple(event) for event in case["expected"] if event[2] in ("enter", "exit")]
    if "enter" not in case["fence"]["detect"]:  # they were asked for the state only: it changes at the same fixes
        states = {"inside": "enter", "outside": "exit"}
        expected = [(who, t, states[what]) for who, t, what in case["expected"]]
    assert told(done) == expected


def test_tile38_four_polygons_at_one_instant(tile38):
    case = tile38["message_order_four_polygons"]
    places = pd.DataFrame(
        {"place": [f["name"] for f in case["fences"]], "geometry": [shapely.Polygon(f["ring"]) for f in case["fences"]]}
    )
    fixes = pd.DataFrame(case["fixes"])[["id", "lat", "lon"]].rename(columns={"id": "mobile"}).assign(t=[1, 2])
    done = replay("proximity", fixes, places)
    at_two = [(n.kind, n.publication) for n in done.notifications.itertuples() if n.t == 2]
    events = {"exit": "unmatch", "enter": "match"}
    assert at_two == [(events[what], fence) for what, fence in case["expected"] if what in events]


def test_tile38_roaming_cars_are_friends_nearby(tile38):
    """Tile38 repeats *nearby* at every update of either car; a state-persistent broker says it once to each."""
    case = tile38["roaming_two_cars_1000m"]
    rows = []
    for step, pair in enumerate(zip(case["car1_lonlat"], case["car2_lonlat"], strict=True)):
        rows += [(f"car{n}", 2 * step + n, *lonlat) for n, lonlat in enumerate(pair, start=1)]
    fixes = pd.DataFrame(rows, columns=["mobile", "t", "lon", "lat"])
    done = replay(friends(near_m=case["roam"]["radius_m"], far_m=case["roam"]["radius_m"]), fixes)
    theirs = [(e["relation"], 2 * e["step"] + int(e["id"][-1])) for e in case["expected"]]
    first, last = theirs[0], theirs[-1]
    assert (first[0], last[0]) == ("nearby", "faraway")
    assert done.timelines[["tau", "pi"]].values.tolist() == [[first[1], last[1]]] * 2


def squares(path) -> list:
    rows = [list(map(float, row)) for row in csv.reader(path.open())]
    return [shapely.box(min(r[0], r[2]), min(r[1], r[3]), max(r[0], r[2]), max(r[1], r[3])) for r in rows]


def rings(path) -> list:
    rows = [list(map(float, row)) for row in csv.reader(path.open())]
    return [shapely.Polygon(list(zip(r[::2], r[1::2], strict=True))) for r in rows]


def areas(shapes) -> pd.DataFrame:
    return pd.DataFrame({"place": range(len(shapes)), "geometry": shapes})


@pytest.fixture(scope="module")
def sedona(shared_data):
    return shared_data / "oracles" / "sedona_joins"


@pytest.fixture(scope="module")
def points(sedona) -> pd.DataFrame:
    read = pd.read_csv(sedona / "arealm-small.csv", header=None, usecols=[1, 2], names=["a", "lon", "lat", "b", "c"])
    return read.assign(mobile=range(len(read)), t=1)


def test_sedona_range_of_points(points):
    window = areas([shapely.box(-90.01, 30.01, -80.01, 40.01)])
    assert len(replay("proximity", points, window).timelines) == 2830


def test_sedona_points_in_rectangles(points, sedona):
    assert len(replay("proximity", points, areas(squares(sedona / "zcta510-small.csv"))).timelines) == 103


def test_sedona_points_in_polygons(points, sedona):
    assert len(replay("proximity", points, areas(rings(sedona / "primaryroads-polygon.csv"))).timelines) == 562


def shapes_against(relation: str) -> Scenario:
    """Areas on both sides, of two tables: an area hears of the windows that it lies in, or that it touches."""
    windows = publications(
        "windows", rows="places", regions={"window": region(location, position=column.position)}
    )
    lie = getattr(own.area, relation)(other.window, space=location)
    asked = subscriptions(
        "areas", rows="asked", regions={"area": region(location, position=column.position)}, filter=lie
    )
    return lambda table: Scenario([location], [windows], [asked], tables={"asked": table}, metric="planar")


@pytest.mark.parametrize(
    ("file", "read", "window", "count"),
    [
        ("primaryroads-polygon.csv", rings, (-85.01, 34.01, -60.01, 50.01), 704),
        ("zcta510-small.csv", squares, (-90.01, 30.01, -80.01, 40.01), 193),
    ],
)
def test_sedona_areas_inside_a_window(sedona, file, read, window, count):
    asked = areas(read(sedona / file)).rename(columns={"place": "id"})
    made = shapes_against("enclosed_by")(asked)
    assert len(replay(made, None, areas([shapely.box(*window)])).timelines) == count


def test_sedona_rectangles_that_intersect(sedona):
    shapes = squares(sedona / "zcta510-small.csv")
    made = shapes_against("overlaps")(areas(shapes).rename(columns={"place": "id"}))
    assert len(replay(made, None, areas(shapes)).timelines) == 17738


def test_sedona_lines_that_meet_areas(sedona):
    lines = [shapely.LineString(ring.exterior.coords[:-1]) for ring in rings(sedona / "primaryroads-linestring.csv")]
    windows = rings(sedona / "primaryroads-polygon.csv")
    made = shapes_against("overlaps")(areas(lines).rename(columns={"place": "id"}))
    found = replay(made, None, areas(windows)).timelines
    pairs = {(windows[p].wkt, lines[s].wkt) for p, s in zip(found["publication"], found["subscription"], strict=True)}
    assert (len(found), len(pairs)) == (875, 535)


def test_sedona_envelopes_that_contain_points(sedona):
    rows = [list(map(float, row)) for row in csv.reader((sedona / "testenvelope.csv").open())]
    boxes = [shapely.box(min(a, c), min(b, d), max(a, c), max(b, d)) for a, b, c, d in rows]
    read = pd.read_csv(sedona / "testpoint.csv", header=None, names=["x", "y"])
    assert len(replay("proximity", read.assign(mobile=range(len(read)), t=1), areas(boxes)).timelines) == 1000


KNN = [f"test{n}-results-p1-k{3 if n < 3 else 4}.csv" for n in range(1, 11)]


def wkt_rows(path) -> list[list[tuple[float, float]]]:
    """A query, and what was found for it, in every line."""
    lines = [re.findall(r"POINT \(([-\d.]+) ([-\d.]+)\)", line) for line in path.open()]
    return [[(float(x), float(y)) for x, y in line] for line in lines]


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("file", KNN)
def test_sedona_nearest_neighbours(sedona, file, engine):
    """Sedona takes k of them, whichever; ours are all whose distance no k others undercut."""
    case, k = file.split("-")[0], int(file[-5])
    sites = pd.read_csv(sedona / "knn" / f"{case}-objects.csv", header=None, names=["x", "y"])
    asked = pd.read_csv(sedona / "knn" / f"{case}-queries.csv", header=None, names=["x", "y"])
    answers = [line for line in wkt_rows(sedona / "knn" / file) if line]
    objects = publications("objects", rows="places", regions={"site": region(location, position=column.position)})
    queries = subscriptions(
        "queries",
        rows="fixes",
        regions={"here": region(location, position=column.position)},
        filter=own.here.nearest(other.site, space=location, k=k),
    )
    fixes, places = asked.assign(mobile=range(len(asked)), t=1), sites.assign(place=range(len(sites)))
    found = replay(Scenario([location], [objects], [queries]), fixes, places, engine).timelines
    assert {query for query, *_ in answers} == set(asked.itertuples(index=False, name=None)), "each was answered"
    for at, *theirs in answers:
        mobile = next(m for m, x, y in zip(fixes["mobile"], fixes["x"], fixes["y"], strict=True) if (x, y) == at)
        mine = found.loc[found["subscription"] == mobile, "publication"]
        ours = sorted(math.dist(at, sites.loc[place]) for place in mine)
        told = sorted(math.dist(at, site) for site in theirs)
        assert len(told) == k and ours[:k] == told
        assert set(ours[k:]) <= {told[-1]}, "only ties are more"


def test_sedona_distance_self_join(sedona):
    read = pd.read_csv(sedona / "testpoint.csv", header=None, names=["x", "y"])
    fixes = read.assign(mobile=range(len(read)), t=1)
    places = read.assign(place=range(len(read)))
    assert len(replay("proximity", fixes, places, parameters={"radius_m": 2}).timelines) == 2998


weather = Space("weather", temperature=float)


def orion_scenario(limit: bool) -> Scenario:
    """Entities that move and publish, areas that subscribe: mobile publisher, stationary subscriber."""
    entities = publications(
        "entities",
        rows="fixes",
        regions={
            "here": region(location, position=column.position),
            "air": region(weather, temperature=column.temperature),
        },
    )
    inside = own.area.contains(other.here, space=location)
    watched = subscriptions(
        "areas",
        rows="places",
        regions={"area": region(location, position=disc(column.position, column.radius_m))},
        filter=inside & (other.air["temperature"] < 20) if limit else inside,
    )
    return Scenario([location, weather], [entities], [watched], metric="wgs84")


@pytest.mark.parametrize("number", [0, 1])
def test_orion_notifications_minus_its_redundant_ones(shared_data, number):
    oracle = json.loads((shared_data / "oracles" / "orion_geosubscription_cases.json").read_text())
    case = oracle["cases"][number]
    place = {name: (lon, lat) for name, (lat, lon) in oracle["places"].items()}
    broker = Broker(orion_scenario("filter" in case["subscription"]))
    center = case["subscription"]["center"]
    broker.add("areas", "s", position=center[::-1], radius_m=case["subscription"]["max_distance_m"])
    sent = []
    inside: set[str] = set()
    fresh = list(case["expected_notifications"])
    for who, what, where, *cells in case["updates"]:
        if who == "SUBSCRIPTION":
            told = broker.update("areas", "s", position=where["center"][::-1], radius_m=where["max_distance_m"])
            inside.clear()
        elif what == "create":
            told = broker.add("entities", who, position=place[where], **(cells[0] if cells else {}))
        else:
            told = broker.move(("fixes", who), place[where])
        for message in told:
            sent += [[p, where] for p in message.publications if message.kind == "match"]
        # Orion repeats itself where an entity was inside already: those are the redundant ones.
        if [who, where] in case["expected_notifications"]:
            if who in inside:
                fresh.remove([who, where])
            inside.add(who)
        else:
            inside.discard(who)
    assert sent == fresh
