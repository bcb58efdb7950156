"""Delivery on Spark: the same kernel, a task for a share of the clients. The only module here that needs pyspark.

Rows are distributed and sorted by client, the outages among them; a task reads them as Arrow, keeps the rows of the
client that a batch cuts in two for the next run, puts each client's rows in order and calls the kernel. Spark sorts by
one integer column only, which it does far faster than by four; the order of the members of one message changes nothing.
Nothing is collected, and nobody waits for another client: an overload enters as `Rules.shed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from workbench.brokering.delivery.channels import Channel, Outages
from workbench.brokering.delivery.delivered import HOW, Delivered, Setting, lifetime
from workbench.brokering.delivery.kernel import COUNTS, MATCH, OUTAGE, SECOND_US, UNMATCH
from workbench.brokering.delivery.rows import COLUMNS, Rows, check_columns, check_outages, client_keys
from workbench.brokering.delivery.rules import Rules
from workbench.brokering.delivery.strategies import Strategy
from workbench.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Rows that a task gathers before it calls the kernel: bounds its memory, and makes the call's own cost vanish.
RUN = 1_000_000
TIES = 4


def delivered_on_spark(
    notifications: DataFrame,
    channel: Channel,
    strategy: Strategy,
    rules: Rules,
    seed: int,
    since: Any,
    until: Any,
    tick_us: int,
) -> Delivered:
    """`delivered` for a Spark DataFrame: three lazy tables."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    check_columns(notifications.columns)
    if since is None or until is None:
        ends_of: pd.DataFrame = notifications.agg(F.min("t").alias("since"), F.max("t").alias("until")).toPandas()  # type: ignore[assignment]
        found = ends_of.iloc[0]
        since, until = (found["since"] if since is None else since), (found["until"] if until is None else until)
    ends = pd.Series([since, until])
    if isinstance(notifications.schema["t"].dataType, T.TimestampType) and ends.dt.tz is None:
        ends = ends.dt.tz_localize("UTC")
    setting = Setting(channel, strategy, rules, seed, *lifetime(ends, None, None, tick_us))
    rows = _sorted(notifications, setting, tick_us)
    # The outages travel as rows; the function that is sent to the tasks must not carry their table again.
    light = replace(setting, channel=_without_outages(channel))

    name = notifications.schema["subscription"].dataType
    deliveries = T.StructType(
        [
            *notifications.select(*COLUMNS).schema.fields,
            T.StructField("number", T.LongType()),
            T.StructField("how", T.StringType()),
            T.StructField("delay_us", T.LongType()),
        ]
    )
    clients = T.StructType(
        [T.StructField("subscription", name), *[T.StructField(count, T.LongType()) for count in COUNTS]]
    )
    load = T.StructType([T.StructField("window", T.LongType()), T.StructField("messages", T.LongType())])
    few = rows.drop("t", "kind")
    return Delivered(
        rows.mapInArrow(_task(light, _deliveries), deliveries),
        few.mapInArrow(_task(light, _clients), clients),
        few.mapInArrow(_task(light, _load), load).groupBy("window").agg(F.sum("messages").alias("messages")),
        (setting.until - setting.since) / SECOND_US / 3600,
    )


def _sorted(notifications: DataFrame, setting: Setting, tick_us: int) -> DataFrame:
    """Rows by client: `turn` is the microsecond and the order of ties in one number; an outage has an `end_us`."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    rank = F.when(F.col("kind") == "match", MATCH).when(F.col("kind") == "unmatch", UNMATCH)
    fault = F.raise_error(F.concat(F.lit("notifications have the kind "), F.col("kind")))
    turn = _microseconds(notifications, "t", tick_us) * TIES + F.coalesce(rank, fault)
    for name in COLUMNS:
        empty = F.raise_error(F.lit(f"notifications have no {name!r} in some row"))
        turn = F.when(F.col(name).isNull(), empty).otherwise(turn)
    rows = notifications.select(*COLUMNS, turn.alias("turn"))
    outages = setting.channel.outages
    if outages is not None and len(outages):
        check_outages(outages, isinstance(notifications.schema["subscription"].dataType, T.IntegralType))
        table = notifications.sparkSession.createDataFrame(outages[["subscription", "start", "end"]])
        start = F.greatest(_microseconds(table, "start", tick_us), F.lit(setting.since))
        end = _microseconds(table, "end", tick_us)
        table = table.where((start < end) & (start <= setting.until)).select(
            F.col("subscription").cast(notifications.schema["subscription"].dataType).alias("subscription"),
            (start * TIES + OUTAGE).alias("turn"),
            end.alias("end_us"),
        )
        rows = rows.unionByName(table, allowMissingColumns=True)
    return rows.repartition("subscription").sortWithinPartitions("subscription")


def _microseconds(table: DataFrame, column: str, tick_us: int) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    kind = table.schema[column].dataType
    if isinstance(kind, T.TimestampType):
        return F.unix_micros(column)
    if isinstance(kind, T.IntegralType):
        return F.col(column).cast("long") * tick_us
    raise DataError(f"instants are of type {kind.simpleString()}; expected integers, or timestamps with a time zone")


def _without_outages(channel: Channel) -> Channel:
    return replace(channel, table=Outages().table) if isinstance(channel, Outages) else channel


Made = Callable[[Setting, pa.Table, Rows], pa.Table]


def _task(setting: Setting, made: Made) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does: gather whole clients, run, and yield what is made of the result."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        gathered: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            gathered.append(batch)
            size += batch.num_rows
            if size >= RUN:
                table = pa.Table.from_batches(gathered)
                cut = int(_starts(table["subscription"])[-1])
                if cut:
                    yield from _run(setting, table.slice(0, cut), made)
                    gathered = table.slice(cut).to_batches()
                    size -= cut
        if size:
            yield from _run(setting, pa.Table.from_batches(gathered), made)

    return run


def _run(setting: Setting, table: pa.Table, made: Made) -> Iterator[pa.RecordBatch]:
    rows = _rows(table, setting)
    if rows.keys.size:
        yield from made(setting, table, rows).to_batches()


def _deliveries(setting: Setting, table: pa.Table, rows: Rows) -> pa.Table:
    number, how, delay, _, _ = setting.run(rows)
    at = np.flatnonzero(rows.position >= 0)
    told = table.take(pa.array(rows.position[at]))
    return pa.table(
        {
            **{name: told[name] for name in COLUMNS},
            "number": number[at],
            "how": pa.array(HOW).take(pa.array(how[at])),
            "delay_us": pa.array(delay[at], mask=delay[at] < 0),
        }
    )


def _clients(setting: Setting, table: pa.Table, rows: Rows) -> pa.Table:
    counts = setting.run(rows)[3]
    return pa.table({"subscription": pa.array(rows.ids), **{name: counts[:, c] for c, name in enumerate(COUNTS)}})


def _load(setting: Setting, table: pa.Table, rows: Rows) -> pa.Table:
    load = setting.run(rows)[4]
    busy = np.flatnonzero(load)
    return pa.table({"window": busy, "messages": load[busy]})


def _rows(table: pa.Table, setting: Setting) -> Rows:
    """The rows of a task in the order of delivery, without the outages of those who have no notifications."""
    starts, turn = _starts(table["subscription"]), table["turn"].to_numpy()
    sizes = np.diff(np.r_[starts, turn.size])
    told = turn % TIES != OUTAGE
    clients = np.logical_or.reduceat(told, starts)
    order = _in_turn(starts, sizes, turn)[np.repeat(clients, sizes)]
    if told.any() and not setting.since <= (at := turn[told] // TIES).min() <= at.max() <= setting.until:
        raise DataError("notifications lie outside since..until; expected since <= t <= until")
    publication = np.empty(turn.size, np.int64)
    publication[told] = _codes(table["publication"].drop_null())
    if not told.all():
        publication[~told] = table["end_us"].drop_null().to_numpy()
    ids = table["subscription"].take(pa.array(starts[clients])).to_pandas().to_numpy()
    t, kind = np.divmod(turn[order], TIES)
    position = np.where(told[order], order, -1)
    return Rows(ids, client_keys(ids), np.cumsum(np.r_[0, sizes[clients]]), t, kind, publication[order], position)


def _in_turn(starts: np.ndarray, sizes: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """The order that sorts each client's rows by ``turn``; most tables are in time order already, and cost one look."""
    order = np.arange(turn.size)
    back = np.r_[False, turn[1:] < turn[:-1]]
    back[starts] = False
    client = np.repeat(np.arange(starts.size), sizes)
    if back.any():
        mixed = np.flatnonzero(np.isin(client, client[back]))
        order[mixed] = mixed[np.lexsort((turn[mixed], client[mixed]))]
    return order


def _codes(column: pa.ChunkedArray) -> np.ndarray:
    """Ids as integers that are equal where the ids are: themselves, or codes of strings."""
    if pa.types.is_integer(column.type):
        return column.to_numpy()
    return column.combine_chunks().dictionary_encode().indices.to_numpy()


def _starts(column: pa.ChunkedArray) -> np.ndarray:
    """The first row of each client, the clients' rows standing together."""
    codes = _codes(column)
    return np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
