"""The whole way of a notification: from a federation of brokers to a phone that is not always there."""

from __future__ import annotations

import numpy as np
import pandas as pd

from workbench import replay
from workbench.brokering.delivery import Constant, GilbertElliott, Independent, Outages, Receding, delivered
from workbench.brokering.federation import Federation, federated, geographic, overlay
from workbench.scenarios.proximity import scenario

NEAR = scenario(radius_m=150)


def walks(mobiles: int = 30, steps: int = 60, every_s: int = 30, seed: int = 106) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    to = random.uniform(0, 1000, (mobiles, 1, 2)) + random.normal(0, 40, (mobiles, steps, 2)).cumsum(axis=1)
    mobile, step = np.divmod(np.arange(mobiles * steps), steps)
    return pd.DataFrame({"mobile": mobile, "t": step * every_s, "x": to[..., 0].ravel(), "y": to[..., 1].ravel()})


def sorted_rows(table: pd.DataFrame) -> pd.DataFrame:
    return table.sort_values(["subscription", "t", "kind", "publication"], ascending=[True, True, False, True])


def test_what_a_federation_tells_is_delivered_as_what_one_broker_tells() -> None:
    fixes = walks()
    places = pd.DataFrame({"place": range(9), "x": np.tile([0, 500, 1000], 3), "y": np.repeat([0, 500, 1000], 3)})
    grid = geographic({f"B{i}": (250.0 + 500 * (i % 2), 250.0 + 500 * (i // 2)) for i in range(4)})
    many = federated(NEAR, fixes, places, overlay=grid)
    one = replay(NEAR, fixes, places)
    assert many.counts.summary["forwards"] > 0 and len(one.notifications) > 100
    channel = GilbertElliott(0.05, loss_bad=0.9, good_s=300, bad_s=100, breaks=0.3)
    lifetime = {"seed": 107, "since": 0, "until": 1800}
    by_many = delivered(many.notifications, channel, Receding(), **lifetime)
    by_one = delivered(one.notifications, channel, Receding(), **lifetime)
    pd.testing.assert_frame_equal(by_many.clients, by_one.clients)
    assert sorted_rows(by_many.deliveries).values.tolist() == sorted_rows(by_one.deliveries).values.tolist()
    assert by_many.deliveries["how"].nunique() > 2, "some notifications were lost, and some of these recovered"


def test_what_a_broken_link_kept_back_and_the_air_then_lost_comes_with_a_check() -> None:
    line = Federation(NEAR, overlay("chain", 3))
    line.add("places", "cafe", at="B3", t=1, position=(0, 0))
    line.add("mobiles", 7, at="B1", t=2, position=(50, 0))
    line.fail_link("B1", "B2", t=5)
    line.remove("places", "cafe", t=6)
    line.repair_link("B1", "B2", t=9)
    line.settle()
    out = Outages(table=pd.DataFrame({"subscription": [7], "start": [8], "end": [12]}))
    told = delivered(line.notifications, out, Constant(t0_s=20), since=0, until=60)
    assert told.deliveries[["t", "kind", "how"]].values.tolist() == [
        [2, "match", "by_message"],
        [9, "unmatch", "by_state"],
    ]
    # told three seconds late by the brokers, and another 13 by the air: the check is due 20 s after t = 2
    assert told.deliveries["delay_us"].tolist() == [0, 13_000_000]


def test_a_federation_with_delays_is_delivered_in_its_own_time() -> None:
    late = Federation(NEAR, overlay("chain", 3), delay=2)
    late.add("places", "cafe", at="B3", t=1, position=(0, 0))
    late.add("mobiles", 7, at="B1", t=2, position=(50, 0))
    late.settle()
    told = delivered(late.notifications, Independent(), Constant(), since=0, until=60)
    assert told.deliveries["how"].tolist() == ["by_message"]
    assert late.notifications["t"].item() > 2
