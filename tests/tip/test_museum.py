"""The museum of sections 5 and 7 from end to end, event by event."""

from __future__ import annotations

import pytest

from workbench.tip.museum import CITY, MUSEUM, visit
from workbench.tip.recording import read, replayed, written
from workbench.tip.walk import SECOND, Walk, first_states


@pytest.fixture(scope="module")
def day() -> Walk:
    return visit()


def test_the_museum_is_entered_and_left_where_its_area_begins_and_ends(day: Walk) -> None:
    assert [(t // SECOND, kind) for t, kind, _ in day.passages] == [(24, "match"), (37, "unmatch")]


def test_the_better_location_is_used_all_the_time(day: Walk) -> None:
    got = [event for event in day.world.received("map", "Location") if event.category == "location"]
    used = [(event.time // SECOND, event.quality) for event in got]
    assert {q for t, q in used if t < 24} == {95} == {q for t, q in used if t > 37}
    assert {q for t, q in used if 26 <= t < 36} == {90}
    assert len({t for t, _ in used}) == 61, "there is a position every second, whoever gives it"
    places = [x for _, x, _ in day.world.hosts["history"].memory]
    assert places == sorted(places), "no position is older than the one before"


def test_the_auxiliary_service_lives_as_long_as_it_is_needed(day: Walk) -> None:
    lines = [(t // SECOND, text) for t, text in day.world.log if "auxiliary/reader" in text]
    assert [(24 <= t <= 25, "starts" in text) for t, text in lines if "starts" in text] == [(True, True)]
    assert [36 <= t <= 38 for t, text in lines if "stops" in text] == [True]
    assert "auxiliary/reader" in day.snapshots[1].services
    assert day.world.hosts["auxiliary/reader"].ended


def test_the_museum_s_information_and_map_join_and_leave(day: Walk) -> None:
    shown = day.world.hosts["display"].memory.shown
    assert list(dict.fromkeys(id for _, id in shown)) == ["cathedral", "vase", "coin", "fountain"]
    assert all(24 <= t / SECOND < 38 for t, id in shown if id in ("vase", "coin"))
    assert [when.map for when in day.snapshots] == ["city -1 0", "museum plan", "city 0 0"]
    told = [event.type for event in day.world.hosts["museum information"].received if event.category == "system"]
    assert told[0] == "Stalled" and told[-1] == "Stalled" and "Subscribed" in told


def test_leaving_reverses_everything(day: Walk) -> None:
    before, inside, after = day.snapshots
    assert before.services == after.services and before.brokers == after.brokers == {"city"}
    assert inside.brokers == {"city", "museum"} and inside.services != before.services


def test_nobody_learns_a_name_and_the_day_can_be_replayed(day: Walk) -> None:
    for host in day.world.hosts.values():
        assert not any(event.publisher for event in host.received) and not host.faults
    stored = read(written(day.world.recording))
    assert replayed(first_states((CITY, MUSEUM)), stored) == day.world.recording


def test_where_a_sight_is_is_drawn_on_the_map_and_moves_nobody(day: Walk) -> None:
    known = day.world.hosts["map"].memory
    assert known.sights["vase"] == (-20.0, 0.0) and set(known.sights) == {"cathedral", "vase", "coin", "fountain"}
    assert known.position == (300.0, 0.0)


def test_the_walk_is_read_off_as_timelines(day: Walk) -> None:
    rows = list(day.timelines[["publication", "tau", "pi"]].itertuples(index=False, name=None))
    assert rows == [("cathedral", 7, 14), ("museum", 24, 37), ("vase", 27, 30), ("coin", 32, 35), ("fountain", 47, 54)]
    assert len(day.notifications) == 10 and len(day.fixes) == 61 and len(day.places) == 5
