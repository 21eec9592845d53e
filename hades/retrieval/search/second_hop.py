"""Passages one mention away from the best ones: what a learned ranker looks over before anything is read.

The second step of a question is named in the first. So the passages that name what the best passages name, and those
that name what the question names, join the candidates; each is described by numbers that need no text: likeness, what
the searches gave it, the names it shares and how rare they are, and the states of the graph network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hades.ports.graph import KINDS, Kind, Numbers
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import FoundPassage, Question
from hades.retrieval.core.words import IN, MENTIONS, OUT
from hades.retrieval.features.passages import ReachState, Singles, reciprocal
from models.kernels import unit_rows

Floats = NDArray[np.float64]
_CHUNK = KINDS.index(Kind.CHUNK)
_UNRANKED = 100.0  # the place of a passage that no search brought up
ANCHORS = 8  # best passages that the net is cast around
KEPT = 150  # of a first net that go into the second
_NAMES = 24  # of a passage
_PASSAGES = 48  # of a name; one that more share says nothing about any of them
_LIMIT = 500  # candidates


@dataclass(frozen=True)
class Net:
    """Candidates as numbers, arrays of one length: nodes, the searches' own passages first, and columns by name."""

    nodes: Numbers
    columns: dict[str, Floats]


def cast_net(
    view: MeteredView,
    question: Question,
    passages: Sequence[FoundPassage],
    anchors: Numbers,
    known: ReachState,
    kept: Sequence[int] = (),
) -> Net:
    """The passages found and `kept`, and those around the `anchors`, which are some of them, best first."""
    nodes, links, spelled = _around(view, question, passages, anchors, kept)
    place = np.array([int(np.flatnonzero(nodes == anchor)[0]) for anchor in anchors.tolist()], np.int64)
    links[np.arange(len(place)), place] = 0.0
    columns = {
        **_search(passages, nodes),
        **_link(links, spelled),
        **_likeness(view, question, nodes, place),
        **_read_stated(known, nodes, place),
        "degree": np.log1p(view.degree(nodes, direction=OUT)).astype(np.float64),
    }
    return Net(nodes, columns)


def _around(
    view: MeteredView, question: Question, passages: Sequence[FoundPassage], anchors: Numbers, kept: Sequence[int]
) -> tuple[Numbers, Floats, Floats]:
    """Candidates; (anchors, n) by how much rare names each anchor is tied to each; (names, n) the question's names."""
    own = view.expand(anchors, direction=OUT, types=[MENTIONS], fanout=_NAMES, mask=question.mask)
    asked = np.unique(view.match_names(question.text).numbers)
    names = np.union1d(own.target, asked).astype(np.int64)
    around = view.expand(names, direction=IN, types=[MENTIONS], fanout=_PASSAGES + 1, mask=question.mask)
    says = _says(view, np.bincount(around.row, minlength=len(names)))
    telling = says[around.row] > 0.0
    held_by, target = around.row[telling], around.target[telling]
    nodes = _candidates(view, [*(one.node for one in passages), *kept], target)
    order = np.argsort(nodes, kind="stable")
    at = order[np.minimum(np.searchsorted(nodes, target, sorter=order), len(nodes) - 1)]
    known = nodes[at] == target
    held = np.zeros((len(names), len(nodes)))
    held[held_by[known], at[known]] = around.weight[telling][known]
    named = np.zeros((len(anchors), len(names)))
    named[own.row, np.searchsorted(names, own.target)] = own.weight
    return nodes, (named * says) @ held, (says * np.isin(names, asked))[:, None] * held


def _says(view: MeteredView, counts: Numbers) -> Floats:
    """How much a name tells: 1 where one passage has it, falling to 0 where more have it than are looked at."""
    total = max(2, view.info.nodes[Kind.CHUNK])
    says: Floats = np.log(total / np.clip(counts, 1, total)) / np.log(total)
    return np.where((counts > 0) & (counts <= _PASSAGES), says, 0.0)


def _candidates(view: MeteredView, first: Sequence[int], around: Numbers) -> Numbers:
    """Those that are there first, then the chunks around them that hold most of the names; ties fall to the number."""
    own = list(dict.fromkeys(first))[:_LIMIT]
    nodes, counts = np.unique(around, return_counts=True)
    fresh = ~np.isin(nodes, own)
    nodes, counts = nodes[fresh], counts[fresh]
    if len(nodes):
        chunks = view.kinds(nodes) == _CHUNK
        nodes, counts = nodes[chunks], counts[chunks]
    order = np.lexsort((nodes, -counts))[: _LIMIT - len(own)]
    return np.concatenate([np.array(own, np.int64), np.sort(nodes[order])]).astype(np.int64)


def _search(passages: Sequence[FoundPassage], nodes: Numbers) -> dict[str, Floats]:
    """What the searches gave; nothing to those that only the graph brought up."""
    n, own = len(nodes), min(len(passages), len(nodes))
    place = np.full(n, _UNRANKED)
    place[:own] = np.arange(own)
    score, lexical, graph = np.zeros(n), np.zeros(n), np.zeros(n)
    score[:own] = [one.score for one in passages[:own]]
    lexical[:own] = [one.tiers.get("lexical", 0.0) for one in passages[:own]]
    graph[:own] = [one.tiers.get("graph", 0.0) for one in passages[:own]]
    return {
        "searched": score / max(float(score.max(initial=0.0)), 1e-9),
        "searched_rank": 1.0 / (1.0 + place),
        "searched_place": -np.log1p(place),
        "lexical": lexical / max(float(lexical.max(initial=0.0)), 1e-9),
        "graph": graph / max(float(graph.max(initial=0.0)), 1e-9),
    }


def _link(links: Floats, spelled: Floats) -> dict[str, Floats]:
    """Ties to the best passages, which speak the quieter the further down they stand, and to the question's names."""
    voice = 1.0 / np.sqrt(1.0 + np.arange(len(links)))
    best = links.max(axis=0, initial=0.0)
    return {
        "linked": np.minimum(best, 3.0),
        "linked_best": np.minimum(links[0], 3.0) if len(links) else best,
        "linked_sum": np.log1p((voice[:, None] * links).sum(axis=0)),
        "named": np.minimum(spelled.sum(axis=0), 3.0),
        "named_best": spelled.max(axis=0, initial=0.0),
    }


def _likeness(view: MeteredView, question: Question, nodes: Numbers, anchors: Numbers) -> dict[str, Floats]:
    """Cosine with the question, with what the best passage leaves of it, and with the best passages."""
    zero = np.zeros(len(nodes))
    names = ("cosine", "cosine_gap", "cosine_rank", "remaining", "anchored")
    if question.vector is None:
        return dict.fromkeys(names, zero)
    vectors, _ = view.vectors(nodes, model=question.model)
    if not vectors.size or vectors.shape[1] != len(question.vector):
        return dict.fromkeys(names, zero)
    unit = unit_rows(vectors)
    cosine = (unit @ question.vector).astype(np.float64)
    best = unit[anchors]
    rest = question.vector - (question.vector @ best[0]) * best[0] if len(best) else question.vector
    remaining = (unit @ rest / max(float(np.linalg.norm(rest)), 1e-9)).astype(np.float64)
    alike = _others(unit, anchors).max(axis=1, initial=0.0)
    figures = (cosine, cosine - cosine.max(), reciprocal(cosine), remaining, alike.astype(np.float64))
    return dict(zip(names, figures, strict=True))


def _read_stated(known: ReachState, nodes: Numbers, anchors: Numbers) -> dict[str, Floats]:
    """How near the candidate's state is to the question's and to those of the anchors."""
    if known.states is None:
        return dict.fromkeys(("state_asked", "state_best", "state_anchored"), np.zeros(len(nodes)))
    own = known.states[nodes].astype(np.float32)
    near = _others(own, anchors)
    towards = own @ known.asked if known.asked is not None else np.zeros(len(nodes), np.float32)
    return {
        "state_asked": towards.astype(np.float64),
        "state_best": near[:, 0].astype(np.float64) if len(anchors) else np.zeros(len(nodes)),
        "state_anchored": near.max(axis=1, initial=0.0).astype(np.float64),
    }


def _others(rows: Singles, anchors: Numbers) -> Singles:
    """(n, anchors) the product of each row with those of the anchors; 0 of an anchor with itself."""
    products: Singles = rows @ rows[anchors].T
    products[anchors, np.arange(len(anchors))] = 0.0
    return products
