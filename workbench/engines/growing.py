"""Arrays that become larger in compiled code.

As loops: what Numba makes of ``longer[: len(array)] = array`` is no faster, and takes a second to compile, which is
more than most kernels take.
"""

from __future__ import annotations

import numpy as np

from workbench.compiling import callee


@callee
def longer(array, length):  # type: ignore[no-untyped-def]
    """The numbers of an array in one that has room for more."""
    made = np.empty(length, array.dtype)
    for i in range(len(array)):
        made[i] = array[i]
    return made


@callee
def taller(rows, count):  # type: ignore[no-untyped-def]
    """The rows of a table in one that has room for more."""
    made = np.empty((count, rows.shape[1]), rows.dtype)
    for i in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            made[i, k] = rows[i, k]
    return made


@callee
def wider(rows, width):  # type: ignore[no-untyped-def]
    """The rows of a table in one whose rows have room for more."""
    made = np.empty((rows.shape[0], width), rows.dtype)
    for i in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            made[i, k] = rows[i, k]
    return made
