"""What receivers do not tell is drawn by id: an excerpt, a whole and a truth agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from workbench.datasets import City, drawn, excerpt, ingest
from workbench.datasets.walks import walks, wandering
from workbench.errors import DataError

CITY = City(seed=5, people=8, tourists=0, cars=4, buses=0, highway=0, interval_s=600, size_m=2000)


def stamps(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(t=pd.to_datetime(table["t"], unit="s", utc=True))


def test_a_person_is_the_same_in_any_excerpt() -> None:
    whole, some = drawn.people(CITY.mobile_ids(), seed=3), drawn.people(CITY.mobile_ids()[:5], seed=3)
    pd.testing.assert_frame_equal(whole.head(5), some)
    assert whole["age"].between(16, 80).all()
    assert drawn.people(range(2000), opted_in=0.7)["adverts"].mean() == pytest.approx(0.7, abs=0.05)


def test_a_drawn_tank_falls_with_the_way_is_filled_up_and_is_low_before_that() -> None:
    """10 km between fixes are 0.8 l of 45 l: 1.778 per cent."""
    drive = pd.DataFrame({"mobile": 7, "t": range(200), "x": np.arange(200) * 1e4, "y": 0.0})
    tank = drawn.tanks(drive)
    step = -tank.fuel.diff().dropna()
    assert step[step > 0].round(9).nunique() == 1 and step.max() == pytest.approx(100 * 0.8 / 45)
    assert (step < 0).sum() >= 3
    assert (tank.fuel < tank.refuel_level).any() and tank.fuel.between(0, 100).all()


@pytest.mark.parametrize("timed", [lambda table: table, stamps])
def test_calls_begin_once_and_last_as_long_as_they_should(timed) -> None:
    fixes = timed(pd.DataFrame({"mobile": np.repeat(range(40), 144), "t": list(range(0, 86_400, 600)) * 40}))
    calling = drawn.calls(fixes, share=1.0, lasting_min=60).state.eq("calling").groupby(fixes.mobile)
    assert calling.sum().max() == 6
    assert (calling.agg(lambda state: state.astype(int).diff().eq(1).sum()) <= 1).all()
    assert not drawn.calls(fixes, share=0.0).state.eq("calling").any()


@pytest.mark.parametrize("timed", [lambda table: table, stamps])
def test_everybody_has_a_circle_and_a_meeting_of_two_hours(timed) -> None:
    fixes = timed(pd.DataFrame({"mobile": np.repeat(range(9), 25), "t": list(range(0, 90_000, 3_600)) * 9}))
    profiles = drawn.circles(fixes, 3, meeting_h=2)
    assert profiles.t.dtype == fixes.t.dtype
    first = profiles.groupby("id").first()
    assert first.role.equals(first.seeks.rename("role")) and first.role.nunique() <= 3
    busy = profiles[profiles.context == "in a meeting"].set_index("id").t
    free = profiles[profiles.context == "free"].groupby("id").t.last()
    assert set((free - busy).unique()) == {pd.Timedelta(hours=2) if timed is stamps else 7200}


def test_an_excerpt_of_ingested_fixes_is_that_of_the_table(tmp_path: Path) -> None:
    fixes = CITY.fixes()
    ingest(fixes, tmp_path / "city", buckets=2)
    asked = {"hours": 3.0, "mobiles": 4}
    some = excerpt(tmp_path / "city", **asked)
    assert some.mobile.nunique() == 4 and some.t.max() - some.t.min() <= pd.Timedelta(hours=3)
    told = excerpt(fixes, **asked)
    assert some[["mobile", "t", "x", "y"]].sort_values(["mobile", "t"], ignore_index=True).equals(
        told[["mobile", "t", "x", "y"]].sort_values(["mobile", "t"], ignore_index=True)
    )
    assert len(excerpt(fixes)) == len(fixes)


def test_walks_stay_on_the_field_and_refuse_other_moves() -> None:
    made = walks(wandering(5, moves=50, blocks=3, seed=2), block_m=100)
    assert made[["x", "y"]].min().min() >= 0 and made[["x", "y"]].max().max() <= 300
    assert made.groupby("mobile").t.max().eq(50 * 60).all()
    with pytest.raises(DataError, match="'you' moves 'Q'"):
        walks({"you": ((0, 0), "NQ")})


def test_noise_does_not_change_where_one_was() -> None:
    ways = wandering(2, moves=20, seed=1)
    off = walks(ways, noise_m=5.0)[["x", "y"]] - walks(ways)[["x", "y"]]
    assert off.to_numpy().std() == pytest.approx(5.0, rel=0.15)
