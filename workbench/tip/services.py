"""The services of the tourist information provider (TIP 3, 4.3 and 6), as behaviours of `host`.

================  ============  =====================================================================================
`LocationService`  provide-only  Location, from any table of fixes; its quality as the receiver's, advertised anew
`TagService`       provide-only  Location in the format of RFID tags
`TagReader`        auxiliary     translates tags into coordinates
`Information`      ordinary      Location in, Information out: item types and identifiers, never the items
`Recommendation`   ordinary      Location in, Recommendation out: the nearest items of the liked themes
`ItemService`      ordinary      one for each item type: answers requests for items
`Display`          ordinary      asks for items that it does not have yet, then shows them
`History`          sink          keeps where the user was
`Database`         ordinary      answers queries; its answers go straight to the asker
================  ============  =====================================================================================

Sights are object regions, profiles and positions interest regions; `suggested` is our model's overlap. Map services
are in `maps`, the route planner in `routes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import hypot
from typing import Any

from workbench import tables
from workbench.crs import Coordinates, converted, in_words
from workbench.errors import DataError
from workbench.geometry import PLANAR
from workbench.model.columns import is_null
from workbench.model.extents import one_of
from workbench.model.regions import Region, region
from workbench.model.relations import Overlap
from workbench.model.shapes import box, disc, point
from workbench.model.spaces import Position, Space
from workbench.tip.bodies import body, fields
from workbench.tip.descriptions import DATABASE, ServiceDescription
from workbench.tip.events import BEST, Event
from workbench.tip.host import BEGIN, WAKE, Act, Advertise, Publish, WakeAt
from workbench.tip.rules import Advertisement, Condition, Group, Priority, Rule

SIGHTS = Space("sights", position=Position(), theme=str)
GPS, RFID = "gps", "rfid"
GOOD = 80
MEMORY = tuple[Any, tuple[Act, ...]]
NEEDS_LOCATION = (Condition("location", "location"),)


def location_rules(good: int = GOOD) -> Group:
    """The user's position as coordinates, from one publisher: a good one, or else any."""
    common: dict[str, Any] = {
        "event_type": "Location", "event_category": "location", "service_category": "location", "exclusive": True,
        "format": GPS,
    }  # fmt: skip
    return (Rule(Priority.HIGH, quality=good, **common), Rule(Priority.LOW, **common))


def position_of(event: Event) -> tuple[float, float]:
    """The coordinates that an event carries; the middle of its cell where they are cloaked."""
    place = place_of(event)
    return ((place[0] + place[2]) / 2, (place[1] + place[3]) / 2) if len(place) == 4 else place


def place_of(event: Event) -> tuple[float, float] | tuple[float, float, float, float]:
    """The coordinates that an event carries, or the cell that they are cloaked to (`cloaking`).

    >>> place_of(Event("e1", "Location", 0, body=body(x=1, y=2)))
    (1.0, 2.0)
    >>> place_of(Event("e1", "Location", 0, body=body(x0=0, y0=0, x1=9, y1=9)))
    (0.0, 0.0, 9.0, 9.0)
    """
    said = fields(event.body)
    try:
        if "x0" in said:
            x0, y0, x1, y1 = (float(said[name][0]) for name in ("x0", "y0", "x1", "y1"))
            return x0, y0, x1, y1
        return float(said["x"][0]), float(said["y"][0])
    except (KeyError, ValueError):
        raise DataError(f"{event!r} carries no position; expected x and y") from None


# -- sights --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sight:
    """Something to be told about: an item of a type, its place and reach, its theme, and the text of the item."""

    id: str
    item_type: str
    x: float
    y: float
    reach_m: float
    theme: str
    text: str = ""

    @cached_property
    def object_region(self) -> Region:
        return region(SIGHTS, position=disc((self.x, self.y), self.reach_m), theme=self.theme)


def suggested(sights: Iterable[Sight], likes: Iterable[str], here: Any) -> list[Sight]:
    """The sights whose object regions overlap the interest region of a profile at a position, cell or area, by id.

    >>> old = Sight("s1", "Sight", 0, 0, 50, "history"), Sight("s2", "Sight", 0, 0, 50, "sport")
    >>> [sight.id for sight in suggested(old, ["history", "art"], (30, 40))]
    ['s1']
    """
    place = here if not isinstance(here, tuple) else point(*here) if len(here) == 2 else box(*here)
    wanted = region(SIGHTS, position=place, theme=one_of(*likes))
    return sorted(
        (s for s in sights if Overlap().holds(s.object_region, wanted, SIGHTS, "planar")), key=lambda s: s.id
    )


def _named(sights: Iterable[Sight]) -> str:
    """Item types and identifiers, as Information and Recommendation carry them."""
    return body(item=tuple(f"{sight.item_type} {sight.id}" for sight in sights))


# -- location ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fix:
    """Where the user was, and how good the receiver was."""

    t: int
    x: float
    y: float
    quality: int = BEST


@dataclass(frozen=True)
class LocationService:
    """Publishes the user's position at every fix; a change of quality is a re-advertisement."""

    fixes: tuple[Fix, ...]
    interval: int = 0

    @staticmethod
    def of(
        fixes: Any, mobile: Any, *, quality: int = BEST, crs: Any = None, zone: str | None = None
    ) -> LocationService:
        """The location service of one mobile of any table of fixes: whatever `replay` takes as such.

        Services measure in metres; where the fixes are in degrees, `crs` says in which. A column `quality` is the
        receiver's, and without one it is `quality`. Nothing is published while the mobile is removed.

        >>> LocationService.of({"mobile": [7, 7], "t": [3, 4], "x": [1.0, None], "y": [2.0, None],
        ...                     "op": [None, "update"]}, 7).fixes
        (Fix(t=3000000, x=1.0, y=2.0, quality=100), Fix(t=4000000, x=1.0, y=2.0, quality=100))
        """
        frame = tables.load(fixes, "fixes")
        if crs is not None:
            frame = converted(frame, "fixes", Coordinates(PLANAR, in_words(crs)))
        rows = tables.read(frame, "fixes", zone)
        if rows.metric != PLANAR or rows.clock is None:
            raise DataError("fixes in degrees, or without x, y; services measure in metres, so say in which: crs=")
        own = rows.frame[rows.frame["id"] == mobile].sort_values("t")
        made: list[Fix] = []
        last: Fix | None = None
        for row in own.to_dict("records"):
            if row["op"] == "remove":
                last = None
            if row["op"] == "remove" or (row["op"] == "update" and last is None):
                continue
            x, y, q = (row.get(name) for name in ("x", "y", "quality"))
            if is_null(x) or is_null(y):
                if last is None:
                    continue  # a mobile of which no position is known
                x, y = last.x, last.y
            if is_null(q):
                q = last.quality if last else quality
            t_us = int(row["t"]) * rows.clock.tick.nanoseconds // 1000
            last = Fix(t_us, float(x), float(y), int(q))  # type: ignore[arg-type]
            made.append(last)
        if not made:
            some = sorted(rows.frame["id"].unique(), key=str)[:5]
            raise DataError(f"no fixes of {mobile!r}; expected one of {some}")
        return LocationService(tuple(made))

    def advertisement(self, quality: int) -> Advertisement:
        return Advertisement("Location", "location", quality=quality, format=GPS, interval=self.interval)

    @property
    def description(self) -> ServiceDescription:
        first = self.fixes[0].quality if self.fixes else BEST
        return ServiceDescription("location", advertisements=(self.advertisement(first),))

    def react(self, memory: Any, happening: Event | str, now: int) -> MEMORY:
        number, quality = memory or (0, self.fixes[0].quality if self.fixes else BEST)
        acts: list[Act] = []
        if happening == WAKE and number < len(self.fixes) and self.fixes[number].t <= now:
            fix = self.fixes[number]
            if fix.quality != quality:
                acts.append(Advertise(self.advertisement(fix.quality)))
            acts.append(Publish("Location", body(x=fix.x, y=fix.y)))
            number, quality = number + 1, fix.quality
        if happening in (BEGIN, WAKE) and number < len(self.fixes):
            acts.append(WakeAt(self.fixes[number].t))
        return (number, quality), tuple(acts)


@dataclass(frozen=True)
class TagService:
    """Publishes the RFID tags that the user's device reads, as Location events of another format."""

    readings: tuple[tuple[int, str], ...]
    quality: int = 95

    @property
    def description(self) -> ServiceDescription:
        said = Advertisement("Location", "location", quality=self.quality, format=RFID)
        return ServiceDescription("location", advertisements=(said,))

    def react(self, memory: Any, happening: Event | str, now: int) -> MEMORY:
        left = self.readings if memory is None else memory
        if happening == BEGIN:
            left = tuple(reading for reading in left if reading[0] >= now)
        acts: list[Act] = []
        if happening == WAKE and left and left[0][0] <= now:
            acts.append(Publish("Location", body(tag=left[0][1])))
            left = left[1:]
        if happening in (BEGIN, WAKE) and left:
            acts.append(WakeAt(left[0][0]))
        return left, tuple(acts)


@dataclass(frozen=True)
class TagReader:
    """The auxiliary service that translates tags into coordinates; unknown tags are passed over."""

    tags: Mapping[str, tuple[float, float]] = field(hash=False)
    quality: int = 90

    @property
    def description(self) -> ServiceDescription:
        said = Advertisement("Location", "location", quality=self.quality, format=GPS)
        return ServiceDescription("location", advertisements=(said,))

    def react(self, memory: Any, happening: Event | str, now: int) -> MEMORY:
        if isinstance(happening, Event) and happening.type == "Location":
            place = self.tags.get(fields(happening.body).get("tag", ("",))[0])
            if place:
                quality = min(self.quality, happening.quality)
                return memory, (Publish("Location", body(x=place[0], y=place[1]), quality),)
        return memory, ()


# -- information ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Information:
    """Names the sights at the user's position that fit the profile, as a reply to the position, and where they are.

    Where a sight is is a Location event too, of the category `information`: a map draws it, and moves nobody there (6).
    """

    sights: tuple[Sight, ...]
    likes: tuple[str, ...]

    @property
    def description(self) -> ServiceDescription:
        return ServiceDescription(
            "informative",
            advertisements=(Advertisement("Information", "information"), Advertisement("Location", "information")),
            conditions=NEEDS_LOCATION,
            groups=(location_rules(),),
        )

    def react(self, memory: Any, happening: Event | str, now: int) -> MEMORY:
        if not (isinstance(happening, Event) and happening.type == "Location"):
            return memory, ()
        found = suggested(self.sights, self.likes, place_of(happening))
        if not found:
            return memory, ()
        here = tuple(
            Publish("Location", body(id=sight.id, x=sight.x, y=sight.y), relates_to=(happening,)) for sight in found
        )
        return memory, (Publish("Information", _named(found), relates_to=(happening,)), *here)


@dataclass(frozen=True)
class Recommendation:
    """Names the nearest sights of the liked themes that are not at the user's position."""

    sights: tuple[Sight, ...]
    likes: tuple[str, ...]
    number: int = 2

    @property
    def description(self) -> ServiceDescription:
        return ServiceDescription(
            "informative",
            advertisements=(Advertisement("Recommendation", "information"),),
            conditions=NEEDS_LOCATION,
            groups=(location_rules(),),
        )

    def react(self, memory: Any, happening: Event | str, now: int) -> MEMORY:
        if not (isinstance(happening, Event) and happening.type == "Location"):
            return memory, ()
        x, y = position_of(happening)
        here = {sight.id for sight in suggested(self.sights, self.likes, place_of(happening))}
        near = sorted(
            (sight for sight in self.sights if sight.theme in self.likes and sight.id not in here),
            key=lambda sight: (hypot(sight.x - x, sight.y - y), sight.id),
        )[: self.number]
        return memory, (Publish("Recommendation", _named(near), relates_to=(happening,)),) if near else ()


@dataclass(frozen=True)
class ItemService:
    """Answers requests for the items of one type; what it does not have it does not answer."""

    item_type: str
    items: Mapping[str, str] = field(hash=False)

    @property
    def description(self) -> ServiceDescription:
        return ServiceDescription(
            "items",
            advertisements=(Advertisement(self.item_type, "item"),),
            groups=((Rule(event_type=f"{self.item_type}Request"),),),
        )

    def react(self, memory: Any, happening: Event | str, now: int) -> MEMORY:
        if isinstance(happening, Event) and happening.type == f"{self.item_type}Request":
            id = fields(happening.body)["id"][0]
            if id in self.items:
                answer = body(id=id, text=self.items[id])
                return memory, (Publish(self.item_type, answer, relates_to=(happening,), cacheable=True),)
        return memory, ()


@dataclass(frozen=True)
class Shown:
    """What a display knows: items by (type, id), those asked for and why, and what it has shown, in order.

    `shown` are the items of Information, `advised` those of Recommendation.
    """

    items: Mapping[tuple[str, str], str] = field(default_factory=dict)
    asked: frozenset[tuple[str, str]] = frozenset()
    wanted: frozenset[tuple[str, tuple[str, str]]] = frozenset()
    shown: tuple[tuple[int, str], ...] = ()
    advised: tuple[tuple[int, str], ...] = ()

    def showing(self, now: int, why: str, keys: Iterable[tuple[str, str]]) -> Shown:
        """The same, having shown items."""
        more = tuple((now, id) for _, id in keys)
        if why == "Information":
            return replace(self, shown=self.shown + more)
        return replace(self, advised=self.advised + more)


@dataclass(frozen=True)
class Display:
    """Shows the items that Information and Recommendation name; asks only for those that it does not have."""

    item_types: tuple[str, ...]

    @property
    def description(self) -> ServiceDescription:
        wants = ("Information", "Recommendation", *self.item_types)
        return ServiceDescription(
            "display",
            advertisements=tuple(Advertisement(f"{type}Request", "request") for type in self.item_types),
            groups=tuple((Rule(event_type=type),) for type in wants),
        )

    def react(self, memory: Any, happening: Event | str, now: int) -> MEMORY:
        known: Shown = memory or Shown()
        if not isinstance(happening, Event) or happening.category == "system":
            return known, ()
        if happening.type in ("Information", "Recommendation"):
            named = [tuple(item.split(" ", 1)) for item in fields(happening.body).get("item", ())]
            keys = [(type, id) for type, id in named if type in self.item_types]
            lacking = [key for key in keys if key not in known.items]
            missing = [key for key in lacking if key not in known.asked]
            known = replace(
                known,
                asked=known.asked | set(missing),
                wanted=known.wanted | {(happening.type, key) for key in lacking},
            ).showing(now, happening.type, [key for key in keys if key in known.items])
            return known, tuple(Publish(f"{type}Request", body(id=id), cacheable=True) for type, id in missing)
        said = fields(happening.body)
        key = (happening.type, said["id"][0])
        why = sorted(why for why, wanted in known.wanted if wanted == key)
        known = replace(
            known,
            items={**known.items, key: said["text"][0]},
            asked=known.asked - {key},
            wanted=known.wanted - {(one, key) for one in why},
        )
        for one in why:
            known = known.showing(now, one, [key])
        return known, ()


# -- history and database --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class History:
    """Keeps where the user was: a sink."""

    limit: int = 10_000

    @property
    def description(self) -> ServiceDescription:
        return ServiceDescription("history", groups=(location_rules(),))

    def react(self, memory: Any, happening: Event | str, now: int) -> MEMORY:
        kept = memory or ()
        if isinstance(happening, Event) and happening.type == "Location":
            kept = (*kept, (happening.time, *position_of(happening)))[-self.limit :]
        return kept, ()


@dataclass(frozen=True)
class Database:
    """Answers queries by key; the broker takes its answers straight to the asker."""

    rows: Mapping[str, str] = field(hash=False)

    @property
    def description(self) -> ServiceDescription:
        return ServiceDescription(
            DATABASE, advertisements=(Advertisement("Answer", DATABASE),), groups=((Rule(event_type="Query"),),)
        )

    def react(self, memory: Any, happening: Event | str, now: int) -> MEMORY:
        if isinstance(happening, Event) and happening.type == "Query":
            key = fields(happening.body)["key"][0]
            return memory, (Publish("Answer", body(key=key, row=self.rows.get(key, "")), relates_to=(happening,)),)
        return memory, ()
