"""The notebooks of the services: what a run with other parameters records is what a direct replay says."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import nbformat
import numpy as np
import pandas as pd
import pytest

from workbench import replay
from workbench.baselines import one_sided, stateless
from workbench.datasets import City, drawn
from workbench.datasets.walks import walks, wandering
from workbench.experiments import load_sweep, run
from workbench.measures import figures

SERVICES = Path(__file__).resolve().parents[2] / "notebooks" / "2-services"
Direct = Callable[..., dict[str, Any]]
EMPTY = {"people": 0, "tourists": 0, "cars": 0, "buses": 0, "highway": 0}


def fuel(cars: int, interval_s: int, truth_s: int, radius_m: float, seed: int) -> dict[str, Any]:
    city = City(**EMPTY | {"cars": cars}, seed=seed, fuel=24, interval_s=interval_s)
    places = city.places()
    stations = drawn.prices(places[places.category == "fuel"])
    wanted = {"radius_m": radius_m, "price_cent": 185, "target_percent": 20}
    made, true = (
        replay("fuel", drawn.tanks(fixes), stations, parameters=wanted)
        for fixes in (city.fixes(), replace(city, interval_s=truth_s).truth())
    )
    publishers, subscribers, both = one_sided(made).itertuples(index=False)
    return figures(made, true) | {
        "notifications_stateless": stateless(made).notifications[0],
        "matches_symmetric": both.matches,
        "matches_publishers_only": publishers.matches,
        "unwanted_subscribers_only": subscribers.unwanted,
    }


def advertising(people: int, tourists: int, radius_m: float, max_age: int, opted_in: float) -> dict[str, Any]:
    city = City(**EMPTY | {"people": people, "tourists": tourists}, seed=7, interval_s=180, size_m=3000, coffee=12)
    places = city.places()
    profiles = drawn.people(city.mobile_ids(), 7, opted_in)
    wanted = {"radius_m": radius_m, "min_age": 18, "max_age": max_age, "profiles": profiles}
    made, true = (
        replay("advertising", fixes, places[places.category == "coffee"], parameters=wanted)
        for fixes in (city.fixes(), replace(city, interval_s=60).truth())
    )
    return figures(made, true) | {"people_told": made.timelines.subscription.nunique()}


def traffic(cars: int, last: int, slow_min: float, seed: int) -> dict[str, Any]:
    city = City(**EMPTY | {"highway": cars}, seed=seed)
    wanted = {"section_start_m": 1200.0, "section_end_m": 4800.0, "slow_min": slow_min, "cars": last}
    made, true = (replay("traffic", fixes, parameters=wanted) for fixes in (city.fixes(), city.truth()))
    return figures(made, true) | {"warned": made.timelines.subscription.nunique(), "drivers": cars}


def dispatch(crews: int, people: int, units: int, call_min: float) -> dict[str, Any]:
    city = City(**EMPTY | {"people": people}, taxis=crews, seed=1, interval_s=300, size_m=4000)
    corners = {"south-west": (1, 1), "south-east": (3, 1), "north-west": (1, 3), "north-east": (3, 3)}
    stations = pd.DataFrame([(n, 1e3 * x, 1e3 * y) for n, (x, y) in corners.items()], columns=["place", "x", "y"])
    truth = drawn.calls(city.truth(), 0.8, call_min, 1)
    truth["status"] = np.where(truth.activity == "waiting", "free", "busy")
    both = city.fixes().merge(truth[["mobile", "t", "state", "status"]], on=["mobile", "t"]), truth
    wanted = {"radius_m": 2000, "units": units, "kind": "taxi"}
    known = [replay("dispatch", rows[rows.kind == "taxi"], stations, parameters=wanted) for rows in both]
    taken = [replay("callers", rows[rows.kind == "person"], stations) for rows in both]
    return figures(*known) | {f"calls_{name}": value for name, value in figures(*taken).items()}


def friends(people: int, circles: int, near_m: float, far_m: float) -> dict[str, Any]:
    city = City(**EMPTY | {"people": people}, seed=3, interval_s=120, size_m=3000)
    fixes, truth = city.fixes(), city.truth()
    wanted = {"near_m": near_m, "far_m": far_m, "profiles": drawn.circles(fixes, circles, 3)}
    made, true = (replay("friends", rows, parameters=wanted) for rows in (fixes, truth))
    alone = replay("friends", fixes, parameters=wanted | {"far_m": near_m})
    return figures(made, true) | {"notifications_one_border": len(alone.notifications)}


def game(moves: str, players: int, catch_m: float) -> dict[str, Any]:
    ways = wandering(players, moves=len(moves), seed=4) | {"you": ((2, 2), moves)}
    refuges = pd.DataFrame({"place": ["a", "b", "c"], "x": [200.0, 500.0, 800.0], "y": [800.0, 500.0, 200.0]})
    team = drawn.choices(ways, ["red", "green", "blue"], 4, "team")
    hunts = {"red": "green", "green": "blue", "blue": "red"}
    both = [rows.assign(team=rows.mobile.map(team)) for rows in (walks(ways, noise_m=8, seed=4), walks(ways))]
    wanted = {"catch_m": catch_m, "refuge_m": 60}
    made, true = (
        replay("game", rows.assign(hunts=rows.team.map(hunts)), refuges, parameters=wanted) for rows in both
    )
    return figures(made, true) | {"you_caught": int((made.timelines.subscription == "hunters/you").sum())}


def tourists(tourists: int, dwell_min: float, noise_m: float) -> dict[str, Any]:
    city = City(
        **EMPTY | {"tourists": tourists}, seed=2, interval_s=20, noise_m=noise_m, size_m=2000, museums=1,
        gap_share=0.0, outages=0,
    )  # fmt: skip
    truth = city.truth()
    truth = truth[truth.activity == "museum"]
    both = city.fixes().merge(truth[["mobile", "t"]], on=["mobile", "t"]), truth
    made, true = (
        replay("tourists", rows, city.rooms(), parameters={"dwell_min": wait})
        for rows, wait in zip(both, (dwell_min, 3), strict=True)
    )
    return figures(made, true) | {"rooms_told": len(made.timelines), "rooms_seen": len(true.timelines)}


GIVEN: dict[Direct, dict[str, Any]] = {
    fuel: {"cars": 16, "interval_s": 300, "truth_s": 120, "radius_m": 1500.0, "seed": 3},
    advertising: {"people": 12, "tourists": 2, "radius_m": 500.0, "max_age": 60, "opted_in": 0.9},
    traffic: {"cars": 60, "last": 2, "slow_min": 2.5, "seed": 2},
    dispatch: {"crews": 2, "people": 12, "units": 1, "call_min": 60.0},
    friends: {"people": 16, "circles": 2, "near_m": 300.0, "far_m": 350.0},
    game: {"moves": "NNNEEE....SSSWWW", "players": 7, "catch_m": 90.0},
    tourists: {"tourists": 4, "dwell_min": 1.0, "noise_m": 2.0},
}
TAXIS = {"fixes_path": "sf_cabs/cabspotting_10cabs.zip", "hours": 8.0}
REAL: dict[str, dict[str, Any]] = {
    "fuel": TAXIS | {"places_path": "places/poi_sf.csv"},
    "advertising": TAXIS | {"places_path": "places/poi_sf.csv", "category": "coffee_chain", "radius_m": 200.0},
    "traffic": {"tollgates": "kdd2017", "intersection": "C", "tollgate": "3", "slow_min": 3.0},
    "dispatch": TAXIS | {"places_path": "places/poi_sf.csv"},
    "friends": TAXIS | {"circles": 2},
    "game": TAXIS | {"places_path": "places/poi_sf.csv", "you": "ayshowg", "catch_m": 300.0},
    "tourists": TAXIS | {"places_path": "places/sf_neighborhoods.geojson", "dwell_min": 10.0},
}


def code_cells(name: str) -> list[Any]:
    return [c for c in nbformat.read(SERVICES / f"{name}.ipynb", as_version=4).cells if c.cell_type == "code"]


def by_default(name: str) -> dict[str, Any]:
    """What the notebook as it is kept shows as its final figures."""
    shown: dict[str, Any] = {}
    for cell in code_cells(name):
        if "record(" in cell.source:
            shown |= ast.literal_eval(cell.outputs[-1].data["text/plain"])
    return shown


@pytest.mark.notebook
@pytest.mark.slow
@pytest.mark.parametrize("direct", GIVEN, ids=lambda direct: direct.__name__)
def test_a_run_with_other_parameters_records_what_a_direct_replay_says(direct: Direct, tmp_path: Path) -> None:
    given, default = GIVEN[direct], by_default(direct.__name__)
    (record,) = run(load_sweep(SERVICES / f"{direct.__name__}.ipynb", given), tmp_path / "runs")
    assert record["state"] == "finished", record["error"]
    metrics, expected = record["metrics"], direct(**given)
    assert {name: metrics[name] for name in expected} == expected
    assert metrics.keys() == default.keys() and metrics != default
    assert metrics["notifications"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_a_service_runs_on_real_data(name: str, shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells one after the other, in this process."""
    monkeypatch.setenv("WORKBENCH_DATA", str(shared_data))
    matplotlib.use("agg")
    world: dict[str, Any] = {}
    for cell in code_cells(name):
        exec(compile(cell.source, name, "exec"), world)  # noqa: S102 - our own notebook
        if "parameters" in cell.metadata.get("tags", []):
            assert world.keys() >= REAL[name].keys()
            world |= REAL[name]
    heard = world.get("told", world.get("known", world.get("game")))
    assert len(heard.timelines) and figures(heard)["precision"] is None


def test_every_service_is_run() -> None:
    names = {path.stem for path in SERVICES.glob("*.ipynb")}
    assert names == {direct.__name__ for direct in GIVEN} == set(REAL)


def test_the_first_notebook_records_figures_that_runs_can_be_compared_by() -> None:
    """That they are right, nbval says; here only that there are any."""
    first = nbformat.read(SERVICES.parent / "0-start/start_here.ipynb", as_version=4)
    (cell,) = [c for c in first.cells if c.cell_type == "code" and c.source.startswith("record(")]
    assert ast.literal_eval(cell.outputs[0].data["text/plain"]).keys() >= {"notifications", "matches", "people_told"}
