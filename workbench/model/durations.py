"""Durations: lengths of time, exact, in units of the clock or in ticks.

Time is discrete (Subject Spaces, 4.3.4): a tick is the resolution of the data's ``t``. A duration is a whole number of
nanoseconds and of ticks; it becomes ticks when a scenario meets a clock, and one that is finer than the
tick is refused then.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from workbench.errors import ScenarioError

_UNITS = (
    ("d", 86_400 * 10**9), ("h", 3_600 * 10**9), ("min", 60 * 10**9),
    ("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1),
)  # fmt: skip


@dataclass(frozen=True)
class Duration:
    """A length of time.

    >>> hours(5) + minutes(30), -minutes(1)
    (5 h 30 min, -(1 min))
    >>> hours(5).in_ticks(seconds(1))
    18000
    """

    nanoseconds: int = 0
    ticks: int = 0

    def __add__(self, other: Duration) -> Duration:
        if not isinstance(other, Duration):
            return NotImplemented
        return Duration(self.nanoseconds + other.nanoseconds, self.ticks + other.ticks)

    def __neg__(self) -> Duration:
        return Duration(-self.nanoseconds, -self.ticks)

    def __sub__(self, other: Duration) -> Duration:
        return self + -other if isinstance(other, Duration) else NotImplemented

    def in_ticks(self, tick: Duration) -> int:
        """The number of ticks, where one tick is ``tick`` long.

        >>> seconds(1.5).in_ticks(seconds(1))
        Traceback (most recent call last):
        workbench.errors.ScenarioError: 1 s 500 ms is finer than the tick of 1 s; round it, ...
        """
        whole, rest = divmod(self.nanoseconds, tick.nanoseconds)
        if rest:
            raise ScenarioError(
                f"{self} is finer than the tick of {tick}; round it, or give the times a finer resolution"
            )
        return whole + self.ticks

    def __repr__(self) -> str:
        if self.nanoseconds < 0 or (not self.nanoseconds and self.ticks < 0):
            return f"-({-self})"
        parts, rest = [], self.nanoseconds
        for unit, size in _UNITS:
            count, rest = divmod(rest, size)
            if count:
                parts.append(f"{count} {unit}")
        if self.ticks or not parts:
            parts.append(f"{self.ticks} ticks")
        return " ".join(parts)


def _of(count: float | int | Fraction, unit_ns: int) -> Duration:
    if isinstance(count, float) and count != count:
        raise ScenarioError("NaN is not a duration")
    exact = Fraction(str(count)) * unit_ns
    if exact.denominator != 1:
        raise ScenarioError(f"{count} is finer than a nanosecond")
    return Duration(int(exact))


def days(count: float) -> Duration:
    """So many days of 24 hours."""
    return _of(count, 86_400 * 10**9)


def hours(count: float) -> Duration:
    """So many hours."""
    return _of(count, 3_600 * 10**9)


def minutes(count: float) -> Duration:
    """So many minutes."""
    return _of(count, 60 * 10**9)


def seconds(count: float) -> Duration:
    """So many seconds."""
    return _of(count, 10**9)


def milliseconds(count: float) -> Duration:
    """So many thousandths of a second."""
    return _of(count, 10**6)


def ticks(count: int) -> Duration:
    """So many steps of the data's own clock, whatever one is.

    >>> ticks(3).in_ticks(seconds(60))
    3
    """
    return Duration(0, int(count))
