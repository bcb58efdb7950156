"""What strategies recover on real taxis' streams, and at what price: ``python -m workbench.bench.active_control``.

The notifications are those of a replay: San Francisco's cabs (every second one of the file, none of which chose a
parameter) hear for a day of the others that come within 300 m. They go through four channels to clients of each
strategy: losses of one in ten; losses that break the connection; bursts; and the gaps of the traces themselves. Prints
the table of ``docs/active_control.md``.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from workbench.brokering.delivery import (
    Adaptive,
    Channel,
    Constant,
    GilbertElliott,
    Independent,
    MultiplicativeDecrease,
    Outages,
    Prompt,
    RandomSelection,
    Receding,
    Rules,
    SquareRoot,
    Strategy,
    gaps,
)
from workbench.brokering.delivery.frontier import tradeoff
from workbench.datasets import find_data
from workbench.errors import DataError
from workbench.replay import replay

SINCE, UNTIL = 1_211_018_404, 1_211_018_404 + 86_400
"""The day, in Unix seconds."""
GAP_S = 300
"""A cab that is silent for longer is out of reach."""
SEEDS = (101, 102, 103)
RULES = Rules(spread_s=60)
"""First checks do not come in step, or the peak of the load would be theirs."""

STRATEGIES: dict[str, Strategy] = {
    "multiplicative decrease": MultiplicativeDecrease(),
    "random selection": RandomSelection(),
    "constant": Constant(),
    "adaptive": Adaptive(),
    "constant, 120 s": Constant(t0_s=120),
    "prompt, 120 s": Prompt(t0_s=120),
    "receding": Receding(t0_s=60, growth=1.5, t_max_s=7200),
    "square root": SquareRoot(t0_s=60, worth_s=4.0, t_max_s=7200),
}
"""The paper's with the numbers of Table I; one of them, and one of ours, at about the adaptive one's price; two more of
ours, with numbers that `TUNING_SEEDS` chose."""


def cabs(file: Path | None = None) -> pd.DataFrame:
    """The fixes of the day, every second cab of the file."""
    file = file or find_data("sf_cabs/sf_cabs_77.csv.gz")
    if file is None:
        raise DataError("the taxis of San Francisco were not found; data/README.md says where to get them")
    table = pd.read_csv(file).rename(columns={"cab": "mobile"})
    held_out = sorted(table["mobile"].unique())[1::2]
    table = table[table["mobile"].isin(held_out) & table["t"].between(SINCE, UNTIL)]
    return table[["mobile", "t", "lon", "lat"]].sort_values(["mobile", "t"], ignore_index=True)


def meetings(fixes: pd.DataFrame) -> pd.DataFrame:
    """Who comes within 300 m of whom. The others go on moving while a cab is silent, so its gaps do lose messages."""
    return replay("friends", fixes, parameters={"near_m": 300, "far_m": 400}).notifications


def channels(fixes: pd.DataFrame) -> dict[str, Channel]:
    """What loses messages, by name."""
    return {
        "independent": Independent(0.1),
        "broken": Independent(0.1, breaks=0.2),
        "bursts": GilbertElliott(0.01, loss_bad=0.9, good_s=1200, bad_s=200, breaks=0.3),
        "outages": Outages(0.01, table=gaps(fixes, GAP_S), breaks=0.3),
    }


def compared(stream: pd.DataFrame, channel: Channel) -> pd.DataFrame:
    """A row a strategy: means over the clients and the seeds."""
    table = tradeoff(stream, channel, STRATEGIES.values(), SEEDS, RULES, since=SINCE, until=UNTIL)
    return table.set_index(pd.Index(STRATEGIES))


def main(file: Path | None = None) -> None:
    """Print the table, as Markdown."""
    fixes = cabs(file)
    stream = meetings(fixes)
    clients, silent = stream["subscription"].nunique(), len(gaps(fixes, GAP_S))
    print(f"{clients} cabs, {len(stream):,} notifications, {silent:,} gaps of more than {GAP_S} s\n")
    print("| channel | strategy | lost | recovered | stale | checks an hour | load a second | load, peak |")
    print("|---|---|---|---|---|---|---|---|")
    for name, channel in channels(fixes).items():
        for row in compared(stream, channel).itertuples():
            shares = f"{row.lost_share:.1%} | {row.recovered_share:.1%} | {row.stale_share:.1%}"
            price = f"{row.checks_per_hour:.1f} | {row.load_per_s:.2f} | {row.load_peak:.0f}"
            print(f"| {name} | {row.Index} | {shares} | {price} |")


if __name__ == "__main__":
    import typer

    typer.run(main)
