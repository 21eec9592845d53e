"""Asking for help or asking a question must not load what only builds need."""

import subprocess
import sys

import pytest

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
BUILDS = ("torch", "torch_geometric", "prefect", "mlflow", "great_expectations", "hdbscan")


@pytest.mark.parametrize("arguments", [["--help"], ["query", "--help"]], ids=" ".join)
def test_a_command_that_builds_nothing_loads_no_library_of_builds(arguments, tmp_path):
    program = PROBE.format(arguments=arguments, heavy=BUILDS)
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "LOADED []"
