"""Whether anything found supports an answer: a question whose names the corpus does not know gets none.

Three signals of the passages that came first: the best cosine, how many of the question's key words any of them holds,
and how many the best one holds together; and how many of its words no passage of the corpus has. A logistic rule weighs
them (`models/fitted/abstain.json`, fitted by `benchmarks/fit_abstain.py`). Cosines of other models lie elsewhere, so
for those (and where the question has no vector) the words decide alone.

How sure an answer is depends on two more things, which never make it abstain: whether the passages are about whom the
question names, where titles say whose they are (what one speaker of a conversation did is no answer about the other),
and how far the first passage is ahead of the sixth."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from hades.ports.graph import Passage
from hades.retrieval.core.types import Question
from hades.retrieval.core.words import content_words, fitted_file, passage_body, stem, words
from hades.retrieval.features.passages import Support

LOOKED_AT = 20  # passages; the rule was fitted on this number
KNOWN, UNKNOWN = 1.0, -4.0  # set by hand on seven manuals: what a question is worth of which the corpus knows all, none
SUREST = 4.0  # margins flatten out towards this: more words of the question say no more
NAMED, AHEAD = 0.7, 0.3  # how much is lost where no title is about whom the question names, and where none is ahead
TITLED = 0.25  # the share of titles with a name of the question from which on titles say whom a passage is about
CALIBRATED_MODEL = "all-MiniLM-L6-v2@"
_WORD = re.compile(r"\w+")


def should_abstain(
    question: Question,
    passages: Sequence[Passage],
    similarity: float | None,
    *,
    unknown: float = 0.0,
    lead: float = 1.0,
) -> Support:
    """Weigh the best passages, given best first; `similarity` is the best cosine found, None without vectors.

    `unknown` is the share of the question's words that the whole corpus lacks, `lead` how far the first is ahead.
    """
    keys = key_words(question.text)
    held_by = [set(map(base, passage_body(one.title, one.text).stems)) for one in passages[:LOOKED_AT]]
    held = _share(keys, set().union(*held_by))
    together = max((_share(keys, one) for one in held_by), default=0.0)
    is_calibrated = similarity is not None and question.model.startswith(CALIBRATED_MODEL)
    rule = fitted_file("abstain")["with_vectors" if is_calibrated else "without_vectors"]
    margin = rule["bias"] + rule["held"] * held + rule["together"] * together
    if is_calibrated and similarity is not None:
        margin += rule["similarity"] * similarity + KNOWN + UNKNOWN * unknown
    if not passages:
        return Support(0.0, 0.0, -1.0, "nothing was found")
    if margin > 0:
        lost = (1 - NAMED * (1 - _share_about(question.text, passages))) * (1 - AHEAD * (1 - lead))
        margin = SUREST * math.tanh(margin / SUREST) * lost
    near = f"best cosine {similarity:.2f}, " if similarity is not None else ""
    why = f"{near}{held:.0%} of the key words found, {together:.0%} in one passage"
    why += f", {unknown:.0%} of all words in no passage" if unknown else ""
    return Support(held, together, margin, why)


def key_words(question: str) -> list[str]:
    """Stems of the names and numbers in a question; where it has none, of its content words."""
    return list(dict.fromkeys(base(stem(word)) for word in _names(question) or content_words(question)))


def base(stemmed: str) -> str:
    """A stem without the e that other forms of the word lack, so that "decide" is in a passage with "decided"."""
    return stemmed.removesuffix("e")


def _names(question: str) -> list[str]:
    """The content words that are names or numbers."""
    spelled = _WORD.findall(question)[1:]  # the first word has a capital for its place
    names = {word for one in spelled if one[0].isupper() or one[0].isdigit() for word in words(one)}
    return [word for word in content_words(question) if word in names]


def _share_about(question: str, passages: Sequence[Passage]) -> float:
    """How many of the first passages have a name of the question in their title, the first counting most.

    All of them where the question has no name, or where titles seldom are names.
    """
    names = {stem(word) for word in _names(question) if not word.isdigit()}
    about = [not names.isdisjoint(map(stem, words(one.title))) for one in passages[:LOOKED_AT]]
    if sum(about) < TITLED * len(about):
        return 1.0
    weights = [1 / rank for rank in range(1, len(about) + 1)]
    return sum(weight for weight, is_about in zip(weights, about, strict=True) if is_about) / sum(weights)


def _share(keys: Sequence[str], held: AbstractSet[str]) -> float:
    """How many of the keys are held; all of them where there is nothing to hold."""
    return sum(1 for key in keys if key in held) / len(keys) if keys else 1.0
