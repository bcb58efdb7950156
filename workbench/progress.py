"""A bar for long work, where somebody looks on.

It shows itself on a terminal, once the work has lasted a second, and goes away at the end. In pipes, tests and batch
runs it shows nothing; ``WORKBENCH_PROGRESS=1`` shows it anyway (in a notebook, for example), ``=0`` never.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE_S = 1.0


def watched() -> bool:
    """Whether somebody looks on."""
    from rich.console import Console

    said = {"0": False, "1": True}.get(os.environ.get("WORKBENCH_PROGRESS", ""))
    return Console(stderr=True).is_terminal if said is None else said


@contextmanager
def progress(what: str, total: float | None = None, unit: str = "") -> Iterator[Callable[[float], None]]:
    """A function to call with each further amount of work done, out of a total where there is one.

    >>> with progress("reading", total=3, unit="files") as done:
    ...     for _ in range(3):
    ...         done(1)
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    if not watched():
        yield lambda amount: None
        return
    console = Console(stderr=True)
    amount = "{task.completed:,.0f}" + (" of {task.total:,.0f}" if total is not None else "") + f" {unit}"
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn(amount), TimeElapsedColumn())
    shown = Progress(*columns, console=console, transient=True)
    task, began = shown.add_task(what, total=total), time.monotonic()

    def done(amount: float) -> None:
        shown.advance(task, amount)
        if not shown.live.is_started and time.monotonic() - began > PATIENCE_S:
            shown.start()

    try:
        yield done
    finally:
        if shown.live.is_started:
            shown.stop()
