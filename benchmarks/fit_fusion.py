"""Fit the ranking of the default recipe and write `models/fusion/default.json`.

    python benchmarks/fit_fusion.py NAME=HOME [NAME=HOME ...] --told FOLDER=HOME [FOLDER=HOME ...] --out FILE

NAME is a folder of HADES_DATA with questions and gold, HOME what `hades eval multihop --home` kept. FOLDER is one that
`hades eval memory` takes; only the half of its conversations and articles that `split_of` calls fitted is used, the
other half is reported. The fit is listwise: the share of the softmax over a question's passages that lies on its gold
passages, each set counting the same. Figures of the named sets are cross-validated over four parts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hades.evaluation.cases import read_lines  # noqa: E402
from hades.evaluation.conversations import HALVES, prepare  # noqa: E402
from hades.providers.tokens import MiniLmTokenizer  # noqa: E402
from hades.retrieval.ranking.evidence_features import first_columns, second_columns  # noqa: E402
from hades.retrieval.ranking.rank_evidence import pick_candidates  # noqa: E402
from hades.retrieval.turn.metered_view import MeteredView  # noqa: E402
from hades.retrieval.turn.pipeline import Tools, embedded  # noqa: E402
from hades.retrieval.turn.recipes import AUTO, recipe_named  # noqa: E402
from hades.retrieval.walks.evidence_search import Evidence, search_evidence  # noqa: E402
from hades.settings import load_settings  # noqa: E402
from hades.snapshot.open import open_snapshot  # noqa: E402
from hades.telemetry.turn import Caps, Turn  # noqa: E402
from hades.wiring import open_embedder  # noqa: E402
from schemas.plan import Plan, Profile  # noqa: E402

Floats = NDArray[np.float64]
CAPS = Caps(docs_max=4_000, work_max=100_000_000, latency_ms=600_000)
PLAN = Plan(profile=Profile.EVALUATION)
PARTS = 4
FITTED = HALVES[0]


@dataclass(frozen=True)
class Case:
    """One question: its evidence, the first columns, the links, and which passages are gold."""

    evidence: Evidence
    columns: dict[str, Floats]
    linked: Floats
    documents: list[str]
    gold: frozenset[str]
    split: str

    @property
    def wanted(self) -> Floats:
        """1 for gold passages."""
        return np.array([float(document in self.gold) for document in self.documents])

    def first(self) -> Floats:
        """(n, 2 * columns): for plain corpora, then for told ones; one of both is zero."""
        return self._both(np.column_stack(list(self.columns.values())))

    def second(self, look: Floats) -> Floats:
        """(n, 2 * (columns + first columns)) given the coefficients of the first look."""
        beside = second_columns(self.evidence, self.first() @ look, self.linked)
        return self._both(np.column_stack([*beside.values(), *self.columns.values()]))

    def _both(self, table: Floats) -> Floats:
        told = float(self.evidence.is_told)
        return np.column_stack([(1.0 - told) * table, told * table])


Fit = tuple[Floats, Floats]


def main() -> None:
    """Gather, fit, report, write."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("sets", nargs="+", metavar="NAME=HOME")
    options.add_argument("--told", nargs="*", default=[], metavar="FOLDER=HOME")
    options.add_argument("--penalty", type=float, default=0.003)
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--out", type=Path, default=ROOT / "models" / "fusion" / "default.json")
    asked = options.parse_args()
    data = Path(os.environ.get("HADES_DATA", ROOT.parent / "shared" / "data"))
    named = {name: (data / name, Path(home)) for name, _, home in (one.partition("=") for one in asked.sets)}
    told = {Path(one.partition("=")[0]).name: tuple(map(Path, one.split("=", 1))) for one in asked.told}
    sets = {name: gather(plain_jobs(folder, home), asked.processes) for name, (folder, home) in named.items()}
    sets |= {name: gather(told_jobs(*paths), asked.processes) for name, paths in told.items()}
    train = {name: [one for one in own if one.split in ("", FITTED)] for name, own in sets.items()}
    look, rank = fit(train, asked.penalty)
    metric = figures(sets, train, asked.penalty)
    example = next(one for own in sets.values() for one in own)
    beside = second_columns(example.evidence, example.first() @ look, example.linked)
    folders = [folder for folder, _ in named.values()] + [paths[0] for paths in told.values()]
    body = {
        "version": 1,
        "data_sha256": {folder.name: digest(folder) for folder in folders},
        "metric": metric,
        "command": "python benchmarks/fit_fusion.py "
        + " ".join([*(f"{name}=HOME" for name in named), "--told", *(f"{name}=HOME" for name in told)]),
        "heads": {
            "look": head(list(example.columns), look),
            "rank": head([*beside, *example.columns], rank),
        },
    }
    asked.out.write_text(json.dumps(body, indent=1) + "\n", "utf-8")
    print(json.dumps(metric, indent=1))


def plain_jobs(folder: Path, home: Path) -> Iterator[tuple[Path, list[dict[str, Any]]]]:
    """The questions of a set with the home that answers them, a slice at a time."""
    yield from slices(home, list(read_lines(folder / "questions.jsonl.gz")))


def told_jobs(folder: Path, home: Path) -> Iterator[tuple[Path, list[dict[str, Any]]]]:
    """The same for conversations and dated articles."""
    with tempfile.TemporaryDirectory() as scratch:
        for told in prepare(folder, Path(scratch)):
            yield from slices(home / told.name, list(read_lines(told.questions)))


def slices(home: Path, rows: list[dict[str, Any]], size: int = 32) -> Iterator[tuple[Path, list[dict[str, Any]]]]:
    """The rows in slices that processes take."""
    for start in range(0, len(rows), size):
        yield home, rows[start : start + size]


def gather(jobs: Iterator[tuple[Path, list[dict[str, Any]]]], processes: int) -> list[Case]:
    """Every question with gold among the passages that were read."""
    with Pool(processes) as pool:
        return [case for cases in pool.imap(gather_slice, list(jobs)) for case in cases]


def gather_slice(job: tuple[Path, list[dict[str, Any]]]) -> list[Case]:
    """The evidence of some questions of one home."""
    home, rows = job
    embedder = open_embedder(load_settings({"HADES_HOME": str(home)}, home))
    tools = Tools(MiniLmTokenizer(), embedder)
    view, found = open_snapshot(home), []
    for row in rows:
        metered = MeteredView(view, Turn(CAPS))
        parts = embedded(metered, row["question"], tools, recipe_named(AUTO), PLAN)
        evidence = search_evidence(metered, parts, PLAN.reranker.m, pick_candidates)
        if evidence.nodes:
            columns, linked = first_columns(evidence)
            documents = [one.document for one in evidence.passages]
            gold = frozenset(map(str, row["gold"]))
            found.append(Case(evidence, columns, linked, documents, gold, str(row.get("split", ""))))
    view.close()
    return found


def fit(sets: dict[str, list[Case]], penalty: float) -> Fit:
    """Coefficients of both looks."""
    rows, counts = [], []
    for own in sets.values():
        usable = [one for one in own if 0 < one.wanted.sum() < len(one.documents)]
        rows += usable
        counts += [1.0 / len(usable)] * len(usable)
    wanted = [one.wanted for one in rows]
    look = listwise([one.first() for one in rows], wanted, counts, penalty)
    rank = listwise([one.second(look) for one in rows], wanted, counts, penalty)
    return look, rank


def listwise(tables: list[Floats], wanted: list[Floats], counts: list[float], penalty: float) -> Floats:
    """Softmax regression over lists, on columns scaled to unit spread, with a penalty on the squares."""
    everything = np.concatenate(tables)
    spread = everything.std(axis=0) + 1e-9
    scaled, goal = everything / spread, np.concatenate([one / one.sum() for one in wanted])
    lengths = np.array([len(one) for one in wanted])
    starts, group = np.cumsum(lengths) - lengths, np.repeat(np.arange(len(lengths)), lengths)
    share = np.repeat(np.array(counts), lengths)

    def loss(weights: Floats) -> tuple[float, Floats]:
        score = scaled @ weights
        score = score - np.maximum.reduceat(score, starts)[group]
        total = np.add.reduceat(np.exp(score), starts)[group]
        value = -(share * goal * (score - np.log(total))).sum() + penalty * weights @ weights
        return float(value), scaled.T @ (share * (np.exp(score) / total - goal)) + 2.0 * penalty * weights

    solved: Floats = minimize(loss, np.zeros(scaled.shape[1]), jac=True, method="L-BFGS-B").x / spread
    return solved


def figures(sets: dict[str, list[Case]], train: dict[str, list[Case]], penalty: float) -> dict[str, Any]:
    """Recall of what was not fitted: other parts of the named sets, the other half of the told ones."""
    found: dict[str, list[float]] = {}
    whole = fit(train, penalty)
    for name, own in sets.items():
        if any(one.split for one in own):
            found[name] = recall([one for one in own if one.split != FITTED], whole)
    plain = [name for name, own in sets.items() if not any(one.split for one in own)]
    scores: dict[str, list[list[float]]] = {name: [] for name in plain}
    for part in range(PARTS):
        rest = {
            name: [one for place, one in enumerate(own) if name not in plain or place % PARTS != part]
            for name, own in train.items()
        }
        fold = fit(rest, penalty)
        for name in plain:
            scores[name].append(recall(sets[name][part::PARTS], fold))
    found |= {name: np.mean(values, axis=0).round(1).tolist() for name, values in scores.items()}
    return {name: {"recall@5": five, "recall@10": ten} for name, (five, ten) in found.items()}


def recall(cases: Sequence[Case], weights: Fit) -> list[float]:
    """Mean recall of gold documents in the first 5 and 10, in percent."""
    found: list[list[float]] = []
    for case in cases:
        order = np.argsort(-(case.second(weights[0]) @ weights[1]), kind="stable")
        documents = list(dict.fromkeys(case.documents[row] for row in order.tolist()))
        found.append([len(case.gold & set(documents[:k])) / max(1, len(case.gold)) for k in (5, 10)])
    return (100 * np.mean(found, axis=0)).round(1).tolist()


def head(columns: list[str], weights: Floats) -> dict[str, Any]:
    """A head as the file holds it."""
    plain, told = np.split(np.round(weights, 4), 2)
    return {"columns": columns, "plain": plain.tolist(), "told": told.tolist()}


def digest(folder: Path) -> str:
    """sha256 of the files of a folder, in the order of their names."""
    found = hashlib.sha256()
    for path in sorted(folder.glob("*.jsonl.gz")):
        found.update(path.read_bytes())
    return found.hexdigest()


if __name__ == "__main__":
    main()
