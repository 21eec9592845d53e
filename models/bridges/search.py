"""The best few loopless paths between two topics, exactly, within a budget of edges looked at.

Two passes over the edges of a region. Backwards from the far topic: the heaviest walk of exactly r edges from each node
into it. Forwards: best-first over (path so far, length in all), each bounded by what the first pass says may still
come. The bound errs only for walks that would meet themselves, so little is expanded in vain, and paths come out in
the order of their score whatever their lengths (A*: Hart, Nilsson and Raphael, 1968).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from models.bridges.blocks import Blocks, Region
from models.bridges.plain_search import Found, search_paths
from models.bridges.score import Longs


@dataclass(frozen=True)
class TopicPath:
    """One path: n + 1 nodes, n edges, as numbers of the arrays that were searched."""

    nodes: tuple[int, ...]
    edges: tuple[int, ...]


@dataclass(frozen=True)
class Search:
    """What a search found, best first, and how many edges it looked at; `capped` when the budget ended it."""

    paths: tuple[TopicPath, ...]
    work: int
    capped: bool


def best_paths(
    blocks: Blocks,
    region: Region,
    *,
    n_paths: int,
    max_hops: int,
    penalty: float,
    max_work: int,
    compiled: bool = True,
) -> Search:
    """The `n_paths` best paths of 1 to `max_hops` edges from the region's first topic to its second.

    When the budget is short it looks less far, but at one edge always. Both ways to search give the same paths:
    `compiled` code takes more than a second to load, and pays from some hundred regions on.
    """
    row, column = np.nonzero(region.last > region.first)
    counts = (region.last - region.first)[row, column]
    if not counts.any():
        return Search((), 0, False)
    skipped = np.cumsum(counts) - counts
    entries = np.repeat(region.first[row, column] - skipped, counts) + np.arange(int(counts.sum()))
    leaving, arriving = np.repeat(row == 0, counts), np.repeat(column == 1, counts)
    nodes, tail, head = _number_nodes(blocks.tail[entries], blocks.head[entries])
    order = np.argsort(tail * len(nodes) + head, kind="stable")  # fast, because the entries of a block are sorted
    starts = np.searchsorted(tail[order], np.arange(len(nodes) + 1))
    is_target = np.zeros(len(nodes), np.bool_)
    is_target[head[arriving]] = True
    found, via, lengths, work, capped = _search(compiled)(
        starts, head[order], blocks.log[entries][order], np.unique(tail[leaving]), is_target,
        n_paths, max_hops, penalty, max_work,
    )  # fmt: skip
    edge = blocks.edge[entries][order]
    paths = tuple(
        TopicPath(tuple(nodes[found[at, : length + 1]].tolist()), tuple(edge[via[at, :length]].tolist()))
        for at, length in enumerate(lengths.tolist())
    )
    return Search(paths, int(work), bool(capped))


def _number_nodes(tail: Longs, head: Longs) -> tuple[Longs, Longs, Longs]:
    """The nodes that occur, sorted, and the place of each end among them."""
    occurs = np.zeros(int(max(tail.max(), head.max())) + 1, np.bool_)
    occurs[tail] = True
    occurs[head] = True
    nodes = np.flatnonzero(occurs)
    places = np.cumsum(occurs) - 1
    return nodes, places[tail], places[head]


def _search(compiled: bool) -> Callable[..., Found]:
    """The compiled search, or the one that loads no compiler."""
    if not compiled:
        return search_paths
    from models.bridges import path_kernel

    kernel: Callable[..., Found] = path_kernel.search_paths
    return kernel
