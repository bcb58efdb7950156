"""Walks over blocks, move by move: what somebody plays with, and what a small example needs.

A walk is a start and a word of moves: N, E, S, W go a block, a dot stays for as long as that takes. Time is in whole
seconds from 0. With noise, fixes are what a receiver saw; without, what was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from workbench.datasets.draws import normal, whole
from workbench.errors import DataError, raise_all

STEPS = {"N": (0, 1), "E": (1, 0), "S": (0, -1), "W": (-1, 0), ".": (0, 0)}
Walk = tuple[tuple[int, int], str]


def walks(
    moves: Mapping[Any, Walk],
    *,
    block_m: float = 100.0,
    step_s: int = 60,
    interval_s: int = 10,
    noise_m: float = 0.0,
    seed: int = 1,
) -> pd.DataFrame:
    """Fixes of walks, each a start (in blocks) and its moves, a block in ``step_s`` seconds.

    >>> walks({"you": ((0, 0), "E.")}, block_m=100, step_s=60, interval_s=60)
      mobile    t      x    y
    0    you    0    0.0  0.0
    1    you   60  100.0  0.0
    2    you  120  100.0  0.0
    """
    known = ", ".join(map(repr, STEPS))
    raise_all(
        [
            f"{name!r} moves {wrong!r}; a move is one of {known}"
            for name, (_, word) in moves.items()
            for wrong in sorted(set(word) - set(STEPS))
        ],
        DataError,
    )
    parts = []
    for n, (name, (start, word)) in enumerate(moves.items()):
        turns = block_m * np.cumsum([start, *(STEPS[letter] for letter in word)], axis=0)
        t = np.arange(0, len(word) * step_s + 1, interval_s)
        x, y = (np.interp(t, np.arange(len(word) + 1) * step_s, turns[:, axis]) for axis in (0, 1))
        off = normal(seed, "walk", n, t)
        parts.append(pd.DataFrame({"mobile": name, "t": t, "x": x + noise_m * off[0], "y": y + noise_m * off[1]}))
    return pd.concat(parts, ignore_index=True)


def wandering(count: int, moves: int, *, blocks: int = 10, seed: int = 1) -> dict[str, Walk]:
    """Walks of people without an aim, who keep their direction more often than not and turn round at the edge.

    >>> walk = wandering(2, moves=30, blocks=4)["p1"]
    >>> len(walk[1]), set(walk[1]) <= set("NESW")
    (30, True)
    """
    made: dict[str, Walk] = {}
    for n in range(count):
        x, y = (int(whole(seed, f"wander {axis}", blocks + 1, n)[0]) for axis in "xy")
        start, word, heading = (x, y), "", "N"
        for turn in whole(seed, "turn", 6, n, np.arange(moves)).tolist():
            wish = "NESW"[turn] if turn < 4 else heading
            inside = [d for d in "NESW" if 0 <= x + STEPS[d][0] <= blocks and 0 <= y + STEPS[d][1] <= blocks]
            heading = wish if wish in inside else inside[turn % len(inside)]
            x, y, word = x + STEPS[heading][0], y + STEPS[heading][1], word + heading
        made[f"p{n + 1}"] = (start, word)
    return made
