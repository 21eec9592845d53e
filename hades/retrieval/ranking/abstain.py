"""Whether anything found supports an answer: a question whose names the corpus does not know gets none.

Three signals of the passages that came first: the best cosine, how many of the question's key words any of them holds,
and how many the best one holds together; and how many of its words no passage of the corpus has. A logistic rule weighs
them (`models/fitted/abstain.json`, fitted by `benchmarks/fit_abstain.py`). Cosines of other models lie elsewhere, so
for those (and where the question has no vector) the words decide alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from hades.ports.graph import Passage
from hades.retrieval.core.types import Question
from hades.retrieval.core.words import content_words, fitted_file, passage_body, stem, words
from hades.retrieval.features.passages import Support

LOOKED_AT = 20  # passages; the rule was fitted on this number
KNOWN, UNKNOWN = 1.0, -4.0  # set by hand on seven manuals: what a question is worth of which the corpus knows all, none
CALIBRATED_MODEL = "all-MiniLM-L6-v2@"
_WORD = re.compile(r"\w+")


def should_abstain(
    question: Question, passages: Sequence[Passage], similarity: float | None, unknown: float = 0.0
) -> Support:
    """Weigh the best passages, given best first; `similarity` is the best cosine found, None without vectors.

    `unknown` is the share of the question's words that the whole corpus lacks.
    """
    keys = key_words(question.text)
    held_by = [passage_body(one.title, one.text).stems.keys() for one in passages[:LOOKED_AT]]
    held = _share(keys, set().union(*held_by))
    together = max((_share(keys, one) for one in held_by), default=0.0)
    is_calibrated = similarity is not None and question.model.startswith(CALIBRATED_MODEL)
    rule = fitted_file("abstain")["with_vectors" if is_calibrated else "without_vectors"]
    margin = rule["bias"] + rule["held"] * held + rule["together"] * together
    if is_calibrated and similarity is not None:
        margin += rule["similarity"] * similarity + KNOWN + UNKNOWN * unknown
    if not passages:
        return Support(similarity, 0.0, 0.0, -1.0, "nothing was found")
    near = f"best cosine {similarity:.2f}, " if similarity is not None else ""
    why = f"{near}{held:.0%} of the key words found, {together:.0%} in one passage"
    why += f", {unknown:.0%} of all words in no passage" if unknown else ""
    return Support(similarity, held, together, margin, why)


def key_words(question: str) -> list[str]:
    """Stems of the names and numbers in a question; where it has none, of its content words."""
    content = content_words(question)
    spelled = _WORD.findall(question)[1:]  # the first word has a capital for its place
    names = {word for one in spelled if one[0].isupper() or one[0].isdigit() for word in words(one)}
    return list(dict.fromkeys(stem(word) for word in ([one for one in content if one in names] or content)))


def _share(keys: Sequence[str], held: AbstractSet[str]) -> float:
    """How many of the keys are held; all of them where there is nothing to hold."""
    return sum(1 for key in keys if key in held) / len(keys) if keys else 1.0
