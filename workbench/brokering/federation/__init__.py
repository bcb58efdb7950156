"""Federation: many brokers, one service (Kiani, Knappmeyer, Baker, Moltchanov: A Federated Broker Architecture, 2010).

attributes   constraints, subscriptions σ, notifications ν (IV.B)
tables       routing tables T_B (IV.C), and the paper's slips
index        which of many subscriptions can accept an item at all
layers       mappings that are values, cheap to change
messages     pub, sub, unsub, notify, forward, tableUpdate and the rest
covering     fewer subscriptions on the way
interests    routing filters: a stateless superset of our own filters
state        a broker as a value
brokers      what a broker does with a message: a pure function
reports      which neighbour hears of which client's state
homes        where M is decided, and pair history lives
overlay      the network of brokers
simulated    a federation in simulated time, and what is promised
replayed     a replay of tables through a federation
composites   events made of several notifications (IX)
context      context consumers and providers, cut links and policies (II, III, VIII)
mobile       the broker on a device (VIII)
counting     messages, hops, bytes, latency, losses
"""

from workbench.brokering.federation.attributes import Notification, Subscription, attribute
from workbench.brokering.federation.composites import Composite
from workbench.brokering.federation.context import Exchange, Policy, Provider
from workbench.brokering.federation.mobile import over_the_air
from workbench.brokering.federation.overlay import Overlay, divided, geographic, overlay
from workbench.brokering.federation.replayed import federated
from workbench.brokering.federation.simulated import Congestion, Federation
from workbench.brokering.federation.state import Rules

__all__ = [
    "Overlay", "overlay", "geographic", "divided",
    "Subscription", "Notification", "attribute",
    "Federation", "Rules", "Congestion", "federated",
    "Exchange", "Provider", "Composite", "Policy", "over_the_air",
]  # fmt: skip

