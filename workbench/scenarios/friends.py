"""Friends: people on the move who hear of each other (Subject Spaces, 3: one device is publisher and subscriber).

Every mobile publishes its presence and subscribes to that of others; a client never hears of itself. Mobile publisher,
mobile subscriber. A profile says a person's role and present context (2.1: "in a meeting, at sleep"), ``seeks`` is a
preference that changes. Two people are near from ``near_m`` on and until they are more than ``far_m`` apart, so that
jitter at a border says nothing.
"""

from __future__ import annotations

from typing import Any

from workbench.model import (
    Enumerated,
    Scenario,
    Space,
    anything_but,
    column,
    latch,
    location,
    other,
    own,
    publications,
    region,
    subscriptions,
)

CONTEXTS = ("free", "in a meeting", "asleep")
profile = Space("profile", role=str, context=Enumerated("context", CONTEXTS))


def scenario(near_m: float = 200, far_m: float = 250, profiles: Any = None) -> Scenario:
    """People hear of others whom they seek, who are free, and near.

    ``profiles`` is a table (or its path) with ``id``, ``role``, ``context``, ``seeks`` and, where they change, ``t``;
    without it the fixes may have these columns. Who has no role is a friend, who has no context is free, who seeks
    nothing in particular seeks everybody.

    >>> scenario().publications[0].filter
    context(me) = {'free'}
    """
    joined = None if profiles is None else "profiles"
    here = region(location, position=column.position)
    presence = publications(
        "presence",
        rows="fixes",
        profiles=joined,
        regions={
            "here": here,
            "me": region(profile, role=column.role.or_else("friend"), context=column.context.or_else("free")),
        },
        filter=own.me["context"] == "free",
    )
    near = own.here.within(near_m, other.here, space=location)
    far = ~own.here.within(far_m, other.here, space=location)
    seekers = subscriptions(
        "seekers",
        rows="fixes",
        profiles=joined,
        regions={"here": here, "wish": region(profile, role=column.seeks.or_else(anything_but()))},
        filter=latch(on=near, off=far) & own.wish.contains(other.me, space=profile),
    )
    return Scenario(
        [location, profile],
        [presence],
        [seekers],
        tables={} if profiles is None else {"profiles": profiles},
        parameters={"near_m": near_m, "far_m": far_m},
        name="friends",
    )
