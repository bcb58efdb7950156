"""Where an event may go, as scopes: sessions of requests, and the foreground (TIP 3, 3.1 and 8; Scopes, 3.1 and 3.6).

"If a message was forwarded from a foreign broker, any reply should be sent to this broker only": that is a session.
For a broker the connections to other brokers and its own services are session scopes, and all of its services belong
to all of them (Figure 6 of the scopes paper). A request that was forwarded carries the scope that it came in by as its
tag, known by its id as long as the broker remembers it; a reply is published in that context, and goes up into a scope
only if `ScopeGraph.admits` it. "Only the currently visible service reacts to user input": the user is a component of
the scope `foreground`, the visible service is its other member, and user input goes to whom the user sees, v(X, Y).

Here: one graph for each set of neighbours and each visible service, kept while it is in use; nothing is made for a
single request or event. Names are opaque labels.

Departure: what a service asks at its own broker is no session (3.1 speaks of foreign brokers only), unless the same
reply answers a forwarded request too.
"""

from __future__ import annotations

from functools import lru_cache

from workbench.brokering.scopes import Scope, ScopeGraph, graph
from workbench.brokering.scopes.definition import NO_CONTEXT, Context
from workbench.tip.events import Event
from workbench.tip.state import State

HERE, FOREGROUND, USER, SERVICES = "here", "foreground", "user", "services"


def session(state: State, event: Event) -> Context:
    """The scopes that an event answers into: the brokers whose requests it answers, and here if some were made here.

    >>> from workbench.tip.broker import broker
    >>> session(broker("b"), Event("e1", "Location", 0))
    frozenset()
    """
    if not event.is_reply:
        return NO_CONTEXT
    origins = {state.recent.origin(id) for id in event.relates_to}
    found = frozenset(HERE if name not in state.neighbours else name for name in origins if name is not None)
    return found if found != {HERE} else NO_CONTEXT


def admits(state: State, scope: str, context: Context) -> bool:
    """Whether what is published in a context may go up into a scope: a neighbour's, or `HERE`."""
    if not context:
        return True
    named = {name: name if name == HERE else state.label(name) for name in (*context, scope)}
    return _standing(state).admits(named[scope], frozenset(named[name] for name in context))


def sees_the_user(state: State, service: str) -> bool:
    """Whether the user and a service see each other: v(user, service).

    >>> from workbench.tip.broker import broker
    >>> sees_the_user(broker("b", foreground="map"), "map"), sees_the_user(broker("b", foreground="map"), "list")
    (True, False)
    """
    known, label = _standing(state), state.label(service)
    return label in known.components and known.visible(USER, label)


def _standing(state: State) -> ScopeGraph:
    visible = state.label(state.foreground) if state.foreground else ""
    return _graph(frozenset(map(state.label, state.neighbours)), visible)


@lru_cache(maxsize=1024)
def _graph(neighbours: frozenset[str], visible: str) -> ScopeGraph:
    sessions = {name: Scope(session=True) for name in (HERE, *neighbours)}
    made = graph((USER, FOREGROUND), *((SERVICES, name) for name in sessions), scopes={FOREGROUND: Scope(), **sessions})
    return made.join(visible, FOREGROUND) if visible else made
