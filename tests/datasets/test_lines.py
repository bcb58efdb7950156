"""Lines of text: shares hold each line once, and a quote that is left open takes no row with it."""

import csv
import io
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.datasets import ingest
from workbench.datasets.formats.base import Opened, text_tables
from workbench.datasets.lines import LONGEST_ROW, Share

ENDS = st.sampled_from(["\n", "\r\n", "\n\n"])
LINES = st.lists(st.tuples(st.text("ab,", max_size=5), ENDS).map("".join), max_size=12).map("".join)


class NoSeeking(io.BytesIO):
    """What an archive gives."""

    def seekable(self) -> bool:
        return False


def share(kind, text: bytes, header: int, start: int, stop: int | None) -> bytes:
    return Share(io.BufferedReader(kind(text), 8), header, start, stop).read()


@given(LINES, st.sampled_from([0, 1]), st.lists(st.integers(1, 70), max_size=4), st.booleans(), st.booleans())
def test_shares_side_by_side_hold_each_line_once_and_the_header_each(text, header, cuts, ended, seeks):
    whole = (text if ended else text.rstrip("\r\n")).encode()
    head = b"".join(whole.splitlines(keepends=True)[:header])
    edges = [0, *sorted(set(cuts)), None]
    kind = io.BytesIO if seeks else NoSeeking
    shares = [share(kind, whole, header, a, b) for a, b in pairwise(edges)]
    assert all(one.startswith(head) for one in shares)
    assert b"".join(one[len(head) :] for one in shares) == whole[len(head) :]


def rows_of(text: str, delimiter: str = ",") -> list[tuple]:
    stream = io.BufferedReader(io.BytesIO(text.encode()))
    tables = list(text_tables(Opened("a.csv", stream), delimiter=delimiter))
    return [tuple(row.values()) for row in pa.concat_tables(tables).to_pylist()] if tables else []


# too short for a line inside that is a row by itself, which is taken for one
CELLS = st.text('ab,;" \n', max_size=5).filter(lambda cell: cell.strip() == cell and cell)


@settings(max_examples=40)
@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=6), st.sampled_from(",;\t"))
def test_whatever_a_writer_of_csv_quotes_is_read_as_it_was(rows, delimiter):
    written = io.StringIO()
    writer = csv.writer(written, delimiter=delimiter, lineterminator="\n")
    writer.writerows([("a", "b", "c"), *rows])
    assert rows_of(written.getvalue(), delimiter) == [(*row, None) for row in rows]


@pytest.mark.parametrize(
    ("text", "rows", "bad"),
    [
        ('1,"x,3\n4,5,6\n', ["456"], ['1,"x,3']),
        ('1,x"y,"z\n4,5,6\n', ["456"], ['1,x"y,"z']),
        ('1,"x""\n4,5,6\n', ["456"], ['1,"x""']),
        ('"1","2","3\n"4","5","6"\n', ["456"], ['"1","2","3']),
        ('4,5,6\n1,2,"x', ["456"], ['1,2,"x']),
        ('1,2,"x\n4,5,6\n7,8,"x\n', ["456"], ['1,2,"x', '7,8,"x']),
        ('1,2,5" pipe\n4,5,6\n', ['125" pipe', "456"], []),
        ('1,2,"x\r\ny"\r\n4,5,6\r\n', ["12x\r\ny", "456"], []),
        ('1,2,"x\r4,5,6\r', ["456"], ['1,2,"x']),
    ],
)
def test_a_quote_that_is_left_open_is_one_bad_line(text, rows, bad):
    found = rows_of("a,b,c\n" + text)
    assert ["".join(row[:3]) for row in found if row[3] is None] == rows
    assert [row[3] for row in found if row[3] is not None] == bad


@pytest.mark.parametrize("note", ["5,5,5,5,5\n" * 20_000, "no row\n" * 20_000])
def test_an_open_quote_takes_at_most_its_own_line_however_much_follows(note):
    assert len(note) > LONGEST_ROW
    found = rows_of('a,b,c,d,e\n1,2,3,4,"x\n' + note + "1,2,3,4,5\n")
    assert len(found) == 20_002
    assert [row[5] for row in found if row[5] is not None][:1] == ['1,2,3,4,"x']


def test_cells_of_several_lines_are_read_in_files_of_any_size_and_no_row_is_lost_to_an_open_quote(tmp_path):
    row = '{0},{0},{0}.5,2.5,"two\nlines of {1}"\n'.format
    text = "mobile,t,x,y,note\n" + "".join(row(i, "text" * 10) for i in range(20_000))
    (tmp_path / "a.csv").write_text(text + '1,5,1.5,2.5,"open\n' + "".join(f"30000,{i},1.5,2.5,x\n" for i in range(9)))
    fixes = ingest(tmp_path / "a.csv", tmp_path / "out")
    assert (fixes.rows, dict(fixes.report.aside)) == (20_009, {"row unreadable": 1})
    assert fixes.aside()["unread"].to_pylist() == ['1,5,1.5,2.5,"open']
    assert fixes.to_pandas().query("mobile == 7")["note"].tolist() == ["two\nlines of " + "text" * 10]
