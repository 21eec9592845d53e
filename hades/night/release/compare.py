"""What differs between two published graphs: documents, nodes, edges, weights, topics and standing
answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hades.night.columns import kind_numbers
from hades.night.release.said import By, compare_said
from hades.night.standing import GraphChanges, check_standing
from hades.ports.graph import Kind, NodeFacts
from hades.retrieval.pipeline import Tools
from hades.snapshot.view import GraphView
from schemas.builds import StandingQuestion
from schemas.record import JsonObject

MAX_NAMED = 30
_PAGE = 50_000
_BINS = 20  # of a histogram of weights
_NOTICED = 1e-4  # a weight that moves by less is taken for the same
_SUCCEEDS = 0.5  # of its members that a topic must give to the one that it goes on in
_EDGE = ("source", "target", "type")


def compare_snapshots(
    old_view: GraphView,
    new_view: GraphView,
    questions: Sequence[StandingQuestion] = (),
    tools: Tools | None = None,
    by: By = "document",
    only: str = "",
    *,
    shows_all: bool = False,
) -> JsonObject:
    """Everything that differs, `MAX_NAMED` names of each; questions are asked where `tools` are
    given, and answers that stay are shown with `shows_all`. What is said now and no longer is
    listed by document, entity or topic, `only` of those with this in their name.
    """
    changes = GraphChanges(old_view, new_view)
    old_ids = _ids(old_view)
    new_ids = _ids(new_view)
    edges = _edges(old_view, old_ids).join(
        _edges(new_view, new_ids),
        list(_EDGE),
        join_type="full outer",
        left_suffix="_before",
        right_suffix="_after",
    )
    standing: JsonObject = {}

    if questions and tools is not None:
        standing = check_standing(
            questions,
            old_view,
            new_view,
            tools,
            shows_all=shows_all,
        )

    return {
        "before": old_view.info.snapshot,
        "after": new_view.info.snapshot,
        "documents": _documents(changes),
        "nodes": _nodes(old_view, new_view, old_ids, new_ids),
        "edges": _both(old_view.info.edges, new_view.info.edges, 0),
        "relations": _relations(edges),
        "weights": _weights(new_view, edges),
        "said": compare_said(changes, edges, by, only),
        "topics": _topics(_Topics.read(old_view, old_ids), _Topics.read(new_view, new_ids)),
        "standing": standing,
        "parts": _both(old_view.info.parts, new_view.info.parts, ""),
    }


def _both(
    old_values: Mapping[str, Any],
    new_values: Mapping[str, Any],
    nothing: Any,
) -> dict[str, JsonObject]:
    """What stands under each name in both graphs."""
    names = sorted({*old_values, *new_values})

    pairs = {}
    for name in names:
        pairs[name] = {
            "before": old_values.get(name, nothing),
            "after": new_values.get(name, nothing),
        }

    return pairs


def _ids(view: GraphView) -> list[str]:
    """The id of every node, by number."""
    total = sum(view.info.nodes.values())
    starts = range(0, total, _PAGE)
    pages = (
        np.arange(
            start,
            min(start + _PAGE, total),
            dtype=np.int64,
        )
        for start in starts
    )
    return list(chain.from_iterable(map(view.ids, pages)))


def _documents(changes: GraphChanges) -> JsonObject:
    documents: JsonObject = {}
    for kind in ("added", "changed", "removed"):
        names = []
        for key, change in changes.documents.items():
            if change == kind:
                names.append(changes.names[key])

        documents[kind] = {
            "count": len(names),
            "names": sorted(names)[:MAX_NAMED],
        }

    return documents


def _nodes(
    old_view: GraphView,
    new_view: GraphView,
    old_ids: Sequence[str],
    new_ids: Sequence[str],
) -> JsonObject:
    added_ids = set(new_ids).difference(old_ids)
    removed_ids = set(old_ids).difference(new_ids)

    changes = {}
    for kind, sizes in _both(old_view.info.nodes, new_view.info.nodes, 0).items():
        added = []
        for node_id in added_ids:
            if node_id.startswith(f"{kind}/"):
                added.append(node_id)

        removed = []
        for node_id in removed_ids:
            if node_id.startswith(f"{kind}/"):
                removed.append(node_id)

        changes[kind] = sizes | {
            "added": len(added),
            "removed": len(removed),
            "added_names": _most_mentioned(new_view, added),
            "removed_names": _most_mentioned(old_view, removed),
        }

    return changes


def _facts(view: GraphView, ids: Sequence[str]) -> list[NodeFacts]:
    return view.nodes(view.number(ids)) if ids else []


def _names(view: GraphView, ids: Sequence[str]) -> list[str]:
    """The name of each of these nodes."""
    return list(map(_name, _facts(view, ids)))


def _most_mentioned(view: GraphView, ids: Sequence[str]) -> list[str]:
    """The names of at most `MAX_NAMED` of these nodes, those that most texts mention first."""
    best = sorted(
        _facts(view, ids),
        key=lambda node: (-node.frequency, node.name, node.id),
    )
    return list(dict.fromkeys(map(_name, best)))[:MAX_NAMED]


def _name(node: NodeFacts) -> str:
    return " ".join((node.name or node.document or node.id).split())[:120]


def _edges(view: GraphView, ids: list[str]) -> pa.Table:
    """Edges by their ends and type; of several between the same ends the heaviest counts."""
    out = view.adjacency().out
    node_ids = pa.array(ids, pa.string())
    source = np.repeat(np.arange(len(out.starts) - 1), np.diff(out.starts))
    types = pa.array(view.type_names, pa.string())
    rows = pa.table(
        {
            "source": node_ids.take(pa.array(source)),
            "target": node_ids.take(pa.array(out.target)),
            "type": types.take(pa.array(out.type)),
            "weight": pa.array(out.weight.astype(np.float64)),
        }
    )
    heaviest = rows.group_by(list(_EDGE)).aggregate([("weight", "max")])
    return heaviest.rename_columns([*_EDGE, "weight"])


def _relations(edges: pa.Table) -> dict[str, dict[str, int]]:
    """Joined edges by type: how many each graph has, came and went."""
    counts = edges.group_by("type").aggregate(
        [("type", "count"), ("weight_before", "count"), ("weight_after", "count")]
    )

    relations = {}
    for row in counts.sort_by("type").to_pylist():
        old = row["weight_before_count"]
        new = row["weight_after_count"]
        added = row["type_count"] - old
        removed = row["type_count"] - new
        relations[row["type"]] = {
            "before": old,
            "after": new,
            "added": added,
            "removed": removed,
        }

    return relations


def _weights(new_view: GraphView, edges: pa.Table) -> JsonObject:
    """Which weights moved, the largest moves first, and how weights of each type are spread in both
    graphs.
    """
    change = pc.subtract(edges["weight_after"], edges["weight_before"])
    distance = pc.fill_null(pc.abs(change), 0.0)
    moved_edges = edges.append_column("distance", distance).filter(pc.greater(distance, _NOTICED))
    order = [("distance", "descending"), *((name, "ascending") for name in _EDGE)]
    most = moved_edges.sort_by(order).slice(0, MAX_NAMED).to_pylist()
    sources = _names(new_view, [row["source"] for row in most])
    targets = _names(new_view, [row["target"] for row in most])

    shown = []
    for row, source, target in zip(most, sources, targets, strict=True):
        weights = {}
        for name in ("before", "after"):
            weights[name] = round(row[f"weight_{name}"], 4)

        shown.append(
            {
                "from": source,
                "to": target,
                "type": row["type"],
                **weights,
            }
        )

    spread = {}
    for kind in pc.unique(moved_edges["type"]).to_pylist():
        of_kind = edges.filter(pc.equal(edges["type"], kind))
        spread[kind] = {
            "before": _histogram(of_kind["weight_before"]),
            "after": _histogram(of_kind["weight_after"]),
        }

    return {
        "moved": moved_edges.num_rows,
        "most": shown,
        "spread": spread,
    }


def _histogram(weights: pa.ChunkedArray) -> list[int]:
    counts, _ = np.histogram(
        weights.drop_null().to_numpy(),
        _BINS,
        (0.0, 1.0),
    )
    return [int(count) for count in counts]


@dataclass(frozen=True)
class _Topics:
    """The topics of a graph by key: of each entity, their names and how many members they have."""

    of_entity: Mapping[str, str]
    names: Mapping[str, str]
    sizes: Counter[str]

    @classmethod
    def read(cls, view: GraphView, ids: Sequence[str]) -> _Topics:
        entities = kind_numbers(view.info.nodes, Kind.ENTITY.value)
        pairs = zip(entities.tolist(), view.clusters_of(entities).tolist(), strict=True)

        of_entity = {}
        for entity, topic in pairs:
            if topic >= 0:
                of_entity[ids[entity]] = ids[topic]

        topics = sorted(set(of_entity.values()))
        names = dict(zip(topics, _names(view, topics), strict=True))
        return cls(of_entity, names, Counter(of_entity.values()))

    def only_here(self, rival: _Topics) -> list[JsonObject]:
        """The topics that the other graph does not have, the largest first."""
        keys = self.sizes.keys() - rival.sizes.keys()
        ordered = sorted(keys, key=lambda topic: (-self.sizes[topic], topic))
        return [
            {
                "name": self.names[key],
                "entities": self.sizes[key],
            }
            for key in ordered
        ]


def _topics(old: _Topics, new: _Topics) -> JsonObject:
    """Topics by key that came and went, merged and split by shared members; how many entities moved
    between which.
    """
    entities = old.of_entity.keys() & new.of_entity.keys()
    shared = Counter((old.of_entity[entity], new.of_entity[entity]) for entity in entities)
    flows = []

    moved = 0
    for source, target in sorted(shared, key=lambda pair: (-shared[pair], pair)):
        stays = source == target
        count = shared[source, target]
        moved += 0 if stays else count
        names = {
            "from": old.names[source],
            "to": new.names[target],
        }
        flows.append(
            {
                **names,
                "entities": count,
                "stays": stays,
            }
        )

    return {
        "before": len(old.sizes),
        "after": len(new.sizes),
        "came": new.only_here(old),
        "went": old.only_here(new),
        "merged": _merged(old, new, shared),
        "moved": moved,
        "flows": flows,
    }


def _merged(
    old: _Topics,
    new: _Topics,
    shared: Counter[tuple[str, str]],
) -> list[JsonObject]:
    """Topics that several former ones go on in: each gave most of its members."""
    goes_on: dict[str, list[str]] = {}
    for (source, target), count in sorted(shared.items()):
        if source != target and count >= _SUCCEEDS * old.sizes[source]:
            goes_on.setdefault(target, []).append(source)

    merged = []
    for target, sources in sorted(goes_on.items()):
        if len(sources) + (target in old.sizes) > 1:
            names = [old.names[source] for source in sources]
            entities = sum(shared[source, target] for source in sources)
            merged.append(
                {
                    "into": new.names[target],
                    "topics": names,
                    "entities": entities,
                }
            )

    return merged
