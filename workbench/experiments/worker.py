"""One run, in a process of its own: ``python worker.py``, started by `workbench.experiments.running` in a work folder.

Reads ``job.json`` and ``source.ipynb``, writes ``run/notebook.ipynb`` as it goes and ``result.json`` at the end.
Standard input is a lifeline: when it ends, whoever started this is gone, and the kernel and this process go too, so
that a killed sweep leaves nothing running. Stands alone: it imports nothing of the workbench.
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import psutil

START_UPS = 3
_SAMPLE_S = 0.1


def kernels() -> list[psutil.Process]:
    """The processes that this one started: the kernel, once it lives."""
    return psutil.Process().children()


def end_with_parent() -> None:
    """Wait until the lifeline ends, then end the kernel, what it started, and this process."""
    while os.read(0, 1):
        pass
    for process in psutil.Process().children(recursive=True):
        try:
            process.kill()
        except psutil.Error:
            continue
    os._exit(1)


class PeakMemory(threading.Thread):
    """The most memory that the kernel held: exactly where the system keeps that mark (Linux), else as sampled.

    ``family`` is the most that the kernel and all it started (a JVM, Spark's workers) were seen to hold together.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.kernel = self.family = 0

    def run(self) -> None:
        while True:
            for process in kernels():
                try:
                    resident = process.memory_info().rss
                    self.kernel = max(self.kernel, resident, _high_water(process.pid))
                    others = sum(child.memory_info().rss for child in process.children(recursive=True))
                    self.family = max(self.family, self.kernel, resident + others)
                except psutil.Error:
                    continue
            time.sleep(_SAMPLE_S)


def _high_water(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def execute(job: dict[str, Any]) -> dict[str, Any]:
    """Run the notebook; a kernel that does not come up is tried again, a cell that fails is not."""
    import papermill
    from jupyter_client.kernelspec import NoSuchKernel
    from papermill.exceptions import PapermillExecutionError

    for attempt in range(1, START_UPS + 1):
        try:
            # Relative paths, because papermill fills in {braces} in the paths it is given.
            papermill.execute_notebook(
                "source.ipynb",
                "run/notebook.ipynb",
                parameters=job["parameters"],
                kernel_name=job["kernel"],
                cwd=job["cwd"],
                progress_bar=False,
            )
            return {"state": "finished"}
        except PapermillExecutionError as error:
            where = f"cell [{error.exec_count}]"
            return _failed(f"{where}: {error.ename}: {error.evalue}".rstrip(": "), error.traceback)
        except NoSuchKernel:
            return _failed(f"there is no kernel {job['kernel']!r}; `jupyter kernelspec list` shows the installed ones")
        except Exception as error:  # noqa: BLE001 a kernel can die in many ways, each is the run's failure
            if _started() or attempt == START_UPS:
                return _failed(f"{type(error).__name__}: {error}")
            time.sleep(attempt)
    raise AssertionError("unreachable")


def _failed(message: str, traceback: list[str] | None = None) -> dict[str, Any]:
    return {"state": "failed", "error": message, "traceback": list(traceback or [])}


def _started() -> bool:
    """Whether the kernel came as far as a cell: then it is no start-up that failed."""
    try:
        cells = json.loads(Path("run/notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError):
        return False
    return any(cell["metadata"].get("papermill", {}).get("start_time") for cell in cells)


def main() -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()
    memory = PeakMemory()
    memory.start()
    job = json.loads(Path("job.json").read_text(encoding="utf-8"))
    begin = time.monotonic()
    result = execute(job)
    result["duration_s"] = round(time.monotonic() - begin, 3)
    result["peak_memory_mb"] = round(memory.kernel / 2**20, 1)
    result["peak_memory_family_mb"] = round(memory.family / 2**20, 1)
    Path("result.json").write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
