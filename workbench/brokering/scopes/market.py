"""The stock application (Scopes, 2.1, Figures 1, 3 and 7, Table 1).

Two markets; in each the trading floor (matching engine, logging database, here also a market maker) is encapsulated
by the professionals, who are a subscope of the private customers:

    ME, DB, MM -> TF -> Prof -> Private -> M1        C2, C3 -> Prof       C1 -> Private
    ME2, DB2   -> TF2 -> Prof2 -> Private2 -> M2     C4 -> Prof2          C3 -> Private2

Customers are session scopes that hold their devices, and the trading floors they deal with (Figure 7). C3 is a
customer of both markets. The customer groups are session scopes too, so that C3 can tell the quotes of the two apart
(3.6). Quotes are published in no session: a trade executes two orders, and belongs to neither customer alone.

`TABLE_1` is the paper's, `CORRECTED` is ours, `printed` and `market` are the graphs with the one and the other.

Departure: Table 1 as printed is inconsistent with the text around it.

* A customer's input is Accept alone: in Figure 3 no quote would ever reach a customer, who is there "monitoring
  quotes". In Figure 7 it would, over the trading floor's membership in the customer's scope, and at once: "the
  distinction between private and professional customers would be broken".
* ME is said to output Accept and Quote, and DB OrderBook. In the text DB "issues acceptance notifications (Accept)" and
  "the matching engine publishes an orderbook summary": the two are swapped.
* "Trade", Private's only output, is nowhere published, consumed or explained.
* Prof inputs Order and outputs Accept, so that orders and acceptances would run through the market; by 3.6 they stay
  within the customer's session scope.
* "Quote(delayed)" is no filter but a publishing policy.
* With the sessions of Figure 7 the markets are no longer invisible to each other: C3 holds both trading floors, and
  TF and C4 have the common superscope Private2. What keeps them apart there is interfaces alone.
* One row for TF and one for Ci cannot be right: by 3.6 "the trading floor needs at least two interfaces", and a
  customer shows one face to his market and another to his devices. Interfaces belong to edges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from workbench.brokering.scopes.definition import Notification
from workbench.brokering.scopes.graph import Scope, ScopeGraph, graph
from workbench.brokering.scopes.interfaces import Content, Interface, interface, kinds, passes
from workbench.brokering.scopes.mappings import EventMapping
from workbench.brokering.scopes.policies import Admitting, Delayed
from workbench.model import Scenario, Space, column, other, own, publications, region, subscriptions

FIFTEEN_MINUTES = 900
CUSTOMERS = ("C1", "C2", "C3", "C4")

TABLE_1: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # component: (input, output); "–" is printed for nothing
    "M1":      ((), ()),
    "M2":      ((), ()),
    "Private": ((), ("Trade",)),
    "Prof":    (("Order",), ("Accept", "Quote")),  # Quote(delayed)
    "Ci":      (("Accept",), ("Order",)),
    "TF":      (("Order",), ("Accept", "Quote")),
    "ME":      (("Order",), ("Accept", "Quote")),
    "DB":      (("Order", "Quote"), ("OrderBook",)),
}  # fmt: skip

CORRECTED: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # edge: (input, output)
    "Prof -> Private": ((), ("Quote",)),  # after 15 minutes: a publishing policy
    "Ci -> market":    (("Quote",), ()),
    "TF -> Prof":      ((), ("Quote",)),
    "TF -> Ci":        (("Order",), ("Accept",)),  # of its own market
    "device -> Ci":    (("Accept", "Quote"), ("Order",)),
    "ME -> TF":        (("Order",), ("Quote", "OrderBook")),
    "DB -> TF":        (("Order", "Quote"), ("Accept",)),
    "MM -> TF":        (("OrderBook", "Quote"), ("Order",)),
}  # fmt: skip


def structure(figure: int = 7) -> ScopeGraph:
    """Who belongs to what, and nothing else: Figure 3, or Figure 7 with trading floors in the scopes of customers.

    >>> structure(3).visible("TF", "C4"), structure(7).visible("TF", "C4")
    (False, True)
    """
    session = Scope(session=True)
    made = graph(
        "ME->TF", "DB->TF", "MM->TF", "TF->Prof", "Prof->Private", "Private->M1",
        "ME2->TF2", "DB2->TF2", "TF2->Prof2", "Prof2->Private2", "Private2->M2",
        "PC1->C1", "C1->Private", "TF->C1",
        "Agent2->C2", "C2->Prof", "TF->C2",
        "PC3->C3", "C3->Prof", "C3->Private2", "TF->C3", "TF2->C3",
        "PC4->C4", "C4->Prof2", "TF2->C4",
        scopes=dict.fromkeys(CUSTOMERS, session),
    )  # fmt: skip
    dealing = [(m, s) for m, s in made.edges if m.startswith("TF") and s in CUSTOMERS and figure == 3]
    for member, scope in dealing:
        made = made.leave(member, scope)
    return made


def _of_market(name: str) -> str:
    return "M2" if name.endswith("2") else "M1"


def euro(said: Content) -> Content:
    """Quotes in dollars, in euros; what is in euros already stays as it is.

    >>> euro({"price": 110.0, "currency": "USD"})
    {'price': 100.0, 'currency': 'EUR'}
    """
    if said.get("currency") != "USD":
        return said
    return {**said, "price": round(said["price"] / 1.1, 2), "currency": "EUR"}


def market(delay: int = FIFTEEN_MINUTES) -> ScopeGraph:
    """The stock application with the corrected table; private customers hear of quotes that many ticks later."""
    made = structure()
    for member, scope in structure().edges:
        row = _row(member, scope)
        if row is None:
            continue
        into, out = (kinds(*names) for names in CORRECTED[row])
        if row == "TF -> Ci":
            into = interface(passes(kind="Order", market=_of_market(member)))
        made = made.with_edge(member, scope, input=into, output=out)
    for group in ("Prof", "Private", "Prof2", "Private2"):
        made = made.with_scope(group, session=True)
    for prof in ("Prof", "Prof2"):
        made = made.with_scope(prof, publishing=Delayed(delay))
    made = made.with_edge("TF2", "Prof2", mapping_out=EventMapping("euro", euro))
    return made.with_scope("TF", security=Admitting(frozenset({"ME", "DB", "MM"})))


def _row(member: str, scope: str) -> str | None:
    """The row of the corrected table that an edge is in."""
    if scope in CUSTOMERS:
        return "TF -> Ci" if member.startswith("TF") else "device -> Ci"
    if member in CUSTOMERS:
        return "Ci -> market"
    name = f"{member.rstrip('2')} -> {scope.rstrip('2')}"
    return name if name in CORRECTED else None


def printed(figure: int = 7) -> ScopeGraph:
    """The stock application with Table 1 as it is printed: one interface for each component, on all its edges."""
    made = structure(figure)
    for name in made.nx:
        row = "Ci" if name in CUSTOMERS else name.rstrip("2") if name not in TABLE_1 else name
        if row in TABLE_1 and made.superscopes(name):
            into, out = (kinds(*names) for names in TABLE_1[row])
            made = made.with_interface(name, input=into, output=out)
    return made.with_scope("Prof", publishing=Delayed(FIFTEEN_MINUTES))


# -- as a scenario ---------------------------------------------------------------------------------------------------

notification = Space("notification", kind=str, share=str, price=float, currency=str, market=str)

WISHES = (
    # component, kinds, shares
    ("PC1", ("Accept", "Quote"), ("IBM",)),
    ("Agent2", ("Accept", "Quote"), ("SAP", "IBM")),
    ("PC3", ("Accept", "Quote"), ("SAP",)),
    ("PC4", ("Accept", "Quote"), ("SAP",)),
    ("ME", ("Order",), ("SAP", "IBM")),
    ("DB", ("Order", "Quote"), ("SAP", "IBM")),
    ("MM", ("OrderBook", "Quote"), ("SAP", "IBM")),
    ("ME2", ("Order",), ("SAP", "IBM")),
    ("DB2", ("Order", "Quote"), ("SAP", "IBM")),
)

DAY = (
    # id, t, component, context, kind, share, price, currency, market
    ("o1", 10, "PC1", "", "Order", "IBM", 80.0, "EUR", "M1"),
    ("a1", 11, "DB", "C1", "Accept", "IBM", 80.0, "EUR", "M1"),
    ("o3", 20, "PC3", "", "Order", "SAP", 120.0, "EUR", "M2"),
    ("a3", 21, "DB2", "C3", "Accept", "SAP", 120.0, "EUR", "M2"),
    ("b1", 30, "ME", "", "OrderBook", "SAP", 118.0, "EUR", "M1"),
    ("q1", 60, "ME", "", "Quote", "SAP", 119.0, "EUR", "M1"),
    ("q2", 70, "ME2", "", "Quote", "SAP", 132.0, "USD", "M2"),
    ("q3", 80, "ME", "", "Quote", "IBM", 81.0, "EUR", "M1"),
)
EVENT = ("id", "t", "component", "context", "kind", "share", "price", "currency", "market")


def trading(day: Iterable[tuple[Any, ...]] = DAY) -> Scenario:
    """Everybody's subscriptions, and the events of a day: quotes, orders and acceptances live one instant."""
    said = {name: column[name] for name in ("kind", "share", "price", "currency", "market")}
    events = pd.DataFrame(list(day), columns=list(EVENT)).replace({"context": {"": None}})
    wishes = pd.DataFrame(
        [{"id": name, "kinds": wanted, "shares": shares} for name, wanted, shares in WISHES]
    )
    wish = region(notification, kind=column.kinds, share=column.shares)
    return Scenario(
        [notification],
        [publications("events", rows="events", regions={"said": region(notification, **said)}, transient=True)],
        [
            subscriptions(
                "components",
                rows="components",
                regions={"wish": wish},
                filter=own.wish.contains(other.said, space=notification),
            )
        ],
        tables={"events": events, "components": wishes},
        name="stock trading",
    )


def wanted() -> dict[str, Interface]:
    """The same subscriptions as sets of filters on notifications."""
    return {name: interface(passes(kind=wished, share=shares)) for name, wished, shares in WISHES}


def event(id: str, day: Iterable[tuple[Any, ...]] = DAY) -> Notification:
    """An event of the day as a notification.

    >>> event("a1").producer, sorted(event("a1").context)
    ('DB', ['C1'])
    """
    row = dict(zip(EVENT, next(e for e in day if e[0] == id), strict=True))
    content = {name: row[name] for name, _ in notification.dimensions}
    return Notification(id, row["component"], content, frozenset(row["context"].split()), row["t"])
