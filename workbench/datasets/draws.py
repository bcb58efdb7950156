"""Random numbers that depend on what they are for, never on who asks first.

`uniform(seed, purpose, a, b)` is a function: the draw for mobile 17 at its sample 5 is the same in any chunk, on
any core and in any Spark task. It is a counter-based generator: the key and the counters go through the finaliser
of SplitMix64 one after the other.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from workbench.datasets.layout import mix64

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _bits(seed: int, purpose: str, *counters: Any) -> np.ndarray:
    state = mix64(np.array([seed & 0xFFFFFFFFFFFFFFFF], np.uint64) ^ np.uint64(zlib.crc32(purpose.encode())))
    with np.errstate(over="ignore"):
        for counter in counters:
            state = mix64(state + np.asarray(counter).astype(np.int64).view(np.uint64) * _GOLDEN)
    return state


def uniform(seed: int, purpose: str, *counters: Any) -> np.ndarray:
    """Draws from [0, 1), one for each combination of the counters (which broadcast).

    >>> whole = uniform(1, "noise", np.arange(5))
    >>> bool((whole[3:] == uniform(1, "noise", np.arange(3, 5))).all())
    True
    """
    return (_bits(seed, purpose, *counters) >> np.uint64(11)) * 2.0**-53


def normal(seed: int, purpose: str, *counters: Any) -> tuple[np.ndarray, np.ndarray]:
    """Two independent standard normal draws for each combination of the counters (Box and Muller 1958)."""
    bits = _bits(seed, purpose, *counters)
    radius = np.sqrt(-2.0 * np.log(((bits >> np.uint64(32)) + 0.5) * 2.0**-32))
    angle = (bits & np.uint64(0xFFFFFFFF)) * (2.0 * np.pi * 2.0**-32)
    return radius * np.cos(angle), radius * np.sin(angle)


def whole(seed: int, purpose: str, below: int, *counters: Any) -> np.ndarray:
    """Whole numbers from 0 to below - 1."""
    return (uniform(seed, purpose, *counters) * below).astype(np.int64)
