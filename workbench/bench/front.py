"""What `workbench bench` prints: a row of the performance table, or how times grow with one quantity."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from workbench.bench.compare import Timing, measure, table
from workbench.bench.rows import ROWS, Options
from workbench.errors import WorkbenchError, did_you_mean

__all__ = ["Options", "curve", "row"]


def row(name: str, asked: Options, repeats: int) -> Iterator[str]:
    """The times of a row, as they come; ``list`` names the rows."""
    if name == "list":
        yield from (f"{name:10} {row.says}" for name, row in ROWS.items())
        yield f"{'live':10} moves of the live broker, one at a time and in batches, beside a loop over an STRtree"
        return
    if name == "live":
        yield from _live(asked)
        return
    if name not in ROWS:
        raise WorkbenchError(f"there is no row {name!r}; {did_you_mean(name, ['live', *ROWS])}")
    _judged(name)
    yield f"{name}: {ROWS[name].says}"
    done: list[Timing] = []
    yield from _missing() if name in ("proximity", "dense", "taxis") else ()
    for timing in measure(ROWS[name].contenders(asked), repeats):
        done.append(timing)
        lines = table(done).splitlines()
        yield from lines if len(done) == 1 else lines[-1:]


def _judged(name: str) -> None:
    """Refuse what nobody here could judge: most answers are held against DuckDB's."""
    from workbench.bench.peers import PEERS

    if name not in ("nearest", "zones") and PEERS[0].missing:
        raise WorkbenchError(PEERS[0].missing)


def _missing() -> list[str]:
    from workbench.bench.peers import PEERS

    return [said for peer in PEERS if (said := peer.missing)]


def _live(asked: Options) -> Iterator[str]:
    from workbench.bench import live

    load = live.LiveLoad(**{k: v for k, v in (("discs", asked.places), ("clients", asked.mobiles)) if v is not None})
    yield live.table(list(live.measure(load)))


def curve(said: str, asked: Options, repeats: int, out: Path) -> Iterator[str]:
    """How times grow with fixes, places or attributes: a table, a CSV file and a drawing."""
    from workbench.bench import curves

    name, _, values = said.partition("=")
    if name not in curves.CURVES:
        raise WorkbenchError(f"there is no curve over {name!r}; {did_you_mean(name, curves.CURVES)}")
    try:
        steps = [int(value.replace("_", "")) for value in values.split(",")] if values else curves.CURVES[name]
    except ValueError:
        raise WorkbenchError(f"--curve {said}: expected whole numbers, such as {name}=1000,10000") from None
    _judged(name)
    measured = []
    for step in curves.measured(name, steps, asked, repeats):
        measured.append(step)
        yield f"{step.value:>12,} {name:10} {step.seconds:8.2f} s  {step.transitions:6.2%}  {step.contender}" + (
            "" if step.right else "  WRONG"
        )
    for file in curves.written(name, measured, out):
        yield str(file)
