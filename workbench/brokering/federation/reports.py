"""Reports on their way: which neighbour hears of which client's state.

A publication of ours is a state that lasts, so a broker keeps what it was told and tells a neighbour no more than
concerns it. For each neighbour it remembers the report that it told last. The rule, at every broker alike:

    a neighbour is told of a client's state if one of its subscriptions accepts that state,
    or accepted the one that the neighbour was told last.

So nobody misses an exit, a new subscription hears of what is there already, and a broker that was silent because of
covering answers from what it knows. What a neighbour told is kept only while an announced subscription accepts it,
because only that long the neighbour goes on telling; both ends forget at the same point of their conversation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from workbench.brokering.federation.covering import SIMPLE
from workbench.brokering.federation.interests import Interest, Report
from workbench.brokering.federation.layers import Layered
from workbench.brokering.federation.messages import Envelope, Fetch, Forward, Suspended
from workbench.brokering.federation.state import Broker, Known, Out
from workbench.brokering.federation.tables import NONE, Named, Routable
from workbench.brokering.values import changed
from workbench.model.pubsub import PUBLICATION

NOBODY: Layered[Hashable, Report] = Layered()


def received(
    broker: Broker, source: Hashable, report: Report, hops: int = 0, suspended: str = "", retold: bool = False
) -> tuple[Broker, Out]:
    """A report from a neighbour, or from a local client."""
    client = report.client
    before = broker.known.get(client)
    news = {**broker.news, client: (*broker.news.get(client, ()), (report, hops))}
    if report.state is None:
        stale = before is None or before.report.number > report.number or before.came != source
        return (broker, []) if stale else retract(changed(broker, news=news), [client])
    if before is not None and before.report.number >= report.number:
        return _heard_again(broker, source, before, report, hops, suspended)
    waiting = {n: c - {client} for n, c in broker.unconfirmed.items()}
    publishes = any(_is_publication(broker, name) for name in report.state.instances)
    broker = changed(
        broker,
        known=broker.known.changed_by({client: Known(report, source, hops, suspended)}),
        news=news,
        publishing=broker.publishing.changed_by({client: True} if publishes else {}, [client]),
        unconfirmed=waiting,
    )
    broker, fetch = _logged(broker, source, report)
    out: Out = []
    told = dict(broker.told)
    offer = report.offer
    again = before is not None and bool(before.suspended)
    wanting = [n for n in sorted(broker.neighbours - {source}) if broker.table.of(n).accept(report, offer)]  # type: ignore[arg-type]
    for neighbour in sorted(broker.neighbours - {source}):  # type: ignore[arg-type]
        wants = neighbour in wanting
        told[neighbour], sent = _tell(broker, neighbour, told.get(neighbour, NOBODY), report, wants, again, retold)
        out += sent
    local = source not in broker.neighbours
    useful = local or bool(out) or broker.fresh.get(client) is False
    broker = changed(broker, told=told, fresh={**broker.fresh, client: not useful})
    # Who told it was announced what another neighbour wants, and goes on telling.
    sure = local or (wanting and not broker.rules.cyclic)
    return (broker if sure else dropped(broker, [str(source)], only=client)), fetch + out


def _heard_again(
    broker: Broker, source: Hashable, before: Known, report: Report, hops: int, suspended: str
) -> tuple[Broker, Out]:
    """Nothing new: a neighbour confirms after a repair, or it came another way."""
    waiting = any(report.client in clients for clients in broker.unconfirmed.values())
    lost = is_lost(broker, before)
    if (waiting or lost or before.suspended) and before.report.number == report.number:
        left = {n: c - {report.client} for n, c in broker.unconfirmed.items()}
        known = broker.known.changed_by({report.client: Known(report, source, hops, before.suspended and suspended)})
        fresh = {**broker.fresh, report.client: False}
        broker, fetch = _logged(changed(broker, unconfirmed=left, known=known, fresh=fresh), source, report)
        if suspended:
            broker, out = suspend(broker, source, [report.client], suspended)
            return broker, fetch + out
        if not before.suspended and not lost:
            return broker, fetch
        broker, out = _resumed(broker, source, report, again=bool(before.suspended))
        return broker, fetch + out
    return changed(broker, suppressed=broker.suppressed + 1), []


def is_lost(broker: Broker, known: Known) -> bool:
    """Whether it came from a neighbour that is gone: there may be another way, by which it has not come yet."""
    return known.came not in broker.neighbours and known.came != known.report.client


def _resumed(broker: Broker, source: Hashable, report: Report, again: bool = True) -> tuple[Broker, Out]:
    """A client is certain again as it was: tell who came to want it meanwhile, and ``again`` who was told of it."""
    told = dict(broker.told)
    out: Out = []
    for neighbour in sorted(broker.neighbours):
        before = told.get(neighbour, NOBODY)
        wanted = broker.table.of(neighbour).accept(report)
        if neighbour != source and (again if report.client in before else wanted):
            told[neighbour] = before.changed_by({report.client: report})
            out.append(_forwarded(broker, neighbour, report, retold=True))
    return changed(broker, told=told), out


def _tell(
    broker: Broker,
    neighbour: str,
    told: Layered[Hashable, Report],
    report: Report,
    wants: bool,
    suspended: bool,
    retold: bool,
) -> tuple[Layered[Hashable, Report], Out]:
    """Tell one neighbour of a client, if it concerns it, or if it still waits; what it has been told after that."""
    before = told.get(report.client)
    if before is not None and before.number > report.number:
        return told, []
    waits = suspended and before is not None
    if not wants and not waits and not (before is not None and broker.table.of(neighbour).accept(before)):
        return told, []
    return told.changed_by({report.client: report}), [_forwarded(broker, neighbour, report, retold)]


def _forwarded(broker: Broker, neighbour: str, report: Report, retold: bool) -> Envelope:
    known = broker.known[report.client]
    return Envelope(broker.name, neighbour, Forward(report, known.hops + 1, known.suspended, retold))


def resent(broker: Broker, neighbour: str, dropped: Iterable[Report]) -> tuple[Broker, Out]:
    """A neighbour had to drop what it was told of these: tell it what is known of them now."""
    out: Out = []
    told = broker.told.get(neighbour, NOBODY)
    for report in dropped:
        known = broker.known.get(report.client)
        if known is None:  # it was taken back meanwhile
            out.append(Envelope(broker.name, neighbour, Forward(report._replace(state=None))))
        elif known.came != neighbour:
            told = told.changed_by({report.client: known.report})
            out.append(_forwarded(broker, neighbour, known.report, retold=False))
    return changed(broker, told={**broker.told, neighbour: told}), out


def retell(
    broker: Broker, neighbour: str, before: Named, new: Iterable[Routable]
) -> tuple[Broker, Out]:
    """A neighbour's subscriptions changed from ``before`` by ``new``: tell it what it now accepts and may not have.

    It has what it was told last, if its subscriptions accepted that all the time since.
    """
    added = NONE.changed_by({s.name: s for s in new})
    told = broker.told.get(neighbour, NOBODY)
    retold: dict[Hashable, Report] = {}
    out: Out = []
    followed = frozenset().union(*{s.thirds for s in added.values() if isinstance(s, Interest)})
    waiting = broker.unconfirmed.get(neighbour, frozenset())
    for client, known in broker.known.items() if added else ():
        last, report = told.get(client), known.report
        if known.came == neighbour or client in waiting or not _speaks(broker, report, followed):
            continue
        if last is not None and last.number == report.number and before.accept(report):
            continue
        if added.accept(report) or (last is not None and added.accept(last)):
            out.append(_forwarded(broker, neighbour, report, retold=True))
            retold[client] = report
    return (changed(broker, told={**broker.told, neighbour: told.changed_by(retold)}) if out else broker), out


def _speaks(broker: Broker, report: Report, followed: frozenset[str]) -> bool:
    """Whether a report can concern anybody: it publishes, or somebody follows it as a third party."""
    return any(_is_publication(broker, name) for name in report.ever) or not followed.isdisjoint(report.ever)


def _is_publication(broker: Broker, name: str) -> bool:
    return broker.world is not None and broker.world.scenario.population(name).role == PUBLICATION


def dropped(broker: Broker, neighbours: Iterable[str], only: Hashable = None) -> Broker:
    """Forget of neighbours' clients what no announced subscription accepts: nobody will tell when it changes."""
    gone = []
    for neighbour in neighbours:
        mine = [only] if only is not None else [c for c, k in broker.known.items() if k.came == neighbour]
        gone += [
            c
            for c in mine
            if c in broker.known
            and broker.known[c].came == neighbour
            and not broker.known[c].suspended
            and not _announced(broker, neighbour, broker.known[c].report)
        ]
    if not gone:
        return broker
    fresh = {**broker.fresh, **{c: broker.fresh.get(c, False) for c in gone}}
    known, publishing = broker.known.changed_by({}, gone), broker.publishing.changed_by({}, gone)
    # Who was told of them did the same: what it wants is announced.
    told = {n: reports.changed_by({}, gone) for n, reports in broker.told.items()}
    return changed(broker, known=known, publishing=publishing, told=told, fresh=fresh)


def _announced(broker: Broker, neighbour: str, report: Report) -> bool:
    """Whether a subscription that accepts a report was announced to a neighbour."""
    if broker.rules.routing == SIMPLE and not broker.rules.cyclic:
        return broker.table.wants(report, neighbour)  # all others' are announced, and the table has their index
    return broker.announced.get(neighbour, NONE).accept(report)


def retract(broker: Broker, clients: Iterable[Hashable]) -> tuple[Broker, Out]:
    """Clients that are known here no longer: tell those who were told of them."""
    out: Out = []
    gone, told, fresh = list(clients), dict(broker.told), dict(broker.fresh)
    for client in gone:
        last, hops = broker.known[client].report, broker.known[client].hops
        fresh[client] = False
        for neighbour in sorted(told):
            if client in told[neighbour]:
                told[neighbour] = told[neighbour].changed_by({}, [client])
                out.append(Envelope(broker.name, neighbour, Forward(last._replace(state=None), hops + 1)))
    known, publishing = broker.known.changed_by({}, gone), broker.publishing.changed_by({}, gone)
    return changed(broker, known=known, publishing=publishing, told=told, fresh=fresh), out


def suspend(broker: Broker, source: Hashable, clients: Iterable[Hashable], where: str) -> tuple[Broker, Out]:
    """The way to these clients is broken behind a neighbour: decide nothing on them, and tell who was told of them."""
    cut = [c for c in clients if c in broker.known and broker.known[c].came == source and not broker.known[c].suspended]
    if not cut:
        return broker, []
    known = broker.known.changed_by({c: changed(broker.known[c], suspended=where) for c in cut})
    out = []
    for neighbour in sorted(broker.told):
        theirs = tuple(c for c in cut if c in broker.told[neighbour])
        if neighbour != source and theirs:
            out.append(Envelope(broker.name, neighbour, Suspended(theirs, where)))
    return changed(broker, known=known), out


# -- the past ------------------------------------------------------------------------------------------------


def _logged(broker: Broker, source: Hashable, report: Report) -> tuple[Broker, Out]:
    """Keep the past of a client where filters look back; ask its origin for what was not forwarded."""
    if broker.world is None or not broker.world.remembers:
        return broker, []
    log = joined(broker.logs.get(report.client, ()), (report,))
    broker = changed(broker, logs=broker.logs.changed_by({report.client: log}))
    joined_at = report.number[0]
    whole = [r.number[1] for r in log if r.number[0] == joined_at] == list(range(1, report.number[1] + 1))
    if whole or source not in broker.neighbours or not _concerns_locals(broker, report):
        return broker, []
    return broker, [Envelope(broker.name, report.origin, Fetch(report.client, broker.name), to=report.origin)]


def _concerns_locals(broker: Broker, report: Report) -> bool:
    return any(
        isinstance(s, Interest) and s.accepts(report) for s, d in broker.table if d not in broker.neighbours
    )


def joined(one: tuple[Report, ...], two: Iterable[Any]) -> tuple[Report, ...]:
    """Two parts of one client's past, each report once, in the order of their numbers."""
    by_number = {r.number[:2]: r for r in (*one, *two)}
    return tuple(by_number[n] for n in sorted(by_number))
