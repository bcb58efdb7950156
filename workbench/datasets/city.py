"""A synthetic city: people, tourists, cars, buses and a highway, with the truth kept beside what a receiver saw.

Streets form a grid of blocks; whoever moves follows them, so a leg from door to door has two straight stretches and
a corner. A mobile's day is a list of *breaks* (instant, position, fuel, activity), and its position between two
breaks is linear. Fixes are the breaks seen by a receiver: every `interval_s`, with noise, without the gaps of one
mobile and the outages of a district. The truth has every sample, without noise.

Every draw is a function of (seed, mobile, purpose), see `workbench.datasets.draws`: the city does not depend on
chunks, buckets, cores or engines.

* people commute, lunch near work, shop on the way home; at the weekend they go out once;
* tourists walk from room to room of a museum, drink coffee, and return to their hotel;
* cars drive all day; fuel falls with the way driven and is refilled at the nearest station below the driver's own
  level;
* taxis wait for a fare, drive it where it wants to go, mostly not far, and wait there for the next one;
* buses run in loops on their lines, and wait at stops;
* the highway runs along the south from A to B; between the two a jam builds and clears each morning.

>>> city = City(seed=7, people=3, tourists=0, cars=1, buses=0, highway=0, interval_s=600)
>>> city.fixes().groupby("kind").mobile.nunique().to_dict()
{'car': 1, 'person': 3}
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.datasets.draws import normal, uniform, whole
from workbench.datasets.ingesting import Made, _extent, _finish
from workbench.datasets.layout import ROW_GROUP, Fixes, bucket_of, open_fixes, whole_folder
from workbench.datasets.places import write_places
from workbench.datasets.quality import Report
from workbench.errors import DataError, raise_all
from workbench.geometry import EARTH_RADIUS_M

DAY_S = 86_400
CHUNK_ROWS = 1 << 20
HIGHWAY_INTERVAL_S = 5
TANK_L, LITRES_PER_M = 45.0, 8.0e-5
KINDS = {"b": "bus", "c": "car", "h": "highway", "p": "person", "t": "tourist", "x": "taxi"}
ACTIVITIES = ("home", "travel", "work", "lunch", "shop", "museum", "coffee", "refuel", "parked", "drive", "waiting")
JAM_H = (7.25, 8.0, 9.0, 10.0)
"""When the jam begins to build, is full, begins to clear, and is gone: hours of the day."""
FREE_MPS, JAM_MPS = 30.0, 6.0
RIDES, WAIT_S, RIDE_M, RETURNS = 150, 150.0, 2_500.0, 0.1
"""A taxi's rides in a day at most, its mean wait before one, how far they go on average, and how often they lead back
to its rank."""
BRANDS = ("Arda", "Borealis", "Cygnus", "Delta")
_NAMES = {
    "coffee": ("Bean", "Crema", "Filter", "Grind", "Roast", "Steam"),
    "food": ("Basil", "Ember", "Fig", "Olive", "Salt", "Thyme"),
    "shop": ("Books", "Florist", "Grocer", "Hardware", "Shoes", "Toys"),
}


def _h(hours: float) -> float:
    return hours * 3600.0


@dataclass
class _Plan:
    """Breaks of many mobiles, written leg by leg; every array has a row a mobile."""

    t: np.ndarray
    x: np.ndarray
    y: np.ndarray
    fuel: np.ndarray
    activity: str = "home"
    moving: str = "travel"

    def __post_init__(self) -> None:
        self.breaks: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
        self.mark(self.activity)

    def mark(self, activity: str | np.ndarray) -> None:
        """A break here and now, from which the activity lasts."""
        code = np.full(len(self.t), ACTIVITIES.index(activity), np.int8) if isinstance(activity, str) else activity
        self.breaks.append((self.t.copy(), self.x.copy(), self.y.copy(), self.fuel.copy(), code))

    def wait_until(self, t: np.ndarray) -> None:
        """Stay where one is; time never runs back."""
        self.t = np.maximum(self.t, t)

    def move(self, x: np.ndarray, y: np.ndarray, speed: np.ndarray, litres_per_m: float = 0.0) -> None:
        """Straight to a point."""
        way = np.hypot(x - self.x, y - self.y)
        self.t, self.x, self.y = self.t + way / speed, x, y
        self.fuel = self.fuel - way * litres_per_m
        self.mark(self.moving)

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Instants, positions, fuel and activities, a column a break."""
        t, x, y, fuel, what = (np.stack(column, 1) for column in zip(*self.breaks, strict=True))
        return t, x, y, fuel, what


@dataclass(frozen=True)
class City:
    """The parameters of a city; equal parameters are equal cities.

    start: the first midnight, or None for whole seconds from 0. origin: longitude and latitude of the city's
    middle, or None for metres. gap_share: the share of time, in stretches of `gap_s`, in which one mobile is not
    heard; outages: how often a day a district falls silent.
    """

    seed: int = 1
    people: int = 100
    tourists: int = 20
    cars: int = 50
    buses: int = 8
    highway: int = 100
    taxis: int = 0
    days: int = 1
    size_m: float = 6_000.0
    block_m: float = 200.0
    interval_s: int = 60
    noise_m: float = 5.0
    gap_share: float = 0.02
    gap_s: int = 300
    outages: int = 1
    start: str | None = "2026-03-02T00:00:00Z"
    origin: tuple[float, float] | None = None
    coffee: int = 30
    food: int = 40
    shop: int = 40
    fuel: int = 8
    museums: int = 3
    lines: int = 4

    def __post_init__(self) -> None:
        faults = [
            f"{n}={getattr(self, n)}: expected 0 or more"
            for n in ("people", "tourists", "cars", "buses", "highway", "taxis", "noise_m", "outages")
            if getattr(self, n) < 0
        ]
        faults += [
            f"{n}={getattr(self, n)}: expected 1 or more"
            for n in ("days", "interval_s", "gap_s", "coffee", "food", "shop", "fuel", "museums", "lines")
            if getattr(self, n) < 1
        ]
        if not 0 <= self.gap_share < 1:
            faults.append(f"gap_share={self.gap_share}: expected 0 to 1")
        if self.size_m < 4 * self.block_m or self.block_m < 50:
            faults.append(f"size_m={self.size_m}, block_m={self.block_m}: expected blocks of 50 m or more, four a side")
        if self.start is not None and pd.Timestamp(self.start).tz is None:
            faults.append(
                f"start={self.start!r} names no zone; write it with an offset, such as '2026-03-02T00:00:00Z'"
            )
        raise_all(faults, DataError)

    # -- what does not move ------------------------------------------------------------------------

    @property
    def blocks(self) -> int:
        """Blocks along one side."""
        return int(self.size_m // self.block_m)

    @property
    def crs(self) -> str | None:
        """WGS 84, or None for metres of the city's own."""
        return "EPSG:4326" if self.origin is not None else None

    def _doors(self, purpose: str, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Doors behind random crossings, some metres off the street."""
        column, row = (whole(self.seed, f"{purpose}/{axis}", self.blocks + 1, ids) for axis in "xy")
        off = [5 + 25 * uniform(self.seed, f"{purpose}/off {axis}", ids) for axis in "xy"]
        return column * self.block_m + off[0], row * self.block_m + off[1]

    @cached_property
    def _sites(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        return {
            kind: self._doors(kind, np.arange(getattr(self, kind)))
            for kind in ("coffee", "food", "shop", "fuel", "museums")
        }

    @cached_property
    def _sensors(self) -> dict[str, tuple[float, float]]:
        return {"A": (0.2 * self.size_m, self.highway_y), "B": (0.8 * self.size_m, self.highway_y)}

    @property
    def highway_y(self) -> float:
        """Where the highway runs: two blocks south of the city."""
        return -2.0 * self.block_m

    def places(self) -> pd.DataFrame:
        """Coffee shops, restaurants, shops, fuel stations with their prices over time, and the sensors of the highway.

        A row without `t` is there from the start; a fuel station's later rows (`op` = update) change its `price`.
        """
        rows: list[pd.DataFrame] = []
        for kind in ("coffee", "food", "shop"):
            x, y = self._sites[kind]
            ids = np.arange(len(x))
            name = [f"{_NAMES[kind][i % 6]} {i // 6 + 1}" for i in ids]
            rows.append(
                pd.DataFrame(
                    {"place": [f"{kind}-{i:03d}" for i in ids], "x": x, "y": y, "category": kind, "name": name}
                )
            )
        x, y = self._sites["fuel"]
        brand = [BRANDS[i % len(BRANDS)] for i in range(len(x))]
        names = [f"fuel-{i:03d}" for i in range(len(x))]
        prices = self._prices()
        rows.append(
            pd.DataFrame(
                {
                    "place": names,
                    "x": x,
                    "y": y,
                    "category": "fuel",
                    "name": brand,
                    "brand": brand,
                    "price": prices[:, 0],
                }
            )
        )
        sensors = pd.DataFrame(
            [
                {"place": f"sensor-{n}", "x": x, "y": y, "category": "sensor", "name": n}
                for n, (x, y) in self._sensors.items()
            ]
        )
        changes = pd.DataFrame(
            [
                {"place": names[i], "t": int(hour * 3600), "op": "update", "price": prices[i, k]}
                for i in range(len(names))
                for k, hour in enumerate(self._price_hours(), 1)
            ]
        )
        table = pd.concat([*rows, sensors, changes], ignore_index=True)
        table["t"] = pd.array(table["t"], "Int64") if self.start is None else self._instants_of(table["t"])
        order = ["place", "t", "op", *self._axes, "category", "name", "brand", "price"]
        return self._projected(table.astype({"op": object, "brand": object}))[order]

    def _price_hours(self) -> list[float]:
        return [24 * day + hour for day in range(self.days) for hour in (6.0, 9.0, 12.0, 16.0, 19.0, 22.0)]

    def _prices(self) -> np.ndarray:
        """Prices at each station, first as they are at midnight; dear in the morning, cheap in the evening, with
        whims."""
        ids, turns = np.arange(self.fuel)[:, None], np.arange(len(self._price_hours()) + 1)[None, :]
        usual = np.array([0.03, 0.10, 0.04, 0.02, -0.02, -0.05, 0.0])[turns % 6]
        base = 1.70 + 0.04 * (ids % len(BRANDS)) + 0.02 * uniform(self.seed, "price base", ids)
        return np.round(base + usual + 0.03 * (uniform(self.seed, "price whim", ids, turns) - 0.5), 3)

    def rooms(self) -> Any:
        """The rooms of the museums, two by three, as areas: `place`, `museum`, `room`, `exhibit`, `geometry`."""
        import geopandas
        import shapely

        rows, shapes = [], []
        exhibits = ("Bronze", "Glass", "Maps", "Masks", "Prints", "Sculpture")
        for museum, (west, south) in enumerate(zip(*self._sites["museums"], strict=True)):
            for room in range(6):
                x, y = west + 20 * (room % 3), south + 20 * (room // 3)
                corners = np.array([(x, y), (x + 20, y), (x + 20, y + 20), (x, y + 20)])
                if self.origin is not None:
                    corners = np.stack(self._lonlat(corners[:, 0], corners[:, 1]), 1)
                shapes.append(shapely.Polygon(corners))
                rows.append(
                    {
                        "place": f"museum-{museum}/room-{room}",
                        "museum": f"museum-{museum}",
                        "room": room,
                        "exhibit": exhibits[(room + museum) % 6],
                    }
                )
        return geopandas.GeoDataFrame(rows, geometry=shapes, crs=self.crs)

    def streets(self) -> Any:
        """The streets as lines: `street`, `kind` (street or highway), `geometry`."""
        import geopandas
        import shapely

        at, far = np.arange(self.blocks + 1) * self.block_m, self.blocks * self.block_m
        ends = (
            [((0.0, v), (far, v)) for v in at]
            + [((v, 0.0), (v, far)) for v in at]
            + [((0.0, self.highway_y), (self.size_m, self.highway_y))]
        )
        if self.origin is not None:
            ends = [tuple(zip(*self._lonlat(*np.array(line).T), strict=True)) for line in ends]  # type: ignore[misc]
        names = (
            [f"{i + 1}. Street" for i in range(len(at))] + [f"{i + 1}. Avenue" for i in range(len(at))] + ["Highway"]
        )
        kinds = ["street"] * (len(ends) - 1) + ["highway"]
        return geopandas.GeoDataFrame(
            {"street": names, "kind": kinds}, geometry=[shapely.LineString(e) for e in ends], crs=self.crs
        )

    def profiles(self) -> pd.DataFrame:
        """Who the mobiles are: `mobile`, `kind`, a driver's `refuel_level_l` and `brand`, and the `interest` of
        people and tourists."""
        ids = self.mobile_ids()
        number, kind = _split(ids)
        car = kind == "c"
        interest = np.array(["coffee", "food", "shop"], object)[whole(self.seed, "interest", 3, number)]
        brand = np.array(BRANDS, object)[whole(self.seed, "brand", len(BRANDS), number)]
        return pd.DataFrame(
            {
                "mobile": ids,
                "kind": [KINDS[k] for k in kind],
                "interest": np.where((kind == "p") | (kind == "t"), interest, None),
                "brand": np.where(car, brand, None),
                "refuel_level_l": np.where(car, self._refuel_level(number), np.nan),
            }
        )

    # -- what moves --------------------------------------------------------------------------------

    def mobile_ids(self) -> list[str]:
        """The ids of all mobiles: a letter for the kind and a number, sorted."""
        counts = {"b": self.buses, "c": self.cars, "h": self.highway * self.days, "p": self.people}
        counts |= {"t": self.tourists, "x": self.taxis}
        return [f"{letter}{i:07d}" for letter, count in counts.items() for i in range(count)]

    def _refuel_level(self, ids: np.ndarray) -> np.ndarray:
        return np.round(5 + 7 * uniform(self.seed, "refuel level", ids), 1)

    def _leg(
        self,
        plan: _Plan,
        purpose: str,
        ids: np.ndarray,
        x: np.ndarray,
        y: np.ndarray,
        speed: np.ndarray,
        litres_per_m: float = 0.0,
    ) -> None:
        """From door to door along the streets, with one corner."""
        b = self.block_m
        from_x, from_y, to_x, to_y = (
            np.floor(plan.x / b) * b,
            np.floor(plan.y / b) * b,
            np.floor(x / b) * b,
            np.floor(y / b) * b,
        )
        stays = (plan.x == x) & (plan.y == y)
        first = uniform(self.seed, f"corner {purpose}", ids) < 0.5
        corner_x, corner_y = np.where(first, to_x, from_x), np.where(first, from_y, to_y)
        plan.mark(
            plan.breaks[-1][4]
            if stays.all()
            else np.where(stays, plan.breaks[-1][4], ACTIVITIES.index(plan.moving)).astype(np.int8)
        )
        for to in ((from_x, from_y), (corner_x, corner_y), (to_x, to_y), (x, y)):
            plan.move(np.where(stays, plan.x, to[0]), np.where(stays, plan.y, to[1]), speed, litres_per_m)

    def _near(
        self, kind: str, purpose: str, ids: np.ndarray, x: np.ndarray, y: np.ndarray, among: int = 5
    ) -> tuple[np.ndarray, np.ndarray]:
        """The nearest of some random sites of a kind: people have habits, and do not walk across the city."""
        sites = self._sites[kind]
        choice = whole(self.seed, purpose, len(sites[0]), ids[:, None], np.arange(among)[None, :])
        far = np.abs(sites[0][choice] - x[:, None]) + np.abs(sites[1][choice] - y[:, None])
        best = choice[np.arange(len(ids)), far.argmin(1)]
        return sites[0][best], sites[1][best]

    def _walk_or_ride(self, plan: _Plan, x: np.ndarray, y: np.ndarray, ids: np.ndarray) -> np.ndarray:
        walk = 1.2 + 0.4 * uniform(self.seed, "walking speed", ids)
        return np.where(np.abs(plan.x - x) + np.abs(plan.y - y) > 1_200, 6.0, walk)

    def _at(self, hour: float, spread_h: float, purpose: str, ids: np.ndarray, day: int) -> np.ndarray:
        return day * DAY_S + _h(hour) + _h(spread_h) * np.clip(normal(self.seed, purpose, ids, day)[0], -2.5, 2.5)

    def _people(self, ids: np.ndarray) -> _Plan:
        home, work = self._doors("home", ids), self._doors("work", ids)
        none = np.full(len(ids), np.nan)
        plan = _Plan(np.zeros(len(ids)), *home, none)
        weekday = pd.Timestamp(self.start).dayofweek if self.start is not None else 0
        for day in range(self.days):
            weekend = (weekday + day) % 7 >= 5
            job = home if weekend else work
            self._errand(
                plan,
                ids,
                job,
                self._at(7.5, 0.5, "leave home", ids, day),
                f"to work {day}",
                "home" if weekend else "work",
            )
            lunch = self._near("food", f"lunch {day}", ids, *job)
            self._errand(plan, ids, lunch, self._at(12.25, 0.3, "lunch", ids, day), f"to lunch {day}", "lunch")
            back = plan.t + 60 * (25 + 25 * uniform(self.seed, "lunch lasts", ids, day))
            self._errand(plan, ids, job, back, f"from lunch {day}", "home" if weekend else "work")
            leave = self._at(16.75, 0.7, "leave work", ids, day)
            shops = uniform(self.seed, "shops today", ids, day) < 0.6
            coffee = uniform(self.seed, "coffee today", ids, day) < 0.4
            site = self._near("shop", f"shop {day}", ids, *home)
            cafe = self._near("coffee", f"coffee {day}", ids, *job)
            stop = tuple(np.where(coffee, c, p) for c, p in zip(cafe, (plan.x, plan.y), strict=True))
            self._errand(plan, ids, stop, leave, f"to coffee {day}", "coffee", coffee)
            stay = plan.t + 60 * np.where(coffee, 10 + 20 * uniform(self.seed, "coffee lasts", ids, day), 0)
            stop = tuple(np.where(shops, s, p) for s, p in zip(site, (plan.x, plan.y), strict=True))
            self._errand(plan, ids, stop, stay, f"to shop {day}", "shop", shops)
            stay = plan.t + 60 * np.where(shops, 10 + 25 * uniform(self.seed, "shopping lasts", ids, day), 0)
            self._errand(plan, ids, home, stay, f"to home {day}", "home")
        return plan

    def _errand(
        self,
        plan: _Plan,
        ids: np.ndarray,
        to: Any,
        leave: np.ndarray,
        purpose: str,
        activity: str,
        who: np.ndarray | None = None,
    ) -> None:
        """Leave at a time, go somewhere, and begin an activity there (those of `who`; the others stay as they are)."""
        before = plan.breaks[-1][4]
        plan.wait_until(leave)
        self._leg(plan, purpose, ids, to[0], to[1], self._walk_or_ride(plan, to[0], to[1], ids))
        code = np.full(len(ids), ACTIVITIES.index(activity), np.int8)
        plan.mark(code if who is None else np.where(who, code, before).astype(np.int8))

    def _tourists(self, ids: np.ndarray) -> _Plan:
        hotel = self._doors("hotel", ids)
        plan = _Plan(np.zeros(len(ids)), *hotel, np.full(len(ids), np.nan))
        for day in range(self.days):
            museum = self._near("museums", f"museum {day}", ids, *hotel, among=2)
            plan.wait_until(self._at(9.5, 0.8, "leave hotel", ids, day))
            self._leg(plan, f"to museum {day}", ids, *museum, self._walk_or_ride(plan, museum[0], museum[1], ids))
            for step in range(6):
                room = whole(self.seed, "room", 6, ids, day, step)
                plan.move(museum[0] + 20 * (room % 3) + 10, museum[1] + 20 * (room // 3) + 10, np.full(len(ids), 0.8))
                plan.mark("museum")
                plan.wait_until(plan.t + 60 * (4 + 12 * uniform(self.seed, "room lasts", ids, day, step)))
            cafe = self._near("coffee", f"tourist coffee {day}", ids, *museum)
            self._errand(plan, ids, cafe, plan.t, f"to cafe {day}", "coffee")
            self._errand(
                plan,
                ids,
                hotel,
                plan.t + 60 * (20 + 30 * uniform(self.seed, "cafe lasts", ids, day)),
                f"to hotel {day}",
                "home",
            )
        return plan

    def _cars(self, ids: np.ndarray) -> _Plan:
        level = self._refuel_level(ids)
        # squared, so that a good share of the cars is near its level on the first day
        first = np.round(level + 0.2 + 20 * uniform(self.seed, "first fuel", ids) ** 2, 1)
        plan = _Plan(np.zeros(len(ids)), *self._doors("garage", ids), first, "parked", "drive")
        speed = 8 + 5 * uniform(self.seed, "driving speed", ids)
        pump = self._sites["fuel"]
        for day in range(self.days):
            for trip in range(6):
                leave = self._at(7.0 + 2.5 * trip, 0.6, f"drive {trip}", ids, day)
                plan.wait_until(leave)
                low = plan.fuel < level
                far = np.abs(pump[0] - plan.x[:, None]) + np.abs(pump[1] - plan.y[:, None])
                nearest = far.argmin(1)
                via = np.where(low, pump[0][nearest], plan.x), np.where(low, pump[1][nearest], plan.y)
                before = plan.breaks[-1][4]
                self._leg(plan, f"to pump {day} {trip}", ids, *via, speed, LITRES_PER_M)
                plan.mark(np.where(low, ACTIVITIES.index("refuel"), before).astype(np.int8))
                plan.wait_until(plan.t + np.where(low, 300.0, 0.0))
                plan.fuel = np.where(low, TANK_L, plan.fuel)
                plan.mark("drive")
                goal = self._doors(f"goal {day} {trip}", ids) if trip < 5 else self._doors("garage", ids)
                self._leg(plan, f"trip {day} {trip}", ids, *goal, speed, LITRES_PER_M)
                plan.mark("parked")
        return plan

    def _buses(self, ids: np.ndarray) -> _Plan:
        line = ids % self.lines
        side = [
            np.sort(np.stack([whole(self.seed, f"line {axis}", self.blocks + 1, line, k) for k in range(2)], 1), 1)
            for axis in "xy"
        ]
        for corners in side:  # a line of no extent is stretched by two blocks
            corners[:, 1] = np.where(
                corners[:, 1] - corners[:, 0] < 2, np.minimum(corners[:, 0] + 2, self.blocks), corners[:, 1]
            )
            corners[:, 0] = np.minimum(corners[:, 0], corners[:, 1] - 2)
        x, y = side[0] * self.block_m, side[1] * self.block_m
        none, speed = np.full(len(ids), np.nan), np.full(len(ids), 7.0)
        plan = _Plan(np.zeros(len(ids)), x[:, 0].astype(float), y[:, 0].astype(float), none, "parked")
        loop = 2 * ((x[:, 1] - x[:, 0]) + (y[:, 1] - y[:, 0])) / 7.0 + 12 * 20.0
        rounds = int(19 * 3600 // loop.min()) + 1 if len(ids) else 0
        share = (ids // self.lines) / max(1, -(-self.buses // self.lines))
        for day in range(self.days):
            plan.wait_until(day * DAY_S + _h(5) + share * loop)
            for _ in range(rounds):
                runs = plan.t < day * DAY_S + _h(24) - loop
                for corner in ((1, 0), (1, 1), (0, 1), (0, 0)):
                    goal = x[:, corner[0]].astype(float), y[:, corner[1]].astype(float)
                    start = plan.x, plan.y
                    for third in (1, 2, 3):  # three stops a side
                        to = tuple(
                            np.where(runs, a + (b - a) * third / 3, p)
                            for a, b, p in zip(start, goal, (plan.x, plan.y), strict=True)
                        )
                        plan.move(to[0], to[1], speed)
                        plan.mark("waiting")
                        plan.wait_until(plan.t + np.where(runs, 20.0, 0.0))
                        plan.mark("travel")
            plan.mark("parked")
        return plan

    def _taxis(self, ids: np.ndarray) -> _Plan:
        none = np.full(len(ids), np.nan)
        rank = self._doors("taxi rank", ids)
        plan = _Plan(np.zeros(len(ids)), *rank, none, "parked", "drive")
        for day in range(self.days):
            plan.wait_until(self._at(7.0, 1.5, "shift", ids, day))
            for ride in range(RIDES):
                draws = ("fare", "way", "direction", "traffic", "returns")
                u, v, w, s, r = (uniform(self.seed, f"{draw} {ride}", ids, day) for draw in draws)
                runs = plan.t < day * DAY_S + _h(23)
                plan.mark(np.where(runs, ACTIVITIES.index("waiting"), ACTIVITIES.index("parked")).astype(np.int8))
                plan.wait_until(plan.t + np.where(runs, -WAIT_S * np.log1p(-u), 0.0))
                way, angle = -RIDE_M * np.log1p(-v), 2 * np.pi * w
                goal = []
                for at, turn, back in ((plan.x, np.cos(angle), rank[0]), (plan.y, np.sin(angle), rank[1])):
                    there = np.where(r < RETURNS, back, np.clip(at + way * turn, 0.0, self.size_m))
                    goal.append(np.where(runs, there, at))
                self._leg(plan, f"ride {day} {ride}", ids, goal[0], goal[1], 4 + 9 * s)
            plan.mark("parked")
        return plan

    def jam(self, t: np.ndarray) -> np.ndarray:
        """How full the jam is at seconds of the day, 0 to 1.

        >>> City().jam(np.array([0.0, 8.5 * 3600, 9.5 * 3600])).tolist()
        [0.0, 1.0, 0.5]
        """
        return np.interp(t % DAY_S, [_h(h) for h in JAM_H], [0.0, 1.0, 1.0, 0.0])

    def _highway(self, ids: np.ndarray) -> _Plan:
        day, number = ids // max(1, self.highway), ids
        rush = uniform(self.seed, "rush", number) < 0.5
        u = uniform(self.seed, "enters", number)
        enters = day * DAY_S + np.where(rush, _h(7) + u * _h(3.5), _h(5) + u * _h(17))
        zeros, none = np.zeros(len(ids)), np.full(len(ids), np.nan)
        plan = _Plan(enters, zeros, zeros + self.highway_y, none, "drive", "drive")
        free = FREE_MPS * (0.9 + 0.2 * uniform(self.seed, "highway speed", number))
        for until, jammed in ((0.4, False), (0.6, True), (1.0, False)):
            speed = free - (free - JAM_MPS) * self.jam(plan.t) if jammed else free
            plan.move(zeros + until * self.size_m, zeros + self.highway_y, speed)
        return plan

    # -- what a receiver sees ----------------------------------------------------------------------

    def _lonlat(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        assert self.origin is not None
        lon, lat = self.origin
        metres = np.radians(1.0) * EARTH_RADIUS_M
        return lon + (x - self.size_m / 2) / (metres * np.cos(np.radians(lat))), lat + (y - self.size_m / 2) / metres

    def _projected(self, table: pd.DataFrame) -> pd.DataFrame:
        if self.origin is None:
            return table
        lon, lat = self._lonlat(table["x"].to_numpy(float), table["y"].to_numpy(float))
        return table.assign(x=lon, y=lat).rename(columns={"x": "lon", "y": "lat"})

    @property
    def _axes(self) -> list[str]:
        return ["x", "y"] if self.origin is None else ["lon", "lat"]

    def _instants_of(self, seconds: pd.Series) -> Any:
        first = pd.Timestamp(self.start).tz_convert("UTC")
        return (first + pd.to_timedelta(seconds, unit="s")).astype("datetime64[us, UTC]")

    def _sample_times(self, letter: str, ids: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each sample its mobile's row, and its instant in whole seconds."""
        if letter == "h":
            first, last = np.ceil(t[:, 0]).astype(np.int64), np.floor(t[:, -1]).astype(np.int64)
            count, step = (last - first) // HIGHWAY_INTERVAL_S + 1, HIGHWAY_INTERVAL_S
        else:
            first = whole(self.seed, f"phase {letter}", self.interval_s, ids)
            count, step = (self.days * DAY_S - 1 - first) // self.interval_s + 1, self.interval_s
        row = np.repeat(np.arange(len(ids)), count)
        k = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        return row, np.repeat(first, count) + k * step

    def _samples(self, letter: str, ids: np.ndarray, true: bool) -> pa.Table:
        plans = {
            "b": self._buses, "c": self._cars, "h": self._highway, "p": self._people, "t": self._tourists,
            "x": self._taxis,
        }  # fmt: skip
        plan = plans[letter](ids)
        t, x, y, fuel, what = plan.arrays()
        row, s = self._sample_times(letter, ids, t)
        # all mobiles at once: instants are shifted so that those of a later row are larger; whole milliseconds, so that
        # the shift is exact and the result the same in any chunk
        t = np.round(t * 1000).astype(np.int64)
        span = (self.days + 10) * DAY_S * 1000
        flat = (t + np.arange(len(ids))[:, None] * span).ravel()
        at = np.searchsorted(flat, s * 1000 + row * span, side="right") - 1
        after = np.minimum(at + 1, (row + 1) * t.shape[1] - 1)
        t, x, y, fuel, what = (array.ravel() for array in (t, x, y, fuel, what))
        length = t[after] - t[at]
        share = np.where(length > 0, (s * 1000 - t[at]) / np.where(length > 0, length, 1), 0.0)
        px, py = x[at] + share * (x[after] - x[at]), y[at] + share * (y[after] - y[at])
        litres = fuel[at] + share * (fuel[after] - fuel[at])
        number = ids[row]
        if not true:
            heard = uniform(self.seed, f"gap {letter}", number, s // self.gap_s) >= self.gap_share
            heard &= ~self._silent(px, py, s)
            row, s, px, py, litres, number = (array[heard] for array in (row, s, px, py, litres, number))
            noise = normal(self.seed, f"noise {letter}", number, s)
            px, py = px + self.noise_m * noise[0], py + self.noise_m * noise[1]
        if self.origin is not None:
            px, py = self._lonlat(px, py)
        names = pa.array([f"{letter}{i:07d}" for i in ids.tolist()], pa.string())
        columns: dict[str, Any] = {
            "mobile": pa.DictionaryArray.from_arrays(pa.array(row.astype(np.int32)), names).cast(pa.string())
        }
        columns["t"] = pa.array(s) if self.start is None else self._stamps(s)
        columns |= {
            axis: pa.array(np.round(v, 2 if self.origin is None else 7))
            for axis, v in zip(self._axes, (px, py), strict=True)
        }
        columns["kind"] = pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(len(s), np.int8)), pa.array([KINDS[letter]])
        ).cast(pa.string())
        car = letter == "c"
        columns["fuel_l"] = pa.array(np.round(litres, 2)) if car else pa.nulls(len(s), pa.float64())
        columns["refuel_level_l"] = pa.array(self._refuel_level(number)) if car else pa.nulls(len(s), pa.float64())
        if true:
            columns["activity"] = pa.DictionaryArray.from_arrays(pa.array(what[at]), pa.array(ACTIVITIES)).cast(
                pa.string()
            )
        return pa.table(columns)

    def _stamps(self, seconds: np.ndarray) -> pa.Array:
        first = int(pd.Timestamp(self.start).timestamp())
        return (
            pa.array((first + seconds) * 1_000_000, pa.int64())
            .cast(pa.timestamp("us"))
            .cast(pa.timestamp("us", tz="UTC"))
        )

    def _silent(self, x: np.ndarray, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Where and when a district hears nobody: a circle of a quarter of the city, for twenty minutes."""
        silent = np.zeros(len(x), bool)
        for outage in range(self.outages * self.days):
            u = [float(uniform(self.seed, f"outage {n}", outage)[0]) for n in ("x", "y", "t")]
            begins = outage % self.days * DAY_S + _h(6) + u[2] * _h(14)
            near = np.hypot(x - u[0] * self.size_m, y - u[1] * self.size_m) < self.size_m / 4
            silent |= near & (s >= begins) & (s < begins + 1_200)
        return silent

    def batches(self, mobiles: list[str] | None = None, *, true: bool = False) -> Iterator[pa.Table]:
        """The fixes (or the truth) of some mobiles, in the order of (mobile, t), in tables of about a million rows."""
        ids = sorted(self.mobile_ids() if mobiles is None else mobiles)
        number, letters = _split(ids)
        for letter in KINDS:
            mine = number[letters == letter]
            each = 300 if letter == "h" else self.days * DAY_S // self.interval_s + 1
            some = max(1, CHUNK_ROWS // each)
            for i in range(0, len(mine), some):
                yield self._samples(letter, mine[i : i + some], true)

    def fixes(self, mobiles: list[str] | None = None) -> pd.DataFrame:
        """What a receiver saw, as pandas."""
        return self._whole(mobiles, False)

    def truth(self, mobiles: list[str] | None = None) -> pd.DataFrame:
        """Every sample without noise, gaps and outages, with what the mobile was doing."""
        return self._whole(mobiles, True)

    def _whole(self, mobiles: list[str] | None, true: bool) -> pd.DataFrame:
        table = pa.concat_tables(list(self.batches(mobiles, true=true))).to_pandas()
        table.attrs["crs"] = self.crs
        return table

    def write(
        self, out: str | Path, *, truth: bool = True, buckets: int = 16, engine: str = "local", spark: Any = None
    ) -> Fixes:
        """Write the city: `fixes` and `truth` as ingested data sets, `places.parquet`, `rooms.parquet`,
        `streets.parquet`, `profiles.parquet`.

        Each bucket is generated by itself and written as it is made, so memory is a chunk a task.
        """
        out = Path(out)
        with whole_folder(out) as work:
            for name, true in (("fixes", False), ("truth", True))[: 2 if truth else 1]:
                self._write_layout(work / name, true, buckets, engine, spark)
            write_places(self.places(), work / "places.parquet")
            write_places(self.profiles(), work / "profiles.parquet")
            write_places(self.rooms(), work / "rooms.parquet")
            write_places(self.streets(), work / "streets.parquet")
            (work / "city.json").write_text(json.dumps(asdict(self), indent=1) + "\n")
        return open_fixes(out / "fixes")

    def _write_layout(self, work: Path, true: bool, buckets: int, engine: str, spark: Any) -> None:
        (work / "fixes").mkdir(parents=True)
        (work / "spill").mkdir()
        ids = self.mobile_ids()
        if not ids:
            raise DataError("the city has no mobiles; nothing was written")
        bucket = bucket_of(pa.array(ids), buckets)
        jobs = [(self, int(b), true, str(work), buckets) for b in np.unique(bucket)]
        if engine == "spark":
            from workbench.datasets import spark_io

            entries = [
                json.loads(answer)
                for answer in spark_io.spread(lambda job: json.dumps(_write_bucket(*job)), jobs, spark)
            ]
        elif engine == "local":
            with ThreadPoolExecutor(2) as pool:
                entries = list(pool.map(lambda job: _write_bucket(*job), jobs))
        else:
            raise DataError(f"engine {engine!r}: a city is written by 'local' or 'spark'")
        kept = sum(entry["rows"] for entry in entries)
        columns = {f.name: str(f.type) for f in self._samples("p", np.arange(0), true).schema}
        described = {"format": "city", "truth": true, "parameters": asdict(self)}
        _finish(Made(Report(kept, kept), tuple(entries), columns, buckets, self.crs, described, 1.0), work, 0.0)


def _split(ids: list[str]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([int(i[1:]) for i in ids], np.int64), np.array([i[0] for i in ids], "U1")


def _write_bucket(city: City, bucket: int, true: bool, work: str, buckets: int) -> dict[str, Any]:
    ids = np.array(city.mobile_ids())
    mine = ids[bucket_of(pa.array(ids), buckets) == bucket].tolist()
    name = f"fixes/bucket-{bucket:05d}.parquet"
    entry: dict[str, Any] = {"bucket": bucket, "rows": 0, "mobiles": 0, "path": name}
    writer = None
    for table in city.batches(mine, true=true):
        if not table.num_rows:
            continue
        if writer is None:
            text = [f.name for f in table.schema if pa.types.is_string(f.type)]
            writer = pq.ParquetWriter(Path(work) / name, table.schema, compression="snappy", use_dictionary=text)
        writer.write_table(table, row_group_size=ROW_GROUP)
        found = _extent(table)
        entry["rows"] += table.num_rows
        entry["mobiles"] += len(table["mobile"].unique())
        entry["t"] = _joined(entry.get("t", found["t"]), found["t"])
        entry["bounds"] = {
            axis: _joined(entry.get("bounds", found["bounds"])[axis], ends) for axis, ends in found["bounds"].items()
        }
    if writer is not None:
        writer.close()
    return entry


def _joined(a: list[Any], b: list[Any]) -> list[Any]:
    return [min(a[0], b[0]), max(a[1], b[1])]
