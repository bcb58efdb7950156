"""Small worlds for tests: literal tables in, timelines and notifications as tuples out."""

from __future__ import annotations

from typing import Any

import pandas as pd

from workbench import tables
from workbench.engines.reference import Reference
from workbench.model import Scenario
from workbench.model.history import Client, History, Party
from workbench.replay import Replay, replay


def table(text: str) -> pd.DataFrame:
    """A table as it is written down: names in the first line, ``-`` for a null cell, ``_`` for a blank in a word.

    >>> table('''
    ... mobile t  x
    ... ann    1  0.5
    ... ann    2  -
    ... ''')
      mobile  t    x
    0    ann  1  0.5
    1    ann  2  NaN
    """
    head, *lines = [line.split() for line in text.strip().splitlines()]
    assert all(len(line) == len(head) for line in lines), "every row has a cell for every column"
    columns = {name: [_cell(line[i]) for line in lines] for i, name in enumerate(head)}
    return pd.DataFrame({name: _series(name, cells) for name, cells in columns.items()})


def _cell(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None if text == "-" else text.replace("_", " ")


def _series(name: str, cells: list[Any]) -> Any:
    whole = name == "t" and all(c is None or isinstance(c, int) for c in cells)
    return pd.array(cells, dtype="Int64") if whole else cells


def played(scenario: Any, fixes: Any, places: Any = None, **options: Any) -> Replay:
    """A replay on the reference engine; tables may be given as text."""
    given = [table(source) if isinstance(source, str) and "\n" in source else source for source in (fixes, places)]
    return replay(scenario, *given, engine="reference", **options)


def timelines(made: Replay) -> list[tuple[Any, ...]]:
    """(publication, subscription, tau, pi, ended), in the declared order; None while it still matches."""
    return [
        (row.publication, row.subscription, row.tau, None if pd.isna(row.pi) else row.pi, row.ended)
        for row in made.timelines.itertuples()
    ]


def notifications(made: Replay) -> list[tuple[Any, ...]]:
    """(t, kind, publication, subscription), in the declared order."""
    return [tuple(row) for row in made.notifications.itertuples(index=False)]


def reference(made: Replay, until: int | None = None) -> Reference:
    """The reference engine over the whole history of a replay, to ask it single questions."""
    history = History(made.scenario)
    for t, changes in tables.changes(made.data)[0].items():
        if until is None or t <= until:
            history.apply(t, changes)
    return Reference(made.scenario, history, made.data.clock, made.data.metric)


def party(scenario: Scenario, population: str, id: Any) -> Party:
    """A publication or subscription by its population and the id of its client."""
    return Party(population, Client(scenario.population(population).table, id))
