"""Visits: aggregates over the history of a match (Subject Spaces, 5.2).

A visit is a maximal time ``[tau, pi)`` during which two regions matched. The traffic service needs the mean of
``pi - tau`` over the last n cars on [A, B]:

    on_section = any_region("cars.here").enclosed_by(own.section, space=highway)
    visits(on_section, last=5).mean(visit.pi - visit.tau) > minutes(2)

Only completed visits count (``pi <= now``), of all clients, ordered by (pi, tau, client). With ``last=n`` and
fewer than n visits every comparison is false; so is one with the mean, least or greatest of no visit. ``window=d``
takes the visits that ended at most d ago.

Departure: the formula of 5.2 sums from j = n to j and divides by n; its text asks for a moving average,
which is the mean over the last n here. It takes π - τ of each car whether or not the car has left: of one that came
back and is still on [A, B] that is the (negative) time between two visits. Here a visit counts when it ends.

Departure: 5.2 writes the publication as one formula, the message included. The section and the message are object
regions here, the mean and ``ℓ < A`` the filter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from workbench.errors import ScenarioError
from workbench.model.durations import Duration
from workbench.model.filters import Filter, Match
from workbench.model.notation import words


@dataclass(frozen=True)
class VisitTerm:
    """A whole combination of the beginning and the end of a visit.

    >>> visit.pi - visit.tau
    π - τ
    """

    tau: int = 0
    pi: int = 0

    def __add__(self, more: VisitTerm) -> VisitTerm:
        return VisitTerm(self.tau + more.tau, self.pi + more.pi)

    def __sub__(self, more: VisitTerm) -> VisitTerm:
        return VisitTerm(self.tau - more.tau, self.pi - more.pi)

    def of(self, began: int, ended: int) -> int:
        """The value for one visit."""
        return self.tau * began + self.pi * ended

    def __repr__(self) -> str:
        return "π - τ" if (self.tau, self.pi) == (-1, 1) else f"{self.pi}·π + {self.tau}·τ"


class visit:
    """The beginning and the end of one visit, inside an aggregate."""

    tau = VisitTerm(tau=1)
    pi = VisitTerm(pi=1)


LENGTH = visit.pi - visit.tau


@dataclass(frozen=True)
class Visits:
    """Completed matches of two regions: all, the last n, or those that ended within a window."""

    match: Match
    last: int | None = None
    window: Duration | None = None

    def mean(self, term: VisitTerm = LENGTH) -> Aggregate:
        """The mean of a term over the visits; exact, no rounding."""
        return Aggregate("mean", _duration(term), self)

    def sum(self, term: VisitTerm = LENGTH) -> Aggregate:
        """The sum of a term over the visits."""
        return Aggregate("sum", _duration(term), self)

    def min(self, term: VisitTerm = LENGTH) -> Aggregate:
        """The least value of a term over the visits."""
        return Aggregate("min", _duration(term), self)

    def max(self, term: VisitTerm = LENGTH) -> Aggregate:
        """The greatest value of a term over the visits."""
        return Aggregate("max", _duration(term), self)

    def count(self) -> Aggregate:
        """The number of visits."""
        return Aggregate("count", VisitTerm(), self)

    def __repr__(self) -> str:
        limits = [f"last {self.last}"] if self.last else []
        limits += [f"within {self.window}"] if self.window else []
        return f"{self.match}" + (f"; {', '.join(limits)}" if limits else "")


def _duration(term: VisitTerm) -> VisitTerm:
    if not isinstance(term, VisitTerm) or term.tau + term.pi != 0:
        raise ScenarioError(f"{term!r} is no length of time; expected a term such as visit.pi - visit.tau")
    return term


def visits(match: Match, *, last: int | None = None, window: Duration | None = None) -> Visits:
    """The completed matches of two regions; with `any_region`, of all clients together."""
    if not isinstance(match, Match):
        raise ScenarioError(f"visits({match!r}): expected a match of two regions")
    if last is not None and (not isinstance(last, int) or last < 1):
        raise ScenarioError(f"visits(last={last!r}): expected a whole number from 1")
    if window is not None and not isinstance(window, Duration):
        raise ScenarioError(f"visits(window={window!r}): expected a duration such as hours(1)")
    return Visits(match, last, window)


@dataclass(frozen=True)
class Aggregate:
    """One number over visits; compare it with a duration (a count with a number)."""

    function: str
    term: VisitTerm
    visits: Visits

    def _against(self, op: str, bound: Any) -> VisitComparison:
        if self.function == "count":
            if isinstance(bound, bool) or not isinstance(bound, int):
                raise ScenarioError(f"{self!r} {op} {bound!r}: a count compares with a whole number")
            bound = Duration(0, bound)
        elif not isinstance(bound, Duration):
            raise ScenarioError(f"{self!r} {op} {bound!r}: expected a duration such as minutes(2)")
        return VisitComparison(self, op, bound)

    def __lt__(self, bound: Any) -> VisitComparison:
        return self._against("<", bound)

    def __le__(self, bound: Any) -> VisitComparison:
        return self._against("<=", bound)

    def __gt__(self, bound: Any) -> VisitComparison:
        return self._against(">", bound)

    def __ge__(self, bound: Any) -> VisitComparison:
        return self._against(">=", bound)

    def __repr__(self) -> str:
        inner = "" if self.function == "count" else f"{self.term} : "
        return f"{self.function}({inner}{self.visits})"


@dataclass(frozen=True)
class VisitComparison(Filter):
    """An aggregate over visits against a bound.

    >>> from workbench.model.durations import minutes
    >>> from workbench.model.filters import any_region, own
    >>> from workbench.model.spaces import location
    >>> on_section = any_region("cars.here").enclosed_by(own.section, space=location)
    >>> visits(on_section, last=5).mean(visit.pi - visit.tau) > minutes(2)
    mean(π - τ : any cars.here m_e section; last 5) > 2 min
    """

    aggregate: Aggregate
    op: str
    bound: Duration

    @property
    def histories(self) -> tuple[Match, ...]:
        return (self.aggregate.visits.match,)

    def rebuilt(self, parts: tuple[Filter, ...], histories: tuple[Match, ...]) -> Filter:
        inner = replace(self.aggregate.visits, match=histories[0])
        return replace(self, aggregate=replace(self.aggregate, visits=inner))

    def __repr__(self) -> str:
        bound = self.bound.ticks if self.aggregate.function == "count" else self.bound
        return f"{self.aggregate} {self.op} {bound}"

    def _latex(self) -> str:
        return words(repr(self))
