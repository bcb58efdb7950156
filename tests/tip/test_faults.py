"""What is guaranteed where something breaks: the table of `workbench.tip.tcp`, row by row (TIP 3, 4.2 and 6)."""

from __future__ import annotations

import asyncio
import re
import signal
import struct
from pathlib import Path

import pytest

from tests.tip.test_tcp import GUIDE, got, run, service, serving, until
from tests.tip.worlds import LOCATION, publishing, subscribing
from workbench.errors import DataError
from workbench.tip import registry
from workbench.tip.bodies import body, field
from workbench.tip.broker import broker, step
from workbench.tip.envelope import encode
from workbench.tip.events import Event
from workbench.tip.host import Host, Publish
from workbench.tip.inputs import Shutdown, Start
from workbench.tip.recording import replayed
from workbench.tip.state import Limits
from workbench.tip.tcp import LOOPBACK, BrokerServer, Frames, ServiceClient, introduction
from workbench.tip.wrapper import Wrapper

DESCRIBED = publishing(LOCATION).description.body()


async def raw(server: BrokerServer, name: str) -> Frames:
    """A service whose bytes the test writes itself."""
    reader, writer = await asyncio.open_connection(LOOPBACK, server.addresses["b"])
    frames = Frames(reader, writer)
    await frames.send(introduction(name, "service", 0), Event(f"r-{name}", "Registration", 0, "system", body=DESCRIBED))
    await until(lambda: name in server.state.services)
    return frames


def frame(data: bytes) -> bytes:
    return struct.pack("!I", len(data)) + data


def test_a_service_that_dies_in_the_middle_of_a_message_has_published_nothing() -> None:
    async def test() -> None:
        async with serving("b") as brokers:
            server = brokers["b"]
            screen = await service("map", server, subscribing("Location"))
            gps = await raw(server, "gps")
            whole, half = (encode(Event(f"e{n}", "Location", 0, "location", body=body(n=n))) for n in (1, 2))
            gps.writer.write(frame(whole) + frame(half)[:-20])
            await gps.writer.drain()
            gps.writer.transport.abort()
            await until(lambda: "gps" not in server.state.connected)
            await screen.until(got("Location"))
            assert [field(e.body, "n") for e in screen.host.received if e.type == "Location"] == ["1"]
            assert "gps" in server.state.services, "a short break changes nothing"
            await screen.close()

    run(test)


def test_what_a_service_published_before_it_died_reaches_all_its_subscribers() -> None:
    async def test() -> None:
        async with serving("b") as brokers:
            server = brokers["b"]
            screens = [await service(f"map{n}", server, subscribing("Location")) for n in range(3)]
            gps = await raw(server, "gps")
            events = [Event(f"e{n}", "Location", 0, "location", body=body(n=n)) for n in range(20)]
            gps.writer.write(b"".join(frame(encode(event)) for event in events))
            await gps.writer.drain()
            gps.close()
            for screen in screens:
                await screen.until(got("Location", 20))
                assert [e.id for e in screen.host.received if e.type == "Location"] == [e.id for e in events]
                await screen.close()

    run(test)


def test_a_subscriber_that_is_gone_too_long_is_deregistered_and_nothing_is_kept_for_it() -> None:
    async def test() -> None:
        async with serving("b", limits=Limits(grace=100_000)) as brokers:
            server = brokers["b"]
            gps = await service("gps", server, publishing(LOCATION))
            screen = await service("map", server, subscribing("Location"))
            other = await service("other", server, subscribing("Location"))
            await other.until(got("Subscribed"))
            await screen.until(got("Subscribed"))
            await screen.close()
            await until(lambda: "map" not in server.state.services)
            gps.say(Publish("Location"))
            await other.until(got("Location"))
            assert "map" not in server.state.outboxes
            assert any("deregisters map, gone since" in text for _, text in server.log)
            for one in (gps, other):
                await one.close()

    run(test)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"noise", "refuses a message of enemy: .*not well-formed"),
        (b'<!DOCTYPE x [<!ENTITY a "b"><!ENTITY c "&a;&a;&a;">]><x>&c;</x>', "refuses a message of enemy: .*DOCTYPE"),
        (encode(Event("e1", "Location", 0, "location")), "refuses Location e1 of enemy: .*published before"),
        (encode(Event("e9", "News", 0)), "refuses News e9 of enemy: .*did not advertise"),
        (b"x" * 5_000, "ends the connection of enemy: a frame of 5000 bytes; at most 4096 are read"),
    ],
    ids=["malformed", "hostile", "replayed", "not advertised", "oversized"],
)
def test_a_bad_message_has_one_line_in_the_log_and_disturbs_nobody_else(data: bytes, line: str) -> None:
    async def test() -> None:
        server = BrokerServer(broker("b"), limit=4_096)
        async with server:
            server.input(Start())
            gps = await service("gps", server, publishing(LOCATION))
            screen = await service("map", server, subscribing("Location"))
            enemy = await raw(server, "enemy")
            enemy.writer.write(frame(encode(Event("e1", "Location", 0, "location"))))
            await screen.until(got("Location"))
            before, seen = server.state.services, len(server.log)
            enemy.writer.write(frame(data))
            await until(lambda: len(server.log) > seen)
            lines = [text for _, text in server.log[seen:]]
            assert len(lines) == 1 and re.search(line, lines[0]), lines
            gps.say(Publish("Location", body(n=1)))
            await screen.until(got("Location", 2))
            assert sum(e.type == "Location" for e in screen.host.received) == 2
            alike = {n: (s.subscriptions, s.active) for n, s in server.state.services.items()}
            assert alike == {n: (s.subscriptions, s.active) for n, s in before.items()}
            if "ends the connection" not in line:
                enemy.writer.write(frame(encode(Event("e2", "Location", 0, "location"))))
                await screen.until(got("Location", 3))
            enemy.close()
            for one in (gps, screen):
                await one.close()
        assert replayed({"b": server.first}, server.recording) == server.recording

    run(test)


def test_a_broker_that_died_starts_with_its_registry_and_its_services_are_subscribed_as_they_were(
    tmp_path: Path,
) -> None:
    file = tmp_path / "b.registry"

    async def test() -> None:
        first = BrokerServer(broker("b", seed="secret"), registry=file)
        await first.__aenter__()
        first.input(Start())
        addresses = first.addresses
        guide = ServiceClient(Host("guide", GUIDE))
        screen = ServiceClient(Host("map", subscribing("Information")))
        staying = [asyncio.ensure_future(one.stay(lambda: addresses.get("b"))) for one in (guide, screen)]
        await until(lambda: {"guide", "map"} <= set(first.state.services))
        label = first.state.label("guide")
        await first.__aexit__()  # no Shutdown: nobody was told
        second = BrokerServer(registry.read(broker("b"), file.read_text()), addresses=addresses, registry=file)
        async with second:
            assert set(second.state.services) == {"guide", "map"} and second.state.label("guide") == label
            assert second.state.made > first.state.made, "no id is made twice"
            second.input(Start())
            await until(lambda: {"guide", "map"} <= set(second.state.connected))
            gps = ServiceClient(Host("gps", publishing(LOCATION)))
            await gps.connect(addresses["b"])
            gps.say(Publish("Location"))
            await screen.until(got("Information"))
            assert sum(e.type == "Information" for e in screen.host.received) == 1
            second.input(Shutdown(keep=True))
            await asyncio.gather(*staying)
            await gps.close()

    run(test)


def test_a_registry_that_is_not_one_is_refused(tmp_path: Path) -> None:
    state = step(broker("b"), Start(), 0).state
    for text in ("", "{}", "nonsense", registry.written(broker("other"))):
        with pytest.raises(DataError, match="registry"):
            registry.read(state, text)


def test_wrappers_start_and_stop_processes_and_mend_those_that_were_killed(tmp_path: Path) -> None:
    """Figures 8 to 10 with a process for each broker and service, of which three are killed.

    The guide reads coordinates, and there are tags only: what comes through went by an auxiliary service.
    """
    behaviours = "tests.tip.processes"
    server = Wrapper("server", {"guide": f"{behaviours}:GUIDE"}, tmp_path, auxiliaries=f"{behaviours}:READERS")
    client = Wrapper(
        "client", {"ticker": f"{behaviours}:TICKER", "display": f"{behaviours}:DISPLAY"}, tmp_path, connect=["server"]
    )

    def got(type: str = "Information") -> list[int]:
        return [int(field(e["body"], "n", "0")) for e in client.received("display") if e["type"] == type]

    def more() -> None:
        """Wait until information about two more positions has come."""
        enough = len(got()) + 2
        client.wait(lambda: len(got()) >= enough, "more information")

    def kill(wrapper: Wrapper, name: str) -> None:
        wrapper.processes[name].send_signal(signal.SIGKILL)
        wrapper.processes[name].wait()

    with server, client:
        more()
        assert not got("Tap")
        client.show("display")
        client.wait(lambda: bool(got("Tap")), "a tap")
        kill(server, "guide")
        kill(client, "client")
        assert server.mend() == ["guide"] and client.mend() == ["client"]
        more()
        kill(server, "server")
        assert server.mend() == ["server"] and client.mend() == []
        more()
        numbers = got()
        assert len(set(numbers)) == len(numbers) and numbers == sorted(numbers), "once, and in order"
        client.stop(keep=True)
    assert client.registered() == {"ticker", "display"} and server.registered() == set()
    assert any("client ended; 2 services kept" in line for line in client.log)
    assert any("server ended; 0 services kept" in line for line in server.log)
    assert sum("server starts auxiliary/reader" in line for line in server.log) >= 2, "before it was killed, and after"
