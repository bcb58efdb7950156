"""The explorer, worked through its widgets' values, without a browser."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from workbench import explore, replay
from workbench.baselines import stateless
from workbench.errors import DataError
from workbench.views.controls import Explorer, Service, Source

FIXES = pd.DataFrame({"mobile": "ann", "t": range(1, 12), "x": [100.0 * i for i in range(11)], "y": 0.0})
PLACES = pd.DataFrame({"place": ["cafe", "museum <b>"], "x": [300.0, 700.0], "y": [0.0, 0.0]})
FAR = FIXES.assign(y=5_000.0)


def told(radius_m: float = 150, places: pd.DataFrame = PLACES) -> Any:
    return replay("proximity", FIXES, places, engine="reference", parameters={"radius_m": radius_m})


@pytest.fixture
def explorer() -> Explorer:
    made = explore(["proximity", "friends"], FIXES, PLACES, engine="reference", parameters={"radius_m": 150})
    made.run()
    return made


def test_a_slider_changes_the_counts_to_what_the_library_computes(explorer: Explorer) -> None:
    for radius_m in (350, 50, 150):
        explorer.parameters["radius_m"].value = radius_m  # runs when it changes
        expected = told(radius_m).notifications
        assert explorer.message.value.startswith(f"{len(expected)} notifications")
        assert len(explorer.stage.told) == len(expected) * 7 * 8


def test_only_the_run_button_runs_where_that_is_chosen(explorer: Explorer) -> None:
    explorer.at_once.value = False
    explorer.parameters["radius_m"].value = 350
    assert len(explorer.done.notifications) == len(told(150).notifications)
    explorer.start.click()
    assert len(explorer.done.notifications) == len(told(350).notifications)
    assert explorer.progress.value == explorer.progress.max


def test_a_slider_that_moves_on_runs_once_when_it_rests(explorer: Explorer) -> None:
    runs = []
    explorer._run = lambda *given, **named: runs.append(named) or told(named["parameters"]["radius_m"])

    async def slide() -> None:
        for radius_m in range(151, 171):
            explorer.parameters["radius_m"].value = radius_m
        await asyncio.sleep(0.6)

    asyncio.run(slide())
    assert runs == [{"parameters": {"radius_m": 170}}]


def test_time_moves_the_counts(explorer: Explorer) -> None:
    lines, sent = told().timelines, told().notifications
    for at in (1, 4.5, 6, 11):
        explorer.stage.time = float(at)
        now = int(((lines.tau <= at) & ~(lines.pi <= at)).sum())
        inside = [((FIXES.t > row.tau) & ~(FIXES.t >= row.pi) & (FIXES.t <= at)).sum() for row in lines.itertuples()]
        shown = [now, int((sent.t <= at).sum()), int(np.sum(inside))]
        assert [f"<b>{count}</b>" in explorer.counts.value for count in shown] == [True] * 3
        assert list(explorer._counted.at(at).values()) == shown


def test_the_repeats_that_were_not_sent_are_those_of_a_stateless_broker(explorer: Explorer) -> None:
    for radius_m in (150, 350):
        explorer.parameters["radius_m"].value = radius_m
        without, with_ = stateless(told(radius_m)).matches
        assert explorer._counted.at(np.inf)["suppressed repeats so far"] == without - with_ > 0


def test_the_bars_count_every_notification_in_its_time(explorer: Explorer) -> None:
    (first, last), sent = explorer.stage.about["span"], told().notifications
    bars = np.array(explorer.stage.about["bins"])
    for kind, counts in zip(("match", "unmatch"), bars.T, strict=True):
        at = sent.t[sent.kind == kind]
        expected = np.minimum((at - first) * len(bars) // (last - first), len(bars) - 1)
        assert counts.tolist() == np.bincount(expected.astype(int), minlength=len(bars)).tolist()


def test_selecting_a_notification_shows_its_reason_and_its_instant(explorer: Explorer) -> None:
    explorer.stage.selected = 2
    row = told().notifications.iloc[2]
    assert explorer.stage.time == row.t
    assert explorer.stage.why["head"] == f"Why the {row.kind} was sent, t = {row.t}"
    assert explorer.stage.why["reasons"] == [str(told().explain(row.publication, row.subscription, row.t))]


@pytest.mark.parametrize(
    ("at", "says"),
    [(4.0, "mobile ann matches 1 now"), (1.0, "matches nothing now; what will be told next"),
     (11.0, "matches nothing now; what was last told")],
)  # fmt: skip
def test_selecting_a_client_explains_what_it_matches_or_why_not(explorer: Explorer, at: float, says: str) -> None:
    explorer.stage.time = at
    explorer.stage.client = {"table": "fixes", "key": "ann"}
    assert says in explorer.stage.why["head"]
    assert explorer.stage.why["reasons"][0].startswith("✓" if "matches 1" in says else "✗")
    explorer.stage.client = {}
    assert explorer.stage.why == {}


def test_a_client_that_nobody_is_ever_told_of_is_explained_beside_the_nearest() -> None:
    explorer = explore("proximity", FAR, PLACES, engine="reference")
    explorer.run()
    explorer.stage.time = 8.0
    explorer.stage.client = {"table": "fixes", "key": "ann"}
    assert "the nearest" in explorer.stage.why["head"]
    assert explorer.stage.why["reasons"][0].startswith("✗ places/museum <b> matches mobiles/ann")


def test_moving_a_place_shows_which_notifications_change(explorer: Explorer) -> None:
    explorer.stage.edit = {"do": "move", "key": "cafe", "x": 500.0, "y": 30.0}
    moved = PLACES.assign(x=[500.0, 700.0], y=[30.0, 0.0])
    after, before = (set(told(places=p).notifications.itertuples(index=False, name=None)) for p in (moved, PLACES))
    assert set(explorer.done.notifications.itertuples(index=False, name=None)) == after
    changes = {row[0]: set() for row in explorer.changed.itertuples(index=False, name=None)}
    for row in explorer.changed.itertuples(index=False, name=None):
        changes[row[0]].add(row[1:])
    assert changes == {"new": after - before, "gone": before - after}
    assert f"{len(after - before)} new, {len(before - after)} gone" in explorer.difference.value
    explorer.stage.edit = {"do": "move", "key": "cafe", "x": 510.0, "y": 30.0}
    assert len(explorer.edits) == 1
    explorer.put_back.click()
    assert set(explorer.done.notifications.itertuples(index=False, name=None)) == before


def test_a_drawn_place_is_like_the_nearest(explorer: Explorer) -> None:
    explorer.stage.edit = {"do": "add", "x": 900.0, "y": 0.0}
    drawn = pd.concat([PLACES, pd.DataFrame({"place": ["drawn-1"], "x": [900.0], "y": [0.0]})])
    pd.testing.assert_frame_equal(explorer.done.notifications, told(places=drawn).notifications)
    explorer.stage.edit = {"do": "move", "key": "drawn-1", "x": 5_000.0, "y": 0.0}
    pd.testing.assert_frame_equal(explorer.done.notifications, told().notifications)


def test_places_in_degrees_are_moved_in_degrees() -> None:
    fixes = FIXES.assign(lon=13.4 + FIXES.x / 68_000, lat=52.5).drop(columns=["x", "y"])
    places = PLACES.assign(lon=13.4 + PLACES.x / 68_000, lat=52.5).drop(columns=["x", "y"])
    explorer = explore("proximity", fixes, places, engine="reference", parameters={"radius_m": 150})
    explorer.run()
    here = explorer.stage.about["places"][0]
    explorer.stage.edit = {"do": "move", "key": "cafe", "x": here["x"], "y": here["y"]}
    assert explorer.changed.empty
    assert abs(explorer.edits[0]["x"] - places.lon[0]) < 1e-6


def test_another_service_has_other_parameters_and_the_data_that_fits() -> None:
    data = {"near": (FIXES, PLACES), "far": (FAR, PLACES)}
    explorer = explore({"proximity": "proximity", "friends": ("friends", ["far"])}, data=data, engine="reference")
    explorer.service.value = "friends"
    assert set(explorer.parameters) >= {"near_m", "far_m"}
    assert explorer.source.value == "far" and explorer.source.options == ("far",)
    assert next(c.description for c in explorer.parameters.values()) == "near (m)"


def test_errors_are_said_in_the_page() -> None:
    def fails(*given: Any, **named: Any) -> Any:
        raise DataError("fixes: there is no file 'lost <b>.csv'")

    broken = Explorer(fails, {"proximity": Service("proximity", {"radius_m": 150})}, {"lost": Source(None)})
    broken.start.click()
    assert "there is no file" in broken.message.value and 'role="alert"' in broken.message.value
    assert "<b>" not in broken.message.value
    assert broken.done is None and broken.progress.bar_style == "danger"
    assert broken.export() == []


def test_what_nobody_thought_of_is_said_in_the_page_too() -> None:
    def fails(*given: Any, **named: Any) -> Any:
        raise ZeroDivisionError("division <b> by zero")

    broken = Explorer(fails, {"proximity": Service("proximity", {"radius_m": 150})}, {"data": Source(None)})
    broken.start.click()
    assert "ZeroDivisionError: division &lt;b&gt; by zero" in broken.message.value


def test_a_parameter_that_makes_no_sense_is_refused_in_the_page(explorer: Explorer) -> None:
    lacking = explore("fuel", FIXES, PLACES, engine="reference")
    lacking.start.click()
    assert "fuel" in lacking.message.value and 'role="alert"' in lacking.message.value


def test_a_state_is_kept_and_restored(explorer: Explorer, tmp_path: Path) -> None:
    explorer.parameters["radius_m"].value = 250
    explorer.stage.edit = {"do": "move", "key": "cafe", "x": 500.0, "y": 30.0}
    explorer.stage.layers = {**explorer.stage.layers, "tracks": False}
    explorer.stage.window = [2.0, 9.0]
    explorer.stage.selected = 1
    explorer.folder.value = str(tmp_path / "kept")
    explorer.save.click()
    other = explore("proximity", FIXES, PLACES, engine="reference")
    other.folder.value = explorer.folder.value
    other.load.click()
    assert other.state == explorer.state == json.loads((tmp_path / "kept" / "state.json").read_text())
    assert (other.counts.value, other.stage.why) == (explorer.counts.value, explorer.stage.why)
    with pytest.raises(DataError, match="did you mean 'proximity'"):
        other.restore({**explorer.state, "service": "proximty"})
    with pytest.raises(DataError, match="did you mean 'radius_m'"):
        other.restore({**explorer.state, "parameters": {"radius": 3}})


def test_a_state_that_is_not_there_or_is_none_is_said_in_the_page(explorer: Explorer, tmp_path: Path) -> None:
    explorer.folder.value = str(tmp_path)
    explorer.load.click()
    assert "there is no saved state" in explorer.message.value
    for text in ("{", "[]", "{}"):
        (tmp_path / "state.json").write_text(text)
        explorer.load.click()
        assert 'role="alert"' in explorer.message.value


def test_export_writes_the_notifications_and_the_view(explorer: Explorer, tmp_path: Path) -> None:
    explorer.folder.value = str(tmp_path / "kept")
    table, page = explorer.export()
    assert len(pd.read_csv(table)) == len(told().notifications)
    assert "leaflet" in page.read_text(encoding="utf-8")
    assert 'download="notifications.csv"' in explorer.message.value
    (tmp_path / "file").touch()
    explorer.folder.value = str(tmp_path / "file")
    assert explorer.export() == [] and 'role="alert"' in explorer.message.value


def test_many_rows_are_capped_and_the_page_says_so() -> None:
    n = 2_500
    places = pd.DataFrame({"place": range(n), "x": np.arange(n) * 10.0, "y": 0.0})
    explorer = explore("proximity", FIXES, places, parameters={"radius_m": 1})
    explorer.run()
    assert "the first 2,000 of 2,500 places are shown" in explorer.stage.about["notes"]
    t = np.arange(200)
    crowd = [pd.DataFrame({"mobile": f"m{m}", "t": t, "x": t * 1.0, "y": float(m)}) for m in range(201)]
    explorer = explore("proximity", pd.concat(crowd), PLACES, parameters={"radius_m": 1})
    explorer.run()
    said = ["tracks of 200 of 201 mobiles: those with the most notifications", "tracks show one fix in 2"]
    assert explorer.stage.about["notes"] == said
    rows = np.frombuffer(explorer.stage.tracks).reshape(-1, 5)
    assert len(rows) == 20_000
    assert (rows[0, 2], rows[99, 2]) == (rows[1, 1], 199)  # one ends where the next begins


def test_only_what_a_control_can_show_is_chosen_and_the_rest_is_handed_on() -> None:
    profiles = pd.DataFrame({"id": ["ann"], "role": ["a"], "context": ["free"], "seeks": ["c"]})
    asked = []
    for given in ({}, {"profiles": profiles}):
        explorer = explore("friends", FIXES, engine="reference", parameters=given)
        assert set(explorer.parameters) == {"near_m", "far_m"}
        run = explorer._run
        explorer._run = lambda *a, run=run, **named: asked.append(named["parameters"]) or run(*a, **named)
        explorer.run()
        assert explorer.message.value.startswith("0 notifications"), explorer.message.value
    assert "profiles" not in asked[0] and asked[1]["profiles"] is profiles
    with pytest.raises(DataError, match="did you mean 'near_m'"):
        explore("friends", FIXES, parameters={"nearm": 3})


def test_either_fixes_or_data() -> None:
    with pytest.raises(DataError, match="either fixes"):
        explore("proximity")
