"""Kernels of the field: a hash grid over discs and points that move, and each subscriber's list of what it matches.

All state is in a few arrays:

========  ===========================================================================================
place     x, y, z of each client
calm      by client, a rectangle (x from, x to, y from, y to) in which nothing changes for it; see `walk`
radius    by client, one column for each region that a gate compares
kind      by client, the class of each of its publications, then of its subscriptions; -1 where it has none
truth     whether a class of publications and a class of subscriptions match as far as positions do not matter
gates     by pair of populations, where its gates begin; then (form, column of the publication, of the subscription)
reach     of each gate
rooms     by hash: where the entries of the grid begin, how many there are, room for how many
entries   a cell of the grid and who lies in it
spots     beside each entry: the centre of a disc, and the square of a distance beyond which it holds nobody
own       by client: where its list begins, how many there are, room for how many; where it was logged last (or the
          instant, where nothing is remembered); 1 where it can be moved by `step`: it subscribes, and publishes nothing
lists     the matches of a client in order: publication * populations of subscriptions + population
meta      counters, see the names below
out       what is given back: transitions, ``match * 2 + (1 if it begins)``; its second half is scratch
log       the instant of a move, and the one before of the same client; as much of it as is being written
logged    beside it: x, y, z
========  ===========================================================================================

To Python a call costs more for each of them than a move costs inside. So the two kernels that move (`step`, `steps`)
are given one array of addresses instead (`addresses`); who replaces an array has to write it anew.

Nothing here is arithmetic of its own: distances are asked of `workbench.geometry`, compiled. A kernel that has no room
left says of what, before it has changed anything.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import boolean, carray, float64, int64, types
from numba.extending import intrinsic

from workbench.compiling import callee, compiled, inlined
from workbench.engines.growing import longer
from workbench.engines.kernels import geodesic_distance_m, geodesic_within, planar_squared, planar_within
from workbench.geometry import EARTH_RADIUS_M, RADIAN

NO_LOG, NO_LISTS, NO_ENTRIES, NO_OUT, CLOSER = -1, -2, -3, -4, -5
"""what a kernel has no room in; and that a move has to be looked at more closely"""
ENTRIES, LISTS, LOGGED, KEEPS, GEODESIC, PUBLISHING, SUBSCRIBING, POINTS_LEVEL, LOWEST, HIGHEST, LOG_BASE = range(11)
LEVELS = 16
"""where the counts of discs by level begin in meta"""
EVERYWHERE = 63
"""the level of what no cell can hold"""
TOGETHER, PUBLICATION_AROUND, SUBSCRIPTION_AROUND = range(3)
"""forms of gates: within the sum of radii and a reach; the subscription's disc in the publication's; the converse"""
_HALF = 1 << 27


@callee
def level_of(size):  # type: ignore[no-untyped-def]
    """The level whose cells are at least that large."""
    if not size < 1e9:
        return 63
    return max(0, min(62, math.ceil(math.log2(max(size, 1e-9))) + 31))


@inlined
def cell_key(x, y, level, side):  # type: ignore[no-untyped-def]
    """The cell of a point as one number; that of everywhere, where there is none."""
    if level < 63:
        size = math.ldexp(1.0, int(level) - 31)
        cx, cy = math.floor(x / size), math.floor(y / size)
        if abs(cx) < 134217728.0 and abs(cy) < 134217728.0:
            return ((level * 2 + side) << 56) | ((np.int64(cx) + _HALF) << 28) | (np.int64(cy) + _HALF)
    return np.int64((63 * 2 + side) << 56)


@inlined
def room_of(key, rooms):  # type: ignore[no-untyped-def]
    h = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(32)
    return np.int64(h & np.uint64(len(rooms) - 1))


@compiled
def box_of(x, y, extent, geodesic):  # type: ignore[no-untyped-def]
    """x_min, x_max, y_min, y_max and the level of a disc: a little larger than needed."""
    if geodesic:
        up = extent / (EARTH_RADIUS_M * RADIAN) * (1 + 1e-9) + 1e-9
        steep = max(abs(y - up), abs(y + up))
        if steep >= 89.9:
            return -180.0, 180.0, -90.0, 90.0, 63
        aside = up / math.cos(steep * RADIAN) + 1e-9
        if x - aside <= -180.0 or x + aside >= 180.0:
            return -180.0, 180.0, -90.0, 90.0, 63
        return x - aside, x + aside, y - up, y + up, level_of(max(aside, up))
    more = extent + 1e-9 * (max(abs(x), abs(y)) + extent) + 1e-9
    # Cells of about half a disc: a point then finds few discs that do not hold it.
    return x - more, x + more, y - more, y + more, level_of(more)


@callee
def insert(key, item, x, y, far, rooms, entries, spots, meta):  # type: ignore[no-untyped-def]
    b = room_of(key, rooms)
    start, count, cap = rooms[b, 0], rooms[b, 1], rooms[b, 2]
    if count == cap:
        start = meta[0]
        for i in range(count):
            entries[start + i, 0] = entries[rooms[b, 0] + i, 0]
            entries[start + i, 1] = entries[rooms[b, 0] + i, 1]
            for c in range(3):
                spots[start + i, c] = spots[rooms[b, 0] + i, c]
        rooms[b, 0], rooms[b, 2] = start, 2 * cap + 2
        meta[0] += 2 * cap + 2
    at = start + count
    entries[at, 0], entries[at, 1] = key, item
    spots[at, 0], spots[at, 1], spots[at, 2] = x, y, far
    rooms[b, 1] = count + 1


@inlined
def needs(key, rooms):  # type: ignore[no-untyped-def]
    """How many more entries an insertion takes."""
    b = room_of(key, rooms)
    return 2 * rooms[b, 2] + 2 if rooms[b, 1] == rooms[b, 2] else 0


@callee
def take_out(key, item, rooms, entries, spots):  # type: ignore[no-untyped-def]
    b = room_of(key, rooms)
    start, last = rooms[b, 0], rooms[b, 0] + rooms[b, 1] - 1
    for i in range(start, last + 1):
        if entries[i, 0] == key and entries[i, 1] == item:
            entries[i, 0], entries[i, 1] = entries[last, 0], entries[last, 1]
            for c in range(3):
                spots[i, c] = spots[last, c]
            rooms[b, 1] -= 1
            return


@compiled
def lay(place, rooms, entries, spots, meta, slot, item, extent, adds):  # type: ignore[no-untyped-def]
    """Lay a publication's disc into the cells that it touches, or take it out of them."""
    x_min, x_max, y_min, y_max, level = box_of(place[slot, 0], place[slot, 1], extent, meta[4] == 1)
    low = high = lower = upper = 0.0
    x, y = place[slot, 0], place[slot, 1]
    # A little more than needed, as the box is; on the globe degrees say nothing about metres.
    far = np.inf if meta[4] == 1 else (x_max - x) * (x_max - x) * (1 + 1e-9)
    if level < 63:
        size = math.ldexp(1.0, int(level) - 31)
        low, high = math.floor(x_min / size), math.floor(x_max / size)
        lower, upper = math.floor(y_min / size), math.floor(y_max / size)
        if not (max(abs(low), abs(high)) < 134217728.0 and max(abs(lower), abs(upper)) < 134217728.0):
            level = 63
    if level == 63:
        low = high = lower = upper = 0.0
    everywhere = cell_key(0.0, 0.0, 63, 0)
    first, last, bottom, top = np.int64(low), np.int64(high), np.int64(lower), np.int64(upper)
    if adds:
        wanted = 0
        for cx in range(first, last + 1):
            for cy in range(bottom, top + 1):
                key = (level << 57) | ((cx + _HALF) << 28) | (cy + _HALF)
                # Twice over, since two of the cells may share a room.
                wanted += 4 * needs(everywhere if level == 63 else key, rooms) + 8
        if meta[0] + wanted > len(entries):
            return -3
    for cx in range(first, last + 1):
        for cy in range(bottom, top + 1):
            key = (level << 57) | ((cx + _HALF) << 28) | (cy + _HALF)
            if level == 63:
                key = everywhere
            if adds:
                insert(key, item, x, y, far, rooms, entries, spots, meta)
            else:
                take_out(key, item, rooms, entries, spots)
    meta[16 + level] += 1 if adds else -1
    if level < 63:
        meta[8], meta[9] = min(meta[8], level), max(meta[9], level + 1)
    return 0


@compiled
def stand(place, rooms, entries, spots, meta, slot, adds):  # type: ignore[no-untyped-def]
    """Put a subscriber's point into its cell, or take it out."""
    key = cell_key(place[slot, 0], place[slot, 1], meta[7], 1)
    if not adds:
        take_out(key, slot, rooms, entries, spots)
    elif meta[0] + needs(key, rooms) > len(entries):
        return -3
    else:
        insert(key, slot, 0.0, 0.0, 0.0, rooms, entries, spots, meta)
    return 0


@inlined
def reach_of(radius, kind, truth, gates, reach, meta, p, j, s, k):  # type: ignore[no-untyped-def]
    """How near a publication and a subscription have to be to match; -1 where they never do."""
    pairs = meta[5] * meta[6]
    a, b = kind[p, j], kind[s, meta[5] + k]
    if a < 0 or b < 0 or p == s or not truth[a, b]:
        return -1.0
    total = np.inf
    for g in range(gates[j * meta[6] + k], gates[j * meta[6] + k + 1]):
        at = pairs + 1 + 3 * g
        mine, theirs = radius[p, gates[at + 1]], radius[s, gates[at + 2]]
        if gates[at] == 0:
            total = min(total, reach[g] + (mine + theirs))
        elif gates[at] == 1:
            total = min(total, mine - theirs)
        else:
            total = min(total, theirs - mine)
    return total


@inlined
def within(place, meta, p, x, y, z, total):  # type: ignore[no-untyped-def]
    """Whether a client is near enough to a point."""
    if meta[4] == 1:
        return geodesic_within(place[p, 0], place[p, 1], x, y, total)
    return planar_within(place[p, 0], place[p, 1], place[p, 2], x, y, z, total)


@inlined
def together(place, radius, kind, truth, gates, reach, meta, p, j, s, k):  # type: ignore[no-untyped-def]
    """Whether a publication matches a subscription where both are."""
    total = reach_of(radius, kind, truth, gates, reach, meta, p, j, s, k)
    return total >= 0.0 and within(place, meta, p, place[s, 0], place[s, 1], place[s, 2], total)


@inlined
def gap_of(place, meta, p, x, y, z, total):  # type: ignore[no-untyped-def]
    """How far a point may be moved, at least, before it comes over the rim around a client; negative for not at all.

    Less than the true distance by far more than the arithmetic of `within` can err.
    """
    if meta[4] == 1:
        if total >= math.pi * EARTH_RADIUS_M:
            return np.inf
        d = geodesic_distance_m(place[p, 0], place[p, 1], x, y)
        return abs(d - total) - 1e-5 if max(d, total) < 1e7 else -1.0
    d = math.sqrt(planar_squared(place[p, 0], place[p, 1], place[p, 2], x, y, z))
    if not d < 1e150:
        return -1.0
    return np.inf if total > 1e151 else abs(d - total) - 1e-9 * (d + total)


@inlined
def note(place, own, meta, log, logged, slot, x, y, t):  # type: ignore[no-untyped-def]
    """Put a client somewhere, and log that where it is to be remembered; there is room for it."""
    place[slot, 0], place[slot, 1] = x, y
    if meta[3] == 1:
        n = meta[2] - meta[10]
        log[n, 0], log[n, 1] = t, own[slot, 3]
        logged[n, 0], logged[n, 1], logged[n, 2] = x, y, place[slot, 2]
        own[slot, 3] = meta[2]
        meta[2] += 1
    else:
        own[slot, 3] = t


@compiled
def walk(  # type: ignore[no-untyped-def]
    place, calm, radius, kind, truth, gates, reach, rooms, entries, spots, own, lists, meta, out, log, logged,
    slot, x, y, z, t,
):  # fmt: skip
    """Move a subscriber: its list is brought up to date, and what begins and ends is given back.

    What can change its list are the rims of the discs in its cells. A rectangle inside of these cells, and around it
    no larger than the way to the nearest rim, is noted as calm: while it stays in there, and until a publication that
    touches its cell changes (`around`), nothing can begin or end.
    """
    publishing, subscribing = meta[5], meta[6]
    half = len(out) // 2
    found = 0
    gap = np.inf
    x_from, x_to, y_from, y_to = -np.inf, np.inf, -np.inf, np.inf
    # The cells of the discs, and that in which it stands itself; all are read before anything is changed.
    for n in range(min(meta[8], meta[9]), meta[9] + 2):
        level = n
        if n == meta[9]:
            level = 63
        elif n > meta[9]:
            level = meta[7]
        if n <= meta[9] and meta[16 + level] == 0:
            continue
        if level < 63:
            size = math.ldexp(1.0, int(level) - 31)
            left, below = math.floor(x / size) * size, math.floor(y / size) * size
            x_from, x_to = max(x_from, left), min(x_to, left + size)
            y_from, y_to = max(y_from, below), min(y_to, below + size)
        key = cell_key(x, y, level, 0)
        if level < 63 and key >> 57 == 63:
            gap = -1.0
            continue
        if n > meta[9]:
            continue
        b = room_of(key, rooms)
        for e in range(rooms[b, 0], rooms[b, 0] + rooms[b, 1]):
            if entries[e, 0] != key:
                continue
            dx, dy = spots[e, 0] - x, spots[e, 1] - y
            if dx * dx + dy * dy > spots[e, 2]:
                d, far = math.sqrt(dx * dx + dy * dy), math.sqrt(spots[e, 2])
                gap = min(gap, d - far - 1e-9 * (d + far)) if d < 1e150 else -1.0
                continue
            item = entries[e, 1]
            p, j = item // publishing, item % publishing
            for k in range(subscribing):
                total = reach_of(radius, kind, truth, gates, reach, meta, p, j, slot, k)
                if total < 0.0:
                    continue
                gap = min(gap, gap_of(place, meta, p, x, y, z, total))
                if within(place, meta, p, x, y, z, total):
                    if found == half:
                        return -4
                    match = item * subscribing + k
                    i = found
                    while i > 0 and out[half + i - 1] > match:
                        out[half + i] = out[half + i - 1]
                        i -= 1
                    out[half + i] = match
                    found += 1
    start, count, cap = own[slot, 0], own[slot, 1], own[slot, 2]
    same = found == count
    for i in range(found):
        if not same:
            break
        same = out[half + i] == lists[start + i]
    # What could find no room is asked for before anything is changed.
    if found + count > half:
        return -4
    if found > cap and meta[1] + 2 * found > len(lists):
        return -2
    before = cell_key(place[slot, 0], place[slot, 1], meta[7], 1)
    after = cell_key(x, y, meta[7], 1)
    if before != after and meta[0] + needs(after, rooms) > len(entries):
        return -3
    if meta[3] == 1 and meta[2] - meta[10] == len(log):
        return -1
    if before != after:
        take_out(before, slot, rooms, entries, spots)
        insert(after, slot, 0.0, 0.0, 0.0, rooms, entries, spots, meta)
    place[slot, 2] = z
    note(place, own, meta, log, logged, slot, x, y, t)
    if meta[4] == 1:
        # Along a meridian and then a parallel is no shorter than straight; no degree is longer than one of the equator.
        side = gap / (2.0 * EARTH_RADIUS_M * RADIAN) * (1 - 1e-9) - 1e-9
    else:
        side = (gap - 1e-9 * (abs(x) + abs(y)) - 1e-9) * 0.7071
    if side > 0.0 and z == 0.0 and own[slot, 4] == 1:
        calm[slot, 0], calm[slot, 1] = max(x_from, x - side), min(x_to, x + side)
        calm[slot, 2], calm[slot, 3] = max(y_from, y - side), min(y_to, y + side)
    else:
        calm[slot, 0] = calm[slot, 1] = 0.0
    if same:
        return 0
    told = 0
    i = h = 0
    while i < count or h < found:
        if h == found or (i < count and lists[start + i] < out[half + h]):
            out[told] = lists[start + i] * 2
            told += 1
            i += 1
        elif i == count or lists[start + i] > out[half + h]:
            out[told] = out[half + h] * 2 + 1
            told += 1
            h += 1
        else:
            i += 1
            h += 1
    if found > cap:
        own[slot, 0], own[slot, 2] = meta[1], 2 * found
        start = meta[1]
        meta[1] += 2 * found
    for i in range(found):
        lists[start + i] = out[half + i]
    own[slot, 1] = found
    return told


def _pointer(context, address, kind):  # type: ignore[no-untyped-def]
    """A number as the address of an array."""
    made = types.CPointer(kind.dtype)(address, kind)

    def code(target, builder, signature, given):  # type: ignore[no-untyped-def]
        return builder.inttoptr(given[0], target.get_value_type(signature.return_type))

    return made, code


pointer: Any = intrinsic(_pointer)


def addresses(*arrays: np.ndarray) -> np.ndarray:
    """Where the arrays of `walk` begin and how large they are, for `step` and `steps`; keep them alive as long."""
    assert all(array.flags.c_contiguous for array in arrays)
    return np.array([(a.ctypes.data, len(a), a.shape[1] if a.ndim > 1 else 1) for a in arrays], np.int64)


@inlined
def at_addresses(state):  # type: ignore[no-untyped-def]
    """The arrays of `walk`, from where they are."""
    return (
        carray(pointer(state[0, 0], float64), (state[0, 1], state[0, 2])),
        carray(pointer(state[1, 0], float64), (state[1, 1], state[1, 2])),
        carray(pointer(state[2, 0], float64), (state[2, 1], state[2, 2])),
        carray(pointer(state[3, 0], int64), (state[3, 1], state[3, 2])),
        carray(pointer(state[4, 0], boolean), (state[4, 1], state[4, 2])),
        carray(pointer(state[5, 0], int64), state[5, 1]),
        carray(pointer(state[6, 0], float64), state[6, 1]),
        carray(pointer(state[7, 0], int64), (state[7, 1], state[7, 2])),
        carray(pointer(state[8, 0], int64), (state[8, 1], state[8, 2])),
        carray(pointer(state[9, 0], float64), (state[9, 1], state[9, 2])),
        carray(pointer(state[10, 0], int64), (state[10, 1], state[10, 2])),
        carray(pointer(state[11, 0], int64), state[11, 1]),
        carray(pointer(state[12, 0], int64), state[12, 1]),
        carray(pointer(state[13, 0], int64), state[13, 1]),
        carray(pointer(state[14, 0], int64), (state[14, 1], state[14, 2])),
        carray(pointer(state[15, 0], float64), (state[15, 1], state[15, 2])),
    )


@inlined
def is_place(x, y, meta):  # type: ignore[no-untyped-def]
    return (abs(x) <= 180.0 and abs(y) <= 90.0) if meta[4] == 1 else (abs(x) < np.inf and abs(y) < np.inf)


@compiled
def step(state, slot, x, y, t):  # type: ignore[no-untyped-def]
    """`walk` in the plane, called by addresses; nearly nothing where the client stays where it is calm.

    The caller has checked nothing: `CLOSER` where it is not one who only subscribes, or where there is no such place.
    """
    arrays = at_addresses(state)
    place, calm, own, meta, log, logged = arrays[0], arrays[1], arrays[10], arrays[12], arrays[14], arrays[15]
    if calm[slot, 0] <= x < calm[slot, 1] and calm[slot, 2] <= y < calm[slot, 3]:
        if meta[3] == 1 and meta[2] - meta[10] == len(log):
            return -1
        place[slot, 2] = 0.0
        note(place, own, meta, log, logged, slot, x, y, t)
        return 0
    if own[slot, 4] != 1 or not is_place(x, y, meta):
        return -5
    return walk(*arrays, slot, x, y, 0.0, t)


@compiled
def steps(state, slots, x, y, t, first, said, told):  # type: ignore[no-untyped-def]
    """`step` for many, in order, from a row on; gives the row after the last one done, how much was said, and why.

    ``said`` has a row and a transition for each. Where there is no room the caller makes some and goes on; the reason
    is 0 where it is ``said`` that is full.
    """
    arrays = at_addresses(state)
    place, calm, own, meta, log, logged = arrays[0], arrays[1], arrays[10], arrays[12], arrays[14], arrays[15]
    out = arrays[13]
    for r in range(first, len(slots)):
        slot = slots[r]
        if calm[slot, 0] <= x[r] < calm[slot, 1] and calm[slot, 2] <= y[r] < calm[slot, 3]:
            if meta[3] == 1 and meta[2] - meta[10] == len(log):
                return r, told, -1
            place[slot, 2] = 0.0
            note(place, own, meta, log, logged, slot, x[r], y[r], t[r])
            continue
        if told + len(out) // 2 > len(said):
            return r, told, 0
        n = walk(*arrays, slot, x[r], y[r], 0.0, t[r])
        if n < 0:
            return r, told, n
        for i in range(n):
            said[told, 0], said[told, 1] = r, out[i]
            told += 1
    return len(slots), told, 0


@compiled
def orderly(state, slots, x, y, t, after, seen):  # type: ignore[no-untyped-def]
    """Whether `steps` may be taken: all of them by such as `step` takes, forward in time, nobody twice at an instant.

    ``seen`` has room for each client, and instants that lie before all others.
    """
    own = carray(pointer(state[10, 0], int64), (state[10, 1], state[10, 2]))
    meta = carray(pointer(state[12, 0], int64), state[12, 1])
    for r in range(len(slots)):
        slot = slots[r]
        if slot < 0 or own[slot, 4] != 1 or not is_place(x[r], y[r], meta):
            return False
        if t[r] <= after or (r and t[r] < t[r - 1]) or seen[slot] == t[r]:
            return False
        seen[slot] = t[r]
    return True


@compiled
def around(  # type: ignore[no-untyped-def]
    place, calm, radius, kind, truth, gates, reach, rooms, entries, meta, p, j, extent
):  # fmt: skip
    """The subscriptions that a publication matches where it is: client * populations of subscriptions + population.

    It is about to change, or has just done so: whoever stands in a cell that it touches is calm no longer.
    """
    subscribing = meta[6]
    found, many = np.empty(64, np.int64), 0
    x_min, x_max, y_min, y_max, level = box_of(place[p, 0], place[p, 1], extent, meta[4] == 1)
    size = math.ldexp(1.0, int(meta[7]) - 31)
    wide, tall = (x_max - x_min) / size + 2, (y_max - y_min) / size + 2
    all_of_them = level == 63 or meta[7] == 63 or not wide * tall < len(place)
    low = lower = 0.0
    across = up = 0
    if not all_of_them:
        low, lower = math.floor(x_min / size), math.floor(y_min / size)
        across, up = int(math.floor(x_max / size) - low) + 1, int(math.floor(y_max / size) - lower) + 1
    for c in range(across * up + 1):
        key = cell_key(0.0, 0.0, 63, 1)
        if c < across * up:
            cx, cy = low + c % across, lower + c // across
            if not (abs(cx) < 134217728.0 and abs(cy) < 134217728.0):
                continue
            key = ((meta[7] * 2 + 1) << 56) | ((np.int64(cx) + _HALF) << 28) | (np.int64(cy) + _HALF)
        b = room_of(key, rooms)
        begin, end = (0, len(place)) if all_of_them else (rooms[b, 0], rooms[b, 0] + rooms[b, 1])
        for e in range(begin, end):
            s = e
            if not all_of_them:
                if entries[e, 0] != key:
                    continue
                s = entries[e, 1]
            calm[s, 0] = calm[s, 1] = 0.0
            for k in range(subscribing):
                if together(place, radius, kind, truth, gates, reach, meta, p, j, s, k):
                    if many == len(found):
                        found = longer(found, 2 * many)
                    found[many] = s * subscribing + k
                    many += 1
    return found[:many]


@compiled
def toggle(own, lists, meta, slot, match):  # type: ignore[no-untyped-def]
    """Put a match into a list, or take it out of it; 1 where it begins."""
    start, count, cap = own[slot, 0], own[slot, 1], own[slot, 2]
    at = 0
    while at < count and lists[start + at] < match:
        at += 1
    if at < count and lists[start + at] == match:
        for i in range(at, count - 1):
            lists[start + i] = lists[start + i + 1]
        own[slot, 1] = count - 1
        return 0
    if count == cap:
        room = 2 * cap + 2
        if meta[1] + room > len(lists):
            return -2
        for i in range(count):
            lists[meta[1] + i] = lists[start + i]
        own[slot, 0], own[slot, 2] = meta[1], room
        start = meta[1]
        meta[1] += room
    for i in range(count, at, -1):
        lists[start + i] = lists[start + i - 1]
    lists[start + at] = match
    own[slot, 1] = count + 1
    return 1


@compiled
def insert_all(kept, beside, rooms, entries, spots, meta):  # type: ignore[no-untyped-def]
    """Put the entries of a grid into another one."""
    for i in range(len(kept)):
        insert(kept[i, 0], kept[i, 1], beside[i, 0], beside[i, 1], beside[i, 2], rooms, entries, spots, meta)
