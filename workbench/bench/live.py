"""Live moves, beside a loop over Shapely's STRtree: how many a second, and do they say the same.

Clients walk among discs. Each has three subscriptions, one for each kind of place, that share its position. The loop
asks the tree which discs hold the new point, and compares that with what held the old one: what a user would write. It
is given its best form: one tree over the centres, asked for those within the radius.

The broker has its default options, so it remembers every position; batches are measured for one that does not, too.
Messages of a batch are made when they are read: once without reading them (the broker holds all transitions and
positions), and once with every message made, as it is for moves one at a time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from workbench.brokering.broker import Broker, Message
from workbench.model.columns import column
from workbench.model.filters import other, own
from workbench.model.pubsub import publications, subscriptions
from workbench.model.regions import region
from workbench.model.scenario import Scenario
from workbench.model.shapes import disc
from workbench.model.spaces import Space, location

KINDS = ("cafe", "shop", "station")
wares = Space("wares", kind=str)


@dataclass(frozen=True)
class LiveLoad:
    """So many clients that walk among so many discs."""

    discs: int = 100_000
    clients: int = 10_000
    radius_m: float = 100.0
    side_m: float = 50_000.0
    step_m: float = 1.0
    moves: int = 200_000
    """one at a time"""
    batched: int = 3_000_000
    """in each of the ways of batches"""
    batch: int = 500_000
    looped: int = 20_000
    """by the STRtree loop"""
    seed: int = 1

    def scenario(self) -> Scenario:
        """Places of three kinds; each client subscribes to each kind."""
        places = publications(
            "places",
            rows="places",
            regions={
                "reach": region(location, position=disc(column.position, self.radius_m)),
                "offer": region(wares, kind=column.kind),
            },
        )
        near = own.here.enclosed_by(other.reach, space=location)
        wanted = [
            subscriptions(
                kind,
                rows="fixes",
                regions={"here": region(location, position=column.position), "wish": region(wares, kind=kind)},
                filter=near & other.offer.enclosed_by(own.wish, space=wares),
            )
            for kind in KINDS
        ]
        return Scenario([location, wares], [places], wanted)


class Rate(NamedTuple):
    """How fast a contender was, and whether it said what the others say."""

    contender: str
    moves: int
    seconds: float
    transitions: int
    right: bool

    @property
    def a_second(self) -> float:
        return self.moves / self.seconds


Transition = tuple[int, int, str, str]
"""Which move, which client, match or unmatch, which disc."""


def measure(load: LiveLoad) -> Iterator[Rate]:
    """The loop, then the broker's moves one by one and in batches, on one long walk; the loop judges a part of each."""
    rng = np.random.default_rng(load.seed)
    sites = rng.uniform(0, load.side_m, (load.discs, 2))
    start = rng.uniform(0, load.side_m, (load.clients, 2))
    singles, together = -(-load.moves // load.clients), -(-load.batched // load.clients)
    walk = start + rng.normal(0, load.step_m, (singles + 2 * together, load.clients, 2)).cumsum(axis=0)
    parts = np.split(walk, [singles, singles + together])
    broker = prepared(load, sites, start, remember=True)
    expected, seconds = looped(load, sites, start, walk)
    yield Rate("a loop over Shapely's STRtree", load.looped, seconds, len(expected), True)
    first = broker.now + 1
    yield _rate("one at a time", load, sites, start, parts[0], first, *_one_by_one(broker, parts[0]))
    for how, reads, before, part in (
        ("in batches, messages not read", False, parts[0][-1], parts[1]),
        ("in batches, every message made", True, parts[1][-1], parts[2]),
    ):
        first = broker.now + 1
        yield _rate(how, load, sites, before, part, first, *_batched(load, broker, part, reads))
    broker = prepared(load, sites, start, remember=False)
    how, first = "in batches, messages not read, remember=False", broker.now + 1
    yield _rate(how, load, sites, start, parts[0], first, *_batched(load, broker, walk[:together], False))


def _rate(
    how: str, load: LiveLoad, sites: np.ndarray, start: np.ndarray, walk: np.ndarray, first: int,
    said: list[Message], moves: int, seconds: float,
) -> Rate:  # fmt: skip
    expected, _ = looped(load, sites, start, walk)
    right = transitions(said, first, load.looped) == expected
    return Rate(f"workbench, live moves {how}", moves, seconds, sum(len(m.contents) for m in said), right)


def prepared(load: LiveLoad, sites: np.ndarray, start: np.ndarray, remember: bool) -> Broker:
    """A broker with all discs and clients, at instant 1."""
    broker = Broker(load.scenario(), remember=remember)
    for n, (x, y) in enumerate(sites.tolist()):
        broker.add("places", f"d{n}", t=1, position=(x, y), kind=KINDS[n % 3])
    for n, (x, y) in enumerate(start.tolist()):
        for kind in KINDS:
            broker.add(kind, n, t=1, position=(x, y))
    broker.advance(1)
    return broker


def _one_by_one(broker: Broker, walk: np.ndarray) -> tuple[list[Message], int, float]:
    moves = [(id, (x, y)) for step in walk.tolist() for id, (x, y) in enumerate(step)]
    said = broker.move(*moves[0])  # the first call loads what was compiled
    move = broker.move
    began = time.perf_counter()
    for id, position in moves[1:]:
        told = move(id, position)
        if told:
            said += told
    return said, len(moves) - 1, time.perf_counter() - began


def _batched(load: LiveLoad, broker: Broker, walk: np.ndarray, reads: bool) -> tuple[list[Message], int, float]:
    who = np.tile(np.arange(walk.shape[1]), len(walk))
    x, y = np.ascontiguousarray(walk.reshape(-1, 2).T)
    said = [broker.moves(who[:1], None, x[:1], y[:1])]  # the first call loads what was compiled
    began = time.perf_counter()
    for first in range(1, len(who), load.batch):
        part = slice(first, first + load.batch)
        told = broker.moves(who[part], None, x[part], y[part])
        said.append(list(told) if reads else told)
    seconds = time.perf_counter() - began
    return [message for told in said for message in told], len(who) - 1, seconds


def looped(
    load: LiveLoad, sites: np.ndarray, start: np.ndarray, walk: np.ndarray
) -> tuple[list[Transition], float]:
    """The transitions of the first moves of a walk, from a loop over an STRtree."""
    import shapely

    tree = shapely.STRtree(shapely.points(sites))
    kinds = [KINDS[n % 3] for n in range(load.discs)]

    def held(x: float, y: float) -> dict[str, set[int]]:
        found: dict[str, set[int]] = {kind: set() for kind in KINDS}
        for n in tree.query(shapely.Point(x, y), predicate="dwithin", distance=load.radius_m).tolist():
            found[kinds[n]].add(n)
        return found

    inside = [held(x, y) for x, y in start.tolist()]
    moves = [(id, x, y) for step in walk[: -(-load.looped // load.clients)].tolist() for id, (x, y) in enumerate(step)]
    said = []
    began = time.perf_counter()
    for row, (id, x, y) in enumerate(moves[: load.looped]):
        now, before = held(x, y), inside[id]
        if now != before:
            for kind in KINDS:
                said += [(row, id, "unmatch", f"d{n}") for n in before[kind] - now[kind]]
                said += [(row, id, "match", f"d{n}") for n in now[kind] - before[kind]]
            inside[id] = now
    return sorted(said), time.perf_counter() - began


def transitions(said: list[Message], first: int, moves: int) -> list[Transition]:
    """The messages of the first moves as the loop writes them; every move was an instant of its own."""
    return sorted(
        (m.t - first, int(m.subscription.split("/")[1]), m.kind, name)
        for m in said
        if m.t < first + moves
        for name in m.publications
    )


def table(rates: list[Rate]) -> str:
    """How many moves a second, and how many times the first contender's."""
    lines = ["   moves/s     ratio  transitions"]
    for rate in rates:
        wrong = "" if rate.right else " WRONG"
        share = f"{100 * rate.transitions / rate.moves:.1f} %"
        ratio = rate.a_second / rates[0].a_second
        lines.append(f"{rate.a_second:>10,.0f}  {ratio:6.1f} x  {share:>11}  {rate.contender}{wrong}")
    return "\n".join(lines)
