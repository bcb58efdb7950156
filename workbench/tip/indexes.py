"""The publisher and the subscriber index of a broker, as one table to be read (TIP 3, 6 and Figure 12).

"The publisher and subscriber index are used by the broker to keep track of what service publishes which data, and who
subscribes to which data." They are spread over the state of a broker, where each step looks things up; here they are
put together for whoever runs it: local services by name, publishers elsewhere by their opaque labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from workbench.tip.rules import LOCAL, OUTSIDE
from workbench.tip.state import State

PUBLISHER, SUBSCRIBER = "publisher", "subscriber"
COLUMNS = ["event_type", "index", "event_category", "quality", "publisher", "subscriber", "place", "broker"]


def indexes(state: State) -> pd.DataFrame:
    """One row for each entry of both indexes, by event type.

    In the publisher index, `place` is where the publisher is, `broker` whose service it is if outside, and `quality`
    what is advertised. In the subscriber index they are where the events come from that are filtered to the subscriber
    (Figure 12's last index), the broker that subscribed if it is one, and the least quality; a subscription to
    whatever publisher has a row for each place. Brokers get what is local only. Stalled services are in neither.

    >>> from workbench.tip.broker import broker
    >>> from workbench.tip.services import Fix, History, LocationService
    >>> from workbench.tip.simulated import Simulation
    >>> world = Simulation([broker("b")]).start("b").join("gps", "b", LocationService((Fix(1, 0, 0, 90),)))
    >>> world.join("diary", "b", History()).run()
    >>> indexes(world.brokers["b"])[COLUMNS[:-1]].to_dict("split")["data"]
    [['Location', 'publisher', 'location', 90, 'gps', '', 'local'],
     ['Location', 'subscriber', 'location', 80, 'gps', 'diary', 'local']]
    """
    rows = [*_publishers(state), *_subscribers(state)]
    return pd.DataFrame(rows, columns=COLUMNS).sort_values(COLUMNS, ignore_index=True)


def _publishers(state: State) -> Iterator[tuple[Any, ...]]:
    for name, service in state.services.items():
        if service.active:
            for said in service.description.advertisements:
                yield said.type, PUBLISHER, said.category, said.quality, name, "", LOCAL, ""
    for broker, neighbour in state.neighbours.items():
        for entry in neighbour.entries:
            said = entry.advertisement
            yield said.type, PUBLISHER, said.category, said.quality, entry.publisher, "", OUTSIDE, broker


def _subscribers(state: State) -> Iterator[tuple[Any, ...]]:
    names = {state.label(name): name for name in state.services}
    for name, service in state.services.items():
        for type, category, quality, publisher in service.subscriptions:
            places = [LOCAL, OUTSIDE] if not publisher else [LOCAL] if publisher in names else [OUTSIDE]
            for place in places:
                yield type, SUBSCRIBER, category, quality, names.get(publisher, publisher), name, place, ""
    for broker, neighbour in state.neighbours.items():
        for type, category, quality, publisher in neighbour.wants:
            yield type, SUBSCRIBER, category, quality, names.get(publisher, publisher), broker, LOCAL, broker
