"""Matching relations over columns: whether r1 m r2, for many pairs of versions at once (Subject Spaces, 4.3.2).

The counterpart of `workbench.model.relations`, relation by relation, over `Regions`: the regions of one name of a
population, one version an element, one column of extents a dimension.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.engines import extents
from workbench.engines.extents import Column, Numbers, Positions
from workbench.errors import ScenarioError
from workbench.model import relations
from workbench.model.filters import Regions as Named
from workbench.model.relations import Intervals, Places, Relation
from workbench.model.spaces import Space


@dataclass(frozen=True)
class Regions:
    """The regions of one name of a population: a column for each dimension that the definition constrains."""

    space: Space
    columns: dict[str, Column]
    length: int

    def column(self, dimension: str, kind: Any = None) -> Column:
        """What they leave of a dimension: its whole domain where they do not constrain it."""
        own = dict(self.space.dimensions).get(dimension)
        if dimension in self.columns and (kind is None or kind == own):
            return self.columns[dimension]
        whole = own if kind is None else kind
        assert whole is not None
        return extents.constant(whole.domain, self.length, present=False)

    def valid_in(self, space: Space) -> np.ndarray:
        """Whether each constrains a dimension of the space."""
        shared = dict(set(space.dimensions) & set(self.space.dimensions))
        valid = np.zeros(self.length, bool)
        for dimension, column in self.columns.items():
            if dimension in shared:
                valid |= column.present
        return valid

    def pair(self, other: Regions, space: Space) -> list[tuple[Column, Column]]:
        """The columns of both, dimension by dimension of a space."""
        return [(self.column(d, kind), other.column(d, kind)) for d, kind in space.dimensions]


def holds(
    relation: Relation, r1: Regions, i1: np.ndarray, r2: Regions, i2: np.ndarray, space: Space, metric: str
) -> np.ndarray:
    """Whether version ``i1[n]`` of the first matches version ``i2[n]`` of the second, for every n."""
    said = r1.valid_in(space)[i1] & r2.valid_in(space)[i2]
    asked = np.flatnonzero(said)
    if len(asked):
        said[asked] = _holds(relation, r1, i1[asked], r2, i2[asked], space, metric)
    return said


def _holds(
    relation: Relation, r1: Regions, i1: np.ndarray, r2: Regions, i2: np.ndarray, space: Space, metric: str
) -> np.ndarray:
    match relation:
        case relations.Containment():
            return _all(r1.pair(r2, space), i1, i2, lambda a, ia, b, ib: extents.encloses(a, ia, b, ib, metric))
        case relations.Enclosure():
            return _holds(relations.Containment(), r2, i2, r1, i1, space, metric)
        case relations.Overlap():
            return _all(r1.pair(r2, space), i1, i2, lambda a, ia, b, ib: extents.overlaps(a, ia, b, ib, metric))
        case relations.Within(distance=distance):
            pairs = r1.pair(r2, space)
            if isinstance(pairs[0][0], Positions):
                return extents.within(pairs[0][0], i1, pairs[0][1], i2, distance, metric)
            return _squared(pairs, i1, i2, metric) <= distance * distance
        case relations.UserDefined(function=name, at_most=most):
            return _applied(name, r1, i1, r2, i2, space, most) <= most
        case relations.Fuzzy(degree=degree, function=None):
            product = np.ones(len(i1))
            for a, b in r1.pair(r2, space):
                product = product * extents.share(a, i1, b, i2, metric)
            return product >= degree
        case relations.Fuzzy(degree=degree, function=str(name)):
            return _applied(name, r1, i1, r2, i2, space, degree) >= degree
    raise AssertionError(f"unknown relation {relation!r}")


def _all(pairs: list[tuple[Column, Column]], i1: np.ndarray, i2: np.ndarray, holds: Any) -> np.ndarray:
    said = np.ones(len(i1), bool)
    for a, b in pairs:
        left = np.flatnonzero(said)
        said[left] = holds(a, i1[left], b, i2[left])
    return said


def _squared(pairs: list[tuple[Column, Column]], i1: np.ndarray, i2: np.ndarray, metric: str) -> np.ndarray:
    total = np.zeros(len(i1))
    for a, b in pairs:
        total = total + extents.squared_gap(a, i1, b, i2, metric)
    return total


def closeness(r1: Regions, i1: np.ndarray, r2: Regions, i2: np.ndarray, space: Space, metric: str) -> np.ndarray:
    """What nearest neighbours are ordered by, infinite where a region is invalid."""
    said = np.full(len(i1), np.inf)
    asked = np.flatnonzero(r1.valid_in(space)[i1] & r2.valid_in(space)[i2])
    said[asked] = _squared(r1.pair(r2, space), i1[asked], i2[asked], metric)
    return said


def among(regions: Named, where: Regions, metric: str) -> np.ndarray:
    """Which versions satisfy what narrows the regions asked for."""
    index, said = np.arange(where.length), np.ones(where.length, bool)
    for dimension, extent in regions.where:
        outer = extents.constant(extent, where.length)
        said &= extents.encloses(outer, index, where.column(dimension), index, metric)
    return said


# -- functions of the user's own -----------------------------------------------------------------------------


def _applied(
    name: str, r1: Regions, i1: np.ndarray, r2: Regions, i2: np.ndarray, space: Space, assumed: float
) -> np.ndarray:
    """What a function of the user's own says of each pair."""
    fit = np.ones(len(i1), bool)
    for r, i in ((r1, i1), (r2, i2)):
        for d, kind in space.dimensions:
            fit &= _takes(r.column(d, kind), i)
    said = np.empty(len(i1), float)
    if not fit.all():
        strange = int(np.flatnonzero(~fit)[0])
        dimension, kind = space.dimensions[0]
        both = ((r1.column(dimension, kind), i1), (r2.column(dimension, kind), i2))
        shown = [column.extent(int(column.keys(i[strange : strange + 1])[0])) for column, i in both]
        error = ScenarioError(
            f"a function of the user's own takes intervals, points, discs and single values; "
            f"dimension {dimension!r} has {shown[0]!r} and {shown[1]!r}"
        )
        said[~fit] = assumed if extents.refused(error) else np.nan
    asked = np.flatnonzero(fit)
    if len(asked):
        first = {d: _argument(r1.column(d, kind), i1[asked]) for d, kind in space.dimensions}
        second = {d: _argument(r2.column(d, kind), i2[asked]) for d, kind in space.dimensions}
        said[asked] = np.asarray(relations.function_named(name)(first, second), dtype=float)
    return said


def _takes(column: Column, index: np.ndarray) -> np.ndarray:
    """Whether extents have a form that functions of the user's own take."""
    if isinstance(column, Numbers):
        return np.ones(len(index), bool)
    if isinstance(column, Positions):
        return column.shapes.kind[index] == 0
    good = np.array([isinstance(e, extents.Interval) or extents.model.is_point(e) for e in column.extents], bool)
    return good[column.codes[index]]


def _argument(column: Column, index: np.ndarray) -> Any:
    if isinstance(column, Numbers):
        return Intervals(column.lower[index], column.upper[index])
    if isinstance(column, Positions):
        s = column.shapes
        return Places(s.x[index], s.y[index], s.radius[index])
    used = np.unique(column.codes[index])
    if isinstance(column.extents[used[0]], extents.Interval):
        ends = np.zeros((len(column.extents), 2))
        for c in used:
            ends[c] = float(column.extents[c].lower), float(column.extents[c].upper)  # type: ignore[union-attr]
        return Intervals(*ends[column.codes[index]].T)
    single = np.full(len(column.extents), None, dtype=object)
    for c in used:
        single[c] = next(iter(column.extents[c].values))  # type: ignore[union-attr]
    return single[column.codes[index]]
