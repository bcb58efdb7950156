"""The experiments of the project: each describes a sweep that its notebook understands."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from workbench.experiments import load_sweep

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = sorted((ROOT / "experiments").glob("*/config.toml"))


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.parent.name)
def test_an_experiment_fits_the_parameters_of_its_notebook(config: Path) -> None:
    notebook = config.parent / tomllib.loads(config.read_text(encoding="utf-8"))["notebook"]
    if not notebook.exists():
        pytest.skip(f"the notebook {notebook.resolve().relative_to(ROOT)} is not written yet")
    sweep = load_sweep(config)
    assert sweep.question.endswith("?")
    assert len(sweep.runs()) > 1


def test_there_are_experiments() -> None:
    assert len(CONFIGS) >= 3
