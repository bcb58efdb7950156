"""Traffic: who approaches a slow section of a highway is told (Subject Spaces, 5.2).

The highway is a space of one dimension, ``along_m``, read from the fixes' ``x``. One publication, ``jam``, watches the
section [A, B]: while the mean time that the last ``cars`` cars took from A to B is above ``slow_min`` minutes, every
driver before A is told, and advised to take another way (1). Stationary publisher, mobile subscriber; the message is
dynamic content.

Departure: 5.2 gives one formula for what a publication has two parts for. Here the section and the message are object
regions, the mean and "before A" are the filter. A car that is still on the section has no time yet, and counts when it
leaves.
"""

from __future__ import annotations

from workbench.model import (
    Scenario,
    Space,
    any_region,
    between,
    column,
    minutes,
    other,
    own,
    publication,
    region,
    subscriptions,
    visit,
    visits,
)

highway = Space("highway", along_m=float)
news = Space("news", message=str, route=str)


def scenario(
    section_start_m: float = 1_000,
    section_end_m: float = 3_000,
    slow_min: float = 2,
    cars: int = 5,
    route: str = "Leave the highway before the jam.",
) -> Scenario:
    """Drivers before a section hear of a jam while the last ``cars`` cars took over ``slow_min`` minutes on average.

    ``route`` is the way that the message advises to take instead.

    >>> scenario(cars=2).publications[0].filter
    mean(π - τ : any cars.here m_e section; last 2) > 2 min ∧ along_m(here') < [1000]
    """
    on_section = any_region("cars.here").enclosed_by(own.section, space=highway)
    jam = publication(
        "jam",
        regions={
            "section": region(highway, along_m=between(section_start_m, section_end_m)),
            "message": region(news, message="Traffic jam ahead!", route=route),
        },
        filter=(visits(on_section, last=cars).mean(visit.pi - visit.tau) > minutes(slow_min))
        & (other.here["along_m"] < section_start_m),
    )
    drivers = subscriptions("cars", rows="fixes", regions={"here": region(highway, along_m=column.x)})
    parameters = {
        "section_start_m": section_start_m,
        "section_end_m": section_end_m,
        "slow_min": slow_min,
        "cars": cars,
        "route": route,
    }
    return Scenario([highway, news], [jam], [drivers], parameters=parameters, name="traffic")
