"""The roots are plain packages of this repository, and nothing else on the path answers to their
names.
"""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOTS = ("flows", "tasks", "hades", "models", "schemas", "aql")


@pytest.mark.parametrize("name", ROOTS)
def test_root_resolves_inside_the_repository(name):
    module = importlib.import_module(name)
    assert Path(module.__file__).resolve().parent == ROOT / name


def test_roots_resolve_inside_the_repository_from_another_folder(tmp_path):
    lines = (f"import {name}; print({name}.__file__)" for name in ROOTS)
    command = [sys.executable, "-c", "\n".join(lines)]
    found = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert [Path(one).resolve().parent for one in found] == [ROOT / name for name in ROOTS]


def test_no_module_in_flows_is_named_like_a_root():
    assert {path.stem for path in (ROOT / "flows").glob("*")} & set(ROOTS) == set()


def test_tests_are_not_packages():
    assert [str(path) for path in (ROOT / "tests").rglob("__init__.py")] == []


@pytest.mark.parametrize("name", [*ROOTS, "tests", "deployments", "benchmarks"])
def test_root_has_a_readme_of_one_screen(name):
    lines = (ROOT / name / "README.md").read_text(encoding="utf-8").splitlines()
    assert 5 <= len(lines) <= 60


@pytest.mark.parametrize("name", ["models", "schemas"])
def test_pure_roots_open_no_file(name):
    """import-linter holds the libraries; the builtin `open` needs this."""
    opened = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in (ROOT / name).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open"
    ]
    assert opened == []


def test_only_settings_read_the_environment():
    """Below the surfaces nothing sees the environment; `hades.settings` is the one door. The entry
    of the command line hands it on whole, to a copy that then reads its settings from it.
    """
    readers = {
        path.relative_to(ROOT).as_posix()
        for root in ROOTS
        for path in (ROOT / root).rglob("*.py")
        if any(word in path.read_text(encoding="utf-8") for word in ("os.environ", "os.getenv"))
    }
    entry = {"hades/surfaces/cli/start.py", "hades/surfaces/cli/warm.py"}
    assert readers == {"hades/settings/load.py", *entry}


def test_every_named_package_is_a_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(one for extra in project["optional-dependencies"].values() for one in extra),
    ]
    names = {re.split(r"[<>=;\[ ]", one)[0] for one in wanted}
    assert names >= {
        "prefect",
        "python-arango",
        "pandas",
        "pyarrow",
        "hdbscan",
        "scikit-learn",
        "torch",
        "torch-geometric",
        "mlflow",
        "great-expectations",
    }
