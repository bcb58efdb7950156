"""Overlays of brokers, drawn: brokers, links, and how much went over each (takes data, never an engine)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import networkx as nx
from matplotlib.axes import Axes

from workbench.views.colours import MOBILE, PLACE, UNMATCH
from workbench.views.plots import Picture
from workbench.views.text import plain

MAX_LABELS = 40
_PAPER = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}


def overlay(
    links: Iterable[tuple[str, str]],
    *,
    positions: Mapping[str, tuple[float, float]] | None = None,
    messages: Mapping[tuple[str, str], int] | None = None,
    tables: Mapping[str, int] | None = None,
    down: Iterable[tuple[str, str]] = (),
    title: str = "",
) -> Picture:
    """Brokers and links; a link is the wider the more messages went over it, a broker the larger its routing table.

    >>> overlay([("B1", "B2")], messages={("B1", "B2"): 3}, tables={"B1": 1, "B2": 2})
    2 brokers, 1 link; 3 messages between brokers, at most 3 over one link (B1 - B2); the largest routing table ...
    """
    graph = nx.Graph(list(links))
    graph.add_nodes_from([*(positions or {}), *(tables or {})])
    places = dict(positions) if positions else _layout(graph)
    in_one_row = len({y for _, y in places.values()}) == 1
    picture = Picture(figsize=(7, 2) if in_one_row else (7, 5), layout="constrained")
    axes: Axes = picture.add_subplot()
    passed = _both_ways(graph, messages or {})
    most = max(passed.values(), default=0) or 1
    broken = {frozenset(x) for x in down}
    for a, b in graph.edges:
        count = passed.get(frozenset((a, b)), 0)
        (x1, y1), (x2, y2) = places[a], places[b]
        colour, style = (UNMATCH, ":") if frozenset((a, b)) in broken else (MOBILE, "-")
        wide = 1 + 6 * count / most if style == "-" else 3
        axes.plot([x1, x2], [y1, y2], style, color=colour, linewidth=wide, alpha=0.6, zorder=1)
        if messages and graph.number_of_edges() <= MAX_LABELS:
            middle = ((x1 + x2) / 2, (y1 + y2) / 2)
            axes.annotate(str(count), middle, ha="center", va="center", fontsize=8, bbox=_PAPER)
    largest = max((tables or {}).values(), default=0) or 1
    room = 1.0 if graph.number_of_nodes() <= MAX_LABELS else 16 / graph.number_of_nodes()  # many, without names
    sizes = [room * (550 + 450 * (tables or {}).get(n, 0) / largest) for n in graph.nodes]
    xs, ys = zip(*(places[n] for n in graph.nodes), strict=True)
    axes.scatter(xs, ys, s=sizes, color=PLACE, edgecolor="white", zorder=2)
    for name in graph.nodes if graph.number_of_nodes() <= MAX_LABELS else ():
        label = plain(name) + (f"\n{tables[name]}" if tables and name in tables else "")
        axes.annotate(label, places[name], ha="center", va="center", fontsize=8, color="white", zorder=3)
    axes.set_axis_off()
    axes.margins(0.15)
    if title:
        axes.set_title(plain(title))
    picture.supxlabel("; ".join(_legend(graph, passed, tables, broken)), fontsize=8)
    picture.says = _sentence(graph, passed, tables or {}, broken)
    return picture


def _both_ways(graph: nx.Graph, messages: Mapping[tuple[str, str], int]) -> dict[frozenset[str], int]:
    found: dict[frozenset[str], int] = {}
    for (a, b), count in messages.items():
        if graph.has_edge(a, b):
            found[frozenset((a, b))] = found.get(frozenset((a, b)), 0) + count
    return found


def _layout(graph: nx.Graph) -> dict[str, tuple[float, float]]:
    if graph.number_of_nodes() and nx.is_forest(graph):
        return _layered(graph)
    return {name: (float(x), float(y)) for name, (x, y) in nx.circular_layout(sorted(graph)).items()}


def _layered(graph: nx.Graph) -> dict[str, tuple[float, float]]:
    """Each tree from its middle downwards, who has others below in the middle above them; a chain in one row."""
    places: dict[str, tuple[float, float]] = {}
    column = 0.0
    for part in sorted(nx.connected_components(graph), key=min):
        tree = graph.subgraph(part)
        ends = sorted(name for name in tree if tree.degree(name) <= 1)
        if max(degree for _, degree in tree.degree) <= 2:
            row = nx.shortest_path(tree, ends[0], ends[-1])
            places |= {name: (column + i, 0.0) for i, name in enumerate(row)}
            column += len(row)
            continue
        root = min(nx.center(tree))
        depth = nx.single_source_shortest_path_length(tree, root)
        below = nx.bfs_tree(tree, root, sort_neighbors=sorted)
        for name in nx.dfs_postorder_nodes(below, root, sort_neighbors=sorted):
            under = [places[child][0] for child in below[name]]
            places[name] = (sum(under) / len(under) if under else column, -float(depth[name]))
            column += not under
    return places


def _legend(graph: nx.Graph, passed: object, tables: object, broken: object) -> list[str]:
    """What the marks mean."""
    labelled = graph.number_of_edges() <= MAX_LABELS
    found = [f"on a link: messages{'' if labelled else ', by its width'}"] if passed else []
    if tables and graph.number_of_nodes() > MAX_LABELS:
        found += ["the larger a broker, the larger its routing table"]
    found += ["in a broker: entries of its routing table"] if tables and graph.number_of_nodes() <= MAX_LABELS else []
    return found + (["dotted: broken"] if broken else [])


def _sentence(
    graph: nx.Graph, passed: Mapping[frozenset[str], int], tables: Mapping[str, int], broken: set[frozenset[str]]
) -> str:
    def some(count: int, noun: str) -> str:
        return f"{count} {noun}{'' if count == 1 else 's'}"

    said = f"{some(graph.number_of_nodes(), 'broker')}, {some(graph.number_of_edges(), 'link')}"
    if passed:
        busiest = max(passed, key=lambda x: (passed[x], sorted(x)))
        total, most = sum(passed.values()), passed[busiest]
        where = " - ".join(sorted(busiest))
        said += f"; {some(total, 'message')} between brokers, at most {most} over one link ({where})"
    if tables:
        said += f"; the largest routing table has {some(max(tables.values()), 'entry')}".replace("entrys", "entries")
    if broken:
        said += f"; broken: {', '.join(sorted(' - '.join(sorted(x)) for x in broken))}"
    return said + "."
