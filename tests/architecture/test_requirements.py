"""Every requirement id that the code or a page cites is explained in docs/requirements.md, with a module and a test."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(
    r"^\| ([A-EX]-?\d+[a-z]?) \| ([^|]+) \| (built|partly|not built) \| `([^`]+)` \| `([^`]+)` \|$", re.MULTILINE
)
ROWS = ROW.findall((ROOT / "docs/requirements.md").read_text(encoding="utf-8"))
LISTED = {row[0] for row in ROWS}
# An id in brackets, or after the word "requirement": (A63 to A72), (X-24), requirements B10 to B12.
CITATION = re.compile(r"\(([A-E]\d{1,2}[a-z]?|X-\d{2})(?:(?:,| and| to) ([A-E]\d{1,2}[a-z]?|X-\d{2}))*[):;]")
NAMED = re.compile(r"\brequirements? ([A-E]\d{1,2}[a-z]?|X-\d{2})(?:(?:,| and| to) ([A-E]\d{1,2}[a-z]?|X-\d{2}))?")
ID = re.compile(r"\b(?:[A-E]\d{1,2}[a-z]?|X-\d{2})\b")


def cited() -> list[tuple[str, str]]:
    folders = ("hades", "models", "schemas", "tasks", "flows", "aql", "docs")
    paths = [
        path
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".md", ".aql")
    ]
    found = []
    for path in paths:
        if path.name == "requirements.md":
            continue
        text = path.read_text(encoding="utf-8")
        for match in (*CITATION.finditer(text), *NAMED.finditer(text)):
            found += [(id_, path.relative_to(ROOT).as_posix()) for id_ in ID.findall(match.group(0))]
    return found


def test_the_table_is_read():
    assert len(ROWS) >= 100
    assert len(LISTED) == len(ROWS), "an id is listed twice"


def test_every_cited_id_is_listed():
    missing = sorted({f"{id_} in {path}" for id_, path in cited() if id_ not in LISTED})
    assert missing == [], "add the id to docs/requirements.md, or say in words what the comment means"


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_a_listed_module_and_test_exist(row):
    id_, words, _, module, test = row
    assert words.strip()
    assert (ROOT / module).exists(), f"{id_}: {module} does not exist"
    assert (ROOT / test).exists(), f"{id_}: {test} does not exist"


FINDING = re.compile(r"^\| (\d+) \| [^|]+ \| `([^`]+)` \| `([^`]+)` \|$", re.MULTILINE)


def test_every_finding_about_memory_names_tests_that_exist():
    rows = FINDING.findall((ROOT / "docs/requirements.md").read_text(encoding="utf-8"))
    assert [int(row[0]) for row in rows] == list(range(1, 14))
    for _, *tests in rows:
        for test in tests:
            path, _, name = test.partition("::")
            assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), test
