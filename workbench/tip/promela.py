"""The same step in Promela, for SPIN (TIP 3, 8).

`tabulated` runs the production step through every interleaving and writes down what each broker and each service did:
a row says (state, input) -> (state, what is sent). `promela` makes a model of these tables, one process for each thing
that can happen by itself (a delivery, a filter, a script, time), and SPIN composes them anew: deadlocks, assertions,
and claims in linear temporal logic under its own weak fairness. Nothing of `verify` judges there; SPIN has to count as
many states.

==================================================  ==========================================================
claim                                               as
==================================================  ==========================================================
no deadlock                                         SPIN's invalid end states
delivery to exactly the subscribers                 assertion: receivers of a row are those that are to have it
only the visible service reacts to user input       assertion: receivers of user input are the visible one
a stalled service is subscribed to nothing          assertion, at every state
conditions met leads to subscribed                  ``met_s``: [] (met -> <> (subscribed || !met))
stalled until then                                  ``until_s``: not subscribed before the conditions were met
removed after disconnection                         ``gone_s``: [] (gone -> <> (removed || there again))
==================================================  ==========================================================

Who is to have an event, and whose conditions are met, is read off the services' own descriptions, not off any index of
the broker. *Subscribed* is that the rules were evaluated; they may accept nobody, as where quality is too low. A row
that had two outcomes would mean that a step looks at more than a state is known by: that is refused.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from workbench.errors import WorkbenchError
from workbench.tip import broker as brokering
from workbench.tip.broker import USER_INPUT, deadline
from workbench.tip.events import Event
from workbench.tip.inputs import Effect, Filter, Input, Received, Send, Tick
from workbench.tip.observer import Registered, active_services
from workbench.tip.state import State
from workbench.tip.verify import (
    DIE,
    JOIN,
    RETURN,
    SHOW,
    Script,
    Stepping,
    World,
    _event_key,
    _Explorer,
    _state_key,
    _truly_outside,
    expected_receivers,
    worlds_equal,
)

Link = tuple[str, str]


class Row(NamedTuple):
    """What an input did: the next state, what was sent on which link, whose links were cut, who received an event."""

    next: int
    sends: tuple[tuple[Link, int], ...] = ()
    cuts: tuple[str, ...] = ()
    got: frozenset[str] = frozenset()


@dataclass
class Table:
    """The states of a broker or service as they were met, its inputs, and a row for each that was met."""

    states: dict[Any, int] = field(default_factory=dict)
    inputs: dict[str, int] = field(default_factory=dict)
    rows: dict[tuple[int, str], Row] = field(default_factory=dict)
    facts: list[dict[str, frozenset[str]]] = field(default_factory=list)

    def number(self, key: Any) -> int:
        return self.states.setdefault(key, len(self.states))

    def add(self, state: int, input: str, row: Row) -> None:
        known = self.rows.setdefault((state, input), row)
        self.inputs.setdefault(input, len(self.inputs))
        if known != row:
            raise WorkbenchError(f"{input} in state {state} leads to {known} and to {row}; expected one outcome")


@dataclass
class Tables:
    """The tables of a world: brokers, services, messages by number, and how many worlds there are."""

    scripts: Mapping[str, Script]
    brokers: dict[str, Table]
    hosts: dict[str, Table]
    messages: dict[Any, int]
    met: dict[tuple[str, int, int], frozenset[str]]
    longest: int = 1
    worlds: int = 0
    transitions: int = 0


def tabulated(scripts: tuple[Script, ...], *, limit: int = 200_000, step: Stepping | None = None) -> Tables:
    """The tables of two brokers and a few services, over all interleavings.

    >>> from workbench.tip.host import Leave
    >>> from workbench.tip.services import History
    >>> tables = tabulated((Script("history", "client", History(), (JOIN, Leave())),))
    >>> tables.worlds > 10, len(tables.brokers["client"].rows) > 5
    (True, True)
    """
    return _Tabulating({script.name: script for script in scripts}, step or brokering.step).tables_of(limit)


class _Tabulating(_Explorer):
    """The explorer, without its judgement, writing down every step."""

    def __init__(self, scripts: Mapping[str, Script], step: Stepping) -> None:
        super().__init__(scripts, step)
        brokers = {name: Table() for name in ("client", "server")}
        self.tables = Tables(scripts, brokers, {name: Table() for name in scripts}, {}, {})
        self._under_way: dict[str, tuple[int, str]] = {}
        self._sends: dict[str, list[tuple[Link, int]]] = {}
        self._cuts: dict[str, list[str]] = {}
        self._got: dict[str, set[str]] = {}

    def tables_of(self, limit: int) -> Tables:
        first = self.first()
        self._note(first)
        seen, worlds = {worlds_equal(first)}, [first]
        while worlds:
            world = worlds.pop()
            for action in self.actions(world):
                after = self.act(world, action)
                self.tables.transitions += 1
                key = worlds_equal(after)
                if key not in seen:
                    if len(seen) >= limit:
                        raise WorkbenchError(f"more than {limit} states; expected a smaller world, or a larger limit")
                    seen.add(key)
                    worlds.append(after)
                    self._note(after)
        self.tables.worlds = len(seen)
        return self.tables

    def check_delivery(self, before: State, effects: tuple[Effect, ...]) -> None:
        """SPIN judges."""

    def _note(self, world: World) -> None:
        """Number the states of a world, and write down what is true in them."""
        numbers = {}
        for name, state in world.brokers.items():
            table = self.tables.brokers[name]
            numbers[name] = table.number(_state_key(state, world.now))
            if numbers[name] == len(table.facts):
                table.facts.append(_facts(state))
        for name, state in world.brokers.items():
            registered = [Registered(state.label(n), s.description) for n, s in state.services.items()]
            active = active_services(registered, _truly_outside(world, name))
            met = frozenset(n for n in state.services if state.label(n) in active)
            other = next(n for n in world.brokers if n != name)
            self.tables.met[name, numbers[name], numbers[other]] = met
        self.tables.longest = max(self.tables.longest, *(len(c) for c in world.channels.values()), 1)

    # -- rows ----------------------------------------------------------------------------------------------

    def act(self, world: World, action: tuple[str, ...]) -> World:
        after = super().act(world, action)
        if action == ("tick",):
            for name, state in world.brokers.items():
                before = self.tables.brokers[name].number(_state_key(state, world.now))
                self._write(name, before, "tick", after)
        return after

    def input(self, world: World, name: str, input: Input) -> World:
        outer = name not in self._under_way and not isinstance(input, Tick)
        if outer:
            label = _said(input)
            if isinstance(input, Received):
                label = f"received {input.name} {self._message(input.event)}"
            before = self.tables.brokers[name].number(_state_key(world.brokers[name], world.now))
            self._under_way[name] = (before, label)
        if isinstance(input, Filter):
            self._filtering(world.brokers[name], name, input, world.now)
        after = super().input(world, name, input)
        if outer:
            before, label = self._under_way.pop(name)
            self._write(name, before, label, after)
        return after

    def _filtering(self, state: State, name: str, input: Input, now: int) -> None:
        effects = self.step(state, input, now).effects
        sent = [effect.name for effect in effects if isinstance(effect, Send)]
        self._got[name] = set(sent) | ({"somebody twice"} if len(set(sent)) < len(sent) else set())

    def _write(self, name: str, before: int, label: str, after: World) -> None:
        table = self.tables.brokers[name]
        number = table.number(_state_key(after.brokers[name], after.now))
        if number == len(table.facts):
            table.facts.append(_facts(after.brokers[name]))
        made = tuple(self._sends.pop(name, ())), tuple(self._cuts.pop(name, ())), frozenset(self._got.pop(name, ()))
        table.add(before, label, Row(number, *made))

    def _carry(self, world: World, sender: str, receiver: str, event: Event | None) -> World:
        if not (receiver in self.scripts and self.scripts[receiver].listens):
            self._sends.setdefault(sender, []).append(((sender, receiver), self._message(event)))
        return super()._carry(world, sender, receiver, event)

    def _cut(self, world: World, one: str, other: str) -> World:
        broker, gone = (one, other) if one in world.brokers else (other, one)
        if (one, other) in world.links and broker in self._under_way:
            self._cuts.setdefault(broker, []).append(gone)
        return super()._cut(world, one, other)

    def _happened(self, world: World, name: str, happening: str, after: World) -> World:
        table = self.tables.hosts[name]
        before = table.number(_host_key(world, name))
        table.add(before, happening, Row(table.number(_host_key(after, name)), tuple(self._sends.pop(name, ()))))
        return after

    def _script(self, world: World, script: Script) -> World:
        at = world.at[script.name]
        return self._happened(world, script.name, f"act {at}", super()._script(world, script))

    def _arrive(self, world: World, sender: str, receiver: str, event: Event | None) -> World:
        after = super()._arrive(world, sender, receiver, event)
        if receiver not in world.brokers and not self.scripts[receiver].listens and event is not None:
            return self._happened(world, receiver, f"received {self._message(event)}", after)
        return after

    def _message(self, event: Event | None) -> int:
        return self.tables.messages.setdefault(_event_key(event), len(self.tables.messages) + 1)


def _host_key(world: World, name: str) -> Any:
    host = world.hosts.get(name)
    return None if host is None else (host.ended, host.made, host.advertised)


def _said(input: Input) -> str:
    return " ".join([type(input).__name__, *(str(part) for part in input)])


def _facts(state: State) -> dict[str, frozenset[str]]:
    """What is true in a state of a broker: sets of names."""
    services = state.services.items()
    registered = [Registered(state.label(n), s.description) for n, s in services]
    met = active_services(registered, [entry for other in state.neighbours.values() for entry in other.entries])
    visible = state.in_queue and state.in_queue[0][1].category == USER_INPUT
    return {
        "connected": frozenset(state.connected),
        "registered": frozenset(state.services),
        "active": frozenset(n for n, s in services if s.active),
        "known": frozenset(n for n in state.services if state.label(n) in met),
        "subscribed": frozenset(n for n, s in services if s.subscriptions),
        "gone": frozenset(n for n, s in services if s.gone_since is not None),
        "wanted": frozenset(expected_receivers(state)),
        "allowed": frozenset({*([state.foreground] if visible else state.services), *state.neighbours}),
        "busy": frozenset(["filter"] * bool(state.in_queue) + ["time"] * (deadline(state) is not None)),
    }


# -- the model -------------------------------------------------------------------------------------------------


class Model(NamedTuple):
    """A model in Promela, and the tables that it reads, in C."""

    promela: str
    tables: str

    @property
    def claims(self) -> list[str]:
        """The names of its claims in linear temporal logic."""
        return re.findall(r"^ltl (\w+)", self.promela, re.MULTILINE)


def promela(tables: Tables) -> Model:
    """The tables as a Promela model with its claims."""
    writer = _Writer(tables)
    return Model(writer.text(), writer.tables_text())


class _Writer:
    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.names = sorted({"client", "server", *tables.scripts})
        self.links = sorted({link for table in (*tables.brokers.values(), *tables.hosts.values())
                             for row in table.rows.values() for link, _ in row.sends})  # fmt: skip
        self.needing = [(s.name, s.broker) for s in tables.scripts.values() if s.behaviour.description.conditions]
        self.leaving = [(s.name, s.broker) for s in tables.scripts.values() if DIE in s.acts]

    def bits(self, names: frozenset[str]) -> int:
        return sum(1 << self.names.index(name) if name in self.names else 1 << len(self.names) for name in names)

    def text(self) -> str:
        parts = [self._header(), self._globals(), self._inlines(), self._deliveries()]
        parts += [self._filters(), self._scripts(), self._time(), self._claims()]
        return "\n".join(parts)

    def tables_text(self) -> str:
        received = [self._received(sender, receiver) for sender, receiver in self.links]
        return "\n".join([self._rows(), self._facts(), *received, ""])

    def _header(self) -> str:
        said = "\n".join(f" * message {n}: {' '.join(map(str, key))[:100]}" for key, n in self.tables.messages.items())
        return f"/* Made from the broker's own steps: {self.tables.worlds} worlds were met.\n{_comment(said)}\n */"

    # -- tables, in C ------------------------------------------------------------------------------------------

    def _rows(self) -> str:
        most = max((len(row.sends) for table in self._all().values() for row in table.rows.values()), default=0) + 1
        lines = [
            f"typedef struct {{ short state, input, next, length, link[{most}], sent[{most}]; int cut, got; }} Row;",
            "static int row, found; static const Row *it;",
        ]
        for name, table in self._all().items():
            lines += [f"enum {{ {', '.join(f'{_input(name, i)} = {n}' for i, n in table.inputs.items())} }};"]
            lines += [f"static const Row T_{name}[] = {{"]
            for (state, input), row in sorted(table.rows.items(), key=lambda r: (r[0][0], r[0][1])):
                links = ", ".join(str(self.links.index(link)) for link, _ in row.sends) or "0"
                sent = ", ".join(str(message) for _, message in row.sends) or "0"
                lines.append(
                    f"  {{ {state}, {table.inputs[input]}, {row.next}, {len(row.sends)}, {{ {links} }}, {{ {sent} }}, "
                    f"{self.bits(frozenset(row.cuts))}, {self.bits(row.got)} }}, /* {_comment(input)} */"
                )
            width = max(1, len(table.inputs))
            lines += [
                "};",
                f"static short at_{name}[{max(1, len(table.states))}][{width}]; static int made_{name};",
                f"static const Row *row_{name}(int state, int input) {{",
                f"  if (!made_{name}) {{ int i; made_{name} = 1;",
                f"    for (i = 0; i < (int)(sizeof T_{name} / sizeof(Row)); i++)",
                f"      at_{name}[T_{name}[i].state][T_{name}[i].input] = (short)(i + 1); }}",
                f"  return at_{name}[state][input] ? &T_{name}[at_{name}[state][input] - 1] : 0;",
                "}",
            ]
        return "\n".join(lines)

    def _all(self) -> dict[str, Table]:
        return {**self.tables.brokers, **{_name(n): t for n, t in self.tables.hosts.items()}}

    def _facts(self) -> str:
        lines = []
        for broker, table in self.tables.brokers.items():
            for fact in ("connected", "registered", "active", "known", "subscribed", "gone", "wanted", "allowed"):
                values = ", ".join(str(self.bits(facts[fact])) for facts in table.facts)
                lines.append(f"static const int {fact}_{broker}[] = {{ {values} }};")
            for what in ("filter", "time"):
                values = ", ".join(str(int(what in facts["busy"])) for facts in table.facts)
                lines.append(f"static const char {what}_{broker}[] = {{ {values} }};")
        for service, broker in self.needing:
            other = "server" if broker == "client" else "client"
            width = len(self.tables.brokers[other].states)
            lines.append(f"static char met_{_name(service)}(int here, int there) {{ switch (here * {width} + there) {{")
            for (name, here, there), met in sorted(self.tables.met.items()):
                if name == broker and service in met:
                    lines.append(f"  case {here * width + there}:")
            lines.append("  return 1; default: return 0; } }")
        return "\n".join(lines)

    # -- processes ---------------------------------------------------------------------------------------------

    def _globals(self) -> str:
        lines = ['c_decl { \\#include "tables.h" }', "hidden short m;", "bit joined;"]
        lines += [f"short q_{name};" for name in self.tables.brokers]
        lines += [f"short h_{_name(name)};" for name in self.tables.hosts]
        for names, facts in ((self.needing, ("isMet", "isKnown", "isSubscribed")),
                             (self.leaving, ("isGone", "isRegistered"))):  # fmt: skip
            lines += [f"bit {fact}_{_name(name)};" for name, _ in names for fact in facts]
        lines += [f"chan {_chan(link)} = [{self.tables.longest + 1}] of {{ short }};" for link in self.links]
        return "\n".join(lines)

    def _inlines(self) -> str:
        sends = "\n".join(
            f"  :: c_expr {{ row < it->length && it->link[row] == {number} }} -> "
            f"c_code {{ m = it->sent[row]; row++; }}; {_chan(link)} ! m"
            for number, link in enumerate(self.links)
        )
        cuts = []
        for name, script in self.tables.scripts.items():
            for link in ((name, script.broker), (script.broker, name)):
                if link in self.links:
                    cuts.append(
                        f"  do :: c_expr {{ it->cut & {self.bits(frozenset({name}))} }} && nempty({_chan(link)}) -> "
                        f"{_chan(link)} ? m :: else -> break od;"
                    )
        checks = [
            f"  assert(c_expr {{ !(subscribed_{b}[now.q_{b}] & ~active_{b}[now.q_{b}]) }});"
            for b in self.tables.brokers
        ]
        lets = [
            f"    now.isMet_{_name(s)} = met_{_name(s)}(now.q_{b}, now.q_{'server' if b == 'client' else 'client'});\n"
            f"    now.isKnown_{_name(s)} = (known_{b}[now.q_{b}] >> {self.names.index(s)}) & 1;\n"
            f"    now.isSubscribed_{_name(s)} = (active_{b}[now.q_{b}] >> {self.names.index(s)}) & 1;"
            for s, b in self.needing
        ] + [
            f"    now.isGone_{_name(s)} = (gone_{b}[now.q_{b}] >> {self.names.index(s)}) & 1;\n"
            f"    now.isRegistered_{_name(s)} = (registered_{b}[now.q_{b}] >> {self.names.index(s)}) & 1;"
            for s, b in self.leaving
        ]
        body = "\n".join(lets)
        return "\n".join([
            "inline carry() {\n  c_code { row = 0; };\n  do", sends, "  :: else -> break\n  od;", *cuts, "  m = 0\n}",
            "inline look() {", f"  c_code {{\n{body}\n    ;\n  }};", *checks, "  skip\n}",
        ])  # fmt: skip

    def _input(self, name: str, input: str, variable: str) -> str:
        """Take the row of an input; one that was never met must not come about."""
        return (
            f"c_code {{ it = row_{name}(now.{variable}, {input}); found = it != 0; }}; assert(c_expr {{ found }}); "
            f"c_code {{ now.{variable} = it->next; }}; carry()"
        )

    def _received(self, sender: str, receiver: str) -> str:
        """A function of C that turns a message into an input."""
        table = self.tables.brokers[receiver] if receiver in self.tables.brokers else self.tables.hosts[receiver]
        begins = f"received {sender} " if receiver in self.tables.brokers else "received "
        cases = "".join(
            f" case {input.removeprefix(begins)}: return {_input(_name(receiver), input)};"
            for input in table.inputs
            if input.startswith(begins) and input.removeprefix(begins).isdigit()
        )
        name = f"in_{_name(sender)}_{_name(receiver)}"
        return f"static int {name}(int m) {{ switch (m) {{{cases} default: return 0; }} }}"

    def _deliveries(self) -> str:
        made = []
        for sender, receiver in self.links:
            to, variable = (receiver, f"q_{receiver}") if receiver in self.tables.brokers else (
                _name(receiver), f"h_{_name(receiver)}"
            )  # fmt: skip
            taken = self._input(to, f"in_{_name(sender)}_{_name(receiver)}(m)", variable)
            sent = f"Sent {receiver} 1"
            answer = ""
            if sender in self.tables.brokers and sent in self.tables.brokers[sender].inputs:
                bit = self.bits(frozenset({receiver}))
                answer = (
                    f" if :: c_expr {{ connected_{sender}[now.q_{sender}] & {bit} }} -> "
                    f"{self._input(sender, _input(sender, sent), f'q_{sender}')} :: else fi;"
                )
            made.append(
                f"active proctype deliver_{_name(sender)}_{_name(receiver)}() {{\nend: do\n"
                f"  :: d_step {{ {_chan((sender, receiver))} ? m -> "
                f'printf("deliver {sender} {receiver} (message %d)\\n", m); {taken};{answer} look() }}\n  od\n}}'
            )
        return "\n".join(made)

    def _filters(self) -> str:
        made = []
        for name, table in self.tables.brokers.items():
            if "Filter" not in table.inputs:
                continue
            made.append(
                f"active proctype filter_{name}() {{\nend: do\n"
                f"  :: d_step {{ c_expr {{ filter_{name}[now.q_{name}] }} -> "
                f'printf("filter {name}\\n"); c_code {{ it = row_{name}(now.q_{name}, {_input(name, "Filter")}); }}; '
                f"assert(c_expr {{ it->got == wanted_{name}[now.q_{name}] }}); "
                f"assert(c_expr {{ !(it->got & ~allowed_{name}[now.q_{name}]) }}); "
                f"c_code {{ now.q_{name} = it->next; }}; carry(); look() }}\n  od\n}}"
            )
        return "\n".join(made)

    def _scripts(self) -> str:
        both = "; ".join(self._input(name, _input(name, label), f"q_{name}") for name, label in (
            ("client", "Connect server"), ("server", "Connected client broker")))  # fmt: skip
        act = f'd_step {{ printf("connect\\n"); {both}; joined = 1; look() }}'
        made = [f"active proctype connect() {{\n  {act};\nend: false\n}}"]
        made += [self._script(script) for script in self.tables.scripts.values()]
        return "\n".join(made)

    def _script(self, script: Script) -> str:
        name, broker, bit = _name(script.name), script.broker, self.bits(frozenset({script.name}))
        lines = [f"active proctype {name}() {{"]
        for at, act in enumerate(script.acts):
            guard = {
                JOIN: "1", SHOW: "1", RETURN: f"registered_{broker}[now.q_{broker}] & {bit}",
            }.get(act if isinstance(act, str) else "", f"connected_{broker}[now.q_{broker}] & {bit}")  # fmt: skip
            takes = {
                JOIN: f"Connected {script.name} service", RETURN: f"Connected {script.name} service",
                DIE: f"Disconnected {script.name}", SHOW: f"Foreground {script.name}",
            }.get(act if isinstance(act, str) else "")  # fmt: skip
            flush = ""
            if act == DIE:
                flush = " ".join(
                    f"do :: nempty({_chan(link)}) -> {_chan(link)} ? m :: else -> break od;"
                    for link in ((script.name, broker), (broker, script.name)) if link in self.links
                )  # fmt: skip
            parts = [f'printf("{script.name} does act {at}: {_comment(repr(act))[:60]}\\n");', flush]
            if takes and takes in self.tables.brokers[broker].inputs:
                parts.append(self._input(broker, _input(broker, takes), f"q_{broker}") + ";")
            if f"act {at}" in self.tables.hosts[script.name].inputs:
                parts.append(self._input(name, _input(name, f"act {at}"), f"h_{name}") + ";")
            label = f"end_{at}" if act == RETURN else f"at_{at}"
            lines.append(f"{label}: if :: d_step {{ c_expr {{ {guard} }} -> {' '.join(parts)} look() }} fi;")
        lines.append(f"  goto {'end' if script.acts[script.again] == RETURN else 'at'}_{script.again}\n}}"
                     if script.again is not None else "end: false\n}")  # fmt: skip
        return "\n".join(lines)

    def _time(self) -> str:
        brokers = [name for name, table in self.tables.brokers.items() if "tick" in table.inputs]
        if not brokers:
            return ""
        ticks = " ".join(self._input(name, _input(name, "tick"), f"q_{name}") + ";" for name in brokers)
        waits = " || ".join(f"time_{name}[now.q_{name}]" for name in brokers)
        return (
            f"active proctype time() {{\nend: do\n  :: d_step {{ c_expr {{ {waits} }} -> "
            f'printf("tick\\n"); {ticks} look() }}\n  od\n}}'
        )

    def _claims(self) -> str:
        made = []
        for name in (_name(service) for service, _ in self.needing):
            made.append(f"ltl met_{name} {{ [] (isMet_{name} -> <> (isSubscribed_{name} || !isMet_{name})) }}")
            made.append(f"ltl until_{name} {{ (!isSubscribed_{name}) W isKnown_{name} }}")
        for name in (_name(service) for service, _ in self.leaving):
            made.append(f"ltl gone_{name} {{ [] (isGone_{name} -> <> (!isGone_{name} || !isRegistered_{name})) }}")
        return "\n".join(made)


def _name(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _chan(link: Link) -> str:
    return f"c_{_name(link[0])}_{_name(link[1])}"


def _input(name: str, input: str) -> str:
    return f"I_{name}_{_name(input)}"


def _comment(text: str) -> str:
    return text.replace("*/", "* /").replace('"', "'").replace("\\", "/").replace("%", "%%")


# -- SPIN ------------------------------------------------------------------------------------------------------


class Checked(NamedTuple):
    """What SPIN says of one claim (`deadlock and assertions` is one too): states stored, errors, and a trail."""

    claim: str
    states: int
    transitions: int
    errors: int
    trail: tuple[str, ...] = ()


SAFETY = "deadlock and assertions"


def check(model: Model, folder: Path, *, only: str = "") -> list[Checked]:
    """Have SPIN check a model, each claim by itself, or `only` one, in a folder of one's own."""
    for tool in ("spin", "gcc"):
        if shutil.which(tool) is None:
            raise WorkbenchError(f"there is no {tool}; `sh tools/spin`, or apt-get install spin gcc libc6-dev")
    (folder / "model.pml").write_text(model.promela)
    (folder / "tables.h").write_text(model.tables)
    _run(folder, "spin", "-a", "model.pml")
    found, claims = [], [claim for claim in model.claims if only in ("", claim)]
    if only in ("", SAFETY):
        _run(folder, "gcc", "-O0", "-w", "-DNOREDUCE", "-DNOCLAIM", "-DSAFETY", "-o", "pan_safety", "pan.c")
        found.append(_checked(folder, SAFETY, "./pan_safety"))
    if claims:
        _run(folder, "gcc", "-O0", "-w", "-DNOREDUCE", "-DNFAIR=6", "-o", "pan_claims", "pan.c")
    return found + [_checked(folder, claim, "./pan_claims", "-a", "-f", "-N", claim) for claim in claims]


def _checked(folder: Path, claim: str, *command: str) -> Checked:
    for old in folder.glob("*.trail"):
        old.unlink()
    said = _run(folder, *command, "-m100000", "-w20")
    numbers = {
        what: int(found[1]) for what in ("states, stored", "transitions")
        if (found := re.search(rf"(\d+) {what}", said))
    }  # fmt: skip
    errors = re.search(r"errors: (\d+)", said)
    if errors is None or len(numbers) < 2 or ("Search not completed" in said and errors[1] == "0"):
        raise WorkbenchError(f"SPIN did not finish with {claim}: {said[-300:]}")
    trail: tuple[str, ...] = ()
    if int(errors[1]):
        shown = _run(folder, *command, "-r", "-n")
        told = re.compile(r"\s*(deliver|filter|tick|connect|\S+ does)\b")
        trail = tuple(line.strip() for line in shown.splitlines() if told.match(line))
    return Checked(claim, numbers["states, stored"], numbers["transitions"], int(errors[1]), trail)


def _run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode and not command[0].startswith("./pan"):
        raise WorkbenchError(f"{' '.join(command)} failed: {(done.stderr or done.stdout)[-300:]}")
    return done.stdout + done.stderr
