"""Live stages: what stands between M and those who are told of it.

A replay hands its timelines on to the stage of its scenario (`workbench.model.scenario.Stage`); a live broker hands the
transitions of each instant on to a stage, which says who is told of them, and when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from workbench.brokering.messages import Content
from workbench.model.history import Party

Pair = tuple[Party, Party]
"""A publication and a subscription."""


class Told(NamedTuple):
    """Of which pairs it is told at an instant that they left and that they joined, and what the messages say."""

    left: list[Pair]
    come: list[Pair]
    contents: dict[tuple[str, Pair], Content]
    """by the kind of the message and the pair; a publication may go by a name that no row has"""


class LiveStage(Protocol):
    """Who is told of a transition, and when. It goes along with its broker: what is refused is taken back."""

    @property
    def next(self) -> int | None:
        """The next instant at which it has something to tell by itself."""

    @property
    def matches(self) -> Iterable[Pair]:
        """The pairs that somebody was told of and that have not ended since."""

    def standing(self, pairs: Iterable[Pair], t: int) -> None:
        """What matches at t, where the stage begins, and was told of already."""

    def tell(
        self,
        t: int,
        left: Iterable[Pair],
        come: Iterable[Pair],
        gone: Iterable[Party],
        says: Callable[[Party], Content],
    ) -> Told:
        """Who is told at t, where pairs leave and join M and parties end; ``says`` is what a publication says."""

    def commit(self) -> None:
        """What was done stays."""

    def take_back(self) -> None:
        """Undo everything since the last commit."""
