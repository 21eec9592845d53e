"""What each recipe does in the graph: from seeds to paths and passages, in numbers, inside the open stage.

Every step is a function of the same shape, so a recipe is a line of `core/types.py` and a function here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import (
    AUTO,
    HIRAG_PATHRAG,
    NEXUS,
    PATHRAG,
    CandidateGraph,
    FoundPassage,
    Question,
    Seed,
    SeedHits,
    StepResult,
    blend,
)
from hades.retrieval.core.words import PATH_TYPES
from hades.retrieval.ranking.default_ranking import pick_candidates, rank_evidence
from hades.retrieval.ranking.feedback import MODES, Beliefs, Tier, nexus
from hades.retrieval.ranking.judge import BY_HAND, Judge
from hades.retrieval.search.code_passages import passages_of
from hades.retrieval.search.dated_passages import recollect
from hades.retrieval.search.default_search import search_evidence
from hades.retrieval.search.near_document import search_placed
from hades.retrieval.search.walk_search import MULTI_HOP, HippoRules, WalkCaps, hippo_search
from hades.retrieval.walks.beam import BeamRules, join, search_beam
from hades.retrieval.walks.best_paths import get_best_paths
from hades.retrieval.walks.flow import FlowRules, distinct_paths, flow_paths, within_fanout
from hades.retrieval.walks.neighbourhood import explain_passages, neighbourhood
from hades.settings.tree import HippoSettings, HiragPathrag
from schemas.plan import Plan, Reason

TOPIC_MEMBERS = 50  # best members of the topics that look for passages


@dataclass(frozen=True)
class Start:
    """What a step may use: the seeds, those of them that paths can leave from, and where topics narrowed to.

    `explains` is False where passages of another search join before paths to them are looked for.
    """

    found: SeedHits
    starts: Sequence[Seed]
    candidates: CandidateGraph | None
    plan: Plan
    rules: HiragPathrag
    mode: str
    beliefs: Callable[[], Beliefs] = Beliefs
    judge: Judge = BY_HAND
    parts: Sequence[Question] = ()
    walk: HippoSettings = field(default_factory=HippoSettings)
    explains: bool = True


Step = Callable[["MeteredView", Question, Start], StepResult]


def _beam(view: MeteredView, question: Question, start: Start) -> StepResult:
    """Paths that join seeds inside the candidate graph, precomputed bridges first, then a beam in the room left.

    Both together keep no more than the plan's beam, whatever the depth or sub-query (X-31).
    """
    graph = start.plan.graph
    joining = _join_seeds(view, question, start)
    room = graph.beam - len(joining.paths)
    rules = BeamRules(hops=graph.hops, fanout=graph.fanout, beam=room, weights=start.rules.beam_terms)
    grown = search_beam(view, question, start.starts, rules, within=start.candidates) if room else StepResult()
    every = (*joining.paths, *grown.paths)
    ranked = distinct_paths(sorted(every, key=lambda path: (-path.score, path.edges)))
    paths = within_fanout(view, ranked, graph.fanout)
    return StepResult(
        tuple(paths),
        coverage=join(paths, start.starts),
        candidates=len(joining.paths) + grown.candidates,
        repeats=len(every) - len(ranked) + grown.repeats,
        bridges=joining.bridges,
    )


def _join_seeds(view: MeteredView, question: Question, start: Start) -> StepResult:
    """Paths between seeds, for which at most half of the beam's room is.

    Their score, a mean of logarithms, is taken back to [0, 1], where those of the beam lie.
    """
    graph = start.plan.graph
    if start.candidates is None or len(start.starts) < 2 or graph.beam < 2 or view.turn.expired():
        return StepResult()
    rules, most = start.rules.path, graph.beam // 2
    best = get_best_paths(view, start.candidates, most, graph.hops, seeds=start.starts, mask=question.mask, rules=rules)
    return replace(best, paths=tuple(replace(path, score=math.exp(min(0.0, path.score))) for path in best.paths))


def _neighbourhood(view: MeteredView, question: Question, start: Start) -> StepResult:
    m = start.plan.reranker.m
    around = neighbourhood(view, question, start.found.seeds, limit=m, hops=start.plan.graph.hops)
    return StepResult(passages=blend(view, start.found.passages, around, m), candidates=len(around))


def _topics(view: MeteredView, question: Question, start: Start) -> StepResult:
    if start.candidates is None:
        return StepResult()
    best, m = slice(0, TOPIC_MEMBERS), start.plan.reranker.m
    members = dict(zip(start.candidates.nodes[best].tolist(), start.candidates.hscore[best].tolist(), strict=True))
    named = passages_of(view, question, members, limit=m)
    return StepResult(passages=blend(view, start.found.passages, named, m), candidates=len(members))


def _flow(view: MeteredView, question: Question, start: Start) -> StepResult:
    found = flow_paths(view, question, start.starts, flow_rules(start.plan, start.rules))
    return replace(found, coverage=join(found.paths, start.starts))


def flow_rules(plan: Plan, rules: HiragPathrag) -> FlowRules:
    """How flow spreads by a plan; types of code, which have no factor of their own, count fully."""
    graph, boosts = plan.graph, {str(name): boost for name, boost in rules.path.relation_boost.items()}
    return FlowRules(
        graph.hops, max_paths=graph.beam, fanout=graph.fanout, boosts=dict.fromkeys(PATH_TYPES, 1.0) | boosts
    )


def _pagerank(view: MeteredView, question: Question, start: Start, rules: HippoRules = HippoRules()) -> StepResult:
    return _judge(*hippo_search(view, question, _cap(rules, start)), start)


def _cap(rules: HippoRules, start: Start) -> HippoRules:
    return replace(rules, walk=start.walk, limit=start.plan.reranker.m, caps=WalkCaps.of(start.plan))


def _judge(passages: Sequence[FoundPassage], entities: Sequence[Seed], start: Start) -> StepResult:
    """Passages that a walk has read and judged; what it did not reach keeps the seeds' own."""
    if not passages:
        return StepResult()
    known = {seed.node for seed in start.starts}
    met = sum(one.node in known for one in entities) / len(entities) if entities else 0.0
    return StepResult(passages=passages, is_ranked=True, coverage=met, candidates=len(passages))


def _fusion(view: MeteredView, question: Question, start: Start) -> StepResult:
    mode = MODES[start.mode]
    beliefs = start.beliefs() if Tier.BAYES in mode.tiers else Beliefs()
    found = nexus(view, question, start.mode, beliefs, start.walk, WalkCaps.of(start.plan))
    if len(found) > start.plan.final_context:  # the mode asks for more passages than the plan lets an answer hold
        view.turn.because(Reason.CAP_EXCEEDED)
    return _judge(found[: start.plan.reranker.m], (), start)


def _recollection(view: MeteredView, question: Question, start: Start) -> StepResult:
    """What was read at a moment is all there is: passages of the seeds may be of a later one."""
    found = recollect(view, question, start.plan.reranker.m)
    return StepResult(passages=found, is_ranked=True, coverage=float(bool(found)), candidates=len(found))


def _every_channel(view: MeteredView, question: Question, start: Start) -> StepResult:
    """Candidates of every channel, ranked once, and the paths that explain the first of them.

    A question that is asked from somewhere is answered from there.
    """
    m, seeds = start.plan.reranker.m, tuple(start.found.seeds)
    if question.near:
        ranked, sources, why = search_placed(view, question, m), list(start.starts), "asked from a place in the graph"
    else:
        walk = _cap(HippoRules(), start)
        evidence = search_evidence(view, start.parts or (question,), m, pick_candidates, walk)
        with view.turn.limit(start.plan.reranker.timeout_ms):
            ranked = rank_evidence(question, evidence, start.judge, m)
        sources, why, seeds = evidence.entities, evidence.why, tuple(evidence.starts)
    if not ranked:
        return StepResult(why=why)
    found = StepResult((), ranked, is_ranked=True, candidates=len(ranked), why=why, sources=sources, seeds=seeds)
    return explain_first(view, question, found, start.plan, start.rules) if start.explains else found


def explain_first(
    view: MeteredView, question: Question, found: StepResult, plan: Plan, rules: HiragPathrag
) -> StepResult:
    """The result with the paths that lead to its first passages."""
    ranked = found.passages or ()
    first = list(ranked[: min(plan.graph.beam, plan.final_context)])
    if len(first) < min(len(ranked), plan.final_context):
        view.turn.trimmed(Reason.CAP_EXCEEDED)
    read = view.passages(np.array([one.node for one in first], np.int64))
    flow, k = flow_rules(plan, rules), plan.retriever.k
    paths, passages = explain_passages(view, question, found.sources, ranked, read, flow, k)
    joined = {node for path in paths for node in path.nodes}
    met = sum(one.node in joined for one in found.sources) / len(found.sources) if found.sources else 0.0
    return replace(found, paths=paths, passages=passages, coverage=met)


# By recipe; one without a step stays out of the graph.
STEPS: dict[str, Step] = {
    AUTO: _every_channel,
    "graphrag": _neighbourhood,
    "hirag": _topics,
    PATHRAG: _flow,
    HIRAG_PATHRAG: _beam,
    "hipporag": _pagerank,
    "hipporag_multihop": partial(_pagerank, rules=MULTI_HOP),
    NEXUS: _fusion,
    "memory": _recollection,
}
