"""Thinning: the fixes at which something changes, where all others stay as they are.

A filter sees of a mobile which of its *atoms* hold, and since when (`lowering`). Where only one population moves, and
none of its members looks at another, the atoms of a fix are told from this fix alone: a car is before the jam, in its
section, or past it. A fix at which the same atoms hold as at the mobile's fix before it says nothing that is not known.
Without it every set of instants is what it was, and so is every timeline. Of the cars on a motorway one fix in some
hundred is left, which is then evaluated as everywhere else.

None for everything else: lifetimes and events that each fix renews, neighbours, null cells, whatever may be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from workbench import tables
from workbench.compiling import compiled
from workbench.engines import extents, relating
from workbench.engines.extents import Positions
from workbench.engines.relating import Regions
from workbench.engines.streams import Cells, _regions, streams
from workbench.errors import WorkbenchError
from workbench.geometry import WGS84
from workbench.model.filters import Comparison, Dimension, Filter, Match, RegionTerm, Var
from workbench.model.pubsub import Population
from workbench.model.relations import Nearest
from workbench.model.scenario import Binding, Scenario

AT_ONCE = 1 << 15
"""fixes whose arrays fit into the processor's cache"""
MOST = 60
"""truth values of a fix, which are one number"""
MOST_MOBILES = 4_000_000
Region = tuple[str, str]
"""a population, and one of its regions"""


class Atom(NamedTuple):
    """A match or a comparison, and the regions that its terms stand for."""

    node: Match | Comparison
    left: Region
    right: Region | None
    """none: a constant"""


# -- which scenarios -----------------------------------------------------------------------------------------


def atoms_of(scenario: Scenario) -> tuple[Population, list[Atom]] | None:
    """Who moves, and the atoms that depend on where; None where a fix cannot be judged by itself.

    >>> from workbench.scenarios import named
    >>> moving, atoms = atoms_of(named("traffic")())
    >>> moving.name, [atom.node for atom in atoms]
    ('cars', [any cars.here m_e section, along_m(here') < [1000]])
    >>> atoms_of(named("friends")()) is None
    True
    """
    moving = [p for p in scenario.populations if "fixes" in (p.rows, p.profiles)]
    if scenario.stage is not None or scenario.visibility or len(moving) != 1:
        return None
    (mobile,) = moving
    if mobile.rows != "fixes" or mobile.profiles or mobile.stay is not None or mobile.transient:
        return None
    found: dict[Atom, None] = {}
    for own, other, binding, node in scenario.nodes():
        atom = _atom(node, own, other, binding)
        if isinstance(node, Match) and isinstance(node.relation, Nearest):
            return None
        if atom is None or mobile.name not in {side[0] for side in atom[1:] if side}:
            continue
        pair = isinstance(node, Match) and node.third is not None
        if pair and atom.right is not None and atom.left[0] == atom.right[0]:
            return None  # mobiles look at one another
        found[atom] = None
    return mobile, list(found)


def _atom(node: Filter, own: Population, other: Population, binding: Binding) -> Atom | None:
    def region(term: RegionTerm) -> Region:
        if isinstance(term, Var):
            return (own.name, term.name) if term.side == "own" else (other.name, binding[term.name])
        among = term.among  # type: ignore[attr-defined]
        return among.population, among.region

    if isinstance(node, Match):
        return Atom(node, region(node.left), region(node.right))
    if isinstance(node, Comparison):
        right = region(node.right.region) if isinstance(node.right, Dimension) else None
        return Atom(node, region(node.left.region), right)
    return None


# -- what is prepared once ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Thinning:
    """Atoms, and the regions of all that stay."""

    moving: Population
    atoms: list[Atom]
    still: Mapping[str, Mapping[str, Regions]]
    clients: Mapping[str, int]
    """how many clients those who stay have, by population"""
    metric: str

    @cached_property
    def columns(self) -> list[str]:
        """The columns of fixes that have to be read; a table may have others."""
        read = self.moving.columns() - {"position"}
        return sorted({"mobile", "t", *(name for names in tables.COORDINATES.values() for name in names), *read})

    def kept(self, fixes: pa.Table, mobile: np.ndarray, t: np.ndarray) -> np.ndarray | None:
        """Which fixes change something; None where they have to be looked at in the general way.

        ``mobile`` says whose they are, in numbers from 0; the instants of each have to rise.
        """
        columns = _plain(fixes, self.columns, self.metric)
        if columns is None or ("position" in self.moving.columns() and not columns.keys() >= set(self._axes)):
            return None
        count = int(mobile.max(initial=-1)) + 1
        latest, known = np.full(count, np.iinfo(np.int64).min), np.zeros(count, np.int64)
        kept = np.empty(len(t), bool)
        try:
            with extents.assuming(False) as refused:
                for first, state in self._states(columns, len(t)):
                    part = slice(first, first + len(state))
                    if not _turns(mobile[part], t[part], state, latest, known, kept[part]):
                        return None
        except WorkbenchError:
            return None  # the general way says what is wrong, and of whom
        return None if refused else kept

    @property
    def _axes(self) -> tuple[str, ...]:
        return tables.COORDINATES[self.metric]

    def _states(self, columns: dict[str, np.ndarray], count: int) -> Iterator[tuple[int, np.ndarray]]:
        """Which atoms hold at the fixes, as one number each; some fixes at a time."""
        for first in range(0, count, AT_ONCE):
            some = {name: values[first : first + AT_ONCE] for name, values in columns.items()}
            length = min(AT_ONCE, count - first)
            cells = Fixes(some, self._axes, length)
            mine = {name: _regions(template, cells, length) for name, template in self.moving.regions}
            state = np.zeros(length, np.int64)
            for atom in self.atoms:
                for client in range(max((self.clients.get(side[0], 0) for side in atom[1:] if side), default=1) or 1):
                    state = 2 * state + self._holds(atom, mine, client, length)
            yield first, state

    def _holds(self, atom: Atom, mine: Mapping[str, Regions], client: int, length: int) -> np.ndarray:
        def region(side: Region) -> tuple[Regions, np.ndarray]:
            if side[0] == self.moving.name:
                return mine[side[1]], np.arange(length)
            return self.still[side[0]][side[1]], np.full(length, client)

        node, (one, i) = atom.node, region(atom.left)
        if isinstance(node, Match):
            assert atom.right is not None
            two, j = region(atom.right)
            said = relating.holds(node.relation, one, i, two, j, node.space, self.metric)
            if node.third is not None and node.third.among.population == self.moving.name:
                said &= relating.among(node.third.among, mine[node.third.among.region], self.metric)
            return said
        a = one.column(node.left.dimension)
        if isinstance(node.right, Dimension):
            assert atom.right is not None
            two, j = region(atom.right)
            return extents.compare(a, i, node.op, two.column(node.right.dimension), j, self.metric)
        return extents.compare(a, i, node.op, extents.constant(node.right, 1), np.zeros(length, np.int64), self.metric)


def prepared(data: tables.Inputs, columns: frozenset[str]) -> Thinning | None:
    """What thinning needs to know but for the fixes, of which one row will do; None where nothing can be left out.

    ``columns`` are those of the fixes.
    """
    found = atoms_of(data.scenario)
    if found is None or columns & {"op", "z", "geometry"}:
        return None
    moving, atoms = found
    if "id" in moving.columns():
        return None
    others = [rows.frame for name, rows in data.tables.items() if name != "fixes"]
    if any(frame["t"].notna().any() or frame["op"].notna().any() for frame in others):
        return None
    by_name = {name: s for name, s in streams(data, data.instants[1]).by_name.items() if name != moving.name}
    clients = {name: stream.clients for name, stream in by_name.items()}
    asked = [max([clients.get(side[0], 1) for side in atom[1:] if side]) for atom in atoms]
    if sum(asked) > MOST or any(len(stream.start) != stream.clients for stream in by_name.values()):
        return None
    if any(not clients.get(side[0], 1) for atom in atoms for side in atom[1:] if side):
        return None
    return Thinning(moving, atoms, {name: s.regions for name, s in by_name.items()}, clients, data.metric)


# -- fixes ---------------------------------------------------------------------------------------------------


class Fixes(Cells):
    """The cells of some fixes, none of which is null."""

    def __init__(self, columns: Mapping[str, np.ndarray], axes: tuple[str, ...], length: int) -> None:
        self.columns, self.axes, self.length = columns, axes, length

    def whose(self, version: int) -> str:
        return "fixes"

    def has(self, name: str) -> bool:
        return name == "position" or name in self.columns

    def values(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        return self.columns[name], np.ones(self.length, bool)

    @cached_property
    def positions(self) -> Positions:
        x, y = (self.columns[name] for name in self.axes)
        nothing = np.zeros(self.length)
        return extents.points(np.ones(self.length, bool), x, y, nothing, nothing)


def _plain(fixes: pa.Table, names: list[str], metric: str) -> dict[str, np.ndarray] | None:
    """Columns as `streams` has them; None where a cell is null or can be wrong."""
    found = {}
    axes = [axis for axes in tables.COORDINATES.values() for axis in axes]
    for name in names:
        if name in ("mobile", "t") or name not in fixes.column_names:
            continue
        column, kind = fixes[name], fixes.schema.field(name).type
        if column.null_count:
            return None
        if pa.types.is_floating(kind) or pa.types.is_integer(kind):
            given = column.to_numpy()
            values = given.astype(np.float64, copy=False)
            if not np.isfinite(values).all() or (given.dtype.kind in "iu" and np.abs(values).max(initial=0.0) > 2**53):
                return None
        elif pa.types.is_string(kind) or pa.types.is_boolean(kind):
            values = column.to_pandas().astype(object).to_numpy()
        else:
            return None
        if name in axes and values.dtype != np.float64:
            return None
        found[name] = values
    for name, most in (("lon", 180.0), ("lat", 90.0)) if metric == WGS84 else ():
        if name in found and np.abs(found[name]).max(initial=0.0) > most:
            return None
    return found


@compiled
def _turns(mobile, t, state, latest, known, kept):  # type: ignore[no-untyped-def]
    """Mark the fixes whose state is another one than that of the same mobile before; false where time does not rise."""
    never = np.iinfo(np.int64).min
    for i in range(len(t)):
        m = mobile[i]
        if t[i] <= latest[m]:
            return False
        kept[i] = latest[m] == never or state[i] != known[m]
        latest[m], known[m] = t[i], state[i]
    return True


def numbered(mobile: pa.ChunkedArray) -> np.ndarray:
    """Mobiles as numbers from 0."""
    if pa.types.is_integer(mobile.type):
        given = mobile.to_numpy()
        low, high = (int(given.min()), int(given.max())) if len(given) else (0, 0)
        if high - low < MOST_MOBILES:
            return given.astype(np.int64) - low  # type: ignore[no-any-return]
    return pd.factorize(mobile.to_pandas())[0].astype(np.int64)  # type: ignore[no-any-return]
