"""Experiments: a notebook, run for many values of its parameters, and what came of it.

A *parameter* is a typed, described value in the one cell of a notebook that is tagged ``parameters``. A *sweep* is a
notebook with fixed parameters and the values of others; it denotes a list of *runs*, one for each combination. A run
leaves a folder, named by its parameters, with the executed notebook and ``run.json``: parameters, seed, versions, git
commit, start, duration, peak memory and the *metrics* that the notebook recorded. A page compares the runs of a folder.

    notebook ─▶ parameters ─▶ sweep ─▶ runs ─▶ page
                parameters    sweeps   running  comparing

A notebook hands its metrics over with `record`, as the last expression of the cell that shows its final figures:

    from workbench.experiments import record
    record(notifications=len(told.notifications), recall=recall)

Under ``workbench run`` this writes them down; by hand, under plain papermill and under nbval it only returns them, so
that the cell shows (and nbval checks) the same figures everywhere.
"""

from __future__ import annotations

from workbench.experiments.comparing import compare
from workbench.experiments.parameters import Parameter, read_parameters
from workbench.experiments.recording import record
from workbench.experiments.running import run
from workbench.experiments.sweeps import Run, Sweep, load_sweep

__all__ = ["Parameter", "read_parameters", "Run", "Sweep", "load_sweep", "run", "record", "compare"]
