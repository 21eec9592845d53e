"""Fit the coefficients of `hades.retrieval.features.passages` on one half and report the other.

    python benchmarks/fit_memory.py FOLDER=HOME [FOLDER=HOME ...] [--penalty 0.01] [--json FILE]

FOLDER is one that `hades eval memory` takes, HOME what its `--home` kept. Which half a conversation
or an article is in follows from its name (`split_of` of `benchmarks.evaluation.conversations`). The
fit is listwise: the share of the softmax over a question's passages that lies on its gold passages,
each set counting the same.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from linear_fit import fit_listwise

from benchmarks.evaluation.conversations import HALVES, prepare
from hades.budget import Caps, Turn
from hades.evaluation.cases import read_lines
from hades.ports.graph import Passage
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import Question
from hades.retrieval.core.words import fitted_file
from hades.retrieval.features.passages import Columns, weigh
from hades.retrieval.features.passages import dated_features as first_look
from hades.retrieval.features.passages import dated_pair_features as second_look
from hades.retrieval.search.memory_search import READ, ChannelDepths, search_channels
from hades.settings.load import load_settings
from hades.snapshot.open import open_snapshot
from hades.snapshot.view import GraphView
from hades.text.dates import Interval, time_asked
from hades.wiring import open_embedder
from models.ranker.infer import recall_at

Floats = NDArray[np.float64]
CAPS = Caps(docs_max=10_000, work_max=100_000_000, latency_ms=600_000)
DEPTHS = (5, 10)


@dataclass(frozen=True)
class Case:
    """One question: its candidates, all of them read, and what the first look saw of them."""

    text: str
    asked: Interval | None
    passages: list[Passage]
    first: Columns
    gold: frozenset[str]
    split: str

    @property
    def wanted(self) -> Floats:
        """1 for gold passages."""
        return np.array([float(one.document in self.gold) for one in self.passages])

    def best(self, weights: Mapping[str, float], most: int) -> NDArray[np.int64]:
        """The places of the best by the first look."""
        return np.argsort(-weigh(self.first, weights), kind="stable")[:most]

    def second(self, places: NDArray[np.int64]) -> Columns:
        """What the second look sees of these places."""
        seen = {name: column[places] for name, column in self.first.items()}
        return second_look(
            self.text, self.asked, [self.passages[place] for place in places.tolist()], seen
        )


def main() -> None:
    """Gather, fit, print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("sets", nargs="+", metavar="FOLDER=HOME")
    options.add_argument("--penalty", type=float, default=0.01)
    options.add_argument("--json", type=Path)
    asked = options.parse_args()
    sets = {
        Path(one.partition("=")[0]).name: cases(*map(Path, one.split("=", 1))) for one in asked.sets
    }
    body: dict[str, Any] = {}
    for half in HALVES:
        first, second = fitted(list(sets.values()), half, asked.penalty)
        body[half] = {"FIRST": first, "SECOND": second, "recall": shown(sets, first, second)}
    served = fitted_file("memory")
    body["as served"] = {"recall": shown(sets, served["first"], served["second"])}
    for fit, found in body.items():
        for name, halves in found["recall"].items():
            print(
                f"fit: {fit:12} {name:10} "
                + "   ".join(f"{half} {figures}" for half, figures in halves.items())
            )
    print(
        json.dumps(
            {half: {k: v for k, v in body[half].items() if k != "recall"} for half in HALVES},
            indent=1,
        )
    )
    if asked.json:
        asked.json.write_text(json.dumps(body, indent=1), "utf-8")


def cases(folder: Path, home: Path) -> list[Case]:
    """Every question of a set, its candidates gathered from the kept homes."""
    embedder = None
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        for told in prepare(folder, Path(scratch)):
            rows = list(read_lines(told.questions))
            if embedder is None:
                embedder = open_embedder(
                    load_settings({"HADES_HOME": str(home / told.name)}, home / told.name)
                )
            vectors = embedder.embed([row["question"] for row in rows])
            view = open_snapshot(home / told.name)
            found += [
                case(view, row, vector, embedder.model.tag)
                for row, vector in zip(rows, vectors, strict=True)
            ]
    return found


def case(view: GraphView, row: dict[str, object], vector: NDArray[np.float32], model: str) -> Case:
    """One question's candidates."""
    text = str(row["question"])
    asked = time_asked(text)
    metered = MeteredView(view, Turn(CAPS))
    candidates, heard = search_channels(
        metered, Question(text, vector, model), asked, ChannelDepths()
    )
    gold = frozenset(map(str, row["gold"])) if isinstance(row["gold"], list) else frozenset()
    return Case(text, asked, view.passages(candidates), first_look(heard), gold, str(row["split"]))


def fitted(
    sets: Sequence[Sequence[Case]], half: str, penalty: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Coefficients of both looks; the second sees what the first brings up."""
    rows = [
        (one, 1.0 / len(cases))
        for cases in sets
        for one in cases
        if one.split == half and one.wanted.sum()
    ]
    first = listwise([(one.first, one.wanted, weight) for one, weight in rows], penalty)
    seen = []
    for one, weight in rows:
        places = one.best(first, READ)
        if one.wanted[places].sum():
            seen.append((one.second(places), one.wanted[places], weight))
    return first, listwise(seen, penalty)


def listwise(rows: Sequence[tuple[Columns, Floats, float]], penalty: float) -> dict[str, float]:
    """Coefficients that put the softmax on what is wanted; columns are compared on their own
    scale.
    """
    names = list(rows[0][0])
    tables = [np.column_stack([columns[name] for name in names]) for columns, _, _ in rows]
    counts = np.array([weight for _, _, weight in rows])
    found = fit_listwise(
        tables, [wanted for _, wanted, _ in rows], counts / counts.sum(), penalty / 2
    )
    return dict(zip(names, np.round(found, 2).tolist(), strict=True))


def shown(
    sets: Mapping[str, Sequence[Case]], first: Mapping[str, float], second: Mapping[str, float]
) -> dict[str, dict[str, dict[str, float]]]:
    """Recall of each half of each set, and of the whole, in percent."""
    return {
        name: {half: _recalls(own, half, first, second) for half in (*HALVES, "")}
        for name, own in sets.items()
    }


def _recalls(
    own: Sequence[Case], half: str, first: Mapping[str, float], second: Mapping[str, float]
) -> dict[str, float]:
    found: dict[int, list[float]] = {k: [] for k in DEPTHS}
    for one in own:
        if half in ("", one.split):
            places = one.best(first, READ)
            order = places[np.argsort(-weigh(one.second(places), second), kind="stable")]
            documents = list(
                dict.fromkeys(one.passages[place].document for place in order.tolist())
            )
            for k in DEPTHS:
                found[k].append(recall_at(documents, one.gold, k))
    return {f"R@{k}": round(100 * float(np.mean(values)), 1) for k, values in found.items()}


if __name__ == "__main__":
    main()
