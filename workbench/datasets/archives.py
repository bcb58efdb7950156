"""Where a data set comes from: a file, a folder, a zip or a tar, read safely and as a stream.

A *source* is a list of members, each a name with `/` between its parts and a stream of bytes; a plain file is a
source of one member. A member packed by itself (`.gz`, `.bz2`, `.xz`) is unpacked as it is read. Nothing is ever
unpacked to disk.

What an archive may not do, each a `DataError` that names the member: leave its own folder (`..`, absolute paths,
drive letters), hold links, devices or encrypted members, name one member twice, unpack to more than `RATIO` times
its packed size or more than `LARGEST` bytes, or end too early.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any

from workbench.errors import DataError

RATIO = 250
"""An unpacked member may be this many times its packed size; text of fixes packs to a fifth or a tenth."""
HARMLESS = 64 << 20
"""Below this many unpacked bytes the ratio is not looked at."""
USUAL = 5
"""What is said of text whose unpacked size is not known: so many times the packed one."""
LARGEST = 1 << 40
"""No member may unpack to more bytes than this."""

_PACKED: dict[str, Callable[[IO[bytes]], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_BROKEN = (EOFError, zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, OSError, NotImplementedError)


def safe_name(name: str, source: str) -> str:
    """The member's name, when it stays inside the archive.

    >>> safe_name("Data/000/labels.txt", "a.zip")
    'Data/000/labels.txt'
    >>> safe_name("../../etc/passwd", "a.zip")
    Traceback (most recent call last):
    workbench.errors.DataError: a.zip: member '../../etc/passwd' leaves the archive's folder; the archive is refused
    """
    plain = name.replace("\\", "/")
    path = PurePosixPath(plain)
    if path.is_absolute() or ".." in path.parts or plain[1:2] == ":" or "\0" in plain:
        raise DataError(f"{source}: member {name!r} leaves the archive's folder; the archive is refused")
    return str(path)


class Guarded(io.RawIOBase):
    """A stream that refuses to grow beyond reason and says which member broke."""

    def __init__(
        self, stream: IO[bytes], name: str, packed: int, beneath: IO[bytes] | None = None, lies: bool = False
    ) -> None:
        self._stream, self.name, self._read, self._beneath, self._lies = stream, name, 0, beneath, lies
        self._limit = min(LARGEST, max(HARMLESS, RATIO * packed))

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Of a file that lies on disk as it is; what has to be unpacked is counted, not jumped over."""
        return self._lies

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place in the file."""
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        """The place in the file."""
        return self._stream.tell()

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, counting."""
        try:
            data = self._stream.read(len(buffer))
        except _BROKEN as error:
            raise DataError(f"{self.name}: cannot be unpacked ({error}); the file is broken or cut off") from error
        self._read += len(data)
        if self._read > self._limit:
            raise DataError(
                f"{self.name}: unpacks to more than {self._limit:,} bytes, over {RATIO} times its packed size; refused"
            )
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the stream beneath too."""
        self._stream.close()
        if self._beneath is not None:  # who unpacks does not close what he was given
            self._beneath.close()
        super().close()


@dataclass(frozen=True)
class Member:
    """One stream of a source: its name and the bytes it takes where it lies."""

    name: str
    size: int
    unpacked: int = 0
    """About how many bytes it unpacks to; 0 where that is not known."""

    @property
    def weight(self) -> int:
        """About how many bytes there are to be read."""
        packed = self.name.lower().endswith(tuple(_PACKED))
        return self.unpacked or (self.size * USUAL if packed else self.size)

    @property
    def plain(self) -> str:
        """The name without the suffix of its packing, in lower case.

        >>> Member("a/Taxi.CSV.gz", 1).plain
        'a/taxi.csv'
        """
        lower = self.name.lower()
        return next((lower[: -len(end)] for end in _PACKED if lower.endswith(end)), lower)


@dataclass(frozen=True)
class Source:
    """A file, folder or zip with its members in the order of their names, a tar in its own."""

    path: Path
    kind: str
    members: tuple[Member, ...] = field(repr=False)

    def names(self) -> list[str]:
        """The members' names."""
        return [member.name for member in self.members]

    def open(self, name: str) -> io.BufferedReader:
        """One member as a stream of unpacked bytes."""
        member = next((m for m in self.members if m.name == name), None)
        if member is None:
            raise DataError(f"{self.path.name}: no member {name!r}")
        streams = self.streams([name])
        for _, stream in streams:
            stream.raw.keeper = streams  # type: ignore[attr-defined]  # a tar closes with its last reader, not before
            return stream
        raise DataError(f"{self.path.name}: member {name!r} has vanished")

    def in_order(self, name: str) -> bool:
        """Whether what lies before a place in a member has to be unpacked on the way there."""
        return self.kind in ("tar", "zip") or self.path_of(name) is None

    def path_of(self, name: str) -> Path | None:
        """Where a member lies on disk as it is, or None inside an archive or when it is packed."""
        if self.kind not in ("file", "folder") or name.lower().endswith(tuple(_PACKED)):
            return None
        return self.path if self.kind == "file" else self.path / name

    def streams(self, wanted: list[str] | None = None) -> Iterator[tuple[Member, io.BufferedReader]]:
        """The wanted members (all, when not given) one after the other, each with its stream."""
        chosen = {m.name: m for m in self.members if wanted is None or m.name in set(wanted)}
        try:
            if self.kind == "tar":
                yield from self._tar_streams(chosen)
                return
            if self.kind == "zip":
                archive = zipfile.ZipFile(self.path)
            for member in chosen.values():
                if self.kind == "zip":
                    stream: IO[bytes] = archive.open(member.name)
                elif self.kind == "folder":
                    stream = (self.path / member.name).open("rb")
                else:
                    stream = self.path.open("rb")
                yield member, self._guard(stream, member)
        except _BROKEN as error:
            raise DataError(f"{self.path.name}: cannot be read ({error}); is the download complete?") from error

    def _tar_streams(self, chosen: dict[str, Member]) -> Iterator[tuple[Member, io.BufferedReader]]:
        left = set(chosen)
        with tarfile.open(self.path, "r:*") as archive:
            while left and (entry := archive.next()) is not None:
                name = safe_name(entry.name, self.path.name)
                if entry.isfile() and name in left:
                    left.remove(name)
                    stream = archive.extractfile(entry)
                    assert stream is not None
                    yield chosen[name], self._guard(stream, chosen[name])

    def _guard(self, stream: IO[bytes], member: Member) -> io.BufferedReader:
        where = member.name if self.kind == "file" else f"{self.path.name}: {member.name}"
        beneath = stream
        for end, opener in _PACKED.items():
            if member.name.lower().endswith(end):
                stream = opener(stream)
        # a member of a packed tar has no packed size of its own: the archive's whole size stands in
        packed = self.path.stat().st_size if self.kind == "tar" else member.size
        lies = self.path_of(member.name) is not None
        return io.BufferedReader(Guarded(stream, where, packed, beneath, lies), 1 << 20)


def open_source(path: str | Path) -> Source:
    """The source at a path; every member's name, kind and size is checked before anything is read."""
    path = Path(path)
    if not path.exists():
        raise DataError(f"{path}: no such file or folder")
    try:
        if path.is_dir():
            return Source(path, "folder", tuple(_folder_members(path)))
        if zipfile.is_zipfile(path) and path.suffix.lower() not in (".xlsx", ".ods", ".kmz"):
            return Source(path, "zip", tuple(_zip_members(path)))
        if _looks_like_tar(path):
            return Source(path, "tar", tuple(_tar_members(path)))
        if path.suffix.lower() in (".zip", ".tar", ".tgz"):
            raise DataError(f"{path.name}: is no readable {path.suffix[1:]} archive; is the download complete?")
    except _BROKEN as error:
        raise DataError(f"{path.name}: cannot be read as an archive ({error}); is the download complete?") from error
    return Source(path, "file", (_lying(path, path.name),))


def _lying(file: Path, name: str) -> Member:
    """A file on disk as a member."""
    size = file.stat().st_size
    if not name.lower().endswith(".gz") or size < 20:
        return Member(name, size)
    with file.open("rb") as packed:
        packed.seek(-4, io.SEEK_END)
        unpacked = int.from_bytes(packed.read(), "little")  # modulo 2^32, and of the last of several members
    return Member(name, size, unpacked if unpacked > size else 0)


def _unpacked(name: str, size: int) -> int:
    """How many bytes there are to be read in a member of so many bytes, which may be packed by itself again."""
    return 0 if name.lower().endswith(tuple(_PACKED)) else size


def _looks_like_tar(path: Path) -> bool:
    if not path.name.lower().endswith((".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")):
        return False
    if path.stat().st_size == 0 or not tarfile.is_tarfile(path):
        raise DataError(f"{path.name}: is no readable tar archive; is the download complete?")
    return True


def _folder_members(path: Path) -> Iterator[Member]:
    inside = path.resolve()
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        if any(part.startswith((".", "_")) for part in file.relative_to(path).parts):
            continue
        if file.is_symlink() and not file.resolve().is_relative_to(inside):
            raise DataError(f"{path.name}: {name!r} is a link that leaves the folder; copy the file or name its folder")
        if file.is_file():
            yield _lying(file, name)


def _zip_members(path: Path) -> Iterator[Member]:
    seen: set[str] = set()
    with zipfile.ZipFile(path) as archive:
        for entry in sorted(archive.infolist(), key=lambda e: e.filename):
            name = safe_name(entry.filename, path.name)
            if entry.is_dir() or name.startswith("__MACOSX/"):
                continue
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if kind not in (0, stat.S_IFREG):
                raise DataError(f"{path.name}: member {name!r} is a link or a device; the archive is refused")
            if entry.flag_bits & 1:
                raise DataError(f"{path.name}: member {name!r} is encrypted; unpack it first")
            if name in seen:
                raise DataError(f"{path.name}: holds two members {name!r}; the archive is refused")
            if entry.file_size > min(LARGEST, max(HARMLESS, RATIO * entry.compress_size)):
                raise DataError(
                    f"{path.name}: member {name!r} would unpack from {entry.compress_size:,} to {entry.file_size:,} "
                    f"bytes, over {RATIO} times; the archive is refused"
                )
            seen.add(name)
            # the name as stored opens the member; a backslash in it is kept for that
            yield Member(entry.filename, entry.compress_size, _unpacked(name, entry.file_size))


def _tar_members(path: Path) -> Iterator[Member]:
    found: dict[str, Member] = {}
    with tarfile.open(path, "r:*") as archive:
        for entry in archive:
            name = safe_name(entry.name, path.name)
            if entry.isdir():
                continue
            if not entry.isfile():
                raise DataError(f"{path.name}: member {name!r} is a link or a device; the archive is refused")
            if name in found:
                raise DataError(f"{path.name}: holds two members {name!r}; the archive is refused")
            found[name] = Member(name, entry.size)
    yield from found.values()
