"""A description says what is there, from a folder, a table or a file, and never runs what a name says."""

import pandas as pd
import pytest

from workbench.datasets import City, describe, ingest
from workbench.datasets.picturing import counted, window_of
from workbench.errors import DataError

WALK = pd.DataFrame({"mobile": ["a"] * 4 + ["b"], "t": [0, 10, 20, 500, 5], "x": [0.0, 1, 2, 3, 9], "y": 0.0})


def test_a_table_a_file_and_ingested_fixes_are_described_alike(tmp_path):
    WALK.to_csv(tmp_path / "walk.csv", index=False)
    ingest(WALK, tmp_path / "in", buckets=2)
    facts = [describe(source).facts for source in (WALK, tmp_path / "walk.csv", tmp_path / "in")]
    assert facts[0] == facts[1] == facts[2]
    assert (facts[0]["mobiles"], facts[0]["fixes"], facts[0]["span_s"]) == (2, 5, 500)
    assert (facts[0]["sampling_median_s"], facts[0]["gaps"], facts[0]["longest_gap_s"]) == (10, 1, 480)
    assert facts[0]["bounds"] == {"x": [0, 9], "y": [0, 0]}


def test_the_text_is_readable_and_the_page_is_escaped(tmp_path):
    shown = describe(
        ingest(WALK.rename(columns={"x": "lon", "y": "lat"}).assign(lat=50.0, lon=8.0), tmp_path / "<b>city")
    )
    assert "5 rows in: 5 kept" in str(shown)
    assert "<b>city" not in shown._repr_html_()
    assert "&lt;b&gt;city" in shown._repr_html_()


def test_a_map_is_drawn_by_whoever_can_and_gets_a_sample(tmp_path):
    fixes = City(people=3, tourists=0, cars=0, buses=0, highway=0).write(tmp_path / "city", truth=False)
    assert describe(fixes, draw=len, sample=100).map() <= 100


def test_a_map_counts_every_fix_and_says_what_it_leaves_out(tmp_path):
    crowd = pd.DataFrame({"mobile": range(1000), "t": 0, "lon": [8.0 + k % 40 / 1000 for k in range(1000)]})
    crowd["lat"] = [50.0 + k // 40 / 1000 for k in range(1000)]
    crowd.loc[0, ["lon", "lat"]] = [-170.0, -80.0]
    shown = describe(ingest(crowd, tmp_path / "<crowd>")).map().svg
    assert "1 fixes lie outside" in shown
    assert "8.0" in shown and "° E" in shown and "° N" in shown
    assert "&lt;crowd&gt;" in shown and "<crowd>" not in shown
    window = window_of(crowd["lon"].to_numpy(), crowd["lat"].to_numpy(), degrees=True)
    counts, outside = counted(window, [(crowd["lon"].to_numpy(), crowd["lat"].to_numpy())])
    assert counts.sum() + outside == 1000
    rows, columns = counts.shape
    # a degree of longitude is 0.643 of one of latitude there
    assert columns / rows == pytest.approx(40 * 0.643 / 25, rel=0.15)


def test_one_place_and_none_at_all_are_no_trouble():
    still = pd.DataFrame({"mobile": 1, "t": [1, 2], "x": 5.0, "y": 5.0})
    assert "fixes in squares of" in describe(still)._repr_html_()
    with pytest.raises(DataError, match="no coordinates"):
        describe(still[["mobile", "t"]]).map()


def test_real_cabs_are_described(shared_data, tmp_path):
    facts = describe(ingest(shared_data / "sf_cabs/cabspotting_10cabs.zip", tmp_path / "out")).facts
    assert (facts["mobiles"], facts["fixes"]) == (10, 186_763)
    assert 55 <= facts["sampling_median_s"] <= 65
