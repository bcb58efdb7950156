"""The worked services, each a function that returns a `Scenario`.

A built-in scenario is found by its name: `named("proximity", radius_m=300)`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from workbench.errors import ScenarioError, did_you_mean
from workbench.model.scenario import Scenario

BUILT_IN = {
    "proximity": "workbench.scenarios.proximity",
    "coffee": "workbench.scenarios.coffee",
    "traffic": "workbench.scenarios.traffic",
    "fuel": "workbench.scenarios.fuel",
    "dispatch": "workbench.scenarios.dispatch",
    "friends": "workbench.scenarios.friends",
}


def named(name: str) -> Callable[..., Scenario]:
    """The function that makes the built-in scenario of that name."""
    if name not in BUILT_IN:
        raise ScenarioError(f"there is no built-in scenario {name!r}; {did_you_mean(name, BUILT_IN)}")
    return import_module(BUILT_IN[name]).scenario  # type: ignore[no-any-return]
