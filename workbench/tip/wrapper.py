"""Wrapper processes: the TIP client and the TIP server (TIP 3, 3 and 4.2, Figures 8 to 10).

"Both sides use a wrapper process that is used to effectively start and stop all running processes, i.e., the broker and
services." Broker and services are processes of their own. The wrapper starts the broker, then the services, and when
they are registered has the broker connect to other brokers (Figure 8); it stops them in the order of Figure 9, or with
`keep` in that of Figure 10. A process that died is started again by `mend`: a broker with the registry it left; and a
broker that lost another one connects again. Auxiliary services are part of the broker's process, which starts and stops
them by itself.

Ports are files in a folder that both sides see. A process ends when its wrapper does, however that ends, because the
system then closes its standard input.

    python -m workbench.tip.wrapper broker NAME FOLDER [module:attribute]
    python -m workbench.tip.wrapper service NAME FOLDER BROKER module:attribute
"""

from __future__ import annotations

import asyncio
import importlib
import json
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError
from workbench.tip import registry
from workbench.tip.broker import broker
from workbench.tip.host import Behaviour, Host
from workbench.tip.inputs import Connect, Foreground, Shutdown, Start
from workbench.tip.observer import Auxiliary
from workbench.tip.state import Limits
from workbench.tip.tcp import BrokerServer, ServiceClient

PATIENCE_S = 60.0


class Ports(MutableMapping[str, int]):
    """The ports of brokers, each in a file of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __getitem__(self, name: str) -> int:
        try:
            return int(self._file(name).read_text())
        except (OSError, ValueError):
            raise KeyError(name) from None

    def __setitem__(self, name: str, port: int) -> None:
        new = self._file(f"{name}.new")
        new.write_text(str(port))
        new.replace(self._file(name))

    def __delitem__(self, name: str) -> None:
        self._file(name).unlink()

    def __iter__(self) -> Iterator[str]:
        return (file.stem for file in sorted(self.folder.glob("*.port")))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _file(self, name: str) -> Path:
        return self.folder / f"{name}.port"


class Wrapper:
    """A broker and its services as processes: the TIP client, or the TIP server."""

    def __init__(
        self,
        name: str,
        services: Mapping[str, str],
        folder: Path,
        connect: Iterable[str] = (),
        auxiliaries: str = "",
    ) -> None:
        """`services` are behaviours by name, as ``module:attribute``; `connect` are other brokers.

        `auxiliaries` are the behaviours of auxiliary services by `Auxiliary`, as ``module:attribute`` too.
        """
        self.name, self.services, self.folder, self.connect = name, dict(services), folder, tuple(connect)
        self.auxiliaries = auxiliaries
        self.processes: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> Wrapper:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> Wrapper:
        """Start the broker, then the services, then connect (Figure 8)."""
        self._start_broker()
        for name in self.services:
            self._start_service(name)
        self.wait(lambda: set(self.services) <= self.registered(), "services that register")
        self._say(*(f"connect {other}" for other in self.connect))
        return self

    def mend(self) -> list[str]:
        """Start again what died, and connect with brokers that did; who of one's own it was."""
        dead = [name for name, process in self.processes.items() if process.poll() is not None]
        if self.name in dead:
            self._start_broker()
        self._say(*(f"connect {other}" for other in self.connect))
        for name in dead:
            if name != self.name:
                self._start_service(name)
        return dead

    def show(self, service: str) -> None:
        """The user sees this service now: user input goes to it alone."""
        self._say(f"show {service}")

    def stop(self, keep: bool = False) -> None:
        """Un-register from other brokers, end the services, end the broker (Figure 9); `keep` the registry."""
        if self.name in self.processes and self.processes[self.name].poll() is None:
            self._say("keep" if keep else "shutdown")
        for name in sorted(self.processes, key=lambda name: name == self.name):
            process = self.processes[name]
            try:
                process.communicate(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
        self.processes.clear()

    def registered(self) -> set[str]:
        """The services that the broker's registry names."""
        try:
            lines = (self.folder / f"{self.name}.registry").read_text(encoding="utf-8").splitlines()
        except OSError:
            return set()
        return {line["service"] for line in map(json.loads, lines[1:])}

    def received(self, service: str) -> list[dict[str, Any]]:
        """The service events that a service received, as it wrote them down."""
        try:
            lines = (self.folder / f"{service}.received").read_text(encoding="utf-8").splitlines()
        except OSError:
            return []
        return [json.loads(line) for line in lines]

    @property
    def log(self) -> list[str]:
        """What the broker has to say to a maintainer."""
        file = self.folder / f"{self.name}.log"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def wait(self, truth: Callable[[], bool], what: str) -> None:
        """Wait until something is true."""
        until = time.monotonic() + PATIENCE_S
        while not truth():
            if time.monotonic() > until:
                raise WorkbenchError(f"{self.name} waited {PATIENCE_S:g} s for {what}; its log ends in {self.log[-3:]}")
            time.sleep(0.02)

    def _start_broker(self) -> None:
        Ports(self.folder).pop(self.name, None)
        self._process(self.name, "broker", *([self.auxiliaries] if self.auxiliaries else []))
        self.wait(lambda: self.name in Ports(self.folder), f"the port of {self.name}")

    def _start_service(self, name: str) -> None:
        self._process(name, "service", self.name, self.services[name])

    def _process(self, name: str, kind: str, *more: str) -> None:
        command = [sys.executable, "-m", "workbench.tip.wrapper", kind, name, str(self.folder), *more]
        self.processes[name] = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)

    def _say(self, *lines: str) -> None:
        pipe = self.processes[self.name].stdin
        assert pipe is not None
        pipe.write("".join(f"{line}\n" for line in lines))
        pipe.flush()


# -- the processes ---------------------------------------------------------------------------------------------


async def _commands() -> asyncio.StreamReader:
    """Standard input as lines; its end is the end of the wrapper."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def _broker(name: str, folder: Path, known: Mapping[Auxiliary, Behaviour]) -> None:
    file = folder / f"{name}.registry"
    limits = Limits(grace=10_000_000)
    state = broker(name, seed=secrets.token_hex(16), limits=limits, auxiliaries=tuple(known))
    state = registry.read(state, file.read_text(encoding="utf-8")) if file.exists() else state
    commands = await _commands()
    with (folder / f"{name}.log").open("a", encoding="utf-8", buffering=1) as log:
        server = BrokerServer(
            state, addresses=Ports(folder), keeping=False, registry=file,
            launcher=lambda name, auxiliary: known[auxiliary],
            on_log=lambda t, text: print(t, text, file=log),
        )  # fmt: skip
        async with server:
            server.input(Start())
            while line := (await commands.readline()).decode().split():
                if line[0] == "connect":
                    server.input(Connect(line[1]))
                elif line[0] == "show":
                    server.input(Foreground(line[1]))
                else:
                    server.input(Shutdown(keep=line[0] == "keep"))
                    return await server.quiet()
            # The wrapper is gone: what is known is kept for the next one.
            server.input(Shutdown(keep=True))
            return await server.quiet()


async def _service(name: str, folder: Path, at: str, behaviour: Behaviour) -> None:
    commands, ports = await _commands(), Ports(folder)
    with (folder / f"{name}.received").open("a", encoding="utf-8", buffering=1) as out:
        client = ServiceClient(
            Host(name, behaviour),
            on_event=lambda event: print(json.dumps({"type": event.type, "body": event.body}), file=out),
        )
        running = asyncio.ensure_future(client.stay(lambda: ports.get(at)))
        await asyncio.wait([running, asyncio.ensure_future(commands.read())], return_when=asyncio.FIRST_COMPLETED)
        running.cancel()
        await client.close()


def _named(path: str) -> Any:
    """What stands at ``module:attribute``."""
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


def main(kind: str, name: str, folder: str, *more: str) -> None:
    """Run one process."""
    if kind == "broker":
        asyncio.run(_broker(name, Path(folder), _named(more[0]) if more else {}))
    else:
        asyncio.run(_service(name, Path(folder), more[0], _named(more[1])))


if __name__ == "__main__":
    main(*sys.argv[1:])
