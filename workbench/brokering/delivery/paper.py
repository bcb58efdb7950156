"""Tables II and III of Active Control beside the same experiment, run many times.

The paper ran each strategy once for 100 steps. One run is one draw: here every printed value stands beside the middle
95 % of single runs of model (A), and whether it lies within.

What follows for its conclusion ("our adaptive algorithm outperforms the other strategies"): see `recurrence`. The rows
`lambda` and `lambda_avg` estimate the rate at which losses were drawn, 0.05, for every strategy alike; the printed
differences are the noise of one run. The row t_avg does differ, but a constant interval as long as the adaptive
strategy's t_avg has the same k_avg, and finds its losses sooner on average. A slip: the printed lambda of the adaptive
strategy, 0.041, is not 1.23 / 28.8 = 0.043; and "smaller values for delta lead to less losses" holds for k_avg only
because t_avg is smaller: lambda, which Table III prints as growing from 0.041 to 0.05, does not depend on delta.
"""

from __future__ import annotations

import pandas as pd

from workbench.brokering.delivery.recurrence import PoissonLosses, evolution
from workbench.brokering.delivery.strategies import (
    Adaptive,
    Constant,
    MultiplicativeDecrease,
    RandomSelection,
    Strategy,
)

METRICS = ("k_avg", "t_avg", "lambda", "lambda_avg")

# Printed values, in the order of METRICS.
TABLE_II: dict[str, tuple[Strategy, tuple[float, float, float, float]]] = {
    "Multiplicative decrease": (MultiplicativeDecrease(), (0.59, 14.23, 0.042, 0.078)),
    "Random selection": (RandomSelection(), (1.19, 19.87, 0.06, 0.06)),
    "Constant check interval": (Constant(), (0.89, 20.0, 0.045, 0.045)),
    "Adaptive strategy": (Adaptive(), (1.23, 28.8, 0.041, 0.043)),
}
TABLE_III: dict[str, tuple[Strategy, tuple[float, float, float, float]]] = {
    "delta = 25": (Adaptive(delta_s=25), (1.41, 34.6, 0.041, 0.041)),
    "delta = 35": (Adaptive(delta_s=35), (1.57, 35.2, 0.045, 0.045)),
    "delta = 45": (Adaptive(delta_s=45), (1.96, 37.4, 0.052, 0.048)),
    "delta = 55": (Adaptive(delta_s=55), (1.98, 39.5, 0.05, 0.051)),
}


def reproduced(
    table: dict[str, tuple[Strategy, tuple[float, float, float, float]]],
    replications: int = 50_000,
    steps: int = 100,
    seed: int = 0,
) -> pd.DataFrame:
    """A row a printed value: its mean over replications, the 95 % range of single runs, and whether it lies within.

    With few replications the ends of the range are uncertain, and a value beside one may fall on either side.

    >>> reproduced({"Constant check interval": TABLE_II["Constant check interval"]}, replications=100)["within"].all()
    np.True_
    """
    rows = []
    for name, (strategy, printed) in table.items():
        runs = evolution(strategy, PoissonLosses(), steps, replications, seed).metrics
        for metric, value in zip(METRICS, printed):
            low, high = runs[metric].quantile([0.025, 0.975])
            # A printed value is rounded: half a unit of its last digit may lie outside.
            half = 0.5 * 10.0 ** -len(str(value).partition(".")[2])
            rows.append((name, metric, value, runs[metric].mean(), low, high, low - half <= value <= high + half))
    return pd.DataFrame(rows, columns=["strategy", "metric", "printed", "mean", "low", "high", "within"])
