"""Metrics: handed over under the runner, only returned everywhere else."""

from __future__ import annotations

import json

import numpy as np
import pytest

from workbench.errors import DataError
from workbench.experiments import record
from workbench.experiments.recording import METRICS_FILE


def test_without_a_runner_metrics_are_returned_and_nothing_is_written(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv(METRICS_FILE, raising=False)
    monkeypatch.chdir(tmp_path)
    assert record(told=1, share=0.5) == {"told": 1, "share": 0.5}
    assert list(tmp_path.iterdir()) == []


def test_under_a_runner_later_calls_add_and_replace(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(METRICS_FILE, str(tmp_path / "metrics.json"))
    assert record(told=1, share=0.5) == {"told": 1, "share": 0.5}
    assert record(told=2, name="x") == {"told": 2, "name": "x"}
    assert json.loads((tmp_path / "metrics.json").read_text()) == {"told": 2, "share": 0.5, "name": "x"}
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.json"]


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int64(3), 3), (np.float64(0.5), 0.5), (np.bool_(True), True), (np.array(2), 2), (None, None),
        (float("nan"), None), (np.float64("inf"), None), ("text", "text"), (True, True),
    ],
)  # fmt: skip
def test_a_metric_is_a_plain_value(value: object, plain: object) -> None:
    assert repr(record(m=value)["m"]) == repr(plain)


def test_what_is_no_single_value_is_refused_by_name(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv(METRICS_FILE, str(tmp_path / "metrics.json"))
    with pytest.raises(DataError, match=r"(?s)2 faults.*'a' is a list.*'b' is a ndarray") as refusal:
        record(fine=1, a=[1], b=np.zeros(2))
    assert "summary" in str(refusal.value)
    assert not (tmp_path / "metrics.json").exists()
