"""Rows become changes: who begins, ends or says something new, instant by instant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import shapely

from workbench.errors import DataError, ScenarioError
from workbench.geometry import PLANAR
from workbench.model.columns import is_null
from workbench.model.history import Change, Client
from workbench.model.pubsub import Population
from workbench.model.scenario import Scenario
from workbench.model.shapes import point, shape
from workbench.tables.declared import COORDINATES, KEYS
from workbench.tables.inputs import Inputs
from workbench.tables.rows import Rows
from workbench.tables.shapes import geometry_of


def changes(data: Inputs) -> tuple[dict[int, list[Change]], dict[str, int]]:
    """The updates of a replay by instant, and the rows that had to be set aside because they say nothing.

    An update or removal of what does not exist is set aside. Rows without a time exist from the first instant on.
    """
    first, _ = data.instants
    found: dict[int, list[Change]] = {}
    aside = {"rows_set_aside": 0}
    for population in data.scenario.populations:
        if population.single:
            change = Change(Client(population.name, population.name), begin=(population.name,))
            found.setdefault(first, []).append(change)
    for rows in data.tables.values():
        members = [p for p in data.scenario.populations if p.rows == rows.table]
        profile = not members
        for t, change in _changes_of(rows, members, profile, first, data, aside):
            found.setdefault(t, []).append(change)
    return dict(sorted(found.items())), aside


def needs_position(scenario: Scenario, table: str) -> bool:
    """Whether a population reads the position of a table's rows."""
    return any(p.rows == table and "position" in p.columns() for p in scenario.populations)


def _changes_of(
    rows: Rows, members: list[Population], profile: bool, first: int, data: Inputs, aside: dict[str, int]
) -> Iterator[tuple[int, Change]]:
    wants_position = needs_position(data.scenario, rows.table)
    names = tuple(p.name for p in members)
    stays = {p.name: p.stay.in_ticks(data.clock.tick) for p in members if p.stay is not None}
    records = rows.frame.to_dict("records")
    by_id: dict[Any, list[dict[str, Any]]] = {}
    for record in records:
        by_id.setdefault(record["id"], []).append(record)
    for key, history in by_id.items():
        client = Client(rows.table, key)
        alive, there, latest = False, names, first
        for n, record in enumerate(history):
            t = first if is_null(record["t"]) else int(record["t"])
            op = record["op"]
            # the end of a lifetime is a removal
            there = tuple(name for name in there if name not in stays or t <= latest + stays[name])
            alive = alive and (profile or bool(there))
            if op == "remove":
                if not alive:
                    aside["rows_set_aside"] += 1
                    continue
                alive = False
                yield t, Change(client, end=names, forget=profile)
                continue
            if op == "update" and not alive and not profile:
                aside["rows_set_aside"] += 1
                continue
            alive, there, latest = True, there if op == "update" else names, t
            cells = _cells(record, rows, wants_position and op != "update")
            yield t, Change(client, cells, begin=there)
            following = next((int(r["t"]) for r in history[n + 1 :] if not is_null(r["t"])), None)
            for name, stay in stays.items():
                if name in there and (following is None or following > t + stay):
                    yield t + stay, Change(client, end=(name,))


def _cells(record: Mapping[str, Any], rows: Rows, position_required: bool) -> dict[str, Any]:
    cells = {str(k): v for k, v in record.items() if k not in ("id", "t", "op", "geometry") and not is_null(v)}
    cells["id"] = record["id"]
    position = None
    if rows.metric is not None:
        x, y = (record[name] for name in COORDINATES[rows.metric])
        if not is_null(x) and not is_null(y):
            z = record.get("z") if rows.metric == PLANAR else None
            position = point(x, y, 0.0 if is_null(z) else z)  # type: ignore[arg-type]
    if position is None and rows.geometry and not is_null(record["geometry"]):
        try:
            position = shape(geometry_of(record["geometry"]))
        except (ScenarioError, ValueError, shapely.errors.ShapelyError) as error:
            raise DataError(f"{rows.table}: the geometry of {record['id']!r} cannot be used: {error}") from None
    if position is not None:
        cells["position"] = position
    elif position_required:
        raise DataError(
            f"{rows.table}: {KEYS.get(rows.table, 'id')} {record['id']!r} has no position at t = {record['t']}; null "
            "coordinates are allowed only where op = 'update' (`workbench ingest` sets such rows aside)"
        )
    return cells
