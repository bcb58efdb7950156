"""SPIN checks a Promela model of the very tables that the brokers' step makes (TIP 3, 8)."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import CI
from tests.tip.test_verify import BUGS, Bug
from workbench.errors import WorkbenchError
from workbench.tip.broker import Step, step
from workbench.tip.inputs import Input
from workbench.tip.promela import promela
from workbench.tip.spin import SAFETY, check
from workbench.tip.state import State
from workbench.tip.tabulated import tabulated
from workbench.tip.verified import WORLDS


@pytest.fixture
def spin() -> None:
    """SPIN and gcc; where they are missing, tests of them are skipped, and with CI=true they fail."""
    if not (shutil.which("spin") and shutil.which("gcc")):
        (pytest.fail if CI else pytest.skip)("needs spin and gcc: sh tools/spin installs them")


@pytest.mark.usefixtures("spin")
@pytest.mark.parametrize("world", WORLDS)
def test_spin_finds_every_claim_to_hold_and_counts_the_same_states(tmp_path: Path, world: str) -> None:
    tables = tabulated(*WORLDS[world])
    found = check(promela(tables), tmp_path)
    assert not [(one.claim, one.trail) for one in found if one.errors]
    assert (found[0].claim, found[0].states, found[0].transitions) == (SAFETY, tables.worlds, tables.transitions)
    scripts = WORLDS[world][0]
    needing = {s.name for s in scripts if s.behaviour.description.conditions}
    expected = {f"{what}_{name}" for name in needing for what in ("met", "unmet", "until")}
    expected |= {f"{what}_{script.name}" for script in scripts for what in ("gone", "there")}
    assert {one.claim for one in found[1:]} == expected | {"told_client", "told_server"}


@pytest.mark.usefixtures("spin")
@pytest.mark.parametrize(("bug", "world", "what", "claim"), BUGS, ids=[row[0].__name__ for row in BUGS])
def test_spin_finds_a_seeded_bug_with_a_trail(tmp_path: Path, bug: Bug, world: str, what: str, claim: str) -> None:
    (found,) = check(promela(tabulated(*WORLDS[world], step=bug)), tmp_path, only=claim)
    assert found.errors == 1 and len(found.trail) > 3, found
    assert any(line.startswith("deliver") for line in found.trail), found.trail


def test_a_step_that_looks_at_more_than_its_state_is_known_by_cannot_be_tabulated() -> None:
    def moody(state: State, input: Input, now: int) -> Step:
        after = step(state, input, now)
        return Step(replace(after.state, foreground="gps" if state.made % 2 else ""), after.effects)

    with pytest.raises(WorkbenchError, match="expected one outcome"):
        tabulated(*WORLDS["die"], step=moody)
