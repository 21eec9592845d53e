"""Stores with topics planted in them: papers around a direction each, with terms, concepts, authors
and texts.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from hades.night.context import Mode as TopicMode
from hades.night.topics.inputs import HierarchyRules
from hades.night.topics.stage import build_topics
from hades.ports.store import GraphStore
from hades.stores.sqlite.store import SqliteStore
from schemas.ids import edge_key, sha256_text
from tests.contract.examples import day, entity, everything, put, relation
from tests.homes import empty_store
from tests.unit.hades.night.contexts import context_of

DIMENSION = 24
MODEL = f"toy@1/{DIMENSION}"
SUBJECTS = ("galaxies", "proteins", "grammars", "auctions", "volcanoes", "violins")
RULES = HierarchyRules(summary_members=3, max_fanout=4)


def planted_store(path: Path, topics: int = 3, papers: int = 12) -> SqliteStore:
    """Topics of papers p<topic>_<number>, with a concept c<topic> and an author a<topic> that each
    of them names.
    """
    store = empty_store(path)
    put(store, "entities", *(row for topic in range(topics) for row in named(topic)))
    add_papers(store, [(topic, number) for topic in range(topics) for number in range(papers)])
    return store


def named(topic: int) -> list[dict[str, Any]]:
    """The concept and the author of a topic; their vectors point anywhere."""
    anywhere = unit(np.random.default_rng(900 + topic).standard_normal(DIMENSION))
    vector = {"embedding": anywhere, "embedding_model": MODEL, "vector_of": "name"}
    return [
        entity(f"c{topic}", name=f"theory of {SUBJECTS[topic]}", **vector),
        {**entity(f"a{topic}", name=f"Author {topic}", **vector), "type": "person"},
    ]


def add_papers(store: GraphStore, papers: list[tuple[int, int]]) -> list[str]:
    """Papers by topic and number, with their documents, chunks and relations; their keys."""
    rows = [paper_rows(topic, number) for topic, number in papers]
    for collection in rows[0]:
        put(store, collection, *(row for one in rows for row in one[collection]))
    return [one["entities"][0]["_key"] for one in rows]


def paper_rows(topic: int, number: int) -> dict[str, list[dict[str, Any]]]:
    """Everything a paper brings, by collection, nodes first."""
    key, subject = f"p{topic}_{number:02d}", SUBJECTS[topic]
    title = f"Paper {number} on {subject}"
    text = (
        f"{title}\n\nWe **measure** the {subject} of case {number} with care. Nothing else is "
        "said here at all."
    )
    vector = {"embedding": paper_vector(topic, number), "embedding_model": MODEL}
    chunk = {
        "document": f"documents/d_{key}",
        "text": text,
        "span": [0, len(text)],
        "sha256": sha256_text(text),
    }
    tail, head = f"doc_chunks/k_{key}", f"entities/{key}"
    mention = {
        "_key": edge_key(tail, "mentions", head),
        "_from": tail,
        "_to": head,
        "type": "mentions",
    }
    return {
        "documents": [
            {
                "_key": f"d_{key}",
                "origin": key,
                "source": "arxiv",
                "text": text,
                "sha256": sha256_text(text),
            }
        ],
        "doc_chunks": [
            {"_key": f"k_{key}", "chunk_index": 0, "token_count": 20, **chunk, **vector}
        ],
        "entities": [
            {**entity(key, name=title), "type": "paper", "vector_of": "document", **vector}
        ],
        "relations": [relation(key, f"c{topic}"), relation(key, f"a{topic}")],
        "mentions": [mention],
    }


def remove_paper(store: GraphStore, topic: int, number: int) -> None:
    """Take a paper out, as forgetting its document does."""
    key = f"p{topic}_{number:02d}"
    gone = [relation(key, f"{kind}{topic}")["_key"] for kind in "ca"]
    store.delete("relations", keys=gone)
    store.delete("mentions", keys=[edge_key(f"doc_chunks/k_{key}", "mentions", f"entities/{key}")])
    store.delete("doc_chunks", keys=[f"k_{key}"])
    store.delete("documents", keys=[f"d_{key}"])
    store.delete("entities", keys=[key])


def paper_vector(topic: int, number: int) -> list[float]:
    """Near the direction of its topic."""
    near = np.random.default_rng(1000 * topic + number).standard_normal(DIMENSION) * 0.08
    near[topic] += 1.0
    return unit(near)


def unit(row: np.ndarray) -> list[float]:
    """The row at length one."""
    return [float(value) for value in (row / np.linalg.norm(row)).astype(np.float32)]


def build(
    store: GraphStore,
    inputs: str,
    rules: HierarchyRules = RULES,
    on: int = 1,
    mode: TopicMode = "auto",
    **options: Any,
) -> SimpleNamespace:
    """Build as of a day of January."""
    return SimpleNamespace(
        **build_topics(context_of(store, MODEL, **options), day(on), mode, rules, inputs)
    )


def topic_of(store: GraphStore) -> dict[str, str | None]:
    """The topic of each entity."""
    return {row["_key"]: row["cluster_id"] for row in everything(store, "entities")}


def rows_of(store: GraphStore) -> dict[str, list[dict[str, Any]]]:
    """Everything the stage writes."""
    names = ("clusters", "cluster_edges", "cluster_membership_journal", "build_stages", "entities")
    return {name: everything(store, name) for name in names}
