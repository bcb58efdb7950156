"""Baselines: what a conventional publish/subscribe system would have sent on the same history (Subject Spaces, 6.2).

Each function takes a `Replay` and gives a small table, one row a system, so that the paper's three advantages are
measured and not only argued:

* `stateless`: one notification for each fix and each pair that matches then, against one for each transition; of these
  `redundant` are all that repeat an earlier one;
* `one_sided`: only the publishers' filters, or only the subscribers', against both;
* `resubscribing`: unsubscribe and subscribe again for each subscription of a client that moves, against one update.

The fixes are those that the replay read: identical rows counted once, rows that were set aside not at all.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from workbench import tables
from workbench.engines import local, reference
from workbench.engines.reference import naming
from workbench.errors import DataError
from workbench.model.filters import everything
from workbench.model.history import Client, Party
from workbench.model.scenario import Scenario
from workbench.replay import Replay


def stateless(made: Replay) -> pd.DataFrame:
    """Notifications of a broker that keeps no state: each fix is an event, told for every matching pair of its client.

    A fix counts once for each such pair, whether its client publishes or subscribes. What a stateless broker cannot
    say is that something is over.

    >>> from workbench import replay
    >>> fixes = {"mobile": [7, 7, 7, 7], "t": [1, 2, 3, 4], "x": [0.0, 10.0, 20.0, 900.0], "y": [0.0] * 4}
    >>> stateless(replay("proximity", fixes, {"place": ["cafe"], "x": [0.0], "y": [0.0]}, engine="reference"))
                 broker  matches  unmatches  notifications
    0         stateless        3          0              3
    1  state-persistent        1          1              2
    """
    told = int(_events(made).sum())
    kinds = _pandas(made.notifications)["kind"]
    matches, unmatches = (int((kinds == kind).sum()) for kind in ("match", "unmatch"))
    return pd.DataFrame(
        [("stateless", told, 0, told), ("state-persistent", matches, unmatches, matches + unmatches)],
        columns=["broker", "matches", "unmatches", "notifications"],
    )


def redundant(made: Replay) -> int:
    """How many notifications of a stateless broker say what it has said before: all but the first while a pair matches.

    >>> from workbench import replay
    >>> fixes = {"mobile": [7, 7, 7, 7], "t": [1, 2, 3, 4], "x": [0.0, 10.0, 20.0, 900.0], "y": [0.0] * 4}
    >>> redundant(replay("proximity", fixes, {"place": ["cafe"], "x": [0.0], "y": [0.0]}, engine="reference"))
    2
    """
    return int(np.maximum(_events(made) - 1, 0).sum())


def one_sided(made: Replay) -> pd.DataFrame:
    """Notifications if only one side could filter.

    ``unwanted`` are the matches that the other side's filter would have refused at that instant.
    """
    both = made.scenario
    only = {
        "publishers' filters only": _accepting(both, subscriptions=True),
        "subscribers' filters only": _accepting(both, publications=True),
    }
    engine = reference if made.engine == "reference" else local
    symmetric = _ticks(made)
    rows = []
    for label, scenario in only.items():
        data = replace(made.data, scenario=scenario)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # half a scenario may have no part to index
            timelines, _ = engine.run(data, _until(made))
        lines = _ticks(replace(made, timelines=timelines))
        rows.append((label, *_counted(timelines), _not_in(lines, symmetric)))
    rows.append(("both (symmetric)", *_counted(made.timelines), 0))
    return pd.DataFrame(rows, columns=["matching", "matches", "notifications", "unwanted"])


def resubscribing(made: Replay) -> pd.DataFrame:
    """Messages to the broker when clients move.

    Without updates, a client with k subscriptions unsubscribes from and subscribes to each of them again, 2k messages
    a move; here its position is updated once, whatever k is. The fix that a client comes to exist with is no move.

    >>> from workbench import replay
    >>> fixes = {"mobile": [7, 7, 7], "t": [1, 2, 3], "x": [0.0, 10.0, 20.0], "y": [0.0] * 3}
    >>> resubscribing(replay("proximity", fixes, {"place": ["cafe"], "x": [0.0], "y": [0.0]}, engine="reference"))
                       system  subscriptions  moves  messages
    0  unsubscribe, subscribe              1      2         4
    1                  update              1      2         2
    """
    held = sum(p.table == "fixes" for p in made.scenario.subscriptions)
    moves = sum(max(0, len(at) - 1) for at in _moves(made).values())
    return pd.DataFrame(
        [("unsubscribe, subscribe", held, moves, 2 * held * moves), ("update", held, moves, moves)],
        columns=["system", "subscriptions", "moves", "messages"],
    )


def _pandas(table: Any) -> pd.DataFrame:
    return tables.load(table)


def _moves(made: Replay) -> dict[Client, np.ndarray]:
    """The instants of every mobile's fixes, in order."""
    if "fixes" not in made.data.tables:
        raise DataError("a comparison with other systems counts fixes, and this replay had none")
    frame = made.data.tables["fixes"].frame
    last = _until(made)
    kept = frame[(frame["op"] != "remove") & (frame["t"] <= last)]
    instants = {Client("fixes", id): at.to_numpy("int64") for id, at in kept.groupby("id", sort=False)["t"]}
    return {client: np.sort(at) for client, at in instants.items()}


def _events(made: Replay) -> np.ndarray:
    """For each timeline the number of fixes in it, of either side."""
    lines, moves = _ticks(made), _moves(made)
    sides = {"publication": made.scenario.publications, "subscription": made.scenario.subscriptions}
    counts = np.zeros(len(lines), np.int64)
    for side, populations in sides.items():
        mobile = {naming(populations)(party): at for party, at in _members(populations, moves)}
        for n, (name, begin, end) in enumerate(zip(lines[side], lines["tau"], lines["pi"], strict=True)):
            if name in mobile:
                first, last = np.searchsorted(mobile[name], [begin, end])
                counts[n] += last - first
    return counts


def _members(populations: Any, moves: dict[Client, np.ndarray]) -> list[tuple[Party, np.ndarray]]:
    return [(Party(p.name, c), at) for p in populations if p.table == "fixes" for c, at in moves.items()]


def _ticks(made: Replay) -> pd.DataFrame:
    """The timelines with tau and pi in ticks; one that goes on ends after the replay."""
    lines, clock = _pandas(made.timelines), made.data.clock
    after = _until(made) + 1
    return lines.assign(
        tau=[clock.ticks(t) for t in lines["tau"]],
        pi=[after if pd.isna(t) else clock.ticks(t) for t in lines["pi"]],
    )


def _until(made: Replay) -> int:
    clock, last = made.data.clock, made.metrics["until"]
    return clock.ticks(int(last) if clock.unit is None else last)


def _counted(timelines: Any) -> tuple[int, int]:
    notifications = tables.notifications_frame(_pandas(timelines))
    return int((notifications["kind"] == "match").sum()), len(notifications)


def _accepting(scenario: Scenario, publications: bool = False, subscriptions: bool = False) -> Scenario:
    """The same scenario, one side accepting everybody."""
    return replace(
        scenario,
        publications=[replace(p, filter=everything) if publications else p for p in scenario.publications],
        subscriptions=[replace(p, filter=everything) if subscriptions else p for p in scenario.subscriptions],
    )


def _not_in(lines: pd.DataFrame, wanted: pd.DataFrame) -> int:
    """How many timelines begin while their pair is not in the wanted ones."""
    spans: dict[tuple[Any, Any], list[tuple[int, int]]] = {}
    for line in wanted.itertuples():
        spans.setdefault((line.publication, line.subscription), []).append((line.tau, line.pi))
    return sum(
        not any(tau <= line.tau < pi for tau, pi in spans.get((line.publication, line.subscription), ()))
        for line in lines.itertuples()
    )
