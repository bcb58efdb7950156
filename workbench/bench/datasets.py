"""How data sets get in: `python -m workbench.bench.datasets`.

* an ingest beside what pandas needs to read and sort the same file (a taxi file where one is given or found, else one
  made here);
* the peak memory of an ingest when its input grows tenfold, each in a process of its own;
* a city of a million fixes in this process, and of as many as asked for on Spark.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv

from workbench import datasets

_INGEST = """
import resource, sys
from workbench import datasets
datasets.ingest(sys.argv[1], sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """The best time of some runs."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def write_csv(path: Path, rows: int, mobiles: int = 500) -> Path:
    """Fixes in time order, as text."""
    rng = np.random.default_rng(1)
    schema = pa.schema({"mobile": pa.int64(), "t": pa.int64(), "lon": pa.float64(), "lat": pa.float64()})
    with csv.CSVWriter(path, schema) as out:
        for first in range(0, rows, 1_000_000):
            n = min(1_000_000, rows - first)
            number = np.arange(first, first + n)
            place = [np.round(at + rng.uniform(-0.1, 0.1, n), 5) for at in (-122.4, 37.77)]
            out.write_table(pa.table([number % mobiles, number // mobiles, *place], schema=schema))
    return path


def beside_pandas(file: Path, folder: Path) -> str:
    """An ingest, and what pandas needs to read and sort the same rows."""
    mobile = pd.read_csv(file, nrows=1).columns[0]
    plain = seconds(lambda: pd.read_csv(file).sort_values([mobile, "t"]))
    ours = seconds(lambda: datasets.ingest(file, folder / "ingested", overwrite=True))
    rows = datasets.open_fixes(folder / "ingested").rows
    return f"ingest of {rows:,} rows: {ours:.2f} s, pandas reads and sorts in {plain:.2f} s: {ours / plain:.2f} x"


def memory(folder: Path, rows: int) -> str:
    """The peak memory of an ingest of so many rows, and of ten times as many."""
    peaks = []
    for count in (rows, 10 * rows):
        file = write_csv(folder / f"{count}.csv", count)
        command = [sys.executable, "-c", _INGEST, str(file), str(folder / f"out-{count}")]
        peaks.append(int(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1]) / 1024)
        file.unlink()
    return f"peak memory: {rows:,} rows {peaks[0]:,.0f} MiB, {10 * rows:,} rows {peaks[1]:,.0f} MiB"


def city(folder: Path, fixes: int, engine: str) -> str:
    """How long a city of about so many fixes takes to be made and written."""
    a_day = 1_440
    made = datasets.City(people=fixes * 3 // (4 * a_day), cars=fixes // (4 * a_day), tourists=0, buses=0, highway=0)
    began = time.perf_counter()
    written = made.write(folder / f"city-{engine}", truth=False, buckets=max(8, fixes // 1_000_000), engine=engine)
    return f"city of {written.rows:,} fixes on {engine}: {time.perf_counter() - began:.1f} s"


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print a line each."""
    ask = argparse.ArgumentParser(prog="python -m workbench.bench.datasets", description=__doc__.splitlines()[0])
    ask.add_argument("--file", type=Path, help="a CSV of fixes; default: San Francisco's taxis, where found")
    ask.add_argument("--rows", type=int, default=2_000_000, help="rows of the smaller input for peak memory")
    ask.add_argument("--city", type=int, default=10_000_000, help="fixes of the city on Spark")
    chosen = ask.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="workbench-bench-") as scratch:
        folder = Path(scratch)
        file = chosen.file or datasets.find_data("sf_cabs/sf_cabs_77.csv.gz") or write_csv(folder / "a.csv", 1_600_000)
        print(beside_pandas(file, folder), flush=True)
        print(memory(folder, chosen.rows), flush=True)
        print(city(folder, 1_000_000, "local"), flush=True)
        print(city(folder, chosen.city, "spark"), flush=True)


if __name__ == "__main__":
    main()
