"""Friends: pairs of mobiles within a distance, both on the move, against a grid self-join on DuckDB.

The mobiles of a workload all report at the same instants, so that the SQL needs no step functions: who is in a
neighbouring cell at the same instant is compared, consecutive instants are one timeline. Each pair is looked for once
and told to both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pandas as pd

from workbench.bench.workload import Workload
from workbench.replay import replay

_PAIRS = """
WITH numbered AS (
    SELECT mobile, x, y, dense_rank() OVER (ORDER BY t) AS n,
           floor(x / {d})::INTEGER AS cx, floor(y / {d})::INTEGER AS cy
    FROM fixes
),
instants AS (
    SELECT t, row_number() OVER (ORDER BY t) AS n, lead(t) OVER (ORDER BY t) AS next_t
    FROM (SELECT DISTINCT t FROM fixes)
),
around AS (
    SELECT mobile, n, x, y, cx + dx AS cx, cy + dy AS cy
    FROM numbered, (VALUES (0, 0), (1, 0), (1, 1), (0, 1), (-1, 1)) AS half(dx, dy)
),
hits AS (
    SELECT least(a.mobile, b.mobile) AS one, greatest(a.mobile, b.mobile) AS two, n
    FROM numbered AS a JOIN around AS b USING (n, cx, cy)
    WHERE (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y) <= {d} * {d}
      AND (a.mobile < b.mobile
           OR (a.mobile > b.mobile AND (floor(b.x / {d})::INTEGER != a.cx OR floor(b.y / {d})::INTEGER != a.cy)))
),
lines AS (
    SELECT one, two, min(n) AS first, max(n) AS last
    FROM (SELECT one, two, n, n - row_number() OVER (PARTITION BY one, two ORDER BY n) AS island FROM hits)
    GROUP BY one, two, island
),
told AS (
    SELECT one, two, f.t AS tau, l.next_t AS pi
    FROM lines JOIN instants AS f ON f.n = first JOIN instants AS l ON l.n = last
)
SELECT one AS publication, two AS subscription, tau, pi FROM told
UNION ALL SELECT two, one, tau, pi FROM told
"""


def pairs(fixes: Path, distance_m: float, threads: int = 2) -> pd.DataFrame:
    """The timelines of all pairs of mobiles within a distance, by a grid self-join on DuckDB."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET threads = {threads}")
    connection.execute(f"CREATE TEMP VIEW fixes AS SELECT * FROM read_parquet('{fixes}')")
    return connection.sql(_PAIRS.format(d=float(distance_m))).df()  # type: ignore[no-any-return]


def workload(mobiles: int = 5_000, instants: int = 1_000) -> Workload:
    """Mobiles that all report at each of some instants."""
    return Workload(fixes=mobiles * instants, mobiles=mobiles)


def contenders(
    load: Workload, folder: Path, distance_m: float = 200.0, engines: tuple[str, ...] = ("local", "spark")
) -> Iterator[tuple[str, Callable[[], pd.DataFrame]]]:
    """Who is compared, the peer first."""
    fixes, _ = load.write(folder)
    yield "DuckDB, grid self-join, 2 threads", lambda: pairs(fixes, distance_m)
    parameters = {"near_m": distance_m, "far_m": distance_m}
    for engine in engines:
        yield f"workbench, {engine}", partial(_replayed, fixes, engine, parameters)


def _replayed(fixes: Path, engine: str, parameters: dict[str, float]) -> pd.DataFrame:
    return replay("friends", fixes, None, engine, parameters).timelines  # type: ignore[no-any-return]
