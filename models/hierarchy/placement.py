"""Which topic takes a point that no clustering saw: its neighbours vote, its vector leans."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.hierarchy.arrays import NONE, Flags, Labels, Vectors, Weights
from models.hierarchy.links import Links

ROUNDS = 2  # neighbours, then neighbours of neighbours
BLOCK = 8192


@dataclass(frozen=True)
class Points:
    """Everything a vote needs: `trust` (n,) says how much a point's own vector counts beside its neighbours' votes."""

    vectors: Vectors
    links: Links
    trust: Weights


def place(points: Points, labels: Labels, centroids: Vectors, asked: Flags, *, loyalty: float = 0.0) -> Labels:
    """Labels in which every asked point has a topic where anything speaks for one; the others keep theirs.

    A point's score for a topic is the share of its neighbours' votes plus `trust` times the cosine to the centroid,
    plus `loyalty` for the topic it is in. A neighbour's vote is divided by its degree: a hub says little. Points that
    nothing speaks for after both rounds, and that have no vector, stay at -1.
    """
    links = points.links
    voice = (1.0 / np.maximum(links.degree, 1)).astype(np.float32)
    heard = links.weights * voice[links.others]
    has_vector = np.any(points.vectors != 0, axis=1)
    current = np.where(asked, NONE, labels)
    waiting = asked.copy()
    for turn in range(ROUNDS):
        rows = np.flatnonzero(waiting)
        scores_known, best = _best(points, heard, current, labels, centroids, rows, loyalty)
        last = turn == ROUNDS - 1
        ready = scores_known | (has_vector[rows] & last)
        current[rows[ready]] = best[ready]
        waiting[rows[ready]] = False
    return current


def _best(
    points: Points,
    heard: Weights,
    current: Labels,
    before: Labels,
    centroids: Vectors,
    rows: np.ndarray,
    loyalty: float,
) -> tuple[Flags, Labels]:
    """For each row, whether any neighbour voted, and the topic with the highest score."""
    topics = len(centroids)
    voted = np.zeros(len(rows), bool)
    best = np.full(len(rows), NONE, np.int64)
    if not topics:
        return voted, best
    for start in range(0, len(rows), BLOCK):
        part = rows[start : start + BLOCK]
        votes = _count_votes(points.links, heard, current, part, topics)
        total = votes.sum(axis=1, keepdims=True)
        score = votes / np.where(total > 0, total, 1)
        score += points.trust[part, None] * (points.vectors[part] @ centroids.T)
        own = np.flatnonzero(before[part] != NONE)
        score[own, before[part][own]] += loyalty
        voted[start : start + BLOCK] = total.ravel() > 0
        best[start : start + BLOCK] = score.argmax(axis=1)
    return voted, best


def _count_votes(links: Links, heard: Weights, current: Labels, rows: np.ndarray, topics: int) -> Weights:
    """(rows, topics): for each row the votes of its neighbours that have a topic, added one after the other."""
    degree = links.degree[rows]
    asked = np.repeat(np.arange(len(rows)), degree)
    entries = np.repeat(links.starts[rows] - (np.cumsum(degree) - degree), degree) + np.arange(int(degree.sum()))
    asked, entries = asked[::-1], entries[::-1]  # the last neighbour first: sums of float32 depend on the order
    topic = current[links.others[entries]]
    settled = topic != NONE
    votes = np.zeros((len(rows), topics), np.float32)
    np.add.at(votes, (asked[settled], topic[settled]), heard[entries[settled]])
    return votes
