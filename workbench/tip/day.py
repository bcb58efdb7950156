"""A tourist's day: a walk over tables of a city (TIP 3, 1 and 4.3).

The city's own services are there all day: information about restaurants and shops, maps, and advice. Each museum and
each coffee shop has a broker of its own, whose services are to be had near it only. Tables are those of any fixes and
places (`workbench.datasets.city` makes them); positions are metres.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from workbench.tip.services import LocationService, Sight
from workbench.tip.walk import Provider, Walk


def tourist_day(
    fixes: Any,
    mobile: Any,
    places: pd.DataFrame,
    rooms: pd.DataFrame,
    likes: Iterable[str],
    *,
    reach_m: float = 120.0,
    near_m: float = 60.0,
    ahead_m: float = 0.0,
    random_seed: int | None = None,
) -> Walk:
    """The day of one mobile of any table of fixes.

    `places` have ``place, x, y, category, name``, `rooms` ``place, museum, exhibit, geometry``. Sights are told of
    within `reach_m`, a coffee shop is reached within `near_m` of its door, maps are fetched `ahead_m` in advance,
    with a `random_seed` in a random direction.
    """
    path = LocationService.of(fixes, mobile, quality=95).fixes
    providers = (_city(places, reach_m), *_museums(rooms), *_cafes(places, near_m))
    return Walk(path, providers, likes, ahead_m=ahead_m, random_seed=random_seed)


def _city(places: pd.DataFrame, reach_m: float) -> Provider:
    told = places[places["category"].isin(["food", "shop"])]
    sights = tuple(
        Sight(str(row.place), "Place", float(row.x), float(row.y), reach_m, row.category, str(row.name))
        for row in told.itertuples(index=False)
    )
    return Provider("city", sights, advises=True)


def _museums(rooms: pd.DataFrame) -> list[Provider]:
    made = []
    for name, group in rooms.groupby("museum"):
        bounds = group.geometry.bounds
        area = (
            float(bounds.minx.min()) - 5, float(bounds.miny.min()) - 5,
            float(bounds.maxx.max()) + 5, float(bounds.maxy.max()) + 5,
        )  # fmt: skip
        middles = group.geometry.centroid
        sights = tuple(
            Sight(str(place), "Exhibit", float(at.x), float(at.y), 10.0, "art", str(exhibit))
            for place, exhibit, at in zip(group["place"], group["exhibit"], middles)
        )
        made.append(Provider(str(name), sights, area, indoors=True))
    return made


def _cafes(places: pd.DataFrame, near_m: float) -> list[Provider]:
    made = []
    for row in places[places["category"] == "coffee"].itertuples(index=False):
        x, y = float(row.x), float(row.y)
        offer = Sight(f"{row.place}/offer", "Offer", x, y, near_m, "coffee", f"today at {row.name}")
        made.append(Provider(str(row.place), (offer,), (x - near_m, y - near_m, x + near_m, y + near_m), maps=False))
    return made
