"""Callers: the nearest station follows whoever calls for help (Subject Spaces, 1: "tracking mobile 911 callers").

Every mobile publishes where it is and whether it calls; every place is a station that subscribes to the calls to which
no other station is nearer. Mobile publisher, stationary subscriber. A caller who moves is handed over: one station is
told that the call has left it, and another one that it has come. Who does not call is told of to nobody, whatever a
station asks for: that is the publication's own filter.
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

call = Space("call", state=Enumerated("state", ("quiet", "calling"))) | location


def scenario(stations: int = 1, at_most_m: float = 20_000) -> Scenario:
    """The ``stations`` nearest stations, up to ``at_most_m`` away, hear of who calls.

    Fixes have ``state`` (quiet or calling); who has none is quiet.

    >>> scenario().subscriptions[0].filter
    call' m_n[stations.site] site ∧ call' m_20000 site
    """
    callers = publications(
        "callers",
        rows="fixes",
        regions={"call": region(call, state=column.state.or_else("quiet"), position=column.position)},
        filter=own.call["state"] == "calling",
    )
    sites = subscriptions(
        "stations",
        rows="places",
        regions={"site": region(location, position=column.position)},
        filter=other.call.nearest(own.site, space=location, k=stations, among="stations.site")
        & other.call.within(at_most_m, own.site, space=location),
    )
    parameters = {"stations": stations, "at_most_m": at_most_m}
    return Scenario([location, call], [callers], [sites], parameters=parameters, name="callers")
