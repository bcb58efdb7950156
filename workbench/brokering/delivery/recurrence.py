"""Model (A): the paper's recurrence, where the losses are drawn from the interval (Active Control, sections V and VI).

k_i is drawn from t_i alone, uniformly on [a t_i, b t_i] or by Poisson with mean lambda t_i, and t_{i+1} follows from
(t_i, k_i). There is no notification stream, no channel and no bound on t; nothing here is used by model (B).
Representation: arrays with one row a replication and one column a step i = 1..n.

Departure: (3) gives t_1 from t_0 and a k_0 that nobody observed, while (4) and (5) have t_1 = t_0: they solve (3) with
every index one too high. We follow (4) and (5): the first interval is t_0.
Departure: "selected from [a t_i, b t_i] uniformly ... as non-negative integers" leaves the rounding open. `nearest`
rounds a uniform real, and keeps the mean of one loss in 20 s that the paper states for t >= 5 s or so; `integers`
chooses among the integers in the interval (with a = 0 never a loss below t = 10 s; the next one above, if the interval
holds none); `floor` cuts off, and halves the rate at 20 s.

What its loss rates can show: E[k_i | t_i] = lambda t_i whatever the strategy, so E[lambda_avg] = lambda exactly and
k_avg / t_avg tends to lambda for *every* strategy: the third and fourth rows of Tables II and III estimate the same
constant, 0.05, and rank nothing. What is left is t_avg, which a constant interval can set at will; and since a loss
waits for the next check t/2 on average, mean staleness is lambda/2 · mean(t²)/mean(t), which for a given t_avg is least
when t is constant (`stale_losses`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd

from workbench.brokering.delivery.kernel import step
from workbench.brokering.delivery.strategies import Strategy
from workbench.errors import WorkbenchError

_ROUNDINGS = ("nearest", "integers", "floor")


class Losses(Protocol):
    """A distribution of k_i given t_i."""

    def draw(self, t: np.ndarray, random: np.random.Generator) -> np.ndarray: ...


@dataclass(frozen=True)
class PoissonLosses:
    """k_i by Poisson with mean rate · t_i (section VI, 2)."""

    rate: float = 0.05

    def draw(self, t: np.ndarray, random: np.random.Generator) -> np.ndarray:
        return random.poisson(self.rate * t)


@dataclass(frozen=True)
class UniformLosses:
    """k_i uniform on [a t_i, b t_i] (section VI, 1), made an integer by `rounding` (see the module)."""

    a: float = 0.0
    b: float = 0.1
    rounding: str = "nearest"

    def __post_init__(self) -> None:
        if self.rounding not in _ROUNDINGS or not 0 <= self.a <= self.b:
            raise WorkbenchError(f"{self!r}: expected 0 <= a <= b and a rounding of {', '.join(_ROUNDINGS)}")

    def draw(self, t: np.ndarray, random: np.random.Generator) -> np.ndarray:
        if self.rounding == "integers":
            low, high = np.ceil(self.a * t), np.floor(self.b * t)
            return random.integers(low.astype(int), np.maximum(low, high).astype(int), endpoint=True)
        real = random.uniform(self.a * t, self.b * t)
        return (np.rint(real) if self.rounding == "nearest" else np.floor(real)).astype(int)


@dataclass(frozen=True)
class ConstantLosses:
    """k_i = k: cases 1 (k = 0) and 2 of section V."""

    k: int

    def draw(self, t: np.ndarray, random: np.random.Generator) -> np.ndarray:
        return np.full(t.shape, self.k)


@dataclass(frozen=True)
class Evolution:
    """t_i and k_i of many replications: `t[r, i - 1]`, `k[r, i - 1]`."""

    t: np.ndarray
    k: np.ndarray

    @property
    def metrics(self) -> pd.DataFrame:
        """The rows of Tables II and III, one line a replication, and the losses that wait for a check at a time."""
        k_avg, t_avg = self.k.mean(axis=1), self.t.mean(axis=1)
        return pd.DataFrame(
            {
                "k_avg": k_avg,
                "t_avg": t_avg,
                "lambda": k_avg / t_avg,
                "lambda_avg": (self.k / self.t).mean(axis=1),
            }
        )

    def stale_losses(self, rate: float) -> np.ndarray:
        """Losses not yet found by a check, mean over time, when losses come at `rate`: rate/2 · mean(t²)/mean(t)."""
        return rate / 2 * (self.t**2).mean(axis=1) / self.t.mean(axis=1)


def evolution(strategy: Strategy, losses: Losses, steps: int = 100, replications: int = 1, seed: int = 0) -> Evolution:
    """The client's evolution for 0 < i <= steps, as often as asked, without t_min and t_max.

    >>> from workbench.brokering.delivery.strategies import Adaptive
    >>> evolution(Adaptive(), ConstantLosses(0), steps=4).t
    array([[20., 40., 60., 80.]])
    >>> evolution(Adaptive(), ConstantLosses(1), steps=4).t
    array([[20. , 15. , 11.25 , 8.4375]])
    """
    random = np.random.default_rng(seed)
    t, k = np.empty((replications, steps)), np.empty((replications, steps), dtype=np.int64)
    memory = np.tile(strategy.memory, (replications, 1))
    interval = np.full(replications, strategy.t0_s)
    for i in range(steps):
        t[:, i] = interval
        k[:, i] = losses.draw(interval, random)
        interval = np.empty(replications)
        step(strategy.code, strategy.row, t[:, i], k[:, i], random.random(replications), memory, interval)
    return Evolution(t, k)
