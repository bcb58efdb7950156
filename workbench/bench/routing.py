"""Routing through 64 brokers against one broker's matching: ``python -m workbench.bench.routing``.

The same subscribers and the same publications, twice: all subscribers at one broker, and each at the nearest of 64 that
form a tree. Both are brokers of a federation, with the same routing table, the same index over it and the same
decisions at home; the one broker has no neighbours. What is timed is everything from a publication's arrival at its
broker until all consumers are told: Γ_B at every broker on the way, the messages between them, and M at the homes.
Simulated time, counting and Python's search for cycles are left out of both. Both must tell the same. One process,
which waits for nothing: what is measured is its processor's time.

Two kinds of subscription: attributes (A Federated Broker Architecture, IV.B), a box in which a notification of one of
some scopes must lie; and our own, to be within a radius of a publication, state-persistent. A publisher is at its
nearest broker, or, as ``far``, at a broker chosen by chance, so that every publication crosses the overlay first.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import networkx as nx

from workbench.brokering.federation import brokers, homes
from workbench.brokering.federation.attributes import Notification, Subscription, attribute
from workbench.brokering.federation.interests import Report, World
from workbench.brokering.federation.messages import Envelope, Notify, Pub, Sub
from workbench.brokering.federation.overlay import Overlay, geographic
from workbench.brokering.federation.state import Broker, Out, Rules
from workbench.brokering.values import changed
from workbench.model.history import Change, Client, History
from workbench.scenarios.proximity import scenario

SIDE_M = 40_000
RADIUS_M = 500
SCOPES = ("weather", "traffic", "menu", "parking")
ONE = Overlay([], positions={"one": (0.0, 0.0)})
Messages = list[tuple[Any, tuple[float, float], Any]]
"""clients, where they are, and what they send"""


@dataclass(frozen=True)
class Timing:
    """What one kind of subscription costs, once with many brokers and once with one."""

    kind: str
    publishers: str
    one_s: float
    many_s: float
    told: int
    messages: int

    @property
    def ratio(self) -> float:
        return self.many_s / self.one_s


class Network:
    """Brokers that answer at once."""

    def __init__(self, overlay: Overlay, world: World | None = None) -> None:
        self.overlay = overlay
        self.brokers = {b: Broker(b, frozenset(), Rules(), world) for b in overlay.brokers}
        self.told: list[tuple[Any, Any]] = []
        self.messages = 0

    def subscribe(self, subscribers: Messages) -> None:
        """All subscribers come to their nearest broker, before anything is published, and the tables are what the
        federation makes of them (equations 6 and 8): for each neighbour, all subscriptions of the brokers beyond it.

        A test compares these tables with those that brokers tell each other; here the six million entries of 64 brokers
        would take minutes on their way.
        """
        for client, place, message in subscribers:
            name = self.overlay.nearest(*place)
            broker, _ = brokers.step(self.brokers[name], client, message)
            self.brokers[name] = changed(broker, fresh={}, news={})  # nothing is there that could match
        local = {name: [s for s, _ in broker.table] for name, broker in self.brokers.items()}
        for name, broker in self.brokers.items():
            pairs: dict[Hashable, Mapping[Hashable, int]] = {s.name: {} for s in local[name]}
            table, rest = broker.table, self.overlay.graph.copy()
            rest.remove_node(name)
            for neighbour in self.overlay.neighbours(name):
                beyond = nx.node_connected_component(rest, neighbour)
                table = table.with_([s for other in sorted(beyond) for s in local[other]], neighbour)
                table.of(neighbour).accept(Notification({}))  # makes its index
            next(table.together.accepting(Notification({})), None)
            around = frozenset(self.overlay.neighbours(name))
            self.brokers[name] = homes.matched(changed(broker, table=table, neighbours=around), pairs)

    def send(self, client: Any, broker: str, message: Any) -> None:
        self.run([Envelope(client, broker, message)])

    def run(self, out: Out) -> None:
        """Pass messages on until nobody has any, then decide at home."""
        waiting = deque(out)
        touched: dict[str, None] = {}
        while waiting:
            envelope = waiting.popleft()
            to = str(envelope.destination)
            if to in self.brokers:
                self.messages += envelope.source in self.brokers
                self.brokers[to], sent = brokers.step(self.brokers[to], envelope.source, envelope.message)
                waiting.extend(sent)
                touched[to] = None
            else:
                self._tell(envelope)
        for name in touched:
            if self.brokers[name].fresh:
                self.brokers[name], sent = homes.evaluated(self.brokers[name], 1)
                for envelope in sent:
                    self._tell(envelope)

    def _tell(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, Notify):
            item = envelope.message.item
            what = item.origin if isinstance(item, Notification) else tuple(sorted(item.publications))
            self.told.append((what, envelope.destination))


def by_attributes(draw: Random, subscriptions: int, publications: int) -> tuple[Messages, Messages]:
    """Boxes of the radius around subscribers, for one scope each, and notifications at points."""
    subs: Messages = []
    for i in range(subscriptions):
        x, y = draw.uniform(0, SIDE_M), draw.uniform(0, SIDE_M)
        near = (attribute("x") >= x - RADIUS_M) & (attribute("x") <= x + RADIUS_M)
        near = near & (attribute("y") >= y - RADIUS_M) & (attribute("y") <= y + RADIUS_M)
        subs.append((f"s{i}", (x, y), Sub((Subscription(i, (attribute("scope") == draw.choice(SCOPES)) & near),))))
    pubs: Messages = []
    for i in range(publications):
        x, y = draw.uniform(0, SIDE_M), draw.uniform(0, SIDE_M)
        pubs.append((f"p{i}", (x, y), Pub(Notification({"scope": draw.choice(SCOPES), "x": x, "y": y}, f"p{i}", 1))))
    return subs, pubs


def by_position(world: World, draw: Random, subscriptions: int, publications: int) -> tuple[Messages, Messages]:
    """Mobiles that want to hear of places near them, and places."""
    found: list[Messages] = []
    for table, population, count in (("fixes", "mobiles", subscriptions), ("places", "places", publications)):
        made: Messages = []
        for i in range(count):
            x, y = draw.uniform(0, SIDE_M), draw.uniform(0, SIDE_M)
            client = Client(table, i)
            history = History(world.scenario)
            history.apply(1, [Change(client, {"position": (x, y)}, begin=(population,))])
            report = Report(client, (1, 1, 0), 1, history.at(1)[client], "", frozenset({population}))
            made.append((client, (x, y), Pub(report)))
        found.append(made)
    return found[0], found[1]


def eight_by_eight() -> Overlay:
    """64 brokers on a square, linked by a shortest tree."""
    step = SIDE_M / 8
    names = {f"B{i}{j}": ((i + 0.5) * step, (j + 0.5) * step) for i in range(8) for j in range(8)}
    return geographic(names)


def measure(
    subscriptions: int = 100_000, publications: int = 2_000, kind: str | None = None, seed: int = 1
) -> Iterator[Timing]:
    """Each kind of subscription, or one of them; publishers near and far."""
    world = World.of(scenario(radius_m=RADIUS_M))
    kinds: dict[str, tuple[World | None, Callable[[Random], tuple[Messages, Messages]]]] = {
        "attributes": (None, lambda draw: by_attributes(draw, subscriptions, publications)),
        "positions": (world, lambda draw: by_position(world, draw, subscriptions, publications)),
    }
    for name in [kind] if kind else kinds:
        agreed, made = kinds[name]
        subs, pubs = made(Random(seed))
        one, many = Network(ONE, agreed), Network(eight_by_eight(), agreed)
        for network in (one, many):
            network.subscribe(subs)
        draw = Random(seed + 1)
        everywhere = sorted(many.brokers)
        entries = {
            "near": [many.overlay.nearest(*place) for _, place, _ in pubs],
            "far": [draw.choice(everywhere) for _ in pubs],
        }
        alone, told = _timed(one, pubs, ["one"] * len(pubs))
        for publishers, at in entries.items():
            before = dict(many.brokers)
            many.messages = 0
            seconds, same = _timed(many, pubs, at)
            many.brokers = before
            if same != told:
                raise AssertionError(f"{name}, {publishers}: {len(same)} were told, and by one broker {len(told)}")
            yield Timing(name, publishers, alone, seconds, len(told), many.messages)


def _timed(network: Network, pubs: Messages, at: Iterable[str]) -> tuple[float, list[Any]]:
    network.told = []
    pubs = [(client, place, _new(message)) for client, place, message in pubs]
    began = time.process_time()
    for (client, _, message), broker in zip(pubs, at, strict=True):
        network.send(client, broker, message)
    return time.process_time() - began, sorted(network.told, key=repr)


def _new(message: Pub) -> Pub:
    """The same message, of which nothing is found out yet."""
    return Pub(replace(message.item)) if isinstance(message.item, Notification) else message


def main(subscriptions: int = 100_000, publications: int = 1_000, kind: str | None = None) -> None:
    """Print a table."""
    # As timeit does, of both: looking for cycles among millions of entries that stay would be most of the time.
    gc.disable()
    print(f"{subscriptions:,} subscriptions, {publications:,} publications; ms a publication")
    print(f"{'kind':12}{'publishers':12}{'one broker':>12}{'64 brokers':>12}{'ratio':>8}{'told':>10}{'messages':>10}")
    for t in measure(subscriptions, publications, kind):
        one, many = (1000 * seconds / publications for seconds in (t.one_s, t.many_s))
        row = f"{t.kind:12}{t.publishers:12}{one:12.3f}{many:12.3f}{t.ratio:8.2f}{t.told:10,}{t.messages:10,}"
        print(row, flush=True)


if __name__ == "__main__":
    import typer

    typer.run(main)
