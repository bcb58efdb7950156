"""Tourists: a guide that speaks of the room one stands in (Subject Spaces, 1: "tourist services").

Every place is a room, or the disc of ``room_m`` around a point, that publishes its exhibit; every mobile is a visitor
who wants to hear of some kinds of exhibits. Stationary publisher, mobile subscriber. A visitor is told after having
been inside for ``dwell_min`` minutes, because who walks through a room does not look at it, and not again within
``again_h`` hours of such a visit. A shorter one does not count: a receiver at a wall jumps out and in.
"""

from __future__ import annotations

from workbench.model import (
    Scenario,
    Space,
    anything_but,
    column,
    held,
    hours,
    location,
    minutes,
    other,
    own,
    publications,
    reach,
    region,
    subscriptions,
    visits,
)

exhibit = Space("exhibit", kind=str, text=str)


def scenario(dwell_min: float = 2, again_h: float = 12, room_m: float = 10) -> Scenario:
    """Visitors hear of a room after ``dwell_min`` minutes inside, not again within ``again_h`` hours of that.

    Places may have ``exhibit`` (its kind), ``text`` and ``room_m``; fixes may have ``likes``, the one kind of exhibit
    that the visitor wants to hear of.

    >>> scenario(dwell_min=1).subscriptions[0].filter
    held(here m_e room', 1 min) ∧ ¬(max(π - τ : here m_e room'; within 12 h) >= 1 min) ∧ wish m_o exhibit'
    """
    rooms = publications(
        "rooms",
        rows="places",
        regions={
            "room": region(location, position=reach(column.position, column.room_m.or_else(room_m))),
            "exhibit": region(exhibit, kind=column.exhibit.or_else("art"), text=column.text.or_else("Look!")),
        },
    )
    inside = own.here.enclosed_by(other.room, space=location)
    visitors = subscriptions(
        "visitors",
        rows="fixes",
        regions={
            "here": region(location, position=column.position),
            "wish": region(exhibit, kind=column.likes.or_else(anything_but())),
        },
        filter=held(inside, minutes(dwell_min))
        & ~(visits(inside, window=hours(again_h)).max() >= minutes(dwell_min))
        & own.wish.overlaps(other.exhibit, space=exhibit),
    )
    parameters = {"dwell_min": dwell_min, "again_h": again_h, "room_m": room_m}
    return Scenario([location, exhibit], [rooms], [visitors], parameters=parameters, name="tourists")
