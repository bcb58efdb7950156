"""The few ways in which the workbench says no.

A message states what was wrong, the value, what was expected and where. Constructors and loaders
collect every fault of one scenario or one file before they raise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class WorkbenchError(Exception):
    """What a user did or gave, and what would have worked instead."""


class ScenarioError(WorkbenchError):
    """A space, region, filter, population or scenario that cannot mean anything."""


class DataError(WorkbenchError):
    """A table, a file or a row that cannot be used."""


class UpdateError(WorkbenchError):
    """An operation on a live broker that cannot be carried out; the broker is as it was."""


class SetupError(WorkbenchError):
    """Something that has to be installed or set up first."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for a close misspelling, or the names that exist.

    >>> did_you_mean("prise", ["price", "brand"])
    "did you mean 'price'?"
    >>> did_you_mean("zzz", ["price", "brand"])
    "there are 'brand', 'price'"
    """
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return "there are " + ", ".join(map(repr, names)) if names else "there are none"


def raise_all(faults: Sequence[str], kind: type[WorkbenchError] = ScenarioError) -> None:
    """Raise one error that lists every fault; nothing when there is none.

    >>> raise_all([])
    >>> raise_all(["a is wrong", "b is wrong"])
    Traceback (most recent call last):
    workbench.errors.ScenarioError: 2 faults:
      - a is wrong
      - b is wrong
    """
    if len(faults) == 1:
        raise kind(faults[0])
    if faults:
        raise kind(f"{len(faults)} faults:\n" + "\n".join(f"  - {fault}" for fault in faults))
