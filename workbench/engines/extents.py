"""Extents in columns: what the regions of a population leave of one dimension, one element a version.

Three forms: `Numbers` (one interval each), `Positions` (shapes) and `Coded` (anything else: a code and the distinct
extents of the model). The set operations below take two columns and, for each pair asked for, an element of either. A
pair of shapes whose relation the model cannot decide is not refused at once: nobody may need the answer. `assuming`
notes the refusal and goes on with a given answer; whoever asks compares what follows from yes and from no.

Intervals are compared with the same signs as `workbench.model.extents`, shapes by the kernels; whatever has no
columnar form is asked of the model itself, once for each distinct pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import portion

from workbench.compiling import read_only
from workbench.engines import kernels
from workbench.engines.slabs import Slabs, slabs_of
from workbench.errors import ScenarioError
from workbench.geometry import WGS84
from workbench.model import extents as model
from workbench.model.extents import ANYWHERE, Extent, Interval
from workbench.model.shapes import Shape

KINDS = {"point": kernels.POINT, "line": kernels.LINE, "area": kernels.AREA}
NAMES = {code: name for name, code in KINDS.items()}


_ASSUMED: ContextVar[tuple[bool, list[ScenarioError]] | None] = ContextVar("assumed", default=None)


@contextmanager
def assuming(answer: bool) -> Iterator[list[ScenarioError]]:
    """Take an answer for what cannot be decided; gives the refusals."""
    refused: list[ScenarioError] = []
    token = _ASSUMED.set((answer, refused))
    try:
        yield refused
    finally:
        _ASSUMED.reset(token)


def refused(error: ScenarioError) -> bool:
    """The answer that is assumed instead of a refusal; without an assumption the error is raised."""
    assumed = _ASSUMED.get()
    if assumed is None:
        raise error
    assumed[1].append(error)
    return assumed[0]


@dataclass(frozen=True)
class Numbers:
    """One interval an element; ``present`` where it is a constraint, else the whole domain stands there."""

    present: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    left_open: np.ndarray
    right_open: np.ndarray

    def keys(self, index: np.ndarray) -> np.ndarray:
        return index

    def extent(self, key: int) -> Extent:
        return portion.Interval.from_atomic(
            portion.OPEN if self.left_open[key] else portion.CLOSED,
            float(self.lower[key]),
            float(self.upper[key]),
            portion.OPEN if self.right_open[key] else portion.CLOSED,
        )


@dataclass(frozen=True)
class Positions:
    """One shape an element, or `ANYWHERE`."""

    present: np.ndarray
    shapes: kernels.Shapes
    skeletons: tuple[Shape, ...] = ()
    """the lines and areas that the shapes' chains stand for"""

    def __post_init__(self) -> None:
        s = self.shapes
        x, y, z, radius = map(read_only, (s.x, s.y, s.z, s.radius))
        object.__setattr__(self, "shapes", s._replace(x=x, y=y, z=z, radius=radius))

    def keys(self, index: np.ndarray) -> np.ndarray:
        return index

    def take(self, index: np.ndarray) -> Positions:
        """Some of them."""
        s = self.shapes
        kind, x, y, z, radius, chain = (array[index] for array in s[:6])
        taken = s._replace(kind=kind, x=x, y=y, z=z, radius=radius, chain=chain)
        return Positions(self.present[index], taken, self.skeletons)

    def extent(self, key: int) -> Extent:
        s = self.shapes
        if s.kind[key] == kernels.ANYWHERE:
            return ANYWHERE
        if s.kind[key] == kernels.POINT:
            return Shape("point", (float(s.x[key]),), (float(s.y[key]),), float(s.z[key]), (), float(s.radius[key]))
        return replace(self.skeletons[s.chain[key]], radius_m=float(s.radius[key]))


@dataclass(frozen=True)
class Coded:
    """A code an element, and the extents that the codes stand for."""

    present: np.ndarray
    codes: np.ndarray
    extents: tuple[Extent, ...]

    def keys(self, index: np.ndarray) -> np.ndarray:
        return self.codes[index]

    def extent(self, key: int) -> Extent:
        return self.extents[key]


Column = Numbers | Positions | Coded


# -- making columns ----------------------------------------------------------------------------------------


def column_of(codes: np.ndarray, extents: list[Extent], domain: Extent) -> Column:
    """A column from codes of extents, -1 where the dimension is not constrained."""
    present = codes >= 0
    whole = [*extents, domain]
    codes = np.where(present, codes, len(extents)).astype(np.int64)
    if all(isinstance(e, Interval) and e.atomic and _small(e) for e in whole):
        return Numbers(
            present,
            np.array([e.lower for e in whole], np.float64)[codes],  # type: ignore[union-attr]
            np.array([e.upper for e in whole], np.float64)[codes],  # type: ignore[union-attr]
            np.array([e.left is portion.OPEN for e in whole])[codes],  # type: ignore[union-attr]
            np.array([e.right is portion.OPEN for e in whole])[codes],  # type: ignore[union-attr]
        )
    if domain is ANYWHERE:
        return _positions(present, codes, whole)
    return Coded(present, codes, tuple(whole))


def _small(e: Interval) -> bool:
    """Whether the ends are exact as floats."""
    return all(not isinstance(end, int) or abs(end) <= 2**53 for end in (e.lower, e.upper))


def _positions(present: np.ndarray, codes: np.ndarray, whole: list[Extent]) -> Positions:
    skeletons: dict[tuple[Any, ...], int] = {}
    listed: list[Shape] = []
    kind, x, y, z, radius, chain = ([] for _ in range(6))  # type: ignore[var-annotated]
    for e in whole:
        shape = e if isinstance(e, Shape) else Shape("point", (0.0,), (0.0,))
        kind.append(KINDS[shape.kind] if e is shape else kernels.ANYWHERE)
        x.append(shape.x)
        y.append(shape.y)
        z.append(shape.z)
        radius.append(shape.radius_m)
        code = -1
        if shape.kind != "point":
            key = (shape.kind, shape.xs, shape.ys, shape.offsets)
            code = skeletons.setdefault(key, len(skeletons))
            if code == len(listed):
                listed.append(shape)
        chain.append(code)
    shapes = kernels.Shapes(
        np.array(kind, np.int8)[codes],
        np.array(x, np.float64)[codes],
        np.array(y, np.float64)[codes],
        np.array(z, np.float64)[codes],
        np.array(radius, np.float64)[codes],
        np.array(chain, np.int64)[codes],
        *chains_of(listed),
    )
    return Positions(present, shapes, tuple(listed))


def chains_of(skeletons: list[Shape]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Slabs]:
    """The vertices of lines and areas, one after another, as `kernels.Shapes` has them, and their edges by height."""
    rings, first, base = [0], [0], 0
    for s in skeletons:
        rings += [base + o for o in s.offsets[1:]]
        base += len(s.xs)
        first.append(len(rings) - 1)
    xs = np.array([v for s in skeletons for v in s.xs], np.float64)
    ys = np.array([v for s in skeletons for v in s.ys], np.float64)
    chains = (xs, ys, np.array(rings, np.int64), np.array(first, np.int64))
    return *chains, slabs_of(*chains)


def constant(extent: Extent, length: int, present: bool = True) -> Column:
    """One extent for all."""
    codes = np.zeros(length, np.int64)
    made = column_of(codes, [extent], ANYWHERE if isinstance(extent, Shape) or extent is ANYWHERE else extent)
    return made if present else replace(made, present=np.zeros(length, bool))


def points(present: np.ndarray, x: np.ndarray, y: np.ndarray, z: np.ndarray, radius: np.ndarray) -> Positions:
    """Points and discs from arrays of coordinates, without an object each."""
    kind = np.where(present, kernels.POINT, kernels.ANYWHERE).astype(np.int8)
    chain = np.full(len(x), -1, np.int64)
    return Positions(present, kernels.Shapes(kind, x, y, z, radius, chain, *chains_of([])))


# -- set operations of pairs ---------------------------------------------------------------------------------


def _asked(
    a: Column, ia: np.ndarray, b: Column, ib: np.ndarray, ask: Callable[[Any, Any], Any], dtype: Any, yes: Any = True
) -> np.ndarray:
    """What the model says, asked once for each distinct pair; ``yes`` is a sure yes, where that has to be assumed."""
    if not len(ia):
        return np.empty(0, dtype)
    ka, kb = a.keys(ia), b.keys(ib)
    pairs, back = np.unique(ka * (int(kb.max()) + 1) + kb, return_inverse=True)
    first, second = np.divmod(pairs, int(kb.max()) + 1)
    said = []
    for i, j in zip(first, second, strict=True):
        try:
            said.append(ask(a.extent(int(i)), b.extent(int(j))))
        except ScenarioError as error:
            said.append(yes if refused(error) else 1 - yes if yes is True else np.inf)
    return np.array(said, dtype)[back]


def _mended(said: np.ndarray, asked: np.ndarray, answer: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Answers of a kernel, those that it could not give taken from the model."""
    if asked.any():
        said = said.copy()
        where = np.flatnonzero(asked)
        said[where] = answer(where)
    return said


def overlaps(a: Column, ia: np.ndarray, b: Column, ib: np.ndarray, metric: str) -> np.ndarray:
    """Whether two extents have a value in common."""

    def ask(where: Any) -> np.ndarray:
        return _asked(a, ia[where], b, ib[where], lambda p, q: model.overlaps(p, q, metric), bool)

    if isinstance(a, Numbers) and isinstance(b, Numbers):
        return ~(_before(a, ia, b, ib) | _before(b, ib, a, ia))
    if isinstance(a, Positions) and isinstance(b, Positions):
        said = kernels.within(a.shapes, ia, b.shapes, ib, 0.0, metric == WGS84)
        return _mended(said, said == kernels.ASK, ask).astype(bool)
    return ask(slice(None))


def _before(a: Numbers, ia: np.ndarray, b: Numbers, ib: np.ndarray) -> np.ndarray:
    """Whether every value of a is below every value of b."""
    end, begin = a.upper[ia], b.lower[ib]
    return (end < begin) | ((end == begin) & (a.right_open[ia] | b.left_open[ib]))


def encloses(outer: Column, io: np.ndarray, inner: Column, ii: np.ndarray, metric: str) -> np.ndarray:
    """Whether every value of the inner extent is in the outer one."""

    def ask(where: Any) -> np.ndarray:
        return _asked(outer, io[where], inner, ii[where], lambda p, q: model.encloses(p, q, metric), bool)

    if isinstance(outer, Numbers) and isinstance(inner, Numbers):
        left, right = outer.lower[io], outer.upper[io]
        low, high = inner.lower[ii], inner.upper[ii]
        from_left = (low > left) | ((low == left) & (inner.left_open[ii] | ~outer.left_open[io]))
        return from_left & ((high < right) | ((high == right) & (inner.right_open[ii] | ~outer.right_open[io])))
    if isinstance(outer, Positions) and isinstance(inner, Positions):
        said = kernels.encloses(outer.shapes, io, inner.shapes, ii, metric == WGS84)
        return _mended(said, said == kernels.ASK, ask).astype(bool)
    return ask(slice(None))


def within(a: Column, ia: np.ndarray, b: Column, ib: np.ndarray, distance: float, metric: str) -> np.ndarray:
    """Whether two shapes are at most a distance apart."""
    assert isinstance(a, Positions) and isinstance(b, Positions)
    said = kernels.within(a.shapes, ia, b.shapes, ib, float(distance), metric == WGS84)

    def ask(where: np.ndarray) -> np.ndarray:
        from workbench.model.shapes import within as asked

        return _asked(a, ia[where], b, ib[where], lambda p, q: asked(p, q, distance, metric), bool)

    return _mended(said, said == kernels.ASK, ask).astype(bool)


def squared_gap(a: Column, ia: np.ndarray, b: Column, ib: np.ndarray, metric: str) -> np.ndarray:
    """The square of the distance of the closest values; of positions what nearest neighbours are ordered by."""
    if isinstance(a, Numbers) and isinstance(b, Numbers):
        apart = np.maximum(0.0, np.maximum(a.lower[ia] - b.upper[ib], b.lower[ib] - a.upper[ia]))
        return apart * apart

    def ask(where: Any) -> np.ndarray:
        from workbench.model.relations import closeness_of

        return _asked(a, ia[where], b, ib[where], lambda p, q: closeness_of(p, q, metric), np.float64, 0.0)

    if isinstance(a, Positions) and isinstance(b, Positions):
        said = kernels.closeness(a.shapes, ia, b.shapes, ib, metric == WGS84)
        return _mended(said, np.isnan(said), ask)
    return ask(slice(None))


def share(inner: Column, ii: np.ndarray, outer: Column, io: np.ndarray, metric: str) -> np.ndarray:
    """How much of the inner extent lies in the outer one, from 0 to 1."""

    def ask(where: Any) -> np.ndarray:
        return _asked(inner, ii[where], outer, io[where], lambda p, q: model.share(p, q, metric), np.float64)

    if isinstance(inner, Positions) and isinstance(outer, Positions):
        said = kernels.share(inner.shapes, ii, outer.shapes, io, metric == WGS84)
        return _mended(said, np.isnan(said) | (said == kernels.ASK), ask)
    return ask(slice(None))


def compare(a: Column, ia: np.ndarray, op: str, b: Column, ib: np.ndarray, metric: str) -> np.ndarray:
    """Whether ``x op y`` for every x of the one and y of the other extent."""
    if op == "in":
        return encloses(b, ib, a, ia, metric)
    if op == "meets":
        return overlaps(a, ia, b, ib, metric)
    if op == "!=":
        return ~overlaps(a, ia, b, ib, metric)
    if isinstance(a, Numbers) and isinstance(b, Numbers):
        if op == "==":
            single = (a.lower[ia] == a.upper[ia]) & (b.lower[ib] == b.upper[ib])
            return single & (a.lower[ia] == b.lower[ib])
        if op in (">", ">="):
            a, ia, b, ib, op = b, ib, a, ia, op.replace(">", "<")
        below = _before(a, ia, b, ib)
        return below | (a.upper[ia] == b.lower[ib]) if op == "<=" else below
    return _asked(a, ia, b, ib, lambda p, q: model.compare(p, op, q, metric), bool)
