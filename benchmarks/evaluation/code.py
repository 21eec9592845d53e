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

from benchmarks.evaluation.cases import read_cases
from benchmarks.evaluation.metrics import all_gold_at, interval
from benchmarks.evaluation.workbench import peak_mb
from hades.errors import HadesError
from hades.evaluation.cases import BadCases, Row, digest, read_each
from hades.evaluation.figures import mean_of, percentiles
from hades.evaluation.rankers import MOMENT, PLAN, ms_since
from hades.ingest.phases import IngestContext, ingest
from hades.ingest.sources.git import check_out, run_git
from hades.ingest.sources.material import Material
from hades.ingest.sources.workspace import WorkspaceSource
from hades.night.code_workspace import CommitLog, cut_units
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
    """Rows of id, repo, commit, question, gold and gold_symbols; `at` is a commit that all of them
    are asked at.
    """

    def read(row: Row, key: str) -> CodeCase:
        gold, symbols = (
            frozenset(map(str, row.get(name) or ())) for name in ("gold", "gold_symbols")
        )
        return CodeCase(
            key,
            str(row.get("repo", "")),
            str(at or row["commit"]),
            str(row["question"]),
            gold,
            symbols,
        )

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
        return CodeUnit(
            key, str(row.get("name", "")), "function", 1, row["text"].count("\n") + 1, row["text"]
        )

    return read_each(path, read, ("id", "text"), "`id` and `text`", "function")


def find_repository(place: Path, repo: str) -> Path:
    """The git directory of a case: `place` itself, or the folder in it that is called after the
    repository.
    """
    if _is_repository(place):
        return place
    owner, _, name = repo.rpartition("/")
    for folder in (f"{owner}+{name}", f"{owner}__{name}", repo, name):
        for inner in ("", "repo", f"{name}.git"):
            candidate = place / folder / inner if inner else place / folder
            if folder and _is_repository(candidate):
                return candidate
    raise BadCases(
        f"{place} is not a git repository and holds none called {repo!r}; "
        f"expected {place}/{owner}+{name}, {place}/{name} or a repository"
    )


def _is_repository(place: Path) -> bool:
    return (place / ".git").exists() or (
        (place / "objects").is_dir() and (place / "HEAD").is_file()
    )


FILE_DEPTHS = (1, 3, 5, 10)
RECALL_DEPTHS = (5, 10)
SYMBOL_DEPTHS = (5, 10)
MOST_SYMBOLS = 3  # symbol accuracy counts cases with at most this many gold symbols


@dataclass(frozen=True)
class CodeRanking:
    """What one ranker gave one case: paths, `path:symbol` names, both best first, and what it
    took.
    """

    files: tuple[str, ...]
    symbols: tuple[str, ...]
    ms: float
    abstained: bool = False


def summarise_code(cases: Sequence[CodeCase], rankings: Sequence[CodeRanking]) -> dict[str, Any]:
    """The figures of one ranker, in the shape that scripts rely on."""
    pairs = list(zip(cases, rankings, strict=True))
    recalls = {}
    intervals = {}
    for k in RECALL_DEPTHS:
        values = [recall_at(ranking.files, case.gold, k) for case, ranking in pairs]
        recalls[str(k)] = mean_of(values)
        intervals[f"file_recall@{k}"] = [round(end, 4) for end in interval(np.array(values))]
    single = [(case, ranking) for case, ranking in pairs if len(case.gold) == 1]
    symbol_cases = [
        (case, ranking) for case, ranking in pairs if 1 <= len(case.gold_symbols) <= MOST_SYMBOLS
    ]
    symbol_accuracy: dict[str, float] = {}
    for k in SYMBOL_DEPTHS:
        is_found = [
            all_gold_at(ranking.symbols, case.gold_symbols, k) for case, ranking in symbol_cases
        ]
        symbol_accuracy[str(k)] = mean_of(is_found)
    reciprocal_ranks = [reciprocal_rank(ranking.files, case.gold) for case, ranking in pairs]
    return {
        "file_acc": _file_acc(pairs),
        "file_recall": recalls,
        "ci95": intervals,
        "symbol_acc": {**symbol_accuracy, "cases": len(symbol_cases)},
        "mrr": mean_of(reciprocal_ranks),
        "one_file": {"file_acc": _file_acc(single), "cases": len(single)},
        "ms": percentiles([ranking.ms for ranking in rankings], 3),
        "abstained": mean_of([float(ranking.abstained) for ranking in rankings]),
    }


def _file_acc(pairs: Sequence[tuple[CodeCase, CodeRanking]]) -> dict[str, float]:
    accuracy = {}
    for k in FILE_DEPTHS:
        is_found = [all_gold_at(ranking.files, case.gold, k) for case, ranking in pairs]
        accuracy[str(k)] = mean_of(is_found)
    return accuracy


CORPUS = "repository"


class CodeGraph:
    """The store and snapshots of one repository from commit to commit; the next one writes only
    what changed.

    `rules` and `walk` are the sections `hirag_pathrag` and `hipporag` of the settings, which its
    questions follow.
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

    def rank(
        self, git_dir: Path, commit: str, question: str, recipes: Sequence[str]
    ) -> dict[str, CodeRanking]:
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
        ms = ms_since(began)
        cited = [passage for passage in answer.passages if passage.path]
        files = tuple(dict.fromkeys(passage.path for passage in cited))
        symbols = tuple(
            dict.fromkeys(f"{passage.path}:{passage.symbol}" for passage in cited if passage.symbol)
        )
        return CodeRanking(files, symbols, ms, abstained=not files)


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
        materials = [
            material
            for material in WorkspaceSource(self._tree, parsed=self._parsed).read()
            if isinstance(material, Material)
        ]
        for material in sorted(materials, key=lambda source: source.origin):
            key = (material.code.path if material.code else material.origin, material.text)
            if key not in self._units:
                self._units[key] = list(cut_units(material, self._tokenizer))
            units += self._units[key]
        index = CodeIndex(units, History(self._log.before(commit)), self._words)
        return index, {
            "seconds": round(time.perf_counter() - began, 3),
            "parsed": len(self._parsed) - known,
        }


DEPTH = 50
_RANK_OFFSET = 60
_EMBEDDED_CHARACTERS = 1_000  # about what the embedder reads of code


class CodeBaselines:
    """BM25, vectors and their fusion: words as text has them, no parts of identifiers, no paths, no
    history.
    """

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder
        self._vocabulary = Vocabulary()
        self._numbers: dict[str, NDArray[np.int64]] = {}
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def rank(self, index: CodeIndex, question: str) -> tuple[dict[str, CodeRanking], int]:
        """Every baseline for a question, and how many texts were embedded for it."""
        rankings, embedded = {}, 0
        began = time.perf_counter()
        by_file = self.score_words(
            self.fit_words(index, index.unit_file, len(index.files)), question
        )
        rankings["bm25_files"] = self._ranking(index, by_file, np.zeros(len(index.units)), began)
        began = time.perf_counter()
        words = self.score_words(
            self.fit_words(index, np.arange(len(index.units)), len(index.units)), question
        )
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
        unit_terms = [self._numbers[unit.text] for unit in index.units]
        row = np.repeat(rows, [len(term_numbers) for term_numbers in unit_terms])
        return fit_bm25(
            np.concatenate(unit_terms), row, np.ones(len(row)), len(self._vocabulary.terms), count
        )

    def score_words(self, fitted: Bm25, question: str) -> Scores:
        """The score of each row."""
        known = self._vocabulary.terms
        return fitted.score({known[word]: 1.0 for word in terms(question) if word in known})

    def _cosines(self, units: Sequence[CodeUnit], question: str) -> tuple[Scores, int]:
        assert self._embedder is not None
        texts = [f"{unit.symbol}\n{unit.text}"[:_EMBEDDED_CHARACTERS] for unit in units]
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        self._vectors.update(zip(missing, self._embedder.embed(missing), strict=True))
        question_vector = self._embedder.embed([question])[0]
        return np.stack([self._vectors[text] for text in texts]).astype(
            np.float64
        ) @ question_vector, len(missing)

    def _ranking(self, index: CodeIndex, files: Scores, units: Scores, began: float) -> CodeRanking:
        ms = ms_since(began)
        order = np.argsort(-files, kind="stable")[:DEPTH].tolist()
        best = (
            [index.units[row] for row in np.argsort(-units, kind="stable").tolist()]
            if units.any()
            else []
        )
        symbols = dict.fromkeys(f"{unit.path}:{unit.symbol}" for unit in best if unit.symbol)
        return CodeRanking(tuple(index.files[row] for row in order), tuple(symbols)[:DEPTH], ms)


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


# Which file and function an issue is about, at the commit it was reported at; and which function a
# question wants. Each case is asked at its own commit. Cases run in the order of their commits, so
# that each build reads only what changed since the one before. The ranking is `search_code`, which
# `hades query` uses on a published workspace.
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
    """Ask every case at its own commit and sum up; without an embedder, dense and fusion are left
    out.

    Recipes beside the default one are asked of a graph that is built for each commit: `open_graph`
    opens an empty one.
    """
    graph_recipes = [name for name in recipes if name != AUTO]
    if graph_recipes and open_graph is None:
        raise HadesError(
            f"recipe {graph_recipes[0]!r} is asked of a graph, and none can be built here; "
            "give --home"
        )
    cases = read_code_cases(cases_file, at, limit)
    began = time.perf_counter()
    steps: list[dict[str, Any]] = []
    asked_cases: list[CodeCase] = []
    rankings_by_name: dict[str, list[CodeRanking]] = {}
    for repo in sorted({case.repo for case in cases}):
        repository = CodeRepository(find_repository(place, repo), tokenizer)
        baselines = CodeBaselines(embedder)
        repo_cases = [case for case in cases if case.repo == repo]
        repo_cases.sort(key=lambda case: (repository.commit_time(case.commit), case.id))
        with ExitStack() as stack:
            graph = None
            if graph_recipes and open_graph is not None:
                graph = stack.enter_context(open_graph(repo))
            for case in repo_cases:
                index, build_figures = repository.at(case.commit)
                rankings, embedded = baselines.rank(index, case.question)
                rankings[AUTO] = rank_auto(index, case.question)
                if graph is not None:
                    rankings |= graph.rank(
                        repository.git_dir, case.commit, case.question, graph_recipes
                    )
                for name, ranking in rankings.items():
                    rankings_by_name.setdefault(name, []).append(ranking)
                files = rankings[AUTO].files
                first = next(
                    (rank for rank, name in enumerate(files, 1) if name in case.gold), None
                )
                steps.append({"id": case.id, **build_figures, "embedded": embedded, "place": first})
                asked_cases.append(case)
                progress("cases", len(asked_cases), len(cases))
    seconds = [step["seconds"] for step in steps]
    built = {
        "first_seconds": seconds[0],
        "mean_seconds": round(sum(seconds) / len(steps), 3),
        "parsed": sum(step["parsed"] for step in steps),
        "embedded": sum(step["embedded"] for step in steps),
    }
    return {
        "dataset": {
            "cases": len(asked_cases),
            "questions": len(asked_cases),
            "sha256": digest([cases_file]),
        },
        "build": {"seconds": round(time.perf_counter() - began, 2), "peak_mb": peak_mb(), **built},
        "recipes": {
            name: summarise_code(asked_cases, rankings)
            for name, rankings in rankings_by_name.items()
        },
        "repositories": _by_repository(asked_cases, rankings_by_name),
        "steps": steps,
    }


def rank_auto(index: CodeIndex, question: str) -> CodeRanking:
    """The default recipe on code."""
    began = time.perf_counter()
    hits = search_code(index, question, DEPTH)
    ms = ms_since(began)
    files = tuple(hit.id for hit in hits.files)
    symbols = tuple(hit.id for hit in hits.symbols)
    return CodeRanking(files, symbols, ms, abstained=not files)


def _by_repository(
    cases: Sequence[CodeCase], rankings: Mapping[str, Sequence[CodeRanking]]
) -> dict[str, Any]:
    """The default recipe, one repository at a time."""
    figures = {}
    for name in sorted({case.repo for case in cases}):
        places = [place for place, case in enumerate(cases) if case.repo == name]
        repo_rankings = [rankings[AUTO][place] for place in places]
        figures[name] = summarise_code([cases[place] for place in places], repo_rankings)
    return figures


FUNCTION_DEPTH = 100


def evaluate_functions(
    files: Path,
    questions: Path,
    embedder: Embedder,
    *,
    limit: int | None = None,
    progress: ProgressReport = silent,
) -> dict[str, Any]:
    """Ask every question of all functions, and the baselines with vectors of the raw code; sum
    up.
    """
    began = time.perf_counter()
    rows = read_functions(files)
    asked_cases = read_cases(questions)[:limit]
    known = {row.path for row in rows}
    for case in asked_cases:
        if not case.gold <= known:
            raise BadCases(
                f"{questions}: question {case.id} wants {sorted(case.gold - known)[0]!r}, which "
                f"{files} lacks"
            )
    index = CodeIndex(rows)
    raw = embedder.embed([row.text for row in rows], progress=partial(progress, "functions"))
    vectors = embedder.embed(
        [case.question for case in asked_cases], progress=partial(progress, "questions")
    )
    baselines = CodeBaselines()
    words = baselines.fit_words(index, np.arange(len(rows)), len(rows))
    built = round(time.perf_counter() - began, 2)
    rankings_by_name: dict[str, list[CodeRanking]] = {
        "bm25_functions": [],
        "dense": [],
        "fusion": [],
        "auto": [],
    }
    names = [row.path for row in rows]
    for case, vector in zip(asked_cases, vectors, strict=True):
        plain = baselines.score_words(words, case.question)
        dense = auto = (raw @ vector).astype(np.float64)
        start = time.perf_counter()
        # As a workspace ranks symbols.
        symbol_scores = score_code(index, read_code_question(case.question), dense).symbols
        if len(symbol_scores):
            auto = np.where(index.unit_symbol >= 0, symbol_scores[index.unit_symbol], -np.inf)
        ms = ms_since(start)
        scored = {
            "bm25_functions": plain,
            "dense": dense,
            "fusion": fuse(plain, dense),
            "auto": auto,
        }
        for name, scores in scored.items():
            order = tuple(names[row] for row in np.argsort(-scores, kind="stable")[:FUNCTION_DEPTH])
            rankings_by_name[name].append(CodeRanking(order, (), ms if name == "auto" else 0.0))
    cases = [
        CodeCase(case.id, "", "", case.question, case.gold, frozenset()) for case in asked_cases
    ]
    return {
        "dataset": {
            "functions": len(rows),
            "questions": len(asked_cases),
            "sha256": digest([files, questions]),
        },
        "build": {"seconds": built, "peak_mb": peak_mb(), "embedded": len(rows) + len(asked_cases)},
        "recipes": {
            name: summarise_code(cases, rankings) for name, rankings in rankings_by_name.items()
        },
    }
