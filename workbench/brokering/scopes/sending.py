"""Sending: from who could receive to who does, instant by instant (Scopes, 3.5).

A *line* is one match of a publication on its way to a subscription. It begins at tau and ends at pi where the engine
says so; outside the scopes whose publishing policies it waits for it begins and ends when these release it. `Sent` is
how things stand with lines that have to be looked at together, and `step` brings them to an instant: who is asked to
be served by the traverse and delivery policies, and which lines are told of, once where they say the same.

Nothing here looks ahead. A replay (`transmission`) and the live broker (`live`) take the same steps, the one knowing
the whole history, the other as it comes.

Departure: what arrives in several ways is told once. While any of its ways serves a subscription, it is matched; of
one and the same match (tau and pi) the end that the earliest way brings is the end, and what slower ways still have
of it is an echo. Matches that differ are one as long as they overlap, or follow at once over different ways.

Departure: a subscription that is removed hears of nothing that was still on its way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from workbench.brokering.scopes.definition import Arrival, Notification, Path, carry, paths, selected
from workbench.brokering.scopes.faces import Face
from workbench.brokering.scopes.graph import Scope, ScopeGraph
from workbench.brokering.scopes.policies import Immediate
from workbench.brokering.scopes.routes import waits_of

FOREVER = 2**62
UNMATCH, SUBSCRIPTION_REMOVED = "unmatch", "subscription_removed"


class Line(NamedTuple):
    """One match of a publication and a subscription, on its way through the policies."""

    publication: Any
    """as it is told: by the name without what was waited for"""
    face: Face
    subscription: Any
    tau: int
    start: int
    pi: int = FOREVER
    end: int = FOREVER
    ended: str | None = None
    since: int = FOREVER
    """when it was served first"""
    policies: tuple[Immediate, ...] = ()
    """the publishing policies that it waits for, as they were when it began"""
    once: bool = False
    """whether it is an event, which lives one instant wherever it is released"""
    carries: Any = None

    @property
    def pair(self) -> tuple[Any, Any]:
        return (self.publication, self.subscription)

    @property
    def known(self) -> tuple[Any, ...]:
        """What tells it from another one."""
        return (self.publication, self.face, self.subscription, self.tau)

    def over(self, pi: int, ended: str | None, gone: int = FOREVER) -> Line:
        """The line after the engine has ended it; ``gone`` is when its subscription was removed."""
        released = released_at(pi, self.policies)
        end = self.start + 1 if self.once else FOREVER if released is None else released
        if ended == SUBSCRIPTION_REMOVED:
            gone = min(gone, pi)
        if gone <= end:
            end, ended = gone, SUBSCRIPTION_REMOVED
        return self._replace(pi=pi, end=end, ended=ended)


def begun(
    publication: Any,
    face: Face,
    subscription: Any,
    tau: int,
    scopes: Mapping[str, Scope],
    *,
    once: bool = False,
    carries: Any = None,
) -> Line | None:
    """The line that begins at tau; None where it is never released."""
    policies = tuple(scopes[name].publishing for name in face.waits)
    start = released_at(tau, policies)
    if start is None:
        return None
    return Line(publication, face, subscription, tau, start, policies=policies, once=once, carries=carries)


def released_at(t: int, policies: Iterable[Immediate]) -> int | None:
    """When what happened at t is told outside; None for never."""
    for policy in policies:
        if (released := policy.release(t)) is None:
            return None
        t = released
    return t


class Sent(NamedTuple):
    """Lines that are looked at together: those that are not over, who is being served, what is told of."""

    lines: tuple[Line, ...] = ()
    serving: tuple[Arrival, ...] = ()
    told: tuple[Line, ...] = ()

    def due(self, t: int) -> int | None:
        """The next instant after t at which something begins or ends by itself."""
        ends = (at for line in self.lines for at in (line.start, line.end) if t < at < FOREVER)
        return min(ends, default=None)


Asked = Callable[[Sequence[Line], int, Sequence[Arrival]], tuple[list[Line], list[Arrival]]]
"""Who of those that could receive at an instant does, given who is being served: the lines, and their arrivals"""


class Changed(NamedTuple):
    """What a step tells: lines that end, each with its reason, and lines that begin."""

    left: list[tuple[Line, str | None]]
    come: list[Line]


def step(state: Sent, t: int, asked: Asked | None) -> tuple[Sent, Changed]:
    """Bring lines to an instant, ``asked`` being the policies that choose, where there are any."""
    through = [line for line in state.lines if line.start <= t < line.end]
    serving: list[Arrival] = []
    if asked is not None and through:
        through, serving = asked(through, t, state.serving)
    served = {line.known for line in through}
    lines = [line._replace(since=t) if line.known in served and line.since > t else line for line in state.lines]
    told = [line for line in lines if line.known in served and not _echo(line, lines, t)]
    changed = _changed(state.told, told, {line.known: line for line in lines}, t)
    needed = {(line.pair, line.tau) for line in lines if t < line.end}
    kept = tuple(line for line in lines if (line.pair, line.tau) in needed)
    return Sent(kept, tuple(serving), tuple(told)), changed


def _echo(line: Line, lines: Iterable[Line], t: int) -> bool:
    """Whether an earlier way has told the same match already, its end included."""
    mine = (line.since, line.end)
    return any(
        other.pair == line.pair
        and (other.tau, other.pi) == (line.tau, line.pi)
        and other.end <= t
        and (other.since, other.end) < mine
        for other in lines
    )


def _changed(before: Iterable[Line], after: Iterable[Line], now: Mapping[Any, Line], t: int) -> Changed:
    was, will = _by_pair(before), _by_pair(after)
    changed = Changed([], [])
    for pair in {**was, **will}:
        old, new = was.get(pair, []), will.get(pair, [])
        if old and new and _goes_on(old, new):
            continue
        if old:
            over = [now[line.known] for line in old]
            reasons = [line.ended if line.end <= t else UNMATCH for line in over]
            changed.left.append((over[-1], min(reasons, key=lambda why: (why == SUBSCRIPTION_REMOVED, str(why)))))
        if new:
            changed.come.append(new[0])
    return changed


def _goes_on(old: list[Line], new: list[Line]) -> bool:
    """Whether a line goes on, or another way takes over at once."""
    if {line.known for line in old} & {line.known for line in new}:
        return True
    return any(one.face != other.face for one in old for other in new)


def _by_pair(lines: Iterable[Line]) -> dict[tuple[Any, Any], list[Line]]:
    found: dict[tuple[Any, Any], list[Line]] = {}
    for line in lines:
        found.setdefault(line.pair, []).append(line)
    return found


# -- the policies that choose ----------------------------------------------------------------------------------------


class Choice:
    """The traverse and delivery policies, asked for one publication after the other.

    ``graph`` is the graph in force at an instant, ``published`` what a publication said then, ``consumer`` the
    component of a subscription. What the engine has ended and a scope has not released yet is looked at as it was when
    it matched last, under the policies of now.
    """

    def __init__(
        self,
        graph: Callable[[int], ScopeGraph],
        published: Callable[[Any, int], Notification],
        consumer: Callable[[Any], str],
    ) -> None:
        self._graph, self._published, self._consumer = graph, published, consumer
        self._paths: dict[tuple[int, str, str], tuple[ScopeGraph, list[Path]]] = {}

    def of(self, publication: Any, key: Any) -> Asked:
        """Who receives a publication, ``key`` being what its choices depend on."""

        def asked(active: Sequence[Line], t: int, serving: Sequence[Arrival]) -> tuple[list[Line], list[Arrival]]:
            found: list[tuple[Arrival, Line]] = []
            scopes: dict[str, Scope] = {}
            said: dict[int, tuple[ScopeGraph, Notification]] = {}
            for line in active:
                at = min(t, line.pi - 1)
                if at not in said:
                    said[at] = (self._graph(at), self._published(publication, at))
                    scopes |= said[at][0].scopes
                found += [(arrival, line) for arrival in self._arrivals(*said[at], line)]
            scopes |= self._graph(t).scopes
            kept = selected(scopes, (arrival for arrival, _ in found), key, serving)
            lucky = set(map(id, kept))
            return list({line.known: line for arrival, line in found if id(arrival) in lucky}.values()), kept

        return asked

    def _arrivals(self, graph: ScopeGraph, notification: Notification, line: Line) -> list[Arrival]:
        """The ways over which a line came."""
        ways = self._ways(graph, notification.producer, self._consumer(line.subscription))
        came = [arrival for path in ways for arrival in carry(graph, path, notification)[0]]
        shown = [arrival.content for arrival in came if arrival.face == line.face.mappings]
        return [
            arrival
            for arrival in came
            if arrival.session == line.face.session
            and arrival.content in shown
            and waits_of(graph, arrival.path.up) == line.face.waits
        ]

    def _ways(self, graph: ScopeGraph, producer: str, consumer: str) -> list[Path]:
        key = (id(graph), producer, consumer)
        if key not in self._paths:
            if len(self._paths) > 100_000:
                self._paths.clear()
            self._paths[key] = (graph, paths(graph, producer, consumer))  # the graph too: an id lives as long as it
        return self._paths[key][1]
