"""What caches keep, and for how long: the rules that a broker's and TIP's share.

What was stored longer ago than an age counts as missing; where there is too much, the longest stored goes first. (A
Federated Broker Architecture, VIII; TIP 3, 3.2.) Here: two pure functions over a mapping, with the instant at which a
value was stored given by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def fresh(stored: Mapping[Key, Value], now: float, age: float, since: Callable[[Value], float]) -> dict[Key, Value]:
    """Those that were stored no longer than `age` ago.

    >>> fresh({"old": 1, "new": 8}, now=10, age=5, since=lambda at: at)
    {'new': 8}
    """
    return {key: value for key, value in stored.items() if now - since(value) <= age}


def crowded_out(
    stored: Mapping[Key, Value],
    limit: float,
    since: Callable[[Value], float],
    size: Callable[[Value], float] = lambda value: 1,
) -> set[Key]:
    """Those that have to go so that the rest has room: the longest stored first, then by key.

    >>> sorted(crowded_out({"a": 3, "b": 1, "c": 2}, limit=1, since=lambda at: at))
    ['b', 'c']
    """
    left = sum(size(value) for value in stored.values())
    lost: set[Key] = set()
    if left <= limit:
        return lost

    def age(key: Any) -> tuple[float, Any]:
        return since(stored[key]), str(key)

    for key in sorted(stored, key=age):
        if left <= limit:
            break
        left -= size(stored[key])
        lost.add(key)
    return lost
