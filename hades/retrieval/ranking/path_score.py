"""Reliability of paths given as documents, by the names and shapes that other tools already call.

>>> path = {"vertices": ["e/a", "e/b"], "edges": [{"_from": "e/a", "_to": "e/b", "weight": 0.5}]}
>>> calculate_path_score(path, "e/a")
0.425
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

DECAY_RATE = 0.85
PRUNING_THRESHOLD = 0.005  # chosen from data: docs/paths.md says how
NO_PATH, NO_EDGES = 0.1, 0.3  # what an incomplete path scores: nothing is known; only its length is


def calculate_path_score(
    path: Mapping[str, Any] | None,
    source_node: Mapping[str, Any] | str | None,
    decay_rate: float = DECAY_RATE,
    *,
    scoring: Literal["flow", "v0"] = "flow",
) -> float:
    """The mean flow on the edges of a path, in [0, 1], when its source gives out one unit (A8 to A15).

    An edge passes on what its tail received times its share times the decay, once a hop. Its share is its `share` if
    it states one, else its weight over the `deg_out` of its tail where that document has it; a missing weight counts 1.
    A path without vertices scores 0.1, one without edges 0.3 / (vertices - 1): values of an incomplete path.
    `scoring` "v0" is the formula of specification 000: no split, and edge i decays by decay ** i once more.
    """
    vertices = list((path or {}).get("vertices") or ())
    if path is None or not vertices:
        return NO_PATH
    edges = list(path.get("edges") or ())
    if not edges:
        return NO_EDGES / max(1, len(vertices) - 1)
    degrees = {_id(one): int(one.get("deg_out") or 1) for one in vertices if isinstance(one, Mapping)}
    resource = {_id(source_node if source_node is not None else vertices[0]): 1.0}
    total = 0.0
    for place, edge in enumerate(edges):
        tail, head = _ends(edge, resource)
        if tail is None:
            continue
        if scoring == "v0":
            flow = resource[tail] * float(_weight(edge)) * decay_rate**place
        else:
            flow = resource[tail] * _share(edge, degrees.get(tail, 1)) * decay_rate
        resource[head] = resource.get(head, 0.0) + flow
        total += flow
    return total / len(edges)


def prune_paths(
    candidate_paths: Iterable[Mapping[str, Any]],
    pruning_threshold: float = PRUNING_THRESHOLD,
    *,
    decay_rate: float = DECAY_RATE,
    scoring: Literal["flow", "v0"] = "flow",
) -> list[dict[str, Any]]:
    """The paths whose reliability reaches the threshold, most reliable first, each a copy that says so (A16, A17)."""
    kept = []
    for path in candidate_paths:
        vertices = path.get("vertices") or [None]
        reliability = calculate_path_score(path, vertices[0], decay_rate, scoring=scoring)
        if reliability >= pruning_threshold:
            kept.append({**path, "reliability": reliability})
    return sorted(kept, key=lambda path: -path["reliability"])


def _id(node: Mapping[str, Any] | str) -> str:
    return node if isinstance(node, str) else str(node.get("_id", node.get("id", "")))


def _ends(edge: Mapping[str, Any], resource: Mapping[str, float]) -> tuple[str | None, str]:
    """The end flow comes from and the end it goes to; None for the first where neither end has received any."""
    tail, head = str(edge.get("_from", "")), str(edge.get("_to", ""))
    return (tail if tail in resource else None), head


def _weight(edge: Mapping[str, Any]) -> float:
    weight = edge.get("weight")
    return 1.0 if weight is None else float(weight)


def _share(edge: Mapping[str, Any], deg_out: int) -> float:
    stated = edge.get("share")
    weight = min(max(_weight(edge), 0.0), 1.0)
    return weight / max(1, deg_out) if stated is None else min(max(float(stated), 0.0), 1.0)
