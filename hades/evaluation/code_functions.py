"""Which single function a plain question wants, beside BM25, vectors of the raw code and their fusion."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hades.evaluation.build import peak_mb
from hades.evaluation.cases import BadCases, digest, read_cases
from hades.evaluation.code_baselines import fuse
from hades.evaluation.code_cases import CodeCase, read_functions
from hades.evaluation.code_metrics import CodeRanking, summarise_code
from hades.ports.progress import Progress, silent
from hades.ports.text import Embedder
from hades.retrieval.code.index import CodeIndex, CodeUnit
from hades.retrieval.code.postings import Scores, build_postings
from hades.retrieval.code.ranker import score_code
from hades.text.analyzer import Vocabulary, terms
from hades.text.code_question import read_code_question

DEPTH = 100
_BATCH = 512


def evaluate_functions(
    files: Path, questions: Path, embedder: Embedder, *, limit: int | None = None, progress: Progress = silent
) -> dict[str, Any]:
    """Ask every question of all functions and sum up."""
    began = time.perf_counter()
    rows = read_functions(files)
    asked = read_cases(questions)[:limit]
    known = {row.id for row in rows}
    for case in asked:
        if not case.gold <= known:
            raise BadCases(
                f"{questions}: question {case.id} wants {sorted(case.gold - known)[0]!r}, which {files} lacks"
            )
    index = CodeIndex([CodeUnit(row.id, row.name, "function", 1, row.text.count("\n") + 1, row.text) for row in rows])
    raw = _embed(embedder, [row.text for row in rows], "functions", progress)
    vectors = _embed(embedder, [case.question for case in asked], "questions", progress)
    words = _PlainWords([row.text for row in rows])
    built = round(time.perf_counter() - began, 2)
    found: dict[str, list[CodeRanking]] = {"bm25_functions": [], "dense": [], "fusion": [], "auto": []}
    names = [row.id for row in rows]
    for case, vector in zip(asked, vectors, strict=True):
        plain, dense = words.score(case.question), (raw @ vector).astype(np.float64)
        start = time.perf_counter()
        auto = _rank_units(index, case.question, dense)
        taken = (time.perf_counter() - start) * 1000
        for name, scores in (
            ("bm25_functions", plain),
            ("dense", dense),
            ("fusion", fuse(plain, dense)),
            ("auto", auto),
        ):
            order = tuple(names[row] for row in np.argsort(-scores, kind="stable")[:DEPTH])
            found[name].append(CodeRanking(order, (), taken if name == "auto" else 0.0))
    cases = [CodeCase(case.id, "", "", case.question, case.gold, frozenset()) for case in asked]
    return {
        "dataset": {"functions": len(rows), "questions": len(asked), "sha256": digest([files, questions])},
        "build": {"seconds": built, "peak_mb": peak_mb(), "embedded": len(rows) + len(asked)},
        "recipes": {name: summarise_code(cases, rankings) for name, rankings in found.items()},
    }


def _rank_units(index: CodeIndex, question: str, cosines: Scores) -> Scores:
    """The score of each function as a workspace ranks symbols; a function without a name has none."""
    scores = score_code(index, read_code_question(question), cosines).symbols
    return np.where(index.unit_symbol >= 0, scores[index.unit_symbol], -np.inf) if len(scores) else cosines


class _PlainWords:
    """BM25 over words as text has them."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._vocabulary = Vocabulary()
        numbers = [np.array(self._vocabulary.numbers(text), np.int64) for text in texts]
        row = np.repeat(np.arange(len(texts)), [len(one) for one in numbers])
        every = np.concatenate(numbers)
        self._postings = build_postings(every, row, np.ones(len(every)), len(self._vocabulary.terms), len(texts))

    def score(self, question: str) -> Scores:
        """The score of each text."""
        known = self._vocabulary.terms
        return self._postings.score({known[word]: 1.0 for word in terms(question) if word in known})


def _embed(embedder: Embedder, texts: Sequence[str], name: str, progress: Progress) -> NDArray[np.float32]:
    made: list[NDArray[np.float32]] = []
    for start in range(0, len(texts), _BATCH):
        made += [np.asarray(one, np.float32) for one in embedder.embed(list(texts[start : start + _BATCH]))]
        progress(name, len(made), len(texts))
    return np.stack(made)
