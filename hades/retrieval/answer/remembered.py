"""Remembered states among the passages of an answer: which of them belong there, and at which rank.

Passages of different recipes carry scores of different scales, so a state is placed by what both can be measured by:
the share of the question's content words that a text speaks. It stands before the first passage that speaks fewer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from hades.ports.memory import MemoryHit, MemorySearch
from hades.retrieval.answer.assemble import AnswerParts
from hades.retrieval.ranking.word_overlap import content_words, stem
from hades.retrieval.turn.metered_view import MeteredView
from hades.retrieval.turn.types import Question
from schemas.retrieval import CitedPassage

MEMORY = "memory"
_PASSAGE = re.compile(r"(leads to passage )(\d+)")
_MOST = 6  # states in one answer
_WITHIN_DOMAIN = 100  # states that are looked at where a question is limited to a domain
_SPOKEN = 0.5  # share of the question's content words from which a state is about it
_NEAR = 0.5  # cosine from which a state is about the question whatever words it uses


def recall_states(view: MeteredView, search: MemorySearch | None, question: Question) -> list[MemoryHit]:
    """The states that a question is about; each counts as a read."""
    limit = _MOST if view.domain is None else _WITHIN_DOMAIN
    found = (
        search.search(question.text, question.vector, question.model, question.mask, limit)
        if search is not None
        else ()
    )
    if view.domain is not None:
        found = [one for one in found if _is_inside(one, view.domain)][:_MOST]
    if not found:
        return []
    with view.turn.stage("memory") as stage:
        words = _stems(question.text)
        kept = [one for one in found if _share(words, one.text, one.topic) >= _SPOKEN or (one.cosine or 0.0) >= _NEAR]
        stage.taken, stage.given = len(found), view.turn.reads(len(kept))
        stage.coverage = float(bool(kept))
        if search is not None:
            search.note_shown([one.id for one in kept[: stage.given]])
        return kept[: stage.given]


def place_states(shown: AnswerParts, question: str, hits: Sequence[MemoryHit]) -> AnswerParts:
    """The answer's parts with remembered states among the passages; passages keep their order and their scores."""
    if not hits:
        return shown
    words = _stems(question)
    placed: list[CitedPassage] = list(shown.passages)
    for hit in hits:
        share = _share(words, hit.text, hit.topic)
        place = next(
            (
                at
                for at, one in enumerate(placed)
                if MEMORY not in one.origins and _share(words, one.text, one.title) < share
            ),
            len(placed),
        )
        placed.insert(place, _cite(hit, placed, place))
    ranked = tuple(one.model_copy(update={"rank": rank}) for rank, one in enumerate(placed, 1))
    moved = {old.rank: new.rank for old, new in zip(placed, ranked, strict=True) if MEMORY not in old.origins}
    paths = tuple(path.model_copy(update={"why": _renumber(path.why, moved)}) for path in shown.paths)
    return replace(shown, paths=paths, passages=ranked, facts=shown.facts + len(hits), cited=shown.cited + len(hits))


def _renumber(why: str, moved: dict[int, int]) -> str:
    """The reason of a path with the ranks that passages have beside remembered states."""
    return _PASSAGE.sub(lambda said: f"{said[1]}{moved.get(int(said[2]), int(said[2]))}", why)


def _is_inside(hit: MemoryHit, domain: str) -> bool:
    """States belong to the domain `memory` and to that of the first part of their topic."""
    return domain.casefold() in (MEMORY, hit.topic.partition("/")[0].casefold())


def _cite(hit: MemoryHit, placed: Sequence[CitedPassage], place: int) -> CitedPassage:
    before = placed[place - 1].score if place else None
    after = placed[place].score if place < len(placed) else None
    near = [one for one in (before, after) if one is not None]
    return CitedPassage(
        rank=place + 1,
        id=hit.id,
        document=hit.id,
        title=f"{hit.topic}, remembered since {hit.since}",
        text=hit.text,
        score=sum(near) / len(near) if near else hit.similarity,
        origins=(MEMORY,),
        tiers={MEMORY: hit.similarity},
        document_id=hit.id,
        span=(0, len(hit.text)),
    )


def _share(words: frozenset[str], *texts: str) -> float:
    """The share of the question's content words that the texts speak."""
    return len(words & _stems(" ".join(texts))) / len(words) if words else 0.0


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in content_words(text.replace("_", " ").replace("/", " ")))
