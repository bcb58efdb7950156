"""Context by chance: subscriptions that come, go and move, links that break, and an oracle that reads what is wanted.

On random trees, with covering and merging, and in rings; at once, or with a delay of its own for each link.
"""

from __future__ import annotations

import math
from random import Random
from typing import Any

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from workbench.brokering.federation import Exchange, Notification, Policy, Provider, Rules, Subscription, attribute
from workbench.brokering.federation.attributes import Expression
from workbench.brokering.federation.overlay import random_tree, ring

NAMES = "xyz"
constraints = st.builds(
    lambda name, value, make: make(attribute(name), value),
    st.sampled_from(NAMES),
    st.integers(0, 3),
    st.sampled_from(
        [
            lambda a, v: a > v,
            lambda a, v: a <= v,
            lambda a, v: a == v,
            lambda a, v: a != v,
            lambda a, v: a.one_of(v, (v + 1) % 4),
            lambda a, v: a.exists,
        ]
    ),
)
expressions = st.recursive(
    constraints,
    lambda parts: st.one_of(
        st.builds(lambda a, b: a & b, parts, parts),
        st.builds(lambda a, b: a | b, parts, parts),
        st.builds(lambda a: ~a, parts),
    ),
    max_leaves=4,
)
readings = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 3))
consumers = st.sampled_from(["c0", "c1", "c2", "c3"])
providers = st.sampled_from(["p0", "p1"])
at = st.integers(0, 6)


class Machine(RuleBasedStateMachine):
    """An exchange beside what each consumer wants now."""

    made: Exchange
    wanted: dict[str, dict[Any, Expression]]
    lost: int
    """how much was lost before the link broke"""

    @initialize(
        count=st.integers(1, 6),
        seed=st.integers(0, 99),
        routing=st.sampled_from(["simple", "covering", "merging", "ring"]),
        slow=st.booleans(),
    )
    def begin(self, count: int, seed: int, routing: str, slow: bool) -> None:
        there = ring(max(count, 3)) if routing == "ring" else random_tree(count, seed)
        rules = Rules(routing="simple" if routing == "ring" else routing)
        delay = (lambda a, b: Random(f"{a}{b}{seed}").randrange(4)) if slow else 0
        self.made = Exchange(there, rules, delay, policies=dict.fromkeys(there.brokers, Policy("drop")))
        self.wanted, self.lost = {}, 0
        for i in range(2):
            self.made.provide(Provider(f"p{i}", frozenset(NAMES)), self.broker(seed + i))

    def broker(self, at: int) -> str:
        return self.made.overlay.brokers[at % len(self.made.overlay.brokers)]

    @rule(consumer=consumers, at=at, expression=expressions, shared=st.booleans())
    def subscribe(self, consumer: str, at: int, expression: Expression, shared: bool) -> None:
        """Under a name of its own, which may have meant something else; or one that says it, and others use too."""
        name = repr(expression) if shared and not self.made.overlay.cyclic else (consumer, "own")
        home = self.made.home.get(consumer, self.broker(at))
        self.made.subscribe(consumer, home, Subscription(name, expression))
        self.wanted.setdefault(consumer, {})[name] = expression

    @rule(consumer=consumers, which=st.integers(0, 9))
    def unsubscribe(self, consumer: str, which: int) -> None:
        if names := list(self.wanted.get(consumer, ())):
            name = names[which % len(names)]
            self.made.unsubscribe(consumer, name)
            del self.wanted[consumer][name]

    @rule(consumer=consumers)
    def leave(self, consumer: str) -> None:
        if consumer in self.made.home:
            self.made.leave(consumer)
            self.wanted.pop(consumer, None)

    @rule(client=consumers | providers, at=at)
    def attach(self, client: str, at: int) -> None:
        if client in self.made.home:
            self.made.attach(client, self.broker(at))

    @rule(which=st.integers(0, 9))
    def cut(self, which: int) -> None:
        links = self.made.overlay.links
        if links and not self.made.down:
            self.lost = len(self.made.counts.losses)
            self.made.cut(*links[which % len(links)])

    @rule()
    def mend(self) -> None:
        for way in list(self.made.down):
            self.made.mend(*way)

    @rule(provider=providers, values=readings)
    def read(self, provider: str, values: dict[str, int]) -> None:
        """Who wants a reading hears it once, and nobody else; what a cut link keeps from somebody is lost there."""
        made = self.made
        made.settle()
        heard = {c: len(items) for c, items in made.inbox.items()}
        made.reading(provider, values)
        made.settle()
        told = {c: len(items) - heard.get(c, 0) for c, items in made.inbox.items() if len(items) > heard.get(c, 0)}
        assert set(told.values()) <= {1}
        want = {c for c, all in self.wanted.items() if any(e(Notification(values)) for e in all.values())}
        whole = made.overlay.graph.copy()
        whole.remove_edges_from(made.down)
        side = nx.node_connected_component(whole, made.home[provider])
        assert {c for c in want if made.home[c] in side} <= set(told) <= want
        assert set(told) == want or len(made.counts.losses) > self.lost  # it, or that it is wanted

    @invariant()
    def nothing_is_kept_for_who_or_what_is_gone(self) -> None:
        """When all is quiet and whole."""
        made = getattr(self, "made", None)
        if made is None or made.down or made._travelling:
            return
        names = {name for all in self.wanted.values() for name in all}
        for broker in made.brokers.values():
            assert all(set(s.name if isinstance(s.name, frozenset) else [s.name]) <= names for s, _ in broker.table)
            assert set(broker.clients) == {c for c, home in made.home.items() if home == broker.name}
        for name, provider in made.providers.items():
            table = made.brokers[made.home[name]].table
            assert {n: s.expression for n, s in provider.wanted.items()} == {s.name: s.expression for s, _ in table}
        assert not made.waiting


@given(
    count=st.integers(2, 6),
    seed=st.integers(0, 99),
    policy=st.sampled_from([Policy("queue", length=1000, age=math.inf), Policy("resend", resend_after=7)]),
    wishes=st.lists(st.tuples(at, expressions), min_size=1, max_size=4),
    happens=st.lists(st.tuples(st.sampled_from(["cut", "mend", "read", "read"]), at, readings), min_size=5),
)
def test_what_waits_or_is_resent_reaches_who_wants_it_once(
    count: int, seed: int, policy: Policy, wishes: list, happens: list
) -> None:
    """However many links are cut at a time, and whatever was published behind them."""
    made = Exchange(random_tree(count, seed), policies=dict.fromkeys(random_tree(count, seed).brokers, policy))
    brokers, links = made.overlay.brokers, made.overlay.links
    made.provide(Provider("p", frozenset(NAMES)), brokers[seed % count])
    for i, (where, expression) in enumerate(wishes):
        made.subscribe(f"c{i}", brokers[where % count], Subscription(f"σ{i}", expression))
    published = []
    for what, where, values in happens:
        made.advance(made.now + 5)
        if what == "cut":
            made.cut(*links[where % len(links)])
        elif what == "mend" and made.down:
            made.mend(*sorted(made.down)[where % len(made.down)])
        elif what == "read":
            published.append(values)
            made.reading("p", values)
    for way in list(made.down):
        made.mend(*way)
    made.advance(made.now + 100)
    for i, (_, expression) in enumerate(wishes):
        wanted = [n for n, values in enumerate(published, start=1) if expression(Notification(values))]
        assert sorted(item.number for item in made.inbox.get(f"c{i}", ())) == wanted
    assert not made.waiting and not [loss for loss in made.counts.losses if loss.message == "Forward"]


Machine.TestCase.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
TestExchange = Machine.TestCase
