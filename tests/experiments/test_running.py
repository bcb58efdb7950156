"""Running sweeps: killed ones are continued, failures are kept, finished runs are left alone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest
from typer.testing import CliRunner

from workbench.cli import app
from workbench.errors import WorkbenchError
from workbench.experiments import load_sweep, run, running

RECORD = "from workbench.experiments import record"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def workbench(*arguments: str, library: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "workbench.cli", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(library)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = process.communicate(timeout=240)
    return process.returncode, output


def until(condition: Callable[[], Any], what: str, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited in vain until {what}"
        time.sleep(0.05)


def results(folder: Path) -> dict[str, Any]:
    """What runs came to, without what cannot be the same twice: times and memory."""
    records = {path.parent.name: json.loads(path.read_text()) for path in folder.glob("*/run.json")}
    volatile = {"started", "duration_s", "peak_memory_mb", "peak_memory_family_mb"}
    return {
        name: ({key: value for key, value in record.items() if key not in volatile}, outputs(folder / name))
        for name, record in records.items()
    }


def outputs(folder: Path) -> list[Any]:
    cells = nbformat.read(folder / "notebook.ipynb", as_version=4).cells
    return [cell.outputs for cell in cells if cell.cell_type == "code"]


def stamps(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in [folder, *folder.rglob("*")]}


@pytest.mark.notebook
@pytest.mark.slow
def test_a_sweep_killed_in_the_middle_and_started_again_ends_like_one_that_was_not(write, tmp_path) -> None:
    notebook = write(
        "n = 1\nseed = 7  # of the draws",
        f"import os, pathlib, random, time\n{RECORD}",
        "if n == 2 and not pathlib.Path('go').exists():\n"
        "    pathlib.Path('kernel').write_text(str(os.getpid()))\n"
        "    time.sleep(600)",
        "record(drawn=random.Random(seed + n).random())",
    )
    # A library of its own: whoever edits the package while this runs would rightly have the runs done again.
    shutil.copytree(running.PACKAGE, tmp_path / "library" / "workbench", ignore=shutil.ignore_patterns("__pycache__"))
    start = partial(workbench, "run", str(notebook), "--sweep", "n=1,2,3", library=tmp_path / "library")

    first: dict[str, int] = {}
    for signals, code in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
        interrupted = start("--out", "killed")
        until(lambda: (tmp_path / "kernel").exists() and (tmp_path / "kernel").read_text(), "the second run has begun")
        interrupted.send_signal(signals)
        ended, output = finish(interrupted)
        assert ended == code, output
        assert ("the same command goes on" in output) == (signals == signal.SIGINT)
        kernel = int((tmp_path / "kernel").read_text())
        until(lambda: not psutil.pid_exists(kernel), "the kernel of the interrupted sweep has ended", 15)  # noqa: B023
        assert list(results(tmp_path / "killed")) == ["n=1"]
        first = first or stamps(tmp_path / "killed" / "n=1")
        (tmp_path / "kernel").unlink()

    (tmp_path / "go").touch()
    code, output = finish(start("--out", "killed"))
    assert code == 0, output
    assert "n=1: unchanged" in output
    assert stamps(tmp_path / "killed" / "n=1") == first

    # Two at a time, without an interruption: the same results, so parallel equals serial too.
    code, output = finish(start("--out", "whole", "--jobs", "2"))
    assert code == 0, output
    assert results(tmp_path / "killed") == results(tmp_path / "whole")
    assert {path.name for path in (tmp_path / "killed").iterdir()} == {"n=1", "n=2", "n=3"}


@pytest.mark.notebook
@pytest.mark.slow
def test_a_failing_cell_keeps_its_notebook_and_the_rest_goes_on(write, tmp_path) -> None:
    cells = [RECORD, "record(before=n)", "share = 1 / n", "record(share=share)"]
    notebook = write("n = 1\nseed: int | None = None", *cells)
    told = CliRunner().invoke(app, ["run", str(notebook), "--sweep", "n=0,2", "-p", "seed=3", "--out", "deep/runs"])
    assert told.exit_code == 1
    assert "1 of 2 runs finished" in told.output
    assert "cell [5]: ZeroDivisionError: division by zero" in told.output
    assert "notebook.ipynb" in told.output.splitlines()[-1]

    failed = json.loads((tmp_path / "deep/runs/seed=3,n=0/run.json").read_text())
    assert (failed["state"], failed["metrics"]) == ("failed", {"before": 0})
    errors = [o.ename for cell in outputs(tmp_path / "deep/runs/seed=3,n=0") for o in cell if o.output_type == "error"]
    assert errors == ["ZeroDivisionError"]

    record = json.loads((tmp_path / "deep/runs/seed=3,n=2/run.json").read_text())
    assert record["parameters"] == {"n": 2, "seed": 3}
    assert (record["seed"], record["state"], record["metrics"]) == (3, "finished", {"before": 2, "share": 0.5})
    assert record["versions"]["python"] == sys.version.split()[0] and record["versions"]["papermill"]
    assert record["git"] is None  # the notebook stands outside of git
    assert record["started"].endswith("+00:00") and record["duration_s"] > 0
    assert record["peak_memory_mb"] > 10 and record["peak_memory_family_mb"] >= record["peak_memory_mb"]
    executed = nbformat.read(tmp_path / "deep/runs/seed=3,n=2/notebook.ipynb", as_version=4)
    assert str(tmp_path) not in json.dumps(executed.metadata)


@pytest.mark.notebook
def test_plain_papermill_runs_the_same_notebook_and_records_nothing(write, tmp_path) -> None:
    import papermill

    notebook = write("n = 1", f"{RECORD}\nrecord(n=n)")
    papermill.execute_notebook(str(notebook), str(tmp_path / "out.ipynb"), {"n": 4}, progress_bar=False)
    (*_, last) = nbformat.read(tmp_path / "out.ipynb", as_version=4).cells
    assert last.outputs[0].data["text/plain"] == "{'n': 4}"
    assert {path.name for path in tmp_path.iterdir()} == {"tiny.ipynb", "out.ipynb"}


@pytest.mark.notebook
@pytest.mark.slow
def test_a_kernel_that_does_not_come_up_is_started_again_and_one_that_dies_is_not(write, tmp_path, monkeypatch) -> None:
    shy = tmp_path / "share" / "kernels" / "shy"
    shy.mkdir(parents=True)
    start = (
        "import os, pathlib, runpy, sys\n"
        f"tried = pathlib.Path({str(tmp_path / 'tried')!r})\n"
        "if not tried.exists():\n    tried.touch()\n    sys.exit(1)\n"
        "sys.argv = ['ipykernel_launcher', *sys.argv[1:]]\n"
        "runpy.run_module('ipykernel_launcher', run_name='__main__')"
    )
    argv = [sys.executable, "-c", start, "-f", "{connection_file}"]
    (shy / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "shy", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share"))

    count = "import os, pathlib\nwith open('times', 'a') as file: file.write('x')"
    notebook = write("dies = False", count, "if dies: os._exit(1)", kernel="shy")
    (record,) = run(load_sweep(notebook), "shy")
    assert (record["state"], (tmp_path / "times").read_text()) == ("finished", "x")
    (record,) = run(load_sweep(notebook, {"dies": True}), "dying")
    assert (record["state"], (tmp_path / "times").read_text()) == ("failed", "xx")
    assert "died" in record["error"].lower()


def test_a_kernel_that_is_not_installed_is_named(write) -> None:
    (record,) = run(load_sweep(write("a = 1", kernel="nonesuch")), "runs")
    assert record["state"] == "failed"
    assert "there is no kernel 'nonesuch'" in record["error"]


@pytest.fixture
def executed(monkeypatch) -> list[str]:
    """The names of the runs that are executed; no kernel is started for them."""
    names: list[str] = []

    def execute(self: Any, each: Any, folder: Path) -> dict[str, Any]:
        names.append(each.name)
        (folder / "run" / "notebook.ipynb").write_text('{"metadata": {}}')
        return {"state": "failed" if each.given.get("n") == 13 else "finished", "duration_s": 0.0}

    monkeypatch.setattr(running._Runner, "_execute", execute)
    return names


def test_what_has_changed_runs_again_and_nothing_else(write, executed, monkeypatch) -> None:
    notebook = write("n = 1", "n")

    def again(**sweep: Any) -> list[str]:
        executed.clear()
        run(load_sweep(notebook, sweep=sweep or {"n": [1, 2]}), "runs")
        return list(executed)

    assert again() == ["n=1", "n=2"]
    assert again() == []
    assert again(n=[2, 3]) == ["n=3"]

    cells = nbformat.read(notebook, as_version=4)
    cells.cells[-1].execution_count = 5
    nbformat.write(cells, notebook)
    assert again() == [], "outputs and counts are no change"
    cells.cells[-1].source = "n + 1"
    nbformat.write(cells, notebook)
    assert again() == ["n=1", "n=2"], "the source of a cell is one"

    monkeypatch.setattr(running, "package_digest", lambda: "another library")
    assert again() == ["n=1", "n=2"]
    assert again(n=[1, 13]) == ["n=13"]
    assert again(n=[1, 13]) == ["n=13"], "a failed run is tried again"


def test_the_source_and_the_version_of_the_library_are_part_of_the_fingerprint(tmp_path, monkeypatch) -> None:
    (tmp_path / "a.py").write_text("1")
    monkeypatch.setattr(running, "PACKAGE", tmp_path)
    seen = {running.package_digest()}
    (tmp_path / "a.py").write_text("2")
    seen.add(running.package_digest())
    monkeypatch.setattr(running, "_version", lambda name: "99")
    seen.add(running.package_digest())
    assert len(seen) == 3


def test_a_folder_is_used_by_one_sweep_at_a_time(write, executed) -> None:
    sweep = load_sweep(write("n = 1"))

    def second(record: Any, before: bool) -> None:
        with pytest.raises(WorkbenchError, match="another sweep is working"):
            run(sweep, "runs")

    run(sweep, "runs", told=second)
    run(sweep, "runs")


def test_what_is_no_run_of_this_notebook_is_never_replaced(write, executed, tmp_path) -> None:
    run(load_sweep(write("n = 1", name="one.ipynb")), "runs")
    with pytest.raises(WorkbenchError, match=r"holds runs of 'one.ipynb'"):
        run(load_sweep(write("n = 1", name="other.ipynb")), "runs")
    (tmp_path / "mine" / "defaults").mkdir(parents=True)
    with pytest.raises(WorkbenchError, match="in the way"):
        run(load_sweep(tmp_path / "one.ipynb"), "mine")
    assert executed == ["defaults"]


def test_what_an_interrupted_sweep_left_is_cleared_away(write, executed, tmp_path) -> None:
    (tmp_path / "runs" / ".work-old" / "x").mkdir(parents=True)
    run(load_sweep(write("n = 1")), "runs")
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"defaults"}


def test_a_fault_of_the_runner_ends_the_sweep_and_leaves_no_half_run(write, monkeypatch, tmp_path) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(running._Runner, "_execute", full)
    with pytest.raises(WorkbenchError, match="No space left"):
        run(load_sweep(write("n = 1")), "runs")
    assert list((tmp_path / "runs").iterdir()) == []


def test_the_command_lists_parameters_and_refuses_before_it_runs_anything(write, tmp_path) -> None:
    notebook = str(write("radius_m: float = 500  # metres\nseed = 1"))
    told = CliRunner().invoke(app, ["run", notebook, "--help-parameters"])
    assert told.output == "radius_m: float = 500.0  # metres\nseed: int = 1\n"
    for arguments, message in (
        (["-p", "radus_m=1", "--out", "runs"], "did you mean 'radius_m'"),
        (["-p", "radius_m=far", "--out", "runs"], "'radius_m' is float"),
        ([], "--out is missing"),
    ):
        refused = CliRunner().invoke(app, ["run", notebook, *arguments])
        assert isinstance(refused.exception, WorkbenchError)
        assert message in str(refused.exception)
    assert not (tmp_path / "runs").exists()


def test_an_experiment_runs_into_the_folder_beside_it(write, executed, tmp_path) -> None:
    write("n = 1", name="experiments/tiny/tiny.ipynb")
    config = tmp_path / "experiments" / "tiny" / "config.toml"
    config.write_text('notebook = "tiny.ipynb"\n[sweep]\nn = [1, 2]\n')
    told = CliRunner().invoke(app, ["run", str(config)])
    assert told.exit_code == 0, told.output
    assert {path.name for path in (config.parent / "runs").iterdir()} == {"n=1", "n=2"}
    assert os.getcwd() == str(tmp_path)
