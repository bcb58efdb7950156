"""Scopes live: a broker under a graph that changes, and an event service whose consumers react (Scopes, 3.6 and 4).

`ScopedBroker` is the state-persistent broker of a scoped scenario. It knows what everybody wrote into its rows, and
brings the broker from what it holds to what it should hold: the rows, the derived publications ``id@face`` that
mappings and session tags make of them, and the hidden rows that say where they come to be. `ScopedBroker.change` puts
another graph in force the same way: who joined hears of what matches already, who left of its end, and the
administration messages are counted. Interfaces are evaluated when a row is written, so a graph may bring any.
Transmission policies stand between the broker and those whom it tells (`transmitter`): what is told is what a replay of
the same updates tells.

`ScopedBroker.compose` makes one publication of several (3.4): a subscription collects what it is told, each session for
itself, and what comes of it is published in that session, an instant later.

`EventService` is the paper's own setting, notifications and processing functions. ``publish`` is called the same way
everywhere; what a consumer publishes while it reacts is put into its session by the service, not by the consumer.
`EventService.compose` makes one notification of several (3.4), of one session each; if a scope composes, what it
publishes is an event of the scope as a whole (2.2).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pandas as pd

from workbench.brokering.broker import Broker, Message
from workbench.brokering.scopes.adapters import administration
from workbench.brokering.scopes.definition import NO_CONTEXT, Context, Delivery, Notification, deliveries
from workbench.brokering.scopes.faces import Face, contents, face_of
from workbench.brokering.scopes.graph import ScopeGraph
from workbench.brokering.scopes.interfaces import Content, Interface
from workbench.brokering.scopes.routes import routes
from workbench.brokering.scopes.scoped import (
    evaluated,
    profiles_of,
    publication_cells,
    subscription_cells,
    with_hidden_regions,
)
from workbench.brokering.scopes.sending import FOREVER
from workbench.brokering.scopes.transmitter import Transmitter
from workbench.engines.explain import Explanation, after_stage
from workbench.errors import ScenarioError, UpdateError
from workbench.model.columns import is_null
from workbench.model.history import Client, Party
from workbench.model.pubsub import PUBLICATION
from workbench.model.scenario import Scenario

Key = tuple[str, Any]
"""A population and the id of one of its rows."""
Cells = dict[str, Any]
NO_GUARDS = (frozenset[Interface](),)


class Row(NamedTuple):
    """What a client wrote: its component, in reaction to which sessions, and its cells."""

    component: str
    context: Context
    cells: Cells


Composer = Callable[[list[Content]], Content | None]
"""What several notifications make together; None while they do not yet."""
MOST = 1000
"""How many messages may follow from one operation, where publications are made of others."""


class Composition(NamedTuple):
    """A subscription that makes publications of several that it is told of."""

    population: str
    id: Any
    into: str
    composer: Composer


class ScopedBroker:
    """A live broker whose clients see what the graph in force lets them see.

    A client is its own component unless it names another one; ``context`` are the sessions that it reacts to.

    >>> from workbench.brokering.scopes.graph import graph
    >>> from workbench.scenarios.proximity import scenario
    >>> mall = graph("cafe->Mall", "ann->City", "Mall->City")
    >>> live = ScopedBroker(scenario(), mall.leave("ann", "City"))
    >>> live.add("places", "cafe", position=(0, 0)) + live.add("mobiles", "ann", position=(0, 0))
    []
    >>> live.change(mall)
    [t=3 ann: match cafe]
    >>> live.messages
    {'memberships': 1, 'components': 1, 'roots': 2}
    """

    def __init__(self, scenario: Scenario, graph: ScopeGraph) -> None:
        single = [population.name for population in scenario.populations if population.single]
        if single:
            raise ScenarioError(f"{single[0]!r} is single and cannot change its scopes; give it rows=")
        self.scenario = scenario
        self.graph = graph
        self.messages = {"memberships": 0, "components": 0, "roots": 0}
        self._populations = {population.name: population for population in scenario.populations}
        guards = {population.name: NO_GUARDS for population in scenario.publications}
        nobody = {profiles_of(p): pd.DataFrame({"id": []}) for p in scenario.populations}
        self.broker = Broker(with_hidden_regions(scenario, guards, nobody))
        self._rows: dict[Key, Row] = {}
        self._held: dict[Key, dict[Any, tuple[Cells, Cells]]] = {}
        """what the broker holds of each row: by name the cells, and those of the hidden row"""
        self._composing: dict[Any, Composition] = {}
        """who makes one of several, by the name of the subscription"""
        self._collected: dict[tuple[Any, Context], list[Content]] = {}
        self._made = 0
        self._transmitter: Transmitter | None = None
        self._follow(graph)

    # -- operations --------------------------------------------------------------------------------------------------

    def add(
        self,
        population: str,
        id: Any,
        *,
        t: Any = None,
        component: Any = None,
        context: Iterable[str] = (),
        **cells: Any,
    ) -> list[Message]:
        """Add a publication or subscription, and the derived publications that the graph makes of it."""
        if (population, id) in self._rows:
            raise UpdateError(f"{population}/{id} exists already; update it, or remove it first")
        row = Row(str(id if component is None else component), frozenset(context), cells)
        return self._put({(population, id): row}, self.graph, t)

    def update(self, population: str, id: Any, *, t: Any = None, **cells: Any) -> list[Message]:
        """Change cells of a row, and of all that is derived from it."""
        row = self._known(population, id)
        said = {name: value for name, value in cells.items() if not is_null(value)}
        return self._put({(population, id): row._replace(cells={**row.cells, **said})}, self.graph, t)

    def remove(self, population: str, id: Any, *, t: Any = None) -> list[Message]:
        """Remove a publication or subscription, and all that is derived from it."""
        self._known(population, id)
        return self._put({(population, id): None}, self.graph, t)

    def change(self, graph: ScopeGraph, t: Any = None) -> list[Message]:
        """Put another graph in force; everybody hears of the transitions that this brings about."""
        self._follow(graph)
        told = self._put(dict(self._rows), graph, t)
        for name, count in administration(self.graph, graph).items():
            self.messages[name] += count
        self.graph = graph
        return told

    def explain(self, publication: Any, subscription: Any, at: Any = None) -> Explanation:
        """Why it is told of the two, or is not, now or at an earlier instant; what waits was published before."""
        if self._transmitter is None:
            return self.broker.explain(publication, subscription, at)
        clock, at = self.broker.clock, self.broker.now if at is None else at
        behind = self._transmitter.behind(publication, self.broker.ticks(at), self.broker.publications)
        if not behind:
            return self.broker.explain(publication, subscription, at)
        then = [(clock.shown(t), waited, name) for name, t, waited in behind]
        found = [(t, waited, self.broker.explain(name, subscription, t)) for t, waited, name in then]
        told = (publication, subscription) in self._told_at(self.broker.ticks(at))
        return after_stage(publication, subscription, at, told, found)

    def _told_at(self, t: int) -> set[tuple[Any, Any]]:
        """The pairs that were told of by an instant, and of whose end it was not told."""
        told: set[tuple[Any, Any]] = set()
        events = {p.name for p in self.scenario.publications if p.transient}
        for row in self.broker.notifications.itertuples():
            pair, at = (row.publication, row.subscription), self.broker.ticks(row.t)
            silent = (len(self.scenario.publications) == 1 and bool(events)) or str(pair[0]).partition("/")[0] in events
            if at <= t and (not silent or at == t):
                (told.add if row.kind == "match" else told.discard)(pair)
        return told

    # -- several to one ------------------------------------------------------------------------------------------------

    def compose(
        self,
        population: str,
        id: Any,
        into: str,
        composer: Composer,
        *,
        t: Any = None,
        component: Any = None,
        **cells: Any,
    ) -> list[Message]:
        """Add a subscription that makes publications ``into`` of several that it is told of, within one session.

        The composer is asked with what was collected in a session since it made something last.
        """
        name = self.broker.named(Party(population, Client(self.broker.scenario.population(population).table, id)))
        before = dict(self._composing)
        self._composing[name] = Composition(population, id, into, composer)
        try:
            return self.add(population, id, t=t, component=component, **cells)
        except BaseException:
            self._composing = before
            raise

    def advance(self, t: Any) -> list[Message]:
        """Let time pass up to and including t, with what is made of several on the way."""
        with self._whole():
            return self._settled(self.broker.ticks(t)) + self.broker.advance(t)

    def _settled(self, until: int) -> list[Message]:
        """Close the instants up to one, each with what is published in reaction, an instant later."""
        told: list[Message] = []
        ticks, shown = self.broker.ticks, self.broker.clock.shown
        while self._composing and (coming := self.broker.coming) is not None and ticks(coming) <= until:
            messages = self.broker.advance(coming)
            told += messages
            for made in self._composed(messages):
                told += self._write(made, self.graph, shown(ticks(coming) + 1))
        return told

    def _composed(self, messages: Iterable[Message]) -> Iterator[dict[Key, Row | None]]:
        """The rows that composers make of what they are told."""
        for message in messages:
            known = self._composing.get(message.subscription)
            if known is None or message.kind != "match" or (known.population, known.id) not in self._rows:
                continue
            for content in message.contents:
                session = face_of(content.publication)[1].session
                collected = self._collected.get((message.subscription, session), [])
                self._collected[message.subscription, session] = [*collected, content.cells]
                made = known.composer(self._collected[message.subscription, session])
                if made is not None:
                    del self._collected[message.subscription, session]
                    component = self._rows[known.population, known.id].component
                    self._made += 1
                    yield {(known.into, f"{known.id}.{self._made}"): Row(component, session, dict(made))}

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """All of an operation and of what is made on the way, or nothing."""
        before = (dict(self._rows), dict(self._held), dict(self._collected), self._made) if self._composing else None
        try:
            with self.broker.whole():
                yield
        except BaseException:
            if before is not None:
                self._rows, self._held, self._collected, self._made = before
            raise

    # -- from what is held to what should be -----------------------------------------------------------------------

    def _put(self, rows: dict[Key, Row | None], graph: ScopeGraph, t: Any) -> list[Message]:
        """Hold these rows and the graph, after all that is made of several before them, and because of them."""
        if not self._composing:
            return self._write(rows, graph, t)
        with self._whole():
            told = self._settled(self.broker.ticks(self.broker.following if t is None else t) - 1)
            now = self._write(rows, graph, t)
            if t is None:
                waiting = deque(self._composed(now))
                while waiting:
                    more = self._write(waiting.popleft(), graph, None)
                    waiting += self._composed(more)
                    now += more
                    if len(now) > MOST:
                        raise UpdateError(f"more than {MOST} messages follow from one operation")
            return told + now

    def _write(self, rows: dict[Key, Row | None], graph: ScopeGraph, t: Any) -> list[Message]:
        """Let the broker hold what these rows and the graph say, all at one instant, or leave it as it is."""
        held = {key: {} if row is None else self._shown(key, row, graph) for key, row in rows.items()}
        at = t if t is not None else self.broker.following
        with self.broker.whole():
            self._announce(rows, graph, at)
            told = [message for key in held for message in self._bring(key[0], self._held.get(key, {}), held[key], at)]
            if t is None:
                told += self.broker.advance(at)
        for key, row in rows.items():
            # An event is over with its instant: it is not kept, and a change of the graph is no new event.
            if row is None or self._populations[key[0]].transient:
                self._rows.pop(key, None)
                self._held.pop(key, None)
            else:
                self._rows[key], self._held[key] = row, held[key]
        return told

    def _follow(self, graph: ScopeGraph) -> None:
        """From the first graph with transmission policies on, these say who is told, and when."""
        if self._transmitter is not None or not any(scope.waits or scope.chooses for scope in graph.scopes.values()):
            return
        self._transmitter = Transmitter(self.scenario, self.graph, self.broker.named)
        for (population, id), row in self._rows.items():
            self._transmitter.wrote(population, id, row, -FOREVER)
        self.broker.through(self._transmitter)

    def _announce(self, rows: Mapping[Key, Row | None], graph: ScopeGraph, at: Any) -> None:
        """Say what rows and which graph there will be, before anything is told of them."""
        if self._transmitter is not None:
            t = self.broker.ticks(at)
            for (population, id), row in rows.items():
                if row is not None and row is not self._rows.get((population, id)):
                    self._transmitter.wrote(population, id, row, t)
            if graph is not self.graph:
                self._transmitter.governed(graph, t)

    def _bring(self, population: str, before: Any, after: Any, t: Any) -> Iterable[Message]:
        """The messages on the way from what the broker holds of a row to what it should hold."""
        for name in [name for name in before if name not in after]:
            yield from self.broker.remove(population, name, t=t)
        for name, (cells, hidden) in after.items():
            said, seen = before.get(name, (None, None))
            if seen != hidden:
                yield from self.broker.profile(profiles_of(self._populations[population]), name, t=t, **hidden)
            if said is None:
                yield from self.broker.add(population, name, t=t, **cells)
            elif said != cells:
                yield from self.broker.update(population, name, t=t, **cells)

    def _shown(self, key: Key, row: Row, graph: ScopeGraph) -> dict[Any, tuple[Cells, Cells]]:
        """What the broker should hold of a row: itself, and its faces."""
        name, id = key
        population = self._populations[name]
        if population.role != PUBLICATION:
            try:
                return {id: (row.cells, subscription_cells(graph, row.component))}
            except ScenarioError as error:
                raise UpdateError(str(error)) from None
        found = evaluated(
            routes(graph, row.component, row.context), row.cells, lambda said: contents(population, said)
        )
        shows = {Face(): (row.cells, set[str]()), **found}
        return {
            face.of(id): (
                dict(cells),
                publication_cells(graph, row.component, [], NO_GUARDS, tokens, derived=face != Face()),
            )
            for face, (cells, tokens) in shows.items()
        }

    def _known(self, population: str, id: Any) -> Row:
        if (population, id) not in self._rows:
            raise UpdateError(f"there is no {population}/{id}")
        return self._rows[population, id]


Reaction = Callable[[Content, "Callable[[Content], None]"], None]
"""What a consumer does with what it receives; it publishes by calling what it is handed."""


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
