"""A bar is for somebody who looks on: never in a pipe, unless it is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from workbench.progress import watched


@pytest.mark.parametrize(
    ("terminal", "said", "expected"),
    [(False, None, False), (True, None, True), (False, "1", True), (True, "0", False), (True, "", True)],
)
def test_who_looks_on(monkeypatch: pytest.MonkeyPatch, terminal: bool, said: str | None, expected: bool) -> None:
    monkeypatch.setattr("rich.console.Console.is_terminal", terminal)
    monkeypatch.delenv("WORKBENCH_PROGRESS", raising=False)
    if said is not None:
        monkeypatch.setenv("WORKBENCH_PROGRESS", said)
    assert watched() is expected


LONG = """
from workbench import progress
progress.PATIENCE_S = 0.0
with progress.progress("reading", total=3, unit="files") as done:
    for _ in range(3):
        done(1)
"""


def test_a_pipe_sees_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORKBENCH_PROGRESS", raising=False)
    ran = subprocess.run([sys.executable, "-c", LONG], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("", "")
