"""What the broker and the client agree on, whatever the channel and the strategy (Active Control, sections II and IV).

The broker works in best effort: it sends a notification once, asks for no acknowledgement and buffers nothing. It
regularly looks for dead connections and then stops sending to them. It *numbers* each client's messages, sent or not;
a check returns the last number and the current matches. So what a check recovers is the net state; the messages in
between come back only from a log, of the size stated here (0: none).

k_i, the losses that a client observes, is estimated in one of two ways:
- `numbers`: what the numbers skip. A message n after m shows n - m - 1 losses, an answer with the last number n shows
  n - m. Exact, but a loss is seen only when something arrives after it.
- `connection`: the paper's "k_i = 1 if it observes an evident failure": a connection that broke and that the client
  repaired by itself (as before C in Figure 2), a check that found the connection broken (D), or that had no answer.

Departure: a broker of the paper forgets a subscription whose connection is lost. Ours keeps its number and its matches
(the subscription itself is part of the scenario), or no check could tell what was missed meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.errors import WorkbenchError, did_you_mean

ESTIMATORS = ("numbers", "connection")


@dataclass(frozen=True)
class Rules:
    """The broker's sweep and log, the client's estimator of k_i, and the broker's drops when it is overloaded.

    `sweep_s`: seconds between two looks for dead connections (0: never). `log`: messages kept for each client.
    `shed`: for each `window_s` since the beginning, the chance that the broker drops a message (see `overload`).
    `spread_s`: first checks come up to this much later than t_0, by client, so that not all check in step.

    >>> Rules(estimator="number")
    Traceback (most recent call last):
    workbench.errors.WorkbenchError: estimator 'number' of k_i is unknown: did you mean 'numbers'?
    """

    sweep_s: float = 60.0
    log: int = 0
    estimator: str = "numbers"
    shed: tuple[float, ...] = ()
    window_s: float = 1.0
    spread_s: float = 0.0

    def __post_init__(self) -> None:
        if self.estimator not in ESTIMATORS:
            raise WorkbenchError(
                f"estimator {self.estimator!r} of k_i is unknown: {did_you_mean(self.estimator, ESTIMATORS)}"
            )
        if self.sweep_s < 0 or self.log < 0 or self.window_s <= 0 or self.spread_s < 0:
            raise WorkbenchError(f"{self!r}: expected sweep_s, log, spread_s >= 0 and window_s > 0")
