"""Small graphs to search, published and opened as any other, and the meter they are read
through.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hades.budget import Caps, Turn
from hades.retrieval.core.metered_view import MeteredView
from hades.retrieval.core.types import Question, Seed
from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from hades.snapshot.view import GraphView
from schemas.ids import sha256_text
from tests.contract.examples import MODEL, entity, put, relation
from tests.homes import empty_store

Edge = tuple[str, str, float] | tuple[str, str, float, str]


def published(
    home: Path,
    edges: Iterable[Edge],
    *,
    names: Iterable[str] = (),
    vectors: dict[str, Sequence[float]] | None = None,
    mentions: dict[str, Sequence[str]] | None = None,
    topics: dict[str, tuple[int, Sequence[float], Sequence[str]]] | None = None,
    relations: Sequence[dict[str, Any]] = (),
) -> GraphView:
    """A graph of entities. `mentions` are chunks and whom they name; `topics` are level, centroid
    and members.
    """
    home.mkdir(parents=True, exist_ok=True)
    edges, vectors, mentions, topics = list(edges), vectors or {}, mentions or {}, topics or {}
    stated = [one["_from"].partition("/")[2] for one in relations] + [
        one["_to"].partition("/")[2] for one in relations
    ]
    keys = {end for edge in edges for end in edge[:2]} | {*names, *vectors, *stated}
    store = empty_store(home / "graph.db")
    put(store, "entities", *(_entity(key, vectors.get(key)) for key in sorted(keys)))
    rows = [
        relation(edge[0], edge[1], *edge[3:], weight=None if np.isnan(edge[2]) else edge[2])
        for edge in edges
    ] + list(relations)
    if rows:
        put(store, "relations", *rows)
    _put_chunks(store, mentions, vectors)
    _put_topics(store, topics)
    publish(store, home)
    store.close()
    return open_snapshot(home)


def metered(
    view: GraphView, *, docs: int = 160, work: int = 10_000_000, ms: float = 1e9
) -> MeteredView:
    """The view with a fresh account."""
    return MeteredView(view, Turn(Caps(docs, work, ms)))


def number(view: GraphView, key: str) -> int:
    """The number of an entity, or of any `_id`."""
    return int(view.number([key if "/" in key else f"entities/{key}"])[0])


def seeds(view: GraphView, *keys: str, score: float = 1.0) -> list[Seed]:
    """Seeds of equal score."""
    return [Seed(number(view, key), score) for key in keys]


def keys_of(view: GraphView, nodes: Sequence[int]) -> str:
    """The keys of a path's nodes, joined."""
    return " ".join(one.partition("/")[2] for one in view.ids(np.array(nodes, np.int64)))


def question(text: str = "nothing", vector: Sequence[float] | None = None) -> Question:
    """A question in the toy model's space."""
    return Question(
        text, None if vector is None else np.array(vector, np.float32), MODEL if vector else ""
    )


def _entity(key: str, vector: Sequence[float] | None) -> dict[str, Any]:
    return (
        entity(key)
        if vector is None
        else entity(key, embedding=list(vector), embedding_model=MODEL)
    )


def _put_chunks(
    store: Any, mentions: dict[str, Sequence[str]], vectors: dict[str, Sequence[float]]
) -> None:
    if not mentions:
        return
    text = "a text"
    put(
        store,
        "documents",
        {
            "_key": "d",
            "origin": "d",
            "source": "documents",
            "text": text,
            "sha256": sha256_text(text),
        },
    )
    put(
        store,
        "doc_chunks",
        *(
            {
                "_key": key,
                "document": "documents/d",
                "text": text,
                "span": [0, 6],
                "chunk_index": place,
                "token_count": 2,
                "sha256": sha256_text(text),
            }
            for place, key in enumerate(sorted(mentions))
        ),
    )
    put(
        store,
        "mentions",
        *(
            {
                "_key": f"{chunk}-{key}",
                "_from": f"doc_chunks/{chunk}",
                "_to": f"entities/{key}",
                "type": "mentions",
            }
            for chunk, named in mentions.items()
            for key in named
        ),
    )


def _put_topics(store: Any, topics: dict[str, tuple[int, Sequence[float], Sequence[str]]]) -> None:
    params = {"algo": "toy", "min_cluster_size": 5, "min_samples": 3, "seed": 42}
    if not topics:
        return
    put(
        store,
        "clusters",
        *(
            {
                "_key": key,
                "level": level,
                "centroid": list(centroid),
                "embedding_model": MODEL,
                "cluster_params": params,
                "size": len(members),
            }
            for key, (level, centroid, members) in topics.items()
        ),
    )
    put(
        store,
        "cluster_edges",
        *(
            {
                "_key": f"{member}-{key}",
                "_from": f"{'entities' if level == 1 else 'clusters'}/{member}",
                "_to": f"clusters/{key}",
                "type": "PART_OF" if level == 1 else "SUBTOPIC_OF",
            }
            for key, (level, _, members) in topics.items()
            for member in members
        ),
    )
