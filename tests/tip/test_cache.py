"""The cache: Algorithms 1 and 2 by their text, and what they do as printed (TIP 3, 3.2)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workbench.tip.bodies import body
from workbench.tip.cache import Cache, incoming, outgoing
from workbench.tip.events import Event


def request(id: str, what: int = 7, *, prefetched: bool = False, cacheable: bool = True) -> Event:
    return Event(id, "ItemRequest", 0, body=body(id=what), cacheable=cacheable, prefetched=prefetched)


def reply(id: str, *to: str, cacheable: bool = True, prefetched: bool = False, size: int = 0) -> Event:
    return Event(id, "Item", 0, relates_to=to, cacheable=cacheable, prefetched=prefetched, body=body(text="a" * size))


def algorithm_1_as_printed(cached: bool, replies: tuple[str, ...]) -> tuple[str, ...]:
    if cached:
        if replies:
            return replies
    else:
        return ("send",)
    return ()


def algorithm_2_as_printed(is_reply: bool, cacheable: bool) -> tuple[str, ...]:
    if is_reply:
        if cacheable:
            return ("store",)
    else:
        return ("forward",)
    return ()


def test_as_printed_a_cached_request_without_replies_is_never_sent_and_replies_are_never_forwarded() -> None:
    assert algorithm_1_as_printed(cached=True, replies=()) == ()
    assert not any("forward" in algorithm_2_as_printed(True, cacheable) for cacheable in (True, False))


def test_by_the_text_a_cached_request_without_replies_is_sent_again() -> None:
    cache, send, replies = outgoing(Cache(), request("q1"), 0)
    assert send and not replies
    assert outgoing(cache, request("q2"), 1)[1:] == (("remote",), ())


def test_by_the_text_replies_are_stored_and_forwarded() -> None:
    cache = outgoing(Cache(), request("q1"), 0).cache
    for answer, kept in [(reply("r1", "q1"), {"r1"}), (reply("r2", "q1", cacheable=False), set())]:
        after, forward = incoming(cache, answer, 1)
        assert forward and set(after.replies) == kept
    assert incoming(cache, Event("n1", "News", 0), 1) == (cache, True)
    assert incoming(cache, reply("r3", "unknown"), 1) == (cache, True)


def test_a_similar_request_is_answered_from_the_cache_under_its_own_id() -> None:
    cache = outgoing(Cache(), request("q1"), 0).cache
    cache = incoming(cache, reply("r1", "q1"), 1).cache
    cache, send, replies = outgoing(cache, request("q2"), 2)
    assert not send and [r.relates_to for r in replies] == [("q2",)]
    assert outgoing(cache, request("q3", what=8), 2).send
    assert outgoing(cache, request("q4", cacheable=False), 2)[1:] == (("remote",), ())


def test_a_broker_that_was_not_asked_is_asked_though_another_one_answered() -> None:
    cache = outgoing(Cache(), request("q1"), 0, ("city",)).cache
    cache = incoming(cache, reply("r1", "q1"), 1).cache
    cache, send, replies = outgoing(cache, request("q2"), 2, ("city", "museum"))
    assert send == ("museum",) and len(replies) == 1
    assert outgoing(cache, request("q3"), 3, ("city", "museum")).send == ()


def test_one_reply_serves_many_requests_and_is_kept_once() -> None:
    cache = outgoing(Cache(), request("q1", 1), 0).cache
    cache = outgoing(cache, request("q2", 2), 0).cache
    cache = incoming(cache, reply("r1", "q1", "q2", size=100), 1).cache
    cache = incoming(cache, reply("r2", "q2"), 1).cache
    assert cache.bytes < 2 * 200 and len(cache.replies) == 2
    assert [r.id for r in outgoing(cache, request("q3", 1), 2).replies] == ["r1"]
    assert [r.id for r in outgoing(cache, request("q4", 2), 2).replies] == ["r1", "r2"]


def test_of_two_replies_that_say_the_same_one_is_kept() -> None:
    cache = outgoing(Cache(), request("q1"), 0).cache
    cache = outgoing(cache, request("q2"), 0).cache
    for n in range(3):
        cache = incoming(cache, reply(f"r{n}", "q1", size=10 * (n == 1)), 1).cache
    assert set(cache.replies) == {"r1", "r2"}
    assert [r.id for r in outgoing(cache, request("q3"), 2).replies] == ["r1", "r2"]


def test_a_prefetched_reply_is_stored_and_shown_only_to_whom_asks_later() -> None:
    cache = outgoing(Cache(), request("q1", prefetched=True), 0).cache
    cache, forward = incoming(cache, reply("r1", "q1", prefetched=True), 1)
    assert not forward
    cache, send, replies = outgoing(cache, request("q2"), 2)
    assert not send and replies[0].is_shown
    assert not outgoing(cache, request("q3", prefetched=True), 2).send


def test_where_some_replies_are_missing_the_rest_is_sent_back_and_the_request_forwarded() -> None:
    small = Cache(max_bytes=300)
    cache = outgoing(small, request("q1"), 0).cache
    for n in range(3):
        cache = incoming(cache, reply(f"r{n}", "q1", size=50 + n), n).cache
    assert set(cache.replies) == {"r1", "r2"}
    cache, send, replies = outgoing(cache, request("q2"), 5)
    assert send and [r.id for r in replies] == ["r1", "r2"]


def test_what_is_too_old_is_missing() -> None:
    cache = outgoing(Cache(max_age=10), request("q1"), 0).cache
    cache = incoming(cache, reply("r1", "q1"), 5).cache
    assert not outgoing(cache, request("q2"), 10).send
    late = outgoing(cache, request("q3"), 16)
    assert late.send and not late.replies and not late.cache.replies


asked = st.tuples(st.just("ask"), st.integers(0, 4), st.booleans())
answered = st.tuples(st.just("answer"), st.lists(st.integers(0, 30), min_size=1, max_size=3), st.integers(0, 60))


@given(st.lists(asked | answered, max_size=40), st.integers(0, 6), st.integers(0, 400), st.integers(0, 20))
def test_the_cache_keeps_its_limits_and_its_two_sides_agree(
    history: list[tuple[str, int | list[int], int]], max_requests: int, max_bytes: int, max_age: int
) -> None:
    cache = Cache(max_requests, max_bytes, max_age)
    for now, (kind, what, more) in enumerate(history):
        if kind == "ask":
            assert isinstance(what, int)
            cache, send, replies = outgoing(cache, request(f"q{now}", what, prefetched=bool(more)), now)
            assert send or replies
            assert all(r.relates_to == (f"q{now}",) for r in replies)
        else:
            assert isinstance(what, list)
            cache, forward = incoming(cache, reply(f"r{now}", *(f"q{n}" for n in what), size=more), now)
            assert forward
        assert len(cache.requests) <= max_requests and cache.bytes <= max_bytes
        assert {id for r in cache.requests.values() for id in r.replies} == set(cache.replies)
        assert all(now - stored <= max_age for _, stored in cache.replies.values())
