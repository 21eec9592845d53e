"""Asking for help must not load what answering needs."""

import os
import subprocess
import sys

import pytest

HEAVY = ("pyarrow", "numpy", "prefect", "torch", "arango", "mlflow", "great_expectations", "sqlite3", "yaml")
HEAVY_BUILDS = ("torch", "hdbscan", "mlflow", "great_expectations")
PROBE = """
import sys
sys.argv = ["hades", *{arguments!r}]
from hades.surfaces.cli.main import main
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


@pytest.fixture(scope="module")
def asked_home(tmp_path_factory):
    """A published graph of one page, embedded by hashing."""
    from hades.settings import load_settings
    from hades.wiring import open_hades

    folder = tmp_path_factory.mktemp("light")
    (folder / "page.md").write_text("# Rivers\n\nThe Rhine flows from Basel to the North Sea.\n", encoding="utf-8")
    settings = load_settings({"HADES_HOME": str(folder / "home"), "HADES_EMBEDDER": "hashing"}, folder)
    with open_hades(settings) as hades:
        hades.ingest.documents(folder / "page.md")
        hades.publish()
    return settings.home


@pytest.mark.parametrize("recipe", ["vector", "hirag_pathrag", "pathrag", "hipporag", "nexus"])
def test_answering_loads_no_torch_and_nothing_that_only_builds_need(recipe, asked_home, tmp_path):
    heavy = (*HEAVY_BUILDS, "prefect", "onnxruntime", "sklearn", "pandas", "arango")
    program = PROBE.format(arguments=["query", "where does the Rhine flow?", "--recipe", recipe], heavy=heavy)
    settings = {**os.environ, "HADES_HOME": str(asked_home), "HADES_EMBEDDER": "hashing"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=settings, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().splitlines()[-1] == "LOADED []"
    assert "Rhine" in done.stdout
