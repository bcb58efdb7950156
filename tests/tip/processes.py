"""Behaviours of services that run as processes of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workbench.tip.bodies import body
from workbench.tip.descriptions import ServiceDescription
from workbench.tip.events import Event
from workbench.tip.host import BEGIN, WAKE, Act, Publish, WakeAt
from workbench.tip.verified import GUIDE, LOCATION, Answering, publishing, subscribing

__all__ = ["DISPLAY", "GUIDE", "TICKER"]


@dataclass(frozen=True)
class Ticker:
    """Publishes a position every twentieth of a second, and counts them."""

    @property
    def description(self) -> ServiceDescription:
        return publishing(LOCATION).description

    def react(self, memory: Any, happening: Event | str, now: int) -> tuple[Any, tuple[Act, ...]]:
        number = memory or 0
        if happening == WAKE:
            return number + 1, (Publish("Location", body(n=number)), WakeAt(now + 50_000))
        return number, (WakeAt(now + 50_000),) if happening == BEGIN else ()


TICKER, DISPLAY = Ticker(), subscribing("Information")
assert isinstance(GUIDE, Answering)
