"""The order by several keys, also of so many rows that parts of them are sorted side by side."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.engines import intervals


@pytest.mark.parametrize("count", [0, 1, 1000, intervals.MANY + 17])
@pytest.mark.parametrize("spread", ["even", "one value", "far apart", "in order"])
def test_rows_are_in_the_order_of_the_keys(count: int, spread: str) -> None:
    draw = np.random.default_rng(count)
    first = {
        "even": draw.integers(-500, 500, count),
        "one value": np.full(count, 7),
        "far apart": np.where(draw.random(count) < 0.001, -(2**40), draw.integers(0, 3, count)),
        "in order": np.sort(draw.integers(0, 1000, count)),
    }[spread]
    second, third = draw.integers(-9, 9, count).astype(np.int32), draw.permutation(count)
    found = intervals.ordered(first, second, third)
    assert found.tolist() == np.lexsort((third, second, first)).tolist()
