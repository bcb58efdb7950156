"""Every engine gives the reference's tables, whole and equal, on random scenarios in which every node occurs.

``HYPOTHESIS_PROFILE=search`` looks for new cases. To make a failing one small, draw it with `shrinking_cases`.
"""

from __future__ import annotations

import warnings
from random import Random

import pandas as pd
import pytest
from hypothesis import given, reject, settings
from pandas.testing import assert_frame_equal

from tests.conformance.living import in_order, lived, notified, rows_of
from tests.conformance.strategies import NODES, Case, case, cases, contains
from workbench.errors import ScenarioError
from workbench.replay import Replay, replay

EXAMPLES = 25
"""of each node type; more where the profile asks for more"""


def replayed(made: Case, engine: str) -> Replay:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a filter without an indexable part says so
        return replay(made.scenario, made.fixes, made.places, engine=engine, until=made.until)


def assert_agree(made: Case) -> None:
    try:
        judge = replayed(made, "reference")
    except ScenarioError as error:
        if "is not supported" in str(error) or "takes intervals, points" in str(error):
            reject()  # the model refuses this relation of two shapes
        raise
    broker, said = lived(made)
    expected = notified(judge.notifications)
    assert notified(broker.notifications) == expected
    assert in_order(rows_of(said)) == in_order(expected)
    asked = replayed(made, "local")
    assert_frame_equal(asked.timelines, judge.timelines, check_exact=True)
    assert_frame_equal(asked.notifications, judge.notifications, check_exact=True)
    unequal = {"seconds", "engine"}
    assert {k: v for k, v in asked.metrics.items() if k not in unequal} == {
        k: v for k, v in judge.metrics.items() if k not in unequal
    }


@pytest.mark.parametrize("kind", NODES)
def test_local_and_live_say_what_the_reference_says(kind: str) -> None:
    wanted = settings().max_examples

    @settings(max_examples=wanted if wanted > 100 else EXAMPLES)
    @given(cases(kind))
    def agree(made: Case) -> None:
        assert_agree(made)

    agree()


def speaks(timelines: pd.DataFrame) -> bool:
    """Whether there is both a match and an unmatch."""
    return bool((timelines["ended"] == "unmatch").any())


@pytest.mark.parametrize("kind", NODES)
def test_every_node_occurs_where_pairs_match_and_unmatch(kind: str) -> None:
    speaking = 0
    for seed in range(300):
        made = case(Random(seed).choice, kind)
        assert any(contains(p.filter, kind) for p in made.scenario.populations)
        try:
            speaking += speaks(replayed(made, "local").timelines)
        except ScenarioError:
            continue  # the model refuses a relation of two shapes
        if speaking == 20:
            return
    pytest.fail(f"only {speaking} scenarios with {kind} had both a match and an unmatch")
