"""A replay through a federation: the updates of tables, each client at a broker, all messages counted.

Geographic federation (A Federated Broker Architecture, IV: domains by area): each client attaches to the broker
nearest to where it is, and moves on when another one becomes nearest by more than ``keep_m``, so that who lives on a
border does not change brokers all day.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

from workbench import geometry
from workbench.brokering.federation.overlay import Overlay
from workbench.brokering.federation.simulated import Congestion, Delay, Federation
from workbench.brokering.federation.state import Rules
from workbench.errors import ScenarioError
from workbench.model.scenario import Scenario
from workbench.tables import changes, inputs


def federated(
    scenario: Scenario,
    fixes: Any,
    places: Any = None,
    *,
    overlay: Overlay,
    rules: Rules | None = None,
    delay: float | Delay = 0,
    mobility: bool = True,
    homes: Mapping[Hashable, str] | None = None,
    keep_m: float = 0.0,
    congestion: Congestion | None = None,
    patience: float | None = None,
    until: int | None = None,
) -> Federation:
    """Replay tables through a federation.

    Clients attach to the nearest broker, and with ``mobility`` go on attaching as they move; ``homes`` says instead
    which broker each client, by id, stays with. ``patience`` is the `Federation`'s.
    Time goes on to ``until``, if that is given.

    >>> import pandas as pd
    >>> from workbench.brokering.federation.overlay import geographic
    >>> from workbench.scenarios.proximity import scenario
    >>> fixes = pd.DataFrame({"mobile": [7, 7, 7], "t": [1, 2, 3], "x": [0, 900, 1500], "y": 0})
    >>> places = pd.DataFrame({"place": ["cafe"], "x": [1000], "y": [0]})
    >>> brokers = geographic({"west": (0, 0), "east": (1000, 0)})
    >>> run = federated(scenario(radius_m=200), fixes, places, overlay=brokers)
    >>> run.notifications.kind.tolist(), run.device(7).home
    (['match', 'unmatch'], 'east')
    """
    data = inputs(scenario, fixes, places)
    updates, _ = changes(data)
    if homes is None and overlay.metric != data.metric:
        raise ScenarioError(
            f"the brokers have {overlay.metric} positions, and the data has {data.metric} ones; make the overlay with "
            f"metric={data.metric!r}"
        )
    federation = Federation(
        scenario,
        overlay,
        rules=rules,
        delay=delay,
        patience=patience,
        congestion=congestion,
        clock=data.clock,
        metric=data.metric,
    )
    profiles = {p.profiles for p in scenario.populations}
    for t in sorted(updates):
        if until is not None and t > until:
            break
        for change in updates[t]:
            at = data.clock.shown(t)
            if change.client.table in profiles:
                federation.change(change, t=at)
                continue
            place = change.values.get("position")
            device = federation.devices.get(change.client)
            home = _home(federation, change.client.id, device.home if device else None, place, homes, keep_m)
            if device is not None and mobility and homes is None and home != device.home:
                federation.attach(change.client, home, t=at)
            federation.change(change, at=home, t=at)
    if until is not None:
        federation.advance(data.clock.shown(until))
    federation.settle()
    return federation


def _home(
    federation: Federation,
    id: Any,
    before: str | None,
    place: Any,
    homes: Mapping[Hashable, str] | None,
    keep_m: float,
) -> str:
    if homes is not None:
        return homes[id]
    if place is None:
        return before or min(federation.brokers)
    nearest = federation.overlay.nearest(place.x, place.y)
    if before is None or before == nearest or not keep_m:
        return nearest
    away = [_distance(federation.overlay, broker, place) for broker in (before, nearest)]
    return nearest if away[0] - away[1] > keep_m else before


def _distance(overlay: Overlay, broker: str, place: Any) -> float:
    x, y = overlay.positions[broker]
    if overlay.metric == geometry.WGS84:
        return geometry.geodesic_distance_m(x, y, place.x, place.y)
    return math.dist((x, y), (place.x, place.y))
