"""Why a notification was, or was not, sent.

`explain` evaluates both filters of a pair at one instant with the reference engine and keeps, at every node, the truth
value, the measured quantity, and the margin by which a comparison holds (positive) or fails (negative).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from workbench import geometry
from workbench.engines.reference import Reference, View
from workbench.errors import ScenarioError
from workbench.model import extents, relations, shapes
from workbench.model.clock import NEVER
from workbench.model.extents import Interval
from workbench.model.filters import Comparison, Dimension, Filter, Held, Match
from workbench.model.history import Named, Party
from workbench.model.regions import Region
from workbench.model.shapes import Shape
from workbench.model.spaces import Space
from workbench.model.times import TimeComparison
from workbench.model.visits import VisitComparison


@dataclass(frozen=True)
class Explanation:
    """A node of a filter at one instant: what it says, whether it holds, what was measured, by how much."""

    says: str
    holds: bool
    measured: str = ""
    margin: float | None = None
    unit: str = ""
    parts: tuple[Explanation, ...] = ()

    def _line(self) -> str:
        by = "" if self.margin is None else f", by {abs(self.margin):.6g} {self.unit}".rstrip()
        measured = f" [{self.measured}{by if self.measured else by.lstrip(', ')}]" if self.measured or by else ""
        return f"{'✓' if self.holds else '✗'} {self.says}{measured}"

    def __str__(self) -> str:
        inner = [f"  {line}" for part in self.parts for line in str(part).splitlines()]
        return "\n".join([self._line(), *inner])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        colour = "#1a7f37" if self.holds else "#b42318"
        line = f'<span style="color:{colour}">{escape(self._line()[0])}</span>{escape(self._line()[1:])}'
        if not self.parts:
            return f"<div>{line}</div>"
        inner = "".join(part._repr_html_() for part in self.parts)
        return (
            f'<details open><summary style="cursor:pointer">{line}</summary>'
            f'<div style="margin-left:1.5em">{inner}</div></details>'
        )


def explain(reference: Reference, publication: Party, subscription: Party, t: int) -> Explanation:
    """Both filters of a pair at t, with what was measured at every node."""
    history = reference.history
    missing = [
        Explanation(f"{role} {party} exists", False)
        for role, party in (("publication", publication), ("subscription", subscription))
        if history.instance(party, t) is None
    ]
    says = f"{publication} matches {subscription} at {reference.clock.shown(t)}"
    if missing:
        return Explanation(says, False, parts=tuple(missing))
    parts = [
        _side("publication", reference, publication, subscription, t),
        _side("subscription", reference, subscription, publication, t),
    ]
    if publication.client == subscription.client:
        parts.append(Explanation("the two belong to different clients", False, str(publication.client)))
    return Explanation(says, reference.pair_matches(publication, subscription, t), parts=tuple(parts))


def after_stage(
    publication: Any, subscription: Any, at: Any, told: bool, found: Sequence[tuple[Any, str, Explanation]]
) -> Explanation:
    """Why it is told of a pair after a stage: the matches behind it, each with its instant and what it waited for."""
    parts = []
    for then, waited, inner in found:
        if waited:
            parts.append(Explanation(f"what is told at {at} was published at {then}: it waited for {waited}", True))
        parts.append(inner)
    if not told and any(inner.holds for *_, inner in found):
        parts.append(Explanation("the traverse and delivery policies choose this subscription", False))
    return Explanation(f"it is told of {publication} to {subscription} at {at}", told, parts=tuple(parts))


def _side(role: str, reference: Reference, own: Party, other: Party, t: int) -> Explanation:
    instance = reference.history.instance(own, t)
    assert instance is not None
    views = reference.bindings(own, other, instance.filter)
    says = f"the filter of {role} {own} accepts {other}"
    if not views:
        return Explanation(says, False, "no region of the other side is declared in the spaces that it asks for")
    shown = [(view, _node(reference, instance.filter, view, t)) for view in views]
    view, best = next(((v, e) for v, e in shown if e.holds), shown[0])
    chosen = ", ".join(f"{variable}' = {name}" for variable, name in view.binding.items())
    others = f", one of {len(views)} choices" if len(views) > 1 else ""
    return Explanation(says, best.holds, f"{chosen}{others}" if chosen else "", parts=(best,))


def _node(reference: Reference, node: Filter, view: View, t: int) -> Explanation:
    parts = tuple(_node(reference, part, view, t) for part in node.parts)
    try:
        holds = reference.holds(node, view, t)
        measured, margin, unit = _measured(reference, node, view, t)
    except ScenarioError as error:
        # A part that decides nothing here, and that the engine therefore never asked for.
        return Explanation(repr(node), False, f"cannot be decided: {error}", parts=parts)
    return Explanation(repr(node), holds, measured, _agreeing(margin, holds), unit, parts)


def _agreeing(margin: float | None, holds: bool) -> float | None:
    """A margin whose sign says what the exact comparison said; rounded quantities can be off by their last digit."""
    if margin is None or not math.isfinite(margin):
        return None
    contradicts = margin < 0 if holds else margin > 0
    return 0.0 if contradicts and abs(margin) < 1e-6 else margin


def _measured(reference: Reference, node: Filter, view: View, t: int) -> tuple[str, float | None, str]:
    clock = reference.clock
    match node:
        case Match() if node.third is not None:
            return _third(reference, node, view, t)
        case Match():
            left, right = view.named(node.left), view.named(node.right)
            return _match(reference, node, left, right, t)
        case Comparison():
            a = reference.extent(node.left, view, t)
            b = reference.extent(node.right, view, t) if isinstance(node.right, Dimension) else node.right
            return f"{a} against {b}", _number_margin(a, node.op, b), ""
        case TimeComparison():
            value = reference.value(node.term, view, t)
            bound = node.bound.in_ticks(clock.tick)
            if math.isnan(value):
                return "never happened on both sides", None, ""
            if math.isinf(value):
                return "never happened", None, ""
            return clock.shown_duration(value), _signed(value - bound, node.op) * _seconds(reference), "s"
        case VisitComparison():
            found = reference.aggregate(node.aggregate, view, t)
            visits = len(reference.visits(node.aggregate, view, t))
            if found is None:
                return f"only {visits} completed visits", None, ""
            margin = _signed(float(found - reference.bound(node)), node.op)
            if node.aggregate.function == "count":
                return f"{visits} completed visits", margin, "visits"
            return f"{clock.shown_duration(float(found))} over {visits} visits", margin * _seconds(reference), "s"
        case Held():
            return _held(reference, node, view, t)
    return "", None, ""


def _signed(difference: float, op: str) -> float:
    return -difference if op.startswith("<") else difference


def _seconds(reference: Reference) -> float:
    return reference.clock.tick.nanoseconds / 1e9


def _held(reference: Reference, node: Held, view: View, t: int) -> tuple[str, float | None, str]:
    if not reference.holds(node.part, view, t):
        return "not true now", None, ""
    since = t
    for i in reversed(reference.between(node.part, view, NEVER, t)):
        if not reference.holds(node.part, view, i):
            break
        since = i
    lasted = t - since
    margin = (lasted - node.duration.in_ticks(reference.clock.tick)) * _seconds(reference)
    return f"true for {reference.clock.shown_duration(lasted)}", margin, "s"


def _third(reference: Reference, node: Match, view: View, t: int) -> tuple[str, float | None, str]:
    third = node.third
    assert third is not None
    pairs = [
        (left, right)
        for left, right in reference.pairs(node, view, t)
        if reference.among(third.among, left if node.left is third else right, t)
    ]
    matching = [pair for pair in pairs if reference.matches(node, *pair, t)]
    names = ", ".join(str((left if node.left is third else right).party.client.id) for left, right in matching[:3])
    more = ", …" if len(matching) > 3 else ""
    return f"{len(matching)} of {len(pairs)}" + (f": {names}{more}" if matching else ""), None, ""


def _match(reference: Reference, node: Match, left: Named, right: Named, t: int) -> tuple[str, float | None, str]:
    r1, r2 = reference.history.region(left, t), reference.history.region(right, t)
    assert r1 is not None and r2 is not None
    if r1.values_in(node.space) is None or r2.values_in(node.space) is None:
        invalid = left if r1.values_in(node.space) is None else right
        return f"{invalid.region} says nothing in {node.space.name}", None, ""
    metric, relation = reference.metric, node.relation
    metres = "m" if any(isinstance(e, Shape) for e in (r1.values_in(node.space) or {}).values()) else ""
    match relation:
        case relations.Within():
            apart = relations.distance(r1, r2, node.space, metric)
            return f"{apart:.6g} {metres}".strip(), relation.distance - apart, metres
        case relations.Nearest():
            candidates = reference.candidates(node, left, right, t)
            if right not in candidates:
                return f"{right} is not among them", None, ""
            others = [reference.history.region(c, t) for c in candidates]
            mine = relations.closeness(r1, r2, node.space, metric)
            nearer = sum(relations.closeness(r1, r, node.space, metric) < mine for r in others if r is not None)
            apart = relations.distance(r1, r2, node.space, metric)
            said = f"{nearer} of {len(others)} are nearer than {apart:.6g} {metres}".strip()
            return said, float(relation.k - nearer), ""
        case relations.UserDefined():
            value = relations.apply(relation.function, r1, r2, node.space)
            return f"{value:.6g}", relation.at_most - (value or 0.0), ""
        case relations.Fuzzy():
            degree = relation.degree_of(r1, r2, node.space, metric)
            return f"degree {degree:.4g}", degree - relation.degree, ""
        case relations.Containment():
            return _extent_report(r2, r1, node.space, metric, "⊆")
        case relations.Enclosure():
            return _extent_report(r1, r2, node.space, metric, "⊆")
        case _:
            return _extent_report(r1, r2, node.space, metric, "∩")


def _extent_report(inner: Region, outer: Region, space: Space, metric: str, sign: str) -> tuple[str, float | None, str]:
    """Each dimension that can decide, and the margin where there is only one.

    What the outer region leaves open encloses everything, what either leaves open overlaps everything.
    """
    a, b = inner.values_in(space), outer.values_in(space)
    assert a is not None and b is not None
    said = {d for d, _ in outer.constraints if d in a}
    if sign == "∩":
        said &= {d for d, _ in inner.constraints}
    if not said:
        return f"neither leaves anything out of {space.name} that the other asks for", None, ""
    pieces, margins = [], []
    for d in a:
        if d not in said:
            continue
        holds = extents.encloses(b[d], a[d], metric) if sign == "⊆" else extents.overlaps(a[d], b[d], metric)
        pieces.append(f"{d}: {a[d]} {sign if holds else '⊄' if sign == '⊆' else '∦'} {b[d]}")
        margins.append(_extent_margin(a[d], b[d], metric, sign))
    one = margins[0] if len(margins) == 1 else None
    unit = "m" if one is not None and isinstance(next(a[d] for d in a if d in said), Shape) else ""
    return "; ".join(pieces), one, unit


def _extent_margin(inner: Any, outer: Any, metric: str, sign: str) -> float | None:
    if isinstance(inner, Shape) and isinstance(outer, Shape):
        if outer.kind == "point" and inner.kind == "point":
            apart = shapes.distance_m(shapes._bare(inner), shapes._bare(outer), metric)
            return outer.radius_m + (-inner.radius_m if sign == "⊆" else inner.radius_m) - apart
        if inner.kind == "point" and outer.kind == "area":
            to_border = _border_m(inner, outer, metric)
            inside = geometry.point_in_polygon(inner.x, inner.y, *outer.chains)
            room = to_border if inside else -to_border
            return room + outer.radius_m + (-inner.radius_m if sign == "⊆" else inner.radius_m)
        return None
    if isinstance(inner, Interval) and isinstance(outer, Interval) and inner.atomic and outer.atomic:
        if sign == "⊆":
            # Where the outer side has no end there is room without end.
            below = math.inf if outer.lower == -math.inf else inner.lower - outer.lower
            above = math.inf if outer.upper == math.inf else outer.upper - inner.upper
            return float(min(below, above))
        return float(min(inner.upper - outer.lower, outer.upper - inner.lower))
    return None


def _border_m(inner: Shape, outer: Shape, metric: str) -> float:
    if metric == geometry.PLANAR:
        return math.sqrt(geometry.planar_edges_squared(inner.x, inner.y, *outer.chains))
    h = geometry.geodesic_edges_haversine(inner.x, inner.y, *outer.chains)
    return 2.0 * geometry.EARTH_RADIUS_M * math.asin(math.sqrt(h))


def _number_margin(a: Any, op: str, b: Any) -> float | None:
    if not (isinstance(a, Interval) and isinstance(b, Interval)):
        return None
    if op in ("<", "<="):
        return float(b.lower - a.upper)
    if op in (">", ">="):
        return float(a.lower - b.upper)
    if op in ("in", "meets"):
        return _extent_margin(a, b, "planar", "⊆" if op == "in" else "∩")
    return None
