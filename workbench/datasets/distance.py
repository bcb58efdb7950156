"""Distances between arrays of points: the formulas of `workbench.geometry`, a whole column at a time.

Used where fixes are prepared and judged, never where a match is decided.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.geometry import EARTH_RADIUS_M


def distance_m(a: Sequence[np.ndarray], b: Sequence[np.ndarray], *, geodesic: bool) -> np.ndarray:
    """Metres between the points of two lists of coordinate arrays (x, y, z or lon, lat).

    >>> distance_m([np.array([0.0]), np.array([0.0])], [np.array([3.0]), np.array([4.0])], geodesic=False).tolist()
    [5.0]
    """
    if not geodesic:
        return np.sqrt(sum((q - p) ** 2 for p, q in zip(a, b, strict=True)))
    lon1, lat1, lon2, lat2 = (np.radians(v) for v in (*a[:2], *b[:2]))
    h = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH_RADIUS_M * np.arcsin(np.sqrt(np.minimum(h, 1.0)))
