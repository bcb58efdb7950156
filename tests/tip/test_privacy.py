"""Collaboration is anonymous: what a service receives does not depend on anybody's name (TIP 3, 1 and 7)."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tip.worlds import INFORMATION, LOCATION, Answering, publishing, subscribing
from workbench.tip.bodies import body
from workbench.tip.broker import broker
from workbench.tip.descriptions import ServiceDescription
from workbench.tip.envelope import encode
from workbench.tip.host import Leave, Publish
from workbench.tip.rules import Condition, Rule
from workbench.tip.simulated import Simulation

SECOND = 1_000_000
ROLES = ("ann", "bob", "server", "gps ann", "gps bob", "display ann", "display bob", "guide")
GUIDE = Answering(
    ServiceDescription(
        "informative", advertisements=(INFORMATION,), conditions=(Condition("location"),),
        groups=((Rule(event_type="Location"),),),
    ),
    "Location", "Information",
)  # fmt: skip


def received(names: dict[str, str]) -> dict[str, list[str]]:
    """The bytes that each role receives, ids numbered by their first appearance at that role."""
    made = Simulation([broker(names[role]) for role in ROLES[:3]]).start(*(names[role] for role in ROLES[:3]))
    made.join(names["guide"], names["server"], GUIDE)
    for user in ("ann", "bob"):
        made.join(names[f"gps {user}"], names[user], publishing(LOCATION))
        made.join(names[f"display {user}"], names[user], subscribing("Information"))
        made.connect(names[user], names["server"])
    made.run(SECOND)
    made.say(names["gps ann"], Publish("Location", body(x=1))).run(2 * SECOND)
    made.say(names["gps bob"], Publish("Location", body(x=2)), Leave()).run(3 * SECOND)
    got = {}
    for role in ROLES[3:]:
        numbers: dict[str, str] = {}
        events = [encode(event).decode() for event in made.hosts[names[role]].received]
        got[role] = [re.sub("[0-9a-f]{32}", lambda m, n=numbers: n.setdefault(m[0], f"#{len(n)}"), e) for e in events]
    return got


PLAIN = received({role: role for role in ROLES})


@settings(max_examples=20)
@given(st.permutations(ROLES))
def test_other_names_leave_every_byte_that_a_service_receives_the_same(order: list[str]) -> None:
    assert received(dict(zip(ROLES, order))) == PLAIN


@settings(max_examples=10)
@given(st.lists(st.text("abcxyz", min_size=5, max_size=9), min_size=len(ROLES), max_size=len(ROLES), unique=True))
def test_no_name_stands_in_what_a_service_receives(names: list[str]) -> None:
    got = received(dict(zip(ROLES, names)))
    assert got == PLAIN and sum(map(len, got.values())) >= 8
