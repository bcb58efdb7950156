"""The registry of a broker on disk: what a re-start uses again (TIP 3, 4.2, Figure 10).

"The registry's entries are kept until the client services are restarted." Here: lines of JSON, the broker's secret
first (labels stay what they were, so rules that name a publisher hold), then a line for each service with its
description as registered. Auxiliary services are not in it: the observer starts them anew.

Guarantee: the file is replaced whole, whenever a description changed. A broker that is killed finds what was registered
at its last step; what was in its queues is lost with it, and so are the ids of events seen before.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from workbench.brokering.values import changed
from workbench.errors import DataError
from workbench.tip.descriptions import from_body
from workbench.tip.state import Service, State

_AFTER_A_CRASH = 1 << 40
"""Ids made since the registry was written are not known; they must not be made again."""


def written(state: State) -> str:
    """The registry as text.

    >>> from workbench.tip.broker import broker
    >>> written(broker("b1", seed="secret"))
    '{"broker": "b1", "seed": "secret", "made": 0}\\n'
    """
    lines = [{"broker": state.name, "seed": state.seed, "made": state.made // _AFTER_A_CRASH}]
    lines += [
        {"service": name, "description": one.description.body()}
        for name, one in sorted(state.services.items())
        if not one.auxiliary
    ]
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def read(state: State, text: str) -> State:
    """A broker that was never started, with a registry."""
    try:
        first, *rest = (json.loads(line) for line in text.splitlines())
        if first["broker"] != state.name:
            raise DataError(f"the registry of {first['broker']!r}; expected that of {state.name!r}")
        services = {line["service"]: Service(from_body(line["description"])) for line in rest}
        made = (int(first["made"]) + 1) * _AFTER_A_CRASH
        return changed(state, seed=str(first["seed"]), made=made, services=services)
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"a registry that cannot be read: {error!r}; remove it, and services register anew") from None


def save(state: State, path: Path) -> None:
    """Write the registry, whole or not at all, if it changed."""
    text = written(state)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        new = path.with_name(f"{path.name}.new")
        new.write_text(text, encoding="utf-8")
        os.replace(new, path)
