"""Many clients at one broker: more messages than it handles (Active Control, sections II and IV).

"Some notifications can be unsent by SIB due to its overload", and "high workload due to small t_i from multiple clients
may result in more losses". A broker handles `capacity` messages a window; of a load above it, it drops the excess, each
message with the same chance. Drops change what clients do, and so the load: `overloaded` looks for drops and load that
agree, by repeated delivery in which clients remain independent given the drops. The SimPy model has one broker for all,
which knows only the load of the window before; a test compares the two.

Departure: the paper does not say which messages an overloaded broker drops. With the last ones of each window, the
clients whose check falls late in it would never be answered; so all have the same chance.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from workbench.brokering.delivery.channels import Channel
from workbench.brokering.delivery.delivered import Delivered, delivered
from workbench.brokering.delivery.rules import Rules
from workbench.brokering.delivery.strategies import Strategy


def overloaded(
    notifications: Any,
    channel: Channel,
    strategy: Strategy,
    capacity: int,
    rules: Rules | None = None,
    *,
    rounds: int = 12,
    **lifetime: Any,
) -> tuple[Delivered, Rules]:
    """Delivery by a broker that handles `capacity` messages in each `Rules.window_s`, and the rules with its drops.

    `rounds` deliveries, each with the drops that the mean load of those before it calls for.

    >>> from workbench.brokering.delivery import Constant, Independent
    >>> told = pd.DataFrame({"t": 0, "kind": "match", "publication": "cafe", "subscription": range(40)})
    >>> done, rules = overloaded(told, Independent(), Constant(), capacity=30, since=0, until=5)
    >>> rules.shed
    (0.25, 0.0, 0.0, 0.0, 0.0, 0.0)
    """
    rules = rules or Rules()
    done = delivered(notifications, channel, strategy, rules, **lifetime)
    windows = int(done.hours * 3600 / rules.window_s + 1e-9) + 1
    mean = _load(done, windows)
    for n in range(1, rounds):
        shed = np.clip(1 - capacity / np.maximum(mean, capacity), 0, 1)
        rules = replace(rules, shed=tuple(shed.tolist()))
        done = delivered(notifications, channel, strategy, rules, **lifetime)
        mean += (_load(done, windows) - mean) / (n + 1)
    return done, rules


def _load(done: Delivered, windows: int) -> np.ndarray:
    table = done.load if isinstance(done.load, pd.DataFrame) else done.load.toPandas()
    load = np.zeros(windows)
    load[table["window"]] = table["messages"]
    return load
