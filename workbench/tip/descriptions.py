"""Service descriptions: what a service says about itself when it registers (TIP 3, 6).

The service category, the owner and other administrative information, one advertisement for each event type that it
publishes, its functional conditions, and groups of subscription rules. Event categories, quality, maximum latency and
maximum failure rate are those of its advertisements. Here: a frozen value, to and from the body of a Registration.

Kinds of services (4.1) are read off it: *provide-only* publishes and wants nothing, a *sink* wants and publishes
nothing, an *ordinary* one does both. A *split* service is two services, a client part and a server part.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from lxml import etree

from workbench.errors import DataError, WorkbenchError
from workbench.tip.bodies import TIP, canonical, parse
from workbench.tip.rules import Advertisement, Condition, Group, Rule

DATABASE = "database"
_PARTS = {"advertisement": Advertisement, "condition": Condition, "rule": Rule}


@dataclass(frozen=True)
class ServiceDescription:
    """What a service is, publishes, needs and wants.

    >>> gps = ServiceDescription("location", advertisements=(Advertisement("Location", "location"),))
    >>> gps.kind, gps.advertisements[0].service_category
    ('provide-only', 'location')
    """

    category: str
    owner: str = ""
    information: str = ""
    advertisements: tuple[Advertisement, ...] = ()
    conditions: tuple[Condition, ...] = ()
    groups: tuple[Group, ...] = ()
    subscriptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "advertisements", tuple(self._completed(one) for one in self.advertisements))
        types = [one.type for one in self.advertisements]
        if len(set(types)) < len(types):
            raise DataError(f"service description advertises {types}; expected one advertisement for each event type")

    def _completed(self, one: Advertisement) -> Advertisement:
        if one.service_category not in ("", self.category):
            raise DataError(f"{one!r} says another service category than its service, which is {self.category!r}")
        return Advertisement(**{**vars(one), "service_category": self.category})

    @property
    def kind(self) -> str:
        """provide-only, sink or ordinary (4.1)."""
        wants = bool(self.groups or self.subscriptions)
        return "ordinary" if wants and self.advertisements else "sink" if wants else "provide-only"

    def body(self) -> str:
        """The body of a Registration.

        >>> given = ServiceDescription("map", groups=((Rule(event_type="Location"),),))
        >>> from_body(given.body()) == given
        True
        """
        root = etree.Element("body")
        made = etree.SubElement(root, f"{{{TIP}}}description", nsmap={"m": TIP})
        for name in ("category", "owner", "information"):
            made.set(name, getattr(self, name))
        for advertisement in self.advertisements:
            _write(root, "advertisement", advertisement)
        for condition in self.conditions:
            _write(root, "condition", condition)
        for number, group in enumerate(self.groups):
            for rule in group:
                _write(root, "rule", rule).set("group", str(number))
        for name in self.subscriptions:
            etree.SubElement(root, f"{{{TIP}}}subscription", nsmap={"m": TIP}).set("type", name)
        return canonical(root)


def from_body(text: str) -> ServiceDescription:
    """The service description of a Registration; what is not one is refused."""
    root = parse(f"<body>{text}</body>".encode())
    found: dict[str, list[Any]] = {name: [] for name in _PARTS}
    groups: dict[int, list[Rule]] = {}
    own: dict[str, str] | None = None
    subscriptions = []
    for element in root:
        name = etree.QName(element).localname
        given = {str(k): str(v) for k, v in element.attrib.items()}
        if name == "description" and own is None and set(given) <= {"category", "owner", "information"}:
            own = given
        elif name == "subscription" and set(given) == {"type"}:
            subscriptions.append(given["type"])
        elif name == "rule":
            group = given.pop("group", "0")
            if not (group.isascii() and group.isdigit()):
                raise DataError(f"a rule of group {group!r}; expected a whole number")
            groups.setdefault(int(group), []).append(_read(Rule, given))
        elif name in _PARTS:
            found[name].append(_read(_PARTS[name], given))
        else:
            raise DataError(f"a registration with {element.tag}; expected one description, {', '.join(_PARTS)}")
    if own is None or not own.get("category"):
        raise DataError("a registration without a service category")
    return ServiceDescription(
        **own,
        advertisements=tuple(found["advertisement"]),
        conditions=tuple(found["condition"]),
        groups=tuple(tuple(groups[number]) for number in sorted(groups)),
        subscriptions=tuple(subscriptions),
    )


def advertisement_body(advertisement: Advertisement) -> str:
    """The body of an Advertisement: its name, as in 4.2, and what section 6 adds.

    >>> read_advertisement(advertisement_body(Advertisement("Location", quality=30))).quality
    30
    """
    root = etree.Element("body")
    _write(root, "advertisement", advertisement)
    return canonical(root)


def read_advertisement(text: str) -> Advertisement:
    """The advertisement in a body."""
    root = parse(f"<body>{text}</body>".encode())
    if len(root) != 1 or root[0].tag != f"{{{TIP}}}advertisement":
        raise DataError(f"a body {text[:80]!r}; expected one advertisement")
    made: Advertisement = _read(Advertisement, {str(k): str(v) for k, v in root[0].attrib.items()})
    return made


def _write(root: etree._Element, name: str, value: Any) -> etree._Element:
    element = etree.SubElement(root, f"{{{TIP}}}{name}", nsmap={"m": TIP})
    for field in fields(value):
        given = getattr(value, field.name)
        if given != field.default:
            element.set(field.name, str(int(given)) if isinstance(given, bool | int) else str(given))
    return element


def _read(kind: Any, given: dict[str, str]) -> Any:
    """A value of a dataclass from attributes, each by the field's own type."""
    types = {field.name: str(field.type) for field in fields(kind)}
    values: dict[str, Any] = {}
    for name, text in given.items():
        if name not in types:
            raise DataError(f"{kind.__name__.lower()} with {name!r}; expected {', '.join(types)}")
        try:
            values[name] = (
                text if types[name] == "str" else float(text) if types[name].startswith("float") else int(text)
            )
        except ValueError:
            raise DataError(f"{kind.__name__.lower()} with {name} = {text[:40]!r}; expected a number") from None
        if types[name] == "bool":
            values[name] = bool(values[name])
    try:
        return kind(**values)
    except (TypeError, ValueError, WorkbenchError) as error:
        raise DataError(f"{kind.__name__.lower()} {given}: {error}") from None
