"""From a citation sentence to the paper it cites, in a graph that was built without the citations asked for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import replace

from hades.errors import HadesError
from hades.evaluation.arxiv import (
    ArxivFiles,
    Citation,
    citation_cases,
    read_abstracts,
    read_titles,
    test_citations,
    write_remaining,
)
from hades.evaluation.build import Workbench, build
from hades.evaluation.cases import digest
from hades.evaluation.ladder import Rung
from hades.evaluation.multihop import Evaluation, measure, middle_of
from hades.ingest.stated_edges import read_facts
from hades.ports.store import RowStore
from hades.snapshot.open import open_snapshot
from schemas.graph_types import RelationType


class NotWithheld(HadesError):
    """A graph that knows an answer it is asked for."""


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
    titles = read_titles(files.papers)
    cases = citation_cases(files.contexts, titles, sample, seed, with_title=ask == "paper")
    abstracts = read_abstracts(files.papers)
    cases = [replace(case, beside=f"{case.beside} {abstracts[case.near[0]]}") for case in cases]
    withheld = test_citations(cases)
    remaining = bench.build_context.home / "cache" / "citations-remaining.jsonl"
    out = write_remaining(files.citations, withheld, remaining)
    built = build(bench, lambda ingest: ingest.arxiv(files.papers, remaining, files.code_links))
    require_withheld(bench.build_context.store, withheld)
    sha256 = digest([files.papers, files.citations, files.contexts, files.code_links])
    sizes = {"passages": len(titles), "questions": len(cases), "sha256": sha256}
    data = {**sizes, "sample": sample, "seed": seed, "withheld": out, "ask": ask}
    with closing(open_snapshot(bench.build_context.home)) as view:
        found = measure(bench, view, cases, rungs, ks, middle_of(ks, 10))
    return Evaluation({"dataset": data, "build": built, **found.document}, found.scores)


def require_withheld(store: RowStore, withheld: Collection[Citation]) -> None:
    """Refuse a store in which a document still states one of these citations."""
    cited_by: dict[str, set[str]] = {}
    for source, target in withheld:
        cited_by.setdefault(source, set()).add(target)
    for batch in store.scan("documents", columns=["origin", "facts"]):
        for row in batch.to_pylist():
            hidden = cited_by.get(row["origin"])
            if hidden is None:
                continue
            for link in read_facts(row["facts"]).get("links", ()):
                if link["relation"] == RelationType.CITES and link["target"] in hidden:
                    raise NotWithheld(
                        f"paper {row['origin']} still cites {link['target']}, which is asked for; build in a fresh home"
                    )
