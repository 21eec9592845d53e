"""Fit the one ranking on a mixture of kinds of corpora, each left out in turn, and write
`models/fitted/ranking.json`.

    python -m benchmarks.fit_ranking KIND=QUESTIONS=HOME [...] [--most 150] [--out FILE]

QUESTIONS are rows of `question` and `gold`: ids of a corpus with the HOME that `hades eval multihop
--home` kept, objects of `file` and `heading` with the one of `hades eval folder --home`, or
citation sentences (`context` and `dst`). A folder is one that `hades eval memory` takes; of that
only the half that `split_of` calls fitted is used. At most `--most` questions of a set are asked.

Each gold passage competes with those that are not gold, each set counts the same. The figures are
recall at 1 and at 5: of words, of vectors and of their sum among the candidates, of what was fitted
without the set's kind, without the set, and on all.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.evaluation.conversations import HALVES, prepare
from benchmarks.linear_fit import fit_gold_apart
from hades.budget import Caps, Turn
from hades.evaluation.cases import read_lines
from hades.evaluation.folder import read_folder_cases, stands_in
from hades.ports.graph import Passage
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import AUTO, recipe_named
from hades.retrieval.features.leading import Connections, beside_columns, connect
from hades.retrieval.features.passages import passage_features
from hades.retrieval.features.table import FEATURES
from hades.retrieval.pipeline import Tools, embedded
from hades.retrieval.ranking.default_ranking import (
    context_shares,
    pick_candidates,
    ranking_columns,
)
from hades.retrieval.search.default_search import search_evidence
from hades.settings.load import load_settings
from hades.snapshot.open import open_snapshot
from hades.wiring import open_embedder
from models.rankings import Ranking
from schemas.plan import Plan, Profile

ROOT = Path(__file__).resolve().parents[1]
Floats = NDArray[np.float64]
Hits = Callable[[Sequence[Passage]], NDArray[np.bool_]]  # (golds, n) which hold which gold
CAPS = Caps(docs_max=4_000, work_max=100_000_000, latency_ms=600_000)
LOOKS, PENALTY = 3, 0.1
DEPTHS = (1, 5)
TRIES = 3  # of a question whose embedder was too busy
BY_SEARCH = ("words", "cosine", "tokens")
NAMES = tuple(feature.name for feature in FEATURES)
BESIDE = tuple(name for name in NAMES if name.startswith("beside_"))
SPEECH = ("asks", "of_self", "to_other")
TOLD = tuple(name for name in NAMES if name.startswith("told_"))
ALONE = NAMES[NAMES.index("walk") : NAMES.index(TOLD[0])]
# What each context weighs; names also weigh what is beside a passage, from the second look on.
CONTEXTS: dict[str, tuple[str, ...]] = {
    "plain": (*BY_SEARCH, "cosine_rank", "closely", "short", "release"),
    "foreign": BY_SEARCH,
    "told": (*BY_SEARCH, "closely", *TOLD, *SPEECH),
    "leads": (*BY_SEARCH, *ALONE),
}


@dataclass(frozen=True)
class Case:
    """A question: its contexts, the columns of its candidates, and which of them hold which gold.

    `documents` are those of the candidates where documents count, None where passages do.
    """

    contexts: Mapping[str, float]
    columns: Mapping[str, Floats]
    connections: Connections | None
    hits: NDArray[np.bool_]
    documents: list[str] | None

    @property
    def wanted(self) -> Floats:
        """1 for candidates that hold gold."""
        return np.asarray(self.hits.any(axis=0), np.float64)

    def at(self, worth: Floats | None) -> dict[str, Floats]:
        """The columns of a look, given the worth of the look before."""
        if worth is None or self.connections is None:
            return dict(self.columns)
        return {**self.columns, **beside_columns(worth, self.connections)}

    def table(self, look: int, worth: Floats | None) -> Floats:
        """(n, coefficients) what the coefficients of a look multiply."""
        columns = self.at(worth)
        nothing = np.zeros(self.hits.shape[1])
        return np.column_stack(
            [
                self.contexts.get(context, 0.0) * columns.get(name, nothing)
                for context, name in coefficients_of(look)
            ]
        )

    def worth(self, ranking: Ranking) -> Floats:
        """(n,) the worth of each candidate."""
        worth = None
        for look in range(len(ranking.looks)):
            worth = ranking.score(look, self.contexts, self.at(worth))
        assert worth is not None
        return worth

    def recall(self, worth: Floats) -> list[float]:
        """The share of golds among the first passages, or the first documents."""
        order = np.argsort(-worth, kind="stable").tolist()
        if self.documents is not None:
            first: dict[str, int] = {}
            for row in order:
                first.setdefault(self.documents[row], row)
            order = list(first.values())
        return [float(self.hits[:, order[:depth]].any(axis=1).mean()) for depth in DEPTHS]


Sets = dict[str, tuple[str, list[Case]]]  # kind and cases by name


def main() -> None:
    """Gather, fit, write."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("sets", nargs="+", metavar="KIND=QUESTIONS=HOME")
    options.add_argument("--most", type=int, default=150)
    options.add_argument("--out", type=Path, default=ROOT / "models" / "fitted" / "ranking.json")
    asked = options.parse_args()
    sets: Sets = {}
    hashes: dict[str, str] = {}
    for argument in asked.sets:
        kind, questions, home = argument.split("=")
        for name, path, own_home in parts_of(Path(questions), Path(home)):
            cases = gather(path, own_home, asked.most)
            if not cases:  # of the half that is held out
                continue
            sets[name] = (kind, cases)
            hashes[name] = hashlib.sha256(path.read_bytes()).hexdigest()
            print(f"{kind}: {name}, {len(cases)} questions", flush=True)
    ranking = fit([cases for _, cases in sets.values()])
    body = {
        "version": 3,
        "data_sha256": hashes,
        "metric": figures_of(sets, ranking),
        "command": "python -m benchmarks.fit_ranking KIND=QUESTIONS=HOME ...",
        "looks": ranking.looks,
    }
    asked.out.write_text(json.dumps(body, indent=1) + "\n", "utf-8")
    print(json.dumps(body["metric"], indent=1))


def parts_of(questions: Path, home: Path) -> Iterator[tuple[str, Path, Path]]:
    """The name, questions and home of each corpus; a folder of memory data has several."""
    if questions.is_file():
        folder = questions.parent.name
        yield home.name.removeprefix("home_") or folder, questions, home
        return
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for part in prepare(questions, scratch):
            yield part.name, part.questions, home / part.name


def gather(path: Path, home: Path, most: int) -> list[Case]:
    """At most `most` questions of a set, searched as the default does."""
    rows = list(filter(is_fitted, map(with_gold, read_lines(path))))
    is_folder = bool(rows) and isinstance(rows[0]["gold"][0], dict)
    hits = [documents_of(row["gold"]) for row in rows]
    if is_folder:
        folder_cases = [case for case in read_folder_cases(path) if case.gold]
        hits = [sections_of(case.gold) for case in folder_cases]
    plan = Plan() if is_folder else Plan(profile=Profile.EVALUATION)
    tools = Tools(MiniLmTokenizer(), open_embedder(load_settings({"HADES_HOME": str(home)}, home)))
    view = open_snapshot(home)
    places = np.unique(np.linspace(0, len(rows) - 1, min(most, len(rows))).round().astype(int))
    asked = (search(view, rows[place]["question"], tools, plan, hits[place]) for place in places)
    cases = list(filter(None, asked))
    return [replace(case, documents=None) for case in cases] if is_folder else cases


def with_gold(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its question and gold; a citation sentence has them by other names."""
    if "dst" not in row:
        return row
    return {"question": row["context"], "gold": [row["dst"]]}


def is_fitted(row: dict[str, Any]) -> bool:
    """Whether a row has gold and is not of the half that is held out."""
    return bool(row["gold"]) and row.get("split", "") != HALVES[1]


def sections_of(gold: Sequence[frozenset[tuple[str, str]]]) -> Hits:
    """Which passages stand in which gold section."""
    return lambda passages: np.array(
        [[stands_in(passage, places) for passage in passages] for places in gold]
    )


def documents_of(gold: Sequence[object]) -> Hits:
    """Which passages are of which gold document."""
    wanted = list(dict.fromkeys(map(str, gold)))
    return lambda passages: np.array(
        [[passage.document == name for passage in passages] for name in wanted]
    )


def search(view: Any, text: str, tools: Tools, plan: Plan, hits: Hits) -> Case | None:
    """The candidates of a question with their columns; None where nothing was found."""
    for _ in range(TRIES):
        metered = MeteredView(view, Turn(CAPS))
        parts = embedded(metered.turn, metered.info, text, tools, recipe_named(AUTO), plan)
        if parts[0].vector is not None:
            break
    evidence = search_evidence(metered, parts, plan.reranker.m, pick_candidates)
    if not evidence.nodes:
        return None
    contexts = context_shares(parts[0], evidence)
    columns = ranking_columns(parts[0], evidence)
    connections = None
    if contexts.get("leads"):
        alone, linked = passage_features(evidence.pool, evidence.want)
        columns |= alone
        connections = connect(evidence.pool, evidence.want, linked)
    documents = [passage.document for passage in evidence.passages]
    return Case(contexts, columns, connections, hits(evidence.passages), documents)


def coefficients_of(look: int) -> list[tuple[str, str]]:
    """The context and feature of each coefficient of a look."""
    rows = [(context, name) for context, names in CONTEXTS.items() for name in names]
    return rows + [("leads", name) for name in BESIDE if look]


def fit(sets: Sequence[Sequence[Case]]) -> Ranking:
    """The coefficients of each look, fitted on what the one before it gave."""
    usable = [
        [case for case in cases if 0 < case.wanted.sum() < len(case.wanted)] for cases in sets
    ]
    cases = [case for own in usable for case in own]
    counts = [1.0 / len(own) for own in usable for _ in own]
    wanted = [case.wanted for case in cases]
    looks: list[dict[str, dict[str, float]]] = []
    for look in range(LOOKS):
        worths = [case.worth(Ranking(tuple(looks))) if look else None for case in cases]
        tables = [case.table(look, worth) for case, worth in zip(cases, worths, strict=True)]
        line = fit_gold_apart(tables, wanted, counts, PENALTY)
        weights: dict[str, dict[str, float]] = {context: {} for context in CONTEXTS}
        for (context, name), weight in zip(coefficients_of(look), line.tolist(), strict=True):
            weights[context][name] = round(weight, 4)
        looks.append(weights)
    return Ranking(tuple(looks))


def figures_of(sets: Sets, ranking: Ranking) -> dict[str, Any]:
    """Recall of every set by what was fitted without its kind, without it, and on all."""
    without_kind = {
        kind: fit([cases for other, cases in sets.values() if other != kind])
        for kind in dict.fromkeys(kind for kind, _ in sets.values())
    }
    kinds = [kind for kind, _ in sets.values()]
    figures = {}
    for name, (kind, cases) in sets.items():
        without_set = without_kind[kind]
        if kinds.count(kind) > 1:
            without_set = fit([own for other, (_, own) in sets.items() if other != name])
        rankings: dict[str, Callable[[Case], Floats]] = {
            "words": lambda case: case.columns["words"],
            "vectors": lambda case: case.columns["cosine"],
            "both": lambda case: case.columns["words"] + case.columns["cosine"],
            "without its kind": lambda case, kind=kind: case.worth(without_kind[kind]),  # type: ignore[misc]
            "without it": lambda case, line=without_set: case.worth(line),  # type: ignore[misc]
            "on all": lambda case: case.worth(ranking),
        }
        rows: dict[str, Any] = {"kind": kind, "questions": len(cases)}
        for label, rank in rankings.items():
            recall = 100 * np.mean([case.recall(rank(case)) for case in cases], axis=0)
            rows[label] = recall.round(1).tolist()
        figures[name] = rows
    return figures


if __name__ == "__main__":
    main()
