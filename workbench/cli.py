"""The `workbench` command: each command is one small function that calls one function of the package.

Nothing heavy is imported before a command needs it, so that `workbench --help` answers at once.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

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


@app.command()
def ingest(
    source: Annotated[str, typer.Argument(help="A file, folder, zip or tar as it was downloaded.")],
    out: Annotated[Path, typer.Option(help="The folder to write; it must not exist yet.")],
    format: Annotated[str | None, typer.Option(help="The format of the source; guessed when it is not given.")] = None,
    zone: Annotated[str | None, typer.Option(help="The zone of local times, such as Asia/Shanghai.")] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="Where a column comes from: mobile=cab, mobile=scene+ped, lon=X.")
    ] = None,
    keep: Annotated[list[str] | None, typer.Option(help="An attribute to keep; by default all are kept.")] = None,
    time: Annotated[str | None, typer.Option(help="Times are ticks, unix, unix_ms, seconds or text.")] = None,
    tick_s: Annotated[float | None, typer.Option(help="How long a tick is, for times in decimal seconds.")] = None,
    crs: Annotated[str | None, typer.Option(help="The reference system of metres, such as EPSG:32633.")] = None,
    delimiter: Annotated[str | None, typer.Option(help="What separates the columns; found when not given.")] = None,
    encoding: Annotated[str, typer.Option(help="The encoding of text.")] = "utf8",
    buckets: Annotated[int | None, typer.Option(help="How many files to write; chosen by size when not given.")] = None,
    max_bad_share: Annotated[float, typer.Option(help="Fail above this share of unusable rows.")] = 0.05,
    max_speed_mps: Annotated[float | None, typer.Option(help="Set aside fixes that need a higher speed.")] = None,
    engine: Annotated[str, typer.Option(help="local, or spark for large sources.")] = "local",
    overwrite: Annotated[bool, typer.Option(help="Replace the folder if it exists.")] = False,
) -> None:
    """Write fixes as sorted, bucketed Parquet with a manifest; every row is kept, collapsed or set aside."""
    from workbench import datasets

    written = datasets.ingest(
        source, out, format=format, zone=zone, columns=pairs("--column", column or []) or None, keep=keep, time=time,
        tick_s=tick_s, crs=crs, delimiter=delimiter, encoding=encoding, buckets=buckets, max_bad_share=max_bad_share,
        max_speed_mps=max_speed_mps, engine=engine, overwrite=overwrite,
    )  # fmt: skip
    typer.echo(written)


@app.command()
def replay(
    scenario: Annotated[str, typer.Argument(help="A built-in one, module:function, or a .py file with scenario().")],
    fixes: Annotated[Path, typer.Option(help="Fixes: Parquet, CSV, or an ingested folder.")],
    out: Annotated[Path, typer.Option(help="The folder for timelines, notifications and metrics.")],
    places: Annotated[Path | None, typer.Option(help="Places: Parquet, CSV or GeoJSON.")] = None,
    parameter: Annotated[list[str] | None, typer.Option("-p", help="name=value, as often as needed.")] = None,
    until: Annotated[str | None, typer.Option(help="Where it ends; by default the last instant of the data.")] = None,
    zone: Annotated[str | None, typer.Option(help="The zone of local times without one.")] = None,
    engine: Annotated[str, typer.Option(help="reference, local or spark.")] = "local",
) -> None:
    """Replay a scenario over fixes and places, and write who was told what and when."""
    from workbench.replay import replay

    at = int(until) if until is not None and until.lstrip("-").isdigit() else until
    done = replay(scenario, fixes, places, engine, settings(parameter or []), until=at, zone=zone)
    typer.echo(done)
    folder = done.save(out)
    for name in ("timelines.parquet", "notifications.parquet", "metrics.json"):
        typer.echo(folder / name)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The folder for what it writes.")] = Path("demo"),
) -> None:
    """Run the main job on embedded data, and print where its tables are."""
    from workbench.demo import demo

    typer.echo(demo(out))


@app.command()
def run(
    notebook: Annotated[Path, typer.Argument(help="A notebook, or the config.toml of an experiment.")],
    p: Annotated[list[str] | None, typer.Option("-p", help="A parameter of the notebook: name=value.")] = None,
    parameters: Annotated[Path | None, typer.Option(help="A YAML file of parameters.")] = None,
    sweep: Annotated[list[str] | None, typer.Option(help="Run for each value: name=v1,v2,...")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time; 2 to 4 are sensible.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Folder of the runs; for a config.toml, runs beside it.")] = None,
    help_parameters: Annotated[bool, typer.Option("--help-parameters", help="List the parameters and exit.")] = False,
) -> None:
    """Run a notebook for one or many values of its parameters; the same command continues what was interrupted."""
    from workbench.experiments import load_sweep
    from workbench.experiments.showing import listing, run_and_tell

    if help_parameters:
        typer.echo(listing(load_sweep(notebook).declared))
        return
    if out is None and notebook.suffix != ".toml":
        raise WorkbenchError("--out is missing; name the folder for the runs")
    planned = load_sweep(notebook, file=parameters, texts=p or [], sweep_texts=sweep or [])
    raise typer.Exit(run_and_tell(planned, out or notebook.parent / "runs", jobs))


@app.command()
def compare(folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder of runs.")]) -> None:
    """Make one page over the runs of a folder: tables, plots, links to the runs."""
    from workbench.experiments import compare as make_page

    typer.echo(make_page(folder))


@app.command()
def bench(
    row: Annotated[str, typer.Option(help="What to measure; `list` says what there is.")] = "proximity",
    fixes: Annotated[int | None, typer.Option(help="How many fixes.")] = None,
    mobiles: Annotated[int | None, typer.Option(help="Of how many mobiles.")] = None,
    places: Annotated[int | None, typer.Option(help="Against how many places.")] = None,
    radius_m: Annotated[float | None, typer.Option(help="How far a place reaches.")] = None,
    curve: Annotated[
        str | None, typer.Option(help="A curve instead: fixes, places or attributes, =, and values with commas.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where a curve is written and drawn.")] = Path("out/bench"),
    repeats: Annotated[int, typer.Option(help="How often each is run; the best counts.")] = 3,
    spark: Annotated[bool, typer.Option(help="Spark too.")] = True,
    data: Annotated[Path, typer.Option(help="Where the made-up data are kept.")] = Path("data/bench"),
) -> None:
    """Time a row of the performance table side by side with the alternatives that a user would pick, answers checked.

    Rows that nothing else is said about have the size that the table states; --fixes and the others change it.
    """
    from workbench.bench import front

    asked = front.Options(data, fixes, mobiles, places, radius_m, spark)
    for line in front.curve(curve, asked, repeats, out) if curve else front.row(row, asked, repeats):
        typer.echo(line)


def settings(given: list[str]) -> dict[str, Any]:
    """``name=value`` pairs as parameters: numbers and true/false are read as such.

    >>> settings(["radius_m=300", "brand=shell", "strict=true"])
    {'radius_m': 300, 'brand': 'shell', 'strict': True}
    """
    return {name: _value(text) for name, text in pairs("-p", given).items()}


def pairs(option: str, given: list[str]) -> dict[str, str]:
    """The values of an option that is given as ``name=value``, as often as needed."""
    found: dict[str, str] = {}
    for pair in given:
        name, sign, text = pair.partition("=")
        if not sign or not name:
            raise WorkbenchError(f"{option} {pair}: expected name=value")
        if name in found:
            raise WorkbenchError(f"{option} {name} is given twice")
        found[name] = text
    return found


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def main() -> None:
    """Run the command; a mistake of the user is one sentence, never a traceback."""
    try:
        app()
    except WorkbenchError as error:
        print(f"workbench: {error}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
