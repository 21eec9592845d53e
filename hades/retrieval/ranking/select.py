"""What goes into the answer."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from hades.retrieval.answer.assemble import flow_of, shares_of
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import VECTOR, FoundPassage, FoundPath, Question, Recipe, SeedHits, StepResult, blend
from hades.retrieval.core.words import content_words
from hades.retrieval.features.passages import Support
from hades.retrieval.ranking.abstain import LOOKED_AT, should_abstain
from hades.retrieval.ranking.judge import rerank, rerank_paths
from hades.retrieval.search.code_passages import passages_of
from hades.retrieval.walks.flow import DECAY_RATE, PRUNING_THRESHOLD
from hades.text.word_lists import TERM_BREAKERS
from models.weights import propensities, swap_places
from schemas.plan import Plan, Reason

# What of everything found goes into the answer: the best m looked at closely, doubts weighed, the rest cut.


@dataclass(frozen=True)
class Selection:
    """What will be shown, best first; `doubt` says why it is too weak, where nothing supports an answer.

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
    *,
    max_paths: int | None,
    must_support: bool,
    has_ranked_paths: bool = False,
    is_remembered: bool = False,
    anyway: bool = False,
) -> Selection:
    """Rerank in the stage's time, then cut to `final_context`.

    `must_support`: where the passages are too weak to answer from, the nearest are shown with the doubt, without paths
    unless these are wanted `anyway`. Where memory answers (`is_remembered`), weak documents are left out.
    """
    with view.turn.stage("rerank", plan.reranker.timeout_ms) as stage:
        passages = _pool(view, question, found, reached, plan.reranker.m)
        stage.taken = len(reached.paths) + len(passages) + stage.repeats
        if recipe.reranks and not reached.is_ranked and not view.turn.expired():
            wanted, half = min(plan.reranker.m, len(passages)), view.turn.reads_left // 2
            if half < wanted:  # the other half of the reads is for what is shown
                view.turn.trimmed(Reason.BUDGET_DOCS)
            passages = rerank(view, question, passages, min(wanted, half))
        paths = list(reached.paths)
        if paths and not (reached.is_ranked or has_ranked_paths) and not view.turn.expired():
            paths = rerank_paths(question, paths, _path_words(view, paths[: plan.reranker.m]))
        support = _support(view, question, passages) if must_support else None
        if len(paths) > plan.graph.beam:
            view.turn.trimmed(Reason.CAP_EXCEEDED)
        if max(len(paths), len(passages)) > plan.final_context:
            view.turn.because(Reason.CONTEXT_FULL)
        most = plan.graph.beam if max_paths is None else min(max_paths, plan.graph.beam)
        shown = falling(paths[: min(most, plan.final_context)])
        chosen = Selection(shown, tuple(passages[: plan.final_context]))
        doubted = support is not None and support.should_abstain
        if doubted and not anyway:
            chosen = Selection() if is_remembered else replace(chosen, paths=())
        if support is not None and not is_remembered:
            doubt = f"abstained: {support.why}" if doubted else ""
            chosen = replace(chosen, doubt=doubt, confidence=support.confidence)
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
    along = passages_of(view, question, {}, reached.paths, limit=m)
    view.turn.current.repeats = len({one.node for one in along} & {one.node for one in found.passages})
    return blend(view, found.passages, along, m)


def _path_words(view: MeteredView, paths: Sequence[FoundPath]) -> list[str]:
    """The words of each path, as many as may be read."""
    texts: list[str] = []
    for _, nodes, edges in view.path_facts(paths):
        words = [*(node.name for node in nodes), *(f"{edge.type} {edge.label} {edge.snippet}" for edge in edges)]
        texts.append(" ".join(words))
    return texts


def _support(view: MeteredView, question: Question, passages: Sequence[FoundPassage]) -> Support:
    """How far the best passages support an answer."""
    looked_at = passages[:LOOKED_AT]
    read = view.passages(np.array([passage.node for passage in looked_at], np.int64))
    best = max((passage.tiers[VECTOR] for passage in looked_at if VECTOR in passage.tiers), default=None)
    scores = [passage.score for passage in passages[:6]]
    lead = 1 - scores[-1] / scores[0] if len(scores) > 1 and scores[0] > 0 else 1.0
    return should_abstain(question, read, best, unknown=_share_unknown(view, question.text), lead=lead)


def _share_unknown(view: MeteredView, text: str) -> float:
    """The share of a question's words that no passage holds.

    Words that any text uses ("get", "find") count as known: a small corpus lacks them by chance.
    """
    known = [word in TERM_BREAKERS or view.holds_word(word) for word in content_words(text)]
    return 0.0 if view.turn.expired() or not known else known.count(False) / len(known)


# Reliability as an order: an option of every recipe that finds paths, with the formula of `calculate_path_score`. The
# first node of a path gives out one unit; each edge passes on its share of what its tail received, times the decay. The
# mean over the edges is the reliability that every answer reports; here it must reach the threshold, and it orders.


@dataclass(frozen=True)
class FlowPruning:
    """How much flow each hop passes on, and how much a path must carry."""

    decay_rate: float = DECAY_RATE
    threshold: float = PRUNING_THRESHOLD


def prune_by_flow(view: MeteredView, paths: Sequence[FoundPath], rule: FlowPruning) -> tuple[FoundPath, ...]:
    """The paths whose reliability reaches the threshold, most reliable first, of those that may be read."""
    kept = []
    for path, nodes, edges in view.path_facts(paths):
        reliability = flow_of(shares_of(path, nodes, edges), rule.decay_rate)
        if reliability >= rule.threshold:
            kept.append(replace(path, score=reliability, reliability=reliability))
    return tuple(sorted(kept, key=lambda path: -path.reliability))


# Answers that now and then show neighbours the other way round, so that logs can tell what a rank does from what a
# result does. Off unless `learning.explore` is set; every result says with which chance it stands where it stands.


Result = TypeVar("Result", FoundPath, FoundPassage)


@dataclass(frozen=True)
class ExplorationRules:
    """The chance that two neighbours change places, and a seed; the same question of the same moment swaps the same."""

    share: float = 0.0
    seed: int = 0


def swap_some(selected: Selection, swapping: ExplorationRules, query_id: str) -> Selection:
    """What was selected, with some neighbours swapped and every propensity set."""
    return replace(
        selected,
        paths=_swap(selected.paths, swapping, f"{swapping.seed} {query_id} paths"),
        passages=_swap(selected.passages, swapping, f"{swapping.seed} {query_id} passages"),
    )


def _swap(results: Sequence[Result], swapping: ExplorationRules, name: str) -> tuple[Result, ...]:
    chance = np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]))
    place = swap_places(1, len(results), swapping.share, chance)[0]
    chances = propensities(place, swapping.share)
    return tuple(replace(results[at], propensity=float(odds)) for at, odds in zip(place.tolist(), chances, strict=True))
