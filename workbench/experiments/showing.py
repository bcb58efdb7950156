"""What a person sees of a sweep: a bar where somebody looks on, a line for each run, and what failed at the end."""

from __future__ import annotations

from pathlib import Path

from workbench.experiments.parameters import Parameter
from workbench.experiments.running import NOTEBOOK, Record, failures, run
from workbench.experiments.sweeps import Sweep


def run_and_tell(sweep: Sweep, out: Path, jobs: int) -> int:
    """Run a sweep, showing how far it is; the exit code of the command: 1 when a run failed, 130 when interrupted."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(soft_wrap=True, highlight=False, markup=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(sweep.path.stem, total=len(sweep.runs()))

        def told(record: Record, before: bool) -> None:
            how = "unchanged" if before else f"{record['state']} in {record.get('duration_s', 0):.1f} s"
            console.print(f"{record['name']}: {how}")
            progress.advance(task)

        try:
            records = run(sweep, out, jobs, told)
        except KeyboardInterrupt:
            console.print("interrupted; the same command goes on from here")
            return 130
    failed = failures(records)
    console.print(f"{len(records) - len(failed)} of {len(records)} runs finished, in {out}")
    if failed:
        console.print(f"{len(failed)} failed; the same command tries them again:")
    for record in failed:
        console.print(f"  {record['name']}: {record['error']}\n    {out / record['name'] / NOTEBOOK}")
    return 1 if failed else 0


def listing(parameters: dict[str, Parameter]) -> str:
    """The parameters of a notebook, one a line.

    >>> from workbench.experiments.parameters import parse
    >>> print(listing({p.name: p for p in parse("radius_m: float = 500  # metres\\nseed = 1")}))
    radius_m: float = 500.0  # metres
    seed: int = 1
    """
    return "\n".join(map(str, parameters.values())) or "no parameters"
