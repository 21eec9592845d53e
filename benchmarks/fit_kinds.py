"""Fit what the default ranking counts where no names lead, on a mixture of kinds of corpora, each
left out in turn.

    python benchmarks/fit_kinds.py KIND=QUESTIONS=HOME [...]

QUESTIONS are rows of `question` and `gold`: ids of a corpus with the HOME that `hades eval multihop
--home` kept, or objects of `file` and `heading` with the one that `hades eval folder --home` kept.
Prints, for each set, recall at 1, 5 and 10 of words, of vectors and of their sum, of what was
fitted without the set's kind, and of what was fitted on all; then the weights.
`hades/retrieval/ranking/default_ranking.py` has those that serve.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hades.budget import Caps, Turn
from hades.evaluation.cases import read_lines
from hades.evaluation.folder import read_folder_cases, stands_in
from hades.ports.graph import Passage
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import AUTO, recipe_named
from hades.retrieval.core.words import fusion_model
from hades.retrieval.pipeline import Tools, embedded
from hades.retrieval.ranking import default_ranking as ranking
from hades.retrieval.search.default_search import search_evidence
from hades.settings.load import load_settings
from hades.snapshot.open import open_snapshot
from hades.wiring import open_embedder
from schemas.plan import Plan, Profile

Floats = NDArray[np.float64]
Golds = Callable[
    [Sequence[Passage]], NDArray[np.bool_]
]  # (golds, n) which passages hold which gold
CAPS = Caps(docs_max=4_000, work_max=100_000_000, latency_ms=600_000)
PENALTY = 0.01
DEPTHS = (1, 5, 10)
PLAIN = list(ranking.PLAIN_WEIGHTS)
PRIOR = {
    "words": 0.6,
    "cosine": 0.4,
    "tokens": 0.9,
    "fused": 0.2,
    "release": -1.5,
    "where names lead": 0.8,
}
NAMES = [*PLAIN, "release", "where names lead"]


@dataclass(frozen=True)
class Case:
    """A question: what the weights multiply, which passages hold which gold, and the document of
    each passage.
    """

    table: Floats
    hits: NDArray[np.bool_]
    words: Floats
    cosine: Floats
    documents: list[str] | None  # None: passages count, not documents

    def recall(self, worth: Floats) -> list[float]:
        """The share of golds among the first passages, or the first documents."""
        order = np.argsort(-worth, kind="stable").tolist()
        if self.documents is not None:
            first: dict[str, int] = {}
            for row in order:
                first.setdefault(self.documents[row], row)
            order = list(first.values())
        return [float(self.hits[:, order[:depth]].any(axis=1).mean()) for depth in DEPTHS]


def main() -> None:
    """Gather, fit, print."""
    sets = {}
    for argument in sys.argv[1:]:
        kind, questions, home = argument.split("=")
        sets[f"{kind}: {Path(home).name}"] = (kind, gather(Path(questions), Path(home)))
    kinds = sorted({kind for kind, _ in sets.values()})
    fitted = {kind: fit([own for other, own in sets.values() if other != kind]) for kind in kinds}
    whole = fit([own for _, own in sets.values()])
    print(
        f"{'set':32} {'words':>17} {'vectors':>17} {'both':>17} {'kind left out':>17} "
        f"{'all kinds':>17}"
    )
    for name, (kind, own) in sets.items():
        rankings: list[Callable[[Case], Floats]] = [
            lambda one: one.words,
            lambda one: one.cosine,
            lambda one: one.words + one.cosine,
            lambda one, kind=kind: one.table @ fitted[kind],  # type: ignore[misc]
            lambda one: one.table @ whole,
        ]
        shown = [100 * np.mean([one.recall(rank(one)) for one in own], axis=0) for rank in rankings]
        print(f"{name:32} " + " ".join("/".join(f"{value:5.1f}" for value in one) for one in shown))
    print("\n".join(f"{name:28} {weight:6.2f}" for name, weight in zip(NAMES, whole, strict=True)))


def gather(questions: Path, home: Path) -> list[Case]:
    """Every question of a set, searched as the default does."""
    rows = [row for row in read_lines(questions) if row["gold"]]
    is_folder = isinstance(rows[0]["gold"][0], dict)
    golds = (
        [_sections(one.gold) for one in read_folder_cases(questions)]
        if is_folder
        else [_documents(row["gold"]) for row in rows]
    )
    plan = Plan() if is_folder else Plan(profile=Profile.EVALUATION)
    tools = Tools(MiniLmTokenizer(), open_embedder(load_settings({"HADES_HOME": str(home)}, home)))
    view, found = open_snapshot(home), []
    for row, gold in zip(rows, golds, strict=True):
        metered = MeteredView(view, Turn(CAPS))
        parts = embedded(
            metered.turn, metered.info, row["question"], tools, recipe_named(AUTO), plan
        )
        evidence = search_evidence(metered, parts, plan.reranker.m, ranking.pick_candidates)
        if not evidence.nodes:
            continue
        columns, connections = ranking.first_columns(evidence)
        fused = ranking.fuse_worth(fusion_model(), evidence, columns, connections)
        own = ranking.plain_columns(parts[0], evidence, columns, fused)
        leads = ranking.names_lead(evidence)
        table = [*((1.0 - leads) * own[name] for name in PLAIN), own["release"]]
        documents = None if is_folder else [one.document for one in evidence.passages]
        hits = gold(evidence.passages)
        found.append(
            Case(
                np.column_stack([*table, leads * fused]),
                hits,
                own["words"],
                own["cosine"],
                documents,
            )
        )
    return found


def _sections(gold: Sequence[frozenset[tuple[str, str]]]) -> Golds:
    return lambda passages: np.array(
        [[stands_in(one, places) for one in passages] for places in gold]
    )


def _documents(gold: Sequence[object]) -> Golds:
    wanted = list(dict.fromkeys(map(str, gold)))
    return lambda passages: np.array(
        [[one.document == name for one in passages] for name in wanted]
    )


def fit(sets: Sequence[Sequence[Case]]) -> Floats:
    """Softmax over lists, each set counting the same, each gold against what is none, near to the
    prior.

    Words and vectors cannot count against a passage.
    """
    lists = []
    for own in sets:
        usable = [
            (one, hit)
            for one in own
            for hit in one.hits
            if hit.any() and not one.hits.any(axis=0).all()
        ]
        lists += [
            (
                one.table[hit | ~one.hits.any(axis=0)],
                hit[hit | ~one.hits.any(axis=0)],
                1 / len(usable),
            )
            for one, hit in usable
        ]
    prior = np.array([PRIOR.get(name, 0.0) for name in NAMES])

    def loss(weights: Floats) -> tuple[float, Floats]:
        value, slope = 0.0, np.zeros(len(weights))
        for table, hit, count in lists:
            score = table @ weights
            odds = np.exp(score - score.max())
            share, gold = odds / odds.sum(), odds * hit / (odds * hit).sum()
            value -= count * float(np.log((odds * hit).sum() / odds.sum()))
            slope -= count * ((gold - share) @ table)
        pull = weights - prior
        return value / len(sets) + PENALTY * float(pull @ pull), slope / len(
            sets
        ) + 2.0 * PENALTY * pull

    bounds = [(0.0, None) if name in ("words", "cosine") else (None, None) for name in NAMES]
    solved: Floats = minimize(loss, prior, jac=True, method="L-BFGS-B", bounds=bounds).x
    return solved


if __name__ == "__main__":
    main()
