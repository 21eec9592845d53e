"""One turn: embed, seeds, narrow, graph, rerank, pack; every stage inside the plan, every cut with its reason."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from hades.errors import HadesError
from hades.ports.text import Embedder, ProviderError, Tokenizer
from hades.ports.view import GraphView
from hades.retrieval.assemble import Shown, show
from hades.retrieval.bayes import Beliefs
from hades.retrieval.found import OPEN, FoundPassage, FoundPath, Question
from hades.retrieval.metered import MeteredView
from hades.retrieval.narrow import CandidateGraph, narrow
from hades.retrieval.pack import pack
from hades.retrieval.passages import passages_of
from hades.retrieval.plan import caps_of
from hades.retrieval.quick_counts import QuickCounts
from hades.retrieval.recipes import AUTO, DEFAULT, MODES, GraphStep, Recipe, recipe_named
from hades.retrieval.report import Asked, Turned, reported
from hades.retrieval.rerank import rerank, rerank_paths
from hades.retrieval.seeds import VECTOR, Found, entry_points, find_seeds
from hades.retrieval.steps import Reached, Start, blended, take_step
from hades.retrieval.subqueries import subqueries
from hades.settings.hirag import HiragPathrag
from hades.telemetry.turn import Turn
from schemas.intervals import Mask
from schemas.plan import Plan, Reason
from schemas.retrieval import Retrieval

_SHOWN_TOPICS = 8


class BadQuestion(HadesError):
    """A question that cannot be asked."""


@dataclass(frozen=True)
class Tools:
    """What answering needs beside the graph. Without an embedder the words search alone.

    `beliefs` are what judged answers taught, fetched when a recipe asks for them.
    """

    tokenizer: Tokenizer
    embedder: Embedder | None = None
    rules: HiragPathrag = field(default_factory=HiragPathrag)
    clock: Callable[[], float] = time.perf_counter
    beliefs: Callable[[], Beliefs] = Beliefs


def retrieve(
    view: GraphView,
    text: str,
    tools: Tools,
    *,
    at: datetime,
    recipe: str = DEFAULT,
    plan: Plan = Plan(),
    mask: Mask = OPEN,
    max_paths: int | None = None,
    mode: str = MODES[0],
    vector: NDArray[np.float32] | None = None,
) -> Retrieval:
    """Answer a question from the graph.

    `at` is when it was asked, for its id. A `vector` that the caller has already is not computed again; it must come
    from the embedder of the tools.
    """
    if not text.strip():
        raise BadQuestion("the question is empty; ask something")
    if mode not in MODES:
        raise BadQuestion(f"no mode is called {mode!r}; use one of {', '.join(MODES)}")
    turn = Turn(caps_of(plan), tools.clock)
    for reason in plan.reasons:
        turn.because(reason)
    if view.info.degraded_from is not None:
        turn.because(Reason.VIEW_DEGRADED)
    metered = MeteredView(view, turn)
    chosen, why = _chosen(metered, recipe, text)
    parts = embedded(metered, text, tools, chosen, plan, mask, vector)
    found = _seeded(metered, parts, plan, chosen)
    candidates, reached = _walked(metered, parts[0], found, chosen, plan, tools, mode)
    paths, passages = _reranked(metered, parts[0], found, reached, chosen, plan, max_paths)
    if recipe == AUTO and (unsupported := _unsupported(metered, parts[0], passages)):
        why, paths, passages = f"{why}; {unsupported}", [], []
    turned = _packed(metered, tools.tokenizer, parts[0], found, candidates, reached, paths, passages, plan)
    return reported(Asked(text, chosen.name, why, plan, mask, at), turn, view.info.snapshot, turned)


def embedded(
    view: MeteredView,
    text: str,
    tools: Tools,
    recipe: Recipe,
    plan: Plan,
    mask: Mask = OPEN,
    vector: NDArray[np.float32] | None = None,
) -> list[Question]:
    """The question and its sub-queries, with vectors where the recipe compares them and the graph has the like."""
    texts = subqueries(text, plan.q) if recipe.reranks else (text,)
    parts = [Question(part, mask=mask, subqueries=texts[1:] if place == 0 else ()) for place, part in enumerate(texts)]
    embedder = tools.embedder
    if not recipe.needs_vector or embedder is None:
        return parts
    with view.turn.stage("embed") as stage:
        model = embedder.model.tag
        stage.taken = len(parts)
        if not any(model in tags for tags in view.info.models.values()):
            return parts  # nothing to compare with; the seeds say so
        wanted = texts if vector is None else texts[1:]
        try:
            made = list(embedder.embed(wanted)) if wanted else []
        except ProviderError:
            return parts
        vectors = made if vector is None else [np.asarray(vector, np.float32), *made]
        stage.given, stage.coverage = len(vectors), 1.0
        return [replace(part, vector=one, model=model) for part, one in zip(parts, vectors, strict=True)]


def _chosen(view: MeteredView, recipe: str, text: str) -> tuple[Recipe, str]:
    if recipe != AUTO:
        return recipe_named(recipe), ""
    from hades.retrieval.route import route

    routed = route(text, view)
    return recipe_named(routed.recipe), routed.why


def _seeded(view: MeteredView, parts: Sequence[Question], plan: Plan, recipe: Recipe) -> Found:
    with view.turn.stage("seeds", plan.retriever.timeout_ms):
        found = find_seeds(view, parts, plan, recipe.searches)
    if not found.seeds:
        view.turn.because(Reason.NO_ENTITY_MATCH)
    return found


def _walked(
    view: MeteredView, question: Question, found: Found, recipe: Recipe, plan: Plan, tools: Tools, mode: str
) -> tuple[CandidateGraph | None, Reached]:
    """Narrow and go through the graph; both share the time of the graph stage. A plan without hops stays out of it."""
    if recipe.step is GraphStep.NOTHING or plan.graph.hops == 0:
        return None, Reached()
    left, candidates = float(plan.graph.timeout_ms), None
    if recipe.narrows:
        with view.turn.stage("narrow", left) as stage:
            candidates = narrow(view, question, tools.rules)
            stage.given = len(candidates.nodes) if candidates is not None else 0
            stage.coverage = min(1.0, stage.given / tools.rules.cand_cap)
        left = max(0.0, left - stage.ms)
    with view.turn.stage("graph", left) as stage:
        starts = entry_points(view, question, found.seeds, plan.retriever.k)
        if not starts:
            view.turn.because(Reason.NO_ENTITY_MATCH)
        stage.taken = len(starts)
        start = Start(found.seeds, starts, found.passages, candidates, plan, tools.rules, mode, tools.beliefs)
        reached = take_step(recipe.step, view, question, start)
        stage.taken += reached.candidates
        stage.given, stage.repeats, stage.coverage = len(reached.paths), reached.repeats, reached.coverage
    if recipe.finds_paths and not reached.paths:
        view.turn.because(Reason.NO_PATHS)
    return candidates, reached


def _reranked(
    view: MeteredView,
    question: Question,
    found: Found,
    reached: Reached,
    recipe: Recipe,
    plan: Plan,
    max_paths: int | None,
) -> tuple[list[FoundPath], list[FoundPassage]]:
    """The best m candidates looked at closely, then cut to what the answer may hold."""
    m = plan.reranker.m
    with view.turn.stage("rerank", plan.reranker.timeout_ms) as stage:
        passages = list(found.passages if reached.passages is None else reached.passages[:m])
        if reached.passages is None and reached.paths:
            along = passages_of(view, question, {}, reached.paths, limit=m)
            stage.repeats = len({one.node for one in along} & {one.node for one in passages})
            passages = blended(view, passages, along, m)
        paths = list(reached.paths)
        stage.taken = len(paths) + len(passages) + stage.repeats
        if recipe.reranks and not reached.is_ranked and not view.turn.expired():
            passages = rerank(view, question, passages, _affordable(view, m))
        if paths and not view.turn.expired():
            words = _path_words(view, paths[:m])
            paths = rerank_paths(question, paths, words, len(words))
        most = min(plan.final_context, plan.graph.beam if max_paths is None else min(max_paths, plan.graph.beam))
        paths, passages = paths[:most], passages[: plan.final_context]
        stage.given = len(paths) + len(passages)
        stage.coverage = min(1.0, stage.given / plan.final_context)
    return paths, passages


def _unsupported(view: MeteredView, question: Question, passages: Sequence[FoundPassage]) -> str:
    """Why nothing found supports an answer; empty when something does. Only passages that were read count."""
    from hades.retrieval.abstain import should_abstain

    similarities = [passage.tiers[VECTOR] for passage in passages if VECTOR in passage.tiers]
    read = view.passages(np.array([passage.node for passage in passages], np.int64))
    support = should_abstain(question, read, max(similarities, default=None))
    if support.should_abstain:
        view.turn.because(Reason.ABSTAINED)
    return f"abstained: {support.why}" if support.should_abstain else ""


def _affordable(view: MeteredView, m: int) -> int:
    """How many passages may be read to rank them: at most half of the reads left, the rest is for what is shown."""
    half = view.turn.reads_left // 2
    if half < m:
        view.turn.trimmed(Reason.BUDGET_DOCS)
    return min(m, half)


def _path_words(view: MeteredView, paths: Sequence[FoundPath]) -> list[str]:
    """The words of each path, as many as may be read."""
    texts: list[str] = []
    for path in paths:
        nodes, edges = view.nodes(np.array(path.nodes, np.int64)), view.edges(np.array(path.edges, np.int64))
        if len(nodes) < len(path.nodes) or len(edges) < len(path.edges) or view.turn.expired():
            break
        words = [*(node.name for node in nodes), *(f"{edge.type} {edge.label} {edge.snippet}" for edge in edges)]
        texts.append(" ".join(words))
    return texts


def _packed(
    view: MeteredView,
    tokenizer: Tokenizer,
    question: Question,
    found: Found,
    candidates: CandidateGraph | None,
    reached: Reached,
    paths: Sequence[FoundPath],
    passages: Sequence[FoundPassage],
    plan: Plan,
) -> Turned:
    """Read what is handed over and write the prompt."""
    with view.turn.stage("pack") as stage:
        stage.taken = len(paths) + len(passages)
        topics = () if candidates is None else candidates.topics[:_SHOWN_TOPICS]
        counts = QuickCounts(tokenizer)
        shown: Shown = show(view, counts, paths, passages, topics)
        packed = pack(
            counts,
            shown.paths,
            shown.passages,
            shown.topics,
            prompt_tokens=plan.budget.tokens_max,
            final_context=plan.final_context,
        )
        stage.given = len(packed.paths) + len(packed.passages)
        turned = Turned(found.seeds, candidates, tuple(paths), tuple(passages), shown, packed, reached.bridges)
        spoken, asked = turned.words_of(question.text)
        stage.coverage = spoken / asked if asked else 0.0
    return turned
