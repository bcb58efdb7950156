"""The reference's answers about time, remembered from one instant of a live broker to the next.

The definitions are those of `Reference`; what differs is what they look at again. The beginnings and ends of a match
are kept for each pair of regions that was ever asked about, and only what happened since is looked at; a latch is kept
from where it was last asked; and where time alone can change something, only the instants of those who can change it
are considered: of the two sides, and where a filter looks at third parties those at which what it says of them turned
(`workbench.engines.surroundings`), or everybody's where that is not kept.

`Remembered.upcoming` is what a broker needs besides: when a filter can next change if nothing happens any more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from workbench.engines.reference import Reference, View
from workbench.engines.surroundings import Company, Neighbours, Surroundings
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

    def __init__(
        self,
        scenario: Scenario,
        history: Versions,
        clock: Clock,
        metric: str,
        surroundings: Surroundings | None = None,
    ) -> None:
        super().__init__(scenario, history, clock, metric)
        self.surroundings = surroundings
        self._pasts: dict[tuple[int, Named, Named], Past] = {}
        self._latches: dict[tuple[Any, ...], tuple[Filter, int, bool]] = {}
        self._around: dict[int, tuple[Filter, bool]] = {}

    def forget(self) -> None:
        """Remember nothing: what was asked about has been taken back."""
        self._pasts.clear()
        self._latches.clear()

    # -- third parties ---------------------------------------------------------------------------------

    def _neighbours(self, match: Match, left: Named, right: Named) -> Neighbours | None:
        if self.surroundings is None or not isinstance(match.relation, Nearest):
            return None
        return self.surroundings.neighbours(match, left.party.population, left.region, right.party.population)

    def _company(self, match: Match, view: View) -> tuple[Named, Company] | None:
        if self.surroundings is None or match.third is None:
            return None
        asking = view.named(match.right if match.left is match.third else match.left)
        company = self.surroundings.company(match, asking)
        return None if company is None else (asking, company)

    def matches(self, match: Match, left: Named, right: Named, t: int) -> bool:
        neighbours = self._neighbours(match, left, right)
        return super().matches(match, left, right, t) if neighbours is None else right in neighbours.at(left, t)

    def pairs(self, match: Match, view: View, t: int) -> list[tuple[Named, Named]]:
        known = self._company(match, view)
        if known is None:
            return super().pairs(match, view, t)
        asking, company = known
        return [(r, asking) if match.left is match.third else (asking, r) for r in company.ever(asking)]

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
            for i in self._happened(match, left, right, past.upto, t):
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

    def _happened(self, match: Match, left: Named, right: Named, first: int, last: int) -> list[int]:
        """The updates after ``first`` and up to ``last`` that can turn a match of two regions."""
        neighbours = self._neighbours(match, left, right)
        if neighbours is not None:
            return neighbours.turns(left, first, last)
        if isinstance(match.relation, Nearest) or (self.scenario.visibility and match.third):
            return self.history.between(first, last)
        return self.history.changed((left.party.client, right.party.client), first, last)

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
        found = self.history.changed((view.own.client, view.other.client), first, last)
        if not self.looks_around(node):
            return found
        for part in node.walk():
            if not isinstance(part, Match):
                continue
            if part.third is not None:
                known = self._company(part, view)
                if known is None:
                    return self.history.between(first, last)
                found += known[1].turns(known[0], first, last)
            elif isinstance(part.relation, Nearest):
                left, right = view.named(part.left), view.named(part.right)
                neighbours = self._neighbours(part, left, right)
                if neighbours is None:
                    return self.history.between(first, last)
                found += neighbours.turns(left, first, last)
        return sorted(set(found))

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
        if isinstance(node, Match) and (known := self._company(node, view)) and t >= self.history.instants[-1]:
            return self.exists(view, t) and known[1].now(known[0])
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
