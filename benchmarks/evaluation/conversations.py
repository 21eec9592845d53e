"""Long conversations and dated articles as corpora with questions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.evaluation.cases import Case, read_cases
from benchmarks.evaluation.measure import Evaluation, middle_of
from benchmarks.evaluation.metrics import Scores, score, summarise, summarise_abstention
from hades.evaluation.cases import BadCases, digest, read_lines
from hades.evaluation.figures import rounded
from hades.text.dates import time_asked, times_in

# Long conversations and dated articles as corpora with questions: what an agent must find again in
# its memory. Each conversation is a corpus of its own, since a question is asked of one; an article
# collection is one corpus.
HALVES = ("fitted", "held out")


@dataclass(frozen=True)
class ConversationCorpus:
    """One corpus with the questions that are asked of it, as files; `depth` is where its rankings
    are compared.
    """

    name: str
    corpus: Path
    questions: Path
    depth: int = 5


def prepare(folder: Path, into: Path) -> list[ConversationCorpus]:
    """A folder of turns, sessions and qa, or of passages and questions, as corpora; by the files
    that are there.
    """
    if (folder / "turns.jsonl.gz").is_file():
        return _conversations(folder, into)
    if (folder / "passages.jsonl.gz").is_file():
        return [_articles(folder, into)]
    raise BadCases(
        f"{folder} holds neither turns.jsonl.gz nor passages.jsonl.gz; name a folder of memory data"
    )


def merge(
    parts: Sequence[tuple[ConversationCorpus, Evaluation]], ks: Sequence[int]
) -> dict[str, Any]:
    """The figures over all questions of all parts."""
    cases: list[Case] = []
    files: list[Path] = []
    for corpus, _ in parts:
        cases += read_cases(corpus.questions)
        files += [corpus.corpus, corpus.questions]
    evaluations = [evaluation for _, evaluation in parts]
    scores = {}
    unanswerable: dict[str, list[float]] = {}
    for name in evaluations[0].scores:
        rankings = [evaluation.scores[name].rankings for evaluation in evaluations]
        scores[name] = score(cases, list(chain.from_iterable(rankings)), ks)
        values = [evaluation.unanswerable.get(name, ()) for evaluation in evaluations]
        unanswerable[name] = list(chain.from_iterable(values))
    documents = [evaluation.document for evaluation in evaluations]
    first, middle = documents[0], middle_of(ks, parts[0][0].depth)
    built = [document["build"] for document in documents]
    dataset = {
        "corpora": len(parts),
        "passages": sum(document["dataset"]["passages"] for document in documents),
        "questions": len(cases),
        "sha256": digest(files),
    }
    build_figures = {
        "seconds": round(sum(figures["seconds"] for figures in built), 2),
        "peak_mb": max(figures["peak_mb"] for figures in built),
        "embedded": sum(figures["embedded"] for figures in built),
    }
    embedding_ms = float(np.mean([document["embedding_ms"] for document in documents]))
    return {
        "dataset": dataset,
        "build": build_figures,
        "snapshot": first["snapshot"],
        "model": first["model"],
        "embedding_ms": round(embedding_ms, 3),
        "compared_at": middle,
        "recipes": summarise(cases, scores, ks, middle),
        "splits": _splits(parts, scores, ks),
        "abstention": summarise_abstention(cases, scores, unanswerable),
        "notes": first["notes"],
    }


def split_of(key: str) -> str:
    """Which half a conversation or an article belongs to, by its name alone; the recipe `memory`
    was fitted on one.
    """
    return HALVES[hashlib.sha256(key.encode()).digest()[-1] % 2]


def _splits(
    parts: Sequence[tuple[ConversationCorpus, Evaluation]],
    scores: Mapping[str, Scores],
    ks: Sequence[int],
) -> dict[str, Any]:
    """Recall of both halves."""
    rows = chain.from_iterable(read_lines(corpus.questions) for corpus, _ in parts)
    splits = np.array([row.get("split", "") for row in rows if row["gold"]])
    figures = {}
    for half in HALVES:
        is_inside = splits == half
        if not is_inside.any():
            continue
        recall: dict[str, dict[str, float]] = {}
        for name, recipe_scores in scores.items():
            recall[name] = {str(k): rounded(recipe_scores.recall[k][is_inside].mean()) for k in ks}
        figures[half] = {"questions": int(is_inside.sum()), "recall": recall}
    return figures


def _conversations(folder: Path, into: Path) -> list[ConversationCorpus]:
    """Turns with their date and the turn before them in the session; a conversation is a corpus."""
    dates = {
        (row["conv"], row["session"]): row["date_time"]
        for row in read_lines(folder / "sessions.jsonl.gz")
    }
    turns: dict[str, list[dict[str, Any]]] = {}
    questions: dict[str, list[dict[str, Any]]] = {}
    previous_turn: dict[tuple[str, int], str] = {}
    for row in read_lines(folder / "turns.jsonl.gz"):
        session = row["conv"], row["session"]
        date, text = dates.get(session, ""), f"{row['speaker']}: {row['text']}"
        turn = {
            "id": row["dia_id"],
            "title": f"{row['speaker']}, {date}",
            "text": text,
            "date": date,
        }
        turns.setdefault(row["conv"], []).append(turn | {"after": previous_turn.get(session, "")})
        previous_turn[session] = row["dia_id"]
    for row in read_lines(folder / "qa.jsonl.gz"):
        if row["gold"]:  # what was never said cannot be found; such questions ask for an abstention
            question = {
                "id": row["id"],
                "question": row["question"],
                "gold": row["gold"],
                "type": row["category_name"],
                "split": split_of(row["conv"]),
                "answerable": not row.get("adversarial_answer"),
            }
            questions.setdefault(row["conv"], []).append(question)
    return [
        replace(_write(into, name, turns[name], questions[name]), depth=10)
        for name in sorted(questions)
    ]


def _articles(folder: Path, into: Path) -> ConversationCorpus:
    """Paragraphs in the order of their article; questions by the form of the time they name."""
    passages: list[dict[str, Any]] = []
    previous_passage: dict[str, str] = {}
    for row in read_lines(folder / "passages.jsonl.gz"):
        if row["text"].strip():
            title, previous = row["doc"].replace("_", " "), previous_passage.get(row["doc"], "")
            passages.append(
                {"id": row["id"], "title": title, "text": row["text"], "after": previous}
            )
            previous_passage[row["doc"]] = row["id"]
    questions = []
    for row in read_lines(folder / "questions.jsonl.gz"):
        question = {name: row.get(name, []) for name in ("id", "question", "gold", "answers")}
        question |= {"type": time_form(row["question"]), "split": split_of(row["doc"])}
        questions.append(question)
    return _write(into, folder.name, passages, questions)


def time_form(question: str) -> str:
    """How a question names its time: between two ends, at one time, on one side of a time, or not
    at all.
    """
    interval = time_asked(question)
    if interval is None:
        return "no time"
    if None in interval:
        return "before or after"
    return "from to" if any(mention.is_scope for mention in times_in(question)) else "at a time"


def _write(
    into: Path, name: str, corpus: Iterable[dict[str, Any]], questions: Iterable[dict[str, Any]]
) -> ConversationCorpus:
    conversation = ConversationCorpus(
        name, into / f"{name}.corpus.jsonl", into / f"{name}.questions.jsonl"
    )
    for path, rows in ((conversation.corpus, corpus), (conversation.questions, questions)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
        )
    return conversation
