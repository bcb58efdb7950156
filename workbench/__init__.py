"""A workbench for location-based publish/subscribe.

Describe who publishes what to whom, and who wants to hear what, where and when, as subject spaces, regions and filters;
replay it over mobility data; see who was told what, when and why.

    describe   Space, region, own, other, publications, subscriptions, Scenario, ... (`workbench.model`)
    replay     replay(scenario, fixes, places, engine=...) -> Replay; explore(scenario, fixes, places) is its page
    live       Broker

Names are loaded when they are first used, so that ``import workbench`` is quick and needs no Spark.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

__version__ = "0.1.0.dev0"

_HOMES = {
    # describe: spaces, regions, filters, time, publications and subscriptions
    "workbench.model": (
        "Space", "Number", "Enumerated", "Position", "real", "integer", "percentage", "string", "boolean", "location",
        "Degree", "degree", "relationship",
        "Region", "region", "column", "between", "below", "at_most", "above", "at_least", "one_of", "anything_but",
        "point", "disc", "line", "polygon", "box", "around", "reach", "shape",
        "own", "other", "any_region", "everything", "held", "latch",
        "now", "tau", "pi", "at", "visit", "visits",
        "Duration", "days", "hours", "minutes", "seconds", "milliseconds", "ticks", "Clock",
        "publications", "subscriptions", "publication", "subscription", "Scenario",
    ),
    # replay
    "workbench.replay": ("replay", "Replay"),
    "workbench.exploring": ("explore",),
    # live
    "workbench.brokering.broker": ("Broker",),
    # what can go wrong
    "workbench.errors": ("WorkbenchError", "ScenarioError", "DataError", "UpdateError", "SetupError"),
}  # fmt: skip
_NAMES = {name: home for home, names in _HOMES.items() for name in names}
__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}")
    return getattr(import_module(_NAMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


class _Package(ModuleType):
    """`workbench.replay` is the function, although a module has that name too, whichever is imported first."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _NAMES and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
