"""Subject spaces: what can be said, and about what (Subject Spaces, 4.1 and 4.2).

A subject space is a tuple (D, V) of dimensions and values; a dimension is a tuple (name, type) with a domain;
V is the Cartesian product of the domains. Here: `Space` is a frozen value, a name and its dimensions; the
types are real, integer, string, Boolean and enumerated, user-defined subsets of these (`percentage`,
`Number("price", 0, unit="cent")`), and `Position`.

Spaces are related by the dimensions that they share (4.2): `degree` gives the degree of containment.

Departure: the paper's three degrees leave pairs without any, such as (product, coffee), where the second
has all of the first's dimensions and more: not contained, not partial (the common dimensions are no *proper*
subset of D_product), not unrelated. `degree` is None there, and `relationship` says so in words.

Departure: by 4.1 a name identifies a dimension, by 4.2 a pair (name, type) does. Within a scenario one name has one
type here. Homonyms are one dimension, as in Example 2, where a cake partially contains a user profile because both
have a name.

Departure: Example 1 gives location the dimensions x, y and z. That works here (``Space("location", x=float,
y=float, z=float)``), but a disc is no product of intervals: the `location` of this module has one compound
dimension ``position``, whose extents are shapes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import portion

from workbench.errors import ScenarioError, did_you_mean, raise_all
from workbench.model import extents, shapes
from workbench.model.extents import ANYWHERE, Extent, Interval, ValueSet, _Anywhere

# -- types -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """Real numbers or integers, all of them or a stated part, with a unit where that helps.

    >>> percentage
    percentage
    >>> percentage.extent(extents.below(20))
    [0.0,20)
    >>> percentage.extent(120)
    Traceback (most recent call last):
    workbench.errors.ScenarioError: 120 is outside the domain [0.0,100.0] of percentage
    """

    name: str = "real"
    lower: float = -math.inf
    upper: float = math.inf
    integer: bool = False
    unit: str = ""

    def __post_init__(self) -> None:
        if math.isnan(self.lower) or math.isnan(self.upper) or self.lower > self.upper:
            raise ScenarioError(f"type {self.name!r} has the empty domain from {self.lower} to {self.upper}")

    @property
    def domain(self) -> Interval:
        """All the values of the type."""
        return portion.Interval.from_atomic(
            portion.OPEN if self.lower == -math.inf else portion.CLOSED,
            self.lower,
            self.upper,
            portion.OPEN if self.upper == math.inf else portion.CLOSED,
        )

    def extent(self, value: Any) -> Interval:
        """The values that a constraint leaves: a number is one value; an unbounded side ends with the domain."""
        if not isinstance(value, Interval):
            value = extents.single(value)
        outside = [
            end
            for part in value
            for end in (part.lower, part.upper)
            if not (_infinite(end) or self.lower <= end <= self.upper)
        ]
        if outside:
            shown = outside[0] if len(outside) == 1 or extents.is_point(value) else value
            raise ScenarioError(f"{shown} is outside the domain {self.domain} of {self.name}")
        left = value & self.domain
        if self.integer:
            left = _whole_numbers(left)
        if left.empty:
            raise ScenarioError(f"{value} leaves no {self.name}; a constraint must leave a value")
        return left

    def __repr__(self) -> str:
        return self.name


def _infinite(end: Any) -> bool:
    return bool(end in (portion.inf, -portion.inf, math.inf, -math.inf))


def _whole_numbers(given: Interval) -> Interval:
    """The normal form over the integers, which have no gaps: (1, 4) is [2, 3], and [1, 2] | [3, 4] is [1, 4]."""
    runs: list[tuple[Any, Any]] = []
    for part in given:
        lower, upper = part.lower, part.upper
        if not _infinite(lower):
            lower = math.floor(lower) + 1 if part.left is portion.OPEN else math.ceil(lower)
        if not _infinite(upper):
            upper = math.ceil(upper) - 1 if part.right is portion.OPEN else math.floor(upper)
        if lower > upper:
            continue
        if runs and lower <= runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], upper)
        else:
            runs.append((lower, upper))
    return extents.union(portion.closed(*run) & real.domain for run in runs)


@dataclass(frozen=True)
class Text:
    """Strings.

    >>> string.extent("coffee")
    {'coffee'}
    """

    name: str = "string"

    @property
    def domain(self) -> ValueSet:
        return ValueSet(frozenset(), complement=True)

    def extent(self, value: Any) -> ValueSet:
        """The values that a constraint leaves: a string is one value; a set or list of strings is several."""
        made = _value_set(value)
        wrong = sorted(repr(v) for v in made.values if not isinstance(v, str))
        if wrong:
            raise ScenarioError(f"{wrong[0]} is not a {self.name}")
        return made

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Enumerated:
    """One of a few values, listed.

    >>> Enumerated("size", ("small", "large")).extent(extents.anything_but("small"))
    {'large'}
    """

    name: str
    values: tuple[Any, ...]

    @property
    def domain(self) -> ValueSet:
        return ValueSet(frozenset(self.values))

    def extent(self, value: Any) -> ValueSet:
        """The values that a constraint leaves; complements are taken within the listed values."""
        made = _value_set(value)
        wrong = sorted(repr(v) for v in made.values if v not in self.values)
        if wrong:
            listed = ", ".join(map(repr, self.values))
            raise ScenarioError(f"{wrong[0]} is outside the domain {{{listed}}} of {self.name}")
        if made.complement:
            made = ValueSet(self.domain.values - made.values)
        if made.is_empty:
            raise ScenarioError(f"nothing is left of {self.name}; a constraint must leave a value")
        return made

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Position:
    """A place in the plane, in space or on the globe, as one compound dimension.

    >>> Position().extent((50, 20))
    point(50, 20)
    """

    name: str = "position"

    @property
    def domain(self) -> _Anywhere:
        return ANYWHERE

    def extent(self, value: Any) -> Extent:
        return ANYWHERE if value is ANYWHERE else shapes.shape(value)

    def __repr__(self) -> str:
        return self.name


Type = Number | Text | Enumerated | Position

real = Number("real")
integer = Number("integer", integer=True)
percentage = Number("percentage", 0.0, 100.0, unit="%")
string = Text()
boolean = Enumerated("boolean", (False, True))
_PYTHON_TYPES: dict[Any, Type] = {float: real, int: integer, str: string, bool: boolean}


def _value_set(value: Any) -> ValueSet:
    if isinstance(value, ValueSet):
        return value
    if isinstance(value, set | frozenset | list | tuple) or type(value).__name__ == "ndarray":
        return extents.one_of(*value)
    if isinstance(value, float) and math.isnan(value):
        raise ScenarioError("NaN is not a value; leave the dimension out instead")
    return extents.one_of(value)


# -- spaces ----------------------------------------------------------------------------------------


@dataclass(frozen=True, init=False, repr=False)
class Space:
    """A subject space: a name and its dimensions, each a pair of name and type.

    >>> product = Space("product", SKU=str, price=float, discount=percentage)
    >>> coffee = Space("coffee", flavor=str) | product
    >>> coffee
    coffee = {(flavor, string), (SKU, string), (price, real), (discount, percentage)}
    >>> degree(coffee, product)
    <Degree.FULL: 1>
    """

    name: str
    dimensions: tuple[tuple[str, Type], ...]

    def __init__(self, name: str, dimensions: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        pairs, faults = [], []
        for label, given in {**(dimensions or {}), **more}.items():
            try:
                kind = given if isinstance(given, Type) else _PYTHON_TYPES[given]
                pairs.append((label, kind))
            except (KeyError, TypeError):
                faults.append(
                    f"space {name!r}: dimension {label!r} has the type {given!r}; expected float, int, str, bool, "
                    "or a type such as percentage, Number(...), Enumerated(...), Position()"
                )
        if not pairs and not faults:
            faults.append(f"space {name!r} has no dimension")
        raise_all(faults)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "dimensions", tuple(pairs))

    def __or__(self, other: Space) -> Space:
        """The space of this name that has the dimensions of both, as ``D_shop = {...} ∪ D_location`` (5.1)."""
        mine = dict(self.dimensions)
        for label, kind in other.dimensions:
            if mine.setdefault(label, kind) != kind:
                raise ScenarioError(
                    f"{self.name} | {other.name}: {label!r} is {mine[label]} in one and {kind} in the other"
                )
        return Space(self.name, mine)

    def __contains__(self, dimension: str) -> bool:
        return dimension in dict(self.dimensions)

    def type_of(self, dimension: str) -> Type:
        """The type of a dimension."""
        types = dict(self.dimensions)
        if dimension not in types:
            raise ScenarioError(f"space {self.name!r} has no dimension {dimension!r}; {did_you_mean(dimension, types)}")
        return types[dimension]

    def fully_contains(self, other: Space) -> bool:
        """Whether this space has every dimension of the other.

        >>> location.fully_contains(location)
        True
        """
        return set(other.dimensions) <= set(self.dimensions)

    def __repr__(self) -> str:
        return f"{self.name} = {{{', '.join(f'({label}, {kind})' for label, kind in self.dimensions)}}}"

    def _repr_latex_(self) -> str:
        from workbench.model.notation import words

        inner = ",\\ ".join(f"({words(label)}, {words(kind.name)})" for label, kind in self.dimensions)
        return f"$D_{{{words(self.name)}}} = \\{{{inner}\\}}$"


location = Space("location", position=Position())
"""The space of positions that every location-based service shares."""


class Degree(Enum):
    """The degree of containment δ of two spaces."""

    FULL = 1
    PARTIAL = "p"
    UNRELATED = 0


def degree(first: Space, second: Space) -> Degree | None:
    """How the first space contains the second: fully, partially, not at all; None where the paper gives no degree.

    Full containment comes first: of two spaces with the same dimensions each fully contains the other.
    Partial containment and being unrelated are symmetric; full containment is reflexive and transitive.

    >>> degree(Space("road", x=float, name=str), Space("city", x=float, mayor=str))
    <Degree.PARTIAL: 'p'>
    >>> degree(Space("product", price=float), Space("coffee", price=float, flavor=str)) is None
    True
    """
    d1, d2 = set(first.dimensions), set(second.dimensions)
    if d2 <= d1:
        return Degree.FULL
    if not d1 & d2:
        return Degree.UNRELATED
    return Degree.PARTIAL if (d1 & d2) < d1 else None


def relationship(first: Space, second: Space) -> str:
    """The relation of two spaces in words.

    >>> relationship(Space("product", price=float), Space("coffee", price=float, flavor=str))
    'product has no degree of containment towards coffee (coffee fully contains product)'
    """
    said = {Degree.FULL: "fully contains", Degree.PARTIAL: "partially contains", Degree.UNRELATED: "is unrelated to"}
    found = degree(first, second)
    if found is None:
        return (
            f"{first.name} has no degree of containment towards {second.name} "
            f"({second.name} fully contains {first.name})"
        )
    return f"{first.name} {said[found]} {second.name}"
