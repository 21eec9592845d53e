"""What the ranker is fitted to, as arrays: graphs, questions with their candidates, and who is held out."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.ranker.features import Singles

Longs = NDArray[np.int64]


@dataclass(frozen=True)
class Graph:
    """Nodes with their features (n, d) and the undirected adjacency as CSR: `starts` (n + 1), `targets`."""

    features: Singles
    starts: Longs
    targets: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True)
class Lists:
    """Candidates of questions, one after the other: question q has the rows `starts[q]` to `starts[q + 1]`.

    `wanted` is 1 for those that were preferred. `weight` (questions,) is what a question counts.
    """

    columns: Singles
    starts: Longs
    wanted: Singles
    weight: Singles

    def __len__(self) -> int:
        return len(self.starts) - 1

    def subset(self, questions: Longs) -> Lists:
        """Some of the questions, in the order given."""
        rows = rows_of(self.starts, questions)
        counts = np.diff(self.starts)[questions]
        starts = np.concatenate([[0], np.cumsum(counts)])
        return Lists(self.columns[rows], starts, self.wanted[rows], self.weight[questions])


@dataclass(frozen=True)
class Choices:
    """Questions for the states of nodes: vectors (q, dim), candidates as nodes of the joined graph, who was wanted."""

    vectors: Singles
    starts: Longs
    nodes: Longs
    wanted: Singles

    def __len__(self) -> int:
        return len(self.starts) - 1

    def subset(self, questions: Longs) -> Choices:
        """Some of the questions."""
        rows = rows_of(self.starts, questions)
        starts = np.concatenate([[0], np.cumsum(np.diff(self.starts)[questions])])
        return Choices(self.vectors[questions], starts, self.nodes[rows], self.wanted[rows])


def rows_of(starts: Longs, questions: Longs) -> Longs:
    """The rows of some questions, one question after the other."""
    counts = np.diff(starts)[questions]
    ends = np.cumsum(counts)
    within = np.arange(int(counts.sum())) - np.repeat(ends - counts, counts)
    rows: Longs = np.repeat(starts[questions], counts) + within
    return rows


def stacked(blocks: Sequence[tuple[Singles, Singles]], weights: Sequence[float]) -> Lists:
    """Lists of (columns, wanted), one a question."""
    starts = np.cumsum([0, *(len(wanted) for _, wanted in blocks)]).astype(np.int64)
    columns = np.concatenate([columns for columns, _ in blocks]).astype(np.float32)
    wanted = np.concatenate([wanted for _, wanted in blocks]).astype(np.float32)
    return Lists(columns, starts, wanted, np.asarray(weights, np.float32))


def join(graphs: Sequence[Graph]) -> tuple[Graph, Longs]:
    """Several graphs as one, and the number that the first node of each has there."""
    sizes = np.cumsum([0, *(len(graph) for graph in graphs)]).astype(np.int64)
    edges = np.cumsum([0, *(len(graph.targets) for graph in graphs)]).astype(np.int64)
    starts = np.concatenate([*(graph.starts[:-1] + edges[place] for place, graph in enumerate(graphs)), edges[-1:]])
    targets = np.concatenate([graph.targets.astype(np.int64) + sizes[place] for place, graph in enumerate(graphs)])
    features = np.concatenate([graph.features for graph in graphs])
    return Graph(features, starts.astype(np.int64), targets.astype(np.int32)), sizes[:-1]


def undirected(
    out_starts: Longs, out_targets: NDArray[np.int32], in_starts: Longs, in_targets: NDArray[np.int32]
) -> tuple[Longs, NDArray[np.int32]]:
    """Both directions of an adjacency as one: each node's outgoing neighbours, then its incoming ones."""
    starts = np.asarray(out_starts, np.int64) + np.asarray(in_starts, np.int64)
    targets = np.empty(int(starts[-1]), np.int32)
    counts = np.diff(out_starts)
    ahead = np.arange(len(out_targets)) + np.repeat(np.asarray(in_starts[:-1], np.int64), counts)
    behind = np.arange(len(in_targets)) + np.repeat(np.asarray(out_starts[1:], np.int64), np.diff(in_starts))
    targets[ahead], targets[behind] = out_targets, in_targets
    return starts, targets


def folds(texts: Sequence[str], count: int) -> Longs:
    """The fold of each question, by the hash of its words: the same question is always in the same one."""
    return np.array([int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) % count for text in texts], np.int64)


def hold_out(texts: Sequence[str], times: Sequence[float | None], share: float) -> NDArray[np.bool_]:
    """Who is kept for the gate: the latest of those that have a time; of the others those that their hash chooses."""
    held = np.zeros(len(texts), np.bool_)
    timed = np.array([place for place, at in enumerate(times) if at is not None], np.int64)
    if len(timed):
        moments = np.array([times[place] for place in timed], np.float64)
        order = np.lexsort((timed, moments))
        held[timed[order[len(timed) - round(share * len(timed)) :]]] = True
    untimed = np.array([place for place, at in enumerate(times) if at is None], np.int64)
    parts = max(2, round(1.0 / share))
    held[untimed[folds([texts[place] for place in untimed], parts) == 0]] = True
    return held
