"""The envelope: an event as a SOAP 1.2 message, to and from XML (TIP 3, Figure 3).

The Header holds one block, ``m:event``, that the receiver must understand; its children are the event's fields, and
the flags are attributes of ``m:type``. The Body holds the event's body. `header` reads the Header alone: it stops at
its end tag, and what stands in the Body is not even looked at, as 3.1 asks of routing. `decode` reads, and checks, all.

Strict: exactly one Header and one Body in this order, one ``m:event``, each field at most once (``relatesTo`` as
often as there are requests) and no unknown one, flags that are booleans. A block of another vocabulary is passed over,
unless it says ``mustUnderstand`` and is meant for us: then the message is refused with the fault MustUnderstand. An
envelope of another namespace, SOAP 1.1's among them, is refused with VersionMismatch.

Departure: Figure 3 writes ``env:mustUnderstand`` where only ``e`` is bound. A message as printed is not well-formed
under XML namespaces and is refused; here the attribute is ``e:mustUnderstand``. (The figure's ``soap−envelope`` has a
minus sign for the hyphen; that is another namespace, and refused too.)
Departure: category, quality, format, relatesTo and publisher are fields that the figure lacks; see `events`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lxml import etree

from workbench.errors import DataError
from workbench.tip.bodies import (
    MAX_BYTES,
    OPTIONS,
    TIP,
    canonical,
    canonical_body,
    check_children,
    check_document,
    check_names,
    parse,
)
from workbench.tip.events import BEST, Event

SOAP = "http://www.w3.org/2003/05/soap-envelope"
ROLES = ("", f"{SOAP}/role/next", f"{SOAP}/role/ultimateReceiver")
FLAGS = ("cacheable", "forwarded", "prefetched")
_ENVELOPE, _HEADER, _BODY = f"{{{SOAP}}}Envelope", f"{{{SOAP}}}Header", f"{{{SOAP}}}Body"
_FIELDS = {"id": "id", "type": "type", "dateAndTime": "time", "category": "category", "quality": "quality",
           "format": "format", "relatesTo": "relates_to", "publisher": "publisher"}  # fmt: skip
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class EnvelopeError(DataError):
    """A message that is refused; `code` is the SOAP 1.2 fault: Sender, MustUnderstand or VersionMismatch."""

    def __init__(self, message: str, code: str = "Sender") -> None:
        super().__init__(message)
        self.code = code


def encode(event: Event, *, canonical: bool = False) -> bytes:
    """The message of an event; `canonical` says that its body is known to be so, as that of a decoded one.

    >>> from workbench.tip.bodies import body
    >>> print(encode(Event("e1", "Location", 0, body=body(x=3))).decode().replace("><", ">\\n<"))
    <?xml version="1.0" encoding="UTF-8"?>
    <e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope">
    <e:Header>
    <m:event xmlns:m="http://isdb.cs.waikato.ac.nz/tip/event" e:mustUnderstand="true">
    <m:id>e1</m:id>
    <m:type cacheable="false" forwarded="false" prefetched="false">Location</m:type>
    <m:dateAndTime>1970-01-01T00:00:00.000000Z</m:dateAndTime>
    </m:event>
    </e:Header>
    <e:Body>
    <m:x xmlns:m="http://isdb.cs.waikato.ac.nz/tip/event">3</m:x>
    </e:Body>
    </e:Envelope>
    """
    flags = " ".join(f'{flag}="{str(getattr(event, flag)).lower()}"' for flag in FLAGS)
    parts = [f"<m:id>{event.id}</m:id>", f"<m:type {flags}>{event.type}</m:type>",
             f"<m:dateAndTime>{date_and_time(event.time)}</m:dateAndTime>"]  # fmt: skip
    for name in ("category", "format", "publisher"):
        if getattr(event, name):
            parts.append(f"<m:{name}>{getattr(event, name)}</m:{name}>")
    if event.quality != BEST:
        parts.append(f"<m:quality>{event.quality}</m:quality>")
    parts += [f"<m:relatesTo>{id}</m:relatesTo>" for id in event.relates_to]
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<e:Envelope xmlns:e="{SOAP}"><e:Header>'
        f'<m:event xmlns:m="{TIP}" e:mustUnderstand="true">{"".join(parts)}</m:event></e:Header>'
        f"<e:Body>{event.body if canonical else canonical_body(event.body)}</e:Body></e:Envelope>"
    ).encode()


def decode(data: bytes, limit: int = MAX_BYTES) -> Event:
    """The event of a message, all of it checked.

    >>> here = Event("e1", "Location", 0)
    >>> decode(encode(here)) == here
    True
    """
    try:
        root = parse(data, limit)
        _check_root(root)
        children = [child.tag for child in root]
        if children != [_HEADER, _BODY]:
            raise EnvelopeError(f"an Envelope of {_names(children)}; expected one Header and one Body")
        check_children(root[1])
        return replace(_read_header(root[0]), body=canonical(root[1]))
    except EnvelopeError:
        raise
    except DataError as error:
        raise EnvelopeError(str(error)) from None


def header(data: bytes, limit: int = MAX_BYTES) -> Event:
    """The event of a message without its body, which is not parsed, be it what it may.

    >>> message = encode(Event("e1", "Location", 0))
    >>> header(message.replace(b"</e:Body>", b"<not>well <<formed"))
    Location e1 at 0
    """
    try:
        check_document(data, limit)
        parser = etree.XMLPullParser(events=("start", "end", "pi"), **OPTIONS)
        start = 0
        while start < len(data):
            end = data.find(b">", start) + 1 or len(data)
            parser.feed(data[start:end])
            start = end
            for action, node in parser.read_events():
                if action == "pi":
                    raise EnvelopeError("a message with a processing instruction; SOAP 1.2 allows none")
                if action == "start":
                    check_names(node)
                if action == "start" and node.getparent() is None:
                    _check_root(node)
                elif action == "start" and node.tag == _BODY and node.getparent().getparent() is None:
                    raise EnvelopeError("an Envelope whose Body comes first; expected one Header and one Body")
                elif action == "end" and node.tag == _HEADER and node.getparent().getparent() is None:
                    return _read_header(node)
    except EnvelopeError:
        raise
    except DataError as error:
        raise EnvelopeError(str(error)) from None
    except etree.XMLSyntaxError as error:
        raise EnvelopeError(f"a message that is not well-formed XML: {str(error).splitlines()[0]}") from None
    raise EnvelopeError("a message without a Header")


def date_and_time(time: int) -> str:
    """Microseconds since 1970 as xs:dateTime in UTC.

    >>> date_and_time(1_500_000)
    '1970-01-01T00:00:01.500000Z'
    """
    try:
        return (_EPOCH + time * _MICROSECOND).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
    except OverflowError:
        raise EnvelopeError(f"event time {time}; expected microseconds of the years 1 to 9999") from None


def _read_time(text: str) -> int:
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        read = None
    if read is None or "T" not in text or read.tzinfo is None:
        raise EnvelopeError(f"dateAndTime {text!r}; expected a date, a time and a zone, as 2009-01-20T12:00:00Z")
    return (read - _EPOCH) // _MICROSECOND


def _check_root(root: etree._Element) -> None:
    if root.tag != _ENVELOPE:
        raise EnvelopeError(f"a message that is {_names([root.tag])}; expected Envelope of {SOAP}", "VersionMismatch")


def _read_header(block: etree._Element) -> Event:
    events = [child for child in block if child.tag == f"{{{TIP}}}event"]
    for child in block:
        if child.tag != f"{{{TIP}}}event" and _must_understand(child):
            raise EnvelopeError(f"a block {child.tag} that must be understood; only {TIP} is", "MustUnderstand")
    if len(events) != 1:
        raise EnvelopeError(f"a Header with {len(events)} events; expected one")
    _must_understand(events[0])
    values: dict[str, Any] = {}
    for child in events[0]:
        name = etree.QName(child).localname
        if child.tag != f"{{{TIP}}}{name}" or name not in _FIELDS:
            raise EnvelopeError(f"an event with the field {child.tag}; expected {', '.join(_FIELDS)}")
        if len(child) or set(child.attrib) - (set(FLAGS) if name == "type" else set()):
            raise EnvelopeError(f"field {name} with elements or attributes; expected text")
        text, key = (child.text or "").strip(), _FIELDS[name]
        if key == "relates_to":
            values[key] = (*values.get(key, ()), text)
        elif key in values:
            raise EnvelopeError(f"an event with two fields {name}; expected one")
        else:
            values[key] = _number(text) if key == "quality" else _read_time(text) if key == "time" else text
        for flag in child.attrib:
            values[flag] = _boolean(flag, child.get(flag))
    missing = [name for name in ("id", "type", "dateAndTime") if _FIELDS[name] not in values]
    if missing:
        raise EnvelopeError(f"an event without {', '.join(missing)}")
    try:
        return Event(**values)
    except DataError as error:
        raise EnvelopeError(str(error)) from None


def _must_understand(block: etree._Element) -> bool:
    meant_for_us = block.get(f"{{{SOAP}}}role", "") in ROLES
    return _boolean("mustUnderstand", block.get(f"{{{SOAP}}}mustUnderstand", "false")) and meant_for_us


def _boolean(name: str, text: str) -> bool:
    if text.strip() not in _BOOLEANS:
        raise EnvelopeError(f"{name} is {text!r}; expected true or false")
    return _BOOLEANS[text.strip()]


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise EnvelopeError(f"quality {text!r}; expected a whole number")
    return int(text)


def _names(tags: list[str]) -> str:
    return ", ".join(tags) or "nothing"
