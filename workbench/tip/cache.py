"""The cache of a broker: requests and their replies (TIP 3, 3.2, Figure 5, Algorithms 1 and 2).

It lowers the traffic to remote brokers and is transparent to services. A request has zero or many replies, a reply one
or many requests: a reply is kept once, and its requests refer to it. Here: a value; `outgoing` and `incoming` answer
with the next cache and what to do. Two requests are *similar* if they have the same type and the same canonical body.
What is too old, and what goes first, is decided as in the cache of the mobile broker (`brokering.kept`).

Limits: at most `max_requests` requests and `max_bytes` of reply bodies are kept, the longest stored goes first; what
was stored more than `max_age` ago counts as missing. A reply that leaves is remembered as missing by its requests.

Departure: as printed, Algorithm 1 neither sends nor answers a request that is cached without replies: its `else`
belongs to the outer `if`. The text decides: "if no similar message could be found in the cache or cached replies are
missing, the message is forwarded". Where some replies are left and others missing, the text has both: the still cached
ones are sent back, and the message is forwarded.
Departure: as printed, Algorithm 2 never forwards a reply to the local services, cacheable or not; the text: "it is
stored in the cache and then forwarded to the local services".
Departure: the paper returns the cached replies as they are. They relate to an earlier request, which the asker does not
know, and may bear the flag of a prefetch, which would hide them. Here they relate to the request that asks, and are
shown if it is.
Departure: the paper has one remote broker. A broker that joins later, as the museum's does, was never asked; the cached
replies are not all there is. A similar message is sent to those brokers that were not asked yet.
Departure: `cacheable` decides for requests too: a request that is not is sent every time, and its replies are not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from workbench.brokering.kept import crowded_out, fresh
from workbench.tip.bodies import canonical_body
from workbench.tip.events import Event

Similar = tuple[str, str]


@dataclass(frozen=True)
class Request:
    """A request that was sent: under which ids, when last, to whom, its replies, and how many of them were lost."""

    ids: tuple[str, ...]
    stored: int
    asked: frozenset[str] = frozenset()
    replies: tuple[str, ...] = ()
    missing: int = 0


class Reply(NamedTuple):
    """A reply, and when it was stored."""

    event: Event
    stored: int


class Outgoing(NamedTuple):
    """What to do with a message to remote brokers: to which of them it has to be sent, and the replies at hand."""

    cache: Cache
    send: tuple[str, ...]
    replies: tuple[Event, ...]


class Incoming(NamedTuple):
    """What to do with a message from a remote broker: whether local services get it."""

    cache: Cache
    forward: bool


@dataclass(frozen=True)
class Cache:
    """Requests by what they ask, replies by id.

    >>> ask = Event("q1", "ItemRequest", 0, body="<id>7</id>", cacheable=True)
    >>> cache, send, replies = outgoing(Cache(), ask, now=0)
    >>> send, replies
    (('remote',), ())
    >>> cache, forward = incoming(cache, ask.reply("r1", "Item", 1, cacheable=True), now=1)
    >>> again = Event("q2", "ItemRequest", 2, body="<id >7</id >", cacheable=True)
    >>> outgoing(cache, again, now=2)[1:]
    ((), (Item r1 at 1 (to q2, cacheable),))
    """

    max_requests: int = 1_000
    max_bytes: int = 10_000_000
    max_age: int = 3_600_000_000
    requests: Mapping[Similar, Request] = field(default_factory=dict)
    replies: Mapping[str, Reply] = field(default_factory=dict)
    hits: int = 0
    """requests that were answered here and not sent"""
    misses: int = 0

    @property
    def bytes(self) -> int:
        """The size of the bodies that are kept."""
        return sum(len(reply.event.body.encode()) for reply in self.replies.values())


def similar(message: Event) -> Similar:
    """What two similar messages have in common."""
    return message.type, canonical_body(message.body)


def outgoing(cache: Cache, message: Event, now: int, brokers: tuple[str, ...] = ("remote",)) -> Outgoing:
    """Algorithm 1 by its text: the replies that are still cached, and the brokers that it has to be sent to."""
    if not message.cacheable or message.is_reply:
        return Outgoing(cache, brokers, ())
    cache = aged(cache, now)
    key = similar(message)
    known = cache.requests.get(key, Request((), now))
    replies = tuple(
        replace(cache.replies[id].event, relates_to=(message.id,), prefetched=message.prefetched)
        for id in known.replies
    )
    anew = not replies or known.missing > 0
    send = brokers if anew else tuple(name for name in brokers if name not in known.asked)
    ids = (*(id for id in known.ids if id != message.id), message.id)
    # A message that is sent again asks for all of its replies anew: none of them is missing then.
    asked = replace(known, ids=ids[-8:], asked=known.asked | frozenset(brokers))
    asked = replace(asked, stored=now, missing=0) if anew else asked
    requests = {k: v for k, v in cache.requests.items() if k != key}
    counted = replace(cache, misses=cache.misses + bool(send), hits=cache.hits + (not send))
    return Outgoing(limited(replace(counted, requests={**requests, key: asked})), send, replies)


def incoming(cache: Cache, message: Event, now: int) -> Incoming:
    """Algorithm 2 by its text: keep a cacheable reply to a known request, and forward what services may see."""
    cache = aged(cache, now)
    asked = {
        key: request for key, request in cache.requests.items() if not set(request.ids).isdisjoint(message.relates_to)
    }
    if message.is_reply and message.cacheable and asked:
        # A request that was sent twice is answered twice: of two replies that say the same, the later one is kept.
        same = {id for id, reply in cache.replies.items() if similar(reply.event) == similar(message)}
        linked = {
            key: replace(request, replies=(*(id for id in request.replies if id not in same), message.id))
            for key, request in asked.items()
        }
        replies = {**cache.replies, message.id: Reply(message.at_service(), now)}
        cache = limited(_without(replace(cache, requests={**cache.requests, **linked}, replies=replies), set()))
    return Incoming(cache, message.is_shown)


def aged(cache: Cache, now: int) -> Cache:
    """The cache without what is older than its age limit."""
    replies = fresh(cache.replies, now, cache.max_age, lambda reply: reply.stored)
    requests = fresh(cache.requests, now, cache.max_age, lambda request: request.stored)
    if len(requests) < len(cache.requests) or len(replies) < len(cache.replies):
        return _without(replace(cache, requests=requests), cache.replies.keys() - replies.keys())
    return cache


def limited(cache: Cache) -> Cache:
    """The cache within its limits of size: requests, then replies, the longest stored first."""
    gone = crowded_out(cache.requests, cache.max_requests, lambda request: request.stored)
    if gone:
        kept = {key: request for key, request in cache.requests.items() if key not in gone}
        cache = _without(replace(cache, requests=kept), set())
    lost = crowded_out(
        cache.replies, cache.max_bytes, lambda reply: reply.stored, lambda reply: len(reply.event.body.encode())
    )
    return _without(cache, lost) if lost else cache


def _without(cache: Cache, lost: set[str]) -> Cache:
    """Forget replies, and those that no request refers to any longer."""
    requests = {}
    for key, request in cache.requests.items():
        left = tuple(id for id in request.replies if id not in lost)
        gone = len(request.replies) - len(left)
        requests[key] = replace(request, replies=left, missing=request.missing + gone) if gone else request
    used = {id for request in requests.values() for id in request.replies}
    return replace(cache, requests=requests, replies={id: r for id, r in cache.replies.items() if id in used})
