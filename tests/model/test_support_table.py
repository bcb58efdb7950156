"""The published table of supported combinations is what the code does."""

from __future__ import annotations

from pathlib import Path

from workbench.errors import ScenarioError
from workbench.geometry import PLANAR, WGS84
from workbench.model import shapes
from workbench.model.shapes import around, box, disc, line, point

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "support.md"
SHAPES = {
    "point": point(1, 1),
    "disc": disc((1, 1), 0.5),
    "line": line([(0, 0), (2, 2)]),
    "road (line with a width)": around(line([(0, 0), (2, 2)]), 0.5),
    "area": box(0, 0, 2, 2),
    "area with a margin": around(box(0, 0, 2, 2), 0.5),
}
RELATIONS = {
    "enclosure": lambda inner, outer, metric: shapes.encloses(outer, inner, metric),
    "overlap": shapes.overlaps,
    "within": lambda a, b, metric: shapes.within(a, b, 1.0, metric),
    "nearest": shapes.distance_m,
    "fuzzy": shapes.share,
}


def supported(relation, first, second, metric) -> bool:
    try:
        relation(first, second, metric)
    except ScenarioError:
        return False
    return True


def table(name: str) -> str:
    """One relation: rows are first regions, columns second ones; p planar, g on the globe."""
    relation = RELATIONS[name]
    lines = [f"| {name} | " + " | ".join(SHAPES) + " |", "|---" * (len(SHAPES) + 1) + "|"]
    for label, first in SHAPES.items():
        cells = []
        for second in SHAPES.values():
            metrics = (("p", PLANAR), ("g", WGS84))
            cells.append("".join(sign for sign, metric in metrics if supported(relation, first, second, metric)) or "–")
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def test_the_document_says_what_is_supported():
    text = DOCUMENT.read_text(encoding="utf-8")
    missing = [name for name in RELATIONS if table(name) not in text]
    assert not missing, "\n\n".join(table(name) for name in missing)
