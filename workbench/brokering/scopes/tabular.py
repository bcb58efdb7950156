"""The table form: a table of notifications under a graph of scopes, to a table of deliveries (Scopes, 3 and 4).

`delivered(notifications, graph, subscriptions)` says of every row who receives it, what it then says, in which session
and when: what `definition.deliveries` says one by one. A pandas or Arrow table is answered by one of its kind; a Spark
table by a lazy Spark table, whose tasks run the same kernel on Arrow batches and share nothing. A path to Parquet is
answered by Spark too, and quickest: tasks read and write the files themselves, so that no row passes the JVM.

The graph becomes arrays that grow with the scopes and their ways up, not with pairs: a producer's ways up and a
consumer's ways down meet at their apexes (`kernel`). Who cannot see each other at all is told apart by the visible
roots first (Scopes, 4), and what no filter can tell apart is walked once.

The form covers what `COVERED` lists. The rest is refused by name: an event mapping that is a Python function and not
data (`mappings.converting`), traverse and delivery policies, which ask who else could receive, shapes, and a consumer
that is a scope. `scoped` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, nextafter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import portion
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workbench.brokering.scopes import kernel
from workbench.brokering.scopes.adapters import all_visible_roots
from workbench.brokering.scopes.graph import ScopeGraph
from workbench.brokering.scopes.interfaces import Interface, Passing
from workbench.brokering.scopes.mappings import Conversion, EventMapping
from workbench.brokering.scopes.policies import BROADCAST, EVERYBODY, Delayed, Immediate, Until
from workbench.errors import DataError, raise_all
from workbench.model.extents import Extent, ValueSet
from workbench.tables import parquet_files

COVERED = {
    "visibility": "any acyclic graph, several superscopes, scopes that publish events of their own",
    "interfaces": "per edge and direction: numbers in intervals, texts in sets or outside of them",
    "mappings": "converting(…): numbers rescaled, constants put in, of all or of what passes a filter",
    "sessions": "tags put on and stripped; a column `context` for what is published in reaction",
    "publishing": "immediate, delayed, until",
    "duplicates": "once for each notification, representation and session, as early as any way brings it",
}
"""What the table form covers, as ``docs/support.md`` publishes it; everything else is refused by name."""

PUBLISHING = (Immediate, Delayed, Until)
RUN = 200_000
"""Rows that a task gathers before it calls the kernel: the call's own cost vanishes."""
REMEMBERED = 4_000_000
"""Classes of notifications that a task remembers before it forgets them all: bounds its memory."""
Cuts = tuple[np.ndarray, np.ndarray]
RESERVED = ("id", "t", "component", "context", "consumer", "session")


def delivered(
    notifications: Any, graph: ScopeGraph, subscriptions: Mapping[str, Interface], out: str | Path | None = None
) -> Any:
    """Who receives which notification, as what, in which session, when; ``out`` is where files are answered to.

    Columns: ``id``, ``component`` (who publishes), ``t`` (whole numbers, where publishing policies ask for it) and
    ``context`` (sessions, separated by blanks) where they are; all others are what the notification says. The result
    has ``consumer`` and ``session`` instead of ``component`` and ``context``.

    >>> from workbench.brokering.scopes.graph import graph
    >>> from workbench.brokering.scopes.interfaces import kinds
    >>> floor = graph("ME->TF", "DB->TF", "TF->Prof", "C3->Prof").with_interface("TF", output=kinds("Quote"))
    >>> said = pd.DataFrame({"id": [1, 2], "component": "ME", "kind": ["Quote", "OrderBook"]})
    >>> delivered(said, floor, {"DB": kinds("Quote", "OrderBook"), "C3": kinds("Quote", "OrderBook")})
       id consumer session       kind
    0   1       C3              Quote
    1   1       DB              Quote
    2   2       DB          OrderBook
    """
    if isinstance(notifications, pd.DataFrame):
        return delivered(pa.Table.from_pandas(notifications, preserve_index=False), graph, subscriptions).to_pandas()
    if isinstance(notifications, pa.Table):
        return Run(_form(graph, subscriptions, notifications.schema))(notifications)
    if isinstance(notifications, str | Path):
        from workbench.engines import spark

        files = parquet_files(Path(notifications))
        form = _form(graph, subscriptions, _coded(pq.read_schema(files[0])))
        return spark.over_files(files, _file_task(form), Run(form)(form.schema.empty_table()).schema, out)
    form = _form(graph, subscriptions, _arrow_schema(notifications))
    return notifications.mapInArrow(_task(form), notifications.selectExpr(*form.expressions).schema)


def _task(form: Form) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        run = Run(form)
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(b.num_rows for b in waiting) >= RUN:
                yield from run(pa.Table.from_batches(waiting)).to_batches()
                waiting = []
        if waiting:
            yield from run(pa.Table.from_batches(waiting)).to_batches()

    return task


def _file_task(form: Form) -> Callable[[Sequence[str]], Iterator[pa.Table]]:
    texts = [column.name for column in form.schema if pa.types.is_dictionary(column.type)]

    def task(files: Sequence[str]) -> Iterator[pa.Table]:
        run = Run(form)
        for file in files:
            with pq.ParquetFile(file, read_dictionary=texts) as opened:
                for group in range(opened.num_row_groups):
                    yield run(opened.read_row_group(group, columns=form.schema.names))

    return task


def _coded(schema: pa.Schema) -> pa.Schema:
    """The columns of a file, texts as codes: a text is then looked at once and not in every row."""
    texts = pa.dictionary(pa.int32(), pa.string())
    return pa.schema([pa.field(c.name, texts) if _is_text(c.type) else pa.field(c.name, c.type) for c in schema])


def _arrow_schema(table: Any) -> pa.Schema:
    if not hasattr(table, "mapInArrow"):
        raise DataError(f"notifications are a pandas, Arrow or Spark table, got {type(table).__name__}")
    return table.limit(0).toArrow().schema


# -- refused ---------------------------------------------------------------------------------------------------------


def refused(graph: ScopeGraph) -> list[str]:
    """What of a graph the table form does not cover, by name."""
    said = []
    for name, scope in sorted(graph.scopes.items()):
        if scope.traverse != BROADCAST:
            said.append(f"scope {name!r} has the traverse policy {scope.traverse!r}; the table form has broadcast only")
        if scope.delivery != EVERYBODY:
            said.append(f"scope {name!r} has the delivery policy '{scope.delivery}'; the table form has everybody only")
        if type(scope.publishing) not in PUBLISHING:
            said.append(f"scope {name!r} has the publishing policy '{scope.publishing}', which the table form lacks")
    for (member, scope_name), edge in sorted(graph.edges.items()):
        where = f"{member} -> {scope_name}"
        for mapping in (edge.mapping_out, edge.mapping_in):
            if mapping is not None and not isinstance(mapping.function, Conversion):
                said.append(f"{where}: mapping {mapping.name!r} is a function; the table form has converting(…) only")
    return said


# -- the graph as arrays -----------------------------------------------------------------------------------------------


class _Compiler:
    """Filters, interfaces and mappings by number, equal ones once."""

    def __init__(self, columns: Mapping[str, bool], carried: Mapping[str, Any]) -> None:
        self.carried = carried
        self.dimensions = {name: k for k, name in enumerate(columns)}
        self.texts: dict[str, dict[Any, int]] = {name: {} for name, text in columns.items() if text}
        self.faults: list[str] = []
        self._filters: dict[Passing, int] = {}
        self._interfaces: dict[Interface, int] = {}
        self._mappings: dict[EventMapping, int] = {}
        self.constraints: list[list[tuple[int, int, list[tuple[float, float]]]]] = []
        self.interfaces: list[list[int]] = []
        self.mappings: list[tuple[int, list[tuple[int, int, float]]]] = []

    def code(self, name: str, value: Any) -> float:
        return float(self.texts[name].setdefault(value, len(self.texts[name])))

    def interface(self, given: Interface) -> int:
        if given.filters is None:
            return -1
        if given not in self._interfaces:
            self._interfaces[given] = len(self.interfaces)
            self.interfaces.append([self.filter(f) for f in sorted(given.filters, key=repr)])
        return self._interfaces[given]

    def filter(self, given: Passing) -> int:
        if given not in self._filters:
            self._filters[given] = len(self.constraints)
            self.constraints.append([self._constraint(name, extent) for name, extent in given.constraints])
        return self._filters[given]

    def _constraint(self, name: str, extent: Extent) -> tuple[int, int, list[tuple[float, float]]]:
        text = name in self.texts
        if name in self.carried:
            kind = self.carried[name]
            self.faults.append(f"a filter constrains {name!r}, a {kind}; the table form has numbers and texts only")
            return (0, kernel.NOTHING, [])
        if isinstance(extent, ValueSet):
            if name not in self.dimensions or not text:
                return (0, kernel.NOTHING, [])
            codes = sorted(self.code(name, value) for value in extent.values)
            how = kernel.NOT_AMONG if extent.complement else kernel.AMONG
            return (self.dimensions[name], how, [(c, c) for c in codes])
        if isinstance(extent, portion.Interval):
            if name not in self.dimensions or text:
                return (0, kernel.NOTHING, [])
            return (self.dimensions[name], kernel.WITHIN, [_closed(atom) for atom in extent if not atom.empty])
        self.faults.append(f"a filter constrains {name!r} to {extent!r}; the table form has numbers and texts only")
        return (0, kernel.NOTHING, [])

    def mapping(self, given: EventMapping | None) -> int:
        if given is None:
            return -1
        if given not in self._mappings:
            self._mappings[given] = len(self.mappings)
            conversion = given.function
            assert isinstance(conversion, Conversion)
            steps = []
            for kind, name, value in (
                *((kernel.SCALE, n, v) for n, v in conversion.scale),
                *((kernel.PUT, n, v) for n, v in conversion.put),
            ):
                if name not in self.dimensions:
                    self.faults.append(f"mapping {given.name!r} changes {name!r}, no column of numbers or texts")
                elif (name in self.texts) != isinstance(value, str) or isinstance(value, bool):
                    have = "text" if name in self.texts else "a number"
                    self.faults.append(f"mapping {given.name!r}: the column {name!r} is {have}, got {value!r}")
                else:
                    value = self.code(name, value) if kind == kernel.PUT and name in self.texts else float(value)
                    steps.append((kind, self.dimensions[name], value))
            only = -1 if conversion.only is None else self.filter(conversion.only)
            self.mappings.append((only, steps))
        return self._mappings[given]

    def filters_array(self) -> kernel.Filters:
        flat = [c for constraints in self.constraints for c in constraints]
        left = [ends for _, _, pairs in flat for ends in pairs]
        return kernel.Filters(
            _starts(self.interfaces), _ints(f for fs in self.interfaces for f in fs), _starts(self.constraints),
            _ints(d for d, _, _ in flat), _ints(k for _, k, _ in flat), _starts([pairs for _, _, pairs in flat]),
            np.array([low for low, _ in left], float), np.array([high for _, high in left], float),
        )  # fmt: skip

    def mappings_array(self) -> kernel.Mappings:
        flat = [step for _, steps in self.mappings for step in steps]
        return kernel.Mappings(
            _ints(only for only, _ in self.mappings), _starts([steps for _, steps in self.mappings]),
            _ints(k for k, _, _ in flat), _ints(d for _, d, _ in flat), np.array([v for _, _, v in flat], float),
        )  # fmt: skip


def _closed(atom: Any) -> tuple[float, float]:
    """An interval of numbers by its first and last number."""
    low, high = (-inf if atom.lower == -portion.inf else float(atom.lower)), (
        inf if atom.upper == portion.inf else float(atom.upper)
    )
    low = nextafter(low, inf) if atom.left == portion.OPEN and low != -inf else low
    return low, nextafter(high, -inf) if atom.right == portion.OPEN and high != inf else high


def _ints(values: Iterable[int]) -> np.ndarray:
    return np.fromiter(values, np.int64)


def _starts(lists: Iterable[Sequence[Any]]) -> np.ndarray:
    """Where each list starts when they are laid end to end."""
    return np.concatenate([[0], np.cumsum(_ints(map(len, lists)))]).astype(np.int64)


def _ways(
    graph: ScopeGraph, scopes: Mapping[str, int], edges: Mapping[tuple[str, str], int]
) -> tuple[kernel.Ways, list[str]]:
    """All ways up from each scope and down to it, and the sessions that a consumer can be reached in."""
    up: list[list[tuple[int, int, int]]] = []
    down: list[list[tuple[int, list[tuple[int, int]], int]]] = []
    sessions: dict[str, int] = {"": 0}
    entries = 0
    for scope in scopes:
        climbing: list[tuple[tuple[str, ...], int, int]] = [((scope,), -1, -1)]
        found: list[tuple[int, int, int]] = []
        ways = []
        for way, before, edge in climbing:
            here = way[-1]
            tags = " ".join(sorted(graph.sessions(way)))
            steps = [(edges[pair], scopes[pair[0]]) for pair in pairwise(way)][::-1]
            ways.append((scopes[here], steps, sessions.setdefault(tags, len(sessions))))
            climbing += [
                ((*way, above), entries + len(found), edges[here, above]) for above in graph.nx.successors(here)
            ]
            found.append((scopes[here], before, edge))
        entries += len(found)
        up.append(found)
        down.append(ways)
    policies = [graph.scopes[name].publishing for name in scopes]
    valid = [list(p.valid) if isinstance(p, Until) else [] for p in policies]
    ways_up = [entry for found in up for entry in found]
    ways_down = [way for found in down for way in found]
    steps_down = [step for _, steps, _ in ways_down for step in steps]
    return kernel.Ways(
        _starts(up), _ints(scope for scope, _, _ in ways_up), _ints(before for _, before, _ in ways_up),
        _ints(edge for _, _, edge in ways_up),
        _starts(down), _ints(apex for apex, _, _ in ways_down), _starts([steps for _, steps, _ in ways_down]),
        _ints(edge for edge, _ in steps_down), _ints(member for _, member in steps_down),
        _ints(session for _, _, session in ways_down),
        np.array([graph.scopes[name].session for name in scopes], bool),
        _ints({Delayed: kernel.DELAYED, Until: kernel.UNTIL}.get(type(p), kernel.IMMEDIATE) for p in policies),
        _ints(p.ticks if isinstance(p, Delayed) else 0 for p in policies),
        _starts(valid), _ints(a for v in valid for a, _ in v), _ints(b for v in valid for _, b in v),
    ), list(sessions)  # fmt: skip


def _asked(compiler: _Compiler, interests: Mapping[int, Interface]) -> tuple[int, list[set[int]], list[int]]:
    """The dimension by which consumers are found: a text that most ask for, preferably one that no mapping puts in."""
    put = {d for _, steps in compiler.mappings for kind, d, _ in steps if kind == kernel.PUT}
    fixed = dict.fromkeys(compiler.texts, 0)
    for interest in interests.values():
        for name in fixed:
            fixed[name] += _codes(compiler, interest, name) is not None
    best = max(fixed, key=lambda name: (fixed[name] * (1 if compiler.dimensions[name] in put else 2)), default=None)
    if best is None or not fixed[best]:
        return -1, [set(interests)], []
    lists: list[set[int]] = [set() for _ in range(len(compiler.texts[best]) + 1)]
    for consumer, interest in interests.items():
        codes = _codes(compiler, interest, best)
        for code in [-1] if codes is None else codes:
            lists[code].add(consumer)
    dimension = compiler.dimensions[best]
    puts = {int(v) for _, steps in compiler.mappings for kind, d, v in steps if kind == kernel.PUT and d == dimension}
    return dimension, lists, sorted(puts)


def _codes(compiler: _Compiler, interest: Interface, name: str) -> set[int] | None:
    """The codes of a text that an interest is limited to; None where it is not."""
    if interest.filters is None:
        return None
    codes: set[int] = set()
    for passing in interest.filters:
        extent = dict(passing.constraints).get(name)
        if not isinstance(extent, ValueSet) or extent.complement:
            return None
        codes |= {compiler.texts[name][value] for value in extent.values}
    return codes


def _form(graph: ScopeGraph, subscriptions: Mapping[str, Interface], schema: pa.Schema) -> Form:
    """Compile a graph and subscriptions for notifications of these columns; all faults at once."""
    faults = refused(graph)
    faults += [f"the notifications have no column {name!r}" for name in ("id", "component") if name not in schema.names]
    faults += [f"the column {name!r} is the result's" for name in ("consumer", "session") if name in schema.names]
    raise_all(faults)
    types = {name: schema.field(name).type for name in schema.names}
    said = {name: kind for name, kind in types.items() if name not in RESERVED}
    carried = {name: str(kind) for name, kind in said.items() if not (_is_text(kind) or _is_number(kind))}
    compiler = _Compiler({name: _is_text(kind) for name, kind in said.items() if name not in carried}, carried)
    numbered = pa.types.is_integer(types["component"])
    components, scopes = sorted(graph.components), {name: k for k, name in enumerate(sorted(graph.scopes))}
    for name in sorted(subscriptions):
        if name in graph.scopes:
            faults.append(f"the consumer {name!r} is a scope; the table form delivers to simple components")
        elif numbered and not name.isdigit():
            faults.append(f"the consumer {name!r} is no number, and the column 'component' holds numbers")
    if any(type(s.publishing) is not Immediate for s in graph.scopes.values()) and not (
        "t" in types and pa.types.is_integer(types["t"])
    ):
        faults.append("publishing policies ask for a column 't' of whole numbers")
    edges = {pair: k for k, pair in enumerate(graph.edges)}
    attached = list(graph.edges.values())
    made_edges = kernel.Edges(
        _ints(scopes[scope] for _, scope in edges),
        *(_ints(compiler.interface(getattr(edge, side)) for edge in attached) for side in ("output", "input")),
        *(_ints(compiler.mapping(getattr(edge, side)) for edge in attached) for side in ("mapping_out", "mapping_in")),
    )
    ways, sessions = _ways(graph, scopes, edges)
    roots = {name: k % 64 for k, name in enumerate(sorted(graph.roots))}
    seen = all_visible_roots(graph)
    names = [*components, *scopes]
    up = [[edges[name, scope] for scope in graph.nx.successors(name)] for name in components] + [[-1] for _ in scopes]
    wanted = {k: subscriptions[name] for k, name in enumerate(components) if name in subscriptions}
    interests = [compiler.interface(wanted[k]) if k in wanted else -1 for k in range(len(names))]
    raise_all(faults + compiler.faults)
    dimension, lists, put = _asked(compiler, wanted)
    members = kernel.Members(
        _starts(up), _ints(edge for found in up for edge in found),
        np.array([sum(1 << bit for bit in {roots[r] for r in seen[name]}) for name in names], np.uint64),
        _ints(interests), _ints([-1] * len(components) + list(scopes.values())),
    )  # fmt: skip
    consumers = [sorted(found) for found in lists]
    asked = kernel.Asked(dimension, _starts(consumers), _ints(c for found in consumers for c in found), _ints(put))
    index = kernel.Index(
        compiler.filters_array(), compiler.mappings_array(), made_edges, ways, members, asked
    )
    above = np.diff(ways.up)
    states = max((sum(int(above[made_edges.scope[e]]) for e in found) for found in up[: len(components)]), default=0)
    steps = [(kind, d) for _, listed in compiler.mappings for kind, d, _ in listed]
    scaled = frozenset(d for kind, d in steps if kind == kernel.SCALE)
    return Form(
        index, names, scopes, schema, types, tuple(compiler.dimensions), compiler.texts, sessions,
        max(states, int(above.max(initial=0)), 1), frozenset(d for _, d in steps), scaled, _telling(compiler, scaled),
    )  # fmt: skip


def _telling(compiler: _Compiler, scaled: frozenset[int]) -> dict[int, Cuts | None]:
    """The dimensions that filters look at: with the ends of their intervals where these tell all that filters can see.

    What is rescaled on the way is compared later and elsewhere, so there every number is another one; so is every text.
    """
    found: dict[int, list[tuple[float, float]] | None] = {}
    for d, kind, left in (c for constraints in compiler.constraints for c in constraints):
        if kind == kernel.WITHIN and d not in scaled:
            found.setdefault(d, [])
            found[d] = [*(found[d] or ()), *left]
        elif kind != kernel.NOTHING:
            found[d] = None
    return {
        d: None if ends is None else (np.unique([low for low, _ in ends]), np.unique([high for _, high in ends]))
        for d, ends in sorted(found.items())
    }


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


# -- rows -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """A compiled graph, and how rows become numbers and numbers rows."""

    index: kernel.Index
    names: list[str]
    scopes: Mapping[str, int]
    schema: pa.Schema
    types: Mapping[str, pa.DataType]
    dimensions: tuple[str, ...]
    texts: Mapping[str, Mapping[str, int]]
    sessions: list[str]
    states: int
    changed: frozenset[int]
    scaled: frozenset[int]
    telling: Mapping[int, Cuts | None]

    @property
    def expressions(self) -> list[str]:
        """The result's columns, for Spark to tell their types."""
        made = ["id", "component AS consumer", "'' AS session", *(["t"] if "t" in self.types else [])]
        for name in self.types:
            if name not in RESERVED:
                whole = name in self.dimensions and self._becomes_double(name)
                made.append(f"CAST(`{name}` AS DOUBLE) AS `{name}`" if whole else f"`{name}`")
        return made

    def _becomes_double(self, name: str) -> bool:
        return self.dimensions.index(name) in self.scaled

    def classes(self, producers: np.ndarray, contexts: np.ndarray, said: np.ndarray) -> np.ndarray:
        """What makes the class of each row: who publishes, in reaction to what, and all that filters can see."""
        made = np.empty((len(producers), 2 + len(self.telling)), np.int64)
        made[:, 0], made[:, 1] = producers, contexts
        for k, (d, cuts) in enumerate(self.telling.items(), 2):
            values = np.ascontiguousarray(said[:, d])
            if cuts is None:
                made[:, k] = values.view(np.int64)
            else:
                low, high = np.searchsorted(cuts[0], values, "right"), np.searchsorted(cuts[1], values, "left")
                made[:, k] = np.where(np.isnan(values), -1, low * (len(cuts[1]) + 1) + high)
        return made

    @property
    def consumers(self) -> pa.Array:
        """Everybody by number, as the column of components names them."""
        kind = self.types["component"]
        if pa.types.is_integer(kind):
            return pa.array([int(n) if n.isdigit() else None for n in self.names], kind)
        return pa.array(self.names, pa.string()).cast(kind)

    def producers(self, rows: pa.Table) -> np.ndarray:
        """Who publishes, by number; -1 where the graph does not have them."""
        return _array(pc.fill_null(_places(rows["component"], self.consumers), -1).cast(pa.int64()))

    def said(self, rows: pa.Table) -> np.ndarray:
        """What rows say, as numbers."""
        made = np.empty((len(rows), len(self.dimensions)))
        for k, name in enumerate(self.dimensions):
            column = _whole(rows[name])
            if name in self.texts:
                column = _places(column, pa.array(list(self.texts[name]), pa.string()))
            made[:, k] = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return made

    def shown(self, name: str, sent: pa.Array, place: np.ndarray, said: np.ndarray) -> Any:
        """What a column says after the ways: as it was sent, but for the rows that have a place among the changed."""
        k = self.dimensions.index(name) if name in self.dimensions else -1
        if k not in self.changed:
            return sent
        values, there = said[:, k], pa.array(place, mask=place < 0)
        if name not in self.texts:
            kind = pa.float64() if self._becomes_double(name) else self.types[name]
            after = pa.array(values, pa.float64(), mask=np.isnan(values)).cast(kind)
            return pc.if_else(pc.is_valid(there), after.take(there), sent.cast(kind))
        # a text of its own stays what it was: the kernel knows only those that the graph names
        known = pa.array(list(self.texts[name]), pa.string())
        after = known.take(pa.array(np.maximum(values, 0), mask=~(values >= 0)).cast(pa.int64()))
        put = pc.fill_null(pa.array(values >= 0).take(there), False)
        return _either(put, after.take(there), sent).cast(self.types[name])


class Run:
    """Tables one after the other through a form: what was found out about a class of notifications is kept."""

    def __init__(self, form: Form) -> None:
        self.form = form
        self.contexts: dict[str, int] = {"": 0}
        self.memory = kernel.nothing_known(2 + len(form.telling))

    def __call__(self, rows: pa.Table) -> pa.Table:
        form, rows = self.form, rows.combine_chunks()
        timed = "t" in form.types and pa.types.is_integer(form.types["t"])
        times = _array(rows["t"].cast(pa.int64())) if timed else np.zeros(len(rows), np.int64)
        producers, said, contexts = form.producers(rows), form.said(rows), self._contexts(rows)
        # a scope that the graph does not have lets nothing in, and still makes a context
        named = [[form.scopes.get(name, -1) for name in context.split()] for context in self.contexts]
        if self.memory.counts[0] > REMEMBERED:
            self.memory = kernel.nothing_known(2 + len(form.telling))
        told, after, self.memory = kernel.deliver(
            form.index, self.memory, form.classes(producers, contexts, said), producers, times, said,
            contexts, _starts(named), _ints(s for found in named for s in found), form.states,
        )  # fmt: skip
        row, consumer, session, t, place = told
        sent = rows.take(pa.array(row))
        made = {
            "id": _whole(sent["id"]),
            "consumer": form.consumers.take(pa.array(consumer)),
            "session": pa.array(form.sessions, pa.string()).take(pa.array(session)),
        }
        if "t" in form.types:
            made["t"] = pa.array(t).cast(form.types["t"]) if timed else _whole(sent["t"])
        for name in form.types:
            if name not in RESERVED:
                made[name] = form.shown(name, _whole(sent[name]), place, after)
        return pa.table(made)

    def _contexts(self, rows: pa.Table) -> np.ndarray:
        if "context" not in self.form.types:
            return np.zeros(len(rows), np.int64)
        coded = pc.fill_null(_whole(rows["context"]).cast(pa.string()), "").dictionary_encode()
        numbers = [self.contexts.setdefault(said, len(self.contexts)) for said in coded.dictionary.to_pylist()]
        return _ints(numbers)[_array(coded.indices)] if numbers else np.zeros(len(rows), np.int64)


def _places(column: Any, known: pa.Array) -> pa.Array:
    """Where what a column says stands among what is known, -1 elsewhere; texts are looked at once each."""
    column, known = _whole(column), known.dictionary_decode() if pa.types.is_dictionary(known.type) else known
    if pa.types.is_integer(column.type):
        return pc.fill_null(pc.index_in(column, known), -1)
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return pc.fill_null(pc.index_in(coded.dictionary.cast(known.type), known), -1).take(coded.indices)


def _either(where: pa.Array, one: pa.Array, other: pa.Array) -> pa.Array:
    """One text where that is said, elsewhere the other one; codes stay codes."""
    if not pa.types.is_dictionary(other.type):
        return pc.if_else(where, one, other)
    coded = one.dictionary_encode()
    codes = pc.if_else(where, pc.add(coded.indices, len(other.dictionary)), other.indices)
    texts = pa.concat_arrays([other.dictionary.cast(pa.string()), coded.dictionary])
    return pa.DictionaryArray.from_arrays(codes, texts)


def _whole(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _array(column: Any) -> np.ndarray:
    return np.array(_whole(column))
