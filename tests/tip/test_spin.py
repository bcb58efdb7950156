"""SPIN checks a Promela model of the very tables that the brokers' step makes (TIP 3, 8)."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import CI
from tests.tip.test_verify import (
    an_event_is_lost,
    everybody_reacts_to_the_user,
    new_advertisements_are_not_evaluated,
)
from tests.tip.worlds import explored
from workbench.errors import WorkbenchError
from workbench.tip.broker import Step, step
from workbench.tip.inputs import Input, Tick
from workbench.tip.promela import SAFETY, check, promela, tabulated
from workbench.tip.state import State
from workbench.tip.verified import WORLDS
from workbench.tip.verify import Stepping


@pytest.fixture
def spin() -> None:
    """SPIN and gcc; where they are missing, tests of them are skipped, and with CI=true they fail."""
    if not (shutil.which("spin") and shutil.which("gcc")):
        (pytest.fail if CI else pytest.skip)("needs spin and gcc: sh tools/spin installs them")


@pytest.mark.xdist_group("tip worlds")
@pytest.mark.usefixtures("spin")
@pytest.mark.parametrize(("world", "claims"), [("die", ["met_guide", "until_guide", "gone_gps"]), ("for ever", [
    "met_guide", "until_guide", "gone_gps"])])  # fmt: skip
def test_spin_finds_every_claim_to_hold_and_counts_the_same_states(
    tmp_path: Path, world: str, claims: list[str]
) -> None:
    found = check(promela(tabulated(WORLDS[world])), tmp_path)
    assert [one.claim for one in found] == [SAFETY, *claims]
    assert not [(one.claim, one.trail) for one in found if one.errors]
    assert found[0].states == explored(world).states


def deregistration_is_put_off(state: State, input: Input, now: int) -> Step:
    """For ever: who is gone counts as gone since now."""
    if not isinstance(input, Tick):
        return step(state, input, now)
    late = {n: s if s.gone_since is None else replace(s, gone_since=now) for n, s in state.services.items()}
    return Step(replace(state, services=late), ())


@pytest.mark.usefixtures("spin")
@pytest.mark.parametrize(
    ("bug", "world", "claim"),
    [
        (deregistration_is_put_off, "die", "gone_gps"),
        (an_event_is_lost, "publish", SAFETY),
        (new_advertisements_are_not_evaluated, "publish", "met_guide"),
        (everybody_reacts_to_the_user, "input", SAFETY),
    ],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_spin_finds_a_seeded_bug_with_a_trail(tmp_path: Path, bug: Stepping, world: str, claim: str) -> None:
    (found,) = check(promela(tabulated(WORLDS[world], step=bug)), tmp_path, only=claim)
    assert found.errors == 1 and len(found.trail) > 3, found
    assert any(line.startswith("deliver") for line in found.trail)


def test_a_step_that_looks_at_more_than_its_state_is_known_by_cannot_be_tabulated() -> None:
    def moody(state: State, input: Input, now: int) -> Step:
        after = step(state, input, now)
        return Step(replace(after.state, foreground="gps" if state.made % 2 else ""), after.effects)

    with pytest.raises(WorkbenchError, match="expected one outcome"):
        tabulated(WORLDS["die"], step=moody)
