"""What goes into the answer, and whether anything found supports one."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from hades.ports.graph import Passage
from hades.retrieval.answer.assemble import flow_of, shares_of
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import VECTOR, FoundPassage, FoundPath, Question, Recipe, SeedHits, StepResult, blend
from hades.retrieval.core.words import content_words, fitted_file, passage_body, stem, words
from hades.retrieval.ranking.judge import BY_HAND, Judge, rerank, rerank_paths
from hades.retrieval.search.code_passages import passages_of
from hades.retrieval.walks.flow import DECAY_RATE, PRUNING_THRESHOLD
from hades.text.word_lists import TERM_BREAKERS
from models.weights import propensities, swap_places
from schemas.plan import Plan, Reason

USUAL_RESULTS = Plan().final_context  # what comes after them in a ranking is no cut: nobody would have seen it


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
    judge: Judge = BY_HAND,
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
        support = _support(view, question, passages, judge) if must_support else None
        if len(paths) > plan.graph.beam:
            view.turn.trimmed(Reason.CAP_EXCEEDED)
        most = plan.graph.beam if max_paths is None else min(max_paths, plan.graph.beam)
        if plan.final_context < min(USUAL_RESULTS, max(len(paths[:most]), len(passages))):
            view.turn.because(Reason.CONTEXT_FULL)
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


def _support(view: MeteredView, question: Question, passages: Sequence[FoundPassage], judge: Judge) -> Support:
    """How far the best passages support an answer."""
    looked_at = passages[:LOOKED_AT]
    read = view.passages(np.array([passage.node for passage in looked_at], np.int64))
    best = max((passage.tiers[VECTOR] for passage in looked_at if VECTOR in passage.tiers), default=None)
    scores = [passage.score for passage in passages[:6]]
    lead = 1 - scores[-1] / scores[0] if len(scores) > 1 and scores[0] > 0 else 1.0
    unknown = _share_unknown(view, question.text)
    return should_abstain(question, read, best, unknown=unknown, lead=lead, judge=judge)


def _share_unknown(view: MeteredView, text: str) -> float:
    """The share of a question's words that no passage holds.

    Words that any text uses ("get", "find") count as known: a small corpus lacks them by chance.
    """
    known = [word in TERM_BREAKERS or view.holds_word(word) for word in content_words(text)]
    return 0.0 if view.turn.expired() or not known else known.count(False) / len(known)


# Whether anything found supports an answer: a question whose names the corpus does not know gets none. Three signals
# of the passages that came first: the best cosine, how many of the question's key words any of them holds, and how many
# the best one holds together; and how many of its words no passage of the corpus has. A logistic rule weighs them
# (`models/fitted/abstain.json`, fitted by `benchmarks/fit_abstain.py`). Cosines of other models lie elsewhere, so for
# those (and where the question has no vector) the words decide alone. What a home learned from its own exam is added to
# the rule.
#
# How sure an answer is depends on two more things, which never make it abstain: whether the passages are about whom the
# question names, where titles say whose they are (what one speaker of a conversation did is no answer about the other),
# and how far the first passage is ahead of the sixth.
LOOKED_AT = 20  # passages; the rule was fitted on this number
KNOWN, UNKNOWN = 1.0, -4.0  # set by hand on seven manuals: what a question is worth of which the corpus knows all, none
SUREST = 4.0  # margins flatten out towards this: more words of the question say no more
NAMED, AHEAD = 0.7, 0.3  # how much is lost where no title is about whom the question names, and where none is ahead
TITLED = 0.25  # the share of titles with a name of the question from which on titles say whom a passage is about
CALIBRATED_MODEL = "all-MiniLM-L6-v2@"
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Support:
    """What speaks for answering. `margin` is above 0 where it suffices; `why` says it in a sentence."""

    held: float
    together: float
    margin: float
    why: str

    @property
    def should_abstain(self) -> bool:
        """Whether no answer is better than this one."""
        return self.margin < 0

    @property
    def confidence(self) -> float:
        """How likely the passages support an answer, in [0, 1]; .5 is where the rule begins to answer."""
        return 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, self.margin))))


def should_abstain(
    question: Question,
    passages: Sequence[Passage],
    similarity: float | None,
    *,
    unknown: float = 0.0,
    lead: float = 1.0,
    judge: Judge = BY_HAND,
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
    margin = judge.margin(margin, np.array([similarity or 0.0, held, together, unknown, 1.0]))
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
