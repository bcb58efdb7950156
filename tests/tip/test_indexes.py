"""The publisher and the subscriber index as a table, beside what the broker does by its own (TIP 3, 6)."""

from __future__ import annotations

from tests.tip.worlds import Quiet
from workbench.tip.broker import broker, receivers
from workbench.tip.descriptions import ServiceDescription
from workbench.tip.events import Event
from workbench.tip.indexes import PUBLISHER, SUBSCRIBER, indexes
from workbench.tip.maps import MapClient, MapServer
from workbench.tip.rules import LOCAL, OUTSIDE
from workbench.tip.services import Fix, History, Information, LocationService, Sight
from workbench.tip.simulated import Simulation

SIGHTS = (Sight("s1", "Sight", 0, 0, 30, "art"),)


def world() -> Simulation:
    made = Simulation([broker("client"), broker("server")]).start("client", "server")
    made.join("gps", "client", LocationService((Fix(1, 0, 0, 90),))).join("map", "client", MapClient())
    anything = Quiet(ServiceDescription("list", subscriptions=("Location",)))
    made.join("diary", "client", History()).join("list", "client", anything)
    made.join("maps", "server", MapServer("city")).join("guide", "server", Information(SIGHTS, ("art",)))
    made.connect("client", "server")
    made.run(2_000_000)
    return made


def test_publishers_and_subscribers_are_listed_by_event_type_local_and_outside() -> None:
    made = world()
    guide = made.brokers["server"].label("guide")
    found = indexes(made.brokers["client"]).query("event_type == 'Location'").drop(columns="event_type")
    assert list(found.itertuples(index=False, name=None)) == [
        (PUBLISHER, "information", 100, guide, "", OUTSIDE, "server"),
        (PUBLISHER, "location", 90, "gps", "", LOCAL, ""),
        (SUBSCRIBER, "", 0, "", "list", LOCAL, ""),
        (SUBSCRIBER, "", 0, "", "list", OUTSIDE, ""),
        (SUBSCRIBER, "information", 0, guide, "map", OUTSIDE, ""),
        (SUBSCRIBER, "location", 80, "gps", "diary", LOCAL, ""),
        (SUBSCRIBER, "location", 80, "gps", "map", LOCAL, ""),
        (SUBSCRIBER, "location", 80, "gps", "server", LOCAL, "server"),
    ]


def test_an_event_is_filtered_to_the_subscribers_that_the_table_names() -> None:
    made = world()
    for state in made.brokers.values():
        table = indexes(state)
        labels = {name: state.label(name) for name in state.services}
        subscribers = table[(table["index"] == SUBSCRIBER) & (table["broker"] == "")]
        published = table[table["index"] == PUBLISHER]
        assert len(published) > 3
        for said in published.itertuples():
            for quality in (said.quality, 0):
                event = Event("e1", said.event_type, 0, said.event_category, quality)
                named = subscribers[
                    (subscribers["event_type"] == said.event_type)
                    & subscribers["event_category"].isin(["", said.event_category])
                    & (subscribers["quality"] <= quality)
                    & subscribers["publisher"].isin(["", said.publisher])
                    & (subscribers["place"] == said.place)
                    & (subscribers["subscriber"] != said.publisher)
                ]
                publisher = labels.get(said.publisher, said.publisher)
                origin = said.publisher if said.place == LOCAL else said.broker
                assert set(receivers(state, event, publisher, origin)) == set(named["subscriber"])


def test_who_is_stalled_or_gone_is_in_neither() -> None:
    made = Simulation([broker("b")]).start("b").join("map", "b", MapClient())
    made.run(1_000)
    assert indexes(made.brokers["b"]).empty
    made.join("gps", "b", LocationService((Fix(1, 0, 0, 90),)))
    made.run(9_000)
    assert set(indexes(made.brokers["b"])["event_type"]) == {"Location", "MapRequest"}
