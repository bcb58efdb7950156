"""`explore`: the explorer over scenarios and data; it stands beside `replay`, at the top of the import order.

The views take a callable; here it is `replay`, and the parameters of a service are those of the function that makes its
scenario.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.errors import DataError, did_you_mean
from workbench.model.scenario import Scenario
from workbench.replay import replay
from workbench.scenarios import maker

if TYPE_CHECKING:
    from workbench.views.controls import Explorer


def explore(
    scenario: Any,
    fixes: Any = None,
    places: Any = None,
    *,
    data: Mapping[str, Any] | None = None,
    engine: str = "local",
    parameters: Mapping[str, Any] | None = None,
    base: Any = None,
    zone: str | None = None,
) -> Explorer:
    """A page to explore scenarios over data: sliders, a map to play, places to move, and why.

    ``scenario`` is what `replay` takes, a list of such, or a mapping of names to such; with ``(scenario, names)`` a
    service is offered for the data of these names only. ``fixes`` and ``places`` are what `replay` takes, and ``base``
    is a table of lines to draw below. Several data sets are given as ``data``: a mapping of names to ``(fixes,
    places)`` or ``(fixes, places, base)``. ``parameters`` are first values that differ from the defaults, and ``zone``
    is the time zone of the page.

    >>> fixes = {"mobile": [7, 7], "t": [1, 2], "x": [0.0, 600.0], "y": [0.0, 0.0]}
    >>> explorer = explore("proximity", fixes, {"place": ["cafe"], "x": [0.0], "y": [0.0]})
    >>> explorer.run(); explorer.done.notifications[["kind", "publication"]]
          kind publication
    0    match        cafe
    1  unmatch        cafe
    """
    from workbench.views.controls import Explorer, Service, Source

    if (fixes is None) == (data is None):
        raise DataError("give either fixes (and places), or data: a mapping of names to (fixes, places)")
    sources = {"the data": Source(fixes, places, base)} if data is None else {n: Source(*d) for n, d in data.items()}
    first = parameters or {}
    services = {name: _service(given, first, Service) for name, given in _named(scenario).items()}
    known = {name for s in services.values() for name in (*s.parameters, *s.fixed)}
    if unknown := [name for name in first if name not in known]:
        raise DataError("; ".join(f"no service has a parameter {n!r}; {did_you_mean(n, known)}" for n in unknown))
    return Explorer(partial(replay, engine=engine), services, sources, zone)


def _named(scenario: Any) -> dict[str, Any]:
    if isinstance(scenario, Mapping):
        return {str(name): given for name, given in scenario.items()}
    several = isinstance(scenario, Iterable) and not isinstance(scenario, str)
    return {_label(given): given for given in (scenario if several else [scenario])}


def _label(given: Any) -> str:
    return str(getattr(given, "name", None) or getattr(given, "__name__", None) or given)


def _service(given: Any, parameters: Mapping[str, Any], kind: Any) -> Any:
    """A scenario with the parameters that can be chosen; a pair says beside it which data it fits."""
    scenario, fits = given if isinstance(given, tuple) else (given, ())
    if isinstance(scenario, Scenario):
        return kind(scenario, {}, tuple(fits))
    known = inspect.signature(maker(scenario)).parameters
    given = {name: value for name, value in parameters.items() if name in known}
    values = {p.name: p.default for p in known.values()} | given
    chosen = {name: value for name, value in values.items() if isinstance(value, bool | int | float | str)}
    return kind(scenario, chosen, tuple(fits), {n: v for n, v in given.items() if n not in chosen})
