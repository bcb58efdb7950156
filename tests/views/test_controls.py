"""The explorer, worked through its widgets' values, without a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from workbench import replay
from workbench.errors import DataError
from workbench.views.controls import STEPS, Explorer, explore

FIXES = pd.DataFrame({"mobile": "ann", "t": range(1, 12), "x": [100.0 * i for i in range(11)], "y": 0.0})
PLACES = pd.DataFrame({"place": ["cafe", "museum <b>"], "x": [300.0, 700.0], "y": [0.0, 0.0]})


def run(service: str, parameters: dict[str, Any]) -> Any:
    return replay(service, FIXES, PLACES, engine="reference", parameters=parameters)


@pytest.fixture
def explorer() -> Explorer:
    return explore(run, {"proximity": {"radius_m": 150}, "friends": {"near_m": 200, "far_m": 250}})


def test_a_slider_changes_the_counts_to_what_the_library_computes(explorer: Explorer) -> None:
    for radius_m in (150, 350, 50):
        explorer.parameters["radius_m"].value = radius_m
        explorer.start.click()
        expected = run("proximity", {"radius_m": radius_m}).notifications
        assert explorer.message.value.startswith(f"{len(expected)} notifications")
        assert len(explorer.notifications.options) == len(expected)


def test_time_moves_the_clock_and_the_counts(explorer: Explorer) -> None:
    explorer.run()
    seen = []
    for step in (0, STEPS // 2, STEPS):
        explorer.instant.value = step
        seen.append((explorer.clock.value, explorer.counts.value))
    lines = run("proximity", {"radius_m": 150}).timelines
    now = ((lines.tau <= 6) & ~(lines.pi <= 6)).sum()
    assert "t = 6" in seen[1][0]
    assert seen[1][1].startswith(f"{now} matching pairs")
    assert len(set(seen)) == 3


def test_selecting_a_notification_shows_its_reason_and_its_instant(explorer: Explorer) -> None:
    explorer.run()
    explorer.notifications.value = 2
    told = run("proximity", {"radius_m": 150}).notifications.iloc[2]
    assert f"t = {told.t}" in explorer.clock.value
    assert "museum &lt;b&gt;" in explorer.reason.value or "cafe" in explorer.reason.value
    assert "<b>" not in explorer.reason.value


def test_another_service_has_other_parameters(explorer: Explorer) -> None:
    explorer.service.value = "friends"
    assert set(explorer.parameters) == {"near_m", "far_m"}


def test_errors_are_said_in_the_page(explorer: Explorer) -> None:
    def fails(service: str, parameters: dict[str, Any]) -> Any:
        raise DataError("fixes: there is no file 'lost <b>.csv'")

    broken = explore(fails, {"proximity": {"radius_m": 150}})
    broken.start.click()
    assert "there is no file" in broken.message.value
    assert "<b>" not in broken.message.value
    assert broken.done is None


def test_a_state_is_kept_and_restored(explorer: Explorer) -> None:
    explorer.parameters["radius_m"].value = 250
    explorer.run()
    explorer.instant.value = 120
    kept = explorer.state
    other = explore(run, {"proximity": {"radius_m": 150}})
    other.restore(kept)
    assert other.state == kept
    assert other.counts.value == explorer.counts.value
    with pytest.raises(DataError, match="did you mean 'proximity'"):
        other.restore({**kept, "service": "proximty"})


def test_export_writes_the_notifications_and_the_view(explorer: Explorer, tmp_path: Path) -> None:
    assert explorer.export() == []
    explorer.folder.value = str(tmp_path / "kept")
    explorer.run()
    table, page = explorer.export()
    assert len(pd.read_csv(table)) == len(run("proximity", {"radius_m": 150}).notifications)
    assert "leaflet" in page.read_text(encoding="utf-8")
