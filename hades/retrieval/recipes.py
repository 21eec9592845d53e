"""What each recipe does in the graph: from seeds to paths and passages, in numbers, inside the open
stage.

Every step is a function of the same shape, so a recipe is a line of `core/types.py` and a function
here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import (
    AUTO,
    HIRAG_PATHRAG,
    NAMES,
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
from hades.retrieval.search.default_search import search_evidence
from hades.retrieval.search.memory_search import recollect
from hades.retrieval.search.near_document import search_placed
from hades.retrieval.search.walk_search import MULTI_HOP, HippoRules, WalkCaps, hippo_search
from hades.retrieval.walks.beam import BeamRules, join, search_beam
from hades.retrieval.walks.best_paths import get_best_paths
from hades.retrieval.walks.flow import (
    FlowRules,
    Span,
    distinct_paths,
    flow_paths,
    join_named,
    within_fanout,
)
from hades.retrieval.walks.neighbourhood import explain_passages, neighbourhood
from hades.settings.tree import HippoSettings, HiragPathrag
from schemas.plan import Plan, Reason

TOPIC_MEMBERS = 50  # best members of the topics that look for passages


@dataclass(frozen=True)
class Start:
    """What a step may use: the seeds, those of them that paths can leave from, and where topics
    narrowed to.

    `explains` is False where passages of another search join before paths to them are looked for.
    `least_paths` asks for more paths than explain passages, where there are any.
    """

    seed_hits: SeedHits
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
    least_paths: int = 0


Step = Callable[["MeteredView", Question, Start], StepResult]


def _beam(
    view: MeteredView,
    question: Question,
    start: Start,
) -> StepResult:
    """Paths that join seeds inside the candidate graph, precomputed bridges first, then a beam in
    the room left.

    Both together keep no more than the plan's beam, whatever the depth or sub-query (X-31).
    """
    graph = start.plan.graph
    joining = _join_seeds(view, question, start)
    room = graph.beam - len(joining.paths)
    rules = BeamRules(
        hops=graph.hops,
        fanout=graph.fanout,
        beam=room,
        weights=start.rules.beam_terms,
    )
    grown = StepResult()

    if room:
        grown = search_beam(
            view,
            question,
            start.starts,
            rules,
            candidate_graph=start.candidates,
        )

    candidates = (*joining.paths, *grown.paths)
    ranked = distinct_paths(sorted(candidates, key=lambda path: (-path.score, path.edges)))
    paths = within_fanout(view, ranked, graph.fanout)
    return StepResult(
        tuple(paths),
        coverage=join(paths, start.starts),
        candidates=len(joining.paths) + grown.candidates,
        repeats=len(candidates) - len(ranked) + grown.repeats,
        bridges=joining.bridges,
    )


def _join_seeds(
    view: MeteredView,
    question: Question,
    start: Start,
) -> StepResult:
    """Paths between seeds, for which at most half of the beam's room is.

    Their score, a mean of logarithms, is taken back to [0, 1], where those of the beam lie.
    """
    graph = start.plan.graph
    if start.candidates is None or len(start.starts) < 2 or graph.beam < 2 or view.turn.expired():
        return StepResult()

    best = get_best_paths(
        view,
        start.candidates,
        graph.beam // 2,
        graph.hops,
        seeds=start.starts,
        mask=question.mask,
        rules=start.rules.path,
    )
    paths = [replace(path, score=math.exp(min(0.0, path.score))) for path in best.paths]
    return replace(best, paths=tuple(paths))


def _neighbourhood(
    view: MeteredView,
    question: Question,
    start: Start,
) -> StepResult:
    m = start.plan.reranker.m
    around = neighbourhood(
        view,
        question,
        start.seed_hits.seeds,
        limit=m,
        hops=start.plan.graph.hops,
    )
    return StepResult(
        passages=blend(view, start.seed_hits.passages, around, m),
        candidates=len(around),
    )


def _topics(
    view: MeteredView,
    question: Question,
    start: Start,
) -> StepResult:
    if start.candidates is None:
        return StepResult()

    m = start.plan.reranker.m
    nodes = start.candidates.nodes[:TOPIC_MEMBERS].tolist()
    scores = start.candidates.hscore[:TOPIC_MEMBERS].tolist()
    members = dict(zip(nodes, scores, strict=True))
    chunks = passages_of(view, question, members, limit=m)
    return StepResult(
        passages=blend(view, start.seed_hits.passages, chunks, m),
        candidates=len(members),
    )


def _flow(
    view: MeteredView,
    question: Question,
    start: Start,
) -> StepResult:
    flow = flow_paths(
        view,
        question,
        start.starts,
        flow_rules(start.plan, start.rules),
    )
    return replace(flow, coverage=join(flow.paths, start.starts))


def flow_rules(plan: Plan, rules: HiragPathrag) -> FlowRules:
    """How flow spreads by a plan; types of code, which have no factor of their own, count fully."""
    graph = plan.graph
    boosts = dict.fromkeys(PATH_TYPES, 1.0)

    for name, boost in rules.path.relation_boost.items():
        boosts[str(name)] = boost

    return FlowRules(
        graph.hops,
        max_paths=graph.beam,
        fanout=graph.fanout,
        boosts=boosts,
    )


def _pagerank(
    view: MeteredView,
    question: Question,
    start: Start,
    rules: HippoRules = HippoRules(),
) -> StepResult:
    return _judge(*hippo_search(view, question, _cap(rules, start)), start)


def _cap(rules: HippoRules, start: Start) -> HippoRules:
    return replace(
        rules,
        walk=start.walk,
        limit=start.plan.reranker.m,
        caps=WalkCaps.of(start.plan),
    )


def _judge(
    passages: Sequence[FoundPassage],
    entities: Sequence[Seed],
    start: Start,
) -> StepResult:
    """Passages that a walk has read and judged; what it did not reach keeps the seeds' own."""
    if not passages:
        return StepResult()

    coverage = _share_among(entities, {seed.node for seed in start.starts})
    return StepResult(
        passages=passages,
        is_ranked=True,
        coverage=coverage,
        candidates=len(passages),
    )


def _share_among(seeds: Sequence[Seed], nodes: Collection[int]) -> float:
    if seeds:
        return sum(seed.node in nodes for seed in seeds) / len(seeds)
    return 0.0


def _fusion(
    view: MeteredView,
    question: Question,
    start: Start,
) -> StepResult:
    mode = MODES[start.mode]
    if Tier.BAYES in mode.tiers:
        beliefs = start.beliefs()
    else:
        beliefs = Beliefs()

    passages = nexus(
        view,
        question,
        start.mode,
        beliefs,
        start.walk,
        WalkCaps.of(start.plan),
    )
    # The mode may ask for more passages than the plan lets an answer hold.
    if len(passages) > start.plan.final_context:
        view.turn.because(Reason.CAP_EXCEEDED)

    return _judge(passages[: start.plan.reranker.m], (), start)


def _recollection(
    view: MeteredView,
    question: Question,
    start: Start,
) -> StepResult:
    """What was read at a moment is all there is: passages of the seeds may be of a later one."""
    passages = recollect(view, question, start.plan.reranker.m)
    return StepResult(
        passages=passages,
        is_ranked=True,
        coverage=float(bool(passages)),
        candidates=len(passages),
    )


def _every_channel(
    view: MeteredView,
    question: Question,
    start: Start,
) -> StepResult:
    """Candidates of every channel, ranked once, and the paths that explain the first of them.

    A question that is asked from somewhere is answered from there.
    """
    m = start.plan.reranker.m
    if question.near:
        ranked = search_placed(view, question, m)
        sources = list(start.starts)
        seeds = start.seed_hits.seeds
        why = "asked from a place in the graph"
    else:
        walk = _cap(HippoRules(), start)
        evidence = search_evidence(
            view,
            start.parts or (question,),
            m,
            pick_candidates,
            walk,
        )
        with view.turn.limit(start.plan.reranker.timeout_ms):
            ranked = rank_evidence(question, evidence, start.judge, m)

        sources = evidence.entities
        seeds = tuple(evidence.starts)
        why = evidence.why

    if not ranked:
        return StepResult(why=why)

    ranking = StepResult(
        (),
        ranked,
        is_ranked=True,
        candidates=len(ranked),
        why=why,
        sources=sources,
        seeds=seeds,
    )
    if not start.explains:
        return ranking

    return explain_first(
        view,
        question,
        ranking,
        start.plan,
        start.rules,
        least_paths=start.least_paths,
    )


def explain_first(
    view: MeteredView,
    question: Question,
    result: StepResult,
    plan: Plan,
    rules: HiragPathrag,
    least_paths: int = 0,
) -> StepResult:
    """The result with the paths that join what the question names and those that lead to its first
    passages.

    At most half of the room for paths is for those that join.
    """
    ranked = result.passages or ()
    first = list(ranked[: min(plan.graph.beam, plan.final_context)])

    if len(first) < min(len(ranked), plan.final_context):
        view.turn.trimmed(Reason.CAP_EXCEEDED)

    read_passages = view.passages(np.array([passage.node for passage in first], np.int64))
    flow = flow_rules(plan, rules)
    k = plan.retriever.k
    named_seeds, places = _named_seeds(view, question, result.sources)
    joins = join_named(
        view,
        question,
        named_seeds[:k],
        flow,
        places,
    )
    joining_limit = max(1, plan.graph.beam // 2)

    joining = []
    for path in joins[:joining_limit]:
        joining.append(replace(path, score=ranked[0].score))

    paths, passages = explain_passages(
        view,
        question,
        result.sources,
        ranked,
        read_passages,
        rules=flow,
        most_starts=k,
        joining=joining,
        least=least_paths,
    )
    joined = set().union(*(path.nodes for path in paths))
    coverage = _share_among(result.sources, joined)
    return replace(
        result,
        paths=paths,
        passages=passages,
        coverage=coverage,
    )


def _named_seeds(
    view: MeteredView,
    question: Question,
    sources: Sequence[Seed],
) -> tuple[list[Seed], dict[int, Span]]:
    """What the question names, and where it spells each: also what no passage mentions, such as the
    author of a paper.

    Of a question that spells two capitalised names, these alone. Nothing of one that is asked from
    a place in the graph.
    """
    if question.near:
        return [], {}

    known = {seed.node: seed for seed in sources}
    spelled = view.match_names(question.text)
    spans = zip(spelled.starts.tolist(), spelled.ends.tolist(), strict=True)
    places = dict(zip(spelled.numbers.tolist(), spans, strict=True))

    capitals = set()
    for node, span in places.items():
        if not question.text[span[0]].islower():
            capitals.add(node)

    if len({places[node] for node in capitals}) > 1:
        places = {node: places[node] for node in capitals}

    seeds = []
    for seed in sources:
        if seed.node in places:
            seeds.append(seed)

    seeds += [Seed(node, 1.0, {NAMES: 1.0}) for node in places if node not in known]
    return seeds, places


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
