"""The worked services, each a function that returns a `Scenario`.

A built-in scenario is found by its name: `named("proximity", radius_m=300)`.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from workbench.errors import ScenarioError, did_you_mean, raise_all
from workbench.model.scenario import Scenario

BUILT_IN = {
    "proximity": "workbench.scenarios.proximity",
    "coffee": "workbench.scenarios.coffee",
    "traffic": "workbench.scenarios.traffic",
    "fuel": "workbench.scenarios.fuel",
    "dispatch": "workbench.scenarios.dispatch",
    "friends": "workbench.scenarios.friends",
    "advertising": "workbench.scenarios.advertising",
    "callers": "workbench.scenarios.callers",
    "game": "workbench.scenarios.game",
    "tourists": "workbench.scenarios.tourists",
}


def named(name: str) -> Callable[..., Scenario]:
    """The function that makes the built-in scenario of that name."""
    if name not in BUILT_IN:
        raise ScenarioError(f"there is no built-in scenario {name!r}; {did_you_mean(name, BUILT_IN)}")
    return import_module(BUILT_IN[name]).scenario  # type: ignore[no-any-return]


def maker(given: Any) -> Callable[..., Scenario]:
    """The function that a name, ``module:function`` or a ``.py`` file stands for; a function stands for itself."""
    label = str(given)
    if callable(given):
        return given  # type: ignore[no-any-return]
    if label.endswith(".py"):
        return _from_file(Path(label))
    return _from_module(label) if ":" in label else named(label)


def resolve(given: Any, parameters: Mapping[str, Any] | None = None) -> Scenario:
    """The scenario that a name, ``module:function``, a ``.py`` file, a function or a `Scenario` stands for.

    >>> resolve("proximity", {"radius": 500})
    Traceback (most recent call last):
    workbench.errors.ScenarioError: scenario 'proximity' has no parameter 'radius'; did you mean 'radius_m'?
    """
    if isinstance(given, Scenario):
        if parameters:
            raise ScenarioError("a finished Scenario takes no parameters; give the function that makes it")
        return given
    label, make = str(given), maker(given)
    known = inspect.signature(make).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in known.values()):
        raise_all(
            [
                f"scenario {label!r} has no parameter {name!r}; {did_you_mean(name, known)}"
                for name in (parameters or {})
                if name not in known
            ]
        )
    made = make(**(parameters or {}))
    if not isinstance(made, Scenario):
        raise ScenarioError(f"{label} gave {type(made).__name__}; expected a Scenario")
    return made


def _from_file(path: Path) -> Callable[..., Scenario]:
    if not path.exists():
        raise ScenarioError(f"there is no scenario file {str(path)!r}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, "scenario"):
        raise ScenarioError(f"{str(path)!r} has no function scenario(**parameters)")
    return module.scenario  # type: ignore[no-any-return]


def _from_module(name: str) -> Callable[..., Scenario]:
    module, _, function = name.partition(":")
    try:
        return getattr(import_module(module), function)  # type: ignore[no-any-return]
    except (ImportError, AttributeError) as error:
        raise ScenarioError(f"scenario {name!r} cannot be imported: {error}") from None
