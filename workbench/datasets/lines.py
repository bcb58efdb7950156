"""Lines of delimited text as a stream: a share of them, and quotes that are closed.

*A share* is the lines that begin in a range of bytes of the unpacked text, after its header: shares that lie side by
side hold each line once, so that many readers can take one large file.

*Quotes.* A reader of CSV takes whatever follows an open quote for one cell, up to the end of what it holds, and the
rows in it are gone. Here a line that leaves a quote open takes the lines after it along only where together they make
one row as RFC 4180 has it; else it is set aside by itself, and the line after it is read as a line of its own.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

BLOCK = 1 << 20
"""Bytes of text read at a time; the reader keeps up to 32 such blocks ready, so larger ones cost memory."""
LONGEST_ROW = 1 << 16
"""Bytes of a row that goes over several lines; text that is longer was left open by mistake."""
LONGEST_LINE = 1 << 24
_QUOTE, _LF, _CR = b'"\n\r'


class _Stream(io.RawIOBase):
    """A readable stream that is made piece by piece: `_piece` gives the next one, nothing at the end."""

    def __init__(self) -> None:
        self._ready = memoryview(b"")

    def _piece(self) -> bytes:
        raise NotImplementedError

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with what is ready."""
        if not self._ready:
            self._ready = memoryview(self._piece())
        data, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)


class Share(_Stream):
    """The first `header` lines of a stream, then the other lines that begin in `[start, stop)`; None: to the end.

    >>> text = b"mobile,t\\n1,10\\n2,20\\n3,30\\n"
    >>> [Share(io.BufferedReader(io.BytesIO(text)), 1, a, b).read() for a, b in ((0, 15), (15, None))]
    [b'mobile,t\\n1,10\\n2,20\\n', b'mobile,t\\n3,30\\n']
    """

    def __init__(self, stream: io.BufferedReader, header: int, start: int, stop: int | None) -> None:
        super().__init__()
        self._stream, self._stop = stream, stop
        head = b"".join(stream.readline() for _ in range(header))
        self._ready, self._at = memoryview(head), len(head)
        if start > self._at:
            self._skip(start - 1 - self._at)
            self._at += len(stream.readline())  # the line in which the byte before the share lies is the share before's

    def _skip(self, count: int) -> None:
        self._at += count
        if self._stream.seekable():
            self._stream.seek(count, io.SEEK_CUR)
            return
        while count > 0:
            passed = len(self._stream.read(min(count, BLOCK)))
            count = count - passed if passed else 0

    def _piece(self) -> bytes:
        if self._stop is None:
            return self._stream.read(BLOCK)
        if self._at >= self._stop:
            return b""
        data = self._stream.read(min(BLOCK, self._stop - self._at))
        self._at += len(data)
        if self._at == self._stop and not data.endswith(b"\n"):
            data += self._stream.readline()
        return data


def cuttable(encoding: str) -> bool:
    """Whether a line end of an encoding is one byte that stands for nothing else.

    >>> [cuttable(name) for name in ("utf8", "latin-1", "utf-16", "nonsense")]
    [True, True, False, False]
    """
    try:
        return "\n".encode(encoding) == b"\n"
    except LookupError:
        return False


class Rows(_Stream):
    """A stream of delimited text in which each quote that opens is closed; `bad` is told the lines that cannot be."""

    def __init__(self, stream: io.BufferedReader, delimiter: str, width: int, bad: Callable[[str], None]) -> None:
        super().__init__()
        self._stream, self._mark, self._width, self._bad = stream, delimiter.encode(), width, bad
        self._held, self._ended = b"", False

    def _piece(self) -> bytes:
        while not self._ended:
            data = self._stream.read(BLOCK)
            self._ended = not data
            data = self._held + data
            end = len(data) if self._ended else max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
            if not end and len(data) > LONGEST_LINE:
                end = len(data)  # no text of lines: whoever reads it says so
            self._held, data = data[end:], data[:end]
            if data and leaves_open(data, self._mark):
                data = self._mended(data)
            if data:
                return data
        return b""

    def _mended(self, data: bytes) -> bytes:
        lines = data.splitlines(keepends=True)
        line, record = _patterns(self._mark)
        kept, at = [], 0
        while at < len(lines):
            if b'"' not in lines[at] or line.fullmatch(lines[at]):
                kept.append(lines[at])
                at += 1
                continue
            taken = self._row(lines, at, record)
            if taken is None:  # more lines have to be seen
                self._held = b"".join(lines[at:]) + self._held
                break
            if taken:
                kept += lines[at : at + taken]
            else:
                self._bad(lines[at].rstrip(b"\r\n").decode("utf-8", "backslashreplace"))
            at += taken or 1
        return b"".join(kept)

    def _row(self, lines: list[bytes], at: int, record: re.Pattern[bytes]) -> int | None:
        """How many lines from here make one row; 0: none do, None: it cannot be known yet."""
        whole = lines[at]
        for end in range(at + 1, len(lines)):
            text = lines[end]
            whole += text
            quotes = b'"' in text
            if len(whole) > LONGEST_ROW or (not quotes and self._width > 1 and _cells(text, self._mark) == self._width):
                return 0  # what is a row by itself is no part of another
            if quotes and (found := record.fullmatch(whole)):
                return end + 1 - at if _cells(found.group(), self._mark) == self._width else 0
        return 0 if self._ended else None


def leaves_open(data: bytes, mark: bytes) -> bool:
    """Whether some line may leave a quote open: one has an odd number of quotes, or one opens inside a cell.

    >>> leaves_open(b'1,"a, b",2\\n', b","), leaves_open(b'1,"a\\n', b","), leaves_open(b'5" x 7",1\\n', b",")
    (False, True, True)
    """
    if b'"' not in data:
        return False
    raw = np.frombuffer(data, np.uint8)
    quote = np.flatnonzero(raw == _QUOTE)
    edges = np.concatenate(([0], np.searchsorted(quote, np.flatnonzero((raw == _LF) | (raw == _CR))), [len(quote)]))
    if (np.diff(edges) % 2).any():
        return True
    opens = slice(None, None, 2)  # each line has an even number of them, so that every other one opens
    before = raw[np.maximum(quote[opens] - 1, 0)]
    return bool((~np.isin(before, (mark[0], _QUOTE, _LF, _CR)) & (quote[opens] > 0)).any())


@cache
def _patterns(mark: bytes) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """One line that closes what it opens, read as leniently as Arrow reads it; and one row in RFC 4180's words."""
    m = re.escape(mark)
    quoted, bare = rb'"(?:[^"]|"")*+"', rb'[^"' + m + rb"\r\n][^" + m + rb"\r\n]*+"
    after = rb'(?:[^"' + m + rb"\r\n][^" + m + rb"\r\n]*+)?"
    line = rb"(?:" + quoted.replace(rb'[^"]', rb'[^"\r\n]') + after + rb"|" + bare + rb")?"
    record = rb"(?:" + quoted + rb"|" + bare + rb")?"
    return tuple(  # type: ignore[return-value]
        re.compile(cell + rb"(?:" + m + cell + rb")*+[\r\n]*") for cell in (line, record)
    )


def _cells(text: bytes, mark: bytes) -> int:
    return re.sub(rb'"(?:[^"]|"")*+"', b"", text).count(mark) + 1
