"""The route planner that map B co-operates with, as a service like the others (TIP 3, 6).

RouteRequest in, Route out, related to the request: neither knows the other, and where there is no planner nobody
answers. A Route says which ends it is about, since a service does not see the ids under which its own requests leave,
and the points of the way; one without points says that the planner knows no way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import dist, inf
from typing import Any, NamedTuple

import networkx as nx

from workbench.tip.bodies import body, fields
from workbench.tip.descriptions import ServiceDescription
from workbench.tip.events import Event
from workbench.tip.host import Publish
from workbench.tip.rules import Advertisement, Rule
from workbench.tip.services import MEMORY

POINT = tuple[float, float]


class Way(NamedTuple):
    """A way over roads from a start to an end; without points there is none that is known."""

    start: POINT
    end: POINT
    points: tuple[POINT, ...] = ()

    @property
    def metres(self) -> float:
        """How long it is, the steps to the roads and from them included; a way that nobody knows is the longest of all.

        >>> Way((0, 0), (3, 4), ((0, 0), (3, 0), (3, 4))).metres, Way((0, 0), (3, 4)).metres
        (7.0, inf)
        """
        return sum(dist(a, b) for a, b in pairwise((self.start, *self.points, self.end))) if self.points else inf

    def body(self) -> str:
        """The body of a Route.

        >>> there = Way((0.0, 0.0), (3.0, 4.0), ((0.0, 0.0), (3.0, 4.0)))
        >>> Way.read(there.body()) == there
        True
        """
        (x0, y0), (x1, y1) = self.start, self.end
        x, y = zip(*self.points, strict=True) if self.points else ((), ())
        return body(x0=x0, y0=y0, x1=x1, y1=y1, x=x, y=y)

    @staticmethod
    def read(text: str) -> Way:
        """The way in the body of a Route, or the one wanted in that of a RouteRequest."""
        said = fields(text)
        x0, y0, x1, y1 = (float(said[name][0]) for name in ("x0", "y0", "x1", "y1"))
        points = zip(map(float, said.get("x", ())), map(float, said.get("y", ())), strict=True)
        return Way((x0, y0), (x1, y1), tuple(points))


def route_request(start: POINT, end: POINT) -> Publish:
    """Ask for the way from a start to an end."""
    return Publish("RouteRequest", Way(start, end).body(), cacheable=True)


@dataclass(frozen=True)
class RoutePlanner:
    """Answers with the shortest way over its roads, lines of points; roads meet where they have a point in common.

    A way begins and ends at the points of the roads that are nearest to its ends, if these are within `reach_m`.

    >>> roads = RoutePlanner((((0, 0), (100, 0), (100, 100)), ((0, 0), (0, 100), (100, 100)), ((900, 0), (900, 100))))
    >>> roads.way((50, -10), (90, 60)).points
    ((50.0, 0.0), (100.0, 0.0), (100.0, 60.0))
    >>> roads.way((50, -10), (900, 0)).points
    ()
    """

    roads: tuple[tuple[POINT, ...], ...]
    reach_m: float = 100.0

    @property
    def description(self) -> ServiceDescription:
        return ServiceDescription(
            "routes",
            advertisements=(Advertisement("Route", "route"),),
            groups=((Rule(event_type="RouteRequest"),),),
        )

    def react(self, memory: Any, happening: Event | str, now: int) -> MEMORY:
        if not (isinstance(happening, Event) and happening.type == "RouteRequest"):
            return memory, ()
        wanted = Way.read(happening.body)
        found = self.way(wanted.start, wanted.end)
        return memory, (Publish("Route", found.body(), relates_to=(happening,), cacheable=True),)

    def way(self, start: POINT, end: POINT) -> Way:
        """The shortest way, or none."""
        graph = self._graph.copy()
        begin, finish = self._joined(graph, start), self._joined(graph, end)
        if begin is None or finish is None or not nx.has_path(graph, begin, finish):
            return Way(start, end)
        return Way(start, end, tuple(nx.shortest_path(graph, begin, finish, weight="metres")))

    @cached_property
    def _graph(self) -> nx.Graph:
        graph = nx.Graph()
        for road in self.roads:
            for a, b in pairwise((float(x), float(y)) for x, y in road):
                _connect(graph, a, b)
        return graph

    def _joined(self, graph: nx.Graph, place: POINT) -> POINT | None:
        """The nearest point of a road, which from now on is a point where roads meet."""
        feet = [(_foot(place, a, b), a, b) for a, b in graph.edges]
        feet = [one for one in feet if dist(place, one[0]) <= self.reach_m]
        if not feet:
            return None
        foot, a, b = min(feet, key=lambda one: dist(place, one[0]))
        if foot not in graph:
            graph.remove_edge(a, b)
            _connect(graph, a, foot)
            _connect(graph, foot, b)
        return foot


def _connect(graph: nx.Graph, a: POINT, b: POINT) -> None:
    if a != b:
        graph.add_edge(a, b, metres=dist(a, b))


def _foot(place: POINT, a: POINT, b: POINT) -> POINT:
    """The point of a stretch of road that is nearest to a place.

    >>> _foot((3, 9), (0, 0), (10, 0)), _foot((-3, 9), (0, 0), (10, 0))
    ((3.0, 0.0), (0, 0))
    >>> _foot((3, 9), (0, 0), (1e-200, 0))
    (0.0, 0.0)
    """
    dx, dy = b[0] - a[0], b[1] - a[1]
    squared = dx * dx + dy * dy or 1.0  # a stretch can be too short for its square to be anything
    along = ((place[0] - a[0]) * dx + (place[1] - a[1]) * dy) / squared
    if not 0 < along < 1:
        return a if along <= 0 else b
    return a[0] + along * dx, a[1] + along * dy
