"""The loop of the table form: notifications through a graph of scopes that has become arrays.

For each notification the ways up are walked once, and what it is at each apex is kept. A consumer that may want it
walks its own ways down from those apexes. So nothing is made for pairs: the arrays hold, for each scope, the ways up
from it and the ways down to it, and for each value of one dimension the consumers that ask for it.

A notification is a row of numbers: what a dimension says, a code where it is text (`OTHER` for a text that nothing in
the graph names), NaN where it says nothing. The arithmetic is that of `mappings.Conversion`, step by step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.engines.compiling import compiled

OTHER = -1.0
NEVER = -(2**62)
WITHIN, AMONG, NOT_AMONG, NOTHING = 0, 1, 2, 3
SCALE, PUT = 0, 1
IMMEDIATE, DELAYED, UNTIL = 0, 1, 2


class Filters(NamedTuple):
    """Interfaces (sets of filters), filters (constraints), and what a constraint leaves."""

    interface: np.ndarray
    """where the filters of each interface start"""
    filter_of: np.ndarray
    constraint: np.ndarray
    """where the constraints of each filter start"""
    dimension: np.ndarray
    kind: np.ndarray
    left: np.ndarray
    """where the values or closed intervals of each constraint start"""
    low: np.ndarray
    high: np.ndarray


class Mappings(NamedTuple):
    """Conversions: the filter that says of what, and what is done, in order."""

    only: np.ndarray
    first: np.ndarray
    kind: np.ndarray
    dimension: np.ndarray
    value: np.ndarray


class Edges(NamedTuple):
    """Memberships: the superscope, and what is met on the way out and in; -1 where there is nothing."""

    scope: np.ndarray
    output: np.ndarray
    input: np.ndarray
    mapping_out: np.ndarray
    mapping_in: np.ndarray


class Ways(NamedTuple):
    """The scopes: their ways up as trees (each entry after the one that it goes on from), and down as lists."""

    up: np.ndarray
    up_scope: np.ndarray
    up_before: np.ndarray
    up_edge: np.ndarray
    down: np.ndarray
    down_apex: np.ndarray
    down_edges: np.ndarray
    """where the edges of each way down start"""
    down_edge: np.ndarray
    down_member: np.ndarray
    down_session: np.ndarray
    session: np.ndarray
    """whether a scope is a session scope"""
    policy: np.ndarray
    delay: np.ndarray
    until: np.ndarray
    until_start: np.ndarray
    until_end: np.ndarray


class Members(NamedTuple):
    """Components: their memberships, the roots that they see, what they subscribe to; scopes that publish follow."""

    edges: np.ndarray
    edge: np.ndarray
    roots: np.ndarray
    """one bit for each root, shared where there are more than 64: what differs here is invisible"""
    subscription: np.ndarray
    scope: np.ndarray
    """the scope itself, where it is a scope that publishes"""


class Asked(NamedTuple):
    """By the code of one dimension the consumers that ask for it, then those that ask for any."""

    dimension: int
    first: np.ndarray
    consumer: np.ndarray
    put: np.ndarray
    """codes that a mapping may put in there"""


class Index(NamedTuple):
    """A graph and subscriptions as arrays."""

    filters: Filters
    mappings: Mappings
    edges: Edges
    ways: Ways
    members: Members
    asked: Asked


@compiled
def _passes(filters, which, content):  # type: ignore[no-untyped-def]
    for c in range(filters.constraint[which], filters.constraint[which + 1]):
        kind = filters.kind[c]
        if kind == NOTHING:
            return False
        value = content[filters.dimension[c]]
        if value != value:
            return False
        found = False
        for k in range(filters.left[c], filters.left[c + 1]):
            if filters.low[k] <= value and value <= filters.high[k]:
                found = True
                break
        if found == (kind == NOT_AMONG):
            return False
    return True


@compiled
def _lets(filters, which, content):  # type: ignore[no-untyped-def]
    if which < 0:
        return True
    for k in range(filters.interface[which], filters.interface[which + 1]):
        if _passes(filters, filters.filter_of[k], content):
            return True
    return False


@compiled
def _map(filters, mappings, which, content):  # type: ignore[no-untyped-def]
    if which < 0 or (mappings.only[which] >= 0 and not _passes(filters, mappings.only[which], content)):
        return
    for k in range(mappings.first[which], mappings.first[which + 1]):
        d = mappings.dimension[k]
        if mappings.kind[k] == SCALE:
            content[d] = content[d] * mappings.value[k]
        else:
            content[d] = mappings.value[k]


@compiled
def _release(ways, scope, t):  # type: ignore[no-untyped-def]
    """When what a scope publishes at t leaves it; `NEVER` where it does not."""
    if ways.policy[scope] == DELAYED:
        return t + ways.delay[scope]
    if ways.policy[scope] == UNTIL:
        for k in range(ways.until[scope], ways.until[scope + 1]):
            if t < ways.until_end[k]:
                return max(t, ways.until_start[k])
        return NEVER
    return t


@compiled
def _may_enter(ways, scope, context, first, last):  # type: ignore[no-untyped-def]
    if first == last or not ways.session[scope]:
        return True
    for k in range(first, last):  # noqa: SIM110 - as a loop, for the compiler
        if context[k] == scope:
            return True
    return False


@compiled
def _apart(ways, entry, way):  # type: ignore[no-untyped-def]
    """Whether a way down enters nothing that the way up has left."""
    at = ways.up_before[entry]
    while at >= 0:
        for k in range(ways.down_edges[way], ways.down_edges[way + 1]):
            if ways.down_member[k] == ways.up_scope[at]:
                return False
        at = ways.up_before[at]
    return True


@compiled
def _grown(array):  # type: ignore[no-untyped-def]
    made = np.empty((2 * array.shape[0], array.shape[1]), array.dtype)
    made[: array.shape[0]] = array
    return made


@compiled
def deliver(index, producers, times, contents, contexts, context_first, context, states):  # type: ignore[no-untyped-def]
    """Who receives what: rows (notification, consumer, session, t) and what each says.

    ``states`` is the largest number of ways up that any producer has.
    """
    filters, mappings, edges, ways, members, asked = index
    dimensions = contents.shape[1]
    told = np.empty((1024, 4), np.int64)
    said = np.empty((1024, dimensions))
    count = 0
    seen = np.full(members.edges.shape[0], -1, np.int64)
    head = np.full(ways.session.shape[0], -1, np.int64)
    entry, following, when = np.empty(states, np.int64), np.empty(states, np.int64), np.empty(states, np.int64)
    place = np.empty(states, np.int64)
    stands = np.empty((states, dimensions))
    here = np.empty(dimensions)
    for row in range(producers.shape[0]):
        producer = producers[row]
        if producer < 0:
            continue
        first, last = context_first[contexts[row]], context_first[contexts[row] + 1]
        # -- up: what it is at each apex
        reached = 0
        itself = members.scope[producer]
        for e in range(members.edges[producer], members.edges[producer + 1]):
            if itself >= 0:
                scope = itself
                here[:] = contents[row]
            else:
                out = members.edge[e]
                scope = edges.scope[out]
                if not _may_enter(ways, scope, context, first, last):
                    continue
                here[:] = contents[row]
                _map(filters, mappings, edges.mapping_out[out], here)
                if not _lets(filters, edges.output[out], here):
                    continue
            base = ways.up[scope]
            for k in range(base, ways.up[scope + 1]):
                before = ways.up_before[k]
                if before < 0:
                    stands[reached] = here
                    when[reached] = times[row]
                else:
                    came = place[before - base]
                    place[k - base] = -1
                    if came < 0:
                        continue
                    out = ways.up_edge[k]
                    if not _may_enter(ways, ways.up_scope[k], context, first, last):
                        continue
                    t = _release(ways, ways.up_scope[before], when[came])
                    if t == NEVER:
                        continue
                    stands[reached] = stands[came]
                    when[reached] = t
                    _map(filters, mappings, edges.mapping_out[out], stands[reached])
                    if not _lets(filters, edges.output[out], stands[reached]):
                        continue
                entry[reached] = k
                place[k - base] = reached
                reached += 1
        for s in range(reached):
            apex = ways.up_scope[entry[s]]
            following[s] = head[apex]
            head[apex] = s
        # -- who may want it: by what it says, by what it may be made to say, and those that ask for anything
        own_code = contents[row, asked.dimension] if asked.dimension >= 0 else OTHER
        lists = asked.first.shape[0] - 1
        for look in range(2 + asked.put.shape[0]):
            if look == 0:
                code = lists - 1
            elif look == 1:
                code = int(own_code) if own_code == own_code and own_code >= 0 else -1
            else:
                code = asked.put[look - 2]
            if code < 0:
                continue
            for c in range(asked.first[code], asked.first[code + 1]):
                consumer = asked.consumer[c]
                if seen[consumer] == row:
                    continue
                seen[consumer] = row
                interest = members.subscription[consumer]
                if consumer == producer:
                    if _lets(filters, interest, contents[row]):
                        if count == told.shape[0]:
                            told, said = _grown(told), _grown(said)
                        told[count, 0], told[count, 1], told[count, 2], told[count, 3] = row, consumer, 0, times[row]
                        said[count] = contents[row]
                        count += 1
                    continue
                if reached == 0 or not members.roots[consumer] & members.roots[producer]:
                    continue
                begin = count
                # -- down: every way to it from where the notification stands
                for e in range(members.edges[consumer], members.edges[consumer + 1]):
                    into = members.edge[e]
                    scope = edges.scope[into]
                    for way in range(ways.down[scope], ways.down[scope + 1]):
                        s = head[ways.down_apex[way]]
                        while s >= 0:
                            state, s = s, following[s]
                            if not _apart(ways, entry[state], way):
                                continue
                            here[:] = stands[state]
                            stopped = False
                            for k in range(ways.down_edges[way], ways.down_edges[way + 1]):
                                if not _lets(filters, edges.input[ways.down_edge[k]], here):
                                    stopped = True
                                    break
                                _map(filters, mappings, edges.mapping_in[ways.down_edge[k]], here)
                            if stopped or not _lets(filters, edges.input[into], here):
                                continue
                            _map(filters, mappings, edges.mapping_in[into], here)
                            if not _lets(filters, interest, here):
                                continue
                            # -- once for each representation and session, as early as any way brings it
                            session = ways.down_session[way]
                            known = -1
                            for k in range(begin, count):
                                same = told[k, 2] == session
                                for d in range(dimensions):
                                    a, b = said[k, d], here[d]
                                    same = same and (a == b or (a != a and b != b))
                                if same:
                                    known = k
                                    break
                            if known >= 0:
                                told[known, 3] = min(told[known, 3], when[state])
                                continue
                            if count == told.shape[0]:
                                told, said = _grown(told), _grown(said)
                            told[count, 0], told[count, 1] = row, consumer
                            told[count, 2], told[count, 3] = session, when[state]
                            said[count] = here
                            count += 1
        for s in range(reached):
            head[ways.up_scope[entry[s]]] = -1
    return told[:count], said[:count]
