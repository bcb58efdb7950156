"""Interfaces: which notifications may cross a boundary (Scopes, 3.2).

A filter maps a notification to itself or to the empty notification ε; an interface is a set of filters, and a
notification passes it if it passes at least one of them. Input and output interfaces belong to the edges of the
graph of scopes. A subscription is the input interface of a simple component, an advertisement its output interface.

Here a filter is a value, the constraints that it puts on the dimensions of a notification (`passes`): every value
that the notification leaves in a constrained dimension has to be among those that the filter leaves. It is the
language of the subject spaces: an interest region that has to enclose the object region. Interfaces can therefore
join the filters of publications as comparisons (see `scoped`).

Departure: the paper does not say what a filter makes of a notification that lacks an attribute. It does not pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.errors import ScenarioError
from workbench.geometry import PLANAR
from workbench.model import extents
from workbench.model.columns import is_null
from workbench.model.extents import Extent, Interval, Shape, ValueSet

Content = Mapping[str, Any]
"""What a notification says: a value or an extent for each of its dimensions."""


def extent_of(value: Any) -> Extent:
    """A value as what a constraint leaves: a number is one number, a string one string, a set several.

    >>> extent_of("Quote"), extent_of(3), extent_of({"Order", "Quote"})
    ({'Quote'}, [3], {'Order', 'Quote'})
    """
    if isinstance(value, Interval | ValueSet | Shape) or value is extents.ANYWHERE:
        return value
    if isinstance(value, set | frozenset | list | tuple):
        return extents.one_of(*value)
    return extents.one_of(value) if isinstance(value, str | bool) else extents.single(value)


@dataclass(frozen=True)
class Passing:
    """The filter that lets pass what lies within its constraints.

    >>> passes(kind="Quote")({"kind": "Quote", "share": "SAP"}), passes(kind="Quote")({"share": "SAP"})
    (True, False)
    """

    constraints: tuple[tuple[str, Extent], ...]

    def __call__(self, content: Content) -> bool:
        return all(
            not is_null(content.get(name)) and _encloses(extent, extent_of(content[name]))
            for name, extent in self.constraints
        )

    def __repr__(self) -> str:
        return ", ".join(f"{name} ⊆ {extent}" for name, extent in self.constraints) or "true"


def _encloses(outer: Extent, inner: Extent) -> bool:
    kinds = (Interval, ValueSet, Shape)
    if extents.ANYWHERE not in (outer, inner) and not any(isinstance(outer, k) and isinstance(inner, k) for k in kinds):
        return False
    return extents.encloses(outer, inner, PLANAR)


def passes(**constraints: Any) -> Passing:
    """A filter on notifications: a value, interval, set or shape for each dimension that it constrains.

    >>> from workbench.model import below
    >>> passes(kind={"Accept", "Quote"}, price=below(100))
    kind ⊆ {'Accept', 'Quote'}, price ⊆ (-inf,100)
    """
    return Passing(tuple(sorted((name, extent_of(value)) for name, value in constraints.items())))


@dataclass(frozen=True)
class Interface:
    """A set of filters of which one has to pass; ``filters=None`` is an open boundary, no filter at all a closed one.

    >>> quotes = interface(passes(kind="Quote"), passes(kind="Accept"))
    >>> quotes.lets({"kind": "Accept"}), quotes.lets({"kind": "Order"}), OPEN.lets({}), interface().lets({})
    (True, False, True, False)
    """

    filters: frozenset[Passing] | None = None

    def lets(self, content: Content) -> bool:
        """Whether a notification may cross."""
        return self.filters is None or any(passing(content) for passing in self.filters)

    def __repr__(self) -> str:
        if self.filters is None:
            return "open"
        return " ∨ ".join(sorted(map(repr, self.filters))) or "closed"


OPEN = Interface()


def interface(*filters: Passing) -> Interface:
    """The interface of these filters; one that passes is enough, and without any nothing passes."""
    wrong = [f for f in filters if not isinstance(f, Passing)]
    if wrong:
        raise ScenarioError(f"{wrong[0]!r} is not a filter on notifications; write passes(dimension=value)")
    return Interface(frozenset(filters))


def kinds(*names: str) -> Interface:
    """The interface that lets these kinds of notifications cross, as Table 1 lists them.

    >>> kinds("Accept", "Quote")
    kind ⊆ {'Accept', 'Quote'}
    """
    return interface(passes(kind=names)) if names else interface()
