"""How a notebook hands over its metrics, and how the records of a run are written.

A metric is a name and one value: a number, a truth value, a short text, or nothing. The runner names a file in the
environment variable WORKBENCH_METRICS; `record` writes there. Without that variable nobody is listening, and it only
returns the values: a notebook means the same however it is run.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

from workbench.errors import DataError, raise_all

METRICS_FILE = "WORKBENCH_METRICS"

Metric = bool | int | float | str | None


def record(**metrics: Any) -> dict[str, Metric]:
    """Hand over the metrics of this run, and return them; a later call adds to them, and replaces one of the same name.

    Values of numpy become those of Python. A number that is not finite is recorded as None: there is no value. In
    memory and in the file the order is that of the call.

    >>> record(notifications=12, recall=0.75, precision=float("nan"))
    {'notifications': 12, 'recall': 0.75, 'precision': None}
    >>> record(recall=[0.5, 0.75])
    Traceback (most recent call last):
    workbench.errors.DataError: metric 'recall' is a list; ...
    """
    faults: list[str] = []
    values = {name: _plain(name, value, faults) for name, value in metrics.items()}
    raise_all(faults, DataError)
    if METRICS_FILE in os.environ:
        path = Path(os.environ[METRICS_FILE])
        write_json(path, read_json(path, {}) | values)
    return values


def _plain(name: str, value: Any, faults: list[str]) -> Metric:
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    faults.append(
        f"metric {name!r} is a {type(value).__name__}; a metric is one number, truth value or text: "
        "record a summary, and save tables as files"
    )
    return None


def read_json(path: Path, otherwise: Any = None) -> Any:
    """What a JSON file holds; ``otherwise`` where there is no such file or it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return otherwise


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file whole or not at all: who reads it, or is killed, never sees a half of it.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_json(Path(folder, "a.json"), {"b": 1})
    ...     read_json(Path(folder, "a.json"))
    {'b': 1}
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    handle, draft = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, 0o644)
        os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
