"""Each public format as it is published, in small; zones and columns are declared or refused."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workbench.datasets import ingest, load, report_of, to_geodataframe, to_trajectories, write_geoparquet
from workbench.datasets.quality import QualityWarning
from workbench.errors import DataError

PLT = "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255,My Track,0,0,2,8421376\n0\n"


def test_geolife_folders_give_users_trajectories_and_transport_modes(tmp_path):
    folder = tmp_path / "Geolife Trajectories 1.3" / "Data" / "010"
    (folder / "Trajectory").mkdir(parents=True)
    (folder / "Trajectory" / "20070804033032.plt").write_text(
        PLT
        + "39.921712,116.472343,0,13,39298.1,2007-08-04,03:30:32\r\n"
        + "39.921705,116.472343,0,-777,39298.2,2007-08-04,03:40:00\r\n"
        + "39.921695,116.472345,0,13,39298.3,2007-08-04,04:30:00\r\n"
    )
    (folder / "labels.txt").write_text(
        "Start Time\tEnd Time\tTransportation Mode\n2007/08/04 03:30:32\t2007/08/04 03:40:00\tbus\n"
    )
    table = load(tmp_path)
    assert table["mobile"].tolist() == ["010"] * 3
    assert table["mode"].tolist() == ["bus", "bus", None]
    assert table["trajectory"].unique().tolist() == ["20070804033032"]
    assert table["alt_m"].round(4).tolist()[0] == 3.9624
    assert table["alt_m"].isna().tolist() == [False, True, False]
    assert table["t"][0] == pd.Timestamp("2007-08-04 03:30:32", tz="UTC")


def test_t_drive_text_is_local_to_beijing_unless_another_zone_is_given(tmp_path):
    (tmp_path / "1.txt").write_text("1,2008-02-02 15:36:08,116.51172,39.92123\n")
    table = load(tmp_path / "1.txt")
    assert table["t"][0] == pd.Timestamp("2008-02-02 07:36:08", tz="UTC")
    assert any("Asia/Shanghai" in note for note in report_of(table).notes)
    assert load(tmp_path / "1.txt", zone="UTC")["t"][0] == pd.Timestamp("2008-02-02 15:36:08", tz="UTC")


def test_swapped_coordinates_of_a_known_city_are_suspected(tmp_path):
    (tmp_path / "new_abboip.txt").write_text("-122.39488 37.75134 0 1213084687\n")
    with pytest.warns(QualityWarning, match="swapped"):
        load(tmp_path / "new_abboip.txt", max_bad_share=1)


def test_swapped_coordinates_that_stay_on_the_globe_are_suspected_by_the_formats_region(tmp_path):
    names = "TRIP_ID,CALL_TYPE,TAXI_ID,TIMESTAMP,POLYLINE"
    (tmp_path / "train.csv").write_text(names + '\n1,A,7,1372636858,"[[41.1,-8.6]]"\n')
    with pytest.warns(QualityWarning, match="swapped"):
        load(tmp_path / "train.csv")


def test_cabs_that_run_backwards_in_time_are_sorted_and_counted(tmp_path):
    (tmp_path / "new_abboip.txt").write_text("37.75134 -122.39488 0 1213084687\n37.75136 -122.39527 0 1213084659\n")
    table = load(tmp_path / "new_abboip.txt")
    assert table["mobile"].unique().tolist() == ["abboip"]
    assert table["t"].is_monotonic_increasing
    assert report_of(table).out_of_order == 1


def test_porto_reads_lon_before_lat_every_fifteen_seconds_and_sets_broken_trips_aside(tmp_path):
    names = "TRIP_ID CALL_TYPE ORIGIN_CALL ORIGIN_STAND TAXI_ID TIMESTAMP DAY_TYPE MISSING_DATA POLYLINE"
    header = ",".join(f'"{name}"' for name in names.split()) + "\n"
    (tmp_path / "train.csv").write_text(
        header
        + '"1","C","","","20000589","1372636858","A","False","[[-8.618643,41.141412],[-8.618499,41.141376]]"\n'
        + '"2","C","","","20000589","1372637000","A","False","[]"\n'
        + '"3","B","","15","20000600","1372637000","A","False","[[-8.6,41.1],[-8.6]]"\n'
        + '"4","B","","15","20000600","1372638000","A","False","[[-8.6, 41.1]]"\n'
    )
    table = load(tmp_path / "train.csv", max_bad_share=0.5)
    assert table[["mobile", "lon", "lat", "trip"]].values.tolist() == [
        [20000589, -8.618643, 41.141412, "1"],
        [20000589, -8.618499, 41.141376, "1"],
        [20000600, -8.6, 41.1, "4"],
    ]
    assert (table["t"][1] - table["t"][0]).total_seconds() == 15
    assert report_of(table).aside == {"row unreadable": 1}


def test_danish_ais_is_read_day_first_and_unavailable_positions_are_set_aside(tmp_path):
    (tmp_path / "aisdk_20210108.csv").write_text(
        "# Timestamp,Type of mobile,MMSI,Latitude,Longitude,Navigational status,ROT,SOG,COG,Heading,IMO,Callsign,"
        "Name,Ship type\n"
        "08/01/2021 00:00:05,Class A,219001559,57.592245,9.975512,Under way,0.0,0.1,200.1,,9000001,OXYZ,MARIE,Cargo\n"
        "08/01/2021 00:00:07,Base Station,2190064,91,0,Unknown value,,,,,Unknown,,,Undefined\n"
    )
    table = load(tmp_path / "aisdk_20210108.csv", max_bad_share=0.5)
    assert table["t"].tolist() == [pd.Timestamp("2021-01-08 00:00:05", tz="UTC")]
    assert table[["mobile", "sog_kn", "name"]].values.tolist() == [[219001559, 0.1, "MARIE"]]
    assert report_of(table).aside == {"outside the globe": 1}


GPX = """<?xml version="1.0"?>
<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1"><wpt lat="1" lon="1"/>
<trk><name>Morning &amp; ride</name><trkseg>
<trkpt lat="49.1" lon="8.1"><ele>100.5</ele><time>2024-05-01T10:00:00Z</time></trkpt>
<trkpt lat="49.2" lon="8.2"><time>2024-05-01T10:00:10+02:00</time></trkpt></trkseg>
<trkseg><trkpt lat="49.3" lon="8.3"></trkpt></trkseg></trk></gpx>"""


def test_gpx_tracks_are_read_with_segments_and_points_without_time_are_set_aside(tmp_path):
    (tmp_path / "ride.gpx").write_text(GPX)
    table = load(tmp_path / "ride.gpx", max_bad_share=0.5)
    assert table[["mobile", "lon", "lat", "segment"]].values.tolist() == [
        ["Morning & ride", 8.2, 49.2, 1],
        ["Morning & ride", 8.1, 49.1, 1],
    ]
    assert report_of(table).aside == {"time unreadable": 1}


@pytest.mark.parametrize(
    "doctype",
    [
        '<!DOCTYPE gpx [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE gpx [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]>',
        '<!DOCTYPE gpx SYSTEM "http://example.org/x.dtd">',
    ],
)
def test_gpx_with_a_document_type_is_refused(tmp_path, doctype):
    text = GPX.replace('<?xml version="1.0"?>', '<?xml version="1.0"?>' + doctype).replace(
        "Morning", "&x;" if "x SYS" in doctype else "b"
    )
    (tmp_path / "evil.gpx").write_text(text)
    with pytest.raises(DataError, match="DOCTYPE"):
        load(tmp_path / "evil.gpx")


def test_a_broken_gpx_is_named(tmp_path):
    (tmp_path / "cut.gpx").write_text(GPX[:300])
    with pytest.raises(DataError, match=r"cut\.gpx: is no readable GPX"):
        load(tmp_path / "cut.gpx")


def test_local_times_without_a_zone_are_refused_and_read_with_one(tmp_path):
    (tmp_path / "a.csv").write_text(
        "mobile,t,lon,lat\n1,2024-03-31 01:30:00,8,50\n1,2024-03-31 02:30:00,8,50\n1,2024-10-27 02:30:00,8,50\n"
    )
    with pytest.raises(DataError, match=r"'2024-03-31 01:30:00' are local and name no zone"):
        load(tmp_path / "a.csv")
    with pytest.raises(DataError, match="did you mean 'Europe/Berlin'"):
        load(tmp_path / "a.csv", zone="Europe/Berln")
    table = load(tmp_path / "a.csv", zone="Europe/Berlin", max_bad_share=0.9)
    # the second instant does not exist there, and the third happens twice
    assert table["t"].tolist() == [pd.Timestamp("2024-03-31 00:30", tz="UTC")]
    assert report_of(table).aside == {"time unreadable": 2}
    with pytest.raises(DataError, match="are local"):
        load(pd.DataFrame({"mobile": [1], "t": pd.to_datetime(["2024-01-01"]), "x": [1.0], "y": [1.0]}))


def test_times_with_and_without_an_offset_may_be_mixed_when_a_zone_is_given(tmp_path):
    (tmp_path / "a.csv").write_text("mobile,t,lon,lat\n1,2024-01-01 12:00:00+00,8,50\n2,2024-01-01 12:00:00,8,50\n")
    table = load(tmp_path / "a.csv", zone="Europe/Berlin")
    assert table["t"].dt.hour.tolist() == [12, 11]


def test_columns_are_mapped_misspellings_get_a_hint_and_decimals_need_a_tick(tmp_path):
    (tmp_path / "a.csv").write_text("who;when;px;py\n007;0.5;1;2\n")
    columns = {"mobile": "who", "t": "when", "x": "px", "y": "py"}
    table = load(tmp_path / "a.csv", columns=columns, tick_s=0.1)
    assert table.values.tolist() == [["007", 5, 1, 2]]
    with pytest.raises(DataError, match="say tick_s="):
        load(tmp_path / "a.csv", columns=columns)
    with pytest.raises(DataError, match="column 'whom' for 'mobile' is not there; did you mean 'who'"):
        load(tmp_path / "a.csv", columns=columns | {"mobile": "whom"})
    (tmp_path / "b.csv").write_text("who,px,py\n1,1,1\n")
    with pytest.raises(DataError, match=r"no column for 't' among who, px"):
        load(tmp_path / "b.csv", columns={"mobile": "who"})
    assert load(tmp_path / "a.csv", columns=columns, time="unix")["t"][0] == pd.Timestamp(0.5, unit="s", tz="UTC")


def test_the_type_of_a_column_depends_on_all_of_it_not_on_the_batch(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.datasets.formats.base.BLOCK", 40_000)
    monkeypatch.setattr("workbench.datasets.ingesting.BATCH_ROWS", 500)
    rows = [f"{i},{i},1,1,{i},{i},true" for i in range(5_000)]
    rows[4_500] = "x9,4500,1,1,2.5,late,"
    (tmp_path / "a.csv").write_text("mobile,t,x,y,number,text,flag\n" + "\n".join(rows) + "\n")
    fixes = ingest(tmp_path / "a.csv", tmp_path / "out")
    kinds = {f.name: str(f.type) for f in fixes.schema}
    assert kinds == {
        "mobile": "string",
        "t": "int64",
        "x": "double",
        "y": "double",
        "number": "double",
        "text": "string",
        "flag": "bool",
    }


def test_only_the_columns_asked_for_are_kept(tmp_path):
    (tmp_path / "a.csv").write_text("mobile,t,x,y,speed,note\n1,1,1,1,3,hello\n")
    assert load(tmp_path / "a.csv", keep=["speed"]).columns.tolist() == ["mobile", "t", "x", "y", "speed"]
    with pytest.raises(DataError, match="did you mean 'speed'"):
        load(tmp_path / "a.csv", keep=["sped"])


def test_parquet_keeps_the_types_of_ids_times_and_attributes(tmp_path):
    table = pa.table(
        {
            "mobile": pa.array([1, 2], pa.int32()),
            "t": pa.array([1_000, 2_000], pa.timestamp("ms", tz="UTC")),
            "x": pa.array([1, 2], pa.int64()),
            "y": [1.0, 2.0],
            "kind": pa.array(["a", "b"]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    fixes = ingest(tmp_path / "a.parquet", tmp_path / "out")
    assert [str(t) for t in fixes.schema.types] == ["int32", "timestamp[ms, tz=UTC]", "double", "double", "string"]


def test_an_unknown_format_and_an_unrecognised_source_are_told(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"\x00\x01")
    with pytest.raises(DataError, match="not recognised"):
        load(tmp_path / "a.bin")
    with pytest.raises(DataError, match="did you mean 'geolife'"):
        load(tmp_path / "a.bin", format="geolive")
    with pytest.raises(DataError, match="no such file"):
        load(tmp_path / "nothing")


def some_fixes() -> pd.DataFrame:
    t = pd.to_datetime(["2024-01-01 10:00", "2024-01-01 10:01", "2024-01-01 10:00"], utc=True).astype(
        "datetime64[us, UTC]"
    )
    return pd.DataFrame(
        {"mobile": ["a", "a", "b"], "t": t, "lon": [8.0, 8.1, 9.0], "lat": [50.0, 50.1, 51.0], "fuel": [1, 2, 3]}
    )


def test_geodataframes_go_out_and_come_back(tmp_path):
    frame = to_geodataframe(some_fixes())
    back = load(frame)[some_fixes().columns]
    pd.testing.assert_frame_equal(back, some_fixes(), check_dtype=False)
    write_geoparquet(some_fixes(), tmp_path / "fixes.parquet")
    import geopandas

    assert geopandas.read_parquet(tmp_path / "fixes.parquet").crs.to_epsg() == 4326
    metres = load(frame.to_crs("EPSG:32632"))
    assert {"x", "y"} <= set(metres.columns)
    assert metres.attrs["crs"] == "EPSG:32632"
    with pytest.raises(DataError, match="no coordinate reference system"):
        load(frame.set_crs(None, allow_override=True))
    unknown = frame.to_crs("EPSG:32632").set_crs(None, allow_override=True)
    assert load(unknown, crs="EPSG:32632").equals(metres)
    unknown.to_parquet(tmp_path / "unknown.parquet")
    with pytest.raises(DataError, match=r"is unknown; write the file with one, or say it with crs="):
        load(tmp_path / "unknown.parquet")
    assert load(tmp_path / "unknown.parquet", crs="EPSG:32632").equals(metres)
    with pytest.raises(DataError, match="fixes are points, the GeoDataFrame holds Polygon"):
        load(frame.to_crs("EPSG:32632").buffer(1).to_frame("geometry"))


def test_what_geodataframes_cannot_carry_is_said_and_a_fix_without_a_position_has_no_geometry():
    moves = some_fixes().assign(op=[None, "update", None], lon=[8.0, None, 9.0], lat=[50.0, None, 51.0])
    frame = to_geodataframe(moves)
    assert frame.geometry.isna().tolist() == [False, True, False]
    pd.testing.assert_frame_equal(load(frame)[moves.columns], moves, check_dtype=False)
    with pytest.warns(QualityWarning, match="do not say the reference system of their metres"):
        assert to_geodataframe(some_fixes().rename(columns={"lon": "x", "lat": "y"})).crs is None


def test_moving_pandas_goes_out_and_comes_back_and_says_what_it_cannot_carry():
    pytest.importorskip("movingpandas")
    with pytest.warns(QualityWarning, match="1 mobiles have a single fix"):
        tracks = to_trajectories(some_fixes())
    with pytest.warns(QualityWarning, match="1 fixes have no position"):
        to_trajectories(some_fixes().assign(lat=[50.0, 50.1, None]))
    back = load(tracks)
    expected = some_fixes().iloc[:2]
    assert back["mobile"].tolist() == ["a", "a"]
    assert back["t"].tolist() == expected["t"].tolist()
    assert back[["lon", "lat", "fuel"]].values.tolist() == expected[["lon", "lat", "fuel"]].values.tolist()
    with pytest.raises(DataError, match="whole ticks"):
        to_trajectories(some_fixes().assign(t=[1, 2, 1]))
