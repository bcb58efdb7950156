"""Every engine gives the reference's tables, whole and equal, on random scenarios in which every node occurs.

``HYPOTHESIS_PROFILE=search`` looks for new cases. To make a failing one small, draw it with `shrinking_cases`.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from tests.conformance.living import in_order, lived, notified, rows_of
from tests.conformance.packing import replayed_together
from tests.conformance.pool import SPEAKING, Judged
from tests.conformance.strategies import NODES, contains
from workbench import tables
from workbench.replay import _silent_ids, replay

Cases = Callable[[str], list[Judged]]
AT_ONCE = 140
"""cases in one Spark job"""


def notifications(one: Judged) -> pd.DataFrame:
    """What the judge's timelines stand for."""
    scenario = one.case.scenario
    silent = frozenset(p.name for p in scenario.publications if p.transient)
    return tables.notifications_frame(one.judge, _silent_ids(scenario, silent, one.judge))


def rows(table: pd.DataFrame) -> list[tuple[object, ...]]:
    """The rows of a table, for tables whose files know less of types and order than frames do."""
    listed = table.astype(object).itertuples(index=False, name=None)
    return sorted((tuple(None if pd.isna(cell) else cell for cell in row) for row in listed), key=repr)


@pytest.mark.parametrize("kind", NODES)
def test_every_node_occurs_where_pairs_match_and_unmatch(judged: Cases, kind: str) -> None:
    speaking = [one for one in judged(kind) if one.speaks]
    assert len(speaking) >= SPEAKING
    for one in speaking:
        assert any(contains(p.filter, kind) for p in one.case.scenario.populations), one.name


@pytest.mark.parametrize("kind", NODES)
def test_local_and_live_say_what_the_reference_says(judged: Cases, kind: str) -> None:
    for one in judged(kind):
        assert_frame_equal(one.local, one.judge, check_exact=True, obj=one.name)
        broker, said = lived(one.case, one.data)
        expected = notified(notifications(one))
        assert notified(broker.notifications) == expected, one.name
        assert in_order(rows_of(said)) == in_order(expected), one.name


@pytest.mark.spark
@pytest.mark.late
@pytest.mark.timeout(900)  # it may be the one that judges all cases
def test_spark_says_what_the_reference_says(judged: Cases, spark: object) -> None:
    everything = [one for kind in NODES for one in judged(kind)]
    assert len(everything) >= 500
    for first in range(0, len(everything), AT_ONCE):
        asked = everything[first : first + AT_ONCE]
        answers = replayed_together([one.case for one in asked])
        for one, (done, timelines) in zip(asked, answers, strict=True):
            assert rows(timelines) == rows(one.judge), one.name
            told = notifications(one)
            assert done.metrics["matches"] == len(one.judge), one.name
            assert done.metrics["notifications"] == len(told), one.name
        assert rows(answers[0][0].collect().notifications) == rows(notifications(asked[0]))


@pytest.mark.filterwarnings("ignore:the filters of")
def test_replay_counts_alike_on_reference_and_local(judged: Cases) -> None:
    for kind in NODES[::4]:
        one = judged(kind)[0]
        done = [
            replay(one.case.scenario, one.case.fixes, one.case.places, engine=engine, until=one.case.until)
            for engine in ("reference", "local")
        ]
        for name in ("timelines", "notifications"):
            assert_frame_equal(getattr(done[0], name), getattr(done[1], name), check_exact=True, obj=one.name)
        counts = [{k: v for k, v in d.metrics.items() if k not in ("seconds", "engine")} for d in done]
        assert counts[0] == counts[1], one.name
