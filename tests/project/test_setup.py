"""tools/setup: what it refuses in one sentence, and that running it again repairs what was interrupted.

The project of these tests is a copy of the script with a Python that only writes down what it was asked to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

RECORDING_PYTHON = """#!/bin/sh
echo "$0 $*" >> "{log}"
case "$*" in
  "-m venv .venv")
    mkdir -p .venv/bin
    cp "$0" .venv/bin/python
    printf '#!/bin/sh\\necho workbench\\n' > .venv/bin/workbench
    chmod +x .venv/bin/workbench ;;
  "-m pip install"*) [ ! -e "{fault}" ] || kill -KILL $PPID ;;
esac
"""

OLD_PYTHON = """#!/bin/sh
case "$*" in -V) echo "Python 3.8.10" ;; *) exit 1 ;; esac
"""

PYTHON_WITHOUT_VENV = """#!/bin/sh
case "$*" in *ensurepip*|*virtualenv*|"-m pip"*) exit 1 ;; esac
"""


class Project:
    """A folder with the script, and a PATH on which the only Python is the given one."""

    def __init__(self, folder: Path, python3: str) -> None:
        self.root = folder / "project"
        self.bin = folder / "bin"
        self.log = folder / "log"
        self.fault = folder / "fault"
        (self.root / "tools").mkdir(parents=True)
        shutil.copy(ROOT / "tools" / "setup", self.root / "tools" / "setup")
        (self.root / "pyproject.toml").write_text("")
        (self.root / "constraints.txt").write_text("a==1\n")
        self.bin.mkdir()
        for name in ("sh", "cat", "cksum", "cp", "chmod", "dirname", "mkdir", "mv", "rm"):
            (self.bin / name).symlink_to(shutil.which(name) or name)
        self.log.write_text("")
        python = self.bin / "python3"
        python.write_text(python3.format(log=self.log, fault=self.fault) if "{log}" in python3 else python3)
        python.chmod(0o755)

    def setup(self, **environ: str) -> subprocess.CompletedProcess[str]:
        self.log.write_text("")
        environment = {"PATH": str(self.bin), "HOME": str(self.root), **environ}
        sh = shutil.which("sh") or "/bin/sh"
        return subprocess.run([sh, "tools/setup"], cwd=self.root, env=environment, capture_output=True, text=True)

    def did(self, what: str) -> bool:
        return what in self.log.read_text()

    @property
    def ready(self) -> bool:
        return (self.root / ".venv" / ".ready").exists()


@pytest.mark.parametrize(
    ("python3", "sentence"),
    [
        (OLD_PYTHON, "Python 3.11 or later is needed, and python3 is Python 3.8.10: install one, or name it"),
        (PYTHON_WITHOUT_VENV, "ensurepip is missing: install it (Debian, Ubuntu: apt-get install python3-venv)"),
    ],
)
def test_a_python_that_will_not_do_gets_one_sentence_and_leaves_nothing(
    tmp_path: Path, python3: str, sentence: str
) -> None:
    project = Project(tmp_path, python3)
    ran = project.setup()
    assert ran.returncode == 1
    assert len(ran.stderr.splitlines()) == 1
    assert sentence in ran.stderr
    assert not (project.root / ".venv").exists()


def test_an_old_python3_is_passed_over_for_a_newer_one(tmp_path: Path) -> None:
    project = Project(tmp_path, OLD_PYTHON)
    newer = project.bin / "python3.12"
    newer.write_text(RECORDING_PYTHON.format(log=project.log, fault=project.fault))
    newer.chmod(0o755)
    assert project.setup().returncode == 0
    assert project.did(f"{newer} -m venv .venv") or project.did("python3.12 -m venv .venv")


def test_a_finished_setup_is_not_done_again(tmp_path: Path) -> None:
    project = Project(tmp_path, RECORDING_PYTHON)
    ran = project.setup()
    assert ran.returncode == 0, ran.stderr
    assert project.did("-m pip install") and project.ready
    assert project.setup().returncode == 0
    assert not project.did("-m pip install")


def test_an_interrupted_setup_is_made_anew(tmp_path: Path) -> None:
    project = Project(tmp_path, RECORDING_PYTHON)
    project.fault.touch()
    assert project.setup().returncode != 0
    assert not project.ready
    (project.root / ".venv" / "half-installed").touch()

    project.fault.unlink()
    assert project.setup().returncode == 0
    assert project.ready
    assert not (project.root / ".venv" / "half-installed").exists()


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_changed_requirements_are_installed_over(tmp_path: Path, name: str) -> None:
    project = Project(tmp_path, RECORDING_PYTHON)
    project.setup()
    with (project.root / name).open("a") as file:
        file.write("# changed\n")
    assert project.setup().returncode == 0
    assert project.did("-m pip install")
    assert not project.did("-m venv")


def test_a_moved_project_is_installed_again(tmp_path: Path) -> None:
    project = Project(tmp_path, RECORDING_PYTHON)
    project.setup()
    project.root = project.root.rename(tmp_path / "moved")
    assert project.setup().returncode == 0
    assert project.did("-m pip install")


def test_a_broken_environment_is_made_anew(tmp_path: Path) -> None:
    project = Project(tmp_path, RECORDING_PYTHON)
    project.setup()
    (project.root / ".venv" / "bin" / "python").unlink()
    assert project.setup().returncode == 0
    assert project.did("-m venv .venv") and project.ready


def test_inherited_python_settings_do_not_reach_the_setup(tmp_path: Path) -> None:
    showing = RECORDING_PYTHON.replace("$0 $*", "$0 $* [${{PYTHONPATH-}}${{PYTHONHOME-}}${{PIP_TARGET-}}]")
    project = Project(tmp_path, showing)
    ran = project.setup(PYTHONPATH="foreign", PYTHONHOME="foreign", PIP_TARGET="foreign")
    assert ran.returncode == 0, ran.stderr
    assert project.did("[]") and not project.did("foreign")


def test_ci_only_calls_make_test() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    lines = [line for line in script.read_text().splitlines() if line and not line.startswith("#")]
    assert lines == ["set -eu", 'cd "$(dirname "$0")/.."', "exec make test"]
