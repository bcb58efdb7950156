"""A small load over TCP: every event exactly once to each of its ten subscribers, in the order of its publisher."""

from __future__ import annotations

import pytest

from workbench.bench.tip_load import Load, measure
from workbench.errors import WorkbenchError


@pytest.mark.parametrize("echo", [False, True], ids=["broker", "echo"])
def test_a_small_load_is_delivered_exactly_once_and_in_order(echo: bool) -> None:
    load = Load(services=40, events=400)
    assert len(load.event(7)) == 1_000
    found = measure(load, echo=echo)
    assert (found.deliveries, found.twice, found.disordered, found.missing) == (4_000, 0, 0, 0)


def test_a_load_without_groups_is_refused() -> None:
    with pytest.raises(WorkbenchError, match="two groups"):
        measure(Load(services=10))
