"""Made-up fixes and places for measurements: random walks in a square, in time order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(frozen=True)
class Workload:
    """So many fixes of so many mobiles that walk in a square, against so many places."""

    fixes: int = 10_000_000
    mobiles: int = 10_000
    places: int = 1_000
    radius_m: float = 500.0
    side_m: float = 50_000.0
    step_m: float = 150.0
    seed: int = 1

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Fixes in time order, as one Parquet file, and places; made once."""
        fixes, places = folder / f"fixes-{self.fixes}-{self.mobiles}.parquet", folder / f"places-{self.places}.parquet"
        folder.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(self.seed)
        sites = rng.uniform(0, self.side_m, (2, self.places))
        pq.write_table(pa.table({"place": np.arange(self.places), "x": sites[0], "y": sites[1]}), places)
        if not fixes.exists():
            self._walk(rng, fixes)
        return fixes, places

    def _walk(self, rng: np.random.Generator, target: Path) -> None:
        here = rng.uniform(0, self.side_m, (2, self.mobiles))
        steps = -(-self.fixes // self.mobiles)
        draft = target.with_suffix(".unfinished")
        schema = pa.schema({"mobile": pa.int64(), "t": pa.int64(), "x": pa.float64(), "y": pa.float64()})
        with pq.ParquetWriter(draft, schema) as out:
            per_batch = max(1, 1_000_000 // self.mobiles)
            for first in range(0, steps, per_batch):
                count = min(per_batch, steps - first)
                moves = rng.normal(0, self.step_m, (2, count, self.mobiles))
                walked = here[:, None, :] + moves.cumsum(axis=1)
                # a wall at each side: what would leave the square comes back into it
                walked = np.abs(walked) % (2 * self.side_m)
                walked = np.where(walked > self.side_m, 2 * self.side_m - walked, walked)
                here = walked[:, -1, :]
                out.write_table(
                    pa.table(
                        {
                            "mobile": np.tile(np.arange(self.mobiles), count),
                            "t": np.repeat(np.arange(first, first + count) * 10 + 1, self.mobiles),
                            "x": walked[0].ravel(),
                            "y": walked[1].ravel(),
                        }
                    )
                )
        draft.rename(target)
