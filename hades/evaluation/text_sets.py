"""Multi-hop, conversations, citations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain
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
from hades.evaluation.rankers import (
    Bench,
    CachingEmbedder,
    Rung,
    Workbench,
    baselines,
    build,
    notes,
)
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
    """Share of the questions of both with all evidence among the first 8, for every system in the
    file and for ours.

    Evidence is given there by title, so a passage counts by its title; ours are cut to 8 passages,
    as theirs were.
    """
    rows = {str(row["question"]): row for row in read_lines(path)}
    both = [
        (place, rows[case.question]) for place, case in enumerate(cases) if case.question in rows
    ]
    if not both:
        raise BadCases(
            f"{path} and the questions have no question in common; give the runs of the same "
            "questions"
        )
    systems = [
        name for name, value in both[0][1].items() if name != GOLD and isinstance(value, list)
    ]
    shown: dict[str, list[list[str]]] = {}
    for name in systems:
        shown[f"published: {name}"] = [row[name] for _, row in both]
    for name, system_scores in scores.items():
        rankings = system_scores.rankings
        shown[name] = [_titles_of(rankings[place].documents, titles) for place, _ in both]
    gold = [frozenset(row[GOLD]) for _, row in both]
    shares = {}
    for name, lists in shown.items():
        pairs = zip(lists, gold, strict=True)
        values = np.array([all_gold_at(ranked, evidence, FIRST) for ranked, evidence in pairs])
        ends = [rounded(end) for end in interval(values)]
        shares[name] = {"share": rounded(values.mean()), "ci95": ends}
    return {"questions": len(both), "k": FIRST, "all_evidence": shares}


def _titles_of(documents: Sequence[str], titles: Mapping[str, str]) -> list[str]:
    return [titles.get(document, "") for document in documents]


DEFAULT = "auto,auto/online,hipporag,hirag_pathrag,pathrag,nexus"


@dataclass(frozen=True)
class Evaluation:
    """The summary as scripts read it, and every question's figures for plots and tests."""

    document: dict[str, Any]
    scores: dict[str, Scores]
    unanswerable: dict[str, list[float]] = field(
        default_factory=dict
    )  # confidence in questions without an answer


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
    """Build, ask every rung and every baseline, sum up; how sure each rung is of what has no answer
    is measured too.
    """
    cases, unanswerable = read_cases(questions), read_unanswerable(questions)
    titles = {str(row["id"]): str(row.get("title", "")) for row in read_lines(corpus)}
    built = build(bench, lambda ingest: ingest.passages(corpus, triples))
    files = [path for path in (corpus, questions, triples) if path is not None]
    dataset = {
        "passages": len(titles),
        "questions": len(cases),
        "sha256": digest(files),
        "triples": triples is not None,
    }
    evaluation = measure(bench, cases, rungs, ks, middle_of(ks), unanswerable)
    document = {"dataset": dataset, "build": built, **evaluation.document}
    if published is not None:
        document["published"] = compare_published(published, titles, cases, evaluation.scores)
    return Evaluation(document, evaluation.scores, evaluation.unanswerable)


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
        cached_bench = Bench(view, replace(bench.tools, embedder=embedder))
        rankers = baselines(cached_bench)
        if context_texts := [case.context for case in cases if case.context]:
            embedder.embed(context_texts)
            rankers |= baselines(cached_bench, placed=True)
        ours = {rung.name: rung.ranker(cached_bench) for rung in rungs}
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


def middle_of(ks: Sequence[int], preferred: int = 5) -> int:
    """The depth that recipes are compared at: the usual one where it is measured, else the
    first.
    """
    return preferred if preferred in ks else ks[0]


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

    The tested citations are left out of the file before it is read, so the graph is what a build
    from the others gives: entities, weights, topics and bridges included. A home that was built
    with all of them is brought to that. `ask` is the question: the `sentence` alone, or with the
    title of the `paper` it stands in, for every ranker alike. Recipes are asked from the citing
    paper; baselines run without it and, as `+source`, with its title and abstract.
    """
    titles = read_papers(files.papers)
    cases = citation_cases(files.contexts, titles, sample, seed, with_title=ask == "paper")
    abstracts = read_papers(files.papers, "abstract")
    cases = [replace(case, context=f"{case.context} {abstracts[case.near[0]]}") for case in cases]
    withheld = test_citations(cases)
    remaining = bench.build_context.home / "cache" / "citations-remaining.jsonl"
    out = write_remaining(files.citations, withheld, remaining)
    built = build(bench, lambda ingest: ingest.arxiv(files.papers, remaining, files.code_links))
    require_withheld(bench.build_context.store, withheld)
    sha256 = digest([files.papers, files.citations, files.contexts, files.code_links])
    sizes = {"passages": len(titles), "questions": len(cases), "sha256": sha256}
    dataset = {**sizes, "sample": sample, "seed": seed, "withheld": out, "ask": ask}
    evaluation = measure(bench, cases, rungs, ks, middle_of(ks, 10))
    return Evaluation(
        {"dataset": dataset, "build": built, **evaluation.document}, evaluation.scores
    )


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
                    f"paper {row['origin']} still cites {link['target']}, which is asked for; "
                    "build in a fresh home"
                )
