"""The table of messages: what was sent over which connection, and when; both drivers write it.

One row a message, in the order of sending: ``t, sender, receiver``, then the header of its event. A sequence diagram is
this table read from top to bottom.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

from workbench.tip.events import Event

MESSAGES = (
    "t", "sender", "receiver", "id", "type", "category", "quality", "format", "relates_to",
    "cacheable", "forwarded", "prefetched",
)  # fmt: skip


class Message(NamedTuple):
    """An event on its way."""

    t: int
    sender: str
    receiver: str
    event: Event


def table(messages: Iterable[Message]) -> pd.DataFrame:
    """Messages as the table.

    >>> table([Message(5, "gps", "b1", Event("e1", "Location", 5))])[["t", "sender", "receiver", "type"]]
       t sender receiver      type
    0  5    gps       b1  Location
    """
    rows = [
        (t, sender, receiver, *(getattr(event, name) for name in MESSAGES[3:]))
        for t, sender, receiver, event in messages
    ]
    return pd.DataFrame(rows, columns=list(MESSAGES))
