"""SPIN, which checks a Promela model (TIP 3, 8)."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from workbench.errors import WorkbenchError
from workbench.tip.promela import Model


class Checked(NamedTuple):
    """What SPIN says of one claim (`deadlock and assertions` is one too): states stored, errors, and a trail."""

    claim: str
    states: int
    transitions: int
    errors: int
    trail: tuple[str, ...] = ()


SAFETY = "deadlock and assertions"


def check(model: Model, folder: Path, *, only: str = "") -> list[Checked]:
    """Have SPIN check a model, each claim by itself, or `only` one, in a folder of one's own."""
    for tool in ("spin", "gcc"):
        if shutil.which(tool) is None:
            raise WorkbenchError(f"there is no {tool}; `sh tools/spin`, or apt-get install spin gcc libc6-dev")
    (folder / "model.pml").write_text(model.promela)
    (folder / "tables.h").write_text(model.tables)
    _run(folder, "spin", "-a", "model.pml")
    found, claims = [], [claim for claim in model.claims if only in ("", claim)]
    if only in ("", SAFETY):
        _run(folder, "gcc", "-O0", "-w", "-DNOREDUCE", "-DNOCLAIM", "-DSAFETY", "-o", "pan_safety", "pan.c")
        found.append(_checked(folder, SAFETY, "./pan_safety"))
    if claims:
        _run(folder, "gcc", "-O0", "-w", "-DNOREDUCE", "-DNFAIR=6", "-o", "pan_claims", "pan.c")
    return found + [_checked(folder, claim, "./pan_claims", "-a", "-f", "-N", claim) for claim in claims]


def _checked(folder: Path, claim: str, *command: str) -> Checked:
    for old in folder.glob("*.trail"):
        old.unlink()
    said = _run(folder, *command, "-m100000", "-w20")
    numbers = {
        what: int(found[1]) for what in ("states, stored", "transitions")
        if (found := re.search(rf"(\d+) {what}", said))
    }  # fmt: skip
    errors = re.search(r"errors: (\d+)", said)
    if errors is None or len(numbers) < 2 or ("Search not completed" in said and errors[1] == "0"):
        raise WorkbenchError(f"SPIN did not finish with {claim}: {said[-300:]}")
    trail: tuple[str, ...] = ()
    if int(errors[1]):
        shown = _run(folder, *command, "-r", "-n")
        told = re.compile(r"\s*(deliver|filter|tick|plan|\S+ does)\b")
        trail = tuple(line.strip() for line in shown.splitlines() if told.match(line))
    # SPIN counts the way into the first state as a transition.
    return Checked(claim, numbers["states, stored"], numbers["transitions"] - 1, int(errors[1]), trail)


def _run(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode and not command[0].startswith("./pan"):
        raise WorkbenchError(f"{' '.join(command)} failed: {(done.stderr or done.stdout)[-300:]}")
    return done.stdout + done.stderr
