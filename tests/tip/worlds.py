"""Small services and worlds that the tests of brokers share."""

from __future__ import annotations

from typing import Any

from workbench.tip.descriptions import ServiceDescription
from workbench.tip.rules import Condition, Rule
from workbench.tip.verified import (
    INFORMATION,
    LOCATION,
    Answering,
    Quiet,
    publishing,
    subscribing,
)

__all__ = ["INFORMATION", "LOCATION", "Answering", "Quiet", "publishing", "ruled", "subscribing"]


def ruled(*rules: Rule, category: str = "map", needs: tuple[Condition, ...] = (), **more: Any) -> Quiet:
    return Quiet(ServiceDescription(category, groups=(rules,), conditions=needs, **more))
