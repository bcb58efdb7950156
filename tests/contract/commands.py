"""The command as a user types it."""

from typer.testing import CliRunner

from workbench.cli import app


def typed(*words: object) -> str:
    """What a command prints; it must succeed, and a mistake of the user comes as the exception."""
    done = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output
