"""Real connections: brokers and services over TCP on the loopback address, in asyncio.

A thin driver over the same steps as `simulated`. A frame is four bytes of length and an envelope; the first frame of a
connection says who connects (a Connection event with name and kind). A frame that is too long ends its connection; a
message that is malformed or hostile is refused with one line in the log, and the connection goes on. Nobody else
notices either. A receiver that is slow is waited for by a task of its own, so it delays nobody; the step's window
bounds what is held for it. Where two brokers call each other at one time, the call of the one whose name comes first
counts.

What is guaranteed where something breaks, each tested in tests/tip/test_faults.py:

===========================================  ====================================================================
what breaks                                  guarantee
===========================================  ====================================================================
nothing                                      each event once to each subscriber, in the order of its publisher
a service dies before its event was read     the event was never published
a service dies after its event was read      the event is delivered to all its subscribers
a subscriber dies, and returns in `grace`    what waited for it is delivered; what was written and not read is lost
a subscriber dies for longer                 it is deregistered, and nothing is kept for it
a broker dies                                what it held is lost, nothing is sent twice; it starts with its
                                             `registry`, and services that return are subscribed as they were
another broker dies                          as a service; who connects again is told everything anew
a message is malformed, hostile, replayed    it is refused, with a line in the log; the connection goes on
a frame is longer than `limit`               its connection ends, with a line in the log, as if the service died
===========================================  ====================================================================

A replay is known by its id, as long as the broker remembers it (`Limits.recent`, and not over its own death).
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from secrets import token_hex
from typing import Any

import pandas as pd

from workbench.errors import DataError
from workbench.tip import host as hosting
from workbench.tip import registry as registries
from workbench.tip.bodies import MAX_BYTES, body, field
from workbench.tip.broker import deadline, same_deadline, step
from workbench.tip.envelope import EnvelopeError, decode, encode
from workbench.tip.events import Event, fresh
from workbench.tip.host import Behaviour, Host, Hosted
from workbench.tip.inputs import (
    BROKER,
    SERVICE,
    Close,
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
    Tick,
)
from workbench.tip.messages import Message, table
from workbench.tip.recording import Recorded
from workbench.tip.state import State

LOOPBACK = "127.0.0.1"
CONNECTION = "Connection"
ROOM = 2**16
"""So many bytes that a receiver has not taken yet are no reason to wait for it."""
_LENGTH = struct.Struct("!I")
# An event goes to several receivers, and what a broker sends it has read or made: its body is canonical.
_forwarded = lru_cache(maxsize=256)(partial(encode, canonical=True))


class Frames:
    """A connection as a stream of events, both ways."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        limit: int = MAX_BYTES,
        encode: Callable[[Event], bytes] = encode,
    ) -> None:
        self.reader, self.writer, self.limit, self.encode = reader, writer, limit, encode

    async def receive(self) -> bytes:
        """The next message; EOFError where the connection ends or the frame is too long to be read."""
        try:
            (length,) = _LENGTH.unpack(await self.reader.readexactly(_LENGTH.size))
            if length > self.limit:
                raise EOFError(f"a frame of {length} bytes; at most {self.limit} are read")
            return await self.reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            raise EOFError("") from None

    def write(self, *events: Event) -> bool:
        """Write events; whether there is room for more."""
        self.writer.write(b"".join([_LENGTH.pack(len(one)) + one for one in map(self.encode, events)]))
        return self.writer.transport.get_write_buffer_size() <= ROOM

    async def send(self, *events: Event) -> None:
        """Write events, and wait until there is room for more."""
        self.write(*events)
        await self.writer.drain()

    def close(self) -> None:
        with suppress(ConnectionError, RuntimeError):
            self.writer.close()


def introduction(name: str, kind: str, now: int) -> Event:
    """The first event of a connection: who it is."""
    return Event(fresh(f"{name}/{now}", 0), CONNECTION, now, "system", body=body(name=name, kind=kind))


def microseconds() -> int:
    """Now."""
    return time.time_ns() // 1000


class BrokerServer:
    """A broker that listens on the loopback address, at a port of the system's choice."""

    def __init__(
        self,
        state: State,
        *,
        addresses: MutableMapping[str, int] | None = None,
        launcher: Callable[[str, Any], Behaviour] | None = None,
        limit: int = MAX_BYTES,
        keeping: bool = True,
        registry: Path | None = None,
        on_log: Callable[[int, str], None] = lambda t, text: None,
    ) -> None:
        """`keeping`: whether inputs and messages are kept, as a recording and a table; under load they are many.
        `registry`: a file that the registry is kept in, for the next start."""
        self.state, self.first, self.limit, self._keeping = state, state, limit, keeping
        self.addresses = addresses if addresses is not None else {}
        self._registry, self._on_log = registry, on_log
        self.recording: list[Recorded] = []
        self.log: list[tuple[int, str]] = []
        self._messages: list[Message] = []
        self._connections: dict[str, Frames] = {}
        self._outgoing: dict[str, list[Event | None]] = {}
        self._calling: set[str] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._launcher, self._launched = launcher, dict[str, ServiceClient]()
        self._timer: asyncio.TimerHandle | None = None
        self._server: asyncio.Server | None = None
        self._now = 0

    @property
    def messages(self) -> pd.DataFrame:
        """The messages that this broker sent and received, as the table."""
        return table(self._messages)

    async def __aenter__(self) -> BrokerServer:
        self._server = await asyncio.start_server(self._accept, LOOPBACK, 0, limit=2**17)
        self.addresses[self.state.name] = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._timer:
            self._timer.cancel()
        for service in self._launched.values():
            await service.close()
        for frames in self._connections.values():
            frames.close()
        if self._server:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- inputs and effects ------------------------------------------------------------------------------

    def input(self, input: Input) -> None:
        """Give the broker an input, and carry out its effects."""
        self._now = max(self._now, microseconds())
        before = self.state
        self.state, effects = step(before, input, self._now)
        if self._keeping:
            self.recording.append(Recorded(self._now, self.state.name, input, effects))
        for effect in effects:
            match effect:
                case Send(name, event):
                    if self._keeping:
                        self._messages.append(Message(self._now, self.state.name, name, event))
                    self._put(name, event)
                case Open(name):
                    self._task(self._open(name))
                case Close(name):
                    self._put(name, None)
                case Launch(name, auxiliary):
                    self._task(self._launch(name, auxiliary))
                case Log(text):
                    self._logs(text)
                case Ended():
                    pass
        while self.state.in_queue:
            self.input(Filter())
        if not same_deadline(before, self.state):
            self._set_timer()
            if self._registry:
                registries.save(self.state, self._registry)

    async def quiet(self) -> None:
        """Wait until what was to be sent is written, and the connections that were to be closed are."""
        while self._outgoing or self._connections:
            await asyncio.sleep(0.01)

    def _logs(self, text: str) -> None:
        self.log.append((self._now, text))
        self._on_log(self._now, text)

    def _set_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
        due = deadline(self.state)
        if due is not None:
            self._timer = asyncio.get_running_loop().call_later(max(0, due - microseconds()) / 1e6, self._tick)

    def _tick(self) -> None:
        due = deadline(self.state)
        if due is not None and due <= microseconds():
            self.input(Tick())
        else:
            self._set_timer()

    def _task(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- connections -------------------------------------------------------------------------------------

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = Frames(reader, writer, self.limit, _forwarded)
        try:
            first = decode(await frames.receive(), self.limit)
            name, kind = field(first.body, "name"), field(first.body, "kind")
            if first.type != CONNECTION or kind not in (SERVICE, BROKER):
                raise DataError(f"a connection that begins with {first.type} of {name} ({kind})")
            if name in self._connections or name in self._calling:
                if not (kind == BROKER and name in self._calling and name < self.state.name):
                    raise DataError(f"{name} is connected already")
                self._hang_up(name)
        except (EOFError, DataError) as error:
            self._logs(f"{self.state.name} refuses a connection: {error}")
            return frames.close()
        self._connections[name] = frames
        # A task that serves a connection ends with the server; start_server's own would outlive it.
        return self._task(self._serve(name, kind, frames))

    async def _open(self, name: str) -> None:
        if name in self._calling or name in self._connections:
            return None
        self._calling.add(name)
        try:
            if name not in self.addresses:
                raise ConnectionError("nobody knows its port")
            reader, writer = await asyncio.open_connection(LOOPBACK, self.addresses[name], limit=2**17)
            frames = Frames(reader, writer, self.limit, _forwarded)
            await frames.send(introduction(self.state.name, BROKER, microseconds()))
            if name in self._connections:  # it called too, and its call counts
                return frames.close()
            return await self._serve(name, BROKER, frames)
        except OSError as error:
            return self._logs(f"{self.state.name} cannot reach {name}: {error}")
        finally:
            self._calling.discard(name)

    def _hang_up(self, name: str) -> None:
        """End a connection that was opened here: the other one's call counts."""
        frames = self._connections.pop(name, None)
        if frames is not None:
            self._outgoing.pop(name, None)
            self.input(Disconnected(name))
            frames.close()

    async def _serve(self, name: str, kind: str, frames: Frames) -> None:
        self._connections[name] = frames
        self.input(Connected(name, kind))
        try:
            while True:
                data = await frames.receive()
                try:
                    event = decode(data, self.limit)
                except EnvelopeError as error:
                    self._logs(f"{self.state.name} refuses a message of {name}: {error}")
                    continue
                if self._keeping:
                    self._messages.append(Message(microseconds(), name, self.state.name, event))
                self.input(Received(name, event))
        except EOFError as error:
            if str(error):
                self._logs(f"{self.state.name} ends the connection of {name}: {error}")
        finally:
            if self._connections.get(name) is frames:
                del self._connections[name]
                self._outgoing.pop(name, None)
                self.input(Disconnected(name))
            frames.close()

    def _put(self, name: str, event: Event | None) -> None:
        """Have an event written, or after None the connection closed, with all else that is to be said now."""
        if name in self._connections:
            if not self._outgoing:
                asyncio.get_running_loop().call_soon(self._write)
            self._outgoing.setdefault(name, []).append(event)

    def _write(self) -> None:
        outgoing, self._outgoing = self._outgoing, {}
        for name, put in outgoing.items():
            frames = self._connections.get(name)
            if frames is None:
                continue
            events = [event for event in put if event is not None]
            if not frames.write(*events):
                self._task(self._wait(name, len(events), frames))
            elif events:
                self.input(Sent(name, len(events)))
            if None in put:
                frames.close()

    async def _wait(self, name: str, number: int, frames: Frames) -> None:
        """Tell the step of events to a slow receiver when it has taken them."""
        with suppress(ConnectionError, RuntimeError):  # the reader notices too, and tells the step
            await frames.writer.drain()
            if self._connections.get(name) is frames:
                self.input(Sent(name, number))

    async def _launch(self, name: str, auxiliary: Any) -> None:
        if self._launcher is None:
            return self._logs(f"{self.state.name} has no launcher for {name}")
        service = ServiceClient(Host(name, self._launcher(name, auxiliary)), register=False)
        self._launched[name] = service
        return await service.connect(self.addresses[self.state.name])


class ServiceClient:
    """A service that is connected with a broker."""

    def __init__(
        self, host: Host, *, register: bool = True, on_event: Callable[[Event], None] = lambda event: None
    ) -> None:
        # Ids made from a name would tell it to whoever tries names.
        self.host, self.register = replace(host, seed=host.seed or token_hex(16)), register
        self._on_event = on_event
        self._frames: Frames | None = None
        self._task: asyncio.Task[None] | None = None
        self._sending: asyncio.Queue[Event] = asyncio.Queue()
        self._sender: asyncio.Task[None] | None = None
        self.changed = asyncio.Event()

    async def connect(self, port: int, *, again: bool = False) -> None:
        """Connect, introduce itself, and register; `again` as what it is now, without beginning anew."""
        reader, writer = await asyncio.open_connection(LOOPBACK, port, limit=2**17)
        self._frames = Frames(reader, writer)
        await self._frames.send(introduction(self.host.name, SERVICE, microseconds()))
        self._sender = asyncio.ensure_future(self._send(self._frames))
        if self.register:
            begin = hosting.registered_again if again else hosting.register
            self._do(begin(self.host, microseconds()))
        else:
            self.host = replace(self.host, advertised=self.host.behaviour.description.advertisements)
        self._task = asyncio.ensure_future(self._listen(self._frames))

    async def stay(self, port: Callable[[], int | None]) -> None:
        """Connect, and again whenever the connection breaks, until the service ends.

        It registers each time: the broker may have lost what it knew, and to hear it twice changes nothing.
        """
        known = False
        while not self.host.ended:
            at = port()
            try:
                if at is None:
                    raise ConnectionError
                await self.connect(at, again=known)
            except ConnectionError:
                await asyncio.sleep(0.05)
                continue
            known = True
            assert self._task
            await self._task
            await self.close()

    def say(self, *acts: hosting.Act) -> None:
        """Have the service do something from outside."""
        self._do(hosting.do(self.host, acts, microseconds()))

    def send(self, event: Event) -> None:
        """Send an event as it is."""
        self._sending.put_nowait(event)

    async def until(self, enough: Callable[[Host], bool], timeout_s: float = 20.0) -> None:
        """Wait until the service has received what makes `enough` true."""
        async with asyncio.timeout(timeout_s):
            while not enough(self.host):
                self.changed.clear()
                await self.changed.wait()

    async def close(self) -> None:
        """End without taking leave."""
        for task in (self._task, self._sender):
            if task:
                task.cancel()
        await asyncio.gather(*(t for t in (self._task, self._sender) if t), return_exceptions=True)
        self._task = self._sender = None
        self._sending = asyncio.Queue()
        if self._frames:
            self._frames.close()

    async def _listen(self, frames: Frames) -> None:
        with suppress(EOFError):
            while not self.host.ended:
                event = decode(await frames.receive())
                if event.category != "system":
                    self._on_event(event)
                self._do(hosting.happen(self.host, event, microseconds()))
        frames.close()

    async def _send(self, frames: Frames) -> None:
        with suppress(ConnectionError, RuntimeError):
            while True:
                await frames.send(await self._sending.get())

    def _do(self, hosted: Hosted) -> None:
        self.host = hosted.host
        if self._sender is not None:  # what is published to nobody is lost
            for event in hosted.sends:
                self._sending.put_nowait(event)
        for t in hosted.wakes:
            delay_s = max(0, t - microseconds()) / 1e6
            asyncio.get_running_loop().call_later(delay_s, self._wake)
        self.changed.set()

    def _wake(self) -> None:
        self._do(hosting.happen(self.host, hosting.WAKE, microseconds()))
