"""What a federation promises, on random trees with joins, leaves, failures, moves and delays.

Beside the federation, one single broker is told the same; the two are compared as the promise says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from random import Random
from typing import Any

import networkx as nx
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from workbench.brokering.broker import Broker, Message
from workbench.brokering.federation.interests import Interest, Report, thirds
from workbench.brokering.federation.messages import TableUpdate
from workbench.brokering.federation.overlay import Overlay, link
from workbench.brokering.federation.simulated import Congestion, Device, Federation
from workbench.brokering.federation.state import Known, Rules
from workbench.brokering.federation.tables import Table
from workbench.model import (
    Scenario,
    Space,
    any_region,
    at_most,
    column,
    disc,
    held,
    latch,
    location,
    now,
    other,
    own,
    pi,
    publications,
    region,
    seconds,
    subscriptions,
    tau,
    visits,
)
from workbench.model.filters import Filter
from workbench.model.history import Client, Party

gas = Space("gas", price=int)
near = own.here.within(2, other.site, space=location)
far = own.here.within(3, other.site, space=location)
cheap = other.offer.enclosed_by(own.budget, space=gas)
entered = own.here.enclosed_by(any_region("stations.room"), space=location)
PRESENT = {
    "near": near,
    "cheap": cheap,
    "near and cheap": near & cheap,
    "near or cheap": near | cheap,
    "not near": ~near & cheap,
    "room": own.here.enclosed_by(other.room, space=location),
    "nearest": own.here.nearest(other.site, space=location) & cheap,
    "somewhere": entered & cheap,
}
LOOKING_BACK = {
    **PRESENT,
    "pause": near & (now - tau(entered) > seconds(3)),
    "left": far & (now - pi(near) <= seconds(4)),
    "dwell": held(near, seconds(2)) & cheap,
    "latched": latch(near, ~far) & cheap,
    "visited": cheap & (visits(near, last=1).mean() >= seconds(1)),
    "cheap since": cheap & (now - tau(near) > seconds(2)),
}


def world(filter: Filter) -> Scenario:
    """Stations and cars publish, drivers subscribe; cars and drivers are one client."""
    site = {"site": region(location, position=column.position)}
    stations = publications(
        "stations",
        rows="places",
        regions={
            **site,
            "room": region(location, position=disc(column.position, 1)),
            "offer": region(gas, price=column.price),
        },
        filter=other.here.within(4, own.site, space=location),
    )
    cars = publications(
        "cars",
        rows="fixes",
        lifetime=seconds(5),
        regions={**site, "offer": region(gas, price=1), "room": region(location, position=disc(column.position, 1))},
    )
    drivers = subscriptions(
        "drivers",
        rows="fixes",
        regions={
            "here": region(location, position=column.position),
            "budget": region(gas, price=at_most(column.budget)),
        },
        filter=filter,
    )
    return Scenario([location, gas], [stations, cars], [drivers])


MOST = 8
"""brokers at one time"""
MEMBERS = {"stations": "places", "cars": "fixes", "drivers": "fixes"}
positions = st.tuples(st.integers(0, 5), st.just(0))
ids = st.integers(1, 3)
ints = st.integers(0, 9)
prices = st.integers(0, 3)
blurs = st.sampled_from([0.0, 0.0, 1.0, float("inf")])


def tree(parents: list[int]) -> Overlay:
    """Each broker after the first joins one of those before it."""
    names = [f"B{i}" for i in range(len(parents) + 1)]
    return Overlay([(names[p % (i + 1)], names[i + 1]) for i, p in enumerate(parents)], names)


class Machine(RuleBasedStateMachine):
    """A federation and a single broker, side by side; each operation is an instant of its own."""

    filters = PRESENT
    routings: tuple[str, ...] = ("simple", "covering", "merging")
    looks_back = False
    moves_are_silent = True
    congestion: Congestion | None = None

    def overlay(self, parents: list[int]) -> Overlay:
        return tree(parents)

    def delay(self, a: str, b: str) -> float:
        return 0

    @initialize(
        data=st.data(),
        parents=st.lists(st.integers(0, 9), min_size=1, max_size=5),
        blur_m=blurs,
        seed=st.integers(0, 99),
    )
    def start(self, data: st.DataObject, parents: list[int], blur_m: float, seed: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.filters)))
        rules = Rules(routing=data.draw(st.sampled_from(self.routings)), blur_m=blur_m)
        self.draw = Random(seed)
        scenario = world(self.filters[name])
        looks_back = self.looks_back or self.filters is LOOKING_BACK
        self.federation = Federation(
            scenario,
            self.overlay(parents),
            rules=rules,
            delay=self.delay,
            looks_back=looks_back,
            patience=self.patience,
            congestion=self.congestion,
        )
        self.names = list(self.federation.brokers)
        self.single = Broker(scenario)
        self.there: dict[Client, set[str]] = {}
        self.left: set[Client] = set()
        self.ended: list[tuple[int, int, int]] = []
        self.t = 0
        self.failing: set[Any] = set()
        self.repairs: set[int] = set()
        self.departures: dict[int, Client] = {}
        self.withdrawn: dict[int, tuple[set[Client], set[Client]]] = {}
        for id in (1, 2):
            self.add("stations", id, (2 * id, 0), 1, id)
        self.add("drivers", 1, (1, 0), 2, 0)

    patience = 0

    def tick(self, step: int = 1) -> int:
        self.t += step
        return self.t

    def broker(self, index: int) -> str:
        alive = sorted(self.federation.brokers)
        return alive[index % len(alive)]

    def exists(self, population: str, id: int) -> bool:
        return any(repr(p) == f"{population}/{id}" for p in self.parties())

    def parties(self) -> list[Any]:
        return [p for q in self.single.scenario.populations for p in self.single._parties(q)]

    # -- operations, the same on both sides --------------------------------------------------------------------

    @rule(population=st.sampled_from(sorted(MEMBERS)), id=ids, at=positions, price=prices, broker=st.integers(0, 9))
    def add_one(self, population: str, id: int, at: tuple, price: int, broker: int) -> None:
        self.add(population, id, at, price, broker)

    def add(self, population: str, id: int, at: tuple, price: int, broker: int) -> None:
        t = self.tick()
        self.both_advance(t - 1)
        client = Client(MEMBERS[population], id)
        if self.exists(population, id) or (client in self.left and self.filters is LOOKING_BACK):
            return
        self.left.discard(client)
        cells = {"position": at, "price" if population == "stations" else "budget": price}
        self.single.add(population, id, t=t, **cells)
        self.federation.add(population, id, at=self.broker(broker), t=t, **cells)
        self.both_advance(t)

    @rule(id=ids, at=positions, table=st.sampled_from(["fixes", "places"]))
    def move(self, id: int, at: tuple, table: str) -> None:
        t = self.tick()
        self.both_advance(t - 1)
        if not any(p.client == Client(table, id) for p in self.parties()):
            return
        self.single.move((table, id), at, t=t)
        self.federation.move((table, id), at, t=t)
        self.both_advance(t)

    @rule(id=ids, price=prices)
    def reprice(self, id: int, price: int) -> None:
        t = self.tick()
        self.both_advance(t - 1)
        if self.exists("stations", id):
            self.single.update("stations", id, price=price, t=t)
            self.federation.update("stations", id, price=price, t=t)
        self.both_advance(t)

    @rule(id=ids, data=st.data())
    def change_filter(self, id: int, data: st.DataObject) -> None:
        t = self.tick()
        self.both_advance(t - 1)
        if self.exists("drivers", id):
            filter = self.filters[data.draw(st.sampled_from(sorted(self.filters)))]
            self.single.update("drivers", id, filter=filter, t=t)
            self.federation.update("drivers", id, filter=filter, t=t)
        self.both_advance(t)

    @rule(population=st.sampled_from(sorted(MEMBERS)), id=ids)
    def remove(self, population: str, id: int) -> None:
        t = self.tick()
        self.both_advance(t - 1)
        if self.exists(population, id):
            self.single.remove(population, id, t=t)
            self.federation.remove(population, id, t=t)
        self.both_advance(t)
        if population == "drivers":
            self.end(id)

    def end(self, driver: int) -> None:
        self.ended.append((len(self.federation.notifications), len(self.single.notifications), driver))

    @rule(id=ids, table=st.sampled_from(["fixes", "places"]))
    def leave(self, id: int, table: str) -> None:
        t = self.tick()
        self.both_advance(t - 1)
        client = Client(table, id)
        if client not in self.federation.devices:
            return
        for party in [p for p in self.parties() if p.client == client]:
            self.single.remove(party.population, id, t=t)
        if not self.federation.devices[client].connected:
            self.departures[t] = client
        self.federation.leave(client, t=t)
        self.left.add(client)
        self.both_advance(t)
        if table == "fixes":
            self.end(id)

    @rule(population=st.sampled_from(sorted(MEMBERS)), id=ids, at=positions, price=prices, broker=st.integers(0, 9))
    def leave_and_come_back(self, population: str, id: int, at: tuple, price: int, broker: int) -> None:
        self.leave(id, MEMBERS[population])
        self.add(population, id, at, price, broker)

    @rule(id=ids, table=st.sampled_from(["fixes", "places"]), broker=st.integers(0, 9))
    def attach(self, id: int, table: str, broker: int) -> None:
        t = self.tick()
        self.both_advance(t - 1)
        if Client(table, id) in self.federation.devices:
            self.federation.attach((table, id), self.broker(broker), t=t)
            if self.failing:
                self.repairs.add(t)
        self.both_advance(t)

    # -- brokers, of which a single one knows nothing --------------------------------------------------------

    @rule(index=st.integers(0, 9))
    def join_broker(self, index: int) -> None:
        t = self.tick()
        if len(self.federation.brokers) < MOST:
            parent, name = self.broker(index), f"N{len(self.names)}"
            self.names.append(name)
            self.federation.join_broker(name, parent, t=t)
        self.both_advance(t)

    @rule(index=st.integers(0, 9))
    def retire_broker(self, index: int) -> None:
        t = self.tick()
        if len(self.federation.brokers) > 2 and not self.failing:
            self.federation.retire_broker(self.broker(index), t=t)
            self.t = max(self.federation.settle(), t)  # it waits until all that it had is elsewhere
        self.both_advance(self.t)

    @rule(index=st.integers(0, 9), to=st.integers(0, 9))
    def relink(self, index: int, to: int) -> None:
        t = self.tick()
        there = self.federation.overlay
        if there.links and not self.failing:
            broker, old = there.links[index % len(there.links)][:: -1 if to % 2 else 1]
            rest = there.without_link(broker, old).graph
            others = sorted(nx.node_connected_component(rest, old) - {broker, old, *there.neighbours(broker)})
            if others:
                self.federation.relink(broker, old, others[to % len(others)], t=t)
                self.t = max(self.federation.settle(), t)
        self.both_advance(self.t)

    @rule(moves=st.lists(st.tuples(st.sampled_from(["attach", "join", "retire", "relink"]), ints, ints), max_size=4))
    def nothing_is_told_while_only_homes_and_brokers_move(self, moves: list[tuple[str, int, int]]) -> None:
        if self.failing or not self.moves_are_silent:
            return
        self.wait_for_nothing_more_to_happen()
        before = len(self.federation.notifications)
        for what, one, two in moves:
            if what == "attach":
                self.attach(1 + one % 3, ("fixes", "places")[one % 2], two)
            elif what == "join":
                self.join_broker(one)
            elif what == "retire":
                self.retire_broker(one)
            else:
                self.relink(one, two)
        self.wait_for_nothing_more_to_happen()
        assert len(self.federation.notifications) == before

    def wait_for_nothing_more_to_happen(self) -> None:
        """All is quiet, the cars have expired, and time brings nothing about in the filters any longer."""
        for _ in range(2):
            self.t = max(self.federation.settle(), self.t) + 10
            self.both_advance(self.t)
        self.t = max(self.federation.settle(), self.t)
        self.both_advance(self.t)

    @rule(step=st.integers(1, 6))
    def pass_time(self, step: int) -> None:
        self.both_advance(self.tick(step))

    def both_advance(self, t: int) -> None:
        self.single.advance(t)
        self.federation.advance(t)

    # -- what can be compared ----------------------------------------------------------------------------------

    def told(self) -> Counter:
        return Counter(tuple(row) for row in self.federation.notifications.itertuples(index=False))

    def expected(self) -> Counter:
        return Counter(tuple(row) for row in self.single.notifications.itertuples(index=False))

    def alternates(self) -> None:
        """No pair is told the same twice in a row while its subscription lives."""
        for pair, history in self.by_pair(self.federation, 0).items():
            kinds = [kind for _, kind in history]
            assert kinds == [("match", "unmatch")[i % 2] for i in range(len(kinds))], pair

    def by_pair(self, told_by: Federation | Broker, which: int) -> dict[tuple, list[tuple[int, str]]]:
        """What was told of each pair, in order; a subscription that ended and came again is another one."""
        found: dict[tuple, list[tuple[int, str]]] = {}
        for place, (t, kind, p, s) in enumerate(told_by.notifications.itertuples(index=False)):
            life = sum(end[which] <= place for end in self.ended if end[2] == s)
            found.setdefault((p, s, life), []).append((t, kind))
        return found

    @invariant()
    def tables_lead_to_clients_and_neighbours_only(self) -> None:
        if hasattr(self, "federation") and not self.failing:
            for broker in self.federation.brokers.values():
                assert {d for _, d in broker.table} <= set(broker.clients) | set(broker.neighbours)

    @invariant()
    def nothing_is_kept_of_who_left(self) -> None:
        """Once all is quiet; but for what promise 4 says."""
        if not hasattr(self, "federation") or self.failing or self.federation.env.peek() < float("inf"):
            return
        kept = {"seen"} if self.federation.rules.cyclic else set()
        kept |= {"known", "publishing", "logs", "told"} if self.federation.world.remembers else set()
        for broker in self.federation.brokers.values():
            for name in {field.name for field in fields(broker)} - {"rules", "world", *kept}:
                assert not self.left & clients_in(getattr(broker, name)), (broker.name, name)
        assert not self.left & clients_in([v for k, v in vars(self.federation).items() if k in DRIVER])


DRIVER = ("devices", "profiles", "_profiled", "_last", "_taken", "_lines")
"""what a federation holds beside its brokers and what it counted"""


def clients_in(given: Any) -> set[Client]:
    """Every client that a value speaks of."""
    if isinstance(given, Client):
        return {given}
    if isinstance(given, Party):
        return {given.client}
    if isinstance(given, Table):
        return clients_in([(s.name, d) for s, d in given])
    if isinstance(given, Mapping):
        return clients_in(list(given.items()))
    if isinstance(given, Report | Known | Device):
        return set().union(*(clients_in(getattr(given, name)) for name in ("client", "report", "came", "believed")
                             if hasattr(given, name)))  # fmt: skip
    if isinstance(given, list | tuple | set | frozenset):
        return set().union(*(clients_in(x) for x in given))
    return set()


class WithoutDelays(Machine):
    """Promise 1."""

    @invariant()
    def history_is_a_single_brokers(self) -> None:
        if hasattr(self, "federation"):
            assert self.told() == self.expected()
            assert {(repr(p), s.client.id) for p, s in self.federation.matches} == self.single.matches


class WithoutDelaysLookingBack(WithoutDelays):
    """Promise 1, with filters over time."""

    filters = LOOKING_BACK


class WithoutDelaysRemembering(WithoutDelays):
    """Promise 1, where filters that look back may come later; who left comes back all the same."""

    looks_back = True


class WithDelays(Machine):
    """Promise 2."""

    patience = 60

    def delay(self, a: str, b: str) -> float:
        return self.draw.choice([0, 0, 0.5, 1, 2, 3])

    @invariant()
    def nothing_is_told_twice(self) -> None:
        if hasattr(self, "federation"):
            self.alternates()

    def teardown(self) -> None:
        if not hasattr(self, "federation"):
            return
        quiet = max(self.federation.settle(), self.t) + 20
        self.both_advance(quiet)
        assert {(repr(p), s.client.id) for p, s in self.federation.matches} == self.single.matches
        assert self.federation.matches == self.federation.believed
        self.alternates()


class WithDelaysLookingBack(WithDelays):
    """Promise 2, with filters over time."""

    filters = LOOKING_BACK


class WithCongestion(WithDelays):
    """Promise 5, where notifications wait."""

    congestion = Congestion(1, "wait")


class WithCongestionThatDrops(WithDelays):
    """Promise 5, where they are dropped."""

    congestion = Congestion(1, "drop")

    @invariant()
    def what_is_dropped_is_counted_at_its_broker(self) -> None:
        if hasattr(self, "federation"):
            losses = [x for x in self.federation.counts.losses if x.why == "congested"]
            assert all(x.where in self.names and isinstance(x.about, Report) for x in losses)


def publisher(publication: str) -> Client:
    name, id = publication.split("/")
    return Client(MEMBERS[name], int(id))


def late(
    told: list[tuple[int, str]], single: list[tuple[int, str]], withdrawn: set[int]
) -> list[tuple[int, str]]:
    """What was told of a pair by resynchronisation; the rest must be a subsequence of what a single broker told.

    Late: it stands in the single broker's history at an earlier instant, was not told then, and after the instant at
    which it is told the pair is as the single broker has it. Withdrawn: the overlay closed over the dead broker of the
    publisher, or of a third party that the filter looks at; the next that is told of the pair makes it as the single
    broker has it.
    """
    found, place, away = [], 0, False
    for i, (t, kind) in enumerate(told):
        same = [j for j in range(place, len(single)) if single[j] == (t, kind)]
        earlier = [j for j in range(place, len(single)) if single[j][0] < t and single[j][1] == kind]
        withdraws = not same and not earlier and t in withdrawn
        again = not same and not earlier and away
        assert same or earlier or withdraws or again, f"{kind} at {t}, never told by a single broker: {told}, {single}"
        place = same[0] + 1 if same else earlier[-1] + 1 if earlier else place
        away = withdraws
        if not same:
            found.append((t, kind))
            last_of_instant = i + 1 == len(told) or told[i + 1][0] > t
            as_it_is = withdraws or ["unmatch", *(k for u, k in single if u <= t)][-1] == kind
            assert as_it_is or not last_of_instant, f"{kind} at {t} is not so: {told}, {single}"
    return found


class WithFailures(Machine):
    """Promise 3."""

    failed = False
    seen = 0
    broken_since: int | None = None

    @rule(index=st.integers(0, 9))
    def fail_link(self, index: int) -> None:
        t = self.tick()
        links = [x for x in self.federation.overlay.links if set(x) <= set(self.federation.brokers)]
        if links:
            a, b = links[index % len(links)]
            self.failed = True
            self.federation.fail_link(a, b, t=t)
            self.failing.add(link(a, b))
        self.both_advance(t)

    @rule(index=st.integers(0, 9))
    def fail_broker(self, index: int) -> None:
        t = self.tick()
        if len(self.federation.brokers) > 2 and not any(isinstance(x, str) for x in self.failing):
            broker = self.broker(index)
            self.failed = True
            self.federation.fail_broker(broker, t=t)
            self.failing = {x for x in self.failing if broker not in x} | {broker}
        self.both_advance(t)

    @rule(id=ids)
    def disconnect(self, id: int) -> None:
        t = self.tick()
        if Client("fixes", id) in self.federation.devices:
            self.failed = True
            self.federation.disconnect(("fixes", id), t=t)
            self.failing.add(("fixes", id, ""))
        self.both_advance(t)

    @rule(index=ints)
    def repair_one(self, index: int) -> None:
        """Others may go on failing; but dead brokers come after links, as promise 3 asks for."""
        if self.failing:
            links = sorted((x for x in self.failing if not isinstance(x, str)), key=str)
            waiting = links or sorted(self.failing)
            self.mend(waiting[index % len(waiting)])
            if not self.failing:
                self.repair()

    def mend(self, what: Any) -> None:
        t = self.tick()
        self.both_advance(t - 1)
        self.repairs.add(t)
        if isinstance(what, str):
            self.withdraw(t)
            self.federation.repair_broker(what, t=t)
        elif len(what) == 2:
            self.federation.repair_link(*what, t=t)
        else:
            device = self.federation.devices.get(Client(*what[:2]))
            if device is not None and device.home is not None:
                self.federation.attach(device.client, device.home, t=t)
        self.both_advance(t)
        self.failing -= {what}

    @rule()
    def repair(self) -> None:
        for what in sorted(self.failing, key=str):
            self.mend(what)
        t = self.tick()
        self.repairs.add(t)
        for client, device in list(self.federation.devices.items()):
            if device.home is None or not device.connected:
                self.federation.attach(client, device.home or self.broker(client.id), t=t)
        self.both_advance(t)
        self.failing = set()
        self.wait_until_quiet()
        assert {(repr(p), s.client.id) for p, s in self.federation.matches} == self.single.matches
        assert self.federation.matches == self.federation.believed

    def withdraw(self, t: int) -> None:
        """Who is nowhere when the overlay closes over its dead broker, and whose filters look at third parties."""
        devices, scenario = self.federation.devices, self.federation.world.scenario
        drivers = {c: d.state.instances["drivers"] for c, d in devices.items() if "drivers" in d.state.instances}
        looking = {c for c, i in drivers.items() if thirds(scenario, scenario.population("drivers"), i.filter)}
        self.withdrawn[t] = ({c for c, d in devices.items() if d.home is None}, looking)

    def wait_until_quiet(self) -> None:
        pass

    @invariant()
    def every_pair_is_told_in_turn(self) -> None:
        if hasattr(self, "federation"):
            self.alternates()

    @invariant()
    def what_is_told_is_a_part_of_a_single_brokers_history_but_for_resynchronisation(self) -> None:
        if hasattr(self, "federation"):
            single = self.by_pair(self.single, 1)
            for pair, told in self.by_pair(self.federation, 0).items():
                whose, who = publisher(pair[0]), Client("fixes", pair[1])
                closed = {t for t, (gone, look) in self.withdrawn.items() if whose in gone or (gone and who in look)}
                for t, kind in late(told, single.get(pair, []), closed):
                    self.is_resynchronisation(t, kind, *pair[:2])
            assert self.failed or not self.expected() - self.told()

    def is_resynchronisation(self, t: int, kind: str, publication: Any, subscription: Any) -> None:
        """Who is told late is told so, or something was repaired at t; or a client that was out of reach left at t, and
        its end is told of."""
        made_good = {(d.what.t, d.what.subscription) for d in self.federation.counts.deliveries if d.resync}
        if t in self.repairs or (t, subscription) in made_good:
            return
        left = self.departures[t]
        assert kind == "unmatch"
        assert publisher(publication) == left

    @invariant()
    def nothing_is_missing_without_a_loss_since_the_failure(self) -> None:
        """What a single broker just told and was not told here; but if its home is dead, there is nobody to say so.

        An end that was told already, when the overlay closed over the dead broker of its publisher, is not missing.
        """
        if not hasattr(self, "federation"):
            return
        told, rows = self.told(), list(self.single.notifications.itertuples(index=False))
        for t, kind, p, s in [row for row in rows[self.seen :] if tuple(row) not in told]:
            if kind == "unmatch" and self.broken_since is not None:
                closed = [u for u in self.withdrawn if self.broken_since <= u < t]
                if any((u, kind, p, s) in told for u in closed):
                    continue
            who, since = Client("fixes", s), self.broken_since or 0
            device, losses = self.federation.devices.get(who), self.federation.counts.losses
            lost = [x for x in losses if since <= x.t <= t and self.concerns(x.about, who, publisher(p))]
            assert lost or (device is not None and device.home is None), (t, p, s)
        self.seen = len(rows)
        self.broken_since = (self.broken_since or self.t) if self.failing else None

    def concerns(self, about: Any, who: Client, whose: Client) -> bool:
        """Whether what was lost may be why a pair of these two was not told of."""
        if isinstance(about, Report):
            state = self.federation.devices[who].state if who in self.federation.devices else None
            driver = state.instances.get("drivers") if state is not None else None
            scenario = self.federation.world.scenario
            looks = driver and thirds(scenario, scenario.population("drivers"), driver.filter)
            return about.client in (who, whose) or bool(looks)
        if isinstance(about, Party):
            return about.client == who
        if isinstance(about, Message):
            return about.subscription == who.id
        return isinstance(about, TableUpdate) or getattr(about, "client", None) == who  # others may be covered by it

    @invariant()
    def losses_have_a_place(self) -> None:
        if hasattr(self, "federation"):
            places = {*self.names, *(f"{a}-{b}" for a in self.names for b in self.names)}
            places |= {f"{a}-{c}" for a in self.names for c in {*self.federation.devices, *self.left}}
            losses = self.federation.counts.losses
            assert all(loss.where in places and loss.why for loss in losses)


def with_cycles(parents: list[int]) -> Overlay:
    """A tree, and a link from each broker to the next."""
    made = tree(parents)
    names = list(made.brokers)
    around = [(a, b) for a, b in zip(names, [*names[1:], names[0]], strict=True) if a != b]
    return Overlay([*made.links, *around], names, cyclic=True)


class WithCycles(WithoutDelays):
    """Promise 1, where there is more than one way."""

    routings = ("simple",)

    def overlay(self, parents: list[int]) -> Overlay:
        return with_cycles(parents)


class WithCyclesAndDelays(WithDelays):
    """Promise 2, where there is more than one way."""

    routings = ("simple",)

    def overlay(self, parents: list[int]) -> Overlay:
        return with_cycles(parents)


class WithCyclesAndFailures(WithFailures):
    """Promise 3, where a broken link leaves another way."""

    routings = ("simple",)

    def overlay(self, parents: list[int]) -> Overlay:
        return with_cycles(parents)


class WithFailuresLookingBack(WithFailures):
    """Promise 3, with filters over time: clients bring their past along."""

    filters = LOOKING_BACK


class WithFailuresAndDelays(WithFailures):
    """Promises 2 and 3 together."""

    patience = 60
    compared = 0

    def __init__(self) -> None:
        super().__init__()
        self.states: dict[Party, list[Any]] = {}

    def delay(self, a: str, b: str) -> float:
        return self.draw.choice([0, 0, 0.5, 1, 2, 3])

    def wait_until_quiet(self) -> None:
        self.t = max(self.federation.settle(), self.t) + 20
        self.both_advance(self.t)

    @invariant()
    def what_is_told_is_a_part_of_a_single_brokers_history_but_for_resynchronisation(self) -> None:
        """What is late is told under another instant; but nobody is told of what no two states of the pair ever were.

        Where third parties are looked at, or the past, that cannot be said of two states alone.
        """
        if not hasattr(self, "federation"):
            return
        for client, device in self.federation.devices.items():
            for name, instance in device.state.instances.items() if device.state is not None else ():
                known = self.states.setdefault(Party(name, client), [])
                known.extend([instance] if instance not in known else [])
        rows = [tuple(row) for row in self.federation.notifications.itertuples(index=False)]
        for _, kind, p, s in rows[self.compared :]:
            mine, driver = Party(p.split("/")[0], publisher(p)), Party("drivers", Client("fixes", s))
            assert kind == "unmatch" or any(
                self.may_match(mine.population, a, driver, b) for a in self.states[mine] for b in self.states[driver]
            ), (p, s)
        self.compared = len(rows)

    def may_match(self, publication: str, its: Any, driver: Party, mine: Any) -> bool:
        world = self.federation.world
        interest = Interest.of(world, driver, mine.regions, mine.filter)
        return bool(interest.thirds) or interest.may_accept(publication, its.regions)

    @rule()
    def look(self) -> None:
        """When all is quiet, whatever is not as at a single broker has a row since the failure, or nobody to say so."""
        self.wait_until_quiet()
        believed = {(repr(p), s.client.id) for p, s in self.federation.believed}
        for p, s in self.single.matches ^ believed:
            who = Client("fixes", s)
            device, since = self.federation.devices[who], (self.broken_since or 0) if self.failing else float("inf")
            lost = [x for x in self.federation.counts.losses if x.t >= since]
            assert device.home is None or any(self.concerns(x.about, who, publisher(p)) for x in lost), (p, s)

    @invariant()
    def nothing_is_missing_without_a_loss_since_the_failure(self) -> None:
        """What is late is no loss: `look` says it when all is quiet."""
        if not hasattr(self, "federation"):
            return
        self.broken_since = (self.broken_since or self.t) if self.failing else None


class WithFailuresAndDelaysLookingBack(WithFailuresAndDelays):
    """All at once."""

    filters = LOOKING_BACK


def case(machine: type[Machine], examples: int, steps: int) -> Any:
    machine.TestCase.settings = settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    return machine.TestCase


TestWithoutDelays = case(WithoutDelays, 60, 20)
TestWithoutDelaysLookingBack = case(WithoutDelaysLookingBack, 40, 15)
TestWithoutDelaysRemembering = case(WithoutDelaysRemembering, 20, 12)
TestWithDelays = case(WithDelays, 50, 18)
TestWithDelaysLookingBack = case(WithDelaysLookingBack, 30, 12)
TestWithCongestion = case(WithCongestion, 20, 15)
TestWithCongestionThatDrops = case(WithCongestionThatDrops, 20, 15)
TestWithFailures = case(WithFailures, 80, 20)
TestWithFailuresLookingBack = case(WithFailuresLookingBack, 40, 15)
TestWithFailuresAndDelays = case(WithFailuresAndDelays, 50, 15)
TestWithFailuresAndDelaysLookingBack = case(WithFailuresAndDelaysLookingBack, 40, 12)
TestWithCycles = case(WithCycles, 40, 15)
TestWithCyclesAndDelays = case(WithCyclesAndDelays, 40, 15)
TestWithCyclesAndFailures = case(WithCyclesAndFailures, 60, 15)
