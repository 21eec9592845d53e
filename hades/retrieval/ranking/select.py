"""What goes into the answer, and whether anything found supports one."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import compress
from typing import TypeVar

import numpy as np

from hades.budget import Turn
from hades.ports.graph import Passage
from hades.retrieval.answer.assemble import flow_of, shares_of
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import (
    VECTOR,
    FoundPassage,
    FoundPath,
    Question,
    Recipe,
    SeedHits,
    StepResult,
    blend,
)
from hades.retrieval.core.words import content_words, fitted_file, passage_body, stem, words
from hades.retrieval.features.unknown_terms import UnknownTerms, find_unknown_terms
from hades.retrieval.ranking.judge import BY_HAND, Judge, rerank, rerank_paths
from hades.retrieval.search.code_passages import passages_of
from hades.retrieval.walks.flow import DECAY_RATE, PRUNING_THRESHOLD
from hades.text.word_lists import TERM_BREAKERS
from models.weights import propensities, swap_places
from schemas.plan import Plan, Reason

# What comes after them in a ranking is no cut: nobody would have seen it.
USUAL_RESULTS = Plan().final_context


@dataclass(frozen=True)
class Selection:
    """What will be shown, best first; `doubt` says why it is too weak, where nothing supports an
    answer.

    `confidence` is how likely it supports an answer; None where the recipe does not judge that.
    """

    paths: tuple[FoundPath, ...] = ()
    passages: tuple[FoundPassage, ...] = ()
    doubt: str = ""
    confidence: float | None = None


def select(
    view: MeteredView,
    question: Question,
    seed_hits: SeedHits,
    step_result: StepResult,
    recipe: Recipe,
    plan: Plan,
    *,
    max_paths: int | None,
    must_support: bool,
    has_ranked_paths: bool = False,
    is_remembered: bool = False,
    anyway: bool = False,
    judge: Judge = BY_HAND,
    is_common: Callable[[str], bool] = bool,
) -> Selection:
    """Rerank in the stage's time, then cut to `final_context`.

    `must_support`: where the passages are too weak to answer from, the nearest are shown with the
    doubt, without paths unless these are wanted `anyway`. Where memory answers (`is_remembered`),
    weak documents are left out. `is_common` says of a word whether any text may use it.
    """
    turn = view.turn
    with turn.stage("rerank", plan.reranker.timeout_ms) as stage:
        passages = _candidate_passages(
            view,
            question,
            seed_hits,
            step_result,
            plan.reranker.m,
        )
        stage.taken = len(step_result.paths) + len(passages) + stage.repeats
        if recipe.reranks and not step_result.is_ranked and not turn.expired():
            passages = _rerank_by_half(
                view,
                question,
                passages,
                plan.reranker.m,
            )

        paths = list(step_result.paths)
        has_order = step_result.is_ranked or has_ranked_paths
        if paths and not has_order and not turn.expired():
            texts = _path_texts(view, paths[: plan.reranker.m])
            paths = rerank_paths(question, paths, texts)

        if must_support:
            support = _support(view, question, passages, judge, is_common)
        else:
            support = None

        selection = _cut(turn, paths, passages, plan, max_paths)
        is_doubted = support is not None and not support.suffices
        if turn.is_cut_short:
            verdict = Reason.UNFINISHED
        else:
            verdict = Reason.ABSTAINED

        if is_doubted and not anyway:
            if is_remembered:
                selection = Selection()
            else:
                selection = replace(selection, paths=())

        if support is not None and not is_remembered:
            doubt = f"{verdict}: {support.why}" if is_doubted else ""
            selection = replace(
                selection,
                doubt=doubt,
                confidence=support.confidence,
            )

        stage.given = len(selection.paths) + len(selection.passages)
        stage.coverage = min(1.0, stage.given / plan.final_context)

    if is_doubted and not is_remembered:
        turn.because(verdict)
    if seed_hits.seeds and not is_doubted and not stage.given:
        turn.because(Reason.NO_PATHS)

    return selection


def _candidate_passages(
    view: MeteredView,
    question: Question,
    seed_hits: SeedHits,
    step_result: StepResult,
    m: int,
) -> list[FoundPassage]:
    """Passages of the step; or those of the seeds with the texts that the paths were read from."""
    if step_result.passages is not None:
        return list(step_result.passages[:m])
    if not step_result.paths:
        return list(seed_hits.passages)

    path_passages = passages_of(
        view,
        question,
        {},
        step_result.paths,
        limit=m,
    )
    path_nodes = {passage.node for passage in path_passages}
    seed_nodes = {passage.node for passage in seed_hits.passages}
    view.turn.current.repeats = len(path_nodes & seed_nodes)
    return blend(view, seed_hits.passages, path_passages, m)


def _rerank_by_half(
    view: MeteredView,
    question: Question,
    passages: list[FoundPassage],
    m: int,
) -> list[FoundPassage]:
    """Rerank the best `m` with half of the reads; the other half is for what is shown."""
    rerank_count = min(m, len(passages))
    half = view.turn.reads_left // 2

    if half < rerank_count:
        view.turn.trimmed(Reason.BUDGET_DOCS)

    return rerank(
        view,
        question,
        passages,
        min(rerank_count, half),
    )


def _path_texts(view: MeteredView, paths: Sequence[FoundPath]) -> list[str]:
    """The words of each path, of as many paths as may be read."""
    texts: list[str] = []
    for _, nodes, edges in view.path_facts(paths):
        parts = [node.name for node in nodes]
        parts += [f"{edge.type} {edge.label} {edge.snippet}" for edge in edges]
        texts.append(" ".join(parts))

    return texts


def _cut(
    turn: Turn,
    paths: Sequence[FoundPath],
    passages: Sequence[FoundPassage],
    plan: Plan,
    max_paths: int | None,
) -> Selection:
    """The best paths and passages, as many as the plan shows; a cut leaves its reason."""
    if len(paths) > plan.graph.beam:
        turn.trimmed(Reason.CAP_EXCEEDED)

    if max_paths is None:
        most_paths = plan.graph.beam
    else:
        most_paths = min(max_paths, plan.graph.beam)

    if plan.final_context < min(USUAL_RESULTS, max(len(paths[:most_paths]), len(passages))):
        turn.because(Reason.CONTEXT_FULL)

    shown_paths = _level_scores(paths[: min(most_paths, plan.final_context)])
    return Selection(shown_paths, tuple(passages[: plan.final_context]))


def _level_scores(paths: Sequence[FoundPath]) -> tuple[FoundPath, ...]:
    """The paths with scores that never rise with rank: a later path counts at most what the one
    before it does.
    """
    lowest = float("inf")

    leveled = []
    for path in paths:
        lowest = min(lowest, path.score)
        leveled.append(replace(path, score=lowest))

    return tuple(leveled)


def _support(
    view: MeteredView,
    question: Question,
    passages: Sequence[FoundPassage],
    judge: Judge,
    is_common: Callable[[str], bool],
) -> Support:
    """How far the best passages support an answer."""
    best = passages[:LOOKED_AT]
    texts = view.passages(np.array([passage.node for passage in best], np.int64))

    cosines = []
    for passage in best:
        if VECTOR in passage.tiers:
            cosines.append(passage.tiers[VECTOR])

    best_cosine = max(cosines, default=None)
    scores = [passage.score for passage in passages[:6]]
    if len(scores) > 1 and scores[0] > 0:
        lead = 1 - scores[-1] / scores[0]
    else:
        lead = 1.0

    unknown = _share_unknown(view, question.text)
    unknown_terms = UnknownTerms()
    if not view.turn.expired():
        named_words = _named_words(view, question.text)
        unknown_terms = find_unknown_terms(
            question.text,
            texts,
            lambda word: word in named_words or view.holds_word(word),
            is_common,
        )

    return weigh_support(
        question,
        texts,
        best_cosine,
        unknown=unknown,
        lead=lead,
        unknown_terms=unknown_terms,
        judge=judge,
    )


def _named_words(view: MeteredView, text: str) -> set[str]:
    """The words of a text that are part of a name in the graph, also one that was given by hand."""
    matches = view.match_names(text)
    spans = zip(matches.starts.tolist(), matches.ends.tolist(), strict=True)
    names = " ".join(text[start:end] for start, end in spans)
    return set(_WORD.findall(names.lower()))


def _share_unknown(view: MeteredView, text: str) -> float:
    """The share of a question's words that no passage holds.

    Words that any text uses ("get", "find") count as known: a small corpus lacks them by chance.
    """
    known = []
    for word in content_words(text):
        known.append(word in TERM_BREAKERS or view.holds_word(word))

    if view.turn.expired() or not known:
        return 0.0

    return known.count(False) / len(known)


# Whether anything found supports an answer: a question whose names the corpus does not know gets
# none. Three signals of the passages that came first: the best cosine, how many of the question's
# key words any of them holds, and how many the best one holds together; and how many of its words
# no passage of the corpus has. A logistic rule weighs them
# (`models/fitted/abstain.json`, fitted by `benchmarks/fit_abstain.py`). Cosines of other models lie
# elsewhere, so for those (and where the question has no vector) the words decide alone. What a home
# learned from its own exam is added to the rule.
# How sure an answer is depends on two more things, which never make it abstain: whether the
# passages are about whom the question names, where titles say whose they are (what one speaker of a
# conversation did is no answer about the other), and how far the first passage is ahead of the
# sixth.
LOOKED_AT = 20  # passages; the rule was fitted on this number
# Set by hand on seven manuals: what a question is worth of which the corpus knows all, or none.
KNOWN, UNKNOWN = 1.0, -4.0
# What it costs that a question is about something that no passage names, times how far it is.
UNKNOWN_TERM_COST = 14.0
SUREST = 4.0  # margins flatten out towards this: more words of the question say no more
# How much is lost where no title is about whom the question names, and where none is ahead.
NAMED, AHEAD = 0.7, 0.3
# the share of titles with a name of the question from which on titles say whom a passage is about
TITLED = 0.25
CALIBRATED_MODEL = "all-MiniLM-L6-v2@"
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Support:
    """What speaks for answering. `margin` is above 0 where it suffices; `why` says it in a
    sentence.
    """

    key_word_share: float
    best_passage_share: float
    margin: float
    why: str

    @property
    def suffices(self) -> bool:
        """Whether this answer is better than none."""
        return self.margin >= 0

    @property
    def confidence(self) -> float:
        """How likely the passages support an answer, in [0, 1]; .5 is where the rule begins to
        answer.
        """
        return 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, self.margin))))


def weigh_support(
    question: Question,
    passages: Sequence[Passage],
    similarity: float | None,
    *,
    unknown: float = 0.0,
    lead: float = 1.0,
    unknown_terms: UnknownTerms = UnknownTerms(),
    judge: Judge = BY_HAND,
) -> Support:
    """What the best passages, given best first, say for an answer.

    `similarity` is the best cosine found, None without vectors.

    `unknown` is the share of the question's words that the whole corpus lacks, `lead` how far the
    first is ahead, `unknown_terms` what it asks about that nothing names.
    """
    if not passages:
        return Support(0.0, 0.0, -1.0, "nothing was found")

    keys = key_words(question.text)
    bodies = []
    for passage in passages[:LOOKED_AT]:
        bodies.append(passage_body(passage.title, passage.text))

    stems_by_passage = []
    for body in bodies:
        stems_by_passage.append(set(map(base, body.stems)))

    key_share = _share(keys, set().union(*stems_by_passage))
    best_share = max(_share(keys, stems) for stems in stems_by_passage)
    is_calibrated = similarity is not None and question.model.startswith(CALIBRATED_MODEL)
    rule = fitted_file("abstain")["with_vectors" if is_calibrated else "without_vectors"]
    margin = rule["bias"] + rule["held"] * key_share + rule["together"] * best_share

    if is_calibrated and similarity is not None:
        margin += rule["similarity"] * similarity + KNOWN + UNKNOWN * unknown

    signals = np.array([similarity or 0.0, key_share, best_share, unknown, 1.0])
    margin = judge.margin(margin, signals) - UNKNOWN_TERM_COST * unknown_terms.share
    if margin > 0:
        about_share = 1 - NAMED * (1 - _share_about(question.text, passages))
        ahead_share = 1 - AHEAD * (1 - lead)
        margin = SUREST * math.tanh(margin / SUREST) * (about_share * ahead_share)

    if similarity is None:
        cosine = ""
    else:
        cosine = f"best cosine {similarity:.2f}, "

    why = cosine + f"{key_share:.0%} of the key words found, {best_share:.0%} in one passage"
    if unknown:
        why += f", {unknown:.0%} of all words in no passage"
    if unknown_terms.words:
        why += f", no passage names {', '.join(unknown_terms.words)}"

    return Support(key_share, best_share, margin, why)


def key_words(question: str) -> list[str]:
    """Stems of the names and numbers in a question; where it has none, of its content words."""
    chosen = _names(question) or content_words(question)
    return list(dict.fromkeys(base(stem(word)) for word in chosen))


def base(stemmed: str) -> str:
    """A stem without the e that other forms of the word lack, so that "decide" is in a passage with
    "decided".
    """
    return stemmed.removesuffix("e")


def _names(question: str) -> list[str]:
    """The content words that are names or numbers."""
    names: set[str] = set()
    for spelling in _WORD.findall(question)[1:]:  # the first word has a capital for its place
        if spelling[0].isupper() or spelling[0].isdigit():
            names.update(words(spelling))

    return [word for word in content_words(question) if word in names]


def _share_about(question: str, passages: Sequence[Passage]) -> float:
    """How many of the first passages have a name of the question in their title, the first counting
    most.

    All of them where the question has no name, or where titles seldom are names.
    """
    names = set()
    for word in _names(question):
        if not word.isdigit():
            names.add(stem(word))

    titles = []
    for passage in passages[:LOOKED_AT]:
        titles.append(set(map(stem, words(passage.title))))

    is_about = [not names.isdisjoint(title) for title in titles]
    if sum(is_about) < TITLED * len(is_about):
        return 1.0

    weights = [1 / rank for rank in range(1, len(is_about) + 1)]
    return sum(compress(weights, is_about)) / sum(weights)


def _share(keys: Sequence[str], stems: AbstractSet[str]) -> float:
    """How many of the keys are among the stems; all of them where there are no keys."""
    if keys:
        return sum(key in stems for key in keys) / len(keys)
    return 1.0


# Reliability as an order: an option of every recipe that finds paths, with the formula of
# `calculate_path_score`. The first node of a path gives out one unit; each edge passes on its share
# of what its tail received, times the decay. The mean over the edges is the reliability that every
# answer reports; here it must reach the threshold, and it orders.


@dataclass(frozen=True)
class FlowPruning:
    """How much flow each hop passes on, and how much a path must carry."""

    decay_rate: float = DECAY_RATE
    threshold: float = PRUNING_THRESHOLD


def prune_by_flow(
    view: MeteredView,
    paths: Sequence[FoundPath],
    rule: FlowPruning,
) -> tuple[FoundPath, ...]:
    """The paths whose reliability reaches the threshold, most reliable first, of those that may be
    read.

    Where paths join what the question names, the start of any other path gives out less, so that
    none of these is more reliable than the best that joins.
    """
    reliable_paths = []
    for path, nodes, edges in view.path_facts(paths):
        shares = shares_of(path, nodes, edges)
        reliability = flow_of(shares, rule.decay_rate)
        if reliability >= rule.threshold:
            path = replace(
                path,
                score=reliability,
                reliability=reliability,
                shares=shares,
            )
            reliable_paths.append(path)

    best = max((path.reliability for path in reliable_paths if path.joins_named), default=1.0)
    lowered = [path if path.joins_named else _lower(path, best) for path in reliable_paths]
    return tuple(
        sorted(
            lowered,
            key=lambda path: (-path.reliability, not path.joins_named),
        )
    )


def _lower(path: FoundPath, most: float) -> FoundPath:
    """The path with at most this reliability: all of its flow passes through its first edge."""
    if path.reliability <= most:
        return path

    first, *later = path.shares
    shares = (first * most / path.reliability, *later)
    return replace(
        path,
        score=most,
        reliability=most,
        shares=shares,
    )


# Answers that now and then show neighbours the other way round, so that logs can tell what a rank
# does from what a result does. Off unless `learning.explore` is set; every result says with which
# chance it stands where it stands.
Result = TypeVar("Result", FoundPath, FoundPassage)


@dataclass(frozen=True)
class ExplorationRules:
    """The chance that two neighbours change places, and a seed; the same question of the same
    moment swaps the same.
    """

    share: float = 0.0
    seed: int = 0


def swap_some(
    selected: Selection,
    swapping: ExplorationRules,
    query_id: str,
) -> Selection:
    """What was selected, with some neighbours swapped and every propensity set."""
    return replace(
        selected,
        paths=_swap(
            selected.paths,
            swapping,
            f"{swapping.seed} {query_id} paths",
        ),
        passages=_swap(
            selected.passages,
            swapping,
            f"{swapping.seed} {query_id} passages",
        ),
    )


def _swap(
    results: Sequence[Result],
    swapping: ExplorationRules,
    name: str,
) -> tuple[Result, ...]:
    """The results with some neighbours swapped, by a seed that is made of the name."""
    digest = hashlib.sha256(name.encode()).digest()
    random = np.random.default_rng(int.from_bytes(digest[:8]))
    places = swap_places(1, len(results), swapping.share, random)[0]
    odds = propensities(places, swapping.share)
    return tuple(
        replace(results[place], propensity=float(propensity))
        for place, propensity in zip(places.tolist(), odds, strict=True)
    )
