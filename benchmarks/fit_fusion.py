"""Fit the ranking of the default recipe and write `models/fitted/fusion.json`.

    python benchmarks/fit_fusion.py [NAME=HOME ...] [--told FOLDER=HOME[=N] ...] [--out FILE]

NAME is a folder of HADES_DATA with questions and gold, HOME what `hades eval multihop --home` kept.
FOLDER is one that `hades eval memory` takes; only the half of its conversations and articles that
`split_of` calls fitted is used, the other half is reported. Without `--told` the coefficients for
corpora that state an order stay those of FILE, and without NAME=HOME those for the others. With N,
one in N questions of that folder is taken. The fit is a softmax over lists, each set counting the
same. For the named sets each gold passage competes with those that are not gold; for the others the
gold passages share the softmax. Figures of the named sets are cross-validated over four parts.
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

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from linear_fit import fit_gold_apart, fit_listwise

from benchmarks.evaluation.conversations import HALVES, prepare
from hades.budget import Caps, Turn
from hades.evaluation.cases import read_lines
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import AUTO, recipe_named
from hades.retrieval.pipeline import Tools, embedded
from hades.retrieval.ranking.default_ranking import (
    Connections,
    first_columns,
    pick_candidates,
    second_columns,
)
from hades.retrieval.search.default_search import Evidence, search_evidence
from hades.settings.load import load_settings
from hades.snapshot.open import open_snapshot
from hades.wiring import open_embedder
from schemas.plan import Plan, Profile

Floats = NDArray[np.float64]
CAPS = Caps(docs_max=4_000, work_max=100_000_000, latency_ms=600_000)
PLAN = Plan(profile=Profile.EVALUATION)
PARTS = 4
HEADS, KINDS = (
    ("look", "rank", "last"),
    ("plain", "told"),
)  # lines of the file, and what each has coefficients for
FITTED = HALVES[0]
FITS = {
    "plain": (fit_gold_apart, 0.03),
    "told": (fit_listwise, 0.01),
}  # how each kind is fitted, and the penalty


@dataclass(frozen=True)
class Case:
    """One question: its evidence, the first columns, how passages lead to each other, and which are
    gold.
    """

    evidence: Evidence
    columns: dict[str, Floats]
    connections: Connections
    documents: list[str]
    gold: frozenset[str]
    split: str

    @property
    def wanted(self) -> Floats:
        """1 for gold passages."""
        return np.array([float(document in self.gold) for document in self.documents])

    def alone(self) -> Floats:
        """(n, columns) what the first look sees."""
        return np.column_stack(list(self.columns.values()))

    def beside(self, worth: Floats) -> Floats:
        """(n, second and first columns) what a later look sees, given the worth of the look
        before.
        """
        beside = second_columns(worth, self.connections)
        return np.column_stack([*beside.values(), *self.columns.values()])


Fit = tuple[Floats, ...]  # coefficients of each look


def main() -> None:
    """Gather, fit, report, write."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("sets", nargs="*", metavar="NAME=HOME")
    options.add_argument("--told", nargs="*", default=[], metavar="FOLDER=HOME[=N]")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--out", type=Path, default=ROOT / "models" / "fitted" / "fusion.json")
    asked = options.parse_args()
    data = Path(os.environ.get("HADES_DATA", ROOT.parent / "shared" / "data"))
    named = {
        name: (data / name, Path(home))
        for name, _, home in (one.partition("=") for one in asked.sets)
    }
    told = {path.name: (path, home, every) for path, home, every in map(told_set, asked.told)}
    plain = {
        name: gather(plain_jobs(folder, home), asked.processes)
        for name, (folder, home) in named.items()
    }
    spoken = {name: gather(told_jobs(*one), asked.processes) for name, one in told.items()}
    folders = [folder for folder, _ in named.values()] + [folder for folder, _, _ in told.values()]
    hashes = {folder.name: digest(folder) for folder in folders}
    kept = {} if plain and told else json.loads(asked.out.read_text("utf-8"))
    body = build_model(plain, spoken, hashes, kept)
    options_told = [
        f"{name}=HOME" + (f"={every}" if every > 1 else "") for name, (_, _, every) in told.items()
    ]
    program = "python benchmarks/fit_fusion.py"
    if plain:
        body["command"] = " ".join([program, *(f"{name}=HOME" for name in named)])
    if told:
        body["told_command"] = " ".join([program, "--told", *options_told])
    asked.out.write_text(json.dumps(body, indent=1) + "\n", "utf-8")
    print(json.dumps(body["metric"], indent=1))


def told_set(given: str) -> tuple[Path, Path, int]:
    """Folder, home and one in how many questions of an argument."""
    folder, home, every = (*given.split("="), "1")[:3]
    return Path(folder), Path(home), int(every)


def build_model(
    plain: dict[str, list[Case]],
    spoken: dict[str, list[Case]],
    hashes: dict[str, str],
    kept: dict[str, Any],
) -> dict[str, Any]:
    """The fitted file; what was not fitted now is that of the file `kept`."""
    weights, metric = {}, {}
    if plain:
        weights["plain"] = fit(plain, "plain")
        metric |= cross_validate(plain)
    if spoken:
        halves = {name: [one for one in own if one.split == FITTED] for name, own in spoken.items()}
        weights["told"] = fit(halves, "told")
        for name, own in spoken.items():
            metric[name] = recall([one for one in own if one.split != FITTED], weights["told"])
    example = next(one for own in (*plain.values(), *spoken.values()) for one in own)
    return {
        "version": 2,
        "data_sha256": kept.get("data_sha256", {}) | hashes,
        "metric": kept.get("metric", {}) | metric,
        "command": kept.get("command", ""),
        "told_command": kept.get("told_command", ""),
        "told": list(spoken) or kept["told"],
        "heads": heads(example, weights, kept.get("heads", {})),
    }


def plain_jobs(folder: Path, home: Path) -> Iterator[tuple[Path, list[dict[str, Any]]]]:
    """The questions of a set with the home that answers them, a slice at a time."""
    yield from slices(home, list(read_lines(folder / "questions.jsonl.gz")))


def told_jobs(
    folder: Path, home: Path, every: int = 1
) -> Iterator[tuple[Path, list[dict[str, Any]]]]:
    """The same for conversations and dated articles, one in `every` questions."""
    with tempfile.TemporaryDirectory() as scratch:
        for told in prepare(folder, Path(scratch)):
            yield from slices(home / told.name, list(read_lines(told.questions))[::every])


def slices(
    home: Path, rows: list[dict[str, Any]], size: int = 32
) -> Iterator[tuple[Path, list[dict[str, Any]]]]:
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
        parts = embedded(
            metered.turn, metered.info, row["question"], tools, recipe_named(AUTO), PLAN
        )
        evidence = search_evidence(metered, parts, PLAN.reranker.m, pick_candidates)
        if evidence.nodes:
            columns, connections = first_columns(evidence)
            documents = [one.document for one in evidence.passages]
            gold = frozenset(map(str, row["gold"]))
            found.append(
                Case(evidence, columns, connections, documents, gold, str(row.get("split", "")))
            )
    return found


def fit(sets: dict[str, list[Case]], kind: str) -> Fit:
    """Coefficients of the three looks, each fitted on what the one before it found."""
    solve, penalty = FITS[kind]
    cases, counts = [], []
    for own in sets.values():
        usable = [one for one in own if 0 < one.wanted.sum() < len(one.documents)]
        cases += usable
        counts += [1.0 / len(usable)] * len(usable)
    wanted = [one.wanted for one in cases]
    tables = [one.alone() for one in cases]
    fitted = [solve(tables, wanted, counts, penalty)]
    for _ in HEADS[1:]:
        tables = [
            case.beside(table @ fitted[-1]) for case, table in zip(cases, tables, strict=True)
        ]
        fitted.append(solve(tables, wanted, counts, penalty))
    return tuple(fitted)


def cross_validate(sets: dict[str, list[Case]]) -> dict[str, Any]:
    """Recall of each part by what was fitted on the others."""
    scores: dict[str, list[dict[str, float]]] = {name: [] for name in sets}
    for part in range(PARTS):
        rest = {
            name: [one for place, one in enumerate(own) if place % PARTS != part]
            for name, own in sets.items()
        }
        weights = fit(rest, "plain")
        for name, own in sets.items():
            scores[name].append(recall(own[part::PARTS], weights))
    return {
        name: {
            figure: round(float(np.mean([one[figure] for one in parts])), 1) for figure in parts[0]
        }
        for name, parts in scores.items()
    }


def recall(cases: Sequence[Case], weights: Fit) -> dict[str, float]:
    """Mean recall of gold documents in the first 5 and 10, and the share with all in the first 5,
    in percent.
    """
    found: list[list[float]] = []
    for case in cases:
        worth = case.alone() @ weights[0]
        for line in weights[1:]:
            worth = case.beside(worth) @ line
        order = np.argsort(-worth, kind="stable")
        documents = list(dict.fromkeys(case.documents[row] for row in order.tolist()))
        shares = [len(case.gold & set(documents[:k])) / max(1, len(case.gold)) for k in (5, 10)]
        found.append([*shares, float(shares[0] == 1.0)])
    five, ten, whole = (100 * np.mean(found, axis=0)).round(1).tolist()
    return {"recall@5": five, "recall@10": ten, "all_gold@5": whole}


def heads(example: Case, weights: dict[str, Fit], kept: dict[str, Any]) -> dict[str, Any]:
    """The lines as the file holds them. Coefficients that were not fitted now are those of the
    earlier file.

    A column that the earlier file lacks counts nothing; a line that it lacks hands on the worth of
    the line before.
    """
    worth = example.alone() @ next(iter(weights.values()))[0]
    beside = list(second_columns(worth, example.connections))
    found = {}
    for place, name in enumerate(HEADS):
        columns = [*(beside if place else ()), *example.columns]
        found[name] = {"columns": columns} | {
            kind: np.round(weights[kind][place], 4).tolist()
            if kind in weights
            else carry(kind, columns, kept.get(name))
            for kind in KINDS
        }
    return found


def carry(kind: str, columns: Sequence[str], earlier: dict[str, Any] | None) -> list[float]:
    """The coefficients of an earlier line for these columns."""
    earlier = earlier or {"columns": ["beside_first"], kind: [1.0]}
    known = dict(zip(earlier["columns"], earlier[kind], strict=True))
    return [known.get(column, 0.0) for column in columns]


def digest(folder: Path) -> str:
    """sha256 of the files of a folder, in the order of their names."""
    found = hashlib.sha256()
    for path in sorted(folder.glob("*.jsonl.gz")):
        found.update(path.read_bytes())
    return found.hexdigest()


if __name__ == "__main__":
    main()
