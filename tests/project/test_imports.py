"""Imports point one way, heavy libraries stay behind the modules that need them, and importing costs little."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "workbench"

# What each part of the package may import of the others. A part that is not named here is a fault: add it.
BASE = {"errors", "geometry", "crs", "model", "tables"}
ANYTHING = None
MAY_IMPORT: dict[str, set[str] | None] = {
    "errors":      set(),
    "geometry":    {"errors"},
    "progress":    set(),
    "caches":      {"errors"},
    "crs":         {"errors", "geometry"},
    "model":       {"errors", "geometry"},
    "tables":      {"errors", "geometry", "crs", "model"},
    "compiling":   {"caches"},
    "engines":     {*BASE, "compiling", "session", "progress"},
    "brokering":   {*BASE, "compiling", "engines"},
    "tip":         {*BASE, "engines", "brokering"},
    "scenarios":   BASE,
    "datasets":    {*BASE, "compiling", "session", "progress"},
    "views":       BASE,
    "java":        {"errors", "caches"},
    "session":     {"errors", "caches", "java"},
    "doctor":      {"errors", "caches", "java", "session"},
    # The top of the order: what resolves names and paths, and the command.
    "__init__":    ANYTHING,
    "replay":      ANYTHING,
    "exploring":   ANYTHING,
    "baselines":   ANYTHING,
    "measures":    ANYTHING,
    "experiments": ANYTHING,
    "bench":       ANYTHING,
    "demo":        ANYTHING,
    "cli":         ANYTHING,
}  # fmt: skip

# Modules that compute what a user asks for. What they share stands beside them (lowering, kernels).
ENGINES = {"reference", "local", "spark"}

# Where a library may be imported at all; elsewhere only for types (under TYPE_CHECKING).
ONLY_IN: dict[str, set[str]] = {
    "pyspark":    {"session.py", "engines/spark.py", "datasets/spark_io.py", "brokering/delivery/spark.py"},
    "folium":     {"views/"},
    "branca":     {"views/"},
    "ipywidgets": {"views/"},
    "anywidget":  {"views/"},
    "IPython":    {"views/"},
    "papermill":  {"experiments/worker.py"},
}  # fmt: skip

# Known breaches of the table above, each with its reason; strict, so that a mended one must be taken off the list.
GAPS: dict[str, str] = {
}

NOT_LOADED_BY_IMPORT = ["pyspark", "folium", "ipywidgets", "IPython", "papermill", "matplotlib", "jupyter_client"]


def modules() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts)


def part_of(module: Path) -> str:
    """The part of the package that a file belongs to: its folder, or its own name at the top.

    >>> part_of(PACKAGE / "model" / "regions.py"), part_of(PACKAGE / "cli.py")
    ('model', 'cli')
    """
    return module.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(module: Path) -> Iterator[tuple[str, bool]]:
    """The full name of everything that a file imports, and whether only for types."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    for_types = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for statement in block.body
        for node in ast.walk(statement)
    }
    here = ["workbench", *module.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) in for_types
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            start = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield f"{start}.{alias.name}", id(node) in for_types


def parts_imported(module: Path) -> set[str]:
    names = {name.split(".")[1] for name, _ in imported(module) if name.startswith("workbench.")}
    return {name for name in names if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()}


def relative(module: Path) -> str:
    return module.relative_to(PACKAGE).as_posix()


def test_every_part_has_a_place_in_the_order() -> None:
    assert {part_of(module) for module in modules()} <= set(MAY_IMPORT)


@pytest.mark.parametrize("module", modules(), ids=relative)
def test_imports_point_one_way(module: Path) -> None:
    allowed = MAY_IMPORT.get(part_of(module), set())
    if allowed is not ANYTHING:
        assert parts_imported(module) - {part_of(module)} <= allowed


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_engines_do_not_import_one_another(engine: str) -> None:
    files = [PACKAGE / "engines" / f"{engine}.py", *(PACKAGE / "engines" / engine).rglob("*.py")]
    others = {f"workbench.engines.{other}" for other in ENGINES - {engine}}
    for module in filter(Path.exists, files):
        names = {name for name, _ in imported(module)}
        assert not {name for name in names for other in others if f"{name}.".startswith(f"{other}.")}


def modules_with_gaps() -> list[object]:
    marks = {name: pytest.mark.xfail(reason=reason, strict=True) for name, reason in GAPS.items()}
    return [
        pytest.param(module, id=name, marks=[marks[name]] if name in marks else [])
        for module in modules()
        for name in [relative(module)]
    ]


@pytest.mark.parametrize("module", modules_with_gaps())
def test_libraries_are_imported_only_where_they_belong(module: Path) -> None:
    used = {name.split(".")[0] for name, only_types in imported(module) if not only_types}
    strays = {
        library
        for library in used & set(ONLY_IN)
        if not any(relative(module) == place or relative(module).startswith(place) for place in ONLY_IN[library])
    }
    assert not strays


@pytest.mark.parametrize("statement", ["import workbench", "import workbench.cli"])
def test_importing_loads_no_heavy_library(statement: str) -> None:
    code = f"{statement}; import sys; print(*sorted(set(sys.modules) & set({NOT_LOADED_BY_IMPORT!r})))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout.split() == []


def test_public_names_that_are_loaded_late_all_exist() -> None:
    import workbench

    for name in getattr(workbench, "__all__", []):
        assert getattr(workbench, name) is not None
