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

One operation looks only at what can change (`workbench.engines.live`), and moves among discs are a compiled call
(`workbench.engines.field`). The past is kept, because filters may look back, may be replaced by such that do, and
`Broker.explain` answers about earlier instants: of a move in the field 40 bytes, of other changes the client's new
state. ``remember=False`` lets the field forget where clients were; then no later filter may look back, and only the
present can be explained.

Departure: the paper lists who is told of pairs that are *added* to M, and says only in its first sentence that
removals from M are told too. Here an unmatch goes to the subscription in all cases but the removal of the
subscription itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from heapq import heappop, heappush
from types import MappingProxyType
from typing import Any, NamedTuple
from weakref import WeakSet

import numpy as np
import pandas as pd

from workbench.brokering.messages import Content, Message, Messages
from workbench.brokering.stages import LiveStage
from workbench.engines.explain import Explanation, explain
from workbench.engines.field import Field
from workbench.engines.field_kernels import CLOSER, step
from workbench.engines.live import Live, Pair, Step, looks_back
from workbench.engines.reference import Reference, naming
from workbench.engines.versions import Versions
from workbench.errors import DataError, ScenarioError, UpdateError, did_you_mean
from workbench.geometry import PLANAR, WGS84
from workbench.model.clock import Clock
from workbench.model.columns import is_null
from workbench.model.filters import Filter
from workbench.model.history import Change, Client, Instance, Party
from workbench.model.pubsub import SUBSCRIPTION, Population
from workbench.model.scenario import Scenario
from workbench.model.shapes import point, shape
from workbench.tables import COORDINATES, NOTIFICATIONS

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]
"""slots of the field, x and y"""
EMPTY: Mapping[tuple[str, Pair], Content] = MappingProxyType({})
Said = tuple[int, list[Pair], list[Pair]]
"""an instant, and the pairs that are told to leave M and to join it"""


class Moved(NamedTuple):
    """The transitions that many moves brought about, in order."""

    field: Field
    t: np.ndarray
    slots: np.ndarray
    transitions: np.ndarray

    def said(self) -> Iterator[Said]:
        """What they say, instant by instant."""
        left: list[Pair] = []
        come: list[Pair] = []
        now = 0
        for at, slot, transition in zip(*(column.tolist() for column in self[1:]), strict=True):
            if at != now and (left or come):
                yield now, left, come
                left, come = [], []
            now = at
            (come if transition & 1 else left).append(self.field.pair(transition >> 1, slot))
        if left or come:
            yield now, left, come


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

    def __init__(
        self, scenario: Scenario, *, clock: Clock | None = None, metric: str | None = None, remember: bool = True
    ) -> None:
        self.scenario = scenario
        self.clock = clock or Clock(tick=scenario.tick)
        self.metric = metric or scenario.metric or PLANAR
        if self.metric not in (PLANAR, WGS84):
            raise ScenarioError(f"metric {self.metric!r}; {did_you_mean(self.metric, (PLANAR, WGS84))}")
        scenario.check_clock(self.clock)
        self._live = Live(scenario, self.clock, self.metric, remember)
        self._remembers = remember
        self._closed: int | None = None
        self._open: int | None = None
        self._staged: dict[Client, Change] = {}
        self._moved: dict[int, tuple[float, float]] = {}
        """moves in the field at the open instant, by slot"""
        self._together: Rows | None = None
        """those of them that came together, as arrays, until another one comes"""
        self._expiry: dict[Party, int] = {}
        self._expiring: list[tuple[int, int, Party]] = []
        self._pushed = 0
        self._ended: dict[Party, int | None] = {}
        """the lifetimes that the operation at hand changes, as they were"""
        self._written: list[tuple[dict[Any, Any], Any, Any]] = []
        """and what it staged, with what stood there"""
        self._within = False
        self._onward: LiveStage | None = None
        self._gone: list[Party] = []
        """the publications and subscriptions that ended at the instant at hand"""
        self._contents: dict[Party, Content] = {}
        """publications as messages carried them, until they change"""
        self._unread: WeakSet[Messages] = WeakSet()
        """messages that are not made yet: before a publication changes they have to be"""
        self._log: list[Said | Moved] = []
        """what was said, instant by instant or move by move"""
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
        self._fit(population, id, cells, filter)
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
        self._fit(population, id, cells, filter)
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
        field = self._live.field
        if field is not None and type(position) is tuple and len(position) == 2 and not cells:
            told = self._step(field, client, position, t)
            if told is not None:
                return told
        if position is not None:
            cells = {**cells, "position": position}
        for population in self.scenario.populations if field is not None else ():
            # Whose row it is turns out below; a row that fits in none of the client's populations fits nowhere.
            self._fit(population.name, client[1] if isinstance(client, tuple) else client, cells, None)
        with self._instant(t) as messages:
            return messages + self._stage(self._change(self._client(client), cells), t)

    def moves(self, clients: Any, t: Any, x: Any, y: Any, *, table: str = "fixes") -> Sequence[Message]:
        """Move many clients of a table, in order: the same messages as one `move` for each row, or none is moved.

        Ids and coordinates are best given as arrays. The messages read like a list, and are made when they are.

        ``t`` has an instant for each row, or is None: then each row is an instant of its own. The last instant stays
        open, as with `move`.

        >>> from workbench.scenarios.proximity import scenario
        >>> broker = Broker(scenario(radius_m=500))
        >>> told = broker.add("places", "cafe", position=(0, 0)) + broker.add("mobiles", 7, position=(900, 0))
        >>> broker.moves([7, 7, 7], [11, 12, 13], [600, 400, 900], [0, 0, 0])
        [t=12 7: match cafe]
        """
        ids, xs, ys = list(clients) if not hasattr(clients, "__len__") else clients, x, y
        if not len(ids) == len(xs) == len(ys) == (len(ids) if t is None else len(t)):
            raise UpdateError(f"{len(ids)} clients, {len(xs)} x and {len(ys)} y; expected as many of each, and of t")
        if not len(ids):
            return []
        together = self._steps(ids, t, xs, ys, table)
        if together is not None:
            return together
        with self.whole():
            told: list[Message] = []
            for n, id in enumerate(ids):
                at = None if t is None else t[n]
                with self._instant(at) as messages:
                    change = self._change(self._client((table, id)), {"position": (xs[n], ys[n])})
                    told += messages + self._stage(change, at)
            return told

    def _steps(self, ids: Any, t: Any, xs: Any, ys: Any, table: str) -> Sequence[Message] | None:
        """The short way of many moves in the field; None where they have to be looked at one by one."""
        field, closed, opened = self._live.field, self._closed, self._open
        if field is None or self._staged or self._within or closed is None:
            return None
        try:
            # Kernels are compiled for plain arrays: views with gaps and read-only ones are copied.
            x, y = (np.require(given, np.float64, ["C", "W"]) for given in (xs, ys))
            if t is None:
                first = (closed if opened is None else opened) + 1
                at = np.arange(first, first + len(x))
            elif self.clock.unit is None and np.asarray(t).dtype.kind == "i":
                at = np.require(t, np.int64, ["C", "W"])
            else:
                at = np.array([self.ticks(instant) for instant in t], np.int64)
            slots = field.slots_of(table, ids)
        except (TypeError, ValueError):
            return None
        if not x.ndim == y.ndim == at.ndim == slots.ndim == 1:
            return None
        if opened is not None:
            # What has come at the open instant is moved first, or at the same instant.
            before = self._pending()
            slots, x, y = (np.concatenate(parts) for parts in zip(before, (slots, x, y), strict=True))
            at = np.concatenate([np.full(len(before[0]), opened), at])
            if at[len(before[0])] < opened:
                return None
        if not field.orderly(slots, x, y, at, closed):
            return None
        last = len(at) if t is None else int(np.searchsorted(at, at[-1]))
        rows, transitions = field.walk_all(slots[:last], x[:last], y[:last], at[:last]).T
        self._moved, self._together, self._closed, self._open = {}, None, int(at[-1]), None
        if t is not None:
            self._closed, self._open = int(at[-1]) - 1, int(at[-1])
            self._together = (slots[last:], x[last:], y[last:])
        if not len(rows):
            return []
        moved = Moved(field, at[rows], slots[rows], transitions.copy())
        self._log.append(moved)
        told = Messages(lambda: [message for said in moved.said() for message in self._messages(*said)])
        self._unread.add(told)
        return told

    def _pending(self) -> Rows:
        """The moves in the field at the open instant, by slot: x and y."""
        if self._together is not None:
            return self._together
        places = np.array(list(self._moved.values()), np.float64).reshape(-1, 2)
        return np.fromiter(self._moved, np.int64, len(self._moved)), places[:, 0].copy(), places[:, 1].copy()

    def _part(self) -> None:
        """Moves that came together as single ones."""
        if self._together is not None:
            slots, x, y = self._together
            self._moved = dict(zip(slots.tolist(), zip(x.tolist(), y.tolist(), strict=True), strict=True))
            self._together = None

    def _step(self, field: Field, client: Any, position: tuple[Any, Any], t: Any) -> list[Message] | None:
        """The short way of a move in the field; None where it has to be looked at more closely."""
        try:
            slot = field.movers.get(client)
            x, y = float(position[0]), float(position[1])
        except (TypeError, ValueError):
            return None
        if slot is None:
            return None
        if t is None:
            if self._open is not None or self._closed is None or self._within:
                return None
            now = self._closed + 1
            n = step(field.state, slot, x, y, now)
            if n:
                while n < 0:
                    if n == CLOSER:
                        return None
                    field.make_room(n)
                    n = step(field.state, slot, x, y, now)
                self._closed = now
                return self._say(now, *field.transitions(n, slot)) if n else []
            self._closed = now
            return []
        if not field.walks(slot, x, y):
            return None
        instant = self.ticks(t)
        told: list[Message] = []
        if instant != self._open:
            self._check_order(instant)
            with self.whole():
                told = self._close_until(instant - 1)
                self._open = instant
        if field.clients[slot] in self._staged:
            return None if not told else told + self.move(client, position, t=t)
        self._part()
        self._moved[slot] = (x, y)
        return told

    def _fit(self, population: str, id: Any, cells: Mapping[str, Any], filter: Filter | None) -> None:
        """Leave the field before something is done that does not fit in there."""
        if self._live.field is None:
            return
        found = next((p for p in self.scenario.populations if p.name == population), None)
        if found is None:
            return  # refused in a moment
        client = Client(found.table, id)
        values: dict[str, Any] = {}
        try:
            before = self._history.latest(client)
            values = {**(before.values if before else {}), **cells}
            _place(values, self.metric)
        except (ScenarioError, UpdateError, TypeError, ValueError):
            return  # refused in a moment
        staged = self._staged.get(client)
        values = {**(staged.values if staged else {}), **values}
        members = [p for p in self.scenario.populations if p.table == found.table]
        if filter is not None or not all(self._live.fits(p, values) for p in members):
            self._unmove()
            self._live.leave_field()

    def _unmove(self, client: Client | None = None) -> None:
        """Turn moves of the open instant into changes like others; of one client, or of all."""
        self._part()
        field = self._live.field
        if field is None or not self._moved:
            return
        slots = list(self._moved) if client is None else [field.slots.get(client, -1)]
        for slot in slots:
            if slot in self._moved:
                x, y = self._moved[slot]
                self._write(self._moved, slot, None)
                change = Change(field.clients[slot], {"position": point(x, y)})
                self._write(self._staged, change.client, change)

    def profile(self, table: str, id: Any, *, t: Any = None, **cells: Any) -> list[Message]:
        """Change the row of a table of profiles."""
        with self._instant(t) as messages:
            known = {p.profiles for p in self.scenario.populations if p.profiles}
            if table not in known:
                raise UpdateError(f"no population joins profiles {table!r}; {did_you_mean(table, known)}")
            return messages + self._stage(self._change(Client(table, id), cells), t)

    def advance(self, t: Any) -> list[Message]:
        """Let time pass up to and including t: closes the open instant, and sends what time alone brings about."""
        until = self.ticks(t)
        if self._closed is not None and until < self._closed:
            raise UpdateError(f"time goes back: {t} is before {self.clock.shown(self._closed)}")
        if self._open is not None and until < self._open:
            raise UpdateError(f"time goes back: {t} is before the open instant {self.clock.shown(self._open)}")
        with self.whole():
            if self._singles and self._open is None and not self._history.instants:
                self._open = until  # what exists from the start begins with the first instant
            return self._close_until(until)

    def ask(self, population: str, id: Any = "?", **cells: Any) -> list[Content]:
        """The publications that a subscription would match right now; nothing is kept, nobody else is told."""
        found = self._population(population)
        if found.role != SUBSCRIPTION:
            raise UpdateError(f"{population!r} are publications; ask with a subscription")
        self._fit(population, id, cells, None)
        change = self._change(Client(found.table, id), cells, begin=(found.name,))
        now = self._closed if self._closed is not None else 0
        self._try(now, change)
        matched = self._live.would_match(now, change, Party(found.name, change.client))
        return [self._content(p, now) for p in sorted(matched, key=repr)]

    def through(self, stage: LiveStage) -> None:
        """Let a stage say from now on who is told of a transition, and when."""
        self._unmove()
        if self._live.field is not None:
            self._live.leave_field()
        stage.standing(list(self._live.matching), self._closed or 0)
        self._onward = stage

    # -- what can be seen --------------------------------------------------------------------------------

    @property
    def now(self) -> Any:
        """The latest instant that is closed, None before the first."""
        return None if self._closed is None else self.clock.shown(self._closed)

    @property
    def following(self) -> Any:
        """The instant of an operation without a time: the next one."""
        return self.clock.shown(self._following)

    @property
    def coming(self) -> Any:
        """The next instant at which something can change: the open one, or one that time alone brings about."""
        coming = self._coming
        return None if coming is None else self.clock.shown(coming)

    @property
    def _coming(self) -> int | None:
        waiting = None if self._onward is None else self._onward.next
        instants = (self._open, self._next_end, self._live.next_timer, waiting)
        return min((i for i in instants if i is not None), default=None)

    @property
    def _following(self) -> int:
        latest = [i for i in (self._closed, self._open) if i is not None]
        return max(latest) + 1 if latest else 1

    @property
    def matches(self) -> set[tuple[Any, Any]]:
        """M now: the pairs (publication, subscription) by name; after a stage those that were told of."""
        pairs = self._live.matching if self._onward is None else self._onward.matches
        return {(self.named(p), self.named(s)) for p, s in pairs}

    @property
    def notifications(self) -> pd.DataFrame:
        """Everything that was sent, as the table of notifications."""
        said = (said for one in self._log for said in (one.said() if isinstance(one, Moved) else (one,)))
        rows = [row for t, left, come in said for row in self._rows(t, "unmatch", left) + self._rows(t, "match", come)]
        return pd.DataFrame(rows, columns=list(NOTIFICATIONS))

    @property
    def publications(self) -> set[Any]:
        """The names of all publications that were there some time."""
        return set(self._known(self.scenario.publications))

    def explain(self, publication: Any, subscription: Any, at: Any = None) -> Explanation:
        """Why the two match or do not, now or at an earlier instant."""
        t = (self._closed or 0) if at is None else self.ticks(at)
        if not self._remembers and t != (self._closed or 0):
            raise UpdateError(f"at={at}: this broker was made with remember=False, and knows only what is now")
        pair = (
            self._party(self.scenario.publications, publication),
            self._party(self.scenario.subscriptions, subscription),
        )
        return explain(Reference(self.scenario, self._history, self.clock, self.metric), *pair, t)

    # -- instants ----------------------------------------------------------------------------------------

    def _write(self, entries: dict[Any, Any], key: Any, value: Any) -> None:
        """Set what an instant brings, or take it away (None), so that it can be undone."""
        self._written.append((entries, key, entries.get(key)))
        if value is None:
            del entries[key]
        else:
            entries[key] = value

    @contextmanager
    def whole(self) -> Iterator[None]:
        """All of an operation or nothing: an error inside leaves the broker as it was."""
        if self._within:
            yield  # a part of a larger one
            return
        before = (self._closed, self._open, self._staged, self._moved, self._together, len(self._log))
        self._ended, self._written = {}, []
        self._within = True
        try:
            yield
            self._live.commit()
            if self._onward is not None:
                self._onward.commit()
        except BaseException:
            self._live.take_back()
            if self._onward is not None:
                self._onward.take_back()
            self._contents.clear()
            for party, end in self._ended.items():
                self._lives_until(party, end)
            self._closed, self._open, self._staged, self._moved, self._together, said = before
            for entries, key, value in reversed(self._written):
                if value is None:
                    entries.pop(key, None)
                else:
                    entries[key] = value
            del self._log[said:]
            raise
        finally:
            self._within = False

    @contextmanager
    def _instant(self, t: Any) -> Iterator[list[Message]]:
        """Open the instant of an operation, closing what lies before."""
        with self.whole():
            if t is None:
                instant = self._following
            else:
                instant = self.ticks(t)
                self._check_order(instant)
            messages = self._close_until(instant - 1) if self._open != instant else []
            self._open = instant
            yield messages

    def _stage(self, change: Change, t: Any) -> list[Message]:
        """Add a change to the open instant; close the instant where the operation had no time."""
        assert self._open is not None
        self._unmove(change.client)
        staged = self._merged(self._staged.get(change.client), change)
        self._try(self._open, staged)
        self._write(self._staged, change.client, staged)
        return self._close_until(self._open) if t is None else []

    def _try(self, t: int, change: Change) -> None:
        """Apply a change to a copy: what cannot be a region is refused before anything is changed."""
        first = [] if self._history.instants else list(self._singles.values())
        try:
            self._history.tried(t, [*first, change])
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
        while (t := self._coming) is not None and t <= until:
            messages += self._tell(t, self._live.evaluate(t, self._apply(t)))
            self._closed = t
        self._closed = until if self._closed is None else max(self._closed, until)
        return messages

    def _apply(self, t: int) -> set[Client]:
        """Put the staged changes of an instant and the ends of lifetimes into the history; gives whom they touch."""
        changes = dict(self._staged) if self._open == t else {}
        if not self._history.instants:
            changes = {**self._singles, **changes}
        moved: Rows | None = None
        if self._open == t:
            moved = self._pending()
            self._open, self._staged, self._moved, self._together = None, {}, {}, None
        self._gone = [Party(n, c.client) for c in changes.values() for n in c.end if n not in c.begin]
        for change in changes.values():
            for name in change.end:
                self._lives_until(Party(name, change.client), None)
        for client in changes:
            self._forget(client)
        touched = self._live.apply(t, changes.values()) if changes else set()
        if moved is not None and len(moved[0]):
            self._live.move(*moved, t)  # none of them publishes
        for change in changes.values():
            self._refresh(change, t)
        over = []
        while self._next_end == t:
            over.append(self._expiring[0][2])
            self._lives_until(over[-1], None)
        for party in over:
            self._forget(party.client)
        if over:
            self._gone += over
            touched |= self._live.apply(t, [Change(party.client, end=(party.population,)) for party in over])
        return touched

    def _forget(self, client: Client) -> None:
        """What a client publishes is about to change; a profile of its id may be read by anybody of that id."""
        for unread in list(self._unread):
            unread.made()
        self._unread.clear()
        for population in self.scenario.publications:
            self._contents.pop(Party(population.name, Client(population.table, client.id)), None)

    def _refresh(self, change: Change, t: int) -> None:
        """A row lives on for its lifetime after each of its updates."""
        state = self._history.latest(change.client)
        for name in state.instances if state and (change.values or change.begin) else ():
            stay = self.scenario.population(name).stay
            if stay is not None:
                self._lives_until(Party(name, change.client), t + stay.in_ticks(self.clock.tick))

    def _lives_until(self, party: Party, end: int | None) -> None:
        before = self._expiry.get(party)
        self._ended.setdefault(party, before)
        if end is not None:
            self._expiry[party] = end
            self._pushed += 1
            heappush(self._expiring, (end, self._pushed, party))
        elif before is not None:
            del self._expiry[party]

    @property
    def _next_end(self) -> int | None:
        """The next instant at which a lifetime ends."""
        while self._expiring and self._expiry.get(self._expiring[0][2]) != self._expiring[0][0]:
            heappop(self._expiring)
        return self._expiring[0][0] if self._expiring else None

    def _tell(self, t: int, step: Step) -> list[Message]:
        """The difference of M at t to M before."""
        if self._onward is not None:
            said = self._onward.tell(t, step.left, step.come, self._gone, lambda p: self._content(p, t))
            return self._say(t, said.left, said.come, said.contents)
        told = [
            (p, s)
            for p, s in step.left
            if self._history.instance(s, t) is not None and not self.scenario.population(p.population).transient
        ]
        return self._say(t, told, step.come)

    def _say(
        self, t: int, left: list[Pair], come: list[Pair], contents: Mapping[tuple[str, Pair], Content] = EMPTY
    ) -> list[Message]:
        """The messages of an instant, by the pairs that are told of."""
        if not left and not come:
            return []
        self._log.append((t, left, come))
        return self._messages(t, left, come, contents)

    def _messages(
        self, t: int, left: list[Pair], come: list[Pair], given: Mapping[tuple[str, Pair], Content] = EMPTY
    ) -> list[Message]:
        """The messages of an instant; what they say is given, or what publications are."""
        at, messages = self.clock.shown(t), []
        for kind, pairs in (("unmatch", left), ("match", come)):
            if len(pairs) == 1:
                ((p, s),) = pairs
                content = given.get((kind, (p, s))) or self._content(p, t)
                messages.append(Message(at, kind, self.named(s), (content,)))
                continue
            by_subscription: dict[Party, list[Party]] = {}
            for publication, subscription in pairs:
                by_subscription.setdefault(subscription, []).append(publication)
            for subscription in sorted(by_subscription, key=_order):
                publications = sorted(by_subscription[subscription], key=_order)
                contents = tuple(given.get((kind, (p, subscription))) or self._content(p, t) for p in publications)
                messages.append(Message(at, kind, self.named(subscription), contents))
        return messages

    def _rows(self, t: int, kind: str, pairs: list[Pair]) -> list[tuple[Any, str, Any, Any]]:
        """What is told of an instant as rows of the table of notifications."""
        rows = [(self.clock.shown(t), kind, self.named(p), self.named(s)) for p, s in pairs]
        return sorted(rows, key=lambda row: (str(type(row[2])), row[2], str(type(row[3])), row[3]))

    def _content(self, publication: Party, t: int) -> Content:
        """The publication as it is, or as it last was."""
        known = self._contents.get(publication)
        if known is not None:
            return known
        for at in (t, t - 1):
            state = self._history.state(publication.client, at)
            instance = state.instances.get(publication.population) if state else None
            if state is not None and instance is not None:
                made = Content(self.named(publication), instance.regions, state.values)
                if at == t:
                    self._contents[publication] = made
                return made
        return Content(self.named(publication), {}, {})

    # -- names and checks ----------------------------------------------------------------------------------

    @property
    def _history(self) -> Versions:
        return self._live.history

    def named(self, party: Party) -> Any:
        """How a publication or subscription is called."""
        return self._names[party.population](party)

    def ticks(self, t: Any) -> int:
        """An instant as a whole number of ticks."""
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
        known = self._known(populations)
        if name not in known:
            raise UpdateError(f"there is no {populations[0].role} {name!r}; {did_you_mean(str(name), map(str, known))}")
        return known[name]

    def _known(self, populations: Sequence[Population]) -> dict[Any, Party]:
        """Whoever was there some time, by name."""
        parties = (party for p in populations for party in self._history.ever(p.name, self._closed or 0))
        return {self.named(party): party for party in parties}

    def _history_instance(self, party: Party) -> Instance | None:
        state = self._history.latest(party.client)
        return None if state is None else state.instances.get(party.population)

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
        clients = [*self._staged, *self._history.clients(), *self._singles]
        return [p for c in dict.fromkeys(clients) if self._exists(p := Party(population.name, c))]

    def _client(self, given: Any) -> Client:
        if isinstance(given, tuple) and len(given) == 2 and self._is_there(Client(*given)):
            return Client(*given)
        tables = dict.fromkeys(p.table for p in self.scenario.populations)
        found = [client for table in tables if self._is_there(client := Client(table, given))]
        if len(found) > 1:
            raise UpdateError(f"{given!r} is a client in {', '.join(c.table for c in found)}; say which: (table, id)")
        if not found:
            known = {str(party.client.id) for p in self.scenario.populations for party in self._parties(p)}
            raise UpdateError(f"there is no client {given!r}; {did_you_mean(str(given), known)}")
        return found[0]

    def _is_there(self, client: Client) -> bool:
        """Whether somebody publishes or subscribes, after everything that was said so far."""
        try:
            return any(
                self._exists(Party(p.name, client)) for p in self.scenario.populations if p.table == client.table
            )
        except TypeError:  # an id that cannot be one
            return False

    def _filters(self, population: Population, filter: Filter | None) -> dict[str, Filter]:
        if filter is None:
            return {}
        try:
            accepted = self.scenario.accepted(population, filter)
            if not self._remembers and looks_back(accepted):
                raise UpdateError(f"{filter!r} looks back, and this broker was made with remember=False")
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
