"""Proximity as hand-written SQL on DuckDB: a grid join, then islands.

The plain way to do by hand what the scenario ``proximity`` does: places are laid into every grid cell that their disc
touches, each fix looks into its own cell, exact distances decide, and consecutive fixes of a mobile that lie in the
same disc are one timeline. Written for the metric at hand; it gives full timelines and nothing else.
"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from workbench.geometry import EARTH_RADIUS_M, PLANAR, WGS84

_TIMELINES = """
WITH numbered AS (
    SELECT mobile, t, {x} AS x, {y} AS y,
           row_number() OVER w AS n,
           lead(t) OVER w AS next_t
    FROM fixes WINDOW w AS (PARTITION BY mobile ORDER BY t)
),
laid AS (
    SELECT place, {x} AS px, {y} AS py, reach, cell_x, cell_y
    FROM discs,
         unnest(generate_series(floor(({x} - reach_x) / {cell_x})::BIGINT,
                                floor(({x} + reach_x) / {cell_x})::BIGINT)) AS a(cell_x),
         unnest(generate_series(floor(({y} - reach_y) / {cell_y})::BIGINT,
                                floor(({y} + reach_y) / {cell_y})::BIGINT)) AS b(cell_y)
),
hits AS (
    SELECT place, mobile, t, next_t, n,
           n - row_number() OVER (PARTITION BY place, mobile ORDER BY n) AS island
    FROM numbered JOIN laid
      ON floor(x / {cell_x})::BIGINT = cell_x AND floor(y / {cell_y})::BIGINT = cell_y
    WHERE {inside}
)
SELECT place AS publication, mobile AS subscription, min(t) AS tau,
       CASE WHEN bool_or(next_t IS NULL) THEN NULL ELSE max(next_t) END AS pi,
       CASE WHEN bool_or(next_t IS NULL) THEN NULL ELSE 'unmatch' END AS ended
FROM hits GROUP BY place, mobile, island
"""

_INSIDE = {
    PLANAR: "(x - px) * (x - px) + (y - py) * (y - py) <= reach * reach",
    WGS84: (
        f"2 * {EARTH_RADIUS_M} * asin(sqrt(least(1.0, pow(sin(radians(y - py) / 2), 2)"
        " + cos(radians(y)) * cos(radians(py)) * pow(sin(radians(x - px) / 2), 2)))) <= reach"
    ),
}


def timelines_sql(metric: str, radius_m: float, max_latitude: float = 60.0) -> str:
    """The query for tables ``fixes`` and ``discs`` of a connection.

    >>> "generate_series" in timelines_sql(PLANAR, 500)
    True
    """
    degree_m = EARTH_RADIUS_M * math.pi / 180
    cell_y = radius_m if metric == PLANAR else radius_m / degree_m
    cell_x = radius_m if metric == PLANAR else radius_m / (degree_m * math.cos(math.radians(max_latitude)))
    x, y = ("x", "y") if metric == PLANAR else ("lon", "lat")
    return _TIMELINES.format(x=x, y=y, cell_x=repr(cell_x), cell_y=repr(cell_y), inside=_INSIDE[metric])


def proximity(connection: Any, fixes: str, places: str, radius_m: float, metric: str) -> Any:
    """Timelines of all mobiles and places, as a DuckDB relation; ``fixes`` and ``places`` are SQL table expressions."""
    names = "x, y" if metric == PLANAR else "lon, lat"
    connection.execute(f"CREATE OR REPLACE TEMP VIEW fixes AS SELECT mobile, t, {names} FROM {fixes}")
    degree_m = EARTH_RADIUS_M * math.pi / 180
    # the width of a disc in degrees grows towards the poles; a little more than enough costs only candidates
    width = (
        "reach" if metric == PLANAR else f"1.001 * reach / ({degree_m} * cos(radians(least(89.0, abs(lat) + 1))))"
    )
    height = "reach" if metric == PLANAR else f"1.001 * reach / {degree_m}"
    connection.execute(
        f"CREATE OR REPLACE TEMP VIEW discs AS SELECT *, {width} AS reach_x, {height} AS reach_y "
        f"FROM (SELECT place, {names}, {float(radius_m)!r}::DOUBLE AS reach FROM {places})"
    )
    return connection.sql(timelines_sql(metric, radius_m))


def in_order(timelines: pd.DataFrame) -> pd.DataFrame:
    """The declared order of timelines, for a comparison."""
    return timelines.sort_values(["tau", "publication", "subscription"], kind="stable").reset_index(drop=True)
