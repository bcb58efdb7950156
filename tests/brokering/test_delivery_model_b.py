"""Model (B): the broker's rules, what a check recovers, and the kernel beside the SimPy model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.brokering.delivery import (
    Adaptive,
    Channel,
    Constant,
    GilbertElliott,
    Independent,
    MultiplicativeDecrease,
    Outages,
    Prompt,
    RandomSelection,
    Receding,
    Rules,
    SquareRoot,
    Strategy,
    delivered,
)
from workbench.brokering.delivery.delivered import Setting
from workbench.brokering.delivery.kernel import BROKEN, COUNTS, REMOVED, SECOND_US
from workbench.brokering.delivery.simulated import Broker, Client, Link, simulated
from workbench.errors import DataError, WorkbenchError

TOLD = ("match", "unmatch")


def notified(*rows: tuple[int, str, str], subscription: Any = 7) -> pd.DataFrame:
    """Rows (t, kind, publication) of one client."""
    table = pd.DataFrame(rows, columns=["t", "kind", "publication"])
    return table.assign(subscription=subscription)


def outages(*intervals: tuple[int, int], **channel: float) -> Outages:
    table = pd.DataFrame(intervals, columns=["start", "end"]).assign(subscription=7)
    return Outages(table=table, **channel)


# --- Figure 2 ---------------------------------------------------------------------------------------------------------


class Scripted(Link):
    """A link that loses what it is told to lose: notifications (with what breaks), requests and answers of checks."""

    def __init__(
        self,
        setting: Setting,
        lost: set[int],
        requests: frozenset[int] = frozenset(),
        answers: frozenset[int] = frozenset(),
    ) -> None:
        super().__init__(setting, np.uint64(7), [])
        self.lost, self.requests, self.answers = lost, requests, answers

    def passive(self, number: int, t: int) -> tuple[bool, float, float]:
        return number in self.lost, 0.0, 1.0

    def check(self, number: int, t: int) -> tuple[bool, bool, float]:
        return number in self.requests, number in self.answers, 1.0


@pytest.mark.parametrize(
    ("estimator", "channel", "k"),
    [
        # C shows by its number that B is missing; the check finds D, which was sent into a broken connection.
        ("numbers", Independent(), [0, 1, 1]),
        # As the paper estimates: B breaks the connection, the client notices and repairs it, so that C comes.
        ("connection", Independent(breaks=1.0, noticed=1.0), [0, 1, 1]),
        # A loss that breaks nothing leaves no trace that this estimator sees; the check finds the connection lost.
        ("connection", Independent(), [0, 0, 1]),
    ],
)
def test_figure_2_notifications_a_to_d(estimator: str, channel: Channel, k: list[int]) -> None:
    setting = Setting(channel, Constant(t0_s=20), Rules(estimator=estimator), 0, 0, 100 * SECOND_US)
    env = simpy.Environment()
    broker = Broker(env, setting)
    client = Client(env, broker, "client", Scripted(setting, lost={2}))

    def publishers() -> Any:
        yield env.timeout(10 * SECOND_US)
        broker.notify("client", True, frozenset("A"))
        yield env.timeout(10 * SECOND_US)
        broker.notify("client", True, frozenset("B"))  # the network fails for this one
        yield env.timeout(5 * SECOND_US)
        broker.notify("client", True, frozenset("C"))
        assert client.matches == {"A", "C"}
        yield env.timeout(5 * SECOND_US)
        broker.breaks("client", BROKEN)
        yield env.timeout(5 * SECOND_US)
        broker.notify("client", True, frozenset("D"))  # sent in vain

    env.process(publishers())
    env.run(until=46 * SECOND_US)
    assert [(n.at // SECOND_US, n.t_us // SECOND_US, n.active) for n in client.notified] == [
        (10, 10, False),
        (25, 15, False),
        (45, 20, True),
    ]
    assert [n.k for n in client.notified] == k
    assert client.matches == {"A", "B", "C", "D"}
    assert (client.count["lost"], client.count["unsent"]) == (2, 0)
    assert client.count["breaks"] == 1 + (channel.breaks == 1.0)
    broker.notify("client", True, frozenset("E"))
    assert "E" in client.matches, "the check repaired the connection"


# --- the broker's rules (section II) ----------------------------------------------------------------------------------


def test_a_lost_notification_is_not_sent_again() -> None:
    told = delivered(
        notified((10, "match", "p")), outages((10, 11)), Constant(t0_s=100, t_max_s=100), since=0, until=90
    )
    assert told.deliveries["how"].tolist() == ["pending"]


def test_a_connection_broken_on_the_clients_side_is_sent_to_until_the_sweep() -> None:
    stream = notified(*[(t, TOLD[t // 10 % 2], "p") for t in range(10, 100, 10)])
    strategy = Constant(t0_s=500)
    told = delivered(stream, outages((10, 11), breaks=1.0), strategy, Rules(sweep_s=40), since=0, until=200)
    # broken at 10, found dead at 40 after that instant's notification
    assert told.clients[["lost", "unsent"]].values.tolist() == [[4, 5]]


def test_a_connection_broken_on_the_brokers_side_is_not_sent_to() -> None:
    stream = notified(*[(t, TOLD[t // 10 % 2], "p") for t in range(10, 100, 10)])
    channel = outages((10, 11), breaks=1.0, broker_side=1.0)
    told = delivered(stream, channel, Constant(t0_s=500), Rules(sweep_s=40), since=0, until=200)
    assert told.clients[["lost", "unsent"]].values.tolist() == [[1, 8]]


def test_a_broken_connection_outlives_the_outage_until_a_check_repairs_it() -> None:
    stream = notified((10, "match", "p"), (30, "match", "q"), (60, "match", "r"))
    channel = outages((10, 11), breaks=1.0)
    told = delivered(stream, channel, Constant(t0_s=50), since=0, until=100)
    assert told.deliveries["how"].tolist() == ["by_state", "by_state", "by_message"]


def test_a_break_that_the_client_notices_is_repaired_before_the_next_message_and_counts_as_one_loss() -> None:
    stream = notified((10, "match", "p"), (30, "match", "q"), (60, "match", "r"))
    channel = outages((10, 11), breaks=1.0, broker_side=1.0, noticed=1.0)
    told = delivered(stream, channel, Constant(t0_s=95), Rules(estimator="connection"), since=0, until=100)
    assert told.deliveries["how"].tolist() == ["pending", "by_message", "by_message"]
    assert told.clients[["breaks", "lost", "unsent", "observed"]].values.tolist() == [[1, 1, 0, 1]]


def test_a_check_may_itself_be_lost() -> None:
    told = delivered(notified((10, "match", "p")), outages((10, 45)), Constant(t0_s=20), since=0, until=70)
    assert told.clients[["checks", "failed"]].values.tolist() == [[3, 2]]
    assert told.deliveries["delay_us"].tolist() == [50 * SECOND_US]


@pytest.mark.parametrize(("way", "at_the_desk"), [("requests", 1), ("answers", 3)])
def test_a_check_that_is_lost_on_either_way_tells_nothing_and_repairs_nothing(way: str, at_the_desk: int) -> None:
    setting = Setting(Independent(), Constant(t0_s=20), Rules(sweep_s=0), 0, 0, 100 * SECOND_US)
    env = simpy.Environment()
    broker = Broker(env, setting)
    client = Client(env, broker, "client", Scripted(setting, set(), **{way: frozenset({1, 2})}))
    broker.breaks("client", REMOVED)
    broker.notify("client", True, frozenset("A"))
    env.run(until=59 * SECOND_US)
    assert (client.matches, client.notified, client.count["failed"]) == (set(), [], 2)
    broker.notify("client", True, frozenset("B"))
    env.run(until=61 * SECOND_US)
    assert client.matches == {"A", "B"}
    # i advances with what is answered: the failed checks lie within t_1
    assert [(n.t_us // SECOND_US, n.k, n.active) for n in client.notified] == [(60, 2, True)]
    assert broker.load.sum() == at_the_desk, "a request that arrived was work, whatever became of its answer"


def test_messages_are_numbered_whether_they_are_sent_or_not() -> None:
    stream = notified(*[(t, TOLD[t // 10 % 2], "p") for t in range(10, 100, 10)])
    channel = outages((10, 11), breaks=1.0, broker_side=1.0)
    told = delivered(stream, channel, Constant(t0_s=95), since=0, until=100)
    assert told.deliveries["number"].tolist() == list(range(1, 10))
    # one was lost, eight never sent: the check at 95 learns the last number, and counts them all
    assert told.clients[["lost", "unsent", "checks", "observed"]].values.tolist() == [[1, 8, 1, 9]]


def test_the_rows_of_one_instant_and_kind_are_one_message() -> None:
    stream = notified((10, "match", "p"), (10, "match", "q"), (10, "unmatch", "o"))
    told = delivered(stream, Independent(), Constant(), since=0, until=20)
    assert told.deliveries["number"].tolist() == [2, 2, 1]
    assert told.clients["messages"].tolist() == [2]


# --- what a check recovers --------------------------------------------------------------------------------------------


def test_a_check_recovers_the_net_state_and_not_the_history() -> None:
    stream = notified((1, "match", "p"), (2, "unmatch", "p"), (3, "match", "q"), (4, "match", "p"), (5, "unmatch", "p"))
    told = delivered(stream, outages((0, 6)), Constant(t0_s=10), since=0, until=20)
    assert told.deliveries["how"].tolist() == ["missed", "missed", "by_state", "missed", "missed"]
    assert told.clients[["observed", "stale_us"]].values.tolist() == [[5, 8 * SECOND_US]]


@pytest.mark.parametrize("deliver", [delivered, simulated])
def test_a_row_that_stands_twice_is_known_as_if_it_stood_once(deliver: Any) -> None:
    stream = notified((1, "match", "p"), (3, "match", "q"), (3, "match", "q"), (4, "match", "p"))
    told = deliver(stream, outages((0, 6)), Constant(t0_s=10), since=0, until=20)
    assert told.deliveries["how"].tolist() == ["missed", "by_state", "by_state", "by_state"]
    assert told.clients["messages"].tolist() == [3]


@pytest.mark.parametrize(("size", "by_log"), [(0, 0), (2, 2), (5, 5), (9, 5)])
def test_history_comes_back_only_from_a_log_of_the_stated_size(size: int, by_log: int) -> None:
    stream = notified((1, "match", "p"), (2, "unmatch", "p"), (3, "match", "q"), (4, "match", "p"), (5, "unmatch", "p"))
    told = delivered(stream, outages((0, 6)), Constant(t0_s=10), Rules(log=size), since=0, until=20)
    assert told.clients["by_log"].tolist() == [by_log]


def test_the_numbers_count_every_loss_and_the_connection_only_evident_ones() -> None:
    stream = notified(*[(t, TOLD[t % 2], "p") for t in range(1, 400)])
    strategy, channel = Constant(t0_s=30), Independent(0.3)
    by_numbers = delivered(stream, channel, strategy, since=0, until=500).clients.iloc[0]
    by_connection = delivered(
        stream, channel, strategy, Rules(estimator="connection"), since=0, until=500
    ).clients.iloc[0]
    assert by_numbers["observed"] == by_numbers["lost"] > 80
    # nearly every second something arrives and restarts the clock, so no check fails and no failure is evident
    assert by_connection["observed"] <= by_connection["failed"] < 10


def test_t_min_and_t_max_bound_what_is_planned() -> None:
    quiet = notified((0, "match", "p"))
    adaptive = Adaptive(t0_s=20, delta_s=20, t_max_s=50)
    kept = delivered(quiet, Independent(), adaptive, since=0, until=290)
    assert kept.clients["checks"].tolist() == [6]  # after 20, 40, then 50 each
    down = delivered(quiet, outages((0, 1000)), Prompt(t0_s=20, t_min_s=8, t_max_s=30), since=0, until=100)
    assert down.clients["checks"].tolist() == [3]  # after 20, then 30 each instead of 40


class Watched(Client):
    """A client that notes each interval that ended with a check: its plan, when it began, when the check came."""

    def __init__(self, *given: Any) -> None:
        self.checked: list[tuple[int, int, int]] = []
        super().__init__(*given)

    def check(self) -> None:
        self.checked.append((self.plan, self.due - self.plan, self.broker.now))
        super().check()


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_check_comes_when_its_interval_is_over_and_no_interval_leaves_t_min_and_t_max(data: st.DataObject) -> None:
    strategy, rules = data.draw(some_strategies), data.draw(some_rules)
    setting = Setting(data.draw(channels()), strategy, rules, data.draw(st.integers(0, 99)), 0, 140 * SECOND_US)
    env = simpy.Environment()
    broker = Broker(env, setting)
    client = Watched(env, broker, 7, Link(setting, np.uint64(7), [(30 * SECOND_US, 60 * SECOND_US)]))
    told = data.draw(st.lists(st.integers(1, 40), max_size=8))

    def publisher() -> Any:
        for wait in told:
            yield env.timeout(wait * SECOND_US)
            broker.notify(7, True, frozenset("p"))

    env.process(publisher())
    env.run(until=140 * SECOND_US)
    arrivals = {0, *(notified.at for notified in client.notified), *(at for _, _, at in client.checked)}
    for n, (planned, began, at) in enumerate(client.checked):
        assert strategy.t_min_s * SECOND_US <= planned <= strategy.t_max_s * SECOND_US
        assert at == began + planned
        assert began in arrivals or (n == 0 and began <= rules.spread_s * SECOND_US)
        assert not any(began < other < at for other in arrivals), "an arrival would have restarted the interval"
    # i advances with every arrival, passive or active: the t_i are the times between them and fill the time
    ats = [0, *[notified.at for notified in client.notified]]
    assert [notified.t_us for notified in client.notified] == np.diff(ats).tolist()


def test_passive_arrivals_restart_the_interval_and_advance_i() -> None:
    stream = notified(*[(t, TOLD[t // 5 % 2], "p") for t in range(5, 100, 5)])
    assert delivered(stream, Independent(), Constant(t0_s=6), since=0, until=95).clients["checks"].tolist() == [0]


def test_equation_3_takes_the_measured_interval_or_the_planned_one() -> None:
    stream = notified((5, "match", "p"))
    for measured, first_check in [(True, 5 + 5 + 20), (False, 5 + 20 + 20)]:
        told = [
            delivered(stream, Independent(), Adaptive(measured=measured), since=0, until=until).clients["checks"].item()
            for until in (first_check - 1, first_check)
        ]
        assert told == [0, 1]


# --- channels ---------------------------------------------------------------------------------------------------------


def lost_by_clock(channel: Channel, clients: int = 400, every_s: int = 30, size: int = 300) -> np.ndarray:
    """What a channel loses of messages at equal intervals: a row a client; nobody checks."""
    t = np.tile(np.arange(1, size + 1) * every_s, clients)
    stream = pd.DataFrame({"t": t, "publication": "p", "subscription": np.repeat(np.arange(clients), size)})
    stream["kind"] = np.tile(TOLD, stream.index.size // 2)
    never = Constant(t0_s=1e6, t_max_s=1e6)
    told = delivered(stream, channel, never, seed=11, since=0, until=every_s * (size + 1))
    return (told.deliveries["how"] != "by_message").to_numpy().reshape(clients, size)


def test_independent_losses_are_as_many_as_stated_and_know_nothing_of_each_other() -> None:
    lost = lost_by_clock(Independent(0.2))
    assert lost.mean() == pytest.approx(0.2, abs=4 * np.sqrt(0.16 / lost.size))
    after_a_loss = lost[:, 1:][lost[:, :-1]]
    assert after_a_loss.mean() == pytest.approx(0.2, abs=4 * np.sqrt(0.16 / after_a_loss.size))


def test_gilbert_elliott_losses_follow_its_law() -> None:
    channel = GilbertElliott(0.0, loss_bad=1.0, good_s=200, bad_s=50)
    lost = lost_by_clock(channel)
    assert lost[:, 0].mean() == pytest.approx(channel.mean_loss, abs=4 * np.sqrt(0.16 / len(lost))), (
        "it begins stationary"
    )
    # P(bad after s | bad) = pi + (1 - pi) exp(-(1/good + 1/bad) s); with these losses a bad state is a loss
    for lag in (1, 2, 5):
        again = lost[:, lag:][lost[:, :-lag]]
        expected = 0.2 + 0.8 * np.exp(-(1 / 200 + 1 / 50) * 30 * lag)
        # rows of a client hang together: the error is that of clients, not of messages
        shares = [row[lag:][row[:-lag]].mean() for row in lost if row[:-lag].any()]
        assert again.mean() == pytest.approx(expected, abs=5 * np.std(shares) / np.sqrt(len(shares)))


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=20, deadline=None)
def test_a_lost_notification_breaks_the_connection_as_often_as_stated(
    breaks: float, broker_side: float, noticed: float
) -> None:
    clients = 500
    stream = pd.DataFrame({"t": 10, "kind": "match", "publication": "p", "subscription": range(clients)})
    stream = pd.concat([stream, stream.assign(t=20, publication="q")])
    channel = Outages(
        table=pd.DataFrame({"subscription": range(clients), "start": 10, "end": 11}),
        breaks=breaks,
        broker_side=broker_side,
        noticed=noticed,
    )
    rules = Rules(sweep_s=0, estimator="connection")
    done = delivered(stream, channel, Constant(t0_s=500), rules, since=0, until=30).clients
    error = 4.5 * np.sqrt(0.25 * clients)
    assert done["breaks"].sum() == pytest.approx(breaks * clients, abs=error)
    assert done["observed"].sum() == pytest.approx(breaks * noticed * clients, abs=error)
    assert done["unsent"].sum() == pytest.approx(breaks * (1 - noticed) * broker_side * clients, abs=error)
    # nothing arrives over a broken connection, and everything over one that was repaired
    assert (done["lost"] + done["unsent"] == 1 + done["breaks"] - done["observed"]).all()


# --- kernel and SimPy, client by client -------------------------------------------------------------------------------

probabilities = st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])
instants = st.integers(0, 120)
names = st.sampled_from([1, 2, 3, 4, 5])
bounds = {"t0_s": st.sampled_from([5.0, 7.5, 20.0]), "t_min_s": st.sampled_from([0.5, 3.0]), "t_max_s": st.just(60.0)}


@st.composite
def streams(draw: st.DrawFn) -> pd.DataFrame:
    """Up to 120 rows for 5 clients: the numbers behind a row come from one seed, or most examples would be tiny."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    size = draw(st.integers(1, 120))
    rows = {
        "t": random.integers(0, 120, size),
        "publication": random.choice(list("pqr"), size),
        "subscription": random.integers(1, 6, size),
    }
    table = pd.DataFrame(rows).sort_values("t", ignore_index=True)
    if draw(st.booleans()):
        # No broker sends this, but a table can say it: a row twice, a match after a match.
        table["kind"] = random.choice(TOLD, size)
        return table.sample(frac=1, random_state=random, ignore_index=True)
    table = table.drop_duplicates(ignore_index=True)
    turn = table.groupby(["publication", "subscription"]).cumcount() % 2
    table["kind"] = np.where(turn == 0, "match", "unmatch")
    return table.sample(frac=1, random_state=random, ignore_index=True)


@st.composite
def channels(draw: st.DrawFn) -> Channel:
    common = {"breaks": draw(probabilities), "broker_side": draw(probabilities), "noticed": draw(probabilities)}
    loss = draw(probabilities)
    rows = draw(st.lists(st.tuples(names, instants, st.integers(1, 60)), max_size=8))
    table = pd.DataFrame(rows, columns=["subscription", "start", "end"])
    table["end"] += table["start"]
    return draw(
        st.sampled_from(
            [
                Independent(loss, **common),
                GilbertElliott(loss, loss_bad=draw(probabilities), good_s=20, bad_s=7, **common),
                Outages(loss, table=table, **common),
            ]
        )
    )


some_strategies = st.one_of(
    *[st.builds(kind, measured=st.booleans(), **bounds) for kind in (Constant, MultiplicativeDecrease, Adaptive)],
    st.builds(RandomSelection, a_s=st.just(3.0), b_s=st.just(11.0), **bounds),
    st.builds(Prompt, **bounds),
    st.builds(Receding, growth=st.just(1.5), **bounds),
    st.builds(SquareRoot, worth_s=st.just(0.5), **bounds),
)
some_rules = st.builds(
    Rules,
    sweep_s=st.sampled_from([0.0, 10.0, 33.5]),
    log=st.integers(0, 4),
    estimator=st.sampled_from(["numbers", "connection"]),
    shed=st.sampled_from([(), (0.0, 0.5, 1.0, 0.2) * 40]),
    spread_s=st.sampled_from([0.0, 13.0]),
)


@settings(max_examples=300, deadline=None)
@given(streams(), channels(), some_strategies, some_rules, st.integers(0, 2**63), st.sampled_from([SECOND_US, 333_331]))
def test_the_kernel_equals_the_simulation_client_by_client(
    stream: pd.DataFrame, channel: Channel, strategy: Strategy, rules: Rules, seed: int, tick_us: int
) -> None:
    lifetime = {"seed": seed, "since": 0, "until": 140, "tick_us": tick_us}
    fast = delivered(stream, channel, strategy, rules, **lifetime)
    slow = simulated(stream, channel, strategy, rules, **lifetime)
    pd.testing.assert_frame_equal(fast.clients, slow.clients)
    pd.testing.assert_frame_equal(fast.deliveries, slow.deliveries)
    pd.testing.assert_frame_equal(fast.load, slow.load)


@settings(max_examples=60, deadline=None)
@given(streams(), channels(), some_strategies, some_rules)
def test_accounts_balance(stream: pd.DataFrame, channel: Channel, strategy: Strategy, rules: Rules) -> None:
    told = delivered(stream, channel, strategy, rules, since=0, until=140)
    clients = told.clients
    assert clients[list(COUNTS[:5])].sum(axis=1).tolist() == stream.groupby("subscription").size().tolist()
    assert (clients["failed"] <= clients["checks"]).all()
    assert (clients["stale_us"] <= 140 * SECOND_US).all()
    if rules.estimator == "numbers":
        assert (clients["observed"] <= clients["lost"] + clients["unsent"]).all()
    assert (told.deliveries["delay_us"].isna() == told.deliveries["how"].isin(["missed", "pending"])).all()


@settings(max_examples=30, deadline=None)
@given(streams(), some_strategies, some_rules, st.permutations([1, 2, 3, 4, 5]))
def test_a_clients_fate_depends_on_no_other_client(
    stream: pd.DataFrame, strategy: Strategy, rules: Rules, order: list[int]
) -> None:
    together = delivered(stream, Independent(0.4), strategy, rules, since=0, until=140).clients
    one = order[0]
    alone = delivered(
        stream[stream["subscription"] == one], Independent(0.4), strategy, rules, since=0, until=140
    ).clients
    expected = together[together["subscription"] == one]
    assert alone.values.tolist() == expected.values.tolist()


def test_string_names_and_utc_timestamps_are_delivered_too() -> None:
    stream = notified((10, "match", "p"), (50, "unmatch", "p"), subscription="bus/7")
    stamps = stream.assign(t=pd.to_datetime(stream["t"], unit="s", utc=True))
    as_ticks = delivered(stream, Independent(0.5), Constant(), since=0, until=100)
    as_stamps = delivered(
        stamps,
        Independent(0.5),
        Constant(),
        since=pd.Timestamp(0, tz="UTC"),
        until=pd.Timestamp(100, unit="s", tz="UTC"),
    )
    pd.testing.assert_frame_equal(as_ticks.clients, as_stamps.clients)


@pytest.mark.parametrize(
    ("change", "lifetime", "said"),
    [
        ({"kind": "enter"}, {}, "kind 'enter'"),
        ({"t": pd.Timestamp("2024-01-01")}, {}, "time zone"),
        ({"subscription": 1.5}, {}, "integers or all strings"),
        ({"subscription": ["a", None]}, {}, "no 'subscription' in 1 row"),
        ({"subscription": [7, np.nan]}, {}, "no 'subscription' in 1 row"),
        ({"publication": None}, {}, "no 'publication' in 2 rows"),
        ({"kind": ["match", None]}, {}, "no 'kind' in 1 row"),
        ({"t": pd.array([10, None], dtype="Int64")}, {}, "no 't' in 1 row"),
        ({}, {"until": 100}, "outside"),
        ({}, {"since": 9, "until": 8}, "before since"),
    ],
)
def test_a_table_that_cannot_be_delivered_is_refused(
    change: dict[str, Any], lifetime: dict[str, int], said: str
) -> None:
    stream = notified((10, "match", "p"), (2000, "match", "p")).assign(**change)
    with pytest.raises(DataError, match=said):
        delivered(stream, Independent(), Constant(), **lifetime)


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5])
def test_a_seed_that_is_no_key_is_refused(seed: Any) -> None:
    for deliver in (delivered, simulated):
        with pytest.raises(DataError, match=r"seed is .*; expected an integer from 0 to 2\*\*64 - 1"):
            deliver(notified((10, "match", "p")), Independent(), Constant(), seed=seed)


def test_outages_that_name_clients_otherwise_than_the_notifications_are_refused() -> None:
    """They would be outages of nobody, and everything would arrive."""
    with pytest.raises(DataError, match="outages name clients as 7; the notifications' subscriptions are strings"):
        delivered(notified((10, "match", "p"), subscription="7"), outages((0, 20)), Constant(), since=0, until=20)


def test_nobody_is_delivered_nothing() -> None:
    empty = notified((10, "match", "p")).iloc[:0]
    for stream, channel in ((empty, Independent()), (empty.astype({"subscription": object}), outages((0, 20)))):
        nothing = delivered(stream, channel, Constant(), since=0, until=20)
        assert (len(nothing.deliveries), len(nothing.clients)) == (0, 0)
        assert not nothing.summary().any()


def test_values_that_mean_nothing_are_refused() -> None:
    for make in (
        lambda: Independent(1.5),
        lambda: GilbertElliott(good_s=0),
        lambda: Adaptive(alpha=1.0),
        lambda: Constant(t_min_s=30, t0_s=20),
        lambda: RandomSelection(a_s=5, b_s=3),
        lambda: SquareRoot(worth_s=0),
        lambda: Rules(log=-1),
        lambda: Outages(table=pd.DataFrame({"client": [1]})),
        lambda: Outages(table=pd.DataFrame({"subscription": [1, None], "start": 0, "end": 1})),
    ):
        with pytest.raises(WorkbenchError):
            make()
