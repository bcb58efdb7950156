"""Slabs: the edges of areas by height, so that whether a point lies in one is asked of few edges.

The ray to the right of a point crosses only edges that reach its height. Each skeleton is cut into slabs of equal
height; a slab lists the edges that touch it. A point looks at one slab: the other edges would have said nothing, so the
answer is that of `workbench.geometry.point_in_polygon`, to the last bit. (The slab method for locating points, Dobkin
and Lipton 1976, with slabs of one height instead of one for each vertex, so that the lists stay short.)

A height is put into a slab by one rounded division, which never turns the order of two heights around. So a point
between the ends of an edge is never put outside the slabs between theirs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

MOST_COPIES = 8
"""in how many slabs an edge may stand on average"""


class Slabs(NamedTuple):
    """The edges of skeletons, slab by slab."""

    low: np.ndarray
    high: np.ndarray
    """between which heights each skeleton lies"""
    height: np.ndarray
    """of one slab of each"""
    first: np.ndarray
    """the first slab of each skeleton; the last one ends where the next skeleton starts"""
    offsets: np.ndarray
    """where the edges of each slab begin"""
    edges: np.ndarray
    """ax, ay, bx, by"""


def slabs_of(xs: np.ndarray, ys: np.ndarray, rings: np.ndarray, first: np.ndarray) -> Slabs:
    """The slabs of skeletons, given as `workbench.engines.kernels.Shapes` has them.

    >>> made = slabs_of(np.array([0., 1, 1, 0, 0]), np.array([0., 0, 1, 1, 0]), np.array([0, 5]), np.array([0, 1]))
    >>> made.offsets.tolist(), made.height.tolist()
    ([0, 3, 6], [0.5])
    """
    skeletons = len(first) - 1
    starts = np.delete(np.arange(len(xs)), rings[1:] - 1)
    ends = rings[first]
    of = np.searchsorted(ends, starts, side="right") - 1
    a, b = ys[starts], ys[starts + 1]
    bottom, top = np.minimum(a, b), np.maximum(a, b)
    low, high = np.full(skeletons, np.inf), np.full(skeletons, -np.inf)
    np.minimum.at(low, of, bottom)
    np.maximum.at(high, of, top)
    edges = np.bincount(of, minlength=skeletons)
    count = np.maximum(1, edges // 2)
    while True:
        with np.errstate(over="ignore", invalid="ignore"):
            height = (high - low) / count
        # An area that is too flat or too tall to be divided is one slab.
        count[~((height > 1e-300) & (height < 1e300))] = 1
        height = np.where(count > 1, height, np.inf)
        from_, to = (((y - low[of]) / height[of]).astype(np.int64) for y in (bottom, top))
        from_, to = np.minimum(from_, count[of] - 1), np.minimum(to, count[of] - 1)
        copies = np.bincount(of, weights=to - from_ + 1, minlength=skeletons)
        # Tall edges stand in many slabs: fewer slabs then.
        crowded = (copies > MOST_COPIES * edges) & (count > 1)
        if not crowded.any():
            break
        count[crowded] //= 2
    starting = np.concatenate([[0], np.cumsum(count)])
    sizes = to - from_ + 1
    edge = np.repeat(np.arange(len(starts)), sizes)
    within = np.arange(len(edge)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    slab = (starting[of] + from_)[edge] + within
    order = np.argsort(slab, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(slab, minlength=starting[-1]))])
    at = starts[edge[order]]
    listed = np.ascontiguousarray(np.stack([xs[at], ys[at], xs[at + 1], ys[at + 1]], axis=1))
    return Slabs(low, high, height, starting.astype(np.int64), offsets.astype(np.int64), listed)
