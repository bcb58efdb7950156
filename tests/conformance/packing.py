"""Many replays on Spark in one job: each asks for its own units of work, and they are done together.

A replay of a small case costs Spark far more than it costs the workers. So replays run side by side, each in a thread,
through `workbench.replay` as any other; only where the engine hands units to the workers they wait for one another,
and what all of them ask for goes to the same workers, by the same function, as a few tasks of one job.
"""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import pandas as pd
import pyarrow.parquet as pq

from tests.conformance.strategies import Case
from workbench.engines import spark as engine
from workbench.replay import Replay, replay

TASKS = 4
Work = Callable[[str, list[str]], dict[str, Any]]


@dataclass
class Asked:
    """What one replay wants done, and what the workers said."""

    work: Work
    units: Sequence[list[str]]
    said: list[dict[str, Any]] | None = None
    failed: BaseException | None = None


@dataclass
class Packer:
    """Collects what replays ask for until each of them waits or is done."""

    submit: Callable[..., list[dict[str, Any]]]
    running: int
    waiting: list[Asked] = field(default_factory=list)
    turn: threading.Condition = field(default_factory=threading.Condition)

    def on_workers(self, spark: Any, work: Work, units: Sequence[list[str]]) -> list[dict[str, Any]]:
        asked = Asked(work, units)
        with self.turn:
            self.waiting.append(asked)
            self._go(spark)
            self.turn.wait_for(lambda: asked.said is not None or asked.failed is not None)
        if asked.failed is not None:
            raise asked.failed
        assert asked.said is not None
        return asked.said

    def done(self, spark: Any) -> None:
        with self.turn:
            self.running -= 1
            self._go(spark)

    def _go(self, spark: Any) -> None:
        if not self.waiting or len(self.waiting) < self.running:
            return
        together, self.waiting = self.waiting, []
        works = [asked.work for asked in together]
        listed = [
            json.dumps([n, f"{number:05d}", unit])
            for n, asked in enumerate(together)
            for number, unit in enumerate(asked.units)
        ]

        def all_of_them(_: str, texts: list[str]) -> dict[str, Any]:
            return {"said": [(n, works[n](number, unit)) for n, number, unit in map(json.loads, texts)]}

        try:
            answers = self.submit(spark, all_of_them, [listed[n::TASKS] for n in range(TASKS)])
            for asked in together:
                asked.said = []
            for answer in answers:
                for n, said in answer["said"]:
                    together[n].said.append(said)  # type: ignore[union-attr]
        except BaseException as error:  # noqa: BLE001 - whoever waits has to hear of it
            for asked in together:
                asked.failed = error
        self.turn.notify_all()


def replayed_together(cases: Sequence[Case], zone: str | None = None) -> list[tuple[Replay, pd.DataFrame]]:
    """Each case's replay on Spark and its timelines, in no order, all in one job."""
    session = engine.spark_session()
    packer = Packer(engine.on_workers, len(cases))

    def one(made: Case) -> tuple[Replay, pd.DataFrame]:
        try:
            done = replay(made.scenario, made.fixes, made.places, engine="spark", until=made.until, zone=zone)
        finally:
            packer.done(session)
        return done, timelines_of(done)

    with patch.object(engine, "on_workers", packer.on_workers), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        with ThreadPoolExecutor(len(cases)) as threads:
            return list(threads.map(one, cases))


def timelines_of(done: Replay) -> pd.DataFrame:
    """The timelines that the tasks wrote, read without another job."""
    files = [file.removeprefix("file://") for file in done.timelines.inputFiles()]
    return pd.concat([pq.read_table(file).to_pandas() for file in files])
