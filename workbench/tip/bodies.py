"""Bodies: the type-specific part of an event, as canonical XML (TIP 3, 3.1).

"Its structure is not defined in general but can be freely designed." Here: text, the children of the SOAP Body in
exclusive canonical XML without comments, so that two bodies that mean the same are the same text; `fields` and `body`
are the simple shape that our own services use, one element a field, as the ``<m:name/>`` of section 4.2.

Parsing is strict and safe: UTF-8 only, no DOCTYPE, no processing instructions, entities and network off, size and
depth capped. What is refused is refused before anything is built from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from lxml import etree

from workbench.errors import DataError

TIP = "http://isdb.cs.waikato.ac.nz/tip/event"
MAX_BYTES = 1 << 20
MAX_DEPTH = 64
_PROLOG = re.compile(rb"\A(?:<\?xml[\x20\t\r\n][^<>]*?\?>)?(?:[\x20\t\r\n]|<!--(?:(?!--)[^\x00])*-->)*")
_ENCODING = re.compile(rb"""\A<\?xml[^>]*?encoding\s*=\s*["'](?!(?i:utf-8)["'])""")
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FIELD = re.compile(r"[A-Za-z_][\w.-]*")
OPTIONS = {
    "resolve_entities": False, "no_network": True, "load_dtd": False, "dtd_validation": False,
    "attribute_defaults": False, "huge_tree": False, "recover": False, "remove_comments": True,
}  # fmt: skip


def check_document(data: bytes, limit: int = MAX_BYTES) -> None:
    """Refuse what needs no parser to be refused: size, encoding, DOCTYPE, processing instructions before the root.

    >>> check_document(b'<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>')
    Traceback (most recent call last):
    workbench.errors.DataError: a message with a DOCTYPE; SOAP 1.2 allows none
    """
    if len(data) > limit:
        raise DataError(f"a message of {len(data)} bytes; at most {limit} are read")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"a message that is not UTF-8 (byte {error.start}); no other encoding is read") from None
    if _ENCODING.match(data):
        raise DataError("a message that declares an encoding other than UTF-8; no other encoding is read")
    found = _PROLOG.match(data)
    rest = data[found.end() if found else 0 :][:9]
    if rest.startswith(b"<!DOCTYPE"):
        raise DataError("a message with a DOCTYPE; SOAP 1.2 allows none")
    if rest.startswith(b"<?"):
        raise DataError("a message with a processing instruction; SOAP 1.2 allows none")


def parse(data: bytes, limit: int = MAX_BYTES) -> etree._Element:
    """The root element of a document, parsed strictly and safely."""
    check_document(data, limit)
    try:
        root = etree.fromstring(data, etree.XMLParser(**OPTIONS))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise DataError(f"a message that is not well-formed XML: {_first_line(error)}") from None
    check_tree(root)
    return root


def check_tree(root: etree._Element) -> None:
    """Refuse processing instructions, unresolved entities and trees that are too deep."""
    depth = 0
    for action, node in etree.iterwalk(root, events=("start", "end", "pi")):
        if action == "pi":
            raise DataError(f"a message with a processing instruction {node.target!r}; SOAP 1.2 allows none")
        if action == "start":
            check_names(node)
        depth += 1 if action == "start" else -1
        if depth > MAX_DEPTH:
            raise DataError(f"a message nested deeper than {MAX_DEPTH} elements")
    if next(root.iter(etree.Entity), None) is not None:
        raise DataError("a message with an entity that nobody declared")


def check_names(element: etree._Element) -> None:
    """Refuse a prefix that is not bound; the parser may take the colon for a part of the name, and read on."""
    for name in (element.tag, *element.attrib):
        if ":" in name.rpartition("}")[2]:
            prefix = name.rpartition("}")[2].partition(":")[0]
            raise DataError(f"a message that is not well-formed XML: the prefix {prefix!r} is not bound")


def canonical(elements: Iterable[etree._Element]) -> str:
    """The elements as text in exclusive canonical XML, without comments."""
    try:
        return "".join(
            etree.tostring(element, method="c14n", exclusive=True, with_comments=False, with_tail=False).decode()
            for element in elements
        )
    except etree.C14NError:
        raise DataError("a body with a relative namespace; canonical XML gives it no meaning") from None


@lru_cache(maxsize=4096)
def canonical_body(text: str) -> str:
    """A body as written by hand, in canonical form.

    >>> canonical_body("<b  y='2' x='1'/><!-- nobody reads this -->")
    '<b x="1" y="2"></b>'
    """
    root = parse(f"<body>{text}</body>".encode("utf-8", "surrogatepass"))
    check_children(root)
    return canonical(root)


def check_children(body: etree._Element) -> None:
    """Refuse text directly inside a Body, which SOAP 1.2 (5.3) gives no meaning."""
    if (body.text or "").strip() or any((child.tail or "").strip() for child in body):
        raise DataError("text directly inside the Body; expected elements")


def body(**fields: object) -> str:
    """A body of one element a field; a field with several values is repeated.

    >>> body(name="Location")
    '<m:name xmlns:m="http://isdb.cs.waikato.ac.nz/tip/event">Location</m:name>'
    """
    made = []
    for name, given in fields.items():
        if not _FIELD.fullmatch(name):
            raise DataError(f"a body with the field {name!r}; expected a name that XML allows")
        for value in given if isinstance(given, tuple | list) else (given,):
            text = str(value)
            if _NOT_XML.search(text):
                raise DataError(f"field {name!r} is {text!r}, which has a character that XML cannot carry")
            made.append(f'<m:{name} xmlns:m="{TIP}">{_escaped(text)}</m:{name}>')
    return "".join(made)


@lru_cache(maxsize=4096)
def fields(text: str) -> dict[str, tuple[str, ...]]:
    """The fields of a body, each with its values; the same dictionary every time, so do not change it.

    >>> fields(body(name="Location", item=(1, 2)))
    {'name': ('Location',), 'item': ('1', '2')}
    """
    found: dict[str, tuple[str, ...]] = {}
    for child in parse(f"<body>{text}</body>".encode("utf-8", "surrogatepass")):
        name = etree.QName(child).localname
        found[name] = (*found.get(name, ()), "".join(child.itertext()))
    return found


def field(text: str, name: str, default: str | None = None) -> str:
    """The one value of a field.

    >>> field(body(name="Location"), "name")
    'Location'
    """
    values = fields(text).get(name, ())
    if len(values) == 1:
        return values[0]
    if not values and default is not None:
        return default
    raise DataError(f"a body with {len(values)} fields {name!r}; expected one in {text[:80]!r}")


def _escaped(text: str) -> str:
    """Text as canonical XML writes it."""
    for character, reference in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\r", "&#xD;")):
        text = text.replace(character, reference)
    return text


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
