"""What learning from an exam is worth, and how far its score can be trusted.

    python benchmarks/eval_exam.py HOME=QUESTIONS... [--states]

Each home is published; its questions have gold, as of `hades eval folder` or `hades eval multihop`.
Every home learns from its own exam, with --states also states of nodes (GraphSAGE), and is asked
its gold questions. Then ten ways to order the same candidates are scored by each exam and by the
gold questions, and their ranks are compared.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from hades.evaluation.cases import read_lines
from hades.evaluation.folder import read_folder_cases, stands_in
from hades.night.exam.questions import QUOTATIONS, ExamQuestion
from hades.night.exam.stage import build_exam, read_exam
from hades.night.ranker.questions import decide, quality
from hades.night.ranker.stage import RecordedTurn, fit_abstention, fit_likeness, record_turns
from hades.ports.graph import KINDS, Kind, Passage
from hades.ports.services import silent
from hades.settings.tree import Settings
from hades.snapshot.open import open_snapshot
from hades.snapshot.view import GraphView
from hades.snapshot.write_graph import graph_of
from hades.wiring import open_hades
from models.arrays import Floats
from models.ranker.infer import COLUMNS as DEFAULT
from models.ranker.infer import SIGNALS, StateRules, auroc
from models.rankings import Choice, fit_line
from schemas.ids import sha256_text

NO_LINE = np.zeros(len(DEFAULT))
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
    """Record, fit, print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("homes", nargs="+", metavar="HOME=QUESTIONS")
    options.add_argument("--states", action="store_true", help="fit states of nodes as well")
    options.add_argument("--gold", type=int, default=120, help="gold questions of each home")
    given = options.parse_args()
    homes = {
        Path(home).name: (Path(home), Path(path))
        for home, _, path in (one.partition("=") for one in given.homes)
    }
    scores = {}
    for name, (home, path) in homes.items():
        exam, gold = record_home(home, path, given.gold, given.states)
        line = fit_line(choices(exam, is_held=False), len(DEFAULT))
        held = choices(exam, is_held=True)
        counts = f"{len(choices(exam))} exam questions, {len(choices(gold))} with gold"
        print(f"{name}: {counts}; {verdict(held, line) if held else 'no exam'}")
        for what, asked in {"held": held, "gold": choices(gold)}.items():
            print(
                f"  {what}: {figures(asked, NO_LINE)} -> {figures(asked, line)}"
                if asked
                else f"  {what}: none"
            )
        print(f"  abstained, answerable / not: {abstention(exam, gold)}")
        print(f"  line: {dict(zip(DEFAULT, line.round(2).tolist(), strict=True))}", flush=True)
        if exam:
            scores[name] = [
                [score(asked, *how) for how in SETTINGS.values()]
                for asked in map(choices, (exam, gold))
            ]
    correlate(scores)


def correlate(scores: Mapping[str, list[list[float]]]) -> None:
    """Print how far exams order the settings as gold questions do: in each home, and by the means
    over homes.
    """
    within = {name: spearmanr(*both).statistic for name, both in scores.items()}
    print(
        "rank correlation of exam and gold: "
        + ", ".join(f"{name} {value:.2f}" for name, value in within.items())
    )
    means = np.mean(list(scores.values()), axis=0)
    print(
        f"mean {np.mean(list(within.values())):.2f}; of the means over homes "
        f"{spearmanr(*means).statistic:.2f}"
    )
    for name, exam, gold in zip(SETTINGS, *means.round(1), strict=True):
        print(f"  {name:12} exam {exam:5.1f} gold {gold:5.1f}")


def score(asked: Sequence[Choice], shipped: float, added: Mapping[str, float]) -> float:
    """The quality of the choices as a setting orders them, in per cent; each question as much as
    its kind counts.
    """
    line = np.array([added.get(name, 0.0) for name in DEFAULT])
    ordered = [replace(one, worth=shipped * one.worth + one.columns @ line) for one in asked]
    found = quality([one.ranking(NO_LINE) for one in ordered], [one.parts for one in ordered])[
        "quality"
    ]
    return 100.0 * float(np.average(found, weights=[one.weight for one in ordered]))


Recorded = Sequence[RecordedTurn]


def record_home(
    home: Path, questions: Path, most: int, with_states: bool
) -> tuple[Recorded, Recorded]:
    """What was to choose from: for the exam, as a night learns from it, and for the gold
    questions.
    """
    with open_hades(Settings(home=home)) as hades, closing(open_snapshot(home)) as view:
        build_exam(hades.build_context)
        assert hades.build_context.open_tools is not None
        tools = hades.build_context.open_tools()
        told = [one for one in read_exam(home) if one.kind not in QUOTATIONS]
        exam = record_turns(view, tools, told)
        labelled = read_gold(view, questions)[:most]
        gold = record_turns(view, tools, [*labelled, *map(without_answer, labelled)])
        if with_states:  # gold questions are unseen as those held out are
            every = [
                *exam,
                *(replace(one, question=replace(one.question, is_held=True)) for one in gold),
            ]
            is_held = np.array([one.question.is_held for one in every], np.bool_)
            graph = graph_of(view, hades.build_context.model)
            _, likened = fit_likeness(graph, every, is_held, StateRules(), silent)
            every = [
                replace(one, choice=choice) for one, choice in zip(every, likened, strict=True)
            ]
            exam, gold = every[: len(exam)], every[len(exam) :]
    return exam, gold


def without_answer(asked: ExamQuestion) -> ExamQuestion:
    """The question again, with every passage hidden that answers it."""
    hidden = tuple(dict.fromkeys(each for part in asked.gold for each in part))
    return replace(
        asked, key=sha256_text(f"without {asked.key}"), hidden=hidden, is_answerable=False
    )


def read_gold(view: GraphView, path: Path) -> list[ExamQuestion]:
    """Gold questions with the passages of this graph that serve them."""
    numbers = np.arange(sum(view.info.nodes.values()), dtype=np.int64)
    passages = view.passages(numbers[view.kinds(numbers) == KINDS.index(Kind.CHUNK)])
    rows = list(read_lines(path))
    if isinstance(rows[0]["gold"][0], dict):
        cases = read_folder_cases(path)
        parts = [
            [[one for one in passages if stands_in(one, gold)] for gold in case.gold]
            for case in cases
        ]
        texts = [case.question for case in cases]
    else:
        held: dict[str, list[Passage]] = {}
        for one in passages:
            held.setdefault(one.document, []).append(one)
        parts = [[held.get(str(gold), []) for gold in row["gold"]] for row in rows]
        texts = [row["question"] for row in rows]
    return [
        ExamQuestion(
            "judged",
            text,
            tuple(tuple(one.id for one in part) for part in own),
            key=sha256_text(text),
        )
        for text, own in zip(texts, parts, strict=True)
    ]


def choices(recorded: Recorded, is_held: bool | None = None) -> list[Choice]:
    """Those of all answerable questions, of the ones held out, or of the ones that may be fitted
    to.
    """
    asked = [one for one in recorded if one.question.is_answerable]
    return [one.choice for one in asked if is_held is None or one.question.is_held is is_held]


def abstention(exam: Recorded, gold: Recorded) -> str:
    """What the rule learned from the exam changes for people's questions, and what the gate says of
    it.
    """
    part = fit_abstention(exam, None)
    learned = np.asarray(part.arrays.get("abstain", np.zeros(len(SIGNALS))), np.float64)
    found = []
    for line in (0.0 * learned, learned):
        asked = [(one, one.signals) for one in gold if one.signals is not None]
        sure = [
            (one.margin + float(signals @ line), one.question.is_answerable)
            for one, signals in asked
        ]
        yes, no = (
            np.array([margin for margin, own in sure if own is wanted]) for wanted in (True, False)
        )
        found.append(
            f"{100 * np.mean(yes < 0):.1f} / {100 * np.mean(no < 0):.1f} auroc {auroc(yes, no):.2f}"
        )
    rule = dict(zip(SIGNALS, learned.round(2).tolist(), strict=True))
    return f"{' -> '.join(found)}; {part.verdict['reason']}; {part.figures}; {rule}"


def figures(asked: Sequence[Choice], line: Floats) -> list[float]:
    """MRR and recall at 5, in per cent."""
    found = quality([one.ranking(line) for one in asked], [one.parts for one in asked])
    return [round(100 * float(values.mean()), 1) for values in (found["mrr"], found["recall"])]


def verdict(asked: Sequence[Choice], line: Floats) -> str:
    """What the gate says of a line, by the questions held out."""
    gold = [one.parts for one in asked]
    ours, theirs = (
        quality([one.ranking(given) for one in asked], gold) for given in (line, 0 * line)
    )
    return decide(ours, {"what serves": theirs}, ["exam"] * len(asked))["reason"]


if __name__ == "__main__":
    main()
