"""Long conversations and dated articles as corpora with questions: what an agent must find again in its memory.

Each conversation is a corpus of its own, since a question is asked of one; an article collection is one corpus.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hades.evaluation.abstention import summarise_abstention
from hades.evaluation.cases import BadCases, Case, digest, read_cases, read_lines
from hades.evaluation.harness import Scores, score, summarise
from hades.evaluation.multihop import Evaluation, middle_of
from hades.text.dates import time_asked, times_in

HALVES = ("fitted", "held out")


@dataclass(frozen=True)
class ConversationCorpus:
    """One corpus with the questions that are asked of it, as files; `depth` is where its rankings are compared.

    `unanswerable` are questions without gold: the corpus does not say the answer.
    """

    name: str
    corpus: Path
    questions: Path
    depth: int = 5
    unanswerable: tuple[str, ...] = ()


def prepare(folder: Path, into: Path) -> list[ConversationCorpus]:
    """A folder of turns, sessions and qa, or of passages and questions, as corpora; by the files that are there."""
    if (folder / "turns.jsonl.gz").is_file():
        return _conversations(folder, into)
    if (folder / "passages.jsonl.gz").is_file():
        return [_articles(folder, into)]
    raise BadCases(f"{folder} holds neither turns.jsonl.gz nor passages.jsonl.gz; name a folder of memory data")


def merge(parts: Sequence[tuple[ConversationCorpus, Evaluation]], ks: Sequence[int]) -> dict[str, Any]:
    """The figures over all questions of all parts."""
    cases: list[Case] = [case for told, _ in parts for case in read_cases(told.questions)]
    names = list(parts[0][1].scores)
    scores = {
        name: score(cases, [one for _, found in parts for one in found.scores[name].rankings], ks) for name in names
    }
    unanswerable = {name: [value for _, found in parts for value in found.unanswerable.get(name, ())] for name in names}
    first, middle = parts[0][1].document, middle_of(ks, parts[0][0].depth)
    built = [found.document["build"] for _, found in parts]
    files = [path for told, _ in parts for path in (told.corpus, told.questions)]
    return {
        "dataset": {
            "corpora": len(parts),
            "passages": sum(found.document["dataset"]["passages"] for _, found in parts),
            "questions": len(cases),
            "sha256": digest(files),
        },
        "build": {
            "seconds": round(sum(one["seconds"] for one in built), 2),
            "peak_mb": max(one["peak_mb"] for one in built),
            "embedded": sum(one["embedded"] for one in built),
        },
        "snapshot": first["snapshot"],
        "model": first["model"],
        "embedding_ms": round(float(np.mean([found.document["embedding_ms"] for _, found in parts])), 3),
        "compared_at": middle,
        "recipes": summarise(cases, scores, ks, middle),
        "splits": _splits(parts, scores, ks),
        "abstention": summarise_abstention(cases, scores, unanswerable),
        "notes": first["notes"],
    }


def split_of(key: str) -> str:
    """Which half a conversation or an article belongs to, by its name alone; the recipe `memory` was fitted on one."""
    return HALVES[hashlib.sha256(key.encode()).digest()[-1] % 2]


def _splits(
    parts: Sequence[tuple[ConversationCorpus, Evaluation]], scores: Mapping[str, Scores], ks: Sequence[int]
) -> dict[str, Any]:
    """Recall of both halves."""
    splits = np.array([row.get("split", "") for told, _ in parts for row in read_lines(told.questions)])
    return {
        half: {
            "questions": int((splits == half).sum()),
            "recall": {
                name: {str(k): round(float(one.recall[k][splits == half].mean()), 4) for k in ks}
                for name, one in scores.items()
            },
        }
        for half in HALVES
        if (splits == half).any()
    }


def _conversations(folder: Path, into: Path) -> list[ConversationCorpus]:
    """Turns with their date and the turn before them in the session; a conversation is a corpus."""
    dates = {(row["conv"], row["session"]): row["date_time"] for row in read_lines(folder / "sessions.jsonl.gz")}
    turns: dict[str, list[dict[str, Any]]] = {}
    questions: dict[str, list[dict[str, Any]]] = {}
    before: dict[tuple[str, int], str] = {}
    for row in read_lines(folder / "turns.jsonl.gz"):
        session = row["conv"], row["session"]
        date, said = dates.get(session, ""), f"{row['speaker']}: {row['text']}"
        turn = {"id": row["dia_id"], "title": f"{row['speaker']}, {date}", "text": said, "date": date}
        turns.setdefault(row["conv"], []).append(turn | {"after": before.get(session, "")})
        before[session] = row["dia_id"]
    for row in read_lines(folder / "qa.jsonl.gz"):
        if row["gold"]:  # what was never said cannot be found; such questions ask for an abstention
            asked = {"id": row["id"], "question": row["question"], "gold": row["gold"], "type": row["category_name"]}
            asked |= {"split": split_of(row["conv"]), "answerable": not row.get("adversarial_answer")}
            questions.setdefault(row["conv"], []).append(asked)
    return [replace(_write(into, name, turns[name], questions[name]), depth=10) for name in sorted(questions)]


def _articles(folder: Path, into: Path) -> ConversationCorpus:
    """Paragraphs in the order of their article; questions by the form of the time they name."""
    passages: list[dict[str, Any]] = []
    before: dict[str, str] = {}
    for row in read_lines(folder / "passages.jsonl.gz"):
        if row["text"].strip():
            title, after = row["doc"].replace("_", " "), before.get(row["doc"], "")
            passages.append({"id": row["id"], "title": title, "text": row["text"], "after": after})
            before[row["doc"]] = row["id"]
    rows = list(read_lines(folder / "questions.jsonl.gz"))
    questions = [
        {
            "id": row["id"],
            "question": row["question"],
            "gold": row["gold"],
            "answers": row.get("answers", []),
            "type": time_form(row["question"]),
            "split": split_of(row["doc"]),
        }
        for row in rows
        if row["gold"]
    ]
    unanswerable = tuple(str(row["question"]) for row in rows if not row["gold"])
    return replace(_write(into, folder.name, passages, questions), unanswerable=unanswerable)


def time_form(question: str) -> str:
    """How a question names its time: between two ends, at one time, on one side of a time, or not at all."""
    asked = time_asked(question)
    if asked is None:
        return "no time"
    if None in asked:
        return "before or after"
    return "from to" if any(told.is_scope for told in times_in(question)) else "at a time"


def _write(
    into: Path, name: str, corpus: Iterable[dict[str, Any]], questions: Iterable[dict[str, Any]]
) -> ConversationCorpus:
    told = ConversationCorpus(name, into / f"{name}.corpus.jsonl", into / f"{name}.questions.jsonl")
    for path, rows in ((told.corpus, corpus), (told.questions, questions)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return told
