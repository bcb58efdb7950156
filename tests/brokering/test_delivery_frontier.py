"""Staleness against checks, on seeds that chose nothing; and a broker with too many clients."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from workbench.brokering.delivery import (
    Channel,
    Constant,
    GilbertElliott,
    Independent,
    Outages,
    Receding,
    Rules,
    SquareRoot,
    gaps,
)
from workbench.brokering.delivery.frontier import PAPERS, families, tradeoff, undominated
from workbench.brokering.delivery.overload import overloaded
from workbench.brokering.delivery.simulated import simulated
from workbench.brokering.delivery.streams import outings

DAY = 86_400


def out(clients: int, seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    start = random.integers(0, DAY, 4 * clients)
    end = start + random.exponential(900, start.size).astype(int)
    return pd.DataFrame({"subscription": random.integers(0, clients, start.size), "start": start, "end": end})


# Parameters were chosen with streams of seed 3, outages of seed 5 and draws of seed 1; these are others.
CHANNELS: list[Channel] = [
    Independent(0.1),
    Independent(0.1, breaks=0.2),
    GilbertElliott(0.01, loss_bad=0.9, good_s=1200, bad_s=200, breaks=0.3),
    Outages(0.01, table=out(150, seed=105), breaks=0.5),
]


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda c: f"{type(c).__name__}-{c.breaks}")
def test_two_of_ours_lie_on_the_frontier_of_seeds_that_chose_nothing(channel: Channel) -> None:
    stream = outings(150, 24, seed=103)
    papers = [s for s in families() if type(s).__name__ in PAPERS]
    ours = [Receding(t0_s=60, growth=2.0, t_max_s=7200), SquareRoot(t0_s=60, worth_s=9.6, t_max_s=7200)]
    table = tradeoff(stream, channel, [*papers, *ours], seeds=[101, 102], since=0, until=DAY)
    mine = table[~table["strategy"].isin(PAPERS)]
    assert mine["frontier"].all(), mine
    # Ahead of it, too: even with a tenth more staleness no strategy of the paper would be better. With outages the lead
    # is smaller than that, since everybody waits for the network.
    if not isinstance(channel, Outages):
        papers_own = table["strategy"].isin(PAPERS)
        worse = table.assign(stale_share=table["stale_share"].where(papers_own, table["stale_share"] * 1.1))
        assert undominated(worse)[-2:].all()


def test_more_checks_less_staleness() -> None:
    stream = outings(50, 12, seed=103)
    eager_first = [Constant(t0_s=t) for t in (30, 120, 480)]
    table = tradeoff(stream, Independent(0.2), eager_first, seeds=[101], since=0, until=DAY // 2)
    assert table["stale_share"].is_monotonic_increasing
    assert table["checks_per_hour"].is_monotonic_decreasing


def test_gaps_in_a_trace_are_outages() -> None:
    fixes = pd.DataFrame({"mobile": ["b", "a", "a", "a"], "t": [5, 100, 0, 1000]})
    assert gaps(fixes, 300).to_dict("list") == {"subscription": ["a"], "start": [100], "end": [1000]}


def test_many_eager_clients_overload_the_broker_and_lose_more() -> None:
    stream = outings(300, 1, seed=103)
    rules = Rules(spread_s=60)
    lifetime = {"since": 0, "until": 3600}
    eager, patient = Constant(t0_s=5), Constant(t0_s=60)
    by_eager, _ = overloaded(stream, Independent(), eager, 30, rules, **lifetime)
    by_patient, _ = overloaded(stream, Independent(), patient, 30, rules, **lifetime)
    assert by_eager.summary()["lost_share"] > 0.3 > 0.01 > by_patient.summary()["lost_share"]


def test_independent_clients_given_the_drops_are_as_stale_as_clients_of_one_simulated_broker() -> None:
    stream = outings(200, 0.5, seed=103)
    rules, lifetime = Rules(spread_s=60), {"since": 0, "until": 1800}
    mean_field, _ = overloaded(stream, Independent(0.05), Constant(t0_s=5), 25, rules, **lifetime)
    one_broker = simulated(stream, Independent(0.05), Constant(t0_s=5), rules, capacity=25, **lifetime)
    ours, theirs = mean_field.summary(), one_broker.summary()
    assert ours["load_per_s"] == pytest.approx(theirs["load_per_s"], rel=0.1)
    assert ours["checks_per_hour"] == pytest.approx(theirs["checks_per_hour"], rel=0.1)
