"""A workbench for location-based publish/subscribe.

Describe who publishes what to whom, and who wants to hear what, where and when, as subject spaces, regions and filters;
replay it over mobility data; see who was told what, when and why.

    describe   Space, region, own, other, publications, subscriptions, Scenario, ... (`workbench.model`)
    replay     replay(scenario, fixes, places, engine=...) -> Replay
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
    "workbench.replay": ("replay", "Replay"),
    "workbench.brokering.broker": ("Broker",),
    "workbench.errors": ("WorkbenchError", "ScenarioError", "DataError", "UpdateError", "SetupError"),
}
_NAMES = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    home = _NAMES.get(name)
    if home is None:
        model = import_module("workbench.model")
        if name not in model.__all__:
            raise AttributeError(f"module 'workbench' has no attribute {name!r}")
        return getattr(model, name)
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*_NAMES, *import_module("workbench.model").__all__])


class _Package(ModuleType):
    """`workbench.replay` is the function, although a module has that name too, whichever is imported first."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _NAMES and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
