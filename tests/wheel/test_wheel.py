"""The built wheel in an empty environment: it installs without torch, runs the demo and answers over a folder.

`make test-wheel` runs this file, `make test` does not: an installation takes minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.wheel

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("flows", "tasks", "hades", "models", "schemas", "aql")
FILES = ("pyproject.toml", "README.md", "LICENSE")
NOT_IN_BASE = ("torch", "prefect", "mlflow", "great_expectations", "matplotlib", "pandas", "fastapi", "arango")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a new environment with the wheel and nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, source / name)
    _pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(folder), str(source))
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "environment", with_pip=True)
    programs = folder / "environment" / "bin"
    pins = ("-c", str(ROOT / "constraints.txt")) if sys.version_info[:2] == (3, 11) else ()
    _pip(str(programs / "python"), "install", "--no-compile", *pins, str(wheel))
    return programs


def test_the_base_installation_has_none_of_the_extras(environment: Path) -> None:
    program = f"from importlib.util import find_spec; print([n for n in {NOT_IN_BASE!r} if find_spec(n)])"
    done = subprocess.run([environment / "python", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_demo_answers_in_an_empty_environment(environment: Path, tmp_path: Path) -> None:
    document = json.loads(_hades(environment, tmp_path, "demo", "--json").stdout)
    first = document["answers"][0]
    assert first["passages"][0]["path"].startswith("email/")
    assert document["night"]["released"]["snapshot"]


def test_a_folder_of_ones_own_is_answered_with_the_default_model(environment: Path, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "stores.md").write_text("# Stores\n\nThe embedded default is SQLite. It needs no server.\n", "utf-8")
    (folder / "garden.md").write_text("# Garden\n\nTomatoes want sun and a wall behind them.\n", "utf-8")
    _hades(environment, tmp_path, "watch", str(folder), "--once")
    answer = json.loads(_hades(environment, tmp_path, "answer", "which database is the default?", "--json").stdout)
    assert "SQLite" in answer["text"]
    assert answer["sources"][0]["document"].endswith("stores.md")


@pytest.mark.parametrize(
    ("arguments", "settings", "extra"),
    [
        (("serve", "--no-token"), {}, "serve"),
        (("mcp",), {}, "serve"),
        (("run", "train_ranker"), {}, "flows"),
        (("status",), {"HADES_STORE": "arango", "HADES_ARANGO_URL": "http://127.0.0.1:1"}, "arango"),
    ],
)
def test_a_missing_part_names_its_extra(
    environment: Path, tmp_path: Path, arguments: tuple[str, ...], settings: dict[str, str], extra: str
) -> None:
    done = _hades(environment, tmp_path, *arguments, expected=1, **settings)
    assert f"pip install 'hades-graphrag[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


def _pip(python: str, command: str, *arguments: str) -> None:
    done = subprocess.run(
        [python, "-m", "pip", command, "--quiet", "--disable-pip-version-check", *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def _hades(
    environment: Path, folder: Path, *arguments: str, expected: int = 0, **settings: str
) -> subprocess.CompletedProcess[str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("HADES_", "PYTHON"))}
    done = subprocess.run(
        [environment / "hades", *arguments],
        cwd=folder, env={**ours, **settings}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == expected, done.stderr
    return done
