"""Functions of a user's own, importable by name: arrays in, an array out."""

from __future__ import annotations

from typing import Any

import numpy as np


def manhattan_m(a: dict[str, Any], b: dict[str, Any]) -> np.ndarray:
    """The distance along streets that run north and east."""
    return np.abs(a["position"].x - b["position"].x) + np.abs(a["position"].y - b["position"].y)


def cheaper_by(a: dict[str, Any], b: dict[str, Any]) -> np.ndarray:
    """From 0 to 1: how far the second price lies under the first."""
    return np.clip(1 - b["price"].upper / a["price"].upper, 0, 1)
