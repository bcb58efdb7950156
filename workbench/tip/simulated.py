"""Simulated time: brokers and services over links with a delay, in SimPy.

A thin driver over `broker.step` and `host`: it carries effects to where they become inputs, and lets time pass. Nothing
is decided here. Events on one link keep their order. Every input is recorded, every message is in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import simpy

from workbench.errors import DataError, did_you_mean
from workbench.tip import host as hosting
from workbench.tip.broker import deadline, step
from workbench.tip.events import Event
from workbench.tip.host import Behaviour, Host, Hosted
from workbench.tip.inputs import (
    BROKER,
    SERVICE,
    Close,
    Connect,
    Connected,
    Disconnected,
    Ended,
    Filter,
    Input,
    Launch,
    Log,
    Open,
    Received,
    Send,
    Sent,
    Start,
    Tick,
)
from workbench.tip.messages import Message, table
from workbench.tip.recording import Recorded
from workbench.tip.state import State

Launcher = Callable[[str, Any], Behaviour]
"""Makes the behaviour of an auxiliary service from its name and what the broker says about it."""


class Simulation:
    """Brokers, services and links under simulated time; `delay` in microseconds, or one for each (sender, receiver).

    >>> from workbench.tip.broker import broker
    >>> world = Simulation([broker("b1"), broker("b2")])
    >>> world.start("b1", "b2").connect("b1", "b2").run()
    >>> sorted(world.brokers["b1"].neighbours)
    ['b2']
    """

    def __init__(
        self,
        brokers: Iterable[State],
        *,
        delay: int = 1_000,
        delays: Mapping[tuple[str, str], int] | None = None,
        launcher: Launcher | None = None,
    ) -> None:
        self.env = simpy.Environment()
        self.brokers = {state.name: state for state in brokers}
        self.hosts: dict[str, Host] = {}
        self.home: dict[str, str] = {}
        self.recording: list[Recorded] = []
        self.log: list[tuple[int, str]] = []
        self._messages: list[Message] = []
        self._delay, self._delays = delay, dict(delays or {})
        self._launcher = launcher
        self._links: set[tuple[str, str]] = set()

    # -- what a user does --------------------------------------------------------------------------------

    def start(self, *names: str) -> Simulation:
        """Start brokers."""
        for name in names:
            self.input(name, Start())
        return self

    def connect(self, one: str, other: str) -> Simulation:
        """Have one broker connect to another."""
        self.input(one, Connect(other))
        return self

    def join(self, name: str, broker: str, behaviour: Behaviour, *, register: bool = True) -> Simulation:
        """Start a service at a broker; without `register` it relies on the broker's knowing it (Figure 10)."""
        if broker not in self.brokers:
            raise DataError(f"there is no broker {broker!r}; {did_you_mean(broker, self.brokers)}")
        known = self.hosts.get(name)
        self.home[name] = broker
        self._links |= {(name, broker), (broker, name)}
        self.input(broker, Connected(name))
        if register or known is None:
            self._host(name, hosting.register(Host(name, behaviour, made=known.made if known else 0), self.now))
        else:
            self.hosts[name] = replace(known, ended=False)
        return self

    def cut(self, one: str, other: str) -> Simulation:
        """Cut the connection of a service or broker with a broker; what is on its way is lost."""
        if (one, other) in self._links:
            self._links -= {(one, other), (other, one)}
            for here, there in ((one, other), (other, one)):
                if here in self.brokers:
                    self.input(here, Disconnected(there))
        return self

    def rejoin(self, name: str) -> Simulation:
        """A service is back on its broker, as it was."""
        broker = self.home[name]
        self._links |= {(name, broker), (broker, name)}
        self.input(broker, Connected(name))
        return self

    def say(self, name: str, *acts: hosting.Act) -> Simulation:
        """Have a service do something from outside, as a user who turns it."""
        self._host(name, hosting.do(self.hosts[name], acts, self.now))
        return self

    def run(self, until: int | None = None) -> None:
        """Let time pass: until a time, or until nothing is on its way (timers of promises do not count)."""
        if until is None:
            while self.env.peek() != float("inf"):
                self.env.step()
        else:
            self.env.run(until + 1)

    @property
    def now(self) -> int:
        return int(self.env.now)

    @property
    def messages(self) -> pd.DataFrame:
        """The table of messages."""
        return table(self._messages)

    def received(self, name: str, type: str | None = None) -> list[Event]:
        """The service events that a service received, of one type or all."""
        return [e for e in self.hosts[name].received if e.category != "system" and type in (None, e.type)]

    # -- carrying ----------------------------------------------------------------------------------------

    def input(self, name: str, input: Input) -> None:
        """Give a broker an input, and carry its effects."""
        state, effects = step(self.brokers[name], input, self.now)
        self.brokers[name] = state
        self.recording.append(Recorded(self.now, name, input, effects))
        for effect in effects:
            match effect:
                case Send(receiver, event):
                    self._carry(name, receiver, event)
                case Open(other):
                    self._open(name, other)
                case Close(other):
                    self._after(self._time(name, other), partial(self.cut, name, other))
                case Launch(service, auxiliary):
                    if self._launcher is None:
                        raise DataError(f"{name} starts {service}; expected a launcher for auxiliary services")
                    self.hosts.pop(service, None)
                    made = Host(service, self._launcher(service, auxiliary))
                    self._after(self._delay, partial(self._launched, name, made))
                case Log(text):
                    self.log.append((self.now, text))
                case Ended():
                    pass
        if self.brokers[name].in_queue:
            self.input(name, Filter())
        due = deadline(self.brokers[name])
        if due is not None and due > self.now:
            self._after(due - self.now, lambda: self._tick(name, due))

    def _tick(self, name: str, due: int) -> None:
        if deadline(self.brokers[name]) == due:
            self.input(name, Tick())

    def _open(self, name: str, other: str) -> None:
        if other not in self.brokers or self.brokers[other].phase != "running":
            self.log.append((self.now, f"{name} cannot reach {other}"))
        elif (name, other) not in self._links:
            self._links |= {(name, other), (other, name)}
            self.input(name, Connected(other, BROKER))
            self.input(other, Connected(name, BROKER))

    def _launched(self, broker: str, made: Host) -> None:
        """An auxiliary service connects; the broker has registered it already."""
        name = made.name
        self.home[name] = broker
        self._links |= {(name, broker), (broker, name)}
        self.hosts[name] = replace(made, advertised=made.behaviour.description.advertisements)
        self.input(broker, Connected(name, SERVICE))

    def _carry(self, sender: str, receiver: str, event: Event) -> None:
        self._messages.append(Message(self.now, sender, receiver, event))
        self._after(self._time(sender, receiver), lambda: self._arrive(sender, receiver, event))

    def _arrive(self, sender: str, receiver: str, event: Event) -> None:
        if (sender, receiver) not in self._links:
            return
        if receiver in self.brokers:
            self.input(receiver, Received(sender, event))
        else:
            self._host(receiver, hosting.happen(self.hosts[receiver], event, self.now))
        if sender in self.brokers:
            self.input(sender, Sent(receiver))

    def _host(self, name: str, hosted: Hosted) -> None:
        self.hosts[name] = hosted.host
        for event in hosted.sends:
            self._carry(name, self.home[name], event)
        for t in hosted.wakes:
            self._after(max(0, t - self.now), lambda: self._wake(name))

    def _wake(self, name: str) -> None:
        if (name, self.home[name]) in self._links:
            self._host(name, hosting.happen(self.hosts[name], hosting.WAKE, self.now))

    def _time(self, sender: str, receiver: str) -> int:
        return self._delays.get((sender, receiver), self._delay)

    def _after(self, delay: int, action: Callable[[], Any]) -> None:
        self.env.timeout(delay).callbacks.append(lambda _: action())
