"""XML between partners and a form of one's own inside, by mappings at the boundaries (Scopes, 3.4)."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.brokering.scopes.adapters import adapted
from workbench.brokering.scopes.definition import Notification, deliveries
from workbench.brokering.scopes.forms import LONGEST, xml_forms
from workbench.brokering.scopes.graph import graph
from workbench.brokering.scopes.interfaces import interface, kinds, passes
from workbench.brokering.scopes.live import ScopedBroker
from workbench.brokering.scopes.scoped import scoped
from workbench.brokering.scopes.why import why
from workbench.model import (
    Scenario,
    Space,
    anything_but,
    column,
    other,
    own,
    publications,
    region,
    subscriptions,
)
from workbench.replay import replay

TO_XML, FROM_XML = xml_forms({"Quote": ("share", "price"), "Order": ("share", "price")}, numbers=("price",))
FLOORS = graph("ME->TF", "DB->TF", "TF->Market", "Partner->Market", "TF2->Market", "ME2->TF2")
for floor in ("TF", "TF2"):
    FLOORS = FLOORS.with_edge(floor, "Market", mapping_out=TO_XML, mapping_in=FROM_XML)
"""Two trading floors, each with a form of its own, in a market that speaks XML."""

QUOTE = {"kind": "Quote", "share": "A&B <1>", "price": 119.5}
XML = '<Quote share="A&amp;B &lt;1&gt;" price="119.5"/>'
ASKED = {
    "DB": kinds("Quote", "Order"),
    "ME2": kinds("Quote", "Order"),
    "Partner": interface(passes(xml=anything_but(""))),
}
EXPECTED = {
    ("DB", tuple(sorted(QUOTE.items()))),           # inside, as it was published
    ("Partner", (("xml", XML),)),                   # outside, XML
    ("ME2", tuple(sorted(QUOTE.items()))),          # and back again in the other floor
}  # fmt: skip


def test_inside_it_is_internal_outside_it_is_xml() -> None:
    quote = Notification("q1", "ME", QUOTE)
    for way in (deliveries, adapted):
        assert {(d.consumer, d.content) for d in way(FLOORS, quote, ASKED)} == EXPECTED
    assert "TF ↑ Market: xml gives" in str(why(FLOORS, quote, "Partner", ASKED))


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=8), st.floats(0, 1e9))
def test_the_way_out_and_in_changes_nothing(share: str, price: float) -> None:
    said = {"kind": "Order", "share": share, "price": price}
    ((_, document),) = TO_XML(said)
    if len(share.split()) == 1 and "￾" not in share and "￿" not in share:
        assert FROM_XML(document) == [("internal", said)]


@pytest.mark.parametrize(
    "text",
    [
        "<Quote", "Quote", "<Quote price='dear'/>", "<Trade/>", "<Quote size='1'/>", "<Quote><Quote/></Quote>",
        "<!DOCTYPE Quote [<!ENTITY e 'x'>]><Quote share='&e;'/>", f"<Quote share='{'x' * LONGEST}'/>", None,
    ],
)  # fmt: skip
def test_what_is_not_of_the_form_does_not_get_in(text: Any) -> None:
    assert FROM_XML({"xml": text}) == []


internal = Space("internal", kind=str, share=str, price=float)
document = Space("document", xml=str)


def trading() -> Scenario:
    """The same on engines: what is internal is a region in one space, a document in another one."""
    said = region(internal, kind=column.kind, share=column.share, price=column.price)
    events = pd.DataFrame([{"id": "q1", "t": 1, "component": "ME", **QUOTE, "xml": None}])
    wanted = region(internal, kind=column.kinds)
    anything = region(document, xml=anything_but(""))
    return Scenario(
        [internal, document],
        [publications("events", rows="events", transient=True,
                      regions={"said": said, "text": region(document, xml=column.xml)})],
        [
            subscriptions("floors", rows="floors", regions={"wish": wanted},
                          filter=own.wish.contains(other.said, space=internal)),
            subscriptions("partners", rows="partners", regions={"any": anything},
                          filter=own.any.contains(other.text, space=document)),
        ],
        tables={
            "events": events.astype({"xml": object}),
            "floors": pd.DataFrame([{"id": name, "kinds": ("Quote", "Order")} for name in ("DB", "ME2")]),
            "partners": pd.DataFrame([{"id": "Partner"}]),
        },
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("engine", ["reference", "local"])
def test_engines_and_the_live_broker_tell_the_same_forms(engine: str) -> None:
    limited = scoped(trading(), FLOORS)
    rows = limited.tables["events"].set_index("id")[["kind", "share", "price", "xml"]].to_dict("index")
    lines = replay(limited, None, engine=engine).timelines
    got = {(r.subscription.partition("/")[2], r.publication) for r in lines.itertuples()}
    said = {(who, tuple(sorted((k, v) for k, v in rows[name].items() if not pd.isna(v)))) for who, name in got}
    assert said == EXPECTED
    live = ScopedBroker(trading(), FLOORS)
    live.add("partners", "Partner", t=0)
    for name in ("DB", "ME2"):
        live.add("floors", name, t=0, kinds=("Quote", "Order"))
    live.add("events", "q1", t=1, component="ME", **QUOTE)
    assert {(m.subscription.partition("/")[2], p) for m in live.broker.advance(1) for p in m.publications} == got
