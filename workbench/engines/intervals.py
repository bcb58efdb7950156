"""Sets of instants, many at once.

A filter over time denotes a set of instants, so ``&``, ``|``, ``~`` are intersection, union and complement. Here such
a set is a list of intervals ``[start, end)`` of ticks, in order, apart from each other; `Sets` holds one set for each
*lane* (a pair, a client), one lane after another: lane i owns the intervals ``offsets[i] <= j < offsets[i + 1]``.

`Visits` has the same form but its intervals may overlap: the matches of a region with many others.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from workbench.compiling import callee, compiled

FOREVER = 2**62
"""The end of what does not end."""
BEFORE = -(2**62)
"""Earlier than every instant of the data."""
MANY, A_PART = 1 << 18, 1 << 14
"""numbers that are worth several threads, and about as many as fit into a cache"""
UNION, INTERSECTION, DIFFERENCE = 0, 1, 2
OPS = {"<": 0, "<=": 1, ">": 2, ">=": 3}
FUNCTIONS = {"count": 0, "sum": 1, "mean": 2, "min": 3, "max": 4}


class Sets(NamedTuple):
    """One set of instants a lane."""

    offsets: np.ndarray
    start: np.ndarray
    end: np.ndarray

    @property
    def lanes(self) -> np.ndarray:
        """The lane of each interval."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


Visits = Sets


@compiled
def _combined(a_off, a_start, a_end, b_off, b_start, b_end, op):  # type: ignore[no-untyped-def]
    lanes = len(a_off) - 1
    offsets = np.zeros(lanes + 1, np.int64)
    start = np.empty(len(a_start) + len(b_start), np.int64)
    end = np.empty(len(a_start) + len(b_start), np.int64)
    n = 0
    for lane in range(lanes):
        i, i_end = a_off[lane], a_off[lane + 1]
        j, j_end = b_off[lane], b_off[lane + 1]
        in_a = in_b = was = False
        since = np.int64(0)
        while i < i_end or j < j_end:
            next_a = (a_end[i] if in_a else a_start[i]) if i < i_end else np.int64(2**63 - 1)
            next_b = (b_end[j] if in_b else b_start[j]) if j < j_end else np.int64(2**63 - 1)
            t = min(next_a, next_b)
            if i < i_end and next_a == t:
                if in_a:
                    i += 1
                in_a = not in_a
            if j < j_end and next_b == t:
                if in_b:
                    j += 1
                in_b = not in_b
            if op == 0:
                now = in_a or in_b
            elif op == 1:
                now = in_a and in_b
            else:
                now = in_a and not in_b
            if now and not was:
                since = t
            elif was and not now:
                start[n] = since
                end[n] = t
                n += 1
            was = now
        offsets[lane + 1] = n
    return offsets, start[:n].copy(), end[:n].copy()


def union(a: Sets, b: Sets) -> Sets:
    """The instants in either set.

    >>> union(sets_of([[(1, 3)]]), sets_of([[(3, 5), (7, 8)]])).start.tolist()
    [1, 7]
    """
    return Sets(*_combined(*a, *b, UNION))


def intersection(a: Sets, b: Sets) -> Sets:
    """The instants in both sets.

    >>> intersection(sets_of([[(1, 5)]]), sets_of([[(3, 9)]])).end.tolist()
    [5]
    """
    return Sets(*_combined(*a, *b, INTERSECTION))


def difference(a: Sets, b: Sets) -> Sets:
    """The instants of the first set that are not in the second.

    >>> difference(sets_of([[(1, 5)]]), sets_of([[(2, 3)]])).start.tolist()
    [1, 3]
    """
    return Sets(*_combined(*a, *b, DIFFERENCE))


def sets_of(lanes: list[list[tuple[int, int]]]) -> Sets:
    """Sets from lists of intervals, for examples."""
    flat = [interval for lane in lanes for interval in lane]
    starts, ends = zip(*flat, strict=True) if flat else ((), ())
    offsets = np.cumsum([0, *map(len, lanes)])
    return Sets(offsets.astype(np.int64), np.array(starts, np.int64), np.array(ends, np.int64))


def nothing(lanes: int) -> Sets:
    """The empty set in every lane."""
    none = np.empty(0, np.int64)
    return Sets(np.zeros(lanes + 1, np.int64), none, none)


def held(part: Sets, ticks: int) -> Sets:
    """The instants t with all of ``[t - ticks, t]`` in the set.

    >>> held(sets_of([[(1, 3), (5, 9)]]), 2).start.tolist()
    [7]
    """
    long = part.start + ticks < part.end
    return Sets(_kept_offsets(part.offsets, long), part.start[long] + ticks, part.end[long])


def _kept_offsets(offsets: np.ndarray, kept: np.ndarray) -> np.ndarray:
    count = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(kept, out=count[1:])
    return count[offsets]


@compiled
def _latched(n_off, n_start, n_end, on_off, on_start, on_end):  # type: ignore[no-untyped-def]
    lanes = len(n_off) - 1
    offsets = np.zeros(lanes + 1, np.int64)
    start = np.empty(len(n_start), np.int64)
    end = np.empty(len(n_start), np.int64)
    n = 0
    for lane in range(lanes):
        j = on_off[lane]
        for i in range(n_off[lane], n_off[lane + 1]):
            while j < on_off[lane + 1] and on_end[j] <= n_start[i]:
                j += 1
            if j < on_off[lane + 1] and on_start[j] < n_end[i]:
                start[n] = max(on_start[j], n_start[i])
                end[n] = n_end[i]
                n += 1
        offsets[lane + 1] = n
    return offsets, start[:n].copy(), end[:n].copy()


def latch(on: Sets, off: Sets, life: Sets) -> Sets:
    """True from ``on`` until ``off``: of each time without off, what follows the first on in it.

    >>> latch(sets_of([[(2, 3)]]), sets_of([[(5, 6)]]), sets_of([[(1, 9)]]))[1:]
    (array([2]), array([5]))
    """
    return Sets(*_latched(*difference(life, off), *on))


def gather(sets: Sets, lanes: np.ndarray) -> Sets:
    """The sets of some lanes, in that order; a lane of -1 is empty.

    >>> gather(sets_of([[(1, 2)], [(3, 4)]]), np.array([1, -1, 1])).start.tolist()
    [3, 3]
    """
    if len(sets.offsets) == 1:
        return nothing(len(lanes))
    present = lanes >= 0
    first = np.where(present, sets.offsets[np.maximum(lanes, 0)], 0)
    sizes = np.where(present, sets.offsets[np.maximum(lanes, 0) + 1], 0) - first
    offsets = np.zeros(len(lanes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    index = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - first, sizes)
    return Sets(offsets, sets.start[index], sets.end[index])


@compiled
def _merged(lane, start, end, lanes):  # type: ignore[no-untyped-def]
    offsets = np.zeros(lanes + 1, np.int64)
    out_start = np.empty(len(start), np.int64)
    out_end = np.empty(len(start), np.int64)
    n = 0
    last = -1
    for i in range(len(start)):
        if lane[i] == last and start[i] <= out_end[n - 1]:
            out_end[n - 1] = max(out_end[n - 1], end[i])
            continue
        out_start[n] = start[i]
        out_end[n] = end[i]
        n += 1
        last = lane[i]
        offsets[lane[i] + 1] += 1
    for i in range(lanes):
        offsets[i + 1] += offsets[i]
    return offsets, out_start[:n].copy(), out_end[:n].copy()


def merged(lane: np.ndarray, start: np.ndarray, end: np.ndarray, lanes: int) -> Sets:
    """Sets from intervals of lanes in any order, overlapping or not.

    >>> merged(np.array([0, 0, 1]), np.array([5, 1, 1]), np.array([7, 5, 2]), 2).end.tolist()
    [7, 2]
    """
    order = ordered(lane, start)
    return Sets(*_merged(lane[order].astype(np.int64), start[order], end[order], lanes))


def ordered(*keys: np.ndarray) -> np.ndarray:
    """The order by several keys, the first one first; as one number where that fits, which is several times faster."""
    if not len(keys[0]):
        return np.empty(0, np.int64)
    spans = [int(key.max()) - int(key.min()) + 1 for key in keys]
    if math.prod(spans) >= 2**62:
        return np.lexsort(keys[::-1])
    whole = np.zeros(len(keys[0]), np.int64)
    for key, span in zip(keys, spans, strict=True):
        whole *= span
        whole += key
        whole -= key.min()
    if len(whole) < MANY:
        return np.argsort(whole)
    # Parts that fit into the processor's cache are sorted by themselves, side by side.
    parts = (len(whole) // A_PART).bit_length()
    order, parted, offsets = _parted(whole, max(0, math.prod(spans).bit_length() - parts), 1 << parts)

    def sort(low: int, high: int) -> None:
        order[low:high] = order[low:high][np.argsort(parted[low:high])]

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(sort, offsets[:-1], offsets[1:]))
    return order


@compiled
def _parted(whole, shift, parts):  # type: ignore[no-untyped-def]
    """Numbers by their highest bits: which they were, they themselves, and where each part begins."""
    offsets = np.zeros(parts + 1, np.int64)
    for number in whole:
        offsets[(number >> shift) + 1] += 1
    at = np.empty(parts, np.int64)
    for part in range(parts):
        at[part] = offsets[part]
        offsets[part + 1] += offsets[part]
    order, parted = np.empty(len(whole), np.int64), np.empty(len(whole), np.int64)
    for n in range(len(whole)):
        part = whole[n] >> shift
        order[at[part]], parted[at[part]] = n, whole[n]
        at[part] += 1
    return order, parted, offsets


def together(sets: Sets, lanes: np.ndarray, count: int) -> Visits:
    """The intervals of several lanes each put into one, as visits ordered by (end, start)."""
    lane = lanes[sets.lanes]
    order = np.lexsort((sets.start, sets.end, lane))
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(lane, minlength=count), out=offsets[1:])
    return Sets(offsets, sets.start[order], sets.end[order])


@compiled
def _from_segments(offsets, start, end, flags):  # type: ignore[no-untyped-def]
    lanes = len(offsets) - 1
    out = np.zeros(lanes + 1, np.int64)
    out_start = np.empty(len(start), np.int64)
    out_end = np.empty(len(start), np.int64)
    n = 0
    for lane in range(lanes):
        open_ = False
        for i in range(offsets[lane], offsets[lane + 1]):
            if not flags[i]:
                open_ = False
            elif open_ and out_end[n - 1] == start[i]:
                out_end[n - 1] = end[i]
            else:
                out_start[n] = start[i]
                out_end[n] = end[i]
                n += 1
                open_ = True
        out[lane + 1] = n
    return out, out_start[:n].copy(), out_end[:n].copy()


def from_segments(offsets: np.ndarray, start: np.ndarray, end: np.ndarray, flags: np.ndarray) -> Sets:
    """The set where a step function is true; segments of a lane are in order and do not overlap."""
    return Sets(*_from_segments(offsets, start, end, flags))


@compiled
def _contains(offsets, start, end, lane, t):  # type: ignore[no-untyped-def]
    found = np.zeros(len(lane), np.bool_)
    for i in range(len(lane)):
        low, high = offsets[lane[i]], offsets[lane[i] + 1]
        while low < high:
            middle = (low + high) // 2
            if start[middle] <= t[i]:
                low = middle + 1
            else:
                high = middle
        found[i] = low > offsets[lane[i]] and t[i] < end[low - 1]
    return found


def contains(sets: Sets, lane: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Whether an instant is in the set of a lane, for many."""
    return _contains(*sets, lane, t)  # type: ignore[no-any-return]


# -- comparisons of times ----------------------------------------------------------------------------------


@callee
def _holds(value, op, bound):  # type: ignore[no-untyped-def]
    if op == 0:
        return value < bound
    if op == 1:
        return value <= bound
    if op == 2:
        return value > bound
    return value >= bound


@callee
def _linear(first, last, speed, constant, op, bound):  # type: ignore[no-untyped-def]
    """The part of ``[first, last)`` where ``speed * t + constant op bound``, as (start, end); empty if start >= end."""
    rest = bound - constant
    if speed == 0:
        return (first, last) if _holds(np.int64(0), op, rest) else (last, last)
    if speed < 0:
        speed = -speed
        rest = -rest
        op = (op + 2) % 4
    floor = rest // speed
    ceiling = -((-rest) // speed)
    if op == 0:
        return first, min(last, ceiling)
    if op == 1:
        return first, min(last, floor + 1)
    if op == 2:
        return max(first, floor + 1), last
    return max(first, ceiling), last


@compiled
def _compared(offsets, events, factors, speed, fixed, op, bound):  # type: ignore[no-untyped-def]
    terms = len(factors)
    lanes = offsets.shape[1] - 1
    out = np.zeros(lanes + 1, np.int64)
    start = np.empty(len(events) + lanes, np.int64)
    end = np.empty(len(events) + lanes, np.int64)
    at = np.empty(terms, np.int64)
    n = 0
    for lane in range(lanes):
        begun = n
        for k in range(terms):
            at[k] = offsets[k, lane]
        first = np.int64(-(2**62))
        while True:
            last = np.int64(2**62)
            up = down = False
            constant = np.int64(fixed)
            for k in range(terms):
                # Everything up to and including `first` has happened.
                while at[k] < offsets[k, lane + 1] and events[at[k]] <= first:
                    at[k] += 1
                if at[k] < offsets[k, lane + 1]:
                    last = min(last, events[at[k]])
                if at[k] > offsets[k, lane]:
                    constant += factors[k] * events[at[k] - 1]
                elif factors[k] < 0:
                    up = True
                else:
                    down = True
            if up and down:
                a, b = last, last
            elif up or down:
                infinite = op >= 2 if up else op <= 1
                a, b = (first, last) if infinite else (last, last)
            else:
                a, b = _linear(first, last, np.int64(speed), constant, op, np.int64(bound))
            if a < b:
                if n > begun and end[n - 1] == a:
                    end[n - 1] = b
                else:
                    start[n] = a
                    end[n] = b
                    n += 1
            if last == 2**62:
                break
            first = last
        out[lane + 1] = n
    return out, start[:n].copy(), end[:n].copy()


def compared(
    instants: list[tuple[np.ndarray, np.ndarray, int]], speed: int, fixed: int, op: str, bound: int, lanes: int
) -> Sets:
    """Where ``speed * now + fixed + Σ factor * latest event op bound``.

    ``instants`` gives, for each tau or pi, the offsets of the lanes, the ordered instants of its events, its factor.
    What never happened is minus infinity; where infinities cancel out nothing holds.

    >>> offsets, entered = np.array([0, 1]), np.array([10])
    >>> compared([(offsets, entered, -1)], 1, 0, ">", 5, 1)[1:]
    (array([-4611686018427387904,                   16]), array([                 10, 4611686018427387904]))
    """
    table = np.zeros((len(instants), lanes + 1), np.int64)
    base, events = 0, [np.empty(0, np.int64)]
    for k, (offsets, happened, _) in enumerate(instants):
        table[k] = offsets + base
        base += len(happened)
        events.append(happened)
    factors = np.array([factor for _, _, factor in instants], np.int64)
    return Sets(*_compared(table, np.concatenate(events), factors, speed, fixed, OPS[op], bound))


def begins(visits: Visits) -> tuple[np.ndarray, np.ndarray]:
    """The beginnings of visits, in order within each lane."""
    return visits.offsets, visits.start[np.lexsort((visits.start, visits.lanes))]


def ends(visits: Visits) -> tuple[np.ndarray, np.ndarray]:
    """The ends of visits that end, in order within each lane."""
    done = visits.end < FOREVER
    lanes = visits.lanes[done]
    return _kept_offsets(visits.offsets, done), visits.end[done][np.lexsort((visits.end[done], lanes))]


# -- aggregates over visits ----------------------------------------------------------------------------------


@compiled
def _aggregated(  # type: ignore[no-untyped-def]
    offsets, start, end, last, window, function, tau, pi, op, bound
):
    lanes = len(offsets) - 1
    values = tau * start + pi * end
    before = np.zeros(len(start) + 1, np.int64)
    for i in range(len(start)):
        before[i + 1] = before[i] + values[i]
    out = np.zeros(lanes + 1, np.int64)
    out_start = np.empty(2 * len(start) + lanes, np.int64)
    out_end = np.empty(2 * len(start) + lanes, np.int64)
    n = 0
    for lane in range(lanes):
        begun = n
        low = high = offsets[lane]
        stop = offsets[lane + 1]
        first = np.int64(-(2**62))
        while True:
            # Completed visits up to `first` are low .. high, the window taken off.
            while high < stop and end[high] <= first:
                high += 1
            while window >= 0 and low < high and first - end[low] > window:
                low += 1
            following = end[high] if high < stop else np.int64(2**62)
            if window >= 0 and low < high:
                following = min(following, end[low] + window + 1)
            begin = low
            enough = True
            if last > 0:
                enough = high - low >= last
                begin = max(low, high - last)
            count = high - begin
            true = False
            if enough:
                if function == 0:
                    true = _holds(count, op, bound)
                elif function == 1:
                    true = _holds(before[high] - before[begin], op, bound)
                elif count > 0:
                    if function == 2:
                        true = _holds(before[high] - before[begin], op, bound * count)
                    else:
                        best = values[begin]
                        for i in range(begin + 1, high):
                            best = min(best, values[i]) if function == 3 else max(best, values[i])
                        true = _holds(best, op, bound)
            if true:
                if n > begun and out_end[n - 1] == first:
                    out_end[n - 1] = following
                else:
                    out_start[n] = first
                    out_end[n] = following
                    n += 1
            if following == 2**62:
                break
            first = following
        out[lane + 1] = n
    return out, out_start[:n].copy(), out_end[:n].copy()


def aggregated(
    visits: Visits, last: int | None, window: int | None, function: str, tau: int, pi: int, op: str, bound: int
) -> Sets:
    """Where an aggregate of ``tau * began + pi * ended`` over the completed visits compares with a bound.

    >>> aggregated(sets_of([[(1, 3), (4, 9)]]), 2, None, "sum", -1, 1, ">=", 7).start.tolist()
    [9]
    """
    done = visits.end < FOREVER
    offsets, start, end = _kept_offsets(visits.offsets, done), visits.start[done], visits.end[done]
    limit = -1 if window is None else window
    return Sets(*_aggregated(offsets, start, end, last or 0, limit, FUNCTIONS[function], tau, pi, OPS[op], bound))
