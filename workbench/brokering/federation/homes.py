"""The home broker of a subscription: where M is decided and transitions are told (Subject Spaces, 4.6 and 4.7).

Pair history lives here, and moves with the client: which publications match each local subscription now, and, where a
filter looks back in time, the past of every client that is known here. Decisions are those of the reference engine,
over the states that reached this broker under the source's own instants. What arrives late changes the past that
filters look back on, and is told when it arrives.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from workbench.brokering.broker import Content, Message
from workbench.brokering.federation.interests import Interest, World
from workbench.brokering.federation.messages import Envelope, Notify
from workbench.brokering.federation.state import Broker, Out
from workbench.engines.reference import Reference, naming
from workbench.model.history import Client, History, Party, State, States
from workbench.model.pubsub import PUBLICATION


def evaluated(broker: Broker, t: int) -> tuple[Broker, Out]:
    """Compare M of the local subscriptions at t with M before, and tell the difference."""
    world = broker.world
    if world is None:
        return broker, []
    homes = local_subscriptions(broker)
    reference = Reference(world.scenario, history(broker, t), world.clock, world.metric)
    matching = dict(broker.matching)
    out: Out = []
    everything = world.remembers or any(i.thirds for i in homes.values())
    undecided: set[Hashable] = set()
    uncertain = {c for c, k in broker.known.items() if k.suspended}
    live = {c: k.report.state for c, k in broker.known.items() if k.report.state is not None and not k.suspended}
    publications = [
        Party(name, client)  # type: ignore[arg-type]
        for client, state in live.items()
        for name in state.instances
        if world.scenario.population(name).role == PUBLICATION
    ]
    for name, interest in homes.items():
        assert isinstance(name, Party)
        before = broker.matching.get(name, {})
        # Third parties that are cut off may be anywhere: nothing is decided until they are back.
        if interest.thirds and (broker.is_cut_off or any(_is_followed(broker, c, interest.thirds) for c in uncertain)):
            undecided.add(name)
            continue
        whole = everything or name.client in broker.fresh or interest.name not in broker.matching
        asked = publications if whole else [p for p in publications if p.client in broker.fresh]
        stay = uncertain if whole else {p.client for p in before} - set(broker.fresh) | uncertain  # type: ignore[attr-defined]
        after = {p: g for p, g in before.items() if p.client in stay}  # type: ignore[attr-defined]
        after.update({p: reference.generation(p, t) for p in asked if reference.pair_matches(p, name, t)})
        matching[name] = after
        resync = name.client in broker.resyncing or name in broker.undecided
        out += _told(broker, world, name, before, after, t, resync)
    broker = replace(
        broker,
        matching=matching,
        fresh={},
        undecided=frozenset(undecided),
        resyncing=frozenset(c for c in broker.resyncing if c in broker.arriving),
        false_forwards=broker.false_forwards + _in_vain(broker, matching, homes),
    )
    return broker, out


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
    current = {c: k.report for c, k in broker.known.items()}
    if not world.remembers:
        states: dict[int, States] = {t: {c: r.state for c, r in current.items() if r.state is not None}}  # type: ignore[misc]
        return History.of(world.scenario, states)
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
            origins = tuple(_origin(broker, p) for p in ordered)
            notify = Notify(message, resync, caused, origins, subscription, ordered)
            out.append(Envelope(broker.name, subscription.client, notify))
    return out


def _caused(broker: Broker, parties: Iterable[Any], t: int) -> int:
    """When that happened at its source which brought a transition about: t itself, if it was time alone."""
    clients = [p.client for p in parties]
    if not any(c in broker.fresh for c in clients):
        return t
    return max((broker.known[c].report.t for c in clients if c in broker.known), default=t)


def _origin(broker: Broker, publication: Any) -> str:
    known = broker.known.get(publication.client)
    return broker.name if known is None else known.report.origin


def _content(broker: Broker, world: World, publication: Any) -> Content:
    called = naming(world.scenario.publications)(publication)
    known = broker.known.get(publication.client)
    state = known.report.state if known is not None else None
    if state is None or publication.population not in state.instances:
        return Content(called, {}, {})
    return Content(called, state.instances[publication.population].regions, state.values)


def _in_vain(
    broker: Broker, matching: Mapping[Hashable, Mapping[Hashable, int]], homes: Mapping[Hashable, Interest]
) -> int:
    """How many reports were forwarded here for nothing: no pair of theirs matched before or matches now."""
    useless = {client for client, unused in broker.fresh.items() if unused}
    followed = frozenset().union(*(i.thirds for i in homes.values())) if homes else frozenset()
    for pairs in (*broker.matching.values(), *matching.values()):
        useless -= {p.client for p in pairs}  # type: ignore[attr-defined]
    return sum(not _is_followed(broker, client, followed) for client in useless)


def _is_followed(broker: Broker, client: Hashable, followed: Iterable[str]) -> bool:
    known = broker.known.get(client)
    return known is not None and any(name in followed for name in known.report.ever)
