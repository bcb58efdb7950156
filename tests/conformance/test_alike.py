"""Pairs that have a value in common are found without looking at all pairs, and are those of the definition."""

import warnings
from random import Random

import pandas as pd
import pytest

from workbench import (
    Scenario,
    Space,
    any_region,
    between,
    column,
    location,
    now,
    one_of,
    other,
    own,
    publications,
    region,
    replay,
    subscriptions,
    tau,
    ticks,
)
from workbench.model.extents import anything_but

SHOP = Space("shop", kind=str, price=float) | location
KINDS = ["tea", "coffee", "books", "music", None]


def scenario(relation: str, plain: str) -> Scenario:
    """Offers and wishes of sets, intervals and whole domains, without anything that an index over positions serves."""
    offer = {"kind": column.kind, "price": between(column.low, column.high)}
    wish = {"kind": column.kind, "price": between(column.low, column.high)}
    regions = {"offer": region(SHOP, **offer), "goods": region(SHOP, kind=column.kind)}
    filters = {
        "comparison": other.goods["kind"] == own.taste["kind"],
        "match": getattr(other.offer, relation)(own.wish, space=Space("price", price=float)),
        "either": getattr(other.offer, relation)(own.wish, space=SHOP) | (other.goods["kind"] == own.taste["kind"]),
        "third": (other.goods["kind"] == own.taste["kind"])
        & (now - tau(own.taste.overlaps(any_region("offers.goods"), space=Space("kind", kind=str))) > ticks(2)),
    }
    return Scenario(
        [SHOP, Space("price", price=float), Space("kind", kind=str)],
        [publications("offers", rows="places", regions=regions)],
        [
            subscriptions(
                "people",
                rows="fixes",
                regions={"wish": region(SHOP, **wish), "taste": region(SHOP, kind=column.kind)},
                filter=filters[plain],
            )
        ],
    )


def rows(draw: Random, name: str, count: int) -> pd.DataFrame:
    """Distinct values are many beside the pairs, so that an index has something to spare."""
    listed = []
    for n in range(count):
        low = draw.choice([-1.5, 0.0, 1.0, 2.0, 2.0**53, 7.25]) + draw.randrange(3)
        listed.append(
            {
                name: n // 2, "t": 1 + n % 2 * draw.randrange(1, 5), "x": 0.0, "y": 0.0, "low": low,
                "high": low + draw.choice([0.0, 0.0, 1.0]), "kind": draw.choice(KINDS) or f"kind {draw.randrange(9)}",
            }
        )  # fmt: skip
    return pd.DataFrame(listed)


@pytest.mark.parametrize(
    ("relation", "plain"),
    [("overlaps", "comparison"), ("overlaps", "third")]
    + [(relation, plain) for relation in ("overlaps", "contains", "enclosed_by") for plain in ("match", "either")],
)
def test_the_tables_of_the_reference_and_no_warning(relation: str, plain: str) -> None:
    met, spared = 0, 0
    for seed in range(8):
        draw = Random(seed)
        made, fixes, places = scenario(relation, plain), rows(draw, "mobile", 10), rows(draw, "place", 8)
        expected = replay(made, fixes, places, "reference").timelines
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            done = replay(made, fixes, places, "local")
        assert done.timelines.equals(expected), seed
        met += len(expected)
        spared += not said
    assert met > 5
    assert spared == 8


def test_many_are_matched_by_their_kind() -> None:
    goods = Space("goods", kind=str)
    taste = other.offer.overlaps(own.wish, space=goods)
    made = Scenario(
        [goods],
        [publications("offers", rows="places", regions={"offer": region(goods, kind=column.kind)})],
        [subscriptions("people", rows="fixes", regions={"wish": region(goods, kind=column.kind)}, filter=taste)],
    )
    n = 30_000
    ids = [f"kind {k}" for k in range(n)]
    fixes = pd.DataFrame({"mobile": range(n), "t": 1, "kind": ids})
    done = replay(made, fixes, pd.DataFrame({"place": range(n), "kind": ids}))
    assert len(done.timelines) == n
    assert done.plan == f"offers × people: {n:,} of {n * n:,} pairs by offer' m_o wish"


@pytest.mark.parametrize("wish", [one_of("tea", "coffee"), anything_but("books")])
def test_sets_and_their_complements(wish) -> None:
    goods = Space("goods", kind=str)
    taste = other.offer.overlaps(own.wish, space=goods)
    made = Scenario(
        [goods],
        [publications("offers", rows="places", regions={"offer": region(goods, kind=column.kind)})],
        [subscriptions("people", rows="fixes", regions={"wish": region(goods, kind=wish)}, filter=taste)],
    )
    fixes = pd.DataFrame({"mobile": [1, 2], "t": 1})
    places = pd.DataFrame({"place": range(4), "kind": ["tea", "coffee", "books", "music"]})
    found = [replay(made, fixes, places, engine).timelines for engine in ("reference", "local")]
    assert found[0].equals(found[1]) and len(found[0])
