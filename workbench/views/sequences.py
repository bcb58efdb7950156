"""A sequence diagram: who sent what to whom, from top to bottom (takes a table of messages, never an engine).

Messages of one kind that follow each other over one connection are one arrow, with their number.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes

from workbench.views.colours import MOBILE, PLACE, UNMATCH
from workbench.views.plots import Picture
from workbench.views.text import plain

MAX_ARROWS = 60


def sequence_diagram(
    messages: pd.DataFrame, *, order: Sequence[str] = (), title: str = "", unit: float = 1e6
) -> Picture:
    """The messages of a table (``t, sender, receiver, type, category``), system events in grey, forwarded ones dashed.

    >>> rows = pd.DataFrame({"t": [5], "sender": ["gps"], "receiver": ["b1"], "type": ["Location"], "category": [""]})
    >>> sequence_diagram(rows)
    1 message between 2 parties, from t = 5e-06 to 5e-06 s: Location 1.
    """
    shown = _gathered(messages).head(MAX_ARROWS).reset_index(drop=True)
    found = list(dict.fromkeys([*shown["sender"], *shown["receiver"]]))
    parties = [name for name in order if name in found] + [name for name in found if name not in order]
    height = 1.2 + 0.24 * len(shown)
    picture = Picture(figsize=(max(6.0, 1.35 * len(parties) + 1), height), layout="constrained")
    axes: Axes = picture.add_subplot()
    for number, name in enumerate(parties):
        axes.plot([number, number], [0, len(shown) + 1], color="0.75", linewidth=1, zorder=1)
        axes.annotate(plain(name).replace(" ", "\n"), (number, -0.3), ha="center", va="bottom", fontsize=8)
    for row in shown.itertuples():
        start, end, y = parties.index(row.sender), parties.index(row.receiver), row.Index + 1
        system = row.category == "system"
        forwarded = bool(getattr(row, "forwarded", False))
        colour = "0.5" if system else MOBILE if getattr(row, "relates_to", ()) else PLACE
        axes.annotate(
            "", (end, y), (start, y),
            arrowprops={"arrowstyle": "->", "color": colour, "linestyle": "--" if forwarded else "-", "lw": 1.2},
        )  # fmt: skip
        quality = getattr(row, "quality", 100)
        label = plain(row.type) + (f" ({quality})" if quality not in (100, None) else "")
        label += f" × {row.number}" if row.number > 1 else ""
        axes.annotate(label, ((start + end) / 2, y), (0, 1), textcoords="offset points", ha="center", va="bottom",
                      fontsize=7, color=colour)  # fmt: skip
        if row.Index == 0 or row.t != shown["t"][row.Index - 1]:
            axes.annotate(f"{row.t / unit:.3f} s", (-0.6, y), ha="right", va="center", fontsize=7, color=UNMATCH)
    axes.set_xlim(-0.7, len(parties) - 0.4)
    axes.set_ylim(len(shown) + 1.2, -1.2)
    axes.set_axis_off()
    if title:
        axes.set_title(plain(title), fontsize=10)
    picture.says = _sentence(messages, shown, parties, unit)
    return picture


def _gathered(messages: pd.DataFrame) -> pd.DataFrame:
    """One row for messages of one kind that follow each other, with their number."""
    alike = [name for name in ("sender", "receiver", "type", "category", "quality", "forwarded") if name in messages]
    begins = (messages[alike] != messages[alike].shift()).any(axis=1)
    return messages[begins].assign(number=begins.cumsum().value_counts(sort=False).to_numpy())


def _sentence(messages: pd.DataFrame, shown: pd.DataFrame, parties: list[str], unit: float) -> str:
    kinds = ", ".join(f"{type} {count}" for type, count in shown.groupby("type", sort=False)["number"].sum().items())
    first, last = (shown["t"].iloc[end] / unit for end in (0, -1)) if len(shown) else (0, 0)
    number = int(shown["number"].sum())
    more = f" (the first {number} of {len(messages)})" if len(messages) > number else ""
    count = f"{number} message{'' if number == 1 else 's'}"
    return f"{count}{more} between {len(parties)} parties, from t = {first:g} to {last:g} s: {kinds}."
