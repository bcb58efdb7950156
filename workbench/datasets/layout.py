"""The layout of fixes on disk.

    city/
      manifest.json                 written last: a folder without it is no data set
      fixes/bucket-00000.parquet    the fixes of the mobiles in bucket 0, sorted by (mobile, t)
      _aside/*.parquet              the rows that were set aside, with their reason

A mobile lies whole in one bucket, so a replay needs no shuffle. The bucket is `hash(mobile) mod buckets`:

* a whole number of 64 bits, or text that is the plain decimal form of one, is hashed by the finaliser of
  SplitMix64 (Steele, Lea, Flood 2014), so that 7 and "7" lie in one bucket;
* other text is hashed by FNV-1a (64 bits) over its UTF-8 bytes, then by the same finaliser.

The hash is computed by `bucket_of` here, in this process and in Spark's Python workers alike. Everything is written
in a sibling folder and renamed as the last step, so a run that is killed leaves nothing that looks complete.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet as pq

from workbench.datasets.quality import Report
from workbench.errors import DataError

MANIFEST = "manifest.json"
SCHEMA_VERSION = 1
ROW_GROUP = 1 << 18
HASH = "splitmix64 of int64; splitmix64(fnv1a64(utf8)) of other text"
_OTHER = "arrow:"
_WHOLE = r"^(0|-?[1-9][0-9]{0,19})$"


def mix64(values: np.ndarray) -> np.ndarray:
    """The next output of SplitMix64 for each state."""
    z = values.astype(np.uint64)
    with np.errstate(over="ignore"):
        z = z + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _fnv(text: pa.Array) -> np.ndarray:
    text = pa.concat_arrays([text.cast(pa.large_binary())])
    offsets = np.frombuffer(text.buffers()[1], np.int64)[text.offset : text.offset + len(text) + 1]
    data = np.frombuffer(text.buffers()[2] or b"", np.uint8)
    length = np.diff(offsets)
    hashed = np.full(len(text), 0xCBF29CE484222325, np.uint64)
    for position in range(int(length.max(initial=0))):
        live = np.flatnonzero(length > position)
        with np.errstate(over="ignore"):
            hashed[live] = (hashed[live] ^ data[offsets[live] + position]) * np.uint64(0x100000001B3)
    return hashed


def hash_ids(ids: pa.Array) -> np.ndarray:
    """The 64-bit hash of each id."""
    if pa.types.is_integer(ids.type):
        wide = pa.uint64() if pa.types.is_uint64(ids.type) else pa.int64()
        return mix64(ids.cast(wide).to_numpy(zero_copy_only=False))
    if _is_binary(ids.type):
        return mix64(_fnv(ids))
    hashed = np.empty(len(ids), np.uint64)
    whole = pc.match_substring_regex(ids, _WHOLE).to_numpy(zero_copy_only=False).astype(bool)
    short = whole & (pc.binary_length(ids).to_numpy(zero_copy_only=False) <= 18)
    long = np.flatnonzero(whole & ~short)
    numbers = [int(text) for text in ids.take(pa.array(long)).to_pylist()]
    hashed[long] = mix64(np.array([number % 2**64 for number in numbers], np.uint64))
    whole[long] = [-(2**63) <= number < 2**64 for number in numbers]
    hashed[short] = mix64(ids.filter(pa.array(short)).cast(pa.int64()).to_numpy(zero_copy_only=False))
    hashed[~whole] = mix64(_fnv(ids.filter(pa.array(~whole))))
    return hashed


def bucket_of(ids: pa.Array | pa.ChunkedArray, buckets: int) -> np.ndarray:
    """The bucket of each id, from 0 to buckets - 1.

    >>> bucket_of(pa.array(["7", "abboip", "7"]), 16).tolist(), bucket_of(pa.array([7]), 16).tolist()
    ([7, 5, 7], [7])
    """
    if isinstance(ids, pa.ChunkedArray):
        return np.concatenate([bucket_of(chunk, buckets) for chunk in ids.chunks] or [np.array([], np.int64)])
    if pa.types.is_integer(ids.type):
        return (hash_ids(ids) % np.uint64(buckets)).astype(np.int64)
    ids = _hashable(ids)
    coded = ids if pa.types.is_dictionary(ids.type) else ids.dictionary_encode()
    of_each = (hash_ids(coded.dictionary) % np.uint64(buckets)).astype(np.int64)
    return of_each[coded.indices.to_numpy(zero_copy_only=False)]


def _hashable(ids: pa.Array) -> pa.Array:
    """Ids that are neither numbers nor text as such: equal ones stay equal."""
    kind = ids.type
    if isinstance(kind, pa.BaseExtensionType):  # UUIDs
        return _hashable(ids.storage)
    if pa.types.is_floating(kind):
        return pc.add(ids.cast(pa.float64()), 0.0).cast(pa.string())  # -0.0 is 0.0
    if _is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return ids.cast(pa.large_binary())
    plain = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
    return ids if plain else ids.cast(pa.string())


def _is_binary(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


@dataclass(frozen=True)
class Fixes:
    """Ingested fixes: the manifest and the files of the buckets.

    `files[b]` holds the mobiles of bucket b, sorted by (mobile, t); an empty bucket has no file.
    """

    path: Path
    manifest: dict[str, Any]

    @property
    def files(self) -> list[Path]:
        """The bucket files that exist, in the order of their buckets."""
        return [self.path / entry["path"] for entry in self.manifest["buckets"]["files"]]

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        return pa.schema([(c["name"], type_of(c["type"])) for c in self.manifest["columns"]])

    @property
    def rows(self) -> int:
        """The number of fixes."""
        return int(self.manifest["rows"])

    @property
    def mobiles(self) -> int:
        """The number of mobiles."""
        return int(self.manifest["mobiles"])

    @property
    def crs(self) -> str | None:
        """The coordinate reference system; None for metres in a plane of their own."""
        return self.manifest["crs"]

    @property
    def report(self) -> Report:
        """What became of the rows when the data set was ingested."""
        return Report.from_dict(self.manifest["quality"])

    def aside(self) -> pa.Table:
        """The rows that were set aside: `reason`, `unread`, then their cells, as text where they fit no type."""
        tables = [pq.read_table(file) for file in sorted((self.path / "_aside").glob("*.parquet"))]
        columns: dict[str, pa.ChunkedArray] = {}
        kinds = {"reason": pa.string(), "unread": pa.string(), **{f.name: f.type for f in self.schema}}
        for name, kind in kinds.items():
            parts = [t[name] if name in t.column_names else pa.nulls(t.num_rows, kind) for t in tables]
            try:
                typed = [part.cast(kind) for part in parts]
            except pa.ArrowInvalid:
                kind, typed = pa.string(), [part.cast(pa.string()) for part in parts]
            chunks = [c for part in typed for c in (part.chunks if isinstance(part, pa.ChunkedArray) else [part])]
            columns[name] = pa.chunked_array(chunks, kind)
        return pa.table(columns)

    def batches(self, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """The fixes, row group by row group."""
        for file in self.files:
            with pq.ParquetFile(file) as opened:
                for index in range(opened.num_row_groups):
                    yield opened.read_row_group(index, columns=columns)

    def to_arrow(self, columns: list[str] | None = None) -> pa.Table:
        """All fixes as one Arrow table, bucket by bucket."""
        if not self.files:
            return self.schema.empty_table().select(columns or self.schema.names)
        return pa.concat_tables([pq.read_table(file, columns=columns) for file in self.files])

    def to_pandas(self) -> Any:
        """All fixes as one pandas table, in the order of (mobile, t)."""
        return self.to_arrow().sort_by([("mobile", "ascending"), ("t", "ascending")]).to_pandas()

    def __repr__(self) -> str:
        return (
            f"Fixes({self.path.name!r}: {self.rows:,} fixes of {self.mobiles:,} mobiles in {len(self.files)} buckets)"
        )

    def __str__(self) -> str:
        return f"{self!r}\n{self.report}"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<p>{escape(repr(self))}</p>{self.report._repr_html_()}"


def type_of(name: str) -> pa.DataType:
    """The Arrow type that a manifest names.

    >>> type_of("timestamp[us, tz=UTC]")
    TimestampType(timestamp[us, tz=UTC])
    """
    if name.startswith("timestamp["):
        unit, _, zone = name[len("timestamp[") : -1].partition(", tz=")
        return pa.timestamp(unit, tz=zone or None)
    if name.startswith(_OTHER):
        return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(name[len(_OTHER) :]))).field(0).type
    return pa.type_for_alias(name)


def name_of(kind: pa.DataType) -> str:
    """The name by which a manifest calls a type; lists and records, which have none, are written out.

    >>> name_of(pa.date32()), type_of(name_of(pa.list_(pa.int8())))
    ('date32[day]', ListType(list<item: int8>))
    """
    try:
        if type_of(str(kind)) == kind:
            return str(kind)
    except ValueError:
        pass
    return _OTHER + base64.b64encode(pa.schema([("c", kind)]).serialize().to_pybytes()).decode()


def is_ingested(path: str | Path) -> bool:
    """Whether a folder holds ingested fixes."""
    return (Path(path) / MANIFEST).is_file()


def open_fixes(path: str | Path) -> Fixes:
    """The ingested fixes in a folder, checked for completeness."""
    path = Path(path)
    if not is_ingested(path):
        raise DataError(f"{path}: no {MANIFEST}, so these are no ingested fixes; make them with `workbench ingest`")
    try:
        manifest = json.loads((path / MANIFEST).read_text())
        version = manifest["schema_version"]
        missing = [e["path"] for e in manifest["buckets"]["files"] if not (path / e["path"]).is_file()]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path / MANIFEST}: is damaged ({error}); ingest the data again") from error
    if version != SCHEMA_VERSION:
        raise DataError(
            f"{path}: was written in layout {version}, this workbench reads {SCHEMA_VERSION}; ingest it again"
        )
    if missing:
        raise DataError(f"{path}: the manifest names {', '.join(missing)}, which is not there; ingest the data again")
    return Fixes(path, manifest)


NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""What a disk says that takes no more."""


@contextmanager
def whole_folder(out: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A folder to write in that takes its name only when the block ends without an error.

    Folders that killed runs on this machine left behind are removed first.
    """
    out = Path(out).absolute()
    _refuse_existing(out, overwrite)
    out.parent.mkdir(parents=True, exist_ok=True)
    host = socket.gethostname()
    mark = f".{out.name}.unfinished-"
    for left in out.parent.glob(f"{mark}{host}-*"):
        pid = left.name.removeprefix(f"{mark}{host}-").split("-")[0]
        if pid.isdigit() and not _alive(int(pid)):
            shutil.rmtree(left, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=f"{mark}{host}-{os.getpid()}-", dir=out.parent))
    try:
        work.chmod(0o755)
        yield work
        _refuse_existing(out, overwrite)
        old = work.with_name(work.name + "-old")
        if out.exists():
            out.rename(old)
        work.rename(out)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise DataError(f"{out} cannot be written: {os.strerror(error.errno)}") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _refuse_existing(out: Path, overwrite: bool) -> None:
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not overwrite:
        raise DataError(f"{out}: exists already; name another folder or say overwrite")
    if not is_ingested(out):
        raise DataError(f"{out}: exists and holds no ingested fixes, so it is not overwritten; name another folder")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def write_parquet(table: pa.Table, path: Path) -> None:
    """One Parquet file in this layout's way: small row groups, a dictionary only where text repeats."""
    text = [
        f.name
        for f in table.schema
        if pa.types.is_string(f.type) or (pa.types.is_integer(f.type) and f.name == "mobile")
    ]
    pq.write_table(
        table, path, row_group_size=ROW_GROUP, compression="snappy", use_dictionary=text or False, write_statistics=True
    )
