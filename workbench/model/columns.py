"""Columns: the blanks in a region that each row of a population fills in.

A population is one definition and many rows. Where the definition says ``column.price`` the row's value of
that column stands; ``disc(column.position, column.radius_m)`` makes the extent from two of them. A blank is
data: a name, or a constructor and its arguments. Engines read it, nothing is called before a row is there.

A null cell leaves the dimension unconstrained, unless a default is given:
``column.radius_m.or_else(500)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import wraps
from typing import Any


class _Missing(Enum):
    """A value of its own that stays the same one in another process."""

    MISSING = "missing"


MISSING = _Missing.MISSING
"""What filling gives where a column that is needed is null or absent."""


class Blank:
    """Something that a row fills in."""

    def columns(self) -> frozenset[str]:
        """The columns it reads."""
        raise NotImplementedError

    def fill(self, row: Mapping[str, Any]) -> Any:
        """The value for one row, `MISSING` where the row does not say."""
        raise NotImplementedError


@dataclass(frozen=True)
class Column(Blank):
    """The value of one column.

    >>> column.price.fill({"price": 65}), column.radius_m.or_else(500).fill({})
    (65, 500)
    """

    name: str
    default: Any = field(default=MISSING)

    def or_else(self, default: Any) -> Column:
        """The same column, with a value for rows that have none."""
        return Column(self.name, default)

    def columns(self) -> frozenset[str]:
        return frozenset([self.name])

    def fill(self, row: Mapping[str, Any]) -> Any:
        value = row.get(self.name)
        return self.default if is_null(value) else value

    def __repr__(self) -> str:
        return f"[{self.name}]"


@dataclass(frozen=True)
class Made(Blank):
    """An extent that a constructor makes from columns and constants."""

    constructor: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: tuple[tuple[str, Any], ...] = ()

    def columns(self) -> frozenset[str]:
        return frozenset().union(*(a.columns() for a in self.arguments if isinstance(a, Blank)))

    def fill(self, row: Mapping[str, Any]) -> Any:
        filled = [a.fill(row) if isinstance(a, Blank) else a for a in self.arguments]
        if any(value is MISSING for value in filled):
            return MISSING
        return self.constructor(*filled, **dict(self.options))

    def __repr__(self) -> str:
        return f"{self.constructor.__name__}({', '.join(map(repr, self.arguments))})"


def fillable(constructor: Callable[..., Any]) -> Callable[..., Any]:
    """Let a constructor of extents take columns: with one among its arguments it gives a blank."""

    @wraps(constructor)
    def make(*arguments: Any, **options: Any) -> Any:
        if any(isinstance(a, Blank) for a in arguments):
            return Made(make, arguments, tuple(sorted(options.items())))
        return constructor(*arguments, **options)

    return make


class _Columns:
    """``column.name`` is the column of that name; ``column["a name"]`` where it is no Python word."""

    def __getattr__(self, name: str) -> Column:
        if name.startswith("__"):
            raise AttributeError(name)
        return Column(name)

    def __getitem__(self, name: str) -> Column:
        return Column(name)


column = _Columns()


def is_null(value: Any) -> bool:
    """Whether a cell is empty: None, NaN, NaT or NA.

    >>> is_null(None), is_null(float("nan")), is_null(0), is_null("")
    (True, True, False, False)
    """
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        # pandas.NA refuses to be a truth value; sequences compare element by element
        return type(value).__name__ == "NAType"
