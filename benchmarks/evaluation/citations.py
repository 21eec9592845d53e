"""Citation sentences, asked for the papers they cite."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from benchmarks.evaluation.arxiv import (
    ArxivFiles,
    Citation,
    citation_cases,
    read_papers,
    test_citations,
    write_remaining,
)
from benchmarks.evaluation.measure import Evaluation, measure, middle_of
from benchmarks.evaluation.rankers import Rung
from benchmarks.evaluation.workbench import Workbench, build
from hades.evaluation.cases import BadCases, digest
from hades.ingest.stated_edges import read_facts
from hades.ports.store import RowStore, scan_rows
from schemas.nodes import RelationType


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
