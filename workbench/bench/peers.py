"""Proximity with what a user would pick instead: each peer's own best plain way to full timelines, from Parquet.

All of them number a mobile's fixes, find the places that hold each fix, and put consecutive fixes together (islands);
they differ in what finds the places. `PEERS` names them; one that is not installed says how to get it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from workbench.bench import duckdb_sql
from workbench.bench.islands import by_mobile, islands
from workbench.geometry import PLANAR

_NUMBERED = """
WITH numbered AS (
    SELECT mobile, t, x, y, row_number() OVER w AS n, lead(t) OVER w AS next_t
    FROM fixes WINDOW w AS (PARTITION BY mobile ORDER BY t)
),
"""
_ISLANDS = """
islands AS (
    SELECT place, mobile, t, next_t, n - row_number() OVER (PARTITION BY place, mobile ORDER BY n) AS island FROM hits
)
SELECT place AS publication, mobile AS subscription, min(t) AS tau,
       CASE WHEN max(CASE WHEN next_t IS NULL THEN 1 ELSE 0 END) = 1 THEN NULL ELSE max(next_t) END AS pi
FROM islands GROUP BY place, mobile, island
"""
SPARK_SQL = f"""
{_NUMBERED}
columns AS (
    SELECT place, x AS px, y AS py,
           explode(sequence(floor((x - {{r}}) / {{r}}), floor((x + {{r}}) / {{r}}))) AS cell_x FROM places
),
laid AS (
    SELECT *, explode(sequence(floor((py - {{r}}) / {{r}}), floor((py + {{r}}) / {{r}}))) AS cell_y FROM columns
),
hits AS (
    SELECT /*+ BROADCAST(laid) */ place, mobile, t, next_t, n
    FROM numbered JOIN laid ON floor(x / {{r}}) = cell_x AND floor(y / {{r}}) = cell_y
    WHERE (x - px) * (x - px) + (y - py) * (y - py) <= {{r}} * {{r}}
),
{_ISLANDS}
"""
SEDONA_SQL = f"""
{_NUMBERED}
hits AS (
    SELECT place, mobile, t, next_t, n
    FROM (SELECT mobile, t, next_t, n, ST_Point(x, y) AS here FROM numbered) AS moved
    JOIN (SELECT place, ST_Point(x, y) AS site FROM places) AS sites ON ST_DWithin(here, site, {{r}})
),
{_ISLANDS}
"""


class Peer(NamedTuple):
    """What it is called, the package that it needs, and how it makes timelines of fixes, places and a radius."""

    name: str
    package: str
    timelines: Callable[[Path, Path, float], Any]

    @property
    def missing(self) -> str | None:
        """What to do where its package is not there."""
        if importlib.util.find_spec(self.package):
            return None
        return f"{self.name}: {self.package} is not installed (pip install 'workbench[peers]')"


def duckdb(fixes: Path, places: Path, radius_m: float, metric: str = PLANAR) -> pd.DataFrame:
    """Hand-written SQL on DuckDB: a grid join."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    moved, sites = (f"read_parquet('{file}')" for file in (fixes, places))
    return duckdb_sql.proximity(connection, moved, sites, radius_m, metric).df()  # type: ignore[no-any-return]


def sjoin(fixes: Path, places: Path, radius_m: float) -> pd.DataFrame:
    """`geopandas.sjoin` and grouping."""
    import geopandas

    moved, sites = by_mobile(fixes), pd.read_parquet(places)
    discs = geopandas.GeoDataFrame(sites[["place"]], geometry=geopandas.points_from_xy(sites["x"], sites["y"]))
    points = geopandas.GeoDataFrame(moved[[]], geometry=geopandas.points_from_xy(moved["x"], moved["y"]))
    hits = geopandas.sjoin(points, discs, predicate="dwithin", distance=radius_m)
    return islands(moved, hits["place"].to_numpy(), hits.index.to_numpy())


def sedonadb(fixes: Path, places: Path, radius_m: float) -> pd.DataFrame:
    """SQL on SedonaDB: its own spatial join."""
    import pyarrow as pa
    import sedonadb

    session = sedonadb.connect()
    for name, file in (("fixes", fixes), ("places", places)):
        session.read_parquet(str(file)).to_view(name, overwrite=True)
    return pa.table(session.sql(SEDONA_SQL.format(r=float(radius_m)))).to_pandas()


def spark_sql(fixes: Path, places: Path, radius_m: float) -> pd.DataFrame:
    """Plain Spark SQL: a grid join, the places broadcast."""
    from workbench.session import spark_session

    spark = spark_session()
    tables = {name: spark.read.parquet(str(file)) for name, file in (("fixes", fixes), ("places", places))}
    for name, table in tables.items():
        table.createOrReplaceTempView(name)
    return spark.sql(SPARK_SQL.format(r=float(radius_m))).toPandas()


PEERS = (
    Peer("DuckDB, hand-written SQL, 2 threads", "duckdb", duckdb),
    Peer("geopandas.sjoin and grouping", "geopandas", sjoin),
    Peer("SedonaDB, SQL", "sedonadb", sedonadb),
    Peer("Spark SQL, a plain grid join", "pyspark", spark_sql),
)
