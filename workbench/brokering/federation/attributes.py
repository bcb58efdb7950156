"""Attribute subscriptions: constraints and Boolean expressions over them (A Federated Broker Architecture, IV.B).

A notification ν is a set of named attributes. A constraint is γ = (n, op, C) (equation 1): an attribute name, a test
operator and a set of constants that may be empty. A subscription σ is a stateless logical expression of constraints,
σ(ν) → (true, false); N(σ) = {ν | σ(ν) = true}. If ν has no attribute n, γ is false.

Here: frozen values, built with ``attribute("age") > 25`` and ``& | ~``. `Expression.decided` answers with three values:
True, False, or None where it depends on a value not known yet. That is how a broker finds the providers that could, "in
theory", satisfy a subscription: their capabilities name the attributes, not the values (V).

Departure: the paper says that γ is false where its attribute is missing, and nothing of "not γ". Here ¬γ is true then:
Boolean operators are Boolean.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

from workbench.brokering.federation.index import NOTHING, Box, Need, Offer, grown
from workbench.errors import ScenarioError, did_you_mean

Value = str | int | float | bool

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_CONSTANTS = {"exists": 0, **dict.fromkeys(_ORDER, 1)}
OPERATORS = ("exists", *_ORDER, "in", "not in")
UNKNOWN = object()
"""the value of an attribute that a provider can produce but has not produced"""


@dataclass(frozen=True, eq=False)
class Notification:
    """ν: named attributes, and who published it, with a number of its own (origin and sequence).

    >>> Notification({"weatherCondition": "rain"}, "κ2", 1)
    ν1 of κ2: weatherCondition='rain'
    """

    attributes: Mapping[str, Any]
    origin: Hashable = None
    number: int = 0
    published: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))

    def boxes(self, dimensions: tuple[str, ...]) -> list[Box] | None:
        """Where the numbers under these names lie, for an index; nowhere if one of them is missing."""
        made = []
        for name in dimensions:
            value = self.attributes.get(name, NOTHING)
            if value is NOTHING or isinstance(value, str):
                return []
            try:
                made.append((float(value), float(value)))
            except (TypeError, ValueError, OverflowError):
                return None
        return [tuple(made)]

    @cached_property
    def offer(self) -> Offer:
        """What it offers: the same at every broker on its way."""
        return Offer(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Notification) and (self.origin, self.number, self.attributes) == (
            other.origin,
            other.number,
            other.attributes,
        )

    def __hash__(self) -> int:
        return hash((self.origin, self.number))

    def __repr__(self) -> str:
        inner = ", ".join(f"{n}={v!r}" for n, v in self.attributes.items())
        return f"ν{self.number} of {self.origin}: {inner}"


class Expression:
    """A predicate over the attributes of a notification; combine with ``&``, ``|`` and ``~``."""

    def __and__(self, more: Expression) -> Expression:
        return All((*_parts(self, All), *_parts(more, All)))

    def __or__(self, more: Expression) -> Expression:
        return Some((*_parts(self, Some), *_parts(more, Some)))

    def __invert__(self) -> Expression:
        return Never(self)

    def __bool__(self) -> bool:
        raise ScenarioError(f"an expression is no truth value: {self!r}. Combine with & | ~, in parentheses")

    def decided(self, attributes: Mapping[str, Any]) -> bool | None:
        """True, False, or None where the value of an attribute is not known."""
        raise NotImplementedError

    def __call__(self, notification: Notification) -> bool:
        """σ(ν)."""
        return self.decided(notification.attributes) is True


@dataclass(frozen=True)
class Constraint(Expression):
    """γ = (n, op, C).

    >>> gamma = Constraint("age", ">", frozenset({25}))
    >>> gamma, gamma(Notification({"age": 30})), gamma(Notification({"name": "Eve"}))
    (age > 25, True, False)
    """

    name: str
    op: str
    constants: frozenset[Value] = frozenset()

    def __post_init__(self) -> None:
        if self.op not in OPERATORS:
            raise ScenarioError(f"operator {self.op!r} of {self.name!r}; {did_you_mean(self.op, OPERATORS)}")
        expected = _CONSTANTS.get(self.op)
        if expected is not None and len(self.constants) != expected:
            raise ScenarioError(
                f"{self.name!r} {self.op}: {len(self.constants)} constants; {self.op!r} takes {expected}"
            )

    @cached_property
    def constant(self) -> Value:
        """The one constant of an order."""
        return next(iter(self.constants))

    def holds(self, value: Any) -> bool:
        """Whether the constraint is true of a value."""
        if self.op == "exists":
            return True
        if self.op in ("in", "not in"):
            return (value in self.constants) == (self.op == "in")
        try:
            return _ORDER[self.op](value, self.constant)
        except TypeError:
            return False  # a number and a word have no order

    def decided(self, attributes: Mapping[str, Any]) -> bool | None:
        if self.name not in attributes:
            return False
        if attributes[self.name] is UNKNOWN:
            return None  # of what a provider can produce, one notification may have it and the next may not
        return self.holds(attributes[self.name])

    def covers(self, other: Constraint) -> bool:
        """Whether every value that satisfies the other satisfies this one.

        >>> (attribute("age") > 25).covers(attribute("age") >= 30)
        True
        """
        if self.name != other.name:
            return False
        if self.op == "exists" or self == other:
            return True
        if other.op == "in":
            return all(self.holds(value) for value in other.constants)
        if self.op == "not in":
            if other.op == "not in":
                return self.constants <= other.constants
            return other.op != "exists" and not any(other.holds(value) for value in self.constants)
        if self.op in _ORDER and other.op in _ORDER and self.op[0] == other.op[0]:
            return self.holds(other.constant) or (self.constant == other.constant and other.op == self.op[0])
        return False

    def __repr__(self) -> str:
        if self.op == "exists":
            return f"{self.name} exists"
        shown = ", ".join(sorted(map(repr, self.constants)))
        if len(self.constants) == 1:
            return f"{self.name} {({'in': '=', 'not in': '≠'}).get(self.op, self.op)} {shown}"
        return f"{self.name} {self.op} {{{shown}}}"


def _parts(expression: Expression, kind: type[All | Some]) -> tuple[Expression, ...]:
    """The parts of an expression of that kind; one that is none is a part by itself."""
    return expression.parts if isinstance(expression, kind) else (expression,)


def _combined(parts: Iterable[Expression], attributes: Mapping[str, Any], stop: bool) -> bool | None:
    """Kleene's ``and`` (stop at False) and ``or`` (stop at True)."""
    unknown = False
    for part in parts:
        found = part.decided(attributes)
        if found is stop:
            return stop
        unknown |= found is None
    return None if unknown else not stop


@dataclass(frozen=True)
class All(Expression):
    """All of its parts."""

    parts: tuple[Expression, ...]

    def decided(self, attributes: Mapping[str, Any]) -> bool | None:
        return _combined(self.parts, attributes, False)

    def __repr__(self) -> str:
        return " ∧ ".join(f"({p})" if isinstance(p, Some) else repr(p) for p in self.parts)


@dataclass(frozen=True)
class Some(Expression):
    """One of its parts or more."""

    parts: tuple[Expression, ...]

    def decided(self, attributes: Mapping[str, Any]) -> bool | None:
        return _combined(self.parts, attributes, True)

    def __repr__(self) -> str:
        return " ∨ ".join(map(repr, self.parts))


@dataclass(frozen=True)
class Never(Expression):
    """Not its part."""

    part: Expression

    def decided(self, attributes: Mapping[str, Any]) -> bool | None:
        found = self.part.decided(attributes)
        return None if found is None else not found

    def __repr__(self) -> str:
        return f"¬({self.part})"


class attribute:
    """An attribute while a subscription is written.

    >>> (attribute("scope") == "weather") & (attribute("age") > 25)
    scope = 'weather' ∧ age > 25
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, value: Value) -> Constraint:  # type: ignore[override]
        return Constraint(self.name, "in", frozenset({value}))

    def __ne__(self, value: Value) -> Constraint:  # type: ignore[override]
        return Constraint(self.name, "not in", frozenset({value}))

    def __lt__(self, value: Value) -> Constraint:
        return Constraint(self.name, "<", frozenset({value}))

    def __le__(self, value: Value) -> Constraint:
        return Constraint(self.name, "<=", frozenset({value}))

    def __gt__(self, value: Value) -> Constraint:
        return Constraint(self.name, ">", frozenset({value}))

    def __ge__(self, value: Value) -> Constraint:
        return Constraint(self.name, ">=", frozenset({value}))

    def one_of(self, *values: Value) -> Constraint:
        """One of several values."""
        return Constraint(self.name, "in", frozenset(values))

    @property
    def exists(self) -> Constraint:
        """The attribute is there, whatever its value."""
        return Constraint(self.name, "exists")


def conjuncts(expression: Expression) -> tuple[Expression, ...]:
    """The parts that all have to be true."""
    if isinstance(expression, All):
        return tuple(c for part in expression.parts for c in conjuncts(part))
    return (expression,)


def covers(wide: Expression, narrow: Expression) -> bool:
    """Whether N(narrow) ⊆ N(wide), as far as the form of the two shows it; False where it does not.

    >>> covers(attribute("age") > 25, (attribute("age") > 30) & (attribute("scope") == "user"))
    True
    """
    if wide == narrow:
        return True
    if isinstance(narrow, Some):
        return all(covers(wide, part) for part in narrow.parts)
    if isinstance(wide, Some):
        return any(covers(part, narrow) for part in wide.parts)
    if isinstance(wide, All):
        return all(covers(part, narrow) for part in wide.parts)
    if isinstance(wide, Never) and isinstance(narrow, Never):
        return covers(narrow.part, wide.part)
    parts = conjuncts(narrow)
    if len(parts) > 1:
        return any(covers(wide, part) for part in parts)
    return isinstance(wide, Constraint) and isinstance(narrow, Constraint) and wide.covers(narrow)


def merged(first: Expression, second: Expression) -> Expression | None:
    """One expression that is exactly the union of two, where they differ in the constants of one constraint.

    >>> both = attribute("scope") == "weather"
    >>> merged(both & (attribute("city") == "Turin"), both & (attribute("city") == "Bristol"))
    scope = 'weather' ∧ city in {'Bristol', 'Turin'}
    """
    a, b = conjuncts(first), conjuncts(second)
    kept = tuple(part for part in a if part in b)
    rest_a, rest_b = [p for p in a if p not in kept], [p for p in b if p not in kept]
    if len(rest_a) != 1 or len(rest_b) != 1:
        return None
    one, two = rest_a[0], rest_b[0]
    if not (isinstance(one, Constraint) and isinstance(two, Constraint) and one.name == two.name):
        return None
    if one.op != "in" or two.op != "in":
        return None
    union = Constraint(one.name, "in", one.constants | two.constants)
    whole = tuple(union if part == one else part for part in a)
    return whole[0] if len(whole) == 1 else All(whole)


def needs(expression: Expression) -> tuple[Need, ...] | None:
    """What a notification must offer to satisfy an expression, one of several; None where that cannot be said.

    >>> needs((attribute("scope") == "weather") & (attribute("heat") > 30))
    (Need(name='scope', values=frozenset({'weather'}), dimensions=('heat',), box=((29.99..., inf),)),)
    """
    if isinstance(expression, Some):
        found = [needs(part) for part in expression.parts]
        return None if None in found else tuple(n for several in found for n in several or ())
    parts = conjuncts(expression)
    constraints = [p for p in parts if isinstance(p, Constraint)]
    equal = min((c for c in constraints if c.op == "in"), key=lambda c: len(c.constants), default=None)
    ranges = _ranges(constraints)
    closed = [n for n, ends in ranges.items() if all(map(math.isfinite, ends))]
    dimensions = tuple(sorted(closed)[:2] or sorted(ranges)[:1])
    if equal is None and not dimensions:
        return next((n for p in parts if isinstance(p, Some) and (n := needs(p)) is not None), None)
    box = tuple(grown(*ranges[name]) for name in dimensions)
    if equal is None:
        return (Need(dimensions=dimensions, box=box),)
    return (Need(equal.name, equal.constants, dimensions, box),)


def _ranges(constraints: Iterable[Constraint]) -> dict[str, tuple[float, float]]:
    """Between which numbers each attribute has to lie."""
    found: dict[str, tuple[float, float]] = {}
    for c in constraints:
        if c.op in _ORDER and isinstance(c.constant, int | float) and abs(c.constant) < 1e300:
            low, high = found.get(c.name, (-math.inf, math.inf))
            found[c.name] = (max(low, c.constant), high) if c.op[0] == ">" else (low, min(high, c.constant))
    return found


@dataclass(frozen=True)
class Subscription:
    """σ: an expression under a name; the version is its sequence at its origin (see `tables.Routable`).

    Clients may share a name for the same expression; in an overlay with cycles a name is one client's.

    >>> sigma = Subscription("σ1", attribute("age") > 25)
    >>> sigma, sigma.accepts(Notification({"age": 26}))
    (σ1, True)
    """

    name: Hashable
    expression: Expression
    version: tuple[int, int] = field(default=(0, 0), compare=False)

    def accepts(self, item: object) -> bool:
        """σ(ν)."""
        return isinstance(item, Notification) and self.expression(item)

    @cached_property
    def needs(self) -> tuple[Need, ...] | None:
        """What a notification must offer to be accepted, for an index."""
        return needs(self.expression)

    def possible(self, capabilities: Iterable[str]) -> bool:
        """Whether who produces these attributes could satisfy the subscription.

        >>> sigma = Subscription("σ1", attribute("age") > 25)
        >>> sigma.possible(["age"]), sigma.possible([])
        (True, False)
        """
        return self.expression.decided(dict.fromkeys(capabilities, UNKNOWN)) is not False

    def covers(self, other: object) -> bool:
        """Whether it accepts everything that the other one does."""
        return isinstance(other, Subscription) and covers(self.expression, other.expression)

    def merged(self, other: object) -> Subscription | None:
        """One subscription for the two, where that is exact."""
        if not isinstance(other, Subscription):
            return None
        union = merged(self.expression, other.expression)
        return None if union is None else Subscription(_names(self.name, other.name), union)

    def __repr__(self) -> str:
        return str(self.name)


def _names(*names: Hashable) -> frozenset[Hashable]:
    """The name of what was merged: the names that it stands for."""
    return frozenset(n for name in names for n in (name if isinstance(name, frozenset) else (name,)))
