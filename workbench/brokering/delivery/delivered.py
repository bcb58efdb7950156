"""From notifications to deliveries: what reaches a client, when, and at what price.

`delivered` carries a notifications table through a channel (model B) to clients that check by a strategy. It answers
with three tables: what became of every notification, what every client did, and the load on the broker.

A client is *stale* while its picture of its matches differs from the broker's. How a notification became known:
`by_message` (it arrived), `by_state` (lost; a check's current matches showed what it said), `by_log` (lost; a check
returned it from the log), `missed` (lost, and overtaken before any check: its pair was again as the client thought, or
a later notification of the pair told more), `pending` (lost, and no check got through since).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from workbench.brokering.delivery import kernel
from workbench.brokering.delivery.channels import Channel
from workbench.brokering.delivery.kernel import COUNTS, SECOND_US
from workbench.brokering.delivery.rows import Rows, check_notifications, microseconds, sorted_rows
from workbench.brokering.delivery.rules import Rules
from workbench.brokering.delivery.strategies import Strategy
from workbench.errors import DataError

HOW = COUNTS[: kernel.MISSED + 1]


@dataclass(frozen=True)
class Setting:
    """All that delivery depends on beside the rows."""

    channel: Channel
    strategy: Strategy
    rules: Rules
    seed: int
    since: int
    until: int

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int | np.integer) or not 0 <= self.seed < 2**64:
            raise DataError(f"seed is {self.seed!r}; expected an integer from 0 to 2**64 - 1")
        if self.until < self.since:
            raise DataError(f"until ({self.until} us) is before since ({self.since} us)")
        if self.rules.shed and len(self.rules.shed) < self.windows:
            raise DataError(f"shed has {len(self.rules.shed)} windows; expected at least {self.windows}")

    @property
    def window_us(self) -> int:
        return round(self.rules.window_s * SECOND_US)

    @property
    def windows(self) -> int:
        """How many windows of load lie between since and until."""
        return (self.until - self.since) // self.window_us + 1

    def run(self, rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(number, how, delay) of every row, the counts of every client, the load of every window."""
        number, how = np.zeros(rows.t.size, np.int64), np.zeros(rows.t.size, np.int8)
        delay = np.full(rows.t.size, -1, np.int64)
        counts = np.zeros((rows.keys.size, len(COUNTS)), np.int64)
        load = np.zeros(self.windows, np.int64)
        kernel.run(
            rows.offsets, rows.keys, rows.t, rows.kind, rows.publication,
            np.uint64(self.seed), self.since, self.until, round(self.rules.spread_s * SECOND_US),
            self.channel.row, self.strategy.code, self.strategy.row, self.strategy.memory,
            round(self.rules.sweep_s * SECOND_US), self.rules.log, self.rules.estimator == "numbers",
            np.array(self.rules.shed), self.window_us,
            number, how, delay, counts, load,
        )  # fmt: skip
        return number, how, delay, counts, load


@dataclass(frozen=True)
class Delivered:
    """What delivery did.

    `deliveries`: the notifications with `number` (of the message), `how` and `delay_us` (null: never known).
    `clients`: a row a client that has notifications. These by how they became known; `messages`, and those `lost` on
    the way or `unsent` by the broker; `breaks` of the connection; `checks`, and those `failed`; losses `observed` (the
    sum of the estimated k_i); `stale_us`, the time with a wrong picture.
    `load`: messages at the broker's desk by window: notifications to send and checks that arrived.
    """

    deliveries: Any
    clients: Any
    load: Any
    hours: float

    def summary(self) -> pd.Series:
        """Means over the clients: what a strategy buys, and what it pays."""
        clients, load = self.clients, self.load
        if not isinstance(clients, pd.DataFrame):
            sums = (
                clients.selectExpr(*[f"sum({name}) as {name}" for name in COUNTS], "count(*) as n").toPandas().iloc[0]
            )
            load = load.toPandas()
            n = int(sums["n"])
        else:
            sums, n = clients[list(COUNTS)].sum(), len(clients)
        lost = sums[["pending", "by_state", "by_log", "missed"]].sum()
        return pd.Series(
            {
                "lost_share": lost / max(sums[list(HOW)].sum(), 1),
                "recovered_share": (sums["by_state"] + sums["by_log"]) / max(lost, 1),
                "stale_share": sums["stale_us"] / max(n * self.hours * 3600 * SECOND_US, 1),
                "checks_per_hour": sums["checks"] / max(n * self.hours, 1e-12),
                "load_per_s": load["messages"].sum() / max(self.hours * 3600, 1e-12),
                "load_peak": float(load["messages"].max()) if len(load) else 0.0,
            }
        )


def delivered(
    notifications: Any,
    channel: Channel,
    strategy: Strategy,
    rules: Rules | None = None,
    *,
    seed: int = 0,
    since: Any = None,
    until: Any = None,
    tick_us: int = SECOND_US,
) -> Delivered:
    """Deliver a notifications table (pandas, or a Spark DataFrame: then nothing is collected) through a channel.

    Clients live from `since` to `until`, in the time of `t`; without them, from the first notification to the last.
    Integer `t` counts ticks of `tick_us` microseconds. The same seed gives every client the same fate in either case.

    >>> from workbench.brokering.delivery import Constant, Independent
    >>> told = pd.DataFrame({"t": [10, 50], "kind": ["match", "unmatch"], "publication": "cafe", "subscription": 7})
    >>> delivered(told, Independent(1.0), Constant(), since=0, until=100).deliveries["how"].tolist()
    ['pending', 'pending']
    >>> delivered(told, Independent(), Constant(), since=0, until=100).clients[["by_message", "checks"]].values.tolist()
    [[2, 3]]
    """
    rules = rules or Rules()
    if not isinstance(notifications, pd.DataFrame):
        from workbench.brokering.delivery.spark import delivered_on_spark

        return delivered_on_spark(notifications, channel, strategy, rules, seed, since, until, tick_us)
    check_notifications(notifications)
    setting = Setting(channel, strategy, rules, seed, *lifetime(notifications["t"], since, until, tick_us))
    rows = sorted_rows(notifications, channel.outages, setting.since, setting.until, tick_us)
    number, how, delay, counts, load = setting.run(rows)
    return tables(notifications, rows, setting, number, how, delay, counts, load)


def tables(
    notifications: pd.DataFrame,
    rows: Rows,
    setting: Setting,
    number: np.ndarray,
    how: np.ndarray,
    delay: np.ndarray,
    counts: np.ndarray,
    load: np.ndarray,
) -> Delivered:
    """The three tables, from arrays in the order of `rows`."""
    kept = rows.position >= 0
    back = np.empty(len(notifications), np.int64)
    back[rows.position[kept]] = np.flatnonzero(kept)
    deliveries = notifications.assign(
        number=number[back],
        how=np.array(HOW, dtype=object)[how[back]],
        delay_us=pd.array(np.where(delay[back] < 0, 0, delay[back]), dtype="Int64"),
    )
    deliveries.loc[delay[back] < 0, "delay_us"] = pd.NA
    clients = pd.DataFrame(counts, columns=list(COUNTS))
    clients.insert(0, "subscription", rows.ids)
    busy = np.flatnonzero(load)
    return Delivered(
        deliveries,
        clients,
        pd.DataFrame({"window": busy, "messages": load[busy]}),
        (setting.until - setting.since) / SECOND_US / 3600,
    )


def lifetime(t: pd.Series, since: Any, until: Any, tick_us: int) -> tuple[int, int]:
    """When the clients' time begins and ends, in microseconds."""
    if t.empty and (since is None or until is None):
        raise DataError("notifications are empty; expected since and until")
    first, last = (t.min() if since is None else since), (t.max() if until is None else until)
    low, high = microseconds(pd.Series([first, last], dtype=t.dtype), tick_us)
    return int(low), int(high)
