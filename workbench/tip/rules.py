"""Advertisements, functional conditions and subscription rules (TIP 3, 6).

An advertisement tells about the data that a service publishes, one for each event type. A *condition*, the tuple
<data category, service category, local publisher, remote publisher>, says what a service cannot do without. A *rule*,
the tuple <priority, event type, event category, quality, exclusive subscription, service category of publisher,
publisher, local, external, allowable latency, maximum failure rate>, says what it wants to be subscribed to.

Here an advertisement is an object region and a rule an interest region of one subject space, and a rule accepts an
advertisement if its region contains the other one. Rules of one *group* are alternatives by priority.

Departure: rules "define the required data format", but their tuple has no field for it. `format` is a twelfth.
Departure: `local` and `external` (`remote`) are two flags; both false would accept nobody, and is refused.
Departure: services that publish at intervals can promise it (`interval`), so that silence can be told from "no event
happened"; section 5 asks for that as its first question and section 6 leaves it open.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any

from workbench.errors import DataError, raise_all
from workbench.model.extents import at_least, at_most, one_of
from workbench.model.regions import Region, region
from workbench.model.relations import Containment
from workbench.model.spaces import Number, Space, percentage
from workbench.tip.events import BEST, TOKEN

LOCAL, OUTSIDE = "local", "outside"
SERVICES = Space(
    "services", event_type=str, event_category=str, quality=percentage, service_category=str, publisher=str,
    place=str, latency=Number("latency", 0, unit="us"), failure_rate=percentage, format=str,
)  # fmt: skip
_CONTAINS = Containment()


class Priority(IntEnum):
    """Of a rule in its group: rules of a higher priority are evaluated first."""

    LOW = 1
    MEDIUM = 2
    HIGH = 3


@dataclass(frozen=True, order=True)
class Advertisement:
    """What a service publishes: one event type, its quality, and how reliably it comes.

    `latency` and `interval` are in microseconds, `failure_rate` in percent; an `interval` above 0 promises an event at
    least that often.

    >>> Advertisement("Location", "location", "location", quality=80).object_region("p1", LOCAL)["quality"]
    [80]
    """

    type: str
    category: str = ""
    service_category: str = ""
    quality: int = BEST
    format: str = ""
    latency: int = 0
    failure_rate: float = 0.0
    interval: int = 0

    def __post_init__(self) -> None:
        faults = [
            f"advertisement of {self.type!r} has the {name} {value!r}; expected {expected}"
            for name, value, good, expected in (
                ("type", self.type, _is_name(self.type), "a name"),
                ("category", self.category, self.category == "" or _is_name(self.category), "a name"),
                ("service category", self.service_category, self.service_category == "" or
                 _is_name(self.service_category), "a name"),
                ("format", self.format, self.format == "" or _is_name(self.format), "a name"),
                ("quality", self.quality, 0 <= self.quality <= BEST, "0 to 100"),
                ("latency", self.latency, self.latency >= 0, "at least 0"),
                ("failure rate", self.failure_rate, 0 <= self.failure_rate <= 100, "0 to 100 percent"),
                ("interval", self.interval, self.interval >= 0, "at least 0"),
            ) if not good
        ]  # fmt: skip
        raise_all(faults, DataError)

    def object_region(self, publisher: str, place: str) -> Region:
        """The advertisement of a publisher as a region of the space of services."""
        return _object_region(self, publisher, place)


@lru_cache(maxsize=65536)
def _object_region(advertisement: Advertisement, publisher: str, place: str) -> Region:
    return region(
        SERVICES,
        event_type=advertisement.type,
        event_category=advertisement.category,
        quality=advertisement.quality,
        service_category=advertisement.service_category,
        publisher=publisher,
        place=place,
        latency=advertisement.latency,
        failure_rate=advertisement.failure_rate,
        format=advertisement.format,
    )


@dataclass(frozen=True, order=True)
class Entry:
    """An advertisement in the publisher index: whose it is (an opaque label), and the broker it came from, if any."""

    publisher: str
    advertisement: Advertisement
    broker: str = ""
    auxiliary: str = ""

    @property
    def place(self) -> str:
        return OUTSIDE if self.broker else LOCAL

    @property
    def region(self) -> Region:
        """The entry as an object region."""
        return self.advertisement.object_region(self.publisher, self.place)


@dataclass(frozen=True)
class Condition:
    """Without such data a service cannot provide its functionality.

    >>> gps = Entry("p1", Advertisement("Location", "location", "location"))
    >>> Condition("location").accepts(gps), Condition("location", local=False).accepts(gps)
    (True, False)
    """

    data_category: str
    service_category: str = ""
    local: bool = True
    remote: bool = True

    def __post_init__(self) -> None:
        if not (self.local or self.remote):
            raise DataError(f"{self!r} accepts neither local nor remote publishers, so nobody; expected one of them")

    @property
    def interest_region(self) -> Region:
        return _interest_region(
            event_category=self.data_category or None,
            service_category=self.service_category or None,
            place=_places(self.local, self.remote),
        )

    def accepts(self, entry: Entry) -> bool:
        """Whether the entry's advertisement meets the condition."""
        return _accepts(self, entry)


@dataclass(frozen=True)
class Rule:
    """What a service wants to be subscribed to; an empty field accepts anything.

    >>> gps = Entry("p1", Advertisement("Location", "location", "location", quality=30))
    >>> Rule(event_type="Location", quality=50).accepts(gps), Rule(event_type="Location").accepts(gps)
    (False, True)
    """

    priority: Priority = Priority.MEDIUM
    event_type: str = ""
    event_category: str = ""
    quality: int = 0
    exclusive: bool = False
    service_category: str = ""
    publisher: str = ""
    local: bool = True
    external: bool = True
    latency: int | None = None
    failure_rate: float | None = None
    format: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "priority", Priority(self.priority))
        if not (self.local or self.external):
            raise DataError(f"{self!r} accepts neither local nor external publishers, so nobody; expected one of them")
        self.interest_region  # noqa: B018 - a rule that is no region is refused here

    @property
    def interest_region(self) -> Region:
        """The rule as a region of the space of services."""
        return _interest_region(
            event_type=self.event_type or None,
            event_category=self.event_category or None,
            quality=at_least(self.quality),
            service_category=self.service_category or None,
            publisher=self.publisher or None,
            place=_places(self.local, self.external),
            latency=None if self.latency is None else at_most(self.latency),
            failure_rate=None if self.failure_rate is None else at_most(self.failure_rate),
            format=self.format or None,
        )

    def accepts(self, entry: Entry) -> bool:
        """Whether the rule's interest region contains the entry's object region."""
        return _accepts(self, entry)


Group = tuple[Rule, ...]
"""Rules that are alternatives: if one results in a subscription, those of lower priority are not evaluated."""


@lru_cache(maxsize=65536)
def _accepts(wanting: Condition | Rule, entry: Entry) -> bool:
    return _CONTAINS.holds(wanting.interest_region, entry.region, SERVICES, "planar")


def _interest_region(**constraints: Any) -> Region:
    return region(SERVICES, **constraints)


def _places(local: bool, outside: bool) -> Any:
    return one_of(*([LOCAL] if local else []), *([OUTSIDE] if outside else []))


def _is_name(value: str) -> bool:
    return TOKEN.fullmatch(value) is not None
