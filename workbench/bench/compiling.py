"""How long kernels take to compile on a fresh machine, and to load: ``python -m workbench.bench.compiling``.

Each group is something that users do, on next to no data, so that what it takes is what its kernels take. The groups
are shared out among processes that start with an empty cache (``--processes``; Numba compiles one function at a time in
each), and then run once more by a process that finds everything compiled. A user waits for the groups he uses, and only
for what no group before has compiled; all together are every kernel of the package (tests/engines/test_compiling.py).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd


def fixes_of() -> pd.DataFrame:
    """Six mobiles that walk to and fro along a street, with whatever a scenario reads of them."""
    frame = pd.DataFrame({"mobile": np.tile(np.arange(6), 30), "t": np.repeat(np.arange(30), 6)})
    blue = frame["mobile"] % 2 == 0
    return frame.assign(
        x=40.0 * frame["mobile"] + 30.0 * (frame["t"] % 7),
        y=5.0 * frame["mobile"],
        fuel=10.0,
        most=150.0,
        state=np.where(frame["t"] % 5 == 0, "quiet", "calling"),
        status="free",
        team=np.where(blue, "blue", "red"),
        hunts=np.where(blue, "red", "blue"),
    )


def places_of() -> pd.DataFrame:
    """Four shops along that street."""
    along = [0.0, 90.0, 180.0, 270.0]
    return pd.DataFrame({"place": range(4), "x": along, "y": 0.0, "category": "coffee", "price": along})


def areas_of() -> pd.DataFrame:
    """Two rooms along that street."""
    rooms = ["POLYGON ((0 -9, 80 -9, 80 9, 0 9, 0 -9))", "POLYGON ((80 -9, 200 -9, 200 9, 80 9, 80 -9))"]
    return pd.DataFrame({"place": [0, 1], "geometry": rooms})


def _on_the_globe(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(lon=7 + table["x"] / 1e5, lat=50 + table["y"] / 1e5).drop(columns=["x", "y"])


def _written(folder: Path, table: pd.DataFrame, name: str = "fixes") -> Path:
    path = folder / f"{name}.parquet"
    table.to_parquet(path, index=False)
    return path


def _replay(scenario: Any, fixes: Any, places: Any, **parameters: Any) -> None:
    from workbench.replay import replay

    _ = replay(scenario, fixes, places, "local", parameters).timelines


def proximity(folder: Path) -> None:
    """`proximity` of files."""
    _replay("proximity", _written(folder, fixes_of()), _written(folder, places_of(), "places"), radius_m=50.0)


def degrees(folder: Path) -> None:
    """The same by longitude and latitude."""
    _replay("proximity", _written(folder, _on_the_globe(fixes_of())), _on_the_globe(places_of()), radius_m=50.0)


def tables(folder: Path) -> None:
    """The general way: tables, areas, discs, profiles."""
    from workbench.model import Scenario, Space, column, disc, location, other, own, publications, region, subscriptions

    _replay("proximity", fixes_of(), places_of(), radius_m=50.0)
    _replay("proximity", fixes_of(), areas_of())
    goods = Space("goods", price=float)
    site = region(location, position=disc(column.position, 50.0))
    places = publications(
        "places", rows="places", regions={"site": site, "offer": region(goods, price=column.price)}
    )
    people = subscriptions(
        "people",
        rows="fixes",
        profiles="people",
        regions={
            "here": region(location, position=disc(column.position, 20.0)),
            "wish": region(goods, price=column.most.or_else(100.0)),
        },
        filter=own.here.mostly_in(other.site, space=location, degree=0.5) & other.offer.overlaps(own.wish, space=goods),
    )
    profiles = pd.DataFrame({"id": [0, 0, 1], "t": [1, 9, 4], "most": [90.0, 180.0, 90.0]})
    made = Scenario([location, goods], [places], [people], tables={"people": profiles})
    _replay(made, fixes_of().drop(columns="most"), places_of())


def filters(folder: Path) -> None:
    """Filters over time, and over the visits of others."""
    from workbench.engines import intervals

    fixes = fixes_of()
    _replay("coffee", _written(folder, fixes), places_of(), radius_m=60.0, pause_h=0.01, door_m=15.0)
    _replay("coffee", fixes, places_of(), radius_m=60.0, pause_h=0.01, door_m=15.0)
    slow: dict[str, Any] = {"section_start_m": 50, "section_end_m": 150, "slow_min": 0.05, "cars": 2}
    _replay("traffic", _written(folder, fixes), None, **slow)
    _replay("traffic", fixes, None, **slow)
    _replay("game", fixes, places_of(), catch_m=60, hold_s=3, refuge_m=20)
    _replay("tourists", fixes, areas_of(), dwell_min=0.05, again_h=0.01)
    many = np.arange(intervals.MANY)
    intervals.ordered(many[::-1], many)


def neighbours(folder: Path) -> None:
    """The nearest places, and the nearest mobiles."""
    from workbench.bench.nearest import scenario

    _replay(scenario(), _written(folder, fixes_of()), _written(folder, places_of(), "places"))
    _replay(scenario(), fixes_of(), places_of())
    _replay("dispatch", fixes_of(), places_of(), radius_m=80, units=2)


def friends(folder: Path) -> None:
    """Mobiles that meet, from files in the order of time or of mobiles, and from tables."""
    fixes = fixes_of()
    for given in (_written(folder, fixes), _written(folder, fixes.sort_values("mobile")), fixes):
        _replay("friends", given, None, near_m=30.0, far_m=50.0)


def live(folder: Path) -> None:
    """A broker whose clients move one at a time, and in batches."""
    from workbench.bench.live import LiveLoad, measure

    list(measure(LiveLoad(discs=600, clients=6, side_m=600, step_m=40, moves=60, batched=60, batch=30, looped=30)))


def tasks(folder: Path) -> None:
    """What only tasks on Spark do: rows that say nothing left out, rows laid down by mobile and by slices of time."""
    import pyarrow as pa

    from workbench import tables
    from workbench.engines import encountered, exchange, slices, tasks, thinning
    from workbench.scenarios import named

    fixes = fixes_of()[["mobile", "t", "x", "y"]].sort_values(["mobile", "t"])
    table = pa.Table.from_pandas(fixes, preserve_index=False)
    mobile, t = tasks.codes_of(table["mobile"]), tasks.ticks_of(table)
    jam = named("traffic")(section_start_m=50, section_end_m=150)
    thin = thinning.prepared(tables.inputs(jam, fixes[:1], None), frozenset(fixes.columns))
    assert thin is not None
    thin.kept(table, thinning.numbered(table["mobile"]), t)
    exchange.by_part(mobile, 6)
    slices.cut(mobile, t, np.array([0, 20, 60]))
    encountered._last(mobile, t, t // 20, 6)


def scopes(folder: Path) -> None:
    """Notifications through a graph of scopes."""
    from workbench.brokering.scopes import OPEN, graph
    from workbench.brokering.scopes.tabular import delivered

    said = pd.DataFrame({"id": [1, 2], "component": ["1", "3"], "t": [1, 2], "n": [3.0, 4.0]})
    delivered(said, graph("1->S", "2->S", "S->R", "3->R"), {"2": OPEN, "3": OPEN})


def delivery(folder: Path) -> None:
    """Notifications through a channel that loses some, by both models."""
    from workbench.brokering.delivery import Adaptive, Constant, Independent, delivered
    from workbench.brokering.delivery.recurrence import ConstantLosses, evolution
    from workbench.brokering.delivery.simulated import simulated

    told = pd.DataFrame({"t": [10, 50], "kind": ["match", "unmatch"], "publication": "cafe", "subscription": 7})
    delivered(told, Independent(), Constant(), since=0, until=100)
    simulated(told, Independent(0.5), Constant(), since=0, until=1000)
    evolution(Adaptive(), ConstantLosses(1), steps=4)


def datasets(folder: Path) -> None:
    """Where mobiles stop."""
    from workbench.datasets.preparing import stops

    stops(fixes_of()[["mobile", "t", "x", "y"]])


GROUPS: dict[str, Callable[[Path], None]] = {
    group.__name__: group
    for group in (
        proximity, degrees, tables, filters, neighbours, friends, live, tasks, scopes, delivery, datasets,
    )
}  # fmt: skip
SHARES = {
    1: [list(GROUPS)],
    2: [
        ["proximity", "degrees", "neighbours", "friends", "filters", "datasets"],
        ["live", "tables", "scopes", "delivery", "tasks"],
    ],
}
"""the groups of each process: what shares kernels stands together"""


class Taken(NamedTuple):
    """How long a group took: by the clock, and by the processor, which others who use the machine do not lengthen."""

    seconds: float
    processor: float


def run(names: Iterable[str]) -> dict[str, Taken]:
    """What each group takes, one after the other in this process."""
    taken = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            began, before = time.perf_counter(), time.process_time()
            GROUPS[name](Path(folder))
            taken[name] = Taken(time.perf_counter() - began, time.process_time() - before)
    return taken


def _start(names: list[str], cache: str) -> subprocess.Popen[str]:
    code = f"import json; from workbench.bench.compiling import run; print(json.dumps(run({names!r})))"
    settings = {**os.environ, "WORKBENCH_CACHE": cache, "PYTHONWARNINGS": "ignore"}
    return subprocess.Popen([sys.executable, "-c", code], env=settings, stdout=subprocess.PIPE, text=True)


def _taken(processes: list[subprocess.Popen[str]]) -> dict[str, Taken]:
    said = [process.communicate()[0] for process in processes]
    assert not any(process.returncode for process in processes)
    return {name: Taken(*taken) for one in said for name, taken in json.loads(one).items()}


def main(processes: int = 2, group: str | None = None) -> None:
    """Print a table; with ``--group`` what one alone takes, for somebody who does nothing else."""
    shares = [[group]] if group else SHARES[processes]
    with tempfile.TemporaryDirectory() as cache:
        began = time.perf_counter()
        fresh = _taken([_start(names, cache) for names in shares])
        total = time.perf_counter() - began
        warm = _taken([_start([name for names in shares for name in names], cache)])
    print(f"{'':12}{'compiled':>10}{'processor':>12}{'loaded':>10}{'processor':>12}")
    for name, taken in fresh.items():
        cold = f"{name:12}{taken.seconds:8.1f} s{taken.processor:10.1f} s"
        print(f"{cold}{warm[name].seconds:8.2f} s{warm[name].processor:10.2f} s")
    clock, processor, loaded, by_processor = (
        sum(column) for one in (fresh, warm) for column in zip(*one.values(), strict=True)
    )
    print(f"{'all':12}{clock:8.1f} s{processor:10.1f} s{loaded:8.2f} s{by_processor:10.2f} s")
    print(f"{total:.1f} s in all, by {len(shares)} processes side by side")


if __name__ == "__main__":
    import typer

    typer.run(main)
