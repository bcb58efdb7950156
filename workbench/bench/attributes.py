"""Proximity with attributes: a place has some, a mobile's profile says for each of them how much it takes.

The subject space then has that many dimensions besides the position. The peer is the same SQL with a comparison for
each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from workbench.bench.compare import Contender
from workbench.bench.duckdb_sql import timelines_sql
from workbench.bench.workload import Workload
from workbench.geometry import PLANAR
from workbench.model import Scenario, Space, at_most, column, location, other, own, publications, region, subscriptions
from workbench.replay import replay

EASY = 0.98
"""the share of places that an attribute lets pass"""


def scenario(load: Workload, count: int, people: pd.DataFrame) -> Scenario:
    """Places near a mobile that exceed none of its limits."""
    names = [f"a{n}" for n in range(count)]
    goods = Space("goods", dict.fromkeys(names, float))
    here = region(location, position=column.position)
    wish = region(goods, **{name: at_most(column[f"most_{name}"]) for name in names})
    near = own.here.within(load.radius_m, other.site, space=location)
    return Scenario(
        [location, goods],
        [
            publications(
                "places",
                rows="places",
                regions={"site": here, "offer": region(goods, **{name: column[name] for name in names})},
            )
        ],
        [
            subscriptions(
                "mobiles",
                rows="fixes",
                profiles="people",
                regions={"here": here, "wish": wish},
                filter=near & other.offer.enclosed_by(own.wish, space=goods),
            )
        ],
        tables={"people": people},
        name=f"{count} attributes",
    )


def _sql(fixes: Path, places: pd.DataFrame, people: pd.DataFrame, load: Workload, count: int) -> pd.DataFrame:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    connection.register("offered", places)
    connection.register("people", people)
    named = "".join(f", most_a{n}" for n in range(count)), "".join(f", a{n}" for n in range(count))
    connection.execute(
        f"CREATE TEMP VIEW fixes AS SELECT mobile, t, x, y{named[0]} "
        f"FROM read_parquet('{fixes}') JOIN people ON mobile = people.id"
    )
    connection.execute(
        f"CREATE TEMP VIEW discs AS SELECT place, x, y{named[1]}, r AS reach, r AS reach_x, r AS reach_y "
        f"FROM offered, (SELECT {float(load.radius_m)!r}::DOUBLE AS r)"
    )
    query = timelines_sql(PLANAR, load.radius_m)
    query = query.replace("SELECT mobile, t, x AS x, y AS y,", f"SELECT mobile, t, x AS x, y AS y{named[0]},")
    query = query.replace("reach, cell_x, cell_y\n", f"reach, cell_x, cell_y{named[1]}\n")
    limits = "".join(f"a{n} <= most_a{n} AND " for n in range(count))
    query = query.replace("WHERE (x - px)", f"WHERE {limits}(x - px)")
    return connection.sql(query).df()  # type: ignore[no-any-return]


def contenders(load: Workload, folder: Path, count: int, spark: bool = True) -> Iterator[Contender]:
    """Who is compared, the peer first."""
    fixes, sites = load.write(folder)
    rng = np.random.default_rng(load.seed + 2)
    places = pd.read_parquet(sites).assign(**{f"a{n}": rng.uniform(0, 1, load.places) for n in range(count)})
    people = pd.DataFrame({"id": np.arange(load.mobiles)}).assign(
        **{f"most_a{n}": rng.uniform(2 * EASY - 1, 1, load.mobiles) for n in range(count)}
    )
    made = scenario(load, count, people)
    yield Contender("DuckDB, hand-written SQL, 2 threads", lambda: _sql(fixes, places, people, load, count))
    yield Contender("workbench, local", lambda: replay(made, fixes, places, "local").timelines)
    if spark:
        yield Contender("workbench, Spark over raw data", lambda: replay(made, fixes, places, "spark"))
