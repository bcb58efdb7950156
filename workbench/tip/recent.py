"""The events that a broker remembers for a while, and where each came from.

A reply goes where its request came from, and an event that was seen is not taken twice; both need the last few
thousand ids. Here: a bounded map as a value, a tuple of chunks, the oldest first. Adding copies the last, small one; a
full one is joined with the one before while that is no longer, so that there are few to look at, however many ids are
remembered. The oldest chunk is forgotten when the others are enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CHUNK = 64


@dataclass(frozen=True)
class Recent:
    """Origins by event id; at least the last `limit` are known, and no more than twice as many and some.

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
        kept = list(self.chunks)
        while len(kept) > 1 and len(kept[-2]) <= len(kept[-1]) and 4 * len(kept[-1]) <= self.limit:
            last = kept.pop()
            kept[-1] = {**kept[-1], **last}
        while sum(map(len, kept[1:])) >= self.limit:
            del kept[0]
        return Recent(self.limit, (*kept, {id: origin}))
