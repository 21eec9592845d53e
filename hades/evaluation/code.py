"""Which file and function an issue is about, at the commit it was reported at; and which function a question wants.

Each case is asked at its own commit. Cases run in the order of their commits, so that each build reads only what
changed since the one before. The ranking is `search_code`, which `hades query` uses on a published workspace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hades.errors import HadesError
from hades.evaluation.build import peak_mb
from hades.evaluation.cases import digest
from hades.evaluation.code_baselines import CodeBaselines
from hades.evaluation.code_cases import CodeCase, find_repository, read_code_cases
from hades.evaluation.code_graph import CodeGraph
from hades.evaluation.code_metrics import CodeRanking, summarise_code
from hades.evaluation.code_repository import CodeRepository
from hades.ports.progress import Progress, silent
from hades.ports.text import Embedder, Tokenizer
from hades.retrieval.code.index import CodeIndex
from hades.retrieval.code.search import search_code

AUTO = "auto"
DEPTH = 50
OpenGraph = Callable[[str], AbstractContextManager[CodeGraph]]


@dataclass(frozen=True)
class CodeSteps:
    """What building and asking took, case by case."""

    seconds: list[float]
    parsed: list[int]
    embedded: list[int]


def evaluate_code(
    place: Path,
    cases_file: Path,
    tokenizer: Tokenizer,
    *,
    at: str | None = None,
    limit: int | None = None,
    recipes: Sequence[str] = (AUTO,),
    open_graph: OpenGraph | None = None,
    embedder: Embedder | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Ask every case at its own commit and sum up; without an embedder, dense and fusion are left out.

    Recipes beside the default one are asked of a graph that is built for each commit: `open_graph` opens an empty one.
    """
    others = [name for name in recipes if name != AUTO]
    if others and open_graph is None:
        raise HadesError(f"recipe {others[0]!r} is asked of a graph, and none can be built here; give --home")
    cases = read_code_cases(cases_file, at, limit)
    began = time.perf_counter()
    steps = CodeSteps([], [], [])
    asked: list[CodeCase] = []
    found: dict[str, list[CodeRanking]] = {}
    for repo in sorted({case.repo for case in cases}):
        repository = CodeRepository(find_repository(place, repo), tokenizer)
        baselines = CodeBaselines(embedder)
        own = [case for case in cases if case.repo == repo]
        with ExitStack() as stack:
            graph = stack.enter_context(open_graph(repo)) if others and open_graph is not None else None
            for case in sorted(own, key=lambda one: (repository.commit_time(one.commit), one.id)):
                checkout = repository.at(case.commit)
                rankings, embedded = _rank(checkout.index, case.question, baselines)
                if graph is not None:
                    rankings |= graph.rank(repository.git_dir, case.commit, case.question, others)
                for name, ranking in rankings.items():
                    found.setdefault(name, []).append(ranking)
                steps.seconds.append(checkout.seconds)
                steps.parsed.append(checkout.parsed)
                steps.embedded.append(embedded)
                asked.append(case)
                progress("cases", len(asked), len(cases))
    return {
        "dataset": {"cases": len(asked), "questions": len(asked), "sha256": digest([cases_file])},
        "build": {"seconds": round(time.perf_counter() - began, 2), "peak_mb": peak_mb(), **_summary(steps)},
        "recipes": {name: summarise_code(asked, rankings) for name, rankings in found.items()},
        "repositories": _by_repository(asked, found),
        "steps": [
            {"id": case.id, "seconds": seconds, "parsed": parsed, "embedded": embedded, "place": _place(case, ranking)}
            for case, seconds, parsed, embedded, ranking in zip(
                asked, steps.seconds, steps.parsed, steps.embedded, found[AUTO], strict=True
            )
        ],
    }


def rank_auto(index: CodeIndex, question: str) -> CodeRanking:
    """The default recipe on code."""
    began = time.perf_counter()
    hits = search_code(index, question, DEPTH)
    taken = (time.perf_counter() - began) * 1000
    files, symbols = (tuple(one.id for one in names) for names in (hits.files, hits.symbols))
    return CodeRanking(files, symbols, taken, abstained=not files)


def _rank(index: CodeIndex, question: str, baselines: CodeBaselines) -> tuple[dict[str, CodeRanking], int]:
    rankings, embedded = baselines.rank(index, question)
    return {**rankings, AUTO: rank_auto(index, question)}, embedded


def _summary(steps: CodeSteps) -> dict[str, Any]:
    return {
        "first_seconds": steps.seconds[0],
        "mean_seconds": round(sum(steps.seconds) / len(steps.seconds), 3),
        "parsed": sum(steps.parsed),
        "embedded": sum(steps.embedded),
    }


def _by_repository(cases: Sequence[CodeCase], found: Mapping[str, Sequence[CodeRanking]]) -> dict[str, Any]:
    """The default recipe, one repository at a time."""
    names = sorted({case.repo for case in cases})
    groups = {name: [place for place, case in enumerate(cases) if case.repo == name] for name in names}
    return {
        name: summarise_code([cases[place] for place in places], [found[AUTO][place] for place in places])
        for name, places in groups.items()
    }


def _place(case: CodeCase, ranking: CodeRanking) -> int | None:
    """Where the first gold file stands; None where it is not among the first files."""
    return next((place for place, name in enumerate(ranking.files, 1) if name in case.gold), None)
