"""Issues and functions."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.errors import HadesError
from hades.evaluation.cases import BadCases, digest, read_cases
from hades.evaluation.code_data import (
    CodeCase,
    CodeGraph,
    CodeRanking,
    CodeRepository,
    find_repository,
    read_code_cases,
    read_functions,
    summarise_code,
)
from hades.evaluation.rankers import peak_mb
from hades.ports.services import Embedder, ProgressReport, Tokenizer, silent
from hades.retrieval.code.index import CodeIndex, CodeUnit
from hades.retrieval.code.search import score_code, search_code
from hades.text.code_questions import read_code_question
from hades.text.words import Vocabulary, terms
from models.bm25 import Bm25, Scores, fit_bm25

# What code search is measured against: BM25 over files and over functions, vectors of functions, their fusion.


DEPTH = 50
_RANK_OFFSET = 60
_EMBEDDED_CHARACTERS = 1_000  # about what the embedder reads of code


class CodeBaselines:
    """The plain searches, which read words as text has them: no parts of identifiers, no paths, no history."""

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
        for text, vector in zip(missing, self._embedder.embed(missing), strict=True):
            self._vectors[text] = np.asarray(vector, np.float32)
        asked = np.asarray(next(iter(self._embedder.embed([question]))), np.float32)
        return np.stack([self._vectors[text] for text in texts]).astype(np.float64) @ asked, len(missing)

    def _ranking(self, index: CodeIndex, files: Scores, units: Scores, began: float) -> CodeRanking:
        taken = (time.perf_counter() - began) * 1000
        order = np.argsort(-files, kind="stable")[:DEPTH].tolist()
        symbols: dict[str, None] = {}
        for row in np.argsort(-units, kind="stable").tolist() if units.any() else ():
            if index.units[row].symbol:
                symbols.setdefault(f"{index.units[row].path}:{index.units[row].symbol}")
            if len(symbols) == DEPTH:
                break
        return CodeRanking(tuple(index.files[row] for row in order), tuple(symbols), taken)


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


AUTO = "auto"
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


# Which single function a plain question wants, beside BM25, vectors of the raw code and their fusion.


FUNCTION_DEPTH = 100
_BATCH = 512


def evaluate_functions(
    files: Path, questions: Path, embedder: Embedder, *, limit: int | None = None, progress: ProgressReport = silent
) -> dict[str, Any]:
    """Ask every question of all functions and sum up."""
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
    raw = _embed(embedder, [row.text for row in rows], "functions", progress)
    vectors = _embed(embedder, [case.question for case in asked], "questions", progress)
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


def _embed(embedder: Embedder, texts: Sequence[str], name: str, progress: ProgressReport) -> NDArray[np.float32]:
    made: list[NDArray[np.float32]] = []
    for start in range(0, len(texts), _BATCH):
        made += [np.asarray(one, np.float32) for one in embedder.embed(list(texts[start : start + _BATCH]))]
        progress(name, len(made), len(texts))
    return np.stack(made)
