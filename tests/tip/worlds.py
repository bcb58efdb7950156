"""Small services and worlds that the tests of brokers share."""

from __future__ import annotations

from functools import cache
from typing import Any

from workbench.tip.descriptions import ServiceDescription
from workbench.tip.rules import Condition, Rule
from workbench.tip.verified import (
    INFORMATION,
    LOCATION,
    WORLDS,
    Answering,
    Quiet,
    publishing,
    subscribing,
)
from workbench.tip.verify import Exploration, explore

__all__ = ["INFORMATION", "LOCATION", "Answering", "Quiet", "explored", "publishing", "ruled", "subscribing"]


def ruled(*rules: Rule, category: str = "map", needs: tuple[Condition, ...] = (), **more: Any) -> Quiet:
    return Quiet(ServiceDescription(category, groups=(rules,), conditions=needs, **more))


@cache
def explored(name: str) -> Exploration:
    """A world over all interleavings: once for all the tests that look at it."""
    return explore(*WORLDS[name])
