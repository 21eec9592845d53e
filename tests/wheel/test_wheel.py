"""The built wheel in an empty environment: it installs without torch, runs the demo and answers
over a folder.

`make test-wheel` runs this file, `make test` does not: an installation takes minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.wheel

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("flows", "tasks", "hades", "models", "schemas", "aql")
FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
NOT_IN_BASE = (
    "torch",
    "prefect",
    "mlflow",
    "great_expectations",
    "matplotlib",
    "pandas",
    "fastapi",
    "arango",
)


def interpreters() -> list[str]:
    """The Pythons of this machine that HADES supports: this one, and others by their names or under
    pyenv.
    """
    own = "{}.{}".format(*sys.version_info)
    found = {own: sys.executable}
    for minor in ("3.11", "3.12", "3.13"):
        kept = sorted(
            Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions").glob(
                f"{minor}.*/bin/python"
            )
        )
        for program in [shutil.which(f"python{minor}"), *map(str, kept)]:
            if program and minor not in found and _version(program) == minor:
                found[minor] = program
    return [found[minor] for minor in sorted(found)]


def _version(program: str) -> str:
    shown = "import sys; print('{}.{}'.format(*sys.version_info))"
    done = subprocess.run([program, "-c", shown], capture_output=True, text=True, check=False)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of what a release holds."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, source / name)
    _pip(sys.executable, "wheel", "--no-deps", "--wheel-dir", str(folder), str(source))
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of programs of a new environment of a Python, with the wheel and nothing else;
    made once.
    """

    @cache
    def install(python: str) -> Path:
        folder = tmp_path_factory.mktemp("environment")
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        _pip(
            str(folder / "bin" / "python"),
            "install",
            "--no-compile",
            "-c",
            str(ROOT / "constraints.txt"),
            str(wheel),
        )
        return folder / "bin"

    return install


@pytest.fixture(scope="module")
def environment(installed: Callable[[str], Path]) -> Path:
    """An environment of the Python that runs the tests."""
    return installed(sys.executable)


@pytest.fixture(scope="module", params=interpreters(), ids=_version)
def each_environment(request: pytest.FixtureRequest, installed: Callable[[str], Path]) -> Path:
    """An environment of each Python that is found."""
    return installed(request.param)


def test_the_wheel_installs_one_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as inside:
        tops = {name.partition("/")[0] for name in inside.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"hades"}


def test_a_project_with_packages_of_the_same_names_can_ask(
    environment: Path, tmp_path: Path
) -> None:
    """From Python and from the command line, with the project's own folder first on the path."""
    for name in ("models", "tasks", "schemas", "flows", "aql"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("OWN = True\n", encoding="utf-8")
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "stores.md").write_text(
        "# Stores\n\nThe embedded default is SQLite. It needs no server.\n", "utf-8"
    )
    _hades(environment, tmp_path, "watch", str(folder), "--once", PYTHONPATH=str(tmp_path))
    question = "which database is the default?"
    shown = _hades(environment, tmp_path, "answer", question, "--json", PYTHONPATH=str(tmp_path))
    assert "SQLite" in json.loads(shown.stdout)["text"]
    (tmp_path / "ask.py").write_text(
        "import models, tasks, schemas, hades\n"
        "assert models.OWN and tasks.OWN and schemas.OWN\n"
        "with hades.open_hades() as opened:\n    "
        f"print(opened.retrieve({question!r}).passages[0].text)\n",
        encoding="utf-8",
    )
    ours = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HADES_", "PYTHON"))
    }
    program = [environment / "python", "ask.py"]
    done = subprocess.run(
        program, cwd=tmp_path, env=ours, capture_output=True, text=True, check=False
    )
    assert "SQLite" in done.stdout, done.stderr


def test_the_base_installation_has_none_of_the_extras(environment: Path) -> None:
    program = (
        f"from importlib.util import find_spec; print([n for n in {NOT_IN_BASE!r} if find_spec(n)])"
    )
    done = subprocess.run(
        [environment / "python", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_demo_answers_in_an_empty_environment(environment: Path, tmp_path: Path) -> None:
    document = json.loads(_hades(environment, tmp_path, "demo", "--json").stdout)
    first = document["answers"][0]
    assert first["passages"][0]["path"].startswith("email/")
    assert document["night"]["released"]["snapshot"]


def test_a_folder_of_ones_own_is_answered_with_the_default_model(
    each_environment: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "stores.md").write_text(
        "# Stores\n\nThe embedded default is SQLite. It needs no server.\n", "utf-8"
    )
    (folder / "garden.md").write_text(
        "# Garden\n\nTomatoes want sun and a wall behind them.\n", "utf-8"
    )
    _hades(each_environment, tmp_path, "watch", str(folder), "--once")
    answer = json.loads(
        _hades(
            each_environment, tmp_path, "answer", "which database is the default?", "--json"
        ).stdout
    )
    assert "SQLite" in answer["text"]
    assert answer["sources"][0]["document"].endswith("stores.md")


@pytest.mark.parametrize(
    ("arguments", "settings", "extra"),
    [
        (("serve", "--no-token"), {}, "serve"),
        (("mcp",), {}, "serve"),
        (("run", "train_ranker"), {}, "flows"),
        (
            ("status",),
            {"HADES_STORE": "arango", "HADES_ARANGO_URL": "http://127.0.0.1:1"},
            "arango",
        ),
    ],
)
def test_a_missing_part_names_its_extra(
    environment: Path,
    tmp_path: Path,
    arguments: tuple[str, ...],
    settings: dict[str, str],
    extra: str,
) -> None:
    done = _hades(environment, tmp_path, *arguments, expected=1, **settings)
    assert f"pip install 'hades-graphrag[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_evaluation_sets_are_asked_from_a_checkout(environment: Path, tmp_path: Path) -> None:
    done = _hades(environment, tmp_path, "eval", "memory", "talks", "-k", "5", expected=1)
    assert "asked from a checkout" in done.stderr


def _pip(python: str, command: str, *arguments: str) -> None:
    done = subprocess.run(
        [python, "-m", "pip", command, "--quiet", "--disable-pip-version-check", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def _hades(
    environment: Path, folder: Path, *arguments: str, expected: int = 0, **settings: str
) -> subprocess.CompletedProcess[str]:
    ours = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HADES_", "PYTHON"))
    }
    done = subprocess.run(
        [environment / "hades", *arguments],
        cwd=folder,
        env={**ours, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == expected, done.stderr
    return done
