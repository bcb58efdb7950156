"""The mobile broker: a broker on the device (A Federated Broker Architecture, VIII).

It is a broker like any other, on the device, with one wireless link to its parent. So it answers from what it knows
without invoking a provider, announces one subscription for all its apps where they cover each other, follows its
`Policy` while it is out of reach, and moves to another parent while its user travels (`Exchange.cut`, `mend`,
`relink`; `Federation.relink` for subject spaces).

`over_the_air` measures what it saves: the same apps, readings and subscriptions, once with a broker on the device and
once with every app and provider talking to the network's broker itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from workbench.brokering.federation.attributes import Subscription
from workbench.brokering.federation.context import Exchange, Policy, Provider
from workbench.brokering.federation.covering import COVERING
from workbench.brokering.federation.overlay import Overlay
from workbench.brokering.federation.state import Rules

NETWORK, DEVICE = "B1", "device"


def over_the_air(
    providers: Iterable[Provider],
    apps: Mapping[Hashable, Iterable[Subscription]],
    readings: Iterable[tuple[float, Hashable, Mapping[str, Any]]],
    outages: Iterable[tuple[float, float]] = (),
    wanted: Iterable[Subscription] = (),
    policy: Policy | None = None,
) -> dict[str, Counter[str]]:
    """What crossed the air, and what became of the rest: with a broker on the device, and with every app by itself.

    ``wanted``: what the rest of the world, at the network's broker, subscribed to. Without a broker on the device
    nobody is there to keep anything during an outage: what is sent then is lost.
    """
    sensors, outside, breaks = list(providers), list(wanted), sorted(outages)
    flat = [(app, s) for app, several in apps.items() for s in several]
    rules = Rules(routing=COVERING)
    mobile = Exchange(
        Overlay([(NETWORK, DEVICE)]),
        rules,
        policies={DEVICE: policy or Policy()},
        wireless=[(NETWORK, DEVICE)],
    )
    names = [p.name for p in sensors] + list(apps)
    alone = Exchange(Overlay([], [NETWORK]), rules, wireless=names)
    for exchange, at in ((mobile, DEVICE), (alone, NETWORK)):
        for s in outside:
            exchange.subscribe("world", NETWORK, s)
        for p in sensors:
            exchange.provide(replace(p, wanted={}), at)
        for app, s in flat:
            exchange.subscribe(app, at, s)
    lost: Counter[str] = Counter()
    for now, name, reading in sorted(readings, key=lambda r: r[0]):
        cut = any(start <= now < end for start, end in breaks)
        if cut and not mobile.down:
            mobile.cut(NETWORK, DEVICE)
        elif not cut and mobile.down:
            mobile.advance(max((end for _, end in breaks if end <= now), default=now))
            mobile.mend(NETWORK, DEVICE)
        mobile.advance(now)
        mobile.reading(name, reading)
        if cut:
            lost["lost"] += alone.providers[name].published(reading, 0) is not None
        else:
            alone.reading(name, reading)
    return {"mobile broker": _figures(mobile), "every app by itself": _figures(alone) + lost}


def _figures(exchange: Exchange) -> Counter[str]:
    counts = exchange.counts
    found = Counter(loss.why for loss in counts.losses)
    heard = {client: len(items) for client, items in exchange.inbox.items()}
    return found + Counter(
        {
            "over the air": counts.wireless,
            "heard by apps": sum(n for client, n in heard.items() if client != "world"),
            "heard by the world": heard.get("world", 0),
            "unavailable": counts.messages["Unavailable"],
        }
    )
