"""Times of fixes: whole ticks, or instants in UTC.

A time is an integer (a tick; the scenario says how long one is) or a timestamp in UTC with microseconds, which is
what Spark can hold. Text with an offset is an instant by itself; local text needs a zone, and is refused without
one. A local time that the zone skips or repeats (summer time) names no instant and is unreadable.
"""

from __future__ import annotations

import zoneinfo
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from workbench.errors import DataError, did_you_mean

UTC = pa.timestamp("us", tz="UTC")
KINDS = ("ticks", "unix", "unix_ms", "seconds", "text")
_ZONED = r"[0-9:.]\s*(?:Z|z|[+-][0-9]{2}(?::?[0-9]{2})?)$"


@dataclass(frozen=True)
class Clock:
    """How a column of times is to be read.

    kind: `ticks` (whole numbers as they are), `unix` or `unix_ms` (since 1970, UTC), `seconds` (decimals counted in
    ticks of `tick_s`), `text` (ISO 8601, or `layout` in strptime's letters). zone: where text without an offset is
    local.
    """

    kind: str = "text"
    zone: str | None = None
    tick_s: float | None = None
    layout: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise DataError(f"time kind {self.kind!r}: {did_you_mean(self.kind, KINDS)}")
        if self.zone is not None:
            check_zone(self.zone)
        if self.kind == "seconds" and not (self.tick_s and self.tick_s > 0):
            raise DataError("times are decimal seconds: say how long a tick is, such as tick_s=0.01")


def check_zone(zone: str) -> str:
    """The zone, when the time-zone database knows it.

    >>> check_zone("Asia/Shangai")
    Traceback (most recent call last):
    workbench.errors.DataError: zone 'Asia/Shangai' is unknown; did you mean 'Asia/Shanghai'?
    """
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        hint = did_you_mean(zone, zoneinfo.available_timezones())
        hint = hint if hint.startswith("did") else "use a name such as 'Europe/Berlin' or 'UTC'"
        raise DataError(f"zone {zone!r} is unknown; {hint}") from None
    return zone


def numbers(text: pa.Array, kind: pa.DataType) -> pa.Array:
    """Text as numbers; what is none becomes null.

    >>> numbers(pa.array(["1.5", "x", " 2 "]), pa.float64()).to_pylist()
    [1.5, None, 2.0]
    """
    try:
        return text.cast(kind)
    except pa.ArrowInvalid:
        trimmed = pc.utf8_trim_whitespace(text)
        values = pd.to_numeric(pd.Series(trimmed.to_pandas(), dtype=object), errors="coerce")
        found = pa.array(values.astype("float64"), pa.float64(), from_pandas=True)
        if not pa.types.is_integer(kind):
            return found
        # decimals hold whole numbers up to 2^53; longer ones are read digit by digit
        digits = pc.utf8_ltrim(trimmed, "-+0")
        plain = pc.and_(pc.match_substring_regex(trimmed, r"^[-+]?[0-9]+$"), pc.less_equal(pc.utf8_length(digits), 19))
        fits = pc.or_(pc.less(pc.utf8_length(digits), 19), pc.less_equal(digits, str(2**63 - 1)))
        exact = pc.if_else(pc.fill_null(pc.and_(plain, fits), False), pc.utf8_ltrim(trimmed, "+"), None).cast(kind)
        return pc.coalesce(exact, whole_numbers(found).cast(kind))


def whole_numbers(found: pa.Array) -> pa.Array:
    """Decimals as whole numbers; what is none, or too large to be sure of, becomes null.

    >>> whole_numbers(pa.array([2.0, 2.5, 1e300])).to_pylist()
    [2, None, None]
    """
    sure = pc.and_(pc.equal(found, pc.round(found)), pc.less_equal(pc.abs(found), 2.0**53))
    return pc.if_else(pc.fill_null(sure, False), found, None).cast(pa.int64())


def read_times(column: pa.Array, clock: Clock, where: str = "") -> pa.Array:
    """A column of times as int64 ticks or UTC timestamps; what cannot be read becomes null.

    >>> read_times(pa.array(["2008-02-02 16:00:00", "soon"]), Clock(zone="Asia/Shanghai")).to_pylist()
    [datetime.datetime(2008, 2, 2, 8, 0, tzinfo=zoneinfo.ZoneInfo(key='UTC')), None]
    >>> read_times(pa.array(["0.04", "0.44"]), Clock("seconds", tick_s=0.01)).to_pylist()
    [4, 44]
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if clock.kind == "text" and not text:
        return _typed_times(column, clock, where)
    if clock.kind == "text":
        return _text_times(column, clock, where)
    if clock.kind == "ticks":
        return numbers(column, pa.int64()) if text else _whole(column)
    seconds = numbers(column, pa.float64()) if text else column.cast(pa.float64())
    if clock.kind == "seconds":
        assert clock.tick_s is not None
        ticks = pc.divide(seconds, clock.tick_s)
        fits = pc.less_equal(pc.abs(pc.subtract(ticks, pc.round(ticks))), 1e-6 * max(1.0, _largest(ticks)))
        return pc.if_else(pc.fill_null(fits, False), pc.round(ticks), None).cast(pa.int64(), safe=False)
    per_second = 1_000_000 if clock.kind == "unix" else 1_000
    whole = pc.round(pc.multiply(seconds, per_second))
    sane = pc.fill_null(pc.less(pc.abs(whole), 9e18), False)
    return pc.if_else(sane, whole, None).cast(pa.int64()).cast(pa.timestamp("us")).cast(UTC)


def _largest(values: pa.Array) -> float:
    found = pc.max(pc.abs(values)).as_py()
    return 1.0 if found is None or not np.isfinite(found) else found * 1e-6


def _whole(column: pa.Array) -> pa.Array:
    if pa.types.is_uint64(column.type):
        return pc.if_else(pc.less_equal(column, pa.scalar(2**63 - 1, pa.uint64())), column, None).cast(pa.int64())
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    if pa.types.is_floating(column.type):
        return whole_numbers(column.cast(pa.float64()))
    raise DataError(f"times of type {column.type} are no whole ticks")


def _typed_times(column: pa.Array, clock: Clock, where: str) -> pa.Array:
    kind = column.type
    if pa.types.is_null(kind):
        return column.cast(UTC)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _whole(column)
    if pa.types.is_date(kind):
        column, kind = column.cast(pa.timestamp("us")), pa.timestamp("us")
    if not pa.types.is_timestamp(kind):
        raise DataError(f"{where}times of type {kind} cannot be read; expected integers or timestamps")
    if kind.tz is not None:
        return column.cast(pa.timestamp(_unit(kind.unit), tz="UTC"))
    if clock.zone is None:
        raise DataError(_no_zone(where, str(column.drop_null()[0]) if len(column.drop_null()) else "timestamps"))
    return _localised(column.cast(pa.timestamp(_unit(kind.unit))), clock.zone)


def _unit(unit: str) -> str:
    """Parquet has no whole seconds, so that they are kept as milliseconds."""
    return "ms" if unit == "s" else unit


def _text_times(column: pa.Array, clock: Clock, where: str) -> pa.Array:
    if clock.layout is not None:
        return _localised(pc.strptime(column, clock.layout, "us", error_is_null=True), _zone(clock, column, where))
    try:
        return column.cast(UTC)
    except pa.ArrowInvalid:
        pass
    try:
        local = column.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return _mixed_times(column, clock, where)
    return _localised(local, _zone(clock, column, where))


def _mixed_times(column: pa.Array, clock: Clock, where: str) -> pa.Array:
    text = pd.Series(pc.utf8_trim_whitespace(column.cast(pa.string())).to_pandas(), dtype=object)
    zoned = text.str.contains(_ZONED, regex=True, na=False).to_numpy()
    parts = pd.Series(pd.NaT, index=text.index, dtype="datetime64[us, UTC]")
    parts[zoned] = pd.to_datetime(text[zoned], errors="coerce", format="ISO8601", utc=True).dt.as_unit("us")
    local = pd.to_datetime(text[~zoned], errors="coerce", format="ISO8601").astype("datetime64[us]")
    if local.notna().any():
        zone = _zone(clock, column, where)
        found = _localised(pa.array(local, pa.timestamp("us"), from_pandas=True), zone)
        parts[~zoned] = pd.Series(found.to_pandas(), dtype="datetime64[us, UTC]").to_numpy()
    return pa.array(parts, UTC, from_pandas=True)


def _localised(local: pa.Array, zone: str) -> pa.Array:
    unit = local.type.unit
    series = pd.Series(local.to_pandas())
    if zone != "UTC":
        series = series.dt.tz_localize(zone, ambiguous="NaT", nonexistent="NaT").dt.tz_convert("UTC")
    else:
        series = series.dt.tz_localize("UTC")
    return pa.array(series, pa.timestamp(unit, tz="UTC"), from_pandas=True)


def _zone(clock: Clock, column: pa.Array, where: str) -> str:
    if clock.zone is None:
        example = next((value for value in column.to_pylist() if value), "")
        raise DataError(_no_zone(where, example))
    return clock.zone


def _no_zone(where: str, example: str) -> str:
    return f"{where}times such as {example!r} are local and name no zone; give one, such as zone='Europe/Berlin'"
