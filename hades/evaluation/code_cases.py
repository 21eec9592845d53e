"""Issues with the commit they were reported at, and single functions with questions: read from files, checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hades.evaluation.cases import BadCases, read_lines


@dataclass(frozen=True)
class CodeCase:
    """An issue: the files and symbols that its fix changed, at the commit before the fix."""

    id: str
    repo: str
    commit: str
    question: str
    gold: frozenset[str]
    gold_symbols: frozenset[str]


@dataclass(frozen=True)
class FunctionRow:
    """A single function."""

    id: str
    name: str
    text: str


def read_code_cases(path: Path, at: str | None = None, limit: int | None = None) -> list[CodeCase]:
    """Rows of id, repo, commit, question, gold and gold_symbols; `at` is a commit that all of them are asked at."""
    cases = []
    for number, row in enumerate(read_lines(path), 1):
        commit = at or (row.get("commit") if isinstance(row, dict) else None)
        if not isinstance(row, dict) or not row.get("question") or not row.get("gold") or not commit:
            raise BadCases(
                f"{path} line {number}: a row needs `question`, `gold` and `commit`; got {str(row)[:80]}; "
                "give the commit in the row or with --at"
            )
        cases.append(
            CodeCase(
                str(row.get("id", number)),
                str(row.get("repo", "")),
                str(commit),
                str(row["question"]),
                frozenset(map(str, row["gold"])),
                frozenset(map(str, row.get("gold_symbols") or ())),
            )
        )
    if not cases:
        raise BadCases(f"{path} holds no case")
    return _sample(cases, limit)


def read_functions(path: Path) -> list[FunctionRow]:
    """Rows of id, name and text."""
    rows = []
    for number, row in enumerate(read_lines(path), 1):
        if not isinstance(row, dict) or not row.get("id") or not isinstance(row.get("text"), str):
            raise BadCases(f"{path} line {number}: a row needs `id` and `text`; got {str(row)[:80]}")
        rows.append(FunctionRow(str(row["id"]), str(row.get("name", "")), row["text"]))
    if not rows:
        raise BadCases(f"{path} holds no function")
    return rows


def find_repository(place: Path, repo: str) -> Path:
    """The git directory of a case: `place` itself, or the folder in it that is called after the repository."""
    if _is_repository(place):
        return place
    owner, _, name = repo.rpartition("/")
    for folder in (f"{owner}+{name}", f"{owner}__{name}", repo, name):
        for inner in ("", "repo", f"{name}.git"):
            found = place / folder / inner if inner else place / folder
            if folder and _is_repository(found):
                return found
    raise BadCases(
        f"{place} is not a git repository and holds none called {repo!r}; "
        f"expected {place}/{owner}+{name}, {place}/{name} or a repository"
    )


def _is_repository(place: Path) -> bool:
    return (place / ".git").exists() or ((place / "objects").is_dir() and (place / "HEAD").is_file())


def _sample(cases: list[CodeCase], limit: int | None) -> list[CodeCase]:
    """Cases spread evenly over the file, so that a sample holds every repository."""
    if limit is None or limit >= len(cases):
        return cases
    return [cases[place * len(cases) // limit] for place in range(limit)]
