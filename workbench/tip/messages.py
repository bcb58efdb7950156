"""The table of messages: what was sent over which connection, and when; both drivers write it.

One row a message, in the order of sending: ``t, sender, receiver``, then the header of its event; ``relates_to`` holds
ids with spaces between. Types are those of `SCHEMA`, the same on pandas, Arrow and Spark. A sequence diagram is this
table read from top to bottom.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd
import pyarrow as pa

from workbench.tip.events import Event

SCHEMA = pa.schema(
    [("t", pa.int64()), ("sender", pa.string()), ("receiver", pa.string())]
    + [(name, pa.string()) for name in ("id", "type", "category")]
    + [("quality", pa.int64()), ("format", pa.string()), ("relates_to", pa.string())]
    + [(name, pa.bool_()) for name in ("cacheable", "forwarded", "prefetched")]
)
MESSAGES = tuple(SCHEMA.names)


class Message(NamedTuple):
    """An event on its way."""

    t: int
    sender: str
    receiver: str
    event: Event


def arrow(messages: Iterable[Message]) -> pa.Table:
    """Messages as an Arrow table."""
    rows = [
        (t, sender, receiver, e.id, e.type, e.category, e.quality, e.format, " ".join(e.relates_to),
         e.cacheable, e.forwarded, e.prefetched)
        for t, sender, receiver, e in messages
    ]
    columns = list(zip(*rows)) or [()] * len(SCHEMA)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, SCHEMA)], schema=SCHEMA)


def table(messages: Iterable[Message]) -> pd.DataFrame:
    """Messages as a pandas table.

    >>> table([Message(5, "gps", "b1", Event("e1", "Location", 5))])[["t", "sender", "receiver", "type"]]
       t sender receiver      type
    0  5    gps       b1  Location
    """
    return arrow(messages).to_pandas()
