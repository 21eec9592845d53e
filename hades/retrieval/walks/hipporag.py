"""HippoRAG without a language model: walk from what the question names, read the best passages, walk on from them.

A walk brings up passages that share names with the question and with each other. The sentences of the best ones that
fit the question say which names to follow next; these take over half of the restart mass, the walk runs again, and the
passages of all walks are judged together by a closer look. One more walk is the rule; several are multi-hop search.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from hades.ports.graph import Expansion
from hades.retrieval.channels.contextual_search import search_from
from hades.retrieval.ranking.judge import BY_HAND, Judge
from hades.retrieval.turn.types import FoundPassage, Question, Seed
from hades.retrieval.walks.walk_search import HippoRules, WalkFindings, WalkSearch, rules_of
from hades.settings.hipporag import HippoSettings

if TYPE_CHECKING:
    from hades.ports.store import Direction
    from hades.retrieval.turn.metered_view import MeteredView

_ANY: Final = cast("Direction", "any")
MULTI_HOP = HippoRules(hops=3, again=12)


def multi_hop_rules(settings: HippoSettings) -> HippoRules:
    """The rules of several hops that follow from the section `hipporag` of the settings."""
    return replace(rules_of(settings), hops=MULTI_HOP.hops, again=MULTI_HOP.again)


@dataclass(frozen=True)
class HippoFound:
    """Passages best first, and the entities of the question with the share of restart mass each was given."""

    passages: list[FoundPassage]
    entities: list[Seed]


def hippo_search(
    view: MeteredView, question: Question, rules: HippoRules = HippoRules(), judge: Judge = BY_HAND
) -> HippoFound:
    """Passages for a question by personalized PageRank and a closer look.

    A question that names nothing in the graph starts from the nearest passages, with the reason. One that is asked from
    somewhere is answered from there: the closer look was fitted on questions that stand alone.
    """
    if question.near:
        return HippoFound(search_from(view, question, rules.limit), [])
    gathered = gather(view, question, rules)
    return HippoFound(_judge(question, gathered, rules.limit, judge), gathered.entities)


def multi_hop(
    view: MeteredView, question: Question, rules: HippoRules = MULTI_HOP, judge: Judge = BY_HAND
) -> HippoFound:
    """The same with several walks on from what was found; the restart mass of each hop decays with the next."""
    return hippo_search(view, question, rules, judge)


def gather(view: MeteredView, question: Question, rules: HippoRules = HippoRules()) -> WalkFindings:
    """Walk and read, without judging; what the closer look is fitted on."""
    return WalkSearch(view, question, rules).run()


def get_entity_neighborhood(view: MeteredView, entity: int, *, hops: int = 1, fanout: int = 16) -> Expansion:
    """The edges around an entity, heaviest first, hop after hop; `row` is the place in the order of discovery."""
    nodes, seen, parts = np.array([entity], np.int64), {entity}, []
    offset = 0
    for _ in range(hops):
        if not len(nodes) or view.turn.expired():
            break
        found = view.expand(nodes, direction=_ANY, fanout=fanout)
        parts.append((found, offset))
        offset += len(nodes)
        fresh = [node for node in dict.fromkeys(found.target.tolist()) if node not in seen]
        seen.update(fresh)
        nodes = np.array(fresh, np.int64)
    names = ("target", "edge", "type", "weight", "outbound")
    empty = view.expand(np.empty(0, np.int64), direction=_ANY)
    joined = {name: np.concatenate([getattr(one, name) for one in (empty, *(p for p, _ in parts))]) for name in names}
    row = np.concatenate([empty.row, *(found.row + before for found, before in parts)])
    return Expansion(row=row, **joined, work=sum(p.work for p, _ in parts), capped=any(p.capped for p, _ in parts))


def _judge(question: Question, gathered: WalkFindings, limit: int, judge: Judge) -> list[FoundPassage]:
    """What was read by the closer look, its scores falling from 1; then what the walk reached but nobody read."""
    if not gathered.nodes:
        return gathered.ranked[:limit]
    pool = gathered.pool
    worth = judge.walked(question, gathered.nodes, pool, gathered.want)
    scores = 2.0 / (1.0 + np.exp(worth.max() - worth))
    cosine = pool.vectors @ pool.asked
    found = [
        FoundPassage(
            gathered.nodes[row],
            float(scores[row]),
            {"ppr": float(pool.walk[row]), "vector": float(cosine[row]), "lexical": float(pool.lexical[row])},
        )
        for row in np.argsort(-worth, kind="stable").tolist()
    ]
    seen = set(gathered.nodes)
    unread = [one for one in gathered.ranked if one.node not in seen]
    last = found[-1].score
    found += [FoundPassage(one.node, last / (2.0 + place), one.tiers) for place, one in enumerate(unread)]
    return found[:limit]
