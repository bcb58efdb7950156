"""Where services are to be had: areas of availability along a path (TIP 3, Figure 1).

A service's area is an object region, the user's position an interest region: the four points marked in Figure 1 are two
matches and two unmatches, told by the state-persistent broker of `workbench.brokering`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from workbench.brokering.broker import Broker
from workbench.model.columns import column
from workbench.model.filters import other, own
from workbench.model.pubsub import publications, subscriptions
from workbench.model.regions import region
from workbench.model.scenario import Scenario
from workbench.model.spaces import Position, Space

_PLACE = Space("place", position=Position())


class Passage(NamedTuple):
    """A user enters (`match`) or leaves (`unmatch`) the area of a service."""

    t: int
    kind: str
    service: str


def passages(areas: Mapping[str, Any], path: Iterable[tuple[int, tuple[float, float]]]) -> list[Passage]:
    """When a user on a path enters and leaves the areas of services.

    >>> from workbench.model.shapes import disc
    >>> areas = {"A": disc((0, 0), 10), "B": disc((15, 0), 10)}
    >>> [f"{t}: {kind} {service}" for t, kind, service in passages(areas, [(x, (x, 0.0)) for x in range(-20, 40, 5)])]
    ['-10: match A', '5: match B', '15: unmatch A', '30: unmatch B']
    """
    scenario = Scenario(
        [_PLACE],
        [publications("services", rows="places", regions={"area": region(_PLACE, position=column.position)})],
        [
            subscriptions(
                "users",
                rows="fixes",
                regions={"here": region(_PLACE, position=column.position)},
                filter=own.here.enclosed_by(other.area, space=_PLACE),
            )
        ],
    )
    steps = sorted(path)
    broker = Broker(scenario)
    found: list[Passage] = []
    for name, area in areas.items():
        broker.add("services", name, t=steps[0][0], position=area)
    for number, (t, position) in enumerate(steps):
        messages = broker.add("users", "user", t=t, position=position) if not number else broker.move(
            ("fixes", "user"), position, t=t
        )  # fmt: skip
        messages += broker.advance(t)
        found += [Passage(m.t, m.kind, str(name)) for m in messages for name in sorted(m.publications)]
    return found
