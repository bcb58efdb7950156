"""The home broker of a subscription: where M is decided and transitions are told (Subject Spaces, 4.6 and 4.7).

Pair history lives here, and moves with the client: which publications match each local subscription now, and, where a
filter looks back in time, the past of every client that is known here. Decisions are those of the reference engine,
over the states that reached this broker under the source's own instants. What arrives late changes the past that
filters look back on, and is told when it arrives.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from workbench.brokering.broker import Content, Message
from workbench.brokering.federation.interests import Interest, Report, World
from workbench.brokering.federation.messages import Envelope, Notify
from workbench.brokering.federation.state import Broker, Out
from workbench.brokering.values import changed
from workbench.engines.reference import Reference, naming
from workbench.model.history import Client, History, Party, State, States
from workbench.model.pubsub import PUBLICATION


def evaluated(broker: Broker, t: int) -> tuple[Broker, Out]:
    """Compare M of the local subscriptions at t with M before, and tell the difference."""
    world = broker.world
    if world is None:
        return broker, []
    homes = _concerned(broker)
    reference = Reference(world.scenario, history(broker, t), world.clock, world.metric)
    decided: dict[Hashable, Mapping[Hashable, int]] = {}
    out: Out = []
    everything = world.remembers or any(i.thirds for i in homes.values())
    undecided: set[Hashable] = set()
    withheld: list[tuple[Hashable, str]] = []
    fresh = _publications(broker, [c for c in broker.fresh if c in broker.known])
    publications: list[Party] | None = None
    hidden: list[tuple[Party, str]] = []
    for name, interest in homes.items():
        assert isinstance(name, Party)
        before = broker.matching.get(name, {})
        # Third parties that are cut off may be anywhere: nothing is decided until they are back.
        if interest.thirds and (where := _cut_off(broker, interest.thirds)):
            undecided.add(name)
            withheld.append((name, where))
            continue
        whole = everything or name.client in broker.fresh or interest.name not in broker.matching
        if whole and publications is None:
            publications = _publications(broker, broker.publishing)
            hidden = _hidden(broker)
        asked = (publications or []) if whole else fresh
        after = {p: g for p, g in before.items() if _stays(broker, p.client, whole)}  # type: ignore[attr-defined]
        after.update({p: reference.generation(p, t) for p in asked if reference.pair_matches(p, name, t)})
        if whole:  # what would be told, if those who are cut off still are as they were
            held = ((p, where) for p, where in hidden if reference.pair_matches(p, name, t) != (p in before))
            withheld += [(name, where) for _, where in held]
            withheld += [(name, "-".join(broker.broken[0])) for p in after if p.client not in broker.known]  # type: ignore[attr-defined]
        decided[name] = after
        resync = name.client in broker.resyncing or name in broker.undecided
        out += _told(broker, world, name, before, after, t, resync)
    false_forwards = broker.false_forwards + _in_vain(broker, decided, homes)
    broker = changed(
        matched(broker, decided),
        fresh={},
        news={},
        undecided=frozenset(undecided),
        withheld=tuple(withheld),
        resyncing=frozenset(c for c in broker.resyncing if c in broker.arriving),
        false_forwards=false_forwards,
    )
    return broker, out


def _stays(broker: Broker, client: Hashable, whole: bool) -> bool:
    """Whether pairs with a client stay as they were: nothing is certain of it, or nothing is new."""
    known = broker.known.get(client)
    if known is None and broker.is_cut_off and client not in broker.fresh:
        return True  # a pair came along with its consumer, and of the publication nobody can say anything here
    return (known is not None and bool(known.suspended)) or not (whole or client in broker.fresh)


def _cut_off(broker: Broker, followed: Iterable[str]) -> str:
    """Where the way to third parties is broken; empty where they all are certain."""
    if broker.is_cut_off:
        return "-".join(broker.broken[0])
    away = (k.suspended for c, k in broker.known.items() if k.suspended and _is_followed(broker, c, followed))
    return next(away, "")


def _publications(broker: Broker, clients: Iterable[Hashable]) -> list[Party]:
    """The publications of these clients, as far as they are certain."""
    return [p for c in clients if not broker.known[c].suspended for p in _published(broker, c)]


def _hidden(broker: Broker) -> list[tuple[Party, str]]:
    """The publications that are not certain, as they were last, and where the way to each is broken."""
    away = [(c, broker.known[c].suspended) for c in broker.publishing if broker.known[c].suspended]
    return [(p, where) for c, where in away for p in _published(broker, c)]


def _published(broker: Broker, client: Hashable) -> list[Party]:
    assert broker.world is not None
    state = broker.known[client].report.state
    return [
        Party(name, client)  # type: ignore[arg-type]
        for name in (state.instances if state is not None else ())
        if broker.world.scenario.population(name).role == PUBLICATION
    ]


def _concerned(broker: Broker) -> dict[Hashable, Interest]:
    """The local subscriptions that may have to be decided anew."""
    assert broker.world is not None
    looks_around = broker.world.remembers or any(
        isinstance(s, Interest) and s.thirds and s.client in broker.clients
        for s in broker.table.unplaced(broker.neighbours)
    )
    if looks_around or broker.resyncing or broker.undecided:
        return local_subscriptions(broker)
    names: dict[tuple[Hashable, Hashable], None] = {}
    for client in broker.fresh:
        names.update(dict.fromkeys((client, name) for name in broker.table.of(client)))
        names.update(dict.fromkeys((name.client, name) for name in broker.watching.get(client, ())))  # type: ignore[attr-defined]
        if client in broker.known:
            names.update(dict.fromkeys(broker.table.accepting(broker.known[client].report, broker.neighbours)))
    away = set(broker.arriving) | broker.departing
    return {
        name: interest
        for client, name in names
        if client in broker.clients and client not in away
        if isinstance(interest := broker.table.of(client).get(name), Interest)
    }


def matched(broker: Broker, pairs: Mapping[Hashable, Mapping[Hashable, int]]) -> Broker:
    """The broker with these pairs of local subscriptions, and in whose hands each publication is."""
    watching: dict[Hashable, set[Hashable]] = {}
    for name, after in pairs.items():
        before = {p.client for p in broker.matching.get(name, {})}  # type: ignore[attr-defined]
        now = {p.client for p in after}  # type: ignore[attr-defined]
        for client in before ^ now:
            held = watching.setdefault(client, set(broker.watching.get(client, ())))
            held.symmetric_difference_update({name})
    watched = {c: frozenset(names) for c, names in watching.items() if names}
    return changed(
        broker,
        matching=broker.matching.changed_by(pairs),
        watching=broker.watching.changed_by(watched, [c for c, names in watching.items() if not names]),
    )


def unmatched(broker: Broker, names: Iterable[Hashable]) -> Broker:
    """The broker without the pairs of these subscriptions."""
    gone = list(names)
    broker = matched(broker, {name: {} for name in gone})
    return changed(broker, matching=broker.matching.changed_by({}, gone))


def instants(broker: Broker, after: int, until: int) -> list[int]:
    """The instants at which time alone may change M here."""
    world = broker.world
    if world is None or not world.remembers or not broker.matching:
        return []
    reference = Reference(world.scenario, history(broker, until), world.clock, world.metric)
    return [t for t in reference.evaluation_instants(until) if after < t <= until]


def local_subscriptions(broker: Broker) -> dict[Hashable, Interest]:
    """The subscriptions that are at home here, without those whose pairs are on their way."""
    away = set(broker.arriving) | broker.departing
    return {
        s.name: s
        for client in broker.clients
        if client not in away
        for s in broker.table.of(client).values()
        if isinstance(s, Interest)
    }


def history(broker: Broker, t: int) -> History:
    """The states of the clients known here, over time where filters look back."""
    world = broker.world
    assert world is not None
    if not world.remembers:
        return History.of(world.scenario, {t: _Present(broker)})
    current = {c: k.report for c, k in broker.known.items()}
    past: dict[int, dict[Any, State]] = {}
    for client, report in current.items():
        for entry in broker.logs.get(client, (report,)):
            if entry.state is not None and entry.t <= t:
                past.setdefault(entry.t, {})[client] = entry.state
    running: dict[Client, State] = {}
    found: dict[int, States] = {}
    for instant in sorted(past):
        running = {**running, **past[instant]}
        found[instant] = running
    return History.of(world.scenario, found)


class _Present(Mapping[Client, State]):
    """The latest states of the clients known here, as they are asked for."""

    def __init__(self, broker: Broker) -> None:
        self.known = broker.known

    def __getitem__(self, client: Client) -> State:
        state = self.known[client].report.state
        if state is None:
            raise KeyError(client)
        return state

    def __iter__(self) -> Iterator[Client]:
        return (c for c, k in self.known.items() if k.report.state is not None)  # type: ignore[misc]

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _told(
    broker: Broker,
    world: World,
    subscription: Party,
    before: Mapping[Hashable, int],
    after: Mapping[Hashable, int],
    t: int,
    resync: bool,
) -> Out:
    left = [p for p, generation in before.items() if after.get(p) != generation]
    come = [p for p, generation in after.items() if before.get(p) != generation]
    lasting = [p for p in left if not world.scenario.population(p.population).transient]  # type: ignore[attr-defined]
    out: Out = []
    for kind, parties in (("unmatch", lasting), ("match", come)):
        if parties:
            ordered = tuple(sorted(parties, key=repr))
            contents = tuple(_content(broker, world, p) for p in ordered)
            called = naming(world.scenario.subscriptions)(subscription)
            message = Message(world.clock.shown(t), kind, called, contents)
            caused = _caused(broker, [subscription, *parties], t)
            travelled = _travelled(broker, ordered)
            hops = max((passed for _, passed in travelled), default=0)
            notify = Notify(message, resync, caused, hops, subscription, ordered, travelled)
            out.append(Envelope(broker.name, subscription.client, notify))
    return out


def _caused(broker: Broker, parties: Iterable[Any], t: int) -> int:
    """When that happened at its source which brought a transition about: t itself, if it was time alone."""
    clients = [p.client for p in parties]
    if not any(c in broker.fresh for c in clients):
        return t
    at = {c: broker.known[c].report.t for c in clients if c in broker.known}
    at |= {c: broker.news[c][-1][0].t for c in clients if c in broker.news}
    return max(at.values(), default=t)


def _travelled(broker: Broker, publications: Iterable[Any]) -> tuple[tuple[Report, int], ...]:
    """The news of these publications, with how many links each passed; none where what was known here is told of."""
    clients = dict.fromkeys(p.client for p in publications)
    return tuple(found for c in clients for found in broker.news.get(c, ()))


def _content(broker: Broker, world: World, publication: Any) -> Content:
    called = naming(world.scenario.publications)(publication)
    known = broker.known.get(publication.client)
    state = known.report.state if known is not None else None
    if state is None or publication.population not in state.instances:
        return Content(called, {}, {})
    return Content(called, state.instances[publication.population].regions, state.values)


def _in_vain(
    broker: Broker, decided: Mapping[Hashable, Mapping[Hashable, int]], homes: Mapping[Hashable, Interest]
) -> int:
    """How many reports were forwarded here for nothing: no pair of theirs matched before or matches now."""
    useless = {c for c, unused in broker.fresh.items() if unused and not broker.watching.get(c)}
    followed = frozenset().union(*(i.thirds for i in homes.values())) if homes else frozenset()
    for pairs in decided.values():
        useless -= {p.client for p in pairs}  # type: ignore[attr-defined]
    return sum(not _is_followed(broker, client, followed) for client in useless)


def _is_followed(broker: Broker, client: Hashable, followed: Iterable[str]) -> bool:
    known = broker.known.get(client)
    return known is not None and any(name in followed for name in known.report.ever)
