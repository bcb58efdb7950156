"""Random draws that need no generator: a draw is a function of what it is for.

Philox4x32-10 (Salmon et al., *Parallel random numbers: as easy as 1, 2, 3*, SC 2011) turns a key of 64 bits and a
counter of 128 bits into four words of 32 bits. Here the key is the seed and the counter is (client, message, purpose),
so that a client meets the same fate in any process, in any order and beside any other clients.
"""

from __future__ import annotations

import numpy as np

from workbench.compiling import compiled

# What a draw is for: the last word of the counter.
PASSIVE, CHECK, INTERVAL, START = 0, 1, 2, 3

_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_TO_UNIT = 2.0**-32


@compiled
def philox(key, low, high):  # type: ignore[no-untyped-def]
    """Four 32-bit words from a 64-bit key and a counter given as its low and high 64 bits.

    >>> [f"{word:08x}" for word in philox(np.uint64(0), np.uint64(0), np.uint64(0))]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    k0, k1 = key & _LOW, key >> _32
    c0, c1, c2, c3 = low & _LOW, low >> _32, high & _LOW, high >> _32
    for _ in range(10):
        p0, p1 = _M0 * c0, _M1 * c2
        c0, c1, c2, c3 = (p1 >> _32) ^ c1 ^ k0, p1 & _LOW, (p0 >> _32) ^ c3 ^ k1, p0 & _LOW
        k0, k1 = (k0 + _W0) & _LOW, (k1 + _W1) & _LOW
    return c0, c1, c2, c3


@compiled
def uniforms(seed, client, message, purpose):  # type: ignore[no-untyped-def]
    """Four independent numbers in [0, 1) for one (seed, client, message, purpose).

    >>> uniforms(np.uint64(1), np.uint64(7), 3, CHECK) == uniforms(np.uint64(1), np.uint64(7), 3, CHECK)
    True
    >>> uniforms(np.uint64(1), np.uint64(7), 3, CHECK) == uniforms(np.uint64(1), np.uint64(7), 3, PASSIVE)
    False
    """
    a, b, c, d = philox(seed, client, (np.uint64(message) & _LOW) | (np.uint64(purpose) << _32))
    return a * _TO_UNIT, b * _TO_UNIT, c * _TO_UNIT, d * _TO_UNIT
