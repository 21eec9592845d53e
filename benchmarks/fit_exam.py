"""Fit what questions taken from passages teach in any corpus, and say what learning from an exam is worth.

    python benchmarks/fit_exam.py HOME=QUESTIONS... [--write]

Each home is published; its questions have gold, as of `hades eval folder` or `hades eval multihop`. Every home is
learned from its own exam with the bias of the others, and asked its gold questions. Then ten ways to order the same
candidates are scored by each exam and by the gold questions: the rank correlation says how far the exam can be
trusted. `--write` replaces `models/fitted/exam.json` by the bias of all."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from hades.build.exam.questions import ExamQuestion
from hades.build.exam.stage import build_exam, read_exam
from hades.build.ranker.questions import decide, quality
from hades.build.ranker.stage import RecordedChoice, record_choices
from hades.evaluation.cases import read_lines
from hades.evaluation.folder import read_folder_cases, stands_in
from hades.ports.graph import KINDS, Kind, Passage
from hades.settings.tree import Settings
from hades.snapshot.open import open_snapshot
from hades.snapshot.view import GraphView
from hades.wiring import open_hades
from models.arrays import Floats
from models.ranker.infer import COLUMNS as DEFAULT
from models.rankings import Choice, fit_line

FILE = Path(__file__).parents[1] / "models" / "fitted" / "exam.json"
NO_BIAS = dict.fromkeys(DEFAULT, 0.0)
RIDGE = 0.1  # of the bias: thousands of questions teach it
RIDGES = (3.0, 1.0, 0.3)
# Ways to order candidates: the share of the shipped ranking, and what is added of the columns.
SETTINGS: dict[str, tuple[float, dict[str, float]]] = {
    "shipped": (1.0, {}),
    "words": (0.0, {"words": 1.0}),
    "cosine": (0.0, {"cosine": 1.0}),
    "both": (0.0, {"words": 1.0, "cosine": 1.0}),
    "more words": (1.0, {"words": 0.5}),
    "fewer words": (1.0, {"words": -0.5}),
    "more cosine": (1.0, {"cosine": 0.5}),
    "less cosine": (1.0, {"cosine": -0.5}),
    "more walk": (1.0, {"walk": 0.5}),
    "longer": (1.0, {"length": 0.5}),
}


def main() -> None:
    """Record, fit, print, and write where told."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("homes", nargs="+", metavar="HOME=QUESTIONS")
    options.add_argument("--write", action="store_true")
    options.add_argument("--gold", type=int, default=120, help="gold questions of each home")
    given = options.parse_args()
    homes = {Path(home).name: (Path(home), Path(path)) for home, _, path in (one.partition("=") for one in given.homes)}
    recorded = {name: record_home(home, path, given.gold) for name, (home, path) in homes.items()}
    exams = {name: exam for name, (exam, _, _) in recorded.items()}
    for name, (exam, gold, _) in recorded.items():
        bias = fit_line([one for other in exams if other != name for one in choices(exams[other])], len(DEFAULT), RIDGE)
        print(f"{name}: {len(exam)} exam questions, {len(gold)} with gold")
        print(f"  shipped: held {figures(held(exam), 0 * bias)}, gold {figures(gold, 0 * bias)}")
        for ridge in RIDGES:
            plain = fit_line(taught(exam), len(DEFAULT), ridge)
            line = fit_line([shift(one, bias) for one in taught(exam)], len(DEFAULT), ridge)
            print(f"  ridge {ridge}, as they are: gold {figures(gold, plain)} {plain.round(2).tolist()}")
            there = [shift(one, bias) for one in held(exam)]
            print(f"  ridge {ridge}, bias off: held {figures(there, 0 * line)} -> {figures(there, line)}, ", end="")
            print(f"gold {figures(gold, line)} {line.round(2).tolist()}; {verdict(there, line)}")
    correlate(recorded)
    every = fit_line([one for exam in exams.values() for one in choices(exam)], len(DEFAULT), RIDGE)
    print("bias:", dict(zip(DEFAULT, every.round(4).tolist(), strict=True)))
    if given.write:
        body = {
            "version": 1,
            "data_sha256": {name: digest for name, (_, _, digest) in recorded.items()},
            "metric": {name: figures(choices(exam), every) for name, exam in exams.items()},
            "command": "python benchmarks/fit_exam.py HOME=QUESTIONS... --write",
            "bias": dict(zip(DEFAULT, every.round(4).tolist(), strict=True)),
        }
        FILE.write_text(json.dumps(body, indent=1) + "\n", "utf-8")


Recorded = Sequence[RecordedChoice]


def correlate(recorded: Mapping[str, tuple[Recorded, list[Choice], str]]) -> None:
    """Print how the exam orders the settings and how the gold questions do, with and without what exams share."""
    pairs: dict[str, list[list[float]]] = {"as it is": [], "bias off": []}
    print("rank correlation of the settings' scores (MRR and recall at 5 together), exam and gold:")
    for name, (exam, gold, _) in recorded.items():
        others = [one for other, (theirs, _, _) in recorded.items() if other != name for one in choices(theirs)]
        line = fit_line(others, len(DEFAULT), RIDGE)
        wanted = [sum(figures(ordered(gold, *how), 0 * line)) for how in SETTINGS.values()]
        found = {"as it is": 0 * line, "bias off": line}
        scores = {
            way: [sum(figures(ordered(choices(exam), *how), one)) for how in SETTINGS.values()]
            for way, one in found.items()
        }
        for way, score in scores.items():
            pairs[way] += [[ours, theirs] for ours, theirs in zip(score, wanted, strict=True)]
        print(
            f"  {name}: "
            + ", ".join(f"{way} {spearmanr(score, wanted).statistic:.2f}" for way, score in scores.items())
        )
    for way, points in pairs.items():
        print(f"  all {len(points)} points, {way}: {spearmanr(np.array(points)).statistic:.2f}")


def ordered(asked: Sequence[Choice], shipped: float, added: Mapping[str, float]) -> list[Choice]:
    """The choices as a setting orders them."""
    line = np.array([added.get(name, 0.0) for name in DEFAULT])
    return [replace(one, worth=shipped * one.worth + one.columns @ line) for one in asked]


def record_home(home: Path, questions: Path, most: int) -> tuple[Recorded, list[Choice], str]:
    """What was to choose from: for the exam and for the gold questions; and the hash of the exam."""
    with open_hades(Settings(home=home)) as hades, closing(open_snapshot(home)) as view:
        digest = build_exam(hades.build_context)["data_hash"]
        assert hades.build_context.open_tools is not None
        tools = hades.build_context.open_tools()
        exam = record_choices(view, tools, [one for one in read_exam(home) if one.is_answerable], bias=NO_BIAS)
        gold = record_choices(view, tools, read_gold(view, questions)[:most], bias=NO_BIAS)
    sealed = hashlib.sha256((digest + view.info.snapshot).encode()).hexdigest()
    return exam, choices(gold), sealed


def read_gold(view: GraphView, path: Path) -> list[ExamQuestion]:
    """Gold questions with the passages of this graph that serve them."""
    numbers = np.arange(sum(view.info.nodes.values()), dtype=np.int64)
    passages = view.passages(numbers[view.kinds(numbers) == KINDS.index(Kind.CHUNK)])
    rows = list(read_lines(path))
    if isinstance(rows[0]["gold"][0], dict):
        cases = read_folder_cases(path)
        parts = [[[one for one in passages if stands_in(one, gold)] for gold in case.gold] for case in cases]
        texts = [case.question for case in cases]
    else:
        held: dict[str, list[Passage]] = {}
        for one in passages:
            held.setdefault(one.document, []).append(one)
        parts = [[held.get(str(gold), []) for gold in row["gold"]] for row in rows]
        texts = [row["question"] for row in rows]
    return [
        ExamQuestion("judged", text, tuple(tuple(one.id for one in part) for part in own), key=str(place))
        for place, (text, own) in enumerate(zip(texts, parts, strict=True))
    ]


def choices(recorded: Recorded) -> list[Choice]:
    """All of them."""
    return [one.choice for one in recorded]


def taught(exam: Recorded) -> list[Choice]:
    """What may be fitted to."""
    return [one.choice for one in exam if not one.question.is_held]


def held(exam: Recorded) -> list[Choice]:
    """What is held out."""
    return [one.choice for one in exam if one.question.is_held]


def shift(one: Choice, bias: Floats) -> Choice:
    """A choice with the bias taken off what is to be learned."""
    return replace(one, worth=one.worth + one.columns @ bias)


def figures(asked: Sequence[Choice], line: Floats) -> list[float]:
    """MRR and recall at 5, in per cent."""
    found = quality([one.ranking(line) for one in asked], [one.parts for one in asked])
    return [round(100 * float(values.mean()), 1) for values in (found["mrr"], found["recall"])]


def verdict(asked: Sequence[Choice], line: Floats) -> str:
    """What the gate says of a line, by the questions held out."""
    gold = [one.parts for one in asked]
    ours, theirs = (quality([one.ranking(given) for one in asked], gold) for given in (line, 0 * line))
    return decide(ours, {"what serves": theirs}, ["exam"] * len(asked))["reason"]


if __name__ == "__main__":
    main()
