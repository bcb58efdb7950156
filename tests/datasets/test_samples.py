"""The samples in the repository are what the city makes today."""

import pandas as pd
import pyarrow.parquet as pq

from workbench.datasets.samples import write_samples


def test_the_samples_are_made_by_the_city_and_small(project_root, tmp_path):
    kept = project_root / "data" / "samples"
    for made in write_samples(tmp_path):
        pd.testing.assert_frame_equal(pq.read_table(made).to_pandas(), pq.read_table(kept / made.name).to_pandas())
    assert sum(file.stat().st_size for file in kept.iterdir()) < 1_000_000


def test_every_format_is_told_in_the_readme(project_root):
    from workbench.datasets import FORMATS

    text = (project_root / "data" / "README.md").read_text()
    assert all(f"--format {name}" in text for name in FORMATS if name != "parquet")
