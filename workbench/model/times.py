"""Time: now, tau and pi, and comparisons of them (Subject Spaces, 4.3.4).

``tau(r1 m r2)`` is the most recent instant at which r1 became a match to r2, ``pi(r1 m r2)`` the most recent one
at which the two turned from a match to a mismatch. Both are of *one* match of two regions, whatever the rest of the
filter says, and their history outlives the regions: a region that is removed ends its match, one that returns
under its name goes on with it.

A term is a sum of instants and durations. Differences of instants compare with durations, sums that stand for
an instant compare with instants: ``now - tau(entered) > hours(5)``, ``now >= at(1000)``.

What never happened is minus infinity: after "never", any time has passed. A term in which
infinities cancel out has no value, and every comparison with it is false. In print the paper's 0 stands for never.

Departure: the paper's ``i < j < now`` would let tau miss a match that begins right now, so that ``now - tau`` of
someone who is just entering counted from the visit before; here j goes up to and including now.

Departure: for "never" the paper returns 0. On a clock that starts at 1, ``now - 0 > 5 hours`` is false for the first
five hours, and on one that starts in 1970 it is true: whether somebody who never drank coffee hears of it would depend
on the origin of time. Here never is minus infinity, whatever the clock.

Departure: tau of "any region" (o'_coffee_shop of 5.1) is the latest tau over those regions, removed ones included, and
not the tau of their union: who steps from one coffee shop straight into another one has entered a coffee shop again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from workbench.errors import ScenarioError
from workbench.model.durations import Duration
from workbench.model.filters import Filter, Match
from workbench.model.notation import words


@dataclass(frozen=True)
class Now:
    """The current instant."""

    def __repr__(self) -> str:
        return "now"


@dataclass(frozen=True)
class At:
    """An instant by name: an integer tick, or a UTC timestamp with its zone."""

    instant: Any

    def __repr__(self) -> str:
        return f"at({self.instant})"


@dataclass(frozen=True)
class Tau:
    """When a match last began."""

    match: Match

    def __repr__(self) -> str:
        return f"τ({self.match})"


@dataclass(frozen=True)
class Pi:
    """When a match last ended."""

    match: Match

    def __repr__(self) -> str:
        return f"π({self.match})"


Instant = Now | At | Tau | Pi


@dataclass(frozen=True)
class Term:
    """A sum of instants, each with a whole factor, and a duration."""

    instants: tuple[tuple[Instant, int], ...]
    duration: Duration = Duration()  # noqa: RUF009 - frozen

    @property
    def order(self) -> int:
        """0 for a difference of instants, that is a duration; 1 for an instant."""
        return sum(factor for _, factor in self.instants)

    def __add__(self, more: Term | Duration) -> Term:
        if isinstance(more, Duration):
            return Term(self.instants, self.duration + more)
        if not isinstance(more, Term):
            return NotImplemented
        factors = dict(self.instants)
        for instant, factor in more.instants:
            factors[instant] = factors.get(instant, 0) + factor
        return Term(tuple((i, f) for i, f in factors.items() if f), self.duration + more.duration)

    def __neg__(self) -> Term:
        return Term(tuple((i, -f) for i, f in self.instants), -self.duration)

    def __sub__(self, more: Term | Duration) -> Term:
        return self + (-more) if isinstance(more, Term | Duration) else NotImplemented

    def _against(self, op: str, bound: Term | Duration) -> TimeComparison:
        if isinstance(bound, bool) or not isinstance(bound, Term | Duration):
            raise ScenarioError(
                f"{self!r} {op} {bound!r}: expected a duration such as hours(5), ticks(5), "
                "or an instant such as at(...)"
            )
        whole = self - bound
        if whole.order != 0:
            raise ScenarioError(
                f"{self!r} {op} {bound!r} compares an instant with a duration; "
                "subtract an instant first, as in now - tau(...)"
            )
        return TimeComparison(replace(whole, duration=Duration()), op, -whole.duration)

    def __lt__(self, bound: Term | Duration) -> TimeComparison:
        return self._against("<", bound)

    def __le__(self, bound: Term | Duration) -> TimeComparison:
        return self._against("<=", bound)

    def __gt__(self, bound: Term | Duration) -> TimeComparison:
        return self._against(">", bound)

    def __ge__(self, bound: Term | Duration) -> TimeComparison:
        return self._against(">=", bound)

    def __bool__(self) -> bool:
        raise ScenarioError(f"{self!r} is no truth value; compare it with a duration")

    def __repr__(self) -> str:
        said = ""
        for instant, factor in self.instants:
            sign = " - " if factor < 0 else " + " if said else ""
            said += sign + (f"{abs(factor)}·" if abs(factor) != 1 else "") + repr(instant)
        if self.duration != Duration():
            said += f" + {self.duration}" if said else f"{self.duration}"
        return said.strip() or "0"


@dataclass(frozen=True)
class TimeComparison(Filter):
    """A difference of instants against a duration.

    >>> from workbench.model.durations import hours
    >>> from workbench.model.filters import other, own
    >>> from workbench.model.spaces import location
    >>> now - tau(own.here.within(5, other.door, space=location)) > hours(5)
    now - τ(here m_5 door') > 5 h
    """

    term: Term
    op: str
    bound: Duration

    @property
    def histories(self) -> tuple[Match, ...]:
        return tuple(i.match for i, _ in self.term.instants if isinstance(i, Tau | Pi))

    def rebuilt(self, parts: tuple[Filter, ...], histories: tuple[Match, ...]) -> Filter:
        new = iter(histories)
        made = tuple(
            (replace(i, match=next(new)), f) if isinstance(i, Tau | Pi) else (i, f) for i, f in self.term.instants
        )
        return replace(self, term=Term(made))

    def __repr__(self) -> str:
        return f"{self.term} {self.op} {self.bound}"

    def _latex(self) -> str:
        sides = f"{self.term} {self.op} {self.bound}"
        return words(sides)


now = Term(((Now(), 1),))
"""The current instant."""


def at(instant: Any) -> Term:
    """An instant by name: an integer tick, or a timestamp (text or object) with a zone.

    >>> now >= at(1000)
    now - at(1000) >= 0 ticks
    """
    return Term(((At(instant), 1),))


def _match(given: Any, function: str) -> Match:
    if not isinstance(given, Match):
        raise ScenarioError(
            f"{function}({given!r}): expected a match of two regions, such as own.a.overlaps(other.b, space=...)"
        )
    return given


def tau(match: Match) -> Term:
    """The most recent instant at which the match began; of "any region", the latest of theirs."""
    return Term(((Tau(_match(match, "tau")), 1),))


def pi(match: Match) -> Term:
    """The most recent instant at which the match ended; of "any region", the latest of theirs."""
    return Term(((Pi(_match(match, "pi")), 1),))
