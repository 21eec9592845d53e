"""docs/requirements.md lists every requirement with tests and files that exist, and explains every
id that is cited.
"""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/requirements.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([A-EKX]-?\d+[a-z]?) \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)
LISTED = [row[0] for row in ROWS]
LAST = {"A": 84, "B": 56, "C": 76, "D": 68, "E": 32, "K": 10}  # of each specification
CORRECTIONS = (*range(1, 28), *range(30, 75), *range(81, 93))
ID = re.compile(r"\b(?:[A-E]\d{1,2}[a-z]?|X-\d{2})\b")
# An id in brackets, or after the word "requirement": (A63 to A72), (X-24), requirements B10 to B12.
CITATION = re.compile(rf"(?:\(|\brequirements? ){ID.pattern}(?:(?:,| and| to) {ID.pattern})*")


@cache
def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_every_requirement_is_listed_once():
    wanted = [f"{letter}{number}" for letter, last in LAST.items() for number in range(1, last + 1)]
    wanted += ["C5a", "C5b", *(f"X-{number:02}" for number in CORRECTIONS)]
    assert sorted(LISTED) == sorted(wanted)


def test_what_shows_a_requirement_exists():
    gone = [
        f"{id_}: {one}"
        for id_, _, shown in ROWS
        for one in re.findall(r"`([^`]+)`", shown) or [""]
        if not has(one)
    ]
    assert gone == [], (
        "name another test in docs/requirements.md that fails when the requirement breaks"
    )


def has(named: str) -> bool:
    path, _, test = named.partition("::")
    full = f"tests/{path}" if test else path
    if not (ROOT / full).is_file():
        return False
    return (
        not test
        or re.search(rf"^(?:async )?(?:def )?{test}\b", text_of(full), re.MULTILINE) is not None
    )


def test_every_cited_id_is_listed():
    folders = ("hades", "models", "schemas", "tasks", "flows", "aql", "docs")
    paths = [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".md", ".aql")
    ]
    missing = {
        f"{id_} in {path.relative_to(ROOT)}"
        for path in paths
        if path.name != "requirements.md"
        for match in CITATION.finditer(path.read_text(encoding="utf-8"))
        for id_ in ID.findall(match.group(0))
        if id_ not in LISTED
    }
    assert sorted(missing) == [], (
        "add the id to docs/requirements.md, or say in words what the comment means"
    )
