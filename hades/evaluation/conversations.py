"""Long conversations and dated articles as corpora with questions: what an agent must find again in its memory.

Each conversation is a corpus of its own, since a question is asked of one; an article collection is one corpus.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hades.evaluation.cases import BadCases, Case, digest, read_cases, read_lines
from hades.evaluation.harness import score, summarise
from hades.evaluation.multihop import Evaluated, middle_of


@dataclass(frozen=True)
class Told:
    """One corpus with the questions that are asked of it, as files."""

    name: str
    corpus: Path
    questions: Path


def prepare(folder: Path, into: Path) -> list[Told]:
    """A folder of turns, sessions and qa, or of passages and questions, as corpora; by the files that are there."""
    if (folder / "turns.jsonl.gz").is_file():
        return _conversations(folder, into)
    if (folder / "passages.jsonl.gz").is_file():
        return [_articles(folder, into)]
    raise BadCases(f"{folder} holds neither turns.jsonl.gz nor passages.jsonl.gz; name a folder of memory data")


def merged(parts: Sequence[tuple[Told, Evaluated]], ks: Sequence[int]) -> dict[str, Any]:
    """The figures over all questions of all parts."""
    cases: list[Case] = [case for told, _ in parts for case in read_cases(told.questions)]
    names = list(parts[0][1].scores)
    scores = {
        name: score(cases, [one for _, found in parts for one in found.scores[name].rankings], ks) for name in names
    }
    first, middle = parts[0][1].document, middle_of(ks)
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
        "notes": first["notes"],
    }


def _conversations(folder: Path, into: Path) -> list[Told]:
    dates = {(row["conv"], row["session"]): row["date_time"] for row in read_lines(folder / "sessions.jsonl.gz")}
    turns: dict[str, list[dict[str, Any]]] = {}
    questions: dict[str, list[dict[str, Any]]] = {}
    for row in read_lines(folder / "turns.jsonl.gz"):
        said = f"{row['speaker']}: {row['text']}"
        title = f"{row['speaker']}, {dates.get((row['conv'], row['session']), '')}"
        turns.setdefault(row["conv"], []).append({"id": row["dia_id"], "title": title, "text": said})
    for row in read_lines(folder / "qa.jsonl.gz"):
        if row["gold"]:  # what was never said cannot be found; such questions ask for an abstention
            asked = {"id": row["id"], "question": row["question"], "gold": row["gold"], "type": row["category_name"]}
            questions.setdefault(row["conv"], []).append(asked)
    return [_written(into, name, turns[name], questions[name]) for name in sorted(questions)]


def _articles(folder: Path, into: Path) -> Told:
    passages = [
        {"id": row["id"], "title": row["doc"].replace("_", " "), "text": row["text"]}
        for row in read_lines(folder / "passages.jsonl.gz")
        if row["text"].strip()
    ]
    questions = [
        {"id": row["id"], "question": row["question"], "gold": row["gold"]}
        for row in read_lines(folder / "questions.jsonl.gz")
        if row["gold"]
    ]
    return _written(into, folder.name, passages, questions)


def _written(into: Path, name: str, corpus: Iterable[dict[str, Any]], questions: Iterable[dict[str, Any]]) -> Told:
    told = Told(name, into / f"{name}.corpus.jsonl", into / f"{name}.questions.jsonl")
    for path, rows in ((told.corpus, corpus), (told.questions, questions)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return told
