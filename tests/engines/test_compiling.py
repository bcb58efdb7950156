"""Kernels: what is said to be compiled is all, it is compiled once, and no change of theirs is overlooked."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from workbench import compiling
from workbench.engines import growing

PACKAGE = Path(compiling.__file__).parent

FOR_TESTS = {"in_area", "philox"}
"""parts of other kernels that Python calls in tests and examples alone"""

USES = """
import json, sys, warnings
warnings.simplefilter("ignore")
from numba.core import event
from workbench import compiling
from workbench.bench.compiling import GROUPS, run

with event.install_recorder("numba:compile") as recorder:
    run(GROUPS)
missing = [k.py_func.__name__ for k in compiling.made if not k.signatures]
again = [f"{e.data['dispatcher'].py_func.__name__}{e.data['args']}" for _, e in recorder.buffer if e.is_start]
print(json.dumps([missing, again]))
"""


def used() -> tuple[set[str], list[str], str]:
    """What a process that does it all did not use, what it had to compile, and what its user read."""
    ran = subprocess.run([sys.executable, "-c", USES], capture_output=True, text=True, check=True)
    missing, again = json.loads(ran.stdout)
    return set(missing), again, ran.stderr


def test_the_groups_of_the_benchmark_are_every_kernel_and_a_later_process_compiles_none() -> None:
    assert used()[0] <= FOR_TESTS
    missing, again, errors = used()
    assert missing <= FOR_TESTS and again == []
    assert "kernels are compiled" not in errors


def test_the_digest_is_of_every_file_that_has_kernels() -> None:
    decorated = re.compile(r"^@(compiled|callee|inlined)$|compiled_from\(\n", re.MULTILINE)
    found = {
        path.relative_to(PACKAGE).with_suffix("").as_posix()
        for path in PACKAGE.rglob("*.py")
        if decorated.search(path.read_text(encoding="utf-8"))
    }
    assert found | {"compiling", "geometry"} == set(compiling.KERNELS)
    bare = {path.name for path in PACKAGE.rglob("*.py") if re.search(r"\bnjit\b", path.read_text(encoding="utf-8"))}
    assert bare == {"compiling.py"}


def test_a_change_of_any_kernel_starts_a_new_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    known = compiling._digest()
    read = Path.read_bytes
    for name in compiling.KERNELS:
        changed = PACKAGE / f"{name}.py"
        monkeypatch.setattr(Path, "read_bytes", lambda p, changed=changed: read(p) + b"#" * (p == changed))
        assert compiling._digest() != known, name


def test_what_only_kernels_call_says_so_when_python_does() -> None:
    with pytest.raises(TypeError, match="only kernels can call longer"):
        growing.longer(np.arange(3), 5)


def test_arrays_of_either_kind_are_one_for_kernels() -> None:
    numbers = np.arange(3)
    shown = compiling.read_only(numbers)
    assert not shown.flags.writeable and numbers.flags.writeable and np.shares_memory(shown, numbers)


def test_a_worker_of_spark_says_nothing_and_the_driver_says_it_once(capsys: pytest.CaptureFixture[str]) -> None:
    watch = compiling._Watch()
    watch.say()
    watch.say()
    assert capsys.readouterr().err.count("kernels are compiled, once on this machine") == 1
    code = "import sys, types; sys.modules['pyspark.worker'] = types.ModuleType('pyspark.worker')\n"
    code += "from workbench import compiling; compiling._watch.say()"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr == ""
