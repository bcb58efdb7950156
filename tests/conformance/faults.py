"""Faults seeded into the engines, and how each would be found: ``python -m tests.conformance.faults FOLDER``.

A fault is a place in the source of one function and what stands there instead. The function is compiled anew with it,
in a process where Numba is switched off, so that kernels are plain Python and callers see the change; then the cases
of the suite are run until one of them gives another answer than the reference did. FOLDER holds the judged cases.
"""

from __future__ import annotations
import __future__

import inspect
import json
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd

from tests.conformance.living import lived, notified
from tests.conformance.pool import Judged, judged
from tests.conformance.strategies import Case


@dataclass(frozen=True)
class Fault:
    """What goes wrong, where, and which cases are asked."""

    what: str
    where: str
    """module:function, or module:class.method"""
    instead_of: str
    stands: str
    kinds: tuple[str, ...]
    asked: str = "local"

    @property
    def name(self) -> str:
        return f"{self.asked}: {self.what}"


FAULTS = [
    Fault(
        "< for <= at the border of a disc",
        "kernels:planar_within", "<= distance_m", "< distance_m", ("within", "enclosure"),
    ),
    Fault(
        "< for <= at the border of a disc on the globe",
        "kernels:geodesic_within", "<= haversine_bound", "< haversine_bound", ("within", "enclosure", "overlap"),
    ),
    Fault(
        "shapes laid into the index without the distance asked for",
        "candidates:boxes", "grow = s.radius + reach", "grow = s.radius", ("within",),
    ),
    Fault(
        "who has nothing but the end of an interval in common overlooked",
        "alike:Common.ranges", 'np.searchsorted(b.low, a.high, "right")', 'np.searchsorted(b.low, a.high, "left")',
        ("overlap", "containment", "comparison", "fuzzy"),
    ),
    Fault(
        "a lost neighbour cell between mobiles",
        "approaching:_approach", "min(cx + 1, columns - 1)", "min(cx, columns - 1)", (), "walks",
    ),
    Fault(
        "a slice of time that begins too late",
        "approaching:_by_slice", "(start[i] - begin) // length, min", "(start[i] - begin) // length + 1, min",
        (), "walks",
    ),
    Fault(
        "a lost cell of a disc, from files",
        "cells:_cells", "min(columns - 1, right) + 1", "min(columns - 1, right)", (), "files",
    ),
    Fault(
        "a tie dropped among moving neighbours",
        "kernels:_nearest", "now[s] <= limit", "(now[s] < limit or s == np.argmin(now))",
        ("nearest",),
    ),
    Fault(
        "a tie dropped among places that stay",
        "sites:_nearest", "if v > limit:", "if v >= limit and n:", ("nearest",), "neighbours",
    ),
    Fault(
        "tau of the union of regions",
        "lowering:Evaluation.visits",
        "return intervals.gather(self.atoms.thirds(match, known), self.lanes.clients[known.role])",
        "met = intervals.gather(self.atoms.thirds(match, known), self.lanes.clients[known.role]); "
        "return intervals.merged(met.lanes, met.start, met.end, self.lanes.count)",
        ("tau_any", "visits_count"),
    ),
    Fault(
        "a tick too early at the five-hour border",
        "intervals:_linear", "return max(first, floor + 1), last", "return max(first, floor), last", ("tau", "pi"),
    ),
    Fault(
        "what never happened is not minus infinity",
        "intervals:_compared", "infinite = op >= 2 if up else op <= 1", "infinite = False", ("tau", "pi"),
    ),
    Fault(
        "an instant evaluated twice, before and after its update",
        "lowering:lanes_of_meetings", "(start < end)", "(start <= end)", ("within", "enclosure", "overlap"),
    ),
    Fault(
        "held a tick too soon",
        "intervals:held", "part.start[long] + ticks", "part.start[long] + ticks - (ticks > 0)", ("held",),
    ),
    Fault(
        "a latch set by what ended before",
        "intervals:_latched", "on_end[j] <= n_start[i]", "on_end[j] < n_start[i]", ("latch",),
    ),
    Fault(
        "one visit too few taken for enough",
        "intervals:_aggregated", "high - low >= last", "high - low >= last - 1", ("visits_count", "visits_sum"),
    ),
    Fault(
        "a window one tick short",
        "intervals:_aggregated", "first - end[low] > window", "first - end[low] >= window",
        ("visits_count", "visits_sum"),
    ),
    Fault(
        "only one choice of a region tried",
        "local:accepted", "for view in views:", "for view in views[:1]:", ("within", "overlap", "comparison"),
    ),
    Fault(
        "a null cell forgets what was said before",
        "streams:Steps.latest", "np.where(row >= self.session, row, -1)", "np.where(said, row, -1)", ("comparison",),
    ),
    Fault(
        "what begins with the last instant is lost",
        "local:lines_of", "kept = tau <= until", "kept = tau < until", ("within", "overlap"),
    ),
    Fault(
        "a removed publication told as an unmatch",
        "local:lines_of", "ended[over & gone] = 1", "ended[over & gone] = 0", ("within", "overlap"),
    ),
    Fault(
        "third parties seen through walls",
        "local:Local.visible", "if not scenario.visibility:", "if True:", ("any_region", "tau_any", "pi_any"),
    ),
    Fault(
        "two events of a publication told as one",
        "local:_events", "(stream.since[version[1:]] != stream.since[version[:-1]])", "False",
        ("within", "overlap", "or", "not"),
    ),
    Fault(
        "a timer that waits too long",
        "live:Live._next", "return min(found, default=None)", "return max(found, default=None)",
        ("tau", "pi", "held"), "live",
    ),
    Fault(
        "a third party's move overlooked",
        "live:Live._asked", "asked.update(self._turned_around())", "pass", ("nearest", "any_region"), "live",
    ),
    Fault(
        "a neighbour overlooked that comes as near as the last one is",
        "surroundings:Neighbours._entered", "<= self._balls[asking].limit", "< self._balls[asking].limit",
        ("nearest",), "live",
    ),
    Fault(
        "a third party that is never seen to leave",
        "surroundings:Company.put", "near[named] |= self._near(self._asking, region)",
        "near[named] = self._near(self._asking, region)", ("any_region", "tau_any", "pi_any"), "live",
    ),
    Fault(
        "a box that is never laid anew",
        "live:Live._place", "nearby.put(party,", "party in nearby._boxes or nearby.put(party,",
        ("within", "tau"), "live",
    ),
    Fault(
        "a disc left out of its last column of cells",
        "field_kernels:lay", "range(first, last + 1)", "range(first, max(last, first + 1))",
        (), "discs",
    ),
    Fault(
        "who is silent during a slice of time is not in it",
        "slices:_cut", "(last or cuts[high + 1] <= t[i + 1])", "last", (), "slices",
    ),
    Fault(
        "a piece lost at the border of a slice",
        "slices:pieces", "kept &= pi > window.low", "kept &= pi > window.low + 1", (), "slices",
    ),
    Fault(
        "a meeting that begins before its slice told by this alone",
        "slices:_apart", "lanes.start < window.low]", "lanes.start < window.low - 1]", (), "slices",
    ),
    Fault(
        "only the slice just before says where everybody was",
        "encountered:before", "for part in range(n)", "for part in range(max(0, n - 1), n)", (), "slices",
    ),
    Fault(
        "a fix thinned out at which something ends",
        "thinning:_turns", "state[i] != known[m]", "state[i] > known[m]", (), "slices",
    ),
    Fault(
        "rows of one instant not put together",
        "tasks:_cleaned", "if not same.any():", "if True:", (), "slices",
    ),
]  # fmt: skip


@contextmanager
def seeded(fault: Fault) -> Iterator[None]:
    """The engines with a fault in them."""
    module_name, _, path = fault.where.partition(":")
    module = import_module(f"workbench.engines.{module_name}")
    *owners, name = path.split(".")
    owner: Any = getattr(module, owners[0]) if owners else module
    right = owner.__dict__[name]
    source = textwrap.dedent(inspect.getsource(right))
    assert fault.instead_of in source, f"{fault.where} has changed: state the fault {fault.what!r} anew"
    flags = __future__.annotations.compiler_flag
    code = compile(source.replace(fault.instead_of, fault.stands), f"<{fault.what}>", "exec", flags)
    made: dict[str, Any] = {"compiled": lambda f: f, "callee": lambda f: f, "inlined": lambda f: f}
    exec(code, right.__globals__, made)  # noqa: S102 - our own source
    if owners:
        holders = [owner]
    else:
        ours = [m for n, m in list(sys.modules.items()) if n.startswith("workbench.")]
        holders = [m for m in ours if m.__dict__.get(name) is right]
    try:
        for holder in holders:
            setattr(holder, name, made[name])
        yield
    finally:
        for holder in holders:
            setattr(holder, name, right)


Check = Callable[[Judged], bool]


def local_agrees(one: Judged) -> bool:
    from workbench.engines import local

    return local.run(one.data, one.until)[0].equals(one.judge)


def live_agrees(one: Judged) -> bool:
    from tests.conformance.test_engines_agree import notifications

    return notified(lived(one.case, one.data)[0].notifications) == notified(notifications(one))


class Others:
    """Small cases of the ways that random scenarios seldom take: files, places that stay, mobiles that meet, discs.

    And slices of time, which are Spark's, whose tasks run here.
    """

    def __init__(self, folder: Path) -> None:
        from tests.conformance import test_approaching, test_direct, test_nearest
        from tests.engines import test_slices
        from workbench.replay import replay
        from workbench.scenarios import proximity

        self.replay, self.slices, self.folder = replay, test_slices, folder
        ways = ("files", "neighbours", "walks", "discs", "slices")
        self.made: dict[str, list[tuple[str, Any, Any, Any]]] = {way: [] for way in ways}
        for seed in range(6):
            draw = Random(seed)
            fixes = test_direct.fixes_of(draw, "planar", [1, 2, 3], False)
            path = folder / f"{seed}.parquet"
            fixes.sort_values(["mobile", "t"]).to_parquet(path, index=False)
            places = test_direct.places_of(draw, "planar")
            self.made["files"].append((f"files {seed}", proximity.scenario(1.5), path, places))
            spots = pd.DataFrame({"place": range(6), "x": [draw.randrange(8) * 1.0 for _ in range(6)], "y": 3.0})
            self.made["discs"].append((f"discs {seed}", proximity.scenario(1.5), fixes, spots))
            near = test_nearest.scenario(1 + seed % 2, False, False, False)
            self.made["neighbours"].append((f"neighbours {seed}", near, *test_nearest.tables(draw, True)))
            friends = test_approaching.scenario(test_approaching.within(2.0), 2.0)
            self.made["walks"].append((f"walks {seed}", friends, test_approaching.walks(draw, True), None))
        for seed, name in enumerate(("near", "latch", "friends", "traffic")):
            fixes, _ = test_slices.walk(seed, n=240, mobiles=16)
            if name == "friends":  # one row each, or the kernel leaves them to the general way
                fixes = fixes.drop_duplicates(["mobile", "t"]).sort_values("t")
            self.made["slices"].append((f"slices {name}", test_slices.SCENARIOS[name][0], fixes, None))
        self.judge = {  # of shared work one task, which the reference judges elsewhere
            name: replay(scenario, fixes, places, engine="local" if way == "slices" else "reference")
            for way, cases in self.made.items()
            for name, scenario, fixes, places in cases
        }

    def found_by(self, asked: str) -> str | None:
        for name, scenario, fixes, places in self.made[asked]:
            try:
                if asked == "discs":
                    said = notified(lived(Case(scenario, fixes, places, None))[0].notifications)
                    right = said == notified(self.judge[name].notifications)
                elif asked == "slices":
                    here = tempfile.mkdtemp(dir=self.folder)
                    timelines, *_ = self.slices.shared(scenario, fixes, places, Path(here), cores=7)
                    right = self.slices.in_order(timelines) == self.slices.in_order(self.judge[name].timelines)
                else:
                    right = self.replay(scenario, fixes, places).timelines.equals(self.judge[name].timelines)
                if not right:
                    return name
            except Exception:  # noqa: BLE001 - to fail is to be found
                return name
        return None


kept = cache(judged)


def found_by(asked: str, kinds: tuple[str, ...], folder: Path, others: Others) -> str | None:
    """The first case that gives another answer than the reference gave."""
    if asked not in ("local", "live"):
        return others.found_by(asked)
    check: Check = local_agrees if asked == "local" else live_agrees
    for kind in kinds:
        for one in kept(kind, folder):
            try:
                if not check(one):
                    return one.name
            except Exception:  # noqa: BLE001 - to fail is to be found
                return one.name
    return None


def main(folder: Path) -> None:
    """Print which case finds which fault; without any fault none finds anything."""
    import numba

    assert numba.config.DISABLE_JIT, "kernels have to be plain Python: NUMBA_DISABLE_JIT=1"
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as scratch:
        others = Others(Path(scratch))
        said: dict[str, str | None] = {}
        for fault in FAULTS:
            print(fault.name, file=sys.stderr, flush=True)  # the last one named is the one that hangs
            with seeded(fault):
                said[fault.name] = found_by(fault.asked, fault.kinds, folder, others)
        asked = {(fault.asked, fault.kinds[:1]) for fault in FAULTS}
        said[""] = next(filter(None, (found_by(*one, folder, others) for one in sorted(asked))), None)
    print(json.dumps(said))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
