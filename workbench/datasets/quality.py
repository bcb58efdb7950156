"""The quality gate: every row that cannot be used is set aside with its reason, and counted.

For any input: rows in = kept + collapsed + set aside. A row is set aside for the first reason of `REASONS` that
applies; a data set as a whole fails when the set-aside share exceeds a stated limit. Out-of-order rows are sorted
and counted. Swapped coordinates cannot be seen in one row, so they are only suspected, for the set as a whole, with
a warning.

A gate takes and gives Arrow tables of fixes. A loader may hand it two further columns: `reason` (it could not read
the row) and `unread` (the text that it could not read), so that nothing is lost on the way.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

ROW = "row unreadable"
MOBILE = "missing mobile"
TIME = "time unreadable"
FINITE = "not finite"
GLOBE = "outside the globe"
ZERO = "zero coordinate"
OPERATION = "unknown op"
CONFLICT = "conflicting (mobile, t)"
SPEED = "impossible speed"
SUPERSEDED = "superseded at one instant"
REASONS = (ROW, MOBILE, TIME, OPERATION, FINITE, GLOBE, ZERO, CONFLICT, SPEED, SUPERSEDED)
"""In the order in which they are looked for."""

RESERVED = ("reason", "unread")
"""What is said about a row; attributes of these names get a `_`."""
OPERATIONS = ("add", "update", "remove")


class QualityWarning(UserWarning):
    """Something about a data set as a whole looks wrong."""


@dataclass(frozen=True)
class Report:
    """What became of the rows of a data set; it prints itself.

    >>> print(Report(rows=5, kept=3, collapsed=1, aside={"zero coordinate": 1}))
    5 rows in: 3 kept, 1 collapsed, 1 set aside (20.0 %)
      zero coordinate          1
    """

    rows: int = 0
    kept: int = 0
    collapsed: int = 0
    aside: Mapping[str, int] = field(default_factory=dict)
    out_of_order: int = 0
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def set_aside(self) -> int:
        """The number of rows set aside, whatever the reason."""
        return sum(self.aside.values())

    @property
    def bad_share(self) -> float:
        """The share of the rows that was set aside."""
        return self.set_aside / self.rows if self.rows else 0.0

    @property
    def adds_up(self) -> bool:
        """Whether in = kept + collapsed + set aside."""
        return self.rows == self.kept + self.collapsed + self.set_aside

    def __add__(self, other: Report) -> Report:
        reasons = [r for r in (*REASONS, *self.aside, *other.aside) if r in self.aside or r in other.aside]
        aside = {r: self.aside.get(r, 0) + other.aside.get(r, 0) for r in dict.fromkeys(reasons)}
        return Report(
            self.rows + other.rows,
            self.kept + other.kept,
            self.collapsed + other.collapsed,
            aside,
            self.out_of_order + other.out_of_order,
            tuple(dict.fromkeys(self.notes + other.notes)),
            tuple(dict.fromkeys(self.warnings + other.warnings)),
        )

    def told(self, *notes: str) -> Report:
        """The report with further notes."""
        return replace(self, notes=tuple(dict.fromkeys(self.notes + notes)))

    def lines(self) -> list[tuple[str, int]]:
        """The reasons with their counts, and the rows out of order."""
        counted = [(reason, self.aside[reason]) for reason in self.aside if self.aside[reason]]
        return counted + ([("out of order (sorted)", self.out_of_order)] if self.out_of_order else [])

    def __str__(self) -> str:
        head = (
            f"{self.rows:,} rows in: {self.kept:,} kept, {self.collapsed:,} collapsed, "
            f"{self.set_aside:,} set aside ({100 * self.bad_share:.1f} %)"
        )
        wide = max([22, *(len(name) for name, _ in self.lines())])
        far = max([3, *(len(f"{count:,}") for _, count in self.lines())])
        rows = [f"  {name:<{wide}} {count:>{far},}" for name, count in self.lines()]
        return "\n".join(
            [head, *rows, *(f"  note: {n}" for n in self.notes), *(f"  warning: {w}" for w in self.warnings)]
        )

    def _repr_html_(self) -> str:
        cells = [
            ("rows in", self.rows),
            ("kept", self.kept),
            ("collapsed", self.collapsed),
            ("set aside", self.set_aside),
        ]
        body = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th><td style='text-align:right'>{count:,}</td></tr>"
            for name, count in [*cells, *((f"– {name}", count) for name, count in self.lines())]
        )
        told = "".join(f"<p>{html.escape(n)}</p>" for n in self.notes)
        warned = "".join(f"<p><b>Warning:</b> {html.escape(w)}</p>" for w in self.warnings)
        caption = "<caption style='white-space:nowrap;text-align:left'>Quality of the data set</caption>"
        return f"<table>{caption}{body}</table>{told}{warned}"

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "rows": self.rows,
            "kept": self.kept,
            "collapsed": self.collapsed,
            "set_aside": self.set_aside,
            "reasons": dict(self.aside),
            "out_of_order": self.out_of_order,
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Report:
        """The report of `as_dict`."""
        return Report(
            data["rows"], data["kept"], data["collapsed"], data["reasons"], data["out_of_order"],
            tuple(data["notes"]), tuple(data["warnings"]),
        )  # fmt: skip


@dataclass(frozen=True)
class Suspicion:
    """Counts from which swapped latitude and longitude are suspected."""

    seen: int = 0
    fits: int = 0
    fits_swapped: int = 0

    def __add__(self, other: Suspicion) -> Suspicion:
        return Suspicion(self.seen + other.seen, self.fits + other.fits, self.fits_swapped + other.fits_swapped)

    def warning(self) -> str | None:
        """The warning, when most rows fit only with the two swapped.

        >>> Suspicion(seen=100, fits=2, fits_swapped=98).warning()
        'latitude and longitude look swapped: 98 of 100 rows fit only with the two exchanged'
        """
        if self.seen and self.fits_swapped > 0.5 * self.seen and self.fits_swapped > self.fits:
            return (
                f"latitude and longitude look swapped: {self.fits_swapped:,} of {self.seen:,} rows "
                "fit only with the two exchanged"
            )
        return None


def coordinates_of(names: list[str]) -> tuple[str, ...]:
    """The coordinate columns among the names: metres, degrees, or none.

    >>> coordinates_of(["mobile", "t", "lon", "lat", "speed"])
    ('lon', 'lat')
    """
    if "lon" in names and "lat" in names:
        return ("lon", "lat")
    if "x" in names and "y" in names:
        return ("x", "y", "z") if "z" in names else ("x", "y")
    return ()


def reasons_of(table: pa.Table, identity: str = "mobile") -> tuple[np.ndarray, Suspicion]:
    """For each row an index into `REASONS`, or -1 for a row that may pass; and what suggests swapped coordinates."""
    rows = table.num_rows
    reason = np.full(rows, -1, np.int8)

    def mark(bad: np.ndarray, name: str) -> None:
        reason[bad & (reason < 0)] = REASONS.index(name)

    if "reason" in table.column_names:
        given = table["reason"]
        if given.null_count < rows:
            for index, name in enumerate(REASONS):
                reason[_flags(pc.equal(given, name))] = index
    mark(_flags(pc.is_null(table[identity])), MOBILE)
    if "t" in table.column_names:
        mark(_flags(pc.is_null(table["t"])), TIME)
    still = np.zeros(rows, bool)
    if "op" in table.column_names:
        known = pc.or_(pc.is_null(table["op"]), pc.is_in(table["op"], pa.array(OPERATIONS)))
        mark(~_flags(known), OPERATION)
        # an update may leave the position as it was, and what is removed needs none
        still = _flags(pc.is_in(table["op"], pa.array(["update", "remove"])))
    names = coordinates_of(table.column_names)
    if not names:
        return reason, Suspicion()
    values = {name: table[name].to_numpy() for name in names}
    absent = np.logical_and.reduce([_flags(pc.is_null(table[name])) for name in names]) & still
    flat = {name: value for name, value in values.items() if name != "z"}
    mark(~np.logical_and.reduce([np.isfinite(v) for v in flat.values()]) & ~absent, FINITE)
    if names[0] != "lon":
        return reason, Suspicion()
    lon, lat = values["lon"], values["lat"]
    with np.errstate(invalid="ignore"):
        here = ~absent & (reason < 0)
        outside = (np.abs(lon) > 180) | (np.abs(lat) > 90)
        swapped = here & outside & (np.abs(lat) <= 180) & (np.abs(lon) <= 90)
        suspicion = Suspicion(int(here.sum()), int((here & ~outside).sum()), int(swapped.sum()))
        mark(outside & ~absent, GLOBE)
        mark(((lon == 0) | (lat == 0)) & ~absent, ZERO)
    return reason, suspicion


def suspect_box(table: pa.Table, box: tuple[float, float, float, float]) -> Suspicion:
    """How many rows lie in a box (west, south, east, north) as they are, and how many only when swapped."""
    west, south, east, north = box
    lon, lat = table["lon"].to_numpy(), table["lat"].to_numpy()
    fits = (west <= lon) & (lon <= east) & (south <= lat) & (lat <= north)
    exchanged = (west <= lat) & (lat <= east) & (south <= lon) & (lon <= north)
    return Suspicion(len(lon), int(fits.sum()), int((exchanged & ~fits).sum()))


def gate(table: pa.Table, identity: str = "mobile") -> tuple[pa.Table, pa.Table, Suspicion]:
    """The rows that pass, and the rows set aside with their `reason` first.

    >>> fixes = pa.table({"mobile": [1, 1], "t": [1, 2], "lon": [0.0, 2.0], "lat": [1.0, 3.0]})
    >>> passed, aside, _ = gate(fixes)
    >>> passed.num_rows, aside["reason"].to_pylist()
    (1, ['zero coordinate'])
    """
    reason, suspicion = reasons_of(table, identity)
    plain = table.drop_columns([c for c in ("reason", "unread") if c in table.column_names])
    bad = reason >= 0
    if not bad.any():
        return plain, set_aside(table.slice(0, 0), np.array([], dtype=object)), suspicion
    names = np.array(REASONS, dtype=object)[reason[bad]]
    return plain.filter(pa.array(~bad)), set_aside(table.filter(pa.array(bad)), names), suspicion


def set_aside(table: pa.Table, reasons: np.ndarray | str) -> pa.Table:
    """Rows with the reason why they cannot be used, and the text that could not be read."""
    rows = table.num_rows
    why = pa.array([reasons] * rows if isinstance(reasons, str) else reasons, pa.string())
    unread = table["unread"] if "unread" in table.column_names else pa.nulls(rows, pa.string())
    plain = table.drop_columns([c for c in ("reason", "unread") if c in table.column_names])
    return plain.add_column(0, "reason", why).add_column(1, "unread", unread)


def count_reasons(aside: pa.Table) -> dict[str, int]:
    """How many rows were set aside for each reason."""
    found = {row["values"]: row["counts"] for row in pc.value_counts(aside["reason"]).to_pylist()}
    return {reason: found[reason] for reason in REASONS if reason in found}


def _flags(values: Any) -> np.ndarray:
    return (
        pc.fill_null(values, False).to_numpy(zero_copy_only=False)
        if isinstance(values, pa.Array)
        else np.asarray(pc.fill_null(values, False).to_numpy(), dtype=bool)
    )


def report_of(table: Any) -> Report:
    """The report of a table that `load` or `read_places` gave; the table carries it as plain data, so that it can
    be written."""
    return Report.from_dict(table.attrs["report"])
