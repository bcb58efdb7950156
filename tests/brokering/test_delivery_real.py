"""Strategies on a real stream: taxis of San Francisco that pass fuel stations, and the gaps in their traces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from workbench.brokering.delivery import GilbertElliott, Independent, Outages, Receding, SquareRoot, gaps
from workbench.brokering.delivery.frontier import PAPERS, families, tradeoff

SINCE, UNTIL = 1_211_018_404, 1_211_018_404 + 4 * 86_400


@pytest.fixture(scope="module")
def fixes(shared_data: Path) -> pd.DataFrame:
    """Four days of every second cab; no parameter was chosen on them."""
    table = pd.read_csv(shared_data / "sf_cabs" / "sf_cabs_77.csv.gz").rename(columns={"cab": "mobile"})
    held_out = sorted(table["mobile"].unique())[1::2]
    table = table[table["mobile"].isin(held_out) & table["t"].between(SINCE, UNTIL)]
    return table.sort_values(["mobile", "t"], ignore_index=True)


@pytest.fixture(scope="module")
def stream(fixes: pd.DataFrame, shared_data: Path) -> pd.DataFrame:
    """Entries and exits of 500 m around fuel stations; distances here need no care, only a plausible stream."""
    places = pd.read_csv(shared_data / "places" / "poi_sf.csv").query("category == 'fuel'")
    first = (fixes["mobile"] != fixes["mobile"].shift()).to_numpy()
    told = []
    for place, lat, lon in zip(places["poi_id"], places["lat"], places["lon"]):
        north, east = (fixes["lat"] - lat) * 111_195, (fixes["lon"] - lon) * 111_195 * np.cos(np.radians(lat))
        inside = np.hypot(north, east).to_numpy() <= 500
        before = np.where(first, False, np.roll(inside, 1))
        rows = fixes[inside != before]
        kind = np.where(inside[inside != before], "match", "unmatch")
        told.append(pd.DataFrame({"t": rows["t"], "kind": kind, "publication": place, "subscription": rows["mobile"]}))
    return pd.concat(told, ignore_index=True)


def test_two_of_ours_lie_on_the_frontier_of_a_real_stream(stream: pd.DataFrame, fixes: pd.DataFrame) -> None:
    assert len(stream) > 20_000
    papers = [s for s in families() if type(s).__name__ in PAPERS]
    ours = [Receding(t0_s=60, growth=2.0, t_max_s=7200), SquareRoot(t0_s=60, worth_s=9.6, t_max_s=7200)]
    channels = [
        Independent(0.1, breaks=0.2),
        GilbertElliott(0.01, loss_bad=0.9, good_s=1200, bad_s=200, breaks=0.3),
        Outages(0.02, table=gaps(fixes, 300), breaks=0.5),
    ]
    for channel in channels:
        table = tradeoff(stream, channel, [*papers, *ours], seeds=[101], since=SINCE, until=UNTIL)
        assert table["frontier"].tail(2).all(), type(channel).__name__
