"""Each public format as it is downloaded: a folder, a zip and a tar give the same fixes, and the format is guessed."""

from __future__ import annotations

import tarfile
import zipfile

import pandas as pd
import pytest

from workbench.datasets import FORMATS, ingest

PLT = "Geolife trajectory\nWGS 84\nAltitude is in Feet\nReserved 3\n0,2,255,My Track,0,0,2,8421376\n0\n"
GPX = (
    '<gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><name>walk</name><trkseg>'
    '<trkpt lon="8.1" lat="50.2"><time>2026-01-01T00:00:00Z</time></trkpt>'
    '<trkpt lon="8.2" lat="50.3"><time>2026-01-01T00:00:10Z</time></trkpt></trkseg></trk></gpx>'
)
KDD = "intersection_id,tollgate_id,vehicle_id,starting_time,travel_seq,travel_time"
AIS = "# Timestamp,Type of mobile,MMSI,Latitude,Longitude,Navigational status,ROT,SOG,COG,Heading"

MEMBERS: dict[str, dict[str, str]] = {
    "geolife": {
        "Data/000/Trajectory/20081023025304.plt": PLT
        + "39.9,116.3,0,492,39744.1,2008-10-23,02:53:04\n39.8,116.4,0,-777,39744.1,2008-10-23,02:53:10\n",
        "Data/000/labels.txt": "Start Time\tEnd Time\tTransportation Mode\n"
        "2008/10/23 02:53:00\t2008/10/23 02:53:05\ttrain\n",
    },
    "tdrive": {
        "1.txt": "1,2008-02-02 15:36:08,116.51172,39.92123\n1,2008-02-02 15:46:08,116.51135,39.93883\n",
        "2.txt": "2,2008-02-02 13:33:52,116.36422,39.88781\n",
    },
    "cabspotting": {
        "new_abboip.txt": "37.75134 -122.39488 0 1213084687\n37.75136 -122.39527 0 1213084659\n",
        "new_enyenewl.txt": "37.75153 -122.39447 1 1213084687\n",
    },
    "porto": {
        "train.csv": "TRIP_ID,CALL_TYPE,ORIGIN_CALL,ORIGIN_STAND,TAXI_ID,TIMESTAMP,DAY_TYPE,MISSING_DATA,POLYLINE\n"
        '"T1","C","","","20000589","1372636858","A","False","[[-8.618643,41.141412],[-8.618499,41.141376]]"\n'
    },
    "ais": {"aisdk-2024-01-01.csv": f"{AIS}\n01/01/2024 00:00:00,Class A,219000001,55.5,12.5,Moored,0,0.1,10,20\n"},
    "gpx": {"walk.gpx": GPX},
    "kdd2017": {
        "trajectories.csv": f'{KDD}\n"A","2","1065642","2016-07-19 00:14:24",'
        '"105#2016-07-19 00:14:24#9.56;100#2016-07-19 00:14:34#6.75","16.31"\n'
    },
    "metr-la": {
        "speed_2012-03-01.csv": ",".join(str(700_000 + i) for i in range(12))
        + "\n"
        + "\n".join(",".join(["64.5"] * 12) for _ in range(3))
        + "\n",
        "graph_sensor_locations.csv": "index,sensor_id,latitude,longitude\n"
        + "".join(f"{i},{700_000 + i},34.1,-118.3\n" for i in range(12)),
    },
    "csv": {"a/fixes.csv": "cab,t,lat,lon\nx,5,50.2,8.1\n", "b/fixes.csv": "cab,t,lat,lon\ny,6,50.3,8.2\n"},
}
ROWS = {
    "geolife": 2, "tdrive": 3, "cabspotting": 3, "porto": 2, "ais": 1, "gpx": 2, "kdd2017": 2, "metr-la": 36, "csv": 2,
}  # fmt: skip


def packed(name: str, folder, kind: str):
    plain = folder / "plain"
    for member, text in MEMBERS[name].items():
        (plain / member).parent.mkdir(parents=True, exist_ok=True)
        (plain / member).write_text(text)
    if kind == "zip":
        with zipfile.ZipFile(folder / "download.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for member in MEMBERS[name]:
                archive.write(plain / member, member)
        return folder / "download.zip"
    if kind == "tar":
        with tarfile.open(folder / "download.tar.gz", "w:gz") as archive:
            archive.add(plain, arcname="published")
        return folder / "download.tar.gz"
    return plain


def test_every_format_is_tried():
    assert set(MEMBERS) | {"parquet"} == set(FORMATS)


@pytest.mark.parametrize("name", list(MEMBERS))
def test_a_format_is_guessed_and_read_alike_from_a_folder_a_zip_and_a_tar(name, tmp_path):
    found: list[pd.DataFrame] = []
    for kind in ("folder", "zip", "tar"):
        (tmp_path / kind).mkdir()
        fixes = ingest(packed(name, tmp_path / kind, kind), tmp_path / kind / "out")
        assert f"format {name!r} ({FORMATS[name].title}) was guessed" in str(fixes)
        assert fixes.report.adds_up and fixes.rows == ROWS[name] == fixes.report.rows
        if FORMATS[name].zone is not None:
            assert f"published zone {FORMATS[name].zone}" in str(fixes)
        found.append(fixes.to_pandas())
    assert found[0].equals(found[1]) and found[0].equals(found[2])
    if name == "geolife":
        assert found[0]["mode"].tolist() == ["train", None]
