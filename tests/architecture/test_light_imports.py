"""Asking for help or asking a question must not load what only builds need."""

import os
import subprocess
import sys

import pytest

from tests.homes import publish_pages

PROBE = """
import sys
from hades.surfaces.cli.commands import main
sys.argv = ["hades", *{arguments!r}]
try:
    main()
except SystemExit as stop:
    assert stop.code in (0, None), stop.code
print("LOADED", [name for name in {heavy!r} if name in sys.modules])
"""
BUILDS = (
    "torch",
    "torch_geometric",
    "prefect",
    "mlflow",
    "great_expectations",
    "hdbscan",
    "sklearn",
    "pandas",
)
STAGES = ("hades.api", "hades.night.stages", "hades.evaluation")
QUESTIONS = ("numpy", "scipy", "pydantic", "hades.settings", "hades.wiring")


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--version"], QUESTIONS),
        (["--help"], QUESTIONS),
        (["query", "--help"], (*BUILDS, *STAGES)),
    ],
    ids=["version", "help", "help of a question"],
)
def test_a_command_loads_only_what_it_needs(arguments, heavy, tmp_path):
    program = PROBE.format(arguments=arguments, heavy=heavy)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "LOADED []"


def test_an_answer_loads_neither_pandas_nor_the_stages_of_a_build(tmp_path):
    settings = publish_pages(tmp_path, {"rhine.md": "# Rhine\n\nThe Rhine flows from Basel.\n"})
    arguments = ["answer", "where does the Rhine flow?"]
    builds = [name for name in BUILDS if name != "sklearn"]  # of the hashing embedder
    heavy = (*builds, *STAGES, "hades.night.contracts", "hades.ingest.forget")
    program = PROBE.format(arguments=arguments, heavy=heavy).replace("cli.commands", "cli.start")
    environment = {**os.environ, "HADES_HOME": str(settings.home), "HADES_EMBEDDER": "hashing"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "The Rhine flows from Basel." in done.stdout
    assert done.stdout.splitlines()[-1] == "LOADED []"
