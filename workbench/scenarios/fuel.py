"""Fuel: cheap petrol nearby, when the tank is low (Subject Spaces, Examples 7 to 9).

Every place is a petrol station that targets cars with less than ``target_percent`` in the tank; every mobile is a car
whose driver wants to hear of a station when the fuel is in the refuel level that the driver prefers, and the price is
right. Stationary publisher, mobile subscriber. Prices are dynamic content (places with ``t`` and ``op``), refuel
levels preferences that change (a column of the fixes).

Departure: Example 7 says "and the gas price is cheap", and its formula has no price. Here the driver has a region
``wish`` in the space of petrol, which has to overlap the station's. How ``refuel_level`` meets ``fuel`` stands in
`workbench.model.filters`.
"""

from __future__ import annotations

from workbench.model import (
    Number,
    Scenario,
    Space,
    at_most,
    below,
    column,
    location,
    other,
    own,
    percentage,
    publications,
    region,
    subscriptions,
)

car = Space("car", plate_number=str, fuel=percentage)
pref = Space("pref", refuel_level=percentage)
gas = Space("gas", price=Number("price", 0, unit="cent"))


def scenario(
    radius_m: float = 1_000, target_percent: float = 70, refuel_percent: float = 20, price_cent: float = 70
) -> Scenario:
    """Drivers hear of stations within ``radius_m`` when their fuel is low and the price at most ``price_cent``.

    Fixes have ``fuel`` (per cent), and may have ``plate``, ``refuel_level`` (the driver's own threshold instead of
    ``refuel_percent``) and ``max_price``; places have ``price`` (cent a litre).

    >>> scenario().subscriptions[0].filter
    here m_1000 site' ∧ fuel(car) ⊆ refuel_level(pref) ∧ wish m_o gas'
    """
    stations = publications(
        "stations",
        rows="places",
        regions={
            "site": region(location, position=column.position),
            "gas": region(gas, price=column.price),
            "car": region(car, fuel=below(target_percent)),
        },
        filter=own.site.within(radius_m, other.here, space=location) & other.car.overlaps(own.car, space=car),
    )
    drivers = subscriptions(
        "drivers",
        rows="fixes",
        regions={
            "here": region(location, position=column.position),
            "car": region(car, plate_number=column.plate.or_else("unknown"), fuel=column.fuel),
            "pref": region(pref, refuel_level=below(column.refuel_level.or_else(refuel_percent))),
            "wish": region(gas, price=at_most(column.max_price.or_else(price_cent))),
        },
        filter=own.here.within(radius_m, other.site, space=location)
        & own.car["fuel"].within(own.pref["refuel_level"])
        & own.wish.overlaps(other.gas, space=gas),
    )
    parameters = {
        "radius_m": radius_m,
        "target_percent": target_percent,
        "refuel_percent": refuel_percent,
        "price_cent": price_cent,
    }
    return Scenario([location, car, pref, gas], [stations], [drivers], parameters=parameters, name="fuel")
