"""A full disk or a corrupt file: one sentence that names it, and nothing half-written, whatever the engine."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.contract.commands import typed
from workbench.errors import DataError
from workbench.replay import replay

ENGINES = ["local", "spark"]
PLACES = pd.DataFrame({"place": range(40), "x": np.arange(40) * 25.0, "y": 0.0})


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    """An engine; Spark with the session of the run."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def fixes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Noise, which no compression makes small: half a megabyte of it, and as much again of what it leads to."""
    rng = np.random.default_rng(1)
    n = 30_000
    path = tmp_path_factory.mktemp("damage") / "fixes.parquet"
    place = rng.uniform(2_000, 4_000, (2, n))
    made = {"mobile": np.arange(n) % 300, "t": np.arange(n), "x": place[0] - 2_000, "y": place[1] - 3_000}
    pd.DataFrame(made).to_parquet(path, index=False, row_group_size=5_000)
    PLACES.to_parquet(path.with_name("places.parquet"), index=False)
    return path


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A disk with room for a fifth of a megabyte; only who may mount one can try."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def cut_off(file: Path, target: Path) -> Path:
    target.write_bytes(file.read_bytes()[:-500])
    return target


def overwritten(file: Path, target: Path) -> Path:
    """The file with a page in its middle that says nothing; what its end says of it is right."""
    data = bytearray(file.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 40_000] = b"\xff" * 40_000
    target.write_bytes(data)
    return target


DAMAGE = {"cut off": cut_off, "overwritten": overwritten}


def commands(source: Path, fixes: Path, engine: str, out: Path) -> dict[str, tuple[object, ...]]:
    places = ("--places", fixes.with_name("places.parquet"), "-p", "radius_m=300")
    return {
        "replay": ("replay", "proximity", "--fixes", source, *places, "--engine", engine, "--out", out),
        "ingest": ("ingest", source, "--format", "parquet", "--engine", engine, "--out", out),
    }


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
@pytest.mark.parametrize("command", ["replay", "ingest"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_corrupt_file_is_named(fixes: Path, tmp_path: Path, engine: str, command: str, damage: str) -> None:
    source = DAMAGE[damage](fixes, tmp_path / "broken.parquet")
    with pytest.raises(DataError, match=r"broken\.parquet") as said:
        typed(*commands(source, fixes, engine, tmp_path / "out")[command])
    assert "Traceback" not in str(said.value) and len(str(said.value)) < 500
    assert [file.name for file in tmp_path.iterdir()] == ["broken.parquet"]


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
@pytest.mark.parametrize("command", ["replay", "ingest"])
def test_a_full_disk_is_named_and_left_as_it_was(fixes: Path, full: Path, engine: str, command: str) -> None:
    (full / "before").write_text("here")
    with pytest.raises(DataError, match=r"disk/out.*No space left") as said:
        typed(*commands(fixes, fixes, engine, full / "out")[command])
    assert "Traceback" not in str(said.value) and len(str(said.value)) < 500
    assert [file.name for file in full.iterdir()] == ["before"]


@pytest.mark.parametrize("given", ["places", "fixes"])
def test_a_full_disk_for_what_spark_is_handed_is_named(spark, fixes: Path, full: Path, monkeypatch, given: str) -> None:
    """The tables that this process writes for the workers, who never come to see them."""
    monkeypatch.setenv("WORKBENCH_SCRATCH", str(full))
    draw = np.random.default_rng(2)
    many = pd.DataFrame({"place": range(60_000), "x": draw.uniform(0, 1e6, 60_000), "y": 0.0})
    with pytest.raises(DataError, match=r"disk/workbench-replay-.*No space left") as said:
        replay("proximity", *((fixes, many) if given == "places" else (pd.read_parquet(fixes), PLACES)), engine="spark")
    assert len(str(said.value)) < 500
