"""Recordings: every input of every broker with its time, and the effects it had.

A step is pure, so a recording says everything: `replayed` runs the inputs again from the first states, and has to give
the same effects. Here: lines of JSON, events as their envelopes, so that a recording can be kept in a file and read on
another machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from workbench.errors import DataError
from workbench.tip import inputs
from workbench.tip.broker import step
from workbench.tip.envelope import decode, encode
from workbench.tip.events import Event
from workbench.tip.inputs import Effect, Input
from workbench.tip.state import State

KINDS: dict[str, Any] = {kind.__name__: kind for kind in inputs.Input.__args__}


class Recorded(NamedTuple):
    """One input of one broker, and its effects."""

    t: int
    broker: str
    input: Input
    effects: tuple[Effect, ...] = ()


def replayed(states: Mapping[str, State], recording: Iterable[Recorded]) -> list[Recorded]:
    """The same inputs again: what every one of them had for effects."""
    now = dict(states)
    made = []
    for t, name, input, _ in recording:
        now[name], effects = step(now[name], input, t)
        made.append(Recorded(t, name, input, effects))
    return made


def written(recording: Iterable[Recorded]) -> str:
    """A recording as lines of text; effects are left out, since they follow.

    >>> written([Recorded(5, "b1", inputs.Connected("gps"))])
    '{"t": 5, "broker": "b1", "input": "Connected", "name": "gps", "kind": "service"}\\n'
    """
    lines = []
    for t, broker, input, _ in recording:
        fields = {
            name: encode(value).decode() if isinstance(value, Event) else value
            for name, value in input._asdict().items()
        }
        lines.append(json.dumps({"t": t, "broker": broker, "input": type(input).__name__, **fields}))
    return "".join(f"{line}\n" for line in lines)


def read(text: str) -> list[Recorded]:
    """A recording from its lines."""
    made = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            given = json.loads(line)
            t, broker, kind = given.pop("t"), given.pop("broker"), KINDS[given.pop("input")]
            if "event" in given:
                given["event"] = decode(given["event"].encode())
            made.append(Recorded(t, broker, kind(**given)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"line {number} of a recording: {error!r}; expected t, broker, input, fields") from None
    return made
