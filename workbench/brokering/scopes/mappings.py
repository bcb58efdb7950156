"""Event mappings: one representation outside, another one inside (Scopes, 3.4).

A mapping is attached to an edge of the graph of scopes and to a direction. It makes of one notification none (ε),
one or several. The paper's examples are currencies and XML; its interfaces are the mappings that change nothing. A
scope may thereby show different faces to different superscopes.

Here: a name and a function of what the notification says. The name is what the face is called (``q1@euro``), so
within one graph a name stands for one function.

A mapping that only rescales numbers and puts in constants is plain data (`converting`), and is therefore also known to
the table form (`tabular`).

Departure: the paper's signature ``m : N* → N*`` is of sequences; its text uses 1:1 mappings "for simplicity reasons".
Here a mapping sees one notification at a time; several to one (composition) is a component's business, see `live`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from workbench.brokering.scopes.interfaces import Content, Passing
from workbench.errors import ScenarioError
from workbench.model.columns import is_null

Mapped = Content | Iterable[Content] | None


@dataclass(frozen=True)
class EventMapping:
    """A named function of what a notification says, to none, one or several.

    >>> euro = EventMapping("euro", lambda said: {**said, "price": said["price"] / 2, "currency": "EUR"})
    >>> euro({"price": 10, "currency": "DEM"})
    [('euro', {'price': 5.0, 'currency': 'EUR'})]
    """

    name: str
    function: Callable[[Content], Mapped] = field(repr=False)

    def __post_init__(self) -> None:
        if not self.name or set(self.name) & set("@>+{},./ "):
            raise ScenarioError(f"mapping {self.name!r}: a name is a word without any of @ > + {{ }} , . / and blanks")
        if not callable(self.function):
            raise ScenarioError(f"mapping {self.name!r}: {self.function!r} is not a function")

    def __call__(self, content: Content) -> list[tuple[str, Content]]:
        """What becomes of a notification, each with the name of its face; several are numbered from 0."""
        made = self.function(content)
        if made is None:
            return []
        if isinstance(made, Mapping):
            return [(self.name, dict(made))]
        listed = [dict(one) for one in made]
        return [(self.name if len(listed) == 1 else f"{self.name}.{k}", one) for k, one in enumerate(listed)]


@dataclass(frozen=True)
class Conversion:
    """Numbers rescaled and constants put in, of what passes a filter; the rest stays as it is."""

    scale: tuple[tuple[str, float], ...] = ()
    put: tuple[tuple[str, Any], ...] = ()
    only: Passing | None = None

    def __call__(self, said: Content) -> Content:
        if self.only is not None and not self.only(said):
            return said
        scaled = {name: said[name] * by for name, by in self.scale if not is_null(said.get(name))}
        return {**said, **scaled, **dict(self.put)}


def converting(
    name: str,
    *,
    scale: Mapping[str, float] | None = None,
    put: Mapping[str, Any] | None = None,
    only: Passing | None = None,
) -> EventMapping:
    """The mapping that multiplies and puts in, of what passes ``only``.

    >>> euro = converting("euro", scale={"price": 0.5}, put={"currency": "EUR"}, only=Passing(()))
    >>> euro({"price": 10, "currency": "DEM"})
    [('euro', {'price': 5.0, 'currency': 'EUR'})]
    """
    both = sorted(set(scale or ()) & set(put or ()))
    if both:
        raise ScenarioError(f"mapping {name!r}: {both[0]!r} is rescaled and put in; one of the two")
    return EventMapping(name, Conversion(tuple((scale or {}).items()), tuple((put or {}).items()), only))


def from_name(name: str, where: str) -> EventMapping:
    """The mapping ``module:function`` of a TOML file, called by the function's name."""
    module, _, function = name.partition(":")
    try:
        found: Any = getattr(import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        said = f"{where}: mapping {name!r} cannot be imported ({error}); expected 'module:function'"
        raise ScenarioError(said) from None
    return EventMapping(function, found)
