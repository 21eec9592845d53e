"""From a question to stated facts: among the relations of what it names, those whose own words the question uses.

Only where triples were given do relations carry words. Which facts are worth reading is told from memory first: the
vector of what stands at the other end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from hades.ports.graph import Expansion, Numbers
from hades.retrieval.ranking.relevance import distinct
from hades.retrieval.ranking.word_overlap import content_words, stem, words
from hades.retrieval.turn.types import Question

if TYPE_CHECKING:
    from hades.ports.store import Direction
    from hades.retrieval.turn.metered_view import MeteredView
    from hades.retrieval.walks.restart import NamedEntity

_ANY: Final = cast("Direction", "any")
FACT_TYPES = ("refers_to", "derives_from", "extends", "implements", "cites")


@dataclass(frozen=True)
class FactRules:
    """`share`: restart mass for the ends of fitting facts, all together; `reads`: facts read; `fanout`: looked at."""

    share: float = 0.15
    reads: int = 12
    probes: int = 3
    fanout: int = 48


def link_facts(
    view: MeteredView,
    question: Question,
    named: list[NamedEntity],
    mass: dict[int, float],
    rules: FactRules = FactRules(),
) -> dict[int, float]:
    """The mass with a share of it moved to the far ends of facts that fit the question; the sum stays what it was.

    A few facts are read first: where none has words of its own nothing more is read.
    """
    entities = distinct(np.array([one.node for one in named if one.is_name], np.int64))
    if not len(entities) or rules.share <= 0.0 or view.is_remote or view.turn.expired():
        return mass
    found = view.expand(entities, direction=_ANY, types=FACT_TYPES, fanout=rules.fanout, mask=question.mask)
    asked = {stem(word) for word in content_words(question.text)}
    asked -= {stem(word) for one in named if one.is_name for word in words(question.text[one.start : one.end])}
    if not len(found) or not asked:
        return mass
    order = _nearest_first(view, question, found)
    fits: dict[int, float] = {}
    any_words = False
    for rows in (order[: rules.probes], order[rules.probes : rules.reads]):
        facts = view.edges(found.edge[rows])
        for row, fact in zip(rows.tolist(), facts, strict=False):
            said = {stem(word) for word in content_words(fact.label)}
            any_words = any_words or bool(said)
            if said & asked:
                far = int(found.target[row])
                fits[far] = max(fits.get(far, 0.0), len(said & asked) / len(said))
        if not any_words:
            return mass
    total = sum(fits.values())
    if total <= 0.0:
        return mass
    moved = {node: (1.0 - rules.share) * weight for node, weight in mass.items()}
    for node, fit in fits.items():
        moved[node] = moved.get(node, 0.0) + rules.share * fit / total
    return moved


def _nearest_first(view: MeteredView, question: Question, found: Expansion) -> Numbers:
    """Facts by the cosine of their far end with the question, then heaviest first."""
    cosine = np.zeros(len(found))
    if question.vector is not None:
        vectors, _ = view.vectors(found.target, model=question.model)
        if vectors.shape[1] == len(question.vector):
            cosine = (vectors @ question.vector).astype(np.float64)
    return np.lexsort((found.edge, -found.weight, -cosine))
