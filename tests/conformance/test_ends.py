"""What has ended: an update does not bring it back, and a profile that was removed says nothing any more."""

import random

import pandas as pd
import pytest

from workbench import (
    Scenario,
    Space,
    column,
    location,
    minutes,
    other,
    own,
    publications,
    region,
    replay,
    subscriptions,
)

shop = Space("shop", kind=str) | location


def scenario(profile: pd.DataFrame, offers_for: int = 5, sales_for: int = 9) -> Scenario:
    """Two populations of the same places, with lifetimes of their own, and people whose wishes are profiles."""
    regions = {"offer": region(shop, kind=column.kind, position=column.position)}
    near = other.here.within(10, own.offer, space=location)
    sides = [
        publications("offers", rows="places", regions=regions, filter=near, lifetime=minutes(offers_for)),
        publications("sales", rows="places", regions=regions, filter=near, lifetime=minutes(sales_for)),
    ]
    wish = region(shop, kind=column.wish.or_else("nothing"))
    people = subscriptions(
        "people", rows="fixes", profiles="wishes",
        regions={"here": region(location, position=column.position), "wish": wish},
        filter=other.offer.overlaps(own.wish, space=shop),
    )  # fmt: skip
    return Scenario([location, shop], sides, [people], tick=minutes(1), tables={"wishes": profile})


def told(fixes, places, profile, engines=("reference", "local")) -> list[tuple]:
    found = [replay(scenario(profile), fixes, places, engine) for engine in engines]
    assert all(found[0].timelines.equals(one.timelines) for one in found)
    assert len({one.metrics["rows_set_aside"] for one in found}) == 1
    rows = found[0].timelines.drop(columns="subscription").astype(object)
    return [*rows.where(rows.notna(), None).itertuples(index=False, name=None), found[0].metrics["rows_set_aside"]]


ANN = pd.DataFrame({"mobile": ["ann", "ann"], "t": [1, 40], "x": [0.0, 0.0], "y": [0.0, 0.0]})
COFFEE = pd.DataFrame({"id": ["ann"], "wish": ["coffee"]})


def places(*rows) -> pd.DataFrame:
    return pd.DataFrame([{"place": "bean", "kind": "coffee", "x": 0.0, "y": 0.0, "t": t, "op": op} for t, op in rows])


def test_an_update_after_the_end_of_a_lifetime_is_set_aside_and_an_add_begins_anew():
    ended = [("offers/bean", 1, 6, "publication_removed"), ("sales/bean", 1, 10, "publication_removed")]
    assert told(ANN, places((1, "add"), (20, "update")), COFFEE) == [*ended, 1]
    again = [("offers/bean", 20, 25, "publication_removed"), ("sales/bean", 20, 29, "publication_removed")]
    assert told(ANN, places((1, "add"), (20, "add")), COFFEE) == [*ended, *again, 0]
    assert told(ANN, places((1, None), (20, None)), COFFEE) == [*ended, *again, 0]


def test_an_update_goes_on_where_the_row_still_lives_and_nowhere_else():
    lines = [("offers/bean", 1, 6, "publication_removed"), ("sales/bean", 1, 17, "publication_removed")]
    assert told(ANN, places((1, "add"), (8, "update")), COFFEE) == [*lines, 0]


def test_a_removed_profile_says_nothing_until_it_comes_again():
    rows = {"id": ["ann"] * 3, "t": [1, 3, 4], "op": ["add", "remove", "add"], "wish": ["coffee", None, None]}
    wishes = pd.DataFrame(rows)
    lines = [("offers/bean", 1, 3, "unmatch"), ("sales/bean", 1, 3, "unmatch")]
    assert told(ANN, places((1, "add")), wishes) == [*lines, 0]
    again = [("offers/bean", 4, 6, "publication_removed"), ("sales/bean", 4, 10, "publication_removed")]
    assert told(ANN, places((1, "add")), wishes.assign(wish=["coffee", None, "coffee"])) == [*lines, *again, 0]


@pytest.mark.parametrize("seed", range(30))
def test_engines_agree_on_what_has_ended(seed):
    draw = random.Random(seed)

    def history(key, name, cells, first=("add",)):
        times = sorted(draw.sample(range(1, 40), draw.randint(1, 6)))
        ops = [draw.choice(first), *(draw.choice(["add", "update", "remove", None]) for _ in times[1:])]
        return [{key: name, "t": t, "op": op, **cells()} for t, op in zip(times, ops, strict=True)]

    kinds = ["coffee", "tea"]
    shops = [
        row
        for name in ("bean", "leaf")
        for row in history("place", name, lambda: {"kind": draw.choice(kinds), "x": draw.choice([0.0, 50.0]), "y": 0.0})
    ]
    wishes = [
        row
        for name in ("ann", "bob")
        for row in history("id", name, lambda: {"wish": draw.choice([*kinds, None])}, ("add", "update", None))
    ]
    walks = [
        row
        for name in ("ann", "bob")
        for row in history("mobile", name, lambda: {"x": draw.choice([0.0, 50.0]), "y": 0.0})
    ]
    told(*map(pd.DataFrame, (walks, shops, wishes)))
