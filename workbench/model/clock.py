"""The clock: instants of the data as whole ticks and back.

The time domain is discrete and isomorphic to the natural numbers (Subject Spaces, 4.3.4). Data come with
integers, where a scenario says what one is (a second by default), or with UTC timestamps, where a tick is
the resolution of the column. Inside, an instant is an int; a local time without a zone is refused, because
nobody can say which instant it is.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import pandas as pd

from workbench.errors import DataError
from workbench.model.durations import Duration

NEVER = -(2**63)
"""What tau and pi are before anything happened: less than every instant."""

_UNIT_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


@dataclass(frozen=True)
class Clock:
    """What one tick is, and how instants are written.

    >>> Clock().ticks(1211018404)
    1211018404
    >>> Clock.of_timestamps("s").ticks("2008-05-17T10:00:04Z")
    1211018404
    >>> Clock.of_timestamps("s").ticks("2008-05-17 10:00:04")
    Traceback (most recent call last):
    workbench.errors.DataError: time '2008-05-17 10:00:04' has no zone; write one (…Z, …+08:00), or state it with zone=
    """

    tick: Duration = Duration(10**9)  # noqa: RUF009 - frozen
    unit: str | None = None
    """the resolution of timestamps (s, ms, us, ns); None for integers"""
    zone: str | None = None
    """the zone of local times that come without one"""

    @staticmethod
    def of_timestamps(unit: str, zone: str | None = None) -> Clock:
        """The clock of a column of timestamps with that resolution."""
        return Clock(Duration(_UNIT_NS[unit]), unit, zone)

    def ticks(self, instant: Any) -> int:
        """An instant as a whole number of ticks."""
        if self.unit is None:
            if isinstance(instant, bool) or not hasattr(instant, "__index__"):
                raise DataError(f"time {instant!r} is not an integer, and the data's times are integers")
            return int(instant)
        if not isinstance(instant, str | dt.datetime | pd.Timestamp) and type(instant).__name__ != "datetime64":
            raise DataError(f"time {instant!r} is not a timestamp, and the data's times are timestamps")
        try:
            stamp = pd.Timestamp(instant)
        except ValueError as error:
            raise DataError(f"time {instant!r} cannot be read: {error}") from None
        if stamp.tzinfo is None:
            if self.zone is None:
                raise DataError(
                    f"time {str(instant)!r} has no zone; write one (…Z, …+08:00), or state it with zone="
                )
            try:
                stamp = stamp.tz_localize(self.zone)
            except Exception:  # noqa: BLE001 - zones have errors of their own kinds
                raise DataError(
                    f"time {str(instant)!r} comes twice in {self.zone!r}, or not at all, since clocks change there; "
                    "give its offset from UTC (…+02:00)"
                ) from None
        try:
            return int(stamp.tz_convert("UTC").as_unit(self.unit, round_ok=False).asm8.astype("int64"))
        except ValueError:
            raise DataError(f"time {str(instant)!r} is finer than the tick of {self.tick}") from None

    def shown(self, ticks: int) -> Any:
        """An instant as the data writes it.

        >>> Clock.of_timestamps("s").shown(1211018404)
        Timestamp('2008-05-17 10:00:04+0000', tz='UTC')
        """
        if self.unit is None:
            return ticks
        return pd.Timestamp(ticks, unit=self.unit, tz="UTC").as_unit(self.unit)  # type: ignore[arg-type]

    def shown_duration(self, ticks: float) -> str:
        """A number of ticks as a length of time.

        >>> Clock().shown_duration(5400)
        '1 h 30 min'
        """
        sign = "-" if ticks < 0 else ""
        whole = Duration(round(abs(ticks) * self.tick.nanoseconds))
        return f"{sign}{whole}" if whole != Duration() else "0"

    def column(self, ticks: Any) -> pd.Series:
        """Ticks (None where there is no instant) as a column of the data's type, one that can be null."""
        series = pd.Series(list(ticks), dtype="Int64")
        if self.unit is None:
            return series
        values = series.fillna(0).to_numpy("int64").astype(f"datetime64[{self.unit}]")
        stamps = pd.Series(values).dt.tz_localize("UTC")
        return stamps.mask(series.isna().to_numpy())
