"""What the tests of data sets share: the folder of real files, and a Spark session made only when asked for."""

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def shared() -> Path:
    if not SHARED.is_dir():
        pytest.skip("the real data files are not at ../shared/data")
    return SHARED
