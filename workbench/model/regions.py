"""Regions of a subject space: interest regions and object regions (Subject Spaces, 4.3 and 4.3.1).

A region is a tuple (C_r, V) of constraints and the values that they leave. Here: a frozen value, the space in
which it is declared and one extent per constrained dimension; a dimension without a constraint means its
whole domain. V with respect to *any* space is `Region.values_in`; a region can be valid in several spaces.

An extent may be blank (``column.price``): such a region is the template of a population, and `Region.fill`
makes the region of one row.

Departure: the paper gives a region that constrains no dimension of σ the empty set of values, and the empty
set is contained in everything. Here such a region is *invalid* in σ, `values_in` is None, and it matches
nothing in σ under any relation.

Departure: 4.3 calls a region valid if V is not empty, which a constraint that leaves no value would make invalid too.
Such a constraint is refused when it is written, so that a region is invalid in σ for one reason only.

Departure: 5.1 asks whether i_shop is enclosed by o_coffee_shop "as the shopper enters the shop", but gives neither
of the two a position. Constraints that are meant have to be said here: see the scenario ``coffee``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.errors import ScenarioError, did_you_mean, raise_all
from workbench.model.columns import MISSING, Blank
from workbench.model.extents import Extent, is_point
from workbench.model.notation import words
from workbench.model.spaces import Space


@dataclass(frozen=True, repr=False)
class Region:
    """Constraints on dimensions of the space in which the region is declared.

    >>> from workbench.model.spaces import percentage
    >>> from workbench.model.extents import below
    >>> car = Space("car", plate_number=str, fuel=percentage)
    >>> region(car, plate_number="ABC123", fuel=60)
    {plate_number={'ABC123'}, fuel=[60]}
    >>> region(car, fuel=below(20)).values_in(Space("trip", fuel=percentage, driver=str))
    {'fuel': [0.0,20), 'driver': all but {}}
    """

    space: Space
    constraints: tuple[tuple[str, Any], ...]

    def __post_init__(self) -> None:
        faults, made = [], []
        for dimension, given in self.constraints:
            if dimension not in self.space:
                known = [label for label, _ in self.space.dimensions]
                hint = did_you_mean(dimension, known)
                faults.append(f"region of space {self.space.name!r} uses dimension {dimension!r}; {hint}")
                continue
            if given is None:
                continue
            try:
                extent = given if isinstance(given, Blank) else self.space.type_of(dimension).extent(given)
                made.append((dimension, extent))
            except ScenarioError as error:
                faults.append(f"dimension {dimension!r} of space {self.space.name!r}: {error}")
        raise_all(faults)
        object.__setattr__(self, "constraints", tuple(made))

    def __getitem__(self, dimension: str) -> Extent:
        """The extent in a dimension, its whole domain where the region does not constrain it."""
        return dict(self.constraints).get(dimension, self.space.type_of(dimension).domain)

    def valid_in(self, space: Space) -> bool:
        """Whether the region constrains a dimension of the space."""
        shared = set(space.dimensions) & set(self.space.dimensions)
        return any((label, self.space.type_of(label)) in shared for label, _ in self.constraints)

    def values_in(self, space: Space) -> dict[str, Extent] | None:
        """V of the region with respect to a space, as the factors of the product; None where it is invalid."""
        if not self.valid_in(space):
            return None
        mine = dict(self.constraints)
        return {
            label: mine[label] if label in mine and self.space.type_of(label) == kind else kind.domain
            for label, kind in space.dimensions
        }

    @property
    def is_point(self) -> bool:
        """Whether every constraint leaves one value: a region without extension in what it says."""
        return all(is_point(extent) for _, extent in self.constraints)

    def columns(self) -> frozenset[str]:
        """The columns that a row must fill in."""
        return frozenset().union(*(c.columns() for _, c in self.constraints if isinstance(c, Blank)))

    def fill(self, row: Mapping[str, Any]) -> Region:
        """The region of one row; dimensions for which the row has no value stay unconstrained.

        >>> from workbench.model.columns import column
        >>> gas = Space("gas", price=float, brand=str)
        >>> region(gas, price=column.price, brand=column.brand).fill({"price": 65})
        {price=[65]}
        """
        if not self.columns():
            return self
        filled = ((d, e.fill(row) if isinstance(e, Blank) else e) for d, e in self.constraints)
        return Region(self.space, tuple((d, e) for d, e in filled if e is not MISSING))

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{d}={e}" for d, e in self.constraints) + "}"

    def _repr_latex_(self) -> str:
        inner = ",\\ ".join(f"{words(d)} \\in {words(e)}" for d, e in self.constraints)
        return f"$C = \\{{{inner}\\}} \\text{{ in }} \\sigma_{{{words(self.space.name)}}}$"


def region(space: Space, /, **constraints: Any) -> Region:
    """A region declared in a space: one value, interval, set or shape per constrained dimension.

    >>> region(Space("location", x=float, y=float), x=50, y=20).is_point
    True
    """
    return Region(space, tuple(constraints.items()))
