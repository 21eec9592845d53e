"""Vector, words, names, fused; topics (HiRAG)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import CHUNK, Flags, Hits, Kind, Numbers
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import (
    LEXICAL,
    NAMES,
    SEARCHES,
    SUPER_TOPIC,
    TOPIC,
    VECTOR,
    CandidateGraph,
    FoundPassage,
    FoundPath,
    NarrowedTopic,
    Question,
    RankFusion,
    Seed,
    SeedHits,
)
from hades.retrieval.core.words import ANY, IN, MENTIONS, OUT, PATH_TYPES, Relevance
from hades.retrieval.walks.beam import choose
from hades.settings.tree import HiragPathrag
from hades.snapshot.files import best
from models.arrays import unit_rows
from schemas.edges import ClusterEdgeType
from schemas.plan import Plan, Reason

# Where a turn starts: nodes found by vector, by text and by name, fused, spread out, and never more
# than k of them. Each search ranks by its own score; ranks are fused reciprocally, sum of weight /
# (60 + rank) (Cormack et al. 2009), because a cosine and a BM25 score mean nothing to each other.
# Ties fall to the key. Nothing is read here: candidates are numbers until somebody shows them.
READABLE = (Kind.CHUNK, Kind.FUNC)  # what can be shown as a passage
SOUGHT = (Kind.CHUNK, Kind.ENTITY, Kind.FUNC)
WEIGHTS = {
    VECTOR: 1.0,
    LEXICAL: 0.5,
    NAMES: 1.5,
}  # a name spelled out is meant; a shared word may be chance
CLAUSE_WEIGHT = 0.5  # of a sub-query against the whole question
POOL = 4  # candidates for each seed, for MMR to choose from
MENTIONED = 3  # entities of a chunk that may stand in for it
NO_HITS = Hits(np.empty(0, np.int64), np.empty(0, np.float32))


def find_seeds(
    view: MeteredView,
    parts: Sequence[Question],
    plan: Plan,
    searches: Sequence[str] = SEARCHES,
) -> SeedHits:
    """Search for the question and its sub-queries, which share the k seeds.

    Without vectors of the question's model the words search alone, and the reason says so.
    """
    possible = _possible_searches(view, parts[0], searches)
    fused, readable = _search(view, parts, plan, possible)
    stage = view.turn.current
    k = plan.retriever.k
    mmr = plan.retriever.mmr
    pool = fused.ranked(view, POOL * k)
    strength = fused.strengths()
    worth = readable.strengths()
    chosen = spread_seeds(
        view,
        parts[0],
        pool,
        strength,
        k=k,
        mmr=mmr,
    )
    seeds = tuple(
        Seed(
            number,
            strength[number],
            fused.origins[number],
        )
        for number in chosen
    )
    passages = tuple(
        FoundPassage(
            number,
            worth[number],
            readable.origins[number],
        )
        for number in readable.ranked(view, plan.reranker.m)
    )
    stage.given = len(seeds)
    stage.coverage = len(seeds) / k
    return SeedHits(seeds, passages)


def search_ahead(
    view: MeteredView,
    parts: Sequence[Question],
    plan: Plan,
    searches: Sequence[str],
) -> SeedHits:
    """The part of `find_seeds` that serves a step which chooses where it starts: what it will ask
    is found already.

    Entities are looked for by name only, and nothing is fused: no seeds come back.
    """
    question = parts[0]
    possible = _possible_searches(view, question, searches)

    if view.turn.expired():
        return SeedHits((), ())

    if NAMES in possible:
        named_count = len(_find_named(view, question.text))
    else:
        named_count = 0

    limit = max(plan.reranker.m, POOL * plan.retriever.k)
    numbers: list[int] = []
    for search in possible:
        if search != NAMES and not view.turn.expired():
            numbers += _hits(view, question, search, Kind.CHUNK, limit).numbers.tolist()

    stage = view.turn.current
    stage.taken = named_count + len(numbers)
    stage.repeats = len(numbers) - len(set(numbers))
    return SeedHits((), ())


def nearest_chunks(
    view: MeteredView,
    question: Question,
    limit: int,
) -> Hits | None:
    """Chunks by cosine; None where the question or the graph has no vector of the same model."""
    if question.vector is None or question.model not in view.info.models.get(Kind.CHUNK, ()):
        return None
    return view.nearest(
        question.vector,
        kind=Kind.CHUNK,
        model=question.model,
        limit=limit,
    )


def entry_points(
    view: MeteredView,
    question: Question,
    seeds: Sequence[Seed],
    k: int,
) -> list[Seed]:
    """Seeds that paths can leave from, at most k: a chunk is stood in for by the entities that it
    names.

    A path runs over relations, which chunks do not have. What a chunk lends is its score by the
    weight of the mention, shared among those it names.
    """
    nodes = np.array([seed.node for seed in seeds], np.int64)
    is_chunk = view.kinds(nodes) == CHUNK
    starts: dict[int, Seed] = {}

    chunks: list[Seed] = []
    for seed, is_text in zip(seeds, is_chunk.tolist(), strict=True):
        if is_text:
            chunks.append(seed)
        else:
            starts[seed.node] = seed

    if chunks and len(starts) < k and not view.turn.expired():
        expansion = view.expand(
            nodes[is_chunk],
            direction=OUT,
            types=[MENTIONS],
            fanout=MENTIONED,
            mask=question.mask,
        )
        per_chunk = np.bincount(expansion.row, minlength=len(chunks)).tolist()
        columns = (expansion.row, expansion.target, expansion.weight)

        for row, target, weight in zip(*(column.tolist() for column in columns), strict=True):
            score = chunks[row].score * min(1.0, weight) / per_chunk[row]
            start = starts.get(target)
            is_mention = start is not None and start.origins.keys() == {"mention"}

            if start is None or (is_mention and start.score < score):
                starts[target] = Seed(target, score, {"mention": score})

    return sorted(
        starts.values(),
        key=lambda seed: (-seed.score, seed.node),
    )[:k]


def _search(
    view: MeteredView,
    parts: Sequence[Question],
    plan: Plan,
    searches: Sequence[str],
) -> tuple[RankFusion, RankFusion]:
    """Every search for every part: fused over all kinds, and over what can be read."""
    fused = RankFusion()
    readable = RankFusion()
    stage = view.turn.current
    limit = max(plan.reranker.m, POOL * plan.retriever.k)

    for place, part in enumerate(parts):
        weight = 1.0 if place == 0 else CLAUSE_WEIGHT
        for search in searches:
            for kind in SOUGHT:
                if view.turn.expired():
                    return fused, readable

                hits = _hits(view, part, search, kind, limit)
                stage.taken += len(hits)
                stage.repeats += sum(number in fused.scores for number in hits.numbers.tolist())
                fused.add(search, hits, weight * WEIGHTS[search])

                if kind in READABLE:
                    readable.add(search, hits, weight * WEIGHTS[search])

    return fused, readable


def _possible_searches(
    view: MeteredView,
    question: Question,
    searches: Sequence[str],
) -> tuple[str, ...]:
    """The searches that the question can be asked by: words take the place of vectors that there
    are not.
    """
    is_known = any(question.model in tags for tags in view.info.models.values())
    if VECTOR not in searches or (question.vector is not None and is_known):
        return tuple(searches)

    view.turn.because(Reason.EMBEDDINGS_MISSING)
    return tuple(dict.fromkeys(LEXICAL if search == VECTOR else search for search in searches))


def _hits(
    view: MeteredView,
    part: Question,
    search: str,
    kind: Kind,
    limit: int,
) -> Hits:
    if not view.info.nodes.get(kind, 0):
        return NO_HITS
    if search == LEXICAL:
        return view.lexical(
            part.text,
            kind=kind,
            limit=limit,
        )

    if search == VECTOR:
        if part.vector is None or part.model not in view.info.models.get(kind, ()):
            return NO_HITS
        return view.nearest(
            part.vector,
            kind=kind,
            model=part.model,
            limit=limit,
        )

    if kind is Kind.ENTITY:
        return _find_named(view, part.text)

    return NO_HITS


def _find_named(view: MeteredView, text: str) -> Hits:
    """Entities that the text spells out, longest name first: the longer, the less by chance."""
    matches = view.match_names(text)
    lengths = matches.ends - matches.starts
    order = np.lexsort((matches.numbers, matches.starts, -lengths))
    numbers, first = np.unique(matches.numbers[order], return_index=True)
    first_places = np.sort(first)
    return Hits(matches.numbers[order][first_places], np.ones(len(numbers), np.float32))


def spread_seeds(
    view: MeteredView,
    question: Question,
    pool: Sequence[int],
    strength: dict[int, float],
    *,
    k: int,
    mmr: float,
) -> list[int]:
    """k of the pool by maximal marginal relevance: good, and unlike what was taken before
    (Carbonell et al. 1998).
    """
    if len(pool) <= k or mmr == 0.0 or question.vector is None or view.turn.expired():
        return list(pool[:k])

    vectors, _ = view.vectors(np.array(pool, np.int64), model=question.model)
    unit = unit_rows(vectors)  # a row without a vector is like nothing
    strengths = np.array([strength[number] for number in pool])
    places, _, _ = choose(
        (1.0 - mmr) * strengths,
        unit @ unit.T,
        k,
        mmr,
    )
    return [pool[place] for place in places.tolist()]


NEIGHBOUR_SHARE = 4  # candidates are few, so only the best quarter of the cap brings neighbours in


def narrow(
    view: MeteredView,
    question: Question,
    rules: HiragPathrag,
) -> CandidateGraph | None:
    """The candidate graph of a question; None, with the reason, where there is no hierarchy to go
    down.

    The widths of `rules.beam` are: super-topics kept, topics kept in all, neighbours that each of
    the best members brings in from outside.
    """
    if question.vector is None or question.model not in view.info.models.get(Kind.CLUSTER, ()):
        view.turn.because(Reason.HIERARCHY_UNAVAILABLE)
        return None

    topics = _descend(view, question, rules)
    entered = np.array(
        sorted(topic.node for topic in topics if topic.level == TOPIC),
        np.int64,
    )
    expansion = view.expand(
        entered,
        direction=IN,
        types=[ClusterEdgeType.PART_OF],
        mask=question.mask,
    )
    nodes = np.unique(expansion.target)
    hscore = _hscores(view, question, nodes, rules)

    if not view.turn.expired() and len(nodes):
        neighbours = _neighbours(view, question, nodes, hscore, rules)
        nodes = np.concatenate([nodes, neighbours])
        hscore = np.concatenate([hscore, _hscores(view, question, neighbours, rules)])

    if len(nodes) > rules.cand_cap:
        view.turn.trimmed(Reason.CAP_EXCEEDED)

    best_places = best(hscore, nodes, rules.cand_cap)
    return CandidateGraph(
        nodes[best_places],
        hscore[best_places].astype(np.float32),
        topics,
    )


def _descend(
    view: MeteredView,
    question: Question,
    rules: HiragPathrag,
) -> tuple[NarrowedTopic, ...]:
    """Super-topics by cosine, then the best topics under them; the best topics where the hierarchy
    has one level.

    Each level keeps its own width and no more, however many parents there are.
    """
    least = rules.topic_thresholds
    super_topic_width, topic_width, _ = _widths(rules)
    ranked = _nearest_topics(
        view,
        question,
        SUPER_TOPIC,
        limit=rules.topic_k,
        least=-1.0,
    )

    if not ranked:
        topics = _nearest_topics(
            view,
            question,
            TOPIC,
            limit=rules.topic_k,
            least=least.topic,
        )
        return tuple(topics[:topic_width])

    close = [topic for topic in ranked if topic.similarity >= least.super_topic]
    above = tuple(close[:super_topic_width])
    if not above or view.turn.expired():
        return above

    super_topics = np.array([topic.node for topic in above], np.int64)
    # The edges point up.
    expansion = view.expand(
        super_topics,
        direction=IN,
        types=[ClusterEdgeType.SUBTOPIC_OF],
        mask=question.mask,
    )
    below = np.unique(expansion.target)

    if not len(below):
        return above

    topics = _nearest_topics(
        view,
        question,
        TOPIC,
        limit=topic_width,
        least=least.topic,
        allowed=below,
    )
    return (*above, *topics)


def _widths(rules: HiragPathrag) -> tuple[int, ...]:
    """Super-topics, topics and neighbours; the last width that the rules give goes for the rest."""
    return (*rules.beam, rules.beam[-1], rules.beam[-1])[:3]


def _nearest_topics(
    view: MeteredView,
    question: Question,
    level: int,
    *,
    limit: int,
    least: float,
    allowed: Numbers | None = None,
) -> list[NarrowedTopic]:
    assert question.vector is not None
    hits = view.nearest(
        question.vector,
        kind=Kind.CLUSTER,
        model=question.model,
        limit=limit,
        level=level,
        within=allowed,
    )
    pairs = zip(hits.numbers.tolist(), hits.scores.tolist(), strict=True)
    return [NarrowedTopic(node, level, score) for node, score in pairs if score >= least]


def _hscores(
    view: MeteredView,
    question: Question,
    numbers: Numbers,
    rules: HiragPathrag,
) -> NDArray[np.float64]:
    """Hubs demoted: cosine x 1 / (1 + deg_alpha x out-degree) (requirement C34)."""
    hubs = rules.beam_demote.deg_alpha * view.degree(numbers, direction=OUT)
    return Relevance(view, question).cosine(numbers) / (1.0 + hubs)


def _neighbours(
    view: MeteredView,
    question: Question,
    members: Numbers,
    hscore: NDArray[np.float64],
    rules: HiragPathrag,
) -> Numbers:
    """What the best members lead to outside: the facts of a question rarely end at the border of a
    topic.
    """
    _, _, fanout = _widths(rules)
    nearest = members[
        best(
            hscore,
            members,
            max(1, rules.cand_cap // NEIGHBOUR_SHARE),
        )
    ]
    expansion = view.expand(
        nearest,
        direction=ANY,
        types=PATH_TYPES,
        fanout=fanout,
        mask=question.mask,
    )
    near = np.unique(expansion.target)
    is_new: Flags = members[np.minimum(np.searchsorted(members, near), len(members) - 1)] != near
    return near[is_new]


TOPICS_MET = 3  # topics of what was found, beside those above them


def topics_of(
    view: MeteredView,
    question: Question,
    paths: Sequence[FoundPath],
    passages: Sequence[FoundPassage],
) -> list[NarrowedTopic]:
    """The topics that most of what was found belongs to, without those that are far from the
    question, and those above them.

    What was found are the entities on the paths and those that the passages mention.
    """
    if view.turn.expired():
        return []

    chunks = np.array([passage.node for passage in passages], np.int64)
    mentioned = view.expand(
        chunks,
        direction=OUT,
        types=[MENTIONS],
        fanout=MENTIONED,
    )
    on_paths = np.array(list(chain.from_iterable(path.nodes for path in paths)), np.int64)
    topics = view.clusters_of(np.concatenate([on_paths, mentioned.target]))
    numbers, counts = np.unique(topics[topics >= 0], return_counts=True)
    entered = numbers[np.lexsort((numbers, -counts))][:TOPICS_MET]
    entered = entered[view.is_inside(entered)]
    ranked = sorted(
        _as_topics(view, question, entered, TOPIC),
        key=lambda topic: -topic.similarity,
    )
    nearest = [topic for topic in ranked if topic.similarity >= ranked[0].similarity / 2]
    below = np.array([topic.node for topic in nearest], np.int64)
    above = view.expand(
        below,
        direction=OUT,
        types=[ClusterEdgeType.SUBTOPIC_OF],
    )
    return [
        *_as_topics(
            view,
            question,
            np.unique(above.target),
            SUPER_TOPIC,
        ),
        *nearest,
    ]


def _as_topics(
    view: MeteredView,
    question: Question,
    numbers: Numbers,
    level: int,
) -> list[NarrowedTopic]:
    similarities = Relevance(view, question).cosine(numbers).tolist()
    return list(
        map(
            NarrowedTopic,
            numbers.tolist(),
            repeat(level),
            similarities,
        )
    )
