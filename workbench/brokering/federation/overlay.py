"""The overlay network of brokers (A Federated Broker Architecture, IV.A), on networkx.

A set of brokers β, each connected to neighbours N_B, "arranged in a topology that is restricted to be acyclic". A cycle
is refused by name, unless the overlay is made with ``cyclic=True``. Brokers may have a position, so that clients can
attach to the nearest one; `divided` gives the other ways in which IV divides clients among brokers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

import networkx as nx

from workbench import geometry
from workbench.errors import ScenarioError, did_you_mean

Link = tuple[str, str]


def link(a: str, b: str) -> Link:
    """A link, whichever end is named first."""
    return (a, b) if a <= b else (b, a)


@dataclass(frozen=True, eq=False)
class Overlay:
    """Brokers and links.

    >>> Overlay([("B1", "B2"), ("B2", "B3")]).neighbours("B2")
    ['B1', 'B3']
    >>> Overlay([("B1", "B2"), ("B2", "B3"), ("B3", "B1")])
    Traceback (most recent call last):
    workbench.errors.ScenarioError: the overlay has the cycle B1 - B2 - B3 - B1; take a link out, or ...
    """

    links: Iterable[Link]
    brokers: Iterable[str] = ()
    cyclic: bool = False
    positions: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    metric: str = geometry.PLANAR

    def __post_init__(self) -> None:
        graph = nx.Graph()
        graph.add_nodes_from([*self.brokers, *self.positions])
        for a, b in self.links:
            if a == b:
                raise ScenarioError(f"broker {a!r} is linked to itself")
            graph.add_edge(a, b)
        object.__setattr__(self, "graph", graph)
        object.__setattr__(self, "links", tuple(sorted(link(a, b) for a, b in graph.edges)))
        object.__setattr__(self, "brokers", tuple(graph.nodes))
        if not self.cyclic and (cycle := cycle_of(graph)):
            raise ScenarioError(
                f"the overlay has the cycle {' - '.join(cycle)}; take a link out, or make it with cyclic=True"
            )

    graph: Any = field(init=False, repr=False)

    def neighbours(self, broker: str) -> list[str]:
        """N_B."""
        if broker not in self.graph:
            raise ScenarioError(f"there is no broker {broker!r}; {did_you_mean(broker, self.brokers)}")
        return sorted(self.graph[broker])

    def with_link(self, a: str, b: str) -> Overlay:
        """The overlay with one link more."""
        return self._changed([*self.links, link(a, b)], self.brokers)

    def without_link(self, a: str, b: str) -> Overlay:
        """The overlay with one link less."""
        return self._changed([x for x in self.links if x != link(a, b)], self.brokers)

    def without_broker(self, broker: str) -> Overlay:
        """The overlay without a broker and its links."""
        return self._changed([x for x in self.links if broker not in x], [b for b in self.brokers if b != broker])

    def with_broker(self, broker: str, *parents: str) -> Overlay:
        """The overlay with one broker more."""
        return self._changed([*self.links, *(link(broker, p) for p in parents)], [*self.brokers, broker])

    def _changed(self, links: Iterable[Link], brokers: Iterable[str]) -> Overlay:
        there = list(brokers)
        places = {b: p for b, p in self.positions.items() if b in there}
        return Overlay(links, there, self.cyclic, places, self.metric)

    def next_hop(self, at: str, to: str) -> str | None:
        """The neighbour on a shortest way to another broker; None where there is no way."""
        if at not in self.graph or to not in self.graph or not nx.has_path(self.graph, at, to):
            return None
        way = nx.shortest_path(self.graph, at, to)
        return str(way[1]) if len(way) > 1 else at

    def hops(self, a: str, b: str) -> int:
        """How many links lie between two brokers."""
        return int(nx.shortest_path_length(self.graph, a, b))

    def bridges(self, broker: str) -> list[Link]:
        """The links that join a broker's neighbours once it is gone: the first one to each of the others."""
        first, *others = self.neighbours(broker) or [""]
        return [link(first, other) for other in others]

    def nearest(self, x: float, y: float) -> str:
        """The broker whose position is nearest.

        >>> Overlay([], positions={"north": (0, 10), "south": (0, 0)}).nearest(1, 2)
        'south'
        """
        if not self.positions:
            raise ScenarioError("the brokers of this overlay have no positions")
        return min(sorted(self.positions), key=lambda b: self._apart(self.positions[b], (x, y)))

    def _apart(self, a: tuple[float, float], b: tuple[float, float]) -> float:
        if self.metric == geometry.WGS84:
            return geometry.haversine(*a, *b)
        return geometry.planar_squared(a[0], a[1], 0.0, b[0], b[1], 0.0)


def check_connected(overlay: Overlay) -> None:
    """Refuse an overlay of several parts: nobody would hear of the others, and nothing would be lost on the way.

    >>> check_connected(Overlay([("B1", "B2")], ["B3"]))
    Traceback (most recent call last):
    workbench.errors.ScenarioError: the overlay has 2 parts: B1, B2 | B3; link them
    """
    parts = sorted(sorted(part) for part in nx.connected_components(overlay.graph))
    if len(parts) > 1:
        shown = " | ".join(", ".join(part) for part in parts)
        raise ScenarioError(f"the overlay has {len(parts)} parts: {shown}; link them")


def cycle_of(graph: Any) -> list[str]:
    """A cycle of a graph as its brokers, the first one again at the end; empty where there is none."""
    try:
        found = [a for a, _ in nx.find_cycle(graph)]
    except nx.NetworkXNoCycle:
        return []
    start = found.index(min(found))
    around = found[start:] + found[:start]
    if around[-1] < around[1]:
        around = [around[0], *reversed(around[1:])]
    return [*around, around[0]]


# -- shapes of overlays ------------------------------------------------------------------------------


def _named(count: int) -> list[str]:
    width = len(str(count))
    return [f"B{i:0{width}}" for i in range(1, count + 1)]


def chain(count: int) -> Overlay:
    """Brokers in a row.

    >>> chain(3).links
    (('B1', 'B2'), ('B2', 'B3'))
    """
    names = _named(count)
    return Overlay(pairwise(names), names)


def star(count: int) -> Overlay:
    """The first broker in the middle."""
    names = _named(count)
    return Overlay([(names[0], n) for n in names[1:]], names)


def tree(count: int, branching: int = 2) -> Overlay:
    """A balanced tree, filled level by level."""
    names = _named(count)
    return Overlay([(names[(i - 1) // branching], names[i]) for i in range(1, count)], names)


def random_tree(count: int, seed: int = 0) -> Overlay:
    """A tree in which each broker joins one of those before it, by chance."""
    draw, names = Random(seed), _named(count)
    return Overlay([(names[draw.randrange(i)], names[i]) for i in range(1, count)], names)


def ring(count: int) -> Overlay:
    """Brokers in a circle: cyclic."""
    names = _named(count)
    return Overlay([(names[i], names[(i + 1) % count]) for i in range(count)], names, cyclic=True)


TOPOLOGIES: dict[str, Callable[[int], Overlay]] = {
    "chain": chain,
    "star": star,
    "tree": tree,
    "random": random_tree,
    "ring": ring,
}


def overlay(topology: str, count: int) -> Overlay:
    """An overlay by the name of its shape.

    >>> len(overlay("tree", 7).links)
    6
    """
    if topology not in TOPOLOGIES:
        raise ScenarioError(f"topology {topology!r}; {did_you_mean(topology, TOPOLOGIES)}")
    return TOPOLOGIES[topology](count)


def geographic(positions: Mapping[str, tuple[float, float]], metric: str = geometry.PLANAR) -> Overlay:
    """Brokers at places, linked by the shortest tree over them (divided by area)."""
    empty = Overlay([], positions=positions, metric=metric)
    complete = nx.Graph()
    complete.add_nodes_from(positions)
    names = sorted(positions)
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            complete.add_edge(a, b, weight=empty._apart(positions[a], positions[b]))
    return Overlay(nx.minimum_spanning_edges(complete, data=False), names, positions=positions, metric=metric)


def squares(count: int, side_m: float) -> Overlay:
    """A square city from (0, 0) divided into equal squares, with a broker in the middle of each.

    >>> squares(4, 200).positions["B4"]
    (150.0, 150.0)
    >>> squares(8, 200)
    Traceback (most recent call last):
    workbench.errors.ScenarioError: 8 brokers do not make a square; take 4 or 9
    """
    side = math.isqrt(max(count, 0))
    if count < 1 or side * side != count:
        fit = f"{side**2} or {(side + 1) ** 2}" if side else "1"
        raise ScenarioError(f"{count} brokers do not make a square; take {fit}")
    middles = [side_m * (i + 0.5) / side for i in range(side)]
    return geographic(dict(zip(_named(count), [(x, y) for y in middles for x in middles], strict=True)))


# -- who goes where ----------------------------------------------------------------------------------


def divided(
    clients: Iterable[Hashable], by: str, overlay: Overlay, labels: Mapping[Hashable, Any]
) -> dict[Hashable, str]:
    """Which broker each client takes: by ``area``, ``network``, ``scope`` or ``load`` (IV).

    ``labels`` gives each client its position (area), its network or its context scope; clients with one label share
    a broker. By load, the label is how much a client has to say (1 if it is not given): one after the other takes the
    broker with the least so far.

    >>> divided(["a", "b", "c", "d"], "load", chain(2), {"a": 3})
    {'a': 'B1', 'b': 'B2', 'c': 'B2', 'd': 'B2'}
    """
    ways = ("area", "network", "scope", "load")
    if by not in ways:
        raise ScenarioError(f"brokers divided by {by!r}; {did_you_mean(by, ways)}")
    brokers = list(overlay.brokers)
    if by == "area":
        return {c: overlay.nearest(*labels[c]) for c in clients}
    if by == "load":
        load, homes = dict.fromkeys(brokers, 0.0), {}
        for c in clients:
            homes[c] = min(brokers, key=load.__getitem__)
            load[homes[c]] += labels.get(c, 1)
        return homes
    kinds = sorted({labels[c] for c in clients}, key=repr)
    return {c: brokers[kinds.index(labels[c]) % len(brokers)] for c in clients}
