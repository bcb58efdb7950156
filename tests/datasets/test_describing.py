"""A description says what is there, from a folder, a table or a file, and never runs what a name says."""

import pandas as pd
import pytest

from workbench.datasets import City, describe, ingest
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
    with pytest.raises(DataError, match="no way to draw"):
        describe(fixes).map()


def test_real_cabs_are_described(shared_data, tmp_path):
    facts = describe(ingest(shared_data / "sf_cabs/cabspotting_10cabs.zip", tmp_path / "out")).facts
    assert (facts["mobiles"], facts["fixes"]) == (10, 186_763)
    assert 55 <= facts["sampling_median_s"] <= 65
