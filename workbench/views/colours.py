"""Colours that most people can tell apart, scales from the values of an attribute to them, and who is painted how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from workbench.errors import DataError, did_you_mean
from workbench.views.text import number

# Okabe and Ito's palette for colour-blind readers, without yellow and black, which vanish on maps; then viridis.
CATEGORIES = ("#0072B2", "#E69F00", "#CC79A7", "#56B4E9", "#8B5E3C", "#5D3A9B", "#7F7F00")
STEPS = ("#440154", "#3B528B", "#21908C", "#5DC863", "#C7B020")
OTHERS, PLAIN = "#8A8A8A", "#3A3A3A"
PLACE, MOBILE, MATCH, UNMATCH = "#0072B2", "#5D3A9B", "#009E73", "#D55E00"


@dataclass(frozen=True)
class Scale:
    """A colour for each value, and the entries of a legend."""

    attribute: str
    legend: tuple[tuple[str, str], ...]
    names: tuple[Any, ...] = ()
    edges: tuple[float, ...] = ()

    def colour(self, value: Any) -> str:
        """The colour of one value; missing and rare ones are grey."""
        if self.edges:
            if value is None or pd.isna(value):
                return OTHERS
            return STEPS[int(np.searchsorted(self.edges[1:-1], float(value), side="right"))]
        return dict(zip(self.names, CATEGORIES, strict=False)).get(value, OTHERS)


def scale(attribute: str, values: pd.Series) -> Scale:
    """Categories by how many there are; numbers with many values in five steps of equal counts.

    >>> scale("category", pd.Series(["fuel", "coffee", "coffee"])).legend
    (('coffee', '#0072B2'), ('fuel', '#E69F00'))
    >>> scale("price", pd.Series(range(100))).colour(99)
    '#C7B020'
    """
    known = values.dropna()
    numeric = pd.api.types.is_numeric_dtype(known) and not pd.api.types.is_bool_dtype(known)
    if numeric and known.nunique() > len(CATEGORIES):
        edges = np.quantile(known.astype(float), np.linspace(0, 1, len(STEPS) + 1))
        legend = [(f"{number(a)} – {number(b)}", c) for a, b, c in zip(edges, edges[1:], STEPS, strict=False)]
        return Scale(attribute, tuple(legend), edges=tuple(edges))
    names = sorted(known.value_counts().index[: len(CATEGORIES)], key=str)
    legend = [(str(name), colour) for name, colour in zip(names, CATEGORIES, strict=False)]
    if known.nunique() > len(names) or len(known) < len(values):
        legend.append(("others", OTHERS))
    return Scale(attribute, tuple(legend), names=tuple(names))


HIDDEN = ("key", "name_shown", "x", "y", "lon", "lat", "z", "geometry", "radius_m", "since", "until", "t", "op", "id")
"""Columns of a scene that are no attributes."""


@dataclass(frozen=True)
class Paint:
    """What places and mobiles are painted with: a colour each, or by an attribute, and dark who does not have it."""

    legend: tuple[tuple[str, str], ...] = (("place", PLACE), ("mobile", MOBILE))
    scale: Scale | None = None
    painted: tuple[str, ...] = ()

    def colour(self, noun: str, row: Any) -> str:
        """The colour of a place or a mobile, by its row."""
        if self.scale is None:
            return dict(self.legend)[noun]
        return self.scale.colour(getattr(row, self.scale.attribute)) if noun in self.painted else PLAIN


def paint(attribute: str | None, places: pd.DataFrame, tracks: pd.DataFrame) -> Paint:
    """The paint of a scene.

    >>> cafe, walk = pd.DataFrame({"price": [2]}), pd.DataFrame({"key": ["ann"]})
    >>> paint("price", cafe, walk).legend
    (('price: 2', '#0072B2'), ('mobile', '#3A3A3A'))
    """
    if attribute is None:
        return Paint()
    tables = {"place": places, "mobile": tracks}
    found = {noun: table[attribute] for noun, table in tables.items() if attribute in table.columns}
    if not found:
        known = {str(c) for table in tables.values() for c in table.columns} - set(HIDDEN)
        raise DataError(f"neither places nor fixes have a column {attribute!r}; {did_you_mean(attribute, known)}")
    chosen = scale(attribute, pd.concat(list(found.values()), ignore_index=True))
    named = [(f"{attribute}: {name}", colour) for name, colour in chosen.legend]
    plain = [(noun, PLAIN) for noun in tables if noun not in found]
    return Paint((*named, *plain), chosen, tuple(found))
