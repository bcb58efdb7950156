"""Rows of one thing at one instant: the rule, group by group, against tables of pandas and of Arrow."""

import datetime
import decimal
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from workbench import tables
from workbench.model.columns import is_null

NAN = float("nan")
KINDS = {
    "decimals": (st.sampled_from([None, NAN, 0.0, -0.0, 1.5]), "float64"),
    "nullable decimals": (st.sampled_from([None, 0.5, 1.5]), "Float64"),
    "whole": (st.sampled_from([1, 2]), "int64"),
    "nullable whole": (st.sampled_from([None, 1, 2**60, 2**60 + 1]), "Int64"),
    "words": (st.sampled_from([None, "", "a", "b"]), "object"),
    "typed words": (st.sampled_from([None, "", "a"]), "string"),
    "kinds": (st.sampled_from([None, "a", "b"]), "category"),
    "flags": (st.sampled_from([None, True, False]), "object"),
    "mixed": (st.sampled_from([None, NAN, pd.NA, 1, 1.0, True, "1", decimal.Decimal(1), (1, 2)]), "object"),
    "lists": (st.sampled_from([None, [1], [1, 2], {"a": 1}, {1, 2}]), "object"),
    "instants": (st.sampled_from([None, pd.Timestamp("2026-01-01", tz="UTC"), pd.Timestamp(1, tz="UTC")]), "object"),
    "shapes": (st.sampled_from([None, shapely.Point(0, 0), shapely.Point(0, 1), shapely.Point()]), "object"),
}


def comparable(value):
    if hasattr(value, "wkb"):
        return value.wkb
    return repr(value) if isinstance(value, list | dict | set) else value


def merged(rows):
    """One row for all rows of one (id, t); None where two of them contradict each other: the definition."""
    row = {}
    for name in rows[0]:
        known = [row[name] for row in rows if not is_null(row[name])]
        distinct = list({comparable(v): v for v in known}.values())
        if name == "op" and {*distinct} == {"remove", "add"}:
            distinct = ["update"]
        if len(distinct) > 1:
            return None
        row[name] = distinct[0] if distinct else None
    return row


def by_definition(rows):
    """What is left of rows, in the order of (id, t), and how many are set aside."""
    groups = {}
    for row in rows:
        groups.setdefault((row["id"], row["t"] if not is_null(row["t"]) else None), []).append(row)
    found = [(len(group), merged(group)) for group in groups.values()]
    return [row for _, row in found if row is not None], sum(count for count, row in found if row is None)


def told(row):
    """A row as text, in which 0.0 and -0.0 are one number."""
    cells = {name: None if is_null(cell) else comparable(cell) for name, cell in sorted(row.items())}
    return repr(cells).replace("-0.0", "0.0")


@st.composite
def repeated_rows(draw, kind=None, ids=((1, 2), ("a", "b"), (1, "1", 2.5)), times=(None, 1, 2)):
    kinds = [kind] if kind else draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3, unique=True))
    id = st.sampled_from(draw(st.sampled_from(ids)))
    ops = st.sampled_from(draw(st.sampled_from([(None,), (None, "add", "update", "remove"), ("add", "remove")])))
    cells = st.fixed_dictionaries(
        {"id": id, "t": st.sampled_from(times), **{kind: KINDS[kind][0] for kind in kinds}, "op": ops}
    )
    return draw(st.lists(cells, min_size=1, max_size=12))


def frame_of(rows):
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    t = pd.array(columns.pop("t"), dtype="Int64")
    made = {name: pd.Series(cells, dtype=KINDS.get(name, (0, "object"))[1]) for name, cells in columns.items()}
    return pd.DataFrame({"id": made.pop("id"), "t": t, **made})


@given(repeated_rows())
def test_rows_of_one_instant_are_merged_or_set_aside_group_by_group(rows):
    frame = frame_of(rows)
    expected, aside = by_definition(rows)
    found, counted = tables.one_row_per_instant(frame)
    assert counted == aside
    assert found.dtypes.equals(frame.dtypes)
    assert found["t"].is_monotonic_increasing or found["t"].isna().any()
    ours = frame_of(expected).to_dict("records") if expected else []
    assert sorted(map(told, found.to_dict("records"))) == sorted(map(told, ours))


ARROW = {
    "decimals": (pa.float64(), [None, NAN, 0.0, -0.0, 1.5]),
    "halves": (pa.float16(), [None, np.float16(NAN), np.float16(1.5)]),
    "whole": (pa.int32(), [None, 1, 2]),
    "words": (pa.string(), [None, "", "a"]),
    "kinds": (pa.dictionary(pa.int8(), pa.string()), [None, "a", "b"]),
    "flags": (pa.bool_(), [None, True, False]),
    "lists": (pa.list_(pa.int64()), [None, [], [1], [1, 2]]),
    "records": (pa.struct([("a", pa.int64())]), [None, {"a": 1}, {"a": None}]),
    "days": (pa.date32(), [None, datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)]),
    "instants": (pa.timestamp("us", tz="UTC"), [None, pd.Timestamp(0, tz="UTC"), pd.Timestamp(1_000, tz="UTC")]),
    "prices": (pa.decimal128(9, 2), [None, decimal.Decimal("1.00"), decimal.Decimal("2.50")]),
    "bytes": (pa.binary(), [None, b"", b"a"]),
    "nothing": (pa.null(), [None]),
}


@given(st.data())
@pytest.mark.parametrize("kind", ARROW)
def test_rows_of_arrow_are_merged_by_the_same_rule(kind, data):
    given_type, values = ARROW[kind]
    one = st.tuples(st.sampled_from([7, 8]), st.sampled_from([1, 2]), st.sampled_from(values))
    rows = sorted(data.draw(st.lists(one, min_size=1, max_size=10)), key=lambda row: row[:2])
    mobile, t, cells = zip(*rows, strict=True)
    table = pa.table({"id": mobile, "t": t, "cell": pa.array(cells, given_type)})
    again = np.array([False, *(a[:2] == b[:2] for a, b in pairwise(rows))])
    expected, aside = by_definition(table.to_pylist())
    found, conflicts, places = tables.merged_table(table, again)
    assert found.schema == table.schema
    assert conflicts.num_rows == aside
    assert list(map(told, found.to_pylist())) == list(map(told, expected))
    assert [(mobile[n], t[n]) for n in places] == [(row["id"], row["t"]) for row in expected]
