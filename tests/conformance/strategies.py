"""Random scenarios and histories, small enough for the reference engine, in which every node of the model occurs.

Coordinates, prices and instants are small whole numbers, so that ties, borders and several updates at one instant are
the rule. `cases` takes the node that has to occur; the rest of the filter, the populations and the tables are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pandas as pd
from hypothesis import strategies as st

from workbench.model import (
    Scenario,
    Space,
    any_region,
    anything_but,
    at,
    at_least,
    at_most,
    below,
    between,
    box,
    column,
    disc,
    held,
    latch,
    line,
    location,
    now,
    one_of,
    other,
    own,
    pi,
    point,
    publication,
    publications,
    reach,
    region,
    subscription,
    subscriptions,
    tau,
    ticks,
    visit,
    visits,
)
from workbench.model.filters import Comparison, Filter, Match
from workbench.model.pubsub import Population

goods = Space("goods", kind=str, price=float, stock=int, open=bool)
amount = Space("amount", price=float, stock=int)
shop = Space("shop", dict(goods.dimensions)) | location
SPACES = [location, goods, amount, shop]
OURS = "tests.conformance.relations_of_ours"
INSTANTS = range(1, 10)
KINDS = ("a", "b", "c")
START = pd.Timestamp("2024-01-01T00:00:00Z")

Draw = Callable[[Sequence[Any]], Any]
"""Takes one of several: from a seed, or from Hypothesis, which can then shrink a case."""


@dataclass(frozen=True)
class Case:
    """A scenario and the tables that it is replayed over."""

    scenario: Scenario
    fixes: pd.DataFrame
    places: pd.DataFrame
    until: Any


# -- tables ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """What all tables of one case share."""

    metric: str
    timestamps: bool

    @property
    def unit(self) -> float:
        """One step of the grid, in coordinates."""
        return 1.0 if self.metric == "planar" else 0.001

    @property
    def step_m(self) -> float:
        """One step of the grid, in metres (to the north)."""
        return 1.0 if self.metric == "planar" else 111.19492664455873

    @property
    def dtype(self) -> str:
        """Of instants; microseconds, because Spark has no finer ones."""
        return "datetime64[us, UTC]" if self.timestamps else "Int64"

    def t(self, tick: int | None) -> Any:
        if tick is None:
            return pd.NaT if self.timestamps else None
        return START + pd.Timedelta(seconds=tick) if self.timestamps else tick


def _often(draw: Draw, likely: Any, *others: Any) -> Any:
    return draw([likely] * 3 + list(others))


def _several(draw: Draw, choices: Sequence[Any], least: int, most: int) -> list[Any]:
    left, taken = list(choices), []
    for _ in range(draw(range(least, most + 1))):
        taken.append(draw(left))
        left.remove(taken[-1])
    return [choice for choice in choices if choice in taken]


def _attributes(draw: Draw) -> dict[str, Any]:
    return {
        "kind": draw([None, *KINDS]),
        "price": draw([None, 1.0, 2.0, 3.0]),
        "stock": draw([None, 0.0, 1.0, 2.0]),
        "open": draw([None, False, True]),
        "radius_m": draw([None, 1.0, 2.0]),
    }


def _wkt(draw: Draw, world: World) -> str:
    x, y = (draw(range(4)) * world.unit for _ in range(2))
    side = draw([1, 2]) * world.unit
    return draw(
        [
            f"POINT ({x} {y})",
            f"POLYGON (({x} {y}, {x + side} {y}, {x + side} {y + side}, {x} {y + side}, {x} {y}))",
            f"POLYGON (({x} {y}, {x + side} {y}, {x} {y + side}, {x} {y}))",
            f"LINESTRING ({x} {y}, {x + side} {y}, {x + side} {y + side})",
        ]
    )


def _table(draw: Draw, world: World, key: str, ids: list[Any], timed: bool, shapes: bool, most: int) -> pd.DataFrame:
    """Rows of a few ids at a few instants, some updated, removed, returned, repeated or in conflict."""
    operations = draw(range(3)) == 0
    names = ("x", "y") if world.metric == "planar" else ("lon", "lat")
    rows = []
    for number in ids:
        instants = _several(draw, INSTANTS, most - 2, most)
        if not timed:
            instants = [None]
        elif key != "mobile" and draw((False, True)):
            instants = [None, *instants[1:]]
        for instant in instants:
            op = _often(draw, None, None, None, "add", "update", "remove") if operations else None
            row = {key: number, "t": world.t(instant), "op": op, **_attributes(draw)}
            hidden = op in ("update", "remove") and draw((False, True))
            place = {n: None if hidden else draw(range(6)) * world.unit for n in names}
            rows.append({**row, "geometry": None if hidden else _wkt(draw, world)} if shapes else {**row, **place})
    for row in list(rows):
        match _often(draw, None, None, None, None, None, None, "same", "conflict"):
            case "same":
                rows.append(dict(row))
            case "conflict":
                rows.append({**row, "price": draw([None, 1.0, 2.0, 3.0])})
    frame = pd.DataFrame(rows)
    drop = ([] if operations else ["op"]) + ([] if timed else ["t"])
    frame = frame.drop(columns=drop)
    if timed:
        frame["t"] = frame["t"].astype(world.dtype)
    return frame.sample(frac=1.0, random_state=draw(range(4))).reset_index(drop=True)


def _people(draw: Draw, world: World, ids: list[Any]) -> pd.DataFrame:
    rows = [
        {"id": number, "t": world.t(instant), "price": draw([1.0, 2.0, 3.0]), "taste": draw(KINDS)}
        for number in ids
        for instant in _several(draw, [None, *INSTANTS], 0, 2)
    ]
    frame = pd.DataFrame(rows, columns=["id", "t", "price", "taste"])
    return frame.drop(columns="t") if frame["t"].isna().all() else frame.astype({"t": world.dtype})


# -- populations -------------------------------------------------------------------------------------------


def _shape(draw: Draw, world: World) -> Any:
    x, y, side = (draw(range(4)) * world.unit for _ in range(3))
    side = side or world.unit
    return draw(
        [
            point(x, y),
            disc((x, y), world.step_m),
            disc((x, y), 2 * world.step_m),
            box(x, y, x + side, y + side),
            line([(x, y), (x + side, y), (x + side, y + side)]),
        ]
    )


def _regions(draw: Draw, world: World, rows: str, profiles: bool, thin: bool) -> dict[str, Any]:
    if rows:
        radius_m = column.radius_m.or_else(world.step_m)
        spots = [column.position, disc(column.position, world.step_m), reach(column.position, radius_m)]
        spot = column.position if thin else _often(draw, *spots)
        kinds = [column.kind, "a", one_of("a", "b"), anything_but("c"), *([column.taste] if profiles else [])]
        prices = [
            column.price,
            below(column.price),
            between(1, column.price.or_else(3)),
            at_most(2),
            between(1, 3, closed="left"),
        ]
        more = {"stock": draw([None, column.stock, between(0, 1)]), "open": draw([None, column.open, True])}
    else:
        spot = point(draw(range(4)) * world.unit, world.unit) if thin else _shape(draw, world)
        kinds = ["a", one_of("b", "c"), anything_but("a")]
        prices = [2, at_least(2), between(1, 2), between(1, 3, closed="neither")]
        more = {"stock": draw([None, 1, between(0, 1)]), "open": draw([None, True, False])}
    deal = {"kind": _often(draw, *kinds), "price": _often(draw, *prices), **more}
    deal["position"] = spot
    made = {"spot": region(location, position=spot), "deal": region(shop, **deal)}
    if draw(range(3)) == 0:
        made["zone"] = region(location, position=point(0, 0) if thin else _shape(draw, world))
    return made


def _population(
    draw: Draw, world: World, role: str, name: str, rows: str, filter: Filter | None, thin: bool
) -> Population:
    profiles = "people" if rows == "fixes" and draw((False, True)) else None
    regions = _regions(draw, world, rows, profiles is not None, thin)
    if not rows:
        make = publication if role == "publication" else subscription
        return make(name, regions=regions, filter=filter)
    stay = _often(draw, {}, {}, {}, {}, {"lifetime": ticks(2)}, {"transient": True}) if rows != "places" else {}
    many = publications if role == "publication" else subscriptions
    return many(name, rows=rows, regions=regions, filter=filter, profiles=profiles, **stay)


# -- filters ---------------------------------------------------------------------------------------------------

SPATIAL = ("containment", "enclosure", "overlap", "within", "nearest", "user_defined", "fuzzy")
TIME = ("tau", "pi", "at", "several_times")
VISITS = ("visits_mean", "visits_sum", "visits_min", "visits_max", "visits_count")
FORMS = ("k_nearest", "fuzzy_ours", "visits_last", "visits_window")
"""nodes that are among the others by another name, but are evaluated in ways of their own"""
NODES = (
    *SPATIAL,
    "any_region",
    "comparison",
    "dimensions",
    "and",
    "or",
    "not",
    *TIME,
    "tau_any",
    "pi_any",
    *VISITS,
    "held",
    "latch",
    *FORMS,
)
"""What a case can be asked to contain; `contains` tells where it does."""

_COMPARE: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
]


@dataclass(frozen=True)
class Names:
    """What a filter can speak of."""

    own: tuple[str, ...]
    everybody: tuple[str, ...]
    """``population.region`` for third parties"""
    step_m: float
    thin: bool
    """whether all positions are points, as a relation of the user's own may want them"""


def _term(draw: Draw, names: Names, spatial: bool, side: str) -> Any:
    if side == "other":
        return other[draw(["v", "v", "w"])]
    return own[draw([n for n in names.own if n != "deal"])] if spatial else own.deal


def _third(draw: Draw, names: Names, spatial: bool) -> tuple[str, dict[str, Any]]:
    region_name = draw(["spot", "deal"]) if spatial else "deal"
    whom = draw([e for e in names.everybody if e.endswith(f".{region_name}")])
    narrowed = region_name == "deal" and draw((False, True))
    return whom, draw([{"kind": one_of("a", "b")}, {"price": at_most(2)}]) if narrowed else {}


def match(draw: Draw, names: Names, relation: str | None = None, third: bool | None = None) -> Match:
    """A match of two regions, one of them of a third party where asked for."""
    relation = relation or draw((*SPATIAL, "within", "within", "overlap"))
    if third is None:
        third = relation not in ("nearest", "k_nearest") and draw(range(5)) == 0
    elif third and relation == "nearest":
        relation = "within"  # nearest names the others with among=
    if relation == "fuzzy_ours":
        spatial = False
    elif relation == "user_defined":
        spatial = names.thin and draw((False, True))
    else:
        spatial = _often(draw, True, False)
    sides = _often(draw, ("own", "other"), ("other", "own"), ("own", "own"))
    left, right = (_term(draw, names, spatial, side) for side in sides)
    if third:
        whom, where = _third(draw, names, spatial)
        if draw((False, True)):
            right = any_region(whom, **where)
        else:
            left = any_region(whom, **where)
    distance = draw([1, 1, 2]) * (names.step_m if spatial else 1)
    match relation:
        case "containment":
            return left.contains(right, space=location if spatial else draw([goods, shop, amount]))
        case "enclosure":
            return left.enclosed_by(right, space=location if spatial else draw([goods, shop, amount]))
        case "overlap":
            return left.overlaps(right, space=location if spatial else draw([goods, shop, amount]))
        case "within":
            return left.within(distance, right, space=location if spatial else amount)
        case "nearest" | "k_nearest":
            among: dict[str, Any] = {}
            if draw((False, True)):
                whom, where = _third(draw, names, spatial)
                among = {"among": whom, **where}
            k = draw([1, 1, 2]) if relation == "nearest" else draw([2, 3])
            return left.nearest(right, space=location if spatial else amount, k=k, **among)
        case "user_defined":
            by = f"{OURS}:{'manhattan' if spatial else 'price_gap'}"
            return left.related(right, by=by, at_most=1, space=location if spatial else amount)
        case "fuzzy" | "fuzzy_ours":
            by = None if spatial or (relation == "fuzzy" and draw((False, True))) else f"{OURS}:cheapness"
            degree = draw([0.1, 0.5, 1.0])
            return left.mostly_in(right, degree=degree, by=by, space=location if spatial else amount)
    raise AssertionError(relation)


def comparison(draw: Draw, names: Names, dimensions: bool) -> Comparison:
    """A dimension against a value, or against another dimension."""
    mine, theirs = own.deal, other[draw(["v", "w"])]
    first, second = _often(draw, (mine, theirs), (theirs, mine), (mine, mine))
    compare = draw(_COMPARE)
    if dimensions:
        return draw(
            [
                compare(first["price"], second["price"]),
                compare(first["price"], second["stock"]),
                first["kind"] == second["kind"],
                first["kind"] != second["kind"],
                first["open"].within(second["open"]),
                first["price"].overlaps(second["price"]),
                first["position"].overlaps(second["position"]),
            ]
        )
    return draw(
        [
            compare(first["price"], draw(range(1, 4))),
            compare(first["stock"], 1),
            first["kind"] == "a",
            first["kind"] != "a",
            first["kind"].within({"a", "b"}),
            first["kind"].overlaps({"a", "b"}),
            first["open"] == True,  # noqa: E712
            first["price"].within(between(1, 2)),
        ]
    )


def node(draw: Draw, names: Names, kind: str, depth: int) -> Filter:
    """A filter whose top node is of the kind asked for."""
    compare = draw(_COMPARE)
    bound = ticks(draw(range(4)))
    if kind in (*SPATIAL, "k_nearest", "fuzzy_ours"):
        return match(draw, names, kind)
    match_: Match
    match kind:
        case "any_region":
            return match(draw, names, draw((None, "within", "overlap")), third=True)
        case "comparison":
            return comparison(draw, names, dimensions=False)
        case "dimensions":
            return comparison(draw, names, dimensions=True)
        case "and":
            return some(draw, names, depth - 1) & some(draw, names, depth - 1)
        case "or":
            return some(draw, names, depth - 1) | some(draw, names, depth - 1)
        case "not":
            return ~some(draw, names, depth - 1)
        case "tau" | "tau_any":
            match_ = match(draw, names, third=kind == "tau_any")
            return compare(now - tau(match_), bound)
        case "pi" | "pi_any":
            match_ = match(draw, names, third=kind == "pi_any")
            return compare(now - pi(match_), bound)
        case "at":
            return compare(now, at(draw(INSTANTS)))
        case "several_times":
            a, b = (match(draw, names) for _ in range(2))
            return draw(
                [
                    compare(tau(a) - pi(a), bound),
                    compare(pi(a) - tau(b), bound),
                    compare(now - tau(a) + now - pi(b), bound),
                    compare(tau(a), at(4)),
                    compare(tau(a) + tau(a) - now - pi(b), bound),
                ]
            )
        case "held":
            return held(some(draw, names, depth - 1), ticks(draw(range(4))))
        case "latch":
            return latch(on=some(draw, names, depth - 1), off=some(draw, names, depth - 1))
    if draw(range(4)):
        compare, bound = draw(_COMPARE[2:]), ticks(draw(range(2)))
    limits = draw([{}, {"last": 1}, {"last": 2}, {"window": ticks(2)}, {"last": 2, "window": ticks(4)}])
    if kind in FORMS:
        name, choices = ("last", [1, 2]) if kind == "visits_last" else ("window", [ticks(2), ticks(4)])
        limits = {name: draw(choices)}
        kind = draw(VISITS)
    often = draw((None, "within", "overlap"))
    asked = visits(match(draw, names, often, third=_often(draw, True, False)), **limits)
    if kind == "visits_count":
        return compare(asked.count(), draw(range(3)))
    term = _often(draw, visit.pi - visit.tau, visit.tau - visit.pi)
    return compare(getattr(asked, kind.removeprefix("visits_"))(term), bound)


def some(draw: Draw, names: Names, depth: int) -> Filter:
    """Any filter, not deeper than that."""
    simple = (*SPATIAL, "within", "enclosure", "comparison", "dimensions", "any_region")
    deep = ("and", "or", "not", "held", "latch", "tau", "pi_any", "visits_count") if depth > 0 else ()
    return node(draw, names, draw(simple + deep), depth)


def _filter(draw: Draw, names: Names, kind: str | None) -> Filter | None:
    if kind is None:
        return some(draw, names, 1) if draw(range(5)) == 0 else None
    asked = node(draw, names, kind, 2)
    if kind in (*VISITS, "visits_last", "visits_window", "several_times", "pi") and draw((False, True)):
        # What only ever grows speaks where something else comes and goes.
        return asked & match(draw, names, "within", third=False)
    match draw(range(4)):
        case 0:
            return asked & some(draw, names, 0)
        case 1:
            return asked | some(draw, names, 0)
        case _:
            return asked


def _visibility(draw: Draw, world: World, publishers: list[str]) -> dict[str, Filter]:
    """Seldom, who sees whom among third parties."""
    if draw(range(6)):
        return {}
    return {
        name: draw(
            [
                own.spot.within(2 * world.step_m, other.v, space=location),
                own.deal["kind"].overlaps(other.v["kind"]),
                own.deal["price"] <= other.v["price"],
            ]
        )
        for name in ("", *publishers)
    }


# -- cases -------------------------------------------------------------------------------------------------------


def with_at(world: World, filter: Filter | None) -> Filter | None:
    """Instants by name are written as the data writes them."""
    from workbench.model.times import At, Term, TimeComparison

    def written(part: Filter) -> Filter:
        made = part.rebuilt(tuple(written(p) for p in part.parts), part.histories)
        if isinstance(made, TimeComparison) and world.timestamps:
            instants = tuple((At(world.t(i.instant)) if isinstance(i, At) else i, f) for i, f in made.term.instants)
            return replace(made, term=Term(instants))
        return made

    return None if filter is None else written(filter)


def cases(kind: str) -> st.SearchStrategy[Case]:
    """Scenarios with the node of that kind, each from a seed: far more various than drawn choice by choice."""
    return st.integers(0, 2**32 - 1).map(lambda seed: case(Random(seed).choice, kind))


@st.composite
def shrinking_cases(draw: Any, kind: str) -> Case:
    """The same, every choice drawn by Hypothesis: to make a failing case small."""
    return case(lambda choices: draw(st.sampled_from(choices)), kind)


def case(draw: Draw, kind: str) -> Case:
    """A scenario that contains the node of that kind, and tables to replay it over."""
    world = World(_often(draw, "planar", "planar", "wgs84"), draw(range(4)) == 0)
    thin = kind == "user_defined" or draw(range(4)) == 0
    sides = []
    for role, letter, likely in (("publication", "p", "places"), ("subscription", "s", "fixes")):
        several = 1 + (draw(range(5)) == 0)
        for n in range(several):
            rows = _often(draw, likely, likely, "places", "fixes", "cars", "")
            sides.append((role, f"{letter}{n + 1}", rows))
    everybody = tuple(f"{name}.{r}" for _, name, _ in sides for r in ("spot", "deal"))
    focus = draw(range(len(sides)))
    made = []
    for n, (role, name, rows) in enumerate(sides):
        bare = _population(draw, world, role, name, rows, None, thin)
        names = Names(tuple(label for label, _ in bare.regions), everybody, world.step_m, thin)
        accepted = with_at(world, _filter(draw, names, kind if n == focus else None))
        made.append(bare if accepted is None else replace(bare, filter=accepted))
    mobiles = [1, 2, 3, 4, 5][: draw(range(3, 6))]
    fixes = _table(draw, world, "mobile", mobiles, True, False, 8)
    areas = not thin and draw(range(4)) == 0
    places = _table(draw, world, "place", ["cafe", "park", "pub"][: draw(range(2, 4))], draw((False, True)), areas, 4)
    scenario = Scenario(
        SPACES,
        [p for p in made if p.role == "publication"],
        [p for p in made if p.role == "subscription"],
        tables={"cars": _table(draw, world, "id", [1, 7, 8], True, False, 6), "people": _people(draw, world, [1, 2])},
        metric=world.metric,
        visibility=_visibility(draw, world, [p.name for p in made if p.role == "publication"]),
    )
    until = _often(draw, None, None, None, 6, 12)
    return Case(scenario, fixes, places, None if until is None else world.t(until))


def contains(filter: Filter, kind: str) -> bool:
    """Whether a node of a kind occurs in a filter."""
    from workbench.model import relations
    from workbench.model.filters import And, Dimension, Held, Latch, Not, Or
    from workbench.model.times import At, Pi, Tau, TimeComparison
    from workbench.model.visits import VisitComparison

    classes = {
        "containment": relations.Containment, "enclosure": relations.Enclosure, "overlap": relations.Overlap,
        "within": relations.Within, "nearest": relations.Nearest, "user_defined": relations.UserDefined,
        "fuzzy": relations.Fuzzy, "and": And, "or": Or, "not": Not, "held": Held, "latch": Latch,
    }  # fmt: skip

    def instants(n: Filter) -> list[Any]:
        return [i for i, _ in n.term.instants] if isinstance(n, TimeComparison) else []

    def is_it(n: Filter) -> bool:
        match kind:
            case "any_region":
                return isinstance(n, Match) and n.third is not None
            case "comparison" | "dimensions":
                return isinstance(n, Comparison) and isinstance(n.right, Dimension) == (kind == "dimensions")
            case "tau" | "tau_any" | "pi" | "pi_any":
                which = Tau if kind.startswith("tau") else Pi
                return any(
                    isinstance(i, which) and (i.match.third is not None) == kind.endswith("any") for i in instants(n)
                )
            case "at":
                return any(isinstance(i, At) for i in instants(n))
            case "several_times":
                return sum(isinstance(i, Tau | Pi) for i in instants(n)) > 1 or (
                    any(isinstance(i, Tau | Pi) for i in instants(n)) and any(isinstance(i, At) for i in instants(n))
                )
            case "k_nearest":
                return isinstance(n, Match) and isinstance(n.relation, relations.Nearest) and n.relation.k > 1
            case "fuzzy_ours":
                return isinstance(n, Match) and isinstance(n.relation, relations.Fuzzy) and bool(n.relation.function)
            case "visits_last" | "visits_window":
                limit = "last" if kind == "visits_last" else "window"
                return isinstance(n, VisitComparison) and getattr(n.aggregate.visits, limit) is not None
            case _ if kind in VISITS:
                return isinstance(n, VisitComparison) and n.aggregate.function == kind.removeprefix("visits_")
            case _ if kind in SPATIAL:
                return isinstance(n, Match) and isinstance(n.relation, classes[kind])
        return isinstance(n, classes[kind])

    return any(is_it(n) for n in filter.walk())
