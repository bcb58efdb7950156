"""Advertising: shops choose whom they address, people choose whether they are addressed (Subject Spaces, 1 and 5.1).

The shops and shoppers of `workbench.scenarios.coffee`, each with one more condition. "Shops can advertise products to
passersby who are in a certain age range": a shop has a region in the space of people, its target, and addresses those
who are in it. "Some users may not like to receive advertisements": a person has opted in, or hears nothing. Neither
side knows the other's condition, and a pair matches where both are met.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workbench.model import Scenario, Space, at_least, between, boolean, column, other, own, region
from workbench.scenarios import coffee

person = Space("person", age=int, adverts=boolean)


def scenario(
    radius_m: float = 1_000,
    pause_h: float = 5,
    door_m: float = 25,
    shop_type: str = "coffee",
    min_age: int = 0,
    max_age: int = 150,
    profiles: Any = None,
) -> Scenario:
    """Shops address people from ``min_age`` to ``max_age`` within ``radius_m``, who hear of them if they opted in.

    Places may have ``min_age`` and ``max_age`` of their own, and what `coffee` reads. ``profiles`` is a table (or its
    path) with ``id``, ``age``, ``adverts`` (true for who opted in) and, where they change, ``t``; without it the fixes
    may have these columns. Who states no age is in every target, who says nothing about advertisements has opted in.

    >>> scenario(min_age=18, max_age=30).publications[0].filter
    here' m_1000 site ∧ wish' m_o offer ∧ me' m_o target
    """
    plain = coffee.scenario(radius_m, pause_h, door_m, shop_type)
    (shops,), (shoppers,) = plain.publications, plain.subscriptions
    ages = between(column.min_age.or_else(min_age), column.max_age.or_else(max_age))
    shops = replace(
        shops,
        regions=(*shops.regions, ("target", region(person, age=ages))),
        filter=shops.filter & other.me.overlaps(own.target, space=person),
    )
    me = region(person, age=column.age.or_else(at_least(0)), adverts=column.adverts.or_else(True))
    shoppers = replace(
        shoppers,
        profiles=None if profiles is None else "profiles",
        regions=(*shoppers.regions, ("me", me)),
        filter=shoppers.filter & (own.me["adverts"] == True),  # noqa: E712 - a comparison of regions
    )
    return Scenario(
        [*plain.spaces, person],
        [shops],
        [shoppers],
        tables={} if profiles is None else {"profiles": profiles},
        parameters={**plain.parameters, "min_age": min_age, "max_age": max_age},
        name="advertising",
    )
