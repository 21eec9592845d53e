"""Asking for help must not load what answering needs."""

import subprocess
import sys

import pytest

HEAVY = ("pyarrow", "numpy", "prefect", "torch", "arango", "mlflow", "great_expectations", "sqlite3", "yaml")
PROBE = """
import sys
sys.argv = ["hades", *{arguments!r}]
from hades.surfaces.cli import main
try:
    main()
except SystemExit as stop:
    assert stop.code in (0, None), stop.code
print("LOADED", [name for name in {heavy!r} if name in sys.modules])
"""


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["doctor", "--help"], ["demo", "--help"]])
def test_help_loads_nothing_heavy(arguments, tmp_path):
    program = PROBE.format(arguments=arguments, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "LOADED []"


def test_status_loads_no_model_and_no_workflow_engine(tmp_path):
    program = PROBE.format(arguments=["status"], heavy=("prefect", "torch", "arango", "onnxruntime"))
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip().splitlines()[-1] == "LOADED []"
