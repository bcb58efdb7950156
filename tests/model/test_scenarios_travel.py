"""A scenario is plain data: it survives the way to another process."""

from __future__ import annotations

import pickle

import pytest

from workbench.model.columns import MISSING
from workbench.model.extents import ANYWHERE
from workbench.scenarios import BUILT_IN, named


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_every_built_in_scenario_survives_pickling(name):
    made = named(name)()
    copy = pickle.loads(pickle.dumps(made))  # noqa: S301 - our own bytes
    assert copy.populations == made.populations
    assert repr(copy) == repr(made)


@pytest.mark.parametrize("value", [MISSING, ANYWHERE])
def test_values_that_are_one_stay_one(value):
    assert pickle.loads(pickle.dumps(value)) is value  # noqa: S301 - our own bytes
