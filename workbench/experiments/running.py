"""Running a sweep: each run in a process of its own, its folder put in place whole, finished ones left alone.

A run is *finished* when its ``run.json`` says so with the fingerprint that the run would have now: a checksum of the
notebook's cells (not their outputs), all parameters, and the source and version of this package. A sweep that was
interrupted, in whatever way, is therefore continued by the same command; a changed notebook or library runs again.
Data that a notebook reads is not part of the fingerprint: remove a run's folder to have it done again.

A run is made in a hidden work folder and renamed when it is complete. While a sweep works in a folder, another one is
refused there. A failed run keeps its notebook and its error, the rest goes on, and the next time it is tried again.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from workbench.errors import DataError, WorkbenchError
from workbench.experiments import worker
from workbench.experiments.recording import METRICS_FILE, read_json, write_json
from workbench.experiments.sweeps import Run, Sweep, digest

PACKAGE = Path(__file__).resolve().parents[1]
RECORD = "run.json"
NOTEBOOK = "notebook.ipynb"
_WORK = ".work-"
_VERSIONS = ("workbench", "numpy", "pandas", "pyarrow", "numba", "shapely", "pyspark", "papermill", "ipykernel")

Record = dict[str, Any]
"""What ``run.json`` holds."""


def run(
    sweep: Sweep, out: str | Path, jobs: int = 1, told: Callable[[Record, bool], None] | None = None
) -> list[Record]:
    """Run what is not finished yet, ``jobs`` at a time (2 to 4 are sensible); the records of all runs, in order.

    ``told`` is called with each record as it comes, and whether it was there before.
    """
    target = Path(out)
    runs = sweep.runs()
    if jobs < 1:
        raise WorkbenchError(f"jobs is {jobs}, expected 1 or more")
    with _alone_in(target):
        _check_folder(target, sweep, runs)
        work = Path(tempfile.mkdtemp(prefix=_WORK, dir=target))
        runner = _Runner(sweep, target, work, told or (lambda record, before: None))
        try:
            return runner.all(runs, jobs)
        except OSError as error:
            raise DataError(f"runs cannot be written to {str(target)!r}: {error}") from None
        finally:
            runner.end()
            shutil.rmtree(work, ignore_errors=True)


def failures(records: list[Record]) -> list[Record]:
    """The runs that failed."""
    return [record for record in records if record["state"] != "finished"]


def fingerprint(sweep: Sweep, given: Run) -> str:
    """What a run depends on, as a checksum: cells and tags, parameters, and this package."""
    return digest(notebook_digest(sweep.notebook), sweep.parameters(given), package_digest())


def notebook_digest(notebook: Any) -> str:
    """A checksum of what a notebook says, whatever its outputs."""
    cells = [[cell.cell_type, cell.source, cell.metadata.get("tags", [])] for cell in notebook.cells]
    return digest(cells, _kernel(notebook))


def package_digest() -> str:
    """A checksum of the version and source of this package."""
    files = sorted(path for path in PACKAGE.rglob("*.py"))
    sources = [[path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8")] for path in files]
    return digest(_version("workbench"), sources)


@dataclass
class _Runner:
    """The runs of one sweep under way."""

    sweep: Sweep
    target: Path
    work: Path
    told: Callable[[Record, bool], None]
    processes: set[subprocess.Popen[bytes]] = field(default_factory=set)
    over: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def all(self, runs: list[Run], jobs: int) -> list[Record]:
        records = {}
        with ThreadPoolExecutor(jobs) as pool:
            todo = []
            for each in runs:
                before = self._finished(each)
                if before is None:
                    todo.append(each)
                else:
                    records[each.name] = before
                    self.told(before, True)
            futures = [pool.submit(self._one, each) for each in todo]
            try:
                for future in as_completed(futures):
                    record = future.result()
                    records[record["name"]] = record
                    self.told(record, False)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self.end()
                raise
        return [records[each.name] for each in runs]

    def end(self) -> None:
        """Cut the lifelines of what still runs, and wait until it has ended."""
        with self.lock:
            self.over = True
            running = list(self.processes)
        for process in running:
            assert process.stdin is not None
            process.stdin.close()
        for process in running:
            process.wait()

    def _unless_over(self) -> None:
        """A run that was ended with its sweep has not failed: it leaves nothing."""
        if self.over:
            raise WorkbenchError("the sweep was ended; the same command continues it")

    def _finished(self, each: Run) -> Record | None:
        record: Record | None = read_json(self.target / each.name / RECORD)
        if record is None or record.get("state") != "finished":
            return None
        return record if record.get("fingerprint") == fingerprint(self.sweep, each) else None

    def _one(self, each: Run) -> Record:
        """One run, from an empty work folder to its folder in place."""
        folder = Path(tempfile.mkdtemp(dir=self.work))
        (folder / "run").mkdir()
        record = self._about(each)
        result = self._execute(each, folder)
        record |= {key: value for key, value in result.items() if key != "traceback"}
        record["metrics"] = read_json(folder / "metrics.json", {})
        _name_paths(folder / "run" / NOTEBOOK, self.sweep, each)
        write_json(folder / "run" / RECORD, record)
        place = self.target / each.name
        if place.exists():
            place.rename(folder / "before")
        (folder / "run").rename(place)
        shutil.rmtree(folder, ignore_errors=True)
        return record

    def _about(self, each: Run) -> Record:
        parameters = self.sweep.parameters(each)
        return {
            "name": each.name,
            "state": "failed",
            "error": None,
            "notebook": self.sweep.path.name,
            "question": self.sweep.question,
            "parameters": parameters,
            "given": list(each.given),
            "swept": list(self.sweep.swept),
            "seed": parameters.get("seed"),
            "fingerprint": fingerprint(self.sweep, each),
            "sources": {"notebook": notebook_digest(self.sweep.notebook)[:12], "library": package_digest()[:12]},
            "versions": {"python": platform.python_version()} | {name: _version(name) for name in _VERSIONS},
            "git": _git(self.sweep.path.resolve().parent),
            "started": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }

    def _execute(self, each: Run, folder: Path) -> dict[str, Any]:
        import nbformat

        nbformat.write(self.sweep.notebook, folder / "source.ipynb")
        job = {"parameters": each.given, "kernel": _kernel(self.sweep.notebook), "cwd": os.getcwd()}
        write_json(folder / "job.json", job)
        environment = {
            "JUPYTER_PREFER_ENV_PATH": "1",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
            **os.environ,
            METRICS_FILE: str((folder / "metrics.json").absolute()),
        }
        with open(folder / "log.txt", "wb") as log, self.lock:
            self._unless_over()
            process = subprocess.Popen(
                [sys.executable, "-P", worker.__file__],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            self.processes.add(process)
        process.wait()
        with self.lock:
            self.processes.discard(process)
            self._unless_over()
        assert process.stdin is not None
        process.stdin.close()
        result: dict[str, Any] | None = read_json(folder / "result.json")
        return result if result is not None else {"state": "failed", "error": _death(process.returncode, folder)}


def _death(code: int, folder: Path) -> str:
    lines = (folder / "log.txt").read_text("utf-8", errors="replace").strip().splitlines()
    how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code}"
    return f"the run's process {how}" + (f": {lines[-1]}" if lines else "")


def _kernel(notebook: Any) -> str:
    return str(notebook.metadata.get("kernelspec", {}).get("name", "python3"))


def _name_paths(path: Path, sweep: Sweep, each: Run) -> None:
    """Say in the executed notebook what it was made from, instead of names in a work folder that is gone."""
    notebook = read_json(path)
    if notebook is not None:
        notebook["metadata"].setdefault("papermill", {}).update(
            input_path=sweep.path.name, output_path=f"{each.name}/{NOTEBOOK}"
        )
        write_json(path, notebook)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _git(folder: Path) -> dict[str, Any] | None:
    """The commit that a folder is at, and whether something differs from it; None outside of git."""
    ask = partial(subprocess.run, cwd=folder, capture_output=True, text=True, check=True)
    try:
        commit = ask(["git", "rev-parse", "HEAD"]).stdout.strip()
        changes = ask(["git", "--no-optional-locks", "status", "--porcelain", "--untracked-files=no"]).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
    return {"commit": commit, "changed": bool(changes)}


@contextmanager
def _alone_in(target: Path) -> Iterator[None]:
    """Make the folder and hold it; refuse where another sweep holds it. The hold ends with this process."""
    import fcntl

    try:
        target.mkdir(parents=True, exist_ok=True)
        handle = os.open(target, os.O_RDONLY)
    except OSError as error:
        raise DataError(f"folder {str(target)!r} cannot be made: {error}") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fault = f"another sweep is working in {str(target)!r}; wait for it, or choose another --out"
            raise WorkbenchError(fault) from None
        except OSError:
            pass  # a file system without locks
        for rest in target.glob(f"{_WORK}*"):
            shutil.rmtree(rest, ignore_errors=True)
        yield
    finally:
        os.close(handle)


def _check_folder(target: Path, sweep: Sweep, runs: list[Run]) -> None:
    """Refuse to replace what is no run, and to mix the runs of two notebooks."""
    for path in target.glob(f"*/{RECORD}"):
        notebook = (read_json(path) or {}).get("notebook")
        if notebook not in (None, sweep.path.name):
            raise WorkbenchError(f"{str(target)!r} holds runs of {notebook!r}; choose another --out")
    for each in runs:
        place = target / each.name
        if place.exists() and not (place / RECORD).is_file():
            raise WorkbenchError(f"{str(place)!r} is in the way: it is no run; choose another --out")
