"""A tourist's day over the synthetic city, with services that appear and disappear (TIP 3, 1)."""

from __future__ import annotations

import pytest

from workbench.datasets.city import City
from workbench.errors import DataError
from workbench.tip.day import tourist_day
from workbench.tip.walk import SECOND, USER, Walk

CITY = City(seed=7, people=0, tourists=4, cars=0, buses=0, highway=0, interval_s=120, start=None)
LIKES = ("art", "coffee", "food")


@pytest.fixture(scope="module")
def day() -> Walk:
    fixes = CITY.fixes(["t0000003"]).query("37_000 < t < 48_000")
    return tourist_day(fixes, "t0000003", CITY.places().drop_duplicates("place"), CITY.rooms(), LIKES, ahead_m=300)


def test_services_appear_and_disappear_with_the_areas_of_their_providers(day: Walk) -> None:
    entered = [(kind, name) for _, kind, name in day.passages]
    assert {name.partition("-")[0] for _, name in entered} == {"museum", "coffee"}
    for (t, kind, name), before, after in zip(day.passages, day.snapshots, day.snapshots[1:]):
        assert (name in before.brokers, name in after.brokers) == ((kind == "unmatch"), (kind == "match")), t
    assert day.snapshots[0].brokers == {"city"}


def test_what_is_delivered_is_what_lies_at_the_true_position(day: Walk) -> None:
    """The model's overlap, asked for each provider where it is to be had, judges what the display was told."""
    from workbench.tip.services import suggested

    expected = {
        (fix.t // SECOND, sight.id)
        for fix in day.given
        for one in day.providers
        if one.holds(fix)
        for sight in suggested(one.sights, LIKES, (fix.x, fix.y))
    }
    assert {(t // SECOND, id) for t, id in day.shown.shown} == expected and len(expected) > 20


def test_the_day_in_figures_agrees_with_its_messages(day: Walk) -> None:
    found, sent = day.figures, day.messages
    remote = sent[(sent["sender"] == USER) & sent["receiver"].isin([one.name for one in day.providers])]
    assert found["messages"] == len(sent) and found["requests that the cache answered"] > 0
    asked = remote[remote["cacheable"] & remote["type"].str.endswith("Request")]
    assert found["requests sent"] == asked["id"].nunique()
    assert found["items delivered"] == len({id for _, id in day.shown.shown})
    assert found["recommendations"] > 0 and found["items recommended"] >= 2
    assert not any(host.faults for host in day.world.hosts.values())


def test_a_timeline_lasts_from_fix_to_fix_as_the_user_is_where_he_was_last(day: Walk) -> None:
    told: dict[str, list[tuple[int, int]]] = {}
    for fix, following in zip(day.given, day.given[1:]):
        for id in {id for t, id in day.shown.shown if t // SECOND == fix.t // SECOND}:
            mine = told.setdefault(id, [])
            joined = bool(mine) and mine[-1][1] == fix.t // SECOND
            begin = mine.pop()[0] if joined else fix.t // SECOND
            mine.append((begin, following.t // SECOND))
    rows = day.timelines[~day.timelines["publication"].isin([one.name for one in day.providers])]
    found = {(str(row.publication), row.tau, row.pi) for row in rows.itertuples()}
    assert found == {(id, *one) for id, some in told.items() for one in some} and len(found) > 8


def test_maps_fetched_ahead_are_counted_beside_those_that_were_waited_for(day: Walk) -> None:
    found, sent = day.figures, day.messages
    ahead = sent[(sent["sender"] == USER) & (sent["type"] == "MapRequest") & sent["prefetched"]]
    assert found["maps fetched ahead"] == ahead["id"].nunique() > found["of these never needed"] > 0
    maps = sent[(sent["sender"] == "map") & (sent["type"] == "MapRequest")]
    assert 0 < found["maps waited for"] < maps["id"].nunique(), "some were at hand"


def test_a_day_of_nobody_is_refused() -> None:
    with pytest.raises(DataError, match="no fixes of 'nobody'"):
        tourist_day(CITY.fixes(["t0000003"]), "nobody", CITY.places(), CITY.rooms(), LIKES)
