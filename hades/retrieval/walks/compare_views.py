"""What differs between two published graphs: nodes and edges by kind, with the names of some that came and went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hades.ports.view import GraphView

MAX_NAMED = 30
_PAGE = 50_000


def compare_views(before: GraphView, after: GraphView, named: int = MAX_NAMED) -> dict[str, Any]:
    """Counts of both sides, and for each kind of node what was added and removed; at most `named` names each."""
    ids = {side: _ids(view) for side, view in (("before", before), ("after", after))}
    added, removed = ids["after"].keys() - ids["before"].keys(), ids["before"].keys() - ids["after"].keys()
    kinds = sorted({*before.info.nodes, *after.info.nodes})
    return {
        "before": before.info.snapshot,
        "after": after.info.snapshot,
        "nodes": {
            kind: {
                "before": before.info.nodes.get(kind, 0),
                "after": after.info.nodes.get(kind, 0),
                "added": sum(one.startswith(f"{kind}/") for one in added),
                "removed": sum(one.startswith(f"{kind}/") for one in removed),
                "added_names": _names(after, ids["after"], [one for one in added if one.startswith(f"{kind}/")], named),
                "removed_names": _names(
                    before, ids["before"], [one for one in removed if one.startswith(f"{kind}/")], named
                ),
            }
            for kind in kinds
        },
        "edges": {
            kind: {"before": before.info.edges.get(kind, 0), "after": after.info.edges.get(kind, 0)}
            for kind in sorted({*before.info.edges, *after.info.edges})
        },
        "parts": {
            part: {"before": before.info.parts.get(part, ""), "after": after.info.parts.get(part, "")}
            for part in sorted({*before.info.parts, *after.info.parts})
        },
    }


def _ids(view: GraphView) -> dict[str, int]:
    total = sum(view.info.nodes.values())
    found: dict[str, int] = {}
    for start in range(0, total, _PAGE):
        numbers = np.arange(start, min(start + _PAGE, total), dtype=np.int64)
        found.update(zip(view.ids(numbers), numbers.tolist(), strict=True))
    return found


def _names(view: GraphView, numbers: dict[str, int], ids: Sequence[str], most: int) -> list[str]:
    """Names of some nodes, those that most texts mention first."""
    facts = view.nodes(np.array([numbers[one] for one in sorted(ids)], dtype=np.int64)) if ids else []
    best = sorted(facts, key=lambda node: (-node.frequency, node.name, node.id))
    return list(dict.fromkeys(" ".join((node.name or node.document or node.id).split())[:120] for node in best))[:most]
