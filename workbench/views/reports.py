"""A report of a replay: one HTML page with the question, the scenario, the figures, the pictures and the tables.

The page is whole in itself: pictures are inside it, there are no scripts, and nothing is asked of anybody. The scenario
stands in the paper's notation, as text, so that it can be read without a script that sets formulas.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from workbench.views.plots import overview
from workbench.views.scene import Scene
from workbench.views.text import escape, lines, number

LISTED = 50
_STYLE = """
body { font: 16px/1.55 system-ui, sans-serif; color: #222; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin-top: 2rem; }
img { max-width: 100%; height: auto; } pre { background: #f4f3ef; padding: .8rem; overflow-x: auto; font-size: .85rem; }
table { border-collapse: collapse; font-size: .85rem; } .wide { overflow-x: auto; }
th, td { text-align: left; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid #ddd; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; } .note { color: #8a3b00; }
h1, td, p, .why { overflow-wrap: anywhere; } .why { background: #f4f3ef; padding: .8rem; font-size: .85rem; }
.why div { padding-left: 1.2em; text-indent: -1.2em; }
"""


def write(
    seen: Scene,
    path: str | Path,
    *,
    title: str = "A replay",
    question: str = "",
    scenario: str = "",
    metrics: Mapping[str, Any] | None = None,
    explain: Callable[[Any, Any, Any], Any] | None = None,
    links: Mapping[str, str] | None = None,
    colour_by: str | None = None,
    base: Any = None,
) -> Path:
    """Write the page and give back its path; ``links`` are names and relative addresses, of the map for one."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    text = page(
        seen,
        title=title,
        question=question,
        scenario=scenario,
        metrics=metrics,
        explain=explain,
        links=links,
        colour_by=colour_by,
        base=base,
    )
    target.write_text(text, encoding="utf-8")
    return target


def folder(
    seen: Scene,
    out: str | Path,
    *,
    title: str = "A replay",
    explain: Callable[[Any, Any, Any], Any] | None = None,
    colour_by: str | None = None,
    base: Any = None,
    **options: Any,
) -> Path:
    """Write ``report.html``, ``map.html`` and ``picture.png`` side by side, and give back the report's path.

    The other options are those of `write`: ``question``, ``scenario``, ``metrics``.
    """
    from workbench.views.maps import draw_scene

    target = Path(out)
    about: dict[str, Any] = {"title": title, "colour_by": colour_by, "base": base}
    overview(seen, **about).save(target / "picture.png")
    draw_scene(seen, explain=explain, **about).save(str(target / "map.html"))
    links = {"the map": "map.html", "the picture": "picture.png"}
    return write(seen, target / "report.html", explain=explain, links=links, **about, **options)


def page(
    seen: Scene,
    *,
    title: str = "A replay",
    question: str = "",
    scenario: str = "",
    metrics: Mapping[str, Any] | None = None,
    explain: Callable[[Any, Any, Any], Any] | None = None,
    links: Mapping[str, str] | None = None,
    colour_by: str | None = None,
    base: Any = None,
) -> str:
    """The page as text.

    >>> from workbench.views.scene import scene
    >>> nobody = pd.DataFrame({"publication": [], "subscription": [], "tau": [], "pi": [], "ended": []})
    >>> told = pd.DataFrame({"t": [], "kind": [], "publication": [], "subscription": []})
    >>> "<h1>A &lt;b&gt; question</h1>" in page(scene(nobody, told), title="A <b> question")
    True
    """
    picture = overview(seen, colour_by=colour_by, base=base)
    shown = base64.b64encode(picture.png()).decode("ascii")
    parts = [f"<h1>{escape(title)}</h1>"]
    if question:
        parts.append(f"<p><b>{escape(question)}</b></p>")
    parts.append(f"<p>{escape(picture.says)}.</p>")
    parts += [f'<p class="note">{escape(note)}</p>' for note in seen.notes]
    if links:
        listed = ", ".join(f'<a href="{escape(address)}">{escape(name)}</a>' for name, address in links.items())
        parts.append(f"<p>Beside this page: {listed}.</p>")
    parts.append(f'<p><img alt="{escape(picture.says)}" src="data:image/png;base64,{shown}"></p>')
    if scenario:
        parts.append(f"<h2>The scenario</h2><pre>{escape(scenario)}</pre>")
    if metrics:
        parts.append("<h2>Figures</h2>" + _table(pd.DataFrame(list(_flat(metrics)), columns=["figure", "value"])))
    parts += _tables(seen)
    if explain is not None and len(seen.notifications):
        parts += _reasons(seen, explain)
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body>{''.join(parts)}</body></html>\n"
    )


def _flat(metrics: Mapping[str, Any]) -> Any:
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}: {inner}", of) for inner, of in value.items())
        else:
            yield name, value


def _tables(seen: Scene) -> list[str]:
    told, spans = seen.notifications, seen.timelines
    if told.empty:
        return ["<h2>Notifications</h2><p>Nobody was told anything.</p>"]
    counts = pd.crosstab(told["publication"].astype(str), told["kind"])
    counts = counts.reindex(columns=["match", "unmatch"], fill_value=0).sort_values("match", ascending=False)
    counts = counts.rename_axis("publication").reset_index()
    listed = told.assign(t=[seen.times.text(at) for at in told["at"]])[["t", "kind", "publication", "subscription"]]
    spans = spans.assign(
        tau=[seen.times.text(at) for at in spans["began"]],
        pi=["still matches" if pd.isna(at) else seen.times.text(at) for at in spans["ended_at"]],
        ended=spans["ended"].fillna(""),
    )[["publication", "subscription", "tau", "pi", "ended"]]
    zone = escape(seen.times.label)
    return [
        f"<h2>Publications that were told of most</h2>{_table(counts.head(10))}",
        f"<h2>Notifications</h2><p>{zone}{_first(listed)}</p>{_table(listed.head(LISTED))}",
        f"<h2>Timelines</h2><p>{zone}{_first(spans)}</p>{_table(spans.head(LISTED))}",
    ]


def _first(table: pd.DataFrame) -> str:
    return f"; the first {LISTED} of {len(table):,}" if len(table) > LISTED else ""


def _table(table: pd.DataFrame) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.itertuples(index=False))
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cell(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<td class="number">{number(value)}</td>'
    return f"<td>{escape(value)}</td>"


def _reasons(seen: Scene, explain: Callable[[Any, Any, Any], Any]) -> list[str]:
    """Why the first match and the first unmatch were sent."""
    parts = ["<h2>Why</h2>"]
    for kind in ("match", "unmatch"):
        rows = seen.notifications[seen.notifications["kind"] == kind]
        for row in rows.head(1).itertuples():
            said = f"{kind} of {row.publication} to {row.subscription}, {seen.times.text(row.at)}"
            reason = lines(explain(row.publication, row.subscription, row.t))
            parts.append(f'<p>The first {escape(said)}:</p><div class="why">{reason}</div>')
    return parts
