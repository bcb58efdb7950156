"""Behaviours of services that run as processes of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from workbench.tip.bodies import body
from workbench.tip.descriptions import ServiceDescription
from workbench.tip.events import Event
from workbench.tip.host import BEGIN, WAKE, Act, Publish, WakeAt
from workbench.tip.observer import Auxiliary
from workbench.tip.rules import Advertisement, Condition, Rule
from workbench.tip.services import GPS, RFID
from workbench.tip.verified import INFORMATION, LOCATION, Answering, publishing, subscribing

__all__ = ["DISPLAY", "GUIDE", "READERS", "TICKER"]

TAGGED, TAP = replace(LOCATION, format=RFID), Advertisement("Tap", "user-input")


@dataclass(frozen=True)
class Ticker:
    """Publishes a tag every twentieth of a second, and counts them; each time the user taps."""

    @property
    def description(self) -> ServiceDescription:
        return publishing(TAGGED, TAP).description

    def react(self, memory: Any, happening: Event | str, now: int) -> tuple[Any, tuple[Act, ...]]:
        number = memory or 0
        if happening == WAKE:
            return number + 1, (Publish("Location", body(n=number)), Publish("Tap"), WakeAt(now + 50_000))
        return number, (WakeAt(now + 50_000),) if happening == BEGIN else ()


@dataclass(frozen=True)
class Reader:
    """Says of each tag where it is."""

    @property
    def description(self) -> ServiceDescription:
        return READER.description(replace(LOCATION, service_category="location", format=GPS))

    def react(self, memory: Any, happening: Event | str, now: int) -> tuple[Any, tuple[Act, ...]]:
        tagged = isinstance(happening, Event) and happening.type == "Location"
        return memory, (Publish("Location", happening.body),) if tagged else ()  # type: ignore[union-attr]


READER = Auxiliary("reader", "Location", takes=RFID, gives=GPS)
READERS = {READER: Reader()}
TICKER, DISPLAY = Ticker(), subscribing("Information", "Tap")
GUIDE = Answering(
    ServiceDescription(
        "informative", advertisements=(INFORMATION,), conditions=(Condition("location"),),
        groups=((Rule(event_type="Location", format=GPS),),),
    ),
    "Location", "Information",
)  # fmt: skip
