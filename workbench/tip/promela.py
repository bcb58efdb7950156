"""The same step in Promela, for SPIN (TIP 3, 8).

`promela` makes a model of the tables of `tabulated`, one process for each thing that can happen by itself (a delivery,
a filter, a script, the brokers' plan, time), and SPIN (`spin`) composes the steps anew: which of them follow from which
is said here, in C, and not taken from `interleavings`. SPIN has its own search, its own deadlocks and its own weak
fairness; it has to count as many states as were met.

==================================================  ==========================================================
claim                                               as
==================================================  ==========================================================
no deadlock                                         invalid end states; assertion: who is registered goes on
delivery to exactly the subscribers                 assertion: receivers of a row are those that are to have it
only the visible service reacts to user input       assertion: receivers of user input are the visible one
a stalled service is subscribed to nothing          assertion, at every state (`verify.astray`)
conditions met leads to subscribed                  ``met_s``: [] (met -> <> (subscribed || !met))
not met leads to stalled                            ``unmet_s``: [] (!met -> <> (!subscribed || met))
stalled until then                                  ``until_s``: not subscribed before the conditions were met
removed after disconnection                         ``gone_s``: [] (gone -> <> !gone)
who is there is registered                          ``there_s``: [] (there -> <> (registered || !there))
brokers know what the other one advertises          ``told_b``: [] (!known -> <> known)
==================================================  ==========================================================

*Gone* is to be registered and not connected; a broker that is gone advertises nothing, so that ``told_b`` has it
removed. Who is to have an event, and whose conditions are met, is read off the
services' own descriptions, not off any index of the broker. *Subscribed* is that the rules were evaluated; they may
accept nobody, as where quality is too low.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from workbench.tip.inputs import Connect, Disconnected, Input, Shutdown, Start
from workbench.tip.interleavings import DIE, JOIN, RETURN, SHOW, Script
from workbench.tip.tabulated import CLOSED, OPENED, Table, Tables

KINDS = (
    "Start", "Shutdown", "Connect", "Disconnect", "Connected", "Disconnected", "Received", "Filter", "Sent", "Tick",
    "Foreground", "Pass", "Act",
)  # fmt: skip
SETS = ("registered", "active", "known", "wanted", "allowed")
FACTS = ("running", "busy", "waiting", "due", "astray")


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


COMPOSING = """
static const Row *found(int who, int kind, int other, int number) {
  const Row *rows = T[who].rows;
  int input = (kind * NAMES + other) * NUMBERS + number, low = 0, high = T[who].length;
  while (low < high) {
    int middle = (low + high) / 2;
    if (rows[middle].state < now.q[who] || (rows[middle].state == now.q[who] && rows[middle].input < input))
      low = middle + 1;
    else
      high = middle;
  }
  return low < T[who].length && rows[low].state == now.q[who] && rows[low].input == input ? &rows[low] : 0;
}

/* What an action put into channels, and which channels it empties first: Promela's part of it. */
static int missing, right, put, put_link[64], put_message[64], emptied, next;

static void begin(void) { missing = put = emptied = next = 0; }
static int linked(int one, int other) { return (now.links >> PAIR[one][other]) & 1; }
static void link_up(int one, int other) { now.links |= 1 << PAIR[one][other]; }
static void give(int who, int kind, int other, int number);

static void cut(int one, int other) {
  int i, kept = 0;
  if (!linked(one, other)) return;
  now.links &= ~(1 << PAIR[one][other]);
  for (i = 0; i < put; i++)
    if (put_link[i] != LINK[one][other] && put_link[i] != LINK[other][one]) {
      put_link[kept] = put_link[i];
      put_message[kept++] = put_message[i];
    }
  put = kept;
  emptied |= 1 << LINK[one][other] | 1 << LINK[other][one];
  if (is_broker[one]) give(one, Disconnected, other, 0);
  if (is_broker[other]) give(other, Disconnected, one, 0);
}

static void arrive(int from, int to, int message) {
  if (message == CLOSED) { cut(from, to); return; }
  give(to, Received, from, message);
  if (is_broker[from] && linked(from, to)) give(from, Sent, to, 0);
}

static void give(int who, int kind, int other, int number) {
  const Row *row = found(who, kind, other, number);
  int i;
  if (!row) { missing = 1; return; }
  now.q[who] = row->next;
  for (i = row->first; i < row->first + row->length; i++) {
    int to = does[i].to, message = does[i].message;
    if (message == OPENED) {
      link_up(who, to);
      give(who, Connected, to, 0);
      give(to, Connected, who, 0);
    } else if (linked(who, to)) {
      if (listens[to]) arrive(who, to, message);
      else if (put < 64) { put_link[put] = LINK[who][to]; put_message[put++] = message; }
      else missing = 1;
    }
  }
}

/* Whether the next event of a broker's in-queue goes to whom it belongs, once, and to nobody who must not have it. */
static int delivers(int who) {
  const Row *row = found(who, Filter, 0, 0);
  int i, got = 0;
  if (!row) return 0;
  for (i = row->first; i < row->first + row->length; i++)
    if (does[i].message > CLOSED) {
      if (got >> does[i].to & 1) return 0;
      got |= 1 << does[i].to;
    }
  return got == wanted[who][now.q[who]] && !(got & ~allowed[who][now.q[who]]);
}

static void pass(void) {
  int who;
  for (who = 0; who < NAMES; who++)
    if (is_broker[who]) give(who, Pass, 0, 0);
  for (who = 0; who < NAMES; who++)
    if (is_broker[who] && due[who][now.q[who]]) give(who, Tick, 0, 0);
}
"""


class _Writer:
    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.names = sorted(tables.nodes)
        self.pairs = [("client", "server"), *((s.name, s.broker) for s in tables.scripts.values())]
        self.links = [link for one, other in self.pairs for link in ((one, other), (other, one))]
        self.services = [(s.name, s.broker) for s in tables.scripts.values()]
        self.numbers = 1 + max([*tables.messages.values(), *(len(s.acts) for s in tables.scripts.values())])
        self.needing = [(s.name, s.broker) for s in tables.scripts.values() if s.behaviour.description.conditions]

    def number(self, name: str) -> int:
        return self.names.index(name)

    def bits(self, names: frozenset[str]) -> int:
        return sum(1 << self.number(name) for name in names if name)

    # -- tables, in C ------------------------------------------------------------------------------------------

    def tables_text(self) -> str:
        parts = [self._names(), self._rows(), self._facts(), COMPOSING, *map(self._met, self.needing)]
        return "\n".join([*parts, *map(self._known, self.tables.brokers), self._look(), ""])

    def _names(self) -> str:
        """Names, kinds of input and connections as numbers."""
        square = [[(a, b) for b in self.names] for a in self.names]
        pair = [[self._index(self.pairs, {a, b}) for a, b in line] for line in square]
        link = [[self.links.index(one) if one in self.links else 31 for one in line] for line in square]
        listens = [name in self.tables.scripts and self.tables.scripts[name].listens for name in self.names]
        brokers = [name in self.tables.brokers for name in self.names]
        return "\n".join([
            f"enum {{ NAMES = {len(self.names)}, NUMBERS = {self.numbers}, CLOSED = {CLOSED}, OPENED = {OPENED} }};",
            f"enum {{ {', '.join(KINDS)} }};",
            f"static const char PAIR[][NAMES] = {_c(pair)}, LINK[][NAMES] = {_c(link)};",
            f"static const char listens[] = {_c(listens)}, is_broker[] = {_c(brokers)};",
        ])  # fmt: skip

    @staticmethod
    def _index(pairs: list[tuple[str, str]], wanted: set[str]) -> int:
        return next((n for n, pair in enumerate(pairs) if set(pair) == wanted), 31)

    def _rows(self) -> str:
        lines = ["typedef struct { short state; int input; short next, first, length; } Row;"]
        does: list[str] = []
        for name, table in self._tables():
            lines.append(f"static const Row T_{_name(name)}[] = {{ /* {name} */")
            rows = sorted((state, self._input(*given), row) for (state, given), row in table.rows.items())
            for state, input, row in rows:
                lines.append(f"  {{ {state}, {input}, {row.next}, {len(does)}, {len(row.does)} }},")
                does += [f"{{ {self.number(to)}, {message} }}" for to, message in row.does]
            lines.append("};")
        lines.append(f"static const struct {{ char to; short message; }} does[] = {{ {', '.join(does) or '{0, 0}'} }};")
        sizes = ", ".join(f"{{ T_{_name(n)}, sizeof T_{_name(n)} / sizeof(Row) }}" for n, _ in self._tables())
        lines.append(f"static const struct {{ const Row *rows; int length; }} T[] = {{ {sizes} }};")
        return "\n".join(lines)

    def _input(self, what: str, who: str, number: int) -> int:
        return (KINDS.index(what) * len(self.names) + (self.number(who) if who else 0)) * self.numbers + number

    def _tables(self) -> list[tuple[str, Table]]:
        return [(name, self.tables.nodes[name]) for name in self.names]

    def _facts(self) -> str:
        lines = []
        for fact in (*SETS, *FACTS):
            kind = "int" if fact in SETS else "char"
            for name in self.tables.brokers:
                values = [
                    self.bits(facts[fact]) if fact in SETS else fact in facts["is"]
                    for facts in self.tables.nodes[name].facts
                ]
                lines.append(f"static const {kind} {fact}_{name}[] = {_c(values)};")
            here = ", ".join(f"{fact}_{n}" if n in self.tables.brokers else "0" for n in self.names)
            lines.append(f"static const {kind} *const {fact}[] = {{ {here} }};")
        return "\n".join(lines)

    def _met(self, service: tuple[str, str]) -> str:
        """Whether the conditions of a service are truly met, by the states of both brokers."""
        name, broker = service
        holds = [pair for pair, met in self.tables.met.items() if pair.broker == broker and name in met]
        return self._of_pairs(f"met_{_name(name)}", broker, [(p.here, p.there, p.linked) for p in holds])

    def _known(self, broker: str) -> str:
        """Whether a broker knows what the other one truly advertises."""
        holds = [pair for pair, known in self.tables.known.items() if pair.broker == broker and known]
        return self._of_pairs(f"knows_{broker}", broker, [(p.here, p.there, p.linked) for p in holds])

    def _of_pairs(self, name: str, broker: str, pairs: list[tuple[int, int, bool]]) -> str:
        here, there = self.number(broker), self.number(_other(broker))
        width = len(self.tables.nodes[_other(broker)].states)
        cases = "".join(f" case {2 * (a * width + b) + linked}:" for a, b, linked in sorted(pairs))
        return (
            f"static char {name}(void) {{\n"
            f"  switch (2 * (now.q[{here}] * {width} + now.q[{there}]) + linked({here}, {there})) {{\n"
            f" {cases} return 1; default: return 0; }}\n}}"
        )

    def _look(self) -> str:
        """What the claims speak of, after each action."""
        lines = ["static void look(void) {"]
        for name, broker in self.needing:
            lines.append(f"  now.isMet_{_name(name)} = met_{_name(name)}();")
            for fact, of in (("isKnown", "known"), ("isSubscribed", "active")):
                lines.append(f"  now.{fact}_{_name(name)} = {self._has(of, broker, name)};")
        for name, broker in self.services:
            there = f"linked({self.number(name)}, {self.number(broker)})"
            lines.append(f"  now.isThere_{_name(name)} = {there};")
            lines.append(f"  now.isRegistered_{_name(name)} = {self._has('registered', broker, name)};")
        lines += [f"  now.knows_{broker} = knows_{broker}();" for broker in self.tables.brokers]
        return "\n".join([*lines, "}"])

    def _has(self, fact: str, broker: str, name: str) -> str:
        return f"({fact}_{broker}[now.q[{self.number(broker)}]] >> {self.number(name)}) & 1"

    # -- processes ---------------------------------------------------------------------------------------------

    def text(self) -> str:
        parts = [self._header(), self._globals()]
        parts += [*map(self._delivery, self._used()), *map(self._filter, self._filters())]
        parts += [self._plan(), *map(self._script, self.tables.scripts.values()), self._time(), self._claims()]
        return "\n".join(parts)

    def _header(self) -> str:
        lines = [f"/* Made from the brokers' own steps: {self.tables.worlds} worlds were met."]
        lines += [f" * message {n}: {_comment(' '.join(map(str, k)))[:100]}" for k, n in self.tables.messages.items()]
        lines += [f" * c[{n}]: from {sender} to {receiver}" for n, (sender, receiver) in enumerate(self.links)]
        lines += [f" * q[{n}]: the state of {name}" for n, name in enumerate(self.names)]
        return "\n".join([*lines, " */"])

    def _globals(self) -> str:
        bits = [f"{fact}_{_name(n)}" for n, _ in self.needing for fact in ("isMet", "isKnown", "isSubscribed")]
        bits += [f"{fact}_{_name(n)}" for n, _ in self.services for fact in ("isThere", "isRegistered")]
        bits += [f"knows_{broker} = 1" for broker in self.tables.brokers]
        asserts = " && ".join(f"!astray_{n}[now.q[{self.number(n)}]]" for n in self.tables.brokers)
        return f"""c_code {{ \\#include "tables.h" }}
short q[{len(self.names)}];
int links;
bit {', '.join(bits)};
chan c[{len(self.links)}] = [{self.tables.longest + 1}] of {{ short }};
hidden byte l;
hidden short m;

inline settle() {{
  do
  :: c_expr {{ emptied }} -> c_code {{ l = __builtin_ctz(emptied); emptied &= emptied - 1; }};
     do :: len(c[l]) > 0 -> c[l] ? m :: len(c[l]) == 0 -> break od
  :: else -> break
  od;
  do
  :: c_expr {{ next < put }} -> c_code {{ l = put_link[next]; m = put_message[next]; next++; }}; c[l] ! m
  :: else -> break
  od;
  c_code {{ look(); }};
  assert(c_expr {{ !missing }});
  assert(c_expr {{ {asserts} }})
}}
"""

    def _used(self) -> list[tuple[str, str]]:
        """The connections on which something is sent and waits."""
        sent = {(name, to) for name, table in self._tables() for row in table.rows.values() for to, _ in row.does}
        listening = {name for name, script in self.tables.scripts.items() if script.listens}
        return [link for link in self.links if link in sent and link[1] not in listening]

    def _delivery(self, link: tuple[str, str]) -> str:
        sender, receiver = link
        return (
            f"active proctype deliver_{_name(sender)}_{_name(receiver)}() {{\nend: do\n"
            f"  :: d_step {{ nempty(c[{self.links.index(link)}]) -> c[{self.links.index(link)}] ? m; "
            f'printf("deliver {sender} {receiver} (message %d)\\n", m); '
            f"c_code {{ begin(); arrive({self.number(sender)}, {self.number(receiver)}, m); }}; settle() }}\n  od\n}}"
        )

    def _filters(self) -> list[str]:
        return [n for n in self.tables.brokers if any("busy" in facts["is"] for facts in self.tables.nodes[n].facts)]

    def _filter(self, name: str) -> str:
        n = self.number(name)
        return (
            f"active proctype filter_{name}() {{\nend: do\n"
            f'  :: d_step {{ c_expr {{ busy[{n}][now.q[{n}]] }} -> printf("filter {name}\\n"); '
            f"c_code {{ begin(); right = delivers({n}); give({n}, Filter, 0, 0); }}; "
            "assert(c_expr { right }); settle() }\n  od\n}"
        )

    def _plan(self) -> str:
        lines = ["active proctype plan() {"]
        for at, (name, input) in enumerate(self.tables.plan):
            guard, act = self._planned(name, input)
            said = f'printf("plan {name} {_comment(repr(input))}\\n")'
            lines.append(f"at_{at}: d_step {{ c_expr {{ {guard} }} -> {said}; {self._do(act)} }};")
        return "\n".join([*lines, "end: false\n}"])

    def _planned(self, name: str, input: Input) -> tuple[str, str]:
        n, running = self.number(name), f"running[{self.number(name)}][now.q[{self.number(name)}]]"
        match input:
            case Start():
                return f"!{running}", f"give({n}, Start, 0, 0)"
            case Shutdown(keep):
                return running, f"give({n}, Shutdown, 0, {int(keep)})"
            case Connect(other):
                m = self.number(other)
                both = f"{running} && running[{m}][now.q[{m}]]"
                return f"{both} && !({self._linked(name, other)})", f"give({n}, Connect, {m}, 0)"
            case Disconnected(other):
                return running, f"cut({n}, {self.number(other)})"
        return running, f"give({n}, {type(input).__name__}, {self.number(input.name)}, 0)"  # type: ignore[union-attr]

    def _script(self, script: Script) -> str:
        name, broker = self.number(script.name), self.number(script.broker)
        running, there = f"running[{broker}][now.q[{broker}]]", self._linked(script.name, script.broker)
        registered = f"registered[{broker}][now.q[{broker}]] & {1 << name}"
        connected = f"link_up({name}, {broker}); give({broker}, Connected, {name}, 0)"
        lines = [f"active proctype {_name(script.name)}() {{"]
        for at, act in enumerate(script.acts):
            guards = {JOIN: running, SHOW: running, RETURN: f"{running} && !({there}) && {registered}"}
            acts = {
                JOIN: f"{connected}; give({name}, Act, 0, {at})", RETURN: connected,
                SHOW: f"give({broker}, Foreground, {name}, 0)", DIE: f"cut({name}, {broker})",
            }  # fmt: skip
            key = act if isinstance(act, str) else ""
            said = f'printf("{script.name} does act {at}: {_comment(repr(act))[:60]}\\n")'
            does = acts.get(key, f"give({name}, Act, 0, {script.acts.index(act)})")
            guard = guards.get(key, f"{running} && {there}")
            stuck = "" if act == RETURN else (
                f"\n  :: timeout && c_expr {{ {registered} }} -> assert(false) /* deadlock */"
            )  # fmt: skip
            lines.append(
                f"end_{at}: if\n  :: d_step {{ c_expr {{ {guard} }} -> {said}; {self._do(does)} }}{stuck}\n  fi;"
            )
        lines.append(f"  goto end_{script.again}\n}}" if script.again is not None else "end: false\n}")
        return "\n".join(lines)

    def _time(self) -> str:
        waits = " || ".join(f"waiting[{self.number(n)}][now.q[{self.number(n)}]]" for n in self.tables.brokers)
        return (
            f"active proctype time() {{\nend: do\n  :: d_step {{ c_expr {{ {waits} }} -> "
            f'printf("tick\\n"); {self._do("pass()")} }}\n  od\n}}'
        )

    def _linked(self, one: str, other: str) -> str:
        """Whether two are connected; SPIN wants no calls of functions where it asks."""
        return f"now.links & {1 << self._index(self.pairs, {one, other})}"

    @staticmethod
    def _do(act: str) -> str:
        return f"c_code {{ begin(); {act}; }}; settle()"

    def _claims(self) -> str:
        made = []
        for name in (_name(service) for service, _ in self.needing):
            made.append(f"ltl met_{name} {{ [] (isMet_{name} -> <> (isSubscribed_{name} || !isMet_{name})) }}")
            made.append(f"ltl unmet_{name} {{ [] (!isMet_{name} -> <> (!isSubscribed_{name} || isMet_{name})) }}")
            made.append(f"ltl until_{name} {{ (!isSubscribed_{name}) W isKnown_{name} }}")
        for name in (_name(service) for service, _ in self.services):
            there, registered = f"isThere_{name}", f"isRegistered_{name}"
            made.append(f"ltl gone_{name} {{ [] ({registered} && !{there} -> <> (!{registered} || {there})) }}")
            made.append(f"ltl there_{name} {{ [] ({there} && !{registered} -> <> ({registered} || !{there})) }}")
        made += [f"ltl told_{broker} {{ [] (!knows_{broker} -> <> knows_{broker}) }}" for broker in self.tables.brokers]
        return "\n".join(made)


def _other(broker: str) -> str:
    return "server" if broker == "client" else "client"


def _c(values: list[Any]) -> str:
    return "{ " + ", ".join(_c(v) if isinstance(v, list) else str(int(v)) for v in values) + " }"


def _name(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _comment(text: str) -> str:
    return text.replace("*/", "* /").replace('"', "'").replace("\\", "/").replace("%", "%%")
