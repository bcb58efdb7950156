"""The README's commands do what it says: each is run as it stands, on the samples, in a folder of its own."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest

from workbench import demo

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = [*re.findall(r"^```sh\n(.*?)^```", README, re.M | re.S), *re.findall(r"(?:^    (?!.*─).+\n)+", README, re.M)]
LINES = [line.split("#")[0].strip() for block in BLOCKS for line in block.splitlines()]
COMMANDS = [line for line in LINES if line.startswith("workbench ")]
TARGETS = sorted(set(re.findall(r"(?:`|^    )make ([a-z]+)", README, re.M)))
LEAVES = {
    "demo": [f"out/demo/{name}" for name in demo.WRITTEN.values()],
    "replay": ["out/near/timelines.parquet", "out/near/notifications.parquet", "out/near/metrics.json"],
    "ingest": ["out/ingested/manifest.json"],
    "run": ["out/runs/cars=5,radius_m=500/run.json", "out/runs/cars=5,radius_m=1000/notebook.ipynb"],
    "compare": ["out/runs/compare.html"],
}


@pytest.mark.slow
@pytest.mark.notebook
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout(600)
def test_every_command_of_the_readme_runs_as_it_stands(tmp_path: Path) -> None:
    for name in ("data", "notebooks"):
        (tmp_path / name).symlink_to(ROOT / name)
    assert {command.split()[1] for command in COMMANDS} >= {"doctor", *LEAVES}
    for command in COMMANDS:
        words = [sys.executable, "-m", "workbench.cli", *shlex.split(command)[1:]]
        paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        ran = subprocess.run(
            words, cwd=tmp_path, capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": paths}
        )
        assert ran.returncode == 0, f"{command}\n{ran.stdout}\n{ran.stderr}"
        for left in LEAVES.get(command.split()[1], []):
            assert (tmp_path / left).exists(), f"{command} should leave {left}"
            if command.split()[1] == "demo":
                assert left in ran.stdout
    told = pd.read_parquet(tmp_path / "out/demo/notifications.parquet")
    assert set(told["kind"]) == {"match", "unmatch"}
    assert json.loads((tmp_path / "out/demo/metrics.json").read_text())["notifications"] == len(told)


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_that_the_readme_names_exists(target: str) -> None:
    ran = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_the_notebook_of_the_demo_is_in_the_wheel() -> None:
    """Built where there is a package index; here what the build is told, and where the installed demo looks."""
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    (source, place), = wheel["force-include"].items()
    assert (ROOT / source) == demo.start_here()
    assert (ROOT / place) == Path(demo.__file__).parent / demo.START


def test_every_file_that_the_readme_links_to_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links and [link for link in links if not (ROOT / link).exists()] == []
