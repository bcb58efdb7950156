"""Encounters: mobiles that come near one another, from Parquet columns to timelines without a table in between.

For scenarios in which the mobiles are on both sides, with one match by distance, or a latch of two, as all that is
asked of positions (friends). What else the filters ask must not depend on time or place: such *residual predicates*
are about attributes, and few of these are distinct, so that each two kinds of mobiles are judged once, by the general
way itself (`_accepted`).

Distance is symmetric: whoever moves is linked into a cell of a grid, looks into the cells around it and at those whom
it has met, and one test serves both directions. Who has met whom is kept with each of the two, and what ends is told.
Nobody else is looked at.

Time is cut into slices, which are taken side by side. A slice begins with where everybody was before. What goes on
over a border is joined afterwards (`joined`); whether a pair that is between the two distances of a latch had been near
before is known only then, so that such a piece is *in doubt* until it is.

`run` gives None for everything else (other filters, attributes of many values, removals, repeated instants, nulls,
anything that would be an error): then the general way is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from workbench import tables
from workbench.compiling import callee, compiled, read_only
from workbench.engines import local
from workbench.engines.batches import MOST_MOBILES, Instants, Unusual, cores, head_of, lacking, parquet
from workbench.engines.direct import Lines, Outcome
from workbench.engines.growing import taller, wider
from workbench.engines.kernels import geodesic_within, planar_within
from workbench.errors import WorkbenchError
from workbench.geometry import EARTH_RADIUS_M, RADIAN, WGS84
from workbench.model.columns import MISSING, Blank, Column
from workbench.model.filters import And, Comparison, Everything, Filter, Latch, Match, Not, Or, Var
from workbench.model.pubsub import Population
from workbench.model.relations import Nearest, Within
from workbench.model.scenario import Binding, Scenario
from workbench.model.spaces import Position

BEFORE, AFTER = np.iinfo(np.int64).min, np.iinfo(np.int64).max
"""since before a slice, until after it"""
MOST_KINDS = 64


# -- which scenarios -----------------------------------------------------------------------------------------


class Shape(NamedTuple):
    """How near two have to come, how far apart they part again, and which columns the rest is about."""

    near: float
    far: float
    attributes: tuple[str, ...]


def shape_of(scenario: Scenario) -> Shape | None:
    """What is asked of two mobiles, where that is all there is; None for all other scenarios.

    >>> from workbench.scenarios.friends import scenario
    >>> shape_of(scenario(200, 250))
    Shape(near=200.0, far=250.0, attributes=('context', 'role', 'seeks'))
    """
    if len(scenario.publications) != 1 or len(scenario.subscriptions) != 1:
        return None
    if scenario.visibility or scenario.stage is not None or scenario.tables:
        return None
    if any(p.rows != "fixes" or p.profiles or p.stay is not None or p.transient for p in scenario.populations):
        return None
    placed = {name for space in scenario.spaces for name, kind in space.dimensions if isinstance(kind, Position)}
    asked: list[tuple[float, float]] = []
    publications, subscriptions = scenario.publications[0], scenario.subscriptions[0]
    for own, other in ((publications, subscriptions), (subscriptions, publications)):
        bindings = scenario.bindings(own.filter, other)
        if len(bindings) != 1:
            return None
        for part in _conjuncts(own.filter):
            distances = _distances(part, own, other, bindings[0])
            if distances is not None:
                asked.append(distances)
            elif not all(_timeless(node, placed) for node in part.walk()):
                return None
    if not asked or (len(set(asked)) > 1 and any(near != far for near, far in asked)):
        return None
    near, far = min(asked)
    given = [given for p in scenario.populations for _, region in p.regions for _, given in region.constraints]
    named = {name for blank in given if isinstance(blank, Blank) for name in blank.columns()} - {"position"}
    return Shape(near, far, tuple(sorted(named))) if 0.0 <= near <= far else None


def _conjuncts(node: Filter) -> Iterator[Filter]:
    if isinstance(node, And):
        for part in node.parts:
            yield from _conjuncts(part)
    else:
        yield node


def _distances(part: Filter, own: Population, other: Population, binding: Binding) -> tuple[float, float] | None:
    """How near two points have to come for a part of a filter, and how far they may be apart from then on."""
    match part:
        case Match(relation=Within(distance=distance)) if _of_points(part, own, other, binding):
            return float(distance), float(distance)
        case Latch(on=Match() as on, off=Not(part=Match() as within)):
            ends = [_distances(match, own, other, binding) for match in (on, within)]
            if ends[0] is not None and ends[1] is not None:
                return ends[0][0], ends[1][0]
    return None


def _of_points(match: Match, own: Population, other: Population, binding: Binding) -> bool:
    """Whether a match is about the positions of the two mobiles and nothing else."""
    terms = (match.left, match.right)
    if not all(isinstance(term, Var) for term in terms) or {term.side for term in terms} != {"own", "other"}:  # type: ignore[attr-defined]
        return False
    (dimension, kind), *more = match.space.dimensions
    if more or not isinstance(kind, Position):
        return False
    for term in terms:
        assert isinstance(term, Var)
        regions = dict(own.regions)[term.name] if term.side == "own" else dict(other.regions)[binding[term.name]]
        given = dict(regions.constraints).get(dimension)
        if not (isinstance(given, Column) and given.name == "position" and given.default is MISSING):
            return False
        if regions.space.type_of(dimension) != kind:
            return False
    return True


def _timeless(node: Filter, placed: set[str]) -> bool:
    """Whether a node asks for nothing but attributes."""
    match node:
        case Everything() | And() | Or() | Not():
            return True
        case Comparison():
            return not any(use in placed for _, use in node.uses())
        case Match():
            spatial = any(isinstance(kind, Position) for _, kind in node.space.dimensions)
            return node.third is None and not spatial and not isinstance(node.relation, Nearest)
    return False


# -- fixes as arrays -------------------------------------------------------------------------------------------


class Walks(NamedTuple):
    """Fixes in the order of time: who, when, where, and of which kind."""

    mobile: np.ndarray
    t: np.ndarray
    x: np.ndarray
    y: np.ndarray
    kind: np.ndarray
    names: np.ndarray
    """the mobiles by their numbers"""
    accepts: np.ndarray
    """whether a publication of one kind and a subscription of another accept each other"""


@compiled
def _counted(t, low, span):  # type: ignore[no-untyped-def]
    """The order of instants that lie close together."""
    offsets = np.zeros(span + 1, np.int64)
    for i in range(len(t)):
        offsets[t[i] - low + 1] += 1
    for k in range(span):
        offsets[k + 1] += offsets[k]
    order = np.empty(len(t), np.int64)
    for i in range(len(t)):
        k = t[i] - low
        order[offsets[k]] = i
        offsets[k] += 1
    return order


def columns_of(shape: Shape, schema: pa.Schema, coordinates: Sequence[str]) -> list[str]:
    """What has to be read of the fixes."""
    return ["mobile", "t", *coordinates, *(name for name in shape.attributes if name in schema.names)]


def walks_of(scenario: Scenario, table: pa.Table, coordinates: Sequence[str], zone: str | None) -> Walks:
    """The columns of fixes as arrays in the order of time."""
    if any(map(lacking, table.itercolumns())):
        raise Unusual
    metric = next(metric for metric, names in tables.COORDINATES.items() if tuple(names) == tuple(coordinates))
    mobile, names = coded(table["mobile"])
    t, x, y = (table[name].cast(kind).to_numpy() for name, kind in zip(
        ("t", *coordinates), (pa.int64(), pa.float64(), pa.float64()), strict=True))  # fmt: skip
    kind, accepts = _kinds(scenario, table, coordinates, zone)
    for column, most in zip((x, y), (180.0, 90.0) if metric == WGS84 else (1e300, 1e300), strict=True):
        if len(column) and not (abs(column.min()) <= most and abs(column.max()) <= most):
            raise Unusual
    if np.any(t[1:] < t[:-1]):
        low, span = int(t.min()), int(t.max()) - int(t.min()) + 1
        order = _counted(read_only(t), low, span) if span <= max(2 * len(t), 1 << 20) else np.argsort(t, kind="stable")
        mobile, t, x, y = mobile[order], t[order], x[order], y[order]
        kind = kind[order] if len(accepts) > 1 else kind
    mobile, t, x, y, kind = map(read_only, (mobile, t, x, y, kind))
    return Walks(mobile, t, x, y, kind, names, accepts)


def coded(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """Mobiles as numbers from nought, and what they are called."""
    if not pa.types.is_integer(column.type):
        coded = column.combine_chunks()
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        coded = coded if pa.types.is_dictionary(coded.type) else coded.dictionary_encode()
        return coded.indices.to_numpy().astype(np.int64), np.array(coded.dictionary.to_pylist(), dtype=object)
    given = column.to_numpy().astype(np.int64, copy=False)
    low, high = (int(given.min()), int(given.max())) if len(given) else (0, -1)
    if high - low < min(MOST_MOBILES, 4 * len(given) + 1024):
        return given - low if low else given, np.arange(low, high + 1)
    codes, names = pd.factorize(given)
    return codes, np.asarray(names, np.int64)


def _kinds(
    scenario: Scenario, table: pa.Table, coordinates: Sequence[str], zone: str | None
) -> tuple[np.ndarray, np.ndarray]:
    """Of which kind each row is, and which kinds accept each other."""
    named = [name for name in table.column_names if name not in ("mobile", "t", *coordinates)]
    kind = np.zeros(len(table), np.int64)
    for name in named:
        codes, values = pd.factorize(table[name].to_pandas())
        kind = kind * len(values) + codes
        if kind.max(initial=0) >= 2**40:
            raise Unusual
        kind = pd.factorize(kind)[0].astype(np.int64)
        if kind.max(initial=0) >= MOST_KINDS:
            raise Unusual
    _, first = np.unique(kind, return_index=True)
    return kind, _accepted(scenario, table.take(pa.array(first)), coordinates, zone)


def _accepted(scenario: Scenario, kinds: pa.Table, coordinates: Sequence[str], zone: str | None) -> np.ndarray:
    """Two mobiles of each kind meet at one place, and the general way says who hears of whom."""
    count = kinds.num_rows
    found = np.zeros((count, count), bool)
    if not count:
        return found
    frame = kinds.take(pa.array(np.repeat(np.arange(count), 2))).to_pandas()
    frame = frame.assign(mobile=np.arange(2 * count), t=frame["t"].iloc[0], **dict.fromkeys(coordinates, 0.0))
    try:
        data = tables.inputs(scenario, frame, None, zone)
        lines = local.run(data, data.instants[1])[0]
    except WorkbenchError:
        raise Unusual from None  # the general way names the row
    found[lines["publication"] // 2, lines["subscription"] // 2] = True
    return found


# -- a slice of time -------------------------------------------------------------------------------------------


class Cells(NamedTuple):
    """A grid whose cells are at least as wide as two who meet can be apart."""

    x0: float
    y0: float
    wide: float
    tall: float
    columns: int
    rows: int
    around: int
    """so many cells on each side hold those who have not parted"""


def cells_of(walks: Walks, shape: Shape, geodesic: bool) -> Cells:
    """A grid over all fixes, of not many more cells than mobiles."""
    x0, x1 = (float(f(walks.x)) for f in (np.min, np.max))
    y0, y1 = (float(f(walks.y)) for f in (np.min, np.max))
    sizes = []
    for distance in (shape.near, shape.far):
        if geodesic:
            tall = distance / (EARTH_RADIUS_M * RADIAN) * (1 + 1e-6) + 1e-9
            steep = max(abs(y0), abs(y1)) + tall
            if steep >= 85.0:
                raise Unusual
            wide = tall / math.cos(steep * RADIAN)
            if x0 - wide <= -180.0 or x1 + wide >= 180.0:
                raise Unusual
        else:
            tall = wide = distance * (1 + 1e-6) + 1e-9 * (1.0 + max(abs(x0), abs(x1), abs(y0), abs(y1)))
        sizes.append((wide, tall))
    (wide, tall), (far_x, far_y) = sizes
    most = 16.0 * len(walks.names) + 1024
    crowded = math.sqrt(max(1.0, ((x1 - x0) / wide + 1) * ((y1 - y0) / tall + 1) / most))
    wide, tall = wide * crowded, tall * crowded
    around = max(1, math.ceil(far_x / wide), math.ceil(far_y / tall))
    return Cells(x0, y0, wide, tall, int((x1 - x0) / wide) + 1, int((y1 - y0) / tall) + 1, around)


DONE, TWICE, CROWDED, FULL = 0, 1, 2, 3
NOWHERE = -1


@callee
def _moves(  # type: ignore[no-untyped-def]
    mobile, t, x, y, kind, stop, cells, near, far, accepts, geodesic,
    head, after, ahead, cell, px, py, pk, moved, met, partner, since, sure, told, r, back, n,
):  # fmt: skip
    """Instants from row ``r`` on, where ``n`` rows have been told: why it stopped, at which instant and row, and ``n``.

    Arrays do not grow in here, because code in which an array may become another one is several times slower. Where
    there is no room it stops at the row of a mobile, and goes on there when it is called with that row as ``back``:
    what was done for that mobile already has no effect when it is done again.
    """
    never, always = np.int64(2**63 - 1), np.int64(-(2**63))
    x0, y0, wide, tall, columns, rows, _ = cells
    while r < stop:
        now = t[r]
        end = r
        while end < stop and t[end] == now:
            if back != NOWHERE:
                end += 1
                continue
            m = mobile[end]
            if moved[m] == r:
                return TWICE, r, back, n
            moved[m] = r
            px[m], py[m], pk[m] = x[end], y[end], kind[end]
            c = int((py[m] - y0) / tall) * columns + int((px[m] - x0) / wide)
            if c != cell[m]:
                if cell[m] >= 0:
                    if ahead[m] >= 0:
                        after[ahead[m]] = after[m]
                    else:
                        head[cell[m]] = after[m]
                    if after[m] >= 0:
                        ahead[after[m]] = ahead[m]
                cell[m], after[m], ahead[m] = c, head[c], -1
                if head[c] >= 0:
                    ahead[head[c]] = m
                head[c] = m
            end += 1
        for e in range(max(r, back), end):
            m = mobile[e]
            mx, my = px[m], py[m]
            if n + 2 * met[m] > len(told):
                return FULL, r, e, n
            # Of two who move at one instant, the one with the lower number looks.
            k = 0
            while k < met[m]:
                f = np.int64(partner[m, k])
                if moved[f] == r and f < m:
                    k += 1
                    continue
                if geodesic:
                    stays = geodesic_within(mx, my, px[f], py[f], far)
                else:
                    stays = planar_within(mx, my, 0.0, px[f], py[f], 0.0, far)
                h = 0
                while partner[f, h] != m:
                    h += 1
                if stays and sure[m, k] == never:
                    if geodesic:
                        meets = geodesic_within(mx, my, px[f], py[f], near)
                    else:
                        meets = planar_within(mx, my, 0.0, px[f], py[f], 0.0, near)
                    if meets:
                        sure[m, k] = sure[f, h] = now
                for a, b, i in ((m, f, k), (f, m, h)):
                    accepted = stays and accepts[pk[a], pk[b]]
                    if accepted and since[a, i] == never:
                        since[a, i] = now
                    elif not accepted and since[a, i] != never:
                        told[n, 0], told[n, 1], told[n, 2], told[n, 3], told[n, 4] = a, b, since[a, i], now, sure[a, i]
                        since[a, i] = never
                        n += 1
                if stays:
                    k += 1
                    continue
                for a, i in ((m, k), (f, h)):
                    last = met[a] - 1
                    partner[a, i], since[a, i], sure[a, i] = partner[a, last], since[a, last], sure[a, last]
                    met[a] = last
            cx, cy = int((mx - x0) / wide), int((my - y0) / tall)
            for row in range(max(cy - 1, 0), min(cy + 1, rows - 1) + 1):
                for c in range(row * columns + max(cx - 1, 0), row * columns + min(cx + 1, columns - 1) + 1):
                    f = np.int64(head[c])
                    while f >= 0:
                        g, f = f, np.int64(after[f])
                        if g == m or (moved[g] == r and g < m):
                            continue
                        if geodesic:
                            if not geodesic_within(mx, my, px[g], py[g], near):
                                continue
                        elif not planar_within(mx, my, 0.0, px[g], py[g], 0.0, near):
                            continue
                        known = False
                        for k in range(met[m]):
                            known |= partner[m, k] == g
                        if known:
                            continue
                        if max(met[m], met[g]) == partner.shape[1]:
                            return CROWDED, r, e, n
                        for a, b in ((m, g), (g, m)):
                            k = met[a]
                            partner[a, k] = b
                            since[a, k] = now if accepts[pk[a], pk[b]] else never
                            sure[a, k] = always
                            met[a] = k + 1
        r, back = end, NOWHERE
    return DONE, r, back, n


@compiled
def _met(mobile, t, x, y, kind, first, stop, mobiles, cells, near, far, accepts, geodesic):  # type: ignore[no-untyped-def]
    """Rows from ``first`` to before ``stop``, those before them being where everybody was.

    Told: publication, subscription, tau, pi, and from when on that is beyond doubt; then the pairs that have met at
    the end, and whether that is still in doubt. 1 in front where somebody has two rows of one instant.
    """
    never, always = np.int64(2**63 - 1), np.int64(-(2**63))
    x0, y0, wide, tall, columns, rows, around = cells
    head = np.full(columns * rows, -1, np.int32)
    after, ahead = np.full(mobiles, -1, np.int32), np.full(mobiles, -1, np.int32)
    cell = np.full(mobiles, -1, np.int32)
    px, py, pk = np.zeros(mobiles), np.zeros(mobiles), np.zeros(mobiles, np.int32)
    moved = np.full(mobiles, -1, np.int64)
    met = np.zeros(mobiles, np.int32)
    partner = np.empty((mobiles, 8), np.int32)
    since, sure = np.empty((mobiles, 8), np.int64), np.empty((mobiles, 8), np.int64)
    told = np.empty((1024 + (stop - first) // 8, 5), np.int64)
    n = np.int64(0)  # as a constant it would be a type of its own, and `_moves` compiled for both
    # ``sure`` of a pair that met in this slice, or was near before it, is always; of one in doubt it is never, until
    # it is near. ``since`` is never while the two have met without accepting each other.
    for r in range(first):
        m = mobile[r]
        px[m], py[m], pk[m] = x[r], y[r], kind[r]
        cell[m] = 0
    for m in range(mobiles):
        if cell[m] < 0:
            continue
        cx, cy = int((px[m] - x0) / wide), int((py[m] - y0) / tall)
        for row in range(max(cy - around, 0), min(cy + around, rows - 1) + 1):
            for c in range(row * columns + max(cx - around, 0), row * columns + min(cx + around, columns - 1) + 1):
                f = np.int64(head[c])
                while f >= 0:
                    if geodesic:
                        stays = geodesic_within(px[m], py[m], px[f], py[f], far)
                        meets = geodesic_within(px[m], py[m], px[f], py[f], near)
                    else:
                        stays = planar_within(px[m], py[m], 0.0, px[f], py[f], 0.0, far)
                        meets = planar_within(px[m], py[m], 0.0, px[f], py[f], 0.0, near)
                    if stays:
                        if max(met[m], met[f]) == partner.shape[1]:
                            room = 2 * partner.shape[1]
                            partner, since, sure = wider(partner, room), wider(since, room), wider(sure, room)
                        for a, b in ((m, f), (f, m)):
                            k = met[a]
                            partner[a, k] = b
                            since[a, k] = always if accepts[pk[a], pk[b]] else never
                            sure[a, k] = always if meets else never
                            met[a] = k + 1
                    f = np.int64(after[f])
        c = cy * columns + cx
        cell[m], after[m] = c, head[c]
        if head[c] >= 0:
            ahead[head[c]] = m
        head[c] = m
    why, r, back, going_on = CROWDED, first, np.int64(NOWHERE), 0
    while why in (CROWDED, FULL):
        why, r, back, n = _moves(
            mobile, t, x, y, kind, stop, cells, near, far, accepts, geodesic,
            head, after, ahead, cell, px, py, pk, moved, met, partner, since, sure, told, r, back, n,
        )  # fmt: skip
        if why == CROWDED:
            room = 2 * partner.shape[1]
            partner, since, sure = wider(partner, room), wider(since, room), wider(sure, room)
            continue
        going_on = 0
        for m in range(mobiles):
            going_on += met[m]
        if n + going_on > len(told):
            told = taller(told, 2 * (n + going_on))
    if why == TWICE:
        return 1, told[:0], told[:0]
    pairs = np.empty((going_on // 2, 3), np.int64)
    k = 0
    for m in range(mobiles):
        for i in range(met[m]):
            f = np.int64(partner[m, i])
            if since[m, i] != never:
                told[n, 0], told[n, 1], told[n, 2], told[n, 3], told[n, 4] = m, f, since[m, i], never, sure[m, i]
                n += 1
            if m < f:
                pairs[k, 0], pairs[k, 1], pairs[k, 2] = m, f, sure[m, i] == never
                k += 1
    return 0, told[:n].copy(), pairs


class Slice(NamedTuple):
    """What was told in a slice, and who had met at its end; mobiles by number."""

    told: np.ndarray
    """publication, subscription, tau, pi, from when on that is beyond doubt"""
    pairs: np.ndarray
    """one, another one of a higher number, whether that is in doubt"""


def slice_of(walks: Walks, first: int, stop: int, shape: Shape, cells: Cells, geodesic: bool) -> Slice:
    """The encounters of some rows; those before them say where everybody was."""
    state, told, pairs = _met(
        walks.mobile, walks.t, walks.x, walks.y, walks.kind, first, stop, len(walks.names), cells, shape.near,
        shape.far, walks.accepts, geodesic,
    )  # fmt: skip
    if state:
        raise Unusual
    return Slice(told, pairs)


def whole(told: np.ndarray) -> np.ndarray:
    """Which rows of a slice lie within it, and are beyond doubt."""
    return (told[:, 2] != BEFORE) & (told[:, 3] != AFTER) & (told[:, 4] == BEFORE)  # type: ignore[no-any-return]


def joined(slices: Sequence[Slice], mobiles: int) -> np.ndarray:
    """Timelines from what is not `whole` in each of successive slices: publication, subscription, tau, pi.

    What goes on after the last slice keeps `AFTER`.
    """
    had_met = np.empty(0, np.int64)
    rows, number = [np.empty((0, 5), np.int64)], [np.empty(0, np.int64)]
    for n, (told, pairs) in enumerate(slices):
        told = told.copy()
        keys = np.minimum(told[:, 0], told[:, 1]) * mobiles + np.maximum(told[:, 0], told[:, 1])
        mistaken = (told[:, 4] != BEFORE) & ~np.isin(keys, had_met)
        told[mistaken, 2] = np.maximum(told[mistaken, 2], told[mistaken, 4])
        told = told[told[:, 2] < told[:, 3]]
        rows.append(told)
        number.append(np.full(len(told), n))
        keys = pairs[:, 0] * mobiles + pairs[:, 1]
        had_met = keys[(pairs[:, 2] == 0) | np.isin(keys, had_met)]
    found, of = np.concatenate(rows), np.concatenate(number)
    order = np.lexsort((found[:, 2], of, found[:, 1], found[:, 0]))
    found, of = found[order], of[order]
    head, tail = found[:, 2] != BEFORE, (found[:, 3] != AFTER) | (of == len(slices) - 1)
    lines = found[head, :4]
    lines[:, 3] = found[tail, 3]
    return lines


# -- from files to timelines -------------------------------------------------------------------------------------


def run(scenario: Scenario, fixes: Any, places: Any, zone: str | None = None, until: Any = None) -> Outcome | None:
    """Replay Parquet files directly; None where the scenario or the data ask for the general way."""
    shape = shape_of(scenario) if places is None else None
    source = None if shape is None else parquet(fixes)
    head = None if source is None else head_of(source)
    if shape is None or source is None or head is None:
        return None
    try:
        data = tables.inputs(scenario, head, None, zone)
        names = columns_of(shape, source.files[0].schema_arrow, source.coordinates)
        table = pa.concat_tables(file.read(columns=names) for file in source.files)
        return _replayed(data, shape, walks_of(scenario, table, source.coordinates, zone), until)
    except (Unusual, OSError, pa.ArrowInvalid):
        return None


def twice(mobile: np.ndarray, t: np.ndarray) -> bool:
    """Whether a mobile has two rows of one instant; rows after the end are not met by the kernel, but counted."""
    order = np.lexsort((mobile, t))
    mobile, t = mobile[order], t[order]
    return bool(np.any((mobile[1:] == mobile[:-1]) & (t[1:] == t[:-1])))


def _replayed(data: tables.Inputs, shape: Shape, walks: Walks, until: Any) -> Outcome:
    instants = Instants(None if until is None else data.clock.ticks(until))
    instants.add(walks.t)
    stop = int(np.searchsorted(walks.t, instants.until, side="right"))
    if not stop or twice(walks.mobile[stop:], walks.t[stop:]):
        raise Unusual
    geodesic = data.metric == WGS84
    cells = cells_of(walks, shape, geodesic)
    threads = cores()
    at = np.searchsorted(walks.t, walks.t[np.arange(threads) * stop // threads], side="left")
    bounds = [*dict.fromkeys(at.tolist()), stop]
    with ThreadPoolExecutor(threads) as pool:
        jobs = [pool.submit(slice_of, walks, a, b, shape, cells, geodesic) for a, b in pairwise(bounds)]
        slices = [job.result() for job in jobs]
    within = [whole(told) for told, _ in slices]
    over = [Slice(told[~inner], pairs) for (told, pairs), inner in zip(slices, within, strict=True)]
    lines = joined(over, len(walks.names))
    rows = np.concatenate([*(told[inner, :4] for (told, _), inner in zip(slices, within, strict=True)), lines])
    p, s, tau, pi = (np.ascontiguousarray(column) for column in rows.T)
    runs = pi == AFTER
    lines_ = Lines(p, s, tau, np.where(runs, 0, pi), np.where(runs, -1, 0), walks.names, walks.names)
    counts = {"rows_in": len(walks.t), "rows_collapsed": 0, "rows_set_aside": 0, "instants": instants.count()}
    return Outcome(lines_, counts, data, instants.end, len(walks.t))
