"""What a broker says: messages, with the publications that they tell of (Subject Spaces, 4.7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from workbench.model.regions import Region


@dataclass(frozen=True)
class Content:
    """A publication as a message carries it: its object regions, and the cells that filled them."""

    publication: Any
    regions: Mapping[str, Region]
    cells: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"{self.publication}: " + ", ".join(f"{name} = {region}" for name, region in self.regions.items())


@dataclass(frozen=True)
class Message:
    """What one subscription is told at one instant: the publications that now match, or that do not any longer."""

    t: Any
    kind: str
    subscription: Any
    contents: tuple[Content, ...]

    @property
    def publications(self) -> frozenset[Any]:
        """The names of the publications."""
        return frozenset(content.publication for content in self.contents)

    def __repr__(self) -> str:
        names = ", ".join(str(content.publication) for content in self.contents)
        return f"t={self.t} {self.subscription}: {self.kind} {names}"


class Messages(Sequence[Message]):
    """The messages of many operations: reads like a list of them, which is made when somebody first looks.

    Few of those who move many clients look at each message, and a message takes longer to make than a hundred moves.

    >>> told = Messages(lambda: [Message(1, "match", 7, ())])
    >>> len(told), told[0].subscription, told == [Message(1, "match", 7, ())]
    (1, 7, True)
    """

    def __init__(self, make: Callable[[], list[Message]]) -> None:
        self._make: Callable[[], list[Message]] | None = make
        self._made: list[Message] = []

    def made(self) -> list[Message]:
        """The messages themselves."""
        if self._make is not None:
            self._made = self._make()
            self._make = None
        return self._made

    def __len__(self) -> int:
        return len(self.made())

    @overload
    def __getitem__(self, at: int) -> Message: ...

    @overload
    def __getitem__(self, at: slice) -> list[Message]: ...

    def __getitem__(self, at: int | slice) -> Message | list[Message]:
        return self.made()[at]

    def __eq__(self, other: object) -> bool:
        return self.made() == (other.made() if isinstance(other, Messages) else other)

    __hash__ = object.__hash__

    def __add__(self, other: Iterable[Message]) -> list[Message]:
        return [*self.made(), *other]

    def __radd__(self, other: Iterable[Message]) -> list[Message]:
        return [*other, *self.made()]

    def __repr__(self) -> str:
        return repr(self.made())
