"""Game: catch, on the streets of a city (Subject Spaces, 1: "location-based games").

Every mobile is a player of a team that hunts another one. A player catches one of the hunted by staying within
``catch_m`` for ``hold_s`` seconds, and nobody is caught in a refuge: a place, or the disc of ``refuge_m`` around its
point. With three teams in a circle, whoever hunts is hunted. Mobile publisher,
mobile subscriber. Players publish themselves while they can be caught, and subscribe to whom they catch; refuges
publish themselves to whoever is inside. A match of hunters and players is a catch, and lasts until one of the two
breaks away. One client is a publication and two subscriptions, and its position is one region's content.
"""

from __future__ import annotations

from workbench.model import (
    Scenario,
    Space,
    any_region,
    anything_but,
    column,
    held,
    location,
    other,
    own,
    publications,
    reach,
    region,
    seconds,
    subscriptions,
)

player = Space("player", team=str) | location
refuge = Space("refuge", name=str) | location


def scenario(catch_m: float = 50, hold_s: float = 30, refuge_m: float = 100) -> Scenario:
    """Players catch those whom they hunt and stay within ``catch_m`` of for ``hold_s`` seconds, outside of refuges.

    Fixes have ``team``, and may have ``hunts``, the team that the player hunts; who names none hunts everybody. Places
    may have ``name`` and ``refuge_m``.

    >>> scenario(catch_m=20).subscriptions[0].filter
    held(here m_20 player', 30 s) ∧ prey m_o player'
    """
    refuges = publications(
        "refuges",
        rows="places",
        regions={
            "area": region(
                refuge,
                name=column.name.or_else("a refuge"),
                position=reach(column.position, column.refuge_m.or_else(refuge_m)),
            )
        },
    )
    here = region(location, position=column.position)
    players = publications(
        "players",
        rows="fixes",
        regions={"player": region(player, team=column.team, position=column.position)},
        filter=~own.player.enclosed_by(any_region(refuges.area), space=location),
    )
    hunters = subscriptions(
        "hunters",
        rows="fixes",
        regions={"here": here, "prey": region(player, team=column.hunts.or_else(anything_but()))},
        filter=held(own.here.within(catch_m, other.player, space=location), seconds(hold_s))
        & own.prey.overlaps(other.player, space=player),
    )
    walkers = subscriptions(
        "walkers",
        rows="fixes",
        regions={"here": here},
        # in the space of refuges, because a player is a region of a space with a position, too
        filter=own.here.overlaps(other.area, space=refuge),
    )
    parameters = {"catch_m": catch_m, "hold_s": hold_s, "refuge_m": refuge_m}
    return Scenario(
        [location, player, refuge], [players, refuges], [hunters, walkers], parameters=parameters, name="game"
    )
