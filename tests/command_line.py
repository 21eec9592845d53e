"""The command line as a person or a script uses it, in this process."""

from __future__ import annotations

import json
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from hades.surfaces.cli.commands import whole_app


def run(*words: str, **environment: str) -> Result:
    """A command with what it printed and how it ended."""
    return CliRunner(env=environment).invoke(whole_app(), list(words))


def run_json(*words: str, code: int = 0, **environment: str) -> dict[str, Any]:
    """The JSON document of a command that ends with this code."""
    done = run(*words, "--json", **environment)
    assert done.exit_code == code, done.output
    document: dict[str, Any] = json.loads(done.stdout)
    return document
