"""A city divided into squares, each with its broker; what merging does where positions are known within a blur."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from workbench import replay
from workbench.brokering.federation import Rules, federated, squares
from workbench.errors import ScenarioError
from workbench.scenarios.proximity import scenario


@pytest.mark.parametrize(("brokers", "instead"), [(8, "4 or 9"), (63, "49 or 64"), (2, "1 or 4"), (0, "1"), (-4, "1")])
def test_a_number_of_brokers_that_makes_no_square_is_refused(brokers: int, instead: str) -> None:
    with pytest.raises(ScenarioError, match=f"{brokers} brokers do not make a square; take {instead}$"):
        squares(brokers, 6000)


@pytest.mark.parametrize("brokers", [1, 4, 9, 16])
def test_every_broker_stands_in_the_middle_of_its_square(brokers: int) -> None:
    city = squares(brokers, 1200)
    assert len(city.brokers) == brokers and len(city.links) == brokers - 1
    side = int(brokers**0.5)
    columns = sorted({x for x, _ in city.positions.values()})
    assert columns == sorted({y for _, y in city.positions.values()}) == [600 / side * (2 * i + 1) for i in range(side)]


def test_merging_within_a_blur_is_not_covering_under_another_name() -> None:
    """Known only as somewhere, subscribers cover each other; known within a blur, neighbours are put together."""
    random = np.random.default_rng(2)
    walks = random.uniform(0, 1200, (24, 1, 2)) + random.normal(0, 30, (24, 20, 2)).cumsum(axis=1)
    mobile, step = np.divmod(np.arange(24 * 20), 20)
    fixes = pd.DataFrame({"mobile": mobile, "t": step, "x": walks[..., 0].ravel(), "y": walks[..., 1].ravel()})
    places = pd.DataFrame({"place": range(9), "x": np.tile([200, 600, 1000], 3), "y": np.repeat([200, 600, 1000], 3)})
    near = scenario(radius_m=100)
    runs = {
        routing: federated(near, fixes, places, overlay=squares(4, 1200), rules=Rules(routing=routing, blur_m=200))
        for routing in ("simple", "covering", "merging")
    }
    entries = {routing: sum(run.table_sizes.values()) for routing, run in runs.items()}
    assert entries["merging"] < entries["covering"] == entries["simple"]
    assert runs["merging"].false_forwards > runs["covering"].false_forwards, "what lies between two is sent in vain"
    one = sorted(map(tuple, replay(near, fixes, places).notifications.values.tolist()))
    assert [sorted(map(tuple, run.notifications.values.tolist())) == one for run in runs.values()] == [True] * 3
