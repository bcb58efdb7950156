"""The main job on embedded data: ``0-start/start_here.ipynb``, run through papermill on Spark.

The notebook is the one that a reader opens, so that the demo shows nothing that cannot be changed and run again. A
wheel carries it beside this module; a checkout has it among its notebooks. The city is made on the spot, so no data
are needed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import WorkbenchError
from workbench.experiments import load_sweep, run
from workbench.experiments.recording import read_json
from workbench.experiments.running import NOTEBOOK

QUESTION = "Who hears about which coffee shop, and when?"
START = "start_here.ipynb"
WRITTEN = {
    "report": "report.html",
    "map": "map.html",
    "timelines": "timelines.parquet",
    "notifications": "notifications.parquet",
    "metrics": "metrics.json",
    "notebook": START,
}


@dataclass(frozen=True)
class Demo:
    """What the demo did, and where it left it."""

    out: Path
    seconds: float

    def __str__(self) -> str:
        m = read_json(self.out / "metrics.json")
        return "\n".join(
            [
                f"{QUESTION} {m['rows_in']:,} rows of a synthetic city, on {m['engine']}: {m['notifications']:,}",
                f"notifications ({m['matches']:,} match, {m['unmatches']:,} unmatch), {self.seconds:.0f} s in all",
                *(f"  {name:14} {self.out / file}" for name, file in WRITTEN.items()),
            ]
        )


def start_here() -> Path:
    """The notebook that the demo runs, in a wheel or in a checkout."""
    package = Path(__file__).resolve().parent
    for found in (package / START, package.parent / "notebooks" / "0-start" / START):
        if found.is_file():
            return found
    raise WorkbenchError(f"{START} is neither in the installed package nor in a checkout; install workbench again")


def demo(out: Path) -> Demo:
    """Run the notebook on Spark into a folder: report, map, tables, and the notebook as it was executed."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".demo-", dir=out))
    except OSError as error:
        raise WorkbenchError(f"folder {str(out)!r} cannot be made: {error}") from None
    try:
        (record,) = run(load_sweep(start_here(), texts=["engine=spark", f"out={out}"]), work)
        if (executed := work / record["name"] / NOTEBOOK).exists():
            os.replace(executed, out / START)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if record["state"] != "finished":
        raise WorkbenchError(f"the demo failed: {record['error']}; {out / START} shows where")
    return Demo(out, record["duration_s"])
