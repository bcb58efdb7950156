"""A reply to a forwarded request is a session, the foreground a scope: as the scopes' event service has it (3.6)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tip.test_tcp import GUIDE
from tests.tip.worlds import LOCATION, publishing, subscribing
from workbench.brokering.scopes import EventService, Notification, Scope, deliveries, graph, kinds
from workbench.tip.broker import broker
from workbench.tip.host import Publish
from workbench.tip.inputs import Foreground
from workbench.tip.rules import Advertisement
from workbench.tip.simulated import Simulation

SECOND = 1_000_000
CLIENTS = ("ann", "bob")
SCREENS = {f"{at} {n}": at for at in (*CLIENTS, "server") for n in range(2)}
WISHES = st.fixed_dictionaries({name: st.sets(st.sampled_from(["Information", "News"])) for name in SCREENS})


def told_by_brokers(wishes: dict[str, set[str]], asker: str) -> set[str]:
    made = Simulation([broker(name) for name in (*CLIENTS, "server")]).start(*CLIENTS, "server")
    made.join("guide", "server", GUIDE)
    for name, at in SCREENS.items():
        made.join(name, at, subscribing(*sorted(wishes[name])))
    for client in CLIENTS:
        made.join(f"gps {client}", client, publishing(LOCATION)).connect(client, "server")
    made.run(SECOND)
    made.say(f"gps {asker}", Publish("Location")).run(2 * SECOND)
    return {name for name in SCREENS if made.received(name, "Information")}


def told_by_scopes(wishes: dict[str, set[str]], asker: str) -> set[str]:
    """Figure 6 of the scopes paper: the guide is a member of two session scopes, its broker's and the asker's."""
    edges = [f"{name}->{at}" for name, at in SCREENS.items()]
    edges += [f"gps {client}->{client}" for client in CLIENTS] + ["guide->server", f"guide->{asker}"]
    service = EventService(graph(*edges, scopes={at: Scope(session=True) for at in (*CLIENTS, "server")}))
    service.subscribe("guide", kinds("Location"), lambda said, publish: publish({"kind": "Information"}))
    for name, types in wishes.items():
        if types:
            service.subscribe(name, kinds(*sorted(types)))
    found = service.publish(f"gps {asker}", {"kind": "Location"})
    return {one.consumer for one in found if ("kind", "Information") in one.content}


@settings(max_examples=25)
@given(WISHES, st.sampled_from(CLIENTS))
def test_a_reply_to_a_forwarded_request_goes_to_whom_its_session_holds(wishes: dict[str, set[str]], asker: str) -> None:
    found = told_by_brokers(wishes, asker)
    assert found == told_by_scopes(wishes, asker)
    assert found == {name for name, at in SCREENS.items() if at == asker and "Information" in wishes[name]}


@pytest.mark.parametrize("visible", ["", "map", "list"])
def test_user_input_goes_to_whom_the_scope_of_the_foreground_holds(visible: str) -> None:
    made = Simulation([broker("b")]).start("b").join("finger", "b", publishing(Advertisement("Tap", "user-input")))
    made.join("map", "b", subscribing("Tap")).join("list", "b", subscribing("Tap")).run(SECOND)
    made.input("b", Foreground(visible))
    made.say("finger", Publish("Tap")).run(2 * SECOND)
    edges = ["finger->foreground", "map->background", "list->background"]
    edges += [f"{visible}->foreground"] if visible else []
    taps = {name: kinds("Tap") for name in ("map", "list")}
    found = deliveries(graph(*edges), Notification(1, "finger", {"kind": "Tap"}), taps)
    assert {name for name in taps if made.received(name)} == {one.consumer for one in found} == {visible} - {""}
