"""The small files in `data/samples`: made by the city, and made again by `python -m workbench.datasets.samples
FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from workbench.datasets.city import City
from workbench.datasets.places import write_places

SAMPLE = City(
    seed=2026,
    people=12,
    tourists=3,
    cars=6,
    buses=2,
    highway=12,
    interval_s=120,
    coffee=10,
    food=10,
    shop=10,
    fuel=4,
    museums=1,
)
"""A day of a very small city."""


def write_samples(folder: str | Path) -> list[Path]:
    """Write the samples and return their paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in (("fixes", SAMPLE.fixes()), ("truth", SAMPLE.truth())):
        plain = pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata(None)
        pq.write_table(plain, folder / f"{name}.parquet", compression="zstd")
    write_places(SAMPLE.places(), folder / "places.parquet")
    write_places(SAMPLE.profiles(), folder / "profiles.parquet")
    write_places(SAMPLE.rooms(), folder / "rooms.parquet")
    return sorted(folder.glob("*.parquet"))


if __name__ == "__main__":
    for path in write_samples(sys.argv[1] if len(sys.argv) > 1 else "data/samples"):
        print(path)
