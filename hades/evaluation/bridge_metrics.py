"""How good the ways between two ends are: found or not, how long, how pure, how coherent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hades.evaluation.metrics import interval
from hades.ports.view import GraphView
from schemas.graph_types import RelationType

ALLOWED = frozenset(str(one) for one in RelationType)  # what a bridge may be made of: relations, nothing else


@dataclass(frozen=True)
class Pair:
    """A paper and a repository it names, as nodes; `expected` are the other papers that name it, as nodes."""

    paper: str
    title: str
    repo: str
    paper_node: int
    repo_node: int
    expected: frozenset[int] = frozenset()
    question: str = ""


@dataclass(frozen=True)
class Way:
    """A path as nodes and the types of its edges."""

    nodes: tuple[int, ...]
    types: tuple[str, ...]


@dataclass(frozen=True)
class PairAnswer:
    """What was found for a pair, best first; `texts` are passages, for ways of answering that give no paths."""

    ways: tuple[Way, ...]
    ms: float
    texts: tuple[str, ...] = ()
    tokens: int = 0


@dataclass(frozen=True)
class PairResult:
    """One pair: `hops` of the shortest way that joins it, None where none does; None elsewhere: nothing to judge."""

    hops: int | None
    is_recalled: bool
    precision: float
    purity: float | None
    coherence: float | None
    is_expected: bool | None
    ms: float
    tokens: int


def judge(view: GraphView, model: str, pair: Pair, answered: PairAnswer, *, hops: int, paths: int) -> PairResult:
    """The first `paths` ways against the pair; a way longer than `hops` between the ends does not join them."""
    ways = answered.ways[:paths]
    joining = [(length, way) for way in ways if (length := _hops(way, pair)) is not None and length <= hops]
    holding = [pair.repo_node in way.nodes for way in ways]
    named = any(pair.repo in text for text in answered.texts[:paths])
    types = [kind for way in ways for kind in way.types]
    expected = None
    if pair.expected and joining:
        expected = any(pair.expected.intersection(way.nodes) for _, way in joining)
    return PairResult(
        min((length for length, _ in joining), default=None),
        any(holding) or named,
        float(np.mean(holding)) if holding else 0.0,
        float(np.mean([kind in ALLOWED for kind in types])) if types else None,
        _coherence(view, model, ways),
        expected,
        answered.ms,
        answered.tokens,
    )


def summarise_bridges(rows: Sequence[PairResult], joined: Sequence[bool]) -> dict[str, Any]:
    """The figures of one way of answering; `still_joined` is discovery among the pairs that are joined another way."""
    found = np.array([row.hops is not None for row in rows], np.float64)
    among = found[np.array(joined, np.bool_)]
    times = [row.ms for row in rows]
    return {
        "discovery": _round(found.mean()),
        "ci95": [_round(end) for end in interval(found)],
        "still_joined": _round(among.mean()) if len(among) else None,
        "recall": _round(np.mean([row.is_recalled for row in rows])),
        "precision": _round(np.mean([row.precision for row in rows])),
        "purity": _mean([row.purity for row in rows]),
        "coherence": _mean([row.coherence for row in rows]),
        "mean_hops": _mean([row.hops for row in rows]),
        "expected": _mean([row.is_expected for row in rows]),
        "ms_p50": _round(np.quantile(times, 0.5)),
        "ms_p95": _round(np.quantile(times, 0.95)),
        "tokens": _round(np.mean([row.tokens for row in rows])),
    }


def _hops(way: Way, pair: Pair) -> int | None:
    """Edges of the way between the two ends, None where one of them is not on it."""
    if pair.paper_node not in way.nodes or pair.repo_node not in way.nodes:
        return None
    return abs(way.nodes.index(pair.paper_node) - way.nodes.index(pair.repo_node))


def _coherence(view: GraphView, model: str, ways: Sequence[Way]) -> float | None:
    """Mean cosine of neighbours on the ways: whether each step stays near what the last was about."""
    steps = [step for way in ways for step in zip(way.nodes, way.nodes[1:], strict=False)]
    if not steps:
        return None
    near, have = view.vectors(np.array([one for one, _ in steps], np.int64), model=model)
    far, too = view.vectors(np.array([other for _, other in steps], np.int64), model=model)
    both = have & too
    if not both.any():
        return None
    lengths = np.linalg.norm(near[both], axis=1) * np.linalg.norm(far[both], axis=1)
    cosines = np.einsum("ij,ij->i", near[both], far[both]) / np.maximum(lengths, np.finfo(np.float32).tiny)
    return float(cosines.mean())


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return _round(np.mean(known)) if known else None


def _round(value: float | np.floating[Any]) -> float:
    return round(float(value), 4)
