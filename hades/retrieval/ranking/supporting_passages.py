"""Which passages support a set of nodes and paths: those that name them, best where they name both ends of an edge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from hades.ports.graph import KINDS, Kind, Numbers
from hades.retrieval.ranking.relevance import IN, MENTIONS, Floats, Relevance
from hades.retrieval.turn.types import FoundPassage, FoundPath, Question

if TYPE_CHECKING:
    from hades.retrieval.turn.metered_view import MeteredView

_CHUNK = KINDS.index(Kind.CHUNK)


@dataclass(frozen=True)
class SupportRules:
    """How much each kind of support counts, and how many mentions of one node are looked at.

    A node that many chunks name says little about each of them: its mass is divided among them by `spread`, 0 for not
    at all and 1 for evenly. `edge` is what naming both ends of a path's edge adds, `cosine` what likeness adds. Only
    the `shortlist` best supported chunks are compared by likeness.
    """

    edge: float = 0.5
    cosine: float = 4.0  # chosen on musique_train: docs/paths.md
    spread: float = 0.5
    look: int = 64
    shortlist: int = 512


def passages_of(
    view: MeteredView,
    question: Question,
    nodes: Mapping[int, float],
    paths: Sequence[FoundPath] = (),
    *,
    limit: int,
    rules: SupportRules = SupportRules(),
) -> tuple[FoundPassage, ...]:
    """The chunks that name these nodes, which carry a mass each, or the nodes of these paths; best first.

    Nothing is read: mentions are scanned and vectors compared in memory.
    """
    mass = _masses(nodes, paths)
    entities = np.array(sorted(mass, key=lambda node: (-mass[node], node)), np.int64)
    if not len(entities):
        return ()
    is_chunk = view.kinds(entities) == _CHUNK
    found = view.expand(entities[~is_chunk], direction=IN, types=[MENTIONS], fanout=rules.look, mask=question.mask)
    named = entities[~is_chunk][found.row]
    share = _shares(named, found.weight.astype(np.float64), mass, rules.spread)
    own = entities[is_chunk]
    chunks, place = np.unique(np.concatenate([found.target, own]), return_inverse=True)
    held = np.concatenate([share, [mass[node] for node in own.tolist()]])
    graph = np.bincount(place, held, len(chunks)).astype(np.float64)
    graph += rules.edge * _edge_support(place[: len(named)], named, paths, len(chunks))
    short = np.sort(np.lexsort((chunks, -graph))[: max(limit, rules.shortlist)])
    return _rank(view, question, chunks[short], graph[short], limit, rules)


def _masses(nodes: Mapping[int, float], paths: Sequence[FoundPath]) -> dict[int, float]:
    """What each node carries; a node of a path carries at least the path's share of the best one."""
    mass = {int(node): float(value) for node, value in nodes.items() if value > 0.0}
    for path, weight in zip(paths, _path_weights(paths), strict=True):
        for node in path.nodes:
            mass[node] = max(mass.get(node, 0.0), weight)
    return mass


def _path_weights(paths: Sequence[FoundPath]) -> list[float]:
    """By rank, 1 for the best: scores of different searches have different scales."""
    return [1.0 / (1 + rank) ** 0.5 for rank in range(len(paths))]


def _shares(named: Numbers, weight: Floats, mass: Mapping[int, float], spread: float) -> Floats:
    """What each mention passes on to its chunk."""
    own, place, counts = np.unique(named, return_inverse=True, return_counts=True)
    masses = np.array([mass[node] for node in own.tolist()], np.float64)
    shares: Floats = (masses / np.maximum(counts, 1) ** spread)[place] * weight
    return shares


def _edge_support(place: Numbers, named: Numbers, paths: Sequence[FoundPath], n_chunks: int) -> Floats:
    """For each chunk, the weight of the path edges whose ends it both names."""
    support = np.zeros(n_chunks)
    chunks_of: dict[int, set[int]] = {}
    for chunk, node in zip(place.tolist(), named.tolist(), strict=True):
        chunks_of.setdefault(node, set()).add(chunk)
    for path, weight in zip(paths, _path_weights(paths), strict=True):
        for tail, head in pairwise(path.nodes):
            both = chunks_of.get(tail, set()) & chunks_of.get(head, set())
            support[sorted(both)] += weight / max(1, len(both)) ** 0.5
    return support


def _rank(
    view: MeteredView, question: Question, chunks: Numbers, graph: Floats, limit: int, rules: SupportRules
) -> tuple[FoundPassage, ...]:
    """Support relative to the best, and likeness; ties fall to the number."""
    likeness = Relevance(view, question).cosine(chunks)
    relative = graph / max(float(graph.max(initial=0.0)), 1e-12)
    score = relative + rules.cosine * likeness
    order = np.lexsort((chunks, -score))[:limit]
    return tuple(
        FoundPassage(int(chunks[at]), float(score[at]), {"graph": float(relative[at]), "vector": float(likeness[at])})
        for at in order.tolist()
    )
