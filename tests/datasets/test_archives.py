"""Archives and files from strangers: a clear error or a counted row each, and never a write outside the target."""

import gzip
import io
import os
import tarfile
import zipfile

import pytest

from workbench.datasets import ingest
from workbench.datasets.archives import open_source
from workbench.errors import DataError

CSV = "mobile,t,x,y\n1,1,5,5\n2,1,6,6\n"


def zipped(path, **members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "/"), text)
    return path


def tarred(path, entries):
    with tarfile.open(path, "w:gz") as archive:
        for entry, data in entries:
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


@pytest.mark.parametrize("kind", ["folder", "file", "gz", "zip", "tar", "tgz"])
def test_the_same_rows_come_from_a_folder_a_file_a_zip_and_a_tar(tmp_path, kind):
    if kind == "folder":
        source = tmp_path / "in"
        source.mkdir()
        (source / "a.csv").write_text(CSV)
    elif kind == "file":
        source = tmp_path / "a.csv"
        source.write_text(CSV)
    elif kind == "gz":
        source = tmp_path / "a.csv.gz"
        source.write_bytes(gzip.compress(CSV.encode()))
    elif kind == "zip":
        source = zipped(tmp_path / "a.zip", **{"some folder__a.csv": CSV, "readme.md": "hello"})
    else:
        source = tmp_path / ("a.tar" if kind == "tar" else "a.tar.gz")
        with tarfile.open(source, "w" if kind == "tar" else "w:gz") as archive:
            entry = tarfile.TarInfo("data/a.csv")
            entry.size = len(CSV)
            archive.addfile(entry, io.BytesIO(CSV.encode()))
    fixes = ingest(source, tmp_path / "out")
    assert fixes.to_pandas().values.tolist() == [[1, 1, 5, 5], [2, 1, 6, 6]]


@pytest.mark.parametrize("name", ["../evil.csv", "/etc/evil.csv", "a/../../evil.csv", "C:\\evil.csv", "..\\evil.csv"])
def test_a_member_that_leaves_the_archive_is_refused(tmp_path, name):
    zipped(tmp_path / "in.zip", **{name: CSV})
    with pytest.raises(DataError, match="leaves the archive"):
        ingest(tmp_path / "in.zip", tmp_path / "out")
    tarred(tmp_path / "in.tar.gz", [(tarfile.TarInfo(name), CSV.encode())])
    with pytest.raises(DataError, match="leaves the archive"):
        ingest(tmp_path / "in.tar.gz", tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.tar.gz", "in.zip"]


def test_links_are_refused(tmp_path):
    link = tarfile.TarInfo("a.csv")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    tarred(tmp_path / "in.tar.gz", [(link, b"")])
    with pytest.raises(DataError, match="link or a device"):
        open_source(tmp_path / "in.tar.gz")
    entry = zipfile.ZipInfo("a.csv")
    entry.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr(entry, "/etc/passwd")
    with pytest.raises(DataError, match="link or a device"):
        open_source(tmp_path / "in.zip")
    (tmp_path / "in").mkdir()
    (tmp_path / "secret.csv").write_text(CSV)
    os.symlink(tmp_path / "secret.csv", tmp_path / "in" / "a.csv")
    with pytest.raises(DataError, match="leaves the folder"):
        open_source(tmp_path / "in")


def test_absurd_ratios_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.datasets.archives.HARMLESS", 1 << 20)
    zipped(tmp_path / "in.zip", **{"a.csv": "mobile,t,x,y\n" + "0" * (3 << 20)})
    with pytest.raises(DataError, match="over 250 times"):
        open_source(tmp_path / "in.zip")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"mobile,t,x,y\n" + b"1,1,1,1\n" * (1 << 20)))
    with pytest.raises(DataError, match="over 250 times"):
        ingest(tmp_path / "a.csv.gz", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_bomb_of_a_tar_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.datasets.archives.HARMLESS", 1 << 20)
    tarred(tmp_path / "in.tar.gz", [(tarfile.TarInfo("a.csv"), b"mobile,t,x,y\n" + b"1,1,1,1\n" * (1 << 20))])
    with pytest.raises(DataError, match="over 250 times"):
        ingest(tmp_path / "in.tar.gz", tmp_path / "out")


def test_two_members_of_one_name_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr("a.csv", CSV)
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a.csv", CSV)
    with pytest.raises(DataError, match="two members"):
        open_source(tmp_path / "in.zip")


@pytest.mark.parametrize("cut", [0.5, 0.9])
def test_truncated_files_are_one_clear_error(tmp_path, cut):
    text = "mobile,t,x,y\n" + "".join(f"{i},{i},{i * 7919 % 1000},{i * 104729 % 1000}\n" for i in range(50_000))
    packed = gzip.compress(text.encode())
    (tmp_path / "a.csv.gz").write_bytes(packed[: int(len(packed) * cut)])
    with pytest.raises(DataError, match="broken or cut off"):
        ingest(tmp_path / "a.csv.gz", tmp_path / "out")
    zipped(tmp_path / "b.zip", **{"b.csv": text})
    whole = (tmp_path / "b.zip").read_bytes()
    (tmp_path / "b.zip").write_bytes(whole[: int(len(whole) * cut)])
    with pytest.raises(DataError, match="is the download complete"):
        ingest(tmp_path / "b.zip", tmp_path / "out")
    tarred(tmp_path / "c.tar.gz", [(tarfile.TarInfo("c.csv"), text.encode())])
    whole = (tmp_path / "c.tar.gz").read_bytes()
    (tmp_path / "c.tar.gz").write_bytes(whole[: int(len(whole) * cut)])
    with pytest.raises(DataError, match=r"download complete|cut off"):
        ingest(tmp_path / "c.tar.gz", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_damaged_zip_member_names_itself(tmp_path):
    zipped(tmp_path / "in.zip", **{"a.csv": CSV + "3,3,3,3\n" * 1000})
    data = bytearray((tmp_path / "in.zip").read_bytes())
    data[60:70] = b"\xff" * 10
    (tmp_path / "in.zip").write_bytes(bytes(data))
    with pytest.raises(DataError, match=r"a\.csv"):
        ingest(tmp_path / "in.zip", tmp_path / "out")


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf" + CSV.replace("\n", "\r\n").encode())
    assert ingest(tmp_path / "a.csv", tmp_path / "out").to_pandas().values.tolist() == [[1, 1, 5, 5], [2, 1, 6, 6]]


def test_rows_in_a_wrong_encoding_are_counted_and_the_encoding_can_be_said(tmp_path):
    (tmp_path / "a.csv").write_bytes("mobile,t,x,y,name\n1,1,5,5,Café\n2,1,6,6,plain\n".encode("latin-1"))
    fixes = ingest(tmp_path / "a.csv", tmp_path / "out", max_bad_share=0.5)
    assert fixes.report.aside == {"row unreadable": 1}
    assert fixes.aside()["unread"].to_pylist() == ["1,1,5,5,Caf\\xe9"]
    assert ingest(tmp_path / "a.csv", tmp_path / "two", encoding="latin-1").to_pandas()["name"].tolist() == [
        "Café",
        "plain",
    ]
    (tmp_path / "b.csv").write_bytes("mobile,t,x,y\n1,1,5,5\n".encode("utf-16"))
    with pytest.raises(DataError, match="UTF-16"):
        ingest(tmp_path / "b.csv", tmp_path / "three", format="csv")
    assert ingest(tmp_path / "b.csv", tmp_path / "four", format="csv", encoding="utf-16").rows == 1


def test_lines_with_too_few_or_too_many_cells_are_counted_and_kept_as_text(tmp_path):
    (tmp_path / "a.csv").write_text(CSV + "3\n4,1,1,1,1\n")
    fixes = ingest(tmp_path / "a.csv", tmp_path / "out", max_bad_share=0.5)
    assert fixes.report.aside == {"row unreadable": 2}
    assert sorted(fixes.aside()["unread"].to_pylist()) == ["3", "4,1,1,1,1"]


def test_cells_that_cannot_be_read_are_kept_as_text_beside_their_row(tmp_path):
    (tmp_path / "a.csv").write_text(
        "mobile,t,lon,lat\n7,2008-02-02T16:00:00Z,8.5,50\n7,yesterday,8.5,50\n7,2008-02-02T16:00:01Z,east,50\n"
    )
    fixes = ingest(tmp_path / "a.csv", tmp_path / "out", max_bad_share=0.9)
    assert fixes.report.aside == {"time unreadable": 1, "not finite": 1}
    assert set(fixes.aside()["unread"].to_pylist()) == {'{"t": "yesterday"}', '{"lon": "east"}'}


@pytest.mark.parametrize("name", ["a.csv", "a.gpx", "a.plt", "a.parquet"])
def test_empty_files_are_told(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(DataError, match=r"not recognised|holds no rows"):
        ingest(tmp_path / name, tmp_path / "out")


def test_an_empty_file_among_others_does_no_harm(tmp_path):
    source = zipped(tmp_path / "in.zip", **{"a.csv": "", "b.csv": CSV})
    assert ingest(source, tmp_path / "out").rows == 2


def test_a_file_that_is_no_parquet_is_named(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 but nothing else")
    with pytest.raises(DataError, match=r"a\.parquet: is no readable Parquet"):
        ingest(tmp_path / "a.parquet", tmp_path / "out")
