"""Inputs that nobody asked for and everybody has: each is read as a person would read it, or refused in a sentence."""

from __future__ import annotations

import datetime
import gzip

import geopandas
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workbench.datasets import bucket_of, ingest, load, report_of
from workbench.errors import DataError

TWO = [(1, 5, 8.1, 50.2), (2, 6, 8.2, 50.3)]
HEAD = "mobile,t,lon,lat\n"


def read(path, content, **options):
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(data)
    return load(path, **{"max_bad_share": 1.0, **options})


def rows_of(table) -> list[tuple]:
    return list(table[["mobile", "t", "lon", "lat"]].itertuples(index=False, name=None))


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "1,5,8.1,50.2\n2,6,8.2,50.3\n",
        HEAD + "1,5,8.1,50.2\n2,6,8.2,50.3",
        HEAD.replace("\n", "\r") + "1,5,8.1,50.2\r2,6,8.2,50.3\r",
        HEAD.replace("\n", "\r\n") + "1,5,8.1,50.2\r\n\r\n2,6,8.2,50.3\r\n",
        "\ufeff" + '"mobile","t","lon","lat"\n"1","5","8.1","50.2"\n2,6,8.2,50.3\n',
        "mobile;t;lon;lat\n1;5;8.1;50.2\n2;6;8.2;50.3\n",
        "mobile;t;lon;lat\n1;5;8,1;50,2\n2;6;8,2;50,3\n",
        'mobile;t;lon;lat;"a, b, c, d, e"\n1;5;8.1;50.2;\n2;6;8.2;50.3;\n',
        "mobile\tt\tlon\tlat\n1\t5\t8.1\t50.2\n2\t6\t8.2\t50.3\n",
        "mobile t lon lat\n1 5 8.1 50.2\n2 6 8.2 50.3\n",
        "Mobile,T,LONGITUDE,Lat\n1,5,8.1,50.2\n2,6,8.2,50.3\n",
        " mobile , t , lon , lat \n 1 , 5 , 8.1 , 50.2 \n 2 , 6 , 8.2 , 50.3 \n",
        HEAD + "1,5.0,8.1,50.2\n2,6.,8.2,50.3\n",
        "lat,t,mobile,lon\n50.2,5,1,8.1\n50.3,6,2,8.2\n",
        "Mobile,mobile,t,lon,lat\nx,1,5,8.1,50.2\ny,2,6,8.2,50.3\n",
    ],
)
def test_one_table_written_in_many_ways_is_one_table(tmp_path, text):
    assert rows_of(read(tmp_path / "a.csv", text)) == TWO


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "latin-1", "cp1252"])
def test_an_encoding_that_is_said_is_used_for_the_guess_too(tmp_path, encoding):
    text = "mobile,t,lon,lat,café\n1,5,8.1,50.2,à\n2,6,8.2,50.3,ö\n"
    table = read(tmp_path / "a.csv", text.encode(encoding), encoding=encoding)
    assert rows_of(table) == TWO
    assert table["café"].tolist() == ["à", "ö"]


def test_a_single_file_is_read_in_the_format_that_is_named_whatever_its_name_ends_in(tmp_path):
    assert rows_of(read(tmp_path / "a.dat", HEAD + "1,5,8.1,50.2\n2,6,8.2,50.3\n", format="csv")) == TWO


def test_text_that_is_packed_under_a_plain_name_is_told(tmp_path):
    with pytest.raises(DataError, match=r"packed with gzip; let its name end in \.gz"):
        read(tmp_path / "a.csv", gzip.compress(HEAD.encode()))


def test_whole_numbers_are_exact_beside_cells_that_cannot_be_read(tmp_path):
    first = 1_600_000_000_000_000_001
    table = read(tmp_path / "a.csv", HEAD + f"1,{first},8,50\n1,soon,8,50\n1,{10**20},8,50\n1,{-first},8,50\n")
    assert table["t"].tolist() == [-first, first]
    assert report_of(table).aside == {"time unreadable": 2}


@pytest.mark.parametrize(
    "ids",
    [
        [2**53 + 1, 2**53],
        [2**63 - 1, -(2**63)],
        ["340282366920938463463374607431768211456", "340282366920938463463374607431768211457"],
        ["007", "7"],
        ["1.0", "1"],
        ["1e5", "100000"],
        ["true", "false"],
    ],
)
def test_ids_stay_apart_and_as_they_were(tmp_path, ids):
    table = read(tmp_path / "a.csv", HEAD + "".join(f"{name},{k},8,50\n" for k, name in enumerate(ids)))
    assert dict(zip(table["t"], table["mobile"], strict=True)) == dict(enumerate(ids))


def test_long_numbers_lie_in_one_bucket_as_text_and_as_numbers():
    numbers = [2**53 + 1, 10**18, 2**63 - 1, -(2**63), 10**17, -(10**18)]
    as_text = bucket_of(pa.array([str(n) for n in numbers]), 1000).tolist()
    assert as_text == bucket_of(pa.array(numbers, pa.int64()), 1000).tolist()
    large = [2**64 - 1, 2**63]
    assert bucket_of(pa.array(map(str, large)), 1000).tolist() == bucket_of(pa.array(large, pa.uint64()), 1000).tolist()


def test_numbers_of_64_bits_without_a_sign_are_ids(tmp_path):
    ids = [2**64 - 1, 2**63]
    fixes = ingest({"mobile": pd.array(ids, "UInt64"), "t": [1, 2], "x": [1e3, 0.0], "y": [0.0, 0.0]}, tmp_path / "out")
    assert fixes.to_pandas()["mobile"].tolist() == sorted(ids)


def test_attributes_named_like_what_the_gate_says_or_like_coordinates_are_kept(tmp_path):
    header = "mobile,t,lon,lat,reason,unread,x,y\n"
    for table in (
        read(tmp_path / "a.csv", header + "1,5,8.1,50.2,holiday,no,3,4\n1,,8,50,work,yes,5,6\n"),
        load(
            pa.table({"mobile": [1, 1], "t": [5, None], "lon": [8.1, 8.0], "lat": [50.2, 50.0]})
            .append_column("reason", [["holiday", "work"]])
            .append_column("unread", [["no", "yes"]])
            .append_column("x", [[3, 5]])
            .append_column("y", [[4, 6]]),
            max_bad_share=1.0,
        ),
    ):
        assert table.drop(columns=["lon", "lat"]).values.tolist() == [[1, 5, "holiday", "no", 3, 4]]
        assert list(table.columns)[4:] == ["reason_", "unread_", "x_", "y_"]
        assert report_of(table).aside == {"time unreadable": 1}


def test_lists_and_records_are_attributes_too(tmp_path):
    table = pa.table(
        {
            "mobile": ["a", "a", "b", "b"],
            "t": [1, 1, 1, 1],
            "x": [1e3] * 4,
            "y": [0.0] * 4,
            "tags": [["p"], ["p"], ["p"], ["q"]],
            "more": [{"k": 1}] * 4,
            "day": [datetime.date(2026, 1, 1)] * 4,
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    fixes = ingest(tmp_path / "a.parquet", tmp_path / "out", max_bad_share=0.5)
    assert (fixes.report.kept, fixes.report.collapsed, fixes.report.aside) == (1, 1, {"conflicting (mobile, t)": 2})
    assert fixes.to_arrow().to_pylist() == table.slice(0, 1).to_pylist()
    assert fixes.schema.field("day").type == pa.date32()


def test_text_in_typed_tables_is_read_or_set_aside_with_its_text(tmp_path):
    table = pa.table({"mobile": ["a", "a"], "t": ["1", "2"], "x": ["1000", "far"], "y": [0.0, 0.0]})
    fixes = ingest(table, tmp_path / "out", max_bad_share=0.5)
    assert fixes.to_arrow().to_pylist() == [{"mobile": "a", "t": 1, "x": 1000.0, "y": 0.0}]
    assert fixes.aside().select(["reason", "unread"]).to_pylist() == [
        {"reason": "not finite", "unread": '{"x": "far"}'}
    ]


@pytest.mark.parametrize("crs", ["EPSG:4326", "EPSG:25832", "EPSG:3857"])
def test_geoparquet_of_points_is_read_as_its_geodataframe(tmp_path, crs):
    points = geopandas.points_from_xy([8.1, 8.2], [50.2, 50.3], crs="EPSG:4326")
    frame = geopandas.GeoDataFrame({"mobile": [1, 2], "t": [5, 6]}, geometry=points).to_crs(crs)
    frame.rename_geometry("where").to_parquet(tmp_path / "a.parquet")
    fixes = ingest(tmp_path / "a.parquet", tmp_path / "file")
    table = ingest(frame, tmp_path / "frame")
    assert fixes.to_pandas().equals(table.to_pandas())
    assert fixes.crs == table.crs == crs


def test_geoparquet_without_a_known_reference_system_is_refused(tmp_path):
    points = geopandas.points_from_xy([8.1], [50.2])
    geopandas.GeoDataFrame({"mobile": [1], "t": [5]}, geometry=points).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="reference system of 'geometry' is unknown"):
        ingest(tmp_path / "a.parquet", tmp_path / "out")


def test_pandas_with_an_index_a_dictionary_and_mixed_ids():
    frame = pd.DataFrame({"mobile": [1, 2], "t": [5, 6], "lon": [8.1, 8.2], "lat": [50.2, 50.3]})
    assert rows_of(load(frame.set_index(["mobile", "t"]))) == TWO
    assert rows_of(load(frame.set_index("mobile", drop=False))) == TWO
    assert rows_of(load(frame.to_dict("list"))) == TWO
    with pytest.raises(DataError, match="mixes types"):
        load(frame.assign(mobile=[1, "a"]))
