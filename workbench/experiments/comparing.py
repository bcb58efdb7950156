"""One page over the runs of a folder, made from what they recorded and nothing else.

The page stands alone: tables, plots as images inside it, links to the runs beside it; no script, no request to
anywhere. Runs that differ in ``seed`` only are repetitions: tables show their mean and standard deviation, plots their
mean and, as a band, their least and greatest.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from statistics import mean, stdev
from typing import Any
from urllib.parse import quote

from workbench.errors import DataError
from workbench.experiments.recording import read_json
from workbench.experiments.running import NOTEBOOK, RECORD, Record, failures

PAGE = "compare.html"
_COSTS = {"duration_s": "duration (s)", "peak_memory_mb": "peak memory (MB)"}
Groups = list[tuple[dict[str, Any], list[Record]]]
"""Parameters that vary, with the runs that have these values and differ in the seed only."""

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1b1f24; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2rem }
.wide { overflow-x: auto } table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .75rem; border-bottom: 1px solid #d0d7de; text-align: left }
td.number, th.number { text-align: right } td.number { white-space: nowrap } th { vertical-align: bottom }
caption { text-align: left; color: #57606a; padding: .25rem 0 }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 1rem }
figure { margin: 0 } img { max-width: 100%; height: auto }
.failed { color: #a40e26 }
"""


def compare(folder: str | Path) -> Path:
    """Write ``compare.html`` into a folder of runs; its path."""
    place = Path(folder)
    records = load_records(place)
    target = place / PAGE
    draft = place / f".{PAGE}"
    draft.write_text(page(records), encoding="utf-8")
    draft.replace(target)
    return target


def load_records(folder: Path) -> list[Record]:
    """The records of all runs in a folder, by their parameters."""
    if not folder.is_dir():
        raise DataError(f"there is no folder {str(folder)!r}")
    found = [read_json(path) for path in sorted(folder.glob(f"*/{RECORD}"))]
    records = [record for record in found if isinstance(record, dict) and "parameters" in record]
    if not records:
        raise DataError(f"{str(folder)!r} holds no runs; `workbench run NOTEBOOK --out {folder}` makes some")
    names = list(dict.fromkeys(name for record in records for name in record["parameters"]))
    return sorted(records, key=lambda record: [_sortable(record["parameters"].get(name)) for name in names])


def page(records: Sequence[Record]) -> str:
    """The page over these runs, as HTML."""
    done, failed = [r for r in records if r["state"] == "finished"], failures(list(records))
    varying = _varying(records)
    groups = _groups(done, [name for name in varying if name != "seed"])
    title = f"Runs of {', '.join(sorted({record['notebook'] for record in records}))}"
    questions = list(dict.fromkeys(record["question"] for record in records if record.get("question")))
    parts = [
        f"<h1>{escape(title)}</h1>",
        *(f"<p>{escape(question)}</p>" for question in questions),
        f"<p>{len(records)} runs, {len(done)} finished, {len(failed)} failed. {escape(_times(records))}</p>",
    ]
    if any(len({_listed(record[key]) for record in records}) > 1 for key in ("sources", "versions")):
        parts.append('<p class="failed">These runs come from different sources or versions; see the last table.</p>')
    if failed:
        rows = [[_link(record), escape(str(record["error"]))] for record in failed]
        parts += ['<h2 class="failed">Failed runs</h2>', _table(["run", "error"], rows)]
    if any(len(group) > 1 for _, group in groups):
        parts += ["<h2>Means over repetitions</h2>", _means(groups)]
    if len(groups) > 1:
        parts += ["<h2>Plots</h2>", '<div class="plots">', *_plots(groups), "</div>"]
    parts += ["<h2>Runs</h2>", _runs(done, varying), "<h2>What does not vary</h2>", _constants(records, varying)]
    return _document(title, "\n".join(parts))


def _document(title: str, body: str) -> str:
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{_STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _varying(records: Sequence[Record]) -> list[str]:
    """Parameters that are not the same in all runs; swept ones first, in the order of the sweep."""
    names = dict.fromkeys([*(n for r in records for n in r["swept"]), *(n for r in records for n in r["parameters"])])
    return [name for name in names if len({repr(record["parameters"].get(name)) for record in records}) > 1]


def _groups(records: Sequence[Record], names: Sequence[str]) -> Groups:
    """Runs with the same parameters, except the seed."""
    groups: dict[str, tuple[dict[str, Any], list[Record]]] = {}
    for record in records:
        values = {name: record["parameters"].get(name) for name in names}
        groups.setdefault(repr(values), (values, []))[1].append(record)
    return list(groups.values())


def _metrics(records: Iterable[Record]) -> list[str]:
    return list(dict.fromkeys(name for record in records for name in record["metrics"]))


def _figures(groups: Groups) -> list[str]:
    """Metrics that are numbers, then the costs."""
    metrics = _metrics(record for _, group in groups for record in group)
    return [name for name in (*metrics, *_COSTS) if any(_numbers(group, name) for _, group in groups)]


def _numbers(records: Iterable[Record], name: str) -> list[float]:
    values = [(record if name in _COSTS else record["metrics"]).get(name) for record in records]
    return [float(value) for value in values if value is not None and _is_number(value)]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _runs(records: Sequence[Record], varying: Sequence[str]) -> str:
    metrics = _metrics(records)
    rows = [
        [
            _link(record),
            *(_cell(record["parameters"].get(name)) for name in varying),
            *(_cell(record["metrics"].get(name)) for name in metrics),
            *(_cell(record.get(name)) for name in _COSTS),
        ]
        for record in records
    ]
    return _table(["run", *varying, *metrics, *_COSTS.values()], rows)


def _means(groups: Groups) -> str:
    figures = _figures(groups)
    rows = [
        [*map(_cell, values.values()), str(len(group)), *(_spread(_numbers(group, name)) for name in figures)]
        for values, group in groups
    ]
    heads = [*groups[0][0], "runs", *(_COSTS.get(name, name) for name in figures)]
    return _table(heads, rows, "mean ± standard deviation")


def _spread(values: Sequence[float]) -> str:
    """Mean and standard deviation, to two digits of the latter.

    >>> _spread([250, 500]), _spread([0.5, 0.5]), _spread([0.51, 0.52])
    ('375 ± 177', '0.5', '0.5150 ± 0.0071')
    """
    if not values:
        return "–"
    spread = stdev(values) if len(values) > 1 else 0
    if not spread:
        return _cell(mean(values))
    decimals = max(0, 1 - math.floor(math.log10(spread)))
    return f"{mean(values):,.{decimals}f} ± {spread:,.{decimals}f}"


def _constants(records: Sequence[Record], varying: Sequence[str]) -> str:
    first = records[0]
    same = {name: value for name, value in first["parameters"].items() if name not in varying}
    about = {
        "versions": _one({_listed(record["versions"]) for record in records}),
        "checksums of sources": _one({_listed(record["sources"]) for record in records}),
        "git commit": _one({_commit(record) for record in records}),
    }
    return _table(["", "value"], [[escape(name), _cell(value)] for name, value in (same | about).items()])


def _listed(values: dict[str, str | None]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items() if value)


def _commit(record: Record) -> str:
    git = record.get("git")
    return "none" if not git else git["commit"][:12] + (" with changes" if git["changed"] else "")


def _one(values: set[str]) -> str:
    return values.pop() if len(values) == 1 else f"differ: {'; '.join(sorted(values))}"


def _times(records: Sequence[Record]) -> str:
    total = sum(record.get("duration_s") or 0 for record in records)
    first = min(record["started"] for record in records)[:16].replace("T", " ")
    return f"{total:,.1f} s of running time; the first began at {first} UTC."


def _link(record: Record) -> str:
    name = quote(record["name"])
    return f'<a href="{name}/{NOTEBOOK}">{escape(record["name"])}</a> (<a href="{name}/{RECORD}">record</a>)'


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """A table of cells that are HTML already; columns of numbers are flush right."""
    numeric = [bool(rows) and all(_reads_as_number(row[i]) for row in rows) for i in range(len(heads))]
    kinds = [' class="number"' if right else "" for right in numeric]
    head = "".join(f"<th{kind}>{_breakable(text)}</th>" for kind, text in zip(kinds, heads))
    body = "\n".join(
        "<tr>" + "".join(f"<td{kind}>{text}</td>" for kind, text in zip(kinds, row)) + "</tr>" for row in rows
    )
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f'<div class="wide"><table>{above}<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def _breakable(name: str) -> str:
    """A name as HTML; a long one may be broken after an underscore.

    >>> _breakable("radius_m"), _breakable("notifications_stateless")
    ('radius_m', 'notifications_<wbr>stateless')
    """
    return escape(name).replace("_", "_<wbr>") if len(name) > 12 else escape(name)


def _reads_as_number(text: str) -> bool:
    return not text.strip("0123456789.,±-–e+ ")


def _cell(value: Any) -> str:
    """A value as HTML; numbers to at most six significant digits.

    >>> _cell(1234567), _cell(0.123456789), _cell("<b>"), _cell(None)
    ('1,234,567', '0.123457', '&lt;b&gt;', '–')
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:,.6g}"
    return f"{value:,}" if _is_number(value) else escape(str(value))


def _sortable(value: Any) -> tuple[bool, float, str]:
    return (not _is_number(value), value if _is_number(value) else 0, str(value))


def _plots(groups: Groups) -> list[str]:
    """A plot for each figure: over the first parameter that varies, a line for each combination of the others."""
    names = list(groups[0][0])
    numeric = [name for name in names if all(_is_number(values[name]) for values, _ in groups)]
    along = (numeric or names)[0]
    return [_plot(groups, along, name, numeric=along in numeric) for name in _figures(groups)]


def _plot(groups: Groups, along: str, metric: str, numeric: bool) -> str:
    from matplotlib.figure import Figure  # without pyplot: no display, no state

    lines: dict[str, list[tuple[Any, list[float]]]] = {}
    for values, group in groups:
        rest = ", ".join(f"{name}={_label(value)}" for name, value in values.items() if name != along)
        if numbers := _numbers(group, metric):
            lines.setdefault(rest, []).append((values[along], numbers))
    figure = Figure(figsize=(5.2, 3.4), dpi=120, layout="constrained")
    axes = figure.subplots()
    markers = "osD^v<>PX*"
    for i, (rest, points) in enumerate(lines.items()):
        points.sort(key=lambda point: _sortable(point[0]))
        at = [value if numeric else _label(value) for value, _ in points]
        means = [mean(numbers) for _, numbers in points]
        axes.plot(at, means, marker=markers[i % len(markers)], ls="-" if numeric else "", label=_literal(rest))
        if numeric:
            low, high = [min(numbers) for _, numbers in points], [max(numbers) for _, numbers in points]
            axes.fill_between(at, low, high, alpha=0.15)
    if numeric:
        _scale(axes, [value for points in lines.values() for value, _ in points])
    label = _COSTS.get(metric, metric)
    axes.set_xlabel(_literal(along))
    axes.set_ylabel(_literal(label))
    axes.grid(alpha=0.3)
    if axes.get_xscale() == "log" and _spans_orders([n for points in lines.values() for _, ns in points for n in ns]):
        axes.set_yscale("log")  # what grows in proportion is a straight line
    elif metric in _COSTS:
        axes.set_ylim(0, 1.1 * max(n for points in lines.values() for _, ns in points for n in ns) or 1)
    if len(lines) > 1:
        axes.legend(fontsize="small")
    png = io.BytesIO()
    figure.savefig(png, format="png", metadata={"Software": None})
    image = base64.b64encode(png.getvalue()).decode()
    alt = escape(f"{label} over {along}; the values stand in the tables", quote=True)
    return f'<figure><img alt="{alt}" src="data:image/png;base64,{image}"></figure>'


def _scale(axes: Any, values: Sequence[float]) -> None:
    """Ticks where the runs are; logarithmic where positive values span two orders of magnitude."""
    ticks = sorted(set(values))
    if _spans_orders(ticks):
        axes.set_xscale("log")
    if len(ticks) <= 10:
        axes.set_xticks(ticks, [_label(tick) for tick in ticks])
        axes.minorticks_off()


def _spans_orders(values: Sequence[float]) -> bool:
    return bool(values) and min(values) > 0 and max(values) / min(values) >= 100


def _label(value: Any) -> str:
    return f"{value:g}" if _is_number(value) else str(value)


def _literal(text: str) -> str:
    """Text that matplotlib takes as it stands, not as mathematics, and not as a label to hide."""
    return text.replace("$", r"\$").removeprefix("_")
