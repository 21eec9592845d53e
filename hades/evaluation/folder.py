"""A folder as `hades watch` reads it, asked what a person would ask; gold is a file and a heading of it."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hades.evaluation.cases import Case, Row, digest, read_each, read_unanswerable
from hades.evaluation.metrics import mean_of, percentiles
from hades.evaluation.rankers import Bench, CachingEmbedder, baseline_searches
from hades.ports.graph import Passage
from hades.ports.services import ProgressReport, silent
from hades.retrieval.answer.write_answer import write_answer
from hades.retrieval.answers import Answers
from models.ranker.infer import auroc
from schemas.answer import CitedPassage, Retrieval
from schemas.plan import Reason

DEPTHS = (1, 3, 5)
SHOWN = 6  # passages of a user's turn
_MARKUP = re.compile(r"[{:][\w:-]+[}:](?=`)|[`*_|\\]+")  # roles of reST and MyST, and signs that set type
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
Section = Passage | CitedPassage
Place = tuple[str, str]  # file, heading


@dataclass(frozen=True)
class FolderCase:
    """A question, each part of its gold with the sections that serve as well, and spellings of the answer."""

    id: str
    question: str
    gold: tuple[frozenset[Place], ...]
    answers: tuple[str, ...]
    kind: str

    def sections_in(self, passages: Sequence[Section]) -> float:
        """Share of the gold sections that the passages stand in."""
        return float(np.mean([any(stands_in(one, gold) for one in passages) for gold in self.gold]))

    def files_in(self, passages: Sequence[Section]) -> float:
        """Share of the gold whose file is among the files of the passages."""
        return float(np.mean([any(_is_file(one, file) for one in passages for file, _ in gold) for gold in self.gold]))

    def is_answered_by(self, text: str) -> bool:
        """Whether a spelling of the answer stands in the text, whatever its case, spaces and markup."""
        plain = plain_text(text)
        return any(answer in plain for answer in self.answers)


def read_folder_cases(path: Path) -> list[FolderCase]:
    """Rows of `question`, `gold` [{file, heading}] and `answer`; `also` are sections that serve as well."""
    expected = "`question`, `answer` and `gold`, objects with `file` and `heading` (none where nothing answers)"
    return read_each(path, _read_case, ("question", "answer", "gold"), expected)


def _read_case(row: Row, key: str) -> FolderCase:
    also = row.get("also", ())
    gold = tuple(
        frozenset({_place(one)} | {_place(other) for other in also if other.get("replaces", place) == place})
        for place, one in enumerate(row["gold"])
    )
    spellings = [row["answer"], *row.get("answers", ()), *(one["answer"] for one in also if one.get("answer"))]
    answers = tuple(dict.fromkeys(filter(None, map(plain_text, spellings))))
    return FolderCase(key, row["question"], gold, answers, str(row.get("kind", "")))


def _place(one: Mapping[str, str]) -> Place:
    return one["file"], plain_text(one["heading"])


def plain_text(text: str) -> str:
    """Text to compare: without markup, in one case, single spaces."""
    return " ".join(_MARKUP.sub("", text).split()).casefold()


def stands_in(passage: Section, places: frozenset[Place]) -> bool:
    """Whether a passage belongs to one of the sections: by its innermost heading, or by a heading in its text.

    What stands above the first heading of a page belongs to the title of the page.
    """
    above = passage.headings[-1:] or (passage.title,)
    own = {plain_text(one) for one in (*above, *_HEADING.findall(passage.text))}
    return any(_is_file(passage, file) and (heading in own or not heading) for file, heading in places)


def _is_file(passage: Section, file: str) -> bool:
    return f"/{passage.document}".endswith(f"/{file}")


def evaluate_folder(
    folder: Path,
    questions: Path,
    refresh: Callable[[Callable[[float], None]], object],
    answers: Callable[[], Answers],
    *,
    recipes: Sequence[str] = ("auto",),
    progress: ProgressReport = silent,
) -> dict[str, Any]:
    """Build with `refresh`, ask every recipe as a user does and every baseline, sum up.

    `refresh` calls what it is given as soon as the folder can be asked by its words. The limits on time of a turn do
    not run, so that the figures of a busy machine are those of an idle one.
    """
    cases = read_folder_cases(questions)
    began = time.perf_counter()
    first: dict[str, Any] = {}

    def ask_first() -> float:
        answers().retrieve(cases[0].question)
        return round(time.perf_counter() - began, 2)

    def without_limits() -> Answers:
        asked = answers()
        asked.tools = replace(asked.tools, clock=lambda: 0.0)
        return asked

    def ask_words(_: float) -> None:
        nonlocal began
        first["first_answer_seconds"] = ask_first()
        paused = time.perf_counter()
        asked = without_limits()
        found = [asked.retrieve(case.question).passages for case in cases]
        first["recall_of_words"] = _summarise(cases, found)["recall"]
        began += time.perf_counter() - paused

    refresh(ask_words)
    built = round(time.perf_counter() - began, 2)
    if not first:  # a home that was kept
        first["first_answer_seconds"] = ask_first()
    asked = without_limits()
    assert asked.tools.embedder is not None
    embedder = CachingEmbedder(asked.tools.embedder)
    with asked.read() as view:
        searches = baseline_searches(Bench(view, replace(asked.tools, embedder=embedder)))
        plain = [Case(one.id, one.question, frozenset()) for one in cases]
        baselines = {
            name: _summarise(cases, [view.passages(search(one)[:SHOWN]) for one in plain])
            for name, search in searches.items()
        }
        snapshot = view.info.snapshot
    return {
        "dataset": {"folder": str(folder), "questions": len(cases), "sha256": digest([questions])},
        "build": {"seconds": built, **first},
        "snapshot": snapshot,
        "model": embedder.model.tag,
        "baselines": baselines,
        "recipes": {name: _ask(cases, read_unanswerable(questions), asked, name, progress) for name in recipes},
    }


def _ask(
    cases: Sequence[FolderCase], unanswerable: Sequence[str], answers: Answers, recipe: str, progress: ProgressReport
) -> dict[str, Any]:
    """One recipe over all questions."""
    tools = answers.tools
    turns, times, texts = [], [], []
    for number, case in enumerate(cases, 1):
        began = time.perf_counter()
        turns.append(answers.retrieve(case.question, recipe=recipe))
        times.append((time.perf_counter() - began) * 1000)
        texts.append(write_answer(turns[-1], tokenizer=tools.tokenizer, embedder=tools.embedder, model=None).text)
        progress(recipe, number, len(cases))
    found = [turn.passages for turn in turns]
    missed = [place for place, case in enumerate(cases) if case.sections_in(found[place][: DEPTHS[-1]]) < 1.0]
    return {
        **_summarise(cases, found),
        "answer_in_text": mean_of([case.is_answered_by(text) for case, text in zip(cases, texts, strict=True)]),
        "abstained_wrongly": mean_of([Reason.ABSTAINED in turn.reasons for turn in turns]),
        **_doubt(turns, [answers.retrieve(question, recipe=recipe) for question in unanswerable]),
        "ms": percentiles(times, 1),
        "missed": [
            {"id": cases[place].id, "question": cases[place].question, "found": [_name(one) for one in found[place]]}
            for place in missed
        ],
    }


def _doubt(answered: Sequence[Retrieval], doubtful: Sequence[Retrieval]) -> dict[str, float]:
    """How well a recipe tells what the folder answers from what it does not; nothing where all is answered."""
    sure, unsure = ([turn.confidence for turn in turns] for turns in (answered, doubtful))
    if not doubtful or None in sure or None in unsure:
        return {}
    share = mean_of([Reason.ABSTAINED in turn.reasons for turn in doubtful])
    found = auroc(np.array(sure, np.float64), np.array(unsure, np.float64))
    return {"abstained_rightly": share, "auroc": round(found, 4)}


def _summarise(cases: Sequence[FolderCase], found: Sequence[Sequence[Section]]) -> dict[str, Any]:
    pairs = list(zip(cases, found, strict=True))
    last = DEPTHS[-1]
    recall = {k: [case.sections_in(passages[:k]) for case, passages in pairs] for k in DEPTHS}
    kinds = Counter(case.kind for case in cases if case.kind)
    return {
        "recall": {str(k): mean_of(values) for k, values in recall.items()},
        "mrr": mean_of([_reciprocal_rank(case, passages) for case, passages in pairs]),
        "file": {str(k): mean_of([case.files_in(passages[:k]) for case, passages in pairs]) for k in (1, last)},
        "answer_in_passages": mean_of(
            [case.is_answered_by("\n".join(one.text for one in passages[:last])) for case, passages in pairs]
        ),
        "kinds": {
            kind: {
                "questions": number,
                f"recall@{last}": mean_of([recall[last][place] for place, one in enumerate(cases) if one.kind == kind]),
            }
            for kind, number in sorted(kinds.items())
        },
    }


def _reciprocal_rank(case: FolderCase, passages: Sequence[Section]) -> float:
    gold = frozenset[Place]().union(*case.gold)
    return next((1.0 / rank for rank, one in enumerate(passages, 1) if stands_in(one, gold)), 0.0)


def _name(passage: Section) -> str:
    return f"{passage.document}: {passage.headings[-1]}" if passage.headings else passage.document
