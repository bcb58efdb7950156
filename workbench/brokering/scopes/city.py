"""A city under a graph of scopes: where something is and who may see it, together.

    Mall -> Centre -> City       Harbour -> City        Private -> City        Depot -> Professional -> City

A mall within a district, districts within the city, and two kinds of drivers. What the mall lets out are the places
that open to the street, what districts let out is all but flyers: of a flyer one hears in its own district only. The
depots sell fuel to professionals, and what is in `Professional` stays there: private drivers do not see it, however
near it is. Since nobody is influenced by what he cannot see, the *nearest* station of a private driver is the nearest
of those that he sees.
"""

from __future__ import annotations

import pandas as pd

from workbench.brokering.scopes.graph import ScopeGraph, graph
from workbench.brokering.scopes.interfaces import kinds
from workbench.model import Scenario, Space, column, location, other, own, publications, region, subscriptions

place = Space("place", kind=str) | location

PLACES = pd.DataFrame(
    [
        ("shoes", "Mall", "shop", 0.0),
        ("cinema", "Mall", "street", 20.0),
        ("kiosk", "Centre", "shop", 60.0),
        ("flyer", "Centre", "flyer", 80.0),
        ("pump", "Harbour", "fuel", 400.0),
        ("depot", "Depot", "fuel", 150.0),
    ],
    columns=["place", "scope", "kind", "x"],
).assign(y=0.0)
"""Along one street, each in its scope."""

FIXES = pd.DataFrame(
    [
        ("ann", "Mall", 1, 10.0),
        ("bob", "Centre", 1, 10.0),
        ("cid", "Harbour", 1, 10.0),
        ("pia", "Private", 1, 120.0),
        ("tom", "Professional", 1, 120.0),
        ("ann", "Mall", 5, 900.0),
    ],
    columns=["mobile", "scope", "t", "x"],
).assign(y=0.0)
"""Who is where: everybody at the mall but the drivers; ann leaves."""


def city() -> ScopeGraph:
    """The districts, the mall and the drivers, with everybody in it.

    >>> city().visible("pia", "pump"), city().members("Professional")
    (True, ['Depot', 'tom'])
    """
    rows = pd.concat([PLACES.rename(columns={"place": "name"}), FIXES.rename(columns={"mobile": "name"})])
    members = dict.fromkeys(rows[["name", "scope"]].itertuples(index=False, name=None))
    made = graph(
        "Mall->Centre", "Centre->City", "Harbour->City", "Private->City", "Depot->Professional",
        "Professional->City", *members,
    )  # fmt: skip
    made = made.with_interface("Mall", output=kinds("street"))
    for district in ("Centre", "Harbour"):
        made = made.with_interface(district, output=kinds("shop", "street", "fuel"))
    return made.with_interface("Professional", output=kinds())


def near(radius_m: float = 100) -> Scenario:
    """Everybody hears of the places within ``radius_m``."""
    here, site = region(location, position=column.position), region(place, kind=column.kind, position=column.position)
    return Scenario(
        [location, place],
        [publications("places", rows="places", regions={"site": site})],
        [subscriptions("people", rows="fixes", regions={"here": here},
                       filter=own.here.within(radius_m, other.site, space=location))],
    )  # fmt: skip


def nearest_fuel() -> Scenario:
    """Everybody hears of the nearest station."""
    here, site = region(location, position=column.position), region(place, kind=column.kind, position=column.position)
    nearest = own.here.nearest(other.site, space=location, among="stations.site")
    return Scenario(
        [location, place],
        [publications("stations", rows="places", regions={"site": site})],
        [subscriptions("drivers", rows="fixes", regions={"here": here}, filter=nearest)],
    )


def fuel() -> pd.DataFrame:
    """The stations among the places."""
    return PLACES[PLACES["kind"] == "fuel"]
