"""Brokers: what one does with one message (A Federated Broker Architecture, IV to VIII).

A broker is a value, and `step` a pure function: a broker, who sends and a message give the broker after it and the
messages that it sends. Time, delays, losses and counting are the driver's (`simulated`).

* VIII: L_B is empty at first; who calls pub, sub or unsub is added to it; leave takes the client and its
  subscriptions away. Credentials are asked for where the rules have accounts.
* V: a subscription is handed to the local clients that could satisfy it, by their capabilities.
* VI, VII: each change of the table goes to the neighbours as a tableUpdate, never back to where it came from
  (equations 8 and 9); a notification goes to Γ_B(ν) without its source.
* Publications of ours are *states*, told in reports (`reports`); pairs are decided at the subscription's home
  (`homes`).

Beyond the paper: covering and merging (`covering`); joining, leaving and repair of links (`linked`, `forgotten`);
cyclic overlays, in which a subscription is known by its origin and version, and a notification by its origin and
number, and what comes a second time is suppressed. The first to come shows the way. When a link of such an overlay
breaks or is repaired, and all brokers hear of it, each announces its local subscriptions anew, and what is known is
told again along the ways that they find: nothing waits for a repair that has another way.

Departure: VIII sends the mobile broker to "the procedure described in Section IV" for joining the overlay; IV
describes none for brokers. Here both ends of a new link tell each other their whole tables, then what the other's
subscriptions accept, and then that they are done.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from workbench.brokering.federation import homes, reports
from workbench.brokering.federation.attributes import Notification, Subscription
from workbench.brokering.federation.composites import Composite
from workbench.brokering.federation.covering import SIMPLE, announcement
from workbench.brokering.federation.interests import UNNUMBERED, Interest, Report, interests_of
from workbench.brokering.federation.messages import (
    Anew,
    Answer,
    Attach,
    Attached,
    Envelope,
    Fetch,
    Forward,
    Handover,
    Leave,
    Links,
    LocalClient,
    Logs,
    Moved,
    Notify,
    Pub,
    Query,
    Refused,
    Register,
    Resend,
    Sub,
    Suspended,
    Synced,
    TableUpdate,
    Unsub,
)
from workbench.brokering.federation.overlay import link
from workbench.brokering.federation.state import Broker, Out
from workbench.brokering.federation.tables import NONE, Routable, Table
from workbench.brokering.kept import crowded_out, fresh
from workbench.brokering.values import changed
from workbench.errors import ScenarioError

UNSEEN: tuple[Any, ...] = ()
"""the version of what was never seen: older than any"""
RECENT = 10_000
"""of how many origins a broker keeps the latest notification"""
HEARD = 1000
"""how many numbers of one origin a cyclic broker keeps to know a duplicate"""
_JOINING = (Pub, Sub, Unsub)
"""what makes a client of who sends it"""
_ASKED = (*_JOINING, Register, Query)
"""for what credentials are asked"""


def step(broker: Broker, source: Hashable, message: Any) -> tuple[Broker, Out]:
    """What a broker does with one message.

    >>> from workbench.brokering.federation.attributes import attribute
    >>> b1 = Broker("B1", frozenset({"B2"}))
    >>> b1, sent = step(b1, "κ1", Sub((Subscription("σ1", attribute("age") > 25),)))
    >>> b1.table, sent
    ({(σ1, κ1)}, [B1 → B2: tableUpdate(B1, {σ1}, φ)])
    """
    handler = _HANDLERS.get(type(message))
    if handler is None:
        raise ScenarioError(f"broker {broker.name}: no such message {message!r}")
    if isinstance(message, _ASKED) and source not in broker.neighbours:
        refused = _refusal(broker, source, message)
        if refused:
            return broker, [Envelope(broker.name, source, Refused(refused))]
    if isinstance(message, _JOINING) and source not in broker.clients:
        broker = _joined(broker, LocalClient(source))
    return handler(broker, source, message)


# -- clients (VIII) ------------------------------------------------------------------------------------


def _refusal(broker: Broker, source: Hashable, message: Any) -> str:
    accounts = broker.rules.accounts
    if accounts is None:
        return ""
    client = message.client if isinstance(message, Register) else broker.clients.get(source)
    if client is None or accounts.get(source) != client.credentials:
        return f"{source} is not known here by these credentials"
    return ""


def _joined(broker: Broker, client: LocalClient) -> Broker:
    here = {client.name: client}
    providers = broker.providers.changed_by(here if client.capabilities else {}, [client.name])
    return changed(broker, clients=broker.clients.changed_by(here), providers=providers)


def _register(broker: Broker, source: Hashable, message: Register) -> tuple[Broker, Out]:
    """A client says what it can produce, and is handed the subscriptions that it could satisfy."""
    broker = _joined(broker, message.client)
    wanted = [s for s, destination in broker.table if destination != source]
    return broker, _handed(broker, {s.name: s for s in wanted}.values(), (), only=source)


def _leave(broker: Broker, source: Hashable, message: Leave) -> tuple[Broker, Out]:
    """L_B without the client, all its subscriptions cancelled, nothing left of it but its past where that is needed."""
    if source not in broker.clients:
        return broker, []
    names, gone = list(broker.table.of(source)), list(broker.table.of(source).values())
    broker = changed(
        homes.unmatched(broker, names),
        clients=broker.clients.changed_by({}, [source]),
        providers=broker.providers.changed_by({}, [source]),
        table=broker.table.forget(source),
        recent=broker.recent.changed_by({}, [source]),
        composing=_without(broker.composing, source),
        arriving=_without(broker.arriving, source),
        departing=broker.departing - {source},
        resyncing=broker.resyncing - {source},
    )
    known = broker.known.get(source)
    ended = known is not None and known.report.state is not None and not known.report.state.instances
    # Filters that look back still see what has ended; for all others nothing stays.
    kept_for_the_past = ended and broker.world is not None and broker.world.remembers
    broker, out = reports.retract(broker, [source] if known is not None and not kept_for_the_past else [])
    handed = _handed(broker, (), gone)
    broker, more = table_changed(broker, names)
    return broker, handed + out + more


def _without(given: Mapping[Any, Any], *keys: Hashable) -> dict[Any, Any]:
    return {k: v for k, v in given.items() if k not in keys}


# -- subscriptions (V to VII) --------------------------------------------------------------------------


def _sub(broker: Broker, source: Hashable, message: Sub) -> tuple[Broker, Out]:
    """Equation 6, then 8; of a composite event the parts are routed."""
    events = [s for s in message.subscriptions if isinstance(s, Composite)]
    new: list[Routable] = [s for s in message.subscriptions if not isinstance(s, Composite)]
    left: list[Routable] = []
    if events:
        new += [part for event in events for part in event.subscriptions]
        held, stay = broker.composing.get(source, {}), {s.name for s in new}
        former = [s for event in events if event.name in held for s in held[event.name][0].subscriptions]
        left = [s for s in former if s.name not in stay]  # an event that is made of other parts now
        begun = {**held, **{event.name: (event, ()) for event in events}}
        broker = changed(broker, composing={**broker.composing, source: begun})
    if broker.rules.cyclic:
        new = [_renewed(s, broker.seen.get(s.name, UNSEEN)) for s in new]
        broker = changed(broker, seen=broker.seen.changed_by({s.name: s.version for s in new}))
    table = broker.table.without([s.name for s in left], source)
    if broker.rules.cyclic:  # a client that came from elsewhere: the way there is the older one
        table = _nowhere(table, [s.name for s in new])
    broker = changed(broker, table=table.with_(new, source))
    handed = _handed(broker, new, left, but=source)
    broker, out = table_changed(broker, [s.name for s in (*new, *left)])
    return broker, handed + out


def _renewed(s: Any, seen: tuple[Any, ...]) -> Any:
    """A subscription under a newer version than any of its name that was seen: it came back, or says something else."""
    return s if s.version > seen else replace(s, version=(seen[0] + 1, 0))


def _unsub(broker: Broker, source: Hashable, message: Unsub) -> tuple[Broker, Out]:
    """Equation 7, then 9."""
    events = broker.composing.get(source, {})
    names = {*message.names, *(s.name for n in message.names if n in events for s in events[n][0].subscriptions)}
    if events:
        left = _without(events, *message.names)
        broker = changed(broker, composing={**_without(broker.composing, source), **({source: left} if left else {})})
    gone = [s for name, s in broker.table.of(source).items() if name in names]
    broker = changed(broker, table=broker.table.without([s.name for s in gone], source))
    handed = _handed(broker, (), gone, but=source)
    broker, out = table_changed(broker, [s.name for s in gone])
    return broker, handed + out


def _table_update(broker: Broker, source: Hashable, message: TableUpdate) -> tuple[Broker, Out]:
    """The same for a neighbour; what it now accepts of what is known here is told to it."""
    new, gone, before = message.subscriptions, message.unsubscriptions, broker.table.of(source)
    if message.sync:
        stay = {s.name for s in new}
        gone = tuple(s for name, s in broker.table.of(source).items() if name not in stay)
    table, seen, suppressed = broker.table, broker.seen, broker.suppressed
    if broker.rules.cyclic:
        newer = tuple(s for s in new if s.version > seen.get(s.name, UNSEEN))
        suppressed += len(new) - len(newer)
        ended = tuple(s for s in message.unsubscriptions if s.version >= seen.get(s.name, UNSEEN))
        rerouted = [s.name for s in newer if s.version[:1] == seen.get(s.name, UNSEEN)[:1]]
        if message.sync:
            table = table.without([s.name for s in gone], source)
        new, gone = newer, tuple(s for s in (gone if message.sync else ended) if s.name in broker.table.where)
        seen = seen.changed_by({s.name: s.version for s in (*new, *ended)})
        table = _nowhere(table, [s.name for s in (*new, *ended)])
        before = before.changed_by({}, rerouted)  # whoever told it until now may be cut off: tell all again
    else:
        table = table.without([s.name for s in gone], source)
    broker = changed(broker, table=table.with_(new, source), seen=seen, suppressed=suppressed)
    handed = _handed(broker, new, gone)
    broker, out = table_changed(broker, [s.name for s in (*new, *gone)])
    broker, replies = reports.retell(broker, str(source), before, new)
    broker, heard = _links_heard(broker, source, message.links)
    done = [Envelope(broker.name, source, Synced())] if message.sync else []
    return broker, handed + replies + out + heard + done


def table_changed(broker: Broker, names: Iterable[Hashable]) -> tuple[Broker, Out]:
    """Tell each neighbour what it does not know yet of the table (equations 8 and 9)."""
    news_of = list(names)
    announced = dict(broker.announced)
    out: Out = []
    for neighbour in sorted(broker.neighbours):
        told = announced.get(neighbour, NONE)
        wanted = broker.table.beyond(neighbour, news_of if broker.rules.routing == SIMPLE else None)
        news = announcement(told, wanted, news_of, broker.rules.routing)
        if news:
            announced[neighbour] = news.applied(told)
            update = TableUpdate(broker.name, news.subscriptions, news.unsubscriptions)
            out.append(Envelope(broker.name, neighbour, update))
    broker = changed(broker, announced=announced)
    return reports.dropped(broker, [str(e.destination) for e in out]), out


def _nowhere(table: Table, names: Iterable[Hashable]) -> Table:
    """The table without these subscriptions, wherever they lead."""
    for name in names:
        for destination in table.where.get(name, ()):
            table = table.without([name], destination)
    return table


def _handed(
    broker: Broker,
    new: Iterable[Routable],
    gone: Iterable[Routable],
    only: Hashable = None,
    but: Hashable = None,
) -> Out:
    """Hand subscriptions to the local clients that could satisfy them, and take them back (V).

    What somebody else still wants under the same name is not taken back; if a name means something else by now, that
    is handed again.
    """
    out: Out = []
    for client in broker.providers.values():
        if client.name == but or only not in (None, client.name):
            continue
        others = {s.name: _wanted_by_others(broker.table, s.name, client.name) for s in gone}
        anew = [others[s.name][0] for s in gone if others[s.name] and others[s.name][0] != s]
        can = [s for s in (*new, *anew) if isinstance(s, Subscription) and s.possible(client.capabilities)]
        left = [s for s in gone if isinstance(s, Subscription) and not others[s.name]]
        could = [s for s in left if s.possible(client.capabilities)]
        if can:
            out.append(Envelope(broker.name, client.name, Sub(tuple(can))))
        if could:
            out.append(Envelope(broker.name, client.name, Unsub(tuple(s.name for s in could))))
    return out


def _wanted_by_others(table: Table, name: Hashable, but: Hashable) -> list[Routable]:
    return [table.of(d)[name] for d in table.where.get(name, ()) if d != but]


# -- notifications ---------------------------------------------------------------------------------------


def _pub(broker: Broker, source: Hashable, message: Pub) -> tuple[Broker, Out]:
    if isinstance(message.item, Report):
        return _pub_report(broker, source, message.item)
    broker = _keeping(broker, source, message.item)
    return _routed(broker, source, message.item)


def _keeping(broker: Broker, origin: Hashable, item: Notification) -> Broker:
    """With the latest of an origin in the cache, which is bounded: the longest stored go first, some at a time."""
    recent = broker.recent.changed_by({origin: item})
    if len(recent) > RECENT:
        recent = recent.changed_by({}, crowded_out(recent, RECENT // 2, _published))
    return changed(broker, recent=recent)


def _published(item: Notification) -> float:
    return item.published


def _pub_report(broker: Broker, source: Hashable, report: Report) -> tuple[Broker, Out]:
    """A client tells its state: its subscriptions are sub and unsub, its publications are pub."""
    assert broker.world is not None
    before = {n: s for n, s in broker.table.of(source).items() if isinstance(s, Interest)}
    after = interests_of(broker.world, report, before.values(), broker.rules.blur_m)
    different = [n for n in {**before, **after} if before.get(n) is not after.get(n)]
    gone = [n for n in before if n not in after]
    table = broker.table.without(gone, source)
    if broker.rules.cyclic:  # a client that came from elsewhere: the way there is the older one
        table = _nowhere(table, [n for n in after if n not in before])
    table = table.with_(after.values(), source)
    arriving = dict(broker.arriving)
    if source in arriving:
        arriving[source] = _without(arriving[source], *gone)
    broker = changed(homes.unmatched(broker, gone), table=table, arriving=arriving)
    if broker.rules.cyclic:
        versions = {n: after[n].version for n in different if n in after}
        broker = changed(broker, seen=broker.seen.changed_by(versions))
    broker, out = reports.received(broker, source, report)
    if different:
        broker, more = table_changed(broker, different)
        out = out + more
    return broker, out


def _forward(broker: Broker, source: Hashable, message: Forward) -> tuple[Broker, Out]:
    if isinstance(message.item, Report):
        return reports.received(broker, source, message.item, message.hops, message.suspended, message.retold)
    return _routed(broker, source, message.item, message.hops)


def _routed(broker: Broker, source: Hashable, item: Notification, hops: int = 0) -> tuple[Broker, Out]:
    """To Γ_B(ν): notify local clients, forward to neighbours."""
    if broker.rules.cyclic:
        numbers = broker.heard.get(item.origin, ())
        if item.number in numbers:
            return changed(broker, suppressed=broker.suppressed + 1), []
        broker = changed(broker, heard=broker.heard.changed_by({item.origin: (*numbers, item.number)[-HEARD:]}))
    destinations = broker.table.destinations(item, but=source)
    wasted = source in broker.neighbours and not destinations
    out: Out = []
    for destination in sorted(destinations, key=str):
        if destination in broker.neighbours:
            out.append(Envelope(broker.name, destination, Forward(item, hops + 1)))
            continue
        told = [item]
        if destination in broker.composing:
            broker, told = _composed(broker, destination, item)
        out += [Envelope(broker.name, destination, Notify(n, hops=hops)) for n in told]
    if source in broker.neighbours and not destinations <= broker.neighbours:
        broker = _keeping(broker, item.origin, item)
    return changed(broker, false_forwards=broker.false_forwards + wasted) if wasted else broker, out


def _composed(broker: Broker, client: Hashable, item: Notification) -> tuple[Broker, list[Notification]]:
    """What a client with composite events is told of a notification: itself, and the events that it completes."""
    events = dict(broker.composing[client])
    parts = {s.name for event, _ in events.values() for s in event.subscriptions}
    plain = any(name not in parts for name in broker.table.of(client).accepting(item))
    told = [item] if plain else []
    for name, (event, seen) in events.items():
        seen, made = event.told(item, seen)
        events[name] = (event, seen)
        told += [made] if made is not None else []
    return changed(broker, composing={**broker.composing, client: events}), told


def _query(broker: Broker, source: Hashable, message: Query) -> tuple[Broker, Out]:
    """The look-up service (II.C): who could satisfy it; or, from the cache, what does, the newest last (VIII).

    The cache knows what local clients published or were told. A provider publishes only what somebody wants: the
    newest that satisfies a subscription may have been true once and not be so any longer, and nothing here says that.
    Who asks bounds that by the age.
    """
    asked = message.subscription
    if message.ask == "value":
        cached = fresh(broker.recent, message.now, message.age, _published)
        found: tuple[Any, ...] = tuple(sorted((n for n in cached.values() if asked.accepts(n)), key=_published))
    else:
        can = broker.providers.values() if isinstance(asked, Subscription) else ()
        found = tuple((c.name, c.endpoint) for c in can if asked.possible(c.capabilities))  # type: ignore[attr-defined]
    return broker, [Envelope(broker.name, source, Answer(asked.name, found))]


# -- clients that move -------------------------------------------------------------------------------------


def _attach(broker: Broker, source: Hashable, message: Attach) -> tuple[Broker, Out]:
    """A client came from another broker: ask that one for its pairs, or take the client's word for them."""
    client = message.client
    broker = _joined(broker, broker.clients.get(client, LocalClient(client)))
    broker = changed(
        homes.unmatched(broker, message.believed),
        departing=broker.departing - {client},
        arriving={**broker.arriving, client: message.believed},
    )
    if message.log:
        log = reports.joined(broker.logs.get(client, ()), message.log)
        broker = changed(broker, logs=broker.logs.changed_by({client: log}))
    if message.previous is None or message.previous == broker.name:
        return changed(broker, resyncing=broker.resyncing | {client}), []
    asked = Handover(client, broker.name, message.number, tuple(message.believed))
    return broker, [Envelope(broker.name, message.previous, asked, to=message.previous)]


def settled(broker: Broker, client: Hashable) -> Broker:
    """Nobody knows the client's pairs but itself, and it has waited for what is there: what differs is told now."""
    return arrived(broker, client, {}) if client in broker.resyncing and client in broker.arriving else broker


def arrived(broker: Broker, client: Hashable, pairs: Mapping[Hashable, Mapping[Hashable, int]]) -> Broker:
    """A client's pairs are here. What it was told counts: what its old home told it in vain is told again."""
    found = {
        name: {p: pairs.get(name, {}).get(p, generation) for p, generation in believed.items()}
        for name, believed in broker.arriving[client].items()
    }
    return changed(
        homes.matched(broker, found),
        arriving=_without(broker.arriving, client),
        fresh={**broker.fresh, client: False},
    )


def _handover(broker: Broker, source: Hashable, message: Handover) -> tuple[Broker, Out]:
    here = broker.known.get(message.client)
    if here is not None and here.came == message.client and here.report.number >= message.number:
        return broker, []  # it is back already
    names = list(dict.fromkeys([*broker.table.of(message.client), *message.subscriptions]))
    pairs = {n: broker.matching.get(n, {}) for n in names}
    logs = broker.logs if broker.world is not None and broker.world.remembers else {}
    broker = changed(homes.unmatched(broker, names), departing=broker.departing | {message.client})
    moved = Moved(message.client, pairs, logs)
    return broker, [Envelope(broker.name, message.to, moved, to=message.to)]


def _moved(broker: Broker, source: Hashable, message: Moved) -> tuple[Broker, Out]:
    done = [Envelope(broker.name, source, Attached(message.client), to=str(source))]
    if message.client not in broker.arriving or message.client in broker.resyncing:
        return broker, done  # it is not waited for any longer
    logs = {client: reports.joined(broker.logs.get(client, ()), log) for client, log in message.logs.items()}
    broker = arrived(changed(broker, logs=broker.logs.changed_by(logs)), message.client, message.matching)
    return broker, done


def _attached(broker: Broker, source: Hashable, message: Attached) -> tuple[Broker, Out]:
    """The client's new home has everything: nothing of it stays here."""
    client = message.client
    here = broker.known.get(client)
    newer = here is None or here.came != client or here.report.number < message.number
    outdated = client in broker.clients and message.number > UNNUMBERED and newer
    if client not in broker.departing and not outdated:
        return broker, []
    names = list(broker.table.of(client))
    broker = changed(
        homes.unmatched(broker, names),
        clients=broker.clients.changed_by({}, [client]),
        providers=broker.providers.changed_by({}, [client]),
        table=broker.table.forget(client),
        departing=broker.departing - {client},
        arriving=_without(broker.arriving, client),
        resyncing=broker.resyncing - {client},
    )
    broker, out = table_changed(broker, names)
    stale = client in broker.known and broker.known[client].came == client
    broker, more = reports.retract(broker, [client] if stale else [])
    return broker, out + more


def _fetch(broker: Broker, source: Hashable, message: Fetch) -> tuple[Broker, Out]:
    logs = Logs(message.client, broker.logs.get(message.client, ()))
    return broker, [Envelope(broker.name, message.to, logs, to=message.to)]


def _logs(broker: Broker, source: Hashable, message: Logs) -> tuple[Broker, Out]:
    log = reports.joined(broker.logs.get(message.client, ()), message.log)
    return changed(
        broker,
        logs=broker.logs.changed_by({message.client: log}),
        fresh={**broker.fresh, message.client: broker.fresh.get(message.client, False)},
    ), []


# -- links ---------------------------------------------------------------------------------------------------


def linked(broker: Broker, neighbour: str, replaces: str | None = None) -> tuple[Broker, Out]:
    """A link is there, new or again: tell the whole table. What was known from there stays until the other end is done.

    ``replaces``: a neighbour that is gone for good, in whose place this one is. What came from that one stays until it
    comes from here, or is given up.
    """
    table = broker.table
    if replaces is not None:
        table = table.with_(table.of(replaces).values(), neighbour).forget(replaces)
    broker = changed(broker, neighbours=(broker.neighbours | {neighbour}) - ({replaces} if replaces else set()))
    there = frozenset(
        client for client, k in broker.known.items() if k.came == neighbour or reports.is_lost(broker, k)
    )
    broker = changed(
        broker,
        table=table,
        announced=_without(broker.announced, neighbour, replaces),
        told=_without(broker.told, neighbour, replaces),
        unconfirmed={**_without(broker.unconfirmed, replaces), neighbour: there},
    )
    wanted = broker.table.beyond(neighbour)
    news = announcement(NONE, wanted, wanted, broker.rules.routing)
    broker = changed(broker, announced={**broker.announced, neighbour: news.applied(NONE)})
    update = TableUpdate(broker.name, news.subscriptions, (), sync=True, links=tuple(broker.links.items()))
    return broker, [Envelope(broker.name, neighbour, update)]


def _anew(broker: Broker, source: Hashable, message: Anew) -> tuple[Broker, Out]:
    """Local clients are told as news, under a number of this move, and everybody behind here does the same.

    So the new way is the newer one for whoever hears of it, however long what was told by the old one is on its way.
    """
    out = [Envelope(broker.name, n, message) for n in sorted(broker.neighbours - {str(source)})]
    for client in broker.clients:
        here = broker.known.get(client)
        if here is not None and here.came == client:
            number = (*here.report.number[:2], message.move)
            broker, told = reports.received(broker, client, here.report._replace(number=number), retold=True)
            out += told
    return broker, out


def forgotten(broker: Broker, neighbour: str) -> tuple[Broker, Out]:
    """A neighbour is gone for good: nothing that led to it stays; what came from it comes another way, or is given up.

    In a cyclic overlay, where nothing was broken before, ways are found anew as after a break that is repaired at once,
    and what came from there is uncertain until it has come by one of them.
    """
    names = list(broker.table.of(neighbour))
    finds_ways = broker.rules.cyclic and link(broker.name, neighbour) not in broker.broken
    broker = changed(
        broker,
        neighbours=broker.neighbours - {neighbour},
        table=broker.table.forget(neighbour),
        announced=_without(broker.announced, neighbour),
        told=_without(broker.told, neighbour),
        unconfirmed=_without(broker.unconfirmed, neighbour),
    )
    behind = [c for c, k in broker.known.items() if k.came == neighbour]
    if finds_ways:
        broker, out = reports.suspend(broker, neighbour, behind, "-".join(link(broker.name, neighbour)))
        broker, turned = _turned(broker, neighbour, broken=True)
        out += turned
    else:  # in a tree it has moved, and is told as news where it is now
        broker, out = reports.retract(broker, behind if broker.rules.cyclic else [])
    broker, more = table_changed(broker, names)
    broker, mended = _turned(broker, neighbour, broken=False)
    return broker, out + more + mended


def given_up(broker: Broker) -> tuple[Broker, Out]:
    """What came from neighbours that are gone, and by no other way since, is not there any longer."""
    gone = [c for c, k in broker.known.items() if reports.is_lost(broker, k)]
    unconfirmed = {n: waiting - set(gone) for n, waiting in broker.unconfirmed.items()}
    return reports.retract(changed(broker, unconfirmed=unconfirmed), gone)


def out_of_reach(broker: Broker, client: Hashable) -> tuple[Broker, Out]:
    """A local client does not answer: what it was like last is uncertain until it attaches again."""
    return reports.suspend(broker, client, [client], f"{broker.name}-{client}")


def cut(broker: Broker, neighbour: str) -> tuple[Broker, Out]:
    """The link to a neighbour broke: what came from there is uncertain until it is repaired."""
    broker, out = _turned(broker, neighbour, broken=True)
    behind = [c for c, k in broker.known.items() if k.came == neighbour]
    broker, more = reports.suspend(broker, neighbour, behind, "-".join(link(broker.name, neighbour)))
    return broker, out + more


def _turned(broker: Broker, neighbour: str, broken: bool) -> tuple[Broker, Out]:
    """A link of one's own broke or was repaired: count that, and spread it."""
    way = link(broker.name, neighbour)
    times = broker.links.get(way, 0)
    return _links_heard(broker, neighbour, ((way, times + 1),)) if times % 2 != broken else (broker, [])


def _links_heard(
    broker: Broker, source: Hashable, states: Iterable[tuple[tuple[str, str], int]]
) -> tuple[Broker, Out]:
    """What is newer goes on to everybody else; once all is repaired, what waited is decided."""
    news = {way: times for way, times in states if times > broker.links.get(way, 0)}
    if not news:
        return broker, []
    broker, rerouted = _rerouted(changed(broker, links={**broker.links, **news}))
    if not broker.is_cut_off:
        broker = changed(broker, fresh={**dict.fromkeys(broker.clients, False), **broker.fresh})
    told = sorted(broker.neighbours - {str(source)})
    return broker, [Envelope(broker.name, n, Links(tuple(news.items()))) for n in told] + rerouted


def _rerouted(broker: Broker) -> tuple[Broker, Out]:
    """Where there may be another way, local subscriptions are announced anew, and find it."""
    if not broker.rules.cyclic:
        return broker, []
    changes, names = sum(broker.links.values()), []
    for client in broker.clients:
        held = broker.table.of(client)
        again = [replace(s, version=(s.version[0], changes)) for s in held.values()]
        broker = changed(
            broker,
            table=broker.table.with_(again, client),
            seen=broker.seen.changed_by({s.name: s.version for s in again}),
        )
        names += list(held)
    return table_changed(broker, names)


def _links(broker: Broker, source: Hashable, message: Links) -> tuple[Broker, Out]:
    return _links_heard(broker, source, message.states)


def _suspended(broker: Broker, source: Hashable, message: Suspended) -> tuple[Broker, Out]:
    return reports.suspend(broker, source, message.clients, message.where)


def _resend(broker: Broker, source: Hashable, message: Resend) -> tuple[Broker, Out]:
    return reports.resent(broker, str(source), message.reports)


def _synced(broker: Broker, source: Hashable, message: Synced) -> tuple[Broker, Out]:
    """The neighbour has told all that it knows: what it did not name is not there any longer."""
    left = broker.unconfirmed.get(str(source), frozenset())
    here = {c: broker.known[c] for c in left if c in broker.known}
    lost = frozenset(c for c, k in here.items() if reports.is_lost(broker, k))
    unconfirmed = {**_without(broker.unconfirmed, source), **({str(source): lost} if lost else {})}
    broker = changed(broker, unconfirmed=unconfirmed)
    broker, out = reports.retract(broker, [c for c, k in here.items() if k.came == source])
    for way in [way for way in broker.broken if broker.name in way]:
        (other,) = set(way) - {broker.name}
        if other == source or other not in broker.neighbours:
            broker, more = _turned(broker, other, broken=False)
            out += more
    return broker, out


_HANDLERS: dict[type, Callable[[Broker, Hashable, Any], tuple[Broker, Out]]] = {
    Register: _register, Leave: _leave, Sub: _sub, Unsub: _unsub, TableUpdate: _table_update,
    Pub: _pub, Forward: _forward, Query: _query, Synced: _synced, Suspended: _suspended, Links: _links,
    Anew: _anew, Resend: _resend,
    Attach: _attach, Handover: _handover, Moved: _moved, Attached: _attached, Fetch: _fetch, Logs: _logs,
}  # fmt: skip
