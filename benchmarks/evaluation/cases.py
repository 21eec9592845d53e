"""Questions with the ids of the documents that answer them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hades.evaluation.cases import Row, read_each

_NO_TEXT = frozenset({"yes", "no", "true", "false"})


@dataclass(frozen=True)
class Case:
    """One question and the ids of what answers it. `group` is its type or number of hops, for
    tables by group.

    `excluded` documents are taken out of every ranking: what asks is no answer. `answers` are
    spellings of the answer, to be looked for in the prompt; none where it is not a text to be
    found, as yes and no are not. `near` are the ids of what it is asked from, `context` is what is
    written there, for the baselines that may know it too. `is_answerable` is False where the gold
    is only what a question is about, without its answer.
    """

    id: str
    question: str
    gold: frozenset[str]
    group: str = ""
    excluded: frozenset[str] = frozenset()
    answers: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    context: str = ""
    is_answerable: bool = True


def read_cases(path: Path) -> list[Case]:
    """Rows of question and gold; those of an empty gold are `read_unanswerable`'s."""
    expected = "`question` and `gold`, a list of ids (empty where the corpus does not answer)"
    return read_each(path, _case, ("question", "gold"), expected)


def _case(row: Row, key: str) -> Case:
    gold = frozenset(str(gold_id) for gold_id in row["gold"])
    group = str(row.get("type") or (f"{row['hops']} hops" if row.get("hops") else ""))
    spellings = [row.get("answer"), *(row.get("answers") or ())]
    texts = (
        " ".join(spelling.split()).casefold() for spelling in spellings if isinstance(spelling, str)
    )
    answers = tuple(dict.fromkeys(text for text in texts if text and text not in _NO_TEXT))
    known = bool(row.get("answerable", True))
    return Case(key, str(row["question"]), gold, group, answers=answers, is_answerable=known)
