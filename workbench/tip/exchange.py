"""The exchange of registries between brokers (TIP 3, Figure 2), by the rules of the federation.

"When a broker connects to another broker, it exchanges its registries' information." What changed since is told in the
same way: what a neighbour was told, and what it should know, give the two sets of the next *tableUpdate*, which
`federation.covering` computes; each entry travels as an event of its own, as 4.2 wants it. A subscription that another
one covers is not told: whoever sends by the wider one sends all that is wanted, and the receiving broker filters anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from workbench.brokering.federation.covering import COVERING, SIMPLE, announcement
from workbench.tip.observer import Subscription
from workbench.tip.rules import Entry


class News(NamedTuple):
    """What a neighbour has to be told, and what it then was told in all."""

    advertised: tuple[Entry, ...]
    withdrawn: tuple[Entry, ...]
    subscribed: tuple[Subscription, ...]
    unsubscribed: tuple[Subscription, ...]
    told_wants: frozenset[Subscription]


@dataclass(frozen=True)
class _Told:
    """An entry or a subscription as a table of the federation holds it."""

    name: Any
    of: Any
    version: tuple[int, int] = (0, 0)

    def accepts(self, item: Any) -> bool:
        return not isinstance(self.of, Subscription) or self.of.accepts(*item)

    def covers(self, other: Any) -> bool:
        return covers(self.of, other.of)

    def merged(self, other: Any) -> None:
        return None

    @property
    def needs(self) -> None:
        return None


def covers(wide: Subscription, slim: Subscription) -> bool:
    """Whether all that one accepts is accepted by the other.

    >>> covers(Subscription("Location"), Subscription("Location", quality=80))
    True
    """
    return (
        wide.type == slim.type
        and wide.category in ("", slim.category)
        and wide.quality <= slim.quality
        and wide.publisher in ("", slim.publisher)
    )


def news(
    told_entries: Iterable[Entry],
    entries: Iterable[Entry],
    told_wants: Iterable[Subscription],
    wants: Iterable[Subscription],
) -> News:
    """What to tell a neighbour.

    >>> rough, fine = Subscription("Location"), Subscription("Location", quality=80)
    >>> news((), (), (fine,), (fine, rough))[2:4]
    ((Subscription(type='Location', category='', quality=0, publisher=''),), (Subscription(type='Location', ...),))
    """
    before = {(e.publisher, e.advertisement.type): e for e in sorted(told_entries)}
    now = {(e.publisher, e.advertisement.type): e for e in sorted(entries)}
    adverts = announcement(_table(before), _table(now), [*before, *now], SIMPLE)
    told, wanted = ({s: s for s in sorted(given)} for given in (told_wants, wants))
    subs = announcement(_table(told), _table(wanted), [s for s in (*told, *wanted) if s not in told or s not in wanted],
                        COVERING)  # fmt: skip
    new, gone = _of(subs.subscriptions), _of(subs.unsubscriptions)
    left = frozenset(told) - frozenset(gone) | frozenset(new)
    return News(_of(adverts.subscriptions), _of(adverts.unsubscriptions), new, gone, left)


def _table(given: dict[Any, Any]) -> dict[Any, _Told]:
    return {name: _Told(name, one) for name, one in given.items()}


def _of(found: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(sorted(one.of for one in found))
