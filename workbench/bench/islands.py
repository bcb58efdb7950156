"""From hits to timelines, the way one does it by hand: consecutive fixes of a mobile in one place are one visit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd


def by_mobile(fixes: Path) -> pd.DataFrame:
    """Fixes sorted by mobile and time, so that consecutive rows are consecutive fixes."""
    return pd.read_parquet(fixes).sort_values(["mobile", "t"], kind="stable").reset_index(drop=True)


def islands(moved: pd.DataFrame, place: np.ndarray, row: np.ndarray) -> pd.DataFrame:
    """Timelines from hits: ``place[k]`` holds at row ``row[k]`` of the sorted fixes.

    >>> moved = pd.DataFrame({"mobile": [1, 1, 1], "t": [10, 20, 30]})
    >>> islands(moved, np.array([7, 7]), np.array([0, 1]))
       publication  subscription  tau    pi
    0            7             1   10  30.0
    """
    mobile, t = moved["mobile"].to_numpy(), moved["t"].to_numpy()
    order = np.lexsort((row, place))
    place, row = place[order], row[order]
    new = np.ones(len(row), bool)
    new[1:] = (place[1:] != place[:-1]) | (row[1:] != row[:-1] + 1) | (mobile[row[1:]] != mobile[row[:-1]])
    first = row[new]
    last = row[np.append(new[1:], True)] if len(row) else row
    after = np.append(t[1:], 0).astype(float)
    after[np.append(mobile[1:] != mobile[:-1], True)] = np.nan
    return pd.DataFrame(
        {"publication": place[new], "subscription": mobile[first], "tau": t[first], "pi": after[last]}
    )


def in_order(timelines: pd.DataFrame) -> pd.DataFrame:
    """What two answers are compared by: whole tables of pairs and times, in the declared order."""
    found = timelines[["publication", "subscription", "tau", "pi"]].astype({"pi": "Float64"}).astype({"pi": "Int64"})
    for name in ("publication", "subscription", "tau"):
        whole = pd.api.types.is_integer_dtype(found[name])
        found[name] = found[name].astype("int64" if whole else object)
    return found.sort_values(["tau", "publication", "subscription"], kind="stable", ignore_index=True)
