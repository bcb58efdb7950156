"""Cloaked positions: a region in place of a point (TIP 3, 2 and 7).

Section 2 names cloaking as a means of privacy, section 7 asks how much has to be told. Here a position becomes the cell
of a grid in which it lies, or the smallest of ever larger cells in which `k` users are (*k-anonymous*: none of them can
be told from the others by it). Services match the region by overlap, so that nothing at the user's true position is
missed; what is elsewhere in the cell comes in addition. `cost` counts both, against the true position, and beside
it what a service would answer that takes the middle of the cell for the position. `Cloaked` is a location service
that tells cells only: the position itself never leaves it.
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
LARGEST = 2.0**20


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
    """The smallest cell, of cells doubled again and again, that holds the position and at least k users.

    >>> anonymous_cell((130, 20), [(130, 20), (150, 30), (320, 90)], k=3, cell_m=100)
    (0.0, 0.0, 400.0, 400.0)
    """
    everybody = list(users)
    size = float(cell_m)
    while size <= LARGEST:
        x0, y0, x1, y1 = cell_of(position, size)
        if sum(x0 <= x < x1 and y0 <= y < y1 for x, y in everybody) >= k:
            return x0, y0, x1, y1
        size *= 2
    raise DataError(f"fewer than {k} users within {LARGEST:.0f} m of {position}; expected a smaller k")


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
