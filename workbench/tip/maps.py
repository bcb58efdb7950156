"""The map services of TIP: map A and map B of one service category, their server, and maps ahead (TIP 3, 4.3 and 6).

================  ============  =====================================================================================
`MapClient`        ordinary      the client's part: asks for a map when none at hand shows the user's position at the
                                 scale that the user zoomed to; shows sights on it
`MapServer`        ordinary      the server's part: MapRequest in, Map out
`Prefetcher`       ordinary      asks for the map ahead, flagged as prefetched
================  ============  =====================================================================================

User input reaches the visible map alone, by the broker: ``Zoom`` (`by` so many steps nearer) each of them; ``Select``,
``SelectStart`` and ``SelectEnd`` map B, for which a selected point becomes a Location event of the category `map`, and
a start and an end become a RouteRequest to whatever route planner there may be (`routes`).

Departure: a MapRequest names the tile and its scale, not the position, or no two requests would ever be similar. Maps
are known by the steps of zoom that they are drawn for: each step nearer is a tile half as wide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import atan2, cos, floor, sin, tau
from random import Random
from typing import Any, NamedTuple

from workbench.model.regions import region
from workbench.model.relations import Overlap
from workbench.model.shapes import box
from workbench.model.spaces import Position, Space
from workbench.tip.bodies import body, fields
from workbench.tip.descriptions import ServiceDescription
from workbench.tip.events import Event
from workbench.tip.host import Publish
from workbench.tip.routes import Way, route_request
from workbench.tip.rules import Advertisement, Group, Rule
from workbench.tip.services import GPS, MEMORY, NEEDS_LOCATION, location_rules, position_of

ZOOMS = range(-3, 4)
EXTENT = tuple[float, float, float, float]


class Drawn(NamedTuple):
    """A map at hand: what it shows, and the steps of zoom that it is drawn for."""

    extent: EXTENT
    zooms: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class MapState:
    """What a map shows: the maps at hand by name, the one in use, the scale, the position, the tiles asked for with
    their scale; the items that information and recommendation services name, and where sights are.

    On map B also the start and the end that were selected, and the way between them as far as a planner told it.
    """

    maps: Mapping[str, Drawn] = field(default_factory=dict)
    using: str = ""
    zoom: int = 0
    position: tuple[float, float] | None = None
    asked: frozenset[tuple[tuple[int, int], int]] = frozenset()
    items: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sights: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    source: str = ""
    start: tuple[float, float] | None = None
    end: tuple[float, float] | None = None
    way: Way | None = None


@dataclass(frozen=True)
class MapClient:
    """The client's part of the map service: A shows and zooms, B lets the user select as well (6)."""

    tile_m: float = 500.0
    selecting: bool = False

    @property
    def description(self) -> ServiceDescription:
        said = [Advertisement("MapRequest", "request")]
        groups: list[Group] = [
            location_rules(),
            (Rule(event_type="Location", event_category="information"),),
            (Rule(event_type="Map"),),
            (Rule(event_type="Information"),),
            (Rule(event_type="Recommendation"),),
            _input("Zoom"),
        ]
        if self.selecting:
            said += [Advertisement("Location", "map", format=GPS), Advertisement("RouteRequest", "request")]
            groups += [_input("Select"), _input("SelectStart"), _input("SelectEnd"), (Rule(event_type="Route"),)]
        return ServiceDescription("map", advertisements=tuple(said), groups=tuple(groups), conditions=NEEDS_LOCATION)

    def react(self, memory: Any, happening: Event | str, now: int) -> MEMORY:
        known: MapState = memory or MapState()
        if not isinstance(happening, Event):
            return known, ()
        if (happening.category, happening.type) == ("system", "Subscribed"):
            # Somebody came or went: a map that is gone is not used, a better one may be had, and so may a way.
            known, asking = self._asking(replace(known, asked=frozenset(), maps={}))
            return known, (*asking, *_asking_for_a_way(known))
        if happening.type == "Location" and happening.category == "location":
            known = replace(known, position=position_of(happening), source=f"quality {happening.quality}")
            return self._asking(known)
        if happening.type == "Zoom":
            zoom = known.zoom + int(fields(happening.body)["by"][0])
            return self._asking(replace(known, zoom=min(max(zoom, ZOOMS[0]), ZOOMS[-1])))
        if happening.type == "Map":
            said = fields(happening.body)
            x0, y0, x1, y1 = (float(said[name][0]) for name in ("x0", "y0", "x1", "y1"))
            drawn = Drawn((x0, y0, x1, y1), tuple(map(int, said.get("zoom", ("0",)))))
            return _using(replace(known, maps={**known.maps, said["name"][0]: drawn})), ()
        if happening.type == "Location" and happening.category == "information":
            said = fields(happening.body)
            return replace(known, sights={**known.sights, said["id"][0]: position_of(happening)}), ()
        if happening.type in ("Information", "Recommendation"):
            return replace(
                known, items={**known.items, happening.type: fields(happening.body).get("item", ())}
            ), ()
        return self._selected(known, happening) if self.selecting else (known, ())

    def _selected(self, known: MapState, happening: Event) -> MEMORY:
        """What map B does beside what map A does."""
        if happening.type == "Select":
            return known, (Publish("Location", happening.body, relates_to=()),)
        if happening.type == "Route":
            told = Way.read(happening.body)
            # Asked by another map, or before the user selected other ends: not to be shown.
            mine = (told.start, told.end) == (known.start, known.end)
            better = known.way is None or told.metres < known.way.metres
            return replace(known, way=told) if mine and better else known, ()
        if happening.type == "SelectStart":
            known = replace(known, start=position_of(happening), way=None)
        elif happening.type == "SelectEnd":
            known = replace(known, end=position_of(happening), way=None)
        else:
            return known, ()
        return known, _asking_for_a_way(known)

    def _asking(self, known: MapState) -> MEMORY:
        """Ask for the map of the tile, if no map at hand shows the position at the scale."""
        known = _using(known)
        if known.position is None or (known.using and known.zoom in known.maps[known.using].zooms):
            return known, ()
        tile = tile_of(known.position, _width(self.tile_m, known.zoom))
        if (tile, known.zoom) in known.asked:
            return known, ()
        return replace(known, asked=known.asked | {(tile, known.zoom)}), (map_request(tile, known.zoom),)


def _input(type: str) -> Group:
    return (Rule(event_type=type, event_category="user-input"),)


def _asking_for_a_way(known: MapState) -> tuple[Publish, ...]:
    """Ask for the way, if both of its ends are selected and no planner told any yet."""
    if known.start is None or known.end is None or known.way is not None:
        return ()
    return (route_request(known.start, known.end),)


def _width(tile_m: float, zoom: int) -> float:
    return float(tile_m / 2.0**zoom)


def tile_of(position: tuple[float, float], tile_m: float) -> tuple[int, int]:
    """The tile in which a position lies.

    >>> tile_of((-1, 700), 500)
    (-1, 1)
    """
    return floor(position[0] / tile_m), floor(position[1] / tile_m)


def map_request(tile: tuple[int, int], zoom: int = 0, prefetched: bool = False) -> Publish:
    """Ask for the map of a tile at a scale."""
    return Publish("MapRequest", body(i=tile[0], j=tile[1], zoom=zoom), cacheable=True, prefetched=prefetched)


def _using(known: MapState) -> MapState:
    """Use the map at hand that shows the position at the scale nearest to the one wanted; of several the smallest."""
    if known.position is None:
        return known
    x, y = known.position
    showing = [
        (min(abs(zoom - known.zoom) for zoom in zooms), (x1 - x0) * (y1 - y0), name)
        for name, ((x0, y0, x1, y1), zooms) in known.maps.items()
        if x0 <= x <= x1 and y0 <= y <= y1
    ]
    return replace(known, using=min(showing)[-1] if showing else "")


@dataclass(frozen=True)
class MapServer:
    """The server's part: one map for each tile and scale, or one plan of a small area.

    A plan is drawn for the usual scale and for nearer ones: who zooms out wants to see what is around it.
    """

    name: str
    tile_m: float = 500.0
    area: EXTENT | None = None

    @property
    def description(self) -> ServiceDescription:
        return ServiceDescription(
            "map",
            advertisements=(Advertisement("Map", "map"),),
            groups=((Rule(event_type="MapRequest"),),),
        )

    def react(self, memory: Any, happening: Event | str, now: int) -> MEMORY:
        if not (isinstance(happening, Event) and happening.type == "MapRequest"):
            return memory, ()
        said = fields(happening.body)
        zoom = int(said.get("zoom", ("0",))[0])
        zooms = tuple(range(ZOOMS[-1] + 1)) if self.area else (zoom,)
        if zoom not in ZOOMS or zoom not in zooms:
            return memory, ()
        width = _width(self.tile_m, zoom)
        x, y = float(said["i"][0]) * width, float(said["j"][0]) * width
        tile = (x, y, x + width, y + width)
        if self.area and not _meet(self.area, tile):
            return memory, ()
        scale = f" zoom {zoom}" if zoom else ""
        name = self.name if self.area else f"{self.name} {said['i'][0]} {said['j'][0]}{scale}"
        x0, y0, x1, y1 = self.area or tile
        answer = body(name=name, x0=x0, y0=y0, x1=x1, y1=y1, zoom=zooms)
        return memory, (Publish("Map", answer, relates_to=(happening,), cacheable=True),)


def _meet(a: EXTENT, b: EXTENT) -> bool:
    place = Space("place", position=Position())
    return Overlap().holds(region(place, position=box(*a)), region(place, position=box(*b)), place, "planar")


@dataclass(frozen=True)
class Prefetcher:
    """Asks for the map where the user will be after `ahead_m`, by the heading of the last two positions.

    At the usual scale: which other one the user zoomed to is told to the visible map alone. With a `seed`, headings are
    drawn at random instead: what a prefetch is to be compared with.
    """

    tile_m: float = 500.0
    ahead_m: float = 300.0
    seed: int | None = None

    @property
    def description(self) -> ServiceDescription:
        return ServiceDescription(
            "prefetching",
            advertisements=(Advertisement("MapRequest", "request"),),
            conditions=NEEDS_LOCATION,
            groups=(location_rules(),),
        )

    def react(self, memory: Any, happening: Event | str, now: int) -> MEMORY:
        last, asked = memory or (None, frozenset())
        if not (isinstance(happening, Event) and happening.type == "Location"):
            return (last, asked), ()
        here = position_of(happening)
        if last is None or last == here:
            return (here, asked), ()
        heading = atan2(here[1] - last[1], here[0] - last[0])
        if self.seed is not None:
            heading = tau * Random(f"{self.seed} {here}").random()
        there = here[0] + self.ahead_m * cos(heading), here[1] + self.ahead_m * sin(heading)
        tile = tile_of(there, self.tile_m)
        if tile in asked or tile == tile_of(here, self.tile_m):
            return (here, asked), ()
        return (here, asked | {tile}), (map_request(tile, prefetched=True),)
