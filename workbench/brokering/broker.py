"""The live, state-persistent broker (Subject Spaces, 4.7).

It takes one operation at a time (add, update, remove a publication or subscription; move a client; advance
the clock) and sends a message only when a pair joins or leaves M:

=========================  =====================================  =========================================
operation                  who is told                            what
=========================  =====================================  =========================================
add a publication P        every subscription in Q_P(P)           P
add a subscription S       S, if Q_S(S) is not empty              the set Q_S(S), in one message
update P                   every subscription in Q'_P(P)          P as it is now
update S                   S, if Q'_S(S) is not empty             the set Q'_S(S), in one message
remove P                   every subscription that it matched     that P does not match any longer
remove S                   nobody
anything that ends a pair  its subscription                       the set of publications that left, in one message
=========================  =====================================  =========================================

An operation without a time is an instant of its own and answers at once. With explicit times, an instant stays
open until `Broker.advance` or a later operation closes it, and nothing about it is sent before; of two updates of
one thing at one instant the last counts. Transitions that time alone brings about are sent in their order on the
way. Going back in time is an error.

A refused operation changes nothing.

Departure: the paper lists who is told of pairs that are *added* to M, and says only in its first sentence that
removals from M are told too. Here an unmatch goes to the subscription in all cases but the removal of the
subscription itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from workbench.engines.explain import Explanation, explain
from workbench.engines.reference import Reference, naming
from workbench.errors import DataError, ScenarioError, UpdateError, did_you_mean
from workbench.geometry import PLANAR, WGS84
from workbench.model.clock import Clock
from workbench.model.columns import is_null
from workbench.model.filters import Filter
from workbench.model.history import Change, Client, History, Instance, Party
from workbench.model.pubsub import SUBSCRIPTION, Population
from workbench.model.regions import Region
from workbench.model.scenario import Scenario
from workbench.model.shapes import point, shape
from workbench.tables import COORDINATES, NOTIFICATIONS


@dataclass(frozen=True)
class Content:
    """A publication as a message carries it: its object regions, and the cells that filled them."""

    publication: Any
    regions: Mapping[str, Region]
    cells: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"{self.publication}: " + ", ".join(f"{name} = {region}" for name, region in self.regions.items())


@dataclass(frozen=True)
class Message:
    """What one subscription is told at one instant: the publications that now match, or that do not any longer."""

    t: Any
    kind: str
    subscription: Any
    contents: tuple[Content, ...]

    @property
    def publications(self) -> frozenset[Any]:
        """The names of the publications."""
        return frozenset(content.publication for content in self.contents)

    def __repr__(self) -> str:
        names = ", ".join(str(content.publication) for content in self.contents)
        return f"t={self.t} {self.subscription}: {self.kind} {names}"


class Broker:
    """A state-persistent broker for the populations of a scenario.

    >>> from workbench.scenarios.proximity import scenario
    >>> broker = Broker(scenario(radius_m=500))
    >>> broker.add("places", "cafe", position=(0, 0))
    []
    >>> broker.add("mobiles", 7, position=(400, 0))
    [t=2 7: match cafe]
    >>> broker.move(7, (300, 0))
    []
    >>> broker.move(7, (501, 0))
    [t=4 7: unmatch cafe]
    """

    def __init__(self, scenario: Scenario, *, clock: Clock | None = None, metric: str | None = None) -> None:
        self.scenario = scenario
        self.clock = clock or Clock(tick=scenario.tick)
        self.metric = metric or scenario.metric or PLANAR
        if self.metric not in (PLANAR, WGS84):
            raise ScenarioError(f"metric {self.metric!r}; {did_you_mean(self.metric, (PLANAR, WGS84))}")
        scenario.check_clock(self.clock)
        self._history = History(scenario)
        self._closed: int | None = None
        self._open: int | None = None
        self._staged: dict[Client, Change] = {}
        self._matching: dict[tuple[Party, Party], int] = {}
        self._expiry: dict[Party, int] = {}
        self._log: list[tuple[Any, str, Any, Any]] = []
        self._names = {
            **{p.name: naming(scenario.publications) for p in scenario.publications},
            **{p.name: naming(scenario.subscriptions) for p in scenario.subscriptions},
        }
        singles = [Change(Client(p.table, p.name), begin=(p.name,)) for p in scenario.populations if p.single]
        self._singles = {change.client: change for change in singles}

    # -- operations ------------------------------------------------------------------------------------

    def add(
        self, population: str, id: Any, *, t: Any = None, filter: Filter | None = None, **cells: Any
    ) -> list[Message]:
        """Add the publication or subscription of a client; its cells are those of the client's row."""
        with self._instant(t) as messages:
            found = self._population(population)
            party = Party(found.name, Client(found.table, id))
            if self._exists(party):
                raise UpdateError(f"{party} exists already; update it, or remove it first")
            change = self._change(party.client, cells, begin=(found.name,), filters=self._filters(found, filter))
            return messages + self._stage(change, t)

    def update(
        self, population: str, id: Any, *, t: Any = None, filter: Filter | None = None, **cells: Any
    ) -> list[Message]:
        """Change cells of a client's row, or the filter of one of its publications or subscriptions."""
        with self._instant(t) as messages:
            party = self._existing(population, id)
            filters = self._filters(self._population(population), filter)
            return messages + self._stage(self._change(party.client, cells, filters=filters), t)

    def remove(self, population: str, id: Any, *, t: Any = None) -> list[Message]:
        """Remove a publication (whom it matched is told) or a subscription (nobody is told)."""
        with self._instant(t) as messages:
            party = self._existing(population, id)
            return messages + self._stage(Change(party.client, end=(party.population,)), t)

    def move(self, client: Any, position: Any = None, *, t: Any = None, **cells: Any) -> list[Message]:
        """Move a client, once for all its publications and subscriptions; ``client`` is an id, or (table, id)."""
        with self._instant(t) as messages:
            if position is not None:
                cells = {**cells, "position": position}
            return messages + self._stage(self._change(self._client(client), cells), t)

    def profile(self, table: str, id: Any, *, t: Any = None, **cells: Any) -> list[Message]:
        """Change the row of a table of profiles."""
        with self._instant(t) as messages:
            known = {p.profiles for p in self.scenario.populations if p.profiles}
            if table not in known:
                raise UpdateError(f"no population joins profiles {table!r}; {did_you_mean(table, known)}")
            return messages + self._stage(self._change(Client(table, id), cells), t)

    def advance(self, t: Any) -> list[Message]:
        """Let time pass up to and including t: closes the open instant, and sends what time alone brings about."""
        until = self._ticks(t)
        if self._closed is not None and until < self._closed:
            raise UpdateError(f"time goes back: {t} is before {self.clock.shown(self._closed)}")
        if self._open is not None and until < self._open:
            raise UpdateError(f"time goes back: {t} is before the open instant {self.clock.shown(self._open)}")
        if self._singles and self._open is None and not self._history.instants:
            self._open = until  # what exists from the start begins with the first instant
        return self._close_until(until)

    def ask(self, population: str, id: Any = "?", **cells: Any) -> list[Content]:
        """The publications that a subscription would match right now; nothing is kept, nobody else is told."""
        found = self._population(population)
        if found.role != SUBSCRIPTION:
            raise UpdateError(f"{population!r} are publications; ask with a subscription")
        change = self._change(Client(found.table, id), cells, begin=(found.name,))
        now = self._closed if self._closed is not None else 0
        self._try(now, change)
        fork = self._history.fork()
        fork.apply(now, [change])
        reference = Reference(self.scenario, fork, self.clock, self.metric)
        asker = Party(found.name, change.client)
        parties = reference.sides(self.scenario.publications, now)
        return [self._content(p, fork, now) for p in sorted(parties, key=repr) if reference.pair_matches(p, asker, now)]

    # -- what can be seen --------------------------------------------------------------------------------

    @property
    def now(self) -> Any:
        """The latest instant that is closed, None before the first."""
        return None if self._closed is None else self.clock.shown(self._closed)

    @property
    def matches(self) -> set[tuple[Any, Any]]:
        """M now: the pairs (publication, subscription) by name."""
        return {(self._name(p), self._name(s)) for p, s in self._matching}

    @property
    def notifications(self) -> pd.DataFrame:
        """Everything that was sent, as the table of notifications."""
        return pd.DataFrame(self._log, columns=list(NOTIFICATIONS))

    def explain(self, publication: Any, subscription: Any, at: Any = None) -> Explanation:
        """Why the two match or do not, now or at an earlier instant."""
        t = (self._closed or 0) if at is None else self._ticks(at)
        pair = (
            self._party(self.scenario.publications, publication),
            self._party(self.scenario.subscriptions, subscription),
        )
        return explain(self._reference, *pair, t)

    # -- instants ----------------------------------------------------------------------------------------

    @contextmanager
    def _instant(self, t: Any) -> Iterator[list[Message]]:
        """Open the instant of an operation, closing what lies before; an error inside leaves the broker as it was."""
        history = self._history.fork()
        before = (self._closed, self._open, dict(self._staged), self._matching, dict(self._expiry), list(self._log))
        try:
            if t is None:
                latest = [i for i in (self._closed, self._open) if i is not None]
                instant = max(latest) + 1 if latest else 1
            else:
                instant = self._ticks(t)
                self._check_order(instant)
            messages = self._close_until(instant - 1) if self._open != instant else []
            self._open = instant
            yield messages
        except BaseException:
            self._history = history
            self._closed, self._open, self._staged, self._matching, self._expiry, self._log = before
            raise

    def _stage(self, change: Change, t: Any) -> list[Message]:
        """Add a change to the open instant; close the instant where the operation had no time."""
        assert self._open is not None
        staged = self._merged(self._staged.get(change.client), change)
        self._try(self._open, staged)
        self._staged[change.client] = staged
        return self._close_until(self._open) if t is None else []

    def _try(self, t: int, change: Change) -> None:
        """Apply a change to a copy: what cannot be a region is refused before anything is changed."""
        first = [] if self._history.instants else list(self._singles.values())
        try:
            self._history.fork().apply(t, [*first, change])
        except (ScenarioError, TypeError, ValueError) as error:
            raise UpdateError(f"{change.client}: {error}") from None

    def _check_order(self, instant: int) -> None:
        if self._closed is not None and instant <= self._closed:
            raise UpdateError(
                f"time goes back: {self.clock.shown(instant)} is not after the closed {self.clock.shown(self._closed)}"
            )
        if self._open is not None and instant < self._open:
            raise UpdateError(
                f"time goes back: {self.clock.shown(instant)} is before the open instant {self.clock.shown(self._open)}"
            )

    def _merged(self, staged: Change | None, change: Change) -> Change:
        there = [name for name in change.end if self._history_instance(Party(name, change.client)) is not None]
        return merged(staged, change, there)

    def _close_until(self, until: int) -> list[Message]:
        """Close every instant up to ``until`` at which something can change, in order."""
        messages: list[Message] = []
        while True:
            pending = [i for i in (self._open, *self._expiry.values()) if i is not None and i <= until]
            following = min(pending, default=None)
            messages += self._pass_time(until if following is None else following - 1)
            if following is None:
                break
            self._apply(following)
            messages += self._evaluate(following)
        self._closed = until if self._closed is None else max(self._closed, until)
        return messages

    def _apply(self, t: int) -> None:
        """Put the staged changes of an instant and the ends of lifetimes into the history."""
        changes = dict(self._staged) if self._open == t else {}
        if not self._history.instants:
            changes = {**self._singles, **changes}
        if self._open == t:
            self._open, self._staged = None, {}
        for change in changes.values():
            for name in change.end:
                self._expiry.pop(Party(name, change.client), None)
        self._history.apply(t, changes.values())
        for change in changes.values():
            self._refresh(change, t)
        over = [party for party, end in self._expiry.items() if end == t]
        for party in over:
            del self._expiry[party]
        if over:
            self._history.apply(t, [Change(party.client, end=(party.population,)) for party in over])

    def _refresh(self, change: Change, t: int) -> None:
        """A row lives on for its lifetime after each of its updates."""
        state = self._history.at(t).get(change.client)
        for name in state.instances if state and (change.values or change.begin) else ():
            stay = self.scenario.population(name).stay
            if stay is not None:
                self._expiry[Party(name, change.client)] = t + stay.in_ticks(self.clock.tick)

    def _pass_time(self, until: int) -> list[Message]:
        """What time alone brings about, after the latest closed instant and up to ``until``."""
        messages = []
        if self._history.instants:
            start = self._closed if self._closed is not None else self._history.instants[0]
            for t in self._reference.evaluation_instants(until):
                if t > start and t > self._history.instants[-1]:
                    messages += self._evaluate(t)
        return messages

    def _evaluate(self, t: int) -> list[Message]:
        """Compare M at t with M before, and tell the difference."""
        reference = self._reference
        matching = {(p, s): reference.generation(p, t) for p, s in reference.M(t)}
        left = [pair for pair, generation in self._matching.items() if matching.get(pair) != generation]
        come = [pair for pair, generation in matching.items() if self._matching.get(pair) != generation]
        told = [
            (p, s)
            for p, s in left
            if self._history.instance(s, t) is not None and not self.scenario.population(p.population).transient
        ]
        self._matching, self._closed = matching, t
        return self._messages(t, "unmatch", told) + self._messages(t, "match", come)

    def _messages(self, t: int, kind: str, pairs: Iterable[tuple[Party, Party]]) -> list[Message]:
        by_subscription: dict[Party, list[Party]] = {}
        for publication, subscription in pairs:
            by_subscription.setdefault(subscription, []).append(publication)
        at = self.clock.shown(t)
        messages = []
        for subscription in sorted(by_subscription, key=_order):
            publications = sorted(by_subscription[subscription], key=_order)
            contents = tuple(self._content(p, self._history, t) for p in publications)
            messages.append(Message(at, kind, self._name(subscription), contents))
        rows = [(at, kind, self._name(p), self._name(s)) for p, s in pairs]
        self._log += sorted(rows, key=lambda row: (str(type(row[2])), row[2], str(type(row[3])), row[3]))
        return messages

    def _content(self, publication: Party, history: History, t: int) -> Content:
        """The publication as it is, or as it last was."""
        for at in (t, t - 1):
            instance = history.instance(publication, at)
            if instance is not None:
                state = history.at(at)[publication.client]
                return Content(self._name(publication), instance.regions, state.values)
        return Content(self._name(publication), {}, {})

    # -- names and checks ----------------------------------------------------------------------------------

    @property
    def _reference(self) -> Reference:
        return Reference(self.scenario, self._history, self.clock, self.metric)

    def _name(self, party: Party) -> Any:
        return self._names[party.population](party)

    def _ticks(self, t: Any) -> int:
        try:
            return self.clock.ticks(t)
        except DataError as error:
            raise UpdateError(str(error)) from None

    def _population(self, name: str) -> Population:
        try:
            return self.scenario.population(name)
        except ScenarioError as error:
            raise UpdateError(str(error)) from None

    def _party(self, populations: Sequence[Population], name: Any) -> Party:
        known = {
            self._name(party): party for p in populations for party in self._history.ever(p.name, self._closed or 0)
        }
        if name not in known:
            raise UpdateError(f"there is no {populations[0].role} {name!r}; {did_you_mean(str(name), map(str, known))}")
        return known[name]

    def _history_instance(self, party: Party) -> Instance | None:
        return self._history.instance(party, self._history.instants[-1]) if self._history.instants else None

    def _exists(self, party: Party) -> bool:
        """Whether it exists after everything that was said so far."""
        staged = self._staged.get(party.client)
        if staged and party.population in staged.begin:
            return True
        if staged and party.population in staged.end:
            return False
        if not self._history.instants and party.client in self._singles:
            return True
        return self._history_instance(party) is not None

    def _existing(self, population: str, id: Any) -> Party:
        found = self._population(population)
        party = Party(found.name, Client(found.table, id))
        if not self._exists(party):
            known = [str(p.client.id) for p in self._parties(found)]
            raise UpdateError(f"there is no {found.role} {id!r} in {population!r}; {did_you_mean(str(id), known)}")
        return party

    def _parties(self, population: Population) -> list[Party]:
        clients = [*self._staged, *(self._history.at(self._history.instants[-1]) if self._history.instants else ())]
        return [p for c in dict.fromkeys(clients) if self._exists(p := Party(population.name, c))]

    def _client(self, given: Any) -> Client:
        parties = [party for p in self.scenario.populations for party in self._parties(p)]
        clients = dict.fromkeys(party.client for party in parties)
        if isinstance(given, tuple) and len(given) == 2 and Client(*given) in clients:
            return Client(*given)
        found = [client for client in clients if client.id == given]
        if len(found) > 1:
            raise UpdateError(f"{given!r} is a client in {', '.join(c.table for c in found)}; say which: (table, id)")
        if not found:
            raise UpdateError(f"there is no client {given!r}; {did_you_mean(str(given), {str(c.id) for c in clients})}")
        return found[0]

    def _filters(self, population: Population, filter: Filter | None) -> dict[str, Filter]:
        if filter is None:
            return {}
        try:
            accepted = self.scenario.accepted(population, filter)
            trial = replace(population, filter=accepted)
            others = self.scenario.opposite(population)
            sides = (others, (trial,)) if population.role == SUBSCRIPTION else ((trial,), others)
            replace(self.scenario, publications=sides[0], subscriptions=sides[1]).check_clock(self.clock)
        except ScenarioError as error:
            raise UpdateError(str(error)) from None
        return {population.name: accepted}

    def _change(
        self,
        client: Client,
        cells: Mapping[str, Any],
        begin: tuple[str, ...] = (),
        filters: Mapping[str, Filter] | None = None,
    ) -> Change:
        return checked(self.scenario, self.metric, client, cells, begin, filters)


def merged(staged: Change | None, change: Change, there: Iterable[str]) -> Change:
    """Two changes of one client at one instant: the last value counts; an end taken back is an update.

    ``there`` names what the client had before the instant: only that can end.
    """
    if staged is None:
        return change
    begin, end = dict.fromkeys(staged.begin), dict.fromkeys(staged.end)
    for name in change.end:
        if name in begin and name not in there:
            del begin[name]  # it never was
        else:
            begin.pop(name, None)
            end[name] = None
    begin.update(dict.fromkeys(change.begin))
    values = {**staged.values, **{k: v for k, v in change.values.items() if not is_null(v)}}
    filters = {n: f for n, f in staged.filters.items() if n not in change.end}
    return Change(change.client, values, tuple(begin), tuple(end), {**filters, **change.filters})


def checked(
    scenario: Scenario,
    metric: str,
    client: Client,
    cells: Mapping[str, Any],
    begin: tuple[str, ...] = (),
    filters: Mapping[str, Filter] | None = None,
) -> Change:
    """What cells bring to a client; an unknown column or a position that is none is refused."""
    for name, value in cells.items():
        if isinstance(value, float) and value != value:
            raise UpdateError(f"{name} is NaN; leave it out (or None) where it stays as it is")
    values = {name: value for name, value in cells.items() if not is_null(value)}
    readers = [p for p in scenario.populations if client.table in (p.table, p.profiles)]
    known = frozenset().union(*(p.columns() for p in readers)) | {"x", "y", "z", "lon", "lat"}
    unknown = [name for name in values if name not in known]
    if unknown:
        raise UpdateError(f"no region reads the column {unknown[0]!r}; {did_you_mean(unknown[0], known)}")
    try:
        _place(values, metric)
    except (ScenarioError, TypeError, ValueError) as error:
        raise UpdateError(str(error)) from None
    return Change(client, values, begin=begin, filters=filters or {})


def _place(values: dict[str, Any], metric: str) -> None:
    """``position`` from the coordinates, checked."""
    names = COORDINATES[metric]
    if "position" in values:
        values["position"] = shape(values["position"])
    elif set(names) <= set(values):
        values["position"] = point(values[names[0]], values[names[1]], values.get("z", 0.0))
    place = values.get("position")
    if place is not None and metric == WGS84 and (max(map(abs, place.ys)) > 90 or max(map(abs, place.xs)) > 180):
        raise UpdateError(f"{place!r} lies outside the globe; a position is (lon, lat) in degrees")


def _order(party: Party) -> tuple[str, str, Any]:
    return (party.population, "" if isinstance(party.client.id, int | float) else "s", party.client.id)
