"""Forms: XML between partners, a form of one's own inside (Scopes, 3.4).

"XML languages like FIXML standardize financial data exchange. These languages are used to connect external partners,
but they are typically too expensive for internal representations": two event mappings stand at the boundary, one for
each direction. Inside a notification is its dimensions; outside it is one text, an element that is called by the kind
of the notification and has an attribute for each further dimension.

What comes from outside is not trusted: no DOCTYPE, no entities, nothing fetched, no text longer than `LONGEST`. What is
not of the form is mapped onto the empty notification ε, so that it does not get in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from xml.sax.saxutils import quoteattr

from lxml import etree

from workbench.brokering.scopes.interfaces import Content
from workbench.brokering.scopes.mappings import EventMapping
from workbench.model.columns import is_null

LONGEST = 100_000


def xml_forms(kinds: Mapping[str, Iterable[str]], numbers: Iterable[str] = ()) -> tuple[EventMapping, EventMapping]:
    """The mappings to XML and from it, of these kinds of notifications, each with its dimensions.

    >>> out, into = xml_forms({"Quote": ("share", "price")}, numbers=("price",))
    >>> (_, document), = out({"kind": "Quote", "share": "A&B", "price": 119.5})
    >>> document
    {'xml': '<Quote share="A&amp;B" price="119.5"/>'}
    >>> into(document), into({"xml": "<Order share='SAP'/>"})
    ([('internal', {'kind': 'Quote', 'share': 'A&B', 'price': 119.5})], [])
    """
    dimensions = {kind: tuple(names) for kind, names in kinds.items()}
    counted = frozenset(numbers)

    def to_xml(said: Content) -> Content | None:
        if said.get("kind") not in dimensions:
            return None
        told = [name for name in dimensions[said["kind"]] if not is_null(said.get(name))]
        attributes = "".join(f" {name}={quoteattr(str(said[name]))}" for name in told)
        return {"xml": f"<{said['kind']}{attributes}/>"}

    def from_xml(said: Content) -> Content | None:
        element = _element(said.get("xml"))
        if element is None or element.tag not in dimensions or set(element.attrib) - {*dimensions[element.tag]}:
            return None
        try:
            told = {name: float(text) if name in counted else text for name, text in element.attrib.items()}
        except ValueError:
            return None
        return {"kind": element.tag, **told}

    return EventMapping("xml", to_xml), EventMapping("internal", from_xml)


def _element(text: Any) -> Any:
    """The element that a text is; None where it is none, or more than that."""
    if not isinstance(text, str) or len(text) > LONGEST or "<!" in text:
        return None
    options = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}
    try:
        element = etree.fromstring(text.encode(), etree.XMLParser(**options))
    except (etree.XMLSyntaxError, ValueError):
        return None
    return None if len(element) else element
