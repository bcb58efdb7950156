"""Names that mean something to matplotlib, in every picture: drawn as they are."""

from __future__ import annotations

from itertools import pairwise

import pandas as pd
import pytest

from workbench.brokering.scopes.graph import graph
from workbench.views import overlays, scopes, sequences

NAMES = ["$\\frac{$", "a$b$c_", "</script>`${1}`"]


def test_a_sequence_diagram_draws_any_name() -> None:
    rows = pd.DataFrame({"t": range(3), "sender": NAMES, "receiver": NAMES[::-1], "type": NAMES, "category": ""})
    assert sequences.sequence_diagram(rows, title=NAMES[0]).png()


def test_an_overlay_draws_any_name() -> None:
    links = list(pairwise(NAMES))
    assert overlays.overlay(links, tables=dict.fromkeys(NAMES, 1), title=NAMES[0]).png()


@pytest.mark.parametrize("name", ["$\\frac$", "a$b$c_"])
def test_a_graph_of_scopes_draws_any_name(name: str) -> None:
    ax = scopes.draw(graph(f"X->{name}", f"{name}->R"))
    ax.figure.canvas.draw()
