"""The rows of the performance table, each by its name: ``workbench bench --row NAME``.

A row is a workload and its contenders, the peer that it is measured against first. ``proximity`` is the one that all
peers can do; the others stand beside the peer that does them best. Defaults are those of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from workbench import datasets
from workbench.bench import friends, nearest, peers, zones
from workbench.bench.compare import Contender
from workbench.bench.workload import Workload
from workbench.errors import DataError
from workbench.geometry import WGS84
from workbench.replay import replay


class Options(NamedTuple):
    """What can be asked of every row; nothing said means what the table has."""

    folder: Path
    fixes: int | None = None
    mobiles: int | None = None
    places: int | None = None
    radius_m: float | None = None
    spark: bool = True

    def load(self, **defaults: Any) -> Workload:
        """The workload of a row, as far as nothing else was asked for."""
        said = {name: getattr(self, name) for name in ("fixes", "mobiles", "places", "radius_m")}
        return Workload(**{**defaults, **{name: value for name, value in said.items() if value is not None}})


class Row(NamedTuple):
    """What it measures, and who takes part."""

    says: str
    contenders: Callable[[Options], Iterator[Contender | tuple[str, Callable[[], Any]]]]


def _proximity(asked: Options, others: bool = True, **defaults: Any) -> Iterator[Contender]:
    load = asked.load(**defaults)
    fixes, places = load.write(asked.folder)
    judge, *more = peers.PEERS
    yield Contender(judge.name, lambda: judge.timelines(fixes, places, load.radius_m))
    parameters = {"radius_m": load.radius_m}
    yield Contender("workbench, local", lambda: replay("proximity", fixes, places, "local", parameters).timelines)
    if asked.spark:
        ingested = asked.folder / f"ingested-{load.fixes}-{load.mobiles}"
        if not datasets.is_ingested(ingested):
            datasets.ingest(fixes, ingested)
        run = partial(replay, "proximity", places=places, engine="spark", parameters=parameters)
        yield Contender("workbench, Spark over ingested data", lambda: run(fixes=ingested))
        yield Contender("workbench, Spark over raw data", lambda: run(fixes=fixes))
        yield Contender("Spark: repartition by mobile, sort, write nothing", lambda: _shuffled(fixes))
    for peer in more if others else ():
        if peer.missing is None and (asked.spark or peer.package != "pyspark"):
            yield Contender(peer.name, partial(peer.timelines, fixes, places, load.radius_m))


def _shuffled(fixes: Path) -> None:
    from workbench.session import spark_session

    table = spark_session().read.parquet(str(fixes)).repartition("mobile").sortWithinPartitions("mobile", "t")
    table.write.format("noop").mode("overwrite").save()


def _taxis(asked: Options) -> Iterator[Contender]:
    """San Francisco's cabs and cafes, ids as text, from Parquet as everybody else."""
    found = datasets.find_data("sf_cabs/sf_cabs_77.csv.gz"), datasets.find_data("places/poi_sf.csv")
    if None in found:
        raise DataError("the taxis of San Francisco were not found; data/README.md says where to get them")
    asked.folder.mkdir(parents=True, exist_ok=True)
    fixes, places = asked.folder / "taxis.parquet", asked.folder / "cafes.parquet"
    moved = pd.read_csv(found[0]).rename(columns={"cab": "mobile"})[["mobile", "t", "lon", "lat"]]
    moved.to_parquet(fixes, index=False)
    sites = pd.read_csv(found[1]).rename(columns={"poi_id": "place"})
    sites[sites["category"] == "cafe"][["place", "lon", "lat"]].to_parquet(places, index=False)
    radius_m = asked.radius_m or 150.0
    yield Contender(peers.PEERS[0].name, lambda: peers.duckdb(fixes, places, radius_m, WGS84))
    yield Contender(
        "workbench, local", lambda: replay("proximity", fixes, places, "local", {"radius_m": radius_m}).timelines
    )


ROWS = {
    "proximity": Row("10 M fixes of 10,000 mobiles, 1,000 discs of 500 m, beside every peer", _proximity),
    "dense": Row(
        "the same fixes, 100,000 discs of 100 m",
        partial(_proximity, others=False, places=100_000, radius_m=100.0),
    ),
    "taxis": Row("San Francisco's cabs, mobiles as text, 436 cafes, 150 m", _taxis),
    "nearest": Row(
        "the nearest of 1,000 places for each of 10 M fixes",
        lambda asked: nearest.contenders(asked.load(), asked.folder),
    ),
    "friends": Row(
        "pairs of 5,000 mobiles within 200 m, 1,000 instants",
        lambda asked: friends.contenders(
            asked.load(fixes=5_000_000, mobiles=5_000), asked.folder, engines=("local", "spark")[: 1 + asked.spark]
        ),
    ),
    "zones": Row(
        "10 M fixes in 1,000 areas of 50 to 200 vertices", lambda asked: zones.contenders(asked.load(), asked.folder)
    ),
}
