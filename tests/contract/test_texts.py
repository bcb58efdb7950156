"""A CSV in pieces is the CSV: the same cells of the same types, and the same faults."""

import gzip

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench import replay, tables
from workbench.engines import spark as engine
from workbench.errors import DataError

CELLS = {
    "mobile": ["7", "007", "9007199254740993", "a", "", " 5"],
    "t": ["1", "2", " 3", "2026-01-01T00:00:00Z", "", "4.5"],
    "x": ["1", "2.5", "", "-0.0"],
    "fuel": ["1", "2", "", "3.5", "much"],
    "open": ["true", "False", "", "1"],
    "note": ["", "a,b", "1"],
}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.sampled_from(",;\t"), st.integers(1, 4))
def test_the_pieces_of_a_csv_make_up_the_csv(tmp_path, data, separator, rows):
    few = {name: data.draw(st.lists(st.sampled_from(cells), min_size=1, unique=True)) for name, cells in CELLS.items()}
    row = st.tuples(*(st.sampled_from(cells) for cells in few.values()))
    frame = pd.DataFrame(data.draw(st.lists(row, max_size=8)), columns=list(CELLS))
    if separator != "," and data.draw(st.booleans()):
        frame["x"] = frame["x"].str.replace(".", ",")
    path = tmp_path / "table.csv"
    frame.to_csv(path, sep=separator, index=False)
    whole, pieces = tables.load(path), list(tables.in_pieces(path, rows=rows))
    assert all(piece.schema == pieces[0].schema and piece.num_rows <= rows for piece in pieces)
    found = pd.concat([piece.to_pandas(integer_object_nulls=True) for piece in pieces], ignore_index=True)
    assert list(found.columns) == list(whole.columns)
    shown = [one.astype(object).where(one.notna(), None) for one in (found, whole)]
    assert shown[0].values.tolist() == shown[1].values.tolist()


ROWS = ["mobile,t,lon,lat,op", "1,1,8.6,50.0,", "1,2,9.0,50.0,", "2,1,8.6,50.0,", "2,3,8.7,51.0,"]
CAFE = {"place": ["a"], "lon": [8.6], "lat": [50.0]}


def told(path, engine):
    try:
        made = replay("proximity", path, pd.DataFrame(CAFE), engine)
    except DataError as error:
        return str(error)
    lines = tables.load(made.timelines)
    return sorted(lines.astype(object).where(lines.notna(), None).values.tolist(), key=str), made.metrics["rows_in"]


def test_a_csv_is_replayed_on_spark_as_here_and_never_whole_in_this_process(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.tables.texts.PIECE_ROWS", 2)
    path = tmp_path / "fixes.csv.gz"
    path.write_bytes(gzip.compress("\n".join([*ROWS, *ROWS[2:4]]).encode()))
    here = told(path, "local")
    assert len(here[0]) == 2
    monkeypatch.setattr(engine, "sharded", None)
    monkeypatch.setattr("workbench.tables.texts.whole", None)
    assert told(path, "spark") == here


FAULTS = {
    "a row without a time": "2,,8.6,50.0,",
    "a time that is none": "2,soon,8.6,50.0,",
    "a row without an id": ",4,8.6,50.0,",
    "a row outside the globe": "2,4,8.6,95.0,",
    "an infinite coordinate": "2,4,inf,50.0,",
    "an operation that is none": "2,4,8.6,50.0,move",
    "a coordinate that is no number": "2,4,east,50.0,",
    "a cell too many": "2,4,8.6,50.0,,5",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_with_a_csv_is_said_on_spark_as_here(spark, tmp_path, fault):
    path = tmp_path / "fixes.csv"
    path.write_text("\n".join([*ROWS, FAULTS[fault]]))
    assert isinstance(said := told(path, "local"), str)
    assert told(path, "spark") == said
