"""TIP under load: many services at one broker over TCP, beside a bare echo of the same bytes.

    python -m workbench.bench.tip_load                   1,000 services, 100,000 events of 1 KB, ten subscribers each
    python -m workbench.bench.tip_load --events 10000    a shorter one

Services are connections to one broker on the loopback address, which has a process of its own. They publish in turn,
each the type of the next group, to which ten services are subscribed; at most `under_way` events are on their way.
Checked for every delivery: it comes exactly once, and in the order of its publisher. Latency is from a publisher's
writing an event to a subscriber's having its bytes. The echo is a bare asyncio server that copies the same frames to
the same ten connections, without reading them.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import re
import struct
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from workbench.errors import WorkbenchError
from workbench.tip.bodies import body
from workbench.tip.broker import broker
from workbench.tip.descriptions import ServiceDescription
from workbench.tip.envelope import encode
from workbench.tip.events import Event, fresh
from workbench.tip.inputs import Start
from workbench.tip.rules import Advertisement
from workbench.tip.state import Limits
from workbench.tip.tcp import LOOPBACK, BrokerServer, introduction

LENGTH = struct.Struct("!I")
_ID = re.compile(rb"<m:id>([0-9a-f]+)</m:id>")


class Figures(NamedTuple):
    """What a run gave: deliveries, those that came twice, out of order or never, and latencies in milliseconds."""

    events: int
    deliveries: int
    twice: int
    disordered: int
    missing: int
    seconds: float
    median_ms: float
    p99_ms: float


class Load(NamedTuple):
    """So many services, events, subscribers of an event, and bytes of an event."""

    services: int = 1_000
    events: int = 100_000
    subscribers: int = 10
    size: int = 1_000
    under_way: int = 50

    @property
    def types(self) -> int:
        return self.services // self.subscribers

    def receivers(self, publisher: int) -> range:
        """The services that are subscribed to what a service publishes: those of the next group."""
        return range((publisher + 1) % self.types, self.services, self.types)

    def event(self, number: int) -> bytes:
        """The frame of an event: exactly as many bytes as asked for, if its envelope allows."""
        publisher = number % self.services
        made = Event(fresh("load", number), f"T{(publisher + 1) % self.types}", number, body=body(n=number, text="x"))
        data = encode(made)
        return data.replace(b">x<", b">" + b"x" * max(1, self.size - len(data) + 1) + b"<")


def measure(load: Load, *, echo: bool = False) -> Figures:
    """Run a load against a broker, or against a bare echo, in a process of its own."""
    if load.services % load.subscribers or load.types < 2:
        raise WorkbenchError(f"{load.services} services, {load.subscribers} subscribers; expected two groups or more")
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    server = context.Process(target=_serve, args=(there, load, echo), daemon=True)
    server.start()
    try:
        if not here.poll(60):
            raise WorkbenchError("the broker did not start within a minute")
        return asyncio.run(_drive(here.recv(), load, echo))
    finally:
        here.close()
        server.join(5)
        if server.is_alive():
            server.terminate()
            server.join()


# -- the servers -----------------------------------------------------------------------------------------------


def _serve(pipe: Any, load: Load, echo: bool) -> None:
    asyncio.run((_echo if echo else _broker)(pipe, load))


async def _broker(pipe: Any, load: Load) -> None:
    limits = Limits(in_queue=100_000, outbox=100_000, window=1_000, recent=2 * load.events + 1_000)
    async with BrokerServer(broker("b", limits=limits), keeping=False) as server:
        server.input(Start())
        pipe.send(server.addresses["b"])
        await asyncio.to_thread(pipe.poll, None)


async def _echo(pipe: Any, load: Load) -> None:
    writers: dict[int, asyncio.StreamWriter] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            (own,) = LENGTH.unpack(await reader.readexactly(4))
            writers[own] = writer
            while True:
                head = await reader.readexactly(4)
                data = await reader.readexactly(LENGTH.unpack(head)[0])
                for other in load.receivers(own):
                    writers[other].write(head + data)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, LOOPBACK, 0, limit=2**17)
    pipe.send(server.sockets[0].getsockname()[1])
    await asyncio.to_thread(pipe.poll, None)


# -- the services ----------------------------------------------------------------------------------------------


class _Tally:
    """Every delivery, counted as it comes."""

    def __init__(self, load: Load) -> None:
        self.numbers = {fresh("load", n).encode(): n for n in range(load.events)}
        self.sent = np.zeros(load.events)
        self.times = np.zeros(load.events, np.int16)
        self.latencies: list[float] = []
        self.last: dict[tuple[int, int], int] = {}
        self.twice = self.disordered = 0
        self.room = asyncio.Semaphore(load.under_way)
        self.load = load

    def take(self, receiver: int, data: bytes) -> None:
        found = _ID.search(data, 0, 400)
        number = self.numbers.get(found[1]) if found else None
        if number is None:
            return
        self.latencies.append(time.perf_counter() - self.sent[number])
        publisher = number % self.load.services
        before = self.last.get((publisher, receiver), -1)
        self.twice += number == before
        self.disordered += number < before
        self.last[publisher, receiver] = number
        self.times[number] += 1
        if self.times[number] == self.load.subscribers:
            self.room.release()


async def _drive(port: int, load: Load, echo: bool) -> Figures:
    tally = _Tally(load)
    ready: list[int] = []
    streams = [await asyncio.open_connection(LOOPBACK, port, limit=2**17) for _ in range(load.services)]
    readers = []
    for service, (reader, writer) in enumerate(streams):
        writer.write(LENGTH.pack(service) if echo else _registration(load, service))
        readers.append(asyncio.ensure_future(_listen(reader, service, tally, ready.append)))
        if not echo:
            while len(ready) <= service:
                await asyncio.sleep(0)
    await asyncio.sleep(0.2)
    begin = time.perf_counter()
    for number in range(load.events):
        data = load.event(number)
        await asyncio.wait_for(tally.room.acquire(), 60)
        tally.sent[number] = time.perf_counter()
        streams[number % load.services][1].write(LENGTH.pack(len(data)) + data)
    for _ in range(load.under_way):
        await asyncio.wait_for(tally.room.acquire(), 60)
    seconds = time.perf_counter() - begin
    for task in readers:
        task.cancel()
    for _, writer in streams:
        writer.close()
    wanted = load.events * load.subscribers
    median, p99 = np.percentile(np.array(tally.latencies) * 1e3, [50, 99])
    came = int(tally.times.sum())
    return Figures(load.events, came, tally.twice, tally.disordered, wanted - came, seconds, median, p99)


def _registration(load: Load, service: int) -> bytes:
    said = ServiceDescription(
        "load",
        advertisements=(Advertisement(f"T{(service + 1) % load.types}"),),
        subscriptions=(f"T{service % load.types}",),
    )
    first = introduction(f"s{service}", "service", service)
    second = Event(fresh(f"register {service}", 0), "Registration", 0, "system", body=said.body())
    return b"".join(LENGTH.pack(len(data)) + data for data in map(encode, (first, second)))


async def _listen(reader: asyncio.StreamReader, service: int, tally: _Tally, ready: Callable[[int], None]) -> None:
    try:
        while True:
            (length,) = LENGTH.unpack(await reader.readexactly(4))
            data = await reader.readexactly(length)
            if b">Subscribed<" in data:
                ready(service)
            else:
                tally.take(service, data)
    except (asyncio.IncompleteReadError, ConnectionError):
        return


def main() -> int:
    """Print both runs side by side."""
    parser = argparse.ArgumentParser(description="TIP under load, beside a bare echo of the same bytes")
    for name, value in Load()._asdict().items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=value)
    load = Load(**vars(parser.parse_args()))
    print(f"{load.services:,} services, {load.events:,} events of {load.size} bytes")
    names = ("deliveries", "twice", "disorder", "missing", "s", "per s", "median ms", "p99 ms")
    print(" " * 8 + "".join(f"{name:>{width}}" for name, width in zip(names, (12, 7, 9, 8, 8, 9, 11, 9))))
    wrong = 0
    for name, echo in (("broker", False), ("echo", True)):
        f = measure(load, echo=echo)
        wrong += f.twice + f.disordered + f.missing
        print(f"{name:8}{f.deliveries:12,}{f.twice:7}{f.disordered:9}{f.missing:8}{f.seconds:8.1f}"
              f"{f.deliveries / f.seconds:9,.0f}{f.median_ms:11.2f}{f.p99_ms:9.2f}", flush=True)  # fmt: skip
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
