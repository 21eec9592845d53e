"""Fit the rule of abstention and write `models/fitted/abstain.json`.

    python benchmarks/fit_abstain.py FILE=HOME=KIND [FILE=HOME=KIND ...] [--weight 2] [--out FILE]

FILE holds rows of `question` or of `context` (sentences that cite), HOME is what `hades eval ...
--home` kept, KIND a word for the kind of corpus. Questions that are asked of their own corpus
should be answered; asked of a corpus of another kind they should not. 200 questions of each file
are taken. `--weight` is what a wrong abstention costs against a wrong answer.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hades.evaluation.cases import read_lines
from hades.evaluation.rankers import MOMENT, PLAN
from hades.providers.tokens import MiniLmTokenizer
from hades.retrieval.core.types import Question
from hades.retrieval.pipeline import Tools, retrieve
from hades.retrieval.ranking.select import weigh_support
from hades.settings.load import load_settings
from hades.snapshot.open import open_snapshot
from hades.wiring import open_embedder

Floats = NDArray[np.float64]
SIGNALS = ("similarity", "held", "together")


def main() -> None:
    """Ask every corpus every set of questions, fit, report, write."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("sets", nargs="+", metavar="FILE=HOME=KIND")
    options.add_argument("--weight", type=float, default=2.0)
    options.add_argument("--out", type=Path, default=ROOT / "models" / "fitted" / "abstain.json")
    asked = options.parse_args()
    sets = {
        str(place): (Path(file), Path(home), kind)
        for place, (file, home, kind) in enumerate(map(parts, asked.sets))
    }
    questions = {name: taken(file) for name, (file, _, _) in sets.items()}
    seen = {
        (of, at): signals(home, questions[of])
        for of, (_, _, own) in sets.items()
        for at, (_, home, other) in sets.items()
        if of == at or own != other
    }
    rules = {
        "with_vectors": fit(seen, asked.weight, 0),
        "without_vectors": fit(seen, asked.weight, 1),
    }
    metric = {
        f"{label(sets[of])} asked of {label(sets[at])}": round(
            float(np.mean(table @ vector(rules["with_vectors"]) < 0)), 4
        )
        for (of, at), table in seen.items()
    }
    files = {label(one): hashlib.sha256(one[0].read_bytes()).hexdigest() for one in sets.values()}
    command = "python benchmarks/fit_abstain.py " + " ".join(
        f"{one[0].parent.name}/{one[0].name}=HOME={one[2]}" for one in sets.values()
    )
    body = {
        "version": 1,
        "data_sha256": files,
        "metric": {"abstained": metric},
        "command": command,
        **rules,
    }
    asked.out.write_text(json.dumps(body, indent=1) + "\n", "utf-8")
    print(json.dumps(metric, indent=1))


def parts(given: str) -> tuple[str, str, str]:
    """File, home and kind of an argument."""
    file, home, kind = given.split("=")
    return file, home, kind


def taken(file: Path, most: int = 200) -> list[str]:
    """At most this number of questions of a file, evenly spread."""
    rows = [str(row.get("question") or row["context"]) for row in read_lines(file)]
    return rows[:: max(1, len(rows) // most)][:most]


def label(one: tuple[Path, Path, str]) -> str:
    """The name of a set: the folder of its file."""
    return one[0].parent.name


def signals(home: Path, questions: list[str]) -> Floats:
    """(n, 4): best cosine, share of key words found, share in one passage, 1."""
    embedder = open_embedder(load_settings({"HADES_HOME": str(home)}, home))
    tools, view, found = Tools(MiniLmTokenizer(), embedder), open_snapshot(home), []
    for text in questions:
        answer = retrieve(view, text, tools, at=MOMENT, plan=PLAN, anyway=True)
        nodes = view.number([passage.id for passage in answer.passages])
        cosines = [
            passage.tiers["vector"] for passage in answer.passages if "vector" in passage.tiers
        ]
        best = max(cosines, default=0.0)
        support = weigh_support(
            Question(text, model=embedder.model.tag), view.passages(nodes), best
        )
        found.append([best, support.key_word_share, support.best_passage_share, 1.0])
    return np.array(found)


def fit(seen: dict[tuple[str, str], Floats], weight: float, first: int) -> dict[str, float]:
    """A logistic rule over the signals from `first` on; each pair of questions and corpus counts
    the same.
    """
    tables = list(seen.values())
    table = np.concatenate(tables)[:, first:]
    wanted = np.concatenate([np.full(len(own), float(of == at)) for (of, at), own in seen.items()])
    n_own = sum(of == at for of, at in seen)
    counts = np.concatenate(
        [
            np.full(
                len(own),
                weight / (n_own * len(own)) if of == at else 1.0 / ((len(seen) - n_own) * len(own)),
            )
            for (of, at), own in seen.items()
        ]
    )

    def loss(weights: Floats) -> float:
        score = table @ weights
        return float(
            (counts * (np.logaddexp(0.0, score) - wanted * score)).sum()
            + 1e-4 * weights[:-1] @ weights[:-1]
        )

    solved = minimize(loss, np.zeros(table.shape[1])).x
    return dict(
        zip(
            (*SIGNALS, "bias"),
            np.round(np.concatenate([np.zeros(first), solved]), 2).tolist(),
            strict=True,
        )
    )


def vector(rule: dict[str, float]) -> Floats:
    """The weights of a rule as an array."""
    return np.array(list(rule.values()))


if __name__ == "__main__":
    main()
