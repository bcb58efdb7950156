"""The nearest of some places for each fix, against queries of a `scipy` k-d tree.

The tree gives one neighbour; two places at one distance would be two timelines here. The random places of a workload
have no such ties, and the answers are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from workbench.bench.islands import by_mobile, islands
from workbench.bench.workload import Workload
from workbench.model import Scenario, column, location, other, own, publications, region, subscriptions
from workbench.replay import replay


def scenario(k: int = 1) -> Scenario:
    """Mobiles hear of their nearest places."""
    spot = region(location, position=column.position)
    return Scenario(
        [location],
        [publications("places", rows="places", regions={"site": spot})],
        [
            subscriptions(
                "mobiles",
                rows="fixes",
                regions={"here": spot},
                filter=own.here.nearest(other.site, space=location, k=k),
            )
        ],
        name="nearest",
    )


def tree(fixes: Path, places: Path) -> pd.DataFrame:
    """The timelines by `scipy.spatial.cKDTree` on two threads, and grouping."""
    from scipy.spatial import cKDTree

    moved, sites = by_mobile(fixes), pd.read_parquet(places)
    found = cKDTree(sites[["x", "y"]].to_numpy()).query(moved[["x", "y"]].to_numpy(), workers=2)[1]
    return islands(moved, sites["place"].to_numpy()[found], np.arange(len(moved)))


def contenders(load: Workload, folder: Path) -> Iterator[tuple[str, Callable[[], pd.DataFrame]]]:
    """Who is compared, the peer first."""
    fixes, places = load.write(folder)
    yield "scipy cKDTree, 2 threads, and grouping", lambda: tree(fixes, places)
    yield "workbench, local", lambda: replay(scenario(), fixes, places, "local").timelines
