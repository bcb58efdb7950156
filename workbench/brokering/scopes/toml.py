"""A graph of scopes as TOML, in and out: what an administrator writes down (Scopes, 1).

A table for each scope, with its members, policies and tag; an entry under ``edges`` for each membership that has
interfaces or mappings. An interface is a list of kinds (``["Quote"]``) or of tables of constraints
(``[{kind = "Quote", price = {below = 100}}]``); a mapping is ``module:function``, or a table of what `converting`
takes.
"""

from __future__ import annotations

import json
import operator
import re
import tomllib
from collections.abc import Mapping
from functools import reduce
from math import inf
from pathlib import Path
from typing import Any

import portion

from workbench.brokering.scopes import mappings
from workbench.brokering.scopes.graph import Edge, Membership, Scope, ScopeGraph
from workbench.brokering.scopes.interfaces import OPEN, Interface, Passing, interface, kinds, passes
from workbench.brokering.scopes.mappings import Conversion, EventMapping, converting
from workbench.brokering.scopes.policies import (
    BROADCAST,
    EVERYBODY,
    IMMEDIATE,
    Admitting,
    ByKey,
    Delayed,
    Everybody,
    Immediate,
    OneOf,
    Until,
)
from workbench.errors import ScenarioError, WorkbenchError, did_you_mean, raise_all
from workbench.model import extents
from workbench.model.extents import ValueSet

_ENDS = {
    "at_least": extents.at_least,
    "above": extents.above,
    "at_most": extents.at_most,
    "below": extents.below,
}
_ENDLESS = (-inf, inf, -portion.inf, portion.inf)
_SCOPE_KEYS = {"members", "session", "delay", "until", "traverse", "delivery", "seed", "admits", "input", "output"}
_EDGE_KEYS = {"member", "scope", "input", "output", "mapping_in", "mapping_out"}


def from_toml(source: str | Path) -> ScopeGraph:
    """A graph from TOML, text or a file; an interface that a scope states is that of all its memberships.

    >>> market = from_toml('''
    ... [scopes.TF]
    ... members = ["ME", "DB"]
    ... output = ["Accept", "Quote"]
    ... [scopes.Prof]
    ... members = ["TF"]
    ... delay = 900
    ... [[edges]]
    ... member = "TF"
    ... scope = "Prof"
    ... output = ["Quote"]
    ... ''')
    >>> market.scopes["Prof"].publishing, market.edges["TF", "Prof"].output
    (delayed by 900, kind ⊆ {'Quote'})
    """
    text = Path(source).read_text(encoding="utf-8") if isinstance(source, Path) else source
    try:
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"the graph is not TOML: {error}") from None
    faults = [f"{key!r} is unknown; {did_you_mean(key, ('scopes', 'edges', 'components'))}"
              for key in read if key not in ("scopes", "edges", "components")]
    scopes: dict[str, Scope] = {}
    own: dict[str, dict[str, Any]] = {}
    edges: dict[Membership, dict[str, Any]] = {}
    for name, given in read.get("scopes", {}).items():
        unknown = sorted(set(given) - _SCOPE_KEYS)
        faults += [f"scope {name!r}: {k!r} is unknown; {did_you_mean(k, _SCOPE_KEYS)}" for k in unknown]
        own[name] = {k: given[k] for k in ("input", "output") if k in given}
        edges.update({(member, name): {} for member in given.get("members", ())})
        try:
            scopes[name] = _scope(given)
        except (WorkbenchError, TypeError, ValueError) as error:
            faults.append(f"scope {name!r}: {error}")
    for given in read.get("edges", ()):
        where = f"edge {given.get('member')} -> {given.get('scope')}"
        faults += [f"{where}: {k!r} is unknown; {did_you_mean(k, _EDGE_KEYS)}" for k in set(given) - _EDGE_KEYS]
        if {"member", "scope"} <= set(given):
            edges[given["member"], given["scope"]] = given
        else:
            faults.append(f"{where}: an edge names its member and its scope")
    made: dict[Membership, Edge] = {}
    for (member, scope), given in edges.items():
        try:
            made[member, scope] = _edge({**own.get(member, {}), **given}, f"edge {member} -> {scope}")
        except WorkbenchError as error:
            faults.append(str(error))
    raise_all(faults)
    components = ({m for m, _ in made} | set(read.get("components", ()))) - set(scopes)
    return ScopeGraph(frozenset(components), scopes, made)


def _scope(given: Mapping[str, Any]) -> Scope:
    publishing: Immediate = IMMEDIATE
    if "delay" in given:
        publishing = Delayed(given["delay"])
    elif "until" in given:
        publishing = Until(tuple((a, b) for a, b in given["until"]))
    how, seed = str(given.get("delivery", "everybody")), int(given.get("seed", 0))
    if how.startswith("by "):
        delivery: Everybody = ByKey(how.removeprefix("by "), seed)
    elif how in ("everybody", "1 of n"):
        delivery = OneOf(seed) if how == "1 of n" else EVERYBODY
    else:
        raise ScenarioError(f"there is no delivery policy {how!r}; expected 'everybody', '1 of n' or 'by <dimension>'")
    security = Admitting(frozenset(given["admits"])) if "admits" in given else None
    return Scope(publishing, given.get("traverse", BROADCAST), delivery, bool(given.get("session", False)), security)


def _edge(given: Mapping[str, Any], where: str) -> Edge:
    made = {k: _interface(given.get(k), f"{where}, {k}") for k in ("input", "output")}
    maps = {k: _mapping(given[k], f"{where}, {k}") for k in ("mapping_in", "mapping_out") if k in given}
    return Edge(**made, **maps)  # type: ignore[arg-type]


def _interface(given: Any, where: str) -> Interface:
    """A list of kinds, or of tables of constraints; absent is open."""
    if given is None:
        return OPEN
    if not isinstance(given, list):
        raise ScenarioError(f"{where}: expected a list of kinds or of tables of constraints, got {given!r}")
    if all(isinstance(item, str) for item in given):
        return kinds(*given)
    return interface(*(passes(kind=item) if isinstance(item, str) else _passing(item, where) for item in given))


def _passing(given: Mapping[str, Any], where: str) -> Passing:
    return passes(**{name: _extent(value, f"{where}, {name}") for name, value in given.items()})


def _extent(given: Any, where: str) -> Any:
    """A value, a list of values, or a table: ends of an interval, or what is left out; several intervals in a list."""
    if isinstance(given, list) and given and all(isinstance(item, dict) for item in given):
        return reduce(operator.or_, (_extent(item, where) for item in given))
    if not isinstance(given, dict):
        return given
    unknown = sorted(set(given) - {*_ENDS, "anything_but"})
    if unknown or not given:
        said = did_you_mean(unknown[0], [*_ENDS, "anything_but"]) if unknown else f"expected one of {', '.join(_ENDS)}"
        raise ScenarioError(f"{where}: {given!r} is no extent; {said}")
    if "anything_but" in given:
        return extents.anything_but(*given["anything_but"])
    return reduce(operator.and_, (_ENDS[end](number) for end, number in given.items()))


def _mapping(given: Any, where: str) -> EventMapping:
    """``module:function``, called by the function's name, or a table: what `converting` takes."""
    if isinstance(given, str):
        return mappings.from_name(given, where)
    unknown = sorted(set(given) - {"name", "scale", "put", "only"})
    if unknown or "name" not in given:
        raise ScenarioError(f"{where}: a mapping is 'module:function', or a table of name, scale, put and only")
    only = _passing(given["only"], where) if "only" in given else None
    return converting(given["name"], scale=given.get("scale"), put=given.get("put"), only=only)


# -- out -------------------------------------------------------------------------------------------------------------


def to_toml(graph: ScopeGraph) -> str:
    """The graph as TOML, from which `from_toml` makes it again; what is a function of Python's own is refused by name.

    >>> from workbench.brokering.scopes.graph import graph
    >>> print(to_toml(graph("TF->Prof", scopes={"TF": Scope(session=True)})))
    [scopes.Prof]
    members = ["TF"]
    <BLANKLINE>
    [scopes.TF]
    session = true
    <BLANKLINE>
    """
    lines: list[str] = []
    alone = sorted(graph.components - {member for member, _ in graph.edges})
    if alone:
        lines += [f"components = {_value(alone)}", ""]
    for name, scope in sorted(graph.scopes.items()):
        members = {"members": graph.members(name)} if graph.members(name) else {}
        said = {**members, **_said_of_scope(name, scope)}
        lines += [f"[scopes.{_key(name)}]", *(f"{k} = {_value(v)}" for k, v in said.items()), ""]
    for (member, name), edge in sorted(graph.edges.items()):
        if not edge.plain:
            said = {"member": member, "scope": name, **_said_of_edge(edge, f"{member} -> {name}")}
            lines += ["[[edges]]", *(f"{k} = {_value(v)}" for k, v in said.items()), ""]
    return "\n".join(lines)


def _said_of_scope(name: str, scope: Scope) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if isinstance(scope.publishing, Delayed):
        said["delay"] = scope.publishing.ticks
    elif isinstance(scope.publishing, Until):
        said["until"] = [list(interval) for interval in scope.publishing.valid]
    elif scope.waits:
        raise ScenarioError(f"scope {name!r}: the publishing policy '{scope.publishing}' cannot be written as TOML")
    if scope.traverse != BROADCAST:
        said["traverse"] = scope.traverse
    if isinstance(scope.delivery, OneOf | ByKey):
        said |= {"delivery": repr(scope.delivery), "seed": scope.delivery.seed}
    elif scope.delivery != EVERYBODY:
        raise ScenarioError(f"scope {name!r}: the delivery policy '{scope.delivery}' cannot be written as TOML")
    if scope.session:
        said["session"] = True
    if scope.security is not None:
        said["admits"] = sorted(scope.security.names)
    return said


def _said_of_edge(edge: Edge, where: str) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for side in ("input", "output"):
        given: Interface = getattr(edge, side)
        if given.filters is not None:
            listed = sorted(given.filters, key=repr)
            told = [{n: _said_of_extent(e, where) for n, e in one.constraints} for one in listed]
            only_kinds = len(told) == 1 and set(told[0]) == {"kind"} and isinstance(told[0]["kind"], str | list)
            said[side] = _list(told[0]["kind"]) if only_kinds else told
    for side in ("mapping_in", "mapping_out"):
        mapping: EventMapping | None = getattr(edge, side)
        if mapping is not None:
            said[side] = _said_of_mapping(mapping, where)
    return said


def _said_of_mapping(mapping: EventMapping, where: str) -> Any:
    made = mapping.function
    if isinstance(made, Conversion):
        only = {} if made.only is None else {"only": {n: _said_of_extent(e, where) for n, e in made.only.constraints}}
        return {"name": mapping.name, "scale": dict(made.scale), "put": dict(made.put), **only}
    path = f"{made.__module__}:{getattr(made, '__qualname__', '')}"
    if mapping.name != getattr(made, "__qualname__", ""):
        raise ScenarioError(f"{where}: mapping {mapping.name!r} cannot be written as TOML: {path} is another name")
    return path


def _said_of_extent(extent: Any, where: str) -> Any:
    if isinstance(extent, ValueSet):
        values = sorted(extent.values, key=repr)
        if extent.complement:
            return {"anything_but": values}
        return values[0] if len(values) == 1 else values
    if not isinstance(extent, portion.Interval):
        raise ScenarioError(f"{where}: {extent!r} cannot be written as TOML; numbers and texts can")
    told = []
    for atom in extent:
        low, high = ("at_least", "above")[atom.left == portion.OPEN], ("at_most", "below")[atom.right == portion.OPEN]
        ends = ((low, atom.lower), (high, atom.upper))
        told.append({end: number for end, number in ends if number not in _ENDLESS})
    return told[0] if len(told) == 1 else told


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
