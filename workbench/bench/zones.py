"""Zones: polygons of 50 to 200 vertices and fixes inside them, against `geopandas.sjoin`.

The zones are stars with rounded and deep dents, so that boxes alone say little; they overlap and leave gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import shapely

from workbench.bench.islands import by_mobile, islands
from workbench.bench.workload import Workload
from workbench.replay import replay


def write_zones(load: Workload, folder: Path, zones: int = 1_000) -> Path:
    """Zones in the square of a workload, as well-known binary."""
    rng = np.random.default_rng(load.seed + 1)
    drawn = []
    for x, y in rng.uniform(0, load.side_m, (zones, 2)):
        angle = np.linspace(0, 2 * np.pi, rng.integers(50, 201), endpoint=False)
        radius = load.side_m / 50 * (1 + 0.4 * np.sin(rng.integers(2, 9) * angle + rng.uniform(0, 6)))
        radius *= rng.uniform(0.9, 1.1, len(angle))
        drawn.append(shapely.Polygon(np.stack([x + radius * np.cos(angle), y + radius * np.sin(angle)], axis=1)))
    target = folder / f"zones-{zones}.parquet"
    pd.DataFrame({"place": np.arange(zones), "geometry": [zone.wkb for zone in drawn]}).to_parquet(target, index=False)
    return target


def sjoin(fixes: Path, zones: Path) -> pd.DataFrame:
    """The timelines by `geopandas.sjoin` and grouping."""
    import geopandas

    moved, areas = by_mobile(fixes), pd.read_parquet(zones)
    drawn = geopandas.GeoDataFrame(areas[["place"]], geometry=shapely.from_wkb(areas["geometry"]))
    points = geopandas.GeoDataFrame(moved[[]], geometry=geopandas.points_from_xy(moved["x"], moved["y"]))
    hits = geopandas.sjoin(points, drawn, predicate="intersects")
    return islands(moved, hits["place"].to_numpy(), hits.index.to_numpy())


def contenders(load: Workload, folder: Path) -> Iterator[tuple[str, Callable[[], pd.DataFrame]]]:
    """Who is compared, the peer first."""
    fixes, _ = load.write(folder)
    zones = write_zones(load, folder)
    yield "geopandas.sjoin and grouping", lambda: sjoin(fixes, zones)
    yield "workbench, local", lambda: replay("proximity", fixes, zones, "local").timelines
