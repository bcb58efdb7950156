"""Cloaked positions: a region in place of a point (TIP 3, 2 and 7).

Section 2 names cloaking as a means of privacy, section 7 asks how much has to be told. Here a position becomes the cell
of a grid in which it lies, or a larger one that at least `k` users tell at that time. They are *k-anonymous*: none of
them can be told from the others, even if it is known where everybody is. That k users are in the cell would not be
enough, where so many of them are in a part of it that they tell that part.

Services match the region by overlap, so that nothing at the user's true position is missed; what is elsewhere in the
cell comes in addition. `cost` counts both, against the true position, and beside it what a service would answer that
takes the middle of the cell for the position. `Cloaked` is a location service that tells cells only: the position
itself never leaves it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import floor
from typing import Any, NamedTuple

from workbench.errors import DataError
from workbench.model.shapes import box
from workbench.tip.bodies import body, fields
from workbench.tip.descriptions import ServiceDescription
from workbench.tip.events import Event
from workbench.tip.host import Act, Behaviour, Publish
from workbench.tip.services import Sight, suggested

Place = tuple[float, float]
Cell = tuple[float, float, float, float]


def cell_of(position: Place, cell_m: float) -> Cell:
    """The cell of a grid in which a position lies.

    >>> cell_of((130, -20), 100)
    (100.0, -100.0, 200.0, 0.0)
    """
    if not cell_m > 0:
        raise DataError(f"cells of {cell_m!r} m; expected more than 0")
    x, y = (floor(value / cell_m) * float(cell_m) for value in position)
    return x, y, x + cell_m, y + cell_m


def anonymous_cell(position: Place, users: Iterable[Place], k: int, cell_m: float) -> Cell:
    """The cell that a user at a position tells, so that at least k users tell the same one.

    The cell that holds everybody is divided into four again and again, down to cells of `cell_m`. Of a quadrant with
    fewer than k users nobody tells: they tell the cell that was divided, and where they are too few for it, so do some
    of the others. So one who knows where everybody is still has k users to choose from.

    >>> users = [(130, 20), (150, 30), (160, 30), (320, 90)]
    >>> anonymous_cell((160, 30), users, k=2, cell_m=100), anonymous_cell((320, 90), users, k=2, cell_m=100)
    ((100.0, 0.0, 200.0, 100.0), (0.0, 0.0, 400.0, 400.0))
    """
    everybody = list(users)
    everybody += [] if position in everybody else [position]
    if len(everybody) < k:
        raise DataError(f"{len(everybody)} users; expected at least {k}, or a smaller k")
    x0, _, x1, _ = cell_of(position, cell_m)
    size = 2 * (x1 - x0)
    while not all(-size / 2 <= value < size / 2 for user in everybody for value in user):
        size *= 2
    x0 = y0 = -size / 2
    while size > cell_m:
        size /= 2
        quadrants: dict[Place, list[Place]] = {}
        for x, y in everybody:
            quadrants.setdefault((x0 + size * (x >= x0 + size), y0 + size * (y >= y0 + size)), []).append((x, y))
        staying = _staying(list(quadrants.values()), k)
        if position in staying:
            return x0, y0, x0 + 2 * size, y0 + 2 * size
        (x0, y0), inside = next((corner, inside) for corner, inside in quadrants.items() if position in inside)
        everybody = [user for user in inside if user not in staying]
    return x0, y0, x0 + size, y0 + size


def _staying(quadrants: list[list[Place]], k: int) -> set[Place]:
    """Who tells the cell that was divided: nobody, or at least k; k or more, or nobody, are left in each quadrant."""
    few = [user for inside in quadrants for user in inside if len(inside) < k]
    if not 0 < len(few) < k:
        return set(few)
    # Some of the fullest quadrant join them, if enough are left there; else all of the one with the fewest do.
    rich = sorted((inside for inside in quadrants if len(inside) >= k), key=lambda users: (len(users), sorted(users)))
    joining: set[Place] = set()
    number = len(few)
    for user in sorted(rich[-1]):
        if number < k or user in joining:
            joining.add(user)
            number += 1
    enough = len(rich[-1]) - (number - len(few)) >= k
    return {*few, *(joining if enough else rich[0])}


class Cost(NamedTuple):
    """Items that are right, told in addition, and missed, over all positions."""

    right: int
    wrong: int
    missed: int


def cost(
    places: Iterable[tuple[Place, Cell]], sights: Iterable[Sight], likes: Iterable[str], *, overlap: bool = True
) -> Cost:
    """What cloaking costs: the items named for a cell (or, without overlap, for its middle) against the true ones.

    >>> near = [Sight("s", "Sight", 0, 0, 10, "art"), Sight("t", "Sight", 90, 0, 10, "art")]
    >>> places = [((5.0, 5.0), cell_of((5.0, 5.0), 100))]
    >>> cost(places, near, ["art"]), cost(places, near, ["art"], overlap=False)
    (Cost(right=1, wrong=1, missed=0), Cost(right=0, wrong=0, missed=1))
    """
    sights, likes = tuple(sights), tuple(likes)
    right = wrong = missed = 0
    for position, cell in places:
        true = {sight.id for sight in suggested(sights, likes, position)}
        middle = ((cell[0] + cell[2]) / 2, (cell[1] + cell[3]) / 2)
        named = {sight.id for sight in suggested(sights, likes, box(*cell) if overlap else middle)}
        right, wrong, missed = right + len(true & named), wrong + len(named - true), missed + len(true - named)
    return Cost(right, wrong, missed)


@dataclass(frozen=True)
class Cloaked:
    """A location service behind a cloak: what it publishes are the cells of positions."""

    location: Behaviour
    cell: Callable[[Place], Cell]

    @property
    def description(self) -> ServiceDescription:
        return self.location.description

    def react(self, memory: Any, happening: Event | str, now: int) -> tuple[Any, tuple[Act, ...]]:
        memory, acts = self.location.react(memory, happening, now)
        return memory, tuple(self._cloaked(act) if isinstance(act, Publish) else act for act in acts)

    def _cloaked(self, act: Publish) -> Publish:
        said = fields(act.body)
        x0, y0, x1, y1 = self.cell((float(said["x"][0]), float(said["y"][0])))
        return act._replace(body=body(x0=x0, y0=y0, x1=x1, y1=y1))
