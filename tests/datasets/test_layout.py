"""The layout: nothing lost, order and buckets without influence, nothing half-written."""

import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench.datasets import bucket_of, ingest, load, open_fixes, report_of
from workbench.datasets.instants import settle
from workbench.datasets.quality import CONFLICT, GLOBE, SPEED, ZERO, QualityWarning
from workbench.errors import DataError

SMALL = pa.table({"mobile": ["a", "b", "a"], "t": [1, 1, 2], "x": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 3.0]})

cells = st.sampled_from([None, 0.5, 1.5])
rows = st.lists(
    st.tuples(
        st.sampled_from([None, "a", "b", "c"]),
        st.sampled_from([None, 1, 2, 3]),
        st.sampled_from([None, float("nan"), 1.0, 2.0]),
        st.sampled_from([1.0, 2.0, float("inf")]),
        cells,
        st.sampled_from([None, "add", "update", "remove", "move"]),
    ),
    min_size=1,
    max_size=30,
)


def table_of(given_rows) -> pa.Table:
    names = ("mobile", "t", "x", "y", "fuel", "op")
    kinds = (pa.string(), pa.int64(), pa.float64(), pa.float64(), pa.float64(), pa.string())
    columns = zip(*given_rows, strict=True)
    return pa.table({n: pa.array(c, k, from_pandas=False) for n, c, k in zip(names, columns, kinds, strict=True)})


def kept_of(fixes) -> list[tuple]:
    table = fixes.to_arrow()
    return sorted(zip(*(c.to_pylist() for c in table.columns), strict=True), key=repr)


def aside_of(fixes) -> list[tuple]:
    table = fixes.aside()
    names = [n for n in ("reason", "mobile", "t", "x", "y", "fuel", "op") if n in table.column_names]
    return sorted((tuple(map(repr, row)) for row in zip(*(table[n].to_pylist() for n in names), strict=True)), key=repr)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows, st.randoms(use_true_random=False))
def test_every_row_is_kept_collapsed_or_set_aside_whatever_the_order_and_the_buckets(
    tmp_path_factory, given_rows, random
):
    folder = tmp_path_factory.mktemp("law")
    first = ingest(table_of(given_rows), folder / "one", buckets=1, max_bad_share=1)
    shuffled = list(given_rows)
    random.shuffle(shuffled)
    second = ingest(table_of(shuffled), folder / "many", buckets=7, max_bad_share=1)
    for fixes in (first, second):
        report = fixes.report
        assert report.rows == len(given_rows) == report.kept + report.collapsed + report.set_aside
        assert fixes.rows == report.kept == fixes.to_arrow().num_rows
        assert fixes.aside().num_rows == report.set_aside
    assert kept_of(first) == kept_of(second)
    assert aside_of(first) == aside_of(second)
    assert first.report.aside == second.report.aside


def test_a_bucket_holds_whole_mobiles_sorted_by_mobile_and_time(tmp_path):
    random = np.random.default_rng(5)
    n = 5_000
    table = pa.table(
        {
            "mobile": random.integers(0, 200, n),
            "t": random.integers(0, 10**6, n),
            "x": random.random(n),
            "y": random.random(n),
        }
    )
    fixes = ingest(table, tmp_path / "out", buckets=8)
    seen: set[int] = set()
    for entry, file in zip(fixes.manifest["buckets"]["files"], fixes.files, strict=True):
        part = pq.read_table(file).to_pandas()
        assert part.equals(part.sort_values(["mobile", "t"], ignore_index=True))
        mobiles = set(part["mobile"])
        assert not mobiles & seen
        seen |= mobiles
        assert set(bucket_of(pa.array(sorted(mobiles)), 8)) == {entry["bucket"]}
        assert (entry["rows"], entry["mobiles"]) == (len(part), len(mobiles))
        assert entry["t"] == [part["t"].min(), part["t"].max()]
    assert fixes.mobiles == len(seen)


def test_text_that_is_a_whole_number_lies_in_the_bucket_of_the_number():
    ids = [0, 7, -3, 10**17, 123456]
    assert bucket_of(pa.array(ids), 64).tolist() == bucket_of(pa.array([str(i) for i in ids]), 64).tolist()
    assert bucket_of(pa.array(["007", "7"]), 1024)[0] != bucket_of(pa.array(["007", "7"]), 1024)[1]


def test_the_hash_is_the_published_one():
    # FNV-1a of "a" is af63dc4c8601ec8c; the first output of SplitMix64 seeded with 0 is e220a8397b1dcdaf
    from workbench.datasets.layout import _fnv, mix64

    assert hex(_fnv(pa.array(["a"]))[0]) == "0xaf63dc4c8601ec8c"
    assert hex(mix64(np.array([0]))[0]) == "0xe220a8397b1dcdaf"


@pytest.mark.parametrize(
    ("ops", "cells", "expected"),
    [
        (["add", "remove"], [1.0, None], [("update", 1.0)]),
        (["remove", "add"], [9.0, 1.0], []),
        (["add", "add"], [1.0, 1.0], [("add", 1.0)]),
        (["update", None], [None, 1.0], [("update", 1.0)]),
        (["add", "update"], [1.0, 1.0], []),
        (["remove", "remove"], [1.0, 2.0], []),
        (["add", "remove", "update"], [1.0, 1.0, 1.0], []),
    ],
)
def test_operations_at_one_instant(ops, cells, expected):
    n = len(ops)
    settled = settle(pa.table({"mobile": [1] * n, "t": [5] * n, "op": ops, "fuel": pa.array(cells, pa.float64())}))
    assert list(zip(settled.table["op"].to_pylist(), settled.table["fuel"].to_pylist(), strict=True)) == expected
    assert settled.aside.num_rows == (0 if expected else n)


def test_a_conflict_sets_all_its_rows_aside_even_two_that_agree(tmp_path):
    table = pa.table({"mobile": [1] * 4, "t": [1, 1, 1, 2], "x": [1.0, 1.0, 2.0, 5.0], "y": [0.0] * 4})
    fixes = ingest(table, tmp_path / "out", max_bad_share=1)
    assert (fixes.rows, fixes.report.aside) == (1, {CONFLICT: 3})


def test_a_mobile_that_jumps_is_judged_from_the_last_fix_kept(tmp_path):
    table = pa.table({"mobile": [1] * 6, "t": range(6), "x": [0.0, 1.0, 500.0, 501.0, 4.0, 5.0], "y": [0.0] * 6})
    fixes = ingest(table, tmp_path / "out", max_speed_mps=10, max_bad_share=1)
    assert fixes.to_pandas()["x"].tolist() == [0, 1, 4, 5]
    assert fixes.report.aside == {SPEED: 2}


def test_speed_is_judged_by_the_same_rule_as_one_fix_after_the_other():
    from workbench.datasets.instants import too_fast

    random = np.random.default_rng(3)
    n = 400
    mobile = np.sort(random.integers(0, 5, n))
    x = random.normal(0, 3, n) + np.where(random.random(n) < 0.2, 1000, 0)
    t = np.arange(n)
    starts = np.flatnonzero(np.r_[True, mobile[1:] != mobile[:-1]])
    table = pa.table({"mobile": mobile, "t": t, "x": x, "y": np.zeros(n)})
    last, expected = None, []
    for i in range(n):
        if i in starts:
            last = i
        bad = abs(x[i] - x[last]) / max(t[i] - t[last], 1e-9) > 6 if i != last else False
        expected.append(bad)
        last = last if bad else i
    assert too_fast(table, starts, 6, 1.0).tolist() == expected


def test_bad_coordinates_have_reasons_of_their_own(tmp_path):
    table = pd.DataFrame(
        {"mobile": 1, "t": range(5), "lon": [8.0, 0.0, 181.0, 8.1, 8.2], "lat": [50.0, 50.0, 50.0, 91.0, 49.0]}
    )
    fixes = ingest(table, tmp_path / "out", max_bad_share=0.9)
    assert fixes.report.aside == {GLOBE: 2, ZERO: 1}
    assert fixes.crs == "EPSG:4326"


def test_swapped_coordinates_are_suspected_for_the_set_as_a_whole(tmp_path):
    table = pd.DataFrame({"mobile": 1, "t": range(10), "lon": [37.7] * 10, "lat": [-122.4] * 10})
    with pytest.warns(QualityWarning, match="swapped"):
        ingest(table, tmp_path / "out", max_bad_share=1)


def test_too_many_bad_rows_fail_the_run_and_leave_nothing(tmp_path):
    table = pa.table({"mobile": [1, 2], "t": [1, 1], "lon": [0.0, 8.0], "lat": [50.0, 50.0]})
    with pytest.raises(DataError, match=r"50\.0 % of the rows.*\n.*\n  zero coordinate"):
        ingest(table, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_refused_and_a_foreign_one_is_never_overwritten(tmp_path):
    ingest(SMALL, tmp_path / "out")
    with pytest.raises(DataError, match="exists already"):
        ingest(SMALL, tmp_path / "out")
    assert ingest(SMALL.slice(0, 1), tmp_path / "out", overwrite=True).rows == 1
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("work of years")
    with pytest.raises(DataError, match="no ingested fixes"):
        ingest(SMALL, tmp_path / "mine", overwrite=True)


def test_a_killed_ingest_leaves_nothing_that_looks_complete_and_can_be_started_again(tmp_path):
    script = textwrap.dedent(
        """
        import sys, time, pyarrow as pa
        from workbench.datasets import ingest, report_of
        def slow():
            yield pa.table({"mobile": [1], "t": [1], "x": [1.0], "y": [1.0]})
            print("reading", flush=True)
            time.sleep(60)
        ingest(slow(), sys.argv[1])
        """
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "out")], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "out").exists()
    assert len(list(tmp_path.iterdir())) == 1  # what the killed run left behind
    time.sleep(0.05)
    assert ingest(SMALL, tmp_path / "out").rows == 3
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_damaged_data_set_is_refused_with_its_name(tmp_path):
    fixes = ingest(SMALL, tmp_path / "out")
    fixes.files[0].unlink()
    with pytest.raises(DataError, match="which is not there"):
        open_fixes(tmp_path / "out")
    (tmp_path / "out" / "manifest.json").write_text("{")
    with pytest.raises(DataError, match="damaged"):
        open_fixes(tmp_path / "out")
    with pytest.raises(DataError, match="no manifest"):
        open_fixes(tmp_path)


def test_the_manifest_is_plain_data_and_tells_what_the_files_hold(tmp_path):
    ingest(SMALL, tmp_path / "out", crs="EPSG:32633")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert (manifest["rows"], manifest["mobiles"], manifest["crs"]) == (3, 2, "EPSG:32633")
    assert manifest["bounds"] == {"x": [1.0, 3.0], "y": [1.0, 3.0]}
    assert manifest["time"] == {"type": "int64", "first": 1, "last": 2, "tick_s": 1.0}
    assert open_fixes(tmp_path / "out").schema.names == ["mobile", "t", "x", "y"]


def test_spilling_to_disk_changes_nothing(tmp_path, monkeypatch):
    random = np.random.default_rng(1)
    n = 20_000
    table = pa.table(
        {
            "mobile": random.integers(0, 50, n).astype(str),
            "t": random.integers(0, 500, n),
            "x": random.random(n),
            "y": random.random(n),
        }
    )
    whole = ingest(table, tmp_path / "memory", max_bad_share=1)
    monkeypatch.setattr("workbench.datasets.ingesting.PENDING_BYTES", 50_000)
    monkeypatch.setattr("workbench.datasets.ingesting.BATCH_ROWS", 1_000)
    parts = ingest((table.slice(i, 1_000) for i in range(0, n, 1_000)), tmp_path / "disk", max_bad_share=1)
    assert kept_of(whole) == kept_of(parts)
    assert whole.report == parts.report
    assert not (tmp_path / "disk" / "spill").exists()


def test_there_may_be_more_buckets_than_a_process_may_open_files(tmp_path, monkeypatch):
    n = 20_000
    mobile = np.arange(n) % 3_000
    table = pa.table({"mobile": mobile, "t": np.arange(n), "x": mobile + 0.5, "y": mobile + 0.0})
    monkeypatch.setattr("workbench.datasets.ingesting.PENDING_BYTES", 50_000)
    monkeypatch.setattr("workbench.datasets.ingesting.BATCH_ROWS", 1_000)
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = len(os.listdir("/proc/self/fd")) + 100
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, allowed[1]))
    try:
        many = ingest((table.slice(i, 1_000) for i in range(0, n, 1_000)), tmp_path / "many", buckets=1_024)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, allowed)
    assert len(many.files) > few
    assert kept_of(many) == kept_of(ingest(table, tmp_path / "one", buckets=1))


def test_rows_that_are_set_aside_do_not_pile_up_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.datasets.ingesting.PENDING_BYTES", 1 << 20)
    rows, held = 1 << 18, []

    def batches():
        for n in range(12):
            held.append(pa.total_allocated_bytes())
            bad = np.full(rows, np.nan if n % 2 else np.inf)
            yield pa.table({"mobile": np.arange(rows), "t": np.full(rows, n), "x": bad, "y": bad})

    fixes = ingest(batches(), tmp_path / "out", max_bad_share=1)
    assert max(held) - held[0] < 48 << 20  # all of them are 150 MiB
    assert fixes.report.aside == {"not finite": 12 * rows}
    aside = fixes.aside()
    assert aside.num_rows == 12 * rows
    assert sorted(aside["t"].unique().to_pylist()) == list(range(12))


def test_ingested_fixes_can_be_ingested_again_with_other_buckets(tmp_path):
    first = ingest(SMALL, tmp_path / "one", crs="EPSG:32633", buckets=1)
    second = ingest(tmp_path / "one", tmp_path / "two", buckets=3)
    assert kept_of(first) == kept_of(second)
    assert second.crs == "EPSG:32633"


def test_load_gives_pandas_in_order_with_the_report():
    table = load(SMALL)
    assert table["mobile"].tolist() == ["a", "a", "b"]
    assert report_of(table).rows == 3


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows)
def test_ingested_and_raw_rows_are_settled_by_the_same_rule(tmp_path_factory, given_rows):
    """What `workbench.tables` makes of raw rows is what the layout holds of them."""
    from workbench import tables

    good = [r for r in given_rows if r[0] and r[1] and r[2] and r[2] == r[2] and r[3] < 9 and r[5] != "move"]
    if not good:
        return
    fixes = ingest(table_of(good), tmp_path_factory.mktemp("raw") / "out", max_bad_share=1)
    raw = tables.read(table_of(good).to_pandas(), "fixes").frame
    kept = [
        tuple(None if pd.isna(v) else v for v in row)
        for row in zip(*(raw[n] for n in ("id", "x", "y", "fuel", "op")), strict=True)
    ]
    ours = [(m, x, y, fuel, op) for m, _, x, y, fuel, op in kept_of(fixes)]
    assert sorted(kept, key=repr) == sorted(ours, key=repr)
