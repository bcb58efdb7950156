"""The museum of sections 5 and 7 as a walk (TIP 3, 5 and 7).

A user walks past a cathedral, through a museum, and on to a fountain. Inside, the quality of GPS falls, RFID tags can
be read, an auxiliary service translates them, rules prefer the better data, the museum's information service and map
join; on leaving, all of it reverses.
"""

from __future__ import annotations

from workbench.tip.services import Fix, Sight
from workbench.tip.walk import SECOND, Provider, Walk

PATH = tuple(Fix(t * SECOND, -300.0 + 10 * t, 0.0, 95) for t in range(61))
CITY = Provider(
    "city",
    (
        Sight("cathedral", "Sight", -200, 0, 30, "history", "old"),
        Sight("fountain", "Sight", 200, 0, 30, "art", "wet"),
    ),
)
MUSEUM = Provider(
    "museum",
    (
        Sight("vase", "Exhibit", -20, 0, 15, "art", "blue"),
        Sight("coin", "Exhibit", 30, 0, 15, "history", "round"),
    ),
    area=(-60.0, -60.0, 60.0, 60.0),
    indoors=True,
)


def visit(inside: int = 30) -> Walk:
    """The walk through the museum; `inside` is the quality of GPS there.

    >>> [sight for sight in dict.fromkeys(id for _, id in visit().shown.shown)]
    ['cathedral', 'vase', 'coin', 'fountain']
    """
    return Walk(PATH, (CITY, MUSEUM), ("art", "history"), poor=inside)
