"""`workbench bench`: the alternatives beside one another, each with the right answer, however small the data."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.commands import typed
from workbench.errors import WorkbenchError

SMALL = ("--fixes", 3_000, "--mobiles", 20, "--places", 10, "--radius-m", 900, "--repeats", 1, "--no-spark")


def test_each_contender_has_a_line_with_its_ratio(tmp_path: Path) -> None:
    first, heads, *lines = typed("bench", "--row", "proximity", *SMALL, "--data", tmp_path).splitlines()
    assert first.startswith("proximity: ")
    assert heads.split() == ["best", "ratio", "timelines"]
    known = [line for line in lines if " x " in line]
    assert any("workbench, local" in line for line in known)
    assert len({line.split()[4] for line in known}) == 1  # so many timelines, whoever found them


def test_a_peer_that_is_not_installed_is_named_and_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import util

    found = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name, *more: None if name == "geopandas" else found(name, *more))
    said = typed("bench", "--row", "proximity", *SMALL, "--data", tmp_path)
    assert "geopandas" in said and not any("geopandas" in line and " x " in line for line in said.splitlines())
    assert "workbench, local" in said


def test_without_the_one_that_judges_nothing_is_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import util

    found = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name, *more: None if name == "duckdb" else found(name, *more))
    with pytest.raises(WorkbenchError, match="duckdb is not installed"):
        typed("bench", "--row", "proximity", *SMALL, "--data", tmp_path)


def test_what_can_be_measured_is_listed() -> None:
    said = typed("bench", "--row", "list")
    assert {"proximity", "friends", "live"} <= {line.split()[0] for line in said.splitlines()}
    with pytest.raises(WorkbenchError, match="there is no row 'proximty'; did you mean 'proximity'"):
        typed("bench", "--row", "proximty")
