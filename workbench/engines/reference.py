"""The reference engine: the definitions of the model, transcribed.

To be read beside the paper. Every question is answered from the history of the clients' states, by looking:
no index, no cache, nothing incremental. It is slow, and it is the judge of every faster engine.

* `Reference.matches`: r1 m r2 at an instant (4.3.2)
* `Reference.tau`, `Reference.pi`: the most recent beginning and end of a match (4.3.4)
* `Reference.holds`: the predicate P of a filter under one binding at an instant (4.3.3)
* `Reference.accepts`: whether a set of regions is in a filter, ∃ over bindings
* `Reference.M`: the pairs that match at an instant (4.6)
* `Reference.timelines`: M over all evaluation instants, as maximal intervals (4.7)

Departure: 4.7's formula for Q_P gives a set of sets, every set all of whose members match; its words, "the set of
subscriptions that matches P", are what is meant. The same holds for Q_S.

Departure: 4.7 opens with pairs "added to or removed from M" and names the deletion of a publication, but its list says
nothing of what is removed. Here who was told of a match is told of its end, unless the subscription itself is gone.

When M can change: at an instant with an update, and where a temporal term flips by itself. `Reference.moments` gives
those instants, never every tick.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import pandas as pd

from workbench.errors import DataError, ScenarioError
from workbench.model.clock import NEVER, Clock
from workbench.model.extents import Extent, compare, encloses
from workbench.model.filters import (
    And,
    Comparison,
    Dimension,
    Everything,
    Filter,
    Held,
    Latch,
    Match,
    Not,
    Or,
    Regions,
    RegionTerm,
    Var,
)
from workbench.model.history import History, Named, Party
from workbench.model.pubsub import SUBSCRIPTION, Population
from workbench.model.relations import Nearest
from workbench.model.scenario import Binding, Scenario
from workbench.model.times import At, Now, Pi, Tau, Term, TimeComparison
from workbench.model.visits import Aggregate, VisitComparison
from workbench.tables import Inputs, changes, timelines_frame

OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


class View(NamedTuple):
    """Whose filter, towards whom, and which region each variable stands for."""

    own: Party
    other: Party
    binding: Binding

    def named(self, term: RegionTerm) -> Named:
        """The region that ``own.name`` or ``other.name`` stands for."""
        assert isinstance(term, Var)
        if term.side == "own":
            return Named(self.own, term.name)
        return Named(self.other, self.binding[term.name])


class Timeline(NamedTuple):
    """A maximal time ``[tau, pi)`` during which a pair matched; pi and ended are None while it does."""

    publication: Party
    subscription: Party
    tau: int
    pi: int | None
    ended: str | None


class Reference:
    """The meaning of a scenario over a history."""

    def __init__(self, scenario: Scenario, history: History, clock: Clock, metric: str) -> None:
        self.scenario = scenario
        self.history = history
        self.clock = clock
        self.metric = metric

    # -- matches of two regions (4.3.2) ----------------------------------------------------------------

    def matches(self, match: Match, left: Named, right: Named, t: int) -> bool:
        """Whether ``left m right`` at t; what does not exist, or is not among those asked for, does not match."""
        r1, r2 = self.history.region(left, t), self.history.region(right, t)
        if r1 is None or r2 is None:
            return False
        third = match.third
        if third is not None:
            seen, looking = (left, right) if match.left is third else (right, left)
            if not self.among(third.among, seen, t) or not self.visible(seen.party, looking.party, t):
                return False
        if isinstance(match.relation, Nearest):
            candidates = self.candidates(match, left, right, t)
            if right not in candidates:
                return False
            others = (self.history.region(r, t) for r in candidates)
            return match.relation.holds_among(r1, r2, (r for r in others if r is not None), match.space, self.metric)
        return match.relation.holds(r1, r2, match.space, self.metric)

    def among(self, regions: Regions, named: Named, t: int) -> bool:
        """Whether a region exists at t and satisfies what narrows the regions it should be among."""
        region = self.history.region(named, t)
        return region is not None and all(encloses(e, region[d], self.metric) for d, e in regions.where)

    def candidates(self, match: Match, left: Named, right: Named, t: int) -> list[Named]:
        """The regions that a nearest neighbour is sought among: those named, or all of the second one's role."""
        assert isinstance(match.relation, Nearest)
        named = match.relation.among
        role = self.scenario.population(right.party.population).role
        sources = [named] if named is not None else self.scenario.declared_in(match.space, role)
        found = [
            (source, Named(party, source.region))
            for source in sources
            for party in self.history.parties(source.population, t)
            if party.client != left.party.client
        ]
        return [r for source, r in found if self.among(source, r, t) and self.visible(r.party, left.party, t)]

    def visible(self, third: Party, looking: Party, t: int) -> bool:
        """Whether the one who looks may see a third party: always, unless the scenario says who sees whom."""
        if not self.scenario.visibility:
            return True
        own, other = third, looking
        if self.scenario.population(own.population).role == SUBSCRIPTION:
            own, other = other, own
        alike = self.scenario.population(own.population).role == self.scenario.population(other.population).role
        filter = self.scenario.visibility["" if alike else own.population]
        return any(self.holds(filter, view, t) for view in self.bindings(own, other, filter))

    def pairs(self, match: Match, view: View, t: int) -> list[tuple[Named, Named]]:
        """The two regions of a match; with a third party, one pair for each region that it ever was up to t."""
        third = match.third
        if third is None:
            return [(view.named(match.left), view.named(match.right))]
        known = view.named(match.right if match.left is third else match.left)
        thirds = [
            Named(party, third.among.region)
            for party in self.history.ever(third.among.population, t)
            if party.client != known.party.client
        ]
        return [(r, known) if match.left is third else (known, r) for r in thirds]

    # -- time (4.3.4) ------------------------------------------------------------------------------------

    def begins(self, match: Match, left: Named, right: Named, t: int) -> Iterator[int]:
        """The instants up to t at which the two became a match, latest first."""
        for i in reversed(self.history.upto(t)):
            if self.matches(match, left, right, i) and not self.matches(match, left, right, i - 1):
                yield i

    def ends(self, match: Match, left: Named, right: Named, t: int) -> Iterator[int]:
        """The instants up to t at which the two turned from a match to a mismatch, latest first."""
        for i in reversed(self.history.upto(t)):
            if not self.matches(match, left, right, i) and self.matches(match, left, right, i - 1):
                yield i

    def tau(self, match: Match, view: View, t: int) -> int:
        """The most recent instant at which the match began, NEVER if it did not."""
        return max((next(self.begins(match, *pair, t), NEVER) for pair in self.pairs(match, view, t)), default=NEVER)

    def pi(self, match: Match, view: View, t: int) -> int:
        """The most recent instant at which the match ended, NEVER if it did not."""
        return max((next(self.ends(match, *pair, t), NEVER) for pair in self.pairs(match, view, t)), default=NEVER)

    def value(self, term: Term, view: View, t: int) -> float:
        """A sum of instants at t, in ticks; not a number where infinities cancel out."""
        total: float = 0
        for instant, factor in term.instants:
            match instant:
                case Now():
                    at = t
                case At():
                    at = self.clock.ticks(instant.instant)
                case Tau():
                    at = self.tau(instant.match, view, t)
                case Pi():
                    at = self.pi(instant.match, view, t)
            total += factor * (-math.inf if at == NEVER else at)
        return total

    def visits(self, aggregate: Aggregate, view: View, t: int) -> list[tuple[int, int]]:
        """The completed visits that an aggregate is over, as (pi, tau), latest last."""
        asked = aggregate.visits
        found = []
        for pair in self.pairs(asked.match, view, t):
            for end in self.ends(asked.match, *pair, t):
                found.append((end, next(self.begins(asked.match, *pair, end - 1))))
        if asked.window is not None:
            found = [(end, begin) for end, begin in found if t - end <= asked.window.in_ticks(self.clock.tick)]
        return sorted(found)[-asked.last :] if asked.last is not None else sorted(found)

    def aggregate(self, aggregate: Aggregate, view: View, t: int) -> Fraction | None:
        """The value of an aggregate at t; None where too few visits were completed."""
        completed = self.visits(aggregate, view, t)
        if aggregate.visits.last is not None and len(completed) < aggregate.visits.last:
            return None
        values = [aggregate.term.of(begin, end) for end, begin in completed]
        match aggregate.function:
            case "count":
                return Fraction(len(values))
            case "sum":
                return Fraction(sum(values))
            case _ if not values:
                return None
            case "mean":
                return Fraction(sum(values), len(values))
            case "min":
                return Fraction(min(values))
            case "max":
                return Fraction(max(values))
        raise AssertionError(aggregate.function)

    # -- filters (4.3.3) ---------------------------------------------------------------------------------

    def exists(self, view: View, t: int) -> bool:
        """Whether both sides exist at t."""
        return all(self.history.instance(party, t) is not None for party in (view.own, view.other))

    def holds(self, node: Filter, view: View, t: int) -> bool:
        """Whether a predicate is true at t under one binding; never outside the common lifetime of the two sides."""
        if not self.exists(view, t):
            return False
        match node:
            case Everything():
                return True
            case And(parts=parts):
                return all(self.holds(part, view, t) for part in parts)
            case Or(parts=parts):
                return any(self.holds(part, view, t) for part in parts)
            case Not():
                return not self.holds(node.part, view, t)
            case Match():
                return any(self.matches(node, *pair, t) for pair in self.pairs(node, view, t))
            case Comparison():
                return self.compares(node, view, t)
            case TimeComparison():
                bound = node.bound.in_ticks(self.clock.tick)
                return OPERATORS[node.op](self.value(node.term, view, t), bound)
            case VisitComparison():
                found = self.aggregate(node.aggregate, view, t)
                return found is not None and OPERATORS[node.op](found, self.bound(node))
            case Held():
                first = t - node.duration.in_ticks(self.clock.tick)
                return all(self.holds(node.part, view, i) for i in self.between(node.part, view, first, t))
            case Latch():
                for i in reversed(self.between(node, view, NEVER, t)):
                    if not self.exists(view, i) or self.holds(node.off, view, i):
                        return False
                    if self.holds(node.on, view, i):
                        return True
                return False
        raise AssertionError(f"unknown node {node!r}")

    def compares(self, node: Comparison, view: View, t: int) -> bool:
        """``x op y`` for all values that the two sides leave at t."""
        left, right = self.extent(node.left, view, t), node.right
        if isinstance(right, Dimension):
            right = self.extent(right, view, t)
        return compare(left, node.op, right, self.metric)

    def extent(self, dimension: Dimension, view: View, t: int) -> Extent:
        """What a region leaves of a dimension at t."""
        region = self.history.region(view.named(dimension.region), t)
        assert region is not None
        return region[dimension.dimension]

    def bound(self, node: VisitComparison) -> int:
        """The right side of a comparison with an aggregate: a number of ticks, or of visits."""
        return node.bound.ticks if node.aggregate.function == "count" else node.bound.in_ticks(self.clock.tick)

    # -- when something can change -------------------------------------------------------------------------

    def moments(self, node: Filter, view: View, until: int) -> set[int]:
        """The instants up to ``until`` at which a predicate can change: a superset, and never every tick."""
        updates = self.history.upto(until)
        found = set(updates).union(*(self.moments(part, view, until) for part in node.parts))
        match node:
            case TimeComparison():
                found.update(i for u in updates for i in self.flips(node, view, u))
            case VisitComparison() if node.aggregate.visits.window is not None:
                window = node.aggregate.visits.window.in_ticks(self.clock.tick)
                found.update(u + window + 1 for u in updates)
            case Held():
                found.update(i + node.duration.in_ticks(self.clock.tick) for i in list(found))
        return {i for i in found if i <= until}

    def flips(self, node: TimeComparison, view: View, u: int) -> list[int]:
        """Where ``now`` alone turns a comparison over, if nothing else happens after u."""
        speed = sum(factor for instant, factor in node.term.instants if isinstance(instant, Now))
        start = self.value(node.term, view, u)
        if speed == 0 or not math.isfinite(start):
            return []
        turn = u + Fraction(node.bound.in_ticks(self.clock.tick) - int(start), speed)
        return [i for i in (math.floor(turn), math.floor(turn) + 1) if i > u]

    def between(self, node: Filter, view: View, first: int, last: int) -> list[int]:
        """Instants that tell everything about a predicate from ``first`` to ``last``: these two and its moments."""
        inner = {i for i in self.moments(node, view, last) if first < i}
        return sorted({*inner, last} | ({first} if first != NEVER else set()))

    # -- publications and subscriptions (4.6, 4.7) ---------------------------------------------------------

    def bindings(self, own: Party, other: Party, filter: Filter) -> list[View]:
        """The views of one side on the other, one for each choice of the filter's variables."""
        others = self.scenario.population(other.population)
        return [View(own, other, binding) for binding in self.scenario.bindings(filter, others)]

    def accepts(self, own: Party, other: Party, t: int) -> bool:
        """Whether the regions of the other side are in this side's filter: ∃ a binding for which P is true."""
        instance = self.history.instance(own, t)
        return instance is not None and any(
            self.holds(instance.filter, view, t) for view in self.bindings(own, other, instance.filter)
        )

    def pair_matches(self, publication: Party, subscription: Party, t: int) -> bool:
        """``(P, S) ∈ M``: each side's regions are in the other side's filter, and they are not one client."""
        return (
            publication.client != subscription.client
            and self.accepts(publication, subscription, t)
            and self.accepts(subscription, publication, t)
        )

    def sides(self, populations: Iterable[Population], t: int) -> list[Party]:
        """All publications or subscriptions that exist at t."""
        return [party for p in populations for party in self.history.parties(p.name, t)]

    def M(self, t: int) -> set[tuple[Party, Party]]:
        """The relation M at t."""
        return {
            (p, s)
            for p in self.sides(self.scenario.publications, t)
            for s in self.sides(self.scenario.subscriptions, t)
            if self.pair_matches(p, s, t)
        }

    def Q_P(self, publication: Party, t: int) -> set[Party]:
        """The subscriptions that match a publication at t."""
        return {s for p, s in self.M(t) if p == publication}

    def Q_S(self, subscription: Party, t: int) -> set[Party]:
        """The publications that match a subscription at t."""
        return {p for p, s in self.M(t) if s == subscription}

    def new_Q_P(self, publication: Party, t: int) -> set[Party]:
        """Q'_P: the subscriptions that match at t and did not at t - 1."""
        return self.Q_P(publication, t) - self.Q_P(publication, t - 1)

    def new_Q_S(self, subscription: Party, t: int) -> set[Party]:
        """Q'_S: the publications that match at t and did not at t - 1."""
        return self.Q_S(subscription, t) - self.Q_S(subscription, t - 1)

    def evaluation_instants(self, until: int) -> list[int]:
        """Every instant up to ``until`` at which M can change."""
        found = set(self.history.upto(until))
        populations = self.scenario.populations
        for own in (party for p in populations for party in self.history.ever(p.name, until)):
            filters = {i.filter for u in self.history.upto(until) if (i := self.history.instance(own, u)) is not None}
            opposite = self.scenario.opposite(self.scenario.population(own.population))
            for filter in filters:
                if not any(isinstance(n, TimeComparison | VisitComparison | Held) for n in filter.walk()):
                    continue
                for other in (party for p in opposite for party in self.history.ever(p.name, until)):
                    for view in self.bindings(own, other, filter):
                        found |= self.moments(filter, view, until)
        return sorted(found)

    def timelines(self, until: int) -> list[Timeline]:
        """The maximal intervals during which each pair was in M, up to ``until``."""
        running: dict[tuple[Party, Party, int], int] = {}
        ended: list[Timeline] = []
        for t in self.evaluation_instants(until):
            matching = {(p, s, self.generation(p, t)) for p, s in self.M(t)}
            for key in [k for k in running if k not in matching]:
                publication, subscription, generation = key
                why = self.why_ended(publication, subscription, generation, t)
                ended.append(Timeline(publication, subscription, running.pop(key), t, why))
            for key in matching:
                running.setdefault(key, t)
        return ended + [Timeline(p, s, tau, None, None) for (p, s, _), tau in running.items()]

    def generation(self, publication: Party, t: int) -> int:
        """Which event of a transient publication this is; 0 for one that persists."""
        instance = self.history.instance(publication, t)
        transient = self.scenario.population(publication.population).transient
        return instance.since if transient and instance is not None else 0

    def why_ended(self, publication: Party, subscription: Party, generation: int, t: int) -> str:
        """How a pair left M at t: removal wins, and the subscription's over the publication's."""
        if self.history.instance(subscription, t) is None:
            return "subscription_removed"
        if self.history.instance(publication, t) is None or self.generation(publication, t) != generation:
            return "publication_removed"
        return "unmatch"


def run(data: Inputs, until: int) -> tuple[pd.DataFrame, dict[str, int]]:
    """Replay the tables: the timelines, and what was counted on the way."""
    updates, counts = changes(data)
    history = History(data.scenario)
    for t, batch in updates.items():
        if t <= until:
            try:
                history.apply(t, batch)
            except ScenarioError as error:
                raise DataError(f"at t = {data.clock.shown(t)}, {error}") from None
    reference = Reference(data.scenario, history, data.clock, data.metric)
    names = (naming(data.scenario.publications), naming(data.scenario.subscriptions))
    rows = [
        (names[0](line.publication), names[1](line.subscription), line.tau, line.pi, line.ended)
        for line in reference.timelines(until)
    ]
    return timelines_frame(rows, data.clock), {**counts, "instants": len(history.instants)}


def naming(populations: Sequence[Population]) -> Callable[[Party], Any]:
    """How one side's publications or subscriptions are called in tables: the id, with its population before it where
    there are several."""
    return (lambda party: party.client.id) if len(populations) == 1 else repr
