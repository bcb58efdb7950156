"""Lowering: a filter as atoms and an interval algebra over their histories.

Under one binding a filter is a tree over *atoms*: relations of two regions, constraints on dimensions. Between two
updates an atom does not change, so over the segments of a pair (where a version of the one side meets a version of
the other) it is a row of truth values, and ``& | ~`` are theirs. Where time comes in, truth values become sets of
instants: ``held`` and ``latch`` are operations on sets, ``now - tau(...) > c`` is a set because tau is a step
function, and so is an aggregate over visits.

A *lane* is a pair, or one client where a history belongs to one side alone (``own.a m own.b``, ``own.a m
any_region``): those histories are computed once for each client, over its own lifetime, and handed to its pairs.

An engine says how histories of third parties and nearest neighbours are found (`Atoms`); everything else is here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np

from workbench.engines import extents, intervals, kernels, relating
from workbench.engines.intervals import Sets, Visits
from workbench.engines.relating import Regions
from workbench.engines.streams import Stream
from workbench.model.clock import Clock
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
    RegionTerm,
    Var,
)
from workbench.model.pubsub import PUBLICATION, SUBSCRIPTION
from workbench.model.relations import Nearest
from workbench.model.scenario import Binding
from workbench.model.times import At, Now, Pi, Tau, TimeComparison
from workbench.model.visits import VisitComparison

OPPOSITE = {PUBLICATION: SUBSCRIPTION, SUBSCRIPTION: PUBLICATION}


class Ref(NamedTuple):
    """A region of one of the two sides."""

    role: str
    region: str


class View(NamedTuple):
    """Whose filter it is, and which region of the other side each variable stands for."""

    role: str
    binding: Binding

    def ref(self, term: RegionTerm) -> Ref:
        """The region that ``own.name`` or ``other.name`` stands for."""
        assert isinstance(term, Var)
        if term.side == "own":
            return Ref(self.role, term.name)
        return Ref(OPPOSITE[self.role], self.binding[term.name])


def is_plain(node: Filter) -> bool:
    """Whether a filter depends on the two present versions alone: no time, no third party.

    >>> from workbench.model import held, other, own, location, ticks
    >>> near = own.here.within(5, other.site, space=location)
    >>> is_plain(~near), is_plain(held(near, ticks(2)))
    (True, False)
    """
    if isinstance(node, And | Or | Not):
        return all(is_plain(part) for part in node.parts)
    if isinstance(node, Match):
        return node.third is None and not isinstance(node.relation, Nearest)
    return isinstance(node, Comparison | Everything)


@dataclass(frozen=True)
class Lanes:
    """Pairs, or clients of one side, and the segments of their step functions."""

    clients: Mapping[str, np.ndarray]
    """by role: the client of each lane"""
    offsets: np.ndarray
    start: np.ndarray
    end: np.ndarray
    versions: Mapping[str, np.ndarray]
    """by role: the version of each segment"""

    @property
    def count(self) -> int:
        return len(self.offsets) - 1

    def true(self, flags: np.ndarray) -> Sets:
        """The set of instants in which the segments are flagged."""
        return intervals.from_segments(self.offsets, self.start, self.end, flags)

    @property
    def life(self) -> Sets:
        """When each lane exists."""
        return self.true(np.ones(len(self.start), bool))


def lanes_of_pairs(streams: Mapping[str, Stream], clients: Mapping[str, np.ndarray]) -> Lanes:
    """The lanes of pairs of clients: both exist."""
    (one, a), (two, b) = ((role, streams[role]) for role in clients)
    offsets, start, end, i, j = kernels.overlay(
        clients[one], clients[two], a.offsets, a.start, a.end, b.offsets, b.start, b.end
    )
    return Lanes(clients, offsets, start, end, {one: i, two: j})


def lanes_of_meetings(streams: Mapping[str, Stream], versions: Mapping[str, np.ndarray]) -> Lanes:
    """The lanes of the pairs whose versions meet, with the segments of these meetings alone."""
    (one, i), (two, j) = versions.items()
    a, b = streams[one], streams[two]
    start, end = np.maximum(a.start[i], b.start[j]), np.minimum(a.end[i], b.end[j])
    kept = np.flatnonzero((start < end) & a.different(i, b, j))
    key = a.owner[i[kept]] * b.clients + b.owner[j[kept]]
    order = kept[intervals.ordered(key, start[kept])]
    i, j, start, end = i[order], j[order], start[order], end[order]
    new = np.ones(len(order), bool)
    new[1:] = (a.owner[i[1:]] != a.owner[i[:-1]]) | (b.owner[j[1:]] != b.owner[j[:-1]])
    first = np.flatnonzero(new)
    clients = {one: a.owner[i[first]], two: b.owner[j[first]]}
    return Lanes(clients, np.append(first, len(order)), start, end, {one: i, two: j})


def within(lanes: Lanes, sets: Sets) -> Lanes:
    """The same lanes, their segments cut down to sets of instants."""
    each = np.arange(lanes.count)
    offsets, start, end, segment, _ = kernels.overlay(each, each, lanes.offsets, lanes.start, lanes.end, *sets)
    return Lanes(lanes.clients, offsets, start, end, {role: v[segment] for role, v in lanes.versions.items()})


def lanes_of_side(role: str, stream: Stream) -> Lanes:
    """The lanes of the clients of one side."""
    versions = np.arange(len(stream.start))
    return Lanes({role: np.arange(stream.clients)}, stream.offsets, stream.start, stream.end, {role: versions})


class Atoms(Protocol):
    """What an engine knows about the two populations at hand."""

    @property
    def clock(self) -> Clock: ...

    @property
    def metric(self) -> str: ...

    @property
    def streams(self) -> Mapping[str, Stream]: ...

    def thirds(self, match: Match, known: Ref) -> Visits:
        """For each client of the known region's side, its matches with regions of third parties."""

    def neighbours(self, match: Match, left: Ref, right: Ref) -> tuple[np.ndarray, Sets]:
        """The pairs of clients (left * number of right + right, in order) that ever are nearest, and when."""

    def side(self, role: str) -> Lanes:
        """The clients of one side."""


@dataclass(frozen=True)
class Evaluation:
    """A filter over lanes, under one binding."""

    atoms: Atoms
    lanes: Lanes
    view: View

    # -- truth values of segments ------------------------------------------------------------------------

    def flags(self, node: Filter, asked: np.ndarray) -> np.ndarray:
        """Whether a plain filter holds in each of the segments asked for; parts are asked as far as they matter."""
        match node:
            case Everything():
                return np.ones(len(asked), bool)
            case And():
                said = np.ones(len(asked), bool)
                for part in node.parts:
                    left = np.flatnonzero(said)
                    said[left] = self.flags(part, asked[left])
                return said
            case Or():
                said = np.zeros(len(asked), bool)
                for part in node.parts:
                    left = np.flatnonzero(~said)
                    said[left] = self.flags(part, asked[left])
                return said
            case Not():
                return ~self.flags(node.part, asked)
            case Match():
                (r1, i1), (r2, i2) = (self._region(self.view.ref(term), asked) for term in (node.left, node.right))
                return relating.holds(node.relation, r1, i1, r2, i2, node.space, self.atoms.metric)
            case Comparison():
                return self._compares(node, asked)
        raise AssertionError(f"unknown node {node!r}")

    def _region(self, ref: Ref, asked: np.ndarray) -> tuple[Regions, np.ndarray]:
        return self.atoms.streams[ref.role].regions[ref.region], self.lanes.versions[ref.role][asked]

    def _compares(self, node: Comparison, asked: np.ndarray) -> np.ndarray:
        r1, i1 = self._region(self.view.ref(node.left.region), asked)
        a = r1.column(node.left.dimension)
        if isinstance(node.right, Dimension):
            r2, i2 = self._region(self.view.ref(node.right.region), asked)
            return extents.compare(a, i1, node.op, r2.column(node.right.dimension), i2, self.atoms.metric)
        b, zeros = extents.constant(node.right, 1), np.zeros(len(asked), np.int64)
        return extents.compare(a, i1, node.op, b, zeros, self.atoms.metric)

    # -- sets of instants --------------------------------------------------------------------------------

    def sets(self, node: Filter) -> Sets:
        """The instants at which a filter holds in each lane, within its lifetime."""
        if is_plain(node):
            return self.lanes.true(self.flags(node, np.arange(len(self.lanes.start))))
        life = self.lanes.life
        match node:
            case And():
                return self._all(node.parts)
            case Or():
                said = intervals.nothing(self.lanes.count)
                for part in node.parts:
                    said = intervals.union(said, self.sets(part))
                return said
            case Not():
                return intervals.difference(life, self.sets(node.part))
            case Held():
                return intervals.held(self.sets(node.part), self._ticks(node.duration))
            case Latch():
                return intervals.latch(self.sets(node.on), self.sets(node.off), life)
            case Match():
                return intervals.intersection(self._once([node], lambda one: one._met(node)), life)
            case TimeComparison():
                looked = [instant.match for instant, _ in node.term.instants if isinstance(instant, Tau | Pi)]
                return intervals.intersection(self._once(looked, lambda one: one._time(node)), life)
            case VisitComparison():
                asked = [node.aggregate.visits.match]
                return intervals.intersection(self._once(asked, lambda one: one._aggregate(node)), life)
        raise AssertionError(f"unknown node {node!r}")

    def _all(self, parts: tuple[Filter, ...]) -> Sets:
        plain = tuple(part for part in parts if is_plain(part))
        said = self.sets(And(plain)) if plain else self.lanes.life
        for part in parts:
            if part not in plain:
                said = intervals.intersection(said, self.sets(part))
        return said

    def _ticks(self, duration) -> int:  # type: ignore[no-untyped-def]
        return duration.in_ticks(self.atoms.clock.tick)  # type: ignore[no-any-return]

    def _once(self, matches: Sequence[Match], made: Callable[[Evaluation], Sets]) -> Sets:
        """What follows from the visits of some matches; once for each client, where it is its own affair.

        A jam looks at all cars: that their mean is high is the same for whoever may hear of it. Lanes are pairs, and to
        give each its copy of that history would cost as much as all pairs times all visits.
        """
        roles = {self._whose(match) for match in matches}
        role = roles.pop() if len(roles) == 1 else None
        if role is None or self.lanes.count <= self.atoms.streams[role].clients:
            return made(self)
        alone = replace(self, lanes=self.atoms.side(role))
        return intervals.gather(made(alone), self.lanes.clients[role])

    def _whose(self, match: Match) -> str | None:
        """The side whose client alone decides when a match began and ended; None where it is about the pair."""
        if match.third is not None:
            return self.view.ref(match.right if match.left is match.third else match.left).role
        left, right = self.view.ref(match.left), self.view.ref(match.right)
        return left.role if left.role == right.role else None

    def _met(self, match: Match) -> Sets:
        met = self.visits(match)
        return intervals.merged(met.lanes, met.start, met.end, self.lanes.count)

    def visits(self, match: Match) -> Visits:
        """The maximal times during which the two regions of a match matched, whatever the lane's own lifetime.

        With a third party, those of all its regions together. Ordered by (end, start).
        """
        third = match.third
        if third is not None:
            known = self.view.ref(match.right if match.left is third else match.left)
            return intervals.gather(self.atoms.thirds(match, known), self.lanes.clients[known.role])
        left, right = self.view.ref(match.left), self.view.ref(match.right)
        if left.role == right.role:
            # Both belong to one client, whose history may be longer than that of the pair.
            if isinstance(match.relation, Nearest):
                return intervals.nothing(self.lanes.count)
            alone = replace(self, lanes=self.atoms.side(left.role))
            return intervals.gather(alone.sets(match), self.lanes.clients[left.role])
        if isinstance(match.relation, Nearest):
            keys, sets = self.atoms.neighbours(match, left, right)
            wanted = self.lanes.clients[left.role] * self.atoms.streams[right.role].clients
            return intervals.gather(sets, position_of(keys, wanted + self.lanes.clients[right.role]))
        return self.sets(match)

    def _time(self, node: TimeComparison) -> Sets:
        speed = fixed = 0
        happened = []
        for instant, factor in node.term.instants:
            if isinstance(instant, Now):
                speed += factor
            elif isinstance(instant, At):
                fixed += factor * self.atoms.clock.ticks(instant.instant)
            else:
                when = intervals.begins if isinstance(instant, Tau) else intervals.ends
                happened.append((*when(self.visits(instant.match)), factor))
        return intervals.compared(happened, speed, fixed, node.op, self._ticks(node.bound), self.lanes.count)

    def _aggregate(self, node: VisitComparison) -> Sets:
        asked, function, term = node.aggregate.visits, node.aggregate.function, node.aggregate.term
        window = None if asked.window is None else self._ticks(asked.window)
        bound = node.bound.ticks if function == "count" else self._ticks(node.bound)
        visits = self.visits(asked.match)
        return intervals.aggregated(visits, asked.last, window, function, term.tau, term.pi, node.op, bound)


def position_of(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Where each wanted key stands among ordered ones, -1 where it does not.

    >>> position_of(np.array([2, 5]), np.array([5, 3])).tolist()
    [1, -1]
    """
    if not len(keys):
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, at, -1)
