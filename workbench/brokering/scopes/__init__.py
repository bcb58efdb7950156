"""Scopes: who may see whom (Fiege, Mezini, Mühl, Buchmann: Engineering Event-Based Systems with Scopes, 2002).

graph        components, scopes, membership, visibility     definition   deliveries, by enumerating paths: the judge
interfaces   what may cross a boundary                      adapters     the efficient form of section 4
mappings     what it becomes on the way                     scoped       a scenario under a graph is a scenario
policies     when, where and to whom it is sent             sending      who is, instant by instant
transmission that, as the last stage of a replay            transmitter  and between a live broker and its clients
faces        how a derived publication is called            toml         a graph written down
why          what stopped or changed a notification         live         a broker under a graph that changes
routes       what stands on the ways of a producer          market       the paper's stock application
tabular      tables of notifications, here and on Spark     kernel       its loop, compiled
forms        XML outside, a form of one's own inside        city         districts, a mall, two kinds of drivers
"""

from workbench.brokering.scopes.definition import Notification, deliveries
from workbench.brokering.scopes.graph import Edge, Scope, ScopeGraph, graph
from workbench.brokering.scopes.interfaces import OPEN, Interface, interface, kinds, passes
from workbench.brokering.scopes.live import EventService, ScopedBroker
from workbench.brokering.scopes.mappings import EventMapping, converting
from workbench.brokering.scopes.policies import Admitting, ByKey, Chosen, Delayed, OneOf, Until
from workbench.brokering.scopes.scoped import scoped
from workbench.brokering.scopes.toml import from_toml, to_toml
from workbench.brokering.scopes.transmission import transmitted
from workbench.brokering.scopes.why import why

__all__ = [
    "ScopeGraph", "Scope", "Edge", "graph", "from_toml", "to_toml",
    "Interface", "interface", "passes", "kinds", "OPEN", "EventMapping", "converting",
    "Delayed", "Until", "OneOf", "ByKey", "Chosen", "Admitting",
    "Notification", "deliveries", "why",
    "scoped", "transmitted", "ScopedBroker", "EventService",
]  # fmt: skip
