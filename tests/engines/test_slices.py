"""Work that is shared by buckets, visits or slices of time gives what one task gives; the tasks run in this process."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.datasets import layout
from workbench.engines import local, spark, tasks
from workbench.model import (
    Scenario,
    Space,
    column,
    held,
    latch,
    location,
    now,
    other,
    own,
    pi,
    publications,
    region,
    seconds,
    subscriptions,
)
from workbench.replay import _prepared, replay
from workbench.scenarios import named
from workbench.scenarios.friends import CONTEXTS

HERE = region(location, position=column.position)


class Here(spark.Work):
    """Tasks one after another, in this process, as if there were so many cores."""

    cores = 3  # type: ignore[assignment]

    def over(self, task, count):
        return [json.loads(json.dumps(task(n))) for n in range(count)]


def shared(scenario, fixes, places, folder: Path, cores: int = 3, until=None, zone=None):
    """Timelines, plan and counts of a replay of a table or a file whose tasks run here."""
    return worked(scenario, fixes, places, folder, cores, until, zone)[:3]


def worked(scenario, fixes, places, folder: Path, cores: int = 3, until=None, zone=None):
    """The same, and what the tasks said."""
    raw, scratch = folder / "raw.parquet", folder / "scratch"
    scratch.mkdir()
    if isinstance(fixes, pd.DataFrame):
        fixes.to_parquet(raw, index=False, row_group_size=97)
    else:
        raw = fixes
    with Here(None, scratch, "testing") as work:
        work.__class__ = type("Cores", (Here,), {"cores": cores})
        source = spark.raw(raw, layout.bucket_of)
        _, plan, counts, said = spark.written(work, scenario, source, places, zone, until, local.planned, _prepared)
    return pq.read_table(scratch / "timelines").to_pandas(), plan, counts, said


def in_order(timelines: pd.DataFrame) -> list:
    rows = [tuple(None if pd.isna(v) else v for v in row) for row in timelines.itertuples(index=False)]
    return sorted(rows, key=repr)


def walk(seed: int, n: int = 1_200, mobiles: int = 12) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(seed)
    here, there = rng.integers(0, 30, (2, n)) * 50.0, rng.integers(0, 30, (2, 6)) * 50.0
    t = np.sort(rng.integers(1, n // 3, n))
    fixes = pd.DataFrame({"mobile": rng.integers(0, mobiles, n), "t": t, "x": here[0], "y": here[1]})
    places = pd.DataFrame({"place": [f"p{k}" for k in range(6)], "x": there[0], "y": there[1]})
    fixes = pd.concat([fixes, fixes[:20]]).sample(frac=1, random_state=seed)
    return fixes, places


def pairs(filter_, **options) -> Scenario:
    """Mobiles that look at one another."""
    shown = publications("shown", rows="fixes", regions={"here": HERE})
    looking = subscriptions("looking", rows="fixes", regions={"here": HERE}, filter=filter_, **options)
    return Scenario([location], [shown], [looking])


near = own.here.within(150, other.here, space=location)
far = ~own.here.within(250, other.here, space=location)
SCENARIOS = {
    "friends": (named("friends")(), spark.slices.MEETINGS),
    "latch": (pairs(latch(on=near, off=far)), spark.slices.MEETINGS),
    "held": (pairs(held(near, seconds(3))), spark.slices.MEETINGS),
    "near": (pairs(near), spark.slices.MOMENTS),
    "nearest": (pairs(own.here.nearest(other.here, space=location)), spark.slices.MOMENTS),
    "dispatch": (named("dispatch")(radius_m=400), spark.slices.MOMENTS),
    "traffic": (named("traffic")(500, 900, 0.1, 3), spark.VISITS),
    "looking back": (pairs(near & (now - pi(near) > seconds(30))), spark.TOGETHER),
    "held apart": (pairs(held(far, seconds(5)) & far), spark.TOGETHER),
    "coffee": (named("coffee")(), spark.BUCKETS),
    "proximity": (named("proximity")(150), spark.BUCKETS),
}


@pytest.mark.filterwarnings("ignore:the filters of")
@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("cores", [2, 9])
def test_shared_work_gives_the_timelines_of_one_task(name, cores, tmp_path):
    scenario, how = SCENARIOS[name]
    fixes, places = walk(seed=cores)
    timelines, plan, counts = shared(scenario, fixes, places, tmp_path, cores)
    whole = replay(scenario, fixes, places)
    assert plan == spark.PLANS[how].format(why=spark.entangled(scenario))
    assert in_order(timelines) == in_order(whole.timelines)
    assert len(timelines) == counts["timelines"] > 20
    for counted in ("rows_in", "rows_collapsed", "rows_set_aside", "unmatches"):
        assert counts[counted] == whole.metrics[counted]


BY = {
    "traffic": ["all pairs, for any cars.here m_e section", "all pairs"],
    "latch": ["here m_250 here'"],
    "nearest": ["here m_n here'"],
    "looking back": ["here m_150 here'"],
}


@pytest.mark.parametrize("name", BY)
def test_what_found_the_candidates_is_said_for_all_tasks_together(name, tmp_path):
    fixes, places = walk(seed=2)
    scenario, _ = SCENARIOS[name]
    steps = tasks.steps_of(worked(scenario, fixes, places, tmp_path)[3])
    assert [step.driver for step in steps] == BY[name]
    assert all(0 < step.candidates <= step.pairs for step in steps)


NAMES = {"numbers": lambda m: m, "far apart": lambda m: m * 10**14 - 5, "text": lambda m: f"m{m}"}


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    order=st.sampled_from(["time", "mobile", "any"]),
    name=st.sampled_from(sorted(NAMES)),
    attributes=st.booleans(),
    distances=st.sampled_from([(150.0, 150.0), (100.0, 250.0), (0.0, 50.0)]),
    cores=st.integers(1, 9),
    until=st.sampled_from([None, 40]),
    shares=st.sampled_from([1_000_000, 60]),
)
def test_encounters_of_slices_are_those_of_one_process(
    tmp_path_factory, seed, order, name, attributes, distances, cores, until, shares
):
    fixes, _ = walk(seed, n=240)
    fixes = fixes.drop_duplicates(["mobile", "t"])
    fixes["mobile"] = fixes["mobile"].map(NAMES[name])
    if attributes:
        fixes["context"] = np.where(fixes["t"] % 50 < 30, CONTEXTS[0], CONTEXTS[1])
        fixes["role"] = np.where(fixes["x"] < 500, "friend", "colleague")
    if order != "any":
        fixes = fixes.sort_values(["t", "mobile"] if order == "time" else ["mobile", "t"], ignore_index=True)
    scenario = named("friends")(*distances)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark, "ROWS_A_BUCKET", shares)
        timelines, plan, counts = shared(scenario, fixes, None, tmp_path_factory.mktemp("work"), cores, until)
    whole = replay(scenario, fixes, until=until)
    assert plan == spark.PLANS[spark.ENCOUNTERS].format(why=spark.entangled(scenario))
    assert in_order(timelines) == in_order(whole.timelines)
    for counted in ("rows_in", "rows_collapsed", "rows_set_aside", "timelines", "unmatches"):
        assert counts[counted] == whole.metrics[counted]


@pytest.mark.parametrize("name", ["latch", "nearest", "dispatch"])
@pytest.mark.parametrize("until", [0, 1, 150, 171, 10_000])
def test_an_end_before_in_or_after_a_slice(name, until, tmp_path):
    scenario, _ = SCENARIOS[name]
    fixes, places = walk(seed=4)
    timelines, _, _ = shared(scenario, fixes, places, tmp_path, 5, until)
    assert in_order(timelines) == in_order(replay(scenario, fixes, places, until=until).timelines)


@pytest.mark.parametrize("name", ["friends", "latch", "nearest"])
@pytest.mark.parametrize("late", [100, 300, 399])
def test_what_is_said_twice_after_the_end_counts(name, late, tmp_path):
    fixes, _ = walk(seed=3)
    fixes = fixes.drop_duplicates(["mobile", "t"]).sort_values("t", ignore_index=True)
    row = fixes[fixes["t"] >= late].iloc[:1]
    fixes = pd.concat([fixes, row.assign(x=row["x"] + 1)], ignore_index=True)
    scenario, _ = SCENARIOS[name]
    timelines, _, counts = shared(scenario, fixes, None, tmp_path, 5, until=90)
    whole = replay(scenario, fixes, until=90)
    assert in_order(timelines) == in_order(whole.timelines)
    for counted in ("rows_in", "rows_collapsed", "rows_set_aside", "timelines", "unmatches"):
        assert counts[counted] == whole.metrics[counted]
    assert counts["rows_set_aside"] == 2


@pytest.mark.parametrize("name", ["latch", "dispatch"])
def test_names_instants_and_attributes_of_other_types(name, tmp_path):
    scenario, _ = SCENARIOS[name]
    fixes, places = walk(seed=6)
    fixes = fixes.assign(
        mobile="m" + fixes["mobile"].astype(str), t=pd.to_datetime(fixes["t"], unit="s", utc=True).dt.as_unit("ms")
    )
    timelines, plan, _ = shared(scenario, fixes, places, tmp_path, 5)
    assert "slice" in plan
    assert in_order(timelines) == in_order(replay(scenario, fixes, places).timelines)


def test_places_that_come_and_go_in_the_middle_of_slices(tmp_path):
    fixes, places = walk(seed=8)
    events = pd.concat([places.assign(t=pd.array([None] * 6, "Int64"), op=None), places[:3].assign(t=200, op="remove")])
    scenario, _ = SCENARIOS["dispatch"]
    timelines, _, _ = shared(scenario, fixes, events, tmp_path, 7)
    whole = replay(scenario, fixes, events).timelines
    assert in_order(timelines) == in_order(whole)
    assert "subscription_removed" in set(whole["ended"])


@pytest.mark.filterwarnings("ignore:the filters of")
def test_rows_that_differ_in_what_nobody_reads_are_in_conflict_all_the_same(tmp_path):
    fixes, _ = walk(seed=5)
    fixes["speed"] = np.arange(len(fixes)) % 7
    scenario, _ = SCENARIOS["traffic"]
    timelines, _, counts = shared(scenario, fixes, None, tmp_path)
    whole = replay(scenario, fixes)
    assert in_order(timelines) == in_order(whole.timelines) and len(timelines) > 20
    assert counts["rows_set_aside"] == whole.metrics["rows_set_aside"] > 20


@pytest.mark.parametrize("change", [{"op": "add"}, {"mood": None}], ids=["operations", "nulls"])
def test_rows_that_do_not_say_everything_are_kept_together(change, tmp_path):
    fixes, _ = walk(seed=9, n=300)
    fixes = fixes.assign(**change)
    if "mood" in change:
        fixes["mood"] = np.where(fixes["t"] % 2 == 0, "good", None)
    scenario, _ = SCENARIOS["latch"]
    timelines, plan, _ = shared(scenario, fixes, None, tmp_path)
    assert plan.startswith("one task")
    assert in_order(timelines) == in_order(replay(scenario, fixes).timelines)


@pytest.mark.parametrize("relation", ["within", "nearest"])
def test_what_is_no_number_is_null_where_mobiles_look_at_one_another(relation, tmp_path):
    """An offer holds until another one is made; pandas and Parquet write NaN where none is."""
    price = Space("price", price=float)
    shown = region(price, price=column.price)
    shown = publications("shown", rows="fixes", regions={"here": HERE, "offer": shown})
    which = near if relation == "within" else own.here.nearest(other.here, space=location)
    cheap = subscriptions("cheap", rows="fixes", regions={"here": HERE}, filter=which & (other.offer["price"] <= 2))
    scenario = Scenario([location, price], [shown], [cheap])
    n = 40
    fixes = pd.DataFrame({"mobile": np.repeat([1, 2], n), "t": np.tile(np.arange(n), 2), "x": 0.0, "y": 0.0})
    fixes["price"] = np.where(fixes["t"] % n < 2, [1.0] * n + [3.0] * n, np.nan)
    fixes.loc[[n // 2, n + n // 2], "price"] = 3.0, 1.0
    fixes["x"] = np.where(fixes["t"] % 11 < 7, fixes["mobile"] * 1.0, fixes["mobile"] * 1_000.0)
    # as NaN and not as null, which is what pandas makes of it
    table = pa.table({name: pa.array(column.to_numpy()) for name, column in fixes.items()})
    pq.write_table(table, tmp_path / "nan.parquet")
    right = in_order(replay(scenario, fixes, engine="reference").timelines)
    assert in_order(replay(scenario, tmp_path / "nan.parquet").timelines) == right
    timelines, _, _ = shared(scenario, tmp_path / "nan.parquet", None, tmp_path, 5)
    assert in_order(timelines) == right and len(right) > 1


@pytest.mark.parametrize("cores", [1, 3])
def test_mobiles_that_a_grid_of_degrees_cannot_tell_apart_are_looked_at_the_general_way(tmp_path, cores):
    """Whoever is near a pole is near everybody: the kernel of encounters gives up, and leaves nothing behind."""
    draw = np.random.default_rng(2)
    n = 120
    fixes = pd.DataFrame({"mobile": draw.integers(0, 5, n), "t": np.arange(1, n + 1)})
    fixes = fixes.assign(lon=draw.uniform(-180, 180, n), lat=draw.uniform(-90, -50, n))
    scenario = named("friends")(near_m=2e6, far_m=3e6)
    timelines, plan, _ = shared(scenario, fixes, None, tmp_path, cores)
    assert plan == spark.PLANS[spark.slices.MEETINGS].format(why=spark.entangled(scenario))
    assert in_order(timelines) == in_order(replay(scenario, fixes).timelines)
    assert len(timelines) > 20


def test_a_bar_counts_the_marks_that_tasks_leave(tmp_path, monkeypatch):
    counted, all_seen = [], threading.Event()

    def done(amount: float) -> None:
        counted.append(amount)
        if sum(counted) == 3:
            all_seen.set()

    @contextmanager
    def bar(what, total, unit):
        assert (what, total, unit) == ("replaying", 3, "tasks")
        yield done

    monkeypatch.setattr(spark, "watched", lambda: True)
    monkeypatch.setattr(spark, "progress", bar)
    with spark.Work(None, tmp_path, "replaying") as work:

        def job() -> list:
            said = [spark._guarded(lambda n: {}, str(tmp_path), f"{n:05d}", []) for n in range(3)]
            assert all_seen.wait(30)
            return said

        assert [one["n"] for one in work._watched(job, 3)] == [0, 1, 2]
