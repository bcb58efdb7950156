"""The Subject Spaces model: one concept of the paper a file.

H. K. Y. Leung, I. Burcea, H.-A. Jacobsen: *Modeling Location-based Services with Subject Spaces*
(CASCON 2003). The section that a module implements stands in its docstring, and what it reads
differently under *Departure*.
"""

from workbench.model.clock import Clock
from workbench.model.columns import column
from workbench.model.durations import Duration, days, hours, milliseconds, minutes, seconds, ticks
from workbench.model.extents import above, anything_but, at_least, at_most, below, between, one_of
from workbench.model.filters import any_region, everything, held, latch, other, own
from workbench.model.pubsub import publication, publications, subscription, subscriptions
from workbench.model.regions import Region, region
from workbench.model.scenario import Scenario
from workbench.model.shapes import around, box, disc, line, point, polygon, reach, shape
from workbench.model.spaces import (
    Degree,
    Enumerated,
    Number,
    Position,
    Space,
    boolean,
    degree,
    integer,
    location,
    percentage,
    real,
    relationship,
    string,
)
from workbench.model.times import at, now, pi, tau
from workbench.model.visits import visit, visits

__all__ = [
    "Clock", "Degree", "Duration", "Enumerated", "Number", "Position", "Region", "Scenario", "Space",
    "above", "any_region", "anything_but", "around", "at", "at_least", "at_most", "below", "between", "boolean", "box",
    "column", "days", "degree", "disc", "everything", "held", "hours", "integer", "latch", "line", "location",
    "milliseconds", "minutes", "now", "one_of", "other", "own", "percentage", "pi", "point", "polygon", "publication",
    "publications", "reach", "real", "region", "relationship", "seconds", "shape", "string", "subscription",
    "subscriptions", "tau", "ticks", "visit", "visits",
]  # fmt: skip
