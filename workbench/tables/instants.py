"""A column of times as ticks, and the clock that they are ticks of; local times need a zone."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from workbench.errors import DataError
from workbench.model.clock import Clock

_WHOLE = re.compile(r"\s*[-+]?\d{1,18}\s*$")
_DATED = re.compile(r"\s*[-+]?\d{4}")
_ZONED = re.compile(r"(Z|[+-]\d\d(:?\d\d)?)$")


def ticks_of(column: pd.Series, zone: str | None, integers: Clock) -> tuple[pd.Series, Clock]:
    """A column of times as ticks, and the clock that they are ticks of."""
    known = column.dropna()
    if pd.api.types.is_bool_dtype(column):
        raise DataError("t is Boolean; expected integers or timestamps")
    if known.empty:  # of whatever type
        return pd.Series(pd.NA, index=column.index, dtype="Int64"), integers
    if pd.api.types.is_integer_dtype(column):
        return column.astype("Int64"), integers
    if pd.api.types.is_float_dtype(column):
        if not np.all(known == np.floor(known)):
            raise DataError(
                "t has fractions of a tick; give integers (milliseconds, say, with a scenario's tick) or timestamps"
            )
        return column.astype("Int64"), integers
    if pd.api.types.is_datetime64_any_dtype(column):
        stamps = column
    elif known.map(lambda t: isinstance(t, str) and _WHOLE.match(t) is not None).all():
        return column.map(int, na_action="ignore").astype("Int64"), integers  # as in a CSV, where all is text
    else:
        stamps = _parsed(column, zone)
    if stamps.dt.tz is None:
        if zone is None:
            raise DataError(
                "t has local times without a zone; state the zone (zone=, --zone), such as 'UTC' or 'Asia/Shanghai'"
            )
        try:
            stamps = stamps.dt.tz_localize(zone)
        except Exception as error:  # noqa: BLE001 - zones have errors of their own kinds
            found = re.search(r"\d{4}-\d\d-\d\d [\d:.]+", str(error))
            at = found[0] if found else error
            raise DataError(
                f"t cannot be read as local times of {zone!r}: {at} comes twice there, or not at all, since clocks "
                "change; give such times with their offset from UTC"
            ) from None
    unit = str(stamps.dt.unit)
    utc = stamps.dt.tz_convert("UTC").dt.tz_localize(None)
    ticks = pd.Series(utc.to_numpy().astype(f"datetime64[{unit}]").astype("int64"), index=column.index, dtype="Int64")
    return ticks.mask(column.isna()), Clock.of_timestamps(unit, zone)


def check_zone(zone: str | None) -> None:
    """A zone that nobody knows is refused, whether or not a local time needs it."""
    try:
        pd.Timestamp(0, tz=zone)
    except Exception:  # noqa: BLE001 - zones have errors of their own kinds
        raise DataError(f"the zone {zone!r} is unknown; expected a name such as 'UTC' or 'Asia/Shanghai'") from None


def _parsed(column: pd.Series, zone: str | None) -> pd.Series:
    texts = column.dropna().astype(str)
    strange = texts[~texts.str.match(_DATED)]
    if len(strange):
        raise DataError(f"t cannot be read as integers or ISO 8601 timestamps, such as {strange.iloc[0]!r}")
    zoned = texts.map(lambda text: bool(_ZONED.search(text)) and ":" in text)
    if not zoned.all() and zone is None:
        raise DataError(
            f"t has local times without a zone, such as {texts[~zoned].iloc[0]!r}; "
            "state the zone (zone=, --zone), such as 'UTC' or 'Asia/Shanghai'"
        )
    try:
        if zoned.all():
            return pd.to_datetime(column, utc=True, format="ISO8601").dt.as_unit("us")
        if zoned.any():
            raise DataError("t mixes times with and without a zone")
        return pd.to_datetime(column, format="ISO8601").dt.as_unit("us")
    except (ValueError, TypeError) as error:
        raise DataError(f"t cannot be read as integers or ISO 8601 timestamps: {error}") from None
