"""Proximity: every mobile subscribes, every place publishes, they match while the mobile is near.

A place reaches ``radius_m`` around its point, or its own ``radius_m`` where it has that column; a place that is an area
is reached inside it. The border belongs to it. (m_1km of Subject Spaces, Example 7.)
"""

from __future__ import annotations

from workbench.model import Scenario, column, location, other, own, publications, reach, region, subscriptions


def scenario(radius_m: float = 500) -> Scenario:
    """Mobiles hear of the places that they are within ``radius_m`` of.

    >>> scenario(300).parameters
    {'radius_m': 300}
    """
    places = publications(
        "places",
        rows="places",
        regions={"reach": region(location, position=reach(column.position, column.radius_m.or_else(radius_m)))},
    )
    mobiles = subscriptions(
        "mobiles",
        rows="fixes",
        regions={"here": region(location, position=column.position)},
        filter=own.here.enclosed_by(other.reach, space=location),
    )
    return Scenario([location], [places], [mobiles], parameters={"radius_m": radius_m}, name="proximity")
