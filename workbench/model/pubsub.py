"""Publications and subscriptions, in populations (Subject Spaces, 4.4 and 4.5).

A subscription is a tuple (I_S, f_S) of interest regions and a filter over object regions; a publication is a tuple
(O_P, f_P) of object regions and a filter over interest regions. They mirror each other, so one class serves both.

A population is one definition and a table of rows that fill it in: the fixes (one row a mobile), the places, or any
other table of the scenario; profiles are joined by id. A single publication or subscription is a population of one row.

Rows of one table are one client each: (table, id). Its position is one region's content, shared by all its
publications and subscriptions and updated once (6.2, point 3), and a client never matches itself.

``lifetime`` ends a row that is not refreshed in time; the end is a removal. ``transient`` is a lifetime of one instant
whose end is not worth a message: a quote, a position report; only its match is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.errors import ScenarioError, did_you_mean, raise_all
from workbench.model.durations import Duration, ticks
from workbench.model.filters import Filter, Regions, everything
from workbench.model.notation import words
from workbench.model.regions import Region

PUBLICATION = "publication"
SUBSCRIPTION = "subscription"


@dataclass(frozen=True, repr=False)
class Population:
    """One definition of a publication or subscription, and the table whose rows fill it in.

    >>> from workbench.model import column, location, region
    >>> shops = publications("shops", rows="places", regions=dict(site=region(location, position=column.position)))
    >>> shops.site
    shops.site
    """

    name: str
    role: str
    rows: str
    regions: tuple[tuple[str, Region], ...]
    filter: Filter = everything
    profiles: str | None = None
    lifetime: Duration | None = None
    transient: bool = False

    def __post_init__(self) -> None:
        faults = []
        if not self.name or "/" in self.name or "." in self.name:
            faults.append(f"{self.role} population {self.name!r}: a name is a word without '/' and '.'")
        if not self.regions:
            faults.append(f"{self.role} population {self.name!r} has no region")
        for name, given in self.regions:
            if not isinstance(given, Region):
                faults.append(f"region {name!r} of {self.name!r} is {given!r}; expected region(space, ...)")
        if not isinstance(self.filter, Filter):
            faults.append(f"the filter of {self.name!r} is {self.filter!r}; expected a filter built from own and other")
        if self.transient and self.lifetime is not None:
            faults.append(f"{self.name!r} is transient, which is a lifetime of one instant; leave lifetime= out")
        raise_all(faults)

    @property
    def stay(self) -> Duration | None:
        """How long a row lives after its latest update; None for ever."""
        return ticks(1) if self.transient else self.lifetime

    @property
    def single(self) -> bool:
        """Whether this is one publication or subscription of its own, not the rows of a table."""
        return not self.rows

    @property
    def table(self) -> str:
        """The table that its clients are rows of; a single one is a table of its own."""
        return self.rows or self.name

    def columns(self) -> frozenset[str]:
        """The columns that its regions read."""
        return frozenset().union(*(r.columns() for _, r in self.regions))

    def __getitem__(self, name: str) -> Regions:
        known = [label for label, _ in self.regions]
        if name not in known:
            raise ScenarioError(f"{self.name!r} has no region {name!r}; {did_you_mean(name, known)}")
        return Regions(self.name, name)

    def __getattr__(self, name: str) -> Regions:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __repr__(self) -> str:
        sign, others = ("O", "I") if self.role == PUBLICATION else ("I", "O")
        variables = ", ".join(f"{v}'" for v in self.filter.variables())
        bound = f"∃ {variables} ∈ {others} : " if variables else ""
        regions = "\n".join(f"    {name} = {given} in {given.space.name}" for name, given in self.regions)
        rows = "one" if self.single else f"rows: {self.rows}"
        return (
            f"{self.role}s {self.name} ({rows})\n"
            f"  {sign} = {{{', '.join(n for n, _ in self.regions)}}}\n{regions}\n"
            f"  f = {{{others} | {bound}{self.filter}}}"
        )

    def _repr_latex_(self) -> str:
        sign, others, index = ("O", "I", "P") if self.role == PUBLICATION else ("I", "O", "S")
        names = ", ".join(words(n) for n, _ in self.regions)
        variables = ", ".join(words(v) + "'" for v in self.filter.variables())
        bound = f"\\exists\\, {variables} \\in \\mathcal{{{others}}} : " if variables else ""
        return (
            f"$\\mathcal{{{sign}}}_{index} = \\{{{names}\\}},\\quad "
            f"f_{index} = \\{{\\mathcal{{{others}}} \\mid {bound}{self.filter._latex()}\\}}$"
        )


def _population(
    role: str,
    name: str,
    rows: str,
    regions: Mapping[str, Region],
    filter: Filter | None,
    profiles: str | None,
    lifetime: Duration | None,
    transient: bool,
) -> Population:
    accepted = everything if filter is None else filter
    return Population(name, role, rows, tuple(regions.items()), accepted, profiles, lifetime, transient)


def publications(
    name: str,
    *,
    rows: str,
    regions: Mapping[str, Region],
    filter: Filter | None = None,
    profiles: str | None = None,
    lifetime: Duration | None = None,
    transient: bool = False,
) -> Population:
    """Publications (O_P, f_P), one for each row of a table; without a filter they accept everybody."""
    return _population(PUBLICATION, name, rows, regions, filter, profiles, lifetime, transient)


def subscriptions(
    name: str,
    *,
    rows: str,
    regions: Mapping[str, Region],
    filter: Filter | None = None,
    profiles: str | None = None,
    lifetime: Duration | None = None,
    transient: bool = False,
) -> Population:
    """Subscriptions (I_S, f_S), one for each row of a table; without a filter they accept everything."""
    return _population(SUBSCRIPTION, name, rows, regions, filter, profiles, lifetime, transient)


def publication(name: str, *, regions: Mapping[str, Region], filter: Filter | None = None) -> Population:
    """One publication, that exists from the start."""
    return _population(PUBLICATION, name, "", regions, filter, None, None, False)


def subscription(name: str, *, regions: Mapping[str, Region], filter: Filter | None = None) -> Population:
    """One subscription, that exists from the start."""
    return _population(SUBSCRIPTION, name, "", regions, filter, None, None, False)
