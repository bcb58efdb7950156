"""Transmission and security policies of a scope (Scopes, 3.3 and 3.5).

publishing   what leaves a scope for its superscopes, and when: `IMMEDIATE`, `Delayed`, `Until`
traverse     where receivers are searched on the way down: `BROADCAST`, `TOP_DOWN`, `BOTTOM_UP`
delivery     which members receive what they could: `EVERYBODY`, `OneOf`, `ByKey`, `Chosen`
security     who may join: `Admitting`

Choices are made by a seeded hash of what is delivered and to whom, never by drawing: the end of a match goes to
whom its beginning went, and a second run tells the same people.

Departure: the paper says of top-down that subscopes are asked "only when no-one is found" and leaves open what
no-one means. A member is eligible here if the notification would be delivered to it: after interfaces, mappings and
its subscriptions, before any delivery policy. Where subscopes are asked, the result is the union over them, each by
its own policy.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from workbench.brokering.scopes.interfaces import Content
from workbench.errors import ScenarioError, did_you_mean

# -- publishing ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Immediate:
    """A notification leaves the scope when it is published."""

    def release(self, t: int) -> int | None:
        """When what happened at t is told outside; None for never."""
        return t

    def since(self, t: int) -> int | None:
        """The latest instant of which it is told outside at t; None where there is none."""
        return t

    def __repr__(self) -> str:
        return "immediate"


@dataclass(frozen=True)
class Delayed(Immediate):
    """A notification leaves the scope that many ticks later: [tau + d, pi + d).

    >>> Delayed(900).release(60)
    960
    """

    ticks: int

    def __post_init__(self) -> None:
        if not isinstance(self.ticks, int) or isinstance(self.ticks, bool) or self.ticks < 0:
            raise ScenarioError(f"delayed by {self.ticks!r}: expected a whole number of ticks, 0 or more")

    def release(self, t: int) -> int | None:
        return t + self.ticks

    def since(self, t: int) -> int | None:
        return t - self.ticks

    def __repr__(self) -> str:
        return f"delayed by {self.ticks}"


@dataclass(frozen=True)
class Until(Immediate):
    """Notifications wait until a condition is valid, and leave in their order.

    The condition is given as the time ``[start, end)`` during which it is valid.

    >>> market_hours = Until(((9, 17), (33, 41)))
    >>> [market_hours.release(t) for t in (3, 12, 20, 50)]
    [9, 12, 33, None]
    """

    valid: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        flat = [end for interval in self.valid for end in interval]
        if sorted(set(flat)) != flat:
            raise ScenarioError(f"until {self.valid}: expected disjoint intervals (start, end) in their order")

    def release(self, t: int) -> int | None:
        following = bisect_right([end for _, end in self.valid], t)
        return max(t, self.valid[following][0]) if following < len(self.valid) else None

    def since(self, t: int) -> int | None:
        """
        >>> [Until(((9, 17), (33, 41))).since(t) for t in (3, 12, 20, 40, 50)]
        [None, 12, 16, 40, 40]
        """
        begun = bisect_right([start for start, _ in self.valid], t)
        return min(t, self.valid[begun - 1][1] - 1) if begun else None

    def __repr__(self) -> str:
        return "until " + ", ".join(f"[{a}, {b})" for a, b in self.valid)


IMMEDIATE = Immediate()

# -- traverse ------------------------------------------------------------------------------------------------

BROADCAST, TOP_DOWN, BOTTOM_UP = TRAVERSE = ("broadcast", "top-down", "bottom-up")

# -- delivery ------------------------------------------------------------------------------------------------


def drawn(*what: Any) -> int:
    """A number that depends on nothing but what is hashed.

    >>> drawn("seed", "q1", "C3") == drawn("seed", "q1", "C3")
    True
    """
    return int.from_bytes(sha256("\x1f".join(map(str, what)).encode()).digest()[:8], "big")


@dataclass(frozen=True)
class Everybody:
    """Every eligible member receives."""

    @property
    def lasting(self) -> bool:
        """Whether a choice lasts as long as the chosen one could receive."""
        return False

    def choose(self, members: Sequence[str], key: Any, content: Content) -> Sequence[str]:
        """The members that receive, of those that could; ``key`` tells one delivery from another."""
        return members

    def __repr__(self) -> str:
        return "everybody"


@dataclass(frozen=True)
class OneOf(Everybody):
    """1-of-n: one member of those that could receive, another one for another notification."""

    seed: int = 0

    @property
    def lasting(self) -> bool:
        return True

    def choose(self, members: Sequence[str], key: Any, content: Content) -> Sequence[str]:
        return [max(members, key=lambda member: drawn(self.seed, key, member))] if members else []

    def __repr__(self) -> str:
        return "1 of n"


@dataclass(frozen=True)
class ByKey(Everybody):
    """One member for each value of a dimension: orders go to the instance that is dedicated to their share."""

    dimension: str
    seed: int = 0

    @property
    def lasting(self) -> bool:
        return True

    def choose(self, members: Sequence[str], key: Any, content: Content) -> Sequence[str]:
        value = content.get(self.dimension)
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # a column with gaps holds whole numbers as 3.0
        return [max(members, key=lambda member: drawn(self.seed, value, member))] if members else []

    def __repr__(self) -> str:
        return f"by {self.dimension}"


@dataclass(frozen=True)
class Chosen(Everybody):
    """User-defined: a function of the eligible members and of what is delivered."""

    name: str
    function: Callable[[Sequence[str], Content], Sequence[str]] = field(repr=False)

    def choose(self, members: Sequence[str], key: Any, content: Content) -> Sequence[str]:
        chosen = set(self.function(members, content))
        return [member for member in members if member in chosen]

    def __repr__(self) -> str:
        return self.name


EVERYBODY = Everybody()

# -- security ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Admitting:
    """Only these may join.

    >>> Admitting(frozenset({"ME", "DB"})).admits("Mallory")
    False
    """

    names: frozenset[str]

    def admits(self, member: str) -> bool:
        """Whether a component or scope may become a member."""
        return member in self.names


def traverse_named(name: str) -> str:
    """A traverse policy by name, checked."""
    if name not in TRAVERSE:
        raise ScenarioError(f"there is no traverse policy {name!r}; {did_you_mean(name, TRAVERSE)}")
    return name
