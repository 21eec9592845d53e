"""What of everything found goes into the answer: the best m looked at closely, doubts weighed, the rest cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hades.retrieval.channels.seeds import SeedHits
from hades.retrieval.ranking.abstain import LOOKED_AT, Support
from hades.retrieval.ranking.judge import Judge
from hades.retrieval.turn.graph_steps import StepResult, blend
from hades.retrieval.turn.metered_view import MeteredView
from hades.retrieval.turn.recipes import Recipe
from hades.retrieval.turn.types import FoundPassage, FoundPath, Question
from schemas.plan import Plan, Reason


@dataclass(frozen=True)
class Selection:
    """What will be shown, best first; `doubt` says why it is nothing, where nothing supports an answer.

    `confidence` is how likely it supports an answer; None where the recipe does not judge that.
    """

    paths: tuple[FoundPath, ...] = ()
    passages: tuple[FoundPassage, ...] = ()
    doubt: str = ""
    confidence: float | None = None


def select(
    view: MeteredView,
    question: Question,
    found: SeedHits,
    reached: StepResult,
    recipe: Recipe,
    plan: Plan,
    judge: Judge,
    *,
    max_paths: int | None,
    must_support: bool,
    is_remembered: bool = False,
    anyway: bool = False,
) -> Selection:
    """Rerank in the stage's time, then cut to `final_context`.

    `must_support`: no answer rather than a weak one, unless it is wanted `anyway`. Where memory answers
    (`is_remembered`), weak documents are left out without a doubt about the answer.
    """
    with view.turn.stage("rerank", plan.reranker.timeout_ms) as stage:
        passages = _pool(view, question, found, reached, plan.reranker.m)
        stage.taken = len(reached.paths) + len(passages) + stage.repeats
        if recipe.reranks and not reached.is_ranked and not view.turn.expired():
            passages = judge.passages(view, question, passages, _affordable(view, min(plan.reranker.m, len(passages))))
        paths = list(reached.paths)
        if paths and not reached.is_ranked and not view.turn.expired():
            paths = judge.paths(view, question, paths, _path_words(view, paths[: plan.reranker.m]))
        support = _support(view, question, passages, judge) if must_support else None
        most = plan.graph.beam if max_paths is None else min(max_paths, plan.graph.beam)
        shown = falling(paths[: min(most, plan.final_context)])
        chosen = Selection(shown, tuple(passages[: plan.final_context]))
        doubted = support is not None and support.should_abstain
        if doubted and not anyway:
            chosen = Selection()
        if support is not None and not is_remembered:
            chosen = replace(chosen, doubt=_doubt(support), confidence=support.confidence)
        stage.given = len(chosen.paths) + len(chosen.passages)
        stage.coverage = min(1.0, stage.given / plan.final_context)
    if doubted and not is_remembered:
        view.turn.because(Reason.ABSTAINED)
    if found.seeds and not doubted and not chosen.paths and not chosen.passages:
        view.turn.because(Reason.NO_PATHS)
    return chosen


def falling(paths: Sequence[FoundPath]) -> tuple[FoundPath, ...]:
    """The paths with scores that never rise with rank: a later path counts at most what the one before it does."""
    least, found = float("inf"), []
    for path in paths:
        least = min(least, path.score)
        found.append(replace(path, score=least))
    return tuple(found)


def _pool(view: MeteredView, question: Question, found: SeedHits, reached: StepResult, m: int) -> list[FoundPassage]:
    """Passages of the step; or those of the seeds with what the paths are told in."""
    if reached.passages is not None:
        return list(reached.passages[:m])
    if not reached.paths:
        return list(found.passages)
    from hades.retrieval.ranking.supporting_passages import passages_of

    along = passages_of(view, question, {}, reached.paths, limit=m)
    view.turn.current.repeats = len({one.node for one in along} & {one.node for one in found.passages})
    return blend(view, found.passages, along, m)


def _affordable(view: MeteredView, wanted: int) -> int:
    """How many passages may be read to rank them: at most half of the reads left, the rest is for what is shown."""
    half = view.turn.reads_left // 2
    if half < wanted:
        view.turn.trimmed(Reason.BUDGET_DOCS)
    return min(wanted, half)


def _path_words(view: MeteredView, paths: Sequence[FoundPath]) -> list[str]:
    """The words of each path, as many as may be read."""
    texts: list[str] = []
    view.fetch_facts(paths)
    for path in paths:
        nodes, edges = view.nodes(np.array(path.nodes, np.int64)), view.edges(np.array(path.edges, np.int64))
        if len(nodes) < len(path.nodes) or len(edges) < len(path.edges) or view.turn.expired():
            break
        words = [*(node.name for node in nodes), *(f"{edge.type} {edge.label} {edge.snippet}" for edge in edges)]
        texts.append(" ".join(words))
    return texts


def _support(view: MeteredView, question: Question, passages: Sequence[FoundPassage], judge: Judge) -> Support:
    """How far the best passages support an answer."""
    looked_at = passages[:LOOKED_AT]
    read = view.passages(np.array([passage.node for passage in looked_at], np.int64))
    return judge.support(question, looked_at, read)


def _doubt(support: Support) -> str:
    """Why nothing found supports an answer; empty when something does."""
    return f"abstained: {support.why}" if support.should_abstain else ""
