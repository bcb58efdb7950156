"""Small services and worlds that the tests of brokers share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workbench.tip.descriptions import ServiceDescription
from workbench.tip.events import Event
from workbench.tip.host import Act, Publish
from workbench.tip.rules import Advertisement, Condition, Rule

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


def ruled(*rules: Rule, category: str = "map", needs: tuple[Condition, ...] = (), **more: Any) -> Quiet:
    return Quiet(ServiceDescription(category, groups=(rules,), conditions=needs, **more))
