"""The `workbench` command: each command is one small function that calls one function of the package.

Nothing heavy is imported before a command needs it, so that `workbench --help` answers at once.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from workbench.errors import WorkbenchError

app = typer.Typer(
    name="workbench",
    help="A workbench for location-based publish/subscribe.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"workbench {version('workbench')}")
        raise typer.Exit


@app.callback()
def workbench(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A workbench for location-based publish/subscribe."""


@app.command()
def doctor(
    spark: Annotated[bool, typer.Option("--spark", help="Also start Spark and run a Python worker.")] = False,
) -> None:
    """Say what is installed, what is missing and what to do about it; fail when a replay could not run."""
    from workbench.doctor import examine, report

    findings = examine(start_spark=spark)
    raise typer.Exit(report(findings))


def main() -> None:
    """Run the command; a mistake of the user is one sentence, never a traceback."""
    try:
        app()
    except WorkbenchError as error:
        print(f"workbench: {error}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
