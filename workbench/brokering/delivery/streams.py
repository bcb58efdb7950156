"""Notification streams made by rule, for experiments that need no positions.

Each client meets publications one after another: it matches one for a while, then none for a while. Visits come in
outings, because people do: several visits in a row, then a long pause. Real streams come from a replay.
"""

from __future__ import annotations

import numpy as np
import pandas as pd


def outings(
    clients: int, hours: float, visit_s: float = 120.0, pause_s: float = 60.0, home_s: float = 3600.0, seed: int = 0
) -> pd.DataFrame:
    """A notifications table in whole seconds: matches of `visit_s`, pauses of `pause_s`, every fifth one of `home_s`.

    All durations are exponential with these means, at least a second.

    >>> outings(clients=1, hours=0.1, seed=1)["kind"].tolist()[:3]
    ['match', 'unmatch', 'match']
    """
    random = np.random.default_rng(seed)
    visits = int(5 * hours * 3600 / (5 * visit_s + 4 * pause_s + home_s) * 2) + 10
    shape = (clients, visits)
    away = np.where(random.random(shape) < 0.2, random.exponential(home_s, shape), random.exponential(pause_s, shape))
    stay = random.exponential(visit_s, shape)
    steps = np.maximum(np.stack([away, stay], axis=2).reshape(clients, -1), 1).astype(np.int64)
    t = steps.cumsum(axis=1)
    publication = np.repeat(random.integers(0, 100, shape), 2, axis=1)
    client = np.broadcast_to(np.arange(clients)[:, None], t.shape)
    kind = np.broadcast_to(np.tile(["match", "unmatch"], visits), t.shape)
    table = pd.DataFrame(
        {"t": t.ravel(), "kind": kind.ravel(), "publication": publication.ravel(), "subscription": client.ravel()}
    )
    return table[table["t"] <= hours * 3600].sort_values(["t", "subscription"], ignore_index=True)
