"""HippoRAG: walk, read, walk again."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import CHUNK, Kind, Numbers
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import FoundPassage, Question, Seed, rank_by_worth
from hades.retrieval.core.words import ANY
from hades.retrieval.features.leading import score_multihop
from hades.retrieval.features.passages import Pool, reciprocal
from hades.retrieval.features.sentences import (
    LINK,
    QuestionWords,
    Reading,
    read_closely,
    weigh_question_words,
)
from hades.retrieval.search.near_document import search_placed
from hades.retrieval.search.restart import (
    NamedEntity,
    as_seeds,
    expand_with_synonyms,
    link_facts,
    move_mass,
    named_entities,
    nearest_passages,
    passages_naming,
    restart_mass,
)
from hades.retrieval.search.seeds import POOL, spread_seeds
from hades.retrieval.walks.pagerank import Ppr, walk_from
from hades.retrieval.walks.rows import Floats
from hades.settings.tree import HippoSettings
from models.arrays import unit_rows
from schemas.plan import Plan, Reason

_CAPITALISED = re.compile(
    r"[^\W_a-z][\w'’.-]*(?:\s+(?:(?:of|the|de|la|von|van|for|and)\s+){0,2}[^\W_a-z][\w'’.-]*)*"
)
# Membership in a topic joins everything to everything, so the walk leaves it out. What is not named
# here counts fully.
FACTORS: Mapping[str, float] = {
    "similar_to": 0.3,
    "related_to": 0.1,
    "references": 0.3,
    "next": 0.3,
    "PART_OF": 0.0,
    "SUBTOPIC_OF": 0.0,
    "SIBLING_OF": 0.0,
}
_POOL = 30  # passages by walk that are read closely
_SEARCHED = 10  # and by vector and by words
_BEST = 5  # passages whose fitting sentences say where the next walk starts
_SENTENCES = 2  # of each of them; one more where facts stand beside them
_MOVED = 0.5  # of the restart mass that goes on to the next names
_FIRST_SHARE = 0.75  # of the passages that may be read: before the second walk


@dataclass(frozen=True)
class WalkCaps:
    """What a plan allows: nodes that the first walk starts from, spread by `mmr`; names that each
    later walk goes on from; passages that are read and judged, and the time for judging them.
    """

    seeds: int = 1000
    mmr: float = 0.0
    names: int = 1000
    passages: int = 1000
    judge_ms: float = math.inf

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """The caps of a plan."""
        seeds = plan.retriever
        judged = plan.reranker
        return cls(
            seeds.k,
            seeds.mmr,
            plan.graph.beam,
            judged.m,
            judged.timeout_ms,
        )


@dataclass(frozen=True)
class HippoRules:
    """How far a search goes: `hops` walks follow the first, each brings `again` passages more;
    `limit` come back.
    """

    walk: HippoSettings = field(default_factory=HippoSettings)
    hops: int = 1
    again: int = 20
    limit: int = 50
    caps: WalkCaps = WalkCaps()


@dataclass(frozen=True)
class WalkFindings:
    """What the walks brought up: `nodes` were read and are described by `pool`; `ranked` is the
    first walk's order.
    """

    nodes: list[int]
    pool: Pool
    want: QuestionWords
    ranked: list[FoundPassage]
    entities: list[Seed]


def rank_chunks_by_ppr(
    view: MeteredView,
    ppr: Ppr,
    limit: int,
) -> list[FoundPassage]:
    """The passages of a walk, best first: passages are nodes of the walk, so their score is read
    off it.
    """
    return [
        FoundPassage(node, score, {"ppr": score})
        for node, score in chunk_scores(view, ppr, limit).items()
    ]


def chunk_scores(
    view: MeteredView,
    ppr: Ppr,
    limit: int,
) -> dict[int, float]:
    """The score of the first `limit` passages of a walk by node, best first."""
    ours = np.flatnonzero(view.kinds(ppr.numbers) == CHUNK)
    if view.only is not None:
        ours = ours[view.is_inside(ppr.numbers[ours])]

    return dict(
        zip(ppr.numbers[ours[:limit]].tolist(), ppr.scores[ours[:limit]].tolist(), strict=True)
    )


class WalkSearch:
    """One question: the walks that were made and the passages that were read."""

    def __init__(
        self,
        view: MeteredView,
        question: Question,
        rules: HippoRules,
    ) -> None:
        self._view = view
        self._question = question
        self._rules = rules
        self._readings: dict[int, Reading] = {}
        self._walks: list[Ppr] = []
        # The nodes whose vectors were fetched last, and those.
        self._vectors: tuple[list[int], NDArray[np.float32]] = [], np.zeros((0, 1), np.float32)

    def run(self) -> WalkFindings:
        """Walk and read, without judging; what the closer look is fitted on."""
        view = self._view
        question = self._question
        rules = self._rules
        entities = named_entities(view, question.text, rules.walk)

        if not entities:
            view.turn.because(Reason.NO_ENTITY_MATCH)

        start = self.start(entities)
        ranked = rank_chunks_by_ppr(
            view,
            self.walk(start),
            rules.limit,
        )
        by_words = view.lexical(
            question.text,
            kind=Kind.CHUNK,
            limit=_SEARCHED,
        ).by_number()
        near = nearest_passages(view, question, _SEARCHED).numbers.tolist()
        most = rules.caps.passages

        if rules.hops:
            first_count = max(1, round(_FIRST_SHARE * most))
        else:
            first_count = most

        first = _in_rounds(
            [passage.node for passage in ranked[:_POOL]],
            near,
            list(by_words),
        )
        nodes = self.read_all(first[:first_count])
        mass = start

        for _ in range(rules.hops):
            if not nodes or view.turn.expired():
                break

            mass = self.moved(mass, nodes, entities)
            walked = chunk_scores(view, self.walk(mass), rules.again)
            nodes = self.read_all(list(dict.fromkeys([*nodes, *walked]))[:most])

        return WalkFindings(
            nodes,
            pool=self.pool(nodes, by_words),
            want=self.question_words(nodes, entities),
            ranked=ranked,
            entities=as_seeds(start, [entity.node for entity in entities]),
        )

    def start(self, entities: list[NamedEntity]) -> dict[int, float]:
        """The restart mass of the first walk, on as many nodes as the caps allow."""
        mass = restart_mass(
            self._view,
            self._question,
            entities,
            self._rules.walk,
        )
        mass = link_facts(
            self._view,
            self._question,
            entities,
            mass,
        )
        mass = expand_with_synonyms(
            self._view,
            mass,
            self._question.mask,
        )
        caps = self._rules.caps

        if len(mass) <= caps.seeds:
            return mass

        ordered = sorted(mass, key=lambda node: (-mass[node], node))[: POOL * caps.seeds]
        strength = {node: mass[node] / mass[ordered[0]] for node in ordered}
        chosen = spread_seeds(
            self._view,
            self._question,
            ordered,
            strength,
            k=caps.seeds,
            mmr=caps.mmr,
        )
        total = sum(mass[node] for node in chosen)
        return {node: mass[node] / total for node in chosen}

    def walk(self, mass: dict[int, float]) -> Ppr:
        rules = self._rules.walk
        ppr = walk_from(
            self._view,
            mass,
            self._question.mask,
            FACTORS,
            max_work=rules.max_work,
            damping=rules.damping,
            epsilon=rules.tolerance,
            relaxed_epsilon=rules.relaxed_tolerance,
        )
        self._walks.append(ppr)
        return ppr

    def read_all(self, nodes: list[int]) -> list[int]:
        """Read what is not read yet, as far as the budget goes; the nodes that are read."""
        missing = []
        for node in nodes:
            if node not in self._readings:
                missing.append(node)

        if missing:
            passages = self._view.passages(np.array(missing, np.int64))
        else:
            passages = []

        self._readings.update(zip(missing, map(read_closely, passages), strict=False))
        return [node for node in nodes if node in self._readings]

    def question_words(
        self,
        pool: list[int],
        entities: list[NamedEntity],
    ) -> QuestionWords:
        text = self._question.text
        names = []
        for entity in entities:
            if entity.is_name:
                names.append(text[entity.start : entity.end])

        return weigh_question_words(
            text,
            names,
            [self._readings[node] for node in pool],
        )

    def moved(
        self,
        mass: dict[int, float],
        pool: list[int],
        entities: list[NamedEntity],
    ) -> dict[int, float]:
        """Restart mass with a part of it moved to the names in the fitting sentences of the best
        passages.
        """
        want = self.question_words(pool, entities)
        sentences: list[str] = []

        voices: list[float] = []
        for rank, node in enumerate(self.promising(pool, want)[:_BEST]):
            reading = self._readings[node]
            fits = np.array(want.fit_each(reading)) + LINK / 3
            best = np.argsort(-fits, kind="stable")[: _SENTENCES + reading.has_facts].tolist()
            sentences += [reading.written[place] for place in best]
            voices += [float(fits[place]) / (1 + rank) for place in best]

        following: dict[int, float] = {}
        for spelled, voice in zip(self._entities_of(sentences), voices, strict=True):
            for node in spelled:
                following[node] = following.get(node, 0.0) + voice

        nodes = np.array(sorted(following), np.int64)
        passage_counts = passages_naming(self._view, nodes)
        weights = {
            node: following[node] / count**0.5
            for node, count in zip(nodes.tolist(), passage_counts.tolist(), strict=True)
            if count > 1
        }
        heaviest = sorted(weights, key=lambda node: (-weights[node], node))
        towards = {node: weights[node] for node in heaviest[: self._rules.caps.names]}
        return move_mass(mass, towards, _MOVED)

    def _entities_of(self, sentences: Sequence[str]) -> list[set[int]]:
        """For each sentence the entities that its capitalised runs spell.

        Run by run, because a phrase that a triple took from the sentence would hide the names
        inside it.
        """
        runs = [_CAPITALISED.findall(sentence) for sentence in sentences]
        distinct = list(dict.fromkeys(chain.from_iterable(runs)))
        matches = self._view.match_each(distinct)

        spelled = {}
        for run, match in zip(distinct, matches, strict=True):
            spelled[run] = match.numbers.tolist()

        return [set().union(*map(spelled.__getitem__, sentence_runs)) for sentence_runs in runs]

    def promising(self, pool: list[int], want: QuestionWords) -> list[int]:
        """The pool, best first, by the last walk, the cosine and the words; a quick judgement, to
        know where to go.
        """
        walk = np.log(self.scores(pool, -1) + 1e-7)
        word_shares = np.array([want.share(self._readings[node].all_roots) for node in pool])
        vectors, question_vector = self.vectors(pool)
        cosines = vectors @ question_vector
        worth = 0.3 * walk + 4.0 * reciprocal(walk) + 3.0 * cosines + word_shares
        return [pool[row] for row in np.argsort(-worth, kind="stable").tolist()]

    def scores(self, pool: list[int], walk: int) -> Floats:
        """(n,) the score of each of these distinct nodes; 0 for one that the walk did not reach."""
        scores = np.zeros(len(pool))
        if not pool:
            return scores

        ppr = self._walks[walk]
        nodes = np.array(pool, np.int64)
        order = np.argsort(nodes)
        ordered = nodes[order]
        place = np.minimum(np.searchsorted(ordered, ppr.numbers), len(nodes) - 1)
        is_in_pool = ordered[place] == ppr.numbers
        scores[order[place[is_in_pool]]] = ppr.scores[is_in_pool]
        return scores

    def vectors(self, pool: list[int]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        question_vector = self._question.vector
        nothing = np.zeros((len(pool), 1), np.float32), np.zeros(1, np.float32)
        if question_vector is None:
            return nothing

        if self._vectors[0] != pool:
            vectors, _ = self._view.vectors(
                np.array(pool, np.int64),
                model=self._question.model,
            )
            self._vectors = list(pool), unit_rows(vectors)

        unit = self._vectors[1]
        if unit.shape[1] == len(question_vector):
            return (unit, question_vector)

        return nothing

    def pool(self, nodes: list[int], by_words: dict[int, float]) -> Pool:
        """The nodes as the closer look sees them."""
        vectors, question_vector = self.vectors(nodes)
        return Pool(
            [self._readings[node] for node in nodes],
            self.scores(nodes, 0),
            self.scores(nodes, -1),
            np.array([by_words.get(node, 0.0) for node in nodes]),
            vectors,
            question_vector,
            self._view.turn.expired,
        )


# HippoRAG without a language model: walk from what the question names, read the best passages, walk
# on from them. A walk brings up passages that share names with the question and with each other.
# The sentences of the best ones that fit the question say which names to follow next; these take
# over half of the restart mass, the walk runs again, and the passages of all walks are judged
# together by a closer look. One more walk is the rule; several are multi-hop search.
MULTI_HOP = HippoRules(hops=3, again=12)


def hippo_search(
    view: MeteredView,
    question: Question,
    rules: HippoRules = HippoRules(),
) -> tuple[list[FoundPassage], list[Seed]]:
    """Passages for a question by personalized PageRank and a closer look, best first.

    With them the entities of the question, each with the share of restart mass that it was given.

    A question that names nothing in the graph starts from the nearest passages, with the reason.
    One that is asked from somewhere is answered from there: the closer look was fitted on questions
    that stand alone.
    """
    if question.near:
        return search_placed(view, question, rules.limit), []

    gathered = WalkSearch(view, question, rules).run()
    with view.turn.limit(rules.caps.judge_ms):
        return _judge(gathered, rules.limit), gathered.entities


def get_entity_neighborhood(
    view: MeteredView,
    entity: int,
    *,
    hops: int = 1,
    fanout: int = 16,
) -> Numbers:
    """The edges around an entity, hop after hop, those of a node heaviest first."""
    nodes = np.array([entity], np.int64)
    visited = {entity}
    edges = [np.empty(0, np.int64)]

    for _ in range(hops):
        if not len(nodes) or view.turn.expired():
            break

        expansion = view.expand(
            nodes,
            direction=ANY,
            fanout=fanout,
        )
        edges.append(expansion.edge)

        fresh = []
        for node in dict.fromkeys(expansion.target.tolist()):
            if node not in visited:
                fresh.append(node)

        visited.update(fresh)
        nodes = np.array(fresh, np.int64)

    return np.concatenate(edges)


def _in_rounds(
    walked: Sequence[int],
    near: Sequence[int],
    by_words: Sequence[int],
) -> list[int]:
    """Three that the walk found, one that is near, one by its words, and so on; each node once."""
    mixed: list[int] = []
    for place in range(max(len(walked), len(near), len(by_words))):
        mixed += walked[3 * place : 3 * place + 3]
        mixed += near[place : place + 1]
        mixed += by_words[place : place + 1]

    return list(dict.fromkeys(mixed))


def _judge(gathered: WalkFindings, limit: int) -> list[FoundPassage]:
    """What was read by the closer look, its scores falling from 1; then what the walk reached but
    nobody read.
    """
    if not gathered.nodes:
        return gathered.ranked[:limit]

    pool = gathered.pool
    worth = score_multihop(pool, gathered.want)
    tiers = {
        "ppr": pool.walk,
        "vector": pool.vectors @ pool.question_vector,
        "lexical": pool.lexical,
    }
    ranked = rank_by_worth(
        gathered.nodes,
        worth,
        lambda row: {name: float(column[row]) for name, column in tiers.items()},
    )
    read_nodes = set(gathered.nodes)

    unread = []
    for passage in gathered.ranked:
        if passage.node not in read_nodes:
            unread.append(passage)

    last = ranked[-1].score
    ranked += [
        FoundPassage(
            passage.node,
            last / (2.0 + place),
            passage.tiers,
        )
        for place, passage in enumerate(unread)
    ]
    return ranked[:limit]
