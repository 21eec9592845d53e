"""A corpus of four documents, published for real, that a reader can check by hand."""

from __future__ import annotations

from pathlib import Path

from hades.snapshot.open import open_snapshot
from hades.snapshot.publish import publish
from hades.snapshot.view import GraphView
from tests.contract.examples import MODEL, entity, put, relation
from tests.homes import empty_store
from tests.unit.hades.snapshot.homes import chunk, document

DOCUMENTS = {
    "lake": ("Lake Orin", "Lake Orin lies in Vesta. The painter Ada Holm was born at its shore."),
    "holm": ("Ada Holm", "Ada Holm painted ships. She studied in Karst under Jan Brod."),
    "brod": ("Jan Brod", "Jan Brod taught drawing in Karst for thirty years."),
    "fish": ("Pike", "Pike live in cold water and hunt small fish."),
}
VECTORS = {
    "lake": [1.0, 0.0, 0.0],
    "holm": [0.6, 0.8, 0.0],
    "brod": [0.0, 1.0, 0.0],
    "fish": [0.5, 0.0, 0.8],
}


def published(home: Path) -> GraphView:
    """The snapshot of the corpus: a document, a chunk and an entity each, and one relation between
    two entities.
    """
    store = empty_store(home / "graph.db")
    for key, (title, text) in DOCUMENTS.items():
        put(store, "documents", {**document(key, text), "title": title})
        fields = {"title": title, "embedding": VECTORS[key], "embedding_model": MODEL}
        put(store, "doc_chunks", chunk(key, key, text, 0, len(text), **fields))
        put(store, "entities", entity(key, name=title))
    put(store, "relations", relation("holm", "brod", weight=0.5))
    publish(store, home)
    return open_snapshot(home)


def chunks_of(view: GraphView, *keys: str) -> list[int]:
    """Numbers of the chunks of documents."""
    return [int(number) for number in view.number([f"doc_chunks/{key}" for key in keys])]
