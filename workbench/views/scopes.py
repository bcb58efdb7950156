"""A graph of scopes, drawn: circles are scopes and squares simple components, as in the paper's Figure 3.

What is attached is visible: a dashed circle is a session scope; under a scope's name stand its policies, a padlock word
where joining is restricted; on an edge stand the interfaces (``↑`` out, ``↓`` in) and, with ``m:``, the mappings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx as nx

from workbench.views.text import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCOPE, COMPONENT, LINE, ATTACHED = "#dbe9f6", "#f2f2f2", "#555555", "#9c3d10"
PAPER = {"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none"}
NODE = 1300
ALONG = (0.35, 0.44, 0.53, 0.28, 0.62, 0.2, 0.72)
"""where on an edge its text may stand, as a part of the way from the member to the scope"""
KEY = "circle: scope, dashed: session scope · square: simple component · ↑ out, ↓ in, –: nothing passes · m: mapping"


def layers(graph: Any) -> dict[str, int]:
    """How high everything stands: above all its members.

    >>> made = nx.DiGraph([("X", "S"), ("S", "R"), ("Y", "R")])
    >>> layers(made)
    {'X': 0, 'Y': 0, 'S': 1, 'R': 2}
    """
    return {name: k for k, names in enumerate(nx.topological_generations(graph)) for name in names}


def positions(graph: Any) -> dict[str, tuple[float, float]]:
    """Where everything is drawn: by layers, each ordered by where its neighbours stand, so that few edges cross."""
    heights = layers(graph)
    count = max(heights.values(), default=-1) + 1
    rows = [sorted(name for name, h in heights.items() if h == height) for height in range(count)]
    across = {name: (k + 1) / (len(row) + 1) for row in rows for k, name in enumerate(row)}
    for sweep in range(8):
        near = graph.predecessors if sweep % 2 else graph.successors
        for row in rows if sweep % 2 else rows[::-1]:
            middle = {n: [across[m] for m in near(n)] or [across[n]] for n in row}
            row.sort(key=lambda n: (sum(middle[n]) / len(middle[n]), n))
            across.update({name: (k + 1) / (len(row) + 1) for k, name in enumerate(row)})
    return {name: (across[name], float(height)) for name, height in heights.items()}


def attached_to_scope(scope: Any) -> str:
    """The policies of a scope in words, empty where everything is the default."""
    said = []
    if repr(scope.publishing) != "immediate":
        said.append(repr(scope.publishing))
    if scope.traverse != "broadcast":
        said.append(scope.traverse)
    if repr(scope.delivery) != "everybody":
        said.append(repr(scope.delivery))
    if scope.security is not None:
        said.append("restricted")
    return "\n".join(said)


def attached_to_edge(edge: Any) -> str:
    """The interfaces and mappings of a membership in words."""
    said = []
    for arrow, passing, mapping in (("↑", edge.output, edge.mapping_out), ("↓", edge.input, edge.mapping_in)):
        parts = [] if passing.filters is None else [_short(passing)]
        parts += [f"m: {mapping.name}"] if mapping is not None else []
        said += [f"{arrow} {' '.join(parts)}"] if parts else []
    return "\n".join(said)


def _short(passing: Any) -> str:
    if not passing.filters:
        return "–"
    texts = []
    for one in sorted(passing.filters, key=repr):
        parts = []
        for name, extent in one.constraints:
            values = getattr(extent, "values", None)
            shown = ", ".join(sorted(map(str, values))) if values is not None else str(extent)
            parts.append(shown if name == "kind" else f"{name} {shown}")
        texts.append("; ".join(parts))
    return " or ".join(texts)


def draw(graph: Any, ax: Axes | None = None, *, attached: bool = True, highlight: Any = ()) -> Axes:
    """Draw a graph of scopes; ``highlight`` are paths (as `why` gives them) whose edges are drawn thick."""
    from matplotlib import pyplot as plt

    if ax is None:
        _, ax = plt.subplots(figsize=(13, 7.5), layout="constrained")
    where = positions(graph.nx)
    thick = {
        pair
        for path in highlight
        for pair in [*zip(path.up, path.up[1:], strict=False), *zip(path.down[1:], path.down, strict=False)]
    }
    for edge in graph.nx.edges:
        nx.draw_networkx_edges(
            graph.nx, where, [edge], ax=ax, edge_color=ATTACHED if edge in thick else LINE,
            width=2.5 if edge in thick else 1.0, node_size=NODE, arrowsize=12,
        )  # fmt: skip
    tagged = graph.sessions(graph.scopes)
    for names, shape, colour, style in (
        (sorted(graph.components), "s", COMPONENT, "solid"),
        (sorted(set(graph.scopes) - tagged), "o", SCOPE, "solid"),
        (sorted(tagged), "o", SCOPE, "dashed"),
    ):
        drawn = nx.draw_networkx_nodes(
            graph.nx, where, names, ax=ax, node_shape=shape, node_color=colour, edgecolors=LINE, node_size=NODE
        )
        if names:
            drawn.set_linestyle(style)
    nx.draw_networkx_labels(graph.nx, where, {name: plain(name) for name in graph.nx}, ax=ax, font_size=8)
    ax.set_axis_off()
    ax.margins(0.08)
    if attached:
        for name, scope in graph.scopes.items():
            text = attached_to_scope(scope)
            ax.annotate(text, where[name], (22, 8), textcoords="offset points", fontsize=8, color=ATTACHED)
        _label_edges(graph, where, ax)
        ax.text(0.5, -0.02, KEY, transform=ax.transAxes, ha="center", fontsize=8, color=LINE)
    return ax


def _label_edges(graph: Any, where: Any, ax: Axes) -> None:
    """Write what is attached to the edges, each where along its edge it covers the least of what stands there."""
    from matplotlib.transforms import Bbox

    figure: Any = ax.figure
    renderer = figure.canvas.get_renderer()
    figure.draw_without_rendering()
    radius = 0.5 * (NODE**0.5) * figure.dpi / 72
    taken = [Bbox.from_bounds(x - radius, y - radius, 2 * radius, 2 * radius)
             for x, y in (ax.transData.transform(place) for place in where.values())]  # fmt: skip
    for (member, scope), edge in sorted(graph.edges.items()):
        said = attached_to_edge(edge)
        if not said:
            continue
        (x1, y1), (x2, y2) = where[member], where[scope]
        text = ax.text(x1, y1, said, fontsize=7, color=LINE, ha="center", va="center", bbox=PAPER, zorder=3)
        tried: list[tuple[float, int, float, Any]] = []
        for part in ALONG:
            text.set_position((x1 + part * (x2 - x1), y1 + part * (y2 - y1)))
            box = text.get_window_extent(renderer).padded(4)
            covered = [Bbox.intersection(box, other) for other in taken]
            tried.append((sum(b.width * b.height for b in covered if b is not None), len(tried), part, box))
        _, _, part, box = min(tried, key=lambda found: found[:2])
        text.set_position((x1 + part * (x2 - x1), y1 + part * (y2 - y1)))
        taken.append(box)
