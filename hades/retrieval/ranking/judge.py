"""Who ranks what was found: weights by hand, or a ranker that was fitted; whoever asks notices no difference (B12)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from hades.ports.graph import Passage
from hades.retrieval.channels.search_names import VECTOR
from hades.retrieval.ranking.abstain import Support, should_abstain
from hades.retrieval.ranking.multihop_reranker import Pool, look_closer
from hades.retrieval.ranking.sentence_match import Floats, QuestionWords
from hades.retrieval.turn.types import FoundPassage, FoundPath, Question

if TYPE_CHECKING:
    from hades.retrieval.turn.metered_view import MeteredView


class Judge(Protocol):
    """Orders passages and paths, best first, and says when nothing supports an answer."""

    def passages(
        self, view: MeteredView, question: Question, found: Sequence[FoundPassage], m: int
    ) -> list[FoundPassage]:
        """The passages with the best `m` read and ranked; others than those found may be among them."""
        ...

    def walked(self, question: Question, nodes: Sequence[int], pool: Pool, want: QuestionWords) -> Floats:
        """(n,) the worth of passages that a walk brought up and read; only differences mean something."""
        ...

    def paths(
        self, view: MeteredView, question: Question, paths: Sequence[FoundPath], texts: Sequence[str]
    ) -> list[FoundPath]:
        """The paths, of which the first `len(texts)` were put into words, in the order to show them."""
        ...

    def support(self, question: Question, passages: Sequence[FoundPassage], read: Sequence[Passage]) -> Support:
        """What speaks for answering with these passages."""
        ...


class ByHand:
    """Weights that people chose: `rerank`, the closer look, and the rule of abstention."""

    def passages(
        self, view: MeteredView, question: Question, found: Sequence[FoundPassage], m: int
    ) -> list[FoundPassage]:
        """See `Judge.passages`."""
        from hades.retrieval.ranking.rerank import rerank

        return rerank(view, question, found, m)

    def walked(self, question: Question, nodes: Sequence[int], pool: Pool, want: QuestionWords) -> Floats:
        """See `Judge.walked`."""
        return look_closer(pool, want)

    def paths(
        self, view: MeteredView, question: Question, paths: Sequence[FoundPath], texts: Sequence[str]
    ) -> list[FoundPath]:
        """See `Judge.paths`."""
        from hades.retrieval.ranking.rerank import rerank_paths

        return rerank_paths(question, paths, texts, len(texts))

    def support(self, question: Question, passages: Sequence[FoundPassage], read: Sequence[Passage]) -> Support:
        """See `Judge.support`."""
        similarities = [passage.tiers[VECTOR] for passage in passages if VECTOR in passage.tiers]
        return should_abstain(question, read, max(similarities, default=None))


BY_HAND = ByHand()


def judge_of(view: MeteredView, question: Question) -> Judge:
    """The ranker of the snapshot; weights by hand where it has none, and then nothing of a ranker is imported."""
    if not view.info.parts.get("ranker"):
        return BY_HAND
    from hades.retrieval.ranking.learned_ranker import learned_judge

    return learned_judge(view, question)


def ranks_of(scores: Floats) -> list[int]:
    """Places best first; ties fall to the earlier place."""
    return [int(place) for place in np.argsort(-scores, kind="stable")]
