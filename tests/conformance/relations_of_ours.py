"""Relations of the user's own for the conformance cases: importable, arrays in, an array out."""

from __future__ import annotations

from typing import Any

import numpy as np


def price_gap(first: dict[str, Any], second: dict[str, Any]) -> np.ndarray:
    """How far the lower ends of two prices lie apart; not a number where both have none."""
    with np.errstate(invalid="ignore"):
        return np.abs(first["price"].lower - second["price"].lower)


def manhattan(first: dict[str, Any], second: dict[str, Any]) -> np.ndarray:
    """City blocks between two points or discs, the radii taken off."""
    a, b = first["position"], second["position"]
    return np.abs(a.x - b.x) + np.abs(a.y - b.y) - a.radius_m - b.radius_m


def cheapness(first: dict[str, Any], second: dict[str, Any]) -> np.ndarray:
    """A degree: 1 where the first is not dearer than the second, half where it is by 1."""
    with np.errstate(invalid="ignore"):
        return 1.0 / (1.0 + np.maximum(0.0, first["price"].upper - second["price"].upper))
