"""Rows as the stages after ingestion leave them, over a tiny corpus: topics, a journal, bridges, a
log, a ledger.
"""

from __future__ import annotations

from typing import Any

from hades import stage_ledger
from hades.ports.store import RowStore
from schemas.record import canonical_json
from schemas.telemetry import ShownPassage, ShownPath, ShownResults, ShownTopic
from tests.contract.examples import day, everything, put

PARAMS = {"algo": "by hand", "min_cluster_size": 5, "min_samples": 3, "seed": 42}
TERMS = ["grace hopper", "ada", "lovelace"]


def entity_named(store: RowStore, name: str) -> str:
    """The key of the entity of that name."""
    return next(row["_key"] for row in everything(store, "entities") if row["name"] == name)


def chunk_of(store: RowStore, word: str) -> dict[str, Any]:
    """The first chunk that holds a word."""
    return next(row for row in everything(store, "doc_chunks") if word in row["text"])


def quote_of(chunk: dict[str, Any]) -> dict[str, Any]:
    """A chunk as a cluster quotes it."""
    return {
        "text": chunk["text"],
        "doc": chunk["document"],
        "span": chunk["span"],
        "chunk": chunk["_key"],
        "sha256": chunk["sha256"],
    }


def put_topics(store: RowStore, members: dict[str, list[str]], **fields: Any) -> None:
    """Topics of these entities below one super-topic `top`; each is worded by `fields`."""
    parent = {
        "_key": "top",
        "level": 2,
        "cluster_params": PARAMS,
        "size": sum(map(len, members.values())),
        **fields,
    }
    topics = [
        {
            "_key": key,
            "level": 1,
            "parent": "top",
            "cluster_params": PARAMS,
            "size": len(held),
            **fields,
        }
        for key, held in members.items()
    ]
    put(store, "clusters", *topics, {**parent, "parent": None})
    below = [
        (f"entities/{one}", f"clusters/{key}", "PART_OF")
        for key, held in members.items()
        for one in held
    ]
    below += [(f"clusters/{key}", "clusters/top", "SUBTOPIC_OF") for key in members]
    for number, (tail, head, kind) in enumerate(below):
        put(
            store, "cluster_edges", {"_key": f"e{number}", "_from": tail, "_to": head, "type": kind}
        )
    for key, held in members.items():
        for one in held:
            row = next(row for row in everything(store, "entities") if row["_key"] == one)
            put(store, "entities", {**row, "cluster_id": key})
            move = {
                "_key": f"m-{one}",
                "entity": one,
                "cluster_id": key,
                "build": "b",
                "at": day(1),
            }
            put(store, "cluster_membership_journal", move)
    biggest = [
        {"cluster": key, "name": fields.get("name", ""), "size": len(held)}
        for key, held in members.items()
    ]
    reports: dict[str, dict[str, Any]] = {stage_ledger.HIERARCHY: {"biggest": biggest}}
    for stage in (stage_ledger.HIERARCHY, stage_ledger.WEIGHTS, stage_ledger.BRIDGES):
        stage_ledger.record(store, stage, "done", "g", day(1), reports.get(stage, {}))


def put_bridge(store: RowStore, key: str, relation: dict[str, Any], **fields: Any) -> None:
    """A bridge of one relation."""
    source = relation["provenance"] or {"doc": "", "span": None}
    step = {
        "id": f"relations/{relation['_key']}",
        "type": relation["type"],
        "weight": 0.5,
        **source,
    }
    row = {
        "_key": key,
        "from_cluster": "one",
        "to_cluster": "two",
        "nodes": [relation["_from"], relation["_to"]],
        "edges": [step["id"]],
        "weight": 0.5,
        "cost": 0.7,
        "provenance": canonical_json({"edges": [step], "search": {"region": "r", "paths": 1}}),
        "generation": "g",
        "created": day(1),
        **fields,
    }
    put(store, "bridge_cache", row)


def put_log(store: RowStore, query: str, paths: list[dict[str, Any]], chunks: list[str]) -> None:
    """A log that showed these relations as paths and these chunks as passages."""
    shown = ShownResults(
        paths=tuple(
            ShownPath(
                rank=rank,
                score=0.5,
                reliability=0.5,
                origin="beam",
                why="near the question",
                nodes=(one["_from"], one["_to"]),
                edges=(f"relations/{one['_key']}",),
            )
            for rank, one in enumerate(paths, 1)
        ),
        passages=tuple(
            ShownPassage(rank=rank, score=0.5, id=f"doc_chunks/{key}", tiers={"vector": 0.5})
            for rank, key in enumerate(chunks, 1)
        ),
        hierarchy=(ShownTopic(id="clusters/top", level=2),),
    )
    row = {"_key": "q_1", "query": query, "recipe": "hirag_pathrag", "snapshot": "s", "at": day(1)}
    put(store, "query_logs", {**row, "results": canonical_json(shown.model_dump(mode="json"))})
