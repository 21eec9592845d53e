"""What differs between two published graphs: documents, nodes, edges, weights, topics and standing answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.build.columns import kind_numbers
from hades.build.standing import GraphChanges, check_standing
from hades.ports.graph import Kind
from hades.retrieval.pipeline import Tools
from hades.snapshot.view import GraphView
from schemas.builds import StandingQuestion

MAX_NAMED = 30
_PAGE = 50_000
_BINS = 20  # of a histogram of weights
_NOTICED = 1e-4  # a weight that moves by less is taken for the same
_SUCCEEDS = 0.5  # of its members that a topic must give to the one that it goes on in
_EDGE = ("source", "target", "type")


def compare_snapshots(
    before: GraphView, after: GraphView, questions: Sequence[StandingQuestion] = (), tools: Tools | None = None
) -> dict[str, Any]:
    """Everything that differs, `MAX_NAMED` names of each; standing questions are asked where `tools` are given."""
    ids = [_ids(view) for view in (before, after)]
    old, new = (_edges(view, of_view) for view, of_view in zip((before, after), ids, strict=True))
    edges = old.join(new, list(_EDGE), join_type="full outer", left_suffix="_before", right_suffix="_after")
    return {
        "before": before.info.snapshot,
        "after": after.info.snapshot,
        "documents": _documents(before, after),
        "nodes": _nodes(before, after, ids),
        "edges": _both(before.info.edges, after.info.edges, 0),
        "relations": _relations(edges),
        "weights": _weights(after, edges),
        "topics": _topics(before, after, ids),
        "standing": check_standing(questions, before, after, tools) if questions and tools is not None else {},
        "parts": _both(before.info.parts, after.info.parts, ""),
    }


def _both(before: Mapping[str, Any], after: Mapping[str, Any], nothing: Any) -> dict[str, dict[str, Any]]:
    """What stands under each name in both graphs."""
    names = sorted({*before, *after})
    return {name: {"before": before.get(name, nothing), "after": after.get(name, nothing)} for name in names}


def _ids(view: GraphView) -> list[str]:
    """The id of every node, by number."""
    total = sum(view.info.nodes.values())
    pages = (np.arange(start, min(start + _PAGE, total), dtype=np.int64) for start in range(0, total, _PAGE))
    return [one for numbers in pages for one in view.ids(numbers)]


def _documents(before: GraphView, after: GraphView) -> dict[str, Any]:
    changes = GraphChanges(before, after)
    names: dict[str, list[str]] = {"added": [], "changed": [], "removed": []}
    for document, change in changes.documents.items():
        names[change].append(changes.names[document])
    return {change: {"count": len(found), "names": sorted(found)[:MAX_NAMED]} for change, found in names.items()}


def _nodes(before: GraphView, after: GraphView, ids: Sequence[list[str]]) -> dict[str, Any]:
    numbers = [{one: number for number, one in enumerate(of_view)} for of_view in ids]
    added, removed = numbers[1].keys() - numbers[0].keys(), numbers[0].keys() - numbers[1].keys()
    found = {}
    for kind, sizes in _both(before.info.nodes, after.info.nodes, 0).items():
        came, went = ([one for one in side if one.startswith(f"{kind}/")] for side in (added, removed))
        found[kind] = sizes | {
            "added": len(came),
            "removed": len(went),
            "added_names": _names(after, [numbers[1][one] for one in sorted(came)], MAX_NAMED),
            "removed_names": _names(before, [numbers[0][one] for one in sorted(went)], MAX_NAMED),
        }
    return found


def _names(view: GraphView, numbers: Sequence[int], most: int | None) -> list[str]:
    """Names of some nodes, those that most texts mention first; None gives all of them, in their order."""
    facts = view.nodes(np.array(numbers, dtype=np.int64)) if numbers else []
    best = facts if most is None else sorted(facts, key=lambda node: (-node.frequency, node.name, node.id))
    names = [" ".join((node.name or node.document or node.id).split())[:120] for node in best]
    return names if most is None else list(dict.fromkeys(names))[:most]


def _edges(view: GraphView, ids: list[str]) -> pa.Table:
    """Edges by their ends and type; of several between the same ends the heaviest counts."""
    out, named = view.adjacency().out, pa.array(ids, pa.string())
    source = np.repeat(np.arange(len(out.starts) - 1), np.diff(out.starts))
    rows = pa.table(
        {
            "source": named.take(pa.array(source)),
            "target": named.take(pa.array(out.target)),
            "type": pa.array(view.type_names, pa.string()).take(pa.array(out.type)),
            "weight": pa.array(out.weight.astype(np.float64)),
        }
    )
    return rows.group_by(list(_EDGE)).aggregate([("weight", "max")]).rename_columns([*_EDGE, "weight"])


def _relations(edges: pa.Table) -> dict[str, dict[str, int]]:
    """Joined edges by type: how many each graph has, came and went."""
    was, stays = pc.is_valid(edges["weight_before"]), pc.is_valid(edges["weight_after"])
    flags = {"before": was, "after": stays, "added": pc.invert(was), "removed": pc.invert(stays)}
    table = pa.table({"type": edges["type"], **{name: flag.cast(pa.int64()) for name, flag in flags.items()}})
    rows = table.group_by("type").aggregate([(name, "sum") for name in flags]).sort_by("type").to_pylist()
    return {row["type"]: {name: row[f"{name}_sum"] for name in flags} for row in rows}


def _weights(after: GraphView, edges: pa.Table) -> dict[str, Any]:
    """Which weights moved, the largest moves first, and how weights of each type are spread in both graphs."""
    change = pc.subtract(edges["weight_after"], edges["weight_before"])
    distance = pc.fill_null(pc.abs(change), 0.0)
    moved = edges.append_column("distance", distance).filter(pc.greater(distance, _NOTICED))
    order = [("distance", "descending"), *((name, "ascending") for name in _EDGE)]
    most = moved.sort_by(order).slice(0, MAX_NAMED).to_pylist()
    ends = _names(after, after.number([row[end] for row in most for end in ("source", "target")]).tolist(), None)
    spread = {}
    for kind in pc.unique(moved["type"]).to_pylist():
        ours = edges.filter(pc.equal(edges["type"], kind))
        sides = {side: ours[f"weight_{side}"].drop_null().to_numpy() for side in ("before", "after")}
        spread[kind] = {side: np.histogram(one, _BINS, (0.0, 1.0))[0].tolist() for side, one in sides.items()}
    return {
        "moved": moved.num_rows,
        "most": [
            {"from": ends[2 * place], "to": ends[2 * place + 1], "type": row["type"],
             "before": round(row["weight_before"], 4), "after": round(row["weight_after"], 4)}
            for place, row in enumerate(most)
        ],
        "spread": spread,
    }  # fmt: skip


def _topics(before: GraphView, after: GraphView, ids: Sequence[list[str]]) -> dict[str, Any]:
    """Topics by key that came and went, merged and split by shared members; how many entities moved between which."""
    topic_of, names = [], []
    for view, of_view in zip((before, after), ids, strict=True):
        entities = kind_numbers(view.info.nodes, Kind.ENTITY.value)
        pairs = zip(entities.tolist(), view.clusters_of(entities).tolist(), strict=True)
        topic_of.append({of_view[one]: of_view[topic] for one, topic in pairs if topic >= 0})
        held = sorted(set(topic_of[-1].values()))
        names.append(dict(zip(held, _names(view, view.number(held).tolist(), None), strict=True)))
    sizes = [Counter(held.values()) for held in topic_of]
    shared = Counter((topic_of[0][one], topic_of[1][one]) for one in topic_of[0].keys() & topic_of[1].keys())
    goes_on: dict[str, list[str]] = {}
    for (old, new), count in sorted(shared.items()):
        if old != new and count >= _SUCCEEDS * sizes[0][old]:
            goes_on.setdefault(new, []).append(old)
    came = sorted(sizes[1].keys() - sizes[0].keys(), key=lambda one: (-sizes[1][one], one))
    went = sorted(sizes[0].keys() - sizes[1].keys(), key=lambda one: (-sizes[0][one], one))
    merged = [
        {"into": names[1][new], "topics": [names[0][old] for old in olds],
         "entities": sum(shared[old, new] for old in olds)}
        for new, olds in sorted(goes_on.items())
        if len(olds) + (new in sizes[0]) > 1
    ]  # fmt: skip
    flows = [
        {"from": names[0][old], "to": names[1][new], "entities": count, "stays": old == new}
        for (old, new), count in sorted(shared.items(), key=lambda one: (-one[1], one[0]))
    ]
    return {
        "before": len(sizes[0]),
        "after": len(sizes[1]),
        "came": [{"name": names[1][one], "entities": sizes[1][one]} for one in came],
        "went": [{"name": names[0][one], "entities": sizes[0][one]} for one in went],
        "merged": merged,
        "moved": sum(flow["entities"] for flow in flows if not flow["stays"]),
        "flows": flows,
    }
