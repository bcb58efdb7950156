"""The examples of Subject Spaces that match something: the same on every engine and live, with the paper's answers."""

from __future__ import annotations

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from tests.conformance.living import lived, notified
from tests.conformance.packing import replayed_together
from tests.conformance.strategies import Case
from tests.model.test_paper_examples import CAR_AT_60_PERCENT, ENDS, LINE, STATION_AT_65_CENT
from tests.model.worlds import table
from workbench.model import (
    Scenario,
    between,
    column,
    now,
    other,
    own,
    pi,
    publications,
    region,
    seconds,
    subscription,
    tau,
)
from workbench.replay import replay
from workbench.scenarios import named

ROWS = "place t lower upper\n" + "\n".join(f"{name} 1 {low} {high}" for name, (low, high) in ENDS.items())


def example_5(name: str, relation: str) -> Case:
    """One region of the line asks for those that are related to it; all of them are there, itself as another client."""
    asked = region(LINE, d=between(*ENDS[name]))
    r = publications("r", rows="places", regions={"r": region(LINE, d=between(column.lower, column.upper))})
    wanted = getattr(own.asked, relation)(other.r, space=LINE)
    asks = subscription("asks", regions={"asked": asked}, filter=wanted)
    places = table(ROWS)
    return Case(Scenario([LINE], [r], [asks]), None, places if relation != "nearest" else places[:3], None)


def example_6(passed: object) -> Case:
    """A region that is added within another at 10, leaves at 20, is back at 30 and leaves at 40."""
    inside = own.r1.overlaps(other.r2, space=LINE)
    moving = publications(
        "p1", rows="fixes", regions={"r1": region(LINE, d=column.d)}, filter=now - passed(inside) <= seconds(5)
    )
    stays = subscription("s2", regions={"r2": region(LINE, d=between(0, 1))})
    fixes = table("mobile t d\nm 10 0.5\nm 20 2\nm 30 1\nm 40 3\nm 50 3")
    return Case(Scenario([LINE], [moving], [stays]), fixes, None, None)


def examples_7_to_9() -> Case:
    """Far away at 1; near at 2, where only the station's filter accepts; below 20 % at 3."""
    return Case(named("fuel")(), table(CAR_AT_60_PERCENT), table(STATION_AT_65_CENT), None)


EXAMPLES = {
    "5, containment": (example_5("r2", "contains"), [("r1", 1, None), ("r2", 1, None)]),
    "5, enclosure": (example_5("r1", "enclosed_by"), [("r1", 1, None), ("r2", 1, None)]),
    "5, overlap": (example_5("r2", "overlaps"), [("r1", 1, None), ("r2", 1, None), ("r3", 1, None)]),
    "5, nearest neighbour": (example_5("r4", "nearest"), [("r3", 1, None)]),
    "6, tau is p, then r": (example_6(tau), [("m", 10, 16), ("m", 30, 36)]),
    "6, pi is q, then s": (example_6(pi), [("m", 20, 26), ("m", 40, 46)]),
    "7 to 9": (examples_7_to_9(), [("station", 3, None)]),
}


def told(timelines: pd.DataFrame) -> list[tuple[object, object, object]]:
    rows = timelines.astype(object).where(timelines.notna(), None)
    return sorted(rows[["publication", "tau", "pi"]].itertuples(index=False, name=None), key=str)


@pytest.mark.parametrize("name", EXAMPLES)
def test_reference_local_and_live_give_the_papers_answers(name: str) -> None:
    case, expected = EXAMPLES[name]
    judge, local = (replay(case.scenario, case.fixes, case.places, engine) for engine in ("reference", "local"))
    assert told(judge.timelines) == expected
    assert_frame_equal(local.timelines, judge.timelines, check_exact=True)
    broker, _ = lived(case)
    assert notified(broker.notifications) == notified(judge.notifications)


@pytest.mark.spark
def test_spark_gives_the_papers_answers(spark: object) -> None:
    answers = replayed_together([case for case, _ in EXAMPLES.values()])
    for (name, (_, expected)), (_, timelines) in zip(EXAMPLES.items(), answers, strict=True):
        assert told(timelines) == expected, name
