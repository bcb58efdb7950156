"""The field: clients that are points or discs around them, and who matches whom, in compiled code.

For the commonest scenarios: every pair of populations is decided by *gates*, relations of two discs around the
positions of the two clients, and by *residuals*, conditions that no position enters. `gated` says whether a scenario is
of that kind. Then

* a move changes only the mover's lists, and they are found with a grid: one compiled call;
* the residuals of two rows depend on their cells alone, so rows that are alike share a *class*, and a table says which
  classes match;
* whatever else is done to a client (it comes, goes, changes its attributes) takes it out of the field and puts it back.

Positions are logged, so that the history can be asked about: see `Field.positions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from workbench.engines import field_kernels as kernels
from workbench.engines.candidates import position_dimension
from workbench.engines.lowering import is_plain
from workbench.geometry import WGS84
from workbench.model import shapes
from workbench.model.columns import MISSING, Blank, Column, Made
from workbench.model.extents import compare
from workbench.model.filters import And, Comparison, Dimension, Everything, Filter, Match, Not, Or, Var
from workbench.model.history import Client, Instance, Party, State
from workbench.model.pubsub import PUBLICATION, Population
from workbench.model.regions import Region
from workbench.model.relations import Containment, Enclosure, Overlap, Within
from workbench.model.scenario import Binding, Scenario
from workbench.model.shapes import Shape
from workbench.model.spaces import Position

MOST_CLASSES = 1_000_000
"""How many pairs of classes the table of residuals may hold."""
LOG_BITS = 16
LOG_MASK = (1 << LOG_BITS) - 1
"""How many moves a piece of the log holds, as a power of two, and which of them a line is."""
Pair = tuple[Party, Party]


# -- which scenarios ---------------------------------------------------------------------------------------------


class Gate(NamedTuple):
    """Two discs around the clients' positions that have to lie to each other in a certain way."""

    form: int
    publication: str
    """the region of the publication"""
    subscription: str
    dimension: str
    reach: float


class Residual(NamedTuple):
    """A condition that no position enters, and whose filter it stands in."""

    role: str
    binding: Binding
    condition: Filter


class Gated(NamedTuple):
    """How two populations match: all gates and all residuals; never, where there are no gates."""

    gates: tuple[Gate, ...]
    residuals: tuple[Residual, ...]


def gated(scenario: Scenario) -> dict[tuple[str, str], Gated] | None:
    """The gates and residuals of every pair of populations; None where one is not of that kind.

    >>> from workbench.scenarios.proximity import scenario
    >>> gated(scenario(300))["places", "mobiles"].gates
    (Gate(form=1, publication='reach', subscription='here', dimension='position', reach=0.0),)
    """
    if any(p.single or p.profiles or p.stay is not None for p in scenario.populations):
        return None
    found = {}
    for publication in scenario.publications:
        for subscription in scenario.subscriptions:
            pair = _gated(scenario, publication, subscription)
            if pair is None:
                return None
            found[publication.name, subscription.name] = pair
    return found


def _gated(scenario: Scenario, publication: Population, subscription: Population) -> Gated | None:
    gates: list[Gate] = []
    residuals: list[Residual] = []
    for own, other in ((publication, subscription), (subscription, publication)):
        bindings = scenario.bindings(own.filter, other)
        if not bindings:
            return Gated((), ())
        if len(bindings) > 1:
            return None
        for condition in own.filter.parts if isinstance(own.filter, And) else (own.filter,):
            gate = _gate(condition, own, other, bindings[0])
            if gate is not None:
                gates.append(gate)
            elif is_plain(condition) and not _placed(condition, own, other):
                residuals.append(Residual(own.role, bindings[0], condition))
            else:
                return None
    return Gated(tuple(gates), tuple(residuals)) if gates else None


def _placed(condition: Filter, *sides: Population) -> bool:
    """Whether a position enters a condition."""
    types = {label: kind for p in sides for _, r in p.regions for label, kind in r.space.dimensions}
    return any(
        isinstance(types.get(use), Position) if isinstance(use, str) else position_dimension(use) is not None
        for node in condition.walk()
        for _, use in node.uses()
    )


def _gate(condition: Filter, own: Population, other: Population, binding: Binding) -> Gate | None:
    if not isinstance(condition, Match) or len(condition.space.dimensions) != 1:
        return None
    dimension = position_dimension(condition.space)
    if dimension is None or not (isinstance(condition.left, Var) and isinstance(condition.right, Var)):
        return None
    if {condition.left.side, condition.right.side} != {"own", "other"}:
        return None
    names = {}
    for term, owner in ((t, own if t.side == "own" else other) for t in (condition.left, condition.right)):
        name = term.name if term.side == "own" else binding[term.name]
        if not _around_the_client(dict(owner.regions)[name], dimension):
            return None
        names[owner.role] = name
    left = own if condition.left.side == "own" else other
    publication_left = left.role == PUBLICATION
    match condition.relation:
        case Within(distance=distance):
            form, reach = kernels.TOGETHER, float(distance)
        case Overlap():
            form, reach = kernels.TOGETHER, 0.0
        case Containment():
            form, reach = kernels.PUBLICATION_AROUND if publication_left else kernels.SUBSCRIPTION_AROUND, 0.0
        case Enclosure():
            form, reach = kernels.SUBSCRIPTION_AROUND if publication_left else kernels.PUBLICATION_AROUND, 0.0
        case _:
            return None
    return Gate(form, names[PUBLICATION], names[_OTHER], dimension, reach)


_OTHER = "subscription"


def _around_the_client(region: Region, dimension: str) -> bool:
    """Whether a region's position is the client's, or a disc around it."""
    given = dict(region.constraints).get(dimension)
    if isinstance(given, Made) and given.constructor in (shapes.disc, shapes.reach, shapes.around):
        given, more = given.arguments[0], given.arguments[1:]
        if any(isinstance(a, Blank) and not isinstance(a, Column) for a in more):
            return False
    return isinstance(given, Column) and given.name == "position" and given.default is MISSING


def holds(node: Filter, own: Instance, other: Instance, binding: Binding, metric: str) -> bool:
    """Whether a plain condition holds for two rows."""

    def region(term: Any) -> Region:
        return own.regions[term.name] if term.side == "own" else other.regions[binding[term.name]]

    match node:
        case Everything():
            return True
        case And():
            return all(holds(part, own, other, binding, metric) for part in node.parts)
        case Or():
            return any(holds(part, own, other, binding, metric) for part in node.parts)
        case Not():
            return not holds(node.part, own, other, binding, metric)
        case Match():
            return node.relation.holds(region(node.left), region(node.right), node.space, metric)
        case Comparison():
            right = node.right
            if isinstance(right, Dimension):
                right = region(right.region)[right.dimension]
            return compare(region(node.left.region)[node.left.dimension], node.op, right, metric)
    raise AssertionError(f"unknown node {node!r}")


# -- the field ---------------------------------------------------------------------------------------------------


class Classes:
    """Rows of one role that are alike as far as residuals can tell."""

    def __init__(self, populations: Iterable[Population]) -> None:
        self.numbers: dict[tuple[Any, ...], int] = {}
        self.examples: list[tuple[str, Instance]] = []
        self._columns: dict[str, list[str]] = {}
        for p in populations:
            read: set[str] = set()
            for _, region in p.regions:
                for dimension, given in region.constraints:
                    if isinstance(given, Blank) and not isinstance(region.space.type_of(dimension), Position):
                        read |= given.columns()
            self._columns[p.name] = sorted(read)

    def key(self, population: str, values: Mapping[str, Any]) -> tuple[Any, ...]:
        # The type belongs to it: 1 and True are equal, and no region takes both for the same.
        row = (values.get(name) for name in self._columns[population])
        return (population, *((type(value), value) for value in row))


class Field:
    """Everybody's place, and who matches whom."""

    def __init__(self, scenario: Scenario, plan: Mapping[tuple[str, str], Gated], metric: str, remember: bool) -> None:
        self.scenario = scenario
        self.plan = plan
        self.metric = metric
        self.geodesic = metric == WGS84
        self.slots: dict[Client, int] = {}
        self.clients: list[Client] = []
        self.movers: dict[Any, int] = {}
        """who can be moved by one call: id where it is the only one, and (table, id)"""
        self._ambiguous: set[Any] = set()
        self._publishing = [p.name for p in scenario.publications]
        self._subscribing = [p.name for p in scenario.subscriptions]
        self._classes = (Classes(scenario.publications), Classes(scenario.subscriptions))
        self._columns: dict[tuple[str, str, str], int] = {}
        self._widest: list[float] = []
        self._index: Any = None
        self._remembers = remember
        self._arrays()

    def _arrays(self) -> None:
        many, reaches = [0], []
        triples: list[int] = []
        for p in self._publishing:
            for s in self._subscribing:
                for gate in self.plan[p, s].gates:
                    mine = self._column(p, gate.publication, gate.dimension)
                    theirs = self._column(s, gate.subscription, gate.dimension)
                    triples += [gate.form, mine, theirs]
                    reaches.append(gate.reach)
                many.append(len(reaches))
        self._gates = np.array(many + triples, np.int64)
        self._reach = np.array(reaches, np.float64)
        self._widest = [0.0] * len(self._columns)
        self._place = np.zeros((16, 3))
        self._calm = np.zeros((16, 4))
        self._radius = np.zeros((16, len(self._columns)))
        self._extent = np.zeros((16, len(self._publishing)))
        self._kind = np.full((16, len(self._publishing) + len(self._subscribing)), -1, np.int64)
        self._truth = np.zeros((4, 4), np.bool_)
        self._rooms = np.zeros((1 << 10, 3), np.int64)
        self._entries = np.zeros((1 << 12, 2), np.int64)
        self._spots = np.zeros((1 << 12, 3))
        self._own = np.zeros((16, 5), np.int64)
        self._own[:, 3] = -1
        self._lists = np.zeros(1 << 10, np.int64)
        self._meta = np.zeros(96, np.int64)
        self._out = np.zeros(512, np.int64)
        self._logs: list[tuple[np.ndarray, np.ndarray]] = []
        """the log in pieces, so that it grows without being copied; the kernels write to the last"""
        self._meta[kernels.KEEPS] = self._remembers
        self._meta[kernels.GEODESIC] = self.geodesic
        self._meta[kernels.PUBLISHING] = len(self._publishing)
        self._meta[kernels.SUBSCRIBING] = len(self._subscribing)
        self._meta[kernels.POINTS_LEVEL] = -1
        self._meta[kernels.LOWEST] = kernels.EVERYWHERE
        self._state()

    def _column(self, population: str, region: str, dimension: str) -> int:
        return self._columns.setdefault((population, region, dimension), len(self._columns))

    def _state(self) -> None:
        """The arguments of the kernels that move, put together once."""
        meta = self._meta
        n = int(meta[kernels.LOGGED]) >> LOG_BITS
        if self._remembers and n == len(self._logs):
            size = 1 << LOG_BITS
            self._logs.append((np.empty((size, 2), np.int64), np.empty((size, 3))))
        log, logged = self._logs[n] if self._remembers else (np.zeros((0, 2), np.int64), np.zeros((0, 3)))
        meta[kernels.LOG_BASE] = n << LOG_BITS
        self._arguments = (
            self._place, self._calm, self._radius, self._kind, self._truth, self._gates, self._reach, self._rooms,
            self._entries, self._spots, self._own, self._lists, self._meta, self._out, log, logged,
        )  # fmt: skip
        self.state = kernels.addresses(*self._arguments)

    # -- moves -----------------------------------------------------------------------------------------

    def walks(self, slot: int, x: float, y: float) -> bool:
        """Whether a client can be moved there by a step: it only subscribes, and there is such a place."""
        inside = abs(x) <= 180.0 and abs(y) <= 90.0 if self.geodesic else x - x == 0.0 and y - y == 0.0
        return inside and bool(self._own[slot, 4])

    def walk(self, slot: int, x: float, y: float, z: float, t: int) -> int:
        """Move a subscriber; the transitions stand in `out`."""
        while (n := int(kernels.walk(*self._arguments, slot, x, y, z, t))) < 0:
            self.make_room(n)
        return n

    def transitions(self, n: int, slot: int) -> tuple[list[Pair], list[Pair]]:
        """What the latest walk said: the pairs that left M, and those that joined it."""
        sides: tuple[list[Pair], list[Pair]] = ([], [])
        for said in self._out[:n].tolist():
            sides[said & 1].append(self.pair(said >> 1, slot))
        return sides

    def orderly(self, slots: np.ndarray, x: np.ndarray, y: np.ndarray, t: np.ndarray, after: int) -> bool:
        """Whether these moves can be made together: by such as only subscribe, forward in time from an instant on."""
        seen = np.full(len(self.clients), np.iinfo(np.int64).min)
        return bool(kernels.orderly(self.state, slots, x, y, t, after, seen))

    def walk_all(self, slots: np.ndarray, x: np.ndarray, y: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Make moves that are `orderly`; gives (row, transition) for each that there was."""
        said, row, told = np.empty((max(1024, len(slots) // 16), 2), np.int64), 0, 0
        while True:
            row, told, full = kernels.steps(self.state, slots, x, y, t, row, said, told)
            if row == len(slots):
                return said[:told]
            if full:
                self.make_room(full)
            else:
                said = np.concatenate([said, np.empty((len(said) + len(self._out), 2), np.int64)])

    def spots(self, slots: np.ndarray) -> Callable[[], None]:
        """Where clients are; gives what puts them back after each has been moved, as the latest moves of all."""
        places, last, logged = self._place[slots], self._own[slots, 3], int(self._meta[kernels.LOGGED])

        def back() -> None:
            for slot, (x, y, z) in zip(slots.tolist(), places.tolist(), strict=True):
                self.walk(slot, x, y, z, 0)  # what this turns over is not worth a word
            self._own[slots, 3] = last
            self._meta[kernels.LOGGED] = logged
            self._state()

        return back

    def positions(self, client: Client, after: int) -> list[tuple[int, tuple[float, float, float]]]:
        """Where a client was moved to after an instant, as far as that is remembered; the latest move always is."""
        slot = self.slots.get(client)
        if slot is None or self._own[slot, 3] < 0:
            return []
        n = int(self._own[slot, 3])
        if not self._remembers:
            return [(n, tuple(self._place[slot].tolist()))] if n > after else []
        found = []
        while n >= 0:
            log, logged = self._logs[n >> LOG_BITS]
            t, before = log[n & LOG_MASK].tolist()
            if t <= after:
                break
            found.append((t, tuple(logged[n & LOG_MASK].tolist())))
            n = before
        return found[::-1]

    def instants(self, first: int) -> tuple[np.ndarray, int]:
        """The instants of the moves from a line of the log on, and the line after the last."""
        upto = int(self._meta[kernels.LOGGED])
        pieces = [log[:, 0] for log, _ in self._logs[first >> LOG_BITS : (upto >> LOG_BITS) + 1]]
        begin = first & ~LOG_MASK
        return np.unique(np.concatenate([*pieces, np.zeros(0, np.int64)])[first - begin : upto - begin]), upto

    def matched_by(self, party: Party) -> list[Party]:
        """The publications that match a subscription."""
        slot = self.slots.get(party.client)
        pairs = [] if slot is None else [self.pair(match, slot) for match in self._list(slot)]
        return [p for p, s in pairs if s == party]

    def slots_of(self, table: str, ids: Any) -> np.ndarray:
        """The slots of clients of a table; -1 where there is none."""
        if self._index is None or self._index[0] != table:
            known = [(client.id, slot) for client, slot in self.slots.items() if client.table == table]
            names = pd.Index([id for id, _ in known])
            slots = np.array([slot for _, slot in known], np.int64)
            dense = None
            if names.dtype == np.int64 and len(names) and names.min() >= 0 and names.max() < 16 * len(names) + 1024:
                dense = np.full(int(names.max()) + 2, -1, np.int64)
                dense[names.to_numpy()] = slots
            self._index = (table, names, np.append(slots, -1), dense)
        _, names, slots, dense = self._index
        ids = np.asarray(ids)
        if dense is not None and np.issubdtype(ids.dtype, np.integer):
            inside = (ids >= 0) & (ids < len(dense) - 1)
            return dense[np.where(inside, ids, len(dense) - 1)]  # type: ignore[no-any-return]
        return slots[names.get_indexer(ids)]  # type: ignore[no-any-return]

    def pair(self, match: int, slot: int) -> Pair:
        """The two of a match in a client's list."""
        item, k = divmod(int(match), len(self._subscribing))
        p, j = divmod(item, len(self._publishing))
        return Party(self._publishing[j], self.clients[p]), Party(self._subscribing[k], self.clients[slot])

    # -- whatever else is done to a client -------------------------------------------------------------

    def fits(self, population: Population, values: Mapping[str, Any]) -> bool:
        """Whether a row can be in the field."""
        position = values.get("position")
        if position is not None and not (isinstance(position, Shape) and position.is_point):
            return False
        mine, others = self._classes if population.role == PUBLICATION else self._classes[::-1]
        try:
            known = mine.key(population.name, values) in mine.numbers
        except TypeError:  # a set as a cell
            return False
        return known or (len(mine.numbers) + 1) * len(others.numbers) <= MOST_CLASSES

    def put(self, client: Client, state: State | None) -> list[Pair]:
        """A client as it is now, in the field or out of it; gives the pairs that begin or cease to match."""
        slot = self.slots.get(client)
        if slot is None:
            if state is None or not state.instances:
                return []
            slot = self._enrol(client)
        said = self._leave(slot)
        self._fill(slot, state)
        for j in range(len(self._publishing)):
            if self._kind[slot, j] >= 0:
                self._lay(slot, j, True)
                said += self._retold(slot, j, self._audience(slot, j))
        if any(self._kind[slot, len(self._publishing) :] >= 0):
            self._stand(slot, True)
            for match in self._found(slot):
                self._flip(slot, match)
                said.append(self.pair(match, slot))
        return said

    def pairs(self) -> Iterator[Pair]:
        """Everything that matches."""
        for slot in range(len(self.clients)):
            for match in self._list(slot):
                yield self.pair(match, slot)

    def matches(self, pair: Pair) -> bool:
        """Whether a pair matches now."""
        slot, p = self.slots[pair[1].client], self.slots[pair[0].client]
        item = p * len(self._publishing) + self._publishing.index(pair[0].population)
        return item * len(self._subscribing) + self._subscribing.index(pair[1].population) in self._list(slot)

    def _leave(self, slot: int) -> list[Pair]:
        said = []
        if any(self._kind[slot, len(self._publishing) :] >= 0):
            said += [self.pair(match, slot) for match in self._list(slot)]
            self._own[slot, 1] = 0
            self._stand(slot, False)
        for j in range(len(self._publishing)):
            if self._kind[slot, j] >= 0:
                said += self._retold(slot, j, self._audience(slot, j))
                self._lay(slot, j, False)
        return said

    def _fill(self, slot: int, state: State | None) -> None:
        instances = state.instances if state else {}
        self._kind[slot] = -1
        self._calm[slot] = 0.0
        wider = False
        for (population, region, dimension), column in self._columns.items():
            if population in instances:
                shape = dict(instances[population].regions[region].constraints).get(dimension)
                self._radius[slot, column] = shape.radius_m if isinstance(shape, Shape) else np.nan
                if isinstance(shape, Shape):
                    self._place[slot] = shape.x, shape.y, shape.z
                    if population in self._subscribing and shape.radius_m > self._widest[column]:
                        self._widest[column] = shape.radius_m
                        wider = True
        for n, population in enumerate((*self._publishing, *self._subscribing)):
            if population in instances:
                columns = [c for (p, _, _), c in self._columns.items() if p == population]
                if not np.isnan(self._radius[slot, columns]).any():
                    self._kind[slot, n] = self._class_of(population, instances[population], state)
        published = self._kind[slot, : len(self._publishing)] >= 0
        self._own[slot, 4] = not published.any() and (self._kind[slot] >= 0).any()
        for j in range(len(self._publishing)):
            if self._kind[slot, j] >= 0:
                self._extent[slot, j] = self._extent_of(slot, j)
        if wider:
            self._widen(slot)

    def _class_of(self, population: str, instance: Instance, state: State | None) -> int:
        assert state is not None
        role = population in self._subscribing
        mine, others = self._classes[role], self._classes[not role]
        key = mine.key(population, state.values)
        number = mine.numbers.get(key)
        if number is None:
            number = mine.numbers[key] = len(mine.examples)
            mine.examples.append((population, instance))
            axis = int(role)
            if number >= self._truth.shape[axis]:
                self._truth = np.concatenate([self._truth, np.zeros_like(self._truth)], axis=axis)
                self._state()
            for n, (name, example) in enumerate(others.examples):
                pair = ((name, example), (population, instance)) if role else ((population, instance), (name, example))
                self._truth[(n, number) if role else (number, n)] = self._alike(*pair)
        return number

    def _alike(self, publication: tuple[str, Instance], subscription: tuple[str, Instance]) -> bool:
        plan = self.plan[publication[0], subscription[0]]
        if not plan.gates:
            return False
        for role, binding, condition in plan.residuals:
            own, other = publication[1], subscription[1]
            own, other = (own, other) if role == PUBLICATION else (other, own)
            if not holds(condition, own, other, binding, self.metric):
                return False
        return True

    def _extent_of(self, slot: int, j: int) -> float:
        """How far a publication can reach."""
        totals = [0.0]
        for s in self._subscribing:
            found = []
            for gate in self.plan[self._publishing[j], s].gates:
                mine = self._radius[slot, self._columns[self._publishing[j], gate.publication, gate.dimension]]
                widest = self._widest[self._columns[s, gate.subscription, gate.dimension]]
                match gate.form:
                    case kernels.TOGETHER:
                        found.append(gate.reach + mine + widest)
                    case kernels.PUBLICATION_AROUND:
                        found.append(mine)
                    case _:
                        found.append(widest)
            totals.append(min(found, default=0.0))
        return float(max(totals))

    def _widen(self, but: int) -> None:
        """A subscription reaches farther than any before: the publications are laid out anew."""
        for slot in range(len(self.clients)):
            for j in range(len(self._publishing)):
                if slot != but and self._kind[slot, j] >= 0:
                    self._lay(slot, j, False)
                    self._extent[slot, j] = self._extent_of(slot, j)
                    self._lay(slot, j, True)

    # -- calls of kernels ------------------------------------------------------------------------------

    def _audience(self, slot: int, j: int) -> set[int]:
        found = kernels.around(
            self._place[: len(self.clients)], self._calm, self._radius, self._kind, self._truth, self._gates,
            self._reach, self._rooms, self._entries, self._meta, slot, j, self._extent[slot, j],
        )  # fmt: skip
        return set(found.tolist())

    def _retold(self, slot: int, j: int, subscriptions: Iterable[int]) -> list[Pair]:
        """Turn a publication's matches over."""
        said = []
        item = slot * len(self._publishing) + j
        for found in subscriptions:
            s, k = divmod(found, len(self._subscribing))
            self._flip(s, item * len(self._subscribing) + k)
            said.append(self.pair(item * len(self._subscribing) + k, s))
        return said

    def _flip(self, slot: int, match: int) -> None:
        while (full := kernels.toggle(self._own, self._lists, self._meta, slot, match)) < 0:
            self.make_room(full)

    def _found(self, slot: int) -> list[int]:
        """What a subscriber who has an empty list matches."""
        keeps = self._meta[kernels.KEEPS]
        last = self._own[slot, 3]
        self._meta[kernels.KEEPS] = 0
        x, y, z = self._place[slot].tolist()
        n = self.walk(slot, x, y, z, 0)
        self._meta[kernels.KEEPS], self._own[slot, 3] = keeps, last
        self._own[slot, 1] = 0
        return [said >> 1 for said in self._out[:n].tolist()]

    def _lay(self, slot: int, j: int, adds: bool) -> None:
        item, extent = slot * len(self._publishing) + j, self._extent[slot, j]
        if adds and self._meta[kernels.POINTS_LEVEL] < 0:
            self._level_points(int(kernels.box_of(*self._place[slot, :2], extent, self.geodesic)[4]))
        while kernels.lay(self._place, self._rooms, self._entries, self._spots, self._meta, slot, item, extent, adds):
            self.make_room(kernels.NO_ENTRIES)

    def _stand(self, slot: int, adds: bool) -> None:
        if adds and self._meta[kernels.POINTS_LEVEL] < 0:
            self._level_points(31)
        while kernels.stand(self._place, self._rooms, self._entries, self._spots, self._meta, slot, adds):
            self.make_room(kernels.NO_ENTRIES)

    def _level_points(self, level: int) -> None:
        self._meta[kernels.POINTS_LEVEL] = level

    def _list(self, slot: int) -> list[int]:
        start, count = self._own[slot, :2]
        return self._lists[start : start + count].tolist()  # type: ignore[no-any-return]

    # -- room --------------------------------------------------------------------------------------------

    def _enrol(self, client: Client) -> int:
        slot = self.slots[client] = len(self.clients)
        self.clients.append(client)
        if slot == len(self._place):
            for name in ("_place", "_calm", "_radius", "_extent", "_kind", "_own"):
                have = getattr(self, name)
                setattr(self, name, np.concatenate([have, np.zeros_like(have)]))
            self._kind[slot:] = -1
            self._own[slot:, 3] = -1
            self._state()
        self.movers[client.table, client.id] = slot
        if client.id in self.movers or client.id in self._ambiguous:
            self._ambiguous.add(client.id)
            self.movers.pop(client.id, None)
        else:
            self.movers[client.id] = slot
        self._index = None
        return slot

    def make_room(self, of: int) -> None:
        """Twice as much of what a kernel said is full."""
        if of == kernels.NO_LISTS:
            self._lists = np.concatenate([self._lists, np.zeros_like(self._lists)])
        elif of == kernels.NO_ENTRIES:
            self._regrid()
        elif of == kernels.NO_OUT:
            self._out = np.zeros(2 * len(self._out), np.int64)
        self._state()

    def _regrid(self) -> None:
        """The same grid with more room, and with more rooms where they are crowded."""
        full = self._rooms[self._rooms[:, 1] > 0]
        before = np.cumsum(full[:, 1]) - full[:, 1]
        at = np.repeat(full[:, 0] - before, full[:, 1]) + np.arange(full[:, 1].sum())
        kept, beside = self._entries[at], self._spots[at]
        rooms = len(self._rooms)
        while 2 * rooms < len(kept):
            rooms *= 2
        self._rooms = np.zeros((rooms, 3), np.int64)
        self._entries = np.zeros((max(2 * len(self._entries), 8 * len(kept)), 2), np.int64)
        self._spots = np.zeros((len(self._entries), 3))
        self._meta[kernels.ENTRIES] = 0
        kernels.insert_all(kept, beside, self._rooms, self._entries, self._spots, self._meta)
