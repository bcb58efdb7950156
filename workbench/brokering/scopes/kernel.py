"""The loop of the table form: notifications through a graph of scopes that has become arrays.

Notifications of one producer that no filter tells apart take the same ways: they are a *class*. For the first of a
class the ways up are walked, what it is at each apex is kept, and every consumer that may want it walks its own ways
down from those apexes. The ways that end well are the *outcomes* of the class and serve all the others: who receives,
in which session, and the steps on the way that change something, which are taken with each row's own numbers. So no
table of pairs is made; the arrays hold, for each scope, the ways up from it and the ways down to it, for each value of
one dimension the consumers that ask for it, and the outcomes of what was published.

A notification is a row of numbers: what a dimension says, a code where it is text (`OTHER` for a text that nothing in
the graph names), NaN where it says nothing. The arithmetic is that of `mappings.Conversion`, step by step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.compiling import callee, compiled
from workbench.engines.growing import taller, wider

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


class Memory(NamedTuple):
    """The classes met so far, by a table of places that is probed one after the other, and their outcomes."""

    places: np.ndarray
    """the class that stands there, or -1; a power of two of them"""
    keys: np.ndarray
    """what makes each class"""
    first: np.ndarray
    """where the outcomes of each class start"""
    outcomes: np.ndarray
    steps: np.ndarray
    """mappings by their number, and the scopes that are waited for, counted down from -1"""
    counts: np.ndarray
    """how many classes, outcomes and steps there are"""


CONSUMER, SESSION, RIVAL, FIRST, LAST = range(5)
"""An outcome: who receives in which session, whether another one may turn out to be the same, where its steps are."""


class Index(NamedTuple):
    """A graph and subscriptions as arrays."""

    filters: Filters
    mappings: Mappings
    edges: Edges
    ways: Ways
    members: Members
    asked: Asked


@callee
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


@callee
def _lets(filters, which, content):  # type: ignore[no-untyped-def]
    if which < 0:
        return True
    for k in range(filters.interface[which], filters.interface[which + 1]):
        if _passes(filters, filters.filter_of[k], content):
            return True
    return False


@callee
def _map(filters, mappings, which, content):  # type: ignore[no-untyped-def]
    """Apply a mapping; whether there was something to apply."""
    if which < 0 or (mappings.only[which] >= 0 and not _passes(filters, mappings.only[which], content)):
        return False
    for k in range(mappings.first[which], mappings.first[which + 1]):
        d = mappings.dimension[k]
        if mappings.kind[k] == SCALE:
            content[d] = content[d] * mappings.value[k]
        else:
            content[d] = mappings.value[k]
    return True


@callee
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


@callee
def _may_enter(ways, scope, context, first, last):  # type: ignore[no-untyped-def]
    if first == last or not ways.session[scope]:
        return True
    for k in range(first, last):  # noqa: SIM110 - as a loop, for the compiler
        if context[k] == scope:
            return True
    return False


@callee
def _apart(ways, entry, way):  # type: ignore[no-untyped-def]
    """Whether a way down enters nothing that the way up has left."""
    at = ways.up_before[entry]
    while at >= 0:
        for k in range(ways.down_edges[way], ways.down_edges[way + 1]):
            if ways.down_member[k] == ways.up_scope[at]:
                return False
        at = ways.up_before[at]
    return True


@callee
def _grown(array, least):  # type: ignore[no-untyped-def]
    """The array with room for more in its first dimension."""
    return array if least <= array.shape[0] else taller(array, max(least, 2 * array.shape[0]))


@callee
def _put(target, source):  # type: ignore[no-untyped-def]
    """The numbers of one row into another one."""
    for k in range(len(source)):
        target[k] = source[k]


@callee
def _replaced(places, keys, count):  # type: ignore[no-untyped-def]
    """A table of twice the places, and every class at its own."""
    made = np.full(2 * places.shape[0], -1, np.int64)
    for known in range(count):
        at = _hash(keys, known) & (made.shape[0] - 1)
        while made[at] >= 0:
            at = (at + 1) & (made.shape[0] - 1)
        made[at] = known
    return made


@callee
def _hash(keys, row):  # type: ignore[no-untyped-def]
    mixed = np.uint64(14695981039346656037)
    for k in range(keys.shape[1]):
        mixed = (mixed ^ np.uint64(keys[row, k])) * np.uint64(1099511628211)
        mixed ^= mixed >> np.uint64(29)
    return np.int64(mixed >> np.uint64(2))


@callee
def _step(filters, mappings, mapping, content, steps, count):  # type: ignore[no-untyped-def]
    """Apply a mapping, and note it where there was something to apply."""
    if _map(filters, mappings, mapping, content):
        steps = _grown(steps, count + 1)
        steps[count, 0] = mapping
        count += 1
    return steps, count


@callee
def _traced(filters, mappings, edges, ways, out, entry, way, into, content, steps, count, trail):  # type: ignore[no-untyped-def]
    """Note the steps on a way that is open: out of the producer, up, down, and into the consumer."""
    if out >= 0:
        steps, count = _step(filters, mappings, edges.mapping_out[out], content, steps, count)
    height, at = 0, entry
    while ways.up_before[at] >= 0:
        trail[height] = at
        height += 1
        at = ways.up_before[at]
    while height > 0:
        height -= 1
        at = trail[height]
        scope = ways.up_scope[ways.up_before[at]]
        if ways.policy[scope] != IMMEDIATE:
            steps = _grown(steps, count + 1)
            steps[count, 0] = -1 - scope
            count += 1
        steps, count = _step(filters, mappings, edges.mapping_out[ways.up_edge[at]], content, steps, count)
    for k in range(ways.down_edges[way], ways.down_edges[way + 1]):
        steps, count = _step(filters, mappings, edges.mapping_in[ways.down_edge[k]], content, steps, count)
    return _step(filters, mappings, edges.mapping_in[into], content, steps, count)


@callee
def _taken(mappings, ways, steps, first, last, content, t):  # type: ignore[no-untyped-def]
    """Take steps with a row's own numbers; when it arrives, `NEVER` where it is not released."""
    for s in range(first, last):
        which = steps[s, 0]
        if which >= 0:
            for k in range(mappings.first[which], mappings.first[which + 1]):
                d = mappings.dimension[k]
                content[d] = content[d] * mappings.value[k] if mappings.kind[k] == SCALE else mappings.value[k]
        else:
            t = _release(ways, -1 - which, t)
            if t == NEVER:
                break
    return t


@callee
def _walk(index, outcomes, count, steps, taken, producer, content, context, first, last, room):  # type: ignore[no-untyped-def]
    """Add the outcomes of a class to those that are known; ``content`` is what one of the class says."""
    filters, mappings, edges, ways, members, asked = index
    seen, head, entry, following, place, edge_out, trail, stands, here, round_ = room
    round_[0] += 1
    # -- up: what it is at each apex
    reached = 0
    itself = members.scope[producer]
    for e in range(members.edges[producer], members.edges[producer + 1]):
        out = members.edge[e]
        scope = itself if itself >= 0 else edges.scope[out]
        _put(here, content)
        if itself < 0:
            if not _may_enter(ways, scope, context, first, last):
                continue
            _map(filters, mappings, edges.mapping_out[out], here)
            if not _lets(filters, edges.output[out], here):
                continue
        base = ways.up[scope]
        for k in range(base, ways.up[scope + 1]):
            before = ways.up_before[k]
            if before < 0:
                _put(stands[reached], here)
            else:
                came = place[before - base]
                place[k - base] = -1
                if came < 0 or not _may_enter(ways, ways.up_scope[k], context, first, last):
                    continue
                _put(stands[reached], stands[came])
                _map(filters, mappings, edges.mapping_out[ways.up_edge[k]], stands[reached])
                if not _lets(filters, edges.output[ways.up_edge[k]], stands[reached]):
                    continue
            entry[reached] = k
            edge_out[reached] = out
            place[k - base] = reached
            reached += 1
    for s in range(reached):
        apex = ways.up_scope[entry[s]]
        following[s] = head[apex]
        head[apex] = s
    # -- who may want it: by what it says, by what it may be made to say, and those that ask for anything
    own_code = content[asked.dimension] if asked.dimension >= 0 else OTHER
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
            if seen[consumer] == round_[0]:
                continue
            seen[consumer] = round_[0]
            interest = members.subscription[consumer]
            if consumer == producer:
                if _lets(filters, interest, content):
                    outcomes = _grown(outcomes, count + 1)
                    outcomes[count, CONSUMER], outcomes[count, SESSION], outcomes[count, RIVAL] = consumer, 0, 0
                    outcomes[count, FIRST], outcomes[count, LAST] = 0, 0
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
                        _put(here, stands[state])
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
                        _put(here, content)
                        steps, more = _traced(
                            filters, mappings, edges, ways,
                            edge_out[state], entry[state], way, into, here, steps, taken, trail,
                        )
                        session = ways.down_session[way]
                        rivals, known = 0, False
                        for k in range(begin, count):
                            if outcomes[k, SESSION] == session:
                                known = known or _same_steps(steps, outcomes[k, FIRST], outcomes[k, LAST], taken, more)
                                rivals += 1
                        if known:
                            continue
                        if rivals:
                            for k in range(begin, count):
                                outcomes[k, RIVAL] |= outcomes[k, SESSION] == session
                        outcomes = _grown(outcomes, count + 1)
                        outcomes[count, CONSUMER], outcomes[count, SESSION] = consumer, session
                        outcomes[count, RIVAL] = rivals > 0
                        outcomes[count, FIRST], outcomes[count, LAST] = taken, more
                        taken = more
                        count += 1
    for s in range(reached):
        head[ways.up_scope[entry[s]]] = -1
    return outcomes, count, steps, taken


@callee
def _same_steps(steps, one, end, other, last):  # type: ignore[no-untyped-def]
    if end - one != last - other:
        return False
    for k in range(end - one):  # noqa: SIM110 - as a loop, for the compiler
        if steps[one + k, 0] != steps[other + k, 0]:
            return False
    return True


@compiled
def deliver(index, memory, classes, producers, times, contents, contexts, context_first, context, states):  # type: ignore[no-untyped-def]
    """Who receives what: notification, consumer, session, t, place; what changed ones say; and the memory.

    ``classes`` is what makes the class of each notification, ``states`` the largest number of ways up that any producer
    has. A place is one among the changed ones, or -1.
    """
    places, keys, starts, outcomes, steps, counts = memory
    known, outcome_count, taken = counts[0], counts[1], counts[2]
    ways, dimensions = index.ways, contents.shape[1]
    told = np.empty((5, max(1024, 2 * producers.shape[0])), np.int64)
    said = np.empty((1024, dimensions))
    count = changed = 0
    here = np.empty(dimensions)
    room = (
        np.zeros(index.members.edges.shape[0], np.int64), np.full(ways.session.shape[0], -1, np.int64),
        np.empty(states, np.int64), np.empty(states, np.int64), np.empty(states, np.int64),
        np.empty(states, np.int64), np.empty(states, np.int64), np.empty((states, dimensions)),
        np.empty(dimensions), np.zeros(1, np.int64),
    )  # fmt: skip
    for row in range(producers.shape[0]):
        if producers[row] < 0:
            continue
        # -- its class, and what comes of that
        at = _hash(classes, row) & (places.shape[0] - 1)
        while places[at] >= 0:
            same = True
            for k in range(keys.shape[1]):
                same = same and keys[places[at], k] == classes[row, k]
            if same:
                break
            at = (at + 1) & (places.shape[0] - 1)
        own = places[at]
        if own < 0:
            first, last = context_first[contexts[row]], context_first[contexts[row] + 1]
            outcomes, outcome_count, steps, taken = _walk(
                index, outcomes, outcome_count, steps, taken, producers[row], contents[row], context, first, last, room
            )
            own = places[at] = known
            keys, starts = _grown(keys, known + 1), _grown(starts, known + 2)
            _put(keys[known], classes[row])
            starts[known + 1, 0] = outcome_count
            known += 1
            if 2 * known > places.shape[0]:
                places = _replaced(places, keys, known)
        # -- the row's own numbers through the outcomes
        begin, most = count, count + starts[own + 1, 0] - starts[own, 0]
        if most > told.shape[1]:
            told = wider(told, 2 * most)
        for o in range(starts[own, 0], starts[own + 1, 0]):
            t, place = times[row], -1
            if outcomes[o, FIRST] < outcomes[o, LAST]:
                said = _grown(said, changed + 1)
                _put(said[changed], contents[row])
                t = _taken(index.mappings, ways, steps, outcomes[o, FIRST], outcomes[o, LAST], said[changed], t)
                if t == NEVER:
                    continue
                place = changed
            if outcomes[o, RIVAL]:
                # once for each representation and session, as early as any way brings it
                _put(here, contents[row] if place < 0 else said[place])
                found = False
                for k in range(begin, count):
                    if told[1, k] == outcomes[o, CONSUMER] and told[2, k] == outcomes[o, SESSION]:
                        same = True
                        for d in range(dimensions):
                            a = here[d]
                            b = contents[row, d] if told[4, k] < 0 else said[told[4, k], d]
                            same = same and (a == b or (a != a and b != b))
                        if same:
                            told[3, k] = min(told[3, k], t)
                            found = True
                            break
                if found:
                    continue
            if place >= 0:
                changed += 1
            told[0, count], told[1, count], told[2, count] = row, outcomes[o, CONSUMER], outcomes[o, SESSION]
            told[3, count], told[4, count] = t, place
            count += 1
    counts = np.array([known, outcome_count, taken])
    return told[:, :count], said[:changed], Memory(places, keys, starts, outcomes, steps, counts)


def nothing_known(width: int) -> Memory:
    """The memory of classes that ``width`` numbers make, before any was met."""
    return Memory(
        np.full(1024, -1, np.int64), np.empty((512, width), np.int64), np.zeros((512, 1), np.int64),
        np.empty((512, 5), np.int64), np.empty((512, 1), np.int64), np.zeros(3, np.int64),
    )  # fmt: skip
