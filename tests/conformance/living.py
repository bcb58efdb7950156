"""A case done to the live broker, row by row, instead of being replayed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd

from tests.conformance.strategies import Case
from workbench import tables
from workbench.brokering.broker import Broker, Message
from workbench.model.history import Change, Client

Operation = Callable[..., list[Message]]


def lived(made: Case, data: tables.Inputs | None = None) -> tuple[Broker, list[Message]]:
    """The broker after a case's rows, and all that it said."""
    data = data or tables.inputs(made.scenario, made.fixes, made.places)
    until = data.instants[1] if made.until is None else data.clock.ticks(made.until)
    updates, _ = tables.changes(data)
    broker = Broker(made.scenario, clock=data.clock, metric=data.metric)
    said: list[Message] = []
    for t, changes in updates.items():
        if t <= until:
            rows = [change for change in changes if change.client.table not in singles(made)]
            for change in rows:
                said += done(broker, change, data.clock.shown(t))
            if broker.now is None and not broker._staged:
                said += broker.advance(data.clock.shown(t))  # only what exists from the start begins
    return broker, said + broker.advance(data.clock.shown(until))


def singles(made: Case) -> set[str]:
    return {p.table for p in made.scenario.populations if p.single}


def done(broker: Broker, change: Change, t: Any) -> list[Message]:
    """One row as operations: what is there already is updated, what is not is added."""
    table, id = change.client
    populations = broker.scenario.populations
    read = frozenset().union(*(p.columns() for p in populations if table in (p.table, p.profiles)))
    cells = {name: value for name, value in change.values.items() if name in read}
    members = [p.name for p in populations if p.table == table]
    said: list[Message] = []
    if not members:
        return broker.profile(table, id, t=t, **cells) if any(p.profiles == table for p in populations) else []
    for name in change.end:
        if exists(broker, name, change.client):
            said += broker.remove(name, id, t=t)
    for name in change.begin:
        # A row is written also where no region reads what it says: that counts for lifetimes.
        write = broker.update if exists(broker, name, change.client) else broker.add
        said += write(name, id, t=t, z=0.0, **cells)
    return said


def exists(broker: Broker, population: str, client: Client) -> bool:
    from workbench.model.history import Party

    return broker._exists(Party(population, client))


def rows_of(messages: list[Message]) -> list[tuple[Any, ...]]:
    """Messages as rows of notifications."""
    return [(m.t, m.kind, p, m.subscription) for m in messages for p in m.publications]


def in_order(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=repr)


def notified(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """A table of notifications as rows."""
    return list(frame[["t", "kind", "publication", "subscription"]].astype(object).itertuples(index=False, name=None))
