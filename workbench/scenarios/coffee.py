"""Coffee: location-aware advertising, with a pause after every cup (Subject Spaces, 5.1).

Every place is a shop that publishes its advertisement; every mobile is a shopper who subscribes to one type of shop. A
shop is told of to shoppers within ``radius_m``, unless the shopper entered *any* shop of that type in the last
``pause_h`` hours. Stationary publisher, mobile subscriber. Static features are the shops' sites and footprints,
dynamic content their advertisements, and a shopper's wish is a preference, which can change.

Departure: 5.1 writes "entered" as i_shop m_e o_coffee_shop, of two regions that have no position. Here a shopper has
entered a shop while the shopper's position is enclosed by the shop's footprint: its polygon, or the disc of ``door_m``
around its point.

Departure: 5.1's publication accepts shoppers with i_shop m_e o_coffee_shop as well. The wish leaves the name and the
advertisement of the shop open, so it can never lie *inside* the offer, which states both; the two have to overlap.
"""

from __future__ import annotations

from workbench.model import (
    Scenario,
    Space,
    any_region,
    column,
    hours,
    location,
    now,
    other,
    own,
    publications,
    reach,
    region,
    subscriptions,
    tau,
)

shop = Space("shop", shop_type=str, shop_name=str, ad=str) | location


def scenario(
    radius_m: float = 1_000, pause_h: float = 5, door_m: float = 25, shop_type: str = "coffee"
) -> Scenario:
    """Shoppers hear of shops within ``radius_m``, but not within ``pause_h`` hours of entering any of them.

    Places may have ``category`` (the type of shop; without one they are of the type that is asked for), ``name``,
    ``ad`` and ``door_m``; fixes may have ``wish``, the type of shop that the shopper looks for.

    >>> scenario(pause_h=3).subscriptions[0].filter
    here m_1000 site' ∧ now - τ(here m_e any shops.offer(shop_type={'coffee'})) > 3 h
    """
    shops = publications(
        "shops",
        rows="places",
        regions={
            "site": region(location, position=column.position),
            "offer": region(
                shop,
                shop_type=column.category.or_else(shop_type),
                shop_name=column.name.or_else("a shop"),
                ad=column.ad.or_else("Come in!"),
                position=reach(column.position, column.door_m.or_else(door_m)),
            ),
        },
        filter=other.here.within(radius_m, own.site, space=location) & other.wish.overlaps(own.offer, space=shop),
    )
    entered = own.here.enclosed_by(any_region(shops.offer, shop_type=shop_type), space=location)
    shoppers = subscriptions(
        "shoppers",
        rows="fixes",
        regions={
            "here": region(location, position=column.position),
            "wish": region(shop, shop_type=column.wish.or_else(shop_type)),
        },
        filter=own.here.within(radius_m, other.site, space=location) & (now - tau(entered) > hours(pause_h)),
    )
    parameters = {"radius_m": radius_m, "pause_h": pause_h, "door_m": door_m, "shop_type": shop_type}
    return Scenario([location, shop], [shops], [shoppers], parameters=parameters, name="coffee")
