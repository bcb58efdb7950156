"""Scopes live: a broker under a graph that changes, and an event service whose consumers react (Scopes, 3.6 and 4).

`ScopedBroker` is the state-persistent broker of a scoped scenario. `ScopedBroker.change` puts another graph in
force: who joined hears of what matches already, who left of its end, and the administration messages are counted.
It takes what interfaces and visibility say; what mappings, sessions and publishing policies derive needs the rows
beforehand, and is refused by name.

`EventService` is the paper's own setting, notifications and processing functions. ``publish`` is called the same way
everywhere; what a consumer publishes while it reacts is put into its session by the service, not by the consumer.
`EventService.compose` makes one notification of several (3.4), of one session each.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.brokering.broker import Broker, Message
from workbench.brokering.scopes.adapters import administration
from workbench.brokering.scopes.definition import NO_CONTEXT, Context, Delivery, Notification, deliveries
from workbench.brokering.scopes.graph import ScopeGraph
from workbench.brokering.scopes.interfaces import Content, Interface
from workbench.brokering.scopes.routes import routes
from workbench.brokering.scopes.scoped import (
    _ids,
    _Scoped,
    profiles_of,
    publication_cells,
    scoped,
    subscription_cells,
)
from workbench.errors import UpdateError
from workbench.model.scenario import Scenario


class ScopedBroker:
    """A live broker whose clients see what the graph in force lets them see.

    >>> from workbench.brokering.scopes.graph import graph
    >>> from workbench.scenarios.proximity import scenario
    >>> mall = graph("cafe->Mall", "ann->City", "Mall->City")
    >>> live = ScopedBroker(scenario(), mall.leave("ann", "City"))
    >>> live.broker.add("places", "cafe", position=(0, 0)) + live.broker.add("mobiles", "ann", position=(0, 0))
    []
    >>> live.change(mall)
    [t=4 ann: match cafe]
    >>> live.messages
    {'memberships': 1, 'components': 1, 'roots': 2}
    """

    def __init__(self, scenario: Scenario, graph: ScopeGraph) -> None:
        self.given = scenario
        self.graph = graph
        made = _Scoped.of(scenario, graph)
        self._guards = {p.name: made.guards(p) for p in scenario.publications}
        self.broker = Broker(scoped(scenario, graph))
        self.messages = {"memberships": 0, "components": 0, "roots": 0}
        self._cells: dict[tuple[str, Any], dict[str, Any]] = {}
        self._put(self._all_cells(graph), None)

    def change(self, graph: ScopeGraph, t: Any = None) -> list[Message]:
        """Put another graph in force; everybody hears of the transitions that this brings about."""
        told = self._put(self._all_cells(graph), t)
        for name, count in administration(self.graph, graph).items():
            self.messages[name] += count
        self.graph = graph
        return told

    def _put(self, cells: Mapping[tuple[str, Any], dict[str, Any]], t: Any) -> list[Message]:
        """Write the hidden rows that changed, all of them at one instant."""
        changed = {key: said for key, said in cells.items() if self._cells.get(key) != said}
        told: list[Message] = []
        if changed:
            clock, latest = self.broker.clock, self.broker.now
            at = t if t is not None else clock.shown(1 if latest is None else clock.ticks(latest) + 1)
            for (table, id), said in changed.items():
                told += self.broker.profile(table, id, t=at, **said)
            if t is None:
                told += self.broker.advance(at)
        self._cells = {**self._cells, **cells}
        return told

    def _all_cells(self, graph: ScopeGraph) -> dict[tuple[str, Any], dict[str, Any]]:
        names = sorted(set(graph.nx) | {str(id) for _, id in self._cells})
        cells: dict[tuple[str, Any], dict[str, Any]] = {}
        for population in self.given.publications:
            guards = self._guards[population.name]
            for name in names:
                found = routes(graph, name)
                changing = [route for route in found if route.changes]
                unknown = [route for route in found if not route.changes and route.guards not in guards]
                if changing or unknown:
                    what = "a mapping, a session or a publishing policy" if changing else "an interface"
                    raise UpdateError(
                        f"{name!r} would publish through {what} that the running scenario does not know; "
                        "scope the scenario anew"
                    )
                for id in _ids(name):
                    said = publication_cells(graph, name, found, guards)
                    cells[profiles_of(population), id] = said
        for population in self.given.subscriptions:
            for name in names:
                for id in _ids(name):
                    cells[profiles_of(population), id] = subscription_cells(graph, name)
        return cells


Reaction = Callable[[Content, "Callable[[Content], None]"], None]
"""What a consumer does with what it receives; it publishes by calling what it is handed."""


Composer = Callable[[list[Content]], Content | None]
"""What several notifications make together; None while they do not yet."""


@dataclass
class EventService:
    """Components that publish, and consumers that react (3.6).

    >>> from workbench.brokering.scopes.graph import Scope, graph
    >>> from workbench.brokering.scopes.interfaces import kinds
    >>> figure6 = graph("A->S", "Y->S", "Y->T", "B->T", scopes={"S": Scope(session=True), "T": Scope(session=True)})
    >>> service = EventService(figure6)
    >>> service.subscribe("Y", kinds("ask"), lambda said, publish: publish({"kind": "signed"}))
    >>> service.subscribe("A", kinds("signed"))
    >>> service.subscribe("B", kinds("signed"))
    >>> [delivery.consumer for delivery in service.publish("A", {"kind": "ask"})]
    ['Y', 'A']
    """

    graph: ScopeGraph
    subscriptions: dict[str, Interface] = field(default_factory=dict)
    reactions: dict[str, Reaction] = field(default_factory=dict)
    composers: dict[str, Composer] = field(default_factory=dict)
    published: int = 0
    _collected: dict[tuple[str, Context], list[Content]] = field(default_factory=dict)

    def subscribe(self, consumer: str, interface: Interface, reaction: Reaction | None = None) -> None:
        """Declare what a consumer wants to receive, and the function that is invoked on delivery."""
        self.subscriptions[consumer] = interface
        if reaction is not None:
            self.reactions[consumer] = reaction

    def compose(self, consumer: str, interface: Interface, composer: Composer) -> None:
        """Let a component make one notification of several: what it collects is kept apart by session.

        >>> from workbench.brokering.scopes.graph import graph
        >>> from workbench.brokering.scopes.interfaces import kinds
        >>> service = EventService(graph("A->S", "Both->S", "Z->S"))
        >>> pair = lambda said: {"kind": "pair", "n": sum(s["n"] for s in said)} if len(said) == 2 else None
        >>> service.compose("Both", kinds("one"), pair)
        >>> service.subscribe("Z", kinds("pair"))
        >>> [d.consumer for n in (1, 2) for d in service.publish("A", {"kind": "one", "n": n})]
        ['Both', 'Both', 'Z']
        """
        self.subscriptions[consumer] = interface
        self.composers[consumer] = composer

    def publish(self, producer: str, content: Content, limit: int = 1000) -> list[Delivery]:
        """Publish, let everybody react, and say what was delivered, in order; more than ``limit`` is a loop."""
        told: list[Delivery] = []
        waiting: deque[tuple[str, Content, Context]] = deque([(producer, content, NO_CONTEXT)])
        while waiting:
            name, said, context = waiting.popleft()
            self.published += 1
            found = deliveries(self.graph, Notification(self.published, name, said, context), self.subscriptions)
            for delivery in sorted(found, key=lambda d: (d.t, d.consumer, sorted(d.session), repr(d.content))):
                told.append(delivery)
                if len(told) > limit:
                    raise UpdateError(f"more than {limit} deliveries follow from one notification of {producer!r}")
                reaction = self.reactions.get(delivery.consumer)
                if reaction is not None:
                    reaction(dict(delivery.content), _publisher(waiting, delivery))
                composed = self._composed(delivery)
                if composed is not None:
                    waiting.append((delivery.consumer, composed, delivery.session))
        return told

    def _composed(self, delivery: Delivery) -> Content | None:
        """What a composer makes of what it has collected in a session, which is then forgotten."""
        if delivery.consumer not in self.composers:
            return None
        collected = self._collected.setdefault((delivery.consumer, delivery.session), [])
        collected.append(dict(delivery.content))
        made = self.composers[delivery.consumer](collected)
        if made is not None:
            collected.clear()
        return made


def _publisher(waiting: deque[tuple[str, Content, Context]], delivery: Delivery) -> Callable[[Content], None]:
    """What a consumer publishes with while it reacts: the context of the delivery goes with it, unseen."""
    return lambda content: waiting.append((delivery.consumer, content, delivery.session))
