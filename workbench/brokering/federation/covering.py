"""Covering and merging: fewer subscriptions on the way (Muehl et al., whom A Federated Broker Architecture, IX, cites).

σ1 covers σ2 if it accepts everything that σ2 accepts; a neighbour that was told σ1 need not be told σ2. Merging puts
one subscription in the place of several. Both leave what is delivered as it was, because the broker that stayed silent
still has every entry itself.

`announcement` is a pure function: what a neighbour has been told, what it should know of, and what changed give the
sets ς and χ of the next tableUpdate.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from workbench.brokering.federation.tables import Named, Routable
from workbench.errors import ScenarioError, did_you_mean

SIMPLE, COVERING, MERGING = "simple", "covering", "merging"
ROUTING = (SIMPLE, COVERING, MERGING)


@dataclass(frozen=True)
class Announcement:
    """ς and χ for one neighbour."""

    subscriptions: tuple[Routable, ...] = ()
    unsubscriptions: tuple[Routable, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.subscriptions or self.unsubscriptions)

    def applied(self, told: Named) -> Named:
        """What the neighbour has been told after it."""
        return told.changed_by({s.name: s for s in self.subscriptions}, [s.name for s in self.unsubscriptions])


def announcement(
    told: Mapping[Hashable, Routable],
    wanted: Mapping[Hashable, Routable],
    changed: Iterable[Hashable],
    routing: str = SIMPLE,
) -> Announcement:
    """What to announce so that a neighbour told ``told`` knows enough of ``wanted``, of which ``changed`` changed.

    >>> from workbench.brokering.federation.attributes import Subscription, attribute
    >>> wide, slim = Subscription("wide", attribute("age") > 25), Subscription("slim", attribute("age") > 30)
    >>> announcement({"wide": wide}, {"wide": wide, "slim": slim}, ["slim"], COVERING)
    Announcement(subscriptions=(), unsubscriptions=())
    >>> announcement({"wide": wide}, {"slim": slim}, ["wide"], COVERING)
    Announcement(subscriptions=(slim,), unsubscriptions=(wide,))
    """
    if routing == SIMPLE:
        return _simple(told, wanted, changed)
    if routing == COVERING:
        return _covering(told, wanted, changed)
    if routing == MERGING:
        return _difference(told, {s.name: s for s in merged(wanted.values())})
    raise ScenarioError(f"routing {routing!r}; {did_you_mean(routing, ROUTING)}")


def _simple(
    told: Mapping[Hashable, Routable], wanted: Mapping[Hashable, Routable], changed: Iterable[Hashable]
) -> Announcement:
    names = list(dict.fromkeys(changed))
    new = tuple(wanted[n] for n in names if n in wanted and _is_news(told.get(n), wanted[n]))
    return Announcement(new, tuple(told[n] for n in names if n in told and n not in wanted))


def _is_news(told: Routable | None, now: Routable) -> bool:
    return told is None or told != now or told.version != now.version


def _covering(
    told: Mapping[Hashable, Routable], wanted: Mapping[Hashable, Routable], changed: Iterable[Hashable]
) -> Announcement:
    names = list(dict.fromkeys(changed))
    after = {n: s for n, s in told.items() if n not in names}
    # Who was silent because of what went away has to speak now.
    lost = any(n in told for n in names)
    candidates = [s for n, s in wanted.items() if n not in after] if lost else [wanted[n] for n in names if n in wanted]
    for s in candidates:
        if not any(a.covers(s) for a in after.values()):
            after = {n: a for n, a in after.items() if not s.covers(a)}
            after[s.name] = s
    return _difference(told, after)


def _difference(told: Mapping[Hashable, Routable], after: Mapping[Hashable, Routable]) -> Announcement:
    return Announcement(
        tuple(s for n, s in after.items() if _is_news(told.get(n), s)),
        tuple(s for n, s in told.items() if n not in after),
    )


def reduced(subscriptions: Iterable[Routable]) -> list[Routable]:
    """Those that no other one covers; of several that cover each other, the first."""
    kept: list[Routable] = []
    for s in subscriptions:
        if not any(k.covers(s) for k in kept):
            kept = [k for k in kept if not s.covers(k)] + [s]
    return kept


def merged(subscriptions: Iterable[Routable]) -> list[Routable]:
    """Those that remain when each one is merged with the first that it can be merged with."""
    kept: list[Routable] = []
    for s in reduced(subscriptions):
        for place, k in enumerate(kept):
            union = k.merged(s)
            if union is not None:
                kept[place] = union
                break
        else:
            kept.append(s)
    return kept
