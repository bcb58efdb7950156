"""Excerpts: a few mobiles and hours of a data set, for a first look at a service on real data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from workbench.datasets.ingesting import load
from workbench.datasets.layout import Fixes, is_ingested, open_fixes


def excerpt(source: Any, *, hours: float = 0, mobiles: int = 0, tick_s: float = 1.0) -> pd.DataFrame:
    """The first mobiles by id, and the hours from their first fix on; 0 is all of them.

    source: ingested fixes or their folder, a pandas table, or whatever `load` reads.

    >>> fixes = pd.DataFrame({"mobile": [2, 2, 1], "t": [0, 7200, 60], "x": 0.0, "y": 0.0})
    >>> excerpt(fixes, hours=1, mobiles=2)["t"].tolist(), excerpt(fixes, mobiles=1)["mobile"].tolist()
    ([0, 60], [1])
    """
    if isinstance(source, str | Path) and is_ingested(source):
        source = open_fixes(source)
    fixes = source.to_pandas() if isinstance(source, Fixes) else source
    fixes = fixes if isinstance(fixes, pd.DataFrame) else load(fixes)
    if mobiles:
        fixes = fixes[fixes["mobile"].isin(sorted(fixes["mobile"].unique())[:mobiles])]
    if hours and len(fixes):
        since = fixes["t"] - fixes["t"].min()
        seconds = since.dt.total_seconds() if hasattr(since, "dt") else since * tick_s
        fixes = fixes[seconds <= hours * 3600]
    return fixes.reset_index(drop=True)
