"""Driving parts: matches that must hold for a filter to hold, and whether the times in which they do are enough.

An index over positions tells when two regions can be near each other at all. A filter that cannot hold outside these
times need only be evaluated within them: *covered* by the match. What looks back (held, latch, tau and pi of the pair's
own matches) sees a part of the pair's past then. That part suffices where the past that is asked for cannot lie outside
either: ``held(f)`` where f is covered, ``latch(on, off)`` where "not off" is, ``tau(m)`` where m is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from workbench.engines.lowering import View
from workbench.model.filters import And, Filter, Held, Latch, Match, Not, Or
from workbench.model.relations import Nearest, Within


class Driver(NamedTuple):
    """A match of the two sides of a pair, seen from one of them."""

    match: Match
    view: View

    @property
    def two_sided(self) -> bool:
        """Whether it is about both of the pair, and about nobody else."""
        if self.match.third is not None or isinstance(self.match.relation, Nearest):
            return False
        return self.view.ref(self.match.left).role != self.view.ref(self.match.right).role

    def implies(self, other: Driver) -> bool:
        """Whether the other one holds wherever this one does."""
        mine, yours = self.match, other.match
        ends = [(d.view.ref(d.match.left), d.view.ref(d.match.right)) for d in (self, other)]
        if mine.space != yours.space:
            return False
        if isinstance(mine.relation, Within) and isinstance(yours.relation, Within):
            return set(ends[0]) == set(ends[1]) and mine.relation.distance <= yours.relation.distance
        return mine.relation == yours.relation and ends[0] == ends[1]


def opposite(node: Filter) -> Filter:
    """What holds where a filter does not, with the negations as far down as they go.

    >>> from workbench.model import other, own, location
    >>> near = own.here.within(5, other.here, space=location)
    >>> opposite(~near) == near
    True
    """
    match node:
        case Not():
            return node.part
        case And():
            return Or(tuple(opposite(part) for part in node.parts))
        case Or():
            return And(tuple(opposite(part) for part in node.parts))
    return Not(node)


def covers(node: Filter, view: View, indexed: Callable[[Driver], bool]) -> list[Driver] | None:
    """Matches of which one has to hold wherever the filter does, all of them served by an index; None for none."""
    match node:
        case And():
            found = [made for part in node.parts if (made := covers(part, view, indexed)) is not None]
            return min(found, key=_reach) if found else None
        case Or():
            every = [covers(part, view, indexed) for part in node.parts]
            return None if None in every else [d for some in every if some for d in some]
        case Held():
            return covers(node.part, view, indexed)
        case Latch():
            return covers(opposite(node.off), view, indexed)
        case Not(part=Not() | And() | Or()):
            return covers(opposite(node.part), view, indexed)
        case Match():
            driver = Driver(node, view)
            return [driver] if driver.two_sided and indexed(driver) else None
    return None


def _reach(drivers: list[Driver]) -> tuple[int, float]:
    """Few and narrow ones first."""
    relations = [driver.match.relation for driver in drivers]
    return len(drivers), max(r.distance if isinstance(r, Within) else 0.0 for r in relations)


def covered(node: Filter, view: View, drivers: list[Driver]) -> bool:
    """Whether one of the drivers holds wherever the filter does."""
    match node:
        case And():
            return any(covered(part, view, drivers) for part in node.parts)
        case Or():
            return all(covered(part, view, drivers) for part in node.parts)
        case Held():
            return covered(node.part, view, drivers)
        case Latch():
            return covered(opposite(node.off), view, drivers)
        case Not(part=Not() | And() | Or()):
            return covered(opposite(node.part), view, drivers)
        case Match():
            asked = Driver(node, view)
            return asked.two_sided and any(asked.implies(driver) for driver in drivers)
    return False


def enough(node: Filter, view: View, drivers: list[Driver]) -> bool:
    """Whether the times in which one of the drivers holds are all that the filter has to see of a pair's past."""
    if isinstance(node, Held) and not covered(node.part, view, drivers):
        return False
    if isinstance(node, Latch) and not covered(opposite(node.off), view, drivers):
        return False
    for match in node.histories:
        if Driver(match, view).two_sided and not covered(match, view, drivers):
            return False
    return all(enough(part, view, drivers) for part in node.parts)


def widest(drivers: list[Driver]) -> list[Driver]:
    """Drivers without those that another one covers."""
    kept: list[Driver] = []
    for n, driver in enumerate(drivers):
        others = (*kept, *drivers[n + 1 :])
        if not any(driver.implies(other) for other in others):
            kept.append(driver)
    return kept
