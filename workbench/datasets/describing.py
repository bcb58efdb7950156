"""What a data set holds, at a glance: mobiles, fixes, span, sampling, gaps, bounds.

A description is read off the fixes bucket by bucket, so it costs no more memory for a large data set than for a
small one. *Sampling* is the time between two fixes of a mobile: its median, and the 90th percentile. A *gap* is a
step longer than `gap_s` (default: ten medians). Quantiles come from counts in classes of a relative width of 2 %,
exact up to that.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from workbench.datasets.frames import as_pandas
from workbench.datasets.layout import Fixes, is_ingested, open_fixes
from workbench.datasets.picturing import Picture, columns_of, counted, picture, window_of
from workbench.datasets.preparing import Tracks
from workbench.datasets.quality import Report, coordinates_of
from workbench.errors import DataError

_FINENESS = np.log(1.02)


@dataclass(frozen=True)
class Description:
    """A table of facts and a map, which show themselves as text and in a notebook; `facts` is plain data."""

    name: str
    facts: dict[str, Any]
    report: Report | None = None
    sample: pd.DataFrame | None = None
    draw: Callable[[pd.DataFrame], Any] | None = None
    drawn: Picture | None = None

    def rows(self) -> list[tuple[str, str]]:
        """The facts as short texts."""
        f = self.facts
        lines = [("mobiles", f"{f['mobiles']:,}"), ("fixes", f"{f['fixes']:,}")]
        if f["fixes"]:
            lines += [
                ("first", str(f["first"])),
                ("last", str(f["last"])),
                ("span", _duration(f["span_s"])),
                ("fixes a mobile", f"{f['fixes_min']:,} to {f['fixes_max']:,}, median {f['fixes_median']:,.10g}"),
            ]
        if f["sampling_median_s"] is not None:
            lines += [
                (
                    "sampling",
                    f"median {_duration(f['sampling_median_s'])}, 90 % within {_duration(f['sampling_p90_s'])}",
                ),
                (
                    "gaps",
                    f"{f['gaps']:,} longer than {_duration(f['gap_s'])}, the longest {_duration(f['longest_gap_s'])}",
                ),
            ]
        for axis, (low, high) in f["bounds"].items():
            lines.append(
                (axis, f"{low:.4f} to {high:.4f}" if axis in ("lon", "lat") else f"{low:,.1f} to {high:,.1f} m")
            )
        lines.append(("coordinates", f["crs"] or ("metres of their own" if f["bounds"] else "none")))
        return [*lines, ("columns", ", ".join(f["columns"]))]

    def __str__(self) -> str:
        body = "\n".join(f"  {name:<15} {value}" for name, value in self.rows())
        return f"{self.name}\n{body}" + (f"\n{self.report}" if self.report is not None else "")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        body = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in self.rows()
        )
        told = self.report._repr_html_() if self.report is not None else ""
        map_ = f"<div>{self.drawn.svg}</div>" if self.drawn is not None else ""
        table = f"<div><table><caption>{html.escape(self.name)}</caption>{body}</table>{told}</div>"
        return f"<div style='display:flex;flex-wrap:wrap;gap:24px;align-items:flex-start'>{table}{map_}</div>"

    def map(self) -> Any:
        """A map of the fixes: all of them counted in squares, or a sample as the function given to `describe` draws
        it."""
        if self.draw is not None:
            return self.draw(self.sample)
        if self.drawn is None:
            raise DataError(f"{self.name}: there are no coordinates to draw")
        return self.drawn


def _duration(seconds: float) -> str:
    """Seconds in the unit that fits.

    >>> [_duration(s) for s in (0.4, 59, 90, 7200, 200_000)]
    ['0.4 s', '59 s', '1.5 min', '2 h', '2.31 d']
    """
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


class _Counts:
    """Steps counted in classes that are 2 % wide."""

    def __init__(self) -> None:
        self.counts = np.zeros(4_000, np.int64)
        self.longest = 0.0

    def add(self, steps: np.ndarray) -> None:
        if len(steps):
            place = np.clip(np.round(np.log(np.maximum(steps, 1e-9)) / _FINENESS) + 1_100, 0, len(self.counts) - 1)
            self.counts += np.bincount(place.astype(int), minlength=len(self.counts))
            self.longest = max(self.longest, float(steps.max()))

    def quantile(self, share: float) -> float | None:
        total = self.counts.sum()
        if not total:
            return None
        place = int(np.searchsorted(np.cumsum(self.counts), share * total))
        value = float(np.exp((place - 1_100) * _FINENESS))
        # intervals are mostly whole seconds: say the whole one where it lies in the class
        return float(round(value)) if value > 0.5 and abs(round(value) - value) <= 0.011 * value else value

    def above(self, limit: float) -> int:
        place = int(np.round(np.log(limit) / _FINENESS) + 1_100)
        return int(self.counts[place + 1 :].sum())


def describe(
    source: Any, *, gap_s: float | None = None, draw: Callable[[pd.DataFrame], Any] | None = None, sample: int = 2_000
) -> Description:
    """What a data set holds: an ingested folder, a file of fixes, or a table.

    draw: a function of a table of at most `sample` fixes that makes another map of them than the drawing in squares.

    >>> walk = pd.DataFrame({"mobile": [1, 1, 1, 2], "t": [0, 10, 20, 5], "x": [0.0, 1.0, 2.0, 9.0], "y": 0.0})
    >>> describe(walk)
    fixes
      mobiles         2
      fixes           4
      first           0
      last            20
      span            20 s
      fixes a mobile  1 to 3, median 2
      sampling        median 10 s, 90 % within 10 s
      gaps            0 longer than 1.67 min, the longest 10 s
      x               0.0 to 9.0 m
      y               0.0 to 0.0 m
      coordinates     metres of their own
      columns         mobile, t, x, y
    """
    name, crs, report, tick_s = "fixes", None, None, 1.0
    if isinstance(source, str | Path):
        name = Path(source).name
        if is_ingested(source):
            source = open_fixes(source)
    if isinstance(source, Fixes):
        name, crs, report, tick_s = source.path.name, source.crs, source.report, source.manifest["time"]["tick_s"]
        files, columns = source.files, source.schema.names

        def tables(names: list[str] | None = None) -> Iterator[pd.DataFrame]:
            return (pq.read_table(file, columns=names).to_pandas() for file in files)
    else:
        table, crs = as_pandas(source)
        columns = list(table.columns)

        def tables(names: list[str] | None = None) -> Iterator[pd.DataFrame]:
            return iter([table])

    found = _described(name, tables(), columns, crs, report, tick_s, gap_s, draw, sample)
    return replace(found, drawn=_drawn(found, tables, columns))


def _drawn(found: Description, tables: Callable[[list[str]], Iterator[pd.DataFrame]], columns: list[str]) -> Any:
    axes = coordinates_of(columns)[:2]
    if len(axes) < 2 or found.sample is None or not len(found.sample):
        return None
    first, second = axes
    window = window_of(*columns_of(found.sample, (first, second)), degrees=first == "lon")
    if window is None:
        return None
    points = (columns_of(table, (first, second)) for table in tables([first, second]))
    return picture(found.name, window, *counted(window, points), (first, second))


def _described(
    name: str,
    tables: Iterator[pd.DataFrame],
    columns: list[str],
    crs: str | None,
    report: Report | None,
    tick_s: float,
    gap_s: float | None,
    draw: Callable[[pd.DataFrame], Any] | None,
    sample: int,
) -> Description:
    steps, sizes, picked = _Counts(), [], []
    first = last = None
    bounds: dict[str, list[float]] = {}
    for table in tables:
        if not len(table):
            continue
        tracks = Tracks(table, tick_s)
        steps.add(tracks.step_s()[~tracks.first])
        sizes.append(tracks.ends - tracks.starts)
        low, high = table["t"].min(), table["t"].max()
        first, last = (low, high) if first is None else (min(first, low), max(last, high))
        for axis in coordinates_of(columns):
            low, high = float(table[axis].min()), float(table[axis].max())
            known = bounds.get(axis, [low, high])
            bounds[axis] = [min(known[0], low), max(known[1], high)]
        picked.append(tracks.frame.iloc[:: max(1, len(table) // sample)])
    count = np.concatenate(sizes) if sizes else np.array([], int)
    median = steps.quantile(0.5)
    limit = gap_s if gap_s is not None else 10 * median if median else None
    span = (
        0.0
        if first is None
        else (last - first).total_seconds()
        if hasattr(first, "tz")
        else float(last - first) * tick_s
    )
    facts = {
        "mobiles": len(count),
        "fixes": int(count.sum()),
        "first": first,
        "last": last,
        "span_s": span,
        "fixes_min": int(count.min()) if len(count) else 0,
        "fixes_median": float(np.median(count)) if len(count) else 0,
        "fixes_max": int(count.max()) if len(count) else 0,
        "sampling_median_s": median,
        "sampling_p90_s": steps.quantile(0.9),
        "gap_s": limit,
        "gaps": steps.above(limit) if limit else 0,
        "longest_gap_s": steps.longest,
        "bounds": bounds,
        "crs": "EPSG:4326" if "lon" in bounds else crs,
        "columns": columns,
    }
    some = pd.concat(picked, ignore_index=True) if picked else pd.DataFrame(columns=columns)
    return Description(name, facts, report, some.iloc[:: max(1, len(some) // sample)].head(sample), draw)
