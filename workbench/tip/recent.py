"""The events that a broker remembers for a while, and where each came from.

A reply goes where its request came from, and an event that was seen is not taken twice; both need the last few
thousand ids. Here: a bounded map as a value. It is a tuple of small chunks, so that adding one copies a chunk only; the
oldest chunk is forgotten when there are too many.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CHUNK = 128


@dataclass(frozen=True)
class Recent:
    """Origins by event id; at least the last `limit` are known.

    >>> seen = Recent(limit=1000).add("e1", "gps")
    >>> seen.origin("e1"), seen.origin("e2")
    ('gps', None)
    """

    limit: int
    chunks: tuple[Mapping[str, str], ...] = ({},)

    def origin(self, id: str) -> str | None:
        """Who sent the event, if it is remembered."""
        for chunk in reversed(self.chunks):
            if id in chunk:
                return chunk[id]
        return None

    def add(self, id: str, origin: str) -> Recent:
        """The same, remembering one more."""
        if len(self.chunks[-1]) < CHUNK:
            return Recent(self.limit, (*self.chunks[:-1], {**self.chunks[-1], id: origin}))
        kept = self.chunks[-(self.limit // CHUNK + 1) :]
        return Recent(self.limit, (*kept, {id: origin}))
