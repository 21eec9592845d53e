"""Every query file says what it binds, what it returns and which index it leans on, and some code
loads it.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
QUERIES = sorted((ROOT / "aql").rglob("*.aql"))
LABELS = ("// binds:", "// returns:", "// index:")


def name_of(path):
    return path.relative_to(ROOT / "aql").with_suffix("").as_posix()


def literals_of_the_library():
    return {
        node.value
        for path in (ROOT / "hades").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_there_are_queries():
    assert QUERIES


@pytest.mark.parametrize("path", QUERIES, ids=name_of)
def test_query_has_a_header(path):
    header = [
        line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("//")
    ]
    assert header[0].startswith("// ")
    assert not header[0].startswith(LABELS)
    missing = [label for label in LABELS if not any(line.startswith(label) for line in header)]
    assert missing == []


@pytest.mark.parametrize("path", QUERIES, ids=name_of)
def test_header_names_exactly_the_binds_of_the_query(path):
    text = path.read_text(encoding="utf-8")
    body = "\n".join(line.split("//")[0] for line in text.splitlines())
    line = next(line for line in text.splitlines() if line.startswith("// binds:"))
    said = {bind.strip() for bind in line.removeprefix("// binds:").split(",")} - {"", "none"}
    used = {f"@{name}" if double else name for double, name in re.findall(r"@(@?)(\w+)", body)}
    assert said == used


@pytest.mark.parametrize("path", QUERIES, ids=name_of)
def test_query_is_named_verb_object_in_a_folder(path):
    assert re.fullmatch(r"[a-z]+/[a-z]+(_[a-z]+)+", name_of(path))


def test_every_query_is_loaded_by_some_code():
    literals = literals_of_the_library()
    assert [name_of(path) for path in QUERIES if name_of(path) not in literals] == []
