"""A folder as `hades watch` reads it, asked what a person would ask; gold is a file and a heading
of it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path

import numpy as np

from hades.evaluation.cases import Row, digest, read_each, read_unanswerable
from hades.evaluation.figures import mean_of, percentiles
from hades.evaluation.rankers import Bench, CachingEmbedder, baseline_searches, ms_since
from hades.ports.graph import Passage
from hades.ports.services import ProgressReport, silent
from hades.retrieval.answer.write_answer import write_answer
from hades.retrieval.answers import Answers
from hades.snapshot.rights_file import OWNER
from models.ranker.infer import auroc
from schemas.answer import CitedPassage, Retrieval
from schemas.record import JsonObject

DEPTHS = (1, 3, 5)
SHOWN = 6  # passages of a user's turn
_MARKUP = re.compile(
    r"[{:][\w:-]+[}:](?=`)|[`*_|\\]+"
)  # roles of reST and MyST, and signs that set type
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
Section = Passage | CitedPassage
Place = tuple[str, str]  # file, heading


@dataclass(frozen=True)
class FolderCase:
    """A question, each part of its gold with the sections that serve as well, and spellings of the
    answer.
    """

    id: str
    question: str
    gold: tuple[frozenset[Place], ...]
    answers: tuple[str, ...]
    kind: str

    def sections_in(self, passages: Sequence[Section]) -> float:
        """Share of the gold sections that the passages stand in."""
        return _mean_over(self.gold, passages, stands_in)

    def files_in(self, passages: Sequence[Section]) -> float:
        """Share of the gold whose file is among the files of the passages."""
        return _mean_over(self.gold, passages, _is_in_files)

    def is_answered_by(self, text: str) -> bool:
        """Whether a spelling of the answer stands in the text, whatever its case, spaces and
        markup.
        """
        plain = plain_text(text)
        return any(answer in plain for answer in self.answers)


def read_folder_cases(path: Path) -> list[FolderCase]:
    """Rows of `question`, `gold` [{file, heading}] and `answer`; `also` are sections that serve as
    well.
    """
    expected = (
        "`question`, `answer` and `gold`, objects with `file` and `heading` (none where "
        "nothing answers)"
    )
    return read_each(
        path,
        _read_case,
        ("question", "answer", "gold"),
        expected,
    )


def _read_case(row: Row, key: str) -> FolderCase:
    also = row.get("also", ())
    gold = []
    for place, section in enumerate(row["gold"]):
        serving = []
        for alternative in also:
            if alternative.get("replaces", place) == place:
                serving.append(alternative)

        gold.append(frozenset(map(_place, [section, *serving])))

    spellings = [
        row["answer"],
        *row.get("answers", ()),
        *(alternative.get("answer") for alternative in also),
    ]
    answers = tuple(dict.fromkeys(filter(None, map(plain_text, filter(None, spellings)))))
    return FolderCase(
        key,
        row["question"],
        tuple(gold),
        answers,
        str(row.get("kind", "")),
    )


def _place(section: Mapping[str, str]) -> Place:
    return section["file"], plain_text(section["heading"])


def plain_text(text: str) -> str:
    """Text to compare: without markup, in one case, single spaces."""
    return " ".join(_MARKUP.sub("", text).split()).casefold()


def stands_in(passage: Section, places: frozenset[Place]) -> bool:
    """Whether a passage belongs to one of the sections: by its innermost heading, or by a heading
    in its text.

    What stands above the first heading of a page belongs to the title of the page.
    """
    above = passage.headings[-1:] or (passage.title,)

    headings = set()
    for heading in (*above, *_HEADING.findall(passage.text)):
        headings.add(plain_text(heading))

    return any(
        _is_file(passage, file) and (heading in headings or not heading) for file, heading in places
    )


def _is_file(passage: Section, file: str) -> bool:
    return f"/{passage.document}".endswith(f"/{file}")


def _is_in_files(passage: Section, places: frozenset[Place]) -> bool:
    return any(_is_file(passage, file) for file, _ in places)


def _mean_over(
    gold: Sequence[frozenset[Place]],
    passages: Sequence[Section],
    serves: Callable[[Section, frozenset[Place]], bool],
) -> float:
    """The share of the gold that some passage serves."""
    served = []
    for places in gold:
        served.append(any(map(serves, passages, repeat(places))))

    return float(np.mean(served))


def evaluate_folder(
    folder: Path,
    questions: Path,
    refresh: Callable[[Callable[[float], None]], object],
    answers: Callable[[], Answers],
    *,
    recipes: Sequence[str] = ("auto",),
    progress: ProgressReport = silent,
) -> JsonObject:
    """Build with `refresh`, ask every recipe as a user does and every baseline, sum up.

    `refresh` calls what it is given as soon as the folder can be asked by its words. The limits on
    time of a turn do not run, so that the figures of a busy machine are those of an idle one.
    """
    cases = read_folder_cases(questions)
    began = time.perf_counter()
    first: JsonObject = {}

    def ask_first() -> float:
        answers().retrieve(cases[0].question)
        return round(time.perf_counter() - began, 2)

    def without_limits() -> Answers:
        unlimited = answers()
        unlimited.tools = replace(unlimited.tools, clock=lambda: 0.0)
        return unlimited

    def ask_words(_: float) -> None:
        nonlocal began
        first["first_answer_seconds"] = ask_first()
        paused = time.perf_counter()
        unlimited = without_limits()
        passages = [unlimited.retrieve(case.question).passages for case in cases]
        first["recall_of_words"] = _summarise(cases, passages)["recall"]
        began += time.perf_counter() - paused

    refresh(ask_words)
    built = round(time.perf_counter() - began, 2)
    if not first:  # a home that was kept
        first["first_answer_seconds"] = ask_first()

    unlimited = without_limits()
    assert unlimited.tools.embedder is not None
    embedder = CachingEmbedder(unlimited.tools.embedder)

    with unlimited.read() as view:
        searches = baseline_searches(Bench(view, replace(unlimited.tools, embedder=embedder)))
        baselines = {}
        for name, search in searches.items():
            passages = [view.passages(search(case.question, "")[:SHOWN]) for case in cases]
            baselines[name] = _summarise(cases, passages)

        snapshot = view.info.snapshot

    return {
        "dataset": {
            "folder": str(folder),
            "questions": len(cases),
            "sha256": digest([questions]),
        },
        "build": {"seconds": built, **first},
        "snapshot": snapshot,
        "model": embedder.model.tag,
        "baselines": baselines,
        "recipes": {
            name: _ask(
                cases,
                read_unanswerable(questions),
                unlimited,
                name,
                progress,
            )
            for name in recipes
        },
    }


def _ask(
    cases: Sequence[FolderCase],
    unanswerable: Sequence[str],
    answers: Answers,
    recipe: str,
    progress: ProgressReport,
) -> JsonObject:
    """One recipe over all questions."""
    tools = answers.tools
    turns = []
    times = []

    is_in_text = []
    for number, case in enumerate(cases, 1):
        began = time.perf_counter()
        turns.append(
            answers.retrieve(
                case.question,
                recipe=recipe,
                asker=OWNER,
            )
        )
        times.append(ms_since(began))
        answer = write_answer(
            turns[-1],
            tokenizer=tools.tokenizer,
            embedder=tools.embedder,
            model=None,
        )
        is_in_text.append(case.is_answered_by(answer.text))
        progress(recipe, number, len(cases))

    passages = [turn.passages for turn in turns]
    missed = []
    for turn, case in zip(turns, cases, strict=True):
        if case.sections_in(turn.passages[: DEPTHS[-1]]) < 1.0:
            names = [_name(passage) for passage in turn.passages]
            missed.append(
                {
                    "id": case.id,
                    "question": case.question,
                    "found": names,
                }
            )

    doubtful = [
        answers.retrieve(
            question,
            recipe=recipe,
            asker=OWNER,
        )
        for question in unanswerable
    ]
    return {
        **_summarise(cases, passages),
        "answer_in_text": mean_of(is_in_text),
        "abstained_wrongly": mean_of([not turn.is_answered for turn in turns]),
        **_doubt(turns, doubtful),
        "ms": percentiles(times, 1),
        "missed": missed,
    }


def _doubt(
    answered: Sequence[Retrieval],
    doubtful: Sequence[Retrieval],
) -> dict[str, float]:
    """How well a recipe tells what the folder answers from what it does not; nothing where all is
    answered.
    """
    sure = [turn.confidence for turn in answered]
    unsure = [turn.confidence for turn in doubtful]

    if not doubtful or None in sure or None in unsure:
        return {}

    share = mean_of([not turn.is_answered for turn in doubtful])
    area = auroc(np.array(sure, np.float64), np.array(unsure, np.float64))
    return {
        "abstained_rightly": share,
        "auroc": round(area, 4),
    }


def _summarise(
    cases: Sequence[FolderCase],
    rankings: Sequence[Sequence[Section]],
) -> JsonObject:
    pairs = list(zip(cases, rankings, strict=True))
    last = DEPTHS[-1]

    recall: dict[str, float] = {}
    for k in DEPTHS:
        shares = [case.sections_in(passages[:k]) for case, passages in pairs]
        recall[str(k)] = mean_of(shares)

    by_kind: dict[str, list[float]] = {}
    for case, share in zip(cases, shares, strict=True):  # at the last depth
        if case.kind:
            by_kind.setdefault(case.kind, []).append(share)

    kinds = {}
    for kind, values in sorted(by_kind.items()):
        kinds[kind] = {
            "questions": len(values),
            f"recall@{last}": mean_of(values),
        }

    files: dict[str, float] = {}
    for k in (1, last):
        files[str(k)] = mean_of([case.files_in(passages[:k]) for case, passages in pairs])

    is_answered = []
    for case, passages in pairs:
        text = "\n".join(passage.text for passage in passages[:last])
        is_answered.append(case.is_answered_by(text))

    return {
        "recall": recall,
        "mrr": mean_of([_reciprocal_rank(case, passages) for case, passages in pairs]),
        "file": files,
        "answer_in_passages": mean_of(is_answered),
        "kinds": kinds,
    }


def _reciprocal_rank(case: FolderCase, passages: Sequence[Section]) -> float:
    gold = frozenset[Place]().union(*case.gold)
    return next(
        (1.0 / rank for rank, passage in enumerate(passages, 1) if stands_in(passage, gold)),
        0.0,
    )


def _name(passage: Section) -> str:
    if passage.headings:
        return f"{passage.document}: {passage.headings[-1]}"
    return passage.document
