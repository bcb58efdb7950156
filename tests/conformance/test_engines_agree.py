"""Every engine gives the reference's tables, whole and equal, on random scenarios in which every node occurs."""

from __future__ import annotations

import warnings

import pandas as pd
import pytest
from hypothesis import given, reject, settings
from pandas.testing import assert_frame_equal

from tests.conformance.strategies import NODES, Case, cases, contains
from workbench.errors import WorkbenchError
from workbench.replay import Replay, replay


def replayed(case: Case, engine: str) -> Replay:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a filter without an indexable part says so
        return replay(case.scenario, case.fixes, case.places, engine=engine, until=case.until)


def speaks(timelines: pd.DataFrame) -> bool:
    """Whether there is both a match and an unmatch."""
    return bool((timelines["ended"] == "unmatch").any())


def assert_agree(case: Case) -> Replay:
    try:
        judge = replayed(case, "reference")
    except WorkbenchError:
        reject()  # two shapes whose relation is not supported
    asked = replayed(case, "local")
    assert_frame_equal(asked.timelines, judge.timelines, check_exact=True)
    assert_frame_equal(asked.notifications, judge.notifications, check_exact=True)
    same = ("rows_in", "rows_collapsed", "rows_set_aside", "instants", "until", "metric")
    assert {k: asked.metrics[k] for k in same} == {k: judge.metrics[k] for k in same}
    return judge


@pytest.mark.parametrize("kind", NODES)
def test_local_gives_the_tables_of_the_reference(kind: str) -> None:
    speaking = 0

    @settings(max_examples=max(60, settings.default.max_examples if settings.default else 0))
    @given(cases(kind))
    def agree(case: Case) -> None:
        nonlocal speaking
        judge = assert_agree(case)
        there = any(contains(p.filter, kind) for p in case.scenario.populations)
        speaking += there and speaks(judge.timelines)

    agree()
    assert speaking >= 20, f"only {speaking} scenarios with {kind} had both a match and an unmatch"
