"""Issues and functions: how well code is found, at each issue's own commit."""

from __future__ import annotations

import shutil
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.build.code_workspace import CommitLog, cut_units
from hades.errors import HadesError
from hades.evaluation.cases import BadCases, Row, digest, read_cases, read_each
from hades.evaluation.metrics import all_gold_at, interval, mean_of, percentiles
from hades.evaluation.rankers import MOMENT, PLAN, peak_mb
from hades.ingest.phases import IngestContext, ingest
from hades.ingest.sources.git import check_out, run_git
from hades.ingest.sources.material import Material
from hades.ingest.sources.workspace import WorkspaceSource
from hades.ports.services import Embedder, ProgressReport, Tokenizer, silent
from hades.retrieval.code.index import CodeIndex, CodeUnit, History
from hades.retrieval.code.search import score_code, search_code
from hades.retrieval.code.words import Words
from hades.retrieval.core.types import AUTO
from hades.retrieval.pipeline import Tools, retrieve
from hades.settings.tree import HippoSettings, HiragPathrag
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from hades.snapshot.view import GraphView
from hades.text.code_questions import read_code_question
from hades.text.words import Vocabulary, terms
from models.bm25 import Bm25, Scores, fit_bm25
from models.ranker.infer import recall_at, reciprocal_rank


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


CORPUS = "repository"


class CodeGraph:
    """The store and snapshots of one repository from commit to commit; the next one writes only what changed.

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


DEPTH = 50
_RANK_OFFSET = 60
_EMBEDDED_CHARACTERS = 1_000  # about what the embedder reads of code


class CodeBaselines:
    """BM25, vectors and their fusion: words as text has them, no parts of identifiers, no paths, no history."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder
        self._vocabulary = Vocabulary()
        self._numbers: dict[str, NDArray[np.int64]] = {}
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def rank(self, index: CodeIndex, question: str) -> tuple[dict[str, CodeRanking], int]:
        """Every baseline for a question, and how many texts were embedded for it."""
        rankings, embedded = {}, 0
        began = time.perf_counter()
        by_file = self.score_words(self.fit_words(index, index.unit_file, len(index.files)), question)
        rankings["bm25_files"] = self._ranking(index, by_file, np.zeros(len(index.units)), began)
        began = time.perf_counter()
        words = self.score_words(self.fit_words(index, np.arange(len(index.units)), len(index.units)), question)
        rankings["bm25_functions"] = self._ranking(index, _best_of_file(index, words), words, began)
        if self._embedder is not None:
            began = time.perf_counter()
            cosines, embedded = self._cosines(index.units, question)
            rankings["dense"] = self._ranking(index, _best_of_file(index, cosines), cosines, began)
            fused = fuse(words, cosines)
            files = fuse(by_file, _best_of_file(index, cosines))
            rankings["fusion"] = self._ranking(index, files, fused, began)
        return rankings, embedded

    def fit_words(self, index: CodeIndex, rows: NDArray[np.int64], count: int) -> Bm25:
        """BM25 over words as text has them; `rows` says which row each unit belongs to."""
        for unit in index.units:
            if unit.text not in self._numbers:
                self._numbers[unit.text] = np.array(self._vocabulary.numbers(unit.text), np.int64)
        found = [self._numbers[unit.text] for unit in index.units]
        row = np.repeat(rows, [len(one) for one in found])
        return fit_bm25(np.concatenate(found), row, np.ones(len(row)), len(self._vocabulary.terms), count)

    def score_words(self, fitted: Bm25, question: str) -> Scores:
        """The score of each row."""
        known = self._vocabulary.terms
        return fitted.score({known[word]: 1.0 for word in terms(question) if word in known})

    def _cosines(self, units: Sequence[CodeUnit], question: str) -> tuple[Scores, int]:
        assert self._embedder is not None
        texts = [f"{unit.symbol}\n{unit.text}"[:_EMBEDDED_CHARACTERS] for unit in units]
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        self._vectors.update(zip(missing, self._embedder.embed(missing), strict=True))
        asked = self._embedder.embed([question])[0]
        return np.stack([self._vectors[text] for text in texts]).astype(np.float64) @ asked, len(missing)

    def _ranking(self, index: CodeIndex, files: Scores, units: Scores, began: float) -> CodeRanking:
        taken = (time.perf_counter() - began) * 1000
        order = np.argsort(-files, kind="stable")[:DEPTH].tolist()
        best = [index.units[row] for row in np.argsort(-units, kind="stable").tolist()] if units.any() else []
        symbols = dict.fromkeys(f"{one.path}:{one.symbol}" for one in best if one.symbol)
        return CodeRanking(tuple(index.files[row] for row in order), tuple(symbols)[:DEPTH], taken)


def _best_of_file(index: CodeIndex, units: Scores) -> Scores:
    best = np.full(len(index.files), -np.inf)
    np.maximum.at(best, index.unit_file, units)
    return best


def fuse(first: Scores, second: Scores) -> Scores:
    """Reciprocal rank fusion (Cormack et al. 2009)."""
    total = np.zeros(len(first))
    for scores in (first, second):
        place = np.empty(len(scores))
        place[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
        total += 1.0 / (_RANK_OFFSET + place)
    return total


# Which file and function an issue is about, at the commit it was reported at; and which function a question wants.
# Each case is asked at its own commit. Cases run in the order of their commits, so that each build reads only what
# changed since the one before. The ranking is `search_code`, which `hades query` uses on a published workspace.
OpenGraph = Callable[[str], AbstractContextManager[CodeGraph]]


def evaluate_code(
    place: Path,
    cases_file: Path,
    tokenizer: Tokenizer,
    *,
    at: str | None = None,
    limit: int | None = None,
    recipes: Sequence[str] = (AUTO,),
    open_graph: OpenGraph | None = None,
    embedder: Embedder | None = None,
    progress: ProgressReport = silent,
) -> dict[str, Any]:
    """Ask every case at its own commit and sum up; without an embedder, dense and fusion are left out.

    Recipes beside the default one are asked of a graph that is built for each commit: `open_graph` opens an empty one.
    """
    others = [name for name in recipes if name != AUTO]
    if others and open_graph is None:
        raise HadesError(f"recipe {others[0]!r} is asked of a graph, and none can be built here; give --home")
    cases = read_code_cases(cases_file, at, limit)
    began = time.perf_counter()
    steps: list[dict[str, Any]] = []
    asked: list[CodeCase] = []
    found: dict[str, list[CodeRanking]] = {}
    for repo in sorted({case.repo for case in cases}):
        repository = CodeRepository(find_repository(place, repo), tokenizer)
        baselines = CodeBaselines(embedder)
        own = [case for case in cases if case.repo == repo]
        with ExitStack() as stack:
            graph = stack.enter_context(open_graph(repo)) if others and open_graph is not None else None
            for case in sorted(own, key=lambda one: (repository.commit_time(one.commit), one.id)):
                index, taken = repository.at(case.commit)
                rankings, embedded = baselines.rank(index, case.question)
                rankings[AUTO] = rank_auto(index, case.question)
                if graph is not None:
                    rankings |= graph.rank(repository.git_dir, case.commit, case.question, others)
                for name, ranking in rankings.items():
                    found.setdefault(name, []).append(ranking)
                first = next((rank for rank, name in enumerate(rankings[AUTO].files, 1) if name in case.gold), None)
                steps.append({"id": case.id, **taken, "embedded": embedded, "place": first})
                asked.append(case)
                progress("cases", len(asked), len(cases))
    built = {"first_seconds": steps[0]["seconds"]}
    built |= {"mean_seconds": round(sum(one["seconds"] for one in steps) / len(steps), 3)}
    built |= {name: sum(one[name] for one in steps) for name in ("parsed", "embedded")}
    return {
        "dataset": {"cases": len(asked), "questions": len(asked), "sha256": digest([cases_file])},
        "build": {"seconds": round(time.perf_counter() - began, 2), "peak_mb": peak_mb(), **built},
        "recipes": {name: summarise_code(asked, rankings) for name, rankings in found.items()},
        "repositories": _by_repository(asked, found),
        "steps": steps,
    }


def rank_auto(index: CodeIndex, question: str) -> CodeRanking:
    """The default recipe on code."""
    began = time.perf_counter()
    hits = search_code(index, question, DEPTH)
    taken = (time.perf_counter() - began) * 1000
    files, symbols = (tuple(one.id for one in names) for names in (hits.files, hits.symbols))
    return CodeRanking(files, symbols, taken, abstained=not files)


def _by_repository(cases: Sequence[CodeCase], found: Mapping[str, Sequence[CodeRanking]]) -> dict[str, Any]:
    """The default recipe, one repository at a time."""
    names = sorted({case.repo for case in cases})
    groups = {name: [place for place, case in enumerate(cases) if case.repo == name] for name in names}
    return {
        name: summarise_code([cases[place] for place in places], [found[AUTO][place] for place in places])
        for name, places in groups.items()
    }


FUNCTION_DEPTH = 100


def evaluate_functions(
    files: Path, questions: Path, embedder: Embedder, *, limit: int | None = None, progress: ProgressReport = silent
) -> dict[str, Any]:
    """Ask every question of all functions, and the baselines with vectors of the raw code; sum up."""
    began = time.perf_counter()
    rows = read_functions(files)
    asked = read_cases(questions)[:limit]
    known = {row.path for row in rows}
    for case in asked:
        if not case.gold <= known:
            raise BadCases(
                f"{questions}: question {case.id} wants {sorted(case.gold - known)[0]!r}, which {files} lacks"
            )
    index = CodeIndex(rows)
    raw = embedder.embed([row.text for row in rows], progress=partial(progress, "functions"))
    vectors = embedder.embed([case.question for case in asked], progress=partial(progress, "questions"))
    baselines = CodeBaselines()
    words = baselines.fit_words(index, np.arange(len(rows)), len(rows))
    built = round(time.perf_counter() - began, 2)
    found: dict[str, list[CodeRanking]] = {"bm25_functions": [], "dense": [], "fusion": [], "auto": []}
    names = [row.path for row in rows]
    for case, vector in zip(asked, vectors, strict=True):
        plain, dense = baselines.score_words(words, case.question), (raw @ vector).astype(np.float64)
        start = time.perf_counter()
        named = score_code(index, read_code_question(case.question), dense).symbols  # as a workspace ranks symbols
        auto = np.where(index.unit_symbol >= 0, named[index.unit_symbol], -np.inf) if len(named) else dense
        taken = (time.perf_counter() - start) * 1000
        scored = {"bm25_functions": plain, "dense": dense, "fusion": fuse(plain, dense), "auto": auto}
        for name, scores in scored.items():
            order = tuple(names[row] for row in np.argsort(-scores, kind="stable")[:FUNCTION_DEPTH])
            found[name].append(CodeRanking(order, (), taken if name == "auto" else 0.0))
    cases = [CodeCase(case.id, "", "", case.question, case.gold, frozenset()) for case in asked]
    return {
        "dataset": {"functions": len(rows), "questions": len(asked), "sha256": digest([files, questions])},
        "build": {"seconds": built, "peak_mb": peak_mb(), "embedded": len(rows) + len(asked)},
        "recipes": {name: summarise_code(cases, rankings) for name, rankings in found.items()},
    }
