"""What reranking adds to fused search, and how often abstaining errs, on a corpus with gold passages.

    hades ingest passages DATA/hotpotqa/corpus.jsonl.gz && hades run publish     # into HADES_HOME
    python benchmarks/bench_context.py HOME DATA/hotpotqa/questions.jsonl.gz [--strangers DATA/2wiki/questions.jsonl.gz]

Fused search is the reciprocal-rank fusion of exact cosine and BM25, 100 hits each. Strangers are questions about
another corpus: the share of them that is refused should be high, that of the corpus's own questions low.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from hades.ports.graph import Kind, Passage
from hades.ports.services import Embedder
from hades.providers.minilm import MiniLmEmbedder
from hades.retrieval.core.types import FoundPassage, Question
from hades.retrieval.features.passages import Completion
from hades.retrieval.ranking.abstain import LOOKED_AT, should_abstain
from hades.retrieval.ranking.judge import rerank
from hades.snapshot.open import open_snapshot
from hades.snapshot.view import GraphView

DEPTH, FUSION = 100, 60
VARIANTS: dict[str, dict[str, Any]] = {
    "base score": {"completion": Completion(0.0, 0.0)},
    "with coverage": {"completion": Completion(link=0.0)},
    "with links": {"completion": Completion(coverage=0.0)},
    "all": {},
}


def main() -> None:
    """Measure, print a table, and write the figures where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--strangers", type=Path)
    parser.add_argument("-m", type=int, default=20)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    view = open_snapshot(arguments.home)
    embedder = MiniLmEmbedder(arguments.home / "cache" / "models")
    own = asked(embedder, arguments.questions)
    figures = {"recall": recalls(view, own, arguments.m), "refused": {"own": refused(view, own)}}
    if arguments.strangers:
        figures["refused"]["strangers"] = refused(view, asked(embedder, arguments.strangers))
    show(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def asked(embedder: Embedder, path: Path) -> list[tuple[Question, set[str]]]:
    """Questions with their vectors and their gold documents."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    vectors = embedder.embed([row["question"] for row in rows])
    return [
        (Question(row["question"], vector, embedder.model.tag), set(row["gold"]))
        for row, vector in zip(rows, vectors, strict=True)
    ]


def recalls(view: GraphView, own: Sequence[tuple[Question, set[str]]], m: int) -> dict[str, dict[str, float]]:
    """Share of the gold documents among the first 2, 5 and 10, in percent, and milliseconds of CPU a question."""
    found = [fused(view, question) for question, _ in own]
    figures = {"fused": _recall(view, found, own)}
    for name, options in VARIANTS.items():
        began = time.process_time()
        ranked = [rerank(view, one, hits, m, **options) for (one, _), hits in zip(own, found, strict=True)]
        spent = (time.process_time() - began) / max(1, len(own)) * 1000
        figures[name] = {**_recall(view, ranked, own), "cpu ms": spent}
    return figures


def fused(view: GraphView, question: Question) -> list[FoundPassage]:
    """Passages by cosine and by words, by reciprocal rank."""
    assert question.vector is not None
    near = view.nearest(question.vector, kind=Kind.CHUNK, model=question.model, limit=DEPTH)
    spoken = view.lexical(question.text, kind=Kind.CHUNK, limit=DEPTH)
    scores: dict[int, float] = {}
    for hits in (near, spoken):
        for rank, node in enumerate(hits.numbers.tolist(), 1):
            scores[node] = scores.get(node, 0.0) + 1 / (FUSION + rank)
    return [FoundPassage(node, scores[node]) for node in sorted(scores, key=lambda node: (-scores[node], node))[:40]]


def refused(view: GraphView, questions: Sequence[tuple[Question, set[str]]]) -> dict[str, float]:
    """Share of the questions that are refused, in percent, with cosines and by words alone."""
    counts = np.zeros(2)
    for question, _ in questions:
        passages = _read(view, fused(view, question)[:LOOKED_AT])
        assert question.vector is not None
        best = view.nearest(question.vector, kind=Kind.CHUNK, model=question.model, limit=1).scores
        similarity = float(best[0]) if len(best) else None
        supports = (should_abstain(question, passages, one) for one in (similarity, None))
        counts += [support.should_abstain for support in supports]
    with_vectors, by_words = (100 * counts / max(1, len(questions))).tolist()
    return {"with cosines": with_vectors, "by words": by_words, "questions": len(questions)}


def show(figures: dict[str, Any]) -> None:
    """Two tables."""
    table = Table("recall, %", "2", "5", "10", "cpu ms")
    for name, row in figures["recall"].items():
        table.add_row(name, *(f"{row[str(k)]:.1f}" for k in (2, 5, 10)), f"{row.get('cpu ms', 0.0):.1f}")
    Console().print(table)
    table = Table("refused, %", "with cosines", "by words", "questions")
    for name, row in figures["refused"].items():
        table.add_row(name, f"{row['with cosines']:.1f}", f"{row['by words']:.1f}", str(row["questions"]))
    Console().print(table)


def _recall(
    view: GraphView, found: Sequence[Sequence[FoundPassage]], own: Sequence[tuple[Question, set[str]]]
) -> dict[str, float]:
    shares: NDArray[np.float64] = np.zeros(3)
    for passages, (_, gold) in zip(found, own, strict=True):
        documents = list(dict.fromkeys(passage.document for passage in _read(view, passages)))
        shares += [len(gold & set(documents[:k])) / len(gold) for k in (2, 5, 10)]
    return dict(zip(("2", "5", "10"), (100 * shares / max(1, len(own))).tolist(), strict=True))


def _read(view: GraphView, passages: Sequence[FoundPassage]) -> list[Passage]:
    return view.passages(np.array([passage.node for passage in passages], np.int64))


if __name__ == "__main__":
    main()
