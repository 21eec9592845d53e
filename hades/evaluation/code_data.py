"""Cases, repository, metrics of code."""

from __future__ import annotations

import shutil
import time
import weakref
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from hades.build.code_workspace import CommitLog, cut_units
from hades.evaluation.cases import BadCases, Row, read_each
from hades.evaluation.metrics import all_gold_at, interval, mean_of, percentiles
from hades.evaluation.rankers import MOMENT, PLAN
from hades.ingest.phases import IngestContext, ingest
from hades.ingest.sources.git import check_out, run_git
from hades.ingest.sources.material import Material
from hades.ingest.sources.workspace import WorkspaceSource
from hades.ports.services import Tokenizer
from hades.retrieval.code.index import CodeIndex, CodeUnit, History
from hades.retrieval.code.words import Words
from hades.retrieval.pipeline import Tools, retrieve
from hades.settings.tree import HippoSettings, HiragPathrag
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from hades.snapshot.view import GraphView
from models.ranker.infer import recall_at, reciprocal_rank

# Issues with the commit they were reported at, and single functions with questions: read from files, checked.


@dataclass(frozen=True)
class CodeCase:
    """An issue: the files and symbols that its fix changed, at the commit before the fix."""

    id: str
    repo: str
    commit: str
    question: str
    gold: frozenset[str]
    gold_symbols: frozenset[str]


def read_code_cases(path: Path, at: str | None = None, limit: int | None = None) -> list[CodeCase]:
    """Rows of id, repo, commit, question, gold and gold_symbols; `at` is a commit that all of them are asked at."""

    def read(row: Row, key: str) -> CodeCase:
        gold, symbols = (frozenset(map(str, row.get(name) or ())) for name in ("gold", "gold_symbols"))
        return CodeCase(key, str(row.get("repo", "")), str(at or row["commit"]), str(row["question"]), gold, symbols)

    expected = "`question`, `gold` and `commit`, which --at gives to all"
    cases = read_each(path, read, ("question", "gold"), expected, "case")
    if limit is None or limit >= len(cases):
        return cases
    return [
        cases[place * len(cases) // limit] for place in range(limit)
    ]  # spread evenly, so that it holds every repository


def read_functions(path: Path) -> list[CodeUnit]:
    """Rows of id, name and text, each as a file of its own."""

    def read(row: Row, key: str) -> CodeUnit:
        return CodeUnit(key, str(row.get("name", "")), "function", 1, row["text"].count("\n") + 1, row["text"])

    return read_each(path, read, ("id", "text"), "`id` and `text`", "function")


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


# Figures of rankings of files and symbols against the files and symbols that a fix changed.


FILE_DEPTHS = (1, 3, 5, 10)
RECALL_DEPTHS = (5, 10)
SYMBOL_DEPTHS = (5, 10)
MOST_SYMBOLS = 3  # symbol accuracy counts cases with at most this many gold symbols


@dataclass(frozen=True)
class CodeRanking:
    """What one ranker gave one case: paths, `path:symbol` names, both best first, and what it took."""

    files: tuple[str, ...]
    symbols: tuple[str, ...]
    ms: float
    abstained: bool = False


def summarise_code(cases: Sequence[CodeCase], rankings: Sequence[CodeRanking]) -> dict[str, Any]:
    """The figures of one ranker, in the shape that scripts rely on."""
    pairs = list(zip(cases, rankings, strict=True))
    single = [(case, found) for case, found in pairs if len(case.gold) == 1]
    named = [(case, found) for case, found in pairs if 1 <= len(case.gold_symbols) <= MOST_SYMBOLS]
    recall = {k: [recall_at(found.files, case.gold, k) for case, found in pairs] for k in RECALL_DEPTHS}
    return {
        "file_acc": _file_acc(pairs),
        "file_recall": {str(k): mean_of(values) for k, values in recall.items()},
        "ci95": {f"file_recall@{k}": [round(end, 4) for end in interval(np.array(v))] for k, v in recall.items()},
        "symbol_acc": {
            str(k): mean_of([all_gold_at(one.symbols, case.gold_symbols, k) for case, one in named])
            for k in SYMBOL_DEPTHS
        }
        | {"cases": len(named)},
        "mrr": mean_of([reciprocal_rank(found.files, case.gold) for case, found in pairs]),
        "one_file": {"file_acc": _file_acc(single), "cases": len(single)},
        "ms": percentiles([found.ms for found in rankings], 3),
        "abstained": mean_of([float(found.abstained) for found in rankings]),
    }


def _file_acc(pairs: Sequence[tuple[CodeCase, CodeRanking]]) -> dict[str, float]:
    return {str(k): mean_of([all_gold_at(found.files, case.gold, k) for case, found in pairs]) for k in FILE_DEPTHS}


# A graph that follows a repository from commit to commit, so that every recipe can rank its files and symbols.


CORPUS = "repository"


class CodeGraph:
    """The store and snapshots of one repository; the next commit writes only what changed.

    `rules` and `walk` are the sections `hirag_pathrag` and `hipporag` of the settings, which its questions follow.
    """

    def __init__(
        self,
        context: IngestContext,
        home: Path,
        rules: HiragPathrag = HiragPathrag(),
        walk: HippoSettings = HippoSettings(),
    ) -> None:
        self._context, self._home = context, home
        self._tools = Tools(context.tokenizer, context.embedder, rules, walk)
        self._parsed: dict[str, Material] = {}

    def rank(self, git_dir: Path, commit: str, question: str, recipes: Sequence[str]) -> dict[str, CodeRanking]:
        """What each recipe finds at a commit."""
        tree = self._home / "cache" / CORPUS
        check_out(git_dir, commit, tree)
        ingest(self._context, WorkspaceSource(tree, parsed=self._parsed))
        publish(self._context.store, self._home)
        with closing(open_snapshot(self._home)) as view:
            return {recipe: self._rank(view, question, recipe) for recipe in recipes}

    def _rank(self, view: GraphView, question: str, recipe: str) -> CodeRanking:
        began = time.perf_counter()
        answer = retrieve(view, question, self._tools, at=MOMENT, recipe=recipe, plan=PLAN)
        taken = (time.perf_counter() - began) * 1000
        cited = [one for one in answer.passages if one.path]
        files = tuple(dict.fromkeys(one.path for one in cited))
        symbols = tuple(dict.fromkeys(f"{one.path}:{one.symbol}" for one in cited if one.symbol))
        return CodeRanking(files, symbols, taken, abstained=not files)


# A repository at one commit after another: what changed is parsed and its words are read, the rest is reused.


class CodeRepository:
    """Builds the index of any commit of a repository; what two commits share is parsed once."""

    def __init__(self, git_dir: Path, tokenizer: Tokenizer) -> None:
        self.git_dir, self._tokenizer = git_dir, tokenizer
        self._parsed: dict[str, Material] = {}
        self._units: dict[tuple[str, str], list[CodeUnit]] = {}
        self._words = Words()
        self._log = CommitLog(git_dir)
        folder = mkdtemp(prefix="hades-commit-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._tree = Path(folder) / CORPUS

    def commit_time(self, commit: str) -> int:
        """When a commit was made, in seconds since 1970."""
        return int(run_git(self.git_dir, "log", "--max-count=1", "--format=%ct", commit))

    def at(self, commit: str) -> tuple[CodeIndex, dict[str, float]]:
        """The index of a commit, with the history before it and nothing later; what it took."""
        began = time.perf_counter()
        known = len(self._parsed)
        units: list[CodeUnit] = []
        check_out(self.git_dir, commit, self._tree)
        read = [one for one in WorkspaceSource(self._tree, parsed=self._parsed).read() if isinstance(one, Material)]
        for one in sorted(read, key=lambda one: one.origin):
            key = (one.code.path if one.code else one.origin, one.text)
            if key not in self._units:
                self._units[key] = list(cut_units(one, self._tokenizer))
            units += self._units[key]
        index = CodeIndex(units, History(self._log.before(commit)), self._words)
        return index, {"seconds": round(time.perf_counter() - began, 3), "parsed": len(self._parsed) - known}
