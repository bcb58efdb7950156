"""The reference's answers about time, remembered from one instant of a live broker to the next.

The definitions are those of `Reference`; what differs is what they look at again. The beginnings and ends of a match
are kept for each pair of regions that was ever asked about, and only what happened since is looked at; a latch is kept
from where it was last asked; and where time alone can change something, only the instants of those who can change it
are considered: of the two sides, or of everybody where a filter looks at third parties.

`Remembered.upcoming` is what a broker needs besides: when a filter can next change if nothing happens any more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from workbench.engines.reference import Reference, View
from workbench.engines.versions import Versions
from workbench.errors import ScenarioError
from workbench.model.clock import NEVER, Clock
from workbench.model.filters import Filter, Held, Latch, Match
from workbench.model.history import Named
from workbench.model.relations import Nearest
from workbench.model.scenario import Scenario
from workbench.model.times import TimeComparison
from workbench.model.visits import VisitComparison


class Past:
    """When two regions began and ceased to match, up to an instant."""

    __slots__ = ("begins", "ends", "match", "matched", "upto")

    def __init__(self, match: Match) -> None:
        self.match = match  # kept, so that its identity stays its own
        self.upto = NEVER
        self.matched = False
        self.begins: list[int] = []
        self.ends: list[int] = []


class Remembered(Reference):
    """The reference over the history of a live broker."""

    history: Versions

    def __init__(self, scenario: Scenario, history: Versions, clock: Clock, metric: str) -> None:
        super().__init__(scenario, history, clock, metric)
        self._pasts: dict[tuple[int, Named, Named], Past] = {}
        self._latches: dict[tuple[Any, ...], tuple[Filter, int, bool]] = {}
        self._around: dict[int, tuple[Filter, bool]] = {}

    def forget(self) -> None:
        """Remember nothing: what was asked about has been taken back."""
        self._pasts.clear()
        self._latches.clear()

    # -- matches of two regions ------------------------------------------------------------------------

    def begins(self, match: Match, left: Named, right: Named, t: int) -> Iterator[int]:
        past = self._past(match, left, right, t)
        if past is None:
            return super().begins(match, left, right, t)
        return reversed(past.begins[: bisect_right(past.begins, t)])

    def ends(self, match: Match, left: Named, right: Named, t: int) -> Iterator[int]:
        past = self._past(match, left, right, t)
        if past is None:
            return super().ends(match, left, right, t)
        return reversed(past.ends[: bisect_right(past.ends, t)])

    def _past(self, match: Match, left: Named, right: Named, t: int) -> Past | None:
        """What is remembered of two regions, brought up to t; None where the model refuses an instant of it, which the
        definition may never come to ask about."""
        key = (id(match), left, right)
        past = self._pasts.get(key)
        if past is None:
            past = self._pasts[key] = Past(match)
        if t > past.upto:
            around = isinstance(match.relation, Nearest) or bool(self.scenario.visibility and match.third)
            sides = (left.party.client, right.party.client)
            happened = (
                self.history.between(past.upto, t) if around else self.history.changed(sides, past.upto, t)
            )
            for i in happened:
                try:
                    matches = self.matches(match, left, right, i)
                except ScenarioError:
                    return None
                if matches != past.matched:
                    (past.begins if matches else past.ends).append(i)
                    past.matched = matches
                past.upto = i
            past.upto = t
        return past

    # -- when something can change ---------------------------------------------------------------------

    def looks_around(self, node: Filter) -> bool:
        """Whether a filter looks at third parties anywhere, so that anybody's update can change it."""
        known = self._around.get(id(node))
        if known is None:
            matches = [n for n in node.walk() if isinstance(n, Match)]
            said = any(m.third is not None or isinstance(m.relation, Nearest) for m in matches)
            known = self._around[id(node)] = (node, said)
        return known[1]

    def updates(self, node: Filter, view: View, first: int, last: int) -> list[int]:
        """The updates after ``first`` and up to ``last`` that can change a predicate."""
        if self.looks_around(node):
            return self.history.between(first, last)
        return self.history.changed((view.own.client, view.other.client), first, last)

    def recent(self, node: Filter, view: View, first: int, last: int) -> set[int]:
        """The instants after ``first`` and up to ``last`` at which a predicate can have changed: a superset."""
        updates = self.updates(node, view, first, last)
        found = set(updates).union(*(self.recent(part, view, first, last) for part in node.parts))
        match node:
            case TimeComparison():
                # Of what happened up to first only the last counts: its line is the one that goes on.
                before = self.updates(node, view, NEVER, first)[-1:]
                found.update(i for u in (*before, *updates) for i in self.flips(node, view, u))
            case VisitComparison() if node.aggregate.visits.window is not None:
                window = node.aggregate.visits.window.in_ticks(self.clock.tick)
                found.update(u + window + 1 for u in self.updates(node, view, first - window - 1, last))
            case Held():
                duration = node.duration.in_ticks(self.clock.tick)
                found.update(i + duration for i in self.recent(node.part, view, first - duration, last))
        return {i for i in found if first < i <= last}

    def between(self, node: Filter, view: View, first: int, last: int) -> list[int]:
        return sorted({*self.recent(node, view, first, last), last} | ({first} if first != NEVER else set()))

    def holds(self, node: Filter, view: View, t: int) -> bool:
        if isinstance(node, Latch):
            return self.exists(view, t) and self._latched(node, view, t)
        return super().holds(node, view, t)

    def _latched(self, node: Latch, view: View, t: int) -> bool:
        key = (id(node), view.own, view.other, *view.binding.items())
        _, upto, value = self._latches.get(key, (node, NEVER, False))
        if t < upto:
            return super().holds(node, view, t)
        for i in sorted({*self.recent(node, view, upto, t), t}):
            if not self.exists(view, i) or self.holds(node.off, view, i):
                value = False
            elif self.holds(node.on, view, i):
                value = True
        self._latches[key] = (node, t, value)
        return value

    def upcoming(self, node: Filter, view: View, t: int) -> set[int]:
        """The instants after t at which a predicate can change if nothing is updated any more."""
        found: set[int] = set().union(*(self.upcoming(part, view, t) for part in node.parts))
        match node:
            case TimeComparison():
                found.update(self.flips(node, view, t))
            case VisitComparison() if node.aggregate.visits.window is not None:
                window = node.aggregate.visits.window.in_ticks(self.clock.tick)
                for pair in self.pairs(node.aggregate.visits.match, view, t):
                    for end in self.ends(node.aggregate.visits.match, *pair, t):
                        if end + window < t:
                            break
                        found.add(end + window + 1)
            case Held():
                duration = node.duration.in_ticks(self.clock.tick)
                found.update([i + duration for i in found])
                found.update(i + duration for i in self.recent(node.part, view, t - duration, t))
        return {i for i in found if i > t}
