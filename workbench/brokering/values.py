"""Brokers are values: the next one is made of the one before.

That happens several times for each message, and `dataclasses.replace` looks at every field each time.
"""

from __future__ import annotations

from typing import Any, TypeVar

Value = TypeVar("Value")


def changed(value: Value, **fields: Any) -> Value:
    """The value with other fields; for dataclasses without slots that check nothing when they are made.

    >>> from workbench.brokering.federation.state import Broker
    >>> changed(Broker("B1"), name="B2", neighbours=frozenset({"B1"}))
    B2: {}
    """
    made = object.__new__(type(value))
    made.__dict__.update(value.__dict__, **fields)
    return made
