"""Bystanders: histories of third parties that are spread over many buckets of mobiles.

A jam looks at *all* cars that were on its section (Subject Spaces, 5.2), a place at all that came by. Which visits
there were can be found bucket by bucket, since each is one mobile's; put together they are the history that the filter
asks for, and then again each bucket can be evaluated by itself. This works where the one who looks is no mobile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from workbench.engines import extents, intervals, local
from workbench.engines.intervals import Sets, Visits
from workbench.engines.streams import Stream, streams
from workbench.model.filters import Match, Var
from workbench.model.relations import Nearest
from workbench.model.scenario import Scenario
from workbench.tables import Inputs

Asked = tuple[Match, tuple[str, str]]
"""a match with third parties, and the population and region that it is about"""


def asked(scenario: Scenario) -> list[Asked] | None:
    """The histories of mobiles that others look at; None where that is not all that entangles mobiles.

    >>> from workbench.scenarios import named
    >>> [(known, match.third.among.population) for match, known in asked(named("traffic")())]
    [(('jam', 'section'), 'cars')]
    """
    mobile = {p.name for p in scenario.populations if "fixes" in (p.rows, p.profiles)}
    sides = [{p.name for p in side} for side in (scenario.publications, scenario.subscriptions)]
    whole = [side <= mobile for side in sides]
    if scenario.visibility or all(side & mobile for side in sides) or not any(whole):
        return None
    found: dict[Asked, None] = {}
    for own, other, binding, node in scenario.nodes():
        if not isinstance(node, Match):
            continue
        if isinstance(node.relation, Nearest) and scenario.looked_at(own) & mobile:
            return None
        if node.third is None or node.third.among.population not in mobile:
            continue
        term = node.right if node.left is node.third else node.left
        assert isinstance(term, Var)
        known = (own.name, term.name) if term.side == "own" else (other.name, binding[term.name])
        if known[0] in mobile:
            return None
        found[node, known] = None
    return list(found)


def visits(data: Inputs, until: int, wanted: list[Asked]) -> tuple[pd.DataFrame, list[local.Step]] | None:
    """The visits of some mobiles: which of those asked for, whose, from, to; and how they were found.

    None where the general way has to say.
    """
    with extents.assuming(False) as refused:
        found = local.Local(data, until, dict(streams(data, until).by_name))
        listed = []
        for number, (match, known) in enumerate(wanted):
            seen = found.thirds(match, known)
            listed.append(pd.DataFrame({"asked": number, "who": seen.lanes, "start": seen.start, "end": seen.end}))
    return None if refused else (pd.concat(listed, ignore_index=True), list(found.looked_at.values()))


def evaluated(
    data: Inputs, until: int, wanted: list[Asked], seen: Iterable[pd.DataFrame]
) -> tuple[pd.DataFrame, dict[str, int], local.Plan]:
    """The timelines of some mobiles, with the visits of all."""
    whole = pd.concat(seen, ignore_index=True)
    return local.planned(data, until, lambda by_name: _known(by_name, wanted, whole))


def _known(by_name: Mapping[str, Stream], wanted: list[Asked], seen: pd.DataFrame) -> dict[Any, Visits]:
    made: dict[Any, Visits] = {}
    for number, (match, known) in enumerate(wanted):
        mine = seen[seen["asked"] == number]
        flat = Sets(np.arange(len(mine) + 1), mine["start"].to_numpy(), mine["end"].to_numpy())
        made["thirds", match, known] = intervals.together(flat, mine["who"].to_numpy(), by_name[known[0]].clients)
    return made
