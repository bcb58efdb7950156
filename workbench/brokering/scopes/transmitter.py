"""The transmitter: transmission policies between a live broker and those whom it tells (Scopes, 3.5).

The broker says which pairs joined and left M, and the transmitter which of them are told of, and when: the same steps
as those of a replay (`sending`), taken as the instants come. It knows what publications say and which graph is in
force since when, because `ScopedBroker` says so before anything of it is told.

A message carries what the publication said when the match began or ended: that is what waits in the queue of a
publishing policy.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

from workbench.brokering.messages import Content
from workbench.brokering.scopes.definition import Context, Notification
from workbench.brokering.scopes.faces import contents, face_of
from workbench.brokering.scopes.graph import ScopeGraph
from workbench.brokering.scopes.interfaces import Content as Cells
from workbench.brokering.scopes.sending import FOREVER, SUBSCRIPTION_REMOVED, UNMATCH, Choice, Line, Sent, begun, step
from workbench.brokering.scopes.transmission import behind
from workbench.brokering.stages import Pair, Told
from workbench.model.history import Client, Party
from workbench.model.scenario import Scenario

Row = tuple[str, str]
"""a population and the id of one of its rows, as text"""
Said = tuple[str, Context, Cells]
"""the component of a row, the sessions that it reacts to, and its cells"""


class Transmitter:
    """The policies of the graphs that are in force, one after the other."""

    def __init__(self, scenario: Scenario, graph: ScopeGraph, name: Callable[[Party], Any]) -> None:
        self._scenario = scenario
        self._name = name
        self._graphs: list[tuple[int, ScopeGraph]] = [(-FOREVER, graph)]
        self._said: dict[Row, list[tuple[int, Said]]] = {}
        self._ids: dict[Row, Any] = {}
        self._groups: dict[Any, Sent] = {}
        self._under_way: dict[Party, set[Any]] = {}
        """by subscription, where there are matches that the engine has ended and a scope has not released yet"""
        self._waiting: list[tuple[int, int, Any]] = []
        self._pushed = 0
        self._at = -FOREVER
        self._choosing = _chooses(graph)
        self._choice = Choice(self._graph_at, self._published, self._component)
        self._undo: list[Callable[[], object]] = []

    # -- what is known ------------------------------------------------------------------------------------------------

    def governed(self, graph: ScopeGraph, t: int) -> None:
        """Another graph from t on; those are forgotten that nothing on its way has to do with."""
        before = self._graphs
        self._undo.append(lambda: setattr(self, "_graphs", before))
        ended = (line.pi - 1 for state in self._groups.values() for line in state.lines if line.pi < FOREVER)
        known = [one for one in before if one[0] < t]
        self._graphs = [*known[_place(known, min(ended, default=self._at)) :], (t, graph)]
        if _chooses(graph) and not self._choosing:
            self._regroup()

    def wrote(self, population: str, id: Any, said: Said, t: int) -> None:
        """What a row says from t on."""
        row = (population, str(id))
        before = self._said.get(row)
        self._undo.append(lambda: _set(self._said, row, before))
        self._said[row] = [*(one for one in before or () if one[0] < t), (t, said)]
        self._ids[row] = id

    def standing(self, pairs: Iterable[Pair], t: int) -> None:
        """Pairs that matched, and were told, before there were any policies."""
        for pair in pairs:
            line = self._begun(pair, t, None)
            if line is not None:
                line = line._replace(since=t)
                key = self._key(line)
                state = self._groups.get(key, Sent())
                self._groups[key] = Sent((*state.lines, line), (), (*state.told, line))
        self._at = t
        for key in self._groups:
            self._wait(key, t)

    # -- what is told -------------------------------------------------------------------------------------------------

    @property
    def next(self) -> int | None:
        """The next instant at which something is told that waits, or policies are others."""
        while self._waiting and not self._is_due(*self._waiting[0]):
            heappop(self._waiting)
        coming = [self._waiting[0][0]] if self._waiting else []
        changes = (t for t, _ in self._graphs if t > self._at) if self._choosing else ()
        return min((*coming, *changes), default=None)

    def _is_due(self, t: int, pushed: int, key: Any) -> bool:
        return t > self._at and key in self._groups and self._groups[key].due(t - 1) == t

    @property
    def matches(self) -> Iterable[Pair]:
        """The pairs whose match was told of, and whose end was not."""
        return (line.pair for state in self._groups.values() for line in state.told)

    def tell(
        self,
        t: int,
        left: Iterable[Pair],
        come: Iterable[Pair],
        gone: Iterable[Party],
        says: Callable[[Party], Content],
    ) -> Told:
        """Who is told at t, where these pairs leave and join M, and these parties end."""
        before = self._at
        self._undo.append(lambda: setattr(self, "_at", before))
        removed, touched = set(gone), set[Any]()
        for pair in left:
            touched |= self._end(pair, t, pair[1] in removed, says)
        for party in removed:
            touched |= self._cut(party, t)
        for pair in come:
            line = self._begun(pair, t, says(pair[0]))
            if line is not None:
                key = self._key(line)
                state = self._groups.get(key, Sent())
                self._put(key, state._replace(lines=(*state.lines, line)))
                touched.add(key)
        if self._choosing and self._graphs[_place(self._graphs, t)][0] == t:
            due = set(self._groups)
        else:
            due = {key for key in touched if self._groups[key].due(t - 1) == t}
            while self.next == t:
                due.add(heappop(self._waiting)[2])
        told = Told([], [], {})
        for key in due:
            self._step(key, t, told, says)
        for key in touched - due:
            self._wait(key, t)
        self._at = t
        return told

    def _step(self, key: Any, t: int, told: Told, says: Callable[[Party], Content]) -> None:
        before = self._groups[key]
        state, changed = step(before, t, self._choice.of(key, key[1]) if self._choosing else None)
        self._put(key, state if state.lines else None)
        for subscription in {line.subscription for line in before.lines} - {line.subscription for line in state.lines}:
            self._mark(subscription, key, False)
        for line, why in changed.left:
            if why != SUBSCRIPTION_REMOVED and not line.once:
                told.left.append(line.pair)
                told.contents["unmatch", line.pair] = self._carried(line, t, says)
        for line in changed.come:
            told.come.append(line.pair)
            told.contents["match", line.pair] = self._carried(line, t, says)
        if state.lines:
            self._wait(key, t)

    def _carried(self, line: Line, t: int, says: Callable[[Party], Content]) -> Content:
        """What a message says of a publication, under the name that it is told by."""
        source, first, last = line.carries
        content = first if t == line.start else last
        content = says(source) if content is None else content
        return Content(self._name(line.publication), content.regions, content.cells)

    # -- lines --------------------------------------------------------------------------------------------------------

    def _begun(self, pair: Pair, t: int, content: Content | None) -> Line | None:
        """The line of a pair that joins M at t."""
        source, subscription = pair
        once = self._scenario.population(source.population).transient
        shown, face = self._shown(source), face_of(source.client.id)[1]
        scopes = self._graph_at(t).scopes
        return begun(shown, face, subscription, t, scopes, once=once, carries=(source, content, None))

    def _shown(self, publication: Party) -> Party:
        """A publication by the name that it is told by."""
        id, face = face_of(publication.client.id)
        shown = face._replace(waits=()).of(self._ids.get((publication.population, id), id))
        return publication._replace(client=Client(publication.client.table, shown))

    def _key(self, line: Line) -> Any:
        """What is looked at together: all of a publication where policies choose, else each pair for itself."""
        row = (line.publication.population, face_of(line.publication.client.id)[0])
        base = face_of(self._name(line.publication))[0]
        return (row, base) if self._choosing else (row, base, line.pair)

    def _end(self, pair: Pair, t: int, removed: bool, says: Callable[[Party], Content]) -> set[Any]:
        """The engine ends a match; where its line stands."""
        source, subscription = pair
        known = Line(self._shown(source), face_of(source.client.id)[1], subscription, t, t)
        key = self._key(known)
        state = self._groups.get(key, Sent())
        for line in state.lines:
            if line.carries[0] == source and line.subscription == subscription and line.pi >= FOREVER:
                over = line.over(t, SUBSCRIPTION_REMOVED if removed else UNMATCH)
                last = line.carries[1] if line.once else says(source)
                self._put(key, _with(state, over._replace(carries=(*line.carries[:2], last))))
                self._mark(subscription, key, True)
                return {key}
        return set()

    def _cut(self, subscription: Party, t: int) -> set[Any]:
        """Nothing that is on its way arrives at a subscription that is removed."""
        found = set()
        for key in list(self._under_way.get(subscription, ())):
            state = self._groups.get(key, Sent())
            for line in state.lines:
                if line.subscription == subscription and t <= line.end < FOREVER:
                    state = _with(state, line._replace(end=t, ended=SUBSCRIPTION_REMOVED))
                    found.add(key)
            if key in found:
                self._put(key, state)
        return found

    def _mark(self, subscription: Party, key: Any, there: bool) -> None:
        marked = self._under_way.setdefault(subscription, set())
        if there != (key in marked):
            change, back = (marked.add, marked.discard) if there else (marked.discard, marked.add)
            change(key)
            self._undo.append(lambda: back(key))

    def _regroup(self) -> None:
        """From pairs to publications, once a policy chooses."""
        states, marks = self._groups, self._under_way
        self._undo.append(lambda: self._grouped(False, states, marks))
        self._grouped(True, {}, {})
        for state in states.values():
            key = self._key(state.lines[0])
            known = self._groups.get(key, Sent())
            self._groups[key] = Sent((*known.lines, *state.lines), (), (*known.told, *state.told))
            for line in state.lines:
                if line.pi < FOREVER:
                    self._mark(line.subscription, key, True)
        for key in self._groups:
            self._wait(key, self._at)

    def _grouped(self, choosing: bool, groups: dict[Any, Sent], under_way: dict[Party, set[Any]]) -> None:
        self._choosing, self._groups, self._under_way = choosing, groups, under_way

    # -- state that can be taken back ---------------------------------------------------------------------------------

    def commit(self) -> None:
        """What was done stays."""
        self._undo.clear()

    def take_back(self) -> None:
        """Undo everything since the last commit."""
        for back in reversed(self._undo):
            back()
        self._undo.clear()
        for key in self._groups:
            self._wait(key, self._at)

    def _put(self, key: Any, state: Sent | None) -> None:
        before = self._groups.get(key)
        self._undo.append(lambda: _set(self._groups, key, before))
        _set(self._groups, key, state)

    def _wait(self, key: Any, t: int) -> None:
        due = self._groups[key].due(t)
        if due is not None:
            self._pushed += 1
            heappush(self._waiting, (due, self._pushed, key))

    def behind(self, publication: Any, t: int, known: Iterable[Any]) -> list[tuple[Any, int, str]]:
        """The publications that are told of by a name, the instants that are told of at t, what they waited for."""
        names = {str(name): name for name in known}
        instants = {text: self._events(text) for text in names}
        return [(names[text], at, waited) for text, at, waited in behind(publication, instants, self._graph_at, t)]

    def _events(self, name: str) -> list[int]:
        """When an event was published; nothing where it is none."""
        several = len(self._scenario.publications) > 1
        population = name.partition("/")[0] if several else self._scenario.publications[0].name
        id = face_of(name.partition("/")[2] if several else name)[0]
        if not self._scenario.population(population).transient:
            return []
        return [t for t, _ in self._said.get((population, id), ())]

    # -- what policies ask for ----------------------------------------------------------------------------------------

    def _graph_at(self, t: int) -> ScopeGraph:
        return self._graphs[_place(self._graphs, t)][1]

    def _published(self, key: Any, t: int) -> Notification:
        row, base = key
        component, context, cells = self._as_of(row, t)
        return Notification(base, component, contents(self._scenario.population(row[0]), cells), context)

    def _component(self, subscription: Party) -> str:
        return self._as_of((subscription.population, str(subscription.client.id)), FOREVER)[0]

    def _as_of(self, row: Row, t: int) -> Said:
        return self._said[row][_place(self._said[row], t)][1]


def _place(versions: Sequence[tuple[int, Any]], t: int) -> int:
    """Which of some versions holds at t; the first one where none does yet."""
    return max(0, bisect_right(versions, t, key=lambda one: one[0]) - 1)


def _set(entries: dict[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        entries.pop(key, None)
    else:
        entries[key] = value


def _with(state: Sent, line: Line) -> Sent:
    """The same with a line as it is now."""
    return state._replace(lines=tuple(line if one.known == line.known else one for one in state.lines))


def _chooses(graph: ScopeGraph) -> bool:
    """Whether there is a scope whose policies choose."""
    return any(scope.chooses for scope in graph.scopes.values())
