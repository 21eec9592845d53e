"""`make bench` can call every benchmark, and every result has a section of its page."""

from __future__ import annotations

import ast
import importlib
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.report import WHAT

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = sorted((ROOT / "benchmarks").glob("bench_*.py"))
LIBRARY = ("flows", "tasks", "hades", "models", "schemas")
CALLS = re.search(r"case \$\$name in.*?esac", (ROOT / "Makefile").read_text("utf-8"), re.DOTALL)


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_a_benchmark_writes_json_has_a_section_and_is_given_what_it_requires(path: Path) -> None:
    text, name = path.read_text("utf-8"), path.stem.removeprefix("bench_")
    assert 'add_argument("--json"' in text, (
        f"{path.name} cannot write its figures where `make bench` wants them"
    )
    assert name in WHAT, f"benchmarks/report.py has no section for {name}"
    required = re.findall(r'add_argument\("(?!-)\w+"', text) + re.findall(r"required=True", text)
    assert CALLS is not None
    named = {
        one
        for line in re.findall(r"^\s*([\w|]+)\) needs=", CALLS[0], re.MULTILINE)
        for one in line.split("|")
    }
    assert not required or name in named, f"`make bench` calls {path.name} without {required}"


@pytest.mark.parametrize(
    "path", sorted((ROOT / "benchmarks").glob("fit_*.py")), ids=lambda path: path.stem
)
def test_a_fit_names_and_replaces_files_that_serve(path: Path) -> None:
    text = path.read_text("utf-8")
    named = re.findall(r"models(?:/\w+)+\.json", re.sub(r'" / "', "/", text))
    assert [one for one in named if not (ROOT / one).is_file()] == []


@pytest.mark.parametrize(
    "path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem
)
def test_a_script_imports_what_the_library_has(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in LIBRARY:
            module = importlib.import_module(str(node.module))
            missing = [one.name for one in node.names if not hasattr(module, one.name)]
            assert not [name for name in missing if find_spec(f"{node.module}.{name}") is None], (
                node.module
            )
