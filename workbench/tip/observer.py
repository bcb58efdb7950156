"""The observer: evaluates conditions and rules, and so decides who is subscribed to what (TIP 3, 6).

A pure function of what is registered. `evaluate` is called at registration, at every new or changed advertisement (a
change of quality, latency or failure rate is a re-advertisement) and when a service or broker is gone.

1. *Active* services: the least set such that a service is in it if each of its conditions is met by an advertisement
   of another active service, or from outside. The others are *stalled*: they advertise nothing and are subscribed to
   nothing.
2. Each group of rules of an active service, by priority: the advertisements that the rules of one priority accept
   become subscriptions; if there is one, lower priorities are not evaluated.
3. *Auxiliary services*: where a rule accepts no advertisement, but would accept one after a conversion that the broker
   knows, the auxiliary service is *wanted*, until no rule wants it.

Ties. Rules of equal priority in one group are all evaluated, and all their subscriptions hold. An exclusive rule takes
the best: highest quality, then lowest latency, lowest failure rate, local before outside, then the one it is
subscribed to already, then by label. A service is never subscribed to itself.

Departure: whether services that wait for each other may both begin is not said. By the least set they stay stalled:
neither has anything to offer before it begins. `waiting_for_each_other` finds them, and the broker logs it.
Departure: the first paragraph about the observer removes advertisements "in case of disconnection", the second "after a
time interval". The second holds: nothing is re-evaluated for a short break.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import networkx as nx

from workbench.tip.descriptions import ServiceDescription
from workbench.tip.rules import Advertisement, Condition, Entry, Group, Priority, Rule


class Subscription(NamedTuple):
    """One entry of the subscriber index: what is filtered by (Figure 12). Empty fields accept anything.

    >>> Subscription("Location", quality=50).accepts("Location", "location", 40, "p1")
    False
    """

    type: str
    category: str = ""
    quality: int = 0
    publisher: str = ""

    def accepts(self, type: str, category: str, quality: int, publisher: str) -> bool:
        """Whether an event of this kind, by this publisher, is subscribed to."""
        return (
            self.type == type
            and self.category in ("", category)
            and self.quality <= quality
            and self.publisher in ("", publisher)
        )


@dataclass(frozen=True)
class Auxiliary:
    """A service that the broker can start to convert one format into another, and how good its results can be.

    >>> reader = Auxiliary("rfid-to-gps", "Location", takes="rfid", gives="gps", quality=90)
    >>> reader.converted(Entry("p1", Advertisement("Location", "location", "location", 95, "rfid"))).advertisement
    Advertisement(type='Location', category='location', service_category='location', quality=90, format='gps', ...)
    """

    name: str
    type: str
    takes: str
    gives: str
    quality: int = 100

    def accepts(self, entry: Entry) -> bool:
        """Whether it can convert what the entry advertises; it never converts what was converted."""
        return (
            not entry.auxiliary and (entry.advertisement.type, entry.advertisement.format) == (self.type, self.takes)
        )

    def converted(self, entry: Entry) -> Entry:
        """What it would advertise with the entry as its source: at most as good as the source."""
        made = replace(
            entry.advertisement, format=self.gives, quality=min(self.quality, entry.advertisement.quality)
        )
        return Entry(f"auxiliary:{self.name}", made, auxiliary=self.name)

    def description(self, advertisement: Advertisement) -> ServiceDescription:
        """The auxiliary service as it is registered: it needs its source, and takes the best one."""
        rule = Rule(
            Priority.HIGH, self.type, advertisement.category, exclusive=True, format=self.takes,
            service_category=advertisement.service_category,
        )  # fmt: skip
        return ServiceDescription(advertisement.service_category, advertisements=(advertisement,), groups=((rule,),))


@dataclass(frozen=True)
class Registered:
    """A service as the observer sees it: its label, its description, and what it is subscribed to so far."""

    label: str
    description: ServiceDescription
    subscriptions: frozenset[Subscription] = frozenset()
    auxiliary: str = ""

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Its advertisements as entries of the publisher index."""
        return tuple(Entry(self.label, one, "", self.auxiliary) for one in self.description.advertisements)


@dataclass(frozen=True)
class Evaluation:
    """Who is active, what they are subscribed to, and which auxiliary services are wanted with what they would give."""

    active: frozenset[str] = frozenset()
    subscriptions: Mapping[str, frozenset[Subscription]] = field(default_factory=dict)
    wanted: Mapping[str, Advertisement] = field(default_factory=dict)


def evaluate(
    services: Iterable[Registered], outside: Iterable[Entry] = (), auxiliaries: Iterable[Auxiliary] = ()
) -> Evaluation:
    """Evaluate all conditions, then all rules.

    >>> gps = Registered("p1", ServiceDescription("location", advertisements=(Advertisement("Location", "location"),)))
    >>> wants = ((Rule(event_type="Location", exclusive=True),),)
    >>> guide = Registered("p2", ServiceDescription("map", conditions=(Condition("location"),), groups=wants))
    >>> evaluate([guide]).active, evaluate([guide, gps]).subscriptions["p2"]
    (frozenset(), frozenset({Subscription(type='Location', category='location', quality=0, publisher='p1')}))
    """
    registered = sorted(services, key=lambda service: service.label)
    outside = tuple(outside)
    active = active_services(registered, outside)
    entries = [*outside, *(e for service in registered if service.label in active for e in service.entries)]
    by_type: dict[str, list[Entry]] = {}
    for entry in entries:
        by_type.setdefault(entry.advertisement.type, []).append(entry)
    convertible = [(one.converted(entry), entry) for one in auxiliaries for entry in entries if one.accepts(entry)]
    subscriptions: dict[str, frozenset[Subscription]] = {}
    wanted: dict[str, Advertisement] = {}
    for service in registered:
        if service.label in active:
            chosen: set[Subscription] = set()
            for group in service.description.groups:
                found, needs = _evaluate_group(group, service, by_type, entries, convertible)
                chosen |= found
                for entry in needs:
                    best = wanted.get(entry.auxiliary)
                    if best is None or entry.advertisement.quality > best.quality:
                        wanted[entry.auxiliary] = entry.advertisement
            subscriptions[service.label] = frozenset(chosen)
    return Evaluation(frozenset(active), subscriptions, wanted)


def active_services(services: Iterable[Registered], outside: Iterable[Entry]) -> set[str]:
    """The least set of services whose conditions are met by one another and from outside."""
    active: set[str] = set()
    waiting, entries = list(services), list(outside)
    while True:
        begin = [s for s in waiting if all(_met(condition, s, entries) for condition in s.description.conditions)]
        if not begin:
            return active
        active |= {service.label for service in begin}
        entries += [entry for service in begin for entry in service.entries]
        waiting = [service for service in waiting if service.label not in active]


def waiting_for_each_other(services: Iterable[Registered], outside: Iterable[Entry] = ()) -> list[list[str]]:
    """Stalled services that would all begin if they began together: a condition of each is met only among them."""
    services, outside = list(services), list(outside)
    active = active_services(services, outside)
    stalled = [service for service in services if service.label not in active]
    waits = nx.DiGraph()
    waits.add_nodes_from(service.label for service in stalled)
    for one in stalled:
        for other in stalled:
            if one is not other and any(
                condition.accepts(entry) for condition in one.description.conditions for entry in other.entries
            ):
                waits.add_edge(one.label, other.label)
    return sorted(sorted(knot) for knot in nx.strongly_connected_components(waits) if len(knot) > 1)


def _met(condition: Condition, service: Registered, entries: Iterable[Entry]) -> bool:
    return any(entry.publisher != service.label and condition.accepts(entry) for entry in entries)


def _evaluate_group(
    group: Group,
    service: Registered,
    by_type: Mapping[str, list[Entry]],
    entries: list[Entry],
    convertible: list[tuple[Entry, Entry]],
) -> tuple[set[Subscription], list[Entry]]:
    """The subscriptions of a group, and the conversions it would take."""
    needs: list[Entry] = []
    for priority in sorted({rule.priority for rule in group}, reverse=True):
        chosen: set[Subscription] = set()
        for rule in (rule for rule in group if rule.priority == priority):
            among = by_type.get(rule.event_type, []) if rule.event_type else entries
            accepted = [e for e in among if e.publisher != service.label and rule.accepts(e)]
            direct = [entry for entry in accepted if not entry.auxiliary]
            if not direct and not service.auxiliary:
                conversions = [made for made, _ in convertible if rule.accepts(made)]
                needs += conversions
                running = {entry.auxiliary for entry in conversions}
                accepted = [entry for entry in accepted if entry.auxiliary in running]
            else:
                accepted = direct
            if accepted and rule.exclusive:
                accepted = [min(accepted, key=lambda entry: _order(entry, service))]
            chosen |= {_subscription(entry, rule) for entry in accepted}
        if chosen:
            return chosen, needs
    return set(), needs


def _subscription(entry: Entry, rule: Rule) -> Subscription:
    return Subscription(entry.advertisement.type, entry.advertisement.category, rule.quality, entry.publisher)


def _order(entry: Entry, service: Registered) -> tuple[int, int, float, bool, bool, str]:
    """The best first: the stated rule for ties."""
    said = entry.advertisement
    known = any(one.publisher == entry.publisher and one.type == said.type for one in service.subscriptions)
    return (-said.quality, said.latency, said.failure_rate, bool(entry.broker), not known, entry.publisher)
