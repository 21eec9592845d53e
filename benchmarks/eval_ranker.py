"""A fitted ranker against weights by hand, on published graphs with labelled questions that it was not fitted to.

    python benchmarks/eval_ranker.py MODEL NAME=HOME [NAME=HOME ...] [--json FILE]

MODEL is a ranker file (HADES_HOME/ranker/*.npz), NAME a folder of HADES_DATA with questions.jsonl.gz, HOME a published
home of its corpus. Nothing is written into the homes. Intervals are bootstrapped over questions within each set, every
set counting the same; p is by flipped signs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hades.build_state import read_model
from hades.evaluation.cases import read_cases
from hades.evaluation.metrics import Scores, run
from hades.evaluation.rankers import Bench, CachingEmbedder, Rung, no_ranker
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.pipeline import Tools
from hades.settings.load import load_settings
from hades.snapshot.open import open_snapshot
from hades.snapshot.write_graph import with_ranker
from hades.wiring import open_embedder
from models.ranker.infer import difference

RECIPES = ("hirag_pathrag", "hipporag")
DEPTHS = (2, 5, 10)


def main() -> None:
    """Ask, compare, print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("model", type=Path)
    options.add_argument("sets", nargs="+", metavar="NAME=HOME")
    options.add_argument("--json", type=Path)
    asked = options.parse_args()
    data = Path(os.environ.get("HADES_DATA", ROOT.parent / "shared" / "data"))
    pairs = [one.partition("=") for one in asked.sets]
    found = {name: measured(asked.model, data / name / "questions.jsonl.gz", Path(home)) for name, _, home in pairs}
    body: dict[str, Any] = {
        "model": asked.model.stem,
        "recipes": {recipe: figures(found, recipe) for recipe in RECIPES},
    }
    for recipe, told in body["recipes"].items():
        for name, row in told["sets"].items():
            print(f"{recipe:14} {name:14} " + "  ".join(f"{key} {row[key][0]:.4f} -> {row[key][1]:.4f}" for key in row))
        for measure in ("mrr", "recall@5"):
            one = told[measure]
            print(
                f"{recipe:14} {measure:14} {one['mean']:+.4f} [{one['low']:+.4f}, {one['high']:+.4f}] p {one['p']:.4f}"
            )
    if asked.json:
        asked.json.write_text(json.dumps(body, indent=1), "utf-8")


def measured(model: Path, questions: Path, home: Path) -> dict[str, Scores]:
    """Every recipe over every question, as learned and by hand."""
    cases = read_cases(questions)
    settings = load_settings({"HADES_HOME": str(home)}, home)
    embedder = CachingEmbedder(open_embedder(settings))
    embedder.learn(case.question for case in cases)
    with closing(open_snapshot(home)) as view:
        bench = Bench(with_ranker(view, read_model(model)), Tools(MiniLmTokenizer(), embedder))
        rungs = [Rung(recipe, recipe, "") for recipe in RECIPES]
        rungs += [Rung(f"{recipe}/no-ranker", recipe, "", no_ranker) for recipe in RECIPES]
        return run(cases, {rung.name: rung.ranker(bench) for rung in rungs}, DEPTHS)


def figures(found: dict[str, dict[str, Scores]], recipe: str) -> dict[str, Any]:
    """By hand and learned by set, and the differences over all sets."""
    names = [name for name, scores in found.items() for _ in scores[recipe].mrr]
    columns = {
        key: [
            np.concatenate([_column(scores[rung], key) for scores in found.values()])
            for rung in (f"{recipe}/no-ranker", recipe)
        ]
        for key in ("mrr", *(f"recall@{depth}" for depth in DEPTHS), "ms")
    }
    sets = np.array(names)
    told: dict[str, Any] = {
        "sets": {
            name: {key: [round(float(side[sets == name].mean()), 4) for side in pair] for key, pair in columns.items()}
            for name in found
        }
    }
    for key in ("mrr", "recall@5"):
        told[key] = asdict(difference(columns[key][1], columns[key][0], names))
    return told


def _column(scores: Scores, key: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    if key == "mrr":
        return scores.mrr
    if key == "ms":
        return np.array([ranking.ms for ranking in scores.rankings])
    return scores.recall[int(key.partition("@")[2])]


if __name__ == "__main__":
    main()
