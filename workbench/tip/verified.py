"""The worlds that are verified: two brokers and three services, and what the services do (TIP 3, 8).

    python -m workbench.tip.verified            every world, explored here and checked by SPIN (``make verify``)

Each script repeats what section 8 lists: services register, publish, are stalled, deregister, vanish and return, change
their quality, and a user turns to one of two.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.tip.descriptions import ServiceDescription
from workbench.tip.events import Event
from workbench.tip.host import Act, Advertise, Leave, Publish, Subscribe, Unsubscribe, Withdraw
from workbench.tip.inputs import Disconnect, Disconnected, Shutdown, Start
from workbench.tip.interleavings import DIE, JOIN, MEET, RETURN, SHOW, Plan, Script
from workbench.tip.promela import promela
from workbench.tip.rules import Advertisement, Condition, Rule
from workbench.tip.spin import check
from workbench.tip.tabulated import tabulated
from workbench.tip.verify import explore

LOCATION = Advertisement("Location", "location")
INFORMATION = Advertisement("Information", "information")


@dataclass(frozen=True)
class Quiet:
    """A service that says what it is and then does nothing."""

    description: ServiceDescription

    def react(self, memory: Any, happening: Event | str, now: int) -> tuple[Any, tuple[Act, ...]]:
        return memory, ()


@dataclass(frozen=True)
class Answering(Quiet):
    """A service that answers every event of one type."""

    to: str
    answer: str
    cacheable: bool = False

    def react(self, memory: Any, happening: Event | str, now: int) -> tuple[Any, tuple[Act, ...]]:
        if isinstance(happening, Event) and happening.type == self.to:
            return memory, (
                Publish(self.answer, happening.body, relates_to=(happening,), cacheable=self.cacheable),
            )
        return memory, ()


def publishing(*advertisements: Advertisement, category: str = "location") -> Quiet:
    return Quiet(ServiceDescription(category, advertisements=advertisements))


def subscribing(*types: str, category: str = "display", **more: Any) -> Quiet:
    return Quiet(ServiceDescription(category, subscriptions=types, **more))


GUIDE = Answering(
    ServiceDescription(
        "informative", advertisements=(INFORMATION,), conditions=(Condition("location"),),
        groups=((Rule(event_type="Location", quality=50),),),
    ),
    "Location", "Information",
)  # fmt: skip
POOR = Advertise(replace(LOCATION, quality=20))
TAP = Quiet(ServiceDescription("input", advertisements=(Advertisement("Tap", "user-input"),), subscriptions=("Tap",)))


def around(*acts: Any, again: int | None = None) -> tuple[Script, ...]:
    """GPS and a display at the client, a guide that needs locations at the server; GPS acts."""
    return (
        Script("gps", "client", publishing(LOCATION), acts, again),
        Script("guide", "server", GUIDE, (JOIN,), listens=False),
        Script("display", "client", subscribing("Information"), (JOIN,)),
    )


THERE = Script("there", "server", subscribing("Location"), (JOIN,))
PROMISED = replace(LOCATION, interval=1)


def gps(*acts: Any, advertisement: Advertisement = LOCATION) -> Script:
    return Script("gps", "client", publishing(advertisement), (JOIN, *acts))


WORLDS: dict[str, tuple[tuple[Script, ...], Plan]] = {
    "publish": (around(JOIN, Publish("Location")), MEET),
    "die": (around(JOIN, Publish("Location"), DIE), MEET),
    "return": (around(JOIN, DIE, RETURN, Publish("Location")), MEET),
    "leave": (around(JOIN, Publish("Location"), Leave()), MEET),
    "poor": (around(JOIN, POOR, Publish("Location")), MEET),
    "for ever": (around(JOIN, DIE, RETURN, again=1), MEET),
    "input": ((
        Script("finger", "client", TAP, (JOIN, Publish("Tap"))),
        Script("map", "client", subscribing("Tap"), (JOIN, SHOW)),
        Script("list", "client", subscribing("Tap"), (JOIN, SHOW)),
    ), MEET),
    "many": ((
        Script("gps", "client", publishing(LOCATION), (JOIN, Publish("Location"))),
        Script("here", "client", subscribing("Location"), (JOIN, Leave())),
        Script("there", "server", subscribing("Location"), (JOIN,)),
    ), MEET),
    "shut down": (around(JOIN, Publish("Location")), (*MEET, ("client", Shutdown()))),
    "restart": (
        (gps(RETURN, Publish("Location")), THERE),
        (*MEET, ("client", Shutdown(keep=True)), ("client", Start()), *MEET),
    ),
    "cut": ((gps(Publish("Location")), THERE), (*MEET, ("client", Disconnected("server")), *MEET)),
    "part": ((gps(Publish("Location")), THERE), (*MEET, ("client", Disconnect("server")), *MEET)),
    "withdraw": ((gps(Withdraw("Location"), Publish("Location")), THERE), MEET),
    "far": ((gps(Publish("Location"), advertisement=PROMISED), THERE), MEET),
    "silent": (
        (
            gps(Publish("Location"), advertisement=PROMISED),
            Script("map", "client", subscribing("News"), (JOIN, Subscribe("Location"), Unsubscribe("Location"))),
        ),
        MEET,
    ),
}  # fmt: skip


def main() -> int:
    """Explore every world, then have SPIN check the same tables; 1 where something does not hold."""
    failed = 0
    print(f"{'world':10}{'states':>12}{'SPIN':>12}{'transitions':>12}{'SPIN':>12}{'claims':>12}")
    for name, world in WORLDS.items():
        explored = explore(*world)
        with tempfile.TemporaryDirectory() as folder:
            checked = check(promela(tabulated(*world)), Path(folder))
        violated = [f"{one.claim} is violated: {' / '.join(one.trail)}" for one in checked if one.errors]
        counts = (explored.states, checked[0].states, explored.transitions, checked[0].transitions, len(checked))
        print(f"{name:10}" + "".join(f"{count:12}" for count in counts), flush=True)
        for what in (*explored.found, *violated):
            print(what)
        failed += bool(explored.found or violated or counts[0] != counts[1] or counts[2] != counts[3])
    print("each claim holds in each world" if not failed else f"{failed} worlds in which something does not hold")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
