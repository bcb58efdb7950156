"""What a broker takes in and what it wants done (TIP 3, 3 and 4.2): data, carried by a driver.

Inputs are what happened: a connection, an event, time that passed, a command of the wrapper process. Effects are what
is to be done: send, open, close, start a service, write to the log. A list of inputs with their times is a recording.
"""

from __future__ import annotations

from typing import NamedTuple

from workbench.tip.events import Event
from workbench.tip.observer import Auxiliary

SERVICE, BROKER = "service", "broker"

class Start(NamedTuple):
    """Run, with the registry as it was left."""


class Shutdown(NamedTuple):
    """End; `keep` the registry for the next start (Figure 10)."""

    keep: bool = False


class Connect(NamedTuple):
    """Connect to another broker."""

    name: str


class Disconnect(NamedTuple):
    """Take leave of another broker."""

    name: str


class Connected(NamedTuple):
    """A connection exists: of a service, or with a broker."""

    name: str
    kind: str = SERVICE


class Disconnected(NamedTuple):
    """A connection is gone."""

    name: str


class Received(NamedTuple):
    """An event came from a service or broker."""

    name: str
    event: Event


class Filter(NamedTuple):
    """Take one event from the in-queue."""


class Sent(NamedTuple):
    """A receiver has taken events."""

    name: str
    number: int = 1


class Tick(NamedTuple):
    """Time has passed."""


class Foreground(NamedTuple):
    """The user sees this service now."""

    name: str


Input = (
    Start | Shutdown | Connect | Disconnect | Connected | Disconnected | Received | Filter | Sent | Tick | Foreground
)  # fmt: skip


class Send(NamedTuple):
    """Hand an event to a receiver."""

    name: str
    event: Event


class Open(NamedTuple):
    """Open a connection to a broker."""

    name: str


class Close(NamedTuple):
    """Close a connection, after what was sent on it."""

    name: str


class Launch(NamedTuple):
    """Start an auxiliary service."""

    name: str
    auxiliary: Auxiliary


class Log(NamedTuple):
    """Something that a maintainer wants to read."""

    text: str


class Ended(NamedTuple):
    """The broker has ended."""


Effect = Send | Open | Close | Launch | Log | Ended
