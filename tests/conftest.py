"""What all tests share: one Spark session a run, the shared data, a browser, and Hypothesis' profiles."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
CI = os.environ.get("CI") == "true"

# The same examples every time, so that a run fails only where the code changed.
# HYPOTHESIS_PROFILE=search looks for new ones.
_slow_is_fine = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("ci", derandomize=True, deadline=None, database=None, suppress_health_check=_slow_is_fine)
settings.register_profile("search", deadline=None, max_examples=1_000, suppress_health_check=_slow_is_fine)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that use the Spark session run in one worker of xdist (--dist loadgroup), so that a run starts one JVM.

    What is marked as late comes last of its group: other workers make meanwhile what it needs.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) or item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group("spark"))
    items.sort(key=lambda item: item.get_closest_marker("late") is not None)


@pytest.fixture(scope="session")
def project_root() -> Path:
    """The folder that holds pyproject.toml."""
    return ROOT


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The Spark session of this run, started by the first test that asks for it."""
    from workbench.session import spark_session

    session = spark_session("local[2]", name="workbench tests")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data beside the project; tests of it are skipped only where it does not exist."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"there is no folder {os.path.relpath(folder, ROOT)} with the public data")
    return folder


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The browser; where there is none, tests of it are skipped, and with CI=true they fail."""
    from workbench.doctor import find_chromium

    path = find_chromium()
    if path is None:
        (pytest.fail if CI else pytest.skip)("no chromium was found; `make browser` installs it where it may")
    return path
