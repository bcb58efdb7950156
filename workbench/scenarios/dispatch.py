"""Dispatch: which units could come now (Subject Spaces, 1: "tracking and dispatching mobile resources").

Every mobile is a unit that publishes what it is and whether it is free; every place is a site that subscribes to its
nearest free units. Mobile publisher, stationary subscriber. A unit that becomes busy, or one that drives past another,
changes what a third one means to a site.
"""

from __future__ import annotations

from workbench.model import (
    Enumerated,
    Scenario,
    Space,
    column,
    location,
    other,
    own,
    publications,
    region,
    subscriptions,
)

unit = Space("unit", kind=str, status=Enumerated("status", ("free", "busy"))) | location


def scenario(radius_m: float = 5_000, units: int = 2, kind: str = "ambulance") -> Scenario:
    """Sites hear of their ``units`` nearest free units of one kind, up to ``radius_m`` away.

    Fixes may have ``kind`` and ``status`` (free or busy); without them a unit is of the kind that is asked for, and
    free.

    >>> scenario(units=1).subscriptions[0].filter
    site m_n[crews.unit(status={'free'}, kind={'ambulance'})] unit' ∧ site m_5000 unit'
    """
    crews = publications(
        "crews",
        rows="fixes",
        regions={
            "unit": region(
                unit,
                kind=column.kind.or_else(kind),
                status=column.status.or_else("free"),
                position=column.position,
            )
        },
    )
    sites = subscriptions(
        "sites",
        rows="places",
        regions={"site": region(location, position=column.position)},
        filter=own.site.nearest(other.unit, space=location, k=units, among=crews.unit, status="free", kind=kind)
        & own.site.within(radius_m, other.unit, space=location),
    )
    parameters = {"radius_m": radius_m, "units": units, "kind": kind}
    return Scenario([location, unit], [crews], [sites], parameters=parameters, name="dispatch")
