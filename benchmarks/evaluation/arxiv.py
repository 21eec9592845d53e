"""Papers, citations and repositories as questions with gold."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.evaluation.cases import Case
from hades.evaluation.cases import BadCases, read_lines

Citation = tuple[str, str]  # citing, cited


@dataclass(frozen=True)
class ArxivFiles:
    """Papers, who cites whom, the sentences of citations, and the repositories that papers name."""

    papers: Path
    citations: Path
    contexts: Path
    code_links: Path


def read_papers(papers: Path, part: str = "title") -> dict[str, str]:
    """Title or abstract by id."""
    return {
        str(row["id"]): " ".join(str(row.get(part) or "").split()) for row in read_lines(papers)
    }


def citation_cases(
    contexts: Path, papers: Mapping[str, str], sample: int, seed: int, *, with_title: bool = False
) -> list[Case]:
    """Sentences with what they cite; a sentence that cites several papers wants all of them.

    Each is asked from the paper that it stands in, which no ranking may answer with. `papers` are
    titles by id. `with_title` puts the title of the citing paper before its sentence.
    """
    cited: defaultdict[Citation, set[str]] = defaultdict(set)
    for row in read_lines(contexts):
        source, target = str(row["src"]), str(row["dst"])
        sentence = " ".join(str(row["context"]).split())
        if source in papers and target in papers and source != target and sentence:
            cited[source, sentence].add(target)
    drawn = _draw(sorted(cited), sample, seed)
    if not drawn:
        raise BadCases(f"{contexts} holds no sentence between two papers of the corpus")
    return [
        Case(
            f"{source}:{place}",
            f"{papers[source]}: {sentence}" if with_title else sentence,
            frozenset(cited[source, sentence]),
            excluded=frozenset({source}),
            near=(source,),
            context=papers[source],
        )
        for place, (source, sentence) in enumerate(drawn)
    ]


def test_citations(cases: Collection[Case]) -> set[Citation]:
    """The citations that the cases ask for."""
    citations: set[Citation] = set()
    for case in cases:
        citations.update(product(case.excluded, case.gold))
    return citations


def write_remaining(citations: Path, withheld: Collection[Citation], path: Path) -> int:
    """The citations without those withheld, as a file of the same form; how many rows were left
    out.
    """
    out = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for row in read_lines(citations):
            if (str(row["src"]), str(row["dst"])) in withheld:
                out += 1
            else:
                file.write(json.dumps(row) + "\n")
    return out


def repository_pairs(
    code_links: Path, papers: Collection[str], sample: int | None, seed: int
) -> list[tuple[str, str]]:
    """Papers and the repositories they name, each pair once."""
    rows = read_lines(code_links)
    pairs = sorted({(str(row["id"]), str(row["repo"])) for row in rows if str(row["id"]) in papers})
    return pairs if sample is None else _draw(pairs, sample, seed)


def namers(code_links: Path) -> dict[str, frozenset[str]]:
    """The papers that name each repository."""
    papers_by_repo: defaultdict[str, set[str]] = defaultdict(set)
    for row in read_lines(code_links):
        papers_by_repo[str(row["repo"])].add(str(row["id"]))
    return {repo: frozenset(papers) for repo, papers in papers_by_repo.items()}


def _draw(rows: list[Any], sample: int, seed: int) -> list[Any]:
    return sorted(random.Random(seed).sample(rows, min(sample, len(rows))))
