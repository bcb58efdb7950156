"""Extents: the values that a constraint leaves on one dimension, dom(c_d) (Subject Spaces, 4.3).

Three kinds, by the type of the dimension:

* numbers: interval sets of the library *portion* (each end open or closed, unions allowed);
* strings and enumerated values: a `ValueSet`, finite or the complement of a finite set;
* positions: a `Shape`.

`ANYWHERE` is the whole domain of a position. Below, the set operations that the matching relations need.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import portion
from portion import Interval

from workbench.errors import ScenarioError
from workbench.model import shapes
from workbench.model.columns import fillable
from workbench.model.shapes import Shape


@dataclass(frozen=True)
class ValueSet:
    """A finite set of values, or all values but those.

    >>> one_of("coffee", "tea")
    {'coffee', 'tea'}
    >>> anything_but("tea").contains(one_of("coffee"))
    True
    """

    values: frozenset[Any]
    complement: bool = False

    def contains(self, other: ValueSet) -> bool:
        """Whether every value of the other set is in this one."""
        if self.complement:
            return self.values <= other.values if other.complement else not self.values & other.values
        return not other.complement and other.values <= self.values

    def overlaps(self, other: ValueSet) -> bool:
        """Whether some value is in both; two complements always share one, strings being endless."""
        if self.complement and other.complement:
            return True
        if self.complement or other.complement:
            finite, rest = (other, self) if self.complement else (self, other)
            return not finite.values <= rest.values
        return bool(self.values & other.values)

    @property
    def is_empty(self) -> bool:
        return not self.complement and not self.values

    @property
    def is_single(self) -> bool:
        return not self.complement and len(self.values) == 1

    def __repr__(self) -> str:
        inner = "{" + ", ".join(sorted(map(repr, self.values))) + "}"
        return f"all but {inner}" if self.complement else inner


class _Anywhere(Enum):
    """The whole domain of a position: one value, also in another process."""

    ANYWHERE = "anywhere"

    def __repr__(self) -> str:
        return "anywhere"

    __str__ = __repr__


ANYWHERE = _Anywhere.ANYWHERE
Extent: TypeAlias = Interval | ValueSet | Shape | _Anywhere


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not (isinstance(value, int | float) or hasattr(value, "__float__")):
        raise ScenarioError(f"{value!r} is not a number")
    if math.isnan(value):
        raise ScenarioError("NaN is not a value; leave the dimension out instead")
    return value


def _interval(made: Interval, text: str) -> Interval:
    if made.empty:
        raise ScenarioError(f"{text} is an empty interval; a constraint must leave a value")
    return made


@fillable
def between(lower: Any, upper: Any, *, closed: str = "both") -> Interval:
    """The numbers from ``lower`` to ``upper``; ``closed`` is ``both``, ``left``, ``right`` or ``neither``.

    >>> between(30, 100), between(0, 20, closed="left")
    ([30,100], [0,20))
    """
    makers = {
        "both": portion.closed,
        "left": portion.closedopen,
        "right": portion.openclosed,
        "neither": portion.open,
    }
    if closed not in makers:
        raise ScenarioError(f"closed={closed!r}; expected 'both', 'left', 'right' or 'neither'")
    return _interval(makers[closed](_number(lower), _number(upper)), f"from {lower} to {upper}, closed={closed!r},")


@fillable
def below(bound: Any) -> Interval:
    """The numbers strictly below a bound.

    >>> below(20)
    (-inf,20)
    """
    return portion.open(-math.inf, _number(bound))


@fillable
def at_most(bound: Any) -> Interval:
    """The numbers up to and including a bound.

    >>> at_most(20)
    (-inf,20]
    """
    return portion.openclosed(-math.inf, _number(bound))


@fillable
def above(bound: Any) -> Interval:
    """The numbers strictly above a bound.

    >>> above(20)
    (20,inf)
    """
    return portion.open(_number(bound), math.inf)


@fillable
def at_least(bound: Any) -> Interval:
    """The numbers from a bound on.

    >>> at_least(20)
    [20,inf)
    """
    return portion.closedopen(_number(bound), math.inf)


def single(value: Any) -> Interval:
    """One number.

    >>> single(60)
    [60]
    """
    return portion.singleton(_number(value))


def one_of(*values: Any) -> ValueSet:
    """A finite set of strings or enumerated values.

    >>> one_of("coffee")
    {'coffee'}
    """
    if not values:
        raise ScenarioError("one_of() is empty; a constraint must leave a value")
    return ValueSet(frozenset(values))


def anything_but(*values: Any) -> ValueSet:
    """All strings or enumerated values but these.

    >>> anything_but("tea")
    all but {'tea'}
    """
    return ValueSet(frozenset(values), complement=True)


def union(parts: Iterable[Interval]) -> Interval:
    """The union of interval sets.

    >>> union([between(0, 1), between(3, 4)])
    [0,1] | [3,4]
    """
    whole = portion.empty()
    for part in parts:
        whole |= part
    return whole


# -- set operations over all kinds -----------------------------------------------------------------


def encloses(outer: Extent, inner: Extent, metric: str) -> bool:
    """Whether every value of ``inner`` is in ``outer`` (neither is empty).

    >>> encloses(between(1, 5), between(2, 3), "planar")
    True
    """
    if outer is ANYWHERE or inner is ANYWHERE:
        return outer is ANYWHERE
    if isinstance(outer, Shape) and isinstance(inner, Shape):
        return shapes.encloses(outer, inner, metric)
    return outer.contains(inner)  # type: ignore[union-attr, arg-type]


def overlaps(a: Extent, b: Extent, metric: str) -> bool:
    """Whether two extents have a value in common.

    >>> overlaps(between(1, 2, closed="left"), between(2, 3), "planar")
    False
    """
    if a is ANYWHERE or b is ANYWHERE:
        return True
    if isinstance(a, Shape) and isinstance(b, Shape):
        return shapes.overlaps(a, b, metric)
    return a.overlaps(b)  # type: ignore[union-attr, arg-type]


def gap(a: Interval, b: Interval) -> float:
    """The distance between the closest points of two interval sets.

    >>> gap(between(0, 1), between(3, 4)), gap(between(0, 2), between(1, 4))
    (2.0, 0.0)
    """
    return min(max(0.0, float(p.lower - q.upper), float(q.lower - p.upper)) for p in a for q in b)


def mindist(p: float, interval: Interval) -> float:
    """MINDIST of Example 5: how far a point lies outside an interval.

    >>> mindist(7, between(4, 6)), mindist(5, between(4, 6))
    (1.0, 0.0)
    """
    if p < interval.lower:
        return float(interval.lower - p)
    if p > interval.upper:
        return float(p - interval.upper)
    return 0.0


def share(inner: Extent, outer: Extent, metric: str) -> float:
    """How much of ``inner`` lies in ``outer``, from 0 to 1.

    >>> share(between(0, 10), between(5, 20), "planar")
    0.5
    """
    if outer is ANYWHERE:
        return 1.0
    if isinstance(inner, Shape) and isinstance(outer, Shape):
        return shapes.share(inner, outer, metric)
    if isinstance(inner, Interval) and isinstance(outer, Interval):
        size = _length(inner)
        if size == 0.0 or math.isinf(size):
            return 1.0 if outer.contains(inner) else 0.0
        return _length(inner & outer) / size
    if isinstance(inner, ValueSet) and not inner.complement and isinstance(outer, ValueSet):
        return sum(outer.contains(one_of(v)) for v in inner.values) / len(inner.values)
    return 1.0 if encloses(outer, inner, metric) else 0.0


def _length(a: Interval) -> float:
    return sum(float(part.upper - part.lower) for part in a if not part.empty)


def is_point(a: Extent) -> bool:
    """Whether an extent is one single value.

    >>> is_point(single(3)), is_point(between(1, 2))
    (True, False)
    """
    if isinstance(a, Interval):
        return not a.empty and a.atomic and a.lower == a.upper
    if isinstance(a, Shape):
        return a.is_point
    return isinstance(a, ValueSet) and a.is_single


def compare(a: Extent, op: str, b: Extent, metric: str) -> bool:
    """Whether ``x op y`` for *every* x of a and y of b; ``in`` means a is part of b, ``meets`` that they overlap.

    Of single values this is the ordinary comparison.

    >>> compare(single(60), "<", between(70, 80), "planar"), compare(between(60, 70), "<", between(70, 80), "planar")
    (True, False)
    >>> compare(one_of("a"), "!=", one_of("b", "c"), "planar")
    True
    """
    if op == "in":
        return encloses(b, a, metric)
    if op == "meets":
        return overlaps(a, b, metric)
    if op == "==":
        return is_point(a) and is_point(b) and encloses(a, b, metric)
    if op == "!=":
        return not overlaps(a, b, metric)
    assert isinstance(a, Interval) and isinstance(b, Interval)
    if op in (">", ">="):
        a, b, op = b, a, {">": "<", ">=": "<="}[op]
    if a.upper != b.lower:
        return bool(a.upper < b.lower)
    return op == "<=" or a.right is portion.OPEN or b.left is portion.OPEN
