"""Whatever is done to the live broker, it sends what the reference engine says about the same history.

A rule-based machine does random operations, several at one instant or each at its own, with removals and
returns, filters that change, lifetimes and time that passes. Beside the broker it keeps, in the plainest way, what
every client was like after each instant; from that it makes a history of its own and lets the reference engine
replay it.
"""

from __future__ import annotations

from copy import deepcopy

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from workbench.brokering.broker import Broker
from workbench.engines.reference import Reference
from workbench.model import (
    Clock,
    Scenario,
    Space,
    any_region,
    at_most,
    column,
    disc,
    everything,
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
from workbench.model.history import Change, Client, History

gas = Space("gas", price=int)
PLACES, FIXES = "places", "fixes"
near = own.here.within(2, other.site, space=location)
far = own.here.within(3, other.site, space=location)
entered = own.here.enclosed_by(any_region("stations.room"), space=location)
FILTERS = {
    "all": everything,
    "near": near,
    "pause": near & (now - tau(entered) > seconds(3)),
    "left": far & (now - pi(near) <= seconds(4)),
    "dwell": held(near, seconds(2)),
    "latched": latch(near, ~far),
    "nearest": own.here.nearest(other.site, space=location) & other.offer.enclosed_by(own.budget, space=gas),
    "nested": held(~held(near, seconds(2)), seconds(3)),
    "visited": visits(entered, last=2).mean() >= seconds(2),
    "window": visits(entered, window=seconds(4)).count() >= 1,
}
here = {"here": region(location, position=column.position)}


def scenario() -> Scenario:
    stations = publications(
        "stations",
        rows=PLACES,
        regions={
            "site": region(location, position=column.position),
            "room": region(location, position=disc(column.position, 1)),
            "offer": region(gas, price=column.price),
        },
        filter=other.here.within(4, own.site, space=location),
    )
    cars = publications(
        "cars",
        rows=FIXES,
        lifetime=seconds(5),
        regions={"site": region(location, position=column.position), "offer": region(gas, price=1)},
    )
    drivers = subscriptions(
        "drivers",
        rows=FIXES,
        regions={**here, "budget": region(gas, price=at_most(column.budget))},
        filter=FILTERS["near"],
    )
    return Scenario([location, gas], [stations, cars], [drivers], tick=seconds(1))


positions = st.tuples(st.integers(0, 4), st.just(0))
ids = st.integers(1, 2)
members = {"stations": PLACES, "cars": FIXES, "drivers": FIXES}


class BrokerAgainstReference(RuleBasedStateMachine):
    @initialize(sites=st.tuples(positions, positions), at=positions)
    def start(self, sites: tuple, at: tuple) -> None:
        self.scenario = scenario()
        self.broker = Broker(self.scenario)
        self.world: dict[Client, dict] = {}  # what every client is like now
        self.snapshots: dict[int, dict[Client, dict]] = {}  # and was like after each instant
        self.updated: dict[int, set[Client]] = {}  # whose row was written at an instant
        self.written: dict[Client, int] = {}  # and when last
        self.closed = 0
        self.open: int | None = None
        for id, site in enumerate(sites, start=1):
            self.add("stations", id, site, 1, None)
        self.add("drivers", 1, at, 2, None)

    # -- a plain model of what was done ----------------------------------------------------------------

    def _instant(self, step: int | None) -> int:
        """When an operation happens: at an instant of its own where no time is given."""
        if step is None:
            return max(self.closed, self.open or 0) + 1
        return (self.open if self.open is not None else self.closed + 1) + step

    def _has(self, population: str, id: int, instant: int) -> bool:
        client = Client(members[population], id)
        over = population == "cars" and self.written.get(client, instant) + 5 < instant
        return client in self.world and population in self.world[client]["in"] and not over

    def _close(self, until: int) -> None:
        """Time passes: cars that were not written for five seconds are gone."""
        for t in range(self.closed + 1, until + 1):
            for client, row in self.world.items():
                if "cars" in row["in"] and self.written[client] + 5 == t:
                    row["in"] = row["in"] - {"cars"}
                    self.snapshots[t] = deepcopy(self.world)
        self.closed, self.open = max(self.closed, until), None

    def _done(self, client: Client, row: dict, instant: int, step: int | None, written: bool) -> None:
        """Note what an operation left behind."""
        self.world[client] = row
        if written:
            self.written[client] = instant
            self.updated.setdefault(instant, set()).add(client)
        self.snapshots[instant] = deepcopy(self.world)
        self.open = instant
        if step is None:
            self._close(instant)

    def _before(self, instant: int, step: int | None) -> dict:
        if self.open != instant:
            self._close(instant - 1)
        return {} if step is None else {"t": instant}

    def _was_there(self, client: Client, instant: int) -> bool:
        """Whether the client was there before this instant: leaving and coming back at one instant is an update."""
        earlier = [t for t in self.snapshots if t < instant]
        row = self.snapshots[max(earlier)].get(client) if earlier else None
        return bool(row and row["in"])

    # -- operations ------------------------------------------------------------------------------------

    steps = st.sampled_from([None, 0, 0, 1, 2, 3])

    @rule(population=st.sampled_from(sorted(members)), id=ids, at=positions, price=st.integers(0, 3), step=steps)
    def add_one(self, population: str, id: int, at: tuple, price: int, step: int | None) -> None:
        self.add(population, id, at, price, step)

    def add(self, population: str, id: int, at: tuple, price: int, step: int | None) -> None:
        instant = self._instant(step)
        if self._has(population, id, instant):
            return
        time = self._before(instant, step)
        client = Client(members[population], id)
        row = deepcopy(self.world.get(client))
        if row is None or not (row["in"] or self._was_there(client, instant)):
            row = {"cells": {}, "in": set(), "filters": {}}
        cells = {"position": at, "price" if population == "stations" else "budget": price}
        row["cells"] = {**row["cells"], **cells}
        row["in"] = row["in"] | {population}
        self.broker.add(population, id, **cells, **time)
        self._done(client, row, instant, step, written=True)

    @rule(id=ids, at=positions, step=steps)
    def move(self, id: int, at: tuple, step: int | None) -> None:
        instant = self._instant(step)
        if not (self._has("drivers", id, instant) or self._has("cars", id, instant)):
            return
        time = self._before(instant, step)
        client = Client(FIXES, id)
        row = deepcopy(self.world[client])
        row["cells"]["position"] = at
        self.broker.move((FIXES, id), at, **time)
        self._done(client, row, instant, step, written=True)

    @rule(id=ids, price=st.integers(0, 3), step=steps)
    def reprice(self, id: int, price: int, step: int | None) -> None:
        instant = self._instant(step)
        if not self._has("stations", id, instant):
            return
        time = self._before(instant, step)
        client = Client(PLACES, id)
        row = deepcopy(self.world[client])
        row["cells"]["price"] = price
        self.broker.update("stations", id, price=price, **time)
        self._done(client, row, instant, step, written=True)

    @rule(id=ids, name=st.sampled_from(sorted(FILTERS)), step=steps)
    def change_filter(self, id: int, name: str, step: int | None) -> None:
        instant = self._instant(step)
        if not self._has("drivers", id, instant):
            return
        time = self._before(instant, step)
        client = Client(FIXES, id)
        row = deepcopy(self.world[client])
        row["filters"] = {"drivers": name}
        self.broker.update("drivers", id, filter=FILTERS[name], **time)
        self._done(client, row, instant, step, written=False)

    @rule(population=st.sampled_from(sorted(members)), id=ids, step=steps)
    def remove(self, population: str, id: int, step: int | None) -> None:
        instant = self._instant(step)
        if not self._has(population, id, instant):
            return
        time = self._before(instant, step)
        client = Client(members[population], id)
        row = deepcopy(self.world[client])
        row["in"] = row["in"] - {population}
        if population == "drivers":
            row["filters"] = {}
        self.broker.remove(population, id, **time)
        self._done(client, row, instant, step, written=False)

    @rule(step=st.integers(0, 6))
    def advance(self, step: int) -> None:
        until = max(self.closed, self.open or 0) + step
        self.broker.advance(until)
        self._close(until)

    # -- the comparison --------------------------------------------------------------------------------

    @precondition(lambda self: self.open is None and self.snapshots)
    @invariant()
    def sends_what_the_reference_says(self) -> None:
        until = self.closed
        reference = Reference(self.scenario, self._history(), Clock(), "planar")
        expected = []
        for line in reference.timelines(until):
            p, s = repr(line.publication), line.subscription.client.id
            expected.append((line.tau, "match", p, s))
            if line.ended in ("unmatch", "publication_removed"):
                expected.append((line.pi, "unmatch", p, s))
        sent = [tuple(row) for row in self.broker.notifications.itertuples(index=False)]
        assert sorted(sent) == sorted(expected)
        assert [row[:1] for row in sent] == sorted(row[:1] for row in sent)

    def _history(self) -> History:
        history, before = History(self.scenario), {}
        for t in sorted(self.snapshots):
            after = self.snapshots[t]
            changes = []
            for client, row in after.items():
                old = before.get(client, {"cells": {}, "in": set(), "filters": {}})
                filters = {n: FILTERS[f] for n, f in row["filters"].items() if n in row["in"]}
                written = client in self.updated.get(t, ())
                if old == row and not written:
                    continue
                cells = row["cells"] if written else {}
                begin, end = sorted(row["in"] - old["in"]), sorted(old["in"] - row["in"])
                changes.append(Change(client, cells, tuple(begin), tuple(end), filters))
            history.apply(t, changes)
            before = after
        return history


BrokerAgainstReference.TestCase.settings = settings(max_examples=200, stateful_step_count=25, deadline=None)
TestBrokerAgainstReference = BrokerAgainstReference.TestCase
