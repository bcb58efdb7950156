"""Delivery to one client after another, compiled: model (B) over sorted rows.

The events of a client are its rows, sorted by time: outages, unmatches and matches; between them fall its checks. Rows
of one client, instant and kind are one message (a broker sends a set at once) and share one number and one fate. The
SimPy model in `simulated.py` says the same with processes, and a test holds the two equal client by client; what both
must compute alike (draws, intervals, probabilities) is written once, here and in `draws.py`.

Time is integer microseconds. Order of ties at one instant: an outage begins or ends, then unmatch, then match, then the
check, then the broker's sweep for dead connections. The members of one message need no order. Messages take no time.

Constants that are handed on are made numbers of NumPy first: as they are, each would be a type of its own, for which
Numba compiles what is called once more.
"""

from __future__ import annotations

import numpy as np

from workbench.brokering.delivery.draws import CHECK, INTERVAL, PASSIVE, START, uniforms
from workbench.compiling import callee, compiled

# The strategies, and where the numbers of every strategy stand in its row; its own follow.
CONSTANT, RANDOM, DECREASE, ADAPTIVE, PROMPT, RECEDING, SQUARE_ROOT = range(7)
T0, T_MIN, T_MAX, MEASURED, OWN = range(5)
ROW = OWN + 2
# A channel as a row of numbers.
LOSS, LOSS_BAD, GOOD_S, BAD_S, BREAKS, BROKER_SIDE, NOTICED = range(7)
# Kinds of rows, in the order of ties.
OUTAGE, UNMATCH, MATCH = 0, 1, 2
# The state of a connection; and what becomes of one that the client repairs by itself, which is up again.
UP, BROKEN, REMOVED, REPAIRED = range(4)
# How a notification became known.
PENDING, BY_MESSAGE, BY_STATE, BY_LOG, MISSED = range(5)
# What is counted for a client: notifications by how they became known, messages, checks, losses it observed.
COUNTS = (
    "pending", "by_message", "by_state", "by_log", "missed",
    "messages", "lost", "unsent", "breaks", "checks", "failed", "observed", "stale_us",
)  # fmt: skip
_MESSAGES, _LOST, _UNSENT, _BREAKS, _CHECKS, _FAILED, _OBSERVED, _STALE = range(MISSED + 1, len(COUNTS))

SECOND_US = 1_000_000


# What a client of our strategies remembers.
GAP, SILENCE, MEDIAN, LOST, TOLD = range(5)
MEMORY = 5


@callee
def _remember(t, k, active, memory):  # type: ignore[no-untyped-def]
    """An unrecovered gap; the silence since the last news; the median gap and the share lost, forgetting slowly."""
    silence = memory[SILENCE] + t
    news = not active or k > 0
    if news:
        # A step up or down in equal ratio: the median, whatever the longest silences are.
        memory[MEDIAN] = memory[MEDIAN] * 1.1 if silence > memory[MEDIAN] * (k + 1) else memory[MEDIAN] / 1.1
        memory[LOST] = memory[LOST] * 0.98 + k
        memory[TOLD] = memory[TOLD] * 0.98 + (k if active else k + 1)
    memory[SILENCE] = 0.0 if news else silence
    if active:
        memory[GAP] = 0.0
    elif k > 0:
        memory[GAP] = 1.0


@compiled
def planned(code, row, t, k, active, plan, u, memory):  # type: ignore[no-untyped-def]
    """The next interval in seconds after notification i came (`active`: by a check) t after i-1 with k losses.

    `plan` is the interval that had been planned, u a draw in [0, 1), `memory` the client's own numbers.
    """
    previous = t if active or row[MEASURED] > 0 else plan
    if code == CONSTANT:
        return row[T0]
    if code == RANDOM:
        return row[OWN] + u * (row[OWN + 1] - row[OWN])
    if code == DECREASE:
        return row[T0] if k == 0 else row[OWN] * previous
    if code == ADAPTIVE:
        return previous + row[OWN + 1] if k == 0 else (1 + row[OWN] * k) / (k + 1) * previous
    _remember(t, k, active, memory)
    if memory[GAP] > 0:
        return row[T_MIN]
    if code == PROMPT:
        return row[T0]
    if code == RECEDING:
        return row[T0] if memory[SILENCE] == 0 else row[OWN] * plan
    share = memory[LOST] / memory[TOLD]
    q = row[OWN] * (1 + memory[SILENCE] / memory[MEDIAN]) / (share * memory[MEDIAN]) if share > 0 else np.inf
    return memory[MEDIAN] * (np.sqrt(2 * q) + q)


@compiled
def retried(code, row, plan):  # type: ignore[no-untyped-def]
    """The interval in seconds after a check without an answer: the planned one again; ours double it, up to 2 t_0."""
    return plan if code < PROMPT else 2.0 * min(plan, row[T0])


@compiled
def bounded_us(row, interval):  # type: ignore[no-untyped-def]
    """An interval in seconds as microseconds within [t_min, t_max]."""
    return np.int64(np.rint(min(max(interval, row[T_MIN]), row[T_MAX]) * SECOND_US))


@compiled
def step(code, row, t, k, u, memory, out):  # type: ignore[no-untyped-def]
    """One step of the recurrence, model (A), for many replications at once."""
    for r in range(t.size):
        out[r] = planned(code, row, t[r], k[r], np.bool_(True), t[r], u[r], memory[r])


@compiled
def bad_probability(channel, bad, elapsed_us):  # type: ignore[no-untyped-def]
    """The chance that a Gilbert-Elliott channel is bad `elapsed_us` after it was `bad` or not; < 0: unknown."""
    if channel[BAD_S] <= 0:
        return 0.0
    share = channel[BAD_S] / (channel[GOOD_S] + channel[BAD_S])
    if elapsed_us < 0:
        return share
    mixing = 1 / channel[GOOD_S] + 1 / channel[BAD_S]
    return share + ((1.0 if bad else 0.0) - share) * np.exp(-mixing * elapsed_us / SECOND_US)


@compiled
def broken(channel, u):  # type: ignore[no-untyped-def]
    """What the loss of a notification makes of a connection that was up, by a draw u in [0, 1)."""
    if u >= channel[BREAKS]:
        return UP
    if u < channel[BREAKS] * channel[NOTICED]:
        return REPAIRED
    by_broker = u < channel[BREAKS] * (channel[NOTICED] + (1 - channel[NOTICED]) * channel[BROKER_SIDE])
    return REMOVED if by_broker else BROKEN


@compiled
def lag_us(seed, client, spread_us):  # type: ignore[no-untyped-def]
    """By how much a client's first check comes later than t_0, so that clients do not check in step."""
    return np.int64(uniforms(seed, client, np.int64(0), np.int64(START))[0] * spread_us)


@callee
def _slot(key, keys, stamps, stamp, mask):  # type: ignore[no-untyped-def]
    """The place of a publication in the client's table of publications (open addressing, emptied by a new stamp)."""
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64(mixed >> np.uint64(33)) & mask
    while stamps[slot] == stamp and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@compiled
def run(  # type: ignore[no-untyped-def]
    offsets, clients, t, kind, publication,
    seed, since, until, spread_us, channel, code, row, first_memory,
    sweep_us, log, by_numbers, shed, window_us,
    number, how, delay, counts, load,
):  # fmt: skip
    """Deliver to every client: rows offsets[c]:offsets[c + 1] are those of clients[c].

    Fills, a row a notification, its message's `number`, `how` and `delay` (-1: never known); a row a client, `counts`;
    and the messages that reached the broker's desk in each window since `since`, `load`. `shed` is the chance that the
    broker drops a message, by window (empty: never).
    """
    longest = 1
    for c in range(clients.size):
        longest = max(longest, offsets[c + 1] - offsets[c])
    size = 2
    while size < 2 * longest:
        size *= 2
    keys, stamps = np.empty(size, np.int64), np.full(size, -1, np.int64)
    view, actual = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    told = np.zeros(size, np.int64)
    slots = np.empty(longest, np.int64)
    memory = np.empty(first_memory.size)

    for c in range(clients.size):
        client, first, last_row = clients[c], offsets[c], offsets[c + 1]
        mask = 1
        while mask < 2 * (last_row - first):
            mask *= 2
        mask -= 1
        for n in range(memory.size):
            memory[n] = first_memory[n]
        heard = since  # when notification i - 1 came
        plan = bounded_us(row, row[T0])
        due = heard + plan + lag_us(seed, client, spread_us)
        # `evident`: failures that the client saw since the last notification
        sent = known = evident = checks = decisions = 0
        connection, broken_at = UP, np.int64(0)
        bad, bad_at = np.bool_(False), since - 1
        out_until = since
        wrong, stale_since = 0, np.int64(0)
        settled = first  # rows before this one are settled by a check
        count = counts[c]
        j = first
        while True:
            at = t[j] if j < last_row else until + 1
            while due < at:
                # a check
                checks += 1
                request, state, answer, dropped = uniforms(seed, client, checks, np.int64(CHECK))
                if channel[BAD_S] > 0:
                    bad = state < bad_probability(channel, bad, due - bad_at if bad_at >= since else -1)
                    bad_at = due
                p = 1.0 if due < out_until else channel[LOSS_BAD] if bad else channel[LOSS]
                arrives = request >= p
                window = (due - since) // window_us
                if arrives:
                    load[window] += 1
                if not arrives or (shed.size > 0 and dropped < shed[window]) or answer < p:
                    evident += 1
                    plan = bounded_us(row, retried(code, row, plan / SECOND_US))
                    due += plan
                    count[_FAILED] += 1
                    continue
                if by_numbers:
                    k = sent - known
                else:
                    k = 1 if evident > 0 or connection != UP else 0
                connection = UP
                for m in range(j - 1, settled - 1, -1):
                    if kind[m] == OUTAGE or how[m] != PENDING:
                        continue
                    slot = slots[m - first]
                    # The latest notification of a pair comes first here: what differs now is its news.
                    if number[m] > sent - log:
                        how[m], delay[m] = BY_LOG, due - t[m]
                    elif view[slot] != actual[slot] or told[slot] == number[m]:
                        # The second case is a row that stands twice in one message.
                        how[m], delay[m] = BY_STATE, due - t[m]
                        told[slot] = number[m]
                    else:
                        how[m] = MISSED
                    view[slot] = actual[slot]
                settled = j
                if wrong > 0:
                    count[_STALE] += due - stale_since
                    wrong = 0
                known, evident = sent, 0
                count[_OBSERVED] += k
                decisions += 1
                u = uniforms(seed, client, decisions, np.int64(INTERVAL))[0] if code == RANDOM else 0.0
                plan = bounded_us(
                    row, planned(code, row, (due - heard) / SECOND_US, k, np.bool_(True), plan / SECOND_US, u, memory)
                )
                heard = due
                due += plan
            if j == last_row:
                break
            if kind[j] == OUTAGE:
                out_until = max(out_until, publication[j])
                j += 1
                continue
            # a message: the rows of one instant and kind
            sent += 1
            lost, state, breaking, dropped = uniforms(seed, client, sent, np.int64(PASSIVE))
            if channel[BAD_S] > 0:
                bad = state < bad_probability(channel, bad, at - bad_at if bad_at >= since else -1)
                bad_at = at
            if connection == BROKEN and sweep_us > 0 and -(-broken_at // sweep_us) * sweep_us < at:
                connection = REMOVED
            window = (at - since) // window_us
            arrives = False
            if connection != REMOVED:
                load[window] += 1
            if connection == REMOVED or (shed.size > 0 and dropped < shed[window]):
                count[_UNSENT] += 1
            elif connection == BROKEN:
                count[_LOST] += 1
            else:
                p = 1.0 if at < out_until else channel[LOSS_BAD] if bad else channel[LOSS]
                arrives = lost >= p
                if not arrives:
                    count[_LOST] += 1
                    left = broken(channel, breaking)
                    if left != UP:
                        count[_BREAKS] += 1
                    if left == REPAIRED:
                        evident += 1
                    else:
                        connection, broken_at = left, at
            was_wrong = wrong
            j0 = j
            while j < last_row and t[j] == at and kind[j] == kind[j0]:
                slot = _slot(publication[j], keys, stamps, c, mask)
                if stamps[slot] != c:
                    stamps[slot], keys[slot], view[slot], actual[slot] = c, publication[j], False, False
                    told[slot] = 0
                slots[j - first] = slot
                wrong -= view[slot] != actual[slot]
                actual[slot] = kind[j] == MATCH
                if arrives:
                    view[slot] = actual[slot]
                    how[j], delay[j] = BY_MESSAGE, 0
                wrong += view[slot] != actual[slot]
                number[j] = sent
                j += 1
            if was_wrong == 0 and wrong > 0:
                stale_since = at
            elif was_wrong > 0 and wrong == 0:
                count[_STALE] += at - stale_since
            if arrives:
                k = sent - known - 1 if by_numbers else 1 if evident > 0 else 0
                count[_OBSERVED] += k
                known, evident = sent, 0
                decisions += 1
                u = uniforms(seed, client, decisions, np.int64(INTERVAL))[0] if code == RANDOM else 0.0
                plan = bounded_us(
                    row, planned(code, row, (at - heard) / SECOND_US, k, np.bool_(False), plan / SECOND_US, u, memory)
                )
                heard = at
                due = at + plan
        if wrong > 0:
            count[_STALE] += until - stale_since
        count[_MESSAGES], count[_CHECKS] = sent, checks
        for m in range(first, last_row):
            if kind[m] != OUTAGE:
                count[how[m]] += 1
