"""A walk: a user among services that appear and disappear (TIP 3, 1, 5 and 7).

A *provider* has a broker of its own and services that are to be had in its area: information about its sights, their
items, a map, advice, and indoors, where GPS is poor, RFID tags. The user's broker connects where the area is entered
and takes leave where it is left, the matches and unmatches of Figure 1 (`availability`); a provider without an area
is there all the time. Nobody is configured for anybody.

What happened is read off as tables: `messages`, `timelines` (which provider was to be had, which sight the display
was told of), `fixes` and `places` for a map, `figures` for a line of a report.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import pandas as pd
import shapely

from workbench import tables
from workbench.model.shapes import box
from workbench.tip.availability import Passage, passages
from workbench.tip.broker import broker
from workbench.tip.host import Leave
from workbench.tip.inputs import Disconnect, Received
from workbench.tip.maps import MapClient, MapServer, Prefetcher
from workbench.tip.observer import Auxiliary
from workbench.tip.services import (
    GPS,
    RFID,
    Display,
    Fix,
    History,
    Information,
    ItemService,
    LocationService,
    Recommendation,
    Shown,
    Sight,
    TagReader,
    TagService,
)
from workbench.tip.simulated import Simulation
from workbench.tip.state import State

SECOND = 1_000_000
READER = Auxiliary("reader", "Location", takes=RFID, gives=GPS, quality=90)
USER = "client"
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Provider:
    """Who offers services, and where; without an area, everywhere."""

    name: str
    sights: tuple[Sight, ...]
    area: Box | None = None
    maps: bool = True
    indoors: bool = False
    advises: bool = False

    def holds(self, fix: Fix) -> bool:
        """Whether its services are to be had at a fix."""
        if self.area is None:
            return True
        x0, y0, x1, y1 = self.area
        return x0 <= fix.x <= x1 and y0 <= fix.y <= y1


class Snapshot(NamedTuple):
    """What the user's broker knew at a time: services, brokers, and the map in use."""

    t: int
    services: dict[str, Any]
    brokers: frozenset[str]
    map: str


def first_states(providers: Iterable[Provider]) -> dict[str, State]:
    """The brokers of a walk before it begins."""
    made = [broker(USER, auxiliaries=(READER,)), *(broker(one.name) for one in providers)]
    return {state.name: state for state in made}


class Walk:
    """A user who walks past providers; `poor` is the quality of GPS indoors, None leaves it as it is.

    Maps are fetched `ahead_m` in advance by the user's heading, or with a `random_seed` by headings drawn at random;
    with 0 none is fetched.
    """

    def __init__(
        self,
        fixes: Iterable[Fix],
        providers: Iterable[Provider],
        likes: Iterable[str],
        *,
        poor: int | None = 30,
        ahead_m: float = 0.0,
        random_seed: int | None = None,
    ) -> None:
        self.providers, self.likes = tuple(providers), tuple(likes)
        self.given = tuple(self._received(fix, poor) for fix in fixes)
        self._tags = {
            f"{one.name}/{n}": (fix.x, fix.y)
            for one in self.providers if one.indoors for n, fix in enumerate(self.given) if one.holds(fix)
        }  # fmt: skip
        self.world = Simulation(
            first_states(self.providers).values(), launcher=lambda name, auxiliary: TagReader(self._tags)
        )
        self.snapshots: list[Snapshot] = []
        self.world.start(*self.world.brokers)
        self._join_user(Prefetcher(ahead_m=ahead_m, seed=random_seed) if ahead_m else None)
        for one in self.providers:
            self._join_provider(one)
        self._run()

    def _received(self, fix: Fix, poor: int | None) -> Fix:
        indoors = poor is not None and any(one.indoors and one.holds(fix) for one in self.providers)
        return Fix(fix.t, fix.x, fix.y, min(fix.quality, poor)) if indoors and poor is not None else fix

    # -- the world ---------------------------------------------------------------------------------------------

    def _join_user(self, ahead: Prefetcher | None) -> None:
        types = sorted({sight.item_type for one in self.providers for sight in one.sights})
        self.world.join("gps", USER, LocationService(self.given)).join("map", USER, MapClient())
        self.world.join("display", USER, Display(tuple(types))).join("history", USER, History())
        if ahead:
            self.world.join("ahead", USER, ahead)

    def _join_provider(self, one: Provider) -> None:
        self.world.join(f"{one.name} information", one.name, Information(one.sights, self.likes))
        for type in sorted({sight.item_type for sight in one.sights}):
            items = {sight.id: sight.text for sight in one.sights if sight.item_type == type}
            self.world.join(f"{one.name} {type} items", one.name, ItemService(type, items))
        if one.maps:
            name = f"{one.name} plan" if one.area else one.name
            self.world.join(f"{one.name} map", one.name, MapServer(name, area=one.area))
        if one.advises:
            self.world.join(f"{one.name} advice", one.name, Recommendation(one.sights, self.likes))

    def _run(self) -> None:
        by_name = {one.name: one for one in self.providers}
        for one in self.providers:
            if one.area is None:
                self.world.connect(USER, one.name)
        for t, kind, name in self.passages:
            # Half a second before the fix that is in the area, so that its services are there for it.
            self.world.run(max(self.world.now, t - SECOND // 2))
            self._snapshot()
            if kind == "match":
                self.world.connect(USER, name)
                if by_name[name].indoors:
                    self.world.join("rfid", USER, TagService(self._readings(name)))
            else:
                if by_name[name].indoors:
                    self.world.say("rfid", Leave())
                self.world.input(USER, Disconnect(name))
        self.world.run(self.given[-1].t + 2 * SECOND)
        self._snapshot()

    def _readings(self, name: str) -> tuple[tuple[int, str], ...]:
        numbered = ((fix.t + 1000, f"{name}/{n}") for n, fix in enumerate(self.given))
        return tuple((t, tag) for t, tag in numbered if tag in self._tags)

    def _snapshot(self) -> None:
        state = self.world.brokers[USER]
        services = {n: (s.active, s.subscriptions, s.description) for n, s in state.services.items()}
        map = self.world.hosts["map"].memory
        self.snapshots.append(
            Snapshot(self.world.now, services, frozenset(state.neighbours), map.using if map else "")
        )

    # -- what is read off it -----------------------------------------------------------------------------------

    @cached_property
    def passages(self) -> list[Passage]:
        """When the user enters and leaves the areas of providers."""
        areas = {one.name: box(*one.area) for one in self.providers if one.area}
        return passages(areas, [(fix.t, (fix.x, fix.y)) for fix in self.given]) if areas else []

    @cached_property
    def messages(self) -> pd.DataFrame:
        """The table of messages."""
        return self.world.messages

    @property
    def shown(self) -> Shown:
        """What the display knows at the end."""
        known: Shown = self.world.hosts["display"].memory
        return known

    @cached_property
    def timelines(self) -> pd.DataFrame:
        """When which provider was to be had, and when which sight was told of, in seconds."""
        rows: list[tuple[Any, ...]] = []
        for one in self.providers:
            open_since = None
            for t, kind, name in self.passages:
                if name == one.name and kind == "match":
                    open_since = t
                elif name == one.name and open_since is not None:
                    rows.append((one.name, "user", open_since // SECOND, t // SECOND, "unmatch"))
                    open_since = None
            if open_since is not None:
                rows.append((one.name, "user", open_since // SECOND, pd.NA, None))
        ends = {fix.t // SECOND: after.t // SECOND for fix, after in zip(self.given, self.given[1:])}
        for id in dict.fromkeys(id for _, id in self.shown.shown):
            times = sorted({t // SECOND for t, shown in self.shown.shown if shown == id})
            # The user is where the last fix was, until the next one.
            starts = [t for t in times if t not in {ends.get(before) for before in times}]
            for start, following in zip(starts, [*starts[1:], None]):
                last = max(t for t in times if following is None or t < following)
                end = ends.get(last)
                rows.append((id, "user", start, pd.NA if end is None else end, None if end is None else "unmatch"))
        made = pd.DataFrame(rows, columns=list(tables.TIMELINES)).astype({"pi": "Int64"})
        return made.sort_values(["tau", "publication"], ignore_index=True)

    @property
    def notifications(self) -> pd.DataFrame:
        """The same as matches and unmatches."""
        return tables.notifications_frame(self.timelines)

    @property
    def fixes(self) -> pd.DataFrame:
        """Where the user was, and how good GPS was, in seconds."""
        rows = [("user", fix.t // SECOND, fix.x, fix.y, fix.quality) for fix in self.given]
        return pd.DataFrame(rows, columns=["mobile", "t", "x", "y", "gps_quality"])

    @property
    def places(self) -> pd.DataFrame:
        """The areas of providers, and the sights with their reach."""
        rows: list[Any] = [(one.name, "provider", "", shapely.box(*one.area)) for one in self.providers if one.area]
        for sight in {sight.id: sight for one in self.providers for sight in one.sights}.values():
            rows.append((sight.id, sight.item_type, sight.theme, shapely.Point(sight.x, sight.y).buffer(sight.reach_m)))
        return pd.DataFrame(rows, columns=["place", "kind", "theme", "geometry"])

    @property
    def figures(self) -> dict[str, int]:
        """Messages, cache hits, information and recommendations, counted."""
        sent, brokers = self.messages, set(self.world.brokers)
        between = sent["sender"].isin(brokers) & sent["receiver"].isin(brokers)
        to_display = sent["receiver"] == "display"
        cache, shown = self.world.brokers[USER].cache, self.shown
        advised = {id: t for t, id in reversed(shown.advised)}
        return {
            "positions": len(self.given),
            "providers entered": sum(kind == "match" for _, kind, _ in self.passages),
            "messages": len(sent),
            "of these between brokers": int(between.sum()),
            "requests that the cache answered": cache.hits,
            "requests sent": cache.misses,
            "information messages": int((to_display & (sent["type"] == "Information")).sum()),
            "items delivered": len({id for _, id in shown.shown}),
            "recommendations": int((to_display & (sent["type"] == "Recommendation")).sum()),
            "items recommended": len(advised),
            "recommended, then come to": len({id for t, id in shown.shown if t > advised.get(id, t)}),
            **self._maps(),
        }

    def _maps(self) -> dict[str, int]:
        """Which maps were fetched ahead, which of them nobody asked for afterwards, and which were waited for."""
        sent = self.messages
        left = set(sent.loc[(sent["sender"] == USER) & (sent["receiver"] != "map"), "id"])
        asked = [
            (t, input.event) for t, at, input, _ in self.world.recording
            if at == USER and isinstance(input, Received) and input.event.type == "MapRequest"
        ]  # fmt: skip
        ahead = [(t, event.body) for t, event in asked if event.prefetched and event.id in left]
        needed = [(t, event.body) for t, event in asked if not event.prefetched]
        return {
            "maps fetched ahead": len(ahead),
            "of these never needed": sum(not any(t > at and tile == what for t, tile in needed) for at, what in ahead),
            "maps waited for": sum(event.id in left and not event.prefetched for _, event in asked),
        }
