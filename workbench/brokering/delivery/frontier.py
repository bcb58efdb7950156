"""What a strategy buys for its checks: staleness against checks per hour.

Every strategy can be made more eager or more patient, so one point says little; a *family* is a strategy over a range
of its main parameter. A point lies on the frontier if no other has both fewer checks and less staleness. Parameters may
be chosen on some seeds only if they are judged on others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from workbench.brokering.delivery.channels import Channel
from workbench.brokering.delivery.delivered import delivered
from workbench.brokering.delivery.rules import Rules
from workbench.brokering.delivery.strategies import (
    Adaptive,
    Constant,
    MultiplicativeDecrease,
    Prompt,
    RandomSelection,
    Receding,
    SquareRoot,
    Strategy,
)

PAPERS = ("Adaptive", "MultiplicativeDecrease", "RandomSelection", "Constant")
OURS = ("Prompt", "Receding", "SquareRoot")
TUNING_SEEDS = frozenset({1, 3, 5})
"""The seeds of the draws, streams and outages that chose the parameters of ours; nothing is judged on them."""


def families(scale_s: Sequence[float] = (15, 30, 60, 120, 240, 480, 960), t_max_s: float = 7200.0) -> list[Strategy]:
    """Every strategy over a range of check intervals; the adaptive one over alpha too.

    >>> len(families(scale_s=[60]))
    11
    """
    made: list[Strategy] = []
    for s in scale_s:
        bounds: dict[str, Any] = {"t0_s": s, "t_max_s": t_max_s}
        made += [Adaptive(alpha=alpha, delta_s=s, **bounds) for alpha in (0.25, 0.5, 0.75)]
        made += [MultiplicativeDecrease(**bounds), RandomSelection(a_s=s / 2, b_s=3 * s / 2, **bounds)]
        made += [Constant(**bounds), Prompt(**bounds)]
        made += [Receding(growth=growth, **bounds) for growth in (1.5, 2.0, 4.0)]
        made += [SquareRoot(worth_s=s / 15, **bounds)]
    return made


def tradeoff(
    notifications: pd.DataFrame,
    channel: Channel,
    strategies: Iterable[Strategy],
    seeds: Iterable[int],
    rules: Rules | None = None,
    **lifetime: Any,
) -> pd.DataFrame:
    """A row a strategy: `Delivered.summary`, mean over the seeds, and whether it lies on the frontier."""
    strategies, seeds = list(strategies), list(seeds)
    rows = [
        pd.concat(
            [delivered(notifications, channel, s, rules, seed=seed, **lifetime).summary() for seed in seeds], axis=1
        ).mean(axis=1)
        for s in strategies
    ]
    table = pd.DataFrame(rows)
    table.insert(0, "strategy", [type(s).__name__ for s in strategies])
    table.insert(1, "value", strategies)
    return table.assign(frontier=undominated(table))


def undominated(points: pd.DataFrame | Mapping[str, Any]) -> np.ndarray:
    """Which points no other point beats in `checks_per_hour` and `stale_share` both.

    >>> undominated({"checks_per_hour": [1, 2, 3], "stale_share": [0.5, 0.6, 0.1]}).tolist()
    [True, False, True]
    """
    x, y = np.asarray(points["checks_per_hour"]), np.asarray(points["stale_share"])
    beaten = (
        (x[None, :] <= x[:, None])
        & (y[None, :] <= y[:, None])
        & ((x[None, :] < x[:, None]) | (y[None, :] < y[:, None]))
    )
    return np.asarray(~beaten.any(axis=1))
