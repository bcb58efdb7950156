"""Faces: what a notification is called after what its way made of it (Scopes, 3.4 and 3.6).

A derived publication is a row ``id@face``, and its face reads ``euro>xml+Prof{C1}``: the mappings, the scopes whose
publishing policies it waits for, and the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from workbench.brokering.scopes.definition import Context
from workbench.brokering.scopes.graph import ScopeGraph
from workbench.brokering.scopes.interfaces import Content, extent_of
from workbench.model.columns import is_null
from workbench.model.pubsub import Population

Graphs = ScopeGraph | Mapping[Any, ScopeGraph]
"""A graph, or graphs by the instant from which they hold."""


class Face(NamedTuple):
    """What makes a derived publication: the mappings, what it waits for, the session."""

    mappings: tuple[str, ...] = ()
    waits: tuple[str, ...] = ()
    session: Context = frozenset()

    def __str__(self) -> str:
        session = f"{{{','.join(sorted(self.session))}}}" if self.session else ""
        return ">".join(self.mappings) + "".join(f"+{scope}" for scope in self.waits) + session

    def of(self, id: Any) -> Any:
        """The name of the publication that shows this face.

        >>> Face(("euro",), ("Prof",), frozenset({"C1"})).of("q1")
        'q1@euro+Prof{C1}'
        """
        return f"{id}@{self}" if self != Face() else id


def face_of(name: Any) -> tuple[str, Face]:
    """The publication and the face that a name says.

    >>> face_of("q1@euro+Prof{C1}")
    ('q1', Face(mappings=('euro',), waits=('Prof',), session=frozenset({'C1'})))
    """
    base, _, said = str(name).partition("@")
    said, _, session = said.partition("{")
    mapped, *waits = said.split("+")
    names = frozenset(filter(None, session.rstrip("}").split(",")))
    return base, Face(tuple(filter(None, mapped.split(">"))), tuple(waits), names)


def contents(population: Population, cells: Content) -> dict[str, Any]:
    """What a row says: its cells, and what its regions leave of dimensions that no cell of the same name tells."""
    said = {k: v for k, v in cells.items() if not is_null(v)}
    for _, region in population.regions:
        left = dict(region.fill(cells).constraints)
        said |= {name: extent for name, extent in left.items() if name not in said or extent_of(said[name]) != extent}
    return said
