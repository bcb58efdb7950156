"""The same steps over TCP on the loopback address; a recording replayed in simulation; faults (TIP 3, 8)."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.tip.worlds import INFORMATION, LOCATION, Answering, publishing, subscribing
from workbench.tip.bodies import body, field
from workbench.tip.broker import broker
from workbench.tip.descriptions import ServiceDescription
from workbench.tip.events import Event
from workbench.tip.host import Advertise, Behaviour, Host, Leave, Publish
from workbench.tip.inputs import Connect, Disconnect, Shutdown, Start
from workbench.tip.maps import MapClient
from workbench.tip.messages import MESSAGES, SCHEMA
from workbench.tip.observer import Auxiliary
from workbench.tip.recording import read, replayed, written
from workbench.tip.services import (
    GPS,
    RFID,
    Display,
    Information,
    ItemService,
    LocationService,
    Sight,
    TagReader,
    TagService,
)
from workbench.tip.simulated import Simulation
from workbench.tip.state import Limits, Outbox
from workbench.tip.tcp import LOOPBACK, BrokerServer, Frames, ServiceClient, introduction

GUIDE = Answering(
    ServiceDescription("informative", advertisements=(INFORMATION,), subscriptions=("Location",)),
    "Location", "Information",
)  # fmt: skip


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(30):
            await test()

    asyncio.run(limited())


@asynccontextmanager
async def serving(*names: str, limits: Limits | None = None) -> AsyncIterator[dict[str, BrokerServer]]:
    addresses: dict[str, int] = {}
    made = {name: BrokerServer(broker(name, limits=limits), addresses=addresses) for name in names}
    for server in made.values():
        await server.__aenter__()
        server.input(Start())
    try:
        yield made
    finally:
        for server in made.values():
            await server.__aexit__()


async def service(name: str, server: BrokerServer, behaviour: Behaviour) -> ServiceClient:
    client = ServiceClient(Host(name, behaviour))
    await client.connect(server.addresses[server.state.name])
    return client


def got(type: str, number: int = 1) -> Callable[[Host], bool]:
    return lambda host: sum(event.type == type for event in host.received) >= number


async def until(truth: Callable[[], bool]) -> None:
    while not truth():
        await asyncio.sleep(0.005)


def wanted(server: BrokerServer, other: str) -> int:
    """How many subscriptions another broker has told this one."""
    return len(server.state.neighbours[other].wants) if other in server.state.neighbours else 0


def assert_same_kind(written: pd.DataFrame, folder: Path) -> None:
    """Both drivers write the declared table, and it survives a file."""
    simulated = Simulation([broker("b")]).start("b").join("gps", "b", publishing(LOCATION)).messages
    assert written.dtypes.to_dict() == simulated.dtypes.to_dict()
    written.to_parquet(folder / "messages.parquet", index=False)
    assert pq.read_schema(folder / "messages.parquet").remove_metadata() == SCHEMA
    assert pd.read_parquet(folder / "messages.parquet").equals(written)


def test_client_and_server_over_tcp_and_the_recording_replayed_has_the_same_effects(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving("client", "server") as brokers:
            gps = await service("gps", brokers["client"], publishing(LOCATION))
            display = await service("display", brokers["client"], subscribing("Information"))
            guide = await service("guide", brokers["server"], GUIDE)
            brokers["client"].input(Connect("server"))
            for one, other in (("client", "server"), ("server", "client")):
                await until(lambda one=one, other=other: wanted(brokers[one], other) > 0)  # type: ignore[misc]
            for n in range(5):
                gps.say(Publish("Location", body(x=n)))
            await display.until(got("Information", 5))
            assert [e.body for e in display.host.received if e.type == "Information"] == [body(x=n) for n in range(5)]
            assert list(brokers["client"].messages.columns) == list(MESSAGES)
            assert (brokers["client"].messages["type"] == "Information").sum() == 10
            assert_same_kind(brokers["client"].messages, tmp_path)
            brokers["client"].input(Shutdown())
            await until(lambda: not brokers["server"].state.neighbours)
            for one in (gps, display, guide):
                await one.close()
        for name, server in brokers.items():
            assert replayed({name: server.first}, read(written(server.recording))) == server.recording
            assert len(server.recording) > 20

    run(test)


def test_a_connection_that_does_not_say_who_it_is_is_refused() -> None:
    async def test() -> None:
        async with serving("b") as brokers:
            for data in (b"GET / HTTP/1.0\r\n\r\n", struct.pack("!I", 5) + b"hello"):
                reader, writer = await asyncio.open_connection(LOOPBACK, brokers["b"].addresses["b"])
                writer.write(data)
                await writer.drain()
                assert await reader.read() == b""
                writer.close()
            assert sum("refuses a connection" in text for _, text in brokers["b"].log) == 2

    run(test)


def test_a_receiver_that_does_not_read_delays_nobody() -> None:
    async def test() -> None:
        async with serving("b", limits=Limits(outbox=20, window=4)) as brokers:
            server = brokers["b"]
            gps = await service("gps", server, publishing(LOCATION))
            fast = await service("fast", server, subscribing("Location"))
            reader, writer = await asyncio.open_connection(LOOPBACK, server.addresses["b"], limit=1024)
            slow = Frames(reader, writer)
            described = subscribing("Location").description.body()
            await slow.send(introduction("slow", "service", 0))
            await slow.send(Event("r", "Registration", 0, "system", body=described))
            await until(lambda: "slow" in server.state.services and "fast" in server.state.services)
            for n in range(200):
                gps.say(Publish("Location", body(x=n, padding="a" * 100_000)))
                await fast.until(got("Location", n + 1))
            assert server.state.outboxes["slow"].dropped > 0
            assert server.state.outboxes.get("fast", Outbox()).dropped == 0
            writer.transport.abort()
            for one in (gps, fast):
                await one.close()

    run(test)


def test_a_service_that_dies_is_deregistered_and_one_that_returns_goes_on() -> None:
    async def test() -> None:
        async with serving("b", limits=Limits(grace=1_500_000)) as brokers:
            server = brokers["b"]
            gps = await service("gps", server, publishing(LOCATION))
            screen = await service("map", server, subscribing("Location"))
            await screen.until(got("Subscribed"))
            await until(lambda: "gps" in server.state.services)
            await screen.close()
            await until(lambda: "map" not in server.state.connected)
            gps.say(Publish("Location"))
            await until(lambda: bool(server.state.outboxes.get("map", Outbox()).waiting))
            screen = ServiceClient(Host("map", subscribing("Location")), register=False)
            await screen.connect(server.addresses["b"])
            await screen.until(got("Location"))
            await gps.close()
            await until(lambda: "gps" not in server.state.services)
            assert "map" in server.state.services
            await screen.close()
        assert replayed({"b": server.first}, server.recording) == server.recording

    run(test)


@pytest.mark.parametrize("calls", [("ab", "ba"), ("ba", "ab"), ("ab", "ab"), ("ab", "ba", "ab", "ba")], ids=" ".join)
def test_brokers_that_call_each_other_at_one_time_or_again_have_one_connection(calls: tuple[str, ...]) -> None:
    async def test() -> None:
        async with serving("a", "b") as brokers:
            gps = await service("gps", brokers["a"], publishing(LOCATION))
            screen = await service("screen", brokers["b"], subscribing("Location"))
            for one, other in calls:
                brokers[one].input(Connect(other))
            await until(lambda: wanted(brokers["a"], "b") > 0)
            for one, other in calls:
                brokers[one].input(Connect(other))
            gps.say(Publish("Location"))
            await screen.until(got("Location"))
            assert all(b.state.connected.keys() >= {o} for b, o in zip(brokers.values(), "ba"))
            assert sum(event.type == "Location" for event in screen.host.received) == 1
            for one in (gps, screen):
                await one.close()

    run(test)


def test_a_broker_that_cannot_be_reached_is_one_line_in_the_log() -> None:
    async def test() -> None:
        async with serving("b") as brokers:
            brokers["b"].addresses["gone"] = 1
            for name in ("gone", "nobody"):
                brokers["b"].input(Connect(name))
            await until(lambda: len(brokers["b"].log) >= 3)
            lines = {text.partition(":")[0] for _, text in brokers["b"].log[1:]}
            assert lines == {"b cannot reach gone", "b cannot reach nobody"}

    run(test)


def test_an_auxiliary_service_is_started_and_stopped_over_tcp_as_the_museum_is_entered_and_left() -> None:
    """Sections 5 and 7 over real connections: GPS falls, tags are translated, services join, and all of it reverses."""
    reader = Auxiliary("reader", "Location", takes=RFID, gives=GPS, quality=90)
    exhibit = Sight("vase", "Exhibit", 5, 0, 10, "art", "blue")
    outdoors = LocationService(()).advertisement(95)

    async def test() -> None:
        addresses: dict[str, int] = {}
        client = BrokerServer(
            broker("client", auxiliaries=(reader,)), addresses=addresses,
            launcher=lambda name, auxiliary: TagReader({"door": (5.0, 0.0)}),
        )  # fmt: skip
        async with client, BrokerServer(broker("museum"), addresses=addresses) as museum:
            for server in (client, museum):
                server.input(Start())
            gps = await service("gps", client, publishing(outdoors))
            screen = await service("map", client, MapClient())
            display = await service("display", client, Display(("Exhibit",)))
            guide = await service("guide", museum, Information((exhibit,), ("art",)))
            items = await service("items", museum, ItemService("Exhibit", {"vase": "blue"}))
            await screen.until(got("Subscribed"))

            def positions() -> list[tuple[int, str]]:
                here = [e for e in screen.host.received if (e.type, e.category) == ("Location", "location")]
                return [(event.quality, field(event.body, "x")) for event in here]

            gps.say(Publish("Location", body(x=-90.0, y=0.0)))
            await screen.until(lambda host: positions() == [(95, "-90.0")])
            # it is entered
            tags = await service("tags", client, TagService(()))
            client.input(Connect("museum"))
            gps.say(Advertise(replace(outdoors, quality=30)))
            await until(lambda: "auxiliary/reader" in client.state.connected)
            await guide.until(got("Subscribed"))
            tags.say(Publish("Location", body(tag="door")))
            await screen.until(lambda host: positions()[1:] == [(90, "5.0")])
            await display.until(got("Exhibit"))
            assert [id for _, id in display.host.memory.shown] == ["vase"]
            # it is left
            gps.say(Advertise(outdoors))
            await until(lambda: "auxiliary/reader" not in client.state.services)
            tags.say(Leave())
            client.input(Disconnect("museum"))
            await until(lambda: not museum.state.neighbours and "tags" not in client.state.services)
            await guide.until(lambda host: [e.type for e in host.received][-1] == "Stalled")
            gps.say(Publish("Location", body(x=90.0, y=0.0)))
            await screen.until(lambda host: positions()[2:] == [(95, "90.0")])
            await until(lambda: "auxiliary/reader" not in client.state.connected)
            for one in (gps, screen, display, guide, items, tags):
                await one.close()
        for server in (client, museum):
            assert replayed({server.state.name: server.first}, read(written(server.recording))) == server.recording

    run(test)
