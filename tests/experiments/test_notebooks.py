"""The notebooks of the project's experiments: what they record is what a direct replay says."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import nbformat
import pytest

from workbench import replay
from workbench.baselines import one_sided, stateless
from workbench.datasets import City
from workbench.datasets.city import TANK_L
from workbench.experiments import load_sweep, run

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks" / "2-services"
GIVEN = {"cars": 12, "radius_m": 1500.0, "seed": 3}


def told(**scenario: Any) -> Any:
    city = City(seed=3, cars=12, people=0, tourists=0, buses=0, highway=0, fuel=24, interval_s=60)
    fixes, places = city.fixes(), city.places()
    fixes = fixes.assign(fuel=100 * fixes.fuel_l / TANK_L, refuel_level=100 * fixes.refuel_level_l / TANK_L)
    stations = places[places.category == "fuel"].assign(price=lambda rows: 100 * rows.price)
    return replay("fuel", fixes, stations, parameters={"radius_m": 1500, "price_cent": 185, **scenario})


def by_default(notebook: Path) -> dict[str, Any]:
    """What the committed notebook shows as its final figures."""
    cells = [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]
    return ast.literal_eval(cells[-1].outputs[0].data["text/plain"])


def direct(notebook: str) -> dict[str, int]:
    if notebook == "fuel_sampling":
        return {"notifications": len(told().notifications)}
    if notebook == "fuel_fleets":
        sent = stateless(told()).set_index("broker").notifications
        return {"notifications_stateless": sent["stateless"], "notifications_persistent": sent["state-persistent"]}
    publishers, subscribers, both = one_sided(told(target_percent=20)).itertuples(index=False)
    return {
        "matches_symmetric": both.matches,
        "matches_publishers_only": publishers.matches,
        "unwanted_subscribers_only": subscribers.unwanted,
    }


@pytest.mark.notebook
@pytest.mark.slow
@pytest.mark.parametrize("notebook", ["fuel_sampling", "fuel_fleets", "fuel_symmetry"])
def test_a_run_with_other_parameters_records_what_a_direct_replay_says(notebook: str, tmp_path: Path) -> None:
    path = NOTEBOOKS / f"{notebook}.ipynb"
    (record,) = run(load_sweep(path, GIVEN), tmp_path / "runs")
    assert record["state"] == "finished", record["error"]
    expected = direct(notebook)
    assert {name: record["metrics"][name] for name in expected} == expected
    assert record["metrics"] != by_default(path) and record["metrics"].keys() == by_default(path).keys()
    assert any(expected.values())
