"""Events as SOAP messages: round trip, strictness, hostile XML (TIP 3, 3.1 and Figure 3)."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import DataError
from workbench.tip.bodies import body, canonical_body, field, fields
from workbench.tip.envelope import SOAP, EnvelopeError, decode, encode, header
from workbench.tip.events import Event, fresh

tokens = st.text("abzé雪09_.:/+-", min_size=1, max_size=12)
optional_tokens = st.just("") | tokens
xml_text = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff"))
bodies = st.dictionaries(st.sampled_from(["name", "x", "item"]), xml_text | st.lists(xml_text, max_size=3)).map(
    lambda given: body(**given)
)


@st.composite
def events(draw: st.DrawFn) -> Event:
    return Event(
        draw(tokens), draw(tokens), draw(st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)),
        category=draw(optional_tokens), quality=draw(st.integers(0, 100)), format=draw(optional_tokens),
        relates_to=tuple(draw(st.lists(tokens, max_size=3))), body=draw(bodies),
        cacheable=draw(st.booleans()), forwarded=draw(st.booleans()), prefetched=draw(st.booleans()),
        publisher=draw(optional_tokens),
    )  # fmt: skip


@given(events())
def test_an_event_survives_its_envelope(event: Event) -> None:
    assert decode(encode(event)) == event


@given(events(), st.binary(max_size=40))
def test_the_header_is_read_whatever_stands_in_the_body(event: Event, junk: bytes) -> None:
    start, end = encode(event).split(b"<e:Body>")
    whole = header(start + b"<e:Body>" + end)
    assert whole.body == "" and (whole.id, whole.type, whole.relates_to) == (event.id, event.type, event.relates_to)
    try:
        junk.decode()
    except UnicodeDecodeError:
        return
    assert header(start + b"<e:Body>" + junk) == whole


@given(st.binary(max_size=300))
def test_noise_is_refused_and_nothing_else_happens(noise: bytes) -> None:
    for read in (decode, header):
        with pytest.raises(EnvelopeError):
            read(noise)


@given(events(), st.data())
def test_a_damaged_message_is_refused_or_read_never_worse(event: Event, data: st.DataObject) -> None:
    message = bytearray(encode(event))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(message) - 1))
        message[at : at + data.draw(st.integers(0, 5))] = data.draw(st.binary(max_size=5))
    for read in (decode, header):
        with suppress(EnvelopeError):
            assert isinstance(read(bytes(message)), Event)


FIGURE_3 = b"""<?xml version='1.0' ?>
<e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope">
 <e:Header>
  <m:event xmlns:m="http://isdb.cs.waikato.ac.nz/tip/event"
           env:mustUnderstand="true">
   <m:id>e1</m:id>
   <m:type cacheable="true" forwarded="false"
           prefetched="false">
   Location
   </m:type>
   <m:dateAndTime>2009-01-20T12:00:00+13:00</m:dateAndTime>
  </m:event>
 </e:Header>
 <e:Body>
 </e:Body>
</e:Envelope>"""


def test_figure_3_as_printed_uses_an_unbound_prefix_and_is_refused() -> None:
    for read in (decode, header):
        with pytest.raises(EnvelopeError, match=r"prefix '?env'? .*not (bound|defined)"):
            read(FIGURE_3)
    event = decode(FIGURE_3.replace(b"env:", b"e:"))
    assert (event.id, event.type, event.cacheable) == ("e1", "Location", True)
    assert event == header(FIGURE_3.replace(b"env:", b"e:")) and event.time == 1_232_406_000_000_000


def message(inside_header: str = "", body: str = "", before: str = "", event: str | None = None) -> bytes:
    made = encode(Event("e1", "Location", 0)).decode().split("\n")[1]
    if event is not None:
        start, rest = made.split("<m:id>e1</m:id>")
        made = start + event + rest
    made = made.replace("</e:Header>", inside_header + "</e:Header>")
    return (before + made.replace("</e:Body>", body + "</e:Body>")).encode()


BLOCK = '<t:sign xmlns:t="urn:other" {}/>'
BOMB = "<!DOCTYPE b [<!ENTITY a0 'ha'>" + "".join(f"<!ENTITY a{i + 1} '&a{i};&a{i};'>" for i in range(40)) + "]>"


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        ("", None),
        ('e:mustUnderstand="false"', None),
        ('e:mustUnderstand="true"', "MustUnderstand"),
        ('e:mustUnderstand="1"', "MustUnderstand"),
        (f'e:mustUnderstand="1" e:role="{SOAP}/role/next"', "MustUnderstand"),
        ('e:mustUnderstand="1" e:role="urn:somebody/else"', None),
        ('e:mustUnderstand="maybe"', "Sender"),
    ],
)
def test_a_block_that_must_be_understood_and_is_not_refuses_the_message(attributes: str, code: str | None) -> None:
    given = message(BLOCK.format(attributes))
    for read in (decode, header):
        if code is None:
            assert read(given).id == "e1"
        else:
            with pytest.raises(EnvelopeError) as raised:
                read(given)
            assert raised.value.code == code


HOSTILE = {
    "entity bomb": message(before=BOMB, body="<x>&a40;</x>"),
    "external entity": message(before='<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/hostname">]>', body="<x>&f;</x>"),
    "external DTD": message(before='<!DOCTYPE x SYSTEM "http://192.0.2.1/x.dtd">'),
    "DOCTYPE behind a comment": message(before="<!-- harmless --> <!DOCTYPE x>"),
    "undeclared entity": message(body="<x>&f;</x>"),
    "processing instruction": message(before='<?xml-stylesheet href="http://192.0.2.1/"?>'),
    "instruction in the body": message(body="<x><?run me?></x>"),
    "nested too deep": message(body="<x>" * 5000 + "</x>" * 5000),
    "a little too deep": message(body="<x>" * 70 + "</x>" * 70),
    "too large": message(body="<x>" + "a" * (1 << 20) + "</x>"),
    "UTF-16": message().decode().encode("utf-16"),
    "another encoding declared": b'<?xml version="1.0" encoding="ISO-8859-1"?>' + message(),
    "not UTF-8": message(body="<x>é</x>").decode().encode("latin-1"),
    "SOAP 1.1": message().replace(SOAP.encode(), b"http://schemas.xmlsoap.org/soap/envelope/"),
    "text in the body": message(body="hello"),
    "two events": message(encode(Event("e2", "Location", 0)).decode().split("<e:Header>")[1].split("</e:Header>")[0]),
    "id twice": message(event="<m:id>e1</m:id><m:id>e2</m:id>"),
    "no id": message(event=""),
    "an id with markup": message(event="<m:id>&lt;x&gt;</m:id>"),
    "an unknown field": message(event="<m:id>e1</m:id><m:owner>me</m:owner>"),
    "a time without zone": message().replace(b"00.000000Z", b"00"),
    "a quality beyond the best": message(event="<m:id>e1</m:id><m:quality>101</m:quality>"),
    "a flag that is none": message().replace(b'cacheable="false"', b'cacheable="perhaps"'),
    "nothing": b"",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_and_sloppy_messages_are_refused_with_one_line(name: str) -> None:
    with pytest.raises(EnvelopeError) as raised:
        decode(HOSTILE[name])
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 400


def test_bodies_that_mean_the_same_are_the_same_text() -> None:
    assert canonical_body("<b  y='2' x='1'/>") == canonical_body('<b x="1" y="2"></b><!-- so -->\n')
    assert canonical_body("<b>1</b>") != canonical_body("<b> 1</b>")


def test_fields_of_a_body() -> None:
    made = body(name="<&>", item=("a", "b"))
    assert fields(made) == {"name": ("<&>",), "item": ("a", "b")} and canonical_body(made) == made
    assert field(made, "absent", "default") == "default"
    with pytest.raises(DataError, match="expected one"):
        field(made, "item")
    with pytest.raises(DataError, match="XML cannot carry"):
        body(x="\x00")
    with pytest.raises(DataError, match="name that XML allows"):
        body(**{"a b": 1})


def test_events_say_all_that_is_wrong_with_them() -> None:
    with pytest.raises(DataError, match="3 faults"):
        Event("", "a b", 0, quality=200)


def test_the_flags_steer_a_reply() -> None:
    request = Event("e1", "ItemRequest", 0, prefetched=True)
    reply = request.reply("e2", "Item", 1)
    assert reply.is_reply and reply.prefetched and not reply.is_shown and request.is_shown
    carried = Event("e3", "Location", 0).at_broker("p7")
    assert carried.forwarded and carried.publisher == "p7" and carried.at_service().publisher == ""
    assert len({fresh("s", n) for n in range(1000)} | {fresh("r", n) for n in range(1000)}) == 2000
