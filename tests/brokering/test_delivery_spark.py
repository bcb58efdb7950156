"""Delivery on Spark gives what the SimPy model and delivery in this process give, client by client."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from workbench.brokering.delivery import (
    Adaptive,
    Channel,
    GilbertElliott,
    Outages,
    RandomSelection,
    Receding,
    Rules,
    SquareRoot,
    Strategy,
    delivered,
)
from workbench.brokering.delivery import spark as on_spark
from workbench.brokering.delivery.simulated import simulated
from workbench.errors import DataError

pytestmark = pytest.mark.spark

OUT = pd.DataFrame({"subscription": [3, 3, 5, 999], "start": [0, 100, 50, 10], "end": [30, 400, 60, 20]})


def stream(clients: int = 60, size: int = 3000, seed: int = 4) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "t": random.integers(0, 600, size),
            "publication": random.choice(["café", "bank", "zoo"], size),
            "subscription": random.integers(0, clients, size),
        }
    ).drop_duplicates()
    turn = table.sort_values("t").groupby(["publication", "subscription"]).cumcount() % 2
    return table.assign(kind=np.where(turn.reindex(table.index) == 0, "match", "unmatch"))


def ordered(table: Any, by: list[str]) -> pd.DataFrame:
    frame = table if isinstance(table, pd.DataFrame) else table.toPandas()
    frame = frame.sort_values(by, ignore_index=True)
    return frame.astype({"delay_us": "Int64"}) if "delay_us" in frame else frame


CASES: list[tuple[Channel, Strategy, Rules]] = [
    (GilbertElliott(0.05, bad_s=30, good_s=90, breaks=0.3, broker_side=0.5), Adaptive(), Rules(log=2)),
    (Outages(0.1, table=OUT, breaks=0.5, noticed=0.5), RandomSelection(), Rules(estimator="connection", spread_s=20)),
    (Outages(0.2, table=OUT, breaks=1.0), SquareRoot(), Rules(shed=(0.0, 0.3) * 400)),
    (GilbertElliott(0.2), Receding(), Rules(window_s=7)),
]


@pytest.mark.parametrize(("channel", "strategy", "rules"), CASES)
def test_spark_equals_the_simpy_model_client_by_client(
    spark: Any, channel: Channel, strategy: Strategy, rules: Rules
) -> None:
    told = stream()
    here = simulated(told, channel, strategy, rules, seed=9, since=0, until=700)
    there = delivered(spark.createDataFrame(told), channel, strategy, rules, seed=9, since=0, until=700)
    pd.testing.assert_frame_equal(ordered(there.clients, ["subscription"]), ordered(here.clients, ["subscription"]))
    order = ["subscription", "t", "kind", "publication"]
    columns = ["t", "kind", "publication", "subscription", "number", "how", "delay_us"]
    pd.testing.assert_frame_equal(ordered(there.deliveries, order)[columns], ordered(here.deliveries, order)[columns])
    pd.testing.assert_frame_equal(ordered(there.load, ["window"]), here.load)
    pd.testing.assert_series_equal(there.summary(), here.summary())


def test_string_clients_and_timestamps_and_a_lifetime_read_off_the_table(spark: Any) -> None:
    told = stream(clients=9, size=300).astype({"subscription": str})
    told["t"] = pd.to_datetime(told["t"], unit="s", utc=True)
    channel, strategy = GilbertElliott(0.2, breaks=0.1), Adaptive()
    here = delivered(told, channel, strategy)
    there = delivered(spark.createDataFrame(told), channel, strategy)
    assert there.hours == here.hours
    pd.testing.assert_frame_equal(ordered(there.clients, ["subscription"]), ordered(here.clients, ["subscription"]))


def test_outages_that_name_clients_otherwise_are_refused(spark: Any) -> None:
    told = spark.createDataFrame(stream(clients=9, size=30).astype({"subscription": str}))
    with pytest.raises(DataError, match="the notifications' subscriptions are strings"):
        delivered(told, Outages(table=OUT), Adaptive(), since=0, until=700)


def test_a_row_that_stands_twice_and_rows_without_a_name(spark: Any) -> None:
    told = pd.concat([stream(clients=9, size=300)] * 2, ignore_index=True)
    here = delivered(told, GilbertElliott(0.2, breaks=0.1), Adaptive(), since=0, until=700)
    there = delivered(spark.createDataFrame(told), GilbertElliott(0.2, breaks=0.1), Adaptive(), since=0, until=700)
    pd.testing.assert_frame_equal(ordered(there.clients, ["subscription"]), ordered(here.clients, ["subscription"]))
    nobody = told.astype({"subscription": object})
    nobody.loc[3, "subscription"] = None
    with pytest.raises(Exception, match="notifications have no 'subscription'"):
        delivered(spark.createDataFrame(nobody), GilbertElliott(), Adaptive(), since=0, until=700).clients.count()


def test_a_client_cut_by_a_batch_is_delivered_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    from workbench.brokering.delivery.delivered import Setting

    told = stream(clients=5, size=200).sort_values("subscription")
    turn = told["t"] * 10**6 * on_spark.TIES + told["kind"].map({"unmatch": 1, "match": 2})
    table = pa.Table.from_pandas(told.assign(turn=turn), preserve_index=False)
    setting = Setting(GilbertElliott(0.2), Adaptive(), Rules(), 1, 0, 700 * 10**6)
    monkeypatch.setattr(on_spark, "RUN", 11)
    for size in (1, 3, 7, 1000):
        batches = on_spark._task(setting, on_spark._clients)(iter(table.to_batches(max_chunksize=size)))
        whole = pa.Table.from_batches(batches).to_pandas()
        expected = delivered(told, GilbertElliott(0.2), Adaptive(), seed=1, since=0, until=700).clients
        pd.testing.assert_frame_equal(whole, expected)
