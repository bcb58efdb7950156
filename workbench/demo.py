"""The main job on embedded data: who hears about which coffee shop, and when?

A small synthetic city is written as ingested data, the ``coffee`` scenario is replayed over it on Spark, and what comes
of it is written beside it. Everything is made on the spot, so it works from an installed wheel too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from workbench.datasets.city import City
from workbench.replay import Replay, replay

RADIUS_M, PAUSE_H = 300, 5
QUESTION = "Who hears about which coffee shop, and when?"
WRITTEN = ("report.html", "map.html", "timelines.parquet", "notifications.parquet", "metrics.json")


@dataclass(frozen=True)
class Demo:
    """What the demo did, and where it left it."""

    done: Replay
    out: Path

    def __str__(self) -> str:
        m = self.done.metrics
        files = [self.out / "city", *(self.out / "coffee" / n for n in WRITTEN)]
        return "\n".join(
            [
                f"{QUESTION} {m['rows_in']:,} fixes of a synthetic city; shoppers hear of shops within {RADIUS_M} m,",
                f"but not within {PAUSE_H} hours of entering one.",
                repr(self.done),
                *(f"  {file}" for file in files),
            ]
        )


def demo(out: Path) -> Demo:
    """Write a city, replay the coffee scenario over it on Spark, and write tables, report and map."""
    from workbench.views import reports

    city = City(seed=1, people=12, tourists=3, cars=0, buses=0, highway=0)
    if not (out / "city" / "fixes" / "manifest.json").exists():
        city.write(out / "city", truth=False)
    parameters = {"radius_m": RADIUS_M, "pause_h": PAUSE_H}
    places = city.places()
    done = replay("coffee", out / "city" / "fixes", places[places["category"] == "coffee"], "spark", parameters)
    folder = done.save(out / "coffee")
    reports.folder(
        done.scene(), folder, title="Coffee", question=QUESTION, scenario=repr(done.scenario),
        metrics=done.metrics, explain=done.explain,
    )  # fmt: skip
    return Demo(done, out)
