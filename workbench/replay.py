"""`replay`: a scenario over fixes and places, on an engine, to timelines and notifications.

The top of the import order: it resolves names and paths, picks the engine, and gives back a `Replay`, from which
everything else is read off.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from workbench import scenarios, tables
from workbench.engines.explain import Explanation, explain
from workbench.engines.reference import Reference
from workbench.errors import DataError, ScenarioError, did_you_mean, raise_all
from workbench.geometry import METRIC_NAMES
from workbench.model.history import Client, History, Party
from workbench.model.pubsub import Population
from workbench.model.scenario import Scenario

ENGINES = ("reference", "local", "spark")


@dataclass(frozen=True, eq=False)
class Replay:
    """What a scenario says about a history: who was told what, when, and why.

    ``timelines`` has a row for each maximal time during which a pair matched, ``notifications`` a row for each message;
    both are pandas tables, or Spark ones from ``engine="spark"``.
    """

    scenario: Scenario
    engine: str
    timelines: Any
    notifications: Any
    metrics: dict[str, Any]
    data: tables.Inputs

    def explain(self, publication: Any, subscription: Any, at: Any) -> Explanation:
        """Both filters of a pair at one instant, with the truth value and the measured quantity at every node."""
        pair = (
            _party(self.scenario.publications, publication),
            _party(self.scenario.subscriptions, subscription),
        )
        t = self.data.clock.ticks(at)
        return explain(self._reference(pair, t), *pair, t)

    def _reference(self, pair: tuple[Party, Party], until: int) -> Reference:
        """The reference engine over as much of the history as the pair's filters can see."""
        history = History(self.scenario)
        seen = {party.client.table for party in pair if self._sees_others()}
        ids = {party.client.id for party in pair}
        for t, changes in self._changes.items():
            if t > until:
                break
            relevant = [c for c in changes if seen or c.client.id in ids]
            if relevant:
                history.apply(t, relevant)
        return Reference(self.scenario, history, self.data.clock, self.data.metric)

    def _sees_others(self) -> bool:
        """Whether some filter looks at third parties, so that their rows matter too."""
        from workbench.model.filters import Match
        from workbench.model.relations import Nearest

        nodes = (n for p in self.scenario.populations for n in p.filter.walk())
        return any(isinstance(n, Match) and (n.third or isinstance(n.relation, Nearest)) for n in nodes)

    @cached_property
    def _changes(self) -> dict[int, list[Any]]:
        return tables.changes(self.data)[0]

    def diff(self, other: Replay) -> pd.DataFrame:
        """Which timelines another replay adds, removes or moves, compared with this one."""
        return diff(_pandas(self.timelines), _pandas(other.timelines))

    def save(self, out: str | Path) -> Path:
        """Write ``timelines.parquet``, ``notifications.parquet`` and ``metrics.json``: all of them or nothing."""
        target = Path(out)
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            for name in ("timelines", "notifications"):
                _write(getattr(self, name), draft / f"{name}.parquet")
            (draft / "metrics.json").write_text(json.dumps(self.metrics, indent=2, default=str) + "\n")
            _put_in_place(draft, target)
        except OSError as error:
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
    ``scenario(**parameters)``; ``fixes`` and ``places`` are paths, pandas, Arrow or Spark tables; ``until`` is where it
    ends, by default the last instant of the data.

    >>> fixes = pd.DataFrame({"mobile": [7, 7, 7], "t": [1, 2, 3], "x": [0.0, 90.0, 200.0], "y": [0.0, 0.0, 0.0]})
    >>> places = pd.DataFrame({"place": ["cafe"], "x": [100.0], "y": [0.0]})
    >>> replay("proximity", fixes, places, engine="reference", parameters={"radius_m": 50}).timelines
      publication  subscription  tau  pi    ended
    0        cafe             7    2   3  unmatch
    """
    if engine not in ENGINES:
        raise ScenarioError(f"there is no engine {engine!r}; {did_you_mean(engine, ENGINES)}")
    made = resolve(scenario, parameters)
    began = time.perf_counter()
    data = tables.inputs(made, fixes, places, zone)
    last = data.instants[1] if until is None else data.clock.ticks(until)
    run = import_module(f"workbench.engines.{engine}").run
    timelines, counts = run(data, last)
    silent = frozenset(p.name for p in made.publications if p.transient)
    notifications = tables.notifications_frame(timelines, _silent_ids(made, silent, timelines))
    metrics = {
        "scenario": made.name,
        "parameters": dict(made.parameters),
        "engine": engine,
        "metric": METRIC_NAMES[data.metric],
        "until": str(data.clock.shown(last)),
        **data.counts,
        "timelines": len(timelines),
        "notifications": len(notifications),
        "matches": int((notifications["kind"] == "match").sum()),
        "unmatches": int((notifications["kind"] == "unmatch").sum()),
        **counts,
        "seconds": round(time.perf_counter() - began, 6),
    }
    metrics["rows_set_aside"] = data.counts["rows_set_aside"] + counts.get("rows_set_aside", 0)
    return Replay(made, engine, timelines, notifications, metrics, data)


def _silent_ids(scenario: Scenario, silent: frozenset[str], timelines: pd.DataFrame) -> frozenset[Any]:
    if not silent:
        return frozenset()
    if len(scenario.publications) == 1:
        return frozenset(timelines["publication"])
    return frozenset(n for n in timelines["publication"] if str(n).split("/", 1)[0] in silent)


def resolve(given: Any, parameters: Mapping[str, Any] | None = None) -> Scenario:
    """The scenario that a name, ``module:function``, a ``.py`` file, a function or a `Scenario` stands for.

    >>> resolve("proximity", {"radius": 500})
    Traceback (most recent call last):
    workbench.errors.ScenarioError: scenario 'proximity' has no parameter 'radius'; did you mean 'radius_m'?
    """
    if isinstance(given, Scenario):
        if parameters:
            raise ScenarioError("a finished Scenario takes no parameters; give the function that makes it")
        return given
    label = str(given)
    if callable(given):
        make = given
    elif label.endswith(".py"):
        make = _from_file(Path(label))
    elif ":" in label:
        make = _from_module(label)
    else:
        make = scenarios.named(label)
    known = inspect.signature(make).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in known.values()):
        raise_all(
            [
                f"scenario {label!r} has no parameter {name!r}; {did_you_mean(name, known)}"
                for name in (parameters or {})
                if name not in known
            ]
        )
    made = make(**(parameters or {}))
    if not isinstance(made, Scenario):
        raise ScenarioError(f"{label} gave {type(made).__name__}; expected a Scenario")
    return made


def _from_file(path: Path) -> Callable[..., Scenario]:
    if not path.exists():
        raise ScenarioError(f"there is no scenario file {str(path)!r}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, "scenario"):
        raise ScenarioError(f"{str(path)!r} has no function scenario(**parameters)")
    return module.scenario  # type: ignore[no-any-return]


def _from_module(name: str) -> Callable[..., Scenario]:
    module, _, function = name.partition(":")
    try:
        return getattr(import_module(module), function)  # type: ignore[no-any-return]
    except (ImportError, AttributeError) as error:
        raise ScenarioError(f"scenario {name!r} cannot be imported: {error}") from None


def _party(populations: Sequence[Population], name: Any) -> Party:
    """The publication or subscription that the output names so."""
    if len(populations) == 1:
        (population,) = populations
        return Party(population.name, Client(population.table, name))
    label, _, key = str(name).partition("/")
    known = {p.name: p for p in populations}
    if label not in known:
        raise ScenarioError(f"{name!r} names no population; {did_you_mean(label, known)} (population/id)")
    return Party(label, Client(known[label].table, _as_id(key)))


def _as_id(key: str) -> Any:
    return int(key) if key.lstrip("-").isdigit() else key


def _pandas(table: Any) -> pd.DataFrame:
    return table if isinstance(table, pd.DataFrame) else table.toPandas()


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
        table.to_parquet(path, index=False)
    else:
        table.write.parquet(str(path))


def _put_in_place(draft: Path, target: Path) -> None:
    """Rename the finished folder; what stood there before goes only when the new one stands."""
    os.chmod(draft, 0o755)
    if not target.exists():
        draft.rename(target)
        return
    for item in draft.iterdir():
        old = target / item.name
        if old.is_dir() and not old.is_symlink():
            shutil.rmtree(old)
        os.replace(item, old)
