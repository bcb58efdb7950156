"""Each fault that is seeded into an engine is found by a case of the suite, and without a fault nothing is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.faults import FAULTS, Fault
from tests.conformance.pool import Judged, shared

pytestmark = [pytest.mark.xdist_group("faults"), pytest.mark.timeout(900)]  # asked for in one process, judged there
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def found(judged: Callable[[str], list[Judged]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """By fault, the case that found it."""
    for kind in sorted({kind for fault in FAULTS for kind in fault.kinds}):
        judged(kind)
    command = [sys.executable, "-m", "tests.conformance.faults", str(shared(tmp_path_factory.getbasetemp()))]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=800, cwd=ROOT, env=environment)
    assert ran.returncode == 0, ran.stderr[-3_000:]
    return json.loads(ran.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_seeded_fault_is_found(found: dict[str, str | None], fault: Fault) -> None:
    assert found[fault.name] is not None


def test_without_a_fault_nothing_is_found(found: dict[str, str | None]) -> None:
    assert found[""] is None
