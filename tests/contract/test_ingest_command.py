"""`workbench ingest` as a user types it."""

import pytest

from tests.contract.commands import typed
from workbench.datasets import open_fixes
from workbench.errors import DataError


@pytest.fixture
def tracks(tmp_path):
    file = tmp_path / "tracks.csv"
    file.write_text("scene;walker;s;X;Y;speed\nzoo;1;0.04;8.60;49.80;1\nzoo;2;0.08;8.61;49.81;2\nzoo;1;0.12;8.62;49.82;3\n")
    return file


def test_columns_ticks_and_attributes_are_chosen_on_the_command_line(tracks, tmp_path):
    said = typed(
        "ingest", tracks, "--out", tmp_path / "out", "--column", "mobile=scene+walker", "--column", "t=s",
        "--column", "lon=X", "--column", "lat=Y", "--tick-s", 0.01, "--keep", "speed", "--buckets", 1,
    )  # fmt: skip
    fixes = open_fixes(tmp_path / "out").to_pandas()
    assert "3 rows in: 3 kept, 0 collapsed, 0 set aside" in said
    assert "format 'csv' (CSV with a column mapping) was guessed" in said
    assert list(fixes.columns) == ["mobile", "t", "lon", "lat", "speed"]
    assert list(zip(fixes["mobile"], fixes["t"], strict=True)) == [("zoo/1", 4), ("zoo/1", 12), ("zoo/2", 8)]


def test_a_fault_says_which_option_mends_it(tracks, tmp_path):
    with pytest.raises(DataError, match="--column mobile="):
        typed("ingest", tracks, "--out", tmp_path / "out", "--column", "t=s", "--tick-s", 0.01)
    assert not (tmp_path / "out").exists()


def test_numbers_that_may_be_degrees_are_pointed_out(tracks, tmp_path):
    columns = ("--column", "mobile=walker", "--column", "t=s")
    said = typed("ingest", tracks, "--out", tmp_path / "out", *columns, "--tick-s", 0.01)
    assert "x and y are taken for metres" in said
