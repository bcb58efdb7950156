"""All tables of one replay: the columns that a scenario reads are there, on one clock, in one metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from workbench.crs import (
    DEGREES,
    Coordinates,
    converted,
    is_geographic,
)
from workbench.errors import DataError, did_you_mean, raise_all
from workbench.geometry import PLANAR, WGS84
from workbench.model.clock import Clock
from workbench.model.columns import MISSING, Blank, Column, Made
from workbench.model.pubsub import Population
from workbench.model.scenario import Scenario
from workbench.tables.loading import load
from workbench.tables.rows import Rows, read
from workbench.tables.shapes import in_metric, shapes_of


@dataclass(frozen=True)
class Inputs:
    """All tables of one replay, agreed on one clock and one metric."""

    scenario: Scenario
    tables: Mapping[str, Rows]
    clock: Clock
    metric: str
    span: tuple[int, int] | None = None
    """the first and the last instant of the whole data, where these tables are only a part of it"""

    @property
    def instants(self) -> tuple[int, int]:
        """The first and the last instant of the data; (0, 0) where there is none."""
        ends = [self.span] if self.span is not None else ends_of(self.tables)
        return (min(a for a, _ in ends), max(b for _, b in ends)) if ends else (0, 0)

    def staged(self, timelines: pd.DataFrame, until: int | None) -> pd.DataFrame:
        """The timelines after the scenario's last stage."""
        if self.scenario.stage is None:
            return timelines
        frames = {name: rows.frame for name, rows in self.tables.items()}
        return self.scenario.stage(timelines, frames, self.clock, until)

    @property
    def counts(self) -> dict[str, int]:
        """Rows in, collapsed and set aside, over all tables."""
        names = ("rows_in", "rows_collapsed", "rows_set_aside")
        return {name: sum(rows.counts[name] for rows in self.tables.values()) for name in names}


def ends_of(tables: Mapping[str, Rows]) -> list[tuple[int, int]]:
    """The first and the last instant of each table that has one."""
    known = [rows.frame["t"].dropna() for rows in tables.values()]
    return [(int(k.min()), int(k.max())) for k in known if len(k)]


def inputs(
    scenario: Scenario, fixes: Any = None, places: Any = None, zone: str | None = None
) -> Inputs:
    """The tables that a scenario needs, read and checked against it."""
    given = {"fixes": fixes, "places": places, **scenario.tables}
    needed = {name for p in scenario.populations for name in (p.rows, p.profiles) if name}
    missing = sorted(name for name in needed if given.get(name) is None)
    if missing:
        readers = ", ".join(repr(p.name) for p in scenario.populations if p.rows in missing or p.profiles in missing)
        raise DataError(f"{readers} take their rows from {', '.join(missing)}, which were not given")
    tick = Clock(tick=scenario.tick)
    tables = {name: read(source, name, zone, tick) for name, source in given.items() if source is not None}
    clock = _one_clock(tables, tick)
    metric = _one_metric(scenario, tables)
    scenario.check_clock(clock)
    tables = {
        name: replace(rows, frame=in_metric(_reclocked(rows, clock), name, metric), clock=clock)
        for name, rows in tables.items()
    }
    faults = [fault for p in scenario.populations for fault in _column_faults(p, tables)]
    raise_all(faults, DataError)
    return Inputs(scenario, tables, clock, metric)


def _one_clock(tables: Mapping[str, Rows], default: Clock) -> Clock:
    clocks = {name: rows.clock for name, rows in tables.items() if rows.clock is not None}
    if len({c.unit is None for c in clocks.values()}) > 1:
        said = ", ".join(f"{n}: {'integers' if c.unit is None else 'timestamps'}" for n, c in clocks.items())
        raise DataError(f"the tables tell time in different ways ({said})")
    return clocks.get("fixes") or next(iter(clocks.values()), default)


def _reclocked(rows: Rows, clock: Clock) -> pd.DataFrame:
    if rows.clock is None or rows.clock.unit == clock.unit:
        return rows.frame
    scaled = rows.frame["t"].astype("object") * rows.clock.tick.nanoseconds
    rest = scaled.dropna() % clock.tick.nanoseconds
    if rest.astype(bool).any():
        raise DataError(f"{rows.table}: some t are finer than the fixes' tick of {clock.tick}")
    return rows.frame.assign(t=(scaled // clock.tick.nanoseconds).astype("Int64"))


def _one_metric(scenario: Scenario, tables: Mapping[str, Rows]) -> str:
    found = {rows.metric for rows in tables.values() if rows.metric is not None}
    if scenario.metric is not None:
        found.add(scenario.metric)
    if len(found) > 1:
        raise DataError("some coordinates are x, y in metres and some are lon, lat in degrees; convert one of the two")
    return found.pop() if found else PLANAR


def agreed(
    scenario: Scenario, places: Any, fixes: Coordinates | None
) -> tuple[Scenario, Any]:
    """A scenario's own tables, and the places, in the coordinates of the fixes (`workbench.crs`).

    Where there are no fixes, or none with coordinates, the first table that has them says what they are.
    """
    given = {"places": places, **scenario.tables}
    loaded = {
        name: load(source, name).copy(deep=False)
        for name, source in given.items()
        if source is not None and not isinstance(source, Rows)
    }
    frames = {name: frame for name, frame in loaded.items() if {"geometry", "lon", "x"} & set(frame.columns)}
    to = fixes or _coordinates_said(scenario, frames)
    if to is None:
        return scenario, places
    for name, frame in frames.items():
        if "geometry" in frame.columns:
            frame = frame.assign(geometry=shapes_of(frame, name))
        frames[name] = converted(frame, name, to)
        frames[name].attrs.pop("crs", None)  # it is what all the others are in
    own = {name: frames.get(name, source) for name, source in scenario.tables.items()}
    known = replace(scenario, metric=to.metric) if fixes is None and scenario.metric is None else scenario
    return replace(known, tables=own) if own else known, frames.get("places", places)


def _coordinates_said(scenario: Scenario, frames: Mapping[str, pd.DataFrame]) -> Coordinates | None:
    said = {name: frame.attrs.get("crs") for name, frame in frames.items()}
    for name, frame in frames.items():
        if (found := Coordinates.of(frame.columns, said[name])) is not None:
            return found
    degrees = [crs for crs in said.values() if crs is not None and is_geographic(crs)]
    if scenario.metric == WGS84 or (scenario.metric is None and degrees):
        return Coordinates(WGS84, DEGREES)
    return None


def _column_faults(population: Population, tables: Mapping[str, Rows]) -> list[str]:
    if population.single:
        return []
    known = frozenset().union(*(tables[n].columns for n in (population.rows, population.profiles) if n))
    return [
        f"{population.name!r} reads the column {name!r}; {did_you_mean(name, known)}"
        for name in sorted(_required(population) - known)
    ]


def _required(population: Population) -> set[str]:
    found: set[str] = set()

    def visit(blank: Any) -> None:
        if isinstance(blank, Column) and blank.default is MISSING:
            found.add(blank.name)
        elif isinstance(blank, Made):
            for argument in blank.arguments:
                visit(argument)

    for _, region in population.regions:
        for _, extent in region.constraints:
            if isinstance(extent, Blank):
                visit(extent)
    return found
