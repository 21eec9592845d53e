"""Which pairs of topics are hot, and through which other topics a path between two of them may lead."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from models.bridges.score import Floats, Longs

MIDDLES = 8  # the neighbours of a topic between which it is taken as a middle


@dataclass(frozen=True)
class Heat:
    """Total weight of the bridges between topics: pairs `first[i] < second[i]`, in their order.

    `neighbour` and `strength` list each topic's neighbours at `starts[t]:starts[t + 1]`, strongest first.
    """

    n_topics: int
    first: Longs
    second: Longs
    weight: Floats
    starts: Longs
    neighbour: Longs
    strength: Floats

    def of(self, topic: int) -> tuple[Longs, Floats]:
        """A topic's neighbours and how strongly it is joined to each."""
        mine = slice(self.starts[topic], self.starts[topic + 1])
        return self.neighbour[mine], self.strength[mine]


def heat_of(tail_topic: Longs, head_topic: Longs, weight: Floats, n_topics: int) -> Heat:
    """Add up bridges, given in the order of their keys, between topics."""
    low, high = np.minimum(tail_topic, head_topic), np.maximum(tail_topic, head_topic)
    codes, which = np.unique(low * n_topics + high, return_inverse=True)
    total = np.bincount(which, weights=weight, minlength=len(codes)).astype(np.float64)
    first, second = codes // max(1, n_topics), codes % max(1, n_topics)
    near, far = np.concatenate([first, second]), np.concatenate([second, first])
    both = np.concatenate([total, total])
    order = np.lexsort((far, -both, near))
    starts = np.searchsorted(near[order], np.arange(n_topics + 1)).astype(np.int64)
    return Heat(n_topics, first, second, total, starts, far[order], both[order])


def hot_pairs(heat: Heat, near: int, far: int) -> list[tuple[int, int]]:
    """The `near` most strongly joined pairs, then the `far` strongest of those that only third topics join.

    A third topic carries between two of its strongest neighbours what the weaker of its two joints has.
    """
    order = np.lexsort((heat.second, heat.first, -heat.weight))[:near]
    joined = heat.first * heat.n_topics + heat.second
    codes, carried = _carry(heat)
    apart = ~np.isin(codes, joined)
    codes, carried = codes[apart], carried[apart]
    best = codes[np.lexsort((codes, -carried))[:far]]
    chosen = np.concatenate([joined[order], best])
    return [divmod(code, heat.n_topics) for code in chosen.tolist()]


def pairs_of(heat: Heat, topic: int, limit: int) -> list[tuple[int, int]]:
    """A topic with each of its strongest neighbours."""
    return [(min(topic, other), max(topic, other)) for other in heat.of(topic)[0][:limit].tolist()]


def region_topics(heat: Heat, first: int, second: int, limit: int) -> Longs:
    """The two topics and at most `limit` others that paths may pass: those joined to both, by the weaker joint, then
    those joined to one of them; ties fall to the order of topics."""
    (left, left_weight), (right, right_weight) = heat.of(first), heat.of(second)
    topics = np.union1d(left, right)
    topics = topics[(topics != first) & (topics != second)]
    weights = np.zeros((2, len(topics)))
    for row, (others, strength) in enumerate(((left, left_weight), (right, right_weight))):
        kept = (others != first) & (others != second)
        weights[row, np.searchsorted(topics, others[kept])] = strength[kept]
    order = np.lexsort((topics, -weights.max(axis=0), -weights.min(axis=0)))[:limit]
    return np.concatenate([np.array([first, second], np.int64), topics[order]])


def _carry(heat: Heat) -> tuple[Longs, Floats]:
    """Pairs of neighbours of the same topic, each with what all topics together carry between them."""
    topic = np.repeat(np.arange(heat.n_topics), np.diff(heat.starts))
    rank = np.arange(len(topic)) - heat.starts[topic]
    kept = rank < MIDDLES
    beside = np.full((heat.n_topics, MIDDLES), -1, np.int64)
    joint = np.zeros((heat.n_topics, MIDDLES))
    beside[topic[kept], rank[kept]], joint[topic[kept], rank[kept]] = heat.neighbour[kept], heat.strength[kept]
    codes, weights = [np.empty(0, np.int64)], [np.empty(0)]
    for left, right in combinations(range(MIDDLES), 2):
        both = beside[:, right] >= 0
        one, two = beside[both, left], beside[both, right]
        codes.append(np.minimum(one, two) * heat.n_topics + np.maximum(one, two))
        weights.append(np.minimum(joint[both, left], joint[both, right]))
    found, which = np.unique(np.concatenate(codes), return_inverse=True)
    return found, np.bincount(which, weights=np.concatenate(weights), minlength=len(found)).astype(np.float64)
