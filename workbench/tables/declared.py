"""The names that tables declare once, and the values that their cells may have."""

from __future__ import annotations

from workbench.crs import AXES

TIMELINES = ("publication", "subscription", "tau", "pi", "ended")
NOTIFICATIONS = ("t", "kind", "publication", "subscription")
OPERATIONS = ("add", "update", "remove")
KEYS = {"fixes": "mobile", "places": "place"}
COORDINATES = AXES
