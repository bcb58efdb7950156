"""Nearby: boxes that come, change and go, and which of them another box touches.

A grid for each size of boxes: a box lies in the few cells of the grid whose cells are about as large as it is, so that
a city's districts and a shop's door can be together. Boxes that are smaller than the space that each has for itself lie
in cells of that size, or a look around would meet nothing but empty cells. An index may only prune: boxes are a
little larger than needed.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

from workbench.geometry import EARTH_RADIUS_M, RADIAN, WGS84
from workbench.model.shapes import Shape

Key = TypeVar("Key", bound=Hashable)
LEAST = 1e-12
FEW = 8
"""boxes that are looked at one by one"""


class Box(NamedTuple):
    """A rectangle that a shape lies in."""

    x_min: float
    x_max: float
    y_min: float
    y_max: float


def box_of(shape: Shape, reach: float, metric: str) -> Box | None:
    """The box of a shape grown by a reach; None where it cannot be said, near a pole or across the date line.

    >>> from workbench.model.shapes import disc
    >>> box = box_of(disc((0, 0), 5), 1, "planar")
    >>> round(box.x_min), round(box.x_max)
    (-6, 6)
    """
    grow = shape.radius_m + reach
    x_min, x_max, y_min, y_max = min(shape.xs), max(shape.xs), min(shape.ys), max(shape.ys)
    if metric == WGS84:
        up = grow / (EARTH_RADIUS_M * RADIAN) * (1 + 1e-9) + 1e-9
        y_min, y_max = y_min - up, y_max + up
        steep = max(abs(y_min), abs(y_max))
        if steep >= 89.9:
            return None
        aside = up / math.cos(steep * RADIAN) + 1e-9
        x_min, x_max = x_min - aside, x_max + aside
        return None if x_min <= -180.0 or x_max >= 180.0 else Box(x_min, x_max, y_min, y_max)
    more = grow + 1e-9 * (max(map(abs, (x_min, x_max, y_min, y_max))) + grow) + 1e-9
    return Box(x_min - more, x_max + more, y_min - more, y_max + more)


class Nearby(Generic[Key]):
    """Which boxes may touch another one.

    >>> nearby = Nearby()
    >>> nearby.put("a", Box(0, 1, 0, 1)); nearby.put("b", Box(5, 6, 5, 6)); nearby.put("c", None)
    >>> sorted(nearby.touching(Box(0.5, 0.6, 0.5, 0.6)))
    ['a', 'c']
    """

    def __init__(self) -> None:
        self._boxes: dict[Key, Box | None] = {}
        self._everywhere: dict[Key, None] = {}
        self._cells: dict[tuple[int, int, int], dict[Key, None]] = {}
        self._levels: dict[int, dict[Key, None]] = {}
        self.spacing = LEAST
        """the size of the smallest cells"""
        self._laid = FEW
        """how many boxes that was made for"""

    def put(self, key: Key, box: Box | None) -> None:
        """Add a box, or change it; None lies everywhere."""
        if key in self._boxes:
            if self._boxes[key] == box:
                return
            self.drop(key)
        self._boxes[key] = box
        if len(self._boxes) > 2 * self._laid:
            self._lay()
        else:
            self._enter(key, box)

    def _lay(self) -> None:
        """Lay all boxes anew, in cells of the size that their number asks for."""
        self._laid = len(self._boxes)
        boxes = [box for box in self._boxes.values() if box is not None]
        # A tenth at either end is left out: one that is far away from all others says nothing of these.
        inner = slice(len(boxes) // 10, len(boxes) - len(boxes) // 10)
        sides = [sorted(side)[inner] for side in ((b.x_min for b in boxes), (b.y_min for b in boxes))]
        self.spacing = max((LEAST, *(side[-1] - side[0] for side in sides if side))) / math.sqrt(self._laid)
        self._everywhere, self._cells, self._levels = {}, {}, {}
        for key, box in self._boxes.items():
            self._enter(key, box)

    def _enter(self, key: Key, box: Box | None) -> None:
        if box is None:
            self._everywhere[key] = None
            return
        level = self._level(box)
        self._levels.setdefault(level, {})[key] = None
        for cell in _cells(box, level):
            self._cells.setdefault(cell, {})[key] = None

    def drop(self, key: Key) -> None:
        """Take a box away, if it is there."""
        box = self._boxes.pop(key, None)
        if box is None:
            self._everywhere.pop(key, None)
            return
        level = self._level(box)
        del self._levels[level][key]
        if not self._levels[level]:
            del self._levels[level]
        for cell in _cells(box, level):
            del self._cells[cell][key]
            if not self._cells[cell]:
                del self._cells[cell]

    def touching(self, box: Box | None) -> set[Key]:
        """The boxes that touch this one; None touches all."""
        if box is None:
            return set(self._boxes)
        found = set(self._everywhere)
        for level, members in self._levels.items():
            size = 2.0**level
            if ((box.x_max - box.x_min) / size + 1) * ((box.y_max - box.y_min) / size + 1) > len(members):
                asked: Iterator[Key] = iter(members)
            else:
                asked = (key for cell in _cells(box, level) for key in self._cells.get(cell, ()))
            found.update(key for key in asked if _touch(self._boxes[key], box))
        return found

    def _level(self, box: Box) -> int:
        """The grid whose cells are at least as large as the box."""
        return math.frexp(max(box.x_max - box.x_min, box.y_max - box.y_min, self.spacing))[1]


def _touch(a: Box | None, b: Box) -> bool:
    return a is None or (a.x_min <= b.x_max and b.x_min <= a.x_max and a.y_min <= b.y_max and b.y_min <= a.y_max)


def _cells(box: Box, level: int) -> Iterator[tuple[int, int, int]]:
    size = 2.0**level
    for x in range(math.floor(box.x_min / size), math.floor(box.x_max / size) + 1):
        for y in range(math.floor(box.y_min / size), math.floor(box.y_max / size) + 1):
            yield level, x, y
