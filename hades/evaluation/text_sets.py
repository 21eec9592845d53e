"""Multi-hop, conversations, citations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hades.evaluation.cases import (
    ArxivFiles,
    BadCases,
    Case,
    Citation,
    citation_cases,
    digest,
    read_cases,
    read_lines,
    read_papers,
    read_unanswerable,
    test_citations,
    write_remaining,
)
from hades.evaluation.metrics import (
    Scores,
    all_gold_at,
    alpha_of,
    ask_unanswerable,
    interval,
    rounded,
    run,
    score,
    summarise,
    summarise_abstention,
)
from hades.evaluation.rankers import Bench, CachingEmbedder, Rung, Workbench, baselines, build, notes
from hades.ingest.stated_edges import read_facts
from hades.ports.store import RowStore, scan_rows
from hades.snapshot.open import open_snapshot
from hades.text.dates import time_asked, times_in
from schemas.nodes import RelationType

FIRST = 8  # titles that the published runs kept
GOLD = "ground_truth"


def compare_published(
    path: Path, titles: Mapping[str, str], cases: Sequence[Case], scores: Mapping[str, Scores]
) -> dict[str, Any]:
    """Share of the questions of both with all evidence among the first 8, for every system in the file and for ours.

    Evidence is given there by title, so a passage counts by its title; ours are cut to 8 passages, as theirs were.
    """
    rows = {str(row["question"]): row for row in read_lines(path)}
    both = [(place, rows[case.question]) for place, case in enumerate(cases) if case.question in rows]
    if not both:
        raise BadCases(f"{path} and the questions have no question in common; give the runs of the same questions")
    systems = [name for name, value in both[0][1].items() if name != GOLD and isinstance(value, list)]
    shown = {f"published: {name}": [row[name] for _, row in both] for name in systems}
    for name, one in scores.items():
        found = [one.rankings[place].documents for place, _ in both]
        shown[name] = [[titles.get(document, "") for document in own] for own in found]
    gold = [frozenset(row[GOLD]) for _, row in both]
    held = {
        name: np.array([all_gold_at(ranked, own, FIRST) for ranked, own in zip(rankings, gold, strict=True)])
        for name, rankings in shown.items()
    }
    told = {
        name: {"share": rounded(values.mean()), "ci95": [rounded(end) for end in interval(values)]}
        for name, values in held.items()
    }
    return {"questions": len(both), "k": FIRST, "all_evidence": told}


DEFAULT = "auto,auto/online,hipporag,hirag_pathrag,pathrag,nexus"


@dataclass(frozen=True)
class Evaluation:
    """The summary as scripts read it, and every question's figures for plots and tests."""

    document: dict[str, Any]
    scores: dict[str, Scores]
    unanswerable: dict[str, list[float]] = field(default_factory=dict)  # confidence in questions without an answer


def evaluate_multihop(
    bench: Workbench,
    corpus: Path,
    questions: Path,
    *,
    triples: Path | None = None,
    published: Path | None = None,
    rungs: Sequence[Rung],
    ks: Sequence[int] = (2, 5, 10),
) -> Evaluation:
    """Build, ask every rung and every baseline, sum up; how sure each rung is of what has no answer is measured too."""
    cases, unanswerable = read_cases(questions), read_unanswerable(questions)
    titles = {str(row["id"]): str(row.get("title", "")) for row in read_lines(corpus)}
    built = build(bench, lambda ingest: ingest.passages(corpus, triples))
    files = [path for path in (corpus, questions, triples) if path is not None]
    data = {"passages": len(titles), "questions": len(cases), "sha256": digest(files), "triples": triples is not None}
    found = measure(bench, cases, rungs, ks, middle_of(ks), unanswerable)
    document = {"dataset": data, "build": built, **found.document}
    if published is not None:
        document["published"] = compare_published(published, titles, cases, found.scores)
    return Evaluation(document, found.scores, found.unanswerable)


def measure(
    bench: Workbench,
    cases: Sequence[Case],
    rungs: Sequence[Rung],
    ks: Sequence[int],
    middle: int,
    unanswerable: Sequence[str] = (),
) -> Evaluation:
    """Ask the published graph: the baselines, whoever asks, then the rungs."""
    embedder = CachingEmbedder(bench.ingest.embedder)
    embedding_ms = embedder.learn(case.question for case in cases)
    with closing(open_snapshot(bench.build_context.home)) as view:
        asked = Bench(view, replace(bench.tools, embedder=embedder))
        rankers = baselines(asked)
        if beside := [case.beside for case in cases if case.beside]:
            embedder.embed(beside)
            rankers |= baselines(asked, placed=True)
        ours = {rung.name: rung.ranker(asked) for rung in rungs}
        scores = run(cases, rankers | ours, ks, bench.build_context.progress)
        doubtful = ask_unanswerable(unanswerable, ours)
    document = {
        "snapshot": view.info.snapshot,
        "model": embedder.model.tag,
        "embedding_ms": round(embedding_ms, 3),
        "compared_at": middle,
        "recipes": summarise(cases, scores, ks, middle),
        "abstention": summarise_abstention(cases, scores, doubtful),
        "alpha": alpha_of(scores),
        "notes": notes(view),
    }
    return Evaluation(document, scores, doubtful)


def middle_of(ks: Sequence[int], wanted: int = 5) -> int:
    """The depth that recipes are compared at: the usual one where it is measured, else the first."""
    return wanted if wanted in ks else ks[0]


# Long conversations and dated articles as corpora with questions: what an agent must find again in its memory. Each
# conversation is a corpus of its own, since a question is asked of one; an article collection is one corpus.
HALVES = ("fitted", "held out")


@dataclass(frozen=True)
class ConversationCorpus:
    """One corpus with the questions that are asked of it, as files; `depth` is where its rankings are compared."""

    name: str
    corpus: Path
    questions: Path
    depth: int = 5


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
    splits = np.array([row.get("split", "") for told, _ in parts for row in read_lines(told.questions) if row["gold"]])
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
    questions = [
        {name: row.get(name, []) for name in ("id", "question", "gold", "answers")}
        | {"type": time_form(row["question"]), "split": split_of(row["doc"])}
        for row in read_lines(folder / "questions.jsonl.gz")
    ]
    return _write(into, folder.name, passages, questions)


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


def evaluate_citations(
    bench: Workbench,
    files: ArxivFiles,
    *,
    rungs: Sequence[Rung],
    ks: Sequence[int] = (2, 5, 10),
    sample: int = 500,
    seed: int = 1,
    ask: str = "sentence",
) -> Evaluation:
    """Draw sentences, withhold what they cite, build, ask, sum up.

    The tested citations are left out of the file before it is read, so the graph is what a build from the others gives:
    entities, weights, topics and bridges included. A home that was built with all of them is brought to that.
    `ask` is the question: the `sentence` alone, or with the title of the `paper` it stands in, for every ranker alike.
    Recipes are asked from the citing paper; baselines run without it and, as `+source`, with its title and abstract.
    """
    titles = read_papers(files.papers)
    cases = citation_cases(files.contexts, titles, sample, seed, with_title=ask == "paper")
    abstracts = read_papers(files.papers, "abstract")
    cases = [replace(case, beside=f"{case.beside} {abstracts[case.near[0]]}") for case in cases]
    withheld = test_citations(cases)
    remaining = bench.build_context.home / "cache" / "citations-remaining.jsonl"
    out = write_remaining(files.citations, withheld, remaining)
    built = build(bench, lambda ingest: ingest.arxiv(files.papers, remaining, files.code_links))
    require_withheld(bench.build_context.store, withheld)
    sha256 = digest([files.papers, files.citations, files.contexts, files.code_links])
    sizes = {"passages": len(titles), "questions": len(cases), "sha256": sha256}
    data = {**sizes, "sample": sample, "seed": seed, "withheld": out, "ask": ask}
    found = measure(bench, cases, rungs, ks, middle_of(ks, 10))
    return Evaluation({"dataset": data, "build": built, **found.document}, found.scores)


def require_withheld(store: RowStore, withheld: Collection[Citation]) -> None:
    """Refuse a store in which a document still states one of these citations."""
    cited_by: dict[str, set[str]] = {}
    for source, target in withheld:
        cited_by.setdefault(source, set()).add(target)
    for row in scan_rows(store, "documents", columns=["origin", "facts"]):
        hidden = cited_by.get(row["origin"])
        if hidden is None:
            continue
        for link in read_facts(row["facts"]).get("links", ()):
            if link["relation"] == RelationType.CITES and link["target"] in hidden:
                raise BadCases(
                    f"paper {row['origin']} still cites {link['target']}, which is asked for; build in a fresh home"
                )
