"""What happens to a message between broker and client: the channels of model (B).

Every message (a notification, the request of a check, its answer) is lost or not, on its own. Section II of Active
Control names the causes: a network that fails for a moment, and a connection that stays broken, on the client's or the
broker's side, until the client re-establishes it. Here: a channel is a frozen value; the state of one client's channel
is sampled when a message needs it.

`breaks` is the chance that a lost notification leaves the connection broken. Of such breaks the client notices the
share `noticed` by itself, and has re-established the connection before the next message: nothing more is lost, and it
has seen an evident failure. Of the others, the share `broker_side` is on the broker's side, where the broker stops
sending at once; a connection broken on the client's side is sent to in vain until the broker's next sweep finds it
dead. Either way nothing arrives until a check gets through, finds the connection lost and repairs it.

Departure: a connection breaks only where a notification is lost; the paper has it abort at any time. An idle connection
outlives an outage here: what breaks unseen is found by the next message anyway, or by a check.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from workbench.errors import DataError, WorkbenchError


@dataclass(frozen=True)
class Channel:
    """What all channels have: the loss of a message when nothing else is wrong, and what it does to a connection."""

    loss: float = 0.0
    breaks: float = field(default=0.0, kw_only=True)
    broker_side: float = field(default=0.0, kw_only=True)
    noticed: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name.startswith(("loss", "breaks", "broker_side", "noticed")) and not 0 <= value <= 1:
                raise WorkbenchError(f"{type(self).__name__}: {name} is {value!r}; expected a probability")

    @property
    def row(self) -> np.ndarray:
        """The channel as the row of numbers that the kernel reads."""
        return np.array([self.loss, self.loss, 0.0, 0.0, self.breaks, self.broker_side, self.noticed])

    @property
    def outages(self) -> pd.DataFrame | None:
        """When nothing gets through, by client; None: no outages."""
        return None


@dataclass(frozen=True)
class Independent(Channel):
    """Every message is lost with the same chance, whatever happened to the others.

    >>> Independent(0.1)
    Independent(loss=0.1, breaks=0.0, broker_side=0.0, noticed=0.0)
    """


@dataclass(frozen=True)
class GilbertElliott(Channel):
    """Losses in bursts: a channel that is good for `good_s` on average, then bad for `bad_s`, both exponential.

    A message is lost with chance `loss` in the good state and `loss_bad` in the bad one (Gilbert 1960, Elliott 1963; in
    continuous time, since our messages are not evenly spaced). The state is only ever seen by a message, so it is drawn
    at messages, from its exact law given the state at the message before.

    >>> GilbertElliott(0.0, loss_bad=1.0, good_s=90, bad_s=10).mean_loss
    0.1
    """

    loss_bad: float = 1.0
    good_s: float = 540.0
    bad_s: float = 60.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.good_s > 0 and self.bad_s > 0):
            raise WorkbenchError(f"{self!r}: expected good_s > 0 and bad_s > 0")

    @property
    def row(self) -> np.ndarray:
        times = [self.good_s, self.bad_s]
        return np.array([self.loss, self.loss_bad, *times, self.breaks, self.broker_side, self.noticed])

    @property
    def mean_loss(self) -> float:
        """The share of messages lost in the long run."""
        return (self.good_s * self.loss + self.bad_s * self.loss_bad) / (self.good_s + self.bad_s)


@dataclass(frozen=True, eq=False)
class Outages(Channel):
    """Nothing gets through to a client during its outages [start, end); otherwise messages are lost with chance `loss`.

    `table` has columns `subscription`, `start`, `end` in the notifications' time; `gaps` reads one off a trace.
    """

    table: pd.DataFrame = field(default_factory=lambda: pd.DataFrame({"subscription": [], "start": [], "end": []}))

    def __post_init__(self) -> None:
        super().__post_init__()
        missing = {"subscription", "start", "end"} - set(self.table.columns)
        if missing:
            raise DataError(f"outages lack {', '.join(sorted(missing))}; they have {', '.join(self.table.columns)}")
        if self.table[["subscription", "start", "end"]].isna().to_numpy().any():
            raise DataError("outages have empty cells; expected a subscription, a start and an end in each row")

    @property
    def outages(self) -> pd.DataFrame:
        return self.table


def gaps(fixes: pd.DataFrame, longer_than: object) -> pd.DataFrame:
    """Outages as a trace shows them: the silences of a mobile longer than `longer_than`, in the unit of `t`.

    A device that reports at intervals and then does not was out of reach, or off; for delivery both are the same. At
    both ends it was in reach: the outage begins right after the last fix, so that what this fix led to still arrives.

    >>> gaps(pd.DataFrame({"mobile": [7, 7, 7, 8], "t": [0, 60, 900, 60]}), longer_than=300)
       subscription  start  end
    0             7     61  900
    """
    rows = fixes[["mobile", "t"]].sort_values(["mobile", "t"], ignore_index=True)
    before = rows.shift()
    silent = (rows["mobile"] == before["mobile"]) & (rows["t"] - before["t"] > longer_than)
    last = before["t"][silent].astype(rows["t"].dtype)
    soon = pd.Timedelta(1, "us") if isinstance(rows["t"].dtype, pd.DatetimeTZDtype) else 1
    return pd.DataFrame(
        {"subscription": rows["mobile"][silent], "start": last + soon, "end": rows["t"][silent]}
    ).reset_index(drop=True)
