"""What a replay says: timelines and notifications as the declared tables, in the declared order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from workbench.model.clock import Clock
from workbench.tables.declared import NOTIFICATIONS
from workbench.tables.inputs import Inputs


def timelines_frame(rows: Iterable[tuple[Any, Any, int, int | None, str | None]], clock: Clock) -> pd.DataFrame:
    """Timelines as the declared table, in the declared order.

    >>> timelines_frame([("cafe", 7, 3, None, None)], Clock())
      publication  subscription  tau    pi ended
    0        cafe             7    3  <NA>  None
    """
    listed = sorted(rows, key=lambda r: (r[2], _sortable(r[0]), _sortable(r[1])))
    publication, subscription, tau, pi, ended = zip(*listed, strict=True) if listed else ([], [], [], [], [])
    began = clock.column(tau)
    return pd.DataFrame(
        {
            "publication": _ids(publication),
            "subscription": _ids(subscription),
            "tau": began if clock.unit else began.astype("int64"),
            "pi": clock.column(pi),
            "ended": pd.Series(list(ended), dtype=object),
        }
    )


def _ids(values: Iterable[Any]) -> pd.Series:
    listed = list(values)
    whole = listed and all(isinstance(v, int | np.integer) and not isinstance(v, bool) for v in listed)
    return pd.Series(listed, dtype="int64" if whole else object)


def _sortable(value: Any) -> tuple[str, Any]:
    """Ids of one type in their own order, numbers before strings."""
    return ("", value) if isinstance(value, int | float | np.number) else ("s", str(value))


def told_of_their_end(timelines: pd.DataFrame, silent: frozenset[Any] = frozenset()) -> pd.Series:
    """Which timelines end with a notification."""
    told = timelines["ended"].isin(["unmatch", "publication_removed"])
    return told & ~timelines["publication"].isin(silent) if silent else told


def notifications_frame(timelines: pd.DataFrame, silent: frozenset[Any] = frozenset()) -> pd.DataFrame:
    """The notifications that timelines stand for: a match at tau, an unmatch at pi.

    Nobody is told when a subscription goes; ``silent`` publications are transient, and only their match is reported.

    >>> lines = timelines_frame([("cafe", 7, 3, 5, "unmatch"), ("cafe", 8, 4, 5, "subscription_removed")], Clock())
    >>> notifications_frame(lines)
       t     kind publication  subscription
    0  3    match        cafe             7
    1  4    match        cafe             8
    2  5  unmatch        cafe             7
    """
    told = told_of_their_end(timelines, silent)
    matches = timelines.rename(columns={"tau": "t"}).assign(kind="match")
    unmatches = timelines[told].rename(columns={"pi": "t"}).assign(kind="unmatch")
    unmatches["t"] = unmatches["t"].astype(timelines["tau"].dtype)
    both = pd.concat([unmatches[list(NOTIFICATIONS)], matches[list(NOTIFICATIONS)]], ignore_index=True)
    order = both.assign(_late=(both["kind"] == "match")).sort_values(
        ["t", "_late", "publication", "subscription"], kind="stable"
    )
    return order[list(NOTIFICATIONS)].reset_index(drop=True)


def with_types_of(data: Inputs, timelines: pd.DataFrame) -> pd.DataFrame:
    """Timelines whose ids have the type that they came with, also where there is no row to show it."""
    if len(timelines):
        return timelines
    scenario = data.scenario
    sides = {"publication": scenario.publications, "subscription": scenario.subscriptions}
    rows = {role: data.tables.get(side[0].rows) for role, side in sides.items() if len(side) == 1}
    whole = [role for role, of in rows.items() if of is not None and pd.api.types.is_integer_dtype(of.frame["id"])]
    return timelines.astype(dict.fromkeys(whole, "int64"))
