"""Who comes into the reach of which place, and leaves it, fix by fix.

For each mobile a short list says which places it is in and since when, and a fix only changes that list. It asks only
that the instants of each mobile rise along the batches: data in the order of time will do, and so will data sorted by
mobile. Everything else is `Unusual`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from workbench.compiling import callee, compiled
from workbench.engines.batches import Fixes, Instants, Unusual
from workbench.engines.cells import Lookout
from workbench.engines.growing import longer
from workbench.engines.kernels import (
    geodesic_edges_haversine,
    haversine,
    in_area,
    planar_edges_squared,
    planar_within,
)

SLOTS = 64
"""In how many places at once a mobile can be here."""
GOOD = 0


class Inside(NamedTuple):
    """Which places each mobile is in, and since when."""

    latest: np.ndarray
    held: np.ndarray
    places: np.ndarray
    since: np.ndarray
    rows: np.ndarray
    """a zero each, to count with"""

    @staticmethod
    def of(mobiles: int) -> Inside:
        return Inside(
            np.full(mobiles, np.iinfo(np.int64).min),
            np.zeros(mobiles, np.int32),
            np.zeros((mobiles, SLOTS), np.int32),
            np.zeros((mobiles, SLOTS), np.int64),
            np.zeros(mobiles, np.int32),
        )

    def grown(self, mobiles: int) -> Inside:
        """Room for more mobiles."""
        new = Inside.of(mobiles)
        size = len(self.held)
        for mine, yours in zip(new, self, strict=True):
            mine[:size] = yours
        return new


@callee
def _by_mobile(mobile, t, x, y, base, share, shares, rows):  # type: ignore[no-untyped-def]
    """The fixes of a share of the mobiles, mobile by mobile: who they are, where each one's begin, and the fixes.

    ``shares`` is a power of two. ``rows`` has a zero for each mobile, before and after.
    """
    whose = np.empty(len(t), np.int64)
    many, runs, last = 0, 0, np.int64(-1)
    for r in range(len(t)):
        m = mobile[r] - base
        if m & (shares - 1) != share:
            continue
        if rows[m] == 0:
            whose[many] = m
            many += 1
        if m != last:
            runs += 1
            last = m
        rows[m] += 1
    first = np.zeros(many + 1, np.int64)
    for k in range(many):
        first[k + 1] = first[k] + rows[whose[k]]
        rows[whose[k]] = first[k]
    if runs == many and first[many] == len(t):
        for k in range(many):
            rows[whose[k]] = 0
        return whose[:many], first, t, x, y
    own_t, own_x, own_y = np.empty(first[many], np.int64), np.empty(first[many]), np.empty(first[many])
    for r in range(len(t)):
        m = mobile[r] - base
        if m & (shares - 1) == share:
            at = rows[m]
            own_t[at], own_x[at], own_y[at] = t[r], x[r], y[r]
            rows[m] = at + 1
    for k in range(many):
        rows[whose[k]] = 0
    return whose[:many], first, own_t, own_x, own_y


@compiled
def _crossings(  # type: ignore[no-untyped-def]
    mobile, t, x, y, base, until, share, shares, room, grid, s, discs, geodesic,
    latest, count, inside, since, rows,
):  # fmt: skip
    """Fixes in order: the lists of places that each mobile is in are kept up, and what ends is given back.

    One of several shares of the mobiles, so that shares can run side by side. Each mobile is followed by itself: its
    steps are short, so that what it needs next is at hand. ``room`` is how many ends are expected.
    """
    ended_place, ended_mobile = np.empty(room, np.int32), np.empty(room, np.int32)
    ended_tau, ended_pi = np.empty(room, np.int64), np.empty(room, np.int64)
    nothing = (ended_place[:0], ended_mobile[:0], ended_tau[:0], ended_pi[:0])
    n = 0
    found, held = np.empty(65, np.int32), np.empty(64, np.int32)
    starts, begun = np.empty(64, np.int64), np.empty(64, np.int64)
    offsets, entries = grid.offsets, grid.entries
    x0, y0, ax, ay, columns, height_ = grid.x0, grid.y0, grid.a_cell_x, grid.a_cell_y, grid.columns, grid.rows
    kind, chain = s.kind, s.chain
    xs, ys, rings, first_ring = s.xs, s.ys, s.rings, s.first
    low_y, high_y, height, slab, slab_offsets, edges = s.slabs
    whose, first, t, x, y = _by_mobile(mobile, t, x, y, base, share, shares, rows)
    for one in range(len(whose)):
        m = whose[one]
        was, last = count[m], latest[m]
        for i in range(was):
            held[i], begun[i] = inside[m, i], since[m, i]
        for r in range(first[one], first[one + 1]):
            px, py, now = x[r], y[r], t[r]
            if geodesic:
                if not (abs(px) <= 180.0 and abs(py) <= 90.0):
                    return 1, nothing
            elif not (abs(px) <= 1e300 and abs(py) <= 1e300):
                return 1, nothing
            if now <= last:
                return 1, nothing
            last = now
            if now > until:
                continue
            low = high = 0
            fx, fy = (px - x0) / ax, (py - y0) / ay
            if 0.0 <= fx < columns and 0.0 <= fy < height_:
                cell = int(fy) * columns + int(fx)
                low, high = offsets[cell], offsets[cell + 1]
            if low == high and was == 0:
                continue
            k = 0
            for e in range(low, high):
                # Nobody can foresee which ones hold: each is written down, and counts if it holds.
                j, lies, holds = entries[e] >> 2, entries[e] & 3, True
                if lies == 0:
                    if geodesic:
                        holds = haversine(discs[j, 0], discs[j, 1], px, py) <= discs[j, 3]
                    else:
                        holds = planar_within(discs[j, 0], discs[j, 1], discs[j, 2], px, py, 0.0, discs[j, 3])
                elif lies == 1:
                    c = chain[j]
                    a, b = first_ring[c], first_ring[c + 1]
                    holds = kind[j] == 2 and in_area(px, py, c, low_y, high_y, height, slab, slab_offsets, edges)
                    if not holds and not (kind[j] == 2 and discs[j, 3] == 0.0):
                        if geodesic:
                            holds = geodesic_edges_haversine(px, py, xs, ys, rings, a, b) <= discs[j, 3]
                        else:
                            holds = planar_edges_squared(px, py, xs, ys, rings, a, b) <= discs[j, 3] * discs[j, 3]
                found[k] = j
                k += holds
                if k > 64:
                    return 1, nothing
            if n + was > len(ended_pi):
                room = 2 * len(ended_pi) + 64
                ended_place, ended_mobile = longer(ended_place, room), longer(ended_mobile, room)
                ended_tau, ended_pi = longer(ended_tau, room), longer(ended_pi, room)
            # Both lists are in order: what stays keeps its beginning, what is passed over has ended.
            i = 0
            for h in range(k + 1):
                while i < was and (h == k or held[i] < found[h]):
                    ended_place[n], ended_mobile[n], ended_tau[n], ended_pi[n] = held[i], m, begun[i], now
                    n += 1
                    i += 1
                if h < k:
                    stays = i < was and held[i] == found[h]
                    starts[h] = begun[i] if stays else now
                    i += stays
            for h in range(k):
                held[h], begun[h] = found[h], starts[h]
            was = k
        count[m], latest[m] = was, last
        for i in range(was):
            inside[m, i], since[m, i] = held[i], begun[i]
    return 0, (ended_place[:n], ended_mobile[:n], ended_tau[:n], ended_pi[:n])


@compiled
def _firsts(mobile, t, base, first):  # type: ignore[no-untyped-def]
    for i in range(len(t)):
        m = mobile[i] - base
        if t[i] < first[m]:
            first[m] = t[i]


class Met(NamedTuple):
    """Who was in which place, from when to when: first what has ended, then what goes on."""

    place: np.ndarray
    mobile: np.ndarray
    tau: np.ndarray
    pi: np.ndarray
    """0 where it goes on"""
    ended: int

    @staticmethod
    def of(parts: list[tuple[np.ndarray, ...]], inside: Inside) -> Met:
        """From what has ended, part by part, and what goes on."""
        ended = sum(len(part[0]) for part in parts)
        place, mobile, tau, pi = (np.concatenate(columns) for columns in zip(*parts, _running(inside), strict=True))
        return Met(place, mobile, tau, pi, ended)


def _running(inside: Inside) -> tuple[np.ndarray, ...]:
    """What has not ended."""
    mobile = np.repeat(np.arange(len(inside.held), dtype=np.int32), inside.held)
    slot = np.arange(len(mobile)) - np.repeat(np.cumsum(inside.held) - inside.held, inside.held)
    since = inside.since[mobile, slot]
    return inside.places[mobile, slot], mobile, since, np.zeros_like(since)


class Crossed(NamedTuple):
    """What fixes did to lookouts."""

    crossings: list[Met]
    first: np.ndarray
    """the first instant of each mobile"""
    rows: int
    instants: Instants


def crossed(source: Fixes, lookouts: list[Lookout], until: int | None, threads: int) -> Crossed:
    """All fixes past all lookouts."""
    size = 1024 if source.coded else source.mobiles
    inside = [Inside.of(size) for _ in lookouts]
    first = np.full(size, np.iinfo(np.int64).max)
    ended: list[list[tuple[np.ndarray, ...]]] = [[] for _ in lookouts]
    room = [1024] * len(lookouts)
    shares = 1 << (threads.bit_length() - 1)
    rows, instants = 0, Instants(until)
    with ThreadPoolExecutor(shares) as pool:
        for batch in source.batches():
            if not len(batch.t):
                continue
            if source.coded and len(source.ids) > len(first):
                inside = [one.grown(2 * len(source.ids)) for one in inside]
                first = np.append(first, np.full(2 * len(source.ids) - len(first), np.iinfo(np.int64).max))
            fixes: tuple[Any, ...] = (*batch, source.base, instants.until)
            jobs = [
                (n, pool.submit(_share, (*fixes, share, shares, room[n], *_arguments(lookouts[n]), *inside[n])))
                for n in range(len(lookouts))
                for share in range(shares)
            ]
            _firsts(batch.mobile, batch.t, source.base, first)
            instants.add(batch.t)
            rows += len(batch.t)
            for n, job in jobs:
                state, lines = job.result()
                if state != GOOD:
                    raise Unusual
                ended[n].append(lines)
                room[n] = max(1024, len(lines[0]) * 9 // 8)
    return Crossed(list(map(Met.of, ended, inside)), first, rows, instants)


def _share(arguments: tuple[Any, ...]) -> tuple[int, tuple[np.ndarray, ...]]:
    return _crossings(*arguments)  # type: ignore[no-any-return]


def _arguments(place: Lookout) -> tuple[Any, ...]:
    return place.grid, place.column.shapes, place.discs, place.geodesic
