"""What a user imports is there under one name, in whatever order things are imported."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "first",
    ["", "import workbench.replay", "from workbench.replay import Replay", "import workbench.baselines"],
)
def test_replay_is_the_function_and_not_the_module_of_that_name(first):
    use = "import workbench; from workbench import replay; print(callable(replay), replay is workbench.replay)"
    code = f"{first}\n{use}"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["True", "True"]


def test_every_public_name_can_be_imported():
    import workbench

    assert all(getattr(workbench, name) is not None for name in dir(workbench))
    with pytest.raises(AttributeError, match="no attribute 'repaly'"):
        workbench.repaly
