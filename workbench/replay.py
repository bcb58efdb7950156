"""`replay`: a scenario over fixes and places, on an engine, to timelines and notifications.

The top of the import order: it resolves names and paths, picks the engine, and gives back a `Replay`, from which
everything else is read off.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from workbench import tables
from workbench.crs import UNKNOWN, Coordinates
from workbench.engines.explain import Explanation, after_stage, explain
from workbench.engines.remembered import Remembered
from workbench.engines.versions import Versions
from workbench.errors import DataError, ScenarioError, did_you_mean
from workbench.geometry import METRIC_NAMES
from workbench.model.clock import Clock
from workbench.model.history import Client, Party
from workbench.model.pubsub import Population
from workbench.model.scenario import Scenario
from workbench.scenarios import resolve

if TYPE_CHECKING:
    import folium

    from workbench.views.scene import Scene

ENGINES = ("reference", "local", "spark")
Run = tuple[Any, Any, dict[str, Any], Callable[[Sequence[Any] | None], tables.Inputs]]


@dataclass(frozen=True, eq=False)
class Replay:
    """What a scenario says about a history: who was told what, when, and why.

    ``timelines`` has a row for each maximal time during which a pair matched, ``notifications`` a row for each message;
    both are pandas tables, or Spark ones from ``engine="spark"``.
    """

    scenario: Scenario
    engine: str
    timelines: Any
    told: Callable[[], Any]
    """what makes the notifications, once somebody asks for them: there are twice as many of them"""
    metrics: dict[str, Any]
    inputs: Callable[[Sequence[Any] | None], tables.Inputs]
    """the tables that were replayed: of the mobiles that are named, or of all"""
    plan: str = ""
    """how it was done: for each two populations what found their candidate pairs, and how many there were"""

    @cached_property
    def notifications(self) -> Any:
        """Every message, in the declared order."""
        return self.told()

    @cached_property
    def data(self) -> tables.Inputs:
        """All the tables that were replayed, in this process."""
        return self.inputs(None)

    @cached_property
    def _explained(self) -> dict[Any, Explanation]:
        """What was asked for before: a map and a report give the same reasons."""
        return {}

    @cached_property
    def _judges(self) -> dict[frozenset[Any], Remembered]:
        """The definitions, with a memory, over what those who were asked about can see."""
        return {}

    @property
    def _elsewhere(self) -> bool:
        """Whether the tables are Spark's, and not in this process."""
        return not isinstance(self.timelines, pd.DataFrame)

    def collect(self) -> Replay:
        """The same with its tables in this process, in the declared order: for what is small enough to be looked at.

        Only the tables of ``engine="spark"`` are elsewhere; the others give back themselves.
        """
        if not self._elsewhere:
            return self
        pair = ["publication", "subscription"]
        timelines = _pandas(self.timelines).sort_values(["tau", *pair], ignore_index=True)
        if pd.api.types.is_integer_dtype(timelines["pi"]):
            timelines = timelines.astype({"pi": "Int64"})  # where none is null, too
        told = _pandas(self.notifications)  # an unmatch comes before a match
        notifications = told.sort_values(["t", "kind", *pair], ascending=[True, False, True, True], ignore_index=True)
        return replace(self, timelines=timelines, told=lambda: notifications, inputs=lambda mobiles: self.data)

    def explain(self, publication: Any, subscription: Any, at: Any) -> Explanation:
        """Both filters of a pair at one instant, with the truth value and the measured quantity at every node."""
        asked = (publication, subscription, at)
        if asked not in self._explained:
            self._explained[asked] = self._explain(*asked)
        return self._explained[asked]

    def _explain(self, publication: Any, subscription: Any, at: Any) -> Explanation:
        stage = self.scenario.stage
        if stage is None:
            return self._matched(publication, subscription, at)
        id = _id_of(self.scenario.subscriptions, subscription)
        data = self.inputs([id]) if self._elsewhere else self.data
        frames = {name: rows.frame for name, rows in data.tables.items()}
        behind = stage.behind(publication, data.clock.ticks(at), frames, data.clock)
        if not behind:
            return self._matched(publication, subscription, at)
        then = [(name, data.clock.shown(t), waited) for name, t, waited in behind]
        found = [(t, waited, self._matched(name, subscription, t)) for name, t, waited in then]
        told = self._is_told(publication, subscription, data.clock, at)
        return after_stage(publication, subscription, at, told, found)

    def _is_told(self, publication: Any, subscription: Any, clock: Clock, at: Any) -> bool:
        """Whether a timeline says that the two match at an instant."""
        lines = self.timelines
        mine = lines[(lines["publication"] == publication) & (lines["subscription"] == subscription)]
        t = clock.ticks
        return any(t(r.tau) <= t(at) and (pd.isna(r.pi) or t(at) < t(r.pi)) for r in _pandas(mine).itertuples())

    def _matched(self, publication: Any, subscription: Any, at: Any) -> Explanation:
        """Why the filters of the two accept each other, or do not."""
        sides = ((self.scenario.publications, publication), (self.scenario.subscriptions, subscription))
        seen = self._seen()
        whole = "fixes" in seen or not self._elsewhere
        data = self.data if whole else self.inputs([_id_of(*side) for side in sides])
        pair = [_party(*side, data) for side in sides]
        clients = frozenset(party.client.id for party in pair if not self._tables(party.population) <= seen)
        if clients not in self._judges:
            history = Versions(self.scenario)
            for instant, changes in tables.changes(_part(data, clients, seen))[0].items():
                history.apply(instant, changes)
            self._judges[clients] = Remembered(self.scenario, history, data.clock, data.metric)
        return explain(self._judges[clients], pair[0], pair[1], data.clock.ticks(at))

    def _tables(self, population: str) -> set[str]:
        p = self.scenario.population(population)
        return {table for table in (p.table, p.profiles) if table}

    def _seen(self) -> set[str]:
        """The tables whose rows matter to everybody: those of third parties."""
        names = {name for p in self.scenario.populations for name in self.scenario.looked_at(p)}
        return set().union(*(self._tables(name) for name in names))

    def scene(self, zone: str | None = None) -> Scene:
        """What maps, plots and reports show of it, with times in a zone (default: the data's, else UTC)."""
        from workbench.views.scene import MAX_MOBILES, scene

        data = self.inputs(self._most_told(MAX_MOBILES)) if self._elsewhere else self.data
        seen = {name: rows.frame.assign(t=data.clock.column(rows.frame["t"])) for name, rows in data.tables.items()}
        sides = {
            role: {p.name: p.table for p in populations}
            for role, populations in (
                ("publication", self.scenario.publications),
                ("subscription", self.scenario.subscriptions),
            )
        }
        return scene(
            self.timelines,
            self.notifications,
            seen.get("fixes"),
            seen.get("places"),
            sides=sides,
            zone=zone or data.clock.zone,
            radius_m=self.scenario.parameters.get("radius_m"),
            notes=[f"only mobiles that were told something, up to {MAX_MOBILES}"] if self._elsewhere else (),
        )

    def _most_told(self, mobiles: int) -> list[Any]:
        """The mobiles with the most notifications, counted on Spark."""
        found: list[Any] = []
        for role, side in (("publication", self.scenario.publications), ("subscription", self.scenario.subscriptions)):
            if any(p.table == "fixes" for p in side):
                counts = self.notifications.groupBy(role).count().orderBy("count", ascending=False).limit(mobiles)
                found += [_id_of(side, row[role]) for row in counts.collect()]
        return found

    def map(self, zone: str | None = None, **options: Any) -> folium.Map:
        """A map of places, tracks and notifications with a time line to play, and reasons in the popups.

        Options are those of `workbench.views.maps.draw_scene`: ``colour_by``, ``base``, ``tiles``, ``title``, ...
        """
        from workbench.views.maps import draw_scene

        return draw_scene(self.scene(zone), **{"explain": self.explain, "title": self.scenario.name, **options})

    def diff(self, other: Replay) -> pd.DataFrame:
        """Which timelines another replay adds, removes or moves, compared with this one."""
        return diff(_pandas(self.timelines), _pandas(other.timelines))

    def save(self, out: str | Path) -> Path:
        """Write ``timelines.parquet``, ``notifications.parquet`` and ``metrics.json``: all of them or nothing."""
        target = Path(out)
        place = target.resolve()  # Spark would begin where its JVM was started
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
        try:
            for name in ("timelines", "notifications"):
                _write(getattr(self, name), draft / f"{name}.parquet")
            (draft / "metrics.json").write_text(json.dumps(self.metrics, indent=2, default=str) + "\n")
            _put_in_place(draft, place)
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"{str(target)!r} cannot be written: {error}") from None
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return target

    def __repr__(self) -> str:
        m = self.metrics
        return (
            f"{self.scenario.name} on {self.engine}: {m['timelines']:,} timelines, "
            f"{m['notifications']:,} notifications "
            f"({m['matches']:,} match, {m['unmatches']:,} unmatch), {m['seconds']:.2f} s"
        )


def replay(
    scenario: Scenario | str | Callable[..., Scenario],
    fixes: Any,
    places: Any = None,
    engine: str = "local",
    parameters: Mapping[str, Any] | None = None,
    *,
    until: Any = None,
    zone: str | None = None,
) -> Replay:
    """Replay a scenario over fixes and places.

    ``scenario`` is a `Scenario`, the name of a built-in one, ``module:function``, or a ``.py`` file with
    ``scenario(**parameters)``; ``fixes`` and ``places`` are paths, what `ingest` returned, pandas, Arrow or Spark
    tables; ``until`` is where it ends, by default the last instant of the data.

    >>> fixes = pd.DataFrame({"mobile": [7, 7, 7], "t": [1, 2, 3], "x": [0.0, 90.0, 200.0], "y": [0.0, 0.0, 0.0]})
    >>> places = pd.DataFrame({"place": ["cafe"], "x": [100.0], "y": [0.0]})
    >>> replay("proximity", fixes, places, engine="reference", parameters={"radius_m": 50}).timelines
      publication  subscription  tau  pi    ended
    0        cafe             7    2   3  unmatch
    """
    if engine not in ENGINES:
        raise ScenarioError(f"there is no engine {engine!r}; {did_you_mean(engine, ENGINES)}")
    made = resolve(scenario, parameters)
    tables.check_zone(zone)
    began = time.perf_counter()
    fixes, coordinates = _positioned(fixes)
    made, places = tables.agreed(made, places, coordinates)
    run = _on_spark if engine == "spark" else _in_process
    timelines, told, counts, inputs = run(engine, made, fixes, places, until, zone)
    plan = str(counts.pop("plan", None) or "every pair at every instant, as the definitions say")
    metrics = {
        "scenario": made.name,
        "parameters": dict(made.parameters),
        "engine": engine,
        **counts,
        "seconds": round(time.perf_counter() - began, 6),
    }
    return Replay(made, engine, timelines, told, metrics, inputs, plan)


def _positioned(fixes: Any) -> tuple[Any, Coordinates | None]:
    """Fixes as the engines take them, and what their coordinates are, where they have any."""
    from workbench.datasets import layout
    from workbench.datasets.frames import fixes_from

    if not tables.of_spark(fixes) and hasattr(fixes, "manifest"):  # what an ingest returned
        fixes = fixes.path
    said = None
    if isinstance(fixes, str | Path) and layout.is_ingested(fixes):
        said = layout.open_fixes(fixes).crs
    elif isinstance(fixes, pd.DataFrame):
        said = fixes.attrs.get("crs")
    columns = tables.columns_of(fixes)
    if Coordinates.of(columns, None) is None and (points := _points(fixes)) is not None:
        table, said = fixes_from(points)
        if table is not None:
            fixes, columns = table, table.column_names
    return fixes, Coordinates.of(columns, said)


def _points(fixes: Any) -> Any:
    """What carries its positions as points of a reference system: GeoPandas, MovingPandas, GeoParquet."""
    if isinstance(fixes, str | Path) and tables.is_geoparquet(fixes):
        import geopandas

        frame = tables.load(fixes, "fixes")
        known = frame.attrs.get("crs")
        shapes = frame.assign(geometry=tables.shapes_of(frame, "fixes"))
        return geopandas.GeoDataFrame(shapes, crs=None if known == UNKNOWN else known)
    return fixes if type(fixes).__module__.split(".")[0] in ("geopandas", "movingpandas") else None


def _directly(scenario: Scenario, fixes: Any, places: Any, until: Any, zone: str | None) -> Run | None:
    """From files to timelines without a table in between, where the scenario and the data allow it."""
    from workbench.engines import crossed, direct, encounters, nearest

    ways = (direct.run, nearest.run, crossed.run, encounters.run)
    found = next((made for way in ways if (made := way(scenario, fixes, places, zone, until)) is not None), None)
    if found is None:
        return None
    timelines = found.timelines
    counts = _told(len(timelines), int((found.lines.ended == 0).sum()))
    metrics = {**_about(found.data, found.until), **found.counts, **counts, "plan": _straight(scenario)}
    told = partial(tables.notifications_frame, timelines)
    return timelines, told, metrics, lambda mobiles: tables.inputs(scenario, fixes, places, zone)


def _in_process(engine: str, scenario: Scenario, fixes: Any, places: Any, until: Any, zone: str | None) -> Run:
    if engine == "local" and (made := _directly(scenario, fixes, places, until, zone)) is not None:
        return made
    data = tables.inputs(scenario, fixes, places, zone)
    last = data.instants[1] if until is None else data.clock.ticks(until)
    plan = None
    if engine == "local":
        from workbench.engines import local

        timelines, counts, plan = local.planned(data, last)
    else:
        timelines, counts = import_module(f"workbench.engines.{engine}").run(data, last)
    timelines = tables.with_types_of(data, data.staged(timelines, None if until is None else last))
    silent = frozenset(p.name for p in scenario.publications if p.transient)
    quiet = _silent_ids(scenario, silent, timelines)
    metrics = {
        **_about(data, last),
        **data.counts,
        **counts,
        "rows_set_aside": data.counts["rows_set_aside"] + counts.get("rows_set_aside", 0),
        **_told(len(timelines), int(tables.told_of_their_end(timelines, quiet).sum())),
        "plan": plan,
    }
    return timelines, partial(tables.notifications_frame, timelines, quiet), metrics, lambda mobiles: data


def _straight(scenario: Scenario) -> str:
    """The plan of a replay from files: each fix asks a grid over the places, or over the mobiles."""
    asked = next(p.filter for p in scenario.populations if p.filter.variables())
    sides = f"{scenario.publications[0].name} × {scenario.subscriptions[0].name}"
    those = "places" if any(p.rows == "places" for p in scenario.populations) else "mobiles"
    return f"{sides}: fix by fix from the files, by a grid over the {those} for {asked!r}"


def _prepared(scenario: Scenario, head: Any, places: Any, zone: str | None) -> Any:
    """What tasks replay their fixes against, without a table in between; None where there is no such way."""
    from workbench.engines import crossed, direct, nearest

    ways = (direct.prepared, nearest.prepared, crossed.prepared)
    return next((made for way in ways if (made := way(scenario, head, places, zone)) is not None), None)


def _on_spark(engine: str, scenario: Scenario, fixes: Any, places: Any, until: Any, zone: str | None) -> Run:
    from workbench.engines import local, spark

    source = _for_spark(fixes)
    outcome = spark.run(
        scenario, source, places, zone=zone, until=until, evaluate=local.planned, prepare=_prepared
    )
    counts = dict(outcome.counts)
    matches, unmatches = counts.pop("timelines"), counts.pop("unmatches")

    def inputs(mobiles: Sequence[Any] | None) -> tables.Inputs:
        return tables.inputs(scenario, spark.rows_of(source, mobiles), places, zone)

    plan = f"{outcome.plan}\n{_straight(scenario)}" if outcome.direct else outcome.plan
    metrics = {**_about(outcome, outcome.until), **counts, **_told(matches, unmatches), "plan": plan}
    return outcome.timelines, lambda: outcome.notifications, metrics, inputs


def _about(source: Any, last: int) -> dict[str, Any]:
    return {"metric": METRIC_NAMES[source.metric], "until": str(source.clock.shown(last))}


def _told(matches: int, unmatches: int) -> dict[str, int]:
    return {"timelines": matches, "notifications": matches + unmatches, "matches": matches, "unmatches": unmatches}


def _for_spark(fixes: Any) -> Any:
    """Fixes as a Spark table, or as shards: files that hold whole mobiles; None where a scenario has none."""
    from workbench.datasets import layout
    from workbench.engines import spark

    if fixes is None:
        return None
    if isinstance(fixes, str | Path):
        path = Path(fixes).absolute()
        if layout.is_ingested(path):
            return [[str(file)] for file in layout.open_fixes(path).files]
        if path.is_dir() or path.suffix == ".parquet":
            return spark.raw(path, layout.bucket_of)
        if tables.is_text(path):
            return spark.text(path, layout.bucket_of)
    elif tables.of_spark(fixes):
        return fixes
    return spark.sharded(tables.load(fixes, "fixes"), layout.bucket_of)


def _silent_ids(scenario: Scenario, silent: frozenset[str], timelines: pd.DataFrame) -> frozenset[Any]:
    if not silent:
        return frozenset()
    if len(scenario.publications) == 1:
        return frozenset(timelines["publication"])
    return frozenset(n for n in timelines["publication"] if str(n).split("/", 1)[0] in silent)


def _id_of(populations: Sequence[Population], name: Any) -> Any:
    """The id in a name that the output gave: ``population/id`` where a side has several populations."""
    return name if len(populations) == 1 else str(name).partition("/")[2]


def _part(data: tables.Inputs, clients: frozenset[Any], whole: set[str]) -> tables.Inputs:
    """The rows of some clients, and those of the tables that are needed whole."""
    some = {
        name: rows if name in whole else replace(rows, frame=rows.frame[rows.frame["id"].isin(clients)])
        for name, rows in data.tables.items()
    }
    return replace(data, tables=some, span=data.instants)


def _party(populations: Sequence[Population], name: Any, data: tables.Inputs) -> Party:
    """The publication or subscription that the output names so."""
    known = {p.name: p for p in populations}
    label = populations[0].name if len(populations) == 1 else str(name).partition("/")[0]
    if label not in known:
        raise ScenarioError(f"{name!r} names no population; {did_you_mean(label, known)} (population/id)")
    population, id = known[label], _id_of(populations, name)
    ids = [label] if population.single else data.tables[population.table].frame["id"].unique().tolist()
    found = next((i for i in ids if i == id), next((i for i in ids if str(i) == str(id)), None))
    if found is None:
        raise ScenarioError(f"there is no {population.role} {name!r}; {did_you_mean(str(id), map(str, ids[:10_000]))}")
    return Party(label, Client(population.table, found))


def _pandas(table: Any) -> pd.DataFrame:
    return tables.load(table)


def diff(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """Timelines that are only in one of two tables; ``moved`` where two of one pair overlap in time.

    Columns: ``change`` (added, removed, moved), the pair, and tau and pi before and after.
    """
    keys = ["publication", "subscription"]
    merged = before.merge(after, on=[*keys, "tau", "pi", "ended"], how="outer", indicator=True)
    gone = merged[merged["_merge"] == "left_only"]
    come = merged[merged["_merge"] == "right_only"]
    rows, used = [], set()
    for old in gone.itertuples():
        overlapping = [
            new
            for new in come.itertuples()
            if (new.publication, new.subscription) == (old.publication, old.subscription)
            and new.Index not in used
            and (pd.isna(new.pi) or old.tau < new.pi)
            and (pd.isna(old.pi) or new.tau < old.pi)
        ]
        new = overlapping[0] if overlapping else None
        if new is not None:
            used.add(new.Index)
        rows.append(_difference("moved" if new is not None else "removed", old, new))
    rows += [_difference("added", None, new) for new in come.itertuples() if new.Index not in used]
    columns = ["change", *keys, "tau_before", "pi_before", "tau_after", "pi_after"]
    return pd.DataFrame(rows, columns=columns).sort_values([*keys, "change"], kind="stable").reset_index(drop=True)


def _difference(change: str, old: Any, new: Any) -> tuple[Any, ...]:
    known = old if old is not None else new
    ends = [getattr(side, name, None) for side in (old, new) for name in ("tau", "pi")]
    return (change, known.publication, known.subscription, *ends)


def _write(table: Any, path: Path) -> None:
    if isinstance(table, pd.DataFrame):
        rows = pa.Table.from_pandas(table, preserve_index=False)
        # A column of nothing but nulls, or of no rows at all, is one of words still.
        words = [field.with_type(pa.string()) if pa.types.is_null(field.type) else field for field in rows.schema]
        pq.write_table(rows.cast(pa.schema(words, rows.schema.metadata)), path)
    else:
        from workbench.engines import spark

        spark.save(table, path)


def _put_in_place(draft: Path, target: Path) -> None:
    """Rename the finished folder; what stood there before goes when the new one stands, but for what is not of it."""
    os.chmod(draft, 0o755)
    if not target.exists():
        draft.rename(target)
        return
    old = draft.with_name(f"{draft.name}-old")
    target.rename(old)
    try:
        draft.rename(target)
    except OSError:
        old.rename(target)
        raise
    for item in old.iterdir():
        if not (target / item.name).exists():
            item.rename(target / item.name)
    shutil.rmtree(old, ignore_errors=True)
