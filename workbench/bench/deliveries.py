"""A million clients' delivery on Spark against a plain grouped aggregation: ``python -m workbench.bench.deliveries``.

All read the same Parquet table of notifications and need one shuffle by client. The aggregation counts and sums the
rows of each client (and Spark sums within each file before the shuffle); delivery plays each client's time: every
message through the channel, every check of its strategy. Its answer is a row a client with the client's counts, beside
the aggregation's row a client; what became of every single notification is timed too. Answers are written nowhere
(Spark's ``noop``). The best of some runs each, taken in turn, in one warm session.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.brokering.delivery import Adaptive, Delivered, GilbertElliott, delivered
from workbench.session import spark_session

HOURS = 8
FILES = 8
PLAIN = """SELECT subscription, count(*), sum(t), min(t), max(t), count_if(kind = 'match')
           FROM {rows} GROUP BY subscription"""


def write(path: Path, clients: int, pairs: int, seed: int = 1) -> Path:
    """Notifications of clients, each of which matches and leaves ``pairs`` publications, in no order."""
    made = path / f"notifications-{clients}-{pairs}.parquet"
    if made.exists():
        return made
    made.mkdir(parents=True)
    draw = np.random.default_rng(seed)
    for part, own in enumerate(np.array_split(np.arange(clients), FILES)):
        client = np.repeat(own, pairs)
        ends = np.sort(draw.integers(0, HOURS * 3600, (client.size, 2)), axis=1)
        columns = {
            "t": np.concatenate([ends[:, 0], ends[:, 1]]),
            "kind": np.repeat(["match", "unmatch"], client.size),
            "publication": np.tile(np.tile(np.arange(pairs), own.size), 2),
            "subscription": np.tile(client, 2),
        }
        table = pa.table(columns).take(pa.array(draw.permutation(2 * client.size)))
        pq.write_table(table, made / f"part-{part}.parquet")
    return made


def measure(path: Path, repeats: int = 3) -> dict[str, float]:
    """Seconds for each."""
    spark = spark_session()
    rows = spark.read.parquet(str(path))

    def delivery() -> Delivered:
        return delivered(rows, GilbertElliott(), Adaptive(), since=0, until=HOURS * 3600)

    contenders: dict[str, Callable[[], Any]] = {
        "grouped aggregation": lambda: spark.sql(PLAIN, rows=rows),
        "delivery": lambda: delivery().clients,
        "delivery, by notification": lambda: delivery().deliveries,
    }
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(repeats):
        for name, run in contenders.items():
            began = time.perf_counter()
            run().write.format("noop").mode("overwrite").save()
            best[name] = min(best[name], time.perf_counter() - began)
    return best


def main(clients: int = 1_000_000, pairs: int = 4, repeats: int = 3, data: Path = Path("data/bench")) -> None:
    """Print a table."""
    best = measure(write(data, clients, pairs), repeats)
    plain = best["grouped aggregation"]
    print(f"{clients:,} clients, {clients * pairs * 2:,} notifications")
    for name, seconds in best.items():
        print(f"{name:28}{seconds:8.2f} s{seconds / plain:8.2f}")


if __name__ == "__main__":
    import typer

    typer.run(main)
