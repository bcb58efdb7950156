"""What receivers do not tell, drawn: ages, wishes, circles of friends, teams, tanks, prices and calls.

Services need to know more of a mobile than where it was, and public fixes say nothing else. Each function here draws
one such thing by (seed, id), see `workbench.datasets.draws`: the same mobile has the same age in any excerpt of the
data. What a data set does say is left as it is. Figures that rest on drawn attributes speak of the service, not of the
people in the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from workbench.datasets.city import LITRES_PER_M, TANK_L
from workbench.datasets.distance import distance_m
from workbench.datasets.draws import uniform
from workbench.datasets.layout import hash_ids


def _draw(ids: Any, seed: int, purpose: str) -> np.ndarray:
    return uniform(seed, purpose, hash_ids(pa.array(list(ids))).view(np.int64))


def people(ids: Iterable[Any], seed: int = 1, opted_in: float = 0.7) -> pd.DataFrame:
    """Profiles of people: `id`, `age` (16 to 80), and `adverts`, true for the share that opted in to advertisements.

    >>> people(["ann", "bob"], opted_in=1.0)[["id", "adverts"]]
        id  adverts
    0  ann     True
    1  bob     True
    """
    names = sorted(set(ids))
    return pd.DataFrame(
        {
            "id": names,
            "age": (16 + 65 * _draw(names, seed, "age")).astype(int),
            "adverts": _draw(names, seed, "opts in") < opted_in,
        }
    )


def choices(ids: Iterable[Any], among: Sequence[Any], seed: int = 1, purpose: str = "choice") -> pd.Series:
    """For each id one of several values, by id: a team, a kind of exhibit, a circle of friends.

    >>> choices(["ann", "bob", "ann"], ["red", "blue"], seed=2).nunique() <= 2
    True
    """
    names = sorted(set(ids))
    taken = (_draw(names, seed, purpose) * len(among)).astype(int)
    return pd.Series([among[k] for k in taken], index=names, name=purpose)


def circles(fixes: pd.DataFrame, count: int = 5, seed: int = 1, meeting_h: float = 2) -> pd.DataFrame:
    """Profiles for the friends service: everybody is in one of some circles, and seeks the others of it.

    A meeting of ``meeting_h`` hours begins for each at a drawn instant of the data: `context` changes then, and back.
    """
    names = sorted(fixes["mobile"].unique())
    circle = choices(names, [f"circle {n + 1}" for n in range(count)], seed, "circle").to_numpy()
    first, last = fixes["t"].min(), fixes["t"].max()
    begins = _after(first, _draw(names, seed, "meeting") * _seconds(last - first))
    ends = _after(begins, np.full(len(names), meeting_h * 3600.0))
    always = pd.DataFrame({"id": names, "t": first, "role": circle, "context": "free", "seeks": circle})
    meeting = pd.DataFrame({"id": names, "t": begins, "context": "in a meeting"})
    after = pd.DataFrame({"id": names, "t": ends, "context": "free"})
    table = pd.concat([always, meeting, after], ignore_index=True).astype({"t": fixes["t"].dtype})
    return table.drop_duplicates(["id", "t"], keep="last")


def tanks(fixes: pd.DataFrame, seed: int = 1) -> pd.DataFrame:
    """Fixes with `fuel` and the driver's `refuel_level`, in per cent of a tank.

    Litres in `fuel_l` and `refuel_level_l` (the city has them) are converted. Without them the tank falls with the
    way between fixes and is filled up at a drawn level; the driver looks for petrol in the last tenth before that.

    >>> city = pd.DataFrame({"mobile": ["c1"], "t": [1], "fuel_l": [9.0], "refuel_level_l": [4.5]})
    >>> tanks(city)[["fuel", "refuel_level"]].values.tolist()
    [[20.0, 10.0]]
    >>> bare = pd.DataFrame({"mobile": [7, 7], "t": [1, 2], "x": [0.0, 1000.0], "y": 0.0})
    >>> round(float(-tanks(bare).fuel.diff().iloc[1]), 3)
    0.178
    """
    if "fuel_l" in fixes.columns:
        return fixes.assign(fuel=100 * fixes["fuel_l"] / TANK_L, refuel_level=100 * fixes["refuel_level_l"] / TANK_L)
    sorted_fixes = fixes.sort_values(["mobile", "t"], ignore_index=True)
    names = sorted_fixes["mobile"].unique()
    level = pd.Series(np.round(10 + 15 * _draw(names, seed, "fills up at"), 1), index=names)
    first = pd.Series(_draw(names, seed, "first fuel"), index=names)
    low = sorted_fixes["mobile"].map(level)
    way = pd.Series(_way(sorted_fixes)).groupby(sorted_fixes["mobile"], sort=False).cumsum()
    used = 100 * LITRES_PER_M / TANK_L * way
    room = 100 - low  # from full down to where it is filled up, again and again
    start = sorted_fixes["mobile"].map(first) * room
    return sorted_fixes.assign(fuel=100 - (start + used) % room, refuel_level=low + 0.1 * room)


def prices(stations: pd.DataFrame, seed: int = 1) -> pd.DataFrame:
    """Petrol stations with `price` in cents a litre: that of the city in euros is converted, else one is drawn.

    >>> prices(pd.DataFrame({"place": ["s"], "price": [1.75]})).price.tolist()
    [175.0]
    """
    if "price" in stations.columns:
        return stations.assign(price=100 * stations["price"])
    return stations.assign(price=np.round(165 + 25 * _draw(stations["place"], seed, "price"), 1))


def calls(fixes: pd.DataFrame, share: float = 0.3, lasting_min: float = 15, seed: int = 1) -> pd.DataFrame:
    """Fixes with `state`: a share of the mobiles calls for help once, at a drawn instant, for some minutes.

    >>> fixes = pd.DataFrame({"mobile": 7, "t": range(0, 3600, 60), "x": 0.0, "y": 0.0})
    >>> int((calls(fixes, share=1.0, lasting_min=10).state == "calling").sum()) <= 10
    True
    """
    names = fixes["mobile"].unique()
    first, last = fixes["t"].min(), fixes["t"].max()
    begins = pd.Series(_after(first, _draw(names, seed, "call at") * _seconds(last - first)), index=names)
    who = pd.Series(_draw(names, seed, "calls") < share, index=names)
    since = fixes["t"] - fixes["mobile"].map(begins).astype(fixes["t"].dtype)
    lasting = _after(first, lasting_min * 60) - first
    calling = fixes["mobile"].map(who) & (since >= since.dtype.type(0)) & (since < lasting)
    return fixes.assign(state=np.where(calling, "calling", "quiet"))


def _way(fixes: pd.DataFrame) -> np.ndarray:
    """Metres from the fix before, of the same mobile; 0 for its first one."""
    geodesic = "lon" in fixes.columns
    at = [fixes[axis].to_numpy(float) for axis in (("lon", "lat") if geodesic else ("x", "y"))]
    before = [np.concatenate([axis[:1], axis[:-1]]) for axis in at]
    same = fixes["mobile"].eq(fixes["mobile"].shift()).to_numpy()
    return np.where(same, distance_m(before, at, geodesic=geodesic), 0.0)


def _seconds(span: Any) -> float:
    return span.total_seconds() if hasattr(span, "total_seconds") else float(span)


def _after(instant: Any, seconds: Any) -> Any:
    """An instant, or a column of them, some whole seconds later."""
    whole = np.round(seconds)
    if hasattr(instant, "tz") or (hasattr(instant, "dtype") and instant.dtype.kind == "M"):
        return instant + pd.to_timedelta(whole, unit="s")
    return instant + np.asarray(whole).astype(np.int64)
